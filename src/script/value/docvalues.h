/* SPDX-License-Identifier: Apache-2.0 */
/* doc['field']: the indexed values of the current document, for scripts in searches. */
#ifndef TL_SCRIPT_DOCVALUES_H
#define TL_SCRIPT_DOCVALUES_H

#include "script/value/dict.h"

struct doc_lookup {
    struct object object; /* CLASS_DOC */
    script_doc_function *function;
    void *user;
};

struct value doc_new(struct run *run, script_doc_function *function, void *user);
/* Sets *ret to the doc values of a field; throws if the mapping lacks it. */
bool docvalues_get(struct run *run, const struct doc_lookup *doc, struct value name, struct value *ret);
bool doc_has(struct run *run, const struct doc_lookup *doc, struct value name, bool *ret);

#endif
