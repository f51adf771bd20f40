/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers concurrent with the core; made for the thread sanitizer.
 *
 * Each step writes ten documents with the number of the step, atomically, and sometimes a new
 * field, so that mappings and catalogs change all the time. Readers use the catalog published last
 * and a timestamp: all ten documents must have one number, the count must be ten, the mapping must
 * stay readable, and a catalog loaded from the store at that timestamp must have the index.
 *
 * usage: core_threads [--steps N]
 */
#include "base/rand.h"
#include "core/catalog/catalog.h"
#include "core/step/core.h"
#include "../lib/arguments.h"
#include "../lib/bounded.h"
#include "core/documents/doc.h"
#include "mapping/mapping.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { DOCS = 10, READERS = 3 };

struct core_thread {
    struct store *store;
    struct core *core;
    uint64_t steps;
    pthread_mutex_t lock; /* protects `published` */
    struct catalog *published;
    _Atomic tl_ts newest;
    atomic_bool done;
    _Atomic uint64_t reads;
};

struct reader {
    struct core_thread *run;
    uint64_t seed;
};

static _Noreturn void fail(const char *what, uint64_t number)
{
    fprintf(stderr, "core_threads: %s: %llu\n", what, (unsigned long long)number);
    abort();
}

static struct command *make_command(uint64_t number)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct arena *arena = &command->arena;

    command->write.items = arena_zalloc(arena, DOCS * sizeof(struct write_item));
    command->write.item_count = DOCS;
    command->write.atomic = true;
    for (unsigned i = 0; i < DOCS; i++)
        command->write.items[i] = (struct write_item){
            .op = WRITE_INDEX,
            .index = SLICE_LIT("t"),
            .id = arena_printf(arena, "d%u", i),
            .source = arena_printf(arena, "{\"n\":%llu,\"f%llu\":1}", (unsigned long long)number,
                                   (unsigned long long)number / 5 % 200),
            .version = VERSION_ANY,
            .if_seq_no = SEQ_NO_ANY,
        };
    return command;
}

static void publish(struct core_thread *run)
{
    struct catalog *next = core_catalog(run->core), *before;

    pthread_mutex_lock(&run->lock);
    before = run->published;
    run->published = next;
    pthread_mutex_unlock(&run->lock);
    catalog_unref(before);
}

static struct catalog *take(struct core_thread *run)
{
    pthread_mutex_lock(&run->lock);
    struct catalog *catalog = catalog_ref(run->published);
    pthread_mutex_unlock(&run->lock);
    return catalog;
}

static void write_all(struct core_thread *run)
{
    struct effects effects;

    effects_init(&effects);
    for (uint64_t number = 1; number <= run->steps; number++) {
        struct command *command = make_command(number);
        command->ts = number * 1000;
        if (core_step(run->core, command, &effects) != 0 || command->write.rolled_back)
            fail("the step failed", number);
        bounded_check(run->core);
        list_remove(&command->link);
        command_free(command);
        publish(run);
        atomic_store(&run->newest, number * 1000);
    }
    atomic_store(&run->done, true);
}

static void read_docs(struct core_thread *run, const struct view *view, const struct catalog_index *index)
{
    const struct mapping_type *type = mapping_type(index->mapping, SLICE_LIT("_doc"));
    char expected[32], id[8];
    struct doc doc;
    uint64_t count;

    snprintf(expected, sizeof(expected), "{\"n\":%llu,", (unsigned long long)view->ts / 1000);
    for (unsigned i = 0; i < DOCS; i++) {
        snprintf(id, sizeof(id), "d%u", i);
        if (doc_get(view, index->number, type->number, slice_from(id), &doc) != 0)
            fail("a document is missing", view->ts);
        if (!slice_starts_with(doc.source, slice_from(expected)))
            fail("a document is of another step", view->ts);
        doc_release(&doc);
    }
    if (doc_count(view, index->number, DOC_TYPE_ANY, &count) != 0 || count != DOCS ||
        catalog_index_documents(index) != DOCS)
        fail("the count is wrong", view->ts);
    if (mapping_field(index->mapping, SLICE_LIT("n")) == NULL)
        fail("a field is missing", view->ts);
    atomic_fetch_add(&run->reads, 1);
}

static void *read_all(void *context)
{
    struct reader *reader = context;
    struct core_thread *run = reader->run;
    struct rng rng;

    rng_init(&rng, reader->seed);
    while (!atomic_load(&run->done)) {
        tl_ts newest = atomic_load(&run->newest);
        if (newest == 0)
            continue;
        struct view view = {run->store, 1000 * (1 + rng_below(&rng, newest / 1000)), NULL};
        struct catalog *catalog = take(run), *past;
        read_docs(run, &view, catalog_index(catalog, SLICE_LIT("t")));
        catalog_unref(catalog);
        if (catalog_load(&view, &past) != 0 || catalog_index(past, SLICE_LIT("t")) == NULL)
            fail("no catalog of the past", view.ts);
        catalog_unref(past);
    }
    return NULL;
}

static void live(struct core_thread *run)
{
    struct core_limits limits = core_limits_default();
    struct reader readers[READERS];
    pthread_t threads[READERS];

    pthread_mutex_init(&run->lock, NULL);
    if (core_open(run->store, &limits, &run->core) != 0)
        fail("the core does not open", 0);
    run->published = core_catalog(run->core);
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = (struct reader){run, i + 1};
        if (pthread_create(&threads[i], NULL, read_all, &readers[i]) != 0)
            fail("no thread", i);
    }
    write_all(run);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    catalog_unref(run->published);
    core_close(run->core);
    store_close(run->store);
    pthread_mutex_destroy(&run->lock);
    printf("core_threads: %llu steps, %llu reads\n", (unsigned long long)run->steps,
           (unsigned long long)atomic_load(&run->reads));
}

int main(int argc, char **argv)
{
    uint64_t steps = 600;
    const struct argument arguments[] = {{"--steps", .number = &steps}, {0}};
    arguments_take(argc, argv, arguments);
    struct store_options options = {.in_memory = true, .directory = SLICE_LIT("/threads"), .part_bytes = 100};
    struct core_thread mem = {.steps = steps, .store = store_open_mem()}, rocks = {.steps = steps};
    char *reason = NULL;

    live(&mem);
    if (store_open_rocks(&options, &rocks.store, &reason) != 0)
        fail(reason, 0);
    live(&rocks);
    return 0;
}
