/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: wherever a crash cuts the log, each command and each commit of a transaction is there whole or not at
 * all. Method: a core on a disk is given transactions, writes, sessions and locks, and its digest is taken
 * after each step. Then the log is cut at every length that it had on the way, byte by byte (or at every
 * Nth), and what is left is opened: its digest must be one of those, never an earlier one for a longer log,
 * and a transaction that is asked to commit again must say what the documents say. Every other cut is
 * followed by the zeros that a file system may leave. The writes are large enough to put their entries in chunks, those of
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
#include "../lib/upkeep.h"
#include "core/catalog/catalog.h"
#include "core/step/core.h"
#include "core/documents/doc.h"
#include "mapping/entry.h"
#include "mapping/mapping.h"

enum { STEPS_MAX = 64, TRANSACTIONS = 4, ACCOUNTS = 32, NAME_MAX_BYTES = 128 };

/* What was done, and what it came to. */
struct told {
    int count;
    uint64_t digests[STEPS_MAX];
    int entries;                 /* that speak of the accounts, the same after each step */
    int committed[TRANSACTIONS]; /* the step that committed each; -1: it was rolled back */
};

struct host {
    struct store *store;
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

static void open_host(struct host *host, const char *directory)
{
    struct store_options options = {.directory = slice_from(directory)};
    struct core_limits limits = core_limits_default();
    char *reason = NULL;

    limits.stale_documents_min = 100; /* sweeps go on beside it */
    *host = (struct host){0};
    effects_init(&host->effects);
    if (store_open_rocks(&options, &host->store, &reason) != 0)
        fail(reason, 0);
    if (core_open(host->store, &limits, &host->core) != 0)
        fail("the core does not open", 0);
    host->now = core_last_ts(host->core) + TL_SECOND;
}

static void close_host(struct host *host)
{
    core_stop(host->core, &host->effects);
    core_close(host->core);
    store_close(host->store);
}

static uint64_t digest(struct host *host)
{
    uint64_t value;

    if (core_digest(host->core, &value) != 0)
        fail("no digest", 0);
    return value;
}

/* Steps a command, which must not wait. Returns: it; command_free(). */
static struct command *run(struct host *host, struct command *command)
{
    command->ts = ++host->now;
    if (core_step(host->core, command, &host->effects) != 0 || !list_linked(&command->link))
        fail("a step failed", (long long)host->now);
    bounded_check(host->core);
    list_remove(&command->link);
    if (host->now < core_last_ts(host->core))
        host->now = core_last_ts(host->core);
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
    command->terms.transaction = transaction == NULL ? SLICE_NONE : slice_from(transaction);
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

    command->terms.session = SLICE_LIT("holder");
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

static char log_name[NAME_MAX_BYTES];   /* the newest log found by nftw(), which hands nothing through */
static char log_source[NAME_MAX_BYTES]; /* what the log of a copy is copied from */
static const char *copy_to;
static size_t copy_prefix;
static off_t copy_log_bytes;
static off_t copy_zeros;

static int find_log(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    const char *end = strrchr(path, '.');

    (void)status;
    (void)place;
    if (kind == FTW_F && end != NULL && strcmp(end, ".log") == 0 && strcmp(path, log_name) > 0)
        snprintf(log_name, sizeof(log_name), "%s", path);
    return 0;
}

/* Finds the log of a directory. Returns: how long it is. */
static off_t log_bytes(const char *directory)
{
    struct stat status;

    log_name[0] = '\0';
    if (nftw(directory, find_log, 8, FTW_PHYS) != 0 || log_name[0] == '\0' || stat(log_name, &status) != 0)
        fail("no log", 0);
    return status.st_size;
}

static void copy_bytes(FILE *from, FILE *to, off_t left)
{
    char bytes[65536];

    while (left > 0) {
        size_t count = fread(bytes, 1, left < (off_t)sizeof(bytes) ? (size_t)left : sizeof(bytes), from);
        if (count == 0)
            return;
        if (fwrite(bytes, 1, count, to) != count)
            fail("a copy cannot be written", 0);
        left -= (off_t)count;
    }
}

/* Copies one file; the log only as far as it goes, and zeros behind it. */
static int copy_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    char target[2 * NAME_MAX_BYTES];
    bool is_log = strcmp(path, log_name) == 0;

    (void)place;
    snprintf(target, sizeof(target), "%s%s", copy_to, path + copy_prefix);
    if (kind == FTW_D)
        return mkdir(target, 0700) != 0 && path[copy_prefix] != '\0';
    FILE *from = fopen(is_log ? log_source : path, "rb"), *to = fopen(target, "wb");
    if (from == NULL || to == NULL)
        fail("a file cannot be copied", 0);
    copy_bytes(from, to, is_log ? copy_log_bytes : status->st_size);
    for (off_t i = 0; is_log && i < copy_zeros; i++)
        fputc(0, to);
    fclose(from);
    if (fclose(to) != 0)
        fail("a copy cannot be written", 0);
    return 0;
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
    struct command *restart = run(host, command_new(COMMAND_RESTART, DIALECT_7));

    command_free(restart);
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

/* Returns: whether a transaction has left notes of what it put ahead (core/documents/ahead.h). */
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
        if (keep_up(host->core, host->store, ++host->now, 1000, &removed) != 0)
            fail("maintenance fails", bytes);
    if (has_notes(host))
        fail("a transaction that is gone has left notes", bytes);
    if (count_entries(host) != told->entries)
        fail("entries are missing, or too many", bytes);
}

static void copy_all(const char *from, const char *to, off_t bytes, off_t zeros)
{
    copy_to = to;
    copy_prefix = strlen(from);
    copy_log_bytes = bytes;
    copy_zeros = zeros;
    if (nftw(from, copy_one, 8, FTW_PHYS) != 0)
        fail("the directory cannot be copied", bytes);
}

static void check_feed(struct host *host, off_t bytes)
{
    struct buf wrong = BUF_INIT(BUF_UNLIMITED);
    tl_ts now = core_last_ts(host->core);

    if (!feed_replay_check(host->store, 0, now, now, true, &wrong)) {
        fprintf(stderr, "%.*s\n", SLICE_ARG(buf_view(&wrong)));
        fail("the feed tells of other documents", bytes);
    }
    buf_deinit(&wrong);
}

static int look(const char *base, const char *cut, const struct told *told, int at_least, off_t bytes, off_t zeros)
{
    struct host host;

    copy_all(base, cut, bytes, zeros);
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

int main(int argc, char **argv)
{
    char directory[] = "/tmp/commit_crash.XXXXXX", base[] = "/tmp/commit_crash_base.XXXXXX";
    char cut[] = "/tmp/commit_crash_cut.XXXXXX";
    static struct told told;
    struct host host;
    off_t every = 1, from = 0;
    int step = 0;

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
    if (store_sync(host.store) != 0)
        fail("no sync", 0);
    off_t low = log_bytes(directory);
    snprintf(log_source, sizeof(log_source), "%s", log_name);
    copy_all(directory, base, low, 0); /* as it was when the last was acknowledged */
    do_transactions(&host, &told);
    if (store_sync(host.store) != 0)
        fail("no sync", 0);
    off_t high = log_bytes(directory), cuts = 0;
    log_bytes(base);
    for (off_t bytes = low + from; bytes < high; bytes += every, cuts++)
        step = look(base, cut, &told, step, bytes, cuts % 2 == 0 ? 0 : high - bytes);
    step = look(base, cut, &told, step, high, 0);
    if (told.digests[step] != told.digests[told.count - 1])
        fail("the whole log is not the last state", high);
    printf("commit_crash: %lld bytes of log, %lld cuts, %d steps, each whole or absent\n", (long long)(high - low),
           (long long)cuts + 1, told.count);
    close_host(&host);
    remove_all(directory);
    remove_all(base);
    return 0;
}
