/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for misspelled paths; see native_path.h. */
#include "api/request/native_path.h"

#include "api/request/api_internal.h"
#include "base/suggest.h"

/* Each segment must be nearer than this to be taken for a slip. */
#define SLIP_SIMILARITY_MIN 0.6

struct nearest {
    struct request *request;
    struct slice wanted; /* compared with the patterns */
    bool whole;          /* it is the request's whole path */
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
    struct buf proposed = BUF_INIT(BUF_UNLIMITED);
    double similarity = compare_path(nearest->wanted, slice_from(row->pattern + 1), &proposed);
    bool native = row->form == FORM_NATIVE;
    /* Where the whole path is that of a call, something else is wrong; a part of it may not be another's, either. */
    bool exact = similarity == 1 && strstr(row->pattern, "/_") != NULL && (nearest->whole || !native);
    if (exact || (native && similarity > nearest->similarity)) {
        nearest->similarity = similarity;
        nearest->path = exact ? SLICE_NONE : arena_copy(nearest->request->arena, buf_as_slice(&proposed));
    }
    buf_deinit(&proposed);
}

/* Compares a path, or a part of one, without its first '/'. Returns: whether it resembles that of any call. */
static bool look_for(struct nearest *nearest, struct slice wanted, bool whole)
{
    nearest->wanted = wanted;
    nearest->whole = whole;
    if (wanted.len > 0 && (wanted.data[0] == '_' || memmem(wanted.data, wanted.len, "/_", 2) != NULL))
        route_each(look_at, nearest);
    return nearest->similarity > 0;
}

struct slice native_path_suggest(struct request *request)
{
    struct nearest nearest = {.request = request};
    struct slice path = slice_from_offset(request->exchange->path, 1), rest = path;
    (void)take_segment(&rest);
    size_t second = path.len - rest.len, end = second + slice_find_byte(rest, '/');
    /* "/fs/_changes": the index is a parameter; "/fs/_tree/a": so is the directory. */
    if (!look_for(&nearest, path, true) && !look_for(&nearest, rest, false))
        (void)look_for(&nearest, slice_make(path.data, end), false);
    if (nearest.path.len == 0)
        return SLICE_NONE;
    return arena_printf(request->arena, "; did you mean [%.*s]?", SLICE_ARG(nearest.path));
}
