# SPDX-License-Identifier: Apache-2.0
"""Faults that are put into a copy of the sources, one at a time: tests/mutations, tests/sim/owners/mutations.

A list of faults is a text. Each begins with "== COMMAND: title" and names a file; lines with "-" occur there exactly once, and are
replaced by those with "+". Lines with "#" are comments.
"""
import contextlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Mutation:
    def __init__(self, head):
        self.command, self.title = head[3:].split(": ", 1)
        self.file, self.old, self.new = "", [], []

    def __str__(self):
        return "%s: %s" % (self.command, self.title)

    def add(self, line):
        if line[:1] in ("-", "+"):
            (self.old if line[0] == "-" else self.new).append(line[1:])
        elif line:
            self.file = line

    def occurrences(self, folder):
        """Returns: how often its lines occur in the folder's copy of the file."""
        return read(os.path.join(folder, self.file)).count("\n".join(self.old))

    @contextlib.contextmanager
    def applied(self, folder):
        """The file in the copy has the fault inside the `with` statement, and its own text afterwards."""
        path = os.path.join(folder, self.file)
        text = read(path)
        if self.occurrences(folder) != 1:
            sys.exit("mutations: %s: its lines occur %d times in %s, not once" % (self.title, self.occurrences(folder), self.file))
        write(path, text.replace("\n".join(self.old), "\n".join(self.new)))
        try:
            yield
        finally:
            write(path, text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read_all(path, words):
    """Returns: the faults of a list whose heads contain all the words."""
    found = []
    for line in read(path).split("\n"):
        if line.startswith("== "):
            found.append(Mutation(line))
        elif found and not line.startswith("#"):
            found[-1].add(line)
    return [one for one in found if all(word in str(one) for word in words)]


def make_copy(folder):
    """Copies the files that git knows. Those that are there already keep their time where they are equal, so that nothing of them is built again."""
    os.environ.update(CCACHE_BASEDIR=folder, CCACHE_NOHASHDIR="1")  # ccache sees paths relative to the copy
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    for name in files.decode().split("\0"):
        source, target = os.path.join(ROOT, name), os.path.join(folder, name)
        if os.path.isfile(source) and not same(source, target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)


def same(source, target):
    if not os.path.isfile(target):
        return False
    with open(source, "rb") as a, open(target, "rb") as b:
        return a.read() == b.read()


def setup(folder, build, options):
    if not os.path.exists(os.path.join(folder, build, "build.ninja")):
        subprocess.run(["meson", "setup", build, *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def make(folder, build, targets):
    done = subprocess.run(["ninja", "-C", build, *targets], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit("mutations: it does not build:\n" + done.stdout.decode()[-3000:])
