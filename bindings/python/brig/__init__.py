# SPDX-License-Identifier: MIT
"""brig: call a function, or run a command, in a jail, and get its value or a typed error.

>>> import brig
>>> brig.call(pow, 2, 10)
1024

Functions: `call` with the defaults, `Jail` holds options, `jailed` is the decorator, `JailPoolExecutor`
makes many calls. Commands: `run` waits for one, `start` makes a `Job` to talk to, a `Template` is prepared
for many. `Policy` says more than options can. With asyncio: `call_async`, `run_async`, `start_async`.

All errors are below `Error`. A timeout raises TimeoutError, in functions and commands alike, unless
try_call() or run(check=False) was asked to return it.
"""

from ._async import AsyncJob
from ._call import Jail, Outcome, call, call_async, confine_self, interpreter_paths, jailed
from ._command import Template, run, run_async, start, start_async
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
    TimeoutExpired,
    UnenforcedWarning,
    UnsupportedPlatformError,
)
from ._executor import JailPoolExecutor
from ._job import Job
from ._options import DEVNULL, PIPE, STDOUT
from ._policy import Policy
from ._result import Completed

__version__ = "0.2.0"

# Names that are also Python's (TimeoutError, MemoryError) are not for `from brig import *`.
__all__ = [
    "AsyncJob",
    "CPUTimeoutError",
    "CancelledError",
    "CommandError",
    "Completed",
    "CrashedError",
    "DEVNULL",
    "Error",
    "ExitedError",
    "FilesystemError",
    "Jail",
    "JailPoolExecutor",
    "Job",
    "NetworkError",
    "Outcome",
    "OutputLimitError",
    "PIPE",
    "Policy",
    "ProcessLimitError",
    "ResultError",
    "STDOUT",
    "SandboxError",
    "SetupError",
    "SyscallError",
    "Template",
    "TimeoutExpired",
    "UnenforcedWarning",
    "UnsupportedPlatformError",
    "call",
    "call_async",
    "confine_self",
    "interpreter_paths",
    "jailed",
    "run",
    "run_async",
    "start",
    "start_async",
]

# Tracebacks name an error as programs do: brig.FilesystemError.
for _name, _value in list(vars().items()):
    if isinstance(_value, type) and issubclass(_value, Error):
        _value.__module__ = __name__
