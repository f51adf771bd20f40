/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle of the tree simulator; see oracle.h. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool oracle_within(const char *path, const char *directory)
{
    size_t len = strlen(directory);

    return strncmp(path, directory, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

bool oracle_exists(const struct oracle *oracle, const char *path)
{
    for (int i = 0; i < ORACLE_DOCS; i++)
        if (oracle->docs[i].live && oracle_within(oracle->docs[i].path, path))
            return true;
    return false;
}

static void set_path(char *path, const char *beginning, const char *rest)
{
    char whole[ORACLE_PATH_MAX];

    if (snprintf(whole, sizeof whole, "%s%s", beginning, rest) >= (int)sizeof whole)
        abort();
    memcpy(path, whole, sizeof whole);
}

void oracle_rename(struct oracle *oracle, const char *from, const char *to, int64_t seq_no)
{
    for (int i = 0; i < ORACLE_DOCS; i++) {
        struct oracle_doc *doc = &oracle->docs[i];
        if (!doc->live || !oracle_within(doc->path, from))
            continue;
        set_path(doc->path, to, doc->path + strlen(from));
        doc->version++;
        doc->seq_no = seq_no;
    }
}

void oracle_random_path(struct rng *rng, bool plain, char *ret_path)
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

static bool add(struct oracle_locks *locks, int owner, int doc, const char *path)
{
    if (locks->count == ORACLE_LOCKS)
        return false;
    struct oracle_lock *lock = &locks->items[locks->count++];
    lock->owner = owner;
    lock->doc = doc;
    set_path(lock->path, path, "");
    return true;
}

bool oracle_lock_path(struct oracle_locks *locks, int owner, const char *path)
{
    for (int i = 0; i < locks->count; i++) {
        const struct oracle_lock *lock = &locks->items[i];
        bool meet = oracle_within(lock->path, path) || (lock->doc < 0 && oracle_within(path, lock->path));
        if (lock->owner != owner && meet)
            return false;
    }
    return add(locks, owner, -1, path);
}

bool oracle_lock_doc(struct oracle_locks *locks, int owner, int doc, const char *path)
{
    for (int i = 0; i < locks->count; i++) {
        const struct oracle_lock *lock = &locks->items[i];
        bool meet = lock->doc < 0 ? oracle_within(path, lock->path) : lock->doc == doc;
        if (lock->owner != owner && meet)
            return false;
    }
    return add(locks, owner, doc, path);
}

void oracle_unlock(struct oracle_locks *locks, int owner)
{
    int kept = 0;

    for (int i = 0; i < locks->count; i++)
        if (locks->items[i].owner != owner)
            locks->items[kept++] = locks->items[i];
    locks->count = kept;
}

bool oracle_locked(const struct oracle_locks *locks, const char *path)
{
    for (int i = 0; i < locks->count; i++)
        if (oracle_within(locks->items[i].path, path) || oracle_within(path, locks->items[i].path))
            return true;
    return false;
}
