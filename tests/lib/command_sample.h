/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of every row of commands.def with all their inputs, for tests of their form as bytes.
 *
 * One list names each input of a command. By it a command is filled and told, so a field that the form forgets is told otherwise
 * after it was decoded. It is written from command.h, not from the form.
 */
#ifndef TL_TESTS_LIB_COMMAND_SAMPLE_H
#define TL_TESTS_LIB_COMMAND_SAMPLE_H

#include "base/buf.h"
#include "base/rand.h"
#include "core/step/command.h"

/* Makes a command. `rng` NULL: every input is there and has a value of its own; else each is there or not, and odd. */
struct command *sample_command(enum command_type type, struct rng *rng);
/* Tells all inputs, a line each. */
void sample_print(const struct command *command, struct buf *text);
/* Returns: whether all inputs of two commands are the same; `first` (may be NULL) gets the first line that is not. */
bool sample_same(const struct command *a, const struct command *b, struct buf *first);

#endif
