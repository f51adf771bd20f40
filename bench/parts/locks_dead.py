# SPDX-License-Identifier: Apache-2.0
"""From kill -9 of a lock's holder to the reply of the next waiter, idle and with 16 clients that put; and a plain sync"""
import json
import os
import signal
import socket
import subprocess
import time

from loads import MAPPING
from measure import load_command
from peers import Postgres, Tidelock

ROUNDS = 200
ROUNDS_PEER = 20


class Disk:
    """A file on the disk of the server's data, appended to and synced as its log is, between the rounds."""

    def __init__(self, t):
        self.file = os.open(t.directory + ".sync", os.O_WRONLY | os.O_CREAT)
        self.took = []

    def sync(self):
        """Measures once a round, as the death does, so that both have the same chance of an outlier."""
        os.write(self.file, bytes(100))
        begin = time.perf_counter()
        os.fdatasync(self.file)
        self.took.append((time.perf_counter() - begin) * 1000)


class Wire:
    """A connection that says when an answer came, and does little else."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, method, path, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.socket.sendall(("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                             % (method, path, len(text))).encode() + text)

    def receive(self):
        data = self.socket.recv(65536)
        if not data.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(data[:300])
        return data

    def ask(self, method, path, body=None):
        self.send(method, path, body)
        return json.loads(self.receive().split(b"\r\n\r\n", 1)[1])


def lock(session):
    return {"session": session, "wait": "60s", "locks": [{"mode": "exclusive", "index": "fs", "id": "one"}]}


def hold(port, writer):
    """The holder's process: attached, with the lock, until it is killed."""
    life, wire = Wire(port), Wire(port)
    session = wire.ask("POST", "/_session", {"ttl": "1m"})["session"]
    life.send("GET", "/_session/%s/_attach" % session)
    life.receive()
    wire.ask("POST", "/_lock", lock(session))
    os.write(writer, b".")
    signal.pause()


def once(t, disk):
    """Returns: milliseconds."""
    reader, writer = os.pipe()
    holder = os.fork()
    if holder == 0:
        try:
            hold(t.port, writer)
        finally:
            os._exit(1)
    os.close(writer)
    if os.read(reader, 1) != b".":
        raise RuntimeError("the holder failed")
    os.close(reader)
    wire = Wire(t.port)
    session = wire.ask("POST", "/_session", {"ttl": "1m"})["session"]
    wire.send("POST", "/_lock", lock(session))
    time.sleep(0.02)
    begin = time.perf_counter()
    os.kill(holder, signal.SIGKILL)
    wire.receive()
    took = (time.perf_counter() - begin) * 1000
    os.waitpid(holder, 0)
    wire.ask("DELETE", "/_session/" + session)
    disk.sync()
    return took


def once_postgres(pg):
    """The same with an advisory lock. Returns: milliseconds."""
    def psql():
        process = subprocess.Popen(["psql", "-qAt"], env=pg.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(b"SELECT 'ready';\nSELECT pg_advisory_lock(1), 'held';\n")
        process.stdin.flush()
        process.stdout.readline()
        return process
    holder = psql()
    holder.stdout.readline()
    waiter = psql()
    time.sleep(0.1)
    begin = time.perf_counter()
    holder.kill()
    waiter.stdout.readline()
    took = (time.perf_counter() - begin) * 1000
    for process in (holder, waiter):
        process.kill()
        process.communicate()
    return took


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def rows(bench, name, values, disk):
    bench.limit("kill -9 of a holder to the next answer, p99, " + name, percentile(values, 0.99), "ms", 10, 2)
    bench.row("the same, median", percentile(values, 0.5), "ms", [("bound", 10, percentile(values, 0.5) / 10, None, None)])
    bench.row("one sync of a file on the same disk, p99, " + name, percentile(disk.took, 0.99), "ms",
              [("its median", percentile(disk.took, 0.5), percentile(disk.took, 0.99) / percentile(disk.took, 0.5), None, None)])


def run(bench):
    with bench.servers(Tidelock, Postgres) as (t, pg):
        t.ask("PUT", "/fs", MAPPING)
        with bench.alone():
            disk = Disk(t)
            rows(bench, "idle", [once(t, disk) for _ in range(ROUNDS)], disk)
        with bench.alone():
            beside = subprocess.Popen(load_command(bench, t.port, "put", 16, seconds=600), stdout=subprocess.DEVNULL)
            try:
                disk = Disk(t)
                rows(bench, "with 16 clients", [once(t, disk) for _ in range(ROUNDS)], disk)
            finally:
                beside.kill()
                beside.wait()
        if pg:
            with bench.alone():
                values = [once_postgres(pg) for _ in range(ROUNDS_PEER)]
            bench.row("postgresql, an idle holder, median and longest", percentile(values, 0.5), "ms",
                      [("longest", max(values), percentile(values, 0.5) / max(values), None, None)])
