/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write and read the owners for a checkpoint share. core/README.md, "Checkpoints", has the form. */
#ifndef TL_CORE_OWNERS_CODEC_H
#define TL_CORE_OWNERS_CODEC_H

#include "core/owners/deadline.h"
#include "core/step/section.h"

struct core;
struct command;
struct deferred;
struct wait;

/* A deadline of `all`, whether it is set and what its number is. */
void codec_deadline(struct codec *codec, struct deadlines *all, struct deadline *deadline);
/* A command by its bytes; one that is read is the caller's, NULL where the coder is bad. */
void codec_command(struct codec *codec, struct command **command);

/*
 * wait_codec.c. A wait with its command, but for its request. One that is read is in all lists, and NULL where the sections are bad.
 * `kept`: all that is kept, in order of number, of those that are read.
 */
struct deferred_array {
    struct deferred **items;
    size_t count;
};
void codec_wait(struct sections *sections, struct core *core, struct wait **wait, const struct deferred_array *kept);

#endif
