/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Document records. README.md, "Document record":
 *
 *     ts (u64be) · flags (1) · version (varint) · seq_no (varint) · [batch (varint)] ·
 *     [single fields] · [routing] · [lease] · [path] · source
 *
 * Single fields, routing and lease are a length (varint) and their bytes. Path is, as varints: the
 * offset of the path in the source, its length there, the rename base, and the length of the
 * origin, whose bytes follow; length 0: the origin equals the bytes in the source. The timestamp is
 * first, at a fixed offset, so that a commit can overwrite it.
 */
#include "core/documents/doc.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "core/documents/session_tombstone.h"

enum {
    DOC_DELETED = 1,
    DOC_BATCH = 2,
    DOC_ROUTING = 4,
    DOC_LEASE = 8,
    DOC_SINGLE_FIELDS = 16,
    DOC_PATH_TRACKED = 32,
    DOC_FLAGS = 63
};

struct slice doc_key(char *bytes, uint32_t index, uint16_t type, struct slice id)
{
    big_endian_put_u32(bytes, index);
    bytes[4] = (char)(type >> 8);
    bytes[5] = (char)type;
    memcpy(bytes + DOC_KEY_PREFIX_BYTES, id.data, id.len);
    return slice_make(bytes, DOC_KEY_PREFIX_BYTES + id.len);
}

bool doc_key_parse(struct slice key, uint32_t *ret_index, uint16_t *ret_type, struct slice *ret_id)
{
    const unsigned char *bytes = (const unsigned char *)key.data;

    if (key.len < DOC_KEY_PREFIX_BYTES || key.len > DOC_KEY_BYTES_MAX)
        return false;
    *ret_index = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    *ret_type = (uint16_t)(bytes[4] << 8 | bytes[5]);
    *ret_id = slice_from_offset(key, DOC_KEY_PREFIX_BYTES);
    return true;
}

static void encode_text(struct buf *buf, struct slice text)
{
    if (text.data == NULL)
        return;
    buf_varint(buf, text.len);
    buf_slice(buf, text);
}

static void encode_path_info(struct buf *buf, const struct doc *doc)
{
    REQUIRE(!doc->deleted && doc->origin.len > 0 && doc->path_offset <= doc->source.len);
    REQUIRE(doc->path_len <= doc->source.len - doc->path_offset);
    bool as_written = slice_equal(doc->origin, slice_make(doc->source.data + doc->path_offset, doc->path_len));

    buf_varint(buf, doc->path_offset);
    buf_varint(buf, doc->path_len);
    buf_varint(buf, (uint64_t)doc->rename_base);
    buf_varint(buf, as_written ? 0 : doc->origin.len);
    if (!as_written)
        buf_slice(buf, doc->origin);
}

void doc_encode_head(struct buf *buf, const struct doc *doc)
{
    unsigned flags = (doc->deleted ? DOC_DELETED : 0u) | (doc->batch != 0 ? DOC_BATCH : 0u) |
                     (doc->routing.data != NULL ? DOC_ROUTING : 0u) | (doc->lease.data != NULL ? DOC_LEASE : 0u) |
                     (doc->single_fields.len != 0 ? DOC_SINGLE_FIELDS : 0u) |
                     (doc->path_tracked ? DOC_PATH_TRACKED : 0u);

    REQUIRE(doc->version >= 0 && doc->seq_no >= 0 && doc->single_fields.len % 2 == 0); /* as read back */
    REQUIRE(doc->single_fields.len == 0 || doc->batch != 0);
    buf_u64be(buf, doc->ts);
    buf_byte(buf, (char)flags);
    buf_varint(buf, (uint64_t)doc->version);
    buf_varint(buf, (uint64_t)doc->seq_no);
    if (doc->batch != 0)
        buf_varint(buf, doc->batch);
    if (doc->single_fields.len != 0)
        encode_text(buf, doc->single_fields);
    encode_text(buf, doc->routing);
    encode_text(buf, doc->lease);
    if (doc->path_tracked)
        encode_path_info(buf, doc);
}

void doc_encode(struct buf *buf, const struct doc *doc)
{
    doc_encode_head(buf, doc);
    if (!doc->deleted)
        buf_slice(buf, doc->source);
}

static bool decode_text(struct slice *rest, bool present, struct slice *ret_text)
{
    uint64_t len;

    *ret_text = SLICE_NONE;
    return !present || (slice_take_varint(rest, &len) && slice_take(rest, (size_t)len, ret_text));
}

static bool decode_path_info(struct slice *rest, bool present, struct doc *doc)
{
    uint64_t at, len, rename_base, origin_len;

    if (!present)
        return true;
    if (!slice_take_varint(rest, &at) || !slice_take_varint(rest, &len) || !slice_take_varint(rest, &rename_base) ||
        !slice_take_varint(rest, &origin_len) || !slice_take(rest, (size_t)origin_len, &doc->origin) ||
        at > rest->len || len > rest->len - at || (origin_len == 0 && len == 0) || doc->deleted)
        return false;
    doc->path_tracked = true;
    doc->path_offset = (size_t)at;
    doc->path_len = (size_t)len;
    doc->rename_base = (int64_t)rename_base;
    if (origin_len == 0)
        doc->origin = slice_make(rest->data + at, (size_t)len);
    return true;
}

int doc_decode(struct slice record, struct doc *ret_doc)
{
    struct slice rest = record, flag_byte;
    struct doc doc = {0};
    uint64_t version, seq_no;

    if (!slice_take_u64be(&rest, &doc.ts) || !slice_take(&rest, 1, &flag_byte) || !slice_take_varint(&rest, &version) ||
        !slice_take_varint(&rest, &seq_no))
        return tl_trace(TL_ERR_CORRUPT);
    unsigned flags = (unsigned char)flag_byte.data[0];
    doc.deleted = (flags & DOC_DELETED) != 0;
    if ((flags & ~(unsigned)DOC_FLAGS) != 0 || ((flags & DOC_BATCH) != 0 && !slice_take_varint(&rest, &doc.batch)) ||
        !decode_text(&rest, (flags & DOC_SINGLE_FIELDS) != 0, &doc.single_fields) || doc.single_fields.len % 2 != 0 ||
        !decode_text(&rest, (flags & DOC_ROUTING) != 0, &doc.routing) ||
        !decode_text(&rest, (flags & DOC_LEASE) != 0, &doc.lease) ||
        !decode_path_info(&rest, (flags & DOC_PATH_TRACKED) != 0, &doc))
        return tl_trace(TL_ERR_CORRUPT);
    doc.version = (int64_t)version;
    doc.seq_no = doc.stored_seq_no = (int64_t)seq_no;
    doc.source = doc.stored = rest;
    *ret_doc = doc;
    return 0;
}

bool doc_has_single_entries(const struct doc *doc, uint16_t field)
{
    for (size_t i = 0; i + 1 < doc->single_fields.len; i += 2)
        if ((uint16_t)((unsigned char)doc->single_fields.data[i] << 8 |
                       (unsigned char)doc->single_fields.data[i + 1]) == field)
            return true;
    return false;
}

uint64_t doc_path_levels(const struct doc *doc, char delimiter)
{
    struct slice path = doc->path_tracked ? doc->origin : SLICE_NONE;
    uint64_t levels = 0;

    for (size_t next = 0; next < path.len; next += slice_find_byte(slice_from_offset(path, next), delimiter) + 1)
        levels++;
    return levels;
}

static int read_record(const struct view *view, struct slice key, struct doc *ret_doc)
{
    struct store_value value;
    int r = view_get(view, SPACE_DOCUMENTS, key, &value);

    if (r != 0)
        return r == STORE_NOT_FOUND ? DOC_NOT_FOUND : r == STORE_TOO_OLD ? DOC_TOO_OLD : r;
    r = doc_decode(value.bytes, ret_doc);
    if (r < 0) {
        store_value_release(&value);
        return tl_trace(r);
    }
    ret_doc->value = value;
    return 0;
}

/* Turns a tombstone, or a document that a session tombstone hides, into DOC_NOT_FOUND. */
static int live_only(const struct view *view, struct slice key, int r, struct doc *doc)
{
    if (r != 0)
        return r;
    r = doc->deleted ? DOC_NOT_FOUND : session_tombstone_hides(view, key, doc);
    if (r == 0)
        return 0;
    doc_release(doc);
    return r == 1 ? DOC_NOT_FOUND : r;
}

/* Applies renames to the document that was read with result `r`. Returns: as doc_get_any(). */
static int apply_renames(const struct view *view, uint32_t index, int r, struct doc *doc)
{
    if (r != 0 || !doc->path_tracked)
        return r;
    r = doc_apply_renames(view, NULL, index, doc);
    if (r != 0)
        doc_release(doc);
    return r;
}

int doc_get_stored(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct doc *ret_doc)
{
    char bytes[DOC_KEY_BYTES_MAX];

    if (id.len > DOC_ID_BYTES_MAX)
        return DOC_NOT_FOUND;
    return read_record(view, doc_key(bytes, index, type, id), ret_doc);
}

int doc_get_any(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct doc *ret_doc)
{
    return apply_renames(view, index, doc_get_stored(view, index, type, id, ret_doc), ret_doc);
}

int doc_get(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct doc *ret_doc)
{
    char bytes[DOC_KEY_BYTES_MAX];

    if (id.len > DOC_ID_BYTES_MAX)
        return DOC_NOT_FOUND;
    struct slice key = doc_key(bytes, index, type, id);
    return apply_renames(view, index, live_only(view, key, read_record(view, key, ret_doc), ret_doc), ret_doc);
}

/* Encodes the full key into `bytes`. Returns: the key; data NULL: longer than any document's. */
static struct slice full_key(char *bytes, uint32_t index, struct slice document_key)
{
    if (document_key.len + sizeof(index) > DOC_KEY_BYTES_MAX)
        return SLICE_NONE;
    big_endian_put_u32(bytes, index);
    memcpy(bytes + sizeof(index), document_key.data, document_key.len);
    return slice_make(bytes, sizeof(index) + document_key.len);
}

int doc_get_key_any(const struct view *view, uint32_t index, struct slice document_key, struct doc *ret_doc)
{
    char bytes[DOC_KEY_BYTES_MAX];
    struct slice key = full_key(bytes, index, document_key);

    return key.data == NULL ? DOC_NOT_FOUND : apply_renames(view, index, read_record(view, key, ret_doc), ret_doc);
}

int doc_get_key(const struct view *view, uint32_t index, struct slice document_key, struct doc *ret_doc)
{
    char bytes[DOC_KEY_BYTES_MAX];

    struct slice key = full_key(bytes, index, document_key);

    if (key.data == NULL)
        return DOC_NOT_FOUND;
    return apply_renames(view, index, live_only(view, key, read_record(view, key, ret_doc), ret_doc), ret_doc);
}

void doc_release(struct doc *doc)
{
    store_value_release(&doc->value);
    *doc = (struct doc){0};
}
