/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that fails: preloaded (LD_PRELOAD), fsync() and fdatasync() of the program under test fail with EIO while there is a file of the name
 * that TIDELOCK_TEST_SYNC gives. Nothing else changes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fails(void)
{
    const char *name = getenv("TIDELOCK_TEST_SYNC");
    if (name == NULL || access(name, F_OK) != 0)
        return 0;
    errno = EIO;
    return 1;
}

__attribute__((visibility("default"))) int fsync(int file)
{
    return fails() ? -1 : (int)syscall(SYS_fsync, file);
}

__attribute__((visibility("default"))) int fdatasync(int file)
{
    return fails() ? -1 : (int)syscall(SYS_fdatasync, file);
}
