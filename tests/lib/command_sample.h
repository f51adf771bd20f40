/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sample commands of each row of commands.def with all their inputs, for tests of the byte form.
 *
 * One list names each input of a command, for filling and for printing. So an input that the byte
 * form loses is printed differently after decoding. The list is written from command.h,
 * independently of the byte form.
 */
#ifndef TL_TESTS_LIB_COMMAND_SAMPLE_H
#define TL_TESTS_LIB_COMMAND_SAMPLE_H

#include "base/buf.h"
#include "base/rand.h"
#include "core/command/command.h"

/*
 * Makes a command. `rng` NULL: each input has a distinct value; else inputs are random, and may be
 * absent.
 */
struct command *sample_command(enum command_type type, struct rng *rng);
/* Appends all inputs, one on a line. */
void sample_print(const struct command *command, struct buf *text);
/*
 * Returns: whether all inputs of two commands are equal; `first` (may be NULL) gets the first line
 *   that differs.
 */
bool sample_same(const struct command *a, const struct command *b, struct buf *first);

#endif
