/* SPDX-License-Identifier: Apache-2.0 */
/* The host's time zones; see zones.h. */
#include "api/cluster/zones.h"

#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/zone.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "journal/journal.h"

/* "America/Argentina/Ushuaia" is the deepest. */
#define FOLDERS_MAX 3
#define NAME_BYTES_MAX 64

struct folder {
    struct arena *arena;
    struct slice root;
    struct zone_file *files;
    size_t count;
};

/* Copies of all zones in other forms, and names that are no places, which Java does not have either. */
static bool is_left_out(const char *name)
{
    static const char *const names[] = {"posix", "right", "localtime", "posixrules", "Factory",
                                        "EST",   "MST",   "HST",       "ROC"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strchr(name, '.') != NULL || strlen(name) > NAME_BYTES_MAX;
}

static bool read_file(struct arena *arena, const char *path, struct slice *ret_bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (file < 0)
        return false;
    char *bytes = NULL;
    ssize_t got = -1;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size <= ZONE_FILE_BYTES_MAX) {
        bytes = arena_alloc(arena, (size_t)info.st_size + 1);
        got = read(file, bytes, (size_t)info.st_size);
    }
    close(file);
    if (got < 0)
        return false;
    *ret_bytes = slice_make(bytes, (size_t)got);
    return true;
}

static void read_folder(struct folder *folder, struct slice inside, unsigned depth);

static void read_entry(struct folder *folder, struct slice inside, const char *entry, unsigned depth)
{
    struct slice name = arena_printf(folder->arena, "%.*s%s%s", SLICE_ARG(inside), inside.len > 0 ? "/" : "", entry);
    struct slice path = arena_printf(folder->arena, "%.*s/%.*s", SLICE_ARG(folder->root), SLICE_ARG(name));
    struct stat info;
    if (stat(path.data, &info) != 0 || folder->count == ZONES_MAX)
        return;
    if (S_ISDIR(info.st_mode) && depth > 1)
        read_folder(folder, name, depth - 1);
    else if (S_ISREG(info.st_mode) && read_file(folder->arena, path.data, &folder->files[folder->count].bytes))
        folder->files[folder->count++].name = name;
}

static void read_folder(struct folder *folder, struct slice inside, unsigned depth)
{
    struct slice path = arena_printf(folder->arena, "%.*s/%.*s", SLICE_ARG(folder->root), SLICE_ARG(inside));
    DIR *directory = opendir(path.data);
    if (directory == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (!is_left_out(entry->d_name))
            read_entry(folder, inside, entry->d_name, depth);
    closedir(directory);
}

/*
 * The first line of tzdata.zi, "# version 2025b", or all of +VERSION. Returns: the release; empty
 * where nothing says it.
 */
static struct slice read_version(struct folder *folder)
{
    static const char prefix[] = "# version ";
    struct slice path = arena_printf(folder->arena, "%.*s/tzdata.zi", SLICE_ARG(folder->root)), text;
    char line[64];
    int file = open(path.data, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t got = file < 0 ? 0 : read(file, line, sizeof line);
    if (file >= 0)
        close(file);
    text = slice_make(line, got > 0 ? (size_t)got : 0);
    if (slice_starts_with(text, slice_from(prefix)))
        text = slice_from_offset(text, sizeof prefix - 1);
    else if (!read_file(folder->arena, arena_printf(folder->arena, "%.*s/+VERSION", SLICE_ARG(folder->root)).data,
                        &text))
        text = SLICE_LIT("");
    text.len = slice_find_byte(text, '\n');
    return arena_copy(folder->arena, slice_make(text.data, text.len < 32 ? text.len : 32));
}

static void zones_offered(struct command *command)
{
    sem_t *done = command->context;
    if (command->problem.type != PROBLEM_NONE)
        log_warning("time zones: %.*s", SLICE_ARG(command->problem.reason));
    command_free(command);
    sem_post(done);
}

static void offer_zones(struct journal *journal, struct slice zones)
{
    sem_t done;
    struct command *command = command_new(COMMAND_ZONES, DIALECT_7);
    command->object.body = arena_copy(&command->arena, zones);
    command->on_done = zones_offered;
    command->context = &done;
    sem_init(&done, 0, 0);
    journal_submit(journal, command, false);
    while (sem_wait(&done) != 0)
        ;
    sem_destroy(&done);
}

/* So that a start with the zones of the last one leaves nothing in the log. */
static bool is_kept(struct journal *journal, struct slice zones)
{
    struct catalog *catalog = journal_catalog(journal);
    bool kept = slice_equal(catalog_zones(catalog), zones);
    catalog_unref(catalog);
    return kept;
}

void zones_offer(struct journal *journal, struct slice root)
{
    struct arena arena = ARENA_INIT;
    struct buf zones = BUF_INIT(BUF_UNLIMITED);
    struct folder folder = {
        .arena = &arena, .root = root, .files = arena_alloc(&arena, (ZONES_MAX + 1) * sizeof(struct zone_file))};
    read_folder(&folder, SLICE_LIT(""), FOLDERS_MAX);
    zones_write(&zones, read_version(&folder), folder.files, folder.count);
    if (zones_count(buf_as_slice(&zones)) == 0)
        log_warning("time zones: %.*s has no time zone files (Debian's package tzdata); names of zones are unknown",
                    SLICE_ARG(root));
    else if (!is_kept(journal, buf_as_slice(&zones)))
        offer_zones(journal, buf_as_slice(&zones));
    buf_deinit(&zones);
    arena_deinit(&arena);
}
