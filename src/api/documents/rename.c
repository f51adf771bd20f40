/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /{index}/_rename: the documents at a path, and all below it, get another path.
 *
 * Whether a path has documents is found by a search of all that ever had it. The core searches a
 * few itself. If there are more, a worker searches, while the core watches the paths, and its
 * findings are part of the command (core/tree/README.md, "Renames, and when they fail"). If
 * documents were written at the paths meanwhile, that is repeated.
 */
#include "api/documents/doc_write.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/instant.h"
#include "api/request/native_body.h"
#include "api/request/request_budget.h"
#include "base/clock.h"
#include "core/documents/path_lookup.h"
#include "journal/journal.h"

/* As long as a write waits for its locks. */
#define RENAME_TIMEOUT_US (10 * TL_SECOND)
/*
 * What the core may search while others wait: some tens of entries, and some thousands of deleted
 * ones that its store passes.
 */
#define FEW_STEPS 200000
#define FEW_US 2000
/* Searches by a worker for one request. */
#define SEARCHES_MAX 10

struct rename_ask {
    struct slice from, to;
    int64_t if_seq_no, if_primary_term, timeout;
    bool long_from, long_to; /* many documents once had this path */
    tl_ts watched;           /* since when the paths are watched */
    unsigned searches;       /* by a worker, so far */
    struct path_finding found_from, found_to;
};

static int watch_paths(struct request *request);

static int rename_done(struct request *request, struct command *command)
{
    struct rename_ask *ask = request->context;
    const struct rename_command *rename = &command->rename;
    struct json_writer writer;
    if (rename->unknown) {
        ask->long_from = ask->long_to = true;
        return watch_paths(request);
    }
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    if (command->owner.transaction.len == 0) {
        json_key(&writer, "timestamp");
        json_u64(&writer, command->ts);
    }
    json_key(&writer, "directories");
    json_u64(&writer, rename->directory);
    json_key(&writer, "documents");
    json_u64(&writer, rename->document);
    json_key(&writer, "_seq_no");
    json_i64(&writer, rename->seq_no);
    json_key(&writer, "_primary_term");
    json_u64(&writer, 1);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static const struct body_schema rename_form = {"a rename", "from to", "{\"from\": \"/clinton\", \"to\": \"/bill\"}"};

static int submit_rename(struct request *request)
{
    const struct rename_ask *ask = request->context;
    struct command *command = command_new(COMMAND_RENAME, request->dialect);
    command->owner = request_terms(request, ask->timeout);
    command->rename = (struct rename_command){.index = request_part(request, PART_INDEX),
                                              .from = ask->from,
                                              .to = ask->to,
                                              .if_seq_no = ask->if_seq_no,
                                              .if_primary_term = ask->if_primary_term,
                                              .found_from = ask->found_from,
                                              .found_to = ask->found_to};
    return request_submit(request, command, rename_done);
}

/* --- Search in advance -------------------------------------------------------------------------------------------- */

/* The index of the tree, or NULL; errors are reported by the command. */
static const struct catalog_index *find_tree(struct request *request)
{
    struct problem ignored = {0};
    const struct catalog_alias *alias;
    const struct catalog_index *index;
    request_catalog(request);
    int r = catalog_find(request->catalog, request_part(request, PART_INDEX), false, request->dialect, request->arena,
                         &index, &alias, &ignored);
    return r == 0 && mapping_path_field(index->mapping) != NULL && mapping_is_tree(index->mapping) ? index : NULL;
}

/* Returns: 0; the finding is incomplete if the account has ended; fatal codes. */
static int search_path(struct request *request, const struct catalog_index *index, struct slice path,
                       const struct view *view, struct account *account, struct path_finding *ret_finding)
{
    size_t len = path.len > 1 && path.data[path.len - 1] == '/' ? path.len - 1 : path.len;
    ret_finding->ts = view->ts;
    return path_lookup_find(view, index->number, index->mapping, slice_make(path.data, len), account, request->arena,
                            &ret_finding->document, &ret_finding->below);
}

/* On a worker. */
static int search_long(struct request *request)
{
    struct rename_ask *ask = request->context;
    const struct catalog_index *index = find_tree(request);
    struct path_finding from = {.ts = TL_TS_NONE}, to = from;
    if (index == NULL || request->view.ts < ask->watched)
        return submit_rename(request);
    int r = ask->long_from ? search_path(request, index, ask->from, &request->view, &request->account, &from) : 0;
    bool missing = ask->long_from && from.document.data == NULL && from.below.data == NULL;
    if (r == 0 && !missing && ask->long_to)
        r = search_path(request, index, ask->to, &request->view, &request->account, &to);
    if (r < 0)
        return r;
    if (account_ended(&request->account))
        return request_budget_refuse(request);
    if (view_is_too_old(&request->view))
        return submit_rename(request); /* documents that were not found may have existed since */
    ask->found_from = from;
    ask->found_to = to;
    return submit_rename(request);
}

static int paths_watched(struct request *request, struct command *command)
{
    struct rename_ask *ask = request->context;
    ask->watched = command->ts;
    ask->long_from = ask->long_from && !command->places.empty[0];
    ask->long_to = ask->long_to && !command->places.empty[1];
    if (!ask->long_from && !ask->long_to)
        return submit_rename(request);
    request_look_again(request);
    return request_work(request, search_long);
}

static int watch_paths(struct request *request)
{
    struct rename_ask *ask = request->context;
    ask->found_from = ask->found_to = (struct path_finding){.ts = TL_TS_NONE};
    if (++ask->searches > SEARCHES_MAX)
        return request_refuse(request, PROBLEM_UNAVAILABLE,
                              "documents were written at the paths, or below them, during each of [%d] searches for "
                              "documents there; retry the rename",
                              SEARCHES_MAX);
    struct command *command = command_new(COMMAND_PLACES_WATCH, request->dialect);
    command->places = (struct places_command){request_part(request, PART_INDEX), {ask->from, ask->to}};
    return request_submit(request, command, paths_watched);
}

/* Finds whether the core would search for long. */
static int ask_soon(struct request *request)
{
    struct rename_ask *ask = request->context;
    const struct catalog_index *index = request->transaction.len > 0 ? NULL : find_tree(request);
    request_set_stable_view(request);
    tl_cleanup(view_cache_deinit) struct view_cache tree; /* both ask for some of the same records */
    struct view view = request->view;
    struct account of_from = {.steps_max = FEW_STEPS}, of_to = of_from;
    struct path_finding ignored;
    view_cache_init(&tree, SPACE_TREE);
    view.cache = &tree;
    if (index == NULL)
        return 0;
    uint64_t begun = clock_boot_us();
    int r = search_path(request, index, ask->from, &view, &of_from, &ignored);
    uint64_t between = clock_boot_us();
    if (r == 0)
        r = search_path(request, index, ask->to, &view, &of_to, &ignored);
    ask->long_from = account_ended(&of_from) || between - begun > FEW_US;
    ask->long_to = account_ended(&of_to) || clock_boot_us() - between > FEW_US;
    return r;
}

int handle_rename(struct request *request)
{
    struct native_body body;
    struct validation validation = {.arena = request->arena};
    struct slice from = SLICE_NONE, to = SLICE_NONE;
    int64_t if_seq_no = SEQ_NO_ANY, if_primary_term = 0;
    int64_t timeout = RENAME_TIMEOUT_US;
    int r = native_body_parse(request, &rename_form, &body);
    if (r != 0 || (r = native_body_text(&body, "from", &from)) != 0 || (r = native_body_text(&body, "to", &to)) != 0 ||
        (r = request_time(request, "timeout", &timeout)) != 0 ||
        (r = write_read_numbers(request, &if_seq_no, &if_primary_term)) != 0)
        return r;
    if (from.data == NULL)
        return native_body_missing(&body, "the path to be renamed, [from]");
    if (to.data == NULL)
        return native_body_missing(&body, "the path that it gets, [to]");
    write_validate_numbers(if_seq_no, if_primary_term, &validation);
    r = validation_end(&validation, request);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct rename_ask *ask = arena_zalloc(request->arena, sizeof *ask);
    *ask = (struct rename_ask){
        .from = from, .to = to, .if_seq_no = if_seq_no, .if_primary_term = if_primary_term, .timeout = timeout};
    request->context = ask;
    r = ask_soon(request);
    return r != 0 ? r : ask->long_from || ask->long_to ? watch_paths(request) : submit_rename(request);
}
