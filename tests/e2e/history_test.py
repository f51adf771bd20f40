#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A search that takes longer than --history finishes: its versions are retained.

The history is a fifth of a second; a search runs a script over many documents for longer than that, while other clients write
and the history limit advances.
"""
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import Waiting  # noqa: E402

DOCUMENTS = 1500
SLOW = {"size": 10, "track_total_hits": True, "query": {"bool": {"filter": [{"range": {"n": {"gte": -9000000}}}, {"script": {"script": {
    "source": "long n = 0; for (int i = 0; i < params.turns; ++i) { n += i } return n >= 0 && doc['n'].value > -9000000", "params": {"turns": 0}}}}]}}}


class History(unittest.TestCase):
    def test_search_outlives_it(self):
        with Server("--history", "200ms") as server:
            lines = "".join('{"index":{"_id":"%d"}}\n{"n":%d}\n' % (n, n) for n in range(DOCUMENTS))
            self.assertFalse(server.must("POST", "/fs/_bulk", lines)["errors"])
            turns, took = 100, 0.0
            while took < 1.2:  # on any machine: upkeep, which moves the cut-off, comes by every second
                SLOW["query"]["bool"]["filter"][1]["script"]["script"]["params"]["turns"] = turns
                stop = threading.Event()
                writer = threading.Thread(target=self.write, args=(server, stop))
                writer.start()
                try:
                    begin = time.time()
                    search = Waiting(server, "POST", "/fs/_search", SLOW)
                    search.join()
                    took = time.time() - begin
                finally:
                    stop.set()
                    writer.join()
                self.assertEqual(search.status, 200, search.reply)
                self.assertEqual(search.reply["hits"]["total"]["value"], DOCUMENTS)
                self.assertEqual(search.reply["_shards"]["failed"], 0)
                if turns == 60000:
                    self.skipTest("the machine is too fast for this")
                turns = min(60000, turns * 6)

    def write(self, server, stop):
        connection = server.connect()
        n = 0
        while not stop.is_set():
            server.request("PUT", "/other/_doc/%d" % (n % 10), {"n": n}, connection=connection)
            server.request("PUT", "/fs/_doc/%d" % (n % DOCUMENTS), {"n": -n}, connection=connection)
            n += 1
            time.sleep(0.01)
        connection.close()


if __name__ == "__main__":
    unittest.main()
