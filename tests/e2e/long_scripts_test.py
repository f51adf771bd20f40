#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of many long scripts, which are divided, and what ends or fails in the middle of one: kill -9, a full disk, a host of a cluster.

Method: each script also counts its runs in the document. A bulk that was interrupted has a prefix of its items done, an atomic one all or none; a
repetition under the same ID, and the actions of an ended session, are done exactly once. The tests see by the documents, or by the locks, that a request is
half done, so that they interrupt it then.
"""
import itertools
import json
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import NAMES, Hosts  # noqa: E402
from server import Server, check_sound  # noqa: E402
import skips  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
from waiting import Waiting, until  # noqa: E402

ITEMS = 240
ACTIONS = 100
TURNS = 4000        # some 20,000 steps: fifty such scripts are one step of the core
LONG_TURNS = 12000  # more steps than the core runs of one script, if its submitter can run it
SOURCE = "for (int i = 0; i < params.n; i++) { ctx._source.n = i } ctx._source.runs += 1"


def prepare(server, count=ITEMS):
    server.must("PUT", "/_scripts/count", {"script": {"lang": "painless", "source": SOURCE}})
    lines = "".join('{"index":{"_index":"u","_id":"%d"}}\n{"runs":0}\n' % i for i in range(count))
    assert not server.must("POST", "/_bulk", lines)["errors"]


def updates(count=ITEMS):
    """Returns: lines of a bulk that runs the script for each document; every tenth one is a long one."""
    lines = []
    for i in range(count):
        lines += [{"update": {"_index": "u", "_id": str(i)}}, {"script": {"id": "count", "params": {"n": LONG_TURNS if i % 10 == 9 else TURNS}}}]
    return lines


def text(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def runs(server, count=ITEMS):
    """Returns: how often the script has run for each document."""
    docs = server.must("POST", "/u/_mget", {"ids": [str(i) for i in range(count)]})["docs"]
    return [doc["_source"]["runs"] for doc in docs]


def has_begun(server):
    """Whether the first item is done, and the last one is not."""
    return runs(server, 1) == [1]


def is_in_pieces(server):
    """Whether an atomic request has locks: it is carried out in pieces, of which at least one is done."""
    return any(lock["index"] == "u" for lock in server.must("GET", "/_lock")["locks"])


def sent(server, path, request):
    """Sends the bulk of all updates with an ID, by which it may be repeated."""
    return Waiting(server, "POST", path, text(updates()), {"Tidelock-Request": request})


class Case(unittest.TestCase):
    def in_part(self, done, count=ITEMS):
        """Checks that a prefix of the items is done, once each. Returns: how many."""
        number = sum(done)
        self.assertEqual(done, [1] * number + [0] * (count - number))
        return number

    def repeat(self, server, path, request):
        """Sends a named request until it is answered with its outcome. Returns: the reply."""
        found = []

        def is_answered():
            found.append(server.ask("POST", path, text(updates()), {"Tidelock-Request": request}))
            return found[-1][0] not in (409, 503, 504)
        until(is_answered, "the repetition is answered")
        self.assertEqual((found[-1][0], found[-1][1].get("errors")), (200, False), str(found[-1])[:1000])
        return found[-1][1]

    def session_of_actions(self, server):
        return server.must("POST", "/_session", {"ttl": "10m", "on_expire": updates(ACTIONS)})["session"]


class Kill(Case):
    """kill -9 in the middle, and a start on the same data."""

    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.close)

    def interrupt(self, send, condition):
        """Kills the server while the request is half done. Returns: what `send` returns, which sends the request, anew if it was answered before the kill."""
        while True:
            prepare(self.server)
            waiting = send()
            until(lambda: not waiting.is_alive() or condition(self.server), "the request is half done")
            self.server.kill()
            waiting.join()
            self.server.start()
            if waiting.status is None:
                return waiting
            self.assertEqual(waiting.status, 200, str(waiting.reply)[:1000])
            until(lambda: self.server.must("GET", "/_session")["deferred"] == [], "all actions are done")

    def test_bulk_has_prefix(self):
        done = ITEMS
        while done == ITEMS:  # the kill came when all was done, and before the reply
            self.interrupt(lambda: Waiting(self.server, "POST", "/_bulk", text(updates())), has_begun)
            done = self.in_part(runs(self.server))
        self.assertGreaterEqual(done, 1)

    def test_named_bulk_is_done_once(self):
        names = ("long-%d" % number for number in itertools.count())
        for path, condition in (("/_bulk", has_begun), ("/_bulk?atomic=true", is_in_pieces)):
            name = self.interrupt(lambda path=path: sent(self.server, path, next(names)), condition).headers["Tidelock-Request"]
            done = runs(self.server)
            if "atomic" in path:
                self.assertEqual(len(set(done)), 1, done)
            else:
                self.in_part(done)
            self.repeat(self.server, path, name)
            self.assertEqual(runs(self.server), [1] * ITEMS)
            self.repeat(self.server, path, name)
            self.assertEqual(runs(self.server), [1] * ITEMS)

    def test_atomic_bulk_is_all_or_nothing(self):
        done = [1] * ITEMS
        while done == [1] * ITEMS:  # the kill came when all was done, and before the reply
            self.interrupt(lambda: Waiting(self.server, "POST", "/_bulk?atomic=true", text(updates())), is_in_pieces)
            done = runs(self.server)
        self.assertEqual(done, [0] * ITEMS)
        self.assertFalse(is_in_pieces(self.server))

    def test_actions_are_done_once(self):
        self.interrupt(lambda: Waiting(self.server, "DELETE", "/_session/%s?force=true" % self.session_of_actions(self.server)), has_begun)
        until(lambda: runs(self.server, ACTIONS) == [1] * ACTIONS, "all actions are done")
        self.assertEqual(self.server.must("GET", "/_session")["deferred"], [])
        self.server.restart()
        self.assertEqual(runs(self.server, ACTIONS), [1] * ACTIONS)


class FullDisk(Case):
    """The disk fills in the middle: the documents are as the reply says, then and after a restart."""

    def test_disk_fills(self):
        with SmallDisk(240 << 20, 120 << 20) as disk, Server("--reserve", "40m", data=os.path.join(disk.folder, "data")) as server:
            self.run_on(server, disk)
            self.assertEqual(server.stop(), 0)
            check_sound(server.data)
            server.start()
            self.assertEqual(runs(server, ACTIONS), [1] * ACTIONS)
            self.assertEqual(server.stop(), 0)

    def test_stop_while_disk_is_full(self):
        """The stop does not wait for room: what waits for it is answered, and the next start continues the actions."""
        for kind in "session", "atomic":
            with self.subTest(kind=kind), SmallDisk(240 << 20, 120 << 20) as disk, Server("--reserve", "40m", "--grace", "1s", data=os.path.join(disk.folder, "data")) as server:
                while True:
                    prepare(server)
                    if kind == "session":
                        waiting, condition = Waiting(server, "DELETE", "/_session/%s?force=true" % self.session_of_actions(server)), has_begun
                    else:
                        waiting, condition = Waiting(server, "POST", "/_bulk?atomic=true", text(updates())), is_in_pieces
                    self.fill_during(server, disk, waiting, condition)
                    self.assertEqual(server.stop(replay=False), 0, server.errors()[-3000:])
                    waiting.join()
                    disk.make_room()
                    server.start()
                    if waiting.status != 200:
                        break
                    until(lambda: server.must("GET", "/_session")["deferred"] == [], "all actions are done")
                    disk.take_ballast()  # it was answered before the disk was full
                self.assertEqual((waiting.status, waiting.reply["error"]["type"]), (503, "service_stopping_exception"), waiting.reply)
                if kind == "session":
                    until(lambda: runs(server, ACTIONS) == [1] * ACTIONS, "all actions are done")
                else:
                    self.assertEqual(runs(server), [0] * ITEMS)
                self.assertEqual(server.stop(), 0)

    def test_named_bulk_is_refused_in_part(self):
        """The rest of a request with an ID, of which a part is done, is refused when the disk is full: it is of several commands."""
        count = 5000
        with SmallDisk(240 << 20, 120 << 20) as disk, Server("--reserve", "40m", data=os.path.join(disk.folder, "data")) as server:
            for number in itertools.count():
                prepare(server, count)
                waiting = Waiting(server, "POST", "/_bulk", text(updates(count)), {"Tidelock-Request": "in-part-%d" % number})
                self.fill_during(server, disk, waiting, has_begun)
                waiting.join()
                self.assertEqual(waiting.status, 200, str(waiting.reply)[:1000])
                statuses = [item["update"]["status"] for item in waiting.reply["items"]]
                self.assertEqual(runs(server, count), [int(status == 200) for status in statuses])
                self.make_room(server, disk)
                if 507 in statuses:
                    break
            self.assertEqual(self.in_part([int(status == 200) for status in statuses], count) + statuses.count(507), count)
            self.assertEqual(server.stop(), 0)

    def run_on(self, server, disk):
        for path, condition in (("/_bulk", has_begun), ("/_bulk?atomic=true", is_in_pieces)):
            prepare(server)
            waiting = Waiting(server, "POST", path, text(updates()))
            self.fill_during(server, disk, waiting, condition)
            if "atomic" not in path:  # a request in pieces waits for room, as docs/operating.md says
                waiting.join()
                self.judge(server, waiting)
            self.make_room(server, disk)
            waiting.join()
            self.judge(server, waiting)
        prepare(server)
        session = self.session_of_actions(server)
        waiting = Waiting(server, "DELETE", "/_session/%s?force=true" % session)
        self.fill_during(server, disk, waiting, has_begun)
        self.make_room(server, disk)
        waiting.join()
        self.assertEqual(waiting.status, 200, waiting.reply)
        until(lambda: runs(server, ACTIONS) == [1] * ACTIONS, "all actions are done")

    def fill_during(self, server, disk, waiting, condition):
        until(lambda: not waiting.is_alive() or condition(server), "the request is half done")
        replies = []

        def is_full():  # the free space is measured ten times a second; a checkpoint that ends gives back space of the log
            disk.fill()
            replies.append(server.ask("PUT", "/other/_doc/1", {}))
            return replies[-1][0] not in (200, 201)
        until(is_full, "a write is refused")
        status, reply = replies[-1]
        self.assertEqual((status, reply["error"]["type"]), (507, "disk_full_exception"))

    def make_room(self, server, disk):
        disk.make_room()
        until(lambda: server.ask("PUT", "/other/_doc/1", {})[0] in (200, 201), "there is room")
        disk.take_ballast()

    def judge(self, server, waiting):
        """Compares the reply with the documents."""
        done = runs(server)
        if "atomic" in waiting.path:
            self.assertEqual(done, [1 if waiting.status == 200 else 0] * ITEMS, str(waiting.reply)[:1000])
            return
        self.assertEqual(waiting.status, 200, str(waiting.reply)[:1000])
        statuses = [item["update"]["status"] for item in waiting.reply["items"]]
        self.assertEqual(done, [int(status == 200) for status in statuses])
        self.in_part(done)


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Cluster(Hosts):
    """A host is killed in the middle of its request; the others continue, and all states are equal."""

    in_part, repeat, session_of_actions = Case.in_part, Case.repeat, Case.session_of_actions

    def equal(self, hosts):
        """Waits until these hosts have applied the log up to the same position. Checks that their chains are equal."""
        def own_rows():
            own = [next(one for one in self.listed(host).values() if one["self"]) for host in hosts]
            return own if len({one["applied_position"] for one in own}) == 1 else None
        found = []
        until(lambda: found.append(own_rows()) or found[-1], "the hosts have applied the same")
        self.assertEqual(len({one["chain"] for one in found[-1]}), 1, found[-1])

    def test_host_is_killed(self):
        a, b, c = [self.host(name) for name in NAMES]
        self.await_live(a)
        prepare(a)
        for path, condition in (("/_bulk", has_begun), ("/_bulk?atomic=true", is_in_pieces)):
            with self.subTest(path=path):
                for number in itertools.count():
                    prepare(b)
                    self.equal([a, b, c])
                    name = "%s-%d" % (path, number)
                    waiting = sent(a, path, name)
                    until(lambda: not waiting.is_alive() or condition(a), "the request is half done")
                    a.kill()
                    waiting.join()
                    if waiting.status is None:
                        break
                    self.assertEqual(waiting.status, 200, str(waiting.reply)[:1000])  # it was answered before the kill
                    a.start()
                    self.await_live(b)
                self.repeat(b, path, name)
                self.assertEqual(runs(b), [1] * ITEMS)
                self.equal([b, c])
                a.start()
                self.await_live(b)
                self.equal([a, b, c])
                self.assertEqual(runs(a), [1] * ITEMS)

    def test_host_is_killed_while_a_session_ends(self):
        a, b, c = [self.host(name) for name in NAMES]
        self.await_live(a)
        prepare(a)
        session = self.session_of_actions(a)
        other = Waiting(b, "POST", "/_bulk", text(updates()))  # the same documents, on another host
        waiting = Waiting(a, "DELETE", "/_session/%s?force=true" % session)
        until(lambda: sum(runs(c, ACTIONS)) > 0, "the actions, or the bulk, have begun")
        a.kill()
        waiting.join()
        other.join()
        self.assertEqual((other.status, other.reply["errors"]), (200, False), str(other.reply)[:1000])
        b.ask("DELETE", "/_session/%s?force=true" % session)  # the first one may not have come into the log
        until(lambda: runs(b) == [2] * ACTIONS + [1] * (ITEMS - ACTIONS), "all is done")
        self.equal([b, c])
        a.start()
        self.await_live(b)
        self.equal([a, b, c])
        self.assertEqual(runs(a), [2] * ACTIONS + [1] * (ITEMS - ACTIONS))


if __name__ == "__main__":
    skips.main(verbosity=2)
