/* SPDX-License-Identifier: Apache-2.0 */
#include "core_fixture.h"
#include "bounded.h"

#include <stdio.h>

#include "unit.h"

#include "base/check.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/session/owners.h"
#include "core/step/save.h"
#include "core/unit/unit.h"
#include "mapping/entry.h"
#include "mapping/mapping.h"

void fixture_open(struct core_fixture *fixture)
{
    *fixture = (struct core_fixture){
        .limits = core_limits_default(), .now = FIXTURE_START, .clock = FIXTURE_CLOCK, .dialect = DIALECT_7};
    fixture->store = store_open_mem();
    effects_init(&fixture->effects);
    assert_int_equal(core_open(fixture->store, &fixture->limits, &fixture->core), 0);
}

void fixture_close(struct core_fixture *fixture)
{
    command_free(fixture->last);
    core_close(fixture->core);
    store_close(fixture->store);
}

/* Frees the waiting commands that core_stop() completes. */
static void stop(struct core_fixture *fixture)
{
    struct effects effects;

    effects_init(&effects);
    core_stop(fixture->core, &effects);
    while (!list_empty(&effects.completed)) {
        struct command *command = list_entry(effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

void fixture_reopen(struct core_fixture *fixture)
{
    struct buf saved = BUF_INIT(BUF_UNLIMITED);

    core_save(fixture->core, &saved);
    stop(fixture);
    core_close(fixture->core);
    assert_int_equal(core_load(fixture->store, &fixture->limits, buf_as_slice(&saved), NULL, &fixture->core), 0);
    buf_deinit(&saved);
}

static void check_work(const struct core_fixture *fixture)
{
    if (!fixture->unbounded)
        bounded_check(fixture->core);
}

static void tick(struct core_fixture *fixture)
{
    struct command *command = command_new(COMMAND_TICK, fixture->dialect);

    command->ts = fixture->now++;
    command->clock = command->tick.barrier_clock = fixture->clock;
    command->memory_full = fixture->memory_full;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    check_work(fixture);
    list_remove(&command->link);
    command_free(command);
    if (fixture->now <= core_last_ts(fixture->core))
        fixture->now = core_last_ts(fixture->core) + 1;
}

struct command *fixture_run(struct core_fixture *fixture, struct command *command, uint64_t us)
{
    command_free(fixture->last);
    fixture->last = NULL;
    fixture->now += us;
    fixture->clock += us;
    if (core_next_deadline(fixture->core) <= fixture->clock && command->type != COMMAND_TICK)
        tick(fixture);
    command->ts = fixture->now;
    command->clock = fixture->clock;
    command->memory_full = fixture->memory_full;
    if (command->type == COMMAND_TICK && command->tick.barrier_clock == 0)
        command->tick.barrier_clock = fixture->clock;
    int r = command_is(command->type, COMMAND_UNLOGGED) ? core_inspect(fixture->core, command, &fixture->effects)
                                                        : core_step(fixture->core, command, &fixture->effects);
    assert_int_equal(r, 0);
    check_work(fixture);
    while (list_empty(&fixture->effects.completed) && core_next_deadline(fixture->core) == 0) { /* in pieces */
        fixture->now = core_last_ts(fixture->core) + 1;
        tick(fixture);
    }
    assert_false(list_empty(&fixture->effects.completed));
    list_remove(fixture->effects.completed.next);
    fixture->last = command;
    fixture->now = core_last_ts(fixture->core);
    return command;
}

void fixture_give_after(struct core_fixture *fixture, struct command *command, uint64_t us)
{
    if (fixture->now <= core_last_ts(fixture->core))
        fixture->now = core_last_ts(fixture->core);
    if (command->request == 0)
        command->request = ++fixture->last_request;
    if (fixture->version != 0)
        command->version = fixture->version;
    command->ts = ++fixture->now;
    command->clock = fixture->clock += us;
    command->memory_full = fixture->memory_full;
    if (command->type == COMMAND_TICK)
        command->tick.barrier_clock = command->clock;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    check_work(fixture);
    if (fixture->checks_locks)
        lock_table_check(&fixture->core->owners->locks);
}

void fixture_give(struct core_fixture *fixture, struct command *command)
{
    fixture_give_after(fixture, command, 10);
}

void fixture_tick(struct core_fixture *fixture)
{
    fixture_give(fixture, command_new(COMMAND_TICK, fixture->dialect));
}

struct command *fixture_completed(struct core_fixture *fixture)
{
    if (list_empty(&fixture->effects.completed))
        return NULL;
    struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
    list_remove(&command->link);
    return command;
}

struct command *fixture_completed_as(struct core_fixture *fixture, uint64_t request)
{
    struct command *command;

    while ((command = fixture_completed(fixture)) != NULL && command->request != request)
        command_free(command);
    return command;
}

size_t fixture_free_completed(struct core_fixture *fixture)
{
    size_t count = 0;

    for (struct command *command; (command = fixture_completed(fixture)) != NULL; count++)
        command_free(command);
    return count;
}

struct write_item fixture_item(enum write_op op, const char *index, const char *type, const char *id,
                               const char *source)
{
    return (struct write_item){
        .op = op,
        .index = slice_from(index),
        .type = slice_from(type),
        .id = slice_from(id),
        .source = slice_from(source),
        .version = VERSION_ANY,
        .if_seq_no = SEQ_NO_ANY,
    };
}

struct command *fixture_write_command(struct core_fixture *fixture, size_t count)
{
    struct command *command = command_new(COMMAND_WRITE, fixture->dialect);

    command->write.items = arena_zalloc(&command->arena, count * sizeof(struct write_item));
    command->write.item_count = count;
    return command;
}

struct write_result *fixture_write_one(struct core_fixture *fixture, struct write_item item)
{
    struct command *command = fixture_write_command(fixture, 1);

    command->write.items[0] = item;
    command->write.items[0].dialect = fixture->dialect;
    return fixture_run(fixture, command, 1)->write.results;
}

struct write_result *fixture_index(struct core_fixture *fixture, const char *index, const char *id, const char *source)
{
    return fixture_write_one(fixture, fixture_item(WRITE_INDEX, index, "", id, source));
}

struct write_result *fixture_delete(struct core_fixture *fixture, const char *index, const char *id)
{
    return fixture_write_one(fixture, fixture_item(WRITE_DELETE, index, "", id, NULL));
}

struct write_result *fixture_update(struct core_fixture *fixture, const char *index, const char *id,
                                    struct write_update update)
{
    struct write_item item = fixture_item(WRITE_UPDATE, index, "", id, NULL);

    item.update = &update;
    return fixture_write_one(fixture, item);
}

struct command *fixture_index_command(struct core_fixture *fixture, enum command_type type, const char *name,
                                      const char *body)
{
    struct command *command = command_new(type, fixture->dialect);

    command->index.name = slice_from(name);
    command->index.body = slice_from(body);
    return fixture_run(fixture, command, 1);
}

struct command *fixture_object_command(struct core_fixture *fixture, enum command_type type, const char *name,
                                       const char *body)
{
    struct command *command = command_new(type, fixture->dialect);

    command->object.name = slice_from(name);
    command->object.body = slice_from(body);
    return fixture_run(fixture, command, 1);
}

const char *fixture_source_at(struct core_fixture *fixture, const char *index, const char *id, tl_ts ts)
{
    static char text[4096];
    struct view view = {fixture->store, ts, NULL};
    struct catalog *catalog;
    const char *found = NULL;
    struct doc doc;

    assert_int_equal(catalog_load(&view, &catalog), 0);
    const struct catalog_index *entry = catalog_index(catalog, slice_from(index));
    const struct mapping_type *type = entry == NULL ? NULL : mapping_type(entry->mapping, SLICE_LIT(""));
    if (type != NULL && doc_get(&view, entry->number, type->number, slice_from(id), &doc) == 0) {
        snprintf(text, sizeof(text), "%.*s", SLICE_ARG(doc.source));
        doc_release(&doc);
        found = text;
    }
    catalog_unref(catalog);
    return found;
}

const char *fixture_source(struct core_fixture *fixture, const char *index, const char *id)
{
    return fixture_source_at(fixture, index, id, TL_TS_MAX);
}

uint64_t fixture_digest(struct core_fixture *fixture)
{
    uint64_t digest;

    assert_int_equal(core_digest(fixture->core, &digest), 0);
    return digest;
}

uint64_t fixture_count(struct core_fixture *fixture, const char *index)
{
    struct view view = {fixture->store, TL_TS_MAX, NULL};
    struct catalog *catalog = core_catalog(fixture->core);
    const struct catalog_index *entry = catalog_index(catalog, slice_from(index));
    uint64_t count = UINT64_MAX;

    if (entry != NULL) {
        assert_int_equal(doc_count(&view, entry->number, DOC_TYPE_ANY, &count), 0);
        assert_int_equal(count, catalog_index_documents(entry));
    }
    catalog_unref(catalog);
    return count;
}

void fixture_txn(struct core_fixture *fixture, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);

    command->txn.id = slice_from(id);
    command->txn.idle_us = 60 * TL_SECOND;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

size_t fixture_count_keys(struct core_fixture *fixture, enum store_space space, struct slice from, struct slice to)
{
    struct store_iter *iter = store_iter_new(fixture->store, space, TL_TS_MAX, from, to);
    size_t count = 0;

    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter))
        count++;
    assert_int_equal(store_iter_status(iter), 0);
    store_iter_free(iter);
    return count;
}

size_t fixture_find_at(struct core_fixture *fixture, const char *index, const char *field, int number, tl_ts ts)
{
    struct catalog *catalog = core_catalog(fixture->core);
    const struct catalog_index *entry = catalog_index(catalog, slice_from(index));
    struct view view = {fixture->store, ts, NULL};
    struct field_value value = {.kind = FIELD_VALUE_I64, .i64 = number};
    struct entry_range range = {.index = entry->number, .low = &value, .high = &value};
    struct entry_hit hit;
    size_t count = 0;

    range.field = value.field = mapping_field(entry->mapping, slice_from(field))->number;
    struct entry_scan *scan = entry_scan_new(&view, &range);
    while (entry_scan_next(scan, &hit) == 0) {
        struct doc doc;
        if (doc_get_key(&view, entry->number, hit.document_key, &doc) != 0)
            continue;
        count += doc_entry_batch(&doc, range.field) == hit.batch;
        doc_release(&doc);
    }
    entry_scan_free(scan);
    catalog_unref(catalog);
    return count;
}

size_t fixture_find(struct core_fixture *fixture, const char *index, const char *field, int number)
{
    return fixture_find_at(fixture, index, field, number, TL_TS_MAX);
}
