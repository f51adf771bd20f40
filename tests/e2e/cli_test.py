#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program's commands, as a person at a shell meets them: what they print, and their exit statuses."""
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server, check  # noqa: E402

USAGE = 64


def run(*arguments, server=None, timeout=60, **options):
    environment = dict(os.environ, **options.pop("environment", {}))
    if server:
        environment["TIDELOCK_URL"] = server.url
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=timeout, env=environment, **options)


def expect(done, status, *texts):
    """The exit status, and texts that standard output or error must have."""
    said = done.stdout + done.stderr
    assert done.returncode == status, "%s: status %d, not %d: %s" % (done.args, done.returncode, status, said)
    for text in texts:
        assert text in said, "%s: '%s' is not in: %s" % (done.args, text, said)


def make_tree(files=3000):
    """A tree with everything that names can have."""
    root = tempfile.mkdtemp(prefix="tidelock-tree-")
    for i in range(files):
        folder = os.path.join(root, "d%02d" % (i % 37), "sub")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "file %d.txt" % i), "w", encoding="utf-8") as file:
            file.write("content of %d\n" % i)
    for name in ("quote\".txt", "back\\slash", "new\nline", "tab\t", "ümlaut", "*", "%2F", "'", "{json:}"):
        with open(os.path.join(root, name), "w", encoding="utf-8"):
            pass
    with open(os.path.join(os.fsencode(root), b"broken\xff.txt"), "wb"):
        pass
    os.symlink("/nowhere", os.path.join(root, "link"))
    os.mkfifo(os.path.join(root, "fifo"))
    count = 1 + sum(len(folders) + len(files) for _, folders, files in os.walk(root))
    return root, count


class Usage(unittest.TestCase):
    def test_help(self):
        expect(run("--help"), 0, "Usage: tidelock COMMAND", "serve", "import")
        expect(run("--version"), 0, "tidelock ")
        for name in ("serve", "check", "import", "ls", "lock", "locks", "status"):
            expect(run(name, "--help"), 0, "Usage: tidelock %s" % name, "Example")

    def test_output_that_cannot_be_written(self):
        """What was not printed was not done, whatever was to be printed."""
        def fill(*arguments, status=1, text="cannot write to standard output"):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertIn(text, done.stderr)

        fill("--help")
        fill("--version")
        fill("serve", "--help")
        with Server() as server:
            server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
            server.must("PUT", "/fs/_doc/1", {"path": "/a/b", "name": "b"})
            for arguments in (("ls", "fs:/a"), ("locks",), ("status",)):
                expect(run(*arguments, server=server), 0)
                fill(*arguments, "--url", server.url)

    def test_wrong_usage(self):
        expect(run(), USAGE, "Usage")
        expect(run("sevre"), USAGE, "there is no command 'sevre'", "did you mean 'serve'?")
        expect(run("start"), USAGE, "there is no command 'start'", "did you mean 'serve'?")
        expect(run("sattus"), USAGE, "did you mean 'status'?")
        assert "did you mean" not in run("frobnicate").stderr
        expect(run("serve", "--lisen", "x"), USAGE, "unrecognized option '--lisen'; did you mean '--listen HOST:PORT'?")
        expect(run("serve", "--port", "9200"), USAGE, "unrecognized option '--port'; did you mean '--listen HOST:PORT'?")
        expect(run("serve", "--data", "x", "--host=::1"), USAGE, "'--host'; did you mean '--listen HOST:PORT'?")
        expect(run("status", "--host", "::1"), USAGE, "'--host'; did you mean '--url URL'?")
        expect(run("serve", "--zzzzzz"), USAGE, "unrecognized option '--zzzzzz'")
        expect(run("serve", "--history", "1 parsec"), USAGE, "--history: '1 parsec' is no duration; write it as")
        expect(run("serve", "--max-body", "big"), USAGE, "--max-body: 'big' is no size")
        expect(run("serve", "--listen", "127.0.0.1:70000"), USAGE, "'70000' is no number from 0 to 65535")
        expect(run("serve", environment={"TIDELOCK_CACHE": "lots"}), USAGE, "--cache: 'lots' is no size")
        expect(run("lock", "--nonblock", "fs", "--", "true"), USAGE, "'--nonblock'; did you mean '--wait TIME'?")
        expect(run("locks", "--watch", "--interval", "0"), USAGE, "not more often than every 100ms")
        expect(run("import"), USAGE, "which DIR?")
        expect(run("import", "/usr"), USAGE, "into which index?")
        expect(run("lock"), USAGE, "a lock on what?")
        expect(run("lock", "fs"), USAGE, "which COMMAND")
        expect(run("lock", "fs", "--"), USAGE, "which COMMAND")
        expect(run("lock", "--", "echo", "hi"), USAGE, "a lock on what? (INDEX, INDEX:PATH or /, before the --)")
        expect(run("lock", "--wait", "10s", "--", "echo", "hi"), USAGE, "a lock on what?")


    def test_no_server(self):
        advice = "is a server running? `tidelock serve` starts one, --url names another"
        with Server() as server:
            url = server.url
        folder = tempfile.mkdtemp()
        for arguments in (("status",), ("locks",), ("ls", "fs"), ("import", folder, "--index", "fs"), ("lock", "fs", "--", "true")):
            done = run(*arguments, "--url", url) if arguments[0] != "lock" else run("lock", "--url", url, *arguments[1:])
            assert done.returncode not in (0, USAGE), done
            assert advice in done.stderr, done
        os.rmdir(folder)


class Serve(unittest.TestCase):
    def test_serve_twice(self):
        with Server() as server:
            expect(run("serve", "--data", server.data, "--listen", "127.0.0.1:0"), 1, "in use by another process: a server, or a check")
            expect(run("check", "--data", server.data), 1, "in use by another process")
            other = tempfile.mkdtemp()
            expect(run("serve", "--data", other, "--listen", "127.0.0.1:%d" % server.port), 1,
                   "Address already in use: a server runs there; --listen names another port, 0 for a free one")
            shutil.rmtree(other)

    def test_serve_where_it_cannot(self):
        expect(run("serve", "--data", "/proc/nothing", "--listen", "127.0.0.1:0"), 1, "/proc/nothing")
        expect(run("serve", "--data", "/dev/null", "--listen", "127.0.0.1:0"), 1, "/dev/null")
        other = tempfile.mkdtemp()
        expect(run("serve", "--data", other, "--listen", "no.such.host.invalid:0"), 1, "cannot listen on no.such.host.invalid")
        expect(run("serve", "--data", other, "--listen", "192.0.2.1:0"), 1, "it is none of this host's; 0.0.0.0 stands for all of them")
        shutil.rmtree(other)

    def test_environment(self):
        with Server("--log-level", "debug", environment={"TIDELOCK_MAX_BODY": "100", "TIDELOCK_CLUSTER_NAME": "blue"}) as server:
            assert server.must("GET", "/")["cluster_name"] == "blue"
            status, reply = server.ask("PUT", "/a/_doc/1", {"text": "x" * 200})
            assert status == 413, (status, reply)

    def test_what_the_log_says(self):
        """Who removed what, at info; every request at debug. A hang-up of the terminal ends nothing."""
        with Server() as server:
            for index in "a", "b":
                server.must("PUT", "/%s/_doc/1" % index, {})
            session = server.must("POST", "/_session", {})["session"]
            server.must("DELETE", "/*?session=" + session, headers={"X-Opaque-Id": "night shift"})
            server.process.send_signal(signal.SIGHUP)
            server.must("GET", "/")
            self.assertEqual(server.stop(), 0)
            said = server.errors()
            for index in "a", "b":
                self.assertRegex(said, r"info: index \[%s\] deleted by 127\.0\.0\.1:\d+, session %s, night shift\n" % (index, session))
            self.assertRegex(said, r"info: DELETE /\*\?session=.*: 200 by 127\.0\.0\.1")
            self.assertIn("info: SIGHUP", said)
            self.assertNotIn("debug", said)
            server.options = ["--log-level", "debug"]
            server.start()
            server.must("PUT", "/fs/_doc/1", {})
            server.ask("PUT", "/BAD/_doc/1", {})
            self.assertEqual(server.stop(), 0)
            self.assertRegex(server.errors(), r"debug: PUT /fs/_doc/1: 201 by 127\.0\.0\.1:\d+\n")
            self.assertRegex(server.errors(), r"debug: PUT /BAD/_doc/1: 400 by 127\.0\.0\.1:\d+: Invalid index name \[BAD\]")

    def test_locks_of_what_is_not_there(self):
        with Server() as server:
            server.must("PUT", "/fs", None)
            expect(run("locks", "fs", server=server), 0, "nobody holds")
            expect(run("locks", "nosuch", server=server), 1, "there is no index 'nosuch'")

    def test_stop_lets_requests_end(self):
        with Server() as server:
            server.must("PUT", "/a/_doc/1", {"n": 0})
            answers = []

            def client():
                connection = server.connect()
                while True:
                    try:
                        connection.request("PUT", "/a/_doc/1", '{"n": 1}', {"Content-Type": "application/json"})
                        response = connection.getresponse()
                        response.read()
                        answers.append(response.status)
                        if response.status == 503:
                            return
                    except (OSError, http.client.HTTPException) as end:
                        answers.append(type(end).__name__)
                        return

            threads = [threading.Thread(target=client) for _ in range(8)]
            for thread in threads:
                thread.start()
            time.sleep(0.2)
            assert server.stop() == 0
            for thread in threads:
                thread.join()
            written = answers.count(200)
            server.start()
            # A write in flight was either answered, or neither answered nor done beyond the one on the wire.
            version = server.must("GET", "/a/_doc/1")["_version"]
            assert written + 1 <= version <= written + 1 + len(threads), (written, version, set(map(str, answers)))
            assert server.stop(signal.SIGINT) == 0
            server.start()


class Import(unittest.TestCase):
    def test_import(self):
        root, count = make_tree()
        with Server() as server:
            expect(run("import", root, "--index", "fs", "--root", "/clinton", "--contents", server=server), 0,
                   "%d documents created in 'fs', 0 updated, 0 already there, 0 failed" % count)
            assert server.must("GET", "/_cat/count/fs?format=json")[0]["count"] == str(count)
            expect(run("import", root, "--index", "fs", "--root", "/clinton", "--quiet", server=server), 0,
                   "0 documents created in 'fs', 0 updated, %d already there" % count)
            expect(run("import", root, "--index", "fs", "--root", "/clinton", "--update", "-j", "1", "--contents", server=server), 0,
                   "0 documents created in 'fs', %d updated" % count)
            for name in ("quote\".txt", "new\nline", "ümlaut", "*", "broken\ufffd.txt", "link", "fifo"):
                hits = server.must("POST", "/fs/_search", {"query": {"term": {"path": "/clinton/" + name}}})["hits"]["hits"]
                assert len(hits) == 1 and hits[0]["_source"]["name"] == name, (name, hits)
            found = server.must("POST", "/fs/_search", {"query": {"term": {"path": "/clinton/d00/sub/file 0.txt"}}})["hits"]["hits"]
            source = found[0]["_source"]
            status = os.lstat(os.path.join(root, "d00", "sub", "file 0.txt"))
            assert source["size"] == status.st_size and source["type"] == "file", source
            assert source["mode"] == "%04o" % (status.st_mode & 0o7777) and source["content"] == "content of 0\n", source
            assert server.must("POST", "/fs/_count", {"query": {"term": {"path.tree": "/clinton/d01"}}})["count"] == 2 + 3000 // 37 + 1
            expect(run("ls", "fs:/clinton/d00", server=server), 0, "sub/\n")
            listed = run("ls", "fs:/clinton", server=server)
            assert sorted(listed.stdout.splitlines()[:3]) == sorted(["%2F", "'", "*"]), listed.stdout[:200]
            expect(run("ls", "fs:/clinton/nowhere", server=server), 1, "nothing in 'fs' lies below")
            expect(run("status", server=server), 0, "fs", str(count))
            server.stop()
            status, text = check(server.data)
            assert status == 0 and "%d documents" % count in text, text
            server.start()
        shutil.rmtree(root)

    def test_import_that_is_interrupted(self):
        root, count = make_tree(6000)
        with Server() as server:
            job = subprocess.Popen([PROGRAM, "import", root, "--index", "fs", "-q", "--url", server.url], stdout=subprocess.DEVNULL)
            time.sleep(0.05)
            job.kill()
            job.wait()
            port = server.port
            server.kill()
            server.port_wanted = port
            # The server comes back while the import is trying.
            job = subprocess.Popen([PROGRAM, "import", root, "--index", "fs2", "-q", "--url", server.url], stderr=subprocess.PIPE, text=True)
            job.communicate()
            assert job.returncode == 1  # it does not even make the index without a server
            server.start()
            job = subprocess.Popen([PROGRAM, "import", root, "--index", "fs", "-q", "--jobs", "2", "--url", server.url],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(0.03)
            server.kill()
            server.start()
            out, errors = job.communicate(timeout=60)
            if job.returncode != 0:  # killed before the index was seen
                expect(run("import", root, "--index", "fs", "-q", server=server), 0)
            assert server.must("GET", "/_cat/count/fs?format=json")[0]["count"] == str(count), (out, errors)
        shutil.rmtree(root)

    def test_import_errors(self):
        with Server() as server:
            expect(run("import", "/no/such/place", "--index", "fs", server=server), 1, "/no/such/place: No such file")
            expect(run("import", "/etc/apt", "--index", "UPPER", server=server), 1, "cannot make the index 'UPPER'", "lowercase")
        expect(run("import", "/etc/apt", "--index", "fs", "--url", "http://127.0.0.1:1"), 1, "cannot make the index")
        expect(run("status", "--url", "http://127.0.0.1:1"), 1, "http://127.0.0.1:1")


class Check(unittest.TestCase):
    def test_check(self):
        with Server() as server:
            server.must("PUT", "/a/_doc/1", {"n": 1})
            status, text = check(server.data)
            assert status == 1 and "in use" in text, text
            server.stop()
            assert check(server.data)[0] == 0
            server.start()
        empty = tempfile.mkdtemp()
        assert check(os.path.join(empty, "nothing"))[0] == 1
        shutil.rmtree(empty)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
