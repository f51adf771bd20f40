/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: compile and run Groovy and Painless.
 *
 * One interpreter serves both; the dialect is part of a compiled script. A script reads only what its caller
 * puts into the structs below: no clock, no randomness, no other document. See README.md for the concept, the
 * dialects and the invariants cited in this layer.
 *
 * Compile once, keep the script (struct script_cache), and run it any number of times:
 *
 *     r = script_compile(SCRIPT_PAINLESS, SCRIPT_FOR_UPDATE, source, SLICE_NONE, &script, arena, &problem);
 *     struct script_update update = {.op = SLICE_LIT("index"), .id = id, .source = json, ...};
 *     r = script_run_update(script, &SCRIPT_LIMITS_DEFAULT, arena, &update, &problem);
 */
#ifndef TL_SCRIPT_SCRIPT_H
#define TL_SCRIPT_SCRIPT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

struct account;
struct script;

enum script_lang {
    SCRIPT_DEFAULT, /* no `lang` in the request: Painless, plus parameters by bare name and assert */
    SCRIPT_PAINLESS,
    SCRIPT_GROOVY,
    SCRIPT_LANG_COUNT
};

/* The purpose of a script: decides which variables it may name and which type it returns. */
enum script_context {
    SCRIPT_FOR_UPDATE,      /* ctx, params; returns nothing */
    SCRIPT_FOR_FILTER,      /* doc, params; returns a boolean */
    SCRIPT_FOR_FIELD,       /* doc, params, params._source; returns anything */
    SCRIPT_FOR_NUMBER_SORT, /* doc, params; returns a double */
    SCRIPT_FOR_STRING_SORT, /* doc, params; returns a string */
    SCRIPT_FOR_SCORE,       /* doc, params, _score; returns a double */
    SCRIPT_FOR_TEST,        /* params; returns anything: _scripts/painless/_execute */
    SCRIPT_FOR_ANY,         /* the variables of all 5.x contexts; returns anything. Compiled to be stored, never run */
    SCRIPT_CONTEXT_COUNT
};

/* Outcomes. */
enum {
    SCRIPT_REFUSED = 1, /* does not compile: the problem is a script_exception "compile error" */
    SCRIPT_FAILED = 2,  /* threw, or exceeded a limit: the problem is a script_exception "runtime error" */
    SCRIPT_UNFIT = 3,   /* completed, but its result is no document or JSON: a problem without script_exception */
};

/* Deterministic limits (invariant 2). A run that exceeds one ends with SCRIPT_FAILED. */
struct script_limits {
    uint64_t steps_max;      /* statements, loop iterations, calls, and elements that library functions visit */
    size_t memory_bytes_max; /* of all values a run creates, including the document; never freed during the run */
    unsigned depth_max;      /* nested calls of functions, closures and lambdas */
};

#define SCRIPT_STEPS_MAX ((uint64_t)5 * 1000 * 1000) /* 0.1 to 0.2 s */
/*
 * Upper bound, whatever the limits are, for a script that the writer runs while all other changes
 * wait: 1 to 2 s.
 */
#define SCRIPT_WRITER_STEPS_MAX ((uint64_t)50 * 1000 * 1000)
#define SCRIPT_MEMORY_BYTES_MAX ((size_t)64 << 20)
#define SCRIPT_DEPTH_MAX 256u
#define SCRIPT_LIMITS_DEFAULT ((struct script_limits){SCRIPT_STEPS_MAX, SCRIPT_MEMORY_BYTES_MAX, SCRIPT_DEPTH_MAX})

/* Bytes of a source: the default of Elasticsearch's script.max_size_in_bytes. */
#define SCRIPT_SOURCE_BYTES_MAX ((size_t)65535)
/* Nesting of brackets, blocks and operators in a source. */
#define SCRIPT_NESTING_MAX 500u

/* Returns: "painless" or "groovy", the `lang` of replies. */
const char *script_lang_name(enum script_lang lang);

/* Returns: true with the language of that name; false if it is not supported. */
bool script_lang_from(struct slice name, enum script_lang *ret_lang);

/*
 * Compiles `source`.
 *
 * `name` is the script's name in errors: the id of a stored or file script; empty for an inline script, which errors
 * name by its source. Only *ret_problem is allocated in `arena`; the script has its own.
 * Returns: 0; SCRIPT_REFUSED with *ret_problem.
 * Owns: the caller; script_unref. A script is immutable; threads may share it.
 */
TL_MUST_USE int script_compile(enum script_lang lang, enum script_context context, struct slice source,
                               struct slice name, struct script **ret_script, struct arena *arena,
                               struct problem *ret_problem);

/*
 * Adds or drops a reference; the last script_unref frees the script. Callable from any thread;
 * script_unref(NULL) does nothing.
 */
struct script *script_ref(struct script *script);
void script_unref(struct script *script);

static inline void script_unrefp(struct script **script)
{
    script_unref(*script);
}

/*
 * The keys of `ctx` in a script that updates. All keys listed are present; the value is null where
 * the slice is absent.
 */
enum script_ctx {
    SCRIPT_CTX_UPDATE,         /* _index _type _id _version _routing _now _source op */
    SCRIPT_CTX_UPDATE_TYPED,   /* also _parent, as before 6.0 */
    SCRIPT_CTX_UPSERT,         /* _source, op = create, _now */
    SCRIPT_CTX_BY_QUERY,       /* _index _type _id _version _routing _source op: _update_by_query, _reindex */
    SCRIPT_CTX_BY_QUERY_TYPED, /* also _parent _timestamp _ttl, as before 6.0 */
    SCRIPT_CTX_COUNT
};

enum script_op {
    SCRIPT_OP_INDEX,
    SCRIPT_OP_CREATE,
    SCRIPT_OP_DELETE,
    SCRIPT_OP_NONE,  /* "none", "noop" */
    SCRIPT_OP_OTHER, /* any other text: see op_text */
};

/* One run of a script over a document. Slices with data == NULL are absent (null in the script). */
struct script_update {
    /* in */
    enum script_ctx ctx;
    struct slice op; /* initial ctx.op; absent: "index", or "create" for an upsert */
    struct slice index;
    struct slice type;
    struct slice id;
    struct slice routing;
    struct slice parent;
    int64_t version;     /* negative: null */
    int64_t now_ms;      /* the command's timestamp, milliseconds since the epoch */
    struct slice zones;  /* time zone database (base/zone.h), outlives the run; empty: only offsets are known */
    struct slice source; /* a JSON object */
    struct slice params; /* a JSON object, or absent */
    struct account *account; /* as in struct script_eval */
    /*
     * For a replay: the library gives the results that it gave before version 18 of commands, those of
     * old_decimal_format.h, and dates with offsets beyond 18 hours, or 59 minutes in them, or more than nine letters S.
     */
    bool old_library;
    /*
     * For a replay: as before version 19 of commands. Offsets have any form, such as +1, letters S of a
     * SimpleDateFormat are fractions, and a DecimalFormat writes big numbers as doubles. Also with old_library.
     */
    bool old_formats;

    /* out, always */
    uint64_t steps; /* taken by the run */
    size_t values;  /* of `source` and `params`, that were read; no steps */
    bool exhausted; /* the run failed because steps_max was reached */

    /* out, in the arena; after 0 only */
    enum script_op op_after;
    struct slice op_text;
    struct slice source_after; /* JSON: key order kept, numbers as Elasticsearch writes them */
    /* ctx after the run, for _reindex and _update_by_query; `changed`: differs from the input. */
    bool index_changed, type_changed, id_changed, routing_changed, version_changed;
    struct slice index_after, type_after, id_after, routing_after;
    int64_t version_after;     /* negative: null */
    struct slice invalid_ctx_keys; /* unknown keys of ctx, separated by commas; data NULL: none. BY_QUERY only */
};

/*
 * Runs a script compiled SCRIPT_FOR_UPDATE.
 * `limits` NULL: those of the cache that compiled it; without a cache the defaults.
 * Ensures: outputs are written on success only, except `steps`, `values` and `exhausted`.
 * Returns: 0; SCRIPT_FAILED, also when the account has ended; SCRIPT_UNFIT.
 */
TL_MUST_USE int script_run_update(const struct script *script, const struct script_limits *limits, struct arena *arena,
                                  struct script_update *update, struct problem *ret_problem);

enum script_doc_kind { SCRIPT_DOC_LONG, SCRIPT_DOC_DOUBLE, SCRIPT_DOC_BOOLEAN, SCRIPT_DOC_DATE, SCRIPT_DOC_STRING };

/* The error text for doc values of a text field, which has none; `old`: as 5.x words it. */
struct slice script_doc_refusal(struct arena *arena, bool old, struct slice field);

/* The indexed values of one field of the current document, ascending. */
struct script_doc_field {
    bool refused; /* a text field: it has no doc values, see script_doc_refusal */
    enum script_doc_kind kind;
    size_t count;
    const int64_t *integers;     /* LONG, BOOLEAN as 0 and 1, DATE as milliseconds since the epoch */
    const double *doubles;       /* DOUBLE */
    const struct slice *strings; /* STRING */
};

/*
 * Looks up a field for doc['field'].
 * Returns: true with the field, valid until the run ends; false if the mapping has no field of that name.
 */
typedef bool script_doc_function(void *user, struct slice field, struct script_doc_field *ret_field);

/* One run of a script that returns a value. */
struct script_eval {
    /* in */
    struct slice params;      /* a JSON object, or absent */
    struct slice source;      /* params._source; a JSON object, or absent */
    struct slice zones;       /* as above */
    script_doc_function *doc; /* NULL: no field is known */
    void *doc_user;
    double score;
    /*
     * Polled every few milliseconds; the run fails when it has ended. NULL: none. Always NULL in the
     * core
     */
    struct account *account;

    /* out, in the arena */
    uint64_t steps;       /* taken by the run; always set */
    struct slice json;    /* the value as JSON; absent if it has no JSON form (SCRIPT_FOR_TEST) */
    bool boolean;         /* FILTER */
    double number;        /* NUMBER_SORT, SCORE */
    struct slice string;  /* STRING_SORT */
    struct slice display; /* the value's toString, for _scripts/painless/_execute */
};

/*
 * Runs a script compiled for any other context.
 * `limits` as for script_run_update.
 * Returns: 0; SCRIPT_FAILED; SCRIPT_UNFIT for a value without a JSON form.
 */
TL_MUST_USE int script_run_value(const struct script *script, const struct script_limits *limits, struct arena *arena,
                                 struct script_eval *value, struct problem *ret_problem);

/*
 * An LRU cache of compiled scripts, and of sources that do not compile with their errors, which are expensive to find.
 *
 * Bounded by count and by bytes, since the memory of a compiled script does not follow from the length of its source.
 * The newest entry is never evicted, whatever its size. Not thread-safe; the scripts it returns are.
 */
struct script_cache;

#define SCRIPT_CACHE_COUNT_MAX ((size_t)1000)
#define SCRIPT_CACHE_BYTES_MAX ((size_t)8 << 20)

/* `limits` apply to its scripts and are copied. Requires: each limit is above 0. */
struct script_cache *script_cache_new(size_t count_max, const struct script_limits *limits);
struct script_cache *script_cache_free(struct script_cache *cache);

/*
 * As script_compile, but looks in the cache first. Owns: the caller gets its own reference;
 * script_unref.
 */
TL_MUST_USE int script_cache_compile(struct script_cache *cache, enum script_lang lang, enum script_context context,
                                     struct slice source, struct slice name, struct script **ret_script,
                                     struct arena *arena, struct problem *ret_problem);

/* Returns: bytes of memory in use; the number of scripts and failed sources. */
size_t script_cache_bytes(const struct script_cache *cache);
size_t script_cache_count(const struct script_cache *cache);

#endif
