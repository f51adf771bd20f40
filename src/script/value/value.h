/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values: Java's, in sixteen bytes.
 *
 * Null, one of the eight primitives, or a reference to an object. A boxed primitive has no form of its own; where Java
 * distinguishes them, the resolved tree does (resolve.c). Objects are allocated in the run's arena, constants in the
 * script's. Nothing is freed during a run, so a reference is valid until the run ends.
 */
#ifndef TL_SCRIPT_VALUE_H
#define TL_SCRIPT_VALUE_H

#include "script/value/class.h"

struct run;

enum value_kind {
    VALUE_NULL,
    VALUE_BOOLEAN,
    VALUE_BYTE,
    VALUE_SHORT,
    VALUE_CHAR,
    VALUE_INT,
    VALUE_LONG,
    VALUE_FLOAT,
    VALUE_DOUBLE,
    VALUE_OBJECT,
};

/* First member of every object. */
struct object {
    uint16_t class; /* enum class_id; for arrays CLASS_DEF */
    uint16_t flags;
};

struct value {
    enum value_kind kind;
    union {
        int64_t i; /* BOOLEAN to LONG, always in the range of the kind */
        double d;  /* FLOAT (rounded to one), DOUBLE */
        struct object *object;
    };
};

#define VALUE_NONE ((struct value){.kind = VALUE_NULL})

static inline struct value value_boolean(bool b)
{
    return (struct value){.kind = VALUE_BOOLEAN, .i = b};
}

static inline struct value value_int(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = (int32_t)(uint32_t)(uint64_t)i};
}

static inline struct value value_long(int64_t i)
{
    return (struct value){.kind = VALUE_LONG, .i = i};
}

static inline struct value value_char(uint16_t c)
{
    return (struct value){.kind = VALUE_CHAR, .i = c};
}

static inline struct value value_float(double d)
{
    return (struct value){.kind = VALUE_FLOAT, .d = (float)d};
}

static inline struct value value_double(double d)
{
    return (struct value){.kind = VALUE_DOUBLE, .d = d};
}

/* A reference, or null. */
static inline struct value value_of(const void *object)
{
    struct value v = {.kind = object == NULL ? VALUE_NULL : VALUE_OBJECT};
    v.object = (struct object *)(uintptr_t)object;
    return v;
}

static inline bool value_is(struct value v, enum class_id id)
{
    return v.kind == VALUE_OBJECT && v.object->class == id;
}

/* Returns: the shape of an object. */
static inline enum class_shape object_shape(const struct object *object)
{
    return object->class < CLASS_COUNT ? class_infos[object->class].shape : SHAPE_ARRAY;
}

/* Returns: whether it is an object of that shape. */
static inline bool value_has_shape(struct value v, enum class_shape shape)
{
    return v.kind == VALUE_OBJECT && object_shape(v.object) == shape;
}

/* Byte, short, int or long. */
static inline bool value_integral(struct value v)
{
    return v.kind >= VALUE_BYTE && v.kind <= VALUE_LONG && v.kind != VALUE_CHAR;
}

static inline bool value_floating(struct value v)
{
    return v.kind == VALUE_FLOAT || v.kind == VALUE_DOUBLE;
}

/*
 * Groovy's "a${b}": a class of its own that converts to String nearly everywhere. Interpolated when
 * created.
 */
struct gstring {
    struct object object; /* CLASS_GSTRING */
    struct text *text;
};

/* Returns: the text of a GString; any other value unchanged. */
static inline struct value value_plain(struct value v)
{
    return value_is(v, CLASS_GSTRING) ? value_of(((const struct gstring *)v.object)->text) : v;
}

/* Whether it is a numeric primitive: byte, short, char, int, long, float, double. */
static inline bool value_is_numeric(struct value v)
{
    return v.kind >= VALUE_BYTE && v.kind <= VALUE_DOUBLE;
}

/* Returns: whether it is a java.lang.Number, including big ones. */
bool value_number(struct value v);

/* Returns: the class of a value, boxed; TYPE_NONE for null. Arrays have dimensions. */
type_id value_type(struct value v);

/* Returns: Java's `v instanceof type`; false for null. */
bool value_instance_of(struct value v, type_id type);

/*
 * Java's equals and hashCode: numbers are equal only within a class. Fail on a cycle or an exceeded
 * limit.
 */
bool value_equals(struct run *run, struct value a, struct value b, bool *ret_equal);
bool value_hash(struct run *run, struct value v, int32_t *ret_hash);

/* Appends toString, in Groovy in its format ([a:1]). */
struct text_buf;
bool value_append(struct run *run, struct value v, struct text_buf *out);

typedef bool value_appender(struct run *run, struct value v, struct text_buf *out);
/*
 * Appends the elements of a collection in brackets, each by `append`; the collection itself as
 * "(this Collection)". Returns: false with a throwable.
 */
bool value_append_list(struct run *run, struct value v, value_appender *append, struct text_buf *out);

/* Returns: toString as a text; NULL with a throwable. */
struct text *value_to_text(struct run *run, struct value v);

/*
 * Compares two values as compareTo does. Numbers of different classes: by value in Groovy, else it
 * throws.
 */
bool value_order(struct run *run, struct value a, struct value b, int *ret_order);

#endif
