/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command log: its files with damage, and entries that are no groups of commands. The first byte chooses.
 *
 * - 0, 1: the files of a small log, in 1 a sealed one. The rest is changes of eight bytes each: which file (one byte),
 *   what, where (two bytes, low one first), four bytes of data. A change is of bytes; or of a field of a segment's or a
 *   record's header, which gets valid checksums, so that later checks are reached. The log opens, or is refused
 *   with a reason; whether it is opened for reading only or not. What opens can be read, and takes another entry, which
 *   the next opening finds. After a single change of bytes it is a prefix of the written entries.
 * - 2: entries, each preceded by its length in two bytes, low one first. A group that decodes encodes to the same
 *   bytes. A log of these entries is replayed, or refused with a reason.
 *
 * Nothing ends the process.
 */
#include "fuzz.h"

#include <stdio.h>

#include "../lib/disk_sim.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "cmdlog/cmdlog_file.h"
#include "cmdlog/cmdlog_memory.h"
#include "cmdlog/segment.h"
#include "core/command/command_codec.h"
#include "core/step/command_group.h"
#include "journal/recover.h"

enum { SEGMENT = 2048, CHANGES_MAX = 16, READ_MAX = 1000, ENTRIES_MAX = 50 };

/* --- The files ---------------------------------------------------------------------------------------------------- */

/* One is split among segments, one fills the rest of its segment but for a few bytes. */
static const size_t lens[] = {37, 300, 5000, 8, 620, 1, 200};

enum { ENTRIES = sizeof lens / sizeof *lens };

static struct disk_sim *written[2]; /* the second is sealed */

static struct slice entry_of(cmdlog_position position, char *buffer)
{
    size_t len = lens[position - 1];
    for (size_t i = 0; i < len; i++)
        buffer[i] = (char)(position * 31 + i * 7 + i / 251);
    return slice_make(buffer, len);
}

static int open_log(struct disk_sim *sim, bool read_only, struct cmdlog **ret_log)
{
    const struct cmdlog_file_options options = {.segment_bytes = SEGMENT, .spares_max = 1, .read_only = read_only};
    char *reason = NULL;
    int r = cmdlog_file_open(disk_sim_disk(sim), &options, ret_log, &reason);
    MUST(r == 0 || (r < 0 && reason != NULL && *reason != '\0'));
    mem_free(reason);
    return r;
}

static void write_log(bool sealed)
{
    static char buffer[8192];
    struct disk_sim *sim = written[sealed] = disk_sim_new(1);
    struct cmdlog *log;
    cmdlog_position position;
    MUST(open_log(sim, false, &log) == 0);
    for (cmdlog_position i = 1; i <= ENTRIES; i++) {
        struct slice entry = entry_of(i, buffer);
        MUST(cmdlog_append(log, &entry, 1, &position) == 0 && position == i);
        if (i % 3 == 0)
            MUST(cmdlog_sync(log, i) == 0);
    }
    const struct cmdlog_checkpoint checkpoint = {.position = 2, .locator = SLICE_LIT("here")};
    MUST(cmdlog_put_checkpoint(log, &checkpoint) == 0);
    MUST(!sealed || cmdlog_seal(log) == 0);
    cmdlog_close(log);
}

/* Changes a field of a segment's header. */
static void change_segment(char *bytes, size_t len, unsigned field, uint32_t value)
{
    struct segment_header header;
    if (len < SEGMENT_HEADER_BYTES || !segment_header_decode(bytes, &header))
        return;
    switch (field % 7) {
    case 0: header.identity[value % CMDLOG_IDENTITY_BYTES] ^= 1; break;
    case 1: header.number += value; break;
    case 2: header.bytes += value; break;
    case 3: header.position += (uint64_t)value << 16 | value; break;
    case 4: header.prev_crc += value; break;
    case 5: header.continued = !header.continued; break;
    default: header.salt += value;
    }
    segment_header_encode(&header, bytes);
}

/* Changes a field of the `skipped`-th record of a segment. */
static void change_record(char *bytes, size_t len, unsigned skipped, unsigned field, uint32_t value)
{
    static const char zeros[1 << 16];
    struct segment_header header;
    struct record record;
    size_t at = SEGMENT_HEADER_BYTES;
    if (len < SEGMENT_HEADER_BYTES || !segment_header_decode(bytes, &header))
        return;
    uint32_t seed = segment_seed(header.identity, header.number, header.salt);
    for (;; skipped--) {
        if (at + RECORD_HEADER_BYTES > len || !record_decode(seed, bytes + at, &record) ||
            record.len > len - at - RECORD_HEADER_BYTES)
            return;
        if (skipped == 0)
            break;
        at += record_bytes(record.len);
    }
    switch (field % 5) {
    case 0: record.len += value; break;
    case 1: record.position += value; break;
    case 2: record.prev_crc += value; break;
    case 3: record.kind = (enum record_kind)(value % RECORD_KIND_END); break;
    default: record.durable += (uint64_t)value << 16 | value;
    }
    size_t rest = len - at - RECORD_HEADER_BYTES;
    size_t missing = record.len > rest ? record.len - rest : 0; /* of the payload, beyond the segment's end */
    if (missing > sizeof zeros || record.position == 0 || record.durable >= record.position || record.kind == 0)
        return; /* no record is encoded so, or decoded */
    struct slice payload[] = {slice_make(bytes + at + RECORD_HEADER_BYTES, record.len - missing),
                              slice_make(zeros, missing)};
    record_encode(seed, &record, payload, 2, bytes + at);
}

/* Returns: whether bytes were changed, and no checksum made to fit. */
static bool change(struct disk_sim *sim, const uint8_t *what)
{
    char *bytes, *others;
    size_t len, others_len, files = 0;
    uint32_t value = what[4] | (uint32_t)what[5] << 8 | (uint32_t)what[6] << 16 | (uint32_t)what[7] << 24;
    while (disk_sim_file(sim, files, &bytes, &len) != NULL)
        files++;
    (void)disk_sim_file(sim, what[0] % files, &bytes, &len);
    size_t at = len == 0 ? 0 : (what[2] | (size_t)what[3] << 8) % len;
    switch (what[1] % 6) {
    case 0:
        if (len > 0)
            bytes[at] = (char)value;
        return true;
    case 1:
        for (size_t i = at; i < len && i - at < value % 1024; i++)
            bytes[i] = 0;
        return true;
    case 2:
        if (len > 0)
            bytes[at] = (char)(bytes[at] ^ 1 << value % 8);
        return true;
    case 3: /* a misplaced sector */
        (void)disk_sim_file(sim, value % files, &others, &others_len);
        at = at / DISK_SIM_SECTOR * DISK_SIM_SECTOR;
        if (len >= at + DISK_SIM_SECTOR && others_len >= DISK_SIM_SECTOR)
            memmove(bytes + at, others + (value >> 8) % (others_len / DISK_SIM_SECTOR) * (size_t)DISK_SIM_SECTOR,
                    DISK_SIM_SECTOR);
        return true;
    case 4: change_segment(bytes, len, what[2], value); return false;
    default: change_record(bytes, len, what[2], what[3], value); return false;
    }
}

/* Reads all that the log has; `is_prefix`: it must be the first entries of those that were written. */
static void read_log(struct cmdlog *log, bool is_prefix)
{
    static char buffer[8192];
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct cmdlog_head head;
    struct cmdlog_lineage lineage;
    cmdlog_head(log, &head);
    (void)!cmdlog_lineage(log, head.appended, &lineage);
    if (cmdlog_follow(log, head.oldest, &cursor) != 0)
        return;
    int r = 0;
    uint64_t count = 0;
    while (count < READ_MAX && (r = cmdlog_next(cursor, &entry)) == 0) {
        count++;
        MUST(entry.position >= head.oldest && entry.position <= head.appended);
        MUST(!is_prefix || (entry.position == count && count <= ENTRIES &&
                            slice_equal(entry.bytes, entry_of(entry.position, buffer))));
    }
    MUST(!is_prefix || (r == CMDLOG_END && count == head.appended));
    cmdlog_unfollow(cursor);
}

/* Appends an entry. The next opening must find it. */
static void write_more(struct disk_sim *sim, struct cmdlog *log)
{
    struct slice entry = SLICE_LIT("another");
    struct cmdlog_head head;
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry found;
    cmdlog_position position;
    MUST(cmdlog_append(log, &entry, 1, &position) == 0 && cmdlog_sync(log, position) == 0);
    cmdlog_close(log);
    MUST(open_log(sim, false, &log) == 0);
    cmdlog_head(log, &head);
    MUST(head.appended == position && cmdlog_follow(log, position, &cursor) == 0);
    MUST(cmdlog_next(cursor, &found) == 0 && found.position == position && slice_equal(found.bytes, entry));
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
}

static void try_files(bool sealed, struct slice input)
{
    struct cmdlog *log;
    bool is_prefix = true;
    if (written[sealed] == NULL)
        write_log(sealed);
    struct disk_sim *sim = disk_sim_copy(written[sealed]);
    for (size_t i = 0; i + 8 <= input.len && i < 8 * CHANGES_MAX; i += 8) {
        bool of_bytes = change(sim, (const uint8_t *)input.data + i);
        is_prefix = is_prefix && of_bytes && i == 0;
    }
    if (open_log(sim, true, &log) == 0) {
        read_log(log, is_prefix);
        cmdlog_close(log);
    }
    if (open_log(sim, false, &log) == 0) {
        read_log(log, is_prefix);
        write_more(sim, log);
    }
    disk_sim_free(sim);
}

/* --- The entries -------------------------------------------------------------------------------------------------- */

/* What decodes, with commands of the current version, encodes to the same bytes. */
static void decode_group(struct slice bytes)
{
    struct command_group_header head, again_head;
    struct list commands = LIST_INIT(commands);
    struct slice rest, part;
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    bool is_current = true;
    int header = command_group_read_header(bytes, &again_head);
    int r = command_group_decode(bytes, &head, &commands);
    MUST(r == 0 || r == COMMAND_CODEC_NEWER || r == TL_ERR_CORRUPT);
    MUST(r != 0 || header == 0);
    if (command_group_open(bytes, &rest) == 0)
        while (command_group_take(&rest, &part))
            is_current = is_current && part.len > 0 && part.data[0] == COMMAND_CODEC_VERSION;
    if (r == 0)
        command_group_begin(&head, &again);
    while (!list_empty(&commands)) {
        struct command *command = list_entry(commands.next, struct command, link);
        list_remove(&command->link);
        command_group_add(command, &again);
        command_free(command);
    }
    MUST(r != 0 || !is_current || slice_equal(bytes, buf_as_slice(&again)));
    buf_deinit(&again);
}

static void try_entries(struct slice input)
{
    struct core_limits limits = core_limits_default();
    struct cmdlog_medium *medium = cmdlog_medium_new();
    struct cmdlog *log = cmdlog_memory_open(medium);
    struct store *store = store_open_mem();
    struct recovered recovered;
    struct core *core;
    struct slice head, bytes;
    cmdlog_position position;
    char *reason = NULL;
    limits.script.steps_max = 10000;
    for (int i = 0; i < ENTRIES_MAX && slice_take(&input, 2, &head); i++) {
        size_t len = (unsigned char)head.data[0] | (size_t)(unsigned char)head.data[1] << 8;
        if (!slice_take(&input, len < input.len ? len : input.len, &bytes) || bytes.len == 0)
            break;
        decode_group(bytes);
        MUST(cmdlog_append(log, &bytes, 1, &position) == 0);
    }
    int r = recover_core(store, log, &limits, NULL, &core, &recovered, &reason);
    MUST(r == 0 || (r < 0 && reason != NULL && *reason != '\0'));
    mem_free(reason);
    if (r == 0)
        core_close(core);
    cmdlog_close(log);
    cmdlog_medium_free(medium);
    store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    log_set_level(LOG_LEVEL_COUNT - 1);
    struct slice rest = slice_from_offset(slice_make(data, size), 1);
    if (data[0] % 3 < 2)
        try_files(data[0] % 3 == 1, rest);
    else
        try_entries(rest);
    return 0;
}
