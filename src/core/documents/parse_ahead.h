/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing ahead: the sources in commands are parsed before their step, by another thread than the one that applies
 * commands: by the thread that submits them, or by the one that reads them from the log.
 *
 * The parsed form (`write_item.parsed`) follows from the bytes and the dialect of the source alone. So it affects no
 * result, and no state can make it outdated.
 */
#ifndef TL_CORE_PARSE_AHEAD_H
#define TL_CORE_PARSE_AHEAD_H

struct arena;
struct command;
struct write_item;

/*
 * Parses the source that an item writes, its own or that of a ready update, into `arena`, which the command owns. One
 * that is no JSON is left to the core, which reports that. No effect if the item writes no source.
 */
void write_item_parse(struct write_item *item, struct arena *arena);

/*
 * Parses the sources of a command as its submitter would have; no effect if it has none.
 * Assumes: the core does not have the command yet.
 */
void command_parse_ahead(struct command *command);

#endif
