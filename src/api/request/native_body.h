/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of native calls, those that Elasticsearch lacks: small objects whose members are read one by one; an unknown
 * member is refused.
 */
#ifndef TL_API_NATIVE_BODY_H
#define TL_API_NATIVE_BODY_H

#include "api/request/reply.h"
#include "core/command/command.h"

/* What a call takes; static. */
struct body_schema {
    const char *call;    /* "a lock", for texts */
    const char *members; /* names apart by spaces */
    const char *example; /* a body as it may be; NULL: it takes none */
};

/* A body under way. */
struct native_body {
    struct request *request;
    struct json_doc doc;
    const struct body_schema *form;
    const char *call; /* the form's */
};

/*
 * Parses the body, an object or nothing, and refuses members that the form does not list.
 * Returns: 0, REQUEST_REFUSED.
 */
int native_body_parse(struct request *request, const struct body_schema *form,
                      struct native_body *ret_body) TL_MUST_USE;

/* Sets request->problem: a member that there must be is missing; shows the example. Returns: REQUEST_REFUSED. */
int native_body_missing(struct native_body *body, const char *what) TL_MUST_USE;

/* Members. Absent ones leave *ret_value as it is. Returns: 0, REQUEST_REFUSED. */
int native_body_text(struct native_body *body, const char *name, struct slice *ret_value) TL_MUST_USE;
int native_body_id(struct native_body *body, const char *name, struct slice *ret_id) TL_MUST_USE; /* not empty */
int native_body_time(struct native_body *body, const char *name, uint64_t *ret_micros) TL_MUST_USE;
int native_body_ts(struct native_body *body, const char *name, tl_ts *ret_ts) TL_MUST_USE;

/*
 * The list of locks in the member "locks": {"mode", "index", "path", "type", "id"}. `mode_default` is LOCK_NONE where
 * the mode must be named.
 * Returns: 0, REQUEST_REFUSED. Targets live in the request's arena.
 */
int native_body_targets(struct native_body *body, enum lock_mode mode_default, struct lock_target **ret_targets,
                        size_t *ret_count) TL_MUST_USE;

/* "1.5s", "12ms", "340micros" as texts of replies. */
struct slice own_duration(struct arena *arena, uint64_t micros);

#endif
