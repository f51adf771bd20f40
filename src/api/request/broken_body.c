/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are not JSON; see broken_body.h. */
#include "api/request/broken_body.h"

#include "api/request/request.h"
#include "json/json.h"

enum { LEVELS_MAX = 64 };

/* An object or array that the fault is in. */
struct level {
    struct slice name; /* of the member that it is the value of; empty: an element, or the root */
    bool is_list;
};

struct broken_body {
    struct slice closed;             /* the body up to the last value before the fault, with brackets added */
    size_t end;                      /* offset in `closed` of the added brackets */
    size_t token;                    /* offset of the token at which the fault is reported */
    struct level levels[LEVELS_MAX]; /* outermost first */
    size_t depth;
    struct problem fault; /* the error of JSON */
};

/* --- What precedes the fault -------------------------------------------------------------------------------------- */

/* What may come next in an object or array. */
enum expected { FIRST, NEXT, COLON, VALUE, COMMA };

struct reader {
    struct slice text;
    size_t at;
    enum expected expected;
    struct slice name; /* of the member being read */
    struct broken_body *broken;
};

static bool is_list(const struct reader *reader)
{
    return reader->broken->levels[reader->broken->depth - 1].is_list;
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->text.len && strchr(" \t\r\n", reader->text.data[reader->at]) != NULL)
        reader->at++;
}

/* Returns: the offset after the string at `at`; 0: no complete string begins there. */
static size_t string_end(struct slice text, size_t at)
{
    for (at++; at < text.len && text.data[at] != '"'; at++) {
        if (text.data[at] == '\\' && (++at >= text.len || strchr("\"\\/bfnrtu", text.data[at]) == NULL))
            return 0;
        if ((unsigned char)text.data[at] < ' ')
            return 0;
    }
    return at < text.len ? at + 1 : 0;
}

/* Returns: the offset after the number or word at `at`; 0: neither begins there. */
static size_t scalar_end(struct slice text, size_t at)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t end = at;
    while (end < text.len && strchr(" \t\r\n,:{}[]\"", text.data[end]) == NULL)
        end++;
    struct slice token = slice_make(text.data + at, end - at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_is(token, words[i]))
            return end;
    size_t digits = 0;
    for (size_t i = 0; i < token.len; i++) {
        if (strchr("+-.eE0123456789", token.data[i]) == NULL)
            return 0;
        digits += token.data[i] >= '0' && token.data[i] <= '9';
    }
    return digits > 0 ? end : 0;
}

static bool open_level(struct reader *reader, bool list)
{
    struct broken_body *broken = reader->broken;
    if (broken->depth == LEVELS_MAX)
        return false;
    broken->levels[broken->depth++] = (struct level){reader->name, list};
    reader->name = SLICE_NONE;
    reader->expected = FIRST;
    broken->end = ++reader->at;
    return true;
}

static bool read_value(struct reader *reader)
{
    char c = reader->text.data[reader->at];
    if (c == '{' || c == '[')
        return open_level(reader, c == '[');
    size_t end = c == '"' ? string_end(reader->text, reader->at) : scalar_end(reader->text, reader->at);
    if (end == 0)
        return false;
    reader->at = reader->broken->end = end;
    reader->expected = COMMA;
    return true;
}

static bool read_name(struct reader *reader)
{
    size_t end = reader->text.data[reader->at] == '"' ? string_end(reader->text, reader->at) : 0;
    if (end == 0)
        return false;
    reader->name = slice_make(reader->text.data + reader->at + 1, end - reader->at - 2);
    reader->at = end;
    reader->expected = COLON;
    return true;
}

static bool close_level(struct reader *reader)
{
    struct broken_body *broken = reader->broken;
    if (reader->text.data[reader->at] != (is_list(reader) ? ']' : '}'))
        return false;
    broken->depth--;
    broken->end = ++reader->at;
    reader->expected = COMMA;
    return true;
}

static bool read_byte(struct reader *reader, char c, enum expected then)
{
    if (reader->text.data[reader->at] != c)
        return false;
    reader->at++;
    reader->expected = then;
    return true;
}

/* Reads one token within an object or array. Returns: false at the fault. */
static bool read_token(struct reader *reader)
{
    switch (reader->expected) {
    case FIRST:
        if (close_level(reader))
            return true;
        return is_list(reader) ? read_value(reader) : read_name(reader);
    case NEXT: return is_list(reader) ? read_value(reader) : read_name(reader);
    case COLON: return read_byte(reader, ':', VALUE);
    case VALUE: return read_value(reader);
    case COMMA: return read_byte(reader, ',', NEXT) || close_level(reader);
    }
    return false;
}

/*
 * Reads up to the fault. Jackson has moved to an element that it cannot read, but not to a member's
 * value. Returns: whether there is one, within an object.
 */
static bool read_to_fault(struct reader *reader)
{
    struct broken_body *broken = reader->broken;
    skip_blanks(reader);
    if (reader->at == reader->text.len || reader->text.data[reader->at] != '{' || !open_level(reader, false))
        return false;
    broken->token = reader->at - 1;
    while (broken->depth > 0) {
        skip_blanks(reader);
        size_t at = reader->at;
        enum expected expected = reader->expected;
        bool more = at < reader->text.len;
        if (more && expected != COLON && read_token(reader)) {
            if (reader->text.data[at] != ',')
                broken->token = at;
            continue;
        }
        if (more && expected == COLON && read_token(reader))
            continue;
        if (more && is_list(reader) && expected != COMMA)
            broken->token = at;
        return broken->depth < LEVELS_MAX;
    }
    return false;
}

/*
 * Reads a body up to its fault.
 * Returns: whether a parser can read what precedes the fault: it is in an object, and not too deep.
 * Owns: `closed` is in the request's arena.
 */
static bool read_sound_part(struct request *request, struct slice body, struct broken_body *ret_broken)
{
    struct broken_body *broken = ret_broken;
    struct reader reader = {.text = body, .broken = broken};
    *broken = (struct broken_body){.fault = request->problem};
    if (!read_to_fault(&reader))
        return false;
    char *closed = arena_alloc(request->arena, broken->end + broken->depth);
    memcpy(closed, body.data, broken->end);
    for (size_t i = 0; i < broken->depth; i++)
        closed[broken->end + i] = broken->levels[broken->depth - 1 - i].is_list ? ']' : '}';
    broken->closed = slice_make(closed, broken->end + broken->depth);
    return true;
}

/* --- The answer --------------------------------------------------------------------------------------------------- */

/* Reads "1:20" or "1,\"col\":20" after a prefix. */
static bool read_place(struct slice text, const char *prefix, const char *between, size_t *ret_line, size_t *ret_column)
{
    uint64_t numbers[2] = {0};
    struct slice rest = text;
    if (!slice_starts_with(text, slice_from(prefix)))
        return false;
    rest = slice_from_offset(rest, strlen(prefix));
    for (int i = 0; i < 2; i++) {
        size_t digits = 0;
        for (; digits < rest.len && rest.data[digits] >= '0' && rest.data[digits] <= '9'; digits++)
            numbers[i] = numbers[i] * 10 + (uint64_t)(rest.data[digits] - '0');
        if (digits == 0 || digits > 12)
            return false;
        rest = slice_from_offset(rest, digits);
        if (i == 0 && !slice_starts_with(rest, slice_from(between)))
            return false;
        rest = slice_from_offset(rest, i == 0 ? strlen(between) : 0);
    }
    *ret_line = (size_t)numbers[0];
    *ret_column = (size_t)numbers[1];
    return true;
}

/* Returns: whether a problem names a place that precedes the added brackets. */
static bool precedes_fault(const struct problem *problem, const struct broken_body *broken, bool placeless)
{
    size_t line, column, end_line, end_column;
    json_line_column(broken->closed, broken->end, &end_line, &end_column);
    for (; problem != NULL; problem = problem->caused_by)
        if (read_place(problem->reason, "[", ":", &line, &column) ||
            read_place(problem->details, "\"line\":", ",\"col\":", &line, &column))
            return line < end_line || (line == end_line && column < end_column);
    return placeless;
}

/* A refusal of a number is one of a value, which is complete. */
static bool is_answer(const struct request *request, const struct broken_body *broken, bool placeless)
{
    return precedes_fault(&request->problem, broken, placeless || request->problem.type == PROBLEM_NUMBER_FORMAT);
}

static bool is_named(const struct broken_body *broken, size_t level, const char *name)
{
    return level < broken->depth && slice_is(broken->levels[level].name, name);
}

/* Makes "[L:C] [parser] failed to parse …" of the current problem, as its cause. */
static void wrap_problem(struct request *request, const struct broken_body *broken, enum problem_type type,
                         const char *parser, struct slice field)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    size_t line, column;
    json_line_column(broken->closed, broken->token, &line, &column);
    *cause = request->problem;
    if (field.len > 0)
        request_refuse(request, type, "[%zu:%zu] [%s] failed to parse field [%.*s]", line, column, parser,
                       SLICE_ARG(field));
    else
        request_refuse(request, type, "[%zu:%zu] [%s] failed to parse object", line, column, parser);
    if (type == PROBLEM_PARSING)
        problem_details(&request->problem, request->arena, "\"line\":%zu,\"col\":%zu", line, column);
    request->problem.caused_by = cause;
}

/* Wraps the error of JSON in that of the member at a level, by the parser of the object around it. */
static void wrap_member(struct request *request, const struct broken_body *broken, size_t level, const char *parser)
{
    wrap_problem(request, broken, PROBLEM_X_CONTENT_PARSE, parser, broken->levels[level].name);
}

static void wrap_script(struct request *request, const struct broken_body *broken, size_t level)
{
    if (level + 1 < broken->depth)
        wrap_member(request, broken, level + 1, "script");
    else
        wrap_problem(request, broken, PROBLEM_X_CONTENT_PARSE, "script", SLICE_NONE);
}

static void wrap_query(struct request *request, const struct broken_body *broken)
{
    for (size_t i = broken->depth; i-- > 2;) {
        if (is_named(broken, i - 1, "bool") && (is_named(broken, i, "must") || is_named(broken, i, "must_not") ||
                                                is_named(broken, i, "filter") || is_named(broken, i, "should"))) {
            wrap_member(request, broken, i, "bool");
        } else if (is_named(broken, i - 1, "ids") && is_named(broken, i, "values")) {
            wrap_member(request, broken, i, "ids");
            wrap_problem(request, broken, PROBLEM_PARSING, "ids", broken->levels[i].name);
        } else if (i == 2 && is_named(broken, 1, "highlight") && is_named(broken, 2, "fields")) {
            wrap_member(request, broken, i, "highlight");
        }
    }
}

static void wrap_update(struct request *request, const struct broken_body *broken)
{
    if (broken->depth < 2)
        return;
    if (is_named(broken, 1, "script"))
        wrap_script(request, broken, 1);
    wrap_member(request, broken, 1, "UpdateRequest");
}

static void wrap_aliases(struct request *request, const struct broken_body *broken)
{
    if (!is_named(broken, 1, "actions"))
        return;
    if (broken->depth > 4)
        wrap_problem(request, broken, PROBLEM_X_CONTENT_PARSE,
                     arena_printf(request->arena, "%.*s", SLICE_ARG(broken->levels[3].name)).data,
                     broken->levels[4].name);
    if (broken->depth > 3)
        wrap_member(request, broken, 3, "alias_action");
    wrap_member(request, broken, 1, "aliases");
}

static void wrap_reindex(struct request *request, const struct broken_body *broken)
{
    if (is_named(broken, 1, "script"))
        wrap_script(request, broken, 1);
    if (broken->depth > 1)
        wrap_member(request, broken, 1, "reindex");
}

/* Sets the error of JSON as the answer, as the cause of the members that were being parsed. */
static void report_fault(struct request *request, const struct broken_body *broken, enum broken_form form)
{
    request->problem = broken->fault;
    switch (form) {
    case BROKEN_PLAIN: break;
    case BROKEN_QUERY: wrap_query(request, broken); break;
    case BROKEN_UPDATE: wrap_update(request, broken); break;
    case BROKEN_ALIASES: wrap_aliases(request, broken); break;
    case BROKEN_REINDEX: wrap_reindex(request, broken); break;
    }
}

int broken_body_refuse(struct request *request, struct slice body, const struct broken_parser *parser,
                       struct broken_location *ret_location)
{
    struct broken_body broken;
    struct problem ignored;
    if (ret_location != NULL)
        *ret_location = (struct broken_location){1, 1};
    if (parser->dialect == DIALECT_5 || !read_sound_part(request, body, &broken) || broken.depth < parser->depth_min)
        return REQUEST_REFUSED;
    struct json_doc *doc = arena_zalloc(parser->arena, sizeof *doc);
    struct slice text = arena_copy(parser->arena, broken.closed); /* json_parse() may change it */
    bool refused = json_parse(parser->arena, text, parser->dialect, 0, doc, &ignored) == 0 &&
                   parser->read(parser->context, doc) != 0;
    if (!refused || !is_answer(request, &broken, parser->placeless))
        report_fault(request, &broken, parser->form);
    if (ret_location != NULL)
        json_line_column(broken.closed, broken.token, &ret_location->line, &ret_location->column);
    return REQUEST_REFUSED;
}
