/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes: the Java class of each value, and its supertypes.
 *
 * A type is a class and a number of array dimensions, packed into one number; a class is its own type.
 */
#ifndef TL_SCRIPT_CLASS_H
#define TL_SCRIPT_CLASS_H

#include "base/slice.h"

enum class_id {
#define X(symbol, java, painless, kind, shape, a, b, c) CLASS_##symbol,
#include "script/value/classes.def"
#undef X
    CLASS_COUNT
};

enum class_kind { CLASS_KIND_P, CLASS_KIND_C, CLASS_KIND_I, CLASS_KIND_F, CLASS_KIND_X };

/*
 * The C struct of a class's objects; decides how they are compared, hashed, ordered and written
 * (value.c).
 */
enum class_shape {
    SHAPE_OBJECT, /* compared by identity, written as the class name */
    SHAPE_TEXT,
    SHAPE_GSTRING,
    SHAPE_BIG,
    SHAPE_DECIMAL,
    SHAPE_TEMPORAL,
    SHAPE_ENUM,
    SHAPE_STATISTICS,
    SHAPE_ENTRY,
    SHAPE_LIST, /* a struct seq */
    SHAPE_MAP,  /* a struct dict; SHAPE_SET too */
    SHAPE_SET,
    SHAPE_VIEW,       /* a set view of a map */
    SHAPE_COLLECTION, /* an iterable without order or equality */
    SHAPE_ARRAY,
    SHAPE_OPTIONAL,
    SHAPE_BUILDER,
    SHAPE_PATTERN,
    SHAPE_MATCHER,
    SHAPE_CLASS,
    SHAPE_CLOSURE,
    SHAPE_THROWABLE,
    SHAPE_COUNT
};

struct class_info {
    const char *java;     /* "java.util.Map$Entry" */
    const char *painless; /* "Map.Entry"; "": unknown to Painless */
    enum class_kind kind;
    enum class_shape shape;
    uint16_t supers[3];
};

extern const struct class_info class_infos[CLASS_COUNT];

typedef uint16_t type_id;

#define TYPE_DIMS_SHIFT 12
#define TYPE_DIMS_MAX 15u
#define TYPE_NONE ((type_id)0xffff)

static inline unsigned type_dims(type_id type)
{
    return type >> TYPE_DIMS_SHIFT;
}

static inline enum class_id type_class(type_id type)
{
    return (enum class_id)(type & ((1u << TYPE_DIMS_SHIFT) - 1));
}

static inline type_id type_array(enum class_id element, unsigned dims)
{
    return (type_id)((unsigned)element | dims << TYPE_DIMS_SHIFT);
}

/* Returns: the type of an array's elements. */
static inline type_id type_element(type_id type)
{
    return type_array(type_class(type), type_dims(type) - 1);
}

static inline bool type_primitive(type_id type)
{
    return type_dims(type) == 0 && class_infos[type].kind == CLASS_KIND_P;
}

/* Returns: whether a `from` may be used where a `to` is required; both are references. */
bool class_extends(enum class_id from, enum class_id to);
bool type_assignable(type_id to, type_id from);

/* Boolean for boolean and so on, and the reverse; any other type unchanged. */
type_id type_boxed(type_id type);
type_id type_unboxed(type_id type);

/*
 * Java's name as Painless writes it ("java.util.Map.Entry", "int[]"), in `out`, which holds
 * TYPE_NAME_MAX.
 */
#define TYPE_NAME_MAX 160
const char *type_name(type_id type, char *out);
/* As java.lang.Class.getName() has it: "java.util.Map$Entry", "[I". */
const char *type_java_name(type_id type, char *out);

/*
 * Returns: the class a Painless script calls `name` ("List", "Map.Entry", "java.util.List"), or
 * CLASS_COUNT.
 */
enum class_id class_from_painless(struct slice name);
/*
 * As class_from_painless for Groovy, which imports java.lang, java.util, java.io, java.net,
 * BigInteger and BigDecimal by default.
 */
enum class_id class_from_groovy(struct slice name);

/*
 * "illegal_argument_exception" for java.lang.IllegalArgumentException, in `out`, which holds
 * TYPE_NAME_MAX.
 */
const char *class_error_name(enum class_id id, char *out);

/* The signature of a functional interface's method. */
struct class_function {
    const char *name; /* "apply" */
    type_id result;
    unsigned count;
    type_id parameters[3];
};

/* Returns: the method of a functional interface; NULL for any other class. */
const struct class_function *class_function(enum class_id id);

#endif
