/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /_changes: the feed, a commit a line (core/feed/README.md). A request that waits for changes,
 * or keeps its response open, needs no thread meanwhile (request/followers.h). An open response is
 * filled only as fast as the client reads: the next lines are read from the feed when the previous
 * ones were sent.
 *
 * The feed names the changed documents; their contents are read from their versions at the commit's
 * timestamp. Where the history no longer reaches back to it, the newest version takes its place,
 * marked "later", with its own timestamp: the renames up to that timestamp have moved it already.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "api/request/followers.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/reply.h"
#include "api/request/request_budget.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/documents/listing.h"
#include "core/feed/feed.h"
#include "core/feed/feed_read.h"
#include "json/filter.h"
#include "mapping/mapping.h"

#define WAIT_US_MAX ((int64_t)(3600 * TL_SECOND))

enum {
    LIMIT_DEFAULT = 1000,
    LIMIT_MAX = 100000,
    CHANGE_STEPS = 500,         /* of the account: what finding a document costs */
    ENOUGH_BYTES = 16 << 20,    /* an answer that is so long ends with the commit that it is at */
    SOME_BYTES = 1 << 20,       /* ... and what goes into a stream at once */
    UNSENT_BYTES_MAX = 1 << 20, /* a stream that has so much to send gets no more */
    PIECE_BYTES = 256 << 10,    /* of a line that is longer */
    BEHIND_US = 5000,           /* between two looks whether it was sent */
    SILENCE_MS = 30 * 1000,     /* a client that confirms nothing for so long is gone */
};

struct changes {
    tl_ts since;
    int32_t limit;
    bool source;
    bool expand;             /* a rename is listed as the changes of each document */
    bool previous_routing;   /* each document is compared with its version before the commit */
    bool keys;               /* documents are named, and read only where they may have routings */
    struct slice expression; /* data NULL: all indices */
    uint32_t *numbers;       /* of the indices that the expression names now, or named at `since`, sorted */
    size_t number_count, number_capacity;

    int64_t wait_us;          /* for the first change; 0: not at all */
    struct follower follower; /* while it waits */

    bool continuous;  /* the answer stays open */
    struct buf lines; /* that are to go into it, ... */
    size_t sent;      /* ... of which so much has been handed over */
    uint64_t beat_us; /* when it says that there is nothing, by clock_boot_us() */

    uint64_t reported; /* changes, */
    size_t in_line; /* ... and in the line that is being written */
};

/* --- Which changes belong to the indices of the request ----------------------------------------------------------- */

/* By name, of an index that was made and deleted since. After a pattern a '-' excludes names. */
static bool is_named(const struct changes *changes, struct slice name)
{
    struct slice rest = changes->expression;
    bool named = rest.len == 0, pattern_before = false;
    while (rest.len > 0) {
        size_t len = slice_find_byte(rest, ',');
        struct slice pattern = slice_make(rest.data, len);
        bool away = pattern_before && pattern.len > 1 && pattern.data[0] == '-';
        if (away)
            pattern = slice_from_offset(pattern, 1);
        if (slice_is(pattern, "_all") || json_wildcard(pattern, name))
            named = !away;
        pattern_before = pattern_before || slice_find_byte(pattern, '*') < pattern.len;
        rest = slice_from_offset(rest, len + 1);
    }
    return named;
}

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static bool is_asked_for(const struct changes *changes, const struct feed_change *change)
{
    if (changes->expression.len == 0)
        return true;
    if (changes->number_count > 0 &&
        bsearch(&change->index, changes->numbers, changes->number_count, sizeof *changes->numbers, by_number) != NULL)
        return true;
    bool matches_by_name = change->kind == FEED_INDEX_CREATED || change->kind == FEED_INDEX_DELETED;
    return matches_by_name && is_named(changes, change->name);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

static void put_text(struct buf *to, const char *key, struct slice text)
{
    buf_printf(to, ",\"%s\":", key);
    buf_json_string(to, text);
}

/*
 * Reads a document as it is at `ts`; where that cannot be read any more, as it is now, and *ret_later is set. With
 * `previous_routing` the version before the commit must be readable, too.
 */
static int read_document(struct request *request, bool previous_routing, const struct feed_change *change, tl_ts ts,
                         struct doc *ret_doc, bool *ret_later)
{
    struct view view = request->view;
    int r = DOC_TOO_OLD;
    *ret_later = false;
    view.ts = ts - 1;
    if (!previous_routing || !view_is_too_old(&view)) {
        view.ts = ts;
        r = doc_get(&view, change->index, change->type, change->name, ret_doc);
    }
    if (r != DOC_TOO_OLD)
        return r;
    *ret_later = true;
    return doc_get(&request->view, change->index, change->type, change->name, ret_doc);
}

/* The routing of a version: a document's, or that of the document that a tombstone deleted. */
struct version_routing {
    bool found; /* there is a version */
    bool given; /* ... and it has a routing */
    struct buf text;
};

/* Returns: 0; DOC_TOO_OLD; fatal codes. */
static int read_routing(struct request *request, const struct feed_change *change, tl_ts ts,
                        struct version_routing *ret_routing)
{
    struct view view = request->view;
    struct doc doc;
    view.ts = ts;
    int r = doc_get_any(&view, change->index, change->type, change->name, &doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : r == DOC_TOO_OLD ? r : 0;
    ret_routing->found = true;
    ret_routing->given = doc.routing.data != NULL;
    buf_slice(&ret_routing->text, doc.routing);
    doc_release(&doc);
    return 0;
}

/* A reader that copies documents into shards has to delete a version in the shard of its own routing. */
static int put_previous_routing(struct request *request, const struct feed_change *change, tl_ts ts,
                                struct slice routing, struct buf *to)
{
    struct version_routing before = {.text = BUF_INIT(BUF_UNLIMITED)};
    int r = read_routing(request, change, ts - 1, &before);
    bool differs =
        before.given != (routing.data != NULL) || (before.given && !slice_equal(buf_as_slice(&before.text), routing));
    if (r == 0 && before.found && differs && before.given)
        put_text(to, "_previous_routing", buf_as_slice(&before.text));
    else if (r == 0 && before.found && differs)
        buf_lit(to, ",\"_previous_routing\":null");
    else if (r == DOC_TOO_OLD) /* the history was trimmed meanwhile */
        buf_lit(to, ",\"later\":true");
    buf_deinit(&before.text);
    return r < 0 ? r : 0;
}

/* A deleted document is shown with the routing that it had. */
static int put_gone(struct request *request, bool previous_routing, const struct feed_change *change, tl_ts ts,
                    bool later, struct buf *to)
{
    struct version_routing deleted = {.text = BUF_INIT(BUF_UNLIMITED)};
    int r = read_routing(request, change, later ? request->view.ts : ts, &deleted);
    struct slice routing = deleted.given ? buf_as_slice(&deleted.text) : SLICE_NONE;
    if (r >= 0 && routing.data != NULL)
        put_text(to, "_routing", routing);
    if (r >= 0 && previous_routing && !later)
        r = put_previous_routing(request, change, ts, routing, to);
    buf_deinit(&deleted.text);
    return r < 0 ? r : 0;
}

static void put_name(const struct catalog_index *index, const struct feed_change *change, const char *op,
                     struct buf *to)
{
    const struct mapping_type *type = mapping_type_by_number(index->mapping, change->type);
    buf_printf(to, "{\"op\":\"%s\"", op);
    put_text(to, "_index", index->name);
    put_text(to, "_type", type != NULL ? type->name : SLICE_LIT("_doc"));
    put_text(to, "_id", change->name);
}

/* Puts a source on one line. Its line breaks are white space between values: strings have none unescaped. */
static void put_on_one_line(struct slice source, struct buf *to)
{
    size_t at = 0;
    for (size_t i = 0; i < source.len; i++) {
        if (source.data[i] != '\n' && source.data[i] != '\r')
            continue;
        buf_append(to, source.data + at, i - at);
        buf_byte(to, ' ');
        at = i + 1;
    }
    buf_slice(to, slice_from_offset(source, at));
}

/*
 * The document is read without sources, too: the record names it, but has neither its _version,
 * _seq_no and routing nor whether it existed at `ts` (it may be named although it has not changed).
 * These precede the source in the document record, which the store returns as a whole, without
 * copying it. The source is read further only below a renamed path, where the renames determine
 * the version, too.
 */
static int put_document(struct request *request, struct changes *changes, const struct catalog_index *index,
                        const struct feed_change *change, tl_ts ts, struct buf *to)
{
    /* The request's catalog is not older than its view: an index without the mark has no version with a routing. */
    bool routings = index->may_have_routings, previous_routing = changes->previous_routing && routings;
    struct doc doc;
    bool later;
    if (changes->keys && !routings) {
        put_name(index, change, "changed", to);
        buf_byte(to, '}');
        return 0;
    }
    int r = read_document(request, previous_routing, change, ts, &doc, &later);
    if (r < 0 || r == DOC_TOO_OLD)
        return r < 0 ? tl_trace(r)
                     : request_refuse(request, PROBLEM_TIMESTAMP_TOO_OLD,
                                      "the history was purged while it was read: repeat the request");
    put_name(index, change, r == 0 ? "index" : "delete", to);
    if (r == 0) {
        buf_printf(to, ",\"_version\":%" PRId64 ",\"_seq_no\":%" PRId64 ",\"_primary_term\":1", doc.version,
                   doc.seq_no);
        if (doc.routing.data != NULL)
            put_text(to, "_routing", doc.routing);
        if (previous_routing && !later)
            r = put_previous_routing(request, change, ts, doc.routing, to);
        if (later)
            buf_printf(to, ",\"timestamp\":%" PRIu64, doc.ts);
        if (changes->source) {
            buf_lit(to, ",\"_source\":");
            put_on_one_line(doc.source, to);
        }
        (void)account_take(&request->account, doc.source.len);
        doc_release(&doc);
    } else {
        r = routings ? put_gone(request, previous_routing, change, ts, later, to) : 0;
    }
    if (later)
        buf_lit(to, ",\"later\":true");
    buf_byte(to, '}');
    return r;
}

/* --- Renames, document by document -------------------------------------------------------------------------------- */

/*
 * Directories that are still to be listed, each a length and its text: a queue, so that at any
 * depth one listing is open.
 */
struct expansion {
    struct request *request;
    struct changes *changes;
    const struct catalog_index *index;
    tl_ts ts;         /* of the commit */
    struct view view; /* as of then, or as of now where the history does not reach back */
    struct buf queue;
    size_t taken;
    struct buf *to;
};

static void write_separator(struct changes *changes, struct buf *to)
{
    if (changes->in_line++ > 0)
        buf_byte(to, ',');
    changes->reported++;
}

/* `key`: type number and id. */
static int put_moved(const struct expansion *expansion, struct slice key)
{
    uint16_t type = (uint16_t)((uint8_t)key.data[0] << 8 | (uint8_t)key.data[1]);
    const struct feed_change change = {
        .kind = FEED_WRITTEN, .index = expansion->index->number, .type = type, .name = slice_from_offset(key, 2)};
    if (request_budget_stops(expansion->request, CHANGE_STEPS))
        return request_budget_refuse(expansion->request);
    write_separator(expansion->changes, expansion->to);
    return put_document(expansion->request, expansion->changes, expansion->index, &change, expansion->ts,
                        expansion->to);
}

/* Returns: 0; REQUEST_REFUSED: there is no room for so many. */
static int queue_directory(struct expansion *expansion, struct slice above, struct slice name)
{
    buf_varint(&expansion->queue, above.len + 1 + name.len);
    buf_slice(&expansion->queue, above);
    buf_byte(&expansion->queue, '/');
    buf_slice(&expansion->queue, name);
    return expansion->queue.overflow ? request_budget_refuse(expansion->request) : 0;
}

/* What a listing has come to, which ends early when the account is over. */
static int end_of(const struct expansion *expansion, int r)
{
    if (r >= 0 && request_budget_refused(expansion->request))
        return request_budget_refuse(expansion->request);
    return r == LISTING_END ? 0 : r;
}

static int put_directory(struct expansion *expansion, struct slice path)
{
    tl_cleanup(listing_freep) struct listing *listing =
        listing_new(&expansion->view, expansion->index->number, expansion->index->mapping, path, SLICE_NONE);
    struct listing_item item;
    int r;
    listing_set_account(listing, &expansion->request->account);
    while ((r = listing_next(listing, &item)) == 0) {
        r = item.directory ? queue_directory(expansion, path, item.name) : put_moved(expansion, item.document_key);
        if (r != 0)
            return r;
    }
    return end_of(expansion, r);
}

/* The documents at the path itself: in its parent directory, under its name. */
static int put_at(struct expansion *expansion, struct slice path)
{
    size_t slash = path.len;
    while (slash > 0 && path.data[slash - 1] != '/')
        slash--;
    struct slice name = slice_from_offset(path, slash), before = slice_make(name.data, name.len - 1);
    tl_cleanup(listing_freep) struct listing *listing =
        listing_new(&expansion->view, expansion->index->number, expansion->index->mapping,
                    slice_make(path.data, slash > 0 ? slash - 1 : 0), before);
    struct listing_item item;
    int r;
    listing_set_account(listing, &expansion->request->account);
    while ((r = listing_next(listing, &item)) == 0 && slice_compare(item.key, name) <= 0)
        if (!item.directory && slice_equal(item.name, name) && (r = put_moved(expansion, item.document_key)) != 0)
            return r;
    return end_of(expansion, r);
}

/*
 * The documents that a rename moved are below its destination, as of its commit. Where later
 * renames, of the same commit or of others, have moved them again, the lines of those list them.
 */
static int put_expanded(struct request *request, struct changes *changes, const struct catalog_index *index,
                        const struct feed_change *change, tl_ts ts, struct buf *to)
{
    struct expansion expansion = {request, changes, index, ts, request->view, BUF_INIT(BUF_UNLIMITED), 0, to};
    expansion.view.ts = ts;
    expansion.queue.guard = request->arena->guard;
    if (view_is_too_old(&expansion.view))
        expansion.view.ts = request->view.ts;
    int r = put_at(&expansion, change->to);
    if (r == 0)
        r = put_directory(&expansion, change->to);
    while (r == 0 && expansion.taken < expansion.queue.len) {
        struct slice rest = slice_from_offset(buf_as_slice(&expansion.queue), expansion.taken), text;
        uint64_t len;
        bool whole = slice_take_varint(&rest, &len) && slice_take(&rest, len, &text);
        REQUIRE(whole);
        struct buf path = BUF_INIT(BUF_UNLIMITED); /* the queue may move */
        buf_slice(&path, text);
        expansion.taken = expansion.queue.len - rest.len;
        r = put_directory(&expansion, buf_as_slice(&path));
        buf_deinit(&path);
    }
    buf_deinit(&expansion.queue);
    return r;
}

static void put_index_change(const struct catalog_index *index, const struct feed_change *change, struct buf *to)
{
    static const char *const ops[] = {[FEED_INDEX_CREATED] = "index_created",
                                      [FEED_INDEX_DELETED] = "index_deleted",
                                      [FEED_MAPPING] = "mapping",
                                      [FEED_ALIASES] = "aliases",
                                      [FEED_SETTINGS] = "settings",
                                      [FEED_RENAMED] = "rename"};
    buf_printf(to, "{\"op\":\"%s\"", ops[change->kind]);
    put_text(to, change->kind == FEED_RENAMED ? "index" : "_index", index != NULL ? index->name : change->name);
    if (change->kind == FEED_RENAMED) {
        put_text(to, "from", change->name);
        put_text(to, "to", change->to);
    }
    buf_byte(to, '}');
}

/* Of a deleted index only its deletion is listed. */
static int put_change(struct request *request, struct changes *changes, const struct feed_change *change, tl_ts ts,
                      struct buf *to)
{
    const struct catalog_index *index = catalog_index_by_number(request->catalog, change->index);
    bool by_name = change->kind == FEED_INDEX_CREATED || change->kind == FEED_INDEX_DELETED;
    if (!is_asked_for(changes, change) || (index == NULL && !by_name))
        return 0;
    if (change->kind == FEED_RENAMED && changes->expand)
        return put_expanded(request, changes, index, change, ts, to);
    write_separator(changes, to);
    if (change->kind == FEED_WRITTEN || change->kind == FEED_DELETED)
        return put_document(request, changes, index, change, ts, to);
    put_index_change(index, change, to);
    return 0;
}

static int put_record(struct request *request, struct changes *changes, const struct feed_record *record,
                      struct buf *to)
{
    struct slice rest = record->changes;
    struct feed_change change;
    while (rest.len > 0) {
        if (request_budget_stops(request, CHANGE_STEPS))
            return request_budget_refuse(request);
        if (!feed_change_take(&rest, &change))
            return tl_trace(TL_ERR_CORRUPT);
        int r = put_change(request, changes, &change, record->ts, to);
        if (r != 0)
            return r;
    }
    return 0;
}

static void begin_line(struct changes *changes, const struct feed_record *record, struct buf *to)
{
    changes->in_line = 0;
    buf_printf(to, "{\"timestamp\":%" PRIu64, record->ts);
    if (record->transaction.len > 0)
        put_text(to, "transaction", record->transaction);
    buf_lit(to, ",\"changes\":[");
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static int refuse_reach(struct request *request, int outcome, tl_ts from)
{
    if (outcome == FEED_OFF)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "the feed of changes is off: start the server with [--feed] and a time");
    if (from == TL_TS_MAX)
        return request_refuse(request, PROBLEM_TIMESTAMP_TOO_OLD,
                              "the feed of changes is empty: nothing has changed since it was switched on");
    int r = request_refuse(request, PROBLEM_TIMESTAMP_TOO_OLD,
                           "the changes since then were purged: the oldest possible [since] is %" PRIu64
                           "; compare your copy with the documents, and follow from there",
                           from);
    problem_details(&request->problem, request->arena, "\"oldest\":%" PRIu64, from);
    return r;
}

/*
 * Writes a line for each commit, as long as there is room: a commit is never cut. *ret_covered is
 * the timestamp up to which the answer has everything.
 */
static int put_lines(struct request *request, struct changes *changes, struct feed_scan *scan, struct buf *to,
                     tl_ts *ret_covered)
{
    struct feed_record record;
    tl_ts open = 0; /* the commit whose line is being written; 0: none */
    size_t line_at = 0;
    int r;
    while ((r = feed_scan_next(scan, &record)) == 0) {
        if (record.ts != open) {
            if (open != 0 && changes->in_line > 0)
                buf_lit(to, "]}\n");
            else if (open != 0)
                buf_truncate(to, line_at);
            *ret_covered = open != 0 ? open : *ret_covered;
            open = 0;
            if (changes->reported >= (uint64_t)changes->limit ||
                to->len >= (changes->continuous ? SOME_BYTES : ENOUGH_BYTES))
                return 0;
            line_at = to->len;
            open = record.ts;
            begin_line(changes, &record, to);
        }
        r = put_record(request, changes, &record, to);
        if (r != 0)
            return r;
    }
    if (open != 0 && changes->in_line > 0)
        buf_lit(to, "]}\n");
    else if (open != 0)
        buf_truncate(to, line_at);
    *ret_covered = request->view.ts;
    return r == FEED_END ? 0 : r;
}

/*
 * Adds the indices that the expression names in a catalog. A waiting request does so repeatedly:
 * its memory is released each time.
 */
static int add_indices(struct request *request, struct changes *changes, const struct catalog *catalog)
{
    struct arena arena = ARENA_INIT;
    struct catalog_target *targets;
    size_t count;
    int r = catalog_resolve(catalog, changes->expression, &catalog_options_every_index, request->dialect, &arena,
                            &targets, &count, &request->problem);
    if (r > 0) { /* the refusal lives as long as the request */
        r = catalog_resolve(catalog, changes->expression, &catalog_options_every_index, request->dialect,
                            request->arena, &targets, &count, &request->problem);
        r = r > 0 ? REQUEST_REFUSED : r;
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        changes->numbers = arena_grow(request->arena, changes->numbers, changes->number_count,
                                      &changes->number_capacity, sizeof *changes->numbers);
        changes->numbers[changes->number_count++] = targets[i].index->number;
    }
    arena_deinit(&arena);
    return r;
}

/* An index that has gone since then went with its aliases: they are looked up as they were, as far as that is known. */
static int find_indices(struct request *request, struct changes *changes)
{
    struct view then = request->view;
    struct catalog *catalog = NULL;
    then.ts = changes->since;
    int r = add_indices(request, changes, request->catalog);
    if (r != 0)
        return r;
    r = view_is_too_old(&then) ? STORE_TOO_OLD : catalog_load(&then, &catalog);
    if (r < 0)
        return tl_trace(r);
    r = r == 0 ? add_indices(request, changes, catalog) : 0;
    catalog_unref(catalog);
    if (changes->number_count > 1)
        qsort(changes->numbers, changes->number_count, sizeof *changes->numbers, by_number);
    return r;
}

/* Reads what comes after `since`. Returns: 0 and up to when that is; REQUEST_REFUSED; fatal codes. */
static int read_lines(struct request *request, struct changes *changes, struct buf *to, tl_ts *ret_covered)
{
    struct feed_scan *scan = NULL;
    tl_ts from = 0;
    changes->number_count = 0;
    changes->reported = 0;
    *ret_covered = changes->since;
    int r = changes->expression.len > 0 ? find_indices(request, changes) : 0;
    if (r != 0)
        return r;
    r = feed_scan_new(request->view.store, changes->since, request->view.ts, &scan, &from);
    if (r > 0)
        return refuse_reach(request, r, from);
    if (r < 0)
        return tl_trace(r);
    r = put_lines(request, changes, scan, to, ret_covered);
    feed_scan_free(scan);
    return r;
}

/* --- One answer --------------------------------------------------------------------------------------------------- */

static int look_again(struct request *request);

/* Returns: as followers_wait(). */
static int wait_for_changes(struct request *request, struct changes *changes, tl_ts covered)
{
    if (changes->reported > 0 || clock_boot_us() >= changes->follower.until_us || atomic_load(&request->abandoned))
        return REQUEST_DONE;
    changes->since = changes->follower.seen = covered;
    request_look_away(request);
    return followers_wait(request->api->followers, &changes->follower);
}

static int run_changes(struct request *request)
{
    struct changes *changes = request->context;
    struct buf *to = reply_text(request, 200);
    tl_ts covered;
    int r = read_lines(request, changes, to, &covered);
    request->exchange->content_type = "application/x-ndjson";
    request->exchange->timestamp = covered;
    return r == 0 ? wait_for_changes(request, changes, covered) : r;
}

static int look_again(struct request *request)
{
    request_look_again(request);
    return run_changes(request);
}

/* --- An answer that stays open ------------------------------------------------------------------------------------ */

/* Returns: REQUEST_PENDING; the request is gone. */
static int end_stream(struct request *request, struct changes *changes)
{
    buf_deinit(&changes->lines);
    request_end_stream(request);
    return REQUEST_PENDING;
}

/* The last line says why there are no more. */
static int end_with_problem(struct request *request, struct changes *changes, int code)
{
    const struct problem *problem = &request->problem;
    struct buf line = BUF_INIT(BUF_UNLIMITED);
    if (code < 0) {
        buf_lit(&line, "{\"error\":{\"type\":\"illegal_state_exception\",\"reason\":\"the changes cannot be "
                       "read\"},\"status\":500}\n");
    } else {
        buf_printf(&line, "{\"error\":{\"type\":\"%s\",\"reason\":", problem_name(problem->type));
        buf_json_string(&line, problem->reason);
        buf_printf(&line, "},\"status\":%d}\n", problem_status(problem));
    }
    request->exchange->ops->stream_write(request->exchange, buf_as_slice(&line));
    buf_deinit(&line);
    return end_stream(request, changes);
}

static bool all_sent(const struct changes *changes)
{
    return changes->sent == changes->lines.len;
}

/* As fast as the client reads. */
static void send_some(struct request *request, struct changes *changes)
{
    const struct exchange_ops *ops = request->exchange->ops;
    while (!all_sent(changes) && ops->stream_unsent(request->exchange) < UNSENT_BYTES_MAX) {
        struct slice piece = slice_from_offset(buf_as_slice(&changes->lines), changes->sent);
        piece.len = piece.len < PIECE_BYTES ? piece.len : PIECE_BYTES;
        ops->stream_write(request->exchange, piece);
        changes->sent += piece.len;
    }
}

/* Reads what there is by now. Where there was nothing for a second, it says so, and up to when. */
static int read_more(struct request *request, struct changes *changes, bool *ret_more)
{
    tl_ts covered;
    buf_clear(&changes->lines);
    changes->sent = 0;
    request_look_again(request);
    int r = read_lines(request, changes, &changes->lines, &covered);
    if (r == 0 && changes->lines.overflow)
        r = request_budget_refuse(request);
    *ret_more = covered < request->view.ts;
    request_look_away(request);
    changes->since = covered;
    uint64_t now = clock_boot_us();
    if (r == 0 && changes->lines.len == 0 && now >= changes->beat_us)
        buf_printf(&changes->lines, "{\"timestamp\":%" PRIu64 "}\n", covered);
    if (changes->lines.len > 0)
        changes->beat_us = now + TL_SECOND;
    return r;
}

static int continue_stream(struct request *request)
{
    struct changes *changes = request->context;
    bool more = false;
    if (atomic_load(&request->abandoned))
        return end_stream(request, changes);
    if (all_sent(changes)) {
        int r = read_more(request, changes, &more);
        if (r != 0)
            return end_with_problem(request, changes, r);
    }
    send_some(request, changes);
    bool behind = !all_sent(changes);
    changes->follower.seen = behind ? TL_TS_MAX : changes->since;
    changes->follower.until_us = behind ? clock_boot_us() + BEHIND_US : more ? 0 : changes->beat_us;
    return followers_wait(request->api->followers, &changes->follower) == REQUEST_PENDING
               ? REQUEST_PENDING
               : end_stream(request, changes);
}

/* A refusal of its first position is an ordinary response; after that the response is open. */
static int open_stream(struct request *request)
{
    struct changes *changes = request->context;
    struct exchange *exchange = request->exchange;
    bool more;
    changes->lines = BUF_INIT(BUF_UNLIMITED);
    changes->lines.guard = exchange->response.guard;
    changes->beat_us = clock_boot_us() + TL_SECOND;
    int r = read_more(request, changes, &more);
    if (r != 0) {
        buf_deinit(&changes->lines);
        return r;
    }
    exchange->status = 200;
    exchange->content_type = "application/x-ndjson";
    exchange->timestamp = changes->since;
    exchange->tcp_user_timeout_ms = SILENCE_MS;
    request_count(request);
    exchange->ops->stream_open(exchange);
    return continue_stream(request);
}

static int begin_changes(struct request *request)
{
    struct changes *changes = request->context;
    if (changes->since > request->view.ts)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[since] is in the future: it is %" PRIu64 " now",
                              request->view.ts);
    if (request_param(request, "since").data == NULL)
        changes->since = request->view.ts;
    changes->follower = (struct follower){.request = request,
                                          .then = changes->continuous ? continue_stream : look_again,
                                          .until_us = clock_boot_us() + (uint64_t)changes->wait_us};
    return request_work(request, changes->continuous ? open_stream : run_changes);
}

int handle_changes(struct request *request)
{
    struct changes *changes = arena_zalloc(request->arena, sizeof *changes);
    int64_t since = 0;
    int r;
    *changes = (struct changes){.limit = LIMIT_DEFAULT, .source = true, .expression = request_param(request, "index")};
    request->context = changes;
    if ((r = request_long(request, "since", &since)) != 0 ||
        (r = request_int(request, "limit", &changes->limit)) != 0 ||
        (r = request_bool(request, "source", &changes->source)) != 0 ||
        (r = request_bool(request, "expand", &changes->expand)) != 0 ||
        (r = request_bool(request, "previous_routing", &changes->previous_routing)) != 0 ||
        (r = request_bool(request, "keys", &changes->keys)) != 0 ||
        (r = request_time(request, "wait", &changes->wait_us)) != 0)
        return r;
    if (changes->wait_us < 0 || changes->wait_us > WAIT_US_MAX)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[wait] is how long to wait for a change, 1h at most");
    if (changes->keys && changes->source)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[keys] shows no sources: add [source=false]");
    if (since < 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[since] is a timestamp in microseconds: [GET /_timestamp] returns the current one");
    struct slice feed = request_param(request, "feed");
    changes->continuous = slice_is(feed, "continuous");
    if (feed.data != NULL && !changes->continuous)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[feed] can be [continuous], where the answer stays open");
    if (changes->continuous && request_param(request, "wait").data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[wait] is for an answer that ends; with [feed=continuous] it stays open");
    if (changes->continuous && request_param(request, "limit").data != NULL)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "[limit] is for a response that ends; with [feed=continuous] it stays open and has all changes");
    if (changes->limit < 1 || changes->limit > LIMIT_MAX)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[limit] is the number of changes in a response, from 1 to %d", LIMIT_MAX);
    changes->since = (tl_ts)since;
    r = request_accept(request);
    return r == 0 ? request_read(request, NULL, 0, begin_changes) : r;
}
