/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the log as bytes: commands that are applied one after the other, as one group, by whoever follows the log. README.md,
 * "Entries", has the form and what applying means.
 */
#ifndef TL_CORE_COMMAND_GROUP_H
#define TL_CORE_COMMAND_GROUP_H

#include "core/step/core.h"

/* 2: of a host in a cluster. One that has its log for itself writes version 1. */
enum { COMMAND_GROUP_VERSION = 2 };

/* What stands before the commands, and is said of all of them. */
struct command_group_header {
    uint16_t host;  /* who proposed it: whose connections, requests and attachments its commands speak of */
    tl_ts ts;       /* his clock: a command gets it, or the next timestamp that is free */
    uint64_t clock; /* what durations are measured by, in microseconds; 0: he does not say */
    /* In a cluster, whether it counts (README.md, "Hosts"). 0 and 0: it does, always. */
    uint64_t life;
    uint64_t number; /* rises in each life; not 0 with a life */
};

/* Reads the head alone. Returns: as command_group_decode(). */
int command_group_read_header(struct slice bytes, struct command_group_header *ret_head) TL_MUST_USE;

/* Begins an entry in an empty buffer, and adds a command to it. Requires: as command_encode(); ts is below TL_TS_MAX. */
void command_group_begin(const struct command_group_header *head, struct buf *buf);
void command_group_add(const struct command *command, struct buf *buf);

/*
 * Takes an entry apart: all of it is looked at before any command is made of it, so that none is applied of an entry that is damaged.
 * The commands are appended to `commands` by their links, in their order.
 * Returns: 0; COMMAND_CODEC_NEWER; TL_ERR_CORRUPT, with nothing in `commands`. Owns: the caller.
 */
int command_group_decode(struct slice bytes, struct command_group_header *ret_head, struct list *commands) TL_MUST_USE;

/* Returns: the timestamp of the next command of an entry. */
tl_ts command_group_next_ts(const struct command_group_header *head, const struct core *core);

/*
 * Applies an entry as a group; `commands` is empty afterwards. What completes is on effects->completed.
 * Returns: as core_step(); COMMAND_GROUP_IGNORED: it does not count, nothing was done, and `commands` are the caller's on.
 */
enum { COMMAND_GROUP_IGNORED = 1 };
int command_group_apply(struct core *core, const struct command_group_header *head, struct list *commands,
                struct effects *effects) TL_MUST_USE;

#endif
