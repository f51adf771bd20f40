/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the file log; README.md, "Opening".
 *
 * - List the files; read the checkpoints and the known durable position.
 * - Scan the records for the end of the log; rewrite those that nothing proves durable.
 * - Search after the end for evidence that later entries were durable: if there is some, the log is
 *   damaged.
 * - Otherwise truncate: zeros after the end, later segments removed, everything synced.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/little_endian.h"
#include "cmdlog/cmdlog_file_internal.h"

struct recovery {
    struct cmdlog_file *log;
    char **ret_reason;
    struct cmdlog_address end;
    cmdlog_position position; /* of the next entry */
    uint32_t entry_crc;       /* checksum of the last record of the entry before it; 0: not read */
    bool sealed;
    /* Whether the scan is inside an entry, and where that entry starts. */
    bool in_entry;
    struct cmdlog_address entry_start;
    cmdlog_position evidence; /* the newest position that is proven to have been durable */
    /* Contiguous records of the scanned segment to be rewritten, and the offset of the first. */
    struct buf rewrite;
    uint64_t rewrite_offset;
};

enum { REWRITE_BYTES = 256 << 10 };

static int refuse_log(struct recovery *recovery, int code, const char *format, ...) TL_PRINTF(3, 4);

static int refuse_log(struct recovery *recovery, int code, const char *format, ...)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    char line[512];
    va_list arguments;
    size_t len;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    buf_printf(&text, "the log of commands: %s", line);
    buf_byte(&text, '\0');
    *recovery->ret_reason = buf_detach(&text, &len);
    return tl_trace(code);
}

/* --- Segments ----------------------------------------------------------------------------------------------------- */

static bool parse_name(const char *name, const char *before, const char *after, uint64_t *ret_number)
{
    char *end;
    size_t len = strlen(before);
    if (strncmp(name, before, len) != 0 || strlen(name) != len + 16 + strlen(after))
        return false;
    *ret_number = strtoull(name + len, &end, 16);
    return strcmp(end, after) == 0 && *ret_number > 0;
}

static void visit_name(void *context, const char *name)
{
    struct cmdlog_file *log = context;
    uint64_t number;
    if (parse_name(name, "", ".segment", &number)) {
        *cmdlog_file_add_segment(log) = (struct cmdlog_segment){.number = number, .file = -1};
    } else if (parse_name(name, "spare-", "", &number)) {
        if (log->spare_count < CMDLOG_SPARES_MAX)
            log->spare_numbers[log->spare_count++] = number;
        if (number >= log->spare_next)
            log->spare_next = number + 1;
    }
}

static int by_number(const void *a, const void *b)
{
    const struct cmdlog_segment *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

/* Reads a segment's header. Returns: 0; 1: missing, or not intact; fatal codes. */
static int read_header(struct cmdlog_file *log, uint64_t number, struct segment_header *ret_header)
{
    struct cmdlog_disk *disk = log->disk;
    char name[CMDLOG_FILE_NAME_BYTES], bytes[SEGMENT_HEADER_BYTES];
    size_t len = 0;
    int file;
    cmdlog_segment_name(number, name);
    int r = disk->functions->open(disk, name, false, &file);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 1;
    r = disk->functions->read(disk, file, 0, bytes, sizeof bytes, &len);
    disk->functions->close(disk, file);
    if (r < 0)
        return tl_trace(r);
    return len == sizeof bytes && segment_header_decode(bytes, ret_header) && ret_header->number == number ? 0 : 1;
}

/* Takes the log's identity and segment size from the oldest segment. */
static int read_oldest(struct recovery *recovery)
{
    struct cmdlog_file *log = recovery->log;
    REQUIRE(log->segment_count > 0);
    struct segment_header header;
    int r = read_header(log, log->segments[0].number, &header);
    if (r < 0)
        return tl_trace(r);
    if (r > 0)
        return refuse_log(recovery, TL_ERR_CORRUPT, "the header of segment %016" PRIx64 ", the oldest, is damaged",
                          log->segments[0].number);
    memcpy(log->identity, header.identity, sizeof log->identity);
    log->segment_bytes = header.bytes;
    return 0;
}

static bool belongs_to_log(const struct cmdlog_file *log, const struct segment_header *header)
{
    return header->bytes == log->segment_bytes && memcmp(header->identity, log->identity, sizeof log->identity) == 0;
}

/*
 * Fills in the segments' fields from their headers. A header was durable before its segment had its
 * name (invariant 1), so an unreadable one is damage. *ret_following: the number of consecutive
 * segments; unsynced names may have left a gap.
 */
static int read_headers(struct recovery *recovery, size_t *ret_following)
{
    struct cmdlog_file *log = recovery->log;
    *ret_following = 0;
    for (size_t i = 0; i < log->segment_count; i++) {
        struct cmdlog_segment *segment = &log->segments[i];
        struct segment_header header;
        int r = read_header(log, segment->number, &header);
        if (r < 0)
            return tl_trace(r);
        if (r > 0 || !belongs_to_log(log, &header))
            return refuse_log(recovery, TL_ERR_CORRUPT,
                              "the header of segment %016" PRIx64 " is damaged, or another log's", segment->number);
        segment->position = header.position;
        segment->prev_crc = header.prev_crc;
        segment->continued = header.continued;
        segment->seed = segment_seed(log->identity, segment->number, header.salt);
        if (segment->number == log->segments[0].number + i)
            *ret_following = i + 1;
    }
    ENSURE(*ret_following > 0); /* the oldest segment follows itself */
    return 0;
}

/* --- Durable position --------------------------------------------------------------------------------------------- */

/* Fields: 0 checksum, 8 position, 16 identity. Returns: the position; 0: the slot is damaged. */
static cmdlog_position read_slot(const struct cmdlog_file *log, const char *bytes)
{
    uint32_t seed = segment_seed(log->identity, 0, 0);
    struct record as_record = {.crc = little_endian_get_u32(bytes), .len = 0};
    return record_is_intact(seed, bytes, &as_record) ? little_endian_get_u64(bytes + 8) : 0;
}

static int read_durable(struct recovery *recovery)
{
    struct cmdlog_file *log = recovery->log;
    char slots[2][RECORD_HEADER_BYTES] = {{0}};
    for (unsigned i = 0; i < 2 && log->durable_file >= 0; i++) {
        size_t len;
        int r = log->disk->functions->read(log->disk, log->durable_file, (uint64_t)i * SEGMENT_HEADER_BYTES, slots[i],
                                           sizeof slots[i], &len);
        if (r < 0)
            return tl_trace(r);
        cmdlog_position slot_position = len == sizeof slots[i] ? read_slot(log, slots[i]) : 0;
        if (slot_position > recovery->evidence)
            recovery->evidence = slot_position;
    }
    if (log->checkpoints[0].position > recovery->evidence)
        recovery->evidence = log->checkpoints[0].position;
    return 0;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

/* Advances past one record. Returns: false: it is not the expected record. */
static bool accept_record(struct recovery *recovery, const struct record *record, const struct cmdlog_address *at)
{
    bool begins = record->kind == RECORD_WHOLE || record->kind == RECORD_FIRST || record->kind == RECORD_SEAL;
    if (record->position != recovery->position || begins == recovery->in_entry)
        return false;
    recovery->sealed = record->kind == RECORD_SEAL;
    if (record->kind == RECORD_FIRST) {
        recovery->in_entry = true;
        recovery->entry_start = *at;
    }
    if (record->kind == RECORD_LAST)
        recovery->in_entry = false;
    if (record->kind == RECORD_WHOLE || record->kind == RECORD_LAST) {
        recovery->position++;
        recovery->entry_crc = record->crc;
    }
    if (record->durable > recovery->evidence)
        recovery->evidence = record->durable;
    return true;
}

static int flush_rewrite(struct recovery *recovery, const struct cmdlog_reader *reader)
{
    struct slice part = buf_as_slice(&recovery->rewrite);
    int r = part.len == 0
                ? 0
                : reader->disk->functions->write(reader->disk, reader->file, recovery->rewrite_offset, &part, 1);
    buf_clear(&recovery->rewrite);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Collects a record to be rewritten, since it may be in the page cache only, where no sync would
 * write it (README.md, "Opening", 4). The bytes are those that were checked: read again, they might
 * be the disk's.
 */
static int rewrite_record(struct recovery *recovery, const struct cmdlog_reader *reader, uint64_t offset,
                          struct slice record)
{
    REQUIRE(!recovery->log->read_only && record.len % RECORD_ALIGN == 0);
    int r = 0;
    if (recovery->rewrite.len >= REWRITE_BYTES || recovery->rewrite_offset + recovery->rewrite.len != offset)
        r = flush_rewrite(recovery, reader);
    if (recovery->rewrite.len == 0)
        recovery->rewrite_offset = offset;
    INSIST(r < 0 || recovery->rewrite_offset + recovery->rewrite.len == offset);
    buf_slice(&recovery->rewrite, record);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Scans the records of one segment. Returns: 0: it is full, the scan continues; 1: the log ends in
 * it; fatal codes.
 */
static int scan_segment(struct recovery *recovery, struct cmdlog_reader *reader, size_t i)
{
    struct cmdlog_file *log = recovery->log;
    struct record record;
    struct slice payload;
    int r = cmdlog_reader_open(reader, log, &log->segments[i], SEGMENT_HEADER_BYTES, recovery->end.prev_crc);
    if (r != 0)
        return tl_trace(r < 0 ? r : TL_ERR_IO);
    for (;;) {
        struct cmdlog_address at = {i, reader->offset, reader->prev_crc};
        recovery->end = at;
        r = cmdlog_reader_next(reader, &record, &payload);
        if (r != 0 || !accept_record(recovery, &record, &at))
            break;
        if (log->read_only || record.position <= recovery->evidence)
            continue;
        struct slice whole = slice_make(payload.data - RECORD_HEADER_BYTES, (size_t)record_bytes(record.len));
        if ((r = rewrite_record(recovery, reader, at.offset, whole)) < 0)
            break;
    }
    int written = flush_rewrite(recovery, reader);
    reader->disk->functions->close(reader->disk, reader->file);
    reader->file = -1;
    r = r >= 0 && written < 0 ? written : r;
    return r < 0 ? tl_trace(r) : r == READER_END ? 0 : 1;
}

/* Returns: the index of the last segment that starts at or before the newest checkpoint. */
static size_t scan_start(const struct cmdlog_file *log, size_t sound)
{
    REQUIRE(sound > 0 && sound <= log->segment_count);
    size_t first = 0;
    for (size_t i = 1; i < sound; i++)
        if (!log->segments[i].continued && log->segments[i].position <= log->checkpoints[0].position)
            first = i;
    return first;
}

/* Finds the end of the log. If it was trimmed inside an entry, the rest of that is skipped. */
static int scan_log(struct recovery *recovery, size_t sound)
{
    struct cmdlog_file *log = recovery->log;
    struct cmdlog_reader reader = {0};
    size_t i = scan_start(log, sound);
    int r = 0;
    recovery->end = (struct cmdlog_address){i, SEGMENT_HEADER_BYTES, log->segments[i].prev_crc};
    recovery->position = log->segments[i].position;
    recovery->in_entry = log->segments[i].continued;
    recovery->entry_start = recovery->end;
    recovery->entry_crc = log->segments[i].number == 1 ? log->segments[i].prev_crc : 0;
    INSIST(i < sound);
    while (r == 0) {
        const struct cmdlog_segment *segment = &log->segments[i];
        /* A segment that does not continue the one before it is no longer part of the log. */
        if (segment->position != recovery->position || segment->prev_crc != recovery->end.prev_crc ||
            segment->continued != recovery->in_entry)
            break;
        r = scan_segment(recovery, &reader, i);
        if (++i >= sound)
            break;
    }
    cmdlog_reader_close(&reader);
    if (r >= 0 && recovery->in_entry)
        recovery->end = recovery->entry_start;
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Damage ------------------------------------------------------------------------------------------------------- */

/* Looks for readable records after the end, and raises the proven durable position to theirs. */
static int search_segment(struct recovery *recovery, size_t i)
{
    struct cmdlog_file *log = recovery->log;
    struct cmdlog_reader reader = {0};
    struct record record;
    uint64_t from = i == recovery->end.segment ? recovery->end.offset : SEGMENT_HEADER_BYTES;
    REQUIRE(i >= recovery->end.segment);
    int r = cmdlog_reader_open(&reader, log, &log->segments[i], from, 0);
    while (r == 0 || r == READER_INVALID) {
        r = cmdlog_reader_search(&reader, &record);
        if (r == 0 && record.durable > recovery->evidence)
            recovery->evidence = record.durable;
    }
    cmdlog_reader_close(&reader);
    return r < 0 ? tl_trace(r) : 0;
}

static int check_damage(struct recovery *recovery)
{
    struct cmdlog_file *log = recovery->log;
    for (size_t i = recovery->end.segment; i < log->segment_count; i++) {
        int r = search_segment(recovery, i);
        if (r < 0)
            return tl_trace(r);
    }
    if (recovery->evidence < recovery->position)
        return 0;
    return refuse_log(recovery, TL_ERR_CORRUPT,
                      "entry %" PRIu64 " cannot be read, though it was durable up to %" PRIu64 ": segment %016" PRIx64
                      " is damaged at offset %" PRIu64,
                      recovery->position, recovery->evidence, log->segments[recovery->end.segment].number,
                      recovery->end.offset);
}

/* --- Truncation --------------------------------------------------------------------------------------------------- */

static bool all_zero(struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.data[i] != 0)
            return false;
    return true;
}

/* Zeroes the rest of the last segment. After a seal, writes only where bytes are nonzero. */
static int zero_rest(struct cmdlog_file *log, int file)
{
    REQUIRE(!log->read_only);
    enum { STEP = 64 << 10 };
    char *bytes = mem_alloc(STEP);
    char *zeros = mem_zalloc(STEP);
    int r = 0;
    for (uint64_t at = log->end.offset; r == 0 && at < log->segment_bytes; at += STEP) {
        size_t len = log->segment_bytes - at < STEP ? (size_t)(log->segment_bytes - at) : STEP, got = 0;
        struct slice part = slice_make(zeros, len);
        if (log->sealed)
            r = log->disk->functions->read(log->disk, file, at, bytes, len, &got);
        if (r == 0 && (got < len || !all_zero(slice_make(bytes, got))))
            r = log->disk->functions->write(log->disk, file, at, &part, 1);
    }
    mem_free(bytes);
    mem_free(zeros);
    return r < 0 ? tl_trace(r) : 0;
}

/* Removes the segments after the end. */
static int drop_later(struct cmdlog_file *log)
{
    REQUIRE(log->end.segment < log->segment_count);
    while (log->segment_count > log->end.segment + 1) {
        char name[CMDLOG_FILE_NAME_BYTES];
        cmdlog_segment_name(log->segments[--log->segment_count].number, name);
        int r = log->disk->functions->remove(log->disk, name);
        if (r < 0)
            return tl_trace(r);
        log->directory_unsynced = true;
    }
    return 0;
}

static int truncate_log(struct cmdlog_file *log)
{
    REQUIRE(log->end.segment < log->segment_count && log->end.offset >= SEGMENT_HEADER_BYTES);
    struct cmdlog_segment *last = &log->segments[log->end.segment];
    char name[CMDLOG_FILE_NAME_BYTES];
    cmdlog_segment_name(last->number, name);
    int r = log->disk->functions->open(log->disk, name, false, &last->file);
    if (r == 0)
        r = zero_rest(log, last->file);
    if (r == 0)
        r = log->disk->functions->sync(log->disk, last->file);
    if (r == 0)
        r = drop_later(log);
    if (r == 0)
        r = log->disk->functions->sync_directory(log->disk);
    log->directory_unsynced = r != 0;
    return r == 0 ? 0 : tl_trace(r < 0 ? r : TL_ERR_IO);
}

/* Syncs segments before the last: records were rewritten, or not synced by an earlier process. */
static int sync_earlier(struct cmdlog_file *log, size_t from)
{
    REQUIRE(!log->read_only && log->end.segment < log->segment_count);
    for (size_t i = from; i < log->end.segment; i++) {
        char name[CMDLOG_FILE_NAME_BYTES];
        int file;
        cmdlog_segment_name(log->segments[i].number, name);
        int r = log->disk->functions->open(log->disk, name, false, &file);
        if (r == 0) {
            r = log->disk->functions->sync(log->disk, file);
            log->disk->functions->close(log->disk, file);
        }
        if (r != 0)
            return tl_trace(r < 0 ? r : TL_ERR_IO);
    }
    return 0;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static int make_new(struct recovery *recovery)
{
    struct cmdlog_file *log = recovery->log;
    REQUIRE(log->segment_count == 0);
    if (log->checkpoints[0].position > 0)
        return refuse_log(recovery, TL_ERR_CORRUPT, "there is a checkpoint at entry %" PRIu64 ", but no segment",
                          log->checkpoints[0].position);
    char slots[SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES] = {0};
    size_t len;
    int r = 0;
    if (log->durable_file >= 0)
        r = log->disk->functions->read(log->disk, log->durable_file, 0, slots, sizeof slots, &len);
    if (r < 0)
        return tl_trace(r);
    if (little_endian_get_u64(slots + 8) != 0 || little_endian_get_u64(slots + SEGMENT_HEADER_BYTES + 8) != 0)
        return refuse_log(recovery, TL_ERR_CORRUPT, "entries were durable, but there is no segment");
    if (log->read_only)
        return 0;
    static const char unknown[CMDLOG_IDENTITY_BYTES];
    log->appended = log->durable = log->after; /* entries up to here are in a backup's store */
    log->appended_crc = log->end.prev_crc = log->lineage.history_crc;
    memcpy(log->identity, log->lineage.identity, sizeof log->identity);
    if (memcmp(log->identity, unknown, sizeof unknown) == 0)
        r = log->disk->functions->random(log->disk, log->identity, sizeof log->identity);
    if (r == 0)
        r = cmdlog_file_new_segment(log, false);
    if (r == 0)
        r = log->disk->functions->sync_directory(log->disk);
    log->directory_unsynced = r != 0;
    return r < 0 ? tl_trace(r) : 0;
}

static int reaches_checkpoint(struct recovery *recovery)
{
    const struct cmdlog_file *log = recovery->log;
    const struct cmdlog_segment *oldest = &log->segments[0];
    cmdlog_position whole = oldest->position + (oldest->continued ? 1 : 0);
    if (log->checkpoints[0].position == 0 || whole <= log->checkpoints[0].position + 1)
        return 0;
    return refuse_log(recovery, TL_ERR_CORRUPT,
                      "the newest checkpoint is at entry %" PRIu64 ", but the oldest segment, %016" PRIx64
                      ", begins with entry %" PRIu64,
                      log->checkpoints[0].position, oldest->number, whole);
}

int cmdlog_file_recover(struct cmdlog_file *log, char **ret_reason)
{
    struct recovery recovery = {.log = log, .ret_reason = ret_reason, .rewrite = BUF_INIT(BUF_UNLIMITED)};
    size_t sound = 0, scan_from;
    int r = log->disk->functions->list(log->disk, visit_name, log);
    if (r < 0)
        return tl_trace(r);
    if (log->segment_count == 0)
        return make_new(&recovery);
    qsort(log->segments, log->segment_count, sizeof *log->segments, by_number);
    if ((r = read_oldest(&recovery)) < 0 || (r = read_headers(&recovery, &sound)) < 0 ||
        (r = reaches_checkpoint(&recovery)) < 0 || (r = read_durable(&recovery)) < 0)
        return r;
    scan_from = scan_start(log, sound);
    r = scan_log(&recovery, sound);
    buf_deinit(&recovery.rewrite);
    if (r < 0 || (r = check_damage(&recovery)) < 0)
        return r;
    log->end = recovery.end;
    log->appended = recovery.position - 1;
    log->appended_crc = recovery.entry_crc;
    log->sealed = recovery.sealed && !recovery.in_entry;
    log->durable = log->read_only ? recovery.evidence : log->appended;
    ENSURE(recovery.evidence <= log->appended && log->checkpoints[0].position <= log->appended); /* guarantee 3 */
    if (log->read_only)
        return 0;
    r = sync_earlier(log, scan_from);
    return r < 0 ? tl_trace(r) : truncate_log(log);
}
