/* SPDX-License-Identifier: Apache-2.0 */
/* Names of indices and aliases: Elasticsearch's rules, in its order and words. */
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

/*
 * Ranges of upper-case letters. In a paired range upper and lower case alternate, upper case first.
 */
static const struct {
    uint32_t first, last;
    bool pairs;
} upper_ranges[] = {
    {'A', 'Z', false},       {0xc0, 0xd6, false},     {0xd8, 0xde, false},       {0x100, 0x137, true},
    {0x139, 0x148, true},    {0x14a, 0x177, true},    {0x178, 0x178, false},     {0x179, 0x17e, true},
    {0x1cd, 0x1dc, true},    {0x1de, 0x1ef, true},    {0x1f8, 0x21f, true},      {0x222, 0x233, true},
    {0x386, 0x386, false},   {0x388, 0x38f, false},   {0x391, 0x3a1, false},     {0x3a3, 0x3ab, false},
    {0x3d8, 0x3ef, true},    {0x400, 0x42f, false},   {0x460, 0x481, true},      {0x48a, 0x4bf, true},
    {0x4c1, 0x4ce, true},    {0x4d0, 0x52f, true},    {0x531, 0x556, false},     {0x10a0, 0x10c5, false},
    {0x13a0, 0x13f5, false}, {0x1e00, 0x1e95, true},  {0x1ea0, 0x1eff, true},    {0x2160, 0x216f, false},
    {0x24b6, 0x24cf, false}, {0x2c00, 0x2c2e, false}, {0x2c80, 0x2ce3, true},    {0xa640, 0xa66d, true},
    {0xa722, 0xa72f, true},  {0xff21, 0xff3a, false}, {0x10400, 0x10427, false}, {0x1e900, 0x1e921, false},
};

static bool is_upper(uint32_t code)
{
    for (size_t i = 0; i < sizeof(upper_ranges) / sizeof(upper_ranges[0]); i++)
        if (code >= upper_ranges[i].first && code <= upper_ranges[i].last)
            return !upper_ranges[i].pairs || (code - upper_ranges[i].first) % 2 == 0;
    return false;
}

static bool has_upper(struct slice name)
{
    for (size_t at = 0; at < name.len;)
        if (is_upper(next_code_point(name, &at)))
            return true;
    return false;
}

static int refuse(struct slice name, const char *what, enum problem_type type, struct arena *arena,
                  struct problem *ret_problem, const char *rule)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    problem_set(ret_problem, arena, type, "Invalid %s name [%.*s], %s", what, SLICE_ARG(name), rule);
    buf_json_string(&quoted, name);
    problem_details(ret_problem, arena, "\"index_uuid\":\"_na_\",\"index\":%.*s", SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return CATALOG_REFUSED;
}

static int check_name(struct slice name, const char *what, enum problem_type type, enum dialect dialect,
                      struct arena *arena, struct problem *ret_problem)
{
    const char *rule = broken_rule(name, dialect);

    if (rule != NULL)
        return refuse(name, what, type, arena, ret_problem, rule);
    if (name.len > CATALOG_NAME_BYTES_MAX) {
        struct slice words =
            arena_printf(arena, "%s name is too long, (%zu > %d)", what, name.len, CATALOG_NAME_BYTES_MAX);
        return refuse(name, what, type, arena, ret_problem, words.data);
    }
    if (slice_is(name, ".") || slice_is(name, ".."))
        return refuse(name, what, type, arena, ret_problem, "must not be '.' or '..'");
    return 0;
}

int catalog_check_index_name(struct slice name, enum dialect dialect, struct arena *arena, struct problem *ret_problem)
{
    int r = check_name(name, "index", PROBLEM_INVALID_INDEX_NAME, dialect, arena, ret_problem);

    if (r == 0 && has_upper(name))
        return refuse(name, "index", PROBLEM_INVALID_INDEX_NAME, arena, ret_problem, "must be lowercase");
    return r;
}

int catalog_check_alias_name(const struct catalog *catalog, struct slice name, enum dialect dialect,
                             struct arena *arena, struct problem *ret_problem)
{
    const struct catalog_index *index = catalog_index(catalog, name);
    int r = check_name(name, "alias", PROBLEM_INVALID_ALIAS_NAME, dialect, arena, ret_problem);

    if (r == 0 && index != NULL)
        return refuse(name, "alias", PROBLEM_INVALID_ALIAS_NAME, arena, ret_problem,
                      "an index exists with the same name as the alias");
    return r;
}
