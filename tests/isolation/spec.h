/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation specs: actors and their statements, in a small file.
 *
 *     # The title: condition, then outcome. Printed at the top of the trace.
 *     setup: index fs {"mappings":{"properties":{"path":{"type":"path"}}}}
 *     s1: lock X fs/1 wait 10s
 *     s1: unlock
 *     s2: put fs/1 {"v":2}
 *     end: get fs/1
 *     run: s1 s2 s1
 *
 * `setup` lines run first, in order. Every other name is an actor whose lines run in order, each when the one before it
 * is done. Without a `run` line every interleaving of the actors is run, with them only those. `end` lines run when all
 * actors are done. The statements are those of driver.c.
 */
#ifndef TL_TESTS_ISOLATION_SPEC_H
#define TL_TESTS_ISOLATION_SPEC_H

#include <stdbool.h>
#include <stddef.h>

enum { SPEC_ACTORS_MAX = 8, SPEC_LINES_MAX = 24, SPEC_RUNS_MAX = 40, SPEC_TITLE_MAX = 1000 };

struct spec_actor {
    char name[16];
    char *lines[SPEC_LINES_MAX];
    size_t line_count;
};

struct spec {
    char title[SPEC_TITLE_MAX]; /* with its line ends */
    struct spec_actor setup;
    struct spec_actor end;
    struct spec_actor actors[SPEC_ACTORS_MAX];
    size_t actor_count;
    char *runs[SPEC_RUNS_MAX];
    size_t run_count;
};

/* Reads a spec. Ends the process with a message when it cannot. */
void spec_read(const char *path, struct spec *ret_spec);
void spec_deinit(struct spec *spec);

/* Returns: the number of the actor of that name, or -1. */
int spec_actor(const struct spec *spec, const char *name);

#endif
