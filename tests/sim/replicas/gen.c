/* SPDX-License-Identifier: Apache-2.0 */
#include "gen.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/session/owners.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"
#include "mapping/mapping.h"

static const char *const hosts[] = {"a", "b", "c", "d"};
/* In the mode `named`: so few that each has many of the waiting writes */
enum { NAMED_HOSTS = 2 };
static const char *const indices[] = {"fs", "ix", "nx", "ny"};
static const char *const names[] = {"fs", "fs", "ix", "ix", "nx", "ny", "al", "be"};
/* In the mode `waits`: nx and ny are created and deleted, which changes the resources of their documents. */
static const char *const waits_names[] = {"nx", "nx", "nx", "ny", "fs", "al"};
/* Ids of the documents in them for which locks are requested, from 0 on */
enum { LOCKED_IDS = 2 };
/* In the mode `rich`: ty and tp have several types, tp with paths; ti is an alias of both or of one. */
static const char *const rich_indices[] = {"fs", "ix", "ty", "tp", "ty", "tp", "nx", "ny"};
static const char *const rich_names[] = {"fs", "ix", "ty", "ty", "tp", "tp", "ti", "nx", "ny", "al", "be"};
static const char *const types[] = {"t", "u", "w"};
static const char *const dirs[] = {"/", "/a", "/a/x", "/b", "/a/x/deep"};
/* Which the mode `rich` renames */
static const char *const new_dirs[] = {"/a", "/b", "/c", "/a", "/b", "/a/x", "/b/y", "/a/x/deep"};
static const char *const patterns[] = {"fs", "n*", "_all", "al", "ix,ny", "*"};
static const struct catalog_options lenient = {
    .ignore_unavailable = true, .allow_no_indices = true, .expand_open = true};

#define SOME(gen, array) ((array)[below((gen), sizeof(array) / sizeof(*(array)))])

static unsigned below(struct gen *gen, size_t bound)
{
    return (unsigned)rng_below(gen->rng, bound);
}

static bool one_in(struct gen *gen, unsigned n)
{
    return below(gen, n) == 0;
}

static struct slice some_name(struct gen *gen)
{
    return slice_from(gen->rich ? SOME(gen, rich_names) : SOME(gen, names));
}

static struct slice some_index(struct gen *gen)
{
    return slice_from(gen->rich ? SOME(gen, rich_indices) : SOME(gen, indices));
}

/* Returns: a type, or none, of a document in an index that can have several. */
static struct slice some_type(struct gen *gen, struct slice index)
{
    bool may = gen->rich && !slice_is(index, "fs") && !slice_is(index, "ix");
    return may && !one_in(gen, 6) ? slice_from(SOME(gen, types)) : SLICE_NONE;
}

/* Returns: mostly the id of an open one; else of one that has ended or never existed. */
static struct slice some_of(struct gen *gen, struct arena *arena, const struct map *open, char letter, unsigned count)
{
    size_t position = 0;
    struct slice id;
    void *value;

    if (open->count == 0 || one_in(gen, 20))
        return arena_printf(arena, "%c%u", letter, 1 + below(gen, count + 1));
    for (unsigned i = below(gen, open->count) + 1; i > 0; i--)
        (void)map_next(open, &position, &id, &value);
    return arena_copy(arena, id);
}

static struct slice some_session(struct gen *gen, struct arena *arena)
{
    return some_of(gen, arena, &gen->core->owners->sessions, 's', gen->sessions);
}

static struct slice some_txn(struct gen *gen, struct arena *arena)
{
    return some_of(gen, arena, &gen->core->owners->txns, 't', gen->txns);
}

/* Returns: the id of a transaction that may have been rolled back recently. */
static struct slice some_first_attempt(struct gen *gen, struct arena *arena)
{
    return arena_printf(arena, "t%u", gen->txns > 8 ? gen->txns - below(gen, 8) : 1);
}

static uint64_t some_wait(struct gen *gen)
{
    if (gen->waits)
        return one_in(gen, 20) ? 0 : below(gen, 20000000);
    if (gen->rich && !one_in(gen, 8))
        return below(gen, 400000);
    switch (below(gen, 6)) {
    case 0: return 0;
    case 1: return 1 + below(gen, 1000);
    case 2: return 20 * TL_SECOND;
    default: return below(gen, 2000000);
    }
}

/* --- Documents ---------------------------------------------------------------------------------------------------- */

static struct slice some_source(struct gen *gen, struct arena *arena)
{
    static const char *const fields[] = {"v", "v", "w", "text", "late", "later"};

    if (one_in(gen, 60))
        return SLICE_LIT("{\"v\":");
    if (one_in(gen, 3))
        return arena_printf(arena, "{\"%s\":%u}", SOME(gen, fields), below(gen, 8));
    return arena_printf(arena, "{\"v\":%u,\"path\":\"%s\"}", below(gen, 8), SOME(gen, dirs));
}

static const struct write_update *some_update(struct gen *gen, struct arena *arena)
{
    static const char *const scripts[] = {
        "if (ctx._source.v == null) { ctx._source.v = 0 } ctx._source.v += params.by",
        "ctx.op = 'delete'",
        "ctx.op = 'none'",
        "ctx._source.path = '/b'",
        "ctx._source.missing.field = 1",
    };
    struct write_update *update = arena_zalloc(arena, sizeof(*update));

    update->detect_noop = !one_in(gen, 4);
    update->want_source = one_in(gen, 2);
    if (one_in(gen, 2)) {
        update->doc = some_source(gen, arena);
        update->doc_as_upsert = one_in(gen, 2);
        return update;
    }
    update->script_lang = SLICE_LIT("painless");
    if (one_in(gen, 4))
        update->script_id = SLICE_LIT("sc");
    else if (one_in(gen, 4))
        update->script_file = SLICE_LIT("file");
    else
        update->script_source = slice_from(SOME(gen, scripts));
    update->script_params = arena_printf(arena, "{\"by\":%u}", below(gen, 4));
    if (one_in(gen, 2))
        update->upsert = some_source(gen, arena);
    update->scripted_upsert = one_in(gen, 5);
    return update;
}

/* Fills what a script has read: the committed document, or none. */
static void read_document(struct gen *gen, const struct write_item *item, struct update_ready *ready)
{
    const struct core *core = gen->core;
    const struct view view = core__view(core, NULL);
    const struct catalog_index *index = catalog_index(core->catalog, item->index);
    const struct mapping_type *type =
        index == NULL ? NULL : mapping_type(index->mapping, item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    struct doc doc;
    int r = type == NULL ? DOC_NOT_FOUND : doc_get(&view, index->number, type->number, item->id, &doc);

    ENSURE(r >= 0);
    ready->version = -1;
    ready->seq_no = SEQ_NO_ANY;
    if (r != 0)
        return;
    ready->read_ts = doc.ts;
    ready->version = doc.version;
    ready->seq_no = doc.seq_no;
    doc_release(&doc);
}

/*
 * What the script of an update has returned outside of the core: mostly for the document as it is, but commands of
 * the same entry, transactions and waits come between; else for one that never was.
 */
static struct update_ready some_ready(struct gen *gen, struct arena *arena, const struct write_item *item)
{
    static const enum update_op ops[] = {UPDATE_INDEX, UPDATE_INDEX, UPDATE_DELETE, UPDATE_NOOP};
    struct rng *rng = gen->script_rng;
    struct update_ready ready = {.given = true};

    read_document(gen, item, &ready);
    if (rng_below(rng, 4) == 0)
        ready = (struct update_ready){.given = true,
                                      .read_ts = 1 + rng_below(rng, gen->ts + 1),
                                      .version = 1,
                                      .seq_no = (int64_t)rng_below(rng, 9)};
    ready.op = ready.read_ts == 0 ? UPDATE_CREATE : ops[rng_below(rng, sizeof ops / sizeof *ops)];
    if (ready.op == UPDATE_INDEX || ready.op == UPDATE_CREATE || rng_below(rng, 2) == 0)
        ready.source = arena_printf(arena, "{\"v\":%u,\"path\":\"%s\"}", (unsigned)rng_below(rng, 8),
                                    dirs[rng_below(rng, sizeof dirs / sizeof *dirs)]);
    return ready;
}

/* Lets scripts run outside of the core, before which the core may have tried them. */
static void run_outside(struct gen *gen, struct arena *arena, struct write_item *item)
{
    struct rng *rng = gen->script_rng;
    const struct write_update *update = item->update;
    struct write_update *outside;

    if ((update->script_source.data == NULL && update->script_id.data == NULL && update->script_file.data == NULL) ||
        rng_below(rng, 2) == 0)
        return;
    outside = arena_alloc(arena, sizeof *outside);
    *outside = *update;
    outside->script_steps = 1 + rng_below(rng, 12);
    outside->script_postpones = rng_below(rng, 4) != 0;
    if (rng_below(rng, 2) == 0)
        outside->ready = some_ready(gen, arena, item);
    item->update = outside;
}

static void fill_item(struct gen *gen, struct arena *arena, struct write_item *item)
{
    static const enum write_op ops[] = {WRITE_INDEX,  WRITE_INDEX,  WRITE_INDEX,  WRITE_CREATE,
                                        WRITE_UPDATE, WRITE_UPDATE, WRITE_DELETE, WRITE_DELETE};

    bool five = one_in(gen, 10);

    *item = (struct write_item){.op = SOME(gen, ops),
                                .dialect = five ? DIALECT_5 : DIALECT_7,
                                .index = some_name(gen),
                                .type = five ? SLICE_LIT("t") : SLICE_NONE,
                                .id = arena_printf(arena, "%u", below(gen, 8)),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    if (gen->rich) {
        item->type = some_type(gen, item->index);
        item->dialect = item->type.len > 0 ? DIALECT_5 : item->dialect;
        if (item->type.len == 0 && item->dialect == DIALECT_5)
            item->type = SLICE_LIT("t");
    }
    if (one_in(gen, 10))
        item->routing = SLICE_LIT("r");
    if (one_in(gen, gen->rich ? 40 : 12)) {
        item->if_seq_no = below(gen, 40);
        item->if_primary_term = 1;
    }
    if (item->op == WRITE_INDEX && one_in(gen, 12)) {
        item->version_type = VERSION_EXTERNAL_GTE;
        item->version = below(gen, 20);
    }
    if (item->op == WRITE_UPDATE) {
        item->update = some_update(gen, arena);
        run_outside(gen, arena, item);
    } else if (item->op != WRITE_DELETE) {
        item->source = some_source(gen, arena);
    }
    if (item->op != WRITE_DELETE && one_in(gen, 5))
        item->lease = some_session(gen, arena);
}

static struct write_item *some_items(struct gen *gen, struct arena *arena, size_t count)
{
    struct write_item *items = arena_zalloc(arena, (count + 1) * sizeof(*items));

    for (size_t i = 0; i < count; i++)
        fill_item(gen, arena, &items[i]);
    return items;
}

/* Returns: a named write that waits, most often one with a kept place if there is any; NULL: none. */
static const struct command *some_named_wait(struct gen *gen)
{
    const struct command *chosen = NULL;
    unsigned count = 0;
    bool with_place = gen->core->owners->kept_writes.count > 0 && !one_in(gen, 4);

    list_for_each(link, &gen->core->owners->waits)
    {
        const struct wait *wait = list_entry(link, struct wait, of_all);
        bool named = !wait->ended && wait->command != NULL && wait->command->type == COMMAND_WRITE &&
                     wait->command->write.request.id.len > 0;
        if (named && (!with_place || wait__has_place(wait)) && one_in(gen, ++count))
            chosen = wait->command;
    }
    return chosen;
}

/* Makes the first or the last item of a write one of a document for which locks are requested. */
static void make_blocked(struct gen *gen, struct command *command)
{
    struct write_command *write = &command->write;
    struct write_item *item = &write->items[one_in(gen, 2) ? 0 : write->item_count - 1];

    item->index = slice_from(SOME(gen, waits_names));
    item->id = arena_printf(&command->arena, "%u", below(gen, LOCKED_IDS));
}

/* Makes a write a repetition of one that waits, in all that its name is compared with; most often with its items. */
static void repeat_write(struct gen *gen, const struct command *waiting, struct command *command)
{
    struct write_command *write = &command->write;
    bool same_items = !one_in(gen, 3);

    write->request = waiting->write.request;
    write->item_count = waiting->write.item_count;
    write->atomic = waiting->write.atomic;
    /* They live as long as the wait; the command is encoded before that changes. */
    write->items = same_items ? waiting->write.items : some_items(gen, &command->arena, write->item_count);
    if (!one_in(gen, 6)) /* else with another session, which may have the locks that it waits for */
        command->owner.session = waiting->owner.session;
}

/*
 * Most writes have names. Many are repetitions: of one that waits or keeps a place, or of a recent one, which may have
 * an outcome. Half of the others have a few items, of which most are atomic; in most seeds these are carried out in
 * pieces. Some are parts of a divided request.
 */
static void name_write(struct gen *gen, struct command *command)
{
    struct write_command *write = &command->write;
    const struct command *waiting = one_in(gen, 4) ? NULL : some_named_wait(gen);

    if (waiting != NULL) {
        repeat_write(gen, waiting, command);
        return;
    }
    unsigned name = one_in(gen, 2) || gen->names == 0 ? ++gen->names : gen->names - below(gen, gen->names < 5 ? 1 : 5);
    bool divided = one_in(gen, 4);
    write->request = (struct write_request){.id = arena_printf(&command->arena, "n%u", name),
                                            .hash = one_in(gen, 8) ? 2 : 1,
                                            .part = divided ? below(gen, 3) : 0,
                                            .divided = divided};
    write->item_count = one_in(gen, 2) ? 1 : 2 + below(gen, 3); /* few, so that a repetition often has as many */
    write->items = some_items(gen, &command->arena, write->item_count);
    write->atomic = write->item_count > 1 && !divided && !one_in(gen, 4);
    if (!one_in(gen, 4))
        make_blocked(gen, command);
}

static void gen_write(struct gen *gen, struct command *command)
{
    struct arena *arena = &command->arena;
    unsigned size = gen->rich && !one_in(gen, 6) ? below(gen, 10) : below(gen, gen->waits ? 11 : 12);

    command->write.item_count = size < 7 ? 1 : size < 11 ? 1 + below(gen, 6) : 20 + below(gen, 30);
    command->write.items = some_items(gen, arena, command->write.item_count);
    command->write.atomic = command->write.item_count > 1 && one_in(gen, 3);
    command->owner.timeout_us = some_wait(gen);
    if (one_in(gen, 3))
        command->owner.transaction = some_txn(gen, arena);
    else if (one_in(gen, 3))
        command->owner.session = some_session(gen, arena);
    if (one_in(gen, gen->rich ? 60 : 15))
        command->owner.fencing_token = SOME(gen, gen->tokens);
    if (gen->named && command->owner.transaction.len == 0 && !one_in(gen, 4))
        name_write(gen, command);
}

/* --- Sessions, locks, transactions -------------------------------------------------------------------------------- */

static void gen_open(struct gen *gen, struct command *command)
{
    struct arena *arena = &command->arena;
    struct session_command *session = &command->session;

    session->id = arena_printf(arena, "s%u", one_in(gen, 40) ? gen->sessions : ++gen->sessions);
    session->ttl_us = TL_SECOND + below(gen, gen->rich ? 90000000 : 30000000);
    if (one_in(gen, 3))
        session->name = arena_printf(arena, "holder %u", gen->sessions);
    session->on_expire_count = one_in(gen, 2) ? below(gen, 4) : 0;
    session->on_expire = some_items(gen, arena, session->on_expire_count);
}

static void gen_session(struct gen *gen, struct command *command)
{
    command->session.id = some_session(gen, &command->arena);
    command->session.attachment =
        (uint64_t)gen->host << HOST_SHIFT |
        (command->type == COMMAND_SESSION_ATTACH ? ++gen->attachments : 1 + below(gen, gen->attachments + 1));
    command->session.force = one_in(gen, 3);
    command->session.if_detached = command->type == COMMAND_SESSION_CLOSE && one_in(gen, 4);
    if (command->type == COMMAND_SESSION_CLOSE && one_in(gen, 8))
        command->session.id = arena_printf(&command->arena, "%u", below(gen, gen->sessions + gen->txns + 1));
}

static void fill_target(struct gen *gen, struct arena *arena, struct lock_target *target)
{
    static const enum lock_mode modes[] = {LOCK_S, LOCK_U, LOCK_X};
    unsigned what = below(gen, 20);

    *target = (struct lock_target){.mode = SOME(gen, modes), .index = some_name(gen)};
    if (gen->waits && !one_in(gen, 16)) {
        target->index = slice_from(SOME(gen, waits_names));
        target->id = arena_printf(arena, "%u", below(gen, LOCKED_IDS));
    } else if (what == 0 && (!gen->rich || one_in(gen, 6))) {
        target->index = SLICE_NONE;
    } else if (what > 2 && what < 8) {
        target->path = slice_from(SOME(gen, dirs));
    } else if (what >= 8) {
        target->id = arena_printf(arena, "%u", below(gen, 8));
        target->type = some_type(gen, target->index);
    }
}

static struct lock_target *some_targets(struct gen *gen, struct arena *arena, size_t *ret_count)
{
    *ret_count = one_in(gen, 3) ? 1 + below(gen, 3) : 1;
    struct lock_target *targets = arena_zalloc(arena, *ret_count * sizeof(*targets));

    for (size_t i = 0; i < *ret_count; i++)
        fill_target(gen, arena, &targets[i]);
    return targets;
}

static void gen_lock(struct gen *gen, struct command *command)
{
    struct arena *arena = &command->arena;

    if (command->type == COMMAND_LOCK && one_in(gen, 6))
        command->owner.transaction = some_txn(gen, arena);
    else
        command->owner.session = some_session(gen, arena);
    command->owner.timeout_us = some_wait(gen);
    if (command->type == COMMAND_LOCK || one_in(gen, 2))
        command->lock.targets = some_targets(gen, arena, &command->lock.target_count);
}

static void gen_begin(struct gen *gen, struct command *command)
{
    struct arena *arena = &command->arena;

    command->txn.id = arena_printf(arena, "t%u", ++gen->txns);
    /* Its host is restarted or leaves from time to time */
    command->txn.of_host = gen->txns % 3 == 0;
    command->txn.mode =
        one_in(gen, gen->rich ? 60 : 6) ? TXN_QUERY : TXN_UPDATE; /* of an older log: takes a number only */
    command->txn.idle_us = TL_SECOND / 2 + below(gen, gen->rich ? 60000000 : 12000000);
    if (one_in(gen, 4))
        command->txn.retry_of = some_first_attempt(gen, arena);
    if (one_in(gen, 2))
        command->owner.session = some_session(gen, arena);
}

static void gen_read(struct gen *gen, struct command *command)
{
    struct arena *arena = &command->arena;
    struct txn_lock_command *lock = &command->txn_lock;

    command->owner.transaction = some_txn(gen, arena);
    command->owner.timeout_us = some_wait(gen);
    lock->targets = some_targets(gen, arena, &lock->target_count);
    for (size_t i = 0; i < lock->target_count; i++) {
        struct lock_target *target = &lock->targets[i];
        target->mode = one_in(gen, 4) ? LOCK_U : LOCK_S;
        if (target->id.data != NULL || target->path.data != NULL)
            continue;
        target->script = one_in(gen, 4);
        target->expression = target->script ? NULL : &lenient;
        target->index = target->script ? SLICE_LIT("sc") : slice_from(SOME(gen, patterns));
    }
}

static void gen_end(struct gen *gen, struct command *command)
{
    command->txn.id = some_txn(gen, &command->arena);
    if (command->type == COMMAND_TXN_COMMIT && one_in(gen, 20))
        command->owner.fencing_token = SOME(gen, gen->tokens);
}

static void gen_cancel(struct gen *gen, struct command *command)
{
    uint64_t host = (uint64_t)gen->host << HOST_SHIFT;
    unsigned back = below(gen, 30);

    command->cancel.request =
        one_in(gen, gen->waits ? 4 : 20) || gen->requests <= back ? host : host | (gen->requests - back);
    command->cancel.keeps_places = one_in(gen, 2);
    if (gen->named && !one_in(gen, 4)) { /* a host ends */
        command->cancel.request = host;
        command->cancel.keeps_places = true;
    }
}

static void gen_tick(struct gen *gen, struct command *command)
{
    command->tick.barrier_clock = one_in(gen, 3) ? gen->clock : gen->clock - below(gen, 2000000);
}

static void gen_nothing(struct gen *gen, struct command *command)
{
    (void)gen;
    (void)command;
}

static const char *const typed_bodies[] = {
    "{\"mappings\":{\"t\":{},\"u\":{\"properties\":{\"v\":{\"type\":\"long\"}}}}}",
    "{\"mappings\":{\"t\":{\"properties\":{\"path\":{\"type\":\"path\"}}},\"u\":{}}}",
};

/* --- The catalog -------------------------------------------------------------------------------------------------- */

static void fill_terms(struct gen *gen, struct command *command)
{
    command->owner.timeout_us = some_wait(gen);
    if (one_in(gen, 2))
        command->owner.session = some_session(gen, &command->arena);
}

static void gen_index(struct gen *gen, struct command *command)
{
    static const char *const settings[] = {"{\"index.blocks.write\":true}", "{\"index.blocks.write\":false}",
                                           "{\"number_of_replicas\":0}",    "{\"gc_deletes\":\"1h\"}",
                                           "{\"gc_deletes\":\"1s\"}",       "{\"gc_deletes\":\"-1\"}",
                                           "{\"gc_deletes\":null}"};
    static const char *const mappings[] = {"{\"properties\":{\"w\":{\"type\":\"long\"}}}",
                                           "{\"properties\":{\"path\":{\"type\":\"path\"}}}",
                                           "{\"properties\":{\"v\":{\"type\":\"keyword\"}}}"};
    static const char *const passing[] = {"nx", "ny", "nx", "ny", "al", "be"};
    bool whole = command->type == COMMAND_INDEX_DELETE || command->type == COMMAND_INDEX_CREATE;

    fill_terms(gen, command);
    command->index.name = whole ? slice_from(SOME(gen, passing)) : some_index(gen);
    if (command->type == COMMAND_MAPPING_PUT)
        command->index.body = slice_from(SOME(gen, mappings));
    if (command->type == COMMAND_SETTINGS_PUT)
        command->index.body = slice_from(SOME(gen, settings));
    if (command->type == COMMAND_SETTINGS_PUT && gen->rich && !one_in(gen, 4))
        command->index.body = slice_from(settings[1 + below(gen, 2)]); /* mostly no block */
    command->index.close = one_in(gen, 3);
    if (gen->waits && command->type == COMMAND_INDEX_CREATE && one_in(gen, 2)) {
        command->dialect = DIALECT_5;
        command->index.body = SLICE_LIT("{\"mappings\":{\"t\":{}}}");
    }
    if (gen->rich && command->type == COMMAND_INDEX_CREATE && !one_in(gen, 3)) {
        command->dialect = DIALECT_5;
        if (one_in(gen, 2))
            command->index.body = slice_from(SOME(gen, typed_bodies));
    }
    if (gen->rich && command->type == COMMAND_MAPPING_PUT && !one_in(gen, 4)) {
        command->dialect = DIALECT_5;
        command->index.type = some_type(gen, command->index.name);
    }
}

static struct slice some_alias(struct gen *gen)
{
    if (gen->rich && one_in(gen, 2))
        return SLICE_LIT("ti");
    return slice_from(one_in(gen, 2) ? "al" : "be");
}

static void gen_aliases(struct gen *gen, struct command *command)
{
    struct aliases_command *aliases = &command->aliases;

    fill_terms(gen, command);
    aliases->action_count = 1 + below(gen, 2);
    aliases->actions = arena_zalloc(&command->arena, aliases->action_count * sizeof(*aliases->actions));
    for (size_t i = 0; i < aliases->action_count; i++)
        aliases->actions[i] =
            (struct alias_action){.op = one_in(gen, 3) ? ALIAS_REMOVE : ALIAS_ADD,
                                  .index = some_index(gen),
                                  .alias = some_alias(gen),
                                  .body = one_in(gen, 3) ? SLICE_LIT("{\"is_write_index\":true}") : SLICE_NONE};
}

static void gen_object(struct gen *gen, struct command *command)
{
    struct object_command *object = &command->object;
    struct arena *arena = &command->arena;

    switch (command->type) {
    case COMMAND_SCRIPT_PUT:
    case COMMAND_SCRIPT_DELETE:
        fill_terms(gen, command);
        object->name = SLICE_LIT("sc");
        object->body = arena_printf(arena, "{\"script\":{\"lang\":\"painless\",\"source\":\"ctx._source.v = %u\"}}",
                                    below(gen, 9));
        break;
    case COMMAND_CLUSTER_SETTINGS_PUT:
        object->body = arena_printf(arena, "{\"persistent\":{\"cluster.name\":\"c%u\"}}", below(gen, 3));
        break;
    case COMMAND_INDEX_TEMPLATE_PUT:
    case COMMAND_INDEX_TEMPLATE_DELETE:
        object->name = arena_printf(arena, "it%u", below(gen, 2));
        object->body = arena_printf(arena,
                                    "{\"index_patterns\":\"n%s\",\"priority\":%u,\"composed_of\":[%s],\"template\":{"
                                    "\"mappings\":{\"properties\":{\"v\":{\"type\":\"long\"}}}}}",
                                    one_in(gen, 2) ? "*" : "x", below(gen, 3), one_in(gen, 2) ? "\"cp0\"" : "");
        break;
    case COMMAND_COMPONENT_PUT:
    case COMMAND_COMPONENT_DELETE:
        object->name = arena_printf(arena, "cp%u", below(gen, 2));
        object->body =
            arena_printf(arena, "{\"template\":{\"mappings\":{\"properties\":{\"path\":{\"type\":\"%s\"}}}}}",
                         one_in(gen, 2) ? "path" : "keyword");
        break;
    case COMMAND_COPY_REPORT:
    case COMMAND_COPY_FORGET:
        object->name = arena_printf(arena, "co%u", below(gen, 2));
        object->body = one_in(gen, 3) ? SLICE_LIT("{\"verified_at\":7}")
                                      : arena_printf(arena, "{\"state\":\"following\",\"place\":%u}", below(gen, 9));
        break;
    case COMMAND_SECURITY_PUT:
    case COMMAND_SECURITY_CHANGE:
    case COMMAND_SECURITY_DELETE:
        object->lang = one_in(gen, 2) ? SLICE_LIT("user") : one_in(gen, 2) ? SLICE_LIT("role") : SLICE_LIT("api_key");
        object->name = arena_printf(arena, "se%u", below(gen, 3));
        object->create = one_in(gen, 4);
        object->body = one_in(gen, 3) ? SLICE_LIT("{\"enabled\":true}")
                                      : arena_printf(arena, "{\"hash\":\"h%u\",\"roles\":[\"r%u\"]}", below(gen, 9),
                                                     below(gen, 3));
        break;
    default:
        object->name = arena_printf(arena, "te%u", below(gen, 2));
        object->body =
            arena_printf(arena,
                         "{\"index_patterns\":[\"n%s\"],\"order\":%u,\"mappings\":{\"properties\":{\"path\":{"
                         "\"type\":\"%s\"},\"v\":{\"type\":\"long\"}}}}",
                         one_in(gen, 2) ? "*" : "x", below(gen, 3), one_in(gen, 2) ? "path" : "keyword");
    }
    if (command->type == COMMAND_TEMPLATE_DELETE || command->type == COMMAND_INDEX_TEMPLATE_DELETE ||
        command->type == COMMAND_COMPONENT_DELETE || command->type == COMMAND_SCRIPT_DELETE ||
        command->type == COMMAND_COPY_FORGET || command->type == COMMAND_SECURITY_DELETE)
        object->body = SLICE_NONE;
}

static void gen_files(struct gen *gen, struct command *command)
{
    struct file_scripts_command *files = &command->file_scripts;

    files->script_count = below(gen, 2);
    files->scripts = arena_zalloc(&command->arena, sizeof(*files->scripts));
    files->scripts[0] = (struct file_script){SLICE_LIT("file"), SLICE_LIT("painless"),
                                             arena_printf(&command->arena, "ctx._source.v = %u", 10 + below(gen, 9))};
}

/* Small limits, sometimes below the current state, or invalid ones. */
static void gen_limits(struct gen *gen, struct command *command)
{
    struct core_limits limits = core_limits_default();

    limits.sessions_max = below(gen, 16); /* 0: refused */
    limits.transactions_max = 1 + below(gen, 14);
    limits.waiters_max = 1 + below(gen, 24);
    limits.locks_per_session_max = 2 + below(gen, 60);
    limits.transaction_changes_max = 2 + below(gen, 80);
    limits.ephemeral_max = 1 + below(gen, 24);
    limits.ephemeral_batch = 1 + below(gen, 4);
    limits.purge_batch = 1 + below(gen, 2);
    limits.stale_documents_min = 1 + below(gen, 12);
    limits.script.steps_max = one_in(gen, gen->rich ? 12 : 3) ? 1 + below(gen, 4) : SCRIPT_STEPS_MAX;
    command->limits.limits = limits;
}

static void gen_mark(struct gen *gen, struct command *command)
{
    command->mark.ceiling = one_in(gen, 4) ? below(gen, 9) : TL_TS_MAX - 1 - below(gen, 9);
    command->mark.payload = one_in(gen, 2) ? SLICE_LIT("") : SLICE_LIT("kept");
    command->mark.chain = below(gen, 3); /* compared by replay; a step ignores it */
    command->mark.build = one_in(gen, 2) ? SLICE_LIT("") : SLICE_LIT("another");
}

/* Small numbers, which probably belong to a deferred action. */
static void gen_tried(struct gen *gen, struct command *command)
{
    gen_session(gen, command);
    struct slice session = command->session.id;
    command->tried = (struct tried_command){.session = session};
    if (one_in(gen, 2))
        command->tried.deferred = 1 + below(gen, 12);
    else
        command->tried.action = below(gen, 3);
}

/* Used by replay; a step ignores it. */
static void gen_skip(struct gen *gen, struct command *command)
{
    command->skip.position = 1 + below(gen, 12);
}

static void gen_aside(struct gen *gen, struct command *command)
{
    command->aside = (struct aside_command){.number = 1 + below(gen, 12), .retry = one_in(gen, 2)};
}

/* Names, lives and builds are few, so that they are repeated, and old ones come again. */
static void gen_join(struct gen *gen, struct command *command)
{
    static const char *const builds[] = {"1", "1", "1", "2"};
    struct join_command *join = &command->join;

    command->request = 0;
    join->name = one_in(gen, 30) ? SLICE_LIT("") : slice_from(SOME(gen, hosts));
    if (gen->named)
        join->name = slice_from(hosts[below(gen, NAMED_HOSTS)]);
    join->group = one_in(gen, 3) ? SLICE_LIT("east") : SLICE_LIT("west");
    join->address = arena_printf(&command->arena, "10.0.0.%u:9200", below(gen, 3));
    join->build = slice_from(SOME(gen, builds));
    join->life = below(gen, 12);
    join->limits = *core_limits(gen->core);
    if (one_in(gen, 10))
        join->limits.sessions_max++;
}

/* Returns: any host; in the mode `named` most often one that lives; NULL: no host has joined. */
static const struct core_host *some_host(struct gen *gen)
{
    size_t count;
    const struct core_host *all = core_hosts(gen->core, &count);
    const struct core_host *host = count == 0 ? NULL : &all[below(gen, count)];

    for (int i = 0; gen->named && host != NULL && host->life == 0 && i < 4; i++)
        host = &all[below(gen, count)];
    return host;
}

static void gen_gone(struct gen *gen, struct command *command)
{
    const struct core_host *host = some_host(gen);

    command->gone.name = host == NULL || one_in(gen, 8) ? slice_from(SOME(gen, hosts)) : host->name;
    command->gone.life = host == NULL || one_in(gen, 4) ? below(gen, 12) : host->life;
    command->gone.name = arena_copy(&command->arena, command->gone.name);
    command->gone.forget = one_in(gen, 4);
}

static void gen_heartbeat(struct gen *gen, struct command *command)
{
    command->heartbeat.barrier_clock = gen->clock - below(gen, 2000000);
    command->heartbeat.low = gen->ts - below(gen, 2000000);
    command->heartbeat.position = below(gen, 1000);
    command->heartbeat.chain = below(gen, 1000);
}

void gen_header(struct gen *gen, struct command_group_header *head)
{
    size_t count;

    (void)core_hosts(gen->core, &count);
    *head = (struct command_group_header){
        .host = gen->host, .ts = gen->ts, .clock = gen->clock, .memory_full = one_in(gen, 6)};
    if (count == 0 || one_in(gen, 4))
        return;
    const struct core_host *host = some_host(gen);
    gen->host = head->host = host->number;
    head->life = host->life == 0 || one_in(gen, 12) ? 1 + below(gen, 12) : host->life;
    head->number = host->entries + below(gen, 4);
    head->number += head->number == 0;
}

static void gen_feed(struct gen *gen, struct command *command)
{
    command->feed.off = one_in(gen, gen->rich ? 30 : 5);
    command->feed.cut = gen->ts - below(gen, 400000000);
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

typedef void generator(struct gen *gen, struct command *command);

static void gen_rename(struct gen *gen, struct command *command)
{
    fill_terms(gen, command);
    command->rename.index = some_name(gen);
    if (gen->rich && !one_in(gen, 6))
        command->rename.index = one_in(gen, 2) ? SLICE_LIT("fs") : SLICE_LIT("tp");
    command->rename.from = slice_from(SOME(gen, dirs));
    if (gen->rich)
        command->rename.from = slice_from(SOME(gen, new_dirs));
    command->rename.to = slice_from(gen->rich ? SOME(gen, new_dirs) : SOME(gen, dirs));
    command->rename.if_seq_no = SEQ_NO_ANY;
}

/* Relative frequency of each type, and that in the modes `waits`, `rich` and `named`. */
static const struct {
    enum command_type type;
    unsigned weight[4];
    generator *generate;
} generators[] = {
    {COMMAND_WRITE, {70, 40, 90, 80}, gen_write},
    {COMMAND_RENAME, {14, 6, 16, 4}, gen_rename},
    {COMMAND_SESSION_OPEN, {12, 14, 14, 14}, gen_open},
    {COMMAND_SESSION_KEEPALIVE, {8, 6, 8, 10}, gen_session},
    {COMMAND_SESSION_ATTACH, {3, 0, 2, 0}, gen_session},
    {COMMAND_SESSION_DETACH, {2, 0, 2, 0}, gen_session},
    {COMMAND_SESSION_CLOSE, {4, 4, 4, 4}, gen_session},
    {COMMAND_LOCK, {35, 90, 30, 60}, gen_lock},
    {COMMAND_UNLOCK, {12, 34, 16, 40}, gen_lock},
    {COMMAND_TXN_BEGIN, {18, 12, 20, 6}, gen_begin},
    {COMMAND_TXN_LOCK, {24, 16, 16, 6}, gen_read},
    {COMMAND_TXN_COMMIT, {14, 6, 15, 6}, gen_end},
    {COMMAND_TXN_ROLLBACK, {4, 3, 3, 3}, gen_end},
    {COMMAND_CANCEL, {5, 12, 4, 16}, gen_cancel},
    {COMMAND_TICK, {14, 14, 16, 60}, gen_tick},
    {COMMAND_RESTART, {1, 1, 1, 1}, gen_nothing},
    {COMMAND_INDEX_CREATE, {3, 14, 5, 8}, gen_index},
    {COMMAND_INDEX_DELETE, {3, 8, 3, 3}, gen_index},
    {COMMAND_INDEX_STATE, {4, 0, 3, 0}, gen_index},
    {COMMAND_MAPPING_PUT, {2, 0, 3, 0}, gen_index},
    {COMMAND_SETTINGS_PUT, {3, 0, 3, 0}, gen_index},
    {COMMAND_ALIASES_UPDATE, {5, 6, 6, 4}, gen_aliases},
    {COMMAND_TEMPLATE_PUT, {2, 0, 1, 0}, gen_object},
    {COMMAND_TEMPLATE_DELETE, {1, 0, 1, 0}, gen_object},
    {COMMAND_INDEX_TEMPLATE_PUT, {2, 0, 1, 0}, gen_object},
    {COMMAND_INDEX_TEMPLATE_DELETE, {1, 0, 1, 0}, gen_object},
    {COMMAND_COMPONENT_PUT, {2, 0, 1, 0}, gen_object},
    {COMMAND_COMPONENT_DELETE, {1, 0, 1, 0}, gen_object},
    {COMMAND_SCRIPT_PUT, {2, 0, 2, 0}, gen_object},
    {COMMAND_SCRIPT_DELETE, {1, 0, 1, 0}, gen_object},
    {COMMAND_FILE_SCRIPTS, {2, 0, 1, 0}, gen_files},
    {COMMAND_CLUSTER_SETTINGS_PUT, {1, 0, 1, 0}, gen_object},
    {COMMAND_LIMITS, {2, 0, 1, 0}, gen_limits},
    {COMMAND_MARK, {2, 0, 1, 0}, gen_mark},
    {COMMAND_FEED, {1, 0, 1, 0}, gen_feed},
    {COMMAND_COPY_REPORT, {2, 0, 1, 0}, gen_object},
    {COMMAND_COPY_FORGET, {1, 0, 1, 0}, gen_object},
    {COMMAND_SECURITY_PUT, {3, 0, 1, 0}, gen_object},
    {COMMAND_SECURITY_CHANGE, {2, 0, 1, 0}, gen_object},
    {COMMAND_SECURITY_DELETE, {2, 0, 1, 0}, gen_object},
    {COMMAND_MACHINE_LOST, {1, 0, 1, 2}, gen_nothing},
    {COMMAND_TRIED, {4, 0, 3, 0}, gen_tried},
    {COMMAND_SKIP, {2, 0, 1, 0}, gen_skip},
    {COMMAND_ASIDE, {3, 0, 3, 0}, gen_aside},
    {COMMAND_JOIN, {3, 4, 3, 12}, gen_join},
    {COMMAND_HOST_GONE, {2, 3, 2, 8}, gen_gone},
    {COMMAND_HEARTBEAT, {4, 0, 4, 0}, gen_heartbeat},
};

enum { GENERATOR_COUNT = sizeof(generators) / sizeof(generators[0]) };

static unsigned weight(const struct gen *gen, int i)
{
    return generators[i].weight[gen->named ? 3 : gen->rich ? 2 : gen->waits ? 1 : 0];
}

static struct command *make(struct gen *gen, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);

    command->request = (uint64_t)gen->host << HOST_SHIFT | ++gen->requests;
    return command;
}

struct command *gen_command(struct gen *gen)
{
    unsigned total = 0;
    int i = 0;

    for (int j = 0; j < GENERATOR_COUNT; j++)
        total += weight(gen, j);
    unsigned drawn = below(gen, total);
    for (; drawn >= weight(gen, i); i++)
        drawn -= weight(gen, i);
    struct command *command = make(gen, generators[i].type);
    generators[i].generate(gen, command);
    return command;
}

struct command *gen_setup(struct gen *gen, unsigned n)
{
    static const char *const bodies[] = {
        "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"},\"v\":{\"type\":\"long\"}}}}",
        "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"keyword\"},\"v\":{\"type\":\"long\"}}}}",
    };

    enum { PLAIN = sizeof(bodies) / sizeof(*bodies), TYPED = sizeof(typed_bodies) / sizeof(*typed_bodies) };

    if (n >= PLAIN + (gen->rich ? TYPED : 0))
        return NULL;
    struct command *command = make(gen, COMMAND_INDEX_CREATE);
    command->index.name = slice_from(gen->rich ? rich_indices[n] : indices[n]);
    command->index.body = slice_from(n < PLAIN ? bodies[n] : typed_bodies[n - PLAIN]);
    if (n >= PLAIN)
        command->dialect = DIALECT_5;
    return command;
}
