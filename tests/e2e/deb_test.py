#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian package in a minimal system: from the installation to the purge, with a document that survives all steps.

The newest package of build-deb/ is used; `make deb` builds it. Its content is compared with the list of `make install`. The
system is made by debootstrap, of the release that runs here, and uses only that release's mirror: a dependency that is not
available there fails here. The server is started by its unit, as its user. The test needs root, debootstrap and a mirror; if one
of them is missing, it prints which. Not in `make test`, which has no such downloads: `make deb-test`.
"""
import glob
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import ROOT  # noqa: E402

DATA = "/var/lib/tidelock"
CONFIGURATION = "/etc/tidelock/tidelock.conf"


def run(*command, status=0, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != status:
        raise AssertionError("%s ended with %d:\n%s" % (shlex.join(command), done.returncode, done.stdout[-6000:]))
    return done.stdout


def package():
    found = sorted(glob.glob(os.path.join(ROOT, "build-deb", "tidelock_*.deb")), key=os.path.getmtime)
    if not found:
        raise unittest.SkipTest("build-deb/ has no package: `make deb` builds it")
    return found[-1]


def system():
    """Returns: what names the release that runs here."""
    with open("/etc/os-release", encoding="utf-8") as file:
        return dict(re.findall(r'^([A-Z_]+)="?(.*?)"?$', file.read(), re.M))


def mirror(release):
    """Returns: where apt has its packages from."""
    said = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    place = next((line for line in said.splitlines() if re.search(r"/debian/?$", line)), "http://deb.debian.org/debian").rstrip("/")
    try:
        urllib.request.urlopen("%s/dists/%s/Release" % (place, release), timeout=20).close()
    except (urllib.error.URLError, OSError) as error:
        raise unittest.SkipTest("no mirror: %s: %s" % (place, error)) from error
    return place


class Contents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("dpkg-deb"):
            raise unittest.SkipTest("dpkg-deb is not installed")
        cls.package = package()
        rows = [line.split(None, 5) for line in run("dpkg-deb", "-c", cls.package).splitlines()]
        cls.files = {row[5][1:]: row[0] for row in rows if not row[5].endswith("/")}
        cls.owners = {row[1] for row in rows}

    def test_files(self):
        units = [name for name in self.files if name.endswith("/lib/systemd/system/tidelock.service")]
        self.assertEqual(len(units), 1)
        for name in ("/usr/bin/tidelock", CONFIGURATION, "/usr/lib/sysusers.d/tidelock.conf", "/usr/lib/tmpfiles.d/tidelock.conf", "/usr/share/man/man1/tidelock.1.gz",
                     "/usr/share/bash-completion/completions/tidelock", "/usr/share/zsh/vendor-completions/_tidelock", "/usr/share/doc/tidelock/copyright",
                     "/usr/share/doc/tidelock/changelog.gz", "/usr/share/doc/tidelock/docs/upgrading.md", "/usr/share/doc/tidelock/contrib/grafana/tidelock.json"):
            self.assertIn(name, self.files)
        self.assertEqual(self.owners, {"root/root"})
        self.assertEqual({name for name, mode in self.files.items() if "x" in mode}, {"/usr/bin/tidelock"})

    def test_configuration_is_a_conffile(self):
        self.assertEqual(run("dpkg-deb", "-I", self.package, "conffiles"), CONFIGURATION + "\n")

    def test_version(self):
        with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
            version = re.search(r"version: '(.*)'", file.read()).group(1)
        self.assertRegex(run("dpkg-deb", "-f", self.package, "Version"), r"^%s-[0-9]+~deb[0-9]+$" % re.escape(version))

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian(self):
        run("lintian", *(["--allow-root"] if os.getuid() == 0 else []), "--fail-on", "error,warning", self.package)


class Life(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.getuid() != 0:
            raise unittest.SkipTest("a system of its own takes root")
        if not shutil.which("debootstrap"):
            raise unittest.SkipTest("debootstrap is not installed")
        release = system().get("VERSION_CODENAME", "")
        cls.package = package()
        cls.root = tempfile.mkdtemp(prefix="tidelock-system-", dir="/var/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        os.chmod(cls.root, 0o755)
        # In a mount namespace of its own: its mounts are invisible to other processes, and end with
        # it.
        run("unshare", "--mount", "debootstrap", "--variant=minbase", release, cls.root, mirror(release))
        with open(cls.within("/etc/dpkg/dpkg.cfg.d/quick"), "w", encoding="utf-8") as file:
            file.write("force-unsafe-io\n")
        run(*cls.inside("apt-get", "update", "-q"))

    @classmethod
    def inside(cls, *command):
        return ("unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin '
                'DEBIAN_FRONTEND=noninteractive ${TIDELOCK_TEST_GUARD:+TIDELOCK_TEST_GUARD="$TIDELOCK_TEST_GUARD"} "$@"', cls.root, *command)

    @classmethod
    def within(cls, path):
        return cls.root + path

    def install(self, file):
        shutil.copy(file, self.within("/tmp/tidelock.deb"))
        return run(*self.inside("apt-get", "install", "-q", "-y", "--no-install-recommends", "/tmp/tidelock.deb"))

    def unit(self):
        """Returns: path in the system and text of the unit."""
        path = next(place + "/systemd/system/tidelock.service" for place in ("/usr/lib", "/lib") if os.path.exists(self.within(place + "/systemd/system/tidelock.service")))
        with open(self.within(path), encoding="utf-8") as file:
            return path, file.read()

    def newer(self):
        """Returns: the same package with a later revision."""
        folder = tempfile.mkdtemp(prefix="tidelock-newer-")
        self.addCleanup(shutil.rmtree, folder)
        run("dpkg-deb", "-R", self.package, folder + "/tree")
        control = folder + "/tree/DEBIAN/control"
        with open(control, encoding="utf-8") as file:
            text = file.read()
        with open(control, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^(Version: .*)-([0-9]+)", lambda match: "%s-%d" % (match.group(1), int(match.group(2)) + 1), text, flags=re.M))
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", folder + "/tree", folder + "/newer.deb")
        return folder + "/newer.deb"

    def start(self):
        text = self.unit()[1]
        command, user = (re.search("^%s=(.*)$" % name, text, re.M).group(1) for name in ("ExecStart", "User"))
        server = subprocess.Popen(self.inside("setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups", "--no-new-privs", *shlex.split(command)),
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (server.poll() is None and server.kill(), server.wait(), server.stdout.close()))
        ready = server.stdout.readline()
        self.assertRegex(ready, r"^ready on http://127\.0\.0\.1:[0-9]+$")
        self.port = int(ready.rsplit(":", 1)[1])
        return server

    def stop(self, server):
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(60), 0)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def is_there(self):
        status, found = self.ask("GET", "/fs/_doc/1")
        self.assertEqual((status, found["_source"]), (200, {"kept": True}))

    def test_life(self):
        self.install(self.package)
        status = os.stat(self.within(DATA))
        user = run(*self.inside("id", "-u", "tidelock")).strip()
        self.assertEqual((status.st_mode & 0o777, str(status.st_uid)), (0o700, user))
        self.assertTrue(os.path.lexists(self.within("/etc/systemd/system/multi-user.target.wants/tidelock.service")), "it starts with the system")
        commands = re.findall(r"^  ([a-z]+) +\S", run(*self.inside("tidelock", "--help")).split("\n`tidelock COMMAND")[0], re.M)
        self.assertIn("serve", commands)
        for command in commands:
            self.assertTrue(os.path.exists(self.within("/usr/share/man/man1/tidelock-%s.1.gz" % command)), command)
        run(*self.inside("systemd-analyze", "verify", "--man=no", self.unit()[0]))
        run(*self.inside("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", self.unit()[0]))

        with open(self.within(CONFIGURATION), encoding="utf-8") as file:
            text = file.read()
        changed = re.sub(r"^#listen = .*$", "listen = 127.0.0.1:0", text, flags=re.M)
        self.assertNotEqual(changed, text)
        with open(self.within(CONFIGURATION), "w", encoding="utf-8") as file:
            file.write(changed)
        server = self.start()
        self.assertEqual(self.ask("PUT", "/fs/_doc/1", '{"kept": true}')[0], 201)
        self.is_there()

        before = run(*self.inside("dpkg-query", "-W", "-f", "${Version}", "tidelock"))
        self.install(self.newer())  # the running server keeps running until it is restarted
        after = run(*self.inside("dpkg-query", "-W", "-f", "${Version}", "tidelock"))
        run("dpkg", "--compare-versions", after, "gt", before)
        self.is_there()
        self.stop(server)
        server = self.start()
        self.is_there()
        self.stop(server)
        with open(self.within(CONFIGURATION), encoding="utf-8") as file:
            self.assertEqual(file.read(), changed)

        run(*self.inside("apt-get", "remove", "-q", "-y", "tidelock"))
        self.assertFalse(os.path.exists(self.within("/usr/bin/tidelock")))
        self.assertTrue(os.path.exists(self.within(CONFIGURATION)))
        self.assertTrue(os.path.exists(self.within(DATA + "/log")))
        said = run(*self.inside("apt-get", "purge", "-q", "-y", "tidelock"))
        self.assertIn("The data in /var/lib/tidelock is kept.", said)
        self.assertFalse(os.path.exists(self.within("/etc/tidelock")))

        self.install(self.package)
        with open(self.within(CONFIGURATION), "w", encoding="utf-8") as file:
            file.write(changed)
        server = self.start()
        self.is_there()
        self.stop(server)
        shutil.rmtree(self.within(DATA))
        os.mkdir(self.within(DATA))
        said = run(*self.inside("apt-get", "purge", "-q", "-y", "tidelock"))
        self.assertNotIn("is kept", said)
        self.assertFalse(os.path.exists(self.within(DATA)), "nothing is left where there was nothing to keep")


if __name__ == "__main__":
    unittest.main()
