/* SPDX-License-Identifier: Apache-2.0 */
#include "dirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { DIRS_MAX = 4000, PATH_MAX_BYTES = 256 };

static struct dir {
    int above;
    int depth;
    char path[PATH_MAX_BYTES];
} dirs[DIRS_MAX];
static int count;

static int add(int above, const char *path)
{
    if (count == DIRS_MAX || strlen(path) >= PATH_MAX_BYTES) {
        fprintf(stderr, "owners: more directories, or longer paths, than there is room for\n");
        exit(1);
    }
    dirs[count] = (struct dir){.above = above, .depth = above < 0 ? 0 : dirs[above].depth + 1};
    snprintf(dirs[count].path, PATH_MAX_BYTES, "%s", path);
    return count++;
}

void dirs_begin(void)
{
    count = 0;
    add(-1, "/");
    add(0, "/a");
    add(1, "/a/x");
    add(0, "/b");
    add(2, "/a/x/deep");
}

const char *dirs_path(int dir)
{
    return dirs[dir].path;
}

int dirs_above(int dir)
{
    return dirs[dir].above;
}

int dirs_depth(int dir)
{
    return dirs[dir].depth;
}

int dirs_find(const char *path, size_t len)
{
    for (int i = 0; i < count; i++)
        if (strlen(dirs[i].path) == len && memcmp(dirs[i].path, path, len) == 0)
            return i;
    return -1;
}

int dirs_in(int above, const char *name)
{
    char path[2 * PATH_MAX_BYTES];

    int len = snprintf(path, sizeof(path), "%s/%s", above == 0 ? "" : dirs[above].path, name);
    int found = dirs_find(path, (size_t)len);
    return found >= 0 ? found : add(above, path);
}

bool dirs_within(int dir, int above)
{
    while (dir >= 0 && dir != above)
        dir = dirs[dir].above;
    return dir >= 0;
}

int dirs_moved(int dir, int from, int to)
{
    if (dir == from)
        return to;
    return dirs_in(dirs_moved(dirs[dir].above, from, to), strrchr(dirs[dir].path, '/') + 1);
}
