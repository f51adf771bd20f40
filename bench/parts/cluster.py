# SPDX-License-Identifier: Apache-2.0
"""A cluster: one host on one etcd member, three on three; compared with a single host and with etcd's own benchmark"""
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import threading
import time

from loads import MAPPING, bulk_load
from measure import cpu_seconds, load, load_command, rate_of
from peers import Http, Tidelock, free_port, stop, wait_port
from parts.transactions_large import fresh, timed

CHANGES_MAX = 100000  # in one transaction
BATCH = 2000
APPEND_BYTES = 16384
SETTLED = 120  # seconds to wait for what must come about: hosts live, documents there


def until(condition, what):
    end = time.time() + SETTLED
    while not condition():
        if time.time() > end:
            raise RuntimeError("not within %d s: %s" % (SETTLED, what))
        time.sleep(0.01)


class Members:
    """etcd members of one cluster of etcd, as they come."""

    def __init__(self, bench, count):
        self.bench = bench
        self.directory = os.path.join(bench.work, "members-%d" % time.time_ns())
        os.makedirs(self.directory)
        self.ports = [free_port() for _ in range(2 * count)]
        clients, peers = (["http://127.0.0.1:%d" % port for port in ports] for ports in (self.ports[:count], self.ports[count:]))
        all_peers = ",".join("m%d=%s" % one for one in enumerate(peers))
        self.processes = [subprocess.Popen(
            ["etcd", "--name", "m%d" % i, "--data-dir", os.path.join(self.directory, "m%d" % i), "--listen-client-urls", client,
             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", all_peers], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for i, (client, peer) in enumerate(zip(clients, peers))]
        self.urls = ",".join(clients)
        for port, process in zip(self.ports, self.processes):
            wait_port(port, process)
        until(self.has_leader, "etcd serves")

    def has_leader(self):
        with contextlib.suppress(OSError):
            return Http(self.bench, self.ports[0]).request("GET", "/health")[0] == 200
        return False

    def load(self, scenario, clients, *more):
        return load(self.bench, self.ports[0], scenario, clients, *more)

    def close(self):
        for process in self.processes:
            stop(process)
        shutil.rmtree(self.directory, ignore_errors=True)


class Cluster(Http):
    """Hosts on as many etcd members; asked at the first one, while load() shares clients out to all."""
    count = 0

    @staticmethod
    def available():
        return shutil.which("etcd")

    def __init__(self, bench):
        self.members = Members(bench, self.count)
        self.hosts = []
        for _ in range(self.count):
            self.add_host(bench)
        Http.__init__(self, bench, self.hosts[0].port)
        self.await_live()

    def add_host(self, bench):
        """Returns: a new host, when it says where it listens."""
        host = Tidelock(bench, "--cluster", self.members.urls + "/tidelock", "--node-name", "h%d" % len(self.hosts), port=free_port())
        self.hosts.append(host)
        return host

    def await_live(self):
        until(lambda: all(sum(one["live"] for one in host.ask("GET", "/_cluster/hosts")["hosts"]) == len(self.hosts) for host in self.hosts),
              "all hosts are live")

    def set(self, **settings):
        """Settings that begin with tidelock; None: the default."""
        self.ask("PUT", "/_cluster/settings", {"persistent": {"tidelock." + name: value for name, value in settings.items()}})

    def loads(self, scenario, clients, *more):
        """Returns: the results of each host's share of the clients."""
        shares = [clients // len(self.hosts) + (i < clients % len(self.hosts)) for i in range(len(self.hosts))]
        runs = [subprocess.Popen(load_command(self.bench, host.port, scenario, share, *more), stdout=subprocess.PIPE, text=True)
                for host, share in zip(self.hosts, shares)]
        results = [json.loads(run.communicate()[0]) for run in runs]
        errors = sum(one["errors"] for one in results)
        if errors:
            print("   ! %s: %d unexpected replies" % (scenario, errors))
        return results

    def load(self, scenario, clients, *more):
        return {"ops_per_s": sum(one["ops_per_s"] for one in self.loads(scenario, clients, *more))}

    def close(self):
        for host in self.hosts:
            host.close()
        self.members.close()


class One(Cluster):
    name = "etcd"
    count = 1


class Three(Cluster):
    name = "etcd"
    count = 3


# --- Rows ---------------------------------------------------------------------------------------------------------------------

def put_rates(bench, alone, one, three, n):
    bench.rates("put, 64 clients, cluster of one", rate_of(one, "put", 64, *n), [("one host alone", rate_of(alone, "put", 64, *n), 0.5, 0.75)])
    bench.rates("put, 64 clients, three hosts", rate_of(three, "put", 64, *n), [("one host alone", rate_of(alone, "put", 64, *n), 0.25, 0.35)])
    bench.rates("lock + unlock, distinct, 64 clients, three hosts", rate_of(three, "lock", 64),
                [("etcd's lock, same members", rate_of(three.members, "etcd-lock", 64), 5, 8)])


def follower_cost(bench, three, n):
    """What a put through another host costs a host in processor time."""
    three.set(distribute_timestamps="fast")
    before = cpu_seconds(three.hosts[1])
    begin = time.time()
    results = three.hosts[0].load("put", 64, *n)
    puts = results["ops_per_s"] * (time.time() - begin)  # its warm-up, too
    until(lambda: three.ask("GET", "/_cluster/health")["status"] != "red", "the log is reached")
    time.sleep(1)
    bench.limit("processor time of a host that follows, a put", (cpu_seconds(three.hosts[1]) - before) * 1e6 / puts, "us", 40, 25)
    three.set(distribute_timestamps=None)


def etcd_appends(bench):
    """bench/etcd_log on three members of its own: an append of 16 KiB, one at once."""
    program = os.path.join(bench.build, "bench", "etcd_log")
    if not os.access(program, os.X_OK):
        bench.missing.add("bench/etcd_log")
        return
    with bench.alone():
        lines = subprocess.run([program, "3", "%d" % bench.seconds], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in map(str.split, lines):
        if line[:2] == [str(APPEND_BYTES), "1"]:
            bench.limit("etcd's processor time, all members, an append of 16 KiB", float(line[3]) / 1000, "ms", 4, 2.5)
            bench.row("the append, p50", float(line[5]), "ms", [])


def one_client(bench, three, n):
    def p50(mode):
        three.set(distribute_timestamps=mode)
        return three.hosts[0].load("put", 1, *n)["p50_us"] / 1000
    medians = bench.median_each({mode: lambda mode=mode: p50(mode) for mode in ("fast", "strict")})
    three.set(distribute_timestamps=None)
    bench.limit("put, 1 client, fast, p50", medians["fast"], "ms", 3, 1.5)
    bench.limit("put, 1 client, strict beyond fast, p50", max(0.001, medians["strict"] - medians["fast"]), "ms", 1, 0.4)


def gets(bench, alone, three, n):
    def rate(mode):
        three.set(multi_version_concurrency_control=mode)
        return three.hosts[0].load("get", 64, *n)["ops_per_s"]
    bench.rates("get, nonblocking, 64 clients, one of three hosts", lambda: rate("nonblocking"), [("one host alone", rate_of(alone, "get", 64, *n), 0.95, None)])
    bench.rates("get, contemporaneous, 64 clients, one of three hosts", lambda: rate("contemporaneous"),
                [("one host alone", rate_of(alone, "get", 64, *n), 0.4, 0.7)])
    three.set(multi_version_concurrency_control=None)


def transact(t, changes):
    """One transaction of so many changes. Returns: changes a second."""
    fresh(t, "inside")

    def work():
        transaction = t.ask("POST", "/_transaction", {"timeout": "10m"})["transaction"]
        for begin in range(0, changes, BATCH):
            body = "".join('{"index":{"_id":"%d"}}\n{"note":"%s"}\n' % (i, "x" * 450) for i in range(begin, min(changes, begin + BATCH)))
            reply = t.ask("POST", "/inside/_bulk?filter_path=errors&transaction=" + transaction, body)
            if reply["errors"]:
                raise RuntimeError("a change failed")
        t.ask("POST", "/_transaction/%s/_commit" % transaction)
    return changes / timed(work)


def transactions(bench, alone, three, n):
    changes = min(CHANGES_MAX, bench.count)
    three.set(distribute_timestamps="fast")
    title = "transaction of {:,} changes".format(changes)
    bench.rates(title + ", three hosts", lambda: transact(three, changes), [("one host alone", lambda: transact(alone, changes), 0.2, 0.4)], "1/s")
    pauses = []
    for _ in range(bench.runs):
        with bench.alone():
            writer = threading.Thread(target=transact, args=(Http(bench, three.port), changes))
            longest = 0
            writer.start()
            while writer.is_alive():
                longest = max(longest, three.hosts[1].load("put", 4, "-w", 0, *n, seconds=1)["max_us"] / 1e6)
            pauses.append(longest)
    bench.limit(title + ", longest put of others", statistics.median(pauses), "s", 1, 0.5)
    three.set(distribute_timestamps=None)


def host_killed(bench, three, n):
    """The longest put at one host while another one is killed; then how soon that one answers again."""
    starts = []

    def longest(mode):
        three.set(distribute_timestamps=mode)
        timer = threading.Timer(1.5, three.hosts[2].kill)
        timer.start()
        wait = three.hosts[0].load("put", 4, "-w", 1, *n, seconds=max(7, bench.seconds))["max_us"] / 1000
        timer.join()

        def come_back():
            three.hosts[2].start()
            until(lambda: three.hosts[2].request("GET", "/fs/_count")[0] == 200, "the host that was killed answers")
        starts.append(timed(come_back))
        three.await_live()
        return wait
    medians = bench.median_each({mode: lambda mode=mode: longest(mode) for mode in ("fast", "strict")})
    three.set(distribute_timestamps=None)
    bench.limit("a host killed: longest put elsewhere, fast", medians["fast"], "ms", 50, 25)
    bench.limit("a host killed: longest put elsewhere, strict", medians["strict"] / 1000, "s", 3.5, None)
    bench.limit("start after kill -9, to its first answer", statistics.median(starts), "s", 5, 2)


def new_host(bench, three):
    def join():
        host = three.add_host(bench)
        until(lambda: host.request("GET", "/fs/_count")[0] == 200, "a new host answers")
        until(lambda: host.ask("GET", "/fs/_count")["count"] >= bench.count, "a new host has all documents")
    with bench.alone():
        bench.limit("a new host with {:,} documents".format(bench.count), timed(join), "s", 60, 20)


def run(bench):
    n = ("-n", bench.count)
    with bench.servers(Tidelock, One, Three) as (alone, one, three):
        if three is None:
            return
        for server in (alone, one, three):
            bulk_load(server, "fs", MAPPING, 4)
        bench.settle(alone, *one.hosts, *three.hosts)
        put_rates(bench, alone, one, three, n)
        follower_cost(bench, three, n)
        etcd_appends(bench)
        one_client(bench, three, n)
        gets(bench, alone, three, n)
        transactions(bench, alone, three, n)
        host_killed(bench, three, n)
        new_host(bench, three)
