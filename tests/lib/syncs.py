# SPDX-License-Identifier: Apache-2.0
"""A disk whose syncs fail or take long, for any program, also one that makes system calls by itself, as those in Go (etcd) do.

The program runs under a seccomp filter that hands its fsync() and fdatasync() to a thread of the test (seccomp_unotify(2)), which lets them
continue, delays them, one after the other as a disk would, or fails them with EIO. Needs Linux 5.5 and no privileges.

    python3 syncs.py SOCKET PROGRAM ...     what Syncs.start() runs: installs the filter, sends the descriptor, becomes the program
"""
import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import threading

CALLS = {"x86_64": (317, 74, 75), "aarch64": (277, 82, 83)}  # seccomp, fsync, fdatasync
PR_SET_NO_NEW_PRIVS, SECCOMP_SET_MODE_FILTER, NEW_LISTENER = 38, 1, 8
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
USER_NOTIFY, ALLOW = 0x7fc00000, 0x7fff0000
RECEIVE, ANSWER, CONTINUE = 0xC0502100, 0xC0182101, 1  # struct seccomp_notif of 80 bytes, seccomp_notif_resp of 24


class Syncs:
    """Of one node, over all starts of its program."""

    def __init__(self):
        self.fail = False
        self.delay = 0  # seconds
        self.failed = False  # since the program was started
        self.lock = threading.Lock()
        self.changed = threading.Event()

    def set(self, fail=False, delay=0):
        with self.lock:
            self.fail, self.delay = fail, delay
        self.changed.set()  # a delayed call continues now
        self.changed = threading.Event()

    def start(self, inside, *command, **more):
        """Starts a program; `inside` makes the command that runs another one in a namespace. Returns: its Popen."""
        self.failed = False
        near, far = socket.socketpair()
        with far:
            process = subprocess.Popen(inside(sys.executable, __file__, str(far.fileno()), *command), pass_fds=[far.fileno()], **more)
        threading.Thread(target=self.serve, args=(near,), daemon=True).start()
        return process

    def start_here(self, command, **more):
        """The same without a namespace."""
        return self.start(lambda *words: words, *command, **more)

    def serve(self, near):
        with near:
            descriptors = socket.recv_fds(near, 1, 1)[1]
        if not descriptors:  # the program could not be started, which its Popen shows
            return
        poll = select.poll()
        poll.register(descriptors[0], select.POLLIN)
        try:
            while poll.poll()[0][1] & select.POLLIN:
                self.answer(descriptors[0])
        finally:
            os.close(descriptors[0])

    def answer(self, descriptor):
        call = bytearray(80)
        try:
            fcntl.ioctl(descriptor, RECEIVE, call)
            number = struct.unpack_from("Q", call)[0]
            changed = self.changed
            if self.delay:
                changed.wait(self.delay)
            with self.lock:
                fail = self.fail
                self.failed = self.failed or fail
            answer = struct.pack("QqiI", number, 0, -errno.EIO, 0) if fail else struct.pack("QqiI", number, 0, 0, CONTINUE)
            fcntl.ioctl(descriptor, ANSWER, answer)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINPROGRESS):  # the program has been killed meanwhile
                raise


def install():
    """Returns: the descriptor at which calls are answered."""
    libc = ctypes.CDLL(None, use_errno=True)
    seccomp, fsync, fdatasync = CALLS[platform.machine()]
    steps = ((LOAD, 0, 0, 0), (JUMP_EQUAL, 1, 0, fsync), (JUMP_EQUAL, 0, 1, fdatasync), (RETURN, 0, 0, USER_NOTIFY), (RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    descriptor = -1
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        descriptor = libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, NEW_LISTENER, program)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls: " + os.strerror(ctypes.get_errno()))
    return descriptor


def main():
    with socket.socket(fileno=int(sys.argv[1])) as test:
        descriptor = install()
        socket.send_fds(test, [b"-"], [descriptor])
    os.close(descriptor)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
