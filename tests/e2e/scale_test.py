#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many owners: sessions with many locks each, many waiters on one lock, many idle transactions, and a start after a crash.

The cost of each is measured: memory by the server's resident size, threads by their number, the start by the clock. With
--full the numbers are those of the documentation and the limits are asserted. The small form of the test suite asserts only what
does not depend on them: waiters need no threads, are served in order, and everything ends.

    scale_test.py [--full] [--sessions N] [--locks N] [--waiters N] [--transactions N]
"""
import argparse
import json
import os
import resource
import select
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

LOCK_BYTES = 300
WAITER_BYTES = 2048  # its HTTP exchange included
IDLE_TRANSACTIONS_BYTES = 20 << 20
START_SECONDS = 2.0
FULL = "--full" in sys.argv
# Small caches of the store, so that its buffers do not dominate the measured memory.
OPTIONS = ("--cache", "8m", "--write-buffer", "8m", "--idle-timeout", "1h")


class Scale:
    def __init__(self, args):
        self.args = args
        self.too_much = []

    def within(self, what, value, limit, unit):
        print("  %-44s %10.1f %-12s (at most %g)" % (what, value, unit, limit), flush=True)
        if self.args.full and value > limit:
            self.too_much.append("%s: %.1f %s, at most %g" % (what, value, unit, limit))


def status(server, name):
    with open("/proc/%d/status" % server.process.pid, encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * (1024 if "kB" in line else 1)
    raise KeyError(name)


def resident(server):
    """Once it has come to rest, where the limits count: the store flushes in the background, freed memory goes back within seconds."""
    time.sleep(1 if FULL else 0)
    return status(server, "VmRSS")


def warm_up(server):
    """Everything is used once before it is measured."""
    for _ in range(200):
        session = server.must("POST", "/_session", {"ttl": "1h"})["session"]
        server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs", "id": str(n)} for n in range(10)]})
        transaction = server.must("POST", "/_transaction", {"timeout": "1h"})["transaction"]
        server.must("POST", "/_transaction/%s/_rollback" % transaction)
        server.must("DELETE", "/_session/" + session)


def locks_of_sessions(scale):
    sessions, locks = scale.args.sessions, scale.args.locks
    print("%d sessions with %d locks each" % (sessions, locks))
    with Server(*OPTIONS, "--max-sessions", str(max(sessions, 10000))) as server:
        warm_up(server)
        start = resident(server)
        ids = [server.must("POST", "/_session", {"ttl": "1h"})["session"] for _ in range(sessions)]
        opened = resident(server)
        begin = time.time()
        for number, session in enumerate(ids):
            server.must("POST", "/_lock", {"session": session, "locks": [
                {"mode": "exclusive", "index": "fs", "id": "%d-%d" % (number, n)} for n in range(locks)]})
        took = time.time() - begin
        held = resident(server)
        print("  %-44s %10.1f bytes" % ("a session", (opened - start) / sessions))
        scale.within("a held lock", (held - opened) / (sessions * locks), LOCK_BYTES, "bytes")
        print("  %-44s %10.0f a second, in requests of %d" % ("taken", sessions * locks / took, locks))
        begin = time.time()
        server.port_wanted = server.port
        server.kill()
        server.start()
        print("  %-44s %10.1f s" % ("open again after kill -9", time.time() - begin))
        assert sum(s["lock_count"] for s in server.must("GET", "/_session")["sessions"]) == sessions * locks
        begin = time.time()
        for session in ids:
            server.must("DELETE", "/_session/" + session)
        print("  %-44s %10.0f a second" % ("sessions closed", sessions / (time.time() - begin)))
        assert server.must("GET", "/_lock")["locks"] == []


class Line:
    """A connection with one request at a time, so small that it is sent in one go and its answer comes in one piece or two."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.received = b""

    def send(self, method, path, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.socket.sendall(b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                            (method.encode(), path.encode(), len(data), data))

    def receive(self):
        while True:
            head, found, rest = self.received.partition(b"\r\n\r\n")
            if found:
                length = int([h for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:")][0].split(b":")[1])
                if len(rest) >= length:
                    self.received = b""
                    assert int(head.split()[1]) < 300, rest
                    return json.loads(rest)
            part = self.socket.recv(65536)
            assert part, "it hung up"
            self.received += part


def waiters_on_one_lock(scale):
    count = scale.args.waiters
    print("%d requests that wait for one lock" % count)
    with Server(*OPTIONS, "--max-sessions", str(max(count + 10, 10000))) as server:
        warm_up(server)
        lock = {"mode": "exclusive", "index": "fs", "id": "1"}
        holder = server.must("POST", "/_session", {"ttl": "1h"})["session"]
        server.must("POST", "/_lock", {"session": holder, "locks": [lock]})
        lines, sessions = [], []
        for _ in range(count):
            line = Line(server)
            line.send("POST", "/_session", {"ttl": "1h"})
            sessions.append(line.receive()["session"])
            lines.append(line)
        threads, before = status(server, "Threads"), resident(server)
        for line, session in zip(lines, sessions):
            line.send("POST", "/_lock", {"session": session, "wait": "1h", "locks": [lock]})
        for session in sessions:  # one by one: a reply that lists all of them would allocate memory that does not belong to them
            while not server.must("GET", "/_session/" + session)["waiting"]:
                time.sleep(0.01)
        after = resident(server)
        scale.within("a waiting request beside its connection", (after - before) / count, WAITER_BYTES, "bytes")
        assert status(server, "Threads") == threads, "waiters cost threads"
        ids = {server.number(session): session for session in sessions}
        waiting = [ids[waiter["session"]] for waiter in server.must("GET", "/_lock")["locks"][0]["waiters"]]
        begin = time.time()
        server.must("GET", "/_lock")
        print("  %-44s %10.1f ms" % ("GET /_lock", (time.time() - begin) * 1000))
        pass_on(server, holder, dict(zip(sessions, lines)), waiting)


def pass_on(server, holder, lines, waiting):
    """Each holder releases the lock at once. It is granted in the order of the queue."""
    by_socket = {line.socket.fileno(): session for session, line in lines.items()}
    poll = select.epoll()
    for descriptor in by_socket:
        poll.register(descriptor, select.EPOLLIN)
    order = []
    begin = time.time()
    server.must("POST", "/_unlock", {"session": holder})
    unlocked = set()
    while len(order) < len(waiting):
        for descriptor, _ in poll.poll():
            session = by_socket[descriptor]
            reply = lines[session].receive()
            if session in unlocked:
                continue  # the answer to its unlock
            assert reply["granted"], reply
            order.append(session)
            unlocked.add(session)
            lines[session].send("POST", "/_unlock", {"session": session})
    took = time.time() - begin
    assert order == waiting, "out of order"
    print("  %-44s %10.0f a second, in order" % ("passed from hand to hand", len(waiting) / took))
    for line in lines.values():
        line.socket.close()


def idle_transactions(scale):
    count = scale.args.transactions
    print("%d open transactions" % count)
    with Server(*OPTIONS) as server:
        warm_up(server)
        before = resident(server)
        ids = [server.must("POST", "/_transaction", {"timeout": "1h"})["transaction"] for _ in range(count)]
        scale.within("all of them, idle", (resident(server) - before) / (1 << 20), IDLE_TRANSACTIONS_BYTES / (1 << 20) * count / 10000, "MiB")
        for transaction in ids:
            server.must("POST", "/_transaction/%s/_rollback" % transaction)


def crash_with_open_transactions(scale):
    count = scale.args.transactions // 10
    print("%d open transactions of 100 changes, kill -9, start" % count)
    with Server() as server:
        server.must("PUT", "/fs/_doc/1", {"n": 1})
        begin = time.time()
        ids = []
        for number in range(count):
            ids.append(server.must("POST", "/_transaction", {"timeout": "1h"})["transaction"])
            lines = "".join('{"index":{"_index":"fs","_id":"%d-%d"}}\n{"n":%d,"text":"some words to index"}\n' % (number, n, n) for n in range(100))
            assert not server.must("POST", "/_bulk?transaction=" + ids[-1], lines)["errors"]
        print("  %-44s %10.0f a second" % ("changes written in them", count * 100 / (time.time() - begin)))
        server.kill()
        begin = time.time()
        server.start()
        scale.within("from the start to the first answer", time.time() - begin, START_SECONDS, "s")
        assert server.must("GET", "/fs/_count")["count"] == 1
        for transaction in ids:
            outcome = server.must("GET", "/_transaction/" + transaction)
            assert outcome["state"] == "active" and outcome["changes"] == 100, outcome


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="the numbers of the promise, and its limits")
    for name, small in (("sessions", 500), ("locks", 20), ("waiters", 1000), ("transactions", 1000)):
        parser.add_argument("--" + name, type=int, default=None, help="small form: %d" % small)
    args = parser.parse_args()
    for name, small, full in (("sessions", 500, 10000), ("locks", 20, 100), ("waiters", 1000, 10000), ("transactions", 1000, 10000)):
        if getattr(args, name) is None:
            setattr(args, name, full if args.full else small)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    scale = Scale(args)
    for part in (locks_of_sessions, waiters_on_one_lock, idle_transactions, crash_with_open_transactions):
        part(scale)
    assert not scale.too_much, "; ".join(scale.too_much)


if __name__ == "__main__":
    main()
