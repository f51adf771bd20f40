/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that take several commands; see divided.h. */
#include "api/request/divided.h"

#include "base/check.h"
#include "base/clock.h"
#include "core/command/command.h"

size_t divided_next(size_t done, size_t left)
{
    size_t next = done > 0 ? 2 * done : 1;
    return next < left ? next : left;
}

struct divided_targets divided_targets_of(struct lock_target *targets, size_t count)
{
    return (struct divided_targets){targets, count, count};
}

bool divided_targets_advance(struct divided_targets *targets, size_t done)
{
    REQUIRE(done <= targets->named && targets->named <= targets->count && (done > 0 || targets->count == 0));
    if (done > 0)
        targets->targets += done;
    targets->count -= done;
    targets->named = divided_next(done, targets->count);
    return targets->count > 0;
}

uint64_t divided_wait_end(uint64_t wait_us)
{
    uint64_t now = clock_boot_us();
    if (wait_us == 0)
        return 0;
    return wait_us < UINT64_MAX - now ? now + wait_us : UINT64_MAX;
}

uint64_t divided_wait_left(uint64_t until_us)
{
    uint64_t now = clock_boot_us();
    if (until_us == 0)
        return 0;
    return until_us > now ? until_us - now : 1;
}
