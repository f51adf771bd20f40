/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: every change of the state, as data.
 *
 * Ownership. command_new() makes a command with its own arena, which holds its inputs. From
 * journal_submit() (core_step() in tests) until the command is on `effects->completed` the core
 * owns it. The core fills the outputs and may allocate from the command's arena, but never changes
 * the inputs. Afterwards the submitter owns it again.
 *
 * Inputs have a byte form (command_codec.h). The numeric values of enums used by inputs are part of
 * that form: new values are appended.
 */
#ifndef TL_CORE_COMMAND_H
#define TL_CORE_COMMAND_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/types.h"
#include "json/dialect.h"
#include "core/command/limits.h"
#include "script/script.h"

struct catalog_options;
struct overlay;
struct json_doc;

enum command_type {
#define X(symbol, name, code, member, flags, turns) COMMAND_##symbol,
#include "core/command/commands.def"
#undef X
    COMMAND_TYPE_COUNT
};

/* Properties of a command type. Callers test these flags; no caller enumerates types. */
enum command_flags {
    COMMAND_ADDS_DATA = 1 << 0,      /* refused while the disk is full */
    COMMAND_WRITES_NOTHING = 1 << 1, /* writes nothing, so it runs even while the disk is full */
    /* Ends, releases or extends what an owner holds: not cancelled when its submitter has left */
    COMMAND_ALWAYS_ADMITTED = 1 << 2,
    COMMAND_OWNED = 1 << 3,       /* `owner` applies */
    COMMAND_DDL = 1 << 4,         /* waits for other owners' locks on the index, except those of its own session */
    COMMAND_WHOLE_INDEX = 1 << 5, /* DDL that affects every document of the index */
    COMMAND_UNLOGGED = 1 << 6,    /* is not a step and is never logged: core_inspect() */
};

/* --- Owner -------------------------------------------------------------------------------------------------------- */

/* The owner for which a command runs (COMMAND_OWNED), and how long it waits for locks. */
struct command_owner {
    /* Text id: its locks do not block the command; `transaction` must belong to it; empty: none */
    struct slice session;
    struct slice transaction; /* text id; empty: none */
    /* Of locks that must be held on everything the command changes; 0: not checked */
    tl_ts fencing_token;
    uint64_t timeout_us; /* how long to wait for conflicting locks; 0: not at all */
};

/* --- Documents ---------------------------------------------------------------------------------------------------- */

enum write_op { WRITE_INDEX, WRITE_CREATE, WRITE_UPDATE, WRITE_DELETE, WRITE_OP_COUNT };

enum version_type {
    VERSION_INTERNAL,
    VERSION_EXTERNAL,     /* must be higher than the current version */
    VERSION_EXTERNAL_GTE, /* must not be lower than the current version */
    VERSION_FORCE,        /* 5.x: any version */
    VERSION_TYPE_COUNT
};

#define VERSION_ANY (-1) /* no version required */
#define SEQ_NO_ANY (-2)  /* no if_seq_no required */

enum update_op { UPDATE_INDEX, UPDATE_CREATE, UPDATE_DELETE, UPDATE_NOOP, UPDATE_OP_COUNT };

/*
 * What the script or the merge of an update returned outside of the core, which then does not run it: valid for the
 * document that it read, and for no other (update.h).
 */
struct update_ready {
    bool given;
    enum update_op op;
    struct slice source;     /* as in struct update */
    tl_ts read_ts;           /* doc.ts of the document; 0: there was none */
    int64_t version, seq_no; /* of that document, for the text of a conflict; -1, -2: there was none */
};

/* Arguments of `_update`. Slices with data NULL are absent. */
struct write_update {
    struct slice doc;           /* JSON object */
    struct slice upsert;        /* JSON object */
    struct slice script_source; /* inline script */
    struct slice script_id;     /* stored script */
    struct slice script_file;   /* file script (5.x) */
    struct slice script_lang;   /* data NULL: not given */
    struct slice script_params; /* JSON object */
    /*
     * Limit of one run, above which the item fails with script_long; 0: the core's limit. A grant below
     * UPDATE_COMMAND_STEPS_MAX, also to an update without a script, says that the submitter can run it: so it fails
     * where it reads much (update.h).
     */
    uint64_t script_steps;
    /*
     * An item that fails with script_long is postponed, and so are those after it: the submitter runs its update and
     * sends them again, with `ready`. Not in an atomic write.
     */
    bool script_postpones;
    struct update_ready ready;
    bool scripted_upsert;
    bool doc_as_upsert;
    bool detect_noop; /* default in Elasticsearch: true */
    bool want_source; /* fill result.source */
    /* A request of one item, not part of a bulk: 5.x then forbids a version in an upsert */
    bool single;
};

struct write_item {
    enum write_op op;
    enum version_type version_type;
    enum dialect dialect; /* rules and reply format; may differ between items of one command */
    bool require_alias;
    bool id_generated;  /* the server generated the id, so no document with it exists */
    struct slice index; /* index or alias as the client gave it */
    struct slice type;  /* empty: typeless */
    struct slice id;
    struct slice routing; /* empty: none */
    struct slice source;  /* WRITE_INDEX, WRITE_CREATE: JSON object, stored byte for byte */
    struct slice lease;   /* session that owns the ephemeral document; empty: not ephemeral */
    /* WRITE_DELETE made by the core: only a document owned by this session; empty: any */
    struct slice only_session;
    int64_t version;                   /* VERSION_ANY, or the required version */
    int64_t if_seq_no;                 /* SEQ_NO_ANY, or the required sequence number */
    int64_t if_primary_term;           /* 0: not given */
    const struct write_update *update; /* WRITE_UPDATE only */
    /* `source`, or that of update->ready, as parsed by the submitter (json/json.h); NULL: not parsed */
    const struct json_doc *parsed;
    /*
     * The submitter's optimistic read (core/documents/prefetch.h), freed with the command; NULL:
     * none
     */
    struct prefetch *prefetch;
};

enum write_outcome {
    WRITE_CREATED,
    WRITE_UPDATED,
    WRITE_DELETED,
    WRITE_NOT_FOUND, /* delete of a missing document: not a failure */
    WRITE_NOOP,
    WRITE_FAILED, /* `problem` has the reason */
    WRITE_OUTCOME_COUNT
};

/* Cause of a version conflict. */
enum conflict_kind {
    CONFLICT_NONE,
    CONFLICT_EXISTS,       /* create of an existing document */
    CONFLICT_VERSION,      /* internal version differs from the required one */
    CONFLICT_EXTERNAL,     /* external: the current version is higher or equal */
    CONFLICT_EXTERNAL_GTE, /* external_gte: the current version is higher */
    CONFLICT_SEQ_NO,
    CONFLICT_MISSING, /* if_seq_no given, but the document does not exist */
    CONFLICT_KIND_COUNT
};

/*
 * Limit for the descriptions of conflicting lock holders in all failed items of one request. Beyond
 * it an item has only WRITE_LOCK_IS_HELD. The core applies the limit per command; a caller that
 * splits a request applies it per request.
 */
#define WRITE_EXPLAINED_BYTES_MAX ((size_t)4 << 20)
#define WRITE_LOCK_IS_HELD "the lock is held by another owner; GET /_lock lists the holders"

/*
 * Limits for the bytes of results: sources that updates return, and texts of problems. A client names either with
 * a few bytes. Beyond the first no further item of a command is started; an atomic write exceeding the second is
 * refused as a whole. Not for commands before version 15.
 */
#define WRITE_RESULT_BYTES_MAX ((size_t)4 << 20)
#define WRITE_ATOMIC_RESULT_BYTES_MAX ((size_t)16 << 20)

struct write_result {
    enum write_outcome outcome;
    enum conflict_kind conflict; /* with WRITE_FAILED and PROBLEM_VERSION_CONFLICT */
    struct slice index;          /* concrete index, or the given name if no such index exists */
    struct slice type;           /* as stored: "_doc" or the type of the index */
    struct slice index_uuid;
    uint32_t shard_count;  /* of the index, to compute the shard number in replies */
    int64_t version;       /* new version; on conflict the current one; -1: unknown */
    int64_t seq_no;        /* new sequence number; on conflict the current one; -2: unknown */
    struct slice source;   /* of an update with `want_source` */
    /*
     * WRITE_FAILED: the script exceeded write_update.script_steps, the update reads so much that its submitter runs it
     * (update_is_left()), or `ready` is of another version of the document
     */
    bool script_long;
    /* With script_long: it reads too much, and was not begun. Read by the submitter: a checkpoint does not have it */
    bool update_large;
    /*
     * WRITE_FAILED: the script exceeded the core's limit. Read in the step that sets it, by cleanup
     * actions, whose results are never kept: a checkpoint does not have it.
     */
    bool script_exhausted;
    /* WRITE_FAILED: of a cleanup action that would add to the catalog while the memory is full. Read and kept alike */
    bool lacks_memory;
    /* WRITE_FAILED: not started; to be resubmitted, see write_command.postponed_count */
    bool postponed;
    struct slice routing; /* of the document after the change; empty: none */
    /* Of a repeated request: the id that was generated for the first one; data NULL: the item's id */
    struct slice id;
    struct problem problem;
};

/*
 * A client's name for a request, by which a repetition of it is recognized: README.md, "Repeated
 * requests".
 */
struct write_request {
    struct slice id; /* at most WRITE_REQUEST_ID_BYTES_MAX bytes; empty: the request has no name */
    uint64_t hash;   /* of all that the client sent; differs between requests */
    uint64_t part;   /* position in the request of the range of items that the command is for */
    bool divided;    /* the request has other commands, too; one of a version before 22 does not say so */
};
enum { WRITE_REQUEST_ID_BYTES_MAX = 128 };

struct write_command {
    struct write_item *items;
    size_t item_count;
    bool atomic; /* all items or none */
    struct write_request request;
    /* Made by the core for an ended session: index blocks and closed indices do not prevent it, but full memory may */
    bool cleanup;
    /* out: item_count results, in the command's arena; NULL: it was refused by its items and sources alone */
    struct write_result *results;
    bool rolled_back;             /* out: atomic, and an item failed */
    /* In the core: atomic, and too much for one step, so that it is carried out in pieces (acquire_pieces.c) */
    bool exceeds_step;
    uint32_t attempts; /* of one in pieces: those that ended because a piece was blocked */
    struct overlay *retired; /* of one in pieces: as of TXN_COMMIT */
    /*
     * Out: number of items that were not started because earlier scripts used up the limit of one
     * command (update.h). At least one item was started. The submitter resubmits the postponed ones
     * in order as a new command, so that other commands run in between.
     */
    size_t postponed_count;
    /* Out: steps of its scripts, including runs that compute documents' paths */
    uint64_t script_steps;
    /* In the core: bytes of the results of items that ran (write_result_bytes()). Not saved: it follows from them */
    size_t result_bytes;
};

/* Returns: the bytes of the sources of an item, and of those of all items, each with the parameters of its script. */
size_t write_item_source_bytes(const struct write_item *item);
size_t write_source_bytes(const struct write_command *write);
/* Returns: the bytes of a result that count towards WRITE_RESULT_BYTES_MAX. */
size_t write_result_bytes(const struct write_result *result);

/* --- Catalog ------------------------------------------------------------------------------------------------------ */

struct index_command {
    struct slice name; /* concrete; the api resolves wildcards and lists */
    struct slice body; /* JSON object of create, mapping or settings; data NULL: none */
    struct slice type; /* MAPPING_PUT with a type; else empty */
    struct slice uuid; /* INDEX_CREATE: 22 characters generated by the submitter */
    /* The client uses types: mappings in the body of a create are keyed by type */
    bool include_type_name;
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

/*
 * A named object: template, stored script, cluster settings, user, role, API key, change feed
 * consumer, CLUSTER_UUID (`name` is the uuid), ZONES (`body` is the database).
 */
struct object_command {
    struct slice name;
    struct slice body;
    /*
     * Of a stored script put by /_scripts/{lang}/{id} (5.x), or the kind of a security object; else
     * empty
     */
    struct slice lang;
    bool create;   /* fail if the object exists */
    bool compiles; /* stored script: fail unless it compiles for `context` */
    enum script_context context;
    bool existed; /* out, SECURITY_PUT, SECURITY_CHANGE: the object existed before */
};

struct file_script {
    struct slice name; /* file name without extension, for example "judge-lock" */
    struct slice lang; /* from the extension: groovy, painless */
    struct slice source;
};

struct file_scripts_command {
    struct file_script *scripts;
    size_t script_count;
};

/* --- Sessions, locks, transactions -------------------------------------------------------------------------------- */

enum { SESSION_ID_BYTES_MAX = 2048 }; /* fits into the crash page (journal/at_work.h) */

struct session_command {
    struct slice id; /* SESSION_OPEN: generated by the submitter */
    struct slice name;
    uint64_t ttl_us;
    /* Bulk actions that run when the session expires or is closed by force */
    struct write_item *on_expire;
    size_t on_expire_count;
    /* SESSION_ATTACH, SESSION_DETACH: number that the submitter gave the connection */
    uint64_t attachment;
    /* SESSION_CLOSE: run the actions of `on_expire`; `id` may be the public number (out: the id) */
    bool force;
    bool if_detached; /* SESSION_CLOSE: only if no connection keeps the session alive; PROBLEM_SESSION_ATTACHED */
    tl_ts expires_at; /* out */
    uint64_t number;  /* out, SESSION_OPEN: the public number */
};

/* Shared, update, exclusive: README-locks.md. */
enum lock_mode { LOCK_NONE, LOCK_S, LOCK_U, LOCK_X, LOCK_MODE_COUNT };

/*
 * What a lock covers: all indices; with `index` one index; also with `path` a subtree; also with
 * `id` a document.
 */
struct lock_target {
    enum lock_mode mode; /* LOCK_S, LOCK_U or LOCK_X */
    struct slice index;
    struct slice path; /* data NULL: none */
    struct slice type; /* of a document; empty: the index's only type */
    struct slice id;   /* data NULL: none */

    /* For a read in a transaction: options to resolve `index` as an expression; NULL: one name */
    const struct catalog_options *expression;
    /* For a read in a transaction: `index` is a stored script */
    bool script;
};

struct lock_command {
    struct lock_target *targets; /* UNLOCK: empty releases all locks of the owner */
    size_t target_count;
    tl_ts fencing_token; /* out */
    uint64_t waited_us;  /* out */
    /* Out: number of requests that preceded it in the queue when it began to wait */
    size_t queue_position;
    /* Out, LOCK: for each target, whether no index has that name; NULL: every index exists */
    bool *index_missing;
    size_t released; /* out, UNLOCK: by this command */
    /*
     * Out, UNLOCK of targets that is not refused: how many of them it has done, the first ones, at least one. The
     * submitter submits another for those that are left.
     */
    size_t done;
};

/* TXN_QUERY is only in logs and outcomes of older versions: README.md, "Commands as bytes". */
enum txn_mode { TXN_UPDATE, TXN_QUERY, TXN_MODE_COUNT };

struct txn_command {
    struct slice id;    /* TXN_BEGIN: generated by the submitter */
    enum txn_mode mode; /* TXN_BEGIN: TXN_QUERY is refused */
    uint64_t idle_us;   /* TXN_BEGIN: rolled back after this time without a request */
    /* TXN_BEGIN: any earlier attempt of the transaction that is retried; empty: first attempt */
    struct slice retry_of;
    /* TXN_ROLLBACK: also a transaction of another client; `id` may be its public number */
    bool force;
    /*
     * TXN_BEGIN: opened by the host for one request; ends with that host's life (README-locks.md)
     */
    bool of_host;
    uint64_t number;  /* out, TXN_BEGIN: the public number */
    tl_ts commit_ts;  /* out, TXN_COMMIT */
    uint64_t changes; /* out, TXN_COMMIT: number of changes */
    /*
     * Out, TXN_COMMIT: the overlay of the transaction, to which the unit's batch refers; NULL: it wrote nothing.
     * command_free() frees it, outside of the step.
     */
    struct overlay *retired;
};

/*
 * Locks for a read inside a transaction, and the snapshot to read. The submitter frees `overlay`
 * (out) by core_overlay_unref(); NULL when the transaction has written nothing.
 */
struct txn_lock_command {
    struct lock_target *targets;
    size_t target_count;
    tl_ts read_ts;           /* out: timestamp of the view */
    struct overlay *overlay; /* out: overlay_snapshot() */
    /*
     * Out, if it is not refused: how many of the targets have their locks, the first ones, at least one of any. The
     * submitter submits another for those that are left.
     */
    size_t done;
};

/*
 * Numbers of requests and attachments: the host's number in the upper 16 bits, its counter below.
 */
#define HOST_SHIFT 48

static inline uint64_t host_of_number(uint64_t number)
{
    return number >> HOST_SHIFT;
}

/*
 * What a submitter found at a path and below it (core/tree/README.md, "Renames, and when they
 * fail"). Keys are those of entries: type number and id.
 */
struct path_finding {
    tl_ts ts;              /* of the view in which it searched; TL_TS_NONE: it did not */
    struct slice document; /* key of a document at the path; data NULL: none exists in the view */
    struct slice below;    /* key of a document below the path; data NULL: none exists in the view */
};

/* Paths begin with '/' and have no empty, "." or ".." component; one trailing '/' is allowed. */
struct rename_command {
    struct slice index; /* index or alias as the client gave it */
    struct slice from;
    struct slice to;
    /* SEQ_NO_ANY, or the required sequence number of the document at `from` */
    int64_t if_seq_no;
    int64_t if_primary_term;                  /* 0: not given */
    struct path_finding found_from, found_to; /* not used in a transaction that has changes */
    bool single_step;                         /* of a version before 8, whose step searches the paths without limit */
    /*
     * Out: the findings are out of date, or the limited search of the step was not enough: nothing
     * was done. The submitter has the paths watched, searches, and submits it again.
     */
    bool unknown;
    bool directory; /* out: there are documents below it */
    bool document;  /* out: there is a document at it */
    int64_t seq_no; /* out: of the rename */
};

/*
 * Paths of an index with a path hierarchy, to be watched for changes; other indices are ignored.
 * The submitter may then search in a view at the command's timestamp or later.
 */
struct places_command {
    struct slice index; /* index or alias */
    struct slice paths[2];
    bool empty[2]; /* out: known to be empty, so no search is needed */
};

struct cancel_command {
    /*
     * Request number of the command to cancel; unknown: no effect; with counter 0: all of a
     * stopping host
     */
    uint64_t request;
    bool single_step; /* as in restart_command */
    /*
     * The host ends, or has started again: LOCKs of sessions keep their places (wait.kept). Of one request: the host
     * ends (not in commands before version 17, which cancel it).
     */
    bool keeps_places;
};

/*
 * State of locks, sessions and transactions as JSON, for GET /_lock, /_session, /_transaction and
 * their _cat forms. Other threads must not read the core's state, so the request is ordered with
 * all commands, but it is not a step (core_inspect()). README-locks.md, "Seeing it", has the
 * formats.
 */
enum status_what {
    STATUS_LOCKS,    /* resources with holders and waiters, paged */
    STATUS_SESSIONS, /* all, paged; or with `id` one in detail, paged; PROBLEM_SESSION_MISSING */
    /*
     * All, paged; or with `id` one, also if it ended within the last hour;
     * PROBLEM_TRANSACTION_MISSING
     */
    STATUS_TRANSACTIONS,
    STATUS_LOCK_EVENTS, /* the most recent deadlocks and session expiries */
    STATUS_OVERVIEW,    /* at most rows_max resources, those with waiters first, in one step */
    STATUS_SESSION,     /* the number of the live session `id`; PROBLEM_SESSION_MISSING */
    STATUS_WHAT_COUNT
};

/*
 * A resource with holders or waiters, as JSON fragments. A resource with many of them has several
 * rows with equal keys.
 */
struct status_row {
    struct slice key;     /* rows sorted by key are in the order of the lock tree */
    struct slice name;    /* JSON members without braces; empty: the root of the lock tree */
    struct slice holders; /* JSON objects separated by commas, in order; may be empty */
    struct slice waiters;
    bool truncated; /* STATUS_OVERVIEW: holders or waiters may be missing */
};

/* A resource with more holders and waiters than fit on one page; it has pages of its own. */
struct status_overflow {
    uint32_t hash;
    uint32_t number; /* 0: none */
    size_t from;     /* first holder or waiter of the page */
};

/* A query transaction of the submitter's host that belongs to a session. */
struct status_query {
    uint64_t session; /* public number */
    uint64_t number;  /* public */
    struct slice id;
};

struct status_command {
    enum status_what what;
    struct slice id; /* one session or transaction; empty: all */
    /* STATUS_SESSIONS: to be listed with their sessions; in order of session and number */
    const struct status_query *queries;
    size_t query_count;
    struct slice index; /* STATUS_LOCKS: only resources of this index; empty: all */
    /* STATUS_LOCKS: only resources in or above this directory; data NULL: all */
    struct slice path;
    /*
     * STATUS_LOCKS: only resources held or requested by this session or its transactions; empty:
     * all
     */
    struct slice session;
    /* Out: JSON object in the command's arena; not of STATUS_LOCKS; of paged requests see below */
    struct slice body;

    /*
     * Pages of STATUS_LOCKS. The first request has `cursor` and `overflow` 0. Each reply has the
     * `cursor` of the next request, until it is 0. Then each element of the `overflows` returned is
     * requested as `overflow`, until the number of the one returned is 0. Outputs are in the
     * command's arena.
     */
    uint64_t cursor;                 /* in, out */
    struct status_overflow overflow; /* in, out */
    struct status_row *rows;         /* out */
    size_t row_count;
    struct status_overflow *overflows; /* out */
    size_t overflow_count;
    size_t work; /* out: work of the page, in units of do_status.c and do_status_locks.c */

    /*
     * Pages of STATUS_SESSIONS, and of STATUS_TRANSACTIONS without `id`. The first request has
     * `cursor` 0; each reply has the `cursor` of the next one, until it is 0. `page` has JSON
     * objects separated by commas, or nothing: sessions, transactions, or the locks of one session.
     * `body` is set on the first page of one session: an object without its closing brace, to which
     * "locks" is to be added. It is also set on the last page of all sessions: the array of
     * deferred actions.
     */
    struct slice page; /* out */
    uint64_t number;   /* out, STATUS_SESSION */

    /*
     * STATUS_LOCKS as of an earlier timestamp. Resources of the present are paged as above, with
     * holders and waiters as of `as_of`. After the last page and overflow, requests with
     * `of_history` return holds and waits that have ended since. Their `history_cursor` begins at 0
     * and is returned for the next request, until it is 0. Rows with equal keys belong to one
     * resource; equal entries of both kinds of page are one entry.
     */
    tl_ts as_of;             /* timestamp; 0: the present */
    bool of_history;         /* the page has holds and waits that have ended since */
    uint64_t history_cursor; /* in, out */
    tl_ts history_from;      /* out: the history is complete from this timestamp on */

    size_t rows_max; /* STATUS_OVERVIEW: limit of row_count; rows are in no order */
};

/*
 * Purges records that no reader can see any more. core_propose_maintenance() makes it; README.md,
 * "Maintenance".
 */
struct maintain_command {
    tl_ts history_low;   /* documents of indices deleted before it are purged */
    tl_ts tombstones;    /* documents deleted before it no longer count for versions */
    tl_ts outcomes;      /* outcomes of transactions that ended before it are no longer reported */
    size_t keys_max;     /* limit of `removed`, without `stale` */
    struct slice *stale; /* keys of posting lists whose batch no document has, now or later */
    size_t stale_count;
    size_t scanned; /* for the proposer: cost of finding `stale`, in keys; not encoded */
    size_t removed; /* out: keys removed */
};

/* The change feed's new configuration. */
struct feed_command {
    bool off;
    tl_ts cut; /* changes up to it are dropped; 0: none */
};

/*
 * Expires everything due: waits by command->clock; leases of sessions and idle times of
 * transactions by `barrier_clock`. A request that extends a lease may have arrived in time and not
 * have been read yet.
 */
struct tick_command {
    /*
     * All input sent to the server before this clock value was submitted before the TICK. At most
     * `clock`.
     */
    uint64_t barrier_clock;
};

/* Limits of the core from now on. */
struct limits_command {
    struct core_limits limits;
};

/* A timestamp ceiling. README.md, "Timestamp ceilings and host crashes". */
struct mark_command {
    /* A core opened later issues timestamps above it and above the command's own */
    tl_ts ceiling;
    struct slice payload; /* data of the host, returned by core_ts_ceiling_payload() */
    uint64_t chain;       /* core_chain() when the step began, for replay to compare; 0: not given */
    struct slice build;   /* CORE_BUILD of the program that computed `chain`; empty: unknown */
};

/* RESTART, MACHINE_LOST. */
struct restart_command {
    bool single_step; /* from a version that did everything in one step; not written any more */
    bool resubmit;    /* out, RESTART: to be resubmitted before any other command */
};

/* A cleanup action during which the process ended. */
struct tried_command {
    struct slice session; /* the session whose cleanup action it is, even if it has ended */
    /* Number of the deferred action; 0: an action of the session itself */
    uint64_t deferred;
    uint64_t action; /* index of the session's action, from 0; of a deferred action 0 */
};

struct skip_command {
    uint64_t position; /* of the log entry, not 0 */
};

/* A deferred action that was set aside. */
struct aside_command {
    uint64_t number; /* of the deferred action */
    bool retry;      /* run it again; false: drop it */
};

/* A host that joins the cluster. README.md, "Hosts". */
struct join_command {
    struct slice name;
    struct slice group;
    struct slice address; /* HOST:PORT; https:// before it: it is reached by that */
    struct slice build;
    uint64_t life;             /* not 0 */
    struct core_limits limits; /* the host's options, which must equal the cluster's */
    bool single_step;          /* as in restart_command */
    uint64_t number;           /* out: the host's number */
};

/* The end of a host's life. README.md, "Hosts". */
struct gone_command {
    struct slice name;
    uint64_t life;    /* the life that has ended; a later life is not affected */
    bool forget;      /* the host is also removed from the list of hosts */
    bool single_step; /* as in restart_command */
};

struct heartbeat_command {
    /* All input sent to this host before this clock value was submitted before the heartbeat */
    uint64_t barrier_clock;
    tl_ts low;         /* the host's readers use no earlier timestamp, now and later */
    uint64_t position; /* of the newest entry that it has applied */
    uint64_t chain;    /* core_chain() after that entry */
};

/* --- The command -------------------------------------------------------------------------------------------------- */

/*
 * A client that submits one command after another and may cancel the wait for a reply:
 * journal_cancel_waiter() (journal.h). `number` is the `request` of the command that it waits for;
 * 0: none; COMMAND_WAITER_LEFT: it accepts no reply any more.
 */
struct command_waiter {
    _Atomic uint64_t number;
};
#define COMMAND_WAITER_LEFT UINT64_MAX

/*
 * The versions of the byte form (command_codec.h) since which commands have another effect. A command
 * of an earlier version, from an older log, keeps the effect that it had. README.md, "Commands as
 * bytes".
 */
enum {
    /* An index that its step creates has no mark of routings: none of its documents has one. */
    COMMAND_SINCE_NO_ROUTING_MARK = 7,
    /* Requests that its step grants are undone as a whole: lock_request_undo(). */
    COMMAND_SINCE_UNDO = 8,
    /* The mappings that its items make may postpone later items: WRITE_MAPPING_WORK_MAX. */
    COMMAND_SINCE_MAPPING_LIMIT = 8,
    /* Dates that Elasticsearch 7.10 refuses are refused: DOCUMENT_DATES_STRICT. */
    COMMAND_SINCE_STRICT_DATES = 8,
    /* Fields with ignore_malformed have entries of such dates: not DOCUMENT_DATES_DROPPED. */
    COMMAND_SINCE_MALFORMED_DATES = 9,
    /* A created index reads dates as Elasticsearch 7.10 does: DATE_RULES_7_10, else DATE_RULES_FIRST. */
    COMMAND_SINCE_DATE_RULES = 9,
    /* Only TICK continues the cleanup of ended sessions: README-locks.md, "Cleanup in batches". */
    COMMAND_SINCE_TICK_CLEANUP = 9,
    /* The scripts and mappings of a write that has waited for locks postpone later items, too. */
    COMMAND_SINCE_RESUMED_LIMIT = 9,
    /* Its purge of outcomes of requests counts their bytes: request_outcome__purge(). */
    COMMAND_SINCE_PURGED_BYTES = 9,
    /* The work of its items may postpone later items: WRITE_WORK_MAX. */
    COMMAND_SINCE_WORK_LIMIT = 10,
    /*
     * The cleanup of ended sessions and the purges of MAINTAIN stop by their work, not only by counts
     * (README-locks.md, "Cleanup in batches"), and ephemeral documents of the highest version go.
     */
    COMMAND_SINCE_WORK_BATCHES = 10,
    /* A refused lock request of a transaction that has waited leaves it its idle deadline. */
    COMMAND_SINCE_IDLE_AFTER_REFUSAL = 10,
    /* Actions of ended sessions cost as other writes do, and each once: cost_of_action(). */
    COMMAND_SINCE_ONE_COST = 11,
    /* Finding the locks of a write and running it count together: write_executor__work_limit_reached(). */
    COMMAND_SINCE_WRITE_ACCOUNT = 11,
    /* All that a TICK does shares one account: owners__run_due(). */
    COMMAND_SINCE_STEP_ACCOUNT = 11,
    /* A read in a transaction locks no document whose type has a name that no type can have. */
    COMMAND_SINCE_LOCKABLE_TYPES = 11,
    /* A write to a hidden document of the highest version purges it, as its session does. */
    COMMAND_SINCE_HIGHEST_PURGED = 11,
    /* An atomic write, and what a transaction commits, are limited by their work: CORE_ATOMIC_WORK. */
    COMMAND_SINCE_WHOLE_WORK = 11,
    /* An atomic write that takes more than a step may is carried out in pieces: acquire_pieces.c. */
    COMMAND_SINCE_ATOMIC_PIECES = 12,
    /* Requests that its step grants count by the resources that they lock: LOCK_GRANT_PLACES. */
    COMMAND_SINCE_GRANTED_PLACES = 12,
    /* A write is charged to the step before the commands that resume in it: core_step(). */
    COMMAND_SINCE_WRITE_CHARGED = 12,
    /* An atomic write in pieces keeps its locks in its last attempt: PIECES_ATTEMPTS_MAX. */
    COMMAND_SINCE_LAST_ATTEMPT = 13,
    /*
     * The limit of an owner's locks leaves auxiliary ones out; a request of many is limited by its memory and by its
     * work (CORE_LOCK_WORK), and an end of an owner costs by all that it holds: README-locks.md, "The limits of a
     * request".
     */
    COMMAND_SINCE_PLAIN_LOCKS = 14,
    /* Items of a write in a transaction fail for the limit of waiting requests, where that is the cause. */
    COMMAND_SINCE_FULL_CAUSE = 14,
    /* The transaction of an atomic write in pieces has no outcome, whatever ends it: txn.of_write. */
    COMMAND_SINCE_NO_OUTCOME = 14,
    /* The end of a session excludes a document once, by however many names it is locked. */
    COMMAND_SINCE_EXCLUDED_ONCE = 14,
    /* A document with too many new fields is refused at the first of them: FIELDS_COUNTED_FIRST. */
    COMMAND_SINCE_COUNTED_FIELDS = 14,
    /* A commit may take a fifth of the work that it might before: CORE_COMMIT_WORK. */
    COMMAND_SINCE_COMMIT_LIMIT = 15,
    /* The levels of paths count as work: towards CORE_LOCK_WORK, lock_specs__exceed(), and in writes. */
    COMMAND_SINCE_LEVELS_WORK = 15,
    /* The bytes of its results postpone later items, or refuse an atomic write: WRITE_RESULT_BYTES_MAX. */
    COMMAND_SINCE_RESULT_BYTES = 15,
    /* Mappings of clients and templates with too many fields, too: FIELDS_COUNTED_FIRST. */
    COMMAND_SINCE_COUNTED_PROPERTIES = 15,
    /* An item that names a public number as its session says so, also where its outcome is kept. */
    COMMAND_SINCE_NUMBER_NAMED = 15,
    /* Entries of single writes of a large transaction are in the store before its commit: ENTRIES_PROVISIONAL_WORK. */
    COMMAND_SINCE_ENTRIES_AHEAD = 16,
    /* The directories above locks are counted by a set: paths that differ in empty segments alone count once. */
    COMMAND_SINCE_LEVELS_SET = 17,
    /* An UNLOCK that names many locks releases some, and says how many: lock_command.done. */
    COMMAND_SINCE_UNLOCK_PIECES = 17,
    /* An UNLOCK has the waiting LOCKs of its session resolve their names again. */
    COMMAND_SINCE_NAMES_AGAIN = 17,
    /* A script in the core, and those of an atomic write in a transaction, take UPDATE_COMMAND_STEPS_MAX. */
    COMMAND_SINCE_SCRIPT_LIMIT = 17,
    /* A CANCEL keeps places in batches, and that of one request can keep its place: WAIT_PLACE_KEPT. */
    COMMAND_SINCE_PLACES_IN_BATCHES = 17,
    /*
     * A LOCK takes one step at most (LOCK_WORK_MAX), and so does the check of an UNLOCK (UNLOCK_CHECK_WORK_MAX). A
     * TXN_LOCK that names more takes some, and says how many: txn_lock_command.done.
     */
    COMMAND_SINCE_LOCK_STEP = 18,
    /* DecimalFormat of scripts, and parsed dates with large offsets or many letters S, as in Java: old_library. */
    COMMAND_SINCE_JAVA_FORMATS = 18,
    /* The waits of a host that leaves its cluster keep their places: README-locks.md, "Kept places". */
    COMMAND_SINCE_PLACES_IN_CLUSTER = 19,
    /* The templates of an index are merged at once, count as such, and are limited: CATALOG_APPLIED_BYTES_MAX. */
    COMMAND_SINCE_TEMPLATES_MERGED = 19,
    /* Dates and big numbers that scripts read and write as in Java: script_update.old_formats. */
    COMMAND_SINCE_SCRIPT_FORMATS = 19,
    /* A named write that waits at a restart keeps its place. */
    COMMAND_SINCE_KEPT_WRITES = 19,
    /*
     * Settings that guard something guard it or are refused: those marked 19 in the tables of core/catalog, and
     * index.auto_expand_replicas, index.number_of_routing_shards, cluster.max_shards_per_node.
     */
    COMMAND_SINCE_FIXED_SETTINGS = 19,
    /* An atomic write in a client's transaction is refused if it takes more than one step may: write_run.one_step. */
    COMMAND_SINCE_ATOMIC_STEP = 19,
    /* index.gc_deletes says how long the version of a deleted document counts; before, it was 60 s for all. */
    COMMAND_SINCE_GC_DELETES = 20,
    /* The script of an update counts once where finding the locks of its write has run it: struct update_kept. */
    COMMAND_SINCE_SCRIPTS_ONCE = 20,
    /*
     * Templates, changes of aliases and patterns that take more than a step may are refused, changes of the catalog
     * count as work, and settings are checked by SETTING_RULES_BOUNDED: template__check_bytes(), ALIAS_WORK_MAX,
     * CATALOG_ALIAS_USES_MAX, CATALOG_PATTERN_PAIRS_MAX, core__work_catalog().
     */
    COMMAND_SINCE_CATALOG_BOUNDS = 20,
    /*
     * An index that a write creates has the aliases of its templates checked, as one that is created by request; an
     * item that requires an alias counts the table of aliases that it renews, though an index has the name; settings
     * of templates count where they are copied: alias__check_new(), alias__exists(), index__draft_add().
     */
    COMMAND_SINCE_ALIASES_CHECKED = 21,
    /* Cancelled requests count by their locks, their items and what their transactions hold: count_of() in grants.c. */
    COMMAND_SINCE_CANCELS_WEIGHED = 21,
    /* Single entries that a large transaction makes stale are removed before its commit: convert_committed(). */
    COMMAND_SINCE_ENTRIES_CONVERTED = 21,
    /*
     * Named writes keep their places also if they have their locks already, or if their host is gone. One that was
     * repeated does not: README-locks.md, "Kept places".
     */
    COMMAND_SINCE_PLACES_OF_WRITES = 21,
    /* The lock event of a deadlock says of the victim that it is; before, another phrase. */
    COMMAND_SINCE_VICTIM_NAMED = 21,
    /* The bytes of documents' paths count where a write finds its locks: WORK_PATH_BYTES. */
    COMMAND_SINCE_PATHS_WEIGHED = 21,
    /*
     * A document that one unit writes, deletes and writes again, in an index whose deletes do not count, has single
     * entries. Before, queries found it by the values of the deleted version.
     */
    COMMAND_SINCE_DELETES_IN_UNIT = 21,
    /*
     * Values that a mapping visits or an update reads, and an estimate of the next item's work, count where a
     * write is divided: write_executor__count_visits(), find_item_work() in write.c. Finding locks keeps sources that
     * it merges.
     * Further versions of a document in a unit of a transaction have posting lists: further_batch() in write_entries.c.
     * A document is refused whose values are copied too often: DOCUMENT_COPIES_MAX in mapping/document.h. A refusal
     * that lists indices is bounded: refuse_hidden() in alias.c. Settings of templates count as they are
     * merged, in place: index__draft_add().
     */
    COMMAND_SINCE_VALUES_WEIGHED = 22,
    /* A kept place of a write ends with an outcome of its ID: acquire__end_place(). */
    COMMAND_SINCE_OUTCOMES_END_PLACES = 22,
    /* MACHINE_LOST leaves atomic writes in pieces their places. */
    COMMAND_SINCE_PLACES_OF_PIECES_STAY = 22,
    /* A part of a divided request of which all items fail leaves an outcome, too: request_outcome.h. */
    COMMAND_SINCE_DIVIDED_OUTCOMES = 22,
    /*
     * The names in an expression, and in a request that changes aliases, take no more work than one request for locks
     * may: names_exceed() in lock_resolve.c.
     */
    COMMAND_SINCE_NAMES_BOUNDED = 23,
    /*
     * A document is locked by so many types at once that its index lacks: TYPES_LOCKED_MAX in lock_resolve.c. Reads and
     * writes lock such types as no type. Types that are compared count, also of a write.
     */
    COMMAND_SINCE_TYPES_BOUNDED = 23,
    /* What each new field of a document is compared with is limited in mappings: FIELDS_BOUNDED. */
    COMMAND_SINCE_DYNAMIC_BOUNDED = 23,
    /* The descriptions of the holders of locks are shorter if these are deep, and count: wait__explain(). */
    COMMAND_SINCE_EXPLAINED_WEIGHED = 23,
    /*
     * A command that would move more locked documents in the lock table than one may is refused: RELOCATED_MAX. Those
     * of an index without a path field do not count as read, nor does the commit of renames move those that the
     * transaction alone has locked. The documents that a session's end removes in one batch move at once.
     */
    COMMAND_SINCE_MOVES_BOUNDED = 23,
    /*
     * The bytes of an index's records count, and its mapping is written only if it changes; the patterns of
     * action.auto_create_index count, too, but not the fields of an index without paths where the locks of an item with
     * a new type are looked for. Settings and aliases of an index have a limit of bytes.
     */
    COMMAND_SINCE_CATALOG_WEIGHED = 23,
    /* A session's counter of documents takes the place of one that counts none. */
    COMMAND_SINCE_COUNTERS_REUSED = 23,
    /*
     * Values of settings that Elasticsearch refuses are refused where they were accepted before, and patterns of
     * action.auto_create_index may have blanks around them: SETTING_RULES_VALUES.
     */
    COMMAND_SINCE_SETTING_VALUES = 23,
    /* A write of whose ID there is an outcome keeps no place: find_older_outcome() in grants.c. */
    COMMAND_SINCE_OLDER_OUTCOMES = 23,
    /* The sets of entries in which a write looks for that of an index count: entries_of() in write_entries.c. */
    COMMAND_SINCE_ENTRY_SETS_COUNTED = 23,
    /*
     * Texts that are in the state say the same in other words: those of lock events, of the reasons for which
     * transactions were rolled back, and of failed items, which outcomes of named writes have and whose bytes count.
     */
    COMMAND_SINCE_PLAIN_TEXTS = 24,
    /*
     * More values of settings that Elasticsearch refuses are refused, settings that 7.x removed, and a
     * search.default_keep_alive above search.max_keep_alive; an empty action.auto_create_index is accepted:
     * SETTING_RULES_REMOVED.
     */
    COMMAND_SINCE_SETTINGS_REMOVED = 24,
    /*
     * All that a step releases, grants and resumes shares one account of work, in addition to that of
     * counts: cost_charge_work().
     */
    COMMAND_SINCE_WORK_ACCOUNT = 24,
    /* A name with a type finds the lock of its document without a type at once: add_no_type() in lock_resolve.c. */
    COMMAND_SINCE_TYPES_FOUND = 24,
    /* The check that the mappings of an index template have no type is not limited by index.mapping.*: composable.c. */
    COMMAND_SINCE_TYPELESS_UNLIMITED = 24,
    /* A text in a field of type integer, short or byte is refused by another cause: document.number_refused. */
    COMMAND_SINCE_NUMBER_CAUSES = 24,
    /* The paths and parameters of the fields of an index are limited, and count as work: FIELDS_TEXTS_BOUNDED. */
    COMMAND_SINCE_TEXTS_BOUNDED = 25,
    /*
     * A list as action.auto_create_index counts as its text, which few names match, and is not checked otherwise; an
     * empty one creates no index: SETTING_RULES_LISTS. "{index}" in the name of a template's alias is the
     * name of the created index: alias__parse_all(). An index is refused whose aliases have its name.
     */
    COMMAND_SINCE_SETTING_LISTS = 25,
    /* An atomic write in a transaction resumes only at the beginning of a step, and has turns: grants__has_turn(). */
    COMMAND_SINCE_TURNS = 25,
    /* So does a LOCK, or a read of a transaction, of many names: needs_step() in grants.c. */
    COMMAND_SINCE_LOCK_TURNS = 25,
    /* A LOCK that asks anew after a wait charges the directories above its locks, too: charge_levels() in do_lock.c. */
    COMMAND_SINCE_LEVELS_CHARGED = 25,
    /* RESTART charges the work of finding what deferred actions lock: deferred__restart(). */
    COMMAND_SINCE_RESTART_CHARGED = 25,
    /* A change of many aliases waits for a step in which others have spent little, as a LOCK of many names does. */
    COMMAND_SINCE_ALIAS_TURNS = 25,
    /*
     * A cleanup action that would add to the catalog while the proposer's memory is full is set aside:
     * command.memory_full.
     */
    COMMAND_SINCE_MEMORY_GIVEN = 25,
    /* The mappings that actions of a session make cost by all their work: cost_of_action(). */
    COMMAND_SINCE_ACTIONS_WEIGHED = 25,
    /* An update that reads much is left to its submitter, as a long script is: update_is_left(). */
    COMMAND_SINCE_UPDATES_LEFT = 26,
    /* A ready command has a turn of its own only while there is something else to do: grants__has_turn(). */
    COMMAND_SINCE_TURNS_OF_TWO = 26,
    /* The end of an owner that is not divided begins in a step only if its account has enough left: cost_fits(). */
    COMMAND_SINCE_ENDS_FIT = 26,
    /*
     * The patterns of action.auto_create_index and of templates count by json_wildcard_bytes(), and are limited:
     * SETTING_RULES_WEIGHED, CATALOG_COMPARED_BYTES_MAX. Comparisons of the wildcards of a read count by
     * catalog_looks().
     */
    COMMAND_SINCE_PATTERNS_WEIGHED = 26,
    /*
     * What token filters take counts (document.filtered), also towards DOCUMENT_COPIES_MAX, and a document has a limit
     * of the bytes that they read after path_hierarchy: ANALYSIS_FILTERED_MAX.
     */
    COMMAND_SINCE_FILTERS_BOUNDED = 26,
    /* What the patterns of a mapping's _source take in an update counts, and has a limit: mapping_filter_work(). */
    COMMAND_SINCE_PATTERNS_BOUNDED = 26,
    /* index.mapping.* has an effect in an index that has analyzers of its own, too: settings_json() in index.c. */
    COMMAND_SINCE_LIMITS_OF_ANALYSED = 26
};

struct command {
    enum command_type type;
    enum dialect dialect;
    uint64_t request; /* increasing number given by the journal; names the command in CANCEL */
    /* Given by the journal; on completion the timestamp at which the command took effect */
    tl_ts ts;
    /*
     * Given by the journal: microseconds by which durations are measured; README.md, "Timestamp and
     * clock"
     */
    uint64_t clock;
    /* Given by the journal: the host had no memory for more of the catalog; README.md, "Memory as an input" */
    bool memory_full;
    struct arena arena;         /* inputs and results */
    struct command_owner owner; /* of a command with COMMAND_OWNED */
    /*
     * Of the byte form that it was decoded from; of a new command the newest. Handlers compare it with
     * the COMMAND_SINCE_ constants. Not encoded.
     */
    unsigned version;
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
    struct problem problem; /* out: PROBLEM_NONE: the command as a whole succeeded */
    struct list link;       /* used by the journal and the core */
    /*
     * Releases what the submitter attached to items (core/documents/prefetch.h), when the command is
     * freed; NULL: nothing
     */
    void (*release_attached)(struct command *command);

    /*
     * Called by the journal once the result is durable; afterwards the submitter owns the command.
     */
    void (*on_done)(struct command *command);
    void *context; /* for the submitter */
    /* Until `on_done` is called; NULL: the wait cannot be cancelled */
    struct command_waiter *waiter;
};

/*
 * Makes a command with empty inputs, or frees it with its arena and inputs. NULL is fine for free.
 */
struct command *command_new(enum command_type type, enum dialect dialect);
void command_free(struct command *command);
/* Empties a list of commands, by command.link, and frees them. */
void command_free_all(struct list *commands);
const char *command_name(enum command_type type);
/* Returns: whether the type has any of the flags. */
bool command_is(enum command_type type, unsigned flags);

#endif
