# SPDX-License-Identifier: MIT
"""Calls and commands with asyncio."""

import asyncio
import os
import time
import unittest

import tap
import brig


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as stream:
        return stream.read().split()


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_a_value_and_an_error_come_back(self):
        self.assertEqual(await brig.call_async(pow, 2, 10), 1024)
        with self.assertRaises(brig.SandboxError) as caught:
            await brig.call_async(lambda: 1 / 0)
        self.assertEqual(caught.exception.original_class, "ZeroDivisionError")

    async def test_calls_run_side_by_side_and_the_loop_goes_on(self):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.create_task(tick())
        with brig.Jail(timeout=60) as jail:
            start = time.monotonic()
            # One after the other they would take ten seconds.
            await asyncio.gather(*(jail.call_async(time.sleep, 0.5) for _ in range(20)))
            self.assertLess(time.monotonic() - start, 8)
        ticker.cancel()
        self.assertGreater(ticks, 5)

    async def test_a_coroutine_function_has_a_loop_of_its_own(self):
        @brig.jailed(timeout=20)
        async def add(a, b):
            await asyncio.sleep(0.01)
            return a + b

        self.assertEqual(await add(40, 2), 42)

    async def test_a_cancelled_task_ends_the_child(self):
        with brig.Jail(timeout=60) as jail:
            task = asyncio.create_task(jail.call_async(time.sleep, 50))
            while not children():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        self.assertEqual(children(), [])

    async def test_a_timeout_of_asyncio_ends_the_child(self):
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(brig.call_async(time.sleep, 20), 0.2)
        self.assertEqual(children(), [])

    async def test_a_limit_is_an_error_here_too(self):
        with brig.Jail(timeout=0.2) as jail:
            with self.assertRaises(brig.TimeoutError):
                await jail.call_async(time.sleep, 60)

    async def test_commands(self):
        done = await asyncio.gather(*(brig.run_async(["echo", str(n)]) for n in range(4)))
        self.assertEqual([each.stdout for each in done], [b"0\n", b"1\n", b"2\n", b"3\n"])

    async def test_a_cancelled_command_ends(self):
        task = asyncio.create_task(brig.run_async(["sleep", "50"]))
        while not children():
            await asyncio.sleep(0.01)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(children(), [])


if __name__ == "__main__":
    tap.main()
