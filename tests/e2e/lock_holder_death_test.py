#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The process that holds a lock dies: each way to die, and each required consequence.

Holders are real processes: killed with kill -9, their connections closed or reset, stopped past their leases and continued,
their hosts unreachable without a FIN. Afterwards the next in line has the lock, the holder's cleanup is done at one timestamp,
and the holder itself, if it continues, is refused with the reason. A waiting request ends with its connection or its session,
and never gets a lock.
"""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from fleet import Fleet  # noqa: E402
from server import HANGS  # noqa: E402
from waiting import until  # noqa: E402

HOLDER_HOST = "10.9.9.9"  # an address of its own in a network of its own: it can be taken away
LOCK = {"mode": "exclusive", "index": "fs", "id": "1"}


def request_bytes(method, path, body):
    data = json.dumps(body).encode()
    return b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        method.encode(), path.encode(), len(data), data)


class Case(unittest.TestCase):
    def setUp(self):
        self.server = ClockedServer.of_class(self)
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})
        self.waiter = self.open()

    def open(self, **members):
        return self.server.must("POST", "/_session", {"ttl": "1h", **members})["session"]

    def waiting(self):
        return [waiter for lock in self.server.must("GET", "/_lock")["locks"] for waiter in lock["waiters"]]

    def holders(self):
        return [holder["session"] for lock in self.server.must("GET", "/_lock")["locks"] for holder in lock["holders"]]

    def wait_in_line(self, session, wait="1h"):
        """Returns: a connection on which the answer will come."""
        line = socket.create_connection(("127.0.0.1", self.server.port), HANGS)
        line.sendall(request_bytes("POST", "/_lock", {"session": session, "wait": wait, "locks": [LOCK]}))
        number = self.server.number(session)
        until(lambda: any(waiter["session"] == number for waiter in self.waiting()), "it waits")
        return line

    def answer(self, line):
        response = http.client.HTTPResponse(line)
        response.begin()
        return response.status, json.loads(response.read())


class Holder(Case):
    def attach(self, session):
        line = socket.create_connection(("127.0.0.1", self.server.port), HANGS)
        line.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode())
        self.read_until(line, b'"session"')
        return line

    def read_until(self, line, wanted):
        received = b""
        while wanted not in received:
            part = line.recv(4096)
            self.assertTrue(part, received)
            received += part

    def leave_everything(self):
        """Opens a holder with an attach stream, a transaction, an ephemeral document, and on_expire actions. Returns: session, attach stream."""
        holder = self.open(name="holder", on_expire=[{"index": {"_index": "fs", "_id": "will"}}, {"done": True}])
        line = self.attach(holder)
        self.server.must("POST", "/_lock", {"session": holder, "locks": [LOCK]})
        self.server.must("PUT", "/fs/_doc/note?lease=" + holder, {"n": 1})
        transaction = self.server.must("POST", "/_transaction", {"session": holder})["transaction"]
        self.server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 2})
        self.server.must("PUT", "/fs/_doc/2?transaction=" + transaction, {"n": 2})
        return holder, line, transaction

    def all_is_done_at_one_timestamp(self, holder, transaction, token):
        """The cleanup was done before the next holder had the lock."""
        self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_source"], {"n": 1})
        self.assertEqual(self.server.ask("GET", "/fs/_doc/2")[0], 404)
        self.assertEqual(self.server.ask("GET", "/fs/_doc/note?timestamp=%d" % token)[0], 404)
        self.assertEqual(self.server.ask("GET", "/fs/_doc/note?timestamp=%d" % (token - 1))[0], 200)
        self.assertEqual(self.server.ask("GET", "/fs/_doc/will?timestamp=%d" % token)[0], 200)
        self.assertEqual(self.server.ask("GET", "/fs/_doc/will?timestamp=%d" % (token - 1))[0], 404)
        self.assertEqual(self.holders(), [self.server.number(self.waiter)])
        outcome = self.server.must("GET", "/_transaction/" + transaction)
        self.assertEqual(outcome["state"], "rolled_back")
        self.assertEqual(outcome["ended"], token)
        self.assertEqual(self.server.ask("GET", "/_session/" + holder)[0], 404)

    def break_line(self, close):
        holder, line, transaction = self.leave_everything()
        waiting = self.wait_in_line(self.waiter)
        close(line)
        status, reply = self.answer(waiting)
        self.assertEqual((status, reply["granted"]), (200, True))
        self.all_is_done_at_one_timestamp(holder, transaction, reply["fencing_token"])
        waiting.close()

    def test_connection_closed(self):
        self.break_line(lambda line: line.close())

    def test_connection_reset(self):
        def reset(line):
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            line.close()
        self.break_line(reset)

    def test_ended_by_force(self):
        holder, line, transaction = self.leave_everything()
        waiting = self.wait_in_line(self.waiter)
        self.server.must("DELETE", "/_session/%s?force=true" % holder)
        status, reply = self.answer(waiting)
        self.all_is_done_at_one_timestamp(holder, transaction, reply["fencing_token"])
        self.read_until(line, b"session_missing_exception")  # the attach stream reports the end of the session
        line.close()
        waiting.close()

    def test_host_disappears(self):
        """The connection ends without FIN or RST: the client runs in a network namespace that is then removed."""
        if subprocess.run(["unshare", "-rn", "ip", "link", "set", "lo", "up"], capture_output=True).returncode != 0:
            self.skipTest("no network of its own to be had here")
        run = subprocess.run(["unshare", "-rn", sys.executable, os.path.abspath(__file__), "disappear"], capture_output=True, text=True, timeout=HANGS)
        self.assertEqual((run.returncode, run.stdout), (0, "attached, disappeared, ended\n"), run.stderr)

    def test_stopped_past_its_lease(self):
        """It continues as if it held the lock, and each kind of write is refused."""
        def hold_and_write(client):
            session = client.ask("POST", "/_session", {"ttl": "1m"})[1]["session"]
            token = client.ask("POST", "/_lock", {"session": session, "locks": [LOCK]})[1]["fencing_token"]
            transaction = client.ask("POST", "/_transaction", {"session": session, "timeout": "10m"})[1]["transaction"]
            client.note("holds")
            os.kill(os.getpid(), signal.SIGSTOP)
            for by in ("session=" + session, "fencing_token=%d" % token, "transaction=" + transaction, "timeout=0s"):
                status, reply = client.ask("PUT", "/fs/_doc/1?" + by, {"n": 66})
                client.note("refused", status=status, type=reply["error"]["type"] if "error" in reply else None)

        with Fleet(self.server) as fleet:
            fleet.start(1, hold_and_write)
            until(lambda: fleet.notes(), "it holds the lock")
            waiting = self.wait_in_line(self.waiter)
            self.server.pass_time(61)
            status, reply = self.answer(waiting)
            self.assertEqual((status, reply["granted"]), (200, True))
            os.kill(fleet.pids[0], signal.SIGCONT)
            until(lambda: len(fleet.notes()) == 5, "it has tried everything")
            self.assertEqual([(note["status"], note["type"]) for note in fleet.notes()[1:]], [
                (404, "session_missing_exception"), (409, "stale_fencing_token_exception"), (409, "transaction_aborted_exception"),
                (409, "lock_wait_timeout_exception")])
        self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_source"], {"n": 1})
        waiting.close()


class Waiter(Case):
    """It never gets a lock that it can no longer use."""

    def setUp(self):
        super().setUp()
        self.holder = self.open()
        self.server.must("POST", "/_lock", {"session": self.holder, "locks": [LOCK]})

    def after_it_nobody_holds(self):
        self.server.must("POST", "/_unlock", {"session": self.holder})
        self.assertEqual(self.holders(), [])

    def test_waiter_connection_closes(self):
        self.wait_in_line(self.waiter).close()
        until(lambda: not self.waiting(), "it waits no more")
        self.after_it_nobody_holds()

    def test_waiter_session_ends(self):
        line = self.wait_in_line(self.waiter)
        self.server.must("DELETE", "/_session/" + self.waiter)
        status, reply = self.answer(line)
        self.assertEqual((status, reply["error"]["type"]), (404, "session_missing_exception"))
        line.close()
        self.after_it_nobody_holds()

    def test_waiter_lease_expires(self):
        line = self.wait_in_line(self.open(ttl="1m"))
        self.server.pass_time(61)
        status, reply = self.answer(line)
        self.assertEqual((status, reply["error"]["type"]), (404, "session_missing_exception"))
        line.close()
        self.after_it_nobody_holds()

    def test_waiting_write_ends_with_its_connection(self):
        with socket.create_connection(("127.0.0.1", self.server.port), HANGS) as line:
            line.sendall(request_bytes("PUT", "/fs/_doc/1?timeout=1h", {"n": 66}))
            until(self.waiting, "it waits")
        until(lambda: not self.waiting(), "it waits no more")
        self.after_it_nobody_holds()
        self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_source"], {"n": 1})

    def test_queue_order_is_kept_when_waiter_leaves(self):
        """When a waiter leaves the queue, the order of the others is kept."""
        sessions = [self.waiter, self.open(), self.open()]
        lines = [self.wait_in_line(session) for session in sessions]
        lines[1].close()
        until(lambda: len(self.waiting()) == 2, "the middle one is gone")
        self.server.must("POST", "/_unlock", {"session": self.holder})
        self.assertTrue(self.answer(lines[0])[1]["granted"])
        self.assertEqual(self.holders(), [self.server.number(sessions[0])])
        self.server.must("POST", "/_unlock", {"session": sessions[0]})
        self.assertTrue(self.answer(lines[2])[1]["granted"])
        lines[0].close()
        lines[2].close()


class Restart(Case):
    def test_locks_outlive_the_server(self):
        """Killed or stopped, it comes back with sessions and locks as they were, tokens included."""
        holder = self.open(name="holder", ttl="1m")
        token = self.server.must("POST", "/_lock", {"session": holder, "locks": [LOCK, {"mode": "update", "index": "fs", "path": "/a"}]})["fencing_token"]
        before = self.server.must("GET", "/_lock")
        expires = self.server.must("GET", "/_session/" + holder)["expires"]
        for end in (self.server.kill, self.server.stop):
            end()
            self.server.start()
            self.assertEqual(self.server.must("GET", "/_lock"), before)
            later = self.server.must("GET", "/_session/" + holder)["expires"]
            self.assertGreater(later, expires - 30_000_000, "the lease goes on")
            expires = later
            self.assertEqual(self.server.ask("PUT", "/fs/_doc/1?timeout=0s", {"n": 66})[0], 409)
            self.assertEqual(self.server.ask("PUT", "/fs/_doc/1?fencing_token=%d&session=%s" % (token, holder), {"n": 1})[0], 200)


def disappear():
    """A session whose holder's network goes away is ended after its lease, while the holder's kernel still has the connection."""
    def address(change):
        subprocess.run(["ip", "address", change, HOLDER_HOST + "/32", "dev", "lo"], check=True)

    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    address("add")
    server = ClockedServer().start()
    with server.clock.standing():  # until its stream renews it, the session is in no hurry, however busy the machine is
        session = server.must("POST", "/_session", {"ttl": "2s"})["session"]
        number = server.number(session)
        line = socket.create_connection(("127.0.0.1", server.port), HANGS, (HOLDER_HOST, 0))
        line.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode())
        line.recv(4096)
    server.pass_time(2.5)
    time.sleep(0.5)  # a beat of the server, which would end it
    print("attached" if server.ask("GET", "/_session/" + session)[0] == 200 else "gone too early", end=", ")
    address("del")  # what the server sends there has no way any more, and nothing comes back
    print("disappeared", end=", ", flush=True)
    until(lambda: any("session #%d" % number in event["lines"][0] for event in server.must("GET", "/_lock/_events")["events"]),
          "its session is ended")
    print("ended")
    line.close()
    server.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["disappear"]:
        disappear()
    else:
        unittest.main()
