/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a server's documents in another one, kept up to date by the feed: what the files of `tidelock replicate` share.
 *
 *     source ─(_changes: which documents)─▶ follow ─(_mget: as they are now)─▶ lanes ─(_bulk, external versions)─▶ target
 *
 * Invariants (cited by number):
 *  1. What is sent is the state of a document as of a timestamp that was stable when it was read, with that timestamp as external version. So of two
 *     states the target keeps the newer, whatever the order in which they arrive, and of the program that sends them; that it has as new a one (409) is as good.
 *  2. A change says only that a document changed. What is read of it is the newest state: nothing that was ever sent again brings back an older one.
 *  3. The place is a timestamp: all changes up to it are acknowledged by the target, or refused permanently and recorded there. It is kept in the
 *     target, with itself as external version, so it never goes back.
 *  4. A document belongs to one lane, and a lane has one request in the air, which it repeats until its outcome is known.
 *  5. Nothing is sent without the lock: it is held by a session of ours, and while its lease is not certain, the lanes wait.
 *  6. A document of a request whose outcome was not known at some time is a suspect: a request that was given up may be worked off late, after the target has
 *     forgotten the version of a delete (`index.gc_deletes`, or a restart). When `--suspect-time` has passed it is compared, and mended. Who goes on after
 *     another life takes over its suspects: the place says from where in the feed they are; and all that the other may have had in the air is suspect.
 *  7. The target keeps versions of deletes for an hour at least (`index.gc_deletes`), so that only a restart of it within a late request is left to 6.
 *  8. What the target answers is believed only where it has the form of what was asked, in number and in names. An answer that has not is none: what was sent is sent
 *     again, what was read ends the program with a reason.
 *  9. An index of the target says in its mapping that it is not whole from when it is made until what the source had before is in it, so who goes on after a kill copies that.
 * 10. A target with shards keeps documents of one id under different routings apart. So a version under a routing that the
 *     document no longer has is deleted there. The deletion's external version is one below that of the document: where both
 *     are in one shard they are one document, and the newer state remains.
 * 11. The source is one cluster, and any of its hosts that are named is asked. All threads ask the same one; when it does
 *     not answer, the next one. A host is asked only after it has shown the source's cluster_uuid. The lock's session is attached to
 *     the new host before it is detached from the old one.
 * 12. Every read of the present is as of a timestamp that is not before the newest one that any host has named to this
 *     program, in the answer that granted the lock or later: requests carry it as Tidelock-After, and an older answer is discarded. So a host that lags
 *     is waited for or left: it neither hides a change from the place nor shows a state older than one that was sent,
 *     also by the program that had the lock before.
 */
#ifndef TL_CLI_REPLICA_H
#define TL_CLI_REPLICA_H

#include "base/map.h"
#include "base/types.h"
#include "cli/client.h"
#include "cli/progress.h"

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
    bool leave_settings;      /* of the target's indices, see invariant 7 */
    bool tombstones;          /* see replica_tombstones.c */
    uint64_t tombstone_us;    /* how long they are kept */
    uint64_t suspect_us;      /* see invariant 6 */
    uint64_t verify_every_us; /* 0: never */
    bool verify;
    bool repair;
    bool json;
    bool quiet;
};

/* What ends it; else 0. */
enum {
    REPLICA_FAILED = 1,
    REPLICA_STOPPED = 2, /* by a signal; never an exit status */
    REPLICA_ANEW = 3,    /* the snapshot of a first copy is lost; never an exit status */
    REPLICA_TAKEN = 75,  /* EX_TEMPFAIL: another one runs, or has run since */
    REPLICA_LOST = 76,   /* the lock was lost */
};

/* Set by SIGTERM, SIGINT, and replica_stop(). */
bool replica_stopping(void);
/* That was some seconds ago: no answer is waited for any more. */
bool replica_gives_up(const struct client *client);
void replica_stop(void);

/* --- The lock (replica_guard.c) ------------------------------------------------------------------------------------- */

struct guard;
struct source_hosts;
/* Opens a session in the source that holds the lock of that name. Returns: 0; REPLICA_TAKEN, REPLICA_FAILED, which is told. */
int guard_new(struct source_hosts *hosts, const char *name, struct guard **ret_guard);
/* Closes the session. NULL is fine. */
void guard_free(struct guard *guard);
/* Returns: the id of the session; lives with the guard. */
const char *guard_session(const struct guard *guard);
/* Waits until the lease is certain. Returns: false when it is lost for good. */
bool guard_await(struct guard *guard);

/* --- The source's hosts (replica_hosts.c), from any thread; invariants 11 and 12 ------------------------------------------ */

struct source_hosts;
/* `urls`: separated by commas, at least one that is not empty. Owns: the caller; source_hosts_free(). */
struct source_hosts *source_hosts_new(const char *urls);
/* Requires: no client of it is left. NULL is fine. */
void source_hosts_free(struct source_hosts *hosts);
size_t source_hosts_count(const struct source_hosts *hosts);
/* Returns: the URL of the host that is asked now; lives with the hosts. */
const char *source_hosts_url(const struct source_hosts *hosts);
/* The current host is of the source, whose cluster_uuid this is. Requires: no other thread uses the hosts yet. */
void source_hosts_set_uuid(struct source_hosts *hosts, const char *uuid);
/* Returns: the newest timestamp that any host has named; 0: none has. */
tl_ts source_hosts_newest(const struct source_hosts *hosts);
/* Has the next host asked from now on, if `url` is the current one's. */
void source_hosts_leave(struct source_hosts *hosts, const char *url);
/* Owns: the caller; client_deinit(). Requires: the hosts outlive it. */
void source_client_init(struct client *client, struct source_hosts *hosts);
/*
 * Has client_request() ask the current host, after that has been asked once which cluster it is of.
 * Returns: false when it does not say so, or is of another one: it is left.
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
    bool placed;          /* `routing` is known, also where it is none */
    bool vacates; /* the document is not sent: only a version under another routing than its present one is deleted */
};

/* --- Suspects (replica_suspects.c), from any thread; invariant 6 ------------------------------------------------------------ */

struct suspects;
struct suspects_state {
    size_t count;
    bool whole;       /* all documents are suspect */
    tl_ts since;      /* the feed behind it tells of all of them; TL_TS_MAX: of none */
    uint64_t left_us; /* until the last one comes due */
};

struct suspects *suspects_new(uint64_t time_us);
void suspects_free(struct suspects *suspects); /* NULL is fine */
/* What is added from now on has changes behind it. 0: the feed will not tell of it. */
void suspects_set_place(struct suspects *suspects, tl_ts place);
void suspects_add(struct suspects *suspects, const struct replica_key *key);
/* One that is to be looked at now. */
void suspects_add_due(struct suspects *suspects, const struct replica_key *key);
/* Of a life before this one; `left_us`: until they come due, at most the time that suspects have. */
void suspects_add_inherited(struct suspects *suspects, const struct replica_key *key, tl_ts since, uint64_t left_us);
void suspects_add_whole(struct suspects *suspects, uint64_t left_us);
/* Returns: how many are due, up to `room`. The keys live until they are acquitted, by the same thread. */
size_t suspects_take_due(struct suspects *suspects, struct replica_key *ret_keys, size_t room, uint64_t *ret_number);
/* Those that were not added again since they were taken. */
void suspects_acquit(struct suspects *suspects, const struct replica_key *keys, size_t count, uint64_t number);
bool suspects_take_whole(struct suspects *suspects);
void suspects_acquit_whole(struct suspects *suspects, uint64_t begun_us);
struct suspects_state suspects_state(struct suspects *suspects);

/* --- The target (replica_target.c) ---------------------------------------------------------------------------------- */

/* How large answers may be: to what was sent; of documents that are read at once, several and one. */
#define REPLICA_ANSWER_BYTES ((size_t)64 << 20)
#define REPLICA_DOCUMENT_BYTES ((size_t)1 << 30)

struct target {
    const struct replica_options *options;
    struct client client;
    unsigned major; /* version; an OpenSearch counts as 7 */
};

/* Waits for a server that is away. Returns: 0 or what ends the program, told. */
int target_open(struct target *target, const struct replica_options *options);
void target_close(struct target *target);

/* Returns: the type of a document there, where it has types; else NULL. */
const char *target_type(const struct target *target, const char *type);

/* Up to where the copy is, and what is left to be done of what is before that. */
struct place {
    tl_ts ts;                  /* 0: there is none */
    bool clean;                /* nothing was under way any more */
    bool tombstones;           /* deletes are documents there */
    tl_ts suspects;            /* the feed behind it tells of all suspects; `ts`: there are none */
    bool whole;                /* all documents are suspects */
    uint64_t suspects_left_us; /* until the last one comes due */
};
/* `source`: its uuid. */
int target_read_place(struct target *target, const char *source, struct place *ret_place);
int target_write_place(struct target *target, const char *source, const struct place *place);

/* What an index of the target was, invariant 9. In this order: of several the last one counts. */
enum target_had {
    TARGET_WHOLE, /* it has all that the source had before the place */
    TARGET_MADE,  /* it was made now: there was none, or that of another index of this name */
    TARGET_PART,  /* who made it did not come to its end */
};
/*
 * Sees to it that the target has an index, or several where it has types that the target has not, as the source has it. `definition`: of
 * GET /{index}. What is not whole says so until target_end_index().
 */
int target_put_index(struct target *target, const char *index, yyjson_val *definition, enum target_had *ret_had);
int target_end_index(struct target *target, const char *index, yyjson_val *definition);
/* The source has it no more: an index of the target by its name there, if it is a copy. */
int target_drop_index(struct target *target, const char *name);
/* Does the same with each index of this copy that is a copy of an index not in `uuids`, the keys of a map. */
int target_drop_gone(struct target *target, const struct map *uuids);
/* Appends the name in the target of where documents of a type go. `several`: the index has several types. */
void target_name(const struct target *target, const char *index, const char *type, bool several, struct buf *to);

/* For an answer that is not of the form of what was asked. Returns: REPLICA_FAILED, told. */
int replica_disbelieve(const char *whom, const char *what, const char *name);
/* As client_request(), until there is an answer that is more than `later`. Returns: the status; 0: it is to stop, or client_is_too_large(). */
long target_ask(struct target *target, const char *method, const char *path, struct slice body);
/* The same, of any server; `whom`: "source", "target". */
long replica_ask(struct client *client, const char *whom, const char *method, const char *path, struct slice body);
/* Whether a status says that the same is to be tried again. */
bool replica_is_passing(long status);
/* Whether an error says that the target takes nothing now: it is full, or was made read-only. That ends by itself or by an operator. */
bool replica_is_blocked(yyjson_val *error);
/* Waits a while, longer each time. */
void replica_pause(unsigned tries);

/* --- Tombstones (replica_tombstones.c) ------------------------------------------------------------------------------ */

#define TOMBSTONE_COPY "-copy" /* behind the names of indices that have them */
struct replica;
/* Whether a hit or document of the target, with its source, is one: it counts as no document. */
bool tombstone_is(yyjson_val *hit);
/* Appends the source of one. */
void tombstone_write(tl_ts version, struct buf *to);
/* Adds the field to a mapping; to the filter of an alias that it is not there. */
void tombstone_map(yyjson_mut_doc *doc, yyjson_mut_val *mapping);
void tombstone_filter(yyjson_mut_doc *doc, yyjson_mut_val *alias);
/* Returns: 0; REPLICA_FAILED, told: an index of the source has the name that the copy of another one gets. */
int tombstone_check_name(const struct replica *replica, const char *name);
/* Deletes those that are old enough, now and then. What fails is tried again later. */
void tombstones_end(struct replica *replica);

/* --- Lanes (replica_lanes.c) ---------------------------------------------------------------------------------------- */

struct lanes;
struct lanes_figures {
    uint64_t sent;    /* documents that the target has, deletes among them */
    uint64_t refused; /* for good */
};

struct lanes *lanes_new(const struct replica_options *options, const struct target *target, struct guard *guard,
                        struct suspects *suspects);
/* What has not been sent is not. */
void lanes_free(struct lanes *lanes);
/*
 * A document as of a timestamp. `index`: in the target; `source` with data NULL: it is gone. May wait. `key`: of its place in the source,
 * so that it always goes the same way.
 */
struct lanes_document {
    struct slice index;
    const char *type; /* NULL: none */
    struct slice id;
    struct slice routing; /* data NULL: none */
    struct slice source;
    tl_ts version;
    bool vacates;                  /* a version under a former routing is deleted; invariant 10 */
    const struct replica_key *key; /* what it is in the source */
};
void lanes_put(struct lanes *lanes, const struct lanes_document *document);
/* All that was put by now belongs to a part of the feed up to here. */
void lanes_mark(struct lanes *lanes, tl_ts covered);
/* Returns: up to where all is acknowledged that was put before; `place` where that is no more than it. */
tl_ts lanes_covered(struct lanes *lanes, tl_ts place);
/* Waits until nothing is under way. Returns: 0, or what ends the program. */
int lanes_drain(struct lanes *lanes);
/* Returns: what ends the program, once something does. */
int lanes_state(struct lanes *lanes);
struct lanes_figures lanes_figures(struct lanes *lanes);

/* --- A copy ------------------------------------------------------------------------------------------------------------- */

/* What is known of an index of the source. */
struct replica_index {
    char **types; /* names, NULL behind the last */
    bool several;
};

/* What was told last, and when. */
struct told {
    const char *state; /* NULL: nothing yet */
    tl_ts place;
    uint64_t sent, refused, suspects, mended;
    uint64_t at_us;
    bool unheard; /* the source does not take it */
};

struct replica {
    const struct replica_options *options;
    struct source_hosts *hosts;
    struct client source; /* numbers stay as they are written */
    char *snapshot;       /* the query transaction in which a first copy reads; NULL: reads are of the present */
    struct client feed;
    struct client teller;
    struct told told;
    uint64_t tombstones_us; /* when their end was looked after, by clock_boot_us() */
    char *source_uuid;
    struct target target;
    struct guard *guard;
    struct lanes *lanes;
    struct suspects *suspects;
    bool catching_up;     /* with what was there when it began to follow */
    bool inheriting;      /* what is sent was in the air of a life before, perhaps */
    struct place before;  /* that it left */
    uint64_t index_begun; /* documents that were read when the reading of an index began */
    uint64_t mended;      /* suspects that were not as they are in the source */
    bool unequal;         /* a comparison of all documents was ended: too many stay different */
    struct map indices;   /* name to struct replica_index */
    struct progress progress;
};

/* Of the source (replica_source.c). All return 0, or what ends the program, which is told. */

/* Waits for a host that is there. Returns: the status; 0: it is to stop. */
long source_ask(struct client *client, const char *method, const char *path, struct slice body);
/*
 * As source_ask(), for a read of the present: an answer older than the newest known timestamp is discarded, and the host
 * left; invariant 12. Within a transaction no answer is discarded.
 */
long source_ask_present(struct client *client, const char *method, const char *path, struct slice body);
/* As source_ask(), for a GET of the feed after `since`: an answer that covers less than `since` is discarded, and the host left. */
long source_ask_since(struct client *client, const char *path, tl_ts since);
/* Reports a host that answered with an older state, leaves it and pauses. Returns: false: the program is to stop. */
bool source_leave_lagging(struct client *client, unsigned tries) TL_MUST_USE;
int source_complain(struct client *client, const char *what, const char *name, long status);
/*
 * Puts documents into the lanes as they are now. *ret_read: a timestamp as of which, or of a later one, each was read; NULL is
 * fine.
 */
int source_send(struct replica *replica, const struct replica_key *keys, size_t count, tl_ts *ret_read);
/*
 * Puts a document as a reply shows it, or where it is not `found` its deletion. `key`: where the target may have another
 * version of it; NULL: nowhere.
 */
void source_put(struct replica *replica, yyjson_val *hit, bool found, const struct replica_key *key, tl_ts version);
/* Returns: whether two routings are the same; data NULL: none. */
bool replica_same_routing(struct slice a, struct slice b);

/* Of indices (replica_copy.c) */

/* Sees to an index as it is in the source now; one that the target has not had is copied, one that is gone is dropped. */
int copy_see_index(struct replica *replica, struct slice name);
/*
 * Copies indices that the target does not have, or not whole.
 * Returns: 0, or what ends the program.
 */
int copy_missing(struct replica *replica);
/*
 * Copies all documents of all indices as of one timestamp, and deletes from them in the target what the source does not have.
 * The timestamp is pinned by a query transaction of the guard's session, so the history keeps it until the copy is complete,
 * and ends with the program. Where the source has lost the transaction, the copy begins anew with a later timestamp.
 * *ret_since: the timestamp; the feed is to be followed from here.
 */
int copy_first(struct replica *replica, tl_ts *ret_since);
/* Returns: whether the last reply says that the transaction that was named is no more. */
bool source_lost_snapshot(const struct replica *replica, const struct client *client);
/* Drops from the target the indices of this copy that the source no longer has. Returns: 0, or what ends the program. */
int copy_drop_gone(struct replica *replica);
void copy_forget(struct replica *replica);
/* What is in the indices of the source, without anything being done to the target. *ret_names: NULL behind the last; the caller's. */
int copy_look(struct replica *replica, char ***ret_names);
/* In how many indices of the target one of the source is, and their names. */
size_t copy_count_names(const struct replica *replica, const char *name);
void copy_write_name(const struct replica *replica, const char *name, size_t at, struct buf *to);
/*
 * Walks the documents of an index as of one moment. `visit` has the hits of a page, at most WALK_HITS with an id each, and returns 0 to go on. A walk that is cut off, by a
 * restart say, or whose pages are too large, begins again; `begin`, where it is not NULL, is called before each one. Returns: 0; what `visit` has returned; what
 * ends the program, told. An index that is not there has none. `version`: the moment, of a Tidelock.
 */
enum { WALK_HITS = 500 };
struct walk {
    struct client *client;
    const char *whom;
    const char *index;
    bool sources;
    void (*begin)(void *context);
    int (*visit)(void *context, yyjson_val *hits, tl_ts version);
    const struct replica *replica; /* whose snapshot is read; NULL: the present is */
    void *context;
};
int copy_walk(struct walk *walk);

/* Compares both sides, and with `repair` mends what differs (replica_verify.c). Returns: 0 they are equal; REPLICA_FAILED. */
int verify(struct replica *replica);
/* Compares documents, and mends those that differ when nothing is under way. *ret_mended: how many were. */
int verify_some(struct replica *replica, const struct replica_key *keys, size_t count, size_t *ret_mended);
/*
 * Does the same for all documents, silently. If more documents stay different than it can hold, it
 * prints a message, sets replica->unequal, and returns 0.
 * Requires: no other program changes the copy.
 */
int verify_whole(struct replica *replica, size_t *ret_mended);

/* The same beside who follows, slowly, with connections of its own; what differs becomes suspects of the other one. */
int verify_slowly(struct replica *replica, struct suspects *suspects);

/* Does that again and again (replica_audit.c). Ends by replica_stop(). */
struct audit;
struct audit *audit_new(const struct replica *replica);
/* Requires: replica_stopping(). NULL is fine. */
void audit_free(struct audit *audit);

/*
 * Tells the source how far the copy is (replica_told.c), now and then, or at once when the state is another: "copying", "following", "ended". `place` 0: it is
 * not known.
 */
void tell_source(struct replica *replica, const char *state, tl_ts place);
/* What a comparison of everything has found. */
void tell_verified(struct replica *replica, tl_ts as_of, uint64_t differences);

/* Follows the feed (replica_follow.c), with `once` up to the present. */
int follow(struct replica *replica, tl_ts since);

#endif
