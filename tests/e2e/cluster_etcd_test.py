#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An etcd that has lost entries, or all of them: hosts refuse to continue with a state that the log does not lead to, and say what to do (docs/cluster.md, "After a restore of etcd"). One that loses its leader delays writes, and fails none.

Method: etcd's data directory is copied while etcd is stopped, and takes the place of a newer one; of three members the leader is killed, or stopped. Each case has an etcd of its own. Skipped without etcd.
"""
import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import Clock  # noqa: E402
from cluster_members_test import Member, Writer  # noqa: E402
from cluster_test import LEASE, Etcd, free_port  # noqa: E402
from server import REPORTS, Server  # noqa: E402
import skips  # noqa: E402
from waiting import Waiting, stop_process, until  # noqa: E402


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class LostEntries(unittest.TestCase):
    def setUp(self):
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)

    def host(self, name, data=None, environment=None):
        host = Server("--cluster", self.etcd.url + "/tidelock", "--node-name", name, *LEASE, data=data, port=free_port(), environment=environment,
                      replay=False)  # its log changes
        self.addCleanup(host.close)
        return host

    def must(self, host, method, path, body=None):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, (200, 201), reply)
        return reply

    def keep_etcd(self, name):
        """Copies etcd's data, to be restored by this name."""
        self.etcd.kill()
        shutil.copytree(os.path.join(self.etcd.data, "data"), os.path.join(self.etcd.data, name))
        self.assertTrue(self.etcd.resume())

    def restore_etcd(self, name):
        self.etcd.kill()
        shutil.rmtree(os.path.join(self.etcd.data, "data"))
        shutil.copytree(os.path.join(self.etcd.data, name), os.path.join(self.etcd.data, "data"))
        self.assertTrue(self.etcd.resume())

    def await_write(self, host, path):
        """Writes, after etcd was away: by then the host's lease may be over, so that it has to join again."""
        until(lambda: host.ask("PUT", path, {"v": 1})[0] in (200, 201), "writes are accepted again")

    def assert_refused(self, host, reason):
        with self.assertRaisesRegex(RuntimeError, reason) as refusal:
            host.start()
        self.assertFalse([report for report in REPORTS if report in str(refusal.exception)], str(refusal.exception))

    def test_start_that_waits_for_etcd_extends_its_time_limit(self):
        """It reports the wait to the supervisor again and again, and that it is over; then it is ready. The clock advances by the time between two reports."""
        clock, states, extend = Clock(), [], "EXTEND_TIMEOUT_USEC=600000000\nSTATUS="
        waits = extend + "waiting for the log of the cluster, which cannot be reached"
        self.addCleanup(clock.close)
        with tempfile.TemporaryDirectory(prefix="tidelock-notify-") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(os.path.join(folder, "socket"))
            supervisor.settimeout(0.1)
            host = self.host("a", environment={**clock.environment(), "NOTIFY_SOCKET": os.path.join(folder, "socket")})
            host.start().stop()
            with contextlib.suppress(TimeoutError):
                while supervisor.recv(1000):
                    pass
            self.etcd.kill()
            starting = threading.Thread(target=host.start)
            starting.start()
            while len(states) < 2:
                clock.jump(6)
                with contextlib.suppress(TimeoutError):
                    states.append(supervisor.recv(1000).decode())
            self.assertTrue(self.etcd.resume())
            supervisor.settimeout(None)
            while "READY=1" not in states:
                states.append(supervisor.recv(1000).decode())
            starting.join()
        self.assertEqual(states[:2], [waits] * 2)
        self.assertEqual([state for state in states[2:] if state != waits][0], extend)
        self.assertIn("the log of the cluster cannot be reached; waiting for it", host.errors())

    def test_host_refuses_log_that_ends_before_its_checkpoint(self):
        """With the newer log it starts; so does a host whose checkpoint is not after the end of the older one, from which the first one copies its state if its directory is empty."""
        a, b = self.host("a"), self.host("b")
        a.start()
        b.start()
        self.must(a, "PUT", "/w/_doc/kept?distribute_timestamps=cluster", {"v": 1})
        b.stop()
        self.keep_etcd("older")
        self.await_write(a, "/w/_doc/lost")
        a.stop()
        self.keep_etcd("newer")
        self.restore_etcd("older")
        self.assert_refused(a, r"the log of the cluster ends with entry [0-9]+, before entry [0-9]+, .*\"After a restore of etcd\"")
        self.restore_etcd("newer")
        a = self.host("a", data=a.data)
        a.start()
        self.must(a, "GET", "/w/_doc/lost")
        a.stop()
        self.restore_etcd("older")
        b.start()
        a = self.host("a")
        a.start()
        until(lambda: self.must(a, "GET", "/_cluster/health")["status"] == "green", "both hosts are live")
        self.must(a, "GET", "/w/_doc/kept")
        self.assertEqual(a.ask("GET", "/w/_doc/lost")[0], 404)

    def test_host_that_runs_while_etcd_is_restored_reports_it(self):
        """It writes nothing then, and continues when etcd has the newer data again."""
        a = self.host("a")
        a.start()
        self.keep_etcd("older")
        self.await_write(a, "/w/_doc/1")
        self.etcd.kill()
        shutil.copytree(os.path.join(self.etcd.data, "data"), os.path.join(self.etcd.data, "newer"))
        self.restore_etcd("older")
        until(lambda: "etcd has lost entries of the log of the cluster" in a.errors(), "the loss is reported")
        self.restore_etcd("newer")
        self.await_write(a, "/w/_doc/2")
        self.assertEqual(self.must(a, "GET", "/w/_doc/1")["_source"], {"v": 1})
        self.assertEqual(a.errors().count("etcd has lost entries"), 1)

    def test_host_warns_of_keys_that_are_not_of_its_cluster(self):
        """A trim compacts all of etcd. Keys before and after those of the cluster; none at the first start."""
        a = self.host("a")
        a.start().stop()
        self.assertNotIn("keys that are not of this cluster", a.errors())
        for key, shown in ((b"tidelock", "tidelock"), (b"tidelock0\n", r"tidelock0\n")):
            name = base64.b64encode(key).decode()
            self.etcd.ask("kv/put", key=name, value=name)
            again = self.host("a", data=a.data)
            again.start().stop()
            self.assertIn("etcd has keys that are not of this cluster, such as [%s]" % shown, again.errors())
            self.etcd.ask("kv/deleterange", key=name)

    def test_stop_without_etcd_ends_waits(self):
        """The log cannot have the end of a wait for a lock: the host answers it nevertheless, and ends in good order."""
        a = Server("--cluster", self.etcd.url + "/tidelock", "--node-name", "a", "--grace", "1s", port=free_port())
        self.addCleanup(a.close)
        a.start()
        holder, other = [self.must(a, "POST", "/_session", {"ttl": "10m"})["session"] for _ in range(2)]
        lock = {"session": holder, "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]}
        self.must(a, "POST", "/_lock", lock)
        waiting = Waiting(a, "POST", "/_lock", json.dumps(dict(lock, session=other, wait="10m")))
        until(lambda: any(row["waiters"] for row in self.must(a, "GET", "/_lock")["locks"]), "it waits")
        self.etcd.kill()
        self.assertEqual(a.stop(replay=False), 0, a.errors()[-3000:])
        waiting.join()
        self.assertEqual((waiting.status, waiting.reply["error"]["type"]), (503, "service_stopping_exception"), waiting.reply)

    def test_keys_that_are_deleted_end_hosts(self):
        a = self.host("a")
        a.start()
        self.must(a, "PUT", "/w/_doc/1", {"v": 1})
        begin, end = (base64.b64encode(key).decode() for key in (b"tidelock/", b"tidelock0"))
        self.etcd.ask("kv/deleterange", key=begin, range_end=end)
        self.assertEqual(a.process.wait(), 70)
        self.assertRegex(a.errors(), r"the log in etcd is damaged: the entry of tidelock/log/a at revision [0-9]+ was deleted")
        self.assert_refused(self.host("a", data=a.data), r"the directory is of cluster [0-9a-f]+, and there is no cluster at .*\"Backup\"")


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class LostLeader(unittest.TestCase):
    def setUp(self):
        self.members = [Member("m%d" % i) for i in range(3)]
        for member in self.members:
            member.start(self.members, "new")
            self.addCleanup(member.close)
        for member in self.members:
            until(member.serves, "the member serves")

    def await_leader(self, members):
        """Returns: the one of them that leads."""
        found = []

        def leads(member):
            status = member.ask("maintenance/status")
            return status is not None and status.get("leader") == status["header"]["member_id"]

        def is_found():
            found[:] = [member for member in members if leads(member)]
            return len(found) == 1
        until(is_found, "one of the members leads")
        return found[0]

    def test_no_write_fails_while_leader_is_lost(self):
        """The timeout of a write, 30 s, is longer than an election. The lease is longer than any delay of the machine."""
        host = Server("--cluster", ",".join(member.url for member in self.members) + "/tidelock", "--node-name", "a", "--host-lease", "10m", port=free_port())
        self.addCleanup(host.close)
        host.start()
        writer = Writer(host, "w")
        try:
            writer.await_more()
            killed = self.await_leader(self.members)
            killed.end()
            rest = [member for member in self.members if member is not killed]
            stopped = self.await_leader(rest)
            writer.await_more()
            killed.start(self.members, "existing")
            until(killed.serves, "it is back")
            stop_process(stopped.process)
            try:
                self.await_leader([member for member in self.members if member is not stopped])
                writer.await_more()
            finally:
                stopped.process.send_signal(signal.SIGCONT)
            writer.await_more()
        finally:
            writer.end()
        self.assertEqual(writer.refused, [])
        self.assertEqual(host.must("GET", "/w/_count")["count"], writer.written)


if __name__ == "__main__":
    skips.main(verbosity=2)
