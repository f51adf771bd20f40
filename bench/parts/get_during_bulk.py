# SPDX-License-Identifier: Apache-2.0
"""Gets during a bulk load, compared with gets while another process uses as much processor time"""
import statistics
import subprocess
import sys
import threading
import time

from loads import MAPPING, bulk_load
from peers import Tidelock, stop


class Loader(threading.Thread):
    """Loads the data set repeatedly until it is stopped."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.enough = threading.Event()

    def run(self):
        while not self.enough.is_set():
            bulk_load(self.server, "other", MAPPING, 1)


def run(bench):
    n = ("-n", bench.count)
    with bench.servers(Tidelock) as (t,):
        bulk_load(t, "fs", MAPPING, 4)
        bench.settle(t)
        with bench.alone():
            burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            idle = statistics.median([t.load("get", 64, *n, seconds=2)["p99_us"] for _ in range(bench.runs)])
            stop(burner)
        with bench.alone():
            loader = Loader(t)
            loader.start()
            time.sleep(1)
            loaded = statistics.median([t.load("get", 64, *n, seconds=2)["p99_us"] for _ in range(bench.runs)])
            loader.enough.set()
            loader.join()
        bench.row("get p99 while a bulk load runs, 64 clients", loaded, "us",
                  [("idle, with a CPU burner", idle, loaded / idle, 1.5, 1.2)])
