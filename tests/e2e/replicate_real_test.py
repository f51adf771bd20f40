#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies into a real Elasticsearch 5.6 and 7.10 and an OpenSearch, which are killed, forget deletes after a second, and have several shards.

The servers are started by ../shared/peers/elasticsearch, or by the program that TIDELOCK_PEERS names; without one, or a JDK, the tests are skipped.
TIDELOCK_PEER=7.10 is one of them. More seeds, of one version: TIDELOCK_PEER=7.10 python3 tests/e2e/replicate_real_test.py --seed 1 --stories 100 Stories_710 StoriesWithTombstones_710
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


class Stories(Real, standin_test.Stories):
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


CASES = {}
for version in PORTS:
    made = peer(version)
    for base, tombstones in ((Stories, False), (Stories, True), (Routings, False), (Routings, True)):
        name = "%s%s_%s" % (base.__name__, "WithTombstones" if tombstones else "", version.replace(".", ""))
        CASES[name] = type(name, (base,), {"new_target": made, "TOMBSTONES": tombstones})
globals().update(CASES)
del Stories, Routings, base  # they have no target

if __name__ == "__main__":
    replicate_test.main()
