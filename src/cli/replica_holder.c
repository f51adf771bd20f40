/* SPDX-License-Identifier: Apache-2.0 */
/* Which process holds the lock of a copy, and whether it still exists; see replica.h, invariant 5. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/siphash.h"
#include "cli/durable.h"
#include "cli/replica.h"

/*
 * Returns: a number of the running kernel and of this program's process namespace, in which process
 * ids are unique; 0: unknown. A namespace that has the number of an earlier one of the same kernel
 * exists only after the last process of that one has ended.
 */
static uint64_t process_space(void)
{
    static const struct siphash_key key = {0}; /* the same in all programs */
    char boot_bytes[DURABLE_BOOT_BYTES_MAX];
    struct slice boot = durable_boot(boot_bytes);
    struct stat namespace;
    if (boot.len == 0 || stat("/proc/self/ns/pid", &namespace) != 0)
        return 0;
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&text, boot);
    buf_printf(&text, "%llu", (unsigned long long)namespace.st_ino);
    return siphash(&key, buf_as_slice(&text));
}

static void write_title(const char *name, struct buf *to)
{
    buf_printf(to, "replicate %s", name);
}

void holder_write(const char *name, struct buf *to)
{
    uint64_t space = process_space();
    write_title(name, to);
    if (space != 0)
        buf_printf(to, " (process %ld on %016llx)", (long)getpid(), (unsigned long long)space);
}

/*
 * A process id that is our own is of an ended process, too: a container's first program always has
 * the same one. A process id that was given to another program since counts as existing.
 */
static bool process_is_gone(long process)
{
    return process == (long)getpid() || (kill((pid_t)process, 0) != 0 && errno == ESRCH);
}

bool holder_is_gone(const char *name, struct slice holder, long *ret_process)
{
    tl_cleanup(buf_deinit) struct buf title = BUF_INIT(BUF_UNLIMITED);
    unsigned long long space;
    int end = 0;
    write_title(name, &title);
    if (!slice_starts_with(holder, buf_as_slice(&title)))
        return false;
    tl_cleanup(mem_freep) char *rest = mem_strdup(holder.data + title.len, holder.len - title.len);
    if (sscanf(rest, " (process %9ld on %16llx)%n", ret_process, &space, &end) != 2 || end == 0 || rest[end] != '\0')
        return false;
    return space != 0 && space == process_space() && *ret_process > 0 && process_is_gone(*ret_process);
}
