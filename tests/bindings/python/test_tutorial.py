# SPDX-License-Identifier: MIT
"""The tutorial does what it says, and the project's README: blocks are run one after the other, and what they print is
what their lines `#>` say."""

import contextlib
import io
import os
import re
import shutil
import tempfile
import unittest
from unittest import mock

import tap

BLOCK = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.M | re.S)


class Documents(unittest.TestCase):
    def run_blocks(self, *path):
        """Runs the blocks of a document in one namespace; says how many there were."""
        scratch = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, scratch)
        with open(os.path.join(tap.ROOT, *path), encoding="utf-8") as stream:
            blocks = BLOCK.findall(stream.read())
        names = {"__name__": "tutorial"}
        with mock.patch.object(tempfile, "tempdir", scratch):
            for block in blocks:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(block, "<tutorial>", "exec"), names)
                promised = [line[3:] for line in block.splitlines() if line.startswith("#> ")]
                self.assertEqual(printed.getvalue().splitlines(), promised)
        return len(blocks)

    def test_every_block_of_the_tutorial_prints_what_it_says(self):
        self.assertGreater(self.run_blocks("docs", "tutorial-python.md"), 6)

    def test_the_block_of_the_projects_readme_prints_what_it_says(self):
        self.assertEqual(self.run_blocks("README.md"), 1)


if __name__ == "__main__":
    tap.main()
