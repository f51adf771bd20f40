/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents: extracted values, dynamic mapping, and errors. The expected texts were recorded from
 * 7.10 and 5.6 servers.
 */
#include "../../lib/unit.h"

#include "base/buf.h"
#include "mapping/analysis.h"
#include "mapping/document.h"
#include "mapping_lib.h"

#include <stdio.h>
#include <stdlib.h>

static const char all_types[] = "{\"properties\":{\"n\":{\"type\":\"long\"},\"i\":{\"type\":\"integer\"},"
                                "\"s\":{\"type\":\"short\"},\"by\":{\"type\":\"byte\"},"
                                "\"db\":{\"type\":\"double\"},\"fl\":{\"type\":\"float\"},\"hf\":{\"type\":"
                                "\"half_float\"},\"sf\":{\"type\":\"scaled_float\",\"scaling_factor\":100},"
                                "\"d\":{\"type\":\"date\"},\"d2\":{\"type\":\"date\",\"format\":\"yyyy-MM-"
                                "dd\"},\"b\":{\"type\":\"boolean\"},\"ip\":{\"type\":\"ip\"},"
                                "\"bin\":{\"type\":\"binary\"},\"t\":{\"type\":\"text\"},\"k\":{\"type\":"
                                "\"keyword\"},\"o\":{\"properties\":{\"x\":{\"type\":\"long\"}}},"
                                "\"nc\":{\"type\":\"long\",\"coerce\":false},"
                                "\"st\":{\"dynamic\":\"strict\",\"properties\":{}},\"df\":{\"dynamic\":"
                                "\"false\",\"properties\":{}}}}";

/*
 * Appends "type: reason || type of the cause: reason || …", without the source in Jackson's
 * positions.
 */
static void describe_problem(struct buf *out, const struct problem *problem)
{
    for (; problem != NULL; problem = problem->caused_by) {
        struct slice name = problem->name.len > 0 ? problem->name : slice_from(problem_name(problem->type));
        const char *source =
            problem->reason.len == 0 ? NULL : memmem(problem->reason.data, problem->reason.len, "[Source: ", 9);
        if (source == NULL) {
            buf_printf(out, "%.*s: %.*s || ", SLICE_ARG(name), SLICE_ARG(problem->reason));
            continue;
        }
        const char *line = memmem(source, (size_t)(problem->reason.data + problem->reason.len - source), "line: ", 6);
        buf_printf(out, "%.*s: %.*s@%.*s || ", SLICE_ARG(name), (int)(source - problem->reason.data),
                   problem->reason.data, (int)(problem->reason.data + problem->reason.len - line), line);
    }
}

struct refusal {
    const char *document;
    const char *of_7; /* NULL: accepted */
    const char *of_5;
};

#define FIELD_7(field, type, shown)                                              \
    "mapper_parsing_exception: failed to parse field [" field "] of type [" type \
    "] in document with id '1'. Preview of field's value: '" shown "' || "
#define FIELD_5(field) "mapper_parsing_exception: failed to parse [" field "] || "
#define DATE_7(text)                                                                                         \
    FIELD_7("d", "date", text)                                                                               \
    "illegal_argument_exception: failed to parse date field [" text                                          \
    "] with format [strict_date_optional_time||epoch_millis] || date_time_parse_exception: Failed to parse " \
    "with all enclosed parsers || "
#define NOT_NUMERIC(token, column)                \
    "json_parse_exception: Current token (" token \
    ") not numeric, can not use numeric value accessors\n at @line: 1, column: " column "] || "
#define NO_TEXT(column) "illegal_state_exception: Can't get text on a START_OBJECT at 1:" column " || "
#define CONCRETE(object, field)                                                              \
    "mapper_parsing_exception: object mapping for [" object "] tried to parse field [" field \
    "] as object, but found a concrete value || "
#define STRICT(field, object)                                                                                      \
    "strict_dynamic_mapping_exception: mapping set to strict, dynamic introduction of [" field "] within [" object \
    "] is not allowed || "
#define LONG_RANGE " out of range of long (-9223372036854775808 - 9223372036854775807)\n at @line: 1, column: "
#define BAD_NAME                                                                                         \
    "mapper_parsing_exception: failed to parse || illegal_argument_exception: object field starting or " \
    "ending with a [.] makes object resolution ambiguous: "

static const struct refusal refusals[] = {
    {"{\"n\":1.5}", NULL, NULL},
    {"{\"n\":\"1.5\"}", NULL, NULL},
    {"{\"n\":\"\"}", NULL, NULL},
    {"{\"n\":true}", FIELD_7("n", "long", "true") NOT_NUMERIC("VALUE_TRUE", "10"),
     FIELD_5("n") NOT_NUMERIC("VALUE_TRUE", "10")},
    {"{\"n\":\"true\"}", FIELD_7("n", "long", "true") "illegal_argument_exception: For input string: \"true\" || ",
     FIELD_5("n") "number_format_exception: For input string: \"true\" || "},
    {"{\"n\":1e3}", NULL, NULL},
    {"{\"n\":1e30}",
     FIELD_7("n", "long", "1.0E30") "input_coercion_exception: Numeric value (1e30)" LONG_RANGE "10] || ",
     FIELD_5("n") "json_parse_exception: Numeric value (1e30)" LONG_RANGE "10] || "},
    {"{\"n\": 99999999999999999999}",
     FIELD_7("n", "long",
             "99999999999999999999") "input_coercion_exception: Numeric value (99999999999999999999)" LONG_RANGE
                                     "27] || ",
     FIELD_5("n") "json_parse_exception: Numeric value (99999999999999999999)" LONG_RANGE "27] || "},
    {"{\"n\":\"99999999999999999999\"}",
     FIELD_7("n", "long", "99999999999999999999") "illegal_argument_exception: Value [99999999999999999999] "
                                                  "is out of range for a long || ",
     NULL},
    {"{\"n\":\"1e3\"}", NULL, NULL},
    {"{\"n\":\" 12\"}", FIELD_7("n", "long", " 12") "illegal_argument_exception: For input string: \" 12\" || ", NULL},
    {"{\"n\":\"0x10\"}", FIELD_7("n", "long", "0x10") "illegal_argument_exception: For input string: \"0x10\" || ",
     FIELD_5("n") "number_format_exception: For input string: \"0x10\" || "},
    {"{\"by\":\"300\"}",
     FIELD_7("by", "byte", "300") "illegal_argument_exception: Value [300] is out of range for a byte || ",
     FIELD_5("by") "illegal_argument_exception: Value [300] is out of range for a byte || "},
    {"{\"n\":[null]}", NULL, NULL},
    {"{\"n\":[1,2,[3,[4]]]}", NULL, NULL},
    {"{\"nc\":1.5}",
     FIELD_7("nc", "long", "1.5") "illegal_argument_exception: 1.5 cannot be converted to Long without data loss || ",
     FIELD_5("nc") "illegal_argument_exception: 1.5 cannot be converted to Long without data loss || "},
    {"{\"nc\":\"12\"}", FIELD_7("nc", "long", "12") "illegal_argument_exception: Long value passed as String || ",
     FIELD_5("nc") "illegal_argument_exception: Long value passed as String || "},
    {"{\"nc\":12.0}", NULL, NULL},
    {"{\"i\":3000000000}",
     FIELD_7("i", "integer", "3000000000") "input_coercion_exception: Numeric value (3000000000) out of range of int "
                                           "(-2147483648 - 2147483647)\n at @line: 1, column: 16] || ",
     FIELD_5("i") "json_parse_exception: Numeric value (3000000000) out of range of int\n at @line: 1, "
                  "column: 16] || "},
    {"{\"i\":\"3000000000\"}",
     FIELD_7("i", "integer",
             "3000000000") "illegal_argument_exception: Value [3000000000] is out of range for an integer || ",
     NULL},
    {"{\"s\":40000}",
     FIELD_7("s", "short", "40000") "json_parse_exception: Numeric value (40000) out of range of Java "
                                    "short\n at @line: 1, column: 11] || ",
     FIELD_5("s") "json_parse_exception: Numeric value (40000) out of range of Java short\n at @line: 1, "
                  "column: 11] || "},
    {"{\"by\":128}",
     FIELD_7("by", "byte", "128") "illegal_argument_exception: Value [128] is out of range for a byte || ",
     FIELD_5("by") "illegal_argument_exception: Value [128] is out of range for a byte || "},
    {"{\"fl\":1e39}",
     FIELD_7("fl", "float",
             "1.0E39") "illegal_argument_exception: [float] supports only finite values, but got [Infinity] || ",
     NULL},
    {"{\"i\":\"abc\"}", FIELD_7("i", "integer", "abc") "number_format_exception: For input string: \"abc\" || ",
     FIELD_5("i") "number_format_exception: For input string: \"abc\" || "},
    {"{\"s\":[1,\"1e\"]}", FIELD_7("s", "short", "1e") "number_format_exception: For input string: \"1e\" || ",
     FIELD_5("s") "number_format_exception: For input string: \"1e\" || "},
    {"{\"by\":\"0x10\"}", FIELD_7("by", "byte", "0x10") "number_format_exception: For input string: \"0x10\" || ",
     FIELD_5("by") "number_format_exception: For input string: \"0x10\" || "},
    {"{\"fl\":\"abc\"}", FIELD_7("fl", "float", "abc") "number_format_exception: For input string: \"abc\" || ",
     FIELD_5("fl") "number_format_exception: For input string: \"abc\" || "},
    {"{\"db\":\"NaN\"}",
     FIELD_7("db", "double",
             "NaN") "illegal_argument_exception: [double] supports only finite values, but got [NaN] || ",
     NULL},
    {"{\"db\":1e400}",
     FIELD_7("db", "double", "Infinity") "illegal_argument_exception: [double] supports only finite values, "
                                         "but got [Infinity] || ",
     NULL},
    {"{\"hf\":70000}",
     FIELD_7("hf", "half_float", "70000") "illegal_argument_exception: [half_float] supports only finite "
                                          "values, but got [70000.0] || ",
     NULL},
    {"{\"sf\":1e400}",
     FIELD_7("sf", "scaled_float", "Infinity") "illegal_argument_exception: [scaled_float] only supports "
                                               "finite values, but got [Infinity] || ",
     FIELD_5("sf") "illegal_argument_exception: [scaled_float] only supports finite values, but got "
                   "[Infinity] || "},
    {"{\"d\":\"x\"}", DATE_7("x"), FIELD_5("d") "illegal_argument_exception: Invalid format: \"x\" || "},
    {"{\"d\":\"2020-13-01\"}", DATE_7("2020-13-01"),
     FIELD_5("d") "illegal_field_value_exception: Cannot parse \"2020-13-01\": Value 13 for monthOfYear must "
                  "be in the range [1,12] || "},
    {"{\"d\":\"2020-02-30\"}", DATE_7("2020-02-30"),
     FIELD_5("d") "illegal_field_value_exception: Cannot parse \"2020-02-30\": Value 30 for dayOfMonth must "
                  "be in the range [1,29] || "},
    {"{\"d\":true}", DATE_7("true"), FIELD_5("d") "illegal_argument_exception: Invalid format: \"true\" || "},
    {"{\"d\":123}", NULL, NULL},
    {"{\"d\":\"\"}", FIELD_7("d", "date", "") "illegal_argument_exception: cannot parse empty date || ",
     FIELD_5("d") "illegal_argument_exception: Invalid format: \"\" || "},
    {"{\"d\":\"2020-1-1\"}", DATE_7("2020-1-1"),
     FIELD_5("d") "illegal_argument_exception: Invalid format: \"2020-1-1\" is malformed at \"-1-1\" || "},
    {"{\"d\":{\"a\":1}}", FIELD_7("d", "date", "{a=1}") NO_TEXT("6"), FIELD_5("d") NO_TEXT("6")},
    {"{\"d2\":\"2020-01-01T00:00:00\"}",
     FIELD_7("d2", "date", "2020-01-01T00:00:00") "illegal_argument_exception: failed to parse date field "
                                                  "[2020-01-01T00:00:00] with format [yyyy-MM-dd] || "
                                                  "date_time_parse_exception: Text '2020-01-01T00:00:00' "
                                                  "could not be parsed, unparsed text found at index 10 || ",
     FIELD_5("d2") "illegal_argument_exception: Invalid format: \"2020-01-01T00:00:00\" is malformed at "
                   "\"T00:00:00\" || "},
    {"{\"d2\":5}",
     FIELD_7("d2", "date",
             "5") "illegal_argument_exception: failed to parse date field [5] with format [yyyy-MM-dd] || "
                  "date_time_parse_exception: Text '5' could not be parsed at index 0 || ",
     FIELD_5("d2") "illegal_argument_exception: Invalid format: \"5\" is too short || "},
    {"{\"b\":\"maybe\"}",
     FIELD_7("b", "boolean", "maybe") "illegal_argument_exception: Failed to parse value [maybe] as only "
                                      "[true] or [false] are allowed. || ",
     NULL},
    {"{\"b\":1}",
     FIELD_7("b", "boolean", "1") "json_parse_exception: Current token (VALUE_NUMBER_INT) not of boolean "
                                  "type\n at @line: 1, column: 7] || ",
     NULL},
    {"{\"b\":\"\"}", NULL, NULL},
    {"{\"ip\":\"x\"}", FIELD_7("ip", "ip", "x") "illegal_argument_exception: 'x' is not an IP string literal. || ",
     FIELD_5("ip") "illegal_argument_exception: 'x' is not an IP string literal. || "},
    {"{\"ip\":5}", FIELD_7("ip", "ip", "5") "illegal_argument_exception: '5' is not an IP string literal. || ",
     FIELD_5("ip") "illegal_argument_exception: '5' is not an IP string literal. || "},
    {"{\"ip\":\"::1\"}", NULL, NULL},
    {"{\"bin\":\"!!\"}", NULL, NULL},
    {"{\"k\":[[\"a\"],{\"b\":[1,2]}]}", FIELD_7("k", "keyword", "{b=[1, 2]}") NO_TEXT("13"),
     FIELD_5("k") NO_TEXT("13")},
    {"{\"k\":true}", NULL, NULL},
    {"{\"t\": {\"x\": 1}}", FIELD_7("t", "text", "{x=1}") NO_TEXT("7"), FIELD_5("t") NO_TEXT("7")},
    {"{\"o\":[1]}", CONCRETE("o", "null"), CONCRETE("o", "null")},
    {"{\"o\":\"x\"}", CONCRETE("o", "o"), CONCRETE("o", "o")},
    {"{\"o\":[null,{\"x\":1}]}", NULL, NULL},
    {"{\"o\":[[{\"x\":1}]]}", NULL, NULL},
    {"{\"o.x\":\"q\"}", FIELD_7("o.x", "long", "q") "illegal_argument_exception: For input string: \"q\" || ",
     FIELD_5("o.x") "number_format_exception: For input string: \"q\" || "},
    {"{\"o.x\":5}", NULL, NULL},
    {"{\"st\":{\"a\":1}}", STRICT("a", "st"), STRICT("a", "st")},
    {"{\"st\":{\"a\":null}}", STRICT("a", "st"), STRICT("a", "st")},
    {"{\"st\":{\"a\":[]}}", STRICT("a", "st"), STRICT("a", "st")},
    {"{\"st.a\":1}", STRICT("a", "st"), STRICT("a", "st")},
    {"{\"df\":{\"a\":1,\"b\":{\"c\":[1]}}}", NULL, NULL},
    {"{\"n.x\":1}",
     "mapper_parsing_exception: Could not dynamically add mapping for field [n.x]. Existing mapping for [n] "
     "must be of type object but found [long]. || ",
     "mapper_parsing_exception: Could not dynamically add mapping for field [n.x]. Existing mapping for [n] "
     "must be of type object but found [long]. || "},
    {"{\"n\":{\"x\":1}}", FIELD_7("n", "long", "{x=1}") NOT_NUMERIC("START_OBJECT", "7"),
     FIELD_5("n") NOT_NUMERIC("START_OBJECT", "7")},
    {"{\"n\":[{\"x\":1}]}", FIELD_7("n", "long", "{x=1}") NOT_NUMERIC("START_OBJECT", "8"),
     FIELD_5("n") NOT_NUMERIC("START_OBJECT", "8")},
    {"{\"\":1}",
     "mapper_parsing_exception: failed to parse || illegal_argument_exception: field name cannot be an empty "
     "string || ",
     BAD_NAME "[] || "},
    {"{\"a..b\":1}", BAD_NAME "[a..b] || ", BAD_NAME "[a..b] || "},
    {"{\".a\":1}", BAD_NAME "[.a] || ", BAD_NAME "[.a] || "},
    {"{\"a.\":1}", NULL, NULL},
    {"{\"  \":1}", NULL, BAD_NAME "[  ] || "},
    {"{\"new\":{\"a b\":1}}", NULL, NULL},
    {"{\"_id\":\"x\"}",
     FIELD_7("_id", "_id", "x") "mapper_parsing_exception: Field [_id] is a metadata field and cannot be "
                                "added inside a document. Use the index API request parameters. || ",
     "mapper_parsing_exception: Field [_id] is a metadata field and cannot be added inside a document. Use "
     "the index API request parameters. || "},
    {"{\"_source\":\"x\"}",
     FIELD_7("_source", "_source",
             "x") "mapper_parsing_exception: Field [_source] is a metadata field and cannot be added inside "
                  "a document. Use the index API request parameters. || ",
     "illegal_argument_exception: Field [_source] is defined twice in [t] || "},
    {"{\"_ttl\":\"x\"}", NULL,
     "mapper_parsing_exception: Field [_ttl] is a metadata field and cannot be added inside a document. Use "
     "the index API request parameters. || "},
    {"{\"_version\":1}",
     FIELD_7("_version", "_version",
             "1") "mapper_parsing_exception: Field [_version] is a metadata field and cannot be added inside "
                  "a document. Use the index API request parameters. || ",
     "mapper_parsing_exception: Cannot generate dynamic mappings of type [_version] for [_version] || "},
    {"{\"a\":{\"_id\":\"x\"}}", NULL, NULL},
    {"[1]",
     "mapper_parsing_exception: failed to parse || not_x_content_exception: Compressor detection can only be "
     "called on some xcontent bytes or compressed xcontent bytes || ",
     "mapper_parsing_exception: failed to parse || not_x_content_exception: Compressor detection can only be "
     "called on some xcontent bytes or compressed xcontent bytes || "},
    /* conflicts between fields that one document would add */
    {"{\"x\":1,\"y\":{\"c\":[1,2,{\"d\":null}]}}",
     "illegal_argument_exception: can't merge a non object mapping [y.c] with an object mapping || ",
     "illegal_argument_exception: Can't merge a non object mapping [y.c] with an object mapping [y.c] || "},
    {"{\"x\":[1,\"x\"]}", "illegal_argument_exception: mapper [x] cannot be changed from type [long] to [text] || ",
     "illegal_argument_exception: mapper [x] of different type, current_type [long], merged_type [text] || "},
    {"{\"x\":[\"x\",1]}", "illegal_argument_exception: mapper [x] cannot be changed from type [text] to [long] || ",
     "illegal_argument_exception: mapper [x] of different type, current_type [text], merged_type [long] || "},
    {"{\"x\":[\"2020-01-01\",\"x\"]}",
     "illegal_argument_exception: mapper [x] cannot be changed from type [date] to [text] || ",
     "illegal_argument_exception: mapper [x] of different type, current_type [date], merged_type [text] || "},
    {"{\"x\":[1,1.5]}", "illegal_argument_exception: mapper [x] cannot be changed from type [long] to [float] || ",
     NULL},
    {"{\"x\":[true,\"x\"]}",
     "illegal_argument_exception: mapper [x] cannot be changed from type [boolean] to [text] || ",
     "illegal_argument_exception: mapper [x] of different type, current_type [boolean], merged_type [text] "
     "|| "},
    {"{\"x.b\":1,\"x\":5}",
     "illegal_argument_exception: can't merge a non object mapping [x] with an object mapping || ",
     "illegal_argument_exception: Can't merge a non object mapping [x] with an object mapping [x] || "},
    {"{\"x\":1,\"x.b\":1}",
     "illegal_argument_exception: can't merge a non object mapping [x] with an object mapping || ",
     "illegal_argument_exception: mapper [x] of different type, current_type [long], merged_type "
     "[ObjectMapper] || "},
};

static void test_document_refuses_as_recorded(void **state)
{
    (void)state;
    int wrong = 0;
    for (enum dialect dialect = 0; dialect < DIALECT_COUNT; dialect++) {
        struct arena arena = ARENA_INIT;
        struct mapping *mapping = make_mapping(&arena, NULL, "t", all_types, DIALECT_5);
        for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
            const char *expected = dialect == DIALECT_7 ? refusals[i].of_7 : refusals[i].of_5;
            struct document document = {0};
            struct problem problem = {0};
            int r = document_parse(mapping, mapping_type(mapping, SLICE_LIT("t")), SLICE_LIT("1"),
                                   slice_from(refusals[i].document), dialect, DOCUMENT_DATES_STRICT,
                                   FIELDS_COUNTED_FIRST, &arena, &document, &problem);
            struct buf actual = BUF_INIT(BUF_UNLIMITED);
            if (r != 0)
                describe_problem(&actual, &problem);
            else
                document_release(&document);
            if (!slice_is(buf_as_slice(&actual), expected == NULL ? "" : expected)) {
                print_error("%s\n  got      %.*s\n  expected %s\n", refusals[i].document,
                            SLICE_ARG(buf_as_slice(&actual)), expected);
                wrong++;
            }
            buf_deinit(&actual);
        }
        mapping_unref(mapping);
        arena_deinit(&arena);
    }
    assert_int_equal(wrong, 0);
}

/* Goal: dynamic mapping of one document gives the mappings recorded from both servers. */
static void test_dynamic_mapping_equals_recorded(void **state)
{
    (void)state;
    static const char document[] =
        "{\"a\":1,\"b\":1.5,\"c\":\"x\",\"d\":\"2020-01-01\",\"d2\":\"2020/01/01\",\"d3\":\"2020/01/01 "
        "10:00:00\",\"d4\":\"2020-01-01T10:00\",\"d5\":\"2020\","
        "\"d6\":\"2020-01\",\"d7\":\"20200101\",\"e\":true,\"f\":null,\"g\":[],\"h\":{},\"i\":[null,1],\"j\":"
        "[[1]],\"n\":\"12\",\"o\":{\"p\":{\"q\":1}},"
        "\"u.v\":1,\"w\":{\"x.y\":2},\"z\":\"true\",\"ac\":{\"ad\":null},\"af\":\"2020-W01\",\"ag\":\"2020-"
        "001\",\"ah\":\"12:00\",\"ai\":\"T12:00\","
        "\"ak\":\"2020-01-01T10:00:00+01:00\",\"al\":\"2020-01-01T10:00:00.123456Z\",\"am\":\"2020-01-01 "
        "10:00\",\"ao\":\"2020/1/1\"}";
#define TEXT "{\"type\":\"text\",\"fields\":{\"keyword\":{\"type\":\"keyword\",\"ignore_above\":256}}}"
#define D2 "{\"type\":\"date\",\"format\":\"yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis\"}"
    static const char expected[] =
        "{\"properties\":{\"a\":{\"type\":\"long\"},\"ac\":{\"type\":\"object\"},\"af\":" TEXT ",\"ag\":" TEXT
        ",\"ah\":" TEXT ",\"ai\":" TEXT ",\"ak\":{\"type\":\"date\"},\"al\":{\"type\":\"date\"},\"am\":" TEXT
        ",\"ao\":" TEXT ",\"b\":{\"type\":\"float\"},\"c\":" TEXT ",\"d\":{\"type\":\"date\"},\"d2\":" D2 ",\"d3\":" D2
        ",\"d4\":{\"type\":\"date\"},\"d5\":" TEXT ",\"d6\":%s,\"d7\":" TEXT
        ",\"e\":{\"type\":\"boolean\"},\"h\":{\"type\":\"object\"},\"i\":{\"type\":\"long\"},\"j\":{\"type\":"
        "\"long\"},\"n\":" TEXT ",\"o\":{\"properties\":{\"p\":{\"properties\":{\"q\":{\"type\":\"long\"}}}}}"
        ",\"u\":{\"properties\":{\"v\":{\"type\":\"long\"}}},"
        "\"w\":{\"properties\":{\"x\":{\"properties\":{\"y\":{\"type\":\"long\"}}}}},\"z\":" TEXT "}}";
    for (enum dialect dialect = 0; dialect < DIALECT_COUNT; dialect++) {
        struct arena arena = ARENA_INIT;
        struct mapping *mapping = make_mapping(&arena, NULL, "t", NULL, dialect);
        char *wanted;
        assert_true(asprintf(&wanted, expected, dialect == DIALECT_7 ? "{\"type\":\"date\"}" : TEXT) > 0);
        index_document(&arena, &mapping, document, dialect);
        assert_rendered(mapping, wanted);
        free(wanted);
        mapping_unref(mapping);
        arena_deinit(&arena);
    }
}

static void test_dynamic_template_determines_mapping(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *mapping = make_mapping(
        &arena, NULL, "t",
        "{\"dynamic_date_formats\":[\"yyyy/MM\"],\"numeric_detection\":true,\"dynamic_templates\":["
        "{\"s\":{\"match_mapping_type\":\"string\",\"mapping\":{\"type\":\"keyword\",\"fields\":{\"{name}_"
        "x\":{\"type\":\"text\"}}}}},"
        "{\"l\":{\"match\":\"num_*\",\"unmatch\":\"*_no\",\"mapping\":{\"type\":\"{dynamic_type}\",\"index\":"
        "false}}},"
        "{\"p\":{\"path_match\":\"o.*\",\"mapping\":{\"type\":\"float\"}}},"
        "{\"ob\":{\"match_mapping_type\":\"object\",\"match\":\"obj\",\"mapping\":{\"dynamic\":false}}}]}",
        DIALECT_7);
    index_document(&arena, &mapping,
                   "{\"s\":\"x\",\"num_a\":1,\"num_no\":2,\"o\":{\"a\":1},\"n\":\"12\",\"n2\":\"1.5\",\"dd\":"
                   "\"2020/01\",\"obj\":{\"zz\":1}}",
                   DIALECT_7);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    mapping_render_type(mapping, mapping_type_at(mapping, 0), DIALECT_7, &buf);
    const char *properties = memmem(buf.data, buf.len, "\"properties\"", 12);
    assert_non_null(properties);
    assert_slice_equal(slice_make(properties, (size_t)(buf.data + buf.len - properties)),
                       "\"properties\":{\"dd\":{\"type\":\"date\",\"format\":\"yyyy/"
                       "MM\"},\"n\":{\"type\":\"long\"},\"n2\":{\"type\":\"float\"},"
                       "\"num_a\":{\"type\":\"long\",\"index\":false},\"num_no\":{\"type\":\"long\"},\"o\":{"
                       "\"properties\":{\"a\":{\"type\":\"float\"}}},"
                       "\"obj\":{\"type\":\"object\",\"dynamic\":\"false\"},\"s\":{\"type\":\"keyword\","
                       "\"fields\":{\"s_x\":{\"type\":\"text\"}}}}}");
    buf_deinit(&buf);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

static void print_values(struct buf *out, const struct mapping *mapping, const struct field_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct slice path = values[i].field == FIELD_NUMBER_NONE
                                ? SLICE_LIT("?")
                                : mapping_field_by_number(mapping, values[i].field)->path;
        buf_printf(out, "%s%.*s=", i == 0 ? "" : " ", SLICE_ARG(path));
        if (values[i].kind == FIELD_VALUE_I64)
            buf_i64(out, values[i].i64);
        else if (values[i].kind == FIELD_VALUE_F64)
            buf_printf(out, "%g", values[i].f64);
        else
            buf_slice(out, values[i].bytes);
    }
}

static const char values_mapping[] =
    "{\"properties\":{\"t\":{\"type\":\"text\",\"fields\":{\"raw\":{\"type\":\"keyword\",\"ignore_above\":5}}"
    "},\"n\":{\"type\":\"long\",\"null_value\":7},"
    "\"off\":{\"type\":\"keyword\",\"index\":false},\"low\":{\"type\":\"keyword\",\"normalizer\":\"low\","
    "\"copy_to\":[\"all\",\"o.copy\"]},\"all\":{\"type\":\"text\"},"
    "\"d\":{\"type\":\"date\"},\"b\":{\"type\":\"boolean\"},\"f\":{\"type\":\"float\"},\"sf\":{\"type\":"
    "\"scaled_float\",\"scaling_factor\":10},"
    "\"bad\":{\"type\":\"long\",\"ignore_malformed\":true},\"when\":{\"type\":\"date\",\"ignore_malformed\":true},"
    "\"o\":{\"properties\":{\"x\":{\"type\":"
    "\"integer\"},\"copy\":{\"type\":\"keyword\"}}},"
    "\"closed\":{\"enabled\":false},\"k\":{\"type\":\"keyword\"}}}";

static void test_document_values_are_extracted(void **state)
{
    (void)state;
    static const struct {
        const char *document;
        const char *values;
    } rows[] = {
        {"{\"t\":\"Hello World\"}", "t=hello t=world"},
        {"{\"t\":[\"One\",null,\"Two\"]}", "t=one t.raw=One t=two t.raw=Two"},
        {"{\"n\":[1,null,\"2\",3.9]}", "n=1 n=7 n=2 n=3"},
        {"{\"off\":\"x\"}", ""},
        {"{\"low\":\"\xc3\x84"
         "BC\"}",
         "low=\xc3\xa4"
         "bc all=\xc3\xa4"
         "bc o.copy=\xc3\x84"
         "BC"},
        {"{\"d\":\"2020-01-01\"}", "d=1577836800000"},
        {"{\"b\":[true,\"false\",\"\"]}", "b=1 b=0 b=0"},
        {"{\"f\":0.1,\"sf\":1.25}", "f=0.1 sf=13"},
        {"{\"bad\":[\"x\",5]}", "bad=5"},
        {"{\"when\":[\"x\",\"20220-01-01\",\"2020-01-01\"]}", "when=1577836800000"},
        {"{\"o\":[{\"x\":1},{\"x\":[2,3]}],\"o.x\":4}", "o.x=1 o.x=2 o.x=3 o.x=4"},
        {"{\"closed\":{\"a\":[1,{\"b\":2}]}}", ""},
        {"{\"k\":[1,1.5,true,\"x\"]}", "k=1 k=1.5 k=true k=x"},
    };
    struct arena arena = ARENA_INIT;
    struct mapping *mapping = make_mapping(&arena, "{\"index.analysis.normalizer.low.filter\":[\"lowercase\"]}", "t",
                                           values_mapping, DIALECT_7);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct document document;
        struct problem problem = {0};
        const struct mapping_type *type = mapping_type_at(mapping, 0);
        int r = document_parse(mapping, type, SLICE_LIT("1"), slice_from(rows[i].document), DIALECT_7,
                               DOCUMENT_DATES_STRICT, FIELDS_COUNTED_FIRST, &arena, &document, &problem);
        if (r != 0)
            fail_msg("%s: %.*s", rows[i].document, SLICE_ARG(problem.reason));
        assert_null(document.update);
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        print_values(&buf, mapping, document.values, document.value_count);
        if (!slice_is(buf_as_slice(&buf), rows[i].values))
            fail_msg("%s: got %.*s, expected %s", rows[i].document, SLICE_ARG(buf_as_slice(&buf)), rows[i].values);
        /*
         * document_parse_stored() gives the same values, and so does document_field_values() for
         * each field.
         */
        struct document stored;
        assert_int_equal(document_parse_stored(mapping, type, slice_from(rows[i].document), &arena, &stored), 0);
        assert_int_equal(stored.value_count, document.value_count);
        size_t total = 0;
        for (uint16_t number = 0; number < mapping_field_count(mapping); number++) {
            struct field_value *values;
            total += document_field_values(mapping, mapping_field_by_number(mapping, number), document.json.root,
                                           &arena, &values);
        }
        assert_int_equal(total, document.value_count);
        buf_deinit(&buf);
    }
    mapping_unref(mapping);
    arena_deinit(&arena);
}

/*
 * What finding the values takes is counted, whether or not they have entries: members and items, each conversion for a
 * field, and the bytes of texts. A document that is refused counts the values before.
 */
static void test_document_counts_visited_values(void **state)
{
    (void)state;
    static const char mapping_text[] =
        "{\"dynamic\":false,\"properties\":{\"n\":{\"type\":\"integer\"},"
        "\"off\":{\"type\":\"integer\",\"index\":false,\"doc_values\":false},"
        "\"k\":{\"type\":\"keyword\",\"fields\":{\"x\":{\"type\":\"keyword\"},\"y\":{\"type\":\"keyword\"}}},"
        "\"c\":{\"type\":\"keyword\",\"copy_to\":\"n\"},\"z\":{\"type\":\"integer\",\"null_value\":5}}}";
    static const struct {
        const char *source;
        size_t visited;
    } rows[] = {
        {"{}", 0},
        {"{\"n\":1}", 2},
        {"{\"n\":[1,1,1]}", 7},
        {"{\"off\":[1,1,1]}", 7},
        {"{\"k\":\"a\"}", 4},
        {"{\"k\":\"0123456789abcdef0123456789abcdef\"}", 10},
        {"{\"c\":\"5\"}", 3},
        {"{\"z\":[null,null]}", 13},
        {"{\"unknown\":[1,2,3]}", 1},
        {"{\"n\":[1,1,\"x\",1]}", 8}, /* refused at the third */
        {"{\"n\":[1,1", 0},
    };
    struct arena arena = ARENA_INIT;
    struct mapping *mapping = make_mapping(&arena, NULL, "t", mapping_text, DIALECT_7);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct document document = {.visited = 99};
        struct problem problem;
        int r = document_parse(mapping, mapping_type_at(mapping, 0), SLICE_LIT("1"), slice_from(rows[i].source),
                               DIALECT_7, DOCUMENT_DATES_STRICT, FIELDS_COUNTED_FIRST, &arena, &document, &problem);
        assert_int_equal(r, i + 2 < sizeof rows / sizeof *rows ? 0 : DOCUMENT_REFUSED);
        if (document.visited != rows[i].visited)
            fail_msg("%s: %zu visited, expected %zu", rows[i].source, document.visited, rows[i].visited);
    }
    mapping_unref(mapping);
    arena_deinit(&arena);
}

static const char tree_settings[] = "{\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}}";
static const char tree_mapping[] =
    "{\"properties\":{\"path\":{\"type\":\"keyword\",\"fields\":{\"tree\":{\"type\":\"text\",\"analyzer\":"
    "\"paths\"}}},\"name\":{\"type\":\"keyword\"}}}";

/*
 * Goal: the lock path is the first path of a document; renames can change it if it is the only
 * one. The path-hierarchy field has no entries (mapping/README.md, invariant 8).
 */
static void test_document_lock_path_is_first_path(void **state)
{
    (void)state;
    static const struct {
        const char *document;
        const char *lock_path; /* NULL: none */
        const char *path;  /* NULL: none */
        const char *values;
    } rows[] = {
        {"{\"name\":\"b\",\"path\":\"/a/b\"}", "/a/b", "/a/b", "name=b path=/a/b"},
        {"{\"path\":\"/a\"}", "/a", "/a", "path=/a"},
        {"{\"path\":\"/\xc3\xa4/b\"}", "/\xc3\xa4/b", "/\xc3\xa4/b", "path=/\xc3\xa4/b"},
        {"{\"path\":\"a/b\"}", "a/b", "a/b", "path=a/b"},
        {"{\"path\":\"/a/\"}", "/a/", "/a/", "path=/a/"},
        {"{\"path\":\"/a//b\"}", "/a//b", "/a//b", "path=/a//b"},
        {"{\"path\":\"\\/a\"}", "/a", "/a", "path=/a"},
        {"{\"path\":[\"/a\",\"/b\"]}", "/a", NULL, "path=/a path=/b"},
        {"{\"path\":[\"/a\"]}", "/a", "/a", "path=/a"},
        {"{\"path\":null}", NULL, NULL, ""},
        {"{\"path\":[null,\"/\\u00e4\"]}", "/\xc3\xa4", "/\xc3\xa4", "path=/\xc3\xa4"},
        {"{\"path\":\"/\"}", "/", "/", "path=/"},
        {"{\"path\":\"\"}", "", NULL, "path="},
    };
    struct arena arena = ARENA_INIT;
    struct mapping *mapping = make_mapping(&arena, tree_settings, "t", tree_mapping, DIALECT_7);
    assert_slice_equal(mapping_path_field(mapping)->path, "path");
    assert_int_equal(mapping_path_delimiter(mapping), '/');
    assert_true(mapping_field(mapping, SLICE_LIT("path.tree"))->in_tree);
    assert_false(mapping_field(mapping, SLICE_LIT("name"))->in_tree);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct document document;
        struct problem problem = {0};
        assert_int_equal(document_parse(mapping, mapping_type_at(mapping, 0), SLICE_LIT("1"),
                                        slice_from(rows[i].document), DIALECT_7, DOCUMENT_DATES_STRICT,
                                        FIELDS_COUNTED_FIRST, &arena, &document, &problem),
                         0);
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        print_values(&buf, mapping, document.values, document.value_count);
        if (!slice_is(buf_as_slice(&buf), rows[i].values) || (document.path.data == NULL) != (rows[i].path == NULL))
            fail_msg("%s: got %.*s, path %.*s", rows[i].document, SLICE_ARG(buf_as_slice(&buf)),
                     SLICE_ARG(document.path));
        if (rows[i].lock_path != NULL)
            assert_slice_equal(document.lock_path, rows[i].lock_path);
        else
            assert_null(document.lock_path.data);
        if (rows[i].path != NULL) {
            assert_slice_equal(document.path, rows[i].path);
            if (strchr(rows[i].document, '\\') == NULL)
                assert_slice_equal(document.path_raw, rows[i].path);
            assert_true(document.path_raw.data > document.json.source.data &&
                        document.path_raw.data < document.json.source.data + document.json.source.len);
        }
        buf_deinit(&buf);
    }
    mapping_unref(mapping);
    arena_deinit(&arena);
}

/* A document of `count` new fields, each an object with `inner`, or 1, before one that cannot be parsed. */
static struct slice many_fields(struct arena *arena, size_t count, const char *inner)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_byte(&text, '{');
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "\"new%zu%s,", i, inner);
    buf_lit(&text, "\"n\":\"x\"}");
    struct slice copy = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    return copy;
}

/* The work of a document's new fields is bounded by the limit of the mapping, not by the document's length. */
static void test_fields_beyond_the_limit_are_not_added(void **state)
{
    (void)state;
    static const char *const forms[] = {"\":1", ".a\":1", "\":{}", "\":{\"a\":1}"};
    struct arena arena = ARENA_INIT;
    struct mapping *mapping = make_mapping(&arena, NULL, "t", all_types, DIALECT_5);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (int counted = 0; counted < 2; counted++) {
            struct document document = {0};
            struct problem problem = {0};
            enum field_counting counting = counted ? FIELDS_COUNTED_FIRST : FIELDS_COUNTED_LAST;
            int r = document_parse(mapping, mapping_type(mapping, SLICE_LIT("t")), SLICE_LIT("1"),
                                   many_fields(&arena, MAPPING_TOTAL_FIELDS_MAX + 1, forms[i]), DIALECT_7,
                                   DOCUMENT_DATES_STRICT, counting, &arena, &document, &problem);
            assert_int_equal(r, DOCUMENT_REFUSED);
            /* Not counted: all are added before the last one is refused. */
            assert_int_equal(problem.type, counted ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_MAPPER_PARSING);
            if (counted)
                assert_slice_equal(problem.reason, "Limit of total fields [1000] has been exceeded");
        }
    }
    mapping_unref(mapping);
    arena_deinit(&arena);
}

/* A field with many multi-fields converts each value as often: documents have a limit of that, not in old commands. */
static void test_copies_of_values_are_limited(void **state)
{
    enum { FIELDS = 990, BEYOND = DOCUMENT_COPIES_MAX / FIELDS + 2 };
    struct arena arena = ARENA_INIT;
    struct buf body = BUF_INIT(BUF_UNLIMITED), source = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    buf_lit(&body, "{\"properties\":{\"n\":{\"type\":\"long\",\"index\":false,\"doc_values\":false,\"fields\":{");
    for (int i = 0; i < FIELDS; i++)
        buf_printf(&body, "%s\"f%d\":{\"type\":\"long\",\"index\":false,\"doc_values\":false}", i == 0 ? "" : ",", i);
    buf_append(&body, "}}}}", sizeof "}}}}");
    struct mapping *mapping = make_mapping(&arena, NULL, "t", body.data, DIALECT_7);
    for (int few = 0; few < 2; few++) {
        buf_clear(&source);
        buf_lit(&source, "{\"n\":[1");
        for (int i = 1; i < BEYOND - 4 * few; i++)
            buf_lit(&source, ",1");
        buf_lit(&source, "]}");
        for (int old = 0; old < 2; old++) {
            struct document document;
            struct problem problem;
            int r = document_parse(mapping, mapping_type_at(mapping, 0), SLICE_LIT("1"), buf_as_slice(&source),
                                   DIALECT_7, DOCUMENT_DATES_STRICT,
                                   old ? FIELDS_COUNTED_FIRST : FIELDS_AND_COPIES_COUNTED, &arena, &document, &problem);
            assert_int_equal(r, few || old ? 0 : DOCUMENT_REFUSED);
            assert_in_range(document.visited, DOCUMENT_COPIES_MAX - 4 * FIELDS, DOCUMENT_COPIES_MAX + 4 * FIELDS);
            if (r != 0)
                assert_slice_equal(problem.reason, "Limit of copies [1000000] of the values of a document, by "
                                                   "multi-fields and [copy_to], has been exceeded");
        }
    }
    buf_deinit(&body);
    buf_deinit(&source);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

/* Appends an object of `fields` numbers, below an object with a long name. */
static void append_long_paths(struct buf *source, size_t name, size_t fields)
{
    buf_lit(source, "{\"");
    for (size_t i = 0; i < name; i++)
        buf_byte(source, 'k');
    buf_lit(source, "\":{");
    for (size_t i = 0; i < fields; i++)
        buf_printf(source, "%s\"f%zu\":1", i == 0 ? "" : ",", i);
    buf_lit(source, "}}");
}

static int parse_counted(const struct mapping *mapping, const struct buf *source, enum field_counting counting,
                         struct arena *arena, struct document *ret_document, struct problem *ret_problem)
{
    *ret_problem = (struct problem){0};
    return document_parse(mapping, mapping_type_at(mapping, 0), SLICE_LIT("1"), buf_as_slice(source), DIALECT_7,
                          DOCUMENT_DATES_STRICT, counting, arena, ret_document, ret_problem);
}

/* Each field has its whole path: a name of some kilobytes of an object with many fields becomes megabytes. */
static void test_texts_of_fields_are_limited(void **state)
{
    enum { FIELDS = 800, NAME = MAPPING_TEXT_BYTES_MAX / FIELDS };
    struct arena arena = ARENA_INIT;
    struct buf fits = BUF_INIT(BUF_UNLIMITED), more = BUF_INIT(BUF_UNLIMITED), one = BUF_INIT(BUF_UNLIMITED);
    struct mapping *mapping =
        make_mapping(&arena, NULL, "t", "{\"properties\":{\"n\":{\"type\":\"long\"}}}", DIALECT_7);
    struct document document;
    struct problem problem;
    (void)state;
    append_long_paths(&fits, NAME - 10, FIELDS);
    append_long_paths(&more, NAME, FIELDS);
    assert_int_equal(parse_counted(mapping, &more, FIELDS_TEXTS_BOUNDED, &arena, &document, &problem),
                     DOCUMENT_REFUSED);
    assert_int_equal(problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_slice_equal(problem.reason, "Limit of [1048576] bytes of the paths and parameters of all fields has been "
                                       "exceeded: use shorter names");
    assert_int_equal(parse_counted(mapping, &fits, FIELDS_TEXTS_BOUNDED, &arena, &document, &problem), 0);
    assert_in_range(mapping_text_bytes(document.update), MAPPING_TEXT_BYTES_MAX - 8 * FIELDS, MAPPING_TEXT_BYTES_MAX);
    document_release(&document);
    /* An old log may have made more: it counts as what it takes, and gets no more fields. */
    assert_int_equal(parse_counted(mapping, &more, FIELDS_AND_COPIES_COUNTED, &arena, &document, &problem), 0);
    struct mapping *large = mapping_ref(document.update);
    document_release(&document);
    assert_in_range(mapping_copied_fields(large), FIELDS + MAPPING_TEXT_BYTES_MAX / MAPPING_FIELD_TEXT,
                    3 * FIELDS * NAME);
    buf_lit(&one, "{\"z\":1}");
    assert_int_equal(parse_counted(large, &one, FIELDS_TEXTS_BOUNDED, &arena, &document, &problem), DOCUMENT_REFUSED);
    assert_int_equal(parse_counted(large, &one, FIELDS_AND_COPIES_COUNTED, &arena, &document, &problem), 0);
    document_release(&document);
    mapping_unref(large);
    mapping_unref(mapping);
    buf_deinit(&fits);
    buf_deinit(&more);
    buf_deinit(&one);
    arena_deinit(&arena);
}

/* A dynamic template gives each new field its parameters. */
static void test_parameters_of_new_fields_are_limited(void **state)
{
    enum { TARGETS = 100, FIELDS = 800 };
    struct arena arena = ARENA_INIT;
    struct buf body = BUF_INIT(BUF_UNLIMITED), source = BUF_INIT(BUF_UNLIMITED);
    struct document document;
    struct problem problem;
    (void)state;
    buf_lit(&body, "{\"dynamic_templates\":[{\"d\":{\"match\":\"f*\",\"mapping\":{\"type\":\"long\",\"copy_to\":[");
    for (size_t i = 0; i < TARGETS; i++)
        buf_printf(&body, "%s\"t%zu\"", i == 0 ? "" : ",", i);
    buf_append(&body, "]}}}]}", sizeof "]}}}]}");
    struct mapping *mapping = make_mapping(&arena, NULL, "t", body.data, DIALECT_7);
    append_long_paths(&source, 1, FIELDS);
    if (parse_counted(mapping, &source, FIELDS_AND_COPIES_COUNTED, &arena, &document, &problem) != 0)
        fail_msg("%.*s", SLICE_ARG(problem.reason));
    document_release(&document);
    assert_int_equal(parse_counted(mapping, &source, FIELDS_TEXTS_BOUNDED, &arena, &document, &problem),
                     DOCUMENT_REFUSED);
    mapping_unref(mapping);
    buf_deinit(&body);
    buf_deinit(&source);
    arena_deinit(&arena);
}

static const char filters[] =
    "{\"analysis\":{\"tokenizer\":{\"p\":{\"type\":\"path_hierarchy\"}},"
    "\"analyzer\":{\"p\":{\"tokenizer\":\"p\",\"filter\":[\"reverse\",\"uppercase\"]},"
    "\"w\":{\"tokenizer\":\"whitespace\",\"filter\":[\"reverse\",\"uppercase\",\"reverse\"]}},"
    "\"normalizer\":{\"n\":{\"type\":\"custom\",\"filter\":[\"uppercase\",\"asciifolding\"]}}}}";

/* What filters read of the prefixes of a path has a limit, but not in old commands nor in stored documents. */
static void test_filtered_paths_are_limited(void **state)
{
    enum { LEVELS = 3000, OLD = 1 };
    struct arena arena = ARENA_INIT;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    struct document document;
    struct problem problem;
    (void)state;
    struct mapping *mapping = make_mapping(
        &arena, filters, "t", "{\"properties\":{\"p\":{\"type\":\"text\",\"analyzer\":\"p\"}}}", DIALECT_7);
    buf_lit(&source, "{\"p\":\"");
    for (size_t i = 0; i < LEVELS; i++)
        buf_lit(&source, "/a");
    buf_lit(&source, "\"}");
    assert_int_equal(parse_counted(mapping, &source, FIELDS_TEXTS_BOUNDED, &arena, &document, &problem),
                     DOCUMENT_REFUSED);
    assert_int_equal(problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_slice_equal(problem.reason, "Limit of bytes [8388608] that token filters read after [path_hierarchy] in a "
                                       "document has been exceeded");
    arena_reset(&arena);
    assert_int_equal(parse_counted(mapping, &source, FIELDS_FILTERS_UNBOUNDED, &arena, &document, &problem), 0);
    assert_int_equal(document.value_count, LEVELS);
    assert_int_equal(
        document_parse_stored(mapping, mapping_type_at(mapping, 0), buf_as_slice(&source), &arena, &document), 0);
    assert_int_equal(document.value_count, LEVELS);
    mapping_unref(mapping);
    buf_deinit(&source);
    arena_deinit(&arena);
}

/* The second and further filters of a text count by its bytes, those of a text that is not ASCII four times. */
static void test_filters_count(void **state)
{
    static const struct {
        const char *field, *letter;
        size_t filtered; /* of 1,600 letters */
    } rows[] = {
        {"w", "a", 2 * 100}, {"w", "\xc3\xa4", 2 * 800}, {"n", "a", 100}, {"s", "a", 0}, {"k", "a", 0},
    };
    struct arena arena = ARENA_INIT;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    struct document document;
    struct problem problem;
    (void)state;
    struct mapping *mapping =
        make_mapping(&arena, filters, "t",
                     "{\"properties\":{\"w\":{\"type\":\"text\",\"analyzer\":\"w\"},\"s\":{\"type\":\"text\"},"
                     "\"n\":{\"type\":\"keyword\",\"normalizer\":\"n\"},\"k\":{\"type\":\"keyword\"}}}",
                     DIALECT_7);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf_clear(&source);
        buf_printf(&source, "{\"%s\":\"", rows[i].field);
        for (size_t j = 0; j < 1600; j++)
            buf_printf(&source, "%s", rows[i].letter);
        buf_lit(&source, "\"}");
        assert_int_equal(parse_counted(mapping, &source, FIELDS_TEXTS_BOUNDED, &arena, &document, &problem), 0);
        assert_int_equal(document.filtered, rows[i].filtered);
    }
    mapping_unref(mapping);
    buf_deinit(&source);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document_refuses_as_recorded),
        cmocka_unit_test(test_dynamic_mapping_equals_recorded),
        cmocka_unit_test(test_dynamic_template_determines_mapping),
        cmocka_unit_test(test_document_values_are_extracted),
        cmocka_unit_test(test_document_counts_visited_values),
        cmocka_unit_test(test_document_lock_path_is_first_path),
        cmocka_unit_test(test_fields_beyond_the_limit_are_not_added),
        cmocka_unit_test(test_copies_of_values_are_limited),
        cmocka_unit_test(test_texts_of_fields_are_limited),
        cmocka_unit_test(test_parameters_of_new_fields_are_limited),
        cmocka_unit_test(test_filtered_paths_are_limited),
        cmocka_unit_test(test_filters_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
