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
import http.client
import json
import os
import random
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server, check  # noqa: E402

CLIENTS = 6
DOCUMENTS = 8  # of each client
MANY_CHECKPOINTS = ["--checkpoint", "1m", "--write-buffer", "256k", "--recovery-time", "10ms"]


class Client(threading.Thread):
    """Writes until it is stopped or the connection breaks."""

    def __init__(self, server, number, state, seed):
        super().__init__()
        self.server = server
        self.number = number
        self.state = state  # id -> (version, counter, maybe): maybe is the write that was not answered, or None
        self.random = random.Random(seed)
        self.ending = threading.Event()
        self.acknowledged = 0
        self.failure = None

    def run(self):
        connection = self.server.connect()
        try:
            while not self.ending.is_set():
                self.write(connection)
        except (OSError, http.client.HTTPException):
            pass  # the kill
        except AssertionError as error:
            self.failure = error
        finally:
            connection.close()

    def send(self, connection, method, path, body):
        response = self.server.request(method, path, body, connection=connection)
        return response.status, json.loads(response.body)

    def write(self, connection):
        if self.random.random() < 0.3:
            return self.bulk(connection)
        name = "c%d-%d" % (self.number, self.random.randrange(DOCUMENTS))
        version, counter, _ = self.state[name]
        self.state[name] = (version, counter, counter + 1)
        deleting = counter >= 0 and self.random.random() < 0.1
        if deleting:
            status, reply = self.send(connection, "DELETE", "/crash/_doc/" + name, None)
        else:
            status, reply = self.send(connection, "PUT", "/crash/_doc/" + name, {"n": counter + 1, "who": "c%d" % self.number})
        assert status in (200, 201), (status, reply)
        assert reply["_version"] == version + 1, "%s: version %d after %d" % (name, reply["_version"], version)
        self.state[name] = (version + 1, -1 if deleting else counter + 1, None)
        self.acknowledged += 1

    def bulk(self, connection):
        names = ["c%d-%d" % (self.number, i) for i in self.random.sample(range(DOCUMENTS), 4)]
        lines = []
        for name in names:
            version, counter, _ = self.state[name]
            self.state[name] = (version, counter, counter + 1)
            lines += [{"index": {"_index": "crash", "_id": name}}, {"n": counter + 1, "who": "c%d" % self.number}]
        status, reply = self.send(connection, "POST", "/_bulk", "".join(json.dumps(line) + "\n" for line in lines))
        assert status == 200 and not reply["errors"], (status, reply)
        for name, item in zip(names, reply["items"]):
            version, counter, _ = self.state[name]
            assert item["index"]["_version"] == version + 1, (name, item)
            self.state[name] = (version + 1, counter + 1, None)
            self.acknowledged += 1


def verify(server, state):
    """Compares every document with what its client knows, and takes over what an unanswered write turned out to be."""
    total = 0
    for name, (version, counter, maybe) in state.items():
        status, reply = server.ask("GET", "/crash/_doc/" + name)
        found = (reply["_version"], reply["_source"]["n"]) if status == 200 else None
        acknowledged = (version, counter) if counter >= 0 else None
        if found == acknowledged:
            if maybe is not None and found is None and version > 0:
                # Deleted before; an unanswered write may be a delete of nothing: the version may have gone on.
                status, reply = server.ask("PUT", "/crash/_doc/" + name, {"n": 0, "who": "x"})
                assert reply["_version"] in (version + 1, version + 2), (name, reply, version)
                state[name] = (reply["_version"], 0, None)
            else:
                state[name] = (version, counter, None)
        else:
            assert maybe is not None, "%s: acknowledged %s, found %s" % (name, acknowledged, found)
            if found is None:  # the unanswered write was the delete
                state[name] = (version + 1, -1, None)
            else:
                assert found == (version + 1, maybe), "%s: acknowledged %s, found %s" % (name, acknowledged, found)
                state[name] = (found[0], found[1], None)
        if state[name][1] >= 0:
            total += 1
    count = server.must("GET", "/crash/_count")["count"]
    assert count == total, "%d documents counted, %d there" % (count, total)
    hits = server.must("POST", "/crash/_search", {"size": 1000, "query": {"prefix": {"who": "c"}}})["hits"]["hits"]
    assert len({h["_id"] for h in hits}) == len(hits), "a document twice in a search"
    expected = {name for name, (_, counter, _) in state.items() if counter >= 0}
    assert {h["_id"] for h in hits} <= expected, "a deleted document in a search"


def plant_fault(data):
    """Flips bits in the middle of the largest table file. Returns: whether there was one."""
    files = sorted(glob.glob(os.path.join(data, "**", "*.sst"), recursive=True), key=os.path.getsize)
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
        server.must("PUT", "/crash", {"mappings": {"properties": {"n": {"type": "long"}, "who": {"type": "keyword"}}}})
        state = {"c%d-%d" % (c, d): (0, -1, None) for c in range(CLIENTS) for d in range(DOCUMENTS)}
        for kill in range(args.kills):
            clients = [Client(server, c, state, rng.random()) for c in range(CLIENTS)]
            for client in clients:
                client.start()
            time.sleep(rng.uniform(0.02, 0.25))
            server.kill()
            for client in clients:
                client.ending.set()
                client.join()
                acknowledged += client.acknowledged
                if client.failure:
                    raise client.failure
            if kill % 5 == 0:
                status, text = check(server.data)
                assert status == 0, "tidelock check after kill %d: %s" % (kill, text)
            server.options = MANY_CHECKPOINTS if kill % 2 == 0 else []
            server.start()
            verify(server, state)
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
