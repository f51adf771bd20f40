/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: memory and names. */
#include "core/command/command.h"

#include "base/alloc.h"
#include "base/check.h"
#include "core/command/command_codec.h"
#include "store/view.h"

struct command *command_new(enum command_type type, enum dialect dialect)
{
    struct command *command = mem_zalloc(sizeof(*command));

    REQUIRE(type < COMMAND_TYPE_COUNT);
    REQUIRE(dialect < DIALECT_COUNT);
    command->type = type;
    command->dialect = dialect;
    command->version = COMMAND_CODEC_VERSION;
    command->arena = ARENA_INIT;
    return command;
}

void command_free(struct command *command)
{
    if (command == NULL)
        return;
    REQUIRE(command->type < COMMAND_TYPE_COUNT && !list_linked(&command->link));
    if (command->release_attached != NULL)
        command->release_attached(command);
    if (command->type == COMMAND_TXN_COMMIT)
        overlay_free(command->txn.retired);
    if (command->type == COMMAND_WRITE)
        overlay_free(command->write.retired);
    arena_deinit(&command->arena);
    mem_free(command);
}

void command_free_all(struct list *commands)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

size_t write_item_source_bytes(const struct write_item *item)
{
    const struct write_update *update = item->update;
    return item->source.len + (update == NULL ? 0 : update->doc.len + update->upsert.len + update->script_params.len);
}

size_t write_source_bytes(const struct write_command *write)
{
    size_t bytes = 0;

    for (size_t i = 0; i < write->item_count; i++)
        bytes += write_item_source_bytes(&write->items[i]);
    return bytes;
}

size_t write_result_bytes(const struct write_result *result)
{
    size_t bytes = result->source.len;
    const struct problem *problem = result->problem.type == PROBLEM_NONE ? NULL : &result->problem;

    for (; problem != NULL; problem = problem->caused_by)
        bytes += problem->reason.len + problem->details.len;
    return bytes;
}

const char *command_name(enum command_type type)
{
    static const char *const names[COMMAND_TYPE_COUNT] = {
#define X(symbol, name, code, member, flags, turns) [COMMAND_##symbol] = #name,
#include "core/command/commands.def"
#undef X
    };

    REQUIRE(type < COMMAND_TYPE_COUNT);
    return names[type];
}

bool command_is(enum command_type type, unsigned flags)
{
    static const unsigned rows[COMMAND_TYPE_COUNT] = {
#define X(symbol, name, code, member, flags, turns) [COMMAND_##symbol] = (flags),
#include "core/command/commands.def"
#undef X
    };

    REQUIRE(type < COMMAND_TYPE_COUNT);
    return (rows[type] & flags) != 0;
}
