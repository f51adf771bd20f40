/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of java.time's enums, RoundingMode and TimeUnit. */
#include "script/library/method_time.h"

bool enum_of_name(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    for (unsigned i = 0; i < enumerator_count(id); i++)
        if (text_is(text_of(call->args[0]), enumerator_name(id, (int)i))) {
            *ret = enumerator_value(run, id, (int)i);
            return true;
        }
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "No enum constant %s.%.*s", class_infos[id].java,
                     SLICE_ARG(text_utf8(run, text_of(call->args[0]))));
}

static bool enum_name(struct call *call, struct value *ret)
{
    return give_slice(call->run, ret,
                      slice_from(enumerator_name((enum class_id)call->self.object->class,
                                                 ((struct enumerator *)call->self.object)->ordinal)));
}

static bool enum_ordinal(struct call *call, struct value *ret)
{
    return give_int(ret, ((struct enumerator *)call->self.object)->ordinal);
}

static bool enum_value(struct call *call, struct value *ret)
{
    return give_int(ret, ((struct enumerator *)call->self.object)->ordinal + 1);
}

static bool enum_of_number(struct call *call, struct value *ret)
{
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    if (call->args[0].i < 1 || call->args[0].i > enumerator_count(id))
        return run_throw(call->run, CLASS_DATE_TIME_EXCEPTION, "Invalid value for %s: %lld",
                         id == CLASS_MONTH ? "MonthOfYear" : "DayOfWeek", (long long)call->args[0].i);
    *ret = enumerator_value(call->run, id, (int)call->args[0].i - 1);
    return true;
}

static bool enum_plus(struct call *call, struct value *ret)
{
    enum class_id id = (enum class_id)call->self.object->class;
    int64_t ordinal = ((struct enumerator *)call->self.object)->ordinal;
    *ret = enumerator_value(call->run, id,
                            (int)floor_mod(ordinal + call->args[0].i % enumerator_count(id), enumerator_count(id)));
    return true;
}

static bool enum_minus(struct call *call, struct value *ret)
{
    call->args[0].i = -(call->args[0].i % enumerator_count((enum class_id)call->self.object->class));
    return enum_plus(call, ret);
}

/* TimeUnit.HOURS.toMinutes(2): converts between units; the datum is the ordinal of the target
   unit. */
static bool time_unit_to(struct call *call, struct value *ret)
{
    static const int64_t nanos[] = {1, 1000, 1000000, 1000000000, 60000000000, 3600000000000, 86400000000000};
    int64_t unit = nanos[call->row->datum.number];
    __int128 total = (__int128)call->args[0].i * nanos[((struct enumerator *)call->self.object)->ordinal] / unit;
    return give_long(ret, total > INT64_MAX ? INT64_MAX : total < INT64_MIN ? INT64_MIN : (int64_t)total);
}

/* Gives "Monday", "Mon" or "M" for a day or a month; in English for every locale. */
static bool enum_display_name(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    const char *name =
        enumerator_name((enum class_id)call->self.object->class, ((struct enumerator *)call->self.object)->ordinal);
    int style = ((struct enumerator *)call->args[0].object)->ordinal;
    size_t length = style < 2 ? strlen(name) : style < 4 ? 3 : 1;
    struct text_buf out;
    text_buf_init(&out, call->run);
    for (size_t i = 0; i < length; i++)
        text_buf_unit(&out, (uint16_t)(i == 0 ? name[i] : name[i] | 0x20));
    return give(ret, text_buf_done(&out));
}

static bool enum_values(struct call *call, struct value *ret)
{
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    struct array *array = array_new(call->run, (type_id)id, enumerator_count(id));
    for (unsigned i = 0; array != NULL && i < array->count; i++)
        array->items[i] = enumerator_value(call->run, id, (int)i);
    return give(ret, array);
}

/* Months */

static int month_of(struct call *call)
{
    return ((struct enumerator *)call->self.object)->ordinal + 1;
}

static bool month_length(struct call *call, struct value *ret)
{
    return give_int(ret, calendar_month_days(call->args[0].i != 0 ? 2000 : 2001, month_of(call)));
}

static bool month_max_length(struct call *call, struct value *ret)
{
    return give_int(ret, calendar_month_days(2000, month_of(call)));
}

static bool month_min_length(struct call *call, struct value *ret)
{
    return give_int(ret, calendar_month_days(2001, month_of(call)));
}

static bool month_first_of_quarter(struct call *call, struct value *ret)
{
    *ret = enumerator_value(call->run, CLASS_MONTH, (month_of(call) - 1) / 3 * 3);
    return true;
}

static const struct method_row month_methods[] = {
    {"int length(boolean)", BOTH, month_length},
    {"int maxLength()", BOTH, month_max_length},
    {"int minLength()", BOTH, month_min_length},
    {"Month firstMonthOfQuarter()", BOTH, month_first_of_quarter},
};

static const struct method_row enum_methods[] = {
    {"String name()", BOTH, enum_name},
    {"int ordinal()", BOTH, enum_ordinal},
};

static const struct method_row numbered_enum_methods[] = {
    {"static Enum valueOf(String)", BOTH, enum_of_name},
    {"static Enum of(int)", BOTH, enum_of_number},
    {"int getValue()", BOTH, enum_value},
    {"Enum plus(long)", BOTH, enum_plus},
    {"Enum minus(long)", BOTH, enum_minus},
    {"String getDisplayName(TextStyle, Locale)", BOTH, enum_display_name},
    {"static def[] values()", BOTH, enum_values},
};

static const struct method_row named_enum_methods[] = {
    {"static Enum valueOf(String)", BOTH, enum_of_name},
    {"static def[] values()", BOTH, enum_values},
};

static const struct method_row time_unit_methods[] = {
    {"long toNanos(long)", GROOVY, time_unit_to, {0}},   {"long toMicros(long)", GROOVY, time_unit_to, {1}},
    {"long toMillis(long)", GROOVY, time_unit_to, {2}},  {"long toSeconds(long)", GROOVY, time_unit_to, {3}},
    {"long toMinutes(long)", GROOVY, time_unit_to, {4}}, {"long toHours(long)", GROOVY, time_unit_to, {5}},
    {"long toDays(long)", GROOVY, time_unit_to, {6}},
};

const struct method_table methods_enum[] = {
    METHOD_ROWS(ENUM, enum_methods),
    METHOD_ROWS(DAY_OF_WEEK, numbered_enum_methods),
    METHOD_ROWS(MONTH, numbered_enum_methods),
    METHOD_ROWS(MONTH, month_methods),
    METHOD_ROWS(TEXT_STYLE, named_enum_methods),
    METHOD_ROWS(CHRONO_FIELD, named_enum_methods),
    METHOD_ROWS(ROUNDING_MODE, named_enum_methods),
    METHOD_ROWS(TIME_UNIT, time_unit_methods),
    {0},
};
