/* SPDX-License-Identifier: Apache-2.0 */
#include "gen.h"

#include "../lib/zone_sample.h"

#include <stdio.h>

static int below(struct rng *rng, int bound)
{
    return (int)rng_below(rng, (uint64_t)bound);
}

static bool one_in(struct rng *rng, int n)
{
    return below(rng, n) == 0;
}

static void name_index(struct rng *rng, bool five, char *name)
{
    snprintf(name, SIM_NAME, "%s%d", five ? "tx" : "ix", below(rng, five ? 3 : 6));
}

static void name_alias(struct rng *rng, bool five, char *name)
{
    snprintf(name, SIM_NAME, "%s", sim_alias_names[five ? 3 : below(rng, 3)]);
}

/* --- Writes ------------------------------------------------------------------------------------------------------- */

/*
 * Few names, so that places are met again: made anew where something has moved away, and moved back
 * to.
 */
static void make_path(struct rng *rng, int names, char *path)
{
    static const char *const some[] = {"a", "b", "A", "ab", "c.d"};
    size_t used = 0;

    for (int i = 0; i < names; i++)
        used += (size_t)snprintf(path + used, SIM_PATH_MAX - used, "/%s", some[below(rng, one_in(rng, 4) ? 5 : 2)]);
}

static void make_source(struct rng *rng, struct sim_source *source)
{
    unsigned used = 0;

    source->count = 0;
    if (!one_in(rng, 3)) {
        source->field[source->count] = SIM_PATH;
        source->value[source->count++] = 0;
        make_path(rng, 1 + below(rng, 4), source->path);
    }
    for (int i = below(rng, 4); i >= 0; i--) {
        int field = one_in(rng, 3) ? below(rng, SIM_FIELDS - 1) : below(rng, 3);
        if (used & 1u << field)
            continue;
        used |= 1u << field;
        source->field[source->count] = field;
        source->value[source->count++] = field == 0 ? below(rng, 16) : below(rng, 20);
    }
}

/* The newest version of the document that an item names, if it is known by its index's own name. */
static const struct model_version *newest(const struct model *model, const struct sim_item *item)
{
    const struct model_index *index = model_index_at(model, item->index, SIM_NEVER - 1);

    for (int i = 0; index != NULL && i < index->doc_count; i++)
        if (strcmp(index->docs[i].id, item->id) == 0 && (!index->five || strcmp(index->docs[i].type, item->type) == 0))
            return model_version_at(&index->docs[i], SIM_NEVER - 1);
    return NULL;
}

static void make_demand(struct rng *rng, const struct model *model, struct sim_item *item)
{
    const struct model_version *last = newest(model, item);
    int64_t near = below(rng, last == NULL ? 3 : 4);
    int64_t version = last == NULL ? near : last->version - 1;
    if (last != NULL)
        version = version > INT64_MAX - near ? INT64_MAX : version + near;

    switch (below(rng, 8)) {
    case 0: item->if_seq_no = last == NULL || one_in(rng, 3) ? below(rng, 30) : last->seq_no; break;
    case 1: item->version = version < 1 ? 1 : version; break;
    case 2:
    case 3:
    case 4:
        if (item->action == SIM_UPDATE || item->action == SIM_CREATE)
            break;
        item->versioning = (enum sim_versioning)(SIM_EXTERNAL + below(rng, 3));
        item->version = one_in(rng, 60) ? INT64_MAX : version < 0 ? 0 : version;
        break;
    default: break;
    }
}

static void make_update(struct rng *rng, struct sim_item *item)
{
    item->update = one_in(rng, 2) ? SIM_BY_DOC : (enum sim_update)(SIM_SCRIPT_ADD + below(rng, 3));
    item->by = below(rng, 5) + 1;
    item->upsert = one_in(rng, 2);
    item->scripted_upsert = one_in(rng, 4);
    item->detect_noop = !one_in(rng, 4);
}

static void make_item(struct rng *rng, const struct model *model, bool five, struct sim_item *item)
{
    int choice = below(rng, 20);

    *item = (struct sim_item){.five = five, .version = -1, .if_seq_no = -1};
    item->action = choice < 9 ? SIM_INDEX : choice < 11 ? SIM_CREATE : choice < 15 ? SIM_UPDATE : SIM_DELETE;
    name_index(rng, five, item->index);
    if (one_in(rng, 10))
        name_alias(rng, five, item->index);
    else if (one_in(rng, 60))
        snprintf(item->index, SIM_NAME, "Bad");
    if (five)
        snprintf(item->type, SIM_NAME, "%s", one_in(rng, 2) ? "a" : "b");
    snprintf(item->id, SIM_NAME, "%c%d", one_in(rng, 6) ? 'r' : 'd', below(rng, 12));
    if (item->id[0] == 'r')
        snprintf(item->routing, SIM_NAME, "x");
    make_source(rng, &item->source);
    if (item->action == SIM_UPDATE)
        make_update(rng, item);
    else if (item->action != SIM_DELETE)
        item->broken = one_in(rng, 25);
    if (one_in(rng, 3))
        make_demand(rng, model, item);
}

/* Gives a write a name. Returns: whether it is the last one of the name again. */
static bool name_write(struct rng *rng, const struct model *model, struct sim_op *op)
{
    int request = 1 + below(rng, SIM_REQUESTS);
    const struct sim_op *last = &model->requests[request - 1].op;

    if (last->request > 0 && one_in(rng, 2)) {
        *op = *last;
        return true;
    }
    op->request = request;
    op->hash = rng_next(rng);
    return false;
}

static void gen_write(struct rng *rng, const struct model *model, struct sim_op *op)
{
    int size = below(rng, 10);

    if (one_in(rng, 5) && name_write(rng, model, op))
        return;
    op->kind = SIM_WRITE;
    op->item_count = size < 7 ? 1 : size < 9 ? 1 + below(rng, 8) : 1 + below(rng, SIM_ITEMS);
    op->atomic = op->item_count > 1 && one_in(rng, 3);
    bool mixed = one_in(rng, 4); /* items of both dialects in one command */
    for (int i = 0; i < op->item_count; i++)
        make_item(rng, model, mixed ? one_in(rng, 2) : op->five, &op->items[i]);
}

/* --- The catalog -------------------------------------------------------------------------------------------------- */

static void gen_index_create(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_CREATE_INDEX;
    name_index(rng, op->five, op->name);
    op->number = below(rng, 4); /* shards; 0: none named */
    if (one_in(rng, 10))
        snprintf(op->name, SIM_NAME, "Bad");
}

static void gen_index_delete(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_DELETE_INDEX;
    name_index(rng, op->five, op->name);
}

/* A path that is there, or a directory of it; the model's indices of the name are looked at. */
static void find_path(struct rng *rng, const struct model *model, const char *name, char *path)
{
    const struct model_index *index = model_index_at(model, name, SIM_NEVER - 1);

    make_path(rng, 1 + below(rng, 3), path);
    if (index == NULL || index->doc_count == 0 || one_in(rng, 10))
        return;
    for (int i = 0, start = below(rng, index->doc_count); i < index->doc_count; i++) {
        const struct model_version *last =
            model_version_at(&index->docs[(start + i) % index->doc_count], SIM_NEVER - 1);
        if (last == NULL || last->deleted || last->source.path[0] == '\0')
            continue;
        snprintf(path, SIM_PATH_MAX, "%s", last->source.path);
        for (char *end; one_in(rng, 2) && (end = strrchr(path, '/')) != path;)
            *end = '\0';
        return;
    }
}

/* Names in the longest path of an index. */
static int depth_of(const char *path)
{
    int depth = 0;

    for (; *path != '\0'; path++)
        depth += *path == '/';
    return depth;
}

static void gen_rename(struct rng *rng, const struct model *model, struct sim_op *op)
{
    op->kind = SIM_RENAME;
    snprintf(op->name, SIM_NAME, "%s", op->five ? "tx0" : one_in(rng, 4) ? "ix1" : "ix0");
    if (one_in(rng, 15))
        name_index(rng, op->five, op->name);
    else if (one_in(rng, 15))
        name_alias(rng, op->five, op->name);
    find_path(rng, model, op->name, op->from);
    if (one_in(rng, 4))
        op->if_seq_no = one_in(rng, 3) ? (int64_t)below(rng, 30) : model_seq_no_at(model, op->name, op->from);
    /* A path grows by at most one name, so that the tree below it stays shallow. */
    int depth = depth_of(op->from) + below(rng, 3) - 1;
    make_path(rng, depth < 1 ? 1 : depth > 6 ? 6 : depth, op->to);
    if (one_in(rng, 15))
        snprintf(op->to, SIM_PATH_MAX, "%.100s/a", op->from);
}

static void gen_index_state(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_SET_STATE;
    name_index(rng, op->five, op->name);
    op->flag = one_in(rng, 3);
}

static void gen_mapping_put(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_PUT_MAPPING;
    name_index(rng, op->five, op->name);
    op->number = 1 + below(rng, SIM_FIELDS - 2);
}

static void gen_settings_put(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_PUT_SETTINGS;
    name_index(rng, op->five, op->name);
    op->number = below(rng, 4);
    op->gc_deletes = -1;
}

void gen_gc_deletes(struct rng *rng, struct sim_op *op)
{
    if (op->kind == SIM_PUT_SETTINGS && one_in(rng, 2))
        op->gc_deletes = below(rng, SIM_GC_DELETES);
}

static void gen_aliases_update(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_UPDATE_ALIASES;
    op->action_count = 1 + below(rng, SIM_ACTIONS);
    for (int i = 0; i < op->action_count; i++) {
        struct sim_alias_action *action = &op->actions[i];
        action->add = !one_in(rng, 3);
        action->write = one_in(rng, 3);
        name_index(rng, op->five, action->index);
        name_alias(rng, op->five, action->alias);
    }
}

static void gen_template_put(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_PUT_TEMPLATE;
    snprintf(op->name, SIM_NAME, "t%d", below(rng, 2));
    op->number = 1 + below(rng, 5);
    op->action_count = below(rng, 3); /* its order */
}

static void gen_template_delete(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_DELETE_TEMPLATE;
    snprintf(op->name, SIM_NAME, "t%d", below(rng, 2));
}

static void gen_script_put(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_PUT_SCRIPT;
    snprintf(op->name, SIM_NAME, "sc%d", below(rng, 2));
}

static void gen_script_delete(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_DELETE_SCRIPT;
    snprintf(op->name, SIM_NAME, "sc%d", below(rng, 2));
}

static void gen_file_scripts(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_PUT_FILE_SCRIPTS;
    op->number = below(rng, 3);
}

static void gen_cluster_settings_put(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_PUT_CLUSTER_SETTINGS;
    op->number = below(rng, 5);
}

static void gen_zones(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_ZONES;
    op->number = below(rng, 5);
}

static void gen_limits(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)model;
    op->kind = SIM_LIMITS;
    op->number = below(rng, 5);
}

static void gen_tick(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)rng;
    (void)model;
    op->kind = SIM_TICK;
}

static void gen_restart(struct rng *rng, const struct model *model, struct sim_op *op)
{
    (void)rng;
    (void)model;
    op->kind = SIM_RESTART;
}

typedef void generator(struct rng *rng, const struct model *model, struct sim_op *op);

/* How often each row is drawn. */
static const struct {
    enum command_type type;
    int weight;
    generator *generate;
} generators[] = {
    {COMMAND_WRITE, 120, gen_write},
    {COMMAND_RENAME, 30, gen_rename},
    {COMMAND_INDEX_CREATE, 6, gen_index_create},
    {COMMAND_INDEX_DELETE, 4, gen_index_delete},
    {COMMAND_INDEX_STATE, 6, gen_index_state},
    {COMMAND_MAPPING_PUT, 4, gen_mapping_put},
    {COMMAND_SETTINGS_PUT, 3, gen_settings_put},
    {COMMAND_ALIASES_UPDATE, 8, gen_aliases_update},
    {COMMAND_TEMPLATE_PUT, 2, gen_template_put},
    {COMMAND_TEMPLATE_DELETE, 1, gen_template_delete},
    {COMMAND_SCRIPT_PUT, 2, gen_script_put},
    {COMMAND_SCRIPT_DELETE, 1, gen_script_delete},
    {COMMAND_FILE_SCRIPTS, 1, gen_file_scripts},
    {COMMAND_CLUSTER_SETTINGS_PUT, 1, gen_cluster_settings_put},
    {COMMAND_ZONES, 1, gen_zones},
    {COMMAND_LIMITS, 1, gen_limits},
    {COMMAND_TICK, 2, gen_tick},
    {COMMAND_RESTART, 1, gen_restart},
};

enum { GENERATOR_COUNT = sizeof(generators) / sizeof(generators[0]) };

void gen_op(struct rng *rng, const struct model *model, struct sim_op *op)
{
    int total = 0, drawn;

    *op = (struct sim_op){.five = one_in(rng, 3), .if_seq_no = -1};
    for (int i = 0; i < GENERATOR_COUNT; i++)
        total += generators[i].weight;
    drawn = below(rng, total);
    for (int i = 0; i < GENERATOR_COUNT; i++) {
        drawn -= generators[i].weight;
        if (drawn < 0) {
            generators[i].generate(rng, model, op);
            return;
        }
    }
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static struct slice copy(struct arena *arena, const char *text)
{
    return arena_copy(arena, slice_from(text));
}

static struct slice print_source(struct arena *arena, const struct sim_source *source)
{
    char text[512];

    model_print(source, text, sizeof(text));
    return copy(arena, text);
}

static const struct write_update *make_write_update(struct arena *arena, const struct sim_item *item)
{
    static const char *const scripts[] = {
        [SIM_SCRIPT_ADD] = "if (ctx._source.n == null) { ctx._source.n = 0 } ctx._source.n += params.by",
        [SIM_SCRIPT_DELETE] = "ctx.op = 'delete'",
        [SIM_SCRIPT_NONE] = "ctx.op = 'none'",
    };
    struct write_update *update = arena_zalloc(arena, sizeof(*update));

    update->want_source = true;
    update->detect_noop = item->detect_noop;
    update->scripted_upsert = item->scripted_upsert;
    if (item->update == SIM_BY_DOC) {
        update->doc = print_source(arena, &item->source);
        update->doc_as_upsert = item->upsert;
        return update;
    }
    update->script_lang = SLICE_LIT("painless");
    update->script_source = slice_from(scripts[item->update]);
    update->script_params = arena_printf(arena, "{\"by\":%d}", item->by);
    if (item->upsert)
        update->upsert = print_source(arena, &item->source);
    return update;
}

static void fill_item(struct arena *arena, const struct sim_item *item, struct write_item *to)
{
    static const enum write_op ops[] = {WRITE_INDEX, WRITE_CREATE, WRITE_UPDATE, WRITE_DELETE};
    static const enum version_type types[] = {VERSION_INTERNAL, VERSION_EXTERNAL, VERSION_EXTERNAL_GTE, VERSION_FORCE};

    *to = (struct write_item){
        .op = ops[item->action],
        .version_type = types[item->versioning],
        .dialect = item->five ? DIALECT_5 : DIALECT_7,
        .index = copy(arena, item->index),
        .type = copy(arena, item->type),
        .id = copy(arena, item->id),
        .routing = copy(arena, item->routing),
        .version = item->version < 0 ? VERSION_ANY : item->version,
        .if_seq_no = item->if_seq_no < 0 ? SEQ_NO_ANY : item->if_seq_no,
        .if_primary_term = item->if_seq_no < 0 ? 0 : 1,
    };
    if (item->action == SIM_UPDATE)
        to->update = make_write_update(arena, item);
    else if (item->action != SIM_DELETE)
        to->source = item->broken ? SLICE_LIT("{\"n\":") : print_source(arena, &item->source);
}

static void fill_write(const struct sim_op *op, struct command *command)
{
    command->write.items = arena_alloc(&command->arena, (size_t)op->item_count * sizeof(struct write_item));
    command->write.item_count = (size_t)op->item_count;
    command->write.atomic = op->atomic;
    if (op->request > 0)
        command->write.request = (struct write_request){arena_printf(&command->arena, "r%d", op->request), op->hash, 0};
    for (int i = 0; i < op->item_count; i++)
        fill_item(&command->arena, &op->items[i], &command->write.items[i]);
}

/*
 * The settings and mappings of a new index: a tree from the first on, in one of the ways to say so;
 * or none.
 */
static void print_index(const struct sim_op *op, struct arena *arena, struct slice *ret_body)
{
    static const char guide[] =
        "{\"type\":\"keyword\",\"fields\":{\"tree\":{\"type\":\"text\",\"analyzer\":\"paths\"}}}";
    static const char plain[] = "{\"type\":\"path\"}";
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);

    if (op->number == 0 && !model_is_tree_name(op->name))
        return;
    buf_printf(&body, "{\"settings\":{\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}");
    if (op->number > 0)
        buf_printf(&body, ",\"number_of_shards\":%d", op->number);
    buf_printf(&body, "}");
    if (model_is_tree_name(op->name)) {
        const char *path = op->number % 2 == 0 ? guide : plain;
        buf_printf(&body, ",\"mappings\":{");
        for (int i = 0; i < 2 && op->five; i++)
            buf_printf(&body, "%s\"%c\":{\"properties\":{\"path\":%s}}", i == 0 ? "" : ",", 'a' + i, path);
        if (!op->five)
            buf_printf(&body, "\"properties\":{\"path\":%s}", path);
        buf_printf(&body, "}");
    }
    buf_printf(&body, "}");
    *ret_body = arena_copy(arena, buf_as_slice(&body));
}

static void fill_rename(const struct sim_op *op, struct command *command)
{
    command->rename.index = copy(&command->arena, op->name);
    command->rename.from = copy(&command->arena, op->from);
    command->rename.to = copy(&command->arena, op->to);
    command->rename.if_seq_no = op->if_seq_no < 0 ? SEQ_NO_ANY : op->if_seq_no;
    command->rename.if_primary_term = op->if_seq_no < 0 ? 0 : 1;
}

static void fill_index(const struct sim_op *op, struct command *command)
{
    struct arena *arena = &command->arena;
    struct index_command *index = &command->index;

    index->name = copy(arena, op->name);
    index->close = op->flag;
    if (op->kind == SIM_CREATE_INDEX)
        print_index(op, arena, &index->body);
    else if (op->kind == SIM_PUT_MAPPING)
        index->body = arena_printf(arena, "{\"properties\":{\"%s\":{\"type\":\"long\"}}}", sim_field_names[op->number]);
    else if (op->kind == SIM_PUT_SETTINGS)
        index->body = op->gc_deletes < 0 ? arena_printf(arena, "{\"number_of_replicas\":%d}", op->number)
                                         : arena_printf(arena, "{\"number_of_replicas\":%d,\"gc_deletes\":%s}",
                                                        op->number, sim_gc_deletes[op->gc_deletes].text);
    if (op->kind == SIM_PUT_MAPPING && op->five)
        index->type = SLICE_LIT("a");
}

static void fill_aliases(const struct sim_op *op, struct command *command)
{
    struct aliases_command *aliases = &command->aliases;

    aliases->action_count = (size_t)op->action_count;
    aliases->actions = arena_zalloc(&command->arena, (size_t)op->action_count * sizeof(*aliases->actions));
    for (int i = 0; i < op->action_count; i++) {
        const struct sim_alias_action *from = &op->actions[i];
        struct alias_action *to = &aliases->actions[i];
        to->op = from->add ? ALIAS_ADD : ALIAS_REMOVE;
        to->index = copy(&command->arena, from->index);
        to->alias = copy(&command->arena, from->alias);
        if (from->add && from->write)
            to->body = SLICE_LIT("{\"is_write_index\":true}");
    }
}

static void fill_object(const struct sim_op *op, struct command *command)
{
    struct arena *arena = &command->arena;
    struct object_command *object = &command->object;

    object->name = copy(arena, op->name);
    if (op->kind == SIM_PUT_TEMPLATE)
        object->body = arena_printf(
            arena, "{\"index_patterns\":[\"ix4\",\"ix5*\"],\"order\":%d,\"settings\":{\"number_of_shards\":%d}}",
            op->action_count, op->number);
    else if (op->kind == SIM_PUT_SCRIPT)
        object->body = SLICE_LIT("{\"script\":{\"lang\":\"painless\",\"source\":\"ctx._source.n = 1\"}}");
    else if (op->kind == SIM_PUT_CLUSTER_SETTINGS)
        object->body = arena_printf(arena, "{\"transient\":{\"cluster.metadata.b%d\":%d}}", op->number, op->number);
}

/* Releases out of order, and one that is invalid. */
static void fill_zones(const struct sim_op *op, struct command *command)
{
    struct buf zones = BUF_INIT(BUF_UNLIMITED);
    char version[8];

    snprintf(version, sizeof(version), "202%da", op->number);
    zone_sample(&zones, version);
    command->object.body = op->number == 0 ? SLICE_LIT("TLZ1") : arena_copy(&command->arena, buf_as_slice(&zones));
    buf_deinit(&zones);
}

/* Limits that no workload reaches, and some that are invalid. */
static void fill_limits(const struct sim_op *op, struct command *command)
{
    command->limits.limits = core_limits_default();
    command->limits.limits.document_bytes_max *= (size_t)op->number;
}

static void fill_file_scripts(const struct sim_op *op, struct command *command)
{
    struct file_scripts_command *files = &command->file_scripts;

    files->script_count = (size_t)op->number;
    files->scripts = arena_zalloc(&command->arena, (files->script_count + 1) * sizeof(*files->scripts));
    for (size_t i = 0; i < files->script_count; i++)
        files->scripts[i] = (struct file_script){arena_printf(&command->arena, "f%zu", i), SLICE_LIT("groovy"),
                                                 SLICE_LIT("ctx.op = 'none'")};
}

static const enum command_type types[SIM_KIND_COUNT] = {
    [SIM_WRITE] = COMMAND_WRITE,
    [SIM_CREATE_INDEX] = COMMAND_INDEX_CREATE,
    [SIM_DELETE_INDEX] = COMMAND_INDEX_DELETE,
    [SIM_RENAME] = COMMAND_RENAME,
    [SIM_SET_STATE] = COMMAND_INDEX_STATE,
    [SIM_PUT_MAPPING] = COMMAND_MAPPING_PUT,
    [SIM_PUT_SETTINGS] = COMMAND_SETTINGS_PUT,
    [SIM_UPDATE_ALIASES] = COMMAND_ALIASES_UPDATE,
    [SIM_PUT_TEMPLATE] = COMMAND_TEMPLATE_PUT,
    [SIM_DELETE_TEMPLATE] = COMMAND_TEMPLATE_DELETE,
    [SIM_PUT_SCRIPT] = COMMAND_SCRIPT_PUT,
    [SIM_DELETE_SCRIPT] = COMMAND_SCRIPT_DELETE,
    [SIM_PUT_FILE_SCRIPTS] = COMMAND_FILE_SCRIPTS,
    [SIM_PUT_CLUSTER_SETTINGS] = COMMAND_CLUSTER_SETTINGS_PUT,
    [SIM_ZONES] = COMMAND_ZONES,
    [SIM_LIMITS] = COMMAND_LIMITS,
    [SIM_TICK] = COMMAND_TICK,
    [SIM_RESTART] = COMMAND_RESTART,
};

struct command *gen_command(const struct sim_op *op)
{
    struct command *command = command_new(types[op->kind], op->five ? DIALECT_5 : DIALECT_7);

    switch (op->kind) {
    case SIM_WRITE: fill_write(op, command); break;
    case SIM_CREATE_INDEX:
    case SIM_DELETE_INDEX:
    case SIM_SET_STATE:
    case SIM_PUT_MAPPING:
    case SIM_PUT_SETTINGS: fill_index(op, command); break;
    case SIM_RENAME: fill_rename(op, command); break;
    case SIM_UPDATE_ALIASES: fill_aliases(op, command); break;
    case SIM_PUT_FILE_SCRIPTS: fill_file_scripts(op, command); break;
    case SIM_ZONES: fill_zones(op, command); break;
    case SIM_LIMITS: fill_limits(op, command); break;
    case SIM_TICK:
    case SIM_RESTART: break;
    default: fill_object(op, command); break;
    }
    return command;
}

void gen_describe(const struct sim_op *op, char *text, size_t size)
{
    static const char *const actions[] = {"index", "create", "update", "delete"};
    size_t used = (size_t)snprintf(text, size, "%s %s%s number %d", command_name(types[op->kind]), op->name,
                                   op->atomic ? "atomic" : "", op->number);

    if (op->kind == SIM_PUT_SETTINGS && op->gc_deletes >= 0)
        used += (size_t)snprintf(text + used, size - used, " gc_deletes %s", sim_gc_deletes[op->gc_deletes].text);
    if (op->request > 0)
        used += (size_t)snprintf(text + used, size - used, " request %d hash %llx", op->request,
                                 (unsigned long long)op->hash);
    if (op->kind == SIM_RENAME)
        used +=
            (size_t)snprintf(text + used, size - used, " %s to %s if %lld", op->from, op->to, (long long)op->if_seq_no);
    for (int i = 0; i < op->item_count && used < size; i++) {
        const struct sim_item *item = &op->items[i];
        char source[512];
        model_print(&item->source, source, sizeof(source));
        used += (size_t)snprintf(
            text + used, size - used, "\n    %s %s/%s/%s %s version %d:%lld seq_no %lld update %d%s%s%s",
            actions[item->action], item->index, item->type, item->id, source, item->versioning,
            (long long)item->version, (long long)item->if_seq_no, item->update, item->broken ? " broken" : "",
            item->upsert ? " upsert" : "", item->scripted_upsert ? " scripted" : "");
    }
    for (int i = 0; i < op->action_count && op->kind == SIM_UPDATE_ALIASES && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "\n    %s %s %s%s", op->actions[i].add ? "add" : "remove",
                                 op->actions[i].index, op->actions[i].alias, op->actions[i].write ? " write" : "");
}
