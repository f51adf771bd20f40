/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and results of scripts by context: by query, filter, sort key, field of a document. */
#include "evaluate.h"

struct field {
    const char *name;
    struct script_doc_field values;
};

static bool find_field(void *user, struct slice name, struct script_doc_field *ret_field)
{
    (void)user;
    static const int64_t longs[] = {3, 5, 9}, dates[] = {1584267630000};
    static const struct slice strings[] = {{"blue", 4}, {"red", 3}};
    const struct field fields[] = {
        {"nums", {.kind = SCRIPT_DOC_LONG, .count = 3, .integers = longs}},
        {"day", {.kind = SCRIPT_DOC_DATE, .count = 1, .integers = dates}},
        {"tags", {.kind = SCRIPT_DOC_STRING, .count = 2, .strings = strings}},
        {"no_long", {.kind = SCRIPT_DOC_LONG}},
        {"no_double", {.kind = SCRIPT_DOC_DOUBLE}},
        {"no_boolean", {.kind = SCRIPT_DOC_BOOLEAN}},
        {"no_string", {.kind = SCRIPT_DOC_STRING}},
        {"text", {.refused = true}},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (slice_is(name, fields[i].name)) {
            *ret_field = fields[i].values;
            return true;
        }
    }
    return false;
}

struct valued {
    enum script_lang lang;
    enum script_context context;
    const char *source;
    const char *expected;
};

static struct slice run_value(const struct valued *row, struct arena *arena)
{
    struct script *script = NULL;
    struct problem problem = {0};
    struct script_eval value = {.params = SLICE_LIT("{}"), .doc = find_field};
    int r = script_compile(row->lang, row->context, slice_from(row->source), SLICE_NONE, &script, arena, &problem);
    if (r == 0)
        r = script_run_value(script, &SCRIPT_LIMITS_DEFAULT, arena, &value, &problem);
    script_unref(script);
    if (r != 0) {
        const struct problem *cause = problem.caused_by == NULL ? &problem : problem.caused_by;
        return arena_printf(arena, "%.*s", SLICE_ARG(cause->name));
    }
    if (row->context == SCRIPT_FOR_FILTER)
        return slice_from(value.boolean ? "true" : "false");
    return value.json;
}

/* Groovy's fields are those of 5.x: with a default where there is no value, dates in milliseconds. */
static void test_values(void **state)
{
    static const struct valued table[] = {
        {SCRIPT_PAINLESS, SCRIPT_FOR_FIELD, "doc['nums'].value", "3"},
        {SCRIPT_PAINLESS, SCRIPT_FOR_FIELD, "doc['tags']", "[\"blue\",\"red\"]"},
        {SCRIPT_PAINLESS, SCRIPT_FOR_FIELD, "doc['no_long'].value", "illegal_state_exception"},
        {SCRIPT_PAINLESS, SCRIPT_FOR_FIELD, "doc['tags'].values", "illegal_argument_exception"},
        {SCRIPT_PAINLESS, SCRIPT_FOR_FIELD, "doc['text'].value", "illegal_argument_exception"},
        {SCRIPT_PAINLESS, SCRIPT_FOR_FIELD, "doc['day'].value.year", "2020"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['tags'].values", "[\"blue\",\"red\"]"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['no_long'].value", "0"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['no_double'].value", "0.0"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['no_boolean'].value", "false"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['no_string'].value", "null"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['day'].value", "1584267630000"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['day'].date.monthOfYear", "3"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FIELD, "doc['text'].value", "illegal_argument_exception"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FILTER, "doc['nums'].value", "true"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FILTER, "doc['nums'].value - 3", "false"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FILTER, "null", "false"},
        {SCRIPT_GROOVY, SCRIPT_FOR_FILTER, "'true'", "illegal_argument_exception"},
        {SCRIPT_GROOVY, SCRIPT_FOR_NUMBER_SORT, "'a'", "class_cast_exception"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct arena arena = ARENA_INIT;
        struct slice have = run_value(&table[i], &arena);
        if (!slice_equal(have, slice_from(table[i].expected)))
            fail_msg("%s\n  gives    %.*s\n  expected %s", table[i].source, SLICE_ARG(have), table[i].expected);
        arena_deinit(&arena);
    }
}

struct left {
    const char *source;
    const char *expected; /* op, changed _id, strange keys; or the error's reason */
};

static struct slice run_by_query(const char *source, struct arena *arena)
{
    struct script *script = NULL;
    struct problem problem = {0};
    struct script_update update = {.ctx = SCRIPT_CTX_BY_QUERY,
                                   .index = SLICE_LIT("i"),
                                   .id = SLICE_LIT("1"),
                                   .version = -1,
                                   .source = SLICE_LIT("{}"),
                                   .params = SLICE_LIT("{}")};
    static const char *const ops[] = {"index", "create", "delete", "noop", "other"};
    assert_int_equal(script_compile(SCRIPT_PAINLESS, SCRIPT_FOR_UPDATE, slice_from(source), SLICE_NONE, &script, arena,
                                    &problem),
                     0);
    int r = script_run_update(script, &SCRIPT_LIMITS_DEFAULT, arena, &update, &problem);
    script_unref(script);
    if (r != 0)
        return problem.reason;
    return arena_printf(arena, "%s %.*s %.*s", ops[update.op_after], SLICE_ARG(update.id_after),
                        SLICE_ARG(update.invalid_ctx_keys));
}

/* By query: three ops, no keys of one's own, and an id may be anything that reads as a text. */
static void test_by_query(void **state)
{
    static const struct left table[] = {
        {"ctx._source.a = 1", "index 1 "},
        {"ctx.op = 'noop'", "noop 1 "},
        {"ctx.op = 'DELETE'", "delete 1 "},
        {"ctx.op = 'none'", "other 1 "},
        {"ctx.op = 'create'", "other 1 "},
        {"ctx.op = null", "Script cleared operation type"},
        {"ctx._id = 5", "index 5 "},
        {"ctx.foo = 1", "index 1 foo"},
        {"ctx._source.v = ctx._version; ctx._id = ctx._source.v.toString()", "index -1 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct arena arena = ARENA_INIT;
        struct slice have = run_by_query(table[i].source, &arena);
        if (!slice_equal(have, slice_from(table[i].expected)))
            fail_msg("%s\n  gives    %.*s\n  expected %s", table[i].source, SLICE_ARG(have), table[i].expected);
        arena_deinit(&arena);
    }
}

/*
 * The kinds of maps: a stored document keeps its order; one that is to be created, a document of a
 * by-query call and parameters have that of java.util.HashMap, at every level. Orders of 7.10.2.
 */
static void test_map_order(void **state)
{
#define JSON "{\"zeta\":0,\"alpha\":{\"zeta\":0,\"alpha\":1,\"m\":2,\"Aa\":3,\"BB\":4,\"q1\":5},\"m\":2,\"Aa\":3}"
    static const char in_order[] = JSON, hashed[] = "{\"zeta\":0,\"Aa\":3,\"alpha\":{\"zeta\":0,\"Aa\":3,\"BB\":4,"
                                                    "\"q1\":5,\"alpha\":1,\"m\":2},\"m\":2}";
    static const struct {
        enum script_lang lang;
        enum script_ctx ctx;
        const char *source, *expected;
    } table[] = {
        {SCRIPT_PAINLESS, SCRIPT_CTX_UPDATE, "ctx._source = ctx._source", in_order},
        {SCRIPT_GROOVY, SCRIPT_CTX_UPDATE_TYPED, "ctx._source = ctx._source", in_order},
        {SCRIPT_PAINLESS, SCRIPT_CTX_UPSERT, "ctx._source = ctx._source", hashed},
        {SCRIPT_PAINLESS, SCRIPT_CTX_BY_QUERY, "ctx._source = ctx._source", hashed},
        {SCRIPT_GROOVY, SCRIPT_CTX_BY_QUERY_TYPED, "ctx._source = ctx._source", hashed},
        {SCRIPT_PAINLESS, SCRIPT_CTX_UPDATE, "ctx._source = params.p", hashed},
        {SCRIPT_PAINLESS, SCRIPT_CTX_UPDATE, "ctx._source = params.l[0]", hashed},
        {SCRIPT_GROOVY, SCRIPT_CTX_UPDATE_TYPED, "ctx._source = p", hashed},
        {SCRIPT_PAINLESS, SCRIPT_CTX_UPDATE,
         "def m = new HashMap(); for (k in params.keySet()) m.put(k, 1); ctx._source = m", "{\"p\":1,\"l\":1}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct arena arena = ARENA_INIT;
        struct script *script = NULL;
        struct problem problem = {0};
        struct script_update update = {.ctx = table[i].ctx,
                                       .id = SLICE_LIT("1"),
                                       .source = SLICE_LIT(JSON),
                                       .params = SLICE_LIT("{\"p\":" JSON ",\"l\":[" JSON "]}")};
        assert_int_equal(script_compile(table[i].lang, SCRIPT_FOR_UPDATE, slice_from(table[i].source), SLICE_NONE,
                                        &script, &arena, &problem),
                         0);
        int r = script_run_update(script, &SCRIPT_LIMITS_DEFAULT, &arena, &update, &problem);
        struct slice have = r == 0 ? update.source_after : problem.reason;
        if (!slice_equal(have, slice_from(table[i].expected)))
            fail_msg("%zu %s\n  gives    %.*s\n  expected %s", i, table[i].source, SLICE_ARG(have), table[i].expected);
        script_unref(script);
        arena_deinit(&arena);
    }
#undef JSON
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_by_query),
                                       cmocka_unit_test(test_map_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
