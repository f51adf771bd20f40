/* SPDX-License-Identifier: Apache-2.0 */
/* A command that must not outlive us; see child.h. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

enum { CANNOT_RUN = 126, NOT_FOUND = 127, SIGNAL_BASE = 128 };

static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTTOU, SIG_DFL);
}

/* In the command's process. `gate` lets it go once its group and guard stand. */
static _Noreturn void exec_command(char **argv, pid_t parent, int gate)
{
    char go;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    if (getppid() != parent || read(gate, &go, 1) != 1)
        _exit(SIGNAL_BASE + SIGKILL); /* the parent died before prctl() took effect */
    unblock_signals();
    execvp(argv[0], argv);
    int failed = errno;
    dprintf(STDERR_FILENO, "tidelock lock: cannot run %s: %s\n", argv[0], strerror(failed));
    _exit(failed == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

/* In the guard's process: the pipe ends when the last holder of its other end is gone. */
static _Noreturn void guard_group(int pipe_end, pid_t group)
{
    char byte;
    (void)setsid(); /* out of the reach of the terminal's signals */
    while (read(pipe_end, &byte, 1) < 0 && errno == EINTR)
        ;
    (void)kill(-group, SIGKILL);
    _exit(0);
}

static int start_guard(struct child *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    child->guard = fork();
    if (child->guard == 0) {
        close(ends[1]);
        guard_group(ends[0], child->pid);
    }
    int failed = child->guard < 0 ? errno : 0;
    close(ends[0]);
    child->guard_pipe = ends[1];
    return failed;
}

static void open_terminal(struct child *child)
{
    child->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (child->terminal >= 0)
        signal(SIGTTOU, SIG_IGN); /* or taking the terminal back would stop us */
}

/* Whether the terminal is ours to give. */
static bool before_terminal(const struct child *child)
{
    return child->terminal >= 0 && tcgetpgrp(child->terminal) == getpgrp();
}

static void give_terminal(struct child *child)
{
    if (before_terminal(child) && tcsetpgrp(child->terminal, child->pid) == 0)
        child->in_front = true;
}

static void take_terminal(struct child *child)
{
    if (child->in_front)
        (void)tcsetpgrp(child->terminal, getpgrp());
    child->in_front = false;
}

int child_start(struct child *child, char **argv)
{
    int gate[2];
    pid_t parent = getpid();
    *child = (struct child){.guard_pipe = -1, .terminal = -1};
    if (pipe2(gate, O_CLOEXEC) != 0)
        return errno;
    child->pid = fork();
    if (child->pid == 0) {
        close(gate[1]);
        exec_command(argv, parent, gate[0]);
    }
    int failed = child->pid < 0 ? errno : 0;
    close(gate[0]);
    if (failed == 0) {
        (void)setpgid(child->pid, child->pid);
        failed = start_guard(child);
        open_terminal(child);
        if (isatty(STDIN_FILENO))
            give_terminal(child); /* in a pipeline only to a command that asks for it */
        if (failed == 0 && write(gate[1], "", 1) != 1)
            failed = errno;
    }
    close(gate[1]);
    return failed;
}

void child_signal(const struct child *child, int signal)
{
    if (!child->ended)
        (void)kill(-child->pid, signal);
}

static void on_stop(struct child *child, int by)
{
    if ((by == SIGTTIN || by == SIGTTOU) && before_terminal(child))
        child_continue(child);
    else if (child->terminal >= 0)
        child->stopped_by = by;
}

void child_reap(struct child *child)
{
    int status;
    if (child->ended || waitpid(child->pid, &status, WNOHANG | WUNTRACED) != child->pid)
        return;
    if (WIFSTOPPED(status)) {
        on_stop(child, WSTOPSIG(status));
        return;
    }
    child->ended = true;
    child->status = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_BASE + WTERMSIG(status);
}

/*
 * By SIGTSTP, to all processes that the terminal would have stopped: a script that waits for us,
 * the rest of a pipeline. It does nothing where no shell could continue us. Requires: SIGCONT is
 * blocked. Returns: whether we were stopped.
 */
static bool stop_group(void)
{
    sigset_t stop;
    sigset_t go_on;
    sigset_t before;
    sigprocmask(SIG_BLOCK, NULL, &before);
    REQUIRE(sigismember(&before, SIGCONT) == 1);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigemptyset(&go_on);
    sigaddset(&go_on, SIGCONT);
    (void)kill(0, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, &before); /* here we stand still */
    sigprocmask(SIG_SETMASK, &before, NULL);
    return sigtimedwait(&go_on, NULL, &(struct timespec){0}) == SIGCONT;
}

bool child_stop_too(struct child *child)
{
    REQUIRE(child->stopped_by != 0);
    int by = child->stopped_by;
    child->stopped_by = 0;
    take_terminal(child);
    return stop_group() || by == SIGTSTP; /* a key that stops nothing without us stops nothing with us */
}

void child_continue(struct child *child)
{
    give_terminal(child);
    child_signal(child, SIGCONT);
}

void child_finish(struct child *child)
{
    take_terminal(child);
    if (child->guard_pipe >= 0)
        close(child->guard_pipe); /* the guard kills the rest of the group, and ends */
    if (child->guard > 0)
        (void)waitpid(child->guard, NULL, 0);
    if (child->terminal >= 0)
        close(child->terminal);
    child->guard_pipe = child->terminal = -1;
}
