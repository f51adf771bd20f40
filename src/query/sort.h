/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting: values that hits are ordered by, and the best hits seen so far. For src/query only.
 *
 * Order is total (README.md, invariant 3): sort values, then index, then document key.
 */
#ifndef TL_QUERY_SORT_H
#define TL_QUERY_SORT_H

#include "base/map.h"
#include "query/bound_query.h"

enum sort_kind { SORT_NULL, SORT_I64, SORT_F64, SORT_BYTES, SORT_IP };

struct sort_value {
    enum sort_kind kind;
    union {
        int64_t i64;
        double f64;
        struct slice bytes;
    };
};

/* Whether a kind keeps its value in `bytes`: a text, or an address as the index has it. */
static inline bool sort_kind_is_bytes(enum sort_kind kind)
{
    return kind == SORT_BYTES || kind == SORT_IP;
}

struct metadata_field;

/* A sort key bound to one index. */
struct bound_key {
    const struct sort_key *key;
    const struct mapping_field *field;     /* NULL: unmapped, or not a field */
    const struct metadata_field *metadata; /* NULL: none of those */
    enum sort_kind kind;                   /* of missing values */
    bool has_missing;
    struct sort_value missing;
    struct script *script;
};

/* Whether a field's values are at hand for sorts and aggregations. Returns: 0; QUERY_REFUSED with binder->problem. */
int sort__check_doc_values(struct binder *binder, const struct mapping_field *field) TL_MUST_USE;

/* Returns: 0; QUERY_REFUSED with binder->problem. */
int sort_bind(struct binder *binder, const struct search_request *request, struct bound_key **ret_keys) TL_MUST_USE;

/* Reads the sort values of the subject; they live in its arena. */
void sort_read(const struct bound_key *keys, size_t count, struct match_doc *match_doc, float score, uint64_t ordinal,
               struct sort_value *ret_values);

/* <0, 0, >0 by the sort values alone. */
int sort_compare(const struct sort_key *keys, size_t count, const struct sort_value *a, const struct sort_value *b);

/* Appends "sort":[…]. */
void sort_write(struct buf *buf, const struct sort_key *keys, size_t count, const struct sort_value *values);

/* The values of search_after, read as the fields of `keys` read theirs. Returns: 0, QUERY_REFUSED. */
int sort_parse_search_after(struct arena *arena, const struct search_request *request, const struct bound_key *keys,
               enum dialect dialect, struct sort_value **ret_values, struct problem *ret_problem) TL_MUST_USE;

/* A hit that is kept: where its document is and what it is ordered by. One piece of memory. */
struct queued_hit {
    uint32_t index; /* position in the context */
    float score;
    struct slice key; /* document key */
    size_t bytes;
    size_t heap_index;          /* in the heap */
    struct slice group; /* what it is collapsed by; data NULL: nothing */
    size_t value_count;
    struct sort_value values[];
};

struct hit_queue {
    const struct sort_key *keys; /* none: by score */
    size_t key_count;
    struct queued_hit **items; /* a heap, the last one in order on top, until hit_queue_finish() */
    size_t count, capacity;
    size_t limit;                 /* hits kept at most */
    const struct queued_hit *after; /* only what comes behind this one; NULL: everything */
    size_t bytes;
    struct map groups; /* of hits that are collapsed: group -> its hit */
};

void hit_queue_init(struct hit_queue *kept, const struct sort_key *keys, size_t key_count, size_t limit);
void hit_queue_deinit(struct hit_queue *kept);
/* Keeps a copy where it is among the best. */
void hit_queue_offer(struct hit_queue *kept, uint32_t index, float score, struct slice key,
                     const struct sort_value *values);
/* The same of a hit of a group, of which one hit is kept. */
void hit_queue_offer_group(struct hit_queue *kept, uint32_t index, float score, struct slice key,
                           const struct sort_value *values, struct slice group);
/* Puts the hits in order. */
void hit_queue_finish(struct hit_queue *kept);
struct queued_hit *queued_hit_copy(uint32_t index, float score, struct slice key, const struct sort_value *values,
                               size_t count, struct slice group);

#endif
