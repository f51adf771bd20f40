# SPDX-License-Identifier: Apache-2.0
"""The clocks of a program under test (clock_shim.c): sets, stops and advances them.

    server = ClockedServer().start()
    server.clock.step(3600)        # sets the wall clock forward
    server.pass_time(60)           # advances both clocks by a minute of normal operation: leases of a minute expire
    server.clock.jump(60)          # advances both clocks at once: to the server, a stall of a minute

If the clock advances by more than half a second between two reads, the server treats the rest as a stall, which counts against
no lease (journal/times.h, RUN_CLOCK_STALL_US). So pass_time() advances in small steps, with a request after each. A lease that has
expired is ended by the server's next poll, a quarter of a second later: wait for it.
"""
import contextlib
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
        # The library must be loaded before the sanitizer's, so the sanitizer's check of the order
        # is off.
        return {"LD_PRELOAD": SHIM, "TIDELOCK_TEST_CLOCK": self.name,
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def step(self, seconds):
        """Sets the wall clock forward, or back."""
        self.wall[0] += int(seconds * 1e6)
        self.set()

    def run(self, rate):
        """Lets the wall clock run at `rate` times real time from now on."""
        self.wall[1:] = [rate, int(time.time() * 1e6)]
        self.set()

    def stand(self):
        """Stops the boot clock: it advances only by jump(). Not for a server, whose stop waits by this clock."""
        self.boot[1:] = [0.0, self.machine_boot()]
        self.set()

    @contextlib.contextmanager
    def standing(self):
        """In the `with` statement both clocks of a server advance only by jump(), so that a duration is known exactly; then they run again,
        after a stall of the real time that has passed."""
        self.wall[1:] = [0.0, int(time.time() * 1e6)]
        self.stand()
        try:
            yield
        finally:
            self.wall[1] = self.boot[1] = 1.0
            self.set()

    def jump(self, seconds):
        """Advances both clocks at once."""
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
        """Advances both clocks in steps that the server does not take for a stall."""
        while seconds > 0:
            self.clock.jump(min(seconds, STEP))
            self.ask("POST", "/_unlock", {"session": "none"})  # a command: the clock is read before it
            seconds -= STEP

    def close(self):
        super().close()
        self.clock.close()
