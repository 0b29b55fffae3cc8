# SPDX-License-Identifier: MIT
"""Functions in a jail."""

from __future__ import annotations

import ctypes
import functools
import inspect
import json
import os
import pickle
import signal
import site
import sys
import sysconfig
import warnings
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Generic, List, Mapping, Optional
from typing import Sequence, TypeVar, cast, overload

from . import _child, _library, _plain, _types
from ._errors import Error, ResultError, SetupError, UnenforcedWarning
from ._errors import UnsupportedPlatformError, error_of
from ._library import BrigError, check, library
from ._options import SAME, CallOptions, at_least_one, milliseconds, paths, refuse_unknown, signature
from ._policy import CALL_NETWORKS, ON_UNSUPPORTED, Policy, encoded, policy_given, word
from ._process import SIGNALS, Owned
from ._result import read_output
from ._wait import READER, in_thread, turn, wait, wait_async

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    from ._options import CallKeywords

    P = ParamSpec("P")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_MEMORY = {"address_space": 0, "rss": 1}
_RESULTS = {"plain": 0, "pickle": 1}
_STDIO_CAPTURE = 3
# If the caller wants no limit for bytes, containers made of them are still bounded.
_NO_LIMIT = 1 << 40
# Values of so many bytes are read beside an event loop.
_LARGE = 16 * 1024


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of a call: a value, or an error. `details` is what the library observed."""

    value: Optional[T]
    error: Optional[Error]
    stdout: bytes  # with capture=True
    stderr: bytes
    details: Dict[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.error is None

    @property
    def usage(self) -> Dict[str, Any]:
        """Time, memory and processes that the call used."""
        return self.details.get("usage") or {}

    @property
    def denials(self) -> List[Dict[str, Any]]:
        """What the jail refused, as far as it was observed."""
        return self.details.get("denials") or []

    @property
    def unenforced(self) -> List[str]:
        """What this system did not enforce, one sentence each."""
        return self.details.get("unenforced") or []

    def unwrap(self) -> T:
        """The value; raises the error if there is none."""
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


def interpreter_paths() -> List[str]:
    """What Python itself reads: its installation, the environment it runs in, installed packages.

    Not the directory of the program: what the function imports from there should be imported
    before, or be granted.
    """
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    found.update(sysconfig.get_paths().values())
    found.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    if site.ENABLE_USER_SITE and site.USER_SITE:
        found.add(site.USER_SITE)
    existing = sorted({os.path.realpath(path) for path in found if os.path.isdir(path)} - {"/"})
    return [path for path in existing if not _below_another(path, existing)]


def _below_another(path: str, others: Sequence[str]) -> bool:
    return any(path != other and path.startswith(other + os.sep) for other in others)


# ---- The library's objects -----------------------------------------------------------------------


def _path_array(given: Sequence[Any]) -> Any:
    made = [encoded(path) for path in given]
    return (c_char_p * len(made))(*made)


class _Caller(Owned):
    """Options and policy, thought through once. Calls that are under way keep it alive."""

    _free = "brig_caller_free"

    def __init__(self, options: CallOptions) -> None:
        lib = library()
        native = _library.CallOptions()
        lib.brig_call_options_init(byref(native), ctypes.sizeof(native))
        _set_limits(native, options)
        _set_access(native, options)
        given = policy_given(options.policy)
        policy = given._handle if given else None
        native.on_unsupported = word(ON_UNSUPPORTED, "on_unsupported", options.on_unsupported)
        if options.on_unsupported == "warn":
            self._warn(native, policy)
        super().__init__(self._make(native, policy))

    @staticmethod
    def _make(native: _library.CallOptions, policy: Optional[int]) -> Optional[int]:
        caller, err = c_void_p(), BrigError()
        check(library().brig_caller_new(policy, byref(native), byref(caller), byref(err)), err)
        return caller.value

    def _warn(self, native: _library.CallOptions, policy: Optional[int]) -> None:
        """Warns of what would have been refused, and only of that."""
        native.on_unsupported = ON_UNSUPPORTED["raise"]
        try:
            library().brig_caller_free(self._make(native, policy))
        except UnsupportedPlatformError as error:
            warnings.warn(str(error), UnenforcedWarning, stacklevel=4)
        native.on_unsupported = ON_UNSUPPORTED["warn"]

    def unenforced(self) -> List[str]:
        lib = library()
        count = lib.brig_caller_unenforced_count(self._handle)
        lines = (lib.brig_caller_unenforced(self._handle, index) for index in range(count))
        return [line.decode(errors="replace") for line in lines]


def _set_limits(native: _library.CallOptions, options: CallOptions) -> None:
    native.timeout_ms = milliseconds("timeout", options.timeout)
    native.cpu_timeout_ms = _library.SAME
    if options.cpu_timeout != SAME:
        native.cpu_timeout_ms = milliseconds("cpu_timeout", options.cpu_timeout)
    native.processes = _library.SAME
    if options.processes != SAME:
        native.processes = at_least_one("processes", options.processes)
    native.memory_mb = at_least_one("memory_mb", options.memory_mb)
    native.memory = word(_MEMORY, "memory", options.memory)
    native.grace_ms = milliseconds("grace", options.grace or None)
    native.max_result = at_least_one("max_result", options.max_result)
    native.max_output = at_least_one("max_output", options.max_output)


def _set_access(native: _library.CallOptions, options: CallOptions) -> None:
    readable = list(paths("fs_read_allow", options.fs_read_allow))
    if options.interpreter:
        readable += interpreter_paths()
    writable = paths("fs_allow", options.fs_allow)
    # A field of a struct keeps alive what is assigned to it.
    native.fs_allow, native.fs_allow_count = _path_array(writable), len(writable)
    native.fs_read_allow, native.fs_read_allow_count = _path_array(readable), len(readable)
    native.keep_fds = (c_int * len(options.keep_fds))(*options.keep_fds)
    native.keep_fd_count = len(options.keep_fds)
    native.network = word(CALL_NETWORKS, "network", options.network)
    native.namespaces = bool(options.namespaces)
    native.unix_sockets = bool(options.unix_sockets)
    native.trace = bool(options.trace)
    if options.capture:
        native.stdio[1] = native.stdio[2] = _STDIO_CAPTURE


class _CallResult(Owned):
    """What became of a call, as the library has it."""

    _free = "brig_call_result_free"

    def is_large(self) -> bool:
        """Whether reading the value takes longer than an event loop should be held up."""
        length = c_size_t()
        library().brig_call_result_value(self._handle, byref(length))
        return length.value > _LARGE


class _Call(Owned):
    """One call that was begun: the forked child runs, and is ended if this is released."""

    _free = "brig_call_free"

    def __init__(
        self,
        caller: _Caller,
        options: CallOptions,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._lib = library()
        self._caller = caller
        self._options = options
        # Decided before the fork, so that both sides have the same list.
        self._types = _types.Registry(options.types, function)
        call, err = c_void_p(), BrigError()
        code = self._lib.brig_call_begin(caller._handle, byref(call), byref(err))
        super().__init__(call.value)
        check(code, err)
        _flush()
        # A child that was forked must be supervised: no handler of a signal may come between.
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                encode = _pickled if options.result == "pickle" else self._types.dump
                _child.run(self._lib, self._handle, signals, encode, function, args, kwargs)
            code = self._lib.brig_call_started(self._handle, pid, byref(err))
            check(code, err)
        except OSError as error:
            self._release()
            raise SetupError(f"cannot fork: {error.strerror}") from None
        except BaseException:
            # The frames of an exception may keep this alive for long; the child must not be.
            self._release()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, signals)

    def fd(self) -> int:
        return int(self._lib.brig_call_fd(self._opened()))

    def fds(self) -> List[int]:
        """What to wait for; none if the library has none."""
        fd = self.fd()
        return [fd] if fd >= 0 else []

    def process(self) -> int:
        err = BrigError()
        return check(self._lib.brig_call_process(self._handle, byref(err)), err)

    def block(self) -> None:
        """For the case that there is no fd to wait for."""
        err = BrigError()
        check(self._lib.brig_call_wait(self._handle, byref(err)), err)

    def finish(self) -> _CallResult:
        """What became of it, to be read with outcome(). The call is over."""
        result, err = c_void_p(), BrigError()
        code = self._lib.brig_call_finish(self._handle, byref(result), byref(err))
        found = _CallResult(result.value)
        check(code, err)
        return found

    def outcome(self, result: _CallResult) -> Outcome[Any]:
        try:
            return self._outcome(c_void_p(result._opened()))
        finally:
            result._release()

    def _outcome(self, result: c_void_p) -> Outcome[Any]:
        text, err = c_void_p(), BrigError()
        check(self._lib.brig_call_result_json(result, byref(text), byref(err)), err)
        details = json.loads(self._lib.take_text(text))
        value = None
        error: Optional[Error] = None
        if details["outcome"] == "returned":
            try:
                value = self._value(result)
            except ResultError as problem:
                error = problem
        else:
            error = error_of(details)
        stdout, _ = read_output(self._lib.brig_call_result_output, result, 1)
        stderr, _ = read_output(self._lib.brig_call_result_output, result, 2)
        if error is not None:
            error.stdout, error.stderr = stdout, stderr
        return Outcome(value, error, stdout, stderr, details)

    def _value(self, result: c_void_p) -> Any:
        length = c_size_t()
        address = self._lib.brig_call_result_value(result, byref(length))
        if not address:
            raise ResultError("the function's process returned without a value")
        data = (ctypes.c_char * length.value).from_address(address)
        try:
            if self._options.result == "pickle":
                return pickle.loads(data)
            return self._types.load(data, self._options.max_result or _NO_LIMIT)
        except Exception as error:
            cause = None if isinstance(error, _plain.PlainError) else error
            raise ResultError(f"the value that came back cannot be read: {error}") from cause


def _pickled(value: Any) -> List[bytes]:
    try:
        return [pickle.dumps(value, protocol=5)]
    except MemoryError:
        raise
    except Exception as error:
        raise _plain.PlainError(f"the value cannot be pickled: {error}") from None


def _flush() -> None:
    """What the program has printed so far must not be printed by the child too."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed, or not there


# ---- What users see ------------------------------------------------------------------------------


class Jail:
    """Options for calls, thought through once. May be used by many threads at a time.

    >>> with brig.Jail(timeout=5, memory_mb=256, fs_allow=["/srv/app/tmp"]) as jail:
    ...     value = jail.call(tool, arguments)

      timeout, cpu_timeout  seconds (30; the same); None is no limit, here and below
      memory_mb, memory     (512) as 'address_space', or 'rss', which needs cgroups
      processes             how many there may be, with threads (some hundreds)
      grace                 seconds between TERM and KILL (0)
      max_result            bytes of the value (64 MiB)
      fs_allow              paths to read and write
      fs_read_allow         paths to read, beside the system's directories and, with
      interpreter           True, Python's own
      keep_fds              fds that stay open; all others above 2 are closed
      network               'host': as the caller has it, or 'none'
      namespaces            True: the full jail
      unix_sockets          True: UNIX sockets also without namespaces
      capture, max_output   True: stdout and stderr are collected, up to so many bytes each (1 MiB)
      trace                 True: every refused system call is reported
      types                 dataclasses, enums and named tuples that may come back
      result                'plain', or 'pickle'
      on_unsupported        'raise', 'warn' or 'ignore', when this system cannot enforce something
      policy                a Policy, for what these options cannot say

    The value comes back as plain data: None, bool, int, float, complex, str, bytes, list, tuple, set,
    frozenset, dict, Decimal, UUID, paths, dates and times, numpy arrays if the program has imported
    numpy, and the dataclasses, enums and named tuples in `types` or in the return annotation of the
    function. With result='pickle' any object can come back, but then the function can make the
    caller run anything: only for functions that are trusted.
    """

    @signature(CallOptions)
    def __init__(self, **options: Unpack[CallKeywords]) -> None:
        refuse_unknown("Jail", options, CallOptions)
        self.options = CallOptions(**options)
        word(_RESULTS, "result", self.options.result)
        _types.Registry(self.options.types)  # a wrong type is told now
        self._caller: Optional[_Caller] = _Caller(self.options)

    @property
    def unenforced(self) -> List[str]:
        """What this system does not enforce, one sentence each."""
        return self._open().unenforced()

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function in a forked child and returns its value, or raises what became of it.

        The function sees the program's memory as it was; what it changes there is lost.
        """
        return self.try_call(function, *args, **kwargs).unwrap()

    def try_call(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[T]:
        """The same, but errors are returned in the outcome; with it come usage and output."""
        call = _Call(self._open(), self.options, function, args, kwargs)
        try:
            if call.fd() < 0:
                call.block()
            else:
                wait(call.fds, call.process)
            return call.outcome(call.finish())
        finally:
            call._release()

    @overload
    async def call_async(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...

    @overload
    async def call_async(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...

    async def call_async(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The same for asyncio; the function may be a coroutine function, which then has an event
        loop of its own. When the task is cancelled, the function is killed."""
        return (await self.try_call_async(function, *args, **kwargs)).unwrap()

    @overload
    async def try_call_async(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[T]: ...

    @overload
    async def try_call_async(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[T]: ...

    async def try_call_async(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Outcome[Any]:
        """As try_call(), for asyncio."""
        async with turn():
            call = _Call(self._open(), self.options, function, args, kwargs)
        try:
            await wait_async(call.fds, call.process)
            async with turn():
                result = call.finish()
                if not result.is_large():
                    return call.outcome(result)
            return await in_thread(READER, lambda: call.outcome(result), lambda _: None)
        finally:
            call._release()

    def jailed(self, function: F) -> F:
        """Decorates a function, or a coroutine function, so that it is always called in here."""
        return _decorated(lambda: self, function)

    def _open(self) -> _Caller:
        if self._caller is None:
            raise ValueError("the jail is closed")
        return self._caller

    def close(self) -> None:
        """Calls that are under way go on; there can be no new ones."""
        self._caller = None

    def __enter__(self) -> Jail:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _decorated(jail: Callable[[], Jail], function: F) -> F:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await jail().call_async(function, *args, **kwargs)

        return cast(F, call_async)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return jail().call(function, *args, **kwargs)

    return cast(F, call)


def call(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function in a jail with the default options. For others: Jail(…).call()."""
    with Jail() as jail:
        return jail.call(function, *args, **kwargs)


@overload
async def call_async(
    function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
) -> T: ...


@overload
async def call_async(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


async def call_async(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """As call(), for asyncio: the function may be a coroutine function. When the task is cancelled,
    the function is killed."""
    async with turn():
        jail = Jail()
    with jail:
        return await jail.call_async(function, *args, **kwargs)


@overload
def jailed(function: F) -> F: ...


@overload
def jailed(**options: Unpack[CallKeywords]) -> Callable[[F], F]: ...


@signature(CallOptions)
def jailed(function: Any = None, **options: Any) -> Any:
    """Decorates a function so that each call of it is made in a jail with these options: those of Jail.

    >>> @brig.jailed(timeout=5, memory_mb=256)
    ... def tool(text): ...

    The jail is made at the first call, so that paths need not exist before.
    """
    refuse_unknown("jailed", options, CallOptions)
    jail = functools.lru_cache(maxsize=1)(lambda: Jail(**options))
    if function is not None:
        return _decorated(jail, function)
    return functools.partial(_decorated, jail)


def confine_self(policy: Optional[Policy] = None) -> List[str]:
    """Confines the running process, for good: Landlock, the syscall filter, resource limits, no new
    privileges. To be called before there are threads. Returns what of the policy is not enforced."""
    lines, err = c_void_p(), BrigError()
    given = policy_given(policy)
    handle = given._handle if given else None
    check(library().brig_confine_self(handle, byref(lines), byref(err)), err)
    return library().take_text(lines).splitlines() if lines else []
