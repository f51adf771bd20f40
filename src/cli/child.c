/* SPDX-License-Identifier: Apache-2.0 */
/* A command that must not outlive us; see child.h. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
static _Noreturn void run(char **argv, pid_t parent, int gate)
{
    char go;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    if (getppid() != parent || read(gate, &go, 1) != 1)
        _exit(SIGNAL_BASE + SIGKILL); /* it died before the kernel was told */
    unblock_signals();
    execvp(argv[0], argv);
    _exit(errno == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

/* In the guard's process: the pipe ends when the last holder of its other end is gone. */
static _Noreturn void guard(int pipe_end, pid_t group)
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
        guard(ends[0], child->pid);
    }
    int failed = child->guard < 0 ? errno : 0;
    close(ends[0]);
    child->guard_pipe = ends[1];
    return failed;
}

static void give_terminal(struct child *child)
{
    child->terminal = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (!child->terminal)
        return;
    signal(SIGTTOU, SIG_IGN);
    (void)tcsetpgrp(STDIN_FILENO, child->pid);
}

int child_start(struct child *child, char **argv)
{
    int gate[2];
    pid_t parent = getpid();
    *child = (struct child){.guard_pipe = -1};
    if (pipe2(gate, O_CLOEXEC) != 0)
        return errno;
    child->pid = fork();
    if (child->pid == 0) {
        close(gate[1]);
        run(argv, parent, gate[0]);
    }
    int failed = child->pid < 0 ? errno : 0;
    close(gate[0]);
    if (failed == 0) {
        (void)setpgid(child->pid, child->pid);
        failed = start_guard(child);
        give_terminal(child);
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

void child_reap(struct child *child)
{
    int status;
    if (child->ended || waitpid(child->pid, &status, WNOHANG) != child->pid)
        return;
    child->ended = true;
    child->status = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_BASE + WTERMSIG(status);
}

void child_finish(struct child *child)
{
    if (child->terminal)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
    if (child->guard_pipe >= 0)
        close(child->guard_pipe); /* the guard kills what is left of the group, and ends */
    if (child->guard > 0)
        (void)waitpid(child->guard, NULL, 0);
    child->guard_pipe = -1;
}
