/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path-hierarchy fields: mapping/README.md, invariant 8.
 *
 * Goal: a field has no entries exactly if those of a full-path field find its documents. Method: a
 * table of mappings with the field that must cover each; changes of a mapping, through the
 * catalog's form; for random texts over few characters, the tokens of the analyzer against the
 * documents named by ranges.
 */
#include "mapping_lib.h"

#include "base/rand.h"
#include "mapping/analysis.h"
#include "mapping/entry_key.h"
#include "mapping/entry_range.h"

static const char settings[] =
    "{\"analysis\":{\"tokenizer\":{\"skipping\":{\"type\":\"path_hierarchy\",\"skip\":1},"
    "\"backwards\":{\"type\":\"path_hierarchy\",\"reverse\":true},"
    "\"replacing\":{\"type\":\"path_hierarchy\",\"replacement\":\"-\"},"
    "\"dots\":{\"type\":\"path_hierarchy\",\"delimiter\":\".\"}},"
    "\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"},\"lower\":{\"tokenizer\":\"path_hierarchy\",\"filter\":"
    "["
    "\"lowercase\"]},\"skipping\":{\"tokenizer\":\"skipping\"},\"backwards\":{\"tokenizer\":\"backwards\"},"
    "\"replacing\":{\"tokenizer\":\"replacing\"},\"dots\":{\"tokenizer\":\"dots\"}},"
    "\"normalizer\":{\"low\":{\"type\":\"custom\",\"filter\":[\"lowercase\"]}}}}";

#define P(properties) "{\"properties\":{" properties "}}"
#define TREE(analyzer) "{\"type\":\"text\",\"analyzer\":\"" analyzer "\"}"
#define KEYWORD(parameters) "{\"type\":\"keyword\"" parameters "}"
#define WITH_TREE(type, parameters, analyzer) \
    "\"p\":{\"type\":\"" type "\"" parameters ",\"fields\":{\"t\":" TREE(analyzer) "}}"

static void assert_covered_by(const struct mapping *mapping, const char *path, const char *full_path,
                              const char *context)
{
    const struct mapping_field *field = mapping_field(mapping, slice_from(path));
    const struct mapping_field *found_by = field_covering(field);
    if ((full_path == NULL) != (field->full_path_field == NULL) ||
        (full_path != NULL && !slice_is(found_by->path, full_path)))
        fail_msg("%s: %s is found by %.*s", context, path, SLICE_ARG(found_by->path));
    if (full_path != NULL) {
        assert_int_equal(field->number, FIELD_NUMBER_NONE);
        assert_false(field_has_entries(field));
        assert_true(field_is_covered(field));
    }
}

/* Goal: a full-path field covers a path-hierarchy field with these parameters and no others. */
static void test_path_hierarchy_depends_on_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *field;
        const char *full_path; /* NULL: the field has its own entries */
    } rows[] = {
        {P(WITH_TREE("keyword", "", "paths")), "p.t", "p"},
        {P(WITH_TREE("keyword", "", "dots")), "p.t", "p"},
        {P(WITH_TREE("keyword", ",\"ignore_above\":2147483647", "paths")), "p.t", "p"},
        {P(WITH_TREE("keyword", ",\"null_value\":\"/none\"", "paths")), "p.t", "p"},
        {P(WITH_TREE("keyword", ",\"copy_to\":\"q\"", "paths")), "p.t", "p"},
        {P(WITH_TREE("path", "", "paths")), "p.t", "p"},
        {P("\"o\":{\"properties\":{" WITH_TREE("keyword", "", "paths") "}}"), "o.p.t", "o.p"},
        {P("\"p\":{\"type\":\"text\",\"analyzer\":\"paths\",\"fields\":{\"k\":" KEYWORD("") "}}"), "p", "p.k"},
        {P("\"p\":{\"type\":\"text\",\"fields\":{\"k\":" KEYWORD("") ",\"t\":" TREE("paths") "}}"), "p.t", "p.k"},
        {P("\"p\":{\"type\":\"text\",\"fields\":{\"k\":" KEYWORD(",\"ignore_above\":9") ",\"l\":" KEYWORD(
             "") ",\"t\":" TREE("paths") "}}"),
         "p.t", "p.l"},
        {P(WITH_TREE("keyword", "", "paths") ",\"a\":{\"type\":\"keyword\",\"copy_to\":\"p\"}"), "p.t", "p"},
        /* Another analysis. */
        {P(WITH_TREE("keyword", "", "skipping")), "p.t", NULL},
        {P(WITH_TREE("keyword", "", "backwards")), "p.t", NULL},
        {P(WITH_TREE("keyword", "", "replacing")), "p.t", NULL},
        {P(WITH_TREE("keyword", "", "lower")), "p.t", NULL},
        {P(WITH_TREE("keyword", "", "standard")), "p.t", NULL},
        /* No member of the group has all texts. */
        {P(WITH_TREE("keyword", ",\"ignore_above\":100", "paths")), "p.t", NULL},
        {P(WITH_TREE("keyword", ",\"normalizer\":\"low\"", "paths")), "p.t", NULL},
        {P(WITH_TREE("keyword", ",\"index\":false", "paths")), "p.t", NULL},
        {P(WITH_TREE("text", "", "paths")), "p.t", NULL},
        {P("\"p\":" TREE("paths") ",\"k\":" KEYWORD("")), "p", NULL},
        {P(WITH_TREE("keyword", "", "paths")), "p", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena = ARENA_INIT;
        struct mapping *mapping = make_mapping(&arena, settings, "_doc", rows[i].body, DIALECT_7);
        assert_covered_by(mapping, rows[i].field, rows[i].full_path, rows[i].body);
        mapping_unref(mapping);
        arena_deinit(&arena);
    }
}

/* Returns: the changed mapping, encoded and decoded. Owns: takes over `mapping`. */
static struct mapping *change(struct arena *arena, struct mapping *mapping, const char *type, const char *body)
{
    struct mapping *next, *decoded;
    struct problem problem = {0};
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    if (mapping_merge(mapping, slice_from(type), parse_json(arena, body), DIALECT_5, false, FIELDS_COUNTED_FIRST, arena,
                      &next, &problem) != 0)
        fail_msg("%s refused: %.*s", body, SLICE_ARG(problem.reason));
    mapping_encode(next, &buf);
    assert_int_equal(mapping_decode(buf_as_slice(&buf), &decoded), 0);
    buf_deinit(&buf);
    mapping_unref(next);
    mapping_unref(mapping);
    return decoded;
}

/*
 * Goal: a change that ends the coverage leaves a field that is searched by scan; a change that
 * begins it applies at once.
 */
static void test_path_hierarchy_follows_mapping_changes(void **state)
{
    (void)state;
    static const struct {
        const char *first, *type, *second;
        const char *full_path; /* after the change */
        bool found;            /* whether entries cover the field after the change */
    } rows[] = {
        {P(WITH_TREE("keyword", "", "paths")), "_doc", P("\"n\":{\"type\":\"long\"}"), "p", true},
        /* A path-hierarchy field added later is covered: the entries of full paths exist. */
        {P("\"p\":" KEYWORD("")), "_doc", P(WITH_TREE("keyword", "", "paths")), "p", true},
        /* A full-path field added later is not complete. */
        {P("\"p\":" TREE("paths")), "_doc",
         P("\"p\":{\"type\":\"text\",\"analyzer\":\"paths\",\"fields\":{\"k\":" KEYWORD("") "}}"), NULL, true},
        /*
         * Nor is one that begins to ignore values, nor the field itself, which had no entries
         * before.
         */
        {P(WITH_TREE("keyword", "", "paths")), "_doc", P(WITH_TREE("keyword", ",\"ignore_above\":10", "paths")), NULL,
         false},
        {P(WITH_TREE("keyword", ",\"ignore_above\":10", "paths")), "_doc", P(WITH_TREE("keyword", "", "paths")), NULL,
         true},
        /* Another type must meet the conditions too. */
        {P(WITH_TREE("keyword", "", "paths")), "other", P("\"q\":" KEYWORD("")), "p", true},
        {P(WITH_TREE("keyword", "", "paths")), "other", P("\"p\":" KEYWORD("")), "p", true},
        {P(WITH_TREE("keyword", "", "paths")), "other", P("\"p\":" KEYWORD(",\"ignore_above\":10")), NULL, false},
        {P(WITH_TREE("keyword", "", "paths")), "other", P(WITH_TREE("keyword", "", "dots")), NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena = ARENA_INIT;
        struct mapping *mapping = make_mapping(&arena, settings, "_doc", rows[i].first, DIALECT_5);
        mapping = change(&arena, mapping, rows[i].type, rows[i].second);
        const char *path = mapping_field(mapping, SLICE_LIT("p.t")) != NULL ? "p.t" : "p";
        assert_covered_by(mapping, path, rows[i].full_path, rows[i].second);
        if (field_is_covered(mapping_field(mapping, slice_from(path))) != rows[i].found)
            fail_msg("%s: %s is %sfound", rows[i].second, path, rows[i].found ? "not " : "");
        mapping_unref(mapping);
        arena_deinit(&arena);
    }
}

enum { TYPES = 3, MEMBERS = 3, TRIALS = 3000 };

/* Returns: field `p` of a type, or its multi-field `member` - 1; NULL: none. */
static const struct mapping_field *member_at(const struct mapping *mapping, size_t type, size_t member)
{
    static const char *const names[] = {"a", "b", "c"};
    const struct mapping_field *root = mapping_type_at(mapping, type)->root;
    for (size_t i = 0; i < root->child_count; i++) {
        const struct mapping_field *field = root->children[i];
        for (size_t j = 0; j <= field->multi_count && slice_is(field->name, "p"); j++) {
            const struct mapping_field *found = j == 0 ? field : field->multi[j - 1];
            if (member == 0 ? j == 0 : j > 0 && slice_is(found->name, names[member - 1]))
                return found;
        }
    }
    return NULL;
}

static bool splits(const struct mapping_field *field, char *ret_delimiter)
{
    *ret_delimiter = 0;
    return field->type == FIELD_TEXT && analyzer_is_path(field->analyzer, ret_delimiter);
}

/* Returns: whether a member has full paths in all types, as the definition says. */
static bool is_full(const struct mapping *mapping, size_t member)
{
    for (size_t i = 0; i < mapping_type_count(mapping); i++) {
        const struct mapping_field *field = member_at(mapping, i, member);
        if (member_at(mapping, i, 0) != NULL &&
            (field == NULL || field->type != FIELD_KEYWORD || field->ignore_above != FIELD_IGNORE_ABOVE_NONE))
            return false;
    }
    return true;
}

/* Returns: the number of the member that covers one of a type; MEMBERS + 1: none. By all pairs and types. */
static size_t covering(const struct mapping *mapping, size_t type, size_t member, size_t copied)
{
    const struct mapping_field *field = member_at(mapping, type, member);
    char delimiter, other;
    if (!splits(field, &delimiter) || (member > 0 && member == copied))
        return MEMBERS + 1;
    for (size_t i = 0; i < mapping_type_count(mapping); i++) {
        const struct mapping_field *own = member_at(mapping, i, member);
        if (own != NULL && (!splits(own, &other) || other != delimiter))
            return MEMBERS + 1;
    }
    for (size_t i = 0; i <= MEMBERS; i++)
        if (member_at(mapping, type, i) != NULL && is_full(mapping, i))
            return i;
    return MEMBERS + 1;
}

static void append_field(struct buf *body, struct rng *rng)
{
    static const char *const kinds[] = {KEYWORD(""),     KEYWORD(""),   KEYWORD(",\"ignore_above\":9"),
                                        TREE("paths"),   TREE("paths"), TREE("dots"),
                                        TREE("standard")};
    const char *kind = kinds[rng_below(rng, sizeof kinds / sizeof *kinds)];
    buf_printf(body, "%.*s", (int)strlen(kind) - 1, kind);
}

/* Goal: the result of looking at each field once is that of the definition, which compares all pairs in all types. */
static void test_path_hierarchy_equals_definition(void **state)
{
    size_t covered = 0;
    struct rng rng;
    (void)state;
    rng_init(&rng, 1);
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct arena arena = ARENA_INIT;
        size_t copied = rng_below(&rng, 4 * MEMBERS);
        struct mapping *mapping = make_mapping(&arena, settings, "t0", NULL, DIALECT_5);
        size_t types = 1 + rng_below(&rng, TYPES);
        for (size_t i = 0; i < types; i++) {
            struct buf body = BUF_INIT(BUF_UNLIMITED);
            struct mapping *next;
            struct problem problem = {0};
            buf_printf(&body, "{\"properties\":{\"q\":{\"type\":\"keyword\",\"copy_to\":\"%s\"}",
                       copied == 1   ? "p.a"
                       : copied == 2 ? "p.b"
                       : copied == 3 ? "p.c"
                                     : "p");
            if (rng_below(&rng, 5) > 0) {
                buf_lit(&body, ",\"p\":");
                append_field(&body, &rng);
                size_t fields = 0;
                for (size_t j = 0; j < MEMBERS; j++) {
                    if (rng_below(&rng, 4) == 0)
                        continue;
                    buf_printf(&body, "%s\"%c\":", fields++ == 0 ? ",\"fields\":{" : ",", (char)('a' + j));
                    append_field(&body, &rng);
                    buf_byte(&body, '}');
                }
                buf_printf(&body, "%s}", fields > 0 ? "}" : "");
            }
            buf_append(&body, "}}", sizeof "}}");
            char name[] = {'t', (char)('0' + i), '\0'};
            if (mapping_merge(mapping, slice_from(name), parse_json(&arena, body.data), DIALECT_5, false,
                              FIELDS_COUNTED_FIRST, &arena, &next, &problem) == 0) {
                mapping_unref(mapping);
                mapping = next;
            }
            buf_deinit(&body);
        }
        for (size_t i = 0; i < mapping_type_count(mapping); i++) {
            for (size_t j = 0; j <= MEMBERS; j++) {
                const struct mapping_field *field = member_at(mapping, i, j);
                size_t expected = field == NULL || member_at(mapping, i, 0)->multi_count == 0
                                      ? MEMBERS + 1
                                      : covering(mapping, i, j, copied);
                covered += expected <= MEMBERS;
                if (field != NULL &&
                    field->full_path_field != (expected <= MEMBERS ? member_at(mapping, i, expected) : NULL))
                    fail_msg("trial %zu, type %zu, member %zu", trial, i, j);
            }
        }
        mapping_unref(mapping);
        arena_deinit(&arena);
    }
    assert_in_range(covered, TRIALS / 10, 4 * TRIALS);
}

/* Goal: thousands of keywords and path hierarchies of one field are not compared pair by pair, in any type. */
static void test_path_hierarchy_of_large_group(void **state)
{
    enum { EACH = 4900 };
    static const char limit[] = "{\"index.mapping.total_fields.limit\":10000,\"index.analysis.analyzer.paths\":{"
                                "\"tokenizer\":\"path_hierarchy\"}}";
    struct arena arena = ARENA_INIT;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    buf_lit(&body, "{\"properties\":{\"p\":{\"type\":\"text\",\"fields\":{");
    for (size_t i = 0; i < EACH; i++)
        buf_printf(&body, "%s\"k%zu\":" KEYWORD("") ",\"t%zu\":" TREE("paths"), i == 0 ? "" : ",", i, i);
    buf_append(&body, "}}}}", sizeof "}}}}");
    struct mapping *mapping = make_mapping(&arena, limit, "t1", body.data, DIALECT_5);
    assert_covered_by(mapping, "p.t4899", "p.k0", "one type");
    mapping = change(&arena, mapping, "t2", P("\"p\":{\"type\":\"text\"}"));
    assert_null(mapping_field(mapping, SLICE_LIT("p.t4899"))->full_path_field);
    mapping_unref(mapping);
    buf_deinit(&body);
    arena_deinit(&arena);
}

/*
 * Goal: in a catalog of an older version, which wrote path-hierarchy entries, full paths are used.
 */
static void test_path_hierarchy_reads_older_catalog(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *mapping;
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    struct slice stored =
        arena_printf(&arena,
                     "{\"settings\":%s,\"types\":[{\"name\":\"_doc\",\"mapping\":%s}],\"fields\":[[\"p.t\","
                     "true],[\"p\",true]],\"path\":\"p\"}",
                     settings, P(WITH_TREE("keyword", "", "paths")));
    assert_int_equal(mapping_decode(stored, &mapping), 0);
    assert_covered_by(mapping, "p.t", "p", "catalog");
    assert_int_equal(mapping_field(mapping, SLICE_LIT("p"))->number, 1);
    assert_null(mapping_field_by_number(mapping, 0));
    assert_int_equal(mapping_field_count(mapping), 2);
    mapping_encode(mapping, &again); /* to the older version, the field is not complete */
    struct slice fields = SLICE_LIT("\"fields\":[[\"p.t\",false],[\"p\",true]]");
    bool found = false;
    for (size_t i = 0; i + fields.len <= again.len && !found; i++)
        found = memcmp(again.data + i, fields.data, fields.len) == 0;
    assert_true(found);
    buf_deinit(&again);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

/* --- Tokens against ranges ---------------------------------------------------------------------------------------- */

struct token_list {
    struct slice items[600];
    size_t count;
};

static bool take_token(void *context, const struct analysis_token *token)
{
    struct token_list *list = context;
    list->items[list->count++] = token->text;
    return true;
}

/*
 * Returns: a text over few characters: the delimiter, its neighbours in byte order, a two-byte
 * letter.
 */
static struct slice random_text(struct rng *rng, struct arena *arena, bool long_ones)
{
    static const char *const parts[] = {"/", "/", ".", "0", "a", "b", "\xc3\xa4"};
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    size_t stem = long_ones && rng_below(rng, 2) ? ENTRY_VALUE_CHARACTERS_MAX - 3 : 0;
    for (size_t i = 0; i < stem; i++)
        buf_byte(&buf, i % 50 == 0 ? '/' : 'x');
    for (size_t i = rng_below(rng, 7); i > 0; i--)
        buf_slice(&buf, slice_from(parts[rng_below(rng, sizeof parts / sizeof *parts)]));
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

/* Returns: whether a range contains the entry of a full path, by the rules of entry_key.h alone. */
static bool range_names(const struct entry_range *range, struct slice path)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED), low = BUF_INIT(BUF_UNLIMITED), high = BUF_INIT(BUF_UNLIMITED);
    bool named;
    (void)entry_value_encode(&key, &(struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = path});
    if (range->prefix) {
        bool cut = entry_key_prefix(&low, range->low->bytes);
        if (cut)
            buf_append(&low, "\0\2", 2);
        named = slice_starts_with(buf_as_slice(&key), buf_as_slice(&low));
    } else {
        if (range->low != NULL)
            (void)entry_value_encode(&low, range->low);
        if (range->high != NULL)
            (void)entry_value_encode(&high, range->high);
        named = slice_compare(buf_as_slice(&low), buf_as_slice(&key)) <= 0 &&
                (range->high == NULL || slice_compare(buf_as_slice(&key), buf_as_slice(&high)) <= 0);
    }
    buf_deinit(&key);
    buf_deinit(&low);
    buf_deinit(&high);
    return named;
}

static bool any_names(const struct entry_range *ranges, size_t count, struct slice path)
{
    for (size_t i = 0; i < count; i++) {
        if (range_names(&ranges[i], path))
            return true;
    }
    return false;
}

static bool has_token(const struct token_list *tokens, struct slice token)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (slice_equal(tokens->items[i], token))
            return true;
    }
    return false;
}

static bool has_token_between(const struct token_list *tokens, const struct field_value *low,
                              const struct field_value *high)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if ((low == NULL || slice_compare(tokens->items[i], low->bytes) >= 0) &&
            (high == NULL || slice_compare(tokens->items[i], high->bytes) <= 0))
            return true;
    }
    return false;
}

static bool has_token_from(const struct token_list *tokens, struct slice prefix)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (slice_starts_with(tokens->items[i], prefix))
            return true;
    }
    return false;
}

static void check_text(const struct mapping_field *field, struct slice text, struct slice asked, struct slice other,
                       struct arena *arena)
{
    struct token_list tokens = {.count = 0};
    struct entry_range *ranges;
    struct field_value value = {.kind = FIELD_VALUE_BYTES, .bytes = asked},
                       bound = {.kind = FIELD_VALUE_BYTES, .bytes = other};
    bool exact = text.len <= ENTRY_VALUE_CHARACTERS_MAX; /* longer ones are truncated, so ranges may name more */
    analyzer_run(field->analyzer, text, arena, take_token, &tokens);

    size_t count = entry_ranges_of_value(1, field, &value, arena, &ranges);
    bool named = any_names(ranges, count, text), wanted = has_token(&tokens, asked);
    if (exact ? named != wanted : wanted && !named)
        fail_msg("%.*s: the directory %.*s is%s named", SLICE_ARG(text), SLICE_ARG(asked), named ? "" : " not");

    struct entry_range prefix = entry_range_of_prefix(1, field, asked.len > 0 ? &value : NULL);
    if (has_token_from(&tokens, asked) && !range_names(&prefix, text))
        fail_msg("%.*s: the prefix %.*s does not name it", SLICE_ARG(text), SLICE_ARG(asked));

    const struct field_value *lows[] = {&value, NULL, &value}, *highs[] = {&bound, &bound, NULL};
    for (int i = 0; i < 3; i++) {
        struct entry_range bounds = {.index = 1, .low = lows[i], .high = highs[i], .low_exclusive = true};
        count = entry_ranges_between(&bounds, field, arena, &ranges);
        if (has_token_between(&tokens, lows[i], highs[i]) && !any_names(ranges, count, text))
            fail_msg("%.*s: between %.*s and %.*s, form %d, it is not named", SLICE_ARG(text), SLICE_ARG(asked),
                     SLICE_ARG(other), i);
    }
}

static void test_path_hierarchy_ranges_name_documents_with_token(void **state)
{
    (void)state;
    static const char *const analyzers[] = {P(WITH_TREE("keyword", "", "paths")), P(WITH_TREE("keyword", "", "dots"))};
    for (size_t a = 0; a < 2; a++) {
        struct arena arena = ARENA_INIT, texts = ARENA_INIT;
        struct mapping *mapping = make_mapping(&arena, settings, "_doc", analyzers[a], DIALECT_7);
        const struct mapping_field *field = mapping_field(mapping, SLICE_LIT("p.t"));
        struct rng rng;
        rng_init(&rng, a);
        for (int round = 0; round < 30000; round++) {
            bool long_ones = round % 8 == 0;
            check_text(field, random_text(&rng, &texts, long_ones), random_text(&rng, &texts, long_ones),
                       random_text(&rng, &texts, long_ones), &texts);
            arena_reset(&texts);
        }
        mapping_unref(mapping);
        arena_deinit(&texts);
        arena_deinit(&arena);
    }
}

/* Goal: other fields have one range, of the entries of their own values. */
static void test_entry_ranges_of_other_fields(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct mapping *mapping =
        make_mapping(&arena, settings, "_doc", P("\"n\":{\"type\":\"long\"},\"k\":" KEYWORD("")), DIALECT_7);
    struct field_value one = {.kind = FIELD_VALUE_I64, .i64 = 1}, nine = {.kind = FIELD_VALUE_I64, .i64 = 9};
    const struct mapping_field *n = mapping_field(mapping, SLICE_LIT("n"));
    struct entry_range *ranges;
    assert_int_equal(entry_ranges_of_value(3, n, &one, &arena, &ranges), 1);
    assert_true(ranges->index == 3 && ranges->field == n->number && ranges->low == &one && ranges->high == &one);
    struct entry_range bounds = {.index = 3, .low = &one, .high = &nine, .high_exclusive = true};
    assert_int_equal(entry_ranges_between(&bounds, n, &arena, &ranges), 1);
    assert_true(ranges->high == &nine && ranges->high_exclusive && !ranges->low_exclusive);
    struct entry_range every = entry_range_of_prefix(3, mapping_field(mapping, SLICE_LIT("k")), NULL);
    assert_true(every.low == NULL && every.high == NULL && !every.prefix);
    mapping_unref(mapping);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_hierarchy_depends_on_parameters),
        cmocka_unit_test(test_path_hierarchy_follows_mapping_changes),
        cmocka_unit_test(test_path_hierarchy_equals_definition),
        cmocka_unit_test(test_path_hierarchy_of_large_group),
        cmocka_unit_test(test_path_hierarchy_reads_older_catalog),
        cmocka_unit_test(test_path_hierarchy_ranges_name_documents_with_token),
        cmocka_unit_test(test_entry_ranges_of_other_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
