#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All processes that a test starts end with it, also when it is killed; processes left by a test that passed are reported.

Each case runs a small test of its own that starts a server and does not stop it, ends that test in some way, and waits until
the server has ended.
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
sys.path.insert(0, LIB)
import process_guard  # noqa: E402
from waiting import until  # noqa: E402

BEGIN = """
import os, subprocess, sys, threading, time
sys.path.insert(0, %r)
from server import PROGRAM, Server
server = Server().start()
print(server.process.pid, flush=True)
""" % LIB


class ProcessGuard(unittest.TestCase):
    def run_test(self, rest):
        """Returns: its process, the pid of its server."""
        left = tempfile.NamedTemporaryFile(prefix="tidelock-left-", delete=False)
        left.close()
        self.addCleanup(os.unlink, left.name)
        self.left = left.name
        test = subprocess.Popen([sys.executable, "-c", BEGIN + rest], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=dict(os.environ, TIDELOCK_TEST_GRACE="1", **{process_guard.LEFT: left.name}))
        self.addCleanup(test.stdout.close)
        self.addCleanup(test.wait)
        self.addCleanup(test.kill)
        return test, int(test.stdout.readline())

    def until_ended(self, pid):
        until(lambda: not os.path.exists("/proc/%d" % pid) or process_guard.is_zombie(pid), "process %d to end" % pid)

    def until_reported(self, pid):
        until(lambda: "process %d" % pid in process_guard.read(self.left).decode(), "the guard to report process %d" % pid)

    def test_processes_of_killed_test_end(self):
        test, server = self.run_test("time.sleep(600)")
        os.kill(server, 0)
        test.kill()
        self.until_ended(server)
        self.until_reported(server)

    def test_processes_of_failed_test_end(self):
        _, server = self.run_test("raise AssertionError")
        self.until_ended(server)

    def test_detached_process_ends_and_is_reported(self):
        """The process was started by a thread, in a session of its own, below a shell."""
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
            self.until_ended(pid)
            self.until_reported(pid)

    def test_stopped_server_is_not_reported(self):
        test, server = self.run_test("server.stop(); server.close()")
        self.assertEqual(test.wait(), 0)
        self.until_ended(server)
        self.assertEqual(process_guard.read(self.left), b"")


if __name__ == "__main__":
    unittest.main()
