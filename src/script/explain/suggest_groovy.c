/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's "Possible solutions": suggests existing methods for a call of a missing one.
 *
 * The distance of a method is the edit distance of its name plus the edit distance of its parameter
 * types. Groovy lists the six nearest methods within a limit. Candidates here are the methods
 * available to scripts, a subset of Java's.
 */
#include "script/run/dispatch_groovy.h"

enum { EDIT = 10, SWAP = 5, CASE = 5, FAR = 50 };

#define SUGGESTIONS_MAX 6
/* Script steps charged for each candidate. */
#define STEPS 4
/* Limit of the name's length and of the argument count; no suggestions are made beyond it. */
#define LENGTH_MAX 40u

struct method_suggestion {
    const struct method *method;
    unsigned distance;
};

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static char lower_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool other_case(char a, char b)
{
    return (a >= 'a' && a <= 'z') != (b >= 'a' && b <= 'z');
}

static unsigned letter_cost(char a, char b)
{
    if (other_case(a, b))
        return lower_ascii(a) == lower_ascii(b) ? CASE : EDIT;
    return a == b ? 0 : EDIT;
}

/* An edit distance's operand: a sequence of letters or, if `letters` is NULL, of types. */
struct sequence {
    const char *letters;
    const type_id *types;
    unsigned count;
};

static unsigned replace_cost(const struct sequence *s, unsigned i, const struct sequence *t, unsigned j)
{
    return s->letters != NULL ? letter_cost(s->letters[i], t->letters[j]) : s->types[i] == t->types[j] ? 0 : EDIT;
}

/* Returns: the cost of a transposition: s[i - 1], s[i] equal t[j], t[j - 1]. Otherwise EDIT +
   EDIT, which is never cheaper than two replacements. */
static unsigned swap_cost(const struct sequence *s, unsigned i, const struct sequence *t, unsigned j)
{
    if (s->letters == NULL)
        return s->types[i] == t->types[j - 1] && s->types[i - 1] == t->types[j] ? SWAP : EDIT + EDIT;
    char a = s->letters[i], b = s->letters[i - 1], c = t->letters[j - 1], d = t->letters[j];
    if (lower_ascii(a) != lower_ascii(c) || lower_ascii(b) != lower_ascii(d))
        return EDIT + EDIT;
    return SWAP + (other_case(a, c) ? CASE : 0) + (other_case(b, d) ? CASE : 0);
}

static unsigned edit_distance(const struct sequence *s, const struct sequence *t)
{
    unsigned rows[3][LENGTH_MAX + 1], n = s->count, m = t->count;
    if (n == 0 || m == 0)
        return n + m;
    for (unsigned i = 0; i <= n; i++)
        rows[1][i] = i * EDIT;
    for (unsigned j = 1; j <= m; j++) {
        rows[0][0] = j * EDIT;
        for (unsigned i = 1; i <= n; i++) {
            unsigned edits = smaller(rows[0][i - 1], rows[1][i]) + EDIT;
            rows[0][i] = smaller(edits, rows[1][i - 1] + replace_cost(s, i - 1, t, j - 1));
            if (i > 1 && j > 1)
                rows[0][i] = smaller(rows[0][i], rows[2][i - 2] + swap_cost(s, i - 1, t, j - 1));
        }
        memcpy(rows[2], rows[1], sizeof rows[1]);
        memcpy(rows[1], rows[0], sizeof rows[0]);
    }
    return rows[1][n];
}

static unsigned method_distance(const struct method *method, const struct sequence *name, const struct sequence *types)
{
    type_id boxed[METHOD_PARAMETERS_MAX];
    struct sequence other = {.letters = method->name, .count = (unsigned)strlen(method->name)};
    struct sequence parameters = {.types = boxed, .count = method->count};
    unsigned longer = other.count > name->count ? other.count - name->count : name->count - other.count;
    if (other.count > LENGTH_MAX || longer * EDIT > FAR)
        return FAR + 1;
    for (unsigned i = 0; i < method->count; i++)
        boxed[i] = type_boxed(method->parameters[i] == CLASS_DEF ? (type_id)CLASS_OBJECT : method->parameters[i]);
    return edit_distance(name, &other) + edit_distance(types, &parameters);
}

static bool same_shape(const struct method *a, const struct method *b)
{
    return strcmp(a->name, b->name) == 0 && a->count == b->count &&
           memcmp(a->parameters, b->parameters, a->count * sizeof *a->parameters) == 0;
}

/* Inserts a suggestion in order of distance, after those of equal distance; drops the farthest
   beyond SUGGESTIONS_MAX. */
static void insert_suggestion(struct method_suggestion suggestions[SUGGESTIONS_MAX], unsigned *count,
                              struct method_suggestion suggestion)
{
    unsigned at = *count;
    for (unsigned i = 0; i < *count; i++)
        if (same_shape(suggestions[i].method, suggestion.method))
            return;
    while (at > 0 && suggestions[at - 1].distance > suggestion.distance)
        at--;
    if (at == SUGGESTIONS_MAX)
        return;
    unsigned moved = (*count < SUGGESTIONS_MAX ? *count : SUGGESTIONS_MAX - 1) - at;
    memmove(suggestions + at + 1, suggestions + at, moved * sizeof *suggestions);
    suggestions[at] = suggestion;
    *count += *count < SUGGESTIONS_MAX;
}

static struct slice show_suggestions(struct run *run, const struct method_suggestion *suggestions, unsigned count)
{
    char name[TYPE_NAME_MAX];
    struct slice text = count == 0 ? SLICE_LIT("") : SLICE_LIT("\nPossible solutions: ");
    for (unsigned i = 0; i < count; i++) {
        const struct method *method = suggestions[i].method;
        text = run_printf(run, "%.*s%s%s(", SLICE_ARG(text), i > 0 ? ", " : "", method->name);
        for (unsigned k = 0; k < method->count; k++) {
            type_id type = method->parameters[k] == CLASS_DEF ? (type_id)CLASS_OBJECT : method->parameters[k];
            text = run_printf(run, "%.*s%s%s", SLICE_ARG(text), k > 0 ? ", " : "", type_java_name(type, name));
        }
        text = run_printf(run, "%.*s)", SLICE_ARG(text));
    }
    return text;
}

struct slice groovy_suggest(struct run *run, type_id type, struct slice name, const struct value *arguments,
                            unsigned count)
{
    struct method_suggestion suggestions[SUGGESTIONS_MAX];
    type_id types[LENGTH_MAX];
    unsigned found = 0;
    if (name.len > LENGTH_MAX || count > LENGTH_MAX)
        return SLICE_LIT("");
    for (unsigned i = 0; i < count; i++)
        types[i] = value_type(arguments[i]);
    struct sequence wanted = {.letters = name.data, .count = (unsigned)name.len},
                    given = {.types = types, .count = count};
    static const unsigned kinds[] = {METHOD_GROOVY, METHOD_GROOVY | METHOD_STATIC};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct method_lookup query = {.id = type_dims(type) > 0 ? CLASS_ARRAY : type_class(type), .flags = kinds[kind]};
        const struct method *rows[METHOD_ROWS_MAX];
        unsigned total = method_all(&query, rows, METHOD_ROWS_MAX);
        for (unsigned i = 0; i < total && run_step(run, STEPS); i++) {
            unsigned here = method_distance(rows[i], &wanted, &given);
            if (here <= FAR)
                insert_suggestion(suggestions, &found, (struct method_suggestion){rows[i], here});
        }
    }
    return run->thrown != NULL ? SLICE_LIT("") : show_suggestions(run, suggestions, found);
}
