#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holders of locks, waiters with their blockers and start times, deadlocks and expiries: each way to see them, end to end.

Each case sets up holders and waiters of every kind. They are checked in GET /_lock, the _cat tables, `tidelock status`,
`tidelock locks` (on a terminal too, redrawn), the lock events of deadlocks and expiries, and the log.
"""
import fcntl
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import time
import unicodedata
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from server import HANGS, PROGRAM  # noqa: E402
from terminal import open_terminal  # noqa: E402
from waiting import Waiting, until  # noqa: E402

EXCLUSIVE_1 = {"mode": "exclusive", "index": "fs", "id": "1"}


class Case(unittest.TestCase):
    server = None  # or that of all cases of the class

    def setUp(self):
        if self.server is None:
            self.server = ClockedServer().start()
            self.addCleanup(self.server.close)
        self.reported = len(self.server.errors().encode())
        self.server.ask("DELETE", "/fs")
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/fs/_doc/1", {"path": "/clinton/projects"})
        self.background = []

    def tearDown(self):
        self.server.end_owners()
        for request in self.background:
            request.join()

    def errors(self):
        """Returns: what the server has logged since the case began."""
        return self.server.errors(self.reported)

    def session(self, name, **members):
        return self.server.must("POST", "/_session", {"name": name, "ttl": "1h", **members})["session"]

    def lock(self, session, *locks, wait="0s"):
        return self.server.must("POST", "/_lock", {"session": session, "wait": wait, "locks": list(locks)})

    def waiters(self):
        return sum(len(lock["waiters"]) for lock in self.server.must("GET", "/_lock")["locks"])

    def in_background(self, method, path, body=None):
        """Starts a request that waits, after those that wait already."""
        before = self.waiters()
        self.background.append(Waiting(self.server, method, path, body))
        until(lambda: self.waiters() > before, "%s %s waits" % (method, path))
        return self.background[-1]

    def until_logged(self, condition, what):
        """Lets a second pass, since the log writes such lines once a second, and waits for the condition."""
        self.server.pass_time(1.2)
        until(lambda: condition(self.errors()), what)

    def text(self, path):
        return self.server.request("GET", path).body.decode()

    def rows(self, path):
        """Of a _cat table, by column."""
        return json.loads(self.text(path + ("&" if "?" in path else "?") + "format=json"))

    def run_tool(self, *arguments):
        run = subprocess.run([PROGRAM, *arguments, "--url", self.server.url], capture_output=True, text=True, timeout=HANGS)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        return run.stdout


class SceneCase(Case):
    """nightly holds /clinton and has one ephemeral document; editor waits for the document, followed by a write and a transaction."""

    def setUp(self):
        super().setUp()
        self.nightly = self.session("nightly-rename")
        self.editor = self.session("editor")
        self.token = self.lock(self.nightly, {"mode": "exclusive", "index": "fs", "path": "/clinton"})["fencing_token"]
        self.server.must("PUT", "/fs/_doc/note?lease=%s&session=%s" % (self.nightly, self.nightly), {"path": "/clinton"})
        self.transaction = self.server.must("POST", "/_transaction", {"session": self.editor})["transaction"]
        self.in_background("POST", "/_lock", {"session": self.editor, "wait": "10m", "locks": [{"mode": "update", "index": "fs", "id": "1"}]})
        self.in_background("PUT", "/fs/_doc/1?timeout=10m", {"path": "/clinton/projects", "n": 2})
        self.in_background("GET", "/fs/_doc/1?timeout=10m&transaction=" + self.transaction)

    def draw(self, rows, columns, *arguments, command="locks"):
        """What `tidelock locks`, or another command, shows on a terminal of that size. Returns: the lines, as drawn last."""
        master, slave = open_terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        run = subprocess.Popen([PROGRAM, command, *arguments, "--url", self.server.url], stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        seen = b""
        try:
            while b"\x1b[J" not in seen if "--watch" in arguments else run.poll() is None or select.select([master], [], [], 0)[0]:
                if select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 65536)
        except OSError:
            pass  # it has ended
        finally:
            run.kill()
            run.wait()
            os.close(master)
        text = seen.decode().rpartition("\x1b[H")[2].replace("\x1b[K", "").removesuffix("\x1b[J")
        return text.replace("\r", "").splitlines()


class Scene(SceneCase):
    """What the cases look at is not in the log, and so one server will do for all."""

    @classmethod
    def setUpClass(cls):
        cls.server = ClockedServer().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_tree(self):
        locks = self.server.must("GET", "/_lock")["locks"]
        self.assertEqual([(lock["path"], lock.get("id")) for lock in locks], [("/clinton", None), ("/clinton/projects", "1")])
        holder, = locks[0]["holders"]
        self.assertEqual((holder["session"], holder["name"], holder["mode"], holder["fencing_token"]),
                         (self.server.number(self.nightly), "nightly-rename", "exclusive", self.token))
        first, second, third = locks[1]["waiters"]
        self.assertEqual((first["session"], first["name"], first["mode"]), (self.server.number(self.editor), "editor", "update"))
        self.assertIn("write", second)
        self.assertEqual((third["transaction"], third["session"], third["mode"]),
                         (self.server.transaction_number(self.transaction), self.server.number(self.editor), "shared"))
        self.assertTrue(first["since"] < second["since"] < third["since"])
        for waiter in (first, second, third):
            self.assertAlmostEqual(waiter["deadline"] - waiter["since"], 600e6, delta=30e6)

    def test_tree_filtered(self):
        self.lock(self.editor, {"mode": "shared", "index": "other"})
        self.lock(self.editor, {"mode": "shared", "index": "fs", "path": "/bill"})

        def shown(query):
            return [(lock["index"], lock.get("path"), lock.get("id")) for lock in self.server.must("GET", "/_lock" + query)["locks"]]
        self.assertEqual(len(shown("")), 4)
        self.assertEqual(shown("?index=other"), [("other", None, None)])
        self.assertEqual(shown("?index=fs&path=/bill"), [("fs", "/bill", None)])
        self.assertEqual(shown("?index=fs&path=/clinton/projects"), [("fs", "/clinton", None), ("fs", "/clinton/projects", "1")])
        self.assertEqual(shown("?session=" + self.nightly), [("fs", "/clinton", None)])
        self.assertEqual(shown("?session=%d" % self.server.number(self.nightly)), [("fs", "/clinton", None)])
        self.assertEqual([row["path"] for row in self.rows("/_cat/locks?index=fs&path=/bill")], ["/bill"])

    def test_tables(self):
        rows = self.rows("/_cat/locks")
        self.assertEqual([row["state"] for row in rows], ["held", "waiting", "waiting", "waiting"])
        self.assertEqual([row["mode"] for row in rows], ["exclusive", "update", "exclusive", "shared"])
        self.assertEqual((rows[0]["owner"], rows[0]["name"], rows[0]["fencing_token"]),
                         ("session %d" % self.server.number(self.nightly), "nightly-rename", str(self.token)))
        self.assertTrue(rows[2]["owner"].startswith("write "))
        self.assertEqual(rows[3]["owner"], "transaction %d" % self.server.transaction_number(self.transaction))
        nightly, editor = self.rows("/_cat/sessions")
        self.assertEqual((nightly["name"], nightly["lock_count"], nightly["waiting_count"], nightly["ephemeral_count"]), ("nightly-rename", "1", "0", "1"))
        self.assertEqual((editor["name"], editor["lock_count"], editor["waiting_count"], editor["transaction_count"]), ("editor", "0", "1", "1"))
        transaction, = self.rows("/_cat/transactions")
        self.assertEqual((transaction["transaction"], transaction["session"], transaction["waiting"]),
                         (str(self.server.transaction_number(self.transaction)), str(self.server.number(self.editor)), "true"))
        header = self.text("/_cat/locks?v").splitlines()[0].split()
        self.assertEqual(header, ["index", "path", "id", "mode", "state", "owner", "name", "since", "fencing_token"])
        self.assertEqual(self.text("/_cat/sessions?h=name&s=name"), "editor\nnightly-rename\n")

    def test_host_and_shards(self):
        node, = self.rows("/_cat/nodes")
        self.assertEqual((node["ip"], node["node.role"], node["master"]), ("127.0.0.1", "dim", "*"))
        self.assertTrue(0 < int(node["ram.percent"]) < 100 and float(node["load_1m"]) >= 0, node)
        self.assertEqual(self.rows("/_cat/master")[0]["node"], node["name"])
        columns = [line.split()[0] for line in self.text("/_cat/nodes?help").splitlines()]
        self.assertEqual(columns, "id ip port http_address version heap.percent ram.percent cpu load_1m load_5m load_15m node.role master name".split())
        documents = self.rows("/_cat/count/fs")[0]["count"]
        self.server.must("PUT", "/three", {"settings": {"number_of_shards": 3, "number_of_replicas": 1}})
        shards = [(row["shard"], row["prirep"], row["state"], row["docs"], row["node"]) for row in self.rows("/_cat/shards/three")]
        self.assertEqual(shards, [(str(number), *copy) for number in range(3) for copy in (("p", "STARTED", "0", node["name"]),
                                                                                           ("r", "UNASSIGNED", None, None))])
        id, = self.server.must("GET", "/_cluster/state/nodes")["nodes"]
        self.assertEqual({row["id"] for row in self.rows("/_cat/shards/three?h=id")}, {id, None})
        self.assertEqual(self.rows("/_cat/shards/fs?h=docs,prirep&s=prirep")[0]["docs"], documents)

    def test_one_session(self):
        editor = self.server.must("GET", "/_session/" + self.editor)
        self.assertEqual((editor["locks"], editor["transactions"]), ([], [self.transaction]))
        self.assertEqual([(lock["id"], lock["mode"]) for lock in editor["waiting"][0]], [("1", "update")])
        nightly = self.server.must("GET", "/_session/" + self.nightly)
        self.assertEqual([(lock["path"], lock["fencing_token"]) for lock in nightly["locks"]], [("/clinton", self.token)])

    def test_status_command(self):
        shown = self.run_tool("status")
        for word in ("Indices", "Sessions", "Transactions", "Locks", "nightly-rename", "editor", "transaction %d" % self.server.transaction_number(self.transaction), "/clinton", "waiting", "held",
                     "readable since"):
            self.assertIn(word, shown)

    def test_locks_command(self):
        lines = self.run_tool("locks").splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("nightly-rename", lines[1])
        self.assertEqual(len(self.run_tool("locks", "fs:/clinton").splitlines()), 5)
        self.server.must("PUT", "/other")
        self.assertIn("no locks are held", self.run_tool("locks", "other"))
        self.assertIn("no locks are held", self.run_tool("locks", "fs:/bill"))

    def test_watching(self):
        """On a terminal the table is drawn anew in place, and what changed is there."""
        master, slave = open_terminal()
        watch = subprocess.Popen([PROGRAM, "locks", "--watch", "--interval", "100ms", "--url", self.server.url], stdin=slave, stdout=slave,
                                 stderr=slave)
        os.close(slave)
        seen = b""

        def look():
            nonlocal seen
            while select.select([master], [], [], 0)[0]:
                seen += os.read(master, 65536)
            return seen
        try:
            until(lambda: b"nightly-rename" in look(), "the holder is shown")
            until(lambda: look().count(b"\x1b[H") >= 2, "it is drawn again")
            self.server.must("POST", "/_unlock", {"session": self.nightly})
            # editor has it now, and the others wait for editor
            until(lambda: b"held" in look().rpartition(b"\x1b[H")[2] and b"nightly-rename" not in look().rpartition(b"\x1b[H")[2], "the change is shown")
            self.assertIn(b"editor", look().rpartition(b"\x1b[H")[2])
            self.server.kill()
            until(lambda: b"tidelock locks:" in look(), "it says that the server is gone")
            self.server.start()
            until(lambda: b"editor" in look().rpartition(b"tidelock locks:")[2], "it goes on when the server is back")
        finally:
            watch.terminate()
            watch.wait(HANGS)
            os.close(master)

    def test_fits_the_terminal(self):
        """Long names lose their middle, long queues their end; no holder is hidden, and no line wider or lower than the terminal."""
        long = self.session("nächtliche-Umbenennung-日本語-" * 3)
        self.lock(long, {"mode": "shared", "index": "other", "path": "/" + "ünïcode/" * 30})
        for number in range(200):
            self.background.append(Waiting(self.server, "POST", "/_lock", {"session": self.session("waiter %d" % number), "wait": "10m",
                                                                           "locks": [{"mode": "exclusive", "index": "fs"}]}))
        until(lambda: self.waiters() == 203, "200 more wait")
        for rows, columns in ((24, 80), (10, 40), (24, 20), (50, 200)):
            lines = self.draw(rows, columns, "--watch")
            self.assertLess(len(lines), rows, lines)
            for line in lines:
                self.assertLess(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line), columns, line)
            for holder in ("fs:/", "othe"):
                self.assertTrue(any(line.startswith(holder) for line in lines), lines)
            self.assertTrue(any(line.startswith("… and ") for line in lines), lines)
        self.assertEqual(len(self.draw(24, 80)), 1 + 205, "all of them, when it need not fit")
        first = next(line for line in lines if "editor" in line and "waiting" in line)
        self.assertRegex(first, r"^fs/1 +update +waiting +editor +\d\d:\d\d:\d\d +nightly-rename \(fs:/clinton\)$")
        status = self.draw(24, 200, command="status")
        self.assertIn(first.split(), [line.split() for line in status[status.index("Locks"):]])

    def test_a_public_number_is_enough_to_end_by_force_alone(self):
        number, transaction = self.server.number(self.nightly), self.server.transaction_number(self.transaction)
        for method, path in (("DELETE", "/_session/%d" % number), ("POST", "/_session/%d/_keepalive" % number),
                             ("GET", "/_session/%d/_attach" % number), ("PUT", "/fs/_doc/1?timeout=0s&session=%d" % number),
                             ("POST", "/_transaction/%d/_rollback" % transaction), ("POST", "/_transaction/%d/_commit" % transaction),
                             ("GET", "/fs/_doc/1?transaction=%d" % transaction)):
            self.assertEqual(self.server.ask(method, path, {} if method == "PUT" else None)[0], 404, path)
        self.server.must("POST", "/_transaction/%d/_rollback?force=true" % transaction)
        self.assertEqual(self.server.must("GET", "/_transaction/" + self.transaction)["cause"], "it was ended by force")
        self.server.must("DELETE", "/_session/%d?force=true" % number)
        self.assertEqual(self.server.ask("GET", "/_session/" + self.nightly)[0], 404)

    def test_blockers(self):
        first, second, third = self.server.must("GET", "/_lock")["locks"][1]["waiters"]
        self.assertEqual({key: first["waits_for"][key] for key in ("session", "name", "mode", "resource", "path")},
                         {"session": self.server.number(self.nightly), "name": "nightly-rename", "mode": "exclusive", "resource": "fs:/clinton", "path": "/clinton"})
        self.assertEqual(second["waits_for"]["session"], self.server.number(self.nightly))
        self.server.must("POST", "/_unlock", {"session": self.nightly})
        until(lambda: self.waiters() == 1, "the editor has it, and its transaction too")
        write, = [waiter for lock in self.server.must("GET", "/_lock")["locks"] for waiter in lock["waiters"]]
        self.assertEqual(write["waits_for"]["session"], self.server.number(self.editor))


class SceneInTheLog(SceneCase):
    def test_ids_are_not_shown_to_others(self):
        """An id permits to act for its owner. Everything that other clients can read has public numbers instead."""
        status, refused = self.server.ask("POST", "/_lock", {"session": self.session("other"), "locks": [EXCLUSIVE_1]})
        self.assertEqual(status, 409)
        self.in_background("POST", "/_lock", {"session": self.session("late"), "wait": "5m", "locks": [EXCLUSIVE_1]})
        self.until_logged(lambda log: "has waited" in log, "the log reports slow waits")
        shown = [json.dumps(refused), self.errors(), self.run_tool("locks"), self.run_tool("status")]
        shown += [self.text(path) for path in ("/_lock", "/_session", "/_transaction", "/_cat/locks?v", "/_cat/sessions?v", "/_cat/transactions?v",
                                               "/_lock/_events", "/_session/%d" % self.server.number(self.editor),
                                               "/_session/%d" % self.server.number(self.nightly),
                                               "/_transaction/%d" % self.server.transaction_number(self.transaction))]
        for one in shown:
            for secret in (self.nightly, self.editor, self.transaction):
                self.assertNotIn(secret, one)

    def test_control_characters_in_names_are_escaped(self):
        """Clients choose their names freely; a name cannot add lines or colours to a table or the log."""
        evil = self.session("evil\x1b[31m\nforged line")
        self.lock(evil, {"mode": "exclusive", "index": "other", "id": "a\x07\tb"})
        for table in (self.run_tool("locks"), self.run_tool("status"), "\n".join(self.draw(24, 120))):
            self.assertIn(r"evil\033[31m\nforged line", table)
            self.assertIn(r"a\a\tb", table)
            self.assertEqual([c for c in table if ord(c) < 32 and c != "\n"], [])
        self.server.must("DELETE", "/_session/%s?force=true" % evil)
        self.until_logged(lambda log: "evil" in log, "the log reports the end")
        self.assertIn(r"evil\033[31m\nforged line", self.errors())

    def test_slow_waits_in_the_log(self):
        """Logged when they have lasted a second, with the blocker; and again when they end, with the duration."""
        self.in_background("POST", "/_lock", {"session": self.session("later", ttl="1h"), "wait": "10m", "locks": [EXCLUSIVE_1]})
        self.until_logged(lambda log: log.count("has waited") == 4, "the log reports the slow waits")
        log = self.errors()
        self.assertRegex(log, r"info: editor \(session #%d\) has waited \d+\.\d s for update on fs/1, fs:/clinton is held by nightly-rename \(session #%d\)" %
                         (self.server.number(self.editor), self.server.number(self.nightly)))
        self.assertRegex(log, r"write \d+ has waited \d+\.\d s for exclusive on fs/1, ")
        self.assertRegex(log, r"transaction #%d of editor \(session #%d\) has waited" %
                         (self.server.transaction_number(self.transaction), self.server.number(self.editor)))
        self.server.must("POST", "/_unlock", {"session": self.nightly})
        self.until_logged(lambda log: "was granted update on fs/1 after" in log, "the log reports the grant")
        self.server.pass_time(601)
        self.until_logged(lambda log: re.search(r"later \(session #\d+\) gave up waiting for exclusive on fs/1 after 60\d\.", log), "the log reports the end")
        self.assertEqual(self.errors().count("has waited"), 4, "reported once")


class Answers(Case):
    """Each reply of a lock request has the time waited, in milliseconds, and the queue position, for each outcome."""

    def test_waits(self):
        """The clocks stand but for what the test lets pass, so that the time waited is exact."""
        holder, sessions = self.session("holder"), [self.session("waiter %d" % number) for number in range(4)]
        self.lock(holder, EXCLUSIVE_1)
        waits = ("5m", "5m", "60457ms", "5m")
        with self.server.clock.standing():
            lines = [self.in_background("POST", "/_lock", {"session": session, "wait": wait, "locks": [EXCLUSIVE_1]}) for session, wait in zip(sessions, waits)]
            self.server.pass_time(61.2)
            lines[2].join()
            self.assertEqual((lines[2].status, lines[2].reply["error"]["type"]), (409, "lock_wait_timeout_exception"))
            self.assertEqual(lines[2].reply["error"]["queue_position"], 2)
            waited = int(re.sub("(?<=[0-9])s", "000ms", lines[2].reply["error"]["waited"]).removesuffix("ms"))
            self.assertTrue(60457 <= waited <= 61200, waited)
            self.assertEqual(lines[2].reply["error"]["holders"][0]["session"], self.server.number(holder))
            for number, owner, waited in ((0, holder, "61200ms"), (1, sessions[0], "62s"), (3, sessions[1], "62800ms")):
                before = self.server.must("GET", "/_timestamp")["timestamp"]
                self.server.must("POST", "/_unlock", {"session": owner})
                lines[number].join()
                reply = lines[number].reply
                self.assertEqual((reply["granted"], reply["queue_position"], reply["waited"]), (True, number, waited))
                self.assertGreater(reply["fencing_token"], before)
                self.server.pass_time(0.8)


class LockEvents(Case):
    def events(self, kind=None):
        return [event for event in self.server.must("GET", "/_lock/_events")["events"] if kind in (None, event["kind"])]

    def test_deadlock(self):
        a, b = self.session("ann"), self.session("bob")
        ann, bob = ("%s (session #%d)" % (name, self.server.number(session)) for name, session in (("ann", a), ("bob", b)))
        self.lock(a, EXCLUSIVE_1)
        self.lock(b, {"mode": "exclusive", "index": "fs", "id": "2"})
        waiting = self.in_background("POST", "/_lock", {"session": a, "wait": "1m", "locks": [{"mode": "exclusive", "index": "fs", "id": "2"}]})
        status, reply = self.server.ask("POST", "/_lock", {"session": b, "wait": "1m", "locks": [EXCLUSIVE_1]})
        self.assertEqual((status, reply["error"]["type"]), (409, "deadlock_detected_exception"))
        steps = reply["error"]["cycle"]
        self.assertEqual({(step["name"], step["resource"], step["held_by"]["name"]) for step in steps}, {("ann", "fs/2", "bob"), ("bob", "fs/1", "ann")})
        event, = self.events("deadlock")
        self.assertEqual(set(event["lines"]), {"%s waits for fs/2 held by %s" % (ann, bob), "%s waits for fs/1 held by %s" % (bob, ann),
                                               "%s is the victim" % bob})
        self.until_logged(lambda log: "info: deadlock: " in log and "; %s is the victim" % bob in log, "the log reports it")
        self.server.must("POST", "/_unlock", {"session": b})
        waiting.join()
        self.assertEqual(waiting.status, 200)

    def test_expiries(self):
        """By the lease, by force, by the connection's end; with the actions of the cleanup."""
        lease = self.session("by lease", ttl="1m")
        number = self.server.number(lease)
        self.lock(lease, EXCLUSIVE_1)
        self.server.must("PUT", "/fs/_doc/note?lease=" + lease, {"path": "/clinton"})
        transaction = self.server.must("POST", "/_transaction", {"session": lease, "timeout": "10m"})["number"]
        self.server.pass_time(61)
        self.server.must("DELETE", "/_session/%s?force=true" % self.session(
            "by force", on_expire=[{"index": {"_index": "fs", "_id": "left"}}, {"path": "/clinton"}]))
        attached = self.session("by connection")
        attached_number = self.server.number(attached)
        connection = self.server.connect()
        connection.request("GET", "/_session/%s/_attach" % attached)
        response = connection.getresponse()
        response.readline()
        connection.sock.shutdown(socket.SHUT_RDWR)
        response.close()
        connection.close()
        until(lambda: len(self.events("expiry")) == 3, "all three are reported")
        reported = {event["lines"][0].split(" (")[0]: event["lines"] for event in self.events("expiry")}
        self.assertEqual(reported["by lease"], [
            "by lease (session #%d) has expired" % number, "transaction #%d is rolled back" % transaction,
            "ephemeral documents removed: 1", "locks released: 1"])
        self.until_logged(lambda log: log.count("info: expiry: ") == 3, "the log reports it")
        self.assertIn("; ".join(reported["by lease"]) + "\n", self.errors())
        self.assertIn("was ended by force", reported["by force"][0])
        self.assertEqual(reported["by force"][1:], ["actions done: 1 of 1"])
        self.assertEqual(reported["by connection"], ["by connection (session #%d) has lost its connection" % attached_number])
        self.assertEqual(self.server.ask("GET", "/fs/_doc/left")[0], 200)

    def test_last_hundred_events_are_kept(self):
        for number in range(105):
            self.server.must("DELETE", "/_session/%s?force=true" % self.session("number %d" % number))
        kept = self.events()
        self.assertEqual(len(kept), 100)
        self.assertTrue(kept[0]["lines"][0].startswith("number 5 ("), kept[0])
        self.assertTrue(kept[-1]["lines"][0].startswith("number 104 ("), kept[-1])
        self.assertEqual([event["timestamp"] for event in kept], sorted(event["timestamp"] for event in kept))

    def test_names_cannot_forge_lines(self):
        self.server.must("DELETE", "/_session/%s?force=true" % self.session("a\nnightly was ended by force"))
        event, = self.events()
        self.assertEqual(len(event["lines"]), 1)


if __name__ == "__main__":
    unittest.main()
