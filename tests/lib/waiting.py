# SPDX-License-Identifier: Apache-2.0
"""Requests in threads of their own, and waiting for conditions."""
import http.client
import json
import os
import signal
import sys
import threading
import time

REPORT_SECONDS = 20
POLL_SECONDS = 0.01, 0.1  # between two polls of a condition, at the begin of a wait and later


class Waiting(threading.Thread):
    """One request on a connection of its own. After its end: `status` and `reply`; the error as `reply` if the connection broke."""

    def __init__(self, server, method, path, body=None, headers=None):
        super().__init__()
        self.server, self.method, self.path, self.body, self.headers = server, method, path, body, headers
        self.status = self.reply = None
        self.start()

    def run(self):
        connection = self.server.connect()
        try:
            response = self.server.request(self.method, self.path, self.body, self.headers, connection)
            self.status, self.reply = response.status, json.loads(response.body)
        except (OSError, http.client.HTTPException) as error:
            self.reply = str(error)
        finally:
            connection.close()


def until(condition, what):
    """Waits until the condition holds, without a limit but the test's timeout. A long wait is reported on standard error, so that
    the output of a test that timed out names the condition. It polls the less often the longer it waits: a poll is mostly a request,
    which under a sanitizer takes some milliseconds of processor time."""
    begin = time.monotonic()
    report = begin + REPORT_SECONDS
    while not condition():
        if time.monotonic() > report:
            print("still waiting after %.0f s until %s" % (time.monotonic() - begin, what), file=sys.stderr, flush=True)
            report += REPORT_SECONDS
        time.sleep(min(max((time.monotonic() - begin) / 20, POLL_SECONDS[0]), POLL_SECONDS[1]))


def stop_process(process):
    """Stops a subprocess.Popen with SIGSTOP. Until all its threads have stopped, which on a busy machine takes a while, it may still answer."""
    process.send_signal(signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        pass  # it has ended, and another thread has its status
