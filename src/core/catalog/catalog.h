/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: indices with their settings, mappings and aliases; templates; scripts; cluster
 * settings.
 *
 * A catalog is an immutable snapshot with a reference count. A change makes a new snapshot that
 * shares all unchanged parts with the previous one (README.md, "The catalog"). Readers on other
 * threads keep the snapshot that they have, and a new field in one mapping costs one pointer per
 * index. Everything reached from a catalog lives as long as the reference.
 */
#ifndef TL_CORE_CATALOG_H
#define TL_CORE_CATALOG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"
#include "core/catalog/settings.h"
#include "core/command/catalog_options.h"
#include "json/dialect.h"
#include "store/view.h"

#define CATALOG_INDICES_MAX 10000
#define CATALOG_TEMPLATES_MAX 1000
#define CATALOG_SCRIPTS_MAX 10000
#define CATALOG_COPIES_MAX 1000
#define CATALOG_COMPONENTS_MAX 1000      /* component templates */
#define CATALOG_COMPOSED_MAX 100         /* component templates of one index template */
#define CATALOG_APPLIED_BYTES_MAX (4 << 20) /* of all templates that apply to one index, with their components */
#define CATALOG_PATTERN_BYTES_MAX 1024   /* of all patterns of one index template */
#define CATALOG_PATTERNS_BYTES_MAX 65536 /* of all index templates, which are compared pairwise */
#define CATALOG_COMPARED_BYTES_MAX 1600000 /* of all patterns of templates, compared with a name: 10 ms */
#define CATALOG_PATTERN_PAIRS_MAX 4000000 /* compared when one of them is put */
#define CATALOG_ALIAS_USES_MAX 200000     /* aliases of all indices, an alias of many counting for each */
#define CATALOG_COPY_BYTES_MAX 4096
#define CATALOG_USERS_MAX 10000
#define CATALOG_ROLES_MAX 1000
#define CATALOG_API_KEYS_MAX 10000
#define CATALOG_SECURITY_BYTES_MAX 65536 /* of one of these objects */
#define CATALOG_ALIASES_MAX 1000 /* of one index */
#define CATALOG_ALIAS_BYTES_MAX (4 << 20)   /* of the filters and routings of an index's aliases */
#define CATALOG_SETTING_BYTES_MAX (1 << 20) /* of the keys and values of an index's settings, or the cluster's */
#define CATALOG_REQUEST_BYTES_MAX (4 << 20) /* of a request that changes the catalog: its step parses the body */
#define CATALOG_NAME_BYTES_MAX 255
/*
 * Names of indices and aliases with which one expression is compared, about 50 ms. A wildcard is compared with each
 * index and with each alias of each index; a name counts LOOKS_PER_USE, and as many for each index of an alias. With
 * 10,000 indices it may have 400 wildcards if none has an alias, and 36 if each has ten. A comparison of which the
 * bytes are many counts as more: catalog_looks().
 */
#define CATALOG_LOOKS_MAX UINT64_C(4000000)

struct catalog;
struct mapping;

/* An optional boolean of an alias. */
enum catalog_flag { CATALOG_FLAG_UNSET = -1, CATALOG_FLAG_FALSE = 0, CATALOG_FLAG_TRUE = 1 };

struct catalog_alias {
    struct slice name;
    struct slice filter;         /* JSON object; data NULL: none */
    struct slice index_routing;  /* data NULL: none */
    struct slice search_routing; /* data NULL: none */
    enum catalog_flag write_index;
    enum catalog_flag hidden;
};

/* Counts of an index, shared by all catalogs that have the index, updated by writes. */
struct catalog_counters;

struct catalog_index {
    uint32_t number; /* first part of its keys in the store; never reused */
    struct slice name;
    struct slice uuid;
    uint64_t created_ms;
    uint32_t shard_count; /* shown in replies; has no effect */
    uint32_t replica_count;
    bool closed;
    bool hidden;
    bool may_have_routings; /* false: no version of its documents, at any timestamp, has a routing */
    int64_t gc_deletes_us;  /* how long the version of a deleted document counts; -1: it never does */
    tl_ts deletes_forgotten; /* versions of deletes before it count no longer, whatever gc_deletes_us is now */
    /* Block that forbids changes of documents; NULL: none */
    const struct catalog_block *write_block;
    /* Block that forbids changes of mapping, settings, aliases and state; NULL: none */
    const struct catalog_block *metadata_block;
    /* Of the creator; decides whether the index has many types or one */
    enum dialect dialect;
    const struct settings *settings; /* keys with the prefix "index." */
    const struct mapping *mapping;
    const struct catalog_alias *aliases; /* in order of name */
    size_t alias_count;
    struct catalog_counters *counters; /* NULL in a catalog of an earlier timestamp */
};

/*
 * Statistics of an index since the server started. Writes count when they are applied, those of a
 * transaction at its commit.
 */
enum index_stat {
    INDEX_STAT_INDEXED, /* documents created, replaced or updated */
    INDEX_STAT_DELETED, /* deletes, also of missing documents */
    INDEX_STAT_NOOPS,   /* updates without a change */
    INDEX_STAT_GETS_FOUND,
    INDEX_STAT_GETS_MISSING,
    INDEX_STAT_SEARCHES,
    INDEX_STAT_SEARCH_US,
    INDEX_STAT_FETCHES, /* searches that read hits of the index */
    INDEX_STAT_FAILED,  /* writes whose condition did not hold */
    INDEX_STAT_SCROLLS_OPENED,
    INDEX_STAT_SCROLLS_ENDED,
    INDEX_STAT_SCROLL_US, /* total time that ended scrolls were open */
    INDEX_STAT_PITS_OPENED,
    INDEX_STAT_PITS_ENDED,
    INDEX_STAT_COUNT
};
/* Returns: a statistic; 0 in a catalog of an earlier timestamp. On any thread. */
uint64_t catalog_index_stat(const struct catalog_index *index, enum index_stat stat);
/* Adds `more` to a statistic; no effect in a catalog of an earlier timestamp. On any thread. */
void catalog_index_count_stat(const struct catalog_index *index, enum index_stat stat, uint64_t more);

/*
 * Returns: live documents of the index after the newest step; 0 in a catalog of an earlier
 *   timestamp. On any thread.
 */
uint64_t catalog_index_documents(const struct catalog_index *index);
/* Returns: the sequence number of the next change. On any thread. */
int64_t catalog_index_next_seq_no(const struct catalog_index *index);
/* Returns: the alias of the index with that name; NULL: none. */
const struct catalog_alias *catalog_index_alias(const struct catalog_index *index, struct slice name);

/* Reference counting, on any thread. NULL is fine for unref. */
struct catalog *catalog_ref(struct catalog *catalog);
void catalog_unref(struct catalog *catalog);
TL_DEFINE_FREEP(struct catalog, catalog_unref)

/*
 * Loads the catalog as of the view's timestamp. Its indices have no counters.
 * Returns: 0; STORE_TOO_OLD; TL_ERR_IO; TL_ERR_CORRUPT. Owns: the caller; catalog_unref().
 */
int catalog_load(const struct view *view, struct catalog **ret_catalog) TL_MUST_USE;

/* --- Lookup ------------------------------------------------------------------------------------------------------- */

/* Returns: the index with exactly this name, not an alias; NULL: none. */
const struct catalog_index *catalog_index(const struct catalog *catalog, struct slice name);
const struct catalog_index *catalog_index_by_number(const struct catalog *catalog, uint32_t number);
/* All indices in order of name. */
size_t catalog_index_count(const struct catalog *catalog);
const struct catalog_index *catalog_index_at(const struct catalog *catalog, size_t position);
/* Returns: how many aliases all indices have, an alias of many counting for each. */
size_t catalog_alias_use_count(const struct catalog *catalog);
/* Returns: whether any index has an alias with this name. */
bool catalog_has_alias(const struct catalog *catalog, struct slice name);
/* Returns: the index of an alias at that position, in order of their names; NULL: it has fewer, or is no alias. */
const struct catalog_index *catalog_alias_index(const struct catalog *catalog, struct slice alias, size_t position);

enum { CATALOG_REFUSED = 1 /* *ret_problem has the reason */ };

/*
 * Finds the index for operations on one document of `name`: the index of that name, the only index
 * of the alias, or, with `writing`, the alias's write index. *ret_alias: the alias; NULL: `name` is
 * an index. catalog_find() refuses closed indices.
 * Returns: 0; CATALOG_REFUSED with index_not_found_exception, index_closed_exception or
 *   illegal_argument_exception. `ret_problem` of catalog_find_any() may be NULL: the reason may name thousands of
 *   indices.
 */
int catalog_find_any(const struct catalog *catalog, struct slice name, bool writing, enum dialect dialect,
                     struct arena *arena, const struct catalog_index **ret_index,
                     const struct catalog_alias **ret_alias, struct problem *ret_problem) TL_MUST_USE;
int catalog_find(const struct catalog *catalog, struct slice name, bool writing, enum dialect dialect,
                 struct arena *arena, const struct catalog_index **ret_index, const struct catalog_alias **ret_alias,
                 struct problem *ret_problem) TL_MUST_USE;

/* A block: a setting that forbids changes of an index. */
struct catalog_block {
    const char *setting;
    const char *name; /* in Elasticsearch's error text */
    int status;
    bool metadata;       /* also forbids changes of mapping, settings, aliases and state */
    bool spares_removal; /* the index may still be deleted */
};

/*
 * Returns: the block that such settings impose on documents, or with `metadata` on mapping,
 *   settings, aliases and state; NULL: none.
 */
struct settings;
const struct catalog_block *catalog_block_of(const struct settings *settings, bool metadata);
/* Sets *ret_problem to "index [i] blocked by: [...];". */
void catalog_problem_blocked(struct arena *arena, struct slice index, const struct catalog_block *block,
                             struct problem *ret_problem);

/* Options of search, count, get mapping and similar calls. */
#define CATALOG_OPTIONS_DEFAULT ((struct catalog_options){.allow_no_indices = true, .expand_open = true})

/* Options of calls about the cluster and its history: also closed and hidden indices; missing ones are skipped. */
extern const struct catalog_options catalog_options_every_index;

/* An index to which an expression resolved. */
struct catalog_target {
    const struct catalog_index *index;
    /* Aliases by which it was reached; none if also by its name or a wildcard on it */
    const struct catalog_alias **aliases;
    size_t alias_count;
};

/* How comparisons of wildcards with names are counted. */
enum catalog_weighing {
    CATALOG_WEIGH_NONE,    /* each as one */
    CATALOG_WEIGH_REQUEST, /* with a limit that keeps a worker from taking seconds, and that few requests reach */
    CATALOG_WEIGH_STEP     /* by their time, for the work of a step */
};

/*
 * Returns: as how many comparisons that of a wildcard with a name counts: 1 with a short name, or if there is no text
 * between two `*` of the wildcard.
 */
uint64_t catalog_looks(enum catalog_weighing weighing, struct slice pattern, struct slice name);

/*
 * Resolves a comma-separated expression of names, aliases, wildcards, `-` exclusions after a
 * wildcard, and `_all` (empty: `_all`). Targets are in order of name, each index once; they live in
 * `arena` and point into the catalog.
 * Returns: 0, also with no target; CATALOG_REFUSED, also beyond CATALOG_LOOKS_MAX.
 */
int catalog_resolve(const struct catalog *catalog, struct slice expression, const struct catalog_options *options,
                    enum dialect dialect, struct arena *arena, struct catalog_target **ret_targets, size_t *ret_count,
                    struct problem *ret_problem) TL_MUST_USE;
/*
 * As catalog_resolve(), with a limit of its own. *io_looks: in: that limit; out: how many of them are left, and 0 if it
 * was exceeded. Comparisons count by catalog_looks().
 */
int catalog_resolve_within(const struct catalog *catalog, struct slice expression,
                           const struct catalog_options *options, enum dialect dialect, enum catalog_weighing weighing,
                           struct arena *arena, uint64_t *io_looks, struct catalog_target **ret_targets,
                           size_t *ret_count, struct problem *ret_problem) TL_MUST_USE;

/*
 * Sets an index_not_found_exception for `name`; `alias_or_index`: for calls that take several
 * indices.
 */
void catalog_problem_missing(struct arena *arena, struct slice name, bool alias_or_index, enum dialect dialect,
                             struct problem *ret_problem);
/* Sets an index_closed_exception for an index. */
void catalog_problem_closed(struct arena *arena, const struct catalog_index *index, enum dialect dialect,
                            struct problem *ret_problem);

/*
 * Check the name of a new index or alias by Elasticsearch's rules.
 * Returns: 0; CATALOG_REFUSED with invalid_index_name_exception or invalid_alias_name_exception.
 */
int catalog_check_index_name(struct slice name, enum dialect dialect, struct arena *arena,
                             struct problem *ret_problem) TL_MUST_USE;
int catalog_check_alias_name(const struct catalog *catalog, struct slice name, enum dialect dialect,
                             struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* --- Named objects ------------------------------------------------------------------------------------------------ */

enum catalog_kind {
    CATALOG_TEMPLATES,
    CATALOG_SCRIPTS,         /* stored scripts */
    CATALOG_FILE_SCRIPTS,    /* of DATA/scripts, by "lang/name" */
    CATALOG_CLUSTER,         /* "settings", "uuid", and "zones": bytes, see base/zone.h */
    CATALOG_INDEX_TEMPLATES, /* composable templates */
    CATALOG_COMPONENTS,      /* component templates */
    /* The last report of each consumer of the change feed; JSON as in GET /_changes/_consumers */
    CATALOG_COPIES,
    /* JSON with the hash of a password; README-rights.md, also for the next two */
    CATALOG_USERS,
    CATALOG_ROLES,
    CATALOG_API_KEYS, /* by id; JSON with the hash of the secret */
    CATALOG_KIND_COUNT
};

struct catalog_object {
    struct slice name;
    struct slice lang;    /* of a script: as given, or the default */
    struct slice body;    /* JSON as rendered by GET, or the source text of a script */
    struct slice options; /* JSON of a stored script's options; data NULL: none */
    const struct catalog_matching
        *matching; /* of a template or component in the core's catalog, else NULL; from its body */
    const struct cluster_values *values;     /* of the cluster's settings in the core's catalog, else NULL */
};

/*
 * What decides whether a template applies to an index, so that only those that do need be parsed, and properties of its
 * text for an estimate of the fields that an index gets by it. A component has only those.
 */
struct catalog_matching {
    const struct slice *patterns;
    size_t pattern_count;
    const struct slice *components; /* of a composable template: "composed_of" */
    size_t component_count;
    int64_t rank;       /* "priority" of a composable template, else "order" */
    size_t compared;    /* json_wildcard_bytes() of the patterns, with the longest name */
    size_t colon_count; /* ':' in the body: each field has two of them at least */
    bool limits_fields; /* "total_fields" occurs in the body */
    bool dynamic;       /* "dynamic_templates" occurs in it */
};

/* Returns: the object; NULL: none. */
const struct catalog_object *catalog_object(const struct catalog *catalog, enum catalog_kind kind, struct slice name);
/* Finds a file script. Returns: 0; CATALOG_REFUSED: it does not exist. */
int catalog_file_script(const struct catalog *catalog, struct slice lang, struct slice file, struct arena *arena,
                        const struct catalog_object **ret_script, struct problem *ret_problem) TL_MUST_USE;
/* Returns: the database of time zones (base/zone.h); empty: none. */
struct slice catalog_zones(const struct catalog *catalog);
/* All objects of a kind in order of name. */
size_t catalog_object_count(const struct catalog *catalog, enum catalog_kind kind);
const struct catalog_object *catalog_object_at(const struct catalog *catalog, enum catalog_kind kind, size_t position);

/*
 * Returns: whether two catalogs share the objects of a kind, so that none was changed between them.
 */
bool catalog_same_objects(const struct catalog *a, const struct catalog *b, enum catalog_kind kind);

/*
 * Returns: a catalog with only those indices for which `is_visible` returns true, and everything else of
 *   `catalog`. Nothing is copied; `catalog` itself if all indices remain. Owns: the caller;
 *   catalog_unref().
 */
struct catalog *catalog_filter(struct catalog *catalog, bool (*is_visible)(const void *context, struct slice name),
                               const void *context);

/*
 * Appends the aliases of an index as GET renders them: {"a": {"filter": …, "index_routing": …}, …}.
 * `pattern` with data NULL: all.
 */
void catalog_render_aliases(const struct catalog_index *index, struct slice pattern, struct buf *buf);
/* Appends the body of one alias: {"filter": …}. */
void catalog_render_alias(const struct catalog_alias *alias, struct buf *buf);

#endif
