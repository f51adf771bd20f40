/* SPDX-License-Identifier: Apache-2.0 */
/* The command that makes an index, for benches that step a core themselves. */
#ifndef TL_BENCH_INDEX_H
#define TL_BENCH_INDEX_H

#include "core/command/command.h"

/* Returns: a command that creates an index. Owns: the caller. */
static inline struct command *bench_index(const char *name, const char *uuid, const char *body)
{
    struct command *command = command_new(COMMAND_INDEX_CREATE, DIALECT_7);
    command->index.name = arena_copy(&command->arena, slice_from(name));
    command->index.uuid = arena_copy(&command->arena, slice_from(uuid));
    command->index.body = arena_copy(&command->arena, slice_from(body));
    return command;
}

#define BENCH_INDEX_UUID "0123456789abcdefghijkl"

#endif
