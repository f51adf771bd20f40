#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Power cuts under load: log and store together, on a disk that keeps only synced data.

Clients write as in crash_test.py; others lock and unlock one document each, and write pairs of documents in transactions. The server is killed at
random times, and its disk cut (cut_disk.py), so that the next start finds what a machine finds after a power failure: any file may lack data that was not
synced, the log as the store. All that was acknowledged must be there: writes, commits, locks and releases. A transaction is there as a whole or not at all; those
that were open are rolled back. The sizes of checkpoints differ from start to start, so that cuts fall into checkpoints, flushes and the trimming of the log.

    power_cut_test.py [--cuts 12] [--seed N]
"""
import argparse
import os
import random
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cut_disk  # noqa: E402
from acknowledged import WRITERS, Client, Writer, create_documents, end_clients, verify_documents  # noqa: E402
from server import Server, check  # noqa: E402
from skips import SKIPPED  # noqa: E402

LOCKERS, PAIRS = 3, 3
SMALL = ["--checkpoint=1m", "--write-buffer=512k", "--recovery-time=10ms"]  # a checkpoint each few milliseconds
PADDING = "x" * 2000


class Locker(Client):
    """Locks and releases a document. `state`: whether it is held, and whether that may have changed; None: not known."""

    def __init__(self, server, number, session, state):
        super().__init__(server, number)
        self.session, self.state = session, state

    def step(self):
        name = "lock%d" % self.number
        held = self.state[name]
        self.state[name] = None
        self.ask("POST", "/_unlock" if held else "/_lock",
                 {"session": self.session, "locks": [{"index": "crash", "id": name, "mode": "exclusive"}]})
        self.state[name] = not held


class Pair(Client):
    """Commits two documents with the same number, which rises. `state`: the number that was acknowledged."""

    def __init__(self, server, number, state):
        super().__init__(server, number)
        self.state = state

    def step(self):
        name = "pair%d" % self.number
        following = self.state[name] + 1
        transaction = self.ask("POST", "/_transaction")["transaction"]
        for half in "ab":
            self.ask("PUT", "/pairs/_doc/%s%s?transaction=%s" % (name, half, transaction), {"n": following, "padding": PADDING})
        self.ask("POST", "/_transaction/%s/_commit" % transaction)
        self.state[name] = following


def verify_owners(server, held, pairs):
    found = {lock["id"] for lock in server.must("GET", "/_lock")["locks"]}
    for name, expected in held.items():
        assert expected is None or (name in found) == expected, "%s: acknowledged %s, found %s" % (name, expected, name in found)
        held[name] = name in found
    for name, number in pairs.items():
        replies = [server.ask("GET", "/pairs/_doc/%s%s" % (name, half))[1] for half in "ab"]
        numbers = [reply["_source"]["n"] if reply["found"] else 0 for reply in replies]
        assert numbers[0] == numbers[1], "%s: half a transaction: %s" % (name, numbers)
        assert numbers[0] in (number, number + 1), "%s: acknowledged %d, found %d" % (name, number, numbers[0])
        pairs[name] = numbers[0]
    open_ones = server.must("GET", "/_transaction")["transactions"]
    assert not open_ones, "open after a power cut: %s" % open_ones


def run(args, disk):
    rng = random.Random(args.seed)
    acknowledged = 0
    with Server(data=disk.data) as server:
        state = create_documents(server)
        server.must("PUT", "/pairs", {"mappings": {"properties": {"n": {"type": "long"}, "padding": {"type": "keyword"}}}})
        session = server.must("POST", "/_session", {"ttl": "24h"})["session"]
        held = {"lock%d" % n: False for n in range(LOCKERS)}
        pairs = {"pair%d" % n: 0 for n in range(PAIRS)}
        for cut in range(args.cuts):
            clients = [Writer(server, n, state, rng.random()) for n in range(WRITERS)]
            clients += [Locker(server, n, session, held) for n in range(LOCKERS)]
            clients += [Pair(server, n, pairs) for n in range(PAIRS)]
            for client in clients:
                client.start()
            time.sleep(rng.uniform(0.02, 0.5))
            server.kill()
            acknowledged += end_clients(clients)
            disk.cut()
            with open(os.path.join(server.data, "boot"), "w", encoding="ascii") as boot:
                boot.write("another boot of the machine\n")
            if cut % 4 == 0:
                status, text = check(server.data)
                assert status == 0, "tidelock check after cut %d: %s" % (cut, text)
            server.options = SMALL if rng.random() < 0.7 else []
            server.start()
            verify_documents(server, state)
            verify_owners(server, held, pairs)
        server.stop()
        status, text = check(server.data)
        assert status == 0, "tidelock check at the end: %s" % text
    print("seed %d: %d power cuts, %d acknowledged writes, %s commits, none lost" % (args.seed, args.cuts, acknowledged, sum(pairs.values())))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=100 if os.environ.get("TIDELOCK_TEST_LONG") else 8)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TIDELOCK_SEED", "1")))
    args = parser.parse_args()
    try:
        cut_disk.enter()
        with cut_disk.CutDisk() as disk:
            run(args, disk)
    except unittest.SkipTest as why:
        print("skipped: %s" % why, file=sys.stderr)
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
