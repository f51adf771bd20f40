#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pastes the examples of a page of documentation into a shell and compares the output.

    docs_test.py PAGE...

In ```console blocks a line that begins with "$ " is a command (lines that end in a backslash, or in an open quote, continue),
the lines after it are its output. "…" matches anything within a line, a line "…" matches any lines. All blocks of a page
run in one shell, in a folder of its own, with a fresh server that the page calls localhost:9200, with its data in
tidelock-data; the line that starts a server is therefore not run. But one that starts a server with another data directory,
which the page has made, does so: the page calls that localhost:9200 from there on, or localhost:9201 if the line says so.
"kill %1 && wait %1" stops the first server. Commands that name no server have the program's default address, 127.0.0.1:9200. A page of the feed names localhost:9201 without such a line: it has a
second server there. On a page that starts a server with --tls-cert the rest runs with another server with TLS.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import BUILD, ROOT, Server

WITH_TLS = re.compile(r"^tidelock serve .*--tls-cert")
WITH_DATA = re.compile(r"^tidelock serve --data (?!tidelock-data\b)([\w-]+)( --listen 127\.0\.0\.1:9201)?( &)?$")
STOPS = re.compile(r"^kill %1 && wait %1\b")
FIRST, SECOND = "localhost:9200", "localhost:9201"
DEFAULT = "127.0.0.1:9200"
NOT_RUN = re.compile(r"^(build/)?tidelock serve\b|^kill\b|^make\b|^git clone\b|^cd tidelock\b|^sudo\b")


def blocks(path):
    """Yields (line number, lines) of each console block."""
    lines, begin = None, 0
    with open(path, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            line = line.rstrip("\n")
            if lines is None and line.strip() == "```console":
                lines, begin = [], number
            elif lines is not None and line.strip() == "```":
                yield begin, lines
                lines = None
            elif lines is not None:
                lines.append(line)


def is_open(command):
    """Whether the shell would wait for more lines."""
    if command.rstrip(" ").endswith("\\"):
        return True
    try:
        parsed = subprocess.run(["bash", "-n"], input=command + "\n", capture_output=True, text=True, check=False)
        return parsed.returncode != 0 or "here-document" in parsed.stderr
    except OSError:
        return False


def steps(begin, lines):
    """Yields (line number, command, expected lines)."""
    step = None
    for offset, line in enumerate(lines, 1):
        if step and is_open(step[1]):
            step[1] += "\n" + line
        elif line.startswith("$ "):
            if step:
                yield tuple(step)
            step = [begin + offset, line[2:], []]
        elif step:
            step[2].append(line)
    if step:
        yield tuple(step)


class Shell:
    """One bash for all commands of a page."""

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(["bash"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        self.process.stdin.write("{ %s\n} </dev/null\necho; echo '==end of output=='\n" % command)
        self.process.stdin.flush()
        output = []
        for line in self.process.stdout:
            if line == "==end of output==\n":
                break
            output.append(line)
        return "".join(output).rstrip("\n")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def pattern(expected):
    """The expected lines as a regular expression over the whole output."""
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(part) for part in line.split("…")) + r" *\n")
    return re.compile("".join(parts) + r"\n*")


def speaking_tls(command, folder):
    """A server with the options that the page gives for TLS, its files in the page's folder."""
    words = command.split("#")[0].split()[2:]
    pairs = dict(zip(words[::2], words[1::2]))
    options = []
    for name in ("--tls-cert", "--tls-key", "--tls-ca"):
        options += [name, os.path.join(folder, pairs[name])] if name in pairs else []
    return Server(*options).start()


def run_page(path):
    """Returns: (commands run, failures)."""
    folder = tempfile.mkdtemp(prefix="tidelock-docs-")
    count, failures, others = 0, 0, []
    with open(path, encoding="utf-8") as page:
        text = page.read()
        has_second = SECOND in text and "--listen 127.0.0.1:9201" not in text
    with Server("--backups", os.path.join(folder, "backups"), "--log-archive", os.path.join(folder, "log-archive"), data=os.path.join(folder, "tidelock-data")) as server:
        place, second, stopped = "localhost:%d" % server.port, SECOND, False
        default = "127.0.0.1:%d" % server.port
        if has_second:
            others.append(Server().start())
            second = "localhost:%d" % others[-1].port
        programs = os.path.join(folder, ".bin")
        os.mkdir(programs)
        os.symlink(os.path.join(BUILD, "src", "cli", "tidelock"), os.path.join(programs, "tidelock"))
        os.mkdir(os.path.join(folder, "build"))
        os.symlink(os.path.join(BUILD, "src", "cli", "tidelock"), os.path.join(folder, "build", "tidelock"))
        # README.md names the program's path; the other pages assume that it is installed.
        path_variable = os.environ["PATH"] if os.path.basename(path) == "README.md" else programs + ":" + os.environ["PATH"]
        environment = dict(os.environ, PATH=path_variable, TIDELOCK_URL="http://" + default, LC_ALL="C.UTF-8")
        shell = Shell(folder, environment)
        for begin, lines in blocks(path):
            for number, command, expected in steps(begin, lines):
                if WITH_TLS.match(command):
                    others.append(speaking_tls(command, folder))
                    place = "localhost:%d" % others[-1].port
                started = WITH_DATA.match(command)
                if started:
                    others.append(Server(data=os.path.join(folder, started[1])).start())
                    if started[2]:
                        second = "localhost:%d" % others[-1].port
                    else:
                        place = "localhost:%d" % others[-1].port
                        default = "127.0.0.1:%d" % others[-1].port
                        shell.run("export TIDELOCK_URL=http://" + default)
                    count += 1
                if STOPS.match(command):
                    stopped = server.stop() == 0
                    count += 1
                if NOT_RUN.match(command):
                    continue
                output = shell.run(command.replace(FIRST, place).replace(SECOND, second))
                output = output.replace(place, FIRST).replace(second, SECOND).replace(default, DEFAULT)
                count += 1
                while expected and not expected[-1].strip():
                    expected.pop()
                if expected and not pattern(expected).fullmatch(output + "\n"):
                    failures += 1
                    print("%s:%d: $ %s\n  expected:\n    %s\n  got:\n    %s" % (
                        os.path.relpath(path, ROOT), number, command, "\n    ".join(expected), output.replace("\n", "\n    ")))
        shell.close()
        for other in others:
            other.close()
        if server.process.poll() is not None and not stopped:
            failures += 1
            print("the server ended with status %d: %s" % (server.process.returncode, server.errors()))
    shutil.rmtree(folder, ignore_errors=True)
    return count, failures


def main():
    failures = 0
    for path in sys.argv[1:]:
        count, failed = run_page(path)
        print("%s: %d commands, %d differ" % (os.path.relpath(path, ROOT), count, failed))
        failures += failed
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
