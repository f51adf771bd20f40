/* SPDX-License-Identifier: Apache-2.0 */
/* Locations in a body; see location.h. */
#include "api/request/location.h"

#include <string.h>

#include "json/each.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Returns: the offset after the comment that begins at `at`, of which Jackson takes two kinds; `at`: none does. */
static size_t skip_comment(struct slice text, size_t at)
{
    if (at + 1 >= text.len || text.data[at] != '/')
        return at;
    size_t end = at + 2;
    if (text.data[at + 1] == '/') {
        while (end < text.len && text.data[end] != '\n' && text.data[end] != '\r')
            end++;
        return end;
    }
    if (text.data[at + 1] != '*')
        return at;
    const char *closing = memmem(text.data + end, text.len - end, "*/", 2);
    return closing == NULL ? text.len : (size_t)(closing - text.data) + 2;
}

/* Passes over blanks and comments. */
static size_t skip_blank(struct slice text, size_t at)
{
    size_t begin;
    do {
        begin = at;
        while (at < text.len && is_blank(text.data[at]))
            at++;
        at = skip_comment(text, at);
    } while (at != begin);
    return at;
}

/* The string that opens at `at`. Returns: the offset after its closing quote. */
static size_t skip_string(struct slice text, size_t at)
{
    for (at++; at < text.len && text.data[at] != '"'; at++)
        if (text.data[at] == '\\')
            at++;
    return at + 1;
}

size_t location_of_string(const struct json_doc *doc, yyjson_val *string)
{
    return json_offset(doc, string) - 1;
}

size_t location_of_member(const struct json_doc *doc, yyjson_val *key)
{
    struct slice text = doc->source;
    size_t at = skip_blank(text, skip_string(text, location_of_string(doc, key)));
    return skip_blank(text, at + 1); /* the colon */
}

size_t location_of_root(const struct json_doc *doc)
{
    return skip_blank(doc->source, 0);
}

static size_t skip_value(struct slice text, size_t offset)
{
    size_t depth = 0, at = offset;
    do {
        at = skip_blank(text, at);
        char c = at < text.len ? text.data[at] : ']';
        if (c == '"') {
            at = skip_string(text, at);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
            at++;
        } else if (c == ',' || c == ':') {
            at++;
        } else {
            do
                at++;
            while (at < text.len && strchr(",:]}[{\"/ \t\r\n", text.data[at]) == NULL);
        }
    } while (depth > 0 && at < text.len);
    return at;
}

size_t location_after(const struct json_doc *doc, size_t offset)
{
    return skip_value(doc->source, offset);
}

bool location_is_blank(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_blank(text.data[i]))
            return false;
    return true;
}

struct slice location_first_value(struct slice text)
{
    size_t end = skip_value(text, slice_starts_with(text, SLICE_LIT("\xef\xbb\xbf")) ? 3 : 0);
    return slice_make(text.data, end < text.len ? end : text.len);
}

size_t location_of_end(const struct json_doc *doc, size_t offset)
{
    return location_after(doc, offset) - 1;
}

void location_line(const struct json_doc *doc, size_t offset, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < offset && i < doc->source.len; i++)
        if (doc->source.data[i] == '\n') {
            line++;
            start = i + 1;
        }
    *ret_line = line;
    *ret_column = offset - start + 1;
}
