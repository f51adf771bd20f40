/* SPDX-License-Identifier: Apache-2.0 */
/* The plain tree; see oracle.h. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool model_within(const char *path, const char *directory)
{
    size_t len = strlen(directory);

    return strncmp(path, directory, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

bool model_exists(const struct model *model, const char *path)
{
    for (int i = 0; i < MODEL_DOCS; i++)
        if (model->docs[i].live && model_within(model->docs[i].path, path))
            return true;
    return false;
}

static void set_path(char *path, const char *beginning, const char *rest)
{
    char whole[MODEL_PATH_MAX];

    if (snprintf(whole, sizeof whole, "%s%s", beginning, rest) >= (int)sizeof whole)
        abort();
    memcpy(path, whole, sizeof whole);
}

void model_rename(struct model *model, const char *from, const char *to, int64_t seq_no)
{
    for (int i = 0; i < MODEL_DOCS; i++) {
        struct model_doc *doc = &model->docs[i];
        if (!doc->live || !model_within(doc->path, from))
            continue;
        set_path(doc->path, to, doc->path + strlen(from));
        doc->version++;
        doc->seq_no = seq_no;
    }
}

void model_random_path(struct rng *rng, bool plain, char *ret_path)
{
    static const char *const names[] = {"a", "b", "c", "d", "ab", "a\xff\x01", "", ".", ".."};
    size_t names_count = plain ? 6 : sizeof names / sizeof *names, count = 1 + rng_below(rng, 4);
    char *at = ret_path;

    for (size_t i = 0; i < count; i++) {
        bool awkward = rng_below(rng, 8) == 0;
        const char *name = names[rng_below(rng, awkward ? names_count : 3)];
        if (i > 0 || rng_below(rng, 8) != 0)
            *at++ = '/';
        at += sprintf(at, "%s", name);
    }
    *at = '\0';
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static bool add(struct model_locks *locks, int owner, int doc, const char *path)
{
    if (locks->count == MODEL_LOCKS)
        return false;
    struct model_lock *lock = &locks->items[locks->count++];
    lock->owner = owner;
    lock->doc = doc;
    set_path(lock->path, path, "");
    return true;
}

bool model_lock_path(struct model_locks *locks, int owner, const char *path)
{
    for (int i = 0; i < locks->count; i++) {
        const struct model_lock *lock = &locks->items[i];
        bool meet = model_within(lock->path, path) || (lock->doc < 0 && model_within(path, lock->path));
        if (lock->owner != owner && meet)
            return false;
    }
    return add(locks, owner, -1, path);
}

bool model_lock_doc(struct model_locks *locks, int owner, int doc, const char *path)
{
    for (int i = 0; i < locks->count; i++) {
        const struct model_lock *lock = &locks->items[i];
        bool meet = lock->doc < 0 ? model_within(path, lock->path) : lock->doc == doc;
        if (lock->owner != owner && meet)
            return false;
    }
    return add(locks, owner, doc, path);
}

void model_unlock(struct model_locks *locks, int owner)
{
    int kept = 0;

    for (int i = 0; i < locks->count; i++)
        if (locks->items[i].owner != owner)
            locks->items[kept++] = locks->items[i];
    locks->count = kept;
}

bool model_locked(const struct model_locks *locks, const char *path)
{
    for (int i = 0; i < locks->count; i++)
        if (model_within(locks->items[i].path, path) || model_within(path, locks->items[i].path))
            return true;
    return false;
}
