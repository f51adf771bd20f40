#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine's clock is set, forward and back, by seconds, hours and a year, or runs too fast or slow. Live sessions do not
expire, ended ones stay ended, and reads at a timestamp stay the same.

The server runs with tests/lib/clock_shim.c preloaded. It replaces the wall clock, and the clock by which durations are measured:
that one runs as the machine's does, and is advanced when a test lets time pass.
"""
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import SHIM, ClockedServer  # noqa: E402
from server import HANGS, PROGRAM  # noqa: E402
from waiting import Waiting, until  # noqa: E402

HOUR, YEAR = 3600, 365 * 86400
STEPS = (10, -10, HOUR, -HOUR, YEAR, -YEAR)


class Case(unittest.TestCase):
    options = ()

    def setUp(self):
        self.server = ClockedServer(*self.options).start()
        self.clock = self.server.clock
        self.addCleanup(self.server.close)

    def stable(self):
        return self.server.must("GET", "/_timestamp")["timestamp"]

    def open(self, ttl="2s"):
        return self.server.must("POST", "/_session", {"ttl": ttl})["session"]

    def lives(self, session):
        return self.server.ask("GET", "/_session/" + session)[0] == 200

    def attach(self, session):
        line = socket.create_connection(("127.0.0.1", self.server.port), HANGS)
        self.addCleanup(line.close)
        line.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode())
        self.assertIn(b"200", line.recv(4096))


class Durations(Case):
    def test_clock_steps_do_not_end_leases(self):
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})
        holder, other, attached = self.open("1h"), self.open("1h"), self.open("10s")
        self.attach(attached)
        lock = {"mode": "exclusive", "index": "fs", "id": "locked"}
        self.server.must("POST", "/_lock", {"session": holder, "locks": [lock]})
        for step in STEPS:
            with self.subTest(step=step):
                kept, silent = self.open("5m"), self.open("1m")
                idle = [self.server.must("POST", "/_transaction", {"mode": mode, "timeout": "1m"})["transaction"]
                        for mode in ("update", "query")]
                waiting = Waiting(self.server, "POST", "/_lock", {"session": other, "locks": [lock], "wait": "90s"})
                until(lambda: self.server.must("GET", "/_session/" + other)["waiting_count"] == 1, "it waits")
                self.clock.step(step)
                # Nothing ends at once...
                self.server.pass_time(5)
                self.assertTrue(all(self.lives(session) for session in (holder, other, kept, attached, silent)))
                self.assertIsNone(waiting.status)
                # ... and everything ends when its time is over.
                self.server.pass_time(60)
                until(lambda: not self.lives(silent), "the lease runs out")
                for transaction in idle:
                    until(lambda t=transaction: self.server.must("GET", "/_transaction/" + t)["state"] == "rolled_back",
                          "it has been idle")
                self.assertIsNone(waiting.status)
                self.server.pass_time(30)
                waiting.join()
                self.assertEqual(waiting.status, 409)
                self.assertTrue(all(self.lives(session) for session in (holder, other, kept, attached)))
        reported = self.server.errors()
        for step in STEPS:
            self.assertIn("was set %s by %d.0 s" % ("forward" if step > 0 else "back", abs(step)), reported)
        status = subprocess.run([PROGRAM, "status", "--url", self.server.url], capture_output=True, text=True, timeout=HANGS)
        self.assertIn("was set 6 times since the start, most recently by -%d.0 s" % YEAR, status.stdout)

    def test_clock_steps_do_not_end_tombstones_and_outcomes(self):
        """Versions of deleted documents and outcomes of transactions: a step does not end them, nor what upkeep then does. That they
        end when the time has passed, whatever was set, is tests/unit/journal/clock_test.c."""
        transactions = []
        for number, step in enumerate(STEPS + (0.0,)):
            with self.subTest(step=step):
                transactions.append(self.server.must("POST", "/_transaction", {})["transaction"])
                self.server.must("PUT", "/minute/_doc/%d?transaction=%s" % (number, transactions[-1]), {})
                self.server.must("POST", "/_transaction/%s/_commit" % transactions[-1])
                self.server.must("DELETE", "/minute/_doc/%d" % number)
                self.clock.step(step)
                self.server.pass_time(3)  # upkeep comes by every second
                if number % 3 == 0:
                    self.server.kill()
                    self.server.start()
                for transaction in transactions:
                    self.assertEqual(self.server.must("GET", "/_transaction/" + transaction)["state"], "committed")
                    self.assertTrue(self.server.must("POST", "/_transaction/%s/_commit" % transaction)["committed"])
                self.assertEqual(self.server.must("PUT", "/minute/_doc/%d" % number, {})["_version"], 3)

    def test_fast_and_slow_clocks(self):
        for rate in (0.2, 8.0):
            with self.subTest(rate=rate):
                self.clock.run(rate)
                kept = self.open("1m")
                for _ in range(5):
                    self.pass_wrong_time(10, rate)
                    self.assertTrue(self.lives(kept))
                self.pass_wrong_time(12, rate)
                until(lambda: not self.lives(kept), "the lease runs out")

    def pass_wrong_time(self, seconds, rate):
        """Time passes, and what the wall clock takes for it."""
        for _ in range(seconds):
            self.clock.step(rate - 1)
            self.server.pass_time(1)

    def test_downtime_does_not_count_against_leases(self):
        sessions = [self.open("30s") for _ in range(2)]
        for session, step in zip(sessions, (YEAR, -HOUR)):
            self.server.must("POST", "/_session/%s/_keepalive" % session)
            self.server.kill()
            self.clock.step(step)
            self.clock.jump(60)
            self.server.start()
            self.assertTrue(self.lives(session))
        self.server.pass_time(31)
        until(lambda: not any(self.lives(session) for session in sessions), "the leases run out")

    def test_expiry_is_shown_as_time_of_day(self):
        """Also while timestamps are ahead of it, since the clock was set back."""
        def ends_in(reply):
            day, clock = reply["expires_at"].split("T")
            then = time.strptime(day + "T" + clock[:8], "%Y-%m-%dT%H:%M:%S")
            return time.mktime(then) - time.timezone - (time.time() + self.clock.wall[0] / 1e6)
        self.clock.step(-HOUR)
        self.assertLess(abs(ends_in(self.server.must("POST", "/_session", {"ttl": "1m"})) - 60), 30)


@unittest.skipUnless(os.environ.get("TIDELOCK_TEST_LONG"), "waits for sweeps; make test-long")
class Connections(Case):
    SWEEP = 1.5  # seconds: the server looks at its connections by the second, whatever the clock says

    def test_two_requests_within_a_millisecond(self):
        """A connection that has been looked at between them is idle after the second one, not in the middle of a third."""
        self.clock.stand()
        connection = self.server.connect()
        for _ in range(2):
            self.assertEqual(self.server.request("GET", "/", connection=connection).status, 200)
            time.sleep(self.SWEEP)
        self.clock.jump(60)
        time.sleep(self.SWEEP)
        socket_before = connection.sock
        self.assertEqual(self.server.request("GET", "/", connection=connection).status, 200)
        self.assertIs(connection.sock, socket_before)
        connection.close()


class Timestamps(Case):
    options = ("--history", "10m")

    def test_preloaded_clock_is_used(self):
        self.clock.step(HOUR)
        until(lambda: self.stable() > (time.time() + HOUR / 2) * 1e6, "the preloaded clock counts")

    def test_timestamps_are_monotonic(self):
        """Also over kill -9, restarts and clock steps. Reads at a timestamp are repeatable; tokens and the timestamps of replies rise."""
        session = self.open("1h")
        seen, newest, token = {}, 0, 0
        for number, step in enumerate((-8, 3, *STEPS, -8)):
            how = ("kill", "restart", "run")[number % 3]
            with self.subTest(step=step, how=how):
                for i in range(3):
                    ts = self.server.request("PUT", "/fs/_doc/%d" % i, {"n": number * 10 + i})
                    written = int(ts.headers["Tidelock-Timestamp"])
                    self.assertGreater(written, newest)
                    reply = self.server.must("POST", "/_lock", {"session": session, "locks": [
                        {"mode": "exclusive", "index": "fs", "id": "l%d" % (number * 10 + i)}]})
                    self.assertGreater(reply["fencing_token"], token)
                    token = reply["fencing_token"]
                    time.sleep(0.05)
                    newest = self.stable()
                    self.assertGreaterEqual(newest, max(written, token))
                    seen[newest] = self.read(newest)
                if how == "kill":
                    self.server.kill()
                elif how == "restart":
                    self.server.stop()
                self.clock.step(step)
                if how != "run":
                    self.server.start()
                self.assertGreaterEqual(self.stable(), newest)
                for ts, state in seen.items():
                    self.assertEqual(self.read(ts), state, "as of %d" % ts)

    def read(self, ts):
        reply = self.server.must("POST", "/fs/_search?sort=_id&timestamp=%d" % ts, {"query": {"match_all": {}}, "size": 100})
        return [(hit["_id"], hit["_source"]) for hit in reply["hits"]["hits"]]

    def test_timestamps_follow_clock_after_restart(self):
        """After kill -9 seconds ahead at most; after an end in order not at all; set back, it catches up."""
        self.server.kill()
        self.server.start()
        self.assertLess(self.stable() / 1e6 - time.time(), 6)
        self.clock.step(2)
        ahead = self.stable() / 1e6
        self.clock.step(-2)
        self.server.pass_time(4)
        until(lambda: self.stable() / 1e6 > ahead + 1, "it goes on")


class Versions(Case):
    options = ("--history", "36500d")  # the clock advances by more than an hour; and no version is looked for before there was an index

    def test_versions_before_a_forgotten_deletion(self):
        """A minute after a deletion its tombstone is removed. The list of a document's versions has it, and those before it, all the same."""
        def versions(id):
            return [(it["_version"], it["deleted"], it["from"], it["to"]) for it in self.server.must("GET", "/fs/_doc/%s?version_history=true" % id)["versions"]]
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        for life in (1, 2):
            probes = iter(range(1000 * life, 1000 * life + 1000))
            self.server.must("POST", "/probes/_bulk", "".join('{"index":{"_id":"%d"}}\n{}\n{"delete":{"_id":"%d"}}\n' % (id, id) for id in range(1000 * life, 1000 * life + 1000)))
            self.server.must("PUT", "/fs/_doc/1", {"path": "/a/x"})
            self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/b%d" % life})
            self.server.must("DELETE", "/fs/_doc/1")
            made = versions("1")
            self.assertEqual([it[:2] for it in made], [(3, True), (2, False), (1, False)] * life)
            self.assertEqual([it[2] for it in made[:-1]], [it[3] for it in made[1:]])
            until(lambda: self.server.pass_time(10) or self.server.must("PUT", "/probes/_doc/%d" % next(probes), {})["_version"] == 1, "deletions are forgotten")
            self.server.pass_time(20)
            self.assertEqual(versions("1"), made)
        self.assertEqual(versions("never"), [])


if __name__ == "__main__":
    if not os.path.exists(SHIM):
        print("skipped: the preloaded clock was not built")
        sys.exit(77)
    unittest.main()
