/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte form of commands. Commands of each type, complete or random, are unchanged after a round
 * trip. Each truncation and each flipped bit is refused, or is the canonical form of another
 * command. Commands of earlier versions can be read.
 *
 * usage: core_command_codec_test FOLDER [--write]
 *
 * FOLDER/VERSION/NAME is a command of that version, and NAME.txt its inputs as text. --write
 * creates missing files of this version.
 */
#include "../../lib/arguments.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "../../lib/command_sample.h"
#include "base/check.h"
#include "core/command/command_codec.h"
#include "core/step/core.h"
#include "core/step/save.h"

static const char *folder;
static bool writes;

static struct slice encode(const struct command *command, struct buf *buf)
{
    buf_clear(buf);
    command_encode(command, buf);
    return buf_as_slice(buf);
}

static void assert_same(const struct command *a, const struct command *b)
{
    struct buf line = BUF_INIT(BUF_UNLIMITED);

    if (!sample_same(a, b, &line))
        fail_msg("%s: %.*s is lost", command_name(a->type), SLICE_ARG(buf_as_slice(&line)));
    buf_deinit(&line);
}

static void check_round_trip(enum command_type type, struct rng *rng)
{
    struct command *command = sample_command(type, rng), *decoded;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED);

    assert_int_equal(command_decode(encode(command, &bytes), &decoded), 0);
    assert_int_equal(decoded->type, type);
    assert_same(command, decoded);
    command_free(command);
    assert_true(slice_equal(buf_as_slice(&bytes), encode(decoded, &again)));
    command_free(decoded);
    buf_deinit(&bytes);
    buf_deinit(&again);
}

static void test_command_codec_round_trips_every_type(void **state)
{
    struct rng rng;

    (void)state;
    rng_init(&rng, 1);
    for (enum command_type type = 0; type < COMMAND_TYPE_COUNT; type++) {
        if (command_opcode(type) == 0)
            continue;
        check_round_trip(type, NULL);
        for (int i = 0; i < 300; i++)
            check_round_trip(type, &rng);
    }
}

/* Checks that bytes that decode are canonical in their version. */
static void check_canonical(struct slice bytes)
{
    struct command *decoded;
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    int r = command_decode(bytes, &decoded);

    if (r != 0) {
        assert_true(r == TL_ERR_CORRUPT || r == COMMAND_CODEC_NEWER);
        return;
    }
    if (bytes.data[0] == COMMAND_CODEC_VERSION)
        assert_true(slice_equal(bytes, encode(decoded, &again)));
    command_free(decoded);
    buf_deinit(&again);
}

/* Copies the bytes to a buffer of exact size, so that a sanitizer detects a read beyond it. */
static void check_cut(struct slice bytes, size_t len)
{
    char *exact = mem_alloc(len + (len == 0));
    struct command *decoded;

    memcpy(exact, bytes.data, len);
    assert_int_equal(command_decode(slice_make(exact, len), &decoded), TL_ERR_CORRUPT);
    mem_free(exact);
}

static void check_damage(const struct command *command)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct slice bytes = encode(command, &buf);

    for (size_t len = 0; len < bytes.len; len++)
        check_cut(bytes, len);
    for (size_t bit = 0; bit < 8 * bytes.len; bit++) {
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ 1 << bit % 8);
        check_canonical(bytes);
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ 1 << bit % 8);
    }
    buf_byte(&buf, 0);
    check_canonical(buf_as_slice(&buf));
    buf_deinit(&buf);
}

static void test_command_codec_refuses_damage_or_decodes_canonically(void **state)
{
    struct rng rng;

    (void)state;
    rng_init(&rng, 2);
    for (enum command_type type = 0; type < COMMAND_TYPE_COUNT; type++)
        for (int i = 0; i < 8 && command_opcode(type) != 0; i++) {
            struct command *command = sample_command(type, i == 0 ? NULL : &rng);
            check_damage(command);
            command_free(command);
        }
}

static void assert_refused(const char *bytes, size_t len, int expected)
{
    struct command *decoded = NULL;

    assert_int_equal(command_decode(slice_make(bytes, len), &decoded), expected);
}

/* A decoded command has the rules of its version. */
static void test_command_codec_marks_older_versions(void **state)
{
    struct command *command = command_new(COMMAND_TICK, DIALECT_7), *decoded;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    assert_int_equal(command->version, COMMAND_CODEC_VERSION);
    command_encode(command, &bytes);
    for (int version = 6; version <= COMMAND_CODEC_VERSION; version++) {
        bytes.data[0] = (char)version;
        assert_int_equal(command_decode(buf_as_slice(&bytes), &decoded), 0);
        assert_int_equal(decoded->version, version);
        command_free(decoded);
    }
    command_free(command);
    buf_deinit(&bytes);
}

static void test_command_codec_refuses_invalid_bytes(void **state)
{
    (void)state;
    assert_refused("", 0, TL_ERR_CORRUPT);
    assert_refused("\x00\x1c\x00\x00", 4, TL_ERR_CORRUPT);      /* no version */
    assert_refused("\x1b\x1c\x00\x00", 4, COMMAND_CODEC_NEWER); /* newer version */
    assert_refused("\x01\x00\x00\x00", 4, TL_ERR_CORRUPT);      /* no code */
    assert_refused("\x01\x7f\x00\x00", 4, TL_ERR_CORRUPT);      /* unknown code */
    assert_refused("\x01\x1c\x02\x00", 4, TL_ERR_CORRUPT);      /* unknown dialect */
    /* Number that is not in its shortest form */
    assert_refused("\x01\x9b\x00\x00\x00", 5, TL_ERR_CORRUPT);
    assert_refused("\x01\x1c\x00\x80\x00", 5, TL_ERR_CORRUPT);
    /* A write with more items than bytes. */
    assert_refused("\x01\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 19, TL_ERR_CORRUPT);
    /* A slice longer than all memory. */
    assert_refused("\x01\x08\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15, TL_ERR_CORRUPT);
}

static void test_command_opcodes_are_unique(void **state)
{
    (void)state;
    for (enum command_type a = 0; a < COMMAND_TYPE_COUNT; a++)
        for (enum command_type b = 0; b < a; b++)
            /* Not logged */
            assert_true(command_opcode(a) != command_opcode(b) || command_is(a, COMMAND_UNLOGGED));
}

/* --- What decodes may be applied ---------------------------------------------------------------------------------- */

static void free_completed(struct effects *effects)
{
    while (!list_empty(&effects->completed)) {
        struct command *command = list_entry(effects->completed.next, struct command, link);
        list_remove(&command->link);
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
        command_free(command);
    }
}

/* Applies random commands of all types, mostly with a few names, so that some succeed. */
static void apply_any(struct core *core, struct rng *rng, int count)
{
    struct effects effects;
    uint64_t clock = 0;

    effects_init(&effects);
    for (int i = 0; i < count; i++) {
        enum command_type type = (enum command_type)rng_below(rng, COMMAND_TYPE_COUNT);
        if (rng_below(rng, 3) == 0)
            type = COMMAND_WRITE;
        if (command_opcode(type) == 0)
            continue;
        struct command *command = sample_command(type, rng);
        command->ts = core_last_ts(core) + 1 + rng_below(rng, 2) * rng_below(rng, TL_SECOND);
        command->clock = clock += rng_below(rng, TL_SECOND);
        assert_int_equal(core_step(core, command, &effects), 0);
        free_completed(&effects);
    }
    core_stop(core, &effects);
    free_completed(&effects);
}

static void test_core_applies_any_decoded_command(void **state)
{
    struct core_limits limits = core_limits_default();
    struct rng rng;

    (void)state;
    limits.script.steps_max = 10000;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct store *store = store_open_mem();
        struct core *core;
        struct buf saved = BUF_INIT(BUF_UNLIMITED);
        uint64_t before, after;
        rng_init(&rng, seed);
        assert_int_equal(core_open(store, &limits, &core), 0);
        apply_any(core, &rng, 150);
        assert_int_equal(core_digest(core, &before), 0);
        core_save(core, &saved);
        core_close(core);
        assert_int_equal(core_load(store, &limits, buf_as_slice(&saved), NULL, &core), 0);
        buf_deinit(&saved);
        assert_int_equal(core_digest(core, &after), 0);
        assert_true(before == after);
        core_close(core);
        store_close(store);
    }
}

/* --- Versions that were ------------------------------------------------------------------------------------------- */

static bool read_file(const char *name, struct buf *bytes)
{
    char part[4096];
    size_t got;
    FILE *file = fopen(name, "rb");

    if (file == NULL)
        return false;
    while ((got = fread(part, 1, sizeof(part), file)) > 0)
        buf_append(bytes, part, got);
    fclose(file);
    return true;
}

static void write_file(const char *name, struct slice bytes)
{
    FILE *file = fopen(name, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.len, file), bytes.len);
    assert_int_equal(fclose(file), 0);
}

static void name_file(char *name, size_t size, int version, enum command_type type, const char *end)
{
    int len = snprintf(name, size, "%s/%d/%s%s", folder, version, command_name(type), end);
    assert_true(len > 0 && (size_t)len < size);
}

static void check_golden(int version, enum command_type type)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED), text = BUF_INIT(BUF_UNLIMITED), printed = BUF_INIT(BUF_UNLIMITED);
    struct command *command;
    char name[4096];

    name_file(name, sizeof(name), version, type, "");
    if (!read_file(name, &bytes)) {
        if (version == COMMAND_CODEC_VERSION)
            fail_msg("%s is not there: --write makes it", name);
        return;
    }
    name_file(name, sizeof(name), version, type, ".txt");
    assert_true(read_file(name, &text));
    assert_int_equal(command_decode(buf_as_slice(&bytes), &command), 0);
    sample_print(command, &printed);
    if (!slice_equal(buf_as_slice(&printed), buf_as_slice(&text)))
        fail_msg("%s: now it says\n%.*s", name, SLICE_ARG(buf_as_slice(&printed)));
    if (version == COMMAND_CODEC_VERSION) {
        buf_clear(&printed);
        assert_true(slice_equal(buf_as_slice(&bytes), encode(command, &printed)));
    }
    command_free(command);
    buf_deinit(&bytes);
    buf_deinit(&text);
    buf_deinit(&printed);
}

static void write_golden(enum command_type type)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED), text = BUF_INIT(BUF_UNLIMITED);
    struct command *command = sample_command(type, NULL);
    char name[4096];

    name_file(name, sizeof(name), COMMAND_CODEC_VERSION, type, "");
    if (!read_file(name, &bytes)) {
        write_file(name, encode(command, &bytes));
        sample_print(command, &text);
        name_file(name, sizeof(name), COMMAND_CODEC_VERSION, type, ".txt");
        write_file(name, buf_as_slice(&text));
    }
    command_free(command);
    buf_deinit(&bytes);
    buf_deinit(&text);
}

static void test_command_codec_reads_every_version(void **state)
{
    (void)state;
    for (enum command_type type = 0; type < COMMAND_TYPE_COUNT; type++) {
        if (command_opcode(type) == 0)
            continue;
        if (writes)
            write_golden(type);
        for (int version = 1; version <= COMMAND_CODEC_VERSION; version++)
            check_golden(version, type);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_codec_round_trips_every_type),
        cmocka_unit_test(test_command_codec_refuses_damage_or_decodes_canonically),
        cmocka_unit_test(test_command_codec_marks_older_versions),
        cmocka_unit_test(test_command_codec_refuses_invalid_bytes),
        cmocka_unit_test(test_command_opcodes_are_unique),
        cmocka_unit_test(test_core_applies_any_decoded_command),
        cmocka_unit_test(test_command_codec_reads_every_version),
    };

    const struct argument arguments[] = {{"FOLDER", .text = &folder}, {"--write", .flag = &writes}, {0}};
    arguments_take(argc, argv, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
