#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that is stopped while its log accepts nothing, since etcd does not answer or the disk is full: it ends in good order, every request gets a reply, and the next start finds all acknowledged changes (docs/operating.md, "Starting and stopping").

Method: requests of all kinds are in progress when SIGTERM comes, twice: those that wait for a lock, for the log, for hosts that never come; a by-query, a commit, a stream. The default --stop-time, --grace and 20 seconds, ends a server that takes longer with status 1.
"""
import json
import os
import re
import shutil
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import Etcd, free_port  # noqa: E402
from fleet import Client  # noqa: E402
from server import Server  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
import skips  # noqa: E402
from waiting import Waiting, stop_process, until  # noqa: E402

GRACE = ("--grace", "1s")
DOCUMENTS = 60
COMMIT_BYTES = 8 << 20


class Requests:
    """Requests that are in progress at a stop."""

    def __init__(self, case, server):
        self.case, self.server, self.waiting = case, server, []

    def must(self, method, path, body=None):
        return self.server.must(method, path, body)

    def begin(self, method, path, body=None):
        one = Waiting(self.server, method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        self.waiting.append(one)
        return one

    def prepare(self):
        """Acknowledged changes, and requests that wait in the core."""
        lines = "".join('{"index":{"_id":"%d"}}\n{"n":0}\n' % number for number in range(DOCUMENTS))
        assert not self.must("POST", "/w/_bulk?refresh=true", lines)["errors"]
        holder, other, self.attached = [self.must("POST", "/_session", {"ttl": "10m"})["session"] for _ in range(3)]
        self.lock = {"session": holder, "locks": [{"mode": "exclusive", "index": "locked", "id": "1"}]}
        self.must("POST", "/_lock", self.lock)
        self.transaction = self.must("POST", "/_transaction", {})["transaction"]
        for number in range(3):
            self.must("PUT", "/committed/_doc/%d?transaction=%s" % (number, self.transaction), {"n": number})
        self.stream, answer = Client.open_attach_stream("127.0.0.1", self.server.port, self.attached, 60)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        self.by_query = self.begin("POST", "/w/_update_by_query?requests_per_second=10&scroll_size=5", {"script": {"source": "ctx._source.n += 1"}})
        self.begin("POST", "/_lock", dict(self.lock, session=other, wait="10m"))
        self.begin("PUT", "/locked/_doc/1?timeout=10m", {"n": 1})
        self.begin("GET", "/_cluster/health?wait_for_nodes=9&timeout=10m")
        until(lambda: sum(len(row["waiters"]) for row in self.must("GET", "/_lock")["locks"]) >= 2, "they wait")
        until(lambda: self.must("GET", "/w/_search?size=0&q=n:1")["hits"]["total"]["value"] > 0, "the by-query has begun")

    def ask_log(self):
        """Requests that need the log, which accepts nothing."""
        self.commit = self.begin("POST", "/_transaction/%s/_commit" % self.transaction)
        self.begin("PUT", "/w/_doc/late?timeout=10m", {"n": 1})
        self.begin("DELETE", "/_session/%s" % self.lock["session"])
        self.begin("POST", "/_transaction", {})
        until(self.are_received, "the server has them all")

    def open_requests(self):
        return {one.ident for one in self.waiting if one.is_alive()}

    def are_received(self):
        """The server has all requests that have no reply yet: it counts them, and this one."""
        before = self.open_requests()
        page = self.server.request("GET", "/_metrics").body.decode()
        count = int(re.search(r"^tidelock_http_requests_in_flight (\d+)", page, re.M).group(1))
        return before == self.open_requests() and count > len(before)

    def finish(self):
        """All requests were answered, and the stream was ended."""
        for one in self.waiting:
            one.join()
            self.case.assertIsNotNone(one.status, "%s %s: %s" % (one.method, one.path, one.reply))
        ended = b"-"
        while ended:
            ended = self.stream.recv(4096)
        self.stream.close()

    def check_kept(self, server):
        """Acknowledged changes are there, and the commit is there completely, or not at all if that was not acknowledged."""
        self.case.assertGreaterEqual(server.must("GET", "/w/_count")["count"], DOCUMENTS)
        status, reply = server.ask("GET", "/committed/_count")
        count = reply["count"] if status == 200 else 0
        self.case.assertIn(count, (3,) if self.commit.status == 200 else (0, 3))


def stop_twice(case, server):
    server.process.send_signal(signal.SIGTERM)
    server.process.send_signal(signal.SIGTERM)
    case.assertEqual(server.stop(replay=False), 0, server.errors()[-3000:])


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class StopWithoutEtcd(unittest.TestCase):
    def stop_without(self, silence, resume):
        etcd = Etcd()
        self.addCleanup(etcd.close)
        host = Server("--cluster", etcd.url + "/tidelock", "--node-name", "a", *GRACE, port=free_port(), replay=False)
        self.addCleanup(host.close)
        host.start()
        requests = Requests(self, host)
        requests.prepare()
        silence(etcd)
        requests.begin("GET", "/w/_doc/1?multi_version_concurrency_control=contemporaneous&timeout=10m")
        requests.begin("DELETE", "/_cluster/hosts/none")
        requests.ask_log()
        stop_twice(self, host)
        requests.finish()
        resume(etcd)
        host.start()
        requests.check_kept(host)

    def test_etcd_is_killed(self):
        self.stop_without(lambda etcd: etcd.kill(), lambda etcd: self.assertTrue(etcd.resume()))

    def test_etcd_stands_still(self):
        """Its connections are open, and nothing comes."""
        self.stop_without(lambda etcd: stop_process(etcd.process), lambda etcd: etcd.process.send_signal(signal.SIGCONT))


class StopOnFullDisk(unittest.TestCase):
    def stop_on(self, disk):
        with Server("--reserve", "40m", *GRACE, data=os.path.join(disk.folder, "data")) as server:
            requests = Requests(self, server)
            requests.prepare()
            large = server.must("POST", "/_transaction")["transaction"]
            for number in range(2):
                server.must("PUT", "/large/_doc/%d?transaction=%s" % (number, large), json.dumps({"t": "x" * COMMIT_BYTES}))
            for _ in range(5):
                disk.fill()
            until(lambda: server.ask("POST", "/_session/%s/_keepalive" % requests.lock["session"])[0] == 507, "the disk is full")
            requests.begin("POST", "/_transaction/%s/_commit" % large)
            requests.ask_log()
            stop_twice(self, server)
            requests.finish()
            disk.make_room()
            server.start()
            requests.check_kept(server)
            self.assertEqual(server.stop(), 0, server.errors()[-3000:])

    def test_disk_stays_full(self):
        with SmallDisk(240 << 20, 120 << 20) as disk:
            self.stop_on(disk)


if __name__ == "__main__":
    skips.main(verbosity=2)
