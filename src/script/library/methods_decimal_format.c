/* SPDX-License-Identifier: Apache-2.0 */
/* java.text.DecimalFormat: writes numbers by a pattern such as "#,##0.00", as base/number_format.h does. */
#include "script/library/method_args.h"

#include "base/number_format.h"
#include "script/library/old_decimal_format.h"
#include "script/value/big.h"

struct decimal_format {
    struct object object;
    const struct number_format *numbers;
};

static bool decimal_format_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (run->old_library)
        return old_decimal_format_new(call, ret);
    if (call->count == 1)
        NOT_NULL(0);
    struct decimal_format *format = run_object(run, sizeof *format, CLASS_DECIMAL_FORMAT);
    struct slice pattern = call->count == 1 ? text_utf8(run, text_of(call->args[0])) : SLICE_LIT("#,##0.###");
    struct slice why;
    run_charge(run, 256 + 3 * pattern.len); /* the format and its texts */
    if (number_format_parse(run->arena, pattern, &format->numbers, &why) != 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "%.*s", SLICE_ARG(why));
    *ret = value_of(format);
    return run_step(run, pattern.len / 16);
}

/* Appends a BigInteger or BigDecimal. Returns: false with a throwable. */
static bool print_big(struct run *run, const struct number_format *numbers, struct value number, struct buf *out)
{
    const struct decimal *decimal = value_is(number, CLASS_BIG_DECIMAL) ? (const struct decimal *)number.object : NULL;
    const struct big *big = decimal != NULL ? decimal->unscaled : (const struct big *)number.object;
    int32_t scale = decimal != NULL ? decimal->scale : 0;
    if (!run_step(run, big_digits(big) / 16))
        return false;
    struct slice digits = slice_from_offset(big_slice(run, big), big->negative);
    number_print_digits(out, numbers, big->negative, digits, scale);
    return true;
}

static bool decimal_format_format(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (run->old_library)
        return old_decimal_format_format(call, ret);
    const struct number_format *numbers = ((const struct decimal_format *)call->self.object)->numbers;
    struct value number = call->args[0];
    if (!value_number(number))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Cannot format given Object as a Number");
    /* A double and a pattern: some hundred bytes; of a big number all of its digits. */
    tl_cleanup(buf_deinit) struct buf out = BUF_INIT(BUF_UNLIMITED);
    bool big = value_is(number, CLASS_BIG_DECIMAL) || value_is(number, CLASS_BIG_INTEGER);
    if (big && !run->old_formats) {
        if (!print_big(run, numbers, number, &out))
            return false;
    } else if (value_integral(number)) {
        number_print_i64(&out, numbers, number.i);
    } else {
        number_print_double(&out, numbers, number_to_double(run, number));
    }
    return run_step(run, out.len / 16) && give(ret, text_new(run, buf_as_slice(&out)));
}

static const struct method_row decimal_format_methods[] = {
    {"new DecimalFormat()", BOTH, decimal_format_new},
    {"new DecimalFormat(String)", BOTH, decimal_format_new},
    {"String format(def)", BOTH, decimal_format_format},
};

const struct method_table methods_decimal_format[] = {
    METHOD_ROWS(DECIMAL_FORMAT, decimal_format_methods),
    {0},
};
