/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the rules for names in docs/locking.md hold in every order of events. Indices and aliases
 * are created, moved, closed, blocked and removed, and types appear, with concurrent transactions
 * and sessions that hold locks. Sessions end and leave ephemeral documents and cleanup actions.
 * Method: one seed drives a core over an in-memory store, with waiting commands, deadlocks,
 * timeouts and restarts. A simple model has the committed names, aliases, documents and scripts. It
 * does not predict which commands wait; it checks the commands that completed:
 *
 * - *Commit order.* At a commit, every read of the transaction is repeated in the model, through
 *   its own writes. Each must return the same result: a search by pattern or alias, a get of any
 *   type, a script.
 * - *Locks.* No completed write is covered by a lock of another session. No lock of another session
 *   conflicted with an index that was created, closed or removed.
 * - *Tokens.* A granted token is higher than all tokens of earlier steps and belongs to no other
 *   session, or its session has it already. A write with a token succeeds only if its session holds
 *   a lock with that token that covers the document, under any of its names.
 * - *Names.* A name by which a session holds a lock means the same as at the grant. No two sessions
 *   hold conflicting locks on one resource.
 * - *Ends.* After a session has ended, by its lease, by force or orderly, its ephemeral documents
 *   are removed, whatever names and types they were written by, also in a closed or blocked index.
 *   Those that another owner may have locked are removed once none can. Its action runs in the same
 *   step if no other owner holds a lock; later it runs under no lock of another owner. By an alias
 *   it goes to the index that the alias meant when the session ended. A session lives until its
 *   lease is over, whatever the clock of timestamps shows.
 * - *Cleanup.* When all sessions and transactions have ended, nothing waits and nothing is locked.
 *   A restart loads the state of before.
 *
 * usage: names [--seeds N] [--from N] [--steps N] [--trace SEED]
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/arguments.h"
#include "../../lib/bounded.h"
#include "../../lib/codec_roundtrip.h"
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/session/owners.h"
#include "core/wait/wait.h"
#include "core/step/save.h"
#include "mapping/mapping.h"

enum { NAMES = 6, TYPES = 3, IDS = 3, SESSIONS = 4, TXNS = 4, CLIENTS = 4, LOCKS = 64, OPS = 64, CLEANUPS = 64 };
enum { ACTORS = SESSIONS + TXNS + CLIENTS };

static const char *const names[NAMES] = {"log-1", "log-2", "log-x", "old", "al", "lists"};
static const char *const types[TYPES] = {"_doc", "a", "b"};
static const char *const ids[IDS] = {"1", "2", "3"};
static const char *const expressions[] = {"log-*", "_all", "l*",       "*",     "al",          "log-1", "log-x",
                                          "old",   "a*",   "al,log-2", "lists", "log-2,lists", "*-x"};
enum { EXPRESSIONS = sizeof expressions / sizeof expressions[0] };

static const struct catalog_options search_options = {
    .ignore_unavailable = true, .allow_no_indices = true, .expand_open = true};

/* --- The model ---------------------------------------------------------------------------------------------------- */

struct name {
    bool index;
    bool closed;
    bool blocked;                /* index.blocks.write is set */
    unsigned aliased;            /* bit set of the indices that it is an alias of */
    int write_index;             /* of an alias; -1: none */
    int values[TYPES][IDS];      /* 0: no document */
    unsigned leases[TYPES][IDS]; /* serial of the session that owns it; 0: not ephemeral */
};

struct state {
    struct name names[NAMES];
    int script; /* 0: none */
};

enum read_kind { READ_SEARCH, READ_GET, READ_ANY, READ_SCRIPT };

/* An operation of a transaction: a read with its result, or a write. */
struct op {
    bool write;
    enum read_kind kind;
    int name;  /* or expression */
    int index; /* of a write: the concrete index */
    int type;
    int id;
    int value; /* of a write; 0: deleted */
    unsigned lease;
    uint64_t answer;
};

struct held {
    bool used;
    int session;
    int name;  /* -1: everything */
    int index; /* that the name meant at the grant */
    int type;  /* -1: none named */
    int id;    /* -1: the whole index */
    int mode;
    uint64_t token;
};

struct actor {
    bool open; /* session or transaction */
    char id[16];
    struct command *command; /* pending; NULL: none */
    struct op ops[OPS];
    int op_count;
    bool aborted;
    unsigned serial; /* of a session */
    uint64_t ends;   /* end of its lease, by the clock of durations, in us */
    struct op action; /* its cleanup action; value 0: none */
};

/* The cleanup action of an ended session, until it has run. */
struct cleanup {
    bool used;
    struct op op;
    bool fresh; /* its session ended in the current step */
    int target; /* index of its alias when the session ended; -1: no alias, or unknown */
};

struct world {
    uint64_t random;
    uint64_t seed;
    int step;
    bool traces;
    struct store *store;
    struct core *core;
    struct effects effects;
    tl_ts now;      /* timestamps */
    uint64_t clock; /* durations */
    uint64_t requests;
    uint64_t last_token;
    uint64_t token_before; /* the newest before the current step */
    unsigned last_serial;
    struct state state;
    struct state state_before; /* the current step */
    struct actor actors[ACTORS];
    struct held locks[LOCKS];
    struct held locks_before[LOCKS]; /* the current step */
    struct cleanup cleanups[CLEANUPS];
    int value;
    uint64_t commits, reads, waits, refusals, deadlocks, restarts, session_ends, removals, actions;
};

static void fail(const struct world *world, const char *format, ...) TL_PRINTF(2, 3);
static void fail(const struct world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("names: seed %" PRIu64 ", step %d: ", world->seed, world->step);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n  again: names --trace %" PRIu64 "\n", world->seed);
    exit(1);
}

static int below(struct world *world, int limit)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (int)(world->random % (unsigned)limit);
}

/* Returns: a document's value as a term of a sum, so that the order of reads does not matter. */
static uint64_t term(int index, int type, int id, int value)
{
    uint64_t hash = (uint64_t)value * 1000003u + (uint64_t)(index * TYPES * IDS + type * IDS + id) * 7919u + 1;
    hash *= 0x9e3779b97f4a7c15u;
    return value == 0 ? 0 : hash ^ hash >> 31;
}

/* A pattern has one star, at its end or its beginning. */
static bool matches(const char *pattern, const char *name)
{
    size_t len = strlen(pattern);
    if (strcmp(pattern, "_all") == 0 || strcmp(pattern, "*") == 0)
        return true;
    if (pattern[0] == '*')
        return strlen(name) >= len - 1 && strcmp(name + strlen(name) - (len - 1), pattern + 1) == 0;
    if (pattern[len - 1] == '*')
        return strncmp(name, pattern, len - 1) == 0;
    return strcmp(pattern, name) == 0;
}

/* Returns: the bit set of the open indices that an expression means. */
static unsigned resolve_all(const struct state *state, const char *expression)
{
    char copy[64];
    unsigned found = 0;
    snprintf(copy, sizeof copy, "%s", expression);
    for (char *rest = copy, *part; (part = strtok_r(rest, ",", &rest)) != NULL;)
        for (int i = 0; i < NAMES; i++)
            if (matches(part, names[i]))
                found |= state->names[i].aliased | (state->names[i].index ? 1u << i : 0);
    for (int i = 0; i < NAMES; i++)
        if (!state->names[i].index || state->names[i].closed)
            found &= ~(1u << i);
    return found;
}

/*
 * Returns: the index that a name means in a lock: of an alias its only index or its write index;
 *          -1: neither. A missing name means itself.
 */
static int resolve_lock(const struct state *state, int name)
{
    const struct name *at = &state->names[name];
    if (at->aliased == 0)
        return name;
    if ((at->aliased & (at->aliased - 1)) == 0)
        return __builtin_ctz(at->aliased);
    return at->write_index >= 0 ? at->write_index : -1;
}

/* Returns: the index that a get by a name reads; -1: none. */
static int resolve_get(const struct state *state, int name)
{
    const struct name *at = &state->names[name];
    int index = at->index                                                    ? name
                : at->aliased != 0 && (at->aliased & (at->aliased - 1)) == 0 ? __builtin_ctz(at->aliased)
                                                                             : -1;
    return index >= 0 && !state->names[index].closed ? index : -1;
}

static uint64_t answer_of(const struct state *state, const struct op *op)
{
    uint64_t sum = 0;
    if (op->kind == READ_SCRIPT)
        return (uint64_t)state->script;
    if (op->kind == READ_SEARCH) {
        unsigned found = resolve_all(state, expressions[op->name]);
        for (int i = 0; i < NAMES; i++)
            for (int t = 0; t < TYPES && (found >> i & 1) != 0; t++)
                for (int d = 0; d < IDS; d++)
                    sum += term(i, t, d, state->names[i].values[t][d]);
        return sum;
    }
    int index = resolve_get(state, op->name);
    for (int t = 0; t < TYPES && index >= 0; t++)
        if (op->kind == READ_ANY || t == op->type)
            sum += term(index, t, op->id, state->names[index].values[t][op->id]);
    return sum;
}

static void set_value(struct state *state, int index, const struct op *op)
{
    state->names[index].index = true;
    state->names[index].values[op->type][op->id] = op->value;
    state->names[index].leases[op->type][op->id] = op->lease;
}

static void drop_index(struct state *state, int index)
{
    state->names[index] = (struct name){.write_index = -1};
    for (int i = 0; i < NAMES; i++) {
        state->names[i].aliased &= ~(1u << index);
        if (state->names[i].write_index == index)
            state->names[i].write_index = -1;
    }
}

/* --- Checks ------------------------------------------------------------------------------------------------------- */

static int index_of(struct slice name)
{
    for (int i = 0; i < NAMES; i++)
        if (slice_is(name, names[i]))
            return i;
    return -1;
}

static int type_of(struct slice name)
{
    for (int i = 0; i < TYPES; i++)
        if (slice_is(name, types[i]))
            return i;
    return -1;
}

static bool covers(const struct held *lock, int index, int type, int id)
{
    if (lock->name < 0)
        return true;
    if (lock->index != index)
        return false;
    return lock->id < 0 || (lock->id == id && (lock->type < 0 || lock->type == type));
}

static void check_write(const struct world *world, int session, int index, int type, int id, const char *writer)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && lock->session != session && covers(lock, index, type, id))
            fail(world, "%s wrote %s/%s/%s under a lock of s%d by the name %s", writer, names[index], types[type],
                 ids[id], lock->session, lock->name < 0 ? "everything" : names[lock->name]);
    }
}

/* Checks a DDL command. With `insert_intention` locks on documents do not conflict. */
static void check_ddl(const struct world *world, int session, int index, bool insert_intention)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && lock->session != session && (lock->name < 0 || lock->index == index) &&
            (!insert_intention || lock->id < 0))
            fail(world, "%s was changed under a lock of s%d", names[index], lock->session);
    }
}

static void check_locked_names(const struct world *world)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && lock->name >= 0 && resolve_lock(&world->state, lock->name) != lock->index)
            fail(world, "%s, by which s%d holds a lock, means something else now", names[lock->name], lock->session);
    }
}

static bool are_compatible(int a, int b)
{
    return a != LOCK_X && b != LOCK_X && !(a == LOCK_U && b == LOCK_U);
}

static bool overlaps(const struct held *a, const struct held *b)
{
    if (a->name < 0 || b->name < 0)
        return true;
    if (a->index != b->index)
        return false;
    return a->id < 0 || b->id < 0 || (a->id == b->id && (a->type < 0 || b->type < 0 || a->type == b->type));
}

static void check_grant(const struct world *world, const struct held *lock)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *other = &world->locks[i];
        if (other->used && other->session != lock->session && !are_compatible(other->mode, lock->mode) &&
            overlaps(other, lock))
            fail(world, "s%d and s%d both hold %s", lock->session, other->session,
                 lock->name < 0 ? "everything" : names[lock->name]);
    }
}

/* Repeats the reads of a transaction as of its commit, and commits its writes to the model. */
static void check_commit(struct world *world, struct actor *txn)
{
    static struct state state;
    state = world->state;
    for (int i = 0; i < txn->op_count; i++) {
        const struct op *op = &txn->ops[i];
        if (op->write) {
            int index = resolve_lock(&state, op->name);
            if (index != op->index)
                fail(world, "%s wrote by the name %s to %s, which is %s at its commit", txn->id, names[op->name],
                     names[op->index], index < 0 ? "nothing" : names[index]);
            set_value(&state, op->index, op);
        } else if (answer_of(&state, op) != op->answer) {
            fail(world, "%s read %s otherwise than as of its commit (operation %d)", txn->id,
                 op->kind == READ_SCRIPT   ? "the script"
                 : op->kind == READ_SEARCH ? expressions[op->name]
                                           : names[op->name],
                 i);
        }
    }
    world->state = state;
    world->commits++;
}

/* Checks that the model has the same indices and aliases as the catalog. */
static void compare_names(const struct world *world)
{
    struct catalog *catalog = core_catalog(world->core);
    for (int i = 0; i < NAMES; i++) {
        const struct name *name = &world->state.names[i];
        const struct catalog_index *index = catalog_index(catalog, slice_from(names[i]));
        if ((index != NULL) != name->index || (index != NULL && index->closed != name->closed))
            fail(world, "the index %s is %s in the catalog", names[i],
                 index == NULL   ? "not"
                 : index->closed ? "closed"
                                 : "open");
        for (int j = 0; index != NULL && j < NAMES; j++)
            if ((catalog_index_alias(index, slice_from(names[j])) != NULL) != (world->state.names[j].aliased >> i & 1))
                fail(world, "the alias %s of %s is not as in the catalog", names[j], names[i]);
    }
    catalog_unref(catalog);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static int number_in(struct slice source)
{
    const char *found = memmem(source.data, source.len, "\"v\":", 4);
    int value = 0;
    for (const char *at = found + 4; found != NULL && at < source.data + source.len && *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (*at - '0');
    return value;
}

static uint64_t scan(const struct view *view, const struct catalog_index *index, int type_wanted, const char *id_wanted)
{
    struct doc_scan *scan = doc_scan_new(view, index->number, DOC_TYPE_ANY);
    uint64_t sum = 0;
    uint16_t number;
    struct slice id;
    struct doc doc;
    while (doc_scan_next(scan, &number, &id, &doc) == 0) {
        int type = type_of(mapping_type_by_number(index->mapping, number)->name);
        int at = id.data[0] - '1';
        if ((type_wanted < 0 || type == type_wanted) && (id_wanted == NULL || slice_is(id, id_wanted)))
            sum += term(index_of(index->name), type, at, number_in(doc.source));
    }
    doc_scan_free(scan);
    return sum;
}

/* Executes a read as the api does: with the catalog after the locks were granted. */
static uint64_t read_now(struct world *world, const struct op *op, const struct view *view)
{
    struct catalog *catalog = core_catalog(world->core);
    struct arena arena = ARENA_INIT;
    struct problem problem;
    uint64_t sum = 0;
    if (op->kind == READ_SCRIPT) {
        const struct catalog_object *script = catalog_object(catalog, CATALOG_SCRIPTS, SLICE_LIT("s"));
        sum = script == NULL ? 0 : (uint64_t)strtoul(script->body.data, NULL, 10);
    } else if (op->kind == READ_SEARCH) {
        struct catalog_target *found = NULL;
        size_t count = 0;
        if (catalog_resolve(catalog, slice_from(expressions[op->name]), &search_options, DIALECT_7, &arena, &found,
                            &count, &problem) != 0)
            count = 0;
        for (size_t i = 0; i < count; i++)
            if (!found[i].index->closed)
                sum += scan(view, found[i].index, -1, NULL);
    } else {
        const struct catalog_index *index = NULL;
        if (catalog_find(catalog, slice_from(names[op->name]), false, DIALECT_5, &arena, &index, NULL, &problem) == 0)
            sum = scan(view, index, op->kind == READ_ANY ? -1 : op->type, ids[op->id]);
    }
    arena_deinit(&arena);
    catalog_unref(catalog);
    return sum;
}

/* --- Commands complete -------------------------------------------------------------------------------------------- */

/* What a command was meant to do; in its arena. */
struct intent {
    struct actor *actor;
    int session; /* whose locks do not block it; -1: none */
    struct op op;
    struct held lock;
    int other; /* the alias of an alias change */
    bool flag;
};

static struct intent *intent_of(const struct command *command)
{
    return command->context;
}

/* A write to a missing name creates an index, even if the document is refused. */
static void sync_created_index(struct world *world, int name)
{
    struct catalog *catalog = core_catalog(world->core);
    if (catalog_index(catalog, slice_from(names[name])) != NULL)
        world->state.names[name].index = true;
    catalog_unref(catalog);
}

static void check_token(const struct world *world, int session, uint64_t token, const struct op *op)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        bool below = lock->name < 0 || (lock->index == op->index && (lock->id < 0 || lock->id == op->id));
        if (lock->used && lock->session == session && lock->token == token && below)
            return;
    }
    fail(world, "%s/%s was written with the token %" PRIu64 ", which is of no lock on it that s%d holds",
         names[op->index], ids[op->id], token, session);
}

static void done_write(struct world *world, struct intent *intent, struct command *command)
{
    const struct write_result *result = &command->write.results[0];
    struct op op = intent->op;
    if (result->outcome == WRITE_NOT_FOUND && command->write.items[0].dialect == DIALECT_5 &&
        index_of(result->index) >= 0) {
        bool existed = world->state.names[index_of(result->index)].index; /* a 5.x delete creates it */
        if (!existed)
            check_ddl(world, intent->session, index_of(result->index), true);
        world->state.names[index_of(result->index)].index = true;
    }
    if (result->outcome == WRITE_FAILED)
        sync_created_index(world, intent->op.name);
    if (result->outcome == WRITE_FAILED || result->outcome == WRITE_NOT_FOUND)
        return;
    op.write = true;
    op.index = index_of(result->index);
    op.type = type_of(result->type);
    if (op.index < 0 || op.type < 0)
        fail(world, "a write went where there is nothing");
    if (command->owner.fencing_token != 0)
        check_token(world, intent->session, command->owner.fencing_token, &op);
    bool created = !world->state.names[op.index].index;
    if (world->state.names[op.index].blocked || world->state.names[op.index].closed)
        fail(world, "%s wrote to %s, which is closed or blocked", intent->actor->id, names[op.index]);
    check_write(world, intent->session, op.index, op.type, op.id, intent->actor->id);
    if (created)
        check_ddl(world, intent->session, op.index, true);
    world->state.names[op.index].index = true;
    if (command->owner.transaction.len == 0)
        set_value(&world->state, op.index, &op);
    else if (intent->actor->op_count < OPS)
        intent->actor->ops[intent->actor->op_count++] = op;
}

static void done_read(struct world *world, struct intent *intent, struct command *command)
{
    const struct txn_lock_command *lock = &command->txn_lock;
    struct view view = {world->store, lock->read_ts, lock->overlay};
    struct op op = intent->op;
    op.answer = read_now(world, &op, &view);
    core_overlay_unref(lock->overlay);
    if (intent->actor->op_count < OPS)
        intent->actor->ops[intent->actor->op_count++] = op;
    world->reads++;
}

static bool has_token(const struct world *world, int session, uint64_t token)
{
    for (int i = 0; i < LOCKS; i++)
        if (world->locks[i].used && world->locks[i].session == session && world->locks[i].token == token)
            return true;
    return false;
}

static void done_lock(struct world *world, struct intent *intent, const struct command *command)
{
    struct held lock = intent->lock;
    int slot = 0;
    lock.used = true;
    lock.token = command->lock.fencing_token;
    for (int i = 0; i < SESSIONS; i++)
        if ((i == lock.session) ? lock.token <= world->token_before && !has_token(world, i, lock.token)
                                : has_token(world, i, lock.token))
            fail(world, "the token %" PRIu64 " is given again, or is below one given before", lock.token);
    world->last_token = lock.token > world->last_token ? lock.token : world->last_token;
    lock.index = lock.name < 0 ? -1 : resolve_lock(&world->state, lock.name);
    if (lock.name >= 0 && lock.index < 0)
        fail(world, "a lock by an alias of several was granted");
    check_grant(world, &lock);
    while (slot < LOCKS && world->locks[slot].used)
        slot++;
    INSIST(slot < LOCKS);
    world->locks[slot] = lock;
}

static void forget_locks(struct world *world, int session)
{
    for (int i = 0; i < LOCKS; i++)
        if (world->locks[i].session == session)
            world->locks[i].used = false;
}

static void done_ddl(struct world *world, struct intent *intent, struct command *command)
{
    struct name *name = &world->state.names[intent->op.name];
    struct name *alias = &world->state.names[intent->other];
    switch (command->type) {
    case COMMAND_INDEX_CREATE:
        check_ddl(world, intent->session, intent->op.name, true);
        name->index = true;
        break;
    case COMMAND_INDEX_DELETE:
        check_ddl(world, intent->session, intent->op.name, false);
        drop_index(&world->state, intent->op.name);
        break;
    case COMMAND_INDEX_STATE:
        check_ddl(world, intent->session, intent->op.name, false);
        name->closed = intent->flag;
        break;
    case COMMAND_SETTINGS_PUT:
        check_ddl(world, intent->session, intent->op.name, true);
        name->blocked = intent->flag;
        break;
    case COMMAND_ALIASES_UPDATE:
        check_ddl(world, intent->session, intent->op.name, true);
        if (command->aliases.actions[0].op == ALIAS_REMOVE)
            alias->aliased &= ~(1u << intent->op.name);
        else
            alias->aliased |= 1u << intent->op.name;
        if (alias->write_index == intent->op.name)
            alias->write_index = -1;
        if (intent->flag)
            alias->write_index = intent->op.name;
        break;
    case COMMAND_SCRIPT_PUT: world->state.script = intent->op.value; break;
    case COMMAND_SCRIPT_DELETE: world->state.script = 0; break;
    default: break;
    }
    check_locked_names(world);
}

/* --- Ends of sessions --------------------------------------------------------------------------------------------- */

/* Returns: the stored value of a document; 0: it does not exist. */
static int stored(const struct world *world, int index, int type, int id)
{
    struct catalog *catalog = core_catalog(world->core);
    const struct catalog_index *at = catalog_index(catalog, slice_from(names[index]));
    const struct mapping_type *mapped = at == NULL ? NULL : mapping_type(at->mapping, slice_from(types[type]));
    struct view view = {world->store, TL_TS_MAX, NULL};
    struct doc doc;
    int value = 0;
    if (mapped != NULL && slice_is(mapped->name, types[type]) && /* found by its own name */
        doc_get(&view, at->number, mapped->number, slice_from(ids[id]), &doc) == 0) {
        value = number_in(doc.source);
        doc_release(&doc);
    }
    catalog_unref(catalog);
    return value;
}

static bool knows_type(const struct world *world, int index, int type)
{
    struct catalog *catalog = core_catalog(world->core);
    const struct catalog_index *at = catalog_index(catalog, slice_from(names[index]));
    bool known = at != NULL && mapping_type(at->mapping, slice_from(types[type])) != NULL;
    catalog_unref(catalog);
    return known;
}

static bool is_alive(const struct world *world, unsigned serial)
{
    for (int i = 0; i < SESSIONS; i++)
        if (world->actors[i].open && world->actors[i].serial == serial)
            return true;
    return false;
}

/*
 * Whether any owner may have a lock on a document: the locks of sessions are known, under any type;
 * a transaction may have any lock.
 */
static bool may_be_held(const struct world *world, int index, int id)
{
    for (int i = SESSIONS; i < SESSIONS + TXNS; i++)
        if (world->actors[i].open)
            return true;
    for (int i = 0; i < LOCKS; i++)
        for (int type = 0; type < TYPES; type++)
            if (world->locks[i].used && covers(&world->locks[i], index, type, id))
                return true;
    return false;
}

/*
 * Checks that a cleanup action changed nothing under a lock; locks granted in the same step are
 * later.
 */
static void check_cleanup_lock(struct world *world, int index, int type, int id, const char *writer)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && covers(lock, index, type, id) && memcmp(lock, &world->locks_before[i], sizeof *lock) == 0)
            fail(world, "%s changed %s/%s/%s under a lock of %s on %s, type %d, id %d", writer, names[index],
                 types[type], ids[id], world->actors[lock->session].id,
                 lock->name < 0 ? "everything" : names[lock->name], lock->type, lock->id);
    }
}

/* Checks that an ephemeral document of an ended session is removed, or may be locked. */
static void check_ephemeral(struct world *world, int index, int type, int id)
{
    struct name *at = &world->state.names[index];
    if (at->values[type][id] == 0 || at->leases[type][id] == 0 || is_alive(world, at->leases[type][id]))
        return;
    int found = stored(world, index, type, id);
    if (found == at->values[type][id] && !may_be_held(world, index, id))
        fail(world, "%s/%s/%s lived with s%u, which has ended, and stays though no owner holds it", names[index],
             types[type], ids[id], at->leases[type][id]);
    if (found != 0 || !knows_type(world, index, type))
        return; /* another command of this step has written it, or deleted the index */
    check_cleanup_lock(world, index, type, id, "the end of a session");
    at->values[type][id] = 0;
    at->leases[type][id] = 0;
    world->removals++;
    if (world->traces)
        printf("        %s/%s/%s is gone with its session\n", names[index], types[type], ids[id]);
}

/* Finds the document with a value that only one action writes, in any index and type. */
static bool find_value(const struct world *world, struct op *op)
{
    for (op->index = 0; op->index < NAMES; op->index++)
        for (op->type = 0; op->type < TYPES; op->type++)
            if (stored(world, op->index, op->type, op->id) == op->value)
                return true;
    return false;
}

/* An action goes to the index of its alias when the session ended, if that index still exists. */
static void check_action_target(const struct world *world, const struct cleanup *cleanup, int index)
{
    if (!cleanup->fresh && cleanup->target >= 0 && index != cleanup->target &&
        world->state.names[cleanup->target].aliased == 0 && world->state_before.names[cleanup->target].aliased == 0)
        fail(world, "what a session left for %s, which led to %s when it ended, went to %s", names[cleanup->op.name],
             names[cleanup->target], names[index]);
}

static void check_action(struct world *world, struct cleanup *cleanup)
{
    struct op op = cleanup->op;
    if (!find_value(world, &op))
        return;
    check_action_target(world, cleanup, op.index);
    check_cleanup_lock(world, op.index, op.type, op.id, "what a session left");
    set_value(&world->state, op.index, &op);
    cleanup->used = false;
    world->actions++;
    if (world->traces)
        printf("        what a session left to be done in %s/%s/%s is done: %d\n", names[op.index], types[op.type],
               ids[op.id], op.value);
}

/* Whether no owner can hold or await a lock; every action that could run has run then. */
static bool is_idle(const struct world *world)
{
    for (int i = 0; i < ACTORS; i++)
        if (world->actors[i].command != NULL || (i >= SESSIONS && i < SESSIONS + TXNS && world->actors[i].open))
            return false;
    for (int i = 0; i < LOCKS; i++)
        if (world->locks[i].used)
            return false;
    return true;
}

/* Updates the model by the cleanup of ended sessions. An action may also have failed. */
static void check_cleanups(struct world *world)
{
    for (int i = 0; i < CLEANUPS; i++)
        if (world->cleanups[i].used) {
            sync_created_index(world, world->cleanups[i].op.name);
            check_action(world, &world->cleanups[i]);
            world->cleanups[i].used &= !is_idle(world);
        }
    for (int i = 0; i < NAMES; i++)
        for (int t = 0; t < TYPES; t++)
            for (int d = 0; d < IDS; d++)
                check_ephemeral(world, i, t, d);
}

/* Whether an action must have run: its index and type exist, and nothing can be locked. */
static bool must_have_run(const struct world *world, const struct op *op)
{
    int index = resolve_lock(&world->state, op->name);
    return index >= 0 && world->state.names[index].index && knows_type(world, index, op->type) && is_idle(world);
}

/* Returns: the index that an alias meant during the whole step; -1: none, or it changed. */
static int alias_target(const struct world *world, int name)
{
    int before = resolve_lock(&world->state_before, name), now = resolve_lock(&world->state, name);
    return world->state.names[name].aliased != 0 && world->state_before.names[name].aliased != 0 && before == now ? now
                                                                                                                  : -1;
}

static void record_alias_targets(struct world *world)
{
    for (int i = 0; i < CLEANUPS; i++) {
        struct cleanup *cleanup = &world->cleanups[i];
        if (cleanup->used && cleanup->fresh)
            cleanup->target = alias_target(world, cleanup->op.name);
        cleanup->fresh = false;
    }
}

/*
 * Whether another action for the same document may have overwritten this one: a deferred action
 * runs after the action of the session that held the lock.
 */
static bool has_other_action(const struct world *world, int id)
{
    for (int i = 0; i < CLEANUPS; i++)
        if (world->cleanups[i].used && world->cleanups[i].op.id == id)
            return true;
    for (int i = 0; i < SESSIONS; i++)
        if (world->actors[i].action.value != 0 && world->actors[i].action.id == id)
            return true;
    return false;
}

/* Ends a session in the model: its locks are released, and its action may have run. */
static void end_session(struct world *world, struct actor *session, bool closed_orderly)
{
    struct op action = session->action;
    if (world->traces)
        printf("        %s ends\n", session->id);
    session->open = false;
    session->action.value = 0;
    forget_locks(world, (int)(session - world->actors));
    world->session_ends++;
    if (closed_orderly || action.value == 0)
        return;
    struct op done = action;
    if (must_have_run(world, &action) && !find_value(world, &done) && !has_other_action(world, action.id))
        fail(world, "%s has ended, and what it left is not done", session->id);
    for (int i = 0; i < CLEANUPS; i++)
        if (!world->cleanups[i].used) {
            world->cleanups[i] = (struct cleanup){true, action, true, -1};
            return;
        }
    fail(world, "more sessions have left something than there is room for");
}

/* Checks that exactly those sessions have ended that were closed or whose lease is over. */
static void check_session_ends(struct world *world, const struct command *command)
{
    const struct intent *intent = intent_of(command);
    for (int i = 0; i < SESSIONS; i++) {
        struct actor *session = &world->actors[i];
        const struct session *found = owners_session(world->core->owners, slice_from(session->id));
        bool over = session->ends <= world->clock && command->type == COMMAND_TICK;
        bool closing = command->type == COMMAND_SESSION_CLOSE && intent->actor == session;
        bool gone = found == NULL || found->terminating;
        if (!session->open)
            continue;
        if (gone != (over || closing))
            fail(world, "%s %s", session->id,
                 gone ? "is gone, and its lease is not over" : "is there still, and its lease is over");
        if (gone)
            end_session(world, session, closing && !command->session.force);
    }
}

static void end_txn(struct actor *txn)
{
    txn->open = false;
    txn->op_count = 0;
}

static void complete(struct world *world, struct command *command)
{
    struct intent *intent = intent_of(command);
    bool succeeded = command->problem.type == PROBLEM_NONE;
    if (intent == NULL)
        return;
    if (world->traces)
        printf("        %s %s: %s\n", intent->actor->id, command_name(command->type),
               succeeded ? "done" : command->problem.reason.data);
    intent->actor->command = NULL;
    world->refusals += !succeeded;
    world->deadlocks += command->problem.type == PROBLEM_DEADLOCK_DETECTED;
    if (!succeeded) {
        if (command->problem.type == PROBLEM_DEADLOCK_DETECTED ||
            command->problem.type == PROBLEM_TRANSACTION_ABORTED ||
            command->problem.type == PROBLEM_TRANSACTION_MISSING)
            if (command->owner.transaction.len > 0 || command->type == COMMAND_TXN_COMMIT)
                end_txn(intent->actor);
        return;
    }
    switch (command->type) {
    case COMMAND_WRITE: done_write(world, intent, command); break;
    case COMMAND_TXN_LOCK: done_read(world, intent, command); break;
    case COMMAND_LOCK: done_lock(world, intent, command); break;
    case COMMAND_TXN_COMMIT:
        check_commit(world, intent->actor);
        end_txn(intent->actor);
        break;
    case COMMAND_TXN_ROLLBACK: end_txn(intent->actor); break;
    case COMMAND_UNLOCK: forget_locks(world, intent->session); break;
    case COMMAND_SESSION_CLOSE:
    case COMMAND_SESSION_OPEN:
    case COMMAND_TXN_BEGIN: break;
    default: done_ddl(world, intent, command); break;
    }
}

/* Encodes and decodes a command; its intent is copied, since it was in the old one's memory. */
static struct command *reencode(struct command *command)
{
    struct intent kept, *intent = intent_of(command);
    if (intent == NULL)
        return codec_roundtrip(command);
    kept = *intent;
    command = codec_roundtrip(command);
    command->context = intent = arena_alloc(&command->arena, sizeof *intent);
    *intent = kept;
    return command;
}

static void step(struct world *world, struct command *command)
{
    command = reencode(command);
    struct intent *intent = intent_of(command);
    struct actor *actor = intent == NULL ? NULL : intent->actor;
    bool ended = false;
    world->clock += 10 * TL_MS;
    /* The clock of timestamps stops or is set forward; durations do not depend on it. */
    int set = below(world, 40);
    world->now += set == 0 ? 100 * TL_SECOND : set < 4 ? 1 : 10 * TL_MS;
    if (world->now <= core_last_ts(world->core))
        world->now = core_last_ts(world->core) + 1;
    command->ts = world->now;
    command->clock = world->clock;
    if (command->type == COMMAND_TICK)
        command->tick.barrier_clock = world->clock + 1;
    command->request = ++world->requests;
    if (actor != NULL)
        actor->command = command;
    memcpy(world->locks_before, world->locks, sizeof world->locks);
    world->state_before = world->state;
    world->token_before = world->last_token;
    INSIST(core_step(world->core, command, &world->effects) == 0);
    bounded_check(world->core);
    lock_table_check(&world->core->owners->locks);
    if (command->type == COMMAND_TICK || command->type == COMMAND_SESSION_CLOSE) {
        check_session_ends(world, command);
        check_cleanups(world); /* before the results below, which may overwrite it */
    }
    while (!list_empty(&world->effects.completed)) {
        struct command *one = list_entry(world->effects.completed.next, struct command, link);
        list_remove(&one->link);
        complete(world, one);
        if (one != command)
            command_free(one);
        ended |= one == command;
    }
    if (ended)
        command_free(command);
    check_cleanups(world);
    record_alias_targets(world);
    if (!ended && actor != NULL && actor->command == command)
        world->waits++;
    compare_names(world);
}

/* --- Commands begin ----------------------------------------------------------------------------------------------- */

/* One seed in four concentrates on aliases: two names are mostly aliases of two indices. */
enum { PLAIN = 4 };

static bool is_about_aliases(const struct world *world)
{
    return world->seed % 4 == 0;
}

static void bias_to_aliases(struct world *world, struct intent *intent)
{
    const struct name *at = &world->state.names[intent->op.name];
    if (!is_about_aliases(world))
        return;
    if (intent->op.name >= PLAIN && (at->aliased == 0 || below(world, 2) == 0) && !at->index)
        intent->op.name = below(world, 2);
    if (below(world, 2) == 0)
        intent->op.id = 0;
    intent->other = PLAIN + below(world, NAMES - PLAIN);
}

static struct command *make(struct world *world, enum command_type type, struct actor *actor,
                            struct intent **ret_intent)
{
    struct command *command = command_new(type, DIALECT_7);
    struct intent *intent = arena_zalloc(&command->arena, sizeof *intent);
    intent->actor = actor;
    intent->session = actor < world->actors + SESSIONS ? (int)(actor - world->actors) : -1;
    intent->op.name = below(world, NAMES);
    intent->op.type = below(world, TYPES);
    intent->op.id = below(world, IDS);
    intent->other = below(world, NAMES);
    bias_to_aliases(world, intent);
    intent->lock = (struct held){.session = intent->session, .name = intent->op.name, .type = -1, .id = -1};
    command->context = intent;
    command->owner.timeout_us = below(world, 3) == 0 ? 0 : (uint64_t)(1 + below(world, 5)) * TL_SECOND;
    *ret_intent = intent;
    return command;
}

static void trace(const struct world *world, const struct actor *actor, const char *what, const char *name)
{
    if (world->traces)
        printf("%s %s %s\n", actor->id, what, name);
}

static void do_write(struct world *world, struct actor *actor, bool in_txn)
{
    struct intent *intent;
    struct command *command = make(world, COMMAND_WRITE, actor, &intent);
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    bool typed = intent->op.type > 0;
    *item = (struct write_item){.op = below(world, 5) == 0 ? WRITE_DELETE : WRITE_INDEX,
                                .dialect = typed ? DIALECT_5 : DIALECT_7,
                                .index = slice_from(names[intent->op.name]),
                                .type = typed ? slice_from(types[intent->op.type]) : SLICE_NONE,
                                .id = slice_from(ids[intent->op.id]),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    if (item->op == WRITE_INDEX) {
        intent->op.value = ++world->value;
        item->source = arena_printf(&command->arena, "{\"v\":%d}", intent->op.value);
        const struct actor *with = &world->actors[below(world, SESSIONS)];
        if (with->open && below(world, 3) == 0) {
            intent->op.lease = with->serial;
            item->lease = arena_copy(&command->arena, slice_from(with->id));
        }
    }
    command->write.items = item;
    command->write.item_count = 1;
    if (in_txn) {
        command->owner.transaction = slice_from(actor->id);
    } else if (intent->session >= 0) {
        const struct held *lock = &world->locks[below(world, 2 * LOCKS / SESSIONS)];
        command->owner.session = slice_from(actor->id);
        if (lock->used)
            command->owner.fencing_token = lock->token;
    }
    trace(world, actor, item->op == WRITE_DELETE ? "deletes in" : "writes to", names[intent->op.name]);
    if (world->traces)
        printf("        type %s id %s%s\n", types[intent->op.type], ids[intent->op.id],
               intent->op.lease != 0 ? ", ephemeral" : "");
    step(world, command);
}

static void do_read(struct world *world, struct actor *actor)
{
    struct intent *intent;
    struct command *command = make(world, COMMAND_TXN_LOCK, actor, &intent);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    int kind = below(world, 8);
    intent->op.kind = kind < 4 ? READ_SEARCH : kind < 5 ? READ_GET : kind < 7 ? READ_ANY : READ_SCRIPT;
    *target = (struct lock_target){.mode = LOCK_S, .index = slice_from(names[intent->op.name])};
    if (intent->op.kind == READ_SEARCH) {
        intent->op.name = below(world, EXPRESSIONS);
        target->index = slice_from(expressions[intent->op.name]);
        target->expression = &search_options;
    } else if (intent->op.kind == READ_SCRIPT) {
        target->index = SLICE_LIT("s");
        target->script = true;
    } else {
        if (intent->op.kind == READ_GET)
            intent->op.type = 1 + below(world, TYPES - 1);
        target->type = intent->op.kind == READ_ANY ? SLICE_LIT("_all") : slice_from(types[intent->op.type]);
        target->id = slice_from(ids[intent->op.id]);
        command->dialect = DIALECT_5;
    }
    command->txn_lock.targets = target;
    command->txn_lock.target_count = 1;
    command->owner.transaction = slice_from(actor->id);
    trace(world, actor, "reads", target->index.data);
    if (world->traces && target->id.data != NULL)
        printf("        type %.*s id %s\n", SLICE_ARG(target->type), ids[intent->op.id]);
    step(world, command);
}

static void do_txn(struct world *world, struct actor *actor, enum command_type type)
{
    struct intent *intent;
    struct command *command = make(world, type, actor, &intent);
    if (type == COMMAND_TXN_BEGIN) {
        snprintf(actor->id, sizeof actor->id, "t%u", ++world->last_serial);
        actor->open = true;
        actor->op_count = 0;
    }
    command->txn.id = slice_from(actor->id);
    command->txn.idle_us = 24 * 3600 * TL_SECOND;
    trace(world, actor, command_name(type), "");
    step(world, command);
}

/* Chooses the action of a session: a write by any name and type. */
static void set_on_expire(struct world *world, struct actor *actor, struct command *command)
{
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    actor->action = (struct op){.name = below(world, NAMES), .type = below(world, TYPES), .id = below(world, IDS)};
    if (below(world, 2) == 0)
        return;
    for (int i = PLAIN; i < NAMES && is_about_aliases(world); i++)
        if (world->state.names[i].aliased != 0)
            actor->action = (struct op){.name = i};
    actor->action.value = ++world->value;
    *item = (struct write_item){.op = WRITE_INDEX,
                                .index = slice_from(names[actor->action.name]),
                                .type = slice_from(types[actor->action.type]),
                                .id = slice_from(ids[actor->action.id]),
                                .source = arena_printf(&command->arena, "{\"v\":%d}", actor->action.value),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    command->session.on_expire = item;
    command->session.on_expire_count = 1;
}

static void do_session(struct world *world, struct actor *actor, enum command_type type)
{
    struct intent *intent;
    struct command *command = make(world, type, actor, &intent);
    if (type == COMMAND_SESSION_OPEN)
        snprintf(actor->id, sizeof actor->id, "s%u", ++world->last_serial);
    command->session.id = slice_from(actor->id);
    command->session.ttl_us =
        below(world, 3) == 0 ? (uint64_t)(1 + below(world, 6)) * TL_SECOND : 12 * 3600 * TL_SECOND;
    command->session.force = below(world, 2) == 0;
    if (type == COMMAND_SESSION_OPEN) {
        actor->open = true;
        actor->serial = world->last_serial;
        actor->ends = world->clock + 10 * TL_MS + command->session.ttl_us;
        set_on_expire(world, actor, command);
    }
    trace(world, actor, command_name(type), "");
    step(world, command);
}

static void do_lock(struct world *world, struct actor *actor)
{
    struct intent *intent;
    struct command *command = make(world, COMMAND_LOCK, actor, &intent);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    struct held *lock = &intent->lock;
    int roll = below(world, 20);
    lock->mode = LOCK_S + below(world, 3);
    *target = (struct lock_target){.mode = (enum lock_mode)lock->mode, .index = slice_from(names[lock->name])};
    if (roll == 0) {
        lock->name = -1;
        target->index = SLICE_NONE;
    } else if (roll > 6) {
        lock->id = intent->op.id;
        target->id = slice_from(ids[lock->id]);
        if (roll > 13) {
            lock->type = 1 + below(world, TYPES - 1);
            target->type = slice_from(types[lock->type]);
        }
    }
    command->lock.targets = target;
    command->lock.target_count = 1;
    command->owner.session = slice_from(actor->id);
    trace(world, actor, "locks", lock->name < 0 ? "everything" : names[lock->name]);
    if (world->traces)
        printf("        mode %d type %d id %d\n", lock->mode, lock->type, lock->id);
    step(world, command);
}

static void do_unlock(struct world *world, struct actor *actor)
{
    struct intent *intent;
    struct command *command = make(world, COMMAND_UNLOCK, actor, &intent);
    command->owner.session = slice_from(actor->id);
    trace(world, actor, "unlocks", "");
    step(world, command);
}

static void do_alias(struct world *world, struct intent *intent, struct command *command)
{
    struct alias_action *action = arena_zalloc(&command->arena, sizeof *action);
    *action = (struct alias_action){.op = below(world, 3) == 0 ? ALIAS_REMOVE : ALIAS_ADD,
                                    .index = slice_from(names[intent->op.name]),
                                    .alias = slice_from(names[intent->other])};
    intent->flag = action->op == ALIAS_ADD && below(world, 3) == 0;
    if (intent->flag)
        action->body = SLICE_LIT("{\"is_write_index\":true}");
    command->aliases.actions = action;
    command->aliases.action_count = 1;
}

static void do_ddl(struct world *world, struct actor *actor)
{
    static const enum command_type kinds[] = {COMMAND_INDEX_CREATE,   COMMAND_INDEX_DELETE,   COMMAND_INDEX_STATE,
                                              COMMAND_ALIASES_UPDATE, COMMAND_ALIASES_UPDATE, COMMAND_ALIASES_UPDATE,
                                              COMMAND_SCRIPT_PUT,     COMMAND_SCRIPT_DELETE,  COMMAND_SETTINGS_PUT};
    enum command_type type = kinds[below(world, sizeof kinds / sizeof kinds[0])];
    struct intent *intent;
    if (is_about_aliases(world) && below(world, 3) > 0)
        type = COMMAND_ALIASES_UPDATE;
    struct command *command = make(world, type, actor, &intent);
    if (intent->session >= 0)
        command->owner.session = slice_from(actor->id);
    if (type == COMMAND_ALIASES_UPDATE) {
        if (is_about_aliases(world))
            intent->op.name = below(world, 2);
        do_alias(world, intent, command);
    } else if (type == COMMAND_SCRIPT_PUT || type == COMMAND_SCRIPT_DELETE) {
        intent->op.value = ++world->value;
        command->object.name = SLICE_LIT("s");
        command->object.body =
            arena_printf(&command->arena, "{\"script\":{\"lang\":\"painless\",\"source\":\"%d\"}}", intent->op.value);
    } else {
        intent->flag = below(world, 2) == 0;
        command->index.name = slice_from(names[intent->op.name]);
        command->index.uuid = SLICE_LIT("0123456789abcdefghijkl");
        command->index.close = intent->flag;
        if (type == COMMAND_SETTINGS_PUT)
            command->index.body =
                intent->flag ? SLICE_LIT("{\"index.blocks.write\":true}") : SLICE_LIT("{\"index.blocks.write\":false}");
    }
    trace(world, actor, command_name(type), names[intent->op.name]);
    if (world->traces && type == COMMAND_ALIASES_UPDATE)
        printf("        alias %s, action %d, write %d\n", names[intent->other], command->aliases.actions[0].op,
               intent->flag);
    step(world, command);
}

static void tick(struct world *world)
{
    uint64_t deadline = core_next_deadline(world->core);
    if (deadline > world->clock + 10 * TL_SECOND) /* most leases are long */
        return;
    if (deadline > world->clock)
        world->clock = deadline;
    step(world, command_new(COMMAND_TICK, DIALECT_7));
}

/* Returns: the waiting command of the loaded core with this number. */
static struct command *loaded_command(const struct world *world, uint64_t request)
{
    list_for_each(link, &world->core->owners->waits)
    {
        struct command *command = list_entry(link, struct wait, of_all)->command;
        if (command != NULL && command->request == request)
            return command;
    }
    fail(world, "command %llu no longer waits after a restart", (unsigned long long)request);
    return NULL;
}

/* Gives the loaded commands the intents of those that waited before, and frees the latter. */
static void take_over_waiting(struct world *world, struct effects *stopped)
{
    while (!list_empty(&stopped->completed)) {
        struct command *before = list_entry(stopped->completed.next, struct command, link);
        struct command *command = loaded_command(world, before->request);
        struct intent *intent = arena_alloc(&command->arena, sizeof *intent);
        *intent = *intent_of(before);
        command->context = intent;
        intent->actor->command = command;
        list_remove(&before->link);
        command_free(before);
    }
}

/*
 * Restarts the core: everything continues. Requests that waited are cancelled, as their host does,
 * or continue to wait, as do those of another host.
 */
static void restart(struct world *world)
{
    struct core_limits limits = core_limits_default();
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    struct effects stopped;
    uint64_t before, after;
    effects_init(&stopped);
    INSIST(core_digest(world->core, &before) == 0);
    INSIST(core_save_rest(world->core, &saved) == 0);
    core_stop(world->core, &stopped);
    core_close(world->core);
    INSIST(core_load(world->store, &limits, buf_as_slice(&saved), NULL, &world->core) == 0);
    INSIST(core_digest(world->core, &after) == 0);
    if (before != after)
        fail(world, "a restart loads another state");
    take_over_waiting(world, &stopped);
    buf_deinit(&saved);
    world->restarts++;
    step(world, command_new(COMMAND_RESTART, DIALECT_7));
    if (below(world, 2) == 0)
        step(world, command_new(COMMAND_CANCEL, DIALECT_7)); /* all */
}

/* --- Seeds -------------------------------------------------------------------------------------------------------- */

static void act_session(struct world *world, struct actor *actor)
{
    int roll = below(world, 20);
    int held = 0;
    for (int i = 0; i < LOCKS; i++)
        held += world->locks[i].used && world->locks[i].session == (int)(actor - world->actors);
    if (!actor->open)
        do_session(world, actor, COMMAND_SESSION_OPEN);
    else if (roll < 7 && held < LOCKS / SESSIONS)
        do_lock(world, actor);
    else if (roll < 12)
        do_write(world, actor, false);
    else if (roll < 15)
        do_ddl(world, actor);
    else if (roll < 18)
        do_unlock(world, actor);
    else
        do_session(world, actor, COMMAND_SESSION_CLOSE);
}

static void act_txn(struct world *world, struct actor *actor)
{
    int roll = below(world, 20);
    if (!actor->open)
        do_txn(world, actor, COMMAND_TXN_BEGIN);
    else if (actor->op_count >= OPS - 1 || roll < 4)
        do_txn(world, actor, COMMAND_TXN_COMMIT);
    else if (roll < 5)
        do_txn(world, actor, COMMAND_TXN_ROLLBACK);
    else if (roll < 13)
        do_read(world, actor);
    else
        do_write(world, actor, true);
}

/* Writes a part of the state ahead of the next restart. */
static void save_ahead(struct world *world)
{
    bool more;
    INSIST(core_save_ahead(world->core, 2000, &more) == 0);
}

static void act(struct world *world)
{
    int roll = below(world, 200);
    if (roll % 8 == 0)
        save_ahead(world);
    struct actor *actor = &world->actors[below(world, ACTORS)];
    if (roll == 0)
        restart(world);
    else if (roll < 6)
        tick(world);
    else if (actor->command != NULL)
        return; /* it waits */
    else if (actor < world->actors + SESSIONS)
        act_session(world, actor);
    else if (actor < world->actors + SESSIONS + TXNS)
        act_txn(world, actor);
    else if (below(world, 2) == 0)
        do_ddl(world, actor);
    else
        do_write(world, actor, false);
}

static bool any_waits(const struct world *world)
{
    for (int i = 0; i < ACTORS; i++)
        if (world->actors[i].command != NULL)
            return true;
    return false;
}

/* Ends all sessions and transactions, and checks that nothing is left. */
static void finish(struct world *world)
{
    for (int i = 0; any_waits(world) && i < 1000; i++)
        tick(world);
    if (any_waits(world))
        fail(world, "a request waits forever");
    for (int i = 0; i < SESSIONS + TXNS; i++)
        if (world->actors[i].open && i < SESSIONS)
            do_session(world, &world->actors[i], COMMAND_SESSION_CLOSE);
        else if (world->actors[i].open)
            do_txn(world, &world->actors[i], COMMAND_TXN_COMMIT);
    if (!lock_table_is_idle(&world->core->owners->locks))
        fail(world, "something is locked when all have gone");
    for (int i = 0; i < NAMES; i++)
        for (int t = 0; t < TYPES; t++)
            for (int d = 0; d < IDS; d++)
                if (stored(world, i, t, d) != world->state.names[i].values[t][d])
                    fail(world, "%s/%s/%s is %d in the end, and must be %d", names[i], types[t], ids[d],
                         stored(world, i, t, d), world->state.names[i].values[t][d]);
}

static void run(uint64_t seed, int steps, bool traces, struct world *sum)
{
    static struct world world;
    struct core_limits limits = core_limits_default();
    world = (struct world){.random = seed * 0x9e3779b97f4a7c15u + 1,
                           .seed = seed,
                           .traces = traces,
                           .now = 1000 * TL_SECOND,
                           .clock = 10 * TL_SECOND};
    world.store = store_open_mem();
    effects_init(&world.effects);
    INSIST(core_open(world.store, &limits, &world.core) == 0);
    for (int i = 0; i < NAMES; i++)
        world.state.names[i].write_index = -1;
    for (int i = SESSIONS + TXNS; i < ACTORS; i++)
        snprintf(world.actors[i].id, sizeof world.actors[i].id, "x%d", i);
    for (; world.step < steps; world.step++)
        act(&world);
    finish(&world);
    core_stop(world.core, &world.effects);
    core_close(world.core);
    store_close(world.store);
    sum->commits += world.commits;
    sum->reads += world.reads;
    sum->waits += world.waits;
    sum->refusals += world.refusals;
    sum->deadlocks += world.deadlocks;
    sum->restarts += world.restarts;
    sum->session_ends += world.session_ends;
    sum->removals += world.removals;
    sum->actions += world.actions;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, seeds = 100, steps = 600, traced = 0;
    struct world sum = {0};
    const struct argument arguments[] = {{"--seeds", .number = &seeds},
                                         {"--from", .number = &first},
                                         {"--steps", .number = &steps},
                                         {"--trace", .number = &traced},
                                         {0}};
    arguments_take(argc, argv, arguments);
    if (traced != 0) {
        first = traced;
        seeds = 1;
    }
    for (uint64_t seed = first; seed < first + seeds; seed++)
        run(seed, (int)steps, traced != 0, &sum);
    printf("names: %" PRIu64 " seeds of %" PRIu64 " steps: %" PRIu64 " commits with %" PRIu64 " reads, %" PRIu64
           " waits, %" PRIu64 " refusals, %" PRIu64 " deadlocks, %" PRIu64 " restarts, %" PRIu64
           " ends of sessions, which removed %" PRIu64 " documents and left %" PRIu64 " actions done\n",
           seeds, steps, sum.commits, sum.reads, sum.waits, sum.refusals, sum.deadlocks, sum.restarts, sum.session_ends,
           sum.removals, sum.actions);
    return 0;
}
