# SPDX-License-Identifier: MIT
"""Jails that were made, and used, before the program forks: prefork servers and multiprocessing."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import tap
import brig

JAIL = brig.Jail(timeout=60)
FULL = brig.Jail(timeout=60, namespaces=True)


@brig.jailed(timeout=60)
def double(number):
    return 2 * number


def work(number):
    """What a worker does."""
    return double(number), JAIL.call(pow, number, 2), FULL.call(pow, number, 3)


class Fork(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work(1)

    def forked(self, function, *arguments):
        """The exit status of a fork that calls the function."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = 0 if function(*arguments) else 2
            finally:
                os._exit(status)
        return pid

    def check(self, *pids):
        self.assertEqual([os.waitpid(pid, 0)[1] for pid in pids], [0] * len(pids))

    def test_a_fork_can_call(self):
        self.check(self.forked(lambda: work(3) == (6, 9, 27)))
        self.assertEqual(work(2), (4, 4, 8))

    def test_a_fork_of_a_fork_can_call(self):
        def again():
            self.check(self.forked(lambda: work(3) == (6, 9, 27)))
            return work(2) == (4, 4, 8)

        self.check(self.forked(again))

    def test_preforked_workers_call_at_once_and_are_replaced(self):
        def serve():
            return all(work(number) == (2 * number, number**2, number**3) for number in range(numbers))

        rounds, numbers = (3, 5) if tap.THOROUGH else (2, 2)
        for _ in range(rounds):
            self.check(*[self.forked(serve) for _ in range(4)])
        self.assertEqual(work(2), (4, 4, 8))

    def test_forking_while_threads_call(self):
        stop = threading.Event()
        failures = []

        def call():
            while not stop.is_set():
                try:
                    work(2)
                except Exception as error:
                    failures.append(error)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10 if tap.THOROUGH else 4):
                self.check(self.forked(lambda: work(3) == (6, 9, 27)))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_multiprocessing_with_fork(self):
        with multiprocessing.get_context("fork").Pool(3) as pool:
            self.assertEqual(pool.map(work, range(6)), [(2 * n, n**2, n**3) for n in range(6)])

    def test_a_fork_can_close_and_make_jails(self):
        def renew():
            JAIL.close()
            return brig.Jail(timeout=60).call(pow, 2, 2) == 4

        self.check(self.forked(renew))
        self.assertEqual(JAIL.call(pow, 2, 2), 4)


class Jobs(unittest.TestCase):
    def test_a_fork_leaves_the_jobs_of_its_parent_alone(self):
        def use(job):
            for method in (job.kill, job.wait, job.communicate):
                try:
                    method()
                except ValueError:
                    continue
                return False
            job.close()
            return True

        with brig.start(["cat"], stdin=brig.PIPE, stdout=brig.PIPE) as job:
            pid = os.fork()
            if pid == 0:
                try:
                    with job:  # as if it left the block of its parent
                        os._exit(0 if use(job) else 2)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertEqual(job.communicate(b"still there"), (b"still there", b""))

    def test_a_program_ends_while_its_jobs_run(self):
        code = "import brig; jobs = [brig.start(['sleep', '600'], timeout=None) for _ in range(3)]"
        for _ in range(3 if tap.THOROUGH else 1):
            subprocess.run([sys.executable, "-c", code], check=True, timeout=60,
                           env=dict(os.environ, PYTHONPATH=tap.PACKAGE))


class Imports(unittest.TestCase):
    def test_a_module_that_another_thread_is_importing(self):
        scratch = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, scratch)
        with open(os.path.join(scratch, "slow_module.py"), "w") as stream:
            stream.write("import sys\nfor wait in sys.waits: wait()\nVALUE = 42\n")
        begun, end = threading.Event(), threading.Event()
        sys.waits = [begun.set, end.wait]
        sys.path.insert(0, scratch)
        self.addCleanup(sys.path.remove, scratch)

        def use():
            sys.waits = []
            import slow_module

            return slow_module.VALUE

        thread = threading.Thread(target=__import__, args=("slow_module",))
        thread.start()
        begun.wait()
        try:
            with brig.Jail(timeout=30, fs_read_allow=[scratch]) as jail:
                self.assertEqual(jail.call(use), 42)
        finally:
            end.set()
            thread.join()
        self.assertEqual(sys.modules["slow_module"].VALUE, 42)


if __name__ == "__main__":
    tap.main()
