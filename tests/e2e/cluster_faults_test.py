#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three hosts and three etcd members under faults, judged by the histories of clients that ask a random host at each step.

All clients of list_append_test.py, bank_test.py and lock_lost_updates_test.py work on one cluster at the same time, each client a process. Rounds of
faults hit hosts and members: killed, stopped beyond the lease and continued, cut off, cut off in one direction, a slow link, clocks
set, a full disk, syncs that take long or fail. With one seed in RELAYED a relay between hosts and etcd can delay messages. In a round a minority of the members has faults, or at times all, and any number of hosts. A seed draws
the mode of the cluster (docs/cluster.md, "Time and reading") and all faults:

    contemporaneous, cluster-contemporaneous (writes in the mode `fast`, or `cluster`)
                      transactions are strictly serializable, in real time
    strict, cluster   they are serializable, and after the answer of one that wrote every other one sees its writes
    fast              with Tidelock-After they are serializable in the order of each client, whose timestamps never fall

In every mode each read is the state at its timestamp; money is neither made nor lost, no update under a lock is lost; a
request without an answer may have taken effect or not. At the end all hosts live, and have equal chains and documents.

    cluster_faults_test.py [--seed N] [--seeds 1] [--rounds 2] [--mode MODE] [--only FAULT]
"""
import argparse
import json
import os
import random
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import bank_test as bank  # noqa: E402
import history  # noqa: E402
import list_append_test as list_append  # noqa: E402
import lock_lost_updates_test as lock_updates  # noqa: E402
import namespaces  # noqa: E402
from waiting import until  # noqa: E402

SKIPPED = 77  # exit status, to meson
LEASE = 1  # seconds, the shortest that hosts accept
WRITE_BUFFER = "256k"  # half of that is a checkpoint: so disks that fail are noticed, and the log is trimmed
RELAYED = 3  # of so many seeds one has relays, and their delays among its faults: without one a host that is cut off loses its connections
READERS = 1  # of all accounts
LISTS = {"mappings": {"properties": {"key": {"type": "keyword"}, "list": {"type": "long", "index": False}}}}
INDICES = ["lists", "bank", "receipts", "judge"]

# mode: its settings, whether clients send Tidelock-After, and the order of transactions that is to be found (history.check())
MODES = {
    "contemporaneous": ({"distribute_timestamps": "fast", "multi_version_concurrency_control": "contemporaneous"}, False, "all"),
    "cluster": ({"distribute_timestamps": "cluster"}, False, "writers"),
    "cluster-contemporaneous": ({"distribute_timestamps": "cluster", "multi_version_concurrency_control": "contemporaneous"}, False, "all"),
    "strict": ({"distribute_timestamps": "strict"}, False, "writers"),
    "fast": ({"distribute_timestamps": "fast"}, True, "clients"),
}


# --- Faults -------------------------------------------------------------------------------------------------------------------

def set_clock(host, drawn):
    """The wall clock is set, or time passes in which the machine was suspended."""
    if drawn.random() < 0.5:
        host.clock.step(drawn.uniform(-30, 30))
    else:
        host.clock.jump(drawn.uniform(0, 3 * LEASE))


# name: (the groups of nodes that can have it, its start at one of them); `others`: all nodes
FAULTS = {
    "kill": ("hosts members", lambda node, others, drawn: node.kill()),
    "pause": ("hosts members", lambda node, others, drawn: node.pause()),
    "unplug": ("hosts members", lambda node, others, drawn: node.unplug()),
    "deafen": ("hosts members", lambda node, others, drawn: [node.deafen(other) for other in others if other is not node and drawn.random() < 0.6]),
    "slow": ("hosts members", lambda node, others, drawn: node.slow(drawn.choice([200, 1000, 5000]))),
    "fill": ("hosts members", lambda node, others, drawn: node.fill(drawn.choice([0, 64 << 20]))),
    "slow_syncs": ("hosts members", lambda node, others, drawn: node.slow_syncs(drawn.choice([0.02, 0.2, 1]))),
    "fail_syncs": ("hosts members", lambda node, others, drawn: node.fail_syncs()),
    "delay": ("hosts", lambda node, others, drawn: node.delay(drawn.choice([0.01, 0.1, 1]))),
    "clock": ("hosts", lambda node, others, drawn: set_clock(node, drawn)),
}


def draw_round(drawn, only, relays):
    """Returns: a list of (fault, "hosts" or "members", which of them)."""
    faults = []
    for _ in range(drawn.choice([1, 1, 2])):
        name = drawn.choice([name for name in FAULTS if only in (None, name) and (relays or name != "delay")])
        group = drawn.choice(FAULTS[name][0].split())
        count = drawn.choice([1, 1, 1, 2, 3]) if group == "hosts" else drawn.choice([1, 1, 1, 1, 3])
        faults.append((name, group, sorted(drawn.sample(range(3), count))))
    return faults


def begin_faults(cluster, drawn, faults):
    """A node has one fault of a round: the first that names it. With all members or one: never two by two faults."""
    members = [which for _, group, which in faults if group == "members"]
    hit = set()
    for name, group, which in faults:
        if group == "members" and which is not members[0]:
            continue
        for node in (getattr(cluster, group)[i] for i in which):
            if node not in hit:
                hit.add(node)
                FAULTS[name][1](node, cluster.hosts + cluster.members, drawn)


def describe(faults):
    return ", ".join("%s %s" % (name, "+".join("%s%d" % (group[0], i) for i in which)) for name, group, which in faults)


# --- One seed -----------------------------------------------------------------------------------------------------------------

def work_lists(client):
    client.key_count = 5
    list_append.work(client)


def work_bank(client):
    client.needs_session = True
    client.readers_from = CLIENTS["bank"] - READERS
    bank.work(client)


CLIENTS = {"lists": 6, "bank": 4 + READERS, "locks": 6}
WORK = {"lists": (work_lists, "ok"), "bank": (work_bank, "done"), "locks": (lock_updates.work, "done")}


def make_indices(cluster, settings):
    host = cluster.hosts[0]
    host.must("PUT", "/_cluster/settings", {"persistent": {"tidelock." + name: value for name, value in settings.items()}})
    everywhere = "?distribute_timestamps=cluster"
    host.must("PUT", "/lists" + everywhere, LISTS)
    host.must("PUT", "/receipts" + everywhere, {})
    host.must("PUT", "/judge" + everywhere, lock_updates.MAPPINGS)
    lines = []
    for number in range(bank.ACCOUNTS):
        lines += [{"index": {"_index": "bank", "_id": "%d" % number}}, {"balance": bank.BEGINNING}]
    for number in range(lock_updates.DOCUMENTS):
        lines += [{"index": {"_index": "judge", "_id": "%d" % number}},
                  {"path": "/d%d/f%d" % (number % lock_updates.DIRECTORIES, number), "count": 0, "names": []}]
    reply = host.must("POST", "/_bulk" + everywhere, "".join(json.dumps(line) + "\n" for line in lines))
    assert not reply["errors"], reply


def await_work(fleets):
    """Each kind of work has gone on: a few more requests than now were acknowledged."""
    wanted = {name: fleet.count_of(WORK[name][1]) + 3 for name, fleet in fleets.items()}

    def done():
        for fleet in fleets.values():
            fleet.notes()  # raises if a client failed
        return all(fleet.count_of(WORK[name][1]) >= wanted[name] for name, fleet in fleets.items())
    until(done, "all kinds of work go on")


def kill_clients(drawn, fleets):
    for fleet in fleets.values():
        number = drawn.choice(sorted(fleet.pids))
        fleet.kill(number)
        fleet.launch(number)


def hit(cluster, fleets, drawn, rounds, only, relays):
    for number in range(rounds):
        faults, seconds = draw_round(drawn, only, relays), drawn.uniform(0.5, 3 * LEASE)
        print("  round %d: %s, for %.1f s" % (number, describe(faults), seconds), flush=True)
        begin_faults(cluster, drawn, faults)
        time.sleep(seconds / 2)
        kill_clients(drawn, fleets)
        time.sleep(seconds / 2)
        cluster.heal()
        cluster.await_live()
        await_work(fleets)


def documents(host, timestamp):
    """Returns: all documents as of a timestamp, (index, id): (version, source)."""
    found = {}
    for index in INDICES:
        page = host.must("POST", "/%s/_search?size=1000&scroll=1m&version=true&timestamp=%d" % (index, timestamp), {"query": {"match_all": {}}})
        while page["hits"]["hits"]:
            found.update(((index, hit["_id"]), (hit["_version"], hit["_source"])) for hit in page["hits"]["hits"])
            page = host.must("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})
        host.must("DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})
    return found


def judge(cluster, fleets, order):
    notes = {name: fleet.notes() for name, fleet in fleets.items()}
    cluster.await_live()
    host = cluster.hosts[0]
    bank.settle(host)
    cluster.check_chains()
    timestamp = host.must("GET", "/_timestamp")["timestamp"]
    states = [documents(host, timestamp) for host in cluster.hosts]
    assert states[0] == states[1] == states[2], "the documents of the hosts differ as of %d" % timestamp

    events = list_append.make_history(notes["lists"])
    count = history.check(events, order)
    committed, unknown = list_append.settle(host, notes["lists"])
    list_append.replay(host, committed)
    done, asked_after = bank.judge(host, notes["bank"])
    updates, refused = lock_updates.judge(host, notes["locks"])
    print("  %d transactions in order (%s), %d without an answer; %d transfers, %d without; %d updates under locks, %d refused; "
          "hosts are equal" % (count, order, unknown, done, asked_after, updates, refused), flush=True)


def campaign(seed, args):
    drawn = random.Random(seed)
    mode = drawn.choice(sorted(MODES))
    mode = args.mode or mode
    relays = drawn.randrange(RELAYED) == 0 or args.only == "delay"
    settings, after, order = MODES[mode]
    print("seed %d: %s%s" % (seed, mode, ", with relays" if relays else ""), flush=True)
    namespaces.ClusterClient.after = after
    with namespaces.Cluster("--host-lease", "%ds" % LEASE, "--write-buffer", WRITE_BUFFER, relays=relays) as cluster:
        make_indices(cluster, settings)
        fleets = {}
        try:
            for name, (work, _) in WORK.items():
                fleets[name] = namespaces.ClusterFleet(cluster, drawn.random())
                fleets[name].start(CLIENTS[name], work)
            await_work(fleets)
            hit(cluster, fleets, drawn, args.rounds, args.only, relays)
            for fleet in fleets.values():
                fleet.end()
            judge(cluster, fleets, order)
        finally:
            for fleet in fleets.values():
                fleet.__exit__()


# --- The judge is judged first ------------------------------------------------------------------------------------------------

def judge_the_judge():
    """Each order of history.check() finds the anomalies that it excludes, and no others."""
    append, read = list_append.append_of, list_append.read_of
    read_then_not = list_append.event_list(  # seen before its writer was answered, and not by a later reader
        (0, "invoke", [append("x", 1)]), (1, "invoke", [read("x", 1)]), (1, "ok", [read("x", 1)]),
        (2, "invoke", [read("x")]), (2, "ok", [read("x")]), (0, "ok", [append("x", 1)]))
    acknowledged_not_seen = list_append.serial([append("x", 1)], [read("x")], [read("x", 1)])
    own_not_seen = list_append.event_list((0, "invoke", [append("x", 1)]), (0, "ok", [append("x", 1)]), (0, "invoke", [read("x")]), (0, "ok", [read("x")]),
                                          (1, "invoke", [read("x", 1)]), (1, "ok", [read("x", 1)]))
    for name, events, found_by in (("a read that is taken back", read_then_not, {"all"}),
                                   ("an acknowledged write that is not seen", acknowledged_not_seen, {"all", "writers"}),
                                   ("an own write that is not seen", own_not_seen, {"all", "writers", "clients"})):
        for order in ("all", "writers", "clients"):
            try:
                history.check(json.loads(json.dumps(events)), order)
                found = False
            except history.Anomaly:
                found = True
            assert found == (order in found_by), "%s: %s" % (name, order)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TIDELOCK_SEED", "1")))
    parser.add_argument("--seeds", type=int, default=1, help="so many, from --seed on")
    parser.add_argument("--rounds", type=int, default=2, help="of faults, for each seed")
    parser.add_argument("--mode", choices=sorted(MODES), help="instead of the seed's")
    parser.add_argument("--only", choices=sorted(FAULTS), help="no other faults")
    args = parser.parse_args()
    judge_the_judge()
    try:
        namespaces.enter()
        for seed in range(args.seed, args.seed + args.seeds):
            campaign(seed, args)
    except unittest.SkipTest as reason:
        print("skipped: %s" % reason)
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
