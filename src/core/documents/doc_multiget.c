/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered multi-document reads; see doc_multiget.h. */
#include "core/documents/doc_multiget.h"

#include "base/buf.h"
#include "base/check.h"

enum {
    STEPS_MAX = 4,        /* iterator steps before a seek */
    FREE_SEEKS = 4,       /* seeks before the rate is checked */
    LOOKUPS_PER_SEEK = 8, /* lookups of missing keys that cost as much as a seek */
};

/*
 * Invariant: no document is between `low` and the iterator's key, or after `low` if the iterator is
 * at its end.
 */
struct doc_multiget {
    struct view_iter *iter; /* NULL: stopped */
    struct buf first;       /* bounds; `last` has a zero byte appended, as the upper bound is exclusive */
    struct buf last;
    struct buf low;
    bool started;
    uint64_t lookups;
    uint64_t seeks;
};

struct doc_multiget *doc_multiget_new(const struct view *view, struct slice first, struct slice last)
{
    REQUIRE(view->overlay == NULL && slice_compare(first, last) <= 0);
    struct doc_multiget *multiget = mem_zalloc(sizeof(*multiget));

    multiget->first = multiget->last = multiget->low = BUF_INIT(DOC_KEY_BYTES_MAX + 1);
    buf_slice(&multiget->first, first);
    buf_slice(&multiget->last, last);
    buf_byte(&multiget->last, '\0');
    multiget->iter =
        view_iter_new(view, SPACE_DOCUMENTS, buf_as_slice(&multiget->first), buf_as_slice(&multiget->last));
    return multiget;
}

void doc_multiget_free(struct doc_multiget *multiget)
{
    if (multiget == NULL)
        return;
    view_iter_free(multiget->iter);
    buf_deinit(&multiget->first);
    buf_deinit(&multiget->last);
    buf_deinit(&multiget->low);
    mem_free(multiget);
}

static void set_low(struct doc_multiget *multiget, struct slice key)
{
    buf_clear(&multiget->low);
    buf_slice(&multiget->low, key);
}

/* Compares a key with the iterator's: <0 before it, 0 equal, >0 after it. */
static int compare_to_iter(const struct doc_multiget *multiget, struct slice key)
{
    return view_iter_valid(multiget->iter) ? slice_compare(key, view_iter_key(multiget->iter)) : -1;
}

/* Moves to the first key at or after `key`, by a few steps if it is near, else by a seek. */
static void move_to(struct doc_multiget *multiget, struct slice key)
{
    for (int steps = 0; steps < STEPS_MAX && compare_to_iter(multiget, key) > 0; steps++) {
        set_low(multiget, view_iter_key(multiget->iter));
        view_iter_next(multiget->iter);
    }
    if (compare_to_iter(multiget, key) > 0) {
        multiget->seeks++;
        view_iter_seek(multiget->iter, key);
        set_low(multiget, key);
    }
}

static bool is_worthwhile(const struct doc_multiget *multiget)
{
    return multiget->seeks <= FREE_SEEKS || multiget->seeks * LOOKUPS_PER_SEEK <= multiget->lookups;
}

int doc_multiget_get(struct doc_multiget *multiget, struct slice key, struct doc *ret_doc)
{
    REQUIRE(multiget->last.len > 0);
    struct slice last = slice_make(multiget->last.data, multiget->last.len - 1);

    if (multiget->iter == NULL || slice_compare(key, buf_as_slice(&multiget->first)) < 0 ||
        slice_compare(key, last) > 0)
        return DOC_MULTIGET_UNKNOWN;
    multiget->lookups++;
    if (!multiget->started) {
        multiget->started = true;
        view_iter_seek_first(multiget->iter);
    } else if (slice_compare(key, buf_as_slice(&multiget->low)) <= 0) {
        return DOC_MULTIGET_UNKNOWN; /* the iterator only moves forward */
    }
    move_to(multiget, key);
    if (view_iter_status(multiget->iter) != 0 || !is_worthwhile(multiget)) {
        view_iter_free(multiget->iter);
        multiget->iter = NULL;
        return DOC_MULTIGET_UNKNOWN; /* the point read will report the error */
    }
    if (compare_to_iter(multiget, key) < 0)
        return DOC_NOT_FOUND;
    return doc_decode(view_iter_value(multiget->iter), ret_doc) < 0 ? tl_trace(TL_ERR_CORRUPT) : 0;
}
