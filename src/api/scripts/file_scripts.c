/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File scripts.
 */
#include "api/scripts/file_scripts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "core/catalog/catalog.h"
#include "core/catalog/object.h"
#include "core/command/command.h"
#include "journal/journal.h"

#define WATCH_SECONDS 1

struct file_scripts {
    struct journal *journal;
    char *folder;
    uint64_t signature; /* of the files that were last submitted to the core */
    bool stopping;
    unsigned under_way; /* commands submitted and not yet done */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct thread thread;
};

/* --- The folder --------------------------------------------------------------------------------------------------- */

/* "judge-lock.groovy" is the script "judge-lock" in groovy. Returns: false for files that are no scripts. */
static bool split_name(struct slice file, struct slice *ret_name, struct slice *ret_lang)
{
    if (file.data == NULL || file.len == 0)
        return false;
    const char *dot = memrchr(file.data, '.', file.len);
    if (dot == NULL || dot == file.data)
        return false;
    *ret_name = slice_make(file.data, (size_t)(dot - file.data));
    *ret_lang = slice_from_offset(file, ret_name->len + 1);
    return slice_is(*ret_lang, "groovy") || slice_is(*ret_lang, "painless");
}

static int entry_order(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Names of the scripts in the folder, in order. */
static size_t list_folder(const char *folder, struct arena *arena, char **names)
{
    size_t count = 0;
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return 0;
    for (struct dirent *entry; count < FILE_SCRIPTS_MAX && (entry = readdir(directory)) != NULL;) {
        struct slice name, lang, file = slice_from(entry->d_name);
        if (split_name(file, &name, &lang))
            names[count++] = (char *)(uintptr_t)arena_copy(arena, file).data;
    }
    closedir(directory);
    qsort(names, count, sizeof *names, entry_order);
    return count;
}

/* A number that changes when a file does. */
static uint64_t folder_signature(const char *folder, char *const *names, size_t count, struct arena *arena)
{
    uint64_t signature = 1;
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        struct slice path = arena_printf(arena, "%s/%s", folder, names[i]);
        if (stat(path.data, &info) != 0)
            continue;
        struct slice facts =
            arena_printf(arena, "%s %lld %lld.%09ld %llu", names[i], (long long)info.st_size,
                         (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, (unsigned long long)info.st_ino);
        signature = signature * 31 + slice_hash(facts);
    }
    return signature;
}

static bool read_file(const char *folder, const char *name, struct arena *arena, struct slice *ret_text)
{
    struct slice path = arena_printf(arena, "%s/%s", folder, name);
    struct stat info;
    int file = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
                                   O_NOCTTY); /* O_NONBLOCK: opening a FIFO without a writer would block */
    if (file < 0)
        return false;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(file);
        return false;
    }
    char *bytes = arena_alloc(arena, FILE_SCRIPT_BYTES_MAX + 1);
    size_t len = 0;
    ssize_t got;
    while (len <= FILE_SCRIPT_BYTES_MAX && (got = read(file, bytes + len, FILE_SCRIPT_BYTES_MAX + 1 - len)) > 0)
        len += (size_t)got;
    close(file);
    *ret_text = slice_make(bytes, len);
    return len <= FILE_SCRIPT_BYTES_MAX;
}

/* --- The command -------------------------------------------------------------------------------------------------- */

static void scripts_done(struct command *command)
{
    struct file_scripts *scripts = command->context;
    if (command->problem.type != PROBLEM_NONE)
        log_warning("file scripts: %.*s", SLICE_ARG(command->problem.reason));
    command_free(command);
    pthread_mutex_lock(&scripts->lock);
    scripts->under_way--;
    pthread_cond_broadcast(&scripts->wake);
    pthread_mutex_unlock(&scripts->lock);
}

static struct command *make_command(struct file_scripts *scripts, char *const *names, size_t count)
{
    struct command *command = command_new(COMMAND_FILE_SCRIPTS, DIALECT_5);
    struct file_script *items = arena_alloc(&command->arena, (count + 1) * sizeof *items);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct file_script *item = &items[kept];
        if (!split_name(arena_copy(&command->arena, slice_from(names[i])), &item->name, &item->lang) ||
            !read_file(scripts->folder, names[i], &command->arena, &item->source)) {
            log_warning("file scripts: %s/%s cannot be read, is no file, or is larger than %zu bytes", scripts->folder,
                        names[i], FILE_SCRIPT_BYTES_MAX);
            continue;
        }
        kept++;
    }
    command->file_scripts.scripts = items;
    command->file_scripts.script_count = kept;
    command->context = scripts;
    command->on_done = scripts_done;
    return command;
}

static bool has_key(const struct slice *keys, size_t count, struct slice key)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(keys[i], key))
            return true;
    return false;
}

/* Logs how the files differ from the scripts of the log: they are not watched while the server does not run. */
static void report_differences(struct file_scripts *scripts, const struct file_scripts_command *files)
{
    struct arena arena = ARENA_INIT;
    struct catalog *catalog = journal_catalog(scripts->journal);
    struct slice *keys = arena_alloc(&arena, (files->script_count + 1) * sizeof *keys);
    for (size_t i = 0; i < files->script_count; i++) {
        const struct file_script *file = &files->scripts[i];
        keys[i] = object_file_script_key(file, &arena);
        const struct catalog_object *before = catalog_object(catalog, CATALOG_FILE_SCRIPTS, keys[i]);
        if (before == NULL || !slice_equal(before->body, file->source))
            log_info("file scripts: %.*s %s since the server last ran", SLICE_ARG(keys[i]),
                     before == NULL ? "was added" : "was changed");
    }
    for (size_t i = 0; i < catalog_object_count(catalog, CATALOG_FILE_SCRIPTS); i++) {
        struct slice key = catalog_object_at(catalog, CATALOG_FILE_SCRIPTS, i)->name;
        if (!has_key(keys, files->script_count, key))
            log_info("file scripts: %.*s was removed, or made unreadable, since the server last ran", SLICE_ARG(key));
    }
    catalog_unref(catalog);
    arena_deinit(&arena);
}

/* Looks at the folder, and hands it over when it has changed. */
static void look_at_folder(struct file_scripts *scripts, bool at_start)
{
    struct arena arena = ARENA_INIT;
    char **names = arena_alloc(&arena, FILE_SCRIPTS_MAX * sizeof *names);
    size_t count = list_folder(scripts->folder, &arena, names);
    uint64_t signature = folder_signature(scripts->folder, names, count, &arena);
    if (signature != scripts->signature) {
        scripts->signature = signature;
        pthread_mutex_lock(&scripts->lock);
        scripts->under_way++;
        pthread_mutex_unlock(&scripts->lock);
        struct command *command = make_command(scripts, names, count);
        if (at_start)
            report_differences(scripts, &command->file_scripts);
        journal_submit(scripts->journal, command, false);
    }
    arena_deinit(&arena);
}

static void watch_folder(void *context)
{
    struct file_scripts *scripts = context;
    pthread_mutex_lock(&scripts->lock);
    while (!scripts->stopping) {
        (void)clock_wait(&scripts->wake, &scripts->lock, clock_boot_us() + WATCH_SECONDS * TL_SECOND);
        if (scripts->stopping)
            break;
        pthread_mutex_unlock(&scripts->lock);
        look_at_folder(scripts, false);
        pthread_mutex_lock(&scripts->lock);
    }
    pthread_mutex_unlock(&scripts->lock);
}

static void wait_until_done(struct file_scripts *scripts)
{
    pthread_mutex_lock(&scripts->lock);
    while (scripts->under_way > 0)
        pthread_cond_wait(&scripts->wake, &scripts->lock);
    pthread_mutex_unlock(&scripts->lock);
}

int file_scripts_open(struct journal *journal, struct slice directory, struct file_scripts **ret_scripts)
{
    struct file_scripts *scripts = mem_zalloc(sizeof *scripts);
    struct arena arena = ARENA_INIT;
    struct slice folder = arena_printf(&arena, "%.*s/scripts", SLICE_ARG(directory));
    scripts->journal = journal;
    scripts->folder = mem_strdup(folder.data, folder.len);
    arena_deinit(&arena);
    pthread_mutex_init(&scripts->lock, NULL);
    pthread_cond_init(&scripts->wake, NULL);
    look_at_folder(scripts, true);
    wait_until_done(scripts);
    if (thread_start(&scripts->thread, "file-scripts", watch_folder, scripts) != 0) {
        file_scripts_close(scripts);
        return TL_ERR_IO;
    }
    *ret_scripts = scripts;
    return 0;
}

void file_scripts_close(struct file_scripts *scripts)
{
    if (scripts == NULL)
        return;
    pthread_mutex_lock(&scripts->lock);
    scripts->stopping = true;
    pthread_cond_broadcast(&scripts->wake);
    pthread_mutex_unlock(&scripts->lock);
    thread_join(&scripts->thread);
    wait_until_done(scripts);
    pthread_cond_destroy(&scripts->wake);
    pthread_mutex_destroy(&scripts->lock);
    mem_free(scripts->folder);
    mem_free(scripts);
}
