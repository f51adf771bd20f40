/* SPDX-License-Identifier: Apache-2.0 */
/* The lock table: holds and requests; see lock.h and README-locks.md. */
#include "core/locks/lock.h"

#include "base/check.h"
#include "base/magic.h"
#include "base/mem_chain.h"
#include "base/reclaim.h"
#include "base/sm.h"
#include "core/locks/lock_internal.h"

#define BIT(name) (1u << LOCK_BIT_##name)

const uint8_t lock__conflicts[LOCK_BIT_COUNT] = {
    [LOCK_BIT_IS] = BIT(X),
    [LOCK_BIT_IU] = BIT(U) | BIT(X),
    [LOCK_BIT_IX] = BIT(S) | BIT(U) | BIT(X),
    [LOCK_BIT_S] = BIT(IX) | BIT(X),
    [LOCK_BIT_U] = BIT(IU) | BIT(IX) | BIT(U) | BIT(X),
    [LOCK_BIT_X] = BIT(IS) | BIT(IU) | BIT(IX) | BIT(S) | BIT(U) | BIT(X),
};

static const struct sm_state request_states[LOCK_STATE_COUNT] = {
    [LOCK_STATE_NEW] = {"new", SM_TO(LOCK_STATE_WAITING) | SM_TO(LOCK_STATE_GRANTED)},
    [LOCK_STATE_WAITING] = {"waiting",
                            SM_TO(LOCK_STATE_WAITING) | SM_TO(LOCK_STATE_GRANTED) | SM_TO(LOCK_STATE_DEADLOCKED)},
    [LOCK_STATE_GRANTED] = {"granted", 0},
    [LOCK_STATE_DEADLOCKED] = {"deadlocked", 0},
};

static const struct sm request_machine = {"lock request", request_states, LOCK_STATE_COUNT};

void lock__request_set_state(struct lock_request *request, enum lock_state state)
{
    SM_CHECK(&request_machine, request->state, state);
    request->state = state;
}

/* --- Holds ------------------------------------------------------------------------------------ */

static bool wakes_before(const struct heap_node *a, const struct heap_node *b)
{
    return lock__precedes(container_of(a, const struct lock_request, wake),
                          container_of(b, const struct lock_request, wake));
}

void lock_table_init(struct lock_table *table, const struct lock_hooks *hooks)
{
    *table = (struct lock_table){.magic = LOCK_TABLE_MAGIC, .bucket_count = RESOURCE_BUCKETS_MIN};
    resource_table_init(&table->resources);
    table->buckets = mem_zalloc(RESOURCE_BUCKETS_MIN * sizeof *table->buckets);
    table->tokens = mem_zalloc(RESOURCE_BUCKETS_MIN * sizeof *table->tokens);
    heap_init(&table->wake, wakes_before);
    heap_init(&table->ready_cleanup, wakes_before);
    table->cleanup_quota = table->grant_quota = SIZE_MAX;
    table->granted_work_max = UINT64_MAX;
    list_init(&table->suspects);
    list_init(&table->changed_chunks);
    table->chunk_holds = LOCK_CHUNK_HOLDS;
    list_init(&table->granted);
    list_init(&table->victims);
    if (hooks != NULL)
        table->hooks = *hooks;
}

void lock_table_deinit(struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    REQUIRE(table->hold_count == 0 && table->lock_count == 0 && table->waiting_count == 0);
    REQUIRE(list_empty(&table->granted) && list_empty(&table->victims) && list_empty(&table->changed_chunks));
    magic_clear(&table->magic);
    resource_table_deinit(&table->resources);
    heap_deinit(&table->wake);
    heap_deinit(&table->ready_cleanup);
    mem_free(table->buckets);
    mem_free(table->tokens);
}

void lock_table_set_ts(struct lock_table *table, tl_ts ts)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    REQUIRE(ts == table->ts || ts > lock_table_last_ts(table));
    if (ts == table->ts)
        return;
    table->ts = ts;
    table->token_count = 0;
}

/*
 * Resources made in succession get adjacent buckets. So an owner that locks many resources touches
 * few cache lines.
 */
static struct lock_hold **bucket_of(const struct lock_table *table, const struct lock_owner *owner,
                                    const struct resource *resource)
{
    uint64_t hash = (owner->number * 0x9e3779b97f4a7c15u >> 32) + resource->number;
    return &table->buckets[hash & (table->bucket_count - 1)];
}

struct lock_hold *lock__hold_find(const struct lock_table *table, const struct lock_owner *owner,
                                  const struct resource *resource)
{
    struct lock_hold *hold = *bucket_of(table, owner, resource);
    for (; hold != NULL && (hold->owner != owner || hold->resource != resource); hold = hold->chain)
        resource_count_lookup(&table->resources);
    return hold;
}

static void resize_holds(struct lock_table *table, size_t bucket_count)
{
    REQUIRE(bucket_count >= RESOURCE_BUCKETS_MIN && bucket_count >= table->hold_count);
    struct lock_hold **old = table->buckets;
    size_t old_count = table->bucket_count;
    table->bucket_count = bucket_count;
    table->buckets = mem_zalloc(table->bucket_count * sizeof *table->buckets);
    for (size_t i = 0; i < old_count; i++)
        for (struct lock_hold *hold = old[i], *next; hold != NULL; hold = next) {
            next = hold->chain;
            struct lock_hold **bucket = bucket_of(table, hold->owner, hold->resource);
            hold->chain = *bucket;
            *bucket = hold;
        }
    mem_free(old);
    lock__tokens_resize(table, old_count);
    ENSURE(table->hold_count <= table->bucket_count);
}

struct lock_hold *lock__hold_open(struct lock_table *table, struct lock_owner *owner, struct resource *resource)
{
    struct lock_hold *hold = lock__hold_find(table, owner, resource);
    if (hold != NULL)
        return hold;
    if (++table->hold_count > table->bucket_count)
        resize_holds(table, 2 * table->bucket_count);
    struct lock_hold **bucket = bucket_of(table, owner, resource);
    hold = mem_zalloc(sizeof *hold);
    hold->owner = owner;
    hold->resource = resource_ref(resource);
    hold->chain = *bucket;
    *bucket = hold;
    list_append(&owner->holds, &hold->of_owner);
    list_append(&resource->holds, &hold->of_resource);
    treap_insert(&resource->held_by, NULL, &hold->by_bits, 0);
    hold->order = ++table->last_order;
    lock__chunk_add(table, hold);
    owner->hold_count++;
    ENSURE(owner->hold_count <= table->hold_count);
    return hold;
}

void lock__holds_shrink(struct lock_table *table)
{
    size_t needed = resource_buckets_needed(table->bucket_count, table->hold_count);
    if (needed < table->bucket_count)
        resize_holds(table, needed);
}

/* Requires: the hold has no bits and no watchers. */
static void hold_free(struct lock_table *table, struct lock_hold *hold)
{
    REQUIRE(hold->bits == 0 && hold->watchers == NULL && hold->unconfirmed == NULL);
    struct lock_hold **at = bucket_of(table, hold->owner, hold->resource);
    for (; *at != hold; at = &(*at)->chain)
        resource_count_lookup(&table->resources);
    *at = hold->chain;
    lock__token_set(table, hold, TL_TS_NONE);
    lock__chunk_remove(table, hold);
    list_remove(&hold->of_owner);
    list_remove(&hold->of_resource);
    treap_remove(&hold->resource->held_by, &hold->by_bits);
    INSIST(hold->owner->hold_count > 0 && table->hold_count > 0);
    hold->owner->hold_count--;
    table->hold_count--;
    resource_unref(&table->resources, hold->resource);
    resource_free_block(&table->resources, hold);
    if (!table->resources.keeps_size)
        lock__holds_shrink(table);
}

struct lock_hold *lock__hold_next(const struct resource *resource, const struct lock_hold *after, uint8_t mask)
{
    struct treap_node *found = treap_next(&resource->held_by, after == NULL ? NULL : &after->by_bits, mask);
    return found == NULL ? NULL : container_of(found, struct lock_hold, by_bits);
}

void lock__hold_to_end(struct lock_hold *hold)
{
    REQUIRE(hold->bits != 0 && list_linked(&hold->of_resource));
    list_remove(&hold->of_resource);
    list_append(&hold->resource->holds, &hold->of_resource);
    treap_remove(&hold->resource->held_by, &hold->by_bits);
    treap_insert(&hold->resource->held_by, NULL, &hold->by_bits, hold->bits);
}

static uint8_t bits_of(const struct lock_hold *hold)
{
    unsigned bits = hold->mode == LOCK_NONE ? 0 : lock__mask(lock__own_bit(hold->mode));
    for (size_t i = 0; i < 3; i++)
        if (hold->below[i] > 0)
            bits |= 1u << i;
    return (uint8_t)bits;
}

void lock__hold_check_awaited(struct lock_hold *hold)
{
    const struct lock_queue *queue = hold->resource->queue;
    bool awaited = false;
    for (size_t bit = 0; queue != NULL && bit < LOCK_BIT_COUNT; bit++)
        awaited |= queue->counts[bit] > 0 && (lock__conflicts[bit] & hold->bits) != 0;
    INSIST(awaited >= hold->awaited || hold->owner->awaited_count > 0);
    if (awaited != hold->awaited)
        hold->owner->awaited_count += awaited ? 1 : (size_t)-1;
    hold->awaited = awaited;
}

static void hold_set_bits(struct lock_table *table, struct lock_hold *hold, uint8_t bits)
{
    uint8_t before = hold->bits;
    lock__chunk_touch(table, hold->chunk); /* also if only counts below or the mode changed */
    for (unsigned left = before | bits; left != 0; left &= left - 1) {
        unsigned bit = (unsigned)__builtin_ctz(left);
        INSIST((before >> bit & 1) == 0 || hold->resource->held[bit] > 0);
        hold->resource->held[bit] += bits >> bit & 1;
        hold->resource->held[bit] -= before >> bit & 1;
    }
    hold->bits = bits;
    treap_set(&hold->by_bits, bits);
    lock__hold_check_awaited(hold);
    if ((before & ~bits) != 0)
        lock__queue_wake(table, &hold->watchers);
}

void lock__hold_update(struct lock_table *table, struct lock_hold *hold)
{
    hold_set_bits(table, hold, bits_of(hold));
    if (hold->bits == 0)
        hold_free(table, hold);
}

void lock__intentions_change(struct lock_table *table, struct lock_owner *owner, struct resource *resource,
                             enum lock_mode out, enum lock_mode in)
{
    REQUIRE(out != in);
    for (struct resource *at = resource, *parent; at != NULL; at = parent) {
        parent = at->parent;
        table->work++;
        struct lock_hold *hold = lock__hold_open(table, owner, at);
        /* Invariant 2. A grant may raise a lock before intention_update_finish() has counted it. */
        INSIST(out <= in || hold->below[out - LOCK_S] > 0);
        if (out != LOCK_NONE)
            hold->below[out - LOCK_S]--;
        if (in != LOCK_NONE)
            hold->below[in - LOCK_S]++;
        lock__hold_update(table, hold);
    }
}

/*
 * Adds intention locks of one mode for several locks of an owner at once. They rise through the
 * tree together, so that a common ancestor is updated once or a few times, rather than once for
 * each lock.
 */
struct intention_update {
    struct lock_table *table;
    struct lock_owner *owner;
    enum lock_mode mode;
    struct resource **nodes; /* resources whose `scratch` is still to be added to below[] */
    size_t count;
    size_t capacity;
};

static void intention_update_add(struct intention_update *update, struct resource *place, uint32_t locks)
{
    REQUIRE(locks > 0);
    if (place->scratch == 0) {
        if (update->count == update->capacity) {
            update->capacity = update->capacity ? update->capacity * 2 : 16;
            update->nodes = mem_realloc(update->nodes, update->capacity * sizeof(struct resource *));
        }
        update->nodes[update->count++] = place;
    }
    place->scratch += locks;
}

/* Adds the intention locks, from the given resources up to the root. Frees the array. */
static void intention_update_finish(struct intention_update *update)
{
    for (size_t i = 0; i < update->count; i++) {
        struct resource *place = update->nodes[i];
        uint32_t locks = place->scratch;
        update->table->work++;
        struct lock_hold *hold = lock__hold_open(update->table, update->owner, place);
        INSIST(locks > 0);
        place->scratch = 0;
        hold->below[update->mode - LOCK_S] += locks;
        hold_set_bits(update->table, hold, bits_of(hold));
        if (place->parent != NULL)
            intention_update_add(update, place->parent, locks);
    }
    mem_free(update->nodes);
    update->nodes = NULL;
    update->count = update->capacity = 0;
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static void report_change(struct lock_table *table, struct lock_hold *hold, bool gone)
{
    if (table->hooks.changed != NULL)
        table->hooks.changed(table->hooks.context, hold, gone);
    if (!gone && hold->mode != hold->recorded_mode) {
        hold->recorded_mode = hold->mode;
        hold->recorded_from = table->ts;
    }
}

static void count_lock(struct lock_table *table, const struct lock_hold *hold, bool in)
{
    size_t *count = hold->auxiliary ? &hold->owner->auxiliary_count : &hold->owner->lock_count;
    INSIST(hold->mode != LOCK_NONE && hold->mode < LOCK_MODE_COUNT && (in || *count > 0));
    INSIST(in || hold->auxiliary || table->held[hold->mode] > 0);
    *count = in ? *count + 1 : *count - 1;
    if (!hold->auxiliary)
        table->held[hold->mode] += in ? 1 : (size_t)-1;
}

/* Counts a lock that the table gets or loses. */
static void count_hold(struct lock_table *table, const struct lock_hold *hold, bool in)
{
    struct resource *index = hold->resource->kind == RESOURCE_DIRECTORY ? hold->resource->index : NULL;
    REQUIRE(in || (table->lock_count > 0 && (index == NULL || index->directory_locks > 0)));
    table->lock_count += in ? 1 : (size_t)-1;
    if (index != NULL)
        index->directory_locks += in ? 1 : UINT32_MAX;
}

/*
 * Acquires or strengthens a lock, without the intention locks above it. Returns: the earlier mode.
 */
static enum lock_mode lock_raise(struct lock_table *table, struct lock_hold *hold, enum lock_mode mode, bool auxiliary)
{
    enum lock_mode before = hold->mode;
    REQUIRE(mode != LOCK_NONE && mode < LOCK_MODE_COUNT);
    if (before != LOCK_NONE)
        count_lock(table, hold, false);
    hold->auxiliary = auxiliary && (before == LOCK_NONE || hold->auxiliary);
    lock__chunk_touch(table, hold->chunk);
    if (before < mode)
        hold->mode = (uint8_t)mode;
    count_lock(table, hold, true);
    if (before >= mode)
        return before;
    if (before == LOCK_NONE) {
        hold->number = ++table->last_lock;
        hold->since = table->ts;
        count_hold(table, hold, true);
    }
    hold_set_bits(table, hold, bits_of(hold));
    return before;
}

static struct lock_hold *lock_take(struct lock_table *table, struct lock_owner *owner, struct resource *resource,
                                   enum lock_mode mode, bool auxiliary)
{
    REQUIRE(mode != LOCK_NONE);
    struct lock_hold *hold = lock__hold_open(table, owner, resource);
    enum lock_mode before = lock_raise(table, hold, mode, auxiliary);
    if (before < mode && resource->parent != NULL)
        lock__intentions_change(table, owner, resource->parent, before, mode);
    return hold;
}

static void lock_drop(struct lock_table *table, struct lock_hold *hold)
{
    struct lock_owner *owner = hold->owner;
    struct resource *resource = resource_ref(hold->resource);
    enum lock_mode mode = hold->mode;
    REQUIRE(mode != LOCK_NONE);
    report_change(table, hold, true);
    count_lock(table, hold, false);
    lock__hold_forget_grants(hold);
    hold->mode = LOCK_NONE;
    hold->number = 0;
    hold->auxiliary = false;
    lock__token_set(table, hold, TL_TS_NONE);
    count_hold(table, hold, false);
    lock__hold_update(table, hold);
    if (resource->parent != NULL)
        lock__intentions_change(table, owner, resource->parent, mode, LOCK_NONE);
    resource_unref(&table->resources, resource);
}

bool lock__has_conflicting_hold(const struct lock_table *table, const struct lock_owner *owner,
                                const struct lock_owner *session, const struct resource *resource, uint8_t mask)
{
    uint8_t held = 0;
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
        if (resource->held[bit] > 0)
            held |= (uint8_t)(1u << bit);
    held &= mask;
    if (held == 0)
        return false;
    const struct lock_hold *own = owner == NULL ? NULL : lock__hold_find(table, owner, resource);
    const struct lock_hold *of_session = session == NULL ? NULL : lock__hold_find(table, session, resource);
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++) {
        if ((held >> bit & 1) == 0)
            continue;
        uint32_t passed =
            (own != NULL ? own->bits >> bit & 1 : 0) + (of_session != NULL ? of_session->bits >> bit & 1 : 0);
        if (resource->held[bit] > passed)
            return true;
    }
    return false;
}

struct lock_hold *lock__find_conflicting_hold(const struct lock_table *table, const struct lock_waiter *waiter)
{
    const struct lock_owner *owner = waiter->request->owner;
    uint8_t mask = lock__conflicts[waiter->bit];
    if (!lock__has_conflicting_hold(table, owner, owner->session, waiter->resource, mask))
        return NULL;
    struct lock_hold *hold = lock__hold_next(waiter->resource, NULL, mask);
    while (hold != NULL && lock__ignores(owner, hold->owner)) /* its own and its session's */
        hold = lock__hold_next(waiter->resource, hold, mask);
    INSIST(hold != NULL);
    return hold;
}

/* --- Owners ------------------------------------------------------------------------------------------------------- */

void lock_owner_init(struct lock_table *table, struct lock_owner *owner, struct lock_owner *session, void *user)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && session != owner);
    REQUIRE(session == NULL || session->session == NULL); /* owners form two levels */
    *owner = (struct lock_owner){.session = session, .number = ++table->last_owner, .user = user};
    owner->age = table->ts;
    list_init(&owner->holds);
    list_init(&owner->chunks);
    list_init(&owner->requests);
    list_init(&owner->dependent_requests);
    if (session != NULL)
        session->dependent_count++;
}

void lock_owner_deinit(struct lock_owner *owner)
{
    REQUIRE(list_empty(&owner->holds) && list_empty(&owner->requests) && list_empty(&owner->dependent_requests));
    REQUIRE(owner->hold_count == 0 && owner->lock_count == 0 && owner->auxiliary_count == 0);
    REQUIRE(owner->awaited_count == 0 && owner->dependent_count == 0);
    lock_owner_leave_session(owner);
}

void lock_owner_leave_session(struct lock_owner *owner)
{
    if (owner->session == NULL)
        return;
    REQUIRE(owner->session->dependent_count > 0 && list_empty(&owner->requests));
    owner->session->dependent_count--;
    owner->session = NULL;
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

struct lock_request *lock_request_new(struct lock_table *table, struct lock_owner *owner, const struct lock_spec *specs,
                                      size_t spec_count, void *user)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && owner != NULL && specs != NULL && spec_count > 0);
    struct lock_request *request = mem_zalloc(sizeof *request + spec_count * sizeof *request->specs);
    request->magic = LOCK_REQUEST_MAGIC;
    request->table = table;
    request->owner = owner;
    request->user = user;
    request->spec_count = spec_count;
    struct resource_path_cache trail = RESOURCE_PATH_CACHE_INIT;
    table->work += spec_count;
    for (size_t i = 0; i < spec_count; i++) {
        REQUIRE(specs[i].mode != LOCK_NONE && specs[i].mode < LOCK_MODE_COUNT);
        request->specs[i] = (struct lock_spec_ref){resource_open(&table->resources, &specs[i].on, &trail),
                                                   specs[i].mode, specs[i].insert_intention, specs[i].auxiliary};
    }
    return request;
}

void lock_request_free(struct lock_request *request)
{
    if (request == NULL)
        return;
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    struct lock_table *table = request->table;
    bool waiting = request->state == LOCK_STATE_WAITING;
    if (waiting)
        lock__queue_leave(request);
    else if (list_linked(&request->event))
        list_remove(&request->event);
    table->work += request->spec_count;
    for (size_t i = 0; i < request->spec_count; i++)
        resource_unref(&table->resources, request->specs[i].resource);
    lock__grants_confirm(request);
    INSIST(request->watched == NULL && request->group == NULL);
    INSIST(!heap_holds(&request->wake) && !list_linked(&request->suspect));
    magic_clear(&request->magic);
    mem_free(request->waiters);
    mem_free(request);
    if (waiting)
        lock__queue_process_wakeups(table);
}

static void add_waiter(struct lock_request *request, struct resource *resource, enum lock_bit bit, size_t *capacity)
{
    if (request->waiter_count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 4;
        request->waiters = mem_realloc(request->waiters, *capacity * sizeof *request->waiters);
    }
    request->waiters[request->waiter_count++] =
        (struct lock_waiter){.request = request, .resource = resource, .bit = bit};
}

void lock__request_expand(struct lock_request *request)
{
    REQUIRE(!list_linked(&request->of_owner)); /* no queue has its waiters */
    struct lock_table *table = request->table;
    size_t capacity = 0;
    mem_free(request->waiters);
    request->waiters = NULL;
    request->waiter_count = 0;
    resource_new_epoch(&table->resources);
    for (size_t i = 0; i < request->spec_count; i++) {
        const struct lock_spec_ref *spec = &request->specs[i];
        struct resource *at = spec->resource;
        if (!spec->insert_intention) {
            if (resource_visit(&table->resources, at, lock__own_bit(spec->mode)))
                add_waiter(request, at, lock__own_bit(spec->mode), &capacity);
            at = at->parent;
        }
        /* Where this bit was visited before, so were all ancestors. */
        for (; at != NULL && resource_visit(&table->resources, at, lock__intention_bit(spec->mode)); at = at->parent)
            add_waiter(request, at, lock__intention_bit(spec->mode), &capacity);
    }
    table->work += request->spec_count + request->waiter_count;
}

/*
 * Frees unused capacity of a request that is about to wait, since thousands may wait for a long
 * time.
 * Requires: it is in no queue.
 */
static void trim_waiters(struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_NEW && request->waiter_count > 0);
    request->waiters = mem_realloc(request->waiters, request->waiter_count * sizeof *request->waiters);
}

static bool holds_lock(const struct lock_table *table, const struct lock_owner *owner, const struct resource *resource)
{
    const struct lock_hold *hold = list_empty(&resource->holds) ? NULL : lock__hold_find(table, owner, resource);
    return hold != NULL && hold->mode != LOCK_NONE;
}

/*
 * Returns: whether a requested resource or an ancestor is locked by `owner` (or NULL). Locks on
 * names do not count: a lock on an alias gives no priority for its index.
 */
static bool is_locked_above(const struct lock_request *request, const struct lock_owner *owner)
{
    struct resource_table *resources = &request->table->resources;
    if (owner == NULL || owner->lock_count == 0)
        return false;
    resource_new_epoch(resources);
    for (size_t i = 0; i < request->spec_count; i++) {
        struct resource *at = request->specs[i].resource;
        for (; at != NULL && resource_visit(resources, at, LOCK_BIT_X); at = at->parent) {
            request->table->work++;
            if (!resource_is_name(at) && holds_lock(request->table, owner, at))
                return true;
        }
    }
    return false;
}

/*
 * Returns: the newest token of the requested locks, if all of them are held already; else a new
 * token. That is the table's timestamp, plus the number of tokens given since it was set. The locks
 * of an autocommit write get no token, since no client can use it.
 */
static tl_ts choose_token(const struct lock_request *request)
{
    struct lock_table *table = request->table;
    tl_ts newest = TL_TS_NONE;
    if (request->owner->autocommit)
        return TL_TS_NONE;
    for (size_t i = 0; i < request->spec_count; i++) {
        const struct lock_spec_ref *spec = &request->specs[i];
        const struct lock_hold *hold = lock__hold_find(table, request->owner, spec->resource);
        table->work++;
        if (hold == NULL || hold->mode < spec->mode)
            return table->ts + table->token_count++;
        newest = hold->token > newest ? hold->token : newest;
    }
    return newest;
}

/*
 * Acquires lock `at` of a request. The intention locks of a new lock are left to `update` if it has
 * their mode.
 */
static void grant_lock(struct lock_request *request, size_t at, struct intention_update *update)
{
    struct lock_table *table = request->table;
    const struct lock_spec_ref *spec = &request->specs[at];
    REQUIRE(!spec->insert_intention);
    struct lock_hold *hold = lock__hold_open(table, request->owner, spec->resource);
    struct lock_value old = lock__value(hold);
    table->work++;
    enum lock_mode before = lock_raise(table, hold, spec->mode, spec->auxiliary);
    struct resource *above = spec->resource->parent;
    if (before == LOCK_NONE && above != NULL && spec->mode == update->mode)
        intention_update_add(update, above, 1);
    else if (before < spec->mode && above != NULL)
        lock__intentions_change(table, request->owner, above, before, spec->mode);
    if (before < spec->mode || hold->token != request->token || hold->auxiliary != old.auxiliary) {
        lock__token_set(table, hold, request->token);
        report_change(table, hold, false);
    }
    if (request->grants != NULL)
        lock__grant_add(request, at, hold, old);
    else
        lock__hold_confirm(hold, (struct lock_value){spec->mode, request->token, spec->auxiliary});
}

/* Returns: whether a request that is granted now can be undone. */
static bool can_be_undone(const struct lock_request *request)
{
    return request->state == LOCK_STATE_WAITING && !request->owner->autocommit && !request->owner->cleanup &&
           !request->table->precedes_undo;
}

void lock__request_grant(struct lock_request *request)
{
    struct lock_table *table = request->table;
    struct intention_update update = {.table = table, .owner = request->owner, .mode = request->specs[0].mode};
    REQUIRE(!list_linked(&request->of_owner)); /* it has left the queues */
    bool undoable = can_be_undone(request);
    request->token = choose_token(request);
    lock__request_set_state(request, LOCK_STATE_GRANTED);
    if (undoable)
        lock__grants_open(request);
    for (size_t i = 0; i < request->spec_count; i++) {
        const struct lock_spec_ref *spec = &request->specs[i];
        if (!spec->insert_intention)
            grant_lock(request, i, &update);
        else if (spec->mode == update.mode)
            intention_update_add(&update, spec->resource, 1);
        else
            lock__intentions_change(table, request->owner, spec->resource, LOCK_NONE, spec->mode);
    }
    intention_update_finish(&update);
    ENSURE(request->owner->hold_count > 0);
}

int lock_request_start(struct lock_request *request, bool wait)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_NEW);
    struct lock_table *table = request->table;
    /* README-locks.md, "Requests" */
    request->upgrade = is_locked_above(request, request->owner) || is_locked_above(request, request->owner->session);
    request->arrival = ++table->last_arrival;
    lock__request_expand(request);
    bool limited = request->owner->cleanup && wait;
    if (!lock__watch_is_blocked(request) && (!limited || table->cleanup_quota > 0)) {
        table->cleanup_quota -= limited;
        lock__request_grant(request);
        lock__queue_check_granted(request);
        lock__queue_process_wakeups(table);
        return LOCK_GRANTED;
    }
    if (!wait)
        return LOCK_CONFLICT;
    trim_waiters(request);
    lock__queue_enter(request);
    lock__cycle_break(table, &(struct lock_request *){request}, 1);
    if (request->state == LOCK_STATE_WAITING)
        lock__queue_arrive(request);
    lock__queue_process_wakeups(table);
    /*
     * If the request was granted or became the victim just now, that is the result of this call and
     * no event.
     */
    if (list_linked(&request->event))
        list_remove(&request->event);
    ENSURE(request->state != LOCK_STATE_NEW);
    return request->state == LOCK_STATE_WAITING   ? LOCK_WAITS
           : request->state == LOCK_STATE_GRANTED ? LOCK_GRANTED
                                                  : LOCK_DEADLOCK;
}

struct lock_request *lock_table_next_granted(struct lock_table *table)
{
    if (list_empty(&table->granted))
        return NULL;
    struct lock_request *request = list_entry(table->granted.next, struct lock_request, event);
    list_remove(&request->event);
    ENSURE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_GRANTED);
    return request;
}

struct lock_request *lock_table_next_victim(struct lock_table *table)
{
    if (list_empty(&table->victims))
        return NULL;
    struct lock_request *request = list_entry(table->victims.next, struct lock_request, event);
    list_remove(&request->event);
    ENSURE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_DEADLOCKED);
    return request;
}

/* --- Releasing ---------------------------------------------------------------------------------------------------- */

static struct resource *find_resource(const struct lock_table *table, const struct resource_name *name)
{
    if (name->space != RESOURCE_SPACE_TREE)
        return resource_of_name(&table->resources, name->space, name->index);
    if (name->index.len == 0)
        return table->resources.root;
    struct resource *at = resource_index(&table->resources, name->index);
    if (at == NULL)
        return NULL;
    if (name->id.data != NULL)
        return resource_document(&table->resources, at, name->type, name->id);
    if (name->path.data == NULL)
        return at;
    struct resource_path walk = resource_path(name->path);
    struct slice segment;
    while (at != NULL && resource_path_next(&walk, &segment))
        at = resource_child(&table->resources, at, segment);
    return at;
}

bool lock_hold_is_sole(const struct lock_hold *hold)
{
    const struct resource *resource = hold->resource;
    return resource->queue == NULL && resource->holds.next == resource->holds.prev;
}

bool lock_release(struct lock_table *table, struct lock_owner *owner, const struct resource_name *name)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    const struct resource *resource = find_resource(table, name);
    struct lock_hold *hold = resource == NULL ? NULL : lock__hold_find(table, owner, resource);
    if (hold == NULL || hold->mode == LOCK_NONE)
        return false;
    bool awaited = owner->awaited_count > 0;
    lock_drop(table, hold);
    if (awaited) /* requests that waited for this lock may block the owner now */
        lock__queue_check_waits(table, owner);
    lock__queue_process_wakeups(table);
    return true;
}

/*
 * Gives a lock a weaker mode and an older token. Requires: `to` has a mode.
 * Returns: whether the mode has changed.
 */
static bool lock_lower(struct lock_table *table, struct lock_hold *hold, struct lock_value to)
{
    struct lock_value from = lock__value(hold);
    REQUIRE(to.mode != LOCK_NONE && to.mode <= from.mode && to.token <= from.token);
    if (to.mode == from.mode && to.token == from.token && to.auxiliary == from.auxiliary)
        return false;
    count_lock(table, hold, false);
    hold->mode = (uint8_t)to.mode;
    hold->auxiliary = to.auxiliary;
    count_lock(table, hold, true);
    lock__token_set(table, hold, to.token);
    hold_set_bits(table, hold, bits_of(hold));
    if (to.mode != from.mode && hold->resource->parent != NULL)
        lock__intentions_change(table, hold->owner, hold->resource->parent, from.mode, to.mode);
    report_change(table, hold, false);
    return to.mode != from.mode;
}

/* Undoes one grant. Returns: whether the owner has less than before. */
static bool undo_grant(struct lock_table *table, struct lock_grant *grant)
{
    struct lock_hold *hold = grant->hold;
    table->work++;
    if (hold == NULL)
        return false;
    struct lock_value left = lock__grant_remove(grant);
    if (left.mode != LOCK_NONE)
        return lock_lower(table, hold, left);
    lock_drop(table, hold);
    return true;
}

/* Undoes one lock of a request that a command of a version before 8 has granted; returns as undo_grant(). */
static bool drop_granted_at(struct lock_table *table, const struct lock_request *request, size_t at, tl_ts since)
{
    struct lock_hold *hold = lock__hold_find(table, request->owner, request->specs[at].resource);
    if (hold == NULL || hold->mode == LOCK_NONE || hold->since != since)
        return false;
    lock_drop(table, hold);
    return true;
}

/*
 * Returns: whether a request waits for any lock that a granted one has, or for an intention lock above, so that it may
 * block other requests of the owner when that is undone.
 */
static bool is_grant_awaited(const struct lock_request *request)
{
    const struct lock_table *table = request->table;
    for (size_t i = 0; request->owner->awaited_count > 0 && i < request->spec_count; i++)
        for (const struct resource *at = request->specs[i].resource; at != NULL; at = at->parent) {
            const struct lock_hold *hold = lock__hold_find(table, request->owner, at);
            request->table->work++;
            if (hold != NULL && hold->awaited)
                return true;
        }
    return false;
}

void lock_request_undo(struct lock_request *request, tl_ts since)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_GRANTED);
    struct lock_table *table = request->table;
    bool awaited = is_grant_awaited(request), less = false;
    for (size_t i = 0; i < request->spec_count; i++)
        less |= request->grants != NULL ? undo_grant(table, &request->grants[i])
                                        : drop_granted_at(table, request, i, since);
    if (less && awaited) /* waiters for these locks block the owner's other requests from now on */
        lock__queue_check_waits(table, request->owner);
    lock__queue_process_wakeups(table);
}

/*
 * The holds of an owner that are released some iterations later. All memory of a hold is scattered, and each step to
 * the next part needs the one before it, so each of these precedes the next one and has its part prefetched.
 */
enum { PREFETCH_STAGES = 3, PREFETCH_DISTANCE = 4 };

struct hold_prefetcher {
    const struct lock_table *table;
    const struct list *holds;
    const struct list *at[PREFETCH_STAGES]; /* the first is the nearest; `holds`: after the last */
};

static void prefetch_hold(const struct list *link)
{
    enum { CACHE_LINE = 64 };
    const char *hold = (const char *)list_entry(link, struct lock_hold, of_owner);
    for (size_t at = 0; at < sizeof(struct lock_hold); at += CACHE_LINE)
        __builtin_prefetch(hold + at);
}

static void prefetch_part(const struct hold_prefetcher *prefetcher, int part, const struct list *link)
{
    const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
    REQUIRE(part >= 0 && part < PREFETCH_STAGES);
    switch (part) {
    case 0: resource_prefetch_chain(&prefetcher->table->resources, hold->resource); break;
    case 1: resource_prefetch_bucket(&prefetcher->table->resources, hold->resource); break;
    default:
        if (link->next != prefetcher->holds) /* its address is known from here on */
            prefetch_hold(link->next);
        __builtin_prefetch(hold->resource);
        __builtin_prefetch(&hold->resource->holds);
        __builtin_prefetch(&hold->resource->hash);
        break;
    }
}

static struct hold_prefetcher hold_prefetcher_begin(const struct lock_table *table, const struct list *holds)
{
    struct hold_prefetcher prefetcher = {.table = table, .holds = holds};
    const struct list *link = holds->next;
    for (int part = 0; part < PREFETCH_STAGES; part++) {
        for (int i = 0; i < PREFETCH_DISTANCE && link != holds; i++)
            link = link->next;
        prefetcher.at[part] = link;
    }
    return prefetcher;
}

/* Assumes: the first hold of the list is the one that is released next. */
static void hold_prefetcher_advance(struct hold_prefetcher *prefetcher)
{
    for (int part = PREFETCH_STAGES - 1; part >= 0; part--) {
        const struct list *link = prefetcher->at[part];
        if (link == prefetcher->holds)
            continue;
        prefetch_part(prefetcher, part, link);
        prefetcher->at[part] = link->next;
    }
}

/* Counts and reports that a hold's lock, if it has one, is released. */
static void count_released(struct lock_table *table, struct lock_hold *hold)
{
    if (hold->mode == LOCK_NONE)
        return;
    report_change(table, hold, true);
    count_hold(table, hold, false);
    if (!hold->auxiliary)
        table->held[hold->mode]--;
}

/* Releases all holds of an owner, each with the resources that it alone refers to. */
static void release_holds(struct lock_table *table, struct lock_owner *owner)
{
    struct hold_prefetcher prefetcher = hold_prefetcher_begin(table, &owner->holds);
    table->resources.keeps_size = true; /* halving the tables step by step took a tenth of the time */
    while (!list_empty(&owner->holds)) {
        struct lock_hold *hold = list_entry(owner->holds.next, struct lock_hold, of_owner);
        table->work += 3;
        hold_prefetcher_advance(&prefetcher);
        count_released(table, hold);
        lock__hold_forget_grants(hold);
        hold_set_bits(table, hold, 0);
        hold_free(table, hold);
    }
    table->resources.keeps_size = false;
    resource_table_shrink(&table->resources);
    lock__holds_shrink(table);
    ENSURE(owner->hold_count == 0);
}

static void free_blocks(void *chain)
{
    mem_chain_free(chain);
}

size_t lock_release_all(struct lock_table *table, struct lock_owner *owner)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && table->resources.freed == NULL);
    size_t count = owner->lock_count;
    struct mem_chain *freed = NULL;
    table->resources.freed = owner->hold_count >= LOCK_RECLAIMED_MIN ? &freed : NULL;
    release_holds(table, owner);
    table->resources.freed = NULL;
    if (freed != NULL)
        reclaim(freed, free_blocks);
    INSIST(owner->awaited_count == 0);
    owner->lock_count = owner->auxiliary_count = 0;
    lock__queue_check_waits(table, owner);
    lock__queue_process_wakeups(table);
    return count;
}

/* --- Restoring -------------------------------------------------------------------------------- */

struct resource *lock__find_resource(const struct lock_table *table, const struct resource_name *name)
{
    return find_resource(table, name);
}

bool lock__restore_hold(struct lock_table *table, struct lock_owner *owner, struct resource *resource,
                        const struct lock_hold *as)
{
    bool fresh = lock__hold_find(table, owner, resource) == NULL;
    REQUIRE(bits_of(as) != 0);
    if (fresh) {
        struct lock_hold *hold = lock__hold_open(table, owner, resource);
        hold->mode = as->mode;
        hold->auxiliary = as->auxiliary;
        hold->number = as->number;
        hold->since = as->since;
        if (as->order != 0) {
            hold->order = as->order;
            table->last_order = as->order > table->last_order ? as->order : table->last_order;
        }
        lock__token_set(table, hold, as->mode == LOCK_NONE ? TL_TS_NONE : as->token);
        memcpy(hold->below, as->below, sizeof hold->below);
        hold_set_bits(table, hold, bits_of(hold));
        if (hold->mode != LOCK_NONE) {
            count_lock(table, hold, true);
            count_hold(table, hold, true);
        }
    }
    return fresh;
}

struct lock_request *lock__restore_request(struct lock_table *table, struct lock_owner *owner,
                                           const struct lock_spec *specs, size_t count, uint64_t arrival, bool upgrade)
{
    REQUIRE(arrival <= table->last_arrival);
    struct lock_request *request = lock_request_new(table, owner, specs, count, NULL);
    request->arrival = arrival;
    request->upgrade = upgrade;
    lock__request_expand(request);
    trim_waiters(request);
    lock__queue_enter(request);
    return request;
}

struct lock_request *lock__restore_granted(struct lock_table *table, struct lock_owner *owner,
                                           const struct lock_spec *specs, size_t count, uint64_t arrival, bool upgrade,
                                           tl_ts token)
{
    REQUIRE(arrival <= table->last_arrival);
    struct lock_request *request = lock_request_new(table, owner, specs, count, NULL);
    lock__request_set_state(request, LOCK_STATE_GRANTED);
    request->arrival = arrival;
    request->upgrade = upgrade;
    request->token = token;
    return request;
}

/* --- Checks without a request ----------------------------------------------------------------- */

/* A check whether a lock could be granted to a new owner. */
struct grant_check {
    const struct lock_table *table;
    const struct lock_owner *session; /* of the owner; NULL: none */
    bool ignore_waiters;              /* only holders and waiting cleanup requests block */
};

/* Returns: whether a request of a list waits for a bit at a resource. */
static bool any_waits_for(const struct lock_table *table, const struct list *requests, bool of_session,
                          const struct resource *resource, enum lock_bit bit)
{
    list_for_each(link, requests)
    {
        const struct lock_request *request = of_session ? list_entry(link, struct lock_request, of_session)
                                                        : list_entry(link, struct lock_request, of_owner);
        for (size_t i = 0; i < request->waiter_count; i++) {
            resource_count_lookup(&table->resources);
            if (request->waiters[i].resource == resource && request->waiters[i].bit == bit)
                return true;
        }
    }
    return false;
}

/*
 * Returns: whether the session's hold on a resource blocks all requests that wait for a bit there,
 * except those that ignore the session.
 */
static bool session_blocks(const struct grant_check *check, const struct resource *resource, enum lock_bit bit)
{
    const struct lock_owner *session = check->session;
    const struct lock_hold *hold = session == NULL ? NULL : lock__hold_find(check->table, session, resource);
    return hold != NULL && (hold->bits & lock__conflicts[bit]) != 0;
}

/*
 * Returns: whether a request that ignores the session waits for a bit at a resource: the session's
 * own, or one of its dependents'. Thousands of other requests may wait there for the session; they
 * are not visited, since this check is made for each item of a bulk request.
 */
static bool own_request_waits(const struct grant_check *check, const struct resource *resource, enum lock_bit bit)
{
    const struct lock_owner *session = check->session;
    REQUIRE(session != NULL);
    return !check->ignore_waiters && (any_waits_for(check->table, &session->requests, false, resource, bit) ||
                                      any_waits_for(check->table, &session->dependent_requests, true, resource, bit));
}

/* Returns: whether a waiting request with a bit of `mask` on a resource blocks the lock. */
static bool is_blocked_by_waiter(const struct grant_check *check, const struct resource *resource, uint8_t mask)
{
    const struct lock_queue *queue = resource->queue;
    if (queue == NULL)
        return false;
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++) {
        if ((mask >> bit & 1) == 0 || queue->counts[bit] == 0)
            continue;
        if (session_blocks(check, resource, (enum lock_bit)bit)) {
            if (own_request_waits(check, resource, (enum lock_bit)bit))
                return true;
            continue;
        }
        list_for_each(link, &queue->waiting[bit])
        {
            const struct lock_request *request = list_entry(link, struct lock_waiter, link)->request;
            resource_count_lookup(&check->table->resources);
            if (check->ignore_waiters && !request->owner->cleanup) /* cleanup requests come first */
                break;
            if (check->session == NULL || !lock__waits_for(request, NULL, check->session))
                return true;
        }
    }
    return false;
}

/* Returns: whether neither a hold nor a waiting request blocks a bit on a resource. */
static bool can_grant_bit(const struct grant_check *check, const struct resource *resource, enum lock_bit bit)
{
    REQUIRE(bit < LOCK_BIT_COUNT);
    uint8_t mask = lock__conflicts[bit];
    return !lock__has_conflicting_hold(check->table, NULL, check->session, resource, mask) &&
           !is_blocked_by_waiter(check, resource, mask);
}

static bool can_grant_in_directories(const struct grant_check *check, const struct resource *index, struct slice path,
                                     enum lock_bit intention)
{
    REQUIRE(index->kind == RESOURCE_INDEX && intention < LOCK_BIT_S);
    const struct resource *at = index;
    struct resource_path walk = resource_path(path);
    struct slice segment;
    while (resource_path_next(&walk, &segment)) {
        at = resource_child(&check->table->resources, at, segment);
        if (at == NULL)
            return true;
        if (!can_grant_bit(check, at, intention))
            return false;
    }
    return true;
}

static bool can_grant_name(const struct grant_check *check, const struct lock_spec *spec)
{
    REQUIRE(spec->on.space != RESOURCE_SPACE_TREE);
    const struct resource_table *resources = &check->table->resources;
    const struct resource *all = resource_of_name(resources, spec->on.space, SLICE_NONE);
    const struct resource *name = resource_of_name(resources, spec->on.space, spec->on.index);
    return (all == NULL || can_grant_bit(check, all, lock__intention_bit(spec->mode))) &&
           (name == NULL || can_grant_bit(check, name, lock__own_bit(spec->mode)));
}

static bool can_grant(const struct grant_check *check, const struct lock_spec *spec)
{
    const struct lock_table *table = check->table;
    if (lock_table_is_idle(table))
        return true;
    REQUIRE(spec->on.index.len > 0);
    enum lock_bit intention = lock__intention_bit(spec->mode);
    if (!can_grant_bit(check, table->resources.root, intention))
        return false;
    if (spec->on.space != RESOURCE_SPACE_TREE)
        return can_grant_name(check, spec);
    const struct resource *index = resource_index(&table->resources, spec->on.index);
    if (index == NULL)
        return true;
    if (!can_grant_bit(check, index, intention))
        return false;
    if (spec->on.path.data != NULL && !can_grant_in_directories(check, index, spec->on.path, intention))
        return false;
    if (spec->insert_intention)
        return true;
    if (spec->on.id.data == NULL)
        return can_grant_bit(check, index, lock__own_bit(spec->mode));
    const struct resource *document = resource_document(&table->resources, index, spec->on.type, spec->on.id);
    return document == NULL || can_grant_bit(check, document, lock__own_bit(spec->mode));
}

bool lock_table_can_grant(struct lock_table *table, struct lock_owner *session, const struct lock_spec *spec)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return can_grant(&(struct grant_check){table, session, false}, spec);
}

bool lock_table_can_grant_ignoring_waiters(struct lock_table *table, struct lock_owner *session,
                                           const struct lock_spec *spec)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return can_grant(&(struct grant_check){table, session, true}, spec);
}

bool lock_table_index_is_unlocked(const struct lock_table *table, struct slice index)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return resource_index(&table->resources, index) == NULL &&
           can_grant_bit(&(struct grant_check){table, NULL, false}, table->resources.root, lock__intention_bit(LOCK_X));
}

static bool holds_at(const struct lock_table *table, const struct lock_owner *owner, const struct resource *resource,
                     enum lock_mode mode)
{
    const struct lock_hold *hold = resource == NULL ? NULL : lock__hold_find(table, owner, resource);
    return hold != NULL && hold->mode >= mode;
}

bool lock_table_covers(const struct lock_table *table, const struct lock_owner *owner, const struct lock_spec *spec)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    const struct resource *at = table->resources.root;
    struct resource_path walk = resource_path(spec->on.path);
    struct slice segment;
    if (owner == NULL || list_empty(&owner->holds))
        return false;
    if (spec->on.space != RESOURCE_SPACE_TREE &&
        holds_at(table, owner, resource_of_name(&table->resources, spec->on.space, SLICE_NONE), spec->mode))
        return true;
    if (holds_at(table, owner, at, spec->mode) || holds_at(table, owner, find_resource(table, &spec->on), spec->mode))
        return true;
    at = spec->on.space != RESOURCE_SPACE_TREE ? NULL : resource_index(&table->resources, spec->on.index);
    while (at != NULL && !holds_at(table, owner, at, spec->mode)) {
        bool more = spec->on.path.data != NULL && resource_path_next(&walk, &segment);
        at = more ? resource_child(&table->resources, at, segment) : NULL;
    }
    return at != NULL;
}

void lock_table_restore(struct lock_table *table, struct lock_owner *owner, const struct lock_spec *spec,
                        uint64_t number, tl_ts since, tl_ts token)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && spec->mode != LOCK_NONE);
    struct resource *resource = resource_open(&table->resources, &spec->on, &RESOURCE_PATH_CACHE_INIT);
    struct lock_hold *hold = lock_take(table, owner, resource, spec->mode, spec->auxiliary);
    hold->number = number;
    hold->since = since;
    lock__chunk_touch(table, hold->chunk);
    lock__token_set(table, hold, token);
    if (number > table->last_lock)
        table->last_lock = number;
    resource_unref(&table->resources, resource);
}

bool lock_table_holds(const struct lock_table *table, const struct lock_owner *owner, const struct lock_spec *spec)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return holds_at(table, owner, find_resource(table, &spec->on), spec->mode);
}

bool lock_table_has_conflicting_hold(const struct lock_table *table, const struct lock_owner *owner,
                                     const struct lock_owner *session, const struct lock_spec *spec)
{
    REQUIRE(spec->on.space != RESOURCE_SPACE_TREE); /* a lock on a name */
    const struct resource *root = table->resources.root;
    const struct resource *all = resource_of_name(&table->resources, spec->on.space, SLICE_NONE);
    const struct resource *name =
        all == NULL ? NULL : resource_of_name(&table->resources, spec->on.space, spec->on.index);
    uint8_t intention = lock__conflicts[lock__intention_bit(spec->mode)];
    uint8_t own = lock__conflicts[lock__own_bit(spec->mode)];
    return lock__has_conflicting_hold(table, owner, session, root, intention) ||
           (all != NULL && lock__has_conflicting_hold(table, owner, session, all, all == name ? own : intention)) ||
           (name != NULL && lock__has_conflicting_hold(table, owner, session, name, own));
}

bool lock_table_has_holds_in_index(const struct lock_table *table, const struct lock_owner *owner, struct slice index)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    const struct resource *resource = resource_index(&table->resources, index);
    return resource != NULL && lock__hold_find(table, owner, resource) != NULL;
}

bool lock_table_has_directories(const struct lock_table *table, struct slice index)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    const struct resource *resource = resource_index(&table->resources, index);
    return resource != NULL && resource_child(&table->resources, resource, SLICE_LIT("/")) != NULL;
}
