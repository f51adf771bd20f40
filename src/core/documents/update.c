/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates. An existing document is merged with `doc` or passed to the script. A missing document is
 * created from `upsert`, from `doc` with doc_as_upsert, or by the script with scripted_upsert.
 */
#include "core/documents/update.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "json/merge.h"
#include "mapping/mapping.h"
#include "script/script.h"

static int refuse_script(struct update *update, struct problem *cause, struct problem *ret_problem)
{
    REQUIRE(cause->type != PROBLEM_NONE);
    struct problem *copy = arena_alloc(update->arena, sizeof(*copy));

    *copy = *cause;
    problem_set(ret_problem, update->arena, PROBLEM_ILLEGAL_ARGUMENT, "failed to execute script");
    ret_problem->caused_by = copy;
    return UPDATE_REFUSED;
}

/* --- Finding the script ------------------------------------------------------------------------------------------- */

/* A script to compile. */
struct script_text {
    struct slice lang;
    struct slice source;
    struct slice name; /* empty: inline */
};

static int find_stored(struct update *update, struct script_text *ret_text, struct problem *ret_problem)
{
    REQUIRE(update->item->update->script_id.data != NULL);
    struct slice id = update->item->update->script_id;
    const struct catalog_object *script = catalog_object(update->catalog, CATALOG_SCRIPTS, id);
    struct problem cause;

    if (script == NULL) {
        struct slice lang = update->item->update->script_lang;
        struct slice named = lang.data == NULL || update->dialect != DIALECT_5
                                 ? SLICE_LIT("")
                                 : arena_printf(update->arena, " using lang [%.*s]", SLICE_ARG(lang));
        problem_set(&cause, update->arena, PROBLEM_RESOURCE_NOT_FOUND,
                    "unable to find script [%.*s]%.*s in cluster state", SLICE_ARG(id), SLICE_ARG(named));
        return refuse_script(update, &cause, ret_problem);
    }
    /* 7.x compiles a stored script as inline source; 5.x uses its name. */
    struct slice name = update->dialect == DIALECT_5 ? script->name : SLICE_NONE;
    *ret_text = (struct script_text){script->lang, script->body, name};
    return 0;
}

static int find_file(struct update *update, struct script_text *ret_text, struct problem *ret_problem)
{
    REQUIRE(update->item->update->script_file.data != NULL);
    const struct write_update *params = update->item->update;
    struct slice lang = params->script_lang.data == NULL ? SLICE_LIT("painless") : params->script_lang;
    const struct catalog_object *script;
    struct problem cause;

    if (catalog_file_script(update->catalog, lang, params->script_file, update->arena, &script, &cause) != 0)
        return refuse_script(update, &cause, ret_problem);
    *ret_text = (struct script_text){lang, script->body, params->script_file};
    return 0;
}

static int find_script(struct update *update, struct script_text *ret_text, struct problem *ret_problem)
{
    const struct write_update *params = update->item->update;

    if (params->script_id.data != NULL)
        return find_stored(update, ret_text, ret_problem);
    if (params->script_file.data != NULL)
        return find_file(update, ret_text, ret_problem);
    *ret_text = (struct script_text){params->script_lang, params->script_source, SLICE_NONE};
    return 0;
}

static int compile_script(struct update *update, struct script **ret_script, struct problem *ret_problem)
{
    enum script_lang lang = SCRIPT_DEFAULT;
    struct script_text text;
    struct problem cause;

    if (find_script(update, &text, ret_problem) != 0)
        return UPDATE_REFUSED;
    if (text.lang.data != NULL && !script_lang_from(text.lang, &lang)) {
        problem_set(&cause, update->arena, PROBLEM_ILLEGAL_ARGUMENT, "script_lang not supported [%.*s]",
                    SLICE_ARG(text.lang));
        return refuse_script(update, &cause, ret_problem);
    }
    if (text.name.len == 0 && text.source.len > SCRIPT_SOURCE_BYTES_MAX) {
        problem_set(&cause, update->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "exceeded max allowed inline script size in bytes [%zu] with size [%zu] for script [%.*s]",
                    SCRIPT_SOURCE_BYTES_MAX, text.source.len, SLICE_ARG(text.source));
        return refuse_script(update, &cause, ret_problem);
    }
    int r = update->scripts != NULL
                ? script_cache_compile(update->scripts, lang, SCRIPT_FOR_UPDATE, text.source, text.name, ret_script,
                                       update->arena, &cause)
                : script_compile(lang, SCRIPT_FOR_UPDATE, text.source, text.name, ret_script, update->arena, &cause);
    return r == 0 ? 0 : refuse_script(update, &cause, ret_problem);
}

/* --- Running it --------------------------------------------------------------------------------------------------- */

static enum update_op op_from_script(enum script_op op, bool exists)
{
    switch (op) {
    case SCRIPT_OP_INDEX: return exists ? UPDATE_INDEX : UPDATE_NOOP; /* an upsert only creates */
    case SCRIPT_OP_CREATE: return exists ? UPDATE_NOOP : UPDATE_CREATE;
    case SCRIPT_OP_DELETE: return exists ? UPDATE_DELETE : UPDATE_NOOP;
    default: return UPDATE_NOOP;
    }
}

/* The limits of this run: what the command's scripts share, and what the submitter allows. */
static struct script_limits limits_of(const struct update *update)
{
    REQUIRE(update->item->update != NULL && update->limits.steps_max > 0);
    struct script_limits limits = update->limits;
    uint64_t granted = update->item->update->script_steps;

    if (update->steps != NULL && *update->steps + UPDATE_STEPS_MIN < limits.steps_max)
        limits.steps_max = *update->steps + UPDATE_STEPS_MIN;
    if (granted != 0 && granted < limits.steps_max)
        limits.steps_max = granted;
    return limits;
}

/* Counts the steps of a script towards those that the command's scripts share. */
static void count_steps(struct update *update, uint64_t taken)
{
    uint64_t shared = taken > UPDATE_STEPS_MIN ? taken - UPDATE_STEPS_MIN : 0;

    if (update->steps != NULL)
        *update->steps -= shared < *update->steps ? shared : *update->steps;
    update->steps_taken = taken;
}

static void report_steps(struct update *update, const struct script_limits *limits, const struct script_update *run)
{
    count_steps(update, run->steps);
    update->values = run->values;
    update->steps_max = limits->steps_max;
    update->script_long = run->exhausted && limits->steps_max == update->item->update->script_steps;
    update->script_exhausted = run->exhausted && !update->script_long;
}

static int run_script(struct update *update, struct slice source, struct problem *ret_problem)
{
    REQUIRE(source.data != NULL); /* the script's ctx._source */
    tl_cleanup(script_unrefp) struct script *script = NULL;
    const struct write_update *params = update->item->update;
    const struct doc *old = update->old;
    struct script_limits limits = limits_of(update);
    struct problem cause;
    int r = compile_script(update, &script, ret_problem);

    if (r != 0)
        return r;
    struct script_update run = {
        .ctx = old == NULL                    ? SCRIPT_CTX_UPSERT
               : update->dialect == DIALECT_5 ? SCRIPT_CTX_UPDATE_TYPED
                                              : SCRIPT_CTX_UPDATE,
        .index = update->index,
        .type = update->type,
        .id = update->item->id,
        .routing = old == NULL ? SLICE_NONE : old->routing,
        .version = old == NULL ? -1 : old->version,
        .now_ms = (int64_t)(update->ts / TL_MS),
        .zones = update->zones,
        .source = source,
        .params = params->script_params,
        .account = update->account,
        .old_library = update->old_library,
        .old_formats = update->old_formats,
    };
    r = script_run_update(script, &limits, update->arena, &run, &cause);
    report_steps(update, &limits, &run);
    if (r == SCRIPT_UNFIT) {
        *ret_problem = cause;
        return UPDATE_REFUSED;
    }
    if (r != 0)
        return refuse_script(update, &cause, ret_problem);
    update->op = op_from_script(run.op_after, old != NULL);
    update->source = update->op == UPDATE_INDEX || update->op == UPDATE_CREATE ? run.source_after : source;
    /* 5.x treats an unknown op as "none", but then returns no source. */
    if (update->dialect == DIALECT_5 && update->op == UPDATE_NOOP && !slice_is(run.op_text, "none"))
        update->source = SLICE_NONE;
    return 0;
}

/* --- Without a script --------------------------------------------------------------------------------------------- */

static int merge_update(struct update *update, struct problem *ret_problem)
{
    const struct write_update *params = update->item->update;
    struct buf merged = BUF_INIT(BUF_UNLIMITED);
    struct json_doc base, patch;
    struct problem problem;
    int r = json_parse_stored(update->scratch, update->visible_source, &base);

    if (r < 0)
        return tl_trace(r);
    if (json_parse(update->scratch, params->doc, update->dialect, JSON_DUPLICATES | JSON_DOCUMENT, &patch, &problem) !=
        0) {
        problem_copy(ret_problem, &problem, update->arena);
        return UPDATE_REFUSED;
    }
    update->values = json_value_count(&base) + json_value_count(&patch);
    bool changed = json_merge(&merged, base.root, patch.root, update->dialect);
    update->op = changed || !params->detect_noop ? UPDATE_INDEX : UPDATE_NOOP;
    update->source =
        update->op == UPDATE_NOOP ? update->visible_source : arena_copy(update->arena, buf_as_slice(&merged));
    buf_deinit(&merged);
    return 0;
}

/* Returns: what a missing document is created from; data NULL: nothing. */
static struct slice source_created(const struct write_update *params)
{
    return params->doc_as_upsert && params->doc.data != NULL ? params->doc : params->upsert; /* even if that is given */
}

static int make_new(struct update *update, struct problem *ret_problem)
{
    REQUIRE(update->old == NULL);
    const struct write_update *params = update->item->update;
    struct slice source = source_created(params);

    if (source.data == NULL)
        return UPDATE_MISSING; /* also with scripted_upsert: the script would need the upsert */
    if (params->scripted_upsert && update_has_script(params))
        return run_script(update, source, ret_problem);
    update->op = UPDATE_CREATE;
    update->source = source;
    return 0;
}

/* Without a stored source an update is impossible. */
static int refuse_source_missing(struct update *update, struct problem *ret_problem)
{
    REQUIRE(update->old != NULL && update->visible_source.data == NULL);
    problem_set(ret_problem, update->arena, PROBLEM_DOCUMENT_SOURCE_MISSING, "[%.*s][%.*s]: document source missing",
                SLICE_ARG(update->type), SLICE_ARG(update->item->id));
    return UPDATE_REFUSED;
}

struct update_ready update_result(const struct update *update)
{
    const struct doc *old = update->old;

    return (struct update_ready){.given = true,
                                 .op = update->op,
                                 .source = update->source,
                                 .read_ts = old == NULL ? 0 : old->ts,
                                 .version = old == NULL ? VERSION_ANY : old->version,
                                 .seq_no = old == NULL ? SEQ_NO_ANY : old->seq_no};
}

/* Takes over what the script returned outside of the core, if it read this version of the document. */
static int take_ready(struct update *update)
{
    const struct update_ready *ready = &update->item->update->ready;
    REQUIRE(ready->given);

    if (ready->read_ts != (update->old == NULL ? 0 : update->old->ts))
        return UPDATE_STALE;
    /* An open transaction has renamed it: that raises the version only, and has a timestamp at the commit. */
    if (update->old != NULL && ready->version != update->old->version)
        return UPDATE_STALE;
    update->op = ready->op;
    update->source = ready->source;
    return 0;
}

/* --- Kept results ------------------------------------------------------------------------------------------------- */

/* Whether the source after the update is that of the old document, as the mapping shows it. */
static bool shows_old(const struct update *update)
{
    return update->visible_source.data != NULL && update->source.data == update->visible_source.data;
}

size_t update_kept_bytes(const struct update *update, int status, const struct problem *problem)
{
    /* Not the size of the structure, which may change: all hosts, and a replay of the log, keep the same results. */
    enum { KEPT_BYTES = 184 };
    REQUIRE((update->steps_max > 0 || update->values > 0) && status >= 0);
    size_t bytes = KEPT_BYTES + update->index.len;

    if (status == 0)
        return bytes + (shows_old(update) ? 0 : update->source.len);
    for (; problem != NULL; problem = problem->caused_by)
        bytes += sizeof(*problem) + problem->name.len + problem->reason.len + problem->details.len;
    return bytes;
}

struct update_kept *update_keep(const struct update *update, int status, const struct problem *problem,
                                struct arena *arena)
{
    REQUIRE((update->steps_max > 0 || update->values > 0) && status >= 0);
    struct update_kept *kept = arena_zalloc(arena, sizeof(*kept));

    kept->ready = update_result(update);
    kept->ready.source = SLICE_NONE;
    kept->mapped = update->old == NULL ? NULL : update->mapped;
    kept->index = arena_copy(arena, update->index);
    kept->steps_max = update->steps_max;
    kept->steps_taken = update->steps_taken;
    kept->script_long = update->script_long;
    kept->script_exhausted = update->script_exhausted;
    kept->status = status;
    if (status != 0) {
        problem_copy(&kept->problem, problem, arena);
        return kept;
    }
    kept->shows_old = shows_old(update);
    if (!kept->shows_old && update->source.data != NULL)
        kept->ready.source = arena_copy(arena, update->source);
    return kept;
}

/*
 * Whether a script would do the same with the steps that it has now, if they count. Where it failed, the steps that are
 * reported may be those that it had.
 */
static bool has_same_steps(const struct update *update)
{
    const struct update_kept *kept = update->kept;
    uint64_t steps_max = limits_of(update).steps_max;

    return !update->old_counts || kept->steps_max == steps_max || (kept->status == 0 && kept->steps_taken <= steps_max);
}

/* Whether an update would have the kept result again: nothing else than the compared members decides it. */
static bool kept_is_valid(const struct update *update)
{
    const struct update_kept *kept = update->kept;
    struct update_ready now = update_result(update);

    if (kept == NULL || !slice_equal(kept->index, update->index))
        return false;
    if (kept->ready.version != now.version || kept->ready.seq_no != now.seq_no || kept->ready.read_ts != now.read_ts)
        return false;
    if (update->old != NULL && kept->mapped != update->mapped)
        return false;
    return has_same_steps(update);
}

static int take_kept(struct update *update, struct problem *ret_problem)
{
    const struct update_kept *kept = update->kept;
    REQUIRE(!kept->shows_old || update->visible_source.data != NULL);

    update->took_kept = true;
    update->steps_taken = kept->steps_taken;
    if (update->old_counts)
        count_steps(update, kept->steps_taken);
    update->script_long = kept->script_long;
    update->script_exhausted = kept->script_exhausted;
    if (kept->status != 0) {
        problem_copy(ret_problem, &kept->problem, update->arena);
        return kept->status;
    }
    update->op = kept->ready.op;
    update->source = kept->shows_old ? update->visible_source : kept->ready.source;
    return 0;
}

/* --- Updates left to the submitter -------------------------------------------------------------------------------- */

/* Returns: the bytes that an update reads; 0: it fails at once. */
static size_t bytes_read(const struct update *update)
{
    const struct write_update *params = update->item->update;

    if (update->old == NULL) {
        struct slice source = source_created(params);
        return source.data == NULL ? 0 : source.len + params->script_params.len;
    }
    if (update->mapped != NULL && !update->mapped->source_enabled)
        return 0;
    return update->old->source.len + params->doc.len + params->script_params.len;
}

bool update_is_left(const struct update *update)
{
    REQUIRE(update->item->update != NULL);
    const struct write_update *params = update->item->update;
    bool granted = params->script_steps > 0 && params->script_steps <= UPDATE_LEFT_STEPS_MAX;

    return update->leaves_large && granted && !params->ready.given && bytes_read(update) > UPDATE_READ_BYTES_MAX;
}

/* Fails an update that is left. The problem is for submitters that do not run it. */
static int leave_to_submitter(struct update *update, struct problem *ret_problem)
{
    REQUIRE(update_is_left(update));
    update->script_long = true;
    problem_set(ret_problem, update->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the update reads more than [%zu] bytes, and is not executed together with other writes",
                UPDATE_READ_BYTES_MAX);
    return UPDATE_REFUSED;
}

/* Checks that the filter of the mapping does not take too long. Returns: 0; UPDATE_REFUSED; TL_ERR_CORRUPT. */
static int check_filter(struct update *update, struct problem *ret_problem)
{
    if (update->old_filters)
        return 0;
    int r = mapping_filter_work(update->mapped, update->old->source, update->scratch, &update->filtered);
    if (r != MAPPING_REFUSED)
        return r;
    update->filtered = 0;
    problem_set(
        ret_problem, update->arena, PROBLEM_ILLEGAL_ARGUMENT,
        "[%.*s][%.*s]: comparing the paths of the document with the patterns of the mapping's [_source] takes too "
        "long: use shorter names, or fewer patterns",
        SLICE_ARG(update->type), SLICE_ARG(update->item->id));
    return UPDATE_REFUSED;
}

int update_run(struct update *update, struct problem *ret_problem)
{
    REQUIRE(update->old == NULL || !update->old->deleted);
    REQUIRE(update->arena != NULL && update->scratch != NULL);
    REQUIRE(update->item->op == WRITE_UPDATE && update->item->update != NULL);
    if (update->item->update->ready.given)
        return take_ready(update);
    if (update_is_left(update))
        return leave_to_submitter(update, ret_problem);
    bool kept = kept_is_valid(update);
    if (update->old == NULL)
        return kept ? take_kept(update, ret_problem) : make_new(update, ret_problem);
    int r = check_filter(update, ret_problem);
    if (r != 0)
        return r < 0 ? tl_trace(r) : r;
    r = mapping_filter_source(update->mapped, update->old->source, update->dialect, update->arena,
                              &update->visible_source);
    if (r != 0)
        return tl_trace(r);
    if (update->visible_source.data == NULL)
        return refuse_source_missing(update, ret_problem);
    if (kept)
        return take_kept(update, ret_problem);
    if (update_has_script(update->item->update))
        return run_script(update, update->visible_source, ret_problem);
    return merge_update(update, ret_problem);
}
