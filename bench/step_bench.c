/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the time of core steps with the work that they count (src/core/unit/work.h), over
 * RocksDB. The weights of work are calibrated by it. Prints for each kind of step the longest one,
 * in processor time of the applying thread, and the work of that step. The last column is the time
 * of one unit of work, which should be at most 100 ns.
 *
 * usage: step_bench [--dir DIRECTORY] [--part PART]
 */
#include "core/step/core.h"

#include "../tests/lib/arguments.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/reclaim.h"
#include "core/command/command.h"
#include "index.h"
#include "json/json.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench {
    struct core *core;
    struct effects effects;
    tl_ts ts;
    uint64_t clock; /* advanced by TICKs, in addition to the timestamps */
    double longest_ms;
    uint64_t work; /* of the longest step */
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "step_bench: %s\n", what);
    exit(1);
}

static double busy_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static void drain(struct bench *bench)
{
    while (!list_empty(&bench->effects.completed)) {
        struct command *command = list_entry(bench->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (command->problem.type != PROBLEM_NONE && command->problem.type != PROBLEM_STOPPING &&
            command->problem.type != PROBLEM_SESSION_MISSING)
            fprintf(stderr, "step_bench: %s: %.*s\n", command_name(command->type), SLICE_ARG(command->problem.reason));
        command_free(command);
    }
}

static void step(struct bench *bench, struct command *command)
{
    command->ts = bench->ts = core_last_ts(bench->core) + 1;
    command->clock = bench->ts + bench->clock;
    if (command->type == COMMAND_TICK)
        command->tick.barrier_clock = command->clock;
    double begun = busy_ms();
    if (core_step(bench->core, command, &bench->effects) != 0)
        die("a step failed");
    double took = busy_ms() - begun;
    if (took > bench->longest_ms) {
        bench->longest_ms = took;
        bench->work = core_step_work(bench->core);
    }
    drain(bench);
}

/* Returns: whether the command was refused; *ret_done (NULL is allowed): what an UNLOCK has done. */
static bool step_until_refused(struct bench *bench, struct command *command, size_t *ret_done)
{
    command->ts = bench->ts = core_last_ts(bench->core) + 1;
    command->clock = bench->ts + bench->clock;
    if (core_step(bench->core, command, &bench->effects) != 0)
        die("a step failed");
    bool refused = command->problem.type != PROBLEM_NONE;
    command->problem.type = PROBLEM_NONE;
    if (ret_done != NULL)
        *ret_done = command->lock.done;
    drain(bench);
    return refused;
}

static void forget(struct bench *bench)
{
    bench->longest_ms = 0;
}

static void report(struct bench *bench, const char *what)
{
    printf("%-58s %9.2f ms %10llu units %7.1f ns\n", what, bench->longest_ms, (unsigned long long)bench->work,
           bench->longest_ms * 1e6 / (double)bench->work);
    forget(bench);
}

static void session(struct bench *bench, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 60 * TL_SECOND;
    step(bench, command);
}

static struct command *writes(size_t count)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.items = arena_zalloc(&command->arena, count * sizeof *command->write.items);
    command->write.item_count = count;
    return command;
}

/* Runs the pieces that the last step left. */
static void pieces(struct bench *bench)
{
    while (core_next_deadline(bench->core) == 0)
        step(bench, command_new(COMMAND_TICK, DIALECT_7));
}

static struct write_item item(struct arena *arena, enum write_op op, uint64_t id, struct slice source)
{
    return (struct write_item){.op = op,
                               .index = SLICE_LIT("fs"),
                               .id = arena_printf(arena, "%llu", (unsigned long long)id),
                               .source = source,
                               .version = VERSION_ANY,
                               .if_seq_no = SEQ_NO_ANY};
}

static struct slice source(struct arena *arena, uint64_t i)
{
    return arena_printf(arena, "{\"v\":%llu,\"path\":\"/%llu/projects/%llu\",\"t\":\"the quick brown fox %llu\"}",
                        (unsigned long long)i, (unsigned long long)(i % 100), (unsigned long long)i,
                        (unsigned long long)(i % 7));
}

static void load(struct bench *bench, uint64_t first, size_t count, const char *lease, const char *transaction)
{
    struct command *command = writes(count);
    for (uint64_t i = 0; i < count; i++) {
        command->write.items[i] =
            item(&command->arena, WRITE_INDEX, first + i * 7919 % count, source(&command->arena, first + i));
        if (lease != NULL)
            command->write.items[i].lease = slice_from(lease);
    }
    if (transaction != NULL)
        command->owner.transaction = slice_from(transaction);
    step(bench, command);
    pieces(bench);
}

static void delete (struct bench *bench, uint64_t first, size_t count)
{
    struct command *command = writes(count);
    for (uint64_t i = 0; i < count; i++)
        command->write.items[i] = item(&command->arena, WRITE_DELETE, first + i, SLICE_NONE);
    step(bench, command);
}

static void scripts(struct bench *bench, uint64_t first, size_t count, const char *text)
{
    struct command *command = writes(count);
    for (uint64_t i = 0; i < count; i++) {
        struct write_update *update = arena_zalloc(&command->arena, sizeof *update);
        update->script_source = slice_from(text);
        command->write.items[i] = item(&command->arena, WRITE_UPDATE, first + i, SLICE_NONE);
        command->write.items[i].update = update;
    }
    step(bench, command);
}

static void transaction(struct bench *bench, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->txn.id = slice_from(id);
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = 24 * 3600 * TL_SECOND;
    step(bench, command);
}

static void locks(struct bench *bench, const char *id, size_t count)
{
    for (size_t first = 0; first < count; first += 1000) {
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        struct lock_target *targets = arena_zalloc(&command->arena, 1000 * sizeof *targets);
        for (size_t i = 0; i < 1000; i++)
            targets[i] =
                (struct lock_target){.mode = LOCK_X,
                                     .index = SLICE_LIT("fs"),
                                     .path = arena_printf(&command->arena, "/%zu/locks/%zu/%zu", i % 100, first, i)};
        command->owner.session = slice_from(id);
        command->lock.targets = targets;
        command->lock.target_count = 1000;
        step(bench, command);
    }
}

static void bulks(struct bench *bench)
{
    for (uint64_t first = 0; first < 100000; first += 2000)
        load(bench, first, 2000, NULL, NULL);
    report(bench, "bulks of 2000 new documents");
    for (uint64_t first = 0; first < 20000; first += 2000)
        load(bench, first, 2000, NULL, NULL);
    report(bench, "bulks that replace 2000 documents");
    for (uint64_t first = 0; first < 20000; first += 2000)
        delete (bench, first, 2000);
    report(bench, "bulks that delete 2000 documents");
    delete (bench, 500000, 40000);
    report(bench, "a bulk that deletes 40000 documents that are not there");
}

static void of_scripts(struct bench *bench)
{
    scripts(bench, 50000, 1, "int n = 0; for (int i = 0; i < 300000; i++) { n += i } ctx._source.v = n");
    report(bench, "a script that counts");
    scripts(bench, 50000, 1,
            "def s = ''; for (int i = 0; i < 20000; i++) { s = 'a' + i; ctx._source.s = s.substring(1) }");
    report(bench, "a script with strings");
    scripts(bench, 50000, 1,
            "def l = []; for (int i = 0; i < 30000; i++) { l.add(i % 100) } l.sort((a, b) -> a - b); ctx._source.v = "
            "l.size()");
    report(bench, "a script that sorts");
    scripts(bench, 50000, 2000, "ctx._source.v = (int) (ctx._source.v + 1)");
    report(bench, "2000 updates by a short script");
}

/* All sessions that there are end. */
static void end_all(struct bench *bench)
{
    bench->clock += 3600 * TL_SECOND;
    do
        step(bench, command_new(COMMAND_TICK, DIALECT_7));
    while (core_next_deadline(bench->core) == 0);
}

/* The leases of `count` sessions end at one TICK. */
static void leases(struct bench *bench, int count, int documents)
{
    char what[80];
    for (int i = 0; i < count; i++) {
        char id[20];
        snprintf(id, sizeof id, "s%d", i);
        session(bench, COMMAND_SESSION_OPEN, id);
        load(bench, 2000000 + (uint64_t)i * (uint64_t)documents, (size_t)documents, id, NULL);
    }
    forget(bench);
    end_all(bench);
    snprintf(what, sizeof what, "TICKs when %d sessions with %d documents each end", count, documents);
    report(bench, what);
}

static void ends(struct bench *bench)
{
    session(bench, COMMAND_SESSION_OPEN, "documents");
    load(bench, 1000000, 1000, "documents", NULL);
    forget(bench);
    session(bench, COMMAND_SESSION_CLOSE, "documents");
    report(bench, "the end of a session with 1000 documents");
    session(bench, COMMAND_SESSION_OPEN, "many");
    for (uint64_t first = 0; first < 10000; first += 1000)
        load(bench, 1000000 + first, 1000, "many", NULL);
    forget(bench);
    session(bench, COMMAND_SESSION_CLOSE, "many");
    report(bench, "the end of a session with 10000 documents");
    pieces(bench);
    report(bench, "the pieces after it");
    session(bench, COMMAND_SESSION_OPEN, "locks");
    forget(bench);
    locks(bench, "locks", 100000);
    report(bench, "locking 1000 directories");
    session(bench, COMMAND_SESSION_CLOSE, "locks");
    report(bench, "the end of a session with 100000 locks");
    leases(bench, 300, 100);
    leases(bench, 10000, 20);
    struct command *open = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    open->session.id = SLICE_LIT("actions");
    open->session.ttl_us = 60 * TL_SECOND;
    open->session.on_expire_count = 100;
    open->session.on_expire = arena_zalloc(&open->arena, 100 * sizeof *open->session.on_expire);
    static struct write_update loop = {
        .script_source = SLICE_LIT("int n = 0; for (int i = 0; i < 100000; i++) { n += i } ctx._source.v = n")};
    for (int i = 0; i < 100; i++) {
        open->session.on_expire[i] = item(&open->arena, WRITE_UPDATE, 50000, SLICE_NONE);
        open->session.on_expire[i].update = &loop;
    }
    step(bench, open);
    forget(bench);
    end_all(bench);
    report(bench, "a TICK when a session with 100 long actions ends");
}

/* A thousand locks that ten thousand writes wait for, which move nothing. */
static void waiters(struct bench *bench)
{
    for (uint64_t i = 0; i < 1000; i++) {
        struct command *command = writes(1);
        command->write.items[0] = item(&command->arena, WRITE_INDEX, 3000000 + i, source(&command->arena, i));
        step(bench, command);
    }
    session(bench, COMMAND_SESSION_OPEN, "held");
    struct command *lock = command_new(COMMAND_LOCK, DIALECT_7);
    lock->lock.targets = arena_zalloc(&lock->arena, 1000 * sizeof *lock->lock.targets);
    lock->lock.target_count = 1000;
    for (size_t i = 0; i < 1000; i++)
        lock->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&lock->arena, "%zu", 3000000 + i)};
    lock->owner.session = SLICE_LIT("held");
    step(bench, lock);
    for (uint64_t i = 0; i < 10000; i++) {
        struct command *command = writes(1);
        command->write.items[0] =
            item(&command->arena, WRITE_INDEX, 3000000 + i % 1000, source(&command->arena, i % 1000));
        command->owner.timeout_us = 3600 * TL_SECOND;
        step(bench, command);
    }
    forget(bench);
    session(bench, COMMAND_SESSION_CLOSE, "held");
    report(bench, "the end of a session for which 10000 writes wait");
    pieces(bench);
    report(bench, "the pieces after it");
}

static void lock(struct bench *bench, const char *id, struct slice document, uint64_t request)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->request = request;
    command->owner.session = slice_from(id);
    command->owner.timeout_us = 3600 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, sizeof *command->lock.targets);
    command->lock.target_count = 1;
    command->lock.targets[0] = (struct lock_target){
        .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "%.*s", SLICE_ARG(document))};
    step(bench, command);
}

static void unlock(struct bench *bench, const char *id)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->owner.session = slice_from(id);
    step(bench, command);
}

/* A lock passes through 40 sessions before 18,000 requests of another one, whose last ones it is granted to. */
static void others_before(struct bench *bench)
{
    enum { OTHERS = 40, COUNT = 18000 };
    char id[20];
    session(bench, COMMAND_SESSION_OPEN, "many");
    for (int i = 0; i <= OTHERS; i++) {
        snprintf(id, sizeof id, "other%d", i);
        session(bench, COMMAND_SESSION_OPEN, id);
        lock(bench, id, SLICE_LIT("3000000"), 0);
    }
    for (int i = 0; i < COUNT; i++)
        lock(bench, "many", SLICE_LIT("3000000"), 0);
    forget(bench);
    for (int i = 0; i <= OTHERS; i++) {
        if (i == OTHERS) {
            report(bench, "UNLOCKs of 40 sessions whose lock 18000 requests of one session wait for, in turn");
            forget(bench);
        }
        snprintf(id, sizeof id, "other%d", i);
        unlock(bench, id);
    }
    report(bench, "the UNLOCK that grants it to these");
    pieces(bench);
    report(bench, "the pieces after it");
}

/* Writes of one host wait, `each` for one of the documents that a session holds, and are cancelled together. */
static void cancelled(struct bench *bench, uint64_t count, uint64_t each)
{
    static uint64_t number;
    char what[80], id[32];
    session(bench, COMMAND_SESSION_OPEN, "held");
    for (uint64_t i = 0; i < count / each; i++) {
        snprintf(id, sizeof id, "%llu", (unsigned long long)(3000000 + i));
        lock(bench, "held", slice_from(id), 0);
    }
    for (uint64_t i = 0; i < count; i++) {
        struct command *command = writes(1);
        command->request = ((uint64_t)7 << HOST_SHIFT) + ++number;
        command->write.items[0] = item(&command->arena, WRITE_INDEX, 3000000 + i % (count / each), SLICE_LIT("{}"));
        command->owner.timeout_us = 3600 * TL_SECOND;
        step(bench, command);
    }
    forget(bench);
    struct command *cancel = command_new(COMMAND_CANCEL, DIALECT_7);
    cancel->cancel.request = (uint64_t)7 << HOST_SHIFT;
    step(bench, cancel);
    snprintf(what, sizeof what, "CANCEL of %llu writes that wait for %llu documents", (unsigned long long)count,
             (unsigned long long)(count / each));
    report(bench, what);
    pieces(bench);
    report(bench, "the pieces after it");
    session(bench, COMMAND_SESSION_CLOSE, "held");
    pieces(bench);
    forget(bench);
}

/* Bulks of one host wait, each for all of its documents, and are cancelled together. */
static void cancelled_bulks(struct bench *bench, uint64_t count, uint64_t items)
{
    char what[80];
    session(bench, COMMAND_SESSION_OPEN, "held");
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("held");
    command->lock.targets = arena_zalloc(&command->arena, sizeof *command->lock.targets);
    command->lock.target_count = 1;
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs")};
    step(bench, command);
    for (uint64_t i = 0; i < count; i++) {
        command = writes(items);
        command->request = ((uint64_t)7 << HOST_SHIFT) + 1000000 + i;
        for (uint64_t j = 0; j < items; j++)
            command->write.items[j] = item(&command->arena, WRITE_INDEX, 3000000 + j, SLICE_LIT("{}"));
        command->owner.timeout_us = 3600 * TL_SECOND;
        step(bench, command);
    }
    forget(bench);
    command = command_new(COMMAND_CANCEL, DIALECT_7);
    command->cancel.request = (uint64_t)7 << HOST_SHIFT;
    step(bench, command);
    snprintf(what, sizeof what, "CANCEL of %llu bulks that wait for %llu documents", (unsigned long long)count,
             (unsigned long long)items);
    report(bench, what);
    pieces(bench);
    report(bench, "the pieces after it");
    session(bench, COMMAND_SESSION_CLOSE, "held");
    pieces(bench);
    forget(bench);
}

/* The requests of a session that ends wait for a document that another one holds. */
static void abandoned(struct bench *bench, uint64_t count)
{
    char what[80];
    session(bench, COMMAND_SESSION_OPEN, "held");
    session(bench, COMMAND_SESSION_OPEN, "waits");
    lock(bench, "held", SLICE_LIT("3000000"), 0);
    for (uint64_t i = 0; i < count; i++) {
        struct command *command = writes(1);
        command->write.items[0] = item(&command->arena, WRITE_INDEX, 3000000, SLICE_LIT("{}"));
        command->owner.session = SLICE_LIT("waits");
        command->owner.timeout_us = 3600 * TL_SECOND;
        step(bench, command);
    }
    forget(bench);
    session(bench, COMMAND_SESSION_CLOSE, "waits");
    snprintf(what, sizeof what, "the end of a session with %llu waiting writes", (unsigned long long)count);
    report(bench, what);
    pieces(bench);
    session(bench, COMMAND_SESSION_CLOSE, "held");
    pieces(bench);
    forget(bench);
}

/* Puts, each of a document that a session holds, of as many fields, resume when it releases all. */
static void resumed(struct bench *bench, uint64_t count, unsigned fields, unsigned version)
{
    char what[80], id[32];
    struct command *command;
    session(bench, COMMAND_SESSION_OPEN, "held");
    for (uint64_t i = 0; i < count; i++) {
        snprintf(id, sizeof id, "%llu", (unsigned long long)(4000000 + i));
        lock(bench, "held", slice_from(id), 0);
    }
    for (uint64_t i = 0; i < count; i++) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        buf_printf(&text, "{\"path\":\"/r/%llu\"", (unsigned long long)i);
        for (unsigned j = 0; j < fields; j++)
            buf_printf(&text, ",\"f%u\":%llu", j, (unsigned long long)(1000 * i + j));
        buf_lit(&text, "}");
        command = writes(1);
        command->write.items[0] =
            item(&command->arena, WRITE_INDEX, 4000000 + i, arena_copy(&command->arena, buf_as_slice(&text)));
        command->owner.timeout_us = 3600 * TL_SECOND;
        step(bench, command);
        buf_deinit(&text);
    }
    forget(bench);
    command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("held");
    command->version = version;
    step(bench, command);
    while (core_next_deadline(bench->core) == 0) {
        command = command_new(COMMAND_TICK, DIALECT_7);
        command->version = version;
        step(bench, command);
    }
    snprintf(what, sizeof what, "UNLOCK: %llu puts of %u fields resume, commands %u", (unsigned long long)count, fields,
             version);
    report(bench, what);
    session(bench, COMMAND_SESSION_CLOSE, "held");
    pieces(bench);
    forget(bench);
}

static void all_resumed(struct bench *bench)
{
    for (unsigned version = COMMAND_SINCE_WORK_ACCOUNT - 1; version <= COMMAND_SINCE_WORK_ACCOUNT; version++) {
        resumed(bench, 8000, 0, version);
        resumed(bench, 3000, 35, version);
    }
}

static void dropped(struct bench *bench)
{
    struct command *command;
    session(bench, COMMAND_SESSION_OPEN, "leased");
    for (int i = 0; i < 200; i++) {
        char name[16], uuid[32];
        snprintf(name, sizeof name, "drop%d", i);
        snprintf(uuid, sizeof uuid, "0123456789abcdefghij%02x", (unsigned)i);
        step(bench, bench_index(name, uuid, "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}"));
        command = writes(50);
        for (uint64_t j = 0; j < 50; j++) {
            command->write.items[j] = item(&command->arena, WRITE_INDEX, j, source(&command->arena, j));
            command->write.items[j].index = arena_printf(&command->arena, "drop%d", i);
            command->write.items[j].lease = SLICE_LIT("leased");
        }
        step(bench, command);
    }
    forget(bench);
    for (int i = 0; i < 200; i++) { /* the api sends a command for each of a list */
        command = command_new(COMMAND_INDEX_DELETE, DIALECT_7);
        command->index.name = arena_printf(&command->arena, "drop%d", i);
        step(bench, command);
    }
    pieces(bench);
    report(bench, "DELETE of 200 indices with 50 documents of a session each");
    session(bench, COMMAND_SESSION_CLOSE, "leased");
    pieces(bench);
    forget(bench);
}

static void commits(struct bench *bench)
{
    transaction(bench, COMMAND_TXN_BEGIN, "t");
    forget(bench);
    for (uint64_t first = 0; first < 100000; first += 2000)
        load(bench, 20000 + first, 2000, NULL, "t");
    report(bench, "bulks of 2000 documents in a transaction");
    transaction(bench, COMMAND_TXN_COMMIT, "t");
    report(bench, "a commit of 100000 changes");
}

/* Documents of the index "raw", which indexes nothing, in an open transaction. */
static void load_raw(struct bench *bench, const char *transaction, uint64_t count, size_t bytes)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&text, "{\"t\":\"");
    for (size_t i = 0; i < bytes; i++)
        buf_byte(&text, (char)('a' + i % 26));
    buf_lit(&text, "\"}");
    uint64_t each = bytes > 1000 ? 1 : 1000;
    for (uint64_t first = 0; first < count; first += each) {
        struct command *command = writes((size_t)each);
        for (uint64_t i = 0; i < each; i++) {
            command->write.items[i] = item(&command->arena, WRITE_INDEX, (first + i) * 7919 % 100003,
                                           arena_copy(&command->arena, buf_as_slice(&text)));
            command->write.items[i].index = SLICE_LIT("raw");
        }
        command->owner.transaction = slice_from(transaction);
        step(bench, command);
        pieces(bench);
    }
    buf_deinit(&text);
}

/* Returns: a snapshot of the transaction, as a scroll or a point in time has it. */
static struct overlay *snapshot(struct bench *bench, const char *transaction)
{
    struct command *command = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    command->owner.transaction = slice_from(transaction);
    struct overlay *overlay = NULL;
    command->ts = bench->ts = core_last_ts(bench->core) + 1;
    command->clock = bench->ts + bench->clock;
    if (core_step(bench->core, command, &bench->effects) != 0 || command->txn_lock.overlay == NULL)
        die("no snapshot");
    overlay = command->txn_lock.overlay;
    drain(bench);
    return overlay;
}

/* Ends of a transaction of 64 MB, alone and while a reader has a snapshot. */
static void end_large(struct bench *bench, enum command_type type, uint64_t count, size_t bytes, bool shared)
{
    char what[80], id[40];
    snprintf(id, sizeof id, "end%llu", (unsigned long long)bench->ts);
    if (type == COMMAND_SESSION_CLOSE)
        session(bench, COMMAND_SESSION_OPEN, id);
    struct command *begin = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    begin->txn.id = slice_from(id);
    begin->txn.mode = TXN_UPDATE;
    begin->txn.idle_us = 24 * 3600 * TL_SECOND;
    if (type == COMMAND_SESSION_CLOSE)
        begin->owner.session = slice_from(id);
    step(bench, begin);
    load_raw(bench, id, count, bytes);
    struct overlay *overlay = shared ? snapshot(bench, id) : NULL;
    forget(bench);
    if (type == COMMAND_SESSION_CLOSE)
        session(bench, type, id);
    else
        transaction(bench, type, id);
    pieces(bench);
    snprintf(what, sizeof what, "%s of %llu documents, %zu bytes each%s", command_name(type), (unsigned long long)count,
             bytes, shared ? ", with a reader" : "");
    report(bench, what);
    core_overlay_unref(overlay);
}

static void ended(struct bench *bench)
{
    static const struct {
        uint64_t count;
        size_t bytes;
    } sizes[] = {{100000, 600}, {60, 1000000}};
    step(bench, bench_index("raw", "raw3456789abcdefghijkl", "{\"mappings\":{\"dynamic\":false}}"));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        end_large(bench, COMMAND_TXN_ROLLBACK, sizes[i].count, sizes[i].bytes, false);
        end_large(bench, COMMAND_SESSION_CLOSE, sizes[i].count, sizes[i].bytes, false);
        end_large(bench, COMMAND_TXN_COMMIT, sizes[i].count, sizes[i].bytes, false);
        end_large(bench, COMMAND_TXN_COMMIT, sizes[i].count, sizes[i].bytes, true);
    }
}

/* A document with many numbers, each an entry that no other document has. */
static struct slice numbers(struct arena *arena, uint64_t first, int count)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&buf, "{\"v\":[0");
    for (int i = 0; i < count; i++)
        buf_printf(&buf, ",%llu", (unsigned long long)first + (unsigned long long)i);
    buf_lit(&buf, "]}");
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

/* As numbers(), in no order, so that the entries of a document lie apart in the store. */
static struct slice scattered(struct arena *arena, uint64_t first, int count)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&buf, "{\"v\":[0");
    for (int i = 0; i < count; i++)
        buf_printf(&buf, ",%llu", (unsigned long long)((first + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) >> 2));
    buf_lit(&buf, "]}");
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

enum { NUMBERS = 10000 };

static void atomic(struct bench *bench, size_t count, bool large, const char *what)
{
    struct command *command = writes(count);
    command->write.atomic = true;
    for (uint64_t i = 0; i < count; i++)
        command->write.items[i] =
            item(&command->arena, WRITE_INDEX, 200000 + i,
                 large ? numbers(&command->arena, i * NUMBERS, NUMBERS) : source(&command->arena, i));
    forget(bench);
    step(bench, command);
    pieces(bench); /* the commit is the longest */
    report(bench, what);
}

/* A named atomic write, and its repetition, which reads the outcome. `reuses`: its updates return their sources. */
static void named(struct bench *bench, size_t count, bool returns, const char *id)
{
    static const struct write_update update = {
        .doc = SLICE_LIT("{\"t\":\"the lazy dog\"}"), .doc_as_upsert = true, .want_source = true};
    char what[80];
    for (int round = 0; round < 2; round++) {
        struct command *command = writes(count);
        command->write.atomic = true;
        command->write.request = (struct write_request){slice_from(id), 7, 0};
        for (uint64_t i = 0; i < count; i++) {
            command->write.items[i] = item(&command->arena, returns ? WRITE_UPDATE : WRITE_INDEX, 200000 + i,
                                           returns ? SLICE_NONE : source(&command->arena, i));
            if (returns)
                command->write.items[i].update = &update;
        }
        forget(bench);
        step(bench, command);
        pieces(bench);
        snprintf(what, sizeof what, "%s of a named atomic write of %zu %s",
                 round == 0 ? "the longest step" : "repetition", count,
                 returns ? "updates with their sources" : "documents");
        report(bench, what);
    }
}

static void outcomes(struct bench *bench)
{
    named(bench, 16000, false, "some");
    named(bench, 100000, false, "many");
    named(bench, 100000, true, "sources");
}

/* Atomic writes of as many small documents as they may have, and of documents with many entries; a commit of those. */
static void wholes(struct bench *bench)
{
    atomic(bench, 100000, false, "an atomic write of 100000 new documents");
    atomic(bench, 100000, false, "an atomic write that replaces 100000 documents");
    atomic(bench, 100, true, "an atomic write of 100 documents with 10000 entries");
    atomic(bench, 700, true, "an atomic write of 700 documents with 10000 entries");
}

/*
 * A commit of documents that are written one at a time, so many that more are refused. `replaces`: they were written
 * one at a time before, so that the commit removes their entries: CORE_COMMIT_WORK.
 */
static void commit_single(struct bench *bench, int values, struct slice (*text)(struct arena *, uint64_t, int),
                          const char *which, bool replaces)
{
    enum { MOST = 100000 };
    static uint64_t first = 4000000;
    char what[80], id[40];
    uint64_t count = 0;
    bool refused = false;
    for (uint64_t i = 0; i < MOST / 2 && replaces; i++) {
        struct command *command = writes(1);
        command->write.items[0] = item(&command->arena, WRITE_INDEX, first + i * 7919 % 100003,
                                       text(&command->arena, (MOST + i) * (uint64_t)values, values));
        step(bench, command);
    }
    snprintf(id, sizeof id, "large%llu", (unsigned long long)bench->ts);
    transaction(bench, COMMAND_TXN_BEGIN, id);
    forget(bench);
    for (; !refused && count < (replaces ? MOST / 2 : MOST); count++) {
        struct command *command = writes(1);
        command->write.items[0] = item(&command->arena, WRITE_INDEX, first + count * 7919 % 100003,
                                       text(&command->arena, count * (uint64_t)values, values));
        command->owner.transaction = slice_from(id);
        refused = step_until_refused(bench, command, NULL);
    }
    transaction(bench, COMMAND_TXN_COMMIT, id);
    snprintf(what, sizeof what, "a commit that %s %llu documents, each with %d %s values",
             replaces ? "replaces" : "adds", (unsigned long long)count - refused, values, which);
    report(bench, what);
    pieces(bench);
    forget(bench);
    first += 200000;
}

static void singles(struct bench *bench)
{
    commit_single(bench, NUMBERS, numbers, "successive", false);
    commit_single(bench, NUMBERS, scattered, "scattered", false);
    commit_single(bench, 10, numbers, "successive", false);
    commit_single(bench, 10, scattered, "scattered", false);
}

static void replaced(struct bench *bench)
{
    commit_single(bench, 10, scattered, "scattered", true);
}

static struct slice deep_path(struct arena *arena, uint64_t number, size_t levels)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "/%llu", (unsigned long long)number);
    for (size_t level = 1; level < levels; level++)
        buf_lit(&path, "/x");
    struct slice copy = arena_copy(arena, buf_as_slice(&path));
    buf_deinit(&path);
    return copy;
}

/*
 * A LOCK of as many documents as it may name, in directories of their own; the release of them by name, and by the end.
 */
static void lock_deep(struct bench *bench, size_t levels, uint64_t directories)
{
    enum { MOST = 2000 };
    char what[80];
    for (uint64_t i = 0; i < MOST; i++) {
        struct command *command = writes(1);
        struct slice path = deep_path(&command->arena, i % directories, levels);
        command->write.items[0] = item(&command->arena, WRITE_INDEX, 600000 + i,
                                       arena_printf(&command->arena, "{\"path\":\"%.*s\"}", SLICE_ARG(path)));
        step(bench, command);
    }
    forget(bench);
    session(bench, COMMAND_SESSION_OPEN, "deep");
    for (size_t count = MOST;; count = count * 19 / 20) {
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        struct lock_target *targets = arena_zalloc(&command->arena, count * sizeof *targets);
        for (size_t i = 0; i < count; i++)
            targets[i] = (struct lock_target){
                .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "%zu", 600000 + i)};
        command->owner.session = SLICE_LIT("deep");
        command->lock.targets = targets;
        command->lock.target_count = count;
        double begun = busy_ms();
        bool refused = step_until_refused(bench, command, NULL);
        bench->longest_ms = busy_ms() - begun;
        bench->work = core_step_work(bench->core);
        if (refused && count == MOST) {
            snprintf(what, sizeof what, "a refused LOCK of %zu documents at %zu levels", count, levels);
            report(bench, what);
        } else if (!refused) {
            snprintf(what, sizeof what, "a LOCK of %zu documents at %zu levels", count, levels);
            report(bench, what);
            break;
        }
    }
    session(bench, COMMAND_SESSION_CLOSE, "deep");
    report(bench, "the end of its session");
    pieces(bench);
    forget(bench);
}

/* A bulk in a transaction, which locks the directories of new documents. */
static void write_deep(struct bench *bench, size_t count, size_t levels)
{
    char what[80];
    transaction(bench, COMMAND_TXN_BEGIN, "deep");
    struct command *command = writes(count);
    for (uint64_t i = 0; i < count; i++) {
        struct slice path = deep_path(&command->arena, 500000 + i, levels);
        command->write.items[i] = item(&command->arena, WRITE_INDEX, 650000 + i,
                                       arena_printf(&command->arena, "{\"path\":\"%.*s\"}", SLICE_ARG(path)));
    }
    command->owner.transaction = SLICE_LIT("deep");
    forget(bench);
    step(bench, command);
    pieces(bench);
    snprintf(what, sizeof what, "a bulk of %zu documents at %zu levels in a transaction", count, levels);
    report(bench, what);
    transaction(bench, COMMAND_TXN_COMMIT, "deep");
    report(bench, "its commit");
    pieces(bench);
    forget(bench);
}

static void deep(struct bench *bench)
{
    write_deep(bench, 128, 4000);
    lock_deep(bench, 4000, UINT64_MAX);
    lock_deep(bench, 4000, 1);
    lock_deep(bench, 100, UINT64_MAX);
}

/* What the locks of a request name: documents of an index without a path field, or with paths, or directories. */
enum lock_what { LOCK_PLAIN, LOCK_PATHS, LOCK_DIRECTORIES };

static void name_lock(struct arena *arena, enum lock_what what, size_t i, struct lock_target *target)
{
    *target = (struct lock_target){.mode = LOCK_X, .index = what == LOCK_PLAIN ? SLICE_LIT("plain") : SLICE_LIT("fs")};
    if (what == LOCK_DIRECTORIES)
        target->path = arena_printf(arena, "/%zu/a/b/c/d/e/f/g/h/%zu", i % 1000, i);
    else
        target->id = arena_printf(arena, "%zu", 5000000 + i);
}

static struct command *many_command(enum command_type type, enum lock_what what, size_t first, size_t count)
{
    struct command *command = command_new(type, DIALECT_7);
    struct lock_target *targets = arena_zalloc(&command->arena, count * sizeof *targets);
    for (size_t i = 0; i < count; i++)
        name_lock(&command->arena, what, first + i, &targets[i]);
    command->owner.session = SLICE_LIT("many");
    command->lock.targets = targets;
    command->lock.target_count = count;
    return command;
}

/* Runs one of those. Returns: whether it was refused; *ret_done: how many names an UNLOCK has done. */
static bool step_many(struct bench *bench, struct command *command, size_t *ret_done)
{
    double begun = busy_ms();
    bool refused = step_until_refused(bench, command, ret_done);
    bench->longest_ms = busy_ms() - begun;
    bench->work = core_step_work(bench->core);
    return refused;
}

/*
 * The largest LOCK that is not refused, a refused one, and the first step of the largest release by name that is not
 * refused, of these locks and others.
 */
static void lock_many(struct bench *bench, enum lock_what what, const char *name)
{
    enum { MOST = 100000 };
    char text[80];
    bool refused = true;
    size_t count = MOST, names = MOST, done = 0;
    session(bench, COMMAND_SESSION_OPEN, "many");
    forget(bench);
    for (; refused; count = refused ? count * 9 / 10 : count) {
        refused = step_many(bench, many_command(COMMAND_LOCK, what, 0, count), &done);
        snprintf(text, sizeof text, "%s LOCK of %zu %s", refused ? "a refused" : "a", count, name);
        if (!refused || count == MOST)
            report(bench, text);
    }
    while (step_many(bench, many_command(COMMAND_UNLOCK, what, 0, names), &done))
        names = names * 9 / 10;
    snprintf(text, sizeof text, "an UNLOCK of %zu %s: %zu of them", names, name, done);
    report(bench, text);
    for (size_t first = done; first < count; first += done)
        step_many(bench, many_command(COMMAND_UNLOCK, what, first, count - first), &done);
    session(bench, COMMAND_SESSION_CLOSE, "many");
    pieces(bench);
    forget(bench);
}

static void many_locks(struct bench *bench)
{
    struct command *command;
    step(bench, bench_index("plain", "0123456789abcdefghijkm", "{}"));
    for (uint64_t first = 0; first < 100000; first += 2000) {
        command = writes(2000);
        for (uint64_t i = first; i < first + 2000; i++)
            command->write.items[i - first] =
                item(&command->arena, WRITE_INDEX, 5000000 + i,
                     arena_printf(&command->arena, "{\"path\":\"/%llu/a/b/c/d/e/f/g/h/%llu\"}",
                                  (unsigned long long)(i % 1000), (unsigned long long)i));
        step(bench, command);
        pieces(bench);
    }
    lock_many(bench, LOCK_PLAIN, "documents without paths");
    lock_many(bench, LOCK_PATHS, "documents with paths");
    lock_many(bench, LOCK_DIRECTORIES, "directories");
}

/* Locks of one owner end together: those of a transaction, and of a session by one UNLOCK and by its end. */
static void released(struct bench *bench)
{
    enum { LOCKS = 100000, EACH = 1000 };
    static const struct {
        enum command_type type;
        const char *transaction, *what;
    } ends[] = {{COMMAND_TXN_ROLLBACK, "back", "the rollback of a transaction with 100000 locked directories"},
                {COMMAND_TXN_COMMIT, "ahead", "the commit of a transaction with 100000 locked directories"},
                {COMMAND_UNLOCK, NULL, "an UNLOCK of all 100000 locked directories"},
                {COMMAND_SESSION_CLOSE, NULL, "the end of a session with 100000 locked directories"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *in = ends[i].transaction;
        session(bench, COMMAND_SESSION_OPEN, "many");
        if (in != NULL)
            transaction(bench, COMMAND_TXN_BEGIN, in);
        for (size_t first = 0; first < LOCKS; first += EACH) {
            struct command *command = many_command(COMMAND_LOCK, LOCK_DIRECTORIES, first, EACH);
            if (in != NULL) {
                struct lock_target *targets = command->lock.targets;
                command->type = COMMAND_TXN_LOCK;
                command->owner.session = SLICE_NONE;
                command->owner.transaction = slice_from(in);
                command->txn_lock = (struct txn_lock_command){.targets = targets, .target_count = EACH};
            }
            step(bench, command);
            pieces(bench);
        }
        forget(bench);
        if (in != NULL)
            transaction(bench, ends[i].type, in);
        else if (ends[i].type == COMMAND_UNLOCK)
            unlock(bench, "many");
        else
            session(bench, COMMAND_SESSION_CLOSE, "many");
        report(bench, ends[i].what);
        if (ends[i].type != COMMAND_SESSION_CLOSE)
            session(bench, COMMAND_SESSION_CLOSE, "many");
        pieces(bench);
    }
}

/* Writes documents, and opens a session that locks them. `text`: returns their sources, by numbers from 0. */
static void lock_new(struct bench *bench, const char *owner, const char *index, uint64_t id, size_t count,
                     struct slice (*text)(struct arena *, uint64_t))
{
    enum { EACH = 1000 };
    session(bench, COMMAND_SESSION_OPEN, owner);
    for (uint64_t first = 0; first < count; first += EACH) {
        struct command *command = writes(EACH), *lock = command_new(COMMAND_LOCK, DIALECT_7);
        struct lock_target *targets = arena_zalloc(&lock->arena, EACH * sizeof *targets);
        for (uint64_t i = 0; i < EACH; i++) {
            command->write.items[i] =
                item(&command->arena, WRITE_INDEX, id + first + i, text(&command->arena, first + i));
            command->write.items[i].index = slice_from(index);
            targets[i] =
                (struct lock_target){.mode = LOCK_X,
                                     .index = slice_from(index),
                                     .id = arena_printf(&lock->arena, "%llu", (unsigned long long)(id + first + i))};
        }
        step(bench, command);
        pieces(bench);
        lock->owner.session = slice_from(owner);
        lock->lock.targets = targets;
        lock->lock.target_count = EACH;
        step(bench, lock);
    }
}

/* A rename of a directory with one document, while many others of its index are locked. */
static void renames(struct bench *bench)
{
    lock_new(bench, "beside", "fs", 700000, 32000, source);
    struct command *command = writes(1);
    command->write.items[0] = item(&command->arena, WRITE_INDEX, 799999, SLICE_LIT("{\"path\":\"/moved/a/b\"}"));
    step(bench, command);
    for (int in_txn = 0; in_txn < 2; in_txn++) {
        forget(bench);
        if (in_txn)
            transaction(bench, COMMAND_TXN_BEGIN, "r");
        command = command_new(COMMAND_RENAME, DIALECT_7);
        command->rename.index = SLICE_LIT("fs");
        command->rename.if_seq_no = SEQ_NO_ANY;
        command->rename.from = in_txn ? SLICE_LIT("/moved/c") : SLICE_LIT("/moved/a");
        command->rename.to = in_txn ? SLICE_LIT("/moved/d") : SLICE_LIT("/moved/c");
        if (in_txn)
            command->owner.transaction = SLICE_LIT("r");
        step(bench, command);
        report(bench, in_txn ? "a rename in a transaction, with 32000 locks elsewhere"
                             : "a rename with 32000 locks elsewhere");
    }
    transaction(bench, COMMAND_TXN_COMMIT, "r");
    report(bench, "the commit of the rename in a transaction");
    session(bench, COMMAND_SESSION_CLOSE, "beside");
    pieces(bench);
    forget(bench);
}

/* Renames a directory in a transaction of session "moves", and commits it. */
static void commit_rename(struct bench *bench, const char *id, struct slice from, struct slice to, const char *what)
{
    char text[80];
    forget(bench);
    for (int part = 0; part < 3; part++) {
        static const enum command_type types[] = {COMMAND_TXN_BEGIN, COMMAND_RENAME, COMMAND_TXN_COMMIT};
        struct command *command = command_new(types[part], DIALECT_7);
        command->owner.session = SLICE_LIT("moves");
        if (part == 1) {
            command->owner.transaction = slice_from(id);
            command->rename.index = SLICE_LIT("fs");
            command->rename.if_seq_no = SEQ_NO_ANY;
            command->rename.from = from;
            command->rename.to = to;
        } else {
            command->txn.id = slice_from(id);
            command->txn.mode = TXN_UPDATE;
            command->txn.idle_us = 24 * 3600 * TL_SECOND;
        }
        step(bench, command);
        snprintf(text, sizeof text, "%s %s", part == 1 ? "the rename" : "the commit", what);
        if (part > 0)
            report(bench, text);
        forget(bench);
    }
}

static struct slice moved_source(struct arena *arena, uint64_t i)
{
    return arena_printf(arena, "{\"path\":\"/m/%llu\"}", (unsigned long long)i);
}

/* A commit that gives documents other paths, each of which its session has locked. */
static void commit_paths(struct bench *bench)
{
    enum { COUNT = 100000, EACH = 2000 };
    lock_new(bench, "paths", "fs", 900000, COUNT, source);
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->owner.session = SLICE_LIT("paths");
    command->txn.id = SLICE_LIT("p");
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = 24 * 3600 * TL_SECOND;
    step(bench, command);
    for (uint64_t first = 0; first < COUNT; first += EACH) {
        command = writes(EACH);
        for (uint64_t i = 0; i < EACH; i++)
            command->write.items[i] =
                item(&command->arena, WRITE_INDEX, 900000 + first + i, moved_source(&command->arena, first + i));
        command->owner.session = SLICE_LIT("paths");
        command->owner.transaction = SLICE_LIT("p");
        step(bench, command);
        pieces(bench);
    }
    forget(bench);
    command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->owner.session = SLICE_LIT("paths");
    command->txn.id = SLICE_LIT("p");
    step(bench, command);
    report(bench, "a commit that gives 100000 locked documents other paths");
    session(bench, COMMAND_SESSION_CLOSE, "paths");
    pieces(bench);
    forget(bench);
}

/* DELETE of an index of which its session has locked many documents. */
static void delete_locked(struct bench *bench)
{
    step(bench, bench_index("own", "0123456789abcdefghijko",
                            "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}"));
    lock_new(bench, "owner", "own", 0, 60000, source);
    forget(bench);
    struct command *command = command_new(COMMAND_INDEX_DELETE, DIALECT_7);
    command->index.name = SLICE_LIT("own");
    command->owner.session = SLICE_LIT("owner");
    step(bench, command);
    report(bench, "DELETE of an index with 60000 documents that its session has locked");
    pieces(bench);
    session(bench, COMMAND_SESSION_CLOSE, "owner");
    pieces(bench);
    forget(bench);
}

/* The commit of a rename that moves the locks of a session, with many levels below, above, and no more. */
static void moves(struct bench *bench)
{
    enum { LEVELS = 1000 };
    struct buf deep = BUF_INIT(BUF_UNLIMITED);
    lock_new(bench, "moves", "fs", 800000, 100000, moved_source);
    for (size_t i = 0; i < LEVELS; i++)
        buf_lit(&deep, "/x");
    struct slice below = buf_as_slice(&deep);
    commit_rename(bench, "m0", SLICE_LIT("/m"), SLICE_LIT("/n"), "of a rename above 100000 locks");
    commit_rename(bench, "m1", SLICE_LIT("/n"), below, "of one to 1000 levels");
    commit_rename(bench, "m2", SLICE_LIT("/x"), SLICE_LIT("/y"), "of one 1000 levels above");
    buf_clear(&deep);
    buf_lit(&deep, "/y");
    for (size_t i = 1; i < LEVELS; i++)
        buf_lit(&deep, "/x");
    commit_rename(bench, "m3", buf_as_slice(&deep), SLICE_LIT("/m"), "of one from there");
    buf_deinit(&deep);
    session(bench, COMMAND_SESSION_CLOSE, "moves");
    pieces(bench);
    forget(bench);
}

/* --- Values that have no entry of their own ----------------------------------------------------------------------- */

/* Returns: {"v":[...]} with `count` times the value. */
static struct slice repeated(struct arena *arena, const char *value, size_t count)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&buf, "{\"v\":[%s", value);
    for (size_t i = 1; i < count; i++)
        buf_printf(&buf, ",%s", value);
    buf_lit(&buf, "]}");
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

/* Steps a write of sources that are parsed before, as by a submitter, or in the step, as in a replay. */
static void step_values(struct bench *bench, struct command *command, bool parsed)
{
    struct write_command *write = &command->write;
    for (size_t i = 0; i < write->item_count; i++) {
        struct json_doc *json = arena_alloc(&command->arena, sizeof *json);
        struct problem problem;
        write->items[i].index = SLICE_LIT("values");
        if (parsed && write->items[i].source.len > 0 &&
            json_parse(&command->arena, write->items[i].source, DIALECT_7, JSON_DOCUMENT, json, &problem) == 0)
            write->items[i].parsed = json;
    }
    step(bench, command);
    pieces(bench);
}

static struct command *puts_of(size_t count, uint64_t first, struct slice text)
{
    struct command *command = writes(count);
    for (size_t i = 0; i < count; i++)
        command->write.items[i] = item(&command->arena, WRITE_INDEX, first + i, arena_copy(&command->arena, text));
    return command;
}

static struct command *merges_of(size_t count, uint64_t first, const struct write_update *update)
{
    struct command *command = writes(count);
    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = item(&command->arena, WRITE_UPDATE, first + i, SLICE_NONE);
        command->write.items[i].update = update;
    }
    return command;
}

static void make_values_index(struct bench *bench, const char *field)
{
    static int made;
    char uuid[32];
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    if (made > 0) {
        struct command *command = command_new(COMMAND_INDEX_DELETE, DIALECT_7);
        command->index.name = SLICE_LIT("values");
        step(bench, command);
        pieces(bench);
    }
    snprintf(uuid, sizeof uuid, "0123456789abcdefghik%02d", made++);
    buf_printf(&body, "{\"mappings\":{\"dynamic\":false,\"properties\":{\"v\":{%s},\"w\":{\"type\":\"long\"}}}}",
               field);
    buf_byte(&body, '\0');
    step(bench, bench_index("values", uuid, body.data));
    buf_deinit(&body);
    forget(bench);
}

/* A document of many equal values: put, put again, and updated without effect; alone, and in bulks. */
static void values_of(struct bench *bench, const char *name, const char *field, const char *value, size_t count)
{
    char what[80];
    struct arena arena = ARENA_INIT;
    struct slice text = repeated(&arena, value, count);
    const struct write_update same = {.doc = text, .detect_noop = true};
    const struct write_update script = {.script_source = SLICE_LIT("ctx.op = 'none'")};
    make_values_index(bench, field);
    for (int parsed = 1; parsed >= 0; parsed--) {
        const char *where = parsed ? "" : ", parsed in the step";
        for (int again = 0; again < 2; again++) {
            step_values(bench, puts_of(1, (uint64_t)parsed, text), parsed);
            snprintf(what, sizeof what, "%s: %zu, %s%s", name, count, again ? "unchanged" : "new", where);
            report(bench, what);
        }
    }
    step_values(bench, merges_of(1, 0, &same), false);
    snprintf(what, sizeof what, "%s: %zu, merged without effect", name, count);
    report(bench, what);
    step_values(bench, merges_of(1, 0, &script), false);
    snprintf(what, sizeof what, "%s: %zu, updated by a script without effect", name, count);
    report(bench, what);
    for (uint64_t i = 0; i < 30; i++)
        step_values(bench, puts_of(1, 100 + i, text), true);
    forget(bench);
    step_values(bench, puts_of(30, 100, text), false);
    snprintf(what, sizeof what, "%s: a bulk of 30 unchanged", name);
    report(bench, what);
    step_values(bench, merges_of(30, 100, &same), false);
    snprintf(what, sizeof what, "%s: a bulk of 30 merges without effect", name);
    report(bench, what);
    step_values(bench, merges_of(30, 100, &script), false);
    snprintf(what, sizeof what, "%s: a bulk of 30 scripts without effect", name);
    report(bench, what);
    step_values(bench, puts_of(40, 200, text), true); /* with posting lists, of which a put keeps those of the field */
    snprintf(what, sizeof what, "%s: a bulk of 40 new", name);
    report(bench, what);
    struct slice other = arena_printf(&arena, "%.*s,\"w\":5}", (int)text.len - 1, text.data);
    step_values(bench, puts_of(1, 200, other), true);
    snprintf(what, sizeof what, "%s: %zu, one of the bulk with another field", name, count);
    report(bench, what);
    arena_deinit(&arena);
}

/* Numbers that hundreds of multi-fields convert, nearly as many as a document may have. */
static void many_copies(struct bench *bench)
{
    enum { FIELDS = 980 };
    struct buf field = BUF_INIT(BUF_UNLIMITED);
    static const char plain[] = "\"type\":\"long\",\"index\":false,\"doc_values\":false";
    buf_printf(&field, "%s,\"fields\":{", plain);
    for (int i = 0; i < FIELDS; i++)
        buf_printf(&field, "%s\"f%d\":{%s}", i == 0 ? "" : ",", i, plain);
    buf_append(&field, "}", sizeof "}");
    values_of(bench, "numbers of 980 fields", field.data, "1", 1000);
    buf_clear(&field);
    buf_lit(&field, "\"type\":\"date\",\"fields\":{");
    for (int i = 0; i < FIELDS; i++)
        buf_printf(&field, "%s\"f%d\":{\"type\":\"date\"}", i == 0 ? "" : ",", i);
    buf_append(&field, "}", sizeof "}");
    values_of(bench, "dates of 980 fields", field.data, "\"2020-01-01T00:00:00Z\"", 500);
    buf_deinit(&field);
}

/* Bulks of documents whose values all differ: with posting lists, and with single entries. */
static void different_values(struct bench *bench, size_t documents, int each)
{
    char what[80];
    struct command *command = writes(documents);
    make_values_index(bench, "\"type\":\"long\"");
    for (uint64_t i = 0; i < documents; i++)
        command->write.items[i] =
            item(&command->arena, WRITE_INDEX, i, scattered(&command->arena, i * (uint64_t)each, each));
    step_values(bench, command, true);
    snprintf(what, sizeof what, "a bulk of %zu documents of %d different values", documents, each);
    report(bench, what);
}

static void values(struct bench *bench)
{
    static const char keywords[] =
        "\"type\":\"keyword\",\"fields\":{\"a\":{\"type\":\"keyword\"},\"b\":{\"type\":\"keyword\"},\"c\":{\"type\":"
        "\"keyword\"},\"d\":{\"type\":\"keyword\"}}";
    values_of(bench, "numbers", "\"type\":\"long\"", "1", 100000);
    values_of(bench, "numbers without index", "\"type\":\"long\",\"index\":false,\"doc_values\":false", "1", 100000);
    values_of(bench, "keywords", "\"type\":\"keyword\"", "\"a\"", 100000);
    values_of(bench, "keywords of 5 fields", keywords, "\"a\"", 20000);
    values_of(bench, "words", "\"type\":\"text\"", "\"a\"", 100000);
    values_of(bench, "copied numbers", "\"type\":\"long\",\"copy_to\":\"w\"", "1", 50000);
    values_of(bench, "nulls", "\"type\":\"long\",\"null_value\":7", "null", 100000);
    values_of(bench, "objects", "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"long\"}}", "{\"n\":1}", 100000);
    values_of(bench, "dates", "\"type\":\"date\"", "\"2020-01-01T00:00:00Z\"", 100000);
    values_of(bench, "a field that is not mapped", "\"type\":\"object\",\"enabled\":false", "1", 100000);
    many_copies(bench);
    different_values(bench, 40, 2500);
    different_values(bench, 30, 10000);
    different_values(bench, 30, 2500);
}

/* --- The catalog -------------------------------------------------------------------------------------------------- */

static void make_index(struct bench *bench, const char *name, const char *body)
{
    static unsigned made;
    char uuid[32];
    snprintf(uuid, sizeof uuid, "0123456789abcdefg%05u", made++);
    step(bench, bench_index(name, uuid, body));
}

/* Writes the aliases that bodies of indices and templates have. */
static void list_aliases(struct buf *body, unsigned first, unsigned count)
{
    buf_lit(body, "\"aliases\":{");
    for (unsigned i = 0; i < count; i++)
        buf_printf(body, "%s\"alias-%06u\":{}", i == 0 ? "" : ",", first + i);
    buf_lit(body, "}");
}

/* Indices with as many aliases as there may be, one more with a thousand of its own or of the others, and a bulk. */
static void many_aliases(struct bench *bench)
{
    enum { INDICES = 198, EACH = 1000, ITEMS = 100 };
    char name[20];
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    for (unsigned i = 0; i < INDICES + 2; i++) {
        buf_clear(&body);
        buf_lit(&body, "{");
        list_aliases(&body, i == INDICES + 1 ? 0 : i * EACH, EACH);
        buf_append(&body, "}", sizeof "}");
        snprintf(name, sizeof name, "aliased-%03u", i);
        if (i >= INDICES)
            forget(bench);
        make_index(bench, name, body.data);
        if (i >= INDICES)
            report(bench, i == INDICES ? "an index with 1000 aliases, where there are 198000"
                                       : "one with 1000 of the same aliases");
    }
    struct command *command = command_new(COMMAND_INDEX_DELETE, DIALECT_7);
    command->index.name = SLICE_LIT("aliased-198");
    step(bench, command);
    pieces(bench);
    buf_deinit(&body);
    command = command_new(COMMAND_TEMPLATE_PUT, DIALECT_7);
    command->object.name = SLICE_LIT("t");
    command->object.body = SLICE_LIT("{\"index_patterns\":[\"made-*\"],\"aliases\":{\"alias-000001\":{}}}");
    step(bench, command);
    forget(bench);
    command = writes(ITEMS);
    for (uint64_t i = 0; i < ITEMS; i++) {
        struct write_item *at = &command->write.items[i];
        *at = item(&command->arena, WRITE_INDEX, i, SLICE_LIT("{}"));
        at->index = i % 2 == 1 ? SLICE_LIT("fs") : arena_printf(&command->arena, "made-%llu", (unsigned long long)i);
        at->require_alias = i % 2 == 1;
    }
    step(bench, command);
    report(bench, "a bulk that creates indices and requires aliases");
}

/* An index for which many templates apply, the first of which has most of the settings. */
static void many_settings(struct bench *bench)
{
    enum { TEMPLATES = 900, SETTINGS = 990 };
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    for (int i = 0; i < TEMPLATES; i++) {
        struct command *command = command_new(COMMAND_TEMPLATE_PUT, DIALECT_7);
        buf_clear(&body);
        buf_printf(&body, "{\"index_patterns\":[\"set-*\"],\"order\":%d,\"settings\":{", i);
        for (int j = 0; j < (i == 0 ? SETTINGS : 1); j++)
            buf_printf(&body, "%s\"index.routing.allocation.require.a%d\":%d", j == 0 ? "" : ",", j, i);
        buf_lit(&body, "}}");
        command->object.name = arena_printf(&command->arena, "set%04d", i);
        command->object.body = arena_copy(&command->arena, buf_as_slice(&body));
        step(bench, command);
    }
    buf_deinit(&body);
    forget(bench);
    make_index(bench, "set-1", "{}");
    report(bench, "an index of 900 templates with 990 settings");
}

static void catalog(struct bench *bench)
{
    many_settings(bench);
    many_aliases(bench);
}

static void all_cancelled(struct bench *bench)
{
    cancelled(bench, 100000, 1);
    cancelled(bench, 100000, 100);
    cancelled(bench, 100000, 100000);
    cancelled_bulks(bench, 300, 2000);
    abandoned(bench, 10000);
    abandoned(bench, 100000);
}

static const struct bench_part {
    const char *name;
    void (*run)(struct bench *bench);
} parts[] = {{"bulks", bulks},
             {"scripts", of_scripts},
             {"ends", ends},
             {"waiters", waiters},
             {"cancelled", all_cancelled},
             {"resumed", all_resumed},
             {"dropped", dropped},
             {"commits", commits},
             {"ended", ended},
             {"wholes", wholes},
             {"singles", singles},
             {"replaced", replaced},
             {"outcomes", outcomes},
             {"deep", deep},
             {"locks", many_locks},
             {"released", released},
             {"renames", renames},
             {"moves", moves},
             {"paths", commit_paths},
             {"deleted", delete_locked},
             {"values", values},
             {"catalog", catalog},
             {"others", others_before}};

int main(int argc, char **argv)
{
    struct bench bench = {0};
    struct store_options options = {.directory = SLICE_NONE};
    struct core_limits limits = core_limits_default();
    struct store *store;
    char *reason = NULL;
    const char *directory = "step_bench.data", *only = NULL;
    bool known = false;
    const struct argument arguments[] = {{"--dir", .text = &directory}, {"--part", .text = &only}, {0}};
    arguments_take(argc, argv, arguments);
    for (size_t i = 0; only != NULL && i < sizeof parts / sizeof *parts; i++)
        known = known || strcmp(only, parts[i].name) == 0;
    if (only != NULL && !known)
        arguments_refuse(argv, arguments, "no such part:", only);
    options.directory = slice_from(directory);
    setvbuf(stdout, NULL, _IOLBF, 0);
    limits.transaction_changes_max = 200000;
    effects_init(&bench.effects);
    if (reclaim_begin() != 0)
        die("no thread");
    if (store_open_rocks(&options, &store, &reason) != 0)
        die(reason);
    if (core_open(store, &limits, &bench.core) != 0)
        die("the core does not open");
    step(&bench, bench_index("fs", BENCH_INDEX_UUID,
                             "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"},\"v\":{\"type\":\"long\"},"
                             "\"t\":{\"type\":\"text\"}}}}"));
    forget(&bench);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (only == NULL || strcmp(only, parts[i].name) == 0)
            parts[i].run(&bench);
    core_close(bench.core);
    store_close(store);
    reclaim_end();
    return 0;
}
