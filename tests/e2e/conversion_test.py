#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A data directory of format 1 or 2 is converted at the start, with its content, also if the server is killed at any point of it.

Method: a preloaded library (kill_shim.c) ends the server as kill -9 does before its k-th change of a file in the directory, for k = 1, 2, 3 and so on, until
a server converts the directory and ends in good order. After each kill the next start must have what a conversion without a kill has: indices, documents with
their versions, sessions, locks. Then once more: the start after a kill is killed as well. The older directories are ones that such versions left.
Each point is tried with TIDELOCK_TEST_LONG; else some.
"""
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import BUILD, PROGRAM, ROOT, Server, check_sound  # noqa: E402

SHIM = os.path.join(BUILD, "tests", "e2e", "kill_shim.so")
FORMAT1 = os.path.join(ROOT, "tests", "unit", "store", "format1")
FORMAT2 = os.path.join(ROOT, "tests", "unit", "store", "format2")
LONG = os.environ.get("TIDELOCK_TEST_LONG")
CONTENT = {1: (5, 2, 3), 2: (1, 1, 2)}  # indices with documents, sessions, locks
HANGS = 300  # seconds
# Of the points at which a conversion is killed: without TIDELOCK_TEST_LONG so many, spread over all.
SOME = 3


def rocksdb_major():
    """Returns: the version of RocksDB that the program is linked with; 0: a static one."""
    linked = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    found = re.search(r"librocksdb\.so\.(\d+)", linked)
    return int(found.group(1)) if found else 0


def setUpModule():
    """The older directories have a log of RocksDB 7, which RocksDB 8 and newer do not read: they are refused, and stay as they are."""
    if rocksdb_major() < 8:
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack("stopped", folder)
        data = os.path.join(folder, "data")
        before = {path: os.path.getsize(os.path.join(data, "rocks", path)) for path in os.listdir(os.path.join(data, "rocks"))}
        done = subprocess.run([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0"], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "start this version on it there once, since RocksDB 8 and newer do not read its log" in done.stderr, done.stderr
        assert {path: os.path.getsize(os.path.join(data, "rocks", path)) for path in before} == before
    raise unittest.SkipTest("RocksDB 8 and newer do not read the logs of directories of format 1 and 2")


def documents_of(server, index):
    hits = server.must("GET", "/%s/_search?size=1000&version=true&seq_no_primary_term=true" % index)["hits"]["hits"]
    return sorted(hits, key=lambda hit: hit["_id"])


def content_of(server):
    """Returns: all that a client can find in the server and that outlives it."""
    indices = server.must("GET", "/_all?expand_wildcards=all")
    sessions = server.must("GET", "/_session")["sessions"]
    for session in sessions:
        del session["expires"]
    return {"indices": indices, "documents": {index: documents_of(server, index) for index in indices},
            "sessions": sessions, "locks": server.must("GET", "/_lock")}


def unpack(name, folder):
    """Makes folder/data, as a program that wrote format 1 left it."""
    with tarfile.open(os.path.join(FORMAT1, name + ".tar.gz")) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # Python 3.11.2, of Debian 12, has no filters


class Conversion(unittest.TestCase):
    def setUp(self):
        assert os.path.exists(SHIM), SHIM + " is not built"
        self.folder = tempfile.mkdtemp(prefix="tidelock-conversion-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = os.path.join(self.folder, "data")
        self.count = os.path.join(self.folder, "count")

    def make_directory(self, number):
        """Makes a directory of an older format, closed in good order."""
        shutil.rmtree(self.data, ignore_errors=True)
        if number == 1:
            unpack("stopped", self.folder)
        else:
            shutil.copytree(FORMAT2, self.data)
        self.assertEqual(self.format(), "tidelock %d\n" % number)

    def format(self):
        with open(os.path.join(self.data, "FORMAT"), encoding="ascii") as file:
            return file.read()

    def find_content(self):
        """Returns: what a server that is started on the directory has."""
        server = Server(data=self.data).start()
        try:
            content = content_of(server)
            self.assertEqual(self.format(), "tidelock 3\n")
        finally:
            server.kill()
            server.close()
        return content

    def run_until_killed(self, at):
        """Starts a server that is killed at its change number `at`, and ends it in good order once it answers. Returns: whether it was killed."""
        environment = dict(os.environ, LD_PRELOAD=SHIM, TIDELOCK_TEST_KILL_FOLDER=self.data, TIDELOCK_TEST_KILL_AT=str(at),
                           TIDELOCK_TEST_KILL_COUNT=self.count,
                           ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))
        with open(os.path.join(self.folder, "log"), "w+", encoding="utf-8") as log:
            process = subprocess.Popen([PROGRAM, "serve", "--data", self.data, "--listen", "127.0.0.1:0"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
            if process.stdout.readline():
                process.terminate()
            status = process.wait()
            process.stdout.close()
            log.seek(0)
            self.assertIn(status, (0, -signal.SIGKILL), log.read())
        return status != 0

    def kill_at(self, number, at, expected):
        """Returns: whether the server was killed."""
        self.make_directory(number)
        killed = self.run_until_killed(at)
        # The start that follows is killed, too, at the same number, so mostly elsewhere in the work.
        if killed and at % 2 == 0:
            self.run_until_killed(at)
        self.assertEqual(self.find_content(), expected, "killed before change %d" % at)
        return killed

    def count_changes(self, number):
        """Returns: how many changes of files a conversion, and an end in good order, make."""
        self.make_directory(number)
        self.assertFalse(self.run_until_killed(0))
        with open(self.count, encoding="ascii") as file:
            return int(file.read())

    def kill_everywhere(self, number):
        self.make_directory(number)
        expected = self.find_content()
        check_sound(self.data)
        self.assertEqual((len(expected["documents"]), len(expected["sessions"]), len(expected["locks"]["locks"])), CONTENT[number], expected)
        if not LONG:
            count = self.count_changes(number)
            for part in range(SOME):
                at = max(1, count * (2 * part + 1) // (2 * SOME))
                self.assertTrue(self.kill_at(number, at, expected), at)
            return
        at = 1
        while self.kill_at(number, at, expected):
            at += 1
        print("format %d: killed before each of %d changes" % (number, at - 1), flush=True)
        self.assertGreater(at, 50)

    def test_format_1(self):
        self.kill_everywhere(1)

    def test_format_2(self):
        self.kill_everywhere(2)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def add_record(data, key, value):
    """Adds a record to the space of the system, as the older program did: to RocksDB's WAL, a batch of one, and the WAL's end to SYNCED."""
    with open(os.path.join(data, "SYNCED"), "rb") as file:
        sequence = struct.unpack("<Q", file.read(8))[0] + 1
    batch = struct.pack("<QIBB", sequence, 1, 1, len(key)) + key + bytes([len(value)]) + value
    crc = crc32c(b"\1" + batch)
    with open(os.path.join(data, "rocks", "000004.log"), "ab") as file:
        file.write(struct.pack("<IHB", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff, len(batch), 1) + batch)
    with open(os.path.join(data, "SYNCED"), "wb") as file:
        file.write(struct.pack("<QQ", sequence, sequence ^ (1 << 64) - 1))


def files_of(data):
    """Returns: each file's content by its name, but for what RocksDB logs about itself."""
    found = {}
    for folder, _, names in os.walk(data):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.relpath(os.path.join(folder, name), data)] = file.read()
    return {name: content for name, content in found.items() if not name.startswith("rocks/LOG")}


class Refused(unittest.TestCase):
    """A directory whose records cannot be read stays as it was, so that the older program opens it still."""

    def check(self, record, refused):
        folder = tempfile.mkdtemp(prefix="tidelock-conversion-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        data = os.path.join(folder, "data")
        shutil.copytree(FORMAT2, data)
        add_record(data, *record)
        before = files_of(data)
        if not refused:
            server = Server(data=data).start()
            self.assertNotEqual(files_of(data)["FORMAT"], before["FORMAT"])
            server.close()
            return
        for _ in range(2):
            ended = subprocess.run([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True, check=False, timeout=HANGS)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn("is of format 2, and its content cannot be read, so it is not converted: start the version that wrote it", ended.stderr)
            self.assertEqual(files_of(data), before)

    def test_session(self):
        self.check((b"Sdamaged", b"\xff"), True)

    def test_transaction(self):
        """One that was open: its record is read by the conversion alone."""
        self.check((b"Bdamaged", b"\1"), True)

    def test_record_that_no_one_reads(self):
        self.check((b"~", b"\1"), False)


class FirstFormat(unittest.TestCase):
    """All that a program of format 1 had stored is there after the conversion, and works."""

    def open(self, name):
        folder = tempfile.mkdtemp(prefix="tidelock-conversion-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        unpack(name, folder)
        self.data = os.path.join(folder, "data")
        server = Server(data=self.data).start()
        self.addCleanup(server.close)
        return server

    def ids_of(self, server, path, query):
        hits = server.must("GET", path + "/_search", {"size": 100, "query": query})["hits"]["hits"]
        return sorted(hit["_id"] for hit in hits)

    def check_documents(self, server):
        hits = {hit["_id"]: hit for hit in documents_of(server, "fs")}
        self.assertEqual({i: (hit["_version"], hit["_seq_no"]) for i, hit in hits.items()}, {"1": (1, 0), "2": (1, 1), "3": (1, 2), "4": (2, 6)})
        self.assertEqual(hits["4"]["_source"], {"name": "four", "path": "/d/four", "size": 40, "changed": "2026-01-04", "note": "Some words about /d/four"})
        self.assertEqual(sorted((hit["_type"], hit["_id"]) for hit in documents_of(server, "books")), [("novel", "1"), ("novel", "3"), ("poem", "1")])
        self.assertEqual(server.must("GET", "/many/_count")["count"], 20)
        self.assertEqual(server.must("GET", "/even/_count")["count"], 10)
        self.assertEqual(self.ids_of(server, "/files", {"term": {"path.tree": "/a/b"}}), ["1", "2"])
        self.assertEqual(self.ids_of(server, "/files", {"match": {"note": "words"}}), ["1", "2", "3", "4"])
        self.assertEqual(self.ids_of(server, "/files", {"range": {"size": {"gte": 3}}}), ["3", "4"])
        self.assertEqual(self.ids_of(server, "/files", {"range": {"changed": {"lt": "2026-01-03"}}}), ["1", "2"])

    def check_catalog(self, server):
        self.assertEqual(server.must("GET", "/_alias/files"), {"fs": {"aliases": {"files": {}}}})
        self.assertEqual(server.must("GET", "/_template/logs")["logs"]["mappings"], {"properties": {"at": {"type": "date"}}})
        self.assertEqual(server.must("GET", "/_scripts/add")["script"]["source"], "ctx._source.n += params.by")
        self.assertEqual(server.must("GET", "/_cluster/settings")["persistent"], {"action": {"auto_create_index": "-private-*,*"}})
        self.assertEqual(server.ask("PUT", "/private-1/_doc/1", {})[0], 404)

    def check_transactions(self, server, ids):
        """The one that was open has been rolled back; a repeated commit of the other one is answered as before."""
        self.assertEqual(server.must("GET", "/_transaction")["transactions"], [])
        lost = server.must("GET", "/_transaction/" + ids["open"])
        self.assertEqual((lost["state"], lost["cause"]), ("rolled_back", "the server was restarted"))
        self.assertTrue(server.must("POST", "/_transaction/%s/_commit" % ids["committed"])["committed"])
        again = server.must("POST", "/_transaction", {"mode": "update", "retry_of": ids["open"]})["transaction"]
        server.must("POST", "/_transaction/%s/_rollback" % again)

    def check_locks(self, server, ids):
        names = {(lock["index"], lock.get("path"), lock.get("id")): [(holder["name"], holder["mode"]) for holder in lock["holders"]]
                 for lock in server.must("GET", "/_lock")["locks"]}
        self.assertEqual(names, {("fs", "/a/b", None): [("editor", "exclusive")], ("books", None, "1"): [("reader", "shared")],
                                 ("many", None, None): [("reader", "update")]})
        self.assertEqual(server.ask("PUT", "/fs/_doc/1?timeout=0s", {"path": "/a/b/one"})[0], 409)
        self.assertEqual(server.must("PUT", "/fs/_doc/1?session=" + ids["editor"], {"path": "/a/b/one"})["_version"], 2)
        script = {"script": {"id": "add", "params": {"by": 5}}}
        self.assertEqual(server.must("POST", "/many/_doc/3/_update?session=" + ids["reader"], script)["_version"], 2)
        self.assertEqual(server.must("GET", "/many/_doc/3")["_source"]["n"], 8)

    def check_ends_of_sessions(self, server, ids):
        server.must("DELETE", "/_session/" + ids["reader"])
        self.assertEqual(server.must("GET", "/presence/_count")["count"], 0)
        server.must("DELETE", "/_session/%s?force=true" % ids["editor"])
        until = time.monotonic() + HANGS
        while server.ask("GET", "/many/_doc/19")[0] != 404:  # deleted by its on_expire
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        self.assertEqual(server.must("GET", "/_lock")["locks"], [])

    def check(self, name):
        server = self.open(name)
        ids = server.must("GET", "/known/_doc/ids")["_source"]
        with open(os.path.join(self.data, "FORMAT"), encoding="ascii") as file:
            self.assertEqual(file.read(), "tidelock 3\n")
        self.assertIn("was of format 1 and is of format 3 now", server.errors())
        self.check_documents(server)
        self.check_catalog(server)
        self.check_transactions(server, ids)
        self.check_locks(server, ids)
        server.kill()
        server.start()
        self.check_transactions(server, ids)
        self.check_ends_of_sessions(server, ids)
        server.stop()
        check_sound(self.data)

    def test_stopped(self):
        self.check("stopped")

    def test_killed(self):
        """Killed while it was idle: its log ends where it was synced."""
        self.check("killed")


if __name__ == "__main__":
    unittest.main()
