# SPDX-License-Identifier: Apache-2.0
"""Ten times the documents: put, get and resident memory, against the usual number"""
import os

import loads
from measure import rate_of
from peers import Tidelock


def run(bench):
    large = 10 * bench.count
    folder = os.path.join(os.path.dirname(bench.data), os.path.basename(bench.data).rsplit("-", 1)[0] + "-%d" % large)
    loads.make(folder, large, "bulk")
    with bench.servers(Tidelock, Tidelock) as (big, usual):
        loads.bulk_load(usual, "fs", loads.MAPPING, 4)
        loads.bulk_load(big, "fs", loads.MAPPING, 4, folder)
        bench.settle(big, usual)
        bench.limit("resident memory, {:,} documents".format(large), big.memory_mib(), "MiB", 250, None)
        for what in ("get", "put"):
            bench.rates("%s, 64 clients, %s documents" % (what, "{:,}".format(large)), rate_of(big, what, 64, "-n", large),
                        [("{:,} documents".format(bench.count), rate_of(usual, what, 64, "-n", bench.count), 0.7, 0.9)])
        bench.limit("the same after gets and puts", big.memory_mib(), "MiB", 250, None)
