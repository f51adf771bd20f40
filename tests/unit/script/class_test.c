/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of each class is the one that its supertypes require: a List is a list, a Map a map. */
#include "script/value/class.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool is_object(enum class_id id)
{
    return id != CLASS_OBJECT && id != CLASS_DEF && class_infos[id].kind == CLASS_KIND_C;
}

static void assert_shape(enum class_id id, bool wanted, const char *what)
{
    if (!wanted)
        fail_msg("%s has not the shape of %s", class_infos[id].java, what);
}

static void test_shapes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        enum class_id id = (enum class_id)i;
        enum class_shape shape = class_infos[id].shape;
        assert_shape(id, (class_infos[id].kind == CLASS_KIND_X) == (shape == SHAPE_THROWABLE), "a throwable");
        assert_shape(id, class_infos[id].kind != CLASS_KIND_P || shape == SHAPE_OBJECT, "a primitive");
        if (!is_object(id))
            continue;
        bool set = class_extends(id, CLASS_SET), list = class_extends(id, CLASS_LIST);
        assert_shape(id, !list || shape == SHAPE_LIST, "a list");
        assert_shape(id, !set || shape == SHAPE_SET || shape == SHAPE_VIEW, "a set");
        assert_shape(id, !class_extends(id, CLASS_MAP) || shape == SHAPE_MAP || id == CLASS_DOC, "a map");
        assert_shape(id, !class_extends(id, CLASS_ENUM) || id == CLASS_ENUM || shape == SHAPE_ENUM, "an enum");
        assert_shape(id, !class_extends(id, CLASS_MAP_ENTRY) || shape == SHAPE_ENTRY, "an entry");
        assert_shape(id, !class_extends(id, CLASS_COLLECTION) || shape != SHAPE_OBJECT, "a collection");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
