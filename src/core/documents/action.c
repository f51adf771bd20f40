/* SPDX-License-Identifier: Apache-2.0 */
/* Binary form of bulk actions; see action.h. */
#include "core/documents/action.h"

#include "base/check.h"
#include "core/documents/update.h"

enum {
    FLAG_REQUIRE_ALIAS = 1,
    FLAG_ID_GENERATED = 2,
    FLAG_UPDATE = 4,
    FLAG_SCRIPTED_UPSERT = 8,
    FLAG_DOC_AS_UPSERT = 16,
    FLAG_DETECT_NOOP = 32,
    FLAG_DIALECT_5 = 64, /* clear in records of older versions, which ran all actions as 7.10's */
};

void action_put_slice(struct buf *buf, struct slice bytes)
{
    buf_varint(buf, bytes.data == NULL ? 0 : bytes.len + 1);
    if (bytes.data != NULL)
        buf_slice(buf, bytes);
}

bool action_take_slice(struct slice *bytes, struct slice *ret_slice)
{
    uint64_t len;
    if (!slice_take_varint(bytes, &len))
        return false;
    *ret_slice = SLICE_NONE;
    return len == 0 || slice_take(bytes, (size_t)len - 1, ret_slice);
}

static void put_signed(struct buf *buf, int64_t value)
{
    buf_varint(buf, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static bool take_signed(struct slice *bytes, int64_t *ret_value)
{
    uint64_t value;
    if (!slice_take_varint(bytes, &value))
        return false;
    *ret_value = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    return true;
}

enum { ITEM_SLICES = 6, UPDATE_SLICES = 7 };

/* The slices of an item, in stored order. */
static void item_slices(struct write_item *item, struct slice **ret_slices)
{
    struct slice *all[ITEM_SLICES] = {&item->index,   &item->type,   &item->id,
                                      &item->routing, &item->source, &item->lease};
    memcpy(ret_slices, all, sizeof all);
}

static void update_slices(struct write_update *update, struct slice **ret_slices)
{
    struct slice *all[UPDATE_SLICES] = {&update->doc,          &update->upsert,      &update->script_source,
                                        &update->script_id,    &update->script_file, &update->script_lang,
                                        &update->script_params};
    memcpy(ret_slices, all, sizeof all);
}

static unsigned flags_of(const struct write_item *item)
{
    unsigned flags = (item->require_alias ? FLAG_REQUIRE_ALIAS : 0u) | (item->id_generated ? FLAG_ID_GENERATED : 0u) |
                     (item->dialect == DIALECT_5 ? FLAG_DIALECT_5 : 0u);
    if (item->update == NULL)
        return flags;
    return flags | FLAG_UPDATE | (item->update->scripted_upsert ? FLAG_SCRIPTED_UPSERT : 0u) |
           (item->update->doc_as_upsert ? FLAG_DOC_AS_UPSERT : 0u) |
           (item->update->detect_noop ? FLAG_DETECT_NOOP : 0u);
}

static void encode_action(struct buf *buf, const struct write_item *item)
{
    REQUIRE(item->op < WRITE_OP_COUNT && item->version_type < VERSION_TYPE_COUNT); /* as read back */
    struct write_item copy = *item;
    struct slice *slices[ITEM_SLICES];
    buf_byte(buf, (char)item->op);
    buf_byte(buf, (char)item->version_type);
    buf_byte(buf, (char)flags_of(item));
    put_signed(buf, item->version);
    put_signed(buf, item->if_seq_no);
    put_signed(buf, item->if_primary_term);
    item_slices(&copy, slices);
    for (size_t i = 0; i < ITEM_SLICES; i++)
        action_put_slice(buf, *slices[i]);
    if (item->update == NULL)
        return;
    struct write_update update = *item->update;
    struct slice *texts[UPDATE_SLICES];
    update_slices(&update, texts);
    for (size_t i = 0; i < UPDATE_SLICES; i++)
        action_put_slice(buf, *texts[i]);
}

void action_encode_all(struct buf *buf, const struct write_item *items, size_t count)
{
    buf_varint(buf, count);
    for (size_t i = 0; i < count; i++)
        encode_action(buf, &items[i]);
}

static bool decode_update(struct slice *bytes, unsigned flags, struct arena *arena, struct write_item *item)
{
    struct write_update *update = arena_zalloc(arena, sizeof *update);
    struct slice *texts[UPDATE_SLICES];
    update->scripted_upsert = (flags & FLAG_SCRIPTED_UPSERT) != 0;
    update->doc_as_upsert = (flags & FLAG_DOC_AS_UPSERT) != 0;
    update->detect_noop = (flags & FLAG_DETECT_NOOP) != 0;
    update_slices(update, texts);
    for (size_t i = 0; i < UPDATE_SLICES; i++)
        if (!action_take_slice(bytes, texts[i]))
            return false;
    item->update = update;
    return true;
}

static bool decode_item(struct slice *bytes, struct arena *arena, struct write_item *item)
{
    struct slice head;
    struct slice *slices[ITEM_SLICES];
    if (!slice_take(bytes, 3, &head))
        return false;
    unsigned flags = (unsigned char)head.data[2];
    *item = (struct write_item){.op = (enum write_op)head.data[0], .version_type = (enum version_type)head.data[1]};
    item->dialect = (flags & FLAG_DIALECT_5) != 0 ? DIALECT_5 : DIALECT_7;
    item->require_alias = (flags & FLAG_REQUIRE_ALIAS) != 0;
    item->id_generated = (flags & FLAG_ID_GENERATED) != 0;
    if ((unsigned char)head.data[0] >= WRITE_OP_COUNT || (unsigned char)head.data[1] >= VERSION_TYPE_COUNT ||
        !take_signed(bytes, &item->version) || !take_signed(bytes, &item->if_seq_no) ||
        !take_signed(bytes, &item->if_primary_term))
        return false;
    item_slices(item, slices);
    for (size_t i = 0; i < ITEM_SLICES; i++)
        if (!action_take_slice(bytes, slices[i]))
            return false;
    return (flags & FLAG_UPDATE) == 0 || decode_update(bytes, flags, arena, item);
}

int action_decode_all(struct slice bytes, struct arena *arena, struct write_item **ret_items, size_t *ret_count)
{
    uint64_t count;
    if (!slice_take_varint(&bytes, &count) || count > bytes.len)
        return tl_trace(TL_ERR_CORRUPT);
    struct write_item *items = arena_zalloc(arena, ((size_t)count + 1) * sizeof *items);
    for (uint64_t i = 0; i < count; i++)
        if (!decode_item(&bytes, arena, &items[i]))
            return tl_trace(TL_ERR_CORRUPT);
    if (bytes.len > 0)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_items = items;
    *ret_count = (size_t)count;
    return 0;
}

bool action_all_valid(struct slice bytes, size_t exactly)
{
    struct arena arena = ARENA_INIT;
    struct write_item *items;
    size_t count;
    bool sound = action_decode_all(bytes, &arena, &items, &count) == 0 && (exactly == SIZE_MAX || count == exactly);

    arena_deinit(&arena);
    return sound;
}
