/* SPDX-License-Identifier: Apache-2.0 */
/* The document at hand: parsed when first asked, fields read once. */
#include "query/matcher.h"

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

size_t subject_field(struct subject *subject, const struct mapping_field *field, struct value **ret_values)
{
    for (struct subject_values *known = subject->values; known != NULL; known = known->next) {
        if (known->field == field) {
            *ret_values = known->values;
            return known->count;
        }
    }
    yyjson_val *root = subject_root(subject);
    struct subject_values *read = arena_zalloc(&subject->arena, sizeof *read);
    read->field = field;
    if (root != NULL)
        read->count = document_field_values(subject->index->mapping, field, root, &subject->arena, &read->values);
    read->next = subject->values;
    subject->values = read;
    *ret_values = read->values;
    return read->count;
}

struct slice subject_source_path(const struct mapping_field *field)
{
    const struct mapping_field *parent = field->parent;
    bool multi = parent != NULL && parent->type != FIELD_OBJECT && parent->type != FIELD_NESTED;
    return multi ? parent->path : field->path;
}

/* --- doc['field'] of scripts -------------------------------------------------------------------------------------- */

static void doc_numbers(struct subject *subject, const struct value *values, size_t count,
                        struct script_doc_field *field)
{
    int64_t *integers = arena_alloc(&subject->arena, count * sizeof *integers);
    for (size_t i = 0; i < count; i++)
        integers[i] = values[i].i64;
    field->integers = integers;
}

static void doc_doubles(struct subject *subject, const struct value *values, size_t count, double factor,
                        struct script_doc_field *field)
{
    double *doubles = arena_alloc(&subject->arena, count * sizeof *doubles);
    for (size_t i = 0; i < count; i++)
        doubles[i] = values[i].kind == VALUE_I64 ? (double)values[i].i64 / factor : values[i].f64;
    field->kind = SCRIPT_DOC_DOUBLE;
    field->doubles = doubles;
}

static void doc_strings(struct subject *subject, const struct value *values, size_t count,
                        struct script_doc_field *field)
{
    struct slice *strings = arena_alloc(&subject->arena, count * sizeof *strings);
    for (size_t i = 0; i < count; i++)
        strings[i] = values[i].bytes;
    field->kind = SCRIPT_DOC_STRING;
    field->strings = strings;
}

static bool doc_lookup(void *user, struct slice name, struct script_doc_field *ret_field)
{
    struct subject *subject = user;
    const struct mapping_field *field = mapping_field(subject->index->mapping, name);
    struct value *values = NULL;
    if (field == NULL || field_value_kind(field) == VALUE_NONE)
        return false;
    size_t count = subject_field(subject, field, &values);
    *ret_field = (struct script_doc_field){.kind = SCRIPT_DOC_LONG, .count = count};
    if (field->type == FIELD_SCALED_FLOAT)
        doc_doubles(subject, values, count, field->scaling_factor, ret_field);
    else if (field_value_kind(field) == VALUE_F64)
        doc_doubles(subject, values, count, 1, ret_field);
    else if (field_value_kind(field) == VALUE_BYTES)
        doc_strings(subject, values, count, ret_field);
    else
        doc_numbers(subject, values, count, ret_field);
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
    *ret_value = (struct script_value){
        .params = params, .source = subject->doc->source, .doc = doc_lookup, .doc_user = subject, .score = score};
    (void)subject_root(subject); /* so that the arena is known to be in use */
    int r = script_run_value(script, NULL, &subject->arena, ret_value, &problem);
    if (r > 0 && subject->problem == NULL) {
        subject->problem = arena_alloc(subject->problems, sizeof problem);
        problem_copy(subject->problem, &problem, subject->problems);
    }
    return r;
}
