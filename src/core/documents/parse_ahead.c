/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing ahead; see parse_ahead.h. */
#include "core/documents/parse_ahead.h"

#include "base/check.h"
#include "core/command/command.h"
#include "json/json.h"

void write_item_parse(struct write_item *item, struct arena *arena)
{
    REQUIRE(item->source.data != NULL);
    struct problem ignored;
    struct json_doc *parsed = arena_alloc(arena, sizeof *parsed);
    unsigned flags = JSON_DOCUMENT | (item->dialect == DIALECT_5 ? (unsigned)JSON_DUPLICATES : 0);

    if (json_parse(arena, item->source, item->dialect, flags, parsed, &ignored) == 0)
        item->parsed = parsed;
}

void command_parse_ahead(struct command *command)
{
    if (command->type != COMMAND_WRITE)
        return;
    for (size_t i = 0; i < command->write.item_count; i++) {
        struct write_item *item = &command->write.items[i];
        if ((item->op == WRITE_INDEX || item->op == WRITE_CREATE) && item->source.data != NULL)
            write_item_parse(item, &command->arena);
    }
}
