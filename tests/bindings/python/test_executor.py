# SPDX-License-Identifier: MIT
"""The executor does what those of concurrent.futures do."""

import asyncio
import concurrent.futures
import os
import time
import unittest

import tap
import brig
from common import PATIENCE, wait_for


class Executor(unittest.TestCase):
    def test_submit_map_and_as_completed(self):
        with brig.JailPoolExecutor(3, timeout=PATIENCE) as pool:
            self.assertIsInstance(pool, concurrent.futures.Executor)
            self.assertEqual(pool.submit(pow, 2, 10).result(), 1024)
            self.assertEqual(pool.submit(dict, a=1).result(), {"a": 1})
            self.assertEqual(list(pool.map(pow, range(5), [2] * 5)), [0, 1, 4, 9, 16])
            futures = {pool.submit(pow, n, 2): n for n in range(5)}
            found = {futures[done]: done.result() for done in concurrent.futures.as_completed(futures)}
            self.assertEqual(found, {n: n * n for n in range(5)})

    def test_each_call_is_in_a_jail_of_its_own(self):
        with brig.JailPoolExecutor(1, timeout=PATIENCE) as pool:
            first, second = pool.submit(os.getpid).result(), pool.submit(os.getpid).result()
            self.assertEqual(len({first, second, os.getpid()}), 3)
            refused = pool.submit(open, "/etc/passwd").exception()
            self.assertIsInstance(refused, brig.FilesystemError)

    def test_closures_and_exceptions(self):
        with brig.JailPoolExecutor(2, timeout=PATIENCE) as pool:
            secret = object()
            self.assertTrue(pool.submit(lambda: secret is not None).result())
            error = pool.submit(lambda: {}["key"]).exception()
            self.assertEqual((type(error), error.original_class), (brig.SandboxError, "KeyError"))
            with self.assertRaises(brig.ResultError):
                pool.submit(lambda: secret).result()

    def test_limits_end_a_call_and_not_the_pool(self):
        with brig.JailPoolExecutor(1, timeout=0.3) as pool:
            error = pool.submit(time.sleep, 600).exception()
            self.assertIsInstance(error, brig.TimeoutError)
            self.assertNotIsInstance(error, brig.CPUTimeoutError)
        with brig.JailPoolExecutor(1, timeout=PATIENCE, cpu_timeout=1) as pool:
            self.assertIsInstance(pool.submit(lambda: list(iter(int, 1))).exception(), brig.CPUTimeoutError)
            self.assertIsInstance(pool.submit(os.abort).exception(), brig.CrashedError)
            self.assertEqual(pool.submit(pow, 2, 2).result(), 4)

    def test_cancelling_what_has_not_begun(self):
        waiting, end = os.pipe()
        pool = brig.JailPoolExecutor(1, timeout=PATIENCE, keep_fds=[waiting])
        try:
            running = pool.submit(os.read, waiting, 1)
            wait_for(running.running)
            pending = [pool.submit(pow, 2, 2) for _ in range(3)]
            self.assertTrue(pending[0].cancel())
            with self.assertRaises(concurrent.futures.TimeoutError):
                running.result(timeout=0.05)
            pool.shutdown(wait=False, cancel_futures=True)
            self.assertTrue(all(future.cancelled() for future in pending))
            os.write(end, b"x")
            self.assertEqual(running.result(PATIENCE), b"x")
            with self.assertRaises(RuntimeError):
                pool.submit(pow, 2, 2)
        finally:
            pool.shutdown()
            os.close(waiting)
            os.close(end)

    def test_asyncio_takes_it_for_an_executor(self):
        async def main():
            with brig.JailPoolExecutor(2, timeout=PATIENCE) as pool:
                loop = asyncio.get_running_loop()
                return await asyncio.gather(*(loop.run_in_executor(pool, pow, n, 2) for n in range(3)))

        self.assertEqual(asyncio.run(main()), [0, 1, 4])

    def test_wrong_options_are_named(self):
        with self.assertRaises(ValueError):
            brig.JailPoolExecutor(0)
        with self.assertRaisesRegex(TypeError, "tiemout"):
            brig.JailPoolExecutor(2, tiemout=3)


if __name__ == "__main__":
    tap.main()
