/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: which documents are worth reading, and reading them in order. For src/query only.
 */
#ifndef TL_QUERY_PLAN_H
#define TL_QUERY_PLAN_H

#include "query/bound_query.h"

#define PLAN_CANDIDATES_MAX 200000       /* documents named by entries before all are read instead */
#define PLAN_CURSOR_CANDIDATES_MAX 50000 /* the same where the names are kept from page to page */

enum plan_kind { PLAN_SCAN, PLAN_KEYS };

struct plan {
    enum plan_kind kind;
    struct slice *keys; /* KEYS: document keys, ascending, each once */
    size_t count;
};

/*
 * Names every document that may match; keys live in `arena`. Each entry that is read is drawn from `account`, which may be NULL; once
 * that is over the plan means nothing.
 * Returns: 0, or a fatal code.
 */
int plan_make(const struct bound_query *matcher, const struct search_index *index, const struct view *view,
              struct account *account, struct arena *arena, size_t candidates_max, struct plan *ret_plan) TL_MUST_USE;

/* A walk over the documents of a plan, by document key. */
struct plan_cursor {
    const struct plan *plan;
    const struct view *view;
    uint32_t index;
    size_t position;       /* of keys */
    struct doc_scan *scan; /* SCAN */
    struct doc doc;        /* KEYS: what the last step handed out */
};

enum { PLAN_CURSOR_END = 1, PLAN_CURSOR_TOO_OLD = 2 };

/* Begins behind the key `after`, or at the first document where its data is NULL. */
void plan_cursor_init(struct plan_cursor *plan_cursor, const struct plan *plan, const struct view *view, uint32_t index,
                struct slice after);
/* Steps to the next document; what it hands out lives until the next step. Returns: 0, PLAN_CURSOR_END,
 * PLAN_CURSOR_TOO_OLD, fatal codes. */
int plan_cursor_next(struct plan_cursor *plan_cursor, uint16_t *ret_type, struct slice *ret_id, const struct doc **ret_doc) TL_MUST_USE;
void plan_cursor_deinit(struct plan_cursor *plan_cursor);

#endif
