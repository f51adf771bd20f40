/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a server's documents in another one, kept up to date by the feed: declarations shared
 * by the files of `tidelock replicate`.
 *
 *     source ─(_changes: which documents)─▶ follow ─(_mget: their present state)─▶ lanes
 *     lanes ─(_bulk, external versions)─▶ target
 *
 * Invariants (cited by number):
 *  1. A document is sent in its state as of a timestamp that was stable when it was read. Its
 *     external version is the timestamp of the commit that made this state; that of a deletion is
 *     the timestamp of the read. So of two states the target keeps the newer one, in whatever order
 *     they arrive, and from whichever program. A 409, by which the target has one at least as new,
 *     is success. A document that is sent to replace what another program may have written goes
 *     with the timestamp of the read, too: that is above the commit's, and below any later one.
 *  2. A change says only that a document changed. Its newest state is read, so sending again never
 *     restores an older one.
 *  3. The place is a timestamp: all changes up to it are acknowledged by the target, or permanently
 *     refused and recorded there. It is stored in the target, with itself as external version, so
 *     it never decreases. It is about the indices of the --index and the --prefix that are stored
 *     with it: with another --index everything is compared at the start, since changes of other
 *     indices were not sent; another --prefix is refused.
 *  4. A document belongs to one lane. A lane has one request under way, which it repeats until its
 *     outcome is known.
 *  5. Nothing is sent without the lock. The program's session holds it; while its lease is not
 *     certain, the lanes wait. A program that finds the lock held ends the other session only if
 *     the process of that session has certainly ended: the session's name shows its process id,
 *     and the kernel and process namespace that the id is of, which must be our own; and no
 *     connection keeps the session alive, as one does in a machine that was resumed from the
 *     same snapshot of memory and so has equal ids. Such a process sends nothing more, and its
 *     last documents are suspects (6). This matters where the source and the copy were both
 *     killed: a restarted source keeps the session for the rest of its lease, since a process
 *     that exists may attach it again. Of a process elsewhere nothing is known, so its lease is
 *     waited for. The source ends the session only if it is detached, in one step of its log
 *     (`if_detached`). A resumed machine that had not attached it yet is certain of its lease until
 *     it hears of the end, at most for the rest of the lease. So documents that change within a
 *     lease after that are suspects, too.
 *  6. A document of a request whose outcome was unknown at some time is a suspect: the target may
 *     execute a request that was given up late, after it has forgotten the version of a delete
 *     (`index.gc_deletes`, or a restart). After `--suspect-time` the document is compared, and
 *     repaired. A program that continues after another run takes over its suspects: the place says
 *     from where the feed names them. All documents that the other run may have had under way are
 *     suspects, too. Where the feed does not name these, everything is compared after that time:
 *     after a first copy that did not complete, for example, which has left a place at timestamp 0.
 *  7. The target keeps versions of deletes for at least an hour (`index.gc_deletes`), so that
 *     invariant 6 is needed only after a restart of the target within a late request.
 *  8. An answer of the target is believed only if it has the form of the request, in number and in
 *     names. Otherwise it counts as no answer: documents are sent again; after a read the program
 *     ends with a reason.
 *  9. From its creation until it has all documents that the source had before, an index of the
 *     target is marked in its mapping as incomplete. A program that continues after a kill copies
 *     it again.
 * 10. A target with shards keeps documents of one id under different routings apart. So a version
 *     under a routing that the document no longer has is deleted there. The deletion's external
 *     version is one below that of the document: where both are in one shard they are one document,
 *     and the newer state remains.
 * 11. The source is one cluster, and any of its named hosts may be asked. All threads ask the same
 *     one; when it does not answer, the next one. A host is used only after it has shown the
 *     source's cluster_uuid; only one that has shown another cluster_uuid is never asked again. The
 *     lock's session is attached to the new host before it is detached from the old one.
 * 12. Every read of the present is as of a timestamp not before the newest one that any host has
 *     named to this program, in the answer that granted the lock or later: requests carry it as
 *     Tidelock-After, and an older answer is discarded. So a host that lags is waited for or left:
 *     it neither hides a change from the place nor shows a state older than one that was sent, also
 *     by the program that had the lock before. A page of the feed covers at least the timestamp
 *     after which it was asked for.
 * 13. The mapping of an index of the target names the copy that it belongs to, the index itself, and
 *     the source's index. A copy closes or deletes only its own indices, under the names that it gave
 *     them, and replaces one only by a later index of the same name in the source. It ends
 *     where an index of the name that it needs is another copy's, of another index: of another
 *     source, for example; where it is a clone of a copy; where it is this copy's of an index of
 *     another name (with several types, so that its target is INDEX-TYPE); and where that name is an
 *     alias, as that of a copy with tombstones. Before the first document a place at timestamp 0
 *     claims the copy's name for the source.
 *     An index that no copy has made is taken over if it is empty, or by --take-over: it is marked
 *     as incomplete and copied, and other documents are deleted from it. Of its aliases a copy
 *     removes only those that the mapping names as added by it.
 *     Copies of the same index of the source may share one in the target, whose documents they send
 *     with comparable versions; it belongs to the one that began last.
 * 14. The target has acknowledged a batch only when each of its indices has the same uuid after the
 *     batch as when the copy created or updated it: the documents are in that index, and not in one
 *     to which an alias of that name leads or which the batch has created. The uuid is checked
 *     before a batch, too, so a batch creates a missing index only if it was deleted in between.
 *     Where the uuid differs, the copy begins again from its place, and checks the target's indices
 *     as at a start.
 * 15. A source that was restored from a backup has lost changes that the target has, while its
 *     timestamps soon exceed the place. So the place says which change of the feed was the newest
 *     that the copy had seen. If the source does not have it, everything is compared, at a start
 *     and after each new connection to the feed or absence of the source. Until that is done the place
 *     says so, too.
 */
#ifndef TL_CLI_REPLICA_H
#define TL_CLI_REPLICA_H

#include "base/error.h"
#include "base/map.h"
#include "base/types.h"
#include "cli/client.h"
#include "cli/progress.h"
#include "json/value.h"

struct replica_options {
    const char *from; /* URLs of hosts, separated by commas */
    const char *to;
    const char *index;  /* of the source; NULL: all */
    const char *prefix; /* of the names in the target */
    const char *name;
    unsigned lanes;
    size_t batch_bytes;
    bool once;
    bool delete_indices;
    bool take_over;           /* indices of the target that no copy has made, invariant 13 */
    bool leave_settings;      /* of the target's indices, see invariant 7 */
    bool tombstones;          /* see replica_tombstones.c */
    uint64_t tombstone_us;    /* how long they are kept */
    uint64_t suspect_us;      /* see invariant 6 */
    uint64_t verify_every_us; /* 0: never */
    bool verify;
    bool repair;
    bool content; /* comparisons read contents, too; see replica_verify.c */
    bool json;
    bool quiet;
};

/* The results that end the program; 0: it continues. */
enum {
    REPLICA_FAILED = 1,
    REPLICA_STOPPED = 2,  /* by a signal; never an exit status */
    REPLICA_ANEW = 3,     /* the snapshot of a first copy is lost; never an exit status */
    REPLICA_REPLACED = 4, /* an index of the target is another one; never an exit status */
    REPLICA_TAKEN = 75,   /* EX_TEMPFAIL: another one runs, or has run since */
    REPLICA_LOST = 76,    /* the lock was lost */
};

/* Returns: whether SIGTERM, SIGINT or replica_stop() has asked the program to stop. */
bool replica_stopping(void);
/*
 * Returns: whether no further request of a client is sent: the program was asked to stop, or
 * client.cancelled is true.
 */
bool replica_ends(const struct client *client);
/*
 * Returns: whether a pending request of a client is given up: client.cancelled is true, or the
 * program was asked to stop some seconds ago. For client.gives_up.
 */
bool replica_gives_up(const struct client *client);
void replica_stop(void);
/*
 * Prints a message, with the name of the program, as a line of its own on standard error, from any
 * thread.
 */
void replica_print(const char *format, ...) TL_PRINTF(1, 2);

/* --- The lock (replica_guard.c) ----------------------------------------------------------------------------------- */

struct guard;
struct source_hosts;
/*
 * Opens a session in the source that holds the lock of that name. Errors are reported.
 * Returns: 0; REPLICA_TAKEN, REPLICA_FAILED, CLIENT_EXIT_ABSENT.
 */
int guard_new(struct source_hosts *hosts, const char *name, struct guard **ret_guard);
/* Closes the session. NULL is fine. */
void guard_free(struct guard *guard);
/* Returns: the id of the session; lives with the guard. */
const char *guard_session(const struct guard *guard);
/*
 * Returns: the time of clock_boot_us() until which another program may still send, since its
 * session was ended; 0: none was. Invariant 5.
 */
uint64_t guard_overlap_until_us(const struct guard *guard);
/* Waits until the lease is certain. Returns: false: the session is lost. */
bool guard_await(struct guard *guard);

/* --- The process that holds the lock (replica_holder.c); invariant 5 ---------------------------------------------- */

/* Appends the name of this program's session: the copy's, and how to find the process. */
void holder_write(const char *name, struct buf *to);
/*
 * Returns: whether a session of that name, `holder`, is of a process that has ended, *ret_process.
 * False if that is not certain.
 */
bool holder_is_gone(const char *name, struct slice holder, long *ret_process);

/* --- The source's hosts (replica_hosts.c), from any thread; invariants 11 and 12 ---------------------------------- */

struct source_hosts;
/*
 * `urls`: separated by commas, at least one that is not empty. Owns: the caller;
 * source_hosts_free().
 */
struct source_hosts *source_hosts_new(const char *urls);
/* Assumes: no client of it is left. NULL is fine. */
void source_hosts_free(struct source_hosts *hosts);
size_t source_hosts_count(const struct source_hosts *hosts);
/* Returns: the URL of the host that is asked now; lives with the hosts. */
const char *source_hosts_url(const struct source_hosts *hosts);
/*
 * Sets the source's cluster_uuid, which the current host has shown. Assumes: no other thread uses
 * the hosts yet.
 */
void source_hosts_set_uuid(struct source_hosts *hosts, const char *uuid);
/* Returns: the newest timestamp that any host has named; 0: none yet. */
tl_ts source_hosts_newest(const struct source_hosts *hosts);
/* Makes the next host the current one, if `url` is that of the current one. */
void source_hosts_leave(struct source_hosts *hosts, const char *url);
/* Owns: the caller; client_deinit(). Assumes: the hosts outlive it. */
void source_client_init(struct client *client, struct source_hosts *hosts);
/*
 * Directs client_request() to the current host, whose cluster_uuid is checked before its first use.
 * Returns: false: the host was left, since it does not answer, shows no cluster_uuid, or another
 * one.
 */
bool source_client_aim(struct client *client, uint64_t timeout_us) TL_MUST_USE;
/*
 * Sends a request to the current host, once. A host that does not answer is left.
 * Requires: source_client_init(). Returns: as client_request().
 */
long source_request(struct client *client, const char *method, const char *path, struct slice body,
                    uint64_t timeout_us) TL_MUST_USE;

/* A document of the source, and where the target may have a version of it; invariant 10. */
struct replica_key {
    struct slice index;
    struct slice type;
    struct slice id;
    struct slice routing; /* of that version; data NULL: none */
    bool placed;          /* `routing` is known; with data NULL: it has no routing */
    bool vacates;         /* only deletes the version under `routing`, if that is not the present one */
    tl_ts sent_as;        /* of vacates: the document itself was sent with this version at least; 0: its commit's */
};

/* --- Suspects (replica_suspects.c), from any thread; invariant 6 -------------------------------------------------- */

struct suspects;
struct suspects_state {
    size_t count;
    bool whole;       /* all documents are suspect */
    tl_ts since;      /* the feed after it names all of them; TL_TS_MAX: none */
    uint64_t left_us; /* until the last one comes due */
};

struct suspects *suspects_new(uint64_t time_us);
void suspects_free(struct suspects *suspects); /* NULL is fine */
/* Suspects added from now on have changes after this place. 0: the feed does not name them. */
void suspects_set_place(struct suspects *suspects, tl_ts place);
void suspects_add(struct suspects *suspects, const struct replica_key *key);
/* Adds a suspect that is due now. */
void suspects_add_due(struct suspects *suspects, const struct replica_key *key);
/*
 * Adds a suspect of a previous run; `left_us`: until it is due, at most the time that suspects
 * have.
 */
void suspects_add_inherited(struct suspects *suspects, const struct replica_key *key, tl_ts since, uint64_t left_us);
void suspects_add_whole(struct suspects *suspects, uint64_t left_us);
/*
 * Returns: the number of suspects that are due, up to `room`. The keys are valid until
 * suspects_acquit() by the same thread.
 */
size_t suspects_take_due(struct suspects *suspects, struct replica_key *ret_keys, size_t room, uint64_t *ret_number);
/* Removes suspects, except those that were added again since they were taken. */
void suspects_acquit(struct suspects *suspects, const struct replica_key *keys, size_t count, uint64_t number);
bool suspects_take_whole(struct suspects *suspects);
void suspects_acquit_whole(struct suspects *suspects, uint64_t begun_us);
struct suspects_state suspects_state(struct suspects *suspects);

/* --- Aliases that the target does not take (replica_aliases.c) ---------------------------------------------------- */

struct untaken {
    struct map indices; /* by name in the source, struct untaken_index */
    bool unsettled;     /* some were refused since untaken_find_due(): the end of the round may add them */
};

void untaken_deinit(struct untaken *untaken);
/*
 * An index of the source is updated in the target: those of its aliases that are not added again
 * meanwhile are forgotten at the end.
 */
void untaken_begin_update(struct untaken *untaken, const char *source);
/* The same for those that untaken_find_due() has found: the others stay. */
void untaken_begin_retry(struct untaken *untaken, const char *source);
void untaken_end_update(struct untaken *untaken, const char *source);
/* The index, and with it its aliases, are gone. */
void untaken_forget(struct untaken *untaken, const char *source);
/*
 * Adds an alias of an index of the target, and reports it, once for each reason; one that is refused
 * for another reason than its name is reported when it is refused again. `named`: an index of the
 * target has its name; `listed`: the list of the target's indices shows that. `reason` NULL: as
 * before.
 */
void untaken_add(struct untaken *untaken, const char *source, const char *index, const char *alias, bool named,
                 bool listed, const char *reason);
/*
 * Makes an alias due, of whichever index, since one that may be why it was refused has no alias of
 * that name any more: the write index of an alias, for example.
 */
void untaken_make_due(struct untaken *untaken, const char *alias);
/* Whether an alias was refused, since an index of the target has its name. */
bool untaken_has_name(const struct untaken *untaken, const char *source, const char *index, const char *alias);
/* Whether the last untaken_find_due() has found an alias. */
bool untaken_is_due(const struct untaken *untaken, const char *source, const char *index, const char *alias);
/*
 * Adds to `due` the names in the source of indices with an alias that is to be tried again. `names`:
 * a map whose keys are the names of the target's indices.
 */
void untaken_find_due(struct untaken *untaken, const struct map *names, struct map *due);

/* --- The target (replica_target.c) -------------------------------------------------------------------------------- */

/*
 * Largest answers: to documents that were sent and to reads of several documents; to a read of one
 * document.
 */
#define REPLICA_ANSWER_BYTES ((size_t)64 << 20)
#define REPLICA_DOCUMENT_BYTES ((size_t)1 << 30)

struct identities;
struct target {
    const struct replica_options *options;
    struct client client;
    unsigned major; /* version; an OpenSearch counts as 7 */
    struct identities *identities; /* of the indices that this program writes to; NULL: it writes to none */
    struct untaken untaken;
    /*
     * What the target has, read at most once in a round, that is a start, a page of the feed, or a
     * retry of aliases: so many indices with refused aliases cost two requests.
     */
    struct {
        bool known_names, known_copies;
        struct map names;  /* of its indices */
        struct map copies; /* names of this copy's open indices that are called as in the source */
    } listed;
};

/*
 * Connects to the target and reads its version. Without --once it waits for a server that does not
 * answer. Errors are reported.
 * Returns: 0; the result that ends the program.
 */
int target_open(struct target *target, const struct replica_options *options);
void target_close(struct target *target);

/* Returns: the type of a document in the target; NULL: the target has no types. */
const char *target_type(const struct target *target, const char *type);

/* The place, and the suspects from before it. */
struct place {
    tl_ts ts;                  /* 0: no place yet */
    bool clean;                /* no request was under way when it was written */
    bool tombstones;           /* deletes are documents in the target */
    char *other_index;         /* --index with which it was written, invariant 3; NULL: that of this run */
    tl_ts suspects;            /* the feed after it names all suspects; equal to `ts`: no suspects */
    bool whole;                /* all documents are suspects */
    uint64_t suspects_left_us; /* until the last one is due */
    tl_ts seen;                /* the newest change of the feed that was read, invariant 15; 0: none */
    bool restored;             /* the source had lost that, and the comparison is not complete */
};
/*
 * `source`: its uuid. Assumes: *ret_place is zero, or was read before. Owns: the caller;
 * place_deinit(). Returns: 0, also without a place; the result that ends the program, reported.
 */
int target_read_place(struct target *target, const char *source, struct place *ret_place);
void place_deinit(struct place *place);
int target_write_place(struct target *target, const char *source, const struct place *place);
/*
 * Writes a place at timestamp 0, unless there is one: no other source begins a copy of this name
 * during the first copy, and requests of this one may be under way. Returns: 0; REPLICA_FAILED,
 * reported: another source has done so.
 */
int target_claim_place(struct target *target, const char *source);

/*
 * The state in which an index of the target was found, invariant 9; of several indices the highest
 * one counts.
 */
enum target_had {
    TARGET_WHOLE, /* it has all documents that the source had before the place */
    TARGET_MADE,  /* created now: there was none, or a copy of an earlier index of this name */
    TARGET_PART,  /* incomplete: the program that created it was killed; or taken over, invariant 13 */
};
/*
 * Checks that the copy may write to the target's indices of an index of the source (invariant 13),
 * and changes nothing. `definition`: of GET /{index}. Returns: 0; REPLICA_FAILED, reported; the
 * result that ends the program.
 */
int target_check_index(struct target *target, const char *index, yyjson_val *definition);
/*
 * Creates or updates the target's copy of an index: one index, or one per type where the target has
 * no types. `definition`: of GET /{index}. An incomplete copy is marked until target_end_index().
 */
int target_put_index(struct target *target, const char *index, yyjson_val *definition, enum target_had *ret_had);
int target_end_index(struct target *target, const char *index, yyjson_val *definition);
/* Begins a round: what the target has is read again when it is needed. */
void target_begin_round(struct target *target);
/*
 * Adds to `due` the names in the source of indices with an untaken alias that is to be tried again.
 * One request, however many there are. Returns: 0; the result that ends the program, reported.
 */
int target_find_due_aliases(struct target *target, struct map *due);
/*
 * Tries the untaken aliases of an index again. Documents may be under way to the index. Returns: 0;
 * REPLICA_REPLACED, reported; the result that ends the program, reported.
 */
int target_put_aliases(struct target *target, const char *index, yyjson_val *definition);
/*
 * Closes or deletes an index of the target, by its name there, if it belongs to this copy
 * (invariant 13): the source no longer has it.
 */
int target_drop_index(struct target *target, const char *name);
/*
 * Does the same with each index of the target that is of an index not in `uuids`, the keys of a
 * map. An index with another name than it was made with is left: a clone, for example.
 */
int target_drop_gone(struct target *target, const struct map *uuids);
/*
 * Appends the name of the target's index for documents of a type. `several`: the index has several
 * types.
 */
void target_name(const struct target *target, const char *index, const char *type, bool several, struct buf *to);

/* Reports an answer that does not have the form of the request. Returns: REPLICA_FAILED. */
int replica_disbelieve(const char *whom, const char *what, const char *name);
/*
 * As client_request(), repeated while the target does not answer or asks for patience.
 * Returns: the status; 0: replica_ends(), or client_is_too_large().
 */
long target_ask(struct target *target, const char *method, const char *path, struct slice body);
/* As target_ask(), for any server. `whom`: "source", "target". */
long replica_ask(struct client *client, const char *whom, const char *method, const char *path, struct slice body);
/* As replica_ask(), but repeated as long as `goes_on` returns true, which is asked before each repetition. */
long replica_ask_while(struct client *client, const char *whom, const char *method, const char *path, struct slice body,
                       bool (*goes_on)(void *context), void *context);
/*
 * Returns: the number of requests that the source has not answered: also where a proxy has answered
 * in its place, on a connection that it keeps.
 */
uint64_t source_hosts_unanswered(const struct source_hosts *hosts);
/* Returns: whether a request with this status is to be repeated. */
bool replica_is_passing(long status);
/*
 * Returns: whether an error says that the target accepts no writes at present: it is full, or was
 * made read-only.
 */
bool replica_is_blocked(yyjson_val *error);
/* Returns: whether the last answer is a proxy's page, whose status says nothing of the server. */
bool replica_is_page(const struct client *client, long status);
/*
 * Returns: whether a status that is not replica_is_blocked() says that the user of the request is
 * unknown, or lacks a privilege.
 */
bool replica_is_forbidden(long status);
#define FORBIDDEN_ADVICE "; correct the user and password of --to, or its privileges, and start the copy again"
/* Sleeps, longer with each try. */
void replica_pause(unsigned tries);

/* --- The identity of the target's indices (replica_identity.c), from any thread; invariant 14 --------------------- */

struct identities *identities_new(void);
void identities_free(struct identities *identities); /* NULL is fine */
/*
 * Reads the uuid of an index of the target that was created or updated now. Assumes: no other
 * thread checks it. Returns: 0; REPLICA_REPLACED, reported: it is missing; the result that ends the
 * program, reported.
 */
int identities_learn(struct identities *identities, struct client *client, const char *name);
/* Assumes: no other thread checks it. */
void identities_forget(struct identities *identities, const char *name);
/* Returns: whether this program has created or updated an index of that name. */
bool identities_has(struct identities *identities, struct slice name);
/*
 * Checks that indices of the target, the keys of `names`, are the known ones. Returns: 0;
 * REPLICA_REPLACED, reported; the result that ends the program, reported.
 */
int identities_check(struct identities *identities, struct client *client, const struct map *names);

/* --- Tombstones (replica_tombstones.c) ---------------------------------------------------------------------------- */

#define TOMBSTONE_FIELD "tidelock_deleted"
#define TOMBSTONE_COPY "-copy" /* suffix of the names of indices with tombstones */
struct replica;
/*
 * Returns: whether a hit or document of the target, with its source, is a tombstone. Tombstones do
 * not count as documents.
 */
bool tombstone_is(yyjson_val *hit);
/* Appends the source of a tombstone. */
void tombstone_write(tl_ts version, struct buf *to);
/* Add the tombstones' field to a mapping; exclude documents with it in the filter of an alias. */
void tombstone_map(yyjson_mut_doc *doc, yyjson_mut_val *mapping);
void tombstone_filter(yyjson_mut_doc *doc, yyjson_mut_val *alias);
/*
 * Returns: 0; REPLICA_FAILED, reported: an index of the source has the name that the copy of
 * another one gets.
 */
int tombstone_check_name(const struct replica *replica, const char *name);
/* Deletes expired tombstones, at intervals. Failures are tried again later. */
void tombstones_end(struct replica *replica);

/* --- Lanes (replica_lanes.c) -------------------------------------------------------------------------------------- */

struct lanes;
struct lanes_counts {
    uint64_t sent;    /* acknowledged documents and deletes */
    uint64_t kept;    /* of these: the target has kept a version at least as new (409) */
    uint64_t refused; /* permanently */
};

struct lanes *lanes_new(const struct replica_options *options, const struct target *target, struct guard *guard,
                        struct suspects *suspects, struct identities *identities);
/* Drops batches that were not sent, and all marks. Ensures: lanes_state() is 0. */
void lanes_restart(struct lanes *lanes);
/* Ends the lanes. Documents that were not sent are dropped. */
void lanes_free(struct lanes *lanes);
/* A document to be sent, or its deletion. */
struct lanes_document {
    struct slice index; /* in the target */
    const char *type;   /* NULL: none */
    struct slice id;
    struct slice routing;          /* data NULL: none */
    struct slice source;           /* data NULL: deletion */
    tl_ts version;                 /* timestamp of its state */
    bool vacates;                  /* deletion of a version under a former routing; invariant 10 */
    const struct replica_key *key; /* in the source; decides the lane */
};
/* Puts a document into its lane's batch. May wait for the lane. */
void lanes_put(struct lanes *lanes, const struct lanes_document *document);
/* The documents put so far are those of the feed up to `covered`. */
void lanes_mark(struct lanes *lanes, tl_ts covered);
/*
 * Returns: the newest `covered` up to which all documents are acknowledged; `place` if that is
 * newer.
 */
tl_ts lanes_covered(struct lanes *lanes, tl_ts place);
/* Waits until no request is under way. Returns: 0; the result that ends the program. */
int lanes_drain(struct lanes *lanes);
/* Returns: 0; the result that ends the program. */
int lanes_state(struct lanes *lanes);
struct lanes_counts lanes_counts(struct lanes *lanes);

/* --- A copy ------------------------------------------------------------------------------------------------------- */

/* A known index of the source. */
struct replica_index {
    char **types; /* names, NULL after the last */
    bool several;
};

/* The last status report to the source, and its time. */
struct source_report {
    const char *state; /* NULL: no report yet */
    tl_ts place;
    uint64_t sent, refused, suspects, mended;
    uint64_t at_us;
    bool refuses_reports; /* of the source */
};

struct replica {
    const struct replica_options *options;
    struct source_hosts *hosts;
    struct client source; /* numbers stay as they are written */
    char *snapshot;       /* the query transaction in which a first copy reads; NULL: reads are of the present */
    struct client feed;
    uint64_t unanswered; /* source_hosts_unanswered() at the last check of the source's lineage */
    struct client report_client;
    struct source_report last_report;
    uint64_t tombstones_us; /* time of the last deletion of expired tombstones, by clock_boot_us() */
    char *source_uuid;
    struct target target;
    struct guard *guard;
    struct lanes *lanes;
    struct suspects *suspects;
    struct identities *identities;
    bool catching_up;     /* with the changes from before it began to follow */
    bool inheriting;      /* documents that are sent may have been under way in a previous run */
    uint64_t aliases_tried_us; /* when target.untaken was looked at, by clock_boot_us() */
    bool superseding;     /* documents go with the timestamp of the read as version, invariant 1 */
    struct place before;  /* the place of the previous run */
    tl_ts reached;        /* the place; 0: unknown */
    tl_ts seen;           /* the newest change of the feed that was read, invariant 15; 0: none */
    bool restored;        /* the source has lost that: everything is to be compared */
    uint64_t index_begun; /* number of documents read before the current index */
    tl_ts index_sent_as;  /* version with which the documents of the current index were sent; 0: their commits' */
    uint64_t mended;      /* suspects that differed and were repaired */
    bool unequal;         /* a comparison of all documents was ended: too many remain different */
    uint64_t newer;       /* documents that the target has kept in place of copied ones, see copy_first() */
    struct map indices;   /* name to struct replica_index */
    struct progress progress;
};

/* --- Reads of the source (replica_source.c) ----------------------------------------------------------------------- */

/* All return 0, or the result that ends the program; errors are reported. */

/* Sends a request until a host answers. Returns: the status; 0: the program is to stop. */
long source_ask(struct client *client, const char *method, const char *path, struct slice body);
/*
 * As source_ask(), for a read of the present: an answer older than the newest known timestamp is
 * discarded, and the host left; invariant 12. Within a transaction no answer is discarded.
 */
long source_ask_present(struct client *client, const char *method, const char *path, struct slice body);
/*
 * As source_ask(), for a GET of the feed after `since`: an answer that covers less than `since` is
 * discarded, and the host left.
 */
long source_ask_since(struct client *client, const char *path, tl_ts since);
/*
 * Reports a host that answered with an older state, leaves it and pauses. Returns: false: the
 * program is to stop.
 */
bool source_leave_lagging(struct client *client, unsigned tries) TL_MUST_USE;
int source_complain(struct client *client, const char *what, const char *name, long status);
/*
 * Puts documents into the lanes in their present state. *ret_read: each was read as of this
 * timestamp or a later one; NULL is allowed.
 */
int source_send(struct replica *replica, const struct replica_key *keys, size_t count, tl_ts *ret_read);
/*
 * Puts a document as a reply shows it, or its deletion if it is not `found`, as of `read`. `key`:
 * the routing under which the target may have another version of it; NULL: none.
 */
void source_put(struct replica *replica, yyjson_val *hit, bool found, const struct replica_key *key, tl_ts read);
/* Whether a document of an answer has the timestamp of its commit, without which it has no version. */
bool source_shows_commit(yyjson_val *hit);
/* Appends the path of an index, such as "/name/_count" with `more` "/_count", and a NUL. */
void replica_index_path(const char *name, const char *more, struct buf *to);
/* Returns: a text of an answer; data NULL: none. */
struct slice replica_text(yyjson_val *object, const char *name);
/* Returns: a number of an answer, also where numbers stay as they are written; 0: none. */
uint64_t replica_number(yyjson_val *object, const char *name);
/* Returns: whether two routings are the same; data NULL: none. */
bool replica_same_routing(struct slice a, struct slice b);

/*
 * Sets replica->restored if the source no longer has the change replica->seen (replica_lineage.c,
 * invariant 15). `unreported`: this run has not reported a place to the source yet. Returns: 0; the
 * result that ends the program, reported.
 */
int lineage_check(struct replica *replica, bool unreported);

/* --- Indices (replica_copy.c) --- */

/*
 * Updates an index in the target to its present state in the source: creates and copies a new one,
 * drops a deleted one.
 */
int copy_see_index(struct replica *replica, struct slice name);
/*
 * Tries aliases again that the target has refused: their own indices may not change for long. `now`:
 * an index was deleted, and its name may be free; else those that were refused in this round are
 * tried, and the others every 30 s.
 */
int copy_retry_aliases(struct replica *replica, bool now);
/*
 * Copies indices that are missing or incomplete in the target, after it has checked that the copy
 * may write to all of them. Returns: 0; the result that ends the program.
 */
int copy_missing(struct replica *replica);
/*
 * Copies all documents of all indices as of one timestamp, and deletes from them in the target what
 * the source does not have. The timestamp is pinned by a query transaction of the guard's session,
 * so the history keeps it until the copy is complete, and ends with the program. Where the source
 * has lost the transaction, the copy begins anew with a later timestamp. *ret_since: the timestamp;
 * the feed is to be followed from here.
 * Whenever an index is copied that was in the target before, documents there whose versions are
 * above the source's present timestamp are reported and counted in replica->newer: the target keeps
 * them, since another program has written them.
 */
int copy_first(struct replica *replica, tl_ts *ret_since);
/* Returns: whether the last reply says that the request's transaction no longer exists. */
bool source_lost_snapshot(const struct replica *replica, const struct client *client);
/*
 * Drops from the target the indices of this copy that the source no longer has. Returns: 0; the
 * result that ends the program.
 */
int copy_drop_gone(struct replica *replica);
void copy_forget(struct replica *replica);
/*
 * Reads the source's indices, without changes in the target. *ret_names: NULL after the last. Owns:
 * the caller, *ret_names.
 */
int copy_look(struct replica *replica, char ***ret_names);
/*
 * The number of indices of the target that an index of the source is copied to, and the name of
 * each.
 */
size_t copy_count_names(const struct replica *replica, const char *name);
void copy_write_name(const struct replica *replica, const char *name, size_t at, struct buf *to);
/*
 * Walks the documents of an index as of one timestamp. `visit` gets the hits of a page, at most
 * `page` with an id each, and `version`: the timestamp, of a Tidelock. It returns 0 to continue.
 * A walk that is cut off, by a restart for example, or whose pages are too large, begins again;
 * `begin`, unless NULL, is called before each attempt. A missing index has no documents.
 * Returns: 0; the result of `visit`; the result that ends the program, reported.
 */
enum { WALK_HITS = 500 };
struct walk {
    struct client *client;
    const char *whom;
    const char *index;
    size_t page; /* 0: WALK_HITS. Smaller where the server does not allow it */
    enum { WALK_IDS, WALK_TOMBSTONES /* of _source only what tombstone_is() reads */, WALK_SOURCES } what;
    bool versions; /* _version; of the source _commit_timestamp, always */
    void (*begin)(void *context);
    int (*visit)(void *context, yyjson_val *hits, tl_ts version);
    const struct replica *replica; /* its snapshot is read; NULL: the present */
    void *context;
};
int copy_walk(struct walk *walk);

/*
 * Compares both sides, with `content` also sources, and with `repair` repairs the differences
 * (replica_verify.c). Returns: 0:
 * they are equal, or have become equal; REPLICA_FAILED.
 */
int verify(struct replica *replica);
/*
 * Compares documents, and repairs those that differ when no request is under way. *ret_mended:
 * their number, without those whose versions in the target are above the source's timestamp.
 */
int verify_some(struct replica *replica, const struct replica_key *keys, size_t count, size_t *ret_mended);
/*
 * Does the same for all documents, silently. If more documents stay different than it can hold, it
 * prints a message, sets replica->unequal, and returns 0.
 * Assumes: no other program changes the copy.
 */
int verify_whole(struct replica *replica, size_t *ret_mended);

/* Hashes of documents, ascending. */
struct document_set {
    uint64_t *hashes;
    size_t count;
};
/*
 * Compares all documents slowly, concurrently with the following thread, whose `suspects` the
 * differences become, except those with versions above the source's timestamp, which the target
 * keeps. These are reported unless they are in `reported`.
 * Ensures: after success `reported` has those that were found. Owns: the caller, its hashes.
 */
int verify_slowly(struct replica *replica, struct suspects *suspects, struct document_set *reported);

/* Does that periodically (replica_audit.c), until replica_stop(). */
struct audit;
struct audit *audit_new(const struct replica *replica);
/* Requires: replica_stopping(). NULL is fine. */
void audit_free(struct audit *audit);

/*
 * Reports the copy's status to the source (replica_report.c), at intervals, or at once when the state
 * has changed: "copying", "following", "ended". `place` 0: unknown.
 */
void report_status(struct replica *replica, const char *state, tl_ts place);
/* Reports the result of a comparison of everything. */
void report_comparison(struct replica *replica, tl_ts as_of, uint64_t differences);

/*
 * Follows the feed (replica_follow.c), with `once` up to the present.
 * Returns: 0; REPLICA_STOPPED: with `once` a signal came before the present was reached; other codes.
 */
int follow(struct replica *replica, tl_ts since);

#endif
