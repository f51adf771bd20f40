/* SPDX-License-Identifier: Apache-2.0 */
/* doc['field']; see docvalues.h. */
#include "script/value/docvalues.h"

#include "script/value/temporal.h"

struct value doc_new(struct run *run, script_doc_function *function, void *user)
{
    struct doc_lookup *doc = run_object(run, sizeof *doc, CLASS_DOC);
    doc->function = function;
    doc->user = user;
    return value_of(doc);
}

static struct value doc_value(struct run *run, const struct script_doc_field *field, size_t i)
{
    int64_t ms;
    switch (field->kind) {
    case SCRIPT_DOC_LONG: return value_long(field->integers[i]);
    case SCRIPT_DOC_BOOLEAN: return value_boolean(field->integers[i] != 0);
    case SCRIPT_DOC_DOUBLE: return value_double(field->doubles[i]);
    case SCRIPT_DOC_DATE:
        ms = field->integers[i] % 1000;
        ms += ms < 0 ? 1000 : 0;
        return value_of(
            temporal_new(run, CLASS_DOC_DATE_TIME, (field->integers[i] - ms) / 1000, (int32_t)ms * 1000000));
    case SCRIPT_DOC_STRING: return value_of(text_new(run, field->strings[i]));
    }
    return VALUE_NONE;
}

static bool find_field(struct run *run, const struct doc_lookup *doc, struct value name,
                       struct script_doc_field *ret_field, struct slice *ret_name)
{
    *ret_name = value_is(name, CLASS_STRING) ? text_utf8(run, (struct text *)name.object) : SLICE_LIT("null");
    run_charge(run, ret_name->len);
    return doc->function != NULL && doc->function(doc->user, *ret_name, ret_field);
}

struct slice script_doc_refusal(struct arena *arena, bool old, struct slice field)
{
    if (old)
        return arena_printf(arena,
                            "Fielddata is disabled on text fields by default. Set fielddata=true on [%.*s] in order to "
                            "load fielddata in memory by uninverting the inverted index. Note that this can however "
                            "use significant memory. Alternatively use a keyword field instead.",
                            SLICE_ARG(field));
    return arena_printf(arena,
                        "Text fields are not optimised for operations that require per-document field data like "
                        "aggregations and sorting, so these operations are disabled by default. Please use a keyword "
                        "field instead. Alternatively, set fielddata=true on [%.*s] in order to load field data by "
                        "uninverting the inverted index. Note that this can use significant memory.",
                        SLICE_ARG(field));
}

bool docvalues_get(struct run *run, const struct doc_lookup *doc, struct value name, struct value *ret)
{
    static const uint16_t classes[] = {[SCRIPT_DOC_LONG] = CLASS_DOC_LONGS,
                                       [SCRIPT_DOC_DOUBLE] = CLASS_DOC_DOUBLES,
                                       [SCRIPT_DOC_BOOLEAN] = CLASS_DOC_BOOLEANS,
                                       [SCRIPT_DOC_DATE] = CLASS_DOC_DATES,
                                       [SCRIPT_DOC_STRING] = CLASS_DOC_STRINGS};
    struct script_doc_field field;
    struct slice shown;
    if (!find_field(run, doc, name, &field, &shown))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "No field found for [%.*s] in mapping with types []",
                         SLICE_ARG(shown));
    if (field.refused) {
        struct slice refusal = script_doc_refusal(run->arena, run->groovy, shown);
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "%.*s", SLICE_ARG(refusal));
    }
    struct seq *seq = seq_new(run, (enum class_id)classes[field.kind], field.count);
    if (seq == NULL || !run_step(run, field.count))
        return false;
    for (size_t i = 0; i < field.count; i++)
        if (!seq_add(run, seq, doc_value(run, &field, i)))
            return false;
    seq->object.flags |= OBJECT_READONLY;
    *ret = value_of(seq);
    return true;
}

bool doc_has(struct run *run, const struct doc_lookup *doc, struct value name, bool *ret)
{
    struct script_doc_field field;
    struct slice shown;
    *ret = find_field(run, doc, name, &field, &shown);
    return run_step(run, 1);
}
