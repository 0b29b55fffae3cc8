# SPDX-License-Identifier: MIT
"""A command that runs: the job of the library, and how it is started."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import threading
import warnings
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import Error, UnenforcedWarning
from ._library import BrigError, Command, PassFd, check, library, strings
from ._options import DEFAULT, DEFAULT_TIMEOUT, DEVNULL, MIB, PIPE, STDOUT, JailOptions, PassFds
from ._options import Path, Stream, StreamOptions, at_least_one, milliseconds, paths
from ._policy import MODES, Policy, policy_given, word
from ._process import Owned
from ._result import Completed, read_output

_NULL, _INHERIT, _FD, _CAPTURE, _BYTES, _PIPE, _PTY, _STDOUT = range(8)
_NAMES = ("stdin", "stdout", "stderr")
_CHUNK = 65536


# ---- The policy of a command ---------------------------------------------------------------------


def policy_of(options: JailOptions) -> Policy:
    """The policy with the options laid over it."""
    word(MODES, "mode", options.mode)
    given = policy_given(options.policy)
    policy = given.copy() if given else Policy(options.mode)
    if options.on_unsupported is not None:
        policy.on_unsupported(options.on_unsupported)
    for path in paths("fs_allow", options.fs_allow):
        policy.grant(path, "read-write")
    for path in paths("fs_read_allow", options.fs_read_allow):
        policy.grant(path, "read-only")
    if options.network is not None:
        policy.network(options.network)
    if options.cwd is not None:
        policy.workdir(options.cwd)
    if options.env is None:
        policy.host_env()
    else:
        policy.setenv({"*": None})  # all that is given is passed on
    return policy.limit(**_limits(options, policy))


def _limits(options: JailOptions, policy: Policy) -> Dict[str, int]:
    limits: Dict[str, int] = {}
    if options.timeout != DEFAULT:
        limits["wall_ms"] = milliseconds("timeout", options.timeout)
    elif "wall_ms" not in policy._said:
        limits["wall_ms"] = milliseconds("timeout", DEFAULT_TIMEOUT)
    if options.grace is not None:
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


# ---- What is run ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Streams:
    """Where the command's streams lead, and which fds it gets beside them."""

    kinds: Tuple[int, int, int]
    fds: Tuple[int, int, int] = (-1, -1, -1)
    input: Optional[bytes] = None
    pass_fds: PassFds = ()


def captured(given: Union[bytes, str, None], capture: bool, encoding: str, pass_fds: PassFds) -> Streams:
    """The streams of run()."""
    data = given.encode(encoding) if isinstance(given, str) else None if given is None else bytes(given)
    output = _CAPTURE if capture else _INHERIT
    return Streams((_NULL if data is None else _BYTES, output, output), input=data, pass_fds=pass_fds)


def streams_of(options: StreamOptions) -> Streams:
    """The streams of start()."""
    if options.pty:
        if (options.stdin, options.stdout, options.stderr) != (DEVNULL, None, None):
            raise ValueError("with pty=True the terminal is stdin, stdout and stderr")
        return Streams((_PTY, _PTY, _PTY), pass_fds=options.pass_fds)
    ways = (options.stdin, options.stdout, options.stderr)
    (in_kind, in_fd), (out_kind, out_fd), (err_kind, err_fd) = map(_way, ways, _NAMES)
    return Streams((in_kind, out_kind, err_kind), (in_fd, out_fd, err_fd), None, options.pass_fds)


def _way(stream: Stream, name: str) -> Tuple[int, int]:
    """The kind of a stream, and its fd."""
    if stream is None:
        return _INHERIT, -1
    if stream == PIPE:
        return _PIPE, -1
    if stream == DEVNULL:
        return _NULL, -1
    if stream == STDOUT and name == "stderr":
        return _STDOUT, -1
    fd = stream if isinstance(stream, int) else stream.fileno()
    if fd < 0:
        raise ValueError(f"{name}={stream!r} is not PIPE, DEVNULL, an fd or a file")
    return _FD, fd


def arguments(cmd: Sequence[Path]) -> List[str]:
    if isinstance(cmd, (str, bytes)):
        raise TypeError("the command is a list of arguments; for a shell: ['sh', '-c', text]")
    if not cmd:
        raise ValueError("the command is empty")
    return [os.fsdecode(part) for part in cmd]


def _passed(pass_fds: PassFds) -> Any:
    pairs = pass_fds.items() if isinstance(pass_fds, Mapping) else zip(pass_fds, pass_fds)
    made = [PassFd(fd, number) for fd, number in pairs]
    return (PassFd * len(made))(*made)


class Launcher:
    """Starts commands with one policy; `template` is a handle of the library, or None."""

    def __init__(self, options: JailOptions) -> None:
        self.policy = policy_of(options)
        self.env = options.env
        self.template: Optional[Owned] = None

    def native(self, args: List[str], streams: Streams) -> Command:
        command = Command()
        command.argv = strings(args)
        variables = os.environ if self.env is None else self.env
        command.envp = strings(f"{name}={value}" for name, value in variables.items())
        for stream, kind, fd in zip(command.stdio, streams.kinds, streams.fds):
            stream.kind, stream.fd = kind, fd
        if streams.input is not None:
            command.stdio[0].bytes = streams.input
            command.stdio[0].length = len(streams.input)
        passed = _passed(streams.pass_fds)
        command.pass_fds, command.pass_fd_count = passed, len(passed)
        return command

    def start(self, command: Command, job: c_void_p, err: BrigError) -> int:
        lib = library()
        rest = byref(command), byref(job), byref(err)
        if self.template is not None:
            code: int = lib.brig_template_start(self.template._opened(), *rest)
        else:
            code = lib.brig_start(self.policy._handle, *rest)
        return code

    def output_limit(self) -> int:
        """Bytes of a stream that communicate() keeps; 0: all."""
        return int(self.policy.to_dict()["limits"]["output_bytes"])


# ---- The job -------------------------------------------------------------------------------------


class Running(Owned):
    """A job of the library. Its methods may be called by several threads."""

    _free = "brig_job_free"
    _kind = "job"

    def __init__(self, cmd: Sequence[Path], launcher: Launcher, streams: Streams) -> None:
        """start() follows, or launch() and settle(): only the library works in launch()."""
        super().__init__(None)
        self._lib = library()
        self._lock = threading.RLock()
        self._launcher = launcher
        self._streams = streams  # the input is borrowed by the library until the job is done
        self._completed: Optional[Completed[bytes]] = None
        self._relayed = -1
        self._started = 0
        self._job, self._err = c_void_p(), BrigError()
        self.ends: List[int] = [-1, -1, -1]  # of pipes, the caller's
        self.args = arguments(cmd)
        self._command = launcher.native(self.args, streams)

    def start(self) -> Running:
        self.launch()
        self.settle()
        return self

    def launch(self) -> None:
        """Starts the command; what became of that is told by settle()."""
        self._started = self._launcher.start(self._command, self._job, self._err)
        self._handle = self._job.value

    def settle(self) -> None:
        """Takes over what the job has, or raises why there is none."""
        try:
            check(self._started, self._err)
        except BaseException:
            self.discard()
            raise
        self._take_ends()
        if _PTY not in self._streams.kinds:
            self._begin_relay()

    def discard(self) -> None:
        """Of a job that did not come to settle(), or not through it."""
        for fd in self.ends:
            if fd >= 0:
                os.close(fd)
        self.ends = [-1, -1, -1]

    def _take_ends(self) -> None:
        """Files of Python own the pipes from here on."""
        for stream in range(3):
            fd = self._lib.brig_job_stream(self._handle, stream)
            if fd >= 0:
                self.ends[stream] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
                self._lib.brig_job_close_stream(self._handle, stream, None)

    def fd(self) -> int:
        return int(self._lib.brig_job_fd(self._opened()))

    def fds(self) -> List[int]:
        """All that must be waited for: readable when process() has something to do."""
        return [fd for fd in (self.fd(), self._relayed) if fd >= 0]

    def process(self) -> int:
        """1 when the job is over. Does not block."""
        with self._lock:
            if self._completed is not None:
                return 1
            err = BrigError()
            over = check(self._lib.brig_job_process(self._opened(), byref(err)), err)
            self._relay()
            if over:
                self._completed = self._result()
            return over

    def completed(self) -> Optional[Completed[bytes]]:
        return self._completed

    def signal(self, number: int) -> None:
        """Nothing happens if the job is over, as in subprocess."""
        self._tell("brig_job_signal", number)

    def cancel(self) -> None:
        self._tell("brig_job_cancel")

    def resize(self, rows: int, columns: int) -> None:
        if not self._tell("brig_job_resize", rows, columns):
            raise ValueError("the job is over, and so is its terminal")

    def is_here(self) -> bool:
        return self._is_here()

    def check_here(self) -> None:
        if not self._is_here():
            raise ValueError("the job belongs to the process that started it")

    def _tell(self, function: str, *values: int) -> bool:
        self.check_here()
        err = BrigError()
        with self._lock:
            if self._completed is not None or not self._handle:
                return False
            check(getattr(self._lib, function)(self._handle, *values, byref(err)), err)
            return True

    def pid(self) -> int:
        return int(self._lib.brig_job_pid(self._opened()))

    def terminal(self) -> int:
        """A new fd of the terminal's other side; -1: there is none."""
        fd = self._lib.brig_job_terminal(self._opened())
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) if fd >= 0 else -1

    def kept_dir(self) -> int:
        return int(self._lib.brig_job_kept_dir(self._opened()))

    def output_limit(self) -> int:
        return self._launcher.output_limit()

    def net_events(self) -> List[Dict[str, Any]]:
        events: List[Dict[str, Any]] = []
        with self._lock:
            while True:
                event = self._lib.brig_job_take_net_event(self._opened())
                if not event:
                    return events
                text, err = c_void_p(), BrigError()
                check(self._lib.brig_net_event_json(event, byref(text), byref(err)), err)
                events.append(json.loads(self._lib.take_text(text)))

    def abandon(self) -> None:
        """Ends it at once, for nobody. Also called by the collector, and in forked children."""
        if self._is_here() and self._handle:
            with contextlib.suppress(Error):  # it may be just over
                self.signal(signal.SIGKILL)
                self.cancel()

    def release(self) -> None:
        """Ends the job if it still runs."""
        with self._lock:
            self._release()

    # A terminal of the caller's was replaced by one of the jail's; what is printed there is printed.
    def _begin_relay(self) -> None:
        fd = self._lib.brig_job_terminal(self._handle)
        if fd >= 0:
            os.set_blocking(fd, False)
            self._relayed = fd

    def _relay(self) -> None:
        while self._relayed >= 0:
            try:
                data = os.read(self._relayed, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._relayed = -1
                return
            while data:
                data = data[os.write(1 if os.isatty(1) else 2, data) :]

    def _result(self) -> Completed[bytes]:
        result, err = c_void_p(), BrigError()
        try:
            check(self._lib.brig_job_result(self._handle, byref(result), byref(err)), err)
            return self._read(result)
        finally:
            self._lib.brig_result_free(result)

    def _read(self, result: c_void_p) -> Completed[bytes]:
        text, err = c_void_p(), BrigError()
        check(self._lib.brig_result_json(result, byref(text), byref(err)), err)
        details = json.loads(self._lib.take_text(text))
        out, out_cut = read_output(self._lib.brig_result_output, result, 1)
        errors, errors_cut = read_output(self._lib.brig_result_output, result, 2)
        code = details.get("exit_code")
        return Completed(
            self.args,
            details["outcome"],
            -1 if code is None else code,
            details.get("signal") or 0,
            self._lib.brig_result_status(result),
            out,
            errors,
            out_cut or errors_cut,
            details,
        )

    def warn(self, stacklevel: int) -> None:
        """With on_unsupported='warn', of what was not enforced."""
        if self._completed and self._launcher.policy._said.get("on_unsupported") == "warn":
            for line in self._completed.unenforced:
                text = f"not enforced: {line}"
                warnings.warn(text, UnenforcedWarning, stacklevel=stacklevel + 1)
