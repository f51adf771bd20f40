/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes the owners for a checkpoint: declarations shared by the files that do.
 * core/README.md, "Checkpoints", has the format. One function does both directions; errors are in
 * the codec. Calls have one direction:
 *
 *     owners_codec.c ─▶ piece_codec.c ─▶ session_codec.c, wait_codec.c
 */
#ifndef TL_CORE_OWNERS_CODEC_H
#define TL_CORE_OWNERS_CODEC_H

#include "core/command/section.h"

struct core;
struct command;
struct deferred;
struct session;
struct wait;

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

/*
 * session_codec.c. A session, which is NULL when reading. `in_piece`: without its lease, which each
 * keepalive changes.
 */
void codec_session_fields(struct codec *codec, struct core *core, struct session *session, bool in_piece);
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
