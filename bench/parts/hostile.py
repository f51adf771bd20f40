# SPDX-License-Identifier: Apache-2.0
"""The longest put of clients while another client sends requests of which each kind once delayed all clients"""
# Each attack has a server of its own, so that its row also has the longest step of the core, in work units (core/unit/work.h), and the
# peak of resident memory, compared with --memory. Other load on the machine changes neither.
#
# The attacks have the sizes below with the default of --count, 1,000,000, and smaller ones in proportion with a smaller one:
#
#     bench/run hostile --runs 1 --seconds 1                                  all rows, once
#     bench/run hostile --runs 1 --seconds 1 --count 10000 --patience 0       tries all rows
#
import contextlib
import fcntl
import http.client
import itertools
import json
import multiprocessing
import os
import re
import resource
import socket
import time

from peers import Tidelock

BOUND_MS, HOPED_MS = 100, 50
BESIDES_MB = 100     # resident memory that a server may have besides --memory
STEP_WORK = 500000   # the bound of one step: CORE_STEP_WORK
FULL = 1000000       # --count with which the attacks have these sizes
PUTTING = 4          # clients that put while one loops over all attacks
SCRIPTS = 40000      # items of a bulk below 2 MiB, which once became a single command
PAIRS = 20000
LOOP_TURNS = 1000    # of a script: some 5,000 steps
ACTION_TURNS = 100000
CROWD = 2000         # sessions that hold one document each and wait for one
LEAVING = 2000       # sessions that end together
LEAVING_DOCUMENTS = 50  # ephemeral documents of each of them
LEAVING_TTL_S = 20
EPHEMERAL = 10000    # ephemeral documents of one session (--max-ephemeral)
INDICES = 200        # indices that contain them
MANY_INDICES = 9500  # of a server, which has 10,000 at most
LOCKED = 32000       # locked documents during a rename
HELD = 100000        # locks in one directory
WAITING = 10000      # writes for one lock
OWN_WAITING = 100000  # requests of a session that wait when it ends
SPARE_FILES = 1200   # open files of the server that are not those requests
PER_ADDRESS = 20000  # connections: an address has a port for each
CHANGES = 100000     # of one transaction
LOCKS_AT_ONCE = 25000  # documents of one LOCK; 30,000 are refused
RENAMES = 300        # of one directory, each into a longer name
LEVELS, DEEP = 4000, 700    # directories of a path, and such paths of one request
REFUSED = 300        # requests of a session that does not exist
NAME = "n" * 12000   # of a directory
CYCLES = 130         # deadlocks, of which the server keeps 100
WORDS = 8000         # of a phrase
BY_QUERY = 60000     # documents of one atomic call
BATCH = 2000
AT_ONCE = 10         # requests that arrive together
CALLS = itertools.count()  # of concurrent()
TREE = {"mappings": {"properties": {"path": {"type": "path"}}}}


# --- The clients that are timed -------------------------------------------------------------------------------------------


def put_on(port, name, ending, found):
    """Runs in a client's process: sends puts, one after another, until `ending` is set; waits for the last one, too."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times, failed = [], []
    while not times or not ending.is_set():
        begin = time.perf_counter()
        connection.request("PUT", "/others/_doc/%s%d" % (name, len(times) % 100), '{"n":%d}' % len(times), {"Content-Type": "application/json"})
        response = connection.getresponse()
        reply = response.read()
        times.append((time.perf_counter() - begin) * 1000)
        if response.status not in (200, 201):
            failed.append("%d %s" % (response.status, reply[:200]))
    found.send((times, failed[:3]))


def puts(t, work, clients=1):
    """Returns: the milliseconds that each put of these clients took while work() was done, in ascending order."""
    ending, times = multiprocessing.Event(), []
    started = []
    for number in range(clients):
        read, write = multiprocessing.Pipe(False)
        process = multiprocessing.Process(target=put_on, args=(t.port, "%d-" % number, ending, write), daemon=True)
        process.start()
        write.close()
        started.append((process, read))
    try:
        work()
    finally:
        ending.set()
    for process, read in started:
        some, failed = read.recv()
        process.join()
        if failed:
            raise RuntimeError("of %d puts failed: %s" % (len(some), failed))
        times += some
    return sorted(times)


def longest_put(t, work):
    """Returns: the milliseconds that the longest put of one client took while work() was done."""
    return puts(t, work)[-1]


# --- What the other one uses ----------------------------------------------------------------------------------------------


def bulk(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def session(t, ttl="1h", **more):
    return t.ask("POST", "/_session", {"ttl": ttl, **more})["session"]


def lock_all(t, holder, resources):
    """Exclusive locks, some thousands a request."""
    for first in range(0, len(resources), BATCH):
        t.ask("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", **one} for one in resources[first:first + BATCH]]})


def index_all(t, documents, query=""):
    """documents: (index, id, source)."""
    for first in range(0, len(documents), BATCH):
        lines = []
        for index, key, source in documents[first:first + BATCH]:
            lines += [{"index": {"_index": index, "_id": key}}, source]
        reply = t.ask("POST", "/_bulk?filter_path=errors" + query, bulk(lines))
        if reply["errors"]:
            raise RuntimeError("a bulk failed")


def fresh(t, *indices, **mapping):
    for index in indices:
        t.request("DELETE", "/" + index)
        t.ask("PUT", "/" + index, mapping or None)


def wait_while(condition):
    while condition():
        time.sleep(0.05)


def taken(t, method, path, body, *expected):
    """Sends a request that may be refused, with one of these statuses, or for its size."""
    status, reply = t.request(method, path, body)
    if status not in (expected or (200, 400, 429)):
        raise RuntimeError("%s %s: %d %s" % (method, path, status, reply[:300]))


def waiting(t):
    """Returns: how many requests wait for locks."""
    return t.metric("tidelock_lock_waiters")


@contextlib.contextmanager
def concurrent(t, requests):
    """
    Sends each request on a connection of its own, and closes the connections at the end. Few are sent at a time, so
    that the effect of each request on others is measured, not their queue before the writer. Yields: the connections.
    """
    lines = []
    first = 2 + next(CALLS) * 8 % 240  # connections of another attack occupy the ports of their addresses for a minute after their end
    for number, (method, path, body) in enumerate(requests):
        if number % AT_ONCE == 0:
            t.ask("PUT", "/paced/_doc/1", {"n": number})
        one = socket.create_connection(("127.0.0.1", t.port), source_address=("127.0.0.%d" % (first + number // PER_ADDRESS), 0))
        data = json.dumps(body).encode()
        one.sendall(("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                     % (method, path, len(data))).encode() + data)
        lines.append(one)
    try:
        yield lines
    finally:
        for one in lines:
            one.close()


def size(bench, full):
    """Returns: how many an attack has that has `full` with the default of --count."""
    return max(1, full * min(bench.count, FULL) // FULL)


def again(bench, work):
    """Does it over and over, for as long as a run takes."""
    end = time.time() + bench.seconds
    while time.time() < end:
        work()


# --- The other client's requests --------------------------------------------------------------------------------------------


def bulk_of_scripts(bench, t):
    """a bulk of 40,000 stored scripts that loop"""
    t.ask("PUT", "/_scripts/loop", {"script": {"lang": "painless", "source": "for (int i = 0; i < %d; i++) { ctx._source.n = i }" % LOOP_TURNS}})
    index_all(t, [("looping", str(i), {"n": 0}) for i in range(100)])
    body = "".join('{"update":{"_id":"%d"}}\n{"script":{"id":"loop"}}\n' % (i % 100) for i in range(size(bench, SCRIPTS)))
    if t.ask("POST", "/looping/_bulk?filter_path=errors", body)["errors"]:
        raise RuntimeError("an update failed")


def session_of_scripts(bench, t):
    """a session with a ttl of 1 s ends, 100 scripts that loop"""
    index_all(t, [("looping", "0", {"n": 0})])
    t.ask("PUT", "/_scripts/loop", {"script": {"lang": "painless", "source": "for (int i = 0; i < params.n; i++) { ctx._source.n = i }"}})
    one = [{"update": {"_index": "looping", "_id": "0"}}, {"script": {"id": "loop", "params": {"n": ACTION_TURNS}}}]
    for _ in range(3):
        session(t, "1s", on_expire=one * 100)
        wait_while(lambda: t.ask("GET", "/_session")["sessions"])
    for kept in t.ask("GET", "/_session")["deferred"]:
        t.request("DELETE", "/_session/_deferred/%d" % kept["number"])


def deadlock_search(bench, t):
    """2,000 sessions hold and wait in one index"""
    holders = [session(t) for _ in range(size(bench, CROWD))]
    for i, holder in enumerate(holders):
        lock_all(t, holder, [{"index": "a", "id": str(i)}])
    owner, whole = session(t), session(t)
    lock_all(t, owner, [{"index": "b", "id": "1"}])
    requests = [("POST", "/_lock", {"session": whole, "wait": "60s", "locks": [{"mode": "exclusive", "index": "a"}]})]
    requests += [("POST", "/_lock", {"session": holder, "wait": "60s", "locks": [{"mode": "exclusive", "index": "b", "id": "1"}]}) for holder in holders]
    with concurrent(t, requests):
        pass
    for holder in [*holders, owner, whole]:
        t.request("DELETE", "/_session/%s?force=true" % holder)


def leases_end_together(bench, t):
    """2,000 leases end together, each with 50 documents"""
    holders = [session(t, "%ds" % max(2, size(bench, LEAVING_TTL_S))) for _ in range(size(bench, LEAVING))]
    for holder in holders:
        index_all(t, [("leaving", holder + str(i), {"v": i, "path": "/clinton/%d" % i}) for i in range(LEAVING_DOCUMENTS)], "&lease=" + holder)
    for holder in holders:
        t.ask("POST", "/_session/%s/_keepalive" % holder)
    wait_while(lambda: t.ask("GET", "/_session")["sessions"])
    wait_while(lambda: t.ask("GET", "/leaving/_count")["count"] > 0)


def session_of_indices(bench, t):
    """a session ends with 10,000 documents in 200 indices, and 5,000 locks"""
    holder = session(t)
    index_all(t, [("k%d" % (i % INDICES), str(i), {"v": i}) for i in range(size(bench, EPHEMERAL))], "&lease=" + holder)
    lock_all(t, holder, [{"index": "k%d" % (i % INDICES), "id": "lock%d" % i} for i in range(size(bench, 5000))])
    t.ask("DELETE", "/_session/%s?force=true" % holder)
    wait_while(lambda: t.ask("GET", "/k*/_count")["count"] > 0)


def many_indices(bench, t):
    """DELETE of 200 indices with 50 ephemeral documents each by a pattern"""
    holder = session(t)
    index_all(t, [("k%d" % (i % INDICES), str(i), {"v": i}) for i in range(size(bench, EPHEMERAL))], "&lease=" + holder)
    t.ask("DELETE", "/k*")
    t.ask("DELETE", "/_session/%s?force=true" % holder)


def settings_of_all(bench, t):
    """PUT /_all/_settings with 9,500 indices, and a DELETE of these by a pattern"""
    index_all(t, [("many-%d" % i, "1", {"v": i}) for i in range(size(bench, MANY_INDICES))])
    t.ask("PUT", "/_all/_settings", {"index": {"refresh_interval": "5s"}})
    t.ask("DELETE", "/many-*")


def pairs(bench, t):
    """20,000 pairs of an index and an update that moves it, and in one atomic request"""
    lines = []
    for i in range(size(bench, PAIRS)):
        lines += [{"index": {"_index": "pairs", "_id": str(i)}}, {"path": "/a/%d" % i}, {"update": {"_index": "pairs", "_id": str(i)}}, {"doc": {"path": "/b/%d" % i}}]
    for query in ("", "&atomic=true"):
        fresh(t, "pairs", **TREE)
        if t.ask("POST", "/_bulk?filter_path=errors" + query, bulk(lines))["errors"]:
            raise RuntimeError("a pair failed")


def index_of_ephemeral(bench, t):
    """DELETE of an index with 50,000 ephemeral documents"""
    holders = [session(t) for _ in range(5)]
    fresh(t, "ephemeral")
    for number, holder in enumerate(holders):
        index_all(t, [("ephemeral", "%d-%d" % (number, i), {"v": i}) for i in range(size(bench, EPHEMERAL))], "&lease=" + holder)
    t.ask("DELETE", "/ephemeral")
    for holder in holders:
        t.request("DELETE", "/_session/%s?force=true" % holder)


def rename_beside_locks(bench, t):
    """renames next to 32,000 locked documents"""
    fresh(t, "tree", **TREE)
    index_all(t, [("tree", str(i), {"path": "/locked/%d/%d" % (i // 100, i)}) for i in range(size(bench, LOCKED))])
    index_all(t, [("tree", "moved%d" % i, {"path": "/here/%d" % i}) for i in range(10)])
    holder = session(t)
    lock_all(t, holder, [{"index": "tree", "id": str(i)} for i in range(size(bench, LOCKED))])
    names = ["/here", "/there"]

    def rename():
        t.ask("POST", "/tree/_rename", {"from": names[0], "to": names[1]})
        names.reverse()
    again(bench, rename)
    t.ask("DELETE", "/_session/%s?force=true" % holder)


def lock_on_directory(bench, t):
    """LOCK with no wait on a directory with 100,000 holds, which end at once"""
    fresh(t, "held", **TREE)
    holders = [session(t) for _ in range(100)]
    for number, holder in enumerate(holders):
        lock_all(t, holder, [{"index": "held", "path": "/d/%d" % i} for i in range(number, size(bench, HELD), len(holders))])
    other = session(t)

    def ask():
        status, reply = t.request("POST", "/_lock", json.dumps({"session": other, "wait": "0s", "locks": [{"mode": "exclusive", "index": "held", "path": "/d"}]}))
        if status != 409:
            raise RuntimeError(reply[:300])
    again(bench, ask)
    for holder in [*holders, other]:
        t.request("DELETE", "/_session/%s?force=true" % holder)


def session_of_locks(bench, t):
    """one session ends with 100,000 locks"""
    fresh(t, "held", **TREE)
    holder = session(t)
    lock_all(t, holder, [{"index": "held", "path": "/d/%d" % i} for i in range(size(bench, HELD))])
    t.ask("DELETE", "/_session/%s?force=true" % holder)
    wait_while(lambda: t.ask("GET", "/_session")["sessions"])


def commit_of_many(bench, t):
    """commit of 100,000 changes"""
    t.ask("PUT", "/changed", {"mappings": {"properties": {"n": {"type": "long"}}}})
    owner = t.ask("POST", "/_transaction")["transaction"]
    index_all(t, [("changed", str(i), {"n": i}) for i in range(size(bench, CHANGES))], "&transaction=" + owner)
    t.ask("POST", "/_transaction/%s/_commit" % owner)


def atomic_by_query(bench, t):
    """an atomic _update_by_query of 60,000 documents"""
    fresh(t, "queried", mappings={"properties": {"n": {"type": "long"}}})
    count = size(bench, BY_QUERY)
    index_all(t, [("queried", str(i), {"n": i}) for i in range(count)])
    reply = t.ask("POST", "/queried/_update_by_query?atomic=true", {"script": {"source": "ctx._source.n += 1"}})
    if reply["updated"] != count:
        raise RuntimeError("a call by query: %s" % reply)


def lock_of_many(bench, t):
    """LOCKs of 25,000 documents, and of 3,000 directories of ten levels"""
    fresh(t, "tree", **TREE)
    holder = session(t)
    documents = [{"mode": "exclusive", "index": "many", "id": str(i)} for i in range(size(bench, LOCKS_AT_ONCE))]
    levels = [{"mode": "exclusive", "index": "tree", "path": "/a/b/c/d/e/f/g/h/%d/%d" % (i, i)} for i in range(size(bench, 3000))]

    def ask():
        for locks in documents, levels:
            t.ask("POST", "/_lock", {"session": holder, "locks": locks})
        t.ask("POST", "/_unlock", {"session": holder})
    again(bench, ask)
    t.ask("DELETE", "/_session/%s?force=true" % holder)


def writes_that_wait(bench, t):
    """10,000 writes wait for one session, which ends"""
    holder = session(t)
    lock_all(t, holder, [{"index": "waited"}])
    with concurrent(t, [("PUT", "/waited/_doc/%d?timeout=60s" % i, {"n": i}) for i in range(size(bench, WAITING))]) as lines:
        wait_while(lambda: waiting(t) < len(lines))
        t.ask("DELETE", "/_session/%s?force=true" % holder)
        for line in lines:
            if not line.recv(65536).startswith(b"HTTP/1.1 20"):
                raise RuntimeError("a write that waited has failed")


def own_requests_wait(bench, t):
    """a session ends of which %d requests wait"""
    holder, ended = session(t), session(t)
    lock_all(t, holder, [{"index": "waited"}])
    asked = ("POST", "/_lock", {"session": ended, "wait": "1h", "locks": [{"mode": "exclusive", "index": "waited"}]})
    with concurrent(t, [asked] * own_waiting(bench)) as lines:
        wait_while(lambda: waiting(t) < len(lines))
        t.ask("DELETE", "/_session/%s?force=true" % ended)
        for line in lines:
            if not line.recv(65536).startswith(b"HTTP/1.1 404"):
                raise RuntimeError("a request of a session that has ended was not refused")
    t.ask("DELETE", "/_session/%s?force=true" % holder)


def escaped_paths(bench, t):
    """locks of 700 paths of 4,000 levels, whose slashes are escaped"""
    fresh(t, "tree", **TREE)
    holder = session(t)
    paths = ["/%d" % i + "/a" * LEVELS for i in range(size(bench, DEEP))]
    body = json.dumps({"session": holder, "locks": [{"mode": "exclusive", "index": "tree", "path": path} for path in paths]})
    taken(t, "POST", "/_lock", body.replace("/", "\\u002f"))
    taken(t, "POST", "/tree/_bulk", "".join('{"index":{}}\n{"path":"%s/f"}\n' % path for path in paths).replace("/", "\\u002f"))
    t.ask("DELETE", "/_session/%s?force=true" % holder)


def explanations(bench, t):
    """a bulk of 5,000 deletes that fail in a locked directory with a name of 12,000 bytes"""
    fresh(t, "tree", **TREE)
    keys = [str(i) for i in range(size(bench, 5000))]
    index_all(t, [("tree", key, {"path": "/d/" + key}) for key in keys])
    t.ask("POST", "/tree/_rename", {"from": "/d", "to": "/" + NAME})
    holder = session(t)
    lock_all(t, holder, [{"index": "tree", "path": "/" + NAME}])
    taken(t, "POST", "/_bulk?timeout=0s", bulk([{"delete": {"_index": "tree", "_id": key}} for key in keys]))
    t.ask("DELETE", "/_session/%s?force=true" % holder)


def refused_reads(bench, t):
    """300 times five calls of a session that does not exist"""
    index_all(t, [("some", str(i), {"n": i}) for i in range(20)])
    terms = {"query": {"terms": {"n": list(range(20000))}}}
    for _ in range(size(bench, REFUSED)):
        for path, body in (("/some/_update_by_query?", {}), ("/some/_delete_by_query?", {"query": {"match_all": {}}}), ("/some/_search?scroll=1m&", terms),
                           ("/some/_pit?keep_alive=1m&", None), ("/_reindex?", {"source": {"index": "some"}, "dest": {"index": "other"}})):
            taken(t, "POST", path + "session=gone", body, 404)


def deadlocks(bench, t):
    """130 deadlocks of paths with 12,000 bytes, of which 100 are kept"""
    fresh(t, "tree", **TREE)
    for number in range(size(bench, CYCLES)):
        one, other = session(t), session(t)
        paths = ["/%d%s" % (number, NAME), "/%d%sb" % (number, NAME)]
        asked = [{"session": owner, "wait": "1h", "locks": [{"mode": "exclusive", "index": "tree", "path": path}]}
                 for owner, path in ((one, paths[0]), (other, paths[1]), (one, paths[1]), (other, paths[0]))]
        for body in asked[:2]:
            t.ask("POST", "/_lock", body)
        with concurrent(t, [("POST", "/_lock", asked[2])]):
            wait_while(lambda: waiting(t) < 1)
            taken(t, "POST", "/_lock", json.dumps(asked[3]), 409)
            for owner in (other, one):
                t.request("DELETE", "/_session/%s?force=true" % owner)


def growing_paths(bench, t):
    """300 renames into longer and longer names, and reads of a document below"""
    fresh(t, "tree", **TREE)
    t.ask("PUT", "/tree/_doc/1", {"path": "/0/f"})
    name = "/0"
    for number in range(1, size(bench, RENAMES)):
        other = "/%d%s%s" % (number, NAME[:5000], name)
        status, reply = t.request("POST", "/tree/_rename", json.dumps({"from": name, "to": other}))
        if status == 200:
            name = other
        elif status != 400:
            raise RuntimeError("a rename: %d %s" % (status, reply[:300]))
        t.ask("GET", "/tree/_doc/1")
        t.ask("POST", "/tree/_search", {"query": {"prefix": {"path": name}}})


def phrase(bench, t):
    """a phrase of 8,000 words on 30 documents of as many"""
    words = " ".join("w%d" % (i % 97) for i in range(size(bench, WORDS)))
    fresh(t, "text")
    index_all(t, [("text", str(i), {"t": words}) for i in range(30)])
    again(bench, lambda: t.request("POST", "/text/_search?timeout=500ms", json.dumps({"query": {"match_phrase": {"t": words}}})))


OF_MEMORY = (escaped_paths, explanations, refused_reads, deadlocks, growing_paths)  # with a small --memory
ATTACKS = (bulk_of_scripts, session_of_scripts, deadlock_search, leases_end_together, session_of_indices, many_indices, settings_of_all, pairs, index_of_ephemeral,
           rename_beside_locks, lock_on_directory, lock_of_many, session_of_locks, commit_of_many, atomic_by_query, writes_that_wait, phrase, *OF_MEMORY)


# --- Standard error that is not read ------------------------------------------------------------------------------------------


class Unread(Tidelock):
    """A server that logs each request into a small pipe that nothing reads."""

    def __init__(self, bench):
        self.pipe, self.log = os.pipe()
        fcntl.fcntl(self.log, fcntl.F_SETPIPE_SZ, 4096)
        Tidelock.__init__(self, bench, "--log-level", "debug")

    def open_log(self):
        return os.fdopen(os.dup(self.log), "wb")

    def close(self):
        Tidelock.close(self)
        os.close(self.log)
        os.close(self.pipe)


def many_lines(bench, t):
    """standard error is a full pipe"""
    again(bench, lambda: t.request("GET", "/others/_search?filter_path=" + "x" * 100))


# --- The rows -----------------------------------------------------------------------------------------------------------------


class Roomy(Tidelock):
    """A server that accepts as many connections as there may be open files."""

    def __init__(self, bench):
        Tidelock.__init__(self, bench, "--max-connections", str(OWN_WAITING + SPARE_FILES))


class Small(Tidelock):
    """A server with a small memory budget."""

    def __init__(self, bench):
        Tidelock.__init__(self, bench, "--memory", "256m", "--cache", "8m", "--write-buffer", "16m")


class Measured:
    """The measurements during one attack, the worst of all runs."""

    def __init__(self):
        self.longest = 0     # milliseconds of the longest put
        self.step = (0, "")  # work units of the longest step, and its command
        self.over = 0        # steps above the bound
        self.undivided = 0   # those of them without an exception, such as a commit
        self.memory = 0      # resident bytes at the peak
        self.budget = 0      # --memory, in bytes

    def measure(self, bench, t, attack):
        with bench.alone():
            self.longest = max(self.longest, longest_put(t, lambda: attack(bench, t)))
        page = t.request("GET", "/_metrics")[1].decode()
        steps = re.findall(r'^tidelock_step_work_max\{command="(\w+)"\} (\d+)', page, re.M)
        self.step = max([self.step, *((int(work), command) for command, work in steps)])
        self.over = max(self.over, int(t.metric("tidelock_steps_over_bound_total")))
        self.undivided = max(self.undivided, int(t.metric("tidelock_steps_undivided_total")))
        with open("/proc/%d/status" % t.pid(), encoding="ascii") as status:
            peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) * 1024
        node = next(iter(t.ask("GET", "/_nodes/stats/breaker")["nodes"].values()))
        self.budget = node["breakers"]["parent"]["limit_size_in_bytes"]
        self.memory = max(self.memory, peak)

    def note(self):
        return "longest step %d %% (%s), %d above the bound, of which %d are no exceptions; memory %d MB, --memory %d MB" % (
            100 * self.step[0] / STEP_WORK, self.step[1], self.over, self.undivided, self.memory >> 20, self.budget >> 20)


def own_waiting(bench):
    """Returns: how many requests of one session wait: each has a connection, as the limit of open files permits."""
    return min(size(bench, OWN_WAITING), resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES)


def all_attacks(bench, t):
    """Sends all of them, one after another, at least once and for as long as a run takes."""
    def once():
        for attack in ATTACKS:
            attack(bench, t)
    again(bench, once)


def open_files():
    """Permits this process, and the servers that it starts, as many open files as it may."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))


def idle(bench, _):
    """nothing"""
    time.sleep(bench.seconds)


def server_of(attack):
    """Returns: the kind of server on which an attack is measured."""
    return {own_requests_wait: Roomy, many_lines: Unread}.get(attack, Small if attack in OF_MEMORY else Tidelock)


def run(bench):
    """Runs each attack; its preparation and its end are included in the time."""
    open_files()
    worst = 0
    for attack in (idle, *ATTACKS, own_requests_wait, many_lines):
        results = Measured()
        for _ in range(bench.runs):
            with bench.servers(server_of(attack)) as (t,):
                t.ask("PUT", "/others", {})
                results.measure(bench, t, attack)
        name = attack.__doc__ % own_waiting(bench) if attack is own_requests_wait else attack.__doc__
        bench.limit(name, results.longest, "ms", BOUND_MS, HOPED_MS, results.note())
        if attack in OF_MEMORY:
            bench.limit("its resident memory", results.memory >> 20, "MB", (results.budget >> 20) + BESIDES_MB, None)
        worst = max(worst, results.longest)
    bench.limit("the longest of all", worst, "ms", BOUND_MS, HOPED_MS)

    together, over = [], []
    for _ in range(bench.runs):
        with bench.servers(Unread) as (t,), bench.alone():
            t.ask("PUT", "/others", {})
            together.append(puts(t, lambda: all_attacks(bench, t), PUTTING))
            over.append(t.metric("tidelock_steps_over_bound_total"))
    during = "%d clients put during all attacks: " % PUTTING
    bench.limit(during + "p99", max(times[len(times) * 99 // 100] for times in together), "ms", BOUND_MS, HOPED_MS)
    bench.limit(during + "longest", max(times[-1] for times in together), "ms", BOUND_MS, HOPED_MS)
    bench.row("steps over the limit meanwhile, per run", max(over), "", [])
