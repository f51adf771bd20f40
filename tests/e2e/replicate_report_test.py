#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reported status of copies: GET /_changes/_consumers, /_cat/copies, `tidelock status`; of copies that run, have ended, are silent or stopped."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from replicate_test import without_rests  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
from waiting import stop_process, until  # noqa: E402


class Reported(unittest.TestCase):
    def setUp(self):
        self.source = Server("--history", "1h").start()
        self.addCleanup(self.source.close)

    def copies(self):
        return {copy["name"]: copy for copy in self.source.must("GET", "/_changes/_consumers")["consumers"]}

    def report(self, name, **body):
        return self.source.ask("PUT", "/_changes/_consumers/" + name, body)

    def put(self, count):
        self.source.must("POST", "/_bulk", "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":%d}\n' % (i, i) for i in range(count)))
        return self.source.must("GET", "/_timestamp")["timestamp"]

    @contextlib.contextmanager
    def comparing_copy(self, target, *options, environment=None):
        """A copy that compares every second, inside the `with` statement; it ends with status 0. Yields: the list of its lines about documents that are not equal, filled at its end."""
        unequal = []
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen([PROGRAM, "replicate", "--from", self.source.url, "--to", target.url, "--quiet", "--verify-every", "1s", *options],
                                       stderr=errors, env=environment)
            try:
                yield unequal
                process.terminate()
                process.wait()
            finally:
                process.kill()
                process.wait()
            errors.seek(0)
            lines = errors.read().splitlines()
        self.assertEqual(process.returncode, 0, "\n".join(lines))
        unequal += [line for line in lines if "not equal" in line]

    def test_consumer_without_copy(self):
        """Any consumer of the feed may report its status."""
        self.assertEqual(self.source.must("GET", "/_changes/_consumers")["consumers"], [])
        place = self.put(3)
        self.assertEqual(self.report("mine", target="http://es:9200", state="following", place=place, sent=7)[0], 200)
        copy = self.copies()["mine"]
        self.assertEqual((copy["target"], copy["state"], copy["place"], copy["sent"], copy["lag_changes"], copy["lag_ms"]), ("http://es:9200", "following", place, 7, 0, 0))
        self.put(5)
        copy = self.copies()["mine"]
        self.assertEqual(copy["lag_changes"], 5)
        self.assertRegex(copy["reported_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.put(12000)
        copy = self.copies()["mine"]
        self.assertEqual((copy["lag_changes"], copy["lag_relation"]), (10000, "gte"))
        self.assertGreater(copy["lag_ms"], 0)
        self.assertEqual(self.report("mine", verified_at=place, verified_differences=2)[0], 200)  # the rest stays
        copy = self.copies()["mine"]
        self.assertEqual((copy["place"], copy["verified_differences"], copy["state"]), (place, 2, "following"))
        status, reply = self.report("mine", state="running")
        self.assertEqual((status, reply["error"]["reason"]), (400, "[state] of a consumer's request must be [copying], [following] or [ended], got [running]"))
        self.assertEqual(self.report("behind", target="x", state="following", place=1)[0], 200)
        self.assertEqual(self.copies()["behind"]["lag_relation"], "gte")
        self.assertEqual(self.report("new", target="x", state="copying")[0], 200)
        self.assertIsNone(self.copies()["new"]["lag_ms"])
        before = self.copies()
        self.source.kill()
        self.source.start()
        after = self.copies()
        for copies in (before, after):
            for copy in copies.values():
                copy.pop("lag_ms")
        self.assertEqual(after, before)
        reported = self.source.request("GET", "/_cat/copies?h=reported.at&s=name").body.decode().split()
        self.assertEqual(reported, [after[name]["reported_at"] for name in sorted(after)])
        rows = self.source.request("GET", "/_cat/copies?h=name,state,lag.changes,target&s=name").body.decode().splitlines()
        self.assertEqual([row.split() for row in rows], [["behind", "following", "10000", "x"], ["mine", "following", "10000", "http://es:9200"], ["new", "copying", "x"]])
        self.assertEqual([copy["name"] for copy in self.source.must("GET", "/_changes/_consumers/new")["consumers"]], ["new"])
        self.source.must("DELETE", "/_changes/_consumers/new")
        self.assertEqual(sorted(self.copies()), ["behind", "mine"])
        for method, path in (("DELETE", "/_changes/_consumers/new"), ("GET", "/_changes/_consumers/new")):
            self.assertEqual(self.source.ask(method, path)[0], 404)

    def test_without_a_feed(self):
        """Its lag is unknown."""
        self.source.stop()
        self.source.options = (*self.source.options, "--feed", "off")
        self.source.start()
        place = self.put(3)
        self.assertEqual(self.report("c", target="x", state="following", place=place - 1)[0], 200)
        self.assertEqual((self.copies()["c"]["lag_changes"], self.copies()["c"]["lag_ms"]), (None, None))

    def test_invalid_reports(self):
        for body, word in [({}, "target"), ({"target": "x"}, "state"), ({"target": "x", "state": "well"}, "state"), ({"target": "", "state": "ended"}, "target"),
                           ({"target": "x", "state": "ended", "place": -1}, "place"), ({"target": "x", "state": "ended", "sent": "7"}, "sent"),
                           ({"target": "x", "state": "ended", "why": 1}, "why"), ({"target": "x" * 5000, "state": "ended"}, "bytes")]:
            status, reply = self.report("c", **body)
            self.assertEqual(status, 400, reply)
            self.assertIn(word, reply["error"]["reason"])
        self.assertEqual(self.report("n" * 300, target="x", state="ended")[0], 400)
        self.assertEqual(self.copies(), {})

    def test_of_a_copy(self):
        """A copy that follows, is stopped, ends, is compared; and its display for operators."""
        self.put(100)
        with Server() as target:
            command = [PROGRAM, "replicate", "--from", self.source.url, "--to", "http://me:secret@" + target.url[len("http://"):]]
            process = subprocess.Popen([*command, "--quiet"])
            try:
                until(lambda: self.copies().get("default", {}).get("state") == "following", "it follows")
                until(lambda: self.copies()["default"]["lag_changes"] == 0, "it is up to date")
                self.assertEqual(self.copies()["default"]["sent"], 100)
                self.assertNotIn("secret", json.dumps(self.copies()))
                stop_process(process)
                self.put(30)
                self.assertEqual(self.copies()["default"]["lag_changes"], 30)
                status = subprocess.run([PROGRAM, "status", "--url", self.source.url], capture_output=True, text=True)
                self.assertIn("Copies\nname", status.stdout)
                status = subprocess.run([PROGRAM, "status", "--json", "--url", self.source.url], capture_output=True, text=True)
                self.assertEqual(json.loads(status.stdout)["copies"]["consumers"][0]["lag_changes"], 30)
                process.send_signal(signal.SIGCONT)
                until(lambda: self.copies()["default"]["lag_changes"] == 0, "it has caught up")
                process.terminate()
                self.assertEqual(process.wait(), 0)
            finally:
                process.kill()
                process.wait()
            self.assertEqual(self.copies()["default"]["state"], "ended")
            self.put(5)
            subprocess.run([*command, "--once", "--quiet"], check=True)
            self.assertEqual((self.copies()["default"]["state"], self.copies()["default"]["lag_changes"]), ("ended", 0))
            target.must("DELETE", "/fs/_doc/7")
            verify = subprocess.run([*command, "--verify"], capture_output=True, text=True, env=without_rests())
            self.assertEqual(verify.returncode, 1, verify.stderr)
            copy = self.copies()["default"]
            self.assertEqual((copy["state"], copy["verified_differences"]), ("ended", 1))
            self.assertGreater(copy["verified_at"], copy["place"] - 1)
            self.assertEqual(subprocess.run([*command, "--repair"], capture_output=True, env=without_rests()).returncode, 0)
            self.assertEqual(subprocess.run([*command, "--verify"], capture_output=True).returncode, 0)
            self.assertEqual(self.copies()["default"]["verified_differences"], 0)

    def test_compares_contents_by_itself(self):
        """Foreign changes of the target are found and repaired, while the feed is followed; with --content also one that has left the version as it was."""
        self.put(50)  # it compares at a hundredth of its speed
        with Server() as target:
            with self.comparing_copy(target, "--content") as unequal:
                until(lambda: self.copies().get("default", {}).get("verified_differences") == 0, "it has compared once")
                version = target.must("GET", "/fs/_doc/9")["_version"]
                target.must("DELETE", "/fs/_doc/7")
                target.must("PUT", "/fs/_doc/stray", {"n": 1})
                target.must("PUT", "/fs/_doc/8", {"n": 8000})
                target.must("PUT", "/fs/_doc/9?version_type=external_gte&version=%d" % version, {"n": 9000})
                self.source.must("PUT", "/fs/_doc/came", {"n": 1})
                until(lambda: target.ask("GET", "/fs/_doc/came")[0] == 200, "it follows all the while")
                until(lambda: target.ask("GET", "/fs/_doc/7")[0] == 200 and target.ask("GET", "/fs/_doc/stray")[0] == 404
                      and all(target.must("GET", "/fs/_doc/%d" % id)["_source"] == {"n": id} for id in (8, 9)), "all is repaired")
                until(lambda: self.copies()["default"]["verified_differences"] == 0, "it was compared again")
            # A comparison may have waited in vain for fs/came, which is on its way, if the machine delayed that.
            self.assertEqual(sorted({line for line in unequal if "fs/came" not in line}), ["tidelock replicate: fs/%s is not equal" % id for id in ("7", "8", "9", "stray")])

    def test_newer_document_is_reported_once(self):
        """Several comparisons find it; it is not counted as repaired. Another one is reported besides."""
        self.put(20)

        def compared(differences):
            before = self.copies()["default"].get("verified_at") or 0
            for _ in range(2):
                until(lambda: (self.copies()["default"].get("verified_at") or 0) > before and self.copies()["default"]["verified_differences"] == differences,
                      "it has compared again")
                before = self.copies()["default"]["verified_at"]
                self.source.must("PUT", "/fs/_doc/came", {"n": before})  # the next comparison is of a later timestamp
        with Server() as target:
            with self.comparing_copy(target, environment=without_rests()) as unequal:
                until(lambda: self.copies().get("default", {}).get("state") == "following", "it follows")
                for id, count in (("7", 1), ("9", 2)):
                    target.must("PUT", "/fs/_doc/%s?version_type=external&version=%d" % (id, 1 << 60), {"n": -1})
                    compared(count)
            # A comparison without rests may begin and end while fs/came is on its way.
            self.assertEqual([line for line in unequal if "fs/came" not in line],
                             ["tidelock replicate: fs/%s is not equal: the target has a version above the source's timestamp, and keeps it" % id for id in ("7", "9")])
            self.assertEqual(self.copies()["default"]["mended"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
