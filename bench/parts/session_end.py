# SPDX-License-Identifier: Apache-2.0
"""The longest pause of other clients' puts and gets while a session with 150,000 ephemeral documents ends; and without it"""
import http.client
import json
import threading
import time

from peers import Tidelock

DOCUMENTS = 150000
ACTIONS = 5000
WATCHED_S = 10
CLIENTS = {"put": ("PUT", "/other/_doc/1", {"v": 1}), "get": ("GET", "/other/_doc/1", None)}


class Roomy(Tidelock):
    """A server that lets so many live with one session."""

    def __init__(self, bench):
        Tidelock.__init__(self, bench, "--max-ephemeral", str(DOCUMENTS))


def ask(connection, method, path, body=None):
    """Returns: the milliseconds that the answer took."""
    begin = time.perf_counter()
    connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    connection.getresponse().read()
    return (time.perf_counter() - begin) * 1000


def pauses(t, work):
    """Runs work() together with one client for each of CLIENTS. Returns: the longest pause of each, in milliseconds."""
    longest, done = dict.fromkeys(CLIENTS, 0), threading.Event()

    def client(name):
        connection = http.client.HTTPConnection("127.0.0.1", t.port)
        while not done.is_set():
            longest[name] = max(longest[name], ask(connection, *CLIENTS[name]))
        connection.close()
    threads = [threading.Thread(target=client, args=(name,)) for name in CLIENTS]
    for thread in threads:
        thread.start()
    work()
    done.set()
    for thread in threads:
        thread.join()
    return longest


def fill(t):
    """Returns: a session with which all the documents live."""
    session = t.ask("POST", "/_session", {"ttl": "10m"})["session"]
    for first in range(0, DOCUMENTS, ACTIONS):
        body = "".join('{"index":{"_id":"%d"}}\n{"v":%d,"path":"/clinton/projects/%d"}\n' % (i, i, i % 100)
                       for i in range(first, first + ACTIONS))
        t.ask("POST", "/fs/_bulk?filter_path=errors&lease=" + session, body)
    return session


def end(t, session, answered):
    """Ends a session, and waits while what went with it is swept away."""
    begin = time.perf_counter()
    t.ask("DELETE", "/_session/%s?force=true" % session)
    answered.append((time.perf_counter() - begin) * 1000)
    time.sleep(WATCHED_S)


def run(bench):
    with bench.servers(Roomy) as (t,):
        ended, idle, answered = [], [], []
        t.ask("PUT", "/other/_doc/1", {"v": 1})
        for _ in range(bench.runs):
            session = fill(t)
            bench.settle(t)
            with bench.alone():
                ended.append(pauses(t, lambda s=session: end(t, s, answered)))
                idle.append(pauses(t, lambda: time.sleep(WATCHED_S)))
        for name in CLIENTS:
            bench.limit("a session ends with 150,000 documents: longest %s beside" % name, max(one[name] for one in ended), "ms",
                        50, 20)
            bench.row("the same while none ends", max(one[name] for one in idle), "ms", [])
        bench.limit("until it is over", max(answered), "ms", 50, 20)
