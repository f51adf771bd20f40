/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of both kinds: the input's first line is the pattern, the rest a text.
 *
 * Lucene's, as queries have them (regexp, wildcard, prefix, fuzzy): a text without anything special fits itself, asking
 * twice is answered alike, and the work is charged: an account with few steps ends it. Java's, as scripts have them:
 * found, replaced, split within the bounds of a run, twice alike.
 */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/buf.h"
#include "json/json.h"
#include "query/bound_query.h"
#include "script/script.h"

enum { TEXT_BYTES_MAX = 2048, STEPS_MAX = 200000 };
#define SECONDS_MAX 5 /* of the processor, for STEPS_MAX steps, under sanitizers, on a loaded machine */

typedef bool fits_function(const struct term_pattern *pattern, struct slice text, struct account *account);

static void check_fits(fits_function *fits, const struct term_pattern *pattern, struct slice text)
{
    struct account one = {.steps_max = STEPS_MAX, .poll_at = STEPS_MAX}, two = one,
                   few = {.steps_max = 1, .poll_at = 1};
    double begin = cpu_seconds();
    bool fitting = fits(pattern, text, &one);
    check_cpu(begin, SECONDS_MAX);
    MUST(fits(pattern, text, &two) == fitting && one.steps == two.steps);
    (void)fits(pattern, text, &few);
}

static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789 ", text.data[i]) == NULL || text.data[i] == '\0')
            return false;
    return true;
}

static void try_lucene(struct slice pattern_text, struct slice text)
{
    struct arena arena = ARENA_INIT;
    struct slice reason = SLICE_NONE;
    const struct term_pattern *regexp = term_pattern_new_regexp(&arena, pattern_text, false, &reason);
    const struct term_pattern *plain = term_pattern_new(&arena, pattern_text, false);
    MUST((regexp == NULL) == (reason.data != NULL));
    if (regexp != NULL)
        check_fits(term_pattern_regexp, regexp, text);
    check_fits(term_pattern_wildcard, plain, text);
    check_fits(term_pattern_prefix, plain, text);
    check_fits(term_pattern_fuzzy, term_pattern_new_fuzzy(&arena, pattern_text, 2, 0, true), text);
    if (is_plain(pattern_text)) {
        MUST(regexp != NULL && term_pattern_regexp(regexp, pattern_text, NULL) &&
             term_pattern_wildcard(plain, pattern_text, NULL));
        MUST(term_pattern_regexp(regexp, text, NULL) == slice_equal(pattern_text, text));
    }
    arena_deinit(&arena);
}

static const char source[] =
    "def m = java.util.regex.Pattern.compile(p).matcher(t); def n = 0; while (m.find() && n < 50) { n += 1 }\n"
    "[n, t ==~ p, t.replaceAll(p, 'x').size(), t.split(p).size(), t.replaceFirst(p, '\\$0')].toString()";

static int run_java(const struct script *script, struct slice params, struct arena *arena, struct slice *ret_shown)
{
    static const struct script_limits limits = {.steps_max = STEPS_MAX, .memory_bytes_max = 4 << 20, .depth_max = 64};
    struct script_eval value = {.params = params};
    struct problem problem = {0};
    double begin = cpu_seconds();
    int r = script_run_value(script, &limits, arena, &value, &problem);
    check_cpu(begin, SECONDS_MAX);
    MUST(arena_held(arena) < (16 << 20));
    MUST(r == 0 || problem.type != PROBLEM_NONE);
    *ret_shown = r == 0 ? value.display : problem.caused_by == NULL ? problem.reason : problem.caused_by->reason;
    return r;
}

static void try_java(struct slice pattern, struct slice text)
{
    static struct script *script;
    struct arena first = ARENA_INIT, second = ARENA_INIT;
    struct buf params = BUF_INIT(BUF_UNLIMITED);
    struct problem problem = {0};
    struct slice one, two;
    struct json_doc doc;
    if (script == NULL)
        MUST(script_compile(SCRIPT_GROOVY, SCRIPT_FOR_TEST, slice_from(source), SLICE_NONE, &script, &first,
                            &problem) == 0);
    buf_printf(&params, "{\"p\":");
    buf_json_string(&params, pattern);
    buf_printf(&params, ",\"t\":");
    buf_json_string(&params, text);
    buf_printf(&params, "}");
    if (json_parse(&first, buf_as_slice(&params), DIALECT_7, 0, &doc, &problem) == 0) { /* it is UTF-8 */
        int r = run_java(script, buf_as_slice(&params), &first, &one);
        MUST(run_java(script, buf_as_slice(&params), &second, &two) == r && slice_equal(one, two));
    }
    buf_deinit(&params);
    arena_deinit(&first);
    arena_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_make(data, size);
    size_t end = slice_find_byte(input, '\n');
    struct slice pattern = slice_make(input.data, end), text = slice_from_offset(input, end + 1);
    if (text.len > TEXT_BYTES_MAX || pattern.len > TEXT_BYTES_MAX)
        return 0;
    try_lucene(pattern, text);
    try_java(pattern, text);
    return 0;
}
