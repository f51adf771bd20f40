/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names with equal hashes, as an attacker could choose them for a public hash function: tables that
 * hold them make no more comparisons than usual. The test counts comparisons (memcmp is wrapped)
 * instead of measuring time.
 */
#include <string.h>

#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/map.h"
#include "json/name_set.h"

enum { NAME_BYTES = 16, LOCKS = 60000, KEYS = 200000 };

static size_t compared;

int __real_memcmp(const void *a, const void *b, size_t len);
int __wrap_memcmp(const void *a, const void *b, size_t len);

int __wrap_memcmp(const void *a, const void *b, size_t len)
{
    compared++;
    return __real_memcmp(a, b, len);
}

/* As in slice_hash(). */
static uint64_t fold(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9ddfea08eb382d69u;
    return hash ^ hash >> 32;
}

/* The second word of each name cancels the effect of the first. */
static char *colliding_names(size_t count)
{
    char *names = mem_alloc(count * NAME_BYTES);
    uint64_t begun = fold(0xcbf29ce484222325u, NAME_BYTES);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t first = i + 1, second = fold(begun, first) ^ 0x1234567890u;
        memcpy(names + i * NAME_BYTES, &first, sizeof first);
        memcpy(names + i * NAME_BYTES + sizeof first, &second, sizeof second);
        if (i > 0)
            assert_true(slice_hash(slice_make(names, NAME_BYTES)) ==
                        slice_hash(slice_make(names + i * NAME_BYTES, NAME_BYTES)));
    }
    return names;
}

static void test_collisions_in_json_object(void **state)
{
    char *names = colliding_names(KEYS);
    struct json_name_set keys = JSON_NAME_SET_INIT;
    (void)state;
    compared = 0;
    for (size_t i = 0; i < KEYS; i++)
        assert_true(json_name_set_add(&keys, 0, slice_make(names + i * NAME_BYTES, NAME_BYTES)));
    for (size_t i = 0; i < KEYS; i++)
        assert_false(json_name_set_add(&keys, 0, slice_make(names + i * NAME_BYTES, NAME_BYTES)));
    assert_true(compared < 10 * (size_t)KEYS);
    json_name_set_deinit(&keys);
    mem_free(names);
}

static void test_collisions_in_map(void **state)
{
    char *names = colliding_names(KEYS);
    struct map map = MAP_INIT;
    (void)state;
    compared = 0;
    for (size_t i = 0; i < KEYS; i++)
        assert_null(map_put(&map, slice_make(names + i * NAME_BYTES, NAME_BYTES), names));
    for (size_t i = 0; i < KEYS; i++)
        assert_non_null(map_get(&map, slice_make(names + i * NAME_BYTES, NAME_BYTES)));
    assert_true(compared < 3 * (size_t)KEYS);
    map_deinit(&map);
    mem_free(names);
}

static void test_collisions_in_lock_table(void **state)
{
    char *names = colliding_names(LOCKS);
    struct core_fixture fixture;
    (void)state;
    fixture_open(&fixture);
    struct command *open = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    open->session.id = SLICE_LIT("s");
    open->session.ttl_us = 60 * TL_SECOND;
    assert_int_equal(fixture_run(&fixture, open, 1)->problem.type, PROBLEM_NONE);
    struct command *lock = command_new(COMMAND_LOCK, DIALECT_7);
    lock->owner.session = SLICE_LIT("s");
    lock->lock.targets = arena_zalloc(&lock->arena, LOCKS * sizeof *lock->lock.targets);
    lock->lock.target_count = LOCKS;
    lock->version = COMMAND_SINCE_LOCK_STEP - 1; /* so many in one request */
    for (size_t i = 0; i < LOCKS; i++)
        lock->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_make(names + i * NAME_BYTES, NAME_BYTES)};
    compared = 0;
    assert_int_equal(fixture_run(&fixture, lock, 1)->problem.type, PROBLEM_NONE);
    assert_true(compared < 100 * (size_t)LOCKS);
    fixture_close(&fixture);
    mem_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collisions_in_json_object),
        cmocka_unit_test(test_collisions_in_map),
        cmocka_unit_test(test_collisions_in_lock_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
