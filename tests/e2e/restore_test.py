#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tidelock restore`, --log-archive and --log-keep (docs/operating.md): a backup and the log since then give the state of any
later timestamp.
"""
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
from waiting import Waiting, until  # noqa: E402

LONG = bool(os.environ.get("TIDELOCK_TEST_LONG"))  # more timestamps


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-restore-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.archive = self.path("archive")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def server(self, *options, **more):
        return Server("--backups", self.path("backups"), "--log-archive", self.archive, "--write-buffer", "1m", *options, **more)

    def restore(self, *words, status=0):
        done = subprocess.run([PROGRAM, "restore", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    @staticmethod
    def segments(folder):
        return sorted(name for name in os.listdir(folder) if name.endswith(".segment"))

    @staticmethod
    def now(server):
        return server.must("GET", "/_timestamp")["timestamp"]

    @staticmethod
    def write_much(server, count, rng=random.Random(3)):
        """Some ten kilobytes each, that do not become less when they are compressed. They fill the log, and nothing is to be found by them: that would take most of the time."""
        server.ask("PUT", "/noise", {"mappings": {"dynamic": False}})
        for _ in range(count // 50):
            server.must("POST", "/noise/_bulk", "".join('{"index": {"_id": "%d"}}\n{"text": "%s"}\n' % (rng.randrange(100), rng.randbytes(5000).hex()) for _ in range(50)))

    def write_until(self, server, happened):
        while not happened():
            self.write_much(server, 100)


def documents(server, ts=None):
    found = {}
    for index in "a", "b":
        status, reply = server.ask("POST", "/%s/_search%s" % (index, "?timestamp=%d" % ts if ts else ""), {"size": 1000, "version": True})
        for hit in reply["hits"]["hits"] if status == 200 else []:
            found[index, hit["_id"]] = (hit["_version"], hit["_source"])
    return found


class Restore(Case):
    def test_concurrent_later_changes_are_left_out(self):
        """An entry of the log may have the commands of several clients: those after the timestamp are not restored, although their entry begins before it."""
        clients, found = 24, {}

        def write(connection, name):
            for i in range(20):
                server.request("PUT", "/c/_doc/%s-%d" % (name, i), {"v": i}, connection=connection)

        def longest_run():
            """Returns: the most consecutive timestamps: a clock does not tick once for each entry."""
            times, runs = sorted(found.values()), [[]]
            for at in times:
                runs.append([]) if runs[-1] and at != runs[-1][-1] + 1 else None
                runs[-1].append(at)
            return max(runs, key=len)

        with self.server() as server:
            server.must("PUT", "/c/_doc/first", {"v": 0})
            server.must("POST", "/_backup/b")
            rounds = 0
            while len(longest_run()) < 3:
                threads = [threading.Thread(target=write, args=(server.connect(), "%d-%d" % (rounds, i))) for i in range(clients)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                rounds += 1
                hits = server.must("POST", "/c/_search?commit_timestamp=true", {"size": 10000})["hits"]["hits"]
                found = {hit["_id"]: hit["_commit_timestamp"] for hit in hits}
            server.stop()
            last = longest_run()[0]
            self.restore("--from", self.path("backups", "b"), "--log", self.archive, "--log", os.path.join(server.data, "log"), "--until", str(last), "--data", self.path("data"))
            with Server(data=self.path("data")) as restored:
                hits = restored.must("POST", "/c/_search", {"size": 10000})["hits"]["hits"]
                self.assertEqual({hit["_id"] for hit in hits}, {name for name, at in found.items() if at <= last})

    def step(self, server, rng, number):
        index, key = rng.choice("ab"), str(rng.randrange(20))
        kind = rng.randrange(10)
        if kind < 5:
            server.must("PUT", "/%s/_doc/%s" % (index, key), {"n": number})
        elif kind < 7:
            server.ask("DELETE", "/%s/_doc/%s" % (index, key))
        elif kind == 7:
            server.ask("POST", "/%s/_update/%s" % (index, key), {"script": {"source": "ctx._source.n += params.by", "params": {"by": number}}})
        elif kind == 8:
            transaction = server.must("POST", "/_transaction")["transaction"]
            for other in range(3):
                server.must("PUT", "/b/_doc/%d?transaction=%s" % (other, transaction), {"t": number})
            server.must("POST", "/_transaction/%s/%s" % (transaction, rng.choice(("_commit", "_rollback"))))
        elif rng.randrange(4) == 0:
            server.ask("DELETE", "/a")
        else:
            self.write_much(server, 200, rng)

    def test_restore_to_any_timestamp(self):
        rng = random.Random(17)
        instants, backups = [], []
        with self.server() as server:
            for number in range(260):
                if number in (5, 110, 230):
                    server.must("POST", "/_backup/b%d" % number)
                    backups.append((self.now(server), self.path("backups", "b%d" % number)))
                if number in (60, 170):
                    server.kill() if number == 60 else server.stop()
                    server.start()
                self.step(server, rng, number)
                if number % 9 == 0:
                    instants.append((self.now(server), documents(server)))
            end = documents(server)
            self.assertEqual(server.stop(), 0)
            self.assertGreater(len(self.segments(self.archive)), 1)
            before = {name: os.stat(os.path.join(self.archive, name)).st_mtime_ns for name in os.listdir(self.archive)}
            logs = ["--log", self.archive, "--log", os.path.join(server.data, "log")]
            tried = 0
            for at, backup in backups:
                for ts, expected in [*instants[-1:], *rng.sample(instants, 6)] if LONG else [*instants[-1:], rng.choice(instants)]:
                    target = self.path("data-%d" % tried)
                    tried += 1
                    words = ["--from", backup, *logs, "--until", str(ts), "--data", target]
                    if ts < at:
                        if ts < at - 1000000:
                            self.assertIn("the backup is newer than --until", self.restore(*words, status=1))
                        continue
                    self.restore(*words)
                    with Server(data=target) as restored:
                        self.assertEqual(documents(restored), expected)
                        restored.must("PUT", "/a/_doc/new", {"goes": "on"})
                    self.assertEqual(subprocess.run([PROGRAM, "check", "--data", target], stdout=subprocess.DEVNULL).returncode, 0)
                    shutil.rmtree(target)
            target = self.path("all")
            self.restore("--from", backups[0][1], *logs, "--data", target)
            with Server(data=target) as restored:
                self.assertEqual(documents(restored), end)
                ts, expected = rng.choice([instant for instant in instants if instant[0] > backups[0][0]])
                self.assertEqual(documents(restored, ts), expected, "the history is there, too")
            self.assertEqual(before, {name: os.stat(os.path.join(self.archive, name)).st_mtime_ns for name in os.listdir(self.archive)}, "the archive is as it was")
            self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".part")], [])
            server.start()  # and so is what the original has
            self.assertEqual(documents(server), end)

    def test_gaps_in_log_are_reported(self):
        with self.server() as server:
            server.must("PUT", "/a/_doc/1", {})
            server.must("POST", "/_backup/b")
            self.write_much(server, 3200)
            server.stop()
            log, backup = os.path.join(server.data, "log"), self.path("backups", "b")
            self.assertGreater(len(self.segments(self.archive)), 2)
            self.assertIn("add --log with its other directories, or use another backup", self.restore("--from", backup, "--log", log, "--data", self.path("x"), status=1))
            broken = self.path("broken")
            shutil.copytree(self.archive, broken)
            os.unlink(os.path.join(broken, self.segments(broken)[1]))
            self.restore("--from", backup, "--log", broken, "--log", log, "--data", self.path("x"), status=1)
            self.assertIn("No such file", self.restore("--from", self.path("none"), "--log", self.archive, "--data", self.path("x"), status=1))
            self.assertIn("exists; use the name of a new directory", self.restore("--from", backup, "--log", self.archive, "--data", self.folder, status=1))
            self.assertIn("missing options; --from, --log", self.restore("--from", backup, status=64))
            for instant in ("now", "-5", "0", "", "5x", " 7", "9" * 23, str(1 << 64)):
                self.assertIn("is not a timestamp", self.restore("--from", backup, "--log", log, "--until=" + instant, "--data", self.path("x"), status=64))
            self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("x")], [], "nothing is left of what failed")
            self.restore("--from", backup, "--log", self.archive, "--data", self.path("x"))  # as far as the archive goes
            server.start()


class WrongLog(Case):
    """The store records the identity of its log: a start with another log is refused with the remedy."""

    def refused(self, data, reason):
        done = subprocess.run([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(reason, done.stdout)
        self.assertIn("put the folders `rocks' and `log' of one data directory back", done.stdout)
        done = subprocess.run([PROGRAM, "check", "--data", data], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(reason, done.stdout)

    def test_another_log(self):
        mine, other = self.path("mine"), self.path("other")
        for data, count in (mine, 5), (other, 200):
            with Server(data=data) as server:
                for number in range(count):
                    server.must("PUT", "/w/_doc/%d" % number, {"n": count})
                self.assertEqual(server.stop(), 0)
        os.rename(os.path.join(mine, "log"), self.path("log"))
        shutil.copytree(os.path.join(other, "log"), os.path.join(mine, "log"))
        self.refused(mine, "the store was made from another log than the one next to it")
        shutil.rmtree(os.path.join(mine, "log"))
        os.rename(self.path("log"), os.path.join(mine, "log"))
        with Server(data=mine) as server:
            self.assertEqual(server.must("GET", "/w/_count")["count"], 5)

    def test_diverged_log(self):
        """A backup that was served has the log's identity, and entries of its own."""
        with self.server() as server:
            server.must("PUT", "/a/_doc/1", {})
            server.must("POST", "/_backup/b")
            shutil.copytree(self.path("backups", "b"), self.path("served"))
            for number in range(30):
                server.must("PUT", "/a/_doc/%d" % number, {"of": "the original"})
            with Server(data=self.path("served")) as served:
                for number in range(20):
                    served.must("PUT", "/a/_doc/%d" % number, {"of": "the copy"})
                self.assertEqual(served.stop(), 0)
            self.assertEqual(server.stop(), 0)
            log = os.path.join(server.data, "log")
            self.assertIn("does not belong to the log", self.restore("--from", self.path("served"), "--log", log, "--data", self.path("x"), status=1))
            mixed = self.path("mixed")
            shutil.copytree(self.path("served"), mixed)
            shutil.rmtree(os.path.join(mixed, "log"))
            shutil.copytree(log, os.path.join(mixed, "log"))
            self.refused(mixed, "the store was made from other entries than the log next to it has")
            older = self.path("older")  # the store of before and the log since then belong together
            shutil.copytree(self.path("backups", "b"), older)
            shutil.rmtree(os.path.join(older, "log"))
            shutil.copytree(log, os.path.join(older, "log"))
            with Server(data=older) as restored:
                self.assertEqual(restored.must("GET", "/a/_doc/7")["_source"], {"of": "the original"})

    def test_the_log_of_another_server(self):
        with self.server() as server, Server("--backups", self.path("backups")) as other:
            server.must("PUT", "/a/_doc/1", {})
            server.must("POST", "/_backup/b")
            for number in range(200):
                other.must("PUT", "/a/_doc/%d" % number, {})
            self.assertEqual(other.stop(), 0)
            log = os.path.join(other.data, "log")
            self.assertIn("does not belong to the log", self.restore("--from", self.path("backups", "b"), "--log", log, "--data", self.path("x"), status=1))
            self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("x")], [])

    def test_a_backup_of_a_backup(self):
        """A served backup continues from its state, and its own log has the later changes."""
        with self.server() as server:
            server.must("PUT", "/a/_doc/1", {})
            server.must("POST", "/_backup/first")
        with Server("--backups", self.path("more"), data=self.path("backups", "first")) as served:
            served.must("PUT", "/a/_doc/2", {})
            served.must("POST", "/_backup/second")
            served.must("PUT", "/a/_doc/3", {})
            self.assertEqual(served.stop(), 0)
            self.restore("--from", self.path("more", "second"), "--log", os.path.join(served.data, "log"), "--data", self.path("x"))
            with Server(data=self.path("x")) as restored:
                self.assertEqual(restored.must("GET", "/a/_count")["count"], 3)


def contents(folder):
    """Returns: a digest of each file below a folder."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


class Replay(Case):
    """`tidelock check --replay`: the log makes what there is, or the check says that it does not."""

    def check(self, data, *words):
        done = subprocess.run([PROGRAM, "check", "--data", data, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def play(self, server, count, by):
        for number in range(count):
            server.must("PUT", "/a/_doc/%d" % (number % 30), {"n": number * by})
            server.must("POST", "/a/_update/%d" % (number % 30), {"script": {"source": "ctx._source.n = Math.sin(ctx._source.n)"}})
        transaction = server.must("POST", "/_transaction")["transaction"]
        server.must("PUT", "/b/_doc/1?transaction=%s" % transaction, {"n": by})
        server.must("POST", "/_transaction/%s/_commit" % transaction)

    def test_entries_after_checkpoint_are_applied(self):
        with self.server() as server:
            server.must("PUT", "/a/_doc/before", {"n": 0})
            server.must("POST", "/_forcemerge")
            self.play(server, 40, 1)
            server.kill()
            before = contents(server.data)
            status, output = self.check(server.data)
            self.assertEqual(status, 0, output)
            self.assertRegex(output, "replayed: [0-9]+ entries of the log after the checkpoint")
            self.assertIn("index a: 31 documents", output)
            self.assertIn("index b: 1 documents", output)
            self.assertEqual(contents(server.data), before, "the data is not changed")
            self.assertEqual(os.path.exists(server.data + ".replayed"), False)
            self.assertEqual(self.check(server.data), (status, output))
            server.start()
            self.assertEqual(server.must("GET", "/a/_count")["count"], 31)
            server.stop()
            status, output = self.check(server.data)
            self.assertEqual((status, "replayed" in output), (0, False), "after an orderly stop the checkpoint has everything")

    def test_replay_equals_store(self):
        with self.server() as server:
            self.play(server, 40, 1)
            server.must("POST", "/_backup/b")
            self.play(server, 80, 2)
            server.kill()
            server.start()
            self.play(server, 40, 3)
            half = self.now(server)
            self.write_until(server, lambda: self.segments(self.archive))
            self.play(server, 40, 4)
            server.stop()
            log, backup = os.path.join(server.data, "log"), self.path("backups", "b")
            status, output = self.check(server.data, "--replay", backup, "--log", self.archive)
            self.assertEqual(status, 0, output)
            self.assertRegex(output, "replayed: [0-9]{3,} entries of the log after the backup produce the state of the directory")
            status, output = self.check(server.data, "--replay", backup)
            self.assertEqual((status, "add --log with its other directories" in output), (1, True), output)
            self.assertEqual(os.path.exists(server.data + ".replayed"), False)
            # One that went another way since then is not what the log of this one makes.
            other = self.path("other")
            self.restore("--from", backup, "--log", self.archive, "--log", log, "--until", str(half), "--data", other)
            with Server(data=other) as restored:
                self.play(restored, 20, 5)
            status, output = self.check(other, "--replay", backup)
            self.assertEqual(status, 0, output)
            status, output = self.check(other, "--replay", backup, "--log", self.archive, "--log", log)
            self.assertEqual((status, "differ" in output), (1, True), output)
            status, output = self.check(other, "--log", log)
            self.assertEqual((status, "--log goes with --replay" in output), (64, True), output)
            # From the first entry on: the same, where all of the log is named.
            status, output = self.check(server.data, "--replay-all", "--log", self.archive)
            self.assertEqual(status, 0, output)
            self.assertRegex(output, "replayed: [0-9]{3,} entries of the log, from the first on, produce the state of the directory")
            status, output = self.check(server.data, "--replay-all")
            self.assertEqual((status, "the log begins at entry" in output), (1, True), output)
            status, output = self.check(server.data, "--replay-all", "--replay", backup)
            self.assertEqual((status, "exclude each other" in output), (64, True), output)
            status, output = self.check(other, "--replay-all", "--log", self.archive, "--log", log)
            self.assertEqual((status, "differ" in output), (1, True), output)
            self.assertEqual(os.path.exists(server.data + ".replayed"), False)

    def test_requests_that_wait_for_locks(self):
        """A backup, a checkpoint and the log may have them: they are checked, replayed and restored as without any, and a start that fails says why."""
        with self.server() as server:
            server.must("PUT", "/a/_doc/1", {"n": 1})
            holder, other = (server.must("POST", "/_session", {"ttl": "1h"})["session"] for _ in range(2))
            server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "a", "id": "1"}]})

            def wait():
                requests = [Waiting(server, "PUT", "/a/_doc/1?timeout=1h", {"n": 2}),
                            Waiting(server, "POST", "/_lock", {"session": other, "wait": "1h", "locks": [{"mode": "shared", "index": "a", "id": "1"}]})]
                until(lambda: len(server.must("GET", "/_lock")["locks"][0]["waiters"]) == len(requests), "all wait")
                return requests

            def sound(data, *words):
                status, output = self.check(data, *words)
                self.assertEqual(status, 0, output)

            waiting, backup = wait(), self.path("backups", "b")
            server.must("POST", "/_backup/b")
            server.must("PUT", "/a/_doc/2", {"n": 2})
            sound(backup)
            server.kill()
            self.assertEqual([(request.join(), request.status)[1] for request in waiting], [None, None])
            sound(server.data)
            self.restore("--from", backup, "--log", self.archive, "--log", os.path.join(server.data, "log"), "--data", self.path("restored"))
            sound(self.path("restored"))
            with Server(data=self.path("restored")) as restored:
                self.assertEqual([hit["_source"] for hit in restored.must("GET", "/a/_search?sort=n")["hits"]["hits"]], [{"n": 1}, {"n": 2}])
            with socket.create_server(("127.0.0.1", 0)) as taken:
                done = subprocess.run([PROGRAM, "serve", "--data", server.data, "--listen", "127.0.0.1:%d" % taken.getsockname()[1]],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertIn("Address already in use", done.stdout)
            self.assertEqual(done.returncode, 1, done.stdout)
            server.start()
            waiting = wait()
            server.stop()
            for request in waiting:
                request.join()
            sound(server.data, "--replay", backup, "--log", self.archive)
            sound(server.data, "--replay-all", "--log", self.archive)

    def test_store_without_checkpoint(self):
        """All of it is in the log, so there is nothing to compare with a replay; that is no difference."""
        with self.server() as server:
            server.must("PUT", "/a/_doc/1", {"n": 1})
            server.kill()
            status, output = self.check(server.data, "--replay-all")
            self.assertEqual(status, 1)
            self.assertIn("nothing was compared: the store has no checkpoint yet", output)
            self.assertNotIn("differ", output)
            server.start()
            server.stop()
            status, output = self.check(server.data, "--replay-all")
            self.assertEqual(status, 0, output)

    def test_directory_that_is_no_backup(self):
        """The error names the directory that was given, not a copy of it, and nothing is left."""
        with self.server() as server:
            server.must("PUT", "/a/_doc/1", {"n": 1})
            server.stop()
            empty, log = self.path("empty"), os.path.join(server.data, "log")
            os.mkdir(empty)
            for backup in (self.path("none"), empty):
                status, output = self.check(server.data, "--replay", backup)
                self.assertEqual((status, "tidelock: %s is not a backup" % backup in output), (1, True), output)
                self.assertFalse(os.path.exists(server.data + ".replayed"))
                done = subprocess.run([PROGRAM, "restore", "--from", backup, "--log", log, "--data", self.path("made")], stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual((done.returncode, "tidelock: %s is not a backup" % backup in done.stderr), (1, True), done.stderr)
                self.assertFalse(os.path.exists(self.path("made")))
            with open(os.path.join(empty, "FORMAT"), "w", encoding="ascii") as form:
                form.write("unreadable")
            for arguments in (["check", "--data", server.data, "--replay", empty], ["restore", "--from", empty, "--log", log, "--data", self.path("made")]):
                done = subprocess.run([PROGRAM, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, check=False)
                said = done.stdout + done.stderr
                self.assertIn("%s/FORMAT does not hold a format number" % empty, said)
                self.assertNotIn(self.path("made"), said)
                self.assertNotIn(".replayed", said)

    def test_log_of_another_build(self):
        """A data directory that build 0.1.0-core2 left, which did not name itself in its log: its writes are not compared, its state is."""
        with tarfile.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded", "log_core2.tar.xz")) as recorded:
            recorded.extractall(self.path("old"))
        status, output = self.check(self.path("old"), "--replay-all")
        self.assertEqual(status, 0, output)
        self.assertIn("another build wrote the log up to entry 31; the writes of those entries were not compared", output)


class Archive(Case):
    def test_retention(self):
        with self.server("--log-keep", "20mb") as server:
            self.write_until(server, lambda: self.numbers()[-1:] >= [4])
            until(lambda: len(self.numbers()) == 2, "the oldest have gone")
            first, second = self.numbers()
            self.assertEqual(second, first + 1)
            self.assertGreater(first, 2)

    def numbers(self):
        return [int(name.split(".")[0], 16) for name in self.segments(self.archive)]

    def test_full_archive(self):
        """The archive is on another disk. While it is full the log grows; no request is delayed, and no segment is missing later."""
        with SmallDisk() as disk:
            self.archive = os.path.join(disk.folder, "archive")
            with self.server() as server:
                server.must("PUT", "/a/_doc/1", {"n": 1})
                server.must("POST", "/_backup/b")
                self.write_until(server, lambda: self.segments(self.archive))
                disk.fill()
                # No more is written while it waits for the server, or a delay of that would fill the archive again.
                self.write_until(server, lambda: len(self.segments(os.path.join(server.data, "log"))) > 3)
                until(lambda: "the archive of the log takes nothing" in server.errors(), "a segment was refused")
                self.assertEqual(server.ask("PUT", "/a/_doc/2", {"n": 2})[0], 201)
                disk.make_room()
                self.write_much(server, 300)  # three times --write-buffer: a checkpoint follows, and with it the next attempt
                until(lambda: "takes segments again" in server.errors(), "a segment was taken")
                self.assertEqual(server.errors().count("takes nothing"), 1)
                end = documents(server)
                server.stop()
                self.restore("--from", self.path("backups", "b"), "--log", self.archive, "--log", os.path.join(server.data, "log"), "--data", self.path("data"))
                with Server(data=self.path("data")) as restored:
                    self.assertEqual(documents(restored), end)

    def test_refused(self):
        def start(*options, status=1):
            done = subprocess.run([PROGRAM, "serve", "--data", self.path("data"), "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, status, done.stdout)
            return done.stdout
        self.assertIn("--log-keep needs --log-archive", start("--log-keep", "1d", status=64))
        self.assertIn("must be more than 0", start("--log-keep", "0", "--log-archive", self.archive, status=64))
        self.assertIn("soon", start("--log-keep", "soon", "--log-archive", self.archive, status=64))
        self.assertIn("it is the folder of the log itself", start("--log-archive", self.path("data", "log")))
        self.assertIn("Not a directory", start("--log-archive", "/dev/null/x"))


if __name__ == "__main__":
    unittest.main()
