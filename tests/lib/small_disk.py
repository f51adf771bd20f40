# SPDX-License-Identifier: Apache-2.0
"""A disk that can be full, for tests."""
import os
import subprocess
import tempfile
import unittest


class SmallDisk:
    """A file system of its own, in memory; mounting one takes privileges."""
    def __init__(self, size=160 << 20, ballast=40 << 20):
        """`ballast`: of it, what make_room() gives back, besides all that fill() has taken."""
        self.BYTES = size
        self.ballast = ballast

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-disk-")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % self.BYTES, "tidelock-test", self.folder],
                                 capture_output=True)
        if mounted.returncode != 0:
            os.rmdir(self.folder)
            raise unittest.SkipTest("no file system can be mounted here")
        self.take_ballast()
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)
        os.rmdir(self.folder)

    def fill(self, leave=0):
        """Fills the free space completely, or except for `leave` bytes."""
        if leave > 0:
            free = os.statvfs(self.folder)
            with open(os.path.join(self.folder, "filler"), "ab", buffering=0) as filler:
                os.posix_fallocate(filler.fileno(), 0, free.f_bavail * free.f_frsize - leave)
            return
        with open(os.path.join(self.folder, "filler"), "ab", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        filler.write(b"x" * size)
                except OSError:
                    pass

    def take_ballast(self):
        with open(os.path.join(self.folder, "ballast"), "wb") as ballast:
            ballast.write(bytes(self.ballast))

    def make_room(self):
        os.unlink(os.path.join(self.folder, "filler"))
        os.unlink(os.path.join(self.folder, "ballast"))
