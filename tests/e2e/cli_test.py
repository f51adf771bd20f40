#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program's commands as used from a shell: their output and exit statuses."""
import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, ROOT, Server, check  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
from waiting import until  # noqa: E402

USAGE = 64


def run(*arguments, server=None, **options):
    environment = dict(os.environ, **options.pop("environment", {}))
    if server:
        environment["TIDELOCK_URL"] = server.url
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment, **options)


def expect(done, status, *texts):
    """The exit status, and texts that standard output or error must have."""
    said = done.stdout + done.stderr
    assert done.returncode == status, "%s: status %d, not %d: %s" % (done.args, done.returncode, status, said)
    for text in texts:
        assert text in said, "%s: '%s' is not in: %s" % (done.args, text, said)


LONG = bool(os.environ.get("TIDELOCK_TEST_LONG"))
FILES = 3000 if LONG else 600


def make_tree(files=FILES):
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


@contextlib.contextmanager
def answering(body, **headers):
    """Runs a server that answers each request with 200, the body and the headers. Yields: its URL."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            for name, value in dict(headers, Content_Length=str(len(body))).items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

        def log_message(self, *_):
            pass

    class Listener(http.server.ThreadingHTTPServer):
        daemon_threads = True

    with Listener(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield "http://127.0.0.1:%d" % listener.server_address[1]
        finally:
            listener.shutdown()
            thread.join()


class Usage(unittest.TestCase):
    def test_help(self):
        expect(run("--help"), 0, "Usage: tidelock COMMAND", "serve", "import")
        version = run("--version")
        expect(version, 0, "tidelock ")
        for number, name in enumerate(self.commands()):
            reported = run(name, "--help")
            expect(reported, 0, "Usage: tidelock %s" % name, "Example")
            others = (("help", name), (name, "-h"), (name, "-?"))
            versions = ((name, "--version"), (name, "-V"))
            # In the gate each command has one of them, and each of them several commands: all have the same table.
            for asked in others if LONG else others[number % 3:][:1]:
                self.assertEqual(run(*asked).stdout, reported.stdout, asked)
            for asked in versions if LONG else versions[number % 2:][:1]:
                self.assertEqual(run(*asked).stdout, version.stdout, asked)

    @staticmethod
    def commands():
        """Returns: the names of all commands, from the help of the program."""
        names = re.findall(r"^  ([a-z]+) +\S", run("--help").stdout.split("\n`tidelock COMMAND")[0], re.M)
        assert len(names) >= 15, names
        return names

    def test_help_examples_can_be_pasted(self):
        """No example is wrapped to a second line that a shell would take for another command; each names options that exist."""
        helps = {name: run(name, "--help").stdout for name in self.commands()}
        options = {name: set(re.findall(r"^(?:  -., |      )(--[a-z-]+)", text.partition("--version")[0], re.M)) for name, text in helps.items()}
        for name, text in helps.items():
            self.assertNotRegex(text, r"[ \t]\n", name)
            lines = re.split(r"^Examples?:\n", text, flags=re.M)[1].splitlines()
            self.assertEqual([line for line in lines if not line.startswith("  ") or len(line) > 79], [], name)
            for example in "\n".join(lines).replace("\\\n", " ").splitlines():
                for command in re.split(r" -- | && | \| ", example):
                    called = re.search(r"\btidelock ([a-z]+)", command)
                    given = set(re.findall(r" (--[a-z-]+)", command))
                    self.assertEqual(given - options[called.group(1)] if called else set(), set(), example)

    def test_docs_have_all_options(self):
        """docs/commands.md is what --help says; docs/operating.md has each option of the server."""
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "commands-doc"), PROGRAM, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_unreachable_server(self):
        nowhere = ("--url", "http://user:s3cret@127.0.0.1:1")
        for command in (("status", *nowhere), ("status", "--json", *nowhere), ("locks", *nowhere), ("ls", *nowhere, "fs"), ("tree", *nowhere, "fs"), ("import", *nowhere, "--index", "fs", "/etc"),
                        ("lock", *nowhere, "fs", "--", "true")):
            done = run(*command)
            expect(done, 69, "is a server running?")
            self.assertNotIn("s3cret", done.stdout + done.stderr, command)

    def test_another_program_at_the_url(self):
        """A page or an empty object of another server is not taken for the success of a command."""
        for body in (b"<html>It works!</html>", b"{}"):
            with answering(body) as url:
                for command in (("status",), ("status", "--json"), ("locks",), ("hosts",), ("ls", "fs:/a"), ("tree", "fs"), ("mv", "fs", "/a", "/b"), ("changes",), ("backup", "monday"),
                                ("import", "/etc/apt", "--index", "fs")):
                    expect(run(*command, "--url", url), 69, "another program than Tidelock has answered; --url names the server")
                expect(run("lock", "--url", url, "fs", "--", "true"), 69, "another program than Tidelock has answered")

    def test_number_alone_is_seconds(self):
        server = Server.of_class(self)
        begun = time.monotonic()
        expect(run("lock", "--wait", "0", "fs", "--", "sh", "-c", "exec %s lock --wait 1 fs -- true" % PROGRAM, server=server), 75)
        self.assertGreaterEqual(time.monotonic() - begun, 1)

    def test_json(self):
        server = Server.of_class(self)
        status = json.loads(run("status", "--json", server=server).stdout)
        self.assertEqual(status["server"]["cluster_name"], "tidelock")
        self.assertEqual(set(status), {"server", "time", "health", "indices", "sessions", "transactions", "locks", "copies", "memory"})
        self.assertEqual(json.loads(run("locks", "--json", server=server).stdout), {"locks": []})
        server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        server.must("PUT", "/fs/_doc/1?refresh=true", {"path": "/a/b\n", "size": 1})
        self.assertEqual(json.loads(run("ls", "--json", "fs:/a", server=server).stdout), {"path": "/a/b\n", "size": 1})

    def test_tree(self):
        documents = {"1": ("/a", "directory"), "2": ("/a/b/c", "file"), "3": ("/a/b/d\n", "file"), "4": ("/a/b/d\n/x", "file"), "5": ("/a/e", "directory"), "6": ("/f", None),
                     "7": ("/a/b/c", None), "8": ("/a/l", "symlink"), "9": ("relative", None)}
        server = Server.of_class(self)
        server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        for id, (path, kind) in documents.items():
            server.must("PUT", "/fs/_doc/" + id, {"path": path, "type": kind})
        drawn = "|-- a\n|   |-- b\n|   |   |-- c\n|   |   |-- c\n|   |   `-- d\\n\n|   |       `-- x\n|   |-- e\n|   `-- l\n`-- f\n\n5 directories, 5 files\n"
        for locale, lines in (("C", drawn), ("C.UTF-8", drawn.replace("|-- ", "\u251c\u2500\u2500 ").replace("`-- ", "\u2514\u2500\u2500 ").replace("|   ", "\u2502\u00a0\u00a0 "))):
            done = subprocess.run([PROGRAM, "tree", "fs", "--url", server.url], env=dict(os.environ, LC_ALL=locale), capture_output=True, encoding="utf-8", check=True)
            self.assertEqual(done.stdout, "fs:/\n" + lines)
        before = server.must("GET", "/_timestamp")["time"]
        server.must("POST", "/fs/_rename", {"from": "/a", "to": "/z"})
        self.assertIn("4 directories, 4 files", run("tree", "fs", "/a", "--as-of", before, server=server).stdout)
        expect(run("tree", "fs", "/a", server=server), 1, "'fs' has no directory")
        for arguments in (("fs:/z/", "--depth", "1"), ("fs", "/z", "-L", "1")):
            self.assertEqual(len(run("tree", *arguments, server=server).stdout.splitlines()), 6)
        root, report = json.loads(run("tree", "--json", "fs:/z", server=server).stdout)
        self.assertEqual(report, {"type": "report", "directories": 4, "files": 4})
        self.assertEqual(root["contents"][1:], [{"type": "directory", "name": "e"}, {"type": "link", "name": "l"}])
        self.assertEqual(root["contents"][0]["contents"][2], {"type": "directory", "name": "d\n", "contents": [{"type": "file", "name": "x"}]})
        many = ["/many/%05d" % i for i in range(12000)] + ["/" + "deep/" * 1000 + "end"]
        lines = "".join('{"index": {"_id": "m%d"}}\n{"path": "%s"}\n' % (i, path) for i, path in enumerate(many))
        self.assertFalse(server.must("POST", "/fs/_bulk", lines, {"Content-Type": "application/x-ndjson"})["errors"])
        self.assertIn("\n1 directory, 12000 files", run("tree", "fs", "/many", server=server).stdout)
        self.assertIn("\n1000 directories, 1 file\n", run("tree", "fs", "/deep", server=server).stdout)
        server.must("PUT", "/plain/_doc/1", {"path": "/a"})
        expect(run("tree", "plain", server=server), 1, "has no tree")
        expect(run("tree", "fs", "/a", "/b", server=server), USAGE, "too many arguments; expected INDEX [PATH]")
        expect(run("tree", server=server), USAGE, "missing argument; expected INDEX [PATH]")

    def test_output_errors_fail(self):
        """Each command fails when its output cannot be written."""
        def fill(*arguments, status=1, text="cannot write to standard output"):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertIn(text, done.stderr)

        fill("--help")
        fill("--version")
        fill("serve", "--help")
        server = Server.of_class(self)
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
        assert "did you mean" not in run("xyzzy").stderr
        expect(run("serve", "--lisen", "x"), USAGE, "unrecognized option '--lisen'; did you mean '--listen HOST:PORT'?")
        expect(run("serve", "--port", "9200"), USAGE, "unrecognized option '--port'; did you mean '--listen HOST:PORT'?")
        expect(run("serve", "--data", "x", "--host=::1"), USAGE, "'--host'; did you mean '--listen HOST:PORT'?")
        expect(run("status", "--host", "::1"), USAGE, "'--host'; did you mean '--url URL'?")
        expect(run("serve", "--zzzzzz"), USAGE, "unrecognized option '--zzzzzz'")
        expect(run("serve", "--history", "1 parsec"), USAGE, "--history: '1 parsec' is not a duration; write it as")
        expect(run("serve", "--max-body", "big"), USAGE, "--max-body: 'big' is not a size")
        expect(run("serve", "--listen", "127.0.0.1:70000"), USAGE, "'70000' is not a number from 0 to 65535")
        expect(run("serve", environment={"TIDELOCK_CACHE": "lots"}), USAGE, "--cache: 'lots' is not a size")
        expect(run("lock", "--nonblock", "fs", "--", "true"), USAGE, "'--nonblock'; did you mean '--wait TIME'?")
        expect(run("locks", "--watch", "--interval", "0"), USAGE, "not more often than every 100ms")
        for address in ("localhost", "localhost:"):
            expect(run("serve", "--listen", address), USAGE, "--listen: '%s' has no port; write it as HOST:PORT, such as 127.0.0.1:9200" % address)
        for command in ("status", "hosts"):
            expect(run(command, "http://127.0.0.1:1"), USAGE, "'http://127.0.0.1:1' is not an option; --url names the server")
        expect(run("import"), USAGE, "missing argument; expected DIR")
        expect(run("import", "/usr"), USAGE, "missing option --index=NAME")
        expect(run("lock"), USAGE, "missing argument; expected INDEX")
        expect(run("lock", "fs"), USAGE, "missing argument; expected COMMAND")
        expect(run("lock", "fs", "--"), USAGE, "missing argument; expected COMMAND")
        expect(run("lock", "--", "echo", "hi"), USAGE, "missing argument; expected INDEX, INDEX:PATH or / before the --")
        expect(run("lock", "--wait", "10s", "--", "echo", "hi"), USAGE, "missing argument; expected INDEX")


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
        server = Server.of_class(self)
        expect(run("serve", "--data", server.data, "--listen", "127.0.0.1:0"), 1, "in use by another process: a server, or a check")
        expect(run("check", "--data", server.data), 1, "in use by another process")
        other = tempfile.mkdtemp()
        expect(run("serve", "--data", other, "--listen", "127.0.0.1:%d" % server.port), 1,
               "Address already in use: a server runs there; --listen names another port, 0 for a free one")
        shutil.rmtree(other)

    def test_serve_on_unusable_address_or_directory(self):
        expect(run("serve", "--data", "/proc/nothing", "--listen", "127.0.0.1:0"), 1, "/proc/nothing")
        expect(run("serve", "--data", "/dev/null", "--listen", "127.0.0.1:0"), 1, "/dev/null")
        other = tempfile.mkdtemp()
        expect(run("serve", "--data", other, "--listen", "no.such.host.invalid:0", "--insecure"), 1, "cannot listen on no.such.host.invalid")
        expect(run("serve", "--data", other, "--listen", "192.0.2.1:0", "--insecure"), 1, "it is not an address of this host; 0.0.0.0 means all of them")
        shutil.rmtree(other)

    def test_first_start_on_full_disk(self):
        """The log gives the reason; no check of the program fails, and with room the same directory is served."""
        with SmallDisk() as disk:
            disk.fill(leave=24 << 20)
            data = os.path.join(disk.folder, "data")
            expect(run("serve", "--data", data, "--listen", "127.0.0.1:0"), 1,
                   "the first start cannot write the uuid of the cluster: less than [268435456] bytes are free on the disk of the data directory")
            disk.make_room()
            with Server("--reserve", "1m", data=data) as server:
                self.assertEqual(server.ask("GET", "/")[0], 200)

    def test_serve_beyond_loopback(self):
        """Only with certificates of clients, or where one says that one means it; a name may come to mean any address."""
        other = tempfile.mkdtemp()
        files = ["--tls-cert", "c.pem", "--tls-key", "k.pem"]

        def serve(*options, environment=None):
            return run("serve", "--data", os.path.join(other, "data"), "--check-config", *options, environment=environment or {})
        for host in "0.0.0.0", "[::]", "192.0.2.1", "store.example", "128.0.0.1", "[::ffff:127.0.0.1]":
            for more in [], files, ["--insecure=no"]:
                expect(serve("--listen", host + ":0", *more), USAGE, "tidelock cert --dir tls", "--tls-ca tls/ca.pem", "--cert tls/client.pem", "--insecure")
        expect(serve("--listen", "0.0.0.0:0", environment={"TIDELOCK_INSECURE": "no"}), USAGE, "--insecure")
        expect(serve("--listen", "0.0.0.0:0", "--insecure=perhaps"), USAGE, "neither yes nor no")
        self.assertFalse(os.path.exists(os.path.join(other, "data")))
        for host in "127.0.0.1", "127.8.0.1", "localhost", "[::1]":
            expect(serve("--listen", host + ":0"), 0)
        expect(serve("--listen", "0.0.0.0:0", "--insecure"), 0)
        expect(serve("--listen", "0.0.0.0:0", environment={"TIDELOCK_INSECURE": "yes"}), 0)
        shutil.rmtree(other)

    def test_environment(self):
        with Server("--log-level", "debug", environment={"TIDELOCK_MAX_BODY": "100", "TIDELOCK_CLUSTER_NAME": "blue"}) as server:
            assert server.must("GET", "/")["cluster_name"] == "blue"
            status, reply = server.ask("PUT", "/a/_doc/1", {"text": "x" * 200})
            assert status == 413, (status, reply)

    def config(self, *lines):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "tidelock.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        return path

    def test_configuration(self):
        """A file has the least to say, then the environment, then the command line."""
        path = self.config("# no more than this", "  max-body=100", "\tcluster-name = blue green", "node-name = from the file", "host-name = a.example, b.example", "")
        with Server("--config", path, "--node-name", "north", environment={"TIDELOCK_CLUSTER_NAME": "red"}) as server:
            said = server.must("GET", "/")
            self.assertEqual((said["name"], said["cluster_name"]), ("north", "red"))
            self.assertEqual(server.ask("PUT", "/a/_doc/1", {"text": "x" * 200})[0], 413)
            for name, status in (("b.example", 200), ("c.example", 403)):
                self.assertEqual(server.ask("GET", "/", headers={"Host": name})[0], status)
        with Server(environment={"TIDELOCK_CONFIG": path}) as server:
            self.assertEqual(server.must("GET", "/")["cluster_name"], "blue green")

    def test_invalid_configuration(self):
        for line, reason in (("memroy = 5g", "1: there is no option 'memroy'; did you mean 'memory'?"), ("history", "1: it is neither NAME = VALUE nor a comment"),
                             ("hist = 1h", "1: there is no option 'hist'; did you mean 'history'?"), ("zebra = 1", "1: there is no option 'zebra'"),
                             ("history = soon", "1: --history: 'soon' is not a duration"), ("--history = 1h", "1: option names in a file have no --"),
                             ("history =", "1: there is no value after the ="), ("= 1h", "1: there is no name before the ="), ("config = x", "1: there is no option 'config' for a file"),
                             ("check-config = yes", "1: there is no option 'check-config' for a file"),
                             ("history = 1h\n\n# again\nhistory = 2h", "4: this option is also in an earlier line"),
                             ("cache = 1m\x00", "it contains NUL bytes"), ("#" * (1 << 20), "it is longer than a megabyte"), ("tls-key = k", "--tls-key needs --tls-cert")):
            path = self.config(line)
            for check in (), ("--check-config",):
                expect(run("serve", "--config", path, *check), 64, reason, "tidelock serve --help")
        expect(run("serve", "--config", "/nowhere/tidelock.conf"), 64, "/nowhere/tidelock.conf: No such file or directory")
        expect(run("serve", "--config", "/proc"), 64, "/proc: Is a directory")
        expect(run("serve", "--config"), 64, "requires an argument")

    def test_check_config(self):
        path = self.config("data = /nowhere/that/can/be/made", "history = 2h")
        done = run("serve", "--config", path, "--check-config")
        self.assertEqual((done.returncode, done.stdout), (0, "all options are valid\n"))
        expect(run("serve", "--tls-cert", path, "--tls-key", path, "--check-config"), 1, path)

    def test_configuration_reload(self):
        path = self.config("log-level = info", "history = 1h", "log-format = json")

        def change(*lines):
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in lines))
            before = len(server.errors())
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "SIGHUP: the configuration is unchanged" in server.errors()[before:] or "has been read again" in server.errors()[before:], "the file is read again")
            server.must("GET", "/_cat/health")
            return [json.loads(line) for line in server.errors()[before:].splitlines()]

        with Server("--config", path) as server:
            said = change("log-level = debug", "log-format = json", "history = 1h", "max-body = 1k")
            self.assertEqual([(line["level"], line["message"]) for line in said[:2]], [
                ("WARN", "SIGHUP: max-body in %s takes effect at the next start" % path), ("INFO", "SIGHUP: %s has been read again" % path)])
            self.assertRegex(said[2]["message"], r"^GET /_cat/health: 200 by ")
            self.assertRegex(said[2]["timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertIn("the configuration is unchanged", change("log-level")[0]["message"])
            self.assertIn("'loud' is not one of debug, info", change("log-level = loud", "log-format = json", "max-body = 1k")[0]["message"])
            said = change("log-format = json", "max-body = 1k")  # without: as it is by default
            self.assertEqual([line["message"] for line in said], ["SIGHUP: %s has been read again" % path])
        with Server("--config", path, "--log-level", "debug") as server:
            said = change("log-level = error", "log-format = json", "max-body = 1k")
            self.assertIn("SIGHUP: log-level is set by the environment or the command line", [line["message"] for line in said])
            self.assertEqual(said[-1]["level"], "DEBUG")

    def test_options_of_a_cluster_need_cluster(self):
        given = {"cluster-ca": "x", "cluster-cert": "x", "cluster-key": "x", "advertise": "127.0.0.1:9200", "group": "g", "host-lease": "4s",
                 "clock-skew": "1s", "catch-up": "1g", "cluster-quota": "1g"}
        for name, value in given.items():
            expect(run("serve", "--check-config", "--%s" % name, value), 64, "--%s needs --cluster" % name)
        for url, reason in (("foo", "is not http://HOST:PORT"), ("http://127.0.0.1:1", "names no prefix, as in http://HOST:PORT/tidelock"),
                            ("http://127.0.0.1/x", "[127.0.0.1] is not HOST:PORT"), ("http://127.0.0.1:1,https://127.0.0.1:2/x", "give all the same")):
            for check in (), ("--check-config",):
                expect(run("serve", "--cluster", url, "--data", "/nowhere/data", *check), 64, "--cluster: ", reason)
        expect(run("serve", "--check-config", "--cluster", "http://nowhere.invalid:1/x", "--log-archive", "a"), 64, "--log-archive: a host of a cluster has no log")
        expect(run("serve", "--check-config", "--cluster", "http://nowhere.invalid:1/x"), 0)
        port_zero = ["--check-config", "--cluster", "http://127.0.0.1:1/x", "--listen", "127.0.0.1:0"]
        expect(run("serve", *port_zero), 64, "--listen with port 0 needs --advertise in a cluster")
        expect(run("serve", *port_zero, "--advertise", "127.0.0.1:9200"), 0)
        for address in "0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]":
            everywhere = ["--check-config", "--listen", address + ":9200", "--insecure"]
            expect(run("serve", *everywhere), 0)
            everywhere += ["--cluster", "http://127.0.0.1:1/x"]
            expect(run("serve", *everywhere), 64, "'%s' means all addresses of this machine, so a cluster needs --advertise HOST:PORT" % address.strip("[]"))
            expect(run("serve", *everywhere, "--advertise", address + ":9200"), 64, "--advertise: '%s:9200' means all addresses of a machine" % address)
            expect(run("serve", *everywhere, "--advertise", "10.0.0.1:9200"), 0)
        expect(run("serve", "--check-config", "--checkpoint", "1023k"), 64, "--checkpoint: at least 1m")
        expect(run("serve", "--check-config", "--recovery-time", "9ms"), 64, "--recovery-time: at least 10ms")
        expect(run("serve", "--check-config", "--recovery-time", "10s"), 0)
        expect(run("serve", "--check-config", "--catch-up", "0"), 64, "--catch-up: at least 1 byte")
        done = run("serve", "--check-config", "--group", "default", "--host-lease", "3s", "--clock-skew", "500ms", "--catch-up", "2g")
        self.assertEqual((done.returncode, done.stdout), (0, "all options are valid\n"))

    def test_names_in_a_log_of_json(self):
        with Server("--log-format", "json") as server:
            server.must("PUT", "/a/_doc/1", {})
            server.must("DELETE", "/a", headers={"X-Opaque-Id": 'a "quoted\\ name'})
            server.stop()
            lines = [json.loads(line) for line in server.errors().splitlines()]
            self.assertTrue(any('a "quoted\\ name' in line["message"] for line in lines), lines)
        expect(run("serve", "--log-format", "xml"), 64, "'xml' is neither text nor json")

    def test_log_lines(self):
        """Removals with their client at info; every request at debug. SIGHUP does not end the server."""
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
                self.assertRegex(said, r"info: index \[%s\] deleted by 127\.0\.0\.1:\d+, session %s\.\.\., night shift\n" % (index, session[:4]))
            self.assertNotIn(session, said)
            self.assertRegex(said, r"info: DELETE /\*\?session=.*: 200 by 127\.0\.0\.1")
            self.assertIn("info: SIGHUP", said)
            self.assertNotIn("debug", said)
            server.options = ["--log-level", "debug"]
            server.start()
            server.must("PUT", "/fs/_doc/1", {})
            server.ask("PUT", "/BAD/_doc/1", {})
            session = server.must("POST", "/_session")["session"]
            server.must("GET", "/_session/" + session)
            server.must("GET", "/fs/_doc/1?pretty&session=%s&realtime=true" % session)
            self.assertEqual(server.stop(), 0)
            self.assertNotIn(session, server.errors())
            self.assertRegex(server.errors(), r"debug: GET /_session/%s\.\.\.: 200" % session[:4])
            self.assertRegex(server.errors(), r"debug: GET /fs/_doc/1\?pretty&session=%s\.\.\.&realtime=true: 200" % session[:4])
            self.assertRegex(server.errors(), r"debug: PUT /fs/_doc/1: 201 by 127\.0\.0\.1:\d+\n")
            self.assertRegex(server.errors(), r"debug: PUT /BAD/_doc/1: 400 by 127\.0\.0\.1:\d+: Invalid index name \[BAD\]")

    def test_locks_of_missing_index(self):
        server = Server.of_class(self)
        server.must("PUT", "/fs", None)
        expect(run("locks", "fs", server=server), 0, "no locks are held")
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
            until(lambda: len(answers) >= 200, "all of them write")
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
            assert server.must("POST", "/fs/_count", {"query": {"term": {"path.tree": "/clinton/d01"}}})["count"] == 2 + FILES // 37 + 1
            expect(run("ls", "fs:/clinton/d00", server=server), 0, "sub/\n")
            listed = run("ls", "fs:/clinton", server=server)
            assert sorted(listed.stdout.splitlines()[:3]) == sorted(["%2F", "'", "*"]), listed.stdout[:200]
            expect(run("ls", "fs:/clinton/nowhere", server=server), 1, "'fs' has no directory")
            expect(run("ls", "fs", server=server), 0, "clinton/\n")
            expect(run("mv", "fs", "/clinton/d00", "/new/d00", server=server), 0)
            expect(run("ls", "fs:/new", server=server), 0, "d00/\n")
            expect(run("ls", "fs:/new/d00/", server=server), 0, "sub/\n")
            assert "d00/" not in run("ls", "fs:/clinton", server=server).stdout
            expect(run("mv", "fs", "/clinton/d00", "/x", server=server), 1, "nothing is at [/clinton/d00]")
            expect(run("mv", "fs", "/new", "/clinton", server=server), 1, "[/clinton] exists in [fs] already")
            expect(run("lock", "fs:/new", "--url", server.url, "--", PROGRAM, "mv", "fs", "/new/d00", "/clinton/d00", "--url", server.url), 0)
            expect(run("lock", "fs:/clinton", "--url", server.url, "--", "env", "-u", "TIDELOCK_SESSION",
                       PROGRAM, "mv", "fs", "/clinton/d00", "/y", "--wait", "20ms", "--url", server.url), 75, "lock")
            expect(run("mv", "fs", "/a"), USAGE, "missing arguments; expected INDEX FROM TO")
            expect(run("status", server=server), 0, "fs", str(count))
            server.stop()
            status, text = check(server.data)
            assert status == 0 and "%d documents" % count in text, text
            server.start()
        shutil.rmtree(root)

    def test_interrupted_import(self):
        root, count = make_tree(3000)
        with Server() as server:
            job = subprocess.Popen([PROGRAM, "import", root, "--index", "fs", "-q", "--url", server.url], stdout=subprocess.DEVNULL)
            time.sleep(0.05)
            job.kill()
            job.wait()
            server.kill()
            # The server comes back while the import is trying.
            job = subprocess.Popen([PROGRAM, "import", root, "--index", "fs2", "-q", "--url", server.url], stderr=subprocess.PIPE, text=True)
            job.communicate()
            assert job.returncode == 69  # it does not even make the index without a server
            server.start()
            job = subprocess.Popen([PROGRAM, "import", root, "--index", "fs", "-q", "--jobs", "2", "--url", server.url],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(0.03)
            server.kill()
            server.start()
            out, errors = job.communicate()
            if job.returncode != 0:  # killed before the index was seen
                expect(run("import", root, "--index", "fs", "-q", server=server), 0)
            assert server.must("GET", "/_cat/count/fs?format=json")[0]["count"] == str(count), (out, errors)
        shutil.rmtree(root)

    def test_import_with_incomplete_answers(self):
        """Documents that the answer to their batch does not name are not counted as loaded."""
        with answering(b'{"errors":false,"items":[{"create":{"status":201}}]}', Tidelock_Timestamp="5") as url:
            expect(run("import", "/etc/apt", "--index", "fs", "--tries", "1", "--url", url), 1, "0 documents created in 'fs'", "does not name each document of it")

    def test_import_errors(self):
        server = Server.of_class(self)
        expect(run("import", "/no/such/place", "--index", "fs", server=server), 1, "/no/such/place: No such file")
        expect(run("import", "/etc/apt", "--index", "UPPER", server=server), 1, "cannot make the index 'UPPER'", "lowercase")
        expect(run("import", "/etc/apt", "--index", "fs", "--url", "http://127.0.0.1:1"), 69, "cannot make the index")
        expect(run("status", "--url", "http://127.0.0.1:1"), 69, "http://127.0.0.1:1")


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
