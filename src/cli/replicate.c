/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock replicate`: a copy in an Elasticsearch, kept up to date; replica.h has how. */
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

enum {
    OPTION_FROM = 256,
    OPTION_TO,
    OPTION_INDEX,
    OPTION_PREFIX,
    OPTION_NAME,
    OPTION_LANES,
    OPTION_ONCE,
    OPTION_DELETE,
    OPTION_LEAVE,
    OPTION_TAKE_OVER,
    OPTION_SUSPECT,
    OPTION_EVERY,
    OPTION_TOMBSTONES,
    OPTION_TOMBSTONE_TIME,
    OPTION_BATCH,
    OPTION_VERIFY,
    OPTION_REPAIR,
    OPTION_CONTENT,
    OPTION_JSON
};
enum { LANES_DEFAULT = 4, LANES_MAX = 64, NAME_BYTES_MAX = 255 /* as the source takes in its list of copies */ };

#define TOMBSTONE_US_DEFAULT (7 * 86400 * TL_SECOND)
#define SUSPECT_US_DEFAULT (900 * TL_SECOND)
#define VERIFY_EVERY_US_DEFAULT (6 * 3600 * TL_SECOND)

static const struct argp_option options[] = {
    {"to", OPTION_TO, "URL", 0, "The Elasticsearch (5.6 to 9), OpenSearch or Tidelock that gets the copy", 1},
    {"from", OPTION_FROM, "URL,...", 0,
     "The server to copy, or several hosts of a cluster: when one does not answer, the next one is used "
     "(" ARGUMENTS_URL_DEFAULT ")",
     1},
    {"url", OPTION_FROM, "URL", OPTION_ALIAS | OPTION_HIDDEN, NULL, 1},
    {"index", OPTION_INDEX, "NAME,...", 0, "Names and patterns of the indices to copy (all)", 1},
    {"prefix", OPTION_PREFIX, "TEXT", 0, "Text before the names of indices and aliases in the target (none)", 1},
    {"name", OPTION_NAME, "NAME", 0, "Distinguishes several copies of one source; at most 255 bytes (default)", 1},
    {"once", OPTION_ONCE, NULL, 0, "End when everything up to the present is copied", 1},
    {"verify", OPTION_VERIFY, NULL, 0,
     "Compare both sides by ids and versions, and report each document of the target that is missing, extra, older, "
     "different or newer; nothing is changed, and a copy may run at the same time",
     1},
    {"repair", OPTION_REPAIR, NULL, 0, "Compare as --verify does, send documents that differ again, and compare them",
     1},
    {"content", OPTION_CONTENT, NULL, 0, "Compare the contents of all documents, too", 1},
    {"json", OPTION_JSON, NULL, 0, "Print the result of --verify as JSON", 1},
    {"delete-indices", OPTION_DELETE, NULL, 0,
     "Delete indices that were deleted in the source; without it they are closed", 1},
    {"take-over", OPTION_TAKE_OVER, NULL, 0,
     "Also use indices of the target that have documents and were not made by a copy, and delete from them what the "
     "source does not have",
     1},
    {"leave-settings", OPTION_LEAVE, NULL, 0, "Do not raise index.gc_deletes of the target's indices to 1h", 1},
    {"tombstones", OPTION_TOMBSTONES, NULL, 0,
     "Store each delete as a document in INDEX-copy, which the alias INDEX excludes, so that no late request can "
     "restore the deleted document",
     1},
    {"lanes", OPTION_LANES, "N", 0, "Number of concurrent requests to the target (4)", 2},
    {"batch", OPTION_BATCH, "SIZE", 0, "Size of a request to the target (2m)", 2},
    {"suspect-time", OPTION_SUSPECT, "TIME", 0,
     "How long the target may still execute a request whose answer was lost; then its documents are compared "
     "(15m)",
     2},
    {"tombstone-time", OPTION_TOMBSTONE_TIME, "TIME", 0, "How long documents of --tombstones are kept (7d)", 2},
    {"verify-every", OPTION_EVERY, "TIME", 0,
     "Interval of the slow comparison of both sides while following, which repairs differences; 0: never (6h)", 2},
    {"quiet", 'q', NULL, 0, "Print only warnings and errors", 2},
    CLIENT_OPTIONS(3),
    {0},
};

static const char doc[] =
    "Copy a server's documents into an Elasticsearch, and keep the copy up to date: first everything as of one "
    "timestamp, then all changes, in the order of their commits. It may be killed and started again at any time, on "
    "any machine: its place is kept in the target, in the index .tidelock-replicate, and a lock in the source prevents "
    "two copies of one --name at a time.\v"
    "A document that the target refuses permanently is reported, and the reason is kept in the target's index "
    ".tidelock-replicate-refused.\n\n"
    "Exit status: 75 if another one of this --name runs, or has run since; 76 if the lock was lost; 130 or 143 if ^C "
    "or SIGTERM has stopped --once, --verify or --repair before the end. --verify: 0 if both sides are equal, else 1. "
    "--repair: 0 if both sides are equal after it, else 1.\n\n"
    "Examples:\n"
    "  tidelock replicate --to http://localhost:9201\n"
    "  tidelock replicate --to http://localhost:9201 --name live \\\n"
    "      --prefix live- --index 'fs,logs-*'\n"
    "  tidelock replicate --to http://localhost:9201 --once\n"
    "  tidelock replicate --from http://a:9200,http://b:9200,http://c:9200 \\\n"
    "      --to http://localhost:9201\n"
    "  tidelock replicate --to http://localhost:9201 --verify\n"
    "  tidelock replicate --to http://localhost:9201 --verify --content\n";

#define LAST_ANSWERS_US (5 * TL_SECOND)

static _Atomic bool stopping;       /* read by all lanes */
static _Atomic int stop_signal;     /* the last one; 0: none */
static _Atomic uint64_t stopped_us; /* when that was seen first, by clock_boot_us() */

static void on_signal(int number)
{
    atomic_store(&stop_signal, number);
    atomic_store(&stopping, true);
}

void replica_stop(void)
{
    atomic_store(&stopping, true);
}

void replica_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    flockfile(stderr);
    progress_clear();
    fputs("tidelock replicate: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    funlockfile(stderr);
    va_end(arguments);
}

bool replica_stopping(void)
{
    return atomic_load(&stopping);
}

bool replica_ends(const struct client *client)
{
    return replica_stopping() || (client->cancelled != NULL && atomic_load(client->cancelled));
}

bool replica_gives_up(const struct client *client)
{
    uint64_t since = 0, now = clock_boot_us();
    if (!replica_stopping())
        return replica_ends(client);
    return !atomic_compare_exchange_strong(&stopped_us, &since, now) && now - since > LAST_ANSWERS_US;
}

static error_t parse_replicate_option(int key, char *text, struct argp_state *state)
{
    struct replica_options *o = state->input;
    switch (key) {
    case OPTION_FROM: o->from = text; break;
    case OPTION_TO: o->to = text; break;
    case OPTION_INDEX: o->index = text; break;
    case OPTION_PREFIX: o->prefix = text; break;
    case OPTION_NAME:
        if (*text == '\0' || strlen(text) > NAME_BYTES_MAX)
            arguments_error(state, "--name has %zu bytes; a copy's name has from 1 to %d", strlen(text),
                            NAME_BYTES_MAX);
        o->name = text;
        break;
    case OPTION_ONCE: o->once = true; break;
    case OPTION_VERIFY: o->verify = true; break;
    case OPTION_REPAIR: o->repair = true; break;
    case OPTION_CONTENT: o->content = true; break;
    case OPTION_JSON: o->json = true; break;
    case OPTION_DELETE: o->delete_indices = true; break;
    case OPTION_TAKE_OVER: o->take_over = true; break;
    case OPTION_LEAVE: o->leave_settings = true; break;
    case OPTION_SUSPECT: o->suspect_us = arguments_duration(state, "suspect-time", text); break;
    case OPTION_TOMBSTONES: o->tombstones = true; break;
    case OPTION_TOMBSTONE_TIME: o->tombstone_us = arguments_duration(state, "tombstone-time", text); break;
    case OPTION_EVERY:
        o->verify_every_us = strcmp(text, "0") == 0 ? 0 : arguments_duration(state, "verify-every", text);
        break;
    case OPTION_LANES: o->lanes = (unsigned)arguments_number(state, "lanes", text, 1, LANES_MAX); break;
    case OPTION_BATCH: o->batch_bytes = arguments_size(state, "batch", text); break;
    case 'q': o->quiet = true; break;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is no option; --to names the target", text); break;
    case ARGP_KEY_END:
        if (strspn(o->from, ",/") == strlen(o->from))
            arguments_error(state, "--from names no server");
        if (o->to == NULL)
            arguments_error(state, "--to is missing: the URL of the server that gets the copy");
        break;
    default: return client_option(key, text);
    }
    return 0;
}

/* Returns: the source's cluster_uuid, as the last answer shows it; NULL: it is not a Tidelock's. */
static const char *uuid_of(const struct replica *replica)
{
    yyjson_val *about = client_json(&replica->feed);
    return yyjson_obj_get(about, "tidelock") == NULL ? NULL : yyjson_get_str(yyjson_obj_get(about, "cluster_uuid"));
}

/*
 * Asks the hosts which source it is, one after another. A source is known by its uuid, however its
 * address changes.
 */
static int read_source(struct replica *replica)
{
    long status = 0;
    const char *uuid = NULL;
    for (size_t i = 0; uuid == NULL && i < source_hosts_count(replica->hosts); i++) {
        status = source_request(&replica->feed, "GET", "/", SLICE_NONE, 10 * TL_SECOND);
        uuid = status == 200 ? uuid_of(replica) : NULL;
        if (uuid == NULL)
            source_hosts_leave(replica->hosts, replica->feed.url);
    }
    if (status != 200) {
        replica_print("the source: %s", client_error(&replica->feed, status));
        return client_exit(status);
    }
    if (uuid == NULL) {
        replica_print("%s is no Tidelock; --from names the source, --to the target",
                      escape_terminal(replica->feed.url));
        return REPLICA_FAILED;
    }
    replica->source_uuid = mem_strdup(uuid, strlen(uuid));
    source_hosts_set_uuid(replica->hosts, uuid);
    return 0;
}

/* A copy into itself would feed on itself. */
static int refuse_itself(struct replica *replica)
{
    long status = target_ask(&replica->target, "GET", "/", SLICE_NONE);
    const char *uuid = yyjson_get_str(yyjson_obj_get(client_json(&replica->target.client), "cluster_uuid"));
    if (status != 200 || uuid == NULL || strcmp(uuid, replica->source_uuid) != 0)
        return 0;
    replica_print("--to is the source itself");
    return REPLICA_FAILED;
}

/*
 * Writes the place of the previous run again, before this run sends documents, and after a repair.
 * `clean`: no request of this run is under way. So documents of a run that is killed before it
 * writes a place of its own are taken over, too (invariant 6). If there was no place, copy_each()
 * has claimed one.
 */
static int write_place_again(struct replica *replica, bool clean)
{
    struct place place = replica->before;
    struct suspects_state suspects = suspects_state(replica->suspects);
    if (place.ts == 0)
        return 0;
    place.clean = place.clean && clean;
    place.restored = place.restored || replica->restored;
    place.whole = place.whole || suspects.whole;
    if (suspects.left_us > place.suspects_left_us)
        place.suspects_left_us = suspects.left_us;
    return target_write_place(&replica->target, replica->source_uuid, &place);
}

/*
 * Reads the place of the previous run, and whether the source still has the changes from before it.
 * If it has not, the place says so before this run reports anything to the source.
 */
static int read_place(struct replica *replica)
{
    struct place *before = &replica->before;
    int r = target_read_place(&replica->target, replica->source_uuid, before);
    replica->reached = before->ts;
    replica->seen = before->seen;
    replica->restored = before->restored;
    replica->unanswered = source_hosts_unanswered(replica->hosts);
    replica->feed.connected = false; /* what comes is compared with the place */
    r = r == 0 ? lineage_check(replica, true) : r;
    if (r == 0 && replica->restored && !before->restored)
        r = write_place_again(replica, false);
    return r;
}

/*
 * Indices created while no copy ran, and those whose copy was deleted, are copied before the feed
 * is followed.
 */
static int copy_and_follow(struct replica *replica, struct audit **audit)
{
    struct place *before = &replica->before;
    int r = read_place(replica);
    bool first = before->ts == 0;
    tl_ts since = before->ts;
    if (r == 0)
        report_status(replica, "copying", before->ts);
    if (r == 0 && before->clean && !first)
        r = write_place_again(replica, false);
    if (r == 0)
        r = first ? copy_first(replica, &since) : copy_missing(replica);
    struct suspects_state suspects = suspects_state(replica->suspects);
    if (r == 0 && first)
        r = target_write_place(
            &replica->target, replica->source_uuid,
            &(struct place){
                .ts = since, .suspects = since, .whole = suspects.whole, .suspects_left_us = suspects.left_us});
    if (r == 0 && !replica->options->once && !replica->options->quiet)
        replica_print("following from %llu", (unsigned long long)since);
    if (r != 0)
        return r;
    if (*audit == NULL && !replica->options->once && replica->options->verify_every_us > 0)
        *audit = audit_new(replica);
    return follow(replica, since);
}

/*
 * Copies indices that the target lacks, so that none is created by a document, and refuses those
 * that the copy may not have; then compares and repairs.
 */
static int repair_target(struct replica *replica)
{
    int r = target_read_place(&replica->target, replica->source_uuid, &replica->before);
    if (r == 0)
        r = write_place_again(replica, false);
    if (r != 0)
        return r;
    r = copy_missing(replica);
    r = r == 0 ? verify(replica) : r;
    if (lanes_drain(replica->lanes) != 0) /* a request may be under way */
        return r;
    int kept = write_place_again(replica, true);
    return r == 0 ? kept : r;
}

/*
 * Makes the copy, or repairs it. Begins again when an index of the target was replaced: documents
 * that were not acknowledged are sent again.
 */
static int write_target(struct replica *replica)
{
    struct audit *audit = NULL;
    int r;
    for (unsigned tries = 1;; tries++) {
        r = replica->options->repair ? repair_target(replica) : copy_and_follow(replica, &audit);
        if (r != REPLICA_REPLACED || replica_stopping())
            break;
        replica_print("the copy begins again from its place");
        lanes_restart(replica->lanes);
        copy_forget(replica);
        replica->indices = MAP_INIT;
        replica->inheriting = replica->catching_up = false;
        replica->newer = 0;
        replica_pause(tries);
    }
    if (audit != NULL)
        replica_stop();
    audit_free(audit);
    return r == REPLICA_REPLACED ? REPLICA_STOPPED : r;
}

static int replicate_source(struct replica *replica)
{
    const struct replica_options *o = replica->options;
    int r = read_source(replica);
    if (r == 0)
        r = target_open(&replica->target, o);
    if (r == 0)
        r = refuse_itself(replica);
    if (r == 0 && o->verify && !o->repair) {
        r = target_read_place(&replica->target, replica->source_uuid, &replica->before); /* whether it has tombstones */
        return r == 0 ? verify(replica) : r;
    }
    if (r == 0)
        r = guard_new(replica->hosts, o->name, &replica->guard);
    if (r == 0) {
        replica->suspects = suspects_new(o->suspect_us);
        replica->identities = replica->target.identities = identities_new();
        replica->lanes = lanes_new(o, &replica->target, replica->guard, replica->suspects, replica->identities);
        r = write_target(replica);
        if (!o->repair && r != REPLICA_LOST && r != REPLICA_TAKEN)
            report_status(replica, "ended", replica->reached);
        if (r == REPLICA_LOST)
            replica_print("the session in the source is lost, and the lock with it: another one may run");
    }
    return r;
}

/*
 * Of a program that was asked to stop. That is the end of a copy that follows; with --once, --verify
 * and --repair 0 would say that all was done. Returns: the exit status.
 */
static int end_stopped(const struct replica_options *o)
{
    enum { SIGNAL_STATUS = 128 }; /* as a shell has it */
    if (!o->once && !o->verify && !o->repair)
        return 0;
    replica_print("a signal has stopped it before the end");
    return SIGNAL_STATUS + atomic_load(&stop_signal);
}

/*
 * Refreshes the target after --once and --repair, and prints the summary. Returns: the exit status.
 */
static int end_replication(struct replica *replica, int r)
{
    struct lanes_counts sent_counts = replica->lanes == NULL ? (struct lanes_counts){0} : lanes_counts(replica->lanes);
    if (r == 0 && replica->lanes != NULL && (replica->options->once || replica->options->repair))
        (void)!target_ask(&replica->target, "POST", "/_refresh", SLICE_LIT(""));
    if (r == 0 && replica->lanes != NULL && !replica->options->quiet)
        replica_print("%llu documents sent%s", (unsigned long long)sent_counts.sent,
                      replica->options->once && !replica->unequal && replica->newer == 0 ? "; the copy is complete"
                                                                                         : "");
    struct suspects_state suspects =
        replica->suspects == NULL ? (struct suspects_state){0} : suspects_state(replica->suspects);
    if (replica->mended > 0 && !replica->options->quiet)
        replica_print("%llu documents of requests without an answer were mended", (unsigned long long)replica->mended);
    if (suspects.whole && !replica->options->quiet)
        replica_print("all documents are to be compared by the next one, since requests may be without an answer");
    else if (suspects.count > 0 && !replica->options->quiet)
        replica_print("%zu documents of requests without an answer are to be compared by the next one", suspects.count);
    if (sent_counts.refused > 0)
        replica_print("the target has refused %llu: they are in its index .tidelock-replicate-refused",
                      (unsigned long long)sent_counts.refused);
    if (replica->newer > 0)
        replica_print("%llu documents of the target have versions above the source's timestamp, so that it keeps them: "
                      "another program has written them",
                      (unsigned long long)replica->newer);
    bool unequal = replica->unequal || replica->newer > 0;
    if (r == REPLICA_STOPPED)
        return end_stopped(replica->options);
    return r == 0 && (sent_counts.refused > 0 || unequal) ? REPLICA_FAILED : r;
}

int command_replicate(int argc, char **argv)
{
    static const struct argp argp = {options, parse_replicate_option, NULL, doc, NULL, NULL, NULL};
    struct replica_options o = {.from = ARGUMENTS_URL_DEFAULT,
                                .prefix = "",
                                .name = "default",
                                .lanes = LANES_DEFAULT,
                                .batch_bytes = 2 << 20,
                                .suspect_us = SUSPECT_US_DEFAULT,
                                .tombstone_us = TOMBSTONE_US_DEFAULT,
                                .verify_every_us = VERIFY_EVERY_US_DEFAULT};
    arguments_parse(&argp, argc, argv, 0, &o);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    struct replica replica = {.options = &o, .hosts = source_hosts_new(o.from), .indices = MAP_INIT};
    source_client_init(&replica.source, replica.hosts);
    source_client_init(&replica.feed, replica.hosts);
    source_client_init(&replica.report_client, replica.hosts);
    replica.source.raw_numbers = true;
    int r = end_replication(&replica, replicate_source(&replica));
    lanes_free(replica.lanes);
    suspects_free(replica.suspects);
    identities_free(replica.identities);
    guard_free(replica.guard);
    if (replica.target.options != NULL)
        target_close(&replica.target);
    place_deinit(&replica.before);
    copy_forget(&replica);
    client_deinit(&replica.source);
    client_deinit(&replica.feed);
    client_deinit(&replica.report_client);
    source_hosts_free(replica.hosts);
    mem_free(replica.source_uuid);
    progress_clear();
    return r;
}
