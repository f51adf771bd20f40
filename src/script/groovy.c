/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Groovy joins the interpreter. This program is built without it: a script that names it is refused when it is
 * compiled, so that nothing else in this file is ever reached.
 */
#include "script/compile.h"
#include "script/interp.h"
#include "script/method.h"
#include "script/method_args.h"

#include "base/check.h"

/* The parameters are those of functions that run when Groovy does. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bool lex_groovy(struct compiler *compiler)
{
    compile_fail(compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, -1, "script_lang not supported [groovy]");
    return false;
}

struct function *parse_groovy(struct compiler *compiler)
{
    UNREACHABLE();
}

bool resolve_groovy(struct compiler *compiler, struct function *main)
{
    UNREACHABLE();
}

bool groovy_get(struct run *run, struct value self, struct value name, struct value *ret)
{
    UNREACHABLE();
}

bool groovy_set(struct run *run, struct value self, struct value name, struct value value)
{
    UNREACHABLE();
}

bool groovy_get_at(struct run *run, struct value self, struct value index, struct value *ret)
{
    UNREACHABLE();
}

bool groovy_set_at(struct run *run, struct value self, struct value index, struct value value)
{
    UNREACHABLE();
}

bool groovy_call(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret)
{
    UNREACHABLE();
}

bool groovy_static_call(struct run *run, type_id type, struct slice name, struct value *arguments, unsigned count,
                        struct value *ret)
{
    UNREACHABLE();
}

bool groovy_static_get(struct run *run, type_id type, struct slice name, struct value *ret)
{
    UNREACHABLE();
}

bool groovy_new(struct run *run, type_id type, struct value *arguments, unsigned count, struct value *ret)
{
    UNREACHABLE();
}

bool groovy_step(struct run *run, enum operator op, struct value v, struct value *ret)
{
    UNREACHABLE();
}

bool groovy_contains(struct run *run, struct value item, struct value collection, bool *ret)
{
    UNREACHABLE();
}

bool groovy_missing_property(struct run *run, struct slice name, struct slice class_name)
{
    UNREACHABLE();
}

bool groovy_show_arguments(struct run *run, struct value *arguments, unsigned count, struct slice *ret_types,
                           struct slice *ret_values)
{
    UNREACHABLE();
}
