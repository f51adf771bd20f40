# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for their answer in a thread of their own, and waiting for what must come about."""
import http.client
import json
import threading
import time


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


def until(condition, what, seconds=20):
    """Asks again and again; says what was waited for when it does not come about."""
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise AssertionError("in vain: waited until " + what)
        time.sleep(0.01)
