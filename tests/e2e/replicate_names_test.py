#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A copy of indices whose names become aliases, and the reverse, into a target that has the names already, refuses an alias, or is read through an alias."""
import itertools
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from replicate_faults_test import Meddled  # noqa: E402
from replicate_test import LONG  # noqa: E402
from waiting import until  # noqa: E402


class Switches(Meddled):
    """Names change between an index and an alias, as at a reindexing; the target refuses an alias that has the name of an index, and the reverse, as Elasticsearch does."""

    def switch(self, *more):
        """fs becomes an alias of fs-2, and of more indices."""
        for index in ("fs-2", *more):
            self.source.must("PUT", "/%s/_doc/1" % index, {"n": index})
        self.source.must("DELETE", "/fs")
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": index, "alias": "fs"}} for index in ("fs-2", *more)]})

    def begin(self, forth):
        if forth:
            self.fill(5)
        else:
            self.source.must("PUT", "/fs-2/_doc/1", {"n": "fs-2"})
            self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs-2", "alias": "fs"}}]})

    def change(self, forth):
        """`forth`: fs becomes an alias; else the alias becomes an index."""
        if forth:
            self.switch()
        else:
            self.source.must("POST", "/_aliases", {"actions": [{"remove": {"index": "fs-2", "alias": "fs"}}]})
            self.source.must("PUT", "/fs/_doc/1", {"n": "index"})

    def aliases(self):
        return {name: set(index.aliases) for name, index in self.target.indices.items() if not name.startswith(".")}

    def set_up_again(self):
        for server in (self.source, self.target):
            for index in server.must("GET", "/_settings"):
                server.must("DELETE", "/" + index)

    def kill_within_each(self, *options):
        """kill -9 after each request that changes an index, from either end of a switch; yields `forth` when the next run has completed it. A short run takes every other request."""
        for forth in (True, False):
            for steps in range(1, 6) if LONG else range(2, 6, 2) if options else range(1, 6, 2):
                with self.subTest((forth, steps, *options)):
                    self.set_up_again()
                    self.begin(forth)
                    self.once(*options)
                    self.change(forth)
                    changes = []

                    def judge(method, path, body, changes=changes, steps=steps):
                        if len(changes) >= steps:
                            return "drop"
                        if method in ("PUT", "DELETE", "POST") and (path.count("/") == 1 or "_mapping" in path or "_close" in path) and not path.startswith("/_bulk"):
                            changes.append(path)
                        return "pass"
                    self.meddler.judge = judge
                    process = self.follow(*options, to=self.meddler.url)
                    until(lambda: len(changes) >= steps or process.poll() is not None or self.is_done(), "it is within the switch")
                    self.kill_copy(process)
                    self.meddler.judge = lambda *_: "pass"
                    self.once(*options)
                    yield forth

    def is_done(self):
        return self.equal()


class Names(Switches):
    def assert_switched(self, *options):
        self.once(*options)
        self.assertEqual(self.aliases(), {"fs-2": {"fs"}})
        self.assert_equal()

    def test_alias_takes_the_name_of_an_index(self):
        """Before a start, in one page of the feed."""
        self.fill(20)
        self.once("--delete-indices")
        self.switch()
        self.assert_switched("--delete-indices")

    def test_alias_takes_the_name_while_it_follows(self):
        self.fill(20)
        process = self.follow("--delete-indices")
        self.await_equal()
        self.switch()
        until(lambda: process.poll() is not None or self.aliases() == {"fs-2": {"fs"}}, "the target has the alias")
        self.await_equal()

    def test_alias_takes_the_name_and_everything_is_compared(self):
        self.fill(20)
        self.once("--delete-indices")
        self.switch()
        self.cut_feed()
        self.assert_switched("--delete-indices")

    def test_alias_of_several_indices_takes_the_name_of_an_index(self):
        """Before a start, while it follows, and when everything is compared."""
        for how in ("page", "following", "compared"):
            with self.subTest(how):
                self.set_up_again()
                self.fill(20)
                self.once("--delete-indices")
                if how == "following":
                    process = self.follow("--delete-indices")
                    until(lambda: process.poll() is not None or self.session() is not None, "it follows")
                self.switch("fs-3", "fs-4")
                if how == "compared":
                    self.cut_feed()
                if how != "following":
                    self.once("--delete-indices")
                until(lambda: self.aliases() == {index: {"fs"} for index in ("fs-2", "fs-3", "fs-4")}, "the target has the aliases")
                until(self.equal, "both are equal")
                if how == "following":
                    self.kill_copy(process)
        self.source.must("POST", "/_aliases", {"actions": [{"remove": {"index": "fs-3", "alias": "fs"}}]})  # one leaves it
        self.source.must("DELETE", "/fs-4")
        self.once("--delete-indices")
        self.assertEqual(self.aliases(), {"fs-2": {"fs"}, "fs-3": set()})

    def test_index_takes_the_name_of_an_alias_of_several_indices(self):
        """If the copy has added it to all of them, it is removed from all; if an operator has to one, it stays."""
        for index in ("a", "b", "c"):
            self.source.must("PUT", "/%s/_doc/1" % index, {"n": index})

        def take(name):
            self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": index, "alias": name}} for index in "abc"]})
            self.once()
            self.source.must("POST", "/_aliases", {"actions": [{"remove": {"index": index, "alias": name}} for index in "abc"]})
            self.source.must("PUT", "/%s/_doc/1" % name, {"n": "index"})
        take("all")
        self.cut_feed()  # so that the index may come before the others
        self.once()
        self.assertEqual(self.aliases(), {"a": set(), "b": set(), "c": set(), "all": set()})
        self.assert_equal()
        take("0")
        self.target.must("PUT", "/d", {"aliases": {"0": {}}})
        self.cut_feed()
        before = self.aliases()
        self.assertIn("the target has an alias of the name 0", self.once(expect=1))
        self.assertEqual(self.aliases(), before)

    def test_deleted_index_leaves_its_aliases(self):
        """One of several indices of an alias is closed in the target: a search of the alias sees the others, and would fail if it named the closed one. An operator's alias stays."""
        for index in ("logs-1", "logs-2"):
            self.source.must("PUT", "/%s/_doc/1" % index, {"n": index})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "logs-*", "alias": "logs"}}, {"add": {"index": "logs-1", "alias": "oldest"}}]})
        self.once()
        self.target.must("POST", "/_aliases", {"actions": [{"add": {"index": "logs-1", "alias": "operator"}}]})
        self.source.must("DELETE", "/logs-1")
        self.assertIn("logs-1 is closed", self.once())
        self.assertTrue(self.target.indices["logs-1"].closed)
        self.assertEqual(self.aliases(), {"logs-1": {"operator"}, "logs-2": {"logs"}})
        self.assertEqual([hit["_source"] for hit in self.target.must("POST", "/logs/_search", {})["hits"]["hits"]], [{"n": "logs-2"}])
        self.source.must("PUT", "/logs-1/_doc/1", {"n": "again"})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "logs-1", "alias": "logs"}}]})
        self.once()
        self.assertEqual(self.aliases(), {"logs-1": {"logs"}, "logs-2": {"logs"}})
        self.assert_equal()

    def test_killed_within_the_switch(self):
        for forth in self.kill_within_each("--delete-indices"):
            self.assertEqual(self.aliases(), {"fs-2": {"fs"}} if forth else {"fs": set(), "fs-2": set()})
            self.assert_equal()

    def test_killed_within_the_switch_without_delete(self):
        """The old index stays closed, and the alias comes when it is deleted in the target."""
        for forth in self.kill_within_each():
            self.assertEqual(self.aliases(), {"fs": set(), "fs-2": set()})
            self.assertEqual(self.target.indices["fs"].closed, forth)
            self.assert_equal()
            if forth:
                self.target.must("DELETE", "/fs")
                self.assert_switched()

    def test_closed_index_keeps_the_name(self):
        """Without --delete-indices: the index is made without its alias, which is added when the name is free."""
        self.fill(20)
        self.once()
        self.switch()
        messages = self.once()
        self.assertIn("the index fs-2 is without its alias fs: the target has an index of that name, which the source no longer has; delete that index in the target", messages)
        self.assertEqual(self.aliases(), {"fs": set(), "fs-2": set()})
        self.assertTrue(self.target.indices["fs"].closed)
        self.assertEqual(self.target.must("GET", "/fs-2/_doc/1")["_source"], {"n": "fs-2"})
        self.assertIn("is without its alias", self.once("--delete-indices"))
        self.target.must("DELETE", "/fs")
        self.assert_switched()

    def test_many_taken_names_cost_one_request(self):
        """However many aliases lack their names: a deleted index makes the copy look whether one has become free, by one request; then only that one is added."""
        many = range(30)
        for i in many:
            self.source.must("PUT", "/i%d/_doc/1" % i, {"n": i})
            self.target.must("PUT", "/t%d" % i, {})
        for i in range(3):
            self.source.must("PUT", "/gone%d/_doc/1" % i, {"n": i})
        self.once()
        added = self.source.request("POST", "/_aliases", json.dumps({"actions": [{"add": {"index": "i%d" % i, "alias": "t%d" % alias}} for i in many for alias in (i, (i + 1) % 30)]}))
        process = self.follow("--delete-indices", to=self.meddler.url)
        self.until(lambda: self.place() > int(added.headers["Tidelock-Timestamp"]) or process.poll() is not None, "it is beyond that")
        self.assertEqual(self.messages(process).count("is without its alias"), 2 * len(many))
        asked = []
        self.meddler.judge = lambda method, path, body: asked.append((method, path, body)) or "pass"
        for i in range(3):
            if i == 2:
                self.target.must("DELETE", "/t3")
            looks = sum(path.startswith("/_alias?") for _, path, _ in asked)
            self.source.must("DELETE", "/gone%d" % i)
            until(lambda: sum(path.startswith("/_alias?") for _, path, _ in asked) > looks or process.poll() is not None, "it looks")  # noqa: B023
        self.until(lambda: self.aliases()["i2"] == self.aliases()["i3"] == {"t3"} or process.poll() is not None, "the one is added")
        self.assertIsNone(process.poll(), self.messages(process))
        self.assertEqual([(method, path.partition("?")[0]) for method, path, _ in asked if "/i" in path or "/t" in path.replace("/tidelock", "")], [("GET", "/i%d/_settings" % i) for i in self.order(asked)])
        self.assertEqual([json.loads(body)["actions"] for _, path, body in asked if path == "/_aliases"], [[{"add": {"index": "i%d" % i, "alias": "t3"}}] for i in self.order(asked)])
        self.assertEqual(self.messages(process).count("is without its alias"), 2 * len(many))

    def order(self, asked):
        """Returns: i2 and i3, as the copy has updated them."""
        return [2, 3] if next(path for _, path, _ in asked if path.startswith(("/i2", "/i3"))).startswith("/i2") else [3, 2]

    def test_many_taken_names_cost_two_lists_at_a_start(self):
        """However many indices have an alias whose name is taken, also when the index is created."""
        for i in range(10):
            self.source.must("PUT", "/i%d" % i, {"aliases": {"t%d" % i: {}}})
            self.target.must("PUT", "/t%d" % i, {})
        asked = []
        self.meddler.judge = lambda method, path, body: asked.append(path) or "pass"
        self.assertEqual(self.once(to=self.meddler.url).count("is without its alias"), 10)
        self.assertLessEqual(sum(path.startswith("/_alias?") for path in asked), 2)  # during the start, and at its end
        self.assertLessEqual(sum(path.startswith("/_mapping?") for path in asked), 1)

    def test_one_bad_alias_among_many(self):
        """Costs few requests, and the others are added; a later update sends no alias that the target has."""
        self.target.unknown_queries.add("prefix")
        self.addCleanup(self.target.unknown_queries.discard, "prefix")
        self.source.must("PUT", "/fs", {"aliases": {"a%d" % i: {"filter": {"prefix": {"t": "a"}}} if i == 40 else {} for i in range(64)}})
        for begin in (lambda: None, lambda: self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "more"}}]})):
            begin()
            asked, sent = [], set()

            def judge(method, path, body, asked=asked, sent=sent):
                asked.append(path)
                if path == "/_aliases":
                    sent.update(action["add"]["alias"] for action in json.loads(body)["actions"])
                return "pass"
            self.meddler.judge = judge
            self.assertEqual(self.once(to=self.meddler.url).count("is without its alias"), 1)
            self.assertEqual(self.aliases()["fs"], set(self.source.must("GET", "/fs/_alias")["fs"]["aliases"]) - {"a40"})
            self.assertLess(asked.count("/_aliases"), 64 // 2)
        self.assertEqual(sent, {"a40", "more"})

    def test_write_index_moves(self):
        """The target lets an alias have one write index, and its old one is updated after the new one, which has an earlier name: the copy makes the change in the end, and reports nothing."""
        self.source.must("PUT", "/z", {"aliases": {"logs": {"is_write_index": True}}})
        self.once()
        for new in ("y", "z"):  # one that the target does not have, and one that it has
            old = {"y": "z", "z": "y"}[new]
            if new == "y":
                self.source.must("PUT", "/y", {})
            self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": old, "alias": "logs", "is_write_index": False}}, {"add": {"index": new, "alias": "logs", "is_write_index": True}}]})
            for cut in (False, True):
                if cut:
                    self.cut_feed()
                self.assertNotIn("is without its alias", self.once())
                self.assertEqual([self.target.indices[index].aliases["logs"]["is_write_index"] for index in (new, old)], [True, False])

    def test_write_index_is_deleted(self):
        """The old write index of an alias is deleted, by which the new one can be it: at once, though it was refused before the copy has seen the deletion."""
        for options in ((), ("--delete-indices",)):
            self.set_up_again()
            for index in ("a", "b"):
                self.source.must("PUT", "/" + index, {"aliases": {"logs": {"is_write_index": index == "a"}}})
            self.once(*options)
            self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "a", "alias": "logs", "is_write_index": False}}, {"add": {"index": "b", "alias": "logs", "is_write_index": True}}]})
            self.source.must("DELETE", "/a")
            self.once(*options)
            self.assertTrue(self.target.indices["b"].aliases["logs"]["is_write_index"])

    def test_name_of_an_unlisted_index(self):
        """The list of the target's indices does not show one that has the alias's name: the alias is not tried at each look."""
        for i in range(8):
            self.source.must("PUT", "/gone%d/_doc/1" % i, {"n": i})
        self.source.must("PUT", "/fs-2/_doc/1", {"n": 1})
        self.target.must("PUT", "/taken", {})
        self.target.unlisted.add("taken")
        self.addCleanup(self.target.unlisted.discard, "taken")
        self.once()
        process = self.follow("--delete-indices", to=self.meddler.url)
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs-2", "alias": "taken"}}]})
        self.until(lambda: "is without its alias taken" in self.messages(process) or process.poll() is not None, "it is reported")
        asked = []
        self.meddler.judge = lambda method, path, body: asked.append(path) or "pass"
        for i in range(8):
            looks = sum(path.startswith("/_alias?") for path in asked)
            self.source.must("DELETE", "/gone%d" % i)
            until(lambda: sum(path.startswith("/_alias?") for path in asked) > looks or process.poll() is not None, "it looks")  # noqa: B023
        self.assertIsNone(process.poll(), self.messages(process))
        self.assertLess(asked.count("/_aliases"), 8)  # some at the beginning, and one after 30 s

    def test_other_refusals(self):
        """An alias that the target refuses for another reason than its name is reported, and tried again; others of its index are added at once, also when the index is made."""
        bad = {"filter": {"prefix": {"t": "a"}}}
        self.target.unknown_queries.add("prefix")
        self.addCleanup(self.target.unknown_queries.discard, "prefix")
        self.source.must("PUT", "/made/_doc/1", {"n": 1})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "made", "alias": "bad-made", **bad}}, {"add": {"index": "made", "alias": "good-made"}}]})
        self.source.must("PUT", "/later/_doc/1", {"n": 1})
        self.assertIn("the index made is without its alias bad-made", self.once())
        self.assertEqual(self.aliases(), {"made": {"good-made"}, "later": set()})
        process = self.follow("--verify-every", "0", fast=True)
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "later", "alias": "bad-later", **bad}}, {"add": {"index": "later", "alias": "good-later"}}]})
        until(lambda: all("is without its alias bad-" + name in self.messages(process) for name in ("later", "made")) or process.poll() is not None, "they are told")
        self.until(lambda: self.aliases()["later"] == {"good-later"} or process.poll() is not None, "the other is added")
        self.target.unknown_queries.discard("prefix")
        self.until(lambda: "bad-later" in self.aliases()["later"] and "bad-made" in self.aliases()["made"] or process.poll() is not None, "they are added")
        self.assertIsNone(process.poll(), self.messages(process))
        self.assertEqual(self.messages(process).count("is without its alias"), 2)
        self.assertIn("failed to parse filter for alias [bad-later]; it is tried again", self.messages(process))

    def test_refused_alias_is_tried_again(self):
        """While it follows, without a change of the index; other aliases are added at once."""
        self.source.must("PUT", "/fs-2/_doc/1", {"n": 1})
        process = self.follow(fast=True)
        self.await_equal()
        self.target.must("PUT", "/taken", {})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs-2", "alias": "taken"}}, {"add": {"index": "fs-2", "alias": "free"}}]})
        until(lambda: "is without its alias taken" in self.messages(process) or process.poll() is not None, "it is reported")
        self.until(lambda: self.aliases()["fs-2"] == {"free"}, "the other is added")
        self.target.must("DELETE", "/taken")
        self.until(lambda: self.aliases()["fs-2"] == {"free", "taken"} or process.poll() is not None, "it is added")
        self.assertIsNone(process.poll(), self.messages(process))
        self.assertEqual(self.messages(process).count("is without its alias"), 1)

    def test_index_takes_the_name_of_an_alias(self):
        """Of one that the copy has added; one that an operator has added is left, and ends the copy."""
        self.source.must("PUT", "/z/_doc/1", {"n": 1})
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "z", "alias": "fs"}}, {"add": {"index": "z", "alias": "a"}}]})
        self.once()
        for cut in (False, True):
            name = "a" if cut else "fs"
            self.source.must("POST", "/_aliases", {"actions": [{"remove": {"index": "z", "alias": name}}]})
            self.source.must("PUT", "/%s/_doc/1" % name, {"n": "index"})
            if cut:
                self.cut_feed()
            self.once()
            self.assert_equal()
        self.assertEqual(self.aliases(), {"z": set(), "fs": set(), "a": set()})
        self.target.must("POST", "/_aliases", {"actions": [{"add": {"index": "z", "alias": "b"}}]})
        self.source.must("PUT", "/b/_doc/1", {"n": "index"})
        self.assertIn("the target has an alias of the name b", self.once(expect=1))
        self.assertIn("b", self.target.indices["z"].aliases)


class NamesWithTombstones(Switches):
    """With --prefix and --tombstones the index fs is an alias in the target, too: live-fs, of live-fs-copy."""
    PREFIX = "live-"

    def command(self, *options, to=None):
        return super().command("--prefix", self.PREFIX, "--tombstones", *options, to=to)

    def seen(self, server, name):
        """Returns: what a reader finds under a name, None if there is no such name."""
        status, found = server.ask("POST", "/%s/_search" % name, {"size": 1000})
        self.assertIn(status, (200, 404), found)  # 400: one of its indices is closed
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"] if "tidelock_deleted" not in hit["_source"]} if status == 200 else None

    def is_done(self):
        return all(self.seen(self.target, self.PREFIX + name) == self.seen(self.source, name) for name in ("fs", "fs-2", "fs-3"))

    def assert_done(self):
        for name in ("fs", "fs-2", "fs-3"):
            self.assertEqual(self.seen(self.target, self.PREFIX + name), self.seen(self.source, name), name)

    def test_forth_and_back(self):
        each = itertools.product(((), ("--delete-indices",)), (False, True)) if LONG else (((), True), (("--delete-indices",), False))
        for options, cut in each:
            with self.subTest((options, cut)):
                self.set_up_again()
                self.fill(20)
                self.source.must("DELETE", "/fs/_doc/7")
                self.once(*options)
                self.switch("fs-3")
                if cut:
                    self.cut_feed()
                self.once(*options)
                self.assert_done()
                self.source.must("DELETE", "/fs-3")
                self.change(False)
                if cut:
                    self.cut_feed()
                self.once(*options)
                self.assert_done()
                self.source.must("DELETE", "/fs-2")
                self.switch()
                self.once(*options)
                self.assert_done()

    def test_while_it_follows(self):
        self.fill(20)
        process = self.follow()
        until(lambda: self.is_done() or process.poll() is not None, "the first copy")
        for change in (lambda: self.switch("fs-3"), lambda: self.change(False)):
            change()
            until(lambda: self.is_done() or process.poll() is not None, "readers find the same")
            self.assertIsNone(process.poll(), self.messages(process))

    def test_killed_within_the_switch(self):
        for options in ((), ("--delete-indices",)):
            for _ in self.kill_within_each(*options):
                self.assert_done()


if __name__ == "__main__":
    unittest.main(verbosity=2)
