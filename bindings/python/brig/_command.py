# SPDX-License-Identifier: MIT
"""Commands in a jail."""

from __future__ import annotations

import ctypes
import json
import os
import warnings
from ctypes import byref, c_int, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from ._errors import CommandError, UnenforcedWarning
from ._library import BrigError, Command, check, library, strings
from ._options import MIB, RunOptions, at_least_one, milliseconds, paths
from ._policy import MODES, Path, Policy, word
from ._process import Owned
from ._wait import wait, wait_async

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RunKeywords

_STDIO_NULL, _STDIO_INHERIT, _STDIO_CAPTURE, _STDIO_BYTES = 0, 1, 3, 4
_DEFAULTS = RunOptions()


@dataclass(frozen=True)
class Completed:
    """What became of a command."""

    args: List[str]
    outcome: str  # 'exited', 'signalled', 'timeout', 'cpu-timeout', 'oom', …
    exit_code: int  # -1 unless it exited
    signal: int  # that ended it, or 0
    status: int  # as a shell would say it
    stdout: bytes
    stderr: bytes
    truncated: bool  # whether output was left out
    details: Dict[str, Any] = field(repr=False)  # usage, what was not enforced, and more

    @property
    def ok(self) -> bool:
        return self.outcome == "exited" and self.exit_code == 0

    @property
    def usage(self) -> Dict[str, Any]:
        return self.details.get("usage") or {}

    @property
    def unenforced(self) -> List[str]:
        return self.details.get("unenforced") or []

    def check(self) -> "Completed":
        """Itself if it exited with 0; else raises CommandError."""
        if self.ok:
            return self
        if self.outcome == "exited":
            ending = f"exited with {self.exit_code}"
        else:
            ending = f"ended: {self.outcome}"
        raise CommandError(f"the command '{self.args[0]}' {ending}", self)


def _policy(options: RunOptions) -> Policy:
    """The policy with the options laid over it."""
    word(MODES, "mode", options.mode)
    policy = options.policy.copy() if options.policy else Policy(options.mode)
    if "on_unsupported" not in policy._said or options.on_unsupported != _DEFAULTS.on_unsupported:
        policy.on_unsupported(options.on_unsupported)
    if options.env is None:
        policy._set("brig_policy_host_env", True)
    else:
        policy._set("brig_policy_setenv", b"*", None)  # all that is given is passed on
    for path in paths("fs_allow", options.fs_allow):
        policy.grant(path, "read-write")
    for path in paths("fs_read_allow", options.fs_read_allow):
        policy.grant(path, "read-only")
    if options.network is not None:
        policy.network(options.network)
    if options.cwd is not None:
        policy.workdir(options.cwd)
    return policy.limit(**_limits(options, policy._said))


def _limits(options: RunOptions, said: Dict[str, Any]) -> Dict[str, int]:
    """The limits of the options. One that is left at its default leaves that of the policy."""
    limits = {}
    if "wall_ms" not in said or options.timeout != _DEFAULTS.timeout:
        limits["wall_ms"] = milliseconds("timeout", options.timeout)
    if "grace_ms" not in said or options.grace != _DEFAULTS.grace:
        limits["grace_ms"] = milliseconds("grace", options.grace or None)
    if options.cpu_timeout is not None:
        limits["cpu_ms"] = milliseconds("cpu_timeout", options.cpu_timeout)
    if options.processes is not None:
        limits["processes"] = at_least_one("processes", options.processes)
    if options.max_output is not None:
        limits["output_bytes"] = at_least_one("max_output", options.max_output)
    kind = {"address_space": "address_space_bytes", "rss": "memory_bytes"}
    if options.memory not in kind:
        raise ValueError(f"memory={options.memory!r} is not one of 'address_space', 'rss'")
    if options.memory_mb is not None:
        limits[kind[options.memory]] = at_least_one("memory_mb", options.memory_mb) * MIB
    return limits


def _arguments(cmd: Sequence[Path]) -> List[str]:
    if isinstance(cmd, (str, bytes)):
        raise TypeError("the command is a list of arguments; for a shell: ['sh', '-c', text]")
    if not cmd:
        raise ValueError("the command is empty")
    return [os.fsdecode(part) for part in cmd]


class _Job(Owned):
    """A command that runs."""

    _free = "brig_job_free"

    def __init__(self, cmd: Sequence[Path], options: RunOptions) -> None:
        self._lib = library()
        self._args = _arguments(cmd)
        self._options = options
        policy = _policy(options)
        self._warns = policy._said["on_unsupported"] == "warn"
        command = Command()
        command.argv = strings(self._args)
        variables = os.environ if options.env is None else options.env
        command.envp = strings(f"{name}={value}" for name, value in variables.items())
        self._set_streams(command)
        job, err = c_void_p(), BrigError()
        code = self._lib.brig_start(policy._handle, byref(command), byref(job), byref(err))
        super().__init__(job.value)
        check(code, err)

    def _set_streams(self, command: Command) -> None:
        output = _STDIO_CAPTURE if self._options.capture else _STDIO_INHERIT
        command.stdio[1].kind = command.stdio[2].kind = output
        given = self._options.input
        if given is None:
            command.stdio[0].kind = _STDIO_NULL
            return
        # Borrowed by the library until the job is done, so it is kept here.
        self._input = given.encode() if isinstance(given, str) else bytes(given)
        command.stdio[0].kind = _STDIO_BYTES
        command.stdio[0].bytes = self._input
        command.stdio[0].length = len(self._input)

    def fd(self) -> int:
        return self._lib.brig_job_fd(self._handle)

    def process(self) -> int:
        err = BrigError()
        return check(self._lib.brig_job_process(self._handle, byref(err)), err)

    def finish(self, check_status: bool) -> Completed:
        completed = self._result()
        if self._warns:
            for line in completed.unenforced:
                warnings.warn(f"not enforced: {line}", UnenforcedWarning, stacklevel=3)
        return completed.check() if check_status else completed

    def _result(self) -> Completed:
        result, err = c_void_p(), BrigError()
        try:
            check(self._lib.brig_job_result(self._handle, byref(result), byref(err)), err)
            return self._completed(result)
        finally:
            self._lib.brig_result_free(result)

    def _completed(self, result: c_void_p) -> Completed:
        text, err = c_void_p(), BrigError()
        check(self._lib.brig_result_json(result, byref(text), byref(err)), err)
        details = json.loads(self._lib.take_text(text))
        out, out_cut = read_output(self._lib.brig_result_output, result, 1)
        errors, errors_cut = read_output(self._lib.brig_result_output, result, 2)
        code = details.get("exit_code")
        return Completed(
            self._args,
            details["outcome"],
            -1 if code is None else code,
            details.get("signal") or 0,
            self._lib.brig_result_status(result),
            out,
            errors,
            out_cut or errors_cut,
            details,
        )


def read_output(function: Any, result: c_void_p, stream: int) -> "tuple[bytes, bool]":
    length, truncated = c_size_t(), c_int()
    data = function(result, stream, byref(length), byref(truncated))
    return ctypes.string_at(data, length.value) if data else b"", bool(truncated.value)


def run(
    cmd: Sequence[Path], *, check: bool = False, **options: Unpack[RunKeywords]
) -> Completed:
    """Runs a command in a jail and waits for it.

    The command is a list of arguments. Options: timeout and cpu_timeout in seconds (30; none),
    memory_mb (the mode's) as memory='address_space' or 'rss', processes, max_output in bytes of
    each stream, grace in seconds between TERM and KILL (0), fs_allow and fs_read_allow (paths),
    network ('none', 'loopback', 'host', 'allow' or 'open'; the mode's), cwd, env (passed on as it is;
    by default the caller's, of which the mode keeps what is harmless), input (bytes or text), capture (True: stdout and stderr are collected),
    on_unsupported ('raise', 'warn', 'ignore'), mode ('sealed'), policy (a Policy instead of the
    mode, over which the options are laid; what it says about limits and on_unsupported stays where
    an option has its default). With check=True all but exit status 0 raises CommandError.

    >>> brig.run(["python3", "-c", "print(6 * 7)"]).stdout
    b'42\\n'
    """
    job = _Job(cmd, RunOptions(**options))
    try:
        wait(job.fd(), job.process)
        return job.finish(check)
    finally:
        job._release()


async def run_async(
    cmd: Sequence[Path], *, check: bool = False, **options: Unpack[RunKeywords]
) -> Completed:
    """The same for asyncio. When the task is cancelled, so is the command."""
    job = _Job(cmd, RunOptions(**options))
    try:
        await wait_async(job.fd(), job.process)
        return job.finish(check)
    finally:
        job._release()
