/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions passed to a library function; see invoke.h. */
#include "script/run/invoke.h"

#include "script/run/convert.h"
#include "script/value/iter.h"
#include "script/library/method_args.h"

bool invoke_test(struct run *run, struct value function, struct value *arguments, unsigned count, bool *ret)
{
    struct value result;
    if (!run_invoke(run, function, arguments, count, &result))
        return false;
    if (run->groovy)
        return convert_truth(run, result, ret);
    if (!convert_site(run, result, CLASS_BOOLEAN, &result))
        return false;
    *ret = result.i != 0;
    return true;
}

bool invoke_number(struct run *run, struct value function, struct value *arguments, unsigned count, struct value *ret)
{
    return run_invoke(run, function, arguments, count, ret) &&
           (value_number(*ret) || ret->kind == VALUE_CHAR || convert_site(run, *ret, CLASS_DOUBLE, ret));
}

bool invoke_item(struct run *run, struct value function, struct value item, struct value *ret)
{
    bool entry = run->groovy && (value_is(item, CLASS_ENTRY) || value_is(item, CLASS_SIMPLE_ENTRY));
    if (entry && function_arity(function) == 2) {
        struct value pair[2] = {((struct map_entry *)item.object)->key, ((struct map_entry *)item.object)->value};
        return run_invoke(run, function, pair, 2, ret);
    }
    return run_invoke(run, function, &item, 1, ret);
}

bool invoke_item_test(struct run *run, struct value function, struct value item, bool *ret)
{
    struct value result;
    if (!run->groovy)
        return invoke_test(run, function, &item, 1, ret);
    return invoke_item(run, function, item, &result) && convert_truth(run, result, ret);
}
