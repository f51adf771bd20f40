# SPDX-License-Identifier: Apache-2.0
"""A neighbour: a client that takes no part in an attack and repeatedly requests GET /, puts a document and gets it.

It runs in a separate process, so that it shares no interpreter with the attacker. In every run each of its requests must
succeed. Its latency is limited only by `make test-long` (TIDELOCK_TEST_LONG): the promise is a reply within half a second. On a
loaded machine the kernel may schedule a process later than that, so nine of ten replies must be in time, and none may take longer
than the patience of the test. Under a sanitizer the limit is multiplied.

    neighbour.py PORT PATH AGAIN    the neighbour itself: says "served" after its first round of requests, ends when its standard input does
"""
import http.client
import json
import os
import select
import statistics
import subprocess
import sys
import time

IN_TIME = 0.5  # seconds
PAUSE = 0.01  # seconds between two rounds of requests
FAILURES_MAX = 3
MEASURING = bool(os.environ.get("TIDELOCK_TEST_LONG"))


class Neighbour:
    """`again`: a reply of 429 is no failure: the request is sent again until it succeeds."""

    def __init__(self, server, path, slowness=1, again=False):
        self.in_time = IN_TIME * slowness
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(server.port), path, "1" if again else "0"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if (line := self.process.stdout.readline()) != "served\n":
            self.process.communicate()
            why = json.loads(line)["failures"] if line else "its process ended with status %d" % self.process.returncode
            raise AssertionError("the neighbour was not served before the attack: %s" % why)

    def stop(self):
        """Ends it after one more round of requests, which is served after the attack."""
        found = json.loads(self.process.communicate()[0])
        self.waits, self.failures, self.tries_again = found["waits"], found["failures"], found["tries_again"]

    @property
    def served(self):
        return len(self.waits)

    @property
    def longest(self):
        return max(self.waits, default=0.0)

    @property
    def late(self):
        return sum(wait > self.in_time for wait in self.waits)

    def report(self):
        return "the neighbour waited %.0f ms in the middle and %4.0f ms at most; %d of %d answers took longer than %.1f s" % (
            1e3 * statistics.median(self.waits or [0]), 1e3 * self.longest, self.late, self.served, self.in_time)

    def judge(self, patience):
        """Raises unless every request succeeded and, where times are measured, in time."""
        assert self.failures == [], "the neighbour was not served: %s" % self.failures
        if MEASURING:
            assert self.tries_again <= self.served, "the neighbour had to try again %d times for %d answers" % (self.tries_again, self.served)
            assert self.late <= max(1, self.served // 10), self.report()
            assert self.longest < patience, self.report()


def ask_round(connection, path, again, found):
    for method, where, body in (("GET", "/", None), ("PUT", path, '{"n":%d}' % len(found["waits"])), ("GET", path, None)):
        begin = time.monotonic()
        while True:
            connection.request(method, where, body, {"Content-Type": "application/json"} if body else {})
            response = connection.getresponse()
            reply = response.read()
            if response.status != 429 or not again:
                break
            found["tries_again"] += 1
            time.sleep(2 * PAUSE)
        found["waits"].append(time.monotonic() - begin)
        if response.status not in (200, 201):
            found["failures"].append("%s: %d %s" % (where, response.status, reply[:300]))


def main(port, path, again):
    found = {"waits": [], "failures": [], "tries_again": 0}
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    try:
        ending = False
        while len(found["failures"]) < FAILURES_MAX:
            ask_round(connection, path, again == "1", found)
            if len(found["waits"]) == 3:
                if found["failures"]:
                    break
                print("served", flush=True)
            if ending:
                break
            ending = bool(select.select([sys.stdin], [], [], PAUSE)[0])
    except (OSError, http.client.HTTPException) as error:
        found["failures"].append(repr(error))
    connection.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
