# SPDX-License-Identifier: Apache-2.0
"""A Tidelock server for tests: starts, kills, restarts and sends requests; ends it by its pid, at the latest with the test itself (process_guard.py).

It has the same port over restarts (ports.py).

    with Server() as server:
        status, body = server.ask("PUT", "/fs/_doc/1", {"a": 1})

Cases of a class that need no server of their own share one: Server.of_class(case) in their setUp(). A start and an end take a third of
a second of processor time under the address sanitizer.

TIDELOCK_BUILD names the build folder (default: build); the program is TIDELOCK_BUILD/src/cli/tidelock.
"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ports  # noqa: E402
import process_guard  # noqa: E402,F401

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TIDELOCK_BUILD", os.path.join(ROOT, "build"))
PROGRAM = os.path.join(BUILD, "src", "cli", "tidelock")
HANGS = 300  # seconds; a server that takes longer to answer a request, or to end, hangs
FOR_THE_PORT = 30  # seconds to wait until another process has released the port
REPORTS = ("WARNING: ThreadSanitizer", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error: ")

# Of which servers the log is replayed at the end: all; some: one in SHARE is drawn for it; none.
REPLAYED = os.environ.get("TIDELOCK_TEST_REPLAY", "all" if os.environ.get("TIDELOCK_TEST_LONG") else "some")
SHARE = 8

# Why `tidelock check --cluster` compares nothing, which no host can help: no heartbeat since, the log was trimmed, or is not there any more.
NOT_COMPARED = re.compile("replayed: nothing was compared: |was trimmed beyond entry|cannot be reached|so etcd has lost entries|there is no cluster at ")

CRASHES = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)


def has_shared_rocksdb():
    """Returns: whether the program has RocksDB as a shared library, so that a preloaded one can take its place (poison_shim.c)."""
    with open(PROGRAM, "rb") as program:
        return b"librocksdb.so" in program.read()


def options_value(options, name):
    """Returns: the value of an option, which is given as NAME VALUE or NAME=VALUE."""
    for option, after in zip(options, [*options[1:], None]):
        if option == name:
            return after
        if option.startswith(name + "="):
            return option.partition("=")[2]
    return None


class Server:
    count = 0  # in this process

    def __init__(self, *options, data=None, port=0, environment=None, tls=None, replay=True):
        self.options = list(options)
        self.own_data = data is None
        self.data = data or tempfile.mkdtemp(prefix="tidelock-test-")
        self.port_wanted = port  # 0: reserves a free one at the first start
        self.reserved = None
        self.tls = tls  # the ssl.SSLContext of requests; None: without TLS
        self.environment = dict(os.environ, **(environment or {}))
        self.process = None
        self.connection = None
        self.log = open(os.path.join(self.data + ".log"), "ab")
        drawn = self.draws()
        given = [option.split("=")[0] for option in options]
        replay = replay and (REPLAYED == "all" or (REPLAYED == "some" and drawn)) and self.own_data
        self.first_copy = self.data + ".first" if replay and "--cluster" in given else None  # for replay(), as `archive`
        replay = replay and "--log-keep" not in given and "--cluster" not in given
        self.own_archive = "--log-archive" not in given
        archive = self.data + ".archive" if self.own_archive else options_value(options, "--log-archive")
        self.archive = archive if replay else None  # for replay(), None: not wanted, or done
        self.is_shared = False  # by the cases of a class: the last one does not end with stop()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    @classmethod
    def of_class(cls, case, *options):
        """Returns: the server that all cases of a test class share; the first case makes it with the options, the class closes it. It runs, and has neither sessions nor transactions nor indices."""
        owner = type(case)
        if "shared_server" not in vars(owner):
            owner.shared_server = cls(*options)
            owner.shared_server.is_shared = True
            owner.addClassCleanup(owner.shared_server.close)
        server = owner.shared_server
        if server.process is not None and server.process.poll() is not None:
            assert server.process.returncode in (0, -signal.SIGKILL), "the server ended with status %d: %s" % (server.process.returncode, server.last_errors())
        if server.process is None or server.process.poll() is not None:
            server.start()
        server.end_owners()
        for index in server.must("GET", "/_settings?expand_wildcards=all"):
            server.must("DELETE", "/" + index)
        return server

    def start(self):
        """Starts it and waits until it answers. It must not have crashed before: a test that only sees its connection break does not say so."""
        if self.process is not None:
            self.check_for_crash()
        if self.port_wanted == 0:
            self.reserved = ports.Port()
        port = self.port_wanted or self.reserved.number
        line, until = "", time.monotonic() + FOR_THE_PORT
        while not line:
            output = os.path.getsize(self.data + ".log")
            self.process = self.popen(
                [PROGRAM, "serve", "--data", self.data, "--listen", "127.0.0.1:%d" % port, *self.options,
                 *(["--log-archive", self.archive] if self.archive and self.own_archive else [])],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=self.environment, text=True)
            line = self.process.stdout.readline()
            if not line:
                self.process.wait()
                self.process.stdout.close()
                if "Address already in use" not in self.errors(output) or time.monotonic() > until:
                    break
                time.sleep(0.2)
        scheme = "https://" if "--tls-cert" in self.options else "http://"
        if not line.startswith("ready on " + scheme):
            self.process.wait()
            self.process.stdout.close()
            self.log.close()
            self.give_port_back()
            raise RuntimeError("the server did not start (status %s): %s" % (self.process.returncode, self.errors()))
        self.port = int(line.strip().rsplit(":", 1)[1])
        self.port_wanted = self.port
        self.url = "%s127.0.0.1:%d" % (scheme, self.port)
        self.copy_first()
        return self

    def popen(self, command, **more):
        """Runs the program; for servers that run it inside of another one. Returns: its Popen."""
        return subprocess.Popen(command, **more)

    def copy_first(self):
        """Copies the directory of a host of a cluster after its first start, as if the host was killed then: replay() begins there."""
        if self.first_copy is None or os.path.exists(self.first_copy):
            return
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        shutil.copytree(self.data, self.first_copy)
        self.process.send_signal(signal.SIGCONT)

    def give_port_back(self):
        if self.reserved is not None:
            self.reserved.release()
            self.reserved = None

    def hang_up(self):
        """Ends the connection that requests have in common."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def check_for_crash(self):
        """Fails if the program ended by a signal of CRASHES: a fault of the program."""
        status = self.process.poll()
        assert status is None or -status not in CRASHES, "the server ended with status %d: %s" % (status, self.last_errors())

    def kill(self):
        """kill -9."""
        self.check_for_crash()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.hang_up()

    def stop(self, how=signal.SIGTERM, replay=True):
        """Ends it in good order; `replay`: this is its end, unless cases share it. Returns: its exit status."""
        self.process.send_signal(how)
        status = self.process.wait(HANGS)
        self.check_for_crash()
        self.process.stdout.close()
        self.hang_up()
        if replay and status == 0 and not self.is_shared:
            self.replay()
        return status

    def restart(self):
        self.stop(replay=False)
        return self.start()

    @classmethod
    def draws(cls):
        """Returns: whether the next server is one of those that are drawn; others at each commit."""
        cls.count += 1
        name = "%s %d %s" % (os.path.basename(sys.argv[0]), cls.count, os.environ.get("TIDELOCK_FIRST_SEED", ""))
        return zlib.crc32(name.encode()) % SHARE == 0

    def replay(self):
        """Checks the data directory, and that the log, applied from its first entry on, makes the same state. Once, after an orderly end."""
        if self.first_copy is not None and os.path.exists(self.first_copy):
            self.replay_cluster()
        if self.archive is None:
            return
        run = subprocess.run([PROGRAM, "check", "--data", self.data, "--replay-all", "--log", self.archive],
                             capture_output=True, text=True, env=self.environment)
        assert run.returncode == 0, "tidelock check --replay-all: status %d: %s" % (run.returncode, (run.stdout + run.stderr)[-20000:])
        if self.own_archive:
            shutil.rmtree(self.archive, ignore_errors=True)
        self.archive = None

    def replay_cluster(self):
        """
        Checks that the cluster's log, applied to the directory as it was after the first start, makes the states that the hosts have reported
        since, each second. A log that is not there any more is no failure, but each difference is one.
        """
        of_tls = ("--cluster-ca", "--cluster-cert", "--cluster-key") if options_value(self.options, "--cluster").startswith("https:") else ()
        of_cluster = [option for option in ("--cluster", *of_tls) if options_value(self.options, option)]
        run = subprocess.run([PROGRAM, "check", "--data", self.first_copy, *["%s=%s" % (option, options_value(self.options, option)) for option in of_cluster]],
                             capture_output=True, text=True, env=self.environment)
        output = run.stdout + run.stderr
        assert not any(report in output for report in REPORTS), output[-20000:]
        assert run.returncode == 0 or (run.returncode == 1 and NOT_COMPARED.search(output)), "tidelock check --cluster: status %d: %s" % (run.returncode, output[-20000:])
        shutil.rmtree(self.first_copy)
        self.first_copy = None

    def close(self):
        """Ends it; it must end as it should, which under a sanitizer says that it found nothing."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(HANGS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("the server hangs: %s" % self.last_errors()) from None
            assert self.process.returncode == 0, "the server ended with status %d: %s" % (
                self.process.returncode, self.last_errors())
        if self.process is not None:
            self.check_for_crash()
            self.process.stdout.close()
        self.hang_up()
        self.log.close()
        self.give_port_back()
        assert "the state differs from the one that was recorded" not in self.errors(), self.last_errors()
        assert "a step of the writer was not divided" not in self.errors(), self.last_errors()
        if self.process is not None and self.process.returncode == 0:
            self.replay()
        if self.first_copy is not None:
            shutil.rmtree(self.first_copy, ignore_errors=True)
        if self.own_data:
            shutil.rmtree(self.data, ignore_errors=True)
            os.unlink(self.data + ".log")

    def errors(self, first=0):
        """Returns: its standard error so far, from byte `first` on."""
        with open(self.data + ".log", encoding="utf-8", errors="replace") as log:
            log.seek(first)
            return log.read()

    def last_errors(self):
        """Returns: the end of its standard error, or the report of a sanitizer, from its head on."""
        errors = self.errors()
        heads = [errors.index(report) for report in REPORTS if report in errors]
        return errors[min(heads):][:20000] if heads else errors[-4000:]

    def request(self, method, path, body=None, headers=None, connection=None):
        """Sends a request unchanged. Returns: the response with its body read into .body."""
        if connection is None:
            if self.connection is None:
                self.connection = self.connect()
            connection = self.connection
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode("utf-8")
        headers = {"Content-Type": "application/json", **(headers or {})} if body is not None else dict(headers or {})
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            response.body = response.read()
            return response
        except (OSError, http.client.HTTPException):
            connection.close()
            if connection is self.connection:
                self.connection = None
            raise

    def ask(self, method, path, body=None, headers=None):
        """Returns: (status, parsed JSON, or the bytes of any other body)."""
        response = self.request(method, path, body, headers)
        try:
            return response.status, json.loads(response.body)
        except ValueError:
            return response.status, response.body

    def must(self, method, path, body=None, headers=None):
        """The same, with a failure unless it succeeded. Returns: the JSON."""
        status, reply = self.ask(method, path, body, headers)
        if status >= 300:
            raise AssertionError("%s %s: %d %s" % (method, path, status, reply))
        return reply

    def number(self, session):
        """Returns: by what public number others see a session."""
        return self.must("GET", "/_session/" + session)["number"]

    def numbers(self, sessions):
        return [self.number(session) for session in sessions]

    def transaction_number(self, transaction):
        return self.must("GET", "/_transaction/" + transaction)["number"]

    def end_owners(self):
        """Ends all sessions and transactions of all owners."""
        for session in self.must("GET", "/_session")["sessions"]:
            status, reply = self.ask("DELETE", "/_session/%d?force=true" % session["session"])
            assert status in (200, 404), reply  # it may have ended meanwhile
        for transaction in self.must("GET", "/_transaction")["transactions"]:
            self.ask("POST", "/_transaction/%d/_rollback?force=true" % transaction["transaction"])

    def connect(self):
        """A connection of one's own, for threads."""
        if self.tls is not None:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=HANGS, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS)

    def raw(self, data, timeout=10, read=True):
        """Sends bytes on a new connection. Returns: all that comes back until it closes or falls silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as s:
            s.sendall(data)
            received = b""
            try:
                while read:
                    part = s.recv(65536)
                    if not part:
                        break
                    received += part
            except (socket.timeout, ConnectionResetError):
                pass
            return received


def check(data):
    """Runs tidelock check. Returns: (exit status, its output)."""
    run = subprocess.run([PROGRAM, "check", "--data", data], capture_output=True, text=True, timeout=600)
    return run.returncode, run.stdout + run.stderr


def check_sound(data):
    """Fails if tidelock check finds an error in the data directory."""
    status, output = check(data)
    assert status == 0, "tidelock check: status %d: %s" % (status, output)
