#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A copy whose source has several hosts (`tidelock replicate --from URL,URL`): it continues with another host, and never reads a state older than one that it knows.

The two hosts of a cluster need etcd; a host that lags is a stand-in, which repeats an answer of before.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_test  # noqa: E402
import replicate_test  # noqa: E402
from replicate_standin_test import Target  # noqa: E402
from clock import ClockedServer  # noqa: E402
from proxy import Meddler  # noqa: E402
from server import Server  # noqa: E402
from waiting import stop_process, until  # noqa: E402


class Host:
    """Forwards requests to a port of this host; `answer(request)` returns a reply to send instead, as bytes, or None."""
    def __init__(self, port, answer=lambda request: None):
        self.target, self.answer, self.connections = port, answer, []

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()
        return self

    def __exit__(self, *_):
        for one in (self.listener, *self.connections):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        self.thread.join()

    def listen(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(near)
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        with socket.create_connection(("127.0.0.1", self.target)) as far:
            self.connections.append(far)
            threading.Thread(target=self.copy, args=(far, near), daemon=True).start()
            try:
                for request in self.requests(near):
                    answer = self.answer(request)
                    (far if answer is None else near).sendall(request if answer is None else answer)
                far.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def requests(self, near):
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = near.recv(1 << 16)
                if not more:
                    return
                data += more
            head, _, rest = data.partition(b"\r\n\r\n")
            length = int(header(head, "Content-Length") or 0)
            while len(rest) < length:
                rest += near.recv(1 << 16)
            yield head + b"\r\n\r\n" + rest[:length]
            data = rest[length:]

    def copy(self, far, near):
        try:
            for data in iter(lambda: far.recv(1 << 16), b""):
                near.sendall(data)
            near.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def header(request, name):
    for line in request.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n"):
        key, _, value = line.partition(": ")
        if key.lower() == name.lower():
            return value
    return None


def response(status, body, timestamp):
    text = json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nTidelock-Timestamp: %d\r\nContent-Length: %d\r\n\r\n%b" % (status, timestamp, len(text), text)


class Ended(replicate_test.Copy):
    """A program whose successor takes its process for one that has ended."""
    new_target = Target

    def lock(self, request, process, gone):
        """Returns: the source's answer to a lock request, in which the process of the holder is one that has ended."""
        connection = self.source.connect()
        reply = self.source.request("POST", "/_lock", request.partition(b"\r\n\r\n")[2].decode(), connection=connection)
        connection.close()
        return response(reply.status, json.loads(reply.body.replace(b"process %d " % process.pid, b"process %d " % gone.pid)), 0)

    def end_attached(self, request, process, gone):
        """As lock(); and the holder's session is ended although it is attached, as that of a machine that was just resumed and has not attached it yet."""
        method, path = request.split(b" ")[:2]
        if method != b"DELETE":
            return self.lock(request, process, gone) if path == b"/_lock" else None
        connection = self.source.connect()
        reply = self.source.request("DELETE", path.decode().replace("&if_detached=true", ""), connection=connection)
        connection.close()
        return response(reply.status, json.loads(reply.body), 0)

    def test_clock_is_set_while_both_may_send(self):
        """What changes within a lease is suspect: that is measured by the copy's clock, and not by the source's, which is set forward."""
        gone = subprocess.Popen(["true"])
        gone.wait()
        with ClockedServer(*self.SOURCE) as self.source, Host(self.source.port, lambda request: self.end_attached(request, process, gone)) as host:
            self.fill(3)
            process = self.follow()
            self.await_equal()
            until(self.has_place, "there is a place")
            command = self.command("--quiet", "--suspect-time", "1h")
            command[command.index("--from") + 1] = host.url
            successor = subprocess.Popen(command)
            self.addCleanup(successor.kill)
            until(lambda: process.poll() is not None, "the program before has ended")
            self.source.clock.step(3600)
            for i in range(8):
                self.source.must("PUT", "/fs/_doc/later-%d" % i, {"n": i})
                until(lambda: self.target.ask("GET", "/fs/_doc/later-%d" % i)[0] == 200, "it is copied")
            successor.send_signal(signal.SIGTERM)
            self.assertEqual(successor.wait(), 0)
            copy, = self.source.must("GET", "/_changes/_consumers")["consumers"]
            self.assertGreaterEqual(copy["suspects"], 8)

    def succeed(self, host):
        command = self.command("--once")
        command[command.index("--from") + 1] = host.url
        return subprocess.run(command, capture_output=True, text=True)

    def test_attached_session_is_not_ended(self):
        """Whatever the source says of it before: that decides whether a connection keeps it alive when it is to end it."""
        gone = subprocess.Popen(["true"])
        gone.wait()

        def answer(request):
            method, path = request.split(b" ")[:2]
            if method == b"GET" and path.startswith(b"/_session/"):
                return response(200, {"attached": False}, 0)
            return self.lock(request, process, gone) if path == b"/_lock" else None
        with Host(self.source.port, answer) as host:
            self.fill(20)
            process = self.follow()
            self.await_equal()
            until(self.has_place, "there is a place")
            successor = self.succeed(host)
            self.assertEqual(successor.returncode, 75, successor.stderr)
            self.source.must("PUT", "/fs/_doc/later", {"n": 1})
            self.await_equal()
            self.assertIsNone(process.poll())

    def test_both_send_for_a_while(self):
        """The session is ended while the program is certain of its lease. Its requests, executed after its successor's, change nothing: neither a document, nor the place."""
        gone = subprocess.Popen(["true"])
        gone.wait()
        places = []

        def judge(method, path, body):
            if method == "PUT" and path.startswith("/.tidelock-replicate/"):
                places.append((method, path, body, {"Content-Type": "application/json"}))
            return "late" if path.startswith("/_bulk") and b'"_id":"held"' in body else "pass"

        with Meddler(self.target.port, judge) as meddler, Host(self.source.port, lambda request: self.end_attached(request, process, gone)) as host:
            self.fill(20)
            process = self.follow(to=meddler.url)
            self.await_equal()
            until(self.has_place, "there is a place")
            self.source.must("PUT", "/fs/_doc/held", {"n": 1})
            until(lambda: meddler.late, "the document is under way")
            successor = self.succeed(host)
            self.assertEqual(successor.returncode, 0, successor.stderr)
            self.assertIn("the session of process %d, which has ended, held the lock, and is ended" % gone.pid, successor.stderr)
            self.assert_equal()
            self.assertEqual(self.ended(process), 76, self.messages(process))
            self.source.must("DELETE", "/fs/_doc/held")
            self.once()
            place = self.target.must("GET", "/.tidelock-replicate/_doc/default")
            self.assertTrue(place["_source"]["suspects"], "changes within a lease after that are suspects")
            meddler.let_go()
            self.assertEqual([meddler.forward(*put)[0] for put in places], [409] * len(places))
            self.assertEqual(self.target.must("GET", "/.tidelock-replicate/_doc/default"), place)
            self.assert_equal()


class Lagging(replicate_test.Copy):
    """A host that has not applied what another one has."""
    new_target = Target

    def command(self, *options, to=None):
        command = super().command(*options, to=to)
        command[command.index("--from") + 1] = self.hosts
        return command

    def test_refuses(self):
        """It says that it has not reached a timestamp that the copy has seen: another host is asked."""
        asked = []

        def lag(request):
            after = int(header(request, "Tidelock-After") or 0)
            if not request.startswith(b"POST /_mget"):
                return None
            asked.append(after)
            return response(504, {"error": {"type": "timestamp_not_reached_exception", "reason": "timestamp [%d] was not reached" % after}, "status": 504}, after - 1)
        with Host(self.source.port, lag) as host:
            self.hosts = host.url + "," + self.source.url
            self.source.must("PUT", "/fs/_doc/1", {"n": 1})
            self.once()
            written = self.source.must("PUT", "/fs/_doc/1", {"n": 2})
            self.assertIsNotNone(written)
            timestamp = self.source.must("GET", "/_timestamp")["timestamp"]
            messages = self.once()
        self.assertIn("continuing with the source's host " + self.source.url, messages)
        self.assertEqual(len(asked), 1)
        self.assertGreater(asked[0], timestamp, "the timestamp that it must have reached")
        self.assert_equal()

    def test_stale_answers_are_discarded(self):
        """It answers with an older state: the answer is discarded, and the place does not pass the change that it lacks."""
        self.source.must("PUT", "/fs/_doc/1", {"n": 1})
        old = self.source.request("POST", "/_mget?any_routing=true&commit_timestamp=true", {"docs": [{"_index": "fs", "_type": "_doc", "_id": "1"}]})
        stale = response(200, json.loads(old.body), int(old.getheader("Tidelock-Timestamp")))
        given = []

        def lag(request):
            if not request.startswith(b"POST /_mget") or len(given) == 3:
                return None
            given.append(request)
            return stale
        with Host(self.source.port, lag) as host:
            self.hosts = host.url
            self.once()
            self.source.must("PUT", "/fs/_doc/1", {"n": 2})
            messages = self.once()
        self.assertEqual(len(given), 3)
        self.assertIn("%s answers with an older state than was read before" % host.url, messages)
        self.assert_equal()

    def test_of_another_cluster(self):
        """A host of another cluster is never copied from, however long the others are away."""
        with Server() as other:
            other.must("PUT", "/fs/_doc/other", {"n": 1})
            self.hosts = self.source.url + "," + other.url
            self.source.must("PUT", "/fs/_doc/1", {"n": 1})
            process = self.follow()
            self.await_equal()
            self.source.kill()
            until(lambda: "%s is no host of the source" % other.url in self.messages(process) or process.poll() is not None, "it is asked once")
            self.source.start()
            self.source.must("PUT", "/fs/_doc/2", {"n": 1})
            self.await_equal()

    def test_odd_answer_once(self):
        """A host that answers once without saying which cluster it is of, as a proxy or a server that has not joined a cluster yet, is asked again."""
        for page in (b"<html>maintenance</html>", b'{"cluster_uuid":"_na_"}', b'{"cluster_uuid":""}', b"[]"):
            odd, away = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page)], threading.Event()
            with self.subTest(page), Host(self.source.port, lambda request: odd.pop() if odd and request.startswith(b"GET / ") else None) as host, \
                    Host(self.source.port, lambda request: response(503, {}, 0) if away.is_set() else None) as first:
                self.hosts = first.url + "," + host.url
                process = self.follow()
                self.source.must("PUT", "/fs/_doc/1", {"page": page.decode()})
                self.await_equal()
                away.set()
                self.source.must("PUT", "/fs/_doc/2", {"page": page.decode()})
                self.await_equal()
                self.assertIn("%s does not show which cluster it is of" % host.url, self.messages(process))
                self.assertNotIn("is not asked again", self.messages(process))
                process.send_signal(signal.SIGTERM)
                self.assertEqual(self.ended(process), 0, self.messages(process))

    def test_odd_answer_at_the_start(self):
        """The first host shows a proxy's page: the next one is the source."""
        page = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        with Host(self.source.port, lambda request: page) as host:
            self.hosts = host.url + "," + self.source.url
            self.source.must("PUT", "/fs/_doc/1", {"n": 1})
            self.once()
        self.assert_equal()

    def test_stopped_beside_a_target_that_hangs(self):
        """A program that was asked to stop long ago still closes its session, also where the source does not see its connections end: another one may run at once."""
        class Keeping(Host):
            """Does not show the source the end of a connection."""
            def serve(self, near):
                far = socket.create_connection(("127.0.0.1", self.target))
                self.connections.append(far)
                threading.Thread(target=self.copy, args=(far, near), daemon=True).start()
                try:
                    for request in self.requests(near):
                        far.sendall(request)
                except OSError:
                    pass
        hangs, hung, ends = threading.Event(), threading.Event(), threading.Event()

        def judge(method, path, body):
            if hangs.is_set():
                hung.set()
                ends.wait()
            return "pass"
        with Keeping(self.source.port) as host, Meddler(self.target.port, judge) as target:
            self.hosts = host.url
            self.source.must("PUT", "/fs/_doc/1", {"n": 1})
            process = self.follow(to=target.url, fast=True)
            self.addCleanup(ends.set)
            self.await_equal()
            hangs.set()
            self.until(hung.is_set, "the target hangs")
            process.send_signal(signal.SIGTERM)
            until(lambda: process.poll() is not None, "the copy has ended")
            self.assertIsNone(self.session())
            ends.set()

    # A host that lags and ignores Tidelock-After: an earlier answer, given twice.

    def capture(self, method, path, body=None):
        """Returns: the answer of now, for later."""
        reply = self.source.request(method, path, body)
        return "%s %s " % (method, path), response(reply.status, json.loads(reply.body) if reply.body else {}, int(reply.getheader("Tidelock-Timestamp")))

    def through_lagging(self, captured, act):
        """Returns: what `act` returns, whose source gives the captured answer."""
        line, answer = captured
        given = []

        def lag(request):
            if not request.startswith(line.encode()) or len(given) == 2:
                return None
            given.append(request)
            return answer
        with Host(self.source.port, lag) as host:
            self.hosts = host.url
            result = act()
        self.assertEqual(len(given), 2, "the answer was given, discarded, and the same asked again")
        return result

    LIST = ("GET", "/*/_settings?ignore_unavailable=true&allow_no_indices=true")
    WALK = ("POST", "/fs/_search?scroll=10m&commit_timestamp=true", {"size": 500, "sort": ["_doc"]})

    def test_old_whole_indices(self):
        """Indices that the target has lost are copied before the feed is followed, which does not report them again: none of these reads may be older than the position."""
        for read in (self.LIST, self.WALK, ("GET", "/fs?include_type_name=true"), ("GET", "/late?include_type_name=true")):
            with self.subTest(read[1]):
                self.setUp()
                self.hosts = self.source.url
                self.source.must("PUT", "/fs/_doc/1", {"n": 1})
                captured = self.capture(*read)
                self.source.must("PUT", "/fs/_doc/2", {"n": 2})
                self.source.must("PUT", "/fs/_mapping", {"properties": {"more": {"type": "long"}}})
                self.source.must("PUT", "/late/_doc/1", {"n": 1})
                self.once()
                for index in ("fs", "late"):
                    self.target.must("DELETE", "/" + index)
                messages = self.through_lagging(captured, self.once)
                self.assertIn("answers with an older state than was read before", messages)
                self.assert_equal()
                self.assertEqual(self.target.must("GET", "/fs/_mapping")["fs"]["mappings"]["properties"]["more"], {"type": "long"})

    def test_old_verified(self):
        """A comparison is not of before it began."""
        for read in (self.LIST, self.WALK):
            with self.subTest(read[1]):
                self.setUp()
                self.hosts = self.source.url
                self.source.must("PUT", "/fs/_doc/1", {"n": 1})
                self.once()
                captured = self.capture(*read)
                self.source.must("PUT", "/fs/_doc/2", {"n": 2})
                self.source.must("PUT", "/late/_doc/1", {"n": 1})

                def verify():
                    return subprocess.run(self.command("--verify", "--quiet"), capture_output=True, text=True, env=replicate_test.without_rests()).stdout
                self.assertEqual(sorted(" ".join(line.split()) for line in self.through_lagging(captured, verify).splitlines()[:2]), ["missing fs/2", "missing late/1"])

    def test_old_present(self):
        """Where the feed ends now: an older answer is neither the goal of --once nor a source that is older than the place."""
        self.source.must("PUT", "/fs/_doc/1", {"n": 1})
        captured = self.capture("GET", "/_changes")
        self.hosts = self.source.url
        self.source.must("PUT", "/fs/_doc/2", {"n": 1})
        self.once()
        self.source.must("PUT", "/fs/_doc/3", {"n": 1})
        self.through_lagging(captured, self.once)
        self.assert_equal()

    def test_old_snapshot(self):
        """A first copy does not begin with a state of before."""
        captured = ("POST /_transaction ", response(201, {"transaction": "older", "timestamp": 1}, 1))
        self.source.must("PUT", "/fs/_doc/1", {"n": 1})
        self.assertNotIn("the copy begins anew", self.through_lagging(captured, self.once))
        self.assert_equal()

    def test_old_feed(self):
        """A host whose newest timestamp is before the one that the feed was read up to says that this is in the future, or covers less: another one is asked, or it again."""
        for status, body in ((400, {"error": {"type": "illegal_argument_exception", "reason": "[since] is in the future"}, "status": 400}), (200, {})):
            with self.subTest(status):
                self.setUp()
                self.source.must("PUT", "/fs/_doc/1", {"n": 1})
                self.hosts = self.source.url
                self.once()
                self.source.must("PUT", "/fs/_doc/2", {"n": 1})
                messages = self.through_lagging(("GET /_changes?since=", response(status, body, 1)), self.once)
                self.assertIn("answers with an older state than was read before", messages)
                self.assert_equal()

    def test_misuse(self):
        for hosts in ("", ",", ",/"):
            self.hosts = hosts
            self.assertIn("--from names no server", self.once(expect=64))


class Late(replicate_test.Copy):
    """The source does not answer in the time of one request, as a cluster of which a host has just died: it is asked again."""
    new_target = Target

    def start_once(self, host, name):
        command = self.command("--once", "--name", name, "--prefix", name + "-")
        command[command.index("--from") + 1] = host.url
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=replicate_test.without_rests())
        self.running.append(process)
        return process

    def test_first_request_is_not_answered(self):
        """That which opens the session, and that which takes the lock."""
        self.source.must("PUT", "/fs/_doc/1", {"n": 1})
        requests = {"session": b"POST /_session ", "lock": b"POST /_lock "}
        missed = []

        def answer_of(name):
            def answer(request):
                if name in missed or not request.startswith(requests[name]):
                    return None
                missed.append(name)
                return b""
            return answer
        with Host(self.source.port, answer_of("session")) as first, Host(self.source.port, answer_of("lock")) as second:
            copies = [self.start_once(first, "session"), self.start_once(second, "lock")]  # at the same time: each waits for 10 s
            for copy in copies:
                messages = copy.communicate()[1]
                self.assertEqual(copy.returncode, 0, messages)
                self.assertIn("the source has not answered in 10 s", messages)
        self.assertEqual(sorted(missed), ["lock", "session"])
        for name in requests:
            self.assertEqual(self.target.must("GET", "/%s-fs/_doc/1" % name)["_source"], {"n": 1})


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Dies(unittest.TestCase):
    """Hosts of a cluster die while one of them is copied from: the copy continues with another, under the lock that it has."""
    def begin(self, fast=False):
        etcd = cluster_test.Etcd()
        self.addCleanup(etcd.close)
        hosts = [Server("--cluster", etcd.url + "/tidelock", "--node-name", name, *cluster_test.LEASE, port=cluster_test.free_port()) for name in "ab"]
        for host in hosts:
            self.addCleanup(host.close)
            host.start()
        target = Target().start()
        self.addCleanup(target.close)
        copy = replicate_test.Copy()
        copy.source, copy.target, copy.running = hosts[0], target, []
        self.addCleanup(copy.doCleanups)
        self.addCleanup(copy.end)
        copy.command = lambda *options, to=None: [replicate_test.PROGRAM, "replicate", "--from", ",".join(host.url for host in hosts), "--to", target.url, *options]

        def put(host, n):
            host.must("PUT", "/fs/_doc/1?distribute_timestamps=fast", {"n": n})
            host.must("PUT", "/fs/_doc/%d?distribute_timestamps=fast" % n, {"n": n})

        def awaited(n):
            def is_there():
                self.assertIsNone(process.poll(), copy.messages(process))
                return [target.ask("GET", "/fs/_doc/%d" % id)[1].get("_source") for id in (1, n)] == [{"n": n}] * 2
            until(is_there, "change %d is there" % n)
        put(hosts[0], 2)
        process = copy.follow("--verify-every", "0", fast=fast)
        awaited(2)
        return hosts, copy, process, put, awaited

    def test_follows(self):
        hosts, copy, process, put, awaited = self.begin()
        for n, (dies, lives) in enumerate((hosts, hosts[::-1]), 3):
            dies.kill()
            put(lives, n)
            awaited(n)
            self.assertIn("continuing with the source's host " + lives.url, copy.messages(process))
            copy.source = lives
            # Its session is opened when all live hosts have it: until the lease of the dead one is over, which takes as long as the program waits for one answer.
            self.assertIn("a copy of this name is being made already", copy.once(expect=75))
            dies.start()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, copy.messages(process))

    @unittest.skipUnless(replicate_test.LONG, "a host is left when most of the lease is over without a line from it")
    def test_silent(self):
        """A host that is stopped is replaced before the lease ends; when it continues, its old attach stream does not end the session."""
        (a, b), copy, process, put, awaited = self.begin(fast=True)
        stop_process(a.process)
        try:
            put(b, 3)
            awaited(3)
        finally:
            a.process.send_signal(signal.SIGCONT)
        until(lambda: a.ask("GET", "/_timestamp")[0] == 200, "it is back")
        put(a, 4)
        awaited(4)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, copy.messages(process))


if __name__ == "__main__":
    unittest.main(verbosity=2)
