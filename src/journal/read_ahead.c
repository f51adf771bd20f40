/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead; see read_ahead.h. */
#include "journal/read_ahead.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/thread.h"
#include "core/command/command.h"
#include "core/documents/parse_ahead.h"
#include "journal/at_work.h"

struct read_ahead {
    struct read_ahead_options options;
    struct thread thread;
    bool threaded; /* the thread runs */
    /* The newest entry of the cursor, which waits for the next one; NULL: none, or the applier has it */
    struct read_ahead_entry *newest;

    pthread_mutex_t lock; /* of all below, of the entries in the lists, and of `newest` */
    pthread_cond_t changed;
    struct list entries;   /* read_ahead_entry by link, in the order of the log */
    struct list undecoded; /* those that the thread may decode, by undecoded_link */
    size_t bytes, count;   /* of `entries` */
    int ended;             /* what the cursor returned after its last entry; 0: it has not ended */
    bool full;             /* the thread reads no more until half of the room is free: it is woken rarely */
    bool closing;
};

/* --- Entries ------------------------------------------------------------------------------------------------------ */

static struct read_ahead_entry *new_entry(const struct cmdlog_entry *from)
{
    struct read_ahead_entry *entry = mem_zalloc(sizeof *entry);
    entry->bytes = (struct buf)BUF_INIT(BUF_UNLIMITED);
    buf_slice(&entry->bytes, from->bytes);
    buf_slice(&entry->bytes, from->host);
    struct slice all = buf_as_slice(&entry->bytes);
    entry->entry = *from;
    entry->entry.bytes = slice_make(all.data, from->bytes.len);
    entry->entry.host = slice_from_offset(all, from->bytes.len);
    list_init(&entry->commands);
    return entry;
}

void read_ahead_entry_free(struct read_ahead_entry *entry)
{
    if (entry == NULL)
        return;
    command_free_all(&entry->commands);
    buf_deinit(&entry->bytes);
    mem_free(entry);
}

static void decode_entry(struct read_ahead_entry *entry)
{
    entry->result = command_group_decode(entry->entry.bytes, &entry->head, &entry->commands);
}

/* As decode_entry(), by the thread; parses the sources, too. */
static void decode_ahead(struct read_ahead *ahead, struct read_ahead_entry *entry)
{
    struct command_group_header head;
    struct slice bytes = entry->entry.bytes;
    if (command_group_read_header(bytes, &head) == 0)
        at_work_begin_ahead(ahead->options.at_work, entry->entry.position, head.ts, bytes.len);
    decode_entry(entry);
    list_for_each(link, &entry->commands) command_parse_ahead(list_entry(link, struct command, link));
    at_work_end_ahead(ahead->options.at_work);
}

int read_ahead_decode(struct read_ahead *ahead, struct read_ahead_entry *entry)
{
    REQUIRE(!list_linked(&entry->link) && entry->state != ENTRY_BEING_DECODED);
    struct command_group_header head;
    struct slice bytes = entry->entry.bytes;
    if (entry->state == ENTRY_DECODED)
        return entry->result;
    /* Decoding may end the process, as applying may. */
    if (command_group_read_header(bytes, &head) == 0)
        at_work_begin_entry(ahead->options.at_work, entry->entry.position, head.ts, bytes.len);
    decode_entry(entry);
    at_work_fail_entry(ahead->options.at_work); /* not applied yet */
    entry->state = ENTRY_DECODED;
    return entry->result;
}

/* --- The queue ---------------------------------------------------------------------------------------------------- */

static bool has_room(const struct read_ahead *ahead)
{
    return ahead->bytes < READ_AHEAD_BYTES_MAX && ahead->count < READ_AHEAD_ENTRIES_MAX;
}

static bool is_half_empty(const struct read_ahead *ahead)
{
    return ahead->bytes < READ_AHEAD_BYTES_MAX / 2 && ahead->count < READ_AHEAD_ENTRIES_MAX / 2;
}

/* Appends an entry. Assumes: lock. */
static void append_entry(struct read_ahead *ahead, struct read_ahead_entry *entry)
{
    list_append(&ahead->entries, &entry->link);
    ahead->bytes += entry->entry.bytes.len;
    ahead->count++;
}

/* Returns: whether the thread should decode an entry: none that could blur which one ended an earlier process. */
static bool is_worth_it(const struct read_ahead *ahead, const struct cmdlog_entry *entry)
{
    return ahead->threaded && entry->bytes.len >= READ_AHEAD_DECODED_MIN &&
           entry->bytes.len <= READ_AHEAD_DECODED_MAX &&
           at_work_may_decode_ahead(ahead->options.at_work, entry->position);
}

/* Lets the thread decode an entry if that is worth it. Assumes: lock. Returns: whether it is. */
static bool permit(struct read_ahead *ahead, struct read_ahead_entry *entry)
{
    REQUIRE(entry->state == ENTRY_READ && list_linked(&entry->link));
    bool worth = is_worth_it(ahead, &entry->entry);
    if (worth)
        list_append(&ahead->undecoded, &entry->undecoded_link);
    return worth;
}

static struct read_ahead_entry *take_first(struct read_ahead *ahead)
{
    struct read_ahead_entry *entry = list_entry(ahead->entries.next, struct read_ahead_entry, link);
    INSIST(!list_empty(&ahead->entries) && entry->state != ENTRY_BEING_DECODED);
    list_remove(&entry->link);
    if (list_linked(&entry->undecoded_link))
        list_remove(&entry->undecoded_link);
    if (ahead->newest == entry)
        ahead->newest = NULL;
    ahead->bytes -= entry->entry.bytes.len;
    ahead->count--;
    return entry;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* Reads the cursor's next entry. Returns: as cmdlog_next(). */
static int read_entry(struct read_ahead *ahead, struct read_ahead_entry **ret_entry)
{
    struct cmdlog_entry from;
    int r = cmdlog_next(ahead->options.cursor, &from);
    if (r != 0)
        return r;
    struct read_ahead_entry *entry = new_entry(&from);
    entry->unread_bytes = cmdlog_unread_bytes(ahead->options.cursor);
    entry->annotation = recover_read_annotation(entry->entry.bytes, &entry->skipped);
    *ret_entry = entry;
    return 0;
}

/*
 * Adds what read_entry() returned. It shows whether the entry before it is to be applied. Assumes: lock.
 */
static void add_read(struct read_ahead *ahead, int r, struct read_ahead_entry *entry)
{
    struct read_ahead_entry *before = tl_steal(ahead->newest);
    if (before != NULL && (r == CMDLOG_END || (r == 0 && entry->annotation == RECOVER_NO_ANNOTATION)))
        (void)permit(ahead, before);
    if (r != 0) {
        ahead->ended = r;
        return;
    }
    append_entry(ahead, entry);
    ahead->full = !has_room(ahead);
    if (ahead->options.end != 0 && entry->entry.position >= ahead->options.end)
        ahead->ended = CMDLOG_END;
    else if (entry->annotation == RECOVER_NO_ANNOTATION)
        ahead->newest = entry;
}

/* Reads an entry if there is room. Assumes: lock, which is released meanwhile. Returns: whether it did. */
static bool read_next(struct read_ahead *ahead)
{
    struct read_ahead_entry *entry = NULL;
    if (ahead->options.cursor == NULL || ahead->ended != 0 || ahead->full)
        return false;
    pthread_mutex_unlock(&ahead->lock);
    int r = read_entry(ahead, &entry);
    pthread_mutex_lock(&ahead->lock);
    add_read(ahead, r, entry);
    return true;
}

/* Decodes an entry that is permitted. Assumes: lock, which is released meanwhile. Returns: whether it did. */
static bool decode_next(struct read_ahead *ahead)
{
    if (list_empty(&ahead->undecoded))
        return false;
    struct read_ahead_entry *entry = list_entry(ahead->undecoded.next, struct read_ahead_entry, undecoded_link);
    list_remove(&entry->undecoded_link);
    entry->state = ENTRY_BEING_DECODED;
    pthread_mutex_unlock(&ahead->lock);
    decode_ahead(ahead, entry);
    pthread_mutex_lock(&ahead->lock);
    entry->state = ENTRY_DECODED;
    return true;
}

static void run_reader(void *context)
{
    struct read_ahead *ahead = context;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->closing) {
        if (decode_next(ahead) || read_next(ahead))
            pthread_cond_broadcast(&ahead->changed);
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    pthread_mutex_unlock(&ahead->lock);
}

/* --- The applier -------------------------------------------------------------------------------------------------- */

struct read_ahead *read_ahead_open(const struct read_ahead_options *options)
{
    REQUIRE(options->end == 0 || options->cursor != NULL);
    struct read_ahead *ahead = mem_zalloc(sizeof *ahead);
    ahead->options = *options;
    list_init(&ahead->entries);
    list_init(&ahead->undecoded);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    pthread_mutex_lock(&ahead->lock);
    ahead->threaded = !options->in_place && thread_start(&ahead->thread, "read-ahead", run_reader, ahead) == 0;
    pthread_mutex_unlock(&ahead->lock);
    return ahead;
}

void read_ahead_close(struct read_ahead *ahead)
{
    if (ahead == NULL)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->closing = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    thread_join(&ahead->thread);
    while (!list_empty(&ahead->entries))
        read_ahead_entry_free(take_first(ahead));
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    mem_free(ahead);
}

/* Returns: whether the first entry, or the end of the cursor, must be waited for. Assumes: lock. */
static bool must_wait(const struct read_ahead *ahead)
{
    if (list_empty(&ahead->entries))
        return ahead->options.cursor != NULL && ahead->ended == 0;
    return list_entry(ahead->entries.next, struct read_ahead_entry, link)->state == ENTRY_BEING_DECODED;
}

int read_ahead_next(struct read_ahead *ahead, struct read_ahead_entry **ret_entry)
{
    REQUIRE(ret_entry != NULL);
    int r = 0;
    pthread_mutex_lock(&ahead->lock);
    while (must_wait(ahead)) {
        if (ahead->threaded)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        else
            (void)read_next(ahead);
    }
    if (list_empty(&ahead->entries)) {
        r = ahead->ended == 0 ? CMDLOG_END : ahead->ended;
    } else {
        *ret_entry = take_first(ahead);
        if (ahead->full && is_half_empty(ahead)) {
            ahead->full = false;
            pthread_cond_broadcast(&ahead->changed);
        }
    }
    pthread_mutex_unlock(&ahead->lock);
    return r;
}

bool read_ahead_has_room(struct read_ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    bool room = has_room(ahead);
    pthread_mutex_unlock(&ahead->lock);
    return room;
}

bool read_ahead_is_empty(struct read_ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    bool empty = list_empty(&ahead->entries);
    pthread_mutex_unlock(&ahead->lock);
    return empty;
}

void read_ahead_put(struct read_ahead *ahead, const struct cmdlog_entry *from, bool decodes)
{
    REQUIRE(ahead->options.cursor == NULL && from->position != 0);
    struct read_ahead_entry *entry = new_entry(from);
    pthread_mutex_lock(&ahead->lock);
    bool first = list_empty(&ahead->entries); /* the applier gets it next, and decodes it sooner than the thread */
    append_entry(ahead, entry);
    if (decodes && !first && permit(ahead, entry))
        pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}
