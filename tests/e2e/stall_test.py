#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that stood still, or was busy, counts that against nobody: who was there in time is heard before a lease runs out.

The server is stopped (SIGSTOP) for longer than a session's ttl, or works at one large atomic bulk for longer, while holders are
attached, send keepalives on a connection that they keep, or on a new one each time, and while a transaction's next request is on
its way. Whoever really says nothing loses his session all the same, a little later.
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
from server import Server  # noqa: E402
from waiting import until  # noqa: E402

STILL = 3.5


class Beating:
    """A holder that keeps its session alive, as often as it can, on one connection or on a new one each time."""

    def __init__(self, server, session, anew):
        self.server, self.session, self.anew = server, session, anew
        self.connection = None
        self.refused = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over.wait(0.3):
            if self.connection is None:
                self.connection = self.server.connect()
            self.connection.request("POST", "/_session/%s/_keepalive" % self.session)
            response = self.connection.getresponse()
            body = response.read()
            if response.status != 200:
                self.refused.append(body)
            if self.anew:
                self.connection.close()
                self.connection = None

    def end(self):
        self.over.set()
        self.thread.join()
        if self.connection is not None:
            self.connection.close()


class Case(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.close)

    def open(self, ttl):
        return self.server.must("POST", "/_session", {"ttl": ttl})["session"]

    def beating(self, ttl, anew):
        beating = Beating(self.server, self.open(ttl), anew)
        self.addCleanup(beating.end)
        return beating

    def lives(self, session):
        return self.server.ask("GET", "/_session/" + session)[0] == 200

    def attach(self, session):
        line = socket.create_connection(("127.0.0.1", self.server.port), 30)
        self.addCleanup(line.close)
        line.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode())
        self.assertIn(b"200", line.recv(4096))
        return line

    def stand_still(self, seconds=STILL):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.server.process.send_signal(signal.SIGCONT)


class Stopped(Case):
    def test_who_is_attached_stays(self):
        session = self.open("2s")
        self.attach(session)
        for _ in range(2):
            self.stand_still()
            self.assertTrue(self.lives(session))
            time.sleep(1)
            self.assertTrue(self.lives(session))
        until(lambda: "stood still" in self.server.errors(), "the operator is told")

    def test_who_keeps_alive_stays(self):
        holders = [self.beating("2s", anew) for anew in (False, True, False, True)]
        time.sleep(0.7)
        self.stand_still()
        time.sleep(1)
        for holder in holders:
            holder.end()
            self.assertEqual(holder.refused, [])

    def test_a_keepalive_that_is_on_its_way_is_heard(self):
        """One that was sent when the lease was nearly over, by a client that does not wait for the answer and says no more for a while."""
        session = self.open("1s")
        line = self.server.connect()
        line.connect()
        time.sleep(0.6)
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        line.request("POST", "/_session/%s/_keepalive" % session)
        time.sleep(STILL)
        self.server.process.send_signal(signal.SIGCONT)
        response = line.getresponse()
        self.assertEqual(response.status, 200, response.read())
        line.close()

    def test_a_request_of_a_transaction_is_heard(self):
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})
        lines = []
        for mode in ("update", "query"):
            transaction = self.server.must("POST", "/_transaction", {"mode": mode, "timeout": "1s"})["transaction"]
            line = self.server.connect()
            line.connect()
            lines.append((line, transaction))
        self.server.process.send_signal(signal.SIGSTOP)
        for line, transaction in lines:
            line.request("GET", "/fs/_doc/1?transaction=" + transaction)
        time.sleep(STILL)
        self.server.process.send_signal(signal.SIGCONT)
        for line, _ in lines:
            response = line.getresponse()
            self.assertEqual(response.status, 200, response.read())
            line.close()

    def test_who_says_nothing_goes(self):
        session = self.open("1s")
        self.stand_still(1.5)
        until(lambda: not self.lives(session), "the lease runs out")

    def test_who_waits_is_told_all_the_same(self):
        """A lock that is not given back: the wait ends, the server being there or not, soon after it is back."""
        lock = {"mode": "exclusive", "index": "fs"}
        self.server.must("POST", "/_lock", {"session": self.open("1m"), "locks": [lock]})
        line = self.server.connect()
        line.request("POST", "/_lock", json.dumps({"session": self.open("1m"), "locks": [lock], "wait": "1s"}),
                     {"Content-Type": "application/json"})
        time.sleep(0.3)
        self.stand_still()
        response = line.getresponse()
        self.assertEqual(response.status, 409, response.read())
        line.close()


class Busy(Case):
    def bulk(self):
        """About 52 MB, in nearly as many documents as a transaction may change."""
        item = b'{"index":{"_index":"big","_id":"%d"}}\n{"name":"%d","text":"' + b"x" * 470 + b'"}\n'
        return b"".join(item % (i, i) for i in range(98000))

    def test_one_large_atomic_bulk(self):
        """At any time each polling thread has connections of those who keep sessions alive."""
        bulk = self.bulk()
        holders = [self.beating("2s", anew) for anew in [False, True] * 4]
        attached = self.open("1s")
        self.attach(attached)
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=300)
        line.request("POST", "/_bulk?atomic=true&timeout=1m", bulk, {"Content-Type": "application/x-ndjson"})
        response = line.getresponse()
        reply = response.read()  # to parse it would keep the holders' threads from their work
        line.close()
        self.assertEqual(response.status, 200)
        self.assertIn(b'"errors":false', reply[:100])
        self.assertTrue(self.lives(attached))
        for holder in holders:
            holder.end()
            self.assertEqual(holder.refused, [])


if __name__ == "__main__":
    unittest.main()
