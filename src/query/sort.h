/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting: the sort values of hits, and a bounded queue of the best hits. For src/query only.
 *
 * The order is total (README.md, invariant 3): sort values, then index, then document key.
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

/* Returns: whether values of a kind are in `bytes`: text, or a 16-byte IP address. */
static inline bool sort_kind_is_bytes(enum sort_kind kind)
{
    return kind == SORT_BYTES || kind == SORT_IP;
}

struct metadata_field;

/* A sort key bound to one index. */
struct bound_key {
    const struct sort_key *key;
    const struct mapping_field *field;     /* NULL: unmapped, or the key is not a field */
    const struct metadata_field *metadata; /* NULL: not a metadata field */
    enum sort_kind kind;                   /* of `missing` */
    bool has_missing;
    struct sort_value missing; /* for documents without a value */
    struct script *script;     /* SORT_SCRIPT; else NULL */
};

/*
 * Checks that a field has doc values, for sorts and aggregations. Returns: 0; QUERY_REFUSED with
 * binder->problem.
 */
int sort__check_doc_values(struct binder *binder, const struct mapping_field *field) TL_MUST_USE;

/*
 * Binds request->sort. Returns: 0; QUERY_REFUSED with binder->problem; fatal codes. Owns: the keys
 * live in the binder's arena.
 */
int sort_bind(struct binder *binder, const struct search_request *request, struct bound_key **ret_keys) TL_MUST_USE;

/*
 * Reads the sort values of a document. `ordinal`: its number, for SORT_DOC. Bytes live until
 * match_doc_set().
 */
void sort_read(const struct bound_key *keys, size_t count, struct match_doc *match_doc, float score, uint64_t ordinal,
               struct sort_value *ret_values);

/* Compares sort values only. Returns: <0, 0, >0. */
int sort_compare(const struct sort_key *keys, size_t count, const struct sort_value *a, const struct sort_value *b);

/* Appends "sort":[…]. */
void sort_write(struct buf *buf, const struct sort_key *keys, size_t count, const struct sort_value *values);

/*
 * Parses search_after, each value by the type of its key. Returns: 0; QUERY_REFUSED with
 * *ret_problem.
 */
int sort_parse_search_after(struct arena *arena, const struct search_request *request, const struct bound_key *keys,
                            enum dialect dialect, struct sort_value **ret_values,
                            struct problem *ret_problem) TL_MUST_USE;

/* A collected hit: its document and its sort values. One allocation, released with mem_free(). */
struct queued_hit {
    uint32_t index; /* of search_context.indices */
    float score;
    struct slice key;   /* document key */
    size_t bytes;       /* of memory */
    size_t heap_index;  /* in hit_queue.items, until hit_queue_finish() */
    struct slice group; /* collapse value; data NULL: not collapsed */
    size_t value_count;
    struct sort_value values[];
};

/* A bounded queue of the best hits, as Lucene's HitQueue. */
struct hit_queue {
    const struct sort_key *keys; /* with key_count 0: by score */
    size_t key_count;
    struct queued_hit **items; /* heap, worst on top; sorted by hit_queue_finish() */
    size_t count, capacity;
    size_t limit;                   /* maximum of `count` */
    const struct queued_hit *after; /* take only hits that follow it; NULL: all. Not owned */
    size_t bytes;                   /* of all items */
    size_t asked;                   /* of these, what the budget was asked for */
    struct map groups;              /* of collapsed hits: group -> struct queued_hit * */
};

void hit_queue_init(struct hit_queue *queue, const struct sort_key *keys, size_t key_count, size_t limit);
void hit_queue_deinit(struct hit_queue *queue);
/* Adds a copy of a hit if it is among the best `limit` hits. */
void hit_queue_offer(struct hit_queue *queue, uint32_t index, float score, struct slice key,
                     const struct sort_value *values);
/* As hit_queue_offer(), but keeps only the best hit of each group. */
void hit_queue_offer_group(struct hit_queue *queue, uint32_t index, float score, struct slice key,
                           const struct sort_value *values, struct slice group);
/* Sorts the items, best first. Assumes: no hit is offered afterwards. */
void hit_queue_finish(struct hit_queue *queue);
/* Copies a hit with its bytes. Owns: the caller; mem_free. */
struct queued_hit *queued_hit_copy(uint32_t index, float score, struct slice key, const struct sort_value *values,
                                   size_t count, struct slice group);

#endif
