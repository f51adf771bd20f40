/* SPDX-License-Identifier: Apache-2.0 */
/* RocksDB's manifest; see rocks_manifest.h. The tags are those of its db/version_edit.h, 7.8 and 9.10. */
#include "store/rocks_manifest.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 32 << 10, HEADER_BYTES = 7, LENGTH_OFFSET = 4, TYPE_OFFSET = 6 };
enum { TYPE_FULL = 1, TYPE_FIRST, TYPE_MIDDLE, TYPE_LAST };
enum { FAMILIES_MAX = 64 };

enum tag {
    TAG_COMPARATOR = 1,
    TAG_LOG_NUMBER = 2,
    TAG_NEXT_FILE_NUMBER = 3,
    TAG_LAST_SEQUENCE = 4,
    TAG_COMPACT_CURSOR = 5,
    TAG_DELETED_FILE = 6,
    TAG_PREV_LOG_NUMBER = 9,
    TAG_MIN_LOG_NUMBER = 10,
    TAG_NEW_FILE_4 = 103,
    TAG_FAMILY = 200,
    TAG_FAMILY_ADD = 201,
    TAG_FAMILY_DROP = 202,
    TAG_FAMILY_MAX = 203,
    TAG_ATOMIC_GROUP = 300,
    TAG_IGNORABLE = 1 << 13, /* a bit of tags whose value is a length and as many bytes */
    FILE_TERMINATE = 1,      /* ends the list of a new file's further fields */
};

/* What the edits say so far. */
struct reading {
    uint64_t logs[FAMILIES_MAX]; /* by the number of the family; UINT64_MAX: there is none */
    uint64_t last_sequence;
};

static bool take_varint(struct slice *bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; bytes->len > 0 && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)bytes->data[0];
        *bytes = slice_from_offset(*bytes, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool skip_varints(struct slice *bytes, int count)
{
    uint64_t ignored;
    bool taken = true;
    for (int i = 0; taken && i < count; i++)
        taken = take_varint(bytes, &ignored);
    return taken;
}

static bool skip_string(struct slice *bytes)
{
    uint64_t len;
    if (!take_varint(bytes, &len) || len > bytes->len)
        return false;
    *bytes = slice_from_offset(*bytes, (size_t)len);
    return true;
}

/* Level, number, size; smallest and largest key; smallest and largest sequence number; further fields. */
static bool skip_new_file(struct slice *bytes)
{
    uint64_t field;
    if (!skip_varints(bytes, 3) || !skip_string(bytes) || !skip_string(bytes) || !skip_varints(bytes, 2))
        return false;
    while (take_varint(bytes, &field))
        if (field == FILE_TERMINATE)
            return true;
        else if (!skip_string(bytes))
            return false;
    return false;
}

/* Fields that mean nothing to us. */
static bool skip_field(uint64_t tag, struct slice *bytes)
{
    switch (tag) {
    case TAG_COMPARATOR:
    case TAG_FAMILY_ADD: return skip_string(bytes);
    case TAG_NEXT_FILE_NUMBER:
    case TAG_PREV_LOG_NUMBER:
    case TAG_MIN_LOG_NUMBER:
    case TAG_FAMILY_MAX:
    case TAG_ATOMIC_GROUP: return skip_varints(bytes, 1);
    case TAG_COMPACT_CURSOR: return skip_varints(bytes, 1) && skip_string(bytes);
    case TAG_DELETED_FILE: return skip_varints(bytes, 2);
    case TAG_NEW_FILE_4: return skip_new_file(bytes);
    default: return (tag & TAG_IGNORABLE) != 0 && skip_string(bytes);
    }
}

/* Returns: false for an edit that is not understood. */
static bool read_edit(struct reading *reading, struct slice bytes)
{
    uint64_t family = 0, log = 0, tag;
    bool has_log = false, added = false, dropped = false, fine = true;
    while (fine && bytes.len > 0 && (fine = take_varint(&bytes, &tag))) {
        if (tag == TAG_FAMILY)
            fine = take_varint(&bytes, &family) && family < FAMILIES_MAX;
        else if (tag == TAG_LOG_NUMBER)
            has_log = fine = take_varint(&bytes, &log);
        else if (tag == TAG_LAST_SEQUENCE)
            fine = take_varint(&bytes, &reading->last_sequence);
        else if (tag == TAG_FAMILY_DROP)
            dropped = true;
        else
            fine = skip_field(tag, &bytes);
        added |= tag == TAG_FAMILY_ADD;
    }
    if (!fine)
        return false;
    if (dropped)
        reading->logs[family] = UINT64_MAX;
    else if (has_log)
        reading->logs[family] = log;
    else if (added)
        reading->logs[family] = 0;
    return true;
}

/* Puts the edits together that blocks have cut. What is torn at the end was not finished, and counts as little as there. */
static bool read_edits(struct reading *reading, struct slice bytes)
{
    tl_cleanup(buf_deinit) struct buf edit = BUF_INIT(BUF_UNLIMITED);
    for (size_t at = 0; at + HEADER_BYTES <= bytes.len;) {
        size_t left = BLOCK_BYTES - at % BLOCK_BYTES;
        if (left < HEADER_BYTES) {
            at += left;
            continue;
        }
        const unsigned char *header = (const unsigned char *)bytes.data + at;
        size_t len = header[LENGTH_OFFSET] + ((size_t)header[LENGTH_OFFSET + 1] << 8);
        unsigned type = header[TYPE_OFFSET];
        if (type < TYPE_FULL || type > TYPE_LAST || len > left - HEADER_BYTES || at + HEADER_BYTES + len > bytes.len)
            return true;
        if (type == TYPE_FULL || type == TYPE_FIRST)
            buf_clear(&edit);
        buf_append(&edit, bytes.data + at + HEADER_BYTES, len);
        if ((type == TYPE_FULL || type == TYPE_LAST) && !read_edit(reading, buf_view(&edit)))
            return false;
        at += HEADER_BYTES + len;
    }
    return true;
}

static bool read_file(const char *directory, const char *name, struct buf *ret_bytes)
{
    char path[PATH_MAX], part[4096];
    int len = snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = len > 0 && (size_t)len < sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = -1;
    while (fd >= 0 && (got = read(fd, part, sizeof part)) > 0)
        buf_append(ret_bytes, part, (size_t)got);
    if (fd >= 0)
        close(fd);
    return got == 0;
}

struct rocks_manifest rocks_manifest_read(const char *directory)
{
    struct rocks_manifest manifest = {.known = false};
    struct reading reading = {.last_sequence = 0};
    tl_cleanup(buf_deinit) struct buf current = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf edits = BUF_INIT(BUF_UNLIMITED);
    memset(reading.logs, 0xff, sizeof reading.logs);
    if (!read_file(directory, "CURRENT", &current) || current.len < 2 || current.data[current.len - 1] != '\n')
        return manifest;
    buf_overwrite(&current, current.len - 1, "", 1);
    if (!read_file(directory, current.data, &edits) || !read_edits(&reading, buf_view(&edits)))
        return manifest;
    manifest.log_number = UINT64_MAX;
    for (size_t i = 0; i < FAMILIES_MAX; i++)
        if (reading.logs[i] < manifest.log_number)
            manifest.log_number = reading.logs[i];
    for (size_t i = 0; i < FAMILIES_MAX; i++)
        if (reading.logs[i] != UINT64_MAX && reading.logs[i] > manifest.log_number_max)
            manifest.log_number_max = reading.logs[i];
    manifest.known = manifest.log_number != UINT64_MAX;
    manifest.last_sequence = reading.last_sequence;
    return manifest;
}
