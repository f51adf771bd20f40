/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the state of a core follows from its log (core/README.md, "Command groups" and
 * "Checkpoints"). Cores that applied the same entries have the same chain, have given the same
 * replies, and save the same bytes, whatever happened to one of them in between.
 *
 * Method: one seed generates entries of random commands in a log in memory (gen.h). Three cores
 * apply it, each with its own store:
 *
 * - The *first* proposes. It has the prefetched reads and parsed sources of submitters. It is
 *   sometimes saved and loaded. In half of the seeds of --waits its commands have submitters, so that those
 *   whose places are kept are answered, and copied; then such answers are not compared.
 * - The *second* follows with a delay. It is saved and loaded over its store between any two
 *   entries. It is checkpointed, killed, loaded from its last checkpoint over the store of that
 *   time, and given the later part of the log again.
 * - The *third* applies each command as a group of its own: group boundaries have no effect.
 *
 * A random bit of a checkpoint is flipped, or its end cut off: loading it is refused.
 *
 * With --waits many sessions and transactions wait for the same few locks, strengthen them, are
 * cancelled and ended, and are saved and loaded meanwhile; seeds have another meaning then.
 *
 * With --waits --named most autocommit writes have names, and most of these are sent again: while they wait,
 * keep a place for the repetition, or have an outcome. Places of each kind (place_kinds) are counted. In 100 seeds or
 * more each kind must be kept some times, and those of hosts that are gone taken over; in seeds that are named, each
 * kind must be kept and taken over. A few fresh seeds may have none.
 *
 * With --attempts two sessions lock and unlock, in turn, the first and the last document of an atomic write that is
 * carried out in pieces, so that it reaches its last attempt, which is cancelled, ended, saved and loaded, too; at
 * least one in ten seeds must reach it.
 *
 * With --rich, of which the gate applies a million commands, there are types, more documents and aliases, and
 *
 * - the log is as three senders of a cluster write it (wire.h): entries are cut into parts, of
 *   which the last ones may be late or missing, those of several senders interleave, and some are
 *   delivered twice;
 * - an entry is sometimes in the log twice, as after a lost answer: its repetition has no effect;
 * - the first is killed and loaded from its checkpoint, too;
 * - the third cuts most entries into groups of one command and others anywhere, has prefetched and parsed some, and is
 *   never saved and loaded: it is the single core with which the others are compared;
 * - in some seeds a host is *added*: it applies the log from its beginning, or copies the last checkpoint of another
 *   one, which may be old, and follows from there;
 * - after each group that wrote, the change feed of the third is followed with a plain list, which must be equal to
 *   the documents; from earlier timestamps every few steps.
 *
 * Whole states are saved and compared less often than in the other modes.
 *
 * usage: replicas [--waits [--named] | --attempts | --rich] [--seeds N | --commands N] [--from N] [--share K]
 *                 [--steps N] [--trace] [SEED ...]
 *
 * --commands takes as many seeds as make so many commands; --share K is the K-th of processes that share the work: its
 * seeds are others.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/arguments.h"
#include "../../lib/feed_replay.h"
#include "base/siphash.h"
#include "core/catalog/catalog.h"
#include "core/documents/path_lookup.h"
#include "core/documents/prefetch.h"
#include "core/command/command_codec.h"
#include "core/step/command_group.h"
#include "../../lib/bounded.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/step/save.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"
#include "gen.h"
#include "json/json.h"
#include "journal/recover.h"
#include "mapping/mapping.h"
#include "reply.h"
#include "wire.h"

enum { FIRST, SECOND, THIRD, ADDED, SIDES };
/* CHUNK_HOLDS: few, so that owners have several chunks */
enum { COMMANDS_MAX = 6, BEHIND_MAX = 12, CHUNK_HOLDS = 3 };

struct side {
    const char *name;
    bool prefetches; /* has prefetched reads and parsed sources */
    bool submits;    /* clients wait for the replies to its commands, until it is loaded */
    bool splits;     /* applies each command as a group of its own */
    bool used;
    struct feed_follower *follower; /* of the third, in the mode `rich`; else NULL */
    uint64_t followed_chain;        /* at its last check */
    struct store *store;
    struct core *core;
    struct effects effects;
    struct wire_reader reader;
    size_t applied;           /* entries */
    cmdlog_position position; /* of the newest one */
    uint64_t log_bytes;       /* of all of them */
    size_t saved_at;          /* entries at the last checkpoint */
    struct buf saved;         /* the state at that checkpoint, whole */
    struct buf replies; /* to the current entry */
};

/* Kinds of places of writes; one may be of several. */
enum place_kind { PLACE_OF_READY, PLACE_IN_PIECES, PLACE_OF_GONE_HOST, PLACE_KINDS };
static const struct {
    const char *name;
    uint64_t kept_min, taken_min; /* in twenty of a hundred seeds: a fifth of what they usually have */
} place_kinds[PLACE_KINDS] = {
    [PLACE_OF_READY] = {"that have their locks", 2, 0},
    [PLACE_IN_PIECES] = {"in pieces", 2, 0},
    [PLACE_OF_GONE_HOST] = {"of hosts that are gone", 5, 3},
};

/* Of all seeds. */
struct totals {
    uint64_t seeds, commands, entries, saves, kills, repeats, added, copied, followed, cut, interrupted;
    uint64_t last_attempts; /* seeds that reached one */
    uint64_t kept[PLACE_KINDS];       /* places of writes */
    uint64_t taken_over[PLACE_KINDS]; /* of them those that a repetition took over in a later step */
    uint64_t outcomes_ended;          /* places that ended since another request with the ID was executed */
};

/* State of the first core after an entry. */
struct outcome {
    uint64_t chain;
    tl_ts last_ts;
    char *replies;
};

struct world {
    uint64_t seed;
    int step;
    bool trace;
    bool waits; /* the mode */
    bool attempts, rich;    /* the other modes */
    uint64_t last_attempts; /* steps that found a write in its last attempt */
    struct rng rng;
    struct rng save_rng; /* when and how states are saved in pieces */
    struct rng find_rng; /* which findings renames have */
    struct rng rich_rng; /* what the mode `rich` adds */
    struct rng script_rng; /* gen.h */
    int added_at;          /* step at which a host is added; 0: none */
    struct gen gen;
    tl_ts history_low; /* history limit */
    struct wire wire;  /* the log */
    struct map places; /* of writes in the first core, after the last step: name -> PLACE_BIT, a bit for each kind */
    bool host_gone, host_ended; /* the step has a HOST_GONE or JOIN, or a CANCEL that keeps places */
    struct side sides[SIDES];
    struct outcome *outcome; /* of each entry, from 1 */
    size_t outcome_count;
    struct core_limits limits;
    struct totals totals;
};

static _Noreturn void fail(const struct world *world, const char *format, ...) TL_PRINTF(2, 3);
static _Noreturn void fail(const struct world *world, const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "replicas: seed %" PRIu64 ", step %d: ", world->seed, world->step);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n  again: replicas %s--trace %" PRIu64 "\n",
            world->gen.named  ? "--waits --named "
            : world->waits    ? "--waits "
            : world->attempts ? "--attempts "
            : world->rich     ? "--rich "
                              : "",
            world->seed);
    exit(1);
}

static unsigned below(struct world *world, size_t bound)
{
    return (unsigned)rng_below(&world->rng, bound);
}

static bool one_in(struct world *world, unsigned n)
{
    return below(world, n) == 0;
}

/* For what the mode `rich` adds: other modes draw the same numbers as without it. */
static bool rich_one_in(struct world *world, unsigned n)
{
    return world->rich && rng_below(&world->rich_rng, n) == 0;
}

/* What costs as much as many steps: as often as given, and in the mode `rich` so many times less often. */
enum { SPARSE = 8 };
static bool rarely(struct world *world, unsigned n)
{
    return one_in(world, world->rich ? n * SPARSE : n);
}

/* --- Cores -------------------------------------------------------------------------------------------------------- */

/* Whether a reply may be one that only the core gives by which the request came: its place is kept. */
static bool may_be_of_kept_place(const struct world *world, const struct command *command)
{
    return world->sides[FIRST].submits && command->problem.type == PROBLEM_STOPPING &&
           (command->type == COMMAND_LOCK || command->type == COMMAND_WRITE);
}

/* Returns: the key of a named write in world->places. */
static struct slice place_key(const struct command *command, struct buf *buf)
{
    const struct write_request *request = &command->write.request;

    buf_clear(buf);
    buf_printf(buf, "%.*s %" PRIu64, SLICE_ARG(request->id), request->part);
    return buf_as_slice(buf);
}

enum { PLACE_BIT = 1 }; /* of each value of world->places, which is not NULL then */

/* Counts the end of a place. */
static void count_end_of_place(struct world *world, const struct command *command)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);

    if (command->type != COMMAND_WRITE || command->problem.type != PROBLEM_STOPPING)
        return;
    world->totals.outcomes_ended += slice_is(command->problem.reason, "another request with its ID was executed");
    uintptr_t kinds = (uintptr_t)map_get(&world->places, place_key(command, &key));
    buf_deinit(&key);
    if (!slice_is(command->problem.reason, "the request was repeated after a restart"))
        return;
    for (int kind = 0; kind < PLACE_KINDS; kind++)
        world->totals.taken_over[kind] += kinds >> (PLACE_BIT + kind) & 1;
}

static void take_completed(struct world *world, struct side *side, bool replied)
{
    while (!list_empty(&side->effects.completed)) {
        struct command *command = list_entry(side->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (replied && !may_be_of_kept_place(world, command))
            reply_print(command, &side->replies);
        if (replied && side == &world->sides[FIRST] && command->type == COMMAND_LOCK &&
            command->lock.fencing_token != 0)
            world->gen.tokens[below(world, 4)] = command->lock.fencing_token;
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
        if (side == &world->sides[FIRST])
            count_end_of_place(world, command);
        command_free(command);
    }
}

/* Kills the process: its waiting commands get no reply. */
static void kill_core(struct world *world, struct side *side)
{
    core_stop(side->core, &side->effects);
    take_completed(world, side, false);
    core_close(side->core);
    side->core = NULL;
    wire_end(&side->reader);
}

static uint64_t state_of(struct world *world, const struct side *side)
{
    uint64_t digest;

    if (core_digest(side->core, &digest) != 0)
        fail(world, "%s: no digest", side->name);
    return digest;
}

/* Saves the core twice: saving changes nothing. */
static void save(struct world *world, struct side *side, struct buf *saved)
{
    struct buf again = BUF_INIT(BUF_UNLIMITED);

    buf_clear(saved);
    if (world->rich && !rich_one_in(world, 2 * SPARSE)) {
        core_save(side->core, saved);
        return;
    }
    uint64_t before = state_of(world, side), chain = core_chain(side->core);
    core_save(side->core, saved);
    core_save(side->core, &again);
    if (!slice_equal(buf_as_slice(saved), buf_as_slice(&again)))
        fail(world, "%s: what was saved saves other bytes", side->name);
    if (state_of(world, side) != before || core_chain(side->core) != chain)
        fail(world, "%s: a save changes something", side->name);
    buf_deinit(&again);
}

/*
 * A core has few sessions and waits, so a chunk of theirs has one or two. In some seeds, and in most of --named, most
 * atomic writes are carried out in pieces, in half of them most single writes of transactions put their entries ahead,
 * in a fourth an UNLOCK releases a name or two, in a fifth a step has the work of a few requests, and in a sixth a
 * TXN_LOCK acquires the locks of a target or two.
 */
static void make_parts_small(const struct world *world, struct core *core)
{
    if (world->seed % 3 == 1 || world->attempts || (world->gen.named && world->seed % 3 == 2))
        core->atomic_work_max = world->gen.named ? 100 : 200;
    core->provisional_work = world->seed % 2 == 0 ? 4 * WORK_ENTRY : ENTRIES_PROVISIONAL_WORK;
    core->unlock_work = world->seed % 4 == 3 ? 10 : UNLOCK_WORK_PER_COST;
    core->action_work = world->seed % 4 == 2 ? 10 : WRITE_WORK_PER_COST;
    core->step_account = world->seed % 5 == 3 ? (world->seed % 2 == 0 ? 100 : 1000) : STEP_ACCOUNT_WORK;
    core->reads_work_max = world->seed % 6 == 3 ? 2 * WORK_LOCK_ASKED : LOCK_WORK_MAX;
    core->owners->locks.chunk_holds = CHUNK_HOLDS;
    core->owners->session_chunks.members_max = 2;
    core->owners->wait_chunks.members_max = 2;
}

static void load(struct world *world, struct side *side, struct slice saved)
{
    struct buf reason = BUF_INIT(BUF_UNLIMITED);

    if (core_load(side->store, &world->limits, saved, &reason, &side->core) != 0)
        fail(world, "%s: what was saved cannot be loaded: %.*s", side->name, SLICE_ARG(buf_as_slice(&reason)));
    buf_deinit(&reason);
    make_parts_small(world, side->core);
    world->totals.saves++;
}

/* Loads a damaged checkpoint, which must be refused with a reason. */
static void load_damaged(struct world *world, struct side *side, struct slice saved)
{
    struct buf copy = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    struct core *core;
    bool cut = one_in(world, 3);
    size_t at = rng_below(&world->rng, saved.len);

    buf_append(&copy, saved.data, cut ? at : saved.len);
    if (!cut)
        copy.data[at] = (char)(copy.data[at] ^ 1 << below(world, 8));
    int r = core_load(side->store, &world->limits, buf_as_slice(&copy), &reason, &core);
    if ((r != TL_ERR_CORRUPT && r != CORE_SAVE_NEWER) || reason.len == 0)
        fail(world, "%s: damage at byte %zu is not refused", side->name, at);
    buf_deinit(&copy);
    buf_deinit(&reason);
}

/* Writes a part of the state ahead of the next checkpoint. */
static void save_ahead(struct world *world, struct side *side)
{
    enum { PART_MAX = 4000, PIECE_MAX = 3 * OVERLAY_CHUNK_BYTES };
    uint64_t before = metric_read(&side->core->metrics.piece_bytes), part = 1 + rng_below(&world->save_rng, PART_MAX);
    bool more;

    if (core_save_ahead(side->core, part, &more) != 0)
        fail(world, "%s: nothing can be written ahead", side->name);
    if (metric_read(&side->core->metrics.piece_bytes) - before > part + PIECE_MAX)
        fail(world, "%s: too much was written ahead at once", side->name);
}

/*
 * Saves the state in two forms: whole, and as a record with pieces in the store. If all pieces have
 * been written ahead, none is written with the record. `checkpoint`: the record is that of a checkpoint of a host.
 */
static void save_both(struct world *world, struct side *side, bool checkpoint, struct buf *saved, struct buf *record)
{
    bool more = true;

    for (bool whole = rng_below(&world->save_rng, 2) == 0; whole && more;)
        if (core_save_ahead(side->core, 1 + rng_below(&world->save_rng, 1000), &more) != 0)
            fail(world, "%s: nothing can be written ahead", side->name);
    uint64_t before = metric_read(&side->core->metrics.piece_bytes);
    buf_clear(record);
    if ((checkpoint ? recover_write_record(side->core, side->position, NULL, side->log_bytes, record)
                    : core_save_rest(side->core, record)) != 0)
        fail(world, "%s: the rest cannot be saved", side->name);
    if (!more && metric_read(&side->core->metrics.piece_bytes) != before)
        fail(world, "%s: pieces that were written ahead are written again", side->name);
    save(world, side, saved);
}

static void check_loaded(struct world *world, struct side *side, struct slice saved)
{
    struct buf again = BUF_INIT(BUF_UNLIMITED);

    save(world, side, &again);
    if (!slice_equal(saved, buf_as_slice(&again)))
        fail(world, "%s: what was loaded saves other bytes", side->name);
    buf_deinit(&again);
}

/* Saves, kills and loads the core, in one of the two forms, and checks that it is the same. */
static void reload(struct world *world, struct side *side)
{
    struct buf saved = BUF_INIT(BUF_UNLIMITED), record = BUF_INIT(BUF_UNLIMITED);

    save_both(world, side, false, &saved, &record);
    struct slice form = buf_as_slice(rng_below(&world->save_rng, 2) == 0 ? &saved : &record);
    kill_core(world, side);
    if (one_in(world, 4))
        load_damaged(world, side, form);
    load(world, side, form);
    wire_begin(&side->reader, &world->wire, side->position);
    check_loaded(world, side, buf_as_slice(&saved));
    buf_deinit(&saved);
    buf_deinit(&record);
}

static void checkpoint(struct world *world, struct side *side)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);

    save_both(world, side, true, &side->saved, &record);
    if (store_checkpoint(side->store, buf_as_slice(&record)) != 0)
        fail(world, "%s: no checkpoint", side->name);
    buf_deinit(&record);
    side->saved_at = side->applied;
}

/* Returns: the number of entries up to one at a position, and their bytes. */
static size_t entries_until(const struct world *world, cmdlog_position position, uint64_t *ret_bytes)
{
    size_t count = 0;

    *ret_bytes = 0;
    for (; count < world->wire.count && world->wire.entries[count]->position <= position; count++)
        *ret_bytes += world->wire.entries[count]->bytes.len;
    return count;
}

/* Starts the process of a host over its store, as of its last checkpoint, from where it follows the log. */
static void recover(struct world *world, struct side *side)
{
    char *reason = NULL;
    uint64_t log_bytes;

    if (recover_begin(side->store, &world->limits, &side->core, &side->position, &side->log_bytes, &reason) != 0)
        fail(world, "%s: a checkpoint cannot be loaded: %s", side->name, reason == NULL ? "" : reason);
    make_parts_small(world, side->core);
    wire_begin(&side->reader, &world->wire, side->position);
    side->applied = entries_until(world, side->position, &log_bytes);
    if (side->log_bytes != log_bytes)
        fail(world, "%s: a checkpoint has %" PRIu64 " bytes of log and not %" PRIu64, side->name, side->log_bytes,
             log_bytes);
    world->totals.saves++;
}

/* A new host copies the newest checkpoint of another one. */
static void copy_side(struct world *world, struct side *side, const struct side *donor)
{
    side->store = store_mem_copy(donor->store);
    side->saved = side->replies = BUF_INIT(BUF_UNLIMITED);
    effects_init(&side->effects);
    recover(world, side);
    if (side->applied != donor->saved_at)
        fail(world, "%s: a copied checkpoint has %zu entries and not %zu", side->name, side->applied, donor->saved_at);
    check_loaded(world, side, buf_as_slice(&donor->saved));
    side->used = true;
    world->totals.copied++;
}

static void open_side(struct world *world, struct side *side)
{
    side->store = store_open_mem();
    side->saved = side->replies = BUF_INIT(BUF_UNLIMITED);
    wire_begin(&side->reader, &world->wire, 0);
    effects_init(&side->effects);
    if (core_open(side->store, &world->limits, &side->core) != 0)
        fail(world, "%s: the core does not open", side->name);
    make_parts_small(world, side->core);
    core_begin_chain(side->core, world->seed);
    checkpoint(world, side);
    side->used = true;
}

static void close_side(struct world *world, struct side *side)
{
    if (!side->used)
        return;
    kill_core(world, side);
    if (side->follower != NULL) {
        world->totals.followed += feed_follower_records(side->follower);
        feed_follower_free(side->follower);
    }
    store_close(side->store);
    buf_deinit(&side->saved);
    buf_deinit(&side->replies);
}

/* --- Applying ----------------------------------------------------------------------------------------------------- */

/* Prefetches and parses the items of a write, as the submitter's thread does. */
static void prefetch_items(const struct side *side, struct command *command)
{
    struct arena *arena = &command->arena;
    struct view view = {side->store, core_last_ts(side->core), NULL};
    struct catalog *catalog = core_catalog(side->core);

    for (size_t i = 0; i < command->write.item_count; i++) {
        struct write_item *item = &command->write.items[i];
        const struct catalog_index *index = catalog_index(catalog, item->index);
        const struct mapping_type *type =
            index == NULL ? NULL : mapping_type(index->mapping, item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
        struct json_doc *parsed = arena_alloc(arena, sizeof(*parsed));
        unsigned flags = JSON_DOCUMENT | (item->dialect == DIALECT_5 ? (unsigned)JSON_DUPLICATES : 0);
        struct problem ignored;
        if (item->source.data != NULL && json_parse(arena, item->source, item->dialect, flags, parsed, &ignored) == 0)
            item->parsed = parsed;
        if (type != NULL)
            prefetch_attach(command, item, prefetch_read(&view, index->number, type->number, item->id, arena));
    }
    catalog_unref(catalog);
}

static void free_all(struct list *commands)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

static void check_bounded(struct world *world, const struct side *side)
{
    char excess[200];
    if (!bounded(side->core, excess, sizeof excess))
        fail(world, "%s: %s", side->name, excess);
}

/*
 * Checks after each group that wrote something that the feed since the beginning makes the documents of now. The feed
 * of the others is equal to it: it is in the chain.
 */
static void check_followed(struct world *world, struct side *side)
{
    struct buf wrong = BUF_INIT(BUF_UNLIMITED);

    if (side->follower == NULL || core_chain(side->core) == side->followed_chain)
        return;
    side->followed_chain = core_chain(side->core);
    struct catalog *catalog = core_catalog(side->core);
    if (!feed_follower_check(side->follower, catalog, core_last_ts(side->core), &wrong))
        fail(world, "the %s, entry %zu, whose feed is followed after each group: %.*s", side->name, side->applied + 1,
             SLICE_ARG(buf_as_slice(&wrong)));
    catalog_unref(catalog);
}

/* Is not called: the replies are taken from the effects. */
static void on_done(struct command *command)
{
    command_free(command);
}

/* Returns: whether the group counts. */
static bool apply_whole(struct world *world, struct side *side, const struct command_group_header *head,
                        struct list *commands)
{
    if (side->prefetches || (side->splits && rich_one_in(world, 3)))
        list_for_each(link, commands)
        {
            struct command *command = list_entry(link, struct command, link);
            if (command->type == COMMAND_WRITE)
                prefetch_items(side, command);
        }
    if (side->submits)
        list_for_each(link, commands) list_entry(link, struct command, link)->on_done = on_done;
    int r = command_group_apply(side->core, head, commands, &side->effects);
    if (r < 0)
        fail(world, "%s: the entry cannot be applied", side->name);
    check_bounded(world, side);
    check_followed(world, side);
    struct sent *sent = world->wire.entries[side->applied];
    if (r == COMMAND_GROUP_IGNORED)
        free_all(commands);
    else if (head->life != 0 && sent->repeats != NULL && sent->repeats->counts)
        fail(world, "%s: entry %zu takes effect twice", side->name, side->applied + 1);
    else
        sent->counts = true;
    return r != COMMAND_GROUP_IGNORED;
}

/* Returns: how many commands the next group of a side that splits has. */
static size_t next_piece(struct world *world)
{
    return rich_one_in(world, 4) ? 1 + rng_below(&world->rich_rng, COMMANDS_MAX) : 1;
}

static void apply_split(struct world *world, struct side *side, const struct command_group_header *head,
                        struct list *commands)
{
    struct command_group_header rest = *head;
    bool counts = true;

    while (!list_empty(commands) && counts) {
        struct list piece = LIST_INIT(piece);
        for (size_t count = next_piece(world); count > 0 && !list_empty(commands); count--) {
            struct list *link = commands->next;
            list_remove(link);
            list_append(&piece, link);
        }
        counts = apply_whole(world, side, &rest, &piece);
        rest.life = rest.number = 0; /* the entry counts */
    }
    free_all(commands);
}

/* Returns: the offset of the first difference. */
static size_t first_difference(struct slice a, struct slice b)
{
    size_t len = 0;

    while (len < a.len && len < b.len && a.data[len] == b.data[len])
        len++;
    return len;
}

static struct slice line_at(struct slice text, size_t at)
{
    while (at > 0 && text.data[at - 1] != '\n')
        at--;
    text = slice_from_offset(text, at);
    return slice_make(text.data, slice_find_byte(text, '\n'));
}

static _Noreturn void fail_replies(struct world *world, const struct side *side, struct slice got, struct slice wanted)
{
    size_t at = first_difference(got, wanted);

    fail(world, "%s: entry %zu has other replies:\n%.*s\nand not\n%.*s", side->name, side->applied,
         SLICE_ARG(line_at(got, at)), SLICE_ARG(line_at(wanted, at)));
}

/* Checks that an entry had the same effect as on the first core. */
static void compare(struct world *world, const struct side *side)
{
    const struct outcome *outcome = &world->outcome[side->applied];

    if (core_last_ts(side->core) != outcome->last_ts)
        fail(world, "%s: after entry %zu it is at another timestamp", side->name, side->applied);
    if (!slice_is(buf_as_slice(&side->replies), outcome->replies))
        fail_replies(world, side, buf_as_slice(&side->replies), slice_from(outcome->replies));
    if (core_chain(side->core) != outcome->chain)
        fail(world, "%s: entry %zu wrote something else; replies\n%s", side->name, side->applied, outcome->replies);
}

static void remember(struct world *world, struct side *side)
{
    size_t len;

    REQUIRE(side->applied == world->outcome_count + 1);
    world->outcome = realloc(world->outcome, (side->applied + 1) * sizeof *world->outcome);
    struct outcome *outcome = &world->outcome[++world->outcome_count];
    buf_byte(&side->replies, '\0');
    outcome->chain = core_chain(side->core);
    outcome->last_ts = core_last_ts(side->core);
    outcome->replies = buf_detach(&side->replies, &len);
    side->replies = BUF_INIT(BUF_UNLIMITED);
    if (world->trace)
        printf("[%d] entry %zu\n%s", world->step, side->applied, outcome->replies);
}

static void apply(struct world *world, struct side *side, const struct cmdlog_entry *entry)
{
    struct list commands = LIST_INIT(commands);
    struct command_group_header head;

    if (side->applied >= world->wire.count)
        fail(world, "%s: the log has no further entry", side->name);
    const struct sent *sent = world->wire.entries[side->applied];
    if (entry->position != sent->position || !slice_equal(entry->bytes, sent->bytes) ||
        command_group_decode(entry->bytes, &head, &commands) != 0)
        fail(world, "%s: the entry at %" PRIu64 " is not the one that was sent, at %" PRIu64, side->name,
             entry->position, sent->position);
    if (side->splits)
        apply_split(world, side, &head, &commands);
    else
        (void)apply_whole(world, side, &head, &commands);
    buf_clear(&side->replies);
    take_completed(world, side, true);
    side->applied++;
    side->position = entry->position;
    side->log_bytes += entry->bytes.len;
    if (side->applied > world->outcome_count)
        remember(world, side);
    else
        compare(world, side);
}

/* Applies entries of the log, at most so many; in the mode `rich` it may have read parts of the next ones then. */
static void follow(struct world *world, struct side *side, size_t most)
{
    struct cmdlog_entry entry;
    size_t puts = most < SIZE_MAX && rich_one_in(world, 3) ? 1 + rng_below(&world->rich_rng, 2 * most) : SIZE_MAX;

    if (rich_one_in(world, 20))
        wire_go_back(&side->reader);
    for (size_t i = 0; i < most; i++) {
        int r = wire_read(&side->reader, &puts, &entry);
        if (r == CMDLOG_END)
            break;
        if (r != 0)
            fail(world, "%s: behind %" PRIu64 " an entry %s", side->name, side->position, side->reader.damage);
        apply(world, side, &entry);
        if (side == &world->sides[SECOND] && rarely(world, 12))
            reload(world, side);
    }
}

/* Applies all entries that are in the log. */
static void catch_up(struct world *world, struct side *side)
{
    follow(world, side, SIZE_MAX);
    if (side->applied != world->wire.count)
        fail(world, "%s: it has %zu of %zu entries", side->name, side->applied, world->wire.count);
}

/*
 * Kills the process or the host: the store returns to the last checkpoint, and the log is replayed.
 */
static void replay(struct world *world, struct side *side)
{
    size_t until = side->applied;

    kill_core(world, side);
    (void)store_mem_crash(side->store, 0);
    recover(world, side);
    if (side->applied != side->saved_at)
        fail(world, "%s: its checkpoint has %zu entries and not %zu", side->name, side->applied, side->saved_at);
    check_loaded(world, side, buf_as_slice(&side->saved));
    while (side->applied < until)
        follow(world, side, until - side->applied);
    world->totals.kills++;
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

static void advance_time(struct world *world)
{
    struct gen *gen = &world->gen;

    gen->clock += one_in(world, 15) ? below(world, 6000000) : below(world, 200000);
    gen->ts += one_in(world, 30) ? below(world, 70000000) : below(world, 100000);
    if (one_in(world, 20) && gen->ts > TL_SECOND)
        gen->ts -= below(world, TL_SECOND); /* another host's clock */
    gen->host = (uint16_t)(1 + below(world, 2));
}

static struct command *next_command(struct world *world, unsigned stage)
{
    struct command *command = gen_setup(&world->gen, stage);

    if (command != NULL || !one_in(world, 40))
        return command != NULL ? command : gen_command(&world->gen);
    struct core *proposer = world->sides[below(world, 2)].core;
    tl_ts now = core_last_ts(proposer);
    struct core_horizons horizons = {now - rng_below(&world->rng, 200 * TL_SECOND),
                                     now - rng_below(&world->rng, 200 * TL_SECOND),
                                     now - rng_below(&world->rng, 400 * TL_SECOND)};
    world->history_low = horizons.history_low <= now && horizons.history_low > world->history_low ? horizons.history_low
                                                                                                  : world->history_low;
    if (core_propose_maintenance(proposer, &horizons, one_in(world, 2) ? 3 : 1000, &command) != 0)
        fail(world, "no upkeep is proposed");
    return command;
}

/* Searches a path in the newest state of a core, as the submitter of a rename does. */
static void search(struct world *world, const struct side *side, struct slice path, struct command *command,
                   struct path_finding *ret_finding)
{
    struct view view = {side->store, core_last_ts(side->core), NULL};
    struct catalog *catalog = core_catalog(side->core);
    const struct catalog_index *index = catalog_index(catalog, command->rename.index);

    if (index != NULL && mapping_is_tree(index->mapping) && path.len > 1) {
        ret_finding->ts = view.ts;
        if (path_lookup_find(&view, index->number, index->mapping, path, NULL, &command->arena, &ret_finding->document,
                             &ret_finding->below) != 0)
            fail(world, "%s: a path cannot be searched", side->name);
    }
    catalog_unref(catalog);
}

/* Adds findings of any core, which may be out of date by the time that the rename is applied. */
static void add_findings(struct world *world, struct command *command)
{
    const struct side *side = &world->sides[rng_below(&world->find_rng, 2)];

    if (rng_below(&world->find_rng, 3) == 0)
        return;
    search(world, side, command->rename.from, command, &command->rename.found_from);
    search(world, side, command->rename.to, command, &command->rename.found_to);
}

/* Before every other rename, a command that has both paths watched. */
static void watch_paths(struct world *world, const struct command *rename, struct buf *bytes)
{
    if (rng_below(&world->find_rng, 2) == 0)
        return;
    struct command *command = command_new(COMMAND_PLACES_WATCH, rename->dialect);
    command->request = rename->request;
    command->places.index = rename->rename.index;
    command->places.paths[0] = rename->rename.from;
    command->places.paths[1] = rename->rename.to;
    command_group_add(command, bytes);
    command_free(command);
    world->totals.commands++;
}

/* --- Blocked attempts --------------------------------------------------------------------------------------------- */

/*
 * Two sessions block an atomic write of the documents 0 to BLOCKED_ITEMS - 1: while it waits for the document of one,
 * the other locks its document, at the other end, and the first one lets go.
 */
enum { BLOCKED_ITEMS = 12, LAST_ATTEMPT = 4 };
static const char *const blockers[] = {"blocker 0", "blocker 1"}, *const blocked[] = {"p11", "p0"};

/* Returns: the wait of an atomic write in pieces, or NULL. */
static const struct wait *wait_in_pieces(const struct core *core)
{
    list_for_each(link, &core->owners->waits)
    {
        const struct wait *wait = list_entry(link, struct wait, of_all);
        if (!wait->ended && wait__is_in_pieces(wait))
            return wait;
    }
    return NULL;
}

/* Adds a command of a blocker: it begins, locks its document or another, or unlocks all. */
static void add_blocker(struct world *world, struct buf *bytes, enum command_type type, int which, const char *document)
{
    struct command *command = command_new(type, DIALECT_7);
    command->request = (uint64_t)world->gen.host << HOST_SHIFT | ++world->gen.requests;
    if (type == COMMAND_SESSION_OPEN) {
        command->session.id = slice_from(blockers[which]);
        command->session.ttl_us = 3600 * TL_SECOND;
    } else {
        command->owner.session = slice_from(blockers[which]);
    }
    if (type == COMMAND_LOCK) {
        command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
        command->lock.targets[0] =
            (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(document)};
        command->lock.target_count = 1;
        command->owner.timeout_us = slice_is(slice_from(document), blocked[which]) ? 0 : 60 * TL_SECOND;
    }
    command_group_add(command, bytes);
    command_free(command);
    world->totals.commands++;
}

static void add_blocked_write(struct world *world, struct buf *bytes)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct write_command *write = &command->write;
    command->request = (uint64_t)world->gen.host << HOST_SHIFT | ++world->gen.requests;
    write->items = arena_zalloc(&command->arena, BLOCKED_ITEMS * sizeof *write->items);
    write->item_count = BLOCKED_ITEMS;
    write->atomic = true;
    for (int i = 0; i < BLOCKED_ITEMS; i++)
        write->items[i] = (struct write_item){.op = WRITE_INDEX,
                                              .dialect = DIALECT_7,
                                              .index = SLICE_LIT("fs"),
                                              .id = arena_printf(&command->arena, "p%d", i),
                                              .source = SLICE_LIT("{\"v\":1}"),
                                              .version = VERSION_ANY,
                                              .if_seq_no = SEQ_NO_ANY};
    command->owner.timeout_us = 3600 * TL_SECOND;
    command_group_add(command, bytes);
    command_free(command);
    world->totals.commands++;
}

static void add_ticks(struct world *world, struct buf *bytes)
{
    enum { TICKS = 3 };
    for (int i = 0; i < TICKS; i++) {
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->tick.barrier_clock = world->gen.clock;
        command_group_add(command, bytes);
        command_free(command);
        world->totals.commands++;
    }
}

/* In its last attempt it gets its lock, is a victim, or meets what else is random. */
static void end_last_attempt(struct world *world, struct buf *bytes, int holder)
{
    world->last_attempts++;
    switch (below(world, 6)) {
    case 0: add_blocker(world, bytes, COMMAND_UNLOCK, holder, NULL); break;
    case 1: add_blocker(world, bytes, COMMAND_LOCK, holder, blocked[1 - holder]); break;
    default: break;
    }
    add_ticks(world, bytes);
}

static void add_blocking(struct world *world, struct buf *bytes)
{
    const struct core *core = world->sides[FIRST].core;
    const struct wait *wait = wait_in_pieces(core);
    for (int i = 0; i < 2; i++)
        if (owners_session(core->owners, slice_from(blockers[i])) == NULL)
            add_blocker(world, bytes, COMMAND_SESSION_OPEN, i, NULL);
    if (wait == NULL) {
        add_blocker(world, bytes, COMMAND_UNLOCK, 1, NULL);
        add_blocker(world, bytes, COMMAND_LOCK, 0, blocked[0]);
        add_blocked_write(world, bytes);
        add_ticks(world, bytes);
        return;
    }
    if (wait__state(wait) != WAIT_PARKED) {
        add_ticks(world, bytes);
        return;
    }
    uint32_t ended = wait->command->write.attempts;
    int holder = ended % 2 == 1 ? 0 : 1;
    if (ended == LAST_ATTEMPT) {
        end_last_attempt(world, bytes, holder);
        return;
    }
    add_blocker(world, bytes, COMMAND_LOCK, 1 - holder, blocked[1 - holder]);
    add_blocker(world, bytes, COMMAND_UNLOCK, holder, NULL);
    add_ticks(world, bytes);
}

/* --- A life ------------------------------------------------------------------------------------------------------- */

/*
 * Sends an entry to the log. In the mode `rich` it is sometimes cut into parts; sometimes its answer is lost, and it is
 * sent again. Then puts of all senders get into the log, not all of them yet.
 */
static void send_entry(struct world *world, struct slice bytes, bool stage)
{
    struct wire *wire = &world->wire;
    unsigned sender = world->rich && !stage ? (unsigned)rng_below(&world->rich_rng, WIRE_SENDERS) : 0;
    unsigned parts = stage || !rich_one_in(world, 4) ? 1 : 2 + (unsigned)rng_below(&world->rich_rng, 5);
    struct sent *sent = wire_send(wire, sender, bytes, parts, NULL);

    if (!stage && rich_one_in(world, 20)) {
        wire_send(wire, sender, bytes, parts, sent);
        world->totals.repeats++;
    }
    if (rich_one_in(world, 40))
        wire_interrupt(wire, (unsigned)rng_below(&world->rich_rng, WIRE_SENDERS), rich_one_in(world, 2));
    if (!stage && rich_one_in(world, 4))
        return;
    while (wire_flow(wire) && (stage || !rich_one_in(world, 8)))
        continue;
}

static void append(struct world *world)
{
    struct gen *gen = &world->gen;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    unsigned count = one_in(world, 2) ? 1 : 1 + below(world, COMMANDS_MAX);
    bool stage = world->step == 1;
    unsigned stages = world->rich ? 4 : 2;

    struct command_group_header head;

    gen_header(gen, &head);
    if (stage)
        head.life = head.number = 0;
    command_group_begin(&head, &bytes);
    if (!stage && world->attempts) {
        count = one_in(world, 4) ? 1 : 0;
        add_blocking(world, &bytes);
    }
    for (unsigned i = 0; i < (stage ? stages : count); i++) {
        struct command *command = next_command(world, stage ? i : UINT32_MAX);
        if (command->type == COMMAND_RENAME) {
            add_findings(world, command);
            watch_paths(world, command, &bytes);
        }
        world->host_gone = world->host_gone || command->type == COMMAND_HOST_GONE || command->type == COMMAND_JOIN;
        world->host_ended = world->host_ended || (command->type == COMMAND_CANCEL && command->cancel.keeps_places);
        command_group_add(command, &bytes);
        command_free(command);
        world->totals.commands++;
    }
    send_entry(world, buf_as_slice(&bytes), stage);
    buf_deinit(&bytes);
}

/* --- Further comparisons ------------------------------------------------------------------------------------------ */

static void print_around(const char *name, struct slice saved, size_t at)
{
    size_t from = at < 40 ? 0 : at - 40;

    fprintf(stderr, "%s:", name);
    for (size_t i = from; i < saved.len && i < at + 20; i++)
        fprintf(stderr, "%s%02x", i == at ? " | " : " ", (unsigned char)saved.data[i]);
    fprintf(stderr, "\n");
}

static void compare_saved(struct world *world, struct side *other)
{
    struct buf first = BUF_INIT(BUF_UNLIMITED), second = BUF_INIT(BUF_UNLIMITED);

    save(world, &world->sides[FIRST], &first);
    save(world, other, &second);
    if (!slice_equal(buf_as_slice(&first), buf_as_slice(&second))) {
        size_t at = first_difference(buf_as_slice(&first), buf_as_slice(&second));
        print_around("first", buf_as_slice(&first), at);
        print_around(other->name, buf_as_slice(&second), at);
        fail(world, "two cores at one position save other bytes, at %zu of %zu and %zu", at, first.len, second.len);
    }
    buf_deinit(&first);
    buf_deinit(&second);
}

static void compare_digests(struct world *world, const struct side *a, const struct side *b)
{
    uint64_t x, y;

    if (core_digest(a->core, &x) != 0 || core_digest(b->core, &y) != 0 || x != y)
        fail(world, "the digests of the %s and the %s differ", a->name, b->name);
}

/* Checks that a consumer of the feed gets all changes from any timestamp on. */
static void check_feed(struct world *world, const struct side *side)
{
    struct buf wrong = BUF_INIT(BUF_UNLIMITED);
    tl_ts now = core_last_ts(side->core), low = world->history_low;
    tl_ts since = one_in(world, 3) || now <= low ? 0 : low + rng_below(&world->rng, now - low);

    if (!feed_replay_check(side->store, since, now, low, one_in(world, 2), &wrong))
        fail(world, "the %s, followed since %llu: %.*s", side->name, (unsigned long long)since,
             SLICE_ARG(buf_as_slice(&wrong)));
}

/* What the mode `rich` adds to a step. */
static void step_rich(struct world *world)
{
    struct side *first = &world->sides[FIRST], *third = &world->sides[THIRD], *added = &world->sides[ADDED];

    if (rich_one_in(world, 100))
        checkpoint(world, first);
    if (rich_one_in(world, 50 * SPARSE))
        replay(world, first);
    if (rich_one_in(world, 20 * SPARSE)) {
        catch_up(world, third);
        compare_saved(world, third);
    }
    if (rich_one_in(world, 200))
        check_feed(world, third);
    if (world->step == world->added_at) {
        if (rich_one_in(world, 3))
            open_side(world, added);
        else
            copy_side(world, added, rich_one_in(world, 2) ? first : &world->sides[SECOND]);
        world->totals.added++;
    }
    if (added->used && rich_one_in(world, 4))
        follow(world, added, 1 + rng_below(&world->rich_rng, 30));
}

/* Returns: the kinds of a place, which is kept since this step, as a value of world->places. */
static uintptr_t kinds_of_place(const struct world *world, const struct wait *wait)
{
    bool kinds[PLACE_KINDS] = {
        [PLACE_OF_READY] = wait->ready || (wait->ready_number > 0 && wait->granted_ts != 0),
        [PLACE_IN_PIECES] = wait->txn != NULL,
        [PLACE_OF_GONE_HOST] = wait->cancelled == WAIT_PLACE_KEPT_GONE || (world->host_gone && !world->host_ended),
    };
    uintptr_t bits = PLACE_BIT;

    for (int kind = 0; kind < PLACE_KINDS; kind++)
        bits |= (uintptr_t)kinds[kind] << (PLACE_BIT + kind);
    return bits;
}

/* Counts the places of writes that are kept since this step, by their kinds. */
static void count_places(struct world *world)
{
    struct map places = MAP_INIT;
    struct buf key = BUF_INIT(BUF_UNLIMITED);

    list_for_each(link, &world->sides[FIRST].core->owners->waits)
    {
        const struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->command == NULL || wait->command->type != COMMAND_WRITE || !wait__has_place(wait))
            continue;
        uintptr_t kinds = (uintptr_t)map_get(&world->places, place_key(wait->command, &key));
        bool kept_before = kinds != 0;
        kinds = kept_before ? kinds : kinds_of_place(world, wait);
        for (int kind = 0; !kept_before && kind < PLACE_KINDS; kind++)
            world->totals.kept[kind] += kinds >> (PLACE_BIT + kind) & 1;
        (void)map_put(&places, buf_as_slice(&key), (void *)kinds);
    }
    map_deinit(&world->places);
    world->places = places;
    world->host_gone = world->host_ended = false;
    buf_deinit(&key);
}

static void step(struct world *world)
{
    struct side *first = &world->sides[FIRST], *second = &world->sides[SECOND], *third = &world->sides[THIRD];

    advance_time(world);
    world->gen.core = first->core;
    append(world);
    catch_up(world, first);
    if (world->gen.named)
        count_places(world);
    if (one_in(world, 3) || first->applied - second->applied > BEHIND_MAX)
        follow(world, second, 1 + below(world, BEHIND_MAX + 4));
    if (one_in(world, 10))
        catch_up(world, third);
    if (rarely(world, 20))
        reload(world, first);
    if (rng_below(&world->save_rng, 4) == 0)
        save_ahead(world, rng_below(&world->save_rng, 4) == 0 ? first : second);
    if (world->rich ? one_in(world, 50) : one_in(world, 12))
        checkpoint(world, second);
    if (rarely(world, 25))
        replay(world, second);
    if (rarely(world, 10)) {
        catch_up(world, second);
        compare_saved(world, second);
    }
    if (one_in(world, 100) && second->applied == first->applied)
        compare_digests(world, first, second);
    if (one_in(world, 100) && third->applied == first->applied)
        compare_digests(world, first, third);
    if (world->rich ? rich_one_in(world, 200) : one_in(world, 4))
        check_feed(world, first);
    if (world->rich ? rich_one_in(world, 200) : one_in(world, 10))
        check_feed(world, second);
    if (world->rich)
        step_rich(world);
}

struct mode {
    bool waits, named, attempts, rich, trace;
    int steps;
};

static struct core_limits small_limits(const struct mode *mode)
{
    struct core_limits limits = core_limits_default();

    limits.sessions_max = 12;
    limits.transactions_max = 12;
    limits.waiters_max = 20;
    limits.transaction_changes_max = 60;
    limits.ephemeral_max = 20;
    limits.ephemeral_batch = 3;
    limits.purge_batch = 1;
    limits.stale_documents_min = 10;
    if (mode->rich)
        limits.waiters_max = 40;
    if (mode->waits) {
        limits.waiters_max = 100;
        limits.ephemeral_batch = 1;
    }
    return limits;
}

static void add_totals(struct totals *totals, const struct world *world)
{
    totals->seeds++;
    totals->commands += world->totals.commands;
    totals->entries += world->totals.entries;
    totals->saves += world->totals.saves;
    totals->kills += world->totals.kills;
    totals->repeats += world->totals.repeats;
    totals->added += world->totals.added;
    totals->copied += world->totals.copied;
    totals->cut += world->wire.cut;
    totals->interrupted += world->wire.interrupted;
    totals->followed += world->totals.followed;
    totals->last_attempts += world->last_attempts > 0;
    totals->outcomes_ended += world->totals.outcomes_ended;
    for (int kind = 0; kind < PLACE_KINDS; kind++) {
        totals->kept[kind] += world->totals.kept[kind];
        totals->taken_over[kind] += world->totals.taken_over[kind];
    }
}

/* A host is added in one of six seeds. */
static int choose_added_at(struct world *world, int steps)
{
    return rich_one_in(world, 6) ? 2 + (int)rng_below(&world->rich_rng, (uint64_t)steps) : 0;
}

static void live(uint64_t seed, const struct mode *mode, struct totals *totals)
{
    int steps = mode->steps;
    struct world world = {.seed = seed,
                          .trace = mode->trace,
                          .waits = mode->waits,
                          .attempts = mode->attempts,
                          .rich = mode->rich,
                          .limits = small_limits(mode)};

    wire_init(&world.wire, seed ^ 0x77697265);
    rng_init(&world.rng, seed);
    rng_init(&world.save_rng, ~seed);
    rng_init(&world.find_rng, seed ^ 0x66696e64);
    rng_init(&world.rich_rng, seed ^ 0x72696368);
    rng_init(&world.script_rng, seed ^ 0x7363726970);
    siphash_set_key(&(struct siphash_key){seed, 1});
    world.gen = (struct gen){.script_rng = &world.script_rng,
                             .rng = &world.rng,
                             .clock = 10 * TL_SECOND,
                             .ts = 1000 * TL_SECOND,
                             .waits = mode->waits,
                             .named = mode->named,
                             .rich = mode->rich};
    world.added_at = choose_added_at(&world, steps);
    world.sides[FIRST] = (struct side){.name = "first", .prefetches = true, .submits = world.waits && seed % 2 == 1};
    world.sides[SECOND] = (struct side){.name = "second"};
    world.sides[THIRD] = (struct side){.name = "third", .splits = true};
    world.sides[ADDED] = (struct side){.name = "added"};
    for (int i = 0; i < ADDED; i++)
        open_side(&world, &world.sides[i]);
    if (world.rich)
        world.sides[THIRD].follower = feed_follower_new(world.sides[THIRD].store);
    for (world.step = 1; world.step <= steps; world.step++)
        step(&world);
    while (wire_flow(&world.wire))
        continue;
    for (int i = 0; i < SIDES; i++)
        if (world.sides[i].used)
            catch_up(&world, &world.sides[i]);
    for (int i = SECOND; i < SIDES; i++)
        if (world.sides[i].used && (i == SECOND || world.rich))
            compare_saved(&world, &world.sides[i]);
    compare_digests(&world, &world.sides[FIRST], &world.sides[THIRD]);
    world.totals.entries = world.sides[FIRST].applied;
    for (int i = 0; i < SIDES; i++)
        close_side(&world, &world.sides[i]);
    for (size_t i = 1; i <= world.outcome_count; i++)
        free(world.outcome[i].replies);
    free(world.outcome);
    map_deinit(&world.places);
    add_totals(totals, &world);
    wire_deinit(&world.wire);
}

/* Seeds between those of two processes. First seeds have 24 bits. */
#define SHARE_SEEDS ((uint64_t)1 << 32)

static void print_totals(const struct totals *totals, bool rich)
{
    printf("replicas: %" PRIu64 " seeds, %" PRIu64 " commands, no difference\n", totals->seeds, totals->commands);
    if (rich)
        printf("replicas: %" PRIu64 " entries, of which %" PRIu64 " twice, %" PRIu64 " in parts, %" PRIu64
               " incomplete, %" PRIu64 " kills, %" PRIu64 " saves, %" PRIu64 " hosts added, of which %" PRIu64
               " by a copied checkpoint, %" PRIu64 " units of the feed\n",
               totals->entries, totals->repeats, totals->cut, totals->interrupted, totals->kills, totals->saves,
               totals->added, totals->copied, totals->followed);
}

/*
 * Prints how many places of writes were kept, and taken over. `named`: the seeds are.
 * Returns: whether there were enough of each kind.
 */
static bool print_places(const struct totals *totals, bool named)
{
    bool enough = true;

    printf("replicas: %" PRIu64 " places of writes ended by an outcome\n", totals->outcomes_ended);
    for (int kind = 0; kind < PLACE_KINDS; kind++) {
        bool few = totals->kept[kind] * 20 < place_kinds[kind].kept_min * totals->seeds ||
                   totals->taken_over[kind] * 20 < place_kinds[kind].taken_min * totals->seeds;
        printf("replicas: %" PRIu64 " places of writes %s, %" PRIu64 " taken over\n", totals->kept[kind],
               place_kinds[kind].name, totals->taken_over[kind]);
        if (named)
            enough = enough && totals->kept[kind] > 0 && totals->taken_over[kind] > 0;
        else
            enough = enough && (totals->seeds < 100 || !few);
    }
    return enough;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 0, commands = 0, from = 1, steps = 400, share = 1;
    struct mode mode = {.waits = false};
    struct totals totals = {0};

    struct argument_numbers named = {.count = 0};
    const struct argument arguments[] = {
        {"--waits", .flag = &mode.waits}, {"--named", .flag = &mode.named}, {"--attempts", .flag = &mode.attempts},
        {"--rich", .flag = &mode.rich},   {"--seeds", .number = &seeds},    {"--commands", .number = &commands},
        {"--from", .number = &from},      {"--share", .number = &share},    {"--steps", .number = &steps},
        {"--trace", .flag = &mode.trace}, {"SEED ...", .numbers = &named},  {0}};

    arguments_take(argc, argv, arguments);
    if (mode.waits + mode.attempts + mode.rich > 1 || (mode.named && !mode.waits) || share == 0)
        arguments_refuse(argv, arguments,
                         "one of --waits, --attempts and --rich; --named is of --waits; --share is 1 or more", NULL);
    mode.steps = (int)steps;
    for (size_t i = 0; i < named.count; i++)
        live(named.items[i], &mode, &totals);
    from += (share - 1) * SHARE_SEEDS;
    for (uint64_t seed = from; seed < from + seeds || totals.commands < commands; seed++)
        live(seed, &mode, &totals);
    print_totals(&totals, mode.rich);
    if (mode.named && !print_places(&totals, named.count > 0)) {
        fprintf(stderr, "replicas: too few places of writes, of one kind at least: replicas.c, place_kinds\n");
        return 1;
    }
    if (mode.attempts && totals.seeds > 1 && totals.last_attempts * 10 < totals.seeds) {
        fprintf(stderr, "replicas: only %" PRIu64 " seeds reached a last attempt\n", totals.last_attempts);
        return 1;
    }
    return 0;
}
