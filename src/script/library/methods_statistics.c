/* SPDX-License-Identifier: Apache-2.0 */
/* IntSummaryStatistics and its kin: count, sum, least and greatest of a stream's numbers. */
#include "script/library/method_args.h"

#include <math.h>

#include "script/run/convert.h"
#include "script/value/statistics.h"

struct statistics {
    struct object object;
    int64_t count;
    struct value sum, least, greatest; /* as what they are shown */
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

static struct statistics *self(struct value *a)
{
    return (struct statistics *)a[0].object;
}

static bool make(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, statistics_new(run, type_class(((struct class_object *)a[0].object)->type)));
}

static bool accept(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return add_number(run, self(a), a[1]) && give_nothing(ret);
}

static bool get_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, self(a)->count);
}

static bool get_sum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = self(a)->sum;
    return true;
}

static bool get_min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = self(a)->least;
    return true;
}

static bool get_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = self(a)->greatest;
    return true;
}

static bool get_average(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    double sum = number_to_double(run, self(a)->sum);
    return give_double(ret, self(a)->count > 0 ? sum / (double)self(a)->count : 0);
}

#define STATISTICS(self, kind, total)                                                                     \
    M0("new", METHOD_BOTH | METHOD_NEW, self, make), M1("accept", METHOD_GROOVY, VOID, kind, accept),     \
        M0("getAverage", METHOD_BOTH, DOUBLE, get_average), M0("getCount", METHOD_BOTH, LONG, get_count), \
        M0("getMax", METHOD_BOTH, kind, get_max), M0("getMin", METHOD_BOTH, kind, get_min),               \
        M0("getSum", METHOD_BOTH, total, get_sum)

static const struct method int_methods[] = {STATISTICS(INT_STATISTICS, INT, LONG)};
static const struct method long_methods[] = {STATISTICS(LONG_STATISTICS, LONG, LONG)};
static const struct method double_methods[] = {STATISTICS(DOUBLE_STATISTICS, DOUBLE, DOUBLE)};

const struct method_table methods_statistics[] = {
    METHOD_TABLE(INT_STATISTICS, int_methods),
    METHOD_TABLE(LONG_STATISTICS, long_methods),
    METHOD_TABLE(DOUBLE_STATISTICS, double_methods),
    {0, 0, NULL},
};
