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

#include "../lib/arguments.h"
#include "../lib/codec_roundtrip.h"
#include "world.h"

struct options {
    uint64_t seeds;
    uint64_t from;
    int steps;
    uint64_t rocks;
    bool divides;
    bool traces;
};

static void live(const struct options *options, uint64_t seed)
{
    enum world_rocks rocks = WORLD_MEM_ONLY;

    if (options->rocks != 0 && seed % options->rocks == 0)
        rocks = seed % (options->rocks * 10) == 0 ? WORLD_ROCKS_ON_DISK : WORLD_ROCKS_IN_MEMORY;
    world_live(seed, options->steps, rocks, options->divides, options->traces);
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
    struct options options = {.from = 1, .rocks = 5};
    struct argument_numbers named = {.count = 0};
    uint64_t steps = 80, lived = 0;
    const char *file = NULL;
    const struct argument arguments[] = {{"--divided", .flag = &options.divides},
                                         {"--seeds", .number = &options.seeds},
                                         {"--from", .number = &options.from},
                                         {"--steps", .number = &steps},
                                         {"--rocks", .number = &options.rocks},
                                         {"--uncoded", .flag = &codec_roundtrip_off},
                                         {"--file", .text = &file},
                                         {"--trace", .flag = &options.traces},
                                         {"SEED ...", .numbers = &named},
                                         {0}};

    arguments_take(argc, argv, arguments);
    options.steps = (int)steps;
    if (file != NULL)
        lived += live_file(&options, file);
    for (size_t i = 0; i < named.count; i++, lived++)
        live(&options, named.items[i]);
    for (uint64_t seed = options.from; seed < options.from + options.seeds; seed++, lived++)
        live(&options, seed);
    printf("sim: %llu seeds, no difference\n", (unsigned long long)lived);
    return 0;
}
