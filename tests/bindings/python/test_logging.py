# SPDX-License-Identifier: MIT
"""Logging in calls, while other threads of the program log: locks, log files, queues."""

import io
import logging
import logging.handlers
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import tap
import brig

CALLS, THREADS = 16 if tap.THOROUGH else 8, 8  # half of the calls hung without renewed locks


def work(log, number):
    log.info("inside %d", number)
    time.strptime("2020", "%Y")  # has a lock, too
    return number


class Logging(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.path = os.path.join(self.scratch, "log")
        self.log = logging.Logger("test")

    def add(self, handler):
        self.log.addHandler(handler)
        self.addCleanup(handler.close)
        return handler

    def calls_that_log(self, **options):
        """Makes calls that log while threads do; returns what they wrote to stderr."""
        stop = threading.Event()

        def noise():
            while not stop.is_set():
                self.log.info("noise " * 50)
                time.strptime("2021", "%Y")

        threads = [threading.Thread(target=noise) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        errors = b""
        try:
            jail = brig.Jail(timeout=60, capture=True, **options)
            for number in range(CALLS):
                outcome = jail.try_call(work, self.log, number)
                self.assertEqual(outcome.unwrap(), number)
                errors += outcome.stderr
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        return errors.decode()

    def inside(self):
        with open(self.path) as stream:
            return stream.read().count("inside")

    def test_a_log_file_that_is_closed_inside(self):
        self.add(logging.FileHandler(self.path))
        for namespaces in (False, True):
            self.assertEqual(self.calls_that_log(namespaces=namespaces), "")
        self.assertEqual(self.inside(), 0)

    def test_a_log_file_whose_path_is_granted(self):
        self.add(logging.handlers.RotatingFileHandler(self.path))
        self.assertEqual(self.calls_that_log(fs_allow=[self.scratch]), "")
        self.assertEqual(self.inside(), CALLS)

    def test_a_log_file_that_is_kept(self):
        handler = self.add(logging.FileHandler(self.path))
        self.assertEqual(self.calls_that_log(keep_fds=[handler.stream.fileno()]), "")
        self.assertEqual(self.inside(), CALLS)

    def test_stderr(self):
        # A program of its own, as this one's stderr is the test's.
        code = (
            "import logging, sys, threading, brig\n"
            "logging.basicConfig(level=logging.INFO)\n"
            "def noise():\n    while True: logging.info('noise ' * 50)\n"
            f"for _ in range({THREADS}): threading.Thread(target=noise, daemon=True).start()\n"
            "jail = brig.Jail(timeout=60)\n"
            f"print(sum(jail.call(lambda: logging.info('inside') or 1) for _ in range({CALLS})))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300, check=True,
                              env=dict(os.environ, PYTHONPATH=tap.PACKAGE))
        self.assertEqual(done.stdout, b"%d\n" % CALLS)
        self.assertEqual(done.stderr.count(b"inside"), CALLS)

    def test_queues_and_sockets_are_harmless(self):
        records = queue.Queue()
        self.add(logging.handlers.QueueHandler(records))
        self.add(logging.handlers.SocketHandler("127.0.0.1", 1))
        self.assertEqual(self.calls_that_log(network="none"), "")

    def test_a_stream_of_the_program_is_kept(self):
        self.add(logging.StreamHandler(io.StringIO()))
        self.assertEqual(brig.Jail(timeout=60).call(work, self.log, 3), 3)


if __name__ == "__main__":
    tap.main()
