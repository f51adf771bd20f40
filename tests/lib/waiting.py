# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for their answer in a thread of their own, and waiting for what must come about."""
import http.client
import json
import sys
import threading
import time

REPORT_SECONDS = 20


class Waiting(threading.Thread):
    """One request on a connection of its own: `status` and `reply` when it has ended, the error as `reply` when it broke."""

    def __init__(self, server, method, path, body=None):
        super().__init__()
        self.server, self.method, self.path, self.body = server, method, path, body
        self.status = self.reply = None
        self.start()

    def run(self):
        connection = self.server.connect()
        try:
            response = self.server.request(self.method, self.path, self.body, connection=connection)
            self.status, self.reply = response.status, json.loads(response.body)
        except (OSError, http.client.HTTPException) as error:
            self.reply = str(error)
        finally:
            connection.close()


def until(condition, what):
    """Asks again and again until the condition holds. The only bound is the time limit of the test; a long wait is reported on
    standard error, so that the output of a test that ran out of time names it."""
    begin = time.monotonic()
    report = begin + REPORT_SECONDS
    while not condition():
        if time.monotonic() > report:
            print("still waiting after %.0f s until %s" % (time.monotonic() - begin, what), file=sys.stderr, flush=True)
            report += REPORT_SECONDS
        time.sleep(0.01)
