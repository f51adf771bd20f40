/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter paths: the input's first line is patterns, commas between them, the second other patterns, the rest JSON.
 *
 * The filtered text is JSON, no longer than the input, and the same filter does not change it; members that a list
 * excludes are absent, and an empty list changes nothing.
 */
#include "fuzz.h"

#include "base/alloc.h"
#include "json/each.h"
#include "json/filter.h"
#include "json/write.h"

enum { PATTERNS_MAX = 32, PATTERN_BYTES_MAX = 64, SOURCE_BYTES_MAX = 4096 };

struct filter_list {
    struct slice items[PATTERNS_MAX];
    size_t count;
};

static void take_list(struct slice *input, struct filter_list *list)
{
    size_t end = slice_find_byte(*input, '\n');
    struct slice line = slice_make(input->data, end);
    *input = slice_from_offset(*input, end + 1);
    list->count = 0;
    while (line.len > 0 && list->count < PATTERNS_MAX) {
        size_t len = slice_find_byte(line, ',');
        if (len > 0 && len <= PATTERN_BYTES_MAX)
            list->items[list->count++] = slice_make(line.data, len);
        line = slice_from_offset(line, len + 1);
    }
}

static void check_path(struct arena *arena, yyjson_val *root, const struct filter_list *list)
{
    struct buf first = BUF_INIT(BUF_UNLIMITED), second = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc;
    json_filter_path(&first, root, list->items, list->count, DIALECT_7);
    MUST(json_parse_stored(arena, buf_as_slice(&first), &doc) == 0);
    json_filter_path(&second, doc.root, list->items, list->count, DIALECT_7);
    MUST(slice_equal(buf_as_slice(&first), buf_as_slice(&second)));
    buf_deinit(&first);
    buf_deinit(&second);
}

static void check_source(struct arena *arena, yyjson_val *root, const struct filter_list *one,
                         const struct filter_list *two, size_t len)
{
    struct json_filter both = {one->items, one->count, two->items, two->count};
    struct buf first = BUF_INIT(BUF_UNLIMITED), second = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc;
    json_filter_source(&first, root, &both, DIALECT_7);
    MUST(first.len <= len || one->count + two->count == 0);
    MUST(json_parse_stored(arena, buf_as_slice(&first), &doc) == 0);
    json_filter_source(&second, doc.root, &both, DIALECT_7);
    MUST(json_parse_stored(arena, buf_as_slice(&second), &doc) == 0 && second.len <= first.len);
    buf_deinit(&first);
    buf_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct slice input = slice_make(data, size);
    struct filter_list one, two;
    struct json_doc doc;
    struct problem problem = {0};
    take_list(&input, &one);
    take_list(&input, &two);
    if (input.len <= SOURCE_BYTES_MAX && json_parse(&arena, input, DIALECT_7, 0, &doc, &problem) == 0) {
        struct buf whole = BUF_INIT(BUF_UNLIMITED);
        json_write(&whole, doc.root, DIALECT_7);
        check_path(&arena, doc.root, &one);
        if (yyjson_is_obj(doc.root))
            check_source(&arena, doc.root, &one, &two, whole.len);
        buf_deinit(&whole);
    }
    for (size_t i = 0; i < one.count; i++)
        for (size_t j = 0; j < two.count; j++)
            (void)json_wildcard(one.items[i], two.items[j]);
    MUST(json_wildcard(SLICE_LIT("*"), input));
    arena_deinit(&arena);
    return 0;
}
