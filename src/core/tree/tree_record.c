/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of the table of nodes; see tree_record.h. */
#include "core/tree/tree_record.h"

enum { LETTER_NAME = 'c', LETTER_NODE = 'n', LETTER_NEWEST = 'r', NAME_PREFIX_BYTES = 13 };
enum { NODE_BORN_HERE = 1, NODE_BORN_ELSEWHERE = 2, NODE_FLAGS = 3 };

static void begin(struct buf *buf, uint32_t index, char letter)
{
    buf_clear(buf);
    buf_u32be(buf, index);
    buf_byte(buf, letter);
}

struct slice tree_name_key(struct buf *buf, uint32_t index, uint64_t parent, struct slice name)
{
    begin(buf, index, LETTER_NAME);
    buf_u64be(buf, parent);
    buf_slice(buf, name);
    return buf_view(buf);
}

struct slice tree_names_end(struct buf *buf, uint32_t index, uint64_t parent)
{
    begin(buf, index, LETTER_NAME);
    buf_u64be(buf, parent + 1);
    return buf_view(buf);
}

struct slice tree_key_name(struct slice key)
{
    return slice_from_offset(key, NAME_PREFIX_BYTES);
}

struct slice tree_node_key(struct buf *buf, uint32_t index, uint64_t node)
{
    begin(buf, index, LETTER_NODE);
    buf_u64be(buf, node);
    return buf_view(buf);
}

struct slice tree_newest_key(struct buf *buf, uint32_t index)
{
    begin(buf, index, LETTER_NEWEST);
    return buf_view(buf);
}

void tree_name_encode(struct buf *buf, const struct tree_name *name)
{
    buf_varint(buf, name->here);
    buf_varint(buf, name->born);
}

int tree_name_decode(struct slice value, struct tree_name *ret_name)
{
    struct tree_name name;

    if (!slice_take_varint(&value, &name.here) || !slice_take_varint(&value, &name.born) || value.len != 0)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_name = name;
    return 0;
}

/* Small numbers of either sign take few bytes. */
static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ ((value & 1) != 0 ? UINT64_MAX : 0));
}

void tree_node_encode(struct buf *buf, const struct tree_node *node)
{
    bool here = node->has_born && node->born_parent == node->parent && slice_equal(node->born_name, node->name);
    bool elsewhere = node->has_born && !here;

    buf_u64be(buf, node->ts);
    buf_byte(buf, (char)(here ? NODE_BORN_HERE : elsewhere ? NODE_BORN_ELSEWHERE : 0));
    buf_varint(buf, node->parent);
    buf_varint(buf, zigzag(node->renames));
    buf_varint(buf, (uint64_t)(node->seq_no + 1));
    if (elsewhere) {
        buf_varint(buf, node->born_parent);
        buf_varint(buf, node->born_name.len);
        buf_slice(buf, node->born_name);
    }
    buf_slice(buf, node->name);
}

static bool take_born(struct slice *value, struct tree_node *node)
{
    uint64_t len;

    return slice_take_varint(value, &node->born_parent) && slice_take_varint(value, &len) &&
           slice_take(value, (size_t)len, &node->born_name);
}

int tree_node_decode(struct slice value, struct tree_node *ret_node)
{
    struct tree_node node = {0};
    struct slice flag_byte;
    uint64_t renames, seq_no;

    if (!slice_take_u64be(&value, &node.ts) || !slice_take(&value, 1, &flag_byte) ||
        !slice_take_varint(&value, &node.parent) || !slice_take_varint(&value, &renames) ||
        !slice_take_varint(&value, &seq_no))
        return tl_trace(TL_ERR_CORRUPT);
    unsigned flags = (unsigned char)flag_byte.data[0];
    if (flags >= NODE_FLAGS || (flags == NODE_BORN_ELSEWHERE && !take_born(&value, &node)))
        return tl_trace(TL_ERR_CORRUPT);
    node.renames = unzigzag(renames);
    node.seq_no = (int64_t)seq_no - 1;
    node.name = value;
    node.has_born = flags != 0;
    if (flags == NODE_BORN_HERE) {
        node.born_parent = node.parent;
        node.born_name = node.name;
    }
    *ret_node = node;
    return 0;
}

bool tree_record_is_open(struct slice key, struct slice value)
{
    uint64_t ts;

    return key.len > sizeof(uint32_t) && key.data[sizeof(uint32_t)] != LETTER_NAME && slice_take_u64be(&value, &ts) &&
           ts == TREE_TS_OPEN;
}
