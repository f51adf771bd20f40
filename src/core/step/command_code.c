/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as bytes; see command_code.h. Each member of the union in struct command has one function, code_MEMBER(), which goes both
 * ways. A field that comes in a later version is coded where coder->version is that or more, and has its default elsewhere.
 */
#include "core/step/command_code.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/documents/update.h"
#include "core/owners/session.h"
#include "core/owners/txn.h"
#include "core/step/coder.h"
#include "core/step/limits.h"

/* --- Documents ---------------------------------------------------------------------------------------------------- */

static void code_update(struct coder *coder, const struct write_update **ret_update)
{
    struct write_update *update, copy = {0};

    if (coder_reads(coder)) {
        *ret_update = update = arena_zalloc(coder->arena, sizeof(*update));
    } else {
        copy = **ret_update;
        update = &copy;
    }
    bool *const flags[] = {&update->scripted_upsert, &update->doc_as_upsert, &update->detect_noop, &update->want_source,
                           &update->lone};
    code_flags(coder, flags, 5);
    code_slice(coder, &update->doc);
    code_slice(coder, &update->upsert);
    code_slice(coder, &update->script_source);
    code_slice(coder, &update->script_id);
    code_slice(coder, &update->script_file);
    code_slice(coder, &update->script_lang);
    code_slice(coder, &update->script_params);
    code_number(coder, &update->script_steps);
}

/* Whether an item has any of what most have not. */
static bool item_is_rare(const struct write_item *item)
{
    return item->routing.data != NULL || item->lease.data != NULL || item->version != VERSION_ANY ||
           item->if_seq_no != SEQ_NO_ANY || item->if_primary_term != 0;
}

static void code_rare(struct coder *coder, struct write_item *item)
{
    code_slice(coder, &item->routing);
    code_slice(coder, &item->lease);
    code_signed(coder, &item->version);
    code_signed(coder, &item->if_seq_no);
    code_signed(coder, &item->if_primary_term);
    coder_demand(coder, coder->bad || item_is_rare(item));
}

enum { ITEM_MIN = 7 }; /* op, version type, flags, and four slices */

static void code_item(struct coder *coder, struct write_item *item)
{
    bool rare = item_is_rare(item), dialect_5 = item->dialect == DIALECT_5;

    item->op = (enum write_op)code_enum(coder, item->op, WRITE_OP_COUNT);
    item->version_type = (enum version_type)code_enum(coder, item->version_type, VERSION_TYPE_COUNT);
    bool *const flags[] = {&item->require_alias, &item->id_generated, &rare, &dialect_5};
    code_flags(coder, flags, coder->version >= 3 ? 4 : 3);
    item->dialect = dialect_5 ? DIALECT_5 : DIALECT_7;
    code_slice(coder, &item->index);
    code_slice(coder, &item->type);
    code_slice(coder, &item->id);
    code_slice(coder, &item->source);
    if (coder_reads(coder) && !rare) {
        item->version = VERSION_ANY;
        item->if_seq_no = SEQ_NO_ANY;
    } else if (rare) {
        code_rare(coder, item);
    }
    if (item->op == WRITE_UPDATE)
        code_update(coder, &item->update);
}

static void code_items(struct coder *coder, struct write_item **items, size_t *count)
{
    *items = code_array(coder, *items, count, sizeof(**items), ITEM_MIN);
    for (size_t i = 0; i < *count && !coder->bad; i++)
        code_item(coder, &(*items)[i]);
}

static void code_write(struct coder *coder, struct write_command *write)
{
    REQUIRE(!write->cleanup);
    code_bool(coder, &write->atomic);
    code_items(coder, &write->items, &write->item_count);
}

/* --- Catalog ------------------------------------------------------------------------------------------------------ */

static void code_index(struct coder *coder, struct index_command *index)
{
    bool *const flags[] = {&index->include_type_name, &index->close, &index->preserve_existing};

    code_flags(coder, flags, 3);
    code_slice(coder, &index->name);
    code_slice(coder, &index->body);
    code_slice(coder, &index->type);
    code_slice(coder, &index->uuid);
}

static void code_aliases(struct coder *coder, struct aliases_command *aliases)
{
    aliases->actions = code_array(coder, aliases->actions, &aliases->action_count, sizeof(*aliases->actions), 4);
    for (size_t i = 0; i < aliases->action_count && !coder->bad; i++) {
        struct alias_action *action = &aliases->actions[i];
        action->op = (enum alias_op)code_enum(coder, action->op, ALIAS_OP_COUNT);
        code_slice(coder, &action->index);
        code_slice(coder, &action->alias);
        code_slice(coder, &action->body);
    }
}

static void code_object(struct coder *coder, struct object_command *object)
{
    bool *const flags[] = {&object->create, &object->compiles};

    code_flags(coder, flags, 2);
    code_slice(coder, &object->name);
    code_slice(coder, &object->body);
    code_slice(coder, &object->lang);
    object->context = (enum script_context)code_enum(coder, object->context, SCRIPT_CONTEXT_COUNT);
}

static void code_file_scripts(struct coder *coder, struct file_scripts_command *files)
{
    files->scripts = code_array(coder, files->scripts, &files->script_count, sizeof(*files->scripts), 3);
    for (size_t i = 0; i < files->script_count && !coder->bad; i++) {
        code_slice(coder, &files->scripts[i].name);
        code_slice(coder, &files->scripts[i].lang);
        code_slice(coder, &files->scripts[i].source);
    }
}

/* --- Sessions, locks, transactions -------------------------------------------------------------------------------- */

static void code_session(struct coder *coder, struct session_command *session)
{
    code_bool(coder, &session->force);
    code_slice(coder, &session->id);
    code_slice(coder, &session->name);
    code_number(coder, &session->ttl_us);
    code_number(coder, &session->attachment);
    code_items(coder, &session->on_expire, &session->on_expire_count);
}

static void code_options(struct coder *coder, const struct catalog_options **ret_options)
{
    struct catalog_options *options, copy = {0};

    if (coder_reads(coder)) {
        *ret_options = options = arena_zalloc(coder->arena, sizeof(*options));
    } else {
        copy = **ret_options;
        options = &copy;
    }
    bool *const flags[] = {&options->ignore_unavailable, &options->allow_no_indices, &options->expand_open,
                           &options->expand_closed,      &options->expand_hidden,    &options->allow_closed,
                           &options->refuse_aliases};
    code_flags(coder, flags, 7);
}

static void code_target(struct coder *coder, struct lock_target *target)
{
    bool expression = target->expression != NULL;
    bool *const flags[] = {&target->script, &expression};

    target->mode = (enum lock_mode)code_enum(coder, target->mode, LOCK_MODE_COUNT);
    coder_demand(coder, coder->bad || target->mode != LOCK_NONE);
    code_flags(coder, flags, 2);
    code_slice(coder, &target->index);
    code_slice(coder, &target->path);
    code_slice(coder, &target->type);
    code_slice(coder, &target->id);
    if (expression)
        code_options(coder, &target->expression);
}

static void code_targets(struct coder *coder, struct lock_target **targets, size_t *count)
{
    *targets = code_array(coder, *targets, count, sizeof(**targets), 6);
    for (size_t i = 0; i < *count && !coder->bad; i++)
        code_target(coder, &(*targets)[i]);
}

static void code_lock(struct coder *coder, struct lock_command *lock)
{
    code_targets(coder, &lock->targets, &lock->target_count);
}

static void code_txn_lock(struct coder *coder, struct txn_lock_command *lock)
{
    code_targets(coder, &lock->targets, &lock->target_count);
}

static void code_txn(struct coder *coder, struct txn_command *txn)
{
    txn->mode = (enum txn_mode)code_enum(coder, txn->mode, TXN_MODE_COUNT);
    code_bool(coder, &txn->force);
    code_slice(coder, &txn->id);
    code_number(coder, &txn->read_ts);
    code_number(coder, &txn->idle_us);
    code_slice(coder, &txn->retry_of);
    if (coder->version >= 4)
        code_bool(coder, &txn->of_host);
}

static void code_rename(struct coder *coder, struct rename_command *rename)
{
    code_slice(coder, &rename->index);
    code_slice(coder, &rename->from);
    code_slice(coder, &rename->to);
    code_signed(coder, &rename->if_seq_no);
    code_signed(coder, &rename->if_primary_term);
}

static void code_cancel(struct coder *coder, struct cancel_command *cancel)
{
    code_number(coder, &cancel->request);
}

/* Never in the log: code 0. */
static void code_status(struct coder *coder, struct status_command *status)
{
    (void)status;
    coder_demand(coder, false);
}

static void code_places(struct coder *coder, struct places_command *places)
{
    (void)places;
    coder_demand(coder, false);
}

static void code_maintain(struct coder *coder, struct maintain_command *maintain)
{
    code_number(coder, &maintain->cut_off);
    code_number(coder, &maintain->tombstones);
    code_number(coder, &maintain->outcomes);
    code_size(coder, &maintain->keys_max);
    maintain->stale = code_array(coder, maintain->stale, &maintain->stale_count, sizeof(*maintain->stale), 1);
    for (size_t i = 0; i < maintain->stale_count && !coder->bad; i++)
        code_bytes(coder, &maintain->stale[i]);
}

static void code_feed(struct coder *coder, struct feed_command *feed)
{
    code_bool(coder, &feed->off);
    code_number(coder, &feed->cut);
}

static void code_tick(struct coder *coder, struct tick_command *tick)
{
    code_number(coder, &tick->barrier_clock);
}

static void code_limits(struct coder *coder, struct limits_command *limits)
{
    code_core_limits(coder, &limits->limits);
}

static void code_mark(struct coder *coder, struct mark_command *mark)
{
    code_number(coder, &mark->mark);
    code_bytes(coder, &mark->kept);
    if (coder->version >= 2)
        code_number(coder, &mark->chain);
}

static void code_restart(struct coder *coder, struct restart_command *restart)
{
    if (coder->version >= 4)
        code_bool(coder, &restart->whole);
    else
        restart->whole = true;
}

static void code_tried(struct coder *coder, struct tried_command *tried)
{
    code_slice(coder, &tried->session);
    code_number(coder, &tried->kept);
    code_number(coder, &tried->action);
}

static void code_skip(struct coder *coder, struct skip_command *skip)
{
    code_number(coder, &skip->position);
}

static void code_aside(struct coder *coder, struct aside_command *aside)
{
    code_number(coder, &aside->number);
    code_bool(coder, &aside->again);
}

static void code_join(struct coder *coder, struct join_command *join)
{
    code_slice(coder, &join->name);
    code_slice(coder, &join->group);
    code_slice(coder, &join->address);
    code_slice(coder, &join->build);
    code_number(coder, &join->life);
    code_core_limits(coder, &join->limits);
}

static void code_gone(struct coder *coder, struct gone_command *gone)
{
    code_slice(coder, &gone->name);
    code_number(coder, &gone->life);
    code_bool(coder, &gone->forget);
}

static void code_heartbeat(struct coder *coder, struct heartbeat_command *heartbeat)
{
    code_number(coder, &heartbeat->barrier_clock);
    code_number(coder, &heartbeat->low);
    code_number(coder, &heartbeat->position);
    code_number(coder, &heartbeat->chain);
}

/* --- The command -------------------------------------------------------------------------------------------------- */

static const unsigned codes[COMMAND_TYPE_COUNT] = {
#define X(symbol, name, code, member, flags, turns) [COMMAND_##symbol] = (code),
#include "core/step/commands.def"
#undef X
};

unsigned command_code(enum command_type type)
{
    REQUIRE(type < COMMAND_TYPE_COUNT);
    return codes[type];
}

static void code_terms(struct coder *coder, struct owner_terms *terms)
{
    code_slice(coder, &terms->session);
    code_slice(coder, &terms->transaction);
    code_number(coder, &terms->fencing_token);
    code_number(coder, &terms->timeout_us);
}

static void code_inputs(struct coder *coder, struct command *command)
{
    code_number(coder, &command->request);
    if (command_is(command->type, COMMAND_OWNED))
        code_terms(coder, &command->terms);
    switch (command->type) {
#define X(symbol, name, code, member, flags, turns) \
    case COMMAND_##symbol:                          \
        code_##member(coder, &command->member);     \
        break;
#include "core/step/commands.def"
#undef X
    case COMMAND_TYPE_COUNT: break;
    }
}

/* Before version 3 all items of a write had the command's dialect; actions of a session ran as 7.10's. */
static void give_dialect(struct command *command)
{
    if (command->type != COMMAND_WRITE)
        return;
    for (size_t i = 0; i < command->write.item_count; i++)
        command->write.items[i].dialect = command->dialect;
}

/* What stands before the inputs. Returns: the type in the table of codes, COMMAND_TYPE_COUNT when there is none. */
static enum command_type code_head(struct coder *coder, enum command_type type, enum dialect *dialect)
{
    uint64_t code = type == COMMAND_TYPE_COUNT ? 0 : codes[type];

    code_number(coder, &code);
    *dialect = (enum dialect)code_enum(coder, *dialect, DIALECT_COUNT);
    for (int i = 0; i < COMMAND_TYPE_COUNT && !coder->bad; i++)
        if (codes[i] == code && code != 0)
            return (enum command_type)i;
    return COMMAND_TYPE_COUNT;
}

void command_encode(const struct command *command, struct buf *buf)
{
    struct coder coder = coder_to(buf, COMMAND_CODE_VERSION);
    struct command copy = *command; /* the coder's functions take what they could fill */
    uint8_t version = COMMAND_CODE_VERSION;

    REQUIRE(command_code(command->type) != 0);
    code_byte(&coder, &version);
    code_head(&coder, command->type, &copy.dialect);
    code_inputs(&coder, &copy);
}

int command_decode(struct slice bytes, struct command **ret_command)
{
    struct coder coder = coder_from(bytes, NULL);
    enum dialect dialect = DIALECT_7;
    uint8_t version;

    code_byte(&coder, &version);
    if (version > COMMAND_CODE_VERSION)
        return COMMAND_CODE_NEWER;
    if (version == 0)
        return tl_trace(TL_ERR_CORRUPT);
    enum command_type type = code_head(&coder, COMMAND_TYPE_COUNT, &dialect);
    if (type == COMMAND_TYPE_COUNT)
        return tl_trace(TL_ERR_CORRUPT);
    struct command *command = command_new(type, dialect);
    coder.version = version;
    coder.arena = &command->arena;
    coder.in = arena_copy(&command->arena, coder.in);
    code_inputs(&coder, command);
    if (!coder_done(&coder)) {
        command_free(command);
        return tl_trace(TL_ERR_CORRUPT);
    }
    if (version < 3)
        give_dialect(command);
    *ret_command = command;
    return 0;
}
