/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The periodic comparison of a copy that follows: on a separate thread with separate connections,
 * at a hundredth of the possible speed. It only reads. A document that differs for some seconds
 * becomes a suspect that is due: the following thread checks it again while no request for it is
 * under way, and repairs it (replica.h, invariant 6). One whose version in the target is above the
 * source's timestamp cannot be repaired: it is reported once.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/replica.h"

#define LOOK_US (200 * 1000)

struct audit {
    struct thread thread;
    struct suspects *suspects;
    struct replica own; /* source, target and known indices; no lanes, no lock */
    struct replica_options options;
    struct document_set reported; /* with versions that the target keeps, by the last comparison */
    uint64_t every_us;
};

/* Waits for the next comparison. Returns: false: the program is to stop. */
static bool wait_for_turn(const struct audit *audit)
{
    for (uint64_t until = clock_boot_us() + audit->every_us; clock_boot_us() < until && !replica_stopping();)
        usleep(LOOK_US);
    return !replica_stopping();
}

/* An error is reported; the next comparison tries again. */
static void compare_once(struct audit *audit)
{
    struct replica *own = &audit->own;
    source_client_init(&own->source, own->hosts);
    source_client_init(&own->feed, own->hosts);
    source_client_init(&own->report_client, own->hosts);
    own->source.raw_numbers = true;
    if (target_open(&own->target, &audit->options) == 0)
        (void)verify_slowly(own, audit->suspects, &audit->reported);
    target_close(&own->target);
    copy_forget(own);
    own->indices = MAP_INIT;
    client_deinit(&own->source);
    client_deinit(&own->feed);
    client_deinit(&own->report_client);
}

static void run_audit(void *context)
{
    struct audit *audit = context;
    while (wait_for_turn(audit))
        compare_once(audit);
}

struct audit *audit_new(const struct replica *replica)
{
    struct audit *audit = mem_zalloc(sizeof *audit);
    audit->options = *replica->options;
    audit->options.quiet = true;
    audit->suspects = replica->suspects;
    audit->every_us = replica->options->verify_every_us;
    audit->own = (struct replica){.options = &audit->options, .hosts = replica->hosts, .indices = MAP_INIT};
    if (thread_start(&audit->thread, "audit", run_audit, audit) != 0)
        abort();
    return audit;
}

void audit_free(struct audit *audit)
{
    if (audit == NULL)
        return;
    REQUIRE(replica_stopping());
    thread_join(&audit->thread);
    mem_free(audit->reported.hashes);
    mem_free(audit);
}
