/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements. RES is `everything`, an index or alias `fs`, a subtree `fs:/clinton`, a document `fs/1`, or one of a type
 * `fs/file/1`, as clients of 5.x name it. In scan and find an index may be a pattern `log-*` or a list.
 *
 *     index NAME [JSON]                 open [30s]              close | kill | keepalive | expire-of SESSION
 *     drop NAME, map NAME JSON          template NAME JSON      sleep 31s, restart, crash
 *     shut NAME, reopen NAME            alias NAME INDEX [JSON] unalias NAME INDEX      move NAME FROM TO
 *     script NAME, unscript NAME        run NAME in T
 *     set NAME JSON
 *     lock S|U|X RES... [wait 10s]      unlock [RES...]         bulk STATEMENT; ...     atomic STATEMENT; ...
 *     put RES JSON, add RES N, del RES, update RES JSON
 *     begin T [query] [for S] [again T] [60s]                   commit T, rollback T
 *     get RES, scan INDEX, find INDEX:/PATH                     cancel ACTOR, leave JSON
 *
 * Among the resources of a lock another mode may stand. Options of reads, writes and changes of indices: `in T` (a
 * transaction), `as S` (a session), `timeout 5s`, `lease S`, `token` (of the actor's last lock). A session is called as
 * its actor. `put` with @ in its JSON writes the number that the actor read last; `add` reads and writes it in one
 * script-like update of its own: here, a put of @ plus N.
 */
#include "driver.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/codec_roundtrip.h"
#include "base/check.h"
#include "../lib/bounded.h"
#include "../lib/settle.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/session/owners.h"
#include "mapping/mapping.h"
#include "core/wait/wait.h"
#include "core/session/txn.h"
#include "core/step/save.h"

#define DRIVER_START ((tl_ts)1000 * TL_SECOND)
#define DRIVER_STEP (10 * TL_MS)

/* --- The driver --------------------------------------------------------------------------------------------------- */

static void step(struct driver *driver, struct command *command);

/* --- Query transactions ------------------------------------------------------------------------------------------- */

static void unpin(void *context, tl_ts ts) /* the driver keeps all history */
{
    (void)context;
    (void)ts;
}

static struct query_txns_now now_of(const struct driver *driver)
{
    return (struct query_txns_now){driver->now, driver->now};
}

static void session_ended(struct effects *effects, struct slice id, uint64_t number, const char *how)
{
    struct driver *driver = container_of(effects, struct driver, effects);
    query_txns_end_session(&driver->queries, id, number, how, now_of(driver));
}

static void begin_query(struct driver *driver, struct command *command)
{
    struct query_txn_terms terms = {.id = command->txn.id,
                                    .session = command->owner.session,
                                    .read_ts = driver->now,
                                    .timeout_us = command->txn.idle_us};
    struct query_txn_info info;
    INSIST(query_txns_begin(&driver->queries, &terms, now_of(driver), &info) == 0);
}

static bool end_query(struct driver *driver, struct command *command)
{
    struct query_txn_ending ending = {
        .id = command->txn.id, .session = command->owner.session, .commit = command->type == COMMAND_TXN_COMMIT};
    struct query_txn_info info;
    if (query_txns_end(&driver->queries, &ending, now_of(driver), &command->arena, &info, &command->problem) ==
        QUERY_TXN_UNKNOWN)
        return false;
    command->txn.commit_ts = info.read_ts;
    return true;
}

static bool read_in_query(struct driver *driver, struct command *command)
{
    struct query_txn *query = query_txns_use(&driver->queries, command->owner.transaction);
    if (query == NULL)
        return query_txns_refuse(&driver->queries, command, now_of(driver));
    command->txn_lock.read_ts = query->read_ts;
    query_txns_release(&driver->queries, query, driver->now);
    return true;
}

/* The host answers what concerns its query transactions, as the product's does. Returns: whether it did. */
static bool host_answers(struct driver *driver, struct command *command)
{
    switch (command->type) {
    case COMMAND_TXN_BEGIN:
        if (command->txn.mode == TXN_QUERY)
            begin_query(driver, command);
        return command->txn.mode == TXN_QUERY;
    case COMMAND_TXN_COMMIT:
    case COMMAND_TXN_ROLLBACK: return end_query(driver, command);
    case COMMAND_TXN_LOCK: return read_in_query(driver, command);
    default: return query_txns_refuse(&driver->queries, command, now_of(driver));
    }
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

void driver_open(struct driver *driver)
{
    struct core_limits limits = core_limits_default();
    *driver = (struct driver){.now = DRIVER_START, .trace = BUF_INIT(BUF_UNLIMITED)};
    driver->store = store_open_mem();
    effects_init(&driver->effects);
    driver->effects.session_ended = session_ended;
    query_txns_init(&driver->queries, limits.transactions_max, unpin, driver);
    INSIST(core_open(driver->store, &limits, &driver->core) == 0);
}

void driver_close(struct driver *driver)
{
    query_txns_stop(&driver->queries);
    query_txns_deinit(&driver->queries);
    core_stop(driver->core, &driver->effects);
    while (!list_empty(&driver->effects.completed)) {
        struct command *command = list_entry(driver->effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
    core_close(driver->core);
    store_close(driver->store);
    for (size_t i = 0; i < DRIVER_NUMBERS_MAX; i++)
        mem_free(driver->ids[i]);
    buf_deinit(&driver->trace);
    for (size_t i = 0; i < driver->actor_count; i++)
        buf_deinit(&driver->actors[i].results);
}

size_t driver_add_actor(struct driver *driver, const char *name)
{
    INSIST(driver->actor_count < DRIVER_ACTORS_MAX);
    driver->actors[driver->actor_count] = (struct actor){.name = name, .results = BUF_INIT(BUF_UNLIMITED)};
    return driver->actor_count++;
}

static unsigned long ms_of(tl_ts ts)
{
    return (unsigned long)((ts - DRIVER_START) / TL_MS);
}

/* Public numbers are meaningless in a trace: they are recorded while their owners exist, and printed as ids. */
static void note_number(struct driver *driver, uint64_t number, struct slice id)
{
    if (number >= DRIVER_NUMBERS_MAX)
        return;
    mem_free(driver->ids[number]); /* after a restart another may have it */
    driver->ids[number] = mem_strdup(id.data, id.len);
}

static void note_numbers(struct driver *driver)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&driver->core->owners->sessions, &position, &id, &value))
        note_number(driver, session_number(value), id);
    list_for_each(link, &driver->core->owners->open_txns)
    {
        const struct txn *txn = list_entry(link, struct txn, of_all);
        note_number(driver, txn->owner.locks.number, txn->id);
    }
}

/* "session #4" becomes "s1", "transaction #5" becomes "transaction t1". */
static void put_ids(const struct driver *driver, const char *line, struct buf *to)
{
    static const char session[] = "session #";
    for (size_t word = sizeof session - 1; *line != '\0'; line++) {
        char *end;
        bool is_session = strncmp(line, session, word) == 0;
        const char *digits = is_session ? line + word : *line == '#' ? line + 1 : NULL;
        uint64_t number = digits == NULL ? 0 : strtoull(digits, &end, 10);
        if (number == 0 || number >= DRIVER_NUMBERS_MAX || driver->ids[number] == NULL) {
            buf_byte(to, *line);
            continue;
        }
        buf_printf(to, "%s", driver->ids[number]);
        line = end - 1;
    }
}

static void trace_line(struct driver *driver, const char *format, ...) TL_PRINTF(2, 3);
static void trace_line(struct driver *driver, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    buf_printf(&driver->trace, "[%5lu] ", ms_of(driver->now));
    put_ids(driver, line, &driver->trace);
    buf_byte(&driver->trace, '\n');
}

/* What an actor did and what came of it. */
static void tell_result(struct driver *driver, struct actor *actor, const char *numbered)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    put_ids(driver, numbered, &text);
    buf_byte(&text, '\0');
    const char *result = text.data;
    const char *time = strstr(result, " at ");
    if (strcmp(actor->name, "setup") == 0)
        return;
    trace_line(driver, "%s %s%s%s", actor->name, actor->statement, result[0] != '\0' ? " → " : "", result);
    buf_printf(&actor->results, "%s → %s", actor->statement, actor->waited ? "(waited) " : "");
    buf_append(&actor->results, result, time != NULL ? (size_t)(time - result) : strlen(result));
    buf_byte(&actor->results, '\n');
}

void driver_outcome(const struct driver *driver, struct buf *ret_text)
{
    for (size_t i = 0; i < driver->actor_count; i++)
        buf_slice(ret_text, buf_as_slice(&driver->actors[i].results));
}

/* The lock events that the core keeps: ends of sessions and deadlocks. */
static void print_lock_events(struct driver *driver)
{
    const struct lock_events *traces = &driver->core->owners->lock_events;
    for (; driver->events_printed < traces->count; driver->events_printed++) {
        const struct lock_event *trace = &traces->ring[driver->events_printed % LOCK_EVENTS_MAX];
        struct slice lines = slice_make(trace->lines, trace->lines_len);
        while (lines.len > 0 && strcmp(trace->kind, "expiry") == 0) {
            size_t len = slice_find_byte(lines, '\n');
            trace_line(driver, "  * %.*s", (int)len, lines.data);
            lines = slice_from_offset(lines, len + 1);
        }
    }
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static const struct catalog_options scan_options = {
    .ignore_unavailable = true, .allow_no_indices = true, .expand_open = true};

static void print_problem(const struct problem *problem, struct buf *buf);

/* The value of "v" in a source; the whole source if it has no "v". */
static void print_source(struct slice source, struct actor *actor, struct buf *buf)
{
    const char *found = source.len < 4 ? NULL : memmem(source.data, source.len, "\"v\":", 4);
    if (found == NULL) {
        buf_slice(buf, source);
        return;
    }
    /* A stored source has no NUL at its end. */
    char digits[24];
    size_t rest = source.len - (size_t)(found + 4 - source.data);
    snprintf(digits, sizeof digits, "%.*s", (int)(rest < sizeof digits ? rest : sizeof digits - 1), found + 4);
    actor->value = strtol(digits, NULL, 10);
    buf_printf(buf, "%ld", actor->value);
}

/* `_all` is whichever type has it. */
static void read_one(const struct view *view, const struct catalog_index *index, const struct lock_target *target,
                     struct actor *actor, struct buf *buf)
{
    size_t count = index == NULL ? 0 : mapping_type_count(index->mapping);
    for (size_t i = 0; i < count; i++) {
        const struct mapping_type *type = mapping_type_at(index->mapping, i);
        struct doc doc;
        if (!slice_is(target->type, "_all") && type != mapping_type(index->mapping, target->type))
            continue;
        if (doc_get(view, index->number, type->number, target->id, &doc) != 0)
            continue;
        print_source(doc.source, actor, buf);
        doc_release(&doc);
        return;
    }
    buf_lit(buf, "nothing");
}

/* Returns: how many were read. */
static size_t read_all(const struct view *view, const struct catalog_index *index, struct slice path,
                       struct actor *actor, struct buf *buf)
{
    struct doc_scan *scan = doc_scan_new(view, index->number, DOC_TYPE_ANY);
    uint16_t type;
    struct slice id;
    struct doc doc;
    long sum = 0;
    size_t count = 0;
    while (doc_scan_next(scan, &type, &id, &doc) == 0) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "\"path\":\"%.*s", SLICE_ARG(path));
        if (path.data != NULL && memmem(doc.source.data, doc.source.len, wanted, strlen(wanted)) == NULL)
            continue;
        count++;
        buf_printf(buf, "%s%.*s=", buf->len == 0 ? "" : " ", SLICE_ARG(id));
        print_source(doc.source, actor, buf);
        sum += actor->value;
    }
    actor->value = sum;
    doc_scan_free(scan);
    return count;
}

static void read_many(const struct view *view, const struct catalog *catalog, const struct lock_target *target,
                      struct actor *actor, struct buf *buf)
{
    struct arena arena = ARENA_INIT;
    struct catalog_target *found = NULL;
    struct problem problem;
    size_t count = 0, read = 0;
    if (catalog_resolve(catalog, target->index, &scan_options, DIALECT_7, &arena, &found, &count, &problem) != 0)
        print_problem(&problem, buf);
    for (size_t i = 0; i < count; i++)
        read += read_all(view, found[i].index, target->path, actor, buf);
    if (read == 0 && buf->len == 0)
        buf_lit(buf, "nothing");
    arena_deinit(&arena);
}

/* Does a get, scan or find in a view. */
static void read_view(struct driver *driver, struct actor *actor, const struct view *view, struct slice verb,
                      const struct lock_target *target, struct buf *buf)
{
    struct catalog *catalog = core_catalog(driver->core);
    const struct catalog_index *index = NULL;
    struct arena arena = ARENA_INIT;
    struct problem problem;
    if (target->script) {
        const struct catalog_object *script = catalog_object(catalog, CATALOG_SCRIPTS, target->index);
        buf_slice(buf, script == NULL ? SLICE_LIT("nothing") : script->body);
    } else if (slice_is(verb, "get")) {
        if (catalog_find(catalog, target->index, false, DIALECT_7, &arena, &index, NULL, &problem) != 0)
            index = NULL;
        read_one(view, index, target, actor, buf);
    } else {
        read_many(view, catalog, target, actor, buf);
    }
    arena_deinit(&arena);
    catalog_unref(catalog);
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

static void print_problem(const struct problem *problem, struct buf *buf)
{
    struct slice name = slice_from(problem_name(problem->type));
    size_t tail = sizeof "_exception" - 1;
    if (name.len > tail)
        name.len -= tail;
    buf_slice(buf, name);
    if (problem->type == PROBLEM_DEADLOCK_DETECTED || problem->type == PROBLEM_TRANSACTION_ABORTED ||
        problem->type == PROBLEM_LOCK_WAIT_TIMEOUT || problem->type == PROBLEM_LOCK_CONFLICT)
        buf_printf(buf, ": %.*s", SLICE_ARG(problem->reason));
}

static void print_write(const struct write_command *write, struct buf *buf)
{
    static const char *const outcomes[WRITE_OUTCOME_COUNT] = {"created",   "updated", "deleted",
                                                              "not found", "noop",    "failed"};
    for (size_t i = 0; i < write->item_count; i++) {
        const struct write_result *result = &write->results[i];
        if (i > 0)
            buf_lit(buf, ", ");
        if (result->outcome == WRITE_FAILED)
            print_problem(&result->problem, buf);
        else
            buf_printf(buf, "%s", write->rolled_back ? "not done" : outcomes[result->outcome]);
    }
    if (write->rolled_back)
        buf_lit(buf, ": rolled back");
}

static void print_result(struct driver *driver, struct actor *actor, struct command *command, struct buf *buf)
{
    if (command->problem.type != PROBLEM_NONE) {
        print_problem(&command->problem, buf);
        return;
    }
    switch (command->type) {
    case COMMAND_WRITE: print_write(&command->write, buf); break;
    case COMMAND_LOCK:
        actor->token = command->lock.fencing_token;
        buf_lit(buf, "granted");
        break;
    case COMMAND_UNLOCK: buf_printf(buf, "%zu released", command->lock.released); break;
    case COMMAND_TXN_COMMIT:
        buf_printf(buf, "committed at %lu, %" PRIu64 " changes", ms_of(command->txn.commit_ts), command->txn.changes);
        break;
    case COMMAND_TXN_LOCK: {
        struct view view = {driver->store, command->txn_lock.read_ts, command->txn_lock.overlay};
        struct slice verb = slice_make(actor->statement, slice_find_byte(slice_from(actor->statement), ' '));
        read_view(driver, actor, &view, verb, command->txn_lock.targets, buf);
        core_overlay_unref(command->txn_lock.overlay);
        break;
    }
    default: break;
    }
}

static void complete(struct driver *driver, struct command *command)
{
    struct actor *actor = command->context;
    if (actor != NULL) {
        struct buf result = BUF_INIT(BUF_UNLIMITED);
        print_result(driver, actor, command, &result);
        buf_byte(&result, '\0');
        tell_result(driver, actor, result.data);
        if (actor->command == command)
            actor->command = NULL;
        buf_deinit(&result);
    }
    command_free(command);
}

/* Prints the owners that block a waiting command. */
static void tell_waiting(struct driver *driver, struct actor *actor)
{
    struct lock_conflict conflicts[4];
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    actor->waited = true;
    list_for_each(link, &driver->core->owners->waits)
    {
        const struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->command != actor->command)
            continue;
        size_t count = lock_request_conflicts(wait->request, conflicts, 4);
        for (size_t i = 0; i < count; i++) {
            buf_printf(&text, "%s", i == 0 ? "" : ", ");
            resource_print(conflicts[i].resource, &text);
            buf_printf(&text, " %s ", describe_relation(conflicts[i].waiting, driver->core));
            describe_owner(conflicts[i].owner, driver->core, &text);
        }
    }
    trace_line(driver, "%s waits for %.*s: %s", actor->name, SLICE_ARG(buf_as_slice(&text)), actor->statement);
    buf_deinit(&text);
}

static void drain(struct driver *driver)
{
    while (!list_empty(&driver->effects.completed)) {
        struct command *command = list_entry(driver->effects.completed.next, struct command, link);
        list_remove(&command->link);
        complete(driver, command);
    }
}

static void step(struct driver *driver, struct command *command)
{
    command = codec_roundtrip(command);
    struct actor *actor = command->context;
    if (command->type != COMMAND_TICK && core_next_deadline(driver->core) <= driver->now)
        step(driver, command_new(COMMAND_TICK, DIALECT_7));
    if (driver->now <= core_last_ts(driver->core))
        driver->now = core_last_ts(driver->core) + 1;
    note_numbers(driver);
    command->ts = command->clock = driver->now;
    if (command->type == COMMAND_TICK)
        command->tick.barrier_clock = driver->now;
    command->request = ++driver->requests;
    if (actor != NULL && host_answers(driver, command)) {
        print_lock_events(driver);
        complete(driver, command);
        return;
    }
    if (actor != NULL)
        actor->command = command;
    INSIST(core_step(driver->core, command, &driver->effects) == 0);
    bounded_check(driver->core);
    lock_table_check(&driver->core->owners->locks);
    bool waits = actor != NULL;
    list_for_each(link, &driver->effects.completed) waits = waits && list_entry(link, struct command, link) != command;
    if (waits)
        tell_waiting(driver, actor);
    print_lock_events(driver);
    drain(driver);
}

/* --- Statements --------------------------------------------------------------------------------------------------- */

/* The words of a statement; JSON is one word, whatever is in it. */
struct words {
    struct slice rest;
};

static struct slice next_word(struct words *words)
{
    while (words->rest.len > 0 && words->rest.data[0] == ' ')
        words->rest = slice_from_offset(words->rest, 1);
    size_t len = 0;
    int depth = 0;
    for (; len < words->rest.len && (depth > 0 || words->rest.data[len] != ' '); len++)
        depth += (words->rest.data[len] == '{') - (words->rest.data[len] == '}');
    struct slice word = {words->rest.data, len};
    words->rest = slice_from_offset(words->rest, len);
    return word;
}

static uint64_t duration(struct slice word)
{
    uint64_t number = strtoull(word.data, NULL, 10);
    return number * (word.len > 1 && word.data[word.len - 2] == 'm' ? TL_MS : TL_SECOND);
}

static bool is_resource(struct slice word)
{
    return word.len > 0 && !slice_is(word, "wait") && !slice_is(word, "in") && !slice_is(word, "as") &&
           !slice_is(word, "timeout");
}

static struct lock_target target_of(struct slice word)
{
    struct lock_target target = {.mode = LOCK_X};
    size_t colon = slice_find_byte(word, ':');
    size_t slash = slice_find_byte(word, '/');
    size_t end = colon < slash ? colon : slash;
    if (slice_is(word, "everything"))
        return target;
    target.index = slice_make(word.data, end);
    if (colon < slash)
        target.path = slice_from_offset(word, colon + 1);
    else if (slash < word.len)
        target.id = slice_from_offset(word, slash + 1);
    size_t typed = slice_find_byte(target.id, '/');
    if (typed < target.id.len) {
        target.type = slice_make(target.id.data, typed);
        target.id = slice_from_offset(target.id, typed + 1);
    }
    return target;
}

static enum lock_mode mode_of(struct slice word)
{
    return slice_is(word, "S") ? LOCK_S : slice_is(word, "U") ? LOCK_U : LOCK_X;
}

/* What may follow a read or a write. */
struct options {
    struct slice transaction;
    struct slice session;
    struct slice lease;
    uint64_t timeout_us;
    bool token;
};

static struct options take_options(struct words *words)
{
    struct options options = {.timeout_us = 10 * TL_SECOND};
    struct slice word;
    while ((word = next_word(words)).len > 0) {
        if (slice_is(word, "in"))
            options.transaction = next_word(words);
        else if (slice_is(word, "as"))
            options.session = next_word(words);
        else if (slice_is(word, "lease"))
            options.lease = next_word(words);
        else if (slice_is(word, "timeout"))
            options.timeout_us = duration(next_word(words));
        else if (slice_is(word, "token"))
            options.token = true;
        else
            check_failed("unknown option", word.data, __FILE__, __LINE__);
    }
    return options;
}

static struct command *new_command(enum command_type type, struct actor *actor)
{
    struct command *command = command_new(type, DIALECT_7);
    command->context = actor;
    return command;
}

/* The words of a statement in a command's arena, where they live as long as it. */
static struct words words_in(struct command *command, const char *statement)
{
    return (struct words){arena_copy(&command->arena, slice_from(statement))};
}

static struct lock_target *take_targets(struct command *command, struct words *words, enum lock_mode mode,
                                        size_t *ret_count)
{
    struct lock_target *targets = arena_zalloc(&command->arena, 8 * sizeof *targets);
    size_t count = 0;
    struct words ahead = *words;
    for (struct slice word = next_word(&ahead); is_resource(word) && count < 8; word = next_word(&ahead)) {
        if (word.len == 1 && strchr("SUX", word.data[0]) != NULL) {
            mode = mode_of(word);
            continue;
        }
        targets[count] = target_of(word);
        targets[count++].mode = mode;
        *words = ahead;
    }
    *ret_count = count;
    return targets;
}

static void do_lock(struct driver *driver, struct actor *actor, const char *statement)
{
    struct command *command = new_command(COMMAND_LOCK, actor);
    struct words words = words_in(command, statement);
    next_word(&words);
    enum lock_mode mode = mode_of(next_word(&words));
    command->lock.targets = take_targets(command, &words, mode, &command->lock.target_count);
    command->owner.session = slice_from(actor->name);
    struct slice word;
    while ((word = next_word(&words)).len > 0) {
        if (slice_is(word, "wait"))
            command->owner.timeout_us = duration(next_word(&words));
        else if (slice_is(word, "in"))
            command->owner.transaction = next_word(&words);
    }
    if (command->owner.transaction.len > 0)
        command->owner.session = SLICE_NONE;
    step(driver, command);
}

static void do_unlock(struct driver *driver, struct actor *actor, const char *statement)
{
    struct command *command = new_command(COMMAND_UNLOCK, actor);
    struct words words = words_in(command, statement);
    next_word(&words);
    command->owner.session = slice_from(actor->name);
    command->lock.targets = take_targets(command, &words, LOCK_X, &command->lock.target_count);
    step(driver, command);
}

/* JSON with the actor's number (plus `more`) in place of @. */
static struct slice fill_in(struct arena *arena, struct slice json, const struct actor *actor, long more)
{
    size_t at = slice_find_byte(json, '@');
    if (at == json.len)
        return json;
    return arena_printf(arena, "%.*s%ld%.*s", (int)at, json.data, actor->value + more, (int)(json.len - at - 1),
                        json.data + at + 1);
}

/* put RES JSON, add RES N, del RES; the rest of the words is left. */
static struct write_item take_item(struct command *command, struct words *words, const struct actor *actor)
{
    struct slice verb = next_word(words);
    struct lock_target target = target_of(next_word(words));
    struct write_item item = {.op = WRITE_INDEX,
                              .index = target.index,
                              .type = target.type,
                              .id = target.id,
                              .version = VERSION_ANY,
                              .if_seq_no = SEQ_NO_ANY};
    if (target.type.len > 0)
        item.dialect = DIALECT_5;
    if (slice_is(verb, "del"))
        item.op = WRITE_DELETE;
    else if (slice_is(verb, "create"))
        item.op = WRITE_CREATE;
    else if (slice_is(verb, "update"))
        item.op = WRITE_UPDATE;
    if (item.op == WRITE_UPDATE) {
        struct write_update *update = arena_zalloc(&command->arena, sizeof *update);
        update->doc = fill_in(&command->arena, next_word(words), actor, 0);
        item.update = update;
        return item;
    }
    if (slice_is(verb, "add"))
        item.source = fill_in(&command->arena, SLICE_LIT("{\"v\":@}"), actor, strtol(next_word(words).data, NULL, 10));
    else if (item.op != WRITE_DELETE)
        item.source = fill_in(&command->arena, next_word(words), actor, 0);
    return item;
}

static void do_write(struct driver *driver, struct actor *actor, const char *statement)
{
    struct command *command = new_command(COMMAND_WRITE, actor);
    struct words words = words_in(command, statement);
    struct words first = words;
    struct slice verb = next_word(&first);
    bool bulk = slice_is(verb, "bulk") || slice_is(verb, "atomic");
    command->write.items = arena_zalloc(&command->arena, 8 * sizeof *command->write.items);
    command->write.atomic = slice_is(verb, "atomic");
    if (bulk)
        words = first;
    for (bool more = true; more;) {
        command->write.items[command->write.item_count++] = take_item(command, &words, actor);
        struct words ahead = words;
        more = bulk && slice_is(next_word(&ahead), ";");
        if (more)
            words = ahead;
    }
    struct options options = take_options(&words);
    for (size_t i = 0; i < command->write.item_count; i++)
        command->write.items[i].lease = options.lease;
    command->owner.transaction = options.transaction;
    command->owner.session = options.session;
    command->owner.timeout_us = options.timeout_us;
    command->owner.fencing_token = options.token ? actor->token : 0;
    step(driver, command);
}

static void do_read(struct driver *driver, struct actor *actor, const char *statement)
{
    struct command *command = new_command(COMMAND_TXN_LOCK, actor);
    struct words words = words_in(command, statement);
    struct slice verb = next_word(&words);
    command->txn_lock.targets = take_targets(command, &words, LOCK_S, &command->txn_lock.target_count);
    for (size_t i = 0; i < command->txn_lock.target_count; i++) {
        struct lock_target *target = &command->txn_lock.targets[i];
        target->script = slice_is(verb, "run");
        if (!target->script && target->id.data == NULL && target->path.data == NULL)
            target->expression = &scan_options;
    }
    struct options options = take_options(&words);
    command->owner.transaction = options.transaction;
    command->owner.timeout_us = options.timeout_us;
    if (options.transaction.len > 0) {
        step(driver, command);
        return;
    }
    struct view view = {driver->store, TL_TS_MAX, NULL};
    struct buf result = BUF_INIT(BUF_UNLIMITED);
    read_view(driver, actor, &view, verb, command->txn_lock.targets, &result);
    buf_byte(&result, '\0');
    tell_result(driver, actor, result.data);
    buf_deinit(&result);
    command_free(command);
}

static void do_txn(struct driver *driver, struct actor *actor, const char *statement)
{
    bool commit = strncmp(statement, "commit", 6) == 0;
    bool begin = strncmp(statement, "begin", 5) == 0;
    struct command *command = new_command(begin    ? COMMAND_TXN_BEGIN
                                          : commit ? COMMAND_TXN_COMMIT
                                                   : COMMAND_TXN_ROLLBACK,
                                          actor);
    struct words words = words_in(command, statement);
    struct slice word;
    next_word(&words);
    command->txn.id = next_word(&words);
    command->txn.idle_us = 60 * TL_SECOND;
    while ((word = next_word(&words)).len > 0) {
        if (slice_is(word, "query"))
            command->txn.mode = TXN_QUERY;
        else if (slice_is(word, "again"))
            command->txn.retry_of = next_word(&words);
        else if (slice_is(word, "for"))
            command->owner.session = next_word(&words);
        else if (slice_is(word, "token"))
            command->owner.fencing_token = actor->token;
        else
            command->txn.idle_us = duration(word);
    }
    step(driver, command);
}

enum { ACTIONS_MAX = 4 };

/* leave RES JSON: a document to be indexed when the session dies; given with open, any number of times. */
static void do_session(struct driver *driver, struct actor *actor, const char *statement)
{
    static const struct {
        const char *verb;
        enum command_type type;
    } verbs[] = {{"open", COMMAND_SESSION_OPEN},     {"close", COMMAND_SESSION_CLOSE},
                 {"kill", COMMAND_SESSION_CLOSE},    {"keepalive", COMMAND_SESSION_KEEPALIVE},
                 {"attach", COMMAND_SESSION_ATTACH}, {"detach", COMMAND_SESSION_DETACH}};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        size_t len = strlen(verbs[i].verb);
        if (strncmp(statement, verbs[i].verb, len) != 0)
            continue;
        struct command *command = new_command(verbs[i].type, actor);
        struct words words = words_in(command, statement);
        next_word(&words);
        struct session_command *session = &command->session;
        session->id = slice_from(actor->name);
        session->ttl_us = 30 * TL_SECOND;
        session->on_expire = arena_zalloc(&command->arena, ACTIONS_MAX * sizeof *session->on_expire);
        session->force = strcmp(verbs[i].verb, "kill") == 0;
        session->attachment = (uint64_t)(actor - driver->actors) + 1;
        struct slice word;
        while ((word = next_word(&words)).len > 0) {
            if (slice_is(word, "leave")) {
                struct write_item *item = &session->on_expire[session->on_expire_count++];
                INSIST(session->on_expire_count <= ACTIONS_MAX);
                *item = (struct write_item){.op = WRITE_INDEX, .version = VERSION_ANY, .if_seq_no = SEQ_NO_ANY};
                struct lock_target target = target_of(next_word(&words));
                item->index = target.index;
                item->id = target.id;
                item->source = next_word(&words);
            } else if (word.data[0] >= '0' && word.data[0] <= '9') {
                session->ttl_us = duration(word);
            } else {
                session->id = word;
            }
        }
        step(driver, command);
        return;
    }
    check_failed("unknown statement", statement, __FILE__, __LINE__);
}

/* index, drop, map: DDL statements may have options. */
static void do_index(struct driver *driver, struct actor *actor, const char *statement)
{
    enum command_type type = statement[0] == 'd'                          ? COMMAND_INDEX_DELETE
                             : statement[0] == 'm'                        ? COMMAND_MAPPING_PUT
                             : strncmp(statement, "set ", 4) == 0         ? COMMAND_SETTINGS_PUT
                             : statement[0] == 's' || statement[0] == 'r' ? COMMAND_INDEX_STATE
                                                                          : COMMAND_INDEX_CREATE;
    struct command *command = new_command(type, actor);
    struct words words = words_in(command, statement);
    next_word(&words);
    command->index.name = next_word(&words);
    command->index.uuid = SLICE_LIT("0123456789abcdefghijkl");
    struct words ahead = words;
    struct slice body = next_word(&ahead);
    if (body.len > 0 && body.data[0] == '{') {
        command->index.body = body;
        words = ahead;
    }
    struct options options = take_options(&words);
    command->owner.session = options.session;
    command->owner.timeout_us = options.timeout_us;
    command->index.close = statement[0] == 's';
    step(driver, command);
}

/* alias NAME INDEX [JSON], unalias NAME INDEX, move NAME FROM TO. */
static void do_alias(struct driver *driver, struct actor *actor, const char *statement)
{
    struct command *command = new_command(COMMAND_ALIASES_UPDATE, actor);
    struct words words = words_in(command, statement);
    struct slice verb = next_word(&words);
    struct alias_action *actions = arena_zalloc(&command->arena, 2 * sizeof *actions);
    actions[0].alias = actions[1].alias = next_word(&words);
    actions[0].index = next_word(&words);
    actions[0].op = slice_is(verb, "alias") ? ALIAS_ADD : ALIAS_REMOVE;
    actions[1].op = ALIAS_ADD;
    if (slice_is(verb, "move"))
        actions[1].index = next_word(&words);
    struct words ahead = words;
    struct slice body = next_word(&ahead);
    if (body.len > 0 && body.data[0] == '{') {
        actions[0].body = body;
        words = ahead;
    }
    command->aliases.actions = actions;
    command->aliases.action_count = slice_is(verb, "move") ? 2 : 1;
    struct options options = take_options(&words);
    command->owner.session = options.session;
    command->owner.timeout_us = options.timeout_us;
    step(driver, command);
}

/* shut, reopen; script, unscript. */
static void do_state(struct driver *driver, struct actor *actor, const char *statement)
{
    bool script = strstr(statement, "script ") != NULL;
    bool first = statement[0] == 's';
    struct command *command = new_command(!script ? COMMAND_INDEX_STATE
                                          : first ? COMMAND_SCRIPT_PUT
                                                  : COMMAND_SCRIPT_DELETE,
                                          actor);
    struct words words = words_in(command, statement);
    next_word(&words);
    struct slice name = next_word(&words);
    if (script) {
        command->object.name = name;
        command->object.body = SLICE_LIT("{\"script\":{\"lang\":\"painless\",\"source\":\"ctx._source.v=1\"}}");
    } else {
        command->index.name = name;
        command->index.close = first;
    }
    struct options options = take_options(&words);
    command->owner.session = options.session;
    command->owner.timeout_us = options.timeout_us;
    step(driver, command);
}

/* rename INDEX:FROM TO: a directory, or the document at a path. */
static void do_rename(struct driver *driver, struct actor *actor, const char *statement)
{
    struct command *command = new_command(COMMAND_RENAME, actor);
    struct words words = words_in(command, statement);
    next_word(&words);
    struct lock_target from = target_of(next_word(&words));
    command->rename.index = from.index;
    command->rename.from = from.path;
    command->rename.to = next_word(&words);
    command->rename.if_seq_no = SEQ_NO_ANY;
    struct options options = take_options(&words);
    command->owner.transaction = options.transaction;
    command->owner.session = options.session;
    command->owner.timeout_us = options.timeout_us;
    step(driver, command);
}

static void do_template(struct driver *driver, struct actor *actor, const char *statement)
{
    struct command *command = new_command(COMMAND_TEMPLATE_PUT, actor);
    struct words words = words_in(command, statement);
    next_word(&words);
    command->object.name = next_word(&words);
    command->object.body = next_word(&words);
    step(driver, command);
}

static void do_sleep(struct driver *driver, struct actor *actor, const char *statement)
{
    tl_ts until = driver->now + duration(slice_from(statement + strlen("sleep ")));
    tell_result(driver, actor, "");
    while (core_next_deadline(driver->core) <= until)
        driver_pass(driver);
    driver->now = until;
}

/*
 * Restarts from a checkpoint. The clients of waiting requests got their replies after it was made. A
 * crash is one of the machine: requests that were answered may be missing from the log, so open
 * transactions are rolled back.
 */
static void do_restart(struct driver *driver, struct actor *actor, bool crash)
{
    struct core_limits limits = core_limits_default();
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    uint64_t before, after;
    tell_result(driver, actor, "");
    settle(driver->store);
    query_txns_stop(&driver->queries);
    query_txns_deinit(&driver->queries);
    query_txns_init(&driver->queries, limits.transactions_max, unpin, driver);
    core_save(driver->core, &saved);
    INSIST(core_digest(driver->core, &before) == 0);
    core_stop(driver->core, &driver->effects);
    drain(driver);
    core_close(driver->core);
    if (crash)
        store_mem_crash(driver->store, 0);
    INSIST(core_load(driver->store, &limits, buf_as_slice(&saved), NULL, &driver->core) == 0);
    INSIST(core_digest(driver->core, &after) == 0);
    INSIST(before == after);
    buf_deinit(&saved);
    step(driver, new_command(COMMAND_RESTART, NULL));
    step(driver, new_command(COMMAND_CANCEL, NULL)); /* all */
    if (crash)
        step(driver, new_command(COMMAND_MACHINE_LOST, NULL));
}

static void do_cancel(struct driver *driver, struct actor *actor, const char *statement)
{
    const char *name = statement + strlen("cancel ");
    tell_result(driver, actor, "");
    for (size_t i = 0; i < driver->actor_count; i++) {
        if (strcmp(driver->actors[i].name, name) != 0 || driver->actors[i].command == NULL)
            continue;
        struct command *command = new_command(COMMAND_CANCEL, NULL);
        command->cancel.request = driver->actors[i].command->request;
        step(driver, command);
    }
}

void driver_do(struct driver *driver, size_t number, const char *statement)
{
    struct actor *actor = &driver->actors[number];
    struct slice verb = slice_make(statement, slice_find_byte(slice_from(statement), ' '));
    INSIST(actor->command == NULL);
    snprintf(actor->statement, sizeof actor->statement, "%s", statement);
    actor->waited = false;
    if (strcmp(actor->name, "end") != 0)
        driver->now += DRIVER_STEP - (driver->now - DRIVER_START) % DRIVER_STEP;
    if (slice_is(verb, "lock"))
        do_lock(driver, actor, statement);
    else if (slice_is(verb, "unlock"))
        do_unlock(driver, actor, statement);
    else if (slice_is(verb, "put") || slice_is(verb, "add") || slice_is(verb, "del") || slice_is(verb, "create") ||
             slice_is(verb, "update") || slice_is(verb, "bulk") || slice_is(verb, "atomic"))
        do_write(driver, actor, statement);
    else if (slice_is(verb, "get") || slice_is(verb, "scan") || slice_is(verb, "find") || slice_is(verb, "run"))
        do_read(driver, actor, statement);
    else if (slice_is(verb, "begin") || slice_is(verb, "commit") || slice_is(verb, "rollback"))
        do_txn(driver, actor, statement);
    else if (slice_is(verb, "alias") || slice_is(verb, "unalias") || slice_is(verb, "move"))
        do_alias(driver, actor, statement);
    else if (slice_is(verb, "shut") || slice_is(verb, "reopen") || slice_is(verb, "script") ||
             slice_is(verb, "unscript"))
        do_state(driver, actor, statement);
    else if (slice_is(verb, "rename"))
        do_rename(driver, actor, statement);
    else if (slice_is(verb, "template"))
        do_template(driver, actor, statement);
    else if (slice_is(verb, "index") || slice_is(verb, "drop") || slice_is(verb, "map") || slice_is(verb, "set"))
        do_index(driver, actor, statement);
    else if (slice_is(verb, "sleep"))
        do_sleep(driver, actor, statement);
    else if (slice_is(verb, "restart") || slice_is(verb, "crash"))
        do_restart(driver, actor, slice_is(verb, "crash"));
    else if (slice_is(verb, "cancel"))
        do_cancel(driver, actor, statement);
    else
        do_session(driver, actor, statement);
}

bool driver_pass(struct driver *driver)
{
    tl_ts deadline = core_next_deadline(driver->core);
    if (deadline == TL_TS_MAX)
        return false;
    if (deadline > driver->now)
        driver->now = deadline;
    step(driver, new_command(COMMAND_TICK, NULL));
    return true;
}
