/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store alone can do: load, single reads, small durable writes, scans, memory, restart.
 *
 * usage: store_bench [--docs N] [--entries N] [--dir DIR] [--keep]
 *
 * Documents of about 400 bytes shaped like the files of a file system, each with a few secondary entries, in
 * batches as a bulk request makes them. The load runs in a child that is killed at the end, so that the
 * opening after it is the one after a crash. One thread does it all. Reads are given in processor time, which
 * says more than the clock on a machine with other work to do.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/rand.h"
#include "store/store.h"

#include "../tests/lib/settle.h"

#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DOCS_PER_BATCH = 1000, READS = 200000, SMALL_BATCHES = 20000, SMALL_KEYS = 12 };

struct bench {
    const char *directory;
    uint64_t docs;
    int entries;
    struct store *store;
    struct buf key;
    struct buf value;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time of this thread. */
static double busy_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time of all threads, RocksDB's among them. */
static double all_busy_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static _Noreturn void die(const char *what, const char *reason)
{
    fprintf(stderr, "store_bench: %s: %s\n", what, reason != NULL ? reason : "failed");
    exit(1);
}

static void must(int r, const char *what)
{
    if (r < 0)
        die(what, error_text(r));
}

static void print_memory(struct bench *bench, const char *when)
{
    struct store_stats stats;
    store_stats(bench->store, &stats);
    long resident_kib = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmRSS: %ld", &resident_kib) == 1)
            break;
    if (status != NULL)
        fclose(status);
    printf("%-34s %8.1f MiB resident, %.1f MiB counted, %.1f MiB on disk\n", when, (double)resident_kib / 1024,
           (double)stats.memory_bytes / (1 << 20), (double)stats.disk_bytes / (1 << 20));
}

static void open_store(struct bench *bench)
{
    struct store_options options = {.directory = slice_from(bench->directory)};
    char *reason = NULL;
    double start = now_s();
    if (store_open_rocks(&options, &bench->store, &reason) != 0)
        die("open", reason);
    printf("%-34s %8.3f s\n", "open", now_s() - start);
}

/* Documents and entries are functions of a number, mixed so that ids come in no order. */

static uint64_t mixed(uint64_t number)
{
    number *= 0x9e3779b97f4a7c15u;
    return number ^ number >> 29;
}

static struct slice doc_key(struct bench *bench, uint64_t number)
{
    buf_clear(&bench->key);
    buf_u64be(&bench->key, 1); /* index and type */
    buf_printf(&bench->key, "%016llx", (unsigned long long)mixed(number));
    return buf_as_slice(&bench->key);
}

static const char *word(uint64_t number)
{
    static const char *const words[] = {"projects", "include", "linux",  "share",   "doc", "python3",
                                        "lib",      "x86_64",  "locale", "LC_TIME", "man", "module",
                                        "kernel",   "driver",  "icons",  "hicolor"};
    return words[number % (sizeof words / sizeof *words)];
}

static struct slice doc_value(struct bench *bench, uint64_t number)
{
    enum { VALUE_BYTES = 400 };
    struct buf *value = &bench->value;
    unsigned long long r = mixed(number ^ 0x5555);
    buf_clear(value);
    buf_printf(value, "{\"name\":\"%s-%llx.txt\",\"path\":\"/clinton", word(r), r >> 40);
    for (int i = 0; i < 4; i++, r = mixed(r))
        buf_printf(value, "/%s%llu", word(r), (r >> 16) % 50);
    buf_printf(value, "\",\"size\":%llu,\"mtime\":\"2026-%02llu-%02lluT%02llu:%02llu:00Z\",\"mode\":\"0644\",",
               r % 1000000, r % 12 + 1, r % 28 + 1, r % 24, r % 60);
    buf_printf(value, "\"type\":\"file\",\"owner\":\"user%llu\",\"note\":\"", r % 300);
    for (; value->len < VALUE_BYTES - 2; r = mixed(r + 1))
        buf_printf(value, "%s %llu ", word(r), r >> 48);
    value->len = VALUE_BYTES - 2;
    buf_lit(value, "\"}");
    return buf_as_slice(value);
}

/* Field `entry` of a document: ten documents share a value. */
static struct slice entry_key(struct bench *bench, uint64_t number, int entry)
{
    buf_clear(&bench->key);
    buf_u32be(&bench->key, (uint32_t)entry);
    buf_u64be(&bench->key, mixed(number / 10));
    buf_printf(&bench->key, "%016llx", (unsigned long long)mixed(number));
    return buf_as_slice(&bench->key);
}

static void put_doc(struct bench *bench, struct store_batch *batch, uint64_t number)
{
    struct slice value = doc_value(bench, number);
    store_batch_put(batch, SPACE_DOCUMENTS, doc_key(bench, number), value);
    for (int entry = 0; entry < bench->entries; entry++)
        store_batch_put(batch, SPACE_ENTRIES, entry_key(bench, number, entry), SLICE_NONE);
}

/* As the journal does by its own default. */
static void settle_when_due(struct bench *bench)
{
    enum { UNSAVED_BYTES = 32 << 20 };
    if (store_uncheckpointed_bytes(bench->store) >= UNSAVED_BYTES)
        settle(bench->store);
}

static void load(struct bench *bench)
{
    struct store_batch *batch = store_batch_new(bench->store);
    double start = now_s(), busy = 0, written = 0, settled = 0;
    for (uint64_t first = 0; first < bench->docs; first += DOCS_PER_BATCH) {
        store_batch_clear(batch);
        store_batch_begin(batch, 1000 + first);
        for (uint64_t i = first; i < first + DOCS_PER_BATCH && i < bench->docs; i++)
            put_doc(bench, batch, i);
        double before = now_s(), busy_before = busy_s();
        must(store_write(bench->store, batch), "write");
        double between = now_s();
        busy += busy_s() - busy_before;
        settle_when_due(bench);
        written += between - before;
        settled += now_s() - between;
    }
    double took = now_s() - start;
    double us_a_key = 1e6 / (double)bench->docs / (bench->entries + 1);
    printf("%-34s %8.2f s, %.0f documents/s; all threads busy %.2f s\n", "load", took, (double)bench->docs / took,
           all_busy_s());
    printf("%-34s %8.2f us a key, %.2f of it busy; checkpoints %.2f us a key\n", "  of it in writes",
           written * us_a_key, busy * us_a_key, settled * us_a_key);
    store_batch_free(batch);
    print_memory(bench, "after load");
}

/* Loads in a child, which is then killed. */
static void load_and_crash(struct bench *bench)
{
    int done[2];
    if (pipe(done) != 0)
        die("pipe", NULL);
    pid_t child = fork();
    if (child == 0) {
        open_store(bench);
        load(bench);
        if (write(done[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(done[1]);
    char byte;
    bool loaded = read(done[0], &byte, 1) == 1;
    close(done[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (!loaded)
        die("load", NULL);
}

static void read_random(struct bench *bench, const char *what, uint64_t first, uint64_t range, bool expected)
{
    struct rng rng;
    rng_init(&rng, 5);
    double start = busy_s();
    for (int i = 0; i < READS; i++) {
        struct store_value value;
        struct slice key = doc_key(bench, first + rng_below(&rng, range));
        int r = store_get(bench->store, SPACE_DOCUMENTS, TL_TS_MAX, key, &value);
        must(r, "get");
        if ((r == 0) != expected)
            die("get", expected ? "a document is missing" : "found what was never written");
        if (r == 0)
            store_value_release(&value);
    }
    printf("%-34s %8.2f us\n", what, (busy_s() - start) * 1e6 / READS);
}

static void read_terms(struct bench *bench)
{
    enum { TERMS = READS / 10, PREFIX_BYTES = 12 };
    struct rng rng;
    rng_init(&rng, 6);
    uint64_t hits = 0;
    double start = busy_s();
    for (int i = 0; i < TERMS; i++) {
        char bytes[PREFIX_BYTES];
        memcpy(bytes, entry_key(bench, rng_below(&rng, bench->docs), 0).data, sizeof bytes);
        struct slice prefix = slice_make(bytes, sizeof bytes);
        struct store_iter *iter = store_iter_new(bench->store, SPACE_ENTRIES, TL_TS_MAX, prefix, SLICE_NONE);
        store_iter_seek_first(iter);
        for (; store_iter_valid(iter) && slice_starts_with(store_iter_key(iter), prefix); store_iter_next(iter))
            hits++;
        must(store_iter_status(iter), "entries");
        store_iter_free(iter);
    }
    printf("%-34s %8.2f us, %.1f hits each\n", "entries of one value", (busy_s() - start) * 1e6 / TERMS,
           (double)hits / TERMS);
}

static void scan(struct bench *bench, enum store_space space, const char *what, bool backward)
{
    uint64_t count = 0;
    double start = busy_s();
    struct store_iter *iter = store_iter_new(bench->store, space, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    for (backward ? store_iter_seek_last(iter) : store_iter_seek_first(iter); store_iter_valid(iter);
         backward ? store_iter_prev(iter) : store_iter_next(iter))
        count++;
    must(store_iter_status(iter), "scan");
    store_iter_free(iter);
    double took = busy_s() - start;
    printf("%-34s %8.2f s, %.0f keys/s\n", what, took, (double)count / took);
}

/* What one document write does to the store: a dozen small keys in several spaces. */
static void put_small(struct bench *bench, struct store_batch *batch, uint64_t number)
{
    struct slice value = doc_value(bench, number);
    store_batch_put(batch, SPACE_DOCUMENTS, doc_key(bench, number), value);
    for (int k = 0; k < SMALL_KEYS - 4; k++)
        store_batch_put(batch, SPACE_ENTRIES, entry_key(bench, number + 1, k % 4), SLICE_NONE);
    store_batch_put(batch, SPACE_SYSTEM, SLICE_LIT("last"), SLICE_LIT("12345678"));
    store_batch_put(batch, SPACE_SYSTEM, SLICE_LIT("count"), SLICE_LIT("12345678"));
    store_batch_put(batch, SPACE_FEED, doc_key(bench, number), SLICE_LIT("12345678"));
}

static void write_small(struct bench *bench, tl_ts ts, const char *what)
{
    struct rng rng;
    rng_init(&rng, ts);
    struct store_batch *batch = store_batch_new(bench->store);
    double start = now_s(), busy = busy_s();
    for (int i = 0; i < SMALL_BATCHES; i++) {
        store_batch_clear(batch);
        store_batch_begin(batch, ts++);
        put_small(bench, batch, rng_below(&rng, bench->docs));
        must(store_write(bench->store, batch), "write");
        settle_when_due(bench);
    }
    printf("%-34s %8.2f us, %.2f of it busy\n", what, (now_s() - start) * 1e6 / SMALL_BATCHES,
           (busy_s() - busy) * 1e6 / SMALL_BATCHES);
    store_batch_free(batch);
}

static void measure_reads(struct bench *bench)
{
    enum { HOT_DOCS = 5000 };
    uint64_t hot = bench->docs < HOT_DOCS ? bench->docs : HOT_DOCS;
    read_random(bench, "get, first pass", 0, bench->docs, true);
    print_memory(bench, "after random gets");
    read_random(bench, "get, any document", 0, bench->docs, true);
    read_random(bench, "get, 5,000 documents", 0, hot, true);
    read_random(bench, "get, 5,000 documents, warm", 0, hot, true);
    read_random(bench, "get, never written", bench->docs, bench->docs, false);
    read_terms(bench);
    scan(bench, SPACE_DOCUMENTS, "scan of documents", false);
    scan(bench, SPACE_ENTRIES, "scan of entries", false);
    scan(bench, SPACE_ENTRIES, "scan of entries, backward", true);
}

static void measure_compaction(struct bench *bench)
{
    double start = now_s(), busy = all_busy_s();
    must(store_compact(bench->store), "compact");
    printf("%-34s %8.2f s, all threads busy %.2f s\n", "compact everything", now_s() - start, all_busy_s() - busy);
    print_memory(bench, "after compaction");
    read_random(bench, "get, any document, compacted", 0, bench->docs, true);
    read_random(bench, "get, never written, compacted", bench->docs, bench->docs, false);
    start = now_s();
    char *reason = NULL;
    if (store_verify(bench->store, &reason) != 0)
        die("verify", reason);
    printf("%-34s %8.2f s\n", "verify", now_s() - start);
}

static void measure(struct bench *bench)
{
    open_store(bench);
    measure_reads(bench);
    write_small(bench, 1000 + bench->docs, "batch of 12 keys");
    settle(bench->store);
    print_memory(bench, "after small writes");
    measure_compaction(bench);
    store_close(bench->store);
    open_store(bench);
    store_close(bench->store);
}

static void remove_directory(const char *directory)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf -- '%s'", directory);
    if (system(command) != 0)
        die("cannot remove", directory);
}

/* What the command line says. */
static struct {
    const char *directory; /* NULL: one is made */
    uint64_t docs;
    int entries;
    bool keeps;
} arg = {.docs = 1000000, .entries = 4};

static error_t parse(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case 'd': arg.directory = text; break;
    case 'n':
        arg.docs = strtoull(text, NULL, 10);
        if (arg.docs == 0)
            argp_error(state, "--docs: at least 1");
        break;
    case 'e': arg.entries = atoi(text); break;
    case 'k': arg.keeps = true; break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {"dir", 'd', "DIRECTORY", 0, "of the store; without, one in /tmp", 0},
        {"docs", 'n', "N", 0, "documents; 1000000 without", 0},
        {"entries", 'e', "N", 0, "index entries of a document; 4 without", 0},
        {"keep", 'k', NULL, 0, "keep the store", 0},
        {0},
    };
    static const struct argp argp = {table, parse, NULL, "Measures what the store alone can do.", NULL, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    char made[] = "/tmp/store_bench.XXXXXX";
    struct bench bench = {.docs = arg.docs, .entries = arg.entries, .directory = arg.directory};
    if (bench.directory == NULL)
        bench.directory = mkdtemp(made);
    if (bench.directory == NULL)
        die("cannot begin", "no directory");
    bench.key = bench.value = BUF_INIT(BUF_UNLIMITED);
    setvbuf(stdout, NULL, _IOLBF, 0);
    load_and_crash(&bench);
    measure(&bench);
    if (!arg.keeps)
        remove_directory(bench.directory);
    buf_deinit(&bench.key);
    buf_deinit(&bench.value);
    return 0;
}
