# SPDX-License-Identifier: Apache-2.0
"""The servers that are measured: Tidelock and its peers, each on a free loopback port with its data under a folder
that goes with it, each stopped by its pid. Everything is durable before it is answered, on both sides."""
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from measure import load

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, process, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        if process.poll() is not None:
            raise RuntimeError("server ended at its start")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("port %d did not come up" % port)


def stop(process, how=signal.SIGTERM):
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Http:
    """A server that speaks Elasticsearch's API."""

    def __init__(self, bench, port):
        self.bench = bench
        self.port = port
        self.connection = None

    def request(self, method, path, body=None, timeout=600):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        try:
            self.connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            response = self.connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self.connection = None
            raise

    def ask(self, method, path, body=None):
        status, data = self.request(method, path, body)
        if status >= 300:
            raise RuntimeError("%s %s: %d %s" % (method, path, status, data[:300]))
        return json.loads(data) if data else None

    def load(self, scenario, clients, *more, seconds=None):
        return load(self.bench, self.port, scenario, clients, *more, seconds=seconds)


class Tidelock(Http):
    name = "tidelock"

    @staticmethod
    def available():
        return True

    def __init__(self, bench, *options, port=0):
        self.directory = os.path.join(bench.work, "tidelock-%d" % time.time_ns())
        self.listen = "127.0.0.1:%d" % port
        self.options = options
        self.process = None
        self.bench = bench
        self.start()

    def start(self):
        """Returns: seconds until the server says where it listens."""
        begin = time.time()
        with self.open_log() as log:
            self.process = subprocess.Popen([self.path(), "serve", "--data", self.directory,
                                             "--listen", self.listen, *self.options], stdout=subprocess.PIPE, stderr=log,
                                            text=True)
        line = self.process.stdout.readline()
        if not line:
            with open(self.directory + ".log", encoding="utf-8") as log:
                raise RuntimeError("tidelock ended at its start: " + log.read())
        Http.__init__(self, self.bench, int(line.strip().rsplit(":", 1)[1]))
        return time.time() - begin

    def path(self):
        """Returns: the program."""
        return os.path.join(self.bench.build, "tidelock")

    def metric(self, name):
        """Returns: the value of a metric of GET /_metrics."""
        status, text = self.request("GET", "/_metrics")
        if status != 200:
            raise RuntimeError("GET /_metrics: %d" % status)
        return float(re.search(rb"^%s (\S+)$" % name.encode(), text, re.M).group(1))

    def open_log(self):
        """Returns: where its standard error goes."""
        return open(self.directory + ".log", "a", encoding="utf-8")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pid(self):
        return self.process.pid

    def memory_mib(self):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024

    def disk_bytes(self):
        return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(self.directory) for f in files)

    def close(self):
        stop(self.process)
        shutil.rmtree(self.directory, ignore_errors=True)


class Elasticsearch(Http):
    """Elasticsearch 7.10, one shard, translog synced for each request, by the script that $TIDELOCK_PEERS names or
    ../shared/peers/elasticsearch. It keeps its downloads under $PEERS."""
    name = "elasticsearch"
    script = os.environ.get("TIDELOCK_PEERS", os.path.join(os.path.dirname(ROOT), "shared", "peers", "elasticsearch"))

    def __init__(self, bench):
        keep = os.environ.get("PEERS", os.path.join(tempfile.gettempdir(), "tidelock-bench-peers"))
        self.environment = dict(os.environ, PEERS=keep, PORT=str(free_port()), HEAP="2g")
        self.call("clean")
        self.call("start")
        Http.__init__(self, bench, int(self.environment["PORT"]))

    def pid(self):
        with open(os.path.join(self.environment["PEERS"], "7.10", "pid"), encoding="ascii") as file:
            return int(file.read())

    def call(self, what):
        subprocess.run([self.script, what, "7.10"], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def available(cls):
        return os.access(cls.script, os.X_OK) and shutil.which("mvn") and shutil.which("javac")

    def close(self):
        self.call("clean")


class Postgres:
    name = "postgresql"

    def __init__(self, bench):
        self.bench = bench
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.directory = os.path.join(bench.work, "postgres-%d" % time.time_ns())
        self.port = free_port()
        self.run_as = []
        os.makedirs(self.directory, mode=0o700)
        if os.getuid() == 0:
            shutil.chown(self.directory, "postgres")
            os.chmod(bench.work, 0o755)
            self.run_as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        subprocess.run([*self.run_as, self.bin + "/initdb", "-D", self.directory, "-A", "trust", "-U", "postgres",
                        "--locale=C", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL, cwd="/")
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "",
                    "max_connections": 200, "shared_buffers": "2GB", "max_wal_size": "8GB", "checkpoint_timeout": "15min",
                    "work_mem": "64MB", "maintenance_work_mem": "512MB"}
        options = [word for key, value in settings.items() for word in ("-c", "%s=%s" % (key, value))]
        self.process = subprocess.Popen([*self.run_as, self.bin + "/postgres", "-D", self.directory, *options], cwd="/",
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.environment = dict(os.environ, PGHOST="127.0.0.1", PGPORT=str(self.port), PGUSER="postgres",
                                PGDATABASE="postgres", PGOPTIONS="-c client_min_messages=warning")
        wait_port(self.port, self.process)
        while subprocess.run(["psql", "-qAtc", "select 1"], env=self.environment, capture_output=True).returncode:
            time.sleep(0.1)

    @staticmethod
    def available():
        return glob.glob("/usr/lib/postgresql/*/bin/postgres") and shutil.which("psql")

    def sql(self, *statements):
        command = ["psql", "-q", "-v", "ON_ERROR_STOP=1"]
        for statement in statements:
            command += ["-c", statement]
        subprocess.run(command, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def sql_file(self, file):
        subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", file], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)

    def pgbench(self, script, clients, *more, isolation=None):
        """Returns: transactions a second."""
        return self.pgbench_figures(script, clients, *more, isolation=isolation)["ops_per_s"]

    def pgbench_figures(self, script, clients, *more, isolation=None):
        """Returns: transactions a second, how many were done, and how often one was tried again."""
        environment = dict(self.environment)
        if isolation:
            environment["PGOPTIONS"] += " -c default_transaction_isolation=" + isolation
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            os.chmod(file.name, 0o644)
            file.write(script)
            file.flush()
            run = subprocess.run([self.bin + "/pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j",
                                  str(min(clients, 2)), "-T", str(self.bench.seconds), "-f", file.name, *more],
                                 env=environment, capture_output=True, text=True, check=False)

        def value_of(pattern):
            found = re.search(pattern, run.stdout, re.M)
            return float(found.group(1)) if found else 0.0
        return {"ops_per_s": value_of(r"^tps = ([\d.]+)"), "done": value_of(r"actually processed: (\d+)"),
                "retries": value_of(r"^total number of retries: (\d+)")}

    def close(self):
        stop(self.process, signal.SIGINT)
        shutil.rmtree(self.directory, ignore_errors=True)


class Redis:
    name = "redis"

    def __init__(self, bench):
        self.bench = bench
        self.directory = os.path.join(bench.work, "redis-%d" % time.time_ns())
        os.makedirs(self.directory)
        self.port = free_port()
        self.process = subprocess.Popen(["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir",
                                         self.directory, "--appendonly", "yes", "--appendfsync", "always", "--save", ""],
                                        stdout=subprocess.DEVNULL)
        wait_port(self.port, self.process)

    @staticmethod
    def available():
        return shutil.which("redis-server")

    def load(self, scenario, clients, *more, seconds=None):
        return load(self.bench, self.port, scenario, clients, *more, seconds=seconds)

    def close(self):
        stop(self.process)
        shutil.rmtree(self.directory, ignore_errors=True)


class Etcd(Http):
    """etcd as it comes, by its JSON gateway: it syncs before it replies."""
    name = "etcd"

    def __init__(self, bench):
        self.directory = os.path.join(bench.work, "etcd-%d" % time.time_ns())
        client, peer = ("http://127.0.0.1:%d" % free_port() for _ in range(2))
        self.process = subprocess.Popen(["etcd", "--name", "b", "--data-dir", self.directory,
                                         "--listen-client-urls", client, "--advertise-client-urls", client,
                                         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                         "--initial-cluster", "b=" + peer],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Http.__init__(self, bench, int(client.rsplit(":", 1)[1]))
        wait_port(self.port, self.process)
        time.sleep(1)  # it elects itself

    @staticmethod
    def available():
        return shutil.which("etcd")

    def close(self):
        stop(self.process)
        shutil.rmtree(self.directory, ignore_errors=True)


class Hello:
    """A libmicrohttpd server that answers every request with the same few bytes: what HTTP alone costs."""
    name = "libmicrohttpd"

    def __init__(self, bench, threads=2):
        self.bench = bench
        self.port = free_port()
        self.process = subprocess.Popen([bench.program("hello"), str(self.port), str(threads)],
                                        stdout=subprocess.PIPE)
        wait_port(self.port, self.process)

    @staticmethod
    def available():
        return True

    def load(self, scenario, clients, *more, seconds=None):
        return load(self.bench, self.port, scenario, clients, *more, seconds=seconds)

    def close(self):
        stop(self.process)
