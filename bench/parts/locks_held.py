# SPDX-License-Identifier: Apache-2.0
"""A million locks held: what they cost those who write elsewhere, and memory; memory of 9,000 requests that wait"""
import subprocess
import sys
import time

from loads import MAPPING
from measure import load_command, rate_of
from peers import Tidelock

LOCKS = 1000000
SESSIONS = 10
BATCH = 10000
WAITERS = 9000


def hold(t, count):
    """Takes locks on documents of the index held, which may be there or not."""
    for s in range(SESSIONS):
        session = t.ask("POST", "/_session", {"ttl": "2h"})["session"]
        for begin in range(0, count // SESSIONS, BATCH):
            locks = [{"mode": "exclusive", "index": "held", "id": "s%d-%06d" % (s, begin + i)} for i in range(BATCH)]
            t.ask("POST", "/_lock?filter_path=granted", {"session": session, "locks": locks})


def waiting_bytes(bench):
    """Returns: bytes of memory for each of many who wait for one lock, beside those of a connection that idles."""
    def resident(scenario):
        with bench.servers(Tidelock) as (t,):
            t.ask("PUT", "/fs", MAPPING)
            session = t.ask("POST", "/_session", {"ttl": "2h"})["session"]
            t.ask("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs"}]})
            run = subprocess.Popen(load_command(bench, t.port, scenario, WAITERS, "--warm", 0, seconds=20),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            waiting = 0
            for _ in range(180):
                time.sleep(0.1)
                waiting = len(t.ask("GET", "/_session")["sessions"])
                if waiting > WAITERS:
                    break
            time.sleep(1)
            memory = t.memory_mib()
            run.terminate()
            run.wait()
            if waiting <= WAITERS:
                print("   ! only %d sessions came to be" % waiting, file=sys.stderr)
            return memory * 1024 * 1024
    return (resident("lock-one") - resident("idle")) / WAITERS


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
