# SPDX-License-Identifier: MIT
"""The package and a program that uses it, as mypy --strict sees them, and as the oldest Python does."""

import ast
import glob
import os
import re
import shutil
import subprocess
import unittest

import tap

HERE = os.path.dirname(os.path.abspath(__file__))
NOTE = re.compile(r'^.*?:(\d+): (note: Revealed type is "(.*)"|error: .*)$')


@unittest.skipUnless(shutil.which("mypy"), "mypy is not installed")
class Typing(unittest.TestCase):
    def mypy(self, version):
        """What it says of the package and the program together: most of its time goes to the standard library."""
        command = ["mypy", "--strict", "--cache-dir", os.devnull, "--enable-incomplete-feature=Unpack"]
        environment = {**os.environ, "MYPYPATH": tap.PACKAGE}
        done = subprocess.run([*command, "--python-version", version, os.path.join(tap.PACKAGE, "brig"), "typed.py"],
                              cwd=HERE, env=environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    def check(self, version):
        """The package is clean, and the program gets the types and errors that its comments name."""
        said, others = {}, []
        for line in self.mypy(version).splitlines():
            match = NOTE.match(line)
            if match and line.startswith("typed.py"):
                said.setdefault(int(match[1]), match[3] or "error")
            elif "typed.py" not in line and ": note: " not in line:
                others.append(line)
        with open(os.path.join(HERE, "typed.py"), encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                with self.subTest(line=line.strip()):
                    _, _, expected = line.rstrip().partition("# R ")
                    if line.rstrip().endswith("# E"):
                        expected = "error"
                    found = said.get(number, "")
                    self.assertEqual(found.rstrip("*"), expected)
        self.assertEqual(len(others), 1, others)
        self.assertRegex(others[0], r"^Found \d+ errors in 1 file \(checked \d+ source files\)$")

    def test_as_the_oldest_python_has_it(self):
        self.check("3.9")

    if tap.THOROUGH:
        def test_as_a_newer_python_has_it(self):
            self.check("3.11")


class OldestPython(unittest.TestCase):
    def test_the_package_is_in_the_grammar_of_python_3_9(self):
        for path in glob.glob(os.path.join(tap.PACKAGE, "brig", "*.py")):
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
            ast.parse(text, feature_version=(3, 9))
            # Annotations are not evaluated, and nothing that Python 3.9 lacks is imported for them.
            self.assertIn("from __future__ import annotations" if "def " in text else "", text)
            outside = text.split("if TYPE_CHECKING:")[0]
            self.assertNotIn("import typing_extensions", outside)
            self.assertNotIn("from typing_extensions", outside)


if __name__ == "__main__":
    tap.main()
