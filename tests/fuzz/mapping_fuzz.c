/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings, mappings and documents: the lines of the input, in this order, the rest of them documents.
 *
 * Whatever is taken must come back from the catalog's form unchanged; a document that is taken has the same
 * values when read again as a stored one, and has them under the mapping it grew.
 */
#include "fuzz.h"

#include "mapping/date.h"
#include "mapping/document.h"

static struct slice take_line(struct slice *input)
{
    size_t end = slice_find_byte(*input, '\n');
    struct slice line = slice_make(input->data, end);
    *input = slice_from_offset(*input, end + 1);
    return line;
}

static yyjson_val *parse(struct arena *arena, struct slice text)
{
    struct json_doc doc;
    struct problem problem;
    return json_parse(arena, text, DIALECT_7, 0, &doc, &problem) == 0 ? doc.root : NULL;
}

static void check_catalog_form(const struct mapping *mapping)
{
    struct buf first = BUF_INIT(BUF_UNLIMITED);
    struct buf second = BUF_INIT(BUF_UNLIMITED);
    struct mapping *decoded;
    mapping_encode(mapping, &first);
    MUST(mapping_decode(buf_as_slice(&first), &decoded) == 0);
    mapping_encode(decoded, &second);
    MUST(slice_equal(buf_as_slice(&first), buf_as_slice(&second)));
    mapping_unref(decoded);
    buf_deinit(&first);
    buf_deinit(&second);
}

/* Parses a document; takes over the mapping it grew. */
static void try_document(struct arena *arena, struct mapping **mapping, struct slice source, enum dialect dialect)
{
    struct document document, stored;
    struct problem problem = {0};
    const struct mapping_type *type = mapping_type_at(*mapping, 0);
    if (document_parse(*mapping, type, SLICE_LIT("1"), source, dialect, DOCUMENT_DATES_STRICT, FIELDS_COUNTED_FIRST,
                       arena, &document, &problem) != 0) {
        MUST(problem.type != PROBLEM_NONE && problem.reason.len > 0);
        return;
    }
    if (document.update != NULL) {
        mapping_unref(*mapping);
        *mapping = mapping_ref(document.update);
        check_catalog_form(*mapping);
    }
    type = mapping_type_at(*mapping, 0);
    MUST(document_parse_stored(*mapping, type, source, arena, &stored) == 0);
    MUST(stored.value_count == document.value_count || dialect == DIALECT_5);
    for (uint16_t number = 0; number < mapping_field_count(*mapping); number++) {
        const struct mapping_field *field = mapping_field_by_number(*mapping, number);
        struct field_value *values;
        if (field != NULL)
            document_field_values(*mapping, field, document.json.root, arena, &values);
    }
    document_release(&document);
}

static void try_dates(struct arena *arena, struct slice format_text, struct slice text)
{
    const struct date_format *format;
    int64_t millis;
    struct zone zone = zone_fixed(3600);
    if (date_format_parse(arena, format_text, DATE_RULES_FIRST, &format) == 0 &&
        date_parse_math(format, text, 0, true, &zone, &millis) == 0) {
        struct buf buf = BUF_INIT(1 << 16);
        date_print(&buf, format, millis, NULL);
        buf_deinit(&buf);
    }
}

static void try_mapping(struct arena *arena, struct mapping *empty, struct slice body, struct slice documents,
                        enum dialect dialect)
{
    struct mapping *mapping, *typed;
    struct problem problem = {0};
    yyjson_val *root = parse(arena, body);
    if (root == NULL)
        root = parse(arena, SLICE_LIT("{}"));
    if (mapping_merge_all(empty, root, dialect, false, FIELDS_COUNTED_FIRST, arena, &mapping, &problem) != 0) {
        MUST(problem.type != PROBLEM_NONE && problem.reason.len > 0);
        return;
    }
    if (mapping_ensure_type(mapping, SLICE_LIT("_doc"), false, dialect, arena, &typed, &problem) == 0) {
        mapping_unref(mapping);
        mapping = typed;
    }
    check_catalog_form(mapping);
    while (documents.len > 0 && mapping_type_count(mapping) > 0)
        try_document(arena, &mapping, take_line(&documents), dialect);
    mapping_unref(mapping);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct slice input = slice_make(data, size);
    struct slice settings = take_line(&input);
    struct slice body = take_line(&input);
    struct mapping *empty;
    struct problem problem = {0};
    try_dates(&arena, settings, body);
    if (mapping_new(parse(&arena, settings), DATE_RULES_7_10, &arena, &empty, &problem) == 0) {
        for (enum dialect dialect = 0; dialect < DIALECT_COUNT; dialect++)
            try_mapping(&arena, empty, body, input, dialect);
        mapping_unref(empty);
    }
    arena_deinit(&arena);
    return 0;
}
