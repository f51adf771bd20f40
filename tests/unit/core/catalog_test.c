/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: names, expressions, aliases, templates, settings, and immutable snapshots. */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"
#include "../../lib/zone_sample.h"

#include <stdio.h>

#include "base/rand.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/cluster_settings.h"
#include "core/command/command_codec.h"
#include "core/documents/write_internal.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

/* Look-ups of an index by its name, by code outside of catalog.c. */
static size_t index_looks;

const struct catalog_index *__real_catalog_index(const struct catalog *catalog, struct slice name);
const struct catalog_index *__wrap_catalog_index(const struct catalog *catalog, struct slice name);

const struct catalog_index *__wrap_catalog_index(const struct catalog *catalog, struct slice name)
{
    index_looks++;
    return __real_catalog_index(catalog, name);
}

/* Objects of settings that were parsed, by code outside of settings.c. */
static size_t settings_parses;

int __real_settings_parse(yyjson_val *json, struct slice prefix, struct arena *arena, struct settings *ret_settings,
                          struct problem *ret_problem);
int __wrap_settings_parse(yyjson_val *json, struct slice prefix, struct arena *arena, struct settings *ret_settings,
                          struct problem *ret_problem);

int __wrap_settings_parse(yyjson_val *json, struct slice prefix, struct arena *arena, struct settings *ret_settings,
                          struct problem *ret_problem)
{
    settings_parses++;
    return __real_settings_parse(json, prefix, arena, ret_settings, ret_problem);
}

/* Looks for the horizon of deletes of an index, by code outside of index.c. */
static size_t horizon_looks;

tl_ts __real_index__deletes_horizon(const struct core *core, const struct catalog_index *index, tl_ts ts);
tl_ts __wrap_index__deletes_horizon(const struct core *core, const struct catalog_index *index, tl_ts ts);

tl_ts __wrap_index__deletes_horizon(const struct core *core, const struct catalog_index *index, tl_ts ts)
{
    horizon_looks++;
    return __real_index__deletes_horizon(core, index, ts);
}

static void name_says(const char *name, enum dialect dialect, const char *reason)
{
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    int r = catalog_check_index_name(slice_from(name), dialect, &arena, &problem);

    assert_int_equal(r, reason == NULL ? 0 : CATALOG_REFUSED);
    if (reason != NULL)
        assert_slice_equal(problem.reason, reason);
    arena_deinit(&arena);
}

static void test_names_follow_elasticsearch_rules(void **state)
{
    char name[300];
    (void)state;

    name_says("a.b", DIALECT_7, NULL);
    name_says("日", DIALECT_7, NULL);
    name_says("...", DIALECT_7, NULL);
    name_says("a:b", DIALECT_5, NULL);
    name_says("a:b", DIALECT_7, "Invalid index name [a:b], must not contain ':'");
    name_says("a#b", DIALECT_7, "Invalid index name [a#b], must not contain '#'");
    name_says("Upper", DIALECT_7, "Invalid index name [Upper], must be lowercase");
    name_says("É", DIALECT_7, "Invalid index name [É], must be lowercase");
    name_says("ΑΒΓ", DIALECT_7, "Invalid index name [ΑΒΓ], must be lowercase");
    name_says("_x", DIALECT_7, "Invalid index name [_x], must not start with '_', '-', or '+'");
    name_says("..", DIALECT_7, "Invalid index name [..], must not be '.' or '..'");
    name_says("", DIALECT_7, "Invalid index name [], must not be empty");
    name_says("a b", DIALECT_5,
              "Invalid index name [a b], must not contain the following characters [ , \", *, \\, <, |, ,, >, /, ?]");
    memset(name, 'x', sizeof(name));
    name[255] = '\0';
    name_says(name, DIALECT_7, NULL);
    name[255] = 'x';
    name[256] = '\0';
    struct arena arena = ARENA_INIT;
    struct problem problem;
    assert_int_equal(catalog_check_index_name(slice_from(name), DIALECT_7, &arena, &problem), CATALOG_REFUSED);
    assert_non_null(strstr(problem.reason.data, "index name is too long, (256 > 255)"));
    arena_deinit(&arena);
}

/*
 * Resolves an expression. Returns: the names found, or the reason of the refusal, valid until the
 * next call.
 */
static const char *resolve(struct core_fixture *fixture, const char *expression, struct catalog_options options,
                           enum dialect dialect)
{
    static char text[512];
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture->core);
    struct arena arena = ARENA_INIT;
    struct catalog_target *targets;
    struct problem problem;
    size_t count, used = 0;

    text[0] = '\0';
    if (catalog_resolve(catalog, slice_from(expression), &options, dialect, &arena, &targets, &count, &problem) != 0)
        snprintf(text, sizeof(text), "! %.*s", SLICE_ARG(problem.reason));
    else
        for (size_t i = 0; i < count; i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s", i == 0 ? "" : " ",
                                     targets[i].index->name.data, targets[i].alias_count > 0 ? "(alias)" : "");
    arena_deinit(&arena);
    return text;
}

static void alias(struct core_fixture *fixture, const char *index, const char *name, const char *body)
{
    struct command *command = command_new(COMMAND_ALIASES_UPDATE, fixture->dialect);

    command->aliases.actions = arena_zalloc(&command->arena, sizeof(struct alias_action));
    command->aliases.action_count = 1;
    command->aliases.actions[0] = (struct alias_action){
        .op = ALIAS_ADD, .index = slice_from(index), .alias = slice_from(name), .body = slice_from(body)};
    fixture_run(fixture, command, 1);
}

static void test_expressions_resolve_to_indices(void **state)
{
    struct catalog_options defaults = CATALOG_OPTIONS_DEFAULT, strict = {.expand_open = true};
    struct catalog_options lenient = {.ignore_unavailable = true, .allow_no_indices = true, .expand_open = true};
    struct catalog_options deleting = {
        .allow_no_indices = true, .expand_open = true, .expand_closed = true, .refuse_aliases = true};
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", NULL);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs2", NULL);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "log", NULL);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "secret", "{\"settings\":{\"hidden\":true}}");
    alias(&fixture, "fs", "files", NULL);
    alias(&fixture, "fs2", "files", NULL);
    struct command *close = command_new(COMMAND_INDEX_STATE, DIALECT_7);
    close->index.name = SLICE_LIT("log");
    close->index.close = true;
    fixture_run(&fixture, close, 1);

    assert_string_equal(resolve(&fixture, "fs", defaults, DIALECT_7), "fs");
    assert_string_equal(resolve(&fixture, "", defaults, DIALECT_7), "fs fs2");
    assert_string_equal(resolve(&fixture, "_all", defaults, DIALECT_7), "fs fs2");
    assert_string_equal(resolve(&fixture, "f*,-fs2", defaults, DIALECT_7), "fs");
    assert_string_equal(resolve(&fixture, "files", defaults, DIALECT_7), "fs(alias) fs2(alias)");
    assert_string_equal(resolve(&fixture, "files,fs", defaults, DIALECT_7), "fs fs2(alias)");
    assert_string_equal(resolve(&fixture, "fil*", defaults, DIALECT_7), "fs(alias) fs2(alias)");
    assert_string_equal(resolve(&fixture, "x*", defaults, DIALECT_7), "");
    assert_string_equal(resolve(&fixture, "x*", strict, DIALECT_7), "! no such index [x*]");
    assert_string_equal(resolve(&fixture, "nope", defaults, DIALECT_7), "! no such index [nope]");
    assert_string_equal(resolve(&fixture, "nope", defaults, DIALECT_5), "! no such index");
    assert_string_equal(resolve(&fixture, "nope,fs", lenient, DIALECT_7), "fs");
    assert_string_equal(resolve(&fixture, "log", defaults, DIALECT_7), "! closed");
    assert_string_equal(resolve(&fixture, "log", lenient, DIALECT_7), "");
    assert_string_equal(resolve(&fixture, "log", (struct catalog_options){.allow_closed = true}, DIALECT_7), "log");
    assert_string_equal(
        resolve(&fixture, "*", (struct catalog_options){.expand_open = true, .expand_hidden = true}, DIALECT_7),
        "fs fs2 secret");
    assert_string_equal(resolve(&fixture, "_x", defaults, DIALECT_7),
                        "! Invalid index name [_x], must not start with '_'.");
    assert_string_equal(
        resolve(&fixture, "files", deleting, DIALECT_7),
        "! The provided expression [files] matches an alias, specify the corresponding concrete indices instead.");
    assert_string_equal(resolve(&fixture, "files", deleting, DIALECT_5), "fs(alias) fs2(alias)");
    assert_string_equal(resolve(&fixture, "fi*", deleting, DIALECT_7), "");
    fixture_close(&fixture);
}

static void test_alias_accepts_writes_with_one_index_or_write_index(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "a", NULL);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "b", NULL);
    alias(&fixture, "a", "w", "{\"routing\":\"r\"}");
    assert_slice_equal(fixture_index(&fixture, "w", "1", "{}")->index, "a");
    assert_slice_equal(fixture.last->write.results->routing, "r");
    alias(&fixture, "b", "w", NULL);
    assert_non_null(strstr(fixture_index(&fixture, "w", "1", "{}")->problem.reason.data,
                           "no write index is defined for alias [w]"));
    alias(&fixture, "b", "w", "{\"is_write_index\":true}");
    assert_slice_equal(fixture_index(&fixture, "w", "1", "{}")->index, "b");
    alias(&fixture, "a", "w", "{\"is_write_index\":true}");
    assert_slice_equal(fixture.last->problem.reason, "alias [w] has more than one write index [a,b]");
    alias(&fixture, "a", "b", NULL);
    assert_slice_equal(fixture.last->problem.reason,
                       "Invalid alias name [b], an index exists with the same name as the alias");
    alias(&fixture, "a", "_b", NULL);
    assert_slice_equal(fixture.last->problem.reason, "Invalid alias name [_b]: must not start with '_', '-', or '+'");
    assert_int_equal(fixture.last->problem.details.len, 0);
    fixture_reopen(&fixture);
    assert_slice_equal(fixture_index(&fixture, "w", "1", "{}")->index, "b");
    fixture_close(&fixture);
}

/* A write or lock that names an alias takes no longer if many indices have it: a request may name it 100,000 times. */
static void test_alias_of_many_indices_is_found_at_once(void **state)
{
    enum { INDICES = 200, NAMES = 50 };
    struct core_fixture fixture;
    char name[12];
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < INDICES; i++) {
        snprintf(name, sizeof name, "i%03d", i);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, name,
                              i == INDICES - 1 ? "{\"aliases\":{\"all\":{\"is_write_index\":true}}}"
                                               : "{\"aliases\":{\"all\":{}}}");
    }
    index_looks = 0;
    assert_slice_equal(fixture_index(&fixture, "all", "1", "{}")->index, "i199");
    assert_true(index_looks < INDICES / 4);
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = SLICE_LIT("s");
    command->session.ttl_us = 3600 * TL_SECOND;
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    for (int release = 0; release < 2; release++) {
        command = command_new(release ? COMMAND_UNLOCK : COMMAND_LOCK, DIALECT_7);
        command->owner.session = SLICE_LIT("s");
        command->lock.targets = arena_zalloc(&command->arena, NAMES * sizeof *command->lock.targets);
        command->lock.target_count = NAMES;
        for (int i = 0; i < NAMES; i++)
            command->lock.targets[i] = (struct lock_target){
                .mode = LOCK_X, .index = SLICE_LIT("all"), .id = arena_printf(&command->arena, "%d", i)};
        index_looks = 0;
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        assert_true(index_looks < NAMES * INDICES / 4);
    }
    assert_int_equal(fixture.last->lock.released, NAMES);
    fixture_close(&fixture);
}

/* Runs a command that adds `count` aliases, of which each name is added `times` times, to an index. */
static struct command *add_aliases(struct core_fixture *fixture, unsigned version, const char *index, size_t count,
                                   size_t times)
{
    struct command *command = command_new(COMMAND_ALIASES_UPDATE, fixture->dialect);

    command->version = version;
    command->aliases.actions = arena_zalloc(&command->arena, count * times * sizeof(struct alias_action));
    command->aliases.action_count = count * times;
    for (size_t i = 0; i < count * times; i++)
        command->aliases.actions[i] = (struct alias_action){
            .op = ALIAS_ADD, .index = slice_from(index), .alias = arena_printf(&command->arena, "l%zu", i % count)};
    return fixture_run(fixture, command, 1);
}

/* Changes of aliases count as work, with the aliases of the indices that are written, and are limited by it. */
static void test_work_of_aliases_is_bounded(void **state)
{
    enum { INDICES = 40, ALIASES = 900 };
    struct core_fixture fixture;
    char name[12];
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < INDICES; i++) {
        snprintf(name, sizeof name, "i%02d", i);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, name, "{\"aliases\":{\"l0\":{},\"l1\":{}}}");
    }
    assert_int_equal(add_aliases(&fixture, COMMAND_CODEC_VERSION, "i00", ALIASES, 1)->problem.type, PROBLEM_NONE);
    assert_in_range(core_step_work(fixture.core), ALIASES * (WORK_ALIAS + WORK_INDEX_PART), CORE_STEP_WORK / 2);
    index_looks = 0;
    assert_int_equal(add_aliases(&fixture, COMMAND_CODEC_VERSION, "i00", 1, 1)->problem.type, PROBLEM_NONE);
    assert_in_range(core_step_work(fixture.core), WORK_INDEX + ALIASES * WORK_INDEX_PART, CORE_STEP_WORK / 10);
    assert_true(index_looks < INDICES); /* l0 has as many uses */
    static const char *const reason =
        "the request changes aliases of too many indices, or too many aliases, for one step: divide it";
    add_aliases(&fixture, COMMAND_CODEC_VERSION, "i01", ALIASES, 1 + ALIAS_WORK_MAX / ALIASES / WORK_ALIAS);
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_slice_equal(fixture.last->problem.reason, reason);
    assert_in_range(core_step_work(fixture.core), ALIAS_WORK_MAX, CORE_STEP_WORK);
    struct catalog *catalog = core_catalog(fixture.core);
    assert_int_equal(catalog_index(catalog, SLICE_LIT("i01"))->alias_count, 2);
    catalog_unref(catalog);
    add_aliases(&fixture, COMMAND_SINCE_CATALOG_BOUNDS - 1, "i01", ALIASES, 1 + ALIAS_WORK_MAX / ALIASES / WORK_ALIAS);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* A change that makes one of many indices hide an alias, or a second write index of it, is refused by all uses. */
static void test_aliases_of_many_indices_agree(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "a", "{\"aliases\":{\"l\":{\"is_hidden\":true}}}");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "b", NULL);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "c", NULL);
    alias(&fixture, "b", "l", "{}");
    assert_slice_equal(fixture.last->problem.reason,
                       "alias [l] has is_hidden set to true on indices [a] but does not have is_hidden set to true on "
                       "indices [b]; alias must have the same is_hidden setting on all indices");
    alias(&fixture, "c", "l", "{\"is_hidden\":true,\"is_write_index\":true}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    alias(&fixture, "b", "l", "{\"is_hidden\":true,\"is_write_index\":true}");
    assert_slice_equal(fixture.last->problem.reason, "alias [l] has more than one write index [b,c]");
    fixture_close(&fixture);
}

/* Such a refusal lists no more indices than some text has, and says how many more there are; all before version 22. */
static void test_refused_alias_lists_some_indices(void **state)
{
    enum { INDICES = 200 };
    struct core_fixture fixture;
    char name[12];
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < INDICES; i++) {
        snprintf(name, sizeof name, "index-%03d", i);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, name, "{\"aliases\":{\"l0\":{\"is_hidden\":true}}}");
    }
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "shown", NULL);
    for (int old = 0; old < 2; old++) {
        add_aliases(&fixture, old ? COMMAND_SINCE_VALUES_WEIGHED - 1 : COMMAND_CODEC_VERSION, "shown", 1, 1);
        assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_STATE);
        struct slice reason = fixture.last->problem.reason;
        static const char *const ends[] = {",index-101 and 98 more] but does not have is_hidden set to true on indices "
                                           "[shown]; alias must have the same is_hidden setting on all indices",
                                           ",index-199] but does not have is_hidden set to true on indices [shown]; "
                                           "alias must have the same is_hidden setting on all indices"};
        assert_in_range(reason.len, old ? 10 * INDICES : 1024, old ? 11 * INDICES : 1300);
        assert_slice_equal(slice_from_offset(reason, reason.len - strlen(ends[old])), ends[old]);
    }
    fixture_close(&fixture);
}

static const char *settings_of(struct core_fixture *fixture, const char *name)
{
    static char text[1024];
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture->core);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    settings_render(catalog_index(catalog, slice_from(name))->settings, true, &buf);
    snprintf(text, sizeof(text), "%.*s", SLICE_ARG(buf_as_slice(&buf)));
    buf_deinit(&buf);
    return text;
}

static void test_templates_apply_by_order(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_object_command(
        &fixture, COMMAND_TEMPLATE_PUT, "second",
        "{\"index_patterns\":[\"t*\"],\"order\":2,\"settings\":{\"number_of_shards\":3},\"aliases\":{\"all\":{}}}");
    fixture_object_command(
        &fixture, COMMAND_TEMPLATE_PUT, "first",
        "{\"template\":\"t1*\",\"order\":1,\"settings\":{\"number_of_shards\":7,\"number_of_replicas\":0},"
        "\"mappings\":{\"doc\":{\"properties\":{\"k\":{\"type\":\"keyword\"}}}}}");
    fixture_index(&fixture, "t1", "1", "{\"k\":\"v\"}");
    assert_int_equal(fixture.last->write.results->outcome, WRITE_CREATED);
    assert_non_null(strstr(settings_of(&fixture, "t1"), "\"index.number_of_shards\":\"3\""));
    assert_non_null(strstr(settings_of(&fixture, "t1"), "\"index.number_of_replicas\":\"0\""));
    struct catalog *catalog = core_catalog(fixture.core);
    assert_non_null(catalog_index_alias(catalog_index(catalog, SLICE_LIT("t1")), SLICE_LIT("all")));
    assert_null(mapping_field(catalog_index(catalog, SLICE_LIT("t1"))->mapping, SLICE_LIT("k.keyword")));
    catalog_unref(catalog);
    fixture_object_command(&fixture, COMMAND_TEMPLATE_DELETE, "third", NULL);
    assert_slice_equal(fixture.last->problem.reason, "index_template [third] missing");
    struct command *again = command_new(COMMAND_TEMPLATE_PUT, DIALECT_7);
    again->object = (struct object_command){
        .name = SLICE_LIT("first"), .body = SLICE_LIT("{\"index_patterns\":\"x\"}"), .create = true};
    fixture_run(&fixture, again, 1);
    assert_slice_equal(again->problem.reason, "index_template [first] already exists");
    fixture_close(&fixture);
}

/* --- Templates of one index, merged at once ---------------------------------------------------------------------- */

/* Runs a command on an object in a version. Returns: the command. */
static struct command *put_in(struct core_fixture *fixture, unsigned version, enum command_type type, const char *name,
                              struct slice body)
{
    struct command *command = command_new(type, fixture->dialect);

    command->version = version;
    command->object.name = arena_copy(&command->arena, slice_from(name));
    command->object.body = arena_copy(&command->arena, body);
    return fixture_run(fixture, command, 1);
}

static struct command *create_in(struct core_fixture *fixture, unsigned version, const char *name, const char *body)
{
    struct command *command = command_new(COMMAND_INDEX_CREATE, fixture->dialect);

    command->version = version;
    command->index.name = arena_copy(&command->arena, slice_from(name));
    command->index.body = body == NULL ? SLICE_NONE : slice_from(body);
    return fixture_run(fixture, command, 1);
}

/* Creates an index by a document. Returns: its outcome. */
static enum write_outcome write_in(struct core_fixture *fixture, unsigned version, const char *name)
{
    struct command *command = fixture_write_command(fixture, 1);

    command->version = version;
    command->write.items[0] = fixture_item(WRITE_INDEX, name, NULL, "1", "{}");
    fixture_run(fixture, command, 1);
    return command->write.results[0].outcome;
}

/* Appends properties: of {"x", "y", "n", "z", …}, some with a type, some with properties in turn. */
static void random_properties(struct buf *buf, struct rng *rng, int depth)
{
    static const char *const names[] = {"zeta", "x1", "a", "bb", "n", "Aa", "BB", "ten", "o", "text", "k", "y"};
    static const char *const types[] = {"keyword", "text", "long", "date"};
    bool comma = false;

    buf_lit(buf, "\"properties\":{");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *name = names[(i * 5 + 3) % 12];
        if (rng_below(rng, 3) > 0)
            continue;
        buf_printf(buf, "%s\"%s\":{", comma ? "," : "", name);
        comma = true;
        if (depth > 0 && (name[0] == 'n' || name[0] == 'o')) {
            buf_lit(buf, "\"dynamic\":false,");
            random_properties(buf, rng, depth - 1);
        } else {
            buf_printf(buf, "\"type\":\"%s\"", types[rng_below(rng, 4)]);
        }
        buf_byte(buf, '}');
    }
    buf_byte(buf, '}');
}

/* Appends {"settings", "mappings", "aliases"} without braces. */
static void random_parts(struct buf *buf, struct rng *rng, bool typed)
{
    buf_printf(buf, "\"settings\":{\"number_of_shards\":%d,\"index.routing.allocation.require.z%d\":\"%d\"},",
               1 + (int)rng_below(rng, 3), (int)rng_below(rng, 3), (int)rng_below(rng, 9));
    buf_printf(buf, "\"aliases\":{\"l%d\":{\"routing\":\"%d\"},\"l%d\":{}},", (int)rng_below(rng, 4),
               (int)rng_below(rng, 9), 4 + (int)rng_below(rng, 4));
    buf_printf(
        buf, "\"mappings\":{%s\"dynamic_templates\":[{\"d%d\":{\"match\":\"*\",\"mapping\":{\"type\":\"keyword\"}}}],",
        typed ? "\"_doc\":{" : "", (int)rng_below(rng, 3));
    random_properties(buf, rng, 2);
    buf_slice(buf, slice_from(typed ? "}}" : "}"));
}

/* Puts random templates and creates indices from them. Returns: a digest of all indices, and how many were refused. */
static uint64_t make_from_templates(unsigned version, uint64_t seed, int *refused)
{
    struct core_fixture fixture;
    struct rng rng;
    char name[16];

    fixture_open(&fixture);
    rng_init(&rng, seed);
    for (int i = 0; i < 12; i++) {
        struct buf body = BUF_INIT(BUF_UNLIMITED);
        bool typed = rng_below(&rng, 3) == 0;
        buf_printf(&body, "{\"index_patterns\":[\"%s\",\"m%d*\"],\"order\":%d,", i % 2 == 0 ? "*" : "new-1*", i,
                   (int)rng_below(&rng, 3));
        random_parts(&body, &rng, typed);
        buf_byte(&body, '}');
        snprintf(name, sizeof name, "t%d", i);
        put_in(&fixture, version, COMMAND_TEMPLATE_PUT, name, buf_as_slice(&body));
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
        buf_clear(&body);
        buf_lit(&body, "{\"template\":{");
        random_parts(&body, &rng, false);
        buf_lit(&body, "}}");
        put_in(&fixture, version, COMMAND_COMPONENT_PUT, name, buf_as_slice(&body));
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
        buf_clear(&body);
        buf_printf(&body, "{\"index_patterns\":[\"c%d*\",\"c*%d\"],\"priority\":%d,\"composed_of\":[", i % 4, i % 3, i);
        for (int j = 0; j < 5; j++)
            buf_printf(&body, "%s\"t%d\"", j == 0 ? "" : ",", (int)rng_below(&rng, (uint64_t)i + 1));
        buf_lit(&body, "],\"template\":{");
        random_parts(&body, &rng, false);
        buf_lit(&body, "}}");
        put_in(&fixture, version, COMMAND_INDEX_TEMPLATE_PUT, name, buf_as_slice(&body));
        *refused += fixture.last->problem.type != PROBLEM_NONE;
        buf_deinit(&body);
    }
    for (int i = 0; i < 20; i++) {
        struct buf body = BUF_INIT(BUF_UNLIMITED);
        snprintf(name, sizeof name, "%s%d", i % 3 == 0 ? "new-" : i % 3 == 1 ? "c" : "m", i);
        fixture.dialect = i % 5 == 4 ? DIALECT_5 : DIALECT_7;
        buf_byte(&body, '{');
        random_parts(&body, &rng, fixture.dialect == DIALECT_5);
        buf_lit(&body, "}");
        buf_byte(&body, '\0');
        if (i % 2 == 0)
            *refused += write_in(&fixture, version, name) != WRITE_CREATED;
        else
            *refused += create_in(&fixture, version, name, body.data)->problem.type != PROBLEM_NONE;
        buf_deinit(&body);
    }
    uint64_t digest = fixture_digest(&fixture);
    fixture_close(&fixture);
    return digest;
}

/* Templates that are merged at once make the same indices as those that earlier commands merged in turn. */
static void test_templates_merged_at_once_make_the_same_indices(void **state)
{
    int refused[3] = {0, 0, 0};
    (void)state;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t before = make_from_templates(COMMAND_SINCE_TEMPLATES_MERGED - 1, seed, &refused[0]);
        assert_int_equal(make_from_templates(COMMAND_SINCE_TEMPLATES_MERGED, seed, &refused[1]), before);
        assert_int_equal(refused[0], refused[1]);
        assert_int_equal(make_from_templates(COMMAND_CODEC_VERSION, seed, &refused[2]), before);
        assert_int_equal(refused[0], refused[2]);
    }
    assert_in_range(refused[0], 0, 40 * 16); /* half of all are made, at least */
}

enum { MANY = 300, FIELDS_OF_EACH = 100 };

/* Puts templates of fields of their own, or all of the same, and an alias. */
static void put_many(struct core_fixture *fixture, const char *pattern, size_t count, int fields, bool same)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    char name[32];

    for (size_t i = 0; i < count; i++) {
        buf_clear(&body);
        buf_printf(&body, "{\"index_patterns\":[\"%s\"],\"aliases\":{\"l%zu\":{}},\"mappings\":{\"properties\":{",
                   pattern, i);
        for (int j = 0; j < fields; j++)
            buf_printf(&body, "%s\"f%d-%zu\":{\"type\":\"keyword\"}", j == 0 ? "" : ",", j, same ? 0 : i);
        buf_lit(&body, "}}}");
        snprintf(name, sizeof name, "%.3s%zu", pattern, i);
        put_in(fixture, COMMAND_CODEC_VERSION, COMMAND_TEMPLATE_PUT, name, buf_as_slice(&body));
        assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
    }
    buf_deinit(&body);
}

/* Returns: the work of creating an index. */
static uint64_t work_of_creation(struct core_fixture *fixture, unsigned version, const char *name)
{
    create_in(fixture, version, name, NULL);
    assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
    return core_step_work(fixture->core);
}

/* An index that is created takes the time of the templates that apply to it, in proportion. Also after a restart. */
static void test_creation_takes_the_time_of_its_templates(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.unbounded = true; /* in the earlier version */
    put_many(&fixture, "other-*", MANY, FIELDS_OF_EACH, false);
    uint64_t before = work_of_creation(&fixture, COMMAND_SINCE_TEMPLATES_MERGED - 1, "none-1");
    assert_in_range(before, MANY * FIELDS_OF_EACH, UINT64_MAX);
    uint64_t none = work_of_creation(&fixture, COMMAND_CODEC_VERSION, "none-2");
    assert_in_range(none, MANY, 4 * MANY);
    fixture_reopen(&fixture);
    assert_in_range(work_of_creation(&fixture, COMMAND_CODEC_VERSION, "none-3"), none / 2, 2 * none);

    put_many(&fixture, "one-*", MANY, 1, false);
    before = work_of_creation(&fixture, COMMAND_SINCE_TEMPLATES_MERGED - 1, "one-1");
    uint64_t one = work_of_creation(&fixture, COMMAND_CODEC_VERSION, "one-2");
    assert_in_range(one, MANY * WORK_FIELD, 3 * MANY * WORK_FIELD);
    assert_in_range(before, 10 * one, UINT64_MAX);
    fixture_close(&fixture);
}

/* The settings of templates are copied for each further one, which counts. Not in commands before version 21. */
static void test_work_of_settings_of_templates_is_counted(void **state)
{
    enum { TEMPLATES = 200, COPIED = TEMPLATES * TEMPLATES / 2 / WORK_SETTINGS_COPIED };
    struct core_fixture fixture;
    char name[8], body[128];
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < TEMPLATES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        snprintf(body, sizeof body,
                 "{\"index_patterns\":[\"s*\"],\"settings\":{\"index.routing.allocation.require.a%d\":1}}", i);
        fixture_object_command(&fixture, COMMAND_TEMPLATE_PUT, name, body);
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    }
    uint64_t before = work_of_creation(&fixture, COMMAND_SINCE_ALIASES_CHECKED - 1, "s1");
    uint64_t copied = work_of_creation(&fixture, COMMAND_SINCE_VALUES_WEIGHED - 1, "s2");
    assert_in_range(copied, before + COPIED - TEMPLATES, before + COPIED);
    uint64_t found = work_of_creation(&fixture, COMMAND_CODEC_VERSION, "s3"); /* and those after it moved */
    assert_in_range(found, before + TEMPLATES * WORK_SETTING, before + COPIED / 4);
    fixture_close(&fixture);
}

/* Creates an index by each of some documents, in one bulk. Returns: the command. */
static struct command *write_each(struct core_fixture *fixture, unsigned version, const char *const *names,
                                  size_t count)
{
    struct command *command = fixture_write_command(fixture, count);

    command->version = version;
    for (size_t i = 0; i < count; i++)
        command->write.items[i] = fixture_item(WRITE_INDEX, names[i], NULL, "1", "{}");
    return fixture_run(fixture, command, 1);
}

/*
 * An index that a write would create by templates is refused for its aliases as one that is created by request, and
 * without effect; other items of the bulk are carried out. Commands before version 21 created it.
 */
static void test_created_index_has_its_aliases_checked(void **state)
{
    static const char *const names[] = {"w1", "w0", "other", "h1"};
    static const char *const hidden =
        "alias [hid] has is_hidden set to true on indices [h1] but does not have is_hidden set to true on indices "
        "[shown]; alias must have the same is_hidden setting on all indices";
    (void)state;

    for (int old = 0; old < 2; old++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_object_command(&fixture, COMMAND_TEMPLATE_PUT, "w",
                               "{\"index_patterns\":[\"w*\"],\"aliases\":{\"all\":{\"is_write_index\":true}}}");
        fixture_object_command(&fixture, COMMAND_TEMPLATE_PUT, "h",
                               "{\"index_patterns\":[\"h*\"],\"aliases\":{\"hid\":{\"is_hidden\":true}}}");
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "shown", "{\"aliases\":{\"hid\":{}}}");
        write_each(&fixture, old ? COMMAND_SINCE_ALIASES_CHECKED - 1 : COMMAND_CODEC_VERSION, names, 4);
        const struct write_result *results = fixture.last->write.results;
        assert_int_equal(results[0].outcome, WRITE_CREATED);
        assert_int_equal(results[1].outcome, old ? WRITE_CREATED : WRITE_FAILED);
        assert_int_equal(results[2].outcome, WRITE_CREATED);
        assert_int_equal(results[3].outcome, old ? WRITE_CREATED : WRITE_FAILED);
        if (!old) {
            assert_int_equal(results[1].problem.type, PROBLEM_ILLEGAL_STATE);
            assert_slice_equal(results[1].problem.reason, "alias [all] has more than one write index [w0,w1]");
            assert_int_equal(results[3].problem.type, PROBLEM_ILLEGAL_STATE);
            assert_slice_equal(results[3].problem.reason, hidden);
            fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "w2", NULL); /* as by request */
            assert_slice_equal(fixture.last->problem.reason, "alias [all] has more than one write index [w1,w2]");
        }
        struct catalog *catalog = core_catalog(fixture.core);
        assert_int_equal(catalog_index_count(catalog), old ? 5 : 3);
        assert_int_equal(catalog_index(catalog, SLICE_LIT("w0")) != NULL, old);
        catalog_unref(catalog);
        fixture_close(&fixture);
    }
}

/*
 * An item that requires an alias counts the table of aliases that it renews after an item that has created an index,
 * though an index has its name, so that a bulk of both is divided. Not in commands before version 21.
 */
static void test_work_of_a_required_alias_is_counted(void **state)
{
    enum { INDICES = 12, ALIASES = 900, PAIRS = 40, EACH = INDICES * ALIASES / WORK_ALIAS_USES };
    struct core_fixture fixture;
    uint64_t work[2];
    char name[12];
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < INDICES; i++) {
        snprintf(name, sizeof name, "i%02d", i);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, name, NULL);
        add_aliases(&fixture, COMMAND_CODEC_VERSION, name, ALIASES, 1);
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    }
    fixture_object_command(&fixture, COMMAND_TEMPLATE_PUT, "t",
                           "{\"index_patterns\":[\"t*\"],\"aliases\":{\"l0\":{}}}");
    for (int old = 0; old < 2; old++) {
        struct command *command = fixture_write_command(&fixture, 2 * PAIRS);
        command->version = old ? COMMAND_SINCE_ALIASES_CHECKED - 1 : COMMAND_CODEC_VERSION;
        for (int i = 0; i < PAIRS; i++) {
            snprintf(name, sizeof name, "t%d-%d", old, i);
            command->write.items[2 * i] = fixture_item(WRITE_INDEX, name, NULL, "1", "{}");
            command->write.items[2 * i].index = arena_copy(&command->arena, slice_from(name));
            command->write.items[2 * i + 1] = fixture_item(WRITE_INDEX, "i00", NULL, "1", "{}");
            command->write.items[2 * i + 1].require_alias = true;
        }
        fixture_run(&fixture, command, 1);
        const struct write_result *results = fixture.last->write.results;
        assert_int_equal(results[0].outcome, WRITE_CREATED);
        assert_int_equal(results[1].problem.type, PROBLEM_INDEX_NOT_FOUND);
        assert_int_equal(results[2 * PAIRS - 1].outcome, WRITE_FAILED);
        assert_int_equal(results[2 * PAIRS - 1].postponed, !old);
        work[old] = core_step_work(fixture.core);
    }
    assert_in_range(work[0], WRITE_MAPPING_WORK_MAX, WRITE_MAPPING_WORK_MAX + 4 * EACH);
    assert_in_range(work[1], 1, PAIRS * EACH / 2); /* although it took that of them all */
    fixture_close(&fixture);
}

/*
 * The aliases of an index that a write creates count, each where it is searched for, and all indices of one where a
 * refusal lists them. Not in commands before version 21, in which they are not searched for.
 */
static void test_work_of_aliases_of_a_created_index_is_counted(void **state)
{
    enum { USES = 1000, ALIASES = 900, FOUND = ALIASES * WORK_ALIAS_FOUND };
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    struct core_fixture fixture;
    uint64_t work[2];
    char name[12];
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < USES; i++) {
        snprintf(name, sizeof name, "i%03d", i);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, name, "{\"aliases\":{\"hid\":{\"is_hidden\":true}}}");
    }
    fixture_object_command(&fixture, COMMAND_TEMPLATE_PUT, "h",
                           "{\"index_patterns\":[\"h*\"],\"aliases\":{\"hid\":{}}}");
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "h1"), WRITE_FAILED);
    assert_in_range(core_step_work(fixture.core), USES * WORK_INDEX_PART, 2 * USES * WORK_INDEX_PART);
    buf_lit(&body, "{\"index_patterns\":[\"m*\"],\"aliases\":{");
    for (int i = 0; i < ALIASES; i++)
        buf_printf(&body, "%s\"l%d\":{}", i == 0 ? "" : ",", i);
    buf_lit(&body, "}}");
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_TEMPLATE_PUT, "m", buf_as_slice(&body));
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    for (unsigned i = 0; i < 2; i++) {
        alias(&fixture, "i000", i == 0 ? "x" : "y", "{}"); /* renews the table of aliases */
        snprintf(name, sizeof name, "m%u", i);
        assert_int_equal(write_in(&fixture, COMMAND_SINCE_ALIASES_CHECKED - 1 + i, name), WRITE_CREATED);
        work[i] = core_step_work(fixture.core);
    }
    assert_in_range(work[1], work[0] + FOUND / 4 * 3, work[0] + FOUND / 4 * 5);
    buf_deinit(&body);
    fixture_close(&fixture);
}

/* All indices together have so many aliases; a change that does not add to them is carried out. */
static void test_aliases_of_all_indices_are_limited(void **state)
{
    enum { INDICES = CATALOG_ALIAS_USES_MAX / CATALOG_ALIASES_MAX };
    static const char *const reason =
        "all indices together would have more than [200000] aliases, where an alias counts for each index that has it: "
        "remove some";
    static const char *const added = "added";
    struct core_fixture fixture;
    char name[12];
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i <= INDICES; i++) {
        snprintf(name, sizeof name, "i%03d", i);
        create_in(&fixture, COMMAND_CODEC_VERSION, name, NULL);
        add_aliases(&fixture, COMMAND_CODEC_VERSION, name, i < INDICES ? CATALOG_ALIASES_MAX : 1, 1);
        assert_int_equal(fixture.last->problem.type, i < INDICES ? PROBLEM_NONE : PROBLEM_ILLEGAL_ARGUMENT);
    }
    assert_slice_equal(fixture.last->problem.reason, reason);
    create_in(&fixture, COMMAND_CODEC_VERSION, "created", "{\"aliases\":{\"new\":{}}}");
    assert_slice_equal(fixture.last->problem.reason, reason);
    fixture_object_command(&fixture, COMMAND_TEMPLATE_PUT, "t",
                           "{\"index_patterns\":[\"add*\"],\"aliases\":{\"new\":{}}}");
    write_each(&fixture, COMMAND_CODEC_VERSION, &added, 1);
    assert_int_equal(fixture.last->write.results->outcome, WRITE_FAILED);
    assert_slice_equal(fixture.last->write.results->problem.reason, reason);
    create_in(&fixture, COMMAND_CODEC_VERSION, "created", NULL);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    add_aliases(&fixture, COMMAND_CODEC_VERSION, "i000", CATALOG_ALIASES_MAX, 1); /* it has them */
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    create_in(&fixture, COMMAND_SINCE_CATALOG_BOUNDS - 1, "earlier", "{\"aliases\":{\"new\":{}}}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* Puts an index template with a pattern many times. */
static void put_patterns(struct core_fixture *fixture, unsigned version, const char *name, const char *pattern,
                         size_t count, int priority)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);

    buf_lit(&body, "{\"index_patterns\":[");
    for (size_t i = 0; i < count; i++)
        buf_printf(&body, "%s\"%s\"", i == 0 ? "" : ",", pattern);
    buf_printf(&body, "],\"priority\":%d}", priority);
    put_in(fixture, version, COMMAND_INDEX_TEMPLATE_PUT, name, buf_as_slice(&body));
    buf_deinit(&body);
}

/* Puts an index template of 1,200 fields. Returns: whether it was accepted; else it has too many fields. */
static bool put_wide(struct core_fixture *fixture, unsigned version, const char *settings, const char *composed_of)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);

    buf_printf(&body, "{\"index_patterns\":[\"w*\"],\"composed_of\":[%s],\"template\":{%s", composed_of, settings);
    buf_lit(&body, "\"mappings\":{\"properties\":{");
    for (int i = 0; i < 1200; i++)
        buf_printf(&body, "%s\"f%d\":{\"type\":\"long\"}", i == 0 ? "" : ",", i);
    buf_lit(&body, "}}}}");
    const struct command *command = put_in(fixture, version, COMMAND_INDEX_TEMPLATE_PUT, "wide", buf_as_slice(&body));
    buf_deinit(&body);
    if (command->problem.type == PROBLEM_NONE)
        return true;
    assert_slice_equal(command->problem.caused_by->caused_by->reason, "Limit of total fields [1000] has been exceeded");
    return false;
}

/* As the templates of Beats, which have thousands of fields. */
static void test_index_template_may_raise_its_limit_of_fields(void **state)
{
    static const char raised[] = "\"settings\":{\"index.mapping.total_fields.limit\":10000},";
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_COMPONENT_PUT, "c",
           SLICE_LIT("{\"template\":{\"settings\":{\"index.mapping.total_fields.limit\":10000}}}"));
    assert_false(put_wide(&fixture, COMMAND_CODEC_VERSION, "", ""));
    assert_false(put_wide(&fixture, COMMAND_SINCE_TYPELESS_UNLIMITED - 1, raised, ""));
    assert_true(put_wide(&fixture, COMMAND_CODEC_VERSION, raised, ""));
    assert_true(put_wide(&fixture, COMMAND_CODEC_VERSION, "", "\"c\""));
    fixture_close(&fixture);
}

/* Comparisons of patterns count as work, which does not depend on the texts between wildcards, and are limited. */
static void test_comparisons_of_patterns_are_bounded(void **state)
{
    enum { EACH = 512, TEMPLATES = 16 };
    char name[2] = "a", wild[CATALOG_PATTERN_BYTES_MAX];
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (; name[0] < 'a' + TEMPLATES; name[0]++) {
        put_patterns(&fixture, COMMAND_CODEC_VERSION, name, name, EACH, 1);
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    }
    assert_in_range(core_step_work(fixture.core), (TEMPLATES - 1) * EACH * EACH / WORK_PATTERN_PAIRS, CORE_STEP_WORK);
    put_patterns(&fixture, COMMAND_CODEC_VERSION, "z", "z", EACH, 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_slice_equal(fixture.last->problem.reason,
                       "index template [z] and the others of priority [1] have so many patterns that comparing them "
                       "takes too long: use fewer patterns, or another priority");
    assert_in_range(core_step_work(fixture.core), 1, CORE_STEP_WORK);
    put_patterns(&fixture, COMMAND_CODEC_VERSION, "z", "z", EACH, 2);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_in_range(core_step_work(fixture.core), 1, 2 * EACH);
    put_patterns(&fixture, COMMAND_SINCE_CATALOG_BOUNDS - 1, "z", "z", EACH, 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);

    static const struct {
        const char *pattern;
        bool overlaps;
    } cases[] = {{"a*", true}, {"*p*", true}, {"q*", false}, {"*qa", false}, {"*a", true}, {"q*a*q", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_patterns(&fixture, COMMAND_CODEC_VERSION, "star", cases[i].pattern, 1, 1);
        assert_int_equal(fixture.last->problem.type, cases[i].overlaps ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        assert_true(!cases[i].overlaps || strstr(fixture.last->problem.reason.data, "matching patterns from") != NULL);
        put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_INDEX_TEMPLATE_DELETE, "star", SLICE_NONE);
    }
    memset(wild, 'x', sizeof wild);
    memcpy(wild, "y*", 2);
    wild[sizeof wild - 2] = '*';
    wild[sizeof wild - 1] = 0;
    put_patterns(&fixture, COMMAND_CODEC_VERSION, "wild", wild, 1, 3);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    put_patterns(&fixture, COMMAND_CODEC_VERSION, "star", "y*x*", 1, 3);
    assert_non_null(strstr(fixture.last->problem.reason.data, "matching patterns from existing templates"));
    fixture_close(&fixture);
}

/* A template with more bytes than may apply to an index is refused when it is put, and white space counts for none. */
static void test_large_templates_are_refused(void **state)
{
    static const struct {
        enum command_type type;
        const char *head, *tail;
    } kinds[] = {
        {COMMAND_TEMPLATE_PUT, "{\"index_patterns\":[\"x*\"],\"mappings\":{\"_meta\":{\"a\":\"", "\"}}}"},
        {COMMAND_COMPONENT_PUT, "{\"template\":{\"mappings\":{\"_meta\":{\"a\":\"", "\"}}}}"},
        {COMMAND_INDEX_TEMPLATE_PUT, "{\"index_patterns\":[\"x*\"],\"template\":{\"mappings\":{\"_meta\":{\"a\":\"",
         "\"}}}}"},
    };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int text = 0; text < 2; text++) {
            struct buf body = BUF_INIT(BUF_UNLIMITED);
            buf_slice(&body, slice_from(text ? kinds[i].head : ""));
            for (int j = 0; j < CATALOG_APPLIED_BYTES_MAX; j++)
                buf_byte(&body, text ? 'x' : ' ');
            buf_slice(&body, slice_from(text ? kinds[i].tail : kinds[i].head));
            buf_slice(&body, slice_from(text ? "" : kinds[i].tail));
            put_in(&fixture, COMMAND_CODEC_VERSION, kinds[i].type, "t", buf_as_slice(&body));
            assert_int_equal(fixture.last->problem.type, text ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
            assert_true(!text || i == 2 ||
                        strstr(fixture.last->problem.reason.data, "leave out what its indices") != NULL);
            put_in(&fixture, COMMAND_SINCE_CATALOG_BOUNDS - 1, kinds[i].type, "t", buf_as_slice(&body));
            assert_int_equal(fixture.last->problem.type != PROBLEM_NONE, i == 2); /* by all of its text */
            put_in(&fixture, COMMAND_CODEC_VERSION,
                   kinds[i].type == COMMAND_TEMPLATE_PUT    ? COMMAND_TEMPLATE_DELETE
                   : kinds[i].type == COMMAND_COMPONENT_PUT ? COMMAND_COMPONENT_DELETE
                                                            : COMMAND_INDEX_TEMPLATE_DELETE,
                   "t", SLICE_NONE);
            buf_deinit(&body);
        }
    fixture_close(&fixture);
}

/* More templates than a step can merge are refused, and so are more settings; other indices are created. */
static void test_too_many_templates_are_refused(void **state)
{
    static const char *const settings = "{\"index_patterns\":[\"set*\"],\"settings\":{";
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_many(&fixture, "big-*", MANY, 900, true); /* 8 MB */
    create_in(&fixture, COMMAND_CODEC_VERSION, "big-1", NULL);
    assert_slice_equal(fixture.last->problem.reason,
                       "the templates that apply to index [big-1] have more than [4194304] bytes together, the most "
                       "they may have: give templates patterns that match fewer indices, or delete those that are not "
                       "needed");
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "big-1"), WRITE_FAILED);
    assert_in_range(core_step_work(fixture.core), 1, 4000);
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "small-1"), WRITE_CREATED);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "big%d", i);
        if (i % 3 > 0) /* 2.7 MB remain */
            put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_TEMPLATE_DELETE, name, SLICE_NONE);
    }
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "big-1"), WRITE_CREATED);
    for (int i = 0; i < 2; i++) {
        struct buf body = BUF_INIT(BUF_UNLIMITED);
        buf_slice(&body, slice_from(settings));
        for (int j = 0; j < 600; j++)
            buf_printf(&body, "%s\"index.routing.allocation.require.a%d-%d\":1", j == 0 ? "" : ",", i, j);
        buf_lit(&body, "}}");
        put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_TEMPLATE_PUT, i == 0 ? "s0" : "s1", buf_as_slice(&body));
        buf_deinit(&body);
        create_in(&fixture, COMMAND_CODEC_VERSION, i == 0 ? "set-1" : "set-2", NULL);
        assert_int_equal(fixture.last->problem.type, i == 0 ? PROBLEM_NONE : PROBLEM_ILLEGAL_ARGUMENT);
    }
    static const char *const reason =
        "index [set-2] would have more than [1000] settings, with those of its templates: "
        "leave some out, or remove some with null";
    assert_slice_equal(fixture.last->problem.reason, reason);
    fixture_close(&fixture);
}

/* Adds settings to an index. Returns: the command. */
static struct command *add_settings(struct core_fixture *fixture, unsigned version, enum command_type type, char letter)
{
    struct command *command = command_new(type, DIALECT_7);
    struct buf body = BUF_INIT(BUF_UNLIMITED);

    buf_lit(&body, "{\"settings\":{\"routing.allocation.require.");
    for (size_t i = sizeof "routing.allocation.require." - 1; i < SETTINGS_KEY_BYTES_MAX; i++)
        buf_byte(&body, 'a'); /* the longest key, to which the prefix "index." is added */
    buf_lit(&body, "\":1,");
    for (int i = 0; i < 999; i++)
        buf_printf(&body, "%s\"index.routing.allocation.require.%c%d\":1", i == 0 ? "" : ",", letter, i);
    buf_lit(&body, "}}");
    command->version = version;
    command->index.name = SLICE_LIT("many");
    command->index.body = arena_copy(&command->arena, buf_as_slice(&body));
    buf_deinit(&body);
    return fixture_run(fixture, command, 1);
}

/* An index has as many settings as a request may name and those of its own, or more of earlier commands: it is read. */
static void test_index_with_many_settings_is_loaded(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(add_settings(&fixture, COMMAND_CODEC_VERSION, COMMAND_INDEX_CREATE, 'a')->problem.type,
                     PROBLEM_NONE);
    fixture_reopen(&fixture);
    add_settings(&fixture, COMMAND_CODEC_VERSION, COMMAND_SETTINGS_PUT, 'b');
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    add_settings(&fixture, COMMAND_SINCE_TEMPLATES_MERGED - 1, COMMAND_SETTINGS_PUT, 'b');
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    fixture_reopen(&fixture);
    struct catalog *catalog = core_catalog(fixture.core);
    const struct settings *settings = catalog_index(catalog, SLICE_LIT("many"))->settings;
    assert_non_null(settings_find(settings, SLICE_LIT("index.routing.allocation.require.a998")));
    assert_non_null(settings_find(settings, SLICE_LIT("index.routing.allocation.require.b998")));
    catalog_unref(catalog);
    fixture_close(&fixture);
}

static void created(struct core_fixture *fixture, const char *body, const char *reason)
{
    struct command *command = fixture_index_command(fixture, COMMAND_INDEX_CREATE, "made", body);

    assert_slice_equal(command->problem.reason, reason);
    struct catalog *catalog = core_catalog(fixture->core);
    assert_null(catalog_index(catalog, SLICE_LIT("made")));
    catalog_unref(catalog);
}

static void test_create_index_refuses_like_elasticsearch(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    created(&fixture, "{\"foo\":1}", "unknown key [foo] for create index");
    created(&fixture, "{\"mappings\":{\"_doc\":{\"properties\":{}}}}",
            "The mapping definition cannot be nested under a type [_doc] unless include_type_name is set to true.");
    created(&fixture, "{\"mappings\":{\"properties\":{\"x\":{\"type\":\"bogus\"}}}}",
            "Failed to parse mapping [_doc]: No handler for type [bogus] declared on field [x]");
    created(&fixture, "{", "Failed to parse content to map");
    fixture.dialect = DIALECT_5;
    created(&fixture, "{\"foo\":1}",
            "unknown setting [index.foo] please check that any required plugins are installed, or check "
            "the breaking changes documentation for removed settings");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "made", "{\"number_of_shards\":2}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_non_null(strstr(settings_of(&fixture, "made"), "\"index.number_of_shards\":\"2\""));
    assert_non_null(strstr(settings_of(&fixture, "made"), "\"index.version.created\":\"5061699\""));
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "made", NULL);
    assert_slice_equal(fixture.last->problem.name, "index_already_exists_exception");
    fixture_close(&fixture);
}

static void test_settings_change_while_open_only_if_dynamic(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "s", NULL);
    fixture_index_command(&fixture, COMMAND_SETTINGS_PUT, "s",
                          "{\"index\":{\"number_of_replicas\":0,\"blocks.write\":true}}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_slice_equal(fixture_index(&fixture, "s", "1", "{}")->problem.reason,
                       "index [s] blocked by: [FORBIDDEN/8/index write (api)];");
    fixture_index_command(&fixture, COMMAND_SETTINGS_PUT, "s", "{\"index.blocks.write\":null}");
    assert_int_equal(fixture_index(&fixture, "s", "1", "{}")->outcome, WRITE_CREATED);
    fixture_index_command(&fixture, COMMAND_SETTINGS_PUT, "s", "{\"number_of_shards\":2}");
    assert_true(slice_starts_with(
        fixture.last->problem.reason,
        SLICE_LIT("Can't update non dynamic settings [[index.number_of_shards]] for open indices [[s/")));
    fixture_close(&fixture);
}

static void test_snapshot_is_immutable(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"a\":1}");
    struct catalog *before = core_catalog(fixture.core);
    tl_ts then = fixture.now;
    const struct catalog_index *index = catalog_index(before, SLICE_LIT("fs"));
    fixture_index(&fixture, "fs", "2", "{\"b\":1}");
    fixture_index_command(&fixture, COMMAND_INDEX_DELETE, "fs", NULL);
    assert_non_null(mapping_field(index->mapping, SLICE_LIT("a")));
    assert_null(mapping_field(index->mapping, SLICE_LIT("b")));
    /* Counters are shared and have the current value */
    assert_int_equal(catalog_index_documents(index), 2);
    catalog_unref(before);

    struct view view = {fixture.store, then, NULL};
    assert_int_equal(catalog_load(&view, &before), 0);
    assert_null(mapping_field(catalog_index(before, SLICE_LIT("fs"))->mapping, SLICE_LIT("b")));
    catalog_unref(before);
    fixture_close(&fixture);
}

/* Checks the uses of the aliases "a0" to "a4" against all indices. */
static void check_uses(struct core_fixture *fixture)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture->core);

    for (int alias = 0; alias < 5; alias++) {
        char name[] = {'a', (char)('0' + alias)};
        const struct alias_use *uses;
        size_t count = catalog__alias_uses(catalog, slice_make(name, 2), &uses), next = 0;
        const struct alias_use *write = catalog__write_use(uses, count), *wanted = NULL;
        for (size_t i = 0; i < catalog_index_count(catalog); i++) {
            const struct catalog_index *index = catalog_index_at(catalog, i); /* in order of name */
            if (catalog_index_alias(index, slice_make(name, 2)) == NULL)
                continue;
            assert_true(next < count);
            assert_ptr_equal(uses[next].index.data, index->name.data); /* shared, not copied */
            if (catalog_index_alias(index, slice_make(name, 2))->write_index == CATALOG_FLAG_TRUE)
                wanted = &uses[next];
            next++;
        }
        assert_int_equal(next, count);
        assert_ptr_equal(write, wanted);
    }
}

/*
 * Indices with aliases are created, get others and are deleted, in units of one change and of more than are
 * merged into the table of aliases; each time the table is that of all indices, and shares their names.
 */
static void test_alias_table_follows_changes(void **state)
{
    enum { INDICES = 40, CHANGES = 400 };
    struct core_fixture fixture;
    struct rng rng;
    (void)state;

    fixture_open(&fixture);
    rng_init(&rng, 7);
    for (int i = 0; i < CHANGES; i++) {
        char name[12], body[100];
        int first = (int)rng_below(&rng, 5);
        snprintf(name, sizeof name, "i%d", (int)rng_below(&rng, INDICES));
        snprintf(body, sizeof body, "{\"aliases\":{\"a%d\":{\"is_write_index\":%s},\"a%d\":{}}}", first,
                 rng_below(&rng, 8) == 0 ? "true" : "false", (first + 2) % 5);
        struct catalog *catalog = core_catalog(fixture.core);
        bool exists = catalog_index(catalog, slice_from(name)) != NULL;
        catalog_unref(catalog);
        fixture_index_command(&fixture, exists ? COMMAND_INDEX_DELETE : COMMAND_INDEX_CREATE, name,
                              exists ? NULL : body);
        check_uses(&fixture);
    }
    for (int add = 1; add >= 0; add--) {
        struct command *command = command_new(COMMAND_ALIASES_UPDATE, DIALECT_7);
        struct catalog *catalog = core_catalog(fixture.core);
        size_t count = catalog_index_count(catalog);
        command->aliases.actions = arena_zalloc(&command->arena, count * sizeof *command->aliases.actions);
        for (size_t i = 0; i < count; i++)
            command->aliases.actions[command->aliases.action_count++] = (struct alias_action){
                .op = add ? ALIAS_ADD : ALIAS_REMOVE,
                .index = arena_copy(&command->arena, catalog_index_at(catalog, i)->name),
                .alias = SLICE_LIT("a4"),
            };
        catalog_unref(catalog);
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        check_uses(&fixture);
    }
    fixture_close(&fixture);
}

static void test_scripts_are_stored_and_loaded_from_files(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_object_command(&fixture, COMMAND_SCRIPT_PUT, "m",
                           "{\"script\":{\"lang\":\"mustache\",\"source\":{\"query\":{}}}}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    fixture_object_command(&fixture, COMMAND_SCRIPT_PUT, "bad", "{\"script\":{\"lang\":\"nope\",\"source\":\"1\"}}");
    assert_slice_equal(fixture.last->problem.reason, "unable to put stored script with unsupported lang [nope]");
    fixture_object_command(&fixture, COMMAND_SCRIPT_PUT, "bad", "{\"script\":{\"source\":\"1\"}}");
    assert_slice_equal(fixture.last->problem.reason, "must specify lang for stored script");
    fixture_object_command(&fixture, COMMAND_SCRIPT_DELETE, "bad", NULL);
    assert_slice_equal(fixture.last->problem.reason, "stored script [bad] does not exist and cannot be deleted");

    struct file_script scripts[] = {{SLICE_LIT("one"), SLICE_LIT("groovy"), SLICE_LIT("1")},
                                    {SLICE_LIT("two"), SLICE_LIT("groovy"), SLICE_LIT("2")}};
    for (size_t count = 2; count > 0; count--) {
        struct command *command = command_new(COMMAND_FILE_SCRIPTS, DIALECT_7);
        command->file_scripts = (struct file_scripts_command){scripts, count};
        fixture_run(&fixture, command, 1);
    }
    struct catalog *catalog = core_catalog(fixture.core);
    assert_slice_equal(catalog_object(catalog, CATALOG_SCRIPTS, SLICE_LIT("m"))->body, "{\"query\":{}}");
    assert_int_equal(catalog_object_count(catalog, CATALOG_FILE_SCRIPTS), 1);
    assert_slice_equal(catalog_object(catalog, CATALOG_FILE_SCRIPTS, SLICE_LIT("groovy/one"))->body, "1");
    catalog_unref(catalog);
    fixture_close(&fixture);
}

/* Returns: the stored zones, valid until the next change of the catalog. */
static struct slice stored_zones(struct core_fixture *fixture)
{
    struct catalog *catalog = core_catalog(fixture->core);
    struct slice zones = catalog_zones(catalog);

    catalog_unref(catalog);
    return zones;
}

static struct slice offer_zones(struct core_fixture *fixture, const char *version)
{
    struct buf zones = BUF_INIT(BUF_UNLIMITED);
    struct command *command = command_new(COMMAND_ZONES, DIALECT_7);

    zone_sample(&zones, version);
    command->object.body = arena_copy(&command->arena, buf_as_slice(&zones));
    buf_deinit(&zones);
    fixture_run(fixture, command, 1);
    return zones_version(stored_zones(fixture));
}

/*
 * Of two databases the newest release stays, whichever host proposes it; invalid bytes are refused.
 */
static void test_zones_keep_newest_release(void **state)
{
    (void)state;
    struct core_fixture fixture;
    struct command *broken = command_new(COMMAND_ZONES, DIALECT_7);

    fixture_open(&fixture);
    assert_int_equal(stored_zones(&fixture).len, 0);
    assert_slice_equal(offer_zones(&fixture, "2024b"), "2024b");
    assert_slice_equal(offer_zones(&fixture, "2025b"), "2025b");
    assert_slice_equal(offer_zones(&fixture, "2025a"), "2025b");
    broken->object.body = SLICE_LIT("TLZ1\2");
    fixture_run(&fixture, broken, 1);
    assert_slice_equal(fixture.last->problem.reason, "the time zones are invalid");
    assert_slice_equal(zones_version(stored_zones(&fixture)), "2025b");
    fixture_close(&fixture);
}

static void test_cluster_settings_merge(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"transient\":{\"action\":{\"auto_create_index\":false}}}");
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "", "{\"persistent\":{\"cluster.metadata.b\":1}}");
    struct catalog *catalog = core_catalog(fixture.core);
    assert_slice_equal(
        catalog_object(catalog, CATALOG_CLUSTER, SLICE_LIT("settings"))->body,
        "{\"persistent\":{\"cluster.metadata.b\":\"1\"},\"transient\":{\"action.auto_create_index\":\"false\"}}");
    catalog_unref(catalog);
    assert_int_equal(fixture_index(&fixture, "fresh", "1", "{}")->problem.type, PROBLEM_INDEX_NOT_FOUND);
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"transient\":{\"action.auto_create_index\":null}}");
    assert_int_equal(fixture_index(&fixture, "fresh", "1", "{}")->outcome, WRITE_CREATED);
    fixture_close(&fixture);
}

/* A setting without effect that a client would rely on is refused. */
static void test_cluster_settings_refuse_those_without_effect(void **state)
{
    static const char *const refused[][2] = {
        {"{\"transient\":{\"nosuch.x\":1}}", "transient setting [nosuch.x], not recognized"},
        {"{\"persistent\":{\"nosuch.x\":null}}", "persistent setting [nosuch.x], not recognized"},
        {"{\"persistent\":{\"search.max_buckets\":100000}}",
         "[search.max_buckets] cannot be [100000]: it is [65535] here"},
        {"{\"persistent\":{\"cluster.blocks.read_only\":true}}",
         "[cluster.blocks.read_only] cannot be [true]: it is [false] here"},
        {"{\"transient\":{\"indices.breaker.total.limit\":\"40%\"}}",
         "[indices.breaker.total.limit] has no effect here: [--memory] bounds what requests hold"},
        {"{\"transient\":{\"logger.org.elasticsearch\":\"DEBUG\"}}",
         "[logger.org.elasticsearch] has no effect here: there is one log, and [logger._root] or [--log-level] sets "
         "its level"},
        {"{\"transient\":{\"logger._root\":\"LOUD\"}}", "Unknown level constant [LOUD]."},
        {"{\"persistent\":{\"logger._root\":\"OFF\"}}",
         "[logger._root] cannot be [OFF]: errors are always logged, [ERROR] is the least"},
        {"{\"transient\":{\"cluster.remote.a.seeds\":[\"b:9300\"]}}",
         "[cluster.remote.a.seeds] has no effect here: there are no other clusters here"},
    };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct command *command = fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "", refused[i][0]);
        assert_int_equal(command->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
        assert_slice_equal(command->problem.reason, refused[i][1]);
    }
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"transient\":{\"action.auto_create_index\":\"-no*,+*\"}}");
    assert_int_equal(fixture_index(&fixture, "nobody", "1", "{}")->problem.type, PROBLEM_INDEX_NOT_FOUND);
    assert_int_equal(fixture_index(&fixture, "fresh", "1", "{}")->outcome, WRITE_CREATED);
    fixture_close(&fixture);
}

/* A list is no value of a setting that has one; Elasticsearch reads it as a text. */
static void test_cluster_settings_refuse_lists(void **state)
{
    static const char *const refused[][2] = {
        {"{\"persistent\":{\"cluster.max_shards_per_node\":[\"x\"]}}",
         "Failed to parse value [[x]] for setting [cluster.max_shards_per_node]"},
        {"{\"persistent\":{\"cluster.max_shards_per_node\":[]}}",
         "Failed to parse value [[]] for setting [cluster.max_shards_per_node]"},
        {"{\"transient\":{\"cluster.routing.allocation.enable\":[\"all\",\"none\"]}}",
         "Illegal allocation.enable value [[ALL, NONE]]"},
    };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(refused[i][0]));
        assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
        assert_slice_equal(fixture.last->problem.reason, refused[i][1]);
        put_in(&fixture, COMMAND_SINCE_CATALOG_BOUNDS - 1, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(refused[i][0]));
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    }
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"transient\":{\"action.auto_create_index\":[\"-no*\",\"+*\"]}}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_int_equal(fixture_index(&fixture, "nobody", "1", "{}")->problem.type, PROBLEM_INDEX_NOT_FOUND);
    fixture_close(&fixture);
}

/* Values that 7.10 refuses (tests/golden has its words); commands before version 23 accepted them. */
static void test_cluster_settings_refuse_values_later(void **state)
{
    static const char *const refused[] = {
        "{\"transient\":{\"indices.recovery.max_bytes_per_sec\":\"40%\"}}",
        "{\"transient\":{\"cluster.routing.allocation.balance.shard\":\"-1\"}}",
        "{\"transient\":{\"cluster.routing.allocation.balance.index\":\"0x10\"}}",
        "{\"transient\":{\"cluster.info.update.interval\":\"9s\"}}",
        "{\"transient\":{\"indices.recovery.retry_delay_network\":\"-1\"}}",
        "{\"transient\":{\"indices.recovery.max_concurrent_file_chunks\":0}}",
        "{\"persistent\":{\"indices.mapping.max_in_flight_updates\":1001}}",
        "{\"persistent\":{\"cluster.max_shards_per_node\":2147483648}}",
        "{\"persistent\":{\"action.auto_create_index\":\"a*, ,b*\"}}",
    };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(refused[i]));
        assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
        put_in(&fixture, COMMAND_SINCE_SETTING_VALUES - 1, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(refused[i]));
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    }
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_CLUSTER_SETTINGS_PUT, "",
           SLICE_LIT("{\"transient\":{\"indices.breaker.total.limit\":\"40%\"}}"));
    assert_slice_equal(fixture.last->problem.reason,
                       "[indices.breaker.total.limit] has no effect here: [--memory] bounds what requests hold");
    fixture_close(&fixture);
}

/*
 * A default keep-alive is at most the longest one, also where one of them is not set; commands before version 24 took
 * any two, which stay. An empty list of patterns lets all indices be created; it was refused.
 */
static void test_cluster_settings_are_checked_together(void **state)
{
    static const char *const refused[] = {
        "{\"transient\":{\"search.max_keep_alive\":\"1m\"}}",
        "{\"persistent\":{\"search.default_keep_alive\":\"25h\"}}",
        "{\"persistent\":{\"search.max_keep_alive\":\"1h\"},\"transient\":{\"search.default_keep_alive\":\"90m\"}}",
    };
    static const char empty[] = "{\"transient\":{\"action.auto_create_index\":\"\"}}";
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(refused[i]));
        assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    }
    assert_slice_equal(fixture.last->problem.reason,
                       "Default keep alive setting for request [search.default_keep_alive] should be smaller than max "
                       "keep alive [search.max_keep_alive], was (1.5h > 1h)");
    put_in(&fixture, COMMAND_SINCE_SETTINGS_REMOVED - 1, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(refused[0]));
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_CLUSTER_SETTINGS_PUT, "",
           SLICE_LIT("{\"transient\":{\"cluster.metadata.a\":1}}"));
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    put_in(&fixture, COMMAND_SINCE_SETTINGS_REMOVED - 1, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(empty));
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(empty));
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_int_equal(fixture_index(&fixture, "fresh", "1", "{}")->outcome, WRITE_CREATED);
    fixture_close(&fixture);
}

/* A setting that 7.x removed is refused in a new index and in templates, but not in the dialect of 5.x. */
static void test_removed_settings_are_refused(void **state)
{
    static const char body[] = "{\"settings\":{\"index.mapper.dynamic\":true}}";
    static const char template[] = "{\"index_patterns\":[\"t*\"],\"settings\":{\"index.mapper.dynamic\":true}}";
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "a", body)->problem.type,
                     PROBLEM_ILLEGAL_ARGUMENT);
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_TEMPLATE_PUT, "t", slice_from(template));
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    put_in(&fixture, COMMAND_SINCE_SETTINGS_REMOVED - 1, COMMAND_TEMPLATE_PUT, "t", slice_from(template));
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_int_equal(fixture_index(&fixture, "t1", "1", "{}")->outcome, WRITE_CREATED); /* it stays in effect */
    fixture.dialect = DIALECT_5;
    assert_int_equal(fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "b", body)->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* Blanks around a pattern do not count; in commands before version 23 they did. */
static void test_auto_create_patterns_are_trimmed(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"transient\":{\"action.auto_create_index\":\"a*, -b*\\t, * \"}}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    struct command *older = fixture_write_command(&fixture, 1);
    older->write.items[0] = fixture_item(WRITE_INDEX, "c", "", "1", "{}");
    older->write.items[0].dialect = fixture.dialect;
    older->version = COMMAND_SINCE_SETTING_VALUES - 1;
    assert_int_equal(fixture_run(&fixture, older, 1)->write.results[0].problem.type, PROBLEM_INDEX_NOT_FOUND);
    assert_int_equal(fixture_index(&fixture, "b", "1", "{}")->problem.type, PROBLEM_INDEX_NOT_FOUND);
    assert_int_equal(fixture_index(&fixture, "a", "1", "{}")->outcome, WRITE_CREATED);
    assert_int_equal(fixture_index(&fixture, "c", "1", "{}")->outcome, WRITE_CREATED);
    fixture_close(&fixture);
}

/*
 * A list counts as the text "[a*, b*]". In commands before version 25 its values counted, and an empty one permitted
 * all.
 */
static void test_list_of_auto_create_is_a_text(void **state)
{
    static const char blank[] = "{\"transient\":{\"action.auto_create_index\":[\"\"]}}";
    const unsigned older = COMMAND_SINCE_SETTING_LISTS - 1;
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"transient\":{\"action.auto_create_index\":[]}}");
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "none"), WRITE_FAILED);
    assert_int_equal(write_in(&fixture, older, "none"), WRITE_CREATED);
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"transient\":{\"action.auto_create_index\":[\"a*\",\"b*\",\"c*\"]}}");
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "a1"), WRITE_FAILED);
    assert_slice_equal(fixture.last->write.results[0].problem.reason,
                       "no such index [a1] and [action.auto_create_index] ([[a*, b*, c*]]) doesn't match");
    assert_int_equal(write_in(&fixture, older, "a1"), WRITE_CREATED);
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "b1"), WRITE_CREATED);
    put_in(&fixture, older, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(blank));
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_CLUSTER_SETTINGS_PUT, "", slice_from(blank));
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_int_equal(write_in(&fixture, COMMAND_CODEC_VERSION, "b2"), WRITE_FAILED);
    fixture_close(&fixture);
}

/* Appends patterns that take long: each is searched for in the whole of a name of 'a's. */
static void append_slow_patterns(struct buf *buf, size_t count, const char *apart)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(buf, "%s*baaa*", i == 0 ? "" : apart);
}

static void put_creation_patterns(struct core_fixture *fixture, unsigned version, size_t count)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&body, "{\"transient\":{\"action.auto_create_index\":\"");
    append_slow_patterns(&body, count, ",");
    buf_lit(&body, ",a*\"}}");
    put_in(fixture, version, COMMAND_CLUSTER_SETTINGS_PUT, "", buf_as_slice(&body));
    buf_deinit(&body);
}

/* Makes new indices of long names by one write. Returns: how many of its items are postponed. */
static size_t write_new_indices(struct core_fixture *fixture, unsigned version, char letter, unsigned count)
{
    struct command *command = fixture_write_command(fixture, count);
    char names[32][CATALOG_NAME_BYTES_MAX + 1];
    size_t postponed = 0;
    assert_in_range(count, 1, sizeof names / sizeof *names);
    command->version = version;
    for (unsigned i = 0; i < count; i++) {
        memset(names[i], 'a', CATALOG_NAME_BYTES_MAX);
        snprintf(names[i] + CATALOG_NAME_BYTES_MAX - 3, 4, "%c%02u", letter, i % 100);
        command->write.items[i] = fixture_item(WRITE_INDEX, names[i], NULL, "1", "{}");
    }
    fixture_run(fixture, command, 1);
    for (unsigned i = 0; i < count; i++) {
        postponed += command->write.results[i].postponed;
        assert_true(command->write.results[i].postponed || command->write.results[i].outcome == WRITE_CREATED);
    }
    return postponed;
}

/*
 * The patterns of action.auto_create_index count by the time that comparing a name with them takes, so that a write of
 * many indices is divided, and a list that takes longer than a part of a step is refused. In commands before version 26
 * a bulk of 20 indices took some 130 ms, and counted as 1 ms.
 */
static void test_auto_create_patterns_count_as_work(void **state)
{
    enum { PATTERNS = 5000, MOST = CLUSTER_PATTERNS_WORK_MAX * WORK_COMPARED_BYTES / (CATALOG_NAME_BYTES_MAX + 10) };
    const unsigned older = COMMAND_SINCE_PATTERNS_WEIGHED - 1;
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_creation_patterns(&fixture, COMMAND_CODEC_VERSION, PATTERNS);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_int_equal(write_new_indices(&fixture, older, 'b', 20), 0);
    assert_in_range(core_step_work(fixture.core), 1, CORE_STEP_WORK / 4);
    assert_in_range(write_new_indices(&fixture, COMMAND_CODEC_VERSION, 'c', 20), 17, 18);
    assert_in_range(core_step_work(fixture.core), 2 * PATTERNS * CATALOG_NAME_BYTES_MAX / WORK_COMPARED_BYTES,
                    CORE_STEP_WORK / 2);
    put_creation_patterns(&fixture, COMMAND_CODEC_VERSION, MOST + 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    put_creation_patterns(&fixture, COMMAND_CODEC_VERSION, MOST - 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    put_creation_patterns(&fixture, older, MOST + 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* So do the patterns of templates. */
static void test_patterns_of_templates_count_as_work(void **state)
{
    enum { PATTERNS = 1000 };
    struct core_fixture fixture;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    uint64_t work[2];
    (void)state;

    fixture_open(&fixture);
    buf_lit(&body, "{\"index_patterns\":[\"");
    append_slow_patterns(&body, PATTERNS, "\",\"");
    buf_lit(&body, "\"]}");
    put_in(&fixture, COMMAND_CODEC_VERSION, COMMAND_TEMPLATE_PUT, "t", buf_as_slice(&body));
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(write_new_indices(&fixture, COMMAND_SINCE_PATTERNS_WEIGHED - 1 + i, i == 0 ? 'b' : 'c', 1), 0);
        work[i] = core_step_work(fixture.core);
    }
    const uint64_t more = PATTERNS * (uint64_t)(CATALOG_NAME_BYTES_MAX / WORK_COMPARED_BYTES);
    assert_in_range(work[1], work[0] + more, work[0] + 2 * more);
    buf_deinit(&body);
    fixture_close(&fixture);
}

/* Puts a template of so many patterns that each take the most. Returns: the type of its problem. */
static enum problem_type put_slow_template(struct core_fixture *fixture, unsigned version, const char *name,
                                           size_t patterns)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&body, "{\"index_patterns\":[\"");
    append_slow_patterns(&body, patterns, "\",\"");
    buf_lit(&body, "\"]}");
    put_in(fixture, version, COMMAND_TEMPLATE_PUT, name, buf_as_slice(&body));
    buf_deinit(&body);
    return fixture->last->problem.type;
}

/* Those of all templates are limited, but a template may be replaced by one of fewer. */
static void test_patterns_of_all_templates_are_limited(void **state)
{
    enum { PATTERNS = 1000, TEMPLATES = CATALOG_COMPARED_BYTES_MAX / PATTERNS / CATALOG_NAME_BYTES_MAX };
    const unsigned older = COMMAND_SINCE_PATTERNS_WEIGHED - 1;
    struct core_fixture fixture;
    char name[8];
    (void)state;

    fixture_open(&fixture);
    for (unsigned i = 0; i + 1 < TEMPLATES; i++) {
        snprintf(name, sizeof name, "t%u", i);
        assert_int_equal(put_slow_template(&fixture, COMMAND_CODEC_VERSION, name, PATTERNS), PROBLEM_NONE);
    }
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "u%u", i);
        assert_int_equal(put_slow_template(&fixture, older, name, PATTERNS), PROBLEM_NONE);
    }
    assert_int_equal(put_slow_template(&fixture, COMMAND_CODEC_VERSION, "v", PATTERNS), PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(put_slow_template(&fixture, COMMAND_CODEC_VERSION, "v", 1), PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(put_slow_template(&fixture, COMMAND_CODEC_VERSION, "u0", PATTERNS), PROBLEM_NONE);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "u%u", i);
        assert_int_equal(put_slow_template(&fixture, COMMAND_CODEC_VERSION, name, 1), PROBLEM_NONE);
    }
    assert_int_equal(put_slow_template(&fixture, COMMAND_CODEC_VERSION, "v", 1), PROBLEM_NONE);
    fixture_close(&fixture);
}

/* "{index}" in the name of a template's alias is the index; in commands before version 25 it was part of the name. */
static void test_alias_of_template_names_index(void **state)
{
    static const char *const templates[] = {
        "{\"index_patterns\":[\"t*\"],\"aliases\":{\"{index}-x{index}\":{},\"{i}\":{}}}",
        "{\"index_patterns\":[\"u*\"],\"template\":{\"aliases\":{\"{index}-x{index}\":{},\"{i}\":{}}}}",
    };
    static const char *const names[][2] = {{"t1", "t2"}, {"u1", "u2"}};
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_object_command(&fixture, COMMAND_TEMPLATE_PUT, "t", templates[0]);
    fixture_object_command(&fixture, COMMAND_INDEX_TEMPLATE_PUT, "u", templates[1]);
    for (size_t i = 0; i < 2; i++) {
        create_in(&fixture, COMMAND_CODEC_VERSION, names[i][0], NULL);
        create_in(&fixture, COMMAND_SINCE_SETTING_LISTS - 1, names[i][1], NULL);
        const struct catalog_index *index = catalog_index(fixture.core->catalog, slice_from(names[i][0]));
        assert_non_null(catalog_index_alias(index, slice_from(i == 0 ? "t1-xt1" : "u1-xu1")));
        assert_non_null(catalog_index_alias(index, SLICE_LIT("{i}")));
        index = catalog_index(fixture.core->catalog, slice_from(names[i][1]));
        assert_non_null(catalog_index_alias(index, SLICE_LIT("{index}-x{index}")));
    }
    static const char own[] = "{\"aliases\":{\"own\":{}}}";
    assert_int_equal(create_in(&fixture, COMMAND_CODEC_VERSION, "own", own)->problem.type, PROBLEM_INVALID_ALIAS_NAME);
    assert_int_equal(create_in(&fixture, COMMAND_SINCE_SETTING_LISTS - 1, "own", own)->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* The settings of the cluster are parsed when they change, not by each index that is created. */
static void test_cluster_settings_are_parsed_once(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_object_command(&fixture, COMMAND_CLUSTER_SETTINGS_PUT, "",
                           "{\"persistent\":{\"cluster.max_shards_per_node\":4}}");
    fixture_reopen(&fixture);
    settings_parses = 0;
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "a", NULL);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_int_equal(settings_parses, 2); /* of the request alone */
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "b", NULL);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "c", NULL);
    assert_int_equal(fixture.last->problem.type, PROBLEM_VALIDATION);
    assert_int_equal(settings_parses, 6);
    fixture_close(&fixture);
}

/* Writes a record of the catalog again under another key. Returns: what a load of the catalog returns then. */
static int load_with_copy(struct core_fixture *fixture, const char *key, size_t key_len, const char *to, size_t to_len)
{
    struct store_batch *batch = store_batch_new(fixture->store);
    struct catalog *catalog;
    struct store_value value;

    assert_int_equal(store_get(fixture->store, SPACE_CATALOG, TL_TS_MAX, slice_make(key, key_len), &value), 0);
    store_batch_begin(batch, ++fixture->now);
    store_batch_put(batch, SPACE_CATALOG, slice_make(to, to_len), value.bytes);
    assert_int_equal(store_write(fixture->store, batch), 0);
    store_value_release(&value);
    int r = catalog_load(&(struct view){fixture->store, fixture->now, NULL}, &catalog);
    if (r == 0)
        catalog_unref(catalog);
    store_batch_clear(batch);
    store_batch_begin(batch, ++fixture->now);
    store_batch_delete(batch, SPACE_CATALOG, slice_make(to, to_len));
    assert_int_equal(store_write(fixture->store, batch), 0);
    store_batch_free(batch);
    return r;
}

/* What a damaged store may have is an error of the load, and fails no check. */
static void test_load_refuses_invalid_names_and_numbers(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "logs", "{}");
    fixture_object_command(&fixture, COMMAND_SCRIPT_PUT, "s", "{\"script\":{\"lang\":\"painless\",\"source\":\"1\"}}");
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    assert_int_equal(load_with_copy(&fixture, "ss", 2, "st", 2), 0);
    assert_int_equal(load_with_copy(&fixture, "ss", 2, "s", 1), TL_ERR_CORRUPT);                /* no name */
    assert_int_equal(load_with_copy(&fixture, "i\0\0\0\1", 5, "i\0\0\0\0", 5), TL_ERR_CORRUPT); /* number 0 */
    assert_int_equal(load_with_copy(&fixture, "i\0\0\0\1", 5, "i\0\0\0\2", 5), TL_ERR_CORRUPT); /* "logs" again */
    fixture_close(&fixture);
}

/* The number of the next index is damaged: it could not be counted further. */
static void test_open_refuses_last_index_number(void **state)
{
    struct core_fixture fixture;
    struct core *core;
    struct buf value = BUF_INIT(16);
    (void)state;

    fixture_open(&fixture);
    struct store_batch *batch = store_batch_new(fixture.store);
    store_batch_begin(batch, ++fixture.now);
    buf_varint(&value, UINT32_MAX);
    store_batch_put(batch, SPACE_SYSTEM, SLICE_LIT("x"), buf_as_slice(&value));
    assert_int_equal(store_write(fixture.store, batch), 0);
    assert_int_equal(core_open(fixture.store, &fixture.limits, &core), TL_ERR_CORRUPT);
    store_batch_free(batch);
    buf_deinit(&value);
    fixture_close(&fixture);
}

/* Every write reads the version before: only that of a deleted document depends on index.gc_deletes. */
static void test_writes_of_live_documents_need_no_horizon(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{}");
    horizon_looks = 0;
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->version, 2);
    assert_int_equal(fixture_delete(&fixture, "fs", "1")->version, 3);
    assert_int_equal(horizon_looks, 0);
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->version, 4);
    assert_true(horizon_looks > 0);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_follow_elasticsearch_rules),
        cmocka_unit_test(test_expressions_resolve_to_indices),
        cmocka_unit_test(test_alias_accepts_writes_with_one_index_or_write_index),
        cmocka_unit_test(test_alias_of_many_indices_is_found_at_once),
        cmocka_unit_test(test_work_of_aliases_is_bounded),
        cmocka_unit_test(test_aliases_of_many_indices_agree),
        cmocka_unit_test(test_refused_alias_lists_some_indices),
        cmocka_unit_test(test_templates_apply_by_order),
        cmocka_unit_test(test_templates_merged_at_once_make_the_same_indices),
        cmocka_unit_test(test_creation_takes_the_time_of_its_templates),
        cmocka_unit_test(test_work_of_settings_of_templates_is_counted),
        cmocka_unit_test(test_created_index_has_its_aliases_checked),
        cmocka_unit_test(test_work_of_a_required_alias_is_counted),
        cmocka_unit_test(test_work_of_aliases_of_a_created_index_is_counted),
        cmocka_unit_test(test_aliases_of_all_indices_are_limited),
        cmocka_unit_test(test_index_template_may_raise_its_limit_of_fields),
        cmocka_unit_test(test_comparisons_of_patterns_are_bounded),
        cmocka_unit_test(test_large_templates_are_refused),
        cmocka_unit_test(test_too_many_templates_are_refused),
        cmocka_unit_test(test_index_with_many_settings_is_loaded),
        cmocka_unit_test(test_create_index_refuses_like_elasticsearch),
        cmocka_unit_test(test_settings_change_while_open_only_if_dynamic),
        cmocka_unit_test(test_snapshot_is_immutable),
        cmocka_unit_test(test_alias_table_follows_changes),
        cmocka_unit_test(test_scripts_are_stored_and_loaded_from_files),
        cmocka_unit_test(test_zones_keep_newest_release),
        cmocka_unit_test(test_cluster_settings_merge),
        cmocka_unit_test(test_cluster_settings_refuse_those_without_effect),
        cmocka_unit_test(test_cluster_settings_refuse_lists),
        cmocka_unit_test(test_cluster_settings_refuse_values_later),
        cmocka_unit_test(test_auto_create_patterns_are_trimmed),
        cmocka_unit_test(test_list_of_auto_create_is_a_text),
        cmocka_unit_test(test_auto_create_patterns_count_as_work),
        cmocka_unit_test(test_patterns_of_templates_count_as_work),
        cmocka_unit_test(test_patterns_of_all_templates_are_limited),
        cmocka_unit_test(test_alias_of_template_names_index),
        cmocka_unit_test(test_cluster_settings_are_checked_together),
        cmocka_unit_test(test_removed_settings_are_refused),
        cmocka_unit_test(test_cluster_settings_are_parsed_once),
        cmocka_unit_test(test_load_refuses_invalid_names_and_numbers),
        cmocka_unit_test(test_open_refuses_last_index_number),
        cmocka_unit_test(test_writes_of_live_documents_need_no_horizon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
