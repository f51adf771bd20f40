#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of kilobytes in explanations: replies and event records are bounded, for any names and any number of them."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import Waiting, until  # noqa: E402

SHOWN = 1024          # bytes of a name in an explanation (docs/locking.md)
EXPLAINED = 4 << 20   # limit on the bytes of explanations in one bulk's reply
LONG = "ä" * 6000     # 12,000 bytes, which leave 4,096 for the descendants' names (docs/http-api.md, renames)
DEADLOCKS = 3


class Case(unittest.TestCase):
    def setUp(self):
        self.server = Server.of_class(self)
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})

    def session(self):
        return self.server.must("POST", "/_session", {"ttl": "1h"})["session"]

    def lock(self, session, path, **more):
        return {"session": session, "locks": [{"index": "fs", "path": path, "mode": "exclusive"}], **more}

    def bulk(self, lines, parameters=""):
        body = "".join(json.dumps(line) + "\n" for line in lines)
        response = self.server.request("POST", "/_bulk" + parameters, body.encode(), {"Content-Type": "application/x-ndjson"})
        self.assertEqual(response.status, 200, response.body[:500])
        return response.body

    def test_explanations_of_failed_items_are_bounded(self):
        """Each item's error names the blocking lock, in up to 1 KiB; after 4 MiB in total it only says that there is one."""
        count = 2500
        lines = []
        for number in range(count):
            lines += [{"index": {"_index": "fs", "_id": str(number)}}, {"path": "/d/%d" % number}]
        self.assertFalse(json.loads(self.bulk(lines))["errors"])
        self.server.must("POST", "/fs/_rename", {"from": "/d", "to": "/" + LONG})
        self.server.must("POST", "/_lock", self.lock(self.session(), "/" + LONG))
        body = self.bulk([{"delete": {"_index": "fs", "_id": str(number)}} for number in range(count)], "?timeout=0s")
        self.assertLess(len(body), EXPLAINED + count * 400)
        items = [item["delete"] for item in json.loads(body)["items"]]
        self.assertEqual({item["status"] for item in items}, {409})
        self.assertEqual({item["error"]["type"] for item in items}, {"lock_wait_timeout_exception"})
        first, last = items[0]["error"], items[-1]["error"]
        self.assertEqual(len(first.get("holders", [])), 1, first)
        for name in first["holders"][0]["resource"], first["holders"][0]["path"]:
            self.assertLessEqual(len(name.encode()), SHOWN)
            self.assertTrue(name.endswith("ä…"), name[-10:])
        self.assertIn("ä… is held by session #", first["reason"])
        self.assertEqual(last["reason"], "the lock is held by another owner; GET /_lock lists the holders")
        listed = self.server.must("GET", "/_lock")["locks"]
        self.assertIn("/" + LONG, [lock.get("path") for lock in listed])

    def test_deadlock_events_are_bounded(self):
        for number in range(DEADLOCKS):
            a, b = self.session(), self.session()
            paths = ["/%d%s" % (number, LONG), "/%d%sb" % (number, LONG)]
            self.server.must("POST", "/_lock", self.lock(a, paths[0]))
            self.server.must("POST", "/_lock", self.lock(b, paths[1]))
            waiting = Waiting(self.server, "POST", "/_lock", self.lock(a, paths[1], wait="1h"))
            until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the first session waits")
            status, reply = self.server.ask("POST", "/_lock", self.lock(b, paths[0], wait="1h"))
            self.assertEqual(status, 409, reply)
            self.assertEqual(reply["error"]["type"], "deadlock_detected_exception")
            self.assertEqual(len(reply["error"]["cycle"]), 2)
            self.assertLess(len(json.dumps(reply, ensure_ascii=False).encode()), 10 * SHOWN)
            self.server.must("POST", "/_unlock", {"session": b})
            waiting.join()
        events = self.server.must("GET", "/_lock/_events")["events"]
        self.assertEqual([event["kind"] for event in events], ["deadlock"] * DEADLOCKS)
        for event in events:
            self.assertTrue(event["lines"][-1].endswith(" is the victim"))
            self.assertLess(len("".join(event["lines"]).encode()), 4 * SHOWN)


if __name__ == "__main__":
    unittest.main()
