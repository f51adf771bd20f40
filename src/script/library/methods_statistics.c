/* SPDX-License-Identifier: Apache-2.0 */
/* IntSummaryStatistics and similar classes: count, sum, minimum and maximum of a stream's
   numbers. */
#include "script/library/method_args.h"

#include <math.h>

#include "script/run/convert.h"
#include "script/value/statistics.h"

struct statistics {
    struct object object;
    int64_t count;
    struct value sum, least, greatest; /* each has the class that its getter returns */
};

static type_id element_of(enum class_id id)
{
    return id == CLASS_INT_STATISTICS ? CLASS_INT : id == CLASS_LONG_STATISTICS ? CLASS_LONG : CLASS_DOUBLE;
}

static struct statistics *statistics_new(struct run *run, enum class_id id)
{
    struct statistics *statistics = run_object(run, sizeof *statistics, id);
    bool whole = id != CLASS_DOUBLE_STATISTICS, small = id == CLASS_INT_STATISTICS;
    statistics->sum = whole ? value_long(0) : value_double(0);
    statistics->least = small ? value_int(INT32_MAX) : whole ? value_long(INT64_MAX) : value_double(INFINITY);
    statistics->greatest = small ? value_int(INT32_MIN) : whole ? value_long(INT64_MIN) : value_double(-INFINITY);
    return statistics;
}

static bool add_number(struct run *run, struct statistics *statistics, struct value number)
{
    if (!convert_site(run, number, element_of((enum class_id)statistics->object.class), &number))
        return false;
    bool whole = number.kind != VALUE_DOUBLE;
    if (whole ? number.i < statistics->least.i : number.d < statistics->least.d)
        statistics->least = number;
    if (whole ? number.i > statistics->greatest.i : number.d > statistics->greatest.d)
        statistics->greatest = number;
    statistics->count++;
    return number_binary(run, OP_ADD, statistics->sum, number, &statistics->sum);
}

bool statistics_of(struct run *run, enum class_id id, const struct seq *items, struct value function, struct value *ret)
{
    struct statistics *statistics = statistics_new(run, id);
    for (size_t i = 0; i < items->count; i++) {
        struct value item = seq_item(items, i);
        if (!run_step(run, 1) || (function.kind != VALUE_NULL && !run_invoke(run, function, &item, 1, &item)) ||
            !add_number(run, statistics, item))
            return false;
    }
    return give(ret, statistics);
}

bool statistics_write(struct run *run, const struct object *object, struct text_buf *out)
{
    const struct statistics *statistics = (const struct statistics *)object;
    bool whole = object->class != CLASS_DOUBLE_STATISTICS;
    double average = statistics->count > 0 ? number_to_double(run, statistics->sum) / (double)statistics->count : 0;
    struct value arguments[] = {value_long(statistics->count), statistics->sum, statistics->least,
                                value_double(average), statistics->greatest};
    struct text *format = text_new(run, whole ? SLICE_LIT("{count=%d, sum=%d, min=%d, average=%f, max=%d}")
                                              : SLICE_LIT("{count=%d, sum=%f, min=%f, average=%f, max=%f}"));
    struct text *text = format == NULL ? NULL : format_text(run, format, arguments, 5);
    if (text == NULL)
        return false;
    text_buf_ascii(out, strrchr(class_infos[object->class].java, '.') + 1);
    text_buf_text(out, text);
    return true;
}

static struct statistics *self_statistics(struct call *call)
{
    return (struct statistics *)call->self.object;
}

static bool make_statistics(struct call *call, struct value *ret)
{
    return give(ret, statistics_new(call->run, type_class(((struct class_object *)call->self.object)->type)));
}

static bool statistics_accept(struct call *call, struct value *ret)
{
    return add_number(call->run, self_statistics(call), call->args[0]) && give_nothing(ret);
}

static bool get_count(struct call *call, struct value *ret)
{
    return give_long(ret, self_statistics(call)->count);
}

static bool get_sum(struct call *call, struct value *ret)
{
    *ret = self_statistics(call)->sum;
    return true;
}

static bool get_min(struct call *call, struct value *ret)
{
    *ret = self_statistics(call)->least;
    return true;
}

static bool get_max(struct call *call, struct value *ret)
{
    *ret = self_statistics(call)->greatest;
    return true;
}

static bool get_average(struct call *call, struct value *ret)
{
    double sum = number_to_double(call->run, self_statistics(call)->sum);
    return give_double(ret, self_statistics(call)->count > 0 ? sum / (double)self_statistics(call)->count : 0);
}

static const struct method_row int_methods[] = {
    {"new IntSummaryStatistics()", BOTH, make_statistics},
    {"void accept(int)", GROOVY, statistics_accept},
    {"double getAverage()", BOTH, get_average},
    {"long getCount()", BOTH, get_count},
    {"int getMax()", BOTH, get_max},
    {"int getMin()", BOTH, get_min},
    {"long getSum()", BOTH, get_sum},
};
static const struct method_row long_methods[] = {
    {"new LongSummaryStatistics()", BOTH, make_statistics},
    {"void accept(long)", GROOVY, statistics_accept},
    {"double getAverage()", BOTH, get_average},
    {"long getCount()", BOTH, get_count},
    {"long getMax()", BOTH, get_max},
    {"long getMin()", BOTH, get_min},
    {"long getSum()", BOTH, get_sum},
};
static const struct method_row double_methods[] = {
    {"new DoubleSummaryStatistics()", BOTH, make_statistics},
    {"void accept(double)", GROOVY, statistics_accept},
    {"double getAverage()", BOTH, get_average},
    {"long getCount()", BOTH, get_count},
    {"double getMax()", BOTH, get_max},
    {"double getMin()", BOTH, get_min},
    {"double getSum()", BOTH, get_sum},
};

const struct method_table methods_statistics[] = {
    METHOD_ROWS(INT_STATISTICS, int_methods),
    METHOD_ROWS(LONG_STATISTICS, long_methods),
    METHOD_ROWS(DOUBLE_STATISTICS, double_methods),
    {0},
};
