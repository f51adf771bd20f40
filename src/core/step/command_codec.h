/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as bytes: what the log keeps, and what another host applies. README.md, "Commands as bytes", has the form.
 *
 * The form holds all that a submitter says, and nothing that he found out ahead (`seen`, `parsed`), nor what the core answers, nor
 * what it alone may say (`cleanup`, `left_by`), nor the two times, which are the entry's.
 */
#ifndef TL_CORE_COMMAND_CODEC_H
#define TL_CORE_COMMAND_CODEC_H

#include "base/buf.h"
#include "core/step/command.h"

/* 2: a MARK has its chain; 3: an item of a write has its dialect; 4: a transaction may be its host's own, RESTART and MACHINE_LOST are done in pieces. */
enum { COMMAND_CODEC_VERSION = 4 };

enum {
    COMMAND_CODEC_NEWER = 1, /* of a version that is not known here */
};

/* Returns: the number of a type in the log, for ever its own; 0: such commands are never there. */
unsigned command_opcode(enum command_type type);

/* Appends a command. Requires: command_opcode() of its type is not 0. */
void command_encode(const struct command *command, struct buf *buf);

/*
 * Makes a command of bytes, which it copies. A command that is returned is one that could have been encoded, and is encoded to
 * the same bytes again.
 * Returns: 0; COMMAND_CODEC_NEWER; TL_ERR_CORRUPT. Owns: the caller; command_free().
 */
int command_decode(struct slice bytes, struct command **ret_command) TL_MUST_USE;

#endif
