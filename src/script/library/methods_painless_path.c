/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's getByPath of lists and maps: "user.names.0" is a path into the document.
 *
 * Names select map entries, numbers select list elements. If only the last part of the path is
 * missing, the result is the fallback, if one was given. If an earlier part is missing, the call
 * throws.
 */
#include "script/library/method_args.h"

/* One part of a path, with the data that error messages show. */
struct path_part {
    struct text *name;
    struct slice shown; /* name, in UTF-8 */
    struct slice path;  /* the whole path */
    unsigned index;     /* of this part in the path, from 0 */
    bool last;
};

static bool part_of_map(struct run *run, const struct path_part *part, struct value *at, bool *ret_found)
{
    struct map_entry *entry;
    if (!dict_find(run, dict_of(*at), value_of(part->name), &entry))
        return false;
    *ret_found = entry != NULL;
    if (entry != NULL)
        *at = entry->value;
    return true;
}

static bool part_of_list(struct run *run, const struct path_part *part, struct value *at, bool *ret_found)
{
    const struct seq *seq = seq_of(*at);
    int64_t position;
    if (!number_parse_i64(part->shown, 10, 0, INT32_MAX, &position))
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION,
                         "Could not parse [%.*s] as a int index into list at path [%.*s] and index [%u]",
                         SLICE_ARG(part->shown), SLICE_ARG(part->path), part->index);
    *ret_found = position < seq->count;
    if (*ret_found)
        *at = seq_item(seq, (size_t)position);
    return true;
}

/* Replaces *at by its element of this part's name; *ret_found is false if the last part is
   missing. Returns: true; false with a throwable in the run if an earlier part is missing or *at
   has no elements. */
static bool part_take(struct run *run, const struct path_part *part, struct value *at, bool *ret_found)
{
    if (value_is_map(*at)) {
        if (!part_of_map(run, part, at, ret_found))
            return false;
    } else if (value_is_seq(*at)) {
        if (!part_of_list(run, part, at, ret_found))
            return false;
    } else {
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "Non-container [%s] at [%.*s], index [%u] in path [%.*s]",
                         at->kind == VALUE_NULL ? "null" : class_infos[type_class(value_type(*at))].java,
                         SLICE_ARG(part->shown), part->index, SLICE_ARG(part->path));
    }
    if (*ret_found || part->last)
        return true;
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                     "Container does not have [%.*s], for non-terminal index [%u] in path [%.*s]",
                     SLICE_ARG(part->shown), part->index, SLICE_ARG(part->path));
}

static bool get_by_path(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct path_part part = {.index = 0};
    size_t begin = 0;
    NOT_NULL(0);
    struct text *path = text_of(call->args[0]);
    if (path->length == 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Missing path");
    part.path = text_utf8(run, path);
    run_charge(run, part.path.len);
    *ret = call->self;
    for (size_t i = 0; i <= path->length; i++) {
        bool found = false;
        if (i < path->length && text_at(path, i) != '.')
            continue;
        part.name = text_substring(run, path, begin, i);
        if (part.name == NULL || !run_step(run, 1))
            return false;
        part.shown = text_utf8(run, part.name);
        part.last = i == path->length;
        if (!part_take(run, &part, ret, &found))
            return false;
        if (!found && call->count == 1)
            return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Could not find value at path [%.*s]",
                             SLICE_ARG(part.path));
        if (!found)
            *ret = call->args[1];
        begin = i + 1;
        part.index++;
    }
    return true;
}

static const struct method_row path_methods[] = {
    {"Object getByPath(String)", PAINLESS, get_by_path},
    {"Object getByPath(String, Object)", PAINLESS, get_by_path},
};

const struct method_table methods_painless_path[] = {
    METHOD_ROWS(LIST, path_methods),
    METHOD_ROWS(MAP, path_methods),
    {0},
};
