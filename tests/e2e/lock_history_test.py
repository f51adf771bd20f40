#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /_lock at a past timestamp: the list is the one that was reported at that time.

Sessions and transactions acquire, upgrade, wait for and release locks, by a seed; after each step the list is recorded with its
timestamp. At the end it is requested again for each timestamp. Members that are not reported for the past (tokens, deadlines,
blockers) are removed from both. Only lists that did not change for longer than the resolution of the history are compared.
"""
import os
import random
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import Waiting  # noqa: E402

STEPS = 100 if os.environ.get("TIDELOCK_TEST_LONG") else 15  # after which something was locked, or waited for
LASTS = 0.13  # seconds; 100 ms are remembered
NOT_TOLD = ("fencing_token", "waits_for", "deadline", "upgrade")


def of_past(body):
    """Returns: the list as it is reported for the past. There the order within a resource is not specified."""
    found = {}
    for lock in body["locks"]:
        place = tuple(sorted((key, lock[key]) for key in lock if key not in ("holders", "waiters")))
        found[place] = {side: sorted(str(sorted((key, who[key]) for key in who if key not in NOT_TOLD)) for who in lock[side]) for side in ("holders", "waiters")}
    return found


class Case(unittest.TestCase):
    maxDiff = None

    def test_past_list_equals_list_of_that_time(self):
        seed = int(os.environ.get("SEED", "1"))
        chance = random.Random(seed)
        with Server() as server:
            server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
            server.must("PUT", "/fs/_doc/1", {"path": "/a/x"})
            sessions = [server.must("POST", "/_session", {"ttl": "10m", "name": "s%d" % i})["session"] for i in range(4)]
            places = [{"index": "fs"}, {"index": "fs", "path": "/a"}, {"index": "fs", "path": "/b"}, {"index": "fs", "id": "1"}, {"index": "fs", "id": "2"}, {"index": "other"}]
            kept, waiting, transactions = [], [], []
            while sum(1 for _, reported in kept if reported) < STEPS:
                step, session = chance.random(), chance.choice(sessions)
                locks = [{"mode": chance.choice(["shared", "update", "exclusive"]), **chance.choice(places)}]
                if step < 0.5:
                    server.ask("POST", "/_lock", {"session": session, "locks": locks})
                elif step < 0.65:
                    waiting.append(Waiting(server, "POST", "/_lock", {"session": session, "wait": "400ms", "locks": locks}))
                elif step < 0.75:
                    transactions.append(server.must("POST", "/_transaction", {"mode": "update"})["transaction"])
                    server.ask("POST", "/_lock", {"transaction": transactions[-1], "locks": locks})
                elif step < 0.8 and transactions:
                    server.must("POST", "/_transaction/%s/_commit" % transactions.pop())
                else:
                    server.must("POST", "/_unlock", {"session": session})
                begun = of_past(server.must("GET", "/_lock"))
                time.sleep(LASTS)
                reported = of_past(server.must("GET", "/_lock"))
                instant = server.must("GET", "/_timestamp")["timestamp"]
                if begun == reported == of_past(server.must("GET", "/_lock")):  # no wait ran out, or began, meanwhile
                    kept.append((instant, reported))
            for request in waiting:
                request.join()
            server.must("POST", "/_unlock", {"session": sessions[0]})
            for instant, reported in kept:
                self.assertEqual(of_past(server.must("GET", "/_lock?timestamp=%d" % instant)), reported, "seed %d, at %d" % (seed, instant))
            last = server.must("GET", "/_lock?timestamp=%d&index=other" % kept[-1][0])
            self.assertLessEqual({lock.get("index") for lock in last["locks"]}, {"other", None})
            for transaction in transactions:
                server.must("POST", "/_transaction/%s/_rollback" % transaction)
            server.end_owners()

    def test_timestamps_without_history_are_refused(self):
        with Server() as server:
            first = server.must("GET", "/_timestamp")
            self.assertEqual(server.must("GET", "/_lock?timestamp=%d" % first["timestamp"]), {"locks": []})
            status, reply = server.ask("GET", "/_lock?timestamp=%d" % (first["timestamp"] - 600 * 10**6))
            self.assertEqual((status, reply["error"]["type"]), (410, "timestamp_too_old_exception"))
            self.assertIn("the history of locks begins at", reply["error"]["reason"])
            self.assertEqual(server.ask("GET", "/_lock?as_of=2199-01-01T00:00:00Z")[0], 400)
            self.assertEqual(server.ask("GET", "/_lock?size=0")[0], 400)
            session = server.must("POST", "/_session", {"ttl": "10m"})["session"]
            server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "i%d" % i} for i in range(20)]})
            self.assertEqual(len(server.must("GET", "/_lock?size=7")["locks"]), 7)
            self.assertEqual(server.ask("GET", "/_cat/locks?as_of=2026-01-01T00:00:00Z")[0], 400)  # the table is of the present


if __name__ == "__main__":
    unittest.main(verbosity=2)
