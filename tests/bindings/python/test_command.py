# SPDX-License-Identifier: MIT
"""Commands in a jail."""

import asyncio
import dataclasses
import inspect
import os
import pydoc
import shutil
import subprocess
import sys
import tempfile
import time
import typing
import unittest
from unittest import mock

import tap
import brig
from common import GROWING
from brig import _options, _policy


class Commands(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="brig-test-")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def test_output_and_status(self):
        done = brig.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        self.assertEqual((done.outcome, done.exit_code, done.status), ("exited", 3, 3))
        self.assertEqual((done.stdout, done.stderr), (b"out\n", b"err\n"))
        self.assertFalse(done.ok)
        self.assertGreater(done.usage["wall_us"], 0)

    def test_input(self):
        self.assertEqual(brig.run(["cat"], input="text é").stdout, "text é".encode())
        self.assertEqual(brig.run(["wc", "-c"], input=bytes(300000)).stdout.split(), [b"300000"])
        self.assertEqual(brig.run(["cat"]).stdout, b"")

    def test_check_raises_with_the_result(self):
        with self.assertRaises(brig.CommandError) as caught:
            brig.run(["sh", "-c", "echo half; exit 4"], check=True)
        self.assertEqual(caught.exception.result.stdout, b"half\n")
        self.assertIn("exited with 4", str(caught.exception))
        self.assertTrue(brig.run(["true"], check=True).ok)

    def test_a_timeout_is_raised_like_that_of_a_function(self):
        for seconds in GROWING:
            with self.assertRaises(brig.TimeoutError) as caught:
                brig.run(["sh", "-c", "echo half; sleep 600"], timeout=seconds)
            if caught.exception.stdout:
                break
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertEqual((caught.exception.result.outcome, caught.exception.result.status), ("timeout", 124))
        self.assertEqual((caught.exception.stdout, caught.exception.result.stdout), (b"half\n", b"half\n"))
        with self.assertRaises(brig.TimeoutError):
            brig.run(["sleep", "600"], timeout=0.3, check=True)
        with self.assertRaises(brig.CPUTimeoutError):
            brig.run(["sh", "-c", "while :; do :; done"], cpu_timeout=0.2)

    def test_text(self):
        done = brig.run(["sh", "-c", "cat; printf 'a\\r\\nb\\377' >&2"], input="é", text=True)
        self.assertEqual((done.stdout, done.stderr), ("é", "a\nb\ufffd"))
        done = brig.run(["cat"], input="é", text=True, encoding="latin-1")
        self.assertEqual(done.stdout, "é")
        with self.assertRaisesRegex(ValueError, "needs text=True"):
            brig.run(["true"], encoding="utf-8")

    def test_fds_are_passed(self):
        reading, writing = os.pipe()
        try:
            self.assertTrue(brig.run(["sh", "-c", "echo passed >&7"], pass_fds={writing: 7}).ok)
            self.assertEqual(os.read(reading, 100), b"passed\n")
        finally:
            os.close(reading)
            os.close(writing)

    def test_a_signal(self):
        done = brig.run(["sh", "-c", "kill -KILL $$"])
        self.assertEqual((done.outcome, done.signal, done.exit_code), ("signalled", 9, -1))

    def test_a_command_that_is_not_there(self):
        with self.assertRaisesRegex(brig.SetupError, "nonesuch"):
            brig.run(["nonesuch"])

    def test_paths_are_there_as_granted(self):
        path = os.path.join(self.scratch, "data")
        with open(path, "w") as stream:
            stream.write("secret")
        self.assertFalse(brig.run(["cat", path]).ok)
        self.assertEqual(brig.run(["cat", path], fs_read_allow=[self.scratch]).stdout, b"secret")
        self.assertFalse(brig.run(["touch", path + "2"], fs_read_allow=[self.scratch]).ok)
        self.assertTrue(brig.run(["touch", path + "2"], fs_allow=[self.scratch]).ok)
        self.assertTrue(os.path.exists(path + "2"))
        self.assertEqual(brig.run(["ls"], fs_read_allow=[self.scratch], cwd=self.scratch).stdout, b"data\ndata2\n")

    def test_secrets_of_the_environment_stay_outside(self):
        with mock.patch.dict(os.environ, {"API_KEY": "secret", "LANG": "C"}):
            self.assertNotIn(b"secret", brig.run(["env"]).stdout)
            self.assertIn(b"LANG=C", brig.run(["env"]).stdout)
        policy = brig.Policy("sealed").setenv(TOOL="value")
        self.assertIn(b"TOOL=value", brig.run(["env"], policy=policy).stdout)

    def test_output_beyond_the_limit_is_cut_and_marked(self):
        done = brig.run(["sh", "-c", "head -c 5000 /dev/zero"], max_output=1000)
        self.assertEqual((len(done.stdout), done.truncated), (1000, True))
        self.assertFalse(brig.run(["echo"]).truncated)

    def test_memory_by_address_space(self):
        code = "print(len(bytearray(300 << 20)))"
        self.assertFalse(brig.run(["/usr/bin/python3", "-c", code], memory_mb=200).ok)
        self.assertTrue(brig.run(["/usr/bin/python3", "-c", code], memory_mb=500).ok)

    def test_wrong_arguments_are_named(self):
        for error, words, arguments in (
            (TypeError, "list of arguments", ("echo hi",)), (ValueError, "empty", ([],)),
            (ValueError, "NUL", (["a\0b"],)),
        ):
            with self.assertRaisesRegex(error, words):
                brig.run(*arguments)
        for error, words, options in (
            (ValueError, "timeout=0", {"timeout": 0}), (TypeError, "timeout='5'", {"timeout": "5"}),
            (TypeError, "policy='sealed'", {"policy": "sealed"}), (ValueError, "mode='soft'", {"mode": "soft"}),
            (TypeError, "fs_allow is a list", {"fs_allow": "/tmp"}), (TypeError, "tiemout", {"tiemout": 1}),
            (ValueError, "memory='much'", {"memory": "much"}),
        ):
            with self.assertRaisesRegex(error, words):
                brig.run(["true"], **options)

    def test_no_fd_is_left_behind(self):
        brig.run(["true"])
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(10):
            brig.run(["true"])
        self.assertEqual(sorted(os.listdir("/proc/self/fd")), before)


class Policies(unittest.TestCase):
    def test_a_policy_is_checked_as_it_is_built(self):
        policy = brig.Policy("sealed")
        with self.assertRaisesRegex(ValueError, "access='all'"):
            policy.grant("/tmp", "all")
        with self.assertRaisesRegex(TypeError, "speed"):
            policy.limit(speed=3)
        with self.assertRaisesRegex(ValueError, "processes=-1"):
            policy.limit(processes=-1)
        with self.assertRaises(ValueError):
            policy.setenv(**{"A=B": "c"})

    def test_a_policy_is_explained(self):
        text = brig.Policy("sealed").grant("/srv", "read-only", optional=True).hostname("cell").explain()
        self.assertIn("/srv", text)
        self.assertIn("cell", text)

    def test_the_words_are_those_of_the_header(self):
        with open(os.path.join(tap.ROOT, "include", "brig", "brig.h")) as stream:
            header = stream.read()
        for name, table in (
            ("brig_mode", _policy.MODES), ("brig_view", _policy.VIEWS), ("brig_network", _policy.NETWORKS),
            ("brig_access", _policy.ACCESS), ("brig_seccomp", _policy.SECCOMP),
        ):
            body = header.split(f"enum {name} {{")[1].split("}")[0]
            words = [line.split(",")[0].split()[0] for line in body.splitlines() if line.strip().startswith("BRIG_")]
            self.assertEqual(len(table), len(words))
            for word, number in table.items():
                self.assertTrue(words[number].endswith(word.upper().replace("-", "_")), (word, words))

    def test_refused_calls_are_listed_when_asked_for(self):
        with_list = brig.run(["unshare", "-U", "true"], policy=brig.Policy("sealed").trace())
        names = [call["name"] for call in with_list.details["denials"]["syscalls"]]
        self.assertEqual((with_list.ok, names), (False, ["unshare"]))
        self.assertIsNone(brig.run(["true"], policy=brig.Policy("sealed")).details["denials"])

    def test_destinations_are_rules_of_the_library(self):
        policy = brig.Policy("sealed").network("allow").allow("example.com:443", "@npm").deny("*.evil.example")
        self.assertIsInstance(policy, brig.Policy)
        with self.assertRaisesRegex((brig.Error, ValueError), "no such"):
            policy.allow("no such:rule")


class Options(unittest.TestCase):
    def test_keywords_and_defaults_name_the_same_options(self):
        with open(_options.__file__) as stream:
            text = stream.read()
        for name in ("Call", "Jail", "Capture", "Stream"):
            keywords = text.split(f"class {name}Keywords")[1].split("\n\n")[0]
            listed = [line.strip() for line in keywords.splitlines()[1:]]
            fields = dataclasses.fields(getattr(_options, f"{name}Options"))
            # Of text there are overloads.
            self.assertEqual(listed, [f"{field.name}: {field.type}" for field in fields if field.name != "text"])

    def test_help_shows_every_option(self):
        for function in (brig.run, brig.run_async, brig.start, brig.start_async, brig.Jail, brig.jailed,
                         brig.Template, brig.Template.run, brig.Template.start, brig.JailPoolExecutor,
                         brig.Policy.limit):
            found = inspect.signature(function).parameters.values()
            self.assertFalse([each for each in found if each.kind is each.VAR_KEYWORD], function)
        shown = pydoc.render_doc(brig.run, renderer=pydoc.plaintext)
        for words in ("timeout: Optional[float]", "pass_fds: PassFds", "text: bool = False", "-> Completed"):
            self.assertIn(words, shown)

    def test_everything_public_says_what_it_is(self):
        for name in brig.__all__:
            thing = getattr(brig, name)
            if not callable(thing):
                continue
            self.assertTrue(thing.__doc__, name)
            for member, function in vars(thing).items() if isinstance(thing, type) else ():
                if callable(function) and not member.startswith("_"):
                    self.assertTrue(function.__doc__, f"{name}.{member}")

    def test_every_public_function_has_type_hints(self):
        for name in brig.__all__:
            thing = getattr(brig, name)
            if callable(thing) and not isinstance(thing, type):
                self.assertIn("return", thing.__annotations__, name)
        self.assertTrue(typing.TYPE_CHECKING is False)


class PolicyLimits(unittest.TestCase):
    """What a policy says stays, on every path, unless an option says something else."""

    # Limits, command, function, outcomes of both.
    ROWS = [
        ({"wall_ms": 300}, ["sleep", "60"], lambda: time.sleep(60), "timeout", "timeout"),
        ({"cpu_ms": 300}, ["sh", "-c", "while :; do :; done"], lambda: list(iter(int, 1)), "cpu-timeout", "cpu-timeout"),
        ({"output_bytes": 100}, ["sh", "-c", "yes | head -c 5000"], lambda: print("x" * 5000), "exited", "output"),
        ({"grace_ms": 60000}, ["sh", "-c", "trap 'echo term; exit 3' TERM; while :; do sleep 0.1; done"],
         None, "timeout", None),
        ({"file_size_bytes": 8192}, ["sh", "-c", "head -c 100000 /dev/zero >/tmp/much || exit 3"], None, "exited", None),
        ({"open_files": 20}, ["python3", "-c", "[open('/dev/null') for _ in range(50)]"],
         lambda: [open("/dev/null") for _ in range(50)], "exited", "failed"),
    ]

    def policy(self, limits):
        return brig.Policy("sealed").limit(**limits)

    def run_limited(self, limits, run):
        """What run() gives with that policy. To use its grace a command must have come far enough in time."""
        if "grace_ms" not in limits:
            return run(self.policy(limits))
        for seconds in GROWING:
            done = run(self.policy({**limits, "wall_ms": 1000 * seconds}))
            if done.stdout:
                break
        return done

    def check(self, done, limits, outcome):
        self.assertEqual(done.outcome, outcome, done)
        if "grace_ms" in limits:
            self.assertEqual(done.stdout, b"term\n")
        elif "output_bytes" in limits:
            self.assertEqual((len(done.stdout), done.truncated), (100, True))
        elif outcome == "exited":
            self.assertNotEqual(done.exit_code, 0)

    def test_commands(self):
        for limits, command, _, outcome, _ in self.ROWS:
            with self.subTest(limits=limits):
                done = self.run_limited(limits, lambda policy: brig.run(command, policy=policy, check=False))
                self.check(done, limits, outcome)
                done = self.run_limited(
                    limits, lambda policy: asyncio.run(brig.run_async(command, policy=policy, check=False)))
                self.check(done, limits, outcome)

    def test_functions(self):
        for limits, _, function, _, outcome in self.ROWS:
            if function is None:
                continue
            with self.subTest(limits=limits):
                jail = brig.Jail(policy=self.policy(limits), capture=True)
                self.assertEqual(jail.try_call(function).details["outcome"], outcome)

    def test_an_option_wins(self):
        policy = self.policy({"wall_ms": 60000})
        with self.assertRaises(brig.TimeoutError):
            brig.run(["sleep", "60"], policy=policy, timeout=0.3)
        with self.assertRaises(brig.TimeoutError):
            brig.Jail(policy=policy, timeout=0.3).call(time.sleep, 60)
        self.assertTrue(brig.run(["sleep", "0.3"], policy=self.policy({"wall_ms": 100}), timeout=None).ok)

    def test_on_unsupported_of_the_policy_stays(self):
        without = tap.program_without(self)
        code = (
            "import brig, warnings\n"
            "warnings.showwarning = lambda message, kind, *_: print(kind.__name__)\n"
            "print(brig.run(['true'], policy=brig.Policy('sealed').on_unsupported('warn')).outcome)\n"
        )
        done = subprocess.run([without, "userns", "--", sys.executable, "-c", code], capture_output=True,
                              timeout=60, env=dict(os.environ, PYTHONPATH=tap.PACKAGE))
        if b"without:" in done.stderr:
            self.skipTest(done.stderr.decode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(done.stdout.split()), {b"UnenforcedWarning", b"exited"})

    def test_env_is_passed_on(self):
        script = ["sh", "-c", "echo $GIVEN-$OTHER"]
        self.assertEqual(brig.run(script, env={"GIVEN": "1", "PATH": "/bin"}).stdout, b"1-\n")
        with mock.patch.dict(os.environ, {"OTHER": "2"}):  # of the caller's, what the mode keeps
            self.assertEqual(brig.run(script).stdout, b"-\n")
        self.assertEqual(brig.run(["sh", "-c", "echo $HOME"], env={"HOME": "/tmp"}).stdout, b"/tmp\n")


if __name__ == "__main__":
    tap.main()
