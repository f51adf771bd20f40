/* SPDX-License-Identifier: Apache-2.0 */
/* A store on RocksDB in a temporary directory, which a test opens as often as it likes. */
#ifndef TL_TESTS_LIB_ROCKS_FIXTURE_H
#define TL_TESTS_LIB_ROCKS_FIXTURE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/store.h"
#include "unit.h"

struct fixture {
    char directory[64];
    struct store *store; /* NULL: not open */
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    strcpy(f->directory, "/tmp/store_rocks_test.XXXXXX");
    *state = f;
    return mkdtemp(f->directory) == NULL;
}

static void remove_tree(const char *path)
{
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        char child[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            remove_tree(child);
        else
            unlink(child);
    }
    if (listing != NULL)
        closedir(listing);
    rmdir(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    remove_tree(f->directory);
    mem_free(f);
    return 0;
}

/* Closes the store if it is open, and opens it again. Returns: as store_open_rocks(). */
static int try_open(struct fixture *f, bool read_only, char **ret_reason)
{
    struct store_options options = {.directory = slice_from(f->directory), .read_only = read_only};
    store_close(f->store);
    f->store = NULL;
    return store_open_rocks(&options, &f->store, ret_reason);
}

static void must_open(struct fixture *f, bool read_only)
{
    char *reason = NULL;
    if (try_open(f, read_only, &reason) != 0)
        fail_msg("open: %s", reason);
}

#endif
