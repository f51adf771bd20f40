# SPDX-License-Identifier: Apache-2.0
"""Measuring: runs in turn, medians, ratios, and the rows of the table they make."""
import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time


class NotBuilt(Exception):
    """A program that a measurement needs is not in the build folder."""


def load_command(bench, port, scenario, clients, *more, seconds=None):
    return [bench.program("load"), "--port", str(port), "--clients", str(clients), "--seconds",
            str(seconds or bench.seconds), "--keys", "k%d" % time.time_ns(), scenario, *map(str, more)]


def load(bench, port, scenario, clients, *more, seconds=None):
    """Runs the load client. Returns: its results."""
    command = load_command(bench, port, scenario, clients, *more, seconds=seconds)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if not run.stdout:
        raise RuntimeError("%s: %s" % (" ".join(command), run.stderr))
    results = json.loads(run.stdout)
    if results["errors"]:
        print("   ! %s: %d unexpected replies: %s" % (scenario, results["errors"], run.stderr.strip()[:300]), file=sys.stderr)
    return results


def rate_of(server, scenario, clients, *more):
    """Returns: a function that measures operations a second; None when the server is not there."""
    return None if server is None else lambda: server.load(scenario, clients, *more)["ops_per_s"]


def number(x):
    return "-" if x is None else "%.0f" % x if x >= 100 else "%.2f" % x


def show(x):
    return "-" if x is None else "%g" % x


def busy_share(seconds):
    """Returns: the share of all processors' time that was used over the next seconds."""
    def read():
        with open("/proc/stat", encoding="ascii") as stat:
            t = list(map(int, stat.readline().split()[1:]))
        return sum(t) - t[3] - t[4], sum(t)
    used, total = read()
    time.sleep(seconds)
    used_then, total_then = read()
    return (used_then - used) / max(1, total_then - total)


def cpu_seconds(server):
    """Returns: the processor time that a server's process has used."""
    with open("/proc/%d/stat" % server.pid(), encoding="ascii", errors="replace") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(servers, seconds=60):
    """Waits until servers have done what a load left them to do, such as compactions and merges."""
    end = time.time() + seconds
    while time.time() < end:
        before = [cpu_seconds(s) for s in servers]
        time.sleep(1)
        if all(cpu_seconds(s) - b < 0.05 for s, b in zip(servers, before)):
            return


class Bench:
    """The parameters of a part: number and length of measurements, the folder of the data, and the file of its rows."""

    def __init__(self, args, build, data, work):
        self.runs = args.runs
        self.seconds = args.seconds
        self.count = args.count
        self.patience = args.patience
        self.lock = args.lock
        self.before = args.before
        self.build = build
        self.data = data
        self.work = work
        self.rows = []
        self.missing = set()

    def file(self, name):
        """Returns: the path of a file of the data set."""
        return os.path.join(self.data, name)

    def program(self, name):
        """Returns: the path of a program of this folder. Raises: NotBuilt, with the target to build."""
        path = os.path.join(self.build, "bench", name)
        if not os.access(path, os.X_OK):
            raise NotBuilt("%s is not there: build it with `ninja -C %s bench/%s`" % (path, self.build, name))
        return path

    def peer(self, kind):
        """Returns: a running server of this kind, or None where it is not installed."""
        if kind.available():
            return kind(self)
        self.missing.add(kind.name)
        return None

    @contextlib.contextmanager
    def servers(self, *kinds):
        """Starts servers; yields None for each that is not installed. Stops them at the end."""
        with contextlib.ExitStack() as stack:
            made = []
            for kind in kinds:
                server = self.peer(kind)
                if server is not None:
                    stack.callback(server.close)
                made.append(server)
            yield made

    @staticmethod
    def settle(*servers):
        settle([s for s in servers if s is not None])

    @contextlib.contextmanager
    def alone(self):
        """Waits, as long as patience lasts, until the machine idles; holds the machine's lock for measurements, if any."""
        with contextlib.ExitStack() as stack:
            if self.lock:
                file = stack.enter_context(open(self.lock, "w", encoding="ascii"))
                fcntl.flock(file, fcntl.LOCK_EX)
            end = time.time() + self.patience
            while busy_share(0.7) > 0.15 and time.time() < end:
                pass
            yield

    def median_each(self, subjects):
        """subjects: name -> function that returns a measurement. Runs them in turn. Returns: name -> median."""
        results = {name: [] for name in subjects}
        for _ in range(self.runs):
            for name, measure in subjects.items():
                with self.alone():
                    results[name].append(measure())
        return {name: statistics.median(values) for name, values in results.items()}

    def row(self, work, value, unit, ratios, note=None):
        """ratios: list of (peer, the peer's result, ratio, minimum, goal). If the goal is below the minimum, less is better. `note`: what else was seen."""
        for name, peer_value, ratio, least, hoped in ratios or [("(no peer)", None, None, None, None)]:
            less = least is not None and hoped is not None and hoped < least
            met = None if least is None else (ratio <= least if less else ratio >= least)
            self.rows.append({"work": work, "value": value, "unit": unit, "peer": name, "peer_value": peer_value,
                              "ratio": ratio, "least": least, "hoped": hoped, "met": met, "note": note})
            print("%-52s %12s %-8s | %-26s %12s | %7s  target %-6s hoped %-6s %s%s" % (
                work[:52], number(value), unit, name, number(peer_value), number(ratio), show(least), show(hoped),
                "" if met is None else "met" if met else "MISSED", "  " + note if note else ""), flush=True)

    def rates(self, work, product, peers, unit="1/s"):
        """Rates, more is better. peers: list of (name, function or None when it is not there, at least, hoped for)."""
        there = [p for p in peers if p[1] is not None]
        medians = self.median_each({"tidelock": product, **{p[0]: p[1] for p in there}})
        self.row(work, medians["tidelock"], unit, [(name, medians[name], medians["tidelock"] / medians[name], least, hoped)
                                                   for name, _, least, hoped in there])

    def limit(self, work, value, unit, bound, hoped, note=None):
        """Compares a measurement with a fixed limit; less is better. `note`: what else was seen."""
        self.row(work, value, unit, [("bound", bound, value / bound, 1, hoped / bound if hoped else 0.5)], note)
