/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest: a hash of the logical state. Two cores that applied the same commands have equal
 * digests, whatever their stores and however often they were opened.
 *
 * The hashes of documents are added, so their order does not matter. Tombstones belong to the state
 * while their versions count. Entries are hints and do not belong to it.
 */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/counter.h"
#include "core/catalog/index.h"
#include "core/documents/doc.h"
#include "core/step/core.h"
#include "core/owners/owners_step.h"
#include "core/unit/unit.h"

static uint64_t mix_digest(uint64_t digest, uint64_t value)
{
    uint64_t x = (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);

    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

struct summing {
    struct core *core;
    uint64_t sum;
};

static int digest_document(void *context, struct slice key, struct slice record)
{
    struct summing *work = context;
    const struct core *core = work->core;
    struct slice id;
    struct doc doc;
    uint32_t index;
    uint16_t type;

    if (!doc_key_parse(key, &index, &type, &id) || doc_decode(record, &doc) < 0)
        return tl_trace(TL_ERR_CORRUPT);
    const struct catalog_index *of = catalog_index_by_number(core->catalog, index);
    if (of == NULL || (doc.deleted && doc.ts < index__deletes_horizon(core, of, core->last_ts)))
        return 0;
    work->sum += mix_digest(slice_hash(key), slice_hash(record));
    return 0;
}

static int digest_documents(struct core *core, uint64_t *digest)
{
    struct summing work = {core, 0};
    int r = store_each(core->store, SPACE_DOCUMENTS, TL_TS_MAX, SLICE_NONE, SLICE_NONE, digest_document, &work);

    *digest = mix_digest(*digest, work.sum);
    return r;
}

static int digest_tree_record(void *context, struct slice key, struct slice record)
{
    struct summing *work = context;
    struct slice rest = key;
    uint32_t index;

    if (!slice_take_u32be(&rest, &index))
        return tl_trace(TL_ERR_CORRUPT);
    if (catalog_index_by_number(work->core->catalog, index) != NULL)
        work->sum += mix_digest(slice_hash(key), slice_hash(record));
    return 0;
}

static int digest_trees(struct core *core, uint64_t *digest)
{
    struct summing work = {core, 0};
    int r = store_each(core->store, SPACE_TREE, TL_TS_MAX, SLICE_NONE, SLICE_NONE, digest_tree_record, &work);

    *digest = mix_digest(*digest, work.sum);
    return r;
}

static uint64_t digest_counter(uint64_t digest, const struct counter *counter)
{
    digest = mix_digest(digest, counter->index);
    digest = mix_digest(digest, (uint64_t)counter->next_seq_no);
    for (size_t i = 0; i < counter->type_count; i++)
        if (counter->types[i].documents != 0)
            digest = mix_digest(mix_digest(digest, i), counter->types[i].documents);
    return digest;
}

static void digest_counters(struct core *core, uint64_t *digest)
{
    *digest = mix_digest(*digest, core->counters.next_index);
    for (size_t i = 0; i < catalog_index_count(core->catalog); i++) {
        uint32_t number = catalog_index_at(core->catalog, i)->number;
        *digest = digest_counter(*digest, counters__of(&core->counters, number));
    }
}

int core_digest(struct core *core, uint64_t *ret_digest)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open);
    uint64_t digest = catalog__digest(core->catalog);
    int r = digest_documents(core, &digest);

    if (r == 0)
        r = digest_trees(core, &digest);
    if (r != 0)
        return tl_trace(r);
    digest_counters(core, &digest);
    r = owners__digest(core, &digest);
    if (r == 0)
        *ret_digest = digest;
    return r;
}
