#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tidelock lock`: the command runs only while the lock is held, and the lock is released when the command ends.

Processes are killed and stopped on purpose; a file to which the command keeps adding shows whether it still runs. Where a lease
expires, the clock of `tidelock lock` is stopped and advanced by the test (tests/lib/clock.py), so that the load of the machine
has no influence.
"""
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import process_guard  # noqa: E402
from clock import Clock  # noqa: E402
from server import HANGS, PROGRAM, Server  # noqa: E402
from terminal import need_terminal  # noqa: E402
from waiting import stop_process, until  # noqa: E402

LOST = 76  # the exit status when the lock was
ONE_WRITE = len("x\n")  # may have begun in the kernel before the signal came
HOUR = 3600
TICKING = 'while :; do echo x >>"$0"; sleep 0.02; done'


def processes_with(word):
    """Returns: the pids of live processes with that word in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and word.encode() in process_guard.read("/proc/%s/cmdline" % name) and not process_guard.is_zombie(int(name)):
            found.append(int(name))
    return found


class LockCase(unittest.TestCase):
    """The cases of a class have a server; each has a folder, and a clock for its commands, which follows the machine's until the test moves it."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-lock-")
        self.clock = Clock()
        self.server.ask("DELETE", "/fs")
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})

    def tearDown(self):
        if self.server.process.poll() is not None:
            self.server.start()
        self.server.end_owners()
        self.clock.close()
        shutil.rmtree(self.folder)

    def start(self, *arguments, **options):
        return subprocess.Popen([PROGRAM, "lock", "--url", self.server.url, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=dict(os.environ, **self.clock.environment()), **options)

    def run_lock(self, *arguments, **options):
        job = self.start(*arguments, **options)
        out, errors = job.communicate(timeout=HANGS)
        return job.returncode, out, errors

    def ticking(self, name, *arguments):
        """A command under a lock that keeps adding to a file. Returns: process, file."""
        path = os.path.join(self.folder, name)
        job = self.start(*arguments, "--", "sh", "-c", TICKING, path)
        until(lambda: os.path.exists(path), "the command has started")
        return job, path

    def ticking_program(self):
        """
        TICKING in one process: a shell that is stopped during its vfork() does not run, but is not reported as stopped. SIGINT
        has its default action: as a KeyboardInterrupt of Python it can be lost while a file is closed.
        """
        program = os.path.join(self.folder, "ticking.py")
        with open(program, "w", encoding="ascii") as file:
            file.write("import signal, sys, time\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nwhile True:\n    open(sys.argv[1], 'a').write('x')\n    time.sleep(0.02)\n")
        return "python3", program

    def assert_still(self, path):
        before = os.path.getsize(path)
        time.sleep(0.2)
        self.assertLessEqual(os.path.getsize(path), before + ONE_WRITE, "the command still runs")

    def until_dead(self, path):
        """Waits until no process has the path in its command line; the file stays as it is."""
        until(lambda: not processes_with(path), "the command is dead")
        self.assert_still(path)

    def held(self):
        return self.server.request("GET", "/_cat/locks").body.strip() != b""


class LockCommand(LockCase):
    def test_exit_status_passes_through(self):
        self.assertEqual(self.run_lock("fs", "--", "true")[0], 0)
        self.assertEqual(self.run_lock("fs", "--", "sh", "-c", "exit 7")[0], 7)
        self.assertEqual(self.run_lock("fs", "--", "sh", "-c", "kill -TERM $$")[0], 128 + signal.SIGTERM)
        status, _, errors = self.run_lock("fs", "--", "/no/such/program")
        self.assertEqual((status, errors), (127, "tidelock lock: cannot run /no/such/program: No such file or directory\n"))
        status, _, errors = self.run_lock("fs", "--", self.folder)
        self.assertEqual((status, errors), (126, "tidelock lock: cannot run %s: Permission denied\n" % self.folder))
        self.assertFalse(self.held())

    def test_environment_and_binding(self):
        status, out, errors = self.run_lock("fs:/clinton", "--", "sh", "-c", "echo $TIDELOCK_SESSION $TIDELOCK_FENCING_TOKEN")
        self.assertEqual(status, 0, errors)
        session, token = out.split()
        self.assertGreater(int(token), 10 ** 15)
        self.assertTrue(session)
        script = ('curl -s -o /dev/null -w "%{http_code} " -XPUT "$TIDELOCK_URL/fs/_doc/1?timeout=0s" -H "Content-Type: application/json" -d "{}";'
                  'curl -s -o /dev/null -w "%{http_code}" -XPUT "$TIDELOCK_URL/fs/_doc/1?timeout=0s&session=$TIDELOCK_SESSION" '
                  '-H "Content-Type: application/json" -d "{}"')
        self.assertEqual(self.run_lock("fs", "--", "sh", "-c", script)[1], "409 200")

    def test_not_granted_in_time(self):
        job, _ = self.ticking("held", "--name", "first", "fs")
        begin = time.time()
        status, _, errors = self.run_lock("--wait", "300ms", "fs:/clinton", "--", "true")
        self.assertEqual(status, 75)
        self.assertIn("held by first", errors)
        self.assertGreater(time.time() - begin, 0.25)  # no more than that is true on any machine
        self.assertEqual(self.run_lock("--wait", "0s", "--shared", "/", "--", "true")[0], 75)
        job.terminate()
        self.assertEqual(job.wait(HANGS), 128 + signal.SIGTERM)

    def test_lost_lock_has_own_exit_status(self):
        """Its own 0 would say that it did its work under the lock."""
        for number, (command, options) in enumerate((('trap "exit 0" TERM; ' + TICKING, ()), (TICKING, ()),
                                                     ('while [ ! -e "$0.go" ]; do echo >>"$0"; sleep 0.02; done; exit 0', ("--transaction",)))):
            path = os.path.join(self.folder, "lost%d" % number)
            job = self.start(*options, "fs", "--", "sh", "-c", command, path)
            until(lambda: os.path.exists(path), "the command has started")
            session = self.server.must("GET", "/_session")["sessions"][0]["session"]
            self.server.must("DELETE", "/_session/%s?force=true" % session)
            open(path + ".go", "w", encoding="ascii").close()
            self.assertIn(job.wait(HANGS), (LOST, 1) if options else (LOST,))
            self.assertRegex(job.communicate()[1], "lost|not committed")

    def test_waits_in_order(self):
        job, _ = self.ticking("first", "fs")
        second = self.start("--wait", "10m", "fs", "--", "true")
        until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the second waits")
        self.assertIsNone(second.poll())
        job.terminate()
        self.assertEqual(second.wait(HANGS), 0)
        job.communicate()
        second.communicate()

    def test_shared(self):
        job, _ = self.ticking("shared", "--shared", "fs")
        self.assertEqual(self.run_lock("--shared", "--wait", "0", "fs", "--", "true")[0], 0)
        self.assertEqual(self.run_lock("-x", "--wait", "0", "fs", "--", "true")[0], 75)
        self.assertEqual(self.run_lock("--shared", "--update", "fs", "--", "true")[::2],
                         (64, "tidelock lock: shared and update exclude each other\nTry `tidelock lock --help' or `tidelock lock --usage' for more information.\n"))
        self.assertEqual(self.run_lock("--wait", "0s", "fs", "--", "true")[0], 75)
        job.terminate()
        job.communicate()

    def test_dies_with_its_parent(self):
        job, path = self.ticking("parent", "--ttl", "1h", "fs")
        job.kill()
        job.communicate()
        until(lambda: not self.held(), "the lock is gone")
        self.until_dead(path)

    def test_descendants_of_command_are_killed(self):
        path = os.path.join(self.folder, "grandchild")
        job = self.start("fs", "--", "sh", "-c", "(%s) & wait" % TICKING, path)
        until(lambda: os.path.exists(path), "the command has started")
        job.kill()
        job.communicate()
        self.until_dead(path)

    def test_lock_is_released_and_background_processes_end(self):
        path = os.path.join(self.folder, "left")
        self.assertEqual(self.run_lock("fs", "--", "sh", "-c", "(%s) & exit 0" % TICKING, path)[0], 0)
        self.assertFalse(self.held())
        if os.path.exists(path):
            self.assert_still(path)

    def test_signals_pass_through(self):
        path = os.path.join(self.folder, "signals")
        script = 'trap "echo usr1 >>$0" USR1; trap "echo term >>$0; exit 3" TERM; echo ready >>"$0"; while :; do sleep 0.02; done'
        job = self.start("fs", "--", "sh", "-c", script, path)
        until(lambda: os.path.exists(path) and "ready" in open(path).read(), "the command has started")
        job.send_signal(signal.SIGUSR1)
        until(lambda: "usr1" in open(path).read(), "SIGUSR1 has arrived")
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(HANGS), 3)
        self.assertIn("term", open(path).read())
        job.communicate()

    def test_session_broken_by_force(self):
        job, path = self.ticking("forced", "fs")
        session = self.server.must("GET", "/_session")["sessions"][0]["session"]
        self.server.must("DELETE", "/_session/%s?force=true" % session)
        self.assertEqual(job.wait(HANGS), LOST)
        self.assertIn("the session is lost", job.communicate()[1])
        self.assert_still(path)

    def test_transaction(self):
        script = 'curl -s -o /dev/null -XPUT "$TIDELOCK_URL/fs/_doc/%s?transaction=$TIDELOCK_TRANSACTION" -H "Content-Type: application/json" -d "{}"; exit %d'
        self.assertEqual(self.run_lock("--transaction", "fs", "--", "sh", "-c", script % ("kept", 0))[0], 0)
        self.assertEqual(self.run_lock("--transaction", "fs", "--", "sh", "-c", script % ("dropped", 5))[0], 5)
        self.assertEqual(self.server.ask("GET", "/fs/_doc/kept")[0], 200)
        self.assertEqual(self.server.ask("GET", "/fs/_doc/dropped")[0], 404)


class LockOnATerminal(LockCase):
    """Under a shell with job control, whose terminal is ours to type on."""

    def setUp(self):
        need_terminal()
        super().setUp()
        self.path = os.path.join(self.folder, "terminal")
        self.said = b""
        self.shell, self.keys = pty.fork()
        if self.shell == 0:
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):  # a shell ignores signals that were ignored at its start
                signal.signal(number, signal.SIG_DFL)
            os.environ.update(self.clock.environment())
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])

    def tearDown(self):
        os.close(self.keys)  # hangs up on all that the shell has started
        os.waitpid(self.shell, 0)
        super().tearDown()

    def type(self, keys):
        os.write(self.keys, keys)

    def wait_until_said(self, text):
        def said():
            while select.select([self.keys], [], [], 0)[0]:
                self.said += os.read(self.keys, 65536)
            return text in self.said

        try:
            until(said, "the terminal says %s" % text)
        except AssertionError as error:
            raise AssertionError("%s: %s" % (error, self.said)) from error
        self.said = self.said[self.said.index(text) + len(text):]

    def ticking_line(self, *arguments):
        return " ".join((PROGRAM, "lock", "--url", self.server.url, *arguments, "fs", "--", *self.ticking_program(), self.path))

    def type_and_see(self, line):
        """Types a line and waits until its command runs on, in front of the terminal."""
        size = os.path.getsize(self.path) if os.path.exists(self.path) else 0
        self.type(line.encode() + b"\n")
        if line != "bg":
            until(lambda: os.tcgetpgrp(self.keys) != self.shell, "the shell has stepped back")
        until(lambda: os.path.exists(self.path) and os.path.getsize(self.path) > size + 5, "the command runs on")

    def stop(self):
        self.type(b"\x1a")  # Ctrl-Z
        self.wait_until_said(b"Stopped")
        self.assert_still(self.path)
        self.assertTrue(self.held())

    def ends_with(self, status):
        self.type(b"echo ended with $?.\n")
        self.wait_until_said(b"ended with %d." % status)
        self.assertFalse(self.held())

    def interrupt(self):
        self.type(b"\x03")  # Ctrl-C
        self.wait_until_said(b"^C")

    def test_stop_and_go_on(self):
        self.type_and_see(self.ticking_line())
        self.stop()
        self.type_and_see("fg")
        self.stop()
        self.type_and_see("fg")
        self.interrupt()
        self.ends_with(130)

    def test_background_and_foreground(self):
        """There is no signal for a return to the foreground: the terminal's signals reach the parent, which forwards them."""
        self.type_and_see(self.ticking_line())
        self.stop()
        self.type_and_see("bg")
        self.type_and_see("fg")
        self.stop()
        self.type_and_see("fg")
        self.interrupt()
        self.ends_with(130)

    def test_input_from_elsewhere(self):
        self.type_and_see(self.ticking_line() + " </dev/null")
        self.stop()
        self.type_and_see("fg")
        self.interrupt()
        self.ends_with(130)

    def test_in_a_script(self):
        """The script that waits for us stops with us."""
        script = os.path.join(self.folder, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write(self.ticking_line() + "\nexit 8\n")
        self.type_and_see("sh " + script)
        self.stop()
        self.type_and_see("fg")
        self.type(b"\x1c")  # Ctrl-\\
        self.wait_until_said(b"^\\")
        self.ends_with(8)

    def test_command_that_reads_the_terminal(self):
        """In a pipeline the command is not in the foreground until it reads from the terminal."""
        self.type(b"true | %s lock --url %s fs -- sh -c 'read word </dev/tty; echo got $word.'\n" %
                  (PROGRAM.encode(), self.server.url.encode()))
        until(self.held, "it has the lock")
        self.type(b"this\n")
        self.wait_until_said(b"got this.")
        self.ends_with(0)

    def test_stopped_for_longer_than_its_lease(self):
        """The connection stays open, so the session stays alive, and the command continues."""
        self.type_and_see(self.ticking_line("--ttl", "10m"))
        self.stop()
        self.clock.jump(HOUR)
        self.type_and_see("fg")
        self.assertTrue(self.held())

    def dies_where_it_stands(self, said):
        size = os.path.getsize(self.path)
        self.type(b"fg\n")
        self.wait_until_said(said)
        self.type(b"echo ended with $?.\n")
        self.wait_until_said(b"ended with %d." % LOST)
        self.assertEqual(os.path.getsize(self.path), size, "it ran on")

    def test_session_lost_while_stopped(self):
        self.type_and_see(self.ticking_line())
        self.stop()
        self.server.must("DELETE", "/_session/%s?force=true" % self.server.must("GET", "/_session")["sessions"][0]["session"])
        self.dies_where_it_stands(b"the session is lost; stopping the command")

    def test_server_lost_while_stopped(self):
        """Without the server the lock is not certain any more."""
        self.type_and_see(self.ticking_line("--ttl", "10m"))
        self.stop()
        self.server.kill()
        self.clock.jump(590)  # so little of the lease is left that it must not continue
        self.dies_where_it_stands(b"the server does not answer; stopping the command")


class LockOfTheStopped(LockCase):
    """Without job control of a shell: either the command or its parent is stopped, and the other one continues."""

    def child_of(self, job):
        """The command, whose first child is the guard's elder."""
        with open("/proc/%d/task/%d/children" % (job.pid, job.pid), encoding="ascii") as file:
            return int(file.read().split()[0])

    def start_ticking(self, *arguments):
        path = os.path.join(self.folder, "ticks")
        job = self.start(*arguments, "fs", "--", *self.ticking_program(), path, start_new_session=True)
        until(lambda: os.path.exists(path), "the command has started")
        return job, path

    def stop_command(self, job, path):
        os.killpg(self.child_of(job), signal.SIGSTOP)
        self.assert_still(path)
        self.assertTrue(self.held())
        return os.path.getsize(path)

    def end(self, job, status):
        self.assertEqual(job.wait(HANGS), status)
        self.assertFalse(self.held())
        return job.communicate()[1]

    def test_stopped_command(self):
        job, path = self.start_ticking("--ttl", "10m")
        size = self.stop_command(job, path)
        self.clock.jump(HOUR)
        self.assertTrue(self.held())
        job.send_signal(signal.SIGCONT)  # passed on
        until(lambda: os.path.getsize(path) > size, "the command goes on")
        job.terminate()
        self.assertEqual(self.end(job, 128 + signal.SIGTERM), "")

    def test_command_stopped_by_terminal_signal(self):
        job, path = self.start_ticking()
        job.send_signal(signal.SIGTSTP)  # passed on
        until(lambda: "(python3) T" in open("/proc/%d/stat" % self.child_of(job)).read(), "the command is stopped")
        size = os.path.getsize(path)
        self.assert_still(path)
        job.send_signal(signal.SIGCONT)
        until(lambda: os.path.getsize(path) > size, "the command goes on")
        job.terminate()
        self.assertEqual(self.end(job, 128 + signal.SIGTERM), "")

    def test_stopped_command_whose_session_is_lost(self):
        job, path = self.start_ticking()
        size = self.stop_command(job, path)
        self.server.must("DELETE", "/_session/%s?force=true" % self.server.must("GET", "/_session")["sessions"][0]["session"])
        self.assertIn("the session is lost", self.end(job, LOST))
        self.assertEqual(os.path.getsize(path), size, "it ran on")

    def test_stopped_parent(self):
        """The lines that have come in meanwhile say nothing about now; the server, asked, does."""
        job, path = self.start_ticking("--ttl", "10m")
        stop_process(job)
        self.clock.jump(HOUR)
        job.send_signal(signal.SIGCONT)
        size = os.path.getsize(path)
        until(lambda: os.path.getsize(path) > size + 20, "the command goes on")
        job.terminate()
        self.assertEqual(self.end(job, 128 + signal.SIGTERM), "")

    def unread(self):
        """Returns: how many bytes the server has sent that its clients have not read yet."""
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [row.split() for row in file][1:]
        return sum(int(row[4].split(":")[1], 16) for row in rows if row[2].endswith(":%04X" % self.server.port) and row[3] == "01")

    def test_stopped_parent_without_server(self):
        self.clock.stand()
        job, path = self.start_ticking("--ttl", "6s")
        stop_process(job)
        before = self.unread()
        until(lambda: self.unread() > before, "lines come in")
        self.server.kill()
        self.clock.jump(5.9)  # its clock is stopped: if the lines counted as just received, the lease would never expire
        job.send_signal(signal.SIGCONT)
        self.assertEqual(job.wait(HANGS), LOST)
        self.assertIn("the server does not answer", job.communicate()[1])
        self.assert_still(path)


class Slow:
    """A proxy that holds back the _attach request of a session until it is released."""

    def __init__(self, port):
        self.server = port
        self.let_through = threading.Event()
        self.asked = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server))
                threading.Thread(target=self.pass_on, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self.pass_on, args=(server, client, False), daemon=True).start()
        except OSError:
            pass  # closed

    def pass_on(self, source, target, asks):
        try:
            for data in iter(lambda: source.recv(65536), b""):
                if asks and b"/_attach" in data:
                    self.asked.set()
                    self.let_through.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side is gone

    def close(self):
        self.let_through.set()
        self.listener.close()


class Refusing(Slow):
    """A proxy that answers each _attach request itself, with 401."""

    def __init__(self, port):
        super().__init__(port)
        self.refused = 0

    def pass_on(self, source, target, asks):
        try:
            for data in iter(lambda: source.recv(65536), b""):
                if asks and b"/_attach" in data:
                    self.refused += 1
                    source.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
                else:
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side is gone


class LockBehindASlowLine(LockCase):
    """Before the server has the attach stream it would not detect a death, and the lock would stay until the end of the lease."""

    def setUp(self):
        super().setUp()
        self.slow = Slow(self.server.port)

    def tearDown(self):
        self.slow.close()
        super().tearDown()

    def test_lock_is_acquired_after_attach_stream(self):
        path = os.path.join(self.folder, "ran")
        job = self.start("--url", self.slow.url, "fs", "--", "touch", path)
        self.assertTrue(self.slow.asked.wait(HANGS))
        time.sleep(0.2)
        self.assertFalse(self.held() or os.path.exists(path))
        self.slow.let_through.set()
        self.assertEqual(job.wait(HANGS), 0)
        self.assertTrue(os.path.exists(path))
        job.communicate()

    def test_fails_without_attach_stream(self):
        path = os.path.join(self.folder, "ran")
        status, _, errors = self.run_lock("--url", self.slow.url, "--ttl", "4s", "fs", "--", "touch", path)
        self.assertEqual(status, 1)
        self.assertIn("does not attach the session", errors)
        self.assertFalse(self.held() or os.path.exists(path))

    def test_refused_attach_stream_is_not_requested_again(self):
        path = os.path.join(self.folder, "ran")
        proxy = Refusing(self.server.port)
        self.addCleanup(proxy.close)
        status, _, errors = self.run_lock("--url", proxy.url, "fs", "--", "touch", path)
        self.assertEqual((status, proxy.refused), (1, 1), errors)
        self.assertIn("the answer to GET /_session/{id}/_attach is 401", errors)
        self.assertFalse(self.held() or os.path.exists(path))


class LockWithTransaction(LockCase):
    """The command's transaction commits when it exits with 0, and in no other case."""

    PUT = ('curl -s -o /dev/null -XPUT "$TIDELOCK_URL/fs/_doc/%s?transaction=$TIDELOCK_TRANSACTION" -H "Content-Type: application/json" '
           '-d "{}"; ')

    def has(self, name):
        return self.server.ask("GET", "/fs/_doc/" + name)[0] == 200

    def writing(self, name, then, *arguments):
        """Starts a command that writes a document, creates a file, and continues. Returns: the process, after its write."""
        path = os.path.join(self.folder, "written")
        job = self.start("--transaction", *arguments, "fs", "--", "sh", "-c", self.PUT % name + 'echo >"$0"; ' + then, path)
        until(lambda: os.path.exists(path), "the command has written")
        self.assertFalse(self.has(name), "seen before the commit")
        return job

    def state(self):
        """Of the only transaction, ended ones included."""
        return self.server.must("GET", "/_transaction")["transactions"]

    def test_sees_its_own_writes_and_commits_them_together(self):
        script = (self.PUT % "a" + self.PUT % "b" + 'curl -s "$TIDELOCK_URL/fs/_count?transaction=$TIDELOCK_TRANSACTION&filter_path=count"; '
                  'curl -s "$TIDELOCK_URL/fs/_count?filter_path=count"')
        status, out, errors = self.run_lock("--transaction", "fs", "--", "sh", "-c", script)
        self.assertEqual((status, out, errors), (0, '{"count":3}{"count":1}', ""))
        versions = [self.server.must("GET", "/fs/_doc/%s?version_history=true" % name) for name in ("a", "b")]
        first = [version["versions"][0]["from"] if "versions" in version else version for version in versions]
        self.assertEqual(first[0], first[1], "at one timestamp")

    def test_rolled_back_when_it_is_killed(self):
        job = self.writing("signal", "kill -9 $$")
        self.assertEqual(job.wait(HANGS), 128 + signal.SIGKILL)
        self.assertFalse(self.has("signal"))
        job.communicate()

    def test_rolled_back_when_the_parent_is_killed(self):
        job = self.writing("parent", "sleep 60")
        job.kill()
        until(lambda: not self.state(), "the transaction has ended")
        self.assertFalse(self.has("parent"))
        job.communicate()

    def test_failed_commit_is_reported(self):
        job = self.writing("broken", 'while [ ! -e "$0.go" ]; do sleep 0.02; done; exit 0')
        transaction = self.state()[0]["transaction"]
        self.server.must("POST", "/_transaction/%d/_rollback?force=true" % transaction)
        open(os.path.join(self.folder, "written.go"), "w").close()
        self.assertEqual(job.wait(HANGS), 1)
        self.assertIn("was rolled back: it was ended by force", job.communicate()[1])
        self.assertFalse(self.has("broken"))

    def test_transaction_commits_after_server_restart(self):
        """The lock and the transaction outlive the server; what asked it meanwhile asks again."""
        job = self.writing("restarted", 'while [ ! -e "$0.go" ]; do sleep 0.02; done; exit 0', "--ttl", "10m")
        self.server.kill()
        open(os.path.join(self.folder, "written.go"), "w").close()
        time.sleep(0.3)  # it finds no server to commit to, and retries
        self.assertFalse(job.poll() is not None)
        self.server.start()
        self.assertEqual(job.wait(HANGS), 0, job.communicate()[1])
        self.assertTrue(self.has("restarted"))


class LockWhileTheServerIsAway(LockCase):
    """The clock of the command's parent is stopped, and advanced only to its next action, never to the end of the lease."""

    def tearDown(self):
        if self.server.process.poll() is None:
            self.server.process.send_signal(signal.SIGCONT)
        super().tearDown()

    def away(self):
        stop_process(self.server.process)
        until(lambda: b") T " in process_guard.read("/proc/%d/stat" % self.server.process.pid), "the server is stopped")

    def test_stopped_before_the_lease_runs_out(self):
        self.clock.stand()
        job, path = self.ticking("away", "--ttl", "12s", "fs")
        self.away()
        self.clock.jump(9.5)  # less than a quarter is left: it asks
        size = os.path.getsize(path)
        until(lambda: os.path.getsize(path) > size + 50, "the command goes on")
        self.clock.jump(0.7)  # less than a sixth
        self.assertEqual(job.wait(HANGS), LOST)
        self.assertIn("does not answer", job.communicate()[1])
        self.assert_still(path)

    def test_killed_when_it_ignores_sigterm(self):
        self.clock.stand()
        path = os.path.join(self.folder, "stubborn")
        job = self.start("--ttl", "12s", "fs", "--", "sh", "-c", 'trap "echo >$0.term" TERM; ' + TICKING, path)
        until(lambda: os.path.exists(path), "the command has started")
        self.away()
        self.clock.jump(10.2)
        until(lambda: os.path.exists(path + ".term"), "the command is asked to end")
        size = os.path.getsize(path)
        until(lambda: os.path.getsize(path) > size + 50, "the command goes on")
        self.clock.jump(1)  # less than a twelfth
        self.assertEqual(job.wait(HANGS), LOST)
        job.communicate()
        self.assert_still(path)

    def test_server_restarts(self):
        job, path = self.ticking("restart", "--ttl", "10m", "fs")
        self.server.kill()
        self.server.start()
        size = os.path.getsize(path)
        until(lambda: os.path.getsize(path) > size + 20, "the command goes on")
        self.assertTrue(self.held())
        self.assertEqual(self.run_lock("--wait", "0s", "fs", "--", "true")[0], 75)
        job.terminate()
        self.assertEqual(job.wait(HANGS), 128 + signal.SIGTERM)
        job.communicate()


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
