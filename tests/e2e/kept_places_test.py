#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a lock keep their places over kill -9 and over an end in good order, for clients that ask again with the same session.

Method: a session has a lock, others ask for it, one after the other. The server is killed, or stopped, and started again. They ask again, in
another order and after one that is new. The lock is released by each that gets it: they must get it in the order in which they asked first.
Writes of the locked document with a name (Tidelock-Request) wait in the same way. The versions that they make show their order.
The clocks stand from before the start on until all wait again: no place is given up however long the clients take.
"""
import http.client
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from waiting import until  # noqa: E402

TARGET = {"index": "fs", "id": "1", "mode": "exclusive"}


class Client(threading.Thread):
    """A session's request for the lock, on a connection of its own. When it is granted: notes the name, and releases."""

    def __init__(self, server, name, session, order):
        super().__init__()
        self.server, self.label, self.session, self.order = server, name, session, order
        self.status = None
        self.start()

    def run(self):
        connection = self.server.connect()
        body = {"session": self.session, "locks": [TARGET]}
        try:
            self.status = self.server.request("POST", "/_lock", {**body, "wait": "5m"}, connection=connection).status
            if self.status == 200:
                self.order.append(self.label)
                self.server.request("POST", "/_unlock", body, connection=connection)
        except (OSError, http.client.HTTPException):
            pass  # the kill
        finally:
            connection.close()


class Writer(threading.Thread):
    """A write of the document that is locked, on a connection of its own. `name`: of the request; None: without."""

    def __init__(self, server, name):
        super().__init__()
        self.server, self.label = server, name
        self.status = self.version = None
        self.start()

    def run(self):
        connection = self.server.connect()
        headers = {} if self.label is None else {"Tidelock-Request": self.label}
        try:
            response = self.server.request("PUT", "/fs/_doc/1?timeout=5m", {"by": self.label}, headers, connection=connection)
            self.status, self.version = response.status, json.loads(response.body).get("_version")
        except (OSError, http.client.HTTPException):
            pass  # the kill
        finally:
            connection.close()


class KeptPlaces(unittest.TestCase):
    def session(self):
        return self.server.must("POST", "/_session", {"ttl": "1h"})["session"]

    def waiting(self):
        locks = self.server.must("GET", "/_lock")["locks"]
        return sum(len(lock["waiters"]) for lock in locks)

    def run_over(self, end, status):
        """`status`: of the replies to the requests that wait; None: they get none."""
        with ClockedServer() as self.server:
            sessions = {name: self.session() for name in ["holder", "a", "b", "c", "new"]}
            self.server.must("POST", "/_lock", {"session": sessions["holder"], "locks": [TARGET]})
            before = []
            for count, name in enumerate("abc", 1):
                before.append(Client(self.server, name, sessions[name], []))
                until(lambda count=count: self.waiting() == count, "%d requests wait" % count)
            end()
            for client in before:
                client.join()
                self.assertEqual(client.status, status)
            order, clients = [], []
            with self.server.clock.standing():
                self.server.start()
                self.assertEqual(self.waiting(), 3)
                clients.append(Client(self.server, "new", sessions["new"], order))
                until(lambda: self.waiting() == 4, "the new request waits")
                for name in "cba":
                    clients.append(Client(self.server, name, sessions[name], order))
                self.server.must("POST", "/_unlock", {"session": sessions["holder"], "locks": [TARGET]})
                for client in clients:
                    client.join()
                    self.assertEqual(client.status, 200)
            self.assertEqual(order, ["a", "b", "c", "new"])

    def write_over(self, end, status, free):
        """`free`: the lock is released before the writes are sent again."""
        with ClockedServer() as self.server:
            holder = {"session": self.session(), "locks": [TARGET]}
            self.server.must("POST", "/_lock", holder)
            before = []
            for count, name in enumerate("ab", 1):
                before.append(Writer(self.server, name))
                until(lambda count=count: self.waiting() == count, "%d writes wait" % count)
            end()
            for client in before:
                client.join()
                self.assertEqual(client.status, status)
            with self.server.clock.standing():
                self.server.start()
                if free:
                    self.server.must("POST", "/_unlock", holder)
                new = Writer(self.server, None)
                until(lambda: self.waiting() == (2 if free else 3), "the new write waits")
                self.assertEqual(self.server.request("GET", "/fs/_doc/1").status, 404)  # no write runs before it is repeated
                b = Writer(self.server, "b")
                a = Writer(self.server, "a")
                if not free:
                    self.server.must("POST", "/_unlock", holder)
                for client in [a, b, new]:
                    client.join()
            self.assertEqual([a.version, b.version, new.version], [1, 2, 3])
            again = Writer(self.server, "a")
            again.join()
            self.assertEqual(again.version, 1)
            self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_version"], 3)

    def test_write_after_kill(self):
        for free in False, True:
            with self.subTest(free=free):
                self.write_over(self.kill, None, free)

    def test_write_after_orderly_end(self):
        for free in False, True:
            with self.subTest(free=free):
                self.write_over(self.stop, 503, free)

    def kill(self):
        self.server.kill()

    def stop(self):
        self.server.stop(replay=False)

    def test_kill(self):
        self.run_over(self.kill, None)

    def test_orderly_end(self):
        self.run_over(self.stop, 503)


if __name__ == "__main__":
    unittest.main()
