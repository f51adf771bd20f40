/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal in a cluster.
 *
 * Goal: hosts that have applied the same entries are equal, whatever happens to them and to their
 * submissions. A command answered as done was done once; a command answered as not done never was.
 * Method: the journals of several hosts in this process, each over an in-memory store, on one log
 * (lib/cmdlog_double.h) that can be cut off, held, and made to repeat entries.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cmdlog_double.h"
#include "lib/unit.h"

#include "base/alloc.h"
#include "base/budget.h"
#include "base/clock.h"
#include "cmdlog/cmdlog_memory.h"
#include "core/catalog/catalog.h"
#include "core/command/command_codec.h"
#include "core/documents/doc.h"
#include "core/step/command_group.h"
#include "core/step/core.h"
#include "journal/cluster.h"
#include "journal/journal.h"
#include "journal/journal_internal.h"
#include "journal/read_ahead.h"
#include "journal/recover.h"
#include "mapping/mapping.h"
#include "store/store.h"

enum { HOSTS = 3, WRITERS = 2, ROUNDS = 60 };

#define LONG_US (600 * TL_SECOND) /* for leases and waits that must not expire */

struct host {
    char name[2];
    struct double_medium *medium;
    struct cmdlog *log;
    struct store *store;
    struct core *core;
    struct journal *journal;
};

struct options {
    const struct cmdlog_skips *skips;
    uint64_t timeout_us;
    struct core_limits limits;
    const char *build, *group;
    uint64_t checkpoint_log_bytes;
    const char *directory; /* whose free space is checked; NULL: none */
    bool tls;
    bool distorted;      /* it reads another document than the log has: distort() */
    const char *hold_at; /* its log is held when it reads an entry with this text; NULL: not */
    bool frozen;         /* its list of the log's members stays as it was at its start */
    const struct recover_observer *observer; /* NULL: none */
    const struct budget *budget;             /* NULL: none */
};

static const char *const names[HOSTS] = {"a", "b", "c"};

/* The host reads other documents than the log has, in entries of other hosts. */
static void distort(struct host *host)
{
    cmdlog_double_distort(host->log, "{\"v\":1}", "{\"v\":2}");
}

static int try_begin(struct host *host, struct double_medium *medium, const char *name, const struct options *options,
                     char **ret_reason)
{
    cmdlog_position position;
    uint64_t log_bytes;
    struct journal_cluster cluster = {.name = slice_from(name),
                                      .group = slice_from(options->group),
                                      .address = SLICE_LIT("127.0.0.1:1"),
                                      .tls = options->tls,
                                      .build = slice_from(options->build),
                                      .about = slice_from(name),
                                      .timeout_us = options->timeout_us,
                                      .observer = options->observer};
    snprintf(host->name, sizeof host->name, "%s", name);
    host->medium = medium;
    host->log = cmdlog_double_open(medium, name);
    if (options->distorted)
        distort(host);
    if (options->hold_at != NULL)
        cmdlog_double_fail_at(host->log, options->hold_at, DOUBLE_HOLD);
    if (options->frozen)
        cmdlog_double_freeze_hosts(host->log, true);
    if (host->store == NULL)
        host->store = store_open_mem();
    struct core_limits limits = core_limits_default();
    assert_int_equal(recover_begin(host->store, &limits, &host->core, &position, &log_bytes, NULL), 0);
    const struct journal_options with = {.log = host->log,
                                         .cmdlog_position = position,
                                         .log_bytes = log_bytes,
                                         .cluster = &cluster,
                                         .skips = options->skips,
                                         .directory = slice_from(options->directory ? options->directory : ""),
                                         .checkpoint_log_bytes = options->checkpoint_log_bytes,
                                         .budget = options->budget,
                                         .limits = &options->limits};
    int r = journal_open_cluster(host->core, host->store, &with, &host->journal, ret_reason);
    if (r < 0) {
        core_close(host->core);
        cmdlog_close(host->log);
        store_close(host->store);
    }
    return r;
}

static struct options plain(void)
{
    return (struct options){.timeout_us = LONG_US, .limits = core_limits_default(), .build = "1", .group = "default"};
}

static void begin(struct host *host, struct double_medium *medium, const char *name)
{
    struct options options = plain();
    assert_int_equal(try_begin(host, medium, name, &options, NULL), 0);
}

/* A clean shutdown; the store remains. */
static void stop(struct host *host)
{
    journal_close(host->journal);
    core_close(host->core);
    cmdlog_close(host->log);
    host->journal = NULL;
}

static void end(struct host *host)
{
    stop(host);
    store_close(host->store);
}

static void begin_all(struct host *hosts, struct double_medium *medium)
{
    for (int i = 0; i < HOSTS; i++)
        begin(&hosts[i], medium, names[i]);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

struct cluster_request {
    struct command *command;
    sem_t answered;
};

static void done(struct command *command)
{
    sem_post(&((struct cluster_request *)command->context)->answered);
}

static void ask(struct host *host, struct cluster_request *request, struct command *command)
{
    sem_init(&request->answered, 0, 0);
    request->command = command;
    command->on_done = done;
    command->context = request;
    journal_submit(host->journal, command, true);
}

static enum problem_type answer(struct cluster_request *request)
{
    while (sem_wait(&request->answered) != 0) {
    }
    sem_destroy(&request->answered);
    enum problem_type type = request->command->problem.type;
    if (request->command->type == COMMAND_WRITE && type == PROBLEM_NONE &&
        request->command->write.results[0].outcome == WRITE_FAILED)
        type = request->command->write.results[0].problem.type;
    if (request->command->type == COMMAND_TXN_LOCK)
        core_overlay_unref(request->command->txn_lock.overlay);
    command_free(request->command);
    return type;
}

static bool is_answered(struct cluster_request *request)
{
    int value;
    sem_getvalue(&request->answered, &value);
    return value > 0;
}

static enum problem_type run(struct host *host, struct command *command)
{
    struct cluster_request request;
    ask(host, &request, command);
    return answer(&request);
}

static struct command *write_command(enum write_op op, const char *id)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    *command->write.items = (struct write_item){.op = op,
                                                .index = SLICE_LIT("fs"),
                                                .id = arena_printf(&command->arena, "%s", id),
                                                .source = SLICE_LIT("{\"v\":1}"),
                                                .version = VERSION_ANY,
                                                .if_seq_no = SEQ_NO_ANY};
    command->owner.timeout_us = LONG_US;
    return command;
}

static struct command *session_command(enum command_type type, const char *id, uint64_t ttl_us)
{
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = arena_printf(&command->arena, "%s", id);
    command->session.ttl_us = ttl_us;
    return command;
}

static struct command *lock_command(enum command_type type, const char *session, uint64_t wait_us)
{
    struct command *command = command_new(type, DIALECT_7);
    command->owner.session = arena_printf(&command->arena, "%s", session);
    command->owner.timeout_us = wait_us;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = SLICE_LIT("1")};
    command->lock.target_count = 1;
    return command;
}

/* Asserts success. From any thread. */
static void must(enum problem_type type)
{
    if (type == PROBLEM_NONE)
        return;
    fprintf(stderr, "refused: %s\n", problem_name(type));
    abort();
}

/* --- Observation -------------------------------------------------------------------------------------------------- */

static bool has(struct host *host, const char *id)
{
    struct catalog *catalog = journal_catalog(host->journal);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("fs"));
    struct view view = {host->store, journal_stable(host->journal), NULL};
    struct doc doc;
    const struct mapping_type *type = index == NULL ? NULL : mapping_type(index->mapping, SLICE_LIT("_doc"));
    bool found = type != NULL && doc_get(&view, index->number, type->number, slice_from(id), &doc) == 0;
    if (found)
        doc_release(&doc);
    catalog_unref(catalog);
    return found;
}

static bool session_lives(struct host *host, const char *id)
{
    struct arena arena = ARENA_INIT;
    struct problem problem;
    bool lives = core_find_session(host->store, slice_from(id), &arena, &problem) == 0;
    arena_deinit(&arena);
    return lives;
}

static bool is_live(struct host *host, const char *name)
{
    struct journal_host *all;
    size_t count = journal_hosts(host->journal, &all);
    bool live = false;
    for (size_t i = 0; i < count; i++)
        live = live || (slice_is(all[i].name, name) && all[i].live);
    mem_free(all);
    return live;
}

static void catch_up(struct host *host)
{
    uint64_t head;
    assert_int_equal(journal_read_head(host->journal, UINT64_MAX, &head), 0);
    assert_int_equal(journal_await_position(host->journal, head, UINT64_MAX), 0);
}

static uint64_t digest(struct core *core)
{
    uint64_t value;
    assert_int_equal(core_digest(core, &value), 0);
    return value;
}

/* Stops all hosts, recovers each up to the same position, and asserts that they are equal. */
static void compare_and_end(struct host *hosts, int count)
{
    uint64_t digests[HOSTS] = {0}, chains[HOSTS] = {0};
    uint64_t positions[HOSTS] = {0};
    for (;;) {
        bool same = true;
        for (int i = 0; i < count; i++) {
            struct journal_host *all;
            size_t known = journal_hosts(hosts[i].journal, &all);
            for (size_t j = 0; j < known; j++)
                if (all[j].self) {
                    positions[i] = all[j].position;
                    chains[i] = all[j].chain;
                }
            mem_free(all);
            same = same && positions[i] == positions[0];
        }
        if (same)
            break;
        usleep(10000);
    }
    for (int i = 1; i < count; i++)
        assert_true(chains[i] == chains[0]);
    for (int i = 0; i < count; i++)
        catch_up(&hosts[i]);
    for (int i = 0; i < count; i++) {
        stop(&hosts[i]);
        struct core_limits limits = core_limits_default();
        cmdlog_position position;
        assert_int_equal(recover_begin(hosts[i].store, &limits, &hosts[i].core, &position, &(uint64_t){0}, NULL), 0);
        digests[i] = digest(hosts[i].core);
        core_close(hosts[i].core);
        store_close(hosts[i].store);
        assert_true(digests[i] == digests[0]);
    }
}

static cmdlog_position append_bytes(struct cmdlog *log)
{
    const struct slice part = SLICE_LIT("entry");
    cmdlog_position position;
    assert_int_equal(cmdlog_append(log, &part, 1, &position), 0);
    return position;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

/* The log may be trimmed between the check of its entries and the start of the follower. */
static void test_trimmed_log_is_refused_with_the_remedy(void **state)
{
    (void)state;
    struct cmdlog_medium *medium = cmdlog_medium_new();
    const struct journal_cluster cluster = {.name = SLICE_LIT("a"), .group = SLICE_LIT("g"), .build = SLICE_LIT("1")};
    const struct core_limits limits = core_limits_default();
    struct journal_options options = {.log = cmdlog_memory_open_as(medium, SLICE_LIT("a")), .cluster = &cluster};
    struct store *store = store_open_mem();
    struct core *core;
    struct journal *journal;
    char *reason = NULL;
    uint64_t life;
    assert_int_equal(core_open(store, &limits, &core), 0);
    assert_int_equal(cmdlog_join(options.log, SLICE_NONE, CMDLOG_FOREVER, &life), 0);
    (void)append_bytes(options.log);
    cmdlog_position last = append_bytes(options.log);
    const struct cmdlog_checkpoint newest = {.position = last, .locator = SLICE_LIT("store")};
    assert_int_equal(cmdlog_put_checkpoint(options.log, &newest), 0);
    assert_int_equal(cmdlog_trim(options.log, last + 1), 0);
    assert_int_equal(journal_open_cluster(core, store, &options, &journal, &reason), TL_ERR_CORRUPT);
    assert_non_null(reason);
    assert_non_null(strstr(reason, "start it again, and it copies a checkpoint"));
    mem_free(reason);
    core_close(core);
    store_close(store);
    cmdlog_close(options.log);
    cmdlog_medium_free(medium);
}

struct writer {
    struct host *host;
    int number;
};

/* Creates documents: a create that is applied twice is detected. */
static void *write_much(void *context)
{
    const struct writer *writer = context;
    for (int i = 0; i < ROUNDS; i++) {
        char id[32];
        snprintf(id, sizeof id, "%s-%d-%d", writer->host->name, writer->number, i);
        must(run(writer->host, write_command(WRITE_CREATE, id)));
        must(run(writer->host, write_command(WRITE_INDEX, "all")));
    }
    return NULL;
}

struct work {
    pthread_t threads[HOSTS * WRITERS];
    struct writer writers[HOSTS * WRITERS];
};

static void begin_work(struct work *work, struct host *hosts)
{
    for (int i = 0; i < HOSTS * WRITERS; i++) {
        work->writers[i] = (struct writer){&hosts[i % HOSTS], i / HOSTS};
        assert_int_equal(pthread_create(&work->threads[i], NULL, write_much, &work->writers[i]), 0);
    }
}

static void end_work(struct work *work, struct host *hosts)
{
    for (int i = 0; i < HOSTS * WRITERS; i++)
        pthread_join(work->threads[i], NULL);
    for (int h = 0; h < HOSTS; h++) {
        catch_up(&hosts[h]);
        for (int i = 0; i < HOSTS * WRITERS; i++) {
            char id[32];
            snprintf(id, sizeof id, "%s-%d-%d", work->writers[i].host->name, work->writers[i].number, ROUNDS - 1);
            assert_true(has(&hosts[h], id));
        }
    }
}

static void test_hosts_apply_the_same_state(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct work work;
    (void)state;

    begin_all(hosts, medium);
    begin_work(&work, hosts);
    end_work(&work, hosts);
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

static struct command *large_command(const char *id, size_t bytes)
{
    struct command *command = write_command(WRITE_CREATE, id);
    char *source = arena_alloc(&command->arena, bytes);
    memset(source, ' ', bytes);
    memcpy(source, "{\"v\":1}", 7);
    command->write.items->source = slice_make(source, bytes);
    return command;
}

/*
 * A host that was cut from the log, and one that begins with the whole log, decode entries ahead, more than there is
 * room for, and make the same state. journal_await_position() returns when the entries that were read are applied.
 */
static void test_hosts_that_lag_apply_the_same_state(void **state)
{
    enum { COUNT = READ_AHEAD_ENTRIES_MAX + 10 };
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    char id[16];
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    cmdlog_double_cut(hosts[1].log, true);
    for (int i = 0; i < COUNT; i++) {
        snprintf(id, sizeof id, "%d", i);
        must(run(&hosts[0], large_command(id, i % 3 == 0 ? 1000 : READ_AHEAD_DECODED_MIN + i)));
    }
    begin(&hosts[2], medium, "c");
    cmdlog_double_cut(hosts[1].log, false);
    for (int h = 1; h < HOSTS; h++) {
        catch_up(&hosts[h]);
        assert_true(has(&hosts[h], id));
    }
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* A host with other default limits gets the cluster's from the log. */
static void test_limits_are_logged_after_join(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    (void)state;

    begin(&host, medium, "a");
    must(run(&host, write_command(WRITE_INDEX, "x"))); /* applied after it */
    stop(&host);
    struct core_limits others = core_limits_default();
    cmdlog_position position;
    others.sessions_max = 1;
    assert_int_equal(recover_begin(host.store, &others, &host.core, &position, &(uint64_t){0}, NULL), 0);
    assert_true(core_limits_recorded(host.core));
    assert_int_equal(core_limits(host.core)->sessions_max, core_limits_default().sessions_max);
    core_close(host.core);
    store_close(host.store);
    double_medium_free(medium);
}

/* In-flight commands are applied exactly once although lives end meanwhile. */
static void test_inflight_commands_survive_end_of_life(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct work work;
    (void)state;

    begin_all(hosts, medium);
    begin_work(&work, hosts);
    for (int i = 0; i < 6; i++) {
        struct host *host = &hosts[i % 2];
        cmdlog_double_hold(host->log, true);
        usleep(20000);
        double_medium_end_life(medium, host->name);
        cmdlog_double_hold(host->log, false);
        usleep(20000);
    }
    end_work(&work, hosts);
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/*
 * A new life begins while the proposer has commands and no entry yet, and JOIN is applied while it encodes
 * them. Numbers begin anew with JOIN: an entry with a number of the old life would make the core ignore all
 * entries of the new one up to that number, and each of them would be appended again.
 */
static void test_entry_that_is_begun_before_join_has_number_of_new_life(void **state)
{
    enum { ENTRIES = 200, LARGE = 32 << 20 };
    struct double_medium *medium = double_medium_new();
    struct cluster_request large;
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    must(run(&host, session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    cmdlog_position first = double_medium_head(medium);
    for (int i = 0; i < ENTRIES; i++)
        must(run(&host, session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)));
    cmdlog_position before = double_medium_head(medium);
    struct command *command = write_command(WRITE_INDEX, "1");
    command->write.items->source = arena_printf(&command->arena, "{\"v\":1%*s}", LARGE, "");
    cmdlog_double_pause_proposer(host.log, true);
    ask(&host, &large, command);
    cmdlog_double_await_paused(host.log);
    cmdlog_double_hold(host.log, true);
    double_medium_end_life(medium, "a");
    cmdlog_double_await_held(host.log, 1); /* JOIN */
    cmdlog_double_pause_proposer(host.log, false);
    usleep(1000); /* without which the test finds less */
    cmdlog_double_hold(host.log, false);
    must(answer(&large));
    must(run(&host, session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)));
    assert_true(double_medium_head(medium) - before < (before - first) / 2);
    end(&host);
    double_medium_free(medium);
}

/*
 * An entry ends the life of a host whose lease continues, as a JOIN of another process with its name does. The
 * proposer, which has commands, makes no entry of a life that is over, which the log's format does not have.
 */
static void test_entry_is_not_begun_in_life_that_an_entry_has_ended(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cluster_request write;
    struct host hosts[2] = {0};
    struct journal_host *all;
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    catch_up(&hosts[0]);
    size_t count = journal_hosts(hosts[0].journal, &all);
    assert_int_equal(count, 2);
    struct command *gone = command_new(COMMAND_HOST_GONE, DIALECT_7);
    gone->gone = (struct gone_command){.name = SLICE_LIT("b"), .life = all[1].life};
    mem_free(all);
    cmdlog_double_pause_proposer(hosts[1].log, true);
    ask(&hosts[1], &write, write_command(WRITE_INDEX, "1"));
    cmdlog_double_await_paused(hosts[1].log);
    must(run(&hosts[0], gone));
    while (is_live(&hosts[1], "b"))
        sched_yield();
    cmdlog_double_pause_proposer(hosts[1].log, false);
    must(answer(&write));
    compare_and_end(hosts, 2);
    double_medium_free(medium);
}

/* A bulk that is expected to take longer than an entry may: updates by scripts. */
static struct command *long_command(void)
{
    enum { ITEMS = 24 };
    struct command *command = write_command(WRITE_INDEX, "1");
    struct write_item *items = arena_zalloc(&command->arena, ITEMS * sizeof *items);
    struct write_update *update = arena_zalloc(&command->arena, sizeof *update);
    update->script_lang = SLICE_LIT("painless");
    update->script_source = SLICE_LIT("ctx._source.v += 1");
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = *command->write.items;
        items[i].op = WRITE_UPDATE;
        items[i].source = SLICE_NONE;
        items[i].update = update;
    }
    command->write.items = items;
    command->write.item_count = ITEMS;
    return command;
}

/* Commands of much work are not in one entry, with which they would be answered together. */
static void test_entry_has_limited_work(void **state)
{
    enum { COMMANDS = 12 };
    struct double_medium *medium = double_medium_new();
    struct cluster_request requests[COMMANDS];
    struct host host = {0};
    (void)state;

    begin(&host, medium, "a");
    must(run(&host, write_command(WRITE_INDEX, "1")));
    cmdlog_position before = double_medium_head(medium);
    cmdlog_double_hold(host.log, true); /* most commands are queued before the next entry is made */
    for (int i = 0; i < COMMANDS; i++)
        ask(&host, &requests[i], long_command());
    cmdlog_double_hold(host.log, false);
    for (int i = 0; i < COMMANDS; i++)
        must(answer(&requests[i]));
    assert_true(double_medium_head(medium) >= before + COMMANDS);
    end(&host);
    double_medium_free(medium);
}

static void test_repeated_entries_are_applied_once(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    (void)state;

    begin_all(hosts, medium);
    for (int i = 0; i < 20; i++) {
        char id[32];
        snprintf(id, sizeof id, "%d", i);
        must(run(&hosts[i % HOSTS], write_command(WRITE_CREATE, id)));
        double_medium_repeat(medium, double_medium_head(medium));
    }
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

static void test_locks_exclude_across_hosts(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct cluster_request waits;
    (void)state;

    begin_all(hosts, medium);
    must(run(&hosts[0], session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    must(run(&hosts[1], session_command(COMMAND_SESSION_OPEN, "t", LONG_US)));
    must(run(&hosts[1], lock_command(COMMAND_LOCK, "s", 0)));
    assert_int_equal(run(&hosts[2], lock_command(COMMAND_LOCK, "t", 0)), PROBLEM_LOCK_CONFLICT);
    ask(&hosts[2], &waits, lock_command(COMMAND_LOCK, "t", LONG_US));
    must(run(&hosts[1], write_command(WRITE_INDEX, "other")));
    catch_up(&hosts[2]);
    assert_false(is_answered(&waits));
    must(run(&hosts[0], lock_command(COMMAND_UNLOCK, "s", 0)));
    must(answer(&waits));
    assert_int_equal(run(&hosts[0], lock_command(COMMAND_LOCK, "s", 10 * TL_MS)),
                     PROBLEM_LOCK_WAIT_TIMEOUT); /* by the keeper's TICK */
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

static void test_lease_expires_on_all_hosts(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    (void)state;

    begin_all(hosts, medium);
    enum problem_type type;
    do { /* repeated if the machine stalls for the length of the lease */
        must(run(&hosts[2], session_command(COMMAND_SESSION_OPEN, "s", TL_SECOND)));
        type = run(&hosts[2], lock_command(COMMAND_LOCK, "s", 0));
    } while (type == PROBLEM_SESSION_MISSING);
    must(type);
    must(run(&hosts[1], session_command(COMMAND_SESSION_OPEN, "t", LONG_US)));
    must(run(&hosts[1], lock_command(COMMAND_LOCK, "t", LONG_US)));
    for (int i = 0; i < HOSTS; i++) {
        catch_up(&hosts[i]);
        assert_false(session_lives(&hosts[i], "s"));
    }
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* Begins a transaction of the host's own and writes a document in it. */
static void begin_own(struct host *host)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->txn.id = SLICE_LIT("own");
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = LONG_US;
    command->txn.of_host = true;
    must(run(host, command));
    command = write_command(WRITE_INDEX, "own");
    command->owner.transaction = SLICE_LIT("own");
    must(run(host, command));
}

/*
 * The host with the first name, the keeper, dies. Waits and sessions of other hosts continue. What waited through it
 * for a lock has its place by another host, before what came later; its own client is answered when the host returns.
 */
static void test_dead_host_releases_its_locks(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct cluster_request lost, waits, repeated;
    (void)state;

    begin_all(hosts, medium);
    must(run(&hosts[0], session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    must(run(&hosts[0], lock_command(COMMAND_LOCK, "s", 0)));
    must(run(&hosts[0], session_command(COMMAND_SESSION_OPEN, "t", LONG_US)));
    must(run(&hosts[0], session_command(COMMAND_SESSION_OPEN, "u", LONG_US)));
    begin_own(&hosts[0]);
    ask(&hosts[0], &lost, lock_command(COMMAND_LOCK, "t", LONG_US));
    must(run(&hosts[0], write_command(WRITE_INDEX, "x"))); /* applied after it */
    ask(&hosts[1], &waits, lock_command(COMMAND_LOCK, "u", LONG_US));
    must(run(&hosts[1], write_command(WRITE_INDEX, "y")));
    cmdlog_double_cut(hosts[0].log, true);
    assert_false(is_answered(&lost));
    double_medium_end_life(medium, "a");
    while (is_live(&hosts[1], "a"))
        usleep(10000);
    ask(&hosts[1], &repeated, lock_command(COMMAND_LOCK, "t", LONG_US));
    struct command *free_again = write_command(WRITE_INDEX, "own");
    free_again->owner.timeout_us = 0;
    must(run(&hosts[1], free_again));
    must(run(&hosts[1], lock_command(COMMAND_UNLOCK, "s", 0)));
    must(answer(&repeated));
    assert_false(is_answered(&waits));
    must(run(&hosts[1], lock_command(COMMAND_UNLOCK, "t", 0)));
    must(answer(&waits));
    assert_false(journal_serves(hosts[0].journal));
    assert_true(journal_serves_past(hosts[0].journal));
    assert_true(session_lives(&hosts[1], "s"));
    cmdlog_double_cut(hosts[0].log, false); /* it returns with another life */
    assert_int_equal(answer(&lost), PROBLEM_STOPPING);
    must(run(&hosts[0], write_command(WRITE_INDEX, "z")));
    assert_true(journal_serves(hosts[0].journal));
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* Writes repeatedly, since the log may be slower than the short timeout of this test. */
static void until_written(struct host *host, const char *id)
{
    enum problem_type type;
    do
        type = run(host, write_command(WRITE_INDEX, id));
    while (type == PROBLEM_LOG_UNAVAILABLE || type == PROBLEM_OUTCOME_UNKNOWN);
    must(type);
}

static void test_unavailable_log_times_out_commands(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct options options = plain();
    struct cluster_request sent, queued[8];
    (void)state;

    options.timeout_us = 2 * TL_SECOND;
    for (int i = 0; i < HOSTS; i++)
        assert_int_equal(try_begin(&hosts[i], medium, names[i], &options, NULL), 0);
    until_written(&hosts[0], "0");
    cmdlog_double_hold(hosts[0].log, true);
    ask(&hosts[0], &sent, write_command(WRITE_CREATE, "sent"));
    cmdlog_double_await_held(hosts[0].log, 1);
    for (int i = 0; i < 8; i++) {
        char id[32];
        snprintf(id, sizeof id, "queued-%d", i);
        ask(&hosts[0], &queued[i], write_command(WRITE_CREATE, id));
        if (i == 0)
            cmdlog_double_await_held(hosts[0].log, 2);
    }
    assert_int_equal(answer(&sent), PROBLEM_OUTCOME_UNKNOWN);
    bool sure[8];
    for (int i = 0; i < 8; i++) {
        enum problem_type type = answer(&queued[i]);
        assert_true(type == PROBLEM_LOG_UNAVAILABLE || type == PROBLEM_OUTCOME_UNKNOWN);
        sure[i] = type == PROBLEM_LOG_UNAVAILABLE;
    }
    assert_true(sure[7]); /* at most two entries are in flight */
    cmdlog_double_hold(hosts[0].log, false);
    until_written(&hosts[0], "1");
    assert_true(has(&hosts[0], "sent"));
    for (int i = 0; i < 8; i++) {
        char id[32];
        snprintf(id, sizeof id, "queued-%d", i);
        assert_true(has(&hosts[0], id) == !sure[i]);
    }
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* Asserts that a command timed out. Returns: `type`: whether it is in no entry. */
static enum problem_type expect_timeout(enum problem_type type)
{
    assert_true(type == PROBLEM_LOG_UNAVAILABLE || type == PROBLEM_OUTCOME_UNKNOWN);
    return type;
}

static cmdlog_position checkpoint_of(struct host *host);
static cmdlog_position position_of(struct host *host, const char *id);
static const struct cmdlog_space tight;

/*
 * The log cannot be reached just when an entry has been applied, so whether the entry is skipped is
 * not known. Commands that it completed, queued ones and inspections time out. No checkpoint is
 * made of that state, until the log can be reached again.
 */
static void test_commands_time_out_while_applied_entry_is_unverified(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    struct options options = plain();
    struct cluster_request unverified, inspection, sent[2], queued;
    (void)state;

    options.timeout_us = TL_SECOND;
    options.directory = "/tmp"; /* then the proposer needs core_lock, too */
    assert_int_equal(try_begin(&host, medium, "a", &options, NULL), 0);
    until_written(&host, "0");
    cmdlog_double_fail_at(host.log, "unverified", DOUBLE_CUT);
    ask(&host, &unverified, write_command(WRITE_CREATE, "unverified"));
    assert_int_equal(answer(&unverified), PROBLEM_OUTCOME_UNKNOWN);
    double_medium_set_space(medium, tight); /* a checkpoint is due */
    ask(&host, &inspection, command_new(COMMAND_STATUS, DIALECT_7));
    for (int i = 0; i < 2; i++) { /* a heartbeat may be in flight, too */
        ask(&host, &sent[i], write_command(WRITE_CREATE, i == 0 ? "sent-0" : "sent-1"));
        cmdlog_double_await_held(host.log, i + 1);
    }
    ask(&host, &queued, write_command(WRITE_CREATE, "queued"));
    assert_int_equal(answer(&inspection), PROBLEM_LOG_UNAVAILABLE);
    bool sure = expect_timeout(answer(&queued)) == PROBLEM_LOG_UNAVAILABLE; /* not being submitted at that time */
    for (int i = 0; i < 2; i++)
        (void)expect_timeout(answer(&sent[i]));
    assert_int_equal(checkpoint_of(&host), 0);
    cmdlog_double_cut(host.log, false);
    until_written(&host, "1");
    assert_true(has(&host, "unverified"));
    assert_false(sure && has(&host, "queued"));
    while (checkpoint_of(&host) == 0)
        usleep(1000);
    assert_true(checkpoint_of(&host) >= position_of(&host, "unverified"));
    compare_and_end(&host, 1);
    double_medium_free(medium);
}

/* Checks how many hosts have not reached a timestamp, and the first of them. Returns: that; its texts are not valid. */
static struct journal_host lagging(struct host *host, tl_ts ts, enum journal_reach reach, size_t wanted,
                                   const char *name)
{
    struct journal_host *all;
    assert_int_equal(journal_list_lagging(host->journal, ts, reach, &all), wanted);
    struct journal_host first = all[0];
    assert_true(slice_is(first.name, name));
    mem_free(all);
    return first;
}

/* Every host knows how each other one is reached: "c" by https. */
static void check_addresses(struct host *host)
{
    struct journal_host *all;
    size_t count = journal_hosts(host->journal, &all);
    assert_int_equal(count, HOSTS);
    for (size_t i = 0; i < count; i++) {
        assert_slice_equal(all[i].address, "127.0.0.1:1");
        assert_int_equal(all[i].tls, slice_is(all[i].name, "c"));
        assert_true(journal_is_live(host->journal, all[i].number));
    }
    assert_false(journal_is_live(host->journal, 0));
    mem_free(all);
}

/*
 * Hosts "b" and "c", of which "c" is of another group, are known to have a write by their
 * heartbeats, by what they have said in this life, or since they are out.
 */
static void test_write_reaches_other_hosts(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct options other = plain();
    (void)state;

    other.group = "other";
    other.tls = true;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    assert_int_equal(try_begin(&hosts[2], medium, "c", &other, NULL), 0);
    catch_up(&hosts[0]);
    check_addresses(&hosts[0]);
    must(run(&hosts[0], write_command(WRITE_INDEX, "x")));
    tl_ts ts = journal_stable(hosts[0].journal);
    assert_true(journal_has_reached(hosts[0].journal, ts, JOURNAL_REACH_HOST));
    while (!journal_has_reached(hosts[0].journal, ts, JOURNAL_REACH_CLUSTER))
        usleep(10000);
    assert_true(journal_stable(hosts[1].journal) >= ts && journal_stable(hosts[2].journal) >= ts);

    cmdlog_double_cut(hosts[1].log, true);
    cmdlog_double_cut(hosts[2].log, true);
    must(run(&hosts[0], write_command(WRITE_INDEX, "y")));
    ts = journal_stable(hosts[0].journal);
    assert_false(journal_has_reached(hosts[0].journal, ts, JOURNAL_REACH_GROUP));
    (void)lagging(&hosts[0], ts, JOURNAL_REACH_CLUSTER, 2, "b");
    struct journal_host b = lagging(&hosts[0], ts, JOURNAL_REACH_GROUP, 1, "b");
    journal_record_reached(hosts[0].journal, b.number, b.life - 1, ts);
    journal_record_reached(hosts[0].journal, b.number, b.life, ts - 1);
    assert_false(journal_has_reached(hosts[0].journal, ts, JOURNAL_REACH_GROUP));
    journal_record_reached(hosts[0].journal, b.number, b.life, ts);
    assert_true(journal_has_reached(hosts[0].journal, ts, JOURNAL_REACH_GROUP));
    (void)lagging(&hosts[0], ts, JOURNAL_REACH_CLUSTER, 1, "c");
    double_medium_end_life(medium, "c");
    while (!journal_has_reached(hosts[0].journal, ts, JOURNAL_REACH_CLUSTER))
        usleep(10000);
    assert_false(is_live(&hosts[0], "c"));
    assert_false(journal_serves(hosts[2].journal));

    cmdlog_double_cut(hosts[1].log, false);
    cmdlog_double_cut(hosts[2].log, false);
    assert_true(journal_is_self(hosts[1].journal, SLICE_LIT("b"), b.life));
    assert_false(journal_is_self(hosts[1].journal, SLICE_LIT("a"), b.life));
    assert_false(journal_is_self(hosts[1].journal, SLICE_LIT("b"), b.life - 1));
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

static void test_mismatched_host_is_refused(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct options options = plain();
    char *reason;
    (void)state;

    begin(&hosts[0], medium, "a");
    options.limits.sessions_max = 7;
    assert_int_equal(try_begin(&hosts[1], medium, "b", &options, &reason), TL_ERR_BUSY);
    assert_non_null(
        strstr(reason, "max-sessions: this host has 7, the cluster 10000; start it with --max-sessions 10000"));
    mem_free(reason);
    hosts[1] = (struct host){0};
    options = plain();
    options.build = "2";
    assert_int_equal(try_begin(&hosts[1], medium, "b", &options, &reason), TL_ERR_BUSY);
    assert_non_null(strstr(reason, "build"));
    mem_free(reason);
    end(&hosts[0]);
    double_medium_free(medium);
}

/*
 * All hosts of a build end at once, so no host is left to report that, and the core has them as live. The first of
 * another build, whichever that is, reports them and joins; one of the old build is refused then.
 */
static void test_build_follows_another_after_stop_of_all_hosts(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct options options = plain();
    char *reason;
    (void)state;
    begin_all(hosts, medium);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    for (int i = 0; i < HOSTS; i++)
        stop(&hosts[i]);
    options.build = "2";
    for (int i = 1; i < HOSTS; i++)
        assert_int_equal(try_begin(&hosts[i], medium, names[i], &options, &reason), 0);
    must(run(&hosts[1], write_command(WRITE_INDEX, "2")));
    options.build = "1";
    assert_int_equal(try_begin(&hosts[0], medium, "a", &options, &reason), TL_ERR_BUSY);
    assert_non_null(strstr(reason, "build"));
    mem_free(reason);
    hosts[0] = (struct host){0};
    options.build = "2";
    double_medium_end_life(medium, "a"); /* its lease */
    assert_int_equal(try_begin(&hosts[0], medium, "a", &options, &reason), 0);
    catch_up(&hosts[0]);
    assert_true(has(&hosts[0], "1") && has(&hosts[0], "2"));
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* Hosts that were killed, and one whose start waits for the end of their leases. */
struct killed_hosts {
    struct double_medium *medium;
    struct host *waiting;
    cmdlog_position head;
};

/* Ends the leases when the host has asked to join, and has read the list of the members often since. */
static void end_leases(void *context)
{
    struct killed_hosts *killed = context;
    while (double_medium_head(killed->medium) == killed->head)
        usleep(1000);
    cmdlog_double_await_lists(killed->waiting->log, 25);
    double_medium_end_life(killed->medium, "a");
    double_medium_end_life(killed->medium, "c");
    cmdlog_double_freeze_hosts(killed->waiting->log, false);
}

/*
 * All hosts of a build are killed, so the log has them as members until their leases are over. A host of another build
 * that starts meanwhile is refused by them, and waits: none of them has sent anything since.
 */
static void test_build_follows_another_after_kill_of_all_hosts(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    struct options options = plain();
    struct killed_hosts killed = {.medium = medium, .waiting = &hosts[1]};
    struct thread thread = {0};
    (void)state;
    begin_all(hosts, medium);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    for (int i = 0; i < HOSTS; i++)
        cmdlog_double_stay(hosts[i].log);
    for (int i = 0; i < HOSTS; i++)
        stop(&hosts[i]);
    killed.head = double_medium_head(medium);
    assert_int_equal(thread_start(&thread, "leases", end_leases, &killed), 0);
    options.build = "2";
    options.frozen = true;
    assert_int_equal(try_begin(&hosts[1], medium, "b", &options, NULL), 0);
    thread_join(&thread);
    options.frozen = false;
    assert_int_equal(try_begin(&hosts[0], medium, "a", &options, NULL), 0);
    assert_int_equal(try_begin(&hosts[2], medium, "c", &options, NULL), 0);
    must(run(&hosts[1], write_command(WRITE_INDEX, "2")));
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* Returns: the life of a host, as another one has it; 0: it is out. */
static uint64_t life_of(struct host *host, const char *name)
{
    struct journal_host *all;
    size_t count = journal_hosts(host->journal, &all);
    uint64_t life = 0;
    for (size_t i = 0; i < count; i++)
        if (slice_is(all[i].name, name))
            life = all[i].life;
    mem_free(all);
    return life;
}

/*
 * A host that gets no newer list of the log's members does not take one that has joined since for one that is
 * out, however often it looks.
 */
static void test_host_that_is_newer_than_the_list_is_not_expelled(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    (void)state;
    begin(&hosts[0], medium, "a");
    cmdlog_double_freeze_hosts(hosts[0].log, true);
    begin(&hosts[1], medium, "b");
    catch_up(&hosts[0]);
    uint64_t life = life_of(&hosts[0], "b");
    assert_true(life != 0);
    cmdlog_double_await_lists(hosts[0].log, 20); /* it would have been reported at the first one */
    must(run(&hosts[1], write_command(WRITE_INDEX, "1")));
    catch_up(&hosts[0]);
    assert_int_equal(life_of(&hosts[0], "b"), life);
    cmdlog_double_freeze_hosts(hosts[0].log, false);
    compare_and_end(hosts, 2);
    double_medium_free(medium);
}

/*
 * The first list of the log's members without a host shows that its life is over: it is reported at once, so that
 * writes that wait for it are answered.
 */
static void test_host_missing_in_list_is_reported_at_once(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    catch_up(&hosts[0]);
    assert_true(life_of(&hosts[0], "b") != 0);
    cmdlog_double_freeze_hosts(hosts[0].log, true); /* its own thread finds nothing */
    cmdlog_double_stay(hosts[1].log);
    stop(&hosts[1]);
    const struct cmdlog_hosts none = {.version = 1, .asked = clock_boot_us()};
    cluster__report_gone(hosts[0].journal, &none);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1"))); /* after that */
    assert_true(life_of(&hosts[0], "b") == 0);
    cmdlog_double_freeze_hosts(hosts[0].log, false);
    end(&hosts[0]);
    store_close(hosts[1].store);
    double_medium_free(medium);
}

struct start_reports {
    int begun, replayed, ended;
    struct recover_progress newest;
};

static void count_report(void *context, const struct recover_progress *progress)
{
    struct start_reports *reports = context;
    const struct recover_progress *newest = &reports->newest;
    bool first = reports->begun == 0;
    assert_true(progress->shared);
    assert_int_equal(progress->bytes_total, 0);
    assert_int_equal(progress->phase == RECOVER_BEGINS, first);
    assert_int_equal(reports->ended, 0);
    assert_true(progress->position <= progress->last && progress->last >= newest->last);
    assert_int_equal(progress->entries, first ? 0 : newest->entries + 1);
    assert_true(first || (progress->position > newest->position && progress->bytes > newest->bytes &&
                          progress->us >= newest->us && progress->checkpoint == newest->checkpoint));
    reports->begun += progress->phase == RECOVER_BEGINS;
    reports->replayed += progress->phase == RECOVER_REPLAYS;
    reports->ended += progress->phase == RECOVER_ENDED;
    reports->newest = *progress;
}

static void begin_observed(struct host *host, struct double_medium *medium, const char *name,
                           const struct recover_observer *observer)
{
    struct options options = plain();
    options.observer = observer;
    assert_int_equal(try_begin(host, medium, name, &options, NULL), 0);
}

/* Expects that a start has reported each entry after position `from` of the log, up to the host's JOIN. */
static void expect_start_reports(const struct start_reports *reports, struct cmdlog *log, cmdlog_position from)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    uint64_t bytes = 0, entries = 0;
    assert_int_equal(cmdlog_follow(log, from + 1, &cursor), 0);
    while (cmdlog_next(cursor, &entry) == 0 && entry.position <= reports->newest.position) {
        bytes += entry.bytes.len;
        entries++;
    }
    cmdlog_unfollow(cursor);
    assert_int_equal(reports->begun, 1);
    assert_int_equal(reports->replayed, entries - 1);
    assert_int_equal(reports->ended, 1);
    assert_int_equal(reports->newest.checkpoint, from);
    assert_int_equal(reports->newest.entries, entries);
    assert_int_equal(reports->newest.bytes, bytes);
}

/*
 * A start reports the entries that it applies before the host has joined: its begin, its progress before each other
 * entry (with a period of 0), and its end. So does a restart from a checkpoint. With nothing but its own JOIN in the
 * log it reports nothing, and after it has joined nothing more.
 */
static void test_start_reports_its_progress(void **state)
{
    enum { WRITES = 20, STARTS = 3 };
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct start_reports reports[STARTS] = {0};
    struct recover_observer observers[STARTS];
    (void)state;

    for (int start = 0; start < STARTS; start++)
        observers[start] = (struct recover_observer){count_report, &reports[start], 0};
    begin_observed(&hosts[0], medium, "a", &observers[0]);
    for (int start = 1; start < STARTS; start++) {
        for (int i = 0; i < WRITES; i++)
            must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
        begin_observed(&hosts[1], medium, "b", &observers[start]);
        must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
        catch_up(&hosts[1]);
        expect_start_reports(&reports[start], hosts[1].log, reports[start].newest.checkpoint);
        assert_true(reports[start].newest.entries > (uint64_t)WRITES);
        assert_int_equal(reports[start].newest.checkpoint == 0, start == 1);
        assert_int_equal(journal_checkpoint(hosts[1].journal), 0);
        stop(&hosts[1]);
    }
    assert_int_equal(reports[0].begun + reports[0].replayed + reports[0].ended, 0);
    end(&hosts[0]);
    store_close(hosts[1].store);
    double_medium_free(medium);
}

/* A restart from the store keeps the host's number. */
static void test_restarted_host_keeps_its_number(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    (void)state;

    begin_all(hosts, medium);
    must(run(&hosts[1], write_command(WRITE_INDEX, "1")));
    uint16_t number = journal_host_number(hosts[1].journal);
    for (int i = 0; i < 3; i++) {
        stop(&hosts[1]);
        must(run(&hosts[0], write_command(WRITE_INDEX, "2")));
        begin(&hosts[1], medium, "b");
        must(run(&hosts[1], write_command(WRITE_INDEX, "3")));
    }
    assert_int_equal(journal_host_number(hosts[1].journal), number);
    struct command *command;
    assert_int_equal(journal_forget_host(hosts[0].journal, SLICE_LIT("b"), &command), JOURNAL_HOST_LIVES);
    assert_int_equal(journal_forget_host(hosts[0].journal, SLICE_LIT("x"), &command), JOURNAL_HOST_UNKNOWN);
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* Checks that the checkpoint of a stopped host has the size of all entries up to its position. */
static void expect_log_bytes(struct host *host, struct cmdlog *log)
{
    struct core_limits limits = core_limits_default();
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct core *core;
    cmdlog_position position;
    uint64_t log_bytes, bytes = 0;
    assert_int_equal(recover_begin(host->store, &limits, &core, &position, &log_bytes, NULL), 0);
    core_close(core);
    assert_int_equal(cmdlog_follow(log, 1, &cursor), 0);
    while (cmdlog_next(cursor, &entry) == 0 && entry.position <= position)
        bytes += entry.bytes.len;
    cmdlog_unfollow(cursor);
    assert_true(bytes > 0);
    assert_int_equal(log_bytes, bytes);
}

/* Hosts that began at different times count the same, and a restart continues from the checkpoint. */
static void test_checkpoint_counts_bytes_of_log(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    (void)state;

    begin(&hosts[0], medium, names[0]);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    begin(&hosts[1], medium, names[1]);
    begin(&hosts[2], medium, names[2]);
    for (int i = 0; i < 2; i++) {
        must(run(&hosts[0], write_command(WRITE_INDEX, "2")));
        stop(&hosts[1]);
        expect_log_bytes(&hosts[1], hosts[0].log);
        must(run(&hosts[0], write_command(WRITE_INDEX, "3")));
        begin(&hosts[1], medium, names[1]);
    }
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

static struct journal_host seen_of(struct host *host, const char *name)
{
    struct journal_host *all, seen = {0};
    size_t count = journal_hosts(host->journal, &all);
    for (size_t i = 0; i < count; i++)
        if (slice_is(all[i].name, name))
            seen = all[i];
    mem_free(all);
    return seen;
}

/* A host that has sent no heartbeat since this process began has an unknown lag, and not none. */
static void test_lag_is_unknown_before_a_heartbeat(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    (void)state;

    begin_all(hosts, medium);
    while (seen_of(&hosts[1], "a").silent_us == UINT64_MAX)
        usleep(1000);
    cmdlog_double_cut(hosts[0].log, true);
    catch_up(&hosts[1]); /* with all heartbeats of a */
    stop(&hosts[1]);
    begin(&hosts[1], medium, names[1]);
    struct journal_host seen = seen_of(&hosts[1], "a");
    assert_true(seen.number > 0);
    assert_true(seen.silent_us == UINT64_MAX && seen.lag_us == UINT64_MAX);
    cmdlog_double_cut(hosts[0].log, false);
    while (seen_of(&hosts[1], "a").silent_us == UINT64_MAX)
        usleep(1000);
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* What a heartbeat's host had not applied is counted, and forgotten with the next one. */
static void test_lag_is_what_a_heartbeat_lacks(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[HOSTS] = {0};
    (void)state;

    begin_all(hosts, medium);
    bool behind = false;
    while (!behind) { /* repeated where the next heartbeat comes before it is looked at */
        cmdlog_double_hold(hosts[0].log, true);
        cmdlog_double_await_held(hosts[0].log, 1);
        for (int i = 0; i < 20; i++)
            must(run(&hosts[1], write_command(WRITE_INDEX, "x")));
        assert_true(seen_of(&hosts[1], "a").lag_entries < 20); /* nothing has come of it */
        uint64_t before = seen_of(&hosts[1], "a").position;
        cmdlog_double_hold(hosts[0].log, false);
        while (seen_of(&hosts[1], "a").position == before)
            usleep(1000);
        struct journal_host seen = seen_of(&hosts[1], "a");
        behind = seen.lag_entries >= 20 && seen.lag_us > 0;
    }
    while (seen_of(&hosts[1], "a").lag_entries >= 20)
        usleep(10000);
    assert_int_equal(seen_of(&hosts[0], "a").clock_offset_us, 0);
    compare_and_end(hosts, HOSTS);
    double_medium_free(medium);
}

/* Returns: the position of the entry with a write of the document. */
static cmdlog_position position_of(struct host *host, const char *id)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    cmdlog_position found = 0;
    assert_int_equal(cmdlog_follow(host->log, 1, &cursor), 0);
    while (found == 0 && cmdlog_next(cursor, &entry) == 0) {
        struct list commands = LIST_INIT(commands);
        struct command_group_header head;
        assert_int_equal(command_group_decode(entry.bytes, &head, &commands), 0);
        while (!list_empty(&commands)) {
            struct command *command = list_entry(commands.next, struct command, link);
            if (command->type == COMMAND_WRITE && slice_is(command->write.items->id, id))
                found = entry.position;
            list_remove(&command->link);
            command_free(command);
        }
    }
    cmdlog_unfollow(cursor);
    return found;
}

/* Returns: the header of the entry at a position. */
static struct command_group_header header_at(struct host *host, cmdlog_position position)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct command_group_header head;
    assert_int_equal(cmdlog_follow(host->log, position, &cursor), 0);
    assert_int_equal(cmdlog_next(cursor, &entry), 0);
    assert_int_equal(command_group_read_header(entry.bytes, &head), 0);
    cmdlog_unfollow(cursor);
    return head;
}

/* The entries of a host say whether it has memory; the others apply them as they are. */
static void test_entries_say_whether_memory_of_their_host_is_full(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct options options = plain();
    struct budget budget;
    (void)state;
    budget_init(&budget, (size_t)1 << 40);
    atomic_store(&budget.promised, budget.limit);
    options.budget = &budget;
    assert_int_equal(try_begin(&hosts[0], medium, "a", &options, NULL), 0);
    begin(&hosts[1], medium, "b");
    must(run(&hosts[0], write_command(WRITE_INDEX, "full")));
    must(run(&hosts[1], write_command(WRITE_INDEX, "free")));
    struct command_group_header full = header_at(&hosts[0], position_of(&hosts[0], "full"));
    struct command_group_header free = header_at(&hosts[0], position_of(&hosts[0], "free"));
    assert_true(full.memory_full && full.life != 0);
    assert_true(!free.memory_full && free.life != 0);
    compare_and_end(hosts, 2);
    double_medium_free(medium);
}

/*
 * Finds the entry with a write of a document, or the end of a session. Returns: how many commands it has after that;
 * -1: there is no such entry.
 */
static int commands_after(struct host *host, const char *id)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    int after = -1;
    assert_int_equal(cmdlog_follow(host->log, 1, &cursor), 0);
    while (after < 0 && cmdlog_next(cursor, &entry) == 0) {
        struct list commands = LIST_INIT(commands);
        struct command_group_header head;
        assert_int_equal(command_group_decode(entry.bytes, &head, &commands), 0);
        list_for_each(link, &commands)
        {
            const struct command *command = list_entry(link, struct command, link);
            after += after >= 0;
            if ((command->type == COMMAND_WRITE && slice_is(command->write.items->id, id)) ||
                (command->type == COMMAND_SESSION_CLOSE && slice_is(command->session.id, id)))
                after = 0;
        }
        command_free_all(&commands);
    }
    cmdlog_unfollow(cursor);
    return after;
}

static struct command *session_of(enum command_type type, const char *id, bool force)
{
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = arena_printf(&command->arena, "%s", id);
    command->session.ttl_us = LONG_US;
    command->session.force = force;
    return command;
}

/* The end of a session that may have actions is the last command of its entry, so that the next entry asks again. */
static void test_forced_end_of_session_ends_its_entry(void **state)
{
    enum { COUNT = 5 };
    static const char *const ids[COUNT] = {"first", "forced", "second", "closed", "third"};
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    struct options options = plain();
    struct cluster_request lead, requests[COUNT];
    (void)state;
    options.directory = "."; /* it measures the space with core_lock: the proposer takes `lead`, and waits */
    assert_int_equal(try_begin(&host, medium, "a", &options, NULL), 0);
    must(run(&host, session_of(COMMAND_SESSION_OPEN, "forced", false)));
    must(run(&host, session_of(COMMAND_SESSION_OPEN, "closed", false)));
    pthread_mutex_lock(&host.journal->core_lock);
    ask(&host, &lead, write_command(WRITE_INDEX, "lead"));
    for (int i = 0; i < COUNT; i++)
        ask(&host, &requests[i],
            i % 2 == 0 ? write_command(WRITE_INDEX, ids[i]) : session_of(COMMAND_SESSION_CLOSE, ids[i], i == 1));
    pthread_mutex_unlock(&host.journal->core_lock);
    must(answer(&lead));
    for (int i = 0; i < COUNT; i++)
        must(answer(&requests[i]));
    assert_true(commands_after(&host, "first") >= 1);
    assert_int_equal(commands_after(&host, "forced"), 0);
    assert_true(commands_after(&host, "second") >= 2);
    assert_true(commands_after(&host, "closed") >= 1);
    end(&host);
    double_medium_free(medium);
}

/* Two hosts that apply the log again, one from the first entry on, pass the entry alike. */
static void test_skipped_entry_is_passed_by_every_host(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct options with = plain();
    struct cmdlog_skips *skips = mem_zalloc(sizeof *skips + sizeof skips->positions[0]);
    (void)state;
    begin(&hosts[0], medium, "a");
    must(run(&hosts[0], write_command(WRITE_CREATE, "1")));
    must(run(&hosts[0], write_command(WRITE_CREATE, "2")));
    must(run(&hosts[0], write_command(WRITE_CREATE, "3")));
    skips->positions[0] = position_of(&hosts[0], "2");
    skips->count = 1;
    assert_true(skips->positions[0] > 0);
    double_medium_skip(medium, skips->positions[0]);
    end(&hosts[0]);

    hosts[0].store = NULL; /* empty: it applies the whole log */
    with.skips = skips;
    assert_int_equal(try_begin(&hosts[0], medium, "a", &with, NULL), 0);
    assert_int_equal(try_begin(&hosts[1], medium, "b", &with, NULL), 0);
    catch_up(&hosts[0]);
    assert_true(has(&hosts[0], "1") && has(&hosts[0], "3"));
    assert_false(has(&hosts[0], "2"));
    must(run(&hosts[1], write_command(WRITE_CREATE, "2")));
    compare_and_end(hosts, 2);
    double_medium_free(medium);
    mem_free(skips);
}

/*
 * A host that is out and forgotten does not prevent a skip (cmdlog README.md, guarantee 15). When it
 * is back it passes the entry, which it had not applied.
 */
static void test_entry_skipped_while_host_is_out_is_passed(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct options with = plain();
    struct cmdlog_skips *skips = mem_zalloc(sizeof *skips + sizeof skips->positions[0]);
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    must(run(&hosts[0], write_command(WRITE_CREATE, "1")));
    catch_up(&hosts[1]);
    cmdlog_double_cut(hosts[1].log, true);
    double_medium_end_life(medium, "b");
    must(run(&hosts[0], write_command(WRITE_CREATE, "2")));
    must(run(&hosts[0], write_command(WRITE_CREATE, "3")));
    skips->positions[0] = position_of(&hosts[0], "2");
    skips->count = 1;
    double_medium_skip(medium, skips->positions[0]);
    end(&hosts[0]);
    hosts[0].store = NULL; /* empty: it applies the log again, as the only known host */
    with.skips = skips;
    assert_int_equal(try_begin(&hosts[0], medium, "a", &with, NULL), 0);

    cmdlog_double_cut(hosts[1].log, false);
    must(run(&hosts[1], write_command(WRITE_CREATE, "4")));
    assert_true(has(&hosts[1], "1") && has(&hosts[1], "3"));
    assert_false(has(&hosts[1], "2"));
    compare_and_end(hosts, 2);
    double_medium_free(medium);
    mem_free(skips);
}

static void apply_then_find_skipped(void)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    must(run(&hosts[0], write_command(WRITE_CREATE, "1")));
    catch_up(&hosts[1]);
    cmdlog_double_cut(hosts[1].log, true);
    double_medium_end_life(medium, "b");
    double_medium_skip(medium, position_of(&hosts[0], "1"));
    end(&hosts[0]);
    cmdlog_double_cut(hosts[1].log, false);
    for (;;)
        pause();
}

static void test_host_that_applied_skipped_entry_ends(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        apply_then_find_skipped();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 71);
}

/* --- Space in the log --------------------------------------------------------------------------------------------- */

static const struct cmdlog_space tight = {.used = 85, .size = 85, .quota = 100, .tight = true};
static const struct cmdlog_space full = {.used = 92, .size = 92, .quota = 100, .tight = true, .full = true};

/* Returns: the position of the checkpoint that the host has reported to the log; 0: none. */
static cmdlog_position checkpoint_of(struct host *host)
{
    char buffer[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint checkpoint;
    return cmdlog_get_checkpoint(host->log, 0, buffer, &checkpoint) == 0 ? checkpoint.position : 0;
}

static void test_checkpoint_begins_at_once_when_log_space_is_tight(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    must(run(&host, write_command(WRITE_INDEX, "1")));
    assert_int_equal(checkpoint_of(&host), 0);
    double_medium_set_space(medium, tight);
    while (checkpoint_of(&host) == 0)
        usleep(1000);
    must(run(&host, write_command(WRITE_INDEX, "2")));
    end(&host);
    double_medium_free(medium);
}

/*
 * The log has raised its alarm before the checkpoint was reported, and an operator removes the alarm.
 * Writes are refused still, so no further checkpoint is due: heartbeats are a small part of the quota.
 */
static void test_checkpoint_is_reported_again_when_log_accepts_it(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cmdlog_space space = {.quota = 1 << 30, .tight = true, .full = true, .exhausted = true};
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    must(run(&host, write_command(WRITE_INDEX, "1")));
    double_medium_set_space(medium, space);
    while (double_medium_refused_checkpoints(medium) == 0)
        usleep(1000);
    space.exhausted = false;
    double_medium_set_space(medium, space);
    while (checkpoint_of(&host) == 0)
        usleep(1000);
    end(&host);
    double_medium_free(medium);
}

static void test_checkpoint_is_due_after_so_much_log(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    struct options options = plain();
    (void)state;
    options.checkpoint_log_bytes = 1 << 10;
    assert_int_equal(try_begin(&host, medium, "a", &options, NULL), 0);
    while (checkpoint_of(&host) == 0)
        must(run(&host, write_command(WRITE_INDEX, "1")));
    end(&host);
    double_medium_free(medium);
}

static void test_full_log_refuses_added_data_only(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    must(run(&host, session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    must(run(&host, lock_command(COMMAND_LOCK, "s", LONG_US)));
    assert_true(journal_writable(host.journal));
    double_medium_set_space(medium, full);
    assert_false(journal_writable(host.journal));
    assert_int_equal(run(&host, write_command(WRITE_INDEX, "1")), PROBLEM_DISK_FULL);
    must(run(&host, session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)));
    must(run(&host, lock_command(COMMAND_UNLOCK, "s", LONG_US)));
    double_medium_set_space(medium, (struct cmdlog_space){.quota = 100});
    must(run(&host, write_command(WRITE_INDEX, "1")));
    end(&host);
    double_medium_free(medium);
}

/* Returns: how many commands of clients the newest entry with any has. `from`: the first entry that is looked at. */
static unsigned newest_entry_commands(struct host *host, cmdlog_position from)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct slice commands, bytes;
    unsigned newest = 0;
    assert_int_equal(cmdlog_follow(host->log, from, &cursor), 0);
    while (cmdlog_next(cursor, &entry) == 0) {
        unsigned count = 0;
        assert_int_equal(command_group_open(entry.bytes, &commands), 0);
        while (command_group_take(&commands, &bytes))
            count += command_read_type(bytes) == COMMAND_WRITE;
        newest = count > 0 ? count : newest;
    }
    cmdlog_unfollow(cursor);
    return newest;
}

/* Commands that arrive while the proposer waits for an entry in flight are in its next entry, all of them, in order. */
static void test_commands_join_entry_while_log_is_busy(void **state)
{
    enum { JOINING = 5 };
    struct double_medium *medium = double_medium_new();
    struct cluster_request first, joining[JOINING];
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    cmdlog_double_set_patient(host.log, true);
    cmdlog_double_hold(host.log, true);
    cmdlog_position head = double_medium_head(medium);
    ask(&host, &first, write_command(WRITE_INDEX, "1"));
    cmdlog_double_await_held(host.log, 1);
    ask(&host, &joining[0], write_command(WRITE_CREATE, "2"));
    cmdlog_double_await_waiting(host.log);
    for (int i = 1; i < JOINING; i++)
        ask(&host, &joining[i], write_command(WRITE_CREATE, "2"));
    cmdlog_double_hold(host.log, false);
    must(answer(&first));
    must(answer(&joining[0]));
    for (int i = 1; i < JOINING; i++) /* after it */
        assert_int_equal(answer(&joining[i]), PROBLEM_VERSION_CONFLICT);
    assert_true(newest_entry_commands(&host, head + 1) >= JOINING); /* and `first`, if a heartbeat was in flight */
    end(&host);
    double_medium_free(medium);
}

/* The log has space for small entries: a release is ordered although a write of its entry finds none. */
static void test_log_without_space_refuses_large_commands_only(void **state)
{
    enum { BYTES = 100000, BESIDE = 2 };
    struct double_medium *medium = double_medium_new();
    struct cluster_request write, unlock, beside[BESIDE], small;
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    must(run(&host, session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    must(run(&host, lock_command(COMMAND_LOCK, "s", LONG_US)));
    cmdlog_double_hold(host.log, true);
    for (int i = 0; i < BESIDE; i++) {
        ask(&host, &beside[i], session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US));
        cmdlog_double_await_held(host.log, i + 1);
    }
    struct command *large = write_command(WRITE_INDEX, "2");
    large->write.items->source = arena_printf(&large->arena, "{\"v\":1%*s}", BYTES, "");
    ask(&host, &unlock, lock_command(COMMAND_UNLOCK, "s", LONG_US));
    ask(&host, &write, large);
    ask(&host, &small, write_command(WRITE_INDEX, "3"));
    cmdlog_double_await_busy(host.log, 2); /* the entry after the first one has all three */
    double_medium_set_entry_max(medium, BYTES);
    cmdlog_double_hold(host.log, false);
    assert_int_equal(answer(&write), PROBLEM_DISK_FULL);
    must(answer(&unlock));
    must(answer(&small));
    for (int i = 0; i < BESIDE; i++)
        must(answer(&beside[i]));
    assert_false(has(&host, "2"));
    end(&host);
    double_medium_free(medium);
}

/*
 * The log accepts a submission, and refuses the entry for lack of space later, as etcd does when a member has
 * reached its quota. A release of such an entry is ordered, and a write of it that needs no more space than there is.
 */
static void refuse_later(enum double_refusal when)
{
    enum { BYTES = 100000, BESIDE = 2 };
    struct double_medium *medium = double_medium_new();
    struct cluster_request write, unlock, beside[BESIDE], small, last;
    struct host host = {0};
    begin(&host, medium, "a");
    must(run(&host, session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    must(run(&host, lock_command(COMMAND_LOCK, "s", LONG_US)));
    cmdlog_double_hold(host.log, true);
    for (int i = 0; i < BESIDE; i++) {
        ask(&host, &beside[i], session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US));
        cmdlog_double_await_held(host.log, i + 1);
    }
    struct command *large = write_command(WRITE_INDEX, "2");
    large->write.items->source = arena_printf(&large->arena, "{\"v\":1%*s}", BYTES, "");
    ask(&host, &unlock, lock_command(COMMAND_UNLOCK, "s", LONG_US));
    ask(&host, &write, large);
    ask(&host, &small, write_command(WRITE_INDEX, "3"));
    cmdlog_double_await_busy(host.log, 2); /* the entry after the first one has all three */
    cmdlog_double_refuse_held(host.log, DOUBLE_REFUSE_NOW);
    for (int i = 0; i < BESIDE; i++)
        assert_int_equal(answer(&beside[i]), PROBLEM_DISK_FULL);
    cmdlog_double_await_held(host.log, 1);
    double_medium_set_entry_max(medium, BYTES);
    cmdlog_double_refuse_held(host.log, when);
    ask(&host, &last, write_command(WRITE_INDEX, "4"));
    cmdlog_double_await_refused(host.log);
    cmdlog_double_hold(host.log, false);
    assert_int_equal(answer(&write), PROBLEM_DISK_FULL);
    must(answer(&unlock));
    must(answer(&small));
    must(answer(&last));
    assert_false(has(&host, "2"));
    assert_true(has(&host, "3"));
    end(&host);
    double_medium_free(medium);
}

static void test_entry_that_log_refuses_later_is_divided(void **state)
{
    (void)state;
    refuse_later(DOUBLE_REFUSE_NOW);
}

static void test_entry_whose_number_is_reused_is_divided(void **state)
{
    (void)state;
    refuse_later(DOUBLE_REFUSE_AT_SUBMIT);
}

/*
 * The log accepts a JOIN, and refuses it for lack of space later. The host joins again: without that it would
 * wait without end for a JOIN that never comes.
 */
static void test_join_that_log_refuses_later_is_repeated(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    must(run(&host, session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    cmdlog_double_hold(host.log, true);
    double_medium_end_life(medium, "a");
    while (journal_serves(host.journal))
        usleep(1000);
    cmdlog_double_await_held(host.log, 1); /* JOIN */
    cmdlog_double_refuse_held(host.log, DOUBLE_REFUSE_NOW);
    cmdlog_double_hold(host.log, false);
    must(run(&host, session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)));
    end(&host);
    double_medium_free(medium);
}

/* Heartbeats keep hosts comparable where nothing else is appended. */
static void test_scarce_log_has_heartbeats_only(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct cmdlog_space scarce = full;
    (void)state;
    scarce.scarce = true;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    must(run(&hosts[0], session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    double_medium_set_space(medium, scarce);
    assert_int_equal(run(&hosts[0], session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)), PROBLEM_DISK_FULL);
    cmdlog_position position = double_medium_head(medium);
    for (int i = 0; i < 2; i++)
        while (seen_of(&hosts[i], names[1 - i]).position <= position)
            usleep(1000);
    double_medium_set_space(medium, full);
    must(run(&hosts[0], session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)));
    compare_and_end(hosts, 2);
    double_medium_free(medium);
}

static enum problem_type forget(struct host *host, const char *name)
{
    struct command *command;
    assert_int_equal(journal_forget_host(host->journal, slice_from(name), &command), 0);
    return run(host, command);
}

/* To forget a host, so that the log can be trimmed further, is possible when its space is scarce. */
static void test_host_is_forgotten_while_log_is_scarce(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct cmdlog_space scarce = full;
    struct journal_host *all;
    (void)state;
    scarce.scarce = true;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    double_medium_set_space(medium, scarce);
    end(&hosts[1]);
    while (is_live(&hosts[0], "b"))
        usleep(1000);
    must(forget(&hosts[0], "b"));
    size_t count = journal_hosts(hosts[0].journal, &all);
    mem_free(all);
    assert_int_equal(count, 1);
    end(&hosts[0]);
    double_medium_free(medium);
}

/* A host that is out is asked to forget itself, before its JOIN is in the log: it runs, and keeps its checkpoint. */
static void test_host_that_is_out_does_not_forget_itself(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct command *command = NULL;
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    cmdlog_double_hold(hosts[1].log, true);
    double_medium_end_life(medium, "b");
    while (is_live(&hosts[1], "b"))
        usleep(1000);
    int r = journal_forget_host(hosts[1].journal, SLICE_LIT("b"), &command);
    cmdlog_double_hold(hosts[1].log, false);
    assert_int_equal(r, JOURNAL_HOST_LIVES);
    must(run(&hosts[1], write_command(WRITE_INDEX, "1")));
    compare_and_end(hosts, 2);
    double_medium_free(medium);
}

/* A host is a member of the log before its JOIN is applied: it is not forgotten, and keeps its checkpoint. */
static void test_host_that_joins_is_not_forgotten(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct command *command = NULL;
    struct cmdlog_lease before, lease;
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    cmdlog_lease(hosts[1].log, &before);
    cmdlog_double_hold(hosts[1].log, true);
    double_medium_end_life(medium, "b");
    do {
        usleep(1000);
        cmdlog_lease(hosts[1].log, &lease);
    } while (is_live(&hosts[0], "b") || lease.life == 0 || lease.life == before.life);
    int r = journal_forget_host(hosts[0].journal, SLICE_LIT("b"), &command);
    cmdlog_double_hold(hosts[1].log, false);
    assert_int_equal(r, JOURNAL_HOST_LIVES);
    must(run(&hosts[1], write_command(WRITE_INDEX, "1")));
    compare_and_end(hosts, 2);
    double_medium_free(medium);
}

/* If the log has no space for any entry, the request is refused; its client may repeat it. */
static void test_forgetting_a_host_is_refused_while_log_takes_nothing(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct journal_host *all;
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    end(&hosts[1]);
    while (is_live(&hosts[0], "b"))
        usleep(1000);
    double_medium_set_entry_max(medium, 1);
    assert_int_equal(forget(&hosts[0], "b"), PROBLEM_DISK_FULL);
    double_medium_set_entry_max(medium, 0);
    must(forget(&hosts[0], "b"));
    size_t count = journal_hosts(hosts[0].journal, &all);
    mem_free(all);
    assert_int_equal(count, 1);
    end(&hosts[0]);
    double_medium_free(medium);
}

/* Begins a wait for a lock that session "s" has; it is in the core on return. */
static void begin_wait(struct host *host, struct cluster_request *wait, struct command_waiter *waiter)
{
    struct command *lock = lock_command(COMMAND_LOCK, "t", LONG_US);
    lock->waiter = waiter;
    must(run(host, session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    must(run(host, session_command(COMMAND_SESSION_OPEN, "t", LONG_US)));
    must(run(host, lock_command(COMMAND_LOCK, "s", LONG_US)));
    ask(host, wait, lock);
    must(run(host, session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)));
}

/*
 * No client repeats the end of a wait, or of an attachment, whose client is gone: it is ordered when the log
 * has space.
 */
static void test_ends_of_waits_outlast_lack_of_space(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cluster_request wait, detach;
    struct command_waiter waiter = {0};
    struct host host = {0};
    struct cmdlog_space scarce = full;
    (void)state;
    scarce.scarce = true;
    begin(&host, medium, "a");
    begin_wait(&host, &wait, &waiter);
    double_medium_set_space(medium, scarce);
    journal_cancel_waiter(host.journal, &waiter);
    ask(&host, &detach, session_command(COMMAND_SESSION_DETACH, "s", LONG_US));
    assert_int_equal(run(&host, session_command(COMMAND_SESSION_KEEPALIVE, "s", LONG_US)), PROBLEM_DISK_FULL);
    assert_false(is_answered(&wait) || is_answered(&detach));
    double_medium_set_space(medium, full);
    assert_int_equal(answer(&wait), PROBLEM_LOCK_WAIT_TIMEOUT);
    must(answer(&detach));
    end(&host);
    double_medium_free(medium);
}

/* The same, if etcd refuses it after the log has accepted it. */
static void test_end_of_wait_that_log_refuses_later_is_repeated(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cluster_request wait;
    struct command_waiter waiter = {0};
    struct host host = {0};
    (void)state;
    begin(&host, medium, "a");
    begin_wait(&host, &wait, &waiter);
    cmdlog_double_hold(host.log, true);
    journal_cancel_waiter(host.journal, &waiter);
    cmdlog_double_await_held(host.log, 2); /* with a heartbeat, which is due each second */
    cmdlog_double_refuse_held(host.log, DOUBLE_REFUSE_NOW);
    cmdlog_double_hold(host.log, false);
    assert_int_equal(answer(&wait), PROBLEM_LOCK_WAIT_TIMEOUT);
    end(&host);
    double_medium_free(medium);
}

/*
 * A log that cannot be reached for longer than the limit of commands, while the life continues, does not lose it
 * either.
 */
static void test_end_of_wait_outlasts_timeout(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cluster_request wait, sent[2], queued;
    struct command_waiter waiter = {0};
    struct options options = plain();
    struct host host = {0};
    (void)state;
    options.timeout_us = 2 * TL_SECOND;
    assert_int_equal(try_begin(&host, medium, "a", &options, NULL), 0);
    begin_wait(&host, &wait, &waiter);
    cmdlog_double_hold(host.log, true);
    for (int i = 0; i < 2; i++) { /* a heartbeat may be in flight, too */
        ask(&host, &sent[i], write_command(WRITE_INDEX, "1"));
        cmdlog_double_await_held(host.log, i + 1);
    }
    cmdlog_double_await_held(host.log, 2);
    journal_cancel_waiter(host.journal, &waiter);
    ask(&host, &queued, write_command(WRITE_INDEX, "2"));
    (void)expect_timeout(answer(&queued));
    for (int i = 0; i < 2; i++)
        (void)expect_timeout(answer(&sent[i]));
    cmdlog_double_hold(host.log, false);
    assert_int_equal(answer(&wait), PROBLEM_LOCK_WAIT_TIMEOUT);
    end(&host);
    double_medium_free(medium);
}

/* Nor does a refusal after that limit, when the entry was given up. */
static void test_end_of_wait_outlasts_refusal_of_abandoned_entry(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cluster_request wait, queued;
    struct command_waiter waiter = {0};
    struct options options = plain();
    struct host host = {0};
    (void)state;
    options.timeout_us = 2 * TL_SECOND;
    assert_int_equal(try_begin(&host, medium, "a", &options, NULL), 0);
    begin_wait(&host, &wait, &waiter);
    cmdlog_double_hold(host.log, true);
    journal_cancel_waiter(host.journal, &waiter);
    cmdlog_double_await_held(host.log, 2); /* with a heartbeat */
    ask(&host, &queued, write_command(WRITE_INDEX, "1"));
    assert_int_equal(answer(&queued), PROBLEM_LOG_UNAVAILABLE); /* so they were given up */
    cmdlog_double_refuse_held(host.log, DOUBLE_REFUSE_NOW);
    cmdlog_double_hold(host.log, false);
    assert_int_equal(answer(&wait), PROBLEM_LOCK_WAIT_TIMEOUT);
    end(&host);
    double_medium_free(medium);
}

/* Counts the CANCELs in the log: of all waits of a host, and of one request. */
static void count_logged_cancels(struct host *host, size_t *ret_all, size_t *ret_one)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    *ret_all = *ret_one = 0;
    assert_int_equal(cmdlog_follow(host->log, 1, &cursor), 0);
    while (cmdlog_next(cursor, &entry) == 0) {
        struct list commands = LIST_INIT(commands);
        struct command_group_header head;
        assert_int_equal(command_group_decode(entry.bytes, &head, &commands), 0);
        while (!list_empty(&commands)) {
            struct command *command = list_entry(commands.next, struct command, link);
            bool all = command->cancel.request == host_of_number(command->cancel.request) << HOST_SHIFT;
            if (command->type == COMMAND_CANCEL)
                ++*(all ? ret_all : ret_one);
            list_remove(&command->link);
            command_free(command);
        }
    }
    cmdlog_unfollow(cursor);
}

/*
 * A host that ends cancels all of its waits once, whatever its clients send after that: each later request that would
 * wait is answered by a CANCEL of its own.
 */
static void test_end_cancels_all_waits_once(void **state)
{
    enum { LATER = 20 };
    struct double_medium *medium = double_medium_new();
    struct cluster_request wait;
    struct host host = {0};
    struct command *write = write_command(WRITE_INDEX, "1");
    size_t all, one;
    (void)state;
    begin(&host, medium, "a");
    begin_wait(&host, &wait, NULL);
    journal_end_waits(host.journal);
    assert_int_equal(answer(&wait), PROBLEM_STOPPING);
    for (int i = 0; i < LATER; i++)
        assert_int_equal(run(&host, lock_command(COMMAND_LOCK, "t", LONG_US)), PROBLEM_STOPPING);
    assert_int_equal(run(&host, write), PROBLEM_STOPPING);
    journal_end_waits(host.journal);
    must(run(&host, write_command(WRITE_INDEX, "2"))); /* it is not locked */
    catch_up(&host);
    count_logged_cancels(&host, &all, &one);
    assert_int_equal(all, 1);
    assert_int_equal(one, LATER + 2);
    end(&host);
    double_medium_free(medium);
}

static size_t count_cancels(const struct list *commands)
{
    size_t count = 0;
    list_for_each(link, commands) count += list_entry(link, struct command, link)->type == COMMAND_CANCEL;
    return count;
}

/* Those that are queued, also while an attempt to submit them is made. */
static size_t count_queued_cancels(struct host *host)
{
    struct journal *journal = host->journal;
    pthread_mutex_lock(&journal->queue_lock);
    size_t count = count_cancels(&journal->queue);
    list_for_each(link, &journal->cluster->inflight)
    {
        count += count_cancels(&list_entry(link, struct inflight_entry, link)->commands);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return count;
}

/* Clients that come and go while the log cannot be reached leave nothing in the queue. */
static void test_cancel_of_command_that_never_happens_is_dropped(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cluster_request wait, sent[2], locks[3];
    struct command_waiter waiter = {0}, waiters[3] = {0};
    struct options options = plain();
    struct host host = {0};
    (void)state;
    options.timeout_us = 2 * TL_SECOND;
    assert_int_equal(try_begin(&host, medium, "a", &options, NULL), 0);
    begin_wait(&host, &wait, &waiter);
    cmdlog_double_hold(host.log, true);
    for (int i = 0; i < 2; i++) {
        ask(&host, &sent[i], write_command(WRITE_INDEX, "1"));
        cmdlog_double_await_held(host.log, i + 1);
    }
    cmdlog_double_await_held(host.log, 2);
    for (int i = 0; i < 3; i++) {
        struct command *lock = lock_command(COMMAND_LOCK, "t", LONG_US);
        lock->waiter = &waiters[i];
        ask(&host, &locks[i], lock);
        journal_cancel_waiter(host.journal, &waiters[i]);
    }
    journal_cancel_waiter(host.journal, &waiter);
    for (int i = 0; i < 3; i++)
        (void)expect_timeout(answer(&locks[i]));
    for (int i = 0; i < 2; i++)
        (void)expect_timeout(answer(&sent[i]));
    size_t left;
    while ((left = count_queued_cancels(&host)) == 0) /* none: an attempt is being prepared */
        sched_yield();
    assert_int_equal(left, 1); /* of the wait */
    cmdlog_double_hold(host.log, false);
    assert_int_equal(answer(&wait), PROBLEM_LOCK_WAIT_TIMEOUT);
    end(&host);
    double_medium_free(medium);
}

/* A lock request whose client leaves as soon as it is refused, before the request is completed. */
struct leaving {
    struct host *host;
    struct command_waiter waiter;
    enum problem_type problem;
    sem_t left;
};

static void leave_refused(struct command *command)
{
    struct leaving *leaving = command->context;
    journal_cancel_waiter(leaving->host->journal, &leaving->waiter);
    leaving->problem = command->problem.type;
    command_free(command);
    sem_post(&leaving->left);
}

static enum problem_type ask_and_leave(struct host *host)
{
    struct leaving leaving = {.host = host};
    struct command *lock = lock_command(COMMAND_LOCK, "t", LONG_US);
    sem_init(&leaving.left, 0, 0);
    lock->waiter = &leaving.waiter;
    lock->on_done = leave_refused;
    lock->context = &leaving;
    journal_submit(host->journal, lock, false);
    while (sem_wait(&leaving.left) != 0) {
    }
    sem_destroy(&leaving.left);
    return leaving.problem;
}

/* Nor do clients that leave while their request is refused, for lack of space or time. */
static void test_cancel_of_command_that_is_refused_is_not_queued(void **state)
{
    struct double_medium *medium = double_medium_new();
    struct cluster_request sent[2];
    struct options options = plain();
    struct host host = {0};
    struct cmdlog_space scarce = full;
    (void)state;
    scarce.scarce = true;
    options.timeout_us = 2 * TL_SECOND;
    assert_int_equal(try_begin(&host, medium, "a", &options, NULL), 0);
    must(run(&host, session_command(COMMAND_SESSION_OPEN, "t", LONG_US)));
    double_medium_set_space(medium, scarce);
    assert_int_equal(ask_and_leave(&host), PROBLEM_DISK_FULL);
    assert_int_equal(run(&host, session_command(COMMAND_SESSION_KEEPALIVE, "t", LONG_US)), PROBLEM_DISK_FULL);
    cmdlog_double_pause_proposer(host.log, true);
    cmdlog_double_await_paused(host.log);
    assert_int_equal(count_cancels(&host.journal->postponed), 0);
    cmdlog_double_pause_proposer(host.log, false);
    double_medium_set_space(medium, (struct cmdlog_space){.full = false});
    cmdlog_double_hold(host.log, true);
    for (int i = 0; i < 2; i++) {
        ask(&host, &sent[i], write_command(WRITE_INDEX, "1"));
        cmdlog_double_await_held(host.log, i + 1);
    }
    cmdlog_double_await_held(host.log, 2);
    assert_int_equal(ask_and_leave(&host), PROBLEM_LOG_UNAVAILABLE);
    assert_int_equal(count_queued_cancels(&host), 0);
    for (int i = 0; i < 2; i++)
        (void)expect_timeout(answer(&sent[i]));
    cmdlog_double_hold(host.log, false);
    end(&host);
    double_medium_free(medium);
}

enum { LARGE_BYTES = 100000 };

/* Writes that the log has no space for, submitted again at once when they are refused, until `stopping`. */
struct large_writes {
    struct host *host;
    atomic_bool stopping;
    sem_t stopped; /* posted by each */
};

static void ask_large(struct large_writes *writes);

static void refused_large(struct command *command)
{
    struct large_writes *writes = command->context;
    assert_int_equal(command->problem.type, PROBLEM_DISK_FULL);
    command_free(command);
    if (atomic_load(&writes->stopping))
        sem_post(&writes->stopped);
    else
        ask_large(writes);
}

static void ask_large(struct large_writes *writes)
{
    struct command *command = write_command(WRITE_INDEX, "large");
    command->write.items->source = arena_printf(&command->arena, "{\"v\":1%*s}", LARGE_BYTES, "");
    command->on_done = refused_large;
    command->context = writes;
    journal_submit(writes->host->journal, command, true);
}

/* The queue always has writes for which the log has no space; a heartbeat and a release need little. */
static void test_full_log_refuses_large_commands_only(void **state)
{
    enum { WRITES = 2 };
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct large_writes writes = {.host = &hosts[0]};
    (void)state;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    must(run(&hosts[0], session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    must(run(&hosts[0], lock_command(COMMAND_LOCK, "s", LONG_US)));
    sem_init(&writes.stopped, 0, 0);
    double_medium_set_entry_max(medium, LARGE_BYTES);
    for (int i = 0; i < WRITES; i++)
        ask_large(&writes);
    must(run(&hosts[0], lock_command(COMMAND_UNLOCK, "s", LONG_US)));
    cmdlog_position position = double_medium_head(medium);
    while (seen_of(&hosts[1], "a").position <= position)
        usleep(1000);
    atomic_store(&writes.stopping, true);
    for (int i = 0; i < WRITES; i++)
        while (sem_wait(&writes.stopped) != 0) {
        }
    sem_destroy(&writes.stopped);
    compare_and_end(hosts, 2);
    double_medium_free(medium);
}

/* What one large command needed is not kept by the thread that encodes entries, also if a smaller one follows it. */
static void test_buffer_of_a_large_entry_is_freed(void **state)
{
    enum { LARGE = 9 << 20 };
    struct double_medium *medium = double_medium_new();
    struct host host = {0};
    char *id = mem_alloc(LARGE + 1);
    (void)state;
    begin(&host, medium, "a");
    memset(id, 'x', LARGE);
    id[LARGE] = '\0';
    assert_int_equal(run(&host, session_command(COMMAND_SESSION_KEEPALIVE, id, 0)), PROBLEM_SESSION_MISSING);
    must(run(&host, session_command(COMMAND_SESSION_OPEN, "s", LONG_US)));
    journal_stop(host.journal);
    assert_in_range(host.journal->entry.capacity, 0, LARGE / 2);
    mem_free(id);
    end(&host);
    double_medium_free(medium);
}

/* --- Hosts that differ -------------------------------------------------------------------------------------------- */

static sem_t ended;                                              /* posted by each host that ends */
static atomic_int ends_with;                                     /* status */
static _Atomic enum { END_PROCESS, END_FAILS, END_HOST } on_end; /* effect of a host's _exit() */

/*
 * In the child process of a test with hosts that differ, a host's _exit() ends that host alone: its follower,
 * which is the thread that calls it, stops here.
 */
_Noreturn void __wrap__exit(int status);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status)
{
    if (atomic_load(&on_end) != END_HOST)
        __real__exit(atomic_load(&on_end) == END_FAILS ? EXIT_FAILURE : status);
    atomic_store(&ends_with, status);
    sem_post(&ended);
    for (;;)
        pause();
}

/*
 * Two hosts of which `distorted` has applied another document than the log has. `first` finds out first,
 * since its heartbeats do not get into the log. It must not end before they do: the other one could not find
 * out any more.
 */
static void differ(int first, int distorted)
{
    struct double_medium *medium = double_medium_new();
    struct host hosts[2] = {0};
    struct cluster_request request;
    sem_init(&ended, 0, 0);
    atomic_store(&on_end, END_FAILS);
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    catch_up(&hosts[0]);
    if (first == distorted)
        cmdlog_double_hold(hosts[first].log, true);
    else
        cmdlog_double_fail_at(hosts[first].log, "{\"v\":1}", DOUBLE_HOLD); /* after its own write */
    distort(&hosts[distorted]);
    must(run(&hosts[1 - distorted], write_command(WRITE_INDEX, "1")));
    while (journal_serves(hosts[first].journal) || journal_serves_past(hosts[first].journal))
        usleep(1000);
    ask(&hosts[first], &request, write_command(WRITE_INDEX, "2"));
    atomic_store(&on_end, END_HOST);
    cmdlog_double_hold(hosts[first].log, false);
    for (int i = 0; i < 2; i++)
        while (sem_wait(&ended) != 0) {
        }
    __real__exit(is_answered(&request) ? EXIT_FAILURE : atomic_load(&ends_with));
}

static void expect_both_end(int first, int distorted)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        differ(first, distorted);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 71);
}

static void test_two_hosts_that_differ_both_end_if_keeper_finds_out(void **state)
{
    (void)state;
    expect_both_end(0, 0);
}

static void test_two_hosts_that_differ_both_end_if_other_one_finds_out(void **state)
{
    (void)state;
    expect_both_end(1, 1);
}

static void test_two_hosts_that_differ_both_end_if_undistorted_one_finds_out(void **state)
{
    (void)state;
    expect_both_end(0, 1);
    expect_both_end(1, 0);
}

/* --- More than two hosts that differ ------------------------------------------------------------------------------ */

static void expect_success(void (*scenario)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sem_init(&ended, 0, 0);
        atomic_store(&on_end, END_HOST);
        scenario();
        __real__exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
}

static void await_ends(int count)
{
    for (int i = 0; i < count; i++)
        while (sem_wait(&ended) != 0) {
        }
    if (atomic_load(&ends_with) != 71)
        abort();
}

/* Waits until `host` has compared a heartbeat of each of the hosts with its own state at `position` or later. */
static void await_compared(struct host *host, struct host *hosts, int count, cmdlog_position position)
{
    for (int i = 0; i < count; i++)
        while (&hosts[i] != host && seen_of(host, hosts[i].name).position < position)
            usleep(1000);
}

/* The hosts serve, also after they have compared all heartbeats of the other hosts in `all`. */
static void must_serve(struct host *hosts, int count, struct host *all, int all_count)
{
    cmdlog_position position = position_of(&hosts[0], "1");
    for (int i = 0; i < count; i++) {
        await_compared(&hosts[i], all, all_count, position);
        if (!journal_serves(hosts[i].journal))
            abort();
    }
    must(run(&hosts[0], write_command(WRITE_INDEX, "2")));
}

static void begin_four(struct host *hosts, struct double_medium *medium, int distorted)
{
    static const char *const four[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        begin(&hosts[i], medium, four[i]);
    for (int i = 0; i < 4; i++)
        await_compared(&hosts[i], hosts, 4, 1);
    for (int i = 4 - distorted; i < 4; i++)
        distort(&hosts[i]);
}

static void divide_three_to_one(void)
{
    struct host hosts[4] = {0};
    begin_four(hosts, double_medium_new(), 1);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    await_ends(1);
    must_serve(hosts, 3, hosts, 4);
}

static void test_one_of_four_hosts_that_differs_ends_alone(void **state)
{
    (void)state;
    expect_success(divide_three_to_one);
}

/* Host d applies the write when the log has become scarce: all commands are refused, but hosts compare. */
static void divide_while_log_is_scarce(void)
{
    struct double_medium *medium = double_medium_new();
    struct cmdlog_space scarce = full;
    struct host hosts[4] = {0};
    scarce.scarce = true;
    begin_four(hosts, medium, 1);
    cmdlog_double_cut(hosts[3].log, true);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    double_medium_set_space(medium, scarce);
    cmdlog_double_cut(hosts[3].log, false);
    await_ends(1);
    if (run(&hosts[0], write_command(WRITE_INDEX, "2")) != PROBLEM_DISK_FULL)
        abort();
    double_medium_set_space(medium, tight);
    must_serve(hosts, 3, hosts, 4);
}

static void test_host_that_differs_ends_while_log_is_scarce(void **state)
{
    (void)state;
    expect_success(divide_while_log_is_scarce);
}

static void divide_two_to_two(void)
{
    struct host hosts[4] = {0};
    begin_four(hosts, double_medium_new(), 2);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    await_ends(4);
}

static void test_two_of_four_hosts_that_differ_end_and_so_do_the_others(void **state)
{
    (void)state;
    expect_success(divide_two_to_two);
}

/*
 * Host a finds out and is gone before host b's heartbeat is in the log: c and d need both to find
 * out, and are the majority of the hosts that are left.
 */
static void divide_two_to_two_and_lose_one(void)
{
    struct host hosts[4] = {0};
    struct double_medium *medium = double_medium_new();
    begin_four(hosts, medium, 2);
    cmdlog_double_fail_at(hosts[1].log, "{\"v\":1}", DOUBLE_HOLD);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    await_ends(1);
    cmdlog_double_cut(hosts[0].log, true);
    double_medium_end_life(medium, "a");
    for (int i = 2; i < 4; i++)
        while (is_live(&hosts[i], "a"))
            usleep(1000);
    cmdlog_double_hold(hosts[1].log, false);
    await_ends(1);
    must_serve(hosts + 2, 2, hosts + 1, 3);
}

static void test_side_of_two_that_loses_a_host_first_ends(void **state)
{
    (void)state;
    expect_success(divide_two_to_two_and_lose_one);
}

static void must_begin(struct host *host, struct double_medium *medium, const char *name, const struct options *options)
{
    if (try_begin(host, medium, name, options, NULL) != 0)
        abort();
}

static void join_while_it_differs(void)
{
    struct host hosts[3] = {0};
    struct double_medium *medium = double_medium_new();
    struct options options = plain();
    options.distorted = true;
    begin(&hosts[0], medium, "a");
    begin(&hosts[1], medium, "b");
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    must_begin(&hosts[2], medium, "c", &options);
    await_ends(1);
    must_serve(hosts, 2, hosts, 3);
}

static void test_host_that_joins_while_it_differs_ends_alone(void **state)
{
    (void)state;
    expect_success(join_while_it_differs);
}

/*
 * Host d joins a, b and c, of which c differs and b has not sent a heartbeat yet. Until it does, no host
 * knows whether it differs from half of the live hosts.
 */
static void join_hosts_that_differ(void)
{
    struct host hosts[4] = {0};
    struct double_medium *medium = double_medium_new();
    struct options options = plain();
    options.hold_at = options.group = "its JOIN";
    begin(&hosts[0], medium, "a");
    must_begin(&hosts[1], medium, "b", &options);
    begin(&hosts[2], medium, "c");
    distort(&hosts[2]);
    must(run(&hosts[0], write_command(WRITE_INDEX, "1")));
    begin(&hosts[3], medium, "d");
    cmdlog_position position = position_of(&hosts[0], "1");
    await_compared(&hosts[3], &hosts[0], 1, position);
    await_compared(&hosts[3], &hosts[2], 1, position);
    for (int i = 0; i < 4; i++)
        if (!journal_serves(hosts[i].journal))
            abort();
    cmdlog_double_hold(hosts[1].log, false);
    await_ends(1);
    must_serve(hosts, 2, hosts, 4);
    must_serve(&hosts[3], 1, hosts, 4);
}

static void test_host_that_joins_hosts_that_differ_compares_all_before_it_ends(void **state)
{
    (void)state;
    expect_success(join_hosts_that_differ);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_apply_the_same_state),
        cmocka_unit_test(test_hosts_that_lag_apply_the_same_state),
        cmocka_unit_test(test_limits_are_logged_after_join),
        cmocka_unit_test(test_inflight_commands_survive_end_of_life),
        cmocka_unit_test(test_entry_that_is_begun_before_join_has_number_of_new_life),
        cmocka_unit_test(test_entry_is_not_begun_in_life_that_an_entry_has_ended),
        cmocka_unit_test(test_entry_has_limited_work),
        cmocka_unit_test(test_repeated_entries_are_applied_once),
        cmocka_unit_test(test_locks_exclude_across_hosts),
        cmocka_unit_test(test_lease_expires_on_all_hosts),
        cmocka_unit_test(test_dead_host_releases_its_locks),
        cmocka_unit_test(test_unavailable_log_times_out_commands),
        cmocka_unit_test(test_commands_time_out_while_applied_entry_is_unverified),
        cmocka_unit_test(test_write_reaches_other_hosts),
        cmocka_unit_test(test_mismatched_host_is_refused),
        cmocka_unit_test(test_build_follows_another_after_stop_of_all_hosts),
        cmocka_unit_test(test_build_follows_another_after_kill_of_all_hosts),
        cmocka_unit_test(test_host_that_is_newer_than_the_list_is_not_expelled),
        cmocka_unit_test(test_trimmed_log_is_refused_with_the_remedy),
        cmocka_unit_test(test_host_missing_in_list_is_reported_at_once),
        cmocka_unit_test(test_start_reports_its_progress),
        cmocka_unit_test(test_restarted_host_keeps_its_number),
        cmocka_unit_test(test_checkpoint_counts_bytes_of_log),
        cmocka_unit_test(test_lag_is_unknown_before_a_heartbeat),
        cmocka_unit_test(test_lag_is_what_a_heartbeat_lacks),
        cmocka_unit_test(test_entries_say_whether_memory_of_their_host_is_full),
        cmocka_unit_test(test_forced_end_of_session_ends_its_entry),
        cmocka_unit_test(test_skipped_entry_is_passed_by_every_host),
        cmocka_unit_test(test_entry_skipped_while_host_is_out_is_passed),
        cmocka_unit_test(test_host_that_applied_skipped_entry_ends),
        cmocka_unit_test(test_checkpoint_begins_at_once_when_log_space_is_tight),
        cmocka_unit_test(test_checkpoint_is_reported_again_when_log_accepts_it),
        cmocka_unit_test(test_checkpoint_is_due_after_so_much_log),
        cmocka_unit_test(test_full_log_refuses_added_data_only),
        cmocka_unit_test(test_commands_join_entry_while_log_is_busy),
        cmocka_unit_test(test_log_without_space_refuses_large_commands_only),
        cmocka_unit_test(test_entry_that_log_refuses_later_is_divided),
        cmocka_unit_test(test_entry_whose_number_is_reused_is_divided),
        cmocka_unit_test(test_join_that_log_refuses_later_is_repeated),
        cmocka_unit_test(test_scarce_log_has_heartbeats_only),
        cmocka_unit_test(test_host_is_forgotten_while_log_is_scarce),
        cmocka_unit_test(test_host_that_is_out_does_not_forget_itself),
        cmocka_unit_test(test_host_that_joins_is_not_forgotten),
        cmocka_unit_test(test_forgetting_a_host_is_refused_while_log_takes_nothing),
        cmocka_unit_test(test_ends_of_waits_outlast_lack_of_space),
        cmocka_unit_test(test_end_of_wait_that_log_refuses_later_is_repeated),
        cmocka_unit_test(test_end_of_wait_outlasts_timeout),
        cmocka_unit_test(test_end_of_wait_outlasts_refusal_of_abandoned_entry),
        cmocka_unit_test(test_end_cancels_all_waits_once),
        cmocka_unit_test(test_cancel_of_command_that_never_happens_is_dropped),
        cmocka_unit_test(test_cancel_of_command_that_is_refused_is_not_queued),
        cmocka_unit_test(test_full_log_refuses_large_commands_only),
        cmocka_unit_test(test_buffer_of_a_large_entry_is_freed),
        cmocka_unit_test(test_two_hosts_that_differ_both_end_if_keeper_finds_out),
        cmocka_unit_test(test_two_hosts_that_differ_both_end_if_other_one_finds_out),
        cmocka_unit_test(test_two_hosts_that_differ_both_end_if_undistorted_one_finds_out),
        cmocka_unit_test(test_one_of_four_hosts_that_differs_ends_alone),
        cmocka_unit_test(test_host_that_differs_ends_while_log_is_scarce),
        cmocka_unit_test(test_two_of_four_hosts_that_differ_end_and_so_do_the_others),
        cmocka_unit_test(test_side_of_two_that_loses_a_host_first_ends),
        cmocka_unit_test(test_host_that_joins_while_it_differs_ends_alone),
        cmocka_unit_test(test_host_that_joins_hosts_that_differ_compares_all_before_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
