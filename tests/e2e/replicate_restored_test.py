#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A source that was restored from a backup: `tidelock replicate` finds that the source lacks changes that it has copied, and compares everything."""
import os
import re
import shutil
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replicate_test  # noqa: E402
from replicate_hosts_test import Host  # noqa: E402
from replicate_standin_test import Target  # noqa: E402
from replicate_test import until  # noqa: E402
from server import Server  # noqa: E402

SAID = "the source was restored, and lacks changes that the copy has seen: everything is compared"


class Gateway(Host):
    """Keeps its connections while the source is away, and answers 504 there."""
    unanswered = 0  # requests for the feed

    def serve(self, near):
        for request in self.requests(near):
            path, reply = request.split(b" ", 2)[1], b""
            streams = b"attach" in path  # its reply has no end
            try:
                with socket.create_connection(("127.0.0.1", self.target)) as far:
                    far.sendall(request if streams else request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
                    for data in iter(lambda: far.recv(1 << 16), b""):
                        reply += data
                        if streams:
                            near.sendall(data)
            except OSError:
                pass
            if streams:
                near.close()
                return
            if not reply:
                self.unanswered += path.startswith(b"/_changes?since")
                reply = b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n"
            try:
                near.sendall(re.sub(rb"(?i)connection: close\r\n", b"", reply, count=1))
            except OSError:
                return


class Restored(replicate_test.Copy):
    """Each test has a source of its own."""
    new_target = Target

    @classmethod
    def setUpClass(cls):
        cls.target = cls.new_target().start()
        cls.addClassCleanup(cls.target.close)

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.source = Server("--history", "1h", "--backups", self.folder, replay=False).start()  # its log begins with the backup
        self.addCleanup(self.source.close)
        super().setUp()

    def write(self, n):
        """Changes one document, deletes one, and makes one."""
        self.source.must("PUT", "/fs/_doc/changed", {"n": n})
        self.source.must("DELETE", "/fs/_doc/%d" % n)
        self.source.must("PUT", "/fs/_doc/new-%d" % n, {"n": n})

    def back_up(self):
        self.source.must("POST", "/_backup/early")

    def restore(self):
        """The backup, in which another document is written then."""
        self.source.kill()
        shutil.rmtree(self.source.data)
        shutil.copytree(os.path.join(self.folder, "early"), self.source.data)
        self.source.start()
        self.source.end_owners()
        self.source.must("PUT", "/fs/_doc/after", {"n": 1})

    def test_copied_again(self):
        """Documents that the backup has in an earlier state, has not, or still has, are repaired; later runs compare nothing."""
        self.fill(20)
        self.once()
        self.write(1)
        self.back_up()
        self.write(2)
        self.once()
        self.restore()
        self.assertIn(SAID, self.once())
        self.assert_equal()
        self.write(3)
        self.assertNotIn("compared", self.once())
        self.assert_equal()

    def test_killed_while_it_compares(self):
        """The next run compares everything, although the one before it has reported its place to the restored source."""
        self.fill(20)
        self.once()
        self.back_up()
        self.write(2)
        self.once()
        self.restore()
        with replicate_test.Meddler(self.target.port, lambda method, path, body: "drop" if path.startswith("/_bulk") else "pass") as meddler:
            process = self.follow(to=meddler.url)
            until(lambda: "trying again" in self.messages(process) or process.poll() is not None, "it repairs")
            self.assertIn(SAID, self.messages(process))
            self.kill_copy(process)
        self.assertIn(SAID, self.once())
        self.assert_equal()

    def put_back(self):
        """The backup is there again, with the session of the copy, which continues with it."""
        self.source.kill()
        shutil.rmtree(self.source.data)
        shutil.copytree(os.path.join(self.folder, "early"), self.source.data)
        self.source.start()

    def test_while_it_follows(self):
        """The backup has the session of the copy."""
        self.fill(20)
        process = self.follow()
        self.await_equal()
        self.back_up()
        self.write(2)
        self.await_equal()
        self.put_back()
        self.source.must("PUT", "/fs/_doc/after", {"n": 1})
        self.await_equal()
        self.assertIn(SAID, self.messages(process))

    def test_behind_a_proxy_that_keeps_its_connections(self):
        """While the source is away a proxy answers 504, on the connection that the copy has: so that is never new."""
        self.fill(20)
        with Gateway(self.source.port) as gateway:
            process = self.follow("--from", gateway.url)
            self.await_equal()
            self.back_up()
            self.write(2)
            self.await_equal()
            self.source.kill()
            until(lambda: gateway.unanswered or process.poll() is not None, "the feed is answered by the proxy")
            shutil.rmtree(self.source.data)
            shutil.copytree(os.path.join(self.folder, "early"), self.source.data)
            self.source.start()
            self.source.must("PUT", "/fs/_doc/after", {"n": 1})
            self.await_equal()
            self.assertIn(SAID, self.messages(process))

    def test_not_restored(self):
        """A source that was killed, and one whose feed does not reach back to the last change any more, have lost nothing."""
        self.fill(20)
        self.once()
        self.write(1)
        self.assertNotIn("compared", self.once())
        self.source.kill()
        self.source.start()
        self.assertNotIn("compared", self.once())
        seen = self.target.must("GET", "/.tidelock-replicate/_doc/default")["_source"]["seen"]
        self.restart_source("--feed", "1s")

        def is_cut():
            self.source.must("PUT", "/_scripts/later", {"script": {"lang": "painless", "source": "1"}})
            return self.source.ask("GET", "/_changes?since=%d" % (seen - 1))[0] == 410
        until(is_cut, "the feed is cut")
        self.source.must("PUT", "/fs/_doc/later", {"n": 1})
        self.assertNotIn(SAID, self.once())
        self.assert_equal()

    def test_index_deleted_meanwhile(self):
        """The feed does not show the changes of a deleted index any more, the newest one of the copy among them: nothing is lost."""
        self.fill(20)
        self.once()
        self.write(1)
        self.once()
        self.source.must("DELETE", "/fs")
        self.source.must("PUT", "/other/_doc/1", {"n": 1})
        self.assertNotIn("compared", self.once("--delete-indices"))
        self.assert_equal()

    def test_closed_index_is_there_again(self):
        """An index that was deleted after the backup is closed in the target, and opened when the source has it again; a later delete closes it again."""
        self.fill(20)
        self.source.must("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "all"}}]})
        self.once()
        self.write(1)
        self.back_up()
        self.source.must("PUT", "/fs/_doc/later", {"n": 1})
        self.source.must("DELETE", "/fs")
        self.assertIn("fs is closed", self.once())
        self.assertTrue(self.target.indices["fs"].closed)
        self.restore()
        self.assertIn("fs is opened", self.once())
        self.assert_equal()
        self.assertEqual(set(self.target.indices["fs"].aliases), {"all"})
        self.assertNotIn("opened", self.once())
        self.source.must("DELETE", "/fs")
        self.assertIn("fs is closed", self.once())
        self.assertTrue(self.target.indices["fs"].closed)

    def test_index_that_an_operator_closed(self):
        """The copy opens no index that it has not closed: it waits."""
        self.fill(20)
        self.once()
        self.target.must("POST", "/fs/_close")
        process = self.follow(fast=True)
        self.source.must("PUT", "/fs/_mapping", {"properties": {"later": {"type": "keyword"}}})
        self.source.must("PUT", "/fs/_doc/later", {"n": 1})
        until(lambda: "an index is closed" in self.messages(process) or process.poll() is not None, "it waits")
        self.assertTrue(self.target.indices["fs"].closed)
        self.target.must("POST", "/fs/_open")
        self.await_equal()

    def test_index_of_lost_changes_deleted(self):
        """A restored source whose index was deleted is not taken for one that has lost nothing."""
        self.source.must("PUT", "/kept/_doc/1", {"n": 1})
        self.fill(20)
        self.once()
        self.back_up()
        self.source.must("PUT", "/kept/_doc/2", {"n": 1})
        self.write(1)
        self.once()
        self.restore()
        self.source.must("DELETE", "/fs")
        self.assertIn(SAID, self.once("--delete-indices"))
        self.assert_equal()


if __name__ == "__main__":
    unittest.main(verbosity=2)
