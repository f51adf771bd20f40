/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Pattern and Matcher. */
#include "script/library/method_args.h"

#include "script/value/regex.h"

static struct pattern *pattern_of(struct value v)
{
    return (struct pattern *)v.object;
}

static struct matcher *matcher_of(struct value v)
{
    return (struct matcher *)v.object;
}

static bool pattern_matcher(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct text *input = value_to_text(run, a[1]);
    return input != NULL && give(ret, matcher_new(run, pattern_of(a[0]), input));
}

static bool pattern_source(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give(ret, pattern_of(a[0])->source);
}

static bool pattern_flags(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, pattern_of(a[0])->flags);
}

static bool pattern_split(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct text *input = value_to_text(run, a[1]);
    return input != NULL && give(ret, regex_split(run, pattern_of(a[0]), input, n == 2 ? a[2].i : 0));
}

static bool pattern_split_stream(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return pattern_split(run, a, n, ret) && give(ret, values_to_seq(run, *ret, CLASS_STREAM));
}

static bool pattern_quote(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    const struct text *text = text_of(a[1]);
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = 0; i < text->length; i++) {
        uint16_t c = text_at(text, i);
        if (c < 128 && c > ' ' && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z'))
            text_buf_unit(&out, '\\');
        text_buf_unit(&out, c);
    }
    return give(ret, text_buf_done(&out));
}

static bool pattern_compile(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return give(ret, regex_new(run, text_of(a[1]), n == 2 ? (int)a[2].i : 0));
}

static bool run_predicate(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    struct text *input = value_to_text(run, a[0]);
    struct matcher *matcher = input == NULL ? NULL : matcher_new(run, pattern_of(closure->held[0]), input);
    return matcher != NULL && matcher_find(run, matcher, &found) && give_boolean(ret, found);
}

static bool pattern_as_predicate(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_predicate, 1, a[0], VALUE_NONE);
    return true;
}

static bool matcher_matches(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    return matcher_match_at(run, matcher_of(a[0]), matcher_of(a[0])->from, true, &found) && give_boolean(ret, found);
}

static bool matcher_looking_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    return matcher_match_at(run, matcher_of(a[0]), matcher_of(a[0])->from, false, &found) && give_boolean(ret, found);
}

static bool matcher_find_next(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    bool found;
    if (n == 1) {
        if (a[1].i < 0 || a[1].i > matcher_of(a[0])->input->length)
            return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Illegal start index");
        matcher_of(a[0])->matched = false;
        matcher_of(a[0])->last_end = a[1].i;
    }
    return matcher_find(run, matcher_of(a[0]), &found) && give_boolean(ret, found);
}

static bool check_group(struct run *run, const struct matcher *matcher, int64_t group)
{
    if (!matcher->matched)
        return run_throw(run, CLASS_ILLEGAL_STATE_EXCEPTION, "No match found");
    if (group < 0 || group > matcher->pattern->groups)
        return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "No group %lld", (long long)group);
    return true;
}

static bool give_group(struct run *run, const struct matcher *matcher, int64_t group, struct value *ret)
{
    if (!check_group(run, matcher, group))
        return false;
    int32_t begin = matcher->groups[group * 2], end = matcher->groups[group * 2 + 1];
    *ret = VALUE_NONE;
    return begin < 0 || give(ret, text_substring(run, matcher->input, (size_t)begin, (size_t)end));
}

static bool matcher_group(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return give_group(run, matcher_of(a[0]), n == 1 ? a[1].i : 0, ret);
}

static bool matcher_named_group(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct slice wanted = text_utf8(run, text_of(a[1]));
    for (const struct regex_name *name = matcher_of(a[0])->pattern->names; name != NULL; name = name->next)
        if (slice_equal(name->name, wanted))
            return give_group(run, matcher_of(a[0]), name->group, ret);
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "No group with name <%.*s>", SLICE_ARG(wanted));
}

static bool matcher_start(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int64_t group = n == 1 ? a[1].i : 0;
    return check_group(run, matcher_of(a[0]), group) && give_int(ret, matcher_of(a[0])->groups[group * 2]);
}

static bool matcher_end(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int64_t group = n == 1 ? a[1].i : 0;
    return check_group(run, matcher_of(a[0]), group) && give_int(ret, matcher_of(a[0])->groups[group * 2 + 1]);
}

static bool matcher_group_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, matcher_of(a[0])->pattern->groups);
}

static bool matcher_reset(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    matcher_of(a[0])->matched = false;
    matcher_of(a[0])->last_end = -1;
    *ret = a[0];
    return true;
}

static bool replace(struct run *run, struct value *a, const char *method, struct value *ret)
{
    struct matcher *matcher = matcher_of(a[0]);
    struct value arguments[3] = {value_of(matcher->input), value_of(matcher->pattern), a[1]};
    struct method_query query = {CLASS_CHAR_SEQUENCE, slice_from(method), 2, METHOD_GROOVY};
    return method_find(&query)->call(run, arguments, 2, ret);
}

static bool matcher_replace_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return replace(run, a, "replaceAll", ret);
}

static bool matcher_replace_first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return replace(run, a, "replaceFirst", ret);
}

/* Groovy: how many matches, and m[i]: the i-th, with its groups as a list where it has any. */
static bool matcher_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct matcher copy = *matcher_of(a[0]);
    int64_t count = 0;
    copy.last_end = -1;
    for (bool found = true; found;) {
        if (!matcher_find(run, &copy, &found))
            return false;
        count += found;
    }
    return give_int(ret, count);
}

static bool matcher_get_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct matcher copy = *matcher_of(a[0]);
    copy.last_end = -1;
    copy.matched = false;
    for (int64_t i = 0; i <= a[1].i; i++) {
        bool found;
        if (!matcher_find(run, &copy, &found))
            return false;
        if (!found)
            return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION,
                             "index is out of range %lld..%lld (index = %lld)", (long long)-i, (long long)i - 1,
                             (long long)a[1].i);
    }
    if (copy.pattern->groups == 0)
        return give_group(run, &copy, 0, ret);
    struct seq *groups = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (unsigned i = 0; i <= copy.pattern->groups; i++) {
        struct value group;
        if (!give_group(run, &copy, i, &group) || !seq_add(run, groups, group))
            return false;
    }
    return give(ret, groups);
}

static const struct method pattern_methods[] = {
    M1("matcher", METHOD_BOTH, MATCHER, CHAR_SEQUENCE, pattern_matcher),
    M0("pattern", METHOD_BOTH, STRING, pattern_source),
    M0("flags", METHOD_BOTH, INT, pattern_flags),
    M1("split", METHOD_BOTH, STRING_ARRAY, CHAR_SEQUENCE, pattern_split),
    M2("split", METHOD_BOTH, STRING_ARRAY, CHAR_SEQUENCE, INT, pattern_split),
    M1("splitAsStream", METHOD_BOTH, STREAM, CHAR_SEQUENCE, pattern_split_stream),
    M0("asPredicate", METHOD_BOTH, PREDICATE, pattern_as_predicate),
    M1("quote", METHOD_BOTH | METHOD_STATIC, STRING, STRING, pattern_quote),
    M1("compile", METHOD_GROOVY | METHOD_STATIC, PATTERN, STRING, pattern_compile),
    M2("compile", METHOD_GROOVY | METHOD_STATIC, PATTERN, STRING, INT, pattern_compile),
};

static const struct method matcher_methods[] = {
    M0("matches", METHOD_BOTH, BOOLEAN, matcher_matches),
    M0("lookingAt", METHOD_BOTH, BOOLEAN, matcher_looking_at),
    M0("find", METHOD_BOTH, BOOLEAN, matcher_find_next),
    M1("find", METHOD_BOTH, BOOLEAN, INT, matcher_find_next),
    M0("group", METHOD_BOTH, STRING, matcher_group),
    M1("group", METHOD_BOTH, STRING, INT, matcher_group),
    M1("namedGroup", METHOD_PAINLESS, STRING, STRING, matcher_named_group),
    M1("group", METHOD_GROOVY, STRING, STRING, matcher_named_group),
    M0("groupCount", METHOD_BOTH, INT, matcher_group_count),
    M0("start", METHOD_BOTH, INT, matcher_start),
    M1("start", METHOD_BOTH, INT, INT, matcher_start),
    M0("end", METHOD_BOTH, INT, matcher_end),
    M1("end", METHOD_BOTH, INT, INT, matcher_end),
    M0("reset", METHOD_BOTH, MATCHER, matcher_reset),
    M1("replaceAll", METHOD_BOTH, STRING, STRING, matcher_replace_all),
    M1("replaceFirst", METHOD_BOTH, STRING, STRING, matcher_replace_first),
    M0("size", METHOD_GROOVY, INT, matcher_count),
    M0("getCount", METHOD_GROOVY, INT, matcher_count),
    M1("getAt", METHOD_GROOVY, DEF, INT, matcher_get_at),
};

const struct method_table methods_regex[] = {
    METHOD_TABLE(PATTERN, pattern_methods),
    METHOD_TABLE(MATCHER, matcher_methods),
    {0, 0, NULL},
};
