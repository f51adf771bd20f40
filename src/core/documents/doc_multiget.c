/* SPDX-License-Identifier: Apache-2.0 */
/* Reading documents whose keys rise; see doc_multiget.h. */
#include "core/documents/doc_multiget.h"

#include "base/buf.h"

enum {
    STEPS_MAX = 4,    /* to a key a little further on, before it is sought */
    SEEKS_FREE = 4,   /* before they have to pay */
    ASKED_A_SEEK = 8, /* a seek takes as long as about so many lookups of what is not there */
};

/*
 * Where the walk stands: nothing lies between `low` and the iterator's key, or behind `low` when the iterator is at its end.
 */
struct doc_multiget {
    struct view_iter *iter; /* NULL: given up */
    struct buf first;       /* the bounds; `last` with a byte behind it, since bounds end before it */
    struct buf last;
    struct buf low;
    bool started;
    uint64_t asked;
    uint64_t seeks;
};

struct doc_multiget *doc_multiget_new(const struct view *view, struct slice first, struct slice last)
{
    struct doc_multiget *run = mem_zalloc(sizeof(*run));

    run->first = run->last = run->low = BUF_INIT(DOC_KEY_BYTES_MAX + 1);
    buf_slice(&run->first, first);
    buf_slice(&run->last, last);
    buf_byte(&run->last, '\0');
    run->iter = view_iter_new(view, SPACE_DOCUMENTS, buf_as_slice(&run->first), buf_as_slice(&run->last));
    return run;
}

void doc_multiget_free(struct doc_multiget *run)
{
    if (run == NULL)
        return;
    view_iter_free(run->iter);
    buf_deinit(&run->first);
    buf_deinit(&run->last);
    buf_deinit(&run->low);
    mem_free(run);
}

static void set_low(struct doc_multiget *run, struct slice key)
{
    buf_clear(&run->low);
    buf_slice(&run->low, key);
}

/* Where a key lies from the iterator's: before it (<0), at it, behind it. */
static int order_of(const struct doc_multiget *run, struct slice key)
{
    return view_iter_valid(run->iter) ? slice_compare(key, view_iter_key(run->iter)) : -1;
}

/* Moves on to the first key at or behind `key`: step by step where it is near. */
static void move_to(struct doc_multiget *run, struct slice key)
{
    for (int steps = 0; steps < STEPS_MAX && order_of(run, key) > 0; steps++) {
        set_low(run, view_iter_key(run->iter));
        view_iter_next(run->iter);
    }
    if (order_of(run, key) > 0) {
        run->seeks++;
        view_iter_seek(run->iter, key);
        set_low(run, key);
    }
}

static void give_up(struct doc_multiget *run)
{
    view_iter_free(run->iter);
    run->iter = NULL;
}

static bool pays(const struct doc_multiget *run)
{
    return run->seeks <= SEEKS_FREE || run->seeks * ASKED_A_SEEK <= run->asked;
}

int doc_multiget_get(struct doc_multiget *run, struct slice key, struct doc *ret_doc)
{
    struct slice last = slice_make(run->last.data, run->last.len - 1);

    if (run->iter == NULL || slice_compare(key, buf_as_slice(&run->first)) < 0 || slice_compare(key, last) > 0)
        return DOC_MULTIGET_UNKNOWN;
    run->asked++;
    if (!run->started) {
        run->started = true;
        view_iter_seek_first(run->iter);
    } else if (slice_compare(key, buf_as_slice(&run->low)) <= 0) {
        return DOC_MULTIGET_UNKNOWN; /* it goes forward only */
    }
    move_to(run, key);
    if (view_iter_status(run->iter) != 0 || !pays(run)) {
        give_up(run);
        return DOC_MULTIGET_UNKNOWN; /* what is wrong, the store will say */
    }
    if (order_of(run, key) < 0)
        return DOC_NOT_FOUND;
    return doc_decode(view_iter_value(run->iter), ret_doc) < 0 ? tl_trace(TL_ERR_CORRUPT) : 0;
}
