/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what docs/locking.md says of names holds in whatever order things come: indices and aliases are made, moved, closed,
 * blocked and removed, types appear, beside and inside of transactions and under sessions' locks, while sessions die and leave
 * documents and actions behind.
 * Method: one seed drives a core over a twin store, with commands that wait, deadlocks, time-outs and restarts. A plain model
 * keeps what is committed: names, aliases, documents, scripts. It does not foresee who waits; it judges what was let through:
 *
 * - *Witness.* When a transaction commits, everything that it read is read again from the model as of that moment, through its
 *   own writes. Each answer must be the one that it got: a search by a pattern or an alias, a get of whichever type, a script.
 * - *Binding.* A write that was done lies under no lock of another session. An index that was removed, closed or made had none
 *   in the way.
 * - *Tokens.* A grant's token is above all of earlier steps and no other session's, or one that its session has already. A write that names one was done only if
 *   its session holds a lock with that token which covers the document, whatever either was called by.
 * - *Names.* A name by which a session holds a lock means what it meant at the grant; no two sessions hold what is the same and
 *   does not go together.
 * - *Ends.* When a session has ended, by its lease, by force or in good order, none of its ephemeral documents is there, by whatever name and type
 *   it was written, in an open, closed or blocked index; but for those that another owner may hold, until nobody can. What it
 *   left to be done is done in that very step when nobody else holds anything; later it is a write under nobody's lock, and by an alias in
 *   the index to which that led when the session ended. A session lives until its
 *   lease is over, whatever the clock of timestamps does.
 * - *Nothing left.* When all sessions and transactions have ended, nothing waits and nothing is locked. The state that is
 *   loaded after a restart is that of before.
 *
 * usage: names [--seeds N] [--from N] [--steps N] [--tell SEED]
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/bounded.h"
#include "../../lib/codec_roundtrip.h"
#include "../../lib/settle.h"
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/owners/owners.h"
#include "mapping/mapping.h"

enum { NAMES = 6, TYPES = 3, IDS = 3, SESSIONS = 4, TXNS = 4, STRANGERS = 4, LOCKS = 64, OPS = 64, LEAVINGS = 64 };
enum { ACTORS = SESSIONS + TXNS + STRANGERS };

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
    bool blocked;                /* documents must not change */
    unsigned aliased;            /* set of the indices that it is an alias of */
    int write_index;             /* of an alias; -1: none */
    int values[TYPES][IDS];      /* 0: no document */
    unsigned leases[TYPES][IDS]; /* the session that it lives with; 0: none */
};

struct state {
    struct name names[NAMES];
    int script; /* 0: none */
};

enum read_kind { READ_SEARCH, READ_GET, READ_ANY, READ_SCRIPT };

/* What a transaction did: a read with its answer, or a write. */
struct op {
    bool write;
    enum read_kind kind;
    int name;  /* or expression */
    int index; /* of a write: where it went */
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
    int index; /* what it meant at the grant */
    int type;  /* -1: none named */
    int id;    /* -1: all of it */
    int mode;
    uint64_t token;
};

struct actor {
    bool open; /* session or transaction */
    char id[16];
    struct command *command; /* under way; NULL: none */
    struct op ops[OPS];
    int op_count;
    bool aborted;
    unsigned serial; /* of a session */
    uint64_t ends;   /* its lease, on the clock of durations */
    struct op left;  /* what it leaves to be done; value 0: nothing */
};

/* What a dead session left, until it is seen to be done. */
struct leaving {
    bool used;
    struct op op;
    bool fresh; /* its session ended with the step at hand */
    int led; /* the index to which its name, an alias, led when the session ended; -1: it was none, or that is not known */
};

struct world {
    uint64_t random;
    uint64_t seed;
    int step;
    bool tells;
    struct store *store;
    struct core *core;
    struct effects effects;
    tl_ts now;      /* timestamps */
    uint64_t clock; /* durations */
    uint64_t requests;
    uint64_t last_token;
    uint64_t token_before; /* the newest before the step at hand */
    unsigned born;
    struct state state;
    struct state state_before; /* the step at hand */
    struct actor actors[ACTORS];
    struct held locks[LOCKS];
    struct held locks_before[LOCKS]; /* the step at hand */
    struct leaving leavings[LEAVINGS];
    int value;
    uint64_t commits, reads, waits, refusals, deadlocks, restarts, deaths, removals, actions;
};

static void fail(const struct world *world, const char *format, ...) TL_PRINTF(2, 3);
static void fail(const struct world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("names: seed %" PRIu64 ", step %d: ", world->seed, world->step);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n  again: names --tell %" PRIu64 "\n", world->seed);
    exit(1);
}

static int below(struct world *world, int limit)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (int)(world->random % (unsigned)limit);
}

/* One of the values of a document, as a term of a sum: so the order in which they are read is nothing. */
static uint64_t term(int index, int type, int id, int value)
{
    uint64_t hash = (uint64_t)value * 1000003u + (uint64_t)(index * TYPES * IDS + type * IDS + id) * 7919u + 1;
    hash *= 0x9e3779b97f4a7c15u;
    return value == 0 ? 0 : hash ^ hash >> 31;
}

/* A pattern has one star at its end or its beginning. */
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

/* Which indices an expression comes to; those that are closed are left out. */
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

/* What a name stands for in a lock: the index, of an alias the one that it writes to, or the only one; what is neither, itself. */
static int resolve_lock(const struct state *state, int name)
{
    const struct name *at = &state->names[name];
    if (at->aliased == 0)
        return name;
    if ((at->aliased & (at->aliased - 1)) == 0)
        return __builtin_ctz(at->aliased);
    return at->write_index >= 0 ? at->write_index : -1;
}

/* What a get of a document by a name reads; -1: nothing. */
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

/* --- Judging ------------------------------------------------------------------------------------------------------ */

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

static void judge_write(const struct world *world, int session, int index, int type, int id, const char *who)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && lock->session != session && covers(lock, index, type, id))
            fail(world, "%s wrote %s/%s/%s under a lock of s%d by the name %s", who, names[index], types[type], ids[id],
                 lock->session, lock->name < 0 ? "everything" : names[lock->name]);
    }
}

/* A change of a whole index. With `place` locks on its documents are not in the way. */
static void judge_change(const struct world *world, int session, int index, bool place)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && lock->session != session && (lock->name < 0 || lock->index == index) &&
            (!place || lock->id < 0))
            fail(world, "%s was changed under a lock of s%d", names[index], lock->session);
    }
}

static void judge_names(const struct world *world)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && lock->name >= 0 && resolve_lock(&world->state, lock->name) != lock->index)
            fail(world, "%s, by which s%d holds a lock, means something else now", names[lock->name], lock->session);
    }
}

static bool go_together(int a, int b)
{
    return a != LOCK_X && b != LOCK_X && !(a == LOCK_U && b == LOCK_U);
}

static bool overlap(const struct held *a, const struct held *b)
{
    if (a->name < 0 || b->name < 0)
        return true;
    if (a->index != b->index)
        return false;
    return a->id < 0 || b->id < 0 || (a->id == b->id && (a->type < 0 || b->type < 0 || a->type == b->type));
}

static void judge_grant(const struct world *world, const struct held *lock)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *other = &world->locks[i];
        if (other->used && other->session != lock->session && !go_together(other->mode, lock->mode) &&
            overlap(other, lock))
            fail(world, "s%d and s%d both hold %s", lock->session, other->session,
                 lock->name < 0 ? "everything" : names[lock->name]);
    }
}

/* Everything that a transaction has read is read again, as of its commit. */
static void judge_commit(struct world *world, struct actor *txn)
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

/* The model's names are the catalog's: else it would judge by something that is not so. */
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

/* Answers a read as the api does: with the catalog of after the locks. */
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

/* What a command was about, in its arena. */
struct meant {
    struct actor *actor;
    int session; /* whose locks it passes; -1: nobody's */
    struct op op;
    struct held lock;
    int other; /* an index of an alias */
    bool flag;
};

static struct meant *meant_of(const struct command *command)
{
    return command->context;
}

/* What is written to a name that nothing has makes an index of it, also where the document is refused then. */
static void look_for_made_index(struct world *world, int name)
{
    struct catalog *catalog = core_catalog(world->core);
    if (catalog_index(catalog, slice_from(names[name])) != NULL)
        world->state.names[name].index = true;
    catalog_unref(catalog);
}

static void judge_token(const struct world *world, int session, uint64_t token, const struct op *op)
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

static void done_write(struct world *world, struct meant *meant, struct command *command)
{
    const struct write_result *result = &command->write.results[0];
    struct op op = meant->op;
    if (result->outcome == WRITE_NOT_FOUND && command->write.items[0].dialect == DIALECT_5 &&
        index_of(result->index) >= 0) {
        bool there = world->state.names[index_of(result->index)].index; /* a delete of 5.x makes its index */
        if (!there)
            judge_change(world, meant->session, index_of(result->index), true);
        world->state.names[index_of(result->index)].index = true;
    }
    if (result->outcome == WRITE_FAILED)
        look_for_made_index(world, meant->op.name);
    if (result->outcome == WRITE_FAILED || result->outcome == WRITE_NOT_FOUND)
        return;
    op.write = true;
    op.index = index_of(result->index);
    op.type = type_of(result->type);
    if (op.index < 0 || op.type < 0)
        fail(world, "a write went where there is nothing");
    if (command->owner.fencing_token != 0)
        judge_token(world, meant->session, command->owner.fencing_token, &op);
    bool made = !world->state.names[op.index].index;
    if (world->state.names[op.index].blocked || world->state.names[op.index].closed)
        fail(world, "%s wrote to %s, which is closed or blocked", meant->actor->id, names[op.index]);
    judge_write(world, meant->session, op.index, op.type, op.id, meant->actor->id);
    if (made)
        judge_change(world, meant->session, op.index, true);
    world->state.names[op.index].index = true;
    if (command->owner.transaction.len == 0)
        set_value(&world->state, op.index, &op);
    else if (meant->actor->op_count < OPS)
        meant->actor->ops[meant->actor->op_count++] = op;
}

static void done_read(struct world *world, struct meant *meant, struct command *command)
{
    const struct txn_lock_command *lock = &command->txn_lock;
    struct view view = {world->store, lock->read_ts, lock->overlay};
    struct op op = meant->op;
    op.answer = read_now(world, &op, &view);
    core_overlay_unref(lock->overlay);
    if (meant->actor->op_count < OPS)
        meant->actor->ops[meant->actor->op_count++] = op;
    world->reads++;
}

static bool has_token(const struct world *world, int session, uint64_t token)
{
    for (int i = 0; i < LOCKS; i++)
        if (world->locks[i].used && world->locks[i].session == session && world->locks[i].token == token)
            return true;
    return false;
}

static void done_lock(struct world *world, struct meant *meant, const struct command *command)
{
    struct held lock = meant->lock;
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
    judge_grant(world, &lock);
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

static void done_change(struct world *world, struct meant *meant, struct command *command)
{
    struct name *name = &world->state.names[meant->op.name];
    struct name *alias = &world->state.names[meant->other];
    switch (command->type) {
    case COMMAND_INDEX_CREATE:
        judge_change(world, meant->session, meant->op.name, true);
        name->index = true;
        break;
    case COMMAND_INDEX_DELETE:
        judge_change(world, meant->session, meant->op.name, false);
        drop_index(&world->state, meant->op.name);
        break;
    case COMMAND_INDEX_STATE:
        judge_change(world, meant->session, meant->op.name, false);
        name->closed = meant->flag;
        break;
    case COMMAND_SETTINGS_PUT:
        judge_change(world, meant->session, meant->op.name, true);
        name->blocked = meant->flag;
        break;
    case COMMAND_ALIASES_UPDATE:
        judge_change(world, meant->session, meant->op.name, true);
        if (command->aliases.actions[0].op == ALIAS_REMOVE)
            alias->aliased &= ~(1u << meant->op.name);
        else
            alias->aliased |= 1u << meant->op.name;
        if (alias->write_index == meant->op.name)
            alias->write_index = -1;
        if (meant->flag)
            alias->write_index = meant->op.name;
        break;
    case COMMAND_SCRIPT_PUT: world->state.script = meant->op.value; break;
    case COMMAND_SCRIPT_DELETE: world->state.script = 0; break;
    default: break;
    }
    judge_names(world);
}

/* --- Ends of sessions --------------------------------------------------------------------------------------------- */

/* A document as it stands. Returns: its value; 0: it is not there. */
static int stored(const struct world *world, int index, int type, int id)
{
    struct catalog *catalog = core_catalog(world->core);
    const struct catalog_index *at = catalog_index(catalog, slice_from(names[index]));
    const struct mapping_type *of = at == NULL ? NULL : mapping_type(at->mapping, slice_from(types[type]));
    struct view view = {world->store, TL_TS_MAX, NULL};
    struct doc doc;
    int value = 0;
    if (of != NULL && slice_is(of->name, types[type]) && /* not another one that goes by this name */
        doc_get(&view, at->number, of->number, slice_from(ids[id]), &doc) == 0) {
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

static bool lives(const struct world *world, unsigned serial)
{
    for (int i = 0; i < SESSIONS; i++)
        if (world->actors[i].open && world->actors[i].serial == serial)
            return true;
    return false;
}

/* Whether anybody may have a lock on a document: a session is known to have it, be its type called so or not; a transaction may have any. */
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

/* What sessions leave changes nothing under a lock; it comes before what is granted in the same step. */
static void judge_left(struct world *world, int index, int type, int id, const char *who)
{
    for (int i = 0; i < LOCKS; i++) {
        const struct held *lock = &world->locks[i];
        if (lock->used && covers(lock, index, type, id) && memcmp(lock, &world->locks_before[i], sizeof *lock) == 0)
            fail(world, "%s changed %s/%s/%s under a lock of %s on %s, type %d, id %d", who, names[index], types[type],
                 ids[id], world->actors[lock->session].id, lock->name < 0 ? "everything" : names[lock->name],
                 lock->type, lock->id);
    }
}

/* What lived with a session that has ended: it is gone, or somebody may hold it. */
static void look_for_leftovers(struct world *world, int index, int type, int id)
{
    struct name *at = &world->state.names[index];
    if (at->values[type][id] == 0 || at->leases[type][id] == 0 || lives(world, at->leases[type][id]))
        return;
    int found = stored(world, index, type, id);
    if (found == at->values[type][id] && !may_be_held(world, index, id))
        fail(world, "%s/%s/%s lived with s%u, which has ended, and stays though nobody holds it", names[index],
             types[type], ids[id], at->leases[type][id]);
    if (found != 0 || !knows_type(world, index, type))
        return; /* or somebody has written it, or deleted the index, in this very step, which is told by and by */
    judge_left(world, index, type, id, "the end of a session");
    at->values[type][id] = 0;
    at->leases[type][id] = 0;
    world->removals++;
    if (world->tells)
        printf("        %s/%s/%s is gone with its session\n", names[index], types[type], ids[id]);
}

/* Finds where a value that only one action writes has come to be: its name may be an alias, its type another one's name. */
static bool find_value(const struct world *world, struct op *op)
{
    for (op->index = 0; op->index < NAMES; op->index++)
        for (op->type = 0; op->type < TYPES; op->type++)
            if (stored(world, op->index, op->type, op->id) == op->value)
                return true;
    return false;
}

/* An action goes where its alias led when the session ended, for as long as an index is called so. */
static void judge_goal(const struct world *world, const struct leaving *leaving, int index)
{
    if (!leaving->fresh && leaving->led >= 0 && index != leaving->led &&
        world->state.names[leaving->led].aliased == 0 && world->state_before.names[leaving->led].aliased == 0)
        fail(world, "what a session left for %s, which led to %s when it ended, went to %s", names[leaving->op.name],
             names[leaving->led], names[index]);
}

static void look_for_action(struct world *world, struct leaving *leaving)
{
    struct op op = leaving->op;
    if (!find_value(world, &op))
        return;
    judge_goal(world, leaving, op.index);
    judge_left(world, op.index, op.type, op.id, "what a session left");
    set_value(&world->state, op.index, &op);
    leaving->used = false;
    world->actions++;
    if (world->tells)
        printf("        what a session left to be done in %s/%s/%s is done: %d\n", names[op.index], types[op.type],
               ids[op.id], op.value);
}

/* Whether nobody can hold or await anything: what could be done is done by now. */
static bool is_deserted(const struct world *world)
{
    for (int i = 0; i < ACTORS; i++)
        if (world->actors[i].command != NULL || (i >= SESSIONS && i < SESSIONS + TXNS && world->actors[i].open))
            return false;
    for (int i = 0; i < LOCKS; i++)
        if (world->locks[i].used)
            return false;
    return true;
}

/* What ended sessions had and left, as it is now. An action may fail, too. */
static void look_after_ends(struct world *world)
{
    for (int i = 0; i < LEAVINGS; i++)
        if (world->leavings[i].used) {
            look_for_made_index(world, world->leavings[i].op.name);
            look_for_action(world, &world->leavings[i]);
            world->leavings[i].used &= !is_deserted(world);
        }
    for (int i = 0; i < NAMES; i++)
        for (int t = 0; t < TYPES; t++)
            for (int d = 0; d < IDS; d++)
                look_for_leftovers(world, i, t, d);
}

/* Whether an action can but be done: it means one index, that has its type, and nobody holds or awaits anything. */
static bool must_be_done(const struct world *world, const struct op *op)
{
    int index = resolve_lock(&world->state, op->name);
    return index >= 0 && world->state.names[index].index && knows_type(world, index, op->type) && is_deserted(world);
}

/* Where an alias led during the whole step. */
static int goal_of(const struct world *world, int name)
{
    int before = resolve_lock(&world->state_before, name), now = resolve_lock(&world->state, name);
    return world->state.names[name].aliased != 0 && world->state_before.names[name].aliased != 0 && before == now ? now
                                                                                                                  : -1;
}

static void look_where_aliases_led(struct world *world)
{
    for (int i = 0; i < LEAVINGS; i++) {
        struct leaving *leaving = &world->leavings[i];
        if (leaving->used && leaving->fresh)
            leaving->led = goal_of(world, leaving->op.name);
        leaving->fresh = false;
    }
}

/* Whether others left something that may have been done in its place by now, what was kept for the holder behind what he left himself. */
static bool others_left_for(const struct world *world, int id)
{
    for (int i = 0; i < LEAVINGS; i++)
        if (world->leavings[i].used && world->leavings[i].op.id == id)
            return true;
    for (int i = 0; i < SESSIONS; i++)
        if (world->actors[i].left.value != 0 && world->actors[i].left.id == id)
            return true;
    return false;
}

/* A session is no more. What it held, it holds no more; what it left, it may have done by now. */
static void bury(struct world *world, struct actor *session, bool in_order)
{
    struct op left = session->left;
    if (world->tells)
        printf("        %s ends\n", session->id);
    session->open = false;
    session->left.value = 0;
    forget_locks(world, (int)(session - world->actors));
    world->deaths++;
    if (in_order || left.value == 0)
        return;
    struct op done = left;
    if (must_be_done(world, &left) && !find_value(world, &done) && !others_left_for(world, left.id))
        fail(world, "%s has ended, and what it left is not done", session->id);
    for (int i = 0; i < LEAVINGS; i++)
        if (!world->leavings[i].used) {
            world->leavings[i] = (struct leaving){true, left, true, -1};
            return;
        }
    fail(world, "more sessions have left something than there is room for");
}

/* Sessions of which the server knows no more: one that is closed, or whose lease is over. */
static void look_for_dead(struct world *world, const struct command *command)
{
    const struct meant *meant = meant_of(command);
    for (int i = 0; i < SESSIONS; i++) {
        struct actor *session = &world->actors[i];
        const struct session *found = owners_session(world->core->owners, slice_from(session->id));
        bool over = session->ends <= world->clock && command->type == COMMAND_TICK;
        bool closing = command->type == COMMAND_SESSION_CLOSE && meant->actor == session;
        bool gone = found == NULL || found->terminating;
        if (!session->open)
            continue;
        if (gone != (over || closing))
            fail(world, "%s %s", session->id,
                 gone ? "is gone, and its lease is not over" : "is there still, and its lease is over");
        if (gone)
            bury(world, session, closing && !command->session.force);
    }
}

static void end_txn(struct actor *txn)
{
    txn->open = false;
    txn->op_count = 0;
}

static void complete(struct world *world, struct command *command)
{
    struct meant *meant = meant_of(command);
    bool fine = command->problem.type == PROBLEM_NONE;
    if (meant == NULL)
        return;
    if (world->tells)
        printf("        %s %s: %s\n", meant->actor->id, command_name(command->type),
               fine ? "done" : command->problem.reason.data);
    meant->actor->command = NULL;
    world->refusals += !fine;
    world->deadlocks += command->problem.type == PROBLEM_DEADLOCK_DETECTED;
    if (!fine) {
        if (command->problem.type == PROBLEM_DEADLOCK_DETECTED ||
            command->problem.type == PROBLEM_TRANSACTION_ABORTED ||
            command->problem.type == PROBLEM_TRANSACTION_MISSING)
            if (command->owner.transaction.len > 0 || command->type == COMMAND_TXN_COMMIT)
                end_txn(meant->actor);
        return;
    }
    switch (command->type) {
    case COMMAND_WRITE: done_write(world, meant, command); break;
    case COMMAND_TXN_LOCK: done_read(world, meant, command); break;
    case COMMAND_LOCK: done_lock(world, meant, command); break;
    case COMMAND_TXN_COMMIT:
        judge_commit(world, meant->actor);
        end_txn(meant->actor);
        break;
    case COMMAND_TXN_ROLLBACK: end_txn(meant->actor); break;
    case COMMAND_UNLOCK: forget_locks(world, meant->session); break;
    case COMMAND_SESSION_CLOSE:
    case COMMAND_SESSION_OPEN:
    case COMMAND_TXN_BEGIN: break;
    default: done_change(world, meant, command); break;
    }
}

/* The command by way of its bytes; what was meant lay in the memory of the one that is gone. */
static struct command *through_bytes(struct command *command)
{
    struct meant kept, *meant = meant_of(command);
    if (meant == NULL)
        return codec_roundtrip(command);
    kept = *meant;
    command = codec_roundtrip(command);
    command->context = meant = arena_alloc(&command->arena, sizeof *meant);
    *meant = kept;
    return command;
}

static void step(struct world *world, struct command *command)
{
    command = through_bytes(command);
    struct meant *meant = meant_of(command);
    struct actor *actor = meant == NULL ? NULL : meant->actor;
    bool ended = false;
    world->clock += 10 * TL_MS;
    /* The clock by which timestamps are made stands still, or is set forward: durations do not care. */
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
        look_for_dead(world, command);
        look_after_ends(world); /* before others write over it, who are told below */
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
    look_after_ends(world);
    look_where_aliases_led(world);
    if (!ended && actor != NULL && actor->command == command)
        world->waits++;
    compare_names(world);
}

/* --- Commands begin ----------------------------------------------------------------------------------------------- */

/* One seed in four is about aliases: two names are hardly anything else, and lead to one of two indices and its first document. */
enum { PLAIN = 4 };

static bool is_about_aliases(const struct world *world)
{
    return world->seed % 4 == 0;
}

static void aim(struct world *world, struct meant *meant)
{
    const struct name *at = &world->state.names[meant->op.name];
    if (!is_about_aliases(world))
        return;
    if (meant->op.name >= PLAIN && (at->aliased == 0 || below(world, 2) == 0) && !at->index)
        meant->op.name = below(world, 2);
    if (below(world, 2) == 0)
        meant->op.id = 0;
    meant->other = PLAIN + below(world, NAMES - PLAIN);
}

static struct command *make(struct world *world, enum command_type type, struct actor *actor, struct meant **ret_meant)
{
    struct command *command = command_new(type, DIALECT_7);
    struct meant *meant = arena_zalloc(&command->arena, sizeof *meant);
    meant->actor = actor;
    meant->session = actor < world->actors + SESSIONS ? (int)(actor - world->actors) : -1;
    meant->op.name = below(world, NAMES);
    meant->op.type = below(world, TYPES);
    meant->op.id = below(world, IDS);
    meant->other = below(world, NAMES);
    aim(world, meant);
    meant->lock = (struct held){.session = meant->session, .name = meant->op.name, .type = -1, .id = -1};
    command->context = meant;
    command->owner.timeout_us = below(world, 3) == 0 ? 0 : (uint64_t)(1 + below(world, 5)) * TL_SECOND;
    *ret_meant = meant;
    return command;
}

static void tell(const struct world *world, const struct actor *actor, const char *what, const char *name)
{
    if (world->tells)
        printf("%s %s %s\n", actor->id, what, name);
}

static void do_write(struct world *world, struct actor *actor, bool in_txn)
{
    struct meant *meant;
    struct command *command = make(world, COMMAND_WRITE, actor, &meant);
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    bool five = meant->op.type > 0;
    *item = (struct write_item){.op = below(world, 5) == 0 ? WRITE_DELETE : WRITE_INDEX,
                                .dialect = five ? DIALECT_5 : DIALECT_7,
                                .index = slice_from(names[meant->op.name]),
                                .type = five ? slice_from(types[meant->op.type]) : SLICE_NONE,
                                .id = slice_from(ids[meant->op.id]),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    if (item->op == WRITE_INDEX) {
        meant->op.value = ++world->value;
        item->source = arena_printf(&command->arena, "{\"v\":%d}", meant->op.value);
        const struct actor *with = &world->actors[below(world, SESSIONS)];
        if (with->open && below(world, 3) == 0) {
            meant->op.lease = with->serial;
            item->lease = arena_copy(&command->arena, slice_from(with->id));
        }
    }
    command->write.items = item;
    command->write.item_count = 1;
    if (in_txn) {
        command->owner.transaction = slice_from(actor->id);
    } else if (meant->session >= 0) {
        const struct held *lock = &world->locks[below(world, 2 * LOCKS / SESSIONS)];
        command->owner.session = slice_from(actor->id);
        if (lock->used)
            command->owner.fencing_token = lock->token;
    }
    tell(world, actor, item->op == WRITE_DELETE ? "deletes in" : "writes to", names[meant->op.name]);
    if (world->tells)
        printf("        type %s id %s%s\n", types[meant->op.type], ids[meant->op.id],
               meant->op.lease != 0 ? ", ephemeral" : "");
    step(world, command);
}

static void do_read(struct world *world, struct actor *actor)
{
    struct meant *meant;
    struct command *command = make(world, COMMAND_TXN_LOCK, actor, &meant);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    int kind = below(world, 8);
    meant->op.kind = kind < 4 ? READ_SEARCH : kind < 5 ? READ_GET : kind < 7 ? READ_ANY : READ_SCRIPT;
    *target = (struct lock_target){.mode = LOCK_S, .index = slice_from(names[meant->op.name])};
    if (meant->op.kind == READ_SEARCH) {
        meant->op.name = below(world, EXPRESSIONS);
        target->index = slice_from(expressions[meant->op.name]);
        target->expression = &search_options;
    } else if (meant->op.kind == READ_SCRIPT) {
        target->index = SLICE_LIT("s");
        target->script = true;
    } else {
        if (meant->op.kind == READ_GET)
            meant->op.type = 1 + below(world, TYPES - 1);
        target->type = meant->op.kind == READ_ANY ? SLICE_LIT("_all") : slice_from(types[meant->op.type]);
        target->id = slice_from(ids[meant->op.id]);
        command->dialect = DIALECT_5;
    }
    command->txn_lock.targets = target;
    command->txn_lock.target_count = 1;
    command->owner.transaction = slice_from(actor->id);
    tell(world, actor, "reads", target->index.data);
    if (world->tells && target->id.data != NULL)
        printf("        type %.*s id %s\n", SLICE_ARG(target->type), ids[meant->op.id]);
    step(world, command);
}

static void do_txn(struct world *world, struct actor *actor, enum command_type type)
{
    struct meant *meant;
    struct command *command = make(world, type, actor, &meant);
    if (type == COMMAND_TXN_BEGIN) {
        snprintf(actor->id, sizeof actor->id, "t%u", ++world->born);
        actor->open = true;
        actor->op_count = 0;
    }
    command->txn.id = slice_from(actor->id);
    command->txn.idle_us = 24 * 3600 * TL_SECOND;
    tell(world, actor, command_name(type), "");
    step(world, command);
}

/* What is done when the session dies: a write by any name and type. */
static void leave_something(struct world *world, struct actor *actor, struct command *command)
{
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    actor->left = (struct op){.name = below(world, NAMES), .type = below(world, TYPES), .id = below(world, IDS)};
    if (below(world, 2) == 0)
        return;
    for (int i = PLAIN; i < NAMES && is_about_aliases(world); i++)
        if (world->state.names[i].aliased != 0)
            actor->left = (struct op){.name = i};
    actor->left.value = ++world->value;
    *item = (struct write_item){.op = WRITE_INDEX,
                                .index = slice_from(names[actor->left.name]),
                                .type = slice_from(types[actor->left.type]),
                                .id = slice_from(ids[actor->left.id]),
                                .source = arena_printf(&command->arena, "{\"v\":%d}", actor->left.value),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    command->session.on_expire = item;
    command->session.on_expire_count = 1;
}

static void do_session(struct world *world, struct actor *actor, enum command_type type)
{
    struct meant *meant;
    struct command *command = make(world, type, actor, &meant);
    if (type == COMMAND_SESSION_OPEN)
        snprintf(actor->id, sizeof actor->id, "s%u", ++world->born);
    command->session.id = slice_from(actor->id);
    command->session.ttl_us =
        below(world, 3) == 0 ? (uint64_t)(1 + below(world, 6)) * TL_SECOND : 12 * 3600 * TL_SECOND;
    command->session.force = below(world, 2) == 0;
    if (type == COMMAND_SESSION_OPEN) {
        actor->open = true;
        actor->serial = world->born;
        actor->ends = world->clock + 10 * TL_MS + command->session.ttl_us;
        leave_something(world, actor, command);
    }
    tell(world, actor, command_name(type), "");
    step(world, command);
}

static void do_lock(struct world *world, struct actor *actor)
{
    struct meant *meant;
    struct command *command = make(world, COMMAND_LOCK, actor, &meant);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    struct held *lock = &meant->lock;
    int roll = below(world, 20);
    lock->mode = LOCK_S + below(world, 3);
    *target = (struct lock_target){.mode = (enum lock_mode)lock->mode, .index = slice_from(names[lock->name])};
    if (roll == 0) {
        lock->name = -1;
        target->index = SLICE_NONE;
    } else if (roll > 6) {
        lock->id = meant->op.id;
        target->id = slice_from(ids[lock->id]);
        if (roll > 13) {
            lock->type = 1 + below(world, TYPES - 1);
            target->type = slice_from(types[lock->type]);
        }
    }
    command->lock.targets = target;
    command->lock.target_count = 1;
    command->owner.session = slice_from(actor->id);
    tell(world, actor, "locks", lock->name < 0 ? "everything" : names[lock->name]);
    if (world->tells)
        printf("        mode %d type %d id %d\n", lock->mode, lock->type, lock->id);
    step(world, command);
}

static void do_unlock(struct world *world, struct actor *actor)
{
    struct meant *meant;
    struct command *command = make(world, COMMAND_UNLOCK, actor, &meant);
    command->owner.session = slice_from(actor->id);
    tell(world, actor, "unlocks", "");
    step(world, command);
}

static void do_alias(struct world *world, struct meant *meant, struct command *command)
{
    struct alias_action *action = arena_zalloc(&command->arena, sizeof *action);
    *action = (struct alias_action){.op = below(world, 3) == 0 ? ALIAS_REMOVE : ALIAS_ADD,
                                    .index = slice_from(names[meant->op.name]),
                                    .alias = slice_from(names[meant->other])};
    meant->flag = action->op == ALIAS_ADD && below(world, 3) == 0;
    if (meant->flag)
        action->body = SLICE_LIT("{\"is_write_index\":true}");
    command->aliases.actions = action;
    command->aliases.action_count = 1;
}

static void do_change(struct world *world, struct actor *actor)
{
    static const enum command_type kinds[] = {COMMAND_INDEX_CREATE,   COMMAND_INDEX_DELETE,   COMMAND_INDEX_STATE,
                                              COMMAND_ALIASES_UPDATE, COMMAND_ALIASES_UPDATE, COMMAND_ALIASES_UPDATE,
                                              COMMAND_SCRIPT_PUT,     COMMAND_SCRIPT_DELETE,  COMMAND_SETTINGS_PUT};
    enum command_type type = kinds[below(world, sizeof kinds / sizeof kinds[0])];
    struct meant *meant;
    if (is_about_aliases(world) && below(world, 3) > 0)
        type = COMMAND_ALIASES_UPDATE;
    struct command *command = make(world, type, actor, &meant);
    if (meant->session >= 0)
        command->owner.session = slice_from(actor->id);
    if (type == COMMAND_ALIASES_UPDATE) {
        if (is_about_aliases(world))
            meant->op.name = below(world, 2);
        do_alias(world, meant, command);
    } else if (type == COMMAND_SCRIPT_PUT || type == COMMAND_SCRIPT_DELETE) {
        meant->op.value = ++world->value;
        command->object.name = SLICE_LIT("s");
        command->object.body =
            arena_printf(&command->arena, "{\"script\":{\"lang\":\"painless\",\"source\":\"%d\"}}", meant->op.value);
    } else {
        meant->flag = below(world, 2) == 0;
        command->index.name = slice_from(names[meant->op.name]);
        command->index.uuid = SLICE_LIT("0123456789abcdefghijkl");
        command->index.close = meant->flag;
        if (type == COMMAND_SETTINGS_PUT)
            command->index.body =
                meant->flag ? SLICE_LIT("{\"index.blocks.write\":true}") : SLICE_LIT("{\"index.blocks.write\":false}");
    }
    tell(world, actor, command_name(type), names[meant->op.name]);
    if (world->tells && type == COMMAND_ALIASES_UPDATE)
        printf("        alias %s, action %d, write %d\n", names[meant->other], command->aliases.actions[0].op,
               meant->flag);
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

static void drain_stopped(struct world *world)
{
    while (!list_empty(&world->effects.completed)) {
        struct command *one = list_entry(world->effects.completed.next, struct command, link);
        list_remove(&one->link);
        complete(world, one);
        command_free(one);
    }
}

/* Sessions and their locks are there again; what waited has ended, and so have transactions. */
static void restart(struct world *world)
{
    struct core_limits limits = core_limits_default();
    uint64_t before, after;
    settle(world->store);
    core_stop(world->core, &world->effects);
    drain_stopped(world);
    INSIST(core_digest(world->core, &before) == 0);
    core_close(world->core);
    INSIST(core_open(world->store, &limits, &world->core) == 0);
    INSIST(core_digest(world->core, &after) == 0);
    if (before != after)
        fail(world, "a restart loads another state");
    for (int i = SESSIONS; i < SESSIONS + TXNS; i++)
        end_txn(&world->actors[i]);
    world->restarts++;
    world->clock = 10 * TL_SECOND + (uint64_t)below(world, 1000) * TL_SECOND; /* of another origin */
    step(world, command_new(COMMAND_RESTART, DIALECT_7));
    for (int i = 0; i < SESSIONS; i++) { /* leases begin anew */
        const struct session *found = owners_session(world->core->owners, slice_from(world->actors[i].id));
        world->actors[i].ends = found == NULL ? 0 : world->clock + found->ttl_us;
    }
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
        do_change(world, actor);
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

static void act(struct world *world)
{
    int roll = below(world, 200);
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
        do_change(world, actor);
    else
        do_write(world, actor, false);
}

static bool anyone_waits(const struct world *world)
{
    for (int i = 0; i < ACTORS; i++)
        if (world->actors[i].command != NULL)
            return true;
    return false;
}

/* Everybody goes home: nothing may be left. */
static void finish(struct world *world)
{
    for (int i = 0; anyone_waits(world) && i < 1000; i++)
        tick(world);
    if (anyone_waits(world))
        fail(world, "somebody waits for ever");
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

static void run(uint64_t seed, int steps, bool tells, struct world *sum)
{
    static struct world world;
    struct core_limits limits = core_limits_default();
    world = (struct world){.random = seed * 0x9e3779b97f4a7c15u + 1,
                           .seed = seed,
                           .tells = tells,
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
    sum->deaths += world.deaths;
    sum->removals += world.removals;
    sum->actions += world.actions;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, seeds = 100;
    int steps = 600;
    bool tells = false;
    struct world sum = {0};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--from") == 0)
            first = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--steps") == 0)
            steps = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--tell") == 0) {
            first = strtoull(argv[i + 1], NULL, 10);
            seeds = 1;
            tells = true;
        }
    }
    for (uint64_t seed = first; seed < first + seeds; seed++)
        run(seed, steps, tells, &sum);
    printf("names: %" PRIu64 " seeds of %d steps: %" PRIu64 " commits with %" PRIu64 " reads, %" PRIu64
           " waits, %" PRIu64 " refusals, %" PRIu64 " deadlocks, %" PRIu64 " restarts, %" PRIu64
           " ends of sessions, which removed %" PRIu64 " documents and left %" PRIu64 " actions done\n",
           seeds, steps, sum.commits, sum.reads, sum.waits, sum.refusals, sum.deadlocks, sum.restarts, sum.deaths,
           sum.removals, sum.actions);
    return 0;
}
