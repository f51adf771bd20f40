#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A copy that follows the feed: `tidelock replicate`, killed, stopped and restarted while clients write, and with a target that refuses.

The target is another server of ours; with TIDELOCK_TARGET=http://127.0.0.1:PORT it is a real Elasticsearch or OpenSearch from 6.8 on, all of whose indices are
deleted. That both sides are equal is found by reading both, here, and not by what the program says.
"""
import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import clock  # noqa: E402
from proxy import Meddler, Proxy  # noqa: E402
from server import BUILD, PROGRAM, Server  # noqa: E402
import skips  # noqa: E402
from terminal import open_terminal  # noqa: E402
from waiting import stop_process, until  # noqa: E402

TARGET = os.environ.get("TIDELOCK_TARGET")
LONG = bool(os.environ.get("TIDELOCK_TEST_LONG"))
RESTART = os.environ.get("TIDELOCK_TARGET_RESTART")  # a command that restarts that server; in runs of Seeds it also forgets deletes
OURS = (".tidelock-replicate", ".tidelock-replicate-refused")
FAST = 4  # speed of a fast copy's clock: periodic work of one second is done four times a second


SHIM = os.path.join(BUILD, "tests", "e2e", "sleep_shim.so")


def without_rests():
    """Returns: an environment in which a comparison looks six times at what differs, but not a second apart. For copies that nothing changes meanwhile."""
    if not os.path.exists(SHIM):  # the program was built without the tests: it takes longer
        return None
    return dict(os.environ, LD_PRELOAD=SHIM, ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))


def documents(ask, pattern="*", prefix=""):
    """Returns: all documents of a server, by index and id: the source and the routing."""
    found = {}
    ask("POST", "/_refresh")
    reply = ask("POST", "/%s%s/_search?scroll=1m" % (prefix, pattern), {"size": 1000, "sort": ["_doc"]})
    while reply["hits"]["hits"]:
        for hit in reply["hits"]["hits"]:
            if hit["_index"] not in OURS:
                found[hit["_index"][len(prefix):], hit["_id"]] = (hit["_source"], hit.get("_routing"))
        reply = ask("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": reply["_scroll_id"]})
    if "_scroll_id" in reply:  # there are indices
        ask("DELETE", "/_search/scroll", {"scroll_id": reply["_scroll_id"]})
    return found


class Real(Server):
    """A server that runs already."""
    def start(self):
        self.url = TARGET
        self.port = int(TARGET.rsplit(":", 1)[1])
        for index in self.must("GET", "/_settings"):
            self.must("DELETE", "/" + index)
        return self

    def ask(self, *request):
        """Repeats a request: shards of a new index reply 503 for a short time, and a restarted server has closed the connection."""
        asked = []

        def is_answered():
            try:
                asked[:] = super(Real, self).ask(*request)
            except (OSError, http.client.HTTPException):
                return False
            return asked[0] != 503
        until(is_answered, "the target answers %s %s" % request[:2])
        return tuple(asked)

    def kill(self):
        raise unittest.SkipTest("it is not ours to be killed")


def new_target():
    return Real() if TARGET else Server()


class Copy(unittest.TestCase):
    """All tests share their servers, which are empty again, and run, when the next one begins."""
    SOURCE = ("--history", "1h")
    new_target = staticmethod(new_target)
    servers = {}  # by what makes the target

    @classmethod
    def setUpClass(cls):
        if cls.new_target not in Copy.servers:
            Copy.servers[cls.new_target] = []
            for server in (Server(*cls.SOURCE), cls.new_target()):
                unittest.addModuleCleanup(server.close)
                Copy.servers[cls.new_target].append(server.start())
        cls.source, cls.target = Copy.servers[cls.new_target]

    def setUp(self):
        self.running = []
        self.addCleanup(self.end)
        for server in (self.source, self.target):
            if server.process is not None and server.process.poll() is not None:
                server.start()  # a test has failed while it was away
        self.source.end_owners()  # a copy that was killed may not have been missed yet
        for server in (self.source, self.target):
            for index in server.must("GET", "/_settings"):
                server.must("DELETE", "/" + index)
        for consumer in self.source.must("GET", "/_changes/_consumers")["consumers"]:
            self.source.must("DELETE", "/_changes/_consumers/" + consumer["name"])

    def end(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stderr.close()

    def command(self, *options, to=None):
        return [PROGRAM, "replicate", "--from", self.source.url, "--to", to or self.target.url, *options]

    def once(self, *options, expect=0, to=None):
        run = subprocess.run(self.command("--once", *options, to=to), capture_output=True, text=True, env=without_rests())
        self.assertEqual(run.returncode, expect, run.stderr)
        return run.stderr

    def follow(self, *options, to=None, fast=False):
        """`fast`: its clock runs fast, so its periodic work is done soon, and it considers its lease shorter than it is."""
        errors = tempfile.TemporaryFile("a+")  # appended to, wherever it is read
        environment = self.fast() if fast and os.path.exists(clock.SHIM) else None
        process = subprocess.Popen(self.command("--quiet", *options, to=to), stderr=errors, env=environment)
        process.stderr = errors
        self.running.append(process)
        return process

    def fast(self):
        """Returns: the environment of a program whose clock runs fast."""
        hasty = clock.Clock()
        self.addCleanup(hasty.close)
        self.hasty = hasty
        hasty.boot[1:] = [FAST, hasty.machine_boot()]
        hasty.set()
        return dict(os.environ, **hasty.environment())

    def until(self, condition, what):
        """As until(), with changes meanwhile: a copy asks for changes for two seconds at a time, and looks at all else only in between."""
        def is_so():
            if condition():
                return True
            self.source.must("PUT", "/fs/_doc/meanwhile", {"n": 0})
            return False
        until(is_so, what)

    def ended(self, process):
        """Waits for its end. Returns: its exit status."""
        self.until(lambda: process.poll() is not None, "the copy has ended")
        return process.wait()

    def session(self):
        """Returns: the number of the session of the copy that runs, None without one."""
        return next((session["session"] for session in self.source.must("GET", "/_session")["sessions"] if session.get("name", "").startswith("replicate default (")), None)

    def kill_copy(self, process):
        """kill -9; the next one can begin when the server has ended the session."""
        process.kill()
        process.wait()
        until(lambda: self.session() is None, "the session of the copy that was killed has ended")

    def messages(self, process):
        process.stderr.seek(0)
        return process.stderr.read()

    def equal(self, prefix=""):
        return documents(self.target.must, prefix=prefix) == documents(self.source.must)

    def await_equal(self, prefix=""):
        for process in self.running[-1:]:
            until(lambda: self.equal(prefix) or process.poll() is not None, "both are equal")
            self.assertIsNone(process.poll(), self.messages(process))

    def assert_equal(self, prefix=""):
        self.assertEqual(documents(self.target.must, prefix=prefix), documents(self.source.must))

    def has_place(self):
        """Returns: whether the first copy is complete."""
        status, place = self.target.ask("GET", "/.tidelock-replicate/_doc/default")
        return status == 200 and place["_source"]["timestamp"] > 0

    def restart_source(self, *options):
        self.source.stop()
        self.source.options = list(options)
        self.source.start()

    def cut_feed(self):
        """The feed begins anew: it was off for a while."""
        self.restart_source("--feed", "off")
        self.restart_source(*self.SOURCE)

    def fill(self, count=300):
        body = "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":%d,"t":"a b"}\n' % (i, i) for i in range(count))
        self.source.must("POST", "/_bulk", body)


class First(Copy):
    def test_first_copy_and_changes(self):
        """Copies all documents, with mappings, settings and aliases; then only the later changes."""
        self.source.must("PUT", "/fs", {"settings": {"number_of_shards": 3, "analysis": {"analyzer": {"mine": {"type": "custom", "tokenizer": "path_hierarchy"}}}},
                                        "mappings": {"properties": {"t": {"type": "text", "analyzer": "mine"}}}, "aliases": {"all": {"filter": {"term": {"n": 1}}}}})
        self.fill()
        self.source.must("PUT", "/fs/_doc/r?routing=x", {"n": 1})
        self.source.must("PUT", "/other/_doc/%C3%BC%2F%22%0A", '{"n":\n1.10, "big": 1234567890123456789, "s": "a\\u2028b\\n"}')
        said = self.once()
        self.assertIn("302 documents sent; the copy is complete", said)
        self.assert_equal()
        made = self.target.must("GET", "/fs")["fs"]
        self.assertEqual(made["mappings"]["properties"]["t"], {"type": "text", "analyzer": "mine"})
        self.assertEqual(made["settings"]["index"]["number_of_shards"], "3")
        self.assertEqual(made["aliases"], {"all": {"filter": {"term": {"n": 1}}}})
        self.assertIn(" 0 documents sent", self.once())
        self.source.must("DELETE", "/fs/_doc/1")
        self.source.must("DELETE", "/fs/_doc/r?routing=x")
        self.source.must("PUT", "/fs/_doc/2", {"t": "two", "new": True})
        for _ in range(5):
            self.source.must("PUT", "/fs/_doc/3", {"n": 3})
        self.assertIn(" 4 documents sent", self.once())
        self.assert_equal()

    def test_versions(self):
        """Each document has the timestamp of its last change as external version, by the first copy and by the feed, so an older state never comes after a newer."""
        self.source.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.source.must("PUT", "/fs/_doc/below", {"path": "/a/b"})
        self.source.must("PUT", "/fs/_doc/1", {"n": 1})

        def commits():
            return {id: self.source.must("GET", "/fs/_doc/%s?version_history=true" % id)["versions"][0]["from"] for id in ("1", "below")}

        def versions():
            return {id: self.target.must("GET", "/fs/_doc/" + id)["_version"] for id in ("1", "below")}
        self.once()
        first = commits()
        self.assertEqual(versions(), first)
        self.source.must("POST", "/fs/_rename", {"from": "/a", "to": "/c"})
        self.source.must("PUT", "/fs/_doc/1", {"n": 2})
        self.once()
        self.assertEqual(versions(), commits())
        self.assertNotEqual(commits()["below"], first["below"])
        self.assertEqual(self.target.ask("PUT", "/fs/_doc/1?version_type=external&version=%d" % first["1"], {"old": 1})[0], 409)

    def test_position_in_target(self):
        """The position is stored in the target and names the source; a copy of another source under the same name is refused."""
        self.fill(3)
        self.once("--prefix", "live-")
        place = self.target.must("GET", "/.tidelock-replicate/_doc/default")
        self.assertEqual(place["_source"]["timestamp"], place["_version"])
        self.assert_equal("live-")
        with Server() as other:
            run = subprocess.run([PROGRAM, "replicate", "--from", other.url, "--to", self.target.url, "--once"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("a copy of another source", run.stderr)

    def test_other_indices(self):
        """A copy that is continued with another --index has changes of indices that it did not follow meanwhile; with another --prefix it is refused."""
        self.fill(10)
        self.source.must("PUT", "/other/_doc/1", {"n": 1})
        self.once()
        self.source.must("PUT", "/fs/_doc/new", {"n": 1})
        self.source.must("DELETE", "/fs/_doc/3")
        self.source.must("PUT", "/other/_doc/2", {"n": 2})
        self.assertIn("was made with another --index: everything is compared", self.once("--index", "other"))
        self.assertNotIn("everything is compared", self.once("--index", "other"))
        self.assertIn("was made with another --index: everything is compared", self.once())
        self.assert_equal()
        self.assertIn('the copy under --name default was made with --prefix "": use the same --prefix, or give this one another name', self.once("--prefix", "live-", expect=1))
        self.assertEqual(self.target.ask("GET", "/live-fs")[0], 404)

    def test_existing_index_is_taken_over_only_with_the_option(self):
        """An index of the target that no copy has made keeps its documents, whatever else the copy does; with --take-over it keeps nothing that the source has not."""
        self.fill(10)
        self.target.must("PUT", "/fs/_doc/3", {"n": "old"})
        self.target.must("PUT", "/fs/_doc/more?routing=q", {"n": "extra"})
        before = documents(self.target.must, "fs")
        for options in ((), ("--delete-indices",)):
            self.assertIn("the target's index fs has 2 documents and was not made by a copy: give this copy a --prefix, delete that index, or use --take-over", self.once(*options, expect=1))
            self.assertEqual(documents(self.target.must, "fs"), before)
        repair = subprocess.run(self.command("--repair"), capture_output=True, text=True, env=without_rests())
        self.assertEqual((repair.returncode, documents(self.target.must, "fs")), (1, before), repair.stderr)
        self.once("--prefix", "live-", "--name", "beside")
        self.assertEqual(documents(self.target.must, "fs"), before)
        self.target.must("DELETE", "/live-fs")
        self.once("--take-over")
        self.assert_equal()
        self.source.must("DELETE", "/fs/_doc/4")
        self.once()  # it is the copy's now
        self.assert_equal()

    def test_existing_index_is_taken_over_later(self):
        """One that another program makes while no copy runs, of a name that the source gets: the copy has all of the source's documents, not only later ones."""
        self.fill(10)
        self.once()
        self.source.must("PUT", "/new/_doc/1", {"n": 1})
        self.source.must("PUT", "/new/_doc/2", {"n": 2})
        self.target.must("PUT", "/new", {"settings": {"number_of_replicas": 0}})
        self.target.must("PUT", "/new/_doc/more", {"n": 3})
        self.assertIn("the target's index new has 1 documents", self.once(expect=1))
        self.target.must("DELETE", "/new/_doc/more")
        self.once()  # an empty one is taken
        self.assert_equal()
        self.assertEqual(self.target.must("GET", "/new/_doc/1")["_version"], self.source.must("GET", "/new/_doc/1?version_history=true")["versions"][0]["from"])

    def test_deleted_documents_of_an_existing_index(self):
        """Its documents were deleted, and the target still knows their versions, which are above the commits': the source's are copied all the same."""
        self.fill(10)
        present = self.source.must("PUT", "/_scripts/later", {"script": {"lang": "painless", "source": "1"}}) and self.source.must("GET", "/_timestamp")["timestamp"]
        for id in ("1", "2", "more"):
            self.target.must("PUT", "/fs/_doc/%s?version_type=external&version=%d" % (id, present - 1), {"n": "old"})
            self.target.must("DELETE", "/fs/_doc/" + id)
        self.source.must("PUT", "/_scripts/later", {"script": {"lang": "painless", "source": "2"}})
        self.once()
        self.assert_equal()

    def test_all_names_are_checked_before_the_first_document(self):
        """An index that the copy may not have, of any cause and in any place of the order, ends it before it has written to another one."""
        for index in "abc":
            self.source.must("PUT", "/%s/_doc/1" % index, {"n": 1})

        def by_index():
            self.target.must("PUT", "/c/_doc/1", {"n": "another's"})

        def by_alias():
            self.target.must("PUT", "/z", {"aliases": {"c": {}}})

        def by_copy():
            with Server() as other:
                other.must("PUT", "/c/_doc/1", {"n": 1})
                run = subprocess.run([PROGRAM, "replicate", "--from", other.url, "--to", self.target.url, "--once", "--name", "other"], capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, run.stderr)
        for occupy, said in ((by_index, "the target's index c has 1 documents"), (by_alias, "the target has an alias of the name c"),
                             (by_copy, "the target's index c is a copy of another index")):
            with self.subTest(said):
                occupy()
                before = documents(self.target.must)
                for option in ("--once", "--repair"):
                    run = subprocess.run(self.command(option), capture_output=True, text=True, env=without_rests())
                    self.assertEqual((run.returncode, said in run.stderr), (1, True), run.stderr)
                    self.assertEqual(documents(self.target.must), before)
                    self.assertNotIn("a", self.target.must("GET", "/_settings"))
                for index in self.target.must("GET", "/_settings"):
                    self.target.must("DELETE", "/" + index)
        self.source.must("PUT", "/b-copy/_doc/1", {"n": 1})
        self.assertIn("there is one of that name", self.once("--tombstones", expect=1))
        self.assertEqual(self.target.must("GET", "/_settings"), {})

    def test_newer_versions_in_an_index_taken_over(self):
        """The target keeps them, also where the source has no such document: the copy names them, and does not claim to be complete."""
        self.fill(20)
        later = (int(time.time()) + 10000) * 1000000
        for id in ("3", "more"):
            self.target.must("PUT", "/fs/_doc/%s?version_type=external&version=%d" % (id, later), {"n": "another's"})
        self.target.must("PUT", "/fs/_doc/4?version_type=external&version=7", {"n": "another's"})
        said = self.once("--take-over", expect=1)
        self.assertEqual(sorted(re.findall("newer  .*", said)), ["newer  fs/3", "newer  fs/more"])
        self.assertIn("2 documents of the target have versions above the source's timestamp", said)
        self.assertNotIn("complete", said)
        found = documents(self.target.must)
        self.assertEqual({id for (_, id), (source, _) in found.items() if source["n"] == "another's"}, {"3", "more"})
        self.assertEqual(len(found), 21)
        self.once()  # it said so at the end of the copy; --verify does later

    def test_aliases_of_operators_stay(self):
        """The copy removes only aliases that it has added, in an index that it has made or taken over, and at each change of the source's aliases."""
        def aliases():
            return set(self.target.must("GET", "/fs/_alias")["fs"]["aliases"])
        self.source.must("PUT", "/fs", {"aliases": {"first": {}, "all": {}}})
        self.fill(3)
        self.target.must("PUT", "/fs", {"aliases": {"before": {}}})
        self.once()
        self.assertEqual(aliases(), {"before", "first", "all"})
        self.target.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "mine"}}]})
        self.source.must("POST", "/_aliases", {"actions": [{"remove": {"index": "fs", "alias": "first"}}, {"add": {"index": "fs", "alias": "second"}}]})
        self.once()
        self.assertEqual(aliases(), {"before", "mine", "all", "second"})
        self.source.must("POST", "/_aliases", {"actions": [{"remove": {"index": "fs", "alias": "second"}}]})
        self.once()
        self.assertEqual(aliases(), {"before", "mine", "all"})

    def test_gc_deletes(self):
        """The target keeps the versions of deletes for an hour, at least."""
        def kept():
            return {name: it["settings"]["index"].get("gc_deletes") for name, it in self.target.must("GET", "/_settings").items() if name not in OURS}
        for name, time_kept in (("short", "90s"), ("long", "1d"), ("plain", None)):
            self.target.must("PUT", "/" + name, {"settings": {"index.gc_deletes": time_kept} if time_kept else {}})
            self.source.must("PUT", "/%s/_doc/1" % name, {"n": 1})
        self.source.must("PUT", "/made/_doc/1", {"n": 1})
        self.once("--leave-settings")
        self.assertEqual(kept(), {"short": "90s", "long": "1d", "plain": None, "made": None})
        said = self.once()
        self.assertEqual(kept(), {"short": "1h", "long": "1d", "plain": "1h", "made": "1h"})
        self.assertIn("raised index.gc_deletes of short from 90s to 1h", said)
        self.assertIn("raised index.gc_deletes of plain from 60s to 1h", said)
        self.assertNotIn("gc_deletes", self.once())

    def test_types(self):
        """An index with several types becomes one index for each type in a target without types."""
        for type in ("file", "lock"):
            self.source.must("PUT", "/fs/%s/1" % type, {"type": type})
        self.once()
        self.assertEqual(self.target.must("GET", "/fs-file/_doc/1")["_source"], {"type": "file"})
        self.assertEqual(self.target.must("GET", "/fs-lock/_doc/1")["_source"], {"type": "lock"})
        self.source.must("DELETE", "/fs/lock/1")
        self.once()
        self.assertEqual(self.target.ask("GET", "/fs-lock/_doc/1")[0], 404)
        self.assertEqual(self.target.ask("GET", "/fs-file/_doc/1")[0], 200)

    def test_some_indices(self):
        for index in ("a", "logs-1", "logs-2"):
            self.source.must("PUT", "/%s/_doc/1" % index, {"i": index})
        self.once("--index", "a,logs-*")
        self.source.must("PUT", "/b/_doc/1", {"i": "b"})
        self.source.must("PUT", "/logs-3/_doc/1", {"i": "b"})
        self.once("--index", "a,logs-*")
        self.assertEqual({index for index, _ in documents(self.target.must)}, {"a", "logs-1", "logs-2", "logs-3"})

    def test_misuse(self):
        for options, status, text in (((), 64, "--to is missing"),
                                      (("--to", self.target.url, "--name", "n" * 256), 64, "--name has 256 bytes; a copy's name has from 1 to 255"),
                                      (("--to", self.target.url, "--name", ""), 64, "--name has 0 bytes"),
                                      (("--to", self.source.url), 1, "is the source itself"),
                                      (("--to", "http://127.0.0.1:1"), 69, "is a server running? --to names another"),
                                      (("--to", self.target.url, "--from", "http://127.0.0.1:1"), 69, "is a server running? `tidelock serve` starts one, --from names another")):
            run = subprocess.run([PROGRAM, "replicate", "--once", "--from", self.source.url, *options], capture_output=True, text=True)
            self.assertEqual((run.returncode, text in run.stderr), (status, True), run.stderr)
        self.once("--name", "n" * 255)  # it needs every use of the name to take it
        self.assertEqual([it["name"] for it in self.source.must("GET", "/_changes/_consumers")["consumers"]], ["n" * 255])


class Snapshot(Copy):
    """The first copy is of one timestamp, for all indices, whatever is changed while it is made."""
    def hold(self, meanwhile):
        """Returns: the bulks of a first copy, of which the first is answered after meanwhile()."""
        bodies = []

        def judge(method, path, body):
            if path.startswith("/_bulk"):
                bodies.append(body)
                if len(bodies) == 1:
                    meanwhile()
            return "pass"
        self.meddler = Meddler(self.target.port, judge)
        self.meddler.__enter__()
        self.addCleanup(self.meddler.__exit__)
        return bodies

    def put(self, index, n, count=20):
        self.source.must("POST", "/_bulk", "".join('{"index":{"_index":"%s","_id":"%d"}}\n{"n":%d}\n' % (index, i, n) for i in range(count)))

    def commits(self, indices):
        """Returns: the timestamps of the commits that made the documents, by index and id."""
        reply = self.source.must("POST", "/%s/_search?commit_timestamp=true" % ",".join(indices), {"size": 1000})
        return {(hit["_index"], hit["_id"]): hit["_commit_timestamp"] for hit in reply["hits"]["hits"]}

    def assert_as_of(self, bodies, commits):
        """Each document was sent in its first state, with the version of that."""
        sent = {}
        for body in bodies:
            lines = body.decode().splitlines()
            for action, source in zip(lines[::2], lines[1::2]):
                it = json.loads(action).get("index")
                if it is not None and json.loads(source) == {"n": 1}:
                    sent[it["_index"], it["_id"]] = it["version"]
        self.assertEqual(sent, commits)

    def test_one_timestamp(self):
        """Documents are changed, an index is deleted and made again, another one made, before they are read."""
        for index in "abc":
            self.put(index, 1)
        commits = self.commits("abc")

        def meanwhile():
            self.put("b", 2)
            self.source.must("DELETE", "/b/_doc/7")
            self.source.must("DELETE", "/c")
            self.source.must("PUT", "/c/_doc/new", {"n": 3})
            self.source.must("PUT", "/d/_doc/new", {"n": 4})
        bodies = self.hold(meanwhile)
        self.once("--lanes", "1", to=self.meddler.url)
        self.assert_as_of(bodies, commits)
        self.assertEqual(sum(body.count(b'"_index":"b"') for body in bodies), 40)  # each at its first state, then at its last
        self.assert_equal()
        self.assertEqual(self.source.must("GET", "/_transaction")["transactions"], [])

    def test_another_source_meanwhile(self):
        """A copy of another source under the same name, begun during the first copy, is refused, and replaces nothing."""
        self.put("a", 1)
        with Server() as other:
            other.must("PUT", "/a/_doc/other", {"n": 1})

            def begin():
                self.other = subprocess.run([PROGRAM, "replicate", "--from", other.url, "--to", self.target.url, "--once"], capture_output=True, text=True)
            self.hold(begin)
            self.once(to=self.meddler.url)
        self.assertEqual((self.other.returncode, "a copy of another source" in self.other.stderr), (1, True), self.other.stderr)
        self.assert_equal()

    def test_begins_anew(self):
        """Its transaction is ended by force: it takes another timestamp."""
        self.put("a", 1, 1100)

        def meanwhile():
            transaction, = self.source.must("GET", "/_transaction")["transactions"]
            self.source.must("POST", "/_transaction/%d/_rollback?force=true" % transaction["transaction"])
            self.source.must("DELETE", "/a/_doc/0")
        self.hold(meanwhile)
        self.assertIn("the copy begins anew", self.once("--batch", "1k", to=self.meddler.url))
        self.assert_equal()

    def test_longer_than_history_and_feed(self):
        """The history waits for it, the feed does not: later changes are found by comparing, not by copying again and again."""
        with Server("--history", "1s", "--feed", "1s") as self.source:
            for index in "ab":
                self.put(index, 1)
            commits = self.commits("ab")

            def meanwhile():
                begun = self.source.must("GET", "/_timestamp")["timestamp"]  # the copy's, or later
                self.put("b", 2, 10)
                self.source.must("DELETE", "/b/_doc/11")

                def is_cut():
                    self.source.must("PUT", "/a/_doc/meanwhile", {"n": 0})
                    return self.source.ask("GET", "/_changes?since=%d" % begun)[0] == 410
                until(is_cut, "the feed is cut")
            bodies = self.hold(meanwhile)
            self.assertIn("everything is compared", self.once("--lanes", "1", to=self.meddler.url))
            self.assert_as_of(bodies, commits)
            self.assertEqual(sum(body.count(b'"_index":"b"') for body in bodies), 31)
            self.assert_equal()


class Progress(Copy):
    """What a first copy shows: with a clock that stops, and advances by five seconds when the documents of an index arrive in the target."""
    def run_copy(self, stderr, *options):
        """Copies three indices of 1000 documents, which are read in pages of 500. Returns: the exit status."""
        stopped = clock.Clock()
        self.addCleanup(stopped.close)
        stopped.stand()
        arrived = []

        def judge(method, path, body):
            index = body[:body.find(b"_id")] if path.startswith("/_bulk") else None
            if index in (b'{"index":{"_index":"a","', b'{"index":{"_index":"b","') and index not in arrived:
                arrived.append(index)
                stopped.jump(5)
            return "pass"
        for index in "abc":
            self.source.must("POST", "/_bulk", "".join('{"index":{"_index":"%s","_id":"%d"}}\n{}\n' % (index, i) for i in range(1000)))
        with Meddler(self.target.port, judge) as meddler:
            status = subprocess.run(self.command("--once", "--lanes", "1", "--leave-settings", *options, to=meddler.url), stderr=stderr, env=dict(os.environ, **stopped.environment())).returncode
        self.assertEqual(len(arrived), 2)
        return status

    MADE = re.compile("tidelock replicate: made the index .\n")
    SHOWN = ["[###############...............]  50% 1500 of 3000 documents, 300/s, 5 s left ",
             "[#########################.....]  83% 2500 of 3000 documents, 250/s, 2 s left ",
             "[##############################] 100% 3000 of 3000 documents, 300/s"]

    def test_terminal(self):
        """A bar with the rate and the time left, redrawn in its line, which a message takes; the bar is below it then."""
        ours, theirs = open_terminal()
        try:
            self.assertEqual(self.run_copy(theirs), 0)
            shown = os.read(ours, 1 << 16).decode()
        finally:
            os.close(theirs)
            os.close(ours)
        made = ["tidelock replicate: made the index %s\r\n" % index for index in "abc"]
        bar = ["\r%s\x1b[K" % line for line in self.SHOWN]
        self.assertEqual(shown, "".join((made[0], made[1], bar[0], "\r\x1b[K", made[2], bar[1], bar[2], "\r\n")) + "tidelock replicate: 3000 documents sent; the copy is complete\r\n")

    def test_file(self):
        """The same as lines."""
        with tempfile.TemporaryFile("w+") as file:
            self.assertEqual(self.run_copy(file), 0)
            file.seek(0)
            self.assertEqual(self.MADE.sub("", file.read()), "".join(line + "\n" for line in self.SHOWN) + "tidelock replicate: 3000 documents sent; the copy is complete\n")

    def test_quiet(self):
        with tempfile.TemporaryFile("w+") as file:
            self.assertEqual(self.run_copy(file, "--quiet"), 0)
            file.seek(0)
            self.assertEqual(file.read(), "")


class Following(Copy):
    def test_indices(self):
        """Made, mapped, given other aliases, deleted, and made again under the same name."""
        self.fill(5)
        self.follow("--delete-indices")
        self.await_equal()
        self.source.must("PUT", "/new", {"mappings": {"properties": {"d": {"type": "date"}}}})
        self.source.must("PUT", "/new/_doc/1", {"d": "2020-01-01"})
        self.source.must("PUT", "/new/_mapping", {"properties": {"more": {"type": "keyword"}}})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "new", "alias": "n"}}]})
        until(lambda: self.target.ask("GET", "/n/_doc/1")[0] == 200, "the alias is there")
        self.assertEqual(self.target.must("GET", "/new/_mapping")["new"]["mappings"]["properties"], {"d": {"type": "date"}, "more": {"type": "keyword"}})
        self.source.must("POST", "/_aliases", {"actions": [{"remove": {"index": "new", "alias": "n"}}]})
        until(lambda: self.target.ask("GET", "/n/_doc/1")[0] == 404, "the alias is gone")
        self.target.must("POST", "/_aliases", {"actions": [{"add": {"index": "new", "alias": "n"}}]})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "new", "alias": "m"}}]})
        until(lambda: self.target.ask("GET", "/m/_doc/1")[0] == 200, "the other alias is there")
        self.assertEqual(self.target.ask("GET", "/n/_doc/1")[0], 200, "an operator's alias stays, of a name that the copy has removed before")
        self.source.must("DELETE", "/fs")
        self.source.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "keyword"}}}})
        self.source.must("PUT", "/fs/_doc/one", {"n": "text"})
        self.await_equal()
        until(lambda: self.target.must("GET", "/fs/_mapping")["fs"]["mappings"]["properties"]["n"]["type"] == "keyword", "it is the new one")
        self.source.must("DELETE", "/new")
        until(lambda: self.target.ask("GET", "/new")[0] == 404, "it is deleted")

    def test_deleted_index_is_closed(self):
        """Without --delete-indices: its documents are there when it is opened."""
        self.fill(5)
        self.once()
        self.source.must("DELETE", "/fs")
        self.assertIn("fs is closed (--delete-indices deletes)", self.once())
        self.assertEqual(self.target.ask("POST", "/fs/_search")[0], 400)
        self.target.must("POST", "/fs/_open")
        self.assertEqual(len(documents(self.target.must)), 5)

    def test_indices_of_another_copy_are_left(self):
        """With --delete-indices: a clone of a copied index, and one of another source's copy, whatever is deleted in the source, and however the copy learns of it."""
        self.fill(3)
        self.once("--delete-indices")
        self.target.must("PUT", "/clone", {"mappings": {"_meta": self.target.must("GET", "/fs/_mapping")["fs"]["mappings"]["_meta"]}})
        with Server() as other:
            def copy_other(*options, expect):
                run = subprocess.run([PROGRAM, "replicate", "--from", other.url, "--to", self.target.url, "--name", "other", "--once", "--delete-indices", *options], capture_output=True, text=True)
                self.assertEqual(run.returncode, expect, run.stderr)
                return run.stderr
            other.must("PUT", "/fs/_doc/other", {"n": 1})
            self.assertIn("the target's index fs is a copy of another index, which was made under --name default: give this copy a --prefix", copy_other(expect=1))
            self.assert_equal()
            copy_other("--index", "no-*", expect=0)
            other.must("DELETE", "/fs")
            copy_other(expect=0)
            self.assert_equal()
            other.must("PUT", "/there/_doc/1", {"n": 1})
            copy_other(expect=0)
        for index in ("clone", "there"):
            self.source.must("PUT", "/" + index)
            self.source.must("DELETE", "/" + index)
        self.once("--delete-indices")
        self.source.must("DELETE", "/fs")
        self.cut_feed()
        self.once("--delete-indices")
        self.assertEqual(sorted(index for index in self.target.must("GET", "/_settings") if index not in OURS), ["clone", "there"])

    def test_clone_is_not_replaced(self):
        """An index that a person has cloned from a copy, whose name one of the source then gets."""
        self.fill(3)
        self.once()
        self.target.must("PUT", "/kept", {"mappings": {"_meta": self.target.must("GET", "/fs/_mapping")["fs"]["mappings"]["_meta"]}})
        self.target.must("PUT", "/kept/_doc/1", {"n": 1})
        self.source.must("PUT", "/kept/_doc/2", {"n": 2})
        self.assertIn("the target's index kept was made from a copy under another name", self.once("--delete-indices", expect=1))
        self.assertEqual(documents(self.target.must, "kept"), {("kept", "1"): ({"n": 1}, None)})

    def test_two_indices_of_one_name_in_the_target(self):
        """An index with types and one that has the name of a type's: neither is copied in one run, and neither replaces the other in two."""
        for type in ("file", "lock"):
            self.source.must("PUT", "/fs/%s/1" % type, {"type": type})
        self.source.must("PUT", "/fs-file/_doc/2", {"n": 2})
        self.assertIn("the source's indices fs and fs-file need the same index fs-file in the target: leave one of the two out", self.once(expect=1))
        self.assertEqual(documents(self.target.must), {})
        self.once("--index", "fs")
        self.assertIn("the target's index fs-file is the copy of the source's index fs: leave one of the two out", self.once("--index", "fs-file", expect=1))
        self.assertEqual(documents(self.target.must, "fs-file"), {("fs-file", "1"): ({"type": "file"}, None)})

    def test_index_that_is_too_large_for_one_request(self):
        """Its aliases are added after it is made: a request that changes the catalog has at most 4 MiB here."""
        text = "0123456789abcdef" * (80 << 10)
        self.source.must("PUT", "/fs", {"mappings": {"_meta": {"text": text}}})
        for name in ("a", "b"):
            self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": name, "filter": {"term": {"t": name + text}}}}]})
        self.fill(3)
        self.once()
        self.assert_equal()
        self.assertEqual(self.target.must("GET", "/fs/_alias"), self.source.must("GET", "/fs/_alias"))

    def test_alias_in_target_is_refused(self):
        """An alias of the name that the copy needs: nothing is written to its index, which may be a copy with tombstones."""
        self.fill(3)
        self.once("--name", "t", "--tombstones")
        there = documents(self.target.must, "fs-copy")
        self.source.must("DELETE", "/fs/_doc/1")
        self.assertIn("the target has an alias of the name fs: give this copy a --prefix, or remove the alias", self.once(expect=1))
        self.assertEqual(documents(self.target.must, "fs-copy"), there)

    def test_renames(self):
        """Of a directory, in one change; each document below it is another then."""
        self.source.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        for i in range(30):
            self.source.must("PUT", "/fs/_doc/%d" % i, {"path": "/clinton/%d" % i})
        self.follow()
        self.await_equal()
        self.source.must("POST", "/fs/_rename", {"from": "/clinton", "to": "/bill"})
        self.assertEqual(self.source.must("GET", "/fs/_doc/7")["_source"]["path"], "/bill/7")
        self.await_equal()

    def test_one_at_a_time(self):
        """A second copy with the same name is refused; one with another name runs concurrently."""
        self.fill(3)
        process = self.follow()
        self.await_equal()
        run = subprocess.run(self.command("--once"), capture_output=True, text=True)
        self.assertEqual(run.returncode, 75, run.stderr)
        self.assertIn("a copy of this name is being made already", run.stderr)
        self.once("--name", "second", "--prefix", "second-")
        self.assert_equal_besides("second-")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(process), 0, self.messages(process))
        self.once()

    def test_killed_with_its_source(self):
        """A restarted source keeps the session of a copy that was killed meanwhile; the next copy ends it. It does not end that of a stopped one. What changes while a process
        could still use the ended session is suspect, so the next copy does not end cleanly."""
        self.fill(3)
        process = self.follow()
        self.await_equal()
        stop_process(process)
        self.source.kill()
        self.source.start()
        self.assertIn("a copy of this name is being made already", self.once(expect=75))
        process.kill()  # the source does not miss it: it was not attached since the restart
        process.wait()
        self.assertIsNotNone(self.session())
        self.assertIn("the session of process %d, which has ended, held the lock" % process.pid, self.once())
        self.assert_equal()
        self.assertIsNone(self.session())
        self.assertFalse(self.ended_cleanly())
        self.once()
        self.assertTrue(self.ended_cleanly())

    def ended_cleanly(self):
        return self.target.must("GET", "/.tidelock-replicate/_doc/default")["_source"].get("clean", False)

    def test_holders_elsewhere(self):
        """A holder is ended only if its process was in our process namespace: a process id elsewhere, or any other name, is no evidence."""
        process = self.follow()
        self.until(self.has_place, "it has attached its session, which ends with the process then, and not after its ttl")
        ours = next(session["name"] for session in self.source.must("GET", "/_session")["sessions"])
        self.kill_copy(process)
        space = ours.rsplit(" ", 1)[1][:-1]
        self.assertEqual(ours, "replicate default (process %d on %s)" % (process.pid, space))
        gone = ours.replace("on " + space, "on " + "%016x" % (int(space, 16) ^ 1))
        for name in (gone, "replicate default", "replicate other" + ours[17:], ours + " ", ours[:-1], ours.replace(str(process.pid), "0"), ours.replace(str(process.pid), "-1"),
                     ours.replace(str(process.pid), str(os.getpid())), None):
            session = self.source.must("POST", "/_session", {"name": name} if name else {})["session"]
            self.source.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": ".tidelock-replicate", "id": "default"}]})
            with self.subTest(name):
                self.once(expect=75)
            self.source.must("DELETE", "/_session/" + session)
        session = self.source.must("POST", "/_session", {"name": ours})["session"]
        self.source.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": ".tidelock-replicate", "id": "default"}]})
        attached = self.source.connect()
        attached.request("GET", "/_session/%s/_attach" % session)
        attached.getresponse().readline()
        with self.subTest("attached"):  # its process is in a machine that has equal ids
            self.assertIn("a copy of this name is being made already: ", self.once(expect=75))
        attached.close()
        until(lambda: self.session() is None, "the session has ended")
        self.once()

    def assert_equal_besides(self, prefix):
        self.assertEqual({key: value for key, value in documents(self.target.must, prefix=prefix).items()}, documents(self.source.must))

    def test_newer_position_stops_copy(self):
        """A copy stops when it finds a newer position than its own."""
        self.fill(3)
        process = self.follow(fast=True)
        self.await_equal()
        self.until(self.has_place, "the place is kept")
        place = self.target.must("GET", "/.tidelock-replicate/_doc/default")
        far = place["_version"] + 3600 * 10**6
        self.target.must("PUT", "/.tidelock-replicate/_doc/default?version=%d&version_type=external" % far, dict(place["_source"], timestamp=far))
        self.source.must("PUT", "/fs/_doc/1", {"n": 2})
        self.assertEqual(self.ended(process), 75, self.messages(process))

    def test_lock_lost(self):
        """Its session ended by force: it stops, and says so by its status."""
        self.fill(3)
        process = self.follow()
        self.await_equal()
        self.source.must("DELETE", "/_session/%s?force=true" % self.session())
        self.source.must("PUT", "/fs/_doc/1", {"n": 2})
        self.assertEqual(self.ended(process), 76, self.messages(process))

    def test_refused(self):
        """Documents that the target refuses are recorded by each copy and reported, and do not delay others."""
        self.target.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "date", "format": "yyyy"}}}})
        self.source.must("PUT", "/fs/_doc/good", {"n": 2020})
        self.source.must("PUT", "/fs/_doc/bad", {"n": 7})
        self.source.must("PUT", "/fs/_doc/also", {"n": 2021})
        said = self.once(expect=1)
        self.assertIn("the target has refused 1", said)
        self.assertEqual({id for _, id in documents(self.target.must)}, {"good", "also"})
        self.once("--name", "b:c", expect=1)  # into the same index
        for name, id in (("default", "default:fs:bad"), ("b:c", "b%3Ac:fs:bad")):
            aside = self.target.must("GET", "/.tidelock-replicate-refused/_doc/" + urllib.parse.quote(id, safe=""))["_source"]
            self.assertEqual((aside["name"], aside["index"], aside["id"]), (name, "fs", "bad"))
            self.assertIn("failed to parse", aside["error"])

    def test_refused_long_ids(self):
        """Each refused document has a record of its own, also if ids are as long as any, differ at their end only, or have characters of several bytes."""
        ids = {"x" * 511 + "1", "x" * 511 + "2", "\u00e4" * 256, "x" + "\u00e4" * 255}
        self.target.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "date", "format": "yyyy"}}}})
        for id in ids:
            self.source.must("PUT", "/fs/_doc/" + urllib.parse.quote(id), {"n": 7})
        self.assertIn("the target has refused 4", self.once(expect=1))
        found = self.target.must("POST", "/.tidelock-replicate-refused/_search?size=10", {})["hits"]["hits"]
        self.assertEqual({hit["_source"]["id"] for hit in found}, ids)

    def test_target_and_source_restarts(self):
        """The copy continues without an operator after restarts of the target and of the source."""
        self.fill(50)
        process = self.follow()
        self.await_equal()
        self.target.kill()
        self.source.must("PUT", "/fs/_doc/1", {"t": "while the target is away"})
        # It may be writing documents, or still its first place: it waits in either case.
        until(lambda: any(text in self.messages(process) for text in ("trying again", "waiting for the target")), "it has found the target away")
        self.target.start()
        self.await_equal()
        self.source.kill()
        self.source.start()
        self.source.must("PUT", "/fs/_doc/2", {"t": "after the source was away"})
        self.await_equal()
        self.assertIsNone(process.poll(), self.messages(process))

    @unittest.skipUnless(os.path.exists(clock.SHIM), "the clock shim is not built")
    def test_target_gone_for_an_hour(self):
        """Suspects come due, places and comparisons are overdue, and its lease seems over: it asks for the session, and continues when the target is back."""
        self.fill(50)
        process = self.follow(fast=True)
        self.await_equal()
        self.target.kill()
        self.source.must("PUT", "/fs/_doc/1", {"t": "while the target is away"})
        until(lambda: any(text in self.messages(process) for text in ("trying again", "waiting for the target")), "it has found the target away")
        self.hasty.jump(3600)
        self.source.must("PUT", "/fs/_doc/1", {"t": "an hour later"})
        self.source.must("DELETE", "/fs/_doc/2")
        self.source.must("PUT", "/new/_doc/1", {"t": "of an index that is new"})
        self.target.start()
        self.await_equal()
        self.assertIsNone(process.poll(), self.messages(process))

    def test_feed_cut(self):
        """The position is older than the feed: everything is compared, and documents deleted meanwhile are deleted."""
        self.fill(20)
        self.once()
        self.source.must("DELETE", "/fs/_doc/1")
        self.source.must("PUT", "/fs/_doc/2", {"t": "two"})
        self.cut_feed()
        self.source.must("PUT", "/fs/_doc/3", {"t": "three"})
        self.assertIn("everything is compared", self.once())
        self.assert_equal()


class Replaced(Copy):
    """Another program deletes an index of the target, or makes its name an alias, while a copy follows. As long as the copy has no more changes, nothing happens."""
    def setUp(self):
        super().setUp()
        self.fill(50)

    def replace(self, count=1):
        """The copy follows through a proxy. Before the next bulk is forwarded, another program deletes the target's index, which the bulk creates again: `count` times."""
        def judge(method, path, body):
            nonlocal count
            if path.startswith("/_bulk") and b'"late"' in body and count > 0:
                count -= 1
                connection = self.target.connect()
                self.assertEqual(self.target.request("DELETE", "/fs", connection=connection).status, 200)
                connection.close()
            return "pass"
        self.meddler = Meddler(self.target.port)
        self.meddler.__enter__()
        self.addCleanup(self.meddler.__exit__)
        return judge

    def place(self):
        return self.target.must("GET", "/.tidelock-replicate/_doc/default")["_source"]["timestamp"]

    def test_deleted_index_is_copied_again(self):
        process = self.follow()
        self.await_equal()
        self.target.must("DELETE", "/fs")
        self.source.must("PUT", "/fs/_doc/more", {"n": 1})
        self.await_equal()
        self.assertIn("another program has deleted the target's index fs", self.messages(process))

    def test_alias_is_not_written_to(self):
        process = self.follow()
        self.await_equal()
        self.target.must("PUT", "/other", {})
        self.target.must("DELETE", "/fs")
        self.target.must("POST", "/_aliases", {"actions": [{"add": {"index": "other", "alias": "fs"}}]})
        self.source.must("PUT", "/fs/_doc/more", {"n": 1})
        self.assertEqual(self.ended(process), 1)
        self.assertIn("replaced the target's index fs by an alias of other", self.messages(process))
        self.assertIn("the target has an alias of the name fs", self.messages(process))
        self.assertEqual(documents(self.target.must), {})

    def test_index_that_a_bulk_has_created_does_not_count(self):
        """The index is deleted after the copy has looked: the bulk creates it, without mapping and earlier documents. The place does not pass that bulk."""
        judge = self.replace()
        process = self.follow(to=self.meddler.url)
        self.await_equal()
        self.meddler.judge = judge
        self.source.must("PUT", "/fs/_doc/more", {"late": 1})
        after = self.source.must("GET", "/_timestamp")["timestamp"]
        self.assertEqual(self.ended(process), 1)
        self.assertRegex(self.messages(process), "another program has (deleted|replaced) the target's index fs")
        self.assertRegex(self.messages(process), r"the target's index fs was deleted while this copy wrote to it, and exists again with \d+ documents")
        self.assertLess(self.place(), after)
        self.once("--take-over")
        self.assert_equal()

    def test_first_copy(self):
        """Each time it is replaced, the copy begins again, with --take-over."""
        self.source.must("PUT", "/fs/_doc/more", {"late": 1})
        judge = self.replace(3)
        self.meddler.judge = judge
        said = self.once("--take-over", to=self.meddler.url)
        self.assertEqual(len(re.findall("another program has (?:deleted|replaced) the target's index fs", said)), 3, said)
        self.assert_equal()


class Each(Copy):
    def commits(self):
        """Changes the source, of every kind, and yields after each commit."""
        must = self.source.must
        must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        yield "an index"
        must("POST", "/_bulk?atomic=true", "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"path":"/a/%d","n":%d}\n' % (i, i, i) for i in range(6)))
        yield "documents in one commit"
        must("POST", "/fs/_update/1", {"script": "ctx._source.n += 100"})
        yield "a script"
        must("DELETE", "/fs/_doc/2")
        yield "a delete"
        must("PUT", "/fs/_doc/2?routing=r", {"path": "/b/2", "n": 20})
        yield "a document made again, under a routing"
        must("POST", "/fs/_rename", {"from": "/a", "to": "/c/d"})
        yield "a directory renamed"
        transaction = must("POST", "/_transaction", {"mode": "update"})["transaction"]
        for id, n in (("3", 33), ("new", 1)):
            must("PUT", "/fs/_doc/" + id, {"path": "/t/" + id, "n": n}, {"Tidelock-Transaction": transaction})
        must("DELETE", "/fs/_doc/4", None, {"Tidelock-Transaction": transaction})
        must("POST", "/_transaction/%s/_commit" % transaction)
        yield "a transaction"
        must("PUT", "/fs/_mapping", {"properties": {"more": {"type": "keyword"}}})
        yield "a field"
        must("PUT", "/other/_doc/1", {"n": 1})
        yield "another index"
        must("DELETE", "/fs")
        yield "an index deleted"
        must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "keyword"}}}})
        yield "and made again"
        must("PUT", "/fs/_doc/2", {"n": "text"})
        yield "a document in it"
        must("DELETE", "/other")
        yield "another index deleted"

    @unittest.skipIf(TARGET, "the copies of one source in one target")
    def test_from_each_timestamp(self):
        """A copy is made after each commit, and followed after the last one, from its own place; every other one when the feed does not reach back any more."""
        copies = []
        for i, _ in enumerate(self.commits()):
            copies.append(("--name", "c%d" % i, "--prefix", "c%d-" % i))
            self.once(*copies[-1])
        for copy in copies[::2]:
            self.assertNotIn("everything is compared", self.once("--delete-indices", *copy))
            self.assertEqual(documents(self.target.must, prefix=copy[3]), documents(self.source.must), copy)
        self.cut_feed()
        self.source.must("PUT", "/fs/_doc/last", {"n": "last"})
        for copy in copies:
            self.assertIn("everything is compared", self.once("--delete-indices", *copy))
            self.assertEqual(documents(self.target.must, prefix=copy[3]), documents(self.source.must), copy)


class Odd(Copy):
    """Rare conditions."""

    def test_killed_while_an_index_is_copied_again(self):
        """The index was deleted in the target: its documents are copied again, also if the program that began with it was killed."""
        self.fill(50)
        self.once()
        self.target.must("DELETE", "/fs")
        with Meddler(self.target.port, lambda method, path, body: "drop" if path.startswith("/_bulk") else "pass") as meddler:
            process = self.follow(to=meddler.url)
            until(lambda: self.target.ask("GET", "/fs")[0] == 200, "the index is made again")
            self.kill_copy(process)
        self.assertTrue(self.target.must("GET", "/fs/_mapping")["fs"]["mappings"]["_meta"]["tidelock_part"])
        self.source.must("PUT", "/fs/_doc/new", {"n": 1})
        self.once("--suspect-time", "0s")
        self.assert_equal()
        self.assertNotIn("tidelock_part", self.target.must("GET", "/fs/_mapping")["fs"]["mappings"]["_meta"])
        self.assertIn(" 0 documents sent", self.once())

    def test_a_comparison_that_is_cut_off(self):
        """The target has forgotten where it was: it is not taken for the end."""
        self.fill(1300)
        self.once()
        self.target.must("DELETE", "/fs/_doc/1299")
        self.target.must("PUT", "/fs/_doc/zzz", {"n": 1})
        forgotten = []

        def spoil(method, path, answer):
            if path == "/_search/scroll" and len(forgotten) < 3:
                forgotten.append(path)
                return 404, "application/json", b'{"error":{"type":"search_context_missing_exception"},"status":404}'
            return answer
        with Meddler(self.target.port) as meddler:
            meddler.spoil = spoil
            run = subprocess.run(self.command("--quiet", "--verify", to=meddler.url), capture_output=True, text=True, env=without_rests())
        self.assertEqual((run.returncode, sorted(run.stdout.splitlines())),
                         (1, ["extra      fs/zzz", "missing    fs/1299", "not equal: of 1300 documents 1 are missing, 0 older, 0 different, 0 newer, and 1 extra"]), run.stderr)
        self.assertIn("it begins again", run.stderr)

    def test_ids_with_every_byte(self):
        """Ids with NUL, quotes, slashes and unassigned characters; each document is copied, changed, compared and deleted."""
        ids = [chr(n) for n in range(0x180)] + ["a\0b", "a\0c", "a", "\u2028", "\U0001f600", "../x", "_all", "%00", "x" * 512]
        ids = [id for id in ids if not id.startswith("_") or len(id) > 1]

        def put(n):
            lines = "".join('%s\n{"n":%d}\n' % (json.dumps({"index": {"_index": "fs", "_id": id}}), n) for id in ids)
            reply = self.source.must("POST", "/_bulk", lines)
            self.assertFalse(reply["errors"], [item for item in reply["items"] if item["index"]["status"] > 299][:3])
        put(1)
        process = self.follow()
        self.await_equal()
        put(2)
        self.await_equal()
        self.assertEqual(len(documents(self.target.must)), len(set(ids)))
        self.target.must("POST", "/_bulk", "".join('%s\n' % json.dumps({"delete": {"_index": "fs", "_id": id}}) for id in ("a\0b", '"', "\n", "/")))
        self.kill_copy(process)
        repair = subprocess.run(self.command("--quiet", "--repair", "--json"), capture_output=True, text=True, env=without_rests())
        self.assertEqual((repair.returncode, json.loads(repair.stdout)["missing"]), (0, 4), repair.stdout)
        self.assert_equal()
        self.source.must("POST", "/_bulk", "".join('%s\n' % json.dumps({"delete": {"_index": "fs", "_id": id}}) for id in ids))
        self.once()
        self.assertEqual(documents(self.target.must), {})

    def test_large(self):
        """One commit of many changes, and a document that is larger than a batch. TIDELOCK_TEST_LONG: 100,000, and 50 MB."""
        many, megabytes = (100000, 50) if LONG else (5000, 8)
        self.fill(3)
        process = self.follow("--quiet")
        self.await_equal()
        self.source.must("POST", "/_bulk?atomic=true", "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":%d}\n' % (i, -i) for i in range(many)))
        self.source.must("PUT", "/fs/_doc/large", '{"t":"%s","n":1}' % ("0123456789abcde " * (megabytes << 16)))

        def there():
            return self.target.must("GET", "/fs/_count")["count"] == many + 1 and process.poll() is None
        until(lambda: process.poll() is not None or there(), "all is there")
        self.assertIsNone(process.poll(), self.messages(process))
        verify = subprocess.run(self.command("--quiet", "--verify"), capture_output=True, text=True)
        self.assertEqual((verify.returncode, verify.stdout), (0, "equal: %d documents\n" % (many + 1)), verify.stderr)

    def test_blocked(self):
        """A target that is read-only for a while is waited for."""
        self.fill(20)
        process = self.follow()
        self.await_equal()
        self.target.must("PUT", "/fs/_settings", {"index.blocks.write": True})
        self.source.must("PUT", "/fs/_doc/1", {"n": 77})
        until(lambda: "trying again" in self.messages(process), "it says so")
        self.target.must("PUT", "/fs/_settings", {"index.blocks.write": False})
        self.await_equal()

    def test_closed_by_another_program(self):
        """As one that is read-only: no document is recorded as refused."""
        self.fill(20)
        process = self.follow()
        self.await_equal()
        self.target.must("POST", "/fs/_close")
        self.source.must("PUT", "/fs/_doc/1", {"n": 77})
        until(lambda: "trying again" in self.messages(process), "it says so")
        self.target.must("POST", "/fs/_open")
        self.await_equal()
        self.assertEqual(self.target.ask("GET", "/.tidelock-replicate-refused")[0], 404)


class Suspects(Copy):
    """A request whose reply was lost may be executed again, late: its documents are compared after some time, by a restarted program, too."""
    def setUp(self):
        super().setUp()
        self.meddler = Meddler(self.target.port)
        self.meddler.__enter__()
        self.addCleanup(self.meddler.__exit__)

    def suspects(self):
        status, place = self.target.ask("GET", "/.tidelock-replicate/_doc/default")
        return place["_source"].get("suspects") if status == 200 else None

    def lose_once(self, id):
        """Returns: a list that has two entries when the request was repeated, and the repetition been answered."""
        seen = []

        def judge(method, path, body):
            if method == "POST" and path.startswith("/_bulk") and ('"_id":"%s"' % id).encode() in body:
                seen.append(path)
                return "lose" if len(seen) == 1 else "pass"
            return "pass"
        self.meddler.judge = judge
        return seen

    def lie(self, *ids):
        connection = self.target.connect()  # from the meddler's thread, too
        for id in ids:
            response = self.target.request("PUT", "/fs/_doc/" + id, '{"late": true}', connection=connection)
            self.assertLess(response.status, 300, response.body)
        connection.close()

    def is_late(self, id):
        status, found = self.target.ask("GET", "/fs/_doc/" + id)
        return status == 200 and "late" in found["_source"]

    def change(self):
        """A copy that follows, with a document whose answer was lost, known to be a suspect by its place."""
        self.fill(3)
        process = self.follow("--suspect-time", "1h", to=self.meddler.url, fast=True)
        self.await_equal()
        self.until(self.has_place, "there is a place")
        self.assertIsNone(self.suspects())
        seen = self.lose_once("a")
        self.source.must("PUT", "/fs/_doc/a", {"n": 1})
        self.until(lambda: len(seen) >= 2 and self.suspects(), "the request came again, and the place says that there are suspects")
        self.source.must("DELETE", "/fs/_doc/a")
        self.await_equal()
        return process

    def test_mended(self):
        """After the time has passed, by the same process; only suspects are compared."""
        self.fill(3)
        self.once()
        seen = self.lose_once("a")
        self.source.must("PUT", "/fs/_doc/a", {"n": 1})
        forward, lied = self.meddler.forward, threading.Event()

        def lie_behind(*request):  # before the repetition is answered
            answer = forward(*request)
            if len(seen) == 2 and request[1].startswith("/_bulk") and not lied.is_set():
                self.lie("a", "1")
                lied.set()
            return answer
        self.meddler.forward = lie_behind
        self.follow("--suspect-time", "1s", to=self.meddler.url, fast=True)
        self.until(lambda: lied.is_set() and not self.is_late("a") and self.target.ask("GET", "/fs/_doc/a")[0] == 200, "it is mended")
        self.assertTrue(self.is_late("1"))

    def test_taken_over(self):
        """By the life after one that was killed, and after one that was ended: a deleted document came back meanwhile."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how):
                process = self.change()
                if how == signal.SIGKILL:
                    self.kill_copy(process)
                else:
                    process.send_signal(how)
                    self.ended(process)
                    self.assertTrue(self.suspects())
                self.lie("a")
                self.once("--suspect-time", "0s")
                self.assertFalse(self.is_late("a"))
                self.assert_equal()
                self.assertIsNone(self.suspects())
                self.assertTrue(self.target.must("GET", "/.tidelock-replicate/_doc/default")["_source"]["clean"])
                for index in ("fs", ".tidelock-replicate"):
                    self.target.must("DELETE", "/" + index)

    def place(self):
        return self.target.must("GET", "/.tidelock-replicate/_doc/default")["_source"]

    def hold(self, id):
        """The bulk with this document, and its repetitions, are executed only by let_go()."""
        self.meddler.judge = lambda method, path, body: "late" if path.startswith("/_bulk") and ('"_id":"%s"' % id).encode() in body else "pass"

    def assert_compared_later(self, id):
        """A program that was killed may have a request with the document under way, which the source has deleted: so the document is compared after the suspects' time."""
        self.source.must("DELETE", "/fs/_doc/" + id)
        self.once("--suspect-time", "1h")
        self.assertTrue(self.suspects())
        self.lie(id)
        self.once("--suspect-time", "0s")
        self.assert_equal()
        self.assertIsNone(self.suspects())

    def assert_everything_compared_later(self, id):
        """The feed does not name the document whose request was held: after the suspects' time everything is compared."""
        self.once("--suspect-time", "1h")
        self.assert_equal()
        self.assertTrue(self.suspects()["all"])
        self.meddler.let_go()
        self.assertEqual(self.target.ask("GET", "/fs/_doc/" + id)[0], 200)
        self.once("--suspect-time", "0s")
        self.assert_equal()
        self.assertIsNone(self.suspects())

    def test_killed_before_its_first_place(self):
        """Its predecessor ended with no request under way; a program that is killed before it has written a place of its own is taken over all the same."""
        self.fill(3)
        self.once()
        self.assertTrue(self.place()["clean"])
        self.hold("a")
        process = self.follow(to=self.meddler.url)
        self.source.must("PUT", "/fs/_doc/a", {"n": 1})
        until(lambda: self.meddler.late, "the document is under way")
        self.kill_copy(process)
        self.assertNotIn("clean", self.place())
        self.assert_compared_later("a")

    def test_repair_that_is_killed(self):
        """As a copy that is killed; one that ends leaves the place as it was, with the --index of the copy."""
        self.fill(3)
        self.once("--index", "fs")
        before = self.place()
        self.target.must("DELETE", "/fs/_doc/1")
        self.hold("1")
        process = subprocess.Popen(self.command("--repair", "--quiet", to=self.meddler.url), stdout=subprocess.DEVNULL, env=without_rests())
        until(lambda: self.meddler.late, "the document is under way")
        self.kill_copy(process)
        self.assertEqual((self.place()["index"], "clean" in self.place()), ("fs", False))
        self.once("--index", "fs", "--suspect-time", "0s")
        self.assertEqual(self.place().keys(), before.keys())
        before = self.place()
        subprocess.run(self.command("--repair", "--quiet"), stdout=subprocess.DEVNULL, env=without_rests(), check=True)
        self.assert_equal()
        self.assertEqual(self.place(), before)
        self.target.must("DELETE", "/fs/_doc/1")
        self.lose_once("1")
        subprocess.run(self.command("--repair", "--quiet", to=self.meddler.url), stdout=subprocess.DEVNULL, env=without_rests(), check=True)
        self.assertTrue(self.suspects()["all"])

    def test_first_copy_that_was_killed(self):
        """The next first copy has a later timestamp, and the feed after that does not name a document deleted before: everything is compared."""
        self.fill(30)
        self.hold("7")
        process = self.follow(to=self.meddler.url)
        until(lambda: self.meddler.late, "the document is under way")
        self.kill_copy(process)
        self.source.must("DELETE", "/fs/_doc/7")
        self.assert_everything_compared_later("7")

    def test_index_made_again_after_a_kill(self):
        """A document that was under way to an index that the source has deleted since may come into the later index of its name: everything is compared."""
        self.fill(3)
        self.once()
        self.hold("a")
        process = self.follow(to=self.meddler.url)
        self.source.must("PUT", "/fs/_doc/a", {"n": 1})
        until(lambda: self.meddler.late, "the document is under way")
        self.kill_copy(process)
        self.source.must("DELETE", "/fs")
        self.fill(3)
        self.assert_everything_compared_later("a")

    def test_comparison_of_other_indices(self):
        """Everything is compared, and again after the suspects' time only if the previous program may have left requests."""
        self.fill(3)
        self.once()
        self.assertIn("everything is compared", self.once("--index", "fs"))
        self.assertIsNone(self.suspects())
        self.cut_feed()
        self.source.must("PUT", "/fs/_doc/a", {"n": 1})
        self.assertIn("everything is compared", self.once("--index", "fs"))
        self.assertIsNone(self.suspects())
        self.hold("a")
        process = self.follow("--index", "fs", to=self.meddler.url)
        self.source.must("PUT", "/fs/_doc/a", {"n": 2})
        until(lambda: self.meddler.late, "the document is under way")
        self.kill_copy(process)
        self.assertIn("everything is compared", self.once())
        self.assertTrue(self.suspects()["all"])
        self.assert_compared_later("a")

    def test_first_copy(self):
        """The feed does not have the requests lost during the first copy: everything is compared."""
        self.fill(300)
        self.lose_once("7")
        run = subprocess.run(self.command("--once", "--suspect-time", "1h", to=self.meddler.url), capture_output=True, text=True, env=without_rests())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(self.suspects()["all"])
        self.lie("7", "8")
        self.once("--suspect-time", "0s")
        self.assert_equal()
        self.assertIsNone(self.suspects())
        self.lie("8")
        self.once("--suspect-time", "0s")
        self.assertTrue(self.is_late("8"))


class Verify(Copy):
    def verify(self, *options, expect=0, env=None):
        run = subprocess.run(self.command("--quiet", *options), capture_output=True, text=True, env=env or without_rests())
        self.assertEqual(run.returncode, expect, run.stderr + run.stdout)
        return run.stdout

    def lie(self):
        """Changes the target as another client would. Returns: the expected report."""
        messages = []
        for i in range(0, 2500, 250):
            id, what = "%d" % i, i // 250 % 3
            if what == 0:
                self.target.must("DELETE", "/fs/_doc/" + id)
            elif what == 1:
                self.target.must("PUT", "/fs/_doc/" + id, {"n": -i, "t": "a b"})
            else:
                self.target.must("PUT", "/fs/_doc/more-%s?routing=q" % id, {"n": 1})
            messages.append(("missing", "different", "extra")[what] + "  fs/" + ("more-" if what == 2 else "") + id)
        return sorted(messages)

    def test_named_and_mended(self):
        self.fill(2500)
        self.source.must("PUT", "/fs/_doc/r?routing=x", {"n": 1.50})
        self.source.must("PUT", "/ty/file/1", {"n": 1})
        self.source.must("PUT", "/ty/lock/1", {"n": 2})
        self.once()
        self.assertEqual(self.verify("--verify"), "equal: 2503 documents\n")
        lies = self.lie()
        found = self.verify("--verify", expect=1).splitlines()
        self.assertEqual(sorted(" ".join(line.split()) for line in found[:-1]), [" ".join(line.split()) for line in lies])
        self.assertEqual(found[-1], "not equal: of 2503 documents 4 are missing, 0 older, 3 different, 0 newer, and 3 extra")
        self.assertEqual(json.loads(self.verify("--verify", "--json", expect=1)),
                         {"equal": False, "documents": 2503, "missing": 4, "extra": 3, "older": 0, "different": 3, "newer": 0, "more": False})
        self.assertEqual(self.verify("--repair").splitlines()[-1], "equal after the repair: 10 documents were repaired")
        self.assertEqual(self.verify("--repair"), "equal: 2503 documents\n")
        self.target.must("DELETE", "/fs/_doc/1")
        self.assertEqual(json.loads(self.verify("--repair", "--json")),
                         {"equal": False, "documents": 2503, "missing": 1, "extra": 0, "older": 0, "different": 0, "newer": 0, "more": False, "repaired": True})
        self.assertEqual(self.verify("--verify"), "equal: 2503 documents\n")

    def test_versions_are_compared_and_contents_by_an_option(self):
        """A document of the source's version with another content is found only by --content, also by --repair and the periodic comparison; one with another version and the same content is equal."""
        self.fill(20)
        self.once()
        present = self.source.must("PUT", "/_scripts/later", {"script": {"lang": "painless", "source": "1"}}) and self.source.must("GET", "/_timestamp")["timestamp"]
        version = self.target.must("GET", "/fs/_doc/3")["_version"]
        self.target.must("PUT", "/fs/_doc/3?version_type=external_gte&version=%d" % version, {"n": -3, "t": "a b"})
        self.target.must("PUT", "/fs/_doc/4?version_type=external&version=%d" % present, {"n": 4, "t": "a b"})
        self.assertEqual(self.verify("--verify"), "equal: 20 documents\n")
        self.assertEqual(self.verify("--verify", "--content", expect=1).splitlines()[0], "different  fs/3")
        self.verify("--repair")
        self.assertFalse(self.equal())
        self.verify("--repair", "--content")
        self.assert_equal()
        self.assertEqual(self.verify("--verify", "--content"), "equal: 20 documents\n")
        self.assertEqual(self.verify("--verify"), "equal: 20 documents\n")

    def test_changes_after_a_repair(self):
        """A repair gives documents and deletes the timestamp of its read as version, which is above their commits': each later change is above that, by a write, a rename or a delete, and after a delete."""
        self.source.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.fill(6)
        self.source.must("PUT", "/fs/_doc/below", {"path": "/a/b/c", "n": 1})
        self.once()
        for i in range(5):
            for id in ("1", "2", "below"):
                self.target.must("PUT", "/fs/_doc/" + id, {"n": -i})
            self.target.must("PUT", "/fs/_doc/3", {"n": -i})
            self.source.must("DELETE", "/fs/_doc/3")
            self.target.must("DELETE", "/fs/_doc/4")
            self.assertEqual(self.verify("--repair").splitlines()[-1], "equal after the repair: 5 documents were repaired")
            self.assert_equal()
            self.source.must("PUT", "/fs/_doc/1", {"n": i})
            self.source.must("DELETE", "/fs/_doc/2")
            self.source.must("PUT", "/fs/_doc/2", {"n": i})
            self.source.must("POST", "/fs/_rename", {"from": ("/a", "/z")[i % 2], "to": ("/z", "/a")[i % 2]})
            self.source.must("PUT", "/fs/_doc/3", {"n": i})
            self.source.must("DELETE", "/fs/_doc/4")
            self.once()
            self.assert_equal()
            self.source.must("PUT", "/fs/_doc/4", {"n": i})
            self.once()
            self.assertEqual(self.verify("--verify", "--content"), "equal: 7 documents\n")

    def test_copy_of_an_earlier_program(self):
        """It gave all documents the timestamp of the read as version: they are equal, and each later change is above it; an old request of it changes nothing."""
        self.source.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.fill(6)
        self.source.must("PUT", "/fs/_doc/below", {"path": "/a/b/c", "n": 1})
        self.once()
        present = self.source.must("PUT", "/_scripts/later", {"script": {"lang": "painless", "source": "1"}}) and self.source.must("GET", "/_timestamp")["timestamp"]
        for (_, id), (source, _) in documents(self.source.must).items():
            self.target.must("PUT", "/fs/_doc/%s?version_type=external&version=%d" % (id, present), source)
        self.assertEqual(self.verify("--verify"), "equal: 7 documents\n")
        self.source.must("POST", "/fs/_rename", {"from": "/a/b", "to": "/c"})
        self.source.must("PUT", "/fs/_doc/1", {"n": 7})
        self.source.must("DELETE", "/fs/_doc/2")
        self.once()
        self.assert_equal()
        for id in ("1", "2", "below"):
            self.assertEqual(self.target.ask("PUT", "/fs/_doc/%s?version_type=external&version=%d" % (id, present), {"n": -1})[0], 409)
        self.assertEqual(self.verify("--verify", "--content"), "equal: 6 documents\n")

    def test_index_made_again(self):
        """Documents of the same ids in an index that was deleted and made again, while a copy follows and while none does, closed in the target or deleted there."""
        for options in ((), ("--delete-indices",)):
            for follows in (False, True):
                with self.subTest((options, follows)):
                    self.setUp()
                    self.fill(6)
                    self.once(*options)
                    self.target.must("PUT", "/fs/_doc/1", {"n": -1})
                    self.verify("--repair", *options)
                    process = self.follow(*options) if follows else None
                    for count in (4, 5):
                        self.source.must("DELETE", "/fs")
                        self.fill(count)
                    if follows:
                        self.await_equal()
                        self.kill_copy(process)
                    else:
                        self.once(*options)
                    self.assert_equal()
                    self.assertEqual(self.verify("--verify", "--content"), "equal: 5 documents\n")
                    self.end()

    def test_newer_versions_in_target_are_named_and_not_mended(self):
        """Versions above the source's timestamp: --repair cannot replace them, and ends with 1, until their index is copied again."""
        self.fill(20)
        self.once()
        later = (int(time.time()) + 10000) * 1000000
        self.target.must("PUT", "/fs/_doc/1?version_type=external&version=%d" % later, {"n": -1, "t": "a b"})
        self.target.must("PUT", "/fs/_doc/more?version_type=external&version=%d" % later, {"n": -1})
        self.target.must("PUT", "/fs/_doc/2", {"n": -2, "t": "a b"})
        found = ["different  fs/2", "extra      fs/more", "newer      fs/1", "not equal: of 20 documents 0 are missing, 0 older, 1 different, 1 newer, and 1 extra"]
        self.assertEqual(sorted(self.verify("--verify", expect=1).splitlines()), found)
        repair = subprocess.run(self.command("--quiet", "--repair"), capture_output=True, text=True, env=without_rests())
        self.assertEqual((repair.returncode, sorted(repair.stdout.splitlines())), (1, found), repair.stderr)
        self.assertIn("2 documents of the target have versions above the source's timestamp", repair.stderr)
        self.assertEqual(json.loads(self.verify("--verify", "--json", expect=1)),
                         {"equal": False, "documents": 20, "missing": 0, "extra": 1, "older": 0, "different": 0, "newer": 1, "more": False})
        self.target.must("DELETE", "/fs")
        self.once()
        self.assertEqual(self.verify("--verify"), "equal: 20 documents\n")

    def test_older_states_are_told_from_other_contents(self):
        """An older document lacks a later change of the source: by a write, under a routing, by a rename; a different one has the source's change, with the same version, which only its content shows, or a later one."""
        self.source.must("PUT", "/fs", {"settings": {"number_of_shards": 3}, "mappings": {"properties": {"path": {"type": "path"}}}})
        self.fill(20)
        self.source.must("PUT", "/fs/_doc/r?routing=x", {"n": 1})
        self.source.must("PUT", "/fs/_doc/below", {"path": "/a/b"})
        self.source.must("PUT", "/ty/file/1", {"n": 1})
        self.source.must("PUT", "/ty/lock/1", {"n": 1})
        self.once()
        self.source.must("PUT", "/fs/_doc/1", {"n": 100})
        self.source.must("POST", "/fs/_update/2", {"script": "ctx._source.n += 1"})
        self.source.must("PUT", "/fs/_doc/r?routing=x", {"n": 2})
        self.source.must("POST", "/fs/_rename", {"from": "/a", "to": "/c"})
        self.source.must("PUT", "/ty/lock/1", {"n": 2})
        self.target.must("PUT", "/fs/_doc/3", {"n": -3, "t": "a b"})
        after = self.source.must("GET", "/_timestamp")["timestamp"]
        self.source.must("PUT", "/fs/_doc/4", {"n": 4, "m": 1})
        self.target.must("PUT", "/fs/_doc/4?version_type=external&version=%d" % after, {"n": 4, "m": 0})
        self.source.must("PUT", "/fs/_doc/5", {"n": 5, "m": 1})
        self.target.must("PUT", "/fs/_doc/5?version_type=external&version=%d" % self.source.must("GET", "/_timestamp")["timestamp"], {"n": 5, "m": 0})
        self.source.must("DELETE", "/fs/_doc/6")
        self.source.must("PUT", "/fs/_doc/new", {"n": 1})
        named = ["older      fs/" + id for id in ("1", "2", "4", "below", "r")] + ["older      ty/1", "different  fs/3", "extra      fs/6", "missing    fs/new"]
        for options, more in ((), []), (("--content",), ["different  fs/5"]):
            found = self.verify("--verify", *options, expect=1).splitlines()
            self.assertEqual(sorted(found[:-1]), sorted(named + more))
            self.assertEqual(found[-1], "not equal: of 24 documents 1 are missing, 6 older, %d different, 0 newer, and 1 extra" % (1 + len(more)))
        self.verify("--repair", "--content")
        for options in ("--verify",), ("--verify", "--content"):
            self.assertEqual(self.verify(*options), "equal: 24 documents\n")

    def test_repair_ends_with_0_only_if_both_are_equal(self):
        """While another program changes a document in the target: after each repair, after the first one only."""
        self.fill(20)
        self.once()
        with Meddler(self.target.port) as meddler:
            forward = meddler.forward
            for most, status in ((1, 0), (100, 1)):
                bulks = []

                def change(method, path, body, headers):
                    answer = forward(method, path, body, headers)
                    if path.startswith("/_bulk") and len(bulks) < most:
                        bulks.append(path)
                        for server, path, document in ((self.target, "/fs/_doc/7", {"n": -7}), (self.source, "/_scripts/later", {"script": {"lang": "painless", "source": "%d" % len(bulks)}})):
                            connection = server.connect()  # this is the meddler's thread
                            self.assertLess(server.request("PUT", path, json.dumps(document), connection=connection).status, 300)  # the source's timestamp passes that version
                            connection.close()
                    return answer
                meddler.forward = change
                self.target.must("PUT", "/fs/_doc/7", {"n": 0})
                run = subprocess.run(self.command("--quiet", "--repair", to=meddler.url), capture_output=True, text=True, env=without_rests())
                self.assertEqual((run.returncode, "1 documents are not equal after the repair: " in run.stderr), (status, status == 1), run.stderr)
                self.assertEqual(self.verify("--verify", expect=status).startswith("equal: "), status == 0)

    def test_repair_ends_with_1_if_a_document_is_refused(self):
        """The reason is the target's, and is said once."""
        self.fill(3)
        self.once()
        self.target.must("DELETE", "/fs/_doc/1")
        with Meddler(self.target.port) as meddler:
            forward = meddler.forward

            def refuse(method, path, body, headers):
                if not path.startswith("/_bulk"):
                    return forward(method, path, body, headers)
                ids = [json.loads(line)["index"]["_id"] for line in body.decode().splitlines()[::2]]
                return 200, "application/json", json.dumps({"items": [{"index": {"_index": "fs", "_id": id, "status": 400, "error": {"type": "mapper_parsing_exception", "reason": "no"}}}
                                                                      for id in ids]}).encode()
            meddler.forward = refuse
            run = subprocess.run(self.command("--quiet", "--repair", to=meddler.url), capture_output=True, text=True, env=without_rests())
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stderr.count("the target refuses fs/1: "), 1, run.stderr)
        self.assertNotIn("after the repair", run.stderr)

    def test_a_signal_before_the_end_is_not_success(self):
        """Neither is it a finding: documents that differ are reported when they differ for some seconds."""
        self.fill(20)
        self.once()
        self.target.must("DELETE", "/fs/_doc/1")
        for option, call in (("--verify", "/_mget"), ("--repair", "/_mget"), ("--once", "/_bulk")):
            reached = threading.Event()

            def judge(method, path, body, call=call, reached=reached):
                if path.startswith(call):
                    reached.set()
                return "drop" if path.startswith("/_bulk") else "pass"
            with self.subTest(option), Meddler(self.target.port, judge) as meddler:
                self.source.must("PUT", "/fs/_doc/2", {"t": option})
                process = subprocess.Popen(self.command(option, to=meddler.url), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.addCleanup(process.kill)
                until(reached.is_set, "the copy has asked for " + call)
                process.send_signal(signal.SIGTERM)
                out, errors = process.communicate()
                self.assertEqual((process.returncode, out), (143, ""), errors)
                self.assertIn("a signal has stopped it before the end", errors)

    def test_a_signal_before_the_last_page_is_not_success(self):
        """--once has read and sent a page of the changes, and more remain."""
        self.fill(20)
        self.once()
        self.fill(12000)
        process = []

        def watch(data):
            if data.startswith(b"GET /_changes?since="):
                until(lambda: process, "the process is known")
                process[0].send_signal(signal.SIGTERM)
        with Proxy(self.source.port, watch) as proxy:
            command = [PROGRAM, "replicate", "--from", "http://127.0.0.1:%d" % proxy.port, "--to", self.target.url, "--once"]
            process.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            self.addCleanup(process[0].kill)
            out, errors = process[0].communicate()
        self.assertEqual((process[0].returncode, out), (143, ""), errors)
        self.assertIn("a signal has stopped it before the end", errors)
        self.assertNotIn("the copy is complete", errors)
        self.once()
        self.assert_equal()

    def test_one_side_fails_while_the_other_one_hangs(self):
        """The comparison ends with the reason of the side that failed: it does not wait for the other one's replies."""
        self.fill(20)
        self.once()
        for fails, hangs in ((self.source, self.target), (self.target, self.source)):
            reached, ends = threading.Event(), threading.Event()

            def judge(method, path, body, reached=reached, ends=ends):
                if path.startswith("/fs/_search"):
                    reached.set()
                    ends.wait()
                return "pass"

            def refuse(method, path, answer, reached=reached):
                if not path.startswith("/fs/_search"):
                    return answer
                reached.wait()
                return 403, "application/json", b'{"error":{"reason":"not for you"},"status":403}'
            with self.subTest(fails.url), Meddler(fails.port) as failing, Meddler(hangs.port, judge) as hanging:
                self.addCleanup(ends.set)
                failing.spoil = refuse
                urls = (failing.url, hanging.url) if fails is self.source else (hanging.url, failing.url)
                run = subprocess.run([PROGRAM, "replicate", "--from", urls[0], "--to", urls[1], "--quiet", "--verify"], capture_output=True, text=True)
                ends.set()
                self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
                self.assertIn("cannot read fs: not for you", run.stderr)

    def test_nothing_there(self):
        self.fill(20)
        self.assertIn("of 20 documents 20 are missing", self.verify("--verify", expect=1))

    def test_verify_during_copy(self):
        """Changes in transit are not reported."""
        self.fill(500)
        self.follow()
        self.await_equal()
        ending = []

        def write():
            connection = self.source.connect()
            chance = random.Random(3)
            while not ending:
                self.source.request("PUT", "/fs/_doc/%d" % chance.randrange(600), json.dumps({"n": chance.randrange(1 << 30)}), connection=connection)
                self.source.request("DELETE", "/fs/_doc/%d" % chance.randrange(600), connection=connection)
                time.sleep(0.003)
            connection.close()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(3):
                self.assertIn("equal: ", self.verify("--verify", env=os.environ))
        finally:
            ending.append(True)
            thread.join()


class Hostile(Copy):
    """Clients write, delete and write again while the copy is killed, stopped, and its answers are lost."""
    DISTURBANCES = 60 if LONG else 8

    def write(self, number):
        chance = random.Random(number)
        connection = self.source.connect()
        while not self.ending:
            id = "/fs/_doc/%d" % chance.randrange(40)
            what = chance.random()
            if what < 0.3:
                self.source.request("DELETE", id, connection=connection)
            elif what < 0.4:
                body = "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":%d}\n{"delete":{"_index":"fs","_id":"%d"}}\n' % (i, chance.randrange(1 << 30), i + 5)
                               for i in range(5))
                self.source.request("POST", "/_bulk?atomic=true", body, connection=connection)
            else:
                self.source.request("PUT", id, json.dumps({"n": chance.randrange(1 << 30)}), connection=connection)
            time.sleep(chance.random() / 500)
        connection.close()

    def look(self):
        """A document that came and went, and is not made again, is not seen again."""
        connection = self.target.connect()
        seen, gone = set(), set()
        while not self.ending:
            for id in self.lone[-10:]:
                found = self.target.request("GET", "/fs/_doc/" + id, connection=connection).status == 200
                if found and id in gone:
                    self.risen.append(id)
                elif found:
                    seen.add(id)
                elif id in seen:
                    gone.add(id)
                    self.looks = len(gone)
        connection.close()

    def run_hostile(self, seed, disturb):
        chance = random.Random(seed)
        self.ending = False
        self.lone, self.risen, self.looks = [], [], 0
        threads = [threading.Thread(target=self.write, args=(seed * 10 + n,)) for n in range(3)] + [threading.Thread(target=self.look)]
        for thread in threads:
            thread.start()
        try:
            while len(self.lone) < self.DISTURBANCES or self.looks == 0:
                self.assertTrue(all(thread.is_alive() for thread in threads), "a client has ended")
                id = "lone-%d" % len(self.lone)
                self.lone.append(id)
                self.source.must("PUT", "/fs/_doc/" + id, {"here": True})
                disturb(chance)
                self.source.must("DELETE", "/fs/_doc/" + id)
        finally:
            self.ending = True
            for thread in threads:
                thread.join()
        self.await_equal()
        found = subprocess.run(self.command("--verify", "--quiet"), capture_output=True, text=True)
        self.assertEqual(found.returncode, 0, found.stdout)
        self.assertEqual(self.risen, [])

    def test_killed(self):
        """kill -9 at any time, and SIGSTOP; the next process continues from the position."""
        self.fill(20)
        process = [self.follow()]
        self.await_equal()

        def disturb(chance):
            time.sleep(chance.random() * (0.6 if LONG else 0.3))
            if chance.random() < 0.3:
                stop_process(process[0])
                time.sleep(chance.random() / (1 if LONG else 2))
                process[0].send_signal(signal.SIGCONT)
                return
            self.kill_copy(process[0])
            process[0] = self.follow()
            until(lambda: self.session() is not None, "the next one has a session")

        self.run_hostile(1, disturb)

    def test_answers_lost(self):
        """Connections to the target break during replies: a batch is sent again, and its items are found done."""
        with Proxy(self.target.port) as proxy:
            self.fill(20)
            process = self.follow(to="http://127.0.0.1:%d" % proxy.port)
            self.await_equal()

            def disturb(chance):
                time.sleep(chance.random() * 0.3)
                proxy.cut()

            self.run_hostile(2, disturb)
            self.assertIsNone(process.poll(), self.messages(process))


class Seeds(Copy):
    """A run of its own for each seed: clients concurrent with kill -9 and SIGSTOP of all three, and answers that are lost, late by up to ten seconds, or of requests that were done twice. With
    TIDELOCK_TEST_LONG, in make test-long, 16 clients write for 60 s in a single run. More runs, short ones: `python3 tests/e2e/replicate_test.py --seed FIRST --runs COUNT Seeds`;
    make test-long has 200 of them into a target that forgets deletes after a second (test replicate_standin_many).

    With TIDELOCK_TARGET_RESTART, such as "…/elasticsearch stop 7.10 && …/elasticsearch start 7.10", the real target is restarted in each run, and keeps versions of deletes for
    a second: a late request can restore a deleted document then while it is suspect, but never with TIDELOCK_TOMBSTONES=1."""
    DISTURBANCES = 40 if LONG else 12
    WRITERS, WRITES = (16, 60) if LONG else (3, 0)  # clients, and for how many seconds they write at least
    SHORT = 12, 3, 0  # those of one of several runs
    SECONDS = 4  # within which a real target is started anew
    TOMBSTONES = bool(os.environ.get("TIDELOCK_TOMBSTONES"))
    FORGETS = bool(RESTART)
    OPTIONS = ("--suspect-time", "5s", "--leave-settings") if RESTART else ("--suspect-time", "1s")

    def command(self, *options, to=None):
        return super().command(*options, *(("--tombstones",) if self.TOMBSTONES else ()), to=to)

    def equal(self, prefix=""):
        there = documents(self.target.must)
        if self.TOMBSTONES:
            there = {(index.removesuffix("-copy"), id): found for (index, id), found in there.items() if "tidelock_deleted" not in found[0]}
        return there == documents(self.source.must)

    def answer_until(self, server, method, path, body=None):
        """Repeats a request until there is a reply, however often the server is killed. Returns: the reply; None: the run ended before."""
        while True:
            connection = server.connect()
            try:
                response = server.request(method, path, body, connection=connection)
                if response.status < 500 and response.status != 429:
                    return response
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            if self.ending:
                return None
            time.sleep(0.02)

    def ask_until(self, server, method, path, body=None):
        """As answer_until(). Returns: the status, 404 of a tombstone; None: the run ended before."""
        response = self.answer_until(server, method, path, body)
        return None if response is None else 404 if b"tidelock_deleted" in response.body else response.status

    def write(self, number):
        chance = random.Random(number)
        while not self.ending:
            id, what = chance.randrange(40), chance.random()
            old, new = "/d%d" % chance.randrange(5), "/d%d" % chance.randrange(20)
            if what < 0.3:
                self.ask_until(self.source, "DELETE", "/fs/_doc/%d" % id)
            elif what < 0.4:
                self.ask_until(self.source, "POST", "/fs/_update/%d" % id, '{"script":"ctx._source.n += 1","upsert":{"n":1}}')
            elif what < 0.5:
                self.ask_until(self.source, "POST", "/_bulk?atomic=true", "".join(
                    '{"index":{"_index":"fs","_id":"%d"}}\n{"n":%d}\n{"delete":{"_index":"fs","_id":"%d"}}\n' % (i, number, i + 5) for i in range(5)))
            elif what < 0.53:
                self.ask_until(self.source, "POST", "/fs/_update_by_query?conflicts=proceed", json.dumps({
                    "query": {"prefix": {"path": old + "/"}},
                    "script": {"source": "ctx._source.path = params.to + ctx._source.path.substring(params.from.length())", "params": {"from": old, "to": new}}}))
            elif what < 0.56:
                self.ask_until(self.source, "POST", "/fs/_rename", json.dumps({"from": old, "to": new}))
            else:
                self.ask_until(self.source, "PUT", "/fs/_doc/%d" % id, json.dumps({"n": chance.randrange(1 << 30), "path": "%s/%d" % (old, id)}))

    def place(self):
        """Returns: the timestamp up to which the target has all changes; 0: it has no place, or the run ended."""
        response = self.answer_until(self.target, "GET", "/.tidelock-replicate/_doc/default")
        return json.loads(response.body)["_source"]["timestamp"] if response is not None and response.status == 200 else 0

    def look(self):
        """Documents that the target shows although it has acknowledged their deletion: they were seen, then not, and again; or the place was beyond their deletion before."""
        seen, gone = set(), set()
        while not self.ending:
            place = self.place()
            for id in self.lone[-10:]:
                deleted = self.deleted.get(id)
                found = self.ask_until(self.target, "GET", "/fs/_doc/" + id)
                if found == 200 and (id in gone or (deleted is not None and deleted <= place)):
                    self.risen.append(id)
                elif found == 200:
                    seen.add(id)
                elif found == 404 and id in seen:
                    gone.add(id)

    def judge(self, method, path, body):
        with self.chance_lock:
            what = self.chance.random()
        if not path.startswith("/_bulk") or self.ending:
            return "pass"
        if 0.2 < what < 0.22:
            time.sleep((what - 0.2) * 50)
        if 0.22 < what < 0.225:
            return (what - 0.22) * 2000
        return "lose" if what < 0.05 else "twice" if what < 0.1 else "late" if what < 0.15 else "pass"

    def let_go(self):
        try:
            self.meddler.let_go()
        except (OSError, http.client.HTTPException):
            pass  # it is away: so is the request

    def keep_running(self):
        if self.running[-1].poll() is not None:
            self.ends.append(self.running[-1].returncode)
            time.sleep(0.3)  # lest one is started again and again while a session of a source that was killed has time left
            self.follow(*self.OPTIONS, to=self.meddler.url)

    def restart_real(self, chance):
        """A real target takes some seconds for that."""
        def run(wait):
            time.sleep(wait)
            subprocess.run(RESTART, shell=True, stdout=subprocess.DEVNULL, check=True, timeout=300)
        thread = threading.Thread(target=run, args=(chance.random() * self.SECONDS,))
        thread.start()
        return thread

    def pause(self, process, seconds):
        stop_process(process)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def disturb(self, chance):
        what = chance.random()
        time.sleep(chance.random() * 0.3)
        if what < 0.25:
            self.running[-1].kill()
            self.running[-1].wait()
        elif what < 0.4 and self.running[-1].poll() is None:
            self.pause(self.running[-1], chance.random())
        elif what < 0.5:
            self.source.kill()
            self.source.start()
        elif what < 0.6 and not TARGET:
            self.target.kill()
            self.target.start()
        elif what < 0.7:
            self.pause(self.source.process, chance.random() / 2)
        elif what < 0.8 and not TARGET:
            self.pause(self.target.process, chance.random() / 2)
        self.let_go()

    def tell_story(self, seed):
        chance = random.Random(seed)
        self.chance, self.chance_lock = random.Random(seed + 1), threading.Lock()
        self.ending, self.lone, self.deleted, self.risen, self.ends = False, [], {}, [], []
        with Meddler(self.target.port, self.judge) as self.meddler:
            self.source.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
            self.fill(20)
            if RESTART:
                self.target.must("PUT", "/_template/forgets", {"index_patterns": ["*"], "settings": {"index.gc_deletes": "1s", "number_of_shards": 3}})
            self.follow(*self.OPTIONS, to=self.meddler.url)
            restart = [self.restart_real(chance)] if RESTART else []
            threads = [threading.Thread(target=self.write, args=(seed * 100 + n,)) for n in range(self.WRITERS)] + [threading.Thread(target=self.look)]
            for thread in threads:
                thread.start()
            end = time.monotonic() + self.WRITES
            try:
                while len(self.lone) < self.DISTURBANCES or time.monotonic() < end or any(thread.is_alive() for thread in restart):
                    id = "lone-%d" % len(self.lone)
                    self.lone.append(id)
                    self.ask_until(self.source, "PUT", "/fs/_doc/" + id, {"here": True})
                    self.disturb(chance)
                    self.deleted[id] = int(self.answer_until(self.source, "DELETE", "/fs/_doc/" + id).headers["Tidelock-Timestamp"])
                    self.keep_running()
            finally:
                self.ending = True
                self.meddler.hurry.set()
                for thread in threads + restart:
                    thread.join()
            self.let_go()
            begin = time.monotonic()

            def is_equal():
                self.keep_running()
                return self.equal()
            until(is_equal, "both are equal")
            self.seconds = time.monotonic() - begin
            found = subprocess.run(self.command("--verify", "--quiet"), capture_output=True, text=True)
            self.assertEqual((found.returncode, found.stdout[:7]), (0, "equal: "), found.stdout + found.stderr)
            if self.TOMBSTONES or not self.FORGETS:
                self.assertEqual(self.risen, [])
            self.assertLessEqual(set(self.ends), {-signal.SIGKILL, 69, 75, 76}, [self.messages(process) for process in self.running])
            for process in self.running[-1:]:
                process.kill()
                process.wait()

    def test_random_faults(self):
        first, count = (int(number) for number in os.environ.get("TIDELOCK_SEEDS", "1,1").split(","))
        if count > 1:
            self.DISTURBANCES, self.WRITERS, self.WRITES = self.SHORT
        for seed in range(first, first + count):
            with self.subTest(seed):
                if seed > first:
                    self.doCleanups()
                    self.setUp()
                self.tell_story(seed)
                if count > 1 or LONG:
                    print("seed %d: %d lone documents, %d lives, %d seen again, equal %.1f s after the last write" %
                          (seed, len(self.lone), len(self.running), len(set(self.risen)), self.seconds), flush=True)


def main():
    """As unittest.main(), with --seed FIRST --runs COUNT, which set TIDELOCK_SEEDS."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int)
    options, rest = parser.parse_known_args()
    if options.seed is not None or options.runs is not None:
        os.environ["TIDELOCK_SEEDS"] = "%d,%d" % (options.seed or 1, options.runs or 1)
    skips.main(argv=sys.argv[:1] + rest, verbosity=2)


if __name__ == "__main__":
    main()
