/* SPDX-License-Identifier: Apache-2.0 */
/* A log in memory; see log_memory.h. */
#include "log/log_memory.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"

struct log_medium {
    pthread_mutex_t lock;
    struct slice *entries; /* mem_free's; the first is that at `trimmed` + 1 */
    size_t count;
    size_t room;
    log_position trimmed;
    log_position durable;
    log_position shown;
    bool sealed;
    bool forget;
    struct log_checkpoint checkpoints[2];
    size_t open_count;
};

struct log_memory {
    struct log log;
    struct log_medium *medium;
};

struct memory_cursor {
    struct log_cursor cursor;
    struct log_medium *medium;
    log_position next;
    char *copy; /* of the entry given last: the medium may let go of its own */
};

static struct log_medium *medium_of(struct log *log)
{
    return ((struct log_memory *)log)->medium;
}

static log_position appended(const struct log_medium *medium)
{
    return medium->trimmed + medium->count;
}

/* --- The medium --------------------------------------------------------------------------------------------------- */

struct log_medium *log_medium_new(void)
{
    struct log_medium *medium = mem_zalloc(sizeof *medium);
    pthread_mutex_init(&medium->lock, NULL);
    medium->shown = LOG_POSITION_MAX;
    return medium;
}

static void free_bytes(struct slice bytes)
{
    mem_free((char *)(uintptr_t)bytes.data);
}

void log_medium_free(struct log_medium *medium)
{
    if (medium == NULL)
        return;
    REQUIRE(medium->open_count == 0);
    for (size_t i = 0; i < medium->count; i++)
        free_bytes(medium->entries[i]);
    for (int i = 0; i < 2; i++)
        free_bytes(medium->checkpoints[i].place);
    mem_free(medium->entries);
    pthread_mutex_destroy(&medium->lock);
    mem_free(medium);
}

void log_medium_crash(struct log_medium *medium, uint64_t kept)
{
    REQUIRE(medium->open_count == 0);
    while (appended(medium) > medium->durable && appended(medium) - medium->durable > kept)
        free_bytes(medium->entries[--medium->count]);
    medium->durable = appended(medium);
    medium->forget = false;
}

void log_medium_forget_answer(struct log_medium *medium)
{
    medium->forget = true;
}

void log_medium_show(struct log_medium *medium, log_position up_to)
{
    pthread_mutex_lock(&medium->lock);
    medium->shown = up_to;
    pthread_mutex_unlock(&medium->lock);
}

/* --- The log ------------------------------------------------------------------------------------------------------ */

static struct slice join(const struct slice *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    char *bytes = mem_alloc(len);
    len = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len > 0)
            memcpy(bytes + len, parts[i].data, parts[i].len);
        len += parts[i].len;
    }
    return slice_make(bytes, len);
}

static int memory_append(struct log *log, const struct slice *parts, size_t count, log_position *ret_position)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    if (medium->count == medium->room) {
        medium->room = 2 * medium->room + 16;
        medium->entries = mem_realloc(medium->entries, medium->room * sizeof *medium->entries);
    }
    medium->entries[medium->count++] = join(parts, count);
    medium->sealed = false;
    bool forget = medium->forget;
    medium->forget = false;
    if (!forget)
        *ret_position = appended(medium);
    pthread_mutex_unlock(&medium->lock);
    return forget ? tl_trace(TL_ERR_IO) : 0;
}

static int memory_sync(struct log *log, log_position position)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    REQUIRE(position <= appended(medium));
    medium->durable = appended(medium);
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

static void memory_head(struct log *log, struct log_head *ret_head)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    *ret_head = (struct log_head){medium->trimmed + 1, appended(medium), medium->durable, medium->sealed};
    pthread_mutex_unlock(&medium->lock);
}

static int memory_follow(struct log *log, log_position from, struct log_cursor **ret_cursor)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    bool there = from > medium->trimmed;
    pthread_mutex_unlock(&medium->lock);
    if (!there)
        return LOG_TRIMMED;
    struct memory_cursor *cursor = mem_zalloc(sizeof *cursor);
    *cursor = (struct memory_cursor){{log->functions}, medium, from, NULL};
    *ret_cursor = &cursor->cursor;
    return 0;
}

static int memory_next(struct log_cursor *base, struct log_entry *ret_entry)
{
    struct memory_cursor *cursor = (struct memory_cursor *)base;
    struct log_medium *medium = cursor->medium;
    int r = 0;
    pthread_mutex_lock(&medium->lock);
    if (cursor->next <= medium->trimmed) {
        r = LOG_TRIMMED;
    } else if (cursor->next > appended(medium) || cursor->next > medium->shown) {
        r = LOG_END;
    } else {
        struct slice bytes = medium->entries[cursor->next - medium->trimmed - 1];
        mem_free(cursor->copy);
        cursor->copy = mem_dup(bytes.data, bytes.len);
        *ret_entry = (struct log_entry){cursor->next++, slice_make(cursor->copy, bytes.len)};
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static void memory_unfollow(struct log_cursor *base)
{
    struct memory_cursor *cursor = (struct memory_cursor *)base;
    mem_free(cursor->copy);
    mem_free(cursor);
}

static int memory_trim(struct log *log, log_position before)
{
    struct log_medium *medium = medium_of(log);
    size_t gone = 0;
    pthread_mutex_lock(&medium->lock);
    while (gone < medium->count && medium->trimmed + 1 + gone < before)
        free_bytes(medium->entries[gone++]);
    medium->count -= gone;
    if (gone > 0)
        memmove(medium->entries, medium->entries + gone, medium->count * sizeof *medium->entries);
    medium->trimmed += gone;
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

static int memory_put_checkpoint(struct log *log, const struct log_checkpoint *checkpoint)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    REQUIRE(checkpoint->position <= medium->durable);
    free_bytes(medium->checkpoints[1].place);
    medium->checkpoints[1] = medium->checkpoints[0];
    medium->checkpoints[0] = (struct log_checkpoint){
        checkpoint->position,
        slice_make(mem_strdup(checkpoint->place.data, checkpoint->place.len), checkpoint->place.len)};
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

static int memory_get_checkpoint(struct log *log, unsigned back, char *buffer, struct log_checkpoint *ret_checkpoint)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    struct log_checkpoint found = medium->checkpoints[back];
    if (found.place.len > 0)
        memcpy(buffer, found.place.data, found.place.len);
    pthread_mutex_unlock(&medium->lock);
    if (found.place.data == NULL)
        return LOG_NOT_FOUND;
    *ret_checkpoint = (struct log_checkpoint){found.position, slice_make(buffer, found.place.len)};
    return 0;
}

static int memory_seal(struct log *log)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    medium->durable = appended(medium);
    medium->sealed = true;
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

static void memory_close(struct log *log)
{
    struct log_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    medium->open_count--;
    pthread_mutex_unlock(&medium->lock);
    mem_free(log);
}

static const struct log_functions functions = {
    .append = memory_append,
    .sync = memory_sync,
    .head = memory_head,
    .follow = memory_follow,
    .next = memory_next,
    .unfollow = memory_unfollow,
    .trim = memory_trim,
    .put_checkpoint = memory_put_checkpoint,
    .get_checkpoint = memory_get_checkpoint,
    .seal = memory_seal,
    .close = memory_close,
};

struct log *log_memory_open(struct log_medium *medium)
{
    struct log_memory *log = mem_zalloc(sizeof *log);
    *log = (struct log_memory){{&functions}, medium};
    pthread_mutex_lock(&medium->lock);
    medium->open_count++;
    pthread_mutex_unlock(&medium->lock);
    return &log->log;
}
