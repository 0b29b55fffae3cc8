# SPDX-License-Identifier: MIT
"""Handles of the library, and the process they belong to."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Callable, Optional

from ._library import library

# Counts forks. A handle holds fds under their numbers; in a forked child these may be anything
# else, and must not be closed by a destructor that happens to run there.
_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


# Those that programs have handlers for. Not all 64: the signal module turns each into an object, each
# time, which would take longer than the fork.
SIGNALS = frozenset(
    getattr(signal, "SIG" + name)
    for name in "HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD CONT TSTP URG XCPU VTALRM PROF WINCH IO".split()
    if hasattr(signal, "SIG" + name)
)


def is_finalizing(_asked: Callable[[], bool] = sys.is_finalizing) -> bool:
    """Whether the interpreter ends. Its other threads have been stopped then, in the middle of anything
    and with locks held, or still work inside the library. Jails end with the process."""
    return _asked()


class Owned:
    """A handle that is freed once, and only in the process that made it."""

    _free = ""
    _kind = "call"  # for messages

    def __init__(self, handle: Optional[int]) -> None:
        self._handle = handle
        self._made_after = _forks

    def _opened(self) -> int:
        """The handle, for as long as there is one."""
        if not self._handle:
            raise ValueError(f"the {self._kind} is closed")
        return self._handle

    def _is_here(self) -> bool:
        """Whether this is the process that made it."""
        return self._made_after == _forks

    def _release(self) -> None:
        handle, self._handle = self._handle, None
        if handle and self._is_here():
            getattr(library(), self._free)(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and not is_finalizing():
            self._release()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {self._kind} belongs to its process and cannot be pickled")
