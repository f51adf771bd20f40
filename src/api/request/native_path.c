/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for misspelled paths; see native_path.h. */
#include "api/request/native_path.h"

#include "api/request/api_internal.h"
#include "base/suggest.h"

/* Each segment must be nearer than this to be taken for a slip. */
#define SLIP_SIMILARITY_MIN 0.6

struct nearest {
    struct request *request;
    double similarity;
    struct slice path;
};

static struct slice take_segment(struct slice *path)
{
    size_t len = slice_find_byte(*path, '/');
    struct slice segment = slice_make(path->data, len);
    *path = slice_from_offset(*path, len + 1);
    return segment;
}

/*
 * Returns: how near the path is to the pattern, 0 when it is no slip; *proposed is the pattern with
 * the path's own parts.
 */
static double compare_path(struct slice path, struct slice pattern, struct buf *proposed)
{
    double least = 1;
    while (path.len > 0 && pattern.len > 0) {
        struct slice have = take_segment(&path), want = take_segment(&pattern);
        bool is_part = want.len > 0 && want.data[0] == '{';
        double similarity = is_part ? 1 : suggest_similarity(have, want);
        if (similarity <= SLIP_SIMILARITY_MIN)
            return 0;
        least = similarity < least ? similarity : least;
        buf_byte(proposed, '/');
        buf_slice(proposed, is_part ? have : want);
    }
    return path.len > 0 || pattern.len > 0 ? 0 : least;
}

static void look_at(const struct route *row, void *context)
{
    struct nearest *nearest = context;
    struct slice path = nearest->request->exchange->path;
    struct buf proposed = BUF_INIT(BUF_UNLIMITED);
    double similarity = compare_path(slice_from_offset(path, 1), slice_from(row->pattern + 1), &proposed);
    bool exact = similarity == 1 && row->pattern[1] != '{'; /* the path is right, something else is wrong */
    if (exact || (row->form == FORM_NATIVE && similarity > nearest->similarity)) {
        nearest->similarity = similarity;
        nearest->path = exact ? SLICE_NONE : arena_copy(nearest->request->arena, buf_as_slice(&proposed));
    }
    buf_deinit(&proposed);
}

struct slice native_path_suggest(struct request *request)
{
    struct nearest nearest = {.request = request};
    if (!slice_starts_with(request->exchange->path, SLICE_LIT("/_")))
        return SLICE_NONE;
    route_each(look_at, &nearest);
    if (nearest.path.len == 0)
        return SLICE_NONE;
    return arena_printf(request->arena, "; did you mean [%.*s]?", SLICE_ARG(nearest.path));
}
