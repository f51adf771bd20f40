/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: after a clean shutdown or a crash a store has the state of its last checkpoint, to the
 * batch, in all spaces. A store of an older format, in which RocksDB had a WAL, is converted to
 * such a store.
 * Method: on RocksDB, and on the in-memory store where possible. A clean close does not differ from
 * a crash here: neither writes anything. The older store was left by an older version (format2:
 * documents, a session and its locks, written by a core and closed cleanly).
 *
 * usage: store_checkpoint_test FORMAT2
 */
#include "../../lib/rocks_fixture.h"
#include "../../lib/arguments.h"
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "store/rocks_internal.h"
#include "store/store.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes the number of each batch to all spaces. */
static void write_batches(struct store *store, tl_ts first, tl_ts last)
{
    struct store_batch *batch = store_batch_new(store);
    for (tl_ts ts = first; ts <= last; ts++) {
        char text[16];
        snprintf(text, sizeof text, "%d", (int)ts);
        store_batch_clear(batch);
        store_batch_begin(batch, ts);
        for (int space = 0; space < SPACE_COUNT; space++)
            store_batch_put(batch, (enum store_space)space, SLICE_LIT("number"), slice_from(text));
        assert_int_equal(store_write(store, batch), 0);
    }
    store_batch_free(batch);
}

static void assert_number(struct store *store, int expected)
{
    for (int space = 0; space < SPACE_COUNT; space++) {
        struct store_value value;
        int r = store_get(store, (enum store_space)space, TL_TS_MAX, SLICE_LIT("number"), &value);
        if (expected == 0) {
            assert_int_equal(r, STORE_NOT_FOUND);
            continue;
        }
        uint64_t number = 0;
        assert_int_equal(r, 0);
        assert_true(slice_to_u64(value.bytes, &number));
        assert_int_equal(number, expected);
        store_value_release(&value);
    }
}

static void assert_record(struct store *store, const char *expected)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    int r = store_checkpoint_record(store, &record);
    if (expected == NULL) {
        assert_int_equal(r, STORE_NOT_FOUND);
    } else {
        assert_int_equal(r, 0);
        assert_true(slice_is(buf_as_slice(&record), expected));
    }
    buf_deinit(&record);
}

static void await_disk(struct store *store)
{
    int r;
    while ((r = store_checkpointed(store)) == 0)
        usleep(1000);
    assert_int_equal(r, 1);
}

/* Writes about so many bytes, which do not compress, and the number of the batch, to one space. */
static void write_large(struct store *store, tl_ts ts, size_t bytes)
{
    enum { VALUE_BYTES = 1 << 16 };
    static char value[VALUE_BYTES];
    static uint32_t random = 1;
    struct store_batch *batch = store_batch_new(store);
    store_batch_begin(batch, ts);
    for (size_t i = 0; i < bytes / VALUE_BYTES; i++) {
        char key[24];
        snprintf(key, sizeof key, "large%zu", i);
        for (size_t at = 0; at < VALUE_BYTES; at++)
            value[at] = (char)((random = random * 1664525 + 1013904223) >> 24);
        store_batch_put(batch, SPACE_DOCUMENTS, slice_from(key), slice_make(value, VALUE_BYTES));
    }
    snprintf(value, sizeof value, "%d", (int)ts);
    store_batch_put(batch, SPACE_DOCUMENTS, SLICE_LIT("number"), slice_from(value));
    assert_int_equal(store_write(store, batch), 0);
    store_batch_free(batch);
}

/*
 * The store is closed before a compaction has ended, which RocksDB begins again when it is opened. At its
 * end RocksDB 7.8 could reset the limit of the memtable, which then would be flushed without a checkpoint.
 */
static void test_compaction_from_opening_does_not_limit_memtable(void **state)
{
    enum { COMPACTION_TRIGGER = 4, FILE_BYTES = 12 << 20, MORE_THAN_LIMIT = 2 * ROCKS_OPENING_TABLE_BYTES };
    struct fixture *f = *state;
    struct store_value value;
    tl_ts ts = 0;
    must_open(f, false);
    while (ts < COMPACTION_TRIGGER) {
        write_large(f->store, ++ts, FILE_BYTES);
        assert_int_equal(store_checkpoint(f->store, SLICE_LIT("checkpoint")), 0);
        await_disk(f->store);
    }
    must_open(f, false);
    while (rocks__family_sum(rocks_of(f->store), "rocksdb.num-running-compactions") > 0 ||
           rocks__family_sum(rocks_of(f->store), "rocksdb.compaction-pending") > 0)
        usleep(1000);
    write_large(f->store, ts + 1, MORE_THAN_LIMIT);
    write_large(f->store, ts + 2, 0);
    await_disk(f->store);
    must_open(f, false);
    assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, TL_TS_MAX, SLICE_LIT("number"), &value), 0);
    assert_true(slice_is(value.bytes, "4"));
    store_value_release(&value);
}

static void test_reopened_store_is_as_of_last_checkpoint(void **state)
{
    struct fixture *f = *state;
    must_open(f, false);
    write_batches(f->store, 1, 20);
    must_open(f, false); /* there is no checkpoint yet */
    assert_number(f->store, 0);
    assert_record(f->store, NULL);
    write_batches(f->store, 1, 30);
    assert_true(store_uncheckpointed_bytes(f->store) > 0);
    assert_int_equal(store_checkpoint(f->store, SLICE_LIT("thirty")), 0);
    assert_int_equal(store_uncheckpointed_bytes(f->store), 0);
    write_batches(f->store, 31, 40); /* during the flush, but not part of it */
    assert_number(f->store, 40);
    await_disk(f->store);
    assert_record(f->store, "thirty");
    must_open(f, false);
    assert_number(f->store, 30);
    assert_record(f->store, "thirty");
    for (int i = 31; i < 60; i++) {
        char text[16];
        write_batches(f->store, (tl_ts)i, (tl_ts)i);
        snprintf(text, sizeof text, "%d", i);
        assert_int_equal(store_checkpoint(f->store, slice_from(text)), 0);
        await_disk(f->store);
    }
    must_open(f, false);
    assert_number(f->store, 59);
    assert_record(f->store, "59");
    assert_int_equal(store_compact(f->store), 0);
    write_batches(f->store, 60, 70);
    must_open(f, false);
    assert_number(f->store, 59);
}

static size_t count_keys(struct store *store, enum store_space space)
{
    size_t count = 0;
    struct store_iter *iter = store_iter_new(store, space, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter))
        count++;
    assert_int_equal(store_iter_status(iter), 0);
    store_iter_free(iter);
    return count;
}

enum { NOISE_BYTES = 1 << 20 };

static void make_noise(char ret_bytes[static NOISE_BYTES])
{
    static uint64_t noise = 88172645463325252u;
    for (size_t i = 0; i < NOISE_BYTES; i++)
        ret_bytes[i] = (char)((noise = noise * 6364136223846793005u + 1442695040888963407u) >> 56);
}

/* Writes values that do not compress, one in a batch. */
static void write_noise(struct store *store, enum store_space space, tl_ts first, unsigned count)
{
    char *value = mem_alloc(NOISE_BYTES);
    struct store_batch *batch = store_batch_new(store);
    for (unsigned i = 0; i < count; i++) {
        char key[16];
        make_noise(value);
        snprintf(key, sizeof key, "%u", i);
        store_batch_clear(batch);
        store_batch_begin(batch, first + i);
        store_batch_put(batch, space, slice_from(key), slice_make(value, NOISE_BYTES));
        assert_int_equal(store_write(store, batch), 0);
    }
    store_batch_free(batch);
    mem_free(value);
}

static void assert_nothing_flushed(struct fixture *f, const struct store_stats *before)
{
    struct store_stats after;
    await_disk(f->store); /* no flush is in progress */
    store_stats(f->store, &after);
    assert_int_equal(after.flushes, before->flushes);
    assert_int_equal(after.table_bytes, before->table_bytes);
}

/*
 * Nothing is flushed between opening and the first checkpoint, even after as many bytes as a start
 * may replay. They are written to each space, since the memtables of RocksDB differ.
 */
static void test_nothing_is_flushed_before_first_checkpoint(void **state)
{
    enum { VALUES = 40 };
    struct fixture *f = *state;
    for (int space = 0; space < SPACE_COUNT; space++) {
        struct store_stats before;
        must_open(f, false);
        store_stats(f->store, &before);
        write_noise(f->store, (enum store_space)space, 1, VALUES);
        assert_nothing_flushed(f, &before);
        must_open(f, false);
        assert_record(f->store, NULL);
        assert_int_equal(count_keys(f->store, (enum store_space)space), 0);
    }
}

/*
 * As before, in all families of a store that has just been created: their memtables are as large as
 * those of a store that is opened again, which get their size in another way.
 */
static void test_nothing_is_flushed_in_created_store(void **state)
{
    enum { VALUES = ROCKS_OPENING_TABLE_BYTES / NOISE_BYTES + 4 };
    struct fixture *f = *state;
    struct store_stats before;
    size_t pieces;
    must_open(f, false);
    store_stats(f->store, &before);
    for (int space = 0; space < SPACE_COUNT; space++)
        write_noise(f->store, (enum store_space)space, 1 + (tl_ts)space * VALUES, VALUES);
    char *piece = mem_alloc(NOISE_BYTES);
    for (uint32_t i = 0; i < VALUES; i++) {
        make_noise(piece);
        assert_int_equal(store_put_piece(f->store, (struct store_piece){1, i}, slice_make(piece, NOISE_BYTES)), 0);
    }
    mem_free(piece);
    assert_nothing_flushed(f, &before);
    must_open(f, false);
    for (int space = 0; space < SPACE_COUNT; space++)
        assert_int_equal(count_keys(f->store, (enum store_space)space), 0);
    assert_int_equal(store_count_pieces(f->store, &pieces), 0);
    assert_int_equal(pieces, 0);
}

/* A record of several parts, followed by a shorter one. */
static void test_checkpoint_records_of_any_length(void **state)
{
    static const size_t lengths[] = {(size_t)40 << 20, 0, 100000, (size_t)16 << 20, 1};
    struct fixture *f = *state;
    struct buf record = BUF_INIT(BUF_UNLIMITED), read = BUF_INIT(BUF_UNLIMITED);
    must_open(f, false);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        buf_clear(&record);
        while (record.len < lengths[i])
            buf_byte(&record, (char)(record.len * 31 >> 7));
        assert_int_equal(store_checkpoint(f->store, buf_as_slice(&record)), 0);
        await_disk(f->store);
        must_open(f, false);
        buf_clear(&read);
        assert_int_equal(store_checkpoint_record(f->store, &read), 0);
        assert_true(slice_equal(buf_as_slice(&read), buf_as_slice(&record)));
    }
    buf_deinit(&record);
    buf_deinit(&read);
}

static void put_piece(struct store *store, uint64_t owner, uint32_t number, const char *bytes)
{
    assert_int_equal(store_put_piece(store, (struct store_piece){owner, number}, slice_from(bytes)), 0);
}

static void assert_piece(struct store *store, uint64_t owner, uint32_t number, const char *expected)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    int r = store_get_piece(store, (struct store_piece){owner, number}, &bytes);
    assert_int_equal(r, expected == NULL ? STORE_NOT_FOUND : 0);
    assert_true(expected == NULL || slice_is(buf_as_slice(&bytes), expected));
    buf_deinit(&bytes);
}

static void assert_piece_count(struct store *store, size_t expected)
{
    size_t count;
    assert_int_equal(store_count_pieces(store, &count), 0);
    assert_int_equal(count, expected);
}

/* Makes a checkpoint with pieces, and changes after it. */
static void change_pieces(struct store *store)
{
    put_piece(store, 0, 0, "none");
    put_piece(store, 7, 0, "a");
    put_piece(store, 7, 1, "b");
    put_piece(store, 7, UINT32_MAX, "c");
    put_piece(store, 8, 0, "d");
    put_piece(store, (uint64_t)1 << 40, 3, "e");
    assert_piece_count(store, 6);
    assert_int_equal(store_delete_pieces(store, 8, 8), 0);
    put_piece(store, 7, 1, "bb");
    assert_int_equal(store_checkpoint(store, SLICE_LIT("first")), 0);
    await_disk(store);
    put_piece(store, 7, 0, "later");
    put_piece(store, 9, 0, "later");
    assert_int_equal(store_delete_pieces(store, 0, 0), 0);
    assert_piece(store, 7, 0, "later");
    assert_piece_count(store, 5);
}

static void assert_first_pieces(struct store *store)
{
    assert_record(store, "first");
    assert_piece(store, 0, 0, "none");
    assert_piece(store, 7, 0, "a");
    assert_piece(store, 7, 1, "bb");
    assert_piece(store, 7, UINT32_MAX, "c");
    assert_piece(store, 8, 0, NULL);
    assert_piece(store, 9, 0, NULL);
    assert_piece(store, (uint64_t)1 << 40, 3, "e");
    assert_piece_count(store, 5);
    assert_int_equal(store_delete_pieces(store, 0, UINT64_MAX - 1), 0);
    assert_piece_count(store, 0);
    assert_record(store, "first");
}

/* A crash returns to the pieces of the last checkpoint, and the record does not disturb them. */
static void test_pieces_are_as_of_last_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct store *memory = store_open_mem();
    must_open(f, false);
    change_pieces(f->store);
    must_open(f, false);
    assert_first_pieces(f->store);
    change_pieces(memory);
    store_mem_crash(memory, 0);
    assert_first_pieces(memory);
    store_close(memory);
}

/*
 * RocksDB's history limit does not pass a checkpoint that is not known to be durable: after a crash
 * the batches after the durable one are written again, which RocksDB refuses below its limit.
 */
static void test_history_limit_does_not_pass_unfinished_checkpoint(void **state)
{
    struct fixture *f = *state;
    must_open(f, false);
    write_batches(f->store, 1, 20);
    assert_int_equal(store_checkpoint(f->store, SLICE_LIT("twenty")), 0);
    await_disk(f->store);
    write_batches(f->store, 21, 40);
    assert_int_equal(store_set_history_low(f->store, 30), 0);
    assert_int_equal(rocks_of(f->store)->pushed_low, 20);
    assert_int_equal(store_checkpoint(f->store, SLICE_LIT("forty")), 0);
    assert_int_equal(store_set_history_low(f->store, 35), 0);
    assert_int_equal(rocks_of(f->store)->pushed_low, 20);
    await_disk(f->store);
    assert_int_equal(store_set_history_low(f->store, 36), 0);
    assert_int_equal(rocks_of(f->store)->pushed_low, 36);
    write_batches(f->store, 41, 60);
    assert_int_equal(store_set_history_low(f->store, 50), 0);
    must_open(f, false);
    assert_number(f->store, 40);
    write_batches(f->store, 41, 60);
    assert_number(f->store, 60);
}

static const char *format2; /* the directory of the older store */

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    size_t len = fread(bytes, 1, sizeof bytes, in);
    assert_true(len < sizeof bytes && fwrite(bytes, 1, len, out) == len);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void copy_format2(struct fixture *f)
{
    static const char *const names[] = {
        "FORMAT", "SYNCED", "rocks/CURRENT", "rocks/IDENTITY", "rocks/MANIFEST-000005", "rocks/000004.log"};
    char from[512], to[512];
    store_close(f->store);
    f->store = NULL;
    remove_tree(f->directory);
    snprintf(to, sizeof to, "%s/rocks", f->directory);
    assert_int_equal(mkdir(f->directory, 0700), 0);
    assert_int_equal(mkdir(to, 0700), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s/%s", format2, names[i]);
        snprintf(to, sizeof to, "%s/%s", f->directory, names[i]);
        copy_file(from, to);
    }
}

static void write_synced(struct fixture *f, uint64_t sequence)
{
    char path[512];
    uint64_t words[2] = {sequence, ~sequence};
    snprintf(path, sizeof path, "%s/SYNCED", f->directory);
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(words, sizeof words, 1, file), 1);
    fclose(file);
}

static uint64_t read_synced(struct fixture *f)
{
    char path[512];
    uint64_t words[2] = {0};
    snprintf(path, sizeof path, "%s/SYNCED", f->directory);
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(words, sizeof words, 1, file), 1);
    fclose(file);
    return words[0];
}

/* Returns: the number in FORMAT. */
static char read_format(struct fixture *f)
{
    char path[512], text[16] = "";
    snprintf(path, sizeof path, "%s/FORMAT", f->directory);
    FILE *file = fopen(path, "rb");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    return text[strlen("tidelock ")];
}

static void assert_refused(struct fixture *f, bool read_only, const char *word)
{
    char *reason = NULL;
    assert_int_equal(try_open(f, read_only, &reason), TL_ERR_VERSION);
    if (strstr(reason, word) == NULL)
        fail_msg("the reason '%s' does not hold '%s'", reason, word);
    mem_free(reason);
}

enum { FORMAT2_DOCUMENTS = 34 };

/*
 * The content of the older store's WAL is kept, older programs refuse the store, and it has no
 * checkpoint yet. Then it behaves like any other.
 */
static void test_older_format_is_converted(void **state)
{
    struct fixture *f = *state;
    copy_format2(f);
    assert_refused(f, true, "a server that is started on it converts it");
    assert_int_equal(read_format(f), '2');
    must_open(f, false);
    assert_int_equal(read_format(f), '3');
    assert_int_equal(count_keys(f->store, SPACE_DOCUMENTS), FORMAT2_DOCUMENTS);
    size_t records = count_keys(f->store, SPACE_SYSTEM);
    assert_true(records > 4);
    assert_record(f->store, NULL);
    write_batches(f->store, (tl_ts)1 << 40, ((tl_ts)1 << 40) + 5);
    must_open(f, false);
    assert_number(f->store, 0);
    assert_int_equal(count_keys(f->store, SPACE_DOCUMENTS), FORMAT2_DOCUMENTS);
    assert_int_equal(count_keys(f->store, SPACE_SYSTEM), records);
    assert_int_equal(store_verify(f->store, NULL), 0);
}

/*
 * A WAL that does not end where it was synced was not closed cleanly: nothing is changed, and the
 * reason says what to do.
 */
static void test_older_format_not_closed_cleanly_is_refused(void **state)
{
    struct fixture *f = *state;
    char path[512];
    copy_format2(f);
    uint64_t synced = read_synced(f);
    for (int i = -1; i <= 1; i += 2) {
        write_synced(f, (uint64_t)((int64_t)synced + i));
        assert_refused(f, false, "was not closed in order");
    }
    snprintf(path, sizeof path, "%s/SYNCED", f->directory);
    unlink(path);
    assert_refused(f, false, "start the version that wrote it");
    assert_int_equal(read_format(f), '2');
    write_synced(f, synced);
    snprintf(path, sizeof path, "%s/rocks/000004.log", f->directory);
    assert_int_equal(truncate(path, 4000), 0);
    assert_refused(f, false, "was not closed in order");
    copy_format2(f);
    must_open(f, false);
    assert_int_equal(count_keys(f->store, SPACE_DOCUMENTS), FORMAT2_DOCUMENTS);
}

/* Counts its calls. */
static int refuse_content(struct store *store, void *context)
{
    ++*(int *)context;
    assert_int_equal(count_keys(store, SPACE_DOCUMENTS), FORMAT2_DOCUMENTS);
    return TL_ERR_CORRUPT;
}

/* The check is called once, before anything is changed; not for a store that needs no conversion. */
static void test_older_format_whose_content_is_refused(void **state)
{
    struct fixture *f = *state;
    int asked = 0;
    char *reason = NULL;
    copy_format2(f);
    struct store_options options = {
        .directory = slice_from(f->directory), .check_older = refuse_content, .check_context = &asked};
    assert_int_equal(store_open_rocks(&options, &f->store, &reason), TL_ERR_CORRUPT);
    assert_non_null(strstr(reason, "its content cannot be read, so it is not converted"));
    mem_free(reason);
    assert_int_equal(asked, 1);
    assert_int_equal(read_format(f), '2');
    must_open(f, false);
    assert_int_equal(read_format(f), '3');
    store_close(f->store);
    assert_int_equal(store_open_rocks(&options, &f->store, NULL), 0);
    assert_int_equal(asked, 1);
}

static void test_in_memory_store_behaves_alike(void **state)
{
    struct store *store = store_open_mem();
    (void)state;
    write_batches(store, 1, 20);
    assert_record(store, NULL);
    assert_int_equal(store_checkpoint(store, SLICE_LIT("twenty")), 0);
    assert_int_equal(store_checkpointed(store), 1);
    write_batches(store, 21, 30);
    assert_true(store_uncheckpointed_bytes(store) > 0);
    store_mem_crash(store, 0);
    assert_number(store, 20);
    assert_record(store, "twenty");
    store_close(store);
}

int main(int argc, char **argv)
{
    const struct argument arguments[] = {{"FOLDER", .text = &format2}, {0}};
    arguments_take(argc, argv, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reopened_store_is_as_of_last_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_flushed_before_first_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_flushed_in_created_store, setup, teardown),
        cmocka_unit_test_setup_teardown(test_compaction_from_opening_does_not_limit_memtable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_checkpoint_records_of_any_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pieces_are_as_of_last_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_format_is_converted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_format_not_closed_cleanly_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_format_whose_content_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history_limit_does_not_pass_unfinished_checkpoint, setup, teardown),
        cmocka_unit_test(test_in_memory_store_behaves_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
