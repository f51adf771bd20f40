/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command STATUS: sessions, transactions and lock events as JSON; locks are in
 * do_status_locks.c. README-locks.md, "Seeing it", has the JSON.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/magic.h"
#include "core/documents/write.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/deadline.h"
#include "core/cleanup/deferred.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/owners/status.h"
#include "core/wait/lock_event.h"
#include "core/session/txn.h"
#include "core/wait/wait.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"

enum {
    DEFERRED_REPORTED_MAX = 1000,
    OWNERS_PER_PAGE = 1000, /* takes a millisecond or two */
    LOCKS_PER_PAGE = 5000,
    LOCKS_BYTES_MAX = 1 << 20,   /* of one page of locks, whose paths may be long; exceeded by its last one only */
    WAITING_BYTES_MAX = 1 << 18, /* of the locks that the waiting requests of one session want */
};

/* Writes a comma before every member of a list but the first. */
struct list_writer {
    struct buf *buf;
    bool begun;
};

static void next_of(struct list_writer *list)
{
    if (list->begun)
        buf_byte(list->buf, ',');
    list->begun = true;
}

static void write_member(struct buf *buf, const char *name, struct slice value)
{
    buf_printf(buf, "\"%s\":", name);
    buf_json_string(buf, value);
}

/* --- Pages -------------------------------------------------------------------------------------------------------- */

/*
 * A page lists the objects with the lowest numbers above the cursor. New objects get higher
 * numbers, and a number never changes. So an object that exists during all pages is listed exactly
 * once.
 */
struct page_item {
    uint64_t number;
    const void *object;
};

struct page {
    struct core *core;
    struct status_command *status;
    struct page_item *found; /* in the core's arena */
    size_t count;
    size_t capacity;
    bool unsorted;
};

/* Begins a page of the command's listing. */
static struct page page_begin(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_STATUS);
    command->status.work = 0;
    return (struct page){.core = core, .status = &command->status};
}

/* Adds an object, unless an earlier page had it. */
static void page_add(struct page *page, uint64_t number, const void *object)
{
    REQUIRE(number != 0); /* the cursor of the first page */
    page->status->work++;
    if (number <= page->status->cursor)
        return;
    page->unsorted |= page->count > 0 && page->found[page->count - 1].number > number;
    page->found = arena_grow(&page->core->arena, page->found, page->count, &page->capacity, sizeof *page->found);
    page->found[page->count++] = (struct page_item){number, object};
}

static int compare_numbers(const void *a, const void *b)
{
    const struct page_item *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/*
 * Sorts the objects and sets the cursor of the next page; 0: this is the last.
 * Returns: how many of the objects are listed.
 */
static size_t page_finish(struct page *page, size_t max)
{
    REQUIRE(max > 0);
    bool more = page->count > max;
    if (page->unsorted)
        qsort(page->found, page->count, sizeof *page->found, compare_numbers);
    uint64_t before = page->status->cursor;
    page->status->cursor = more ? page->found[max - 1].number : 0;
    ENSURE(!more || page->status->cursor > before); /* else the listing does not end */
    return more ? max : page->count;
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

/* Writes them until the buffer has `most` bytes. */
static void write_requested_locks(const struct wait *wait, size_t most, struct buf *buf)
{
    struct list_writer list = {buf, false};
    const struct resource *resource;
    enum lock_mode mode;
    size_t position = 0;
    buf_byte(buf, '[');
    while (buf->len < most && lock_request_spec(wait->request, &position, &resource, &mode)) {
        next_of(&list);
        buf_byte(buf, '{');
        describe_resource_json(resource, buf);
        buf_printf(buf, "%s\"mode\":\"%s\"}", resource->kind == RESOURCE_ALL ? "" : ",", lock_mode_name(mode));
    }
    buf_byte(buf, ']');
}

/*
 * Finds the query transactions of the submitter's host that belong to a session.
 * Returns: how many there are, from *ret_first on.
 */
static size_t queries_of(const struct status_command *status, const struct session *session,
                         const struct status_query **ret_first)
{
    REQUIRE(status->query_count == 0 || status->queries != NULL);
    uint64_t number = session_number(session);
    size_t low = 0, high = status->query_count, count = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (status->queries[middle].session < number)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_first = status->queries + low;
    while (low + count < status->query_count && status->queries[low + count].session == number)
        count++;
    return count;
}

static void write_txn_of_session(struct list_writer *list, struct slice id, uint64_t number, bool by_id)
{
    next_of(list);
    if (by_id)
        buf_json_string(list->buf, id);
    else
        buf_printf(list->buf, "%" PRIu64, number);
}

static void write_detail(const struct status_command *status, const struct session *session, bool by_id,
                         struct buf *buf)
{
    const struct status_query *queries;
    struct list_writer waits = {buf, false}, txns = {buf, false};
    size_t most = buf->len + WAITING_BYTES_MAX;
    buf_lit(buf, ",\"waiting\":[");
    list_for_each(link, &session->waits)
    {
        if (buf->len >= most)
            break; /* "waiting_count" has them all */
        next_of(&waits);
        write_requested_locks(list_entry(link, struct wait, of_session), most, buf);
    }
    buf_lit(buf, "],\"transactions\":[");
    list_for_each(link, &session->transactions)
    {
        const struct txn *txn = list_entry(link, struct txn, of_session);
        write_txn_of_session(&txns, txn->id, txn->owner.locks.number, by_id);
    }
    size_t query_count = queries_of(status, session, &queries);
    for (size_t i = 0; i < query_count; i++)
        write_txn_of_session(&txns, queries[i].id, queries[i].number, by_id);
    buf_byte(buf, ']');
}

/* Writes id and public number if the request named the id (`by_id`), else only the number. */
static void write_number(const char *name, struct slice id, uint64_t number, bool by_id, struct buf *buf)
{
    if (by_id)
        write_member(buf, name, id);
    else
        buf_printf(buf, "\"%s\":", name);
    buf_printf(buf, by_id ? ",\"number\":%" PRIu64 : "%" PRIu64, number);
}

/* Writes a session as a JSON object without its closing brace. */
static void write_session(struct core *core, const struct status_command *status, const struct session *session,
                          bool by_id, struct buf *buf)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
    const struct status_query *queries;
    buf_byte(buf, '{');
    write_number("session", session->id, session_number(session), by_id, buf);
    if (session->name.len > 0) {
        buf_byte(buf, ',');
        write_member(buf, "name", session->name);
    }
    buf_printf(buf, ",\"ttl_us\":%" PRIu64 ",\"created\":%" PRIu64, session->ttl_us, session->created);
    if (session->lease.at < TL_TS_MAX)
        buf_printf(buf, ",\"expires\":%" PRIu64, deadline_ts(core, session->lease.at));
    buf_printf(buf,
               ",\"attached\":%s,\"lock_count\":%zu,\"waiting_count\":%zu,\"transaction_count\":%zu,"
               "\"ephemeral_count\":%zu",
               session->attachment != 0 ? "true" : "false", session->owner.locks.lock_count,
               list_length(&session->waits),
               list_length(&session->transactions) + queries_of(status, session, &queries), session->ephemeral_count);
    if (session->terminating)
        buf_lit(buf, ",\"terminating\":true");
}

/* Writes the deferred actions, oldest first. */
static void write_deferred(struct core *core, struct buf *buf)
{
    static const char *const ops[] = {
        [WRITE_INDEX] = "index", [WRITE_CREATE] = "create", [WRITE_UPDATE] = "update", [WRITE_DELETE] = "delete"};
    struct list_writer list = {buf, false};
    size_t count = 0;
    buf_byte(buf, '[');
    list_for_each(link, &core->owners->deferred)
    {
        const struct deferred *deferred = list_entry(link, struct deferred, of_all);
        struct write_item item;
        if (count++ == DEFERRED_REPORTED_MAX || deferred__item(deferred, &core->arena, &item) < 0)
            break;
        next_of(&list);
        buf_byte(buf, '{');
        write_member(buf, "session", deferred->session);
        if (deferred->name.len > 0)
            buf_byte(buf, ',');
        if (deferred->name.len > 0)
            write_member(buf, "name", deferred->name);
        buf_printf(buf, ",\"number\":%" PRIu64 ",\"ended\":%" PRIu64 ",\"action\":\"%s\",", deferred->number,
                   deferred->ended, deferred->removal ? "remove ephemeral" : ops[item.op]);
        if (deferred->set_aside)
            buf_lit(buf, "\"aside\":true,");
        write_member(buf, "index", item.index);
        buf_byte(buf, ',');
        write_member(buf, "id", item.id);
        buf_byte(buf, '}');
    }
    buf_byte(buf, ']');
}

static void list_sessions(struct core *core, struct command *command)
{
    struct page page = page_begin(core, command);
    struct buf buf = BUF_INIT(BUF_UNLIMITED), deferred = BUF_INIT(BUF_UNLIMITED);
    struct list_writer list = {&buf, false};
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        const struct session *session = value;
        if (!session->locks_released)
            page_add(&page, session_number(session), session);
    }
    size_t count = page_finish(&page, OWNERS_PER_PAGE);
    for (size_t i = 0; i < count; i++) {
        next_of(&list);
        write_session(core, &command->status, page.found[i].object, false, &buf);
        buf_byte(&buf, '}');
    }
    command->status.page = arena_copy(&command->arena, buf_as_slice(&buf));
    if (command->status.cursor == 0)
        write_deferred(core, &deferred);
    command->status.body = arena_copy(&command->arena, buf_as_slice(&deferred));
    buf_deinit(&buf);
    buf_deinit(&deferred);
}

static void write_held_locks(struct core *core, struct command *command, const struct lock_owner *owner)
{
    REQUIRE(owner->user != NULL);
    struct page page = page_begin(core, command);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct list_writer list = {&buf, false};
    list_for_each(link, &owner->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        if (hold->mode != LOCK_NONE && !hold->auxiliary)
            page_add(&page, hold->number, hold);
    }
    size_t count = page_finish(&page, LOCKS_PER_PAGE);
    for (size_t i = 0; i < count; i++) {
        if (buf.len >= LOCKS_BYTES_MAX) {
            command->status.cursor = page.found[i - 1].number;
            break;
        }
        next_of(&list);
        buf_byte(&buf, '{');
        describe_lock_json(page.found[i].object, &buf);
        buf_byte(&buf, '}');
    }
    command->status.page = arena_copy(&command->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
}

/* Finds a live session for the begin of a query transaction. */
static void find_session(struct core *core, struct command *command)
{
    const struct session *session = session__find(core, command->status.id, &command->arena, &command->problem);
    if (session != NULL)
        command->status.number = session_number(session);
}

static void show_session(struct core *core, struct command *command)
{
    struct slice asked = command->status.id;
    struct session *session = owners_session(core->owners, asked);
    bool by_id = session != NULL && !session->locks_released;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    if (!by_id)
        session = session__by_number(core, asked);
    if (session == NULL)
        session = session__find(core, asked, &command->arena, &command->problem);
    if (session == NULL)
        return;
    if (command->status.cursor == 0) {
        write_session(core, &command->status, session, by_id, &buf);
        write_detail(&command->status, session, by_id, &buf);
    }
    command->status.body = arena_copy(&command->arena, buf_as_slice(&buf));
    write_held_locks(core, command, &session->owner.locks);
    buf_deinit(&buf);
}

/* --- Transactions ------------------------------------------------------------------------------------------------- */

static void write_txn_head(struct buf *buf, enum txn_mode mode, const char *state, struct slice session, tl_ts created)
{
    uint64_t number;
    buf_printf(buf, ",\"mode\":\"%s\",\"state\":\"%s\",\"created\":%" PRIu64, mode == TXN_QUERY ? "query" : "update",
               state, created);
    if (slice_to_u64(session, &number))
        buf_printf(buf, ",\"session\":%" PRIu64, number);
}

static void write_txn(struct core *core, const struct txn *txn, bool by_id, struct buf *buf)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    buf_byte(buf, '{');
    write_number("transaction", txn->id, txn->owner.locks.number, by_id, buf);
    write_txn_head(buf, TXN_UPDATE, "active", txn__session_text(txn, &core->arena), txn->created);
    buf_printf(buf, ",\"timestamp\":%" PRIu64 ",\"timeout_us\":%" PRIu64, core->ts, txn->timeout_us);
    if (txn->wait == NULL && !txn->owner.abandoned)
        buf_printf(buf, ",\"expires\":%" PRIu64, deadline_ts(core, txn->idle.at));
    buf_printf(buf, ",\"lock_count\":%zu,\"changes\":%" PRIu64 ",\"bytes\":%zu,\"waiting\":%s}",
               txn->owner.locks.lock_count, txn->overlay == NULL ? 0 : write__overlay_changes(txn->overlay),
               txn->overlay == NULL ? 0 : overlay_bytes(txn->overlay), txn->wait != NULL ? "true" : "false");
}

static void write_outcome(struct slice id, const struct txn_outcome *outcome, struct buf *buf)
{
    buf_byte(buf, '{');
    write_member(buf, "transaction", id);
    write_txn_head(buf, outcome->mode, outcome->committed ? "committed" : "rolled_back", outcome->session,
                   outcome->created);
    buf_printf(buf, ",\"ended\":%" PRIu64, outcome->ended);
    if (outcome->committed) {
        buf_printf(buf, ",\"commit_timestamp\":%" PRIu64 ",\"changes\":%" PRIu64, outcome->commit_ts, outcome->changes);
    } else {
        buf_byte(buf, ',');
        write_member(buf, "cause", outcome->cause);
    }
    buf_byte(buf, '}');
}

static int write_one_txn(struct core *core, struct command *command, struct buf *buf)
{
    REQUIRE(command->status.id.len > 0); /* else all are listed */
    struct slice id = command->status.id;
    struct txn *txn = map_get(&core->owners->txns, id);
    struct txn_outcome outcome;
    bool by_id = txn != NULL;
    if (txn == NULL)
        txn = txn__by_number(core, id);
    if (txn != NULL) {
        write_txn(core, txn, by_id, buf);
        return 0;
    }
    int r = txn__get_outcome(core, id, &command->arena, &outcome);
    if (r == 0)
        write_outcome(id, &outcome, buf);
    else if (r > 0)
        problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_MISSING,
                    "no transaction [%.*s]: it ended more than an hour ago, or never existed", SLICE_ARG(id));
    return r < 0 ? tl_trace(r) : 0;
}

static void list_txns(struct core *core, struct command *command)
{
    struct page page = page_begin(core, command);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct list_writer list = {&buf, false};
    list_for_each(link, &core->owners->open_txns)
    {
        const struct txn *txn = list_entry(link, struct txn, of_all);
        page_add(&page, txn->owner.locks.number, txn);
    }
    size_t count = page_finish(&page, OWNERS_PER_PAGE);
    for (size_t i = 0; i < count; i++) {
        next_of(&list);
        write_txn(core, page.found[i].object, false, &buf);
    }
    command->status.page = arena_copy(&command->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
}

static int show_txn(struct core *core, struct command *command)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    int r = write_one_txn(core, command, &buf);
    command->status.body = arena_copy(&command->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return r;
}

static void show_lock_events(struct core *core, struct command *command)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    lock_events_json(&core->owners->lock_events, &buf);
    command->status.body = arena_copy(&command->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
}

/* --- The command -------------------------------------------------------------------------------------------------- */

int core__do_status(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_STATUS);
    REQUIRE(command->status.what < STATUS_WHAT_COUNT);
    bool one = command->status.id.len > 0;
    switch (command->status.what) {
    case STATUS_LOCKS: status__locks(core, command); return 0;
    case STATUS_OVERVIEW: status__overview(core, command); return 0;
    case STATUS_SESSION: find_session(core, command); return 0;
    case STATUS_SESSIONS: one ? show_session(core, command) : list_sessions(core, command); return 0;
    case STATUS_TRANSACTIONS:
        if (one)
            return show_txn(core, command);
        list_txns(core, command);
        return 0;
    default: show_lock_events(core, command); return 0;
    }
}
