# SPDX-License-Identifier: MIT
"""A policy: what a jail may see, reach and use, as plain data that is checked as it is built."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_void_p
from typing import Any, Dict, Mapping, Optional, Union

from ._library import BrigError, check, library
from ._process import Owned

Path = Union[str, "os.PathLike[str]"]

MODES = {"sealed": 0, "casual": 1, "bare": 2, "strict": 3}
VIEWS = {"system": 0, "host": 1, "root": 2, "empty": 3}
ACCESS = {"read-write": 0, "read-only": 1, "mask": 2, "device": 3, "protect": 4}
NETWORKS = {"none": 0, "host": 1, "allow": 2, "open": 3, "loopback": 4}
CALL_NETWORKS = {"none": 0, "host": 1}  # a function has no door
SECCOMP = {"dev": 0, "code": 1}
ON_UNSUPPORTED = {"raise": 0, "warn": 1, "ignore": 2}
LIMITS = {
    "wall_ms": 0,
    "cpu_ms": 1,
    "grace_ms": 2,
    "address_space_bytes": 3,
    "file_size_bytes": 4,
    "open_files": 5,
    "processes": 6,
    "output_bytes": 7,
    "disk_bytes": 8,
    "disk_inodes": 9,
    "memory_bytes": 10,
    "cpu_percent": 11,
    "io_read_bytes_per_second": 12,
    "io_write_bytes_per_second": 13,
    "inotify_watches": 14,
}
_GRANT_OPTIONAL, _GRANT_CREATE = 1, 2


def word(table: Mapping[str, int], name: str, value: str) -> int:
    """The number of a word, or a ValueError that lists all of them."""
    if value not in table:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, table))}")
    return table[value]


def encoded(path: Any) -> bytes:
    """An absolute path as C wants it."""
    text = os.fsencode(path)
    if b"\0" in text:
        raise ValueError(f"the path {path!r} has a NUL byte in it")
    return os.path.abspath(text)


class Policy(Owned):
    """What a jail may do. Every method returns the policy, so that calls can be chained.

    >>> policy = brig.Policy("sealed").grant("/srv/data", "read-only").limit(processes=64)
    """

    _free = "brig_policy_free"

    def __init__(self, mode: str = "sealed") -> None:
        super().__init__(library().brig_policy_new(word(MODES, "mode", mode)))
        if not self._handle:
            raise MemoryError("no memory for a policy")
        # What was said with limit() and on_unsupported(): defaults of other options do not replace it.
        self._said: Dict[str, Any] = {}

    def copy(self) -> "Policy":
        copied = Policy.__new__(Policy)
        Owned.__init__(copied, library().brig_policy_copy(self._handle))
        if not copied._handle:
            raise MemoryError("no memory for a policy")
        copied._said = dict(self._said)
        return copied

    def _set(self, function: str, *arguments: Any) -> "Policy":
        err = BrigError()
        check(getattr(library(), function)(self._handle, *arguments, byref(err)), err)
        return self

    def view(self, view: str, root: Optional[Path] = None) -> "Policy":
        """What of the filesystem is there before grants: 'system', 'host', 'root' or 'empty'."""
        path = None if root is None else encoded(root)
        return self._set("brig_policy_view", word(VIEWS, "view", view), path)

    def grant(
        self,
        path: Path,
        access: str = "read-write",
        dest: Optional[Path] = None,
        *,
        optional: bool = False,
        create: bool = False,
    ) -> "Policy":
        """Grants (or masks) a path, in the jail at `dest` if it is given."""
        flags = (_GRANT_OPTIONAL if optional else 0) | (_GRANT_CREATE if create else 0)
        return self._set(
            "brig_policy_grant",
            word(ACCESS, "access", access),
            encoded(path),
            None if dest is None else encoded(dest),
            flags,
        )

    def network(self, network: str) -> "Policy":
        """'none', 'loopback', 'host' (the caller's), 'allow' (what allow() names) or 'open' (all that is public)."""
        return self._set("brig_policy_network", word(NETWORKS, "network", network))

    def allow(self, *rules: str) -> "Policy":
        """Destinations of the networks 'allow' and 'open': 'example.com', '*.example.com:443', '@npm'."""
        for rule in rules:
            self._set("brig_policy_allow", os.fsencode(rule))
        return self

    def deny(self, *rules: str) -> "Policy":
        """Destinations that are refused, whatever else allows them."""
        for rule in rules:
            self._set("brig_policy_deny", os.fsencode(rule))
        return self

    def seccomp(self, profile: str) -> "Policy":
        return self._set("brig_policy_seccomp", word(SECCOMP, "profile", profile))

    def trace(self, on: bool = True) -> "Policy":
        """Lists refused system calls in the result's details, as "denials"."""
        return self._set("brig_policy_trace", on)

    def limit(self, **limits: int) -> "Policy":
        """Sets limits by their names in LIMITS; 0 is no limit."""
        for name, value in limits.items():
            if value < 0:
                raise ValueError(f"{name}={value} is below 0")
            self._set("brig_policy_limit", word(LIMITS, "limit", name), value)
            self._said[name] = value
        return self

    def setenv(self, **variables: str) -> "Policy":
        for name, value in variables.items():
            self._set("brig_policy_setenv", os.fsencode(name), os.fsencode(value))
        return self

    def unsetenv(self, *patterns: str) -> "Policy":
        """Removes variables whose names match; `*` stands for any characters."""
        for pattern in patterns:
            self._set("brig_policy_unsetenv", os.fsencode(pattern))
        return self

    def workdir(self, path: Path) -> "Policy":
        return self._set("brig_policy_workdir", encoded(path))

    def hostname(self, name: str) -> "Policy":
        return self._set("brig_policy_hostname", os.fsencode(name))

    def on_unsupported(self, what: str) -> "Policy":
        number = word(ON_UNSUPPORTED, "on_unsupported", what)
        self._said["on_unsupported"] = what
        return self._set("brig_policy_on_unsupported", number)

    def explain(self) -> str:
        """The effective policy, for people."""
        text = c_void_p()
        self._set("brig_policy_explain", 0, byref(text))
        return library().take_text(text)


__all__ = ["Policy", "LIMITS"]
