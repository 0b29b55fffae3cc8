# SPDX-License-Identifier: MIT
"""The tutorial does what it says: its blocks are run one after the other, and what they print is
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


class Tutorial(unittest.TestCase):
    def test_every_block_prints_what_it_says(self):
        scratch = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, scratch)
        with open(os.path.join(tap.ROOT, "docs", "tutorial-python.md")) as stream:
            blocks = BLOCK.findall(stream.read())
        self.assertGreater(len(blocks), 6)
        names = {"__name__": "tutorial"}
        with mock.patch.object(tempfile, "tempdir", scratch):
            for block in blocks:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(block, "<tutorial>", "exec"), names)
                promised = [line[3:] for line in block.splitlines() if line.startswith("#> ")]
                self.assertEqual(printed.getvalue().splitlines(), promised)


if __name__ == "__main__":
    tap.main()
