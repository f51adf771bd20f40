/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults: what a client is told of a script that does not compile or does not run, in Elasticsearch's shapes.
 *
 * A cause without a reason has `reason.data == NULL`, which is JSON's null.
 */
#ifndef TL_SCRIPT_SCRIPT_ERROR_H
#define TL_SCRIPT_SCRIPT_ERROR_H

#include "script/syntax/compile.h"

struct script {
    unsigned references; /* atomic */
    enum script_lang lang;
    enum script_context context;
    struct arena arena; /* everything below lives here */
    struct slice source;
    struct slice name; /* empty: called by its source */
    struct slice hash; /* SHA-1 of the source: Groovy's name for its class */
    struct program program;
    struct script_limits limits; /* of a run that brings none */
    bool bare_names;             /* parameters may go by their names alone */
    struct node *bare;           /* these, the last one first, linked by `c` */
};

/* Of a source that does not compile. */
void script_error_compile(const struct compiler *compiler, struct slice name, struct arena *arena,
                   struct problem *ret_problem);

/* Of a run that threw. */
void script_error_run(struct run *run, struct problem *ret_problem);

/* Of a throwable by itself, for what is wrong with a result rather than in the script. */
void script_error_plain(struct run *run, struct problem *ret_problem);

/* A name in the source that would be a parameter, but there is none: the error of compiling without it. (script.c) */
void script__missing_name(const struct script *script, struct slice missing, struct arena *arena,
                          struct problem *ret_problem);

#endif
