/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing ahead; see parse_ahead.h. */
#include "core/documents/parse_ahead.h"

#include "base/check.h"
#include "core/command/command.h"
#include "json/json.h"

/* Returns: the source that an item writes, as far as it is known before its step; data NULL: it is not. */
static struct slice source_of(const struct write_item *item)
{
    const struct update_ready *ready = item->update == NULL ? NULL : &item->update->ready;

    if (item->op == WRITE_INDEX || item->op == WRITE_CREATE)
        return item->source;
    if (ready == NULL || !ready->given || (ready->op != UPDATE_INDEX && ready->op != UPDATE_CREATE))
        return SLICE_NONE;
    return ready->source;
}

void write_item_parse(struct write_item *item, struct arena *arena)
{
    struct slice source = source_of(item);
    if (source.data == NULL)
        return;
    struct problem ignored;
    struct json_doc *parsed = arena_alloc(arena, sizeof *parsed);
    unsigned flags = JSON_DOCUMENT | (item->dialect == DIALECT_5 ? (unsigned)JSON_DUPLICATES : 0);

    if (json_parse(arena, source, item->dialect, flags, parsed, &ignored) == 0)
        item->parsed = parsed;
}

void command_parse_ahead(struct command *command)
{
    if (command->type != COMMAND_WRITE)
        return;
    for (size_t i = 0; i < command->write.item_count; i++)
        write_item_parse(&command->write.items[i], &command->arena);
}
