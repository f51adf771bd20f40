/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods: tables of what scripts may call, a class a table, a library function a row.
 *
 * What is in no table does not exist (invariant 6). Painless picks by name and number of arguments alone; Groovy
 * looks at the arguments, too, and takes the first row they fit.
 *
 * A row is written as people read it:
 *
 *     {"LongStream mapToLong(ToLongFunction)", BOTH, stream_map},
 *     {"int getYear()", BOTH, get_part, {YEAR}},
 *     {"static String format(String, def...)", GROOVY, string_format},
 *     {"new StringBuilder(CharSequence)", BOTH, builder_new},
 *     {"static int MAX_VALUE", BOTH, method_constant, {INT32_MAX}},
 *
 * and read once, when the program starts, into a `struct method`: from then on nothing here changes.
 */
#ifndef TL_SCRIPT_METHOD_H
#define TL_SCRIPT_METHOD_H

#include "script/value/run.h"

struct method;

/* A call of a native: what it is called on (null, or the class, for a static one), with what, by which row. */
struct call {
    struct run *run;
    const struct method *row;
    struct value self;
    struct value *args; /* the native may write to them */
    unsigned count;     /* of args */
};

/* Sets *ret, or throws. Returns: false and a throwable in the run. */
typedef bool method_native(struct call *call, struct value *ret);

/* What a row gives a native that serves several; which it is, the native says. */
union method_datum {
    int64_t number; /* an enum, a class, flags, an integer constant */
    double real;
    const char *text;
    double (*of_one)(double x);
    double (*of_two)(double x, double y);
};

enum method_flag {
    METHOD_PAINLESS = 1,
    METHOD_GROOVY = 2,
    METHOD_BOTH = 3,
    METHOD_STATIC = 4,       /* "static …" */
    METHOD_FIELD = 8,        /* without parentheses: a constant, or a field of an object */
    METHOD_NEW = 16,         /* "new …": a constructor; its name is "new" */
    METHOD_REST = 32,        /* "…)", Groovy: the last parameter takes any number of arguments */
    METHOD_NULL = 64,        /* Groovy: may be called on null */
    METHOD_TAKES_NULL = 128, /* Groovy: null for a text or a collection is no error of the caller's */
};

/* Dialects, as rows have them. */
enum { PAINLESS = METHOD_PAINLESS, GROOVY = METHOD_GROOVY, BOTH = METHOD_BOTH };

#define METHOD_PARAMETERS_MAX 8

/* A row as it is written; the signature names classes as Painless does or, where it knows none, as Java does without the package. */
struct method_row {
    const char *signature;
    uint8_t flags; /* dialects, METHOD_NULL, METHOD_TAKES_NULL; the rest comes from the signature */
    method_native *native;
    union method_datum datum;
};

/* A row as it was read. */
struct method {
    const char *name;
    uint8_t flags;
    uint8_t count;
    uint16_t id; /* enum class_id: whose it is; CLASS_ARRAY (seq.h) for all arrays */
    type_id result;
    type_id parameters[METHOD_PARAMETERS_MAX];
    method_native *native;
    union method_datum datum;
};

struct method_table {
    uint16_t id; /* enum class_id */
    uint16_t count;
    const struct method_row *rows;
};

#define METHOD_ROWS(symbol, rows)                        \
    {                                                    \
        CLASS_##symbol, sizeof rows / sizeof *rows, rows \
    }

/*
 * Reads a signature into name, kind, result and parameters. The name is in `pool`, which is moved behind it; it needs as many
 * bytes as the signature has.
 * Returns: false when it is none, or names a class that there is not.
 */
bool method_read(const char *signature, char **pool, struct method *ret);

/* Row `i` of all, in the order of lookups, class by class; NULL behind the last. */
const struct method *method_at(unsigned i);

/* a[0] is the receiver, `count` arguments follow. */
static inline bool method_call(const struct method *row, struct run *run, struct value *a, unsigned count,
                               struct value *ret)
{
    struct call call = {run, row, a[0], a + 1, count};
    return row->native(&call, ret);
}

/* The native of constants: the datum, of the type of the row. */
bool method_constant(struct call *call, struct value *ret);

/* The tables, one array a file, each ended by one without rows. */
extern const struct method_table methods_text[], methods_text_regex[], methods_builder[], methods_character[],
    methods_collection[], methods_list[], methods_utility[], methods_map[], methods_sorted[], methods_list_iterator[],
    methods_tokenizer[], methods_statistics[], methods_doc[], methods_decimal_format[], methods_math[],
    methods_number[], methods_integer[], methods_float[], methods_boolean[], methods_big[], methods_stream[],
    methods_regex[], methods_time[], methods_date[], methods_calendar[], methods_adjuster[], methods_duration[],
    methods_enum[], methods_object[], methods_function[];
/* What Painless adds to these. */
extern const struct method_table methods_painless_text[], methods_painless_iterable[], methods_painless_path[];
/* What Groovy adds; a table of CLASS_ARRAY (seq.h) is for all arrays. */
extern const struct method_table methods_groovy_object[], methods_groovy_walk[], methods_groovy_iterable[],
    methods_groovy_list[], methods_groovy_map[], methods_groovy_text[], methods_groovy_text_number[],
    methods_groovy_text_part[], methods_groovy_margin[], methods_groovy_number[];

/*
 * The method behind a property: "getName" for "get" and "name".
 * Returns: its name, in `to`; SLICE_NONE for a field that is empty or longer than any that has one.
 */
#define METHOD_ACCESSOR_MAX 80
struct slice method_accessor(char to[METHOD_ACCESSOR_MAX], const char *prefix, struct slice field);

struct method_lookup {
    enum class_id id;
    struct slice name;
    unsigned count;
    unsigned flags; /* METHOD_PAINLESS or METHOD_GROOVY, and METHOD_STATIC, _FIELD, _NEW: all must match exactly */
    uint32_t
        as_object; /* Groovy: arguments, one a bit, that were cast to Object: only what takes any object takes them */
};

/* Returns: the method a class has itself or by what it extends; NULL where there is none. */
const struct method *method_find(const struct method_lookup *query);

/* Whether Painless's TYPE::name names something that takes `count` arguments: a constructor, a static method, or one of the
   first argument. */
bool method_referred(type_id type, struct slice name, unsigned count);

/* Whether any class has a method or field of that name and kind at all. */
bool method_exists(struct slice name, unsigned flags);

/* The same rows, all at once, the first `max` of them. Returns: how many. Requires: max <= METHOD_ROWS_MAX. */
#define METHOD_ROWS_MAX 2048u
unsigned method_all(const struct method_lookup *query, const struct method **rows, unsigned max);

/* What method_all finds, kept for the time of a run: Groovy looks for methods at every call. */
struct method_rows {
    struct method_lookup query; /* without a count */
    unsigned count;
    const struct method **rows;
};

/* Rows of a name beyond these are overloads that no class has so many of. */
#define METHOD_OVERLOADS_MAX 64u
const struct method_rows *run_methods(struct run *run, const struct method_lookup *query);
/* As method_find. */
const struct method *run_method(struct run *run, const struct method_lookup *query);

#endif
