/* SPDX-License-Identifier: Apache-2.0 */
/* The feed of a copy, page by page: which documents changed; see replica.h, invariants 2 and 3. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/replica.h"
#include "json/each.h"

enum {
    PAGE_CHANGES = 1000,
    CATCH_UP_CHANGES = 5000, /* of a page while catching up: fewer round trips, and at most 10 MiB */
    SUSPECTS_SOME = 256,     /* that are looked at at a time */
    SENT_MAX = 200000,       /* documents, and places, whose last reading is known; 100 bytes each */
};

#define PLACE_EVERY_US TL_SECOND
/*
 * A mark sends what the lanes have, so a copy that catches up sets one only so often: else each
 * page would end its batches.
 */
#define MARK_EVERY_US (250 * 1000)
#define PLACE_IDLE_US (30 * TL_SECOND) /* without changes, so that the feed still reaches back to the place */

/*
 * The timestamps as of which recently sent documents were read. A copy that catches up has already
 * sent the state after most changes that it reads. Also those of places: a document and a routing
 * under which the document is, or was deleted. Only changes that are still to be read are compared
 * with them. So when there are more than SENT_MAX, those up to the last page are forgotten, and if
 * more than half remain, all of them: documents are then sent again, with the same result.
 */
struct sent {
    struct map times; /* the timestamp, as a pointer */
};

/* What a page says, each thing once. */
struct page {
    const struct sent *sent;
    yyjson_doc **lines;
    size_t line_count;
    tl_ts newest;         /* of the changes */
    struct map documents; /* by index, type and id: one more than the number of the key */
    struct map places;    /* by the same and the routing: those that have a key that vacates */
    struct map indices;
    bool unplaced; /* of some documents the routings before are not known */
    bool dropped;  /* an index was deleted, whose changes the feed does not name any more */
    struct replica_key *keys;
    size_t count;
    size_t capacity;
};

static void page_deinit(struct page *page)
{
    for (size_t i = 0; i < page->line_count; i++)
        yyjson_doc_free(page->lines[i]);
    mem_free(page->lines);
    mem_free(page->keys);
    map_deinit(&page->documents);
    map_deinit(&page->places);
    map_deinit(&page->indices);
}

static void write_name(const struct replica_key *key, struct buf *to)
{
    buf_slice(to, key->index);
    buf_byte(to, '\0');
    buf_slice(to, key->type);
    buf_byte(to, '\0');
    buf_slice(to, key->id);
}

static void add_key(struct page *page, const struct replica_key *key)
{
    if (page->count == page->capacity) {
        page->capacity = page->capacity == 0 ? PAGE_CHANGES : 2 * page->capacity;
        page->keys = mem_realloc(page->keys, page->capacity * sizeof *page->keys);
    }
    page->keys[page->count++] = *key;
}

/* No name of a document is one of a place: no index begins with a number and a colon. */
static void write_key_place(const struct replica_key *document, struct slice routing, struct buf *to)
{
    buf_printf(to, "%zu:", routing.len);
    buf_slice(to, routing);
    write_name(document, to);
}

static bool is_sent(const struct page *page, struct slice name, tl_ts ts)
{
    return (tl_ts)(uintptr_t)map_get(&page->sent->times, name) >= ts;
}

/*
 * Returns: whether the document is in the page: one that was sent as of a later time has the
 * change.
 */
static bool add_document(struct page *page, const struct replica_key *key, tl_ts ts)
{
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
    write_name(key, &name);
    if (map_get(&page->documents, buf_as_slice(&name)) != NULL)
        return true;
    if (is_sent(page, buf_as_slice(&name), ts))
        return false;
    (void)map_put(&page->documents, buf_as_slice(&name), (void *)(uintptr_t)(page->count + 1));
    add_key(page, key);
    return true;
}

/* The target may have a version under a routing, whatever has become of the document. */
static void add_place(struct page *page, const struct replica_key *document, struct slice routing, tl_ts ts)
{
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED), place = BUF_INIT(BUF_UNLIMITED);
    write_name(document, &name);
    write_key_place(document, routing, &place);
    size_t number = (size_t)(uintptr_t)map_get(&page->documents, buf_as_slice(&name));
    struct replica_key *known = number > 0 ? &page->keys[number - 1] : NULL, key = *document;
    if (known != NULL && !known->placed) {
        known->placed = true;
        known->routing = routing;
    } else if ((known == NULL || !replica_same_routing(known->routing, routing)) &&
               map_get(&page->places, buf_as_slice(&place)) == NULL && !is_sent(page, buf_as_slice(&place), ts)) {
        (void)map_put(&page->places, buf_as_slice(&place), page);
        key.routing = routing;
        key.placed = key.vacates = true;
        add_key(page, &key);
    }
}

static void add_change(struct page *page, yyjson_val *change, tl_ts ts)
{
    struct slice op = replica_text(change, "op"), index = replica_text(change, "_index");
    struct replica_key key = {.index = index, .type = replica_text(change, "_type"), .id = replica_text(change, "_id")};
    if (slice_is(op, "changed") || slice_is(op, "index") || slice_is(op, "delete")) {
        bool added = add_document(page, &key, ts);
        /*
         * One that was sent already was deleted without a routing, unless that was of another one:
         * see note_sent().
         */
        if (slice_is(op, "delete") && (added || replica_text(change, "_routing").data != NULL))
            add_place(page, &key, replica_text(change, "_routing"), ts);
        if (yyjson_obj_get(change, "_previous_routing") != NULL)
            add_place(page, &key, replica_text(change, "_previous_routing"), ts);
        page->unplaced = page->unplaced || yyjson_get_bool(yyjson_obj_get(change, "later"));
    } else if (index.data != NULL) {
        (void)map_put(&page->indices, index, page);
        page->dropped = page->dropped || slice_is(op, "index_deleted");
    }
}

static void read_page(struct page *page, struct slice text)
{
    size_t capacity = 0;
    for (size_t i = 0; i < text.len; i++)
        capacity += text.data[i] == '\n';
    page->lines = mem_zalloc((capacity + 1) * sizeof *page->lines);
    while (text.len > 0) {
        size_t len = slice_find_byte(text, '\n'), i, count;
        yyjson_val *change;
        yyjson_doc *line = yyjson_read(text.data, len, 0);
        tl_ts ts = yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(line), "timestamp"));
        json_arr_foreach (yyjson_obj_get(yyjson_doc_get_root(line), "changes"), i, count, change)
            add_change(page, change, ts);
        if (count > 0)
            page->newest = ts;
        page->lines[page->line_count++] = line;
        text = slice_from_offset(text, len + 1);
    }
}

/* Forgets documents that were read as of `covered` at most: changes up to it are not read again. */
static void forget_sent(struct sent *sent, tl_ts covered)
{
    struct map kept = MAP_INIT;
    size_t at = 0;
    struct slice name;
    void *read;
    while (map_next(&sent->times, &at, &name, &read))
        if ((tl_ts)(uintptr_t)read > covered && kept.count <= SENT_MAX / 2)
            (void)map_put(&kept, name, read);
    map_deinit(&sent->times);
    if (kept.count > SENT_MAX / 2)
        map_deinit(&kept);
    sent->times = kept;
}

/*
 * A document that was deleted under a routing, if at all, may have been without one before: its
 * later changes count.
 */
static void note_sent(struct sent *sent, const struct page *page, tl_ts read)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct replica_key *key = &page->keys[i];
        tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
        if (key->vacates || (key->placed && key->routing.data != NULL))
            write_key_place(key, key->routing, &name);
        else
            write_name(key, &name);
        (void)map_put(&sent->times, buf_as_slice(&name), (void *)(uintptr_t)read);
    }
}

/*
 * Updates the page's indices to their present state, then sends the present state of its documents.
 * After a change of an index, documents that were sent before are sent again: the index may have
 * been created again.
 */
static int send_page(struct replica *replica, struct sent *sent, const struct page *page)
{
    tl_ts read = 0;
    size_t at = 0;
    struct slice name;
    void *value;
    int r = 0;
    target_begin_round(&replica->target);
    while (r == 0 && map_next(&page->indices, &at, &name, &value))
        r = copy_see_index(replica, name);
    for (size_t i = 0; r == 0 && i < page->count; i++)
        if (map_get(&replica->indices, page->keys[i].index) == NULL &&
            map_get(&page->indices, page->keys[i].index) == NULL)
            r = copy_see_index(replica, page->keys[i].index);
    if (page->indices.count > 0) {
        map_deinit(&sent->times);
        sent->times = MAP_INIT;
    }
    if (r == 0)
        r = source_send(replica, page->keys, page->count, &read);
    if (r == 0 && page->count > 0)
        note_sent(sent, page, read);
    if (sent->times.count > SENT_MAX)
        forget_sent(sent, replica->feed.timestamp);
    return r;
}

static long ask_for_changes(struct replica *replica, tl_ts since, bool catches_up, bool waits)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "/_changes?since=%" PRIu64 "&source=false&keys=true&expand=true&previous_routing=true&limit=%d%s",
               since, catches_up ? CATCH_UP_CHANGES : PAGE_CHANGES, waits ? "&wait=2s" : "");
    if (replica->options->index != NULL) {
        buf_lit(&path, "&index=");
        client_escape(&path, slice_from(replica->options->index));
    }
    buf_byte(&path, '\0');
    return source_ask_since(&replica->feed, path.data, since);
}

/* Where the place is, and when it was put into the target. */
struct progress_of_place {
    tl_ts written;
    tl_ts reached;
    uint64_t written_us;
    uint64_t marked_us; /* time of the last mark, by clock_boot_us() */
    bool moved;     /* by changes */
    bool suspected; /* there were suspects when it was written */
    tl_ts inherit;  /* what changed up to here may have been in the air before; TL_TS_MAX: not known yet */
};

static int write_place(struct replica *replica, tl_ts ts, bool clean)
{
    struct suspects_state suspects = suspects_state(replica->suspects);
    bool inheriting = replica->inheriting && replica->before.suspects < suspects.since; /* there are more to come */
    tl_ts since = inheriting ? replica->before.suspects : suspects.since;
    return target_write_place(
        &replica->target, replica->source_uuid,
        &(struct place){.ts = ts,
                        .clean = clean && !replica->inheriting,
                        .suspects = since < ts ? since : ts,
                        .seen = replica->seen,
                        .restored = replica->restored,
                        .whole = suspects.whole,
                        .suspects_left_us = inheriting ? replica->options->suspect_us : suspects.left_us});
}

static int keep_place(struct replica *replica, struct progress_of_place *place, bool now, bool clean)
{
    tl_ts covered = lanes_covered(replica->lanes, place->reached);
    if (covered > place->reached) /* else the feed is read again for suspects */
        place->reached = covered;
    suspects_set_place(replica->suspects, place->reached);
    replica->reached = place->reached;
    report_status(replica, "following", place->reached);
    uint64_t since = clock_boot_us() - place->written_us;
    if (!clean &&
        (place->reached <= place->written || (!now && since < (place->moved ? PLACE_EVERY_US : PLACE_IDLE_US))))
        return 0;
    int r = write_place(replica, place->reached, clean);
    place->written = place->reached;
    place->written_us = clock_boot_us();
    place->moved = false;
    return r;
}

/* --- Suspects; see replica.h, invariant 6 ------------------------------------------------------------------------- */

/*
 * Takes over the suspects of the previous run. The feed names them: up to the place, if that run
 * ended normally, else up to the present, and for as long as it may still send (invariant 5). A run
 * that has left no place may still send, too.
 */
static void inherit_suspects(struct replica *replica, struct progress_of_place *place, tl_ts *since, tl_ts goal)
{
    struct place *before = &replica->before;
    if (before->whole)
        suspects_add_whole(replica->suspects, before->suspects_left_us);
    bool overlaps = guard_overlap_until_us(replica->guard) > 0, clean = before->clean && !overlaps;
    place->inherit = clean ? before->ts : overlaps ? TL_TS_MAX : goal;
    if (!clean)
        before->suspects_left_us = replica->options->suspect_us;
    if (before->ts == 0)
        before->suspects = *since;
    *since = before->suspects;
    replica->inheriting = *since < place->inherit;
}

/*
 * Reads up to where the changes are that a previous run may have sent, when it sends no more. The
 * source's time does not say: its clock may be set meanwhile.
 */
static int end_overlap(struct replica *replica, struct progress_of_place *place)
{
    if (!replica->inheriting || place->inherit != TL_TS_MAX || clock_boot_us() < guard_overlap_until_us(replica->guard))
        return 0;
    long status = source_ask_present(&replica->feed, "GET", "/_timestamp", SLICE_NONE);
    if (status != 200)
        return source_complain(&replica->feed, "cannot read the source's timestamp", "", status);
    place->inherit = replica->feed.timestamp;
    return 0;
}

static int look_at_suspects(struct replica *replica)
{
    struct replica_key keys[SUSPECTS_SOME];
    uint64_t number, now = clock_boot_us();
    size_t count = suspects_take_due(replica->suspects, keys, SUSPECTS_SOME, &number), mended = 0;
    int r = count == 0 ? 0 : verify_some(replica, keys, count, &mended);
    if (r == 0 && count > 0)
        suspects_acquit(replica->suspects, keys, count, number);
    replica->mended += mended;
    if (r == 0 && !replica->catching_up && suspects_take_whole(replica->suspects)) {
        mended = 0;
        r = verify_whole(replica, &mended);
        if (r == 0 && replica->unequal)
            suspects_add_whole(replica->suspects, UINT64_MAX); /* the rest was not compared: again later */
        else if (r == 0)
            suspects_acquit_whole(replica->suspects, now);
        replica->mended += mended;
    }
    return r;
}

/*
 * The feed does not reach back to the place any more, or the place is of other indices: both sides
 * are compared instead, and the feed is followed from before that. A comparison sends only what
 * differs, so it is over long before a feed of usual length is cut again. If the previous run has
 * left suspects, or may have left requests, all documents are suspects for their time: it is not
 * known which. After a run that ended without either, none is.
 */
static int begin_anew(struct replica *replica, struct progress_of_place *place, const char *reason, tl_ts *since)
{
    size_t mended = 0;
    replica_print("%s: everything is compared", reason);
    suspects_set_place(replica->suspects, 0);
    if (replica->inheriting) /* the feed does not name the documents of these indices that are to be taken over */
        suspects_add_whole(replica->suspects, replica->before.suspects_left_us);
    replica->inheriting = false;
    long status = source_ask_present(&replica->feed, "GET", "/_changes", SLICE_NONE);
    if (status != 200)
        return source_complain(&replica->feed, "the source has no feed of changes", "", status);
    tl_ts now = replica->feed.timestamp;
    int r = copy_missing(replica);
    if (r == 0)
        r = verify_whole(replica, &mended);
    if (r == 0 && replica->unequal) /* what changed since the place may be in the part that was not compared */
        r = REPLICA_FAILED;
    if (r == 0) /* the feed does not report the deletion of an index before its beginning */
        r = copy_drop_gone(replica);
    if (r == 0) {
        *since = now;
        replica->seen = 0;
        replica->restored = false;
        lanes_mark(replica->lanes, now);
    }
    return r == 0 ? keep_place(replica, place, true, false) : r;
}

static const char restored_reason[] = "the source was restored, and lacks changes that the copy has seen";

static int take_page(struct replica *replica, struct sent *sent, struct progress_of_place *place, tl_ts goal,
                     tl_ts *since)
{
    struct page page = {.sent = sent, .documents = MAP_INIT, .places = MAP_INIT, .indices = MAP_INIT};
    read_page(&page, buf_as_slice(&replica->feed.body));
    if (page.newest > 0)
        replica->seen = page.newest;
    int r = send_page(replica, sent, &page);
    if (r == 0)
        r = copy_retry_aliases(replica, page.dropped);
    *since = replica->feed.timestamp;
    if (page.unplaced) /* where the target has them is found by comparing */
        suspects_add_whole(replica->suspects, 0);
    /* Documents of the deleted index that the previous run had under way may come into a later one of its name. */
    if (page.dropped && replica->inheriting)
        suspects_add_whole(replica->suspects, replica->before.suspects_left_us);
    replica->catching_up = *since < goal;
    place->moved = place->moved || page.line_count > 0;
    uint64_t now = clock_boot_us();
    if (r == 0 && (!replica->catching_up || now - place->marked_us >= MARK_EVERY_US)) {
        lanes_mark(replica->lanes, *since);
        place->marked_us = now;
    }
    page_deinit(&page);
    replica->inheriting = replica->inheriting && *since < place->inherit;
    if (r == 0)
        r = keep_place(replica, place, false, false);
    if (r == 0)
        tombstones_end(replica);
    return r == 0 ? look_at_suspects(replica) : r;
}

/*
 * Checks whether the source was restored before it sent the last page of the feed, and makes the
 * place say so. The request for that page may have been repeated, on a connection that was new for
 * the first attempt: a restored source lags at first.
 */
static int check_lineage(struct replica *replica, const struct progress_of_place *place)
{
    uint64_t unanswered = source_hosts_unanswered(replica->hosts);
    if (!replica->feed.connected && unanswered == replica->unanswered)
        return 0;
    replica->feed.connected = false;
    replica->unanswered = unanswered;
    int r = lineage_check(replica, false);
    return r == 0 && replica->restored ? write_place(replica, place->reached, false) : r;
}

int follow(struct replica *replica, tl_ts since)
{
    struct sent sent = {.times = MAP_INIT};
    struct progress_of_place place = {.written = since, .reached = since, .written_us = clock_boot_us()};
    long status = source_ask_present(&replica->feed, "GET", "/_changes", SLICE_NONE);
    tl_ts goal = replica->feed.timestamp;
    int r = status == 200 ? 0 : source_complain(&replica->feed, "the source has no feed of changes", "", status);
    if (r == 0 && since > goal) {
        replica_print("the place in the target is ahead of the source, which is an older copy of itself; give this one "
                      "another --name and --prefix");
        return REPLICA_TAKEN;
    }
    if (r == 0 && (replica->before.ts > 0 || guard_overlap_until_us(replica->guard) > 0))
        inherit_suspects(replica, &place, &since, goal);
    if (r == 0 && replica->before.ts > 0 && replica->before.other_index != NULL)
        r = begin_anew(replica, &place, "the copy was made with another --index", &since);
    if (r == 0 && replica->restored)
        r = begin_anew(replica, &place, restored_reason, &since);
    suspects_set_place(replica->suspects, place.reached);
    while (r == 0 && !replica_stopping() && (!replica->options->once || since < goal)) {
        r = end_overlap(replica, &place);
        if (r != 0)
            break;
        status = ask_for_changes(replica, since, since < goal, !replica->options->once);
        if (!guard_await(replica->guard))
            r = REPLICA_LOST;
        else if ((r = lanes_state(replica->lanes)) != 0)
            break;
        else if (status == 410)
            r = begin_anew(replica, &place,
                           "the source's feed does not reach back to the place (`tidelock serve --feed`)", &since);
        else if (status == 200 && (r = check_lineage(replica, &place)) == 0)
            r = replica->restored ? begin_anew(replica, &place, restored_reason, &since)
                                  : take_page(replica, &sent, &place, goal, &since);
        else if (status != 200)
            r = source_complain(&replica->feed, "cannot follow the source", "", status);
    }
    if (r == 0)
        r = lanes_drain(replica->lanes);
    map_deinit(&sent.times);
    if (r == 0)
        r = look_at_suspects(replica);
    if (r == 0)
        r = keep_place(replica, &place, true, true);
    return r == 0 && replica->options->once && since < goal ? REPLICA_STOPPED : r;
}
