/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Script errors: the replies for scripts that do not compile or do not run, in Elasticsearch's format.
 *
 * A cause without a reason has `reason.data == NULL`, written as JSON null.
 */
#ifndef TL_SCRIPT_SCRIPT_ERROR_H
#define TL_SCRIPT_SCRIPT_ERROR_H

#include "script/syntax/compile.h"

struct script {
    unsigned references; /* atomic */
    enum script_lang lang;
    enum script_context context;
    struct arena arena; /* owns all data below */
    struct slice source;
    struct slice name; /* empty: errors name it by its source */
    struct slice hash; /* SHA-1 of the source: Groovy's name for its class */
    struct program program;
    struct script_limits limits; /* of a run without its own */
    bool bare_names;             /* parameters may be named without `params.` */
    struct node *bare;           /* their uses, last one first, linked by `c` */
};

/* Makes the problem of a source that does not compile. Assumes: compiler->error is set. */
void script_error_compile(const struct compiler *compiler, struct slice name, struct arena *arena,
                          struct problem *ret_problem);

/* Makes the problem of a run that threw: a script_exception with the throwable as its cause. */
void script_error_run(struct run *run, struct problem *ret_problem);

/* Makes a problem of the throwable alone, for an error in the result and not in the script. */
void script_error_plain(struct run *run, struct problem *ret_problem);

/*
 * Makes the compile error for the bare name `missing`, which is no parameter of the run. (script.c)
 */
void script__missing_name(const struct script *script, struct slice missing, struct arena *arena,
                          struct problem *ret_problem);

#endif
