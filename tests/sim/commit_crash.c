/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: wherever a crash cuts the log, each command and each commit of a transaction is there whole or not at
 * all, with the store as of its checkpoint below. Method: a core over a file log and RocksDB is given transactions, writes, sessions and locks, and its digest is taken
 * after each step. Then the log is cut at every length that it had behind the checkpoint, byte by byte (or at every
 * Nth), and what is left is opened: its digest must be one of those, never an earlier one for a longer log,
 * and a transaction that is asked to commit again must say what the documents say. Behind a cut lies what lay there before; and of each
 * cut there is a second image, in which sectors behind it have reached the disk, at random. The writes are large enough to put their entries in chunks, those of
 * transactions ahead of the commit: after each cut every value of each account has its entry, and maintenance leaves no
 * note of a transaction that the cut has ended. Who follows the feed of what is left from its beginning has the documents that are left: it has a unit when the store has it.
 *
 * usage: commit_crash [--every N] [--from N]
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
    PATH_BYTES = 256,
    SEGMENT_BYTES = 8 << 10,
    SECTOR_BYTES = 512,
    FILES_MAX = 16
};

/* What was done, and what it came to. */
struct told {
    int count;
    uint64_t digests[STEPS_MAX];
    int entries;                 /* that speak of the accounts, the same after each step */
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
    struct store_options options = {.directory = slice_from(directory)};
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    char *reason = NULL;

    limits.stale_documents_min = 100; /* sweeps go on beside it */
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

/* The store stands at the end of the log, and both are on the disk. */
static void make_checkpoint(struct host *host)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_lineage lineage;
    int r = cmdlog_sync(host->log, host->position);

    if (r == 0)
        r = cmdlog_lineage(host->log, host->position, &lineage);
    recover_write_record(host->core, host->position, &lineage, &record);
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

/* Appends a command to the log and applies it as whoever follows that; it must not wait. Returns: it; command_free(). */
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
    if (command_group_decode(part, &head, &commands) != 0 || command_group_apply(host->core, &head, &commands, &host->effects) != 0 ||
        list_empty(&host->effects.completed))
        fail("a step failed", (long long)host->now);
    bounded_check(host->core);
    command = list_entry(host->effects.completed.next, struct command, link);
    list_remove(&command->link);
    if (host->now < core_last_ts(host->core))
        host->now = core_last_ts(host->core);
    buf_deinit(&bytes);
    return command;
}

static void tell(struct host *host, struct told *told, struct command *command)
{
    if (command->problem.type != PROBLEM_NONE)
        fail(command->problem.reason.data, told->count);
    command_free(command);
    if (told->count == STEPS_MAX)
        fail("more steps than there is room for", told->count);
    told->digests[told->count++] = digest(host);
}

/* --- What is done ------------------------------------------------------------------------------------------------- */

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

/* Transactions of which the third is rolled back, each with writes of others around it. */
static void do_transactions(struct host *host, struct told *told)
{
    for (int i = 0; i < TRANSACTIONS; i++) {
        tell(host, told, run(host, txn_command(COMMAND_TXN_BEGIN, names[i])));
        tell(host, told, run(host, write_accounts(names[i], 10 * i + 1, false)));
        tell(host, told, run(host, write_accounts(names[i], 10 * i + 2, true)));
        told->committed[i] = i == 2 ? -1 : told->count;
        tell(host, told, run(host, txn_command(i == 2 ? COMMAND_TXN_ROLLBACK : COMMAND_TXN_COMMIT, names[i])));
        tell(host, told, run(host, write_accounts(NULL, 10 * i + 3, i % 2 == 0)));
        if (i == 1)
            tell(host, told, run(host, lock_accounts()));
    }
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static const char *copy_to; /* nftw() hands nothing through */
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

/* Of a segment: what it was when the checkpoint was made, and what it is at the end. */
struct segment {
    char before[SEGMENT_BYTES];
    char after[SEGMENT_BYTES];
    bool is_new;
};

static struct segment segments[FILES_MAX]; /* in their order; the first has the checkpoint */
static unsigned segment_count;
static unsigned long long first_segment;

static char *segment_path(const char *directory, unsigned i, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/log/%016llx.segment", directory, first_segment + i);
    return path;
}

/* Returns: false when there is no such file. */
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
        segment_count++;
    }
    if (segment_count < 3 || segment_count == FILES_MAX)
        fail("the log has too few segments, or too many", segment_count);
}

/* How much of a segment has been written behind the checkpoint: from `low` on, up to `high`. */
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
 * Lays the log in a copy of what there was at the checkpoint, with `bytes` of segment `at` written: of what is behind, with `rng`, sectors
 * at random, too. The header of a segment is on the disk before its name is.
 */
static void lay_log(const char *cut, unsigned at, off_t bytes, struct rng *rng)
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

/* --- Looking ------------------------------------------------------------------------------------------------------ */

/* Returns: after which step the host stands. */
static int find_step(struct host *host, const struct told *told, int at_least, off_t bytes)
{
    uint64_t found = digest(host);

    for (int i = at_least; i < told->count; i++)
        if (told->digests[i] == found)
            return i;
    fail("the log was cut, and what is left is no state that there was, or an earlier one", bytes);
}

/* Asked to commit again, a transaction says what became of it. */
static void check_outcomes(struct host *host, const struct told *told, int step, off_t bytes)
{
    command_free(run(host, command_new(COMMAND_RESTART, DIALECT_7)));
    command_free(run(host, command_new(COMMAND_MACHINE_LOST, DIALECT_7)));
    for (int i = 0; i < TRANSACTIONS; i++) {
        struct command *again = run(host, txn_command(COMMAND_TXN_COMMIT, names[i]));
        bool committed = again->problem.type == PROBLEM_NONE;
        /* Steps that leave the digest as it was cannot be told apart: the first of equal ones is found. */
        bool was = told->committed[i] >= 0 &&
                   told->digests[told->committed[i]] != told->digests[told->committed[i] - 1] &&
                   step >= told->committed[i];
        if (committed != was)
            fail("a transaction's outcome is not what its documents are", bytes);
        command_free(again);
    }
}

/* All accounts stand at one value at the present. */
static void check_accounts(struct host *host, off_t bytes)
{
    struct catalog *catalog = core_catalog(host->core);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("accounts"));
    struct view view = {host->store, TL_TS_MAX, NULL};
    char first[64] = "";

    for (int i = 0; i < ACCOUNTS; i++) {
        const struct mapping_type *type = mapping_type(index->mapping, SLICE_LIT("_doc"));
        char id[8], value[64];
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

/* Returns: how many entries speak of documents as they are now. */
static int count_entries(struct host *host)
{
    struct catalog *catalog = core_catalog(host->core);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("accounts"));
    struct view view = {host->store, TL_TS_MAX, NULL};
    struct entry_scan *walk = entry_walk_new(&view, index->number);
    struct entry_hit hit;
    uint16_t field;
    int count = 0;

    while (entry_walk_next(walk, &field, &hit) == 0) {
        struct doc doc;
        if (doc_get_key(&view, index->number, hit.document_key, &doc) != 0)
            continue;
        count += doc_entry_batch(&doc, field) == hit.batch;
        doc_release(&doc);
    }
    entry_scan_free(walk);
    catalog_unref(catalog);
    return count;
}

/* Returns: whether a transaction has left notes of what it put ahead (core/documents/provisional.h). */
static bool has_notes(struct host *host)
{
    struct store_iter *iter = store_iter_new(host->store, SPACE_SYSTEM, TL_TS_MAX, SLICE_LIT("A"), SLICE_LIT("B"));

    store_iter_seek_first(iter);
    bool any = store_iter_valid(iter);
    store_iter_free(iter);
    return any;
}

static void check_entries(struct host *host, const struct told *told, off_t bytes)
{
    size_t removed = 1;

    while (removed > 0)
        if (run_maintenance(host->core, host->store, ++host->now, 1000, &removed) != 0)
            fail("maintenance fails", bytes);
    if (has_notes(host))
        fail("a transaction that is gone has left notes", bytes);
    if (count_entries(host) != told->entries)
        fail("entries are missing, or too many", bytes);
}

static void check_feed(struct host *host, off_t bytes)
{
    struct buf wrong = BUF_INIT(BUF_UNLIMITED);
    tl_ts now = core_last_ts(host->core);

    if (!feed_replay_check(host->store, 0, now, now, true, &wrong)) {
        fprintf(stderr, "%.*s\n", SLICE_ARG(buf_as_slice(&wrong)));
        fail("the feed tells of other documents", bytes);
    }
    buf_deinit(&wrong);
}

/* Returns: after which step what is left stands. */
static int look(const char *base, const char *cut, const struct told *told, int at_least, unsigned at, off_t bytes,
                struct rng *rng)
{
    struct host host;

    copy_all(base, cut);
    lay_log(cut, at, bytes, rng);
    open_host(&host, cut);
    int step = find_step(&host, told, at_least, bytes);
    check_accounts(&host, bytes);
    check_outcomes(&host, told, step, bytes);
    check_entries(&host, told, bytes);
    check_feed(&host, bytes);
    close_host(&host);
    remove_all(cut);
    return step;
}

/* Cuts the log at every place. Returns: at how many. */
static long cut_everywhere(const char *base, const char *cut, const struct told *told, off_t every, off_t from)
{
    struct rng rng;
    off_t low, high, next = from;
    long cuts = 0;
    int step = 0;

    rng_init(&rng, (uint64_t)from + 1);
    for (unsigned at = 0; at < segment_count; at++) {
        written(&segments[at], &low, &high);
        for (next += low; next < high; next += every, cuts++) {
            step = look(base, cut, told, step, at, next, NULL);
            (void)look(base, cut, told, step, at, next, &rng);
        }
        next -= high;
    }
    step = look(base, cut, told, step, segment_count, 0, NULL);
    if (told->digests[step] != told->digests[told->count - 1])
        fail("the whole log is not the last state", step);
    return cuts + 1;
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/commit_crash.XXXXXX", base[] = "/tmp/commit_crash_base.XXXXXX";
    char cut[] = "/tmp/commit_crash_cut.XXXXXX";
    static struct told told;
    struct host host;
    off_t every = 1, from = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--every") == 0)
            every = atol(argv[i + 1]);
        else if (strcmp(argv[i], "--from") == 0)
            from = atol(argv[i + 1]);
    }
    from %= every;
    if (mkdtemp(directory) == NULL || mkdtemp(base) == NULL || mkdtemp(cut) == NULL || rmdir(base) != 0 ||
        rmdir(cut) != 0)
        fail("no directory", 0);
    open_host(&host, directory);
    command_free(run(&host, open_session()));
    tell(&host, &told, run(&host, write_accounts(NULL, 2, false)));
    told.entries = count_entries(&host);
    if (told.entries < ACCOUNTS)
        fail("accounts have no entries", told.entries);
    make_checkpoint(&host);
    copy_all(directory, base); /* as it was when the last was acknowledged */
    do_transactions(&host, &told);
    read_segments(base, directory);
    long cuts = cut_everywhere(base, cut, &told, every, from);
    printf("commit_crash: %u segments of log, %ld cuts, each in two images, %d steps, each whole or absent\n",
           segment_count, cuts, told.count);
    close_host(&host);
    remove_all(directory);
    remove_all(base);
    return 0;
}
