/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether a copy is equal to its source: which documents there are, their routings and
 * versions, and with --content their sources.
 *
 * Both sides are walked at the same time, and their documents summed in buckets by a hash of index,
 * type and id. The version of an equal document is the timestamp of the source's commit (replica.h,
 * invariant 1). For buckets that differ both sides are walked again, and each document's version is
 * read from the other side. Where that differs, too, both sides' sources are read: the target may
 * have the same content with a version of its own, after a repair for example. A difference may be
 * a change on its way to the target: it is checked again, for as long as a copy may lag, and
 * reported if it remains. Memory does not grow with the number of documents, but with the number of
 * differences, to a limit.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "base/thread.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

enum {
    BUCKETS = 4096,
    DOUBTS_MAX = 100000, /* documents that differ and are kept; of more only the existence is noted */
    GET_MAX = 256,
    PAGE_HITS = 5000, /* of a walk without sources */
    LOOKS = 6,        /* at one that differs */
    REPAIRS = 3,      /* of documents that change again meanwhile */
    LOOK_US = 1000 * 1000,
};

#define ANSWER_US (120 * TL_SECOND)

/* Of a comparison concurrent with a copy that follows. */
#define SLOWER 100
#define REST_US_MAX (30 * TL_SECOND) /* the walks' pages are kept for ten minutes */
#define STEP_US 100000

struct bucket {
    uint64_t places; /* documents and routings */
    uint64_t sum;    /* also versions, and with --content sources */
    uint64_t count;
};

/* A document that differs, or may. */
struct doubt {
    struct replica_key key; /* of the source; its texts are the doubt's own, with a NUL after them */
    /* LEFT: the document has another routing now, and the target has a version under the key's */
    enum { MISSING, EXTRA, LEFT, DIFFERENT, EQUAL } what;
    struct slice routing; /* of LEFT: the document's own, as the key's texts */
    tl_ts version;        /* of the target's document, or as a walk has shown it; 0: none */
    tl_ts read;           /* timestamp of the source's answer */
    bool older;           /* of DIFFERENT: the version is below the timestamp of the source's last change */
};

/* One of both sides, and where a walk of it is. */
struct side {
    struct verification *verification;
    struct client *client;
    bool of_source;
    struct bucket *sums;
    struct bucket *walked; /* what a walk has summed up so far: it may begin again */
    uint64_t documents;
    uint64_t walked_documents;
    size_t doubted;    /* when it began */
    const char *index; /* of the source */
    const char *type;  /* of the source, for hits of the target */
    uint64_t page_us;  /* when its current page began, by clock_boot_us() */
    int result;        /* of sum_side() */
};

struct verification {
    struct replica *replica;
    struct client target; /* numbers stay as they are written */
    struct side here, there;
    char **names;        /* of the source's indices */
    _Atomic bool failed; /* one of the sides */
    struct doubt *doubts;
    size_t doubt_count;
    size_t doubt_capacity;
    bool many; /* there were more */
    bool slow; /* it runs concurrently with a copy that follows, one side after the other */
};

/*
 * Whether the target's version is above the source's timestamp, so that the target keeps it,
 * whatever is sent.
 */
static bool is_newer(const struct doubt *doubt)
{
    return doubt->version > doubt->read;
}

static size_t count_newer(const struct verification *v)
{
    size_t count = 0;
    for (size_t i = 0; i < v->doubt_count; i++)
        count += is_newer(&v->doubts[i]);
    return count;
}

/* Returns: the number of documents that differ, at least. */
static size_t count_differences(const struct verification *v)
{
    return v->doubt_count + v->many;
}

/* The type in the source, of a hit of either side. */
static const char *type_of(const struct side *side, yyjson_val *hit)
{
    const char *type = yyjson_get_str(yyjson_obj_get(hit, "_type"));
    if (side->of_source)
        return type == NULL ? "_doc" : type;
    return side->verification->replica->target.major == 5 && type != NULL && strcmp(type, "doc") != 0 ? type
                                                                                                      : side->type;
}

static uint64_t place_hash(const struct side *side, yyjson_val *hit)
{
    return siphash_keyed(replica_text(hit, "_id")) + 3 * siphash_keyed(slice_from(type_of(side, hit))) +
           5 * siphash_keyed(slice_from(side->index));
}

static uint64_t routing_hash(yyjson_val *hit)
{
    struct slice routing = replica_text(hit, "_routing");
    return routing.data == NULL ? 0 : 7 * siphash_keyed(routing);
}

/* Of what a document says: its source, written the same way on both sides. */
static uint64_t content_hash(yyjson_val *hit)
{
    size_t len = 0;
    char *text = yyjson_val_write(yyjson_obj_get(hit, "_source"), YYJSON_WRITE_ALLOW_INF_AND_NAN, &len);
    uint64_t hash = siphash_keyed(slice_make(text == NULL ? "" : text, len));
    free(text);
    return hash;
}

/* The version that an equal document has in the target. */
static uint64_t version_of(yyjson_val *hit, bool of_source)
{
    return replica_number(hit, of_source ? "_commit_timestamp" : "_version");
}

/* After a page: rests for as long as makes it a hundredth of the speed. */
static void rest_between_pages(struct side *side)
{
    if (!side->verification->slow)
        return;
    uint64_t now = clock_boot_us(), wanted = (SLOWER - 1) * (now - side->page_us);
    uint64_t until = now + (wanted < REST_US_MAX ? wanted : REST_US_MAX);
    for (; now < until && !replica_stopping(); now = clock_boot_us())
        usleep((useconds_t)(until - now < STEP_US ? until - now : STEP_US));
    side->page_us = clock_boot_us();
}

/* --- Sums --------------------------------------------------------------------------------------------------------- */

static int sum_hits(void *context, yyjson_val *hits, tl_ts version)
{
    struct side *side = context;
    struct verification *v = side->verification;
    bool contents = v->replica->options->content;
    size_t i, count;
    yyjson_val *hit;
    (void)version;
    json_arr_foreach (hits, i, count, hit) {
        if (!side->of_source && tombstone_is(hit))
            continue;
        uint64_t place = place_hash(side, hit), routed[2] = {place, routing_hash(hit)};
        uint64_t all[4] = {place, routed[1], version_of(hit, side->of_source), contents ? content_hash(hit) : 0};
        struct bucket *bucket = &side->walked[place % BUCKETS];
        bucket->places += siphash_keyed(slice_make((const char *)routed, sizeof routed));
        bucket->sum += siphash_keyed(slice_make((const char *)all, sizeof all));
        bucket->count++;
    }
    side->walked_documents += count;
    if (side->of_source)
        progress_set(&v->replica->progress, side->documents + side->walked_documents);
    rest_between_pages(side);
    return atomic_load(&v->failed) ? REPLICA_STOPPED : 0;
}

static void begin_sums(void *context)
{
    struct side *side = context;
    memset(side->walked, 0, BUCKETS * sizeof *side->walked);
    side->walked_documents = 0;
}

static void end_sums(struct side *side)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        side->sums[i].places += side->walked[i].places;
        side->sums[i].sum += side->walked[i].sum;
        side->sums[i].count += side->walked[i].count;
    }
    side->documents += side->walked_documents;
    begin_sums(side);
}

/* --- Doubts ------------------------------------------------------------------------------------------------------- */

static struct slice copy_text(struct slice text)
{
    return text.data == NULL ? SLICE_NONE : mem_dup_slice(text);
}

static struct doubt make_doubt(const struct replica_key *key)
{
    return (struct doubt){.key = {copy_text(key->index), copy_text(key->type), copy_text(key->id),
                                  copy_text(key->routing), .placed = true},
                          .what = EQUAL,
                          .routing = SLICE_NONE};
}

static void put_doubt(struct verification *v, struct doubt doubt)
{
    if (v->doubt_count == v->doubt_capacity) {
        v->doubt_capacity = v->doubt_capacity == 0 ? 256 : 2 * v->doubt_capacity;
        v->doubts = mem_realloc(v->doubts, v->doubt_capacity * sizeof *v->doubts);
    }
    v->doubts[v->doubt_count++] = doubt;
}

static void add_doubt(const struct side *side, yyjson_val *hit)
{
    struct verification *v = side->verification;
    if (v->doubt_count == DOUBTS_MAX) {
        v->many = true;
        return;
    }
    put_doubt(v, make_doubt(&(struct replica_key){.index = slice_from(side->index),
                                                  .type = slice_from(type_of(side, hit)),
                                                  .id = replica_text(hit, "_id"),
                                                  .routing = replica_text(hit, "_routing")}));
    v->doubts[v->doubt_count - 1].version = version_of(hit, side->of_source);
}

static void free_doubt(struct doubt *doubt)
{
    mem_free((char *)doubt->key.index.data);
    mem_free((char *)doubt->key.type.data);
    mem_free((char *)doubt->key.id.data);
    mem_free((char *)doubt->key.routing.data);
    mem_free((char *)doubt->routing.data);
}

static void add_asked(struct verification *v, const struct doubt *doubt, bool of_source, struct buf *body)
{
    const struct replica_index *known = map_get(&v->replica->indices, doubt->key.index);
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
    const char *type = of_source ? doubt->key.type.data : target_type(&v->replica->target, doubt->key.type.data);
    if (of_source)
        buf_slice(&name, doubt->key.index);
    else
        target_name(&v->replica->target, doubt->key.index.data, doubt->key.type.data, known != NULL && known->several,
                    &name);
    buf_lit(body, "{\"_index\":");
    buf_json_string(body, buf_as_slice(&name));
    if (type != NULL) {
        buf_lit(body, ",\"_type\":");
        buf_json_string(body, slice_from(type));
    }
    buf_lit(body, ",\"_id\":");
    buf_json_string(body, doubt->key.id);
    if (doubt->key.routing.data != NULL && !of_source) {
        buf_lit(body, ",\"routing\":");
        buf_json_string(body, doubt->key.routing);
    }
    buf_byte(body, '}');
}

/* Of a document that cannot be shown now: its error. That there is no such index is an answer. */
static yyjson_val *error_in(const struct client *client)
{
    yyjson_val *documents = yyjson_obj_get(client_json(client), "docs"), *document;
    size_t i, count;
    json_arr_foreach (documents, i, count, document) {
        yyjson_val *error = yyjson_obj_get(document, "error");
        const char *type = yyjson_get_str(yyjson_obj_get(error, "type"));
        if (error != NULL && (type == NULL || strcmp(type, "index_not_found_exception") != 0))
            return error;
    }
    return NULL;
}

/* Whether the answer is of these documents; see replica.h, invariant 8. */
static bool is_of(const struct client *client, const struct doubt *doubts, size_t asked)
{
    yyjson_val *documents = yyjson_obj_get(client_json(client), "docs"), *document;
    size_t i, count;
    if (yyjson_arr_size(documents) != asked)
        return false;
    json_arr_foreach (documents, i, count, document) {
        struct slice id = replica_text(document, "_id");
        bool answered = yyjson_is_bool(yyjson_obj_get(document, "found")) || yyjson_obj_get(document, "error") != NULL;
        if (!answered || id.data == NULL || !slice_equal(id, doubts[i].key.id))
            return false;
    }
    return true;
}

/* Asks one side for documents as they are now, with or without their sources. */
static int ask_side(struct verification *v, const struct doubt *doubts, size_t count, bool of_source, bool sources)
{
    const char *path = of_source ? "/_mget?any_routing=true&commit_timestamp=true&_source=" : "/_mget?_source=";
    const char *whom = of_source ? "source" : "target";
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf full = BUF_INIT(BUF_UNLIMITED);
    struct client *client = of_source ? &v->replica->source : &v->target;
    buf_printf(&full, "%s%s", path, sources ? "true" : "false");
    buf_byte(&full, '\0');
    buf_lit(&body, "{\"docs\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(&body, ',');
        add_asked(v, &doubts[i], of_source, &body);
    }
    buf_lit(&body, "]}");
    for (unsigned tries = 0;; tries++) {
        long status = of_source ? source_ask_present(client, "POST", full.data, buf_as_slice(&body))
                                : replica_ask(client, whom, "POST", full.data, buf_as_slice(&body));
        if (status != 200)
            return source_complain(client, "cannot read documents", "", status);
        if (!is_of(client, doubts, count))
            return replica_disbelieve(whom, "documents", "");
        yyjson_val *error = error_in(client);
        if (error == NULL)
            return 0;
        if (replica_stopping())
            return REPLICA_STOPPED;
        if (tries == 0) {
            char *text = yyjson_val_write(error, 0, NULL);
            replica_print("the %s does not show a document now: %s; trying again", whom,
                          escape_terminal(text == NULL ? "" : text));
            free(text);
        }
        replica_pause(tries + 1);
    }
}

/*
 * Compares the two sides' answers; the source's is as of `read`. The target was asked for the
 * document under the doubt's routing. If the source has another routing by now, the target has no
 * document there, or the document itself, if both routings lead to one shard. A document whose
 * version is between the last change and `read` is equal by its content.
 */
static void judge_doubt(struct doubt *doubt, yyjson_val *ours, yyjson_val *theirs, tl_ts read)
{
    bool is_here = yyjson_get_bool(yyjson_obj_get(ours, "found")),
         is_there = yyjson_get_bool(yyjson_obj_get(theirs, "found")) && !tombstone_is(theirs);
    struct slice routing = replica_text(ours, "_routing");
    mem_free((char *)doubt->routing.data);
    doubt->routing = SLICE_NONE;
    doubt->version = is_there ? version_of(theirs, false) : 0;
    doubt->read = read;
    if (is_here && !replica_same_routing(routing, doubt->key.routing) &&
        !(is_there && replica_same_routing(routing, replica_text(theirs, "_routing")))) {
        doubt->what = is_there ? LEFT : EQUAL;
        doubt->routing = copy_text(routing);
        return;
    }
    bool differs = false;
    if (is_here && is_there) {
        doubt->older = doubt->version < version_of(ours, true);
        differs = doubt->older || is_newer(doubt) || content_hash(ours) != content_hash(theirs) ||
                  !replica_same_routing(routing, replica_text(theirs, "_routing"));
    }
    doubt->what = is_here && !is_there ? MISSING : !is_here && is_there ? EXTRA : differs ? DIFFERENT : EQUAL;
}

static int compare_some(struct verification *v, struct doubt *doubts, size_t count)
{
    int r = ask_side(v, doubts, count, true, true);
    if (r == 0)
        r = ask_side(v, doubts, count, false, true);
    yyjson_val *here = yyjson_obj_get(client_json(&v->replica->source), "docs"),
               *there = yyjson_obj_get(client_json(&v->target), "docs");
    for (size_t i = 0; r == 0 && i < count; i++)
        judge_doubt(&doubts[i], yyjson_arr_get(here, i), yyjson_arr_get(there, i), v->replica->source.timestamp);
    return r;
}

/*
 * *ret_is: whether a version that is LEFT is the one that the target shows under the document's own
 * routing. Then both routings lead to one shard, and the version there is the document, which
 * differs.
 */
static int is_the_document(struct verification *v, const struct doubt *left, bool *ret_is)
{
    struct doubt own = *left;
    own.key.routing = left->routing;
    int r = ask_side(v, &own, 1, false, true);
    yyjson_val *there = yyjson_arr_get(yyjson_obj_get(client_json(&v->target), "docs"), 0);
    *ret_is = r == 0 && yyjson_get_bool(yyjson_obj_get(there, "found")) &&
              replica_same_routing(replica_text(there, "_routing"), left->key.routing);
    return r;
}

/* Leaves those that differ still. */
static int compare_doubts(struct verification *v)
{
    int r = 0;
    size_t left = 0;
    for (size_t at = 0; r == 0 && at < v->doubt_count; at += GET_MAX) {
        size_t count = v->doubt_count - at < GET_MAX ? v->doubt_count - at : GET_MAX;
        r = compare_some(v, v->doubts + at, count);
    }
    if (r != 0)
        return r;
    for (size_t i = 0; i < v->doubt_count; i++) {
        if (v->doubts[i].what == EQUAL)
            free_doubt(&v->doubts[i]);
        else
            v->doubts[left++] = v->doubts[i];
    }
    v->doubt_count = left;
    return 0;
}

/* Removes doubts whose version the other side has, too: they were equal at the time of the walk. */
static int drop_equal_versions(struct verification *v, size_t from, bool of_source)
{
    struct client *client = of_source ? &v->target : &v->replica->source; /* the other side's */
    size_t left = from;
    int r = 0;
    for (size_t at = from; at < v->doubt_count; at += GET_MAX) {
        size_t count = v->doubt_count - at < GET_MAX ? v->doubt_count - at : GET_MAX;
        r = r == 0 ? ask_side(v, v->doubts + at, count, !of_source, false) : r;
        for (size_t i = at; i < at + count; i++) {
            yyjson_val *other = r == 0 ? yyjson_arr_get(yyjson_obj_get(client_json(client), "docs"), i - at) : NULL;
            if (yyjson_get_bool(yyjson_obj_get(other, "found")) &&
                version_of(other, !of_source) == v->doubts[i].version &&
                replica_same_routing(replica_text(other, "_routing"), v->doubts[i].key.routing))
                free_doubt(&v->doubts[i]);
            else
                v->doubts[left++] = v->doubts[i];
        }
    }
    v->doubt_count = left;
    return r;
}

/*
 * Whether a walk of this side may find documents of a bucket that differ: a walk of the source finds
 * those that the source has, one of the target those that only the target has.
 */
static bool is_suspicious(const struct side *side, uint64_t number)
{
    const struct bucket *here = &side->verification->here.sums[number],
                        *there = &side->verification->there.sums[number];
    bool moved = here->places != there->places || here->count != there->count;
    return moved || (side->of_source && here->sum != there->sum);
}

/*
 * Adds a doubt for each hit in a bucket that differs. A document on both sides is visited twice and
 * kept once, with the source's routing.
 */
static int doubt_hits(void *context, yyjson_val *hits, tl_ts version)
{
    struct side *side = context;
    struct verification *v = side->verification;
    bool of_source = side->of_source;
    size_t before = v->doubt_count, left = before, i, count;
    yyjson_val *hit;
    (void)version;
    json_arr_foreach (hits, i, count, hit)
        if ((of_source || !tombstone_is(hit)) && is_suspicious(side, place_hash(side, hit) % BUCKETS))
            add_doubt(side, hit);
    int r = v->replica->options->content ? 0 : drop_equal_versions(v, before, of_source);
    for (size_t at = before; r == 0 && at < v->doubt_count; at += GET_MAX)
        r = compare_some(v, v->doubts + at, v->doubt_count - at < GET_MAX ? v->doubt_count - at : GET_MAX);
    for (size_t at = before; at < v->doubt_count; at++) {
        bool twice = false;
        if (r == 0 && v->doubts[at].what == LEFT)
            r = is_the_document(v, &v->doubts[at], &twice);
        if (twice || v->doubts[at].what == (of_source ? EXTRA : DIFFERENT) || v->doubts[at].what == EQUAL ||
            (!of_source && v->doubts[at].what == MISSING))
            free_doubt(&v->doubts[at]);
        else
            v->doubts[left++] = v->doubts[at];
    }
    v->doubt_count = left;
    rest_between_pages(side);
    return r;
}

/* --- Walks -------------------------------------------------------------------------------------------------------- */

static void begin_doubts(void *context)
{
    const struct side *side = context;
    struct verification *v = side->verification;
    while (v->doubt_count > side->doubted)
        free_doubt(&v->doubts[--v->doubt_count]);
}

static int walk_one(struct side *side, const char *name, int (*visit)(void *, yyjson_val *, tl_ts))
{
    const struct verification *v = side->verification;
    const struct replica_options *options = v->replica->options;
    bool sums = visit == sum_hits;
    side->doubted = v->doubt_count;
    int r = copy_walk(&(struct walk){.client = side->client,
                                     .whom = side->of_source ? "source" : "target",
                                     .index = name,
                                     .page = sums && !options->content && !v->slow ? PAGE_HITS : 0,
                                     .what = sums && options->content                  ? WALK_SOURCES
                                             : options->tombstones && !side->of_source ? WALK_TOMBSTONES
                                                                                       : WALK_IDS,
                                     .versions = !side->of_source,
                                     .begin = sums ? begin_sums : begin_doubts,
                                     .visit = visit,
                                     .context = side});
    if (sums)
        end_sums(side);
    return r;
}

static int walk_index(struct side *side, const char *name, int (*visit)(void *, yyjson_val *, tl_ts))
{
    const struct replica *replica = side->verification->replica;
    const struct replica_index *known = map_get(&replica->indices, slice_from(name));
    side->index = name;
    if (side->of_source)
        return walk_one(side, name, visit);
    int r = 0;
    for (size_t i = 0; r == 0 && i < copy_count_names(replica, name); i++) {
        tl_cleanup(buf_deinit) struct buf there = BUF_INIT(BUF_UNLIMITED), path = BUF_INIT(BUF_UNLIMITED);
        copy_write_name(replica, name, i, &there);
        side->type = known == NULL || known->types[i] == NULL ? "_doc" : known->types[i];
        buf_byte(&path, '/');
        client_escape(&path, slice_from(there.data));
        buf_lit(&path, "/_refresh");
        buf_byte(&path, '\0');
        (void)!replica_ask(side->client, "target", "POST", path.data, SLICE_LIT(""));
        r = walk_one(side, there.data, visit);
    }
    return r;
}

static int walk_side(struct side *side, int (*visit)(void *, yyjson_val *, tl_ts))
{
    char **names = side->verification->names;
    int r = 0;
    side->page_us = clock_boot_us(); /* what the other side took meanwhile is no page of this one */
    for (; r == 0 && names != NULL && *names != NULL; names++)
        r = walk_index(side, *names, visit);
    return r;
}

static void sum_side(void *context)
{
    struct side *side = context;
    side->result = walk_side(side, sum_hits);
    if (side->result != 0)
        atomic_store(&side->verification->failed, true);
}

/* Sums both sides at the same time. When one has failed, the other one waits for no more replies. */
static void sum_at_once(struct verification *v)
{
    struct thread thread = {0};
    v->here.client->cancelled = v->there.client->cancelled = &v->failed;
    if (thread_start(&thread, "verify", sum_side, &v->there) != 0)
        abort();
    sum_side(&v->here);
    thread_join(&thread);
    v->here.client->cancelled = v->there.client->cancelled = NULL;
}

/* Returns: 0; the result of the side that failed first. */
static int sum_both(struct verification *v)
{
    if (!v->slow) {
        sum_at_once(v);
    } else {
        sum_side(&v->here);
        if (v->here.result == 0)
            sum_side(&v->there);
    }
    bool follows = v->here.result == REPLICA_STOPPED; /* since the other one has failed, or by a signal */
    return v->here.result == 0 || (follows && v->there.result != 0) ? v->there.result : v->here.result;
}

static int look_again(struct verification *v)
{
    int r = 0;
    for (int look = 0; r == 0 && look < LOOKS && v->doubt_count > 0; look++) {
        usleep(LOOK_US);
        r = replica_stopping() ? REPLICA_STOPPED : compare_doubts(v); /* these doubts are no findings yet */
    }
    return r;
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

static int repair_doubts(struct verification *v)
{
    int r = 0;
    suspects_set_place(v->replica->suspects, 0); /* the feed does not name these documents */
    struct replica_key keys[GET_MAX];
    v->replica->superseding = true;
    for (size_t at = 0; r == 0 && at < v->doubt_count;) {
        size_t count = 0;
        while (count < GET_MAX && at < v->doubt_count)
            keys[count++] = v->doubts[at++].key;
        r = source_send(v->replica, keys, count, NULL);
    }
    v->replica->superseding = false;
    return r == 0 ? lanes_drain(v->replica->lanes) : r;
}

/* Findings, as reported and counted. */
enum finding { FOUND_MISSING, FOUND_EXTRA, FOUND_OLDER, FOUND_DIFFERENT, FOUND_NEWER, FINDINGS };

static const char *const finding_words[FINDINGS] = {"missing", "extra", "older", "different", "newer"};

static enum finding finding_of(const struct doubt *doubt)
{
    switch (doubt->what) {
    case MISSING: return FOUND_MISSING;
    case EXTRA:
    case LEFT: return FOUND_EXTRA;
    default: return is_newer(doubt) ? FOUND_NEWER : doubt->older ? FOUND_OLDER : FOUND_DIFFERENT;
    }
}

static void print_document(const struct doubt *doubt)
{
    printf("%-9s  %s/%s", finding_words[finding_of(doubt)], escape_terminal_slice(doubt->key.index),
           escape_terminal_slice(doubt->key.id));
    if (doubt->what == LEFT)
        printf(doubt->key.routing.data == NULL ? ", without a routing" : ", with the routing %s",
               escape_terminal_slice(doubt->key.routing));
    printf("\n");
}

/* What a comparison has found, before a repair. */
struct found {
    bool equal;
    uint64_t counts[FINDINGS];
};

/*
 * Prints documents that differ. Returns: their numbers, before a repair. Documents that were beyond the limit
 * were not checked again, so both sides are equal only if there were none, even if all that were
 * kept have become equal.
 */
static struct found count_findings(const struct verification *v)
{
    struct found found = {.equal = count_differences(v) == 0};
    for (size_t i = 0; i < v->doubt_count; i++) {
        found.counts[finding_of(&v->doubts[i])]++;
        if (!v->replica->options->json)
            print_document(&v->doubts[i]);
    }
    return found;
}

static void print_findings(const struct verification *v, const struct found *found)
{
    const uint64_t *counts = found->counts;
    if (found->equal)
        printf("equal: %" PRIu64 " documents\n", v->here.documents);
    else
        printf("not equal: of %" PRIu64 " documents %" PRIu64 " are missing, %" PRIu64 " older, %" PRIu64
               " different, %" PRIu64 " newer, and %" PRIu64 " extra%s\n",
               v->here.documents, counts[FOUND_MISSING], counts[FOUND_OLDER], counts[FOUND_DIFFERENT],
               counts[FOUND_NEWER], counts[FOUND_EXTRA], v->many ? ", and more were not checked" : "");
}

/* `repaired`: whether both sides are equal after a repair; of --repair only. */
static void print_json(const struct verification *v, const struct found *found, bool repaired)
{
    printf("{\"equal\":%s,\"documents\":%" PRIu64, found->equal ? "true" : "false", v->here.documents);
    for (size_t i = 0; i < FINDINGS; i++)
        printf(",\"%s\":%" PRIu64, finding_words[i], found->counts[i]);
    printf(",\"more\":%s", v->many ? "true" : "false");
    if (v->replica->options->repair)
        printf(",\"repaired\":%s", repaired ? "true" : "false");
    printf("}\n");
}

static void begin_side(struct side *side, struct verification *v, struct client *client)
{
    *side = (struct side){.verification = v,
                          .client = client,
                          .of_source = client == &v->replica->source,
                          .sums = mem_zalloc(BUCKETS * sizeof *side->sums),
                          .walked = mem_zalloc(BUCKETS * sizeof *side->walked)};
}

static void begin_verification(struct verification *v, struct replica *replica)
{
    *v = (struct verification){.replica = replica};
    client_init(&v->target, replica->options->to);
    v->target.gives_up = replica_gives_up;
    v->target.raw_numbers = true;
    begin_side(&v->here, v, &replica->source);
    begin_side(&v->there, v, &v->target);
}

static void end_verification(struct verification *v)
{
    for (size_t i = 0; i < v->doubt_count; i++)
        free_doubt(&v->doubts[i]);
    mem_free(v->doubts);
    mem_free(v->here.sums);
    mem_free(v->here.walked);
    mem_free(v->there.sums);
    mem_free(v->there.walked);
    client_deinit(&v->target);
}

/*
 * Keeps the differences that remain. `looks`: a copy may lag, so they are checked again for some
 * seconds.
 */
static int compare_all(struct verification *v, bool looks)
{
    int r = copy_look(v->replica, &v->names);
    if (r == 0)
        r = sum_both(v);
    progress_end(&v->replica->progress);
    bool equal = memcmp(v->here.sums, v->there.sums, BUCKETS * sizeof *v->here.sums) == 0;
    if (r == 0 && !equal)
        r = walk_side(&v->here, doubt_hits);
    if (r == 0 && !equal)
        r = walk_side(&v->there, doubt_hits);
    if (r == 0)
        r = looks ? look_again(v) : 0;
    for (size_t i = 0; v->names != NULL && v->names[i] != NULL; i++)
        mem_free(v->names[i]);
    mem_free(v->names);
    v->names = NULL;
    return r;
}

/*
 * Repairs the differences, and compares them again: documents that the source has changed meanwhile
 * are sent again. Returns: REPLICA_FAILED: some are not equal afterwards, reported; those that the
 * target has refused are reported by the lanes. Assumes: no other program of this copy runs.
 */
static int repair_and_check(struct verification *v)
{
    size_t newer = 0;
    uint64_t refused = 0;
    int r = 0;
    for (int i = 0; r == 0 && i < REPAIRS && v->doubt_count > newer && refused == 0; i++) {
        uint64_t before = lanes_counts(v->replica->lanes).refused;
        r = repair_doubts(v);
        r = r == 0 ? compare_doubts(v) : r;
        refused = lanes_counts(v->replica->lanes).refused - before;
        newer = count_newer(v);
    }
    if (r != 0)
        return r;
    if (newer > 0)
        replica_print("%zu documents of the target have versions above the source's timestamp, so that it keeps them: "
                      "another program has written them. Delete their indices in the target, and start the copy, "
                      "which makes them again",
                      newer);
    if (v->doubt_count > newer + refused)
        replica_print("%zu documents are not equal after the repair: another program writes to the target, or the "
                      "target drops documents. Find the cause, then run --repair again",
                      v->doubt_count - newer - (size_t)refused);
    return v->doubt_count == 0 ? 0 : REPLICA_FAILED;
}

int verify(struct replica *replica)
{
    const struct replica_options *options = replica->options;
    struct verification v;
    struct found found = {0};
    begin_verification(&v, replica);
    progress_init(&replica->progress, "documents", 0, options->quiet || options->json);
    int r = compare_all(&v, true);
    bool compared = r == 0;
    if (compared) {
        found = count_findings(&v);
        if (!options->json)
            print_findings(&v, &found);
        report_comparison(replica, replica->source.timestamp, count_differences(&v));
    }
    size_t differed = v.doubt_count;
    if (r == 0 && v.doubt_count > 0)
        r = options->repair ? repair_and_check(&v) : REPLICA_FAILED;
    if (r == 0 && v.many) {
        if (options->repair)
            replica_print("%d documents were sent, and more are not equal: run --repair again", DOUBTS_MAX);
        else
            replica_print("more than %d documents differed at first, and only %d of them were checked again, which "
                          "have become equal: run --verify again when the copy has caught up",
                          DOUBTS_MAX, DOUBTS_MAX);
        r = REPLICA_FAILED;
    }
    if (r == 0 && differed > 0) {
        if (!options->json)
            printf("equal after the repair: %zu documents were repaired\n", differed);
        report_comparison(replica, replica->source.timestamp, 0);
    }
    if (compared && options->json)
        print_json(&v, &found, r == 0);
    end_verification(&v);
    return r;
}

static uint64_t document_hash(const struct replica_key *key)
{
    return siphash_keyed(key->id) + 3 * siphash_keyed(key->type) + 5 * siphash_keyed(key->index) +
           (key->routing.data == NULL ? 0 : 7 * siphash_keyed(key->routing));
}

static int by_hash(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Returns: the documents that differ, `newer`: of these those with newer versions in the target. */
static struct document_set document_set_new(const struct verification *v, bool newer)
{
    struct document_set set = {mem_alloc((v->doubt_count + 1) * sizeof *set.hashes), 0};
    for (size_t i = 0; i < v->doubt_count; i++) {
        const struct replica_key *key = &v->doubts[i].key;
        if (newer && !is_newer(&v->doubts[i]))
            continue;
        set.hashes[set.count++] = document_hash(key);
    }
    qsort(set.hashes, set.count, sizeof *set.hashes, by_hash);
    return set;
}

static bool document_set_has(const struct document_set *set, uint64_t hash)
{
    return set->count > 0 && bsearch(&hash, set->hashes, set->count, sizeof *set->hashes, by_hash) != NULL;
}

/*
 * Whether a round is stuck: it found mostly what the round before had sent. So each other round
 * mends half of DOUBTS_MAX documents, and their number bounds that of the rounds.
 */
static bool is_stuck(const struct document_set *before, const struct document_set *now)
{
    size_t again = 0;
    for (size_t i = 0; before->count > 0 && i < now->count; i++)
        again += document_set_has(before, now->hashes[i]);
    return again > DOUBTS_MAX / 2;
}

int verify_whole(struct replica *replica, size_t *ret_mended)
{
    struct document_set before = {NULL, 0}; /* sent by the last round */
    bool more;
    *ret_mended = 0;
    replica->unequal = false;
    int r = lanes_drain(replica->lanes); /* no request is pending then */
    do {
        struct verification v;
        begin_verification(&v, replica);
        progress_init(&replica->progress, "documents", 0, true);
        r = r == 0 ? compare_all(&v, false) : r;
        if (r == 0)
            report_comparison(replica, replica->source.timestamp, count_differences(&v));
        struct document_set now = document_set_new(&v, false);
        bool stuck = r == 0 && v.many && is_stuck(&before, &now);
        if (r == 0 && !stuck) {
            r = repair_doubts(&v);
            *ret_mended += v.doubt_count - count_newer(&v);
        }
        if (stuck) {
            replica_print("more than %d documents are not equal, and most of them were sent in vain: what "
                          "else differs was not compared",
                          DOUBTS_MAX);
            replica->unequal = true;
        }
        more = v.many && !stuck;
        mem_free(before.hashes);
        before = now;
        end_verification(&v);
    } while (r == 0 && more);
    mem_free(before.hashes);
    return r;
}

int verify_slowly(struct replica *replica, struct suspects *suspects, struct document_set *reported)
{
    struct verification v;
    begin_verification(&v, replica);
    v.slow = true;
    progress_init(&replica->progress, "documents", 0, true);
    int r = compare_all(&v, true);
    if (r == 0)
        report_comparison(replica, replica->source.timestamp, count_differences(&v));
    for (size_t i = 0; r == 0 && i < v.doubt_count; i++) {
        const struct doubt *doubt = &v.doubts[i];
        if (!is_newer(doubt)) {
            replica_print("%s/%s is not equal", escape_terminal_slice(doubt->key.index),
                          escape_terminal_slice(doubt->key.id));
            suspects_add_due(suspects, &doubt->key);
        } else if (!document_set_has(reported, document_hash(&doubt->key))) {
            replica_print("%s/%s is not equal: the target has a version above the source's timestamp, and keeps it",
                          escape_terminal_slice(doubt->key.index), escape_terminal_slice(doubt->key.id));
        }
    }
    if (r == 0) {
        mem_free(reported->hashes);
        *reported = document_set_new(&v, true);
    }
    end_verification(&v);
    return r;
}

int verify_some(struct replica *replica, const struct replica_key *keys, size_t count, size_t *ret_mended)
{
    struct verification v;
    begin_verification(&v, replica);
    for (size_t i = 0; i < count; i++)
        put_doubt(&v, make_doubt(&keys[i]));
    int r = compare_doubts(&v);
    if (r == 0 && v.doubt_count > 0) { /* requests that were under way at the first check have ended now */
        r = lanes_drain(replica->lanes);
        r = r == 0 ? compare_doubts(&v) : r;
    }
    if (r == 0)
        r = repair_doubts(&v);
    *ret_mended = v.doubt_count - count_newer(&v);
    end_verification(&v);
    return r;
}
