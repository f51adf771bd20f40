/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte form of commands, in the command log. README.md, "Commands as bytes", describes it.
 *
 * It has all inputs of the submitter. It lacks results, values that only the core may set
 * (`cleanup`, `only_session`), what the submitter computed in advance (`prefetch`, `parsed`), and
 * timestamp and clock, which the command group has.
 */
#ifndef TL_CORE_COMMAND_CODEC_H
#define TL_CORE_COMMAND_CODEC_H

#include "base/buf.h"
#include "core/command/command.h"

struct codec;

/*
 * Version 2 added the chain of a MARK; 3 the dialect of each item of a write; 4 transactions of a
 * host, and RESTART and MACHINE_LOST in several steps. 5 removed query transactions. 6 added the
 * build of a MARK. 7 changed what the creation of an index records (README.md). 8 added
 * PLACES_WATCH, findings of a RENAME, and the request of a write. 9 changed how steps are bounded
 * and how a created index reads dates, 10 and 11 again how steps are bounded (README.md). 11 also
 * added the condition of a SESSION_CLOSE. 12 and 13 changed how atomic writes are bounded,
 * 14 how requests of many locks are, 15 those of deep directories and commits (README.md); 15 also added
 * which waits a CANCEL keeps. 16 changed how commits and locks are bounded, and
 * added what the script of an update returned outside of the core. 17 and 18 changed how locks are
 * bounded, and 18 how scripts format numbers and parse dates. 19 changed which waits keep their places, and
 * again how scripts format big numbers and parse dates. 20 to 26 changed again how steps are
 * bounded; 22 also added whether the request of a write is divided.
 */
enum { COMMAND_CODEC_VERSION = 26 };

enum {
    COMMAND_CODEC_NEWER = 1, /* its version is newer than this build knows */
};

/* Returns: the permanent number of a command type in the log; 0: the type is never logged. */
unsigned command_opcode(enum command_type type);

/* Appends a command to `buf`. Requires: command_opcode() of its type is not 0. */
void command_encode(const struct command *command, struct buf *buf);

/*
 * Reads the type of an encoded command, and nothing else of it. Returns: the type;
 * COMMAND_TYPE_COUNT: the command is damaged or of a newer version.
 */
enum command_type command_read_type(struct slice bytes);

/*
 * Makes a command from bytes, which it copies. Encoding the command gives the same bytes in the
 * newest version.
 * Returns: 0; COMMAND_CODEC_NEWER; TL_ERR_CORRUPT. Owns: the caller; command_free().
 */
int command_decode(struct slice bytes, struct command **ret_command) TL_MUST_USE;

/*
 * Codes a command, in its own byte form, as a part of other state.
 * Requires: when writing, there is one.
 * Owns: the caller owns a decoded one; NULL: the codec has failed.
 */
void codec_command(struct codec *codec, struct command **command);

#endif
