/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query plans: the candidate documents of a bound query, and a cursor over them. For src/query
 * only.
 */
#ifndef TL_QUERY_PLAN_H
#define TL_QUERY_PLAN_H

#include "query/bound_query.h"

#define PLAN_CANDIDATES_MAX 200000       /* with more candidates all documents are scanned */
#define PLAN_CURSOR_CANDIDATES_MAX 50000 /* if a search cursor keeps them between pages */
#define PLAN_KEY_BYTES 128               /* of a key on average, at most: else all documents are scanned, too */

enum plan_kind { PLAN_SCAN, PLAN_KEYS };

struct plan {
    enum plan_kind kind;
    struct slice *keys; /* PLAN_KEYS: candidate document keys, ascending, no duplicates */
    size_t count;
};

/*
 * Chooses a plan that includes every document that may match. Each index entry read is charged to
 * `account` (NULL: unlimited); once that has ended the plan is meaningless.
 * Returns: 0; fatal codes. Owns: keys live in `arena`.
 */
int plan_make(const struct bound_query *matcher, const struct search_index *index, const struct view *view,
              struct account *account, struct arena *arena, size_t candidates_max, struct plan *ret_plan) TL_MUST_USE;

/* Iterates over the documents of a plan in the order of their keys. */
struct plan_cursor {
    const struct plan *plan;
    const struct view *view;
    uint32_t index;
    size_t position;       /* PLAN_KEYS: index of the next key */
    struct doc_scan *scan; /* PLAN_SCAN; else NULL */
    struct doc doc;        /* current document; with PLAN_KEYS the cursor releases it */
};

enum { PLAN_CURSOR_END = 1, PLAN_CURSOR_TOO_OLD = 2 };

/*
 * Starts after the key `after`; at the first document if its data is NULL. Owns: the caller;
 * plan_cursor_deinit.
 */
void plan_cursor_init(struct plan_cursor *plan_cursor, const struct plan *plan, const struct view *view, uint32_t index,
                      struct slice after);
/*
 * Reads the next document. The results are valid until the next call.
 * Returns: 0; PLAN_CURSOR_END; PLAN_CURSOR_TOO_OLD if the view is older than the history; fatal
 * codes.
 */
int plan_cursor_next(struct plan_cursor *plan_cursor, uint16_t *ret_type, struct slice *ret_id,
                     const struct doc **ret_doc) TL_MUST_USE;
void plan_cursor_deinit(struct plan_cursor *plan_cursor);

#endif
