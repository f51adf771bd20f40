/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the file log; README.md, "Opening".
 *
 * - list what is there; read the checkpoints and how far the log is known to be durable
 * - walk the records to the first that is none: the end; what nothing says was durable is written again
 * - search behind it for anything that says that more was durable: then it is damage, and refused
 * - else cut: zeros behind the end, later segments become spares, all of it durable
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "cmdlog/cmdlog_file_internal.h"

struct recovery {
    struct cmdlog_file *log;
    char **ret_reason;
    struct cmdlog_address end;
    cmdlog_position position; /* of the entry that comes next */
    uint32_t entry_chain;  /* of the one before it: the checksum of its last record; 0: it was not read */
    bool sealed;
    /* Of an entry that began and has not ended. */
    bool begun;
    struct cmdlog_address begin;
    cmdlog_position evidence; /* the newest position that something says was durable */
    /* Records in a row, of the segment that is walked, to be written again; where the first stands. */
    struct buf again;
    uint64_t again_offset;
};

enum { AGAIN_BYTES = 256 << 10 };

static int refuse(struct recovery *recovery, int code, const char *format, ...) TL_PRINTF(3, 4);

static int refuse(struct recovery *recovery, int code, const char *format, ...)
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

/* --- What is there ------------------------------------------------------------------------------------------------ */

static bool numbered(const char *name, const char *before, const char *after, uint64_t *ret_number)
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
    if (numbered(name, "", ".segment", &number)) {
        *cmdlog_file_add_segment(log) = (struct cmdlog_segment){.number = number, .file = -1};
    } else if (numbered(name, "spare-", "", &number)) {
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

/* Reads a segment's header. Returns: 0; 1: it has none that is sound; fatal codes. */
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

/* The oldest segment says whose log it is and how long its segments are. */
static int read_oldest(struct recovery *recovery)
{
    struct cmdlog_file *log = recovery->log;
    struct segment_header header;
    int r = read_header(log, log->segments[0].number, &header);
    if (r < 0)
        return tl_trace(r);
    if (r > 0)
        return refuse(recovery, TL_ERR_CORRUPT, "the header of segment %016" PRIx64 ", the oldest, is damaged",
                      log->segments[0].number);
    memcpy(log->identity, header.identity, sizeof log->identity);
    log->segment_bytes = header.bytes;
    return 0;
}

static bool fits(const struct cmdlog_file *log, const struct segment_header *header)
{
    return header->bytes == log->segment_bytes && memcmp(header->identity, log->identity, sizeof log->identity) == 0;
}

/*
 * Fills in what the headers say. A header was durable before its segment had its name (invariant 1), so one that cannot be read is
 * damage, wherever it is. *ret_following: how many follow each other; names that were not synced may have left a gap.
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
        if (r > 0 || !fits(log, &header))
            return refuse(recovery, TL_ERR_CORRUPT, "the header of segment %016" PRIx64 " is damaged, or another log's",
                          segment->number);
        segment->position = header.position;
        segment->chain = header.chain;
        segment->continued = header.continued;
        segment->seed = segment_seed(log->identity, segment->number, header.use);
        if (segment->number == log->segments[0].number + i)
            *ret_following = i + 1;
    }
    return 0;
}

/* --- What was durable --------------------------------------------------------------------------------------------- */

/* A slot of `durable`: checksum 0, position 8, identity 16. A slot that is damaged says nothing. */
static cmdlog_position slot_says(const struct cmdlog_file *log, const char *bytes)
{
    uint32_t seed = segment_seed(log->identity, 0, 0);
    struct record as_record = {.sum = cmdlog_get_u32(bytes), .len = 0};
    return record_sound(seed, bytes, &as_record) ? cmdlog_get_u64(bytes + 8) : 0;
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
        cmdlog_position says = len == sizeof slots[i] ? slot_says(log, slots[i]) : 0;
        if (says > recovery->evidence)
            recovery->evidence = says;
    }
    if (log->checkpoints[0].position > recovery->evidence)
        recovery->evidence = log->checkpoints[0].position;
    return 0;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

/* Takes one record into account. Returns: whether it is the one that must come here. */
static bool take_record(struct recovery *recovery, const struct record *record, const struct cmdlog_address *at)
{
    bool begins = record->kind == RECORD_WHOLE || record->kind == RECORD_FIRST || record->kind == RECORD_SEAL;
    if (record->position != recovery->position || begins == recovery->begun)
        return false;
    recovery->sealed = record->kind == RECORD_SEAL;
    if (record->kind == RECORD_FIRST) {
        recovery->begun = true;
        recovery->begin = *at;
    }
    if (record->kind == RECORD_LAST)
        recovery->begun = false;
    if (record->kind == RECORD_WHOLE || record->kind == RECORD_LAST) {
        recovery->position++;
        recovery->entry_chain = record->sum;
    }
    if (record->durable > recovery->evidence)
        recovery->evidence = record->durable;
    return true;
}

static int flush_again(struct recovery *recovery, const struct cmdlog_reader *reader)
{
    struct slice part = buf_as_slice(&recovery->again);
    int r = part.len == 0
                ? 0
                : reader->disk->functions->write(reader->disk, reader->file, recovery->again_offset, &part, 1);
    buf_clear(&recovery->again);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * A record may lie in the page cache only, and no sync would write it (README.md, "Opening", 4). What is written is what was checked: read once
 * more it could be what the disk has.
 */
static int write_again(struct recovery *recovery, const struct cmdlog_reader *reader, uint64_t offset, struct slice record)
{
    int r = 0;
    if (recovery->again.len >= AGAIN_BYTES || recovery->again_offset + recovery->again.len != offset)
        r = flush_again(recovery, reader);
    if (recovery->again.len == 0)
        recovery->again_offset = offset;
    buf_slice(&recovery->again, record);
    return r < 0 ? tl_trace(r) : 0;
}

/* Walks the records of one segment. Returns: 0 it is full, the walk goes on; 1 the end is in it; fatal codes. */
static int walk_segment(struct recovery *recovery, struct cmdlog_reader *reader, size_t i)
{
    struct cmdlog_file *log = recovery->log;
    struct record record;
    struct slice payload;
    int r = cmdlog_reader_open(reader, log, &log->segments[i], SEGMENT_HEADER_BYTES, recovery->end.chain);
    if (r != 0)
        return tl_trace(r < 0 ? r : TL_ERR_IO);
    for (;;) {
        struct cmdlog_address at = {i, reader->offset, reader->chain};
        recovery->end = at;
        r = cmdlog_reader_next(reader, &record, &payload);
        if (r != 0 || !take_record(recovery, &record, &at))
            break;
        if (log->read_only || record.position <= recovery->evidence)
            continue;
        struct slice whole = slice_make(payload.data - RECORD_HEADER_BYTES, (size_t)record_bytes(record.len));
        if ((r = write_again(recovery, reader, at.offset, whole)) < 0)
            break;
    }
    int written = flush_again(recovery, reader);
    reader->disk->functions->close(reader->disk, reader->file);
    reader->file = -1;
    r = r >= 0 && written < 0 ? written : r;
    return r < 0 ? tl_trace(r) : r == READER_END ? 0 : 1;
}

/* The segment to begin with: what lies before the newest checkpoint nobody will read before it is asked for. */
static size_t first_to_walk(const struct cmdlog_file *log, size_t sound)
{
    size_t first = 0;
    for (size_t i = 1; i < sound; i++)
        if (!log->segments[i].continued && log->segments[i].position <= log->checkpoints[0].position)
            first = i;
    return first;
}

/* A log whose beginning was trimmed in the middle of an entry: the rest of that is skipped. */
static int walk(struct recovery *recovery, size_t sound)
{
    struct cmdlog_file *log = recovery->log;
    struct cmdlog_reader reader = {0};
    size_t i = first_to_walk(log, sound);
    int r = 0;
    recovery->end = (struct cmdlog_address){i, SEGMENT_HEADER_BYTES, log->segments[i].chain};
    recovery->position = log->segments[i].position;
    recovery->begun = log->segments[i].continued;
    recovery->begin = recovery->end;
    recovery->entry_chain = log->segments[i].number == 1 ? log->segments[i].chain : 0;
    while (r == 0) {
        const struct cmdlog_segment *segment = &log->segments[i];
        /* A segment that does not go on where the one before ended is none of this log's any more. */
        if (segment->position != recovery->position || segment->chain != recovery->end.chain ||
            segment->continued != recovery->begun)
            break;
        r = walk_segment(recovery, &reader, i);
        if (++i >= sound)
            break;
    }
    cmdlog_reader_close(&reader);
    if (r >= 0 && recovery->begun)
        recovery->end = recovery->begin;
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Damage ------------------------------------------------------------------------------------------------------- */

/* What the records behind the end that can still be read say was durable. */
static int search_segment(struct recovery *recovery, size_t i)
{
    struct cmdlog_file *log = recovery->log;
    struct cmdlog_reader reader = {0};
    struct record record;
    uint64_t from = i == recovery->end.segment ? recovery->end.offset : SEGMENT_HEADER_BYTES;
    int r = cmdlog_reader_open(&reader, log, &log->segments[i], from, 0);
    while (r == 0 || r == READER_UNSOUND) {
        r = cmdlog_reader_search(&reader, &record);
        if (r == 0 && record.durable > recovery->evidence)
            recovery->evidence = record.durable;
    }
    cmdlog_reader_close(&reader);
    return r < 0 ? tl_trace(r) : 0;
}

static int search(struct recovery *recovery)
{
    struct cmdlog_file *log = recovery->log;
    for (size_t i = recovery->end.segment; i < log->segment_count; i++) {
        int r = search_segment(recovery, i);
        if (r < 0)
            return tl_trace(r);
    }
    if (recovery->evidence < recovery->position)
        return 0;
    return refuse(recovery, TL_ERR_CORRUPT,
                  "entry %" PRIu64 " cannot be read, though it was durable up to %" PRIu64 ": segment %016" PRIx64
                  " is damaged at offset %" PRIu64,
                  recovery->position, recovery->evidence, log->segments[recovery->end.segment].number,
                  recovery->end.offset);
}

/* --- Cutting ------------------------------------------------------------------------------------------------------ */

static bool all_zero(struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.data[i] != 0)
            return false;
    return true;
}

/* Zeros from the end to the end of its segment; behind a seal only where there is something else, from there on. */
static int zero_rest(struct cmdlog_file *log, int file)
{
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

/* Later segments become spares, or go. */
static int drop_later(struct cmdlog_file *log)
{
    while (log->segment_count > log->end.segment + 1) {
        char name[CMDLOG_FILE_NAME_BYTES];
        cmdlog_segment_name(log->segments[--log->segment_count].number, name);
        int r = log->disk->functions->remove(log->disk, name);
        if (r < 0)
            return tl_trace(r);
        log->names_unsynced = true;
    }
    return 0;
}

static int cut(struct cmdlog_file *log)
{
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
        r = log->disk->functions->sync_names(log->disk);
    log->names_unsynced = r != 0;
    return r == 0 ? 0 : tl_trace(r < 0 ? r : TL_ERR_IO);
}

/* Earlier segments than the last may have records that were never synced, when the machine has not gone down since, or that were written again. */
static int sync_earlier(struct cmdlog_file *log, size_t from)
{
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

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static int make_new(struct recovery *recovery)
{
    struct cmdlog_file *log = recovery->log;
    if (log->checkpoints[0].position > 0)
        return refuse(recovery, TL_ERR_CORRUPT, "there is a checkpoint at entry %" PRIu64 ", but no segment",
                      log->checkpoints[0].position);
    char slots[SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES] = {0};
    size_t len;
    int r = 0;
    if (log->durable_file >= 0)
        r = log->disk->functions->read(log->disk, log->durable_file, 0, slots, sizeof slots, &len);
    if (r < 0)
        return tl_trace(r);
    if (cmdlog_get_u64(slots + 8) != 0 || cmdlog_get_u64(slots + SEGMENT_HEADER_BYTES + 8) != 0)
        return refuse(recovery, TL_ERR_CORRUPT, "entries were durable, but there is no segment");
    if (log->read_only)
        return 0;
    static const char unknown[CMDLOG_IDENTITY_BYTES];
    log->appended = log->durable = log->after; /* what is before it lies elsewhere: in a backup's store */
    log->appended_chain = log->end.chain = log->lineage.history_crc;
    memcpy(log->identity, log->lineage.identity, sizeof log->identity);
    if (memcmp(log->identity, unknown, sizeof unknown) == 0)
        r = log->disk->functions->random(log->disk, log->identity, sizeof log->identity);
    if (r == 0)
        r = cmdlog_file_new_segment(log, false);
    if (r == 0)
        r = log->disk->functions->sync_names(log->disk);
    log->names_unsynced = r != 0;
    return r < 0 ? tl_trace(r) : 0;
}

static int reaches_checkpoint(struct recovery *recovery)
{
    const struct cmdlog_file *log = recovery->log;
    const struct cmdlog_segment *oldest = &log->segments[0];
    cmdlog_position whole = oldest->position + (oldest->continued ? 1 : 0);
    if (log->checkpoints[0].position == 0 || whole <= log->checkpoints[0].position + 1)
        return 0;
    return refuse(recovery, TL_ERR_CORRUPT,
                  "the newest checkpoint is at entry %" PRIu64 ", but the oldest segment, %016" PRIx64
                  ", begins with entry %" PRIu64,
                  log->checkpoints[0].position, oldest->number, whole);
}

int cmdlog_file_recover(struct cmdlog_file *log, char **ret_reason)
{
    struct recovery recovery = {.log = log, .ret_reason = ret_reason, .again = BUF_INIT(BUF_UNLIMITED)};
    size_t sound = 0, walked;
    int r = log->disk->functions->list(log->disk, visit_name, log);
    if (r < 0)
        return tl_trace(r);
    if (log->segment_count == 0)
        return make_new(&recovery);
    qsort(log->segments, log->segment_count, sizeof *log->segments, by_number);
    if ((r = read_oldest(&recovery)) < 0 || (r = read_headers(&recovery, &sound)) < 0 ||
        (r = reaches_checkpoint(&recovery)) < 0 || (r = read_durable(&recovery)) < 0)
        return r;
    walked = first_to_walk(log, sound);
    r = walk(&recovery, sound);
    buf_deinit(&recovery.again);
    if (r < 0 || (r = search(&recovery)) < 0)
        return r;
    log->end = recovery.end;
    log->appended = recovery.position - 1;
    log->appended_chain = recovery.entry_chain;
    log->sealed = recovery.sealed && !recovery.begun;
    log->durable = log->read_only ? recovery.evidence : log->appended;
    if (log->read_only)
        return 0;
    r = sync_earlier(log, walked);
    return r < 0 ? tl_trace(r) : cut(log);
}
