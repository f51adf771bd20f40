/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of String and CharSequence that take a regular expression. */
#include "script/value/letter.h"
#include "script/library/method_args.h"
#include "script/value/regex.h"

static struct pattern *pattern_of(struct run *run, struct value v)
{
    return value_is(v, CLASS_PATTERN) ? (struct pattern *)v.object : regex_new(run, text_of(v), 0);
}

/* "$1" and "${name}" stand for groups, a backslash for what follows it. */
static bool append_replacement(struct run *run, struct text_buf *out, const struct matcher *matcher,
                               const struct text *by)
{
    for (size_t i = 0; i < by->length; i++) {
        uint16_t c = text_at(by, i);
        if (c == '\\' && i + 1 < by->length) {
            text_buf_unit(out, text_at(by, ++i));
        } else if (c == '$') {
            unsigned group = i + 1 < by->length && letter_is_digit(text_at(by, i + 1))
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

static bool group_value(struct run *run, const struct matcher *matcher, unsigned group, struct value *ret)
{
    int32_t begin = matcher->groups[group * 2], end = matcher->groups[group * 2 + 1];
    *ret = VALUE_NONE;
    return begin < 0 || give(ret, text_substring(run, matcher->input, (size_t)begin, (size_t)end));
}

static struct value groups_of(struct run *run, const struct matcher *matcher)
{
    struct seq *groups = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (unsigned i = 0; i <= matcher->pattern->groups; i++) {
        struct value group;
        if (!group_value(run, matcher, i, &group) || !seq_add(run, groups, group))
            return VALUE_NONE;
    }
    return value_of(groups);
}

/* Painless hands the matcher to a function, Groovy the match or, where the pattern has groups, a list of them all. */
static bool append_computed(struct run *run, struct text_buf *out, struct matcher *matcher, struct value function)
{
    struct value argument = value_of(matcher), result;
    if (run->groovy && matcher->pattern->groups > 0)
        argument = groups_of(run, matcher);
    else if (run->groovy && !group_value(run, matcher, 0, &argument))
        return false;
    return argument.kind != VALUE_NULL && run_invoke(run, function, &argument, 1, &result) &&
           value_append(run, result, out);
}

static bool replace_regex(struct run *run, struct value *a, bool all, struct value *ret)
{
    struct text *text = value_to_text(run, a[0]);
    struct pattern *pattern = text == NULL || a[1].kind == VALUE_NULL ? NULL : pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text);
    struct text_buf out;
    size_t done = 0;
    NEED(1);
    NEED(2);
    if (matcher == NULL)
        return false;
    text_buf_init(&out, run);
    for (bool found = true; found;) {
        if (!matcher_find(run, matcher, &found))
            return false;
        if (!found)
            break;
        text_buf_range(&out, text, done, (size_t)matcher->groups[0]);
        bool ok = value_is(a[2], CLASS_CLOSURE) ? append_computed(run, &out, matcher, a[2])
                                                : append_replacement(run, &out, matcher, value_to_text(run, a[2]));
        if (!ok)
            return false;
        done = (size_t)matcher->groups[1];
        found = all;
    }
    text_buf_range(&out, text, done, text->length);
    return give(ret, text_buf_done(&out));
}

static bool string_replace_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return replace_regex(run, a, true, ret);
}

static bool string_replace_first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return replace_regex(run, a, false, ret);
}

static bool string_matches(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    bool found;
    struct pattern *pattern = pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text_of(a[0]));
    return matcher != NULL && matcher_match_at(run, matcher, 0, true, &found) && give_boolean(ret, found);
}

static bool string_split(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct pattern *pattern = pattern_of(run, a[1]);
    return pattern != NULL && give(ret, regex_split(run, pattern, text_of(a[0]), n == 2 ? a[2].i : 0));
}

static bool string_find_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *found_all = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct pattern *pattern = pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text_of(a[0]));
    if (matcher == NULL)
        return false;
    for (;;) {
        struct value item;
        bool found;
        if (!matcher_find(run, matcher, &found))
            return false;
        if (!found)
            return give(ret, found_all);
        if (!group_value(run, matcher, 0, &item))
            return false;
        if (!seq_add(run, found_all, item))
            return false;
    }
}

static bool string_find(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    struct pattern *pattern = pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text_of(a[0]));
    if (matcher == NULL || !matcher_find(run, matcher, &found))
        return false;
    *ret = VALUE_NONE;
    return !found || group_value(run, matcher, 0, ret);
}

static const struct method string_methods[] = {
    M2("replaceAll", METHOD_GROOVY, STRING, STRING, CHAR_SEQUENCE, string_replace_all),
    M2("replaceAll", METHOD_GROOVY, STRING, STRING, CLOSURE, string_replace_all),
    M2("replaceFirst", METHOD_GROOVY, STRING, STRING, CHAR_SEQUENCE, string_replace_first),
    M2("replaceFirst", METHOD_GROOVY, STRING, STRING, CLOSURE, string_replace_first),
    M1("matches", METHOD_GROOVY, BOOLEAN, STRING, string_matches),
    M1("matches", METHOD_GROOVY, BOOLEAN, PATTERN, string_matches),
    M1("split", METHOD_GROOVY, STRING_ARRAY, STRING, string_split),
    M2("split", METHOD_GROOVY, STRING_ARRAY, STRING, INT, string_split),
    M1("findAll", METHOD_GROOVY, LIST, STRING, string_find_all),
    M1("findAll", METHOD_GROOVY, LIST, PATTERN, string_find_all),
    M1("find", METHOD_GROOVY, STRING, STRING, string_find),
    M1("find", METHOD_GROOVY, STRING, PATTERN, string_find),
};

static const struct method char_sequence_methods[] = {
    M2("replaceAll", METHOD_BOTH, STRING, PATTERN, FUNCTION, string_replace_all),
    M2("replaceAll", METHOD_GROOVY, STRING, PATTERN, CHAR_SEQUENCE, string_replace_all),
    M2("replaceFirst", METHOD_BOTH, STRING, PATTERN, FUNCTION, string_replace_first),
    M2("replaceFirst", METHOD_GROOVY, STRING, PATTERN, CHAR_SEQUENCE, string_replace_first),
};

const struct method_table methods_text_regex[] = {
    METHOD_TABLE(STRING, string_methods),
    METHOD_TABLE(CHAR_SEQUENCE, char_sequence_methods),
    {0, 0, NULL},
};
