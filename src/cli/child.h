/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that must not outlive us: in a process group of its own, dying with us however we die.
 *
 * The command's own process is killed by the kernel when we are gone (PR_SET_PDEATHSIG). What it has started is not; so a
 * guard, a second child that does nothing but wait for the end of a pipe that only we hold, kills the whole group.
 */
#ifndef TL_CLI_CHILD_H
#define TL_CLI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid; /* of the command and of its group */
    pid_t guard;
    int guard_pipe; /* our end */
    bool terminal;  /* the group has the terminal in our place */
    bool ended;
    int status; /* once it has ended: the exit status to pass on */
};

/*
 * Starts `argv` with the environment as it is and all signals unblocked.
 * Returns: 0, or an errno value.
 */
int child_start(struct child *child, char **argv);

/* Sends a signal to the whole group; does nothing once it has ended. */
void child_signal(const struct child *child, int signal);

/* Looks, without waiting, whether the command has ended; sets `ended` and `status`. */
void child_reap(struct child *child);

/* After the end: kills what is left of the group, ends the guard, takes the terminal back. */
void child_finish(struct child *child);

#endif
