/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of Groovy's dispatch ask of each other. */
#ifndef TL_SCRIPT_DISPATCH_GROOVY_H
#define TL_SCRIPT_DISPATCH_GROOVY_H

#include "script/value/dict.h"
#include "script/run/interp.h"
#include "script/library/method.h"

/* Calls a row with arguments that fit: each becomes what the row takes. */
bool groovy_apply(struct run *run, const struct method *method, struct value *arguments, unsigned count,
                  struct value *ret);

/* How far an argument's class is from a parameter's; negative where it does not fit. */
int groovy_distance(struct value argument, type_id wanted);

/* The same for all arguments of a function of the script. */
int groovy_function_distance(const struct function *function, const struct value *arguments, unsigned count);

/* Of the script's functions of a name the nearest to the arguments, or NULL. */
const struct function *groovy_choose_function(struct run *run, struct slice name, const struct value *arguments,
                                              unsigned count);

/* Calls a closure by the name that messages are to show. */
bool groovy_invoke_as(struct run *run, struct value function, struct slice called, struct value *arguments,
                      unsigned count, struct value *ret);

/* A class as a value. */
struct value groovy_class_object(struct run *run, type_id type);

/* "\nPossible solutions: …", the methods that may have been meant; or empty. arguments[0] is the first. */
struct slice groovy_suggest(struct run *run, type_id type, struct slice name, const struct value *arguments,
                          unsigned count);

/* "No signature of method: …", with the methods that may have been meant. Returns: false. */
bool groovy_missing_method(struct run *run, type_id type, bool is_static, struct slice name, struct value *arguments,
                           unsigned count);

#endif
