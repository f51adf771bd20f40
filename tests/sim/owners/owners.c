/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator of sessions, locks and transactions.
 *
 * usage: owners [--locks | --transactions | --renames] [--seeds N] [--from N] [--steps N] [--rocks
 * EVERY] [--file FILE] [--uncoded] [--trace] [SEED ...]
 *
 * Runs the given seeds, those of FILE (one a line, # begins a comment), or N seeds from --from on.
 * --locks generates sessions, locks and writes under locks; --transactions mostly transactions;
 * --renames all of these, renames, and ends of the process in an action. Every EVERYth seed runs on
 * RocksDB in memory instead of the in-memory store, every tenth of those on a disk. A failure
 * prints the seed and the step; the same seed fails again. Commands are encoded and decoded first,
 * except with --uncoded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/arguments.h"
#include "../../lib/codec_roundtrip.h"
#include "world.h"

struct options {
    struct world_options world;
    uint64_t seeds;
    uint64_t from;
    uint64_t rocks;
    uint64_t lived;
};

/* Seeds that are run a second time with another hash key, on which no result may depend. */
enum { TWICE_EVERY = 16 };

static void live(struct options *options, uint64_t seed)
{
    options->world.store = WORLD_MEM;
    if (options->rocks != 0 && seed % options->rocks == 0)
        options->world.store = seed % (options->rocks * 10) == 0 ? WORLD_ROCKS_ON_DISK : WORLD_ROCKS_IN_MEMORY;
    options->world.hash_key = 0;
    uint64_t chain = world_live(seed, &options->world);
    options->lived++;
    if (seed % TWICE_EVERY != 0)
        return;
    options->world.hash_key = UINT64_MAX / 3;
    if (world_live(seed, &options->world) == chain)
        return;
    fprintf(stderr, "owners: seed %llu: the state depends on the key that names are hashed with\n",
            (unsigned long long)seed);
    exit(1);
}

static void live_file(struct options *options, const char *name)
{
    FILE *file = fopen(name, "r");
    char line[256];

    if (file == NULL) {
        fprintf(stderr, "owners: cannot read %s\n", name);
        exit(1);
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        char *end;
        uint64_t seed = strtoull(line, &end, 10);
        if (end != line)
            live(options, seed);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    struct options options = {.from = 1};
    struct argument_numbers named = {.count = 0};
    uint64_t steps = 2000;
    bool locks = false, transactions = false, renames = false;
    const char *file = NULL;
    const struct argument arguments[] = {{"--locks", .flag = &locks},
                                         {"--transactions", .flag = &transactions},
                                         {"--renames", .flag = &renames},
                                         {"--seeds", .number = &options.seeds},
                                         {"--from", .number = &options.from},
                                         {"--steps", .number = &steps},
                                         {"--rocks", .number = &options.rocks},
                                         {"--file", .text = &file},
                                         {"--uncoded", .flag = &codec_roundtrip_off},
                                         {"--trace", .flag = &options.world.traces},
                                         {"SEED ...", .numbers = &named},
                                         {0}};

    arguments_take(argc, argv, arguments);
    if (locks + transactions + renames > 1)
        arguments_refuse(argv, arguments, "one of --locks, --transactions and --renames", NULL);
    if (locks || transactions || renames)
        options.world.profile = locks ? GEN_LOCKS : transactions ? GEN_TXNS : GEN_RENAMES;
    options.world.steps = (int)steps;
    if (file != NULL)
        live_file(&options, file);
    for (size_t i = 0; i < named.count; i++)
        live(&options, named.items[i]);
    for (uint64_t seed = options.from; seed < options.from + options.seeds; seed++)
        live(&options, seed);
    printf("owners: %llu seeds of %d steps, no difference\n", (unsigned long long)options.lived, options.world.steps);
    return 0;
}
