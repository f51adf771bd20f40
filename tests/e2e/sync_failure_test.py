#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A single host whose disk fails a sync ends at once with status 70, and its next start finds every acknowledged write (docs/operating.md, exit statuses).

Method: fsync() and fdatasync() of the server fail with EIO (syncs.py) at a random time while clients write: documents and bulks, as in crash_test.py, and
transactions. After the start the acknowledged writes are there; a write without a reply is there as a whole, or not at all. A start whose syncs fail is
refused, and changes nothing.
"""
import os
import random
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from acknowledged import WRITERS, Client, Writer, create_documents, end_clients, raise_failure, verify_documents  # noqa: E402
from server import PROGRAM, Server, check_sound  # noqa: E402
import skips  # noqa: E402
from syncs import Syncs  # noqa: E402
from waiting import until  # noqa: E402

FAILURES = 20 if os.environ.get("TIDELOCK_TEST_LONG") else 3
ENDED_ITSELF = 70
TOGETHER = 3  # documents of a transaction


class SyncedServer(Server):
    """A server whose syncs the test answers."""

    def __init__(self, *options):
        super().__init__(*options, replay=False)
        self.syncs = Syncs()

    def popen(self, command, **more):
        return self.syncs.start_here(command, **more)

    def refuse_start(self):
        """Starts the program, which must end by itself before it is ready. Returns: its exit status."""
        with self.popen([PROGRAM, "serve", "--data", self.data, "--listen", "127.0.0.1:%d" % self.port, *self.options],
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=self.environment, text=True) as process:
            line = process.stdout.readline()
            if line:
                process.kill()
            assert not line, "it started without a sync: " + line
        return process.returncode


class Transactions(Client):
    """Puts a number, which rises, into all its documents in one transaction, again and again. `number`: the last one that is acknowledged."""

    def step(self):
        transaction = self.ask("POST", "/_transaction")["transaction"]
        for i in range(TOGETHER):
            self.ask("PUT", "/together/_doc/%d?transaction=%s" % (i, transaction), {"n": self.number + 1})
        self.ask("POST", "/_transaction/%s/_commit" % transaction)
        self.number += 1
        self.acknowledged += 1


class Load:
    """Clients that write until their connections break."""

    def __init__(self, server, state, number, rng):
        """`state`: of the writers; `number`: of the last transaction."""
        self.transactions = Transactions(server, number)
        self.all = [*[Writer(server, n, state, rng.random()) for n in range(WRITERS)], self.transactions]
        for one in self.all:
            one.start()

    def await_acknowledged(self, wanted):
        """Waits until so many writes are acknowledged, with a transaction among them."""
        until(lambda: self.transactions.acknowledged > 0 and sum(one.acknowledged for one in self.all) >= wanted
              or not all(one.is_alive() for one in self.all), "%d writes are acknowledged" % wanted)
        raise_failure(self.all)

    def end(self):
        """Waits until the connections are broken. Returns: the number of the last acknowledged transaction."""
        end_clients(self.all)
        return self.transactions.number


def prepare(server):
    """Returns: the state of all documents of the writers."""
    for i in range(TOGETHER):
        server.must("PUT", "/together/_doc/%d" % i, {"n": 0})
    return create_documents(server)


def verify_all(server, state, number):
    """`number`: of the last acknowledged transaction. Returns: that of the last one that is there."""
    server.end_owners()  # an open transaction continues after a restart, and has locks
    verify_documents(server, state)
    found = {server.must("GET", "/together/_doc/%d" % i)["_source"]["n"] for i in range(TOGETHER)}
    assert len(found) == 1, "a transaction is there in part: %s" % found
    last = found.pop()
    assert last in (number, number + 1), "the last acknowledged transaction is %d, and %d is there" % (number, last)
    return last


def can_fail_syncs():
    process = Syncs().start_here(["true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return process.wait() == 0


@unittest.skipUnless(can_fail_syncs(), "no filter of system calls can be installed here")
class FailedSync(unittest.TestCase):
    def fail_syncs(self, *options):
        rng = random.Random(len(options))
        number = 0
        with SyncedServer(*options) as server:
            state = prepare(server)
            for failure in range(FAILURES):
                load = Load(server, state, number, rng)
                load.await_acknowledged(rng.randrange(2, 60))
                server.syncs.set(fail=True)
                status = server.process.wait()
                number = load.end()
                self.assertEqual(status, ENDED_ITSELF, server.last_errors())
                self.assertIn("Nothing that was not durable has been acknowledged; ending", server.last_errors())
                server.kill()  # has ended; closes what belongs to it
                if failure == 0:
                    self.assertIn(server.refuse_start(), (1, ENDED_ITSELF))
                server.syncs.set()
                check_sound(server.data)
                server.start()
                number = verify_all(server, state, number)
            self.assertEqual(server.stop(), 0, server.last_errors())
            check_sound(server.data)

    def test_log(self):
        self.fail_syncs()

    def test_log_and_checkpoints(self):
        """So small checkpoints that one is usually being written."""
        self.fail_syncs("--checkpoint", "1m", "--write-buffer", "256k", "--recovery-time", "10ms")


if __name__ == "__main__":
    skips.main(verbosity=2)
