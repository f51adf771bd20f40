/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of String and CharSequence that take a regular expression. */
#include "script/value/character.h"
#include "script/library/method_args.h"
#include "script/value/regex.h"

static struct regex *regex_of(struct run *run, struct value v)
{
    return value_is(v, CLASS_PATTERN) ? (struct regex *)v.object : regex_new(run, text_of(v), 0);
}

/* Appends a replacement string: "$1" inserts a capture group, a backslash quotes the next
   character. */
static bool append_replacement(struct run *run, struct text_buf *out, const struct regex_matcher *matcher,
                               const struct text *by)
{
    for (size_t i = 0; i < by->length; i++) {
        uint16_t c = text_at(by, i);
        if (c == '\\' && i + 1 < by->length) {
            text_buf_unit(out, text_at(by, ++i));
        } else if (c == '$') {
            unsigned group = i + 1 < by->length && char_is_digit(text_at(by, i + 1))
                                 ? (unsigned)(text_at(by, i + 1) - '0')
                                 : REGEX_GROUPS_MAX + 1u;
            if (group > REGEX_GROUPS_MAX)
                return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Illegal group reference%s",
                                 i + 1 == by->length ? ": group index is missing" : "");
            if (group > matcher->pattern->groups)
                return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "No group %u", group);
            i++;
            if (matcher->groups[group * 2] >= 0)
                text_buf_range(out, matcher->input, (size_t)matcher->groups[group * 2],
                               (size_t)matcher->groups[group * 2 + 1]);
        } else {
            text_buf_unit(out, c);
        }
    }
    return true;
}

static struct value groups_of(struct run *run, const struct regex_matcher *matcher)
{
    struct seq *groups = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (unsigned i = 0; i <= matcher->pattern->groups; i++) {
        struct value group;
        if (!regex_matcher_group(run, matcher, i, &group) || !seq_add(run, groups, group))
            return VALUE_NONE;
    }
    return value_of(groups);
}

/* Appends a function's result. Painless passes the matcher; Groovy passes the match or, if the
   regex has groups, a list of all of them. */
static bool append_computed(struct run *run, struct text_buf *out, struct regex_matcher *matcher, struct value function)
{
    struct value argument = value_of(matcher), result;
    if (run->groovy && matcher->pattern->groups > 0)
        argument = groups_of(run, matcher);
    else if (run->groovy && !regex_matcher_group(run, matcher, 0, &argument))
        return false;
    return argument.kind != VALUE_NULL && run_invoke(run, function, &argument, 1, &result) &&
           value_append(run, result, out);
}

static bool replace_regex(struct call *call, struct value *ret)
{
    bool all = call->row->datum.number != 0;
    struct run *run = call->run;
    struct text *text = value_to_text(run, call->self);
    struct regex *pattern = text == NULL || call->args[0].kind == VALUE_NULL ? NULL : regex_of(run, call->args[0]);
    struct regex_matcher *matcher = pattern == NULL ? NULL : regex_matcher_new(run, pattern, text);
    struct text_buf out;
    size_t done = 0;
    NOT_NULL(0);
    NOT_NULL(1);
    if (matcher == NULL)
        return false;
    text_buf_init(&out, run);
    for (bool found = true; found;) {
        if (!regex_matcher_find(run, matcher, &found))
            return false;
        if (!found)
            break;
        text_buf_range(&out, text, done, (size_t)matcher->groups[0]);
        bool ok = value_is(call->args[1], CLASS_CLOSURE)
                      ? append_computed(run, &out, matcher, call->args[1])
                      : append_replacement(run, &out, matcher, value_to_text(run, call->args[1]));
        if (!ok)
            return false;
        done = (size_t)matcher->groups[1];
        found = all;
    }
    text_buf_range(&out, text, done, text->length);
    return give(ret, text_buf_done(&out));
}

static bool string_matches(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    bool found;
    struct regex *pattern = regex_of(run, call->args[0]);
    struct regex_matcher *matcher = pattern == NULL ? NULL : regex_matcher_new(run, pattern, text_of(call->self));
    return matcher != NULL && regex_matcher_match_at(run, matcher, 0, true, &found) && give_boolean(ret, found);
}

static bool string_split(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct regex *pattern = regex_of(call->run, call->args[0]);
    return pattern != NULL &&
           give(ret, regex_split(call->run, pattern, text_of(call->self), call->count == 2 ? call->args[1].i : 0));
}

static bool string_find_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *found_all = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct regex *pattern = regex_of(run, call->args[0]);
    struct regex_matcher *matcher = pattern == NULL ? NULL : regex_matcher_new(run, pattern, text_of(call->self));
    if (matcher == NULL)
        return false;
    for (;;) {
        struct value item;
        bool found;
        if (!regex_matcher_find(run, matcher, &found))
            return false;
        if (!found)
            return give(ret, found_all);
        if (!regex_matcher_group(run, matcher, 0, &item))
            return false;
        if (!seq_add(run, found_all, item))
            return false;
    }
}

static bool string_find(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    bool found;
    struct regex *pattern = regex_of(run, call->args[0]);
    struct regex_matcher *matcher = pattern == NULL ? NULL : regex_matcher_new(run, pattern, text_of(call->self));
    if (matcher == NULL || !regex_matcher_find(run, matcher, &found))
        return false;
    *ret = VALUE_NONE;
    return !found || regex_matcher_group(run, matcher, 0, ret);
}

static const struct method_row string_methods[] = {
    {"String replaceAll(String, CharSequence)", GROOVY, replace_regex, {true}},
    {"String replaceAll(String, Closure)", GROOVY, replace_regex, {true}},
    {"String replaceFirst(String, CharSequence)", GROOVY, replace_regex, {false}},
    {"String replaceFirst(String, Closure)", GROOVY, replace_regex, {false}},
    {"boolean matches(String)", GROOVY, string_matches},
    {"boolean matches(Pattern)", GROOVY, string_matches},
    {"String[] split(String)", GROOVY, string_split},
    {"String[] split(String, int)", GROOVY, string_split},
    {"List findAll(String)", GROOVY, string_find_all},
    {"List findAll(Pattern)", GROOVY, string_find_all},
    {"String find(String)", GROOVY, string_find},
    {"String find(Pattern)", GROOVY, string_find},
};

static const struct method_row char_sequence_methods[] = {
    {"String replaceAll(Pattern, Function)", BOTH, replace_regex, {true}},
    {"String replaceAll(Pattern, CharSequence)", GROOVY, replace_regex, {true}},
    {"String replaceFirst(Pattern, Function)", BOTH, replace_regex, {false}},
    {"String replaceFirst(Pattern, CharSequence)", GROOVY, replace_regex, {false}},
};

const struct method_table methods_text_regex[] = {
    METHOD_ROWS(STRING, string_methods),
    METHOD_ROWS(CHAR_SEQUENCE, char_sequence_methods),
    {0},
};
