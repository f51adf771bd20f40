#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TLS (docs/security.md): all calls work as over plain HTTP; unauthorized clients are refused with a reason; files are reloaded at SIGHUP.

Certificates are made by `tidelock cert`, invalid ones by openssl. Clients are Python's (OpenSSL), curl, and Tidelock's own.
"""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
from waiting import Waiting, until  # noqa: E402

FOLDER = None


def setUpModule():
    global FOLDER
    FOLDER = tempfile.mkdtemp(prefix="tidelock-tls-")
    for name in ("own", "foreign"):
        made(name)


def tearDownModule():
    shutil.rmtree(FOLDER, ignore_errors=True)


def file(name, which="own"):
    return os.path.join(FOLDER, which, name + ".pem")


def made(which, *options):
    """Has `tidelock cert` make files. Returns: those that it names."""
    run = subprocess.run([PROGRAM, "cert", "--dir", os.path.join(FOLDER, which), *options], capture_output=True, text=True, check=True)
    return run.stdout.split()


def client(cert=None, which="own", ca="own", most=None):
    """A context that believes `ca` and shows `which`'s certificate `cert`."""
    context = ssl.create_default_context(cafile=file("ca", ca))
    if cert is not None:
        context.load_cert_chain(file(cert, which), file(cert + "-key", which))
    if most is not None:
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = most
    return context


def serving(*options, which="own", clients=False, kind=Server, **named):
    named.setdefault("tls", client("client", which, ca=which))
    files = ["--tls-cert", file("server", which), "--tls-key", file("server-key", which)]
    return kind(*files, *(["--tls-ca", file("ca", which)] if clients else []), *options, **named)


def asks(server, context):
    """One request on a connection of its own. Returns: its status, or what went wrong."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context)
    try:
        connection.request("GET", "/_timestamp")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()


def serial(server):
    """Of the certificate that a new connection is shown."""
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        with client("client").wrap_socket(plain, server_hostname="localhost") as secure:
            return secure.getpeercert()["serialNumber"]


class Begin(unittest.TestCase):
    def refused(self, *options):
        with tempfile.TemporaryDirectory(prefix="tidelock-test-") as data:
            run = subprocess.run([PROGRAM, "serve", "--data", data + "/d", "--listen", "127.0.0.1:0", *options], capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(run.stdout, "")
        return run.stderr

    def test_invalid_tls_files(self):
        cert, key = ("--tls-cert", file("server")), ("--tls-key", file("server-key"))
        self.assertIn("--tls-cert needs --tls-key", self.refused(*cert))
        self.assertIn("--tls-key needs --tls-cert", self.refused(*key))
        self.assertIn("--tls-ca needs --tls-cert", self.refused("--tls-ca", file("ca")))
        self.assertIn("No such file", self.refused("--tls-cert", "/none.pem", *key))
        self.assertIn("not the key of the certificate", self.refused(*cert, "--tls-key", file("client-key")))
        self.assertIn("PEM", self.refused(*cert, "--tls-key", os.path.abspath(__file__)))
        self.assertIn("--tls-ca", self.refused(*cert, *key, "--tls-ca", file("client-key")))

    def test_cert_keeps_existing_files(self):
        self.assertEqual(made("own"), [])
        names = made("own", "--client", "ann")
        self.assertEqual([os.path.basename(name) for name in names], ["ann.pem", "ann-key.pem"])
        self.assertEqual(os.stat(names[1]).st_mode & 0o777, 0o600)
        run = subprocess.run([PROGRAM, "cert", "--dir", os.path.join(FOLDER, "own"), "--host-name", "store"], capture_output=True, text=True, check=True)
        self.assertEqual((run.stdout, run.stderr), ("", "".join("tidelock cert: %s exists, and stays as it is; --renew replaces it\n" % file(name) for name in ("server", "client"))))
        run = subprocess.run([PROGRAM, "cert", "--client", "../x"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 64)


class Same(unittest.TestCase):
    """What works over plain HTTP."""

    def test_documents_and_streams(self):
        with serving() as server:
            server.must("PUT", "/fs/_doc/1", {"a": 1})
            # A body in chunks, and one in many records; an answer in many.
            connection = server.connect()
            connection.request("PUT", "/fs/_doc/2", iter([b'{"a"', b":", b"2}"]), {"Content-Type": "application/json"}, encode_chunked=True)
            response = connection.getresponse()
            self.assertEqual((response.status, json.loads(response.read())["result"]), (201, "created"))
            text = "x" * (5 << 20)
            self.assertEqual(server.request("PUT", "/fs/_doc/3", {"text": text}, connection=connection).status, 201)
            self.assertEqual(json.loads(server.request("GET", "/fs/_doc/3", connection=connection).body)["_source"], {"text": text})
            connection.close()
            # A scroll.
            server.must("POST", "/fs/_bulk?refresh=true", "".join('{"index":{}}\n{"n":%d}\n' % n for n in range(250)))
            page = server.must("POST", "/fs/_search?scroll=1m", {"size": 100, "query": {"exists": {"field": "n"}}})
            found = []
            while page["hits"]["hits"]:
                found += [hit["_source"]["n"] for hit in page["hits"]["hits"]]
                page = server.must("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})
            self.assertEqual(sorted(found), list(range(250)))

    def test_pipelined_requests_in_one_record(self):
        """Requests left in the TLS buffers after the first one cause no event of the socket."""
        with serving() as server, socket.create_connection(("127.0.0.1", server.port)) as plain:
            with server.tls.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(b"GET /_timestamp HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
                received = b""
                while received.count(b"HTTP/1.1 200") < 20:
                    part = secure.recv(65536)
                    self.assertTrue(part, received)
                    received += part

    def test_slow_reader(self):
        with serving() as server:
            server.must("PUT", "/fs/_doc/1", {"text": "x" * (4 << 20)})
            with socket.create_connection(("127.0.0.1", server.port)) as plain:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                with server.tls.wrap_socket(plain, server_hostname="localhost") as secure:
                    secure.sendall(b"GET /fs/_doc/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    total = 0
                    while part := secure.recv(16384):
                        total += len(part)
                        time.sleep(0.001)
                    self.assertGreater(total, 4 << 20)

    def test_locks_waits_and_attached_sessions(self):
        with serving(kind=ClockedServer) as server:
            sessions, lines = [], []
            for _ in range(2):
                session = server.must("POST", "/_session", {"ttl": "1m"})["session"]
                line = server.connect()
                line.request("GET", "/_session/%s/_attach" % session)
                response = line.getresponse()
                self.assertEqual(json.loads(response.readline())["session"], session)
                sessions.append(session)
                lines.append((line, response))
            mine, other = sessions
            server.must("PUT", "/fs/_doc/1", {"a": 1})
            lock = {"locks": [{"index": "fs", "id": "1", "mode": "exclusive"}]}
            server.must("POST", "/_lock", dict(lock, session=mine))
            waiting = Waiting(server, "POST", "/_lock", dict(lock, session=other, wait="1h"))
            until(lambda: server.must("GET", "/_lock")["locks"][0].get("waiters"), "the second waits")
            server.pass_time(61)  # longer than its time to live: what keeps it is the stream
            for _, response in lines:
                self.assertIn("expires_at", json.loads(response.readline()))
            self.assertTrue(waiting.is_alive())
            lines[0][1].close()
            lines[0][0].close()  # the holder is gone, with all that it had
            waiting.join()
            self.assertEqual(waiting.status, 200, waiting.reply)
            # A waiter that hangs up waits no more.
            third = server.must("POST", "/_session", {"ttl": "60s"})["session"]
            connection = server.connect()
            connection.request("POST", "/_lock", json.dumps(dict(lock, session=third, wait="60s")), {"Content-Type": "application/json"})
            until(lambda: server.must("GET", "/_lock")["locks"][0].get("waiters"), "the third waits")
            connection.sock.close()
            connection.close()
            until(lambda: not server.must("GET", "/_lock")["locks"][0].get("waiters"), "the third waits no more")
            lines[1][0].close()

    def test_commands(self):
        with serving(clients=True) as server:
            environment = dict(os.environ, TIDELOCK_URL=server.url)
            trust = ["--cacert", file("ca"), "--cert", file("client"), "--key", file("client-key")]

            def run(*words, status=0, **named):
                done = subprocess.run([PROGRAM, *words], env=dict(environment, **named), capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, done.stderr)
                return done.stdout + done.stderr

            tree = os.path.join(FOLDER, "tree")
            os.makedirs(tree, exist_ok=True)
            with open(os.path.join(tree, "a.txt"), "w", encoding="utf-8") as to:
                to.write("a")
            self.assertIn("2 documents created", run("import", tree, "--index", "fs", "--root", "/r", "--quiet", *trust))
            self.assertIn("a.txt", run("ls", "fs:/r", *trust))
            self.assertIn("cluster tidelock", run("status", *trust))
            # Commands in the child use the parent's TLS options.
            self.assertIn("/r", run("lock", *trust, "fs:/r", "--", PROGRAM, "locks"))
            environment.update(TIDELOCK_CACERT=file("ca"), TIDELOCK_CERT=file("client"), TIDELOCK_KEY=file("client-key"))
            self.assertIn("a.txt", run("ls", "fs:/r"))
            self.assertIn("--cacert", run("status", status=69, TIDELOCK_CACERT=file("ca", "foreign")))
            self.assertIn("speaks TLS", run("status", "--url", server.url.replace("https", "http"), status=1))
            self.assertEqual(run("status", "--cert", file("client", "foreign"), "--key", file("client-key", "foreign"), status=69).count("\n"), 1)

    def test_stop_does_not_wait_for_unfinished_handshake(self):
        """A connection that has not said a word is not waited for: the grace is longer than the test may take."""
        with serving("--grace=1h") as server:
            server.must("PUT", "/fs/_doc/1", {"a": 1})
            silent = socket.create_connection(("127.0.0.1", server.port))
            self.assertEqual(server.stop(), 0)
            silent.close()
            server.start()
            self.assertEqual(server.must("GET", "/fs/_doc/1")["_source"], {"a": 1})


class Refused(unittest.TestCase):
    def test_old_protocols(self):
        with serving() as server:
            for most in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
                self.assertIsInstance(asks(server, client(most=most)), str)
            for only in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = client()
                context.minimum_version = context.maximum_version = only
                self.assertEqual(asks(server, context), 200)
            self.assertIn("CERTIFICATE_VERIFY_FAILED", asks(server, client(ca="foreign")))

    def test_plain_http(self):
        with serving() as server:
            for request in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PUT /fs/_doc/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000):
                reply = server.raw(request, timeout=None)
                self.assertTrue(reply.startswith(b"HTTP/1.1 400 "), reply)
                self.assertIn("https://", json.loads(reply.split(b"\r\n\r\n", 1)[1])["error"]["reason"])
            for garbage in (b"\x00" * 1000, b"\x16\x03\x01\xff\xff" + b"\xff" * 70000, bytes([22, 3, 1, 0, 5, 1, 0, 0, 1, 0])):
                server.raw(garbage, timeout=1)
            self.assertEqual(asks(server, server.tls), 200)

    def expired(self):
        """A client's certificate by our CA that was valid years ago."""
        if not os.path.exists(file("expired")):
            base = os.path.join(FOLDER, "own", "expired")
            config, database = base + ".conf", base + ".index"
            with open(config, "w", encoding="utf-8") as to:
                to.write("[ca]\ndefault_ca = own\n[own]\ndatabase = %s\nnew_certs_dir = %s\nrand_serial = yes\ndefault_md = sha256\npolicy = any\n"
                         "x509_extensions = use\n[any]\ncommonName = supplied\n[use]\nextendedKeyUsage = clientAuth\n" % (database, FOLDER))
            open(database, "w", encoding="utf-8").close()
            for command in (
                    ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file("expired-key"), "-out", base + ".csr",
                     "-subj", "/CN=late"],
                    # of this program's calls the only one that takes a time that has passed, in all versions
                    ["ca", "-batch", "-notext", "-config", config, "-cert", file("ca"), "-keyfile", file("ca-key"), "-startdate", "20200101000000Z",
                     "-enddate", "20210101000000Z", "-in", base + ".csr", "-out", file("expired")]):
                subprocess.run(["openssl", *command], check=True, capture_output=True)
        return client("expired")

    def test_certificates_of_clients(self):
        with serving(clients=True) as server:
            for only in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                contexts = {"good": client("client"), "none": client(), "foreign": client("client", "foreign"), "expired": self.expired(),
                            "server's": client("server")}
                for context in contexts.values():
                    context.minimum_version = context.maximum_version = only
                results = {name: asks(server, context) for name, context in contexts.items()}
                self.assertEqual(results.pop("good"), 200, only)
                for name, result in results.items():
                    self.assertIsInstance(result, str, (only, name))
                # With 1.3 a client has sent its request already when it is refused, and the end of the connection may overtake the word.
                if only == ssl.TLSVersion.TLSv1_2:
                    self.assertIn("unknown ca", results["foreign"].lower().replace("_", " "))
                    self.assertIn("expired", results["expired"].lower())

    def test_unfinished_handshakes(self):
        """They have a share of the places, and make room for each other, not for those that are done."""
        with serving("--max-connections", "64") as server:
            self.assertEqual(server.ask("GET", "/_timestamp")[0], 200)  # this connection stays
            kept = server.connection.sock
            flood = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
            for s in flood[::2]:
                s.sendall(b"\x16\x03\x01")
            for _ in range(5):
                self.assertEqual(asks(server, client()), 200)
            self.assertEqual(server.ask("GET", "/_timestamp")[0], 200)
            self.assertIs(server.connection.sock, kept)

            def left():
                """How many the server has not ended."""
                count = 0
                for s in flood:
                    s.setblocking(False)
                    try:
                        count += s.recv(100) != b""
                    except BlockingIOError:
                        count += 1
                    except OSError:
                        pass
                return count

            until(lambda: left() <= 16, "no more than a share of the places is left to them")
            for s in flood:
                s.close()


class Reload(unittest.TestCase):
    def test_certificate_reload_under_load(self):
        """Open connections continue without a failure, new ones get the new certificate, and invalid files change nothing."""
        made("load")
        shutil.copytree(os.path.join(FOLDER, "own"), os.path.join(FOLDER, "load"), dirs_exist_ok=True)
        with serving(which="load", clients=True, tls=client("client")) as server:
            done, failures, end = [0] * 4, [], threading.Event()

            def work(me):
                connection = server.connect()
                try:
                    while not end.is_set():
                        response = server.request("PUT", "/fs/_doc/%d" % me, {"n": done[me]}, connection=connection)
                        if response.status >= 300:
                            failures.append(response.body)
                        done[me] += 1
                except (OSError, http.client.HTTPException) as error:
                    failures.append(error)
                connection.close()

            def news():
                try:
                    while not end.is_set():
                        if (result := asks(server, server.tls)) != 200:
                            failures.append(result)
                except Exception as error:  # pylint: disable=broad-except
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)] + [threading.Thread(target=news)]
            for thread in threads:
                thread.start()
            until(lambda: min(done) > 3, "all are at work")
            seen = serial(server)
            for _ in range(3):
                made("load", "--renew")
                server.process.send_signal(signal.SIGHUP)
                until(lambda: serial(server) != seen, "new connections see the new certificate")  # pylint: disable=cell-var-from-loop
                seen = serial(server)
                goal = [count + 3 for count in done]
                until(lambda: all(a >= b for a, b in zip(done, goal)) or failures, "the old connections go on")  # pylint: disable=cell-var-from-loop
            # A key that is another's; then files that are not there.
            shutil.copy(file("client-key"), file("server-key", "load"))
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "not the key of the certificate" in server.errors(), "the log says what is wrong")
            os.unlink(file("server", "load"))
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "No such file" in server.errors(), "the log says what is missing")
            self.assertEqual(serial(server), seen)
            end.set()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_client_ca_reload(self):
        """Open connections stay; new clients are verified with the new CA."""
        made("change")
        with serving(which="change", clients=True) as server:
            self.assertEqual(server.ask("GET", "/_timestamp")[0], 200)
            shutil.copy(file("ca", "foreign"), file("ca", "change"))
            server.process.send_signal(signal.SIGHUP)
            trusting = ssl.create_default_context(cafile=file("ca", "change"))
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            trusting.load_cert_chain(file("client", "foreign"), file("client-key", "foreign"))
            until(lambda: asks(server, trusting) == 200, "the other CA's clients get in")
            self.assertEqual(server.ask("GET", "/_timestamp")[0], 200)
            own = ssl.create_default_context()
            own.check_hostname, own.verify_mode = False, ssl.CERT_NONE
            own.load_cert_chain(file("client", "change"), file("client-key", "change"))
            self.assertIsInstance(asks(server, own), str)

    def test_reload_without_tls(self):
        with Server() as server:
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "no file to read again" in server.errors(), "the log says so")
            self.assertEqual(server.ask("GET", "/_timestamp")[0], 200)


if __name__ == "__main__":
    unittest.main()
