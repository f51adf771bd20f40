/* SPDX-License-Identifier: Apache-2.0 */
/* Names of indices and aliases: Elasticsearch's rules, in its order and words. */
#include "base/letter_case.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"

/* Returns: the text of the rule that a name violates; NULL: none. */
static const char *broken_rule(struct slice name, enum dialect dialect)
{
    static const char forbidden[] = " \"*\\<|,>/?";

    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] != '\0' && strchr(forbidden, name.data[i]) != NULL)
            return "must not contain the following characters [ , \", *, \\, <, |, ,, >, /, ?]";
    if (name.len == 0)
        return "must not be empty";
    if (slice_find_byte(name, '#') < name.len)
        return "must not contain '#'";
    if (dialect == DIALECT_7 && slice_find_byte(name, ':') < name.len)
        return "must not contain ':'";
    if (name.data[0] == '_' || name.data[0] == '-' || name.data[0] == '+')
        return "must not start with '_', '-', or '+'";
    return NULL;
}

/* Returns: one code point of valid UTF-8, and advances *at. */
static uint32_t next_code_point(struct slice text, size_t *at)
{
    const unsigned char *bytes = (const unsigned char *)text.data + *at;
    unsigned len = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    uint32_t code = len == 1 ? bytes[0] : bytes[0] & (0xffu >> (len + 1));

    for (unsigned i = 1; i < len && *at + i < text.len; i++)
        code = code << 6 | (bytes[i] & 0x3fu);
    *at += len;
    return code;
}

static bool has_upper(struct slice name)
{
    for (size_t at = 0; at < name.len;)
        if (case_is_upper(LETTER_CASE_NAMES, next_code_point(name, &at)))
            return true;
    return false;
}

static int refuse_name(struct slice name, const char *what, enum problem_type type, struct arena *arena,
                       struct problem *ret_problem, const char *rule)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    problem_set(ret_problem, arena, type, "Invalid %s name [%.*s], %s", what, SLICE_ARG(name), rule);
    buf_json_string(&quoted, name);
    problem_details(ret_problem, arena, "\"index_uuid\":\"_na_\",\"index\":%.*s", SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return CATALOG_REFUSED;
}

/* Returns: the text of the rule for names of indices and aliases that a name violates, also in `arena`; NULL: none. */
static const char *broken_common_rule(struct slice name, enum dialect dialect, struct arena *arena)
{
    const char *rule = broken_rule(name, dialect);

    if (rule != NULL)
        return rule;
    if (name.len > CATALOG_NAME_BYTES_MAX) /* of an alias in these words, too */
        return arena_printf(arena, "index name is too long, (%zu > %d)", name.len, CATALOG_NAME_BYTES_MAX).data;
    return slice_is(name, ".") || slice_is(name, "..") ? "must not be '.' or '..'" : NULL;
}

int catalog_check_index_name(struct slice name, enum dialect dialect, struct arena *arena, struct problem *ret_problem)
{
    const char *rule = broken_common_rule(name, dialect, arena);

    if (rule == NULL && has_upper(name))
        rule = "must be lowercase";
    return rule == NULL ? 0 : refuse_name(name, "index", PROBLEM_INVALID_INDEX_NAME, arena, ret_problem, rule);
}

int catalog_check_alias_name(const struct catalog *catalog, struct slice name, enum dialect dialect,
                             struct arena *arena, struct problem *ret_problem)
{
    const char *rule = broken_common_rule(name, dialect, arena);

    if (rule != NULL) {
        problem_set(ret_problem, arena, PROBLEM_INVALID_ALIAS_NAME, "Invalid alias name [%.*s]: %s", SLICE_ARG(name),
                    rule);
        return CATALOG_REFUSED;
    }
    if (catalog_index(catalog, name) == NULL)
        return 0;
    return refuse_name(name, "alias", PROBLEM_INVALID_ALIAS_NAME, arena, ret_problem,
                       "an index exists with the same name as the alias");
}
