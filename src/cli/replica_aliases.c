/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aliases of a copy that the target does not take, and when they are tried again: since an index of
 * the target has the name, until it is gone; for another reason, at growing intervals, so that many
 * of them cost few requests.
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
    bool refused;    /* in the present update of the index */
    unsigned tries;  /* since it is refused for another reason */
    uint64_t due_us; /* of one that is not `named`: when it is tried again, by clock_boot_us() */
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

void untaken_begin_update(struct untaken *untaken, const char *source)
{
    struct untaken_index *index = map_get(&untaken->indices, slice_from(source));
    size_t at = 0;
    struct slice key;
    void *value;
    while (index != NULL && map_next(&index->aliases, &at, &key, &value))
        ((struct untaken_alias *)value)->refused = false;
}

void untaken_end_update(struct untaken *untaken, const char *source)
{
    forget_some(untaken, source, true);
}

void untaken_forget(struct untaken *untaken, const char *source)
{
    forget_some(untaken, source, false);
}

void untaken_add(struct untaken *untaken, const char *source, const char *index, const char *alias, bool named,
                 const char *reason)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct untaken_index *of = map_get(&untaken->indices, slice_from(source));
    write_key(index, alias, &key);
    if (of == NULL) {
        of = mem_zalloc(sizeof *of);
        of->aliases = MAP_INIT;
        (void)map_put(&untaken->indices, slice_from(source), of);
    }
    struct untaken_alias *known = map_get(&of->aliases, buf_as_slice(&key));
    if (known == NULL) {
        known = mem_zalloc(sizeof *known);
        known->index = copy_string(index);
        known->alias = copy_string(alias);
        (void)map_put(&of->aliases, buf_as_slice(&key), known);
    }
    known->tries = named ? 0 : known->tries + 1;
    unsigned doublings = known->tries > DOUBLINGS_MAX ? DOUBLINGS_MAX : known->tries > 0 ? known->tries - 1 : 0;
    known->due_us = clock_boot_us() + (RETRY_FIRST_US << doublings);
    known->named = named;
    known->refused = true;
    if (reason == NULL || (known->reason != NULL && strcmp(known->reason, reason) == 0))
        return;
    replica_print("the index %s is without its alias %s: %s", escape_terminal(index), escape_terminal(alias), reason);
    mem_free(known->reason);
    known->reason = copy_string(reason);
}

bool untaken_has(const struct untaken *untaken, const char *source, const char *index, const char *alias,
                 bool *ret_named)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    const struct untaken_index *of = map_get(&untaken->indices, slice_from(source));
    write_key(index, alias, &key);
    const struct untaken_alias *known = of == NULL ? NULL : map_get(&of->aliases, buf_as_slice(&key));
    *ret_named = known != NULL && known->named;
    return known != NULL;
}

void untaken_find_due(const struct untaken *untaken, yyjson_val *names, struct map *due)
{
    size_t at = 0;
    struct slice source, key;
    void *index, *value;
    while (map_next(&untaken->indices, &at, &source, &index)) {
        size_t alias_at = 0;
        while (map_next(&((struct untaken_index *)index)->aliases, &alias_at, &key, &value)) {
            const struct untaken_alias *alias = value;
            if (alias->named ? yyjson_obj_get(names, alias->alias) == NULL : alias->due_us <= clock_boot_us())
                (void)map_put(due, source, index);
        }
    }
}
