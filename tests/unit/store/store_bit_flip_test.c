/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: any flipped bit of a store at rest is refused, by its opening, by the verification or by
 * reads, or is without effect: never a crash, never a wrong value. Method: a small store with
 * versions in all spaces, pieces and two checkpoints. After each flip it is opened, verified and
 * read completely, whether the verification has found anything or not. Every SAMPLE_WRITABLEth of
 * the flips is done in a copy that is opened for writing, as a server does.
 *
 * A flip in a record of the manifest may look like a write that was torn, and RocksDB then opens the
 * store as of an earlier checkpoint, or without any. That is no wrong state: its record has the position
 * from which the log is replayed, without one all of the log (journal/recover.h).
 */
#include "../../lib/rocks_fixture.h"
#include "../../lib/unit.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "store/store.h"

enum {
    KEYS = 12,
    PIECES = 3,
    FILES_MAX = 64,
    BYTES_MAX = 1 << 20, /* of a file */
    SAMPLE = 160,        /* flips of the gate */
    /* With TIDELOCK_TEST_LONG: every seventh bit, from another one on for each commit; ten minutes. */
    LONG_STRIDE = 7,
    SAMPLE_WRITABLE = 8,
    /*
     * Of a longer file only so many bytes at its beginning and its end count: between them it has
     * nothing but the zeros that fill a memtable at a checkpoint (rocks_checkpoint.c).
     */
    ENDS_BYTES = 2 << 10,
};

/* Writes a version of each key in all spaces; `deletes`: deletes every second key. */
static void write_version(struct store *store, tl_ts ts, bool deletes)
{
    struct store_batch *batch = store_batch_new(store);
    store_batch_begin(batch, ts);
    for (int space = 0; space < SPACE_COUNT; space++)
        for (int i = 0; i < KEYS; i++) {
            char key[32], value[32];
            snprintf(key, sizeof key, "key-%d", i);
            snprintf(value, sizeof value, "%d of %d in %d", i, (int)ts, space);
            if (deletes && i % 2 == 0)
                store_batch_delete(batch, (enum store_space)space, slice_from(key));
            else
                store_batch_put(batch, (enum store_space)space, slice_from(key), slice_from(value));
        }
    assert_int_equal(store_write(store, batch), 0);
    store_batch_free(batch);
}

static void settle(struct store *store, const char *record)
{
    int r;
    for (uint32_t i = 0; i < PIECES; i++)
        assert_int_equal(store_put_piece(store, (struct store_piece){7, i}, slice_from(record)), 0);
    assert_int_equal(store_checkpoint(store, slice_from(record)), 0);
    while ((r = store_checkpointed(store)) == 0)
        usleep(1000);
    assert_int_equal(r, 1);
}

/* What a store answers, as text; reads that are refused leave "?". */
struct answers {
    struct buf text;
    bool refused;
};

static void refuse(struct answers *answers, int r)
{
    assert_true(r == TL_ERR_CORRUPT || r == TL_ERR_IO);
    answers->refused = true;
    buf_byte(&answers->text, '?');
}

static void note_result(struct answers *answers, int r)
{
    if (r == STORE_NOT_FOUND)
        buf_byte(&answers->text, '-');
    else if (r != 0)
        refuse(answers, r);
}

static void ask_for_key(struct store *store, enum store_space space, tl_ts ts, int number, struct answers *answers)
{
    struct store_value value;
    char key[32];
    snprintf(key, sizeof key, "key-%d", number);
    int r = store_get(store, space, ts, slice_from(key), &value);
    if (r == 0) {
        buf_slice(&answers->text, value.bytes);
        store_value_release(&value);
    }
    note_result(answers, r);
    buf_byte(&answers->text, '\n');
}

static int ask_visit(void *context, struct slice key, struct slice value)
{
    struct answers *answers = context;
    buf_slice(&answers->text, key);
    buf_byte(&answers->text, '=');
    buf_slice(&answers->text, value);
    buf_byte(&answers->text, ',');
    return 0;
}

/* A scan that is refused has returned keys before: only the refusal counts then. */
static void scan(struct store *store, enum store_space space, tl_ts ts, struct answers *answers)
{
    size_t before = answers->text.len;
    int r = store_each(store, space, ts, SLICE_NONE, SLICE_NONE, ask_visit, answers);
    if (r != 0) {
        answers->text.len = before;
        refuse(answers, r);
    }
    buf_byte(&answers->text, '\n');
}

static void ask(struct store *store, struct answers *answers)
{
    static const tl_ts times[] = {150, 250, TL_TS_MAX};
    buf_clear(&answers->text);
    answers->refused = false;
    for (int space = 0; space < SPACE_COUNT; space++)
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
            for (int key = 0; key <= KEYS; key++)
                ask_for_key(store, (enum store_space)space, times[i], key, answers);
            scan(store, (enum store_space)space, times[i], answers);
        }
    note_result(answers, store_checkpoint_record(store, &answers->text));
    for (uint32_t i = 0; i < PIECES; i++) {
        buf_byte(&answers->text, '\n');
        note_result(answers, store_get_piece(store, (struct store_piece){7, i}, &answers->text));
    }
}

/* Returns: whether the answers are the expected ones, except for those that were refused. */
static bool agree(const struct answers *answers, struct slice expected)
{
    struct slice rest = buf_as_slice(&answers->text);
    for (bool more = true; more;) {
        size_t len = slice_find_byte(rest, '\n'), expected_len = slice_find_byte(expected, '\n');
        struct slice line = slice_make(rest.data, len), expected_line = slice_make(expected.data, expected_len);
        if (!slice_is(line, "?") && !slice_equal(line, expected_line))
            return false;
        more = len < rest.len && expected_len < expected.len;
        if ((len < rest.len) != (expected_len < expected.len))
            return false;
        rest = slice_from_offset(rest, more ? len + 1 : len);
        expected = slice_from_offset(expected, more ? expected_len + 1 : expected_len);
    }
    return true;
}

struct flips {
    struct fixture *f;
    struct slice empty, before, after; /* the answers without a checkpoint, and as of both */
    size_t refused, verified, without_effect, older;
};

/* For a reader of a failure: the flip that was tried last. */
static char tried[640];

static void copy_file(const char *from, const char *to)
{
    static char bytes[BYTES_MAX];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t len = read(in, bytes, sizeof bytes);
    assert_true(in >= 0 && out >= 0 && len >= 0 && len < (ssize_t)sizeof bytes);
    assert_int_equal(write(out, bytes, (size_t)len), len);
    close(in);
    close(out);
}

static void copy_tree(const char *from, const char *to)
{
    DIR *listing = opendir(from);
    assert_non_null(listing);
    assert_int_equal(mkdir(to, 0700), 0);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        char source[512], target[512];
        snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        if (entry->d_type == DT_REG)
            copy_file(source, target);
        else if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            copy_tree(source, target);
    }
    closedir(listing);
}

static void flip_bit(const char *path, size_t bit)
{
    int fd = open(path, O_RDWR);
    char byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
    byte = (char)(byte ^ 1 << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
    close(fd);
}

/* Opens the directory, which has one wrong bit, verifies it and reads everything in it. */
static void judge(struct flips *flips, const char *directory, bool read_only)
{
    struct store_options options = {.directory = slice_from(directory), .read_only = read_only};
    struct answers answers = {.text = BUF_INIT(BUF_UNLIMITED)};
    struct store *store;
    char *reason = NULL;
    int r = store_open_rocks(&options, &store, &reason);
    if (r < 0) {
        assert_true(r == TL_ERR_CORRUPT || r == TL_ERR_VERSION || r == TL_ERR_IO);
        assert_non_null(reason);
        flips->refused++;
        mem_free(reason);
        return;
    }
    bool sound = store_verify(store, &reason) == 0;
    assert_true(sound == (reason == NULL));
    mem_free(reason);
    ask(store, &answers);
    if (agree(&answers, flips->after)) {
        flips->verified += !sound;
        flips->without_effect += sound && !answers.refused;
        assert_true(!sound || !answers.refused); /* what reads find, the verification finds */
    } else {
        if (!agree(&answers, flips->before) && !agree(&answers, flips->empty))
            fail_msg("wrong answers: %.*s", SLICE_ARG(buf_as_slice(&answers.text)));
        flips->older++;
    }
    store_close(store);
    buf_deinit(&answers.text);
}

static void try_flip(struct flips *flips, const char *path, size_t bit, bool read_only)
{
    const char *directory = flips->f->directory;
    snprintf(tried, sizeof tried, "%.299s, bit %zu, %s", path, bit, read_only ? "read only" : "for writing");
    if (read_only) {
        char whole[512];
        snprintf(whole, sizeof whole, "%s/%.299s", directory, path);
        flip_bit(whole, bit);
        judge(flips, directory, true);
        flip_bit(whole, bit);
    } else {
        char copy[128], whole[512];
        snprintf(copy, sizeof copy, "%s.copy", directory);
        snprintf(whole, sizeof whole, "%s/%.299s", copy, path);
        copy_tree(directory, copy);
        flip_bit(whole, bit);
        judge(flips, copy, false);
        remove_tree(copy);
    }
}

struct file {
    char path[300]; /* relative to the directory */
    size_t len;
};

/* RocksDB reads neither its messages, nor the lock's file, nor the options that it has written down. */
static bool is_read(const char *name)
{
    return strncmp(name, "LOG", 3) != 0 && strcmp(name, "LOCK") != 0 && strncmp(name, "OPTIONS", 7) != 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

static size_t list_files(const struct fixture *f, struct file *files)
{
    static const char *const folders[] = {"", "rocks/"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[600];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", f->directory, folders[i]);
        DIR *listing = opendir(path);
        for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
            snprintf(path, sizeof path, "%s/%s%s", f->directory, folders[i], entry->d_name);
            if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || !is_read(entry->d_name))
                continue;
            assert_true(count < FILES_MAX);
            snprintf(files[count].path, sizeof files->path, "%s%s", folders[i], entry->d_name);
            files[count++].len = (size_t)status.st_size;
        }
        closedir(listing);
    }
    qsort(files, count, sizeof *files, compare_files);
    return count;
}

static size_t counted_bits(const struct file *file)
{
    return 8 * (file->len > 2 * ENDS_BYTES ? 2 * ENDS_BYTES : file->len);
}

/* The bit of a file that has this number among those that count. */
static size_t counted_bit(const struct file *file, size_t number)
{
    size_t skipped = 8 * file->len - counted_bits(file);
    return skipped > 0 && number >= 8 * (size_t)ENDS_BYTES ? number + skipped : number;
}

static void make_store(struct flips *flips, struct answers *empty, struct answers *before, struct answers *after)
{
    struct fixture *f = flips->f;
    must_open(f, false);
    ask(f->store, empty);
    write_version(f->store, 100, false);
    write_version(f->store, 200, false);
    settle(f->store, "the record of the first checkpoint");
    ask(f->store, before);
    write_version(f->store, 300, true);
    settle(f->store, "the record of the second checkpoint");
    ask(f->store, after);
    assert_false(empty->refused || before->refused || after->refused);
    flips->empty = buf_as_slice(&empty->text);
    flips->before = buf_as_slice(&before->text);
    flips->after = buf_as_slice(&after->text);
    store_close(f->store);
    f->store = NULL;
}

static void test_any_flipped_bit_is_refused_or_without_effect(void **state)
{
    struct flips flips = {.f = *state};
    struct answers empty = {.text = BUF_INIT(BUF_UNLIMITED)}, before = empty, after = empty;
    struct file files[FILES_MAX];
    const char *seed = getenv("TIDELOCK_FIRST_SEED");
    size_t bits = 0, tries = 0;
    make_store(&flips, &empty, &before, &after);
    size_t count = list_files(flips.f, files);
    for (size_t i = 0; i < count; i++)
        bits += counted_bits(&files[i]);
    size_t stride = getenv("TIDELOCK_TEST_LONG") != NULL ? LONG_STRIDE : bits / SAMPLE;
    size_t bit = seed == NULL ? 0 : strtoull(seed, NULL, 10) % stride;
    for (size_t i = 0; i < count; bit -= counted_bits(&files[i++]))
        for (; bit < counted_bits(&files[i]); bit += stride)
            try_flip(&flips, files[i].path, counted_bit(&files[i], bit), ++tries % SAMPLE_WRITABLE != 0);
    tried[0] = '\0';
    assert_int_equal(tries, flips.refused + flips.verified + flips.without_effect + flips.older);
    print_message("%zu of %zu bits: %zu refused, %zu found by the verification, %zu without effect, %zu older\n", tries,
                  bits, flips.refused, flips.verified, flips.without_effect, flips.older);
    assert_true(flips.refused > 0 && flips.verified > 0);
    assert_true(flips.refused + flips.verified > tries / 2);
    buf_deinit(&empty.text);
    buf_deinit(&before.text);
    buf_deinit(&after.text);
}

/* Returns: the number of the bit after which the block of a table's properties ends; 0: it is no table. */
static size_t end_of_properties(const char *path)
{
    static const char name[] = "rocksdb.properties";
    static char bytes[BYTES_MAX];
    uint64_t offset, len;
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof bytes);
    close(fd);
    assert_true(size >= 0 && size < BYTES_MAX);
    const char *found = memmem(bytes, (size_t)size, name, strlen(name));
    if (found == NULL || strstr(path, ".sst") == NULL)
        return 0;
    found += strlen(name); /* offset and length of the block follow */
    struct slice rest = slice_make(found, (size_t)(bytes + size - found));
    assert_true(slice_take_varint(&rest, &offset) && slice_take_varint(&rest, &len));
    return (size_t)(offset + len) * 8;
}

/* RocksDB built with assertions, as Debian's is, would end the process at this bit of a table. */
static void test_mark_of_hash_index_in_properties_is_refused(void **state)
{
    struct flips flips = {.f = *state};
    struct answers empty = {.text = BUF_INIT(BUF_UNLIMITED)}, before = empty, after = empty;
    struct file files[FILES_MAX];
    size_t tables = 0;
    make_store(&flips, &empty, &before, &after);
    size_t count = list_files(flips.f, files);
    for (size_t i = 0; i < count; i++) {
        char whole[512];
        snprintf(whole, sizeof whole, "%s/%.299s", flips.f->directory, files[i].path);
        size_t end = end_of_properties(whole);
        if (end == 0)
            continue;
        try_flip(&flips, files[i].path, end - 1, true);
        try_flip(&flips, files[i].path, end - 1, false);
        tables++;
    }
    tried[0] = '\0';
    assert_true(tables > SPACE_COUNT);
    assert_int_equal(flips.refused, 2 * tables);
    buf_deinit(&empty.text);
    buf_deinit(&before.text);
    buf_deinit(&after.text);
}

static int teardown_flips(void **state)
{
    if (tried[0] != '\0')
        print_error("the last flip: %s\n", tried);
    return teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_flipped_bit_is_refused_or_without_effect, setup, teardown_flips),
        cmocka_unit_test_setup_teardown(test_mark_of_hash_index_in_properties_is_refused, setup, teardown_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
