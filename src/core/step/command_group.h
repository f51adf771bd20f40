/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command groups: commands of one host that the log has as one entry, and that are applied
 * together. README.md, "Command groups", describes their form and how they are applied.
 */
#ifndef TL_CORE_COMMAND_GROUP_H
#define TL_CORE_COMMAND_GROUP_H

#include "core/step/core.h"

/*
 * Versions 1 and 3: of a host with its own log; 2 and 4: of a host in a cluster. 3 and 4: with `memory_full`. Builds
 * that know 1 and 2 alone read all groups made with memory left.
 */
enum { COMMAND_GROUP_VERSION = 4 };

/* What all commands of a group have in common. */
struct command_group_header {
    /* The proposer, to which connections, requests and attachments of the commands belong */
    uint16_t host;
    tl_ts ts;       /* timestamp of the proposer; a command gets it, or the next free timestamp */
    uint64_t clock; /* microseconds by which durations are measured; 0: not given */
    /*
     * In a cluster they decide whether the group counts (README.md, "Hosts"). Both 0: it always
     * counts.
     */
    uint64_t life;
    uint64_t number; /* increases within a life; not 0 if `life` is not */
    /* The proposer had no memory for more indices and fields (README.md, "Memory as an input") */
    bool memory_full;
};

/* Reads only the header. Returns: as command_group_decode(). */
int command_group_read_header(struct slice bytes, struct command_group_header *ret_head) TL_MUST_USE;

/*
 * Read a group without decoding its commands, for callers that need the type of a command only:
 * decoding a poison entry may end the process (src/journal/README.md, "Poison entries").
 * command_group_open() gives the bytes of all commands, from which command_group_take() takes one
 * command after another, for command_read_type() and command_decode().
 * Returns: open: as command_group_decode(); take: false at the end, or if the rest is damaged.
 */
int command_group_open(struct slice bytes, struct slice *ret_commands) TL_MUST_USE;
bool command_group_take(struct slice *commands, struct slice *ret_command);

/*
 * Begin a group in an empty buffer, and append a command. Requires: as command_encode(); ts is
 * below TL_TS_MAX.
 */
void command_group_begin(const struct command_group_header *head, struct buf *buf);
void command_group_add(const struct command *command, struct buf *buf);

/*
 * Decodes a group completely, so that no command of a damaged group is applied. Appends its
 * commands to `commands` in order, by their links.
 * Returns: 0; COMMAND_CODEC_NEWER; TL_ERR_CORRUPT, with nothing in `commands`. Owns: the caller.
 */
int command_group_decode(struct slice bytes, struct command_group_header *ret_head, struct list *commands) TL_MUST_USE;

/* Returns: the timestamp of the next command of a group. */
tl_ts command_group_next_ts(const struct command_group_header *head, const struct core *core);

/*
 * Applies the commands of a group and empties `commands`. Completed commands are on
 * effects->completed.
 * Returns: as core_step(); COMMAND_GROUP_IGNORED: the group does not count, nothing was applied,
 *   and the caller still owns `commands`.
 */
enum { COMMAND_GROUP_IGNORED = 1 };
int command_group_apply(struct core *core, const struct command_group_header *head, struct list *commands,
                        struct effects *effects) TL_MUST_USE;

#endif
