#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stall of the server, or a long step, does not expire leases: input that arrived in time is handled before a lease expires.

The server is stopped (SIGSTOP) for longer than a session's ttl, or executes one large atomic bulk for longer. Meanwhile holders
are attached, send keepalives on a persistent connection or on a new one each time, and a transaction's next request is in
transit. A session whose holder sends nothing expires, a little later. The server's clock is advanced meanwhile
(tests/lib/clock.py); with TIDELOCK_TEST_LONG the machine's clock is used, too, with leases of seconds.
"""
import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
import process_guard  # noqa: E402
from server import HANGS, Server  # noqa: E402
from waiting import stop_process, until  # noqa: E402

LONG = os.environ.get("TIDELOCK_TEST_LONG")
STILL = 3.5  # seconds, by the clock of the machine


class KeepaliveClient:
    """A holder that keeps its session alive, as often as it can, on one connection or on a new one each time."""

    def __init__(self, server, session, anew):
        self.server, self.session, self.anew = server, session, anew
        self.connection = None
        self.refused = []
        self.answered = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over.wait(0.1):
            if self.connection is None:
                self.connection = self.server.connect()
            self.connection.request("POST", "/_session/%s/_keepalive" % self.session)
            response = self.connection.getresponse()
            body = response.read()
            if response.status != 200:
                self.refused.append(body)
            self.answered += 1
            if self.anew:
                self.connection.close()
                self.connection = None

    def end(self):
        self.over.set()
        self.thread.join()
        if self.connection is not None:
            self.connection.close()


class Case(unittest.TestCase):
    TTL, STILL = "1m", 300  # less than connections may be idle

    def setUp(self):
        self.server = self.new_server().start()
        self.addCleanup(self.server.close)

    def new_server(self):
        return ClockedServer()

    def pass_time(self):
        """The time of a lease, while the server works."""
        self.server.pass_time(61)

    def freeze_time(self):
        """While the server is stopped."""
        self.server.clock.jump(self.STILL)

    def stop(self):
        stop_process(self.server.process)
        until(lambda: b") T " in process_guard.read("/proc/%d/stat" % self.server.process.pid), "the server is stopped")

    def open(self, ttl=None):
        return self.server.must("POST", "/_session", {"ttl": ttl or self.TTL})["session"]

    def beating(self, anew):
        beating = KeepaliveClient(self.server, self.open(), anew)
        self.addCleanup(beating.end)
        return beating

    def lives(self, session):
        return self.server.ask("GET", "/_session/" + session)[0] == 200

    def attach(self, session):
        line = socket.create_connection(("127.0.0.1", self.server.port), HANGS)
        self.addCleanup(line.close)
        line.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode())
        self.assertIn(b"200", line.recv(4096))
        return line

    def stand_still(self):
        self.stop()
        self.freeze_time()
        self.server.process.send_signal(signal.SIGCONT)

    def all_are_heard(self, holders):
        """Each of them has been answered at least twice from now on."""
        before = [holder.answered for holder in holders]
        until(lambda: all(holder.answered >= count + 2 for holder, count in zip(holders, before)), "all are answered")


class Stopped(Case):
    def test_attached_session_stays(self):
        session = self.open()
        self.attach(session)
        for _ in range(2):
            self.stand_still()
            self.assertTrue(self.lives(session))
            self.pass_time()
            self.assertTrue(self.lives(session))
        until(lambda: "the disk stalled" in self.server.errors(), "the operator is notified")

    def test_session_with_keepalives_stays(self):
        holders = [self.beating(anew) for anew in (False, True, False, True)]
        self.all_are_heard(holders)
        self.stand_still()
        self.all_are_heard(holders)
        for holder in holders:
            holder.end()
            self.assertEqual(holder.refused, [])

    def test_keepalive_in_transit_is_counted(self):
        """One that was sent by a client that does not wait for the answer and says no more for a while."""
        session = self.open()
        line = self.server.connect()
        line.connect()
        self.stop()
        line.request("POST", "/_session/%s/_keepalive" % session)
        self.freeze_time()
        self.server.process.send_signal(signal.SIGCONT)
        response = line.getresponse()
        self.assertEqual(response.status, 200, response.read())
        line.close()

    def test_transaction_request_in_transit_is_counted(self):
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})
        lines = []
        for mode in ("update", "query"):
            transaction = self.server.must("POST", "/_transaction", {"mode": mode, "timeout": self.TTL})["transaction"]
            line = self.server.connect()
            line.connect()
            lines.append((line, transaction))
        self.stop()
        for line, transaction in lines:
            line.request("GET", "/fs/_doc/1?transaction=" + transaction)
        self.freeze_time()
        self.server.process.send_signal(signal.SIGCONT)
        for line, _ in lines:
            response = line.getresponse()
            self.assertEqual(response.status, 200, response.read())
            line.close()

    def test_body_in_transit_is_counted(self):
        """The time of the stall does not count as the client's slowness."""
        body = b'{"index":{"_index":"fs"}}\n{"n":1}\n' * 100
        with socket.create_connection(("127.0.0.1", self.server.port), HANGS) as line:
            line.sendall(b"POST /_bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s" %
                         (len(body), body[:100]))
            time.sleep(0.3)  # it is being received
            self.stand_still()
            time.sleep(2.5)  # the server looks at its connections by the second
            line.sendall(body[100:])
            self.assertIn(b"200 OK", line.recv(4096)[:20])

    def test_silent_session_expires(self):
        session = self.open()
        self.stand_still()
        self.pass_time()
        until(lambda: not self.lives(session), "the lease runs out")

    def test_lock_wait_times_out_after_stall(self):
        """A lock that is not given back: the wait ends, the server being there or not, soon after it is back."""
        lock = {"mode": "exclusive", "index": "fs"}
        self.server.must("POST", "/_lock", {"session": self.open("1h"), "locks": [lock]})
        line = self.server.connect()
        line.request("POST", "/_lock", json.dumps({"session": self.open("1h"), "locks": [lock], "wait": "1s"}),
                     {"Content-Type": "application/json"})
        self.stand_still()
        response = line.getresponse()
        self.assertEqual(response.status, 409, response.read())
        line.close()


class Busy(Case):
    DOCUMENTS = 98000 // 8
    TTL, STILL = "20s", 25  # less than a body may stall

    def bulk(self):
        """Without TIDELOCK_TEST_LONG 6 MB; with it about 52 MB, in nearly as many documents as a transaction may change."""
        item = b'{"index":{"_index":"big","_id":"%d"}}\n{"name":"%d","text":"' + b"x" * 470 + b'"}\n'
        return b"".join(item % (i, i) for i in range(self.DOCUMENTS))

    def test_one_large_atomic_bulk(self):
        """At any time each polling thread has connections that keep sessions alive."""
        bulk = self.bulk()
        holders = [self.beating(anew) for anew in [False, True] * 4]
        self.all_are_heard(holders)
        attached = self.open()
        self.attach(attached)
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=HANGS)
        line.request("POST", "/_bulk?atomic=true&timeout=1h", bulk, {"Content-Type": "application/x-ndjson"})
        self.freeze_time()
        response = line.getresponse()
        reply = response.read()  # to parse it would keep the holders' threads from their work
        line.close()
        self.assertEqual(response.status, 200)
        self.assertIn(b'"errors":false', reply[:100])
        self.assertTrue(self.lives(attached))
        self.all_are_heard(holders)
        for holder in holders:
            holder.end()
            self.assertEqual(holder.refused, [])


class ByTheMachine:
    TTL = "2s"

    def new_server(self):
        return Server()

    def pass_time(self):
        time.sleep(3)

    def freeze_time(self):
        time.sleep(STILL)


@unittest.skipUnless(LONG, "measures time; make test-long")
class StoppedForSeconds(ByTheMachine, Stopped):
    pass


@unittest.skipUnless(LONG, "measures time; make test-long")
class BusyForSeconds(ByTheMachine, Busy):
    DOCUMENTS = 98000

    def freeze_time(self):
        """As long as the server works at it."""


if __name__ == "__main__":
    unittest.main()
