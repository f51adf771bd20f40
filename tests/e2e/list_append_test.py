#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transactions over lists under kill -9, judged as a history: strictly serializable, as seen from outside.

Clients run transactions of a few appends and reads over a handful of documents, each a list; the documents are read by get,
mget and search, and written by index and scripted update. All replies are recorded in a history. It is checked
(tests/lib/history.py) for lost updates, aborted and intermediate reads, and for cycles of dependencies and real time; with
--history it is written to a file that elle-cli reads: `elle-cli --model list-append FILE`.

In addition, every commit has a timestamp: replayed in that order, every read must equal the state at its timestamp. And
a client that never had its reply asks after the restart for the outcome of its transaction.

    list_append_test.py [--seconds 8] [--clients 16] [--keys 5] [--seed N] [--history FILE]
"""
import argparse
import itertools
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import history  # noqa: E402
from fleet import Away, Fleet  # noqa: E402
from server import Server  # noqa: E402

LONG = os.environ.get("TIDELOCK_TEST_LONG")
MOVES_ON = 40  # a list that long is left alone, and another begun in its place

CONFLICTS = {"lock_wait_timeout_exception", "deadlock_detected_exception", "transaction_aborted_exception",
             "transaction_missing_exception", "version_conflict_engine_exception"}


class Refused(Exception):
    pass


def ask(client, method, path, body=None, missing=None):
    status, reply = client.ask(method, path, body)
    if status < 300 or status == 404 and "found" in reply:
        return reply
    if reply["error"]["type"] in CONFLICTS:
        raise Refused(reply["error"]["type"])
    raise AssertionError("%s %s: %d %s" % (method, path, status, reply))


# --- One transaction ----------------------------------------------------------------------------------------------------------

def read(client, key, inside):
    """One of the ways to read a document."""
    way = client.random.randrange(3)
    if way == 0:
        found = ask(client, "GET", "/lists/_doc/%s?%s" % (key, inside))
    elif way == 1:
        found = ask(client, "POST", "/lists/_mget?" + inside, {"ids": [key]})["docs"][0]
    else:
        hits = ask(client, "POST", "/lists/_search?" + inside, {"query": {"term": {"key": key}}})["hits"]["hits"]
        found = hits[0] if hits else {}
    return found["_source"]["list"] if "_source" in found else []


def append(client, key, element, inside):
    if client.random.random() < 0.5:
        before = read(client, key, inside)
        ask(client, "PUT", "/lists/_doc/%s?%s" % (key, inside), {"key": key, "list": before + [element]})
    else:
        ask(client, "POST", "/lists/_update/%s?%s" % (key, inside),
            {"script": {"source": "ctx._source.list.add(params.element)", "params": {"element": element}},
             "upsert": {"key": key, "list": [element]}})


def plan(client, keys):
    """What a transaction is going to do: half of them only read."""
    only_reads = client.random.random() < 0.4
    operations = []
    for _ in range(client.random.randrange(1, 5)):
        key = client.random.choice(keys)
        if only_reads or client.random.random() < 0.5:
            operations.append(["r", key, None])
        else:
            client.element += 1
            operations.append(["append", key, client.element])
    return operations


def carry_out(client, operations):
    """Returns: the operations with the values read, and the timestamp of the commit."""
    query = all(kind == "r" for kind, _, _ in operations) and client.random.random() < 0.6
    transaction = ask(client, "POST", "/_transaction", {"mode": "query" if query else "update", "timeout": "2s"})["transaction"]
    client.note("transaction", id=transaction, query=query)
    inside = "timeout=2s&transaction=" + transaction
    done = []
    for kind, key, element in operations:
        if kind == "r":
            done.append(["r", key, read(client, key, inside)])
        else:
            append(client, key, element, inside)
            done.append(["append", key, element])
    return done, ask(client, "POST", "/_transaction/%s/_commit" % transaction)["timestamp"]


def next_keys(client, keys, done):
    """Lists that have become long are left to rest."""
    for kind, key, value in done:
        if kind == "r" and len(value) > MOVES_ON:
            place, generation = key.split("-")
            following = "%s-%d" % (place, int(generation) + 1)
            if key in keys:
                keys[keys.index(key)] = following


def work(client):
    keys = ["k%d-0" % key for key in range(client.key_count)]
    client.element = (client.number * 1000 + client.life) * 100000
    while True:
        operations = plan(client, keys)
        client.note("invoke", value=operations)
        try:
            done, timestamp = carry_out(client, operations)
            client.note("ok", value=done, timestamp=timestamp)
            next_keys(client, keys, done)
        except Refused as refusal:
            client.note("fail", value=operations, why=str(refusal))
        except Away:
            client.note("info", value=operations)
            time.sleep(0.05)


# --- The history ----------------------------------------------------------------------------------------------------------------

def make_history(notes):
    """One process each life of a client, since one that has not been answered does nothing more under its name."""
    notes = sorted((note for note in notes if note["kind"] in ("invoke", "ok", "fail", "info")), key=lambda note: note["time"])
    events, names, fresh = [], {}, itertools.count()
    for note in notes:
        one = (note["client"], note["life"])
        if one not in names:
            names[one] = next(fresh)
        events.append({"index": len(events), "process": names[one], "type": note["kind"], "f": "txn", "time": note["time"],
                       "value": note["value"]})
        if note["kind"] == "info":
            del names[one]
    return events


def settle(server, notes):
    """Asks what became of the transactions without an answer. Returns: (timestamp, operations) of all that committed."""
    committed, unknown, current, ids = [], 0, {}, {}

    def outcome(one):
        nonlocal unknown
        operations, transaction = current.pop(one, None), ids.pop(one, None)
        if operations is None or transaction is None:
            return
        unknown += 1
        if transaction["query"]:
            return  # begun without waiting for the disk, so a killed server may not know it; it changed nothing
        status = server.must("GET", "/_transaction/" + transaction["id"])
        assert status["state"] in ("committed", "rolled_back", "active"), status
        if status["state"] == "committed" and status["mode"] == "update":
            committed.append((status["commit_timestamp"], [operation for operation in operations if operation[0] == "append"]))

    for note in sorted(notes, key=lambda note: note["time"]):
        one = (note["client"], note["life"])
        if note["kind"] == "invoke":
            current[one] = note["value"]
        elif note["kind"] == "transaction":
            ids[one] = note
        elif note["kind"] == "ok":
            committed.append((note["timestamp"], note["value"]))
            current.pop(one), ids.pop(one)
        elif note["kind"] == "fail":
            current.pop(one), ids.pop(one, None)
        elif note["kind"] == "info":
            outcome(one)
    for one in list(current):
        outcome(one)
    return committed, unknown


def replay(server, committed):
    """In the order of commits every read equals the state, and the last state equals the documents. A query reads after its timestamp's commit."""
    state = {}
    writes_first = sorted(committed, key=lambda pair: (pair[0], all(kind == "r" for kind, _, _ in pair[1])))
    for timestamp, operations in writes_first:
        for kind, key, value in operations:
            there = state.setdefault(key, [])
            if kind == "append":
                there.append(value)
            else:
                assert value == there, "at %d: %s read as %s and not %s" % (timestamp, key, value, there)
    for key, value in state.items():
        status, reply = server.ask("GET", "/lists/_doc/" + key)
        found = reply["_source"]["list"] if status == 200 else []
        assert found == value, "%s is %s and not %s" % (key, found, value)


# --- The judge is judged first ------------------------------------------------------------------------------------------------

def event_list(*steps):
    return [{"index": i, "process": process, "type": kind, "value": value} for i, (process, kind, value) in enumerate(steps)]


def serial(*values):
    steps = []
    for i, value in enumerate(values):
        steps += [(i, "invoke", value), (i, "ok", value)]
    return event_list(*steps)


def together(*values):
    return event_list(*[(i, "invoke", value) for i, value in enumerate(values)], *[(i, "ok", value) for i, value in enumerate(values)])


def append_of(key, element):
    return ["append", key, element]


def read_of(key, *value):
    return ["r", key, list(value)]


GOOD = {
    "one after the other": serial([append_of("x", 1)], [append_of("x", 2)], [read_of("x", 1, 2)]),
    "own appends": serial([append_of("x", 1), read_of("x", 1), append_of("x", 2), read_of("x", 1, 2)]),
    "unknown, but seen": event_list((0, "invoke", [append_of("x", 1)]), (0, "info", [append_of("x", 1)]),
                                    (1, "invoke", [read_of("x")]), (1, "ok", [read_of("x", 1)])),
}
BAD = {
    "lost update": together([read_of("x"), append_of("x", 1)], [read_of("x"), append_of("x", 2)], [read_of("x", 1, 2)]),
    "write skew": together([read_of("x"), append_of("y", 1)], [read_of("y"), append_of("x", 2)], [read_of("x", 2), read_of("y", 1)]),
    "long fork": together([append_of("x", 1)], [append_of("y", 2)], [read_of("x", 1), read_of("y")], [read_of("x"), read_of("y", 2)]),
    "aborted read": event_list((0, "invoke", [append_of("x", 1)]), (0, "fail", [append_of("x", 1)]), (1, "invoke", [read_of("x")]),
                               (1, "ok", [read_of("x", 1)])),
    "intermediate read": together([append_of("x", 1), append_of("x", 2)], [read_of("x", 1)], [read_of("x", 1, 2)]),
    "circular information": together([append_of("x", 1), read_of("y", 2)], [append_of("y", 2), read_of("x", 1)]),
    "writes in two orders": together([append_of("x", 1), append_of("y", 1)], [append_of("x", 2), append_of("y", 2)],
                                     [read_of("x", 1, 2), read_of("y", 2, 1)]),
    "incompatible order": together([append_of("x", 1)], [append_of("x", 2)], [read_of("x", 1, 2)], [read_of("x", 2)]),
    "stale read": serial([append_of("x", 1)], [read_of("x")], [read_of("x", 1)]),
    "fuzzy read": together([append_of("x", 1)], [read_of("x"), read_of("x", 1)]),
    "own append missed": serial([append_of("x", 1), read_of("x")]),
    "an element twice": serial([append_of("x", 1)], [read_of("x", 1, 1)]),
    "out of nowhere": serial([append_of("x", 1)], [read_of("x", 1, 7)]),
}


def judge_the_judge():
    for name, events in GOOD.items():
        history.check(json.loads(json.dumps(events)))
    for name, events in BAD.items():
        try:
            history.check(json.loads(json.dumps(events)))
        except history.Anomaly:
            continue
        raise AssertionError("the checker does not see: " + name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8 if LONG else 3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TIDELOCK_SEED", "1")))
    parser.add_argument("--history", metavar="FILE")
    args = parser.parse_args()
    judge_the_judge()

    def work_here(client):
        client.key_count = args.keys
        work(client)

    with Server() as server:
        server.must("PUT", "/lists", {"mappings": {"properties": {"key": {"type": "keyword"}, "list": {"type": "long", "index": False}}}})
        with Fleet(server, args.seed) as fleet:
            fleet.start(args.clients, work_here)
            fleet.inject_faults(args.seconds, kills=2, stops=1, stop_seconds=lambda number: 0.3,
                       enough=lambda: fleet.count_of("ok") > 15 * args.seconds)
            fleet.end()
            notes = fleet.notes()
        events = make_history(notes)
        if args.history:
            with open(args.history, "w", encoding="utf-8") as file:
                json.dump(events, file)
        count = history.check(events)
        committed, unknown = settle(server, notes)
        replay(server, committed)
        print("seed %d: %d transactions committed, %d failed, %d without an answer; server killed %d times: strictly serializable" %
              (args.seed, count, sum(event["type"] == "fail" for event in events), unknown, fleet.counts["server"]))


if __name__ == "__main__":
    main()
