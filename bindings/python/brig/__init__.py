# SPDX-License-Identifier: MIT
"""brig: call a function, or run a command, in a jail, and get its value or a typed error.

>>> import brig
>>> brig.call(pow, 2, 10)
1024

`Jail` holds options for calls, `jailed` is the decorator, `run` runs commands, `Policy` says more
than options can; `call_async` and `run_async` are for asyncio. All errors are below `Error`.
"""

from ._call import Jail, Outcome, call, call_async, confine_self, interpreter_paths, jailed
from ._command import Completed, run, run_async
from ._errors import (
    CancelledError,
    CommandError,
    CPUTimeoutError,
    CrashedError,
    Error,
    ExitedError,
    FilesystemError,
    MemoryError,
    NetworkError,
    OutputLimitError,
    ProcessLimitError,
    ResultError,
    SandboxError,
    SetupError,
    SyscallError,
    TimeoutError,
    UnenforcedWarning,
    UnsupportedPlatformError,
)
from ._policy import Policy

__version__ = "0.2.0"

# Names that are also Python's (TimeoutError, MemoryError) are not for `from brig import *`.
__all__ = [
    "CPUTimeoutError",
    "CancelledError",
    "CommandError",
    "Completed",
    "CrashedError",
    "Error",
    "ExitedError",
    "FilesystemError",
    "Jail",
    "NetworkError",
    "Outcome",
    "OutputLimitError",
    "Policy",
    "ProcessLimitError",
    "ResultError",
    "SandboxError",
    "SetupError",
    "SyscallError",
    "UnenforcedWarning",
    "UnsupportedPlatformError",
    "call",
    "call_async",
    "confine_self",
    "interpreter_paths",
    "jailed",
    "run",
    "run_async",
]
