#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every document call inside a transaction, seen from inside and from outside, before the commit and after it.

A call in a transaction sees the transaction's writes, for each way to read. Other clients see none of them before the commit,
and all of them after it, at one timestamp.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from server import Server  # noqa: E402
from waiting import Waiting, until  # noqa: E402

ALL = {"query": {"match_all": {}}}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.server.ask("DELETE", "/fs,made?ignore_unavailable=true")
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}, "n": {"type": "long"}, "k": {"type": "keyword"}}}})
        for number in range(6):
            self.server.must("PUT", "/fs/_doc/%d" % number, {"path": "/d/%d" % number, "n": number, "k": "old"})
        self.outside = ""
        self.transaction = self.server.must("POST", "/_transaction")["transaction"]
        self.inside = "transaction=" + self.transaction

    def tearDown(self):
        self.server.ask("POST", "/_transaction/%s/_rollback" % self.transaction)
        self.assertEqual(self.server.must("GET", "/_lock")["locks"], [])

    def commit(self):
        return self.server.must("POST", "/_transaction/%s/_commit" % self.transaction)["timestamp"]

    def write_everything(self):
        """One change by each call that makes one."""
        own = "?" + self.inside
        self.server.must("PUT", "/fs/_doc/0" + own, {"n": 100, "k": "new"})
        self.server.must("PUT", "/fs/_create/created" + own, {"n": 101, "k": "new"})
        self.server.must("POST", "/fs/_update/1" + own, {"script": {"source": "ctx._source.n += params.d", "params": {"d": 101}}})
        self.server.must("POST", "/fs/_update/2" + own, {"doc": {"k": "new"}})
        self.server.must("DELETE", "/fs/_doc/3" + own)
        self.assertFalse(self.server.must("POST", "/_bulk" + own, '{"index":{"_index":"fs","_id":"bulk"}}\n{"n":103}\n'
                                          '{"update":{"_index":"fs","_id":"bulk"}}\n{"script":"ctx._source.k = \'new\'"}\n'
                                          '{"delete":{"_index":"fs","_id":"4"}}\n')["errors"])
        added = self.server.must("POST", "/fs/_doc" + own, {"n": 104, "k": "new"})["_id"]
        by_query = self.server.must("POST", "/fs/_update_by_query" + own, {"query": {"term": {"n": 104}}, "script": {"source": "ctx._source.n += 1"}})
        self.assertEqual(by_query["updated"], 1)
        self.assertEqual(self.server.must("POST", "/fs/_delete_by_query" + own, {"query": {"term": {"n": 5}}})["deleted"], 1)
        copied = self.server.must("POST", "/_reindex" + own, {"source": {"index": "fs", "query": {"term": {"n": 103}}}, "dest": {"index": "made"}})
        self.assertEqual(copied["created"], 1)
        return added

    BEFORE = {str(number): (number, "old") for number in range(6)}

    def after(self, added):
        return {"0": (100, "new"), "created": (101, "new"), "1": (102, "old"), "2": (2, "new"), "bulk": (103, "new"), added: (105, "new")}

    def read_everything(self, who, names, query=""):
        """By each call that reads. Returns: what each of them shows, in one form: {id: (n, k)}."""
        ask = self.server.ask
        own = "?" + "&".join(part for part in (who, query) if part)

        def hits(reply):
            return {hit["_id"]: (hit["_source"].get("n"), hit["_source"].get("k")) for hit in reply["hits"]["hits"]}
        seen = {"get": {}, "source": {}, "mget": {}, "terms": {}}
        for name in names:
            status, reply = ask("GET", "/fs/_doc/" + name + own)
            self.assertEqual(ask("HEAD", "/fs/_doc/" + name + own)[0], status)
            if status == 200:
                seen["get"][name] = (reply["_source"].get("n"), reply["_source"].get("k"))
            status, reply = ask("GET", "/fs/_source/" + name + own)
            if status == 200:
                seen["source"][name] = (reply.get("n"), reply.get("k"))
        for doc in ask("POST", "/fs/_mget" + own, {"ids": names})[1]["docs"]:
            if doc["found"]:
                seen["mget"][doc["_id"]] = (doc["_source"].get("n"), doc["_source"].get("k"))
        seen["search"] = hits(ask("POST", "/fs/_search" + own, {"size": 100})[1])
        for word in ("old", "new"):
            seen["terms"].update(hits(ask("POST", "/fs/_search" + own, {"size": 100, "query": {"term": {"k": word}}})[1]))
        line = '{"index":"fs"}\n{"size":100,"sort":["n"]}\n'
        seen["msearch"] = hits(ask("POST", "/_msearch" + own, line)[1]["responses"][0])
        count = ask("POST", "/fs/_count" + own, ALL)[1]["count"]
        self.assertEqual(count, len(seen["search"]))
        return seen

    def scroll(self, who, size=2):
        seen, reply = {}, self.server.must("POST", "/fs/_search?scroll=1m&size=%d&%s" % (size, who), {"sort": ["n"]})
        while reply["hits"]["hits"]:
            seen.update({hit["_id"]: (hit["_source"].get("n"), hit["_source"].get("k")) for hit in reply["hits"]["hits"]})
            reply = self.server.must("POST", "/_search/scroll" + ("?" + who if len(seen) % 4 else ""), {"scroll": "1m", "scroll_id": reply["_scroll_id"]})
        self.server.must("DELETE", "/_search/scroll", {"scroll_id": reply["_scroll_id"]})
        return seen


class OwnWrites(Case):
    def test_own_writes_are_visible_inside_only(self):
        added = self.write_everything()
        after = self.after(added)
        names = sorted(set(after) | set(self.BEFORE))
        for how, seen in self.read_everything(self.inside, names).items():
            self.assertEqual(seen, after, how)
        for how, seen in self.read_everything(self.outside, names).items():
            self.assertEqual(seen, self.BEFORE, how)
        self.assertEqual(self.scroll(self.inside), after)
        self.assertEqual(self.scroll(self.outside), self.BEFORE)
        self.assertEqual(self.server.must("GET", "/made/_count?" + self.inside)["count"], 1)
        self.assertEqual(self.server.must("GET", "/made/_count")["count"], 0)
        committed = self.commit()
        for how, seen in self.read_everything(self.outside, names).items():
            self.assertEqual(seen, after, how)
        for how, seen in self.read_everything("timestamp=%d" % committed, names).items():
            self.assertEqual(seen, after, how)
        for how, seen in self.read_everything("timestamp=%d" % (committed - 1), names).items():
            self.assertEqual(seen, self.BEFORE, how)

    def test_rollback_discards_writes(self):
        names = sorted(set(self.after(self.write_everything())) | set(self.BEFORE))
        self.server.must("POST", "/_transaction/%s/_rollback" % self.transaction)
        for how, seen in self.read_everything(self.outside, names).items():
            self.assertEqual(seen, self.BEFORE, how)

    def test_update_returns_deleted_source(self):
        """The fields are of the previous source, which the transaction overwrites."""
        self.server.must("PUT", "/fs/_doc/gone?" + self.inside, {"v": 5, "text": "x" * 500})
        reply = self.server.must("POST", "/fs/_doc/gone/_update?fields=v,text&" + self.inside, {"script": {"source": "ctx.op = 'delete'", "lang": "painless"}})
        self.assertEqual((reply["result"], reply["get"]["fields"]), ("deleted", {"v": [5], "text": ["x" * 500]}))

    def test_version_history(self):
        """An uncommitted version has no timestamp yet and is visible inside only."""
        path = "/fs/_doc/0?version_history=true"
        before = self.server.must("GET", path)["versions"]
        self.assertEqual(self.server.must("GET", path + "&" + self.inside)["versions"], before)
        self.server.must("PUT", "/fs/_doc/0?" + self.inside, {"n": 100})
        own, *rest = self.server.must("GET", path + "&" + self.inside)["versions"]
        self.assertEqual((own, rest), ({"from": None, "to": None, "_version": 2, "deleted": False}, before))
        self.server.must("DELETE", "/fs/_doc/0?" + self.inside)
        own, *rest = self.server.must("GET", path + "&" + self.inside)["versions"]
        self.assertEqual((own, rest), ({"from": None, "to": None, "_version": 3, "deleted": True}, before))
        self.assertEqual(self.server.must("GET", path)["versions"], before)
        committed = self.commit()
        new, old = self.server.must("GET", path)["versions"]
        self.assertEqual(new, {"from": committed, "to": None, "_version": 3, "deleted": True})
        self.assertEqual(old, {**before[0], "to": committed})


class NamedOnEveryRequest(Case):
    def test_independent_calls_do_not_wait_for_the_transaction(self):
        """While a request of it waits for a lock, its session is kept alive, and it can be looked at and given up."""
        holder = self.server.must("POST", "/_session", {"ttl": "10m"})["session"]
        own = self.server.must("POST", "/_session", {"ttl": "10m"})["session"]
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "fs", "id": "1"}]})
        transaction = self.server.must("POST", "/_transaction", {"session": own})["transaction"]
        name = {"Tidelock-Transaction": transaction}
        waiting = Waiting(self.server, "PUT", "/fs/_doc/1?timeout=10m&transaction=" + transaction, {"n": 2})
        until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock", headers=name)["locks"]), "it waits")
        for method, path in (("POST", "/_session/%s/_keepalive" % own), ("GET", "/_session/" + own), ("GET", "/_transaction/" + transaction),
                             ("GET", "/_cat/locks"), ("GET", "/_timestamp"), ("POST", "/_transaction"),
                             ("POST", "/_transaction/%s/_rollback" % transaction)):
            self.assertIn(self.server.request(method, path, headers=name).status, (200, 201), path)
            self.assertEqual(self.server.must("GET", "/_session/" + own)["session"], own)
            self.assertIsNone(waiting.status if "_rollback" not in path else None, "it was held up until the wait was over")
        waiting.join()
        self.assertEqual((waiting.status, waiting.reply["error"]["type"]), (409, "transaction_aborted_exception"))
        for session in (holder, own):
            self.server.must("DELETE", "/_session/" + session)
        self.server.end_owners()

    def test_bulk_whose_later_command_is_the_victim_of_a_deadlock(self):
        """Scripts that take a million steps together postpone the last item to a command of its own. The end of the transaction undoes the items
        before it, too, so the bulk is refused as a whole."""
        script = '{"update":{"_index":"fs","_id":"1"}}\n{"script":"for (int i = 0; i < 9000; i++) { ctx._source.n = i }"}\n'
        younger = self.server.must("POST", "/_transaction")["transaction"]
        self.server.must("PUT", "/fs/_doc/2?" + self.inside, {"n": 1, "path": "/d/2"})
        waiting = Waiting(self.server, "POST", "/_bulk?timeout=10m&transaction=" + younger,
                          script * 40 + '{"update":{"_index":"fs","_id":"2"}}\n{"doc":{"k":"new"}}\n')
        until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the last item waits")
        self.server.must("PUT", "/fs/_doc/1?timeout=10m&" + self.inside, {"n": 1, "path": "/d/1"})
        waiting.join()
        self.assertEqual((waiting.status, waiting.reply.get("error", {}).get("type")), (409, "deadlock_detected_exception"), waiting.reply)
        self.assertEqual(self.server.ask("GET", "/fs/_doc/1?transaction=" + younger)[0], 409)


class Queries(unittest.TestCase):
    """Query transactions: a table of the host, with the replies that transactions of the log have."""

    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.close)
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})

    def begin(self, **members):
        return self.server.must("POST", "/_transaction", {"mode": "query", **members})

    def refused(self, status, kind, says, method, path, body=None):
        found, reply = self.server.ask(method, path, body)
        self.assertEqual((found, reply["error"]["type"]), (status, kind + "_exception"), reply)
        self.assertIn(says, reply["error"]["reason"])

    def test_query_transaction_of_session(self):
        opened = self.server.must("POST", "/_session", {"ttl": "10m"})
        session, other = opened["session"], self.server.must("POST", "/_session", {"ttl": "10m"})["session"]
        begun = self.begin(session=session)
        read = "/fs/_doc/1?transaction=" + begun["transaction"]
        self.assertEqual(self.server.must("GET", read + "&session=" + session)["_source"], {"n": 1})
        self.refused(400, "illegal_argument", "does not belong to session", "GET", read + "&session=" + other)
        self.refused(404, "session_missing", "no session [nope]", "POST", "/_transaction", {"mode": "query", "session": "nope"})
        shown = self.server.must("GET", "/_session/" + session)
        self.assertEqual((shown["transactions"], shown["transaction_count"]), ([begun["transaction"]], 1))
        rows = self.server.must("GET", "/_transaction")["transactions"]
        self.assertEqual([(row["transaction"], row["mode"], row["session"]) for row in rows], [(begun["number"], "query", opened["number"])])
        self.server.must("DELETE", "/_session/" + session)
        self.refused(409, "transaction_aborted", "its session #%d was closed" % opened["number"], "GET", read)
        self.refused(409, "transaction_aborted", "was closed", "POST", "/_transaction/%s/_commit" % begun["transaction"])

    def test_outcomes(self):
        committed, forced = self.begin(), self.begin()
        for _ in range(2):
            reply = self.server.must("POST", "/_transaction/%s/_commit" % committed["transaction"])
            self.assertEqual(reply, {"committed": True, "timestamp": committed["timestamp"], "changes": 0})
        self.server.must("POST", "/_transaction/%d/_rollback?force=true" % forced["number"])
        shown = [self.server.must("GET", "/_transaction/" + one["transaction"]) for one in (committed, forced)]
        self.assertEqual([(one["mode"], one["state"]) for one in shown], [("query", "committed"), ("query", "rolled_back")])
        self.assertEqual((shown[0]["commit_timestamp"], shown[1]["cause"]), (committed["timestamp"], "it was ended by force"))
        self.assertEqual(self.server.must("GET", "/_transaction")["transactions"], [])

    def test_query_transaction_writes_no_log_entry(self):
        def applied():
            page = self.server.request("GET", "/_metrics").body.decode()
            return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith('tidelock_commands_total{command="txn_'))
        before = applied()
        for end in ("_commit", "_rollback"):
            transaction = self.begin()["transaction"]
            self.server.must("GET", "/fs/_doc/1?transaction=" + transaction)
            self.server.must("POST", "/_transaction/%s/%s" % (transaction, end))
        self.assertEqual(applied(), before)
        update = self.server.must("POST", "/_transaction")["transaction"]
        self.server.must("POST", "/_transaction/%s/_rollback" % update)
        self.assertEqual(applied(), before + 2)


class IdleTime(unittest.TestCase):
    """A transaction lives for its timeout after whatever is done in it last: each way to read counts, however soon after the one before."""

    READS = [("GET", "/fs/_doc/1", None), ("HEAD", "/fs/_doc/1", None), ("GET", "/fs/_source/1", None), ("POST", "/fs/_mget", {"ids": ["1"]}),
             ("GET", "/fs/_search", None), ("GET", "/fs/_count", None), ("GET", "/fs/_mapping", None), ("GET", "/fs", None)]

    def setUp(self):
        self.server = ClockedServer().start()
        self.addCleanup(self.server.close)
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})

    def lives(self, transaction):
        return self.server.must("GET", "/_transaction/" + transaction)["state"] == "active"

    def test_each_read_restarts_idle_timeout(self):
        for mode in ("query", "update"):
            with self.subTest(mode=mode):
                read, silent = [[self.server.must("POST", "/_transaction", {"mode": mode, "timeout": "5m"})["transaction"] for _ in range(count)]
                                for count in (len(self.READS), 1)]
                self.server.pass_time(120)
                for transaction, (method, path, body) in zip(read, self.READS):
                    self.assertEqual(self.server.request(method, path + "?transaction=" + transaction, body).status, 200)
                self.server.pass_time(200)
                until(lambda: not self.lives(silent[0]), "nothing was done in it")
                self.assertEqual([self.lives(transaction) for transaction in read], [True] * len(read))
                self.server.pass_time(120)
                for transaction in read:
                    until(lambda t=transaction: not self.lives(t), "it was read in long ago")


class Contexts(Case):
    """Scrolls and points in time that a transaction opened: they show its writes so far, and end with it."""

    def begin(self, who):
        return self.server.must("POST", "/fs/_search?scroll=1m&size=1&" + who, {"sort": ["n"]})["_scroll_id"]

    def go_on(self, scroll, who=""):
        return self.server.ask("POST", "/_search/scroll?" + who, {"scroll": "1m", "scroll_id": scroll})

    def test_scroll_keeps_its_timestamp(self):
        self.server.must("PUT", "/fs/_doc/new?" + self.inside, {"n": -1})
        scroll = self.begin(self.inside)
        self.server.must("PUT", "/fs/_doc/later?" + self.inside, {"n": 0.5})
        self.server.must("DELETE", "/fs/_doc/0?" + self.inside)
        self.assertEqual([hit["_id"] for hit in self.go_on(scroll)[1]["hits"]["hits"]], ["0"])
        self.assertEqual([hit["_id"] for hit in self.go_on(scroll)[1]["hits"]["hits"]], ["1"])
        self.assertEqual(len(self.scroll(self.inside)), 7)

    def test_a_scroll_ends_with_its_transaction(self):
        self.server.must("PUT", "/fs/_doc/new?" + self.inside, {"n": 1})
        for end, status, kind in (("_commit", 404, "transaction_missing_exception"), ("_rollback", 409, "transaction_aborted_exception")):
            scroll = self.begin(self.inside)
            self.server.must("POST", "/_transaction/%s/%s" % (self.transaction, end))
            for who in ("", self.inside):
                found, reply = self.go_on(scroll, who)
                self.assertEqual((found, reply["error"]["type"]), (status, kind))
            self.transaction = self.server.must("POST", "/_transaction")["transaction"]
            self.inside = "transaction=" + self.transaction

    def test_scroll_of_another_owner_is_refused_inside(self):
        """It would show what the transaction has no lock on."""
        scroll = self.begin(self.outside)
        found, reply = self.go_on(scroll, self.inside)
        self.assertEqual((found, "did not open the scroll" in reply["error"]["reason"]), (400, True), reply)
        self.assertEqual(self.go_on(scroll)[0], 200)

    def pit(self, who):
        return self.server.must("POST", "/fs/_pit?keep_alive=1m&" + who)["id"]

    def search(self, pit, who=""):
        return self.server.ask("POST", "/_search?" + who, {"pit": {"id": pit}, "query": {"term": {"k": "new"}}})

    def test_a_point_in_time(self):
        self.server.must("PUT", "/fs/_doc/new?" + self.inside, {"k": "new"})
        pit, other = self.pit(self.inside), self.pit(self.outside)
        self.server.must("PUT", "/fs/_doc/later?" + self.inside, {"k": "new"})
        for who in ("", self.inside):
            self.assertEqual([hit["_id"] for hit in self.search(pit, who)[1]["hits"]["hits"]], ["new"])
        self.assertEqual(self.search(other)[1]["hits"]["hits"], [])
        found, reply = self.search(other, self.inside)
        self.assertEqual((found, "did not open the point in time" in reply["error"]["reason"]), (400, True), reply)
        # Its range is locked, as by any search of a transaction.
        self.assertEqual(self.server.ask("PUT", "/fs/_doc/phantom?timeout=0s", {"k": "new"})[0], 409)
        self.commit()
        found, reply = self.search(pit)
        self.assertEqual((found, reply["error"]["type"]), (404, "transaction_missing_exception"))

    def test_of_a_query_transaction(self):
        query = "transaction=" + self.server.must("POST", "/_transaction", {"mode": "query"})["transaction"]
        self.server.must("DELETE", "/fs/_doc/5")
        scroll, pit = self.begin(query), self.pit(query)
        self.server.must("DELETE", "/fs/_doc/1")
        self.assertEqual([hit["_id"] for hit in self.go_on(scroll, query)[1]["hits"]["hits"]], ["1"])
        self.assertEqual(self.server.must("POST", "/_search", {"pit": {"id": pit}})["hits"]["total"]["value"], 6)
        self.server.must("POST", "/_%s/_rollback" % query.replace("=", "/"))
        self.assertEqual(self.go_on(scroll)[0], 409)


if __name__ == "__main__":
    unittest.main()
