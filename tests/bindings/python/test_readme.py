# SPDX-License-Identifier: MIT
"""The README does what it says: every block of Python is run, with its /app in a scratch directory, and
what it prints is what stands after `#>`. The examples are run as well."""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
EXAMPLES = os.path.join(tap.ROOT, "docs", "examples", "python")


class Readme(unittest.TestCase):
    def setUp(self):
        self.app = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, self.app)
        for name in ("tmp", "uploads", "config"):
            os.mkdir(os.path.join(self.app, name))
        with open(os.path.join(tap.PACKAGE, "README.md"), encoding="utf-8") as stream:
            self.text = stream.read()

    def test_every_block_prints_what_it_says(self):
        blocks = BLOCK.findall(self.text)
        self.assertEqual(len(blocks), self.text.count("```") // 2)
        for block in blocks:
            with self.subTest(block=block.strip().splitlines()[0]):
                path = os.path.join(self.app, "block.py")
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(block.replace("/app", self.app))
                done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=self.environment())
                promised = [line.split("#> ", 1)[1] for line in block.splitlines() if "#> " in line]
                self.assertEqual((done.stdout.splitlines(), done.stderr), (promised, ""))

    def environment(self):
        return {**os.environ, "PYTHONPATH": tap.PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}

    def test_it_starts_with_a_complete_program(self):
        self.assertLess(self.text.index("```python"), self.text.index("## "))

    def test_every_example_runs(self):
        for path in sorted(glob.glob(os.path.join(EXAMPLES, "*.py"))):
            name = os.path.basename(path)
            if name.startswith("test_"):
                continue
            with self.subTest(example=name):
                done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=self.environment())
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                with open(path, encoding="utf-8") as stream:
                    promised = [line.split("#> ", 1)[1] for line in stream.read().splitlines() if "#> " in line]
                self.assertEqual(done.stdout.splitlines(), promised)

    def test_the_example_for_pytest_passes(self):
        python = next(filter(self.has_pytest, (sys.executable, "/usr/bin/python3")), None)
        if not python:
            self.skipTest("pytest is not installed")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLES]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.app, env=self.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("passed", done.stdout)

    def has_pytest(self, python):
        if python == sys.executable:
            return importlib.util.find_spec("pytest") is not None
        return subprocess.run([python, "-c", "import pytest"], stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    tap.main()
