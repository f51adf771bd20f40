#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tidelock serve`: its start, the state that it keeps over restarts, and its orderly stop.

A stop is orderly when the exit status is 0 and the server did not have to abort requests in flight, for which it waits ten
seconds. Open streams, and requests that wait for a lock that cannot be released any more, do not delay it.
"""
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from server import HANGS, PROGRAM, Server, check  # noqa: E402
from waiting import Waiting, until  # noqa: E402

PATIENT = ("--grace", "1h")  # a server that waits for a connection without work does so until the test is ended


def attach(server, session):
    """Opens the session's attach stream. Returns: connection, response."""
    connection = server.connect()
    connection.request("GET", "/_session/%s/_attach" % session)
    response = connection.getresponse()
    assert json.loads(response.readline())["session"] == session
    return connection, response


# Its requests come one after the other; the threads of a start and an end meet in Stop, too.
@unittest.skipIf(os.environ.get("TIDELOCK_TEST_BUILD") == "tsan" and not os.environ.get("TIDELOCK_TEST_LONG"), "the thread sanitizer finds nothing else in it")
class Begin(unittest.TestCase):
    def test_cluster_uuid_stays(self):
        with Server() as server:
            uuid = server.must("GET", "/")["cluster_uuid"]
            self.assertEqual(len(uuid), 22)
            self.assertEqual(server.must("GET", "/_cluster/state")["cluster_uuid"], uuid)
            server.kill()
            server.start()
            self.assertEqual(server.must("GET", "/")["cluster_uuid"], uuid)
            server.restart()
            self.assertEqual(server.must("GET", "/")["cluster_uuid"], uuid)
            with Server() as other:
                self.assertNotEqual(other.must("GET", "/")["cluster_uuid"], uuid)

    def test_time_zones_are_kept(self):
        """What a start read from the system's files is known to later ones, also where they have no files."""
        with tempfile.TemporaryDirectory(prefix="tidelock-test-") as nothing:
            without, script = ["--zoneinfo", nothing], {"script": {"source": "ZoneId.of('Europe/Berlin').getId()"}}
            with Server(*without) as server:
                self.assertEqual(server.must("GET", "/")["tidelock"]["time_zones"], "")
                self.assertEqual(server.request("POST", "/_scripts/painless/_execute", script).status, 400)
                self.assertEqual(server.must("POST", "/_scripts/painless/_execute", {"script": {"source": "ZoneId.of('GMT+2').getId()"}})["result"],
                                 "GMT+02:00")
                server.stop()
                server.options = []
                server.start()
                release = server.must("GET", "/")["tidelock"]["time_zones"]
                self.assertRegex(release, r"^20\d\d[a-z]$")
                server.kill()
                server.options = without
                server.start()
                self.assertEqual(server.must("GET", "/")["tidelock"]["time_zones"], release)
                self.assertEqual(server.must("POST", "/_scripts/painless/_execute", script)["result"], "Europe/Berlin")

    def test_scripts_folder_may_exist_before_start(self):
        data = tempfile.mkdtemp(prefix="tidelock-test-")
        try:
            os.mkdir(os.path.join(data, "scripts"))
            with open(os.path.join(data, "scripts", "add.painless"), "w", encoding="utf-8") as script:
                script.write("ctx._source.n += params.by")
            with Server(data=data) as server:
                server.must("PUT", "/fs/file/1", {"n": 1})
                server.must("POST", "/fs/file/1/_update", {"script": {"file": "add", "lang": "painless", "params": {"by": 4}}})
                self.assertEqual(server.must("GET", "/fs/file/1")["_source"], {"n": 5})
            os.unlink(data + ".log")
        finally:
            shutil.rmtree(data)

    def test_current_reads_work_with_minimal_history(self):
        with ClockedServer("--history", "50ms") as server:
            server.must("PUT", "/fs/_doc/1", {"n": 1})
            for _ in range(20):  # several rounds of upkeep, while nothing is written
                server.pass_time(0.4)
                self.assertEqual(server.must("GET", "/fs/_doc/1")["_source"], {"n": 1})
                self.assertEqual(server.must("POST", "/fs/_search", {"query": {"term": {"n": 1}}})["hits"]["total"]["value"], 1)
            server.stop()
            run = subprocess.run([PROGRAM, "check", "--data", server.data], capture_output=True, text=True, timeout=HANGS)
            self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_replay_of_log_is_reported(self):
        """In the server's log and to the supervisor: at its begin, every five seconds, and at its end; `tidelock check` prints it, too. The clock runs so fast
        that five seconds pass with each entry. A supervisor that reads nothing before the server is ready gets fewer reports, and does not delay it."""
        puts, fast, extend = 150, 100000, "EXTEND_TIMEOUT_USEC=600000000\nSTATUS="
        with tempfile.TemporaryDirectory(prefix="tidelock-notify-") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(os.path.join(folder, "socket"))
            states = []

            def supervise():
                while "READY=1" not in states:
                    states.append(supervisor.recv(1000).decode())

            def start_again():
                """Returns: the lines that it logs about the replay."""
                server.kill()
                reported = len(server.errors())
                server.start()
                return re.findall(r" info: ((?:applying the log|the log has been applied): .*)\n", server.errors()[reported:])

            with ClockedServer("--recovery-time", "36500d") as server:
                for n in range(puts):
                    server.must("PUT", "/fs/_doc/%d" % n, {"n": n})
                server.environment["NOTIFY_SOCKET"] = os.path.join(folder, "socket")
                server.clock.boot[1:] = [fast, server.clock.machine_boot()]
                server.clock.set()
                reader = threading.Thread(target=supervise, daemon=True)
                reader.start()
                lines = start_again()
                reader.join()
                read = states[:]
                states.clear()
                unread_lines = start_again()
                supervise()
                server.kill()
                check = subprocess.run([PROGRAM, "check", "--data", server.data], capture_output=True, text=True, timeout=HANGS, env=server.environment)
        begin = re.fullmatch(r"applying the log: entries (\d+) to (\d+), \d+\.\d MB", lines[0])
        first, last = int(begin[1]), int(begin[2])
        self.assertGreaterEqual(last - first, puts - 1)
        reports = [re.fullmatch(r"applying the log: entry (\d+) of %d, (\d+) %%(, about \d+ s left)?" % last, line) for line in lines[1:-1]]
        self.assertGreater(len(reports), 0)
        for column in 1, 2:
            numbers = [int(report[column]) for report in reports]
            self.assertEqual(numbers, sorted(numbers))
        self.assertTrue(first <= int(reports[0][1]) and int(reports[-1][1]) < last)
        self.assertRegex(lines[-1], r"^the log has been applied: %d entries, \d+\.\d MB, in \d+\.\d s$" % (last - first + 1))
        self.assertEqual(read[0], extend + lines[0])
        self.assertLessEqual(set(read), {*[extend + line for line in lines[:-1]], extend, "READY=1"})
        self.assertGreater(len(unread_lines), 2)
        self.assertEqual((states[0], states[-1]), (extend + unread_lines[0], "READY=1"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertRegex(check.stderr, r"^(\[[#.]{30}\] +\d+% \d+ of \d+ entries of the log, \d+/s(, \d+ s left )?\n)+$")

    def test_foreign_folder_is_refused(self):
        data = tempfile.mkdtemp(prefix="tidelock-test-")
        try:
            with open(os.path.join(data, "letter"), "w", encoding="utf-8") as letter:
                letter.write("dear")
            with self.assertRaisesRegex(RuntimeError, "not a data directory .*: name an empty directory"):
                Server(data=data).start()
            self.assertEqual(os.listdir(data), ["letter"])
            os.makedirs(os.path.join(data, "nodes", "0", "indices"))
            with self.assertRaisesRegex(RuntimeError, "it looks like Elasticsearch's"):
                Server(data=data).start()
            self.assertEqual(sorted(os.listdir(data)), ["letter", "nodes"])
            os.unlink(data + ".log")
        finally:
            shutil.rmtree(data)

    def test_newer_format_is_refused(self):
        """The format after this program's is to it what this program's is to its predecessor, which has the same check: that refuses a directory of today."""
        with Server() as server:
            server.stop()
            path = os.path.join(server.data, "FORMAT")
            with open(path, encoding="ascii") as file:
                newest = int(file.read().split()[1])
            for number in (newest + 1, 99):
                with open(path, "w", encoding="ascii") as file:
                    file.write("tidelock %d\n" % number)
                with self.assertRaisesRegex(RuntimeError, "says format %d, and this program knows formats up to %d: a newer one wrote it; start the newer one, "
                                            "or restore a backup from before the upgrade" % (number, newest)):
                    Server(data=server.data).start()
            with open(path, "w", encoding="ascii") as file:
                file.write("tidelock %d\n" % newest)
            server.start()  # nothing else was changed


class Merge(unittest.TestCase):
    def size(self, server):
        """What the data directory takes of the disk, its log included."""
        total = 0
        for folder, _, names in os.walk(server.data):
            for name in names:
                try:
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:  # the store has just dropped it
                    pass
        return total

    def test_forcemerge_frees_disk_space(self):
        """Two merges at once, during writes. Before them the directory is larger than the bound that holds afterwards: nothing else makes a checkpoint, which trims the log."""
        bound = 32 << 20  # of the log, two segments of 8 MiB and a spare stay; of the store, a manifest of 4 MiB and the documents
        with Server("--write-buffer", "1gb") as server:
            server.must("PUT", "/fs", {"mappings": {"properties": {"note": {"type": "keyword", "index": False, "doc_values": False}}}})
            written = 0
            while self.size(server) <= bound:
                lines = ('{"index":{"_id":"%d"}}\n{"n":%d,"note":"%s"}\n' % (n, n, "x" * 6000) for n in range(written, written + 1000))
                server.must("POST", "/fs/_bulk", "".join(lines))
                written += 1000
            merges = [Waiting(server, "POST", "/fs/_forcemerge") for _ in range(2)]
            for n in range(200):
                server.must("PUT", "/fs/_doc/%d" % n, {"n": -n})
            for merge in merges:
                merge.join()
                self.assertEqual(merge.status, 200, merge.reply)
            server.must("POST", "/fs/_forcemerge?max_num_segments=1")
            until(lambda: self.size(server) < bound, "the space is free")  # files are removed in the background
            row = json.loads(server.request("GET", "/_cat/indices/fs?format=json&bytes=b").body)[0]
            self.assertGreater(int(row["store.size"]), 100000)
            self.assertEqual(server.must("GET", "/fs/_count")["count"], written)
            self.assertEqual(server.must("GET", "/fs/_doc/199")["_source"], {"n": -199})
            self.assertEqual(server.ask("POST", "/none/_forcemerge")[0], 404)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(check(server.data)[0], 0)


class UnreadLog(unittest.TestCase):
    """Standard error is a small pipe that is read when the test wants to; each put is a line of the log."""
    PUTS = 1000

    def setUp(self):
        self.pipe, end = os.pipe()
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        self.server = Server("--log-level", "debug", *PATIENT)
        self.server.log.close()
        self.server.log = os.fdopen(end, "wb", 0)
        self.server.start()
        self.server.log.close()  # the server alone can write

    def tearDown(self):
        os.close(self.pipe)
        self.server.close()

    def put(self):
        for n in range(self.PUTS):
            self.server.must("PUT", "/i/_doc/%d?filter_path=%s" % (n, "x" * 100), {"n": 1})

    def test_omitted_log_lines_are_counted(self):
        """Puts are answered meanwhile. The log has their lines in order, and in place of those that are missing their number: more than
        once if the thread that writes the log was delayed while they were put. After each of these reports one more is put, whose line follows."""
        self.put()
        newest, reported, missing, reports = self.PUTS - 1, -1, 0, 0
        with open(self.pipe, encoding="utf-8", closefd=False) as log:
            while reported != newest:
                line = log.readline()
                self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[0-9:.]{12}Z (debug|info|warning|error): .*\n$")
                for number in re.findall(r"PUT /i/_doc/(\d+)\?", line):
                    self.assertEqual(int(number), reported + missing + 1)
                    reported, missing = int(number), 0
                for count in re.findall(r"warning: (\d+) lines of the log were dropped here: standard error was not read", line):
                    reports, missing, newest = reports + 1, missing + int(count), newest + 1
                    self.server.must("PUT", "/i/_doc/%d?refresh" % newest, {"n": 1})
        self.assertGreater(reports, 0)

    def test_server_stops_with_unread_log(self):
        self.put()
        self.server.hang_up()
        self.assertEqual(self.server.stop(), 0)


class Stop(unittest.TestCase):
    def stop(self, server):
        self.assertEqual(server.stop(), 0)
        self.assertNotIn("did not finish in time", server.errors())

    def test_with_attached_sessions(self):
        """Life lines end with a whole response, and the sessions are there again after the start."""
        with Server(*PATIENT) as server:
            sessions = [server.must("POST", "/_session", {"ttl": "1m"})["session"] for _ in range(20)]
            lines = [attach(server, session) for session in sessions]
            numbers = server.numbers(sessions)
            for session in sessions:
                server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs", "id": session}]})
            self.stop(server)
            for connection, response in lines:
                self.assertEqual(response.read(), b"")
                connection.close()
            server.start()
            self.assertEqual({s["session"] for s in server.must("GET", "/_session")["sessions"]}, set(numbers))
            self.assertEqual(server.numbers(sessions), numbers)
            self.assertEqual(len(server.must("GET", "/_lock")["locks"]), 20)

    def test_with_requests_that_wait_for_locks(self):
        """A waiting request is answered at once that the server stops, and can be repeated after the restart."""
        with Server(*PATIENT) as server:
            server.must("PUT", "/fs/_doc/1", {"n": 1})
            holder, waiter = (server.must("POST", "/_session", {"ttl": "1h"})["session"] for _ in range(2))
            transaction = server.must("POST", "/_transaction")["transaction"]
            server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "fs"}]})
            lock = {"session": waiter, "wait": "1m", "locks": [{"mode": "shared", "index": "fs"}]}
            waiting = [Waiting(server, "POST", "/_lock", lock), Waiting(server, "PUT", "/fs/_doc/1?timeout=1m", {"n": 2}),
                       Waiting(server, "GET", "/fs/_doc/1?transaction=" + transaction, None),
                       Waiting(server, "POST", "/_bulk?atomic=true&timeout=1m", '{"delete":{"_index":"fs","_id":"1"}}\n')]
            until(lambda: sum(len(lock["waiters"]) for lock in server.must("GET", "/_lock")["locks"]) == len(waiting),
                       "all wait")
            self.stop(server)
            for request in waiting:
                request.join()
                self.assertIn("server", json.dumps(request.reply))
                self.assertIn("stopping", json.dumps(request.reply))
            server.start()
            self.assertEqual(server.must("GET", "/fs/_doc/1")["_source"], {"n": 1})

    def test_with_a_task_whose_result_waits_for_a_lock(self):
        """A request that begins to wait after the others were answered is answered, too: the stop waits for no lock."""
        with Server(*PATIENT) as server:
            server.must("POST", "/_bulk", "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":1}\n' % i for i in range(3)))
            session = server.must("POST", "/_session", {"ttl": "1h"})["session"]
            server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": ".tasks"}]})
            server.must("POST", "/_refresh")
            server.must("POST", "/fs/_update_by_query?wait_for_completion=false&timeout=1h&scroll_size=1&requests_per_second=0.001")
            server.hang_up()
            self.stop(server)

    def restarts(self, server):
        """Orderly and by kill -9: durable changes are kept, and unfinished cleanups continue."""
        yield "stopped"
        self.stop(server)
        server.start()
        yield "started"
        server.kill()
        server.start()
        yield "killed"

    def test_with_open_transactions(self):
        """They continue with their writes and the locks that they hold."""
        with Server(*PATIENT) as server:
            server.must("PUT", "/fs/_doc/1", {"n": 1})
            transaction = server.must("POST", "/_transaction", {"timeout": "10m"})["transaction"]
            for n, _ in enumerate(self.restarts(server)):
                server.must("PUT", "/fs/_doc/t%d?transaction=%s" % (n, transaction), {"n": n})
                self.assertEqual(server.must("GET", "/fs/_count")["count"], 1)
                status, reply = server.ask("PUT", "/fs/_doc/t0?timeout=0s", {"n": -1})
                self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"))
                for before in range(n + 1):
                    found = server.must("GET", "/fs/_doc/t%d?transaction=%s" % (before, transaction))
                    self.assertEqual(found["_source"], {"n": before})
            committed = server.must("POST", "/_transaction/%s/_commit" % transaction)
            self.assertEqual(committed["changes"], 3)
            for _ in self.restarts(server):
                self.assertEqual(server.must("GET", "/fs/_count")["count"], 4)
                again = server.must("POST", "/_transaction/%s/_commit" % transaction)
                self.assertEqual(again["timestamp"], committed["timestamp"])
            self.assertEqual(server.stop(), 0)
            self.assertEqual(check(server.data)[0], 0)

    def test_with_a_query_transaction(self):
        with Server(*PATIENT) as server:
            server.must("PUT", "/fs/_doc/1", {"n": 1})
            transaction = server.must("POST", "/_transaction", {"mode": "query", "timeout": "10m"})["transaction"]
            for n, how in enumerate(self.restarts(server)):
                # A restart ends it: no host knows it any more.
                for method, path in (("GET", "/fs/_doc/1?transaction=" + transaction), ("POST", "/_transaction/%s/_commit" % transaction),
                                     ("GET", "/_transaction/" + transaction)) if how != "stopped" else ():
                    status, reply = server.ask(method, path)
                    self.assertEqual((status, reply["error"]["type"]), (404, "transaction_missing_exception"), path)
                transaction = server.must("POST", "/_transaction", {"mode": "query", "timeout": "10m"})["transaction"]
                server.must("PUT", "/fs/_doc/1", {"n": n + 2})
                self.assertEqual(server.must("GET", "/fs/_doc/1?transaction=" + transaction)["_source"], {"n": n + 1})

    def test_downtime_does_not_expire_leases(self):
        """Sessions, locks and transactions whose time would have run out while the server was away are there after it."""
        with ClockedServer() as server:
            session = server.must("POST", "/_session", {"ttl": "1m"})["session"]
            server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs", "id": "1"}]})
            transaction = server.must("POST", "/_transaction", {"timeout": "1m"})["transaction"]
            server.must("PUT", "/fs/_doc/2?transaction=" + transaction, {"n": 2})
            server.kill()
            server.clock.jump(3600)
            server.start()
            server.must("POST", "/_session/%s/_keepalive" % session)
            server.must("POST", "/_transaction/%s/_commit" % transaction)
            self.assertEqual(len(server.must("GET", "/_lock")["locks"]), 1)

    def test_machine_crash_rolls_back_open_transactions(self):
        """Requests of open transactions may be missing then, so they are rolled back and say why. Sessions and locks stay."""
        with Server(*PATIENT) as server:
            server.must("PUT", "/fs/_doc/1", {"n": 1})
            session = server.must("POST", "/_session", {"ttl": "10m"})["session"]
            server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs", "id": "l"}]})
            transaction = server.must("POST", "/_transaction", {"timeout": "10m"})["transaction"]
            server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 2})
            server.kill()
            with open(os.path.join(server.data, "boot"), "w") as boot:
                boot.write("another boot of the machine\n")
            server.start()
            self.assertEqual(server.must("GET", "/fs/_doc/1")["_source"], {"n": 1})
            status, reply = server.ask("POST", "/_transaction/%s/_commit" % transaction)
            self.assertEqual((status, reply["error"]["type"]), (409, "transaction_aborted_exception"))
            self.assertIn("machine", reply["error"]["reason"])
            self.assertEqual(len(server.must("GET", "/_lock")["locks"]), 1)
            server.must("PUT", "/fs/_doc/1", {"n": 3})


if __name__ == "__main__":
    unittest.main()
