#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each step of the core is bounded, for any request: a long request is divided into steps, between which other requests execute.

Method: the server counts commands and steps that took too much (GET /_metrics), so no time is measured. Steps with at most one
script are not counted.
"""
import http.client
import json
import os
import re
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import Waiting, until  # noqa: E402

LOOP = "for (int i = 0; i < params.n; i++) { ctx._source.n = i }"


class BoundedSteps(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.close)
        self.server.must("PUT", "/_scripts/loop", {"script": {"lang": "painless", "source": LOOP}})

    def metric(self, name):
        page = self.server.request("GET", "/_metrics").body.decode()
        return int(re.search(r"^%s (\d+)" % re.escape(name), page, re.M).group(1))

    def bulk(self, count, turns, query=""):
        lines = []
        for i in range(count):
            lines.append({"update": {"_index": "u", "_id": str(i)}})
            lines.append({"script": {"id": "loop", "params": {"n": turns}}, "upsert": {}, "scripted_upsert": False})
        body = "".join(json.dumps(line) + "\n" for line in lines)
        return self.server.request("POST", "/_bulk" + query, body, {"Content-Type": "application/x-ndjson"})

    def fill(self, count):
        body = "".join(json.dumps(line) + "\n" for i in range(count)
                       for line in ({"index": {"_index": "u", "_id": str(i)}}, {"n": -1}))
        self.server.request("POST", "/_bulk", body, {"Content-Type": "application/x-ndjson"})

    def test_bulk_of_scripts_is_divided(self):
        self.fill(200)
        before = self.metric('tidelock_commands_total{command="write"}')
        answer = self.bulk(200, 4000)
        self.assertEqual(answer.status, 200)
        result = json.loads(answer.body)
        self.assertFalse(result["errors"])
        self.assertEqual([item["update"]["_id"] for item in result["items"]], [str(i) for i in range(200)])
        self.assertEqual({item["update"]["_version"] for item in result["items"]}, {2})
        self.assertGreater(self.metric('tidelock_commands_total{command="write"}') - before, 2)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_unlock_of_many_names_is_divided(self):
        """Several commands release them, which the reply adds up; a wrong name releases none of them."""
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        locks = [{"mode": "shared", "index": "fs", "id": str(n)} for n in range(25000)]
        self.server.must("POST", "/_lock", {"session": session, "locks": locks})
        wrong = [{"mode": "shared", "index": "*", "id": "1"}]
        status, reply = self.server.ask("POST", "/_unlock", {"session": session, "locks": locks + wrong})
        self.assertEqual((status, reply["error"]["type"]), (400, "invalid_index_name_exception"))
        others = [{"mode": "shared", "index": "fs", "id": "not-%d" % n} for n in range(1000)]
        before, over = self.metric('tidelock_commands_total{command="unlock"}'), self.metric("tidelock_steps_over_bound_total")
        self.assertEqual(self.server.must("POST", "/_unlock", {"session": session, "locks": locks + others}), {"released": 25000})
        self.assertIn(self.metric('tidelock_commands_total{command="unlock"}') - before, range(2, 9))
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), over)

    def test_lock_of_more_than_one_step_is_refused(self):
        """Without effect, with what to do instead, which works; so is an unlock of too many long names."""
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        locks = [{"mode": "exclusive", "index": "fs", "path": "/a/%d" % n} for n in range(20000)]
        for owner in {"session": session}, {"transaction": self.server.must("POST", "/_transaction")["transaction"]}:
            status, reply = self.server.ask("POST", "/_lock", {**owner, "locks": locks})
            self.assertEqual((status, reply["status"], reply["error"]["type"]), (400, 400, "illegal_argument_exception"))
            self.assertEqual(reply["error"]["root_cause"][0]["reason"], reply["error"]["reason"])
            self.assertRegex(reply["error"]["reason"], "take more work than one request may.*: lock a directory above them or the index, .* or divide the request")
            self.assertEqual(self.metric('tidelock_locks_held{mode="exclusive"}'), 0)
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs", "path": "/a"}]})
        status, _ = self.server.ask("PUT", "/fs/_doc/1?timeout=0s", {"path": "/a/7/x"})
        self.assertEqual(status, 409)
        for first in range(0, len(locks), 5000):
            self.server.must("POST", "/_lock", {"session": session, "locks": locks[first:first + 5000]})
        names = [{"index": "fs", "path": "/%d" % n + "x" * 4000} for n in range(4000)]
        status, reply = self.server.ask("POST", "/_unlock", {"session": session, "locks": names})
        self.assertEqual((status, reply["error"]["type"]), (400, "illegal_argument_exception"))
        self.assertRegex(reply["error"]["reason"], r"divide the request, or release all locks of the session by a request without \[locks\]")
        self.assertEqual(self.server.must("POST", "/_unlock", {"session": session, "locks": locks}), {"released": 20000})
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_reads_of_a_transaction_lock_in_several_steps(self):
        """The last ones are locked, too, and another transaction waits for them, however long the list is."""
        self.server.must("PUT", "/u/_doc/39999", {"n": 1})
        transaction, other = (self.server.must("POST", "/_transaction")["transaction"] for _ in range(2))
        before = self.metric('tidelock_commands_total{command="txn_lock"}')
        reply = self.server.must("POST", "/u/_mget?transaction=" + transaction, {"ids": [str(n) for n in range(40000)]})
        self.assertEqual([doc["_id"] for doc in reply["docs"] if doc["found"]], ["39999"])
        self.assertIn(self.metric('tidelock_commands_total{command="txn_lock"}') - before, range(2, 9))
        for n in 0, 20000, 39999:
            status, reply = self.server.ask("PUT", "/u/_doc/%d?timeout=0s&transaction=%s" % (n, other), {"n": 2})
            self.assertEqual((n, status), (n, 409))
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_log_of_a_divided_unlock_is_in_proportion_to_it(self):
        """150 directories 4,000 levels deep, of which one command releases some four, and other names, 3 MB in all."""
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        locks = [{"index": "new", "path": "/%d" % n + "/x" * 4000} for n in range(150)]
        locks += [{"index": "new", "id": "%d-" % n + "x" * 450} for n in range(4000)]
        before = self.metric('tidelock_commands_total{command="unlock"}')
        self.assertEqual(self.server.must("POST", "/_unlock", {"session": session, "locks": locks}), {"released": 0})
        self.assertGreater(self.metric('tidelock_commands_total{command="unlock"}') - before, 20)
        segments = [name for name in os.listdir(os.path.join(self.server.data, "log")) if name.endswith(".segment")]
        self.assertEqual(len(segments), 1, "the log has more than 16 MiB")

    def test_filters_of_aliases_are_counted_for_each_index(self):
        """A step parses the filter of each index and keeps it: what one short body can cause is limited, without effect beyond."""
        self.server.must("POST", "/_bulk", "".join('{"create":{"_index":"many-%03d","_id":"1"}}\n{"a":1}\n' % i for i in range(200)))
        body = {"filter": {"terms": {"a": ["%08d" % k for k in range(3000)]}}}
        actions = {"actions": [{"add": {"index": "many-*", "alias": "filtered", **body}}]}
        for reply in self.server.ask("POST", "/_aliases", actions), self.server.ask("PUT", "/many-*/_alias/filtered", body):
            self.assertEqual((reply[0], reply[1]["error"]["type"]), (429, "limit_exceeded_exception"), reply)
            self.assertIn("counted for each index and alias, have more than 2097152 bytes: divide the request", reply[1]["error"]["reason"])
        self.assertEqual(self.server.ask("GET", "/_alias/filtered")[0], 404)
        self.server.must("PUT", "/many-00*/_alias/filtered", body)
        self.server.must("PUT", "/many-*/_alias/short", {"filter": {"term": {"a": 1}}})
        self.assertEqual([len(self.server.must("GET", "/_alias/" + name)) for name in ("filtered", "short")], [10, 200])
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_last_locks_of_a_divided_read_are_waited_for(self):
        """It reads the state after the commit of the other transaction; without a wait it is refused, and keeps its locks."""
        self.server.must("PUT", "/u/_doc/39999", {"n": 1})
        ids = {"ids": [str(n) for n in range(40000)]}
        transaction, writer = (self.server.must("POST", "/_transaction")["transaction"] for _ in range(2))
        self.server.must("PUT", "/u/_doc/39999?transaction=" + writer, {"n": 2})
        status, reply = self.server.ask("POST", "/u/_mget?timeout=0s&transaction=" + transaction, ids)
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_conflict_exception"))
        self.assertEqual(self.server.ask("PUT", "/u/_doc/0?timeout=0s", {"n": 2})[0], 409)
        status, reply = self.server.ask("POST", "/u/_mget?timeout=1ms&transaction=" + transaction, ids)  # over before the last
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"))
        waiting = Waiting(self.server, "POST", "/u/_mget?timeout=10m&transaction=" + transaction, ids)
        until(lambda: self.metric("tidelock_lock_waiters") == 1, "it waits for the last document")
        self.server.must("POST", "/_transaction/%s/_commit" % writer)
        waiting.join()
        self.assertEqual([doc["_source"] for doc in waiting.reply["docs"] if doc["found"]], [{"n": 2}])

    def test_divided_read_fails_as_its_transaction_ends(self):
        self.server.must("PUT", "/u/_doc/39999", {"n": 1})
        ids = {"ids": [str(n) for n in range(40000)]}
        transaction, writer = (self.server.must("POST", "/_transaction")["transaction"] for _ in range(2))
        self.server.must("PUT", "/u/_doc/39999?transaction=" + writer, {"n": 2})
        waiting = Waiting(self.server, "POST", "/u/_mget?timeout=10m&transaction=" + transaction, ids)
        until(lambda: self.metric("tidelock_lock_waiters") == 1, "it waits for the last document")
        self.server.must("POST", "/_transaction/%s/_rollback" % transaction)
        waiting.join()
        self.assertEqual((waiting.status, waiting.reply["error"]["type"]), (409, "transaction_aborted_exception"))
        self.assertEqual(self.server.ask("PUT", "/u/_doc/0?timeout=0s", {"n": 2})[0], 201)

    def test_log_of_a_divided_read_is_in_proportion_to_it(self):
        """A document 4,000 levels deep, 100 times, of which one command locks some four, and other names, 1.8 MB in all."""
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/fs/_doc/deep", {"path": "/x" * 4000})
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        ids = ["deep"] * 100 + ["%d-" % n + "x" * 450 for n in range(4000)]
        before = self.metric('tidelock_commands_total{command="txn_lock"}')
        reply = self.server.must("POST", "/fs/_mget?_source=false&transaction=" + transaction, {"ids": ids})
        self.assertEqual([doc["found"] for doc in reply["docs"]], [True] * 100 + [False] * 4000)
        self.assertGreater(self.metric('tidelock_commands_total{command="txn_lock"}') - before, 20)
        segments = [name for name in os.listdir(os.path.join(self.server.data, "log")) if name.endswith(".segment")]
        self.assertEqual(len(segments), 1, "the log has more than 8 MiB")

    def test_log_of_a_divided_bulk_is_in_proportion_to_it(self):
        """100 items of 8 kB, each of which makes an index of 900 fields, which takes as long as one command may."""
        fields = {"f%d" % i: {"type": "keyword"} for i in range(900)}
        self.server.must("PUT", "/_index_template/t", {"index_patterns": ["new-*"], "template": {"mappings": {"properties": fields}}})
        body = "".join(json.dumps(line) + "\n" for i in range(100) for line in ({"index": {"_index": "new-%d" % i, "_id": "1"}}, {"f1": "x" * 8000}))
        before = self.metric('tidelock_commands_total{command="write"}')
        answer = json.loads(self.server.request("POST", "/_bulk", body, {"Content-Type": "application/x-ndjson"}).body)
        self.assertEqual([item["index"]["status"] for item in answer["items"]], [201] * 100)
        self.assertGreater(self.metric('tidelock_commands_total{command="write"}') - before, 20)
        segments = [name for name in os.listdir(os.path.join(self.server.data, "log")) if name.endswith(".segment")]
        self.assertEqual(len(segments), 1, "the log has more than 8 MiB")

    def test_templates_of_other_indices_take_no_time(self):
        """100 templates of 900 fields each do not apply to the indices that a bulk makes, 100 of a field and an alias do."""
        fields = {"f%d" % i: {"type": "keyword"} for i in range(900)}
        for i in range(100):
            self.server.must("PUT", "/_template/other-%d" % i, {"index_patterns": ["other-*"], "mappings": {"properties": fields}})
            one = {"index_patterns": ["new-*"], "mappings": {"properties": {"g%d" % i: {"type": "keyword"}}}, "aliases": {"a%d" % i: {}}}
            self.server.must("PUT", "/_template/new-%d" % i, one)
        lines = [line for i in range(20) for line in ({"index": {"_index": "new-%d" % i, "_id": "1"}}, {})]
        status, result = self.bulk_of(*lines)
        self.assertEqual((status, [item["index"]["status"] for item in result["items"]]), (200, [201] * 20))
        self.assertEqual(len(self.server.must("GET", "/new-7/_mapping")["new-7"]["mappings"]["properties"]), 100)
        self.assertEqual(len(self.server.must("GET", "/new-7/_alias")["new-7"]["aliases"]), 100)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)
        for i in range(100, 200):
            self.server.must("PUT", "/_template/other-%d" % i, {"index_patterns": ["other-*"], "mappings": {"properties": fields}})
        status, reply = self.server.ask("PUT", "/other-1/_doc/1", {})
        self.assertEqual((status, reply["error"]["type"]), (400, "illegal_argument_exception"))
        self.assertIn("more than [4194304] bytes", reply["error"]["reason"])
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_scripts_of_a_bulk_share_their_steps(self):
        """What one command did before it was cut: all share the steps of one script, each has 20,000 besides."""
        self.fill(200)
        result = json.loads(self.bulk(200, 20000).body)
        self.assertTrue(result["errors"])
        statuses = [item["update"]["status"] for item in result["items"]]
        self.assertEqual(statuses[0], 200)
        self.assertEqual(statuses[-1], 400)
        self.assertEqual(result["items"][-1]["update"]["error"]["type"], "illegal_argument_exception")
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def update(self, key, turns, query="", script=LOOP, **more):
        body = dict({"script": {"lang": "painless", "source": script, "params": {"n": turns}}}, **more)
        return self.server.ask("POST", "/u/_update/%s%s" % (key, query), body)

    def test_long_script_runs_outside_of_the_core(self):
        """The core runs some 50,000 steps of it, and takes over its result."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        counting = LOOP + " ctx._source.m += 1; ctx._source.remove('gone')"
        for times in range(1, 4):
            status, reply = self.update("1", 40000, "?_source=true", counting)
            self.assertEqual((status, reply["result"], reply["_version"]), (200, "updated", times + 1))
            self.assertEqual(reply["get"]["_source"], {"n": 39999, "m": times})
        status, reply = self.update("2", 40000, upsert={}, scripted_upsert=True)
        self.assertEqual((status, reply["result"]), (201, "created"))
        status, reply = self.update("2", 40000, script=LOOP + " ctx.op = 'none'")
        self.assertEqual((status, reply["result"]), (200, "noop"))
        status, reply = self.update("2", 40000, "?if_seq_no=0&if_primary_term=1")
        self.assertEqual((status, reply["error"]["type"]), (409, "version_conflict_engine_exception"))
        status, reply = self.update("2", 40000, script=LOOP + " ctx.op = 'delete'")
        self.assertEqual((status, reply["result"]), (200, "deleted"))
        self.assertLess(self.metric('tidelock_step_work_max{command="write"}'), 20000)

    def test_long_script_runs_outside_of_the_core_in_a_transaction(self):
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        transaction = self.server.must("POST", "/_transaction?session=" + session)["transaction"]
        for times in range(1, 4):
            status, reply = self.update("1", 40000, "?_source=true&transaction=" + transaction, LOOP + " ctx._source.m += 1")
            self.assertEqual((status, reply["get"]["_source"]), (200, {"n": 39999, "m": times}))
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"n": -1, "m": 0})
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"n": 39999, "m": 3})
        self.assertLess(self.metric('tidelock_step_work_max{command="write"}'), 20000)

    def send_at_once(self, path, bodies, times):
        """Each client, one of `bodies`, repeats its request on a connection of its own. Returns: the statuses."""
        found = []

        def client(body):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
            for _ in range(times):
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                response.read()
                found.append(response.status)
            connection.close()

        clients = [threading.Thread(target=client, args=(body,)) for body in bodies]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        return found

    def test_long_scripts_of_many_clients_lose_nothing(self):
        """Those that meet are run again: none is lost, and none is a conflict."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        bodies = [json.dumps({"script": {"source": LOOP + " ctx._source.m += 1", "params": {"n": turns}}}) for turns in (12000, 12000, 12000, 10)]
        self.assertEqual(self.send_at_once("/u/_update/1", bodies, 5), [200] * 20)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"]["m"], 20)

    def test_long_scripts_of_a_bulk_run_outside_of_the_core_in_order(self):
        lines = [{"index": {"_index": "u", "_id": "1"}}, {"m": 1, "n": 0}]
        scripts = [("m = m * 2", 20000), ("m += 1", 10), ("m = m * 2", 20000), ("missing.x = 1", 20000), ("m += 1", 20000)]
        for text, turns in scripts:
            lines += [{"update": {"_index": "u", "_id": "1"}},
                      {"script": {"source": LOOP + " ctx._source." + text.replace("= m", "= ctx._source.m"), "params": {"n": turns}}}]
        lines += [{"index": {"_index": "u", "_id": "2"}}, {"m": 7}]
        body = "".join(json.dumps(line) + "\n" for line in lines)
        result = json.loads(self.server.request("POST", "/_bulk", body, {"Content-Type": "application/x-ndjson"}).body)
        self.assertEqual([list(item.values())[0]["status"] for item in result["items"]], [201, 200, 200, 200, 400, 200, 201], result)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"]["m"], 7)
        self.assertEqual(self.server.must("GET", "/u/_doc/2")["_source"], {"m": 7})
        self.assertLess(self.metric('tidelock_step_work_max{command="write"}'), 20000)

    def bulk_of(self, *lines, query=""):
        body = "".join(json.dumps(line) + "\n" for line in lines)
        answer = self.server.request("POST", "/_bulk" + query, body, {"Content-Type": "application/x-ndjson"})
        return answer.status, json.loads(answer.body)

    @staticmethod
    def long_update(key, text="ctx._source.m += 1", turns=100000, index="u"):
        """Lines of an item whose script takes four steps a turn."""
        return {"update": {"_index": index, "_id": key}}, {"script": {"source": LOOP + " " + text, "params": {"n": turns}}}

    def test_long_scripts_of_an_atomic_bulk_run_outside_of_the_core(self):
        for key in "12":
            self.server.must("PUT", "/u/_doc/" + key, {"n": -1, "m": 0})
        status, result = self.bulk_of(*self.long_update("1"), {"index": {"_index": "u", "_id": "3"}}, {"m": 3}, *self.long_update("2"),
                                    {"update": {"_index": "u", "_id": "2"}}, {"doc": {"after": True}}, query="?atomic=true&_source=true")
        self.assertEqual((status, result["errors"]), (200, False), result)
        self.assertEqual([list(item.values())[0]["_version"] for item in result["items"]], [2, 1, 2, 3])
        self.assertEqual(result["items"][0]["update"]["get"]["_source"], {"n": 99999, "m": 1})
        self.assertEqual(self.server.must("GET", "/u/_doc/2")["_source"], {"n": 99999, "m": 1, "after": True})
        self.assertLess(self.metric('tidelock_step_work_max{command="write"}'), 60000)

    def test_failed_long_script_rolls_an_atomic_bulk_back(self):
        """The reply has what failed, and nothing of a script whose end is not known."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        lines = [{"index": {"_index": "u", "_id": "3"}}, {"m": 3}, *self.long_update("1"), *self.long_update("1", "missing.x = 1", index="u")]
        lines[4] = {"update": {"_index": "u", "_id": "2"}}
        self.server.must("PUT", "/u/_doc/2", {"n": -1})
        status, result = self.bulk_of(*lines, query="?atomic=true")
        self.assertEqual((status, result["rolled_back"], [item["update"]["_id"] for item in result["items"]]), (409, True, ["2"]), result)
        self.assertEqual(result["items"][0]["update"]["error"]["caused_by"]["type"], "script_exception", result)
        status, result = self.bulk_of(*self.long_update("1"), {"create": {"_index": "u", "_id": "2"}}, {}, query="?atomic=true")
        self.assertEqual((status, [list(item)[0] for item in result["items"]]), (409, ["create"]), result)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"n": -1, "m": 0})
        self.assertEqual(self.server.ask("GET", "/u/_doc/3")[0], 404)

    def test_long_script_of_an_atomic_bulk_sees_an_earlier_item(self):
        """By an alias, too. Only the core knows that document, and runs a million steps at most."""
        self.server.must("PUT", "/u/_doc/1", {"m": 0})
        self.server.must("POST", "/_aliases", {"actions": [{"add": {"index": "u", "alias": "other"}}]})
        put = {"index": {"_index": "u", "_id": "1"}}, {"m": 5}
        status, result = self.bulk_of(*put, *self.long_update("1", index="other"), query="?atomic=true")
        self.assertEqual((status, result["errors"]), (200, False), result)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"m": 6, "n": 99999})
        status, result = self.bulk_of(*put, *self.long_update("1", turns=400000), query="?atomic=true")
        self.assertEqual((status, len(result["items"]), result["items"][0]["update"]["status"]), (409, 1, 400), result)
        self.assertIn("an earlier item of this atomic request writes its document", result["items"][0]["update"]["error"]["reason"])
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"m": 6, "n": 99999})
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def writes(self):
        return self.metric('tidelock_commands_total{command="write"}')

    def test_items_of_an_atomic_bulk_that_need_what_a_long_script_does(self):
        """Without it they fail, which is no reply: the script has not run yet."""
        self.server.must("PUT", "/u/_doc/1", {"m": 0})
        creates, removes = self.long_update("9"), self.long_update("1", "ctx.op = 'delete'")
        creates[1].update(upsert={"m": 4}, scripted_upsert=True)
        status, result = self.bulk_of(*creates, {"update": {"_index": "u", "_id": "9"}}, {"doc": {"after": True}},
                                    *removes, {"create": {"_index": "u", "_id": "1"}}, {"new": True}, query="?atomic=true")
        self.assertEqual([(name, item["status"]) for one in result["items"] for name, item in one.items()],
                         [("update", 201), ("update", 200), ("update", 200), ("create", 201)], result)
        self.assertEqual((status, result["errors"]), (200, False))
        self.assertEqual(self.server.must("GET", "/u/_doc/9")["_source"], {"m": 5, "n": 99999, "after": True})
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"new": True})

    def test_failures_after_a_long_script_of_an_atomic_bulk_are_told_if_they_do_not_depend_on_it(self):
        self.server.must("PUT", "/u/_doc/2", {})
        creates = self.long_update("9")
        creates[1].update(upsert={"m": 4}, scripted_upsert=True)
        status, result = self.bulk_of({"update": {"_index": "u", "_id": "none"}}, {"doc": {}}, *creates,
                                    {"update": {"_index": "u", "_id": "9"}}, {"doc": {"after": True}}, {"create": {"_index": "u", "_id": "9"}}, {},
                                    {"create": {"_index": "u", "_id": "2"}}, {}, query="?atomic=true")
        self.assertEqual((status, [item["_id"] for one in result["items"] for item in one.values()]), (409, ["none", "2"]), result)
        self.assertEqual(result["items"][1]["create"]["_version"], 1)

    def test_attempts_of_an_atomic_bulk_do_not_grow_with_its_items(self):
        """Each script takes long only after the one before, so that one attempt cannot show all of them."""
        self.server.must("PUT", "/u/_doc/1", {"k": 0})
        text = "if (ctx._source.k == params.i) { for (int j = 0; j < 15000; j++) { ctx._source.n = j } ctx._source.k += 1 }"
        before = self.writes()
        status, result = self.bulk_of(*(line for i in range(8) for line in (
            {"update": {"_index": "u", "_id": "1"}}, {"script": {"source": text, "params": {"i": i}}})), query="?atomic=true")
        self.assertEqual((status, result["errors"]), (200, False), result)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"k": 8, "n": 14999})
        self.assertLessEqual(self.writes() - before, 2)

    def test_long_scripts_of_a_bulk_do_not_undo_one_another(self):
        """While the first script runs, its document is locked (unless that is late), so that the core begins the second one, too."""
        for key in "12":
            self.server.must("PUT", "/u/_doc/" + key, {"n": -1, "m": 0})
        holder, before = self.server.must("POST", "/_session", {"ttl": "1h"})["session"], self.writes()
        lines = [line for key in "34" for line in ({"index": {"_index": "u", "_id": key}}, {})]  # since they are done, the next command has two items
        lines += [*self.long_update("1", turns=900000), *self.long_update("2", turns=20000)]
        work = Waiting(self.server, "POST", "/_bulk?timeout=10m", "".join(json.dumps(line) + "\n" for line in lines))
        until(lambda: self.writes() > before, "the first script is stopped")
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "u", "id": "1"}]})
        until(lambda: work.status is not None or any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the first item waits")
        self.server.must("DELETE", "/_session/" + holder)
        until(lambda: work.status is not None or self.writes() > before + 10, "the bulk is done")
        self.assertLessEqual(self.writes(), before + 10)
        work.join()
        self.assertEqual([list(item.values())[0]["status"] for item in work.reply["items"]], [201, 201, 200, 200], work.reply)

    def test_long_scripts_of_a_bulk_are_those_of_their_items(self):
        """Between them are items that the core never sees."""
        for key in "12":
            self.server.must("PUT", "/u/_doc/" + key, {"n": -1, "m": 0})
        refused = {"index": {"_index": "u", "_id": "3", "pipeline": "none"}}, {}
        status, result = self.bulk_of(*refused, *self.long_update("1"), *refused, *refused, *self.long_update("2", "missing.x = 1"), *refused, *self.long_update("2"))
        self.assertEqual((status, [list(item.values())[0]["status"] for item in result["items"]]), (200, [400, 200, 400, 400, 400, 400, 200]), result)
        self.assertEqual(result["items"][4]["update"]["error"]["caused_by"]["type"], "script_exception", result)
        self.assertEqual([self.server.must("GET", "/u/_doc/" + key)["_source"]["m"] for key in "12"], [1, 1])

    def test_atomic_bulk_whose_scripts_fill_the_memory_is_refused_as_a_whole(self):
        server = Server("--memory", "64m", "--script-steps", "50000000").start()
        self.addCleanup(server.close)
        text = "for (int i = 0; i < 30000; i++) { ctx._source.n = i } ctx._source.l = []; for (int i = 0; i < 9000; i++) { ctx._source.l.add(params.pad) }"
        lines = []
        for key in "123":
            server.must("PUT", "/u/_doc/" + key, {"n": -1})
            lines += [{"update": {"_index": "u", "_id": key}}, {"script": {"source": text, "params": {"pad": "x" * 2000}}}]
        answer = server.request("POST", "/_bulk?atomic=true", "".join(json.dumps(line) + "\n" for line in lines), {"Content-Type": "application/x-ndjson"})
        result = json.loads(answer.body)
        self.assertEqual((answer.status, result.get("error", {}).get("type")), (429, "circuit_breaking_exception"), answer.body[:600])
        self.assertEqual([server.must("GET", "/u/_doc/" + key)["_source"] for key in "123"], [{"n": -1}] * 3)

    def test_long_scripted_upsert_in_a_transaction_makes_its_index(self):
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        for index, query in ("one", ""), ("two", "&atomic=true"):
            lines = self.long_update("1", index=index)
            lines[1].update(upsert={"m": 4}, scripted_upsert=True)
            status, result = self.bulk_of(*lines, query="?transaction=" + transaction + query)
            self.assertEqual((status, result["items"][0]["update"]["status"]), (200, 201), result)
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual([self.server.must("GET", "/%s/_doc/1" % index)["_source"]["m"] for index in ("one", "two")], [5, 5])

    def test_long_scripts_of_a_bulk_in_a_transaction_run_outside_of_the_core(self):
        """Each sees what the transaction has written before, also in the same bulk."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        for query, m in (("", 13), ("&atomic=true", 26)):
            status, result = self.bulk_of(*self.long_update("1"), {"index": {"_index": "u", "_id": "2"}}, {"m": m},
                                        query="?transaction=" + transaction + query)
            self.assertEqual((status, result["errors"]), (200, False), result)
            if not query:
                status, result = self.bulk_of(*self.long_update("2"), *self.long_update("2", "ctx._source.m += 2"), query="?transaction=" + transaction)
                self.assertEqual((status, [item["update"]["_version"] for item in result["items"]]), (200, [2, 3]), result)
                self.assertEqual(self.server.must("GET", "/u/_doc/2?transaction=" + transaction)["_source"], {"m": 16, "n": 99999})
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"n": -1, "m": 0})
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"n": 99999, "m": 2})
        self.assertEqual(self.server.must("GET", "/u/_doc/2")["_source"], {"m": 26})
        self.assertLess(self.metric('tidelock_step_work_max{command="write"}'), 60000)

    def bulk_in(self, transaction, *lines, query=""):
        return self.bulk_of(*lines, query="?transaction=%s%s" % (transaction, query))

    def put_members(self, key, index="u"):
        """Puts a document of 3 MB with 200,000 members, none of which is indexed. Returns: its source."""
        self.server.ask("PUT", "/" + index, {"mappings": {"properties": {"o": {"type": "object", "enabled": False}}}})
        source = {"o": {"m%07d" % i: i for i in range(200000)}}
        self.server.must("PUT", "/%s/_doc/%s" % (index, key), source)
        return source

    # To read the document and its entries, and to write the source, which is parsed already: as a put that replaces it, and a third. A merge takes as much again.
    LARGE_WORK = 650000

    def most_work(self):
        return self.metric('tidelock_step_work_max{command="write"}')

    def test_update_of_a_large_document_is_merged_outside_of_the_core(self):
        source = self.put_members("1")
        update = lambda query="", **body: self.server.ask("POST", "/u/_update/1" + query, body)  # noqa: E731
        self.assertEqual(update(doc={"o": {"m0000001": "x"}, "n": [1]})[1]["_version"], 2)
        source["o"]["m0000001"], source["n"] = "x", [1]
        answer = self.server.request("GET", "/u/_source/1")
        self.assertEqual(list(json.loads(answer.body).items()), list(source.items()))
        status, reply = update(doc={"n": [1]})
        self.assertEqual((status, reply["result"], reply["_version"]), (200, "noop", 2))
        status, reply = update("?_source_includes=n", doc={"n": [1]})
        self.assertEqual(reply["get"]["_source"], {"n": [1]})
        status, reply = update(doc={"n": [1]}, detect_noop=False)
        self.assertEqual((status, reply["result"], reply["_version"]), (200, "updated", 3))
        status, reply = update("?if_seq_no=0&if_primary_term=1", doc={"n": 2})
        self.assertEqual((status, reply["error"]["type"]), (409, "version_conflict_engine_exception"))
        status, reply = update("?if_seq_no=2&if_primary_term=1", doc={"n": {"a": 2}})
        self.assertEqual((status, reply["error"]["type"]), (400, "mapper_parsing_exception"), reply)
        status, reply = update("?if_seq_no=2&if_primary_term=1", doc={"n": 2})
        self.assertEqual((status, reply["_seq_no"], reply["_version"]), (200, 3, 4), reply)
        status, reply = update(script={"source": "ctx._source = ['n': ctx._source.n + 1]"})
        self.assertEqual((status, reply["_version"]), (200, 5), reply)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"n": 3})
        self.assertLess(self.most_work(), self.LARGE_WORK)

    def test_large_upsert_is_parsed_outside_of_the_core(self):
        source = {"o": {"m%07d" % i: i for i in range(200000)}}
        self.server.must("PUT", "/u", {"mappings": {"properties": {"o": {"type": "object", "enabled": False}}}})
        for key, body in ("1", {"doc": source, "doc_as_upsert": True}), ("2", {"doc": {}, "upsert": source}):
            before = self.writes()
            status, reply = self.server.ask("POST", "/u/_update/" + key, body)
            self.assertEqual((status, reply["result"], self.writes() - before), (201, "created", 2), reply)  # again with the result
            self.assertEqual(self.server.must("GET", "/u/_doc/" + key)["_source"], source)
        status, reply = self.server.ask("POST", "/u/_update/3", {"doc": source})
        self.assertEqual((status, reply["error"]["type"]), (404, "document_missing_exception"))
        self.server.must("PUT", "/hidden", {"mappings": {"_source": {"enabled": False}}})
        self.server.must("PUT", "/hidden/_doc/1", {})
        status, reply = self.server.ask("POST", "/hidden/_update/1", {"doc": source})
        self.assertEqual((status, reply["error"]["type"], reply["error"]["index"]), (400, "document_source_missing_exception", "hidden"), reply)
        self.assertLess(self.most_work(), self.LARGE_WORK)

    def test_updates_of_large_documents_in_bulks_are_merged_outside_of_the_core(self):
        """Alone, atomic, in a transaction; the first item of a document in an atomic bulk, and what follows it in the core."""
        sources = {key: self.put_members(key) for key in "12"}
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        in_one_step = "?atomic=true&transaction=" + transaction  # which has the work for one of them, the last item
        for number, query in enumerate(("", "?atomic=true", "?transaction=" + transaction, in_one_step)):
            lines, keys = [], "1" if query == in_one_step else "12"
            for key in keys:
                lines += [{"index": {"_index": "u", "_id": "9" + key}}, {"n": number}, {"update": {"_index": "u", "_id": key}}, {"doc": {"n%d" % number: 1}}]
                sources[key]["n%d" % number] = 1
            status, result = self.bulk_of(*lines, query=query)
            self.assertEqual((status, [list(item.values())[0]["status"] for item in result["items"]]), (200, [201 if number == 0 else 200, 200] * len(keys)), result)
            self.assertEqual([result["items"][2 * i + 1]["update"]["_version"] for i in range(len(keys))], [number + 2] * len(keys))
            if "transaction" not in query:
                self.assertLess(self.most_work(), self.LARGE_WORK, query)
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        for key in "12":
            self.assertEqual(self.server.must("GET", "/u/_doc/" + key)["_source"], sources[key])
        status, result = self.bulk_of(*({"update": {"_index": "u", "_id": "1"}}, {"doc": {"last": 1}}) * 2, query="?atomic=true")
        self.assertEqual([item["update"]["result"] for item in result["items"]], ["updated", "noop"])
        body = "".join(json.dumps(line) + "\n" for line in ({"update": {"_index": "u", "_id": "1"}}, {"doc": {"named": 1}}))
        for _ in range(2):
            reply = self.server.ask("POST", "/_bulk", body, {"Tidelock-Request": "large"})[1]
            self.assertEqual(reply["items"][0]["update"]["_version"], 7, reply)

    def test_update_of_a_large_document_without_memory_for_it_is_refused(self):
        server = self.server
        server.must("PUT", "/u", {"mappings": {"properties": {"o": {"type": "object", "enabled": False}}}})
        server.must("PUT", "/u/_doc/1", {"o": "x" * (18 << 20)})
        server.options += ["--memory", "64m"]  # with which it could not be put
        server.restart()
        lines = "".join(json.dumps(line) + "\n" for line in ({"update": {"_index": "u", "_id": "1"}}, {"doc": {"n": 1}}, {"index": {"_index": "u", "_id": "2"}}, {}))
        status, reply = server.ask("POST", "/u/_update/1", {"doc": {"n": 1}})
        self.assertEqual((status, reply["error"]["type"]), (429, "circuit_breaking_exception"), str(reply)[:500])
        self.assertEqual([list(item.values())[0]["status"] for item in server.must("POST", "/_bulk", lines)["items"]], [429, 201])
        status, reply = server.ask("POST", "/_bulk?atomic=true", lines)
        self.assertEqual((status, [item["update"]["error"]["type"] for item in reply["items"]]), (409, ["circuit_breaking_exception"]), str(reply)[:500])
        self.assertEqual(server.must("GET", "/u/_doc/1?_source=false")["_version"], 1)

    def test_updates_of_a_large_document_by_many_clients_lose_nothing(self):
        """Those that meet are merged again, with what the others have written."""
        self.put_members("1")
        bodies = [json.dumps({"doc": {"c%d" % i: i}}) for i in range(4)]
        self.assertEqual(self.send_at_once("/u/_update/1?timeout=10m", bodies, 2), [200] * 8)
        source = self.server.must("GET", "/u/_doc/1")["_source"]
        self.assertEqual([source["c%d" % i] for i in range(4)], list(range(4)))

    def test_bulk_of_many_items_in_a_transaction_is_several_commands(self):
        """Also one whose first item is postponed, with all others of its command; all are one reply."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        before = self.writes()
        removes = ({"delete": {"_index": "u", "_id": "2"}} for _ in range(45000))
        status, result = self.bulk_in(transaction, *self.long_update("1"), *removes, {"index": {"_index": "u", "_id": "3"}}, {})
        self.assertEqual((status, result["errors"], len(result["items"])), (200, False, 45002))
        self.assertEqual([list(result["items"][i].values())[0]["status"] for i in (0, 1, 45000, 45001)], [200, 404, 404, 201])
        self.assertGreaterEqual(self.writes() - before, 3)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"], {"n": 99999, "m": 1})
        self.assertEqual(self.server.must("GET", "/u/_doc/3")["_source"], {})

    def test_bulk_in_a_transaction_takes_nothing_after_an_item_that_exceeds_its_limits(self):
        """The limit is reached in a batch of the sixth command. The seventh, of which each item fails by itself, is not sent."""
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        creates = [line for i in range(100001) for line in ({"index": {"_index": "u", "_id": str(i)}}, {})]
        removes = [{"delete": {"_index": "u", "_id": "none"}}] * 20000
        status, result = self.bulk_in(transaction, *removes[:1500], *creates, *removes)
        found = [list(item.values())[0] for item in result["items"]]
        self.assertEqual((status, len(found)), (200, 121501))
        self.assertEqual({one["status"] for one in found[:1500]}, {404})
        self.assertEqual({one["status"] for one in found[1500:101000]}, {201})
        self.assertEqual({one["status"] for one in found[101000:]}, {413})
        self.assertIn("this item and those after it were not executed, earlier changes are kept", found[-1]["error"]["reason"])
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_deadlock_refuses_all_of_a_bulk_in_a_transaction(self):
        """It rolls back what the commands before have done."""
        older, younger = (self.server.must("POST", "/_transaction")["transaction"] for _ in range(2))
        self.server.must("PUT", "/u/_doc/last?transaction=" + older, {})
        removes = [{"delete": {"_index": "u", "_id": "2"}}] * 20000
        lines = [{"index": {"_index": "u", "_id": "first"}}, {}, *removes, {"index": {"_index": "u", "_id": "last"}}, {}]
        work = Waiting(self.server, "POST", "/_bulk?timeout=10m&transaction=" + younger, "".join(json.dumps(line) + "\n" for line in lines))
        until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the last item waits")
        self.server.must("PUT", "/u/_doc/first?timeout=10m&transaction=" + older, {})
        work.join()
        self.assertEqual((work.status, work.reply["error"]["type"]), (409, "deadlock_detected_exception"))

    def test_long_scripts_of_atomic_bulks_of_many_clients_lose_nothing(self):
        for key in "12":
            self.server.must("PUT", "/u/_doc/" + key, {"n": -1, "m": 0})
        bodies = ["".join(json.dumps(line) + "\n" for key in keys for line in self.long_update(key, turns=20000)) for keys in ("12", "21", "1")]
        self.assertEqual(self.send_at_once("/_bulk?atomic=true", bodies, 4), [200] * 12)
        self.assertEqual([self.server.must("GET", "/u/_doc/" + key)["_source"]["m"] for key in "12"], [12, 8])

    def test_long_script_checks_the_fencing_token(self):
        """With its result, too: a holder that was replaced writes nothing."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        tokens, session = [], None
        for _ in range(2):
            if session is not None:
                self.server.must("DELETE", "/_session/" + session)
            session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
            lock = {"session": session, "locks": [{"mode": "exclusive", "index": "u", "id": "1"}]}
            tokens.append(self.server.must("POST", "/_lock", lock)["fencing_token"])
        for query in "", "&atomic=true":
            for token, expected in (tokens[1], 200), (tokens[0], 409):
                _, result = self.bulk_of(*self.long_update("1"), query="?session=%s&fencing_token=%s%s" % (session, token, query))
                self.assertEqual(result["items"][0]["update"]["status"], expected, result)
        self.assertEqual(self.server.must("GET", "/u/_doc/1")["_source"]["m"], 2)

    def test_bulk_continues_in_large_pieces_after_a_long_script(self):
        """The script is the first item, so that the core has not run any when it stops."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1, "m": 0})
        before = self.metric('tidelock_commands_total{command="write"}')
        status, result = self.bulk_of(*self.long_update("1"), *(line for i in range(5000) for line in ({"index": {"_index": "v", "_id": str(i)}}, {})))
        self.assertEqual((status, result["errors"], len(result["items"])), (200, False, 5001))
        self.assertLess(self.metric('tidelock_commands_total{command="write"}') - before, 20)

    def test_negative_retries_of_a_long_script_are_none(self):
        """As in Elasticsearch. Its first run is no retry, even if the timeout has passed."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1})
        for retries in ("-1", "-2", "-2147483648"):
            status, reply = self.update("1", 20000, "?timeout=0s&retry_on_conflict=" + retries)
            self.assertEqual((status, reply.get("result")), (200, "updated"), reply)
            lines = [{"update": {"_index": "u", "_id": "1", "retry_on_conflict": int(retries)}},
                     {"script": {"source": LOOP, "params": {"n": 20000}}}]
            body = "".join(json.dumps(line) + "\n" for line in lines)
            result = json.loads(self.server.request("POST", "/_bulk?timeout=0s", body, {"Content-Type": "application/x-ndjson"}).body)
            self.assertEqual(result["items"][0]["update"]["status"], 200, result)

    def test_failed_long_script_of_a_bulk_names_the_index(self):
        """Not the alias that the request names, as if the core had run it."""
        self.server.must("PUT", "/u/_doc/1", {"n": -1})
        self.server.must("POST", "/_aliases", {"actions": [{"add": {"index": "u", "alias": "other"}}]})
        for turns in (10, 20000):
            lines = [{"update": {"_index": "other", "_id": "1"}},
                     {"script": {"source": LOOP + " ctx._source.missing.x = 1", "params": {"n": turns}}}]
            body = "".join(json.dumps(line) + "\n" for line in lines)
            result = json.loads(self.server.request("POST", "/_bulk", body, {"Content-Type": "application/x-ndjson"}).body)
            item = result["items"][0]["update"]
            self.assertEqual((item["status"], item["_index"], item["_type"]), (400, "u", "_doc"), result)

    def test_timestamp_of_5_is_ignored_by_a_long_script(self):
        """In a transaction a long script reads; the parameter is one of the write."""
        self.server.must("PUT", "/typed/t/1", {"n": 1})
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        transaction = self.server.must("POST", "/_transaction?session=" + session)["transaction"]
        for turns in (10, 20000):
            script = {"inline": "for (int i = 0; i < n; i++) { ctx._source.n = i }", "lang": "groovy", "params": {"n": turns}}
            status, reply = self.server.ask("POST", "/typed/t/1/_update?timestamp=2020-01-01&transaction=" + transaction, {"script": script})
            self.assertEqual((status, reply.get("result")), (200, "updated"), reply)

    def test_runs_of_a_long_script_leave_no_memory(self):
        """Each makes 24 MB, and is repeated since another client writes the document all the time."""
        self.server.must("PUT", "/u/_doc/1", {"m": 0})
        script = "String s = ''; for (int i = 0; i < 12000; i++) { s = params.pad + i } ctx._source.m += 1"
        lines = [{"update": {"_index": "u", "_id": "1"}}, {"script": {"source": script, "params": {"pad": "x" * 2000}}}]
        is_repeated = False
        while not is_repeated:  # while this client is delayed for as long as a run takes, the request is done before
            puts, before = 0, self.writes()
            work = Waiting(self.server, "POST", "/_bulk?timeout=10m", "".join(json.dumps(line) + "\n" for line in lines))
            while work.is_alive() and not is_repeated:
                for _ in range(100):
                    self.server.must("PUT", "/u/_doc/1", {"m": 1})
                puts += 100
                is_repeated = self.writes() - before - puts >= 40
            work.join()
            self.assertFalse(work.reply["errors"], work.reply)
        with open("/proc/%d/status" % self.server.process.pid, encoding="ascii") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        self.assertLess(peak, 600 << 10, "kB, of which a sanitizer keeps 256 MB of freed memory")

    def test_item_that_waits_does_not_overtake_a_long_script(self):
        """The second item moves the document of the first to a directory that is locked."""
        self.server.must("PUT", "/d", {"mappings": {"properties": {"path": {"type": "path"}, "m": {"type": "long"}}}})
        self.server.must("PUT", "/d/_doc/1", {"path": "/a/x", "m": 0})
        holder = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "d", "path": "/b"}]})
        lines = [{"update": {"_index": "d", "_id": "1"}},
                 {"script": {"source": LOOP + " ctx._source.m += 1", "params": {"n": 20000}}},
                 {"index": {"_index": "d", "_id": "1"}}, {"path": "/b/x", "m": 5}]
        work = Waiting(self.server, "POST", "/_bulk?timeout=10m", "".join(json.dumps(line) + "\n" for line in lines))
        until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the second item waits")
        self.server.must("DELETE", "/_session/" + holder)
        work.join()
        self.assertEqual([list(item.values())[0]["_version"] for item in work.reply["items"]], [2, 3], work.reply)
        self.assertEqual(self.server.must("GET", "/d/_doc/1")["_source"], {"path": "/b/x", "m": 5})

    def test_atomic_bulk_of_scripts_is_refused(self):
        self.fill(200)
        answer = self.bulk(200, 20000, "?atomic=true")
        self.assertEqual(answer.status, 400, answer.body)
        self.assertIn(b"atomic request", answer.body)
        self.assertEqual(self.server.must("GET", "/u/_doc/0")["_source"], {"n": -1})

    def atomic_bulk(self, count, last):
        body = "".join('{"index":{"_index":"a","_id":"%d"}}\n{"n":%d}\n' % (i, i) for i in range(count)) + last
        headers = {"Content-Type": "application/x-ndjson", "Tidelock-Request": "r%d" % len(last)}
        return self.server.request("POST", "/_bulk?atomic=true&refresh=true", body, headers)

    def test_atomic_bulk_is_carried_out_in_pieces(self):
        """All or nothing, once, and no step is above the bound."""
        answer = self.atomic_bulk(7000, '{"create":{"_index":"a","_id":"0"}}\n{}\n')
        self.assertEqual(answer.status, 409, answer.body[:500])
        result = json.loads(answer.body)
        self.assertTrue(result["rolled_back"])
        self.assertEqual([item["create"]["status"] for item in result["items"]], [409])
        self.assertEqual(self.server.must("GET", "/a/_count")["count"], 0)
        for repeated in range(2):
            answer = self.atomic_bulk(7000, "")
            self.assertEqual(answer.status, 200, answer.body[:500])
            items = json.loads(answer.body)["items"]
            self.assertEqual({(item["index"]["status"], item["index"]["_version"]) for item in items}, {(201, 1)})
            self.assertEqual(len(items), 7000)
        self.assertEqual(self.server.must("GET", "/a/_count", {"query": {"range": {"n": {"gte": 3500}}}})["count"], 3500)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_atomic_bulk_in_a_transaction_is_one_step(self):
        """One that is more is refused, without effect, however many actions it has. Without atomic it is divided."""
        self.server.must("PUT", "/tree", {"mappings": {"properties": {"path": {"type": "path"}}}})
        new = ({"index": {"_index": "a", "_id": "%d" % i}} if part == 0 else {"n": i} for i in range(20000) for part in range(2))
        removes = ({"delete": {"_index": "a", "_id": "1"}} for _ in range(200000))
        places = ({"index": {"_index": "tree", "_id": "%d" % i}} if part == 0 else {"path": "/%d%s/f" % (i, "/d" * 14)}
                  for i in range(3000) for part in range(2))
        texts = ({"index": {"_index": "a", "_id": "%d" % i}} if part == 0 else {"text": "x" * 1500000} for i in range(3) for part in range(2))
        extends = ({"index": {"_index": "a", "_id": "%d" % i}} if part == 0 else {"f%d" % (i * 9 + k): 1 for k in range(9)}
                   for i in range(110) for part in range(2))
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        query = "&transaction=" + transaction
        self.server.must("PUT", "/a/_doc/0?transaction=" + transaction, {"before": True})
        for lines in new, removes, places, texts, extends:
            status, result = self.bulk_of(*lines, query="?atomic=true" + query)
            self.assertEqual((status, result["error"]["type"]), (400, "illegal_argument_exception"), result)
            self.assertIn("send it without [atomic]", result["error"]["reason"])
        small = [line for i in range(3000) for line in ({"index": {"_index": "a", "_id": "%d" % i}}, {"n": i})]
        status, result = self.bulk_of(*small, *small[:2], {"create": {"_index": "a", "_id": "7"}}, {}, query="?atomic=true" + query)
        self.assertEqual((status, result["rolled_back"], len(result["items"])), (409, True, 1), result)
        self.assertEqual(self.server.must("GET", "/a/_count?transaction=" + transaction)["count"], 1)
        self.assertEqual(self.server.must("GET", "/a/_doc/0?transaction=" + transaction)["_source"], {"before": True})
        status, result = self.bulk_of(*small, query="?atomic=true" + query)
        self.assertEqual((status, result["errors"]), (200, False), result)
        many = [line for i in range(3000, 20000) for line in ({"index": {"_index": "a", "_id": "%d" % i}}, {"n": i})]
        self.assertFalse(self.bulk_of(*many, query="?" + query)[1]["errors"])
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)  # of the writes; a commit of so many is one step
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("GET", "/a/_count")["count"], 20000)
        self.assertEqual(self.metric("tidelock_steps_undivided_total"), 0)

    def test_many_small_actions_are_divided(self):
        before = self.metric('tidelock_commands_total{command="write"}')
        body = "".join('{"delete":{"_index":"u","_id":"%d"}}\n' % i for i in range(9000))
        answer = self.server.request("POST", "/_bulk", body, {"Content-Type": "application/x-ndjson"})
        self.assertEqual(len(json.loads(answer.body)["items"]), 9000)
        self.assertGreater(self.metric('tidelock_commands_total{command="write"}') - before, 3)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def fill_with_texts(self):
        """40 documents, each with an entry for each of its 3,000 words, put one by one."""
        text = " ".join("w%d" % i for i in range(3000))
        for i in range(40):
            self.server.must("PUT", "/u/_doc/%d" % i, {"text": text, "n": i})

    def test_bulk_is_divided_by_the_documents_that_it_replaces(self):
        """Each action has a few bytes, and removes 3,000 entries."""
        for action in "index", "delete":
            self.fill_with_texts()
            before = self.metric('tidelock_commands_total{command="write"}')
            body = "".join('{"%s":{"_index":"u","_id":"%d"}}\n' % (action, i) + '{"n":0}\n' * (action == "index") for i in range(40))
            answer = json.loads(self.server.request("POST", "/_bulk", body, {"Content-Type": "application/x-ndjson"}).body)
            self.assertEqual([item[action]["status"] for item in answer["items"]], [200] * 40)
            self.assertGreater(self.metric('tidelock_commands_total{command="write"}') - before, 3)
            self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_bulk_in_a_transaction_is_divided_by_the_documents_that_it_replaces(self):
        self.fill_with_texts()
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        body = "".join('{"delete":{"_index":"u","_id":"%d"}}\n' % i for i in range(40))
        answer = json.loads(self.server.request("POST", "/_bulk?transaction=" + transaction, body, {"Content-Type": "application/x-ndjson"}).body)
        self.assertEqual([item["delete"]["status"] for item in answer["items"]], [200] * 40)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("GET", "/u/_count")["count"], 0)

    def test_by_query_is_divided_by_the_documents_that_it_finds(self):
        self.fill_with_texts()
        before = self.metric('tidelock_commands_total{command="write"}')
        answer = self.server.must("POST", "/u/_delete_by_query", {"query": {"match_all": {}}})
        self.assertEqual((answer["deleted"], answer["failures"]), (40, []))
        self.assertGreater(self.metric('tidelock_commands_total{command="write"}') - before, 3)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_long_action_of_a_session_is_put_aside(self):
        """Others of the session run; the limit of one script holds when it is tried again, too."""
        self.fill(2)
        session = self.server.must("POST", "/_session", {"ttl": "5m", "on_expire": [
            line for key, turns in (("0", 400000), ("1", 1000))
            for line in ({"update": {"_index": "u", "_id": key}}, {"script": {"id": "loop", "params": {"n": turns}}})]})["session"]
        self.server.must("DELETE", "/_session/%s?force=true" % self.server.must("GET", "/_session/" + session)["number"])
        until(lambda: self.server.must("GET", "/u/_doc/1")["_source"] == {"n": 999}, "the short action is done")
        until(lambda: [one["aside"] for one in self.server.must("GET", "/_session")["deferred"]] == [True], "the long action is put aside")
        kept = self.server.must("GET", "/_session")["deferred"]
        self.assertIn("needs more script steps than the limits: [1000000]", self.server.request("GET", "/_lock/_events").body.decode())
        self.server.must("POST", "/_session/_deferred/%d/_retry" % kept[0]["number"])
        until(lambda: self.server.request("GET", "/_lock/_events").body.decode().count("[1000000]") == 2, "it is put aside again")
        self.assertEqual(self.server.must("GET", "/u/_doc/0")["_source"], {"n": -1})
        self.assertLess(self.metric('tidelock_step_work_max{command="write"}'), 100000)
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)

    def test_retries_that_are_no_int_are_refused(self):
        """Elasticsearch 7.10 does so with status 500."""
        for value, reason in ((5000000000, "Numeric value (5000000000) out of range of int (-2147483648 - 2147483647)"),
                              ("-5000000000", "Value [-5000000000] is out of range for an integer")):
            status, result = self.bulk_of({"update": {"_index": "u", "_id": "1", "retry_on_conflict": value}}, {"doc": {}})
            self.assertEqual((status, result["error"]["type"], result["error"]["reason"]), (400, "illegal_argument_exception", reason))

    def test_session_end_with_long_actions_is_divided(self):
        """100 actions of 400,000 steps each: a dozen is executed, the others are set aside and reported, and can be retried."""
        self.fill(1)
        session = self.server.must("POST", "/_session", {"ttl": "5m", "on_expire": [
            line for _ in range(100)
            for line in ({"update": {"_index": "u", "_id": "0"}}, {"script": {"id": "loop", "params": {"n": 100000}}})]})["session"]
        number = self.server.must("GET", "/_session/" + session).get("number")
        self.server.must("DELETE", "/_session/%s?force=true" % (number or session))
        self.assertEqual(self.server.must("GET", "/u/_doc/0")["_source"], {"n": 99999})
        kept = self.server.must("GET", "/_session")["deferred"]
        self.assertGreater(len(kept), 80)
        self.assertTrue(all(one["aside"] for one in kept))
        self.assertIn("[--script-steps]", self.server.request("GET", "/_lock/_events").body.decode())
        self.assertEqual(self.metric("tidelock_steps_over_bound_total"), 0)
        version = self.server.must("GET", "/u/_doc/0")["_version"]
        self.server.must("POST", "/_session/_deferred/%d/_retry" % kept[0]["number"])
        until(lambda: self.server.must("GET", "/u/_doc/0")["_version"] == version + 1, "the action is done")



class FewSteps(unittest.TestCase):
    """A server whose --script-steps is below what the core grants to updates that it has to run."""

    def setUp(self):
        self.server = Server("--script-steps", "500000").start()
        self.addCleanup(self.server.close)
        self.large = {"n": 1, "o": {"m%06d" % n: n for n in range(60000)}}

    def metric(self, name):
        page = self.server.request("GET", "/_metrics").body.decode()
        return int(re.search("^%s ([0-9]+)$" % re.escape(name), page, re.M).group(1))

    def bulk(self, path, *lines, headers=None):
        body = "".join(json.dumps(line) + "\n" for line in lines)
        reply = self.server.request("POST", path, body, {"Content-Type": "application/x-ndjson", **(headers or {})})
        return reply.status, json.loads(reply.body)

    def test_long_script_after_a_write_of_its_document(self):
        """Only the core can run it, which refuses it: the request is not sent again and again."""
        script = {"script": {"source": "long s = 0; for (int i = 0; i < 1000000; i++) { s += i } ctx._source.n = s"}}
        before = self.metric('tidelock_commands_total{command="write"}')
        status, reply = self.bulk("/a/_bulk?atomic=true", {"index": {"_id": "1"}}, {"n": 1}, {"update": {"_id": "1"}}, script)
        self.assertEqual((status, reply["errors"]), (409, True))
        self.assertIn("steps", json.dumps(reply))
        self.assertIn(self.metric('tidelock_commands_total{command="write"}') - before, range(1, 5))

    def test_large_document_after_a_write_of_it(self):
        script = {"script": {"source": "ctx._source.n += 1"}}
        self.server.must("PUT", "/b", {"mappings": {"properties": {"o": {"type": "object", "enabled": False}}}})
        status, reply = self.bulk("/b/_bulk?atomic=true", {"index": {"_id": "1"}}, self.large, {"update": {"_id": "1"}}, script)
        self.assertEqual((status, reply["errors"]), (200, False))
        self.assertEqual(self.server.must("GET", "/b/_doc/1?_source=n")["_source"], {"n": 2})

    def test_large_document_of_a_named_bulk(self):
        script = {"script": {"source": "ctx._source.n += 1"}}
        self.server.must("PUT", "/c", {"mappings": {"properties": {"o": {"type": "object", "enabled": False}}}})
        self.server.must("PUT", "/c/_doc/1", self.large)
        status, reply = self.bulk("/c/_bulk", {"update": {"_id": "1"}}, script, headers={"Tidelock-Request": "r1"})
        self.assertEqual((status, reply["errors"]), (200, False))
        self.assertEqual(self.server.must("GET", "/c/_doc/1?_source=n")["_source"], {"n": 2})


if __name__ == "__main__":
    unittest.main()
