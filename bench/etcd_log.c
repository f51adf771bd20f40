/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an append to the log in etcd costs: processor time of etcd and of us, and how long it takes.
 * `ninja bench/etcd_log`.
 *
 *     etcd_log [MEMBERS [SECONDS]]     1 or 3 members, started for this; seconds for each length
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../tests/lib/etcd_fixture.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/types.h"
#include "cmdlog/cmdlog_etcd.h"

enum { SAMPLES_MAX = 200000 };

static uint64_t own_cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * TL_SECOND +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Follows as a host does: all that comes is taken and checked. */
static void *follow(void *context)
{
    struct cmdlog_cursor *cursor = context;
    struct cmdlog_entry entry;
    for (int r = 0; r == 0 || r == CMDLOG_END;) {
        r = cmdlog_next(cursor, &entry);
        if (r == CMDLOG_END && cmdlog_await(cursor, CMDLOG_FOREVER) == CMDLOG_END)
            return NULL;
    }
    return cursor;
}

struct side {
    pthread_t thread;
    struct cmdlog *log;
    struct slice entry;
    uint64_t until;
    uint64_t *samples;
    size_t count;
};

static void *append(void *context)
{
    struct side *side = context;
    while (clock_boot_us() < side->until && side->count < SAMPLES_MAX) {
        cmdlog_position position;
        uint64_t begun = clock_boot_us();
        if (cmdlog_append(side->log, &side->entry, 1, &position) != 0)
            abort();
        side->samples[side->count++] = clock_boot_us() - begun;
    }
    return NULL;
}

static void measure(struct etcd_fixture *fixture, struct cmdlog *log, size_t len, uint64_t seconds, int sides)
{
    struct side all[2];
    struct cmdlog_etcd_counts before, after;
    char *bytes = mem_zalloc(len);
    cmdlog_etcd_counts(log, &before);
    uint64_t etcd_us = etcd_fixture_cpu_us(fixture), own_us = own_cpu_us(), begun = clock_boot_us();
    for (int i = 0; i < sides; i++) {
        all[i] = (struct side){.log = log, .entry = slice_make(bytes, len), .until = begun + seconds * TL_SECOND};
        all[i].samples = mem_alloc(SAMPLES_MAX * sizeof *all[i].samples);
        pthread_create(&all[i].thread, NULL, append, &all[i]);
    }
    uint64_t *samples = mem_alloc(2 * SAMPLES_MAX * sizeof *samples);
    size_t count = 0;
    for (int i = 0; i < sides; i++) {
        pthread_join(all[i].thread, NULL);
        memcpy(samples + count, all[i].samples, all[i].count * sizeof *samples);
        count += all[i].count;
        mem_free(all[i].samples);
    }
    uint64_t took = clock_boot_us() - begun;
    etcd_us = etcd_fixture_cpu_us(fixture) - etcd_us;
    own_us = own_cpu_us() - own_us;
    cmdlog_etcd_counts(log, &after);
    qsort(samples, count, sizeof *samples, compare);
    printf("%9zu %5d %9.0f %12.0f %12.0f %9.2f %9.2f %7.2f\n", len, sides, (double)count * 1e6 / (double)took,
           (double)etcd_us / (double)count, (double)own_us / (double)count, (double)samples[count / 2] / 1000,
           (double)samples[count * 99 / 100] / 1000,
           100.0 * (double)(after.disordered - before.disordered) / (double)count);
    fflush(stdout);
    mem_free(samples);
    mem_free(bytes);
}

int main(int argc, char **argv)
{
    static const char *const arguments[] = {"--quota-backend-bytes", "8000000000", NULL};
    static const size_t lens[] = {500, 16 << 10, 64 << 10, 1 << 20};
    int members = argc > 1 ? atoi(argv[1]) : 3;
    uint64_t seconds = argc > 2 ? (uint64_t)atoi(argv[2]) : 3, life;
    struct etcd_fixture *fixture = etcd_fixture_start(members == 1 ? 1 : 3, arguments);
    struct cmdlog *log;
    struct cmdlog_cursor *cursor;
    char *reason;
    pthread_t follower;
    const struct cmdlog_etcd_options options = {.url = slice_from(etcd_fixture_url(fixture, "bench")),
                                                .name = SLICE_LIT("bench"),
                                                .lease_us = 60 * TL_SECOND,
                                                .quota = 8000000000};
    if (cmdlog_etcd_open(&options, &log, &reason) != 0 || cmdlog_join(log, SLICE_NONE, CMDLOG_FOREVER, &life) != 0 ||
        cmdlog_follow(log, life + 1, &cursor) != 0)
        abort();
    pthread_create(&follower, NULL, follow, cursor);
    printf("%d members; microseconds of processor time an append (ours: appending and following), milliseconds an "
           "append takes\n",
           members);
    printf("%9s %5s %9s %12s %12s %9s %9s %7s\n", "bytes", "at once", "a second", "etcd us", "ours us", "p50 ms",
           "p99 ms", "again %");
    for (int sides = 1; sides <= 2; sides++)
        for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++)
            measure(fixture, log, lens[i], seconds, sides);
    cmdlog_interrupt(cursor);
    pthread_join(follower, NULL);
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
    etcd_fixture_stop(fixture);
    return 0;
}
