#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A data directory of format 1 or 2 is converted at the start, with its content, also if the server is killed at any point of it.

Method: a preloaded library (kill_shim.c) ends the server as kill -9 does before its k-th change of a file in the directory, for k = 1, 2, 3 and so on, until
a server converts the directory and ends in good order. After each kill the next start must have what a conversion without a kill has: indices, documents with
their versions, sessions, locks. Then once more: the start after a kill is killed as well. The older directory is one that such a version left.
Each point is tried with TIDELOCK_TEST_LONG; else some.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import BUILD, PROGRAM, ROOT, Server, check_sound  # noqa: E402

SHIM = os.path.join(BUILD, "tests", "e2e", "kill_shim.so")
FORMAT2 = os.path.join(ROOT, "tests", "unit", "store", "format2")
LONG = os.environ.get("TIDELOCK_TEST_LONG")
# Of the points at which a conversion is killed: without TIDELOCK_TEST_LONG so many, spread over all.
SOME = 3


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


class Conversion(unittest.TestCase):
    def setUp(self):
        assert os.path.exists(SHIM), SHIM + " is not built"
        self.folder = tempfile.mkdtemp(prefix="tidelock-conversion-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = os.path.join(self.folder, "data")
        self.count = os.path.join(self.folder, "count")

    def make_directory(self, number):
        """Makes a directory of an older format."""
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(FORMAT2, self.data)
        with open(os.path.join(self.data, "FORMAT"), "w", encoding="ascii") as file:
            file.write("tidelock %d\n" % number)

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
        self.assertEqual((len(expected["documents"]), len(expected["sessions"]), len(expected["locks"]["locks"])), (1, 1, 2), expected)
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


if __name__ == "__main__":
    unittest.main()
