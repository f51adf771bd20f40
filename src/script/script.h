/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: compiling and running the language of scripted updates.
 *
 * One interpreter for the common ground of Groovy and Painless; the dialect is part of a compiled script.
 * A script sees what its caller puts into the request below and nothing else: no clock, no randomness, no
 * other document. See README.md for the concept, the dialects and the invariants cited in this layer.
 *
 * Compile once and keep it (struct script_cache), run as often as needed:
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
    SCRIPT_DEFAULT, /* no lang named: Painless, plus parameters by bare name and assert */
    SCRIPT_PAINLESS,
    SCRIPT_GROOVY,
    SCRIPT_LANG_COUNT
};

/* What a script is for: decides the variables it may name and the type it returns. */
enum script_context {
    SCRIPT_FOR_UPDATE,      /* ctx, params; returns nothing */
    SCRIPT_FOR_FILTER,      /* doc, params; returns a boolean */
    SCRIPT_FOR_FIELD,       /* doc, params, params._source; returns anything */
    SCRIPT_FOR_NUMBER_SORT, /* doc, params; returns a double */
    SCRIPT_FOR_STRING_SORT, /* doc, params; returns a string */
    SCRIPT_FOR_SCORE,       /* doc, params, _score; returns a double */
    SCRIPT_FOR_TEST,        /* params; returns anything: _scripts/painless/_execute */
    SCRIPT_FOR_ANY,         /* all of 5.x at once; returns anything. Compiled to be kept, not to be run */
    SCRIPT_CONTEXT_COUNT
};

/* Outcomes. */
enum {
    SCRIPT_REFUSED = 1, /* does not compile: the problem is a script_exception "compile error" */
    SCRIPT_FAILED = 2,  /* threw, or passed a limit: the problem is a script_exception "runtime error" */
    SCRIPT_UNFIT = 3,   /* ran, but left something in ctx that makes no document: the problem stands alone */
};

/* Deterministic bounds (invariant 2). A run that passes one ends as SCRIPT_FAILED. */
struct script_limits {
    uint64_t steps_max;      /* statements, loop turns, calls, and elements touched by library calls */
    size_t memory_bytes_max; /* of all values a run creates, the document included; nothing is given back midway */
    unsigned depth_max;      /* nested calls of functions, closures and lambdas */
};

#define SCRIPT_STEPS_MAX ((uint64_t)5 * 1000 * 1000) /* a tenth of a second or two */
/* Of a script that the writer runs, for whom all other changes wait, whatever the limits say: a second or two. */
#define SCRIPT_WRITER_STEPS_MAX ((uint64_t)50 * 1000 * 1000)
#define SCRIPT_MEMORY_BYTES_MAX ((size_t)64 << 20)
#define SCRIPT_DEPTH_MAX 256u
#define SCRIPT_LIMITS_DEFAULT ((struct script_limits){SCRIPT_STEPS_MAX, SCRIPT_MEMORY_BYTES_MAX, SCRIPT_DEPTH_MAX})

/* Bytes of source, Elasticsearch's script.max_size_in_bytes. */
#define SCRIPT_SOURCE_BYTES_MAX ((size_t)65535)
/* Nested brackets, blocks and operators in a source. */
#define SCRIPT_NESTING_MAX 500u

/* "painless", "groovy"; what `lang` says in replies. */
const char *script_lang_name(enum script_lang lang);

/* Returns: true and the language a request names; false for one that is not supported. */
bool script_lang_from(struct slice name, enum script_lang *ret_lang);

/*
 * Compiles `source`.
 * Requires: `name` is what errors call the script (the id of a stored or file script), empty for an inline
 * one, which is called by its own text. `arena` is where a problem goes; the script does not live in it.
 * Returns: 0; SCRIPT_REFUSED with *ret_problem.
 * Owns: the caller; script_unref. A script is immutable, threads may share it.
 */
TL_MUST_USE int script_compile(enum script_lang lang, enum script_context context, struct slice source,
                               struct slice name, struct script **ret_script, struct arena *arena,
                               struct problem *ret_problem);

/* Takes or gives back a share of a script; safe from any thread. script_unref(NULL) does nothing. */
struct script *script_ref(struct script *script);
void script_unref(struct script *script);

static inline void script_unrefp(struct script **script)
{
    script_unref(*script);
}

/* Which ctx a script that updates finds. Each key below is there, with null where the slice is absent. */
enum script_ctx {
    SCRIPT_CTX_UPDATE,         /* _index _type _id _version _routing _now _source op */
    SCRIPT_CTX_UPDATE_TYPED,   /* the same and _parent, as before 6.0 */
    SCRIPT_CTX_UPSERT,         /* _source, op = create, _now */
    SCRIPT_CTX_BY_QUERY,       /* _index _type _id _version _routing _source op: _update_by_query, _reindex */
    SCRIPT_CTX_BY_QUERY_TYPED, /* the same and _parent _timestamp _ttl, as before 6.0 */
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
    struct slice op; /* what ctx.op says at the start; absent: "index", or "create" for an upsert */
    struct slice index;
    struct slice type;
    struct slice id;
    struct slice routing;
    struct slice parent;
    int64_t version;     /* negative: null */
    int64_t now_ms;      /* of the command's timestamp, since the epoch */
    struct slice zones;  /* the database of time zones (base/zone.h), which outlives the run; empty: none have names */
    struct slice source; /* a JSON object */
    struct slice params; /* a JSON object, or absent */
    struct account *account; /* as of a script_value */

    /* out, always */
    uint64_t steps; /* that the run took */
    bool exhausted;     /* it wanted more than there were */

    /* out, in the arena; after 0 only */
    enum script_op op_after;
    struct slice op_text;
    struct slice source_after; /* JSON: key order kept, numbers as Elasticsearch writes them */
    /* What ctx says at the end, for reindexing and update by query. `changed` against what it said before. */
    bool index_changed, type_changed, id_changed, routing_changed, version_changed;
    struct slice index_after, type_after, id_after, routing_after;
    int64_t version_after;     /* negative: null */
    struct slice invalid_ctx_keys; /* of ctx that mean nothing, by commas; data NULL: none. By query only */
};

/*
 * Runs a script compiled SCRIPT_FOR_UPDATE.
 * Requires: `limits`, or NULL for those of the cache that compiled it, else the defaults.
 * Ensures: *update's outputs are written on success only, but for the count of steps.
 * Returns: 0; SCRIPT_FAILED, also when the account is over; SCRIPT_UNFIT.
 */
TL_MUST_USE int script_run_update(const struct script *script, const struct script_limits *limits, struct arena *arena,
                                  struct script_update *update, struct problem *ret_problem);

enum script_doc_kind { SCRIPT_DOC_LONG, SCRIPT_DOC_DOUBLE, SCRIPT_DOC_BOOLEAN, SCRIPT_DOC_DATE, SCRIPT_DOC_STRING };

/* The words for a text field whose values are asked for one by one; as 5.x said it where `old`. */
struct slice script_doc_refusal(struct arena *arena, bool old, struct slice field);

/* The indexed values of one field of the document at hand, in order. */
struct script_doc_field {
    bool refused; /* a text field, which keeps none */
    enum script_doc_kind kind;
    size_t count;
    const int64_t *integers;     /* LONG, BOOLEAN as 0 and 1, DATE as milliseconds since the epoch */
    const double *doubles;       /* DOUBLE */
    const struct slice *strings; /* STRING */
};

/*
 * Looks a field up for doc['field'].
 * Returns: true and the field; false where the mapping has none of that name. What it hands out lives
 * through the run.
 */
typedef bool script_doc_function(void *user, struct slice field, struct script_doc_field *ret_field);

/* One run of a script that yields a value. */
struct script_eval {
    /* in */
    struct slice params;      /* a JSON object, or absent */
    struct slice source;      /* params._source; a JSON object, or absent */
    struct slice zones;       /* as above */
    script_doc_function *doc; /* NULL: no field is known */
    void *doc_user;
    double score;
    struct account *account; /* looked at every few milliseconds, and ends the run when it is over; NULL: none. Not in the core */

    /* out, in the arena */
    uint64_t steps;       /* that the run took; always set */
    struct slice json;    /* the value as JSON; absent for what has no such form (SCRIPT_FOR_TEST) */
    bool boolean;         /* FILTER */
    double number;        /* NUMBER_SORT, SCORE */
    struct slice string;  /* STRING_SORT */
    struct slice display; /* the value as Java's toString, for _scripts/painless/_execute */
};

/*
 * Runs a script compiled for anything but updates.
 * Requires: `limits` as above.
 * Returns: 0; SCRIPT_FAILED; SCRIPT_UNFIT for a value that has no JSON form.
 */
TL_MUST_USE int script_run_value(const struct script *script, const struct script_limits *limits, struct arena *arena,
                                 struct script_eval *value, struct problem *ret_problem);

/*
 * Compiled scripts, and sources that do not compile with the words for it, since those take long to find; the least
 * recently used dropped beyond a number and beyond the bytes that they take: what a script comes to is not told by its
 * length. The newest stays, however large. Not for use from two threads at once; the scripts it hands out are.
 */
struct script_cache;

#define SCRIPT_CACHE_COUNT_MAX ((size_t)1000)
#define SCRIPT_CACHE_BYTES_MAX ((size_t)8 << 20)

/* `limits` are those of its scripts; they are copied. Requires: each is above 0. */
struct script_cache *script_cache_new(size_t count_max, const struct script_limits *limits);
struct script_cache *script_cache_free(struct script_cache *cache);

/* As script_compile, but asks the cache first. Owns: the caller gets a share of its own; script_unref. */
TL_MUST_USE int script_cache_compile(struct script_cache *cache, enum script_lang lang, enum script_context context,
                                     struct slice source, struct slice name, struct script **ret_script,
                                     struct arena *arena, struct problem *ret_problem);

/* Returns: the bytes that it holds, and how many scripts and sources. */
size_t script_cache_bytes(const struct script_cache *cache);
size_t script_cache_count(const struct script_cache *cache);

#endif
