# SPDX-License-Identifier: MIT
"""An executor of concurrent.futures whose calls are made in jails."""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, Optional, TypeVar

from ._call import Jail
from ._options import CallOptions, refuse_unknown, signature

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    from ._options import CallKeywords

    P = ParamSpec("P")

T = TypeVar("T")


class JailPoolExecutor(Executor):
    """Calls functions in jails, max_workers (the number of CPUs) at a time; the other options are those
    of Jail. Each call has a forked child of its own, so that one cannot harm the next, and nothing is
    pickled on its way in.

    >>> with brig.JailPoolExecutor(4, timeout=5) as pool:
    ...     squares = list(pool.map(tool, range(10)))

    A future's exception() is what Jail.call() raises. As with other executors, cancel() ends a call that
    has not begun; one that has is ended by its timeout.
    """

    @signature(CallOptions)
    def __init__(self, max_workers: Optional[int] = None, **options: Unpack[CallKeywords]) -> None:
        refuse_unknown("JailPoolExecutor", options, CallOptions)
        self._jail = Jail(**options)
        # A child of a call ends with the thread that forked it, and these wait for theirs.
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1 if max_workers is None else max_workers, "brig")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Has the function called; returns the future of its value."""
        return self._threads.submit(lambda: self._jail.call(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more calls are taken. With cancel_futures=True those that have not begun are dropped."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
