/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index expressions.
 */
#include "api/request/index_set.h"

#include "api/request/api_internal.h"
#include "api/request/access_log.h"
#include "api/request/catalog_growth.h"
#include "mapping/mapping.h"

/* --- Options ------------------------------------------------------------------------------------------------------ */

static int expand_word(struct request *request, struct slice word, struct catalog_options *options)
{
    if (slice_is(word, "open"))
        options->expand_open = true;
    else if (slice_is(word, "closed"))
        options->expand_closed = true;
    else if (slice_is(word, "hidden"))
        options->expand_hidden = true;
    else if (slice_is(word, "all"))
        options->expand_open = options->expand_closed = options->expand_hidden = true;
    else if (slice_is(word, "none"))
        options->expand_open = options->expand_closed = options->expand_hidden = false;
    else
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No valid expand wildcard value [%.*s]",
                              SLICE_ARG(word));
    return 0;
}

int index_options_expand(struct request *request, struct slice list, struct catalog_options *options)
{
    options->expand_open = options->expand_closed = options->expand_hidden = false;
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        int r = expand_word(request, slice_make(list.data, len), options);
        if (r != 0)
            return r;
        list = slice_from_offset(list, len + 1);
    }
    options->names_only = request->dialect == DIALECT_7 && !options->expand_open && !options->expand_closed;
    return 0;
}

/* 7.10 names the option that it could not read, and then the error. */
static int read_flag(struct request *request, const char *name, bool *ret_value)
{
    int r = request_bool(request, name, ret_value);
    if (r != REQUEST_REFUSED)
        return r;
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    *cause = request->problem;
    r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Could not convert [%s] to boolean", name);
    request->problem.caused_by = cause;
    return r;
}

int index_options_read(struct request *request, const struct catalog_options *defaults,
                       struct catalog_options *ret_options)
{
    bool throttled; /* there are no such indices */
    *ret_options = *defaults;
    int r = read_flag(request, "ignore_unavailable", &ret_options->ignore_unavailable);
    if (r != 0 || (r = read_flag(request, "ignore_throttled", &throttled)) != 0 ||
        (r = read_flag(request, "allow_no_indices", &ret_options->allow_no_indices)) != 0)
        return r;
    struct slice expanded = request_param(request, "expand_wildcards");
    return expanded.data == NULL ? 0 : index_options_expand(request, expanded, ret_options);
}

/* --- Resolving ---------------------------------------------------------------------------------------------------- */

int index_set_read(struct request *request, const struct catalog_options *defaults, struct index_set *ret_set)
{
    struct catalog_options options;
    int r = index_options_read(request, defaults, &options);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    r = catalog_resolve(request_catalog(request), request_part(request, PART_INDEX), &options, request->dialect,
                        request->arena, &ret_set->targets, &ret_set->count, &request->problem);
    return r > 0 ? REQUEST_REFUSED : r;
}

unsigned index_set_primaries(const struct index_set *set)
{
    unsigned shards = 0;
    for (size_t i = 0; i < set->count; i++)
        shards += set->targets[i].index->shard_count;
    return shards;
}

unsigned index_set_copies(const struct index_set *set)
{
    unsigned copies = 0;
    for (size_t i = 0; i < set->count; i++)
        copies += set->targets[i].index->shard_count * (set->targets[i].index->replica_count + 1);
    return copies;
}

uint64_t index_set_rows(const struct index_set *set)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < set->count; i++)
        rows += (uint64_t)set->targets[i].index->shard_count * ((uint64_t)set->targets[i].index->replica_count + 1);
    return rows;
}

bool index_is_typed(const struct catalog_index *index, const bool *include_type_name)
{
    return include_type_name != NULL ? *include_type_name : index->dialect == DIALECT_5;
}

void index_render_mapping(const struct catalog_index *index, const bool *include_type_name, struct buf *buf)
{
    bool typed = index_is_typed(index, include_type_name);
    mapping_render(index->mapping, typed ? index->dialect : DIALECT_7, typed, buf);
}

/* --- One command an index ----------------------------------------------------------------------------------------- */

/* A chain of commands under way. In the request's arena. */
struct index_chain {
    struct slice *names;
    size_t count;
    size_t next;
    index_command_make *make;
    void *context; /* of make */
    request_handler *then;
};

static int chain_step(struct request *request, struct command *done)
{
    struct index_chain *chain = request->context;
    if (done != NULL)
        access_log_index(request, done);
    if (chain->next == chain->count) {
        request->context = chain->context;
        return chain->then(request);
    }
    struct command *command = chain->make(request, chain->names[chain->next++], chain->context);
    return request_submit(request, command, chain_step);
}

int index_set_submit(struct request *request, const struct index_set *set, index_command_make *make, void *context,
                     request_handler *then)
{
    struct index_chain *chain = arena_alloc(request->arena, sizeof *chain);
    *chain = (struct index_chain){.count = set->count, .make = make, .context = context, .then = then};
    chain->names = arena_alloc(request->arena, (set->count + 1) * sizeof *chain->names);
    for (size_t i = 0; i < set->count; i++)
        chain->names[i] = set->targets[i].index->name;
    request->context = chain;
    return chain_step(request, NULL);
}
