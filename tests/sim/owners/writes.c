/* SPDX-License-Identifier: Apache-2.0 */
/* The model's writes: their locks, and the result of each item. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"

/* The state of a write. */
struct work {
    struct om *model;
    struct om_step *step;
    const struct om_op *op;
    struct om_done done;
    uint32_t session;
    bool cleanup;   /* a cleanup action */
    int txn;        /* slot; -1: none */
    int wait;       /* slot; -1: no lock requested, and the first batch */
    bool full;      /* it may not wait, since too many requests do */
    int begin, end; /* the items of this call: all, or one batch in a transaction */
    int target_count;
    int targets[OM_ITEMS]; /* items */
    int dirs[OM_ITEMS][2]; /* old and new directories of their documents; -1: none */
};

static enum om_end go_on(struct work *at, uint64_t deadline);

/* --- Documents ---------------------------------------------------------------------------------------------------- */

/* Returns: a document as the write sees it: its transaction's version, or the committed one. */
static const struct om_doc *seen(const struct work *at, int index, int doc)
{
    const struct om *model = at->model;

    return at->txn >= 0 ? om_txn_seen(&model->txns[at->txn], model, index, doc) : &model->docs.at[index][doc];
}

static int dir_of(const struct om *model, int index, const struct om_doc *doc)
{
    return doc->live && model->indices[index].mapped ? doc->dir : -1;
}

static void remember(struct om *model, struct om_step *step, int index, int doc, const struct om_doc *now)
{
    struct om_history *history = step->history;

    if (model->history == history->capacity) {
        history->capacity = history->capacity == 0 ? 1024 : history->capacity * 2;
        history->versions = realloc(history->versions, history->capacity * sizeof(*history->versions));
    }
    history->versions[model->history++] = (struct om_version){
        now->ts, (uint8_t)index, (uint8_t)doc, model->indices[index].generation, model->committing, *now};
}

void om_store(struct om *model, struct om_step *step, int index, int doc, const struct om_doc *now)
{
    model->docs.at[index][doc] = *now;
    model->dirty = true;
    remember(model, step, index, doc, now);
}

void om_purge(struct om *model, struct om_step *step, int index, int doc)
{
    struct om_doc tombstone = {.known = true,
                               .dir = -1,
                               .version = model->docs.at[index][doc].version + 1,
                               .seq_no = model->indices[index].next_seq_no++,
                               .ts = model->ts};

    om_store(model, step, index, doc, &tombstone);
}

static void keep(struct work *at, int index, int doc, const struct om_doc *now)
{
    struct om *model = at->model;

    if (at->txn < 0) {
        om_store(model, at->step, index, doc, now);
        return;
    }
    model->txns[at->txn].written[index][doc] = true;
    model->txns[at->txn].overlay.at[index][doc] = *now;
}

static void set_there(struct om *model, struct om_step *step, bool there)
{
    struct om_index *index = &model->indices[OM_NX];

    *index = (struct om_index){.there = there, .mapped = there, .generation = index->generation + 1};
    memset(model->docs.at[OM_NX], 0, sizeof(model->docs.at[OM_NX]));
    model->dirty = true;
    remember(model, step, OM_NX, OM_WHOLE_INDEX, &(struct om_doc){.live = there, .ts = model->ts});
}

void om_make_index(struct om *model, struct om_step *step)
{
    set_there(model, step, true);
}

void om_drop_index(struct om *model, struct om_step *step)
{
    set_there(model, step, false);
    for (int i = 0; i < OM_DOCS; i++)
        om_move(model, step, OM_NX, i, -1);
}

/* --- One item ----------------------------------------------------------------------------------------------------- */

static enum om_problem fail(struct om_result *result, enum om_problem problem)
{
    result->outcome = OM_FAILED;
    result->problem = (uint8_t)problem;
    return problem;
}

/* The version of a delete counts for 60 s of the monotonic clock, or in OM_KEPT_INDEX for an hour, if that is later. */
static bool counts(const struct om *model, int index, const struct om_doc *old)
{
    uint64_t from = model->ts > OM_KEPT_US ? model->ts - OM_KEPT_US : 0;

    if (index != OM_KEPT_INDEX || from > model->tombstones_from)
        from = model->tombstones_from;
    return old->known && (old->live || old->ts >= from);
}

/*
 * Whether locks allow the new directory of a document, if it was not known when the locks were
 * requested.
 */
static bool may_lie(struct work *at, const struct om_item *item, const struct om_doc *now)
{
    struct om *model = at->model;
    struct om_spec spec = {{OM_DIR, item->index, now->dir}, OM_X, true};
    int session = om_session_slot(model, at->session);

    if (!now->live || now->dir < 0 || !model->indices[item->index].mapped)
        return true;
    for (int i = 0; i < at->target_count; i++) {
        const struct om_item *other = &at->op->items[at->targets[i]];
        if (other->index == item->index && other->doc == item->doc &&
            (at->dirs[i][0] == now->dir || at->dirs[i][1] == now->dir))
            return true;
    }
    if (at->cleanup && at->wait < 0)
        return om_cleanup_may(model, session, &spec);
    if (at->txn < 0 && at->wait < 0)
        return om_untouched(model, session, &spec);
    return om_take(model, at->step, at->txn >= 0 ? om_txn_owner(at->txn) : model->waits[at->wait].owner, &spec);
}

static bool session_has_ended(const struct work *at, const struct om_item *item)
{
    return item->lease != 0 && om_session_slot(at->model, item->lease) < 0;
}

/* Whether one more ephemeral document exceeds the limit of the session. */
static bool lease_full(const struct work *at, const struct om_doc *old, const struct om_doc *now)
{
    return now->live && now->lease != 0 && !(old->live && old->lease == now->lease) &&
           om_session_slot(at->model, now->lease) >= 0 &&
           om_ephemeral_count(at->model, now->lease) >= at->model->limits.ephemeral;
}

static void change(struct work *at, const struct om_item *item, const struct om_doc *now, struct om_result *result)
{
    struct om *model = at->model;
    if (!may_lie(at, item, now)) {
        fail(result, OM_LOCK_TIMEOUT);
        return;
    }
    const struct om_doc *old = seen(at, item->index, item->doc);
    bool was = old->live;
    struct om_doc next = *now;

    if (lease_full(at, old, now)) {
        fail(result, OM_EPHEMERAL);
        return;
    }

    next.known = true;
    next.version = counts(model, item->index, old) ? old->version + 1 : 1;
    next.seq_no = model->indices[item->index].next_seq_no++;
    next.ts = model->ts;
    *result = (struct om_result){next.live ? (was ? OM_UPDATED : OM_CREATED)
                                 : was     ? OM_DELETED
                                           : OM_NOT_FOUND,
                                 OM_FINE, next.version, next.seq_no};
    keep(at, item->index, item->doc, &next);
}

static void conflict(const struct om *model, int index, const struct om_doc *old, struct om_result *result)
{
    fail(result, OM_CONFLICT);
    result->version = counts(model, index, old) ? old->version : -1;
    result->seq_no = counts(model, index, old) ? old->seq_no : -2;
}

static void update(struct work *at, const struct om_item *item, const struct om_doc *old, struct om_result *result)
{
    struct om_doc next = *old;

    if (!old->live) {
        fail(result, OM_MISSING);
        return;
    }
    if (item->if_seq_no >= 0 && item->if_seq_no != old->seq_no) {
        conflict(at->model, item->index, old, result);
        return;
    }
    next.value = item->value;
    next.dir = item->dir >= 0 ? item->dir : old->dir;
    next.lease = item->lease != 0 ? item->lease : old->lease;
    if (next.value == old->value && next.dir == old->dir)
        *result = (struct om_result){OM_NOOP, OM_FINE, old->version, old->seq_no};
    else if (next.lease != 0 && item->lease != 0 && session_has_ended(at, item))
        fail(result, OM_SESSION_MISSING);
    else
        change(at, item, &next, result);
}

static void run_item(struct work *at, const struct om_item *item, struct om_result *result)
{
    struct om *model = at->model;
    const struct om_doc *old = seen(at, item->index, item->doc);
    struct om_doc next = {.live = true, .dir = item->dir, .value = item->value, .lease = item->lease};

    if (!model->indices[item->index].there) {
        if (item->action == OM_DELETE) {
            fail(result, OM_NO_INDEX);
            return;
        }
        om_make_index(model, at->step);
    }
    if (!at->cleanup && (model->indices[item->index].closed || model->indices[item->index].blocked)) {
        fail(result, model->indices[item->index].closed ? OM_CLOSED : OM_BLOCKED);
        return;
    }
    if (old->hidden) { /* the write purges it first, even if it fails */
        om_purge(model, at->step, item->index, item->doc);
        old = seen(at, item->index, item->doc);
    }
    if (item->only_session != 0 && (!old->live || old->lease != item->only_session)) {
        *result = (struct om_result){.outcome = OM_NOOP};
        return;
    }
    if (item->action == OM_UPDATE) {
        update(at, item, old, result);
        return;
    }
    if (item->action == OM_DELETE)
        next = (struct om_doc){.dir = -1};
    else if (session_has_ended(at, item)) {
        fail(result, OM_SESSION_MISSING);
        return;
    }
    if ((item->if_seq_no >= 0 && (!old->live || old->seq_no != item->if_seq_no)) ||
        (item->if_seq_no < 0 && item->action == OM_CREATE && old->live))
        conflict(model, item->index, old, result);
    else
        change(at, item, &next, result);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* Runs the chosen items that have no problem yet. Returns: whether any failed. */
static bool run_items(struct work *at, const bool *chosen)
{
    bool failed = false;

    for (int i = at->begin; i < at->end; i++) {
        if (chosen != NULL && !chosen[i])
            continue;
        if (at->done.results[i].problem == OM_FINE)
            run_item(at, &at->op->items[i], &at->done.results[i]);
        else
            at->done.results[i].outcome = OM_FAILED;
        failed |= at->done.results[i].outcome == OM_FAILED;
    }
    return failed;
}

/* Refuses the write; if batches of it were done, the items from this batch on fail instead. */
static void refuse_rest(struct work *at)
{
    if (at->begin == 0) {
        at->done.problem = OM_TOO_LARGE;
        return;
    }
    for (int i = at->begin; i < at->op->count; i++)
        at->done.results[i] = (struct om_result){.outcome = OM_FAILED, .problem = OM_TOO_LARGE};
    at->end = at->op->count;
}

static void run_in_txn(struct work *at)
{
    struct om *model = at->model;
    struct om_txn *txn = &model->txns[at->txn], before = *txn;
    bool failed = run_items(at, NULL);

    at->done.rolled_back = at->op->atomic && failed;
    if (at->done.rolled_back)
        *txn = before;
    if (om_txn_changes(txn) > model->limits.changes) {
        *txn = before;
        refuse_rest(at);
    }
    om_txn_touch(model, at->txn);
}

/* Moves the locks on documents along with them, all at once. */
static void move_documents(struct work *at, const bool *chosen)
{
    struct om *model = at->model;

    om_suspend_grants(model);
    for (int i = 0; i < at->target_count; i++) {
        const struct om_item *item = &at->op->items[at->targets[i]];
        if ((chosen != NULL && !chosen[at->targets[i]]) || at->done.results[at->targets[i]].outcome == OM_FAILED)
            continue;
        om_move(model, at->step, item->index, item->doc,
                dir_of(model, item->index, &model->docs.at[item->index][item->doc]));
    }
    om_resume_grants(model, at->step);
}

/* --- Named requests ----------------------------------------------------------------------------------------------- */

/* src/core/README.md, "Repeated requests", 1: such a write runs all its items in one unit. */
static bool runs_in_one_unit(const struct om_op *op)
{
    return op->atomic || op->name != 0;
}

static struct om_named_outcome *named_outcome(struct om *model, uint32_t name)
{
    for (int i = 0; i < model->named_count; i++)
        if (model->named[i].name == name)
            return &model->named[i];
    return NULL;
}

/*
 * The same, 4 and 5. Returns: whether a write is answered with what its request did before, or
 * refused as another request.
 */
static bool find_named(struct work *at)
{
    const struct om_named_outcome *found = at->op->name == 0 ? NULL : named_outcome(at->model, at->op->name);

    if (found == NULL || found->ended < at->model->outcomes_from)
        return false;
    if (found->hash != at->op->hash || found->count != at->op->count)
        at->done.problem = OM_ILLEGAL;
    else
        memcpy(at->done.results, found->results, sizeof(at->done.results));
    return true;
}

static void record_named(const struct work *at)
{
    struct om *model = at->model;
    struct om_named_outcome *to = named_outcome(model, at->op->name);
    bool did_something = false;

    for (int i = 0; i < at->op->count; i++)
        did_something |= at->done.results[i].outcome != OM_FAILED;
    if (at->op->name == 0 || at->done.rolled_back || !did_something)
        return;
    if (to == NULL && model->named_count == OM_NAMED)
        memmove(model->named, model->named + 1, (size_t)--model->named_count * sizeof(*model->named));
    if (to == NULL)
        to = &model->named[model->named_count++];
    *to = (struct om_named_outcome){at->op->name, at->op->hash, at->op->count, model->ts, {{0}}};
    memcpy(to->results, at->done.results, sizeof(to->results));
}

static void run(struct work *at, const bool *chosen)
{
    static struct om before;
    struct om *model = at->model;

    if (at->op->atomic)
        before = *model;
    at->done.rolled_back = run_items(at, chosen) && at->op->atomic;
    if (at->done.rolled_back)
        *model = before;
    else
        move_documents(at, chosen);
    record_named(at);
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static struct om_thing doc_of(const struct om_item *item)
{
    return (struct om_thing){OM_DOC, item->index, (int16_t)item->doc};
}

/* Returns: the directory of the document after the item; -1: none. */
static int new_dir(const struct work *at, const struct om_item *item)
{
    const struct om_doc *old = seen(at, item->index, item->doc);
    const struct om_index *index = &at->model->indices[item->index];

    if (item->action == OM_DELETE || (index->there && !index->mapped))
        return -1;
    if (item->action != OM_UPDATE)
        return item->dir;
    if (!index->there || !old->live)
        return -1;
    return item->dir >= 0 ? item->dir : old->dir;
}

/* Returns: its current directory; -1: none. */
static int old_dir(const struct work *at, const struct om_item *item)
{
    if (!at->model->indices[item->index].there)
        return -1;
    return dir_of(at->model, item->index, seen(at, item->index, item->doc));
}

/*
 * Adds X on the document, an insert intention on a new directory, and X on the name of an index
 * that the item creates. An autocommit write requests the name only if another owner holds a lock
 * on it.
 */
static int specs_of(const struct work *at, const struct om_item *item, struct om_spec *specs)
{
    const struct om_spec name = {{OM_NAME, item->index, 0}, OM_X, false};
    int old = old_dir(at, item), dir = new_dir(at, item), count = 0;
    int session = om_session_slot(at->model, at->session);

    specs[count++] = (struct om_spec){doc_of(item), OM_X, false};
    if (dir >= 0 && dir != old)
        specs[count++] = (struct om_spec){{OM_DIR, item->index, (int16_t)dir}, OM_X, true};
    if (!at->model->indices[item->index].there && item->action != OM_DELETE &&
        (at->txn >= 0 || om_is_blocked(at->model, at->wait < 0 ? -1 : at->model->waits[at->wait].owner,
                                       session < 0 ? -1 : om_session_owner(session), &name)))
        specs[count++] = name;
    return count;
}

static int lock_count(const struct om_spec *specs, int count)
{
    int locks = 0;

    for (int i = 0; i < count; i++)
        locks += !specs[i].insert_intention && specs[i].on.kind != OM_NAME;
    return locks;
}

static bool is_left(const struct work *at, int item)
{
    if (at->txn >= 0)
        return item >= at->begin && item < at->end;
    return at->wait < 0 || !at->model->waits[at->wait].partial || at->model->waits[at->wait].left[item];
}

/*
 * Checks that the fencing token is of a lock held by the session or transaction that the write
 * names.
 */
static bool token_holds(struct work *at, int item)
{
    const struct om *model = at->model;
    const struct om_item *what = &at->op->items[item];
    int dir = old_dir(at, what) >= 0 ? old_dir(at, what) : new_dir(at, what); /* current or new directory */
    uint64_t session = at->txn >= 0 ? model->txns[at->txn].session : at->session;

    if (om_token_held(model, at->op->token, doc_of(what), dir, session, at->txn))
        return true;
    at->done.results[item].problem = OM_STALE_TOKEN;
    return false;
}

/* The items of this call: all, or in a transaction the next batch, of the cost of one step. */
static void choose_range(struct work *at)
{
    const struct om_wait *wait = at->wait < 0 ? NULL : &at->model->waits[at->wait];

    at->begin = 0;
    at->end = at->op->count;
    if (at->txn < 0 || at->op->atomic)
        return;
    while (wait != NULL && wait->partial && !wait->left[at->begin])
        at->begin++;
    if (at->end - at->begin > at->model->limits.piece)
        at->end = at->begin + at->model->limits.piece;
}

static void find_targets(struct work *at)
{
    choose_range(at);
    at->target_count = 0;
    for (int i = 0; i < at->op->count; i++)
        if (is_left(at, i) && (at->cleanup || !at->model->indices[at->op->items[i].index].closed) &&
            (at->op->token == 0 || token_holds(at, i))) {
            at->dirs[at->target_count][0] = old_dir(at, &at->op->items[i]);
            at->dirs[at->target_count][1] = new_dir(at, &at->op->items[i]);
            at->targets[at->target_count++] = i;
        }
}

static int collect_specs(const struct work *at, const bool *blocked, struct om_spec *specs)
{
    int count = 0;

    for (int i = 0; i < at->target_count; i++)
        if (blocked == NULL || blocked[i])
            count += specs_of(at, &at->op->items[at->targets[i]], specs + count);
    return count;
}

/* --- Finishing ---------------------------------------------------------------------------------------------------- */

static void complete(struct work *at)
{
    if (at->wait >= 0)
        om_wait_free(at->model, at->step, at->wait);
    at->wait = -1;
    om_complete(at->model, at->step, &at->done);
}

/* Rule 17: makes the write ready for its next batch, in a later step. */
static enum om_end continue_later(struct work *at)
{
    struct om *model = at->model;

    if (at->wait < 0)
        at->wait = om_wait_new(model, at->step, &at->done, om_txn_owner(at->txn), 0, at->txn);
    struct om_wait *wait = &model->waits[at->wait];
    for (int i = 0; i < at->op->count; i++)
        wait->left[i] = i >= at->end;
    wait->partial = true;
    wait->done = at->done;
    om_wait_continue_later(model, at->step, at->wait, wait->since + at->op->us);
    model->cost_left = model->cost_kept = 0;
    return OM_PARKED;
}

/* Runs all pending items. An atomic autocommit write needs an empty unit. */
static enum om_end finish(struct work *at, uint64_t deadline)
{
    struct om *model = at->model;
    bool chosen[OM_ITEMS], partial = at->wait >= 0 && model->waits[at->wait].partial;

    if (at->txn >= 0) {
        run_in_txn(at);
        if (at->end < at->op->count && at->done.problem == OM_FINE)
            return continue_later(at);
        complete(at);
        return OM_ENDED_NOW;
    }
    if (runs_in_one_unit(at->op) && at->txn < 0 && model->dirty) {
        om_end_unit(model);
        om_begin(model, model->last_ts + 1);
        return go_on(at, deadline);
    }
    if (find_named(at)) {
        complete(at);
        return OM_ENDED_NOW;
    }
    if (partial)
        memcpy(chosen, model->waits[at->wait].left, sizeof(chosen));
    run(at, partial ? chosen : NULL);
    complete(at);
    return OM_ENDED_NOW;
}

static enum om_end finish_without(struct work *at, enum om_problem problem, const bool *blocked)
{
    for (int i = 0; i < at->target_count; i++)
        if (blocked[i])
            at->done.results[at->targets[i]].problem = (uint8_t)problem;
    return finish(at, at->model->clock);
}

/* Acquires the locks of each item separately; items whose locks are refused fail. */
static enum om_end take_each(struct work *at)
{
    for (int i = 0; i < at->target_count; i++) {
        struct om_spec specs[3];
        int item = at->targets[i];
        if (!is_left(at, item))
            continue;
        int count = specs_of(at, &at->op->items[item], specs);
        if (om_ask(at->model, at->step, at->wait, specs, count, false) == OM_NO) {
            enum om_problem cause = at->model->waits[at->wait].cause;
            cause = cause != OM_FINE ? cause : at->full ? OM_LIMIT : OM_LOCK_TIMEOUT;
            at->done.results[item].problem = (uint8_t)cause;
        }
    }
    return finish(at, at->model->clock);
}

static enum om_end park(struct work *at, uint64_t deadline)
{
    at->model->waits[at->wait].done = at->done;
    om_wait_park(at->model, at->wait, deadline);
    return OM_PARKED;
}

static enum om_end ask(struct work *at, uint64_t deadline, const bool *blocked, const struct om_spec *specs, int count)
{
    struct om *model = at->model;
    bool full = deadline > model->clock && om_full(model);

    switch (om_ask(model, at->step, at->wait, specs, count, deadline > model->clock && !full)) {
    case OM_YES: return finish(at, deadline);
    case OM_WAIT: return park(at, deadline);
    case OM_NO: at->full = full; return take_each(at);
    case OM_CYCLE: break;
    }
    return finish_without(at, OM_DEADLOCK, blocked);
}

/* --- Autocommit writes -------------------------------------------------------------------------------------------- */

/* Finds the items that are blocked, and those after them for the same document. */
static int find_blocked(struct work *at, bool *blocked)
{
    int count = 0, session = om_session_slot(at->model, at->session);

    for (int i = 0; i < at->target_count; i++) {
        const struct om_item *item = &at->op->items[at->targets[i]];
        struct om_spec specs[3];
        int spec_count = specs_of(at, item, specs);
        blocked[i] = false;
        for (int j = 0; j < i; j++)
            blocked[i] |= blocked[j] && om_same(doc_of(item), doc_of(&at->op->items[at->targets[j]]));
        for (int j = 0; j < spec_count; j++)
            blocked[i] |= !om_untouched(at->model, session, &specs[j]);
        count += blocked[i];
    }
    if (count > 0 && runs_in_one_unit(at->op)) {
        count = at->target_count;
        memset(blocked, true, sizeof(*blocked) * (size_t)count);
    }
    return count;
}

static enum om_end first_try(struct work *at, uint64_t deadline)
{
    bool blocked[OM_ITEMS], chosen[OM_ITEMS];
    struct om_spec specs[OM_SPECS];
    int count = find_blocked(at, blocked);

    if (count == 0) {
        run(at, NULL);
        complete(at);
        return OM_ENDED_NOW;
    }
    at->wait = om_wait_new(at->model, at->step, &at->done, -1, at->session, -1);
    if (!runs_in_one_unit(at->op) && at->op->count > 1) {
        struct om_wait *wait = &at->model->waits[at->wait];
        for (int i = 0; i < OM_ITEMS; i++)
            chosen[i] = true;
        for (int i = 0; i < at->target_count; i++)
            if (blocked[i])
                chosen[at->targets[i]] = false;
        run(at, chosen);
        wait->partial = true;
        for (int i = 0; i < OM_ITEMS; i++)
            wait->left[i] = !chosen[i];
        return go_on(at, deadline); /* the items run so far may have moved documents */
    }
    return ask(at, deadline, blocked, specs, collect_specs(at, blocked, specs));
}

/* --- Writes in a transaction -------------------------------------------------------------------------------------- */

static enum om_end ask_in_txn(struct work *at, uint64_t deadline)
{
    struct om *model = at->model;
    struct om_spec specs[OM_SPECS];
    int owner = om_txn_owner(at->txn), txn = at->txn;
    bool may_wait = deadline > model->clock && !om_full(model);

    if (at->target_count == 0)
        return finish(at, deadline);
    int count = collect_specs(at, NULL, specs);
    if (om_lock_count(model, owner) + lock_count(specs, count) > model->limits.locks) {
        refuse_rest(at);
        complete(at);
        om_txn_touch(model, txn);
        return OM_ENDED_NOW;
    }
    if (at->wait < 0)
        at->wait = om_wait_new(model, at->step, &at->done, owner, 0, txn);
    switch (om_ask(model, at->step, at->wait, specs, count, may_wait)) {
    case OM_YES: return finish(at, deadline);
    case OM_WAIT: return park(at, deadline);
    case OM_NO: at->full = deadline > model->clock; return take_each(at);
    case OM_CYCLE: break;
    }
    at->done.problem = OM_DEADLOCK;
    complete(at);
    om_txn_abort(model, at->step, txn, false);
    return OM_ENDED_NOW;
}

/* --- Entry points ------------------------------------------------------------------------------------------------- */

static enum om_end go_on(struct work *at, uint64_t deadline)
{
    bool blocked[OM_ITEMS] = {true, true, true, true};
    struct om_spec specs[OM_SPECS];

    find_targets(at);
    if (at->txn >= 0)
        return ask_in_txn(at, deadline);
    if (at->wait < 0)
        return first_try(at, deadline);
    if (at->target_count == 0)
        return finish(at, deadline);
    return ask(at, deadline, blocked, specs, collect_specs(at, NULL, specs));
}

void om_write(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct work at = {
        .model = model, .step = step, .op = op, .done = {.op = op}, .session = op->session, .txn = -1, .wait = -1};

    if (find_named(&at)) {
        om_complete(model, step, &at.done);
        return;
    }
    if (op->txn != 0) {
        at.txn = om_txn_find(model, op->txn, op->session, &at.done.problem);
        at.session = 0;
    } else if (op->session != 0 && om_session_slot(model, op->session) < 0) {
        at.done.problem = OM_SESSION_MISSING;
    }
    if (at.done.problem != OM_FINE)
        om_complete(model, step, &at.done);
    else
        go_on(&at, om_after(model, op->us));
}

static struct work resumed(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];

    return (struct work){.model = model,
                         .step = step,
                         .op = wait->op,
                         .done = wait->done,
                         .session = wait->session,
                         .txn = wait->txn,
                         .wait = slot};
}

void om_write_resume(struct om *model, struct om_step *step, int slot)
{
    struct work at = resumed(model, step, slot);

    go_on(&at, model->waits[slot].until);
}

void om_write_ended(struct om *model, struct om_step *step, int slot)
{
    struct work at = resumed(model, step, slot);
    struct om_wait *wait = &model->waits[slot];

    choose_range(&at);
    for (int i = 0; i < at.op->count; i++)
        if (is_left(&at, i))
            at.done.results[i].problem = (uint8_t)wait->cause;
    finish(&at, model->clock);
}

void om_write_timed_out(struct om *model, struct om_step *step, int slot)
{
    struct work at = resumed(model, step, slot);

    find_targets(&at);
    take_each(&at);
}

/* --- Cleanup actions ---------------------------------------------------------------------------------------------- */

/* One item as an autocommit write that ignores blocks and closed indices. */
static struct work left(struct om *model, struct om_step *step, const struct om_item *item, struct om_op *op)
{
    *op = (struct om_op){.kind = OP_WRITE, .count = 1, .items = {*item}};
    return (struct work){.model = model, .step = step, .op = op, .txn = -1, .wait = -1, .cleanup = true};
}

bool om_cleanup_is_blocked(struct om *model, int slot, const struct om_item *item)
{
    struct om_op op;
    struct work at = left(model, NULL, item, &op);
    struct om_spec specs[OM_SPECS];
    int count;

    find_targets(&at);
    count = collect_specs(&at, NULL, specs);
    for (int i = 0; i < count; i++)
        if (!om_cleanup_may(model, om_session_owner(slot), &specs[i]))
            return true;
    return false;
}

enum om_answer om_cleanup_request(struct om *model, struct om_step *step, int wait, const struct om_item *item,
                                  bool granted_before)
{
    struct om_op op;
    struct work at = left(model, step, item, &op);
    struct om_spec specs[OM_SPECS];

    find_targets(&at);
    int count = collect_specs(&at, NULL, specs);
    if (count == 0 || (granted_before && om_ask(model, step, wait, specs, count, false) == OM_YES))
        return OM_YES;
    om_suspend_grants(model); /* rule 17: it releases its locks */
    om_release_all(model, step, model->waits[wait].owner);
    enum om_answer answer = om_ask(model, step, wait, specs, count, true);
    om_resume_grants(model, step);
    return answer;
}

bool om_cleanup_run(struct om *model, struct om_step *step, int slot, int wait, const struct om_item *item)
{
    struct om_op op;
    struct work at = left(model, step, item, &op);

    if (model->memory_full && !model->indices[item->index].there && item->action != OM_DELETE)
        return false;
    at.wait = wait;
    at.session = slot < 0 ? 0 : model->sessions[slot].serial;
    find_targets(&at);
    run(&at, NULL);
    return true;
}
