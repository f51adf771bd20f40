/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills a process that writes to the store on disk, again and again.
 *
 * Each batch writes its number to a key of every space. One thread writes, another syncs and then reports
 * what was written before the sync. The parent kills the child after some reports; the next child finds that
 * nothing reported is missing, that all spaces stand at the same batch, also for reads in the past, and goes
 * on from there. Memtables are small, so kills hit flushes and compactions too, and logs are short.
 *
 * Every other child writes a few batches a sync, as many as make the store write zeros ahead of its log, and now and then one
 * that is larger than they are. Behind what a child left in its newest log the parent lays what a power cut may leave there:
 * parts of a record, alone or before zeros, and parts with zeros before them.
 *
 * Of what each child left some copies are made, images of a power cut: sectors of any of their logs are lost, or the end of one, or
 * all of it. As long as SYNCED is there a copy may be refused, and if it opens it holds everything reported. Without SYNCED nothing
 * is known to have been safe: then it must open, with a prefix of the batches, whichever log has lost what.
 *
 * usage: store_crash [--kills N] [--seed S]
 */
#include "base/alloc.h"
#include "base/rand.h"
#include "store/rocks_log.h"
#include "store/store.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILLER_BYTES_MAX = 3000, LARGE_BYTES_MAX = 400000, HISTORY_BATCHES = 5000, TORN_BYTES_MAX = 70000 };

struct child {
    struct store *store;
    int reports;             /* a pipe to the parent */
    bool slow;               /* writes no more than a few batches a sync */
    _Atomic uint64_t number; /* of the newest batch; its timestamp too */
    _Atomic uint64_t synced;
};

static _Noreturn void fail(const char *what, uint64_t number, uint64_t found)
{
    fprintf(stderr, "store_crash: %s: %llu, found %llu\n", what, (unsigned long long)number, (unsigned long long)found);
    exit(1);
}

/* The number a space holds as of a batch, 0 where it holds none. */
static uint64_t read_number(struct store *store, enum store_space space, tl_ts ts)
{
    struct store_value value;
    int r = store_get(store, space, ts, SLICE_LIT("number"), &value);
    if (r == STORE_NOT_FOUND)
        return 0;
    uint64_t number = 0;
    if (r != 0 || !slice_to_u64(value.bytes, &number))
        fail("reading", (uint64_t)space, (uint64_t)-r);
    store_value_release(&value);
    return number;
}

/* Checks what the last child left. Returns: the newest batch. */
static uint64_t check_store(struct store *store, uint64_t reported, struct rng *rng)
{
    uint64_t number = read_number(store, SPACE_SYSTEM, 0);
    if (number < reported)
        fail("a reported batch is missing", reported, number);
    uint64_t low = store_history_low(store);
    for (int i = 0; i < 20 && number > 0; i++) {
        tl_ts ts = i == 0 || low >= number ? number : low + rng_below(rng, number - low) + 1;
        for (int space = 0; space < SPACE_COUNT; space++) {
            uint64_t found = read_number(store, space, ts);
            bool has_past = space != SPACE_SYSTEM && space != SPACE_FEED;
            if (has_past && found != ts)
                fail("a space stands elsewhere", ts, found);
        }
    }
    char *reason = NULL;
    if (store_verify(store, &reason) != 0)
        fail(reason, number, 0);
    return number;
}

static void write_batch(struct child *child, struct store_batch *batch, uint64_t number, struct rng *rng)
{
    char text[24];
    size_t len = child->slow && rng_below(rng, 200) == 0 ? LARGE_BYTES_MAX : FILLER_BYTES_MAX;
    tl_cleanup(mem_freep) char *filler = mem_alloc(len);
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    memset(filler, (int)rng_below(rng, 256), len);
    store_batch_clear(batch);
    store_batch_begin(batch, number);
    for (int space = 0; space < SPACE_COUNT; space++)
        store_batch_put(batch, space, SLICE_LIT("number"), slice_from(text));
    enum store_space space = (enum store_space)rng_below(rng, SPACE_COUNT);
    snprintf(text, sizeof text, "filler %llu", (unsigned long long)rng_below(rng, 1000));
    store_batch_put(batch, space, slice_from(text), slice_make(filler, rng_below(rng, len)));
    if (store_write(child->store, batch) != 0)
        fail("writing", number, 0);
}

static void *write_for_ever(void *argument)
{
    struct child *child = argument;
    struct store_batch *batch = store_batch_new(child->store);
    struct rng rng;
    rng_init(&rng, atomic_load(&child->number));
    for (;;) {
        uint64_t number = atomic_load(&child->number) + 1;
        while (child->slow && number > atomic_load(&child->synced) + 3)
            sched_yield();
        write_batch(child, batch, number, &rng);
        atomic_store(&child->number, number);
        if (number % 200 == 0 && number > HISTORY_BATCHES &&
            store_set_history_low(child->store, number - HISTORY_BATCHES) != 0)
            fail("cut-off", number, 0);
    }
    return NULL;
}

static _Noreturn void run_child(const char *directory, uint64_t reported, uint64_t seed, int reports)
{
    struct store_options options = {.directory = slice_from(directory), .write_buffer_bytes = 512 << 10};
    struct child child = {.reports = reports, .slow = seed % 2 == 0};
    struct rng rng;
    char *reason = NULL;
    rng_init(&rng, seed);
    if (store_open_rocks(&options, &child.store, &reason) != 0)
        fail(reason, reported, 0);
    atomic_store(&child.number, check_store(child.store, reported, &rng));
    atomic_store(&child.synced, atomic_load(&child.number));
    pthread_t writer;
    if (pthread_create(&writer, NULL, write_for_ever, &child) != 0)
        fail("thread", 0, 0);
    for (;;) {
        uint64_t number = atomic_load(&child.number);
        if (store_sync(child.store) != 0)
            fail("sync", number, 0);
        atomic_store(&child.synced, number);
        if (write(reports, &number, sizeof number) != sizeof number)
            _exit(0);
    }
}

/* Starts a child and kills it after some reports. Returns: the newest number reported. */
static uint64_t run_and_kill(const char *directory, uint64_t reported, struct rng *rng)
{
    int ends[2];
    if (pipe(ends) != 0)
        fail("pipe", 0, 0);
    uint64_t seed = rng_next(rng), reports = 1 + rng_below(rng, 600);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the simulator has one thread */
        close(ends[0]);
        run_child(directory, reported, seed, ends[1]);
    }
    close(ends[1]);
    uint64_t number;
    bool failed = false;
    while (reports > 0 && !failed) {
        failed = read(ends[0], &number, sizeof number) != sizeof number;
        reported = failed ? reported : number;
        reports--;
    }
    kill(pid, SIGKILL);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        reported = number;
    waitpid(pid, NULL, 0);
    close(ends[0]);
    if (failed)
        exit(1);
    return reported;
}

/* Where the last record of a log ends. Each ends with a digit: SPACE_SYSTEM comes last in a batch, and there the number. */
static off_t end_of_data(int fd)
{
    struct stat log;
    char byte = 0;
    if (fstat(fd, &log) != 0)
        fail("log", 0, 0);
    off_t end = log.st_size;
    while (end > 0 && byte == 0 && pread(fd, &byte, 1, end - 1) == 1)
        end -= byte == 0;
    return end;
}

/* Returns: whether there were zeros ahead. */
static bool tear_log(const char *directory, struct rng *rng)
{
    char path[128], torn[TORN_BYTES_MAX];
    snprintf(path, sizeof path, "%s/rocks", directory);
    uint64_t number = rocks_log_newest(path, UINT64_MAX);
    snprintf(path, sizeof path, "%s/rocks/%06llu.log", directory, (unsigned long long)number);
    int fd = open(path, O_RDWR);
    off_t end = fd < 0 ? 0 : end_of_data(fd);
    struct stat log;
    if (fd < 0 || end == 0 || fstat(fd, &log) != 0) {
        close(fd);
        return false;
    }
    size_t len = (size_t)rng_below(rng, rng_below(rng, 2) == 0 ? 20 : TORN_BYTES_MAX);
    off_t gap = rng_below(rng, 3) == 0 ? (off_t)rng_below(rng, TORN_BYTES_MAX) : 0;
    for (size_t i = 0; i < len; i++)
        torn[i] = (char)rng_below(rng, 3);
    if (rng_below(rng, 4) > 0 && pwrite(fd, torn, len, end + gap) != (ssize_t)len)
        fail("tearing", number, len);
    close(fd);
    return log.st_size > end;
}

/* --- Images of a power cut --------------------------------------------------------------------------------------- */

enum { SECTOR_BYTES = 512, IMAGES = 4, PAST_CHECKED = 2000 };

/* Loses something of a log: sectors, the end, or everything; to zeros, or the file with it. */
static void lose(const char *path, struct rng *rng)
{
    static const char zeros[64 * SECTOR_BYTES];
    struct stat log;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &log) != 0)
        fail("log", 0, 0);
    uint64_t sectors = ((uint64_t)log.st_size + SECTOR_BYTES - 1) / SECTOR_BYTES;
    uint64_t from = sectors == 0 || rng_below(rng, 4) == 0 ? 0 : rng_below(rng, sectors);
    uint64_t count = rng_below(rng, 3) == 0 ? sectors - from : rng_below(rng, 2) == 0 ? 1 : rng_below(rng, 200) + 1;
    if (rng_below(rng, 4) == 0) {
        if (ftruncate(fd, (off_t)(from * SECTOR_BYTES + rng_below(rng, SECTOR_BYTES))) != 0)
            fail("losing", from, 0);
        count = 0;
    }
    for (uint64_t i = 0; i < count && (from + i) * SECTOR_BYTES < (uint64_t)log.st_size; i++)
        if (pwrite(fd, zeros, SECTOR_BYTES, (off_t)((from + i) * SECTOR_BYTES)) != SECTOR_BYTES)
            fail("losing", from, count);
    close(fd);
}

/* Returns: how many logs there are; loses something of one or two of them. */
static int lose_of_logs(const char *directory, struct rng *rng)
{
    char path[160];
    uint64_t numbers[64];
    int count = 0;
    snprintf(path, sizeof path, "%s/rocks", directory);
    for (uint64_t number = UINT64_MAX; count < 64 && (number = rocks_log_newest(path, number)) != 0;)
        numbers[count++] = number;
    for (uint64_t losses = rng_below(rng, 2) + 1; losses > 0 && count > 0; losses--) {
        uint64_t number = numbers[rng_below(rng, (uint64_t)count)];
        snprintf(path, sizeof path, "%s/rocks/%06llu.log", directory, (unsigned long long)number);
        lose(path, rng);
    }
    return count;
}

/* Every batch up to the newest is there: reads in the past see each. */
static void check_prefix(struct store *store, struct rng *rng)
{
    uint64_t number = check_store(store, 0, rng), low = store_history_low(store);
    for (uint64_t ts = number; ts > 0 && ts > low && number - ts < PAST_CHECKED; ts--)
        if (read_number(store, SPACE_DOCUMENTS, ts) != ts)
            fail("a batch is missing in the middle", number, ts);
}

/* What became of the images. */
struct tally {
    uint64_t images, many_logs, refused;
};

static void try_image(const char *directory, uint64_t reported, struct rng *rng, struct tally *tally)
{
    char image[80], command[512];
    struct store *store;
    char *reason = NULL;
    bool modest = rng_below(rng, 3) > 0;
    snprintf(image, sizeof image, "%s.image", directory);
    snprintf(command, sizeof command, "rm -rf -- '%s' && cp -a -- '%s' '%s' && %s '%s/SYNCED'", image, directory, image,
             modest ? "rm -f --" : "test -e", image);
    if (system(command) != 0)
        fail("copying", 0, 0);
    tally->many_logs += lose_of_logs(image, rng) > 1;
    tally->images++;
    struct store_options options = {.directory = slice_from(image), .write_buffer_bytes = 512 << 10};
    int r = store_open_rocks(&options, &store, &reason);
    tally->refused += r != 0;
    /* A flush syncs the logs whose changes it writes to files; without them one space would be ahead of the others. */
    bool flushed = r != 0 && strstr(reason, "changes are missing that had been synced") != NULL;
    if (r != 0 && ((modest && !flushed) || r != TL_ERR_CORRUPT))
        fail(reason, reported, (uint64_t)-r);
    if (r == 0) {
        if (!modest)
            (void)check_store(store, reported, rng);
        check_prefix(store, rng);
        store_close(store);
    }
    mem_free(reason);
    snprintf(command, sizeof command, "rm -rf -- '%s'", image);
    if (system(command) != 0)
        fail("removing", 0, 0);
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/store_crash.XXXXXX";
    uint64_t kills = 20, seed = 1, reported = 0, ahead = 0;
    struct tally tally = {0, 0, 0};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--kills") == 0)
            kills = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
    }
    if (mkdtemp(directory) == NULL)
        fail("directory", 0, 0);
    struct rng rng;
    rng_init(&rng, seed);
    for (uint64_t i = 0; i < kills; i++) {
        reported = run_and_kill(directory, reported, &rng);
        for (int image = 0; image < IMAGES; image++)
            try_image(directory, reported, &rng, &tally);
        ahead += tear_log(directory, &rng);
    }
    printf("store_crash: %llu kills, %llu with zeros ahead of the log, %llu batches, none lost\n",
           (unsigned long long)kills, (unsigned long long)ahead, (unsigned long long)reported);
    printf("store_crash: %llu images of a power cut, %llu with more logs than one, %llu refused\n",
           (unsigned long long)tally.images, (unsigned long long)tally.many_logs, (unsigned long long)tally.refused);
    char command[64];
    snprintf(command, sizeof command, "rm -rf -- '%s'", directory);
    return system(command) == 0 ? 0 : 1;
}
