/* SPDX-License-Identifier: Apache-2.0 */
/* A command log in memory; see cmdlog_memory.h. */
#include "cmdlog/cmdlog_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/list.h"
#include "base/magic.h"
#include "base/mutex.h"

/* A host that was ever opened; never freed before the medium. */
struct medium_host {
    struct list link; /* medium.hosts, by name */
    struct slice name;
    struct slice about;
    uint64_t life; /* 0: not a member */
    uint64_t number;
    bool partitioned;
    struct cmdlog_checkpoint checkpoints[2];
    cmdlog_position halted; /* 0: it has not halted */
};

struct memory_entry {
    struct slice bytes;   /* allocated by mem_alloc */
    uint32_t history_crc; /* covers all entries up to this one */
    struct medium_host *host;
    uint64_t life, number, submitted;
};

struct cmdlog_medium {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct memory_entry *entries; /* entries[0] is at position `trimmed` + 1 */
    size_t count;
    size_t capacity;
    cmdlog_position trimmed;
    uint32_t trimmed_crc;
    uint64_t identity;
    cmdlog_position durable;
    cmdlog_position visible_to;
    bool sealed;
    bool lose_reply;
    bool full;
    struct cmdlog_checkpoint checkpoints[2];
    size_t open_count;
    struct list hosts;
    uint64_t life_count, hosts_version, catch_up;
    struct slice genesis; /* allocated by mem_alloc; NULL: none */
    struct cmdlog_skips *skips; /* NULL: none */
};

enum { ANSWERS_KEPT = 64 };

#define CMDLOG_MEMORY_MAGIC MAGIC('C', 'L', 'o', 'M')

struct cmdlog_memory {
    struct cmdlog log;
    uint32_t magic; /* CMDLOG_MEMORY_MAGIC */
    struct cmdlog_medium *medium;
    /* Only of a log opened as a host: */
    struct medium_host *host;
    uint64_t life; /* that this log has joined; it has ended if the host's differs */
    bool was_known; /* a checkpoint was recorded through this log */
    struct {
        uint64_t number;
        cmdlog_position position;
        bool forgotten;
    } answers[ANSWERS_KEPT]; /* a ring, by number */
};

struct memory_cursor {
    struct cmdlog_cursor cursor;
    struct cmdlog_medium *medium;
    struct medium_host *host; /* that reads; NULL: the log is not shared */
    cmdlog_position next;
    bool interrupted;
    char *copy; /* of the last entry returned; the medium's own may be trimmed */
};

static struct cmdlog_memory *memory_of(struct cmdlog *base)
{
    struct cmdlog_memory *log = (struct cmdlog_memory *)base;
    REQUIRE(MAGIC_VALID(log, CMDLOG_MEMORY_MAGIC));
    return log;
}

static struct cmdlog_medium *medium_of(struct cmdlog *log)
{
    return memory_of(log)->medium;
}

static cmdlog_position appended_position(const struct cmdlog_medium *medium)
{
    return medium->trimmed + medium->count;
}

/* Guarantees 2 and 5: only durable entries are trimmed, and only appended ones are durable. */
static bool is_sound(const struct cmdlog_medium *medium)
{
    return medium->trimmed <= medium->durable && medium->durable <= appended_position(medium);
}

/* --- The medium --------------------------------------------------------------------------------------------------- */

struct cmdlog_medium *cmdlog_medium_new(void)
{
    static _Atomic uint64_t media;
    struct cmdlog_medium *medium = mem_zalloc(sizeof *medium);
    medium->identity = atomic_fetch_add(&media, 1) + 1;
    mutex_init(&medium->lock);
    pthread_cond_init(&medium->changed, NULL);
    list_init(&medium->hosts);
    medium->hosts_version = 1;
    medium->catch_up = UINT64_MAX;
    medium->visible_to = CMDLOG_POSITION_MAX;
    return medium;
}

static void free_bytes(struct slice bytes)
{
    mem_free((char *)(uintptr_t)bytes.data);
}

static void free_host(struct medium_host *host)
{
    free_bytes(host->name);
    free_bytes(host->about);
    for (int i = 0; i < 2; i++)
        free_bytes(host->checkpoints[i].locator);
    mem_free(host);
}

void cmdlog_medium_free(struct cmdlog_medium *medium)
{
    if (medium == NULL)
        return;
    REQUIRE(medium->open_count == 0);
    for (size_t i = 0; i < medium->count; i++)
        free_bytes(medium->entries[i].bytes);
    for (int i = 0; i < 2; i++)
        free_bytes(medium->checkpoints[i].locator);
    while (!list_empty(&medium->hosts)) {
        struct medium_host *host = list_entry(medium->hosts.next, struct medium_host, link);
        list_remove(&host->link);
        free_host(host);
    }
    free_bytes(medium->genesis);
    mem_free(medium->skips);
    mem_free(medium->entries);
    pthread_cond_destroy(&medium->changed);
    pthread_mutex_destroy(&medium->lock);
    mem_free(medium);
}

void cmdlog_medium_crash(struct cmdlog_medium *medium, uint64_t kept)
{
    REQUIRE(medium->open_count == 0);
    while (appended_position(medium) > medium->durable && appended_position(medium) - medium->durable > kept)
        free_bytes(medium->entries[--medium->count].bytes);
    ENSURE(is_sound(medium));
    medium->durable = appended_position(medium);
    medium->lose_reply = false;
}

void cmdlog_medium_lose_reply(struct cmdlog_medium *medium)
{
    medium->lose_reply = true;
}

void cmdlog_medium_set_visible(struct cmdlog_medium *medium, cmdlog_position up_to)
{
    pthread_mutex_lock(&medium->lock);
    medium->visible_to = up_to;
    pthread_cond_broadcast(&medium->changed);
    pthread_mutex_unlock(&medium->lock);
}

/* --- The log ------------------------------------------------------------------------------------------------------ */

static struct slice join_parts(const struct slice *parts, size_t count)
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

/* Requires: the lock. */
static void add_entry(struct cmdlog_medium *medium, const struct memory_entry *entry)
{
    REQUIRE(mutex_is_held(&medium->lock));
    REQUIRE(entry->bytes.len > 0 && (entry->host == NULL) == (entry->life == 0));
    if (medium->count == medium->capacity) {
        medium->capacity = 2 * medium->capacity + 16;
        medium->entries = mem_realloc(medium->entries, medium->capacity * sizeof *medium->entries);
    }
    uint32_t before = medium->count == 0 ? medium->trimmed_crc : medium->entries[medium->count - 1].history_crc;
    struct memory_entry *kept = &medium->entries[medium->count++];
    *kept = *entry;
    kept->history_crc = crc32c(before, kept->bytes.data, kept->bytes.len);
    medium->sealed = false;
    pthread_cond_broadcast(&medium->changed);
}

static int memory_append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    REQUIRE(memory_of(log)->host == NULL);
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    add_entry(medium, &(struct memory_entry){.bytes = join_parts(parts, count)});
    bool forget = medium->lose_reply;
    medium->lose_reply = false;
    if (!forget)
        *ret_position = appended_position(medium);
    pthread_mutex_unlock(&medium->lock);
    return forget ? tl_trace(TL_ERR_IO) : 0;
}

static int memory_sync(struct cmdlog *log, cmdlog_position position)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    REQUIRE(position <= appended_position(medium));
    medium->durable = appended_position(medium);
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

static void memory_head(struct cmdlog *log, struct cmdlog_head *ret_head)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    INSIST(is_sound(medium));
    *ret_head = (struct cmdlog_head){medium->trimmed + 1, appended_position(medium), medium->durable, medium->sealed};
    pthread_mutex_unlock(&medium->lock);
}

static int memory_lineage(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    memcpy(ret_lineage->identity, &medium->identity, sizeof medium->identity);
    if (position == medium->trimmed)
        ret_lineage->history_crc = medium->trimmed_crc;
    else if (position > medium->trimmed && position <= appended_position(medium))
        ret_lineage->history_crc = medium->entries[position - medium->trimmed - 1].history_crc;
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

static int memory_follow(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    bool there = from > medium->trimmed;
    pthread_mutex_unlock(&medium->lock);
    if (!there)
        return CMDLOG_TRIMMED;
    struct memory_cursor *cursor = mem_zalloc(sizeof *cursor);
    *cursor = (struct memory_cursor){
        .cursor = {log->functions, log->shared}, .medium = medium, .host = memory_of(log)->host, .next = from};
    *ret_cursor = &cursor->cursor;
    return 0;
}

/* Requires: the lock. */
static bool has_next(const struct memory_cursor *cursor)
{
    const struct cmdlog_medium *medium = cursor->medium;
    REQUIRE(mutex_is_held(&medium->lock));
    return cursor->next <= appended_position(medium) && cursor->next <= medium->visible_to &&
           (cursor->host == NULL || !cursor->host->partitioned);
}

static int memory_next(struct cmdlog_cursor *base, struct cmdlog_entry *ret_entry)
{
    struct memory_cursor *cursor = (struct memory_cursor *)base;
    struct cmdlog_medium *medium = cursor->medium;
    int r = 0;
    pthread_mutex_lock(&medium->lock);
    if (cursor->next <= medium->trimmed) {
        r = CMDLOG_TRIMMED;
    } else if (!has_next(cursor)) {
        r = CMDLOG_END;
    } else {
        INSIST(cursor->next - medium->trimmed - 1 < medium->count);
        const struct memory_entry *entry = &medium->entries[cursor->next - medium->trimmed - 1];
        mem_free(cursor->copy);
        cursor->copy = mem_dup(entry->bytes.data, entry->bytes.len);
        *ret_entry = (struct cmdlog_entry){.position = cursor->next++,
                                           .bytes = slice_make(cursor->copy, entry->bytes.len),
                                           .host = entry->host == NULL ? SLICE_NONE : entry->host->name,
                                           .life = entry->life,
                                           .number = entry->number,
                                           .submitted = entry->submitted};
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static uint64_t memory_unread_bytes(struct cmdlog_cursor *base)
{
    const struct memory_cursor *cursor = (const struct memory_cursor *)base;
    const struct cmdlog_medium *medium = cursor->medium;
    uint64_t bytes = 0;
    pthread_mutex_lock(&cursor->medium->lock);
    for (cmdlog_position i = cursor->next; i > medium->trimmed && i <= appended_position(medium); i++)
        bytes += medium->entries[i - medium->trimmed - 1].bytes.len;
    pthread_mutex_unlock(&cursor->medium->lock);
    return bytes;
}

static void memory_unfollow(struct cmdlog_cursor *base)
{
    struct memory_cursor *cursor = (struct memory_cursor *)base;
    mem_free(cursor->copy);
    mem_free(cursor);
}

/* Requires: the lock. */
static void trim_to(struct cmdlog_medium *medium, cmdlog_position before)
{
    REQUIRE(mutex_is_held(&medium->lock));
    size_t removed = 0;
    while (removed < medium->count && medium->trimmed + 1 + removed < before) {
        medium->trimmed_crc = medium->entries[removed].history_crc;
        free_bytes(medium->entries[removed++].bytes);
    }
    medium->count -= removed;
    if (removed > 0)
        memmove(medium->entries, medium->entries + removed, medium->count * sizeof *medium->entries);
    medium->trimmed += removed;
    ENSURE(is_sound(medium));
}

static int memory_trim(struct cmdlog *log, cmdlog_position before)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    trim_to(medium, before);
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

/* There is nothing to free, preallocate or seal. */
static int memory_shrink(struct cmdlog *log)
{
    (void)log;
    return 0;
}

/* Returns: the two checkpoints of the log's host, or of the medium if the log is not shared. */
static struct cmdlog_checkpoint *checkpoints_of(struct cmdlog *log)
{
    struct medium_host *host = memory_of(log)->host;
    return host != NULL ? host->checkpoints : medium_of(log)->checkpoints;
}

static bool is_partitioned(const struct cmdlog *log)
{
    const struct medium_host *host = ((const struct cmdlog_memory *)log)->host;
    REQUIRE(mutex_is_held(&((const struct cmdlog_memory *)log)->medium->lock));
    return host != NULL && host->partitioned;
}

/* Returns: whether the host was known, has been forgotten, and is no member. Requires: the lock. */
static bool is_forgotten(const struct cmdlog_memory *log)
{
    REQUIRE(mutex_is_held(&log->medium->lock));
    const struct medium_host *host = log->host;
    bool is_member = host != NULL && log->life != 0 && host->life == log->life;
    return host != NULL && host->checkpoints[0].locator.data == NULL && log->was_known && !is_member;
}

static int memory_put_checkpoint(struct cmdlog *base, const struct cmdlog_checkpoint *checkpoint)
{
    struct cmdlog_memory *log = memory_of(base);
    struct cmdlog_medium *medium = log->medium;
    struct cmdlog_checkpoint *checkpoints = checkpoints_of(base);
    pthread_mutex_lock(&medium->lock);
    int r = is_partitioned(base) ? CMDLOG_UNREACHABLE : is_forgotten(log) ? CMDLOG_FENCED : 0;
    log->was_known = log->was_known || r == 0;
    if (r == 0 && checkpoint->position >= checkpoints[0].position) {
        bool again = checkpoint->position == checkpoints[0].position;
        REQUIRE(checkpoint->position <= medium->durable);
        free_bytes(checkpoints[again ? 0 : 1].locator);
        if (!again)
            checkpoints[1] = checkpoints[0];
        checkpoints[0] =
            (struct cmdlog_checkpoint){checkpoint->position, mem_dup_slice(checkpoint->locator), checkpoint->log_bytes};
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int memory_get_checkpoint(struct cmdlog *log, unsigned back, char *buffer,
                                 struct cmdlog_checkpoint *ret_checkpoint)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    bool away = is_partitioned(log);
    struct cmdlog_checkpoint found = checkpoints_of(log)[back];
    if (found.locator.len > 0)
        memcpy(buffer, found.locator.data, found.locator.len);
    pthread_mutex_unlock(&medium->lock);
    if (away || found.locator.data == NULL)
        return away ? CMDLOG_UNREACHABLE : CMDLOG_NOT_FOUND;
    *ret_checkpoint =
        (struct cmdlog_checkpoint){found.position, slice_make(buffer, found.locator.len), found.log_bytes};
    return 0;
}

static int memory_seal(struct cmdlog *log)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    medium->durable = appended_position(medium);
    medium->sealed = true;
    pthread_mutex_unlock(&medium->lock);
    return 0;
}

static void memory_close(struct cmdlog *log)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    INSIST(medium->open_count > 0);
    medium->open_count--;
    pthread_mutex_unlock(&medium->lock);
    magic_clear(&memory_of(log)->magic);
    mem_free(log);
}

static const struct cmdlog_functions functions = {
    .append = memory_append,
    .sync = memory_sync,
    .head = memory_head,
    .lineage = memory_lineage,
    .follow = memory_follow,
    .next = memory_next,
    .unread_bytes = memory_unread_bytes,
    .unfollow = memory_unfollow,
    .trim = memory_trim,
    .preallocate = memory_shrink,
    .shrink = memory_shrink,
    .put_checkpoint = memory_put_checkpoint,
    .get_checkpoint = memory_get_checkpoint,
    .seal = memory_seal,
    .close = memory_close,
};

struct cmdlog *cmdlog_memory_open(struct cmdlog_medium *medium)
{
    struct cmdlog_memory *log = mem_zalloc(sizeof *log);
    *log = (struct cmdlog_memory){.log = {&functions, NULL}, .magic = CMDLOG_MEMORY_MAGIC, .medium = medium};
    pthread_mutex_lock(&medium->lock);
    medium->open_count++;
    pthread_mutex_unlock(&medium->lock);
    return &log->log;
}

/* --- Shared logs -------------------------------------------------------------------------------------------------- */

/* Requires: the lock. */
static struct medium_host *find_host(struct cmdlog_medium *medium, struct slice name)
{
    REQUIRE(mutex_is_held(&medium->lock));
    list_for_each(link, &medium->hosts)
    {
        struct medium_host *host = list_entry(link, struct medium_host, link);
        if (slice_equal(host->name, name))
            return host;
    }
    return NULL;
}

static struct medium_host *host_of(struct cmdlog_medium *medium, struct slice name)
{
    struct medium_host *host = find_host(medium, name);
    struct list *before = medium->hosts.next;
    if (host != NULL)
        return host;
    host = mem_zalloc(sizeof *host);
    host->name = mem_dup_slice(name);
    while (before != &medium->hosts && slice_compare(list_entry(before, struct medium_host, link)->name, name) < 0)
        before = before->next;
    list_insert_before(before, &host->link);
    return host;
}

/* Requires: the lock. */
static void hosts_changed(struct cmdlog_medium *medium)
{
    REQUIRE(mutex_is_held(&medium->lock));
    medium->hosts_version++;
    pthread_cond_broadcast(&medium->changed);
}

static void end_life(struct cmdlog_medium *medium, struct medium_host *host)
{
    REQUIRE(mutex_is_held(&medium->lock));
    if (host == NULL || host->life == 0)
        return;
    host->life = 0;
    hosts_changed(medium);
}

void cmdlog_medium_end_life(struct cmdlog_medium *medium, struct slice name)
{
    pthread_mutex_lock(&medium->lock);
    end_life(medium, find_host(medium, name));
    pthread_mutex_unlock(&medium->lock);
}

void cmdlog_medium_set_full(struct cmdlog_medium *medium, bool full)
{
    pthread_mutex_lock(&medium->lock);
    medium->full = full;
    pthread_mutex_unlock(&medium->lock);
}

void cmdlog_medium_partition(struct cmdlog_medium *medium, struct slice name, bool away)
{
    pthread_mutex_lock(&medium->lock);
    host_of(medium, name)->partitioned = away;
    pthread_cond_broadcast(&medium->changed);
    pthread_mutex_unlock(&medium->lock);
}

void cmdlog_medium_set_catch_up(struct cmdlog_medium *medium, uint64_t log_bytes)
{
    pthread_mutex_lock(&medium->lock);
    medium->catch_up = log_bytes;
    pthread_mutex_unlock(&medium->lock);
}

/*
 * Takes the lock, then waits until the log is reachable. Returns, with the lock held: 0;
 * CMDLOG_UNREACHABLE: not until then.
 */
static int lock_reachable(struct cmdlog *log, uint64_t until)
{
    struct cmdlog_medium *medium = medium_of(log);
    pthread_mutex_lock(&medium->lock);
    while (is_partitioned(log) && clock_boot_us() < until)
        (void)clock_wait(&medium->changed, &medium->lock, until);
    return is_partitioned(log) ? CMDLOG_UNREACHABLE : 0;
}

static int shared_join(struct cmdlog *base, struct slice about, uint64_t until, uint64_t *ret_life)
{
    struct cmdlog_memory *log = memory_of(base);
    struct medium_host *host = log->host;
    int r = lock_reachable(base, until);
    if (r == 0 && host->life != 0 && host->life == log->life)
        end_life(log->medium, host);
    if (r == 0 && host->life != 0)
        r = CMDLOG_EXISTS;
    if (r == 0) {
        free_bytes(host->about);
        host->about = mem_dup_slice(about);
        host->life = log->life = ++log->medium->life_count;
        *ret_life = host->life;
        hosts_changed(log->medium);
    }
    pthread_mutex_unlock(&log->medium->lock);
    return r;
}

static int shared_leave(struct cmdlog *base, uint64_t until)
{
    struct cmdlog_memory *log = memory_of(base);
    int r = lock_reachable(base, until);
    if (r == 0 && log->life != 0 && log->host->life == log->life)
        end_life(log->medium, log->host);
    log->life = 0;
    pthread_mutex_unlock(&log->medium->lock);
    return r;
}

static int shared_expel(struct cmdlog *base, struct slice name, uint64_t life, uint64_t until)
{
    struct cmdlog_medium *medium = medium_of(base);
    int r = lock_reachable(base, until);
    struct medium_host *host = find_host(medium, name);
    if (r == 0 && host != NULL && host->life == life)
        end_life(medium, host);
    pthread_mutex_unlock(&medium->lock);
    return r;
}

/* The end of a life is visible at once here; `until` is never reached. */
static void shared_lease(struct cmdlog *base, struct cmdlog_lease *ret_lease)
{
    struct cmdlog_memory *log = memory_of(base);
    pthread_mutex_lock(&log->medium->lock);
    bool in = log->life != 0 && log->host->life == log->life;
    *ret_lease = (struct cmdlog_lease){
        .life = in ? log->life : 0, .until = in ? UINT64_MAX : 0, .asked = in ? clock_boot_us() : 0};
    pthread_mutex_unlock(&log->medium->lock);
}

/* Requires: the lock. */
static struct cmdlog_hosts *list_in(struct cmdlog_medium *medium)
{
    REQUIRE(mutex_is_held(&medium->lock));
    size_t count = 0, bytes = 0;
    list_for_each(link, &medium->hosts)
    {
        struct medium_host *host = list_entry(link, struct medium_host, link);
        count += host->life != 0;
        bytes += host->name.len + host->about.len;
    }
    struct cmdlog_hosts *hosts = mem_zalloc(sizeof *hosts + count * sizeof hosts->hosts[0] + bytes);
    char *tail = (char *)&hosts->hosts[count];
    hosts->version = medium->hosts_version;
    hosts->asked = clock_boot_us();
    list_for_each(link, &medium->hosts)
    {
        struct medium_host *host = list_entry(link, struct medium_host, link);
        if (host->life != 0)
            hosts->hosts[hosts->count++] = (struct cmdlog_host){cmdlog_copy_to_tail(&tail, host->name), host->life,
                                                                cmdlog_copy_to_tail(&tail, host->about)};
    }
    return hosts;
}

static int shared_list_hosts(struct cmdlog *base, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts)
{
    struct cmdlog_medium *medium = medium_of(base);
    pthread_mutex_lock(&medium->lock);
    while ((medium->hosts_version == version || is_partitioned(base)) && clock_boot_us() < until)
        (void)clock_wait(&medium->changed, &medium->lock, until);
    int r = is_partitioned(base) ? CMDLOG_UNREACHABLE : medium->hosts_version == version ? CMDLOG_END : 0;
    if (r == 0)
        *ret_hosts = list_in(medium);
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int shared_submit(struct cmdlog *base, const struct slice *parts, size_t count, uint64_t until,
                         uint64_t *ret_number)
{
    struct cmdlog_memory *log = memory_of(base);
    struct cmdlog_medium *medium = log->medium;
    int r = lock_reachable(base, until) == 0 ? 0 : CMDLOG_BUSY;
    if (log->life == 0 || log->host->life != log->life)
        r = CMDLOG_FENCED;
    else if (r == 0 && medium->full)
        r = TL_ERR_NO_SPACE;
    if (r == 0) {
        uint64_t number = ++log->host->number;
        add_entry(medium, &(struct memory_entry){.bytes = join_parts(parts, count),
                                                 .host = log->host,
                                                 .life = log->life,
                                                 .number = number,
                                                 .submitted = clock_wall_us()});
        medium->durable = appended_position(medium);
        log->answers[number % ANSWERS_KEPT].number = number;
        log->answers[number % ANSWERS_KEPT].position = appended_position(medium);
        log->answers[number % ANSWERS_KEPT].forgotten = medium->lose_reply;
        if (medium->lose_reply)
            end_life(medium, log->host);
        medium->lose_reply = false;
        *ret_number = number;
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

/* An append is never in flight here: it is in the log when it has been submitted. */
static int shared_await_slot(struct cmdlog *base, uint64_t until)
{
    (void)base;
    (void)until;
    return 0;
}

static int shared_answer(struct cmdlog *base, uint64_t number, uint64_t until, cmdlog_position *ret_position)
{
    struct cmdlog_memory *log = memory_of(base);
    (void)until;
    pthread_mutex_lock(&log->medium->lock);
    int r = log->answers[number % ANSWERS_KEPT].number != number ? TL_ERR_STOPPED
            : log->answers[number % ANSWERS_KEPT].forgotten      ? CMDLOG_UNKNOWN
                                                                 : 0;
    if (r >= 0)
        *ret_position = log->answers[number % ANSWERS_KEPT].position;
    pthread_mutex_unlock(&log->medium->lock);
    return r;
}

static int shared_append(struct cmdlog *base, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    uint64_t number;
    int r = shared_submit(base, parts, count, CMDLOG_FOREVER, &number);
    return r != 0 ? r : shared_answer(base, number, CMDLOG_FOREVER, ret_position);
}

static int shared_await(struct cmdlog_cursor *base, uint64_t until)
{
    struct memory_cursor *cursor = (struct memory_cursor *)base;
    struct cmdlog_medium *medium = cursor->medium;
    pthread_mutex_lock(&medium->lock);
    while (!has_next(cursor) && cursor->next > medium->trimmed && !cursor->interrupted && clock_boot_us() < until)
        (void)clock_wait(&medium->changed, &medium->lock, until);
    int r = !cursor->interrupted && (has_next(cursor) || cursor->next <= medium->trimmed) ? 0 : CMDLOG_END;
    cursor->interrupted = false;
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static void shared_interrupt(struct cmdlog_cursor *base)
{
    struct memory_cursor *cursor = (struct memory_cursor *)base;
    pthread_mutex_lock(&cursor->medium->lock);
    cursor->interrupted = true;
    pthread_cond_broadcast(&cursor->medium->changed);
    pthread_mutex_unlock(&cursor->medium->lock);
}

static cmdlog_position shared_passed(const struct cmdlog_cursor *base)
{
    return ((const struct memory_cursor *)base)->next - 1;
}

static int shared_ask_head(struct cmdlog *base, uint64_t until, cmdlog_position *ret_position)
{
    int r = lock_reachable(base, until);
    if (r == 0)
        *ret_position = appended_position(medium_of(base));
    pthread_mutex_unlock(&medium_of(base)->lock);
    return r;
}

static int shared_read_genesis(struct cmdlog *base, uint64_t until, struct buf *bytes, cmdlog_position *ret_position)
{
    struct cmdlog_medium *medium = medium_of(base);
    int r = lock_reachable(base, until);
    if (r == 0 && medium->genesis.data == NULL)
        r = CMDLOG_NOT_FOUND;
    if (r == 0) {
        buf_slice(bytes, medium->genesis);
        *ret_position = 0;
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int shared_create_genesis(struct cmdlog *base, struct slice bytes, uint64_t until)
{
    struct cmdlog_medium *medium = medium_of(base);
    int r = lock_reachable(base, until);
    if (r == 0 && medium->genesis.data != NULL)
        r = CMDLOG_EXISTS;
    if (r == 0)
        medium->genesis = mem_dup_slice(bytes);
    pthread_mutex_unlock(&medium->lock);
    return r;
}

/* Requires: the lock. */
static struct cmdlog_known_hosts *list_known(struct cmdlog_medium *medium)
{
    REQUIRE(mutex_is_held(&medium->lock));
    size_t count = 0, bytes = 0;
    list_for_each(link, &medium->hosts)
    {
        struct medium_host *host = list_entry(link, struct medium_host, link);
        count += host->checkpoints[0].locator.data != NULL;
        bytes += host->name.len + host->checkpoints[0].locator.len;
    }
    struct cmdlog_known_hosts *known = mem_zalloc(sizeof *known + count * sizeof known->hosts[0] + bytes);
    char *tail = (char *)&known->hosts[count];
    list_for_each(link, &medium->hosts)
    {
        struct medium_host *host = list_entry(link, struct medium_host, link);
        struct cmdlog_checkpoint newest = host->checkpoints[0];
        if (newest.locator.data == NULL)
            continue;
        newest.locator = cmdlog_copy_to_tail(&tail, newest.locator);
        known->hosts[known->count++] = (struct cmdlog_known_host){cmdlog_copy_to_tail(&tail, host->name), newest};
    }
    return known;
}

static int shared_list_checkpoints(struct cmdlog *base, uint64_t until, struct cmdlog_known_hosts **ret_hosts)
{
    int r = lock_reachable(base, until);
    if (r == 0)
        *ret_hosts = list_known(medium_of(base));
    pthread_mutex_unlock(&medium_of(base)->lock);
    return r;
}

static int shared_forget_host(struct cmdlog *base, struct slice name, uint64_t until)
{
    struct cmdlog_medium *medium = medium_of(base);
    int r = lock_reachable(base, until);
    struct medium_host *host = r == 0 ? find_host(medium, name) : NULL;
    if (host != NULL && host->life != 0)
        r = CMDLOG_EXISTS;
    for (int i = 0; r == 0 && host != NULL && i < 2; i++) {
        free_bytes(host->checkpoints[i].locator);
        host->checkpoints[i] = (struct cmdlog_checkpoint){0};
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int shared_trim(struct cmdlog *base, cmdlog_position before)
{
    struct cmdlog_medium *medium = medium_of(base);
    int r = lock_reachable(base, 0);
    if (r == 0) {
        struct cmdlog_known_hosts *known = list_known(medium);
        cmdlog_position bound = cmdlog_trim_bound(known, medium->catch_up, false) + 1;
        trim_to(medium, bound < before ? bound : before);
        mem_free(known);
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static void shared_space(struct cmdlog *base, struct cmdlog_space *ret_space)
{
    struct cmdlog_medium *medium = medium_of(base);
    pthread_mutex_lock(&medium->lock);
    *ret_space = (struct cmdlog_space){
        .exhausted = medium->full, .scarce = medium->full, .full = medium->full, .tight = medium->full};
    pthread_mutex_unlock(&medium->lock);
}

static int shared_halt(struct cmdlog *base, cmdlog_position position, uint64_t until)
{
    int r = lock_reachable(base, until);
    if (r == 0)
        memory_of(base)->host->halted = position;
    pthread_mutex_unlock(&medium_of(base)->lock);
    return r;
}

/* Collects the hosts that prevent a skip, with checkpoints (`applied`) or else. Requires: the lock. */
static bool find_obstacles(struct cmdlog_medium *medium, cmdlog_position position, bool applied, struct buf *names)
{
    REQUIRE(mutex_is_held(&medium->lock));
    list_for_each(link, &medium->hosts)
    {
        struct medium_host *host = list_entry(link, struct medium_host, link);
        bool known = host->checkpoints[0].locator.data != NULL || host->life != 0;
        if (!known || (applied ? host->checkpoints[0].position < position : host->halted == position))
            continue;
        buf_slice(names, host->name);
        buf_byte(names, ' ');
    }
    return names->len > 0;
}

/* Inserts in rising order. Requires: the lock; it is not skipped yet. */
static void add_skip(struct cmdlog_medium *medium, cmdlog_position position)
{
    REQUIRE(mutex_is_held(&medium->lock));
    REQUIRE(!cmdlog_is_skipped(medium->skips, position)); /* guarantee 16 */
    size_t count = medium->skips == NULL ? 0 : medium->skips->count, at = count;
    medium->skips =
        mem_realloc(medium->skips, sizeof *medium->skips + (count + 1) * sizeof medium->skips->positions[0]);
    for (; at > 0 && medium->skips->positions[at - 1] > position; at--)
        medium->skips->positions[at] = medium->skips->positions[at - 1];
    medium->skips->positions[at] = position;
    medium->skips->count = count + 1;
}

static int shared_skip(struct cmdlog *base, cmdlog_position position, uint64_t until,
                       struct cmdlog_skip_refusal *ret_refusal)
{
    struct cmdlog_medium *medium = medium_of(base);
    int r = lock_reachable(base, until);
    buf_clear(&ret_refusal->hosts);
    if (r == 0 && cmdlog_is_skipped(medium->skips, position))
        r = CMDLOG_EXISTS;
    if (r == 0) {
        ret_refusal->applied = find_obstacles(medium, position, true, &ret_refusal->hosts);
        if (ret_refusal->applied || find_obstacles(medium, position, false, &ret_refusal->hosts))
            r = CMDLOG_REFUSED;
    }
    if (r == 0)
        add_skip(medium, position);
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int shared_list_skips(struct cmdlog *base, uint64_t until, struct cmdlog_skips **ret_skips)
{
    struct cmdlog_medium *medium = medium_of(base);
    int r = lock_reachable(base, until);
    if (r == 0) {
        size_t count = medium->skips == NULL ? 0 : medium->skips->count;
        size_t size = sizeof **ret_skips + count * sizeof(*ret_skips)->positions[0];
        *ret_skips = mem_zalloc(size);
        if (count > 0)
            memcpy(*ret_skips, medium->skips, size);
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static const struct cmdlog_functions host_functions = {
    .append = shared_append,
    .sync = memory_sync,
    .head = memory_head,
    .follow = memory_follow,
    .next = memory_next,
    .unfollow = memory_unfollow,
    .trim = shared_trim,
    .preallocate = memory_shrink,
    .shrink = memory_shrink,
    .put_checkpoint = memory_put_checkpoint,
    .get_checkpoint = memory_get_checkpoint,
    .seal = memory_shrink,
    .close = memory_close,
};

static const struct cmdlog_shared_functions shared = {
    .join = shared_join,
    .leave = shared_leave,
    .expel = shared_expel,
    .lease = shared_lease,
    .list_hosts = shared_list_hosts,
    .submit = shared_submit,
    .await_slot = shared_await_slot,
    .outcome = shared_answer,
    .await = shared_await,
    .interrupt = shared_interrupt,
    .cursor_position = shared_passed,
    .read_head = shared_ask_head,
    .read_genesis = shared_read_genesis,
    .create_genesis = shared_create_genesis,
    .list_checkpoints = shared_list_checkpoints,
    .forget_host = shared_forget_host,
    .halt = shared_halt,
    .skip = shared_skip,
    .list_skips = shared_list_skips,
    .space = shared_space,
};

struct cmdlog *cmdlog_memory_open_as(struct cmdlog_medium *medium, struct slice name)
{
    struct cmdlog *base = cmdlog_memory_open(medium);
    REQUIRE(cmdlog_is_host_name(name));
    pthread_mutex_lock(&medium->lock);
    base->functions = &host_functions;
    base->shared = &shared;
    memory_of(base)->host = host_of(medium, name);
    pthread_mutex_unlock(&medium->lock);
    return base;
}
