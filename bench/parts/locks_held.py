# SPDX-License-Identifier: Apache-2.0
"""A million locks held: their cost for writes elsewhere, and memory; memory of 9,000 waiting requests"""
import http.client
import json
import resource
import time

from loads import MAPPING
from measure import rate_of
from peers import Tidelock

LOCKS = 1000000
SESSIONS = 10
BATCH = 10000
WAITERS = 9000
JSON = {"Content-Type": "application/json"}


def hold(t, count):
    """Acquires locks on documents of the index "held", whether they exist or not."""
    for s in range(SESSIONS):
        session = t.ask("POST", "/_session", {"ttl": "2h"})["session"]
        for begin in range(0, count // SESSIONS, BATCH):
            locks = [{"mode": "exclusive", "index": "held", "id": "s%d-%06d" % (s, begin + i)} for i in range(BATCH)]
            t.ask("POST", "/_lock?filter_path=granted", {"session": session, "locks": locks})


def waiting_bytes(bench):
    """
    Returns: bytes of memory for each of many requests that wait for one lock, without its connection, which has sent a
    request before. The requests are sent one after the other: memory of simultaneous requests would be reused and not counted.
    """
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with bench.servers(Tidelock) as (t,):
        t.ask("PUT", "/fs", MAPPING)
        locks = [{"mode": "exclusive", "index": "fs"}]
        t.ask("POST", "/_lock", {"session": t.ask("POST", "/_session", {"ttl": "2h"})["session"], "locks": locks})
        connections, sessions = [], []
        for _ in range(WAITERS):
            connection = http.client.HTTPConnection("127.0.0.1", t.port)
            connection.request("POST", "/_session", '{"ttl":"2h"}', JSON)
            sessions.append(json.loads(connection.getresponse().read())["session"])
            connections.append(connection)
        time.sleep(1)
        before = t.memory_mib()
        for connection, session in zip(connections, sessions):
            connection.request("POST", "/_lock", json.dumps({"session": session, "wait": "1h", "locks": locks}), JSON)
        for session in sessions:
            while not t.ask("GET", "/_session/" + session)["waiting"]:
                time.sleep(0.1)
        time.sleep(1)
        memory = t.memory_mib()
        for connection in connections:
            connection.close()
        return (memory - before) * 1024 * 1024 / WAITERS


def run(bench):
    with bench.servers(Tidelock, Tidelock) as (full, empty):
        for t in (full, empty):
            t.ask("PUT", "/fs", MAPPING)
            t.ask("PUT", "/held", MAPPING)
            t.load("put", 64, "-n", 100000, seconds=5)
        before = full.memory_mib()
        hold(full, LOCKS)
        bench.limit("memory for a held lock, of {:,}".format(LOCKS), (full.memory_mib() - before) * 1024 * 1024 / LOCKS,
                    "bytes", 300, None)
        bench.rates("durable put, 64 clients, {:,} locks held elsewhere".format(LOCKS), rate_of(full, "put", 64, "-n", 100000),
                    [("none held", rate_of(empty, "put", 64, "-n", 100000), 0.95, None)])
    bench.limit("memory for a request that waits, of {:,}".format(WAITERS), waiting_bytes(bench), "bytes", 2048, None)
