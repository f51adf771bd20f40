#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bit that flips in the memory of one host stops that host, and no other, as soon as a write depends on it (docs/cluster.md, "When something fails").

Method: the bytes of a document are changed in /proc/PID/mem, wherever the process has them; an update of the document reads them. Skipped where there is no etcd, or the memory of a
child may not be written.
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import NAMES, Etcd, free_port  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402

DIFFERS = 71  # exit status
REGION_BYTES_MAX = 256 << 20  # larger ones are reserved by sanitizers, and are not heaps
TEXT, FLIPPED = b"bit-flip-canary-@", b"bit-flip-canary-A"


def flip(pid):
    """Changes one bit in each copy of the text in the writable memory of a process. Returns: their number."""
    count = 0
    with open("/proc/%d/maps" % pid, encoding="ascii") as maps, open("/proc/%d/mem" % pid, "r+b", buffering=0) as memory:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if not line.split()[1].startswith("rw") or end - begin > REGION_BYTES_MAX:
                continue
            try:
                memory.seek(begin)
                region = memory.read(end - begin)
            except OSError:
                continue
            at = region.find(TEXT)
            while at >= 0:
                memory.seek(begin + at)
                memory.write(FLIPPED)
                count += 1
                at = region.find(TEXT, at + 1)
    return count


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class BitFlip(unittest.TestCase):
    def must(self, host, method, path, body=None):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, (200, 201), reply)
        return reply

    def test_host_with_flipped_bit_ends_and_copies_a_checkpoint(self):
        etcd = Etcd()
        self.addCleanup(etcd.close)
        hosts = a, b, c = [Server("--cluster", etcd.url + "/tidelock", "--node-name", name, port=free_port()) for name in NAMES]
        for host in hosts:
            self.addCleanup(host.close)
            host.start()
        self.must(a, "PUT", "/w/_doc/1?distribute_timestamps=cluster", {"text": TEXT.decode()})
        try:
            self.assertGreater(flip(c.process.pid), 0)
        except PermissionError:
            self.skipTest("the memory of a child may not be written")
        self.must(a, "POST", "/w/_update/1?distribute_timestamps=fast", {"doc": {"n": 1}})
        self.assertEqual(c.process.wait(), DIFFERS)
        c.process.stdout.close()
        c.hang_up()
        self.assertIn("is not what half of the cluster's live hosts or more have made of it", c.errors())
        again = subprocess.run([PROGRAM, "serve", "--data", c.data, "--listen", "127.0.0.1:0", *c.options], capture_output=True, text=True, check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("start it with an empty directory", again.stderr)
        shutil.rmtree(c.data)
        c.start()
        until(lambda: self.must(a, "GET", "/_cluster/health")["status"] == "green", "all hosts are live")
        for host in hosts:
            self.assertEqual(self.must(host, "GET", "/w/_doc/1")["_source"], {"text": TEXT.decode(), "n": 1})


if __name__ == "__main__":
    unittest.main(verbosity=2)
