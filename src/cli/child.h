/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that must not outlive us: in a process group of its own, dying with us however we die.
 *
 * The command's own process is killed by the kernel when we are gone (PR_SET_PDEATHSIG). Processes
 * that it has started are not; so a guard, a second child that does nothing but wait for the end of
 * a pipe that only we hold, kills the whole group.
 *
 * On a terminal the group is the one in the foreground, so that keys go to the command. A shell
 * that started us sees only us: when the command is stopped (Ctrl-Z), we stop too, and when we are
 * continued, so is the command. Without a shell that controls us, a command that is stopped is
 * stopped, and we continue.
 */
#ifndef TL_CLI_CHILD_H
#define TL_CLI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid; /* of the command and of its group */
    pid_t guard;
    int guard_pipe; /* our end */
    int terminal;   /* that controls us; -1: none */
    bool in_front;  /* the group has the terminal in our place */
    int stopped_by; /* the signal that has stopped it on our terminal; 0: it runs, or that is its own affair */
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

/*
 * Looks, without waiting, whether the command has ended or was stopped; sets `ended` and `status`, or `stopped_by`.
 * One that was stopped because it wants the terminal, which is ours to give, gets it instead.
 */
void child_reap(struct child *child);

/*
 * Requires: `stopped_by` is set. Stops us and our group as the command was, after giving the terminal back to our
 * parent; returns when we are continued. Ensures: `stopped_by` is 0.
 * Returns: whether the command is to continue.
 */
bool child_stop_too(struct child *child);

/* Continues a stopped command, with the terminal if we have it. */
void child_continue(struct child *child);

/* After the end: kills the rest of the group, ends the guard, takes the terminal back. */
void child_finish(struct child *child);

#endif
