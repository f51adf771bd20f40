/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of doc and of its fields. Groovy's methods are those of Elasticsearch 5.x. */
#include "script/library/method_args.h"

#include "script/value/docvalues.h"
#include "script/value/temporal.h"

static bool doc_lookup_get(struct call *call, struct value *ret)
{
    return docvalues_get(call->run, (struct doc_lookup *)call->self.object, call->args[0], ret);
}

static bool doc_lookup_contains(struct call *call, struct value *ret)
{
    bool has;
    return doc_has(call->run, (struct doc_lookup *)call->self.object, call->args[0], &has) && give_boolean(ret, has);
}

/* Gives the value that 5.x returns for a field without values. */
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

static bool doc_field_value(struct call *call, struct value *ret)
{
    if (seq_of(call->self)->count > 0) {
        *ret = seq_item(seq_of(call->self), 0);
        return true;
    }
    if (call->run->groovy) /* 5.x returns a default */
        return give_default(call->self, ret);
    return run_throw(
        call->run, CLASS_ILLEGAL_STATE_EXCEPTION,
        "A document doesn't have a value for a field! Use doc[<field>].size()==0 to check if a document is "
        "missing a field!");
}

static int64_t temporal_ms(struct value value)
{
    const struct temporal *temporal = (const struct temporal *)value.object;
    return temporal->seconds * 1000 + temporal->nanos / 1000000;
}

/* Gives the value of a date as 5.x does, in milliseconds since the epoch. */
static bool doc_date_millis(struct call *call, struct value *ret)
{
    *ret = value_long(seq_of(call->self)->count == 0 ? 0 : temporal_ms(seq_item(seq_of(call->self), 0)));
    return true;
}

static bool doc_date_all_millis(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *dates = seq_of(call->self), *all = seq_new(run, CLASS_DOC_LONGS, dates->count);
    if (all == NULL || !run_step(run, dates->count))
        return false;
    for (size_t i = 0; i < dates->count; i++)
        if (!seq_add(run, all, value_long(temporal_ms(seq_item(dates, i)))))
            return false;
    *ret = value_of(all);
    return true;
}

static bool doc_date_date(struct call *call, struct value *ret)
{
    *ret = seq_of(call->self)->count > 0 ? seq_item(seq_of(call->self), 0)
                                         : value_of(temporal_new(call->run, CLASS_DOC_DATE_TIME, 0, 0));
    return true;
}

static bool doc_field_values(struct call *call, struct value *ret)
{
    *ret = call->self;
    return true;
}

static const struct method_row doc_methods[] = {
    {"def get(def)", BOTH, doc_lookup_get},
    {"def getAt(def)", GROOVY, doc_lookup_get},
    {"boolean containsKey(def)", BOTH, doc_lookup_contains},
};

static const struct method_row doc_string_methods[] = {
    {"String getValue()", BOTH, doc_field_value},
    {"List getValues()", GROOVY, doc_field_values},
};
static const struct method_row doc_long_methods[] = {
    {"long getValue()", BOTH, doc_field_value},
    {"List getValues()", GROOVY, doc_field_values},
};
static const struct method_row doc_double_methods[] = {
    {"double getValue()", BOTH, doc_field_value},
    {"List getValues()", GROOVY, doc_field_values},
};
static const struct method_row doc_boolean_methods[] = {
    {"boolean getValue()", BOTH, doc_field_value},
    {"List getValues()", GROOVY, doc_field_values},
};

/* In 5.x a date's value is in milliseconds; its property `date` is an object. */
static const struct method_row doc_date_methods[] = {
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime getValue()", PAINLESS, doc_field_value},
    {"long getValue()", GROOVY, doc_date_millis},
    {"List getValues()", GROOVY, doc_date_all_millis},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime getDate()", GROOVY, doc_date_date},
    {"List getDates()", GROOVY, doc_field_values},
};

const struct method_table methods_doc[] = {
    METHOD_ROWS(DOC, doc_methods),
    METHOD_ROWS(DOC_STRINGS, doc_string_methods),
    METHOD_ROWS(DOC_LONGS, doc_long_methods),
    METHOD_ROWS(DOC_DOUBLES, doc_double_methods),
    METHOD_ROWS(DOC_BOOLEANS, doc_boolean_methods),
    METHOD_ROWS(DOC_DATES, doc_date_methods),
    {0},
};
