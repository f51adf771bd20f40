#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a lock keep their places over kill -9 and over an end in good order, for clients that ask again with the same session.

Method: a session has a lock, others ask for it, one after the other. The server is killed, or stopped, and started again. They ask again, in
another order and after one that is new. The lock is released by each that gets it: they must get it in the order in which they asked first.
"""
import http.client
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
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


class KeptPlaces(unittest.TestCase):
    def session(self):
        return self.server.must("POST", "/_session", {"ttl": "1h"})["session"]

    def waiting(self):
        locks = self.server.must("GET", "/_lock")["locks"]
        return sum(len(lock["waiters"]) for lock in locks)

    def run_over(self, restart, status):
        """`status`: of the replies to the requests that wait; None: they get none."""
        with Server() as self.server:
            sessions = {name: self.session() for name in ["holder", "a", "b", "c", "new"]}
            self.server.must("POST", "/_lock", {"session": sessions["holder"], "locks": [TARGET]})
            before = []
            for count, name in enumerate("abc", 1):
                before.append(Client(self.server, name, sessions[name], []))
                until(lambda count=count: self.waiting() == count, "%d requests wait" % count)
            restart()
            for client in before:
                client.join()
                self.assertEqual(client.status, status)
            self.assertEqual(self.waiting(), 3)
            order, clients = [], []
            clients.append(Client(self.server, "new", sessions["new"], order))
            until(lambda: self.waiting() == 4, "the new request waits")
            for name in "cba":
                clients.append(Client(self.server, name, sessions[name], order))
            self.server.must("POST", "/_unlock", {"session": sessions["holder"], "locks": [TARGET]})
            for client in clients:
                client.join()
                self.assertEqual(client.status, 200)
            self.assertEqual(order, ["a", "b", "c", "new"])

    def kill(self):
        self.server.kill()
        self.server.start()

    def stop(self):
        self.server.stop()
        self.server.start()

    def test_kill(self):
        self.run_over(self.kill, None)

    def test_orderly_end(self):
        self.run_over(self.stop, 503)


if __name__ == "__main__":
    unittest.main()
