#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cleanup action during which the process ends: after two attempts over restarts it is set aside and reported.

Method: an action runs a script for about as long as the writer permits, on a large document, and the process is killed as soon as
DATA/at-work names the action. The kill has the same effect for the server as an action that crashes it. A test that the machine has delayed, so that
the action was over before the kill, begins anew with another server.
"""
import contextlib
import functools
import http.client
import json
import os
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402

LONG = "int n = 0; for (int i = 0; i < 60000; i++) { n += i } ctx._source.v = 1"
LARGE = {"v": 0, "large": "x" * (4 << 20)}


class TooLate(Exception):
    """The action was over before the kill."""


def until_in_time(test):
    """Repeats a test, each time with a server of its own, until no kill of it is too late."""
    @functools.wraps(test)
    def run(self):
        while True:
            try:
                return test(self)
            except TooLate:
                self.setUp()
    return run


class CleanupCrashLoop(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.close)
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"large": {"enabled": False}}}})
        self.server.must("PUT", "/fs/_doc/1", LARGE)

    def session(self, **members):
        return self.server.must("POST", "/_session", {"ttl": "5m", **members})["session"]

    def leaving(self):
        """Opens a session with a long action, and a short one after it."""
        return self.session(name="holder", on_expire=[
            {"update": {"_index": "fs", "_id": "1"}}, {"script": {"source": LONG}},
            {"index": {"_index": "fs", "_id": "2"}}, {"v": 2}])

    def source(self, document):
        found = json.loads(self.server.request("GET", "/fs/_doc/%s?_source=v" % document).body)
        return found.get("_source") if found.get("found") else None

    def kept(self):
        return self.server.must("GET", "/_session")["deferred"]

    def under_way(self, kept=0):
        """Whether it is the first action of a session, or the deferred action with this number."""
        with open(os.path.join(self.server.data, "at-work"), "rb") as page:
            noted, _, number, action = struct.unpack_from("=IIQQ", page.read(32), 8)
            return noted == 1 and (number, action) == (kept, 0)

    def kill_under_way(self, kept=0, thread=None):
        """Waits until the action is under way, then kills the server in the middle of it. `thread`: ends before the kill."""
        over, killed = threading.Event(), threading.Event()

        def watch():
            """A server that does not answer yet, or any more, has not done the action."""
            while not killed.wait(0.1) and not over.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if self.source("1") == {"v": 1}:
                        over.set()
        watcher = threading.Thread(target=watch)
        watcher.start()
        while not self.under_way(kept) and not over.is_set():
            time.sleep(0.001)
        if thread is not None:
            thread.join()
        self.server.process.kill()
        self.server.process.wait()
        killed.set()
        watcher.join()
        self.server.hang_up()
        if not self.under_way(kept):
            raise TooLate

    def ask_beside(self, method, path, body=None):
        """Asks, and takes what comes: mostly that the server has gone."""
        def run():
            connection = self.server.connect()
            try:
                self.server.request(method, path, body, connection=connection)
            except OSError:
                pass
            except Exception as error:  # http.client's, for a broken reply
                self.assertIn("Remote", type(error).__name__ + str(error))
            finally:
                connection.close()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def die_in(self, method, path, body=None):
        """Asks for what begins the action, and kills the server in the middle of it."""
        thread = self.ask_beside(method, path, body)
        self.kill_under_way()
        thread.join()
        self.server.process.stdout.close()
        self.server.start()

    def put_aside(self):
        """Returns: the one thing that is kept, which is put aside."""
        kept = self.kept()
        self.assertEqual([(one["action"], one["index"], one["id"], one["name"], one.get("aside")) for one in kept],
                         [("update", "fs", "1", "holder", True)])
        return kept[0]

    @until_in_time
    def test_crashing_action_of_session_is_set_aside(self):
        """The request is in the log: a start does it again, and dies of it; the next one puts the action aside, and does the rest."""
        dead = self.leaving()
        thread = self.ask_beside("DELETE", "/_session/%s?force=true" % dead)
        self.kill_under_way()
        thread.join()
        self.server.process.stdout.close()
        self.start_and_die(0)
        self.server.start()
        number = self.put_aside()["number"]
        self.assertFalse(self.under_way())
        self.assertEqual((self.source("1"), self.source("2")), ({"v": 0}, {"v": 2}), "what stands behind it is done")
        self.assertIn("deferred as %d" % number, subprocess.run(
            [PROGRAM, "status", "--url", self.server.url], capture_output=True, text=True, check=True).stdout)
        self.assertIn("it is put aside as number %d" % number, json.dumps(self.server.must("GET", "/_lock/_events")))
        self.server.kill()
        self.server.start()
        self.assertEqual(self.put_aside()["number"], number)
        self.assertEqual(self.source("1"), {"v": 0})
        reply = self.server.must("POST", "/_session/_deferred/%d/_retry" % number)
        self.assertEqual((reply["number"], reply["tried"]), (number, True))
        until(lambda: self.source("1") == {"v": 1}, "it is done")
        self.assertEqual(self.kept(), [])

    @until_in_time
    def test_one_crash_does_not_set_aside(self):
        """It is done by the start itself."""
        dead = self.leaving()
        self.die_in("DELETE", "/_session/%s?force=true" % dead)
        self.assertEqual((self.kept(), self.source("1"), self.source("2")), ([], {"v": 1}, {"v": 2}))
        self.assertEqual(self.server.ask("DELETE", "/_session/%s?force=true" % dead)[0], 404)

    @until_in_time
    def test_crashing_deferred_action_in_recovery_is_set_aside(self):
        """A hundred actions are executed in one step; then the unlock is durable: the restart finds the lock free and continues."""
        actions = []
        for i in range(120):
            actions += [{"index": {"_index": "fs", "_id": "d%d" % i}}, {"v": i}]
        actions += [{"update": {"_index": "fs", "_id": "1"}}, {"script": {"source": LONG}}]
        dead, holder = self.session(name="holder", on_expire=actions), self.session()
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "fs"}]})
        self.server.must("DELETE", "/_session/%s?force=true" % dead)
        kept = self.kept()
        self.assertEqual((len(kept), [one for one in kept if "aside" in one]), (121, []))
        number = kept[-1]["number"]
        thread = self.ask_beside("POST", "/_unlock", {"session": holder})
        self.kill_under_way(number, thread)  # it is answered: the end of the lock is durable
        self.server.process.stdout.close()
        self.start_and_die(number)
        self.server.start()
        until(lambda: len(self.kept()) == 1, "the others are done")
        self.assertEqual(self.put_aside()["number"], number)
        self.assertEqual((self.source("1"), self.source("d119")), ({"v": 0}, {"v": 119}))
        self.assertEqual(self.server.ask("DELETE", "/_session/_deferred/%d" % (number + 1))[0], 404)
        self.assertEqual(self.server.must("DELETE", "/_session/_deferred/%d" % number)["dropped"], True)
        self.server.kill()
        self.server.start()
        self.assertEqual((self.kept(), self.source("1")), ([], {"v": 0}))

    def start_and_die(self, number):
        """The previous attempt is counted, and the crash page cleared, before the next one begins; that may be before any request is answered."""
        again = threading.Thread(target=self.start_again, daemon=True)
        again.start()
        until(lambda: "tried twice at most" in self.server.errors(), "the try is counted")
        try:
            self.kill_under_way(number)
        finally:
            again.join()
        self.server.process.stdout.close()

    def start_again(self):
        """As Server.start(), of one that does not live to answer."""
        self.server.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.server.data, "--listen", "127.0.0.1:%d" % self.server.port, *self.server.options],
            stdout=subprocess.PIPE, stderr=self.server.log)
        self.server.process.wait()

    def test_deferred_action_is_not_set_aside(self):
        dead, holder = self.leaving(), self.session()
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "fs", "id": "1"}]})
        self.server.must("DELETE", "/_session/%s?force=true" % dead)
        number = self.kept()[0]["number"]
        for method, path in (("DELETE", ""), ("POST", "/_retry")):
            status, reply = self.server.ask(method, "/_session/_deferred/%d%s" % (number, path))
            self.assertEqual((status, reply["error"]["type"]), (400, "illegal_argument_exception"))
        self.assertEqual(self.server.ask("DELETE", "/_session/_deferred/x")[0], 400)


if __name__ == "__main__":
    unittest.main(verbosity=2)
