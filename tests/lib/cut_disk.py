# SPDX-License-Identifier: Apache-2.0
"""A disk whose machine loses power, for tests: ext4 on a loop device, of which a cut keeps only what had reached the device.

    with CutDisk() as disk:
        server = Server(data=disk.data)
        ...
        server.kill()
        disk.cut()      data that was written and not synced is lost, unless the kernel wrote it by itself

Method: what a program wrote without a sync is in the page cache above the file system. A kill leaves it there, so that the next start would read it. The
file below the loop device has only what the file system passed to its device. A copy of that file, taken before the file system writes more, is
what a machine finds on its disk after a power cut; it is mounted in place of the former one.
"""
import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest

BYTES = 512 << 20
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
BLOCK = 1 << 20


def enter():
    """Moves this process to a mount namespace of its own, with which its mounts end. Requires: no other threads."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        raise unittest.SkipTest("making a file system takes root and mkfs.ext4")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise unittest.SkipTest("no mount namespace can be made here: " + os.strerror(ctypes.get_errno()))


def read_blocks(path):
    """Returns: the blocks of a file that are not empty, by their places."""
    blocks, empty = {}, bytes(BLOCK)
    with open(path, "rb", buffering=0) as image:
        place = 0
        while True:
            try:
                place = os.lseek(image.fileno(), place, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError:  # nothing but a hole is left
                return blocks
            block = os.pread(image.fileno(), BLOCK, place)
            if block != empty:
                blocks[place] = block
            place += BLOCK


class CutDisk:
    def __init__(self, size=BYTES):
        self.size = size

    def __enter__(self):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.work = tempfile.mkdtemp(prefix="tidelock-cut-", dir=memory)
        self.folder = os.path.join(self.work, "mounted")
        self.count = 0
        os.mkdir(self.folder)
        with open(self.image(), "wb") as image:
            image.truncate(self.size)
        # Without lazy initialization the kernel writes nothing to it but what programs write.
        made = subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", self.image()], capture_output=True, text=True)
        if made.returncode != 0 or not self.mount():
            shutil.rmtree(self.work)
            raise unittest.SkipTest("no file system can be made and mounted here: " + made.stderr)
        # What a test keeps next to its data directory, as the server's standard error, is not on the disk.
        self.data = os.path.join(self.work, "data")
        os.symlink(os.path.join(self.folder, "data"), self.data)
        os.mkdir(os.path.join(self.folder, "data"))
        os.sync()
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)
        shutil.rmtree(self.work)

    def image(self):
        return os.path.join(self.work, "image%d" % self.count)

    def mount(self):
        # The loop device ends with the mount.
        return subprocess.run(["mount", "-t", "ext4", "-o", "loop,noatime", self.image(), self.folder], capture_output=True).returncode == 0

    def cut(self):
        """Requires: no process has files of the disk open."""
        # Writes that the device had begun may still arrive. Two readings that are equal are the disk at one time.
        before, blocks = None, read_blocks(self.image())
        while blocks != before:
            before, blocks = blocks, read_blocks(self.image())
        subprocess.run(["umount", self.folder], check=True)
        os.unlink(self.image())
        self.count += 1
        with open(self.image(), "wb", buffering=0) as image:
            image.truncate(self.size)
            for place, block in blocks.items():
                os.pwrite(image.fileno(), block, place)
        assert self.mount(), "the file system cannot be mounted after the cut"
