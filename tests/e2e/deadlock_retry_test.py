#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deadlock victims that retry: they keep the age of their first attempt and read for update (`retry_of`).

First the rule, with two transactions that read one document and both write it. Then clients that transfer between few documents,
each until it commits: all do, and no transfer is lost. bench/retry_bench measures the number of attempts.
"""
import json
import os
import random
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import until  # noqa: E402

CLIENTS, TRANSFERS, DOCUMENTS = 8, 8, 6


class Retry(unittest.TestCase):
    def setUp(self):
        self.server = Server.of_class(self)
        for number in range(DOCUMENTS):
            self.server.must("PUT", "/bank/_doc/%d" % number, {"balance": 100})

    def begin(self, **members):
        return self.server.must("POST", "/_transaction", members)["transaction"]

    def read(self, document, transaction):
        return self.server.must("GET", "/bank/_doc/%s?transaction=%s" % (document, transaction))["_source"]

    def lock_modes(self, document):
        """Returns: the modes in which a document is held."""
        locks = self.server.must("GET", "/_lock")["locks"]
        return [holder["mode"] for lock in locks if lock.get("id") == document for holder in lock["holders"]]

    def in_thread(self, method, path, body):
        def run():
            connection = self.server.connect()
            reply = self.server.request(method, path, body if body is None else json.dumps(body), connection=connection)
            thread.got = (reply.status, json.loads(reply.body))
            connection.close()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def close_cycle(self, first, second):
        """Both have read document 0 and write it; `second` closes the cycle. Returns: the status of both writes."""
        waits = self.in_thread("PUT", "/bank/_doc/0?transaction=" + first, {"balance": 1})
        until(lambda: "waiters\":[{" in json.dumps(self.server.must("GET", "/_lock"), separators=(",", ":")), "it waits")
        status = self.server.ask("PUT", "/bank/_doc/0?transaction=" + second, {"balance": 2})[0]
        waits.join()
        return waits.got[0], status

    def test_retry_keeps_age(self):
        old, victim = self.begin(), self.begin()
        self.read("0", old)
        self.read("0", victim)
        self.assertEqual(self.close_cycle(old, victim), (200, 409))
        self.server.must("POST", "/_transaction/%s/_commit" % old)
        between = self.begin()
        self.read("0", between)
        again = self.begin(retry_of=victim)
        self.read("0", again)
        self.assertEqual(sorted(self.lock_modes("0")), ["shared", "update"])
        # A transaction that began between the two attempts is the younger one now.
        self.assertEqual(self.close_cycle(between, again), (409, 200))
        # Over a restart, too, which ends no try.
        self.server.kill()
        self.server.start()
        self.server.must("POST", "/_transaction/%s/_rollback" % again)
        young = self.begin()
        self.read("0", young)
        third = self.begin(retry_of=again)
        self.read("0", third)
        self.assertEqual(self.close_cycle(young, third), (409, 200))

    def test_retry_of_must_name_a_victim(self):
        open_one, query = self.begin(), self.begin(mode="query")
        done, undone = self.begin(), self.begin()
        self.server.must("POST", "/_transaction/%s/_commit" % done)
        self.server.must("POST", "/_transaction/%s/_rollback" % query)
        self.server.must("POST", "/_transaction/%s/_rollback" % undone)
        for wrong in (open_one, done, query, "nonesuch"):
            status, reply = self.server.ask("POST", "/_transaction", {"retry_of": wrong})
            self.assertEqual((status, reply["error"]["type"]), (400, "illegal_argument_exception"))
            self.assertIn("[retry_of] must name", reply["error"]["reason"])
        self.assertEqual(self.server.ask("POST", "/_transaction", {"retry_of": undone, "mode": "query"})[0], 400)
        self.begin(retry_of=undone)

    def transfer(self, connection, draw):
        """Tries until it is through. Returns: how many times."""
        def ask(method, path, body=None):
            reply = self.server.request(method, path, None if body is None else json.dumps(body), connection=connection)
            return reply.status, json.loads(reply.body)
        documents, tries, last = draw.sample(range(DOCUMENTS), 2), 0, None
        while True:
            tries += 1
            last = ask("POST", "/_transaction", {} if last is None else {"retry_of": last})[1]["transaction"]
            steps = [lambda d=d: ask("GET", "/bank/_doc/%d?transaction=%s" % (d, last)) for d in documents]
            found = []
            for step in steps:
                found.append(step())
                if found[-1][0] != 200:
                    break
            if [status for status, _ in found] != [200, 200]:
                continue
            balances = [reply["_source"]["balance"] for _, reply in found]
            wrote = [ask("PUT", "/bank/_doc/%d?transaction=%s" % (documents[i], last), {"balance": balances[i] + (1, -1)[i]})[0]
                     for i in (0, 1)]
            if wrote == [200, 200] and ask("POST", "/_transaction/%s/_commit" % last)[0] == 200:
                return tries

    def test_all_retrying_clients_commit(self):
        through = []

        def client(number):
            draw, connection = random.Random(number), self.server.connect()
            for _ in range(TRANSFERS):
                through.append(self.transfer(connection, draw))
            connection.close()
        threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(through), CLIENTS * TRANSFERS)
        balances = [self.server.must("GET", "/bank/_doc/%d" % number)["_source"]["balance"] for number in range(DOCUMENTS)]
        self.assertEqual(sum(balances), 100 * DOCUMENTS)
        self.assertEqual(self.server.must("GET", "/_lock")["locks"], [])


if __name__ == "__main__":
    unittest.main()
