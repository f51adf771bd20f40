/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aliases of a copy that the target does not take, and when they are tried again, so that many of
 * them cost few requests:
 *
 * - An index of the target has the name: when the list of its indices no longer has it. If the
 *   target refuses the name then, the list lacks an index, and time decides from then on.
 * - Another reason: at the end of the present round, since it may be an index that was not updated
 *   yet (two indices cannot both be the write index of an alias); when another index that has the
 *   alias is dropped; then at growing intervals.
 */
#include <string.h>

#include "base/clock.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

enum { DOUBLINGS_MAX = 5 };

#define RETRY_FIRST_US (30 * TL_SECOND)

/* Those of an index of the source. */
struct untaken_index {
    struct map aliases; /* by "INDEX/ALIAS" in the target, struct untaken_alias */
};

struct untaken_alias {
    char *index; /* in the target */
    char *alias;
    char *reason;    /* as it was printed last */
    bool named;      /* an index of the target has its name */
    bool refused;    /* in the present update of the index, or left out of it */
    bool due;        /* found by untaken_find_due() */
    unsigned tries;  /* refusals that the list of the target's indices does not explain */
    uint64_t due_us; /* with `tries`: when it is tried again, by clock_boot_us() */
};

static char *copy_string(const char *text)
{
    return mem_strdup(text, strlen(text));
}

static void free_alias(struct untaken_alias *alias)
{
    mem_free(alias->index);
    mem_free(alias->alias);
    mem_free(alias->reason);
    mem_free(alias);
}

static void write_key(const char *index, const char *alias, struct buf *to)
{
    buf_printf(to, "%s/%s", index, alias); /* neither has a slash */
}

/*
 * Forgets the aliases of an index of the source, with `taken_only` those that were not refused in
 * its present update.
 */
static void forget_some(struct untaken *untaken, const char *source, bool taken_only)
{
    struct untaken_index *index = map_get(&untaken->indices, slice_from(source));
    struct map kept = MAP_INIT;
    size_t at = 0;
    struct slice key;
    void *value;
    while (index != NULL && map_next(&index->aliases, &at, &key, &value)) {
        struct untaken_alias *alias = value;
        if (taken_only && alias->refused)
            (void)map_put(&kept, key, alias);
        else
            free_alias(alias);
    }
    if (index == NULL)
        return;
    map_deinit(&index->aliases);
    index->aliases = kept;
    if (kept.count == 0) {
        map_deinit(&index->aliases);
        mem_free(map_remove(&untaken->indices, slice_from(source)));
    }
}

void untaken_deinit(struct untaken *untaken)
{
    size_t at = 0;
    struct slice key;
    void *value;
    while (map_next(&untaken->indices, &at, &key, &value)) {
        struct untaken_index *index = value;
        size_t alias_at = 0;
        while (map_next(&index->aliases, &alias_at, &key, &value))
            free_alias(value);
        map_deinit(&index->aliases);
        mem_free(index);
    }
    map_deinit(&untaken->indices);
}

/* With `due_only` those that are not due stay as they are. */
static void begin_some(struct untaken *untaken, const char *source, bool due_only)
{
    struct untaken_index *index = map_get(&untaken->indices, slice_from(source));
    size_t at = 0;
    struct slice key;
    void *value;
    while (index != NULL && map_next(&index->aliases, &at, &key, &value)) {
        struct untaken_alias *alias = value;
        alias->refused = due_only && !alias->due;
    }
}

void untaken_begin_update(struct untaken *untaken, const char *source)
{
    begin_some(untaken, source, false);
}

void untaken_begin_retry(struct untaken *untaken, const char *source)
{
    begin_some(untaken, source, true);
}

void untaken_end_update(struct untaken *untaken, const char *source)
{
    forget_some(untaken, source, true);
}

void untaken_forget(struct untaken *untaken, const char *source)
{
    forget_some(untaken, source, false);
}

/* Returns: how long after so many refusals an alias is tried again. */
static uint64_t pause_us(unsigned tries)
{
    unsigned doublings = tries < 2 ? 0 : tries - 2;
    return tries < 2 ? 0 : RETRY_FIRST_US << (doublings > DOUBLINGS_MAX ? DOUBLINGS_MAX : doublings);
}

static struct untaken_alias *find_alias(const struct untaken *untaken, const char *source, const char *index,
                                        const char *alias)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    const struct untaken_index *of = map_get(&untaken->indices, slice_from(source));
    write_key(index, alias, &key);
    return of == NULL ? NULL : map_get(&of->aliases, buf_as_slice(&key));
}

static struct untaken_alias *new_alias(struct untaken *untaken, const char *source, const char *index,
                                       const char *alias)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct untaken_index *of = map_get(&untaken->indices, slice_from(source));
    struct untaken_alias *added = mem_zalloc(sizeof *added);
    if (of == NULL) {
        of = mem_zalloc(sizeof *of);
        of->aliases = MAP_INIT;
        (void)map_put(&untaken->indices, slice_from(source), of);
    }
    added->index = copy_string(index);
    added->alias = copy_string(alias);
    write_key(index, alias, &key);
    (void)map_put(&of->aliases, buf_as_slice(&key), added);
    return added;
}

void untaken_add(struct untaken *untaken, const char *source, const char *index, const char *alias, bool named,
                 bool listed, const char *reason)
{
    struct untaken_alias *known = find_alias(untaken, source, index, alias);
    bool is_new = known == NULL;
    if (is_new)
        known = new_alias(untaken, source, index, alias);
    bool explained = named && (listed || !known->named); /* by a list that is read before the next attempt */
    known->tries = explained ? 0 : known->tries + 1;
    known->due_us = clock_boot_us() + pause_us(known->tries);
    known->named = named;
    known->refused = true;
    untaken->unsettled = untaken->unsettled || is_new || known->tries == 1;
    bool settled = named || known->tries > 1; /* else the end of the round may add it */
    if (!settled || reason == NULL || (known->reason != NULL && strcmp(known->reason, reason) == 0))
        return;
    replica_print("the index %s is without its alias %s: %s", escape_terminal(index), escape_terminal(alias), reason);
    mem_free(known->reason);
    known->reason = copy_string(reason);
}

void untaken_make_due(struct untaken *untaken, const char *name)
{
    size_t at = 0;
    struct slice key;
    void *index, *value;
    while (map_next(&untaken->indices, &at, &key, &index)) {
        size_t alias_at = 0;
        while (map_next(&((struct untaken_index *)index)->aliases, &alias_at, &key, &value)) {
            struct untaken_alias *alias = value;
            if (alias->named || strcmp(alias->alias, name) != 0)
                continue;
            alias->tries = 0;
            untaken->unsettled = true;
        }
    }
}

bool untaken_has_name(const struct untaken *untaken, const char *source, const char *index, const char *alias)
{
    const struct untaken_alias *known = find_alias(untaken, source, index, alias);
    return known != NULL && known->named;
}

bool untaken_is_due(const struct untaken *untaken, const char *source, const char *index, const char *alias)
{
    const struct untaken_alias *known = find_alias(untaken, source, index, alias);
    return known != NULL && known->due;
}

void untaken_find_due(struct untaken *untaken, const struct map *names, struct map *due)
{
    size_t at = 0;
    struct slice source, key;
    void *index, *value;
    uint64_t now = clock_boot_us();
    untaken->unsettled = false;
    while (map_next(&untaken->indices, &at, &source, &index)) {
        size_t alias_at = 0;
        while (map_next(&((struct untaken_index *)index)->aliases, &alias_at, &key, &value)) {
            struct untaken_alias *alias = value;
            bool listed = alias->named && map_get(names, slice_from(alias->alias)) != NULL;
            alias->due = !listed && (alias->tries == 0 || alias->due_us <= now);
            if (alias->due)
                (void)map_put(due, source, index);
        }
    }
}
