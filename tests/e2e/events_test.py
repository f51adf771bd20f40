#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /_events, the stream of the server's activity: a snapshot and then changes, equal for all readers, truncated where there is
much, refused to pages of other origins. Also log levels changed at runtime, which the page's users set. ui_test.py tests the page.
"""
import http.client
import json
import os
import re
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from owners_case import OwnersCase, exclusive  # noqa: E402
from waiting import until  # noqa: E402


class Events:
    """The stream, read by hand."""

    def __init__(self, server, headers=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self.connection.request("GET", "/_events", headers=headers or {})
        self.response = self.connection.getresponse()

    def next(self):
        lines = b""
        while not lines.endswith(b"\n\n"):
            lines += self.response.readline()
        assert lines.startswith(b"data: ") and lines.count(b"\n") == 2, lines
        return json.loads(lines[6:])

    def until(self, wanted, what):
        """Reads until a frame is as wanted, which is `what`. Returns: it."""
        while not wanted(frame := self.next()):
            pass
        return frame

    def close(self):
        self.response.close()
        self.connection.close()


class Case(OwnersCase):
    def test_a_snapshot_and_then_changes(self):
        holder = self.session("holder")
        self.lock(holder, exclusive(index="fs", path="/a"))
        events = Events(self.server)
        self.assertEqual(events.response.getheader("Content-Type"), "text/event-stream; charset=UTF-8")
        first = events.next()
        self.assertTrue(first["snapshot"])
        self.assertEqual([(row["path"], row["holders"][0]["name"]) for row in first["locks"]["put"]], [("/a", "holder")])
        self.assertEqual([row["name"] for row in first["sessions"]["put"]], ["holder"])
        self.assertNotIn(holder, json.dumps(first))  # an id is a key
        other = self.session("other")
        frame = events.until(lambda frame: any(row["name"] == "other" for row in frame.get("sessions", {"put": []})["put"]), "a new session")
        self.assertNotIn("snapshot", frame)
        self.assertIn(len(frame["sessions"]["put"]), (1, 2))  # the end of the other one's lease may just have come to another tenth of a second
        self.assertNotIn("locks", frame)
        waiter = self.wait(other, exclusive(index="fs", id="1"), exclusive(index="fs", path="/a/b"))
        frame = events.until(lambda frame: "locks" in frame and any(row["waiters"] for row in frame["locks"]["put"]), "a waiter")
        waits = [row for row in frame["locks"]["put"] if row["waiters"]]
        self.assertEqual({waits[0]["waiters"][0]["name"], waits[0]["waiters"][0]["waits_for"]["name"]}, {"other", "holder"})
        gone = first["locks"]["put"][0]["row"]
        self.server.must("DELETE", "/_session/%s?force=true" % holder)
        dropped, reported = set(), []
        while gone not in dropped or not any(event["kind"] == "expiry" for event in reported):
            frame = events.next()
            dropped |= set(frame.get("locks", {"drop": []})["drop"])
            reported += frame.get("events", {"put": []})["put"]
        waiter.join()
        self.assertEqual(waiter.status, 200)
        frame = events.until(lambda frame: "bar" in frame, "the bar")
        self.assertEqual(len(frame["samples"]), 1)
        events.close()

    def test_viewers_connect_and_disconnect(self):
        once = self.server.must("GET", "/_events?once=true")
        self.assertTrue(once["snapshot"])
        viewers = [Events(self.server) for _ in range(20)]
        for viewer in viewers:
            self.assertTrue(viewer.next()["snapshot"])
        for viewer in viewers[::2]:
            viewer.close()
        session = self.session("late")
        for viewer in viewers[1::2]:
            viewer.until(lambda frame: "late" in json.dumps(frame.get("sessions", "")), "the same for all")
        mute = socket.create_connection(("127.0.0.1", self.server.port))  # reads nothing, and must not delay other clients
        mute.sendall(b"GET /_events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for i in range(300):
            self.lock(session, exclusive(index="i%d" % i, id="x" * 200))
        viewers[1].until(lambda frame: "i299" in json.dumps(frame.get("locks", "")), "the last lock")
        streams = lambda: int(re.search(rb"tidelock_http_streams (\d+)", self.server.request("GET", "/_metrics").body).group(1))  # noqa: E731
        self.assertEqual(self.server.ask("GET", "/_events?nosuch=1")[0], 400)
        mute.close()
        for viewer in viewers[1::2]:
            viewer.close()
        until(lambda: streams() == 0, "all of them are forgotten")

    def test_large_snapshot_is_truncated(self):
        session = self.session("importer")
        for i in range(4):
            self.lock(session, *[exclusive(index="many", id="%d-%d" % (i, k)) for k in range(500)])
        self.wait(self.session("late"), exclusive(index="many", id="3-499"))
        until(lambda: self.server.must("GET", "/_events?once=true")["bar"]["waiters"] == 1, "it waits")
        frame = self.server.must("GET", "/_events?once=true")
        self.assertEqual((len(frame["locks"]["put"]), frame["bar"]["locks"]), (500, 2000))
        self.assertEqual([row["id"] for row in frame["locks"]["put"] if row["waiters"]], ["3-499"])

    def test_pages_of_other_origins_are_refused(self):
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
            for path in ("/_ui/", "/_events", "/_events?once=true"):
                status, reply = self.server.ask("GET", path, headers=headers)
                self.assertEqual((status, reply["error"]["type"]), (403, "security_exception"), (headers, path))
        page = self.server.request("GET", "/_ui/", headers={"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"})
        self.assertEqual(page.status, 200)
        self.assertLess(len(page.body), 60 * 1024)
        policy = page.getheader("Content-Security-Policy")
        for part in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(page.body.decode().replace("http://www.w3.org/2000/svg", ""), r"https?://[a-z]")
        self.assertEqual(self.server.request("HEAD", "/_ui").status, 200)

    def test_levels_of_the_log(self):
        def is_reported():
            before = self.server.errors().count("debug: GET /_timestamp")
            self.server.must("GET", "/_timestamp")
            return self.server.errors().count("debug: GET /_timestamp") > before
        self.assertFalse(is_reported())
        self.server.must("PUT", "/_cluster/settings", {"persistent": {"logger._root": "DEBUG"}})
        self.assertTrue(is_reported())
        self.server.must("PUT", "/_cluster/settings", {"transient": {"logger._root": "warn"}})  # counts before the other
        self.assertFalse(is_reported())
        self.server.must("PUT", "/_cluster/settings", {"transient": {"logger._root": None}})
        self.server.restart()
        self.assertTrue(is_reported())
        self.server.must("PUT", "/_cluster/settings", {"persistent": {"logger._root": None}})
        self.assertFalse(is_reported())
        status, reply = self.server.ask("PUT", "/_cluster/settings", {"transient": {"logger._root": "loud"}})
        self.assertEqual((status, reply["error"]["reason"]), (400, "Unknown level constant [loud]."))


if __name__ == "__main__":
    unittest.main(verbosity=2)
