/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of strings beyond those in methods_text.c: by line, by match, by character. */
#include "script/library/methods_groovy.h"
#include "script/run/invoke.h"
#include "script/value/range.h"
#include "script/value/regex.h"

#include <ctype.h>

static struct text *text_self(struct run *run, struct value self)
{
    return value_is(self, CLASS_STRING) ? text_of(self) : value_to_text(run, self);
}

/*
 * Returns: the lines without their ends, which are
 * , \r or \r
 * ; NULL with a throwable in the run.
 */
static struct seq *lines_of(struct run *run, struct value self)
{
    struct text *text = text_self(run, self);
    struct seq *lines = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (size_t begin = 0; text != NULL && begin < text->length;) {
        size_t end = begin;
        while (end < text->length && text_at(text, end) != '\n' && text_at(text, end) != '\r')
            end++;
        struct text *line = text_substring(run, text, begin, end);
        if (line == NULL || !run_step(run, 1 + (end - begin) / 64) || !seq_add(run, lines, value_of(line)))
            return NULL;
        bool both = end + 1 < text->length && text_at(text, end) == '\r' && text_at(text, end + 1) == '\n';
        begin = end + (both ? 2 : 1);
    }
    return text == NULL ? NULL : lines;
}

static bool read_lines(struct call *call, struct value *ret)
{
    return give(ret, lines_of(call->run, call->self));
}

/* Calls a closure with each line and, if it has two parameters, the line number. Gives the
   closure's last result. */
static bool each_line(struct call *call, struct value *ret)
{
    const struct seq *lines = lines_of(call->run, call->self);
    int64_t from = call->count == 2 ? call->args[0].i : 0;
    unsigned count = function_arity(call_last(call)) == 2 ? 2 : 1;
    *ret = VALUE_NONE;
    for (size_t i = 0; lines != NULL && i < lines->count; i++) {
        struct value arguments[2] = {seq_item(lines, i), value_int(from + (int64_t)i)};
        if (!run_invoke(call->run, call_last(call), arguments, count, ret))
            return false;
    }
    return lines != NULL;
}

/* Matches: a string or, if the regex has groups, a list of its groups */

static struct regex_matcher *match_with(struct run *run, struct value self, struct value pattern)
{
    struct text *text = text_self(run, self);
    if (text == NULL || pattern.kind == VALUE_NULL)
        return NULL;
    struct regex *compiled =
        value_is(pattern, CLASS_PATTERN) ? (struct regex *)pattern.object : regex_new(run, text_self(run, pattern), 0);
    return compiled == NULL ? NULL : regex_matcher_new(run, compiled, text);
}

static bool match_value(struct run *run, const struct regex_matcher *matcher, struct value *ret)
{
    struct seq *groups = seq_new(run, CLASS_ARRAY_LIST, 0);
    if (matcher->pattern->groups == 0)
        return regex_matcher_group(run, matcher, 0, ret);
    *ret = value_of(groups);
    for (unsigned i = 0; i <= matcher->pattern->groups; i++) {
        struct value group;
        if (!regex_matcher_group(run, matcher, i, &group) || !seq_add(run, groups, group))
            return false;
    }
    return true;
}

static bool no_pattern(struct run *run)
{
    return run->thrown == NULL ? run_throw_npe(run, "java.lang.CharSequence.toString()") : false;
}

/* Calls the closure in args[1] with each match; appends its results to `all` unless that is
   NULL. */
static bool call_matches(struct call *call, struct seq *all)
{
    struct run *run = call->run;
    struct regex_matcher *matcher = match_with(run, call->self, call->args[0]);
    struct value match;
    bool found;
    if (matcher == NULL)
        return no_pattern(run);
    while (regex_matcher_find(run, matcher, &found)) {
        if (!found)
            return true;
        if (!match_value(run, matcher, &match) || !run_invoke(run, call->args[1], &match, 1, &match) ||
            (all != NULL && !seq_add(run, all, match)))
            return false;
    }
    return false;
}

static bool each_match(struct call *call, struct value *ret)
{
    *ret = call->self;
    return call_matches(call, NULL);
}

static bool groovy_text_find(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct regex_matcher *matcher = match_with(run, call->self, call->args[0]);
    struct value match;
    bool found;
    *ret = value_of(matcher);
    if (matcher == NULL)
        return no_pattern(run);
    if (!regex_matcher_find(run, matcher, &found))
        return false;
    *ret = VALUE_NONE;
    return !found || (match_value(run, matcher, &match) && run_invoke(run, call->args[1], &match, 1, ret));
}

static bool find_all(struct call *call, struct value *ret)
{
    struct seq *all = seq_new(call->run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(all);
    return call_matches(call, all);
}

/* Characters */

static bool to_set(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    *ret = value_of(dict_new(run, CLASS_LINKED_HASH_SET));
    return groovy_add_all(run, *ret, value_of(values_to_seq(run, call->self, CLASS_ARRAY_LIST)));
}

static bool cut_while(struct call *call, struct value *ret)
{
    bool take = call->row->datum.number != 0;
    struct run *run = call->run;
    struct text *text = text_of(call->self);
    size_t cut = 0;
    for (bool holds = true; cut < text->length; cut++) {
        struct text *one = text_substring(run, text, cut, cut + 1);
        struct value item = value_of(one);
        if (one == NULL || !invoke_test(run, call->args[0], &item, 1, &holds))
            return false;
        if (!holds)
            break;
    }
    return give(ret, text_substring(run, text, take ? 0 : cut, take ? cut : text->length));
}

static bool is_all_whitespace(struct call *call, struct value *ret)
{
    const struct text *text = text_of(call->self);
    bool all = run_step(call->run, text->length / 64);
    for (size_t i = 0; i < text->length && all; i++)
        all = text_at(text, i) < 128 && isspace(text_at(text, i));
    return call->run->thrown == NULL && give_boolean(ret, all);
}

static bool string_next(struct call *call, struct value *ret)
{
    return range_step(call->run, call->self, false, ret);
}

static bool string_previous(struct call *call, struct value *ret)
{
    return range_step(call->run, call->self, true, ret);
}

static const struct method_row string_methods[] = {
    {"List readLines()", GROOVY, read_lines},
    {"def eachLine(Closure)", GROOVY, each_line},
    {"def eachLine(int, Closure)", GROOVY, each_line},
    {"String eachMatch(CharSequence, Closure)", GROOVY, each_match},
    {"String eachMatch(Pattern, Closure)", GROOVY, each_match},
    {"String find(CharSequence, Closure)", GROOVY, groovy_text_find},
    {"String find(Pattern, Closure)", GROOVY, groovy_text_find},
    {"List findAll(CharSequence, Closure)", GROOVY, find_all},
    {"List findAll(Pattern, Closure)", GROOVY, find_all},
    {"Set toSet()", GROOVY, to_set},
    {"String takeWhile(Closure)", GROOVY, cut_while, {true}},
    {"String dropWhile(Closure)", GROOVY, cut_while, {false}},
    {"boolean isAllWhitespace()", GROOVY, is_all_whitespace},
    {"String next()", GROOVY, string_next},
    {"String previous()", GROOVY, string_previous},
};

const struct method_table methods_groovy_text[] = {
    METHOD_ROWS(STRING, string_methods),
    {0},
};
