/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: everything that can change the state, as data.
 *
 * Ownership. A command is made by command_new() with an arena of its own, in which its inputs live. From
 * journal_submit() (or core_step() in tests) until it comes back on `effects->completed` it belongs to the core,
 * which fills the outputs and may allocate from the command's arena; afterwards it is the submitter's again. The
 * inputs are never changed by the core.
 *
 * Inputs have a form as bytes (command_codec.h). The numbers of the enums among them are part of it: further ones come behind.
 */
#ifndef TL_CORE_COMMAND_H
#define TL_CORE_COMMAND_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/types.h"
#include "json/dialect.h"
#include "core/step/limits.h"
#include "script/script.h"

struct catalog_options;
struct overlay;
struct json_doc;

enum command_type {
#define X(symbol, name, code, member, flags, turns) COMMAND_##symbol,
#include "core/step/commands.def"
#undef X
    COMMAND_TYPE_COUNT
};

/* What a command may do, for all who treat some commands otherwise than others. They ask the row; nobody lists types. */
enum command_flags {
    COMMAND_ADDS_DATA = 1 << 0,  /* refused while the disk is full */
    COMMAND_WRITES_NOTHING = 1 << 1, /* writes nothing, so it runs whatever the disk says */
    COMMAND_ALWAYS_ADMITTED = 1 << 2,   /* ends, gives back or keeps what somebody holds: must get through where all is full */
    COMMAND_OWNED = 1 << 3,      /* `terms` count */
    COMMAND_DDL =
        1 << 4, /* other people's locks on indices may stand against it, its terms' session passes its own */
    COMMAND_WHOLE_INDEX = 1 << 5, /* such a change concerns all that is in the index */
    COMMAND_TXN_BOUNDARY = 1 << 6,    /* begins or ends transactions: of a query transaction nothing must be durable */
    COMMAND_UNLOGGED = 1 << 7,       /* is no step and never in the log: core_inspect() */
};

/* --- Who asks ----------------------------------------------------------------------------------------------------- */

/* On whose behalf a command with an owner runs (COMMAND_OWNED in its row), and how long it waits for locks. */
struct command_owner {
    struct slice session;     /* text id: whose locks it passes; of a transaction: whose it must be; empty: not said */
    struct slice transaction; /* text id; empty: none */
    tl_ts fencing_token;      /* of locks that must be held now on all that it changes; 0: none named */
    uint64_t timeout_us;      /* how long a conflicting lock is waited for; 0: not at all */
};

/* --- Documents ---------------------------------------------------------------------------------------------------- */

enum write_op { WRITE_INDEX, WRITE_CREATE, WRITE_UPDATE, WRITE_DELETE, WRITE_OP_COUNT };

enum version_type {
    VERSION_INTERNAL,
    VERSION_EXTERNAL,     /* must be higher than the current */
    VERSION_EXTERNAL_GTE, /* higher or equal */
    VERSION_FORCE,        /* 5.x: whatever is given */
    VERSION_TYPE_COUNT
};

#define VERSION_ANY (-1) /* no version asked for */
#define SEQ_NO_ANY (-2)  /* no if_seq_no asked for */

/* What `_update` does to the document. Slices with data NULL are absent; JSON ones hold JSON objects. */
struct write_update {
    struct slice doc;
    struct slice upsert;
    struct slice script_source; /* inline script */
    struct slice script_id;     /* stored script */
    struct slice script_file;   /* file script (5.x) */
    struct slice script_lang;   /* data NULL: none named */
    struct slice script_params; /* JSON object */
    uint64_t script_steps;      /* that a run may take before it is given up as long; 0: what the core allows */
    bool scripted_upsert;
    bool doc_as_upsert;
    bool detect_noop; /* Elasticsearch's default is true */
    bool want_source; /* result.source is wanted */
    bool single;        /* a call of its own, not one of a bulk: 5.x then lets no upsert name a version */
};

struct write_item {
    enum write_op op;
    enum version_type version_type;
    enum dialect dialect; /* of its rules and its reply; items of one command may differ */
    bool require_alias;
    bool id_generated;  /* the server made the id: no existing document to look up */
    struct slice index; /* index or alias as the client named it */
    struct slice type;  /* empty: typeless */
    struct slice id;
    struct slice routing;    /* empty: none */
    struct slice source;     /* WRITE_INDEX, WRITE_CREATE: JSON bytes of an object, kept byte for byte */
    struct slice lease;      /* session that the document lives with; empty: none */
    struct slice only_session;    /* WRITE_DELETE of the core's own: only what lives with this session; empty: any */
    int64_t version;         /* VERSION_ANY, or what the client demands */
    int64_t if_seq_no;       /* SEQ_NO_ANY, or what the client demands */
    int64_t if_primary_term; /* 0: not given */
    const struct write_update *update; /* WRITE_UPDATE only */
    const struct json_doc *parsed; /* of source, when the submitter has parsed it already (json/json.h); else NULL */
    struct prefetch
        *prefetch; /* what the submitter found there (core/documents/prefetch.h), or NULL; the command's, freed with it */
};

enum write_outcome {
    WRITE_CREATED,
    WRITE_UPDATED,
    WRITE_DELETED,
    WRITE_NOT_FOUND, /* delete of what is not there: not a failure */
    WRITE_NOOP,
    WRITE_FAILED, /* `problem` says why */
    WRITE_OUTCOME_COUNT
};

/* Why a version conflict. */
enum conflict_kind {
    CONFLICT_NONE,
    CONFLICT_EXISTS,       /* create of an existing document */
    CONFLICT_VERSION,      /* internal version differs */
    CONFLICT_EXTERNAL,     /* current is higher or equal (external) */
    CONFLICT_EXTERNAL_GTE, /* current is higher (external_gte) */
    CONFLICT_SEQ_NO,
    CONFLICT_MISSING, /* seq_no demanded of a document that does not exist */
    CONFLICT_KIND_COUNT
};

/*
 * What the failed items of a write are told of who holds their locks, all together; then each is told only that its lock is held. So the core
 * does for a command, and who cuts a request into several does for the request.
 */
#define WRITE_EXPLAINED_BYTES_MAX ((size_t)4 << 20)
#define WRITE_LOCK_IS_HELD "the lock is held by another owner; GET /_lock lists the holders"

struct write_result {
    enum write_outcome outcome;
    enum conflict_kind conflict; /* with WRITE_FAILED and PROBLEM_VERSION_CONFLICT */
    struct slice index;          /* concrete index, or the name as given when there is none */
    struct slice type;           /* as stored: "_doc" or the index's type */
    struct slice index_uuid;
    uint32_t shard_count; /* of the index, for the shard number in replies */
    int64_t version;      /* new; on conflict the current; -1 unknown */
    int64_t seq_no;       /* new; on conflict the current; -2 unknown */
    struct slice source;  /* of an update whose source was wanted */
    bool script_long;     /* with WRITE_FAILED: the script took more than write_update.script_steps */
    bool script_exhausted;    /* with WRITE_FAILED: it wanted more than the core allows */
    bool postponed;       /* with WRITE_FAILED: not begun, to be submitted again; see write_command.postponed_count */
    struct slice routing; /* of the document after the change; empty: none */
    struct problem problem;
};

struct write_command {
    struct write_item *items;
    size_t item_count;
    bool atomic;  /* all or none */
    bool cleanup; /* the core's own, when a session has ended: blocks and closed indices do not stop it */
    struct write_result *results; /* out: item_count of them, in the command's arena */
    bool rolled_back;             /* out: atomic, and at least one item failed */
    /*
     * Out: items that were not begun, since the scripts before them took what those of one command may (update.h). At least one was begun. Those that
     * were not are to be submitted again, in their order, as a command of their own, so that other commands have their turn in between.
     */
    size_t postponed_count;
    uint64_t script_steps; /* out: that its scripts took, with those to find out where documents will lie */
};

/* --- Catalog ------------------------------------------------------------------------------------------------------ */

struct index_command {
    struct slice name;      /* concrete; wildcards and lists are resolved by the api */
    struct slice body;      /* JSON object of create, mapping or settings; data NULL: none */
    struct slice type;      /* MAPPING_PUT in typed form, or empty */
    struct slice uuid;      /* INDEX_CREATE: generated by the submitter, 22 characters */
    bool include_type_name; /* the client says that types are named: the body of a create has typed mappings */
    bool close;             /* INDEX_STATE */
    bool preserve_existing; /* SETTINGS_PUT */
};

enum alias_op { ALIAS_ADD, ALIAS_REMOVE, ALIAS_REMOVE_INDEX, ALIAS_OP_COUNT };

struct alias_action {
    enum alias_op op;
    struct slice index; /* concrete */
    struct slice alias;
    struct slice body; /* JSON object: filter, routing and the like; data NULL: none */
};

struct aliases_command {
    struct alias_action *actions;
    size_t action_count;
};

/* A named JSON object: template, stored script, cluster settings, user, role, API key. CLUSTER_UUID: `name` is the uuid. ZONES: `body` is the database. */
struct object_command {
    struct slice name;
    struct slice body;
    struct slice lang; /* stored script by /_scripts/{lang}/{id} (5.x), or empty */
    bool create;       /* refuse to overwrite */
    bool compiles;     /* stored script: refuse what does not compile for `context` */
    enum script_context context;
    bool existed; /* out, SECURITY_PUT, SECURITY_CHANGE: there was one */
};

struct file_script {
    struct slice name; /* "judge-lock" */
    struct slice lang; /* by its extension: groovy, painless */
    struct slice source;
};

struct file_scripts_command {
    struct file_script *scripts;
    size_t script_count;
};

/* --- Sessions, locks, transactions -------------------------------------------------------------------------------- */

struct session_command {
    struct slice id; /* SESSION_OPEN: generated by the submitter */
    struct slice name;
    uint64_t ttl_us;
    struct write_item *on_expire; /* bulk actions to run when the holder dies */
    size_t on_expire_count;
    uint64_t attachment; /* SESSION_ATTACH, SESSION_DETACH: which connection, a number of the submitter's */
    bool force;       /* SESSION_CLOSE: as if the holder had died; `id` may be its public number then (out: the id) */
    tl_ts expires_at; /* out */
    uint64_t number;  /* out, SESSION_OPEN: its public number */
};

enum lock_mode { LOCK_NONE, LOCK_S, LOCK_U, LOCK_X, LOCK_MODE_COUNT }; /* shared, update, exclusive: README-locks.md */

/* What a lock is on. Nothing named: everything; index: all of it; and path: a subtree; and id: a document. */
struct lock_target {
    enum lock_mode mode; /* LOCK_S, LOCK_U or LOCK_X */
    struct slice index;
    struct slice path; /* data NULL: none */
    struct slice type; /* of a document, where types are used; empty: the index's own */
    struct slice id;   /* data NULL: none */

    /* Of a read in a transaction only. */
    const struct catalog_options *expression; /* `index` is an expression, to be resolved with these; NULL: one name */
    bool script;                              /* `index` is the name of a stored script */
};

struct lock_command {
    struct lock_target *targets; /* UNLOCK with none: all of the owner's */
    size_t target_count;
    tl_ts fencing_token; /* out */
    uint64_t waited_us;  /* out */
    size_t queue_position;  /* out: how many requests were ahead when it began to wait */
    bool *
        index_missing; /* out, LOCK: of each target, whether there is nothing by the name of its index; NULL: none is so */
    size_t released; /* out, UNLOCK */
};

enum txn_mode { TXN_UPDATE, TXN_QUERY, TXN_MODE_COUNT };

struct txn_command {
    struct slice id; /* TXN_BEGIN: generated by the submitter */
    enum txn_mode mode;
    tl_ts read_ts;    /* TXN_QUERY: 0 for the latest; out: what it reads at */
    uint64_t idle_us; /* TXN_BEGIN: after so long without a request it is rolled back */
    struct slice
        retry_of; /* TXN_BEGIN: what was rolled back and is tried again, its first try or any later; empty: nothing */
    bool force;   /* TXN_ROLLBACK: somebody else's; `id` may be its public number then */
    bool
        of_host; /* TXN_BEGIN: its host has it for a request; it ends with the life of that (README-locks.md, "Transactions") */
    uint64_t number;  /* out, TXN_BEGIN: its public number */
    tl_ts commit_ts;  /* out, TXN_COMMIT */
    uint64_t changes; /* out, TXN_COMMIT */
    struct overlay
        *retired_overlay; /* out, TXN_COMMIT: what it had written, for command_free(): that takes a while, and the core has none */
};

/*
 * Locks for a read inside a transaction, and what to read with afterwards. `overlay` (out) carries a reference for
 * the submitter, released by core_overlay_unref(); NULL when the transaction has written nothing.
 */
struct txn_lock_command {
    struct lock_target *targets;
    size_t target_count;
    tl_ts read_ts;           /* out: the view's timestamp */
    struct overlay *overlay; /* out */
    enum txn_mode mode;      /* out */
};

/* Numbers of requests, and of attachments, are a host's: it stands in the upper 16 bits, what it has counted below. */
#define HOST_SHIFT 48

static inline uint64_t host_of_number(uint64_t number)
{
    return number >> HOST_SHIFT;
}

/* Paths begin with '/', and have no empty names, "." or "..", but for one '/' at the end. */
struct rename_command {
    struct slice index; /* index or alias as the client named it */
    struct slice from;
    struct slice to;
    int64_t if_seq_no;       /* SEQ_NO_ANY, or what the document at `from` must have */
    int64_t if_primary_term; /* 0: not given */
    /* At which nothing lay in a view of then, as the submitter has seen; TL_TS_NONE: he has not looked. No part of the command's bytes. */
    tl_ts nothing_from, nothing_to;
    bool directory; /* out: something lies below it */
    bool document;  /* out: something lies at it */
    int64_t seq_no; /* out: of the change */
};

/* Paths that are to be watched, in a tree; anything else is passed over. A view of the command's timestamp, or a later one, may be looked at. */
struct places_command {
    struct slice index; /* index or alias */
    struct slice paths[2];
    bool empty[2]; /* out: it is known that nothing lies there, so nobody need look */
};

struct cancel_command {
    uint64_t
        request; /* number of the command to cancel; unknown ones are ignored; with a count of 0: all of its host, which stops */
};

/*
 * What is going on, as JSON, for GET /_lock, /_session, /_transaction and their _cat forms. Readers must not look into
 * the core from other threads, so they ask it in the order of all commands; but it is no step (core_inspect()). The shapes are in
 * README-locks.md, "Seeing it".
 */
enum status_what {
    STATUS_LOCKS,    /* the tree of resources with holders and waiters in order, in pieces */
    STATUS_SESSIONS, /* all, or with `id` one in detail, in pieces; PROBLEM_SESSION_MISSING */
    STATUS_TRANSACTIONS, /* all, in pieces, or with `id` one, ended ones of the last hour too; PROBLEM_TRANSACTION_MISSING */
    STATUS_LOCK_EVENTS,      /* the last deadlocks and expiries */
    STATUS_OVERVIEW, /* of the tree as much as a page shows, what is waited for first; in one step of a bounded size */
    STATUS_WHAT_COUNT
};

/* A resource that is held or awaited, in pieces of JSON; a crowded one is several rows with one key. */
struct status_row {
    struct slice key;     /* rows that are sorted by it stand in the order of the tree */
    struct slice name;    /* its members, without braces; empty: everything */
    struct slice holders; /* objects with commas between, in order; or nothing */
    struct slice waiters;
    bool truncated; /* STATUS_OVERVIEW: there may be more of them than are told */
};

/* A resource with more holders and waiters than one piece tells; it is asked for by itself. */
struct status_overflow {
    uint32_t hash;
    uint32_t number; /* 0: none */
    size_t from;     /* the first to be told */
};

struct status_command {
    enum status_what what;
    struct slice id;      /* of one session or transaction; empty: all */
    struct slice index;   /* STATUS_LOCKS: only what lies in this index; empty: all */
    struct slice path;    /* and in or above this directory; data NULL: all */
    struct slice session; /* and is held or awaited by this session or its transactions; empty: all */
    struct slice
        body; /* out: a JSON object, in the command's arena; STATUS_LOCKS: none; of what comes in pieces see below */

    /*
     * STATUS_LOCKS: the first piece is asked for with `place` and `crowd` 0; the next with the `place` that came back, until
     * that is 0; then each of the `crowds` that came back, as `crowd`, until its number is 0. All of the out in the arena.
     */
    uint64_t cursor;            /* in, out */
    struct status_overflow overflow; /* in, out */
    struct status_row *rows;   /* out */
    size_t row_count;
    struct status_overflow *overflows; /* out */
    size_t overflow_count;
    size_t work; /* out: what it took, as it is counted there */

    /*
     * STATUS_SESSIONS, and STATUS_TRANSACTIONS without `id`: the first piece is asked for with `place` 0; the next with the `place`
     * that came back, until that is 0. `rest` has objects with commas between, or nothing: sessions, transactions, or the
     * locks of the one session. `body` is of the first piece of one session, an object without its end, to which "locks" belongs,
     * and of the last piece of all sessions: the array of what is kept.
     */
    struct slice page; /* out */

    /*
     * STATUS_LOCKS of a moment of the past: what is there is asked for as ever, and told where it was there at `as_of`; then, with `place` and crowds at
     * their ends, what has gone since, by `past` from 0 on, which comes back as where to go on, until it is 0. Rows with one key belong
     * together, and what is in both is the same. `past_from` comes back: from when on all is known.
     */
    tl_ts as_of;     /* 0: now */
    bool of_history;    /* this piece is one of what has gone since */
    uint64_t history_cursor;   /* in, out */
    tl_ts history_from; /* out */

    size_t rows_max; /* STATUS_OVERVIEW: rows at most; `rows` come in no order of the tree */
};

/* Removing for good what nobody can see any more. core_propose_maintenance() makes it; README.md, "Upkeep". */
struct maintain_command {
    tl_ts history_low;       /* of history: of deleted indices goes what was there before */
    tl_ts tombstones;    /* versions of documents deleted before count no longer; ... */
    tl_ts outcomes;      /* ... outcomes of transactions that ended before are told no longer */
    size_t keys_max;     /* at most so many, `stale` not counted */
    struct slice *stale; /* keys of chunks of entries that no document names any more, nor ever will */
    size_t stale_count;
    size_t scanned;  /* the proposer's own: what looking for those has cost him, as so many keys */
    size_t removed; /* out: keys, and records of the kind that could wait until now */
};

/* The feed as it is to be from now on. */
struct feed_command {
    bool off;
    tl_ts cut; /* what was changed up to there is forgotten; 0: nothing is */
};

/*
 * What had run out by now does so. Waits by command->clock; leases of sessions and idle times of transactions by `heard`, since
 * who could prolong them may have asked for it in time, and not have been read yet.
 */
struct tick_command {
    /* Of the clock: what was sent to the server before it has been submitted before this. At most `clock` counts. */
    uint64_t barrier_clock;
};

/* What the core goes by from now on. */
struct limits_command {
    struct core_limits limits;
};

struct mark_command {
    tl_ts ceiling;        /* whoever opens the store again begins above it, and above the command's own timestamp */
    struct slice payload; /* the host's own, for core_ts_ceiling_payload() */
    uint64_t chain;    /* core_chain() as the step began, for who replays it to compare; 0: it is not said */
};

/* RESTART, MACHINE_LOST. */
struct restart_command {
    bool single_step; /* of a version in which all was one step; nobody says it any more */
    bool resubmit;  /* out, RESTART: to be submitted again, before anything else */
};

struct tried_command {
    struct slice session; /* whose it is, or was */
    uint64_t deferred;        /* number of what is kept; 0: the session's own action */
    uint64_t action;      /* which of the session's, from 0; of what is kept 0 */
};

struct skip_command {
    uint64_t position; /* of the entry in the log, not 0 */
};

struct aside_command {
    uint64_t number; /* of what is kept */
    bool retry;      /* it is tried again; else it goes */
};

/* A host as it introduces itself. README.md, "Hosts". */
struct join_command {
    struct slice name;
    struct slice group;
    struct slice address;
    struct slice build;
    uint64_t life;             /* not 0 */
    struct core_limits limits; /* that it was started with, which are to be the cluster's */
    uint64_t number;           /* out: of the host */
};

struct gone_command {
    struct slice name;
    uint64_t life; /* the one that is over; another that began since goes on */
    bool forget;   /* and nobody asks for it any more */
};

struct heartbeat_command {
    uint64_t barrier_clock;    /* of the clock: what was sent to this host before it has been submitted before this */
    tl_ts low;         /* its readers look no further back, now and from now on */
    uint64_t position; /* of the newest entry that it has applied ... */
    uint64_t chain;    /* ... and core_chain() behind that */
};

/* --- The command -------------------------------------------------------------------------------------------------- */

/*
 * A submitter of commands, one after another, that may leave before a command of its has completed: journal_cancel_waiter() (journal.h). `number` is
 * `request` of the command that it waits for; 0: none; COMMAND_WAITER_LEFT: it has left, for good.
 */
struct command_waiter {
    _Atomic uint64_t number;
};
#define COMMAND_WAITER_LEFT UINT64_MAX

struct command {
    enum command_type type;
    enum dialect dialect;
    uint64_t request;   /* rising number given by the journal; names the command in CANCEL */
    tl_ts ts;           /* given by the journal; on completion the timestamp at which it took effect */
    uint64_t clock;     /* given by the journal: what durations are measured by, in us; README.md, "Two times" */
    struct arena arena; /* inputs and results */
    struct command_owner owner;
    union {
        struct write_command write;
        struct index_command index;
        struct aliases_command aliases;
        struct object_command object;
        struct file_scripts_command file_scripts;
        struct session_command session;
        struct lock_command lock;
        struct txn_command txn;
        struct txn_lock_command txn_lock;
        struct rename_command rename;
        struct places_command places;
        struct cancel_command cancel;
        struct status_command status;
        struct maintain_command maintain;
        struct feed_command feed;
        struct tick_command tick;
        struct limits_command limits;
        struct mark_command mark;
        struct restart_command restart;
        struct tried_command tried;
        struct skip_command skip;
        struct aside_command aside;
        struct join_command join;
        struct gone_command gone;
        struct heartbeat_command heartbeat;
    };
    struct problem problem; /* out: PROBLEM_NONE when the command as a whole succeeded */
    struct list link;       /* the journal's and the core's */

    /* Called by the journal once the result is durable; from then on the command is the submitter's again. */
    void (*on_done)(struct command *command);
    void *context;                 /* the submitter's */
    struct command_waiter *waiter; /* the submitter's, until `on_done` is called; NULL: it does not leave */
};

/* Owns: the caller; command_free(). NULL is fine for free. */
struct command *command_new(enum command_type type, enum dialect dialect);
void command_free(struct command *command);
const char *command_name(enum command_type type);
/* Returns: whether the row of the type has any of the flags. */
bool command_is(enum command_type type, unsigned flags);

#endif
