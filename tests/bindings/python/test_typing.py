# SPDX-License-Identifier: MIT
"""The package and a program that uses it, as mypy --strict sees them, and as the oldest Python does."""

import ast
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tap

HERE = os.path.dirname(os.path.abspath(__file__))
NOTE = re.compile(r'^.*?:(\d+): (note: Revealed type is "(.*)"|error: .*)$')


@unittest.skipUnless(shutil.which("mypy"), "mypy is not installed")
class Typing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.cache.cleanup)

    def mypy(self, version, path):
        command = ["mypy", "--strict", "--cache-dir", self.cache.name, "--enable-incomplete-feature=Unpack"]
        environment = {**os.environ, "MYPYPATH": tap.PACKAGE}
        done = subprocess.run([*command, "--python-version", version, path], cwd=HERE, env=environment,
                              capture_output=True, text=True)
        return done.stdout + done.stderr

    def test_the_package_is_clean(self):
        for version in ("3.9", "3.11"):
            self.assertIn("Success", self.mypy(version, os.path.join(tap.PACKAGE, "brig")))

    def test_a_program_gets_types_and_errors(self):
        said = {}
        for line in self.mypy("3.11", "typed.py").splitlines():
            match = NOTE.match(line)
            if match and line.startswith("typed.py"):
                said.setdefault(int(match[1]), match[3] or "error")
        with open(os.path.join(HERE, "typed.py"), encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                with self.subTest(line=line.strip()):
                    _, _, expected = line.rstrip().partition("# R ")
                    if line.rstrip().endswith("# E"):
                        expected = "error"
                    found = said.get(number, "")
                    self.assertEqual(found.rstrip("*"), expected)


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
