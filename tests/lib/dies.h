/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an action that a failed check must end, in a child process. For tests without threads. */
#ifndef TL_TESTS_LIB_DIES_H
#define TL_TESTS_LIB_DIES_H

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/*
 * Runs `action` in a child process. Fails the test unless the child is ended by SIGABRT and its
 * standard error contains `text`.
 */
static inline void assert_dies(void (*action)(void *), void *context, const char *text)
{
    char printed[4096];
    size_t len = 0;
    int ends[2], status;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka's handler would report a failure */
        dup2(ends[1], STDERR_FILENO);
        action(context);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], printed + len, sizeof printed - 1 - len)) > 0)
        len += (size_t)got;
    close(ends[0]);
    printed[len] = '\0';
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (strstr(printed, text) == NULL)
        fail_msg("the child printed '%s', expected '%s'", printed, text);
}

#endif
