/* SPDX-License-Identifier: Apache-2.0 */
/* The document being matched. It is parsed at the first access; each field is read once. */
#include "query/bound_query.h"

#include <stdlib.h>

#include "base/budget.h"
#include "mapping/document.h"
#include "script/script.h"

void match_doc_init(struct match_doc *match_doc, const struct search_index *index, struct arena *problems)
{
    *match_doc = (struct match_doc){.index = index, .arena = ARENA_INIT, .scratch = ARENA_INIT, .problems = problems};
}

void match_doc_deinit(struct match_doc *match_doc)
{
    arena_deinit(&match_doc->arena);
    arena_deinit(&match_doc->scratch);
}

void match_doc_clear(struct match_doc *match_doc)
{
    match_doc_deinit(match_doc);
    match_doc->root = NULL;
    match_doc->values = NULL;
    match_doc->texts = NULL;
}

struct arena_mark match_doc_mark(struct match_doc *match_doc)
{
    if (match_doc->scratch.chunks == NULL)
        arena_reserve(&match_doc->scratch, 1024);
    return arena_mark(&match_doc->scratch);
}

void match_doc_set(struct match_doc *match_doc, uint16_t type, struct slice id, const struct doc *doc)
{
    if (match_doc->arena.used > 0)
        arena_reset(&match_doc->arena);
    match_doc->type = type;
    match_doc->id = id;
    match_doc->doc = doc;
    match_doc->root = NULL;
    match_doc->values = NULL;
    match_doc->texts = NULL;
    match_doc->kept = 0;
}

yyjson_val *match_doc_root(struct match_doc *match_doc)
{
    struct json_doc json;
    if (match_doc->root != NULL || match_doc->error != 0)
        return match_doc->root;
    int r = json_parse_stored(&match_doc->arena, match_doc->doc->source, &json);
    if (r != 0)
        match_doc->error = r;
    else
        match_doc->root = json.root;
    return match_doc->root;
}

struct match_doc_values *match_doc_values(struct match_doc *match_doc, const struct mapping_field *field)
{
    for (struct match_doc_values *known = match_doc->values; known != NULL; known = known->next)
        if (known->field == field)
            return known;
    yyjson_val *root = match_doc_root(match_doc);
    struct match_doc_values *read = arena_zalloc(&match_doc->arena, sizeof *read);
    read->field = field;
    if (root != NULL)
        read->count = document_field_values(match_doc->index->mapping, field, root, &match_doc->arena, &read->values);
    read->next = match_doc->values;
    match_doc->values = read;
    return read;
}

size_t match_doc_field(struct match_doc *match_doc, const struct mapping_field *field,
                       const struct field_value **ret_values)
{
    const struct match_doc_values *read = match_doc_values(match_doc, field);
    *ret_values = read->values;
    return read->count;
}

static int by_value(const void *a, const void *b)
{
    return field_value_compare(a, b);
}

void match_doc_sort_values(struct match_doc *match_doc, struct match_doc_values *values)
{
    if (values->count <= 1)
        values->sorted = values->values;
    if (values->sorted != NULL || values->count == 0)
        return;
    values->sorted = arena_alloc(&match_doc->arena, values->count * sizeof *values->sorted);
    memcpy(values->sorted, values->values, values->count * sizeof *values->sorted);
    qsort(values->sorted, values->count, sizeof *values->sorted, by_value);
}

size_t match_doc_sorted(struct match_doc *match_doc, const struct mapping_field *field,
                        const struct field_value **ret_values)
{
    struct match_doc_values *read = match_doc_values(match_doc, field);
    match_doc_sort_values(match_doc, read);
    *ret_values = read->sorted;
    return read->count;
}

struct slice field_source_path(const struct mapping_field *field)
{
    const struct mapping_field *parent = field->parent;
    bool multi = parent != NULL && parent->type != FIELD_OBJECT && parent->type != FIELD_NESTED;
    return multi ? parent->path : field->path;
}

bool field_parameter_flag(const struct mapping_field *field, const char *name, bool otherwise)
{
    for (size_t i = 0; i < field->parameter_count; i++)
        if (slice_is(field->parameters[i].name, name))
            return slice_is(field->parameters[i].json, "true") || slice_is(field->parameters[i].json, "\"true\"");
    return otherwise;
}

/* --- doc['field'] of scripts -------------------------------------------------------------------------------------- */

static int compare_integers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void doc_numbers(struct match_doc *match_doc, const struct field_value *values, struct script_doc_field *field)
{
    int64_t *integers = arena_alloc(&match_doc->scratch, (field->count + 1) * sizeof *integers);
    for (size_t i = 0; i < field->count; i++)
        integers[i] = values[i].i64;
    qsort(integers, field->count, sizeof *integers, compare_integers);
    field->integers = integers;
}

static void doc_doubles(struct match_doc *match_doc, const struct field_value *values, double factor,
                        struct script_doc_field *field)
{
    double *doubles = arena_alloc(&match_doc->scratch, (field->count + 1) * sizeof *doubles);
    for (size_t i = 0; i < field->count; i++)
        doubles[i] = values[i].kind == FIELD_VALUE_I64 ? (double)values[i].i64 / factor : values[i].f64;
    qsort(doubles, field->count, sizeof *doubles, compare_doubles);
    field->kind = SCRIPT_DOC_DOUBLE;
    field->doubles = doubles;
}

/* Fills a script's field with strings, sorted and without duplicates. */
static void doc_strings(struct match_doc *match_doc, const struct field_value *values, struct script_doc_field *field)
{
    struct slice *strings = arena_alloc(&match_doc->scratch, (field->count + 1) * sizeof *strings);
    size_t unique = 0;
    for (size_t i = 0; i < field->count; i++)
        strings[i] = values[i].bytes;
    qsort(strings, field->count, sizeof *strings, slice_order);
    for (size_t i = 0; i < field->count; i++)
        if (unique == 0 || !slice_equal(strings[unique - 1], strings[i]))
            strings[unique++] = strings[i];
    field->kind = SCRIPT_DOC_STRING;
    field->count = unique;
    field->strings = strings;
}

/* Provides doc['name'] to a script. Returns: false: the field is unmapped or cannot have values. */
static bool doc_lookup(void *user, struct slice name, struct script_doc_field *ret_field)
{
    struct match_doc *match_doc = user;
    const struct mapping_field *field = mapping_field(match_doc->index->mapping, name);
    const struct field_value *values = NULL;
    if (field == NULL || field_value_kind(field) == FIELD_VALUE_NONE)
        return false;
    if (field->type == FIELD_TEXT && !field_parameter_flag(field, "fielddata", false)) {
        *ret_field = (struct script_doc_field){.refused = true};
        return true;
    }
    size_t count = match_doc_field(match_doc, field, &values);
    *ret_field = (struct script_doc_field){.kind = SCRIPT_DOC_LONG, .count = count};
    if (field->type == FIELD_SCALED_FLOAT)
        doc_doubles(match_doc, values, field->scaling_factor, ret_field);
    else if (field_value_kind(field) == FIELD_VALUE_F64)
        doc_doubles(match_doc, values, 1, ret_field);
    else if (field_value_kind(field) == FIELD_VALUE_BYTES)
        doc_strings(match_doc, values, ret_field);
    else
        doc_numbers(match_doc, values, ret_field);
    if (field->type == FIELD_DATE)
        ret_field->kind = SCRIPT_DOC_DATE;
    if (field->type == FIELD_BOOLEAN)
        ret_field->kind = SCRIPT_DOC_BOOLEAN;
    return true;
}

/*
 * Copies the part of a result that is kept until the next document, and charges the guard of the search with the most
 * that one document keeps. Returns: whether the guard granted it.
 */
static bool keep_result(struct match_doc *match_doc, enum script_result part, struct script_eval *value)
{
    struct budget_guard *memory = match_doc->problems->guard;
    struct slice kept = part == SCRIPT_RESULT_TEXT   ? value->string
                        : part == SCRIPT_RESULT_JSON ? value->json
                                                     : SLICE_NONE;
    value->json = value->string = value->display = SLICE_NONE;
    match_doc->kept += kept.len;
    size_t more = match_doc->kept > match_doc->charged ? match_doc->kept - match_doc->charged : 0;
    if (budget_guard_asks(memory, more)) {
        match_doc->charged += more;
        if (!budget_guard_take(memory, more))
            return false;
    }
    if (part == SCRIPT_RESULT_TEXT)
        value->string = arena_copy(&match_doc->arena, kept);
    if (part == SCRIPT_RESULT_JSON)
        value->json = arena_copy(&match_doc->arena, kept);
    return true;
}

int match_doc_run_script(struct match_doc *match_doc, const struct script *script, struct slice params, float score,
                         enum script_result part, struct script_eval *ret_value)
{
    struct problem problem;
    *ret_value = (struct script_eval){.params = params,
                                      .source = match_doc->doc->source,
                                      .zones = match_doc->index->zones,
                                      .doc = doc_lookup,
                                      .doc_user = match_doc,
                                      .score = score,
                                      .account = match_doc->account};
    if (match_doc->account != NULL && match_doc->account->steps_max == SEARCH_SHORT_STEPS) {
        match_doc->account->end = ACCOUNT_SPENT; /* a short search runs no scripts: one may take 100 ms */
        return SCRIPT_FAILED;
    }
    if (match_doc->problems->guard != NULL && match_doc->problems->guard->refused)
        return SCRIPT_FAILED;        /* the search ends with the refusal */
    (void)match_doc_root(match_doc); /* notes a corrupt source */
    if (match_doc->gate != NULL && !match_doc->gate->begin(match_doc->gate->user, match_doc->account))
        return SCRIPT_FAILED;
    struct arena_mark mark = match_doc_mark(match_doc);
    int r = script_run_value(script, NULL, &match_doc->scratch, ret_value, &problem);
    if (r > 0 && match_doc->problem == NULL) {
        match_doc->problem = arena_alloc(match_doc->problems, sizeof problem);
        problem_copy(match_doc->problem, &problem, match_doc->problems);
    }
    if (r == 0 && !keep_result(match_doc, part, ret_value))
        r = SCRIPT_FAILED;
    arena_rewind(&match_doc->scratch, mark);
    if (match_doc->gate != NULL)
        match_doc->gate->end(match_doc->gate->user);
    return r;
}
