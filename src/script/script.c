/* SPDX-License-Identifier: Apache-2.0 */
/* Compilation and the cache of scripts; see script.h. */
#include "script/script.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "script/run/script_error.h"
#include "script/run/interp.h"
#include "script/library/sha1.h"

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

struct script *script_ref(struct script *script)
{
    __atomic_add_fetch(&script->references, 1, __ATOMIC_RELAXED);
    return script;
}

void script_unref(struct script *script)
{
    if (script == NULL || __atomic_sub_fetch(&script->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    arena_deinit(&script->arena);
    mem_free(script);
}

struct slice script_class_name(const struct script *script)
{
    return script->hash;
}

static void arena_release(struct arena *arena)
{
    arena_deinit(arena);
}

static bool compile_painless(struct compiler *compiler, struct program *program)
{
    lex_painless(compiler);
    struct compile_error lexical = compiler->error;
    compiler->error = (struct compile_error){.set = false};
    struct function *main = lexical.set ? NULL : parse_painless(compiler);
    if (main == NULL) {
        /* A lexical error counts only if the parser would have reached it. */
        if (!compiler->error.set)
            explain_painless(compiler);
        if (!compiler->error.set)
            compiler->error = lexical;
        INSIST(compiler->error.set);
        return false;
    }
    program->main = main;
    program->functions = compiler->functions;
    if (!resolve_painless(compiler, main))
        return false;
    for (struct function *function = program->functions; function != NULL; function = function->next)
        if (!fold_painless(compiler, function))
            return false;
    if (!fold_painless(compiler, main))
        return false;
    error_offset_painless(compiler, program);
    return true;
}

static bool compile_groovy(struct compiler *compiler, struct program *program)
{
    lex_groovy(compiler);
    struct compile_error lexical = compiler->error;
    compiler->error = (struct compile_error){.set = false};
    struct function *main = parse_groovy(compiler);
    if (!compiler->error.set && (lexical.set || main == NULL))
        compiler->error = lexical;
    if (compiler->error.set || !resolve_groovy(compiler, main))
        return false;
    program->main = main;
    program->functions = compiler->functions;
    return true;
}

static struct script *script_new(enum script_lang lang, enum script_context context, struct slice source,
                                 struct slice name)
{
    char hash[41];
    struct script *script = mem_zalloc(sizeof *script);
    script->references = 1;
    script->lang = lang;
    script->context = context;
    script->limits = SCRIPT_LIMITS_DEFAULT;
    script->arena = ARENA_INIT;
    script->source = arena_copy(&script->arena, source);
    script->name = arena_copy(&script->arena, name);
    sha1_hex(source, hash);
    script->hash = arena_copy(&script->arena, slice_from(hash));
    return script;
}

/* Compiles in one dialect. Returns: 0; SCRIPT_REFUSED with *ret_problem. */
static int compile_as(struct script *script, bool bare_names, struct slice missing, struct arena *arena,
                      struct problem *ret_problem)
{
    tl_cleanup(arena_release) struct arena scratch = ARENA_INIT;
    struct compiler compiler = {.lang = script->lang,
                                .context = script->context,
                                .bare_names = bare_names,
                                .missing = missing,
                                .arena = &script->arena,
                                .scratch = &scratch,
                                .source = script->source,
                                .name = script->hash};
    bool groovy = script->lang == SCRIPT_GROOVY;
    bool ok = groovy ? compile_groovy(&compiler, &script->program) : compile_painless(&compiler, &script->program);
    if (!ok) {
        script_error_compile(&compiler, script->name, arena, ret_problem);
        return SCRIPT_REFUSED;
    }
    script->program.cache_count = compiler.cache_count;
    script->bare_names = bare_names;
    script->bare = compiler.bare;
    return 0;
}

static int check_size(struct slice source, struct arena *arena, struct problem *ret_problem)
{
    if (source.len <= SCRIPT_SOURCE_BYTES_MAX)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "exceeded max allowed inline script size in bytes [%zu] with size [%zu] for script [%.*s...]",
                SCRIPT_SOURCE_BYTES_MAX, source.len, 100, source.data);
    return SCRIPT_REFUSED;
}

int script_compile(enum script_lang lang, enum script_context context, struct slice source, struct slice name,
                   struct script **ret_script, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(lang < SCRIPT_LANG_COUNT && context < SCRIPT_CONTEXT_COUNT);
    if (check_size(source, arena, ret_problem) != 0)
        return SCRIPT_REFUSED;
    tl_cleanup(script_unrefp) struct script *script = script_new(lang, context, source, name);
    int r = compile_as(script, false, SLICE_NONE, arena, ret_problem);
    if (r == 0) {
        *ret_script = tl_steal(script);
        return 0;
    }
    if (lang != SCRIPT_DEFAULT)
        return r;
    /*
     * Not Painless: try again with bare parameter names and assert. If that fails too, the first
     * problem is kept.
     */
    struct problem second;
    tl_cleanup(script_unrefp) struct script *lenient = script_new(lang, context, source, name);
    if (compile_as(lenient, true, SLICE_NONE, arena, &second) != 0)
        return r;
    *ret_script = tl_steal(lenient);
    return 0;
}

void script__missing_name(const struct script *script, struct slice missing, struct arena *arena,
                          struct problem *ret_problem)
{
    tl_cleanup(script_unrefp) struct script *again =
        script_new(script->lang, script->context, script->source, script->name);
    int r = compile_as(again, true, missing, arena, ret_problem);
    INSIST(r == SCRIPT_REFUSED);
}

/*
 * The cache: a list from least to most recently used, and a map by language, context, name and
 * source.
 */

struct cached {
    struct list link;
    struct slice key;
    struct script *script;  /* NULL: it does not compile */
    struct problem problem; /* if it does not compile */
    struct arena arena;     /* of the problem */
    size_t bytes;           /* of all memory of the entry */
};

struct script_cache {
    struct map by_key;
    struct list used;
    size_t count_max;
    size_t bytes;
    struct script_limits limits;
};

struct script_cache *script_cache_new(size_t count_max, const struct script_limits *limits)
{
    REQUIRE(count_max > 0 && limits->steps_max > 0 && limits->memory_bytes_max > 0 && limits->depth_max > 0);
    struct script_cache *cache = mem_zalloc(sizeof *cache);
    cache->by_key = MAP_INIT;
    list_init(&cache->used);
    cache->count_max = count_max;
    cache->limits = *limits;
    return cache;
}

static void drop_cached(struct script_cache *cache, struct cached *cached)
{
    map_remove(&cache->by_key, cached->key);
    cache->bytes -= cached->bytes;
    budget_tally(BUDGET_SCRIPTS, -(ptrdiff_t)cached->bytes);
    list_remove(&cached->link);
    script_unref(cached->script);
    arena_deinit(&cached->arena);
    mem_free_slice(&cached->key);
    mem_free(cached);
}

struct script_cache *script_cache_free(struct script_cache *cache)
{
    if (cache == NULL)
        return NULL;
    while (!list_empty(&cache->used))
        drop_cached(cache, list_entry(cache->used.next, struct cached, link));
    map_deinit(&cache->by_key);
    mem_free(cache);
    return NULL;
}

/* Returns: a new entry without script and problem. */
static struct cached *add_cached(struct script_cache *cache, struct slice key)
{
    if (cache->by_key.count >= cache->count_max)
        drop_cached(cache, list_entry(cache->used.next, struct cached, link));
    struct cached *cached = mem_zalloc(sizeof *cached);
    cached->key = mem_dup_slice(key);
    cached->arena = ARENA_INIT;
    map_put(&cache->by_key, cached->key, cached);
    list_append(&cache->used, &cached->link);
    return cached;
}

/* Adds the entry's bytes to the cache's, and evicts older entries beyond the limits. */
static void count_cached(struct script_cache *cache, struct cached *cached)
{
    cached->bytes = sizeof *cached + 2 * cached->key.len + arena_held(&cached->arena) +
                    (cached->script == NULL ? 0 : sizeof *cached->script + arena_held(&cached->script->arena));
    cache->bytes += cached->bytes;
    budget_tally(BUDGET_SCRIPTS, (ptrdiff_t)cached->bytes);
    while (cache->bytes > SCRIPT_CACHE_BYTES_MAX && cache->used.next != &cached->link)
        drop_cached(cache, list_entry(cache->used.next, struct cached, link));
}

size_t script_cache_bytes(const struct script_cache *cache)
{
    return cache->bytes;
}

size_t script_cache_count(const struct script_cache *cache)
{
    return cache->by_key.count;
}

static int give_cached(struct cached *cached, struct script **ret_script, struct arena *arena,
                       struct problem *ret_problem)
{
    if (cached->script == NULL) {
        problem_copy(ret_problem, &cached->problem, arena);
        return SCRIPT_REFUSED;
    }
    *ret_script = script_ref(cached->script);
    return 0;
}

int script_cache_compile(struct script_cache *cache, enum script_lang lang, enum script_context context,
                         struct slice source, struct slice name, struct script **ret_script, struct arena *arena,
                         struct problem *ret_problem)
{
    struct slice key = arena_printf(arena, "%d %d %zu %.*s%.*s", (int)lang, (int)context, name.len, SLICE_ARG(name),
                                    SLICE_ARG(source));
    struct cached *cached = map_get(&cache->by_key, key);
    if (cached != NULL) {
        list_remove(&cached->link);
        list_append(&cache->used, &cached->link);
        return give_cached(cached, ret_script, arena, ret_problem);
    }
    int r = script_compile(lang, context, source, name, ret_script, arena, ret_problem);
    if (r < 0 || (r == SCRIPT_REFUSED && source.len > SCRIPT_SOURCE_BYTES_MAX))
        return r;
    cached = add_cached(cache, key);
    if (r == SCRIPT_REFUSED) {
        problem_copy(&cached->problem, ret_problem, &cached->arena);
        count_cached(cache, cached);
        return r;
    }
    (*ret_script)->limits = cache->limits;
    cached->script = script_ref(*ret_script);
    count_cached(cache, cached);
    return 0;
}
