/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes of memory a command may add to the catalog: indices, fields of mappings, settings, aliases, templates,
 * scripts. Never less than it adds, except for small additions; measured with the release build (growth_measure.c).
 */
#ifndef TL_API_REQUEST_GROWTH_MEASURE_H
#define TL_API_REQUEST_GROWTH_MEASURE_H

#include "api/request/growth_table.h"

struct arena;
struct catalog;
struct command;
struct write_command;

enum growth_effort {
    GROWTH_QUICK, /* what the indices may get at all: documents are not parsed */
    GROWTH_EXACT, /* nothing for commands that add nothing, also for those that will be refused */
};

/*
 * Measures what a command may add. *ret_scripted: all of it is added only if a script makes fields, which is not known.
 * The result is in `arena`; names are those of the catalog and the command.
 */
void growth_measure(const struct catalog *catalog, const struct command *command, enum growth_effort effort,
                    struct arena *arena, struct growth *ret_growth, bool *ret_scripted);
/* The same for a write. */
void growth_measure_write(const struct catalog *catalog, const struct write_command *write, enum growth_effort effort,
                          struct arena *arena, struct growth *ret_growth, bool *ret_scripted);

#endif
