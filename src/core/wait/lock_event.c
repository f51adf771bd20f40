/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of owners, resources and cycles; the ring of lock events. See lock_event.h. */
#include "core/wait/lock_event.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/magic.h"
#include "core/locks/resource.h"
#include "core/session/owner.h"
#include "core/session/session.h"
#include "core/wait/wait.h"
#include "core/command/command.h"
#include "core/unit/unit.h"

/* --- Lock events -------------------------------------------------------------------------------------------------- */

const char *const lock_event_kinds[LOCK_EVENT_KIND_COUNT] = {"deadlock", "expiry"};

unsigned lock_event_kind(const char *kind)
{
    for (unsigned i = 0; i < LOCK_EVENT_KIND_COUNT; i++)
        if (strcmp(kind, lock_event_kinds[i]) == 0)
            return i;
    UNREACHABLE();
}

void lock_events_deinit(struct lock_events *events)
{
    for (size_t i = 0; i < LOCK_EVENTS_MAX; i++)
        mem_free(events->ring[i].lines);
}

/* Returns: the whole lines that fit into LOCK_EVENT_BYTES_MAX. */
static struct slice bounded_lines(struct slice lines)
{
    size_t len = lines.len;
    if (len <= LOCK_EVENT_BYTES_MAX)
        return lines;
    for (len = LOCK_EVENT_BYTES_MAX; len > 0 && lines.data[len] != '\n'; len--)
        ;
    ENSURE(len <= LOCK_EVENT_BYTES_MAX);
    return slice_make(lines.data, len);
}

void lock_events_add(struct lock_events *events, tl_ts ts, const char *kind, struct slice lines)
{
    REQUIRE(lock_event_kind(kind) < LOCK_EVENT_KIND_COUNT); /* else no checkpoint could be written */
    struct lock_event *event = &events->ring[events->count++ % LOCK_EVENTS_MAX];
    lines = bounded_lines(lines);
    mem_free(event->lines);
    *event = (struct lock_event){ts, kind, mem_strdup(lines.data, lines.len), lines.len};
}

static void lines_json(struct slice lines, struct buf *buf)
{
    buf_byte(buf, '[');
    for (bool first = true; lines.len > 0; first = false) {
        size_t len = slice_find_byte(lines, '\n');
        if (!first)
            buf_byte(buf, ',');
        buf_json_string(buf, slice_make(lines.data, len));
        lines = slice_from_offset(lines, len + 1);
    }
    buf_byte(buf, ']');
}

void lock_events_json(const struct lock_events *events, struct buf *buf)
{
    size_t first = events->count > LOCK_EVENTS_MAX ? events->count - LOCK_EVENTS_MAX : 0;
    buf_lit(buf, "{\"events\":[");
    for (size_t i = first; i < events->count; i++) {
        const struct lock_event *event = &events->ring[i % LOCK_EVENTS_MAX];
        buf_printf(buf, "%s{\"timestamp\":%" PRIu64 ",\"kind\":\"%s\",\"lines\":", i == first ? "" : ",", event->ts,
                   event->kind);
        lines_json(slice_make(event->lines, event->lines_len), buf);
        buf_byte(buf, '}');
    }
    buf_lit(buf, "]}");
}

/* --- Owners ------------------------------------------------------------------------------------------------------- */

static void session_text(const struct session *session, struct buf *buf)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
    if (session->name.len == 0) {
        buf_printf(buf, "session #%" PRIu64, session_number(session));
        return;
    }
    buf_escape_line(buf, session->name);
    buf_printf(buf, " (session #%" PRIu64 ")", session_number(session));
}

static uint64_t write_number(const struct owner *owner)
{
    REQUIRE(owner->kind == OWNER_WRITE); /* else it is in no struct write_wait */
    const struct wait *wait = &container_of(owner, const struct write_wait, owner)->wait;
    return wait->command == NULL ? 0 : wait->command->request;
}

/* Returns: the deferred cleanup that an owner runs; NULL: it is another kind of owner. */
static const struct deferred *deferred_of(const struct owner *owner)
{
    return owner->kind == OWNER_WRITE ? container_of(owner, const struct write_wait, owner)->wait.deferred : NULL;
}

static void name_deferred(const struct deferred *deferred, struct buf *buf)
{
    if (deferred->name.len == 0) {
        buf_slice(buf, deferred->session);
        return;
    }
    buf_escape_line(buf, deferred->name);
    buf_printf(buf, " (%.*s)", SLICE_ARG(deferred->session));
}

void describe_deferred(const struct deferred *deferred, const struct core *core, struct buf *buf)
{
    bool plain = core->command_version >= COMMAND_SINCE_PLAIN_TEXTS;
    buf_printf(buf, plain ? "cleanup of " : "what ");
    name_deferred(deferred, buf);
    if (!plain)
        buf_lit(buf, " left");
}

void describe_owner(const struct lock_owner *lock_owner, const struct core *core, struct buf *buf)
{
    const struct owner *owner = owner_of(lock_owner);
    REQUIRE(owner->kind != OWNER_SESSION || MAGIC_VALID(owner->session, SESSION_MAGIC));
    if (deferred_of(owner) != NULL) {
        describe_deferred(deferred_of(owner), core, buf);
        return;
    }
    if (owner->kind == OWNER_SESSION) {
        session_text(owner->session, buf);
        return;
    }
    if (owner->kind == OWNER_TXN) {
        buf_printf(buf, "transaction #%" PRIu64, owner->locks.number);
    } else {
        buf_printf(buf, "write %" PRIu64, write_number(owner));
    }
    if (owner->session != NULL) {
        buf_lit(buf, " of ");
        session_text(owner->session, buf);
    }
}

static void write_member(struct buf *buf, const char *name, struct slice text)
{
    buf_printf(buf, "\"%s\":", name);
    buf_json_string(buf, text);
}

void describe_owner_json(const struct lock_owner *lock_owner, struct buf *buf)
{
    const struct owner *owner = owner_of(lock_owner);
    REQUIRE(owner->kind != OWNER_SESSION || MAGIC_VALID(owner->session, SESSION_MAGIC));
    const struct deferred *deferred = deferred_of(owner);
    if (deferred != NULL) {
        write_member(buf, "cleanup_of", deferred->session);
        if (deferred->name.len > 0)
            buf_byte(buf, ',');
        if (deferred->name.len > 0)
            write_member(buf, "name", deferred->name);
        return;
    }
    if (owner->kind == OWNER_TXN)
        buf_printf(buf, "\"transaction\":%" PRIu64, owner->locks.number);
    if (owner->kind == OWNER_WRITE)
        buf_printf(buf, "\"write\":%" PRIu64, write_number(owner));
    if (owner->session == NULL)
        return;
    if (owner->kind != OWNER_SESSION)
        buf_byte(buf, ',');
    buf_printf(buf, "\"session\":%" PRIu64, session_number(owner->session));
    if (owner->session->name.len > 0) {
        buf_byte(buf, ',');
        write_member(buf, "name", owner->session->name);
    }
}

/* --- Resources ---------------------------------------------------------------------------------------------------- */

/*
 * Appends a text so that keys compare bytewise as the texts do: NUL is escaped, and a prefix is
 * before its extensions.
 */
static void put_key_text(struct buf *key, const char *bytes, size_t len)
{
    for (struct slice left = slice_make(bytes, len); left.len > 0;) {
        size_t plain = slice_find_byte(left, '\0');
        buf_slice(key, slice_make(left.data, plain));
        if (plain < left.len)
            buf_lit(key, "\0\xff");
        left = slice_from_offset(left, plain + 1);
    }
    buf_lit(key, "\0\1");
}

void describe_resource_key(const struct resource *resource, struct buf *key)
{
    struct arena arena = ARENA_INIT;
    size_t depth = 0;
    for (const struct resource *at = resource; at->parent != NULL; at = at->parent)
        depth++;
    const struct resource **chain = arena_alloc(&arena, (depth + 1) * sizeof *chain);
    for (size_t i = depth; i > 0; resource = resource->parent)
        chain[--i] = resource;
    for (size_t i = 0; i < depth; i++) {
        buf_byte(key, (char)chain[i]->kind);
        put_key_text(key, chain[i]->name, chain[i]->type_len);
        put_key_text(key, chain[i]->name + chain[i]->type_len, chain[i]->name_len - chain[i]->type_len);
    }
    arena_deinit(&arena);
}

struct slice describe_truncate(struct slice text, char *buffer)
{
    REQUIRE(buffer != NULL);
    static const char ellipsis[] = "\xe2\x80\xa6";
    const size_t mark = sizeof ellipsis - 1;
    if (text.len <= DESCRIBE_NAME_BYTES_MAX)
        return text;
    size_t len = DESCRIBE_NAME_BYTES_MAX - mark;
    while (len > 0 && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--;
    memcpy(buffer, text.data, len);
    memcpy(buffer + len, ellipsis, mark);
    ENSURE(len + mark <= DESCRIBE_NAME_BYTES_MAX);
    return slice_make(buffer, len + mark);
}

static void name_json(const struct resource *resource, bool whole, struct buf *buf)
{
    char buffer[DESCRIBE_NAME_BYTES_MAX];
    struct arena arena = ARENA_INIT;
    struct resource_name name = resource_name(resource, &arena);
    bool scripts = name.space == RESOURCE_SPACE_SCRIPTS;
    if (name.space != RESOURCE_SPACE_TREE && name.index.len == 0)
        write_member(buf, scripts ? "scripts" : "names", SLICE_LIT("*"));
    else if (name.space != RESOURCE_SPACE_TREE)
        write_member(buf, scripts ? "script" : "named", name.index); /* an owner has a "name" */
    else if (name.index.len > 0)
        write_member(buf, "index", name.index);
    if (name.path.data != NULL) {
        buf_byte(buf, ',');
        write_member(buf, "path", whole ? name.path : describe_truncate(name.path, buffer));
    }
    if (name.type.len > 0 && !slice_is(name.type, "_doc")) {
        buf_byte(buf, ',');
        write_member(buf, "type", name.type);
    }
    if (name.id.data != NULL) {
        buf_byte(buf, ',');
        write_member(buf, "id", name.id);
    }
    arena_deinit(&arena);
}

void describe_resource_json(const struct resource *resource, struct buf *buf)
{
    name_json(resource, true, buf);
}

/*
 * Prints the name of a resource, truncated, in `buffer` or `text`. A long path is shortened before
 * printing: each of its bytes takes at least one in the output.
 */
static struct slice truncated_text(const struct resource *resource, struct buf *text, char *buffer)
{
    enum { GLYPH_BYTES = 4 }; /* the last character may be cut; truncation drops it */
    struct arena arena = ARENA_INIT;
    struct resource_name name = resource_name(resource, &arena);
    if (name.path.len > DESCRIBE_NAME_BYTES_MAX + GLYPH_BYTES)
        name.path.len = DESCRIBE_NAME_BYTES_MAX + GLYPH_BYTES;
    resource_name_print(&name, text);
    arena_deinit(&arena);
    return describe_truncate(buf_as_slice(text), buffer);
}

void describe_resource(const struct resource *resource, struct buf *buf)
{
    char buffer[DESCRIBE_NAME_BYTES_MAX];
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_slice(buf, truncated_text(resource, &text, buffer));
    buf_deinit(&text);
}

static void resource_text_json(const struct resource *resource, struct buf *buf)
{
    char buffer[DESCRIBE_NAME_BYTES_MAX];
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    write_member(buf, "resource", truncated_text(resource, &text, buffer));
    buf_deinit(&text);
}

void describe_lock_json(const struct lock_hold *hold, struct buf *buf)
{
    REQUIRE(hold->mode != LOCK_NONE); /* a hold of an ancestor alone is no lock */
    describe_resource_json(hold->resource, buf);
    if (hold->resource->kind != RESOURCE_ALL)
        buf_byte(buf, ',');
    buf_printf(buf, "\"mode\":\"%s\",\"since\":%" PRIu64 ",\"fencing_token\":%" PRIu64, lock_mode_name(hold->mode),
               hold->since, hold->token);
}

void describe_conflict_json(const struct lock_conflict *conflict, struct buf *buf)
{
    REQUIRE(conflict->waiting || conflict->hold != NULL);
    buf_byte(buf, '{');
    describe_owner_json(conflict->owner, buf);
    buf_printf(buf, ",\"mode\":\"%s\",", lock_mode_name(conflict->mode));
    resource_text_json(conflict->resource, buf);
    if (conflict->resource->kind != RESOURCE_ALL)
        buf_byte(buf, ',');
    name_json(conflict->resource, false, buf);
    if (conflict->waiting)
        buf_lit(buf, ",\"waiting\":true");
    else if (conflict->hold->since != 0)
        buf_printf(buf, ",\"since\":%" PRIu64, conflict->hold->since);
    buf_byte(buf, '}');
}

void describe_conflicts_json(const struct lock_conflict *conflicts, size_t count, struct buf *buf)
{
    REQUIRE(count <= HOLDERS_REPORTED_MAX);
    buf_lit(buf, "\"holders\":[");
    for (size_t i = 0; i < count; i++) {
        describe_conflict_json(&conflicts[i], buf);
        if (i + 1 < count)
            buf_byte(buf, ',');
    }
    buf_byte(buf, ']');
}

/* --- Cycles ------------------------------------------------------------------------------------------------------- */

/* Returns: the lock mode of a bit; of an intention bit, the mode that it announces. */
static enum lock_mode mode_of(enum lock_bit bit)
{
    REQUIRE(bit < LOCK_BIT_COUNT);
    return (enum lock_mode)(LOCK_S + (bit < LOCK_BIT_S ? bit : bit - LOCK_BIT_S));
}

const char *describe_relation(bool waiting, const struct core *core)
{
    if (!waiting)
        return "held by";
    return core->command_version >= COMMAND_SINCE_PLAIN_TEXTS ? "requested by" : "awaited by";
}

void describe_cycle(const struct wait_edge *edges, size_t count, const char *between, const struct core *core,
                    struct buf *buf)
{
    REQUIRE(count > 0);
    bool plain = core->command_version >= COMMAND_SINCE_PLAIN_TEXTS;
    size_t start = buf->len;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_printf(buf, "%s", between);
        if (buf->len - start > DESCRIBE_CYCLE_BYTES_MAX) {
            buf_printf(buf, "and %zu more", count - i);
            return;
        }
        describe_owner(lock_request_owner(edges[i].request), core, buf);
        buf_lit(buf, " waits for ");
        describe_resource(edges[i].resource, buf);
        buf_printf(buf, " %s ", edges[i].soft && !plain ? "behind" : describe_relation(edges[i].soft, core));
        describe_owner(edges[i].holder, core, buf);
    }
}

void describe_cycle_json(const struct wait_edge *edges, size_t count, struct buf *buf)
{
    REQUIRE(count > 0);
    size_t start = buf->len, i = 0;
    buf_lit(buf, "\"cycle\":[");
    for (; i < count && buf->len - start <= DESCRIBE_CYCLE_BYTES_MAX; i++) {
        if (i > 0)
            buf_byte(buf, ',');
        buf_byte(buf, '{');
        describe_owner_json(lock_request_owner(edges[i].request), buf);
        buf_printf(buf, ",\"mode\":\"%s\",", lock_mode_name(mode_of(edges[i].bit)));
        resource_text_json(edges[i].resource, buf);
        buf_printf(buf, ",\"%s\":{", edges[i].soft ? "behind" : "held_by");
        describe_owner_json(edges[i].holder, buf);
        buf_lit(buf, "}}");
    }
    buf_byte(buf, ']');
    if (i < count)
        buf_printf(buf, ",\"more\":%zu", count - i);
}
