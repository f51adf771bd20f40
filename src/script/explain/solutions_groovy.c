/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's messages for missing methods and properties, with suggestions. */
#include "script/run/dispatch_groovy.h"

#include "script/run/convert.h"

/* Limit of the argument list in a message, in code units; "..." replaces the rest. */
#define SHOWN_UNITS_MAX 60

bool groovy_show_arguments(struct run *run, struct value *arguments, unsigned count, struct slice *ret_types,
                           struct slice *ret_values)
{
    char name[TYPE_NAME_MAX];
    struct slice types = SLICE_LIT(""), values = SLICE_LIT("");
    for (unsigned i = 0; i < count; i++) {
        bool shown = types.len <= SHOWN_UNITS_MAX;
        struct slice type = closure_class_name(run, arguments[i]);
        if (type.len == 0)
            type =
                slice_from(arguments[i].kind == VALUE_NULL ? "null" : type_java_name(value_type(arguments[i]), name));
        types = run_printf(run, "%.*s%s%.*s", SLICE_ARG(types), shown && i > 0 ? ", " : "",
                           SLICE_ARG(shown ? type : SLICE_LIT("...")));
        if (!shown)
            break;
    }
    for (unsigned i = 0; i < count; i++) {
        struct text *text = value_to_text(run, arguments[i]);
        if (text == NULL)
            return false;
        bool shown = utf8_units(values) + 3 <= SHOWN_UNITS_MAX;
        struct slice one = shown ? text_utf8(run, text) : SLICE_LIT("...");
        run_charge(run, one.len + values.len);
        values = arena_printf(run->arena, "%.*s%s%.*s", SLICE_ARG(values), i > 0 ? ", " : "", SLICE_ARG(one));
        if (!shown)
            break;
    }
    *ret_types = types;
    *ret_values = values;
    return true;
}

bool groovy_missing_property(struct run *run, struct slice name, struct slice class_name)
{
    return run_throw(run, CLASS_MISSING_PROPERTY_EXCEPTION, "No such property: %.*s for class: %.*s", SLICE_ARG(name),
                     SLICE_ARG(class_name));
}

bool groovy_missing_method(struct run *run, type_id type, bool is_static, struct slice name, struct value *arguments,
                           unsigned count)
{
    char class_name[TYPE_NAME_MAX];
    struct slice types, values;
    if (!groovy_show_arguments(run, arguments + 1, count, &types, &values))
        return false;
    struct slice suggestions = groovy_suggest(run, type, name, arguments + 1, count);
    return run->thrown == NULL &&
           run_throw(run, CLASS_MISSING_METHOD_EXCEPTION,
                     "No signature of method: %s%s.%.*s() is applicable for argument types: (%.*s) values: [%.*s]%.*s",
                     is_static ? "static " : "", type_java_name(type, class_name), SLICE_ARG(name), SLICE_ARG(types),
                     SLICE_ARG(values), SLICE_ARG(suggestions));
}
