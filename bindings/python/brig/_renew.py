# SPDX-License-Identifier: MIT
"""In the forked child: locks and streams of the standard library that other threads may have held.

os.fork() copies a lock as it is. The thread that holds it does not exist in the child, so whoever
wants it waits for ever. The standard library renews some of its locks by itself, but not those inside
of streams, and a log file of the parent's is closed here.
"""

from __future__ import annotations

import _thread
import fcntl
import io
import os
import sys
from typing import Any, List, Optional, Tuple

# Module, lock: those that functions are likely to need. Modules that are not loaded are left alone.
_LOCKS = [("_strptime", "_cache_lock"), ("tempfile", "_once_lock")]

# Streams of the parent's and what took their place. The old ones are never let go of: that would
# write what is in them, and might wait for their lock.
_streams: List[Tuple[Any, Any]] = []


def renew() -> None:
    """Before the function runs, and after the parent's descriptors were closed."""
    for name in ("stdout", "stderr"):
        _renew_standard(name)
    for module, lock in _LOCKS:
        found: Any = getattr(sys.modules.get(module), lock, None)
        if hasattr(found, "_at_fork_reinit"):
            found._at_fork_reinit()
    _forget_half_imported()
    if "logging" in sys.modules:
        for reference in list(sys.modules["logging"]._handlerList):
            handler = reference()
            if handler is not None:
                _renew_handler(handler)


def _forget_half_imported() -> None:
    """Modules that another thread was importing: who imports one of them would wait for that thread. They
    are imported anew. time.strptime(), for one, imports a module when it is first called."""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if owner in (None, _thread.get_ident()):
            continue
        locks.pop(name, None)
        module = sys.modules.get(name)
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            del sys.modules[name]


def _reopened(stream: Any) -> Optional[Any]:
    """The same descriptor with a stream of its own, or None if it is closed here."""
    try:
        number = stream.fileno()
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_PATH:
            return None  # what _child._hold() has put there
        renewed = open(
            number,
            "w",
            buffering=1 if stream.line_buffering else -1,
            encoding=stream.encoding,
            errors=stream.errors,
            closefd=False,
        )
    except (OSError, ValueError):
        return None
    _streams.append((stream, renewed))
    return renewed


def _renew_standard(name: str) -> None:
    """One of the program's own making is kept."""
    stream = getattr(sys, name)
    if stream is not getattr(sys, f"__{name}__") or type(stream) is not io.TextIOWrapper:
        return
    renewed = _reopened(stream)
    if renewed is not None:
        setattr(sys, name, renewed)
        setattr(sys, f"__{name}__", renewed)


def _nothing(*_: Any) -> None:
    """Instead of a method of a handler that has nowhere to write to."""


def _renew_handler(handler: Any) -> None:
    """A handler of the logging module writes to a stream of its own. If its file is not open here, its
    path is opened again, in case it is granted; else it writes nothing."""
    if handler.lock is not None:
        handler.createLock()
    if hasattr(handler, "enqueue"):  # a queue that another thread or process of the parent's empties
        handler.enqueue = _nothing
    if hasattr(handler, "sock"):  # closed here; it connects again if it may
        handler.sock = None
        handler.handleError = _nothing
    if type(vars(handler).get("stream")) is io.TextIOWrapper:  # not where it is always sys.stderr
        _renew_stream(handler)


def _renew_stream(handler: Any) -> None:
    old = handler.stream
    for before, after in _streams:
        if before is old:
            handler.stream = after
            return
    renewed = _reopened(old)
    if renewed is None:
        _streams.append((old, None))
        try:
            renewed = open(handler.baseFilename, "a", encoding=old.encoding, errors=old.errors)
        except (AttributeError, OSError):
            handler.emit = handler.flush = _nothing
            return
    handler.stream = renewed
