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

/* Returns: whether the option uses the following argument. */
static bool set_option(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--trace") == 0)
        options->world.traces = true;
    else if (strcmp(name, "--uncoded") == 0)
        codec_roundtrip_off = true;
    else if (strcmp(name, "--locks") == 0)
        options->world.profile = GEN_LOCKS;
    else if (strcmp(name, "--transactions") == 0)
        options->world.profile = GEN_TXNS;
    else if (strcmp(name, "--renames") == 0)
        options->world.profile = GEN_RENAMES;
    else if (strcmp(name, "--seeds") == 0)
        return options->seeds = strtoull(value, NULL, 10), true;
    else if (strcmp(name, "--from") == 0)
        return options->from = strtoull(value, NULL, 10), true;
    else if (strcmp(name, "--steps") == 0)
        return options->world.steps = atoi(value), true;
    else if (strcmp(name, "--rocks") == 0)
        return options->rocks = strtoull(value, NULL, 10), true;
    else if (strcmp(name, "--file") == 0)
        return live_file(options, value), true;
    else
        live(options, strtoull(name, NULL, 10));
    return false;
}

int main(int argc, char **argv)
{
    struct options options = {.from = 1, .world.steps = 2000};

    for (int i = 1; i < argc; i++)
        i += set_option(&options, argv[i], i + 1 < argc ? argv[i + 1] : "0");
    for (uint64_t seed = options.from; seed < options.from + options.seeds; seed++)
        live(&options, seed);
    printf("owners: %llu seeds of %d steps, no difference\n", (unsigned long long)options.lived, options.world.steps);
    return 0;
}
