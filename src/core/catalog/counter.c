/* SPDX-License-Identifier: Apache-2.0 */
/* Counters. The changes of a unit are committed or rolled back as a whole. */
#include "core/catalog/counter.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"

static const char next_index_key[] = "x";

struct slice counter_key(char *bytes, uint32_t index, uint16_t type)
{
    bytes[0] = 'n';
    big_endian_put_u32(bytes + 1, index);
    bytes[5] = (char)(type >> 8);
    bytes[6] = (char)type;
    return slice_make(bytes, COUNTER_KEY_BYTES);
}

bool counter_key_parse(struct slice key, uint32_t *ret_index, uint16_t *ret_type)
{
    struct slice rest = slice_from_offset(key, 1);

    if (key.len != COUNTER_KEY_BYTES || key.data[0] != 'n' || !slice_take_u32be(&rest, ret_index))
        return false;
    *ret_type = (uint16_t)((unsigned char)rest.data[0] << 8 | (unsigned char)rest.data[1]);
    return true;
}

void counter_encode(struct buf *buf, const struct counter_record *record)
{
    REQUIRE(record->next_seq_no >= 0);
    buf_u64be(buf, record->ts);
    buf_varint(buf, (uint64_t)record->next_seq_no);
    buf_varint(buf, record->documents);
}

/* Higher numbers are never reached by counting: a record that has one is damaged. */
#define NEXT_SEQ_NO_MAX (INT64_MAX / 2)
#define NEXT_INDEX_MAX (UINT32_MAX / 2)

int counter_decode(struct slice value, struct counter_record *ret_record)
{
    struct counter_record record;
    uint64_t next_seq_no;

    if (!slice_take_u64be(&value, &record.ts) || !slice_take_varint(&value, &next_seq_no) ||
        !slice_take_varint(&value, &record.documents) || next_seq_no > NEXT_SEQ_NO_MAX)
        return tl_trace(TL_ERR_CORRUPT);
    record.next_seq_no = (int64_t)next_seq_no;
    *ret_record = record;
    return 0;
}

/* Returns: the position of the counter of an index, or the position to insert it. */
static size_t position_of(const struct counters *counters, uint32_t index)
{
    size_t low = 0, high = counters->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (counters->items[middle]->index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct counter *counters__of(struct counters *counters, uint32_t index)
{
    size_t position = position_of(counters, index);

    if (position < counters->count && counters->items[position]->index == index)
        return counters->items[position];
    if (counters->count == counters->capacity) {
        counters->capacity = counters->capacity == 0 ? 16 : counters->capacity * 2;
        counters->items = mem_realloc(counters->items, counters->capacity * sizeof(*counters->items));
    }
    memmove(counters->items + position + 1, counters->items + position,
            (counters->count - position) * sizeof(*counters->items));
    struct counter *counter = mem_zalloc(sizeof(*counter));
    counter->index = index;
    counter->shared = catalog__counters_new();
    counters->items[position] = counter;
    counters->count++;
    ENSURE(counters->count <= counters->capacity);
    return counter;
}

static struct counter *counter_free(struct counter *counter)
{
    catalog__counters_unref(counter->shared);
    mem_free(counter->types);
    mem_free(counter);
    return NULL;
}

void counters__drop(struct counters *counters, uint32_t index)
{
    size_t position = position_of(counters, index);

    if (position == counters->count || counters->items[position]->index != index)
        return;
    REQUIRE(!counters->items[position]->dirty);
    counter_free(counters->items[position]);
    counters->count--;
    memmove(counters->items + position, counters->items + position + 1,
            (counters->count - position) * sizeof(*counters->items));
}

void counters__deinit(struct counters *counters)
{
    for (size_t i = 0; i < counters->count; i++)
        counter_free(counters->items[i]);
    mem_free(counters->items);
    mem_free(counters->dirty);
    *counters = (struct counters){0};
}

static struct counter_type *type_of(struct counter *counter, uint16_t type)
{
    if (type >= counter->type_count) {
        size_t count = (size_t)type + 1;
        counter->types = mem_realloc(counter->types, count * sizeof(*counter->types));
        memset(counter->types + counter->type_count, 0, (count - counter->type_count) * sizeof(*counter->types));
        counter->type_count = count;
    }
    INSIST(type < counter->type_count);
    return &counter->types[type];
}

/* Registers a counter and a type as changed by the unit. Returns: the type's counter. */
static struct counter_type *touch_counter(struct counters *counters, struct counter *counter, uint16_t number)
{
    struct counter_type *type = type_of(counter, number);

    if (!counter->dirty) {
        if (counters->dirty_count == counters->dirty_capacity) {
            counters->dirty_capacity = counters->dirty_capacity == 0 ? 16 : counters->dirty_capacity * 2;
            counters->dirty = mem_realloc(counters->dirty, counters->dirty_capacity * sizeof(*counters->dirty));
        }
        counters->dirty[counters->dirty_count++] = counter;
        counter->dirty = true;
        counter->next_seq_no_before = counter->next_seq_no;
        INSIST(counters->dirty_count <= counters->count); /* each one once */
    }
    if (!type->dirty) {
        type->dirty = true;
        type->documents_before = type->documents;
    }
    return type;
}

int64_t counter__take_seq_no(struct counters *counters, struct counter *counter, uint16_t type)
{
    REQUIRE(counter->next_seq_no >= 0 && counter->next_seq_no < INT64_MAX);
    touch_counter(counters, counter, type);
    return counter->next_seq_no++;
}

void counter__add(struct counters *counters, struct counter *counter, uint16_t type, int64_t documents)
{
    if (documents != 0)
        touch_counter(counters, counter, type)->documents += (uint64_t)documents;
}

void counter__record(struct counter *counter, bool deleted)
{
    REQUIRE(counter->dirty);
    if (deleted)
        counter->deleted++;
    else
        counter->indexed++;
}

uint32_t counters__take_index(struct counters *counters)
{
    REQUIRE(counters->next_index != 0 && counters->next_index < UINT32_MAX);
    return counters->next_index++;
}

static void commit_type(struct counter *counter, uint16_t number, struct store_batch *batch, tl_ts ts)
{
    struct counter_type *type = &counter->types[number];
    REQUIRE(type->dirty && ts < TL_TS_MAX);
    struct counter_record record = {ts, counter->next_seq_no, type->documents};
    struct buf value = BUF_INIT(64);
    char key[COUNTER_KEY_BYTES];

    counter_encode(&value, &record);
    store_batch_put(batch, SPACE_CATALOG, counter_key(key, counter->index, number), buf_as_slice(&value));
    buf_deinit(&value);
    type->dirty = false;
}

uint64_t counter__documents(const struct counter *counter)
{
    uint64_t documents = 0;

    for (size_t i = 0; i < counter->type_count; i++)
        documents += counter->types[i].documents;
    return documents;
}

/* Publishes the totals to readers. */
static void publish_totals(struct counter *counter)
{
    REQUIRE(!counter->dirty); /* else readers would see what may be rolled back */
    atomic_store_explicit(&counter->shared->documents, counter__documents(counter), memory_order_relaxed);
    atomic_store_explicit(&counter->shared->next_seq_no, counter->next_seq_no, memory_order_relaxed);
}

bool counters__commit(struct counters *counters, struct store_batch *batch, tl_ts ts)
{
    REQUIRE(counters->next_index >= counters->next_index_before);
    bool any = counters->dirty_count > 0;

    for (size_t i = 0; i < counters->dirty_count; i++) {
        struct counter *counter = counters->dirty[i];
        INSIST(counter->dirty && counter->next_seq_no >= counter->next_seq_no_before);
        for (size_t j = 0; j < counter->type_count; j++)
            if (counter->types[j].dirty)
                commit_type(counter, (uint16_t)j, batch, ts);
        catalog__counters_add(counter->shared, INDEX_STAT_INDEXED, counter->indexed);
        catalog__counters_add(counter->shared, INDEX_STAT_DELETED, counter->deleted);
        counter->indexed = counter->deleted = 0;
        counter->dirty = false;
        publish_totals(counter);
    }
    counters->dirty_count = 0;
    if (counters->next_index != counters->next_index_before) {
        struct buf value = BUF_INIT(16);
        buf_varint(&value, counters->next_index);
        store_batch_put(batch, SPACE_SYSTEM, slice_from(next_index_key), buf_as_slice(&value));
        buf_deinit(&value);
        counters->next_index_before = counters->next_index;
    }
    return any;
}

void counters__rollback(struct counters *counters)
{
    REQUIRE(counters->next_index >= counters->next_index_before);
    for (size_t i = 0; i < counters->dirty_count; i++) {
        struct counter *counter = counters->dirty[i];
        INSIST(counter->dirty && counter->next_seq_no >= counter->next_seq_no_before);
        for (size_t j = 0; j < counter->type_count; j++) {
            struct counter_type *type = &counter->types[j];
            if (type->dirty)
                type->documents = type->documents_before;
            type->dirty = false;
        }
        counter->next_seq_no = counter->next_seq_no_before;
        counter->indexed = counter->deleted = 0;
        counter->dirty = false;
    }
    counters->dirty_count = 0;
    counters->next_index = counters->next_index_before;
    ENSURE(counters->next_index != 0);
}

static int open_next_index(struct counters *counters, struct store *store)
{
    struct store_value value;
    uint64_t next = 1;
    int r = store_get(store, SPACE_SYSTEM, TL_TS_MAX, slice_from(next_index_key), &value);

    if (r < 0)
        return tl_trace(r);
    if (r == 0) {
        struct slice bytes = value.bytes;
        bool sound = slice_take_varint(&bytes, &next) && next > 0 && next <= NEXT_INDEX_MAX;
        store_value_release(&value);
        if (!sound)
            return tl_trace(TL_ERR_CORRUPT);
    }
    counters->next_index = counters->next_index_before = (uint32_t)next;
    return 0;
}

struct opening {
    struct counters *counters;
    tl_ts last_ts; /* newest timestamp in a record */
};

static int open_one(void *context, struct slice key, struct slice value)
{
    struct opening *work = context;
    struct counter_record record;
    uint32_t index;
    uint16_t type;

    if (!counter_key_parse(key, &index, &type) || counter_decode(value, &record) < 0)
        return tl_trace(TL_ERR_CORRUPT);
    struct counter *counter = counters__of(work->counters, index);
    type_of(counter, type)->documents = record.documents;
    if (record.next_seq_no > counter->next_seq_no)
        counter->next_seq_no = record.next_seq_no;
    if (record.ts > work->last_ts)
        work->last_ts = record.ts;
    publish_totals(counter);
    return 0;
}

int counters__open(struct counters *counters, struct store *store, tl_ts *ret_last_ts)
{
    REQUIRE(counters->count == 0 && counters->dirty_count == 0);
    struct opening work = {counters, 0};
    int r = store_each(store, SPACE_CATALOG, TL_TS_MAX, SLICE_LIT("n"), SLICE_LIT("o"), open_one, &work);

    if (r == 0)
        r = open_next_index(counters, store);
    if (r != 0) {
        counters__deinit(counters);
        return tl_trace(r);
    }
    *ret_last_ts = work.last_ts;
    return 0;
}
