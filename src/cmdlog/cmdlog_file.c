/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single host's command log, in files. README.md has the format and the invariants.
 *
 * - Append: split the entry into records that fit, write each at the end; if a segment is full,
 *   continue in a new one.
 * - Sync: sync the files with records that are not durable, and the directory if it has new names;
 *   then update `durable`.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/little_endian.h"
#include "base/mutex.h"
#include "base/types.h"
#include "cmdlog/cmdlog_file_internal.h"

#define SEGMENT_BYTES_DEFAULT ((uint64_t)16 << 20)
#define PREPARE_RETRY_US TL_SECOND /* after a spare for which the disk had no space */

enum { ZEROS_BYTES = 256 << 10, EXTRA_SLICES = 4 };

static const char durable_name[] = "durable";
static const char checkpoints_name[] = "checkpoints";
static const char checkpoints_new_name[] = "checkpoints.new";

static struct cmdlog_file *file_of(struct cmdlog *base)
{
    struct cmdlog_file *log = (struct cmdlog_file *)base;
    REQUIRE(MAGIC_VALID(log, CMDLOG_FILE_MAGIC));
    return log;
}

void cmdlog_segment_name(uint64_t number, char name[CMDLOG_FILE_NAME_BYTES])
{
    REQUIRE(number > 0);
    snprintf(name, CMDLOG_FILE_NAME_BYTES, "%016" PRIx64 ".segment", number);
}

void cmdlog_spare_name(uint64_t number, char name[CMDLOG_FILE_NAME_BYTES])
{
    REQUIRE(number > 0);
    snprintf(name, CMDLOG_FILE_NAME_BYTES, "spare-%016" PRIx64, number);
}

struct cmdlog_segment *cmdlog_file_add_segment(struct cmdlog_file *log)
{
    if (log->segment_count == log->segment_capacity) {
        log->segment_capacity = 2 * log->segment_capacity + 8;
        log->segments = mem_realloc(log->segments, log->segment_capacity * sizeof *log->segments);
    }
    return &log->segments[log->segment_count++];
}

/* --- Segments ----------------------------------------------------------------------------------------------------- */

/* Creates a spare of zeros, of full length; its contents are durable, its name is not. */
static int make_spare(struct cmdlog_file *log, uint64_t *ret_number)
{
    REQUIRE(!log->read_only);
    struct cmdlog_disk *disk = log->disk;
    char name[CMDLOG_FILE_NAME_BYTES];
    char *zeros = mem_zalloc(ZEROS_BYTES);
    int file;
    pthread_mutex_lock(&log->lock);
    uint64_t number = log->spare_next++;
    pthread_mutex_unlock(&log->lock);
    cmdlog_spare_name(number, name);
    int r = disk->functions->open(disk, name, true, &file);
    bool opened = r == 0;
    for (uint64_t at = 0; r == 0 && at < log->segment_bytes; at += ZEROS_BYTES) {
        uint64_t left = log->segment_bytes - at;
        struct slice part = slice_make(zeros, left < ZEROS_BYTES ? (size_t)left : (size_t)ZEROS_BYTES);
        r = disk->functions->write(disk, file, at, &part, 1);
    }
    if (r == 0)
        r = disk->functions->sync(disk, file);
    if (opened)
        disk->functions->close(disk, file);
    if (r < 0 && opened)
        (void)!disk->functions->remove(disk, name); /* it may have used up the disk */
    mem_free(zeros);
    *ret_number = number;
    return r < 0 ? tl_trace(r) : 0;
}

/* Adds a spare to the list unless it has `most`. Returns: whether it was added. */
static bool add_spare(struct cmdlog_file *log, uint64_t number, uint64_t most)
{
    pthread_mutex_lock(&log->lock);
    bool noted = log->spare_count < most && log->spare_count < CMDLOG_SPARES_MAX;
    if (noted)
        log->spare_numbers[log->spare_count++] = number;
    pthread_mutex_unlock(&log->lock);
    return noted;
}

static int remove_spare(struct cmdlog_file *log, uint64_t number)
{
    char name[CMDLOG_FILE_NAME_BYTES];
    cmdlog_spare_name(number, name);
    return log->disk->functions->remove(log->disk, name);
}

/*
 * `reserve`: reserves them for the append in progress.
 * Returns: whether there are `count` spares, or CMDLOG_SPARES_MAX.
 */
static bool has_spares(struct cmdlog_file *log, uint64_t count, bool reserve)
{
    pthread_mutex_lock(&log->lock);
    bool enough = log->spare_count >= count || log->spare_count >= CMDLOG_SPARES_MAX;
    if (enough && reserve)
        log->spares_reserved = (unsigned)(count < log->spare_count ? count : log->spare_count);
    pthread_mutex_unlock(&log->lock);
    return enough;
}

/* Creates spares until there are `count` of them, or CMDLOG_SPARES_MAX. Requires: spares_lock. */
static int make_spares(struct cmdlog_file *log, uint64_t count)
{
    REQUIRE(mutex_is_held(&log->spares_lock));
    int r = 0;
    while (r == 0 && !has_spares(log, count, false)) {
        uint64_t number;
        r = make_spare(log, &number);
        if (r == 0 && !add_spare(log, number, count))
            r = remove_spare(log, number);
    }
    return r < 0 ? tl_trace(r) : 0;
}

/* Reserves spares for the append in progress; makes those that are missing, or waits for the thread that does. */
static int take_spares(struct cmdlog_file *log, uint64_t count)
{
    int r = 0;
    while (r == 0 && !has_spares(log, count, true)) {
        pthread_mutex_lock(&log->lock);
        log->spares_late++;
        pthread_mutex_unlock(&log->lock);
        pthread_mutex_lock(&log->spares_lock);
        r = make_spares(log, count);
        pthread_mutex_unlock(&log->spares_lock);
    }
    return r < 0 ? tl_trace(r) : 0;
}

static int take_spare(struct cmdlog_file *log, uint64_t *ret_number)
{
    bool found;
    pthread_mutex_lock(&log->lock);
    found = log->spare_count > 0;
    if (found)
        *ret_number = log->spare_numbers[--log->spare_count];
    if (log->spares_reserved > 0)
        log->spares_reserved--;
    INSIST(log->spares_reserved <= log->spare_count); /* guarantee 7 */
    pthread_mutex_unlock(&log->lock);
    return found ? 0 : make_spare(log, ret_number);
}

/*
 * Opens a spare and writes a segment's header to it, durably (invariant 1).
 * Returns: 0; DISK_NO_FILE: the spare has another length than a segment; fatal codes.
 */
static int write_header(struct cmdlog_file *log, const char *name, const struct segment_header *header, int *ret_file)
{
    REQUIRE(header->bytes == log->segment_bytes);
    struct cmdlog_disk *disk = log->disk;
    char bytes[SEGMENT_HEADER_BYTES];
    struct slice part = slice_make(bytes, sizeof bytes);
    uint64_t size;
    int r = disk->functions->open(disk, name, false, ret_file);
    if (r != 0)
        return tl_trace(r < 0 ? r : TL_ERR_IO);
    segment_header_encode(header, bytes);
    r = disk->functions->size(disk, *ret_file, &size);
    if (r == 0 && size != header->bytes)
        r = DISK_NO_FILE; /* another length: made before the segment size was known */
    if (r == 0)
        r = disk->functions->write(disk, *ret_file, 0, &part, 1);
    if (r == 0)
        r = disk->functions->sync(disk, *ret_file);
    if (r != 0)
        disk->functions->close(disk, *ret_file);
    return r < 0 ? tl_trace(r) : r;
}

/*
 * Turns a spare into a segment's file, except for its name. Spares of the wrong length are removed.
 */
static int prepare_file(struct cmdlog_file *log, const struct segment_header *header, char name[CMDLOG_FILE_NAME_BYTES],
                        int *ret_file)
{
    int r = DISK_NO_FILE;
    while (r == DISK_NO_FILE) {
        uint64_t number;
        r = take_spare(log, &number);
        if (r < 0)
            return tl_trace(r);
        cmdlog_spare_name(number, name);
        r = write_header(log, name, header, ret_file);
        if (r == DISK_NO_FILE && log->disk->functions->remove(log->disk, name) < 0)
            return tl_trace(TL_ERR_IO);
    }
    return r < 0 ? tl_trace(r) : 0;
}

int cmdlog_file_new_segment(struct cmdlog_file *log, bool continued)
{
    REQUIRE(!log->read_only);
    pthread_mutex_lock(&log->lock); /* a trim moves the list */
    uint64_t newest = log->segment_count == 0 ? 0 : log->segments[log->segment_count - 1].number;
    REQUIRE(!continued || newest > 0);
    pthread_mutex_unlock(&log->lock);
    struct segment_header header = {
        .number = newest + 1,
        .bytes = log->segment_bytes,
        .position = log->appended + 1,
        .prev_crc = log->end.prev_crc,
        .continued = continued,
    };
    char name[CMDLOG_FILE_NAME_BYTES], spare[CMDLOG_FILE_NAME_BYTES];
    int file;
    memcpy(header.identity, log->identity, sizeof header.identity);
    cmdlog_segment_name(header.number, name);
    int r = log->disk->functions->random(log->disk, &header.salt, sizeof header.salt);
    if (r == 0)
        r = prepare_file(log, &header, spare, &file);
    if (r == 0 && (r = log->disk->functions->rename(log->disk, spare, name)) < 0)
        log->disk->functions->close(log->disk, file);
    if (r < 0)
        return tl_trace(r);
    pthread_mutex_lock(&log->lock);
    *cmdlog_file_add_segment(log) = (struct cmdlog_segment){
        .number = header.number,
        .position = header.position,
        .prev_crc = header.prev_crc,
        .continued = continued,
        .seed = segment_seed(log->identity, header.number, header.salt),
        .file = file,
    };
    log->directory_unsynced = true;
    log->end.segment = log->segment_count - 1;
    log->end.offset = SEGMENT_HEADER_BYTES;
    pthread_mutex_unlock(&log->lock);
    return 0;
}

static bool has_failed_sync(struct cmdlog_file *log)
{
    pthread_mutex_lock(&log->lock);
    bool failed = log->sync_failed;
    pthread_mutex_unlock(&log->lock);
    return failed;
}

/*
 * Records that a sync failed (invariant 7). A retry would succeed without writing the lost pages.
 */
static int fail_sync(struct cmdlog_file *log, int code)
{
    REQUIRE(code < 0);
    pthread_mutex_lock(&log->lock);
    log->sync_failed = true;
    pthread_mutex_unlock(&log->lock);
    return tl_trace(code);
}

/* --- Appending ---------------------------------------------------------------------------------------------------- */

/* An entry's payload and how much of it has been written. */
struct payload {
    const struct slice *parts;
    size_t count;
    size_t skipped; /* bytes of parts[0] that have been taken */
    struct slice *taken;
    size_t taken_count;
};

/* Appends slices of the next `len` bytes to `taken`. */
static void take_bytes(struct payload *payload, uint64_t len)
{
    while (len > 0) {
        INSIST(payload->count > 0);
        struct slice part = slice_from_offset(payload->parts[0], payload->skipped);
        if (part.len > len)
            part.len = (size_t)len;
        payload->taken[payload->taken_count++] = part;
        payload->skipped += part.len;
        len -= part.len;
        if (payload->skipped == payload->parts[0].len) {
            payload->parts++;
            payload->count--;
            payload->skipped = 0;
        }
    }
}

/*
 * Writes one record at the end of the log; payload->taken has its payload from index 1 on. A
 * concurrent trim changes the last segment's index, but it stays the last.
 */
static int write_record(struct cmdlog_file *log, struct record *record, struct payload *payload)
{
    static const char zeros[RECORD_ALIGN];
    char header[RECORD_HEADER_BYTES];
    uint64_t whole = record_bytes(record->len);
    INSIST(log->end.offset >= SEGMENT_HEADER_BYTES && log->end.offset % RECORD_ALIGN == 0); /* invariant 1 */
    INSIST(log->end.offset + RECORD_HEADER_BYTES + record->len <= log->segment_bytes);
    record->prev_crc = log->end.prev_crc;
    pthread_mutex_lock(&log->lock);
    record->durable = log->durable;
    log->segments[log->segment_count - 1].begun++;
    const struct cmdlog_segment last = log->segments[log->segment_count - 1];
    pthread_mutex_unlock(&log->lock);
    record_encode(last.seed, record, payload->taken + 1, payload->taken_count - 1, header);
    payload->taken[0] = slice_make(header, sizeof header);
    payload->taken[payload->taken_count++] = slice_make(zeros, (size_t)(whole - RECORD_HEADER_BYTES - record->len));
    int r = log->disk->functions->write(log->disk, last.file, log->end.offset, payload->taken, payload->taken_count);
    if (r < 0)
        return tl_trace(r);
    pthread_mutex_lock(&log->lock);
    log->segments[log->segment_count - 1].done++;
    log->half_full = log->end.offset + whole > log->segment_bytes / 2;
    pthread_mutex_unlock(&log->lock);
    log->end.offset += whole;
    log->end.prev_crc = record->crc;
    return 0;
}

static enum record_kind kind_of(bool begins, bool ends)
{
    return begins ? ends ? RECORD_WHOLE : RECORD_FIRST : ends ? RECORD_LAST : RECORD_MIDDLE;
}

static int write_entry(struct cmdlog_file *log, struct payload *payload, uint64_t len)
{
    REQUIRE(len > 0);
    bool begins = true;
    int r = 0;
    while (r == 0 && len > 0) {
        if (log->end.offset + RECORD_SPACE_MIN > log->segment_bytes && (r = cmdlog_file_new_segment(log, !begins)) < 0)
            break;
        uint64_t available = log->segment_bytes - log->end.offset - RECORD_HEADER_BYTES;
        uint64_t taken = len < available ? len : available;
        if (taken > UINT32_MAX)
            taken = UINT32_MAX - UINT32_MAX % RECORD_ALIGN;
        struct record record = {
            .len = (uint32_t)taken,
            .position = log->appended + 1,
            .kind = kind_of(begins, taken == len),
        };
        payload->taken_count = 1;
        take_bytes(payload, taken);
        r = write_record(log, &record, payload);
        len -= taken;
        begins = false;
    }
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Reserves as many spares as the entry may need before anything of it is written, so that a full
 * disk rejects it as a whole (guarantee 7). A concurrent shrink leaves reserved spares alone.
 * Returns: 0; TL_ERR_NO_SPACE, TL_ERR_IO.
 */
static int reserve_spares(struct cmdlog_file *log, uint64_t len)
{
    REQUIRE(len > 0);
    uint64_t available = log->segment_bytes > log->end.offset ? log->segment_bytes - log->end.offset : 0;
    uint64_t payload = log->segment_bytes - SEGMENT_HEADER_BYTES - RECORD_SPACE_MIN;
    if (len + RECORD_SPACE_MIN <= available)
        return 0;
    return take_spares(log, len / payload + 1);
}

static int file_append(struct cmdlog *base, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    struct cmdlog_file *log = file_of(base);
    struct payload payload = {.parts = parts, .count = count};
    uint64_t len = 0;
    REQUIRE(!log->read_only);
    if (log->failed || has_failed_sync(log))
        return tl_trace(TL_ERR_IO);
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    int r = reserve_spares(log, len);
    if (r < 0)
        return tl_trace(r);
    payload.taken = mem_alloc((count + EXTRA_SLICES) * sizeof *payload.taken);
    r = write_entry(log, &payload, len);
    mem_free(payload.taken);
    pthread_mutex_lock(&log->lock);
    if (r == 0) {
        log->sealed = false;
        *ret_position = ++log->appended;
        log->appended_crc = log->end.prev_crc;
    }
    log->failed = r < 0;
    log->spares_reserved = 0;
    pthread_mutex_unlock(&log->lock);
    return r == TL_ERR_NO_SPACE ? tl_trace(TL_ERR_IO) : r < 0 ? tl_trace(r) : 0;
}

/* --- Syncing ------------------------------------------------------------------------------------------------------ */

/*
 * Writes the durable position to `durable` (invariant 6), without a sync; README.md says why. After
 * a failure the next opening merely knows a lower position.
 */
static void write_durable(struct cmdlog_file *log, cmdlog_position position)
{
    REQUIRE(!log->read_only);
    char bytes[RECORD_HEADER_BYTES] = {0};
    struct slice part = slice_make(bytes, sizeof bytes);
    little_endian_put_u64(bytes + 8, position);
    memcpy(bytes + 16, log->identity, CMDLOG_IDENTITY_BYTES);
    little_endian_put_u32(bytes, crc32c(segment_seed(log->identity, 0, 0), bytes + 4, sizeof bytes - 4));
    uint64_t slot = log->durable_writes++ % 2;
    if (log->durable_file >= 0)
        (void)!log->disk->functions->write(log->disk, log->durable_file, slot * SEGMENT_HEADER_BYTES, &part, 1);
}

enum { SYNCED_AT_ONCE = 16 };

/* A snapshot, taken under the lock, of the files that a sync covers. */
struct sync_plan {
    cmdlog_position position;
    bool names;
    size_t count;
    struct cmdlog_segment segments[SYNCED_AT_ONCE];
};

/* Requires: the lock. */
static struct sync_plan begin_sync(struct cmdlog_file *log)
{
    REQUIRE(mutex_is_held(&log->lock));
    struct sync_plan plan = {.position = log->appended, .names = log->directory_unsynced};
    for (size_t i = 0; i < log->segment_count && plan.count < SYNCED_AT_ONCE; i++)
        if (log->segments[i].synced < log->segments[i].begun)
            plan.segments[plan.count++] = log->segments[i];
    return plan;
}

/*
 * Closes the files that are synced, except the last segment's. Not only those of the plan: a segment
 * that became full exactly, and was synced while it was the last, is in no later plan. Requires: the
 * lock and sync_lock, since a sync uses the files.
 */
static void close_synced(struct cmdlog_file *log)
{
    REQUIRE(mutex_is_held(&log->lock) && mutex_is_held(&log->sync_lock));
    for (size_t i = 0; i + 1 < log->segment_count; i++) {
        struct cmdlog_segment *segment = &log->segments[i];
        if (segment->file < 0 || segment->synced < segment->begun)
            continue;
        log->disk->functions->close(log->disk, segment->file);
        segment->file = -1;
    }
}

/* Marks the planned writes as synced. Requires: the lock and sync_lock. */
static void end_sync(struct cmdlog_file *log, const struct sync_plan *plan)
{
    REQUIRE(mutex_is_held(&log->lock));
    for (size_t i = 0; i < plan->count; i++) {
        const struct cmdlog_segment *was = &plan->segments[i];
        uint64_t at = was->number - log->segments[0].number;
        INSIST(at < log->segment_count && log->segments[at].number == was->number); /* not trimmed: unsynced */
        if (was->begun == was->done) /* else the sync may have missed a write */
            log->segments[at].synced = was->done;
    }
    close_synced(log);
    if (plan->position > log->durable)
        log->durable = plan->position;
    ENSURE(log->durable <= log->appended);
}

/*
 * Syncs everything appended before it started, in up to SYNCED_AT_ONCE files. Requires: sync_lock.
 */
static int sync_round(struct cmdlog_file *log)
{
    REQUIRE(mutex_is_held(&log->sync_lock));
    struct cmdlog_disk *disk = log->disk;
    int r = 0;
    if (has_failed_sync(log))
        return tl_trace(TL_ERR_IO);
    pthread_mutex_lock(&log->lock);
    struct sync_plan plan = begin_sync(log);
    log->directory_unsynced = false;
    pthread_mutex_unlock(&log->lock);
    for (size_t i = 0; r == 0 && i < plan.count; i++)
        r = disk->functions->sync(disk, plan.segments[i].file);
    if (r == 0 && plan.names)
        r = disk->functions->sync_directory(disk);
    if (r < 0)
        return fail_sync(log, r);
    pthread_mutex_lock(&log->lock);
    if (plan.count == SYNCED_AT_ONCE)
        plan.position = log->durable; /* there may be more files: another round follows */
    end_sync(log, &plan);
    pthread_mutex_unlock(&log->lock);
    write_durable(log, plan.position);
    return 0;
}

static bool is_durable(struct cmdlog_file *log, cmdlog_position position)
{
    pthread_mutex_lock(&log->lock);
    bool durable = log->durable >= position;
    pthread_mutex_unlock(&log->lock);
    return durable;
}

static bool is_appended(struct cmdlog_file *log, cmdlog_position position)
{
    pthread_mutex_lock(&log->lock);
    bool appended = log->appended >= position;
    pthread_mutex_unlock(&log->lock);
    return appended;
}

static int file_sync(struct cmdlog *base, cmdlog_position position)
{
    struct cmdlog_file *log = file_of(base);
    int r = 0;
    REQUIRE(is_appended(log, position)); /* else it would never be durable */
    pthread_mutex_lock(&log->sync_lock);
    while (r == 0 && !is_durable(log, position))
        r = sync_round(log);
    pthread_mutex_unlock(&log->sync_lock);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Returns: whether a spare is to be made now: none is being made, and no attempt failed in the last second for lack
 * of space. Each attempt on a full disk writes until it is full, and callers pass their commands to a thread that
 * prepares the log. Requires: the lock.
 */
static bool wants_spare(const struct cmdlog_file *log)
{
    REQUIRE(mutex_is_held(&log->lock));
    return !log->read_only && log->half_full && log->spare_count == 0 && !log->preparing &&
           (log->prepare_after == 0 || clock_boot_us() >= log->prepare_after);
}

static void file_head(struct cmdlog *base, struct cmdlog_head *ret_head)
{
    struct cmdlog_file *log = file_of(base);
    pthread_mutex_lock(&log->lock);
    const struct cmdlog_segment *oldest = &log->segments[0];
    *ret_head = (struct cmdlog_head){
        .oldest = log->segment_count == 0 ? 1 : oldest->position + (oldest->continued ? 1 : 0),
        .appended = log->appended,
        .durable = log->durable,
        .sealed = log->sealed,
        .wants_space = wants_spare(log),
    };
    pthread_mutex_unlock(&log->lock);
}

/* Syncs the last segment. A concurrent trim moves the list, but the last segment stays open. */
static int sync_last(struct cmdlog_file *log)
{
    pthread_mutex_lock(&log->lock);
    int file = log->segments[log->segment_count - 1].file;
    pthread_mutex_unlock(&log->lock);
    return log->disk->functions->sync(log->disk, file);
}

/* `failed`, `end` and `appended` are changed by appends only, none of which runs concurrently with a seal. */
static int file_seal(struct cmdlog *base)
{
    REQUIRE(!file_of(base)->read_only);
    struct cmdlog_file *log = file_of(base);
    struct slice taken[EXTRA_SLICES];
    struct payload payload = {.taken = taken, .taken_count = 1};
    struct cmdlog_head head;
    file_head(base, &head);
    if (log->failed)
        return tl_trace(TL_ERR_IO);
    int r = file_sync(base, head.appended);
    if (r < 0 || head.sealed)
        return r < 0 ? tl_trace(r) : 0;
    if (log->end.offset + RECORD_SPACE_MIN > log->segment_bytes)
        r = cmdlog_file_new_segment(log, false);
    struct record record = {.position = log->appended + 1, .kind = RECORD_SEAL};
    if (r == 0)
        r = write_record(log, &record, &payload);
    if (r == 0)
        r = sync_last(log);
    if (r == 0)
        r = log->disk->functions->sync_directory(log->disk);
    if (r < 0) {
        log->failed = true;
        return fail_sync(log, r);
    }
    pthread_mutex_lock(&log->lock);
    log->sealed = true;
    pthread_mutex_unlock(&log->lock);
    return 0;
}

/* --- Following ---------------------------------------------------------------------------------------------------- */

struct file_cursor {
    struct cmdlog_cursor cursor;
    struct cmdlog_file *log;
    struct cmdlog_reader reader;
    uint64_t number;          /* of the segment that is being read */
    cmdlog_position position; /* of the next entry to read */
    cmdlog_position wanted;   /* the first position to return; earlier entries are skipped */
    uint32_t entry_crc;       /* checksum of the last record of the entry read last */
    struct buf entry;         /* an entry assembled from several records */
};

/* Finds a segment by its number; NULL: not in the log. Requires: the lock. */
static const struct cmdlog_segment *find_segment(const struct cmdlog_file *log, uint64_t number)
{
    REQUIRE(mutex_is_held(&log->lock));
    uint64_t oldest = log->segment_count == 0 ? 0 : log->segments[0].number;
    return number < oldest || number - oldest >= log->segment_count ? NULL : &log->segments[number - oldest];
}

static int read_segment(struct file_cursor *cursor, uint64_t number)
{
    struct cmdlog_file *log = cursor->log;
    pthread_mutex_lock(&log->lock);
    const struct cmdlog_segment *found = find_segment(log, number);
    struct cmdlog_segment segment = found == NULL ? (struct cmdlog_segment){0} : *found;
    uint64_t oldest = log->segment_count == 0 ? 0 : log->segments[0].number;
    pthread_mutex_unlock(&log->lock);
    if (segment.number == 0)
        return number < oldest ? CMDLOG_TRIMMED : CMDLOG_END;
    if (cursor->reader.disk != NULL && cursor->reader.file >= 0)
        log->disk->functions->close(log->disk, cursor->reader.file);
    int r = cmdlog_reader_open(&cursor->reader, log, &segment, SEGMENT_HEADER_BYTES, segment.prev_crc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : CMDLOG_TRIMMED;
    cursor->number = number;
    return 0;
}

static int file_follow(struct cmdlog *base, cmdlog_position from, struct cmdlog_cursor **ret_cursor)
{
    struct cmdlog_file *log = file_of(base);
    struct cmdlog_head head;
    file_head(base, &head);
    if (from < head.oldest)
        return CMDLOG_TRIMMED;
    uint64_t number = 0;
    cmdlog_position position = 1;
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < log->segment_count; i++)
        if (i == 0 || (!log->segments[i].continued && log->segments[i].position <= from)) {
            number = log->segments[i].number;
            position = log->segments[i].position;
        }
    pthread_mutex_unlock(&log->lock);
    struct file_cursor *cursor = mem_zalloc(sizeof *cursor);
    *cursor = (struct file_cursor){
        .cursor = {base->functions},
        .log = log,
        .reader = {.file = -1},
        .position = position,
        .wanted = from,
        .entry = BUF_INIT(BUF_UNLIMITED),
    };
    int r = number == 0 ? 0 : read_segment(cursor, number);
    if (r != 0) {
        cmdlog_unfollow(&cursor->cursor);
        return r < 0 ? tl_trace(r) : CMDLOG_TRIMMED;
    }
    *ret_cursor = &cursor->cursor;
    return 0;
}

/*
 * Returns: the code for an invalid record: CMDLOG_TRIMMED if its segment has been trimmed
 * meanwhile, else TL_ERR_CORRUPT.
 */
static int invalid_record_result(struct file_cursor *cursor)
{
    pthread_mutex_lock(&cursor->log->lock);
    bool there = find_segment(cursor->log, cursor->number) != NULL;
    pthread_mutex_unlock(&cursor->log->lock);
    return there ? tl_trace(TL_ERR_CORRUPT) : CMDLOG_TRIMMED;
}

/* Reads one record, and moves to the next segment at the end of one. */
static int next_record(struct file_cursor *cursor, struct record *ret_record, struct slice *ret_payload)
{
    int r = cmdlog_reader_next(&cursor->reader, ret_record, ret_payload);
    while (r == READER_END) {
        r = read_segment(cursor, cursor->number + 1);
        if (r == 0)
            r = cmdlog_reader_next(&cursor->reader, ret_record, ret_payload);
        else
            return r < 0 ? tl_trace(r) : r == CMDLOG_END ? tl_trace(TL_ERR_CORRUPT) : r;
    }
    if (r == READER_INVALID)
        return invalid_record_result(cursor);
    return r < 0 ? tl_trace(r) : 0;
}

/* Reads all records of the next entry. */
static int next_entry(struct file_cursor *cursor, struct slice *ret_bytes)
{
    struct record record;
    struct slice payload;
    bool several = false;
    buf_clear(&cursor->entry);
    for (;;) {
        int r = next_record(cursor, &record, &payload);
        if (r != 0)
            return r < 0 ? tl_trace(r) : r;
        if (record.kind == RECORD_SEAL)
            continue;
        if (record.position != cursor->position)
            return invalid_record_result(cursor);
        cursor->entry_crc = record.crc;
        if (record.kind == RECORD_WHOLE) {
            *ret_bytes = payload;
            break;
        }
        several = true;
        buf_slice(&cursor->entry, payload);
        if (record.kind == RECORD_LAST)
            break;
    }
    if (several)
        *ret_bytes = buf_as_slice(&cursor->entry);
    cursor->position++;
    return 0;
}

static int file_next(struct cmdlog_cursor *base, struct cmdlog_entry *ret_entry)
{
    struct file_cursor *cursor = (struct file_cursor *)base;
    struct slice bytes = SLICE_NONE;
    struct cmdlog_head head;
    file_head(&cursor->log->log, &head);
    for (;;) {
        if (cursor->position > head.appended)
            return CMDLOG_END;
        int r = next_entry(cursor, &bytes);
        if (r != 0)
            return r < 0 ? tl_trace(r) : r;
        if (cursor->position > cursor->wanted)
            break;
    }
    *ret_entry = (struct cmdlog_entry){cursor->position - 1, bytes};
    ENSURE(ret_entry->position >= cursor->wanted && ret_entry->position <= head.appended);
    return 0;
}

static uint64_t file_unread_bytes(struct cmdlog_cursor *base)
{
    const struct file_cursor *cursor = (const struct file_cursor *)base;
    const struct cmdlog_address *end = &cursor->log->end;
    if (cursor->number == 0) /* a log without segments, opened read-only */
        return 0;
    pthread_mutex_lock(&cursor->log->lock);
    INSIST(end->segment < cursor->log->segment_count);
    uint64_t last = cursor->log->segments[end->segment].number;
    pthread_mutex_unlock(&cursor->log->lock);
    INSIST(cursor->number < last || (cursor->number == last && cursor->reader.offset <= end->offset));
    return (last - cursor->number) * cursor->log->segment_bytes + end->offset - cursor->reader.offset;
}

static void file_unfollow(struct cmdlog_cursor *base)
{
    struct file_cursor *cursor = (struct file_cursor *)base;
    cmdlog_reader_close(&cursor->reader);
    buf_deinit(&cursor->entry);
    mem_free(cursor);
}

/* Reads the entry at `position` to find the checksum of its last record. */
static int read_history_crc(struct cmdlog *base, cmdlog_position position, uint32_t *ret_crc)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    int r = file_follow(base, position, &cursor);
    if (r != 0)
        return r;
    r = file_next(cursor, &entry);
    if (r == 0)
        *ret_crc = ((struct file_cursor *)cursor)->entry_crc;
    file_unfollow(cursor);
    return r;
}

/*
 * Returns: the lineage checksum before the first entry, if known. A later segment's header may hold
 * that of a seal, which is not an entry's. Requires: the lock.
 */
static uint32_t first_history_crc(const struct cmdlog_file *log)
{
    REQUIRE(mutex_is_held(&log->lock));
    return log->segment_count > 0 && log->segments[0].number == 1 ? log->segments[0].prev_crc : 0;
}

static int file_lineage(struct cmdlog *base, cmdlog_position position, struct cmdlog_lineage *ret_lineage)
{
    struct cmdlog_file *log = file_of(base);
    struct cmdlog_head head;
    int r = 0;
    memcpy(ret_lineage->identity, log->identity, sizeof log->identity);
    file_head(base, &head);
    pthread_mutex_lock(&log->lock);
    bool newest = position == log->appended;
    if (newest || position + 1 == head.oldest)
        ret_lineage->history_crc = newest ? log->appended_crc : first_history_crc(log);
    pthread_mutex_unlock(&log->lock);
    if (!newest && position >= head.oldest && position < head.appended)
        r = read_history_crc(base, position, &ret_lineage->history_crc);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Trimming ----------------------------------------------------------------------------------------------------- */

/*
 * Returns: whether the oldest segment has only synced entries below `before`. Requires: the lock.
 */
static bool can_trim(const struct cmdlog_file *log, cmdlog_position before)
{
    REQUIRE(mutex_is_held(&log->lock));
    if (log->segment_count < 2 || log->segments[0].synced != log->segments[0].begun)
        return false;
    const struct cmdlog_segment *following = &log->segments[1];
    cmdlog_position newest_within = following->continued ? following->position : following->position - 1;
    return newest_within < before;
}

/*
 * Returns: the number of the oldest segment; 0: it cannot be trimmed. It stays the oldest while
 * trim_lock is held.
 */
static uint64_t find_trimmable(struct cmdlog_file *log, cmdlog_position before)
{
    REQUIRE(mutex_is_held(&log->trim_lock));
    pthread_mutex_lock(&log->lock);
    uint64_t number = can_trim(log, before) ? log->segments[0].number : 0;
    pthread_mutex_unlock(&log->lock);
    return number;
}

/* Removes the oldest segment from the list. */
static void remove_oldest(struct cmdlog_file *log)
{
    REQUIRE(mutex_is_held(&log->trim_lock));
    pthread_mutex_lock(&log->lock);
    INSIST(log->segment_count > 1 && log->end.segment == log->segment_count - 1); /* the last is written to */
    INSIST(log->segments[0].synced == log->segments[0].begun);
    int file = log->segments[0].file; /* open if its last sync found no segment after it */
    memmove(log->segments, log->segments + 1, --log->segment_count * sizeof *log->segments);
    log->end.segment--;
    pthread_mutex_unlock(&log->lock);
    if (file >= 0)
        log->disk->functions->close(log->disk, file);
}

/* Returns: 1: the archive has taken the file away; 0; fatal codes. */
static int archive_segment(struct cmdlog_file *log, uint64_t number)
{
    REQUIRE(mutex_is_held(&log->trim_lock));
    char name[CMDLOG_FILE_NAME_BYTES];
    cmdlog_segment_name(number, name);
    return log->archive == NULL ? 0 : log->archive(log->archive_context, name);
}

static int retire_segment(struct cmdlog_file *log, uint64_t number)
{
    REQUIRE(mutex_is_held(&log->trim_lock));
    char name[CMDLOG_FILE_NAME_BYTES], spare[CMDLOG_FILE_NAME_BYTES];
    bool reuse;
    cmdlog_segment_name(number, name);
    pthread_mutex_lock(&log->lock);
    reuse = log->spare_count < log->spares_max;
    uint64_t spare_number = log->spare_next;
    log->spare_next += reuse;
    pthread_mutex_unlock(&log->lock);
    if (!reuse)
        return log->disk->functions->remove(log->disk, name);
    cmdlog_spare_name(spare_number, spare);
    int r = log->disk->functions->rename(log->disk, name, spare);
    if (r == 0 && !add_spare(log, spare_number, log->spares_max))
        r = remove_spare(log, spare_number);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Names are removed one at a time, each followed by a sync, so that a power failure leaves no gap.
 */
static int file_trim(struct cmdlog *base, cmdlog_position before)
{
    struct cmdlog_file *log = file_of(base);
    uint64_t number;
    int r = 0;
    REQUIRE(!log->read_only);
    pthread_mutex_lock(&log->trim_lock);
    while (r >= 0 && (number = find_trimmable(log, before)) != 0) {
        r = archive_segment(log, number);
        if (r < 0) { /* the archive has logged the failure; the segment stays until a later trim */
            pthread_mutex_unlock(&log->trim_lock);
            return 0;
        }
        remove_oldest(log);
        if (r == 0)
            r = retire_segment(log, number);
        if (r >= 0)
            r = log->disk->functions->sync_directory(log->disk);
    }
    pthread_mutex_unlock(&log->trim_lock);
    return r < 0 ? tl_trace(r) : 0;
}

int cmdlog_file_preallocate(struct cmdlog *base)
{
    struct cmdlog_file *log = file_of(base);
    if (log->read_only)
        return 0;
    pthread_mutex_lock(&log->spares_lock);
    int r = make_spares(log, log->spares_max);
    pthread_mutex_unlock(&log->spares_lock);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Creates a spare when the last segment is half full, unless another thread does; trims provide further
 * ones.
 */
static int file_prepare(struct cmdlog *base)
{
    struct cmdlog_file *log = file_of(base);
    pthread_mutex_lock(&log->lock);
    bool wanted = wants_spare(log) && pthread_mutex_trylock(&log->spares_lock) == 0;
    log->preparing |= wanted;
    pthread_mutex_unlock(&log->lock);
    if (!wanted)
        return 0;
    int r = make_spares(log, 1);
    pthread_mutex_unlock(&log->spares_lock);
    pthread_mutex_lock(&log->lock);
    log->preparing = false;
    log->prepare_after = r == TL_ERR_NO_SPACE ? clock_boot_us() + PREPARE_RETRY_US : 0;
    pthread_mutex_unlock(&log->lock);
    return r == TL_ERR_NO_SPACE ? 0 : r; /* the next append reports it */
}

/* Removes spares until at most `left` remain, and those reserved. */
static int drop_spares(struct cmdlog_file *log, unsigned left)
{
    REQUIRE(!log->read_only);
    for (;;) {
        uint64_t number = 0;
        pthread_mutex_lock(&log->lock);
        bool more = log->spare_count > (left > log->spares_reserved ? left : log->spares_reserved);
        if (more)
            number = log->spare_numbers[--log->spare_count];
        pthread_mutex_unlock(&log->lock);
        int r = more ? remove_spare(log, number) : 0;
        if (!more || r < 0)
            return r < 0 ? tl_trace(r) : 0;
    }
}

static int file_shrink(struct cmdlog *base)
{
    struct cmdlog_file *log = file_of(base);
    REQUIRE(!log->read_only);
    return drop_spares(log, 0);
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

/*
 * Fields: checksum of the bytes from 4 on, 4 zero bytes; then for each checkpoint its position, the
 * length of its locator, the locator.
 */
static void encode_checkpoints(const struct cmdlog_checkpoint *checkpoints, struct buf *buf)
{
    REQUIRE(checkpoints[0].position >= checkpoints[1].position); /* the newest is first */
    char number[8];
    buf_append(buf, "\0\0\0\0\0\0\0\0", 8);
    for (int i = 0; i < 2; i++) {
        REQUIRE(checkpoints[i].locator.len <= CMDLOG_LOCATOR_MAX); /* what a reader demands */
        little_endian_put_u64(number, checkpoints[i].position);
        buf_append(buf, number, 8);
        little_endian_put_u64(number, checkpoints[i].locator.len);
        buf_append(buf, number, 8);
        buf_slice(buf, checkpoints[i].locator);
    }
    struct slice covered = buf_from(buf, 4);
    char crc[4];
    little_endian_put_u32(crc, crc32c(0, covered.data, covered.len));
    buf_overwrite(buf, 0, crc, sizeof crc);
}

static bool decode_checkpoint(struct slice *bytes, struct cmdlog_checkpoint *ret_checkpoint)
{
    struct slice place;
    if (bytes->len < 16)
        return false;
    uint64_t position = little_endian_get_u64(bytes->data);
    uint64_t len = little_endian_get_u64(bytes->data + 8);
    *bytes = slice_from_offset(*bytes, 16);
    if (len > CMDLOG_LOCATOR_MAX || !slice_take(bytes, (size_t)len, &place))
        return false;
    *ret_checkpoint = (struct cmdlog_checkpoint){position, mem_dup_slice(place)};
    return true;
}

static bool decode_checkpoints(struct cmdlog_file *log, struct slice bytes)
{
    if (bytes.len < 8 || little_endian_get_u32(bytes.data) != crc32c(0, bytes.data + 4, bytes.len - 4))
        return false;
    bytes = slice_from_offset(bytes, 8);
    return decode_checkpoint(&bytes, &log->checkpoints[0]) && decode_checkpoint(&bytes, &log->checkpoints[1]) &&
           bytes.len == 0;
}

/* Returns: 0, also if the file is missing; 1: it is damaged; fatal codes. */
static int read_checkpoints(struct cmdlog_file *log)
{
    enum { BYTES_MAX = 8 + 2 * (16 + CMDLOG_LOCATOR_MAX) + 1 };
    char *bytes = mem_alloc(BYTES_MAX);
    size_t len = 0;
    int file;
    int r = log->disk->functions->open(log->disk, checkpoints_name, false, &file);
    bool there = r == 0;
    if (there) {
        r = log->disk->functions->read(log->disk, file, 0, bytes, BYTES_MAX, &len);
        log->disk->functions->close(log->disk, file);
    }
    if (r == 0 && !decode_checkpoints(log, slice_make(bytes, len)))
        r = 1;
    else if (r == DISK_NO_FILE && !there)
        r = 0;
    mem_free(bytes);
    return r < 0 ? tl_trace(r) : r;
}

static void forget_checkpoint(struct cmdlog_checkpoint *checkpoint)
{
    mem_free((char *)(uintptr_t)checkpoint->locator.data);
    *checkpoint = (struct cmdlog_checkpoint){0};
}

/* Writes a new file, syncs it, and renames it over the old one. */
static int write_checkpoints(struct cmdlog_file *log, const struct cmdlog_checkpoint *checkpoints)
{
    REQUIRE(!log->read_only && mutex_is_held(&log->sync_lock));
    struct cmdlog_disk *disk = log->disk;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    int file;
    int r = disk->functions->remove(disk, checkpoints_new_name);
    if (r == 0)
        r = disk->functions->open(disk, checkpoints_new_name, true, &file);
    if (r == 0) {
        encode_checkpoints(checkpoints, &buf);
        struct slice part = buf_as_slice(&buf);
        r = disk->functions->write(disk, file, 0, &part, 1);
        if (r == 0)
            r = disk->functions->sync(disk, file);
        disk->functions->close(disk, file);
    }
    if (r == 0)
        r = disk->functions->rename(disk, checkpoints_new_name, checkpoints_name);
    if (r == 0)
        r = disk->functions->sync_directory(disk);
    buf_deinit(&buf);
    return r == 0 ? 0 : tl_trace(r < 0 ? r : TL_ERR_IO);
}

static int file_put_checkpoint(struct cmdlog *base, const struct cmdlog_checkpoint *checkpoint)
{
    struct cmdlog_file *log = file_of(base);
    REQUIRE(is_durable(log, checkpoint->position));
    pthread_mutex_lock(&log->sync_lock);
    if (checkpoint->position < log->checkpoints[0].position) {
        pthread_mutex_unlock(&log->sync_lock);
        return 0;
    }
    bool again = checkpoint->position == log->checkpoints[0].position;
    struct cmdlog_checkpoint both[2] = {*checkpoint, log->checkpoints[again ? 1 : 0]};
    int r = write_checkpoints(log, both);
    if (r == 0) {
        pthread_mutex_lock(&log->lock);
        forget_checkpoint(&log->checkpoints[again ? 0 : 1]);
        if (!again)
            log->checkpoints[1] = log->checkpoints[0];
        log->checkpoints[0] = (struct cmdlog_checkpoint){checkpoint->position, mem_dup_slice(checkpoint->locator)};
        pthread_mutex_unlock(&log->lock);
    }
    pthread_mutex_unlock(&log->sync_lock);
    return r < 0 ? tl_trace(r) : 0;
}

static int file_get_checkpoint(struct cmdlog *base, unsigned back, char *buffer,
                               struct cmdlog_checkpoint *ret_checkpoint)
{
    struct cmdlog_file *log = file_of(base);
    pthread_mutex_lock(&log->lock);
    struct cmdlog_checkpoint found = log->checkpoints[back];
    if (found.locator.len > 0)
        memcpy(buffer, found.locator.data, found.locator.len);
    pthread_mutex_unlock(&log->lock);
    if (found.position == 0 && found.locator.len == 0)
        return CMDLOG_NOT_FOUND;
    *ret_checkpoint = (struct cmdlog_checkpoint){found.position, slice_make(buffer, found.locator.len)};
    return 0;
}

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

static void file_close(struct cmdlog *base)
{
    struct cmdlog_file *log = file_of(base);
    REQUIRE(log->spares_reserved == 0); /* no append is in progress */
    for (size_t i = 0; i < log->segment_count; i++)
        if (log->segments[i].file >= 0)
            log->disk->functions->close(log->disk, log->segments[i].file);
    if (log->durable_file >= 0)
        log->disk->functions->close(log->disk, log->durable_file);
    for (int i = 0; i < 2; i++)
        forget_checkpoint(&log->checkpoints[i]);
    mem_free(log->segments);
    pthread_mutex_destroy(&log->lock);
    pthread_mutex_destroy(&log->sync_lock);
    pthread_mutex_destroy(&log->trim_lock);
    pthread_mutex_destroy(&log->spares_lock);
    log->disk->functions->free(log->disk);
    magic_clear(&log->magic);
    mem_free(log);
}

static const struct cmdlog_functions functions = {
    .append = file_append,
    .sync = file_sync,
    .head = file_head,
    .lineage = file_lineage,
    .follow = file_follow,
    .next = file_next,
    .unread_bytes = file_unread_bytes,
    .unfollow = file_unfollow,
    .trim = file_trim,
    .preallocate = file_prepare,
    .shrink = file_shrink,
    .put_checkpoint = file_put_checkpoint,
    .get_checkpoint = file_get_checkpoint,
    .seal = file_seal,
    .close = file_close,
};

static int open_files(struct cmdlog_file *log, char **ret_reason)
{
    static const char damaged[] = "the log of commands: the file 'checkpoints' is damaged";
    int r = log->disk->functions->open(log->disk, durable_name, false, &log->durable_file);
    if (r == DISK_NO_FILE)
        log->durable_file = -1;
    if (r < 0)
        return tl_trace(r);
    r = read_checkpoints(log);
    if (r > 0) {
        *ret_reason = mem_strdup(damaged, sizeof damaged - 1);
        return tl_trace(TL_ERR_CORRUPT);
    }
    return r < 0 ? tl_trace(r) : 0;
}

int cmdlog_file_open(struct cmdlog_disk *disk, const struct cmdlog_file_options *options, struct cmdlog **ret_log,
                     char **ret_reason)
{
    struct cmdlog_file *log = mem_zalloc(sizeof *log);
    log->log.functions = &functions;
    log->magic = CMDLOG_FILE_MAGIC;
    log->disk = disk;
    log->segment_bytes = options->segment_bytes == 0 ? SEGMENT_BYTES_DEFAULT : options->segment_bytes;
    log->spares_max = options->spares_max < CMDLOG_SPARES_MAX ? options->spares_max : CMDLOG_SPARES_MAX;
    log->read_only = options->read_only;
    log->after = options->after;
    log->lineage = options->lineage;
    log->archive = options->archive;
    log->archive_context = options->archive_context;
    log->durable_file = -1;
    log->spare_next = 1;
    REQUIRE(log->segment_bytes % SEGMENT_HEADER_BYTES == 0 && log->segment_bytes >= 2 * SEGMENT_HEADER_BYTES);
    mutex_init(&log->lock);
    mutex_init(&log->sync_lock);
    mutex_init(&log->trim_lock);
    mutex_init(&log->spares_lock);
    *ret_reason = NULL;
    int r = open_files(log, ret_reason);
    if (r == 0)
        r = cmdlog_file_recover(log, ret_reason);
    if (r == 0 && log->durable_file < 0 && !log->read_only)
        r = disk->functions->open(disk, durable_name, true, &log->durable_file);
    if (r == 0 && !log->read_only)
        r = drop_spares(log, log->spares_max); /* a failed append may have left more */
    if (r == 0 && !log->read_only)
        write_durable(log, log->durable);
    if (r < 0) {
        cmdlog_close(&log->log);
        return tl_trace(r);
    }
    *ret_log = &log->log;
    return 0;
}
