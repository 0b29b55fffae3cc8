# SPDX-License-Identifier: MIT
"""libbrig as ctypes sees it: its structs and functions, and nothing made of them."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import POINTER, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Optional

from ._errors import Error, SetupError, UnsupportedPlatformError

NAME = "libbrig.so.0"
SAME = (1 << 64) - 1

E_INVALID, E_UNSUPPORTED = -1, -4

MESSAGE_MAX = 1024


class BrigError(ctypes.Structure):
    _fields_ = [("code", c_int), ("sys_errno", c_int), ("message", c_char * MESSAGE_MAX)]

    def text(self) -> str:
        return bytes(self.message).decode(errors="replace")


class CallOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("timeout_ms", c_uint64),
        ("cpu_timeout_ms", c_uint64),
        ("memory_mb", c_uint64),
        ("processes", c_uint64),
        ("grace_ms", c_uint64),
        ("max_result", c_uint64),
        ("max_output", c_uint64),
        ("fs_allow", POINTER(c_char_p)),
        ("fs_allow_count", c_size_t),
        ("fs_read_allow", POINTER(c_char_p)),
        ("fs_read_allow_count", c_size_t),
        ("keep_fds", POINTER(c_int)),
        ("keep_fd_count", c_size_t),
        ("memory", c_int),
        ("network", c_int),
        ("on_unsupported", c_int),
        ("stdio", c_int * 3),
        ("namespaces", c_int),
        ("unix_sockets", c_int),
        ("trace", c_int),
        ("reserved", c_int),
    ]


class CallFailure(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("class_name", c_char_p),
        ("message", c_char_p),
        ("backtrace", c_char_p),
        ("path", c_char_p),
        ("address", c_char_p),
        ("syscall", c_char_p),
        ("sys_errno", c_int),
        ("access", c_int),
        ("out_of_memory", c_int),
        ("reserved", c_int),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(CallFailure))


class Stdio(ctypes.Structure):
    _fields_ = [("kind", c_int), ("fd", c_int), ("bytes", c_char_p), ("length", c_size_t)]


class PassFd(ctypes.Structure):
    _fields_ = [("fd", c_int), ("number", c_int)]


class Command(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("argv", POINTER(c_char_p)),
        ("envp", POINTER(c_char_p)),
        ("stdio", Stdio * 3),
        ("pass_fds", POINTER(PassFd)),
        ("pass_fd_count", c_size_t),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Command))


class Identity(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("host_uid", c_uint),
        ("host_gid", c_uint),
        ("inside_uid", c_uint),
        ("inside_gid", c_uint),
        ("name", c_char_p),
        ("home", c_char_p),
        ("shell", c_char_p),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Identity))


class Inject(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("header", c_char_p),
        ("value", c_char_p),
        ("upstream", c_char_p),
        ("variable", c_char_p),
        ("suffix", c_char_p),
        ("ca", c_char_p),
        ("methods", POINTER(c_char_p)),
        ("paths", POINTER(c_char_p)),
        ("strip", POINTER(c_char_p)),
        ("site", c_char_p),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Inject))


_error = POINTER(BrigError)
_strings = POINTER(c_char_p)
_handle = POINTER(c_void_p)

# Name: what it returns, what it takes. c_void_p for a text that is to be freed.
_FUNCTIONS = {
    "brig_policy_new": (c_void_p, c_int),
    "brig_policy_copy": (c_void_p, c_void_p),
    "brig_policy_free": (None, c_void_p),
    "brig_policy_view": (c_int, c_void_p, c_int, c_char_p, _error),
    "brig_policy_grant": (c_int, c_void_p, c_int, c_char_p, c_char_p, c_uint, _error),
    "brig_policy_origin": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_ungrant": (c_int, c_void_p, c_char_p, POINTER(c_size_t), _error),
    "brig_policy_private": (c_int, c_void_p, c_int, c_char_p, _error),
    "brig_policy_file": (c_int, c_void_p, c_char_p, c_char_p, c_size_t, c_uint, _error),
    "brig_policy_keep": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_identity": (c_int, c_void_p, POINTER(Identity), _error),
    "brig_policy_publish": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_proxy_env": (c_int, c_void_p, c_int, _error),
    "brig_policy_net_proxy": (c_int, c_void_p, c_char_p, c_char_p, _strings, _error),
    "brig_policy_broker": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_inject": (c_int, c_void_p, POINTER(Inject), _error),
    "brig_policy_terminal": (c_int, c_void_p, c_int, _error),
    "brig_policy_allow_nested": (c_int, c_void_p, c_int, _error),
    "brig_policy_unix_sockets": (c_int, c_void_p, c_int, _error),
    "brig_policy_disable": (c_int, c_void_p, c_uint, _error),
    "brig_policy_network": (c_int, c_void_p, c_int, _error),
    "brig_policy_allow": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_deny": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_seccomp": (c_int, c_void_p, c_int, _error),
    "brig_policy_trace": (c_int, c_void_p, c_int, _error),
    "brig_policy_limit": (c_int, c_void_p, c_int, c_uint64, _error),
    "brig_policy_setenv": (c_int, c_void_p, c_char_p, c_char_p, _error),
    "brig_policy_unsetenv": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_host_env": (c_int, c_void_p, c_int, _error),
    "brig_policy_workdir": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_hostname": (c_int, c_void_p, c_char_p, _error),
    "brig_policy_on_unsupported": (c_int, c_void_p, c_int, _error),
    "brig_policy_explain": (c_int, c_void_p, c_int, _handle, _error),
    "brig_start": (c_int, c_void_p, POINTER(Command), _handle, _error),
    "brig_job_fd": (c_int, c_void_p),
    "brig_job_process": (c_int, c_void_p, _error),
    "brig_job_signal": (c_int, c_void_p, c_int, _error),
    "brig_job_cancel": (c_int, c_void_p, _error),
    "brig_job_stream": (c_int, c_void_p, c_int),
    "brig_job_close_stream": (c_int, c_void_p, c_int, _error),
    "brig_job_resize": (c_int, c_void_p, c_uint, c_uint, _error),
    "brig_job_pid": (c_int, c_void_p),
    "brig_job_terminal": (c_int, c_void_p),
    "brig_job_kept_dir": (c_int, c_void_p),
    "brig_job_take_net_event": (c_void_p, c_void_p),
    "brig_net_event_json": (c_int, c_void_p, _handle, _error),
    "brig_template_new": (c_int, c_void_p, _handle, _error),
    "brig_template_start": (c_int, c_void_p, POINTER(Command), _handle, _error),
    "brig_template_free": (None, c_void_p),
    "brig_job_result": (c_int, c_void_p, _handle, _error),
    "brig_job_free": (None, c_void_p),
    "brig_result_free": (None, c_void_p),
    "brig_result_json": (c_int, c_void_p, _handle, _error),
    "brig_result_status": (c_int, c_void_p),
    "brig_result_output": (c_void_p, c_void_p, c_int, POINTER(c_size_t), POINTER(c_int)),
    "brig_call_options_init": (None, POINTER(CallOptions), c_size_t),
    "brig_caller_new": (c_int, c_void_p, POINTER(CallOptions), _handle, _error),
    "brig_caller_unenforced": (c_char_p, c_void_p, c_size_t),
    "brig_caller_unenforced_count": (c_size_t, c_void_p),
    "brig_caller_free": (None, c_void_p),
    "brig_call_begin": (c_int, c_void_p, _handle, _error),
    "brig_call_started": (c_int, c_void_p, c_int, _error),
    "brig_call_fd": (c_int, c_void_p),
    "brig_call_process": (c_int, c_void_p, _error),
    "brig_call_wait": (c_int, c_void_p, _error),
    "brig_call_finish": (c_int, c_void_p, _handle, _error),
    "brig_call_free": (None, c_void_p),
    "brig_call_result_free": (None, c_void_p),
    "brig_call_result_value": (c_void_p, c_void_p, POINTER(c_size_t)),
    "brig_call_result_output": (c_void_p, c_void_p, c_int, POINTER(c_size_t), POINTER(c_int)),
    "brig_call_result_json": (c_int, c_void_p, _handle, _error),
    "brig_text_free": (None, c_void_p),
    "brig_confine_self": (c_int, c_void_p, _handle, _error),
}

# In the forked child, where the interpreter must not be let go of: there is no other thread.
_CHILD_FUNCTIONS = {
    "brig_call_enter": (c_void_p, c_void_p, c_uint),
    "brig_call_leave": (None, c_void_p),
    "brig_call_reserve": (c_void_p, c_void_p, c_size_t),
    "brig_call_fail": (c_int, c_void_p, POINTER(CallFailure)),
}


class Library:
    """The functions of libbrig as attributes."""

    def __init__(self, path: str) -> None:
        plain, holding = ctypes.CDLL(path), ctypes.PyDLL(path)
        for functions, source in ((_FUNCTIONS, plain), (_CHILD_FUNCTIONS, holding)):
            for name, (returns, *takes) in functions.items():
                function = getattr(source, name)
                function.restype, function.argtypes = returns, takes
                setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def take_text(self, text: c_void_p) -> str:
        """The text a function made for its caller, which is freed."""
        try:
            return ctypes.string_at(text.value or 0).decode(errors="replace")
        finally:
            self.brig_text_free(text)


_loaded: Optional[Library] = None
_loading = threading.Lock()


def library() -> Library:
    """libbrig, loaded when it is first needed: BRIG_LIBRARY names it, a wheel carries it, or the system
    knows it."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = _load()
    return _loaded


_FOLDER = os.path.dirname(os.path.abspath(__file__))


def carried_broker() -> Optional[str]:
    """brig-broker of a wheel that carries the programs: pip puts it below the prefix of lib/python3/site-packages, or
    beside the package (pip install --target)."""
    if os.environ.get("BRIG_LIBRARY") or not os.path.exists(os.path.join(_FOLDER, NAME)):
        return None
    for up in ("../../../..", ".."):
        path = os.path.normpath(os.path.join(_FOLDER, up, "libexec/brig/brig-broker"))
        if os.access(path, os.X_OK):
            return path
    return None


def _load() -> Library:
    if not sys.platform.startswith("linux"):
        raise UnsupportedPlatformError(f"brig makes jails on Linux, and this is {sys.platform}")
    carried = os.path.join(_FOLDER, NAME)
    path = os.environ.get("BRIG_LIBRARY") or (carried if os.path.exists(carried) else NAME)
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        raise SetupError(
            f"cannot load '{path}': {error}; install libbrig, or name it with BRIG_LIBRARY"
        ) from None


def check(code: int, err: BrigError) -> int:
    """Turns a failure of the library into an exception."""
    if code >= 0:
        return code
    if code == E_INVALID:
        raise ValueError(err.text())
    if code == E_UNSUPPORTED:
        raise UnsupportedPlatformError(err.text())
    if err.text():
        raise SetupError(err.text())
    raise Error(f"libbrig failed with code {code}")


def strings(values: Any) -> Any:
    """An array of C strings that ends with NULL, as brig_command wants it."""
    encoded = [os.fsencode(value) for value in values]
    for value in encoded:
        if b"\0" in value:
            raise ValueError(f"{value!r} has a NUL byte in it")
    return (c_char_p * (len(encoded) + 1))(*encoded, None)



