# SPDX-License-Identifier: Apache-2.0
"""What a test starts ends with it, however it ends: importing this is all that a test does.

A process that imports it puts a token of its own into TIDELOCK_TEST_TIES, an environment variable that everything it
starts inherits, through shells, sessions and dead parents. A guard, a process of its own session, waits for the test to be
gone, killed or not, and then kills whatever still carries the token. (PR_SET_PDEATHSIG would bind a server to the thread
that started it, and a process group is left by whoever needs one of its own.)

What was still there is a mistake of a test that had otherwise passed: when TIDELOCK_TEST_LEFT names a file, the guard adds a
line for each such process. tools/run-tests reads it, and looks for itself in the end.
"""
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

VARIABLE = "TIDELOCK_TEST_TIES"
LEFT = "TIDELOCK_TEST_LEFT"
GRACE = float(os.environ.get("TIDELOCK_TEST_GRACE", "30"))  # seconds in which what was told to end may do so: children of a shell whose terminal hung up, a program under a sanitizer
TRIES = 100  # looks for what is left: a process may be starting another one while it is killed


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended, or is another user's


def is_zombie(pid):
    return read("/proc/%d/stat" % pid).rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"], [])


def carriers(token):
    """Returns: (pid, command line) of each live process with the token, but not this one."""
    mine = ("%s=" % VARIABLE).encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        ties = [entry[len(mine):] for entry in read("/proc/%s/environ" % name).split(b"\0") if entry.startswith(mine)]
        if ties and token.encode() in ties[0].split(b":") and not is_zombie(int(name)):
            found.append((int(name), read("/proc/%s/cmdline" % name).replace(b"\0", b" ").decode(errors="replace").strip()))
    return found


def end(token):
    """Kills all that carries the token. Returns: what that was, (pid, command line)."""
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
    """Requires: a process that was started by `parent`."""
    try:
        fd = os.pidfd_open(parent)
    except (OSError, AttributeError):
        fd = None
    if fd is not None and os.getppid() == parent:
        select.select([fd], [], [])
    while os.getppid() == parent:  # where the kernel has no such descriptors
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
    """Returns: the environment for what is to carry the token, too."""
    before = environment.get(VARIABLE)
    return dict(environment, **{VARIABLE: before + ":" + token if before else token})


def tie():
    """Ties the programs that this process starts from now on to its own life."""
    token = "%d-%s" % (os.getpid(), os.urandom(8).hex())
    guard_process = subprocess.Popen([sys.executable, os.path.abspath(__file__), token, str(os.getpid()), os.path.basename(sys.argv[0])],
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
                     env={name: value for name, value in os.environ.items() if name != VARIABLE})
    guard_process.returncode = 0  # it outlives us: nobody waits for it, and nobody is to be warned of that
    os.environ.update(with_token(os.environ, token))


def die_with_parent():
    """For a process that was forked and runs on as a copy of the test: the token is in the environment of programs only."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    guard(sys.argv[1], int(sys.argv[2]), sys.argv[3])
else:
    tie()
