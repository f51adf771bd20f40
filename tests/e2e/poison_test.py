#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A command whose log entry ends the server: after the second end a start is refused; --skip-entry skips the entry, --retry-entry
tries it again.

Method: a preloaded library (poison_shim.c) ends the process when a document with the word is given to the store, which is while
its entry is applied, in normal operation and in a replay. So for the server it is a fault of its own, or a kill from outside, as
the test chooses.
"""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import BUILD, PROGRAM, Server, check, has_shared_rocksdb  # noqa: E402

SHIM = os.path.join(BUILD, "tests", "e2e", "poison_shim.so")


class Poison(unittest.TestCase):
    def setUp(self):
        if not has_shared_rocksdb():
            self.skipTest("the program has no RocksDB as a shared library")
        assert os.path.exists(SHIM), SHIM + " is not built"
        descriptor, self.switch = tempfile.mkstemp(prefix="tidelock-poison-")
        os.close(descriptor)
        self.addCleanup(os.unlink, self.switch)
        self.make_poisonous("")
        self.folder = tempfile.mkdtemp(prefix="tidelock-poison-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.server = Server("--backups", os.path.join(self.folder, "backups"), "--log-archive", os.path.join(self.folder, "archive"), environment={
            "LD_PRELOAD": SHIM, "TIDELOCK_TEST_POISON": self.switch,
            "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}).start()
        self.addCleanup(self.server.close)
        for i in range(20):
            self.server.must("PUT", "/fs/_doc/%d" % i, {"v": i})

    def make_poisonous(self, how):
        with open(self.switch, "w", encoding="ascii") as switch:
            switch.write(how)

    def put_poison(self, *more):
        """A bulk that the server does not survive. Returns: the signal that ended it."""
        lines = []
        for name, document in [("before", {"v": 1}), ("bad", {"word": "poison"}), ("after", {"v": 2}), *more]:
            lines += [{"index": {"_index": "fs", "_id": name}}, document]
        body = "".join(json.dumps(line) + "\n" for line in lines)
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.server.request("POST", "/_bulk", body)
        return self.wait()

    def wait(self):
        """Until the server has ended by itself. Returns: the signal; 0 or less: its exit status, negative."""
        status = self.server.process.wait()
        self.server.process.stdout.close()
        self.server.process = None  # that it crashed is expected
        self.server.hang_up()
        return -status

    def start(self, *options):
        """Starts a server that ends before it answers. Returns: its signal, or its exit status, negative; its log."""
        output = len(self.server.errors())
        self.server.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.server.data, "--listen", "127.0.0.1:0", *self.server.options, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.server.log, env=self.server.environment, text=True)
        self.assertEqual(self.server.process.stdout.readline(), "", "it answers")
        return self.wait(), self.server.errors()[output:]

    def start_with(self, *options):
        """Starts a server that answers. Returns: its log."""
        own, output = self.server.options, len(self.server.errors())
        self.server.options = own + list(options)
        self.server.start()
        self.server.options = own
        return self.server.errors()[output:]

    def refused(self, *options):
        """Returns: the entry that the refusal of a start names, and the refusal."""
        status, log = self.start(*options)
        self.assertEqual(status, -1, log)
        found = re.search(r"ended \d+ times while it decoded or applied entry (\d+) of the log", log)
        self.assertIsNotNone(found, log)
        return int(found.group(1)), log

    def source(self, name):
        return self.server.must("GET", "/fs/_doc/" + name)["_source"]

    def missing(self, name):
        return self.server.ask("GET", "/fs/_doc/" + name)[0] == 404

    def everything_else_is_there(self):
        self.assertEqual([self.source(str(i)) for i in range(20)], [{"v": i} for i in range(20)])
        self.assertTrue(all(self.missing(name) for name in ("before", "bad", "after")), "all of the entry is left out")

    def poisoned(self, how):
        """Returns: the entry that is refused."""
        self.make_poisonous(how)
        self.assertEqual(self.put_poison(), {"abort": signal.SIGABRT, "fault": signal.SIGSEGV, "kill": signal.SIGKILL}[how])
        first = self.check_where_it_ends()
        status, log = self.start()
        self.assertGreater(status, 0, log)
        self.assertIn("and applies it again now", log)
        entry, log = self.refused()
        self.assertEqual(first, entry)
        for output in ("command 1 of 1: write (index) [fs/before] and 2 more documents", "--skip-entry %d" % entry, "--retry-entry %d" % entry,
                     "No client was answered"):
            self.assertIn(output, log)
        self.assertEqual(self.refused()[0], entry, "it is refused as often as it is asked")
        checked, output = check(self.server.data)
        self.assertEqual((checked, "the server has ended in entry %d" % entry in output), (0, True), output)
        return entry

    def check_where_it_ends(self):
        """A check, which would end in the entry as the server did, verifies the state before it. Returns: the entry."""
        run = subprocess.run([PROGRAM, "check", "--data", self.server.data], capture_output=True, text=True, check=False, env=self.server.environment)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("index fs: 20 documents", run.stdout)
        return int(re.search("the server has ended in entry ([0-9]+) of the log, so that one", run.stdout).group(1))

    def check(self):
        """A start that is killed, one more, and an end in order; what there is makes sense."""
        self.server.must("PUT", "/fs/_doc/later", {"v": 99})
        self.server.kill()
        self.server.start()
        self.everything_else_is_there()
        self.assertEqual(self.source("later"), {"v": 99})
        self.server.stop()
        status, output = check(self.server.data)
        self.assertEqual(status, 0, output)
        self.server.start()
        self.everything_else_is_there()

    def test_second_crash_refuses_start_until_skipped(self):
        self.server.must("POST", "/_backup/before")
        session = self.server.must("POST", "/_session", {"ttl": "5m"})["session"]
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs", "id": "3"}]})
        entry = self.poisoned("abort")
        self.assertEqual(check(self.server.data)[0], 0, "what lies on the disk is sound")
        log = self.start_with("--skip-entry", str(entry))
        self.assertIn("entry %d of the log is left out from now on" % entry, log)
        self.everything_else_is_there()
        self.assertEqual([held["id"] for held in self.server.must("GET", "/_lock")["locks"]], ["3"])
        self.server.must("PUT", "/fs/_doc/next", {"v": 7})
        self.server.kill()
        log = self.start_with("--skip-entry", str(entry))  # as a unit file that was not changed back
        self.assertIn("entry %d of the log is left out (--skip-entry)" % entry, log)
        self.assertIn("the option can go", log)
        self.assertEqual(self.source("next"), {"v": 7})
        self.check()
        self.server.stop()
        run = subprocess.run([PROGRAM, "check", "--data", self.server.data, "--replay", os.path.join(self.folder, "backups", "before"),
                              "--log", os.path.join(self.folder, "archive")], capture_output=True, text=True, check=False, env=self.server.environment)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("produce the state of the directory", run.stdout)
        self.restore_and_look()

    def restore_and_look(self):
        """A restore of a backup and the log skips the entry, too."""
        restored = os.path.join(self.folder, "restored")
        subprocess.run([PROGRAM, "restore", "--from", os.path.join(self.folder, "backups", "before"), "--log", os.path.join(self.folder, "archive"),
                        "--log", os.path.join(self.server.data, "log"), "--data", restored], capture_output=True, check=True)
        with Server(data=restored, environment=self.server.environment) as other:
            self.assertEqual(other.ask("GET", "/fs/_doc/bad")[0], 404)
            self.assertEqual(other.must("GET", "/fs/_doc/later")["_source"], {"v": 99})
        os.unlink(restored + ".log")

    def test_fault_of_the_server(self):
        entry = self.poisoned("fault")
        self.start_with("--skip-entry", str(entry))
        self.everything_else_is_there()
        self.check()

    def test_external_kill_can_be_retried(self):
        """A kill -9 by an operator or the kernel counts, too, and the refusal names the remedy. With more memory the entry is applied."""
        entry = self.poisoned("kill")
        status, log = self.start("--retry-entry", str(entry))
        self.assertEqual(status, signal.SIGKILL, log)
        self.assertEqual(self.refused()[0], entry, "it is one try more")
        self.make_poisonous("")
        self.start_with("--retry-entry", str(entry))
        self.assertEqual([self.source(name) for name in ("before", "bad", "after")], [{"v": 1}, {"word": "poison"}, {"v": 2}])
        self.server.kill()
        self.assertIn("the option can go", self.start_with("--retry-entry", str(entry)))

    def test_one_crash_does_not_refuse_start(self):
        self.make_poisonous("abort")
        self.put_poison()
        self.make_poisonous("")
        self.start_with()
        self.assertEqual(self.source("bad"), {"word": "poison"})

    def test_entry_can_be_skipped_after_one_crash(self):
        """An operator can skip the entry before a second crash."""
        self.make_poisonous("abort")
        self.put_poison()
        log = self.start("--skip-entry", "1")[1]
        self.assertIn("the server did not end in entry 1,", log)
        entry = self.refused()[0]
        self.start_with("--skip-entry", str(entry))
        self.check()

    def test_applied_entry_is_not_skipped(self):
        """An entry that other entries follow was answered: a later version of the server, say, ends in it."""
        self.server.must("PUT", "/fs/_doc/bad", {"word": "poison"})
        self.server.must("PUT", "/fs/_doc/behind", {"v": 1})
        self.server.kill()
        self.make_poisonous("abort")
        for _ in range(2):
            self.assertEqual(self.start()[0], signal.SIGABRT)
        entry, log = self.refused()
        self.assertIn("cannot be left out", log)
        self.assertNotIn("--skip-entry", log)
        self.assertEqual(self.refused("--skip-entry", str(entry))[0], entry)
        self.make_poisonous("")
        self.start_with("--retry-entry", str(entry))
        self.assertEqual((self.source("bad"), self.source("behind")), ({"word": "poison"}, {"v": 1}))

    def test_two_consecutive_entries(self):
        """What follows an entry that is left out may be left out, too."""
        first = self.poisoned("abort")
        self.start_with("--skip-entry", str(first))
        self.assertEqual(self.put_poison(), signal.SIGABRT)
        self.assertEqual(self.start()[0], signal.SIGABRT)
        second = self.refused()[0]
        self.assertGreater(second, first)
        self.start_with("--skip-entry", str(second))
        self.everything_else_is_there()
        self.check()

    def test_crash_page_of_another_log_is_ignored(self):
        """What the page says of a log that is not this one counts for nothing."""
        self.poisoned("abort")
        self.make_poisonous("")
        with Server() as other:
            other.must("PUT", "/fs/_doc/1", {"v": 1})
            other.stop()
            shutil.copy(os.path.join(self.server.data, "at-work"), os.path.join(other.data, "at-work"))
            other.start()
            self.assertEqual(other.must("GET", "/fs/_doc/1")["_source"], {"v": 1})
        os.unlink(os.path.join(self.server.data, "at-work"))
        self.server.start()

    def test_invalid_options(self):
        self.server.stop()
        for options, output in ((["--skip-entry", "0"], "is not a number from 1"), (["--skip-entry", "1", "--retry-entry", "1"], "one or the other")):
            status, log = self.start(*options)
            self.assertEqual(status, -64, log)
            self.assertIn(output, log)
        self.server.start()


if __name__ == "__main__":
    unittest.main(verbosity=2)
