# SPDX-License-Identifier: MIT
"""The forked child's side of a call: from the fork to the end of its process."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import inspect
import os
import signal
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, List, Mapping, NoReturn, Optional, Sequence, Tuple

from . import _plain, _renew
from ._errors import RESULT_CLASS
from ._library import CallFailure, Library
from ._process import SIGNALS

_ACCESS_UNKNOWN, _READ, _WRITE, _EXECUTE, _CONNECT, _BIND = range(6)
# An exit status that says that we failed ourselves, as sysexits.h has it.
_EXIT_SOFTWARE = 70


def run(
    lib: Library,
    call: Optional[int],
    signals: Iterable[int],
    encode: Callable[[Any], List[bytes]],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> NoReturn:
    """Calls the function and ends the process, whatever happens. `signals` are those that were
    blocked before they were held back for the fork."""
    try:
        numbers = sorted(map(int, os.listdir("/proc/self/fd")))
        # Files among the parent's garbage would close numbers that are ours by then.
        gc.freeze()
        child = lib.brig_call_enter(call, 0)
        tried = _watch()
        try:
            _hold(numbers)
            _settle(signals)
            parts = _encoded(_value(function, args, kwargs), encode)
            _give(lib, child, parts)
        except SystemExit as request:
            _flush()
            os._exit(_exit_status(request.code))
        except BaseException as error:
            _fail(lib, child, error, tried)
        _flush()
        lib.brig_call_leave(child)
    finally:
        os._exit(_EXIT_SOFTWARE)


def _hold(numbers: List[int]) -> None:
    """Keeps the numbers taken that fds of the parent had: with an fd that can be used for nothing. Else
    a log or connection of the parent's would write into the next file that the function opens."""
    nothing = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for number in numbers:
        got = fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, number)
        if got != number:  # it was kept, or is this very one
            os.close(got)
    if nothing not in numbers:
        os.close(nothing)


def _settle(signals: Iterable[int]) -> None:
    """Lets go of what is the parent's: its handlers of signals, its event loop."""
    try:
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
    except ValueError:
        pass  # not the main thread: then Python calls no handlers here
    signal.pthread_sigmask(signal.SIG_SETMASK, signals)
    _renew.renew()
    if "asyncio" in sys.modules:
        sys.modules["asyncio"]._set_running_loop(None)


def _value(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    value = function(*args, **kwargs)
    if inspect.iscoroutine(value):
        import asyncio

        return asyncio.run(value)
    return value


class _ResultProblem(Exception):
    """The function returned, but what it returned cannot be passed on."""


def _encoded(value: Any, encode: Callable[[Any], List[bytes]]) -> List[bytes]:
    try:
        return encode(value)
    except _plain.PlainError as error:
        raise _ResultProblem(str(error)) from None
    except MemoryError:
        raise
    except Exception as error:
        raise _ResultProblem(f"the value cannot be passed on: {error}") from None


def _give(lib: Library, child: int, parts: List[bytes]) -> None:
    """Writes the value where the parent finds it. More than allowed is noted by the library."""
    room = lib.brig_call_reserve(child, sum(map(len, parts)))
    if not room:
        return
    for part in parts:
        ctypes.memmove(room, part, len(part))
        room += len(part)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed, or whatever the function put in its place


def _exit_status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    return 1


# ---- Failures ------------------------------------------------------------------------------------

# What audit events say is about to be tried. Exceptions do not tell.
_EVENTS: Dict[str, int] = {
    "open": _ACCESS_UNKNOWN,  # as its flags say
    "os.listdir": _READ,
    "os.scandir": _READ,
    "os.chdir": _READ,
    "os.chmod": _WRITE,
    "os.chown": _WRITE,
    "os.link": _WRITE,
    "os.mkdir": _WRITE,
    "os.remove": _WRITE,
    "os.rename": _WRITE,
    "os.rmdir": _WRITE,
    "os.removexattr": _WRITE,
    "os.setxattr": _WRITE,
    "os.symlink": _WRITE,
    "os.truncate": _WRITE,
    "os.utime": _WRITE,
    "os.exec": _EXECUTE,
    "os.posix_spawn": _EXECUTE,
    "subprocess.Popen": _EXECUTE,
    "os.fork": _ACCESS_UNKNOWN,
    "os.forkpty": _ACCESS_UNKNOWN,
    "socket.__new__": _ACCESS_UNKNOWN,
    "socket.connect": _CONNECT,
    "socket.sendto": _CONNECT,
    "socket.bind": _BIND,
}
# System calls that are refused without namespaces, whatever their path.
_CALLS: Dict[str, bytes] = {
    "os.chmod": b"fchmodat",
    "os.chown": b"fchownat",
    "os.removexattr": b"removexattr",
    "os.setxattr": b"setxattr",
    "os.truncate": b"truncate",
    "os.utime": b"utimensat",
}
_PROCESS_EVENTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"}

Tried = List[Tuple[str, Tuple[Any, ...]]]


def _watch() -> Tried:
    """Keeps the last event of those above as the only element of a list."""
    last: Tried = [("", ())]
    events = _EVENTS

    def note(event: str, args: Tuple[Any, ...]) -> None:
        if event in events:
            last[0] = (event, args)

    sys.addaudithook(note)
    return last


def _fail(lib: Library, child: int, error: BaseException, tried: Tried) -> None:
    event, args = tried[0]
    if isinstance(error, MemoryError):
        # What the function's frames hold is what is missing now.
        traceback.clear_frames(error.__traceback__)
    failure = CallFailure()
    failure.class_name = _bytes(_class_name(error))
    failure.message = _bytes(_message(error))
    failure.backtrace = _bytes(_backtrace(error))
    failure.out_of_memory = isinstance(error, MemoryError)
    if isinstance(error, OSError):
        _describe(failure, error, event, args)
    elif isinstance(error, RuntimeError) and "can't start new thread" in _message(error):
        failure.sys_errno, failure.syscall = errno.EAGAIN, b"clone"
    lib.brig_call_fail(child, ctypes.byref(failure))


def _describe(failure: CallFailure, error: OSError, event: str, args: Tuple[Any, ...]) -> None:
    """What the failing call was about, as far as it is known."""
    failure.sys_errno = error.errno or 0
    failure.out_of_memory = error.errno == errno.ENOMEM
    if isinstance(error.filename, (str, bytes)) and error.filename:
        failure.path = _absolute(error.filename)
        failure.access = _access(error.filename, event, args)
    elif event in ("os.exec", "os.posix_spawn") and args:
        failure.path, failure.access = _absolute(args[0]), _EXECUTE
    elif event in ("socket.connect", "socket.bind", "socket.sendto"):
        _describe_address(failure, _EVENTS[event], args[1] if len(args) > 1 else None)
    elif event == "socket.__new__":
        failure.syscall = b"socket"
    elif event in _PROCESS_EVENTS and error.errno == errno.EAGAIN:
        failure.syscall = b"clone"
    if event in _CALLS and error.errno == errno.EPERM:
        failure.syscall = _CALLS[event]


def _describe_address(failure: CallFailure, access: int, address: Any) -> None:
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = str(address[0]), address[1]
        failure.address = _bytes(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        failure.access = access
    elif isinstance(address, (str, bytes)) and address:
        failure.path = _absolute(address)
        failure.access = access


def _access(filename: Any, event: str, args: Tuple[Any, ...]) -> int:
    """How the path was to be used, if the last event was about that very path."""
    if event not in _EVENTS or not args:
        return _ACCESS_UNKNOWN
    subject = args[0]
    try:
        if os.fsencode(subject) != os.fsencode(filename):
            return _ACCESS_UNKNOWN
    except TypeError:
        return _ACCESS_UNKNOWN
    if event != "open":
        return _EVENTS[event]
    flags = args[2] if len(args) > 2 and isinstance(args[2], int) else 0
    changing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    return _WRITE if flags & changing else _READ


def _absolute(path: Any) -> bytes:
    encoded = os.fsencode(path)
    try:
        return os.path.join(os.getcwdb(), encoded)
    except OSError:
        return encoded


def _class_name(error: BaseException) -> str:
    if isinstance(error, _ResultProblem):
        return RESULT_CLASS
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be had)"


def _backtrace(error: BaseException) -> str:
    # The first frames are those of this file.
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, frames))
    except Exception:
        return ""


def _bytes(text: str) -> bytes:
    """As C wants it: without NUL."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace")
