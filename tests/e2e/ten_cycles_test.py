#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/ten-cycles on a cluster whose second host has each message of etcd 0 to 50 ms late (docs/cluster.md, "Time and reading").

Under `fast` a read has one of two outcomes: it finds the document, or its immediate retry does. Under `strict` and `cluster` each read finds it, also while another host is killed
and started again. Skipped without etcd.

    ten_cycles_test.py [--runs N] [--at-once N] [--between-kills SECONDS]

A cycle takes as long as the write waits for the second host, some 30 ms, and needs the processor for a tenth of that. So `--at-once` programs share the hosts: their waits overlap.
"""
import argparse
import concurrent.futures
import json
import os
import queue
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import LEASE, Etcd, free_port  # noqa: E402
from server import ROOT, Server  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402

DELAY_MAX = 0.05  # seconds


class Relay:
    """Forwards connections to an address, and delays what comes from there."""

    def __init__(self, address, seed, delay_max=DELAY_MAX):
        self.address, self.random, self.delay_max, self.sockets = address, random.Random(seed), delay_max, []
        self.is_open = threading.Event()  # cleared: it keeps back what comes from the address
        self.is_open.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:  # closed
                return
            far = socket.create_connection(self.address)
            for one in (near, far):
                self.sockets.append(one)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            late = queue.SimpleQueue()
            for work in ((self.forward, near, far.sendall), (self.forward, far, lambda data, late=late: late.put((self.due(), data))), (self.deliver, late, near)):
                threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    def due(self):
        return time.monotonic() + self.random.uniform(0, self.delay_max)

    @staticmethod
    def forward(source, send):
        """Until the connection ends; its end is b"", which no socket can send."""
        data = b"-"
        while data:
            try:
                data = source.recv(1 << 16)
                send(data)
            except OSError:
                data = b""
                send(data)

    def deliver(self, late, near):
        while True:
            due, data = late.get()
            time.sleep(max(0, due - time.monotonic()))
            self.is_open.wait()
            try:
                if not data:
                    near.shutdown(socket.SHUT_RDWR)
                    return
                near.sendall(data)
            except OSError:
                return

    def close(self):
        """After all hosts have ended, and so all connections."""
        self.is_open.set()
        for one in (self.listener, *self.sockets):
            one.close()


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class TenCycles(unittest.TestCase):
    runs = 2  # of ten cycles, in each mode
    at_once = 1  # programs, which have an equal part of the runs each
    between_kills = 30  # seconds, at most

    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd()
        cls.addClassCleanup(cls.etcd.close)
        relay = Relay(("127.0.0.1", int(cls.etcd.url.rsplit(":", 1)[1])), seed=1)
        cls.addClassCleanup(relay.close)
        cls.hosts = []
        lease = LEASE if cls.between_kills > 10 else ()  # a death delays writes for a lease
        for name, url in (("a", cls.etcd.url), ("b", "http://127.0.0.1:%d" % relay.port), ("c", cls.etcd.url)):
            host = Server("--cluster", url + "/tidelock", "--node-name", name, *lease, port=free_port())
            cls.addClassCleanup(host.close)
            cls.hosts.append(host.start())

    def run_program(self, cycles):
        """Returns: the output of one program. Fails if a retry found nothing."""
        a, b, _ = self.hosts
        run = subprocess.run([os.path.join(ROOT, "tools", "ten-cycles"), a.url, b.url, "--cycles", str(cycles)], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout[-1000:])
        self.assertEqual(run.stdout.count("END OF"), cycles)
        return run.stdout

    def run_cycles(self, mode, meanwhile=lambda running: None):
        """Runs all programs in a mode, and `meanwhile`, with a function that waits for them and returns whether some still run. Returns: their output."""
        a, b, _ = self.hosts
        for host in self.hosts:
            host.hang_up()  # the cycles before may have taken longer than --idle-timeout
        until(lambda: b.must("GET", "/_cluster/health")["status"] == "green", "all hosts are live")
        a.must("PUT", "/_cluster/settings", {"persistent": {"tidelock.distribute_timestamps": mode}})
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            programs = [pool.submit(self.run_program, 10 * self.runs // self.at_once) for _ in range(self.at_once)]
            meanwhile(lambda timeout: bool(concurrent.futures.wait(programs, timeout).not_done))
            return "".join(program.result() for program in programs)

    def test_fast_has_two_outcomes(self):
        """The delay makes each of them happen, sooner or later: a program that the machine delays reads late."""
        retries = 0
        while retries == 0:
            output = self.run_cycles("fast")
            retries = output.count("WARNING: Immediate read failed")
            self.assertEqual(output.count('{"ok": true}'), retries)

    def test_strict_and_cluster_have_one_outcome(self):
        for mode in ("strict", "cluster"):
            self.assertNotIn("WARNING", self.run_cycles(mode))

    def kill_again_and_again(self, running):
        """Each death delays writes for a lease."""
        c = self.hosts[2]
        while True:
            c.kill()
            c.start()
            if not running(self.between_kills):
                return

    def test_one_outcome_while_a_host_is_killed(self):
        for mode in ("strict", "cluster"):
            self.assertNotIn("WARNING", self.run_cycles(mode, self.kill_again_and_again))


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Misses(unittest.TestCase):
    """Each kind of read that finds nothing under `fast` makes later reads on its host wait for the newest entry. What etcd sends to that host is kept back meanwhile."""

    def setUp(self):
        etcd = Etcd()
        self.addCleanup(etcd.close)
        self.relay = Relay(("127.0.0.1", int(etcd.url.rsplit(":", 1)[1])), seed=1, delay_max=0)
        self.addCleanup(self.relay.close)
        self.hosts = []
        for name, url in (("a", etcd.url), ("b", "http://127.0.0.1:%d" % self.relay.port)):
            host = Server("--cluster", url + "/tidelock", "--node-name", name, "--host-lease", "10m", port=free_port())
            self.addCleanup(host.close)
            self.hosts.append(host.start())
        self.addCleanup(self.relay.is_open.set)  # before the hosts end

    def later_read_waits(self, number, method, path, body):
        """Returns: whether a read by id on host b waits after one by another kind of read, while b does not have the document yet."""
        a, b = self.hosts
        until(lambda: b.ask("GET", "/w/_doc/0?multi_version_concurrency_control=contemporaneous")[0] == 200, "host b has the first document")
        self.relay.is_open.clear()
        a.must("PUT", "/w/_doc/%d" % number, {"n": number})
        status, reply = b.ask(method, path, body)
        self.assertIn(status, (200, 404), reply)
        status, reply = b.ask("GET", "/w/_doc/%d?timeout=1ms" % number)
        self.relay.is_open.set()
        self.assertIn(status, (404, 504), reply)
        return status == 504

    def test_reads_that_find_nothing(self):
        a = self.hosts[0]
        a.must("PUT", "/_cluster/settings", {"persistent": {"tidelock.distribute_timestamps": "fast"}})
        a.must("PUT", "/w/_doc/0?refresh", {"n": 0})
        short = {"query": {"term": {"n": 9}}}
        scripted = {"query": {"bool": {"filter": [{"script": {"script": "doc['n'].value == 9"}}]}}}  # runs on a worker
        lines = "{}\n{\"query\":{\"match_all\":{}}}\n{}\n%s\n" % json.dumps(short)
        reads = [("GET", "/w/_doc/9", None), ("POST", "/w/_search", short), ("POST", "/w/_search", scripted), ("POST", "/w/_count", scripted), ("POST", "/w/_mget", {"ids": ["0", "9"]}),
                 ("POST", "/w/_msearch", lines), ("POST", "/w/_msearch", '{"index":"x"}\n{}\n'), ("POST", "/w/_search?scroll=1m", short)]
        for number, read in enumerate(reads, 10):
            with self.subTest(read=read):
                self.assertTrue(self.later_read_waits(number, *read))
        for number, read in enumerate([("GET", "/w/_doc/0", None), ("POST", "/w/_search", {}), ("GET", "/w/_doc/9?timestamp=%d" % a.must("GET", "/_timestamp")["timestamp"], None)], 30):
            with self.subTest(read=read):
                self.assertFalse(self.later_read_waits(number, *read))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=TenCycles.runs)
    parser.add_argument("--at-once", type=int, default=TenCycles.at_once)
    parser.add_argument("--between-kills", type=float, default=TenCycles.between_kills)
    options, names = parser.parse_known_args()
    TenCycles.runs, TenCycles.at_once, TenCycles.between_kills = options.runs, options.at_once, options.between_kills
    skips.main(argv=sys.argv[:1] + names, verbosity=2)
