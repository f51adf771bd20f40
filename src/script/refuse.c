/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses every script, with Elasticsearch's words for scripts that are switched off, in a program that is built without the
 * language. Everything else works without it.
 */
#include "script/script.h"

#include "base/alloc.h"
#include "base/check.h"

int script_compile(enum script_lang lang, enum script_context context, struct slice source, struct slice name,
                   struct script **ret_script, struct arena *arena, struct problem *ret_problem)
{
    (void)context, (void)source, (void)name, (void)ret_script;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "script_lang not supported [%s]", script_lang_name(lang));
    return SCRIPT_REFUSED;
}

int script_cache_compile(struct script_cache *cache, enum script_lang lang, enum script_context context, struct slice source,
                         struct slice name, struct script **ret_script, struct arena *arena, struct problem *ret_problem)
{
    (void)cache;
    return script_compile(lang, context, source, name, ret_script, arena, ret_problem);
}

struct script *script_ref(struct script *script)
{
    return script;
}

void script_unref(struct script *script)
{
    REQUIRE(script == NULL); /* none was ever compiled */
}

int script_run_update(const struct script *script, const struct script_limits *limits, struct arena *arena,
                      struct script_update *update, struct problem *ret_problem)
{
    (void)script, (void)limits, (void)arena, (void)update, (void)ret_problem;
    UNREACHABLE();
}

int script_run_value(const struct script *script, const struct script_limits *limits, struct arena *arena,
                     struct script_value *value, struct problem *ret_problem)
{
    (void)script, (void)limits, (void)arena, (void)value, (void)ret_problem;
    UNREACHABLE();
}

struct script_cache *script_cache_new(size_t count_max)
{
    (void)count_max;
    return mem_alloc(1);
}

struct script_cache *script_cache_free(struct script_cache *cache)
{
    mem_free(cache);
    return NULL;
}
