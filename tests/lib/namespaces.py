# SPDX-License-Identifier: Apache-2.0
"""A cluster in network namespaces: hosts and etcd members, each with an address and a disk of its own, joined by one bridge that the test can cut.

The test's process moves to a network and a mount namespace of its own, in which the bridge and the disks are. Each node has a further
network namespace, which exists while a process is in it. So nothing of this is seen by the rest of the machine, no packet leaves it, and all
of it is gone when the processes are, however they end.

    namespaces.enter()                          raises unittest.SkipTest where that is not permitted
    with namespaces.Cluster(hosts=3, members=3) as cluster:
        cluster.hosts[0].unplug()
        fleet = ClusterFleet(cluster)           its clients ask a random host at each step

Faults of a node: kill(), pause(), unplug(), deafen(), slow(), fill(), slow_syncs(), fail_syncs(), and for hosts clock, and in a cluster with relays
delay(); heal() ends all of them and starts programs that have ended.
"""
import contextlib
import ctypes
import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import process_guard  # noqa: F401
from clock import Clock
from fleet import Away, Client, Fleet
from server import PROGRAM, REPORTS, Server
from small_disk import SmallDisk
from syncs import Syncs
from waiting import until

CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 0x4000, 0x40000
NET = "10.99.0."
HOST_BASE, MEMBER_BASE, BRIDGE = 10, 20, 254
NO_ADDRESS = "02:00:00:00:00:99"  # of no interface
CLIENT_TIMEOUT = 5  # seconds; a request over a link that is cut gets no answer at all
HOST_DISK, MEMBER_DISK = 400 << 20, 224 << 20  # a host keeps 256 MiB free
RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "delay_relay.py")
RELAY_PORT = 12379
ENDED_ITSELF = 70   # the disk failed, or the log was trimmed beyond the host's place (docs/operating.md)
ENDS_SECONDS = 20   # for the end after a sync that failed; some were not needed


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def enter():
    """Moves this process to new network and mount namespaces, with a bridge. Requires: no other threads."""
    for program in ("ip", "tc", "nsenter", "unshare", "etcd"):
        if shutil.which(program) is None:
            raise unittest.SkipTest("there is no " + program)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise unittest.SkipTest("no namespaces can be made here: " + os.strerror(ctypes.get_errno()))
    libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    try:
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "address", "add", NET + "%d/24" % BRIDGE, "dev", "bridge")
        run("ip", "link", "set", "bridge", "up")
    except subprocess.CalledProcessError as error:
        raise unittest.SkipTest("no bridge can be made here: " + error.stderr.decode(errors="replace").strip()) from error


class Node:
    """A network namespace at the bridge, a disk, and the program that runs there as self.process."""

    def __init__(self, name, number, disk):
        self.name, self.number = name, number
        self.ip = NET + "%d" % number
        self.link = "to-" + name
        self.disk = SmallDisk(disk, ballast=0)
        self.disk.__enter__()
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        mine = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink("/proc/%d/ns/net" % self.holder.pid) != mine, "the namespace of " + name)
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", "%d" % self.holder.pid)
        run("ip", "link", "set", self.link, "master", "bridge", "up")
        run(*self.inside("ip", "link", "set", "lo", "up"))
        run(*self.inside("ip", "address", "add", self.ip + "/24", "dev", "eth0"))
        run(*self.inside("ip", "link", "set", "eth0", "up"))
        self.cures = []           # what ends each fault that it has now
        self.may_end = False      # by itself, for a fault that it has now
        self.syncs = Syncs()

    def inside(self, *command):
        """Returns: the command that runs this one in the node's network."""
        return ["nsenter", "--net=/proc/%d/ns/net" % self.holder.pid, *command]

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.cures.append(lambda: self.process.send_signal(signal.SIGCONT))

    def unplug(self):
        """Nothing gets to it, or from it."""
        run("ip", "link", "set", self.link, "down")
        self.cures.append(lambda: run("ip", "link", "set", self.link, "up"))

    def deafen(self, other):
        """What this node sends to the other one is lost; what that one sends arrives."""
        run(*self.inside("ip", "neighbour", "replace", other.ip, "lladdr", NO_ADDRESS, "nud", "permanent", "dev", "eth0"))
        self.cures.append(lambda: run(*self.inside("ip", "neighbour", "delete", other.ip, "dev", "eth0")))

    def slow(self, kilobits):
        """So much a second gets to it; more waits in a queue, and beyond that is lost."""
        run("tc", "qdisc", "add", "dev", self.link, "root", "tbf", "rate", "%dkbit" % kilobits, "burst", "3000", "latency", "300ms")
        self.cures.append(lambda: run("tc", "qdisc", "del", "dev", self.link, "root"))

    def fill(self, leave=0):
        """Takes all space on its disk, but for so many bytes."""
        self.may_end = True
        self.disk.fill(leave)
        self.cures.append(lambda: os.unlink(os.path.join(self.disk.folder, "filler")))

    def slow_syncs(self, seconds):
        """Each fsync() takes so long, after the one before it."""
        self.syncs.set(delay=seconds)
        self.cures.append(self.syncs.set)

    def fail_syncs(self):
        """fsync() fails from now on; it ends for that."""
        self.may_end = True
        self.syncs.set(fail=True)
        self.cures.append(self.syncs.set)

    def cure(self):
        while self.cures:
            self.cures.pop()()

    def cured(self):
        """Ends its faults. Returns: the program's exit status; None: it runs. One of whose syncs one has failed ends for that, if it was needed."""
        self.cure()
        if self.syncs.failed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(ENDS_SECONDS)
        return self.process.poll()

    def close_node(self):
        # The kernel removes the links of a namespace some time after its last process has ended; the next node may have this name.
        run("ip", "link", "delete", self.link)
        self.holder.kill()
        self.holder.wait()
        self.disk.__exit__()


class Member(Node):
    """An etcd member."""

    def __init__(self, index, count):
        super().__init__("m%d" % index, MEMBER_BASE + index, MEMBER_DISK)
        self.url = "http://%s:2379" % self.ip
        self.peers = ",".join("m%d=http://%s%d:2380" % (i, NET, MEMBER_BASE + i) for i in range(count))
        self.process = None

    def start(self):
        peer = "http://%s:2380" % self.ip
        with open(self.disk.folder + ".log", "ab") as log:
            self.process = self.syncs.start(
                self.inside, "etcd", "--name", self.name, "--data-dir", os.path.join(self.disk.folder, "data"), "--listen-client-urls", self.url,
                "--advertise-client-urls", self.url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", self.peers, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def serves(self):
        """Returns: whether it has a leader."""
        connection = http.client.HTTPConnection(self.ip, 2379, timeout=CLIENT_TIMEOUT)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def heal(self):
        status = self.cured()
        if status is not None:
            assert self.may_end or status == -signal.SIGKILL, "etcd %s ended with status %d: %s" % (self.name, status, self.last_errors())
            print("  %s had ended with status %d" % (self.name, status), flush=True)
            self.start()
        self.may_end = False

    def last_errors(self):
        with open(self.disk.folder + ".log", encoding="utf-8", errors="replace") as log:
            return log.read()[-4000:]

    def close(self):
        self.kill()
        self.close_node()
        os.unlink(self.disk.folder + ".log")


class Host(Node, Server):
    """A host of the cluster; as a Server it is asked over the bridge."""

    def __init__(self, index, members, options, relays):
        Node.__init__(self, "h%d" % index, HOST_BASE + index, HOST_DISK)
        self.relay = self.start_relay(index, members) if relays else None
        urls = ["http://127.0.0.1:%d" % (RELAY_PORT + i) for i in range(len(members))] if relays else [member.url for member in members]
        self.folder = tempfile.mkdtemp(prefix="tidelock-host-")
        os.mkdir(os.path.join(self.disk.folder, "data"), 0o700)
        os.symlink(os.path.join(self.disk.folder, "data"), os.path.join(self.folder, "data"))  # its log stays off a full disk
        self.clock = Clock()
        Server.__init__(self, "--cluster", ",".join(urls) + "/tidelock", "--node-name", self.name, *options,
                        data=os.path.join(self.folder, "data"), environment=self.clock.environment(), replay=False)
        self.port = 9200
        self.url = "http://%s:9200" % self.ip

    def start(self):
        """Starts it and waits until it answers."""
        self.process = self.syncs.start(
            self.inside, PROGRAM, "serve", "--data", self.data, "--listen", self.ip + ":9200", "--insecure", *self.options,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=self.environment, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("ready on "), "host %s did not start (status %d): %s" % (self.name, self.process.wait(), self.last_errors())
        return self

    def start_relay(self, index, members):
        """Between this host and etcd, in the host's network."""
        relay = subprocess.Popen(self.inside(sys.executable, RELAY, "%d" % index, *["%d=%s:2379" % (RELAY_PORT + i, member.ip) for i, member in enumerate(members)]),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert relay.stdout.readline() == "ready\n", "the relay did not start"
        return relay

    def delay(self, seconds):
        """Each message to and from etcd takes up to so long. Requires: the cluster has relays."""
        self.set_delay(seconds)
        self.cures.append(lambda: self.set_delay(0))

    def set_delay(self, seconds):
        self.relay.stdin.write("%s\n" % seconds)
        self.relay.stdin.flush()

    def close_node(self):
        if self.relay is not None:
            self.relay.kill()
            self.relay.wait()
            self.relay.stdin.close()
            self.relay.stdout.close()
        Node.close_node(self)

    def connect(self):
        return http.client.HTTPConnection(self.ip, 9200, timeout=CLIENT_TIMEOUT)

    def kill(self):
        if self.process.poll() is None:
            Server.kill(self)

    def heal(self):
        status = self.cured()
        if status is not None:
            assert status == -signal.SIGKILL or self.may_end and status == ENDED_ITSELF, \
                "host %s ended with status %d: %s" % (self.name, status, self.last_errors())
            print("  %s had ended with status %d" % (self.name, status), flush=True)
            self.hang_up()
            self.start()
        self.may_end = False

    def close(self):
        self.cure()
        try:
            Server.close(self)
            assert not any(report in self.errors() for report in REPORTS), self.last_errors()
        finally:
            self.clock.close()
            shutil.rmtree(self.folder)
            self.close_node()


class Cluster:
    """Requires: enter(). `relays`: a relay is between each host and etcd."""

    def __init__(self, *options, hosts=3, members=3, relays=False):
        self.hosts, self.members = [], []
        self.members = [Member(i, members) for i in range(members)]
        self.hosts = [Host(i, self.members, options, relays) for i in range(hosts)]
        self.port = [host.ip for host in self.hosts]  # for Fleet, which hands it to its clients

    def __enter__(self):
        for member in self.members:
            member.start()
        until(lambda: all(member.serves() for member in self.members), "etcd serves")
        for host in self.hosts:
            host.start()
        self.await_live()
        return self

    def __exit__(self, kind, *_):
        for node in self.hosts if kind is None else []:
            node.close()
        for node in self.members if kind is None else self.hosts + self.members:
            node.cure()
            if kind is not None:
                node.process.kill()
                node.process.wait()
                node.close_node()
            else:
                node.close()

    def heal(self):
        """Ends all faults and starts programs that have ended: members first, since hosts need them."""
        for member in self.members:
            member.heal()
        until(lambda: all(member.serves() for member in self.members), "etcd serves")
        for host in self.hosts:
            host.heal()

    def listed(self, host):
        """Returns: the hosts as this one sees them, by name; none when it does not answer."""
        try:
            status, reply = host.ask("GET", "/_cluster/hosts")
        except (OSError, http.client.HTTPException):
            return {}
        return {one["name"]: one for one in reply["hosts"]} if status == 200 and reply["serves"] else {}

    def await_live(self):
        def all_live():
            for host in self.hosts:
                assert host.process.poll() is None, "host %s ended with status %d: %s" % (host.name, host.process.poll(), host.last_errors())
            return all(sum(one["live"] for one in self.listed(host).values()) == len(self.hosts) for host in self.hosts)
        until(all_live, "all hosts are live")

    def check_chains(self):
        """
        Waits until each host has applied all that any had applied before, and has compared chains: a heartbeat of each host that was sent
        after that has been applied by every other one, which ends with status 71 if its own chain differs there.
        """
        head = max(one["applied_position"] for host in self.hosts for one in self.listed(host).values())
        chains = {}

        def compared():
            self.await_live()
            for host in self.hosts:
                for one in self.listed(host).values():
                    known = chains.setdefault(one["applied_position"], one["chain"])
                    assert known == one["chain"], "chains differ at position %d" % one["applied_position"]
            return all(one["applied_position"] > head for host in self.hosts for one in self.listed(host).values())
        until(compared, "heartbeats beyond position %d" % head)


class ClusterClient(Client):
    """
    A client that asks a random host at each step.

    after             it sends Tidelock-After, and checks that reads are not answered as of an older timestamp
    needs_session     the end of its session is to it the same as a broken connection
    """
    after = False
    needs_session = False

    def __init__(self, addresses, number, life, seed, path):
        super().__init__(None, number, life, seed, path)
        self.addresses = addresses
        self.connections = {}
        self.newest = 0
        self.homes = {}  # of query transactions, which are one host's: the host's address
        self.lines = []  # attach streams; a broken one is detected at the next step

    def check_lines(self):
        self.lines = [line for line in self.lines if line.fileno() >= 0]
        for line in select.select(self.lines, [], [], 0)[0]:
            try:
                cut = line.recv(65536) == b""
            except OSError:
                cut = True
            if cut:
                self.lines.remove(line)
                raise Away("an attach stream was closed")

    def home_of(self, path):
        named = [address for transaction, address in self.homes.items() if transaction in path]
        return named[0] if named else None

    def ask(self, method, path, body=None):
        self.check_lines()
        home = self.home_of(path)
        address = home or self.random.choice(self.addresses)
        connection = self.connections.get(address)
        if connection is None:
            connection = self.connections[address] = http.client.HTTPConnection(address, 9200, timeout=CLIENT_TIMEOUT)
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self.after and self.newest > 0:
            headers["Tidelock-After"] = str(self.newest)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            del self.connections[address]
            raise Away(str(error)) from error
        if response.status in (503, 504, 507):
            raise Away(data.decode("utf-8", "replace"))
        reply = json.loads(data)
        if response.status < 300:
            self.look_at_timestamp(method, path, response, home)
            if path == "/_transaction" and method == "POST" and isinstance(body, str) and '"query"' in body:
                self.homes[reply["transaction"]] = address
        elif self.needs_session and isinstance(reply.get("error"), dict) and reply["error"]["type"] == "session_missing_exception":
            raise Away("the session has ended")
        elif path == "/_search/scroll" and response.status == 404:
            raise Away("the scroll has ended with its host, or while no host could be reached")
        if home is not None and path.endswith(("/_commit", "/_rollback")):
            self.homes = {}
        return response.status, reply

    def look_at_timestamp(self, method, path, response, home):
        timestamp = int(response.getheader("Tidelock-Timestamp") or 0)
        past = home is not None or "transaction=" in path or "timestamp=" in path or "scroll" in path
        if self.after and method == "GET" and path.startswith("/") and "/_doc/" in path and not past:
            assert timestamp >= self.newest, "%s was answered as of %d, after %d" % (path, timestamp, self.newest)
        if not past:
            self.newest = max(self.newest, timestamp)

    def attach(self, session):
        line, answer = self.open_attach_stream(self.random.choice(self.addresses), 9200, session, CLIENT_TIMEOUT)
        if answer.startswith(b"HTTP/1.1 200"):
            self.lines.append(line)
            return line
        line.close()
        if answer.startswith(b"HTTP/1.1 503") or self.needs_session:
            raise Away(answer.decode("utf-8", "replace"))
        return None


class ClusterFleet(Fleet):
    client = ClusterClient
