/* SPDX-License-Identifier: Apache-2.0 */
/* Reading records; see cmdlog_file_internal.h. */
#include "base/check.h"
#include "cmdlog/cmdlog_file_internal.h"

enum { WINDOW_BYTES = 256 << 10 };

int cmdlog_reader_open(struct cmdlog_reader *reader, const struct cmdlog_file *log,
                       const struct cmdlog_segment *segment, uint64_t offset, uint32_t prev_crc)
{
    REQUIRE(offset >= SEGMENT_HEADER_BYTES && offset % RECORD_ALIGN == 0);
    REQUIRE(offset <= log->segment_bytes); /* the segment's end: there is nothing to read */
    char name[CMDLOG_FILE_NAME_BYTES];
    char *window = reader->window;
    size_t window_capacity = reader->window_capacity;
    *reader = (struct cmdlog_reader){
        .disk = log->disk,
        .file = -1,
        .seed = segment->seed,
        .segment_bytes = log->segment_bytes,
        .offset = offset,
        .prev_crc = prev_crc,
        .window = window,
        .window_capacity = window_capacity,
    };
    cmdlog_segment_name(segment->number, name);
    return log->disk->functions->open(log->disk, name, false, &reader->file);
}

void cmdlog_reader_close(struct cmdlog_reader *reader)
{
    if (reader->disk != NULL && reader->file >= 0)
        reader->disk->functions->close(reader->disk, reader->file);
    reader->file = -1;
    mem_free(reader->window);
    reader->window = NULL;
    reader->window_capacity = 0;
}

/* Refills the window from the reader's offset on, with `len` bytes or more if there are so many. */
static int fill_window(struct cmdlog_reader *reader, uint64_t len)
{
    INSIST(reader->offset < reader->segment_bytes);
    size_t want = len > WINDOW_BYTES ? (size_t)len : WINDOW_BYTES;
    if (want > reader->segment_bytes - reader->offset)
        want = (size_t)(reader->segment_bytes - reader->offset);
    if (want > reader->window_capacity) {
        mem_free(reader->window);
        reader->window = mem_alloc(want);
        reader->window_capacity = want;
    }
    reader->window_offset = reader->offset;
    int r = reader->disk->functions->read(reader->disk, reader->file, reader->offset, reader->window, want,
                                          &reader->window_len);
    if (r < 0)
        reader->window_len = 0;
    return r < 0 ? tl_trace(r) : 0;
}

/* Returns: the bytes of the window from the reader's offset on. */
static struct slice in_window(const struct cmdlog_reader *reader)
{
    uint64_t skipped = reader->offset - reader->window_offset;
    if (reader->offset < reader->window_offset || skipped >= reader->window_len)
        return SLICE_NONE;
    return slice_make(reader->window + skipped, reader->window_len - (size_t)skipped);
}

/*
 * Returns: whether the window has a whole, intact record at the offset. *ret_want: the bytes that
 * the window needs to decide.
 */
static bool find_in_window(const struct cmdlog_reader *reader, struct record *ret_record, struct slice *ret_bytes,
                           uint64_t *ret_want)
{
    struct slice bytes = in_window(reader);
    *ret_bytes = bytes;
    *ret_want = RECORD_HEADER_BYTES;
    if (bytes.len < RECORD_HEADER_BYTES || !record_decode(reader->seed, bytes.data, ret_record))
        return false;
    uint64_t whole = record_bytes(ret_record->len);
    if (whole > reader->segment_bytes - reader->offset)
        return false;
    *ret_want = whole;
    return bytes.len >= whole && record_is_intact(reader->seed, bytes.data, ret_record);
}

static bool at_end(const struct cmdlog_reader *reader)
{
    return reader->offset + RECORD_SPACE_MIN > reader->segment_bytes;
}

/*
 * Finds the record at the offset. Refills the window if it is too short or older than the record.
 */
static int load_record(struct cmdlog_reader *reader, struct record *ret_record, struct slice *ret_bytes)
{
    uint64_t want;
    if (find_in_window(reader, ret_record, ret_bytes, &want))
        return 0;
    for (int tries = 0; tries < 2; tries++) {
        int r = fill_window(reader, want);
        if (r < 0)
            return tl_trace(r);
        uint64_t wanted = want;
        if (find_in_window(reader, ret_record, ret_bytes, &want))
            return 0;
        if (want <= wanted || want <= reader->window_len)
            break;
    }
    return READER_INVALID;
}

int cmdlog_reader_next(struct cmdlog_reader *reader, struct record *ret_record, struct slice *ret_payload)
{
    REQUIRE(reader->offset % RECORD_ALIGN == 0);
    struct slice bytes;
    if (at_end(reader))
        return READER_END;
    int r = load_record(reader, ret_record, &bytes);
    if (r != 0)
        return r < 0 ? tl_trace(r) : r;
    if (ret_record->prev_crc != reader->prev_crc)
        return READER_INVALID;
    *ret_payload = slice_make(bytes.data + RECORD_HEADER_BYTES, ret_record->len);
    reader->offset += record_bytes(ret_record->len);
    reader->prev_crc = ret_record->crc;
    ENSURE(reader->offset <= reader->segment_bytes);
    return 0;
}

/* Returns: how many bytes to skip because zeros at the offset of `kind` rule out a record. */
static size_t zero_prefix(struct slice bytes)
{
    enum { KIND_WITHIN = 24 }; /* offset of `kind` in a header, rounded up to RECORD_ALIGN */
    size_t zeros = 0;
    uint64_t word = 0;
    while (word == 0 && zeros + sizeof word <= bytes.len) {
        memcpy(&word, bytes.data + zeros, sizeof word);
        zeros += word == 0 ? sizeof word : 0;
    }
    return zeros < KIND_WITHIN ? 0 : zeros - KIND_WITHIN + RECORD_ALIGN;
}

int cmdlog_reader_search(struct cmdlog_reader *reader, struct record *ret_record)
{
    REQUIRE(reader->offset % RECORD_ALIGN == 0);
    struct slice bytes = in_window(reader);
    uint64_t want;
    if (at_end(reader))
        return READER_END;
    size_t skipped = zero_prefix(bytes); /* the unused rest of a segment */
    if (skipped > 0) {
        reader->offset += skipped;
        return READER_INVALID;
    }
    /* Usually the bytes are no header at all, which is decided without refilling the window. */
    bool decoded = bytes.len >= RECORD_HEADER_BYTES;
    if (decoded && !record_decode(reader->seed, bytes.data, ret_record)) {
        reader->offset += RECORD_ALIGN;
        return READER_INVALID;
    }
    int r = find_in_window(reader, ret_record, &bytes, &want) ? 0
            : decoded && bytes.len >= want                    ? READER_INVALID
                                                              : load_record(reader, ret_record, &bytes);
    if (r < 0)
        return tl_trace(r);
    reader->offset += r == 0 ? record_bytes(ret_record->len) : RECORD_ALIGN;
    return r;
}
