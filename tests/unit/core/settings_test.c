/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: nested or flat input is rendered as Elasticsearch does. */
#include "../../lib/unit.h"

#include "core/catalog/index_settings.h"
#include "core/catalog/setting_kind.h"
#include "core/catalog/settings.h"

struct settings_fixture {
    struct arena arena;
    struct settings settings;
    struct problem problem;
};

static int parse(struct settings_fixture *fixture, const char *json)
{
    struct json_doc doc;

    assert_int_equal(json_parse_stored(&fixture->arena, slice_from(json), &doc), 0);
    return settings_parse(doc.root, SLICE_LIT("index."), &fixture->arena, &fixture->settings, &fixture->problem);
}

static const char *render(struct settings_fixture *fixture, bool flat)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct slice text;

    settings_render(&fixture->settings, flat, &buf);
    text = arena_copy(&fixture->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text.data;
}

static void test_settings_nested_and_flat_are_equal(void **state)
{
    struct settings_fixture fixture = {.arena = ARENA_INIT};
    (void)state;

    assert_int_equal(parse(&fixture,
                           "{\"index\":{\"number_of_shards\":3},\"index.refresh_interval\":\"1s\",\"hidden\":true,"
                           "\"analysis\":{\"filter\":{\"f\":{\"stopwords\":[\"a\",1]}}}}"),
                     0);
    assert_string_equal(render(&fixture, true),
                        "{\"index.analysis.filter.f.stopwords\":[\"a\",\"1\"],\"index.hidden\":\"true\","
                        "\"index.number_of_shards\":\"3\",\"index.refresh_interval\":\"1s\"}");
    assert_string_equal(
        render(&fixture, false),
        "{\"index\":{\"analysis\":{\"filter\":{\"f\":{\"stopwords\":[\"a\",\"1\"]}}},\"hidden\":\"true\","
        "\"number_of_shards\":\"3\",\"refresh_interval\":\"1s\"}}");
    arena_deinit(&fixture.arena);
}

static void test_settings_null_removes_keys_and_wildcards(void **state)
{
    struct settings_fixture fixture = {.arena = ARENA_INIT};
    struct settings base;
    (void)state;

    parse(&fixture, "{\"routing.a\":1,\"routing.b\":2,\"codec\":\"x\"}");
    base = fixture.settings;
    parse(&fixture, "{\"routing.*\":null,\"priority\":7}");
    fixture.settings = settings_merge(&base, &fixture.settings, false, &fixture.arena);
    assert_string_equal(render(&fixture, true), "{\"index.codec\":\"x\",\"index.priority\":\"7\"}");
    parse(&fixture, "{\"codec\":\"y\",\"hidden\":true}");
    fixture.settings = settings_merge(&base, &fixture.settings, true, &fixture.arena);
    assert_string_equal(
        render(&fixture, true),
        "{\"index.codec\":\"x\",\"index.hidden\":\"true\",\"index.routing.a\":\"1\",\"index.routing.b\":\"2\"}");
    arena_deinit(&fixture.arena);
}

/* A change in place has the result of a merge into a copy, whatever was changed before, and moves few settings. */
static void test_settings_are_changed_in_place(void **state)
{
    enum { ROUNDS = 3000, KEYS = 40 };
    struct settings_fixture fixture = {.arena = ARENA_INIT};
    struct settings merged = {0}, changed = {0};
    struct settings_memory memory = {0};
    uint32_t random = 1;
    size_t moved = 0;
    (void)state;

    for (int round = 0; round < ROUNDS; round++) {
        struct buf json = BUF_INIT(BUF_UNLIMITED);
        buf_lit(&json, "{\"zz\":0");
        for (unsigned part = 0; part < 3; part++) { /* of which each has names of its own */
            random = random * 1664525 + 1013904223;
            unsigned key = (random >> 8) % KEYS * 3 + part, kind = (random >> 20) % 10;
            buf_printf(&json, ",\"k%u%s\":", key, kind == 0 ? "*" : kind < 3 ? ".a" : "");
            if (kind == 0 || kind == 9)
                buf_lit(&json, "null");
            else
                buf_printf(&json, "%d", round);
        }
        buf_append(&json, "}", sizeof "}");
        assert_int_equal(parse(&fixture, json.data), 0);
        buf_deinit(&json);
        merged = settings_merge(&merged, &fixture.settings, false, &fixture.arena);
        moved += settings_apply(&changed, &memory, &fixture.settings, &fixture.arena);
        if (round % 100 == 0) { /* others may change the settings in between */
            settings_set(&merged, &fixture.arena, SLICE_LIT("index.k1"), SLICE_LIT("x"));
            settings_set(&changed, &fixture.arena, SLICE_LIT("index.k1"), SLICE_LIT("x"));
        }
        assert_int_equal(changed.count, merged.count);
        for (size_t i = 0; i < merged.count; i++) {
            const struct setting *one = &changed.items[i], *other = &merged.items[i];
            assert_true(slice_equal(one->key, other->key));
            assert_int_equal(one->value_count, other->value_count);
            assert_true(slice_equal(one->values[0], other->values[0]));
        }
    }
    assert_in_range(moved, ROUNDS, (size_t)ROUNDS * 9 * KEYS);
    moved = settings_apply(&changed, &memory, &(struct settings){changed.items, 1}, &fixture.arena);
    assert_in_range(moved, 0, changed.count); /* once into memory, then none */
    assert_int_equal(settings_apply(&changed, &memory, &(struct settings){changed.items, 1}, &fixture.arena), 0);
    arena_deinit(&fixture.arena);
}

static void refused_as(const char *json, bool update, enum problem_type type, const char *reason)
{
    struct settings_fixture fixture = {.arena = ARENA_INIT};

    assert_int_equal(parse(&fixture, json), 0);
    assert_int_equal(
        index_settings__check(&fixture.settings, update, SETTING_RULES_NEWEST, &fixture.arena, &fixture.problem),
        INDEX_SETTINGS_REFUSED);
    assert_int_equal(fixture.problem.type, type);
    assert_slice_equal(fixture.problem.reason, reason);
    arena_deinit(&fixture.arena);
}

static void refused(const char *json, const char *reason)
{
    refused_as(json, false, PROBLEM_ILLEGAL_ARGUMENT, reason);
    refused_as(json, true, PROBLEM_ILLEGAL_ARGUMENT, reason);
}

/* In a new index all private settings are reported, after errors of others; in an update the first error. */
static void test_settings_refuse_private(void **state)
{
    (void)state;
    refused_as("{\"version.created\":1,\"verified_before_close\":true}", false, PROBLEM_VALIDATION,
               "Validation Failed: 1: private index setting [index.verified_before_close] can not be set explicitly;"
               "2: private index setting [index.version.created] can not be set explicitly;");
    refused_as(
        "{\"verified_before_close\":true,\"version.created\":1}", true, PROBLEM_ILLEGAL_ARGUMENT,
        "can not update private setting [index.verified_before_close]; this setting is managed by Elasticsearch");
    refused_as("{\"search.throttled\":true,\"translog.durability\":\"x\"}", false, PROBLEM_ILLEGAL_ARGUMENT,
               "No enum constant org.elasticsearch.index.translog.Translog.Durability.X");
}

static void test_settings_propose_similar_names(void **state)
{
    (void)state;
    refused("{\"number_of_shard\":1}",
            "unknown setting [index.number_of_shard] did you mean [index.number_of_shards]?");
    refused("{\"block.write\":1}",
            "unknown setting [index.block.write] did you mean any of [index.blocks.write, index.blocks.read]?");
}

static void test_settings_refuse_unknown_and_invalid(void **state)
{
    (void)state;
    refused("{\"bogus\":1}",
            "unknown setting [index.bogus] please check that any required plugins are installed, or check the "
            "breaking changes documentation for removed settings");
    refused("{\"default_pipeline\":\"p\"}",
            "[index.default_pipeline] cannot be [p]: there are no ingest pipelines here, only [_none]");
    refused("{\"final_pipeline\":\"p\"}",
            "[index.final_pipeline] cannot be [p]: there are no ingest pipelines here, only [_none]");
    refused("{\"number_of_shards\":0}", "Failed to parse value [0] for setting [index.number_of_shards] must be >= 1");
    refused("{\"number_of_shards\":2000}",
            "Failed to parse value [2000] for setting [index.number_of_shards] must be <= 1024");
    refused("{\"number_of_replicas\":\"x\"}", "Failed to parse value [x] for setting [index.number_of_replicas]");
    refused("{\"hidden\":\"maybe\"}", "Failed to parse value [maybe] as only [true] or [false] are allowed.");
    refused("{\"refresh_interval\":\"5\"}",
            "failed to parse setting [index.refresh_interval] with value [5] as a time value: "
            "unit is missing or unrecognized");
    refused("{\"translog.durability\":\"x\"}",
            "No enum constant org.elasticsearch.index.translog.Translog.Durability.X");
    refused("{\"translog.sync_interval\":\"99ms\"}",
            "failed to parse value [99ms] for setting [index.translog.sync_interval], must be >= [100ms]");
    refused("{\"translog.flush_threshold_size\":\"55b\"}",
            "failed to parse value [55b] for setting [index.translog.flush_threshold_size], must be >= [56b]");
    refused("{\"merge.policy.segments_per_tier\":1.5}",
            "Failed to parse value [1.5] for setting [index.merge.policy.segments_per_tier] must be >= 2.0");
    refused("{\"store.type\":\"\"}", "Unknown store type []");
    refused("{\"search.slowlog.threshold.query.warn\":\"\"}",
            "failed to parse setting [index.search.slowlog.threshold.query.warn] with value [] as a time value: "
            "unit is missing or unrecognized");
    refused("{\"refresh_interval\":\"9999999999999999999s\"}",
            "failed to parse [9999999999999999999s], fractional time values are not supported");
    refused("{\"mapping.coerce\":false}", "[index.mapping.coerce] is not supported, only [true]: fields have [coerce]");
    refused("{\"query.default_field\":[\"a\",\"b\"]}",
            "[index.query.default_field] is not supported, only [*]: queries have [default_field] and [fields]");
    refused("{\"similarity.default.k1\":1}",
            "[index.similarity.default.k1] is not supported: fields have [similarity]: BM25 or boolean");
    refused("{\"lifecycle.name\":\"p\"}",
            "unknown setting [index.lifecycle.name] please check that any required plugins are installed, or check the "
            "breaking changes documentation for removed settings");
    refused("{\"uuid\":\"x\"}",
            "unknown setting [index.uuid] please check that any required plugins are installed, or check the "
            "breaking changes documentation for removed settings");
}

/* Commands of old logs keep what they did: a setting that is refused since was accepted. */
/* Values that commands before version 19 refused are refused by all. */
static void test_fixed_values_are_compared_exactly(void **state)
{
    (void)state;
    for (enum setting_rules rules = SETTING_RULES_FIRST; rules <= SETTING_RULES_NEWEST; rules++) {
        struct settings_fixture fixture = {.arena = ARENA_INIT};
        assert_int_equal(parse(&fixture, "{\"similarity.default.type\":\"bm25\"}"), 0);
        assert_int_equal(index_settings__check(&fixture.settings, false, rules, &fixture.arena, &fixture.problem),
                         INDEX_SETTINGS_REFUSED);
        arena_deinit(&fixture.arena);
    }
    assert_true(setting__permits(EFFECT_FIXED, SLICE_LIT("BM25"), "BM25"));
    assert_false(setting__permits(EFFECT_FIXED, SLICE_LIT("bm25"), "BM25"));
    assert_true(setting__permits(EFFECT_FIXED_19, SLICE_LIT("ALL"), "all|primaries"));
}

/* A list is no value of a setting that has one, and a mapping has a most of fields. Older commands took both. */
static void test_settings_are_bounded(void **state)
{
    static const char *const later[] = {"{\"priority\":[\"x\"]}", "{\"priority\":[]}", "{\"hidden\":[true]}",
                                        "{\"auto_expand_replicas\":[\"0-1\"]}",
                                        "{\"mapping.total_fields.limit\":10001}"};
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        struct settings_fixture fixture = {.arena = ARENA_INIT};
        assert_int_equal(parse(&fixture, later[i]), 0);
        assert_int_equal(
            index_settings__check(&fixture.settings, true, SETTING_RULES_FIXED, &fixture.arena, &fixture.problem), 0);
        assert_int_equal(
            index_settings__check(&fixture.settings, true, SETTING_RULES_BOUNDED, &fixture.arena, &fixture.problem),
            INDEX_SETTINGS_REFUSED);
        arena_deinit(&fixture.arena);
    }
    refused("{\"priority\":[\"x\",2]}", "Failed to parse value [[x, 2]] for setting [index.priority]");
    refused(
        "{\"mapping.total_fields.limit\":10001}",
        "Failed to parse value [10001] for setting [index.mapping.total_fields.limit] must be <= 10000 here: divide "
        "the documents among more indices, or map objects whose fields are not searched with [enabled: false]");
    struct settings_fixture fixture = {.arena = ARENA_INIT};
    assert_int_equal(parse(&fixture, "{\"mapping.total_fields.limit\":10000,\"query.default_field\":[\"*\"],"
                                     "\"routing.allocation.require.a\":[\"b\",\"c\"]}"),
                     0);
    assert_int_equal(
        index_settings__check(&fixture.settings, true, SETTING_RULES_BOUNDED, &fixture.arena, &fixture.problem), 0);
    arena_deinit(&fixture.arena);
}

static void test_settings_fixed_later(void **state)
{
    static const char *const later[] = {"{\"routing_partition_size\":7}", "{\"routing.allocation.enable\":\"none\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        struct settings_fixture fixture = {.arena = ARENA_INIT};
        assert_int_equal(parse(&fixture, later[i]), 0);
        assert_int_equal(
            index_settings__check(&fixture.settings, false, SETTING_RULES_FIRST, &fixture.arena, &fixture.problem), 0);
        assert_int_equal(
            index_settings__check(&fixture.settings, false, SETTING_RULES_FIXED, &fixture.arena, &fixture.problem),
            INDEX_SETTINGS_REFUSED);
        arena_deinit(&fixture.arena);
    }
    refused(
        "{\"routing.allocation.enable\":\"none\"}",
        "[index.routing.allocation.enable] is not supported, only [all|new_primaries|primaries]: an index is served "
        "as soon as it exists");
}

/* Values that 7.10 refuses when an index is created; commands before version 23 accepted them. */
static void test_settings_refuse_values_later(void **state)
{
    static const char *const later[] = {"{\"auto_expand_replicas\":\"5-2\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        struct settings_fixture fixture = {.arena = ARENA_INIT};
        assert_int_equal(parse(&fixture, later[i]), 0);
        assert_int_equal(
            index_settings__check(&fixture.settings, false, SETTING_RULES_BOUNDED, &fixture.arena, &fixture.problem),
            0);
        arena_deinit(&fixture.arena);
    }
    refused("{\"auto_expand_replicas\":\"5-2\"}",
            "[index.auto_expand_replicas] minReplicas must be =< maxReplicas but wasn't 5 > 2");
}

/* More values that 7.10 refuses; commands before version 24 accepted them. */
static void test_settings_refuse_more_values_later(void **state)
{
    static const char *const later[][2] = {
        {"{\"flush_after_merge\":\"-1\"}",
         "failed to parse value [-1] for setting [index.flush_after_merge], must be >= [0]"},
        {"{\"merge.policy.expunge_deletes_allowed\":101}",
         "forceMergeDeletesPctAllowed must be between 0.0 and 100.0 inclusive (got 101.0)"},
        {"{\"indexing.slowlog.source\":99999999999}",
         "Failed to parse value [99999999999] as only [true] or [false] are allowed."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        struct settings_fixture fixture = {.arena = ARENA_INIT};
        assert_int_equal(parse(&fixture, later[i][0]), 0);
        assert_int_equal(
            index_settings__check(&fixture.settings, false, SETTING_RULES_VALUES, &fixture.arena, &fixture.problem), 0);
        arena_deinit(&fixture.arena);
        refused(later[i][0], later[i][1]);
    }
}

/* Settings that 7.x removed are refused, with null, too; commands before version 24 accepted them. */
static void test_settings_refuse_removed_ones(void **state)
{
    static const char *const removed[][2] = {
        {"{\"mapper.dynamic\":true}", "Setting index.mapper.dynamic was removed after version 6.0.0"},
        {"{\"mapper.dynamic\":null}", "Setting index.mapper.dynamic was removed after version 6.0.0"},
        {"{\"optimize_auto_generated_id\":false}",
         "Setting [index.optimize_auto_generated_id] was removed in version 7.0.0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
        struct settings_fixture fixture = {.arena = ARENA_INIT};
        assert_int_equal(parse(&fixture, removed[i][0]), 0);
        assert_int_equal(
            index_settings__check_removed(&fixture.settings, SETTING_RULES_VALUES, &fixture.arena, &fixture.problem),
            0);
        assert_int_equal(
            index_settings__check_removed(&fixture.settings, SETTING_RULES_NEWEST, &fixture.arena, &fixture.problem),
            INDEX_SETTINGS_REFUSED);
        assert_slice_equal(fixture.problem.reason, removed[i][1]);
        arena_deinit(&fixture.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_refuse_more_values_later),
        cmocka_unit_test(test_settings_refuse_removed_ones),
        cmocka_unit_test(test_settings_nested_and_flat_are_equal),
        cmocka_unit_test(test_settings_null_removes_keys_and_wildcards),
        cmocka_unit_test(test_settings_are_changed_in_place),
        cmocka_unit_test(test_settings_refuse_unknown_and_invalid),
        cmocka_unit_test(test_settings_refuse_private),
        cmocka_unit_test(test_settings_propose_similar_names),
        cmocka_unit_test(test_settings_fixed_later),
        cmocka_unit_test(test_settings_are_bounded),
        cmocka_unit_test(test_settings_refuse_values_later),
        cmocka_unit_test(test_fixed_values_are_compared_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
