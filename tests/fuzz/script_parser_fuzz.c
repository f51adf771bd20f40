/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parsers of the script language, in each language and for three uses: what does not compile is refused in its
 * shape, and the same way every time.
 */
#include "fuzz.h"

#include "script/script.h"

static struct slice compile(enum script_lang lang, enum script_context context, struct slice source,
                            struct arena *arena)
{
    struct script *script = NULL;
    struct problem problem = {0};
    int r = script_compile(lang, context, source, SLICE_NONE, &script, arena, &problem);
    script_unref(script);
    if (r == 0)
        return SLICE_LIT("");
    MUST(r == SCRIPT_REFUSED && problem.type != PROBLEM_NONE && problem.reason.len > 0);
    return problem.caused_by == NULL ? problem.reason : problem.caused_by->reason;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum script_context contexts[] = {SCRIPT_FOR_UPDATE, SCRIPT_FOR_FILTER, SCRIPT_FOR_TEST};
    struct slice source = slice_make(data, size);
    for (enum script_lang lang = 0; lang < SCRIPT_LANG_COUNT; lang++)
        for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
            struct arena first = ARENA_INIT, second = ARENA_INIT;
            struct slice reason = compile(lang, contexts[i], source, &first);
            MUST(slice_equal(reason, compile(lang, contexts[i], source, &second)));
            arena_deinit(&first);
            arena_deinit(&second);
        }
    return 0;
}
