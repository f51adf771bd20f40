# SPDX-License-Identifier: Apache-2.0
"""How long somebody who has nothing to do with it had to wait, while others mean no good.

What is promised is an answer within half a second. A test cannot demand that of every single one: on a machine that others use the kernel
alone may keep a process from its processor for longer. So nine of ten have to come in time, and none may take longer than a patience
that is far below what a server takes that is held up. What a sanitizer slows down gets as many times longer.
"""
import statistics

IN_TIME = 0.5  # seconds


class Waits:
    def __init__(self, slowness=1):
        self.all = []
        self.in_time = IN_TIME * slowness

    def add(self, seconds):
        self.all.append(seconds)

    @property
    def longest(self):
        return max(self.all, default=0.0)

    @property
    def late(self):
        return sum(wait > self.in_time for wait in self.all)

    def told(self):
        return "the neighbour waited %.0f ms in the middle and %4.0f ms at most; %d of %d answers took longer than %.1f s" % (
            1e3 * statistics.median(self.all or [0]), 1e3 * self.longest, self.late, len(self.all), self.in_time)

    def judge(self, patience):
        """Raises unless he was served in time."""
        assert self.all, "the neighbour was not served at all"
        assert self.late <= max(1, len(self.all) // 10), self.told()
        assert self.longest < patience, self.told()
