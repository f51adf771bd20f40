#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tidelock backup` and POST /_backup/{name} (docs/operating.md, "Backup"): a backup is a data directory with all writes that
were acknowledged before it was requested. It is complete or does not exist, and clients write meanwhile. It may contain later
writes: of each writer a prefix, without gaps.
"""
import contextlib
import fcntl
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
from waiting import until  # noqa: E402

LONG = bool(os.environ.get("TIDELOCK_TEST_LONG"))  # more restarts
WRITERS = 6


class Writer(threading.Thread):
    """Puts documents one after the other, and knows which were acknowledged."""
    def __init__(self, server, number):
        super().__init__()
        self.server, self.number, self.acknowledged, self.over = server, number, 0, False
        self.start()

    def run(self):
        with contextlib.closing(self.server.connect()) as connection, contextlib.suppress(OSError, http.client.HTTPException):
            while not self.over:
                body = json.dumps({"writer": self.number, "n": self.acknowledged, "text": "x" * 500})
                connection.request("PUT", "/w/_doc/%d-%d" % (self.number, self.acknowledged), body, {"Content-Type": "application/json"})
                reply = connection.getresponse()
                reply.read()
                if reply.status != 201:
                    return
                self.acknowledged += 1

    def end(self):
        self.over = True
        self.join()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-backups-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def server(self, *options, **more):
        return Server("--backups", self.folder, *options, **more)

    def path(self, name):
        return os.path.join(self.folder, name)

    def check_sound(self, name):
        done = subprocess.run([PROGRAM, "check", "--data", self.path(name)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def refused(self, server, name, status, reason):
        code, reply = server.ask("POST", "/_backup/" + name)
        self.assertEqual(code, status, reply)
        self.assertIn(reason, reply["error"]["reason"])


class Backup(Case):
    def documents(self, server):
        """By writer, the numbers that are there."""
        server.must("POST", "/w/_refresh")
        found = {}
        body = {"size": 10000, "_source": ["writer", "n"], "sort": ["writer", "n"]}
        while True:
            hits = server.must("POST", "/w/_search", body)["hits"]["hits"]
            for hit in hits:
                found.setdefault(hit["_source"]["writer"], []).append(hit["_source"]["n"])
            if not hits:
                return found
            body["search_after"] = hits[-1]["sort"]

    def check_copy(self, name, acknowledged, restarts=True):
        self.check_sound(name)
        with Server(data=self.path(name)) as copy:
            for kill in (False, True) if restarts else ():
                found = self.documents(copy)
                for writer, count in enumerate(acknowledged):
                    there = found.get(writer, [])
                    self.assertEqual(there, list(range(len(there))), "a write is missing below another")
                    self.assertGreaterEqual(len(there), count)
                copy.must("PUT", "/w/_doc/new", {"after": kill})
                copy.kill() if kill else copy.stop()
                copy.start()
                self.assertEqual(copy.must("GET", "/w/_doc/new")["_source"], {"after": kill})
                copy.must("DELETE", "/w/_doc/new")

    def test_backup_during_writes_has_acknowledged_prefix(self):
        with self.server("--write-buffer", "4m") as server:  # many checkpoints
            server.must("PUT", "/w", {"mappings": {"properties": {"writer": {"type": "integer"}, "n": {"type": "integer"}}}})
            writers = [Writer(server, number) for number in range(WRITERS)]
            taken = []
            for name in "first", "second", "third":
                enough = sum(writer.acknowledged for writer in writers) + 300
                until(lambda enough=enough: sum(writer.acknowledged for writer in writers) >= enough, "the writers went on")
                acknowledged = [writer.acknowledged for writer in writers]
                reply = server.must("POST", "/_backup/" + name)
                self.assertEqual((reply["acknowledged"], reply["backup"]), (True, name))
                self.assertGreater(reply["size_in_bytes"], 0)
                taken.append((name, acknowledged))
            for writer in writers:
                writer.end()
            self.assertEqual(sorted(os.listdir(self.folder)), ["first", "second", "third"])
            self.assertEqual(os.stat(self.path("first")).st_mode & 0o777, 0o700)
            for name, acknowledged in taken:
                self.check_copy(name, acknowledged, LONG or name == "third")  # each is such a directory as this one
            self.assertEqual({writer.number: list(range(writer.acknowledged)) for writer in writers}, self.documents(server), "the original is as it was")

    def test_owners(self):
        """A backup contains sessions and their locks. Open update transactions continue in the original, and are rolled back in the copy, with the reason."""
        with self.server() as server:
            session = server.must("POST", "/_session", {"ttl": "10m", "name": "night"})["session"]
            server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]})
            transaction = server.must("POST", "/_transaction", {"timeout": "5m"})["transaction"]
            server.must("PUT", "/w/_doc/2?transaction=" + transaction, {"open": True})
            server.must("PUT", "/w/_doc/3", {"open": False})
            server.must("POST", "/_backup/b")
            server.must("POST", "/_transaction/%s/_commit" % transaction)
            self.assertEqual(server.ask("GET", "/w/_doc/2")[0], 200)
            with Server(data=self.path("b")) as copy:
                self.assertEqual(copy.must("GET", "/_lock")["locks"][0]["holders"][0]["name"], "night")
                self.assertEqual(copy.ask("PUT", "/w/_doc/1?timeout=0s", {})[0], 409)
                self.assertEqual(copy.ask("PUT", "/w/_doc/1?session=" + session, {})[0], 201)
                self.assertEqual(copy.ask("GET", "/w/_doc/2")[0], 404)
                status, reply = copy.ask("POST", "/_transaction/%s/_commit" % transaction)
                self.assertEqual((status, reply["error"]["type"]), (409, "transaction_aborted_exception"))
                self.assertEqual(copy.ask("GET", "/w/_doc/3")[0], 200)

    def test_empty(self):
        with self.server() as server:
            server.must("POST", "/_backup/b")
        self.check_sound("b")
        with Server(data=self.path("b")) as copy:
            copy.must("PUT", "/w/_doc/1", {})

    def test_backup_of_a_backup(self):
        with self.server() as server:
            server.must("PUT", "/w/_doc/1", {"n": 1})
            server.must("POST", "/_backup/one")
        with self.server(data=self.path("one")) as server:
            server.must("PUT", "/w/_doc/2", {"n": 2})
            server.must("POST", "/_backup/two")
        with Server(data=self.path("two")) as server:
            self.assertEqual([server.must("GET", "/w/_doc/%d" % n)["_source"]["n"] for n in (1, 2)], [1, 2])

    def test_scripts(self):
        with self.server() as server:
            os.mkdir(os.path.join(server.data, "scripts"))
            with open(os.path.join(server.data, "scripts", "one.painless"), "w", encoding="utf-8") as file:
                file.write("ctx._source.n++")
            os.symlink("/etc/passwd", os.path.join(server.data, "scripts", "link.painless"))
            server.must("POST", "/_backup/b")
        self.assertEqual(os.listdir(self.path("b/scripts")), ["one.painless"])

    def test_concurrent_backups(self):
        """Of one name one is made; of several all."""
        with self.server() as server:
            server.must("PUT", "/w/_doc/1", {})
            answers = []

            def ask(name):
                with contextlib.closing(server.connect()) as connection:
                    connection.request("POST", "/_backup/" + name, headers={"Content-Type": "application/json"})
                    reply = connection.getresponse()
                    answers.append((name, reply.status, reply.read()))

            threads = [threading.Thread(target=ask, args=(name,)) for name in ["same"] * 4 + ["a", "b"]]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(status for name, status, _ in answers if name == "same"), [200, 400, 400, 400])
            self.assertEqual([status for name, status, _ in answers if name != "same"], [200, 200])
            self.assertEqual(sorted(os.listdir(self.folder)), ["a", "b", "same"])
        for name in "a", "b", "same":
            self.check_sound(name)

    def test_kill_during_backup_leaves_complete_or_none(self):
        """A backup under its final name is complete; the next start removes others."""
        rng = random.Random(7)
        with self.server() as server:
            server.must("PUT", "/w/_doc/0", {"text": "x" * 1000})
            for turn in range(12 if LONG else 8):
                thread = threading.Thread(target=lambda number=turn: self.ask_and_forget(server, "b%d" % number))
                thread.start()
                time.sleep(rng.random() * 0.08)
                server.kill()
                thread.join()
                server.start()
                self.assertEqual([name for name in os.listdir(self.folder) if not name.startswith("b")], [])
            for name in os.listdir(self.folder):
                self.check_sound(name)
            server.must("POST", "/_backup/after")
            self.check_sound("after")

    @staticmethod
    def ask_and_forget(server, name):
        with contextlib.closing(server.connect()) as connection, contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/_backup/" + name, headers={"Content-Type": "application/json"})
            connection.getresponse().read()

    def test_backup_survives_deletion_of_original(self):
        """Hard links make a backup independent of the original."""
        with self.server() as server:
            for number in range(200):
                server.must("PUT", "/w/_doc/%d" % number, {"n": number})
            server.must("POST", "/_backup/b")
            server.must("DELETE", "/w")
            server.must("POST", "/_forcemerge")
        with Server(data=self.path("b")) as copy:
            self.assertEqual(copy.must("GET", "/w/_count")["count"], 200)

    def test_command(self):
        with self.server() as server:
            def run(*words):
                return subprocess.run([PROGRAM, "backup", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, TIDELOCK_URL=server.url))
            done = run("nightly")
            self.assertRegex(done.stdout, r"^nightly: everything up to timestamp \d+, \d+\.\d MB, in \d+\.\d s\n$")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(run("--json", "other").stdout)["backup"], "other")
            done = run("nightly")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "tidelock backup: backup [nightly] already exists\n"))
            self.assertEqual(run().returncode, 64)
            self.assertEqual(run("a", "b").returncode, 64)
            server.stop()
            self.assertEqual(run("late").returncode, 69)


class Refused(Case):
    def test_names(self):
        with self.server() as server:
            for name in (".", "..", ".hidden", "a%2Fb", "..%2Fb", "a%20b", "a%00b", "-a", "%C3%A4", "a" * 201):
                self.refused(server, name, 400, "is not a valid name of a backup")
            self.assertEqual(server.ask("GET", "/_backup/a")[0], 405)
            self.assertEqual(server.ask("POST", "/_backup/a?force=true")[0], 400)
            self.assertEqual(os.listdir(self.folder), [])
            server.must("POST", "/_backup/" + "a" * 200)
            with open(self.path("file"), "w", encoding="utf-8"):
                pass
            self.refused(server, "file", 400, "backup [file] already exists")

    def test_no_folder(self):
        with Server() as server:
            self.refused(server, "a", 400, "the server was started without [--backups DIR]")

    def start(self, *options):
        done = subprocess.run([PROGRAM, "serve", "--data", self.path("data"), "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stdout

    def test_folders(self):
        self.assertIn("it is in the data directory", self.start("--backups", self.path("data")))
        self.assertIn("it is in the data directory", self.start("--backups", self.path("data/backups")))
        os.symlink(self.path("data"), self.path("link"))
        self.assertIn("it is in the data directory", self.start("--backups", self.path("link/b")))
        self.assertIn("Not a directory", self.start("--backups", "/dev/null/b"))
        self.assertIn("No such file or directory", self.start("--backups", self.path("no/such")))

    def test_only_abandoned_leftovers_are_removed(self):
        """A start keeps other folders, and the backup that another server is making."""
        os.makedirs(self.path(".part-abc/copy/rocks"))
        os.makedirs(self.path("mine/.part-x"))
        with self.server() as server:
            self.assertEqual(os.listdir(self.folder), ["mine"])
            os.mkdir(self.path(".part-held"))
            held = os.open(self.path(".part-held"), os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
            server.stop()
            server.start()
            self.assertEqual(sorted(os.listdir(self.folder)), [".part-held", "mine"])
            os.close(held)

    def test_backup_to_another_disk_is_copied(self):
        """There it is copied. A disk that is full gets nothing, and the next one fits."""
        with SmallDisk() as disk, Server("--backups", os.path.join(disk.folder, "b")) as server:
            server.must("PUT", "/w/_doc/1", {"n": 1})
            server.must("POST", "/_backup/first")
            disk.fill(leave=2 << 20)
            self.refused(server, "second", 507, "no backup was made, the disk has no room for it")
            self.assertEqual(os.listdir(os.path.join(disk.folder, "b")), ["first"])
            self.assertEqual(server.must("GET", "/w/_doc/1")["_source"], {"n": 1})
            server.must("PUT", "/w/_doc/2", {})
            disk.make_room()
            server.must("POST", "/_backup/third")
            self.folder = os.path.join(disk.folder, "b")
            self.check_sound("first")
            self.check_sound("third")

    def test_stop_during_backup_completes_or_refuses(self):
        """SIGTERM: the backup is made, or refused; nothing hangs, and nothing is left."""
        with self.server() as server:
            for number in range(6):
                thread = threading.Thread(target=Backup.ask_and_forget, args=(server, "b%d" % number))
                thread.start()
                time.sleep(0.01 * number)
                self.assertEqual(server.stop(signal.SIGTERM), 0)
                thread.join()
                server.start()
            until(lambda: not any(name.startswith(".") for name in os.listdir(self.folder)), "nothing is left")
        for name in os.listdir(self.folder):
            self.check_sound(name)


if __name__ == "__main__":
    unittest.main()
