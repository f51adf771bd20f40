/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspects of a copy: documents of requests whose outcome was not known at some time; see
 * replica.h, invariant 6.
 *
 * Lanes add them, the caller takes those whose time has come. A document that is added again waits
 * from then on. What cannot be found by the feed after a restart (there are too many, or they are
 * of a first copy) makes the whole copy suspect.
 */
#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mutex.h"
#include "cli/replica.h"

enum { SUSPECTS_MAX = 100000 };

struct suspect {
    struct list link;
    struct buf name;        /* under which it is in the map */
    uint64_t due_us;        /* by clock_boot_us() */
    tl_ts since;            /* its change comes after this place */
    uint64_t number;        /* when it was added last */
    struct replica_key key; /* in `bytes` */
    char bytes[];
};

struct suspects {
    pthread_mutex_t lock;
    uint64_t time_us;
    struct map by_name;
    struct list all; /* as they come due */
    uint64_t added;
    tl_ts place;
    bool whole;
    uint64_t whole_due_us;
};

struct suspects *suspects_new(uint64_t time_us)
{
    struct suspects *suspects = mem_zalloc(sizeof *suspects);
    *suspects = (struct suspects){.time_us = time_us, .by_name = MAP_INIT};
    list_init(&suspects->all);
    mutex_init(&suspects->lock);
    return suspects;
}

/* Requires: lock. */
static void drop_suspect(struct suspects *suspects, struct suspect *suspect)
{
    REQUIRE(mutex_is_held(&suspects->lock));
    (void)map_remove(&suspects->by_name, buf_as_slice(&suspect->name));
    list_remove(&suspect->link);
    buf_deinit(&suspect->name);
    mem_free(suspect);
}

void suspects_free(struct suspects *suspects)
{
    if (suspects == NULL)
        return;
    pthread_mutex_lock(&suspects->lock);
    while (!list_empty(&suspects->all))
        drop_suspect(suspects, container_of(suspects->all.next, struct suspect, link));
    pthread_mutex_unlock(&suspects->lock);
    map_deinit(&suspects->by_name);
    pthread_mutex_destroy(&suspects->lock);
    mem_free(suspects);
}

void suspects_set_place(struct suspects *suspects, tl_ts place)
{
    pthread_mutex_lock(&suspects->lock);
    suspects->place = place;
    pthread_mutex_unlock(&suspects->lock);
}

static struct slice copy_text(char **to, struct slice text)
{
    char *at = *to;
    if (text.data == NULL)
        return SLICE_NONE;
    memcpy(at, text.data, text.len);
    at[text.len] = '\0';
    *to += text.len + 1;
    return slice_make(at, text.len);
}

static struct suspect *make_suspect(const struct replica_key *key)
{
    struct suspect *suspect =
        mem_zalloc(sizeof *suspect + key->index.len + key->type.len + key->id.len + key->routing.len + 4);
    char *at = suspect->bytes;
    suspect->key = (struct replica_key){copy_text(&at, key->index), copy_text(&at, key->type), copy_text(&at, key->id),
                                        copy_text(&at, key->routing), .placed = true};
    return suspect;
}

/* Requires: lock. */
static void suspect_whole(struct suspects *suspects, uint64_t due_us)
{
    REQUIRE(mutex_is_held(&suspects->lock));
    suspects->whole = true;
    suspects->whole_due_us = due_us > suspects->whole_due_us ? due_us : suspects->whole_due_us;
}

/* Requires: lock. */
static void add_suspect(struct suspects *suspects, const struct replica_key *key, uint64_t due_us, tl_ts since)
{
    REQUIRE(mutex_is_held(&suspects->lock));
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
    const struct slice parts[] = {key->index, key->type, key->id, key->routing};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buf_printf(&name, "%zu:", parts[i].len);
        buf_slice(&name, parts[i]);
    }
    struct suspect *suspect = map_get(&suspects->by_name, buf_as_slice(&name));
    if (suspect != NULL) {
        list_remove(&suspect->link);
        since = suspect->since < since ? suspect->since : since;
        due_us = suspect->due_us > due_us ? suspect->due_us : due_us;
    } else if (suspects->by_name.count == SUSPECTS_MAX) {
        suspect_whole(suspects, due_us);
        return;
    } else {
        suspect = make_suspect(key);
        suspect->name = name;
        name = BUF_INIT(BUF_UNLIMITED);
        (void)map_put(&suspects->by_name, buf_as_slice(&suspect->name), suspect);
    }
    suspect->due_us = due_us;
    suspect->since = since;
    suspect->number = ++suspects->added;
    struct list *behind = suspects->all.prev; /* nearly always the last comes due last */
    while (behind != &suspects->all && container_of(behind, struct suspect, link)->due_us > due_us)
        behind = behind->prev;
    list_prepend(behind, &suspect->link);
}

void suspects_add(struct suspects *suspects, const struct replica_key *key)
{
    uint64_t due_us = clock_boot_us() + suspects->time_us;
    pthread_mutex_lock(&suspects->lock);
    if (suspects->place == 0) /* the feed will not name it again */
        suspect_whole(suspects, due_us);
    add_suspect(suspects, key, due_us, suspects->place);
    pthread_mutex_unlock(&suspects->lock);
}

void suspects_add_due(struct suspects *suspects, const struct replica_key *key)
{
    pthread_mutex_lock(&suspects->lock);
    add_suspect(suspects, key, clock_boot_us(), suspects->place > 0 ? suspects->place : TL_TS_MAX);
    pthread_mutex_unlock(&suspects->lock);
}

void suspects_add_inherited(struct suspects *suspects, const struct replica_key *key, tl_ts since, uint64_t left_us)
{
    pthread_mutex_lock(&suspects->lock);
    add_suspect(suspects, key, clock_boot_us() + (left_us < suspects->time_us ? left_us : suspects->time_us), since);
    pthread_mutex_unlock(&suspects->lock);
}

void suspects_add_whole(struct suspects *suspects, uint64_t left_us)
{
    pthread_mutex_lock(&suspects->lock);
    suspect_whole(suspects, clock_boot_us() + (left_us < suspects->time_us ? left_us : suspects->time_us));
    pthread_mutex_unlock(&suspects->lock);
}

size_t suspects_take_due(struct suspects *suspects, struct replica_key *ret_keys, size_t room, uint64_t *ret_number)
{
    size_t count = 0;
    uint64_t now = clock_boot_us();
    pthread_mutex_lock(&suspects->lock);
    *ret_number = suspects->added;
    for (struct list *link = suspects->all.next; link != &suspects->all && count < room; link = link->next) {
        const struct suspect *suspect = container_of(link, struct suspect, link);
        if (suspect->due_us > now)
            break;
        ret_keys[count++] = suspect->key;
    }
    pthread_mutex_unlock(&suspects->lock);
    return count;
}

void suspects_acquit(struct suspects *suspects, const struct replica_key *keys, size_t count, uint64_t number)
{
    pthread_mutex_lock(&suspects->lock);
    for (size_t i = 0; i < count; i++) {
        struct suspect *suspect = container_of(keys[i].index.data, struct suspect, bytes);
        if (suspect->number <= number)
            drop_suspect(suspects, suspect);
    }
    pthread_mutex_unlock(&suspects->lock);
}

bool suspects_take_whole(struct suspects *suspects)
{
    pthread_mutex_lock(&suspects->lock);
    bool due = suspects->whole && clock_boot_us() >= suspects->whole_due_us;
    pthread_mutex_unlock(&suspects->lock);
    return due;
}

void suspects_acquit_whole(struct suspects *suspects, uint64_t begun_us)
{
    pthread_mutex_lock(&suspects->lock);
    if (suspects->whole_due_us <= begun_us)
        suspects->whole = false;
    pthread_mutex_unlock(&suspects->lock);
}

struct suspects_state suspects_state(struct suspects *suspects)
{
    uint64_t now = clock_boot_us(), last_us = 0;
    struct suspects_state state = {.since = TL_TS_MAX};
    pthread_mutex_lock(&suspects->lock);
    for (struct list *link = suspects->all.next; link != &suspects->all; link = link->next) {
        const struct suspect *suspect = container_of(link, struct suspect, link);
        if (suspect->since > 0) /* else the whole copy is suspect */
            state.since = suspect->since < state.since ? suspect->since : state.since;
        last_us = suspect->due_us;
    }
    state.count = suspects->by_name.count;
    state.whole = suspects->whole;
    if (state.whole && suspects->whole_due_us > last_us)
        last_us = suspects->whole_due_us;
    pthread_mutex_unlock(&suspects->lock);
    state.left_us = last_us > now ? last_us - now : 0;
    return state;
}
