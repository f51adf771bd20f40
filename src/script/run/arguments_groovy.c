/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of Groovy's functions and closures: whether they fit, the choice among several
 * functions, and the value of each parameter. A last parameter of array type takes all remaining
 * arguments. Parameters with a default may lack an argument; the last ones lack it first.
 */
#include "script/run/dispatch_groovy.h"

#include "script/run/convert.h"
#include "script/run/script_error.h"

static bool takes_rest(const struct function *function)
{
    unsigned count = function->parameter_count;
    return count > 0 && function->parameters[count - 1].type != TYPE_NONE &&
           type_dims(function->parameters[count - 1].type) > 0;
}

/* An array or list passed for the variable-length parameter becomes that array. */
static bool is_rest(struct value argument)
{
    return argument.kind == VALUE_NULL || value_is_array(argument) || value_is_seq(argument);
}

static bool fits_in_number(const struct function *function, unsigned count)
{
    unsigned least = 0;
    bool rest = takes_rest(function), null = count == 0 && function->parameter_count == 1;
    for (unsigned i = 0; i < function->parameter_count; i++)
        least += function->parameters[i].initial == NULL;
    return null || (count + rest >= least && (rest || count <= function->parameter_count));
}

static bool defaults_from(const struct function *function, unsigned i, unsigned count)
{
    unsigned defaults = 0;
    for (unsigned k = i; k < function->parameter_count; k++)
        defaults += function->parameters[k].initial != NULL;
    return function->parameters[i].initial != NULL && count + defaults <= function->parameter_count;
}

#define NEAR_ANYTHING 60
#define NEAR_REST 1000

int groovy_function_distance(const struct function *function, const struct value *arguments, unsigned count)
{
    bool rest = takes_rest(function);
    int sum = rest ? NEAR_REST : 0;
    if (!fits_in_number(function, count))
        return -1;
    for (unsigned i = 0, next = 0; i < function->parameter_count && next < count; i++) {
        type_id type = function->parameters[i].type;
        if (defaults_from(function, i, count))
            continue;
        bool last = rest && i + 1 == function->parameter_count;
        int one = type == TYPE_NONE || last ? NEAR_ANYTHING : groovy_distance(arguments[next], type);
        next++;
        if (one < 0)
            return -1;
        sum += one;
    }
    return sum;
}

const struct function *groovy_choose_function(struct run *run, struct slice name, const struct value *arguments,
                                              unsigned count)
{
    const struct function *best = NULL;
    int nearest = 0;
    for (const struct function *one = run->script->program.functions; one != NULL; one = one->next) {
        int here = slice_equal(one->name, name) ? groovy_function_distance(one, arguments, count) : -1;
        if (here >= 0 && (best == NULL || here < nearest)) {
            best = one;
            nearest = here;
        }
    }
    return best;
}

static bool gather_array(struct run *run, type_id type, const struct value *arguments, unsigned count,
                         struct value *ret)
{
    struct array *array = array_new(run, type_element(type), count);
    *ret = value_of(array);
    for (unsigned i = 0; array != NULL && i < count; i++)
        if (!convert_groovy(run, arguments[i], type_element(type), false, &array->items[i]))
            return false;
    return array != NULL;
}

bool groovy_argument(struct run *run, struct frame *frame, unsigned i, struct value *arguments, unsigned count,
                     unsigned *next, struct value *ret)
{
    const struct function *function = frame->function;
    const struct parameter *parameter = &function->parameters[i];
    bool rest = i + 1 == function->parameter_count && takes_rest(function);
    if (defaults_from(function, i, count))
        return interp__eval(run, frame, parameter->initial, ret);
    if (rest && !(*next + 1 == count && is_rest(arguments[*next])))
        return gather_array(run, parameter->type, arguments + *next, *next < count ? count - *next : 0, ret);
    *ret = *next < count ? arguments[*next] : VALUE_NONE;
    *next += *next < count;
    return true;
}
