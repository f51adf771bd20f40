# SPDX-License-Identifier: Apache-2.0
"""Many client processes and a server that may be killed, stopped and continued at any instruction.

A client is a forked process. It notes its actions in a file of its own, one line of JSON a note, with one write() each: notes
are not lost, however the process ends. The parent has no threads, so that forking is safe.

    with Server() as server, Fleet(server) as fleet:
        fleet.start(32, work)          # work(client) runs in the child
        fleet.inject_faults(seconds=10, seed=1, chances=...)
        fleet.end()
        for note in fleet.notes(): ...
"""
import http.client
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback

import process_guard
from server import HANGS


class Away(Exception):
    """The server did not answer: whether the request was done is not known."""


class Client:
    """The state of a client process: a connection that is reopened when it breaks, and its notes."""

    def __init__(self, port, number, life, seed, path):
        self.port = port
        self.number = number
        self.life = life  # of its number: 0 the first process, 1 the one after it was killed, …
        self.random = random.Random(seed)
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.connection = None
        self.count = 0

    def note(self, kind, **members):
        line = json.dumps({"kind": kind, "client": self.number, "life": self.life, "time": time.monotonic_ns(), **members})
        os.write(self.file, line.encode() + b"\n")

    def name(self):
        """Returns: a name for the next operation, never used before."""
        self.count += 1
        return "%d.%d.%d" % (self.number, self.life, self.count)

    def hang_up(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def ask(self, method, path, body=None):
        """Returns: (status, JSON). Raises Away when there was no answer, or none that is meant for us: the server stops."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS)
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        try:
            self.connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.hang_up()
            raise Away(str(error)) from error
        if response.status == 503:
            raise Away(data.decode("utf-8", "replace"))
        return response.status, json.loads(data)

    def attach(self, session):
        """Returns: the socket of the session's attach stream, or None when the session has ended."""
        line, answer = self.open_attach_stream("127.0.0.1", self.port, session, HANGS)
        if answer.startswith(b"HTTP/1.1 200"):
            return line
        line.close()
        return None

    @staticmethod
    def open_attach_stream(address, port, session, timeout):
        """Returns: the socket, and the answer as far as it has arrived. Raises Away without an answer."""
        try:
            line = socket.create_connection((address, port), timeout)
            line.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode())
            answer = b""
            while b'"session"' not in answer and b'"error"' not in answer:
                part = line.recv(4096)
                if not part:
                    raise OSError("it hung up")
                answer += part
        except OSError as error:
            raise Away(str(error)) from error
        return line, answer


class Fleet:
    client = Client  # the class of its processes' state

    def __init__(self, server, seed=1):
        self.server = server
        self.random = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="tidelock-fleet-")
        self.work = None
        self.pids = {}      # number -> pid
        self.lives = {}     # number -> life
        self.resting = {}   # number -> when it is to be continued
        self.counts = {"kill": 0, "stop": 0, "server": 0}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        shutil.rmtree(self.folder)

    def launch(self, number):
        self.lives[number] = self.lives.get(number, -1) + 1
        seed = self.random.random()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                process_guard.die_with_parent()
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                path = os.path.join(self.folder, "%d" % number)
                client = self.client(self.server.port, number, self.lives[number], seed, path)
                try:
                    self.work(client)
                    status = 0
                except BaseException:  # noqa: B902 whatever it is, the judge must hear of it
                    client.note("broken", why=traceback.format_exc())
            finally:
                os._exit(status)
        self.pids[number] = pid

    def start(self, count, work, first=0):
        """Starts clients `first` and so on, which run work(client)."""
        self.work = work
        for number in range(first, first + count):
            self.launch(number)

    def kill(self, number):
        pid = self.pids.pop(number)
        self.resting.pop(number, None)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def join(self):
        """Waits until all have ended by themselves."""
        for number in list(self.pids):
            os.waitpid(self.pids.pop(number), 0)

    def rest(self, number, seconds):
        os.kill(self.pids[number], signal.SIGSTOP)
        self.resting[number] = time.monotonic() + seconds

    def wake(self, everybody=False):
        for number, until in list(self.resting.items()):
            if everybody or until <= time.monotonic():
                os.kill(self.pids[number], signal.SIGCONT)
                del self.resting[number]

    def kill_server(self):
        self.counts["server"] += 1
        self.server.kill()
        self.server.start()

    def count_of(self, kind):
        """Returns: how many notes of that kind there are."""
        begins, found = ('{"kind": "%s", ' % kind).encode(), 0
        for name in os.listdir(self.folder):
            with open(os.path.join(self.folder, name), "rb") as file:
                found += sum(line.startswith(begins) for line in file)
        return found

    def inject_faults(self, seconds, kills=4.0, stops=2.0, stop_seconds=lambda number: 1.5, server_kills=0.3, meanwhile=None, enough=None):
        """
        Kills clients and the server and stops clients at random, about so many times a second each, for so many seconds without the
        starts of the server. Continues until the server was killed once and enough() returns true.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end or server_kills > 0 and self.counts["server"] == 0 or enough is not None and not enough():
            time.sleep(self.random.expovariate(kills + stops + server_kills))
            self.wake()
            drawn = self.random.random() * (kills + stops + server_kills)
            number = self.random.choice(list(self.pids))
            if drawn < kills:
                self.counts["kill"] += 1
                self.kill(number)
                self.launch(number)
            elif drawn < kills + stops:
                if number not in self.resting:
                    self.counts["stop"] += 1
                    self.rest(number, stop_seconds(number))
            else:
                away = time.monotonic()
                self.kill_server()
                end += time.monotonic() - away  # with sanitizers it takes seconds to come again
            if meanwhile is not None:
                meanwhile()
        self.wake(everybody=True)

    def end(self):
        for number in list(self.pids):
            self.kill(number)

    def notes(self):
        """Returns: all notes, those of each client in order. Raises when a client broke."""
        notes = []
        for name in os.listdir(self.folder):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                notes += [json.loads(line) for line in file if line.endswith("\n")]  # a last one without it is being written
        for note in notes:
            if note["kind"] == "broken":
                raise AssertionError("client %d: %s" % (note["client"], note["why"]))
        return notes
