/* SPDX-License-Identifier: Apache-2.0 */
#include "gen.h"

#include "dirs.h"

#include <stdarg.h>
#include <stdio.h>

const char *const gen_index_names[OM_INDICES] = {"fs", "ix", "nx"};

static int below(struct gen *gen, int bound)
{
    return (int)rng_below(gen->rng, (uint64_t)bound);
}

static bool one_in(struct gen *gen, int n)
{
    return below(gen, n) == 0;
}

/* --- Owners ------------------------------------------------------------------------------------------------------- */

/* Returns: mostly an open session, else one that ended or never existed; 0: none was opened yet. */
static uint32_t some_session(struct gen *gen, const struct om *model)
{
    int slot = below(gen, OM_SESSIONS);

    if (gen->last_session > 0 && one_in(gen, 25))
        return 1 + (uint32_t)below(gen, (int)gen->last_session + 1);
    for (int i = 0; i < OM_SESSIONS; i++)
        if (model->sessions[(slot + i) % OM_SESSIONS].serial != 0)
            return model->sessions[(slot + i) % OM_SESSIONS].serial;
    return gen->last_session;
}

static uint32_t some_txn(struct gen *gen, const struct om *model)
{
    int slot = below(gen, OM_TXNS);

    if (gen->last_txn > 0 && one_in(gen, 25))
        return gen->last_txn - (uint32_t)below(gen, gen->last_txn < 6 ? (int)gen->last_txn : 6);
    for (int i = 0; i < OM_TXNS; i++)
        if (model->txns[(slot + i) % OM_TXNS].serial != 0)
            return model->txns[(slot + i) % OM_TXNS].serial;
    return gen->last_txn;
}

static uint64_t some_wait(struct gen *gen)
{
    switch (below(gen, 8)) {
    case 0: return 0;
    case 1: return 1 + (uint64_t)below(gen, 1000);
    case 2: return 10 * OM_SECOND;
    default: return (uint64_t)below(gen, 2000000);
    }
}

/* --- Targets ------------------------------------------------------------------------------------------------------ */

static uint8_t some_index(struct gen *gen)
{
    int roll = below(gen, 10);

    return (uint8_t)(roll < 6 ? 0 : roll < 8 ? 1 : OM_NX);
}

/*
 * Returns: mostly the directory of a document or one above it; else one of the initial directories.
 */
static int some_dir(struct gen *gen, const struct om *model, int index)
{
    int doc = below(gen, OM_DOCS);

    for (int i = 0; i < OM_DOCS && !one_in(gen, 4); i++) {
        const struct om_doc *found = &model->docs.at[index][(doc + i) % OM_DOCS];
        int dir = found->dir;
        if (!found->live || dir <= 0)
            continue;
        while (dirs_above(dir) > 0 && one_in(gen, 2))
            dir = dirs_above(dir);
        return dir;
    }
    return below(gen, OM_DIRS);
}

static struct om_thing some_thing(struct gen *gen, const struct om *model)
{
    int roll = below(gen, 30);
    struct om_thing thing = {OM_DOC, some_index(gen), (int16_t)below(gen, OM_DOCS)};

    if (roll == 0)
        return (struct om_thing){OM_ALL, 0, 0};
    if (roll < 3) {
        thing.kind = OM_INDEX;
        thing.number = 0;
    } else if (roll < 12) {
        thing.kind = OM_DIR;
        thing.number = (int16_t)(gen->profile == GEN_RENAMES ? some_dir(gen, model, thing.index) : below(gen, OM_DIRS));
    }
    return thing;
}

static void fill_specs(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->count = one_in(gen, 3) ? 1 + below(gen, 3) : 1;
    for (int i = 0; i < op->count; i++)
        op->specs[i] = (struct om_spec){some_thing(gen, model), (uint8_t)(OM_S + below(gen, 3)), false};
}

static void fill_item(struct gen *gen, const struct om *model, struct om_item *item)
{
    static const uint8_t actions[] = {OM_PUT,    OM_PUT,    OM_PUT,    OM_PUT,   OM_CREATE,
                                      OM_UPDATE, OM_UPDATE, OM_DELETE, OM_DELETE};

    *item = (struct om_item){
        .action = actions[below(gen, 9)], .index = some_index(gen), .doc = (uint8_t)below(gen, OM_DOCS)};
    item->dir = (int16_t)(one_in(gen, 3) ? -1 : 1 + below(gen, OM_DIRS - 1));
    if (gen->profile == GEN_RENAMES && item->dir >= 0 && one_in(gen, 3))
        item->dir = (int16_t)some_dir(gen, model, item->index);
    item->dir = item->dir == 0 ? 1 : item->dir;
    item->value = below(gen, 5);
    item->if_seq_no = -1;
    if (one_in(gen, 6)) {
        const struct om_doc *doc = &model->docs.at[item->index][item->doc];
        item->if_seq_no = doc->live && !one_in(gen, 3) ? doc->seq_no : below(gen, 10);
    }
    if (item->action == OM_CREATE && item->if_seq_no >= 0)
        item->if_seq_no = -1;
    if (item->action != OM_DELETE && one_in(gen, 4)) /* mostly of one session, so that it has many */
        item->lease =
            model->sessions[0].serial != 0 && !one_in(gen, 3) ? model->sessions[0].serial : some_session(gen, model);
}

static void fill_items(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->count = one_in(gen, 3) ? 1 + below(gen, OM_ITEMS) : 1;
    op->atomic = one_in(gen, 3);
    for (int i = 0; i < op->count; i++)
        fill_item(gen, model, &op->items[i]);
}

/* --- Operations --------------------------------------------------------------------------------------------------- */

static void gen_open(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->session = ++gen->last_session;
    op->us = OM_SECOND + (uint64_t)below(gen, 9000000);
    op->count = one_in(gen, gen->profile == GEN_LOCKS ? 3 : 1) ? 1 + below(gen, 2) : 0;
    for (int i = 0; i < op->count; i++)
        fill_item(gen, model, &op->items[i]);
}

static void gen_session(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->session = some_session(gen, model);
    op->attachment =
        op->kind == OP_ATTACH ? ++gen->last_attachment : 1 + (uint64_t)below(gen, (int)gen->last_attachment + 1);
    op->force = one_in(gen, 2);
    op->if_detached = op->kind == OP_CLOSE && op->attachment % 4 == 0;
    for (int i = 0; op->kind == OP_DETACH && i < OM_SESSIONS && !one_in(gen, 4); i++)
        if (model->sessions[i].serial == op->session)
            op->attachment = model->sessions[i].attachment != 0 ? model->sessions[i].attachment : op->attachment;
}

static void gen_lock(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->session = some_session(gen, model);
    op->us = some_wait(gen);
    if (one_in(gen, gen->profile == GEN_TXNS ? 2 : 10)) {
        op->txn = some_txn(gen, model);
        op->session = 0;
    }
    fill_specs(gen, model, op);
}

static void gen_unlock(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->session = some_session(gen, model);
    if (one_in(gen, 2))
        return;
    fill_specs(gen, model, op);
    for (int i = 0; i < model->lock_count && !one_in(gen, 3); i++) /* mostly a lock that it holds */
        if (model->locks[i].owner < OM_SESSIONS && model->sessions[model->locks[i].owner].serial == op->session)
            op->specs[0] = model->locks[i].what;
}

/* Gives a write a name, or makes it a repetition of a named one, or another request under that name. */
static void name_write(struct gen *gen, struct om_op *op)
{
    uint64_t number = op->number, clock = op->clock, us = op->us;
    uint32_t back = (uint32_t)below(gen, GEN_NAMED);

    if (back < gen->last_name && one_in(gen, 2)) {
        *op = gen->named[(gen->last_name - back) % GEN_NAMED];
        op->number = number;
        op->clock = clock;
        op->us = us;
        if (one_in(gen, 8))
            op->hash++;
        return;
    }
    op->name = ++gen->last_name;
    op->hash = op->name * 10;
    gen->named[op->name % GEN_NAMED] = *op;
}

static void gen_write(struct gen *gen, const struct om *model, struct om_op *op)
{
    int roll = below(gen, 10);

    op->us = some_wait(gen);
    if (roll < 4 && gen->profile == GEN_LOCKS)
        op->session = some_session(gen, model);
    else if (roll < (gen->profile == GEN_TXNS ? 7 : 5))
        op->txn = some_txn(gen, model);
    if (op->txn != 0 && one_in(gen, 10))
        op->session = some_session(gen, model);
    if (gen->token_count > 0 && one_in(gen, 8))
        op->token = gen->tokens[below(gen, (int)(gen->token_count < 8 ? gen->token_count : 8))];
    if (op->token != 0 && op->txn == 0 && one_in(gen, 2)) /* a token without its owner ignores no lock */
        op->session = some_session(gen, model);
    fill_items(gen, model, op);
    if (op->txn == 0 && one_in(gen, 4))
        name_write(gen, op);
}

static void gen_begin(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->txn = ++gen->last_txn;
    if (model->ended_count > 0 && one_in(gen, 3))
        op->retry_of =
            model->ended[model->ended_count - 1 - below(gen, model->ended_count < 4 ? model->ended_count : 4)].txn;
    else if (one_in(gen, 40))
        op->retry_of = some_txn(gen, model);
    op->us = OM_SECOND / 2 + (uint64_t)below(gen, 6000000);
    if (one_in(gen, 2))
        op->session = some_session(gen, model);
    if (gen->profile != GEN_LOCKS && one_in(gen, 3))
        op->host = (uint16_t)(1 + below(gen, 2));
}

static void gen_read(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->txn = some_txn(gen, model);
    if (one_in(gen, 12))
        op->session = some_session(gen, model);
    op->us = some_wait(gen);
    fill_specs(gen, model, op);
    for (int i = 0; i < op->count; i++) {
        op->specs[i].mode = (uint8_t)(one_in(gen, 6) ? OM_U : OM_S);
        if (op->specs[i].on.kind == OM_ALL)
            op->specs[i].on = (struct om_thing){OM_INDEX, some_index(gen), 0};
    }
}

static void gen_end(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->txn = some_txn(gen, model);
    if (op->kind == OP_COMMIT && gen->token_count > 0 && one_in(gen, 10))
        op->token = gen->tokens[below(gen, (int)(gen->token_count < 8 ? gen->token_count : 8))];
    if (one_in(gen, 12))
        op->session = some_session(gen, model);
}

static void gen_cancel(struct gen *gen, const struct om *model, struct om_op *op)
{
    int slot = below(gen, OM_WAITS);

    op->target = one_in(gen, 20) ? 0 : 1 + rng_below(gen->rng, gen->last_number);
    if (op->target == 0)
        return;
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &model->waits[(slot + i) % OM_WAITS];
        if (wait->used && wait->op != NULL) {
            op->target = wait->op->number;
            return;
        }
    }
}

static void gen_catalog(struct gen *gen, const struct om *model, struct om_op *op)
{
    op->index = op->kind == OP_CREATE_INDEX || op->kind == OP_DELETE_INDEX ? OM_NX : some_index(gen);
    op->on = !one_in(gen, 3) ==
             (op->kind == OP_BLOCK ? !model->indices[op->index].blocked : !model->indices[op->index].closed);
    op->on = op->on && !one_in(gen, gen->profile == GEN_RENAMES ? 1 : 3);
    if (gen->profile == GEN_RENAMES && one_in(gen, 4))
        op->on = true;
    op->us = some_wait(gen);
    if (one_in(gen, 2))
        op->session = some_session(gen, model);
}

/* Returns: the depth of the deepest document below a directory. */
static int depth_below(const struct om *model, int index, int dir)
{
    int deepest = 0;

    for (int i = 0; i < OM_DOCS; i++) {
        const struct om_doc *doc = &model->docs.at[index][i];
        if (doc->live && dirs_within(doc->dir, dir) && dirs_depth(doc->dir) > deepest)
            deepest = dirs_depth(doc->dir);
    }
    return deepest;
}

/*
 * Few names, so that renames meet former directories: to create documents there again, and to move
 * back.
 */
static int new_dir(struct gen *gen, const struct om *model, int index, int depth)
{
    static const char *const names[] = {"a", "b", "x", "deep"};
    int dir = one_in(gen, 3) ? some_dir(gen, model, index) : 0;

    while (dirs_depth(dir) >= depth && dir > 0)
        dir = dirs_above(dir);
    while (dirs_depth(dir) < depth)
        dir = dirs_in(dir, names[below(gen, one_in(gen, 3) ? 4 : 2)]);
    return dir;
}

/* A rename makes paths longer by one name at most, up to a limit. */
static void gen_rename(struct gen *gen, const struct om *model, struct om_op *op)
{
    int roll = below(gen, 10);

    op->index = one_in(gen, 12) ? some_index(gen) : one_in(gen, 4) ? OM_NX : 0;
    op->us = some_wait(gen);
    if (roll < 3)
        op->session = some_session(gen, model);
    else if (roll < 8)
        op->txn = some_txn(gen, model);
    if (op->txn != 0 && one_in(gen, 10))
        op->session = some_session(gen, model);
    if (gen->token_count > 0 && one_in(gen, 12))
        op->token = gen->tokens[below(gen, (int)(gen->token_count < 8 ? gen->token_count : 8))];
    for (int i = 0;
         i < 5 && (op->from == 0 || (model->indices[op->index].there && depth_below(model, op->index, op->from) == 0));
         i++)
        op->from = (int16_t)some_dir(gen, model, op->index);
    int depth = dirs_depth(op->from) + below(gen, 3) - 1;
    if (depth_below(model, op->index, op->from) > 6)
        depth = 1;
    for (int i = 0; i < 5 && (i == 0 || dirs_within(op->to, op->from)); i++)
        op->to = (int16_t)new_dir(gen, model, op->index, depth < 1 ? 1 : depth > 3 ? 3 : depth);
    if (one_in(gen, 20))
        op->to = op->from;
    op->slash = op->from > 0 && one_in(gen, 8);
    op->if_seq_no = -1;
    for (int i = 0; one_in(gen, 6) && i < OM_DOCS; i++)
        if (model->docs.at[op->index][i].live && model->docs.at[op->index][i].dir == op->from)
            op->if_seq_no = model->docs.at[op->index][i].seq_no;
}

/* OP_TRIED: mostly for an action that is still to be run. */
static void gen_attempt(struct gen *gen, const struct om *model, struct om_op *op)
{
    int slot = below(gen, OM_DEFERRED);

    op->session = some_session(gen, model);
    op->action = (uint64_t)below(gen, 2);
    for (int i = 0; i < OM_DEFERRED && !one_in(gen, 10); i++) {
        const struct om_deferred *deferred = &model->deferred[(slot + i) % OM_DEFERRED];
        if (deferred->number == 0 || (deferred->set_aside && !one_in(gen, 8)))
            continue;
        op->deferred = deferred->number;
        op->session = one_in(gen, 12) ? op->session : deferred->session;
        op->action = one_in(gen, 12);
        return;
    }
    op->deferred = one_in(gen, 12) ? (uint64_t)below(gen, 12) : 0;
}

static void gen_aside(struct gen *gen, const struct om *model, struct om_op *op)
{
    int slot = below(gen, OM_DEFERRED);

    op->retry = !one_in(gen, 3);
    op->deferred = (uint64_t)below(gen, 12);
    for (int i = 0; i < OM_DEFERRED; i++) {
        const struct om_deferred *deferred = &model->deferred[(slot + i) % OM_DEFERRED];
        if (deferred->number != 0 && (deferred->set_aside || one_in(gen, 8)))
            op->deferred = deferred->number;
    }
}

static void gen_nothing(struct gen *gen, const struct om *model, struct om_op *op)
{
    (void)gen;
    (void)model;
    (void)op;
}

static void gen_host(struct gen *gen, const struct om *model, struct om_op *op)
{
    (void)model;
    op->host = (uint16_t)(1 + below(gen, 2));
}

typedef void generator(struct gen *gen, const struct om *model, struct om_op *op);

/* Weights of the operations, by profile. */
static const struct {
    enum om_op_kind kind;
    int weights[GEN_PROFILE_COUNT];
    generator *generate;
} generators[] = {
    {OP_WRITE, {60, 60, 60}, gen_write},       {OP_OPEN, {14, 6, 12}, gen_open},
    {OP_KEEPALIVE, {12, 4, 6}, gen_session},   {OP_ATTACH, {4, 1, 2}, gen_session},
    {OP_DETACH, {3, 1, 3}, gen_session},       {OP_CLOSE, {4, 2, 4}, gen_session},
    {OP_LOCK, {50, 12, 30}, gen_lock},         {OP_UNLOCK, {18, 5, 10}, gen_unlock},
    {OP_BEGIN, {3, 28, 16}, gen_begin},        {OP_READ, {2, 45, 22}, gen_read},
    {OP_COMMIT, {2, 26, 14}, gen_end},         {OP_ROLLBACK, {1, 6, 3}, gen_end},
    {OP_CANCEL, {6, 4, 5}, gen_cancel},        {OP_CREATE_INDEX, {3, 2, 2}, gen_catalog},
    {OP_DELETE_INDEX, {5, 3, 3}, gen_catalog}, {OP_PUT_MAPPING, {3, 2, 2}, gen_catalog},
    {OP_BLOCK, {3, 2, 2}, gen_catalog},        {OP_STATE, {3, 2, 2}, gen_catalog},
    {OP_TICK, {4, 2, 4}, gen_nothing},         {OP_STATUS, {1, 1, 1}, gen_nothing},
    {OP_RENAME, {0, 0, 50}, gen_rename},       {OP_TRIED, {0, 0, 24}, gen_attempt},
    {OP_ASIDE, {0, 0, 8}, gen_aside},          {OP_HOST_UP, {0, 4, 4}, gen_host},
    {OP_MACHINE_LOST, {0, 4, 3}, gen_nothing},
};

enum { GENERATOR_COUNT = sizeof(generators) / sizeof(generators[0]) };

void gen_op(struct gen *gen, const struct om *model, struct om_op *op)
{
    int total = 0, drawn;

    *op = (struct om_op){.number = ++gen->last_number};
    for (int i = 0; i < GENERATOR_COUNT; i++)
        total += generators[i].weights[gen->profile];
    drawn = below(gen, total);
    for (int i = 0; i < GENERATOR_COUNT; i++) {
        drawn -= generators[i].weights[gen->profile];
        if (drawn < 0) {
            op->kind = generators[i].kind;
            generators[i].generate(gen, model, op);
            return;
        }
    }
}

void gen_op_of(struct gen *gen, const struct om *model, enum om_op_kind kind, struct om_op *op)
{
    *op = (struct om_op){.number = ++gen->last_number, .kind = kind};
    for (int i = 0; i < GENERATOR_COUNT; i++)
        if (generators[i].kind == kind)
            generators[i].generate(gen, model, op);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static struct slice session_id(struct arena *arena, uint32_t serial)
{
    return serial == 0 ? SLICE_NONE : arena_printf(arena, "s%u", serial);
}

static struct slice txn_id(struct arena *arena, uint32_t serial)
{
    return serial == 0 ? SLICE_NONE : arena_printf(arena, "t%u", serial);
}

static struct slice print_source(struct arena *arena, const struct om_item *item)
{
    if (item->dir < 0)
        return arena_printf(arena, "{\"v\":%d}", item->value);
    return arena_printf(arena, "{\"v\":%d,\"path\":\"%s\"}", item->value, dirs_path(item->dir));
}

static void print_item(struct arena *arena, const struct om_item *item, struct write_item *to)
{
    static const enum write_op ops[] = {WRITE_INDEX, WRITE_CREATE, WRITE_UPDATE, WRITE_DELETE};

    *to = (struct write_item){
        .op = ops[item->action],
        .index = slice_from(gen_index_names[item->index]),
        .id = arena_printf(arena, "%d", item->doc),
        .lease = session_id(arena, item->lease),
        .version = VERSION_ANY,
        .if_seq_no = item->if_seq_no < 0 ? SEQ_NO_ANY : item->if_seq_no,
        .if_primary_term = item->if_seq_no < 0 ? 0 : 1,
    };
    if (item->action == OM_UPDATE) {
        struct write_update *update = arena_zalloc(arena, sizeof(*update));
        update->detect_noop = true;
        update->doc = print_source(arena, item);
        to->update = update;
    } else if (item->action != OM_DELETE) {
        to->source = print_source(arena, item);
    }
}

static struct write_item *print_items(struct arena *arena, const struct om_op *op)
{
    struct write_item *items = arena_zalloc(arena, OM_ITEMS * sizeof(*items));

    for (int i = 0; i < op->count; i++)
        print_item(arena, &op->items[i], &items[i]);
    return items;
}

static struct lock_target *print_targets(struct arena *arena, const struct om_op *op)
{
    static const enum lock_mode modes[] = {LOCK_NONE, LOCK_S, LOCK_U, LOCK_X};
    struct lock_target *targets = arena_zalloc(arena, OM_ITEMS * sizeof(*targets));

    for (int i = 0; i < op->count; i++) {
        const struct om_spec *spec = &op->specs[i];
        targets[i].mode = modes[spec->mode];
        if (spec->on.kind != OM_ALL)
            targets[i].index = slice_from(gen_index_names[spec->on.index]);
        if (spec->on.kind == OM_DIR)
            targets[i].path = slice_from(dirs_path(spec->on.number));
        if (spec->on.kind == OM_DOC)
            targets[i].id = arena_printf(arena, "%d", spec->on.number);
    }
    return targets;
}

static void print_write(const struct om_op *op, struct command *command)
{
    command->write = (struct write_command){
        .items = print_items(&command->arena, op),
        .item_count = (size_t)op->count,
        .atomic = op->atomic,
    };
    if (op->name != 0)
        command->write.request = (struct write_request){arena_printf(&command->arena, "n%u", op->name), op->hash, 0};
    command->owner = (struct command_owner){
        .session = session_id(&command->arena, op->session),
        .transaction = txn_id(&command->arena, op->txn),
        .fencing_token = op->token,
        .timeout_us = op->us,
    };
}

static void print_session(const struct om_op *op, struct command *command)
{
    command->session.id = session_id(&command->arena, op->session);
    command->session.ttl_us = op->us;
    command->session.attachment = op->attachment;
    command->session.force = op->force;
    command->session.if_detached = op->if_detached;
    if (op->kind != OP_OPEN)
        return;
    command->session.on_expire = print_items(&command->arena, op);
    command->session.on_expire_count = (size_t)op->count;
}

static void print_lock(const struct om_op *op, struct command *command)
{
    command->owner.session = session_id(&command->arena, op->session);
    command->owner.transaction = txn_id(&command->arena, op->txn);
    command->lock.targets = print_targets(&command->arena, op);
    command->lock.target_count = (size_t)op->count;
    command->owner.timeout_us = op->us;
}

static void print_read(const struct om_op *op, struct command *command)
{
    command->owner.transaction = txn_id(&command->arena, op->txn);
    command->owner.session = session_id(&command->arena, op->session);
    command->txn_lock.targets = print_targets(&command->arena, op);
    command->txn_lock.target_count = (size_t)op->count;
    command->owner.timeout_us = op->us;
}

static void print_txn(const struct om_op *op, struct command *command)
{
    command->txn.id = txn_id(&command->arena, op->txn);
    command->owner.session = session_id(&command->arena, op->session);
    if (op->retry_of != 0)
        command->txn.retry_of = txn_id(&command->arena, op->retry_of);
    command->owner.fencing_token = op->token;
    command->txn.idle_us = op->us;
    command->txn.of_host = op->host != 0;
}

static void print_change(const struct om_op *op, struct command *command)
{
    command->index.name = slice_from(gen_index_names[op->index]);
    command->owner.session = session_id(&command->arena, op->session);
    command->owner.timeout_us = op->us;
    if (op->kind == OP_PUT_MAPPING)
        command->index.body = SLICE_LIT("{\"properties\":{\"w\":{\"type\":\"long\"}}}");
    if (op->kind == OP_BLOCK)
        command->index.body =
            op->on ? SLICE_LIT("{\"index.blocks.write\":true}") : SLICE_LIT("{\"index.blocks.write\":false}");
    command->index.close = op->kind == OP_STATE && op->on;
}

static void print_rename(const struct om_op *op, struct command *command)
{
    command->owner = (struct command_owner){
        .session = session_id(&command->arena, op->session),
        .transaction = txn_id(&command->arena, op->txn),
        .fencing_token = op->token,
        .timeout_us = op->us,
    };
    command->rename = (struct rename_command){
        .index = slice_from(gen_index_names[op->index]),
        .from = arena_printf(&command->arena, "%s%s", dirs_path(op->from), op->slash ? "/" : ""),
        .to = arena_copy(&command->arena, slice_from(dirs_path(op->to))),
        .if_seq_no = op->if_seq_no < 0 ? SEQ_NO_ANY : op->if_seq_no,
        .if_primary_term = op->if_seq_no < 0 ? 0 : 1,
    };
}

static const enum command_type types[OP_KIND_COUNT] = {
    [OP_WRITE] = COMMAND_WRITE,
    [OP_OPEN] = COMMAND_SESSION_OPEN,
    [OP_KEEPALIVE] = COMMAND_SESSION_KEEPALIVE,
    [OP_ATTACH] = COMMAND_SESSION_ATTACH,
    [OP_DETACH] = COMMAND_SESSION_DETACH,
    [OP_CLOSE] = COMMAND_SESSION_CLOSE,
    [OP_LOCK] = COMMAND_LOCK,
    [OP_UNLOCK] = COMMAND_UNLOCK,
    [OP_BEGIN] = COMMAND_TXN_BEGIN,
    [OP_READ] = COMMAND_TXN_LOCK,
    [OP_COMMIT] = COMMAND_TXN_COMMIT,
    [OP_ROLLBACK] = COMMAND_TXN_ROLLBACK,
    [OP_CANCEL] = COMMAND_CANCEL,
    [OP_CREATE_INDEX] = COMMAND_INDEX_CREATE,
    [OP_DELETE_INDEX] = COMMAND_INDEX_DELETE,
    [OP_PUT_MAPPING] = COMMAND_MAPPING_PUT,
    [OP_BLOCK] = COMMAND_SETTINGS_PUT,
    [OP_STATE] = COMMAND_INDEX_STATE,
    [OP_RENAME] = COMMAND_RENAME,
    [OP_TRIED] = COMMAND_TRIED,
    [OP_ASIDE] = COMMAND_ASIDE,
    [OP_TICK] = COMMAND_TICK,
    [OP_STATUS] = COMMAND_STATUS,
    [OP_RESTART] = COMMAND_RESTART,
    [OP_HOST_UP] = COMMAND_RESTART,
    [OP_MACHINE_LOST] = COMMAND_MACHINE_LOST,
};

uint64_t gen_request(const struct om_op *op)
{
    return (uint64_t)op->host << HOST_SHIFT | op->number;
}

struct command *gen_command(const struct om_op *op)
{
    struct command *command = command_new(types[op->kind], DIALECT_7);

    command->request = gen_request(op);
    command->clock = op->clock;
    command->memory_full = op->memory_full;
    switch (op->kind) {
    case OP_WRITE: print_write(op, command); break;
    case OP_OPEN:
    case OP_KEEPALIVE:
    case OP_ATTACH:
    case OP_DETACH:
    case OP_CLOSE: print_session(op, command); break;
    case OP_LOCK:
    case OP_UNLOCK: print_lock(op, command); break;
    case OP_BEGIN:
    case OP_COMMIT:
    case OP_ROLLBACK: print_txn(op, command); break;
    case OP_READ: print_read(op, command); break;
    case OP_CANCEL: command->cancel.request = op->target; break;
    case OP_CREATE_INDEX:
    case OP_DELETE_INDEX:
    case OP_BLOCK:
    case OP_STATE:
    case OP_PUT_MAPPING: print_change(op, command); break;
    case OP_STATUS:
        command->status.what = (enum status_what)(op->number % STATUS_WHAT_COUNT);
        command->status.rows_max = 20;
        break;
    case OP_RENAME: print_rename(op, command); break;
    case OP_TRIED:
        command->tried = (struct tried_command){session_id(&command->arena, op->session), op->deferred, op->action};
        break;
    case OP_ASIDE: command->aside = (struct aside_command){op->deferred, op->retry}; break;
    case OP_TICK: command->tick.barrier_clock = op->barrier_clock; break;
    default: break;
    }
    return command;
}

/* --- Describing --------------------------------------------------------------------------------------------------- */

struct gen_text {
    char *at;
    size_t left;
};

static void add(struct gen_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct gen_text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int len = vsnprintf(text->at, text->left, format, arguments);
    va_end(arguments);
    if (len > 0 && (size_t)len < text->left) {
        text->at += len;
        text->left -= (size_t)len;
    }
}

static void add_spec(struct gen_text *text, const struct om_spec *spec)
{
    static const char letters[] = "-SUX";

    add(text, " %c ", letters[spec->mode]);
    if (spec->on.kind == OM_ALL) {
        add(text, "everything");
        return;
    }
    add(text, "%s", gen_index_names[spec->on.index]);
    if (spec->on.kind == OM_DIR)
        add(text, ":%s", dirs_path(spec->on.number));
    if (spec->on.kind == OM_DOC)
        add(text, "/%d", spec->on.number);
}

static void add_item(struct gen_text *text, const struct om_item *item)
{
    static const char *const actions[] = {"put", "create", "update", "delete"};

    add(text, "; %s %s/%d v %d", actions[item->action], gen_index_names[item->index], item->doc, item->value);
    if (item->dir >= 0)
        add(text, " in %s", dirs_path(item->dir));
    if (item->if_seq_no >= 0)
        add(text, " if_seq_no %lld", (long long)item->if_seq_no);
    if (item->lease != 0)
        add(text, " lease s%u", item->lease);
}

void gen_describe(const struct om_op *op, char *buffer, size_t size)
{
    struct gen_text text = {buffer, size};

    add(&text, "#%llu %s", (unsigned long long)op->number, command_name(types[op->kind]));
    if (op->session != 0)
        add(&text, " s%u", op->session);
    if (op->txn != 0)
        add(&text, " t%u", op->txn);
    if (op->retry_of != 0)
        add(&text, " again t%u", op->retry_of);
    if (op->host != 0)
        add(&text, " of host %u", op->host);
    if (op->us != 0)
        add(&text, " %llu us", (unsigned long long)op->us);
    if (op->token != 0)
        add(&text, " token %llu", (unsigned long long)op->token);
    if (op->target != 0)
        add(&text, " of #%llu", (unsigned long long)op->target);
    add(&text, "%s%s", op->atomic ? " atomic" : "", op->force ? " force" : op->on ? " on" : "");
    add(&text, op->memory_full ? " without memory" : "");
    if (op->kind == OP_RENAME)
        add(&text, " %s: %s%s to %s, if_seq_no %lld", gen_index_names[op->index], dirs_path(op->from),
            op->slash ? "/" : "", dirs_path(op->to), (long long)op->if_seq_no);
    if (op->kind == OP_TRIED || op->kind == OP_ASIDE)
        add(&text, " kept %llu, action %llu%s", (unsigned long long)op->deferred, (unsigned long long)op->action,
            op->retry ? " again" : "");
    if (op->kind == OP_BLOCK || op->kind == OP_STATE)
        add(&text, " %s", gen_index_names[op->index]);
    bool specs = op->kind == OP_LOCK || op->kind == OP_UNLOCK || op->kind == OP_READ;
    for (int i = 0; i < op->count; i++)
        if (specs)
            add_spec(&text, &op->specs[i]);
        else
            add_item(&text, &op->items[i]);
}
