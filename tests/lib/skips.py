# SPDX-License-Identifier: Apache-2.0
"""The end of a test whose cases may all be skipped because the machine lacks what they need: etcd, a real target, a browser.

    if __name__ == "__main__":
        skips.main(verbosity=2)

unittest.main() ends with status 0 then, and the test would be counted as passed.
"""
import sys
import unittest

SKIPPED = 77  # exit status, to meson


class Result(unittest.TextTestResult):
    """Counts the cases that ran to their end: testsRun has skipped ones, too, or not, depending on how they were skipped."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ran = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.ran += 1

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.ran += 1


class Runner(unittest.TextTestRunner):
    resultclass = Result


def main(**options):
    """As unittest.main(), but with status 77 if no case ran and some were skipped, and 1 if there was none. The last line of the output has the reasons
    of skipped ones then."""
    result = unittest.main(exit=False, testRunner=Runner, **options).result
    if result.wasSuccessful() and result.skipped and not result.ran:
        print("skipped: " + "; ".join(dict.fromkeys(reason for _, reason in result.skipped)), file=sys.stderr)
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful() or not result.ran)
