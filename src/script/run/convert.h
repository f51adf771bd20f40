/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions at run time, each dialect's own.
 */
#ifndef TL_SCRIPT_CONVERT_H
#define TL_SCRIPT_CONVERT_H

#include "script/value/number.h"

/* Painless's conversion of a `def` to a named type, implicit or by a cast. */
bool convert_def(struct run *run, struct value v, type_id target, bool explicit, struct value *ret);

/*
 * The virtual machine's, where a `def` is called or loaded and the surroundings know the type they want: boxes are
 * opened and widened, references checked.
 */
bool convert_site(struct run *run, struct value v, type_id target, struct value *ret);

/* Between types that are known: widening, narrowing, boxing, a checked cast. `from` is the static type. */
bool convert_typed(struct run *run, struct value v, type_id from, type_id target, struct value *ret);

/* Groovy's cast and assignment to a typed variable; `coerce` for `as`. */
bool convert_groovy(struct run *run, struct value v, type_id target, bool coerce, struct value *ret);

/* Groovy's truth: not null, not 0, not empty. */
bool convert_truth(struct run *run, struct value v, bool *ret);

#endif
