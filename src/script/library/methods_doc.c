/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of doc and of the fields that it hands out; Groovy's are those of 5.x. */
#include "script/library/method_args.h"

#include "script/value/docvalues.h"
#include "script/value/moment.h"

static bool doc_lookup_get(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return docvalues_get(run, (struct doc_lookup *)a[0].object, a[1], ret);
}

static bool doc_lookup_contains(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool has;
    return doc_has(run, (struct doc_lookup *)a[0].object, a[1], &has) && give_boolean(ret, has);
}

/* What 5.x takes for the value of a field that has none. */
static bool give_default(struct value field, struct value *ret)
{
    switch (field.object->class) {
    case CLASS_DOC_LONGS:
    case CLASS_DOC_DATES: *ret = value_long(0); break;
    case CLASS_DOC_DOUBLES: *ret = value_double(0); break;
    case CLASS_DOC_BOOLEANS: *ret = value_boolean(false); break;
    default: *ret = VALUE_NONE;
    }
    return true;
}

static bool doc_field_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (seq_of(a[0])->count > 0) {
        *ret = seq_item(seq_of(a[0]), 0);
        return true;
    }
    if (run->groovy) /* as 5.x: a default */
        return give_default(a[0], ret);
    return run_throw(
        run, CLASS_ILLEGAL_STATE_EXCEPTION,
        "A document doesn't have a value for a field! Use doc[<field>].size()==0 to check if a document is "
        "missing a field!");
}

static int64_t moment_ms(struct value value)
{
    const struct moment *moment = (const struct moment *)value.object;
    return moment->seconds * 1000 + moment->nanos / 1000000;
}

/* The milliseconds that a date is in 5.x. */
static bool doc_date_millis(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = value_long(seq_of(a[0])->count == 0 ? 0 : moment_ms(seq_item(seq_of(a[0]), 0)));
    return true;
}

static bool doc_date_all_millis(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *dates = seq_of(a[0]), *all = seq_new(run, CLASS_DOC_LONGS, dates->count);
    if (all == NULL || !run_step(run, dates->count))
        return false;
    for (size_t i = 0; i < dates->count; i++)
        if (!seq_add(run, all, value_long(moment_ms(seq_item(dates, i)))))
            return false;
    *ret = value_of(all);
    return true;
}

static bool doc_date_date(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = seq_of(a[0])->count > 0 ? seq_item(seq_of(a[0]), 0) : value_of(moment_new(run, CLASS_DOC_DATE_TIME, 0, 0));
    return true;
}

static bool doc_field_values(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[0];
    return true;
}

static const struct method doc_methods[] = {
    M1("get", METHOD_BOTH, DEF, DEF, doc_lookup_get),
    M1("getAt", METHOD_GROOVY, DEF, DEF, doc_lookup_get),
    M1("containsKey", METHOD_BOTH, BOOLEAN, DEF, doc_lookup_contains),
};

#define DOC_FIELD(result)                                                                                             \
    {                                                                                                                 \
        M0("getValue", METHOD_BOTH, result, doc_field_value), M0("getValues", METHOD_GROOVY, LIST, doc_field_values), \
    }

static const struct method doc_string_methods[] = DOC_FIELD(STRING);
static const struct method doc_long_methods[] = DOC_FIELD(LONG);
static const struct method doc_double_methods[] = DOC_FIELD(DOUBLE);
static const struct method doc_boolean_methods[] = DOC_FIELD(BOOLEAN);

/* Dates of 5.x are milliseconds, and `date` is the date. */
static const struct method doc_date_methods[] = {
    M0("getValue", METHOD_PAINLESS, DOC_DATE_TIME, doc_field_value),
    M0("getValue", METHOD_GROOVY, LONG, doc_date_millis),
    M0("getValues", METHOD_GROOVY, LIST, doc_date_all_millis),
    M0("getDate", METHOD_GROOVY, DOC_DATE_TIME, doc_date_date),
    M0("getDates", METHOD_GROOVY, LIST, doc_field_values),
};

const struct method_table methods_doc[] = {
    METHOD_TABLE(DOC, doc_methods),
    METHOD_TABLE(DOC_STRINGS, doc_string_methods),
    METHOD_TABLE(DOC_LONGS, doc_long_methods),
    METHOD_TABLE(DOC_DOUBLES, doc_double_methods),
    METHOD_TABLE(DOC_BOOLEANS, doc_boolean_methods),
    METHOD_TABLE(DOC_DATES, doc_date_methods),
    {0, 0, NULL},
};
