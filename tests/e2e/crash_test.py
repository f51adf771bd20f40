#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kill -9 under load: each acknowledged write is applied exactly once, with the right version.

Several clients write, each to documents of its own, and remember each acknowledged version, and a counter in the source that
rises with each write. The server is killed at random times and started again on the same data. A write without a reply may or
may not be applied: the state found must be the last acknowledged one or that one write later. Bulk requests are judged item by
item. `tidelock check` must find the store sound each time, and must find a fault that is planted at the end.

In half of the kills the server makes checkpoints and trims its log all the time, so that log, RocksDB and checkpoints are interrupted together; the other
half has the default options, with which a start has more of the log to apply.

    crash_test.py [--kills 12] [--seed N]
"""
import argparse
import glob
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from acknowledged import WRITERS, Writer, create_documents, end_clients, verify_documents  # noqa: E402
from server import Server, check  # noqa: E402

MANY_CHECKPOINTS = ["--checkpoint", "1m", "--write-buffer", "256k", "--recovery-time", "10ms"]


def has_documents(path):
    """Whether the table is of documents, by its properties. A part of an older checkpoint, which nothing reads, may be larger."""
    with open(path, "rb") as table:
        table.seek(max(0, os.path.getsize(path) - 4096))
        return b"documents" in table.read()


def plant_fault(data):
    """Flips bits in the middle of the largest table of documents. Returns: whether there was one."""
    files = sorted(filter(has_documents, glob.glob(os.path.join(data, "**", "*.sst"), recursive=True)), key=os.path.getsize)
    if not files:
        return False
    with open(files[-1], "r+b") as table:
        size = os.path.getsize(files[-1])
        table.seek(size // 3)
        bytes_there = table.read(32)
        table.seek(size // 3)
        table.write(bytes(b ^ 0x5a for b in bytes_there))
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50 if os.environ.get("TIDELOCK_TEST_LONG") else 12)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TIDELOCK_SEED", "1")))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    acknowledged = 0
    with Server() as server:
        state = create_documents(server)
        for kill in range(args.kills):
            clients = [Writer(server, n, state, rng.random()) for n in range(WRITERS)]
            for client in clients:
                client.start()
            time.sleep(rng.uniform(0.02, 0.25))
            server.kill()
            acknowledged += end_clients(clients)
            if kill % 5 == 0:
                status, text = check(server.data)
                assert status == 0, "tidelock check after kill %d: %s" % (kill, text)
            server.options = MANY_CHECKPOINTS if kill % 2 == 0 else []
            server.start()
            verify_documents(server, state)
        begins = {int(entry) for entry in re.findall(r"applying the log: entries (\d+) to", server.errors())}
        assert max(begins) > 1, "no start began with a checkpoint that was made under load"
        server.must("POST", "/crash/_forcemerge")
        server.stop()
        status, text = check(server.data)
        assert status == 0, "tidelock check at the end: %s" % text
        if plant_fault(server.data):
            status, text = check(server.data)
            assert status == 1, "tidelock check did not find the planted fault: %s" % text
    print("seed %d: %d kills, of which %d followed different checkpoints, %d acknowledged writes, none lost, none twice" % (
        args.seed, args.kills, len(begins - {1}), acknowledged))


if __name__ == "__main__":
    main()
