/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetched documents change no result. Two cores get the same random writes; those of one carry
 * documents read at some earlier timestamp, or none. Replies and digests must always agree. A
 * prefetched document with a wrong version number shows that the core uses it while it is
 * unchanged, and only then.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "base/rand.h"
#include "core/catalog/catalog.h"
#include "core/documents/prefetch.h"
#include "mapping/mapping.h"

enum { STEPS = 3000, IDS = 12 };

static struct prefetch *read_prefetch(struct core_fixture *fixture, struct command *command, const char *id, tl_ts ts)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture->core);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("fs"));
    struct view view = {fixture->store, ts, NULL};
    const struct mapping_type *type = index == NULL ? NULL : mapping_type(index->mapping, SLICE_LIT("_doc"));
    return type == NULL ? NULL : prefetch_read(&view, index->number, type->number, slice_from(id), &command->arena);
}

static struct write_item random_item(struct rng *rng, const char *id)
{
    static const enum write_op ops[] = {WRITE_INDEX, WRITE_INDEX, WRITE_CREATE, WRITE_DELETE};
    static const char *const sources[] = {"{\"n\":1}", "{\"n\":2,\"name\":\"a b\"}", "{\"n\":\"no number\"}"};
    enum write_op op = ops[rng_below(rng, 4)];
    struct write_item item = fixture_item(op, "fs", "", id, sources[rng_below(rng, 3)]);
    if (op == WRITE_DELETE)
        item.source = SLICE_NONE;
    if (rng_below(rng, 4) == 0)
        item.version = (int64_t)rng_below(rng, 5) + 1;
    return item;
}

static void assert_same(const struct write_result *a, const struct write_result *b)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_int_equal(a->conflict, b->conflict);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->seq_no, b->seq_no);
}

static void test_prefetch_does_not_change_results(void **state)
{
    struct core_fixture plain, seeing;
    struct rng rng;
    (void)state;

    rng_init(&rng, 20261121);
    fixture_open(&plain);
    fixture_open(&seeing);
    tl_ts begin = seeing.now;
    for (int i = 0; i < STEPS; i++) {
        char id[8];
        snprintf(id, sizeof id, "%u", (unsigned)rng_below(&rng, IDS));
        struct write_item item = random_item(&rng, id);
        tl_ts wait = rng_below(&rng, 20) == 0 ? 61 * TL_SECOND : 1;
        struct command *first = fixture_write_command(&plain, 1), *second = fixture_write_command(&seeing, 1);
        first->write.items[0] = second->write.items[0] = item;
        tl_ts now = core_last_ts(seeing.core);
        tl_ts at = rng_below(&rng, 2) == 0 ? now : begin + rng_below(&rng, now - begin + 1);
        if (rng_below(&rng, 4) != 0)
            prefetch_attach(second, &second->write.items[0], read_prefetch(&seeing, second, id, at));
        fixture_run(&plain, first, wait);
        fixture_run(&seeing, second, wait);
        assert_same(first->write.results, second->write.results);
        if (i % 100 == 0) {
            assert_int_equal(fixture_digest(&plain), fixture_digest(&seeing));
            fixture_reopen(&seeing);
        }
    }
    fixture_close(&plain);
    fixture_close(&seeing);
}

static int64_t version_with(struct core_fixture *fixture, int64_t false_version, tl_ts ts)
{
    struct command *command = fixture_write_command(fixture, 1);
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":3}");
    struct prefetch *prefetch = read_prefetch(fixture, command, "1", ts);
    prefetch->doc.version = false_version;
    prefetch_attach(command, &command->write.items[0], prefetch);
    fixture_run(fixture, command, 1);
    return command->write.results->version;
}

static void test_prefetch_is_used_while_document_is_unchanged(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    tl_ts before = core_last_ts(fixture.core);
    assert_int_equal(version_with(&fixture, 41, before), 42);
    assert_int_equal(version_with(&fixture, 7, before), 43);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefetch_does_not_change_results),
        cmocka_unit_test(test_prefetch_is_used_while_document_is_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
