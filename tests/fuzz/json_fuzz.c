/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON from outside, in both dialects.
 *
 * Accepted text must be written and read again as the same, be where json_locate() says, merge into itself
 * without change, and pass the scanner, too, which is a second parser. A refusal must have a reason.
 */
#include "fuzz.h"

#include "json/each.h"
#include "json/filter.h"
#include "json/merge.h"
#include "json/path.h"
#include "json/scan.h"
#include "json/write.h"

/* The scanner takes what yyjson took. */
static void check_scanner(struct arena *arena, struct slice text, enum dialect dialect)
{
    struct json_error error;
    char *copy = arena_alloc(arena, text.len + 1);
    memcpy(copy, text.data, text.len);
    MUST(json_scan(arena, copy, text.len, dialect, JSON_DUPLICATES, NULL, &error) == 0);
}

static void check_places(const struct json_doc *doc)
{
    yyjson_val *end = unsafe_yyjson_get_next(doc->root);
    size_t last = 0;
    int looked_at = 0;
    for (yyjson_val *value = doc->root; value < end && looked_at++ < 32; value++) {
        size_t start, stop;
        json_locate(doc, value, &start, &stop);
        MUST(start < stop && stop <= doc->source.len && start >= last);
        if (yyjson_is_str(value))
            MUST(start + 1 == json_offset(doc, value) && json_string_raw(doc, value).len + 2 == stop - start);
        last = start;
    }
}

static void check_written(struct arena *arena, yyjson_val *root, enum dialect dialect)
{
    struct buf first = BUF_INIT(BUF_UNLIMITED);
    struct buf second = BUF_INIT(BUF_UNLIMITED);
    struct json_doc again;
    json_write(&first, root, dialect);
    MUST(json_parse_stored(arena, buf_as_slice(&first), &again) == 0);
    json_write(&second, again.root, dialect);
    MUST(slice_equal(buf_as_slice(&first), buf_as_slice(&second)));
    buf_clear(&second);
    json_write_pretty(&second, root, dialect);
    MUST(json_parse_stored(arena, buf_as_slice(&second), &again) == 0);
    buf_deinit(&first);
    buf_deinit(&second);
}

static void exercise_object(yyjson_val *root, enum dialect dialect)
{
    static const struct slice patterns[] = {{"a", 1}, {"b.*", 3}, {"*c", 2}, {"-**.d", 5}, {"e.**.f", 6}};
    struct json_filter filter = {patterns, 2, patterns + 2, 1};
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_filter_source(&buf, root, &filter, dialect);
    json_filter_path(&buf, root, patterns, 5, dialect);
    (void)json_path_first(root, SLICE_LIT("a.b.c"));
    buf_deinit(&buf);
}

static void try_dialect(struct slice text, enum dialect dialect, unsigned flags)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem = {0};
    if (json_parse(&arena, text, dialect, flags, &doc, &problem) != 0) {
        MUST(problem.type != PROBLEM_NONE && problem.reason.len > 0);
    } else {
        check_scanner(&arena, text, dialect);
        check_places(&doc);
        check_written(&arena, doc.root, dialect);
        MUST(json_equal(doc.root, doc.root) || (flags & JSON_DUPLICATES));
        if (yyjson_is_obj(doc.root)) {
            struct buf buf = BUF_INIT(BUF_UNLIMITED);
            exercise_object(doc.root, dialect);
            MUST(!json_merge(&buf, doc.root, doc.root, dialect) || (flags & JSON_DUPLICATES));
            buf_deinit(&buf);
        }
    }
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = slice_make(data, size);
    try_dialect(text, DIALECT_7, 0);
    try_dialect(text, DIALECT_5, JSON_DUPLICATES | JSON_DOCUMENT);
    return 0;
}
