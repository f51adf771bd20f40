/* SPDX-License-Identifier: Apache-2.0 */
/* The document at hand: parsed when first asked, fields read once. */
#include "query/bound_query.h"

#include <stdlib.h>

#include "mapping/document.h"
#include "script/script.h"

void subject_init(struct subject *subject, const struct search_index *index, struct arena *problems)
{
    *subject = (struct subject){.index = index, .arena = ARENA_INIT, .problems = problems};
}

void subject_deinit(struct subject *subject)
{
    arena_deinit(&subject->arena);
}

void subject_set(struct subject *subject, uint16_t type, struct slice id, const struct doc *doc)
{
    if (subject->root != NULL || subject->values != NULL)
        arena_reset(&subject->arena);
    subject->type = type;
    subject->id = id;
    subject->doc = doc;
    subject->root = NULL;
    subject->values = NULL;
    subject->texts = NULL;
}

yyjson_val *subject_root(struct subject *subject)
{
    struct json_doc json;
    if (subject->root != NULL || subject->error != 0)
        return subject->root;
    int r = json_parse_stored(&subject->arena, subject->doc->source, &json);
    if (r != 0)
        subject->error = r;
    else
        subject->root = json.root;
    return subject->root;
}

struct subject_values *subject_values(struct subject *subject, const struct mapping_field *field)
{
    for (struct subject_values *known = subject->values; known != NULL; known = known->next)
        if (known->field == field)
            return known;
    yyjson_val *root = subject_root(subject);
    struct subject_values *read = arena_zalloc(&subject->arena, sizeof *read);
    read->field = field;
    if (root != NULL)
        read->count = document_field_values(subject->index->mapping, field, root, &subject->arena, &read->values);
    read->next = subject->values;
    subject->values = read;
    return read;
}

size_t subject_field(struct subject *subject, const struct mapping_field *field, struct field_value **ret_values)
{
    const struct subject_values *read = subject_values(subject, field);
    *ret_values = read->values;
    return read->count;
}

struct slice subject_source_path(const struct mapping_field *field)
{
    const struct mapping_field *parent = field->parent;
    bool multi = parent != NULL && parent->type != FIELD_OBJECT && parent->type != FIELD_NESTED;
    return multi ? parent->path : field->path;
}

bool subject_field_flag(const struct mapping_field *field, const char *name, bool otherwise)
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

static int compare_strings(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void doc_numbers(struct subject *subject, const struct field_value *values, struct script_doc_field *field)
{
    int64_t *integers = arena_alloc(&subject->arena, (field->count + 1) * sizeof *integers);
    for (size_t i = 0; i < field->count; i++)
        integers[i] = values[i].i64;
    qsort(integers, field->count, sizeof *integers, compare_integers);
    field->integers = integers;
}

static void doc_doubles(struct subject *subject, const struct field_value *values, double factor,
                        struct script_doc_field *field)
{
    double *doubles = arena_alloc(&subject->arena, (field->count + 1) * sizeof *doubles);
    for (size_t i = 0; i < field->count; i++)
        doubles[i] = values[i].kind == FIELD_VALUE_I64 ? (double)values[i].i64 / factor : values[i].f64;
    qsort(doubles, field->count, sizeof *doubles, compare_doubles);
    field->kind = SCRIPT_DOC_DOUBLE;
    field->doubles = doubles;
}

/* Texts are a set. */
static void doc_strings(struct subject *subject, const struct field_value *values, struct script_doc_field *field)
{
    struct slice *strings = arena_alloc(&subject->arena, (field->count + 1) * sizeof *strings);
    size_t kept = 0;
    for (size_t i = 0; i < field->count; i++)
        strings[i] = values[i].bytes;
    qsort(strings, field->count, sizeof *strings, compare_strings);
    for (size_t i = 0; i < field->count; i++)
        if (kept == 0 || !slice_equal(strings[kept - 1], strings[i]))
            strings[kept++] = strings[i];
    field->kind = SCRIPT_DOC_STRING;
    field->count = kept;
    field->strings = strings;
}

static bool doc_lookup(void *user, struct slice name, struct script_doc_field *ret_field)
{
    struct subject *subject = user;
    const struct mapping_field *field = mapping_field(subject->index->mapping, name);
    struct field_value *values = NULL;
    if (field == NULL || field_value_kind(field) == FIELD_VALUE_NONE)
        return false;
    if (field->type == FIELD_TEXT && !subject_field_flag(field, "fielddata", false)) {
        *ret_field = (struct script_doc_field){.refused = true};
        return true;
    }
    size_t count = subject_field(subject, field, &values);
    *ret_field = (struct script_doc_field){.kind = SCRIPT_DOC_LONG, .count = count};
    if (field->type == FIELD_SCALED_FLOAT)
        doc_doubles(subject, values, field->scaling_factor, ret_field);
    else if (field_value_kind(field) == FIELD_VALUE_F64)
        doc_doubles(subject, values, 1, ret_field);
    else if (field_value_kind(field) == FIELD_VALUE_BYTES)
        doc_strings(subject, values, ret_field);
    else
        doc_numbers(subject, values, ret_field);
    if (field->type == FIELD_DATE)
        ret_field->kind = SCRIPT_DOC_DATE;
    if (field->type == FIELD_BOOLEAN)
        ret_field->kind = SCRIPT_DOC_BOOLEAN;
    return true;
}

int subject_run_script(struct subject *subject, const struct script *script, struct slice params, float score,
                       struct script_value *ret_value)
{
    struct problem problem;
    *ret_value = (struct script_value){.params = params,
                                       .source = subject->doc->source,
                                       .zones = subject->index->zones,
                                       .doc = doc_lookup,
                                       .doc_user = subject,
                                       .score = score,
                                       .account = subject->account};
    if (subject->account != NULL && subject->account->steps_max == SEARCH_SHORT_STEPS) {
        subject->account->end =
            ACCOUNT_SPENT; /* what is to be short runs no scripts: one may take a tenth of a second */
        return SCRIPT_FAILED;
    }
    (void)subject_root(subject); /* so that the arena is known to be in use */
    int r = script_run_value(script, NULL, &subject->arena, ret_value, &problem);
    if (r > 0 && subject->problem == NULL) {
        subject->problem = arena_alloc(subject->problems, sizeof problem);
        problem_copy(subject->problem, &problem, subject->problems);
    }
    return r;
}
