/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Pattern and Matcher. */
#include "script/library/method_args.h"

#include "script/value/regex.h"

static struct regex *regex_of(struct value v)
{
    return (struct regex *)v.object;
}

static struct regex_matcher *regex_matcher_of(struct value v)
{
    return (struct regex_matcher *)v.object;
}

static bool pattern_matcher(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct text *input = value_to_text(call->run, call->args[0]);
    return input != NULL && give(ret, regex_matcher_new(call->run, regex_of(call->self), input));
}

static bool pattern_source(struct call *call, struct value *ret)
{
    return give(ret, regex_of(call->self)->source);
}

static bool pattern_flags(struct call *call, struct value *ret)
{
    return give_int(ret, regex_of(call->self)->flags);
}

static bool pattern_split(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct text *input = value_to_text(call->run, call->args[0]);
    return input != NULL &&
           give(ret, regex_split(call->run, regex_of(call->self), input, call->count == 2 ? call->args[1].i : 0));
}

static bool pattern_split_stream(struct call *call, struct value *ret)
{
    return pattern_split(call, ret) && give(ret, values_to_seq(call->run, *ret, CLASS_STREAM));
}

static bool pattern_quote(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    const struct text *text = text_of(call->args[0]);
    struct text_buf out;
    text_buf_init(&out, call->run);
    for (size_t i = 0; i < text->length; i++) {
        uint16_t c = text_at(text, i);
        if (c < 128 && c > ' ' && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z'))
            text_buf_unit(&out, '\\');
        text_buf_unit(&out, c);
    }
    return give(ret, text_buf_done(&out));
}

static bool pattern_compile(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, regex_new(call->run, text_of(call->args[0]), call->count == 2 ? (int)call->args[1].i : 0));
}

static bool run_predicate(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    struct text *input = value_to_text(run, a[0]);
    struct regex_matcher *matcher = input == NULL ? NULL : regex_matcher_new(run, regex_of(closure->held[0]), input);
    return matcher != NULL && regex_matcher_find(run, matcher, &found) && give_boolean(ret, found);
}

static bool pattern_as_predicate(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_predicate, 1, call->self, VALUE_NONE);
    return true;
}

static bool matcher_matches(struct call *call, struct value *ret)
{
    bool found;
    return regex_matcher_match_at(call->run, regex_matcher_of(call->self), regex_matcher_of(call->self)->from, true,
                                  &found) &&
           give_boolean(ret, found);
}

static bool matcher_looking_at(struct call *call, struct value *ret)
{
    bool found;
    return regex_matcher_match_at(call->run, regex_matcher_of(call->self), regex_matcher_of(call->self)->from, false,
                                  &found) &&
           give_boolean(ret, found);
}

static bool matcher_find_next(struct call *call, struct value *ret)
{
    bool found;
    if (call->count == 1) {
        if (call->args[0].i < 0 || call->args[0].i > regex_matcher_of(call->self)->input->length)
            return run_throw(call->run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Illegal start index");
        regex_matcher_of(call->self)->matched = false;
        regex_matcher_of(call->self)->last_end = call->args[0].i;
    }
    return regex_matcher_find(call->run, regex_matcher_of(call->self), &found) && give_boolean(ret, found);
}

static bool check_group(struct run *run, const struct regex_matcher *matcher, int64_t group)
{
    if (!matcher->matched)
        return run_throw(run, CLASS_ILLEGAL_STATE_EXCEPTION, "No match found");
    if (group < 0 || group > matcher->pattern->groups)
        return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "No group %lld", (long long)group);
    return true;
}

static bool give_group(struct run *run, const struct regex_matcher *matcher, int64_t group, struct value *ret)
{
    if (!check_group(run, matcher, group))
        return false;
    int32_t begin = matcher->groups[group * 2], end = matcher->groups[group * 2 + 1];
    *ret = VALUE_NONE;
    return begin < 0 || give(ret, text_substring(run, matcher->input, (size_t)begin, (size_t)end));
}

static bool matcher_group(struct call *call, struct value *ret)
{
    return give_group(call->run, regex_matcher_of(call->self), call->count == 1 ? call->args[0].i : 0, ret);
}

static bool matcher_named_group(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct slice wanted = text_utf8(run, text_of(call->args[0]));
    for (const struct regex_name *name = regex_matcher_of(call->self)->pattern->names; name != NULL; name = name->next)
        if (slice_equal(name->name, wanted))
            return give_group(run, regex_matcher_of(call->self), name->group, ret);
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "No group with name <%.*s>", SLICE_ARG(wanted));
}

static bool matcher_start(struct call *call, struct value *ret)
{
    int64_t group = call->count == 1 ? call->args[0].i : 0;
    return check_group(call->run, regex_matcher_of(call->self), group) &&
           give_int(ret, regex_matcher_of(call->self)->groups[group * 2]);
}

static bool matcher_end(struct call *call, struct value *ret)
{
    int64_t group = call->count == 1 ? call->args[0].i : 0;
    return check_group(call->run, regex_matcher_of(call->self), group) &&
           give_int(ret, regex_matcher_of(call->self)->groups[group * 2 + 1]);
}

static bool matcher_group_count(struct call *call, struct value *ret)
{
    return give_int(ret, regex_matcher_of(call->self)->pattern->groups);
}

static bool matcher_reset(struct call *call, struct value *ret)
{
    regex_matcher_of(call->self)->matched = false;
    regex_matcher_of(call->self)->last_end = -1;
    *ret = call->self;
    return true;
}

static bool matcher_replace(struct call *call, struct value *ret)
{
    const char *method = call->row->datum.text;
    struct regex_matcher *matcher = regex_matcher_of(call->self);
    struct value arguments[3] = {value_of(matcher->input), value_of(matcher->pattern), call->args[0]};
    struct method_lookup query = {CLASS_CHAR_SEQUENCE, slice_from(method), 2, METHOD_GROOVY};
    return method_call(method_find(&query), call->run, arguments, 2, ret);
}

/* Groovy: the number of matches; m[i] is match i, as a list of its groups if the regex has
   groups. */
static bool matcher_count(struct call *call, struct value *ret)
{
    struct regex_matcher copy = *regex_matcher_of(call->self);
    int64_t count = 0;
    copy.last_end = -1;
    for (bool found = true; found;) {
        if (!regex_matcher_find(call->run, &copy, &found))
            return false;
        count += found;
    }
    return give_int(ret, count);
}

static bool matcher_get_at(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct regex_matcher copy = *regex_matcher_of(call->self);
    copy.last_end = -1;
    copy.matched = false;
    for (int64_t i = 0; i <= call->args[0].i; i++) {
        bool found;
        if (!regex_matcher_find(run, &copy, &found))
            return false;
        if (!found)
            return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION,
                             "index is out of range %lld..%lld (index = %lld)", (long long)-i, (long long)i - 1,
                             (long long)call->args[0].i);
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

static const struct method_row pattern_methods[] = {
    {"Matcher matcher(CharSequence)", BOTH, pattern_matcher},
    {"String pattern()", BOTH, pattern_source},
    {"int flags()", BOTH, pattern_flags},
    {"String[] split(CharSequence)", BOTH, pattern_split},
    {"String[] split(CharSequence, int)", BOTH, pattern_split},
    {"Stream splitAsStream(CharSequence)", BOTH, pattern_split_stream},
    {"Predicate asPredicate()", BOTH, pattern_as_predicate},
    {"static String quote(String)", BOTH, pattern_quote},
    {"static Pattern compile(String)", GROOVY, pattern_compile},
    {"static Pattern compile(String, int)", GROOVY, pattern_compile},
};

static const struct method_row matcher_methods[] = {
    {"boolean matches()", BOTH, matcher_matches},
    {"boolean lookingAt()", BOTH, matcher_looking_at},
    {"boolean find()", BOTH, matcher_find_next},
    {"boolean find(int)", BOTH, matcher_find_next},
    {"String group()", BOTH, matcher_group},
    {"String group(int)", BOTH, matcher_group},
    {"String namedGroup(String)", PAINLESS, matcher_named_group},
    {"String group(String)", GROOVY, matcher_named_group},
    {"int groupCount()", BOTH, matcher_group_count},
    {"int start()", BOTH, matcher_start},
    {"int start(int)", BOTH, matcher_start},
    {"int end()", BOTH, matcher_end},
    {"int end(int)", BOTH, matcher_end},
    {"Matcher reset()", BOTH, matcher_reset},
    {"String replaceAll(String)", BOTH, matcher_replace, {.text = "replaceAll"}},
    {"String replaceFirst(String)", BOTH, matcher_replace, {.text = "replaceFirst"}},
    {"int size()", GROOVY, matcher_count},
    {"int getCount()", GROOVY, matcher_count},
    {"def getAt(int)", GROOVY, matcher_get_at},
};

const struct method_table methods_regex[] = {
    METHOD_ROWS(PATTERN, pattern_methods),
    METHOD_ROWS(MATCHER, matcher_methods),
    {0},
};
