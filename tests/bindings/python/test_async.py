# SPDX-License-Identifier: MIT
"""Calls and commands with asyncio."""

import asyncio
import os
import time
import unittest

import tap
import brig
from common import PATIENCE


async def wait_for(condition):
    """wait_for() of common.py, for a loop that must go on."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.01)


def children():
    """Of all threads."""
    found = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as stream:
            found += stream.read().split()
    return found


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_a_value_and_an_error_come_back(self):
        self.assertEqual(await brig.call_async(pow, 2, 10), 1024)
        with self.assertRaises(brig.SandboxError) as caught:
            await brig.call_async(lambda: 1 / 0)
        self.assertEqual(caught.exception.original_class, "ZeroDivisionError")

    async def test_calls_run_side_by_side_and_the_loop_goes_on(self):
        begun, begin = os.pipe()
        waiting, end = os.pipe()
        os.set_blocking(begun, False)
        seen = 0

        def all_have_begun():
            nonlocal seen
            try:
                seen += len(os.read(begun, 100))
            except BlockingIOError:
                pass
            return seen == 20

        # Each ends when all have begun: one after the other they never would.
        with brig.Jail(timeout=PATIENCE, keep_fds=[begin, waiting]) as jail:
            calls = [asyncio.create_task(jail.call_async(lambda: os.write(begin, b"x") + len(os.read(waiting, 1))))
                     for _ in range(20)]
            await wait_for(all_have_begun)
            os.write(end, b"y" * 20)
            self.assertEqual(await asyncio.gather(*calls), [2] * 20)
        for fd in (begun, begin, waiting, end):
            os.close(fd)

    async def test_a_coroutine_function_has_a_loop_of_its_own(self):
        @brig.jailed(timeout=20)
        async def add(a, b):
            await asyncio.sleep(0.01)
            return a + b

        self.assertEqual(await add(40, 2), 42)

    async def test_a_cancelled_task_ends_the_child(self):
        with brig.Jail(timeout=60) as jail:
            task = asyncio.create_task(jail.call_async(time.sleep, 600))
            await wait_for(children)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        self.assertEqual(children(), [])

    async def test_a_timeout_of_asyncio_ends_the_child(self):
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(brig.call_async(time.sleep, 600), 0.2)
        self.assertEqual(children(), [])

    async def test_a_limit_is_an_error_here_too(self):
        with brig.Jail(timeout=0.2) as jail:
            with self.assertRaises(brig.TimeoutError):
                await jail.call_async(time.sleep, 60)

    async def test_commands(self):
        done = await asyncio.gather(*(brig.run_async(["echo", str(n)]) for n in range(4)))
        self.assertEqual([each.stdout for each in done], [b"0\n", b"1\n", b"2\n", b"3\n"])

    async def test_a_cancelled_command_ends(self):
        task = asyncio.create_task(brig.run_async(["sleep", "600"]))
        await wait_for(children)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(children(), [])


if __name__ == "__main__":
    tap.main()
