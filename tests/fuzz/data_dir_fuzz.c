/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data directories with damage: the input is changes of eight bytes each, to a small directory as the program left it:
 * which file (two bytes), what (one: a byte is put, a bit is flipped, the file is cut, bytes are appended, the file
 * goes, zeros), where (four bytes, modulo the length), and a byte.
 *
 * It opens and every read says something, or it is refused with a reason; whether it is the core that reads, or one
 * that only looks. Nothing ends the process.
 */
#include "../lib/settle.h"
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "core/step/core.h"
#include "core/command/command.h"
#include "store/store.h"

enum { FILES_MAX = 64, CHANGES_MAX = 16 };

/* The folders of a data directory, relative to it. */
static const char *const parts[] = {"rocks", "."};

static struct {
    char name[64]; /* relative to the data directory */
    char *bytes;
    size_t len;
} files[FILES_MAX];
static size_t file_count;
static char folder[64];

static void clear_part(const char *part)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, part);
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, part, entry->d_name);
        if (entry->d_type == DT_REG)
            unlink(path);
    }
    if (listing != NULL)
        closedir(listing);
}

static void clear(void)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        clear_part(parts[i]);
}

static void fill(struct store *store)
{
    struct store_batch *batch = store_batch_new(store);
    for (int i = 1; i <= 40; i++) {
        char key[16], value[256];
        store_batch_clear(batch);
        store_batch_begin(batch, (tl_ts)i * 1000);
        snprintf(key, sizeof key, "key%d", i % 13);
        snprintf(value, sizeof value, "value %d %0*d", i, i * 4, i);
        for (int space = 0; space < SPACE_COUNT; space++)
            if (space != SPACE_CATALOG && space != SPACE_SYSTEM)
                store_batch_put(batch, (enum store_space)space, slice_from(key), slice_from(value));
        MUST(store_write(store, batch) == 0);
    }
    settle(store);
    store_batch_free(batch);
}

static void remember_part(const char *part)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, part);
    DIR *listing = opendir(path);
    MUST(listing != NULL);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL && file_count < FILES_MAX;) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, part, entry->d_name);
        FILE *file = entry->d_type == DT_REG ? fopen(path, "rb") : NULL;
        if (file == NULL)
            continue;
        MUST(snprintf(files[file_count].name, sizeof files[0].name, "%s/%s", part, entry->d_name) <
             (int)sizeof files[0].name);
        files[file_count].bytes = malloc(1 << 20);
        files[file_count].len = fread(files[file_count].bytes, 1, 1 << 20, file);
        file_count++;
        fclose(file);
    }
    closedir(listing);
}

/* The directory as the program leaves it, in memory. */
static void remember(void)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t before = file_count;
        remember_part(parts[i]);
        MUST(file_count > before); /* else nothing of this part would be damaged */
    }
}

static int open_store(bool read_only, struct store **ret_store)
{
    struct store_options options = {
        .directory = slice_from(folder), .cache_bytes = 1 << 20, .write_buffer_bytes = 1 << 20, .read_only = read_only};
    char *reason = NULL;
    int r = store_open_rocks(&options, ret_store, &reason);
    MUST(r == 0 || (reason != NULL && *reason != '\0'));
    mem_free(reason);
    return r;
}

static void leave(void)
{
    char path[400];
    clear();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        rmdir(path);
    }
    rmdir(folder);
}

static void prepare(void)
{
    struct store *store;
    log_set_level(LOG_LEVEL_COUNT - 1);
    snprintf(folder, sizeof folder, "/tmp/tidelock-fuzz.XXXXXX");
    MUST(mkdtemp(folder) != NULL);
    atexit(leave);
    MUST(open_store(false, &store) == 0);
    fill(store);
    store_close(store);
    remember();
}

static void change(const uint8_t *what)
{
    size_t file = (what[0] | (size_t)what[1] << 8) % file_count;
    size_t at =
        (what[3] | (size_t)what[4] << 8 | (size_t)what[5] << 16 | (size_t)what[6] << 24) % (files[file].len + 1);
    char path[400];
    snprintf(path, sizeof path, "%s/%.63s", folder, files[file].name);
    FILE *opened = fopen(path, "r+b");
    if (opened == NULL)
        return;
    fseek(opened, (long)at, SEEK_SET);
    int byte = fgetc(opened);
    fseek(opened, (long)at, SEEK_SET);
    switch (what[2] % 6) {
    case 0: fputc(what[7], opened); break;
    case 1: fputc(byte ^ 1 << what[7] % 8, opened); break;
    case 2: (void)!ftruncate(fileno(opened), (off_t)at); break;
    case 3:
        fseek(opened, 0, SEEK_END);
        for (int i = 0; i < what[7]; i++)
            fputc(what[i % 8], opened);
        break;
    case 4: unlink(path); break;
    default:
        for (int i = 0; i < what[7]; i++)
            fputc(0, opened);
    }
    fclose(opened);
}

static void read_all(struct store *store)
{
    struct core_limits limits = core_limits_default();
    struct core *core = NULL;
    for (int i = 0; i < 13; i++) {
        char key[16];
        struct store_value value;
        snprintf(key, sizeof key, "key%d", i);
        if (store_get(store, SPACE_DOCUMENTS, 100000, slice_from(key), &value) == 0)
            store_value_release(&value);
    }
    if (core_open(store, &limits, &core) == 0)
        core_close(core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (file_count == 0)
        prepare();
    clear();
    for (size_t i = 0; i < file_count; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%.63s", folder, files[i].name);
        FILE *file = fopen(path, "wb");
        MUST(file != NULL && fwrite(files[i].bytes, 1, files[i].len, file) == files[i].len);
        fclose(file);
    }
    for (size_t i = 0; i + 8 <= size && i < 8 * CHANGES_MAX; i += 8)
        change(data + i);
    for (int read_only = 1; read_only >= 0; read_only--) {
        struct store *store = NULL;
        if (open_store(read_only == 1, &store) == 0)
            read_all(store);
        store_close(store);
    }
    return 0;
}
