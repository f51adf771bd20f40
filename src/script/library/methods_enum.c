/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of java.time's enums, RoundingMode and TimeUnit. */
#include "script/library/method_time.h"

bool enum_of_name(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    for (unsigned i = 0; i < enumerator_count(id); i++)
        if (text_is(text_of(a[1]), enumerator_name(id, (int)i))) {
            *ret = enumerator_value(run, id, (int)i);
            return true;
        }
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "No enum constant %s.%.*s", class_infos[id].java,
                     SLICE_ARG(text_utf8(run, text_of(a[1]))));
}

static bool enum_name(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_slice(
        run, ret,
        slice_from(enumerator_name((enum class_id)a[0].object->class, ((struct enumerator *)a[0].object)->ordinal)));
}

static bool enum_ordinal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, ((struct enumerator *)a[0].object)->ordinal);
}

static bool enum_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, ((struct enumerator *)a[0].object)->ordinal + 1);
}

static bool enum_of_number(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    if (a[1].i < 1 || a[1].i > enumerator_count(id))
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Invalid value for %s: %lld",
                         id == CLASS_MONTH ? "MonthOfYear" : "DayOfWeek", (long long)a[1].i);
    *ret = enumerator_value(run, id, (int)a[1].i - 1);
    return true;
}

static bool enum_plus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    enum class_id id = (enum class_id)a[0].object->class;
    int64_t ordinal = ((struct enumerator *)a[0].object)->ordinal;
    *ret = enumerator_value(run, id, (int)floor_mod(ordinal + a[1].i % enumerator_count(id), enumerator_count(id)));
    return true;
}

static bool enum_minus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    a[1].i = -(a[1].i % enumerator_count((enum class_id)a[0].object->class));
    return enum_plus(run, a, n, ret);
}

/* TimeUnit.HOURS.toMinutes(2): both counts in nanoseconds. */
static bool time_unit_to(struct run *run, struct value *a, int unit, struct value *ret)
{
    static const int64_t nanos[] = {1, 1000, 1000000, 1000000000, 60000000000, 3600000000000, 86400000000000};
    (void)run;
    __int128 total = (__int128)a[1].i * nanos[((struct enumerator *)a[0].object)->ordinal] / nanos[unit];
    return give_long(ret, total > INT64_MAX ? INT64_MAX : total < INT64_MIN ? INT64_MIN : (int64_t)total);
}

/* Units in the order of their ordinals, each with the method that converts to it. */
#define TIME_UNITS(X)          \
    X(nanos, "toNanos", 0)     \
    X(micros, "toMicros", 1)   \
    X(millis, "toMillis", 2)   \
    X(seconds, "toSeconds", 3) \
    X(minutes, "toMinutes", 4) \
    X(hours, "toHours", 5)     \
    X(days, "toDays", 6)
#define TIME_UNIT_CALL(unit, name, ordinal)                                                          \
    static bool time_unit_to_##unit(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                                \
        (void)n;                                                                                     \
        return time_unit_to(run, a, ordinal, ret);                                                   \
    }
#define TIME_UNIT_ROW(unit, name, ordinal) M1(name, METHOD_GROOVY, LONG, LONG, time_unit_to_##unit),

TIME_UNITS(TIME_UNIT_CALL)

/* "Monday", "Mon" or "M": of days and months, in English whatever the locale. */
static bool enum_display_name(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    const char *name = enumerator_name((enum class_id)a[0].object->class, ((struct enumerator *)a[0].object)->ordinal);
    int style = ((struct enumerator *)a[1].object)->ordinal;
    size_t length = style < 2 ? strlen(name) : style < 4 ? 3 : 1;
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = 0; i < length; i++)
        text_buf_unit(&out, (uint16_t)(i == 0 ? name[i] : name[i] | 0x20));
    return give(ret, text_buf_done(&out));
}

static bool enum_values(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    struct array *array = array_new(run, id, enumerator_count(id));
    for (unsigned i = 0; array != NULL && i < array->count; i++)
        array->items[i] = enumerator_value(run, id, (int)i);
    return give(ret, array);
}

/* Months */

static int month_of(struct value *a)
{
    return ((struct enumerator *)a[0].object)->ordinal + 1;
}

static bool month_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, calendar_month_days(a[1].i != 0 ? 2000 : 2001, month_of(a)));
}

static bool month_max_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, calendar_month_days(2000, month_of(a)));
}

static bool month_min_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, calendar_month_days(2001, month_of(a)));
}

static bool month_first_of_quarter(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = enumerator_value(run, CLASS_MONTH, (month_of(a) - 1) / 3 * 3);
    return true;
}

static const struct method month_methods[] = {
    M1("length", METHOD_BOTH, INT, BOOLEAN, month_length),
    M0("maxLength", METHOD_BOTH, INT, month_max_length),
    M0("minLength", METHOD_BOTH, INT, month_min_length),
    M0("firstMonthOfQuarter", METHOD_BOTH, MONTH, month_first_of_quarter),
};

static const struct method enum_methods[] = {
    M0("name", METHOD_BOTH, STRING, enum_name),
    M0("ordinal", METHOD_BOTH, INT, enum_ordinal),
};

static const struct method numbered_enum_methods[] = {
    M1("valueOf", STATIC, ENUM, STRING, enum_of_name),
    M1("of", STATIC, ENUM, INT, enum_of_number),
    M0("getValue", METHOD_BOTH, INT, enum_value),
    M1("plus", METHOD_BOTH, ENUM, LONG, enum_plus),
    M1("minus", METHOD_BOTH, ENUM, LONG, enum_minus),
    M2("getDisplayName", METHOD_BOTH, STRING, TEXT_STYLE, LOCALE, enum_display_name),
    M0("values", STATIC, DEF_ARRAY, enum_values),
};

static const struct method named_enum_methods[] = {
    M1("valueOf", STATIC, ENUM, STRING, enum_of_name),
    M0("values", STATIC, DEF_ARRAY, enum_values),
};

static const struct method time_unit_methods[] = {TIME_UNITS(TIME_UNIT_ROW)};

const struct method_table methods_enum[] = {
    METHOD_TABLE(ENUM, enum_methods),
    METHOD_TABLE(DAY_OF_WEEK, numbered_enum_methods),
    METHOD_TABLE(MONTH, numbered_enum_methods),
    METHOD_TABLE(MONTH, month_methods),
    METHOD_TABLE(TEXT_STYLE, named_enum_methods),
    METHOD_TABLE(CHRONO_FIELD, named_enum_methods),
    METHOD_TABLE(ROUNDING_MODE, named_enum_methods),
    METHOD_TABLE(TIME_UNIT, time_unit_methods),
    {0, 0, NULL},
};
