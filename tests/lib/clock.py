# SPDX-License-Identifier: Apache-2.0
"""The clocks of a program under test (clock_shim.c): set them, stop them, let time pass at once.

    server = ClockedServer().start()
    server.clock.step(3600)        # the clock of the machine is set forward
    server.pass_time(60)           # a minute passes in which the server works: leases of a minute run out
    server.clock.jump(60)          # a minute passes in which it did not work

A server that reads a clock which has gone on by more than half a second takes the rest for time in which it did not work, and
counts it against no lease (journal/times.h, RUN_CLOCK_STALL_US). So pass_time() goes in small steps, with a request after each. A lease that
has run out ends with the server's next beat, a quarter of a second later: wait for it.
"""
import os
import struct
import tempfile
import time

from server import BUILD, Server

SHIM = os.environ.get("TIDELOCK_CLOCK_SHIM", os.path.join(BUILD, "tests", "e2e", "clock_shim.so"))
STEP = 0.4  # seconds; below RUN_CLOCK_STALL_US


class Clock:
    """Both clocks of the programs that are started with environment()."""

    def __init__(self):
        assert os.path.exists(SHIM), SHIM + " is not built"
        descriptor, self.name = tempfile.mkstemp(prefix="tidelock-clock-")
        os.close(descriptor)
        self.wall = [0, 1.0, int(time.time() * 1e6)]
        self.boot = [0, 1.0, self.machine_boot()]
        self.set()

    def machine_boot(self):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

    def set(self):
        with open(self.name, "r+b", buffering=0) as file:
            file.write(struct.pack("=qdqqdq", *self.wall, *self.boot))

    def environment(self):
        # The preloaded library comes before the sanitizer's, and must: it needs nothing of it.
        return {"LD_PRELOAD": SHIM, "TIDELOCK_TEST_CLOCK": self.name,
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def step(self, seconds):
        """The clock of the machine is set."""
        self.wall[0] += int(seconds * 1e6)
        self.set()

    def run(self, rate):
        """From now on the clock of the machine runs wrong."""
        self.wall[1:] = [rate, int(time.time() * 1e6)]
        self.set()

    def stand(self):
        """From now on time passes by jump() only. Not for a server, which waits by this clock when it stops."""
        self.boot[1:] = [0.0, self.machine_boot()]
        self.set()

    def jump(self, seconds):
        """Time passes, by both clocks."""
        self.wall[0] += int(seconds * 1e6)
        self.boot[0] += int(seconds * 1e6)
        self.set()

    def close(self):
        os.unlink(self.name)


class ClockedServer(Server):
    def __init__(self, *options, **more):
        super().__init__(*options, **more)
        self.clock = Clock()
        self.environment.update(self.clock.environment())

    def pass_time(self, seconds):
        """Time passes while the server works."""
        while seconds > 0:
            self.clock.jump(min(seconds, STEP))
            self.ask("POST", "/_unlock", {"session": "none"})  # a command: the clock is read before it
            seconds -= STEP

    def close(self):
        super().close()
        self.clock.close()
