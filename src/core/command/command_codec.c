/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as bytes; see command_codec.h. Each member of the union in struct command has a function
 * codec_MEMBER(), which writes and reads it. A field added by a version is coded if codec->version
 * is at least that version, and else has its default.
 */
#include "core/command/command_codec.h"

#include "base/check.h"
#include "core/command/catalog_options.h"
#include "core/command/codec.h"
#include "core/command/limits.h"

/* --- Documents ---------------------------------------------------------------------------------------------------- */

static void codec_ready(struct codec *codec, struct update_ready *ready)
{
    ready->op = (enum update_op)codec_enum(codec, ready->op, UPDATE_OP_COUNT);
    codec_slice(codec, &ready->source);
    codec_number(codec, &ready->read_ts);
    codec_signed(codec, &ready->version);
    codec_signed(codec, &ready->seq_no);
    bool changes = ready->op == UPDATE_INDEX || ready->op == UPDATE_DELETE;
    bool has_source = ready->op == UPDATE_INDEX || ready->op == UPDATE_CREATE;
    codec_require(codec,
                  codec->bad || (!(changes && ready->read_ts == 0) && !(has_source && ready->source.data == NULL) &&
                                 !(ready->op == UPDATE_CREATE && ready->read_ts != 0)));
}

static void codec_update(struct codec *codec, const struct write_update **ret_update)
{
    struct write_update *update, copy = {0};

    if (codec_reads(codec)) {
        *ret_update = update = arena_zalloc(codec->arena, sizeof(*update));
    } else {
        copy = **ret_update;
        update = &copy;
    }
    bool *const flags[] = {&update->scripted_upsert, &update->doc_as_upsert, &update->detect_noop,
                           &update->want_source,     &update->single,        &update->script_postpones,
                           &update->ready.given};
    REQUIRE(codec_reads(codec) || codec->version >= 16 || (!update->script_postpones && !update->ready.given));
    codec_flags(codec, flags, codec->version >= 16 ? 7 : 5);
    codec_slice(codec, &update->doc);
    codec_slice(codec, &update->upsert);
    codec_slice(codec, &update->script_source);
    codec_slice(codec, &update->script_id);
    codec_slice(codec, &update->script_file);
    codec_slice(codec, &update->script_lang);
    codec_slice(codec, &update->script_params);
    codec_number(codec, &update->script_steps);
    if (update->ready.given)
        codec_ready(codec, &update->ready);
}

/* Returns: whether an item has any of the fields that most items lack. */
static bool item_is_rare(const struct write_item *item)
{
    return item->routing.data != NULL || item->lease.data != NULL || item->version != VERSION_ANY ||
           item->if_seq_no != SEQ_NO_ANY || item->if_primary_term != 0;
}

static void codec_rare(struct codec *codec, struct write_item *item)
{
    REQUIRE(codec_reads(codec) || item_is_rare(item));
    codec_slice(codec, &item->routing);
    codec_slice(codec, &item->lease);
    codec_signed(codec, &item->version);
    codec_signed(codec, &item->if_seq_no);
    codec_signed(codec, &item->if_primary_term);
    codec_require(codec, codec->bad || item_is_rare(item));
}

enum { ITEM_MIN = 7 }; /* op, version type, flags, and four slices */

static void codec_item(struct codec *codec, struct write_item *item)
{
    REQUIRE(codec_reads(codec) || item->only_session.len == 0); /* has no byte form: a replay would differ */
    bool rare = item_is_rare(item), dialect_5 = item->dialect == DIALECT_5;

    item->op = (enum write_op)codec_enum(codec, item->op, WRITE_OP_COUNT);
    item->version_type = (enum version_type)codec_enum(codec, item->version_type, VERSION_TYPE_COUNT);
    bool *const flags[] = {&item->require_alias, &item->id_generated, &rare, &dialect_5};
    codec_flags(codec, flags, codec->version >= 3 ? 4 : 3);
    item->dialect = dialect_5 ? DIALECT_5 : DIALECT_7;
    codec_slice(codec, &item->index);
    codec_slice(codec, &item->type);
    codec_slice(codec, &item->id);
    codec_slice(codec, &item->source);
    if (codec_reads(codec) && !rare) {
        item->version = VERSION_ANY;
        item->if_seq_no = SEQ_NO_ANY;
    } else if (rare) {
        codec_rare(codec, item);
    }
    if (item->op == WRITE_UPDATE)
        codec_update(codec, &item->update);
}

static void codec_items(struct codec *codec, struct write_item **items, size_t *count)
{
    *items = codec_array(codec, *items, count, sizeof(**items), ITEM_MIN);
    for (size_t i = 0; i < *count && !codec->bad; i++)
        codec_item(codec, &(*items)[i]);
}

static void codec_request(struct codec *codec, struct write_request *request)
{
    REQUIRE(codec_reads(codec) || request->id.len > 0); /* `named` says so */
    codec_bytes(codec, &request->id);
    codec_require(codec, codec->bad || request->id.len > 0);
    codec_number(codec, &request->hash);
    codec_number(codec, &request->part);
}

static void codec_write(struct codec *codec, struct write_command *write)
{
    bool named = write->request.id.len > 0;
    bool *const flags[] = {&write->atomic, &named, &write->request.divided};

    REQUIRE(!write->cleanup && (codec_reads(codec) || named || !write->request.divided));
    codec_flags(codec, flags, codec->version >= 22 ? 3 : codec->version >= 8 ? 2 : 1);
    codec_require(codec, named || !write->request.divided);
    if (named)
        codec_request(codec, &write->request);
    codec_items(codec, &write->items, &write->item_count);
}

/* --- Catalog ------------------------------------------------------------------------------------------------------ */

static void codec_index(struct codec *codec, struct index_command *index)
{
    bool *const flags[] = {&index->include_type_name, &index->close, &index->preserve_existing};

    codec_flags(codec, flags, 3);
    codec_slice(codec, &index->name);
    codec_slice(codec, &index->body);
    codec_slice(codec, &index->type);
    codec_slice(codec, &index->uuid);
}

static void codec_aliases(struct codec *codec, struct aliases_command *aliases)
{
    aliases->actions = codec_array(codec, aliases->actions, &aliases->action_count, sizeof(*aliases->actions), 4);
    for (size_t i = 0; i < aliases->action_count && !codec->bad; i++) {
        struct alias_action *action = &aliases->actions[i];
        action->op = (enum alias_op)codec_enum(codec, action->op, ALIAS_OP_COUNT);
        codec_slice(codec, &action->index);
        codec_slice(codec, &action->alias);
        codec_slice(codec, &action->body);
    }
}

static void codec_object(struct codec *codec, struct object_command *object)
{
    bool *const flags[] = {&object->create, &object->compiles};

    codec_flags(codec, flags, 2);
    codec_slice(codec, &object->name);
    codec_slice(codec, &object->body);
    codec_slice(codec, &object->lang);
    object->context = (enum script_context)codec_enum(codec, object->context, SCRIPT_CONTEXT_COUNT);
}

static void codec_file_scripts(struct codec *codec, struct file_scripts_command *files)
{
    files->scripts = codec_array(codec, files->scripts, &files->script_count, sizeof(*files->scripts), 3);
    for (size_t i = 0; i < files->script_count && !codec->bad; i++) {
        codec_slice(codec, &files->scripts[i].name);
        codec_slice(codec, &files->scripts[i].lang);
        codec_slice(codec, &files->scripts[i].source);
    }
}

/* --- Sessions, locks, transactions -------------------------------------------------------------------------------- */

static void codec_session(struct codec *codec, struct session_command *session)
{
    bool *const flags[] = {&session->force, &session->if_detached};
    codec_flags(codec, flags, codec->version >= 11 ? 2 : 1);
    codec_slice(codec, &session->id);
    codec_slice(codec, &session->name);
    codec_number(codec, &session->ttl_us);
    codec_number(codec, &session->attachment);
    codec_items(codec, &session->on_expire, &session->on_expire_count);
}

static void codec_options(struct codec *codec, const struct catalog_options **ret_options)
{
    struct catalog_options *options, copy = {0};

    if (codec_reads(codec)) {
        *ret_options = options = arena_zalloc(codec->arena, sizeof(*options));
    } else {
        copy = **ret_options;
        options = &copy;
    }
    bool *const flags[] = {&options->ignore_unavailable, &options->allow_no_indices, &options->expand_open,
                           &options->expand_closed,      &options->expand_hidden,    &options->allow_closed,
                           &options->refuse_aliases};
    codec_flags(codec, flags, 7);
}

static void codec_target(struct codec *codec, struct lock_target *target)
{
    REQUIRE(codec_reads(codec) || target->mode != LOCK_NONE);
    bool expression = target->expression != NULL;
    bool *const flags[] = {&target->script, &expression};

    target->mode = (enum lock_mode)codec_enum(codec, target->mode, LOCK_MODE_COUNT);
    codec_require(codec, codec->bad || target->mode != LOCK_NONE);
    codec_flags(codec, flags, 2);
    codec_slice(codec, &target->index);
    codec_slice(codec, &target->path);
    codec_slice(codec, &target->type);
    codec_slice(codec, &target->id);
    if (expression)
        codec_options(codec, &target->expression);
}

static void codec_targets(struct codec *codec, struct lock_target **targets, size_t *count)
{
    *targets = codec_array(codec, *targets, count, sizeof(**targets), 6);
    for (size_t i = 0; i < *count && !codec->bad; i++)
        codec_target(codec, &(*targets)[i]);
}

static void codec_lock(struct codec *codec, struct lock_command *lock)
{
    codec_targets(codec, &lock->targets, &lock->target_count);
}

static void codec_txn_lock(struct codec *codec, struct txn_lock_command *lock)
{
    codec_targets(codec, &lock->targets, &lock->target_count);
}

/* Before version 5 there were commands of query transactions, with a read timestamp. */
static void codec_txn(struct codec *codec, struct txn_command *txn)
{
    uint64_t read_ts = 0;

    txn->mode = (enum txn_mode)codec_enum(codec, txn->mode, TXN_MODE_COUNT);
    codec_bool(codec, &txn->force);
    codec_slice(codec, &txn->id);
    if (codec->version < 5)
        codec_number(codec, &read_ts);
    codec_number(codec, &txn->idle_us);
    codec_slice(codec, &txn->retry_of);
    if (codec->version >= 4)
        codec_bool(codec, &txn->of_host);
}

/* Commands of versions before `since` do everything in one step. */
static void codec_single_step(struct codec *codec, bool *single_step, unsigned since)
{
    REQUIRE(codec_reads(codec) || codec->version >= since); /* else it would be lost */
    if (codec->version >= since)
        codec_bool(codec, single_step);
    else
        *single_step = true;
}

static void codec_finding(struct codec *codec, struct path_finding *finding)
{
    codec_number(codec, &finding->ts);
    codec_slice(codec, &finding->document);
    codec_slice(codec, &finding->below);
}

static void codec_rename(struct codec *codec, struct rename_command *rename)
{
    codec_slice(codec, &rename->index);
    codec_slice(codec, &rename->from);
    codec_slice(codec, &rename->to);
    codec_signed(codec, &rename->if_seq_no);
    codec_signed(codec, &rename->if_primary_term);
    if (codec->version >= 8) {
        codec_finding(codec, &rename->found_from);
        codec_finding(codec, &rename->found_to);
    }
    codec_single_step(codec, &rename->single_step, 8);
}

static void codec_cancel(struct codec *codec, struct cancel_command *cancel)
{
    codec_number(codec, &cancel->request);
    codec_single_step(codec, &cancel->single_step, 6);
    REQUIRE(codec_reads(codec) || codec->version >= 15 || !cancel->keeps_places); /* else it would be lost */
    if (codec->version >= 15)
        codec_bool(codec, &cancel->keeps_places);
}

/* Not logged: code 0. */
static void codec_status(struct codec *codec, struct status_command *status)
{
    REQUIRE(codec_reads(codec)); /* command_encode() refuses it */
    (void)status;
    codec_require(codec, false);
}

static void codec_places(struct codec *codec, struct places_command *places)
{
    codec_slice(codec, &places->index);
    for (size_t i = 0; i < sizeof places->paths / sizeof *places->paths; i++)
        codec_slice(codec, &places->paths[i]);
}

static void codec_maintain(struct codec *codec, struct maintain_command *maintain)
{
    codec_number(codec, &maintain->history_low);
    codec_number(codec, &maintain->tombstones);
    codec_number(codec, &maintain->outcomes);
    codec_size(codec, &maintain->keys_max);
    maintain->stale = codec_array(codec, maintain->stale, &maintain->stale_count, sizeof(*maintain->stale), 1);
    for (size_t i = 0; i < maintain->stale_count && !codec->bad; i++)
        codec_bytes(codec, &maintain->stale[i]);
}

static void codec_feed(struct codec *codec, struct feed_command *feed)
{
    codec_bool(codec, &feed->off);
    codec_number(codec, &feed->cut);
}

static void codec_tick(struct codec *codec, struct tick_command *tick)
{
    codec_number(codec, &tick->barrier_clock);
}

static void codec_limits(struct codec *codec, struct limits_command *limits)
{
    codec_core_limits(codec, &limits->limits);
}

/*
 * A chain of an older version is not compared: commands of query transactions wrote then, and a
 * replay of them does not.
 */
static void codec_mark(struct codec *codec, struct mark_command *mark)
{
    codec_number(codec, &mark->ceiling);
    codec_bytes(codec, &mark->payload);
    if (codec->version >= 2)
        codec_number(codec, &mark->chain);
    if (codec->version < 5)
        mark->chain = 0;
    if (codec->version >= 6)
        codec_bytes(codec, &mark->build);
    else
        mark->build = SLICE_LIT("");
}

static void codec_restart(struct codec *codec, struct restart_command *restart)
{
    codec_single_step(codec, &restart->single_step, 4);
}

static void codec_tried(struct codec *codec, struct tried_command *tried)
{
    codec_slice(codec, &tried->session);
    codec_number(codec, &tried->deferred);
    codec_number(codec, &tried->action);
}

static void codec_skip(struct codec *codec, struct skip_command *skip)
{
    codec_number(codec, &skip->position);
}

static void codec_aside(struct codec *codec, struct aside_command *aside)
{
    codec_number(codec, &aside->number);
    codec_bool(codec, &aside->retry);
}

static void codec_join(struct codec *codec, struct join_command *join)
{
    codec_slice(codec, &join->name);
    codec_slice(codec, &join->group);
    codec_slice(codec, &join->address);
    codec_slice(codec, &join->build);
    codec_number(codec, &join->life);
    codec_core_limits(codec, &join->limits);
    codec_single_step(codec, &join->single_step, 6);
}

static void codec_gone(struct codec *codec, struct gone_command *gone)
{
    codec_slice(codec, &gone->name);
    codec_number(codec, &gone->life);
    codec_bool(codec, &gone->forget);
    codec_single_step(codec, &gone->single_step, 6);
}

static void codec_heartbeat(struct codec *codec, struct heartbeat_command *heartbeat)
{
    codec_number(codec, &heartbeat->barrier_clock);
    codec_number(codec, &heartbeat->low);
    codec_number(codec, &heartbeat->position);
    codec_number(codec, &heartbeat->chain);
}

/* --- The command -------------------------------------------------------------------------------------------------- */

static const unsigned codes[COMMAND_TYPE_COUNT] = {
#define X(symbol, name, code, member, flags, turns) [COMMAND_##symbol] = (code),
#include "core/command/commands.def"
#undef X
};

unsigned command_opcode(enum command_type type)
{
    REQUIRE(type < COMMAND_TYPE_COUNT);
    return codes[type];
}

static void codec_owner(struct codec *codec, struct command_owner *terms)
{
    codec_slice(codec, &terms->session);
    codec_slice(codec, &terms->transaction);
    codec_number(codec, &terms->fencing_token);
    codec_number(codec, &terms->timeout_us);
}

static void codec_inputs(struct codec *codec, struct command *command)
{
    REQUIRE(command->type < COMMAND_TYPE_COUNT);
    codec_number(codec, &command->request);
    if (command_is(command->type, COMMAND_OWNED))
        codec_owner(codec, &command->owner);
    switch (command->type) {
#define X(symbol, name, code, member, flags, turns) \
    case COMMAND_##symbol:                          \
        codec_##member(codec, &command->member);    \
        break;
#include "core/command/commands.def"
#undef X
    case COMMAND_TYPE_COUNT: break;
    }
}

/*
 * Before version 3, all items of a write had the command's dialect, and session actions had that of
 * 7.10.
 */
static void set_dialects(struct command *command)
{
    if (command->type != COMMAND_WRITE)
        return;
    for (size_t i = 0; i < command->write.item_count; i++)
        command->write.items[i].dialect = command->dialect;
}

/* Codes the header of a command. Returns: its type; COMMAND_TYPE_COUNT: unknown code. */
static enum command_type codec_head(struct codec *codec, enum command_type type, enum dialect *dialect)
{
    uint64_t code = type == COMMAND_TYPE_COUNT ? 0 : codes[type];

    codec_number(codec, &code);
    *dialect = (enum dialect)codec_enum(codec, *dialect, DIALECT_COUNT);
    for (int i = 0; i < COMMAND_TYPE_COUNT && !codec->bad; i++)
        if (codes[i] == code && code != 0)
            return (enum command_type)i;
    return COMMAND_TYPE_COUNT;
}

void command_encode(const struct command *command, struct buf *buf)
{
    struct codec codec = codec_to(buf, COMMAND_CODEC_VERSION);
    struct command copy = *command; /* the codec functions take pointers to non-const */
    uint8_t version = COMMAND_CODEC_VERSION;

    REQUIRE(command_opcode(command->type) != 0);
    codec_byte(&codec, &version);
    codec_head(&codec, command->type, &copy.dialect);
    codec_inputs(&codec, &copy);
}

enum command_type command_read_type(struct slice bytes)
{
    struct codec codec = codec_from(bytes, NULL);
    enum dialect dialect = DIALECT_7;
    uint8_t version;

    codec_byte(&codec, &version);
    if (codec.bad || version == 0 || version > COMMAND_CODEC_VERSION)
        return COMMAND_TYPE_COUNT;
    return codec_head(&codec, COMMAND_TYPE_COUNT, &dialect);
}

int command_decode(struct slice bytes, struct command **ret_command)
{
    struct codec codec = codec_from(bytes, NULL);
    enum dialect dialect = DIALECT_7;
    uint8_t version;

    codec_byte(&codec, &version);
    if (version > COMMAND_CODEC_VERSION)
        return COMMAND_CODEC_NEWER;
    if (version == 0)
        return tl_trace(TL_ERR_CORRUPT);
    enum command_type type = codec_head(&codec, COMMAND_TYPE_COUNT, &dialect);
    if (type == COMMAND_TYPE_COUNT)
        return tl_trace(TL_ERR_CORRUPT);
    struct command *command = command_new(type, dialect);
    codec.version = version;
    codec.arena = &command->arena;
    codec.in = arena_copy(&command->arena, codec.in);
    codec_inputs(&codec, command);
    if (!codec_done(&codec)) {
        command_free(command);
        return tl_trace(TL_ERR_CORRUPT);
    }
    if (version < 3)
        set_dialects(command);
    command->version = version;
    *ret_command = command;
    return 0;
}

void codec_command(struct codec *codec, struct command **command)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct slice slice = SLICE_NONE;

    if (codec_reads(codec)) {
        *command = NULL;
        codec_bytes(codec, &slice);
        codec_require(codec, codec->bad || command_decode(slice, command) == 0);
        return;
    }
    REQUIRE(*command != NULL);
    command_encode(*command, &bytes);
    slice = buf_as_slice(&bytes);
    codec_bytes(codec, &slice);
    buf_deinit(&bytes);
}
