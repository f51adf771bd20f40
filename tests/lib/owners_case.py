# SPDX-License-Identifier: Apache-2.0
"""A server with an index that is a tree, on which a test's sessions hold locks and wait for them."""
import unittest

from server import Server
from waiting import Waiting


def exclusive(**place):
    return {"mode": "exclusive", **place}


class OwnersCase(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.background = []
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})

    def tearDown(self):
        self.server.end_owners()
        for request in self.background:
            request.join()
        self.server.close()

    def session(self, name, **members):
        return self.server.must("POST", "/_session", {"name": name, "ttl": "10m", **members})["session"]

    def lock(self, session, *locks):
        return self.server.must("POST", "/_lock", {"session": session, "locks": list(locks)})

    def wait(self, session, *locks):
        self.background.append(Waiting(self.server, "POST", "/_lock", {"session": session, "wait": "5m", "locks": list(locks)}))
        return self.background[-1]
