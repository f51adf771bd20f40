/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing the product with the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/documents/session_tombstone.h"
#include "core/session/owners.h"
#include "mapping/entry.h"
#include "mapping/mapping.h"
#include "core/cleanup/deferred.h"
#include "core/wait/wait.h"
#include "core/session/txn.h"
#include "core/unit/handler.h"
#include "dirs.h"
#include "parts.h"
#include "world.h"

/* --- Results ------------------------------------------------------------------------------------------------------ */

static enum om_problem problem_of(enum problem_type type)
{
    switch (type) {
    case PROBLEM_NONE: return OM_FINE;
    case PROBLEM_SESSION_MISSING: return OM_SESSION_MISSING;
    case PROBLEM_SESSION_ATTACHED: return OM_ATTACHED;
    case PROBLEM_TRANSACTION_MISSING: return OM_TXN_MISSING;
    case PROBLEM_TRANSACTION_ABORTED: return OM_TXN_ABORTED;
    case PROBLEM_TRANSACTION_TOO_LARGE: return OM_TOO_LARGE;
    case PROBLEM_ILLEGAL_ARGUMENT: return OM_ILLEGAL;
    case PROBLEM_LIMIT_EXCEEDED: return OM_LIMIT;
    case PROBLEM_LOCK_CONFLICT: return OM_LOCK_CONFLICT;
    case PROBLEM_LOCK_WAIT_TIMEOUT: return OM_LOCK_TIMEOUT;
    case PROBLEM_DEADLOCK_DETECTED: return OM_DEADLOCK;
    case PROBLEM_STALE_FENCING_TOKEN: return OM_STALE_TOKEN;
    case PROBLEM_VERSION_CONFLICT: return OM_CONFLICT;
    case PROBLEM_DOCUMENT_MISSING: return OM_MISSING;
    case PROBLEM_INDEX_NOT_FOUND: return OM_NO_INDEX;
    case PROBLEM_RESOURCE_ALREADY_EXISTS: return OM_EXISTS;
    case PROBLEM_STOPPING: return OM_STOPPING;
    case PROBLEM_CLUSTER_BLOCK: return OM_BLOCKED;
    case PROBLEM_INDEX_CLOSED: return OM_CLOSED;
    case PROBLEM_EPHEMERAL_LIMIT: return OM_EPHEMERAL;
    case PROBLEM_PATH_MISSING: return OM_PATH_MISSING;
    case PROBLEM_PATH_EXISTS: return OM_PATH_EXISTS;
    case PROBLEM_KEPT_MISSING: return OM_KEPT_MISSING;
    default: return (enum om_problem)(1000 + (int)type);
    }
}

static void same(const struct world *world, const char *what, uint64_t found, uint64_t expected)
{
    if (found != expected)
        world_fail(world, "%s is %llu, the model says %llu", what, (unsigned long long)found,
                   (unsigned long long)expected);
}

static void same_problem(const struct world *world, const struct problem *found, enum om_problem expected)
{
    if (problem_of(found->type) != expected)
        world_fail(world, "the problem is %d (%.*s), the model says %d", problem_of(found->type),
                   SLICE_ARG(found->reason), expected);
}

static void compare_items(const struct world *world, const struct om_done *expected, const struct write_command *write)
{
    same(world, "rolled back", write->rolled_back, expected->rolled_back);
    for (size_t i = 0; i < write->item_count; i++) {
        const struct write_result *found = &write->results[i];
        const struct om_result *result = &expected->results[i];
        if ((int)found->outcome != result->outcome)
            world_fail(world, "item %zu: outcome %d (%.*s), the model says %d (problem %d)", i, found->outcome,
                       SLICE_ARG(found->problem.reason), result->outcome, result->problem);
        same_problem(world, &found->problem, result->problem);
        if (result->outcome == OM_FAILED && result->problem != OM_CONFLICT)
            continue;
        if (found->version != result->version)
            world_fail(world, "item %zu: version %lld, the model says %lld", i, (long long)found->version,
                       (long long)result->version);
        if (found->seq_no != result->seq_no)
            world_fail(world, "item %zu: sequence number %lld, the model says %lld", i, (long long)found->seq_no,
                       (long long)result->seq_no);
    }
}

/* --- Documents ---------------------------------------------------------------------------------------------------- */

/* Returns: the number that follows a name in a source; -1: none. */
static int number_in(struct slice source, const char *name)
{
    const char *found = memmem(source.data, source.len, name, strlen(name));

    return found == NULL ? -1 : found[strlen(name)] - '0';
}

static int dir_in(struct slice source)
{
    static const char name[] = "\"path\":\"";
    const char *found = memmem(source.data, source.len, name, sizeof(name) - 1);

    if (found == NULL)
        return -1;
    found += sizeof(name) - 1;
    const char *end = memchr(found, '"', (size_t)(source.data + source.len - found));
    int dir = end == NULL ? -1 : dirs_find(found, (size_t)(end - found));
    return dir < 0 ? -2 : dir; /* a path that the model does not know */
}

/* Reads a document in a view. Returns: whether it exists. */
static bool read_doc(const struct world *world, const struct catalog *catalog, const struct view *view, int index,
                     int number, struct om_doc *ret_doc, char *lease)
{
    const struct catalog_index *found = catalog_index(catalog, slice_from(gen_index_names[index]));
    const struct mapping_type *type = found == NULL ? NULL : mapping_type(found->mapping, SLICE_LIT("_doc"));
    char id[2] = {(char)('0' + number), '\0'};
    struct doc doc;

    memset(ret_doc, 0, sizeof(*ret_doc));
    if (type == NULL)
        return false;
    int r = doc_get(view, found->number, type->number, slice_from(id), &doc);
    if (r != 0 && r != DOC_NOT_FOUND)
        world_fail(world, "a document cannot be read: %d", r);
    if (r != 0)
        return false;
    *ret_doc = (struct om_doc){.live = true,
                               .value = number_in(doc.source, "\"v\":"),
                               .dir = (int16_t)dir_in(doc.source),
                               .version = doc.version,
                               .seq_no = doc.seq_no,
                               .ts = doc.ts};
    snprintf(lease, 16, "%.*s", SLICE_ARG(doc.lease));
    doc_release(&doc);
    return true;
}

static void compare_doc(const struct world *world, const struct catalog *catalog, const struct view *view, int index,
                        int number, const struct om_doc *expected)
{
    char lease[16] = "", wanted[16] = "";
    struct om_doc found;
    bool there = read_doc(world, catalog, view, index, number, &found, lease);

    if (there && expected->lease != 0)
        snprintf(wanted, sizeof(wanted), "s%u", expected->lease);
    if (there != expected->live ||
        (there && (found.value != expected->value || found.dir != expected->dir || found.version != expected->version ||
                   found.seq_no != expected->seq_no || (found.ts != expected->ts && expected->ts != OM_NEVER) ||
                   strcmp(lease, wanted) != 0)))
        world_fail(world,
                   "%s/%d as of %llu: there %d, value %d, directory %d, version %lld, seq_no %lld, ts %llu, "
                   "lease [%s]; "
                   "the model says %d, %d, %d, %lld, %lld, %llu, [%s]",
                   gen_index_names[index], number, (unsigned long long)view->ts, there, found.value, found.dir,
                   (long long)found.version, (long long)found.seq_no, (unsigned long long)found.ts, lease,
                   expected->live, expected->value, expected->dir, (long long)expected->version,
                   (long long)expected->seq_no, (unsigned long long)expected->ts, wanted);
}

/* Checks that a search for values finds each live document by one entry, and no other by any. */
static void compare_entries(const struct world *world, const struct catalog_index *index, const struct view *view,
                            const struct om_doc *expected)
{
    const struct mapping_field *field = mapping_field(index->mapping, SLICE_LIT("v"));
    int found[OM_DOCS] = {0};
    struct entry_hit hit;
    struct slice id;
    uint16_t type;
    int r = ENTRY_SCAN_END;

    if (field != NULL) {
        struct entry_scan *scan =
            entry_scan_new(view, &(struct entry_range){.index = index->number, .field = field->number});
        while ((r = entry_scan_next(scan, &hit)) == 0) {
            struct doc doc;
            if (doc_get_key(view, index->number, hit.document_key, &doc) != 0)
                continue;
            if (doc_entry_batch(&doc, field->number) == hit.batch &&
                entry_document_key_parse(hit.document_key, &type, &id))
                found[id.data[0] - '0']++;
            doc_release(&doc);
        }
        entry_scan_free(scan);
    }
    if (r != ENTRY_SCAN_END)
        world_fail(world, "entries cannot be scanned: %d", r);
    for (int i = 0; i < OM_DOCS; i++)
        if (found[i] != expected[i].live)
            world_fail(world, "%d entries as of %llu find %.*s/%d, the model has %d", found[i],
                       (unsigned long long)view->ts, SLICE_ARG(index->name), i, expected[i].live);
}

static void compare_docs(const struct world *world, const struct catalog *catalog, const struct view *view,
                         const struct om_docs *expected)
{
    for (int i = 0; i < OM_INDICES; i++) {
        const struct catalog_index *index = catalog_index(catalog, slice_from(gen_index_names[i]));
        uint64_t live = 0, count = 0;
        for (int j = 0; j < OM_DOCS; j++) {
            compare_doc(world, catalog, view, i, j, &expected->at[i][j]);
            live += expected->at[i][j].live;
        }
        if (index != NULL && doc_count(view, index->number, DOC_TYPE_ANY, &count) != 0)
            world_fail(world, "documents cannot be counted");
        same(world, "the count of documents", count, live);
        if (index != NULL)
            compare_entries(world, index, view, expected->at[i]);
    }
}

/* --- Reads in transactions ---------------------------------------------------------------------------------------- */

static void record_event(struct world *world, size_t record, enum commit_order_kind kind, int index, int number,
                         int value)
{
    if (record != SIZE_MAX)
        commit_order_add(&world->commit_order, record, kind, index * OM_DOCS + number, value);
}

/* Scans an index, as a search does. Documents outside `dir` (-1: any) do not count. */
static void search(struct world *world, const struct catalog_index *index, const struct view *view,
                   const struct om_spec *spec, const struct om_docs *seen, size_t record)
{
    int dir = spec->on.kind == OM_DIR ? spec->on.number : -1;
    bool met[OM_DOCS] = {false};
    struct doc_scan *scan = doc_scan_new(view, index->number, DOC_TYPE_ANY);
    struct slice id;
    struct doc doc;
    uint16_t type;
    int r;

    while ((r = doc_scan_next(scan, &type, &id, &doc)) == 0) {
        int number = id.data[0] - '0', stored_dir = dir_in(doc.source), value = number_in(doc.source, "\"v\":");
        if (dir >= 0 && !dirs_within(stored_dir, dir))
            continue;
        met[number] = true;
        record_event(world, record, COMMIT_ORDER_READ, spec->on.index, number, commit_order_value(value, stored_dir));
        const struct om_doc *expected = &seen->at[spec->on.index][number];
        if (!expected->live || expected->value != value || expected->dir != stored_dir ||
            expected->version != doc.version)
            world_fail(world, "a search finds %s/%d with %d, the model does not", gen_index_names[spec->on.index],
                       number, value);
    }
    doc_scan_free(scan);
    if (r != DOC_SCAN_END)
        world_fail(world, "an index cannot be walked: %d", r);
    for (int i = 0; i < OM_DOCS; i++) {
        const struct om_doc *expected = &seen->at[spec->on.index][i];
        if (met[i])
            continue;
        record_event(world, record, dir < 0 ? COMMIT_ORDER_READ : COMMIT_ORDER_OUTSIDE, spec->on.index, i, dir);
        if (expected->live && (dir < 0 || dirs_within(expected->dir, dir)))
            world_fail(world, "a search does not find %s/%d", gen_index_names[spec->on.index], i);
    }
}

/* Runs the read whose locks were granted, and compares its result. */
static void read_all(struct world *world, const struct om_done *expected, const struct om_docs *seen,
                     const struct command *command)
{
    const struct txn_lock_command *lock = &command->txn_lock;
    struct view view = {world->store, lock->read_ts, lock->overlay};
    struct view base = {world->store, lock->read_ts, NULL};
    struct catalog *catalog = NULL;
    size_t record = commit_order_find(&world->commit_order, expected->op->txn);

    same(world, "the timestamp of a read", lock->read_ts, expected->token);
    if (catalog_load(&base, &catalog) != 0)
        world_fail(world, "no catalog as of %llu", (unsigned long long)lock->read_ts);
    same(world, "the targets done", lock->done, (uint64_t)expected->names);
    for (int i = 0; i < expected->names; i++) {
        const struct om_spec *spec = &expected->op->specs[i];
        const struct catalog_index *index = catalog_index(catalog, slice_from(gen_index_names[spec->on.index]));
        uint64_t count;
        if (spec->on.kind == OM_DOC) {
            const struct om_doc *doc = &seen->at[spec->on.index][spec->on.number];
            compare_doc(world, catalog, &view, spec->on.index, spec->on.number, doc);
            record_event(world, record, COMMIT_ORDER_READ, spec->on.index, spec->on.number,
                         doc->live ? commit_order_value(doc->value, doc->dir) : -1);
        } else if (index != NULL && (spec->on.kind == OM_INDEX || world->model.indices[spec->on.index].mapped)) {
            search(world, index, &view, spec, seen, record);
        }
        if (spec->on.kind == OM_INDEX && index != NULL && doc_count(&view, index->number, DOC_TYPE_ANY, &count) == 0) {
            uint64_t live = 0;
            for (int j = 0; j < OM_DOCS; j++)
                live += seen->at[spec->on.index][j].live;
            same(world, "the count in a transaction", count, live);
        }
    }
    catalog_unref(catalog);
    core_overlay_unref(lock->overlay);
}

/* Adds the writes of a transaction to the commit order, unless compare_ended() has. */
static void record_writes(struct world *world, const struct om_done *expected)
{
    size_t record = expected->op->txn == 0 ? SIZE_MAX : commit_order_find(&world->commit_order, expected->op->txn);

    if (record == SIZE_MAX || commit_order_has(&world->commit_order, record, expected->op->number))
        return;
    world->commit_order.op = expected->op->number;
    for (int i = 0; !expected->rolled_back && i < expected->op->count; i++) {
        const struct om_item *item = &expected->op->items[i];
        int doc = item->index * OM_DOCS + item->doc, value = commit_order_value(item->value, item->dir);
        if (expected->results[i].outcome == OM_FAILED || expected->results[i].outcome == OM_NOOP)
            continue;
        if (item->action == OM_DELETE)
            commit_order_add(&world->commit_order, record, COMMIT_ORDER_SET, doc, -1);
        else
            commit_order_add(&world->commit_order, record,
                             item->action == OM_UPDATE && item->dir < 0 ? COMMIT_ORDER_CHANGE : COMMIT_ORDER_SET, doc,
                             value);
    }
    world->commit_order.op = 0;
}

void compare_ended(struct world *world)
{
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &world->model.waits[i];
        if (!wait->used || !wait->ended || !wait->partial || wait->op == NULL || wait->op->txn == 0)
            continue;
        struct om_done done = wait->done;
        for (int j = 0; j < wait->op->count; j++)
            if (wait->left[j])
                done.results[j].outcome = OM_FAILED;
        record_writes(world, &done);
    }
}

/* Adds a rename in a transaction to the commit order; outside of one, its versions are added. */
static void record_rename(struct world *world, const struct om_done *expected)
{
    const struct om_op *op = expected->op;
    size_t record = op->txn == 0 ? SIZE_MAX : commit_order_find(&world->commit_order, op->txn);

    if (record != SIZE_MAX)
        commit_order_add(&world->commit_order, record, COMMIT_ORDER_RENAME, op->index * OM_DOCS,
                         op->from * COMMIT_ORDER_DIRS + op->to);
}

/* Opens or closes the record of a transaction. */
static void record_txn(struct world *world, const struct om_done *expected, const struct txn_command *txn)
{
    size_t record = commit_order_find(&world->commit_order, expected->op->txn);

    if (expected->op->kind == OP_BEGIN) {
        (void)commit_order_begin(&world->commit_order, expected->op->txn, (uint64_t)world->step);
    } else if (record != SIZE_MAX && expected->op->kind == OP_COMMIT) {
        commit_order_commit(&world->commit_order, record, txn->commit_ts, (uint64_t)world->step);
    } else if (record != SIZE_MAX) {
        commit_order_rollback(&world->commit_order, record);
    }
}

void compare_done(struct world *world, const struct om_done *expected, const struct om_docs *seen,
                  const struct command *command)
{
    const struct om_op *op = expected->op;

    if (command->request != gen_request(op))
        world_fail(world, "command %llu completes, the model says %llu", (unsigned long long)command->request,
                   (unsigned long long)gen_request(op));
    same(world, "the timestamp", command->ts, expected->ts);
    same_problem(world, &command->problem, expected->problem);
    if (expected->problem != OM_FINE)
        return;
    switch (op->kind) {
    case OP_WRITE:
        compare_items(world, expected, &command->write);
        record_writes(world, expected);
        break;
    case OP_OPEN:
    case OP_KEEPALIVE:
    case OP_ATTACH: same(world, "the end of the lease", command->session.expires_at, expected->token); break;
    case OP_LOCK:
        same(world, "the fencing token", command->lock.fencing_token, expected->token);
        same(world, "the time waited", command->lock.waited_us, expected->waited);
        break;
    case OP_UNLOCK:
        same(world, "the locks released", command->lock.released, expected->released);
        same(world, "the names done", command->lock.done, (uint64_t)expected->names);
        break;
    case OP_READ: read_all(world, expected, seen, command); break;
    case OP_COMMIT:
        same(world, "the timestamp of the commit", command->txn.commit_ts, expected->token);
        same(world, "the changes", command->txn.changes, expected->released);
        record_txn(world, expected, &command->txn);
        break;
    case OP_BEGIN:
    case OP_ROLLBACK: record_txn(world, expected, &command->txn); break;
    case OP_RENAME:
        same(world, "whether a document lay at the path", command->rename.document, expected->at);
        same(world, "whether documents lay below it", command->rename.directory, expected->below);
        same(world, "the sequence number of a rename", (uint64_t)command->rename.seq_no, (uint64_t)expected->seq_no);
        record_rename(world, expected);
        break;
    default: break;
    }
}

/* --- State -------------------------------------------------------------------------------------------------------- */

/* Compares the numbers of ephemeral documents that the sessions report and limit. */
static void compare_ephemeral(const struct world *world)
{
    for (int i = 0; i < OM_SESSIONS; i++) {
        const struct om_session *session = &world->model.sessions[i];
        char id[16];
        if (session->serial == 0)
            continue;
        snprintf(id, sizeof(id), "s%u", session->serial);
        const struct session *found = owners_session(world->core->owners, slice_from(id));
        if (found == NULL)
            world_fail(world, "there is no session %s", id);
        same(world, "whether a session is leaving", found->terminating, session->terminating != 0);
        same(world, "whether readers find a session",
             (uint64_t)(session__check_stored(world->store, slice_from(id)) == 0), session->terminating == 0);
        if (session->terminating != 0)
            continue;
        same(world, "the count of documents that live with a session", found->ephemeral_count,
             (uint64_t)om_ephemeral_count(&world->model, session->serial));
    }
}

/* Compares deferred cleanup, also that set aside. */
static void compare_aside(const struct world *world)
{
    for (int i = 0; i < OM_DEFERRED; i++) {
        const struct om_deferred *deferred = &world->model.deferred[i];
        const struct deferred *found = deferred->number == 0 ? NULL : deferred__find(world->core, deferred->number);
        if (deferred->number == 0)
            continue;
        if (found == NULL)
            world_fail(world, "nothing is kept under number %llu", (unsigned long long)deferred->number);
        same(world, "whether what is kept was put aside", found->set_aside, deferred->set_aside);
        same(world, "whether what is kept waits", found->wait != NULL, !deferred->set_aside);
    }
}

void compare_counts(struct world *world)
{
    const struct owners *owners = world->core->owners;
    int sessions = 0, txns = 0, locks = 0;

    for (int i = 0; i < OM_SESSIONS; i++)
        sessions += world->model.sessions[i].serial != 0;
    for (int i = 0; i < OM_TXNS; i++)
        txns += world->model.txns[i].serial != 0;
    for (int i = 0; i < world->model.lock_count; i++)
        locks += !world->model.locks[i].what.insert_intention;
    same(world, "the count of sessions", owners->sessions.count, (uint64_t)sessions);
    same(world, "the count of transactions", owners->txns.count, (uint64_t)txns);
    same(world, "the count of locks", owners->locks.lock_count, (uint64_t)locks);
    same(world, "the count of requests that wait", owners->locks.waiting_count,
         (uint64_t)om_waiting_count(&world->model));
    same(world, "the next deadline", core_next_deadline(world->core), om_next_deadline(&world->model));
    int deferred = 0;
    for (int i = 0; i < OM_DEFERRED; i++)
        deferred += world->model.deferred[i].number != 0;
    compare_ephemeral(world);
    same(world, "the count of kept actions", owners->deferred_count, (uint64_t)deferred);
    compare_aside(world);
    same(world, "the last timestamp", core_last_ts(world->core), world->model.last_ts);
}

/* A lock as text: owner, resource, mode, token. */
static void print_owner(const struct owner *owner, char *text, size_t size)
{
    if (owner->kind == OWNER_SESSION)
        snprintf(text, size, "%.*s", SLICE_ARG(owner->session->id));
    else if (owner->kind == OWNER_TXN)
        snprintf(text, size, "%.*s", SLICE_ARG(container_of(owner, struct txn, owner)->id));
    else
        snprintf(text, size, "write");
}

static void print_thing(struct om_thing thing, char *text, size_t size)
{
    const char *index = gen_index_names[thing.index];

    switch (thing.kind) {
    case OM_ALL: snprintf(text, size, "everything"); break;
    case OM_INDEX: snprintf(text, size, "%s", index); break;
    case OM_NAME: snprintf(text, size, "the name %s", index); break;
    case OM_DIR: snprintf(text, size, "%s:%s", index, dirs_path(thing.number)); break;
    default: snprintf(text, size, "%s/%d", index, thing.number); break;
    }
}

static bool model_holds(const struct world *world, const char *owner, const char *resource, int mode, uint64_t token)
{
    for (int i = 0; i < world->model.lock_count; i++) {
        const struct om_lock *lock = &world->model.locks[i];
        char name[32], thing[64];
        if (lock->what.insert_intention || lock->what.mode != mode || lock->token != token)
            continue;
        if (lock->owner < OM_SESSIONS)
            snprintf(name, sizeof(name), "s%u", world->model.sessions[lock->owner].serial);
        else if (lock->owner < OM_SESSIONS + OM_TXNS)
            snprintf(name, sizeof(name), "t%u", world->model.txns[lock->owner - OM_SESSIONS].serial);
        else
            snprintf(name, sizeof(name), "write");
        print_thing(lock->what.on, thing, sizeof(thing));
        if (strcmp(name, owner) == 0 && strcmp(thing, resource) == 0)
            return true;
    }
    return false;
}

static void compare_locks(const struct world *world)
{
    struct arena arena = ARENA_INIT;
    size_t count;
    const struct resource **resources = lock_table_resources(&world->core->owners->locks, &arena, &count);

    for (size_t i = 0; i < count; i++) {
        struct buf name = BUF_INIT(BUF_UNLIMITED);
        resource_print(resources[i], &name);
        buf_byte(&name, '\0');
        list_for_each(link, &resources[i]->holds)
        {
            const struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
            char owner[32];
            print_owner(owner_of(hold->owner), owner, sizeof(owner));
            if (hold->mode != LOCK_NONE && !model_holds(world, owner, name.data, hold->mode, hold->token))
                world_fail(world, "%s holds %s in mode %d with token %llu, the model does not say so", owner, name.data,
                           hold->mode, (unsigned long long)hold->token);
        }
        buf_deinit(&name);
    }
    arena_deinit(&arena);
}

void compare_dump(const struct world *world)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);

    for (int i = 0; i < world->model.lock_count; i++) {
        char thing[64];
        print_thing(world->model.locks[i].what.on, thing, sizeof(thing));
        fprintf(stderr, "  the model: owner %d, %s, mode %d%s\n", world->model.locks[i].owner, thing,
                world->model.locks[i].what.mode, world->model.locks[i].what.insert_intention ? ", a place" : "");
    }
    for (int i = 0; i < OM_WAITS; i++)
        if (world->model.waits[i].used)
            fprintf(stderr, "  the model: #%llu waits%s\n",
                    world->model.waits[i].op == NULL ? 0 : (unsigned long long)world->model.waits[i].op->number,
                    world->model.waits[i].ready ? ", ready" : "");
    command->status.what = STATUS_LOCKS;
    if (core__do_status(world->core, command) == 0)
        for (size_t i = 0; i < command->status.row_count; i++)
            fprintf(stderr, "  the core: {%.*s} held by %.*s, awaited by %.*s\n",
                    SLICE_ARG(command->status.rows[i].name), SLICE_ARG(command->status.rows[i].holders),
                    SLICE_ARG(command->status.rows[i].waiters));
    command_free(command);
}

void compare_state(struct world *world)
{
    struct catalog *catalog = core_catalog(world->core);
    struct view view = {world->store, TL_TS_MAX, NULL};

    compare_counts(world);
    lock_table_check(&world->core->owners->locks);
    compare_locks(world);
    compare_docs(world, catalog, &view, &world->model.docs);
    for (int i = 0; i < OM_INDICES; i++) {
        const struct catalog_index *index = catalog_index(catalog, slice_from(gen_index_names[i]));
        same(world, "whether an index is there", index != NULL, world->model.indices[i].there);
        if (index != NULL)
            same(world, "the next sequence number", (uint64_t)catalog_index_next_seq_no(index),
                 (uint64_t)world->model.indices[i].next_seq_no);
    }
    catalog_unref(catalog);
}

/* Returns: the model's newest version of a document at or before a timestamp; NULL: none. */
static const struct om_version *version_at(const struct world *world, int index, int number, uint64_t ts)
{
    for (size_t i = world->model.history; i-- > 0;) {
        const struct om_version *version = &world->history.versions[i];
        if (version->index != index || version->ts > ts || version->doc.hidden) /* not a version */
            continue;
        if (version->number == OM_WHOLE_INDEX)
            return NULL; /* earlier versions are of a former index */
        if (version->number == number)
            return version;
    }
    return NULL;
}

/* Returns: since when a session tombstone hides a document; TL_TS_MAX: none does. */
static tl_ts hidden_since(const struct world *world, uint32_t index, uint16_t type, const char *id,
                          const struct doc *doc)
{
    char bytes[DOC_KEY_BYTES_MAX];
    tl_ts ts = TL_TS_MAX;
    if (!doc->deleted && session_tombstone_ts(world->store, doc_key(bytes, index, type, slice_from(id)), doc, &ts) != 0)
        world_fail(world, "a session tombstone cannot be read");
    return ts;
}

/*
 * Walks back over the versions of a document, as ?version_history does. Old tombstones may be
 * purged.
 */
static void compare_versions(const struct world *world, const struct catalog *catalog, int index, int number,
                             uint64_t ts)
{
    const struct catalog_index *found = catalog_index(catalog, slice_from(gen_index_names[index]));
    const struct mapping_type *type = found == NULL ? NULL : mapping_type(found->mapping, SLICE_LIT("_doc"));
    struct view view = {world->store, ts, NULL};
    char id[2] = {(char)('0' + number), '\0'};
    tl_ts hidden_ts;

    while (type != NULL && view.ts >= world->history_low) {
        const struct om_version *expected = version_at(world, index, number, view.ts);
        struct doc doc;
        int r = doc_get_any(&view, found->number, type->number, slice_from(id), &doc);
        if (r == 0 && (hidden_ts = hidden_since(world, found->number, type->number, id, &doc)) <= view.ts) {
            view.ts = hidden_ts - 1; /* later renames of its directory are no versions of it */
            doc_release(&doc);
            continue;
        }
        if (r == DOC_NOT_FOUND &&
            (expected == NULL || (!expected->doc.live && expected->ts < world->model.tombstones_from)))
            return;
        if (r != 0 || expected == NULL)
            world_fail(world, "%s/%d has a version as of %llu: %d, the model says %d", gen_index_names[index], number,
                       (unsigned long long)view.ts, r == 0, expected != NULL);
        same(world, "the timestamp of a version", doc.ts, expected->ts);
        same(world, "the number of a version", (uint64_t)doc.version, (uint64_t)expected->doc.version);
        same(world, "whether a version is a deletion", doc.deleted, !expected->doc.live);
        view.ts = doc.ts - 1;
        doc_release(&doc);
    }
}

void compare_query(struct world *world, const struct host_query *query)
{
    size_t record = commit_order_find(&world->commit_order, query->txn);
    struct om_docs docs;

    compare_past(world, query->read_ts);
    om_docs_at(&world->model, &world->history, query->read_ts, &docs);
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++) {
            const struct om_doc *doc = &docs.at[i][j];
            record_event(world, record, COMMIT_ORDER_READ, i, j,
                         doc->live ? commit_order_value(doc->value, doc->dir) : -1);
        }
}

void compare_past(struct world *world, uint64_t ts)
{
    struct view view = {world->store, ts, NULL};
    struct catalog *catalog = NULL;
    struct om_docs docs;

    if (catalog_load(&view, &catalog) != 0)
        world_fail(world, "no catalog as of %llu", (unsigned long long)ts);
    om_docs_at(&world->model, &world->history, ts, &docs);
    compare_docs(world, catalog, &view, &docs);
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            compare_versions(world, catalog, i, j, ts);
    catalog_unref(catalog);
}
