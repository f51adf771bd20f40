/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods: tables of what scripts may call, a class a table, a library function a row.
 *
 * What is in no table does not exist (invariant 6). Painless picks by name and number of arguments alone; Groovy
 * looks at the arguments, too, and takes the first row they fit.
 */
#ifndef TL_SCRIPT_METHOD_H
#define TL_SCRIPT_METHOD_H

#include "script/value/run.h"

/* a[0] is the receiver (null for a static one), the arguments follow; `count` does not count the receiver. */
typedef bool method_call(struct run *run, struct value *a, unsigned count, struct value *ret);

enum method_flag {
    METHOD_PAINLESS = 1,
    METHOD_GROOVY = 2,
    METHOD_BOTH = 3,
    METHOD_STATIC = 4,
    METHOD_FIELD = 8,        /* a constant, or a field of an object: read without parentheses */
    METHOD_NEW = 16,         /* a constructor; its name is "new" */
    METHOD_REST = 32,        /* Groovy: the last parameter takes any number of arguments */
    METHOD_NULL = 64,        /* Groovy: may be called on null */
    METHOD_TAKES_NULL = 128, /* Groovy: null for a text or a collection is no error of the caller's */
};

/* As rows of tables have them. */
#define STATIC (METHOD_BOTH | METHOD_STATIC)
#define GROOVY_STATIC (METHOD_GROOVY | METHOD_STATIC)
#define FIELD (METHOD_BOTH | METHOD_STATIC | METHOD_FIELD)

#define METHOD_PARAMETERS_MAX 8

struct method {
    const char *name;
    uint8_t flags;
    uint8_t count;
    type_id result;
    type_id parameters[METHOD_PARAMETERS_MAX];
    method_call *call;
};

struct method_table {
    uint16_t id; /* enum class_id */
    uint16_t count;
    const struct method *methods;
};

#define METHOD_TABLE(symbol, rows)                       \
    {                                                    \
        CLASS_##symbol, sizeof rows / sizeof *rows, rows \
    }

/* Types of arrays in tables. */
enum {
    CLASS_DEF_ARRAY = CLASS_DEF | 1 << TYPE_DIMS_SHIFT,
    CLASS_OBJECT_ARRAY = CLASS_OBJECT | 1 << TYPE_DIMS_SHIFT,
    CLASS_STRING_ARRAY = CLASS_STRING | 1 << TYPE_DIMS_SHIFT,
    CLASS_CHAR_ARRAY = CLASS_CHAR | 1 << TYPE_DIMS_SHIFT,
    CLASS_BYTE_ARRAY = CLASS_BYTE | 1 << TYPE_DIMS_SHIFT,
    CLASS_INT_ARRAY = CLASS_INT | 1 << TYPE_DIMS_SHIFT,
    CLASS_LONG_ARRAY = CLASS_LONG | 1 << TYPE_DIMS_SHIFT,
    CLASS_DOUBLE_ARRAY = CLASS_DOUBLE | 1 << TYPE_DIMS_SHIFT,
};

#define M0(name, flags, result, call)             \
    {                                             \
        name, flags, 0, CLASS_##result, {0}, call \
    }
#define M1(name, flags, result, p1, call)                  \
    {                                                      \
        name, flags, 1, CLASS_##result, {CLASS_##p1}, call \
    }
#define M2(name, flags, result, p1, p2, call)                          \
    {                                                                  \
        name, flags, 2, CLASS_##result, {CLASS_##p1, CLASS_##p2}, call \
    }
#define M3(name, flags, result, p1, p2, p3, call)                                  \
    {                                                                              \
        name, flags, 3, CLASS_##result, {CLASS_##p1, CLASS_##p2, CLASS_##p3}, call \
    }
#define M4(name, flags, result, p1, p2, p3, p4, call)                                          \
    {                                                                                          \
        name, flags, 4, CLASS_##result, {CLASS_##p1, CLASS_##p2, CLASS_##p3, CLASS_##p4}, call \
    }
#define M5(name, flags, result, p1, p2, p3, p4, p5, call)                                                  \
    {                                                                                                      \
        name, flags, 5, CLASS_##result, {CLASS_##p1, CLASS_##p2, CLASS_##p3, CLASS_##p4, CLASS_##p5}, call \
    }

/* The tables, one array a file, each ended by a row without methods. */
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

/* All tables, ended by NULL. */
extern const struct method_table *const method_tables[];

/*
 * The method behind a property: "getName" for "get" and "name".
 * Returns: its name, in `to`; SLICE_NONE for a field that is empty or longer than any that has one.
 */
#define METHOD_ACCESSOR_MAX 80
struct slice method_accessor(char to[METHOD_ACCESSOR_MAX], const char *prefix, struct slice field);

struct method_query {
    enum class_id id;
    struct slice name;
    unsigned count;
    unsigned flags; /* METHOD_PAINLESS or METHOD_GROOVY, and METHOD_STATIC, _FIELD, _NEW: all must match exactly */
    uint32_t
        as_object; /* Groovy: arguments, one a bit, that were cast to Object: only what takes any object takes them */
};

/* Returns: the method a class has itself or by what it extends; NULL where there is none. */
const struct method *method_find(const struct method_query *query);

/* Whether Painless's TYPE::name names something that takes `count` arguments: a constructor, a static method, or one of the
   first argument. */
bool method_referred(type_id type, struct slice name, unsigned count);

/* Whether any class has a method or field of that name and kind at all. */
bool method_exists(struct slice name, unsigned flags);

/* The same rows, all at once, the first `max` of them. Returns: how many. Requires: max <= METHOD_ROWS_MAX. */
#define METHOD_ROWS_MAX 2048u
unsigned method_all(const struct method_query *query, const struct method **rows, unsigned max);

/* What method_all finds, kept for the time of a run: Groovy looks for methods at every call. */
struct method_rows {
    struct method_query query; /* without a count */
    unsigned count;
    const struct method **rows;
};

/* Rows of a name beyond these are overloads that no class has so many of. */
#define METHOD_OVERLOADS_MAX 64u
const struct method_rows *run_methods(struct run *run, const struct method_query *query);
/* As method_find. */
const struct method *run_method(struct run *run, const struct method_query *query);

#endif
