/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: wherever a crash truncates the log, each command and each commit of a transaction takes
 * effect whole or not at all, on top of the store's last checkpoint.
 *
 * Method: a core on a file log and RocksDB runs transactions, writes, sessions and locks; its
 * digest is recorded after each step. Then the log is truncated at every length that it had after
 * the checkpoint, byte by byte or at every Nth, and opened:
 *
 * - The digest must be one of those recorded, and not of an earlier step than for a shorter log.
 * - A transaction that is asked to commit again must report the outcome that its documents show.
 * - Every value of each account has its entry, and maintenance leaves no undo record of an ended
 *   transaction. The writes are large enough for posting lists, and transactions write entries
 *   before their commit. So does one of a single document, which has all its values as entries or,
 *   if it is rolled back, none.
 * - Replaying the feed from its start yields the documents.
 *
 * Bytes after a cut are as they were at the checkpoint; those of a newer segment are an older one's,
 * whose file was used again. Of each cut there is a second image, in which random sectors after it
 * have been written, too.
 *
 * usage: commit_crash [--every N] [--from N]
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/arguments.h"
#include "../lib/feed_replay.h"
#include "../lib/bounded.h"
#include "../lib/maintenance.h"
#include "base/alloc.h"
#include "base/rand.h"
#include "core/catalog/catalog.h"
#include "core/step/core.h"
#include "core/step/command_group.h"
#include "core/documents/doc.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_file.h"
#include "mapping/entry.h"
#include "mapping/mapping.h"

enum {
    STEPS_MAX = 64,
    TRANSACTIONS = 4,
    ACCOUNTS = 32,
    LARGE_VALUES = 5100, /* so many that a single write puts its entries ahead: ENTRIES_PROVISIONAL_WORK */
    PATH_BYTES = 256,
    SEGMENT_BYTES = 8 << 10,
    SECTOR_BYTES = 512,
    FILES_MAX = 16
};

/* The steps and their expected results. */
struct expected {
    int count;
    uint64_t digests[STEPS_MAX];
    int entries;                 /* of the accounts' current values, the same after each step */
    int committed[TRANSACTIONS]; /* the step that committed each; -1: it was rolled back */
};

struct host {
    struct store *store;
    struct cmdlog *log;
    cmdlog_position position;
    struct core *core;
    struct effects effects;
    tl_ts now;
};

static _Noreturn void fail(const char *what, long long at)
{
    fprintf(stderr, "commit_crash: %s (%lld)\n", what, at);
    exit(1);
}

/* --- The host ----------------------------------------------------------------------------------------------------- */

static char *path_in(const char *directory, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", directory, name);
    return path;
}

static void open_log(struct host *host, const char *directory)
{
    const struct cmdlog_file_options options = {.segment_bytes = SEGMENT_BYTES, .spares_max = 1};
    char path[PATH_BYTES];
    struct cmdlog_disk *disk;
    char *reason = NULL;

    if (cmdlog_disk_open(path_in(directory, "log", path), &disk) != 0)
        fail("the folder of the log does not open", 0);
    if (cmdlog_file_open(disk, &options, &host->log, &reason) != 0)
        fail(reason, 0);
}

static void open_host(struct host *host, const char *directory)
{
    struct store_options options = {.directory = slice_from(directory), .part_bytes = 100};
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    char *reason = NULL;

    limits.stale_documents_min = 100; /* so that stale posting lists are swept meanwhile */
    *host = (struct host){0};
    effects_init(&host->effects);
    if (store_open_rocks(&options, &host->store, &reason) != 0)
        fail(reason, 0);
    open_log(host, directory);
    if (recover_core(host->store, host->log, &limits, NULL, &host->core, &recovered, &reason) != 0)
        fail(reason, 0);
    host->position = recovered.position;
    host->now = core_last_ts(host->core) + TL_SECOND;
}

static void close_host(struct host *host)
{
    core_stop(host->core, &host->effects);
    core_close(host->core);
    cmdlog_close(host->log);
    store_close(host->store);
}

/* Makes a checkpoint at the end of the log, and waits until it is durable. */
static void make_checkpoint(struct host *host)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_lineage lineage;
    int r = cmdlog_sync(host->log, host->position);

    if (r == 0)
        r = cmdlog_lineage(host->log, host->position, &lineage);
    if (r == 0)
        r = recover_write_record(host->core, host->position, &lineage, 0, &record);
    if (r == 0)
        r = store_checkpoint(host->store, buf_as_slice(&record));
    while (r == 0 && (r = store_checkpointed(host->store)) == 0)
        usleep(1000);
    if (r != 1)
        fail("no checkpoint", r);
    buf_deinit(&record);
}

static uint64_t digest(struct host *host)
{
    uint64_t value;

    if (core_digest(host->core, &value) != 0)
        fail("no digest", 0);
    return value;
}

/*
 * Appends a command to the log and applies it, as a replay would. Requires: it does not wait.
 * Returns: the executed command; command_free().
 */
static struct command *run(struct host *host, struct command *command)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = ++host->now};
    struct list commands = LIST_INIT(commands);

    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    command_free(command);
    struct slice part = buf_as_slice(&bytes);
    if (cmdlog_append(host->log, &part, 1, &host->position) != 0)
        fail("the log takes no more", (long long)host->now);
    if (command_group_decode(part, &head, &commands) != 0 ||
        command_group_apply(host->core, &head, &commands, &host->effects) != 0 || list_empty(&host->effects.completed))
        fail("a step failed", (long long)host->now);
    bounded_check(host->core);
    command = list_entry(host->effects.completed.next, struct command, link);
    list_remove(&command->link);
    if (host->now < core_last_ts(host->core))
        host->now = core_last_ts(host->core);
    buf_deinit(&bytes);
    return command;
}

static void record_step(struct host *host, struct expected *expected, struct command *command)
{
    if (command->problem.type != PROBLEM_NONE)
        fail(command->problem.reason.data, expected->count);
    command_free(command);
    if (expected->count == STEPS_MAX)
        fail("more steps than there is room for", expected->count);
    expected->digests[expected->count++] = digest(host);
}

/* --- Workload ----------------------------------------------------------------------------------------------------- */

static struct command *write_accounts(const char *transaction, int value, bool atomic)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct arena *arena = &command->arena;

    command->write.items = arena_zalloc(arena, (ACCOUNTS + 2) * sizeof(*command->write.items));
    command->write.item_count = ACCOUNTS + 2;
    command->write.atomic = atomic;
    command->owner.transaction = transaction == NULL ? SLICE_NONE : slice_from(transaction);
    for (int i = 0; i < ACCOUNTS + 2; i++)
        command->write.items[i] = (struct write_item){
            .op = i < ACCOUNTS ? WRITE_INDEX : WRITE_DELETE,
            .index = SLICE_LIT("accounts"),
            .id = i < ACCOUNTS ? arena_printf(arena, "%d", i) : arena_printf(arena, "gone%d", i),
            .source = arena_printf(arena, "{\"value\":%d,\"text\":\"the account number %d\"}", value, i),
            .lease = i == ACCOUNTS - 1 && value % 2 == 1 ? SLICE_LIT("holder") : SLICE_NONE,
            .version = VERSION_ANY,
            .if_seq_no = SEQ_NO_ANY,
        };
    return command;
}

/* A single write of a document with many values. */
static struct command *write_large(const char *transaction)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct buf source = BUF_INIT(BUF_UNLIMITED);

    buf_lit(&source, "{\"n\":[0");
    for (int i = 1; i < LARGE_VALUES; i++)
        buf_printf(&source, ",%d", i);
    buf_lit(&source, "]}");
    command->write.items = arena_zalloc(&command->arena, sizeof(*command->write.items));
    command->write.item_count = 1;
    command->write.items[0] = (struct write_item){.op = WRITE_INDEX,
                                                  .index = SLICE_LIT("large"),
                                                  .id = arena_printf(&command->arena, "%s", transaction),
                                                  .source = arena_copy(&command->arena, buf_as_slice(&source)),
                                                  .version = VERSION_ANY,
                                                  .if_seq_no = SEQ_NO_ANY};
    command->owner.transaction = slice_from(transaction);
    buf_deinit(&source);
    return command;
}

static struct command *txn_command(enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);

    command->txn.id = slice_from(id);
    command->txn.idle_us = 60 * TL_SECOND;
    return command;
}

static struct command *open_session(void)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);

    command->session.id = SLICE_LIT("holder");
    command->session.ttl_us = 3600 * TL_SECOND;
    return command;
}

static struct command *lock_accounts(void)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = SLICE_LIT("holder");
    command->lock.targets = arena_zalloc(&command->arena, 2 * sizeof(*command->lock.targets));
    command->lock.target_count = 2;
    for (int i = 0; i < 2; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("locks"), .id = arena_printf(&command->arena, "%d", i)};
    return command;
}

static const char *const names[TRANSACTIONS] = {"first", "second", "third", "fourth"};

/* Runs transactions, each among other writes; the third is rolled back. */
static void do_transactions(struct host *host, struct expected *expected)
{
    for (int i = 0; i < TRANSACTIONS; i++) {
        record_step(host, expected, run(host, txn_command(COMMAND_TXN_BEGIN, names[i])));
        record_step(host, expected, run(host, write_accounts(names[i], 10 * i + 1, false)));
        record_step(host, expected, run(host, write_accounts(names[i], 10 * i + 2, true)));
        if (i == 1 || i == 2)
            record_step(host, expected, run(host, write_large(names[i])));
        expected->committed[i] = i == 2 ? -1 : expected->count;
        record_step(host, expected,
                    run(host, txn_command(i == 2 ? COMMAND_TXN_ROLLBACK : COMMAND_TXN_COMMIT, names[i])));
        record_step(host, expected, run(host, write_accounts(NULL, 10 * i + 3, i % 2 == 0)));
        if (i == 1)
            record_step(host, expected, run(host, lock_accounts()));
    }
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static const char *copy_to; /* a global, since nftw() passes no context */
static size_t copy_prefix;

static int copy_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    char target[2 * PATH_BYTES], bytes[65536];

    (void)status;
    (void)place;
    snprintf(target, sizeof(target), "%s%s", copy_to, path + copy_prefix);
    if (kind == FTW_D)
        return mkdir(target, 0700) != 0 && path[copy_prefix] != '\0';
    FILE *from = fopen(path, "rb"), *to = fopen(target, "wb");
    if (from == NULL || to == NULL)
        fail("a file cannot be copied", 0);
    for (size_t count; (count = fread(bytes, 1, sizeof(bytes), from)) > 0;)
        if (fwrite(bytes, 1, count, to) != count)
            fail("a copy cannot be written", 0);
    fclose(from);
    if (fclose(to) != 0)
        fail("a copy cannot be written", 0);
    return 0;
}

static void copy_all(const char *from, const char *to)
{
    copy_to = to;
    copy_prefix = strlen(from);
    if (nftw(from, copy_one, 8, FTW_PHYS) != 0)
        fail("the directory cannot be copied", 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_all(const char *directory)
{
    if (nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        fail("a directory cannot be removed", 0);
}

/* A segment's bytes at the checkpoint, or of the use of its file before it was made, and at the end. */
struct segment {
    char before[SEGMENT_BYTES];
    char after[SEGMENT_BYTES];
    bool is_new;
};

static struct segment segments[FILES_MAX]; /* by number; the first has the checkpoint */
static unsigned segment_count;
static unsigned long long first_segment;

static char *segment_path(const char *directory, unsigned i, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/log/%016llx.segment", directory, first_segment + i);
    return path;
}

/* Returns: false if there is no such file. */
static bool read_segment(const char *path, char bytes[SEGMENT_BYTES])
{
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return false;
    if (fread(bytes, 1, SEGMENT_BYTES, file) != SEGMENT_BYTES)
        fail("a segment is too short", 0);
    fclose(file);
    return true;
}

static void read_segments(const char *base, const char *directory)
{
    char path[PATH_BYTES];

    for (first_segment = 1; access(segment_path(directory, 0, path), F_OK) != 0; first_segment++)
        if (first_segment == 1000)
            fail("no log", 0);
    while (segment_count < FILES_MAX &&
           read_segment(segment_path(directory, segment_count, path), segments[segment_count].after)) {
        struct segment *one = &segments[segment_count];
        one->is_new = !read_segment(segment_path(base, segment_count, path), one->before);
        if (one->is_new && segment_count == 0)
            fail("the checkpoint's segment is missing", 0);
        if (one->is_new)
            memcpy(one->before, segments[segment_count - 1].after, SEGMENT_BYTES);
        segment_count++;
    }
    if (segment_count < 3 || segment_count == FILES_MAX)
        fail("the log has too few segments, or too many", segment_count);
}

/* Finds the bytes of a segment written since the checkpoint: from `low` to before `high`. */
static void written(const struct segment *one, off_t *ret_low, off_t *ret_high)
{
    *ret_low = 0;
    *ret_high = SEGMENT_BYTES;
    while (*ret_low < SEGMENT_BYTES && one->after[*ret_low] == one->before[*ret_low])
        ++*ret_low;
    while (*ret_high > *ret_low && one->after[*ret_high - 1] == one->before[*ret_high - 1])
        --*ret_high;
}

static void write_segment(const char *path, const char bytes[SEGMENT_BYTES])
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes, 1, SEGMENT_BYTES, file) != SEGMENT_BYTES || fclose(file) != 0)
        fail("a segment cannot be written", 0);
}

/*
 * Writes the log's segments as a crash leaves them, into a copy of the state at the checkpoint:
 * whole up to `at`, and `bytes` of that. With `rng`, later sectors are written at random. A
 * segment's header is durable before its name.
 */
static void write_image(const char *cut, unsigned at, off_t bytes, struct rng *rng)
{
    char image[SEGMENT_BYTES], path[PATH_BYTES];

    for (unsigned i = 0; i < segment_count; i++) {
        const struct segment *one = &segments[i];
        off_t whole = i < at ? SEGMENT_BYTES : i == at ? bytes : 0;
        if (i > at && one->is_new && (rng == NULL || rng_below(rng, 2) == 0))
            return;
        if (one->is_new && whole < SECTOR_BYTES)
            whole = SECTOR_BYTES;
        memcpy(image, one->before, sizeof(image));
        memcpy(image, one->after, (size_t)whole);
        for (off_t sector = (whole + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
             rng != NULL && sector < SEGMENT_BYTES; sector += SECTOR_BYTES)
            if (rng_below(rng, 2) == 0)
                memcpy(image + sector, one->after + sector, SECTOR_BYTES);
        write_segment(segment_path(cut, i, path), image);
    }
}

/* --- Checks ------------------------------------------------------------------------------------------------------- */

/* Returns: the step whose digest the host has. */
static int find_step(struct host *host, const struct expected *expected, int at_least, off_t bytes)
{
    uint64_t found = digest(host);

    for (int i = at_least; i < expected->count; i++)
        if (expected->digests[i] == found)
            return i;
    fail("the log was cut, and what is left is no state that there was, or an earlier one", bytes);
}

/* Checks that a transaction that is asked to commit again reports the outcome of its step. */
static void check_outcomes(struct host *host, const struct expected *expected, int step, off_t bytes)
{
    command_free(run(host, command_new(COMMAND_RESTART, DIALECT_7)));
    command_free(run(host, command_new(COMMAND_MACHINE_LOST, DIALECT_7)));
    for (int i = 0; i < TRANSACTIONS; i++) {
        struct command *again = run(host, txn_command(COMMAND_TXN_COMMIT, names[i]));
        bool committed = again->problem.type == PROBLEM_NONE;
        /* Steps with equal digests are indistinguishable; find_step() returns the first. */
        bool was = expected->committed[i] >= 0 &&
                   expected->digests[expected->committed[i]] != expected->digests[expected->committed[i] - 1] &&
                   step >= expected->committed[i];
        if (committed != was)
            fail("a transaction's outcome is not what its documents are", bytes);
        command_free(again);
    }
}

/* Checks that all accounts have the same value. */
static void check_accounts(struct host *host, off_t bytes)
{
    struct catalog *catalog = core_catalog(host->core);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("accounts"));
    struct view view = {host->store, TL_TS_MAX, NULL};
    char first[64] = "";

    for (int i = 0; i < ACCOUNTS; i++) {
        const struct mapping_type *type = mapping_type(index->mapping, SLICE_LIT("_doc"));
        char id[16], value[64];
        struct doc doc;
        snprintf(id, sizeof(id), "%d", i);
        if (doc_get(&view, index->number, type->number, slice_from(id), &doc) != 0)
            fail("an account is missing", bytes);
        snprintf(value, sizeof(value), "%.*s", (int)slice_find_byte(doc.source, ','), doc.source.data);
        doc_release(&doc);
        if (i == 0)
            snprintf(first, sizeof(first), "%s", value);
        else if (strcmp(first, value) != 0)
            fail("half of a commit is there", bytes);
    }
    catalog_unref(catalog);
}

static bool is_there(struct host *host, struct slice name, struct slice id)
{
    struct catalog *catalog = core_catalog(host->core);
    const struct catalog_index *index = catalog_index(catalog, name);
    const struct mapping_type *type = index == NULL ? NULL : mapping_type(index->mapping, SLICE_LIT("_doc"));
    struct view view = {host->store, TL_TS_MAX, NULL};
    struct doc doc;
    bool there = type != NULL && doc_get(&view, index->number, type->number, id, &doc) == 0;

    if (there)
        doc_release(&doc);
    catalog_unref(catalog);
    return there;
}

/* Returns: the number of entries of current documents; *ret_all: of all. */
static int count_entries(struct host *host, struct slice name, int *ret_all)
{
    struct catalog *catalog = core_catalog(host->core);
    const struct catalog_index *index = catalog_index(catalog, name);
    struct view view = {host->store, TL_TS_MAX, NULL};
    struct entry_scan *walk = index == NULL ? NULL : entry_walk_new(&view, index->number);
    struct entry_hit hit;
    uint16_t field;
    int count = 0;

    *ret_all = 0;
    while (walk != NULL && entry_walk_next(walk, &field, &hit) == 0) {
        struct doc doc;
        (*ret_all)++;
        if (doc_get_key(&view, index->number, hit.document_key, &doc) != 0)
            continue;
        count += doc_entry_batch(&doc, field) == hit.batch;
        doc_release(&doc);
    }
    if (walk != NULL)
        entry_scan_free(walk);
    catalog_unref(catalog);
    return count;
}

/*
 * Returns: whether a transaction has left undo records of provisional entries
 * (core/documents/provisional.h).
 */
static bool has_undo_records(struct host *host)
{
    struct store_iter *iter = store_iter_new(host->store, SPACE_SYSTEM, TL_TS_MAX, SLICE_LIT("A"), SLICE_LIT("B"));

    store_iter_seek_first(iter);
    bool any = store_iter_valid(iter);
    store_iter_free(iter);
    return any;
}

static void check_entries(struct host *host, const struct expected *expected, off_t bytes)
{
    size_t removed = 1;

    while (removed > 0)
        if (run_maintenance(host->core, host->store, ++host->now, 1000, &removed) != 0)
            fail("maintenance fails", bytes);
    if (has_undo_records(host))
        fail("a transaction that is gone has left notes", bytes);
    int all, current = count_entries(host, SLICE_LIT("accounts"), &all);
    if (current != expected->entries)
        fail("entries are missing, or too many", bytes);
    current = count_entries(host, SLICE_LIT("large"), &all);
    if (current != (is_there(host, SLICE_LIT("large"), SLICE_LIT("second")) ? LARGE_VALUES : 0) || all != current)
        fail("entries of a single write are missing, or too many", bytes);
}

static void check_feed(struct host *host, off_t bytes)
{
    struct buf wrong = BUF_INIT(BUF_UNLIMITED);
    tl_ts now = core_last_ts(host->core);

    if (!feed_replay_check(host->store, 0, now, now, true, &wrong)) {
        fprintf(stderr, "%.*s\n", SLICE_ARG(buf_as_slice(&wrong)));
        fail("the feed reports other documents", bytes);
    }
    buf_deinit(&wrong);
}

/* Opens one image of a crash and checks it. Returns: the step that it is at. */
static int check_cut(const char *base, const char *cut, const struct expected *expected, int at_least, unsigned at,
                     off_t bytes, struct rng *rng)
{
    struct host host;

    copy_all(base, cut);
    write_image(cut, at, bytes, rng);
    open_host(&host, cut);
    int step = find_step(&host, expected, at_least, bytes);
    check_accounts(&host, bytes);
    check_outcomes(&host, expected, step, bytes);
    check_entries(&host, expected, bytes);
    check_feed(&host, bytes);
    close_host(&host);
    remove_all(cut);
    return step;
}

/* Checks a crash at every length. Returns: how many. */
static long cut_everywhere(const char *base, const char *cut, const struct expected *expected, off_t every, off_t from)
{
    struct rng rng;
    off_t low, high, next = from;
    long cuts = 0;
    int step = 0;

    rng_init(&rng, (uint64_t)from + 1);
    for (unsigned at = 0; at < segment_count; at++) {
        written(&segments[at], &low, &high);
        for (next += low; next < high; next += every, cuts++) {
            step = check_cut(base, cut, expected, step, at, next, NULL);
            (void)check_cut(base, cut, expected, step, at, next, &rng);
        }
        next -= high;
    }
    step = check_cut(base, cut, expected, step, segment_count, 0, NULL);
    if (expected->digests[step] != expected->digests[expected->count - 1])
        fail("the whole log is not the last state", step);
    return cuts + 1;
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/commit_crash.XXXXXX", base[] = "/tmp/commit_crash_base.XXXXXX";
    char cut[] = "/tmp/commit_crash_cut.XXXXXX";
    static struct expected expected;
    struct host host;
    uint64_t every = 1, from = 0;
    int all;
    const struct argument arguments[] = {{"--every", .number = &every}, {"--from", .number = &from}, {0}};

    arguments_take(argc, argv, arguments);
    if (every == 0)
        arguments_refuse(argv, arguments, "--every is 1 or more", NULL);
    from %= every;
    if (mkdtemp(directory) == NULL || mkdtemp(base) == NULL || mkdtemp(cut) == NULL || rmdir(base) != 0 ||
        rmdir(cut) != 0)
        fail("no directory", 0);
    open_host(&host, directory);
    command_free(run(&host, open_session()));
    record_step(&host, &expected, run(&host, write_accounts(NULL, 2, false)));
    expected.entries = count_entries(&host, SLICE_LIT("accounts"), &all);
    if (expected.entries < ACCOUNTS)
        fail("accounts have no entries", expected.entries);
    make_checkpoint(&host);
    copy_all(directory, base); /* the state at the checkpoint */
    do_transactions(&host, &expected);
    read_segments(base, directory);
    long cuts = cut_everywhere(base, cut, &expected, (off_t)every, (off_t)from);
    printf("commit_crash: %u segments of log, %ld cuts, each in two images, %d steps, each whole or absent\n",
           segment_count, cuts, expected.count);
    close_host(&host);
    remove_all(directory);
    remove_all(base);
    return 0;
}
