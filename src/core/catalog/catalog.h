/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: indices with their settings, mappings and aliases; templates; scripts; cluster settings.
 *
 * A catalog is an immutable snapshot with a reference count. A change makes a new one that shares every
 * unchanged part with the old (README.md, "The catalog"), so readers on other threads keep what they hold,
 * and a new field in one mapping costs one pointer per index. Everything reached from a catalog lives as long
 * as the reference does.
 */
#ifndef TL_CORE_CATALOG_H
#define TL_CORE_CATALOG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"
#include "core/catalog/settings.h"
#include "json/dialect.h"
#include "store/view.h"

#define CATALOG_INDICES_MAX 10000
#define CATALOG_TEMPLATES_MAX 1000
#define CATALOG_SCRIPTS_MAX 10000
#define CATALOG_COPIES_MAX 1000
#define CATALOG_COMPONENTS_MAX 1000      /* component templates */
#define CATALOG_COMPOSED_MAX 100         /* of them, in one index template */
#define CATALOG_PATTERN_BYTES_MAX 1024   /* of one index template, all its patterns together */
#define CATALOG_PATTERNS_BYTES_MAX 65536 /* of all index templates: each new one is compared with all there are */
#define CATALOG_COPY_BYTES_MAX 4096
#define CATALOG_USERS_MAX 10000
#define CATALOG_ROLES_MAX 1000
#define CATALOG_API_KEYS_MAX 10000
#define CATALOG_SECURITY_BYTES_MAX 65536 /* of one of them */
#define CATALOG_ALIASES_MAX 1000 /* of one index */
#define CATALOG_NAME_BYTES_MAX 255
/* Bytes of one request's index expression. */
#define CATALOG_EXPRESSION_BYTES_MAX 65536

struct catalog;
struct mapping;

/* Three-valued flags of an alias. */
enum catalog_flag { CATALOG_FLAG_UNSET = -1, CATALOG_FLAG_FALSE = 0, CATALOG_FLAG_TRUE = 1 };

struct catalog_alias {
    struct slice name;
    struct slice filter;         /* JSON object; data NULL: none */
    struct slice index_routing;  /* data NULL: none */
    struct slice search_routing; /* data NULL: none */
    enum catalog_flag write_index;
    enum catalog_flag hidden;
};

/* How many documents an index has; shared by all catalogs that hold the index, and changed as it is written. */
struct catalog_counters;

struct catalog_index {
    uint32_t number; /* first part of its keys in the store; never used again */
    struct slice name;
    struct slice uuid;
    uint64_t created_ms;
    uint32_t shard_count; /* as replies show it */
    uint32_t replica_count;
    bool closed;
    bool hidden;
    const struct catalog_block *write_block; /* why documents must not change; NULL: they may */
    const struct catalog_block
        *metadata_block;             /* why mapping, settings, aliases and state must not change; NULL: they may */
    enum dialect dialect;            /* of who made it: many types, or one */
    const struct settings *settings; /* keys with their "index." */
    const struct mapping *mapping;
    const struct catalog_alias *aliases; /* in order of name */
    size_t alias_count;
    struct catalog_counters *counters; /* NULL in a catalog of the past */
};

/* What was done with an index since the server started. Changes count once they are applied, those of a transaction at its commit. */
enum index_stat {
    INDEX_STAT_INDEXED, /* documents written: created, replaced, updated */
    INDEX_STAT_DELETED, /* deletes, also of what was not there */
    INDEX_STAT_NOOPS,   /* updates that changed nothing */
    INDEX_STAT_GETS_FOUND,
    INDEX_STAT_GETS_MISSING,
    INDEX_STAT_SEARCHES,
    INDEX_STAT_SEARCH_US,
    INDEX_STAT_FETCHES, /* searches that read hits of it */
    INDEX_STAT_FAILED,  /* documents to be written whose condition did not hold */
    INDEX_STAT_SCROLLS_OPENED,
    INDEX_STAT_SCROLLS_ENDED,
    INDEX_STAT_SCROLL_US, /* that those which have ended were open */
    INDEX_STAT_PITS_OPENED,
    INDEX_STAT_PITS_ENDED,
    INDEX_STAT_COUNT
};
/* Returns: the figure; 0 in a catalog of the past. From any thread. */
uint64_t catalog_index_stat(const struct catalog_index *index, enum index_stat figure);
/* Adds to a figure; to none in a catalog of the past. From any thread. */
void catalog_index_count_stat(const struct catalog_index *index, enum index_stat figure, uint64_t more);

/* Returns: live documents of the index as of the newest step; 0 in a catalog of the past. From any thread. */
uint64_t catalog_index_documents(const struct catalog_index *index);
/* Returns: the number the next change gets. From any thread. */
int64_t catalog_index_next_seq_no(const struct catalog_index *index);
/* Returns: the index's alias of that name, or NULL. */
const struct catalog_alias *catalog_index_alias(const struct catalog_index *index, struct slice name);

/* Sharing; from any thread. NULL is fine for unref. */
struct catalog *catalog_ref(struct catalog *catalog);
void catalog_unref(struct catalog *catalog);
TL_DEFINE_FREEP(struct catalog, catalog_unref)

/*
 * Reads the catalog as of the view's timestamp. Its indices have no counters.
 * Returns: 0, STORE_TOO_OLD, TL_ERR_IO, TL_ERR_CORRUPT. Owns: the caller; catalog_unref.
 */
int catalog_load(const struct view *view, struct catalog **ret_catalog) TL_MUST_USE;

/* --- Looking up --------------------------------------------------------------------------------------------------- */

/* Returns: the index of exactly this name (no alias), or NULL. */
const struct catalog_index *catalog_index(const struct catalog *catalog, struct slice name);
const struct catalog_index *catalog_index_by_number(const struct catalog *catalog, uint32_t number);
/* All indices, in order of name. */
size_t catalog_index_count(const struct catalog *catalog);
const struct catalog_index *catalog_index_at(const struct catalog *catalog, size_t position);
/* Returns: whether any index has an alias of this name. */
bool catalog_has_alias(const struct catalog *catalog, struct slice name);

enum { CATALOG_REFUSED = 1 /* *ret_problem says why */ };

/*
 * Finds the one index that a document of `name` lives in, for get, update, delete and indexing: the index, or
 * the only index of an alias, or with `writing` the alias's write index.
 * Returns: 0; CATALOG_REFUSED with index_not_found_exception, index_closed_exception or
 *          illegal_argument_exception.
 */
int catalog_find_any(const struct catalog *catalog, struct slice name, bool writing, enum dialect dialect,
                     struct arena *arena, const struct catalog_index **ret_index,
                     const struct catalog_alias **ret_alias,
                     struct problem *ret_problem) TL_MUST_USE; /* closed ones, too */
int catalog_find(const struct catalog *catalog, struct slice name, bool writing, enum dialect dialect,
                 struct arena *arena, const struct catalog_index **ret_index, const struct catalog_alias **ret_alias,
                 struct problem *ret_problem) TL_MUST_USE;

/* Elasticsearch's options of index expressions. */
struct catalog_options {
    bool ignore_unavailable; /* missing and closed indices are left out without an error */
    bool allow_no_indices;   /* an expression that comes to nothing is no error */
    bool expand_open;
    bool expand_closed;
    bool expand_hidden;
    bool allow_closed;   /* closed indices named outright are fine: _open, _close, _settings, HEAD */
    bool refuse_aliases; /* aliases are an error where 7.10 has it so, and no match for wildcards: DELETE */
};

/* A setting of an index that guards it. */
struct catalog_block {
    const char *setting;
    const char *name; /* as Elasticsearch tells it */
    int status;
    bool metadata;       /* guards mapping, settings, aliases and state beside the documents */
    bool spares_removal; /* the index itself may be deleted */
};

/* Returns: what guards the documents of an index with such settings, with `metadata` all that belongs to it; NULL: nothing. */
struct settings;
const struct catalog_block *catalog_block_of(const struct settings *settings, bool metadata);
/* Fills *ret_problem with "index [i] blocked by: [...];". */
void catalog_problem_blocked(struct arena *arena, struct slice index, const struct catalog_block *block,
                             struct problem *ret_problem);

/* What search, count, get mapping and the like start from. */
#define CATALOG_OPTIONS_DEFAULT ((struct catalog_options){.allow_no_indices = true, .expand_open = true})

/* An index that an expression came to, and how. */
struct catalog_target {
    const struct catalog_index *index;
    const struct catalog_alias **aliases; /* by which it was reached, when by aliases only; else none */
    size_t alias_count;
};

/*
 * Resolves a comma-separated expression of names, aliases, wildcards, `-` exclusions behind a wildcard, `_all` (empty:
 * `_all`).
 * Targets come in order of name, each index once.
 * Returns: 0 (perhaps with no target); CATALOG_REFUSED. Lives: targets in `arena`, what they name in the catalog.
 */
int catalog_resolve(const struct catalog *catalog, struct slice expression, const struct catalog_options *options,
                    enum dialect dialect, struct arena *arena, struct catalog_target **ret_targets, size_t *ret_count,
                    struct problem *ret_problem) TL_MUST_USE;

/* Fills an index_not_found_exception for `name`; with `alias_or_index` for calls that take several indices. */
void catalog_problem_missing(struct arena *arena, struct slice name, bool alias_or_index, enum dialect dialect,
                             struct problem *ret_problem);
/* Fills an index_closed_exception for an index. */
void catalog_problem_closed(struct arena *arena, const struct catalog_index *index, enum dialect dialect,
                            struct problem *ret_problem);

/*
 * Checks a name for a new index (`what` "index") or alias by Elasticsearch's rules.
 * Returns: 0; CATALOG_REFUSED with invalid_index_name_exception or invalid_alias_name_exception.
 */
int catalog_check_index_name(struct slice name, enum dialect dialect, struct arena *arena,
                             struct problem *ret_problem) TL_MUST_USE;
int catalog_check_alias_name(const struct catalog *catalog, struct slice name, enum dialect dialect,
                             struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* --- Named objects ------------------------------------------------------------------------------------------------ */

enum catalog_kind {
    CATALOG_TEMPLATES,
    CATALOG_SCRIPTS,         /* stored ones */
    CATALOG_FILE_SCRIPTS,    /* of DATA/scripts; by "lang/name" */
    CATALOG_CLUSTER,         /* "settings", the "uuid", and "zones": bytes, see base/zone.h */
    CATALOG_INDEX_TEMPLATES, /* composable ones */
    CATALOG_COMPONENTS,      /* component templates, of which those are composed */
    CATALOG_COPIES, /* what copies elsewhere have said of themselves last; JSON, as GET /_changes/_consumers has it */
    CATALOG_USERS,        /* JSON, with the hash of a password; README-rights.md, for the next two, too */
    CATALOG_ROLES,
    CATALOG_API_KEYS,     /* by id; JSON, with the hash of the secret */
    CATALOG_KIND_COUNT
};

struct catalog_object {
    struct slice name;
    struct slice lang;    /* of scripts: as given, or the default */
    struct slice body;    /* JSON of templates and cluster settings as rendered by GET; source text of scripts */
    struct slice options; /* JSON of a stored script's options; data NULL: none */
};

/* Returns: the object, or NULL. */
const struct catalog_object *catalog_object(const struct catalog *catalog, enum catalog_kind kind, struct slice name);
/* Finds a script in a file. Returns: 0; CATALOG_REFUSED, there is none. */
int catalog_file_script(const struct catalog *catalog, struct slice lang, struct slice file, struct arena *arena,
                        const struct catalog_object **ret_script, struct problem *ret_problem) TL_MUST_USE;
/* Returns: the database of time zones (base/zone.h); empty where there is none. */
struct slice catalog_zones(const struct catalog *catalog);
/* All of one kind, in order of name. */
size_t catalog_object_count(const struct catalog *catalog, enum catalog_kind kind);
const struct catalog_object *catalog_object_at(const struct catalog *catalog, enum catalog_kind kind, size_t position);

/* Whether two catalogs have the very same objects of a kind: nothing of it was changed between them. */
bool catalog_same_objects(const struct catalog *a, const struct catalog *b, enum catalog_kind kind);

/*
 * Returns: a catalog with only those indices that `sees` says yes to, and all else that the other has; nothing is copied. The one that there is
 * where nothing is left out. Owns: the caller; catalog_unref.
 */
struct catalog *catalog_filter(struct catalog *catalog, bool (*sees)(const void *context, struct slice name), const void *context);

/* Appends what GET shows of an index's aliases: {"a": {"filter": …, "index_routing": …}, …}; one, or all for NULL. */
void catalog_render_aliases(const struct catalog_index *index, struct slice pattern, struct buf *buf);
/* Appends one alias's body: {"filter": …}. */
void catalog_render_alias(const struct catalog_alias *alias, struct buf *buf);

#endif
