# SPDX-License-Identifier: MIT
"""The options of calls and commands: their names, types and defaults.

Each is written twice: as the keywords a type checker knows, and as the record with the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Mapping, Optional, Sequence, Union

if TYPE_CHECKING:
    from typing_extensions import Literal, TypedDict

    from ._policy import Path, Policy

    Memory = Literal["address_space", "rss"]
    Network = Literal["none", "loopback", "host", "allow", "open"]
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
        network: Network
        namespaces: bool
        unix_sockets: bool
        capture: bool
        trace: bool
        result: Result
        on_unsupported: OnUnsupported
        policy: Optional[Policy]

    class RunKeywords(TypedDict, total=False):
        timeout: Optional[float]
        cpu_timeout: Optional[float]
        memory_mb: Optional[int]
        memory: Memory
        processes: Optional[int]
        grace: float
        max_output: Optional[int]
        fs_allow: Sequence[Path]
        fs_read_allow: Sequence[Path]
        network: Optional[Network]
        cwd: Optional[Path]
        env: Optional[Mapping[str, str]]
        input: Union[bytes, str, None]
        capture: bool
        on_unsupported: OnUnsupported
        mode: Literal["sealed", "casual", "bare", "strict"]
        policy: Optional[Policy]


MIB = 1 << 20
# Of cpu_timeout: the same as timeout.
SAME = -1


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
    network: Network = "host"
    namespaces: bool = False
    unix_sockets: bool = False
    capture: bool = False
    trace: bool = False
    result: Result = "plain"
    on_unsupported: OnUnsupported = "raise"
    policy: Optional[Policy] = None


@dataclass(frozen=True)
class RunOptions:
    timeout: Optional[float] = 30
    cpu_timeout: Optional[float] = None
    memory_mb: Optional[int] = None
    memory: Memory = "address_space"
    processes: Optional[int] = None
    grace: float = 0
    max_output: Optional[int] = None
    fs_allow: Sequence[Path] = ()
    fs_read_allow: Sequence[Path] = ()
    network: Optional[Network] = None
    cwd: Optional[Path] = None
    env: Optional[Mapping[str, str]] = None
    input: Union[bytes, str, None] = None
    capture: bool = True
    on_unsupported: OnUnsupported = "raise"
    mode: Literal["sealed", "casual", "bare", "strict"] = "sealed"
    policy: Optional[Policy] = None


def milliseconds(name: str, seconds: Optional[float]) -> int:
    """Whole milliseconds, at least one: 0 would mean that there is no limit, and None means that."""
    if seconds is None:
        return 0
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
