/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a parsed value stands in its text.
 *
 * yyjson keeps values in the order of the text, keys included, so a value's distance from the root is the number of
 * tokens before it. Only refusals ask, so the text is walked again then.
 */
#include "query/query.h"

#include "base/check.h"

struct walk {
    struct slice text;
    size_t at;
    size_t line;
    size_t line_start;
};

static void walk_string(struct walk *walk)
{
    for (walk->at++; walk->at < walk->text.len && walk->text.data[walk->at] != '"'; walk->at++) {
        if (walk->text.data[walk->at] == '\\')
            walk->at++;
    }
    walk->at++;
}

static bool in_word(char c)
{
    return c != ',' && c != ':' && c != '}' && c != ']' && c != ' ' && c != '\n' && c != '\t' && c != '\r';
}

/* Moves to the next token: a key, a scalar, or a bracket of either kind. */
static bool walk_to_token(struct walk *walk)
{
    for (; walk->at < walk->text.len; walk->at++) {
        char c = walk->text.data[walk->at];
        if (c == '\n') {
            walk->line++;
            walk->line_start = walk->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != ',' && c != ':') {
            return true;
        }
    }
    return false;
}

static void walk_over(struct walk *walk)
{
    char c = walk->text.data[walk->at];
    if (c == '"')
        walk_string(walk);
    else if (c == '{' || c == '[' || c == '}' || c == ']')
        walk->at++;
    else
        while (walk->at < walk->text.len && in_word(walk->text.data[walk->at]))
            walk->at++;
}

void query_position(const struct json_doc *doc, yyjson_val *value, bool end, size_t *ret_line, size_t *ret_column)
{
    size_t wanted = (size_t)(value - doc->root);
    struct walk walk = {.text = doc->source, .line = 1};
    size_t token = 0;
    unsigned depth = 0;
    bool inside = false; /* the container has begun; its end is at depth 0 */
    while (walk_to_token(&walk)) {
        char c = walk.text.data[walk.at];
        bool closes = c == '}' || c == ']';
        if (inside) {
            depth += c == '{' || c == '[';
            if (closes && depth-- == 0)
                break;
        } else if (!closes && token++ == wanted) {
            if (!end || (c != '{' && c != '['))
                break;
            inside = true;
        }
        walk_over(&walk);
    }
    *ret_line = walk.line;
    *ret_column = walk.at - walk.line_start + 1;
}
