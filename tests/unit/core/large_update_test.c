/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the core does not execute an update that reads much if its submitter can: it fails with `script_long` before it
 * is begun, and the result of the submitter has the effect that the update has in the core (update.h).
 * Method: updates of a document with thousands of members, by a merge, a script and an upsert, in each form in which
 * they come, and as commands of version 25, which the core executes; sources and work are compared.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/documents/doc.h"
#include "core/documents/parse_ahead.h"
#include "core/documents/update.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

enum { OLDER = COMMAND_SINCE_UPDATES_LEFT - 1, MEMBERS = 40000, GRANT = 50000 };

/* Returns: {"o":{"m0000000":0,...}}, larger than what an update reads in the core, with a NUL after it. */
static struct slice members(struct arena *arena)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    buf_lit(&buf, "{\"o\":{\"m\":0");
    for (int i = 0; i < MEMBERS; i++)
        buf_printf(&buf, ",\"m%07d\":%d", i, i);
    buf_lit(&buf, "}}");
    buf_byte(&buf, '\0');
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    assert_true(text.len > UPDATE_READ_BYTES_MAX);
    return slice_make(text.data, text.len - 1);
}

static void open_with_document(struct core_fixture *fixture, struct arena *arena)
{
    fixture_open(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "u",
                          "{\"mappings\":{\"properties\":{\"o\":{\"type\":\"object\",\"enabled\":false}}}}");
    assert_int_equal(fixture_index(fixture, "u", "1", members(arena).data)->outcome, WRITE_CREATED);
}

static struct command *updates(struct core_fixture *fixture, const struct write_update *update, size_t count)
{
    struct command *command = fixture_write_command(fixture, count);

    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = fixture_item(WRITE_UPDATE, "u", "", i == 0 ? "1" : "small", NULL);
        command->write.items[i].update = update;
    }
    return command;
}

static const struct write_result *run(struct core_fixture *fixture, const struct write_update *update, unsigned version)
{
    struct command *command = updates(fixture, update, 1);

    command->version = version;
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    return command->write.results;
}

/* Whether the core has left it, without an effect. */
static bool is_left(const struct write_result *result)
{
    assert_true(!result->update_large || (result->script_long && result->outcome == WRITE_FAILED));
    return result->update_large;
}

/* Runs an update of document 1 as its submitter does. Returns: its result, in `arena`. */
static struct update_ready run_outside(struct core_fixture *fixture, const struct write_update *given,
                                       struct arena *arena)
{
    struct write_update alone = *given;
    struct write_item item = fixture_item(WRITE_UPDATE, "u", "", "1", NULL);
    struct view view = core__view(fixture->core, NULL);
    const struct catalog_index *index = catalog_index(fixture->core->catalog, SLICE_LIT("u"));
    const struct mapping_type *type = mapping_type(index->mapping, SLICE_LIT("_doc"));
    struct doc doc;
    struct problem problem;

    alone.script_steps = 0;
    item.update = &alone;
    int r = doc_get(&view, index->number, type->number, item.id, &doc);
    assert_true(r == 0 || r == DOC_NOT_FOUND);
    struct update update = {.dialect = fixture->dialect,
                            .item = &item,
                            .index = index->name,
                            .type = SLICE_LIT("_doc"),
                            .old = r == 0 ? &doc : NULL,
                            .mapped = type,
                            .catalog = fixture->core->catalog,
                            .limits = fixture->core->limits.script,
                            .arena = arena,
                            .scratch = arena};
    assert_int_equal(update_run(&update, &problem), 0);
    struct update_ready ready = update_result(&update);
    ready.source = arena_copy(arena, ready.source);
    if (r == 0)
        doc_release(&doc);
    return ready;
}

/* Which updates are left: those that read much, where the submitter has granted less than the core may take. */
static void test_update_that_reads_much_is_left(void **state)
{
    static const struct {
        struct write_update update;
        bool left;
    } cases[] = {
        {{.doc = SLICE_LIT("{\"n\":1}"), .script_steps = GRANT}, true},
        {{.doc = SLICE_LIT("{\"n\":1}"), .script_steps = GRANT, .detect_noop = true}, true},
        {{.script_source = SLICE_LIT("ctx._source.n = 1"), .script_steps = GRANT}, true},
        {{.doc = SLICE_LIT("{\"n\":1}"), .script_steps = UPDATE_COMMAND_STEPS_MAX}, false},
        {{.doc = SLICE_LIT("{\"n\":1}")}, false},
    };
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    (void)state;

    open_with_document(&fixture, &arena);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t merged, digest = fixture_digest(&fixture);
        assert_int_equal(is_left(run(&fixture, &cases[i].update, COMMAND_CODEC_VERSION)), cases[i].left);
        uint64_t left = fixture.core->work;
        assert_int_equal(fixture_digest(&fixture) == digest, cases[i].left);
        assert_false(is_left(run(&fixture, &cases[i].update, OLDER)));
        merged = fixture.core->work;
        if (cases[i].left && cases[i].update.doc.data != NULL) /* the read of the record counts alone */
            assert_true(left < merged / 8);
        fixture_index(&fixture, "u", "1", members(&arena).data);
    }
    fixture_index(&fixture, "u", "1", "{\"o\":{}}");
    assert_false(is_left(run(&fixture, &cases[0].update, COMMAND_CODEC_VERSION)));
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"o\":{},\"n\":1}");
    arena_deinit(&arena);
    fixture_close(&fixture);
}

/* An upsert counts, too. An update that is refused at once is not left: of no document, or of none with a source. */
static void test_large_upsert_is_left(void **state)
{
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    (void)state;

    open_with_document(&fixture, &arena);
    struct write_update update = {.doc = SLICE_LIT("{}"), .upsert = members(&arena), .script_steps = GRANT};
    struct write_update missing = {.doc = members(&arena), .script_steps = GRANT};
    fixture_delete(&fixture, "u", "1");
    assert_int_equal(run(&fixture, &missing, COMMAND_CODEC_VERSION)->problem.type, PROBLEM_DOCUMENT_MISSING);
    assert_true(is_left(run(&fixture, &update, COMMAND_CODEC_VERSION)));
    update.ready = run_outside(&fixture, &update, &arena);
    assert_int_equal(run(&fixture, &update, COMMAND_CODEC_VERSION)->outcome, WRITE_CREATED);
    assert_memory_equal(fixture_source(&fixture, "u", "1"), members(&arena).data, 1000);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "hidden", "{\"mappings\":{\"_source\":{\"enabled\":false}}}");
    fixture_index(&fixture, "hidden", "1", "{}");
    update.doc = members(&arena);
    struct command *command = updates(&fixture, &update, 1);
    update.ready.given = false;
    command->write.items[0].index = SLICE_LIT("hidden");
    fixture_run(&fixture, command, 1);
    assert_int_equal(command->write.results[0].problem.type, PROBLEM_DOCUMENT_SOURCE_MISSING);
    arena_deinit(&arena);
    fixture_close(&fixture);
}

/*
 * The submitter's result has the effect of the update in the core, with less work, whether or not it is parsed ahead.
 * It is of no use for another version of the document.
 */
static void test_ready_result_is_that_of_the_core(void **state)
{
    static const struct write_update merges[] = {
        {.doc = SLICE_LIT("{\"o\":{\"m0000007\":\"x\"},\"n\":1}"), .script_steps = GRANT},
        {.doc = SLICE_LIT("{\"o\":{\"m\":0}}"), .script_steps = GRANT, .detect_noop = true},
    };
    struct arena arena = ARENA_INIT;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(merges); i++) {
        uint64_t digests[3], work[3];
        for (int form = 0; form < 3; form++) {
            struct core_fixture fixture;
            open_with_document(&fixture, &arena);
            struct write_update update = merges[i];
            if (form > 0)
                assert_true(is_left(run(&fixture, &update, COMMAND_CODEC_VERSION)));
            else
                fixture.now++; /* so that the document gets the same timestamp */
            if (form > 0)
                update.ready = run_outside(&fixture, &update, &arena);
            else
                update.script_steps = 0;
            struct command *command = updates(&fixture, &update, 1);
            if (form == 2)
                command_parse_ahead(command);
            assert_int_equal(command->write.items[0].parsed != NULL, form == 2 && i == 0);
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->write.results[0].outcome, i == 0 ? WRITE_UPDATED : WRITE_NOOP);
            work[form] = fixture.core->work;
            digests[form] = fixture_digest(&fixture);
            if (form == 1 && i == 0) {
                const struct write_result *stale = run(&fixture, &update, COMMAND_CODEC_VERSION);
                assert_true(stale->script_long && !stale->update_large);
                assert_int_equal(stale->problem.type, PROBLEM_VERSION_CONFLICT);
            }
            fixture_close(&fixture);
        }
        assert_true(digests[1] == digests[0] && digests[2] == digests[0]);
        assert_true(work[1] < work[0] && work[2] == work[1]);
    }
    arena_deinit(&arena);
}

/* In a bulk that allows it, the item and those after it are postponed; an atomic one fails, without an effect. */
static void test_bulk_postpones_what_is_left(void **state)
{
    struct write_update update = {.doc = SLICE_LIT("{\"n\":1}"), .script_steps = GRANT, .script_postpones = true};
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    (void)state;

    open_with_document(&fixture, &arena);
    fixture_index(&fixture, "u", "small", "{}");
    for (int atomic = 0; atomic < 2; atomic++) {
        struct command *command = updates(&fixture, &update, 2);
        command->write.atomic = atomic == 1;
        fixture_run(&fixture, command, 1);
        assert_true(is_left(&command->write.results[0]));
        assert_int_equal(command->write.postponed_count, atomic ? 0 : 2);
        assert_int_equal(command->write.rolled_back, atomic == 1);
        assert_string_equal(fixture_source(&fixture, "u", "small"), "{}");
    }
    arena_deinit(&arena);
    fixture_close(&fixture);
}

/*
 * A document that is replaced or updated is one operation with the record that is read, also one so large that the read
 * counts as more than a step: the fixture checks that.
 */
static void test_read_of_large_document_is_part_of_its_write(void **state)
{
    enum { BYTES = 36 << 20 };
    const struct write_update update = {.doc = SLICE_LIT("{\"n\":1}"), .script_steps = GRANT};
    struct core_fixture fixture;
    char *text = malloc(BYTES);
    (void)state;

    assert_non_null(text);
    memset(text, 'x', BYTES);
    memcpy(text, "{\"o\":\"", 6);
    memcpy(text + BYTES - 3, "\"}", 3);
    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "u",
                          "{\"mappings\":{\"properties\":{\"o\":{\"type\":\"object\",\"enabled\":false}}}}");
    assert_int_equal(fixture_index(&fixture, "u", "1", text)->outcome, WRITE_CREATED);
    assert_int_equal(fixture_index(&fixture, "u", "1", text)->outcome, WRITE_UPDATED);
    assert_true(is_left(run(&fixture, &update, COMMAND_CODEC_VERSION)));
    assert_int_equal(fixture_delete(&fixture, "u", "1")->outcome, WRITE_DELETED);
    assert_true(metric_read(&core_metrics(fixture.core)->steps_over) > 0);
    fixture_close(&fixture);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_that_reads_much_is_left),
        cmocka_unit_test(test_large_upsert_is_left),
        cmocka_unit_test(test_ready_result_is_that_of_the_core),
        cmocka_unit_test(test_bulk_postpones_what_is_left),
        cmocka_unit_test(test_read_of_large_document_is_part_of_its_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
