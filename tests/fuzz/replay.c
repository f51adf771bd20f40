/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of its corpus, in order of name: the corpus as an ordinary test.
 *
 *     NAME_replay FOLDER
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int run_file(const char *folder, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return 1;
    FILE *file = fopen(path, "rb");
    free(path);
    if (file == NULL)
        return 1;
    size_t len = 0, capacity = 1 << 16;
    uint8_t *bytes = malloc(capacity);
    size_t got;
    while ((got = fread(bytes + len, 1, capacity - len, file)) > 0) {
        len += got;
        if (len == capacity)
            bytes = realloc(bytes, capacity *= 2);
    }
    fclose(file);
    uint8_t *exact = malloc(len); /* of the very size, so that a sanitizer detects a read beyond it */
    memcpy(exact, bytes, len);
    free(bytes);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int count = argc == 2 ? scandir(argv[1], &entries, is_file, alphasort) : -1;
    if (count < 0) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed |= run_file(argv[1], entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    printf("%d inputs\n", count);
    return failed;
}
