# SPDX-License-Identifier: MIT
"""Tests of code that is not trusted, with pytest: each solution is run in a jail, so that one that loops,
reads files or exits fails its test and nothing else.

    pytest docs/examples/python/test_solutions.py
"""

import brig
import pytest

SOLUTIONS = {
    "good": "def double(x): return 2 * x",
    "loops": "def double(x):\n while True: pass",
    "reads": "def double(x): return len(open('/etc/passwd').read())",
    "exits": "def double(x):\n import os\n os._exit(0)",
    "raises": "def double(x): return {}[x]",
}


def evaluate(source, *arguments):
    """Only ever called in the jail: the text of a solution can do anything, and not only when it is called."""
    names = {}
    exec(source, names)
    return names["double"](*arguments)


@pytest.fixture(scope="module")
def jail():
    with brig.Jail(timeout=30, cpu_timeout=1, network="none") as made:
        yield made


@pytest.mark.parametrize("number, doubled", [(0, 0), (21, 42), (-1, -2)])
def test_a_good_solution(jail, number, doubled):
    assert jail.call(evaluate, SOLUTIONS["good"], number) == doubled


@pytest.mark.parametrize(
    "name, error",
    [
        ("loops", brig.TimeoutError),
        ("reads", brig.FilesystemError),
        ("exits", brig.ExitedError),
        ("raises", brig.SandboxError),
    ],
)
def test_a_bad_solution(jail, name, error):
    with pytest.raises(error):
        jail.call(evaluate, SOLUTIONS[name], 21)
