#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies into a real Elasticsearch 5.6 and 7.10 and an OpenSearch, which are killed, forget deletes after a second, and have several shards.

The servers are started by ../shared/peers/elasticsearch, or by the program that TIDELOCK_PEERS names; without one, or a JDK, the tests are skipped.
TIDELOCK_PEER=7.10 is one of them. More seeds, of one version: TIDELOCK_PEER=7.10 python3 tests/e2e/replicate_real_test.py --seed 1 --runs 100 RandomRuns_710 RandomRunsWithTombstones_710
"""
import http.client
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replicate_standin_test as standin_test  # noqa: E402
import replicate_test  # noqa: E402
from waiting import until  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS = os.environ.get("TIDELOCK_PEERS", os.path.join(os.path.dirname(ROOT), "shared", "peers", "elasticsearch"))
PORTS = {"5.6": 29205, "7.10": 29207, "opensearch": 29209}
FEW = "1,2"  # seeds besides a random one


class Process:
    """A process by its number, as replicate_test handles one of its own."""
    def __init__(self, pid):
        self.pid = pid

    def send_signal(self, number):
        os.kill(self.pid, number)

    def poll(self):
        try:
            with open("/proc/%d/stat" % self.pid, encoding="utf-8", errors="replace") as file:
                return 0 if file.read().rsplit(")", 1)[1].split()[0] == "Z" else None
        except OSError:
            return 0


class Peer(replicate_test.Server):
    """A real server of a version."""
    version = None

    def __init__(self):
        self.connection = self.tls = self.process = None
        self.port = PORTS[self.version]
        self.url = "http://127.0.0.1:%d" % self.port
        self.environment = dict(os.environ, PORT=str(self.port), HEAP=os.environ.get("HEAP", "512m"))
        self.pid_file = os.path.join(os.environ.get("PEERS", "/tmp/peers"), self.version, "pid")
        self.run("clean")

    def run(self, what):
        return subprocess.run([PEERS, what, self.version], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def start(self):
        self.run("start")
        with open(self.pid_file, encoding="utf-8") as file:
            self.process = Process(int(file.read()))
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        until(lambda: self.process.poll() is not None, "the target has ended")
        os.unlink(self.pid_file)  # a zombie would be taken for a server that runs
        self.hang_up()

    def stop(self):
        self.hang_up()
        self.run("stop")

    close = stop

    def request(self, method, path, body=None, headers=None, connection=None):
        """5.6 takes no type that begins with an underscore, nor index_patterns: the copy names it "doc" there."""
        if self.version == "5.6":
            path = path.replace("/_doc/", "/doc/")
            if isinstance(body, dict) and "index_patterns" in body:
                body = {"template": body["index_patterns"][0], "settings": body["settings"]}
        return super().request(method, path, body, headers, connection)

    def ask(self, *request):
        """A server that has just started is not ready, and one that was killed has closed the connection."""
        asked = []

        def is_answered():
            try:
                asked[:] = super(Peer, self).ask(*request)
            except (OSError, http.client.HTTPException):
                return False
            return asked[0] != 503
        until(is_answered, "the target answers %s %s" % request[:2])
        return tuple(asked)


def peer(number):
    return type("Peer" + number.replace(".", ""), (Peer,), {"version": number})


class Real:
    """Of a case: its target, which ends with its class."""
    @classmethod
    def setUpClass(cls):
        if not os.access(PEERS, os.X_OK):
            raise unittest.SkipTest("%s, which starts real targets, is not there" % PEERS)
        if shutil.which("javac") is None or shutil.which("mvn") is None:
            raise unittest.SkipTest("real targets need a JDK and Maven")
        if os.environ.get("TIDELOCK_PEER", cls.new_target.version) != cls.new_target.version:
            raise unittest.SkipTest("TIDELOCK_PEER is another")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.target.ask("DELETE", "/_template/forgets")


class RandomRuns(Real, standin_test.RandomRuns):
    """As with the stand-in; each kills the target at least once, after it has written all that it must remember, or not."""
    DISTURBANCES = 12

    def setUp(self):
        replicate_test.Seeds.setUp(self)
        self.target.must("PUT", "/_template/forgets", {"index_patterns": ["*"], "settings": {"index.gc_deletes": "1s", "number_of_shards": 3}})

    def kill_target(self, chance):
        if chance.random() < 0.5:
            self.target.ask("POST", "/_flush")
        self.target.kill()
        time.sleep(chance.random())
        self.target.start()

    def disturb(self, chance):
        if len(self.lone) == self.DISTURBANCES // 2 or chance.random() < 0.03:
            self.kill_target(chance)
            return
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
        elif what < 0.7:
            self.pause(self.source.process, chance.random() / 2)
        elif what < 0.85:
            self.pause(self.target.process, chance.random() / 2)
        self.let_go()

    def test_random_faults(self):
        first, count = (int(number) for number in os.environ.get("TIDELOCK_SEEDS", FEW).split(","))
        seeds = list(range(first, first + count)) + ([] if "TIDELOCK_SEEDS" in os.environ else [random.randrange(1 << 30)])
        for number, seed in enumerate(seeds):
            with self.subTest(seed):
                if number > 0:
                    self.doCleanups()
                    self.setUp()
                begun = time.monotonic()
                self.tell_story(seed)
                print("%s%s seed %d: %d lives, %d seen again, equal %.1f s after the last write, %.0f s" % (
                    self.target.version, " tombstones" if self.TOMBSTONES else "", seed, len(self.running), len(set(self.risen)), self.seconds, time.monotonic() - begun), flush=True)


class Routings(Real, standin_test.Routings):
    """Documents whose routing changes, without checks of the stand-in's internal state."""
    test_found_and_mended = test_history_gone = None


class Walks(Real, replicate_test.Copy):
    """From the first copy to the repair of what another program has changed; each step is compared by reading both sides."""
    TOMBSTONES = False

    def command(self, *options, to=None):
        return super().command(*options, *(("--tombstones",) if self.TOMBSTONES else ()), to=to)

    def there(self, index, type=None):
        """Returns: the documents of an index of the source, as readers of the target find them: by id, the source and the routing."""
        if type is not None:
            index = "%s/%s" % (index, type) if self.target.version == "5.6" else "%s-%s" % (index, type)
        self.target.must("POST", "/_refresh")
        return {hit["_id"]: (hit["_source"], hit.get("_routing")) for hit in self.target.must("POST", "/%s/_search" % index, {"size": 2000})["hits"]["hits"]}

    def here(self, index):
        self.source.must("POST", "/_refresh")
        return {hit["_id"]: (hit["_source"], hit.get("_routing")) for hit in self.source.must("POST", "/%s/_search" % index, {"size": 2000})["hits"]["hits"]}

    def assert_same(self, *indices):
        for index in indices:
            self.assertEqual(self.there(index), self.here(index))

    def await_same(self, process, *indices):
        until(lambda: all(self.there(index) == self.here(index) for index in indices) or process.poll() is not None, "both are equal")
        self.assertIsNone(process.poll(), self.messages(process))

    def compare(self, *options):
        """Returns: the exit status, and the lines, sorted."""
        run = subprocess.run(self.command("--quiet", *options), capture_output=True, text=True, env=replicate_test.without_rests())
        return run.returncode, sorted(" ".join(line.split()) for line in run.stdout.splitlines())

    def test_first_copy_to_repair(self):
        self.source.must("PUT", "/fs", {"settings": {"number_of_shards": 3, "analysis": {"analyzer": {"mine": {"type": "custom", "tokenizer": "path_hierarchy"}}}},
                                        "mappings": {"properties": {"t": {"type": "text", "analyzer": "mine"}, "p": {"type": "path"}}}, "aliases": {"odd": {"filter": {"term": {"n": 7}}}}})
        self.fill(300)
        self.source.must("PUT", "/fs/_doc/r?routing=x", {"n": 7, "p": "/a/b"})
        self.source.must("PUT", "/other/_doc/%C3%BC%2F%22%0A", '{"n":\n1.10, "big": 1234567890123456789, "s": "a\\u2028b\\n"}')
        self.assertIn("302 documents sent; the copy is complete", self.once())
        self.assert_same("fs", "odd", "other")
        self.assertIn(" 0 documents sent", self.once())

        process = self.follow()
        self.source.must("POST", "/fs/_rename", {"from": "/a", "to": "/c"})
        for i in range(100):
            self.source.must(*(("DELETE", "/fs/_doc/%d" % i) if i % 3 == 0 else ("PUT", "/fs/_doc/%d" % i, {"n": i, "changed": True})))
        self.source.must("PUT", "/third", {"aliases": {"odd": {}}})
        self.source.must("PUT", "/third/_doc/1", {"n": 1})
        self.await_same(process, "fs", "odd", "other", "third")
        self.kill_copy(process)
        for i in range(100, 130):
            self.source.must("DELETE", "/fs/_doc/%d" % i)
        self.target.kill()
        self.target.start()
        process = self.follow()
        self.source.must("PUT", "/fs/_doc/130", {"n": 1300})
        self.await_same(process, "fs", "odd", "other", "third")
        self.kill_copy(process)
        self.assertEqual(self.compare("--verify", "--content"), (0, ["equal: %d documents" % sum(len(self.here(index)) for index in ("fs", "other", "third"))]))

        fs = "/fs-copy" if self.TOMBSTONES else "/fs"
        version = self.target.must("GET", fs + "/_doc/201")["_version"]
        self.target.must("PUT", fs + "/_doc/201?version_type=external_gte&version=%d" % version, {"n": -1})
        self.target.must("DELETE", fs + "/_doc/200")
        self.target.must("PUT", fs + "/_doc/stray", {"n": 1})
        self.target.must("POST", "/_refresh")
        status, found = self.compare("--verify", "--content")
        self.assertEqual((status, found[:3]), (1, ["different fs/201", "extra fs/stray", "missing fs/200"]))
        self.assertEqual(self.compare("--repair", "--content")[0], 0)
        self.assert_same("fs", "odd", "other", "third")
        self.assertEqual(self.compare("--verify", "--content")[0], 0)

    def test_types(self):
        """An index with several types is one index for each where the target has no types. The deleted index is made anew."""
        for type in ("file", "lock"):
            for i in range(20):
                self.source.must("PUT", "/fs/%s/%s-%d" % (type, type, i), {"type": type, "n": i})
        self.once()
        process = self.follow()
        self.source.must("DELETE", "/fs/lock/lock-1")
        self.source.must("PUT", "/fs/file/file-2", {"type": "file", "n": 22})

        def equal():
            found = self.there("fs", "file"), self.there("fs", "lock")
            return {**found[0], **found[1]} == self.here("fs") and [len(it) for it in found] == [20, 19]
        until(lambda: equal() or process.poll() is not None, "both are equal")
        self.assertIsNone(process.poll(), self.messages(process))
        self.kill_copy(process)
        self.assertEqual(self.compare("--verify", "--content"), (0, ["equal: 39 documents"]))

    def test_indices_and_aliases(self):
        """An index that is deleted, made anew, and one whose name becomes an alias; an alias whose write index moves."""
        for index in ("a", "b", "fs"):
            self.source.must("PUT", "/" + index, {"aliases": {"logs": {"is_write_index": index == "a"}}})
            self.source.must("PUT", "/%s/_doc/1" % index, {"n": index})
        self.once()
        self.assert_same("a", "b", "fs", "logs")
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "a", "alias": "logs", "is_write_index": False}}, {"add": {"index": "b", "alias": "logs", "is_write_index": True}}]})
        self.source.must("DELETE", "/a")
        self.once()
        self.assert_same("b", "fs", "logs")
        if self.target.version != "5.6":
            name = "b-copy" if self.TOMBSTONES else "b"
            self.assertTrue(self.target.must("GET", "/%s/_alias" % name)[name]["aliases"]["logs"]["is_write_index"])
        self.source.must("PUT", "/a/_doc/2", {"n": "anew"})
        self.source.must("DELETE", "/fs")
        self.source.must("PUT", "/fs-2/_doc/1", {"n": "fs-2"})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs-2", "alias": "fs"}}]})
        self.once("--delete-indices")
        self.assert_same("a", "b", "fs", "fs-2", "logs")


CASES = {}
for version in PORTS:
    made = peer(version)
    for base, tombstones in ((Walks, False), (Walks, True), (RandomRuns, False), (RandomRuns, True), (Routings, False), (Routings, True)):
        name = "%s%s_%s" % (base.__name__, "WithTombstones" if tombstones else "", version.replace(".", ""))
        CASES[name] = type(name, (base,), {"new_target": made, "TOMBSTONES": tombstones})
globals().update(CASES)
del RandomRuns, Routings, Walks, base  # they have no target

if __name__ == "__main__":
    replicate_test.main()
