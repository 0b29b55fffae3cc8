# SPDX-License-Identifier: MIT
"""The options of calls and commands: their names, types and defaults.

Each is written twice: as the keywords a type checker knows, and as the record with the defaults,
from which help() has its signatures.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Type, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import Literal, TypedDict

    from ._policy import Policy

    Memory = Literal["address_space", "rss"]
    Mode = Literal["sealed", "casual", "bare", "strict"]
    Network = Literal["none", "loopback", "host", "allow", "open"]
    CallNetwork = Literal["none", "host"]
    OnUnsupported = Literal["raise", "warn", "ignore"]
    Result = Literal["plain", "pickle"]

    class CallKeywords(TypedDict, total=False):
        timeout: Optional[float]
        cpu_timeout: Optional[float]
        memory_mb: Optional[int]
        memory: Memory
        processes: Optional[int]
        grace: float
        max_result: Optional[int]
        max_output: Optional[int]
        fs_allow: Sequence[Path]
        fs_read_allow: Sequence[Path]
        interpreter: bool
        keep_fds: Sequence[int]
        network: CallNetwork
        namespaces: bool
        unix_sockets: bool
        capture: bool
        trace: bool
        result: Result
        types: Sequence[type]
        on_unsupported: OnUnsupported
        policy: Optional[Policy]

    class JailKeywords(TypedDict, total=False):
        timeout: Optional[float]
        cpu_timeout: Optional[float]
        memory_mb: Optional[int]
        memory: Memory
        processes: Optional[int]
        grace: Optional[float]
        max_output: Optional[int]
        fs_allow: Sequence[Path]
        fs_read_allow: Sequence[Path]
        network: Optional[Network]
        cwd: Optional[Path]
        env: Optional[Mapping[str, str]]
        on_unsupported: Optional[OnUnsupported]
        mode: Mode
        policy: Optional[Policy]

    class CaptureKeywords(TypedDict, total=False):
        encoding: Optional[str]
        errors: str
        input: Union[bytes, str, None]
        capture: bool
        pass_fds: PassFds

    class StreamKeywords(TypedDict, total=False):
        encoding: Optional[str]
        errors: str
        stdin: Stream
        stdout: Stream
        stderr: Stream
        pty: bool
        pass_fds: PassFds

    class RunKeywords(JailKeywords, CaptureKeywords, total=False):
        pass

    class StartKeywords(JailKeywords, StreamKeywords, total=False):
        pass


Path = Union[str, "os.PathLike[str]"]
# PIPE, DEVNULL, an fd, a file that has one, or None: the caller's own.
Stream = Union[None, int, IO[Any]]
# fds that the command gets under the same number, or under another.
PassFds = Union[Sequence[int], Mapping[int, int]]

PIPE, STDOUT, DEVNULL = -1, -2, -3  # as in subprocess

MIB = 1 << 20


class _Named(int):
    """A default that help() shows by its name."""

    def __new__(cls, name: str) -> _Named:
        made = super().__new__(cls, -1)
        made.name = name
        return made

    def __repr__(self) -> str:
        return self.name

    name: str


# Of cpu_timeout and processes in calls: the same as timeout, the policy's.
SAME = _Named("SAME")
# Of a command's timeout: that of the policy, or else this many seconds.
DEFAULT = _Named("DEFAULT")
DEFAULT_TIMEOUT = 30.0


@dataclass(frozen=True)
class CallOptions:
    timeout: Optional[float] = 30
    cpu_timeout: Optional[float] = SAME
    memory_mb: Optional[int] = 512
    memory: Memory = "address_space"
    processes: Optional[int] = SAME
    grace: float = 0
    max_result: Optional[int] = 64 * MIB
    max_output: Optional[int] = MIB
    fs_allow: Sequence[Path] = ()
    fs_read_allow: Sequence[Path] = ()
    interpreter: bool = True
    keep_fds: Sequence[int] = ()
    network: CallNetwork = "host"
    namespaces: bool = False
    unix_sockets: bool = False
    capture: bool = False
    trace: bool = False
    result: Result = "plain"
    types: Sequence[type] = ()
    on_unsupported: OnUnsupported = "raise"
    policy: Optional[Policy] = None


@dataclass(frozen=True)
class JailOptions:
    """What the jail of a command may do."""

    timeout: Optional[float] = DEFAULT
    cpu_timeout: Optional[float] = None
    memory_mb: Optional[int] = None
    memory: Memory = "address_space"
    processes: Optional[int] = None
    grace: Optional[float] = None
    max_output: Optional[int] = None
    fs_allow: Sequence[Path] = ()
    fs_read_allow: Sequence[Path] = ()
    network: Optional[Network] = None
    cwd: Optional[Path] = None
    env: Optional[Mapping[str, str]] = None
    on_unsupported: Optional[OnUnsupported] = None
    mode: Mode = "sealed"
    policy: Optional[Policy] = None


@dataclass(frozen=True)
class CaptureOptions:
    """Where the streams of run() lead."""

    text: bool = False
    encoding: Optional[str] = None
    errors: str = "replace"
    input: Union[bytes, str, None] = None
    capture: bool = True
    pass_fds: PassFds = ()


@dataclass(frozen=True)
class StreamOptions:
    """Where the streams of start() lead."""

    text: bool = False
    encoding: Optional[str] = None
    errors: str = "replace"
    stdin: Stream = DEVNULL
    stdout: Stream = None
    stderr: Stream = None
    pty: bool = False
    pass_fds: PassFds = ()


_Options = TypeVar("_Options")


def take(record: Type[_Options], keywords: Mapping[str, Any]) -> _Options:
    """The options of one record among keywords for several."""
    names = {field.name for field in dataclasses.fields(record)}
    return record(**{name: value for name, value in keywords.items() if name in names})


F = TypeVar("F", bound=Callable[..., Any])


class _Shown(str):
    """An annotation that help() shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


def signature(*records: type) -> Callable[[F], F]:
    """Gives a function that takes **options the signature that help() shows, and that refuses
    other names."""

    def decorate(function: F) -> F:
        given = inspect.signature(function)
        shown = [
            each if each.annotation is each.empty else each.replace(annotation=_Shown(each.annotation))
            for each in given.parameters.values()
            if each.kind is not each.VAR_KEYWORD
        ]
        shown += [_parameter(field) for record in records for field in dataclasses.fields(record)]
        returned = _Shown(given.return_annotation)
        made = given.replace(parameters=shown, return_annotation=returned)
        setattr(function, "__signature__", made)
        return function

    return decorate


def _parameter(field: Any) -> inspect.Parameter:
    kind, annotation = inspect.Parameter.KEYWORD_ONLY, _Shown(field.type)
    return inspect.Parameter(field.name, kind, default=field.default, annotation=annotation)


def refuse_unknown(what: str, keywords: Mapping[str, Any], *records: type) -> None:
    """Python's own words for a keyword that no option is named by."""
    names = {field.name for record in records for field in dataclasses.fields(record)}
    for name in keywords:
        if name not in names:
            raise TypeError(f"{what}() got an unexpected keyword argument {name!r}")


def milliseconds(name: str, seconds: Optional[float]) -> int:
    """Whole milliseconds, at least one: 0 would mean that there is no limit, and None means that."""
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{name}={seconds!r} is not a number of seconds")
    if not seconds > 0:
        raise ValueError(f"{name}={seconds!r} is not a time: give seconds above 0, or None for no limit")
    return max(1, int(min(seconds, 1e12) * 1000))


def at_least_one(name: str, value: Optional[int]) -> int:
    """A limit: None is none, which the library calls 0."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} is not a limit: give a whole number from 1, or None")
    return value


def paths(name: str, given: Sequence[Path]) -> Sequence[Path]:
    """One string where a list belongs would be taken for its letters."""
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name} is a list of paths: {name}=[{given!r}]")
    return given
