#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a test starts ends with it, however it ends; and what a test that passed has left is told.

Each case runs a small test of its own that starts a server and does not stop it, lets it end in some way, and waits until the
server is gone.
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
sys.path.insert(0, LIB)
import ties  # noqa: E402
from waiting import until  # noqa: E402

BEGIN = """
import os, subprocess, sys, threading, time
sys.path.insert(0, %r)
from server import PROGRAM, Server
server = Server().start()
print(server.process.pid, flush=True)
""" % LIB


class Ties(unittest.TestCase):
    def run_test(self, rest):
        """Returns: its process, the pid of its server."""
        left = tempfile.NamedTemporaryFile(prefix="tidelock-left-", delete=False)
        left.close()
        self.addCleanup(os.unlink, left.name)
        self.left = left.name
        test = subprocess.Popen([sys.executable, "-c", BEGIN + rest], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=dict(os.environ, TIDELOCK_TEST_GRACE="1", **{ties.LEFT: left.name}))
        self.addCleanup(test.stdout.close)
        self.addCleanup(test.wait)
        self.addCleanup(test.kill)
        return test, int(test.stdout.readline())

    def until_gone(self, pid):
        until(lambda: not os.path.exists("/proc/%d" % pid) or ties.is_zombie(pid), "process %d to be gone" % pid)

    def until_told(self, pid):
        until(lambda: "process %d" % pid in ties.read(self.left).decode(), "the guard to tell of process %d" % pid)

    def test_killed(self):
        test, server = self.run_test("time.sleep(600)")
        os.kill(server, 0)
        test.kill()
        self.until_gone(server)
        self.until_told(server)

    def test_fails(self):
        _, server = self.run_test("raise AssertionError")
        self.until_gone(server)

    def test_leaves_it(self):
        """From a thread, in a session of its own, below a shell: nothing of this hides a process."""
        test, server = self.run_test(
            "def start():\n"
            "    shell = subprocess.Popen(['sh', '-c', 'sleep 600 & echo $!; exit'], stdout=subprocess.PIPE, start_new_session=True)\n"
            "    print(int(shell.stdout.readline()), flush=True)\n"
            "thread = threading.Thread(target=start)\n"
            "thread.start()\n"
            "thread.join()\n")
        sleeper = int(test.stdout.readline())
        self.assertEqual(test.wait(), 0)
        for pid in server, sleeper:
            self.until_gone(pid)
            self.until_told(pid)

    def test_stops_it(self):
        test, server = self.run_test("server.stop(); server.close()")
        self.assertEqual(test.wait(), 0)
        self.until_gone(server)
        self.assertEqual(ties.read(self.left), b"")


if __name__ == "__main__":
    unittest.main()
