/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions at run time, by dialect. All return false with a throwable if the value does not convert.
 */
#ifndef TL_SCRIPT_CONVERT_H
#define TL_SCRIPT_CONVERT_H

#include "script/value/number.h"

/* Converts a `def` to a named type as Painless does, implicitly or by a cast (`explicit`). */
bool convert_def(struct run *run, struct value v, type_id target, bool explicit, struct value *ret);

/*
 * Converts the result of a dynamic call or load to the static type of its context, as the JVM's call site does: it
 * unboxes, widens primitives and checks references.
 */
bool convert_site(struct run *run, struct value v, type_id target, struct value *ret);

/*
 * Converts between static types: widening, narrowing, boxing, checked cast. `from` is the value's
 * static type.
 */
bool convert_typed(struct run *run, struct value v, type_id from, type_id target, struct value *ret);

/* Converts as Groovy's cast and assignment to a typed variable do; `coerce`: as its `as`. */
bool convert_groovy(struct run *run, struct value v, type_id target, bool coerce, struct value *ret);

/* Sets *ret to Groovy's truth: not null, not 0, not empty. */
bool convert_truth(struct run *run, struct value v, bool *ret);

#endif
