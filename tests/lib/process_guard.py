# SPDX-License-Identifier: Apache-2.0
"""Ends all processes that a test starts when the test ends, also when it is killed. A test only needs to import this module.

A process that imports it adds a token of its own to TIDELOCK_TEST_GUARD, an environment variable that all processes it
starts inherit, through shells, sessions and dead parents. A guard, a process in a session of its own, waits until the test
has ended, and then kills all processes that carry the token. (PR_SET_PDEATHSIG would bind a server to the thread that
started it, and a process that needs a process group of its own leaves the test's.)

A process that is left by a test that has otherwise passed is an error of the test: when TIDELOCK_TEST_LEFT names a file, the
guard adds a line for each such process. tools/run-tests reads it, and searches for processes itself at the end.
"""
import os
import select
import signal
import sys
import time

VARIABLE = "TIDELOCK_TEST_GUARD"
LEFT = "TIDELOCK_TEST_LEFT"
# Seconds in which processes may end by themselves: children of a shell whose terminal hung up, a
# program under a sanitizer.
GRACE = float(os.environ.get("TIDELOCK_TEST_GRACE", "30"))
TRIES = 100  # rounds of killing: a process may be starting another one while it is killed


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended, or is another user's


def is_zombie(pid):
    return read("/proc/%d/stat" % pid).rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"], [])


def carriers(token):
    """Returns: (pid, command line) of each live process with the token, except this one."""
    mine = ("%s=" % VARIABLE).encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        tokens = [entry[len(mine):] for entry in read("/proc/%s/environ" % name).split(b"\0") if entry.startswith(mine)]
        if tokens and token.encode() in tokens[0].split(b":") and not is_zombie(int(name)):
            found.append((int(name), read("/proc/%s/cmdline" % name).replace(b"\0", b" ").decode(errors="replace").strip()))
    return found


def end(token):
    """Kills all processes that carry the token. Returns: (pid, command line) of each."""
    ended = {}
    for _ in range(TRIES):
        alive = carriers(token)
        if not alive:
            break
        for pid, command in alive:
            ended[pid] = command
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    return sorted(ended.items())


def wait_for_end_of(parent):
    """Waits until the parent has ended. Requires: this process was started by `parent`."""
    try:
        fd = os.pidfd_open(parent)
    except (OSError, AttributeError):
        fd = None
    if fd is not None and os.getppid() == parent:
        select.select([fd], [], [])
    while os.getppid() == parent:  # if the kernel has no pidfd
        time.sleep(0.2)


def guard(token, parent, title):
    wait_for_end_of(parent)
    until = time.monotonic() + GRACE
    while carriers(token) and time.monotonic() < until:
        time.sleep(0.1)
    left = end(token)
    path = os.environ.get(LEFT)
    if left and path:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines("%s left process %d: %s\n" % (title, pid, command[:200]) for pid, command in left)


def with_token(environment, token):
    """Returns: the environment with the token added, for a process to be guarded."""
    before = environment.get(VARIABLE)
    return dict(environment, **{VARIABLE: before + ":" + token if before else token})


def begin():
    """Starts the guard: programs that this process starts from now on end with it."""
    import subprocess  # the guard itself needs neither this nor ctypes: there is one for each test
    token = "%d-%s" % (os.getpid(), os.urandom(8).hex())
    guard_process = subprocess.Popen([sys.executable, "-I", "-S", os.path.abspath(__file__), token, str(os.getpid()), os.path.basename(sys.argv[0])],
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
                     env={name: value for name, value in os.environ.items() if name != VARIABLE})
    guard_process.returncode = 0  # it outlives this process: suppresses the warning that it was not waited for
    os.environ.update(with_token(os.environ, token))


def die_with_parent():
    """Requests SIGKILL when the parent ends. For forked copies of the test: the token is only in the environment of programs started by exec."""
    import ctypes
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    guard(sys.argv[1], int(sys.argv[2]), sys.argv[3])
else:
    begin()
