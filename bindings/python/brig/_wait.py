# SPDX-License-Identifier: MIT
"""Waiting for what the library supervises, with and without an event loop.

Never inside the library: there Ctrl-C, other threads' signals and cancellation could not reach us.
"""

from __future__ import annotations

import contextlib
import os
import select
import weakref
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Sequence, Tuple, TypeVar

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

# Between two looks at what has no fd to wait for.
_BLINK = 0.01


def wait(fds: Callable[[], Sequence[int]], process: Callable[[], int]) -> None:
    """Until process() says that it is over. One of fds() is readable when that has something to do."""
    while not process():
        poll = select.poll()
        for fd in fds():
            poll.register(fd, select.POLLIN)
        poll.poll()


async def wait_async(fds: Callable[[], Sequence[int]], process: Callable[[], int]) -> None:
    """The same in an event loop, which does one thing of ours in each of its rounds."""
    import asyncio  # slow to load, and not everybody's

    loop = asyncio.get_running_loop()
    while True:
        async with turn():
            if process():
                return
        ready, readable = asyncio.Event(), fds()
        if not readable:
            await asyncio.sleep(_BLINK)
            continue
        for fd in readable:
            loop.add_reader(fd, ready.set)
        try:
            await ready.wait()
        finally:
            for fd in readable:
                loop.remove_reader(fd)


# Of each event loop.
_turns: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


@contextlib.asynccontextmanager
async def turn() -> AsyncIterator[None]:
    """What is done inside is the only such thing in this round of the event loop. So fifty calls that
    are made at once hold it up for one fork at a time, not for fifty."""
    import asyncio

    loop = asyncio.get_running_loop()
    lock: asyncio.Lock = _turns.setdefault(loop, None) or asyncio.Lock()
    _turns[loop] = lock
    async with lock:
        await asyncio.sleep(0)
        yield


# Threads of this process, by their number: STARTERS start commands, which takes the library some
# milliseconds without the interpreter; the READER reads large values. It is one, as each thread that
# wants the interpreter holds up the event loop.
_pools: Dict[Tuple[int, int], ThreadPoolExecutor] = {}
READER, STARTERS = 1, 4


def _pool(threads: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    key = os.getpid(), threads
    return _pools.get(key) or _pools.setdefault(key, ThreadPoolExecutor(threads, "brig"))


async def in_thread(threads: int, function: Callable[[], T], undo: Callable[[T], None]) -> T:
    """What the function returns, run beside the loop. If the task is cancelled meanwhile, undo() gets
    the value, in such a thread."""
    import asyncio

    future = _pool(threads).submit(function)
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        if not future.cancel():
            last = _pool(threads).submit(lambda: future.exception() or undo(future.result()))
            # So that nothing is left when the task has ended.
            await asyncio.shield(asyncio.wrap_future(last))
        raise
