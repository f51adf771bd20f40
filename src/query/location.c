/* SPDX-License-Identifier: Apache-2.0 */
/* Locates a parsed value in the text of its request, for error messages only. */
#include "query/query.h"
#include "json/each.h"

/* Returns: the offset of the bracket that closes the one at `at`. */
static size_t closing_bracket(struct slice text, size_t at)
{
    size_t depth = 0;
    for (; at < text.len; at++) {
        char c = text.data[at];
        if (c == '"') {
            for (at++; at < text.len && text.data[at] != '"'; at++)
                at += text.data[at] == '\\';
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            break;
        }
    }
    return at;
}

void query_location(const struct json_doc *doc, yyjson_val *value, bool end, size_t *ret_line, size_t *ret_column)
{
    size_t start, after;
    json_locate(doc, value, &start, &after);
    size_t at = end && yyjson_is_ctn(value) ? closing_bracket(doc->source, start) : start;
    json_line_column(doc->source, at, ret_line, ret_column);
}
