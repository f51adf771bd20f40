#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All members of etcd are replaced, one after another, under hosts that run (docs/cluster.md, "Replacing members of etcd"). Writes continue while a
host knows a member by a URL that it was started with; without one it serves nothing, and serves again when it is started with the new URLs. Skipped
without etcd.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import LEASE, free_port  # noqa: E402
from server import Server  # noqa: E402
from waiting import until  # noqa: E402


LOST = 3  # seconds without a reply, after which etcd gives none, and the request is made again


class Member:
    """A member of etcd, with data of its own."""

    def __init__(self, name, url=None):
        self.name, self.folder = name, tempfile.mkdtemp(prefix="tidelock-etcd-")
        self.url = url or "http://127.0.0.1:%d" % free_port()
        self.peer = "http://127.0.0.1:%d" % free_port()

    def start(self, members, state):
        """`members`: all of the cluster; `state`: new, existing."""
        self.process = subprocess.Popen(
            ["etcd", "--name", self.name, "--data-dir", os.path.join(self.folder, "data"), "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
             "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer, "--initial-cluster-state", state,
             "--initial-cluster", ",".join("%s=%s" % (member.name, member.peer) for member in members)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, path, **body):
        """By its JSON gateway. Returns: None: refused, it does not serve, or the request was lost, as during an election."""
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + "/v3/" + path, json.dumps(body).encode()), timeout=LOST) as reply:
                return json.loads(reply.read())
        except OSError:
            return None

    def serves(self):
        """Returns: whether it has a leader, and all that was written before."""
        assert self.process.poll() is None, "the member ended with status %d" % self.process.returncode
        return self.ask("kv/range", key="AA==") is not None

    def members(self):
        """Returns: all members by their peer URLs, as this one knows them."""
        reply = self.ask("cluster/member/list")
        return {member["peerURLs"][0]: member["ID"] for member in reply["members"]} if reply else {}

    def remove(self, other):
        """Returns: whether it is removed; etcd refuses that for some seconds after the start of a member."""
        known = self.members()
        if other.peer in known:
            self.ask("cluster/member/remove", ID=known[other.peer])
        return other.peer not in (self.members() or {other.peer})

    def add(self, other):
        """Returns: whether it is added."""
        if other.peer not in self.members():
            self.ask("cluster/member/add", peerURLs=[other.peer])
        return other.peer in self.members()

    def end(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Writer:
    """Writes to a host until it is ended, one document after another."""

    def __init__(self, host, name):
        self.host, self.name, self.written, self.refused, self.ends = host, name, 0, [], False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ends and not self.refused:
            status, reply = self.host.ask("PUT", "/w/_doc/%s-%d" % (self.name, self.written), {"v": self.written})
            if status == 201:
                self.written += 1
            else:
                self.refused.append((status, reply))

    def await_more(self):
        wanted = self.written + 20
        until(lambda: self.written >= wanted or self.refused, "it writes")

    def end(self):
        self.ends = True
        self.thread.join()


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Members(unittest.TestCase):
    def setUp(self):
        self.members = [Member(name) for name in ("m0", "m1", "m2")]
        self.count = len(self.members)
        for member in self.members:
            member.start(self.members, "new")
            self.addCleanup(member.close)
        for member in self.members:
            until(member.serves, "the member serves")
        self.hosts = [Server("--cluster", self.cluster(), "--node-name", name, *LEASE, port=free_port()) for name in "ab"]
        for host in self.hosts:
            host.start()
            self.addCleanup(host.close)

    def cluster(self):
        return ",".join(member.url for member in self.members) + "/tidelock"

    def replace(self, which, url=None):
        """Removes a member and adds one, at another URL unless `url` is given."""
        old, other = self.members[which], self.members[which - 1]
        rest = [member for member in self.members if member is not old]
        until(lambda: other.remove(old), "etcd removes it")
        until(lambda: all(old.peer not in (member.members() or [old.peer]) for member in rest), "the others know that")
        old.end()
        new = Member("m%d" % self.count, url)
        self.count += 1
        self.addCleanup(shutil.rmtree, new.folder, True)
        until(lambda: other.add(new), "etcd adds it")
        until(lambda: all(new.peer in member.members() for member in rest), "the others know it: else the new one ends at its start")
        self.members[which] = new
        new.start(self.members, "existing")
        self.addCleanup(new.end)
        until(new.serves, "the new member serves")

    def must(self, host, method, path, body=None):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, (200, 201), reply)
        return reply

    def test_writes_continue_while_members_are_replaced(self):
        a, b = self.hosts
        self.must(a, "PUT", "/w", {})
        writers = [Writer(a, "first")]
        try:
            self.replace(0, self.members[0].url)  # at its URL: no host notices
            self.replace(1)
            writers[0].await_more()
            self.replace(2)
            writers[0].await_more()
        finally:
            writers[0].end()
        self.assertEqual(writers[0].refused, [])

        # One URL of three is left. Hosts are started again with the new ones, one after the other: nothing is out of service.
        for host, other in ((b, a), (a, b)):
            writers.append(Writer(other, "%d" % len(writers)))
            try:
                host.stop()
                host.options[host.options.index("--cluster") + 1] = self.cluster()
                host.start()
                until(lambda host=host: host.ask("GET", "/_cluster/health")[1]["status"] == "green", "both hosts are live")
                writers[-1].await_more()
            finally:
                writers[-1].end()
            self.assertEqual(writers[-1].refused, [])
        self.replace(0)
        self.must(a, "PUT", "/w/_doc/last", {"v": 1})
        count = sum(writer.written for writer in writers) + 1
        for host in self.hosts:
            self.assertEqual(self.must(host, "GET", "/w/_count")["count"], count)

    def test_host_that_knows_no_member_any_more_serves_again_with_the_new_urls(self):
        a, b = self.hosts
        self.must(a, "PUT", "/w/_doc/1", {"v": 1})
        for which in range(3):
            self.replace(which)
        until(lambda: a.ask("GET", "/_cluster/health")[1].get("status") == "red", "no member is at a URL that the host has")
        self.assertEqual(a.ask("PUT", "/w/_doc/2?timeout=1s", {"v": 2})[0], 503)
        until(lambda: a.ask("GET", "/w/_doc/1")[0] == 503, "its lease is over")
        for host in self.hosts:
            host.stop()
            host.options[host.options.index("--cluster") + 1] = self.cluster()
        for host in self.hosts:
            host.start()
        self.must(b, "PUT", "/w/_doc/3", {"v": 3})
        for host in self.hosts:
            self.assertEqual(self.must(host, "GET", "/w/_doc/1")["_source"], {"v": 1})
            self.assertEqual(self.must(host, "GET", "/w/_doc/3")["_source"], {"v": 3})


if __name__ == "__main__":
    unittest.main(verbosity=2)
