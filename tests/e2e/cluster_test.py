#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three hosts of a cluster on one etcd (docs/cluster.md): all hosts apply a write to one of them, locks exclude across hosts, the
death of a host affects no data of the others, and all hosts have equal states. Skipped without etcd.
"""
import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import ports  # noqa: E402
from clock import Clock  # noqa: E402
from fleet import Client  # noqa: E402
from proxy import Proxy  # noqa: E402
from server import HANGS, PROGRAM, Server  # noqa: E402
import skips  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
from waiting import Waiting, stop_process, until  # noqa: E402

NAMES = ["a", "b", "c"]
LEASE = ("--host-lease", "10s")  # longer than delays of the machine; tests wait for its end


reserved = []  # until this process ends


def free_port():
    """Returns: a port that no other process takes while its server is stopped; where none can be reserved, one that is free now."""
    reserved.append(ports.Port())
    if reserved[-1].number != 0:
        return reserved[-1].number
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Etcd:
    context = None  # an ssl.SSLContext to ask it with

    def options(self):
        """Further options; with a certificate its clients speak TLS."""
        return []

    def __init__(self):
        self.data = tempfile.mkdtemp(prefix="tidelock-etcd-")
        while not self.start():  # another process has taken one of the ports meanwhile
            shutil.rmtree(self.data)

    def start(self):
        """Starts it on free ports. Returns: whether it serves."""
        self.url = "%s://127.0.0.1:%d" % ("https" if self.context else "http", free_port())
        self.peer = "http://127.0.0.1:%d" % free_port()
        return self.resume()

    def resume(self):
        """Starts it on the ports and the data that it had. Returns: whether it serves."""
        self.process = subprocess.Popen(
            ["etcd", "--data-dir", os.path.join(self.data, "data"), "--listen-client-urls", self.url, "--advertise-client-urls", self.url, "--listen-peer-urls", self.peer,
             "--initial-advertise-peer-urls", self.peer, "--initial-cluster", "default=" + self.peer, *self.options()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.process.poll() is None:
            try:
                with urllib.request.urlopen(self.url + "/health", context=self.context) as reply:
                    return reply.status == 200
            except OSError:
                time.sleep(0.02)
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, **body):
        """By its JSON gateway."""
        with urllib.request.urlopen(urllib.request.Request(self.url + "/v3/" + path, json.dumps(body).encode())) as reply:
            return json.loads(reply.read())

    def key(self, key, **options):
        """Returns: a key, as etcd shows it; `options`: of etcd's RangeRequest."""
        return self.ask("kv/range", key=base64.b64encode(key.encode()).decode(), **options)["kvs"][0]

    def close(self):
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)


class Hosts(unittest.TestCase):
    """Hosts of a cluster; each case has a cluster of its own in one etcd."""

    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd()
        cls.addClassCleanup(cls.etcd.close)

    def setUp(self):
        self.cluster = "%s/%s" % (self.etcd.url, self._testMethodName)
        self.hosts = []

    def not_started(self, name, *options, data=None, environment=None):
        port = free_port()
        host = Server("--cluster", self.cluster, "--node-name", name, *(() if "--host-lease" in options else LEASE), *options, data=data, port=port, environment=environment)
        self.hosts.append(host)
        self.addCleanup(host.close)
        return host

    def host(self, name, *options, data=None, environment=None):
        return self.not_started(name, *options, data=data, environment=environment).start()

    def must(self, host, method, path, body=None, wanted=(200, 201)):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, wanted, reply)
        return reply

    def listed(self, host):
        return {one["name"]: one for one in self.must(host, "GET", "/_cluster/hosts")["hosts"]}

    def await_live(self, host):
        """Waits until all hosts are live: one whose heartbeat is late is not, for a short time."""
        until(lambda: [name for name, one in sorted(self.listed(host).items()) if one["live"]] == NAMES, "all hosts are live")


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Creation(Hosts):
    def test_hosts_started_at_the_same_time_are_one_cluster(self):
        """With empty directories and no cluster yet: one host creates it, the others join it."""
        threads = [threading.Thread(target=self.host, args=(name,)) for name in NAMES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for host in self.hosts:
            self.await_live(host)
        self.assertEqual(len({self.must(host, "GET", "/")["cluster_uuid"] for host in self.hosts}), 1)

    def test_prefix_among_the_keys_of_another_cluster_is_refused(self):
        """Its keys would be entries of that cluster's log, which ends the hosts that read them, or hosts of it."""
        first = self.host("a")
        for part in ("log", "host/x", "x/skip"):
            other = Server("--cluster", "%s/%s" % (self.cluster, part), "--node-name", "a", port=free_port())
            self.addCleanup(other.close)
            with self.assertRaisesRegex(RuntimeError, "no cluster can be made at .*: its keys would be among those of a cluster"):
                other.start()
        self.must(first, "PUT", "/w/_doc/1", {"v": 1})

    def test_host_with_another_limit_is_refused(self):
        """Its end names the option, its value and the cluster's; with that it joins, and finds what the others have."""
        first = self.host("a", "--max-sessions", "7000")
        self.must(first, "PUT", "/w/_doc/1", {"v": 1})
        second = self.not_started("b", "--max-sessions", "6000")
        with self.assertRaisesRegex(RuntimeError, "the cluster refuses this host: .*max-sessions: this host has 6000, the cluster 7000; start it with --max-sessions 7000\n"):
            second.start()
        self.assertEqual(second.process.wait(), 1)
        second.log = open(second.data + ".log", "ab")
        second.options[second.options.index("6000")] = "7000"
        second.start()
        self.assertEqual(self.must(second, "GET", "/w/_doc/1")["_source"], {"v": 1})

    def test_host_is_called_by_its_advertised_name(self):
        host = self.host("a", "--advertise", "store.example:9200")
        self.assertEqual(self.listed(host)["a"]["address"], "store.example:9200")
        self.assertEqual(host.ask("GET", "/_cat/hosts", headers={"Host": "store.example:9200"})[0], 200)
        self.assertEqual(host.ask("GET", "/_cat/hosts", headers={"Host": "other.example:9200"})[0], 403)

    def test_host_without_another_one_to_copy_from_waits_for_it(self):
        """It reports why no checkpoint comes, starts when one does, and has lost no memory by its attempts."""
        first = self.host("a")
        self.must(first, "PUT", "/w/_doc/1", {"v": 1})
        first.kill()
        second = self.not_started("b")
        starting = threading.Thread(target=second.start)
        starting.start()
        until(lambda: "no checkpoint came from" in second.errors(), "b has tried to copy from a")
        first.start()
        starting.join()
        until(lambda: second.ask("GET", "/w/_doc/1")[0] == 200, "the document")

    def test_host_whose_disk_is_full_says_so_and_copies_when_it_has_space(self):
        """It asks for a checkpoint once, says so once, ends by a signal, and copies the checkpoint as soon as its disk has space."""
        first = self.host("a", "--log-level", "debug")
        text = base64.b64encode(os.urandom(1 << 20)).decode()
        self.must(first, "PUT", "/w/_doc/1", {"text": text})
        folder = tempfile.mkdtemp(prefix="tidelock-test-")
        self.addCleanup(shutil.rmtree, folder)
        with SmallDisk() as disk:
            data = os.path.join(folder, "data")  # not on that disk: its log is next to it
            os.symlink(disk.folder, data)
            second = self.not_started("b", data=data)
            disk.fill(leave=1 << 19)
            self.assert_ends_by_signal(second, "and cannot store it: ")
            self.assertRegex(second.errors(), r"incoming: the checkpoint has \d+ bytes, and \d+ are free; trying again")
            second = self.not_started("b", data=data)
            starting = self.starting(second, "trying again", times=2)
            disk.make_room()
            starting.join()
            self.assertEqual(self.must(second, "GET", "/w/_doc/1")["_source"], {"text": text})
            self.assertFalse(os.path.exists(os.path.join(data, "incoming")))
            second.stop()
        self.assertEqual(second.errors().count("needs a checkpoint"), 2)
        self.assertEqual(first.errors().count("POST /_cluster/_checkpoint: 200"), 3)

    def test_copy_of_checkpoint_ends_by_a_signal(self):
        """The other host does not send a file: its checkpoint is deleted there, too."""
        first, asked, continues = self.not_started("a"), threading.Event(), threading.Event()
        self.addCleanup(continues.set)

        def hold(data):
            if b"?file=" in data:
                asked.set()
                continues.wait()
        with Proxy(first.port_wanted, hold) as proxy:
            first.options += ["--advertise", "127.0.0.1:%d" % proxy.port]
            first.start()
            second, copies = self.not_started("b"), os.path.join(first.data, "copies")
            self.must(first, "PUT", "/w/_doc/1", {"v": 1})
            self.assert_ends_by_signal(second, asked.is_set)
            self.assertEqual(os.listdir(copies), [])
            continues.set()

    def test_copy_of_checkpoint_is_reported(self):
        """In the log and to the supervisor, at its begin, after five seconds, and at its end. A report extends the supervisor's time limit if more has been
        copied than before. The first attempt fails at the fifth file; both take more than five seconds, as does the first file of the second attempt."""
        first, clock, attempts, states = self.not_started("a"), Clock(), [], []
        self.addCleanup(clock.close)

        def watch(data):
            if data.startswith(b"POST /_cluster/_checkpoint "):
                attempts.append(0)
            if b"?file=" in data:
                attempts[-1] += 1
                if (len(attempts), attempts[-1]) in ((1, 4), (2, 1)):
                    clock.jump(6)
                if len(attempts) == 1 and attempts[-1] >= 5:  # the request may be repeated
                    raise OSError("the connection breaks")
        with Proxy(first.port_wanted, watch) as proxy, tempfile.TemporaryDirectory(prefix="tidelock-notify-") as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(os.path.join(folder, "socket"))
            first.options += ["--advertise", "127.0.0.1:%d" % proxy.port]
            first.start()
            self.must(first, "PUT", "/w/_doc/1", {"v": 1})
            second = self.not_started("b", environment={**clock.environment(), "NOTIFY_SOCKET": os.path.join(folder, "socket")})
            second.start()
            while "READY=1" not in states:
                states.append(supervisor.recv(1000).decode())
        lines = re.findall(r" info: ((?:copying the checkpoint|the checkpoint has been copied).*)\n", second.errors())
        self.assertRegex(lines[0], r"^copying the checkpoint of another host: \d+\.\d MB$")
        for line in lines[1:-1]:
            self.assertRegex(line, r"^copying the checkpoint of another host: \d+\.\d of \d+\.\d MB, \d+ %, about \d+ s left$")
        self.assertGreaterEqual(float(re.fullmatch(r"the checkpoint has been copied: \d+\.\d MB, in (\d+\.\d) s", lines[-1])[1]), 6)
        extend = "EXTEND_TIMEOUT_USEC=600000000\n"
        states = states[:states.index(extend + "STATUS=") + 1]  # then the entries after the checkpoint are applied
        self.assertEqual([state.replace(extend, "") for state in states], ["STATUS=" + line for line in [*lines[:-1], ""]])
        extends = [state.startswith(extend) for state in states]
        self.assertTrue(extends[0] and extends[1] and extends[-1], states)
        self.assertIn(False, extends, states)

    def test_entries_that_a_start_applies_are_reported(self):
        """In the log and to the supervisor, whose time limit each report extends, before the host is ready: those that etcd's log has after its checkpoint. The
        host that makes the cluster finds nothing but its own JOIN, and reports nothing."""
        puts, states, extend = 20, [], "EXTEND_TIMEOUT_USEC=600000000\nSTATUS="
        first, second = self.host("a"), self.host("b")
        second.stop()
        for n in range(puts):
            self.must(first, "PUT", "/w/_doc/%d" % n, {"v": n})
        logged = len(second.errors())
        with tempfile.TemporaryDirectory(prefix="tidelock-notify-") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(os.path.join(folder, "socket"))
            second.environment["NOTIFY_SOCKET"] = os.path.join(folder, "socket")
            second.start()
            while "READY=1" not in states:
                states.append(supervisor.recv(1000).decode())
        reported = r" info: ((?:applying the log of the cluster|the log of the cluster has been applied): .*)\n"
        lines = re.findall(reported, second.errors()[logged:])
        begin = re.fullmatch(r"applying the log of the cluster: entries after position (\d+) up to position (\d+)", lines[0])
        self.assertLessEqual(int(begin[1]) + puts, int(begin[2]))
        for line in lines[1:-1]:  # on a machine that pauses for so long
            self.assertRegex(line, r"^applying the log of the cluster: position \d+ of \d+, \d+ %, about \d+ s left$")
        end = re.fullmatch(r"the log of the cluster has been applied: (\d+) entries, \d+\.\d MB, in \d+\.\d s", lines[-1])
        self.assertGreater(int(end[1]), puts)
        self.assertEqual(states, [extend + line for line in lines[:-1]] + [extend, "READY=1"])
        self.assertEqual(re.findall(reported, first.errors()), [])

    def test_request_for_checkpoint_ends_by_a_signal(self):
        """The other host gets the request when the one that asked is gone, and keeps no checkpoint for it."""
        first, asked, continues = self.not_started("a", "--log-level", "debug"), threading.Event(), threading.Event()
        self.addCleanup(continues.set)

        def hold(data):
            if b"POST /_cluster/_checkpoint" in data:
                asked.set()
                continues.wait()
        with Proxy(first.port_wanted, hold) as proxy:
            first.options += ["--advertise", "127.0.0.1:%d" % proxy.port]
            first.start()
            self.must(first, "PUT", "/w/_doc/1", {"v": 1})
            self.assert_ends_by_signal(self.not_started("b"), asked.is_set)
            continues.set()
            until(lambda: "POST /_cluster/_checkpoint: " in first.errors(), "the request is over")
            self.assertEqual(os.listdir(os.path.join(first.data, "copies")), [])

    def test_full_disk_of_a_new_host_is_named(self):
        folder = tempfile.mkdtemp(prefix="tidelock-test-")
        self.addCleanup(shutil.rmtree, folder)
        with SmallDisk() as disk:
            data = os.path.join(folder, "data")  # not on that disk: its log is next to it
            os.symlink(disk.folder, data)
            disk.fill()
            with self.assertRaisesRegex(RuntimeError, "data/cluster.part: No space left on device"):
                self.host("a", data=data)
            disk.make_room()
            host = self.host("a", data=data)
            self.must(host, "GET", "/_cluster/health")
            host.stop()

    def test_loopback_address_that_others_cannot_reach_is_warned_of(self):
        """By default a host listens on loopback; an etcd of another machine, here under a name of this one, shows that there are others."""
        warning, waits = "give --advertise HOST:PORT, or a --listen that they can reach", "cannot be reached; waiting for it"
        for cluster, options, is_warned in (("http://127.0.0.1:1,http://0.0.0.0:1/x", [], True), ("http://127.0.0.1:1,http://localhost:1,http://[::1]:1/x", [], False),
                                            ("http://0.0.0.0:1/x", ["--advertise", "store.example:9200"], False)):
            host = Server("--cluster", cluster, "--node-name", "a", *options, port=free_port())
            self.addCleanup(host.close)
            self.assert_ends_by_signal(host, waits)
            self.assertEqual(warning in host.errors(), is_warned, (cluster, options))

    def assert_ends_by_signal(self, host, wanted):
        """Starts a host that waits, and ends it when its log has the wanted text, or a condition holds: with status 0, and no memory lost."""
        refused = []

        def start():
            try:
                host.start()
            except RuntimeError as error:
                refused.append(str(error))
        thread = threading.Thread(target=start)
        thread.start()
        until(lambda: refused or (wanted in host.errors() if isinstance(wanted, str) else wanted()), str(wanted))
        self.assertEqual(refused, [])  # such as for a name that cannot be looked up, localhost included
        host.process.send_signal(signal.SIGTERM)
        thread.join()
        self.assertIn("(status 0)", refused[0])
        self.assertIn("stopping before the start was complete: Terminated", refused[0])

    def starting(self, host, wanted, times=1):
        """Starts a host that waits. Returns: the thread, when its log has the wanted text so many times."""
        thread = threading.Thread(target=host.start)
        thread.start()
        until(lambda: host.errors().count(wanted) >= times, wanted)
        return thread

    def test_second_host_of_a_name_waits_until_the_first_has_left(self):
        """With an empty directory, and with a copy of a directory."""
        first = self.host("a")
        self.must(first, "PUT", "/w/_doc/1", {"v": 1})
        empty = self.not_started("a")
        starting = self.starting(empty, "a live host has the name of this one, a;")
        long = ("--host-lease", "1m")  # neither may be out since the machine delays it
        b = self.host("b", *long)
        starting.join(0)
        until(lambda: "a host of the name a is" in empty.errors(), "it has copied a checkpoint of b")
        self.assertEqual(self.must(first, "GET", "/w/_doc/1")["_source"], {"v": 1})
        first.stop()
        starting.join()
        self.assertEqual(self.must(empty, "GET", "/w/_doc/1")["_source"], {"v": 1})
        b.stop()
        copied = b.data + ".copy"
        self.addCleanup(shutil.rmtree, copied)
        shutil.copytree(b.data, copied)
        b.start()
        copy = self.host("b", *long, "--advertise", "127.0.0.1:%d" % b.port, data=copied)
        until(lambda: "a host of the name b is" in b.errors(), "b waits for the copy, which was started later")
        self.assertEqual(self.must(copy, "GET", "/w/_doc/1")["_source"], {"v": 1})
        self.assertEqual(b.ask("GET", "/w/_doc/1")[0], 503)
        self.assertNotIn("joins again", copy.errors())

    def test_start_that_waits_ends_by_a_signal(self):
        """For etcd, for a checkpoint, and for another host of its name; with status 0, and no memory lost."""
        first, other = self.host("a"), self.host("b")
        other.stop()
        named = Server("--cluster", self.cluster, "--node-name", "a", data=other.data, port=free_port())
        empty = self.not_started("a")
        away = Server("--cluster", "http://127.0.0.1:1/x", "--node-name", "a", port=free_port())
        for host, wanted in ((named, "a host of the name a is"), (empty, "needs a checkpoint of another one"), (away, "cannot be reached; waiting for it")):
            self.assert_ends_by_signal(host, wanted)
        self.must(first, "GET", "/_cluster/health")

    def directory_of_killed_host(self, number, state, has_store):
        """Returns: a directory as a host leaves it that was killed in a state of the creation of cluster `number`, with or without a store."""
        server = Server(replay=False)
        self.addCleanup(server.close)
        if has_store:
            server.start().stop()
        with open(os.path.join(server.data, "cluster"), "w") as identity:
            identity.write("tidelock-cluster 1\ncluster %032x\ndirectory %032x\nstate %s\n" % (number, number, state))
        return server.data

    def test_host_killed_while_it_creates_the_cluster_continues(self):
        """By its next start another host may have made the cluster: an empty directory joins that, one with data is refused."""
        first = self.host("a", data=self.directory_of_killed_host(1, "creating", False))
        self.must(first, "PUT", "/w/_doc/1", {"v": 1})
        for number, name, has_store in ((2, "b", False), (3, "c", True)):
            host = self.host(name, data=self.directory_of_killed_host(number, "creating", has_store))
            until(lambda host=host: host.ask("GET", "/w/_doc/1")[0] == 200, "the document")
        self.await_live(first)
        data = self.directory_of_killed_host(4, "founding", True)
        with self.assertRaisesRegex(RuntimeError, "another host has made the cluster at .* of its data, .* empty directory .* a prefix at which there is no cluster, or remove its file "):
            self.host("d", data=data)
        other = Server("--cluster", self.cluster + "-other", "--node-name", "d", data=data, port=free_port())  # as the refusal says
        self.addCleanup(other.close)
        other.start()
        self.must(other, "GET", "/_cluster/health")


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Cluster(Hosts):
    """All cases have the same three hosts: b and c joined when a had documents."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = cls.etcd.url + "/cluster"
        cls.hosts = [Server("--cluster", cls.cluster, "--node-name", name, *LEASE, "--checkpoint", "1m" if name == "c" else "64m", "--recovery-time", "1h", port=free_port())
                     for name in NAMES]
        for host in cls.hosts:
            cls.addClassCleanup(host.close)
        cls.hosts[0].start()
        for i in range(50):
            cls.hosts[0].must("PUT", "/before/_doc/%d" % i, {"v": i})
        cls.hosts[1].start()
        cls.hosts[2].start()

    def setUp(self):
        self.await_live(self.hosts[0])

    def test_write_to_one_host_is_applied_by_all(self):
        for i, host in enumerate(self.hosts):
            self.must(host, "PUT", "/before/_doc/from-%d" % i, {"v": i})
        for host in self.hosts:
            until(lambda host=host: self.must(host, "GET", "/before/_count")["count"] == 53, "all documents")
            self.assertEqual(host.ask("GET", "/before/_doc/49")[1]["_source"], {"v": 49})
        self.await_live(self.hosts[0])
        self.assertEqual(sum(one["keeper"] for one in self.listed(self.hosts[0]).values()), 1)

    def checkpoint_of(self, name):
        """Returns: the revision at which the host has recorded its newest checkpoint in etcd."""
        return self.etcd.key("cluster/checkpoint/" + name)["mod_revision"]

    def test_host_makes_a_checkpoint_after_its_size_of_log(self):
        """--checkpoint 1m; the other hosts' is 64m. The next one is later after a checkpoint that took long, at a tenth of the host's work: it is
        awaited while c continues writing, and does not count if it came after more than 16 MiB, which is still far from the other conditions of one."""
        c, prompt = self.hosts[2], 0
        while prompt < 2:
            before, written = self.checkpoint_of("c"), 0
            while self.checkpoint_of("c") == before:
                self.must(c, "PUT", "/large/_doc/1", {"text": "x" * (1 << 16)})
                written += 1 << 16
            prompt += written <= 16 << 20

    def test_locks_exclude_across_hosts(self):
        a, b, c = self.hosts
        s = self.must(a, "POST", "/_session", {"ttl": "10m"})["session"]
        t = self.must(b, "POST", "/_session", {"ttl": "10m"})["session"]
        self.must(b, "POST", "/_lock", {"session": s, "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]})
        until(lambda: c.ask("GET", "/_session/" + t)[0] == 200, "the session on all hosts")
        status, reply = c.ask("POST", "/_lock", {"session": t, "wait": "0s", "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]})
        self.assertEqual(status, 409, reply)
        self.must(c, "DELETE", "/_session/" + s)
        self.must(a, "POST", "/_lock", {"session": t, "wait": "10m", "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]})

    def test_killed_host_returns(self):
        a, b, c = self.hosts
        session = self.must(a, "POST", "/_session", {"ttl": "10m"})["session"]
        acknowledged, broken, over = [], [], threading.Event()

        def write(host, name):
            n = 0
            while not over.is_set():
                try:
                    self.must(host, "PUT", "/w/_doc/%s-%d" % (name, n), {"n": n}, (201,))
                except BaseException as error:  # noqa: B902 the test raises it
                    broken.append(error)
                    raise
                acknowledged.append("%s-%d" % (name, n))
                n += 1
        writers = [threading.Thread(target=write, args=(host, name)) for host, name in ((b, "b"), (c, "c"))]
        for writer in writers:
            writer.start()

        def await_more():
            """Both write on."""
            want = {name: sum(id.startswith(name) for id in acknowledged) + 10 for name in "bc"}
            until(lambda: broken or all(sum(id.startswith(name) for id in acknowledged) >= want[name] for name in "bc"), "more has been written")
        try:
            await_more()
            a.kill()
            await_more()
            a.start()
            await_more()
        finally:
            over.set()
            for writer in writers:
                writer.join()
        for error in broken:
            raise error
        self.must(a, "POST", "/_session/%s/_keepalive" % session)
        until(lambda: self.must(a, "GET", "/w/_count")["count"] == len(acknowledged), "all that was acknowledged")
        for host in (a, b, c):
            until(lambda host=host: self.must(host, "GET", "/w/_count")["count"] == len(acknowledged), "all that was acknowledged")
        self.await_live(a)

    def kill_with_places(self, document, named, repeat_at_once):
        """
        A request waits by b for the lock of the document, a LOCK of another session by a. b is killed, and its client asks again by c: at once, or when
        b is out. `named`: the request is a write with an ID, else a LOCK.
        """
        a, b, c = self.hosts
        self.await_live(a)
        holder, first, second = (self.must(a, "POST", "/_session", {"ttl": "1h"})["session"] for _ in range(3))
        locks = [{"mode": "exclusive", "index": "places", "id": document}]

        def await_waiters(count):
            until(lambda: sum(len(lock["waiters"]) for lock in self.must(c, "GET", "/_lock?index=places")["locks"]) == count, "%d requests wait" % count)

        def waits(host, session, count):
            """Returns: its request, which is one of `count` that wait."""
            if named and session == first:
                waiting = Waiting(host, "PUT", "/places/_doc/%s?timeout=10m" % document, {"v": 1}, {"Tidelock-Request": "of-" + document})
            else:
                waiting = Waiting(host, "POST", "/_lock", {"session": session, "wait": "10m", "locks": locks})
            await_waiters(count)
            return waiting
        self.must(a, "POST", "/_lock", {"session": holder, "locks": locks})
        lost, other = waits(b, first, 1), waits(a, second, 2)
        b.kill()
        again = waits(c, first, 3) if repeat_at_once else None
        until(lambda: not self.listed(c)["b"]["live"], "b is out")
        again = again or waits(c, first, 2)
        await_waiters(2)
        self.must(a, "POST", "/_unlock", {"session": holder})
        until(lambda: not again.is_alive() or not other.is_alive(), "one of them has the lock")
        if named:  # if the other one had it first, it would have it still
            self.assertEqual(a.ask("GET", "/places/_doc/" + document)[0], 200)
        again.join()
        self.assertIn(again.status, (200, 201), again.reply)
        if not named:
            self.must(c, "POST", "/_unlock", {"session": first})
        other.join()
        self.assertEqual(other.status, 200, other.reply)
        self.must(c, "POST", "/_unlock", {"session": second})
        lost.join()
        self.assertIsNone(lost.status)
        b.start()

    def test_killed_host_keeps_places(self):
        """The first request gets the lock before the one that came later."""
        for named in False, True:
            for repeat_at_once in True, False:
                with self.subTest(named=named, repeat_at_once=repeat_at_once):
                    self.kill_with_places("%s-%s" % (named, repeat_at_once), named, repeat_at_once)

    def attach(self, host, session):
        """Attaches a connection to the session. Returns: its socket."""
        stream, answer = Client.open_attach_stream("127.0.0.1", host.port, session, HANGS)
        self.addCleanup(stream.close)
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
        return stream

    def test_session_attached_to_killed_host_lives_on(self):
        """Its lease begins anew when the host is out, and its holder attaches to another host: it has its lock all the time, and ends with that connection."""
        a, b, c = self.hosts
        self.await_live(a)
        session, other = (self.must(a, "POST", "/_session", {"ttl": "1h"})["session"] for _ in range(2))
        locks = [{"mode": "exclusive", "index": "attached", "id": "1"}]
        self.must(a, "POST", "/_lock", {"session": session, "locks": locks})

        def await_attached(wanted):
            until(lambda: self.must(c, "GET", "/_session/" + session)["attached"] == wanted, "attached: %s" % wanted)

        def is_locked(host):
            status, reply = host.ask("POST", "/_lock", {"session": other, "wait": "0s", "locks": locks})
            self.assertIn(status, (200, 409), reply)
            return status == 409
        lost = self.attach(b, session)
        await_attached(True)
        b.kill()
        part = b"-"
        while part:
            try:
                part = lost.recv(4096)
            except ConnectionResetError:
                part = b""
        self.assertTrue(is_locked(c))
        until(lambda: not self.listed(c)["b"]["live"], "b is out")
        await_attached(False)
        self.assertTrue(is_locked(c))
        stream = self.attach(c, session)
        await_attached(True)
        b.start()  # its new life ends nothing of another host's
        self.await_live(c)
        self.assertTrue(self.must(b, "GET", "/_session/" + session)["attached"])
        self.assertTrue(is_locked(b))
        self.must(c, "PUT", "/attached/_doc/1?session=" + session, {"v": 1})
        waiting = Waiting(a, "POST", "/_lock", {"session": other, "wait": "10m", "locks": locks})
        stream.close()
        waiting.join()
        self.assertEqual(waiting.status, 200, waiting.reply)
        self.assertEqual(a.ask("GET", "/_session/" + session)[0], 404)
        self.must(a, "DELETE", "/_session/" + other)

    def pause(self, host):
        """Pauses the host's process, which is continued at the end of the test at the latest. Its threads stop one after the other."""
        def states():
            for task in os.listdir("/proc/%d/task" % host.process.pid):
                with open("/proc/%d/task/%s/stat" % (host.process.pid, task), encoding="ascii") as stat:
                    yield stat.read().rsplit(")", 1)[1].split()[0]
        stop_process(host.process)
        self.addCleanup(host.process.send_signal, signal.SIGCONT)
        until(lambda: set(states()) == {"T"}, "all threads are paused")

    def sent(self, host, method, path, body=None):
        """Sends a request, which the host receives when it continues. Returns: a function that waits for the reply: (status, JSON)."""
        connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=HANGS)
        self.addCleanup(connection.close)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})

        def reply():
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        return reply

    def test_paused_host_answers_nothing_that_is_out_of_date(self):
        """Another host writes meanwhile, `strict`, for longer than its lease, and shorter. Each acknowledged write has happened once."""
        a, _, c = self.hosts
        add = {"script": {"source": "ctx._source.n += 1"}}
        self.must(a, "PUT", "/paused/_doc/1", {"v": 0, "n": 0})
        self.pause(c)
        written = self.sent(c, "POST", "/paused/_update/1", add)
        self.must(a, "POST", "/paused/_update/1", {"doc": {"v": 1}})
        self.assertFalse(self.listed(a)["c"]["live"])
        read = self.sent(c, "GET", "/paused/_doc/1")  # after the write was acknowledged
        c.process.send_signal(signal.SIGCONT)
        status, reply = read()
        self.assertIn((status, reply.get("_source", {}).get("v")), ((503, None), (200, 1)), reply)
        statuses = [written()[0]]
        self.await_live(a)
        self.pause(c)
        read, written = self.sent(c, "GET", "/paused/_doc/1"), self.sent(c, "POST", "/paused/_update/1", add)
        waiting = Waiting(a, "POST", "/paused/_update/1", {"doc": {"v": 2}})
        until(lambda: self.must(a, "GET", "/paused/_doc/1")["_source"]["v"] == 2, "it is written, but c has not applied it")
        c.process.send_signal(signal.SIGCONT)
        waiting.join()
        self.assertEqual(waiting.status, 200, waiting.reply)
        status, reply = c.ask("GET", "/paused/_doc/1")  # the machine may have delayed c beyond its lease
        self.assertIn((status, reply.get("_source", {}).get("v")), ((503, None), (200, 2)), reply)
        self.assertIn(read()[0], (200, 503))
        statuses.append(written()[0])
        self.await_live(a)
        done, unknown = statuses.count(200), statuses.count(504)
        for host in self.hosts:
            self.assertIn(self.must(host, "GET", "/paused/_doc/1")["_source"]["n"], range(done, done + unknown + 1), statuses)

    def test_foreign_hosts_and_directories_are_refused(self):
        a = self.hosts[0]
        alone = Server()
        alone.start()
        alone.ask("PUT", "/w/_doc/1", {"v": 2})
        alone.stop()
        run = subprocess.run([PROGRAM, "serve", "--data", alone.data, "--listen", "127.0.0.1:%d" % free_port(), "--node-name", "x", "--cluster", self.cluster],
                             capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("empty directory", run.stderr)
        run = subprocess.run([PROGRAM, "check", "--data", alone.data], env=dict(os.environ, TIDELOCK_CLUSTER=self.cluster), capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, "sound" in run.stdout), (0, True), run.stdout + run.stderr)
        alone.close()
        a.stop()
        run = subprocess.run([PROGRAM, "serve", "--data", a.data, "--listen", "127.0.0.1:0"], capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("--cluster", run.stderr)
        a.start()
        self.assertEqual(self.must(a, "GET", "/before/_doc/1")["_source"], {"v": 1})


if __name__ == "__main__":
    skips.main()
