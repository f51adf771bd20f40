# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that tests stop and start again: reserved for one test, so that no other process has the port meanwhile.

A port that the kernel chose (port 0) may be given to any other process, a client's connection included, as soon as the server that
had it has ended. These ports are below the range from which the kernel chooses, and a lock file reserves each of them. The lock ends
with the process, however that ends.

    port = ports.Port()
    ...
    port.release()
"""
import fcntl
import os
import random
import socket

FIRST = 20000
FOLDER = "/tmp/tidelock-test-ports-%d" % os.getuid()  # one for all test runs of the machine, whatever TMPDIR they have


def end_of_range():
    """Returns: the lowest port that the kernel itself gives to a connection."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            return int(file.read().split()[0])
    except OSError:
        return 32768


def is_free(number):
    """Returns: whether a server could listen there. Its address is used as servers use it, also just after another one had it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
            probe.listen()
        except OSError:
            return False
    return True


class Port:
    """`number`, reserved until release(); 0, a port of the kernel's choice, where none can be reserved."""

    def __init__(self):
        os.makedirs(FOLDER, mode=0o700, exist_ok=True)
        candidates = range(FIRST, end_of_range())
        for number in random.SystemRandom().sample(candidates, len(candidates)):
            if self.lock(number):
                if is_free(number):
                    self.number = number
                    return
                self.release()
        self.number, self.file = 0, None

    def lock(self, number):
        """Returns: whether this process has the lock file of a port now."""
        self.file = os.open(os.path.join(FOLDER, str(number)), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            return False
        return True

    def release(self):
        if self.file is not None:
            os.close(self.file)
            self.file = None
