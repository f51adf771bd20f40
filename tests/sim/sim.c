/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator of documents and the catalog.
 *
 * usage: sim [--divided] [--seeds N] [--from N] [--steps N] [--rocks EVERY] [--uncoded] [--file FILE]
 * [--trace] [SEED ...]
 *
 * Lives through the seeds named, those of FILE (one a line, # begins a comment), or N of them from
 * --from on. Every EVERYth seed runs on RocksDB in memory in addition to the in-memory store, every
 * tenth of those on a disk. With --divided the core divides writes after the work of a few items.
 * Commands go through their form as bytes, but for --uncoded. A failure prints the seed and the
 * step; the same seed fails again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/codec_roundtrip.h"
#include "world.h"

struct options {
    uint64_t seeds;
    uint64_t from;
    int steps;
    uint64_t rocks;
    bool divides;
    bool tells;
};

static void live(const struct options *options, uint64_t seed)
{
    enum world_rocks rocks = WORLD_MEM_ONLY;

    if (options->rocks != 0 && seed % options->rocks == 0)
        rocks = seed % (options->rocks * 10) == 0 ? WORLD_ROCKS_ON_DISK : WORLD_ROCKS_IN_MEMORY;
    world_live(seed, options->steps, rocks, options->divides, options->tells);
}

static uint64_t live_file(const struct options *options, const char *name)
{
    FILE *file = fopen(name, "r");
    char line[256];
    uint64_t count = 0;

    if (file == NULL) {
        fprintf(stderr, "sim: cannot read %s\n", name);
        exit(1);
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        char *end;
        uint64_t seed = strtoull(line, &end, 10);
        if (end == line)
            continue;
        live(options, seed);
        count++;
    }
    fclose(file);
    return count;
}

int main(int argc, char **argv)
{
    struct options options = {.from = 1, .steps = 80, .rocks = 5};
    uint64_t lived = 0;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (strcmp(argv[i], "--trace") == 0) {
            options.tells = true;
        } else if (strcmp(argv[i], "--divided") == 0) {
            options.divides = true;
        } else if (strcmp(argv[i], "--uncoded") == 0) {
            codec_roundtrip_off = true;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            options.seeds = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--from") == 0) {
            options.from = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--steps") == 0) {
            options.steps = atoi(value);
            i++;
        } else if (strcmp(argv[i], "--rocks") == 0) {
            options.rocks = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--file") == 0) {
            lived += live_file(&options, value);
            i++;
        } else {
            live(&options, strtoull(argv[i], NULL, 10));
            lived++;
        }
    }
    for (uint64_t seed = options.from; seed < options.from + options.seeds; seed++, lived++)
        live(&options, seed);
    printf("sim: %llu seeds, no difference\n", (unsigned long long)lived);
    return 0;
}
