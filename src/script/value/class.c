/* SPDX-License-Identifier: Apache-2.0 */
/* The class table; see class.h. */
#include "script/value/class.h"

#include "base/check.h"

#include <ctype.h>
#include <stdio.h>

const struct class_info class_infos[CLASS_COUNT] = {
#define X(symbol, java, painless, kind, shape, a, b, c) \
    [CLASS_##symbol] = {java, painless, CLASS_KIND_##kind, SHAPE_##shape, {CLASS_##a, CLASS_##b, CLASS_##c}},
#include "script/value/classes.def"
#undef X
};

bool class_extends(enum class_id from, enum class_id to)
{
    if (from == to || to == CLASS_OBJECT)
        return true;
    if (from == CLASS_OBJECT)
        return false;
    const uint16_t *supers = class_infos[from].supers;
    for (unsigned i = 0; i < 3 && supers[i] != CLASS_OBJECT; i++)
        if (class_extends((enum class_id)supers[i], to))
            return true;
    return false;
}

bool type_assignable(type_id to, type_id from)
{
    if (to == from)
        return true;
    if (type_primitive(from) || type_primitive(to))
        return false;
    if (to == CLASS_OBJECT)
        return true;
    if (type_dims(from) != type_dims(to)) {
        bool objects = type_class(to) == CLASS_OBJECT || type_class(to) == CLASS_DEF;
        return objects && type_dims(to) > 0 && type_dims(from) > type_dims(to);
    }
    if (type_dims(from) > 0 && (type_primitive((type_id)type_class(from)) || type_primitive((type_id)type_class(to))))
        return false;
    if (type_dims(from) > 0 && type_class(to) == CLASS_DEF)
        return true;
    return class_extends(type_class(from), type_class(to));
}

static const uint16_t boxes[][2] = {{CLASS_BOOLEAN, CLASS_BOOLEAN_BOX}, {CLASS_BYTE, CLASS_BYTE_BOX},
                                    {CLASS_SHORT, CLASS_SHORT_BOX},     {CLASS_CHAR, CLASS_CHAR_BOX},
                                    {CLASS_INT, CLASS_INT_BOX},         {CLASS_LONG, CLASS_LONG_BOX},
                                    {CLASS_FLOAT, CLASS_FLOAT_BOX},     {CLASS_DOUBLE, CLASS_DOUBLE_BOX}};
#define BOX_COUNT (sizeof boxes / sizeof *boxes)

type_id type_boxed(type_id type)
{
    for (size_t i = 0; i < BOX_COUNT; i++)
        if (boxes[i][0] == type)
            return boxes[i][1];
    return type;
}

type_id type_unboxed(type_id type)
{
    for (size_t i = 0; i < BOX_COUNT; i++)
        if (boxes[i][1] == type)
            return boxes[i][0];
    return type;
}

const char *type_name(type_id type, char *out)
{
    size_t len = 0;
    for (const char *c = class_infos[type_class(type)].java; *c != '\0'; c++)
        out[len++] = *c == '$' ? '.' : *c;
    for (unsigned i = 0; i < type_dims(type); i++) {
        out[len++] = '[';
        out[len++] = ']';
    }
    out[len] = '\0';
    return out;
}

const char *type_java_name(type_id type, char *out)
{
    const struct class_info *info = &class_infos[type_class(type)];
    unsigned dims = type_dims(type);
    static const char letters[][2] = {"V", "Z", "B", "S", "C", "I", "J", "F", "D"};
    const char *java = type_class(type) == CLASS_DEF ? "java.lang.Object" : info->java;
    if (dims == 0)
        snprintf(out, TYPE_NAME_MAX, "%s", java);
    else if (info->kind == CLASS_KIND_P)
        snprintf(out, TYPE_NAME_MAX, "%.*s%s", (int)dims, "[[[[[[[[[[[[[[[", letters[type_class(type)]);
    else
        snprintf(out, TYPE_NAME_MAX, "%.*sL%s;", (int)dims, "[[[[[[[[[[[[[[[", java);
    return out;
}

static bool name_is(const char *name, struct slice text, bool dotted)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = dotted && name[i] == '$' ? '.' : name[i];
        if (c == '\0' || c != text.data[i])
            return false;
    }
    return name[text.len] == '\0';
}

enum class_id class_from_painless(struct slice name)
{
    bool qualified = slice_find_byte(name, '.') < name.len;
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        const struct class_info *info = &class_infos[i];
        if (info->painless[0] == '\0')
            continue;
        if (name_is(info->painless, name, false) || (qualified && name_is(info->java, name, true)))
            return (enum class_id)i;
    }
    return CLASS_COUNT;
}

/* The packages that Groovy imports by default, in addition to BigInteger and BigDecimal. */
static const char *const groovy_packages[] = {"java.lang.", "java.util.",   "java.io.",
                                              "java.net.",  "groovy.lang.", "groovy.util."};

static bool imported_by_groovy(const char *java, size_t package)
{
    for (size_t i = 0; i < sizeof groovy_packages / sizeof *groovy_packages; i++)
        if (strlen(groovy_packages[i]) == package && strncmp(java, groovy_packages[i], package) == 0)
            return true;
    return false;
}

enum class_id class_from_groovy(struct slice name)
{
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        const char *java = class_infos[i].java;
        if (i == CLASS_DEF)
            continue;
        if (name_is(java, name, false))
            return (enum class_id)i;
        size_t len = strlen(java);
        const char *simple = strrchr(java, '.');
        if (simple == NULL || !name_is(simple + 1, name, true) || strchr(simple, '$') != NULL)
            continue;
        size_t package = (size_t)(simple + 1 - java);
        bool imported = imported_by_groovy(java, package) || i == CLASS_BIG_INTEGER || i == CLASS_BIG_DECIMAL;
        if (imported && len > package)
            return (enum class_id)i;
    }
    return slice_is(name, "Map.Entry") ? CLASS_MAP_ENTRY : CLASS_COUNT;
}

const char *class_error_name(enum class_id id, char *out)
{
    const char *java = class_infos[id].java;
    const char *simple = strrchr(java, '.');
    size_t len = 0;
    for (const char *c = simple == NULL ? java : simple + 1; *c != '\0'; c++) {
        if (isupper((unsigned char)*c) && len > 0)
            out[len++] = '_';
        out[len++] = (char)tolower((unsigned char)*c);
    }
    out[len] = '\0';
    return out;
}

/* One row per functional interface; Comparator's other methods are in the library. */
static const struct {
    uint16_t id;
    struct class_function function;
} functions[] = {
    {CLASS_BI_CONSUMER, {"accept", CLASS_VOID, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_BI_FUNCTION, {"apply", CLASS_DEF, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_BINARY_OPERATOR, {"apply", CLASS_DEF, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_BI_PREDICATE, {"test", CLASS_BOOLEAN, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_BOOLEAN_SUPPLIER, {"getAsBoolean", CLASS_BOOLEAN, 0, {0}}},
    {CLASS_COMPARATOR, {"compare", CLASS_INT, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_CONSUMER, {"accept", CLASS_VOID, 1, {CLASS_DEF}}},
    {CLASS_DOUBLE_BINARY_OPERATOR, {"applyAsDouble", CLASS_DOUBLE, 2, {CLASS_DOUBLE, CLASS_DOUBLE}}},
    {CLASS_DOUBLE_CONSUMER, {"accept", CLASS_VOID, 1, {CLASS_DOUBLE}}},
    {CLASS_DOUBLE_FUNCTION, {"apply", CLASS_DEF, 1, {CLASS_DOUBLE}}},
    {CLASS_DOUBLE_PREDICATE, {"test", CLASS_BOOLEAN, 1, {CLASS_DOUBLE}}},
    {CLASS_DOUBLE_SUPPLIER, {"getAsDouble", CLASS_DOUBLE, 0, {0}}},
    {CLASS_DOUBLE_TO_INT_FUNCTION, {"applyAsInt", CLASS_INT, 1, {CLASS_DOUBLE}}},
    {CLASS_DOUBLE_TO_LONG_FUNCTION, {"applyAsLong", CLASS_LONG, 1, {CLASS_DOUBLE}}},
    {CLASS_DOUBLE_UNARY_OPERATOR, {"applyAsDouble", CLASS_DOUBLE, 1, {CLASS_DOUBLE}}},
    {CLASS_FUNCTION, {"apply", CLASS_DEF, 1, {CLASS_DEF}}},
    {CLASS_INT_BINARY_OPERATOR, {"applyAsInt", CLASS_INT, 2, {CLASS_INT, CLASS_INT}}},
    {CLASS_INT_CONSUMER, {"accept", CLASS_VOID, 1, {CLASS_INT}}},
    {CLASS_INT_FUNCTION, {"apply", CLASS_DEF, 1, {CLASS_INT}}},
    {CLASS_INT_PREDICATE, {"test", CLASS_BOOLEAN, 1, {CLASS_INT}}},
    {CLASS_INT_SUPPLIER, {"getAsInt", CLASS_INT, 0, {0}}},
    {CLASS_INT_TO_DOUBLE_FUNCTION, {"applyAsDouble", CLASS_DOUBLE, 1, {CLASS_INT}}},
    {CLASS_INT_TO_LONG_FUNCTION, {"applyAsLong", CLASS_LONG, 1, {CLASS_INT}}},
    {CLASS_INT_UNARY_OPERATOR, {"applyAsInt", CLASS_INT, 1, {CLASS_INT}}},
    {CLASS_LONG_BINARY_OPERATOR, {"applyAsLong", CLASS_LONG, 2, {CLASS_LONG, CLASS_LONG}}},
    {CLASS_LONG_CONSUMER, {"accept", CLASS_VOID, 1, {CLASS_LONG}}},
    {CLASS_LONG_FUNCTION, {"apply", CLASS_DEF, 1, {CLASS_LONG}}},
    {CLASS_LONG_PREDICATE, {"test", CLASS_BOOLEAN, 1, {CLASS_LONG}}},
    {CLASS_LONG_SUPPLIER, {"getAsLong", CLASS_LONG, 0, {0}}},
    {CLASS_LONG_TO_DOUBLE_FUNCTION, {"applyAsDouble", CLASS_DOUBLE, 1, {CLASS_LONG}}},
    {CLASS_LONG_TO_INT_FUNCTION, {"applyAsInt", CLASS_INT, 1, {CLASS_LONG}}},
    {CLASS_LONG_UNARY_OPERATOR, {"applyAsLong", CLASS_LONG, 1, {CLASS_LONG}}},
    {CLASS_OBJ_INT_CONSUMER, {"accept", CLASS_VOID, 2, {CLASS_DEF, CLASS_INT}}},
    {CLASS_PREDICATE, {"test", CLASS_BOOLEAN, 1, {CLASS_DEF}}},
    {CLASS_RUNNABLE, {"run", CLASS_VOID, 0, {0}}},
    {CLASS_SUPPLIER, {"get", CLASS_DEF, 0, {0}}},
    {CLASS_TEMPORAL_ADJUSTER, {"adjustInto", CLASS_TEMPORAL, 1, {CLASS_TEMPORAL}}},
    {CLASS_TO_DOUBLE_BI_FUNCTION, {"applyAsDouble", CLASS_DOUBLE, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_TO_DOUBLE_FUNCTION, {"applyAsDouble", CLASS_DOUBLE, 1, {CLASS_DEF}}},
    {CLASS_TO_INT_BI_FUNCTION, {"applyAsInt", CLASS_INT, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_TO_INT_FUNCTION, {"applyAsInt", CLASS_INT, 1, {CLASS_DEF}}},
    {CLASS_TO_LONG_BI_FUNCTION, {"applyAsLong", CLASS_LONG, 2, {CLASS_DEF, CLASS_DEF}}},
    {CLASS_TO_LONG_FUNCTION, {"applyAsLong", CLASS_LONG, 1, {CLASS_DEF}}},
    {CLASS_UNARY_OPERATOR, {"apply", CLASS_DEF, 1, {CLASS_DEF}}},
};

const struct class_function *class_function(enum class_id id)
{
    if (class_infos[id].kind != CLASS_KIND_F)
        return NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].id == id)
            return &functions[i].function;
    UNREACHABLE();
    return NULL;
}
