/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the dialects. */
#include "script/script.h"

#include "base/check.h"

const char *script_lang_name(enum script_lang lang)
{
    REQUIRE(lang < SCRIPT_LANG_COUNT);
    return lang == SCRIPT_GROOVY ? "groovy" : "painless";
}

bool script_lang_from(struct slice name, enum script_lang *ret_lang)
{
    if (slice_is(name, "painless")) {
        *ret_lang = SCRIPT_PAINLESS;
        return true;
    }
    if (slice_is(name, "groovy")) {
        *ret_lang = SCRIPT_GROOVY;
        return true;
    }
    return false;
}
