# SPDX-License-Identifier: MIT
"""What can become of a call other than a value, as a tree of exceptions."""

from __future__ import annotations

import builtins
from typing import Any, Dict, List, Mapping, Optional, Type


class UnenforcedWarning(RuntimeWarning):
    """This system could not enforce something, and on_unsupported is 'warn'."""


class Error(Exception):
    """All that brig raises, but for ValueError and TypeError where an argument is wrong.

    `details` is what the library observed: outcome, usage, denials and more, as plain data. What
    the function reported about itself, in the `original_` attributes, is untrusted text.
    """

    def __init__(self, message: str, details: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.details: Dict[str, Any] = dict(details or {})
        self.stdout: bytes = b""
        self.stderr: bytes = b""
        self.result: Any = None  # of a command: what became of it, a Completed

    @property
    def original_class(self) -> Optional[str]:
        """The name of the exception's class, if an exception of the function is the reason."""
        return self.details.get("class")

    @property
    def original_message(self) -> Optional[str]:
        return self.details.get("message")

    @property
    def original_backtrace(self) -> List[str]:
        return (self.details.get("backtrace") or "").splitlines()

    def _denied(self, key: str) -> Optional[str]:
        found: Optional[str] = (self.details.get("denial") or {}).get(key)
        return found


class TimeoutError(Error, builtins.TimeoutError):
    """The wall clock ran out, and the function or command was ended."""


class TimeoutExpired(TimeoutError):
    """Job.wait(timeout) or communicate(timeout) waited so long in vain: the command goes on."""


class CPUTimeoutError(TimeoutError):
    """The time of the CPU ran out."""


class MemoryError(Error, builtins.MemoryError):
    """Memory ran out."""


class FilesystemError(Error):
    """The function was refused a path."""

    @property
    def path(self) -> Optional[str]:
        return self._denied("subject")

    @property
    def access(self) -> Optional[str]:
        """What was tried: 'read', 'write', 'execute' or 'unknown'."""
        return self._denied("access")

    @property
    def rule(self) -> Optional[str]:
        return self._denied("rule")


class SandboxError(Error):
    """The function ended in a way of its own: it raised an exception, or one of those below."""


class NetworkError(SandboxError):
    """The function was refused an address."""

    @property
    def address(self) -> Optional[str]:
        return self._denied("subject")


class SyscallError(SandboxError):
    """The function was refused a system call."""

    @property
    def syscall(self) -> Optional[str]:
        return self._denied("subject")


class ProcessLimitError(SandboxError):
    """The function wanted one process too many."""


class OutputLimitError(SandboxError):
    """The value, or what was printed, was larger than allowed."""


class ExitedError(SandboxError):
    """The function ended its process instead of returning."""

    @property
    def exit_code(self) -> int:
        return self.details.get("exit_code", -1)


class CrashedError(SandboxError):
    """A signal ended the function's process."""

    @property
    def signal(self) -> int:
        return self.details.get("signal", 0)


class CancelledError(SandboxError):
    """The call was cancelled."""


class ResultError(SandboxError):
    """The function's value cannot be passed on: it is not plain, or its bytes are no value."""


class UnsupportedPlatformError(Error):
    """This system cannot enforce what was asked, and nothing ran."""


class SetupError(Error):
    """The jail could not be built, and nothing ran."""


class CommandError(Error):
    """A command of run(check=True) did not exit with 0; `result` is what became of it."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message, getattr(result, "details", None))
        self.result = result


# The child calls its own failure to return a value by this name.
RESULT_CLASS = "brig.ResultError"

_BY_OUTCOME: Dict[str, Type[Error]] = {
    "failed": SandboxError,
    "timeout": TimeoutError,
    "cpu-timeout": CPUTimeoutError,
    "memory": MemoryError,
    "filesystem": FilesystemError,
    "network": NetworkError,
    "syscall": SyscallError,
    "processes": ProcessLimitError,
    "output": OutputLimitError,
    "exited": ExitedError,
    "crashed": CrashedError,
    "cancelled": CancelledError,
    "unsupported": UnsupportedPlatformError,
    "setup-failed": SetupError,
}


def error_of(details: Mapping[str, Any]) -> Error:
    """The exception for what became of a call, as the library's JSON tells it."""
    outcome = details["outcome"]
    if outcome == "failed" and details.get("class") == RESULT_CLASS:
        return ResultError(details.get("message") or "", details)
    kind = _BY_OUTCOME.get(outcome, Error)
    return kind(details.get("text") or outcome, details)
