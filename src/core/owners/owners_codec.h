/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes the owners for a checkpoint: declarations shared by the files that do.
 * core/README.md, "Checkpoints", has the format. One function does both directions; errors are in
 * the codec.
 */
#ifndef TL_CORE_OWNERS_CODEC_H
#define TL_CORE_OWNERS_CODEC_H

#include "core/session/deadline.h"
#include "core/command/section.h"

struct core;
struct command;
struct deferred;
struct session;
struct wait;

/* Whether a deadline is set, and then its time and number. When decoding, sets it in `all`. */
void codec_deadline(struct codec *codec, struct deadlines *all, struct deadline *deadline);
/*
 * A command as its encoded bytes.
 * Owns: the caller owns a decoded one; NULL: the codec has failed.
 */
void codec_command(struct codec *codec, struct command **command);

/* All deferred cleanup, in order of number. */
struct deferred_array {
    struct deferred **items;
    size_t count;
};
/* The state of reading sessions and waits from pieces. */
struct piece_reader {
    const struct deferred_array *deferred;
    struct arena *arena;
    struct slice *specs; /* in `arena`: of the lock requests that wait, in order; lock_codec.h */
    size_t spec_count;
    size_t spec_capacity;
};

/* owners_codec.c. A session in a piece: all but its lease. `session`: NULL when reading. */
void codec_session_in_piece(struct codec *codec, struct core *core, struct session *session);
/*
 * wait_codec.c. A wait in a piece, with the specs of its lock request if that waits. `wait`: NULL
 * when reading.
 */
void codec_wait_in_piece(struct codec *codec, struct core *core, struct wait *wait, struct piece_reader *reader);
/*
 * wait_codec.c. A wait with its command, without its lock request. A decoded one is in all lists of
 * owners; NULL: the sections have failed. `kept`: those already decoded; unused when encoding.
 */
void codec_wait(struct sections *sections, struct core *core, struct wait **wait, const struct deferred_array *kept);

#endif
