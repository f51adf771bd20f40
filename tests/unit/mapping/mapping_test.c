/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings: merging, rendering, types, field numbers, the catalog's form. The expected texts were
 * recorded from 7.10 and 5.6 servers.
 */
#include "mapping_lib.h"

#include <stdio.h>
#include <stdlib.h>

static const char base_body[] =
    "{\"properties\":{\"n\":{\"type\":\"long\"},\"t\":{\"type\":\"text\"},\"k\":{\"type\":\"keyword\"},"
    "\"o\":{\"properties\":{\"x\":{\"type\":\"long\"}}},\"d\":{\"type\":"
    "\"date\"}}}";

struct merge_row {
    const char *body;
    const char *of_7; /* NULL: taken; else "type: reason" */
    const char *of_5;
};

#define CANNOT "illegal_argument_exception: Mapper for ["
#define FROM_7 "] conflicts with existing mapper:\n\tCannot update parameter "
#define FROM_5 "] conflicts with existing mapping in other types:\n["
#define FOREIGN                                                                                               \
    "; this server does not search as that type does. An [object] with [\"enabled\": false] keeps anything, " \
    "unsearched"
#define P(definition) "{\"properties\":{" definition "}}"

static const struct merge_row merges[] = {
    {P("\"n\":{\"type\":\"text\"}"),
     "illegal_argument_exception: mapper [n] cannot be changed from type [long] to [text]",
     "illegal_argument_exception: mapper [n] of different type, current_type [long], merged_type [text]"},
    {P("\"n\":{\"type\":\"long\",\"index\":false}"), CANNOT "n" FROM_7 "[index] from [true] to [false]",
     CANNOT "n" FROM_5 "mapper [n] has different [index] values, mapper [n] has different [analyzer]]"},
    {P("\"n\":{\"type\":\"long\",\"store\":true,\"index\":false}"),
     CANNOT "n" FROM_7 "[index] from [true] to [false]\n\tCannot update parameter [store] from [false] to [true]",
     CANNOT "n" FROM_5 "mapper [n] has different [index] values, mapper [n] has different [store] values, "
            "mapper [n] has different [analyzer]]"},
    {P("\"n\":{\"type\":\"long\",\"coerce\":false}"), NULL, NULL},
    {P("\"n\":{\"type\":\"long\",\"null_value\":4}"), CANNOT "n" FROM_7 "[null_value] from [null] to [4]", NULL},
    {P("\"t\":{\"type\":\"text\",\"analyzer\":\"simple\"}"), CANNOT "t" FROM_7 "[analyzer] from [default] to [simple]",
     CANNOT "t" FROM_5 "mapper [t] has different [analyzer]]"},
    {P("\"t\":{\"type\":\"text\",\"search_analyzer\":\"simple\"}"), NULL,
     "mapper_parsing_exception: analyzer on field [t] must be set when search_analyzer is set"},
    {P("\"k\":{\"type\":\"keyword\",\"ignore_above\":3}"), NULL, NULL},
    {P("\"k\":{\"type\":\"keyword\",\"null_value\":\"x\"}"), CANNOT "k" FROM_7 "[null_value] from [null] to [x]", NULL},
    {P("\"k\":{\"type\":\"keyword\",\"fields\":{\"a\":{\"type\":\"text\"}}}"), NULL, NULL},
    {P("\"o\":{\"type\":\"long\"}"),
     "illegal_argument_exception: can't merge a non object mapping [o] with an object mapping",
     "illegal_argument_exception: Can't merge a non object mapping [o] with an object mapping [o]"},
    {P("\"n\":{\"properties\":{\"x\":{\"type\":\"long\"}}}"),
     "illegal_argument_exception: can't merge a non object mapping [n] with an object mapping",
     "illegal_argument_exception: mapper [n] of different type, current_type [long], merged_type "
     "[ObjectMapper]"},
    {P("\"n.x\":{\"type\":\"long\"}"),
     "illegal_argument_exception: can't merge a non object mapping [n] with an object mapping",
     "illegal_argument_exception: mapper [n] of different type, current_type [long], merged_type "
     "[ObjectMapper]"},
    {P("\"o\":{\"type\":\"nested\"}"),
     "mapper_parsing_exception: No handler for type [nested] declared on field [o]" FOREIGN,
     "mapper_parsing_exception: No handler for type [nested] declared on field [o]" FOREIGN},
    {P("\"g\":{\"type\":\"geo_point\"}"),
     "mapper_parsing_exception: No handler for type [geo_point] declared on field [g]" FOREIGN,
     "mapper_parsing_exception: No handler for type [geo_point] declared on field [g]" FOREIGN},
    {P("\"l\":{\"type\":\"flattened\"}"),
     "mapper_parsing_exception: No handler for type [flattened] declared on field [l]" FOREIGN,
     "mapper_parsing_exception: No handler for type [flattened] declared on field [l]" FOREIGN},
    {P("\"k\":{\"type\":\"keyword\",\"fields\":{\"v\":{\"type\":\"version\"}}}"),
     "mapper_parsing_exception: No handler for type [version] declared on field [v]" FOREIGN,
     "mapper_parsing_exception: No handler for type [version] declared on field [v]" FOREIGN},
    {P("\"o\":{\"enabled\":false}"),
     "mapper_exception: the [enabled] parameter can't be updated for the object mapping [o]", NULL},
    {P("\"d\":{\"type\":\"date\",\"format\":\"yyyy\"}"),
     CANNOT "d" FROM_7 "[format] from [strict_date_optional_time||epoch_millis] to [yyyy]",
     CANNOT "d" FROM_5 "mapper [d] has different [format] values]"},
    {P("\"q\":{\"type\":\"long\",\"foo\":1}"),
     "mapper_parsing_exception: unknown parameter [foo] on mapper [q] of type [long]",
     "mapper_parsing_exception: Mapping definition for [q] has unsupported parameters:  [foo : 1]"},
    {P("\"q\":{\"type\":\"keyword\",\"foo\":1,\"bar\":\"x\"}"),
     "mapper_parsing_exception: unknown parameter [foo] on mapper [q] of type [keyword]",
     "mapper_parsing_exception: Mapping definition for [q] has unsupported parameters:  [foo : 1] [bar : x]"},
    {P("\"q\":{\"type\":\"text\",\"analyzer\":\"nope\"}"),
     "illegal_argument_exception: analyzer [nope] has not been configured in mappings",
     "mapper_parsing_exception: analyzer [nope] not found for field [q]"},
    {P("\"q\":{\"type\":\"keyword\",\"normalizer\":\"nope\"}"),
     "mapper_parsing_exception: normalizer [nope] not found for field [q]",
     "mapper_parsing_exception: normalizer [nope] not found for field [q]"},
    {P("\"q\":{}"), "mapper_parsing_exception: No type specified for field [q]",
     "mapper_parsing_exception: No type specified for field [q]"},
    {P("\"q\":{\"type\":null}"), "mapper_parsing_exception: No type specified for field [q]",
     "mapper_parsing_exception: No type specified for field [q]"},
    {P("\"q\":{\"type\":\"bogus\"}"), "mapper_parsing_exception: No handler for type [bogus] declared on field [q]",
     "mapper_parsing_exception: No handler for type [bogus] declared on field [q]"},
    {P("\"q\":5"),
     "mapper_parsing_exception: Expected map for property [fields] on field [q] but got a class "
     "java.lang.String",
     "mapper_parsing_exception: Expected map for property [fields] on field [q] but got a class "
     "java.lang.String"},
    {P("\"q\":[]"), NULL, NULL},
    {P("\"\":{\"type\":\"long\"}"), "illegal_argument_exception: name cannot be empty string",
     "illegal_argument_exception: name cannot be empty string"},
    {"{\"properties\":[]}", NULL, NULL},
    {"{\"properties\":\"x\"}", "parse_exception: properties must be a map type",
     "parse_exception: properties must be a map type"},
    {"{\"foo\":1}", "mapper_parsing_exception: Root mapping definition has unsupported parameters:  [foo : 1]",
     "mapper_parsing_exception: Root mapping definition has unsupported parameters:  [foo : 1]"},
    {"{\"_foo\":{}}", "mapper_parsing_exception: Root mapping definition has unsupported parameters:  [_foo : {}]",
     "mapper_parsing_exception: Root mapping definition has unsupported parameters:  [_foo : {}]"},
    {"{\"_id\":{\"path\":\"x\"}}", "mapper_parsing_exception: _id is not configurable",
     "mapper_parsing_exception: _id is not configurable"},
    {"{\"_all\":{\"enabled\":false}}",
     "mapper_parsing_exception: Root mapping definition has unsupported parameters:  [_all : "
     "{enabled=false}]",
     NULL},
    {"{\"dynamic\":\"runtime\"}", "illegal_argument_exception: Could not convert [dynamic.dynamic] to boolean", NULL},
    {"{\"dynamic\":false}", NULL, NULL},
    {P("\"q\":{\"type\":\"scaled_float\"}"), "illegal_argument_exception: Field [scaling_factor] is required",
     "illegal_argument_exception: Field [q] misses required parameter [scaling_factor]"},
    {P("\"q\":{\"type\":\"scaled_float\",\"scaling_factor\":0}"),
     "illegal_argument_exception: [scaling_factor] must be a positive number, got [0.0]",
     "illegal_argument_exception: [scaling_factor] must be a positive number, got [0.0]"},
    {P("\"a.b.c\":{\"type\":\"long\"}"), NULL, NULL},
    {P("\"_id\":{\"type\":\"long\"}"), "mapper_parsing_exception: Field [_id] is defined more than once",
     "illegal_argument_exception: Field [_id] is defined twice in [t]"},
    {P("\"q\":{\"type\":\"string\"}"), "mapper_parsing_exception: No handler for type [string] declared on field [q]",
     NULL},
    {P("\"q\":{\"type\":\"date\",\"format\":\"bogus\"}"),
     "illegal_argument_exception: Error parsing [format] on field [q]: Invalid format: [bogus]: Unknown "
     "pattern letter: b",
     "illegal_argument_exception: Invalid format: [bogus]: Illegal pattern component: b"},
    {P("\"q\":{\"type\":\"long\",\"index\":\"maybe\"}"),
     "illegal_argument_exception: Failed to parse value [maybe] as only [true] or [false] are allowed.",
     "illegal_argument_exception: Can't parse [index] value [maybe] for field [q], expected [true] or "
     "[false]"},
    {P("\"q\":{\"type\":\"keyword\",\"ignore_above\":\"x\"}"), "number_format_exception: For input string: \"x\"",
     "number_format_exception: For input string: \"x\""},
    {P("\"q\":{\"type\":\"long\",\"null_value\":\"x\"}"), "number_format_exception: For input string: \"x\"",
     "number_format_exception: For input string: \"x\""},
    {P("\"q\":{\"type\":\"keyword\",\"fields\":{\"a\":{\"type\":\"object\"}}}"),
     "mapper_parsing_exception: Type [object] cannot be used in multi field",
     "mapper_parsing_exception: Type [object] cannot be used in multi field"},
    {P("\"q\":{\"type\":\"keyword\",\"fields\":[]}"), NULL, NULL},
    {"{\"_routing\":{\"required\":true}}",
     "illegal_argument_exception: Mapper for [_routing] conflicts with existing mapper:\n\tCannot update "
     "parameter [required] from [false] to [true]",
     NULL},
    {"{\"_source\":{\"enabled\":false}}",
     "illegal_argument_exception: Mapper for [_source] conflicts with existing mapper:\n\tCannot update "
     "parameter [enabled] from [true] to [false]",
     "illegal_argument_exception: Can't merge because of conflicts: [Cannot update enabled setting for "
     "[_source]]"},
    {"{\"_meta\":{\"a\":2}}", NULL, NULL},
    {"{\"dynamic_templates\":[{\"x\":{\"foo\":1}}]}",
     "illegal_argument_exception: Illegal dynamic template parameter: [foo]",
     "illegal_argument_exception: Illegal dynamic template parameter: [foo]"},
    {"{}", NULL, "mapper_parsing_exception: malformed mapping no root object found"},
    {"{\"t\":{\"properties\":{\"q\":{\"type\":\"long\"}}}}", NULL, NULL},
};

static void test_mapping_merge_reports_recorded_conflicts(void **state)
{
    (void)state;
    int wrong = 0;
    for (enum dialect dialect = 0; dialect < DIALECT_COUNT; dialect++) {
        struct arena arena = ARENA_INIT;
        struct mapping *mapping = make_mapping(&arena, NULL, "t", base_body, dialect);
        for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
            const char *expected = dialect == DIALECT_7 ? merges[i].of_7 : merges[i].of_5;
            struct mapping *merged;
            struct problem problem = {0};
            int r = mapping_merge(mapping, SLICE_LIT("t"), parse_json(&arena, merges[i].body), dialect, false,
                                  FIELDS_COUNTED_FIRST, &arena, &merged, &problem);
            char *actual = NULL;
            struct slice name = problem.name.len > 0 ? problem.name : slice_from(problem_name(problem.type));
            if (r == 0)
                mapping_unref(merged);
            else
                assert_true(asprintf(&actual, "%.*s: %.*s", SLICE_ARG(name), SLICE_ARG(problem.reason)) > 0);
            if ((actual == NULL) != (expected == NULL) || (actual != NULL && strcmp(actual, expected) != 0)) {
                print_error("%s\n  got      %s\n  expected %s\n", merges[i].body, actual, expected);
                wrong++;
            }
            free(actual);
        }
        mapping_unref(mapping);
        arena_deinit(&arena);
    }
    assert_int_equal(wrong, 0);
}

/* Goal: a body with all parameters is rendered as 7.10 did, except for the order of members. */
static void test_mapping_render_keeps_non_default_parameters(void **state)
{
    (void)state;
    static const char body[] =
        "{\"dynamic\":\"strict\",\"date_detection\":false,\"numeric_detection\":true,\"_routing\":{"
        "\"required\":true},\"_source\":{\"enabled\":true},"
        "\"_meta\":{\"x\":1},\"dynamic_date_formats\":[\"yyyy\"],\"dynamic_templates\":[{\"a\":{\"match\":"
        "\"a*\",\"mapping\":{\"type\":\"keyword\"}}}],"
        "\"properties\":{\"z_text\":{\"type\":\"text\",\"analyzer\":\"simple\",\"search_analyzer\":"
        "\"standard\",\"boost\":2,\"store\":true,"
        "\"index_options\":\"docs\",\"norms\":false,\"fields\":{\"raw\":{\"type\":\"keyword\",\"ignore_"
        "above\":10}},\"copy_to\":[\"k\"],\"fielddata\":true,"
        "\"similarity\":\"boolean\",\"term_vector\":\"yes\"},\"k\":{\"type\":\"keyword\",\"null_value\":"
        "\"N\",\"ignore_above\":5,\"doc_values\":false,\"index\":true,"
        "\"normalizer\":\"low\",\"eager_global_ordinals\":true,\"norms\":true},\"k2\":{\"type\":\"keyword\","
        "\"index\":false},\"l\":{\"type\":\"long\",\"coerce\":false,"
        "\"ignore_malformed\":true,\"null_value\":3,\"index\":false,\"store\":true,\"doc_values\":false},"
        "\"d\":{\"type\":\"date\",\"format\":\"yyyy-MM-dd\","
        "\"ignore_malformed\":true,\"null_value\":\"2020-01-01\",\"index\":false},\"sf\":{\"type\":\"scaled_"
        "float\",\"scaling_factor\":100,\"coerce\":false},"
        "\"b\":{\"type\":\"boolean\",\"null_value\":true},\"ip\":{\"type\":\"ip\",\"null_value\":\"1.2.3.4\"}"
        ",\"bin\":{\"type\":\"binary\",\"doc_values\":true},"
        "\"o\":{\"type\":\"object\",\"enabled\":false},\"o2\":{\"dynamic\":false,\"properties\":{\"x\":{"
        "\"type\":\"integer\"}}},\"o3\":{\"type\":\"object\"},"
        "\"ne\":{\"dynamic\":\"strict\",\"properties\":{\"y\":"
        "{\"type\":\"half_float\"}}}}}";
    static const char expected[] =
        "{\"dynamic\":\"strict\",\"_meta\":{\"x\":1},\"_routing\":{\"required\":true},\"dynamic_date_"
        "formats\":[\"yyyy\"],\"dynamic_templates\":[{\"a\":{\"match\":\"a*\","
        "\"mapping\":{\"type\":\"keyword\"}}}],\"date_detection\":false,\"numeric_detection\":true,"
        "\"properties\":{\"b\":{\"type\":\"boolean\",\"null_value\":true},"
        "\"bin\":{\"type\":\"binary\",\"doc_values\":true},\"d\":{\"type\":\"date\",\"index\":false,"
        "\"format\":\"yyyy-MM-dd\",\"null_value\":\"2020-01-01\","
        "\"ignore_malformed\":true},\"ip\":{\"type\":\"ip\",\"null_value\":"
        "\"1.2.3.4\"},"
        "\"k\":{\"type\":\"keyword\",\"doc_values\":false,\"null_value\":\"N\",\"eager_global_ordinals\":"
        "true,\"ignore_above\":5,\"norms\":true,\"normalizer\":\"low\"},"
        "\"k2\":{\"type\":\"keyword\",\"index\":false},\"l\":{\"type\":\"long\",\"index\":false,\"doc_"
        "values\":false,\"store\":true,\"ignore_malformed\":true,"
        "\"coerce\":false,\"null_value\":3},\"ne\":{"
        "\"dynamic\":\"strict\",\"properties\":{\"y\":{\"type\":\"half_float\"}}},"
        "\"o\":{\"type\":\"object\",\"enabled\":false},\"o2\":{\"dynamic\":\"false\",\"properties\":{\"x\":{"
        "\"type\":\"integer\"}}},\"o3\":{\"type\":\"object\"},"
        "\"sf\":{\"type\":\"scaled_float\",\"scaling_factor\":100.0,\"coerce\":false},\"z_text\":{\"type\":"
        "\"text\",\"boost\":2.0,\"store\":true,"
        "\"fields\":{\"raw\":{\"type\":\"keyword\",\"ignore_above\":10}},\"copy_to\":[\"k\"],\"index_"
        "options\":\"docs\",\"term_vector\":\"yes\",\"norms\":false,"
        "\"analyzer\":\"simple\",\"search_analyzer\":\"standard\",\"similarity\":\"boolean\",\"fielddata\":"
        "true}}}";
    struct arena arena = ARENA_INIT;
    struct mapping *empty, *mapping, *decoded;
    struct problem problem = {0};
    assert_int_equal(mapping_new(parse_json(&arena, "{\"index\":{\"analysis\":{\"normalizer\":{\"low\":{"
                                                    "\"type\":\"custom\",\"filter\":[\"lowercase\"]}}}}}"),
                                 DATE_RULES_7_10, &arena, &empty, &problem),
                     0);
    if (mapping_merge_all(empty, parse_json(&arena, body), DIALECT_7, false, FIELDS_COUNTED_FIRST, &arena, &mapping,
                          &problem) != 0)
        fail_msg("%.*s", SLICE_ARG(problem.reason));
    struct buf rendered = BUF_INIT(BUF_UNLIMITED);
    mapping_render(mapping, DIALECT_7, false, &rendered);
    assert_true(
        json_equal(parse_json(&arena, expected), parse_json(&arena, arena_copy(&arena, buf_as_slice(&rendered)).data)));

    struct buf first = BUF_INIT(BUF_UNLIMITED);
    struct buf second = BUF_INIT(BUF_UNLIMITED);
    mapping_encode(mapping, &first);
    assert_int_equal(mapping_decode(buf_as_slice(&first), &decoded), 0);
    mapping_encode(decoded, &second);
    assert_slice_equal(buf_as_slice(&second), arena_copy(&arena, buf_as_slice(&first)).data);
    assert_int_equal(mapping_field(decoded, SLICE_LIT("k"))->ignore_above, 5);
    assert_non_null(mapping_field(decoded, SLICE_LIT("k"))->analyzer);
    buf_deinit(&first);
    buf_deinit(&second);
    buf_deinit(&rendered);
    mapping_unref(empty);
    mapping_unref(mapping);
    mapping_unref(decoded);
    arena_deinit(&arena);
}

/* Goal: the number of a path is the same after any change, in all types, and after decoding. */
static void test_mapping_field_numbers_are_stable(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *mapping =
        make_mapping(&arena, NULL, "a", P("\"m\":{\"type\":\"long\"},\"z\":{\"type\":\"keyword\"}"), DIALECT_5);
    uint16_t m = mapping_field(mapping, SLICE_LIT("m"))->number;
    uint16_t z = mapping_field(mapping, SLICE_LIT("z"))->number;
    assert_true(m != z);
    index_document(&arena, &mapping, "{\"b\":\"x\",\"c\":1}", DIALECT_5);
    struct mapping *two, *decoded;
    struct problem problem = {0};
    assert_int_equal(mapping_merge(mapping, SLICE_LIT("b"),
                                   parse_json(&arena, P("\"z\":{\"type\":\"keyword\"},\"a0\":{\"type\":\"ip\"}")),
                                   DIALECT_5, false, FIELDS_COUNTED_FIRST, &arena, &two, &problem),
                     0);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    mapping_encode(two, &buf);
    assert_int_equal(mapping_decode(buf_as_slice(&buf), &decoded), 0);
    assert_int_equal(mapping_field(decoded, SLICE_LIT("m"))->number, m);
    assert_int_equal(mapping_field(decoded, SLICE_LIT("z"))->number, z);
    assert_int_equal(mapping_field_count(decoded), 6); /* m, z, b, b.keyword, c, a0 */
    for (uint16_t number = 0; number < mapping_field_count(decoded); number++)
        assert_slice_equal(mapping_field_by_number(decoded, number)->path,
                           arena_copy(&arena, mapping_field_by_number(two, number)->path).data);
    assert_int_equal(mapping_type(decoded, SLICE_LIT("b"))->number, 1);
    assert_null(mapping_type(decoded, SLICE_LIT("_doc")));
    /* The same path with another field type in another type of the index is refused. */
    struct mapping *refused;
    assert_int_equal(mapping_merge(two, SLICE_LIT("b"), parse_json(&arena, P("\"m\":{\"type\":\"ip\"}")), DIALECT_5,
                                   false, FIELDS_COUNTED_FIRST, &arena, &refused, &problem),
                     MAPPING_REFUSED);
    assert_slice_equal(problem.reason, "mapper [m] of different type, current_type [long], merged_type [ip]");
    buf_deinit(&buf);
    mapping_unref(decoded);
    mapping_unref(two);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

static void test_mapping_merge_without_change_returns_base(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *mapping = make_mapping(&arena, NULL, "_doc", base_body, DIALECT_7);
    struct mapping *same;
    struct problem problem = {0};
    assert_int_equal(mapping_merge(mapping, SLICE_NONE, parse_json(&arena, base_body), DIALECT_7, false,
                                   FIELDS_COUNTED_FIRST, &arena, &same, &problem),
                     0);
    assert_ptr_equal(same, mapping);
    mapping_unref(same);
    assert_int_equal(mapping_merge(mapping, SLICE_NONE, parse_json(&arena, "{\"_doc\":{\"properties\":{}}}"), DIALECT_7,
                                   false, FIELDS_COUNTED_FIRST, &arena, &same, &problem),
                     MAPPING_REFUSED);
    assert_slice_equal(problem.reason, "Types cannot be provided in put mapping requests, unless the "
                                       "include_type_name parameter is set to true.");
    mapping_unref(mapping);
    arena_deinit(&arena);
}

static bool is_complete(const struct mapping *mapping, const char *path)
{
    return field_has_entries(mapping_field(mapping, slice_from(path)));
}

/* Goal: a field is complete only if every document must have its entries; decoding keeps that. */
static void test_mapping_completeness_is_persistent(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *mapping = make_mapping(&arena, NULL, "_doc",
                                           P("\"a\":{\"type\":\"long\"},\"loose\":{\"dynamic\":false,"
                                             "\"properties\":{\"x\":{\"type\":\"long\"}}}"),
                                           DIALECT_7);
    assert_true(is_complete(mapping, "a"));
    assert_true(is_complete(mapping, "loose.x"));
    struct mapping *next, *decoded;
    struct problem problem = {0};
    assert_int_equal(
        mapping_merge(mapping, SLICE_NONE,
                      parse_json(&arena, P("\"a\":{\"type\":\"long\",\"fields\":{\"s\":{\"type\":\"keyword\"}}},\"b\":{"
                                           "\"type\":\"long\"},"
                                           "\"loose\":{\"dynamic\":true,\"properties\":{\"y\":{\"type\":\"long\"}}}")),
                      DIALECT_7, false, FIELDS_COUNTED_FIRST, &arena, &next, &problem),
        0);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    mapping_encode(next, &buf);
    assert_int_equal(mapping_decode(buf_as_slice(&buf), &decoded), 0);
    assert_true(is_complete(decoded, "a"));
    assert_false(is_complete(decoded, "a.s"));
    assert_true(is_complete(decoded, "b"));
    assert_false(is_complete(decoded, "loose.y"));
    index_document(&arena, &decoded, "{\"loose\":{\"z\":1},\"c\":1}", DIALECT_7);
    assert_false(is_complete(decoded, "loose.z"));
    assert_true(is_complete(decoded, "c"));
    buf_deinit(&buf);
    mapping_unref(decoded);
    mapping_unref(next);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

/*
 * Goal: existing documents have values of a target that their entries do not have, so it is
 * incomplete, with its multi-fields, even if documents add it later.
 */
static void test_mapping_copy_to_added_later_makes_targets_incomplete(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *mapping =
        make_mapping(&arena, NULL, "_doc",
                     P("\"a\":{\"type\":\"keyword\"},\"lost\":{\"type\":\"keyword\"},"
                       "\"all\":{\"type\":\"text\",\"fields\":{\"raw\":{\"type\":\"keyword\"}}},"
                       "\"allow\":{\"type\":\"keyword\"},\"b\":{\"type\":\"keyword\",\"copy_to\":\"lost\"}"),
                     DIALECT_7);
    struct mapping *next, *decoded;
    struct problem problem = {0};
    assert_true(is_complete(mapping, "lost"));
    assert_int_equal(mapping_merge(mapping, SLICE_NONE,
                                   parse_json(&arena, P("\"a\":{\"type\":\"keyword\",\"copy_to\":[\"all\",\"late\"]},"
                                                        "\"b\":{\"type\":\"keyword\"},"
                                                        "\"new\":{\"type\":\"keyword\",\"copy_to\":\"allow\"}")),
                                   DIALECT_7, false, FIELDS_COUNTED_FIRST, &arena, &next, &problem),
                     0);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    mapping_encode(next, &buf);
    assert_int_equal(mapping_decode(buf_as_slice(&buf), &decoded), 0);
    index_document(&arena, &decoded, "{\"a\":\"x\"}", DIALECT_7);
    assert_false(is_complete(decoded, "all"));
    assert_false(is_complete(decoded, "all.raw"));
    assert_false(is_complete(decoded, "lost"));
    assert_false(is_complete(decoded, "late"));
    assert_false(is_complete(decoded, "late.keyword"));
    assert_true(is_complete(decoded, "a"));
    assert_true(is_complete(decoded, "allow"));
    buf_deinit(&buf);
    mapping_unref(decoded);
    mapping_unref(next);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

/* Goal: the order of copy_to's targets says nothing of what existing documents have. */
static void test_mapping_copy_to_in_another_order_leaves_targets_complete(void **state)
{
    (void)state;
    static const struct {
        const char *copy_to;
        bool complete;
    } cases[] = {{"[\"b\",\"c\"]", true}, {"[\"c\",\"b\"]", true}, {"[\"b\",\"b\"]", false}, {"[\"c\"]", false}};
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    struct mapping *next;
    struct mapping *mapping = make_mapping(&arena, NULL, "_doc",
                                           P("\"a\":{\"type\":\"keyword\",\"copy_to\":[\"b\",\"c\"]},"
                                             "\"b\":{\"type\":\"keyword\"},\"c\":{\"type\":\"keyword\"}"),
                                           DIALECT_7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice text = arena_printf(&arena, P("\"a\":{\"type\":\"keyword\",\"copy_to\":%s}"), cases[i].copy_to);
        assert_int_equal(mapping_merge(mapping, SLICE_NONE, parse_json(&arena, text.data), DIALECT_7, false,
                                       FIELDS_COUNTED_FIRST, &arena, &next, &problem),
                         0);
        assert_int_equal(is_complete(next, "b") && is_complete(next, "c"), cases[i].complete);
        mapping_unref(next);
    }
    mapping_unref(mapping);
    arena_deinit(&arena);
}

static void test_mapping_refuses_beyond_limits(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    struct document document;
    struct mapping *mapping = make_mapping(&arena, NULL, "_doc", NULL, DIALECT_7);
    for (int count = 1000; count <= 1001; count++) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        for (int i = 0; i < count; i++)
            buf_printf(&text, "%s\"f%d\":1", i == 0 ? "{" : ",", i);
        buf_byte(&text, '}');
        int r = document_parse(mapping, mapping_type_at(mapping, 0), SLICE_LIT("1"), buf_as_slice(&text), DIALECT_7,
                               DOCUMENT_DATES_STRICT, FIELDS_COUNTED_FIRST, &arena, &document, &problem);
        assert_int_equal(r, count == 1000 ? 0 : DOCUMENT_REFUSED);
        if (r == 0)
            document_release(&document);
        buf_deinit(&text);
    }
    assert_slice_equal(problem.reason, "Limit of total fields [1000] has been exceeded");
    for (int depth = 19; depth <= 20; depth++) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        for (int i = 0; i < depth; i++)
            buf_lit(&text, "{\"o\":");
        buf_lit(&text, "{\"x\":1}");
        for (int i = 0; i < depth; i++)
            buf_byte(&text, '}');
        int r = document_parse(mapping, mapping_type_at(mapping, 0), SLICE_LIT("1"), buf_as_slice(&text), DIALECT_7,
                               DOCUMENT_DATES_STRICT, FIELDS_COUNTED_FIRST, &arena, &document, &problem);
        assert_int_equal(r, depth == 19 ? 0 : DOCUMENT_REFUSED);
        if (r == 0)
            document_release(&document);
        buf_deinit(&text);
    }
    assert_slice_equal(problem.reason, "Limit of mapping depth [20] has been exceeded due to object field "
                                       "[o.o.o.o.o.o.o.o.o.o.o.o.o.o.o.o.o.o.o.o]");
    mapping_unref(mapping);
    struct mapping *small =
        make_mapping(&arena, "{\"index.mapping.total_fields.limit\":\"2\"}", "_doc", NULL, DIALECT_7);
    assert_int_equal(document_parse(small, mapping_type_at(small, 0), SLICE_LIT("1"),
                                    SLICE_LIT("{\"a\":1,\"b\":2,\"c\":3}"), DIALECT_7, DOCUMENT_DATES_STRICT,
                                    FIELDS_COUNTED_FIRST, &arena, &document, &problem),
                     DOCUMENT_REFUSED);
    assert_slice_equal(problem.reason, "Limit of total fields [2] has been exceeded");
    mapping_unref(small);
    arena_deinit(&arena);
}

/* Goal: mappings of PUT /{index} are accepted with and without types; errors are wrapped. */
static void test_mapping_merge_all_accepts_typed_and_typeless_form(void **state)
{
    (void)state;
    static const struct {
        const char *mappings;
        const char *outcome; /* rendered with types, or the reason of the error */
    } rows[] = {
        {"{\"properties\":{\"a\":{\"type\":\"long\"}}}", "{\"_doc\":{\"properties\":{\"a\":{\"type\":\"long\"}}}}"},
        {"{\"lock\":{\"properties\":{\"a\":{\"type\":\"string\",\"index\":\"not_analyzed\"}}}}",
         "{\"lock\":{\"properties\":{\"a\":{\"type\":\"keyword\"}}}}"},
        {"{\"a\":{},\"b\":{\"enabled\":false}}", "{\"a\":{},\"b\":{\"enabled\":false}}"},
        {"{}", "{}"},
        {"{\"_doc\":{\"properties\":{}}}", "The mapping definition cannot be nested under a type [_doc] "
                                           "unless include_type_name is set to true."},
        {"{\"properties\":{\"x\":{\"type\":\"bogus\"}}}",
         "Failed to parse mapping [_doc]: No handler for type [bogus] declared on field [x]"},
        {"{\"doc\":{\"properties\":{\"x\":{\"type\":\"bogus\"}}}}",
         "Failed to parse mapping [doc]: No handler for type [bogus] declared on field [x]"},
        {"{\"_x\":{\"properties\":{}}}", "Failed to parse mapping [_doc]: Root mapping definition has "
                                         "unsupported parameters:  [_x : {properties={}}]"},
    };
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    struct mapping *empty, *mapping;
    assert_int_equal(mapping_new(NULL, DATE_RULES_7_10, &arena, &empty, &problem), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (mapping_merge_all(empty, parse_json(&arena, rows[i].mappings), DIALECT_7, false, FIELDS_COUNTED_FIRST,
                              &arena, &mapping, &problem) != 0) {
            assert_slice_equal(problem.reason, rows[i].outcome);
            continue;
        }
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        mapping_render(mapping, DIALECT_7, true, &buf);
        assert_slice_equal(buf_as_slice(&buf), rows[i].outcome);
        buf_deinit(&buf);
        mapping_unref(mapping);
    }
    mapping_unref(empty);
    arena_deinit(&arena);
}

static void test_mapping_refuses_invalid_type_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *of_5;
    } rows[] = {
        {"_x", "Document mapping type name can't start with '_', found: [_x]"},
        {".a", "mapping type name [.a] must not start with a '.'"},
        {"a#b", "mapping type name [a#b] should not include '#' in it"},
        {"a,b", "mapping type name [a,b] should not include ',' in it"},
        {"a b", NULL},
    };
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    struct mapping *empty, *mapping;
    assert_int_equal(mapping_new(NULL, DATE_RULES_7_10, &arena, &empty, &problem), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (mapping_ensure_type(empty, slice_from(rows[i].name), false, DIALECT_5, &arena, &mapping, &problem) == 0) {
            assert_null(rows[i].of_5);
            mapping_unref(mapping);
        } else {
            assert_slice_equal(problem.reason, rows[i].of_5);
        }
    }
    mapping_unref(empty);
    arena_deinit(&arena);
}

/* Goal: the path field does not change once it is chosen. */
static void test_mapping_path_field_never_changes(void **state)
{
    (void)state;
    static const char settings[] =
        "{\"analysis\":{\"analyzer\":{\"paths\":{\"type\":\"custom\",\"tokenizer\":\"colons\"}},"
        "\"tokenizer\":{\"colons\":{\"type\":\"path_hierarchy\",\"delimiter\":\":\"}}}}";
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    struct mapping *mapping = make_mapping(
        &arena, settings, "file",
        P("\"p\":{\"type\":\"text\",\"fields\":{\"tree\":{\"type\":\"text\",\"analyzer\":\"paths\"}}}"), DIALECT_5);
    assert_slice_equal(mapping_path_field(mapping)->path, "p");
    assert_int_equal(mapping_path_delimiter(mapping), ':');
    struct mapping *next;
    assert_int_equal(mapping_merge(mapping, SLICE_LIT("file"), parse_json(&arena, P("\"a\":{\"type\":\"path\"}")),
                                   DIALECT_5, false, FIELDS_COUNTED_FIRST, &arena, &next, &problem),
                     0);
    assert_slice_equal(mapping_path_field(next)->path, "p");
    assert_false(mapping_field(next, SLICE_LIT("a"))->in_tree);
    mapping_unref(next);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

static void test_mapping_decode_refuses_corrupt_bytes(void **state)
{
    (void)state;
    static const char *const records[] = {
        "",
        "{",
        "[]",
        "{\"types\":[{\"name\":1}]}",
        "{\"types\":[{\"name\":\"a\",\"mapping\":{\"properties\":{\"x\":{\"type\":\"y\"}}}}]}",
        "{\"fields\":[1]}",
        "{\"settings\":{\"analysis\":{\"analyzer\":{\"a\":{}}}}}"};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        struct mapping *mapping = NULL;
        int r = mapping_decode(slice_from(records[i]), &mapping);
        if (r != TL_ERR_CORRUPT && i != 2)
            fail_msg("%s: %d", records[i], r);
        if (r == 0)
            mapping_unref(mapping);
    }
}

/* Returns: {"properties": {…}} with `count` fields, the last one of a type that does not exist. */
static struct slice many_properties(struct arena *arena, size_t count)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&text, "{\"properties\":{");
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "\"p%zu\":{\"type\":\"%s\"},", i, i % 2 == 0 ? "long" : "object");
    buf_lit(&text, "\"last\":{\"type\":\"none\"}}}");
    struct slice copy = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    return copy;
}

/* The work of a client's mapping is bounded by the limit of fields, not by its length. */
static void test_properties_beyond_the_limit_are_not_added(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *empty = NULL, *mapping = NULL;
    struct problem problem;
    struct json_doc body;
    assert_int_equal(mapping_new(NULL, DATE_RULES_7_10, &arena, &empty, &problem), 0);
    assert_int_equal(json_parse_stored(&arena, many_properties(&arena, MAPPING_TOTAL_FIELDS_MAX + 1), &body), 0);
    for (int counted = 0; counted < 2; counted++) {
        enum field_counting counting = counted ? FIELDS_COUNTED_FIRST : FIELDS_COUNTED_LAST;
        const char *reason = counted ? "Limit of total fields [1000] has been exceeded"
                                     : "No handler for type [none] declared on field [last]";
        assert_int_equal(
            mapping_merge(empty, SLICE_NONE, body.root, DIALECT_7, false, counting, &arena, &mapping, &problem),
            MAPPING_REFUSED);
        assert_slice_equal(problem.reason, reason);
        assert_int_equal(mapping_merge_all(empty, body.root, DIALECT_7, false, counting, &arena, &mapping, &problem),
                         MAPPING_REFUSED);
        assert_int_equal(problem.caused_by == NULL, counted); /* as the limit is refused where all fit */
    }
    mapping_unref(empty);
    arena_deinit(&arena);
}

/* Settings have both sections of which mappings read. */
static void test_settings_with_analyzers_have_limits(void **state)
{
    static const char *const forms[] = {
        "{\"index.analysis.analyzer.a.type\":\"stop\",\"index.mapping.total_fields.limit\":\"20\"}",
        "{\"index\":{\"analysis\":{\"analyzer\":{\"a\":{\"type\":\"stop\"}}},\"mapping\":{\"total_fields\":{\"limit\":"
        "20}}}}",
        "{\"mapping.total_fields.limit\":20,\"analysis\":{\"analyzer\":{\"a\":{\"type\":\"stop\"}}}}",
    };
    struct arena arena = ARENA_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct mapping *mapping;
        struct problem problem = {0};
        assert_int_equal(mapping_new(parse_json(&arena, forms[i]), DATE_RULES_7_10, &arena, &mapping, &problem), 0);
        assert_int_equal(mapping_fields_max(mapping), 20);
        assert_non_null(mapping_analyzer(mapping, SLICE_LIT("a")));
        mapping_unref(mapping);
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_with_analyzers_have_limits),
        cmocka_unit_test(test_mapping_merge_reports_recorded_conflicts),
        cmocka_unit_test(test_mapping_render_keeps_non_default_parameters),
        cmocka_unit_test(test_mapping_field_numbers_are_stable),
        cmocka_unit_test(test_mapping_merge_without_change_returns_base),
        cmocka_unit_test(test_mapping_completeness_is_persistent),
        cmocka_unit_test(test_mapping_copy_to_added_later_makes_targets_incomplete),
        cmocka_unit_test(test_mapping_copy_to_in_another_order_leaves_targets_complete),
        cmocka_unit_test(test_mapping_refuses_beyond_limits),
        cmocka_unit_test(test_mapping_merge_all_accepts_typed_and_typeless_form),
        cmocka_unit_test(test_mapping_refuses_invalid_type_names),
        cmocka_unit_test(test_mapping_path_field_never_changes),
        cmocka_unit_test(test_mapping_decode_refuses_corrupt_bytes),
        cmocka_unit_test(test_properties_beyond_the_limit_are_not_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
