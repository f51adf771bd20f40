# SPDX-License-Identifier: Apache-2.0
"""Terminals for tests. Without pseudo-terminals (a container, a chroot whose /dev/pts is not mounted) the test is skipped."""
import os
import pty
import unittest


def open_terminal():
    """Returns: the descriptors of a new terminal, ours and the program's. Raises SkipTest."""
    try:
        return pty.openpty()
    except OSError as error:
        raise unittest.SkipTest("there are no terminals here (%s): is /dev/pts mounted?" % error) from error


def need_terminal():
    for descriptor in open_terminal():
        os.close(descriptor)
