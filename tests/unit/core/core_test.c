/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for documents, each tested through core_step() on the in-memory store, and after opening
 * the core again.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"
#include "../../lib/maintenance.h"

#include <stdio.h>

#include "base/alloc.h"
#include "core/command/command_codec.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/json.h"
#include "mapping/document.h"
#include "mapping/entry.h"
#include "mapping/mapping.h"

static void test_version_counts_create_and_update(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    struct write_result *result = fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    assert_int_equal(result->outcome, WRITE_CREATED);
    assert_int_equal(result->version, 1);
    assert_int_equal(result->seq_no, 0);
    assert_slice_equal(result->index, "fs");
    assert_slice_equal(result->type, "_doc");
    result = fixture_index(&fixture, "fs", "1", "{\"n\":2}");
    assert_int_equal(result->outcome, WRITE_UPDATED);
    assert_int_equal(result->version, 2);
    assert_int_equal(result->seq_no, 1);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"n\":2}");
    assert_int_equal(fixture_count(&fixture, "fs"), 1);
    fixture_close(&fixture);
}

/*
 * A deleted document's version counts until maintenance advances the horizon, which depends on the
 * clock and not on timestamps.
 */
static void test_version_continues_across_delete_until_maintenance(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    size_t removed;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{}");
    assert_int_equal(fixture_delete(&fixture, "fs", "1")->version, 2);
    assert_null(fixture_source(&fixture, "fs", "1"));
    assert_int_equal(fixture_delete(&fixture, "fs", "1")->outcome, WRITE_NOT_FOUND);
    assert_int_equal(fixture.last->write.results->version, 3);
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->version, 4);
    assert_int_equal(fixture_delete(&fixture, "fs", "1")->version, 5);

    command = fixture_write_command(&fixture, 1);
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{}");
    fixture_run(&fixture, command, 3600 * TL_SECOND);
    assert_int_equal(command->write.results->version, 6);
    assert_int_equal(fixture_index(&fixture, "fs", "2", "{}")->version, 1);
    assert_int_equal(fixture_delete(&fixture, "fs", "1")->version, 7);
    assert_int_equal(fixture_delete(&fixture, "fs", "2")->version, 2);
    assert_int_equal(run_maintenance(fixture.core, fixture.store, fixture.now += CORE_TOMBSTONE_US + 1, 1, &removed),
                     0);
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->version, 1);
    fixture_reopen(&fixture); /* one of the two is still stored, but does not count any more */
    assert_int_equal(fixture_index(&fixture, "fs", "2", "{}")->version, 1);
    fixture_close(&fixture);
}

static void put_gc_deletes(struct core_fixture *fixture, const char *value)
{
    struct command *command = command_new(COMMAND_SETTINGS_PUT, DIALECT_7);
    struct buf body = BUF_INIT(BUF_UNLIMITED);

    buf_printf(&body, "{\"index.gc_deletes\":%s}", value);
    command->index.name = SLICE_LIT("fs");
    command->index.body = arena_copy(&command->arena, buf_as_slice(&body));
    buf_deinit(&body);
    fixture_run(fixture, command, 1);
    assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
    fixture_reopen(fixture);
}

/* Returns: the version that a document has which is indexed and deleted, and indexed again `us` later. */
static int64_t version_after_delete(struct core_fixture *fixture, const char *id, uint64_t us)
{
    fixture_index(fixture, "fs", id, "{}");
    int64_t deleted = fixture_delete(fixture, "fs", id)->version;
    fixture->now += us;
    int64_t version = fixture_index(fixture, "fs", id, "{}")->version;
    assert_true(version == 1 || version == deleted + 1);
    return version;
}

/* index.gc_deletes says how long the version of a delete counts, for commands since it has an effect. */
static void test_gc_deletes(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "x", "{}");
    put_gc_deletes(&fixture, "\"5s\"");
    assert_int_equal(version_after_delete(&fixture, "a", 4 * TL_SECOND), 3);
    assert_int_equal(version_after_delete(&fixture, "a", 6 * TL_SECOND), 1);
    struct command *older = fixture_write_command(&fixture, 1);
    older->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "x", "{}");
    older->version = COMMAND_SINCE_GC_DELETES - 1;
    fixture_delete(&fixture, "fs", "x");
    fixture_run(&fixture, older, 6 * TL_SECOND);
    assert_int_equal(older->write.results->version, 3);

    put_gc_deletes(&fixture, "\"-1\"");
    assert_int_equal(version_after_delete(&fixture, "a", 1), 1);
    struct command *bulk = fixture_write_command(&fixture, 3);
    bulk->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "b", "{}");
    bulk->write.items[1] = fixture_item(WRITE_DELETE, "fs", "", "b", "");
    bulk->write.items[2] = fixture_item(WRITE_INDEX, "fs", "", "b", "{}");
    fixture_run(&fixture, bulk, 1);
    assert_int_equal(bulk->write.results[1].version, 2);
    assert_int_equal(bulk->write.results[2].version, 1);

    put_gc_deletes(&fixture, "\"0s\"");
    assert_int_equal(version_after_delete(&fixture, "a", 1), 1);
    put_gc_deletes(&fixture, "null");
    assert_int_equal(version_after_delete(&fixture, "a", 6 * TL_SECOND), 4);
    put_gc_deletes(&fixture, "\"106751d\""); /* the longest; timestamps have room for it */
    assert_int_equal(version_after_delete(&fixture, "a", 3600 * TL_SECOND), 7);
    fixture_close(&fixture);
}

/* A delete whose version counts no longer does not count again by a longer time. */
static void test_gc_deletes_is_no_way_back(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "a", "{}");
    fixture_index(&fixture, "fs", "b", "{}");
    put_gc_deletes(&fixture, "\"5s\"");
    fixture_delete(&fixture, "fs", "a");
    fixture.now += 6 * TL_SECOND;
    fixture_delete(&fixture, "fs", "b");
    put_gc_deletes(&fixture, "\"1h\"");
    assert_int_equal(fixture_index(&fixture, "fs", "a", "{}")->version, 1);
    fixture_delete(&fixture, "fs", "a");
    put_gc_deletes(&fixture, "\"-1\"");
    put_gc_deletes(&fixture, "null");
    assert_int_equal(fixture_index(&fixture, "fs", "a", "{}")->version, 1);
    assert_int_equal(fixture_index(&fixture, "fs", "b", "{}")->version, 1);
    fixture_close(&fixture);
}

/* Runs maintenance. Returns: the keys that it removed. */
static size_t maintained(struct core_fixture *fixture, uint64_t us)
{
    size_t removed = 0;

    fixture->now += us;
    assert_int_equal(run_maintenance(fixture->core, fixture->store, fixture->now, 1000, &removed), 0);
    return removed;
}

/*
 * A delete that counts for long is looked at once after 60 s and then at most once an hour, and removed
 * when it counts no longer, or when its index is gone.
 */
static void test_maintenance_keeps_deletes_that_count(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "a", "{}");
    fixture_index(&fixture, "fs", "b", "{}");
    put_gc_deletes(&fixture, "\"3h\"");
    fixture_delete(&fixture, "fs", "a");
    assert_int_equal(fixture_delete(&fixture, "fs", "b")->version, 2);
    assert_int_equal(maintained(&fixture, 61 * TL_SECOND), 2); /* their purge records, which are queued again */
    uint64_t digest = fixture_digest(&fixture);
    fixture_reopen(&fixture);
    assert_int_equal(fixture_digest(&fixture), digest);
    assert_int_equal(maintained(&fixture, TL_SECOND), 0);
    assert_int_equal(maintained(&fixture, 3590 * TL_SECOND), 0);
    assert_int_equal(maintained(&fixture, 30 * TL_SECOND), 2);
    assert_int_equal(maintained(&fixture, TL_SECOND), 0);
    assert_int_equal(fixture_index(&fixture, "fs", "b", "{}")->version, 3);
    assert_int_equal(maintained(&fixture, 3600 * TL_SECOND), 2);
    assert_int_equal(maintained(&fixture, 3600 * TL_SECOND), 2); /* the tombstone and its purge record */
    assert_int_equal(maintained(&fixture, 3600 * TL_SECOND), 0);
    assert_int_equal(fixture_index(&fixture, "fs", "a", "{}")->version, 1);

    fixture_delete(&fixture, "fs", "a");
    assert_int_equal(maintained(&fixture, 61 * TL_SECOND), 1);
    fixture_index_command(&fixture, COMMAND_INDEX_DELETE, "fs", NULL);
    assert_int_equal(maintained(&fixture, 3601 * TL_SECOND), 2);
    fixture_close(&fixture);
}

static void test_maintenance_removes_tombstones_and_deleted_indices(void **state)
{
    struct core_fixture fixture;
    size_t removed = 0;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"a\":1}");
    fixture_index(&fixture, "gone", "1", "{\"a\":1}");
    fixture_delete(&fixture, "fs", "1");
    fixture_index_command(&fixture, COMMAND_INDEX_DELETE, "gone", NULL);
    uint64_t digest = fixture_digest(&fixture);

    assert_int_equal(run_maintenance(fixture.core, fixture.store, fixture.now + 1, 100, &removed), 0);
    assert_int_equal(removed, 0);
    assert_int_equal(fixture_digest(&fixture), digest);
    fixture.now += 61 * TL_SECOND;
    assert_int_equal(run_maintenance(fixture.core, fixture.store, fixture.now, 100, &removed), 0);
    assert_int_equal(removed, 2); /* the tombstone and its purge record */
    assert_int_equal(store_set_history_low(fixture.store, fixture.now), 0);
    assert_int_equal(run_maintenance(fixture.core, fixture.store, ++fixture.now, 100, &removed), 0);
    assert_true(removed >= 4); /* document, entries, counter, purge record */
    assert_int_equal(run_maintenance(fixture.core, fixture.store, ++fixture.now, 100, &removed), 0);
    assert_int_equal(removed, 0);
    digest = fixture_digest(&fixture);
    fixture_reopen(&fixture);
    assert_int_equal(fixture_digest(&fixture), digest);
    fixture_close(&fixture);
}

/* Runs LIMITS with this limit of sessions. Returns: whether it was accepted. */
static bool put_limits(struct core_fixture *fixture, size_t sessions_max)
{
    struct command *command = command_new(COMMAND_LIMITS, DIALECT_7);

    command->limits.limits = core_limits_default();
    command->limits.limits.sessions_max = sessions_max;
    fixture_run(fixture, command, 1);
    return fixture->last->problem.type == PROBLEM_NONE;
}

/* Recorded limits stay, whatever limits the core is opened with; invalid ones are refused. */
static void test_limits_persist_once_recorded(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.limits.sessions_max = 3;
    fixture_reopen(&fixture);
    assert_int_equal(core_limits(fixture.core)->sessions_max, 3);
    assert_false(put_limits(&fixture, 0));
    assert_false(put_limits(&fixture, SIZE_MAX));
    assert_int_equal(core_limits(fixture.core)->sessions_max, 3);
    assert_true(put_limits(&fixture, 5));
    assert_int_equal(core_limits(fixture.core)->sessions_max, 5);
    fixture_reopen(&fixture);
    assert_int_equal(core_limits(fixture.core)->sessions_max, 5);
    struct core_limits recorded = *core_limits(fixture.core), defaults = core_limits_default();
    assert_false(core_limits_equal(&recorded, &defaults));
    recorded.sessions_max = defaults.sessions_max;
    assert_true(core_limits_equal(&recorded, &defaults));
    fixture_close(&fixture);
}

static void test_read_at_earlier_timestamp(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    tl_ts first = fixture.now;
    fixture_index(&fixture, "fs", "1", "{\"n\":2}");
    tl_ts second = fixture.now;
    fixture_delete(&fixture, "fs", "1");
    assert_string_equal(fixture_source_at(&fixture, "fs", "1", first), "{\"n\":1}");
    assert_string_equal(fixture_source_at(&fixture, "fs", "1", second), "{\"n\":2}");
    assert_null(fixture_source(&fixture, "fs", "1"));
    assert_null(fixture_source_at(&fixture, "fs", "1", first - 1));
    fixture_close(&fixture);
}

static struct write_item versioned(const char *id, enum version_type type, int64_t version)
{
    struct write_item item = fixture_item(WRITE_INDEX, "v", "", id, "{}");

    item.version_type = type;
    item.version = version;
    return item;
}

static void test_version_types_are_checked(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(fixture_write_one(&fixture, versioned("1", VERSION_EXTERNAL, 5))->version, 5);
    struct write_result *result = fixture_write_one(&fixture, versioned("1", VERSION_EXTERNAL, 5));
    assert_int_equal(result->conflict, CONFLICT_EXTERNAL);
    assert_int_equal(result->version, 5);
    assert_slice_equal(result->problem.reason,
                       "[1]: version conflict, current version [5] is higher or equal to the one provided [5]");
    assert_int_equal(fixture_write_one(&fixture, versioned("1", VERSION_EXTERNAL_GTE, 5))->version, 5);
    assert_int_equal(fixture_write_one(&fixture, versioned("1", VERSION_EXTERNAL_GTE, 4))->conflict,
                     CONFLICT_EXTERNAL_GTE);
    assert_int_equal(fixture_write_one(&fixture, versioned("1", VERSION_FORCE, 3))->version, 3);
    assert_int_equal(fixture_write_one(&fixture, versioned("1", VERSION_INTERNAL, 3))->version, 4);
    assert_int_equal(fixture_write_one(&fixture, versioned("1", VERSION_INTERNAL, 3))->conflict, CONFLICT_VERSION);
    assert_int_equal(fixture_write_one(&fixture, versioned("2", VERSION_EXTERNAL, INT64_MAX))->version, INT64_MAX);
    assert_int_equal(fixture_index(&fixture, "v", "2", "{}")->outcome, WRITE_FAILED);
    fixture_close(&fixture);
}

static void test_write_checks_if_seq_no(void **state)
{
    struct core_fixture fixture;
    struct write_item item = fixture_item(WRITE_INDEX, "v", "", "1", "{}");
    (void)state;

    fixture_open(&fixture);
    item.if_seq_no = 0;
    item.if_primary_term = 1;
    assert_int_equal(fixture_write_one(&fixture, item)->conflict, CONFLICT_MISSING);
    fixture_index(&fixture, "v", "1", "{}");
    assert_int_equal(fixture_write_one(&fixture, item)->version, 2);
    struct write_result *result = fixture_write_one(&fixture, item);
    assert_int_equal(result->conflict, CONFLICT_SEQ_NO);
    assert_slice_equal(result->problem.reason,
                       "[1]: version conflict, required seqNo [0], primary term [1]. current document "
                       "has seqNo [1] and primary term [1]");
    fixture_close(&fixture);
}

static void test_create_refuses_existing_document(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.dialect = DIALECT_5;
    assert_int_equal(fixture_write_one(&fixture, fixture_item(WRITE_CREATE, "fs", "lock", "global", "{}"))->outcome,
                     WRITE_CREATED);
    struct write_result *result = fixture_write_one(&fixture, fixture_item(WRITE_CREATE, "fs", "lock", "global", "{}"));
    assert_int_equal(result->conflict, CONFLICT_EXISTS);
    assert_slice_equal(result->problem.reason,
                       "[lock][global]: version conflict, document already exists (current version [1])");
    assert_int_equal(result->shard_count, 5);
    assert_non_null(strstr(result->problem.details.data, "\"shard\":\"2\",\"index\":\"fs\""));
    fixture_close(&fixture);
}

static void test_types_have_separate_documents(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.dialect = DIALECT_5;
    fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "fs", "a", "1", "{\"v\":1}"));
    assert_int_equal(fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "fs", "b", "1", "{\"v\":2}"))->version, 1);
    assert_int_equal(fixture_count(&fixture, "fs"), 2);
    assert_int_equal(fixture_write_one(&fixture, fixture_item(WRITE_DELETE, "fs", "a", "1", NULL))->outcome,
                     WRITE_DELETED);
    assert_int_equal(fixture_count(&fixture, "fs"), 1);
    fixture_close(&fixture);
}

static void test_typeless_write_uses_only_type(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.dialect = DIALECT_5;
    fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "fs", "lock", "1", "{\"v\":1}"));
    fixture.dialect = DIALECT_7;
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{\"v\":2}")->version, 2);
    assert_slice_equal(fixture.last->write.results->type, "lock");
    fixture_close(&fixture);
}

/*
 * A typeless write goes to `_doc` if there are several types, and not to a type with an empty name.
 */
static void test_typeless_write_uses_doc_among_several_types(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.dialect = DIALECT_5;
    fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "fs", "a", "1", "{\"v\":1}"));
    fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "fs", "b", "1", "{\"v\":1}"));
    fixture.dialect = DIALECT_7;
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{\"v\":2}")->outcome, WRITE_CREATED);
    assert_slice_equal(fixture.last->write.results->type, "_doc");
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{\"v\":3}")->version, 2);
    fixture_close(&fixture);
}

static void test_bulk_items_see_earlier_ones(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    fixture_open(&fixture);
    command = fixture_write_command(&fixture, 5);
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}");
    command->write.items[1] = fixture_item(WRITE_CREATE, "fs", "", "1", "{\"n\":2}");
    command->write.items[2] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":3}");
    command->write.items[3] = fixture_item(WRITE_DELETE, "fs", "", "1", NULL);
    command->write.items[4] = fixture_item(WRITE_CREATE, "fs", "", "1", "{\"n\":4}");
    fixture_run(&fixture, command, 1);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    assert_int_equal(command->write.results[1].conflict, CONFLICT_EXISTS);
    assert_int_equal(command->write.results[2].version, 2);
    assert_int_equal(command->write.results[3].outcome, WRITE_DELETED);
    assert_int_equal(command->write.results[4].version, 4);
    assert_int_equal(command->write.results[4].seq_no, 3);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"n\":4}");
    assert_int_equal(fixture_count(&fixture, "fs"), 1);
    fixture_close(&fixture);
}

static void test_atomic_bulk_is_all_or_nothing(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "2", "{\"n\":0}");
    uint64_t digest = fixture_digest(&fixture);
    for (int good = 0; good < 2; good++) {
        command = fixture_write_command(&fixture, 3);
        command->write.atomic = true;
        command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}");
        command->write.items[1] = fixture_item(WRITE_INDEX, "new", "", "1", "{\"field\":1}");
        command->write.items[2] = fixture_item(good ? WRITE_INDEX : WRITE_CREATE, "fs", "", "2", "{\"n\":2}");
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.rolled_back, !good);
        if (!good) {
            assert_int_equal(command->write.results[2].conflict, CONFLICT_EXISTS);
            assert_null(fixture_source(&fixture, "fs", "1"));
            assert_int_equal(fixture_digest(&fixture), digest);
        }
    }
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"n\":1}");
    assert_string_equal(fixture_source(&fixture, "fs", "2"), "{\"n\":2}");
    assert_int_equal(fixture_count(&fixture, "new"), 1);
    digest = fixture_digest(&fixture);
    fixture_reopen(&fixture);
    assert_int_equal(fixture_digest(&fixture), digest);
    fixture_close(&fixture);
}

static void test_update_merges_and_detects_noops(void **state)
{
    struct core_fixture fixture;
    struct write_update update = {.doc = SLICE_LIT("{\"a\":2}"), .detect_noop = true, .want_source = true};
    (void)state;

    fixture_open(&fixture);
    struct write_result *result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->outcome, WRITE_FAILED);
    assert_int_equal(result->problem.type, PROBLEM_DOCUMENT_MISSING);
    assert_slice_equal(result->problem.reason, "[_doc][1]: document missing");
    update.doc_as_upsert = true;
    assert_int_equal(fixture_update(&fixture, "u", "1", update)->outcome, WRITE_CREATED);
    result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->outcome, WRITE_NOOP);
    assert_int_equal(result->version, 1);
    assert_slice_equal(result->source, "{\"a\":2}");
    update.detect_noop = false;
    assert_int_equal(fixture_update(&fixture, "u", "1", update)->version, 2);
    update.doc = SLICE_LIT("{\"b\":{\"c\":1}}");
    assert_slice_equal(fixture_update(&fixture, "u", "1", update)->source, "{\"a\":2,\"b\":{\"c\":1}}");
    fixture_close(&fixture);
}

static void test_update_runs_scripts(void **state)
{
    struct core_fixture fixture;
    struct write_update update = {.script_source = SLICE_LIT("ctx._source.n += params.by"),
                                  .script_params = SLICE_LIT("{\"by\":4}"),
                                  .upsert = SLICE_LIT("{\"n\":1}"),
                                  .want_source = true};
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(fixture_update(&fixture, "u", "1", update)->outcome, WRITE_CREATED);
    assert_slice_equal(fixture_update(&fixture, "u", "1", update)->source, "{\"n\":5}");
    update.script_source = SLICE_LIT("ctx.op = 'delete'");
    assert_int_equal(fixture_update(&fixture, "u", "1", update)->outcome, WRITE_DELETED);
    update.scripted_upsert = true;
    update.script_source = SLICE_LIT("ctx._source.n = 9");
    update.upsert = SLICE_NONE;
    assert_int_equal(fixture_update(&fixture, "u", "1", update)->problem.type, PROBLEM_DOCUMENT_MISSING);
    update.upsert = SLICE_LIT("{\"n\":1}");
    struct write_result *result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->outcome, WRITE_CREATED);
    assert_int_equal(result->version, 4);
    assert_slice_equal(result->source, "{\"n\":9}");
    update.script_source = SLICE_LIT("ctx.op = 'none'");
    assert_int_equal(fixture_update(&fixture, "u", "1", update)->outcome, WRITE_NOOP);

    update.script_source = SLICE_NONE;
    update.script_id = SLICE_LIT("inc");
    result = fixture_update(&fixture, "u", "1", update);
    assert_slice_equal(result->problem.reason, "failed to execute script");
    assert_slice_equal(result->problem.caused_by->reason, "unable to find script [inc] in cluster state");
    fixture_object_command(&fixture, COMMAND_SCRIPT_PUT, "inc",
                           "{\"script\":{\"lang\":\"painless\",\"source\":\"ctx._source.n++\"}}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_slice_equal(fixture_update(&fixture, "u", "1", update)->source, "{\"n\":10}");
    fixture_close(&fixture);
}

#define ENDLESS "while (true) {}" /* in Groovy; Painless also limits loop iterations */

/* A script that exceeds the limit of its submitter fails with script_long, and changes nothing. */
static void test_update_fails_script_above_its_limit(void **state)
{
    struct core_fixture fixture;
    struct write_update update = {.script_source = SLICE_LIT("for (int i = 0; i < 900; i++) { ctx._source.n++ }"),
                                  .script_steps = 1000};
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "u", "1", "{\"n\":1}");
    struct write_result *result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->outcome, WRITE_FAILED);
    assert_true(result->script_long);
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":1}");
    update.script_steps = 100000;
    result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->outcome, WRITE_UPDATED);
    assert_false(result->script_long);
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":901}");
    update = (struct write_update){.script_source = SLICE_LIT(ENDLESS), .script_lang = SLICE_LIT("groovy")};
    result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->outcome, WRITE_FAILED);
    assert_false(result->script_long); /* above the core's limit, so a retry is useless */
    fixture_close(&fixture);
}

/* What a script returned outside of the core counts for the document that it read, and for no other. */
static void test_update_takes_over_what_a_script_returned(void **state)
{
    struct core_fixture fixture;
    struct write_update update = {.script_source = SLICE_LIT(ENDLESS), .script_lang = SLICE_LIT("groovy")};
    struct doc doc;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "u", "1", "{\"n\":1,\"m\":1}");
    struct view view = {fixture.store, TL_TS_MAX, NULL};
    struct catalog *catalog = core_catalog(fixture.core);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("u"));
    const struct mapping_type *type = mapping_type(index->mapping, SLICE_LIT(""));
    assert_int_equal(doc_get(&view, index->number, type->number, SLICE_LIT("1"), &doc), 0);
    catalog_unref(catalog);
    update.ready = (struct update_ready){.given = true,
                                         .op = UPDATE_INDEX,
                                         .source = SLICE_LIT("{\"n\":2}"),
                                         .read_ts = doc.ts,
                                         .version = doc.version,
                                         .seq_no = doc.seq_no};
    doc_release(&doc);
    assert_int_equal(fixture_update(&fixture, "u", "1", update)->outcome, WRITE_UPDATED);
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":2}");
    struct write_result *result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->outcome, WRITE_FAILED);
    assert_true(result->script_long);
    assert_int_equal(result->conflict, CONFLICT_SEQ_NO);
    assert_slice_equal(result->problem.reason, "[1]: version conflict, required seqNo [0], primary term [1]. current "
                                               "document has seqNo [1] and primary term [1]");
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":2}");
    update.ready.version = 2; /* another document may have the version again: of a new index, or as the client says */
    assert_true(fixture_update(&fixture, "u", "1", update)->script_long);
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":2}");

    update.ready = (struct update_ready){
        .given = true, .op = UPDATE_CREATE, .source = SLICE_LIT("{\"n\":3}"), .version = -1, .seq_no = SEQ_NO_ANY};
    result = fixture_update(&fixture, "u", "1", update);
    assert_int_equal(result->conflict, CONFLICT_EXISTS);
    assert_true(result->script_long);
    assert_int_equal(fixture_update(&fixture, "u", "2", update)->outcome, WRITE_CREATED);
    assert_string_equal(fixture_source(&fixture, "u", "2"), "{\"n\":3}");
    fixture_close(&fixture);
}

/*
 * Items after an endless script are not started in the same command, but when they are submitted
 * again.
 */
static void expect_items_after_endless_script_are_postponed(unsigned version, const char *reason)
{
    struct core_fixture fixture;
    struct write_update endless = {.script_source = SLICE_LIT(ENDLESS), .script_lang = SLICE_LIT("groovy")};
    struct write_update modest = {.script_source = SLICE_LIT("for (int i = 0; i < 900; i++) { ctx._source.n++ }")};
    struct command *command;

    fixture_open(&fixture);
    fixture_index(&fixture, "u", "1", "{\"n\":1}");
    command = fixture_write_command(&fixture, 40);
    command->version = version;
    for (int i = 0; i < 40; i++) {
        command->write.items[i] = fixture_item(WRITE_UPDATE, "u", NULL, "1", NULL);
        command->write.items[i].update = i == 39 ? &modest : &endless;
    }
    fixture_run(&fixture, command, TL_MS);
    const struct write_result *results = fixture.last->write.results;
    assert_slice_equal(results[0].problem.caused_by->caused_by->reason, reason);
    assert_false(results[0].postponed);
    assert_int_equal(fixture.last->write.postponed_count, 39);
    for (int i = 1; i < 40; i++)
        assert_true(results[i].outcome == WRITE_FAILED && results[i].postponed);
    assert_int_equal(fixture_update(&fixture, "u", "1", modest)->outcome, WRITE_UPDATED);
    fixture_close(&fixture);
}

static void test_bulk_postpones_items_after_endless_script(void **state)
{
    (void)state;
    expect_items_after_endless_script_are_postponed(COMMAND_CODEC_VERSION, "the script takes more than 1000000 steps");
    expect_items_after_endless_script_are_postponed(COMMAND_SINCE_SCRIPT_LIMIT - 1,
                                                    "the script takes more than 5000000 steps");
}

/* The scripts of an atomic write in a transaction, which is one step, take the steps of those of another command. */
static void test_scripts_of_an_atomic_write_in_a_transaction_are_limited(void **state)
{
    struct write_update update = {.script_source = SLICE_LIT("for (int i = 0; i < 9000; i++) { ctx._source.n++ }")};
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_index(&fixture, "u", "1", "{\"n\":1}");
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *command = fixture_write_command(&fixture, 40);
        command->version = COMMAND_SINCE_SCRIPT_LIMIT - older;
        command->write.atomic = true;
        command->owner.transaction = SLICE_LIT("t");
        for (size_t i = 0; i < command->write.item_count; i++) {
            command->write.items[i] = fixture_item(WRITE_UPDATE, "u", NULL, "1", NULL);
            command->write.items[i].update = &update;
        }
        fixture_run(&fixture, command, TL_MS);
        assert_int_equal(fixture.last->problem.type, older ? PROBLEM_NONE : PROBLEM_ILLEGAL_ARGUMENT);
        if (!older)
            assert_slice_equal(fixture.last->problem.reason,
                               "the scripts of an atomic request take at most [1000000] steps together in a "
                               "transaction; nothing of it was done: send it in several requests, or let its scripts "
                               "do less");
        fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
        assert_string_equal(fixture_source(&fixture, "u", "1"), older ? "{\"n\":360001}" : "{\"n\":1}");
        fixture_close(&fixture);
    }
}

/* A replayed script formats numbers as it did when its command was executed. */
static void test_scripts_of_older_commands_format_numbers_as_before(void **state)
{
    struct write_update update = {.script_source = SLICE_LIT("ctx._source.s = new DecimalFormat('#').format(1e23)")};
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_index(&fixture, "u", "1", "{\"n\":1}");
        struct command *command = fixture_write_command(&fixture, 1);
        command->version = COMMAND_SINCE_JAVA_FORMATS - older;
        command->write.items[0] = fixture_item(WRITE_UPDATE, "u", NULL, "1", NULL);
        command->write.items[0].update = &update;
        fixture_run(&fixture, command, TL_MS);
        assert_string_equal(fixture_source(&fixture, "u", "1"), older ? "{\"n\":1,\"s\":\"99999999999999991611392\"}"
                                                                      : "{\"n\":1,\"s\":\"100000000000000000000000\"}");
        fixture_close(&fixture);
    }
}

/* A script that its submitter is to run is postponed, with the items after it; then the result is taken over. */
static void test_bulk_postpones_a_script_for_its_submitter(void **state)
{
    struct core_fixture fixture;
    struct write_update modest = {.script_source = SLICE_LIT("ctx._source.n++")};
    struct write_update looping = {.script_source = SLICE_LIT("for (int i = 0; i < 900; i++) { ctx._source.n = i }"),
                                   .script_steps = 1000,
                                   .script_postpones = true};
    struct write_update *const updates[] = {&modest, &looping, &modest};
    (void)state;

    for (int tree = 0; tree < 2; tree++) {
        fixture_open(&fixture);
        if (tree)
            fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "u",
                                  "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
        fixture_index(&fixture, "u", "1", "{\"n\":1}");
        struct command *command = fixture_write_command(&fixture, 3);
        for (int i = 0; i < 3; i++) {
            command->write.items[i] = fixture_item(WRITE_UPDATE, "u", NULL, "1", NULL);
            command->write.items[i].update = updates[i];
        }
        fixture_run(&fixture, command, TL_MS);
        const struct write_result *results = fixture.last->write.results;
        assert_int_equal(results[0].outcome, WRITE_UPDATED);
        assert_true(results[1].outcome == WRITE_FAILED && results[1].postponed && results[1].script_long);
        assert_true(results[2].outcome == WRITE_FAILED && results[2].postponed && !results[2].script_long);
        assert_int_equal(fixture.last->write.postponed_count, 2);
        assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":2}");
        fixture_close(&fixture);
    }
}

/* Those of a transaction, which are in one command, are postponed in one step, with one text. */
static void test_many_items_of_a_transaction_are_postponed_in_a_bounded_step(void **state)
{
    enum { ITEMS = 60000 };
    struct core_fixture fixture;
    struct write_update looping = {.script_source = SLICE_LIT("for (int i = 0; i < 900; i++) { ctx._source.n = i }"),
                                   .script_steps = 1000,
                                   .script_postpones = true};
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "u", "1", "{\"n\":1}");
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *command = fixture_write_command(&fixture, ITEMS);
    command->owner.transaction = SLICE_LIT("t");
    for (size_t i = 0; i < ITEMS; i++)
        command->write.items[i] = fixture_item(WRITE_DELETE, "u", "", "2", NULL);
    command->write.items[0] = fixture_item(WRITE_UPDATE, "u", NULL, "1", NULL);
    command->write.items[0].update = &looping;
    fixture_run(&fixture, command, TL_MS);
    assert_in_range(core_step_work(fixture.core), ITEMS, CORE_STEP_WORK);
    assert_int_equal(fixture.last->write.postponed_count, ITEMS);
    const struct write_result *results = fixture.last->write.results;
    assert_true(results[0].script_long && !results[ITEMS - 1].script_long);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(results[i].outcome == WRITE_FAILED && results[i].postponed);
    fixture_close(&fixture);
}

enum { LOOPING = 150 };

/*
 * Updates the documents that are not done by scripts of about 20,000 steps each, twice that in an
 * atomic write. Returns: how many were updated.
 */
static size_t run_looping(struct core_fixture *fixture, bool *done, bool atomic)
{
    struct write_update update = {.script_source = SLICE_LIT("for (int i = 0; i < 5000; i++) { ctx._source.n = i }")};
    if (atomic)
        update.script_source = SLICE_LIT("for (int i = 0; i < 10000; i++) { ctx._source.n = i }");
    size_t count = 0, ran = 0;
    int numbers[LOOPING];

    struct command *command = fixture_write_command(fixture, LOOPING);
    command->write.atomic = atomic;
    for (int i = 0; i < LOOPING; i++) {
        if (done[i])
            continue;
        struct write_item *item = &command->write.items[count];
        *item = fixture_item(WRITE_UPDATE, "u", NULL, NULL, NULL);
        item->id = arena_printf(&command->arena, "%d", i);
        item->update = &update;
        numbers[count++] = i;
    }
    command->write.item_count = count;
    fixture_run(fixture, command, 1);
    for (size_t i = 0; i < count; i++) {
        const struct write_result *result = &command->write.results[i];
        done[numbers[i]] = result->outcome == WRITE_UPDATED;
        ran += result->outcome == WRITE_UPDATED;
    }
    assert_true(command->problem.type != PROBLEM_NONE || ran + command->write.postponed_count == count);
    return ran;
}

static void lock_in(struct core_fixture *fixture, const char *session, const char *index, const char *id)
{
    struct command *open = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    open->session.id = slice_from(session);
    open->session.ttl_us = 3600 * TL_SECOND;
    fixture_run(fixture, open, 1);
    struct command *lock = command_new(COMMAND_LOCK, DIALECT_7);
    lock->owner.session = slice_from(session);
    lock->lock.targets = arena_zalloc(&lock->arena, sizeof *lock->lock.targets);
    lock->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = slice_from(index), .id = slice_from(id)};
    lock->lock.target_count = 1;
    fixture_run(fixture, lock, 1);
    assert_int_equal(lock->problem.type, PROBLEM_NONE);
}

/* Opens a core with an index that has a path field, and a lock on another document of it. */
static void open_locked_tree(struct core_fixture *fixture)
{
    fixture_open(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "u",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    fixture_index(fixture, "u", "1", "{\"n\":1,\"path\":\"/a\"}");
    fixture_index(fixture, "u", "2", "{\"n\":1,\"path\":\"/a\"}");
    lock_in(fixture, "s", "u", "locked");
}

/*
 * A write that may meet locks in an index with a path field computes its updates before it runs, to know the new
 * paths. The run takes over the results of their scripts, also of those that fail.
 */
static void test_script_of_an_update_runs_once(void **state)
{
    static const struct {
        const char *script;
        bool upserts; /* a document that does not exist */
        enum write_outcome outcome;
        const char *after; /* NULL: no document */
    } cases[] = {
        {"ctx._source.n++", false, WRITE_UPDATED, "{\"n\":2,\"path\":\"/a\"}"},
        {"ctx._source.path = '/b'", false, WRITE_UPDATED, "{\"n\":1,\"path\":\"/b\"}"},
        {"ctx._source.n = ctx._now", false, WRITE_UPDATED, NULL},
        {"ctx.op = 'none'", false, WRITE_NOOP, "{\"n\":1,\"path\":\"/a\"}"},
        {"ctx.op = 'delete'", false, WRITE_DELETED, NULL},
        {"throw new IllegalArgumentException('no')", false, WRITE_FAILED, "{\"n\":1,\"path\":\"/a\"}"},
        {"for (int i = 0; i >= 0; i++) { ctx._source.n = i }", false, WRITE_FAILED, "{\"n\":1,\"path\":\"/a\"}"},
        {"ctx._source.path = '/c'", true, WRITE_CREATED, "{\"path\":\"/c\"}"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct write_update update = {.script_source = slice_from(cases[i].script), .want_source = true};
        const char *id = cases[i].upserts ? "new" : "1";
        struct core_fixture fixture;
        open_locked_tree(&fixture);
        if (cases[i].upserts) {
            update.upsert = SLICE_LIT("{}");
            update.scripted_upsert = true;
        }
        const struct write_result *result = fixture_update(&fixture, "u", id, update);
        assert_int_equal(fixture.core->scripts_run, 1);
        assert_int_equal(result->outcome, cases[i].outcome);
        assert_true((result->problem.caused_by != NULL) == (cases[i].outcome == WRITE_FAILED));
        if (cases[i].outcome != WRITE_FAILED)
            assert_true(result->source.len > 0);
        if (cases[i].after != NULL)
            assert_string_equal(fixture_source(&fixture, "u", id), cases[i].after);
        else if (cases[i].outcome == WRITE_DELETED)
            assert_null(fixture_source(&fixture, "u", id));
        fixture_close(&fixture);
    }
}

/* A script whose document an earlier item of the write has changed runs again. */
static void test_script_runs_again_if_its_document_has_changed(void **state)
{
    struct write_update update = {.script_source = SLICE_LIT("ctx._source.n++")};
    struct core_fixture fixture;
    (void)state;

    open_locked_tree(&fixture);
    struct command *command = fixture_write_command(&fixture, 3);
    for (int i = 0; i < 3; i++) {
        command->write.items[i] = fixture_item(WRITE_UPDATE, "u", NULL, i == 1 ? "2" : "1", NULL);
        command->write.items[i].update = &update;
    }
    fixture_run(&fixture, command, 1);
    assert_int_equal(fixture.core->scripts_run, 4); /* the last one twice */
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":3,\"path\":\"/a\"}");
    assert_string_equal(fixture_source(&fixture, "u", "2"), "{\"n\":2,\"path\":\"/a\"}");
    fixture_close(&fixture);
}

/* A document of another shard than the request is an upsert for the script, but not where its path is found. */
static void test_script_of_an_upsert_by_routing_runs_again(void **state)
{
    struct write_update update = {.script_source = SLICE_LIT("ctx._source.n = ctx.op"),
                                  .upsert = SLICE_LIT("{\"path\":\"/u\"}"),
                                  .scripted_upsert = true,
                                  .want_source = true};
    struct core_fixture fixture;
    size_t missed = 0;
    (void)state;

    open_locked_tree(&fixture);
    fixture_index_command(
        &fixture, COMMAND_INDEX_CREATE, "shards",
        "{\"settings\":{\"number_of_shards\":5},\"mappings\":{\"properties\":{\"n\":{\"type\":\"keyword\"},"
        "\"path\":{\"type\":\"path\"}}}}");
    lock_in(&fixture, "t", "shards", "locked");
    fixture_index(&fixture, "shards", "1", "{\"path\":\"/a\"}");
    for (char routing = 'a'; routing <= 'h'; routing++) {
        struct write_item item = fixture_item(WRITE_UPDATE, "shards", NULL, "1", NULL);
        item.routing = slice_make(&routing, 1);
        item.update = &update;
        const struct write_result *result = fixture_write_one(&fixture, item);
        bool found = result->outcome == WRITE_UPDATED;
        if (found)
            assert_slice_equal(result->source, "{\"path\":\"/a\",\"n\":\"index\"}");
        missed += !found;
        assert_int_equal(fixture.core->scripts_run, found ? 1 : 2);
    }
    assert_true(missed > 0);
    fixture_close(&fixture);
}

/*
 * The steps of a script count once, and with them its work; in commands before version 20 they count again where the
 * run takes over a kept result. Otherwise both do the same.
 */
static void test_work_of_a_script_counts_once(void **state)
{
    struct write_update update = {.script_source = SLICE_LIT("for (int i = 0; i < 900; i++) { ctx._source.n++ }"),
                                  .want_source = true};
    uint64_t work[2], steps[2], of_write[2];
    (void)state;

    for (int old = 0; old < 2; old++) {
        struct core_fixture fixture;
        open_locked_tree(&fixture);
        struct command *command = fixture_write_command(&fixture, 1);
        command->write.items[0] = fixture_item(WRITE_UPDATE, "u", NULL, "1", NULL);
        command->write.items[0].update = &update;
        command->version = COMMAND_SINCE_SCRIPTS_ONCE - (unsigned)old;
        fixture_run(&fixture, command, 1);
        assert_slice_equal(command->write.results[0].source, "{\"n\":901,\"path\":\"/a\"}");
        assert_int_equal(fixture.core->scripts_run, 1);
        work[old] = fixture.core->work;
        steps[old] = fixture.core->script_steps;
        of_write[old] = command->write.script_steps;
        fixture_close(&fixture);
    }
    assert_true(steps[0] > 900);
    assert_int_equal(steps[1], 2 * steps[0]);
    assert_int_equal(of_write[0], steps[0]);
    assert_int_equal(of_write[1], steps[1]);
    assert_int_equal(work[1] - work[0], steps[0] / WORK_SCRIPT_STEPS);
}

/* Items that a lock blocks are tried again after the others, in the same step. */
static void test_scripts_of_a_blocked_bulk_run_once(void **state)
{
    struct write_update update = {.script_source = SLICE_LIT("ctx._source.n++")};
    struct core_fixture fixture;
    (void)state;

    open_locked_tree(&fixture);
    lock_in(&fixture, "t", "u", "1");
    struct command *command = fixture_write_command(&fixture, 2);
    for (int i = 0; i < 2; i++) {
        command->write.items[i] = fixture_item(WRITE_UPDATE, "u", NULL, i == 0 ? "1" : "2", NULL);
        command->write.items[i].update = &update;
    }
    fixture_run(&fixture, command, 1);
    assert_int_equal(command->write.results[0].problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    assert_int_equal(command->write.results[1].outcome, WRITE_UPDATED);
    assert_int_equal(fixture.core->scripts_run, 2);
    assert_string_equal(fixture_source(&fixture, "u", "2"), "{\"n\":2,\"path\":\"/a\"}");
    fixture_close(&fixture);
}

/*
 * However many scripts a bulk has, each step stays within its bound, which the fixture checks. Each
 * command runs the first scripts and postpones the others. That also holds under locks and with a
 * path hierarchy, where scripts run in advance.
 */
static void test_bulk_postpones_scripts_above_command_limit(void **state)
{
    (void)state;
    for (int tree = 0; tree < 2; tree++) {
        bool done[LOOPING] = {false};
        struct core_fixture fixture;
        int commands = 0;

        fixture_open(&fixture);
        if (tree)
            fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "u",
                                  "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
        for (int i = 0; i < LOOPING; i++) {
            char id[12];
            snprintf(id, sizeof id, "%d", i);
            fixture_index(&fixture, "u", id, "{\"n\":1,\"path\":\"/a\"}");
        }
        if (tree)
            lock_in(&fixture, "s", "u", "none");
        for (size_t ran = 0; ran < LOOPING; commands++) {
            size_t more = run_looping(&fixture, done, false);
            assert_true(more > 0);
            ran += more;
            for (int i = 0; i < LOOPING; i++)
                assert_true(done[i] == ((size_t)i < ran)); /* each time the first ones */
            assert_int_equal(fixture_index(&fixture, "other", "1", "{}")->version, commands + 1);
        }
        assert_true(commands > 2);
        assert_string_equal(fixture_source(&fixture, "u", "149"), "{\"n\":4999,\"path\":\"/a\"}");
        fixture_close(&fixture);
    }
}

enum { NEW_INDICES = 20, TEMPLATE_FIELDS = 900 };

static size_t index_count(const struct core_fixture *fixture)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture->core);

    return catalog_index_count(catalog);
}

/* Puts a template of TEMPLATE_FIELDS fields for the indices "new-*". */
static void put_large_template(struct core_fixture *fixture)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);

    buf_lit(&body, "{\"index_patterns\":[\"new-*\"],\"template\":{\"mappings\":{\"properties\":{");
    for (int i = 0; i < TEMPLATE_FIELDS; i++)
        buf_printf(&body, "%s\"f%d\":{\"type\":\"keyword\"}", i == 0 ? "" : ",", i);
    buf_lit(&body, "}}}}");
    struct command *command = command_new(COMMAND_INDEX_TEMPLATE_PUT, DIALECT_7);
    command->object.name = SLICE_LIT("t");
    command->object.body = arena_copy(&command->arena, buf_as_slice(&body));
    buf_deinit(&body);
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

/* Writes a document into each of the indices from `first` on, which do not exist. */
static struct command *create_indices(struct core_fixture *fixture, size_t first, bool atomic, unsigned version)
{
    struct command *command = fixture_write_command(fixture, NEW_INDICES - first);

    command->write.atomic = atomic;
    command->version = version;
    for (size_t i = 0; first + i < NEW_INDICES; i++) {
        struct write_item *item = &command->write.items[i];
        *item = fixture_item(WRITE_INDEX, NULL, NULL, "1", "{}");
        item->index = arena_printf(&command->arena, "new-%zu", first + i);
    }
    fixture_run(fixture, command, 1);
    return command;
}

/*
 * However many indices a bulk creates from a large template, each step stays within its bound, which
 * the fixture checks: each command creates the first ones and postpones the other items. That also
 * holds under locks, where the mappings are made in advance.
 */
static void test_bulk_postpones_indices_above_command_limit(void **state)
{
    (void)state;
    for (int locked = 0; locked < 2; locked++) {
        struct core_fixture fixture;
        size_t created = 0;
        int commands = 0;

        fixture_open(&fixture);
        put_large_template(&fixture);
        if (locked)
            lock_in(&fixture, "s", "other", "none");
        for (; created < NEW_INDICES; commands++) {
            struct command *command = create_indices(&fixture, created, false, COMMAND_CODEC_VERSION);
            size_t ran = NEW_INDICES - created - command->write.postponed_count;
            assert_true(ran > 0);
            for (size_t i = 0; i < NEW_INDICES - created; i++)
                assert_int_equal(command->write.results[i].outcome, i < ran ? WRITE_CREATED : WRITE_FAILED);
            created += ran;
        }
        assert_true(commands > 2);
        assert_int_equal(index_count(&fixture), NEW_INDICES);
        fixture_close(&fixture);
    }
}

enum { LARGE = 24, LARGE_WORDS = 3000 }; /* two commands and more */

/* Puts documents one by one, so that each word of each has an entry of its own. */
static void put_large_documents(struct core_fixture *fixture)
{
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    char id[16];

    buf_lit(&source, "{\"text\":\"");
    for (int i = 0; i < LARGE_WORDS; i++)
        buf_printf(&source, "w%d ", i);
    buf_lit(&source, "\"}");
    buf_byte(&source, '\0');
    for (int i = 0; i < LARGE; i++) {
        snprintf(id, sizeof id, "%d", 100 + i);
        fixture_index(fixture, "fs", id, source.data);
    }
    buf_deinit(&source);
}

/* Writes or updates document 1 of an index; `transaction` NULL: in none. */
static void write_large(struct core_fixture *fixture, const char *index, struct write_item item,
                        const char *transaction)
{
    struct command *command = fixture_write_command(fixture, 1);

    if (transaction != NULL)
        command->owner.transaction = slice_from(transaction);
    item.index = slice_from(index);
    command->write.items[0] = item;
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_true(command->write.results[0].outcome == WRITE_CREATED ||
                command->write.results[0].outcome == WRITE_UPDATED);
}

/*
 * One document is one operation however often it is read, parsed and copied, so that no step with it counts as one that
 * could have been divided: the fixture checks that.
 */
static void test_large_document_is_one_operation(void **state)
{
    enum { BYTES = 4 << 20 };
    static const char *const indices[] = {"plain", "tree"};
    struct write_update merge = {.doc = SLICE_LIT("{\"n\":1}")};
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    struct core_fixture fixture;
    (void)state;

    buf_lit(&source, "{\"path\":\"/a/b\",\"text\":\"");
    for (size_t i = 0; i < BYTES; i++)
        buf_byte(&source, 'x');
    buf_lit(&source, "\"}");
    buf_byte(&source, '\0');
    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    lock_in(&fixture, "s", "tree", "other");
    for (size_t i = 0; i < COUNT_OF(indices); i++)
        for (int kind = 0; kind < 2; kind++) {
            const char *transaction = kind == 0 ? NULL : i == 0 ? "t" : "u";
            struct write_item put = fixture_item(WRITE_INDEX, "", NULL, "1", source.data);
            struct write_item update = fixture_item(WRITE_UPDATE, "", NULL, "1", NULL);
            update.update = &merge;
            if (transaction != NULL)
                fixture_txn(&fixture, COMMAND_TXN_BEGIN, transaction);
            write_large(&fixture, indices[i], put, transaction);
            write_large(&fixture, indices[i], put, transaction);
            write_large(&fixture, indices[i], update, transaction);
            if (transaction != NULL)
                fixture_txn(&fixture, COMMAND_TXN_COMMIT, transaction);
        }
    assert_true(metric_read(&core_metrics(fixture.core)->steps_over) > 0);
    fixture_close(&fixture);
    buf_deinit(&source);
}

/* Replaces or deletes the large documents from `first` on, by items of a few bytes. */
static struct command *replace_large(struct core_fixture *fixture, size_t first, enum write_op op,
                                     const char *transaction, bool older)
{
    struct command *command = fixture_write_command(fixture, LARGE - first);

    command->version = older ? COMMAND_SINCE_WORK_LIMIT - 1 : COMMAND_CODEC_VERSION;
    if (transaction != NULL)
        command->owner.transaction = slice_from(transaction);
    for (size_t i = 0; first + i < LARGE; i++) {
        struct write_item *item = &command->write.items[i];
        *item = fixture_item(op, "fs", NULL, NULL, op == WRITE_DELETE ? NULL : "{\"n\":1}");
        item->id = arena_printf(&command->arena, "%zu", 100 + first + i);
    }
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    return command;
}

/* Replaces or deletes all large documents. Returns: in how many commands. */
static int replace_all_large(struct core_fixture *fixture, enum write_op op, const char *transaction)
{
    enum write_outcome done = op == WRITE_DELETE ? WRITE_DELETED : WRITE_UPDATED;
    size_t replaced = 0;
    int commands = 0;

    for (; replaced < LARGE; commands++) {
        struct command *command = replace_large(fixture, replaced, op, transaction, false);
        size_t ran = LARGE - replaced - command->write.postponed_count;
        assert_true(ran > 0);
        for (size_t i = 0; i < LARGE - replaced; i++)
            assert_int_equal(command->write.results[i].outcome, i < ran ? done : WRITE_FAILED);
        replaced += ran;
    }
    return commands;
}

/*
 * Items of a few bytes remove all entries of the documents that they replace or delete. A command
 * postpones the items after those for which a step has time, which the fixture checks. That also
 * holds if locks are held, and in a transaction.
 */
static void test_bulk_postpones_items_by_stored_documents(void **state)
{
    enum { PLAIN, LOCKED, TRANSACTION, KINDS };
    static const enum write_op ops[] = {WRITE_INDEX, WRITE_DELETE};
    (void)state;

    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 2; i++) {
            struct core_fixture fixture;
            fixture_open(&fixture);
            put_large_documents(&fixture);
            if (kind == LOCKED)
                lock_in(&fixture, "s", "fs", "other");
            if (kind == TRANSACTION)
                fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
            assert_in_range(replace_all_large(&fixture, ops[i], kind == TRANSACTION ? "t" : NULL), 2, LARGE / 2);
            fixture_close(&fixture);
        }
}

/*
 * A write that has to find the paths of its documents, since locks are held, has the same time for
 * that and for its items together as any other has for its items. Running an item takes several times
 * the work of finding its locks, and both reach their limits.
 */
static void test_bulk_counts_finding_of_locks(void **state)
{
    enum { ITEMS = 2000, VALUES = 100, ONE_ITEM = 2000 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"},"
                          "\"x\":{\"type\":\"integer\"}}}}");
    lock_in(&fixture, "s", "tree", "other");
    buf_lit(&source, "{\"path\":\"/a/b\",\"x\":[0");
    for (int i = 1; i < VALUES; i++)
        buf_printf(&source, ",%d", i);
    buf_lit(&source, "]}");
    for (unsigned older = 0; older < 2; older++) {
        struct command *command = fixture_write_command(&fixture, ITEMS);
        command->version = COMMAND_SINCE_WRITE_ACCOUNT - older;
        for (size_t i = 0; i < ITEMS; i++) {
            command->write.items[i] = fixture_item(WRITE_INDEX, "tree", NULL, NULL, NULL);
            command->write.items[i].id = arena_printf(&command->arena, "%zu", older * ITEMS + i);
            command->write.items[i].source = arena_copy(&command->arena, buf_as_slice(&source));
        }
        fixture.unbounded = older > 0;
        fixture_run(&fixture, command, 1);
        assert_in_range(command->write.postponed_count, 1, ITEMS - 1);
        uint64_t work = fixture.core->write_work;
        assert_in_range(work, WRITE_WORK_MAX, CORE_ATOMIC_WORK);
        assert_int_equal(work > WRITE_WORK_MAX + ONE_ITEM, older);
    }
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* An atomic write that takes too much work is refused, without effect; so is what a transaction could not commit. */
static void test_work_of_a_whole_is_limited(void **state)
{
    struct core_fixture fixture;
    (void)state;

    for (unsigned older = 0; older < 2; older++)
        for (int in_transaction = 0; in_transaction < 2; in_transaction++) {
            fixture_open(&fixture);
            fixture.core->whole_work_max = 2000;
            fixture.core->commit_work_max = 2000 / COMMIT_WORK_FACTOR_BEFORE;
            if (in_transaction)
                fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
            struct command *command = fixture_write_command(&fixture, 3);
            command->version = COMMAND_SINCE_WHOLE_WORK - older;
            command->write.atomic = !in_transaction;
            command->owner.transaction = in_transaction ? SLICE_LIT("t") : SLICE_NONE;
            for (size_t i = 0; i < 3; i++) {
                struct buf source = BUF_INIT(BUF_UNLIMITED);
                buf_lit(&source, "{\"n\":[0");
                for (int j = 1; j < 100; j++)
                    buf_printf(&source, ",%d", j);
                buf_lit(&source, "]}");
                command->write.items[i] = fixture_item(WRITE_INDEX, "fs", NULL,
                                                       i == 0   ? "1"
                                                       : i == 1 ? "2"
                                                                : "3",
                                                       NULL);
                command->write.items[i].source = arena_copy(&command->arena, buf_as_slice(&source));
                buf_deinit(&source);
            }
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->problem.type, older ? PROBLEM_NONE : PROBLEM_TRANSACTION_TOO_LARGE);
            assert_int_equal(fixture_source(&fixture, "fs", "1") == NULL, !older || in_transaction);
            fixture_close(&fixture);
        }
}

/* The work of a commit is that of its records: entries count as entries, and bytes count. */
static void test_work_of_a_commit_is_that_of_its_records(void **state)
{
    enum { VALUES = 1000, ENTRIES = VALUES * WORK_ENTRY, BYTES = 1600000, OTHER = 5000 };
    struct core_fixture fixture;
    (void)state;

    assert_true(OTHER < ENTRIES);
    for (int large = 0; large < 2; large++) {
        struct buf source = BUF_INIT(BUF_UNLIMITED);
        buf_lit(&source, "{\"n\":[0");
        for (int i = 1; i < VALUES && !large; i++)
            buf_printf(&source, ",%d", i);
        for (int i = 0; i < BYTES && large; i++)
            buf_byte(&source, ' ');
        buf_lit(&source, "]}");
        fixture_open(&fixture);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *command = fixture_write_command(&fixture, 1);
        command->owner.transaction = SLICE_LIT("t");
        command->write.items[0] = fixture_item(WRITE_INDEX, "fs", NULL, "1", NULL);
        command->write.items[0].source = buf_as_slice(&source);
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
        uint64_t least = large ? BYTES / WORK_BYTES : ENTRIES;
        assert_in_range(core_step_work(fixture.core), least, least + OTHER);
        buf_deinit(&source);
        fixture_close(&fixture);
    }
}

/*
 * Values that a transaction's commit would write alone are limited: a quarter of a second; before version 15 a whole
 * one.
 */
static void test_work_of_a_commit_is_limited(void **state)
{
    enum { VALUES = 20000, DOCUMENTS = 13 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    buf_lit(&source, "{\"n\":[0");
    for (int i = 1; i < VALUES; i++)
        buf_printf(&source, ",%d", i);
    buf_lit(&source, "]}");
    assert_in_range(CORE_COMMIT_WORK, (DOCUMENTS - 1) * VALUES * WORK_ENTRY, DOCUMENTS * VALUES * WORK_ENTRY);
    for (unsigned older = 0; older < 2; older++) {
        fixture_open(&fixture);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        for (int i = 0; i < DOCUMENTS; i++) {
            struct command *command = fixture_write_command(&fixture, 1);
            command->version = COMMAND_SINCE_COMMIT_LIMIT - older;
            command->owner.transaction = SLICE_LIT("t");
            command->write.items[0] = fixture_item(WRITE_INDEX, "fs", NULL, NULL, NULL);
            command->write.items[0].id = arena_printf(&command->arena, "%d", i);
            command->write.items[0].source = buf_as_slice(&source);
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->problem.type,
                             older || i < DOCUMENTS - 1 ? PROBLEM_NONE : PROBLEM_TRANSACTION_TOO_LARGE);
        }
        fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
        assert_int_equal(fixture_count(&fixture, "fs"), DOCUMENTS - 1 + older);
        fixture_close(&fixture);
    }
    buf_deinit(&source);
}

enum { NAMED = 600, LONG_NAME = 30000 };

/* Deletes in an index that does not exist, whose long name each reason quotes. */
static struct command *delete_in_long_name(struct core_fixture *fixture, bool atomic, const char *transaction,
                                           bool older)
{
    struct command *command = fixture_write_command(fixture, NAMED);
    char *name = arena_alloc(&command->arena, LONG_NAME);

    memset(name, 'x', LONG_NAME);
    command->version = COMMAND_SINCE_RESULT_BYTES - older;
    command->write.atomic = atomic;
    if (transaction != NULL)
        command->owner.transaction = slice_from(transaction);
    for (size_t i = 0; i < NAMED; i++) {
        command->write.items[i] = fixture_item(WRITE_DELETE, "", NULL, "1", NULL);
        command->write.items[i].index = slice_make(name, LONG_NAME);
    }
    fixture_run(fixture, command, 1);
    return command;
}

/*
 * Items of a few bytes have results of any length. A command postpones the items after those whose results have
 * 4 MiB, in a transaction too, where the core itself divides it. An atomic one is refused as a whole.
 */
static void test_results_are_limited(void **state)
{
    (void)state;

    for (int older = 0; older < 2; older++)
        for (int in_transaction = 0; in_transaction < 2; in_transaction++) {
            struct core_fixture fixture;
            fixture_open(&fixture);
            const char *transaction = in_transaction ? "t" : NULL;
            if (in_transaction)
                fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
            const struct write_command *write = &delete_in_long_name(&fixture, false, transaction, older)->write;
            assert_in_range(write->result_bytes, WRITE_RESULT_BYTES_MAX, (size_t)1 << 30);
            size_t one = write_result_bytes(&write->results[0]);
            assert_in_range(one, LONG_NAME, 8 * LONG_NAME);
            size_t ran = WRITE_RESULT_BYTES_MAX / one + 1;
            assert_int_equal(write->postponed_count, older ? 0 : NAMED - ran);
            struct command *command = delete_in_long_name(&fixture, true, transaction, older);
            assert_int_equal(command->problem.type, older ? PROBLEM_NONE : PROBLEM_LIMIT_EXCEEDED);
            assert_int_equal(command->write.results[NAMED - 1].outcome, WRITE_FAILED);
            fixture_close(&fixture);
        }
}

/* Commands before version 10 are divided as the builds did that made them: not by their items' work. */
static void test_older_bulk_is_not_divided_by_work(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.unbounded = true;
    put_large_documents(&fixture);
    assert_int_equal(replace_large(&fixture, 0, WRITE_DELETE, NULL, true)->write.postponed_count, 0);
    fixture_close(&fixture);
}

/* A step counts each field of a mapping and each byte of a template. */
static void test_step_counts_mappings(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_large_template(&fixture);
    fixture_index(&fixture, "new-a", "1", "{}");
    assert_true(core_step_work(fixture.core) > TEMPLATE_FIELDS * WORK_FIELD);
    fixture_index(&fixture, "new-a", "2", "{}");
    assert_true(core_step_work(fixture.core) < TEMPLATE_FIELDS);
    fixture_index(&fixture, "new-a", "2", "{\"another\":1}");
    assert_true(core_step_work(fixture.core) > TEMPLATE_FIELDS * WORK_FIELD);
    fixture_close(&fixture);
}

/* Commands before version 8 are divided as the builds did that made them: not by their mappings. */
static void test_older_bulk_is_not_divided_by_mappings(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.unbounded = true;
    put_large_template(&fixture);
    assert_int_equal(create_indices(&fixture, 0, false, COMMAND_SINCE_MAPPING_LIMIT - 1)->write.postponed_count, 0);
    assert_int_equal(index_count(&fixture), NEW_INDICES);
    fixture_close(&fixture);
}

/* The mappings that an atomic write makes are made in pieces; before, more than one step makes were refused. */
static void test_atomic_write_makes_mappings_in_pieces(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        bool older = way < 2, locked = way % 2 != 0;
        struct core_fixture fixture;

        fixture_open(&fixture);
        put_large_template(&fixture);
        if (locked)
            lock_in(&fixture, "s", "other", "none");
        struct command *command =
            create_indices(&fixture, 0, true, older ? COMMAND_SINCE_ATOMIC_PIECES - 1 : COMMAND_CODEC_VERSION);
        assert_int_equal(command->problem.type, older ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        assert_int_equal(index_count(&fixture), older ? 0 : NEW_INDICES);
        fixture_close(&fixture);
    }
}

/* The scripts of an atomic write have the limit of one command, in one step or in pieces. */
static void test_atomic_write_refuses_scripts_above_limit(void **state)
{
    (void)state;
    for (int locked = 0; locked < 2; locked++) {
        bool done[LOOPING] = {false};
        struct core_fixture fixture;

        fixture_open(&fixture);
        for (int i = 0; i < LOOPING; i++) {
            char id[12];
            snprintf(id, sizeof id, "%d", i);
            fixture_index(&fixture, "u", id, "{\"n\":1}");
        }
        if (locked)
            lock_in(&fixture, "s", "u", "none");
        assert_int_equal(run_looping(&fixture, done, true), 0);
        assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
        assert_string_equal(fixture_source(&fixture, "u", "0"), "{\"n\":1}");
        fixture_close(&fixture);
    }
}

static void test_write_refuses_source_that_does_not_fit_mapping(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "m", "1", "{\"n\":1}");
    uint64_t digest = fixture_digest(&fixture);
    struct write_result *result = fixture_index(&fixture, "m", "2", "{\"n\":\"abc\"}");
    assert_int_equal(result->outcome, WRITE_FAILED);
    assert_int_equal(result->problem.type, PROBLEM_MAPPER_PARSING);
    assert_slice_equal(result->problem.caused_by->reason, "For input string: \"abc\"");
    assert_int_equal(fixture_digest(&fixture), digest);
    fixture_close(&fixture);
}

/* Writes a document by a command of this version, or of one before 8. Returns: its result. */
static struct write_result *index_date(struct core_fixture *fixture, bool older, const char *id, const char *source)
{
    struct command *command = fixture_write_command(fixture, 1);

    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", id, source);
    command->version = older ? COMMAND_SINCE_STRICT_DATES - 1 : COMMAND_CODEC_VERSION;
    return &fixture_run(fixture, command, 1)->write.results[0];
}

/* Creates an index with a field of dates, `older`: by a command of a version before 9. */
static void create_dates(struct core_fixture *fixture, const char *name, bool older, const char *format)
{
    static char body[256];
    struct command *command = command_new(COMMAND_INDEX_CREATE, DIALECT_7);

    snprintf(body, sizeof(body), "{\"mappings\":{\"properties\":{\"at\":{\"type\":\"date\",\"format\":\"%s\"}}}}",
             format);
    command->index.name = slice_from(name);
    command->index.body = slice_from(body);
    if (older)
        command->version = COMMAND_SINCE_DATE_RULES - 1;
    fixture_run(fixture, command, 1);
}

static void test_index_keeps_date_rules_of_its_creation(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    create_dates(&fixture, "old", true, "date");
    create_dates(&fixture, "new", false, "date");
    assert_int_equal(fixture_index(&fixture, "old", "1", "{\"at\":\"2022-3\"}")->problem.type, PROBLEM_MAPPER_PARSING);
    assert_int_equal(fixture_index(&fixture, "new", "1", "{\"at\":\"2022-3\"}")->problem.type, PROBLEM_NONE);
    /* A later change of the mapping keeps the rules, for its own formats too. */
    fixture_index_command(&fixture, COMMAND_MAPPING_PUT, "old",
                          "{\"properties\":{\"to\":{\"type\":\"date\",\"format\":\"date\"}}}");
    fixture_index_command(&fixture, COMMAND_MAPPING_PUT, "new",
                          "{\"properties\":{\"to\":{\"type\":\"date\",\"format\":\"week_date\"}}}");
    assert_int_equal(fixture_index(&fixture, "old", "2", "{\"to\":\"2022-3\"}")->problem.type, PROBLEM_MAPPER_PARSING);
    assert_int_equal(fixture_index(&fixture, "new", "2", "{\"to\":\"2022-W09-5\"}")->problem.type, PROBLEM_NONE);
    assert_int_equal(fixture_index(&fixture, "new", "3", "{\"to\":\"2022-03-04\"}")->problem.type,
                     PROBLEM_MAPPER_PARSING);
    fixture_close(&fixture);
}

static void test_dates_of_released_commands_stay(void **state)
{
    static const struct write_update update = {.doc = {"{\"n\":1}", 7}, .single = true};
    static const char *const date = "{\"at\":\"20220-01-01\"}";
    struct core_fixture fixture;

    (void)state;
    fixture_open(&fixture);
    create_dates(&fixture, "fs", true, "strict_date_optional_time||epoch_millis");
    assert_int_equal(index_date(&fixture, false, "1", date)->problem.type, PROBLEM_MAPPER_PARSING);
    assert_int_equal(index_date(&fixture, true, "1", date)->problem.type, PROBLEM_NONE);
    /* An update of another field keeps the stored date; a new document, and a new date, are checked. */
    assert_int_equal(fixture_update(&fixture, "fs", "1", update)->problem.type, PROBLEM_NONE);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"at\":\"20220-01-01\",\"n\":1}");
    assert_int_equal(index_date(&fixture, false, "1", date)->problem.type, PROBLEM_MAPPER_PARSING);
    assert_int_equal(index_date(&fixture, false, "2", "{\"at\":\"2022-01-01\"}")->problem.type, PROBLEM_NONE);
    assert_int_equal(fixture_update(&fixture, "fs", "2", (struct write_update){.doc = slice_from(date), .single = true})
                         ->problem.type,
                     PROBLEM_MAPPER_PARSING);
    /* An unmapped text is a date by the same rule. */
    assert_int_equal(index_date(&fixture, false, "3", "{\"text\":\"20220-01-01\"}")->problem.type, PROBLEM_NONE);
    assert_int_equal(index_date(&fixture, false, "3", "{\"text\":\"no date\"}")->problem.type, PROBLEM_NONE);
    assert_int_equal(index_date(&fixture, true, "4", "{\"date\":\"20220-01-01\"}")->problem.type, PROBLEM_NONE);
    assert_int_equal(index_date(&fixture, false, "4", "{\"date\":\"no date\"}")->problem.type, PROBLEM_MAPPER_PARSING);
    fixture_close(&fixture);
}

/*
 * A field with ignore_malformed of an index with the first date rules has entries of dates that
 * Elasticsearch 7.10 refuses, as the values of its stored document have; by a command of version 8 it
 * has none.
 */
static void test_malformed_dates_have_entries(void **state)
{
    static const char date[] = "{\"at\":\"+1970-01-02\"}";
    (void)state;

    for (int drops = 0; drops < 2; drops++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        struct command *create = command_new(COMMAND_INDEX_CREATE, DIALECT_7);
        create->index.name = SLICE_LIT("fs");
        create->index.body = SLICE_LIT("{\"mappings\":{\"properties\":{\"at\":{\"type\":\"date\","
                                       "\"ignore_malformed\":true}}}}");
        create->version = COMMAND_SINCE_DATE_RULES - 1;
        assert_int_equal(fixture_run(&fixture, create, 1)->problem.type, PROBLEM_NONE);
        struct command *command = fixture_write_command(&fixture, 1);
        command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", date);
        if (drops)
            command->version = COMMAND_SINCE_MALFORMED_DATES - 1;
        assert_int_equal(fixture_run(&fixture, command, 1)->write.results[0].problem.type, PROBLEM_NONE);
        assert_int_equal(fixture_find(&fixture, "fs", "at", 24 * 3600 * 1000), drops ? 0 : 1);
        fixture_delete(&fixture, "fs", "1");
        assert_int_equal(fixture_find(&fixture, "fs", "at", 24 * 3600 * 1000), 0);
        fixture_close(&fixture);
    }
}

static void test_write_refuses_long_ids(void **state)
{
    struct core_fixture fixture;
    char id[514];
    (void)state;

    memset(id, 'x', sizeof(id));
    id[513] = '\0';
    fixture_open(&fixture);
    assert_slice_equal(fixture_index(&fixture, "i", id, "{}")->problem.reason,
                       "id is too long, must be no longer than 512 bytes but was: 513");
    id[512] = '\0';
    assert_int_equal(fixture_index(&fixture, "i", id, "{}")->outcome, WRITE_CREATED);
    assert_int_equal(fixture_index(&fixture, "i", "", "{}")->outcome, WRITE_FAILED);
    fixture_close(&fixture);
}

/* Returns: the number of hits of a term. */
static size_t hits_of(struct core_fixture *fixture, const char *index, const char *path, const char *term)
{
    struct view view = {fixture->store, TL_TS_MAX, NULL};
    struct catalog *catalog = core_catalog(fixture->core);
    const struct catalog_index *entry = catalog_index(catalog, slice_from(index));
    const struct mapping_field *field = mapping_field(entry->mapping, slice_from(path));
    struct field_value value = {.field = field->number, .kind = FIELD_VALUE_BYTES, .bytes = slice_from(term)};
    struct entry_range range = {.index = entry->number, .field = field->number, .low = &value, .high = &value};
    struct entry_scan *scan = entry_scan_new(&view, &range);
    struct entry_hit hit;
    struct doc doc;
    size_t count = 0;

    while (entry_scan_next(scan, &hit) == 0) {
        if (doc_get_key(&view, entry->number, hit.document_key, &doc) != 0)
            continue;
        count += doc_entry_batch(&doc, field->number) == hit.batch;
        doc_release(&doc);
    }
    entry_scan_free(scan);
    catalog_unref(catalog);
    return count;
}

static void test_entries_follow_documents(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "e", "1", "{\"name\":\"bill\"}");
    fixture_index(&fixture, "e", "2", "{\"name\":\"bill\"}");
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "bill"), 2);
    fixture_index(&fixture, "e", "1", "{\"name\":\"hillary\"}");
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "bill"), 1);
    fixture_delete(&fixture, "e", "2");
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "bill"), 0);
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "hillary"), 1);

    command = fixture_write_command(&fixture, 200);
    for (size_t i = 0; i < 200; i++) {
        char *id = arena_alloc(&command->arena, 16);
        snprintf(id, 16, "%zu", i);
        command->write.items[i] = fixture_item(WRITE_INDEX, "e", "", id, "{\"name\":\"many\"}");
    }
    fixture_run(&fixture, command, 1);
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "many"), 200);
    fixture_index(&fixture, "e", "7", "{\"name\":\"bill\"}");
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "many"), 199);
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "bill"), 1);
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "hillary"), 0);
    fixture_index(&fixture, "e", "7", "{\"name\":\"many\",\"other\":\"x\"}");
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "many"), 200);
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "bill"), 0);
    assert_int_equal(hits_of(&fixture, "e", "other.keyword", "x"), 1);
    fixture_index(&fixture, "e", "7", "{\"other\":\"y\"}");
    fixture_index(&fixture, "e", "7", "{\"name\":\"many\",\"other\":\"y\"}");
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "many"), 200);
    fixture_delete(&fixture, "e", "7");
    assert_int_equal(hits_of(&fixture, "e", "name.keyword", "many"), 199);
    assert_int_equal(hits_of(&fixture, "e", "other.keyword", "y"), 0);
    fixture_close(&fixture);
}

static void test_closed_index_refuses_writes(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "c", "1", "{}");
    command = command_new(COMMAND_INDEX_STATE, DIALECT_7);
    command->index.name = SLICE_LIT("c");
    command->index.close = true;
    fixture_run(&fixture, command, 1);
    assert_int_equal(fixture_index(&fixture, "c", "2", "{}")->problem.type, PROBLEM_INDEX_CLOSED);
    fixture_reopen(&fixture);
    assert_int_equal(fixture_index(&fixture, "c", "2", "{}")->problem.type, PROBLEM_INDEX_CLOSED);
    fixture_close(&fixture);
}

static void test_write_creates_missing_index_except_delete(void **state)
{
    struct core_fixture fixture;
    struct write_item item = fixture_item(WRITE_DELETE, "fresh", "", "1", NULL);
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(fixture_write_one(&fixture, item)->problem.type, PROBLEM_INDEX_NOT_FOUND);
    item.version_type = VERSION_EXTERNAL;
    item.version = 3;
    assert_int_equal(fixture_write_one(&fixture, item)->version, 3);
    assert_int_equal(fixture_index(&fixture, "Upper", "1", "{}")->problem.type, PROBLEM_INVALID_INDEX_NAME);
    fixture_close(&fixture);
}

/* Locks or unlocks document 1 of index "fs". */
static void run_lock(struct core_fixture *fixture, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->owner.session = SLICE_LIT("s1");
    command->lock.target_count = 1;
    command->lock.targets = arena_zalloc(&command->arena, sizeof *command->lock.targets);
    *command->lock.targets = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = SLICE_LIT("1")};
    fixture_run(fixture, command, 1);
    assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
}

/*
 * The last timestamp is stored in a fencing token or in a record of its own; both must be found
 * after opening.
 */
static void test_last_ts_of_lock_survives_reopen(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    fixture_open(&fixture);
    command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = SLICE_LIT("s1");
    command->session.ttl_us = 3600 * TL_SECOND;
    fixture_run(&fixture, command, 1);
    for (int i = 0; i < 2; i++) {
        run_lock(&fixture, i == 0 ? COMMAND_LOCK : COMMAND_UNLOCK);
        tl_ts last = core_last_ts(fixture.core);
        uint64_t digest = fixture_digest(&fixture);
        fixture_reopen(&fixture);
        assert_int_equal(core_last_ts(fixture.core), last);
        assert_int_equal(fixture_digest(&fixture), digest);
    }
    fixture_close(&fixture);
}

/* Returns: a source of about 10 KB, of which little is indexed. */
static struct slice large_source(struct arena *arena, int number)
{
    enum { TEXT_BYTES = 10000 };
    char *text = arena_alloc(arena, TEXT_BYTES);

    memset(text, 'x', TEXT_BYTES);
    return arena_printf(arena, "{\"number\":%d,\"text\":\"%.*s\"}", number, (int)TEXT_BYTES, text);
}

static uint64_t digest_of_bulk(size_t count, bool atomic, bool ahead)
{
    struct core_fixture fixture;
    struct problem problem;

    fixture_open(&fixture);
    fixture.unbounded = true; /* the core accepts commands of any size */
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"dynamic\":false,\"properties\":{\"number\":{\"type\":\"long\"}}}}");
    struct command *command = fixture_write_command(&fixture, count);
    struct json_doc *parsed = arena_zalloc(&command->arena, count * sizeof(*parsed));
    command->write.atomic = atomic;
    for (size_t i = 0; i < count; i++) {
        struct write_item item = fixture_item(WRITE_INDEX, "fs", "", NULL, NULL);
        item.id = arena_printf(&command->arena, "%zu", i * 7919 % count);
        item.source = large_source(&command->arena, (int)i);
        if (ahead && json_parse(&command->arena, item.source, DIALECT_7, JSON_DOCUMENT, &parsed[i], &problem) == 0)
            item.parsed = &parsed[i];
        command->write.items[i] = item;
    }
    fixture_run(&fixture, command, 1);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    assert_true(atomic == (command->write.results[count - 1].outcome == WRITE_CREATED));
    uint64_t digest = fixture_digest(&fixture);
    fixture_close(&fixture);
    return digest;
}

/* The work of a step starts at 0, increases with its operations, and is equal on another core. */
static void test_work_is_counted_per_step(void **state)
{
    struct core_fixture fixture[2];
    uint64_t work[2][3];
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct write_update loop = {.script_source = SLICE_LIT("for (int i = 0; i < 900; i++) { ctx._source.n++ }")};
        fixture_open(&fixture[i]);
        fixture_index(&fixture[i], "u", "0", "{\"n\":1}");
        fixture_index(&fixture[i], "u", "1", "{\"n\":1}");
        work[i][0] = core_step_work(fixture[i].core);
        fixture_index(&fixture[i], "u", "2", "{\"n\":1}");
        work[i][1] = core_step_work(fixture[i].core);
        fixture_update(&fixture[i], "u", "1", loop);
        work[i][2] = core_step_work(fixture[i].core);
        fixture_close(&fixture[i]);
    }
    assert_memory_equal(work[0], work[1], sizeof work[0]);
    assert_int_equal(work[0][0], work[0][1]);
    assert_true(work[0][0] > 0);
    assert_true(work[0][2] > work[0][1] + 900 / WORK_SCRIPT_STEPS);
}

/*
 * Sources parsed in advance affect no result: a bulk is divided at the same items, and the documents
 * of an atomic one, which is not, have the same batches. Without them it parses 40 MB in the step.
 */
static void test_bulk_batches_do_not_depend_on_parsing(void **state)
{
    (void)state;
    assert_true(digest_of_bulk(1000, false, false) == digest_of_bulk(1000, false, true));
    assert_true(digest_of_bulk(4000, true, false) == digest_of_bulk(4000, true, true));
}

/* A rename with what its submitter found at `from`. */
static struct command *rename_command(const char *from, const char *to, const struct path_finding *found_from)
{
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);

    command->rename = (struct rename_command){
        .index = slice_from("tree"), .from = slice_from(from), .to = slice_from(to), .if_seq_no = SEQ_NO_ANY};
    if (found_from != NULL)
        command->rename.found_from = *found_from;
    return command;
}

static tl_ts watch(struct core_fixture *fixture, const char *one, const char *two)
{
    struct command *command = command_new(COMMAND_PLACES_WATCH, DIALECT_7);
    command->places = (struct places_command){slice_from("tree"), {slice_from(one), slice_from(two)}};
    return fixture_run(fixture, command, 1)->ts;
}

static void open_tree(struct core_fixture *fixture)
{
    fixture_open(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
}

/* What a script returned before its own transaction renamed the document would move it back. */
static void test_rename_in_a_transaction_outdates_what_a_script_returned(void **state)
{
    struct core_fixture fixture;
    struct doc doc;
    (void)state;

    open_tree(&fixture);
    fixture_index(&fixture, "tree", "1", "{\"path\":\"/a/x\"}");
    struct view view = {fixture.store, TL_TS_MAX, NULL};
    struct catalog *catalog = core_catalog(fixture.core);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("tree"));
    const struct mapping_type *type = mapping_type(index->mapping, SLICE_LIT(""));
    assert_int_equal(doc_get(&view, index->number, type->number, SLICE_LIT("1"), &doc), 0);
    catalog_unref(catalog);
    const struct write_update update = {.script_source = SLICE_LIT("ctx._source.n = 1"),
                                        .ready = {.given = true,
                                                  .op = UPDATE_INDEX,
                                                  .source = SLICE_LIT("{\"path\":\"/a/x\",\"n\":1}"),
                                                  .read_ts = doc.ts,
                                                  .version = doc.version,
                                                  .seq_no = doc.seq_no}};
    doc_release(&doc);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *command = rename_command("/a", "/b", NULL);
    command->owner.transaction = SLICE_LIT("t");
    assert_int_equal(fixture_run(&fixture, command, TL_MS)->problem.type, PROBLEM_NONE);
    command = fixture_write_command(&fixture, 1);
    command->write.items[0] = fixture_item(WRITE_UPDATE, "tree", NULL, "1", NULL);
    command->write.items[0].update = &update;
    command->owner.transaction = SLICE_LIT("t");
    const struct write_result *result = &fixture_run(&fixture, command, TL_MS)->write.results[0];
    assert_int_equal(result->outcome, WRITE_FAILED);
    assert_true(result->script_long);
    fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
    assert_string_equal(fixture_source(&fixture, "tree", "1"), "{\"path\":\"/b/x\"}");
    fixture_close(&fixture);
}

/*
 * A submitter's finding that nothing is at a path is used while the path is watched, so that the
 * step need not search; and no longer.
 */
static void test_rename_trusts_empty_paths_while_watched(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    open_tree(&fixture);
    fixture_index(&fixture, "tree", "1", "{\"path\":\"/a/x\"}");
    struct path_finding nothing = {.ts = fixture.now}; /* at /a, which is wrong */
    command = fixture_run(&fixture, rename_command("/a", "/b", &nothing), 1);
    assert_true(command->rename.unknown); /* was never watched */
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_string_equal(fixture_source(&fixture, "tree", "1"), "{\"path\":\"/a/x\"}");
    command = fixture_run(&fixture, rename_command("/a", "/b", NULL), 1);
    assert_false(command->rename.unknown);

    tl_ts watched = watch(&fixture, "/b/", "/c");
    assert_int_equal(watched, fixture.now);
    assert_false(fixture.last->places.empty[0] || fixture.last->places.empty[1]);
    nothing.ts = watched - 1;
    command = fixture_run(&fixture, rename_command("/b", "/c", &nothing), 1);
    assert_true(command->rename.unknown); /* searched before it was watched */
    command = fixture_run(&fixture, rename_command("/b", "/c", NULL), 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);

    watch(&fixture, "/b", "/c");
    assert_true(fixture.last->places.empty[0] && !fixture.last->places.empty[1]); /* known from the rename */

    nothing.ts = watch(&fixture, "/c", "/d");
    for (int i = 0; i < 3; i++) {
        command = fixture_run(&fixture, rename_command("/c", "/d", &nothing), 1);
        assert_int_equal(command->problem.type, PROBLEM_PATH_MISSING); /* so it is trusted */
        if (i == 0)
            fixture_index(&fixture, "tree", "2", "{\"path\":\"/elsewhere\"}");
        if (i == 1)
            fixture_reopen(&fixture); /* a checkpoint has the watched paths */
    }
    fixture_index(&fixture, "tree", "3", "{\"path\":\"/c/d/e\"}");
    command = fixture_run(&fixture, rename_command("/c", "/d", &nothing), 1);
    assert_true(command->rename.unknown); /* a document was added */
    fixture_close(&fixture);
}

/*
 * Documents written below a directory, or above it, do not end the watch of the directory itself: so
 * it can be renamed while others write there all the time, however long the search takes.
 */
static void test_rename_succeeds_during_writes_below(void **state)
{
    static const char y[] = "\0\0y";
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    open_tree(&fixture);
    fixture_index(&fixture, "tree", "y", "{\"path\":\"/a/b/y\"}");
    struct path_finding found = {.ts = watch(&fixture, "/a/b", "/c"), .below = slice_make(y, 3)};
    fixture_index(&fixture, "tree", "1", "{\"path\":\"/a/b/1\"}");
    fixture_index(&fixture, "tree", "2", "{\"path\":\"/a\"}");
    fixture_index(&fixture, "tree", "3", "{\"path\":\"/z\"}");
    assert_int_equal(fixture_run(&fixture, rename_command("/z", "/a/b/z", NULL), 1)->problem.type, PROBLEM_NONE);
    fixture_reopen(&fixture);
    command = fixture_run(&fixture, rename_command("/a/b", "/c", &found), 1);
    assert_false(command->rename.unknown);
    assert_true(command->rename.directory && !command->rename.document);
    assert_string_equal(fixture_source(&fixture, "tree", "3"), "{\"path\":\"/c/z\"}");

    found.ts = watch(&fixture, "/c", "/d");
    fixture_index(&fixture, "tree", "4", "{\"path\":\"/c\"}");
    assert_true(fixture_run(&fixture, rename_command("/c", "/d", &found), 1)->rename.unknown);
    watch(&fixture, "/c", "/d");
    assert_true(fixture_run(&fixture, rename_command("/c", "/d", &found), 1)->rename.unknown); /* found before */
    fixture_close(&fixture);
}

/* A path that is too long for a document takes no memory, and is missing without a search. */
static void test_paths_too_long_are_not_kept(void **state)
{
    static char path[DOCUMENT_PATH_MAX + 2];
    struct core_fixture fixture;
    (void)state;

    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    open_tree(&fixture);
    struct path_finding nothing = {.ts = watch(&fixture, path, path)};
    assert_int_equal(fixture.core->empty_paths.count, 0);
    for (int i = 0; i < 2; i++) {
        struct command *command = fixture_run(&fixture, rename_command(path, "/c", i == 0 ? &nothing : NULL), 1);
        assert_int_equal(command->problem.type, PROBLEM_PATH_MISSING);
    }
    assert_int_equal(fixture.core->empty_paths.count, 0);
    fixture_close(&fixture);
}

/* Writes a document in a transaction, and commits it. */
static void commit_one(struct core_fixture *fixture, const char *id, const char *source)
{
    struct command *command = fixture_write_command(fixture, 1);

    fixture_txn(fixture, COMMAND_TXN_BEGIN, id);
    command->write.items[0] = fixture_item(WRITE_INDEX, "tree", "", id, source);
    command->owner.transaction = slice_from(id);
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
    fixture_txn(fixture, COMMAND_TXN_COMMIT, id);
}

/* A commit ends the watches of the paths of its documents, and no others. */
static void test_commit_keeps_watches_of_other_paths(void **state)
{
    static const char *const written[] = {"{\"path\":\"/c/d\"}", "{\"path\":\"/\\u0063/d\"}", "{\"path\":\"/c\"}"};
    struct core_fixture fixture;
    (void)state;

    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        open_tree(&fixture);
        struct path_finding nothing = {.ts = watch(&fixture, "/c", "/d")};
        commit_one(&fixture, "t", "{\"path\":\"/elsewhere/c\"}");
        struct command *command = fixture_run(&fixture, rename_command("/c", "/d", &nothing), 1);
        assert_int_equal(command->problem.type, PROBLEM_PATH_MISSING);
        commit_one(&fixture, "u", written[i]);
        command = fixture_run(&fixture, rename_command("/c", "/d", &nothing), 1);
        assert_true(command->rename.unknown);
        fixture_close(&fixture);
    }
}

/* A document that a submitter found is believed if it still is there, without a watch. */
static void test_rename_verifies_documents_found(void **state)
{
    static const char x[] = "\0\0x", y[] = "\0\0y", none[] = "\0\0z", garbage[] = "\377";
    struct slice key_x = slice_make(x, 3), key_y = slice_make(y, 3);
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    open_tree(&fixture);
    fixture_index(&fixture, "tree", "x", "{\"path\":\"/a\"}");
    fixture_index(&fixture, "tree", "y", "{\"path\":\"/a/y\"}");
    struct path_finding found[] = {
        {.ts = 1, .document = key_x},                               /* nothing below is out of date */
        {.ts = 1, .document = key_y, .below = slice_make(none, 3)}, /* not at it; does not exist */
        {.ts = 1, .document = slice_make(garbage, 1), .below = key_y},
        {.ts = 1, .document = key_x, .below = key_y},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        command = fixture_run(&fixture, rename_command("/a", "/b", &found[i]), 1);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_int_equal(command->rename.unknown, i + 1 < sizeof found / sizeof *found);
    }
    assert_true(command->rename.document && command->rename.directory);
    assert_string_equal(fixture_source(&fixture, "tree", "y"), "{\"path\":\"/b/y\"}");
    command = rename_command("/b/y", "/q", NULL);
    command->rename.found_to = (struct path_finding){.ts = 1, .document = key_x};
    command = fixture_run(&fixture, command, 1);
    assert_true(command->rename.unknown); /* x is elsewhere */
    command = rename_command("/b/y", "/b", NULL);
    command->rename.found_to = (struct path_finding){.ts = 1, .document = key_x};
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_PATH_EXISTS);
    fixture_close(&fixture);
}

/* Documents that were at /a, and renamed to /c one by one. */
enum { MOVED_AWAY = 2500 };

static void move_away(struct core_fixture *fixture)
{
    char source[64], from[32], to[32], id[24];

    for (int k = 0; k < MOVED_AWAY; k++) {
        snprintf(id, sizeof id, "%d", k);
        snprintf(from, sizeof from, "/a/%d", k);
        snprintf(to, sizeof to, "/c/%d", k);
        snprintf(source, sizeof source, "{\"path\":\"%s\"}", from);
        fixture_index(fixture, "tree", id, source);
        assert_int_equal(fixture_run(fixture, rename_command(from, to, NULL), 1)->problem.type, PROBLEM_NONE);
    }
}

/*
 * A step reads a limited number of entries, whatever was at the paths, with findings or without; so
 * does a replay of the command, which has the same findings. A command of a version before 8
 * searches as it did then.
 */
static void test_rename_reads_few_entries_of_emptied_directory(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    const uint64_t few = 2 * 1000 * (WORK_SCAN + 2 * WORK_READ) + 1000;
    (void)state;

    open_tree(&fixture);
    move_away(&fixture);
    command = rename_command("/a", "/b", NULL);
    command->rename.single_step = true;
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_PATH_MISSING);
    assert_in_range(core_step_work(fixture.core), MOVED_AWAY * WORK_READ, UINT64_MAX);
    watch(&fixture, "/a", "/b");
    assert_false(fixture.last->places.empty[0]); /* older commands add no known path */
    fixture_index(&fixture, "tree", "z", "{\"path\":\"/z/z\"}");
    command = fixture_run(&fixture, rename_command("/z", "/a", NULL), 1);
    assert_true(command->rename.unknown); /* the limit was reached */
    assert_in_range(core_step_work(fixture.core), 1000 * WORK_READ, few);
    command = rename_command("/z", "/a", NULL);
    command->rename.found_to.ts = watch(&fixture, "/a", "/b");
    command_encode(command, &bytes);
    command_free(command);
    fixture_reopen(&fixture);
    assert_int_equal(command_decode(buf_as_slice(&bytes), &command), 0); /* as a follower, or a replay, does */
    command = fixture_run(&fixture, command, 1);
    assert_false(command->rename.unknown);
    assert_in_range(core_step_work(fixture.core), 1, 1000);
    assert_string_equal(fixture_source(&fixture, "tree", "z"), "{\"path\":\"/a/z\"}");
    buf_deinit(&bytes);
    fixture_close(&fixture);
}

static void put_report(struct core_fixture *fixture, const char *name, const char *body, enum problem_type problem)
{
    fixture_object_command(fixture, COMMAND_COPY_REPORT, name, body);
    assert_int_equal(fixture->last->problem.type, problem);
}

static void assert_report(struct core_fixture *fixture, const char *name, const char *body)
{
    struct catalog *catalog = core_catalog(fixture->core);
    const struct catalog_object *copy = catalog_object(catalog, CATALOG_COPIES, slice_from(name));
    if (body == NULL)
        assert_null(copy);
    else
        assert_slice_equal(copy->body, body);
    catalog_unref(catalog);
}

/* Reports of feed consumers survive a restart; members that a report lacks stay unchanged. */
static void test_consumer_reports_persist(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_report(&fixture, "a", "{\"target\":\"x\",\"place\":1}", PROBLEM_NONE);
    put_report(&fixture, "a", "{\"place\":2}", PROBLEM_NONE);
    assert_report(&fixture, "a", "{\"target\":\"x\",\"place\":2}");
    put_report(&fixture, "b", "{}", PROBLEM_NONE);
    fixture_reopen(&fixture);
    assert_report(&fixture, "a", "{\"target\":\"x\",\"place\":2}");
    put_report(&fixture, "", "{}", PROBLEM_ILLEGAL_ARGUMENT);
    char *much = mem_alloc(CATALOG_COPY_BYTES_MAX + 64);
    snprintf(much, CATALOG_COPY_BYTES_MAX + 64, "{\"target\":\"%0*d\"}", CATALOG_COPY_BYTES_MAX, 0);
    put_report(&fixture, "a", much, PROBLEM_ILLEGAL_ARGUMENT);
    mem_free(much);
    fixture_object_command(&fixture, COMMAND_COPY_FORGET, "a", NULL);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    fixture_object_command(&fixture, COMMAND_COPY_FORGET, "a", NULL);
    assert_int_equal(fixture.last->problem.type, PROBLEM_RESOURCE_NOT_FOUND);
    assert_report(&fixture, "a", NULL);
    for (int i = 0; i < CATALOG_COPIES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        put_report(&fixture, name, "{}", i + 1 < CATALOG_COPIES_MAX ? PROBLEM_NONE : PROBLEM_LIMIT_EXCEEDED);
    }
    fixture_close(&fixture);
}

/* --- Users, roles, keys ------------------------------------------------------------------------------------------- */

static void secure(struct core_fixture *fixture, enum command_type type, const char *kind, const char *body,
                   enum problem_type problem)
{
    struct command *command = command_new(type, DIALECT_7);
    command->object.name = SLICE_LIT("a");
    command->object.lang = slice_from(kind);
    command->object.body = body == NULL ? SLICE_NONE : slice_from(body);
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, problem);
}

static void assert_secured(struct core_fixture *fixture, enum catalog_kind kind, const char *body)
{
    struct catalog *catalog = core_catalog(fixture->core);
    const struct catalog_object *object = catalog_object(catalog, kind, SLICE_LIT("a"));
    if (body == NULL)
        assert_null(object);
    else
        assert_slice_equal(object->body, body);
    catalog_unref(catalog);
}

/*
 * PUT replaces an object except a user's password; CHANGE replaces the members given. Kinds have
 * separate names. All objects survive a restart.
 */
static void test_security_objects_persist(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    secure(&fixture, COMMAND_SECURITY_PUT, "user", "{\"roles\":[]}", PROBLEM_ACTION_REQUEST_VALIDATION);
    assert_secured(&fixture, CATALOG_USERS, NULL);
    secure(&fixture, COMMAND_SECURITY_CHANGE, "user", "{\"hash\":\"h\"}", PROBLEM_RESOURCE_NOT_FOUND);
    secure(&fixture, COMMAND_SECURITY_PUT, "user", "{\"hash\":\"h\",\"email\":\"e\"}", PROBLEM_NONE);
    secure(&fixture, COMMAND_SECURITY_PUT, "user", "{\"roles\":[\"r\"]}", PROBLEM_NONE);
    assert_secured(&fixture, CATALOG_USERS, "{\"hash\":\"h\",\"roles\":[\"r\"]}");
    assert_true(fixture.last->object.existed);
    secure(&fixture, COMMAND_SECURITY_CHANGE, "user", "{\"hash\":\"i\"}", PROBLEM_NONE);
    secure(&fixture, COMMAND_SECURITY_PUT, "role", "{\"indices\":[]}", PROBLEM_NONE);
    assert_false(fixture.last->object.existed);
    secure(&fixture, COMMAND_SECURITY_PUT, "role", "{}", PROBLEM_NONE);
    secure(&fixture, COMMAND_SECURITY_PUT, "api_key", "{\"hash\":\"k\"}", PROBLEM_NONE);
    secure(&fixture, COMMAND_SECURITY_PUT, "group", "{}", PROBLEM_ILLEGAL_ARGUMENT);
    fixture_reopen(&fixture);
    assert_secured(&fixture, CATALOG_USERS, "{\"roles\":[\"r\"],\"hash\":\"i\"}");
    assert_secured(&fixture, CATALOG_ROLES, "{}");
    assert_secured(&fixture, CATALOG_API_KEYS, "{\"hash\":\"k\"}");
    secure(&fixture, COMMAND_SECURITY_DELETE, "api_key", NULL, PROBLEM_NONE);
    secure(&fixture, COMMAND_SECURITY_DELETE, "api_key", NULL, PROBLEM_RESOURCE_NOT_FOUND);
    assert_secured(&fixture, CATALOG_API_KEYS, NULL);
    assert_secured(&fixture, CATALOG_ROLES, "{}");
    fixture_close(&fixture);
}

static void create_index(struct core_fixture *fixture, const char *name, const char *body)
{
    struct command *command = command_new(COMMAND_INDEX_CREATE, DIALECT_7);
    command->index.name = slice_from(name);
    command->index.body = slice_from(body);
    command->index.uuid = arena_printf(&command->arena, "uuid-of-index-%s-padding", name);
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static bool is_not_b(const void *context, struct slice name)
{
    (void)context;
    return !slice_is(name, "b");
}

/*
 * A hidden index is in no list, under no number and reached by no alias of the filtered catalog;
 * the original is unchanged.
 */
static void test_catalog_filter_hides_indices(void **state)
{
    struct core_fixture fixture;
    const struct catalog_index *index;
    const struct catalog_alias *alias;
    struct problem problem;
    struct arena arena = ARENA_INIT;
    (void)state;

    fixture_open(&fixture);
    create_index(&fixture, "a", "{\"aliases\":{\"both\":{}}}");
    create_index(&fixture, "b", "{\"aliases\":{\"both\":{},\"own\":{}}}");
    create_index(&fixture, "c", "{}");
    struct catalog *all = core_catalog(fixture.core);
    uint32_t number = catalog_index(all, SLICE_LIT("b"))->number;
    struct catalog *filtered = catalog_filter(all, is_not_b, NULL);
    assert_int_equal(catalog_index_count(filtered), 2);
    assert_null(catalog_index(filtered, SLICE_LIT("b")));
    assert_null(catalog_index_by_number(filtered, number));
    assert_false(catalog_has_alias(filtered, SLICE_LIT("own")));
    assert_int_equal(catalog_find(filtered, SLICE_LIT("both"), false, DIALECT_7, &arena, &index, &alias, &problem), 0);
    assert_slice_equal(index->name, "a");
    assert_non_null(catalog_index(filtered, SLICE_LIT("c")));
    struct catalog *again = catalog_filter(filtered, is_not_b, NULL);
    assert_ptr_equal(again, filtered);
    assert_int_equal(catalog_index_count(all), 3);
    assert_true(catalog_has_alias(all, SLICE_LIT("own")));
    assert_true(catalog_same_objects(all, filtered, CATALOG_USERS));
    catalog_unref(again);
    catalog_unref(filtered);
    catalog_unref(all);
    arena_deinit(&arena);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_counts_create_and_update),
        cmocka_unit_test(test_version_continues_across_delete_until_maintenance),
        cmocka_unit_test(test_gc_deletes),
        cmocka_unit_test(test_gc_deletes_is_no_way_back),
        cmocka_unit_test(test_maintenance_keeps_deletes_that_count),
        cmocka_unit_test(test_maintenance_removes_tombstones_and_deleted_indices),
        cmocka_unit_test(test_limits_persist_once_recorded),
        cmocka_unit_test(test_read_at_earlier_timestamp),
        cmocka_unit_test(test_version_types_are_checked),
        cmocka_unit_test(test_write_checks_if_seq_no),
        cmocka_unit_test(test_create_refuses_existing_document),
        cmocka_unit_test(test_types_have_separate_documents),
        cmocka_unit_test(test_typeless_write_uses_only_type),
        cmocka_unit_test(test_typeless_write_uses_doc_among_several_types),
        cmocka_unit_test(test_bulk_items_see_earlier_ones),
        cmocka_unit_test(test_atomic_bulk_is_all_or_nothing),
        cmocka_unit_test(test_update_merges_and_detects_noops),
        cmocka_unit_test(test_update_runs_scripts),
        cmocka_unit_test(test_update_fails_script_above_its_limit),
        cmocka_unit_test(test_scripts_of_an_atomic_write_in_a_transaction_are_limited),
        cmocka_unit_test(test_update_takes_over_what_a_script_returned),
        cmocka_unit_test(test_bulk_postpones_a_script_for_its_submitter),
        cmocka_unit_test(test_many_items_of_a_transaction_are_postponed_in_a_bounded_step),
        cmocka_unit_test(test_script_of_an_update_runs_once),
        cmocka_unit_test(test_script_runs_again_if_its_document_has_changed),
        cmocka_unit_test(test_script_of_an_upsert_by_routing_runs_again),
        cmocka_unit_test(test_work_of_a_script_counts_once),
        cmocka_unit_test(test_scripts_of_a_blocked_bulk_run_once),
        cmocka_unit_test(test_rename_in_a_transaction_outdates_what_a_script_returned),
        cmocka_unit_test(test_bulk_postpones_items_after_endless_script),
        cmocka_unit_test(test_scripts_of_older_commands_format_numbers_as_before),
        cmocka_unit_test(test_bulk_postpones_scripts_above_command_limit),
        cmocka_unit_test(test_bulk_postpones_indices_above_command_limit),
        cmocka_unit_test(test_step_counts_mappings),
        cmocka_unit_test(test_older_bulk_is_not_divided_by_mappings),
        cmocka_unit_test(test_large_document_is_one_operation),
        cmocka_unit_test(test_bulk_postpones_items_by_stored_documents),
        cmocka_unit_test(test_bulk_counts_finding_of_locks),
        cmocka_unit_test(test_work_of_a_whole_is_limited),
        cmocka_unit_test(test_work_of_a_commit_is_that_of_its_records),
        cmocka_unit_test(test_work_of_a_commit_is_limited),
        cmocka_unit_test(test_results_are_limited),
        cmocka_unit_test(test_older_bulk_is_not_divided_by_work),
        cmocka_unit_test(test_atomic_write_makes_mappings_in_pieces),
        cmocka_unit_test(test_atomic_write_refuses_scripts_above_limit),
        cmocka_unit_test(test_write_refuses_source_that_does_not_fit_mapping),
        cmocka_unit_test(test_dates_of_released_commands_stay),
        cmocka_unit_test(test_malformed_dates_have_entries),
        cmocka_unit_test(test_index_keeps_date_rules_of_its_creation),
        cmocka_unit_test(test_write_refuses_long_ids),
        cmocka_unit_test(test_entries_follow_documents),
        cmocka_unit_test(test_closed_index_refuses_writes),
        cmocka_unit_test(test_write_creates_missing_index_except_delete),
        cmocka_unit_test(test_last_ts_of_lock_survives_reopen),
        cmocka_unit_test(test_work_is_counted_per_step),
        cmocka_unit_test(test_bulk_batches_do_not_depend_on_parsing),
        cmocka_unit_test(test_rename_trusts_empty_paths_while_watched),
        cmocka_unit_test(test_rename_succeeds_during_writes_below),
        cmocka_unit_test(test_paths_too_long_are_not_kept),
        cmocka_unit_test(test_commit_keeps_watches_of_other_paths),
        cmocka_unit_test(test_rename_verifies_documents_found),
        cmocka_unit_test(test_rename_reads_few_entries_of_emptied_directory),
        cmocka_unit_test(test_consumer_reports_persist),
        cmocka_unit_test(test_security_objects_persist),
        cmocka_unit_test(test_catalog_filter_hides_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
