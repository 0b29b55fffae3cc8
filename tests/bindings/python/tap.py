# SPDX-License-Identifier: MIT
"""Runs the tests of a file and prints TAP. Finds the package under test in the tree."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PACKAGE = os.path.join(ROOT, "bindings", "python")
sys.path[:0] = [PACKAGE, os.path.join(ROOT, "tests")]  # the latter for common.py
os.environ.setdefault("BRIG_LIBRARY", os.path.join(ROOT, "build", "src", "libbrig.so.0"))
# Nothing is written into the tree, which may be another user's.
sys.dont_write_bytecode = True
THOROUGH = os.environ.get("BRIG_THOROUGH") == "1"  # make test-all


def program_without(test):
    """The program that takes a feature of the kernel away; the test is skipped where it is not built."""
    without = os.path.join(os.path.dirname(os.environ["BRIG_LIBRARY"]), "..", "tests", "probe", "without")
    if not os.access(without, os.X_OK):
        test.skipTest("tests/probe/without is not built")
    return without


class Result(unittest.TestResult):
    count = 0

    def _line(self, word, test, note=""):
        self.count += 1
        name = test.id().replace("__main__.", "")
        print(f"{word} {self.count} - {name}{note}", flush=True)

    def addSuccess(self, test):
        self._line("ok", test)

    def addSkip(self, test, reason):
        self._line("ok", test, f" # SKIP {reason}")

    def _failed(self, test, error):
        self._line("not ok", test)
        text = self._exc_info_to_string(error, test)
        print("\n".join("# " + line for line in text.splitlines()), flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._failed(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self._failed(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self._failed(subtest, error)


def main():
    loader = unittest.defaultTestLoader
    loader.testNamePatterns = ["*" + name + "*" for name in sys.argv[1:]] or None
    result = Result()
    loader.loadTestsFromModule(sys.modules["__main__"]).run(result)
    print(f"1..{result.count}")
    sys.exit(0 if result.wasSuccessful() else 1)
