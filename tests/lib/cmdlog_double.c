/* SPDX-License-Identifier: Apache-2.0 */
/* A test double of the shared command log; see cmdlog_double.h. */
#include "cmdlog_double.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/types.h"

enum { HOSTS_MAX = 16, STEP = 3 /* positions have gaps */ };

struct stored_entry {
    struct slice bytes; /* allocated by mem_alloc */
    int host;
    uint64_t life;
    uint64_t number;
};

struct double_host {
    char *name;
    char *about;
    uint64_t life; /* 0: not a member */
    uint64_t numbers;
    cmdlog_position checkpoint;
};

struct double_medium {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct stored_entry *entries;
    size_t count, capacity;
    struct double_host hosts[HOSTS_MAX];
    int host_count;
    uint64_t lives, version;
    cmdlog_position skipped; /* 0: none */
    struct cmdlog_space space;
    size_t entry_max; /* 0: none */
    unsigned refused_checkpoints;
    char *genesis;
    size_t genesis_len;
    int open_count;
};

struct pending {
    struct slice bytes;
    uint64_t number;
};

struct cmdlog_double {
    struct cmdlog log;
    struct double_medium *medium;
    int host;
    uint64_t life; /* as this host knows it */
    bool cut, hold, stays;
    const char *from, *to; /* cmdlog_double_distort(); NULL: nothing */
    const char *fail_at;   /* cmdlog_double_fail_at(); NULL: nothing */
    enum double_fault fault;
    struct pending pending[CMDLOG_IN_FLIGHT_MAX];
    int pending_count;
    bool pause, paused;      /* the proposer; cmdlog_double_pause_proposer() */
    bool refuse_at_submit;   /* cmdlog_double_refuse_held() */
    uint64_t refused_newest; /* numbers up to this one that no entry has taken again were refused */
    unsigned busy; /* submissions that failed with CMDLOG_BUSY */
    bool patient, waiting;       /* cmdlog_double_set_patient() */
    struct cmdlog_hosts *frozen; /* cmdlog_double_freeze_hosts(); NULL: it is not; names are the medium's */
    unsigned frozen_lists;
};

struct double_cursor {
    struct cmdlog_cursor cursor;
    struct cmdlog_double *log;
    cmdlog_position next;
    cmdlog_position position;
    bool interrupted;
    char *copy;
};

static struct cmdlog_double *of(struct cmdlog *log)
{
    return (struct cmdlog_double *)log;
}

struct double_medium *double_medium_new(void)
{
    struct double_medium *medium = mem_zalloc(sizeof *medium);
    pthread_mutex_init(&medium->lock, NULL);
    pthread_cond_init(&medium->changed, NULL);
    medium->version = 1;
    return medium;
}

void double_medium_free(struct double_medium *medium)
{
    REQUIRE(medium->open_count == 0);
    for (size_t i = 0; i < medium->count; i++)
        mem_free((char *)(uintptr_t)medium->entries[i].bytes.data);
    for (int i = 0; i < medium->host_count; i++) {
        mem_free(medium->hosts[i].name);
        mem_free(medium->hosts[i].about);
    }
    mem_free(medium->entries);
    mem_free(medium->genesis);
    pthread_mutex_destroy(&medium->lock);
    pthread_cond_destroy(&medium->changed);
    mem_free(medium);
}

static cmdlog_position head_of(const struct double_medium *medium)
{
    return medium->count * STEP;
}

static void changed(struct double_medium *medium)
{
    pthread_cond_broadcast(&medium->changed);
}

static void store_entry(struct double_medium *medium, struct stored_entry entry)
{
    if (medium->count == medium->capacity) {
        medium->capacity = 2 * medium->capacity + 16;
        medium->entries = mem_realloc(medium->entries, medium->capacity * sizeof *medium->entries);
    }
    medium->entries[medium->count++] = entry;
    changed(medium);
}

/*
 * Moves pending entries to the medium, or discards them if the life has ended. Requires: the lock.
 */
static void process_pending(struct cmdlog_double *log)
{
    struct double_host *host = &log->medium->hosts[log->host];
    bool out = host->life != log->life || log->life == 0;
    if (!out && (log->cut || log->hold))
        return;
    for (int i = 0; i < log->pending_count; i++) {
        if (out)
            mem_free((char *)(uintptr_t)log->pending[i].bytes.data);
        else
            store_entry(log->medium,
                        (struct stored_entry){log->pending[i].bytes, log->host, log->life, log->pending[i].number});
    }
    log->pending_count = 0;
    changed(log->medium);
}

void cmdlog_double_cut(struct cmdlog *log, bool cut)
{
    pthread_mutex_lock(&of(log)->medium->lock);
    of(log)->cut = cut;
    process_pending(of(log));
    changed(of(log)->medium);
    pthread_mutex_unlock(&of(log)->medium->lock);
}

void cmdlog_double_hold(struct cmdlog *log, bool hold)
{
    pthread_mutex_lock(&of(log)->medium->lock);
    of(log)->hold = hold;
    process_pending(of(log));
    pthread_mutex_unlock(&of(log)->medium->lock);
}

void cmdlog_double_set_patient(struct cmdlog *base, bool patient)
{
    pthread_mutex_lock(&of(base)->medium->lock);
    of(base)->patient = patient;
    pthread_mutex_unlock(&of(base)->medium->lock);
}

void cmdlog_double_await_waiting(struct cmdlog *base)
{
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&log->medium->lock);
    while (!log->waiting)
        pthread_cond_wait(&log->medium->changed, &log->medium->lock);
    pthread_mutex_unlock(&log->medium->lock);
}

/* Requires: the lock. */
static void refuse_pending(struct cmdlog_double *log)
{
    struct double_host *host = &log->medium->hosts[log->host];
    log->refused_newest = host->numbers;
    for (int i = 0; i < log->pending_count; i++)
        mem_free((char *)(uintptr_t)log->pending[i].bytes.data);
    host->numbers -= (uint64_t)log->pending_count;
    log->pending_count = 0;
    log->refuse_at_submit = false;
    changed(log->medium);
}

void cmdlog_double_refuse_held(struct cmdlog *base, enum double_refusal when)
{
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&log->medium->lock);
    if (when == DOUBLE_REFUSE_NOW)
        refuse_pending(log);
    else
        log->refuse_at_submit = true;
    pthread_mutex_unlock(&log->medium->lock);
}

void cmdlog_double_await_refused(struct cmdlog *log)
{
    pthread_mutex_lock(&of(log)->medium->lock);
    while (of(log)->refuse_at_submit)
        pthread_cond_wait(&of(log)->medium->changed, &of(log)->medium->lock);
    pthread_mutex_unlock(&of(log)->medium->lock);
}

void cmdlog_double_distort(struct cmdlog *log, const char *from, const char *to)
{
    REQUIRE(from == NULL || strlen(from) == strlen(to));
    pthread_mutex_lock(&of(log)->medium->lock);
    of(log)->from = from;
    of(log)->to = to;
    pthread_mutex_unlock(&of(log)->medium->lock);
}

void cmdlog_double_fail_at(struct cmdlog *log, const char *text, enum double_fault fault)
{
    pthread_mutex_lock(&of(log)->medium->lock);
    of(log)->fail_at = text;
    of(log)->fault = fault;
    pthread_mutex_unlock(&of(log)->medium->lock);
}

/* Begins the fault that is to begin at this entry, which the host reads. Requires: the lock. */
static void begin_fault(struct cmdlog_double *log, const struct stored_entry *entry)
{
    if (log->fail_at == NULL || memmem(entry->bytes.data, entry->bytes.len, log->fail_at, strlen(log->fail_at)) == NULL)
        return;
    log->fail_at = NULL;
    log->cut = log->cut || log->fault == DOUBLE_CUT;
    log->hold = log->hold || log->fault == DOUBLE_HOLD;
}

/* Changes the bytes of an entry that a host reads. Requires: the lock. */
static void distort(const struct cmdlog_double *log, const struct stored_entry *entry, char *bytes)
{
    char *at = log->from == NULL || entry->host == log->host
                   ? NULL
                   : memmem(bytes, entry->bytes.len, log->from, strlen(log->from));
    if (at != NULL)
        memcpy(at, log->to, strlen(log->to));
}

void cmdlog_double_await_held(struct cmdlog *log, int count)
{
    struct double_medium *medium = of(log)->medium;
    pthread_mutex_lock(&medium->lock);
    while (of(log)->pending_count < count)
        pthread_cond_wait(&medium->changed, &medium->lock);
    pthread_mutex_unlock(&medium->lock);
}

void cmdlog_double_await_busy(struct cmdlog *base, unsigned count)
{
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&log->medium->lock);
    for (unsigned begin = log->busy; log->busy - begin < count;) /* further ones may come before this thread runs */
        pthread_cond_wait(&log->medium->changed, &log->medium->lock);
    pthread_mutex_unlock(&log->medium->lock);
}

void double_medium_end_life(struct double_medium *medium, const char *name)
{
    pthread_mutex_lock(&medium->lock);
    for (int i = 0; i < medium->host_count; i++)
        if (strcmp(medium->hosts[i].name, name) == 0)
            medium->hosts[i].life = 0;
    medium->version++;
    changed(medium);
    pthread_mutex_unlock(&medium->lock);
}

cmdlog_position double_medium_head(struct double_medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    cmdlog_position head = head_of(medium);
    pthread_mutex_unlock(&medium->lock);
    return head;
}

void double_medium_skip(struct double_medium *medium, cmdlog_position position)
{
    pthread_mutex_lock(&medium->lock);
    medium->skipped = position;
    pthread_mutex_unlock(&medium->lock);
}

void double_medium_set_space(struct double_medium *medium, struct cmdlog_space space)
{
    pthread_mutex_lock(&medium->lock);
    medium->space = space;
    pthread_mutex_unlock(&medium->lock);
}

void double_medium_set_entry_max(struct double_medium *medium, size_t bytes)
{
    pthread_mutex_lock(&medium->lock);
    medium->entry_max = bytes;
    pthread_mutex_unlock(&medium->lock);
}

void double_medium_repeat(struct double_medium *medium, cmdlog_position position)
{
    pthread_mutex_lock(&medium->lock);
    struct stored_entry entry = medium->entries[position / STEP - 1];
    entry.bytes = slice_make(mem_dup(entry.bytes.data, entry.bytes.len), entry.bytes.len);
    store_entry(medium, entry);
    pthread_mutex_unlock(&medium->lock);
}

/* --- log.h -------------------------------------------------------------------------------------------------------- */

static char *join_parts(const struct slice *parts, size_t count, size_t *ret_len)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    char *bytes = mem_alloc(len);
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes + at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    *ret_len = len;
    return bytes;
}

static size_t bytes_of(const struct slice *parts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += parts[i].len;
    return bytes;
}

/*
 * Waits for a change while the log is held. Returns: false: not until then; a patient log waits until it is no longer
 * held. Requires: the lock.
 */
static bool wait_for_change(struct cmdlog_double *log, uint64_t until)
{
    log->waiting = true;
    changed(log->medium);
    bool in_time = clock_wait(&log->medium->changed, &log->medium->lock, log->patient ? CMDLOG_FOREVER : until);
    log->waiting = false;
    return in_time;
}

static int double_submit(struct cmdlog *base, const struct slice *parts, size_t count, uint64_t until,
                         uint64_t *ret_number)
{
    struct cmdlog_double *log = of(base);
    struct double_medium *medium = log->medium;
    int r = 0;
    pthread_mutex_lock(&medium->lock);
    process_pending(log);
    if (log->refuse_at_submit)
        refuse_pending(log);
    while (log->pending_count == CMDLOG_IN_FLIGHT_MAX && wait_for_change(log, until))
        ;
    if (log->life == 0 || (!log->cut && medium->hosts[log->host].life != log->life)) {
        log->life = log->cut ? log->life : 0;
        r = CMDLOG_FENCED;
    } else if (log->pending_count == CMDLOG_IN_FLIGHT_MAX) {
        r = CMDLOG_BUSY;
        log->busy++;
        changed(medium);
    } else if (medium->entry_max > 0 && bytes_of(parts, count) > medium->entry_max) {
        r = TL_ERR_NO_SPACE;
    } else {
        size_t len;
        char *bytes = join_parts(parts, count, &len);
        *ret_number = ++medium->hosts[log->host].numbers;
        log->pending[log->pending_count++] = (struct pending){slice_make(bytes, len), *ret_number};
        changed(medium);
        process_pending(log);
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int double_await_slot(struct cmdlog *base, uint64_t until)
{
    struct cmdlog_double *log = of(base);
    struct double_medium *medium = log->medium;
    bool in_time = true;
    pthread_mutex_lock(&medium->lock);
    process_pending(log);
    while (in_time && log->pending_count > 0)
        in_time = wait_for_change(log, until);
    int r = log->pending_count > 0 ? CMDLOG_BUSY : 0;
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int double_outcome(struct cmdlog *base, uint64_t number, uint64_t until, cmdlog_position *ret_position)
{
    struct cmdlog_double *log = of(base);
    (void)until;
    (void)ret_position;
    pthread_mutex_lock(&log->medium->lock);
    bool refused = number > log->medium->hosts[log->host].numbers && number <= log->refused_newest;
    pthread_mutex_unlock(&log->medium->lock);
    return refused ? TL_ERR_NO_SPACE : CMDLOG_BUSY;
}

static int double_append(struct cmdlog *base, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    (void)base;
    (void)parts;
    (void)count;
    (void)ret_position;
    return TL_ERR_STOPPED;
}

static int double_sync(struct cmdlog *base, cmdlog_position position)
{
    (void)base;
    (void)position;
    return 0;
}

static void double_head(struct cmdlog *base, struct cmdlog_head *ret_head)
{
    cmdlog_position head = double_medium_head(of(base)->medium);
    *ret_head = (struct cmdlog_head){1, head, head, false};
}

static int double_follow(struct cmdlog *base, cmdlog_position from, struct cmdlog_cursor **ret_cursor)
{
    struct double_cursor *cursor = mem_zalloc(sizeof *cursor);
    *cursor = (struct double_cursor){{base->functions, base->shared}, of(base), from, from - 1, false, NULL};
    *ret_cursor = &cursor->cursor;
    return 0;
}

static int double_next(struct cmdlog_cursor *base, struct cmdlog_entry *ret_entry)
{
    struct double_cursor *cursor = (struct double_cursor *)base;
    struct double_medium *medium = cursor->log->medium;
    int r = CMDLOG_END;
    pthread_mutex_lock(&medium->lock);
    size_t at = (size_t)(cursor->next + STEP - 1) / STEP;
    if (!cursor->log->cut && at >= 1 && at <= medium->count) {
        const struct stored_entry *entry = &medium->entries[at - 1];
        mem_free(cursor->copy);
        cursor->copy = mem_dup(entry->bytes.data, entry->bytes.len);
        distort(cursor->log, entry, cursor->copy);
        begin_fault(cursor->log, entry);
        *ret_entry = (struct cmdlog_entry){.position = at * STEP,
                                           .bytes = slice_make(cursor->copy, entry->bytes.len),
                                           .host = slice_from(medium->hosts[entry->host].name),
                                           .life = entry->life,
                                           .number = entry->number,
                                           .submitted = clock_wall_us()};
        cursor->next = at * STEP + 1;
        cursor->position = at * STEP;
        r = 0;
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static void double_unfollow(struct cmdlog_cursor *base)
{
    mem_free(((struct double_cursor *)base)->copy);
    mem_free(base);
}

static int double_await(struct cmdlog_cursor *base, uint64_t until)
{
    struct double_cursor *cursor = (struct double_cursor *)base;
    struct double_medium *medium = cursor->log->medium;
    pthread_mutex_lock(&medium->lock);
    bool in_time = true, there = false;
    while (in_time && !there && !cursor->interrupted) {
        there = !cursor->log->cut && (cursor->next + STEP - 1) / STEP <= medium->count;
        if (!there)
            in_time = clock_wait(&medium->changed, &medium->lock, until);
    }
    cursor->interrupted = false;
    pthread_mutex_unlock(&medium->lock);
    return there ? 0 : CMDLOG_END;
}

static void double_interrupt(struct cmdlog_cursor *base)
{
    struct double_cursor *cursor = (struct double_cursor *)base;
    pthread_mutex_lock(&cursor->log->medium->lock);
    cursor->interrupted = true;
    changed(cursor->log->medium);
    pthread_mutex_unlock(&cursor->log->medium->lock);
}

static cmdlog_position double_cursor_position(const struct cmdlog_cursor *base)
{
    return ((const struct double_cursor *)base)->position;
}

static int double_trim(struct cmdlog *base, cmdlog_position before)
{
    (void)base;
    (void)before;
    return 0;
}

static int double_noop(struct cmdlog *base)
{
    (void)base;
    return 0;
}

static int double_put_checkpoint(struct cmdlog *base, const struct cmdlog_checkpoint *checkpoint)
{
    struct double_medium *medium = of(base)->medium;
    pthread_mutex_lock(&medium->lock);
    bool exhausted = medium->space.exhausted;
    if (exhausted)
        medium->refused_checkpoints++;
    else
        medium->hosts[of(base)->host].checkpoint = checkpoint->position;
    pthread_mutex_unlock(&medium->lock);
    return exhausted ? TL_ERR_NO_SPACE : 0;
}

static int double_get_checkpoint(struct cmdlog *base, unsigned back, char *buffer,
                                 struct cmdlog_checkpoint *ret_checkpoint)
{
    pthread_mutex_lock(&of(base)->medium->lock);
    cmdlog_position position = of(base)->medium->hosts[of(base)->host].checkpoint;
    pthread_mutex_unlock(&of(base)->medium->lock);
    *ret_checkpoint = (struct cmdlog_checkpoint){.position = position, .locator = slice_make(buffer, 0)};
    return back > 0 || position == 0 ? CMDLOG_NOT_FOUND : 0;
}

static void double_close(struct cmdlog *base)
{
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&log->medium->lock);
    log->medium->open_count--;
    for (int i = 0; i < log->pending_count; i++)
        mem_free((char *)(uintptr_t)log->pending[i].bytes.data);
    pthread_mutex_unlock(&log->medium->lock);
    mem_free(log);
}

/* --- Lives -------------------------------------------------------------------------------------------------------- */

static int double_join(struct cmdlog *base, struct slice about, uint64_t until, uint64_t *ret_life)
{
    struct cmdlog_double *log = of(base);
    struct double_medium *medium = log->medium;
    struct double_host *host = &medium->hosts[log->host];
    int r = 0;
    (void)until;
    pthread_mutex_lock(&medium->lock);
    if (log->cut) {
        r = CMDLOG_UNREACHABLE;
    } else if (host->life != 0 && host->life != log->life) {
        r = CMDLOG_EXISTS;
    } else {
        process_pending(log);
        mem_free(host->about);
        host->about = mem_strdup(about.data, about.len);
        host->life = log->life = *ret_life = ++medium->lives;
        medium->version++;
        changed(medium);
    }
    pthread_mutex_unlock(&medium->lock);
    return r;
}

void cmdlog_double_stay(struct cmdlog *base)
{
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&log->medium->lock);
    log->stays = true;
    pthread_mutex_unlock(&log->medium->lock);
}

static int double_leave(struct cmdlog *base, uint64_t until)
{
    struct cmdlog_double *log = of(base);
    (void)until;
    pthread_mutex_lock(&log->medium->lock);
    bool cut = log->cut;
    if (!cut && !log->stays && log->medium->hosts[log->host].life == log->life) {
        log->medium->hosts[log->host].life = 0;
        log->medium->version++;
    }
    log->life = 0;
    changed(log->medium);
    pthread_mutex_unlock(&log->medium->lock);
    return cut ? CMDLOG_UNREACHABLE : 0;
}

static int double_expel(struct cmdlog *base, struct slice name, uint64_t life, uint64_t until)
{
    struct double_medium *medium = of(base)->medium;
    (void)until;
    pthread_mutex_lock(&medium->lock);
    bool cut = of(base)->cut;
    for (int i = 0; !cut && i < medium->host_count; i++)
        if (slice_is(name, medium->hosts[i].name) && medium->hosts[i].life == life) {
            medium->hosts[i].life = 0;
            medium->version++;
        }
    changed(medium);
    pthread_mutex_unlock(&medium->lock);
    return cut ? CMDLOG_UNREACHABLE : 0;
}

static void double_lease(struct cmdlog *base, struct cmdlog_lease *ret_lease)
{
    struct cmdlog_double *log = of(base);
    uint64_t now = clock_boot_us();
    pthread_mutex_lock(&log->medium->lock);
    if (!log->cut && log->medium->hosts[log->host].life != log->life)
        log->life = 0;
    *ret_lease = (struct cmdlog_lease){log->life, log->life == 0 ? 0 : log->cut ? now : now + TL_SECOND, now};
    pthread_mutex_unlock(&log->medium->lock);
}

static struct cmdlog_hosts *list_in(const struct double_medium *medium)
{
    struct cmdlog_hosts *hosts = mem_zalloc(sizeof *hosts + HOSTS_MAX * sizeof(struct cmdlog_host));
    hosts->version = medium->version;
    hosts->asked = clock_boot_us();
    for (int i = 0; i < medium->host_count; i++)
        if (medium->hosts[i].life != 0)
            hosts->hosts[hosts->count++] = (struct cmdlog_host){
                slice_from(medium->hosts[i].name), medium->hosts[i].life, slice_from(medium->hosts[i].about)};
    return hosts;
}

/* Requires: the list is frozen. */
static struct cmdlog_hosts *list_frozen(struct cmdlog_double *log)
{
    struct cmdlog_hosts *hosts = mem_alloc(sizeof *hosts + HOSTS_MAX * sizeof(struct cmdlog_host));
    memcpy(hosts, log->frozen, sizeof *hosts + HOSTS_MAX * sizeof(struct cmdlog_host));
    log->frozen_lists++;
    pthread_cond_broadcast(&log->medium->changed);
    return hosts;
}

void cmdlog_double_freeze_hosts(struct cmdlog *base, bool freeze)
{
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&log->medium->lock);
    mem_free(log->frozen);
    log->frozen = freeze ? list_in(log->medium) : NULL;
    log->frozen_lists = 0;
    log->medium->version++;
    pthread_cond_broadcast(&log->medium->changed);
    pthread_mutex_unlock(&log->medium->lock);
}

void cmdlog_double_await_lists(struct cmdlog *base, unsigned count)
{
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&log->medium->lock);
    while (log->frozen_lists < count)
        pthread_cond_wait(&log->medium->changed, &log->medium->lock);
    pthread_mutex_unlock(&log->medium->lock);
}

static int double_list_hosts(struct cmdlog *base, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts)
{
    struct cmdlog_double *log = of(base);
    struct double_medium *medium = log->medium;
    pthread_mutex_lock(&medium->lock);
    bool in_time = true;
    while (in_time && (log->cut || medium->version == version || (log->frozen != NULL && version != 0)))
        in_time = clock_wait(&medium->changed, &medium->lock, until);
    if (log->cut || medium->version == version || (log->frozen != NULL && version != 0)) {
        bool cut = log->cut;
        pthread_mutex_unlock(&medium->lock);
        return cut ? CMDLOG_UNREACHABLE : CMDLOG_END;
    }
    struct cmdlog_hosts *hosts = log->frozen != NULL ? list_frozen(log) : list_in(medium);
    pthread_mutex_unlock(&medium->lock);
    *ret_hosts = hosts;
    return 0;
}

static int double_read_head(struct cmdlog *base, uint64_t until, cmdlog_position *ret_position)
{
    struct cmdlog_double *log = of(base);
    (void)until;
    pthread_mutex_lock(&log->medium->lock);
    bool cut = log->cut;
    *ret_position = head_of(log->medium);
    pthread_mutex_unlock(&log->medium->lock);
    return cut ? CMDLOG_UNREACHABLE : 0;
}

static int double_forget(struct cmdlog *base, struct slice name, uint64_t until)
{
    struct double_medium *medium = of(base)->medium;
    int r = 0;
    (void)until;
    pthread_mutex_lock(&medium->lock);
    for (int i = 0; i < medium->host_count; i++)
        if (slice_is(name, medium->hosts[i].name) && medium->hosts[i].life != 0)
            r = CMDLOG_EXISTS;
    pthread_mutex_unlock(&medium->lock);
    return r;
}

static int double_list_skips(struct cmdlog *base, uint64_t until, struct cmdlog_skips **ret_skips)
{
    struct cmdlog_double *log = of(base);
    (void)until;
    struct cmdlog_skips *skips = mem_zalloc(sizeof *skips + sizeof skips->positions[0]);
    pthread_mutex_lock(&log->medium->lock);
    bool cut = log->cut;
    skips->positions[0] = log->medium->skipped;
    skips->count = log->medium->skipped != 0;
    pthread_mutex_unlock(&log->medium->lock);
    if (cut)
        mem_free(skips);
    else
        *ret_skips = skips;
    return cut ? CMDLOG_UNREACHABLE : 0;
}

unsigned double_medium_refused_checkpoints(struct double_medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    unsigned count = medium->refused_checkpoints;
    pthread_mutex_unlock(&medium->lock);
    return count;
}

void cmdlog_double_pause_proposer(struct cmdlog *log, bool pause)
{
    pthread_mutex_lock(&of(log)->medium->lock);
    of(log)->pause = pause;
    changed(of(log)->medium);
    pthread_mutex_unlock(&of(log)->medium->lock);
}

void cmdlog_double_await_paused(struct cmdlog *log)
{
    pthread_mutex_lock(&of(log)->medium->lock);
    while (!of(log)->paused)
        pthread_cond_wait(&of(log)->medium->changed, &of(log)->medium->lock);
    pthread_mutex_unlock(&of(log)->medium->lock);
}

static bool is_proposer(void)
{
    char name[16];
    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strcmp(name, "proposer") == 0;
}

static void double_space(struct cmdlog *base, struct cmdlog_space *ret_space)
{
    struct double_medium *medium = of(base)->medium;
    struct cmdlog_double *log = of(base);
    pthread_mutex_lock(&medium->lock);
    if (log->pause && is_proposer()) {
        log->paused = true;
        changed(medium);
        while (log->pause)
            pthread_cond_wait(&medium->changed, &medium->lock);
        log->paused = false;
    }
    *ret_space = medium->space;
    pthread_mutex_unlock(&medium->lock);
}

static const struct cmdlog_functions functions = {
    .append = double_append,
    .sync = double_sync,
    .head = double_head,
    .follow = double_follow,
    .next = double_next,
    .unfollow = double_unfollow,
    .trim = double_trim,
    .preallocate = double_noop,
    .shrink = double_noop,
    .put_checkpoint = double_put_checkpoint,
    .get_checkpoint = double_get_checkpoint,
    .seal = double_noop,
    .close = double_close,
};

static const struct cmdlog_shared_functions shared = {
    .join = double_join,
    .leave = double_leave,
    .expel = double_expel,
    .lease = double_lease,
    .list_hosts = double_list_hosts,
    .submit = double_submit,
    .await_slot = double_await_slot,
    .outcome = double_outcome,
    .await = double_await,
    .interrupt = double_interrupt,
    .cursor_position = double_cursor_position,
    .read_head = double_read_head,
    .forget_host = double_forget,
    .list_skips = double_list_skips,
    .space = double_space,
};

struct cmdlog *cmdlog_double_open(struct double_medium *medium, const char *name)
{
    struct cmdlog_double *log = mem_zalloc(sizeof *log);
    pthread_mutex_lock(&medium->lock);
    int at = 0;
    while (at < medium->host_count && strcmp(medium->hosts[at].name, name) != 0)
        at++;
    REQUIRE(at < HOSTS_MAX);
    if (at == medium->host_count)
        medium->hosts[medium->host_count++] =
            (struct double_host){.name = mem_strdup(name, strlen(name)), .about = mem_strdup("", 0)};
    *log = (struct cmdlog_double){.log = {&functions, &shared}, .medium = medium, .host = at};
    medium->open_count++;
    pthread_mutex_unlock(&medium->lock);
    return &log->log;
}
