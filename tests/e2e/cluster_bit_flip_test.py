#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bit that flips in the memory of one of three hosts stops that host, and no other, as soon as a write depends on it; of two hosts it stops both (docs/cluster.md, "When something fails").

Method: the bytes of a document are changed in /proc/PID/mem, wherever the process has them; an update of the document reads them. Skipped where there is no etcd, or the memory of a
child may not be written.
"""
import array
import itertools
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import LEASE, NAMES, Etcd, free_port  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402

DIFFERS = 71  # exit status
PAGE = os.sysconf("SC_PAGE_SIZE")
MAPPING_BYTES_MAX = 256 << 20  # larger ones are reserved by sanitizers, and are not heaps
# Between the write that shows the difference and the last entry of the host that differs, of the host that sends the fewest. Each sends one a second, unless the machine delays it: both others report their states, and then this one does.
HEARTBEATS_MAX = 4
TEXT, FLIPPED = b"bit-flip-canary-@", b"bit-flip-canary-A"


def writable_mappings(pid):
    with open("/proc/%d/maps" % pid, encoding="ascii") as maps:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and end - begin <= MAPPING_BYTES_MAX:
                yield begin, end


def resident_ranges(pid):
    """Returns: (begin, end) of each range of writable pages of a process that are in memory or swapped out: most of a thread's stack is neither."""
    with open("/proc/%d/pagemap" % pid, "rb") as pagemap:
        for begin, end in writable_mappings(pid):
            pagemap.seek(begin // PAGE * 8)
            entries = array.array("Q", pagemap.read((end - begin) // PAGE * 8))
            number = 0
            for is_resident, pages in itertools.groupby(entry >> 62 != 0 for entry in entries):
                count = len(list(pages))
                if is_resident:
                    yield begin + number * PAGE, begin + (number + count) * PAGE
                number += count


def flip(pid):
    """Changes one bit in each copy of the text in the writable memory of a process. Returns: their number."""
    flipped = 0
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as memory:
        for begin, end in resident_ranges(pid):
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except OSError:
                continue
            at = content.find(TEXT)
            while at >= 0:
                memory.seek(begin + at)
                memory.write(FLIPPED)
                flipped += 1
                at = content.find(TEXT, at + 1)
    return flipped


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class BitFlip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd()
        cls.addClassCleanup(cls.etcd.close)

    def must(self, host, method, path, body=None):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, (200, 201), reply)
        return reply

    def log_of(self, name, revision=0):
        """Returns: a host's log key as of a revision of etcd; 0: the present one. Its `version` counts the host's entries: of one without a client the heartbeats, and of the keeper its TICKs, too."""
        return self.etcd.key("%s/log/%s" % (self._testMethodName, name), revision=revision, keys_only=True)

    def flipped(self, names):
        """Returns: hosts, of which the last one has another document 1 in memory."""
        hosts = [Server("--cluster", "%s/%s" % (self.etcd.url, self._testMethodName), "--node-name", name, *LEASE, port=free_port(), replay=False) for name in names]
        for host in hosts:
            self.addCleanup(host.close)
            host.start()
        self.must(hosts[0], "PUT", "/w/_doc/1?distribute_timestamps=cluster", {"text": TEXT.decode()})
        try:
            self.assertGreater(flip(hosts[-1].process.pid), 0)
        except PermissionError:
            self.skipTest("the memory of a child may not be written")
        return hosts

    def assert_ends(self, host):
        self.assertEqual(host.process.wait(), DIFFERS)
        host.process.stdout.close()
        host.hang_up()
        self.assertIn("differs from that of half of the cluster's live hosts or more", host.errors())

    def test_two_hosts_that_differ_both_end(self):
        """Which of them is right is unknown."""
        hosts = self.flipped(NAMES[:2])
        self.must(hosts[0], "POST", "/w/_update/1?distribute_timestamps=fast", {"doc": {"n": 1}})
        for host in hosts:
            self.assert_ends(host)
            self.assertTrue(os.path.exists(os.path.join(host.data, "differs")))

    def test_host_with_flipped_bit_ends_and_copies_a_checkpoint(self):
        hosts = a, _, c = self.flipped(NAMES)
        self.must(a, "POST", "/w/_update/1?distribute_timestamps=fast", {"doc": {"n": 1}})
        updated = self.log_of("a")["mod_revision"]
        self.assert_ends(c)
        ended = self.log_of("c")["mod_revision"]
        self.assertLessEqual(min(int(self.log_of(name, ended)["version"]) - int(self.log_of(name, updated)["version"]) for name in NAMES), HEARTBEATS_MAX)
        again = subprocess.run([PROGRAM, "serve", "--data", c.data, "--listen", "127.0.0.1:%d" % free_port(), *c.options], capture_output=True, text=True, check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("start it with an empty directory", again.stderr)
        shutil.rmtree(c.data)
        c.start()
        until(lambda: self.must(a, "GET", "/_cluster/health")["status"] == "green", "all hosts are live")
        for host in hosts:
            self.assertEqual(self.must(host, "GET", "/w/_doc/1")["_source"], {"text": TEXT.decode(), "n": 1})


if __name__ == "__main__":
    skips.main(verbosity=2)
