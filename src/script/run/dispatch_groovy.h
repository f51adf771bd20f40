/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions shared by the files of Groovy's dispatch. All that return bool return false with a
 * throwable.
 */
#ifndef TL_SCRIPT_DISPATCH_GROOVY_H
#define TL_SCRIPT_DISPATCH_GROOVY_H

#include "script/value/dict.h"
#include "script/run/interp.h"
#include "script/library/method.h"

/* Calls a row with arguments that fit, each converted to the parameter's type. */
bool groovy_apply(struct run *run, const struct method *method, struct value *arguments, unsigned count,
                  struct value *ret);

/*
 * Returns: the distance from an argument's class to a parameter's type; negative if it does not
 * fit.
 */
int groovy_distance(struct value argument, type_id wanted);

/*
 * Returns: the sum of the distances for a function of the script; negative if an argument does not
 * fit.
 */
int groovy_function_distance(const struct function *function, const struct value *arguments, unsigned count);

/* Returns: the script's function of that name with the least distance to the arguments, or NULL. */
const struct function *groovy_choose_function(struct run *run, struct slice name, const struct value *arguments,
                                              unsigned count);

/* Calls a closure; error messages name it `called`. */
bool groovy_invoke_as(struct run *run, struct value function, struct slice called, struct value *arguments,
                      unsigned count, struct value *ret);

/* Returns: a class as a value. */
struct value groovy_class_object(struct run *run, type_id type);

/*
 * Returns: "\nPossible solutions: …" with methods of a similar name, or empty. arguments[0] is the
 * first argument.
 */
struct slice groovy_suggest(struct run *run, type_id type, struct slice name, const struct value *arguments,
                            unsigned count);

/* Throws "No signature of method: …" with groovy_suggest's methods. Returns: false. */
bool groovy_missing_method(struct run *run, type_id type, bool is_static, struct slice name, struct value *arguments,
                           unsigned count);

#endif
