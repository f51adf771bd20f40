# SPDX-License-Identifier: Apache-2.0
"""HTTP alone: a request that reads nothing, compared with libmicrohttpd's hello world"""
from measure import rate_of
from peers import Hello, Tidelock

PROGRAMS = ["hello"]


def run(bench):
    with bench.servers(Tidelock, Hello) as (t, hello):
        for clients in (1, 64):
            bench.rates("a request that reads nothing, %d client%s" % (clients, "s" if clients > 1 else ""),
                        rate_of(t, "root", clients, "-a", "/_timestamp"),
                        [("libmicrohttpd", rate_of(hello, "root", clients), None, None)])
