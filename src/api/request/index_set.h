/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index expressions: which indices a call is about, and commands that go to one index after another.
 */
#ifndef TL_API_INDEX_SET_H
#define TL_API_INDEX_SET_H

#include "api/request/reply.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"

/* The parameters of index expressions, for routes.def. */
#define INDEX_SET_PARAMS "ignore_unavailable allow_no_indices expand_wildcards "

struct index_set {
    struct catalog_target *targets;
    size_t count;
};

/* Reads the parameters over an API's own defaults. Returns: 0, REQUEST_REFUSED. */
int index_options_read(struct request *request, const struct catalog_options *defaults,
                       struct catalog_options *ret_options) TL_MUST_USE;

/* Applies a list of states, the value of expand_wildcards. Returns: 0; REQUEST_REFUSED: not one of them. */
int index_options_expand(struct request *request, struct slice list, struct catalog_options *options) TL_MUST_USE;

/*
 * Resolves the path's {index} (none: all) in the request's catalog, which it takes if the request
 * has none, with options as index_options_read reads them.
 * Returns: 0, REQUEST_REFUSED.
 */
int index_set_read(struct request *request, const struct catalog_options *defaults,
                   struct index_set *ret_set) TL_MUST_USE;

/*
 * Submits one command for each index of a set, each after the one before, then calls `then`. Stops at the first that
 * is refused.
 */
typedef struct command *index_command_make(struct request *request, struct slice index, void *context);
int index_set_submit(struct request *request, const struct index_set *set, index_command_make *make, void *context,
                     request_handler *then) TL_MUST_USE;

/* Returns: copies of all shards of the set as replies count them: shards times replicas and the primary. */
unsigned index_set_copies(const struct index_set *set);
unsigned index_set_primaries(const struct index_set *set);
/* The copies of all shards without bound, for callers that process each; more than INDEX_SET_SHORT need a worker. */
enum { INDEX_SET_SHORT = 1000 };
uint64_t index_set_rows(const struct index_set *set);

/* Returns: whether an index is shown with its types; `include_type_name` decides, else the dialect that made it. */
bool index_is_typed(const struct catalog_index *index, const bool *include_type_name);

/* Returns: whether "mappings" are {"doc": {"properties": …}}, what clients of 5.x send. */
bool index_mappings_are_typed(yyjson_val *mappings);

/* Appends an index's mapping in the form that index_is_typed() says. */
void index_render_mapping(const struct catalog_index *index, const bool *include_type_name, struct buf *buf);

#endif
