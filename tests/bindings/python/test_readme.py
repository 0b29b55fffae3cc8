# SPDX-License-Identifier: MIT
"""The README does what it says: each block after a line `<!-- run -->` is run, with tools of ours in
the place of those it speaks of, and with its /app in a scratch directory."""

import contextlib
import io
import os
import re
import shutil
import tempfile
import unittest

import tap
import brig

BLOCK = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.M | re.S)


class Readme(unittest.TestCase):
    def setUp(self):
        self.app = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, self.app)
        for name in ("tmp", "uploads", "config"):
            os.mkdir(os.path.join(self.app, name))
        with open(os.path.join(tap.PACKAGE, "README.md"), encoding="utf-8") as stream:
            self.blocks = BLOCK.findall(stream.read())

    def run_blocks(self, having, **names):
        """Runs the blocks that have a text in them; returns their names and what they printed."""
        printed = io.StringIO()
        chosen = [block for block in self.blocks if having in block]
        self.assertTrue(chosen)
        for block in chosen:
            names["__name__"] = "readme"
            with contextlib.redirect_stdout(printed):
                exec(compile(block.replace("/app", self.app), "<README>", "exec"), names)
        return names, printed.getvalue()

    def test_every_block_runs(self):
        self.assertEqual(len(self.blocks), 5)
        self.run_blocks("brig", tool=len, failing_tool=len, arguments="abc")

    def test_the_first_block_gets_the_value(self):
        def tool(text):
            with open(os.path.join(self.app, "tmp", "note"), "w") as stream:
                return stream.write(text)

        names, _ = self.run_blocks("result = jail.call", tool=tool, arguments="abc")
        self.assertEqual(names["result"], 3)

    def test_a_tool_that_fails_is_reported(self):
        def failing_tool(text):
            raise LookupError("no " + text)

        _, printed = self.run_blocks("failing_tool", failing_tool=failing_tool, arguments="abc")
        self.assertIn("tool raised LookupError: no abc\n", printed)
        self.assertIn("in failing_tool", printed)

    def test_a_tool_that_reads_the_password_file_is_reported(self):
        _, printed = self.run_blocks(
            "failing_tool", failing_tool=lambda path: open(path).read(), arguments="/etc/passwd"
        )
        self.assertEqual(printed, "refused: read /etc/passwd\n")


if __name__ == "__main__":
    tap.main()
