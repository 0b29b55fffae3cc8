# SPDX-License-Identifier: MIT
"""Functions in a jail: values, errors, limits, and what hostile functions try."""

import asyncio
import ctypes
import errno
import gc
import mmap
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

import tap
import brig
from common import has_ended, wait_for
from brig import _library

LEAK_CALLS = int(os.environ.get("BRIG_LEAK_CALLS", "300"))


def open_fds():
    return sorted(os.listdir("/proc/self/fd"))


def child_handle():
    """What a hostile function would look for: the handles of the frames that called it."""
    frame = sys._getframe()
    while "child" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["lib"], frame.f_locals["child"]


def return_bytes(data):
    """Returns bytes of its own choice and ends, past the binding."""
    lib, child = child_handle()
    ctypes.memmove(lib.brig_call_reserve(child, len(data)), data, len(data))
    lib.brig_call_leave(child)


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def file(self, name, text="secret"):
        path = os.path.join(self.scratch, name)
        with open(path, "w") as stream:
            stream.write(text)
        return path


def touch(size):
    memory = bytearray(size)
    for at in range(0, size, 4096):
        memory[at] = 1
    return len(memory)


def map_only(size):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return len(mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ))


class ResidentMemory(Case):
    """Where there are cgroups memory='rss' is enforced; elsewhere on_unsupported decides."""

    MUCH, LITTLE, HUGE = 200 << 20, 20 << 20, 10 << 30

    def jail(self, on_unsupported="raise", **options):
        return brig.Jail(memory="rss", memory_mb=64, on_unsupported=on_unsupported, **options)

    def has_groups(self):
        try:
            self.jail().close()
        except brig.UnsupportedPlatformError:
            return False
        return True

    def test_what_is_used_is_limited(self):
        if not self.has_groups():
            return  # and what follows is refused or warned of: see below
        for namespaces in (False, True):
            with self.subTest(namespaces=namespaces):
                jail = self.jail(namespaces=namespaces)
                self.assertEqual(jail.call(touch, self.LITTLE), self.LITTLE)
                outcome = jail.try_call(touch, self.MUCH)
                self.assertIsInstance(outcome.error, brig.MemoryError)
                self.assertGreater(outcome.usage["oom_kills"], 0)
                self.assertEqual(jail.call(map_only, self.HUGE), self.HUGE)
                self.assertFalse([line for line in jail.unenforced if "memory" in line])

    def test_where_it_cannot_be_it_is_refused(self):
        if self.has_groups():
            return  # and what is asked for is enforced: see above
        with self.assertRaisesRegex(brig.UnsupportedPlatformError, "memory limit"):
            self.jail()

    def test_or_warned_of_or_not(self):
        if self.has_groups():
            return  # and what is asked for is enforced: see above
        with self.assertWarnsRegex(brig.UnenforcedWarning, "memory limit"):
            warned = self.jail("warn")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ignored = self.jail("ignore")
        for jail in (warned, ignored):
            self.assertTrue([line for line in jail.unenforced if line.startswith("limit memory")])
            self.assertEqual(jail.call(touch, self.LITTLE), self.LITTLE)
            # A resource limit stands in for it.
            with self.assertRaises(brig.MemoryError):
                jail.call(touch, self.MUCH)


class Values(Case):
    def test_a_value_comes_back(self):
        self.assertEqual(brig.call(pow, 2, 10), 1024)
        self.assertEqual(brig.call(dict, a=[1, (2.5, b"x")], b=None), {"a": [1, (2.5, b"x")], "b": None})

    def test_the_function_sees_the_memory_and_cannot_change_it(self):
        seen = {"n": 1}

        def change():
            seen["n"] += 41
            return seen["n"]

        self.assertEqual(brig.call(change), 42)
        self.assertEqual(seen, {"n": 1})

    def test_50_megabytes_come_back(self):
        with brig.Jail(memory_mb=1024) as jail:
            value = jail.call(lambda: b"ab" * (25 << 20))
        self.assertEqual(len(value), 50 << 20)
        self.assertEqual(value[-2:], b"ab")

    def test_a_value_at_the_limit_and_one_byte_more(self):
        with brig.Jail(max_result=109) as jail:
            self.assertEqual(jail.call(bytes, 100), bytes(100))
            with self.assertRaises(brig.OutputLimitError):
                jail.call(bytes, 101)

    def test_what_is_not_plain_is_a_result_error_with_the_remedy(self):
        with self.assertRaisesRegex(brig.ResultError, "result='pickle'"):
            brig.call(object)

    def test_pickle_only_when_asked(self):
        with brig.Jail(result="pickle") as jail:
            self.assertEqual(jail.call(complex, 1, 2), 1 + 2j)
            with self.assertRaisesRegex(brig.ResultError, "pickled"):
                jail.call(lambda: lambda: None)

    def test_output_of_the_program_is_not_printed_twice(self):
        code = (
            "import sys, brig\n"
            "sys.stdout.write('parent ')\n"
            "brig.call(lambda: sys.stdout.write('child '))\n"
            "sys.stdout.write('end')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True,
                              env=dict(os.environ, PYTHONPATH=tap.PACKAGE), timeout=60)
        self.assertEqual(done.stdout, b"parent child end")

    def test_threads_that_print_do_not_stop_the_child(self):
        code = (
            "import brig, sys, threading\n"
            "over = threading.Event()\n"
            "def noise():\n"
            "    while not over.is_set():\n"
            "        sys.stdout.write('x' * 9000)\n"
            "        sys.stdout.flush()\n"
            "threads = [threading.Thread(target=noise) for _ in range(4)]\n"
            "for thread in threads:\n"
            "    thread.start()\n"
            "jail = brig.Jail(timeout=60, capture=True)\n"
            "try:\n"
            f"    for turn in range({50 if tap.THOROUGH else 20}):\n"
            "        assert jail.try_call(print, turn).stdout.decode() == f'{turn}\\n'\n"
            "finally:\n"
            # Python ends with a fatal error if a thread holds the lock of stdout then.
            "    over.set()\n"
            "    for thread in threads:\n"
            "        thread.join()\n"
        )
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True, timeout=120,
                       env=dict(os.environ, PYTHONPATH=tap.PACKAGE))

    def test_captured_output(self):
        def speak():
            print("to stdout")
            print("to stderr", file=sys.stderr)
            return os.system("echo from a child")

        with brig.Jail(capture=True) as jail:
            outcome = jail.try_call(speak)
        self.assertEqual(outcome.unwrap(), 0, outcome)
        self.assertIn(b"to stdout\n", outcome.stdout)
        self.assertIn(b"from a child\n", outcome.stdout)
        self.assertEqual(outcome.stderr, b"to stderr\n")

    def test_captured_output_beyond_the_limit_ends_the_call(self):
        def shout():
            while True:
                os.write(1, b"x" * 4096)

        with brig.Jail(capture=True, max_output=10000, timeout=20) as jail:
            with self.assertRaises(brig.OutputLimitError) as caught:
                jail.call(shout)
        self.assertLessEqual(len(caught.exception.stdout), 10000)


class Errors(Case):
    def test_an_exception_keeps_class_message_and_backtrace(self):
        def fail():
            raise LookupError("no such tool")

        with self.assertRaises(brig.SandboxError) as caught:
            brig.call(fail)
        error = caught.exception
        self.assertEqual(error.original_class, "LookupError")
        self.assertEqual(error.original_message, "no such tool")
        self.assertIn("in fail", "\n".join(error.original_backtrace))
        self.assertNotIn("_child.py", "\n".join(error.original_backtrace))

    def test_classes_of_modules_have_their_full_name(self):
        with self.assertRaises(brig.SandboxError) as caught:
            brig.call(pickle.loads, b"nonsense")
        self.assertEqual(caught.exception.original_class, "_pickle.UnpicklingError")

    def test_an_exception_that_cannot_say_its_message(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError

        def fail():
            raise Mute

        with self.assertRaises(brig.SandboxError) as caught:
            brig.call(fail)
        self.assertIn("Mute", caught.exception.original_class)

    def test_messages_with_nul_and_surrogates(self):
        def fail():
            raise ValueError("a\0b\udc80c")

        with self.assertRaises(brig.SandboxError) as caught:
            brig.call(fail)
        self.assertEqual(caught.exception.original_message, "a\\0b\\udc80c")

    def test_leaving_the_process(self):
        for leave, code in ((lambda: os._exit(3), 3), (lambda: sys.exit(4), 4), (sys.exit, 0)):
            with self.assertRaises(brig.ExitedError) as caught:
                brig.call(leave)
            self.assertEqual(caught.exception.exit_code, code)

    def test_exit_handlers_and_finally_of_the_parent_do_not_run_in_the_child(self):
        path = os.path.join(self.scratch, "ran")
        code = (
            "import atexit, brig, os, sys\n"
            f"atexit.register(lambda: open({path!r}, 'a').write(f'exit {{os.getpid() == me}}\\n'))\n"
            "me = os.getpid()\n"
            f"jail = brig.Jail(fs_allow=[{self.scratch!r}])\n"
            "for leave in (lambda: 1, lambda: sys.exit(3), lambda: 1 / 0):\n"
            "    try:\n"
            "        jail.call(leave)\n"
            "    except brig.Error:\n"
            "        pass\n"
            "    finally:\n"
            f"        open({path!r}, 'a').write(f'finally {{os.getpid() == me}}\\n')\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60,
                       env=dict(os.environ, PYTHONPATH=tap.PACKAGE))
        with open(path) as stream:
            self.assertEqual(stream.read(), "finally True\n" * 3 + "exit True\n")

    def test_a_segmentation_fault_is_a_crash_with_its_signal(self):
        with self.assertRaises(brig.CrashedError) as caught:
            brig.call(ctypes.string_at, 1)
        self.assertEqual(caught.exception.signal, signal.SIGSEGV)

    def test_the_tree_of_exceptions(self):
        for kind in (brig.TimeoutError, brig.MemoryError, brig.FilesystemError, brig.SandboxError,
                     brig.UnsupportedPlatformError, brig.SetupError):
            self.assertTrue(issubclass(kind, brig.Error))
        self.assertTrue(issubclass(brig.CPUTimeoutError, brig.TimeoutError))
        self.assertTrue(issubclass(brig.TimeoutError, TimeoutError))
        self.assertTrue(issubclass(brig.MemoryError, MemoryError))
        for kind in (brig.NetworkError, brig.SyscallError, brig.ProcessLimitError, brig.ExitedError,
                     brig.OutputLimitError, brig.CrashedError, brig.ResultError):
            self.assertTrue(issubclass(kind, brig.SandboxError))

    def test_errors_can_be_pickled(self):
        with self.assertRaises(brig.TimeoutError) as caught:
            with brig.Jail(timeout=0.05) as jail:
                jail.call(time.sleep, 60)
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual(str(copy), str(caught.exception))


class Limits(Case):
    def test_a_function_that_sleeps_for_ever(self):
        with brig.Jail(timeout=0.3) as jail:
            with self.assertRaises(brig.TimeoutError) as caught:
                jail.call(time.sleep, 600)
        self.assertNotIsInstance(caught.exception, brig.CPUTimeoutError)

    def test_an_endless_loop(self):
        def loop():
            while True:
                pass

        with brig.Jail(timeout=0.3) as jail:
            self.assertRaises(brig.TimeoutError, jail.call, loop)
        with brig.Jail(timeout=60, cpu_timeout=1) as jail:
            self.assertRaises(brig.CPUTimeoutError, jail.call, loop)

    def test_ten_gigabytes(self):
        with self.assertRaises(brig.MemoryError):
            brig.call(bytearray, 10 << 30)
        self.assertEqual(brig.call(lambda: len(bytearray(100 << 20))), 100 << 20)

    def test_a_list_that_grows_for_ever(self):
        def grow():
            kept = []
            while True:
                kept.append(bytes(1 << 20))

        with brig.Jail(memory_mb=300) as jail:
            self.assertRaises(brig.MemoryError, jail.call, grow)

    def test_a_fork_bomb_ends_with_the_call(self):
        def bomb():
            while True:
                try:
                    os.fork()
                except OSError:
                    pass

        with brig.Jail(timeout=1, processes=20) as jail:
            with self.assertRaises(brig.Error):
                jail.call(bomb)
        # Nothing of it is left, or the machine would not answer so soon.
        self.assertEqual(brig.call(len, "abc"), 3)

    def test_what_the_function_started_ends_with_it(self):
        def start():
            pid = os.fork()
            if pid == 0:
                time.sleep(600)
                os._exit(0)
            return pid

        pid = brig.call(start)
        wait_for(lambda: has_ended(pid), "the child's child to end")

    def test_wrong_values_are_named(self):
        for options, words in (
            ({"timeout": 0}, "timeout=0"), ({"timeout": -1}, "timeout=-1"),
            ({"memory_mb": 0}, "memory_mb=0"), ({"memory": "much"}, "memory='much'"),
            ({"network": "some"}, "network='some'"), ({"result": "xml"}, "result='xml'"),
            ({"on_unsupported": "cry"}, "on_unsupported='cry'"), ({"processes": 0}, "processes=0"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                brig.Jail(**options)
        with self.assertRaisesRegex(TypeError, "fs_allow is a list"):
            brig.Jail(fs_allow="/tmp")
        with self.assertRaises(TypeError):
            brig.Jail(tiemout=3)
        with self.assertRaises(TypeError):
            brig.jailed(tiemout=3)


class Access(Case):
    def test_a_file_of_etc_is_refused_and_readable_when_granted(self):
        # Not /etc/passwd, which other suites replace when they make a user.
        path = "/etc/login.defs"
        with self.assertRaises(brig.FilesystemError) as caught:
            brig.call(lambda: open(path).read())
        self.assertEqual(caught.exception.path, path)
        self.assertEqual(caught.exception.access, "read")
        self.assertTrue(caught.exception.rule)
        self.assertEqual(caught.exception.original_class, "PermissionError")
        with brig.Jail(fs_read_allow=[path]) as jail:
            self.assertIn("PASS_MAX_DAYS", jail.call(lambda: open(path).read()))

    def test_reading_and_writing_as_granted(self):
        path = self.file("data")

        def write():
            with open(path, "w") as stream:
                stream.write("changed")

        read = lambda: open(path).read()
        self.assertRaises(brig.FilesystemError, brig.call, read)
        with brig.Jail(fs_read_allow=[self.scratch]) as jail:
            self.assertEqual(jail.call(read), "secret")
            with self.assertRaises(brig.FilesystemError) as caught:
                jail.call(write)
            self.assertEqual(caught.exception.access, "write")
            self.assertEqual(caught.exception.path, path)
        self.assertEqual(read(), "secret")
        with brig.Jail(fs_allow=[self.scratch]) as jail:
            jail.call(write)
        self.assertEqual(read(), "changed")

    def test_relative_paths_are_told_in_full(self):
        self.file("data")
        before = os.getcwd()
        os.chdir(self.scratch)
        try:
            with self.assertRaises(brig.FilesystemError) as caught:
                brig.call(lambda: open("data").read())
        finally:
            os.chdir(before)
        self.assertEqual(caught.exception.path, os.path.join(self.scratch, "data"))

    def test_listing_and_making_directories(self):
        for act, access in ((lambda: os.listdir(self.scratch), "read"),
                            (lambda: os.mkdir(self.scratch + "/new"), "write")):
            with self.assertRaises(brig.FilesystemError) as caught:
                brig.call(act)
            self.assertEqual(caught.exception.access, access)
        with brig.Jail(fs_allow=[self.scratch]) as jail:
            jail.call(lambda: os.mkdir(self.scratch + "/new"))
            self.assertEqual(jail.call(lambda: os.listdir(self.scratch)), ["new"])

    def test_an_errno_that_is_not_the_jails_is_the_functions_own_failure(self):
        with brig.Jail(fs_read_allow=[self.scratch]) as jail:
            with self.assertRaises(brig.SandboxError) as caught:
                jail.call(lambda: open(self.scratch + "/none"))
        self.assertEqual(caught.exception.original_class, "FileNotFoundError")

    def test_modules_can_be_imported_inside(self):
        self.assertEqual(brig.call(lambda: __import__("colorsys").rgb_to_hsv(0, 0, 0)), (0.0, 0.0, 0))

    def test_the_network_is_the_callers_or_none(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            address = server.getsockname()

            def connect():
                with socket.create_connection(address, timeout=5) as client:
                    return client.getpeername()

            self.assertEqual(brig.call(connect), address)
            with brig.Jail(network="none") as jail:
                self.assertRaises(brig.NetworkError, jail.call, connect)

    def test_unix_sockets_are_asked_for(self):
        path = os.path.join(self.scratch, "socket")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()

            def connect():
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(path)
                return "connected"

            def of_its_own():
                ours, theirs = socket.socketpair()
                with ours, theirs:
                    ours.send(b"x")
                    return theirs.recv(1), asyncio.run(asyncio.sleep(0, "slept"))

            options = {"fs_allow": [self.scratch]}  # so that Landlock is no reason
            with brig.Jail(**options) as jail:
                self.assertRaisesRegex(brig.SyscallError, "unix_sockets", jail.call, connect)
            with brig.Jail(unix_sockets=True, **options) as jail:
                self.assertEqual(jail.call(connect), "connected")
            with brig.Jail(network="none", **options) as jail:
                self.assertRaises(brig.NetworkError, jail.call, connect)
                self.assertEqual(jail.call(of_its_own), (b"x", "slept"))
            with brig.Jail(network="none", unix_sockets=True, **options) as jail:
                self.assertEqual(jail.call(connect), "connected")

    def test_open_connections_are_closed_in_the_child_unless_passed(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            with self.assertRaises(brig.SandboxError) as caught:
                brig.call(theirs.send, b"forged")
            self.assertEqual(caught.exception.details["errno"], errno.EBADF)
            with brig.Jail(keep_fds=[theirs.fileno()]) as jail:
                self.assertEqual(jail.call(theirs.send, b"passed"), 6)
            self.assertEqual(ours.recv(100), b"passed")

    def test_a_log_of_the_parent_does_not_write_into_files_of_the_function(self):
        path = os.path.join(self.scratch, "data")
        with open(os.path.join(self.scratch, "log"), "w") as log:
            log.write("of the parent, not yet written")

            def write():
                with open(path, "w") as stream:
                    try:
                        log.write("a line")
                        log.flush()
                    except OSError as error:
                        stream.write(errno.errorcode[error.errno])

            for options in ({}, {"namespaces": True}):
                with brig.Jail(fs_allow=[self.scratch], **options) as jail:
                    jail.call(write)
                with open(path) as stream:
                    self.assertEqual(stream.read(), "EBADF")
        with open(log.name) as stream:
            self.assertEqual(stream.read(), "of the parent, not yet written")

    def test_files_that_are_garbage_of_the_parent_close_nothing_in_the_child(self):
        class Ring:
            """Garbage that only the collector finds."""

            def __init__(self):
                self.itself = self
                self.files = [open(os.devnull, "rb") for _ in range(20)]

        def open_and_collect(*args):
            number = real(*args)
            gc.collect()
            return number

        real = os.open
        self.addCleanup(gc.enable)
        gc.disable()
        for options in ({}, {"namespaces": True}):
            Ring()  # with the lowest numbers
            with brig.Jail(**options) as jail, mock.patch("os.open", open_and_collect):
                self.assertEqual(jail.call(lambda: 7), 7)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()

    def test_the_full_jail(self):
        with brig.Jail(namespaces=True) as jail:
            self.assertLess(jail.call(os.getpid), 10)
            self.assertFalse(jail.call(os.path.exists, self.scratch))
            self.assertEqual(jail.call(lambda: __import__("colorsys").__name__), "colorsys")
        with brig.Jail(namespaces=True, fs_allow=[self.scratch]) as jail:
            jail.call(lambda: os.mkdir(self.scratch + "/new"))
        self.assertTrue(os.path.isdir(self.scratch + "/new"))

    def test_a_policy_says_more_than_options(self):
        path = self.file("data")
        policy = brig.Policy("sealed").grant(self.scratch, "read-only")
        with brig.Jail(policy=policy, interpreter=True) as jail:
            self.assertEqual(jail.call(lambda: open(path).read()), "secret")
        self.assertIn(self.scratch, policy.explain())


class Hostile(Case):
    def test_bytes_that_are_no_value(self):
        for data in (b"", b"?", b"l\xff\xff\xff\xff\xff\xff\xff\xff", b"NN", b"s\x01" + bytes(7) + b"\xff"):
            if data:
                self.assertRaises(brig.ResultError, brig.call, return_bytes, data)

    def test_a_pickle_is_not_loaded(self):
        path = os.path.join(self.scratch, "ran")

        class Attack:
            def __reduce__(self):
                return open, (path, "w")

        self.assertRaises(brig.ResultError, brig.call, return_bytes, pickle.dumps(Attack()))
        self.assertFalse(os.path.exists(path))

    def test_closing_everything_in_the_child(self):
        def close():
            os.closerange(0, 4096)
            return "still here"

        try:
            self.assertEqual(brig.call(close), "still here")
        except brig.SandboxError:
            pass  # an error is an answer too; hanging or crashing is not
        self.assertEqual(brig.call(len, "abc"), 3)

    def test_ending_without_a_word(self):
        def vanish():
            lib, child = child_handle()
            lib.brig_call_leave(child)

        try:
            self.assertIsNone(brig.call(vanish))
        except brig.Error:
            pass

    def test_killing_itself_and_its_group(self):
        for kill in (lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os.killpg(0, signal.SIGKILL)):
            with self.assertRaises(brig.CrashedError) as caught:
                brig.call(kill)
            self.assertEqual(caught.exception.signal, signal.SIGKILL)

    def test_the_parent_cannot_be_signalled(self):
        parent = os.getpid()
        with self.assertRaises(brig.SandboxError):
            brig.call(os.kill, parent, signal.SIGTERM)

    def test_the_child_ends_with_its_parent(self):
        pid_path = os.path.join(self.scratch, "pid")
        code = (
            "import brig, os, time\n"
            "def wait():\n"
            f"    open({pid_path!r} + '.new', 'w').write(str(os.getpid()))\n"
            f"    os.rename({pid_path!r} + '.new', {pid_path!r})\n"
            "    time.sleep(600)\n"
            f"brig.Jail(fs_allow=[{self.scratch!r}]).call(wait)\n"
        )
        parent = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=tap.PACKAGE))
        try:
            wait_for(lambda: os.path.exists(pid_path), "the child")
            with open(pid_path) as stream:
                child = int(stream.read())
            self.assertFalse(has_ended(child))
        finally:
            parent.kill()
            parent.wait()
        wait_for(lambda: has_ended(child), "the child to end")
        # Its control group is removed by the next process that makes one.
        subprocess.run([sys.executable, "-c", "import brig; brig.call(len, '')"], timeout=60, check=True,
                       env=dict(os.environ, PYTHONPATH=tap.PACKAGE))


class Use(Case):
    def test_the_decorator(self):
        @brig.jailed(timeout=60, memory_mb=256)
        def double(number):
            """Doubles."""
            return number * 2

        @brig.jailed
        def where():
            return os.getpid()

        self.assertEqual(double(21), 42)
        self.assertEqual(double.__doc__, "Doubles.")
        self.assertNotEqual(where(), os.getpid())

    def test_a_closed_jail_takes_no_calls(self):
        jail = brig.Jail()
        decorated = jail.jailed(len)
        self.assertEqual(decorated("abc"), 3)
        jail.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            jail.call(len, "abc")

    def test_an_outcome_has_usage(self):
        with brig.Jail() as jail:
            outcome = jail.try_call(sum, range(1000))
        self.assertTrue(outcome.ok)
        self.assertEqual(outcome.value, 499500)
        self.assertGreater(outcome.usage["wall_us"], 0)

    def test_many_threads_call_at_once(self):
        results, errors = [], []
        with brig.Jail() as jail, warnings.catch_warnings():
            # Python 3.12 warns of forks in programs with threads.
            warnings.simplefilter("ignore", DeprecationWarning)

            def work(number):
                try:
                    for turn in range(10):
                        results.append(jail.call(lambda: number * 100 + turn))
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(sorted(results), sorted(n * 100 + t for n in range(8) for t in range(10)))

    def test_a_keyboard_interrupt_ends_the_call(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        def press():
            os.read(begun, 1)
            os.kill(os.getpid(), signal.SIGALRM)

        begun, begin = os.pipe()
        before = signal.signal(signal.SIGALRM, interrupt)
        key = threading.Thread(target=press)
        with brig.Jail(keep_fds=[begin], timeout=600) as jail, warnings.catch_warnings():
            # Python 3.12 warns of forks in programs with threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            key.start()
            try:
                self.assertRaises(KeyboardInterrupt, jail.call, lambda: os.write(begin, b"x") and time.sleep(600))
            finally:
                key.join()
                signal.signal(signal.SIGALRM, before)
        os.close(begun)
        os.close(begin)

    def test_handlers_of_the_parent_do_not_run_in_the_child(self):
        before = signal.signal(signal.SIGUSR1, lambda *_: None)
        try:
            with self.assertRaises(brig.CrashedError) as caught:
                brig.call(lambda: os.kill(os.getpid(), signal.SIGUSR1) or time.sleep(600))
        finally:
            signal.signal(signal.SIGUSR1, before)
        self.assertEqual(caught.exception.signal, signal.SIGUSR1)

    def test_a_jail_that_is_collected_in_the_child_closes_nothing(self):
        jails = [brig.Jail()]

        def drop():
            jails.clear()
            gc.collect()
            with open(self.scratch + "/new", "w") as stream:
                return stream.write("fine")

        with brig.Jail(fs_allow=[self.scratch]) as jail:
            self.assertEqual(jail.call(drop), 4)

    def test_no_fd_and_no_memory_is_left_behind(self):
        def memory():
            with open("/proc/self/statm") as stream:
                return int(stream.read().split()[1]) * mmap.PAGESIZE

        with brig.Jail() as jail:
            for _ in range(50):
                jail.call(bytes, 1000)
            fds, before = open_fds(), memory()
            for turn in range(LEAK_CALLS):
                if turn % 10:
                    jail.call(bytes, 1000)
                else:
                    self.assertRaises(brig.SandboxError, jail.call, lambda: 1 / 0)
            self.assertEqual(open_fds(), fds)
        self.assertLess(memory() - before, 8 << 20)
        with open("/proc/self/task/%d/children" % os.getpid()) as stream:
            self.assertEqual(stream.read().split(), [])

    def test_a_missing_library_is_named(self):
        code = "import brig\ntry:\n    brig.call(len, '')\nexcept brig.SetupError as error:\n    print(error)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True,
                              env=dict(os.environ, PYTHONPATH=tap.PACKAGE, BRIG_LIBRARY="/none.so"))
        self.assertIn(b"'/none.so'", done.stdout)
        self.assertIn(b"BRIG_LIBRARY", done.stdout)

    def test_on_unsupported_decides_what_a_lesser_kernel_does(self):
        without = tap.program_without(self)
        code = (
            "import brig, warnings\n"
            "warnings.showwarning = lambda message, kind, *_: print(kind.__name__)\n"
            "for what in ('raise', 'warn', 'ignore'):\n"
            "    try:\n"
            "        print(brig.Jail(on_unsupported=what).call(len, 'abc'))\n"
            "    except brig.UnsupportedPlatformError as error:\n"
            "        print('Landlock' in str(error))\n"
        )
        done = subprocess.run([without, "landlock", "--", sys.executable, "-c", code], capture_output=True,
                              timeout=60, check=True, env=dict(os.environ, PYTHONPATH=tap.PACKAGE))
        self.assertEqual(done.stdout.split(), [b"True", b"UnenforcedWarning", b"3", b"3"])

    def test_an_exception_between_fork_and_what_follows(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        forked, fork = [], os.fork

        def strike():
            pid = fork()
            if pid:
                forked.append(pid)
                os.read(reading, 1)  # the function runs
                raise KeyboardInterrupt
            return pid

        def stay(fd):
            os.write(fd, b"x")
            time.sleep(600)

        with brig.Jail(keep_fds=[writing]) as jail, mock.patch("os.fork", strike):
            try:
                jail.call(stay, writing)
            except KeyboardInterrupt as error:
                kept = error  # and with it the frames of the call
        os.close(writing)
        self.assertEqual(os.read(reading, 1), b"")  # nobody has the other end any more
        with self.assertRaises(ChildProcessError):
            os.waitpid(forked[0], os.WNOHANG)
        self.assertIsNotNone(kept.__traceback__)
        self.assertEqual(brig.call(len, "abc"), 3)

    def test_what_landlock_does_not_restrict_is_refused(self):
        path = self.file("own")
        ways = [(os.chmod, 0o777), (os.utime, (1, 1)), (os.setxattr, "user.x", b"1"), (os.truncate, 0)]
        before = os.stat(path)
        for allowed in ({"fs_read_allow": [self.scratch]}, {"fs_allow": [self.scratch]}):
            for way, *arguments in ways:
                with self.subTest(way=way.__name__), self.assertRaises(brig.SyscallError) as caught:
                    brig.Jail(**allowed).call(way, path, *arguments)
                self.assertIn("without namespaces", str(caught.exception))
        after = os.stat(path)
        self.assertEqual((before.st_mode, before.st_mtime, before.st_ctime), (after.st_mode, after.st_mtime, after.st_ctime))
        full = brig.Jail(fs_allow=[self.scratch], namespaces=True)
        for way, *arguments in ways:  # the twin
            with self.subTest(way=way.__name__):
                try:
                    full.call(way, path, *arguments)
                except brig.SandboxError as error:
                    self.assertIn("[Errno 95]", str(error))  # no such attributes on this filesystem

    def test_tracing_tells_of_files(self):
        path = self.file("secret")

        def peek():
            try:
                open(path).close()
            except OSError:
                return "refused"

        outcome = brig.Jail(trace=True).try_call(peek)
        self.assertEqual(outcome.value, "refused")
        told = [denial for denial in outcome.denials if denial["subject"] == path]
        self.assertEqual([(denial["kind"], denial["access"]) for denial in told], [("filesystem", "read")])
        self.assertEqual(brig.Jail(trace=True, fs_read_allow=[path]).try_call(peek).denials, [])

    def test_calls_inside_calls_are_refused_clearly(self):
        for namespaces in (False, True):
            jail = brig.Jail(namespaces=namespaces)
            for inner in (lambda: brig.call(len, "abc"), lambda: jail.call(len, "abc")):
                with self.assertRaises(brig.SandboxError) as caught:
                    jail.call(inner)
                self.assertEqual(caught.exception.original_class, "brig.UnsupportedPlatformError")
                self.assertIn("inside this call or jail", str(caught.exception))

    def test_here_there_is_nothing_to_warn_of(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(brig.Jail(on_unsupported="warn").call(len, "abc"), 3)

    def test_confining_oneself(self):
        code = (
            "import brig\n"
            "open('/etc/passwd').close()\n"
            "brig.confine_self()\n"
            "try:\n    open('/etc/passwd')\nexcept PermissionError:\n    print('refused')"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True,
                              env=dict(os.environ, PYTHONPATH=tap.PACKAGE))
        self.assertEqual(done.stdout, b"refused\n")

    def test_structs_are_as_the_library_has_them(self):
        options = _library.CallOptions()
        _library.library().brig_call_options_init(ctypes.byref(options), ctypes.sizeof(options))
        self.assertEqual(options.size, ctypes.sizeof(options))
        self.assertEqual((options.timeout_ms, options.memory_mb), (30000, 512))
        self.assertEqual(list(options.stdio), [0, 1, 1])


if __name__ == "__main__":
    tap.main()
