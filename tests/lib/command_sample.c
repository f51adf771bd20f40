/* SPDX-License-Identifier: Apache-2.0 */
#include "command_sample.h"

#include "base/check.h"
#include "core/catalog/catalog.h"

/* Visits the inputs of a command, to fill or to print them. */
struct sample_walk {
    struct buf *text;    /* for printing; NULL: filling */
    struct rng *rng;     /* for filling at random */
    struct arena *arena; /* for filling */
    uint64_t count;      /* number of values so far */
    const char *in;      /* name of the enclosing structure */
    size_t at;           /* index in the enclosing array */
};

static bool is_printing(const struct sample_walk *walk)
{
    return walk->text != NULL;
}

static void print_name(struct sample_walk *walk, const char *name)
{
    if (walk->in != NULL)
        buf_printf(walk->text, "%s %zu ", walk->in, walk->at);
    buf_printf(walk->text, "%s ", name);
}

static uint64_t odd_number(struct rng *rng)
{
    uint64_t number = rng_next(rng);

    switch (rng_below(rng, 4)) {
    case 0: return 0;
    case 1: return number % 200;
    case 2: return UINT64_MAX - number % 2;
    default: return number >> rng_below(rng, 64);
    }
}

static void on_number(struct sample_walk *walk, const char *name, uint64_t *value)
{
    if (!is_printing(walk)) {
        *value = walk->rng != NULL ? odd_number(walk->rng) : 1000 + ++walk->count;
        return;
    }
    print_name(walk, name);
    buf_printf(walk->text, "%llu\n", (unsigned long long)*value);
}

static void on_signed(struct sample_walk *walk, const char *name, int64_t *value)
{
    if (!is_printing(walk)) {
        *value = walk->rng != NULL ? (int64_t)odd_number(walk->rng) : -1000 - (int64_t)++walk->count;
        return;
    }
    print_name(walk, name);
    buf_printf(walk->text, "%lld\n", (long long)*value);
}

static unsigned on_enum(struct sample_walk *walk, const char *name, unsigned value, unsigned first, unsigned count)
{
    if (!is_printing(walk))
        return walk->rng != NULL ? first + (unsigned)rng_below(walk->rng, count - first) : count - 1;
    print_name(walk, name);
    buf_printf(walk->text, "%u\n", value);
    return value;
}

static void on_bool(struct sample_walk *walk, const char *name, bool *value)
{
    *value = on_enum(walk, name, *value, 0, 2) != 0;
}

static struct slice odd_slice(struct sample_walk *walk)
{
    /* Names that commands may share, and values that some inputs require. */
    static const char *const known[] = {
        "fs",
        "ix",
        "*",
        "s1",
        "s2",
        "t1",
        "1",
        "2",
        "a",
        "/a",
        "/a/b",
        "_doc",
        "painless",
        "{}",
        "{\"n\":1}",
        "{\"path\":\"/a/b\"}",
        "{\"index_patterns\":[\"ix\"],\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}",
        "{\"script\":{\"lang\":\"painless\",\"source\":\"ctx._source.n = 1\"}}",
        "ctx._source.n += 1",
        "ctx.op = 'delete'",
    };
    uint64_t kind = rng_below(walk->rng, 12);
    char bytes[300];

    if (kind >= 6)
        return slice_from(known[rng_below(walk->rng, sizeof(known) / sizeof(*known))]);

    if (kind < 2)
        return SLICE_NONE;
    size_t len = kind == 2 ? 0 : (size_t)rng_below(walk->rng, kind == 3 ? sizeof(bytes) : 12);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)rng_next(walk->rng);
    return arena_copy(walk->arena, slice_make(bytes, len));
}

static void on_slice(struct sample_walk *walk, const char *name, struct slice *value)
{
    if (!is_printing(walk)) {
        *value = walk->rng != NULL ? odd_slice(walk) : slice_from(name);
        return;
    }
    print_name(walk, name);
    if (value->data == NULL) {
        buf_lit(walk->text, "absent\n");
        return;
    }
    buf_lit(walk->text, "'");
    buf_escape_line(walk->text, *value);
    buf_lit(walk->text, "'\n");
}

static void *on_array(struct sample_walk *walk, const char *name, void *items, size_t *count, size_t size)
{
    if (!is_printing(walk)) {
        *count = walk->rng != NULL ? (size_t)rng_below(walk->rng, 4) : 2;
        return *count == 0 ? NULL : arena_zalloc(walk->arena, *count * size);
    }
    print_name(walk, name);
    buf_printf(walk->text, "%zu\n", *count);
    return items;
}

/* --- What commands have ------------------------------------------------------------------------------------------- */

/* One that the core may take over: README.md of core, "Commands as bytes", 5. */
static void make_ready(struct sample_walk *walk, struct update_ready *ready)
{
    static const struct update_ready some[] = {
        {.op = UPDATE_CREATE, .source = SLICE_LIT("{\"n\":1}"), .version = -1, .seq_no = SEQ_NO_ANY},
        {.op = UPDATE_NOOP, .version = -1, .seq_no = SEQ_NO_ANY},
        {.op = UPDATE_INDEX, .source = SLICE_LIT("{\"n\":2}"), .read_ts = 7, .version = 3, .seq_no = 2},
        {.op = UPDATE_DELETE, .read_ts = 8, .version = 4, .seq_no = 3},
    };
    *ready = some[walk->rng == NULL ? 2 : rng_below(walk->rng, sizeof some / sizeof *some)];
    ready->given = walk->rng == NULL || rng_below(walk->rng, 4) == 0;
    if (!ready->given)
        *ready = (struct update_ready){0};
}

/* Of version 16. */
static void on_script_outside(struct sample_walk *walk, struct write_update *update)
{
    struct update_ready *ready = &update->ready;
    if (!is_printing(walk))
        make_ready(walk, ready);
    if (is_printing(walk) && !ready->given && !update->script_postpones)
        return;
    on_bool(walk, "script_postpones", &update->script_postpones);
    if (!is_printing(walk))
        return;
    on_enum(walk, "ready_op", ready->op, 0, UPDATE_OP_COUNT);
    on_slice(walk, "ready_source", &ready->source);
    on_number(walk, "ready_read_ts", &ready->read_ts);
    on_signed(walk, "ready_version", &ready->version);
    on_signed(walk, "ready_seq_no", &ready->seq_no);
}

static void on_update(struct sample_walk *walk, struct write_update *update)
{
    on_slice(walk, "doc", &update->doc);
    on_slice(walk, "upsert", &update->upsert);
    on_slice(walk, "script_source", &update->script_source);
    on_slice(walk, "script_id", &update->script_id);
    on_slice(walk, "script_file", &update->script_file);
    on_slice(walk, "script_lang", &update->script_lang);
    on_slice(walk, "script_params", &update->script_params);
    on_number(walk, "script_steps", &update->script_steps);
    on_bool(walk, "scripted_upsert", &update->scripted_upsert);
    on_bool(walk, "doc_as_upsert", &update->doc_as_upsert);
    on_bool(walk, "detect_noop", &update->detect_noop);
    on_bool(walk, "want_source", &update->want_source);
    on_bool(walk, "lone", &update->single);
    on_script_outside(walk, update);
}

/* Returns: whether an item is a plain one, as half of the items are. */
static bool is_plain(struct sample_walk *walk, struct write_item *item)
{
    if (is_printing(walk) || walk->rng == NULL || rng_below(walk->rng, 2) == 0)
        return false;
    item->version = VERSION_ANY;
    item->if_seq_no = SEQ_NO_ANY;
    return true;
}

static void on_demands(struct sample_walk *walk, struct write_item *item)
{
    on_slice(walk, "routing", &item->routing);
    on_slice(walk, "lease", &item->lease);
    on_signed(walk, "version", &item->version);
    on_signed(walk, "if_seq_no", &item->if_seq_no);
    on_signed(walk, "if_primary_term", &item->if_primary_term);
}

static void on_item(struct sample_walk *walk, struct write_item *item)
{
    item->op = (enum write_op)on_enum(walk, "op", item->op, 0, WRITE_OP_COUNT);
    if (!is_printing(walk) && walk->rng == NULL && walk->at == 0)
        item->op = WRITE_UPDATE; /* the first of the full items */
    item->version_type = (enum version_type)on_enum(walk, "version_type", item->version_type, 0, VERSION_TYPE_COUNT);
    item->dialect = (enum dialect)on_enum(walk, "dialect", item->dialect, 0, DIALECT_COUNT);
    on_bool(walk, "require_alias", &item->require_alias);
    on_bool(walk, "id_generated", &item->id_generated);
    on_slice(walk, "index", &item->index);
    on_slice(walk, "type", &item->type);
    on_slice(walk, "id", &item->id);
    on_slice(walk, "source", &item->source);
    if (!is_plain(walk, item))
        on_demands(walk, item);
    if (item->op != WRITE_UPDATE)
        return;
    if (!is_printing(walk))
        item->update = arena_zalloc(walk->arena, sizeof(*item->update));
    struct write_update update = *item->update;
    on_update(walk, &update);
    if (!is_printing(walk))
        memcpy((void *)(uintptr_t)item->update, &update, sizeof(update));
}

static void on_items(struct sample_walk *walk, const char *name, struct write_item **items, size_t *count)
{
    *items = on_array(walk, name, *items, count, sizeof(**items));
    walk->in = name;
    for (walk->at = 0; walk->at < *count; walk->at++)
        on_item(walk, &(*items)[walk->at]);
    walk->in = NULL;
}

/* The request of a write; one without an id has nothing else. */
static void on_request(struct sample_walk *walk, struct write_request *request)
{
    if (is_printing(walk) && request->id.len == 0)
        return;
    on_slice(walk, "request_id", &request->id);
    if (request->id.len == 0) {
        *request = (struct write_request){0};
        return;
    }
    on_number(walk, "request_hash", &request->hash);
    on_number(walk, "request_part", &request->part);
    if (!is_printing(walk) || request->divided) /* which commands before version 22 do not have */
        on_bool(walk, "request_divided", &request->divided);
}

static void on_write(struct sample_walk *walk, struct write_command *write)
{
    on_bool(walk, "atomic", &write->atomic);
    on_request(walk, &write->request);
    on_items(walk, "items", &write->items, &write->item_count);
}

static void on_index(struct sample_walk *walk, struct index_command *index)
{
    on_slice(walk, "name", &index->name);
    on_slice(walk, "body", &index->body);
    on_slice(walk, "type", &index->type);
    on_slice(walk, "uuid", &index->uuid);
    on_bool(walk, "include_type_name", &index->include_type_name);
    on_bool(walk, "close", &index->close);
    on_bool(walk, "preserve_existing", &index->preserve_existing);
}

static void on_aliases(struct sample_walk *walk, struct aliases_command *aliases)
{
    aliases->actions = on_array(walk, "actions", aliases->actions, &aliases->action_count, sizeof(*aliases->actions));
    walk->in = "actions";
    for (walk->at = 0; walk->at < aliases->action_count; walk->at++) {
        struct alias_action *action = &aliases->actions[walk->at];
        action->op = (enum alias_op)on_enum(walk, "op", action->op, 0, ALIAS_OP_COUNT);
        on_slice(walk, "index", &action->index);
        on_slice(walk, "alias", &action->alias);
        on_slice(walk, "body", &action->body);
    }
    walk->in = NULL;
}

static void on_object(struct sample_walk *walk, struct object_command *object)
{
    on_slice(walk, "name", &object->name);
    on_slice(walk, "body", &object->body);
    on_slice(walk, "lang", &object->lang);
    on_bool(walk, "create", &object->create);
    on_bool(walk, "compiles", &object->compiles);
    object->context = (enum script_context)on_enum(walk, "context", object->context, 0, SCRIPT_CONTEXT_COUNT);
}

static void on_file_scripts(struct sample_walk *walk, struct file_scripts_command *files)
{
    files->scripts = on_array(walk, "scripts", files->scripts, &files->script_count, sizeof(*files->scripts));
    walk->in = "scripts";
    for (walk->at = 0; walk->at < files->script_count; walk->at++) {
        on_slice(walk, "name", &files->scripts[walk->at].name);
        on_slice(walk, "lang", &files->scripts[walk->at].lang);
        on_slice(walk, "source", &files->scripts[walk->at].source);
    }
    walk->in = NULL;
}

static void on_session(struct sample_walk *walk, struct session_command *session)
{
    on_slice(walk, "id", &session->id);
    on_slice(walk, "name", &session->name);
    on_number(walk, "ttl_us", &session->ttl_us);
    on_number(walk, "attachment", &session->attachment);
    on_bool(walk, "force", &session->force);
    if (!is_printing(walk) || session->if_detached) /* not in commands before version 11 */
        on_bool(walk, "if_detached", &session->if_detached);
    on_items(walk, "on_expire", &session->on_expire, &session->on_expire_count);
}

static void on_options(struct sample_walk *walk, const struct catalog_options **options)
{
    bool there = *options != NULL;

    on_bool(walk, "expression", &there);
    if (!there)
        return;
    struct catalog_options copy = *options != NULL ? **options : (struct catalog_options){0};
    on_bool(walk, "ignore_unavailable", &copy.ignore_unavailable);
    on_bool(walk, "allow_no_indices", &copy.allow_no_indices);
    on_bool(walk, "expand_open", &copy.expand_open);
    on_bool(walk, "expand_closed", &copy.expand_closed);
    on_bool(walk, "expand_hidden", &copy.expand_hidden);
    on_bool(walk, "allow_closed", &copy.allow_closed);
    on_bool(walk, "refuse_aliases", &copy.refuse_aliases);
    if (is_printing(walk))
        return;
    struct catalog_options *made = arena_alloc(walk->arena, sizeof(*made));
    *made = copy;
    *options = made;
}

static void on_targets(struct sample_walk *walk, struct lock_target **targets, size_t *count)
{
    *targets = on_array(walk, "targets", *targets, count, sizeof(**targets));
    walk->in = "targets";
    for (walk->at = 0; walk->at < *count; walk->at++) {
        struct lock_target *target = &(*targets)[walk->at];
        target->mode = (enum lock_mode)on_enum(walk, "mode", target->mode, LOCK_S, LOCK_MODE_COUNT);
        on_slice(walk, "index", &target->index);
        on_slice(walk, "path", &target->path);
        on_slice(walk, "type", &target->type);
        on_slice(walk, "id", &target->id);
        on_options(walk, &target->expression);
        on_bool(walk, "script", &target->script);
    }
    walk->in = NULL;
}

static void on_lock(struct sample_walk *walk, struct lock_command *lock)
{
    on_targets(walk, &lock->targets, &lock->target_count);
}

static void on_txn_lock(struct sample_walk *walk, struct txn_lock_command *lock)
{
    on_targets(walk, &lock->targets, &lock->target_count);
}

static void on_txn(struct sample_walk *walk, struct txn_command *txn)
{
    on_slice(walk, "id", &txn->id);
    on_bool(walk, "force", &txn->force);
    txn->mode = (enum txn_mode)on_enum(walk, "mode", txn->mode, 0, TXN_MODE_COUNT);
    on_number(walk, "idle_us", &txn->idle_us);
    on_slice(walk, "retry_of", &txn->retry_of);
    on_bool(walk, "of_host", &txn->of_host);
}

static void on_finding(struct sample_walk *walk, const char *name, struct path_finding *finding)
{
    walk->in = name;
    on_number(walk, "ts", &finding->ts);
    on_slice(walk, "document", &finding->document);
    on_slice(walk, "below", &finding->below);
    walk->in = NULL;
}

static void on_rename(struct sample_walk *walk, struct rename_command *rename)
{
    on_slice(walk, "index", &rename->index);
    on_slice(walk, "from", &rename->from);
    on_slice(walk, "to", &rename->to);
    on_signed(walk, "if_seq_no", &rename->if_seq_no);
    on_signed(walk, "if_primary_term", &rename->if_primary_term);
    bool limited = !rename->single_step;
    if (is_printing(walk) && !limited)
        return; /* older versions have no more */
    on_finding(walk, "found_from", &rename->found_from);
    on_finding(walk, "found_to", &rename->found_to);
    on_bool(walk, "limited", &limited);
    rename->single_step = !limited;
}

static void on_cancel(struct sample_walk *walk, struct cancel_command *cancel)
{
    on_number(walk, "request", &cancel->request);
    on_bool(walk, "whole", &cancel->single_step);
    if (!is_printing(walk) || cancel->keeps_places) /* not in commands before version 15 */
        on_bool(walk, "keeps places", &cancel->keeps_places);
}

static void on_status(struct sample_walk *walk, struct status_command *status)
{
    (void)walk;
    (void)status;
}

static void on_places(struct sample_walk *walk, struct places_command *places)
{
    on_slice(walk, "index", &places->index);
    walk->in = "paths";
    for (walk->at = 0; walk->at < sizeof places->paths / sizeof *places->paths; walk->at++)
        on_slice(walk, "path", &places->paths[walk->at]);
    walk->in = NULL;
}

static void on_maintain(struct sample_walk *walk, struct maintain_command *maintain)
{
    uint64_t keys_max = maintain->keys_max;

    on_number(walk, "cut_off", &maintain->history_low);
    on_number(walk, "tombstones", &maintain->tombstones);
    on_number(walk, "outcomes", &maintain->outcomes);
    on_number(walk, "keys_max", &keys_max);
    maintain->keys_max = (size_t)keys_max;
    maintain->stale = on_array(walk, "stale", maintain->stale, &maintain->stale_count, sizeof(*maintain->stale));
    walk->in = "stale";
    for (walk->at = 0; walk->at < maintain->stale_count; walk->at++) {
        on_slice(walk, "key", &maintain->stale[walk->at]);
        if (maintain->stale[walk->at].data == NULL)
            maintain->stale[walk->at] = SLICE_LIT("");
    }
    walk->in = NULL;
}

static void on_tick(struct sample_walk *walk, struct tick_command *tick)
{
    on_number(walk, "heard", &tick->barrier_clock);
}

static void on_size(struct sample_walk *walk, const char *name, size_t *value)
{
    uint64_t number = *value;

    on_number(walk, name, &number);
    *value = (size_t)number;
}

static void on_limits(struct sample_walk *walk, struct limits_command *command)
{
    struct core_limits *limits = &command->limits;
    uint64_t depth = limits->script.depth_max;

    on_size(walk, "sessions_max", &limits->sessions_max);
    on_size(walk, "locks_per_session_max", &limits->locks_per_session_max);
    on_size(walk, "ephemeral_max", &limits->ephemeral_max);
    on_size(walk, "ephemeral_piece", &limits->ephemeral_batch);
    on_size(walk, "sweep_piece", &limits->purge_batch);
    on_size(walk, "waiters_max", &limits->waiters_max);
    on_size(walk, "transactions_max", &limits->transactions_max);
    on_size(walk, "transaction_bytes_max", &limits->transaction_bytes_max);
    on_size(walk, "transaction_held_max", &limits->transaction_held_max);
    on_size(walk, "transaction_changes_max", &limits->transaction_changes_max);
    on_size(walk, "document_bytes_max", &limits->document_bytes_max);
    on_size(walk, "stale_documents_min", &limits->stale_documents_min);
    on_size(walk, "script memory_bytes_max", &limits->script.memory_bytes_max);
    on_number(walk, "script steps_max", &limits->script.steps_max);
    on_number(walk, "script depth_max", &depth);
    limits->script.depth_max = (unsigned)depth;
}

static void on_feed(struct sample_walk *walk, struct feed_command *feed)
{
    on_bool(walk, "off", &feed->off);
    on_number(walk, "cut", &feed->cut);
}

static void on_mark(struct sample_walk *walk, struct mark_command *mark)
{
    on_number(walk, "mark", &mark->ceiling);
    on_slice(walk, "kept", &mark->payload);
    if (mark->payload.data == NULL)
        mark->payload = SLICE_LIT("");
    on_number(walk, "chain", &mark->chain);
    if (walk->text == NULL || mark->build.len > 0) /* older versions lack it */
        on_slice(walk, "build", &mark->build);
    if (mark->build.data == NULL)
        mark->build = SLICE_LIT("");
}

static void on_tried(struct sample_walk *walk, struct tried_command *tried)
{
    on_slice(walk, "session", &tried->session);
    on_number(walk, "kept", &tried->deferred);
    on_number(walk, "action", &tried->action);
}

static void on_skip(struct sample_walk *walk, struct skip_command *skip)
{
    on_number(walk, "position", &skip->position);
}

static void on_aside(struct sample_walk *walk, struct aside_command *aside)
{
    on_number(walk, "number", &aside->number);
    on_bool(walk, "again", &aside->retry);
}

static void on_join(struct sample_walk *walk, struct join_command *join)
{
    struct limits_command limits = {.limits = join->limits};

    on_slice(walk, "name", &join->name);
    on_slice(walk, "group", &join->group);
    on_slice(walk, "address", &join->address);
    on_slice(walk, "build", &join->build);
    on_number(walk, "life", &join->life);
    on_limits(walk, &limits);
    join->limits = limits.limits;
    on_bool(walk, "whole", &join->single_step);
}

static void on_gone(struct sample_walk *walk, struct gone_command *gone)
{
    on_slice(walk, "name", &gone->name);
    on_number(walk, "life", &gone->life);
    on_bool(walk, "forget", &gone->forget);
    on_bool(walk, "whole", &gone->single_step);
}

static void on_heartbeat(struct sample_walk *walk, struct heartbeat_command *heartbeat)
{
    on_number(walk, "heard", &heartbeat->barrier_clock);
    on_number(walk, "low", &heartbeat->low);
    on_number(walk, "position", &heartbeat->position);
    on_number(walk, "chain", &heartbeat->chain);
}

static void on_restart(struct sample_walk *walk, struct restart_command *restart)
{
    on_bool(walk, "whole", &restart->single_step);
}

static void on_terms(struct sample_walk *walk, struct command_owner *terms)
{
    on_slice(walk, "session", &terms->session);
    on_slice(walk, "transaction", &terms->transaction);
    on_number(walk, "fencing_token", &terms->fencing_token);
    on_number(walk, "timeout_us", &terms->timeout_us);
}

static void on_command(struct sample_walk *walk, struct command *command)
{
    command->dialect = (enum dialect)on_enum(walk, "dialect", command->dialect, 0, DIALECT_COUNT);
    on_number(walk, "request", &command->request);
    if (command_is(command->type, COMMAND_OWNED))
        on_terms(walk, &command->owner);
    switch (command->type) {
#define X(symbol, name, code, member, flags, turns) \
    case COMMAND_##symbol:                          \
        on_##member(walk, &command->member);        \
        break;
#include "core/command/commands.def"
#undef X
    case COMMAND_TYPE_COUNT: break;
    }
}

struct command *sample_command(enum command_type type, struct rng *rng)
{
    struct command *command = command_new(type, DIALECT_7);
    struct sample_walk walk = {.rng = rng, .arena = &command->arena};

    on_command(&walk, command);
    return command;
}

void sample_print(const struct command *command, struct buf *text)
{
    struct sample_walk walk = {.text = text};
    struct command copy = *command;

    buf_printf(text, "%s\n", command_name(command->type));
    on_command(&walk, &copy);
}

bool sample_same(const struct command *a, const struct command *b, struct buf *first)
{
    struct buf texts[2] = {BUF_INIT(BUF_UNLIMITED), BUF_INIT(BUF_UNLIMITED)};
    size_t at = 0, line = 0;

    sample_print(a, &texts[0]);
    sample_print(b, &texts[1]);
    bool same = slice_equal(buf_as_slice(&texts[0]), buf_as_slice(&texts[1]));
    for (; at < texts[0].len && at < texts[1].len && texts[0].data[at] == texts[1].data[at]; at++)
        if (texts[0].data[at] == '\n')
            line = at + 1;
    if (!same && first != NULL) {
        struct slice rest = slice_from_offset(buf_as_slice(&texts[0]), line);
        buf_append(first, rest.data, slice_find_byte(rest, '\n'));
    }
    buf_deinit(&texts[0]);
    buf_deinit(&texts[1]);
    return same;
}
