# SPDX-License-Identifier: MIT
"""What became of a command."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import Any, AnyStr, Dict, Generic, List, Optional, Tuple, Type

from ._errors import CommandError, CPUTimeoutError, Error, MemoryError, TimeoutError

# Limits that end a command raise, as they do for a function.
_LIMITS: Dict[str, Tuple[Type[Error], str]] = {
    "timeout": (TimeoutError, "took longer than its timeout"),
    "cpu-timeout": (CPUTimeoutError, "used more CPU time than allowed"),
    "oom": (MemoryError, "used more memory than allowed"),
}


@dataclass(frozen=True)
class Completed(Generic[AnyStr]):
    """What became of a command. With text=True, stdout and stderr are text."""

    args: List[str]
    outcome: str  # 'exited', 'signalled', 'timeout', 'cpu-timeout', 'oom', 'cancelled'
    exit_code: int  # -1 unless it exited
    signal: int  # that ended it, or 0
    status: int  # as a shell would say it
    stdout: AnyStr
    stderr: AnyStr
    truncated: bool  # whether output was left out
    details: Dict[str, Any] = field(repr=False)  # usage, what was not enforced, and more

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.outcome == "exited" and self.exit_code == 0

    @property
    def returncode(self) -> int:
        """As subprocess has it: the exit code, or the signal as a negative number."""
        return self.exit_code if self.outcome == "exited" else -(self.signal or 9)

    @property
    def usage(self) -> Dict[str, Any]:
        """Time, memory and processes that the command used."""
        return self.details.get("usage") or {}

    @property
    def unenforced(self) -> List[str]:
        """What this system did not enforce, one sentence each."""
        return self.details.get("unenforced") or []

    def check(self) -> Completed[AnyStr]:
        """Itself if it exited with 0; else raises CommandError, or the error of a limit."""
        error = self.limit_error() or self._status_error()
        if error is not None:
            raise error
        return self

    def limit_error(self) -> Optional[Error]:
        """The exception for a limit that ended the command, or None."""
        if self.outcome not in _LIMITS:
            return None
        kind, words = _LIMITS[self.outcome]
        return self._filled(kind(f"the command '{self.args[0]}' {words}", self.details))

    def _status_error(self) -> Optional[Error]:
        if self.ok:
            return None
        exited = self.outcome == "exited"
        ending = f"exited with {self.exit_code}" if exited else f"ended: {self.outcome}"
        return self._filled(CommandError(f"the command '{self.args[0]}' {ending}", self))

    def _filled(self, error: Error) -> Error:
        error.result, error.stdout, error.stderr = self, _bytes(self.stdout), _bytes(self.stderr)
        return error


def _bytes(output: Any) -> bytes:
    return output.encode(errors="replace") if isinstance(output, str) else bytes(output)


def read_output(function: Any, result: c_void_p, stream: int) -> Tuple[bytes, bool]:
    """Captured output, and whether there was more."""
    length, truncated = c_size_t(), c_int()
    data = function(result, stream, byref(length), byref(truncated))
    return ctypes.string_at(data, length.value) if data else b"", bool(truncated.value)
