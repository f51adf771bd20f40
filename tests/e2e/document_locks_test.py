#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Locks implemented by documents, by many clients at once: counts are exact and no update is lost.

First 64 processes count up and down on few documents by script (`lock_count++`, `--lock_count == 0` deletes): the counts must
be exact, and since a script runs inside the store's one writer no reply is 409. Then each recipe of *Elasticsearch: The
Definitive Guide* (global lock, document locks, tree locks) protects a get, a change and a put without any condition. Only the
lock prevents lost updates, which would show in the end.

    document_locks_test.py [--clients 64] [--each 20] [--rounds 2] [--seed N]

By hand with --each 1000 --rounds 50.
"""
import argparse
import json
import os
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fleet import Fleet  # noqa: E402
from server import Server  # noqa: E402

LONG = bool(os.environ.get("TIDELOCK_TEST_LONG"))
COUNTERS = 24
FILES = 4  # few, so that all meet; an even number
COUNT_UP = {"upsert": {"lock_count": 1}, "script": "ctx._source.lock_count++"}
COUNT_DOWN = {"script": "if (--ctx._source.lock_count == 0) { ctx.op = 'delete' }"}

SHARE = {"upsert": {"lock_type": "shared", "lock_count": 1},
         "script": "if (ctx._source.lock_type == 'exclusive') { assert false }; ctx._source.lock_count++"}
MINE = {"script": "if ( ctx._source.process_id != process_id ) { assert false }; ctx.op = 'noop';"}


def must(client, method, path, body=None, accept=(200, 201)):
    status, reply = client.ask(method, path, body)
    if status not in accept:
        raise AssertionError("%s %s: %d %s" % (method, path, status, reply))
    return status, reply


def wait(client):
    """Trying again is the only way to wait for a document. In the gate all clients make some 600 tries a second: more would only take
    the processor from the client that holds the lock."""
    time.sleep(client.random.random() * (0.02 if LONG else 0.2))


# --- Counting -----------------------------------------------------------------------------------------------------------------

def count_up(client, number):
    must(client, "POST", "/counters/_update/%d" % number, COUNT_UP)


def count_down(client, number):
    return must(client, "POST", "/counters/_update/%d" % number, COUNT_DOWN)[1]["result"]


def count(each):
    """Each counts up and down, never below its own; documents come and go between."""
    def work(client):
        raised = []
        for _ in range(each):
            if raised and client.random.random() < 0.6:
                client.note("down", result=count_down(client, raised.pop()))
                continue
            number = client.random.randrange(COUNTERS)
            count_up(client, number)
            raised.append(number)
        for number in raised:
            client.note("up", counter=number)
    return work


def check_counts(server, notes):
    """Returns: how often it was counted down to nothing."""
    expected = dict.fromkeys(range(COUNTERS), 0)
    for note in notes:
        if note["kind"] == "up":
            expected[note["counter"]] += 1
    for number, value in expected.items():
        have = server.ask("GET", "/counters/_doc/%d" % number)[1].get("_source", {"lock_count": 0})["lock_count"]
        assert have == value, "counter %d: %d, not %d" % (number, have, value)
        for left in range(value, 0, -1):
            reply = server.must("POST", "/counters/_update/%d" % number, COUNT_DOWN)
            assert reply["result"] == ("deleted" if left == 1 else "updated"), reply
    return sum(note["kind"] == "down" and note["result"] == "deleted" for note in notes)


# --- The change that a lock protects -----------------------------------------------------------------------------------------

def change(client, *files):
    """Reads all, then writes all: concurrent updates are overwritten."""
    read = [must(client, "GET", "/files/_doc/%d" % number)[1]["_source"]["changes"] for number in files]
    for number, changes in zip(files, read):
        must(client, "PUT", "/files/_doc/%d" % number, {"changes": changes + 1})
        client.note("changed", file=number)


def lock_path(path):
    return "/fs/lock/" + urllib.parse.quote(path, safe="")


# --- The recipes -----------------------------------------------------------------------------------------------------------------

def play_global(client):
    while must(client, "PUT", "/fs/lock/global/_create", {}, (201, 409))[0] == 409:
        wait(client)
    change(client, client.random.randrange(FILES))
    must(client, "DELETE", "/fs/lock/global")


def take_documents(client, files):
    """Returns: whether all locks were acquired; a part of them is released again."""
    lines = []
    for number in files:
        lines += [{"create": {"_id": number}}, {"process_id": client.number}]
    reply = must(client, "PUT", "/fs/lock/_bulk", "".join(json.dumps(line) + "\n" for line in lines))[1]
    got = [item["create"]["_id"] for item in reply["items"] if item["create"]["status"] == 201]
    if reply["errors"]:
        for number in got:
            must(client, "DELETE", "/fs/lock/%s" % number)
    return not reply["errors"]


def play_documents(client):
    files = client.random.sample(range(FILES), 2)
    while not take_documents(client, files):
        wait(client)
    for number in files:  # locks of our own do not stop us
        reply = must(client, "POST", "/fs/lock/%d/_update" % number, dict(MINE, params={"process_id": client.number}))[1]
        assert reply["result"] == "noop", reply
        must(client, "POST", "/fs/lock/%d/_update" % number, dict(MINE, params={"process_id": -1}), (400,))
    change(client, *files)
    must(client, "POST", "/fs/_refresh")
    must(client, "DELETE", "/fs/lock/_query", {"query": {"term": {"process_id": client.number}}})


def share(client, path):
    return must(client, "POST", lock_path(path) + "/_update", SHARE, (200, 201, 400))[0] != 400


def unshare(client, path):
    must(client, "POST", lock_path(path) + "/_update", COUNT_DOWN)


def take_tree(client, path):
    """Shares every directory above the path, and takes the path for itself. Returns: whether it got all."""
    parts, shared = path.split("/"), []
    for depth in range(2, len(parts)):
        above = "/".join(parts[:depth])
        if not share(client, above):
            break
        shared.append(above)
    else:
        if must(client, "PUT", lock_path(path) + "/_create", {"lock_type": "exclusive"}, (201, 409))[0] == 201:
            return shared
    for above in reversed(shared):
        unshare(client, above)
    return None


def play_tree(client):
    """Some change one file, some all files of a directory."""
    directory, number = client.random.randrange(2), client.random.randrange(FILES // 2)
    whole = client.random.random() < 0.3
    path = "/clinton/%d" % directory + ("" if whole else "/%d" % number)
    shared = take_tree(client, path)
    while shared is None:
        wait(client)
        shared = take_tree(client, path)
    below = [directory * FILES // 2 + n for n in range(FILES // 2)]
    change(client, *(below if whole else [below[number]]))
    must(client, "DELETE", lock_path(path))
    for above in reversed(shared):
        unshare(client, above)


def play(recipe, rounds):
    def work(client):
        for _ in range(rounds):
            recipe(client)
    return work


def check_changes(server, notes):
    """Returns: how many there were."""
    changes = dict.fromkeys(range(FILES), 0)
    for note in notes:
        if note["kind"] == "changed":
            changes[note["file"]] += 1
    for number, value in changes.items():
        have = server.must("GET", "/files/_doc/%d" % number)["_source"]["changes"]
        assert have == value, "file %d: %d changes are left of %d" % (number, have, value)
    left = server.must("GET", "/fs/_count")["count"]
    assert left == 0, "%d locks are left" % left
    return sum(changes.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--each", type=int, default=50 if LONG else 20)
    parser.add_argument("--rounds", type=int, default=4 if LONG else 2)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TIDELOCK_SEED", "1")))
    args = parser.parse_args()

    with Server() as server:
        server.must("PUT", "/fs", {})
        with Fleet(server, args.seed) as fleet:
            begin = time.monotonic()
            fleet.start(args.clients, count(args.each))
            fleet.join()
            gone = check_counts(server, fleet.notes())
            print("%d clients counted %d times each, %.1f s; %d times a count came down to nothing" %
                  (args.clients, args.each, time.monotonic() - begin, gone))
        for recipe in (play_global, play_documents, play_tree):
            for number in range(FILES):
                server.must("PUT", "/files/_doc/%d" % number, {"changes": 0})
            with Fleet(server, args.seed) as fleet:
                begin = time.monotonic()
                fleet.start(args.clients, play(recipe, args.rounds))
                fleet.join()
                done = check_changes(server, fleet.notes())
                print("%s: %d changes, none lost, %.1f s" % (recipe.__name__, done, time.monotonic() - begin))


if __name__ == "__main__":
    main()
