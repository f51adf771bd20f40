/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain model of what the core keeps: indices by name, documents with all their versions,
 * aliases, templates.
 *
 * It shares no code and no data structure with the product. Everything is in arrays that are
 * searched from the front; it keeps all of history. It applies operations (struct sim_op), not
 * commands, and returns the expected result of each.
 */
#ifndef TL_TESTS_SIM_MODEL_H
#define TL_TESTS_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_FIELDS = 8,
    SIM_PATH = 7,
    SIM_PATH_MAX = 128,
    SIM_NAME = 16,
    SIM_ITEMS = 48,
    SIM_ALIASES = 4,
    SIM_ACTIONS = 4
};

#define SIM_NEVER UINT64_MAX
/* Values of index.gc_deletes. */
struct sim_gc_deletes {
    const char *text; /* JSON */
    int64_t us;       /* SIM_GC_DEFAULT: 60 s of the monotonic clock; SIM_GC_AT_ONCE: nothing */
};
enum { SIM_GC_DELETES = 6, SIM_GC_DEFAULT = -1, SIM_GC_AT_ONCE = -2 };
extern const struct sim_gc_deletes sim_gc_deletes[SIM_GC_DELETES];

#define SIM_TOMBSTONE_US ((uint64_t)60 * 1000000)

/*
 * A document: values by field, in the order in which they were written. Field 0 is text, SIM_PATH a
 * path, the others are numbers.
 */
struct sim_source {
    int count;
    int field[SIM_FIELDS];
    int value[SIM_FIELDS];
    char path[SIM_PATH_MAX]; /* of the field SIM_PATH */
};

/* What an item does; the names follow the requests, not the product's enums. */
enum sim_action { SIM_INDEX, SIM_CREATE, SIM_UPDATE, SIM_DELETE };
enum sim_versioning { SIM_INTERNAL, SIM_EXTERNAL, SIM_EXTERNAL_GTE, SIM_FORCE };
enum sim_update { SIM_BY_DOC, SIM_SCRIPT_ADD, SIM_SCRIPT_DELETE, SIM_SCRIPT_NONE };

struct sim_item {
    enum sim_action action;
    bool five;            /* the dialect of 5.x; items of one write may differ */
    char index[SIM_NAME]; /* or an alias */
    char type[SIM_NAME];  /* empty: typeless */
    char id[SIM_NAME];
    char routing[SIM_NAME];
    struct sim_source source;
    bool broken; /* the source does not fit */
    enum sim_versioning versioning;
    int64_t version;   /* -1: none demanded */
    int64_t if_seq_no; /* -1: none demanded */
    enum sim_update update;
    int by;      /* of SIM_SCRIPT_ADD */
    bool upsert; /* `source` is the upsert; of SIM_BY_DOC with doc_as_upsert it is the doc */
    bool scripted_upsert;
    bool detect_noop;
};

enum sim_outcome {
    SIM_CREATED,
    SIM_UPDATED,
    SIM_DELETED,
    SIM_NOT_FOUND,
    SIM_NOOP,
    SIM_CONFLICT,
    SIM_MISSING, /* document missing */
    SIM_UNFIT,   /* mapper parsing */
    SIM_NO_INDEX,
    SIM_BAD_INDEX_NAME,
    SIM_CLOSED,
    SIM_NO_WRITE_INDEX,
    SIM_EXHAUSTED, /* no higher version */
};

/* What must come of an item. */
struct sim_result {
    enum sim_outcome outcome;
    int64_t version; /* new, or on a conflict the present one; -1: not compared */
    int64_t seq_no;
};

enum sim_kind {
    SIM_WRITE,
    SIM_CREATE_INDEX,
    SIM_DELETE_INDEX,
    SIM_RENAME,
    SIM_SET_STATE,
    SIM_PUT_MAPPING,
    SIM_PUT_SETTINGS,
    SIM_UPDATE_ALIASES,
    SIM_PUT_TEMPLATE,
    SIM_DELETE_TEMPLATE,
    SIM_PUT_SCRIPT,
    SIM_DELETE_SCRIPT,
    SIM_PUT_FILE_SCRIPTS,
    SIM_PUT_CLUSTER_SETTINGS,
    SIM_ZONES,
    SIM_LIMITS,
    SIM_TICK,
    SIM_RESTART,
    SIM_KIND_COUNT
};

struct sim_alias_action {
    bool add;
    bool write; /* is_write_index */
    char index[SIM_NAME];
    char alias[SIM_NAME];
};

struct sim_op {
    enum sim_kind kind;
    bool five; /* the dialect of 5.x */
    bool atomic;
    int item_count;
    struct sim_item items[SIM_ITEMS];
    char name[SIM_NAME]; /* of an index, template or script */
    char from[SIM_PATH_MAX], to[SIM_PATH_MAX];
    int64_t if_seq_no; /* of a rename; -1: none demanded */
    int gc_deletes;    /* of SIM_PUT_SETTINGS: one of sim_gc_deletes; -1: not named */
    int number;        /* shards, replicas, a field, a template's order */
    bool flag;         /* close */
    int action_count;
    struct sim_alias_action actions[SIM_ACTIONS];
    int request;   /* of a write: its name, from 1; 0: none */
    uint64_t hash; /* of a named write; a repetition has that of the first one */
};

/* What must come of an operation. */
struct sim_expected {
    bool refused;             /* the command as a whole */
    bool rolled_back;         /* an atomic write */
    bool document, directory; /* of a rename: something existed at the path, or below it */
    int64_t seq_no;           /* of a rename */
    struct sim_result results[SIM_ITEMS];
};

struct model_version {
    uint64_t ts;
    int64_t version;
    int64_t seq_no;
    bool deleted;
    struct sim_source source;
};

struct model_doc {
    char type[SIM_NAME];
    char id[SIM_NAME];
    int count;
    int capacity;
    struct model_version *versions; /* oldest first */
};

struct model_index {
    char name[SIM_NAME];
    bool five;
    bool tree; /* its path field was there from the first on */
    bool closed;
    uint64_t created;
    uint64_t deleted; /* SIM_NEVER while it is there */
    int shards;
    int replicas;
    int64_t gc_deletes_us; /* or SIM_GC_DEFAULT, SIM_GC_AT_ONCE */
    uint64_t forgotten;    /* versions of deletes before it did not count when gc_deletes last changed */
    unsigned fields; /* mapped ones, a bit each */
    bool alias[SIM_ALIASES];
    bool alias_writes[SIM_ALIASES];
    int64_t next_seq_no;
    int doc_count;
    int doc_capacity;
    struct model_doc *docs;
};

struct model_template {
    bool there;
    int order;
    int shards;
};

enum { SIM_REQUESTS = 4 };

/* The last write with a name. */
struct model_request {
    struct sim_op op;
    struct sim_expected expected;
    bool recorded; /* it did something, so that a repetition does nothing */
    uint64_t ts;
};

struct model {
    int index_count;
    int index_capacity;
    struct model_index *indices; /* every one there ever was */
    struct model_template templates[2];
    bool scripts[2];
    /* the timestamp of 60 s ago, as maintenance has said: versions of documents deleted before count no longer */
    uint64_t forgotten;
    struct model_request requests[SIM_REQUESTS]; /* by name */
    uint64_t outcomes_from;                      /* outcomes of requests before that count no longer */
};

void model_init(struct model *model);
void model_deinit(struct model *model);

/* Applies an operation at a timestamp and says what must come of it. */
void model_apply(struct model *model, const struct sim_op *op, uint64_t ts, struct sim_expected *ret_expected);

/*
 * Returns: the highest sequence number of the documents at a path in an index; -1: there is no
 * document.
 */
int64_t model_seq_no_at(const struct model *model, const char *name, const char *path);

/* Returns: the index of that name as of `ts`, or NULL. */
struct model_index *model_index_at(const struct model *model, const char *name, uint64_t ts);
/* Returns: a document's version as of `ts`, which may be a deletion; or NULL. */
const struct model_version *model_version_at(const struct model_doc *doc, uint64_t ts);
/* Live documents of an index as of `ts`. */
int model_count_at(const struct model_index *index, uint64_t ts);

/* Returns: whether a path is the directory, or is below it. */
bool model_within(const char *path, const char *directory);
/*
 * Returns: whether the name of an index asks for a tree, where the index is created by a request of
 * its own.
 */
bool model_is_tree_name(const char *name);

/* Appends the JSON of a source to `text`, which holds `size` bytes. */
void model_print(const struct sim_source *source, char *text, size_t size);
/* Returns: the value of a field, or -1. */
int model_value(const struct sim_source *source, int field);

/* Names that both the model and the generator know. */
extern const char *const sim_field_names[SIM_FIELDS];
extern const char *const sim_alias_names[SIM_ALIASES];
extern const char *const sim_words[16];

#endif
