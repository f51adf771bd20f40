/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serialization of the lock table; see lock_codec.h.
 *
 * State that follows from the rest is not written: bits and counts, the wait queues, and what each
 * request watches. Three orders depend on history and are written: an owner's holds, the holds of a
 * resource, and an owner's requests.
 *
 *     in pieces (version 10) · ts · token_count · last owner, arrival, lock
 *     resources  parent (index) · kind · type · name
 *     owners     number · age · flags · holds
 *     hold       resource (index) · mode · flags · number · since · token · below[3]
 *     requests   owner (index) · arrival · flags · [token, if granted] · locks
 *     lock       resource · mode · flags · [of an unconfirmed grant: held · the confirmed mode · flags · token]
 *                without_specs: a waiting request has none here
 *     orders     of each resource with several holds: the indexes of their owners
 *                of each owner: the indexes of its requests, then of its dependents' requests
 *
 * In pieces, each chunk of an owner's holds is in the store, and the table has no resources, no
 * orders of holds, and in the place of an owner's holds a list of its chunks:
 *
 *     chunk      number of its piece · length · CRC32C
 *     piece      resources · holds, each with its order
 *
 * A lock at depth d has intention locks on d ancestors; the paths of all of them together would be
 * as long as the square of d. So each held resource is written once, after its parent, in the order
 * in which the holds refer to them. An index counts from 1; 0 is the root.
 */
#include "core/locks/lock_codec.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/magic.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"
#include "core/command/command.h"
#include "core/command/section.h"

enum { NAME_MIN = 5, RESOURCE_MIN = 4, HOLD_MIN = 9, CHUNK_MIN = 3, SPEC_MIN = NAME_MIN + 2, REQUEST_MIN = 3 };

/* Reads or writes a name. A name that was read is checked for its form. */
static void codec_resource_name(struct codec *codec, struct resource_name *name)
{
    name->space = (enum resource_space)codec_enum(codec, name->space, RESOURCE_SPACE_COUNT);
    codec_slice(codec, &name->index);
    codec_slice(codec, &name->path);
    codec_slice(codec, &name->type);
    codec_slice(codec, &name->id);
    if (!codec_reads(codec))
        return;
    bool in_tree = name->space == RESOURCE_SPACE_TREE;
    bool bare = name->path.data == NULL && name->type.len == 0 && name->id.data == NULL;
    codec_require(codec, in_tree ? name->index.len > 0 || bare : bare);
    codec_require(codec, name->path.data == NULL || resource_path_fits(name->path));
    codec_require(codec, name->type.len <= UINT16_MAX && name->id.len <= UINT16_MAX);
}

/* --- Resources ---------------------------------------------------------------------------------------------------- */

/*
 * The held resources, in order of their indexes. During a read, the list has a reference on each.
 * During a write, each resource has its index in `scratch`: half a million locks are written
 * between two steps, and a lookup of each would take most of that time.
 */
struct resource_list {
    struct arena keys;
    struct resource **items;
    size_t count;
    size_t capacity;
    size_t *hold_counts; /* of each owner; during a write */
};

/* Objects are prefetched so many iterations before they are used. */
enum { PREFETCH_DISTANCE = 8 };

/* Prefetches a resource that is used some iterations later. */
static void prefetch_later(const struct resource_list *list, size_t index)
{
    if (index + PREFETCH_DISTANCE < list->count)
        __builtin_prefetch(list->items[index + PREFETCH_DISTANCE]);
}

static void prefetch_owner(const struct lock_codec_refs *refs, size_t index)
{
    if (index < refs->owner_count) {
        __builtin_prefetch(refs->owners[index]);
        __builtin_prefetch((const char *)refs->owners[index] + 64);
    }
}

static void resources_add(struct resource_list *list, struct resource *resource)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->items = mem_realloc(list->items, list->capacity * sizeof(struct resource *));
    }
    list->items[list->count++] = resource;
}

/* Adds a resource to the list, after its ancestors, unless it has an index already. */
static void resources_put(struct resource_list *list, struct resource *resource)
{
    size_t first = list->count;
    for (; resource->parent != NULL && resource->scratch == 0; resource = resource->parent)
        resources_add(list, resource);
    for (size_t i = first, j = list->count; i + 1 < j; i++) { /* the deepest was added first */
        struct resource *below = list->items[i];
        list->items[i] = list->items[--j];
        list->items[j] = below;
    }
    for (size_t i = first; i < list->count; i++)
        list->items[i]->scratch = (uint32_t)(i + 1);
}

static void codec_resource(struct codec *codec, size_t *above, enum resource_kind *kind, struct slice *type,
                           struct slice *name)
{
    codec_size(codec, above);
    *kind = (enum resource_kind)codec_enum(codec, *kind, RESOURCE_KIND_COUNT);
    codec_bytes(codec, type);
    codec_bytes(codec, name);
}

static void write_resources(struct codec *codec, struct resource_list *list)
{
    codec_array(codec, NULL, &list->count, 0, RESOURCE_MIN);
    for (size_t i = 0; i < list->count; i++) {
        const struct resource *resource = list->items[i];
        prefetch_later(list, i);
        size_t above = resource->parent->scratch;
        INSIST(above <= i); /* its parent has been written */
        enum resource_kind kind = (enum resource_kind)resource->kind;
        struct slice type = resource_type(resource);
        struct slice name = slice_make(resource->name + type.len, resource->name_len - type.len);
        codec_resource(codec, &above, &kind, &type, &name);
    }
}

static void read_resources(struct codec *codec, struct lock_table *table, struct resource_list *list, bool may_exist)
{
    size_t count = 0;
    codec_array(codec, NULL, &count, 0, RESOURCE_MIN);
    /* depths of directories, by index */
    uint16_t *levels = arena_zalloc(&list->keys, (count + 1) * sizeof *levels);
    for (size_t i = 0; i < count && !codec->bad; i++) {
        enum resource_kind kind = RESOURCE_ALL;
        struct slice type = SLICE_NONE, name = SLICE_NONE;
        size_t above = 0;
        codec_resource(codec, &above, &kind, &type, &name);
        codec_require(codec, codec->bad || above <= list->count);
        if (codec->bad)
            return;
        levels[i + 1] = kind == RESOURCE_DIRECTORY ? (uint16_t)(levels[above] + 1) : 0;
        codec_require(codec, levels[i + 1] <= RESOURCE_LEVELS_MAX + 1);
        if (codec->bad)
            return;
        struct resource *parent = above == 0 ? table->resources.root : list->items[above - 1];
        struct resource *resource = resource_restore(&table->resources, parent, kind, type, name, may_exist);
        codec_require(codec, resource != NULL);
        if (resource != NULL)
            resources_add(list, resource);
    }
}

static void resources_free(struct resource_list *list, struct lock_table *table, bool referred)
{
    for (size_t i = 0; i < list->count; i++) {
        prefetch_later(list, i);
        if (referred)
            resource_unref(&table->resources, list->items[i]);
        else
            list->items[i]->scratch = 0;
    }
    arena_deinit(&list->keys);
    mem_free(list->items);
}

/* --- Holds -------------------------------------------------------------------------------------------------------- */

static void codec_hold_fields(struct codec *codec, struct lock_hold *hold, bool in_piece)
{
    bool *const flags[] = {&hold->auxiliary};

    hold->mode = (uint8_t)codec_enum(codec, hold->mode, LOCK_MODE_COUNT);
    codec_flags(codec, flags, 1);
    codec_number(codec, &hold->number);
    codec_number(codec, &hold->since);
    codec_number(codec, &hold->token);
    for (size_t i = 0; i < 3; i++) {
        uint64_t below = hold->below[i];
        codec_number(codec, &below);
        codec_require(codec, below <= UINT32_MAX);
        hold->below[i] = codec->bad ? 0 : (uint32_t)below;
    }
    if (in_piece) {
        codec_number(codec, &hold->order);
        codec_require(codec, hold->order > 0 && hold->order <= INT64_MAX);
    }
}

static bool same_text(struct slice a, struct slice b)
{
    return (a.data == NULL) == (b.data == NULL) && slice_equal(a, b);
}

/*
 * Returns: whether the resource of a name that was read has exactly this name. It can differ if the
 * directory of a document does, or a path is not in normal form; then the data is invalid.
 */
static bool has_name(const struct lock_table *table, const struct resource_name *name)
{
    struct arena arena = ARENA_INIT;
    const struct resource *resource = lock__find_resource(table, name);
    struct resource_name found = {0};
    if (resource != NULL)
        found = resource_name(resource, &arena);
    bool same = resource != NULL && found.space == name->space && same_text(found.index, name->index) &&
                same_text(found.path, name->path) && same_text(found.type, name->type) && same_text(found.id, name->id);
    arena_deinit(&arena);
    return same;
}

static void read_hold(struct codec *codec, struct lock_table *table, struct lock_owner *owner,
                      const struct resource_list *list, bool in_piece)
{
    struct lock_hold fields = {0};
    size_t index = 0;

    codec_size(codec, &index);
    codec_require(codec, codec->bad || index <= list->count);
    codec_hold_fields(codec, &fields, in_piece);
    codec_require(codec, (fields.mode != LOCK_NONE) == (fields.number != 0) &&
                             (fields.mode != LOCK_NONE || !fields.auxiliary));
    codec_require(codec, fields.mode != LOCK_NONE || fields.below[0] + fields.below[1] + fields.below[2] > 0);
    if (codec->bad)
        return;
    struct resource *resource = index == 0 ? table->resources.root : list->items[index - 1];
    codec_require(codec, lock__restore_hold(table, owner, resource, &fields));
}

static void write_hold(struct codec *codec, const struct lock_hold *hold, bool in_piece)
{
    struct lock_hold fields = *hold;
    size_t index = hold->resource->scratch;
    REQUIRE(index != 0 || hold->resource->parent == NULL);

    codec_size(codec, &index);
    codec_hold_fields(codec, &fields, in_piece);
}

/* --- Pieces ------------------------------------------------------------------------------------------------------- */

void lock_codec_write_chunk(struct codec *codec, struct lock_table *table, const struct lock_chunk *chunk)
{
    REQUIRE(chunk->count > 0 && chunk->first != NULL);
    struct resource_list list = {.keys = ARENA_INIT};
    size_t count = chunk->count;
    const struct list *link = &chunk->first->of_owner;
    for (size_t i = 0; i < count; i++, link = link->next)
        resources_put(&list, list_entry(link, struct lock_hold, of_owner)->resource);
    write_resources(codec, &list);
    codec_array(codec, NULL, &count, 0, HOLD_MIN + 1);
    link = &chunk->first->of_owner;
    for (size_t i = 0; i < count; i++, link = link->next)
        write_hold(codec, list_entry(link, struct lock_hold, of_owner), true);
    resources_free(&list, table, false);
}

/* Returns: whether the bytes of a piece were valid and became a chunk that encodes to the same. */
static bool read_piece(struct lock_table *table, struct lock_owner *owner, struct slice bytes, uint64_t piece,
                       uint32_t len, uint32_t crc)
{
    struct resource_list list = {.keys = ARENA_INIT};
    struct codec codec = codec_from(bytes, &list.keys);
    struct lock_chunk *chunk = lock__chunk_begin(table, owner);
    size_t count = 0;
    read_resources(&codec, table, &list, true);
    codec_array(&codec, NULL, &count, 0, HOLD_MIN + 1);
    codec_require(&codec, count > 0 && count <= LOCK_CHUNK_HOLDS);
    for (size_t i = 0; i < count && !codec.bad; i++)
        read_hold(&codec, table, owner, &list, true);
    bool valid = codec_done(&codec);
    resources_free(&list, table, true);
    if (chunk->count == 0) {
        lock__chunk_end(table, chunk);
        return false;
    }
    if (valid) {
        struct buf again = BUF_INIT(BUF_UNLIMITED);
        codec = codec_to(&again, codec.version);
        lock_codec_write_chunk(&codec, table, chunk);
        valid = slice_equal(buf_as_slice(&again), bytes);
        buf_deinit(&again);
    }
    lock_chunk_saved(table, chunk, piece, len, crc);
    return valid;
}

void lock_codec_check_chunks(struct lock_table *table)
{
    uint64_t work = table->work, lookups = table->resources.lookups;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < table->bucket_count; i++)
        for (const struct lock_hold *hold = table->buckets[i]; hold != NULL; hold = hold->chain) {
            const struct lock_chunk *chunk = hold->chunk;
            if (hold != chunk->first || list_linked(&chunk->changed))
                continue;
            buf_clear(&bytes);
            struct codec codec = codec_to(&bytes, SECTIONS_VERSION);
            lock_codec_write_chunk(&codec, table, chunk);
            INSIST(chunk->piece != 0 && chunk->saved_len == bytes.len &&
                   chunk->saved_crc == crc32c(0, bytes.data, bytes.len));
        }
    buf_deinit(&bytes);
    INSIST(table->work == work && table->resources.lookups == lookups);
}

static void codec_chunk_fields(struct codec *codec, uint64_t *piece, uint32_t *len, uint32_t *crc)
{
    uint64_t wide_len = *len, wide_crc = *crc;
    codec_number(codec, piece);
    codec_number(codec, &wide_len);
    codec_number(codec, &wide_crc);
    codec_require(codec, *piece > 0 && wide_len > 0 && wide_len <= UINT32_MAX && wide_crc <= UINT32_MAX);
    *len = codec->bad ? 0 : (uint32_t)wide_len;
    *crc = codec->bad ? 0 : (uint32_t)wide_crc;
}

static void read_chunk(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs,
                       struct lock_owner *owner)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    uint64_t piece = 0;
    uint32_t len = 0, crc = 0;
    codec_chunk_fields(codec, &piece, &len, &crc);
    if (!codec->bad)
        codec_require(codec, refs->read_piece(refs->context, piece, len, crc, &bytes) &&
                                 read_piece(table, owner, buf_as_slice(&bytes), piece, len, crc));
    buf_deinit(&bytes);
}

/* The list of the chunks of an owner's holds, and, when reading, the holds. */
static void codec_chunks(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs,
                         struct lock_owner *owner)
{
    size_t count = list_length(&owner->chunks);
    codec_array(codec, NULL, &count, 0, CHUNK_MIN);
    if (codec_reads(codec)) {
        for (size_t i = 0; i < count && !codec->bad; i++)
            read_chunk(codec, table, refs, owner);
        return;
    }
    list_for_each(link, &owner->chunks)
    {
        struct lock_chunk chunk = *list_entry(link, struct lock_chunk, of_owner);
        REQUIRE(!list_linked(&chunk.changed));
        codec_chunk_fields(codec, &chunk.piece, &chunk.saved_len, &chunk.saved_crc);
    }
}

static int compare_orders(const void *a, const void *b)
{
    uint64_t x = (*(struct lock_hold *const *)a)->order, y = (*(struct lock_hold *const *)b)->order;
    return (x > y) - (x < y);
}

/* Sorts the holds of a resource, which pieces have in the order of their owners. */
static void sort_holds(struct codec *codec, struct resource *resource)
{
    size_t count = list_length(&resource->holds), i = 0;
    struct lock_hold **holds = mem_alloc(count * sizeof(struct lock_hold *));
    list_for_each(link, &resource->holds) holds[i++] = list_entry(link, struct lock_hold, of_resource);
    qsort(holds, count, sizeof(struct lock_hold *), compare_orders);
    for (i = 0; i < count; i++) {
        codec_require(codec, i == 0 || holds[i - 1]->order < holds[i]->order);
        lock__hold_to_end(holds[i]);
    }
    mem_free(holds);
}

/* Restores the orders of all resources' holds from their numbers. */
static void sort_all_holds(struct codec *codec, const struct lock_codec_refs *refs)
{
    for (int pass = 0; pass < 2; pass++) /* the second pass clears `scratch` */
        for (size_t i = 0; i < refs->owner_count; i++)
            list_for_each(link, &refs->owners[i]->holds)
            {
                struct resource *resource = list_entry(link, struct lock_hold, of_owner)->resource;
                if (pass == 0 && resource->scratch == 0 && resource->holds.next != resource->holds.prev)
                    sort_holds(codec, resource);
                resource->scratch = pass == 0;
            }
}

/* --- Owners ------------------------------------------------------------------------------------------------------- */

static void codec_owner(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs, size_t at,
                        const struct resource_list *list)
{
    struct lock_owner *owner = refs->owners[at];
    bool *const flags[] = {&owner->autocommit, &owner->cleanup};
    owner->index = at;
    size_t count = codec_reads(codec) || refs->in_pieces ? 0 : list->hold_counts[at];

    codec_number(codec, &owner->number);
    codec_number(codec, &owner->age);
    codec_flags(codec, flags, 2);
    if (refs->in_pieces) {
        codec_chunks(codec, table, refs, owner);
        return;
    }
    codec_array(codec, NULL, &count, 0, HOLD_MIN);
    if (!codec_reads(codec)) {
        list_for_each(link, &owner->holds) write_hold(codec, list_entry(link, struct lock_hold, of_owner), false);
        return;
    }
    for (size_t i = 0; i < count && !codec->bad; i++)
        read_hold(codec, table, owner, list, false);
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/* Reads or writes an index; requires one below `count`. */
static void codec_index(struct codec *codec, size_t *index, size_t count)
{
    codec_size(codec, index);
    codec_require(codec, codec->bad || *index < count);
}

static void codec_spec(struct codec *codec, struct lock_spec *spec)
{
    bool *const flags[] = {&spec->insert_intention, &spec->auxiliary};

    codec_resource_name(codec, &spec->on);
    spec->mode = (enum lock_mode)codec_enum(codec, spec->mode, LOCK_MODE_COUNT);
    codec_require(codec, codec->bad || spec->mode != LOCK_NONE);
    codec_flags(codec, flags, 2);
}

static void codec_request_flags(struct codec *codec, bool *upgrade, bool *granted, bool *unconfirmed)
{
    bool *const flags[] = {upgrade, granted, unconfirmed};

    codec_flags(codec, flags, codec->version < 6 ? 1 : codec->version < 10 ? 2 : 3);
    codec_require(codec, !*unconfirmed || *granted);
}

/* Reads or writes what the hold of an unconfirmed grant keeps if all of its grants are undone. */
static void codec_confirmed(struct codec *codec, struct lock_value *value)
{
    bool *const flags[] = {&value->auxiliary};

    value->mode = (enum lock_mode)codec_enum(codec, value->mode, LOCK_MODE_COUNT);
    codec_flags(codec, flags, 1);
    codec_number(codec, &value->token);
    codec_require(codec, value->mode != LOCK_NONE || (value->token == TL_TS_NONE && !value->auxiliary));
}

static void write_grants(struct codec *codec, const struct lock_request *request)
{
    REQUIRE(request->grants != NULL);
    for (size_t i = 0; i < request->spec_count; i++) {
        const struct lock_hold *hold = request->grants[i].hold;
        bool held = hold != NULL;
        codec_bool(codec, &held);
        if (!held)
            continue;
        struct lock_value value = lock__confirmed_value(hold->unconfirmed);
        codec_confirmed(codec, &value);
    }
}

/* Reads the unconfirmed grants of a request; sort_grants() puts them into the order of their holds. */
static void read_grants(struct codec *codec, struct lock_table *table, struct lock_request *request)
{
    lock__grants_open(request);
    for (size_t i = 0; i < request->spec_count && !codec->bad; i++) {
        const struct lock_spec_ref *spec = &request->specs[i];
        struct lock_value value = {LOCK_NONE, TL_TS_NONE, false};
        bool held = false;
        codec_bool(codec, &held);
        if (!held)
            continue;
        codec_confirmed(codec, &value);
        struct lock_hold *hold = lock__hold_find(table, request->owner, spec->resource);
        codec_require(codec, hold != NULL && hold->mode != LOCK_NONE && !spec->insert_intention);
        if (codec->bad)
            return;
        struct lock_value first = hold->unconfirmed == NULL ? value : lock__confirmed_value(hold->unconfirmed);
        codec_require(codec,
                      first.mode == value.mode && first.token == value.token && first.auxiliary == value.auxiliary);
        lock__grant_add(request, i, hold, value);
    }
}

static int compare_tokens(const void *a, const void *b)
{
    const struct lock_request *x = *(struct lock_request *const *)a, *y = *(struct lock_request *const *)b;
    return x->token < y->token ? -1 : x->token > y->token;
}

/*
 * Orders the grants of each hold by their tokens, and requires that each hold has what follows from
 * its grants (invariant 9).
 */
static void sort_grants(struct codec *codec, const struct lock_codec_refs *refs)
{
    struct lock_request **sorted = mem_alloc((refs->request_count + 1) * sizeof(struct lock_request *));
    size_t count = 0;

    for (size_t i = 0; i < refs->request_count; i++)
        if (refs->requests[i]->grants != NULL)
            sorted[count++] = refs->requests[i];
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_tokens);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sorted[i]->spec_count; j++) {
            struct lock_grant *grant = &sorted[i]->grants[j];
            if (grant->hold == NULL)
                continue;
            list_remove(&grant->link);
            list_append(&grant->hold->unconfirmed->grants, &grant->link);
        }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sorted[i]->spec_count; j++) {
            const struct lock_hold *hold = sorted[i]->grants[j].hold;
            if (hold == NULL)
                continue;
            struct lock_value value = lock__unconfirmed_value(hold->unconfirmed);
            codec_require(codec, value.mode == (enum lock_mode)hold->mode && value.token == hold->token &&
                                     value.auxiliary == hold->auxiliary);
        }
    mem_free(sorted);
}

/* Returns: the index of an owner in the array of owners, during a write. */
static size_t index_of(const struct lock_codec_refs *refs, const struct lock_owner *owner)
{
    REQUIRE(owner->index < refs->owner_count && refs->owners[owner->index] == owner);
    return owner->index;
}

void lock_codec_write_specs(struct codec *codec, const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    struct arena arena = ARENA_INIT;
    size_t count = request->spec_count;

    codec_array(codec, NULL, &count, 0, SPEC_MIN);
    for (size_t i = 0; i < count; i++) {
        const struct lock_spec_ref *ref = &request->specs[i];
        struct lock_spec spec = {resource_name(ref->resource, &arena), ref->mode, ref->insert_intention,
                                 ref->auxiliary};
        codec_spec(codec, &spec);
    }
    arena_deinit(&arena);
}

static struct lock_spec *read_specs(struct codec *codec, size_t *ret_count)
{
    size_t count = 0;
    struct lock_spec *specs = codec_array(codec, NULL, &count, sizeof(*specs), SPEC_MIN);

    codec_require(codec, count > 0);
    for (size_t i = 0; i < count && !codec->bad; i++)
        codec_spec(codec, &specs[i]);
    *ret_count = codec->bad ? 0 : count;
    return specs;
}

/* Reads the specs of the next waiting request that the caller passed. */
static struct lock_spec *read_passed_specs(struct codec *codec, struct lock_codec_refs *refs, size_t *ret_count)
{
    *ret_count = 0;
    codec_require(codec, refs->specs_count > 0);
    if (codec->bad)
        return NULL;
    struct codec passed = codec_from(*refs->specs, codec->arena);
    refs->specs++;
    refs->specs_count--;
    struct lock_spec *specs = read_specs(&passed, ret_count);
    codec_require(codec, codec_done(&passed));
    return specs;
}

static void write_request(struct codec *codec, const struct lock_codec_refs *refs, const struct lock_request *request)
{
    bool upgrade = request->upgrade, granted = request->state == LOCK_STATE_GRANTED;
    bool unconfirmed = request->grants != NULL;
    uint64_t arrival = request->arrival;
    tl_ts token = request->token;
    size_t index = index_of(refs, request->owner);

    REQUIRE(granted || request->state == LOCK_STATE_WAITING);
    codec_size(codec, &index);
    codec_number(codec, &arrival);
    codec_request_flags(codec, &upgrade, &granted, &unconfirmed);
    if (granted)
        codec_number(codec, &token);
    if (granted || !refs->without_specs)
        lock_codec_write_specs(codec, request);
    if (unconfirmed)
        write_grants(codec, request);
}

static struct lock_request *read_request(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs)
{
    struct lock_spec *specs;
    uint64_t arrival = 0;
    bool upgrade = false, granted = false, unconfirmed = false;
    tl_ts token = TL_TS_NONE;
    size_t index = 0, count = 0;

    codec_index(codec, &index, refs->owner_count);
    codec_number(codec, &arrival);
    codec_request_flags(codec, &upgrade, &granted, &unconfirmed);
    if (granted)
        codec_number(codec, &token);
    specs = granted || !refs->without_specs ? read_specs(codec, &count) : read_passed_specs(codec, refs, &count);
    codec_require(codec, arrival <= table->last_arrival);
    if (codec->bad)
        return NULL;
    struct lock_owner *owner = refs->owners[index];
    struct lock_request *request = granted ? lock__restore_granted(table, owner, specs, count, arrival, upgrade, token)
                                           : lock__restore_request(table, owner, specs, count, arrival, upgrade);
    for (size_t i = 0; i < count; i++)
        codec_require(codec, has_name(table, &specs[i].on));
    if (unconfirmed)
        read_grants(codec, table, request);
    return request;
}

static void read_requests(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs)
{
    size_t count = 0;

    refs->requests = codec_array(codec, NULL, &count, sizeof(struct lock_request *), REQUEST_MIN);
    for (size_t i = 0; i < count && !codec->bad; i++) {
        struct lock_request *request = read_request(codec, table, refs);
        if (request != NULL)
            refs->requests[refs->request_count++] = request;
    }
    codec_require(codec, refs->specs_count == 0);
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

/* Writes the order of the holds of a resource, as indexes of their owners. */
static void write_order(struct codec *codec, const struct lock_codec_refs *refs, const struct resource *resource)
{
    list_for_each(link, &resource->holds)
    {
        size_t index = index_of(refs, list_entry(link, struct lock_hold, of_resource)->owner);
        codec_size(codec, &index);
    }
}

/* Restores the order of the holds of a resource: moves each to the end in its turn. */
static void read_order(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *refs,
                       struct resource *resource)
{
    size_t count = list_length(&resource->holds);
    for (size_t i = 0; i < count && !codec->bad; i++) {
        size_t index = 0;
        codec_index(codec, &index, refs->owner_count);
        struct lock_hold *hold = codec->bad ? NULL : lock__hold_find(table, refs->owners[index], resource);
        codec_require(codec, hold != NULL);
        if (hold == NULL)
            return;
        lock__hold_to_end(hold);
        hold->order = ++table->last_order;
    }
}

/*
 * The orders of holds, of the root and of all resources in the list; only where there are several
 * holds.
 */
static void codec_orders(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *refs,
                         const struct resource_list *resources)
{
    for (size_t i = 0; i <= resources->count && !codec->bad; i++) {
        struct resource *resource = i == 0 ? table->resources.root : resources->items[i - 1];
        prefetch_later(resources, i);
        if (resource->holds.next == resource->holds.prev)
            continue;
        if (codec_reads(codec))
            read_order(codec, table, refs, resource);
        else
            write_order(codec, refs, resource);
    }
}

static struct lock_request *request_at(const struct list *link, bool of_session)
{
    return of_session ? list_entry(link, struct lock_request, of_session)
                      : list_entry(link, struct lock_request, of_owner);
}

/* The order of the requests of an owner, or (`of_session`) of its dependents. */
static void codec_request_order(struct codec *codec, struct list *requests, bool of_session,
                                const struct lock_codec_refs *refs)
{
    size_t count = list_length(requests), there = count;

    codec_size(codec, &count);
    codec_require(codec, count == there);
    if (!codec_reads(codec)) {
        list_for_each(link, requests)
        {
            size_t index = request_at(link, of_session)->index;
            REQUIRE(index < refs->request_count && refs->requests[index] == request_at(link, of_session));
            codec_size(codec, &index);
        }
        return;
    }
    for (size_t i = 0; i < there && !codec->bad; i++) {
        size_t index = 0;
        codec_index(codec, &index, refs->request_count);
        if (codec->bad)
            return;
        struct lock_request *request = refs->requests[index];
        struct list *link = of_session ? &request->of_session : &request->of_owner;
        const struct lock_owner *owner = of_session ? request->owner->session : request->owner;
        codec_require(codec, owner != NULL &&
                                 requests == (of_session ? &owner->dependent_requests : &owner->requests) &&
                                 request->state == LOCK_STATE_WAITING);
        if (codec->bad)
            return;
        list_remove(link);
        list_append(requests, link);
    }
}

static void codec_request_orders(struct codec *codec, const struct lock_codec_refs *refs)
{
    for (size_t i = 0; i < refs->owner_count && !codec->bad; i++) {
        prefetch_owner(refs, i + PREFETCH_DISTANCE);
        codec_request_order(codec, &refs->owners[i]->requests, false, refs);
        codec_request_order(codec, &refs->owners[i]->dependent_requests, true, refs);
    }
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static void codec_numbers(struct codec *codec, struct lock_table *table)
{
    codec_number(codec, &table->ts);
    codec_number(codec, &table->token_count);
    codec_number(codec, &table->last_owner);
    codec_number(codec, &table->last_arrival);
    codec_number(codec, &table->last_lock);
}

static void write_requests_and_orders(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *refs,
                                      const struct resource_list *resources)
{
    size_t count = refs->request_count, waiting = 0;

    codec_array(codec, NULL, &count, 0, REQUEST_MIN);
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_DISTANCE < count)
            __builtin_prefetch(refs->requests[i + PREFETCH_DISTANCE]);
        refs->requests[i]->index = i;
        waiting += refs->requests[i]->state == LOCK_STATE_WAITING;
        write_request(codec, refs, refs->requests[i]);
    }
    REQUIRE(waiting == table->waiting_count);
    if (!refs->in_pieces)
        codec_orders(codec, table, refs, resources);
    codec_request_orders(codec, refs);
}

static void read_requests_and_orders(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs,
                                     const struct resource_list *resources)
{
    read_requests(codec, table, refs);
    sort_grants(codec, refs);
    if (refs->in_pieces)
        sort_all_holds(codec, refs);
    else
        codec_orders(codec, table, refs, resources);
    codec_request_orders(codec, refs);
    for (size_t i = 0; i < refs->request_count && !codec->bad; i++)
        if (refs->requests[i]->state == LOCK_STATE_WAITING)
            lock__queue_watch_restored(refs->requests[i]);
}

static void codec_resources(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *refs,
                            struct resource_list *list)
{
    if (codec_reads(codec)) {
        read_resources(codec, table, list, false);
        return;
    }
    list->hold_counts = arena_zalloc(&list->keys, (refs->owner_count + 1) * sizeof *list->hold_counts);
    for (size_t i = 0; i < refs->owner_count; i++)
        list_for_each(link, &refs->owners[i]->holds)
        {
            if (link->next != &refs->owners[i]->holds)
                __builtin_prefetch(list_entry(link->next, struct lock_hold, of_owner)->resource);
            resources_put(list, list_entry(link, struct lock_hold, of_owner)->resource);
            list->hold_counts[i]++;
        }
    write_resources(codec, list);
}

void lock_codec_table(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs)
{
    struct resource_list resources = {.keys = ARENA_INIT};
    size_t count = refs->owner_count;

    REQUIRE(list_empty(&table->granted) && list_empty(&table->victims) && table->grants_suspended == 0);
    REQUIRE(!codec_reads(codec) || lock_table_is_idle(table));
    if (codec_reads(codec))
        refs->request_count = 0;
    refs->in_pieces = refs->in_pieces && table->hold_count > 0;
    if (codec->version >= 10)
        codec_bool(codec, &refs->in_pieces);
    codec_require(codec, !refs->in_pieces || !codec_reads(codec) || refs->read_piece != NULL);
    refs->in_pieces = refs->in_pieces && !codec->bad;
    codec_numbers(codec, table);
    if (!refs->in_pieces)
        codec_resources(codec, table, refs, &resources);
    codec_size(codec, &count);
    codec_require(codec, count == refs->owner_count);
    for (size_t i = 0; i < refs->owner_count && !codec->bad; i++) {
        prefetch_owner(refs, i + PREFETCH_DISTANCE);
        codec_owner(codec, table, refs, i, &resources);
    }
    if (codec_reads(codec))
        read_requests_and_orders(codec, table, refs, &resources);
    else
        write_requests_and_orders(codec, table, refs, &resources);
    resources_free(&resources, table, codec_reads(codec));
}

void lock_codec_discard(struct lock_table *table, struct lock_codec_refs *refs)
{
    struct lock_hooks hooks = table->hooks;

    table->hooks = (struct lock_hooks){0};
    lock_table_suspend_grants(table); /* invalid data may have cycles that no table has */
    for (size_t i = 0; i < refs->request_count; i++)
        lock_request_free(refs->requests[i]);
    for (size_t i = 0; i < refs->owner_count; i++)
        lock_release_all(table, refs->owners[i]);
    lock_table_resume_grants(table);
    table->hooks = hooks;
}

void lock_request_set_user(struct lock_request *request, void *user)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    request->user = user;
}
