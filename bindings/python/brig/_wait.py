# SPDX-License-Identifier: MIT
"""Waiting for what the library supervises, with and without an event loop.

Never inside the library: there Ctrl-C, other threads' signals and cancellation could not reach us.
"""

from __future__ import annotations

import select
from typing import Callable


def wait(fd: int, process: Callable[[], int]) -> None:
    """Until process() says that it is over. `fd` is readable when that has something to do."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while not process():
        poll.poll()


async def wait_async(fd: int, process: Callable[[], int]) -> None:
    import asyncio  # slow to load, and not everybody's

    loop = asyncio.get_running_loop()
    while not process():
        ready = asyncio.Event()
        loop.add_reader(fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(fd)
