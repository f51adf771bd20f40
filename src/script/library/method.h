/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Method tables: the methods, constructors and fields that scripts may use. Each class has tables,
 * each library function a row.
 *
 * A class member without a row does not exist for scripts (invariant 6). Painless selects a row by
 * name and argument count alone. Groovy also compares the arguments' types and takes the first row
 * that fits.
 *
 * A row is written as a Java signature:
 *
 *     {"LongStream mapToLong(ToLongFunction)", BOTH, stream_map},
 *     {"int getYear()", BOTH, get_part, {YEAR}},
 *     {"static String format(String, def...)", GROOVY, string_format},
 *     {"new StringBuilder(CharSequence)", BOTH, builder_new},
 *     {"static int MAX_VALUE", BOTH, method_constant, {INT32_MAX}},
 *
 * Rows are parsed once, before main, into `struct method`. The result is never modified afterwards.
 *
 * A row's native is the C function that implements it. Comments say that a native "gives" its
 * result, which it stores in *ret. A row's datum is a constant that the native reads.
 */
#ifndef TL_SCRIPT_METHOD_H
#define TL_SCRIPT_METHOD_H

#include "script/value/run.h"

struct method;

/* One call of a native: the run, the row that was selected, the receiver and the arguments. The
   receiver of a static method is null or the class. */
struct call {
    struct run *run;
    const struct method *row;
    struct value self;
    struct value *args; /* the native may modify them */
    unsigned count;     /* number of args */
};

/* Sets *ret. Returns: true; false with a throwable in the run, and *ret undefined. */
typedef bool method_native(struct call *call, struct value *ret);

/* Constant argument of a native that serves several rows. The native defines which member is
   valid. */
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
    METHOD_FIELD = 8,        /* no parentheses: a constant, or a field of an object */
    METHOD_NEW = 16,         /* "new …": a constructor; its name is "new" */
    METHOD_REST = 32,        /* "…)", Groovy: the last parameter takes any number of arguments */
    METHOD_NULL = 64,        /* Groovy: may be called on null */
    METHOD_TAKES_NULL = 128, /* Groovy: accepts null for a string or a collection parameter */
};

/* Dialects, as written in rows. */
enum { PAINLESS = METHOD_PAINLESS, GROOVY = METHOD_GROOVY, BOTH = METHOD_BOTH };

#define METHOD_PARAMETERS_MAX 8

/* A row of a table. The signature names a class as Painless does; a class that Painless lacks
   has its Java name without the package. */
struct method_row {
    const char *signature;
    uint8_t flags; /* dialects, METHOD_NULL, METHOD_TAKES_NULL; the signature yields the others */
    method_native *native;
    union method_datum datum;
};

/* A parsed row. */
struct method {
    const char *name;
    uint8_t flags;
    uint8_t count;
    uint16_t id; /* enum class_id: the class that declares it; CLASS_ARRAY (seq.h): all arrays */
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
 * Parses a signature into ret's name, kind flags, result and parameters.
 * Ensures: ret->name is a NUL-terminated copy in `pool`; *pool points after it.
 * Assumes: *pool has room for strlen(signature) bytes.
 * Returns: true; false if the signature is malformed or names an unknown class.
 */
bool method_read(const char *signature, char **pool, struct method *ret);

/* Returns: row `i` in lookup order, class by class; NULL if i is not below the number of rows. */
const struct method *method_at(unsigned i);

/* Calls a row's native. a[0] is the receiver, `count` arguments follow. Returns: as the native. */
static inline bool method_call(const struct method *row, struct run *run, struct value *a, unsigned count,
                               struct value *ret)
{
    struct call call = {run, row, a[0], a + 1, count};
    return row->native(&call, ret);
}

/* The native of constants: gives the row's datum as a value of the row's result type. */
bool method_constant(struct call *call, struct value *ret);

/* The tables: one array for each file, ended by a table without rows. */
extern const struct method_table methods_text[], methods_text_regex[], methods_builder[], methods_character[],
    methods_collection[], methods_list[], methods_utility[], methods_map[], methods_sorted[], methods_list_iterator[],
    methods_tokenizer[], methods_statistics[], methods_doc[], methods_decimal_format[], methods_math[],
    methods_number[], methods_integer[], methods_float[], methods_boolean[], methods_big[], methods_stream[],
    methods_regex[], methods_time[], methods_date[], methods_calendar[], methods_adjuster[], methods_duration[],
    methods_enum[], methods_object[], methods_function[];
/* Painless's additions. */
extern const struct method_table methods_painless_text[], methods_painless_iterable[], methods_painless_path[];
/* Groovy's additions. A table of CLASS_ARRAY (seq.h) applies to all arrays. */
extern const struct method_table methods_groovy_object[], methods_groovy_walk[], methods_groovy_iterable[],
    methods_groovy_list[], methods_groovy_map[], methods_groovy_text[], methods_groovy_text_number[],
    methods_groovy_text_part[], methods_groovy_padding[], methods_groovy_margin[], methods_groovy_number[];

/*
 * Builds the name of a property's accessor: "getName" for "get" and "name".
 * Returns: the name, in `to`; SLICE_NONE if `field` is empty or the name would not fit.
 */
#define METHOD_ACCESSOR_MAX 80
struct slice method_accessor(char to[METHOD_ACCESSOR_MAX], const char *prefix, struct slice field);

struct method_lookup {
    enum class_id id;
    struct slice name;
    unsigned count;
    /* METHOD_PAINLESS or METHOD_GROOVY, and METHOD_STATIC, _FIELD, _NEW: all must match exactly */
    unsigned flags;
    /* Groovy: bit i: argument i was cast to Object, and fits only a parameter of any object */
    uint32_t as_object;
};

/* Returns: the first method that matches in the class, then in its supertypes, nearest first;
   NULL if none matches. */
const struct method *method_find(const struct method_lookup *query);

/* Returns: whether Painless's method reference TYPE::name can take `count` arguments: as a
   constructor, a static method, or a method of the first argument. */
bool method_referred(type_id type, struct slice name, unsigned count);

/* Returns: whether any class has a method or field with this name and kind. */
bool method_exists(struct slice name, unsigned flags);

/* Finds all rows that match, whatever their argument count, in the order of method_find; fills
   `rows` with at most `max`. Returns: the number found. Requires: max <= METHOD_ROWS_MAX. */
#define METHOD_ROWS_MAX 2048u
unsigned method_all(const struct method_lookup *query, const struct method **rows, unsigned max);

/* Cached result of method_all, valid during the run: Groovy looks methods up at every call. */
struct method_rows {
    struct method_lookup query; /* its count is ignored */
    unsigned count;
    const struct method **rows;
};

/* Limit of overloads of one name in run_methods; no class has as many. */
#define METHOD_OVERLOADS_MAX 64u
const struct method_rows *run_methods(struct run *run, const struct method_lookup *query);
/* As method_find, from the cache. */
const struct method *run_method(struct run *run, const struct method_lookup *query);

#endif
