# SPDX-License-Identifier: MIT
"""Jobs: commands that are talked to while they run, templates, and what of the policy only they show."""

import asyncio
import gc
import os
import pathlib
import re
import signal
import tempfile
import threading
import unittest

import tap
import brig
from brig import _library
from common import GROWING, PATIENCE, has_ended, wait_for

ECHO = ["sh", "-c", "while read -r line; do echo \"heard $line\"; done; echo end >&2"]
PIPES = {"stdin": brig.PIPE, "stdout": brig.PIPE, "stderr": brig.PIPE}


def open_fds():
    return sorted(os.listdir("/proc/self/fd"))


class Streams(unittest.TestCase):
    def test_lines_are_read_while_it_runs(self):
        with brig.start(ECHO, text=True, **PIPES) as job:
            for word in ("one", "two"):
                job.stdin.write(word + "\n")
                self.assertEqual(job.stdout.readline(), f"heard {word}\n")
                self.assertIsNone(job.poll())
            job.stdin.close()
            self.assertEqual(list(job.stdout), [])
            self.assertEqual(job.stderr.read(), "end\n")
            self.assertEqual(job.wait(PATIENCE), 0)
        self.assertEqual((job.returncode, job.result().ok), (0, True))

    def test_bytes(self):
        with brig.start(["cat"], stdin=brig.PIPE, stdout=brig.PIPE) as job:
            job.stdin.write(b"\xff\n")
            job.stdin.flush()
            self.assertEqual(job.stdout.readline(), b"\xff\n")

    def test_communicate_passes_more_than_pipes_hold(self):
        data = bytes(range(256)) * 4000
        job = brig.start(["cat"], stdin=brig.PIPE, stdout=brig.PIPE, max_output=len(data))
        self.assertEqual(job.communicate(data), (data, b""))
        self.assertEqual(job.result().stdout, data)

    def test_communicate_keeps_no_more_than_the_limit(self):
        job = brig.start(["head", "-c", "5000000", "/dev/zero"], stdout=brig.PIPE, max_output=1000)
        out, _ = job.communicate()
        self.assertEqual((len(out), job.result().truncated), (1000, True))

    def test_communicate_goes_on_after_its_timeout(self):
        job = brig.start(ECHO, text=True, **PIPES)
        job.stdin.write("one\n")
        self.assertEqual(job.stdout.readline(), "heard one\n")
        said, saying = os.pipe()
        waiting = brig.start(["sh", "-c", "echo first; echo >&7; sleep 600"], stdout=brig.PIPE, text=True,
                             timeout=None, pass_fds={saying: 7})
        with self.assertRaises(brig.TimeoutExpired):
            waiting.communicate(timeout=0.05)
        self.assertEqual(os.read(said, 1), b"\n")
        for fd in said, saying:
            os.close(fd)
        waiting.kill()
        self.assertEqual(waiting.communicate(timeout=PATIENCE), ("first\n", ""))
        self.assertEqual(job.communicate("two\n", PATIENCE), ("heard two\n", "end\n"))

    def test_input_that_nobody_reads(self):
        job = brig.start(["true"], stdin=brig.PIPE)
        self.assertEqual(job.communicate(bytes(1 << 20)), (b"", b""))

    def test_stderr_in_the_pipe_of_stdout(self):
        job = brig.start(["sh", "-c", "echo a; echo b >&2"], stdout=brig.PIPE, stderr=brig.STDOUT, text=True)
        self.assertEqual(job.communicate(), ("a\nb\n", ""))

    def test_a_file_and_an_fd(self):
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as taken:
            given.write(b"from a file")
            given.seek(0)
            self.assertEqual(brig.start(["cat"], stdin=given, stdout=taken.fileno()).wait(), 0)
            taken.seek(0)
            self.assertEqual(taken.read(), b"from a file")

    def test_fds_are_passed(self):
        reading, writing = os.pipe()
        try:
            self.assertEqual(brig.start(["sh", "-c", "echo x >&9"], pass_fds={writing: 9}).wait(), 0)
            self.assertEqual(os.read(reading, 10), b"x\n")
        finally:
            os.close(reading)
            os.close(writing)

    def test_what_is_not_a_pipe_says_how_to_get_one(self):
        with brig.start(["true"]) as job:
            for name in ("stdin", "stdout", "stderr"):
                with self.assertRaisesRegex(ValueError, f"{name}=brig.PIPE"):
                    getattr(job, name)
            with self.assertRaisesRegex(ValueError, "pty=True"):
                job.terminal

    def test_wrong_streams_are_named(self):
        for error, words, options in (
            (ValueError, "stdout=-7", {"stdout": -7}), (ValueError, "stdout=-2", {"stdout": brig.STDOUT}),
            (ValueError, "pty", {"pty": True, "stdout": brig.PIPE}), (TypeError, "stdinn", {"stdinn": brig.PIPE}),
            (ValueError, "needs text", {"encoding": "latin-1"}),
        ):
            with self.assertRaisesRegex(error, words):
                brig.start(["true"], **options)

    def test_no_fd_is_left_behind(self):
        def once():
            with brig.start(ECHO, **PIPES) as job:
                job.communicate(b"x\n")
            with self.assertRaises(brig.SetupError):
                brig.start(["nonesuch"], stdout=brig.PIPE, stderr=brig.STDOUT)

        once()
        gc.collect()
        before = open_fds()
        for _ in range(5):
            once()
        gc.collect()
        self.assertEqual(open_fds(), before)


class Terminals(unittest.TestCase):
    def test_a_terminal_is_typed_into_and_resized(self):
        script = "stty size; read -r word; stty size; echo \"heard $word\"; test -t 1"
        with brig.start(["sh", "-c", script], pty=True, text=True) as job:
            self.assertEqual(job.terminal.readline(), "24 80\n")
            job.resize(40, 100)
            job.terminal.write("hello\n")
            self.assertEqual(list(job.terminal), ["hello\n", "40 100\n", "heard hello\n"])
            self.assertEqual(job.wait(PATIENCE), 0)
        with self.assertRaises(ValueError):
            job.resize(1, 1)

    def test_bytes_of_a_terminal(self):
        with brig.start(["sh", "-c", "echo x"], pty=True) as job:
            self.assertEqual(job.terminal.readline(), b"x\r\n")
            self.assertEqual(job.terminal.read(10), b"")

    def test_a_command_with_the_programs_terminal_prints_there(self):
        terminal, side = os.openpty()
        pid = os.fork()
        if pid == 0:
            os.dup2(side, 1)
            os._exit(0 if brig.run(["echo", "on a terminal"], capture=False).ok else 1)
        os.close(side)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertIn(b"on a terminal", os.read(terminal, 1000))
        os.close(terminal)


class Endings(unittest.TestCase):
    def test_signals_and_cancelling(self):
        ready = "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done"
        with brig.start(["sh", "-c", ready], stdout=brig.PIPE, stderr=brig.DEVNULL) as job:
            job.stdout.readline()
            job.send_signal(signal.SIGUSR1)
            self.assertEqual(job.wait(PATIENCE), 7)
        for end, outcome, code in (("kill", "signalled", -9), ("terminate", "signalled", -15), ("cancel", "cancelled", -9)):
            job = brig.start(["sleep", "600"], timeout=None)
            getattr(job, end)()
            self.assertEqual((job.wait(PATIENCE), job.result().outcome), (code, outcome))
            getattr(job, end)()  # nothing happens

    def test_the_limit_holds_although_nobody_waits(self):
        for seconds in GROWING:
            job = brig.start(["sh", "-c", "echo x; sleep 600"], stdout=brig.PIPE, timeout=seconds)
            said = job.stdout.read()  # ends with the command
            if said:
                break
        self.assertEqual(said, b"x\n")
        wait_for(lambda: job.poll() is not None)
        self.assertEqual(job.result().outcome, "timeout")
        with self.assertRaises(brig.TimeoutError) as caught:
            job.wait()
        self.assertNotIsInstance(caught.exception, brig.TimeoutExpired)
        self.assertEqual(caught.exception.result.outcome, "timeout")

    def test_waiting_in_vain_leaves_it_running(self):
        with brig.start(["cat"], stdin=brig.PIPE) as job:
            with self.assertRaises(brig.TimeoutExpired):
                job.wait(0.05)
            self.assertIsNone(job.returncode)
        self.assertEqual(job.returncode, 0)

    def test_an_exception_and_forgetting_end_the_command(self):
        with self.assertRaises(KeyError):
            with brig.start(["sleep", "600"], timeout=None) as job:
                pid = job.pid
                raise KeyError
        wait_for(lambda: has_ended(pid))
        job = brig.start(["sleep", "600"], timeout=None)
        pid = job.pid
        del job
        wait_for(lambda: gc.collect() is not None and has_ended(pid))

    def test_a_forked_child_ends_nothing(self):
        with brig.start(["cat"], stdin=brig.PIPE, stdout=brig.PIPE, text=True) as job:
            pid = os.fork()
            if pid == 0:
                try:
                    job.kill()
                except ValueError:
                    pass
                job.__del__()
                os._exit(0)
            os.waitpid(pid, 0)
            self.assertEqual(job.communicate("still here\n")[0], "still here\n")

    def test_many_threads_signal_and_wait_for_one_job(self):
        with brig.start(["cat"], stdin=brig.PIPE, timeout=PATIENCE) as job:
            codes = []
            threads = [threading.Thread(target=lambda: codes.append(job.wait())) for _ in range(8)]
            threads += [threading.Thread(target=job.send_signal, args=(signal.SIGCONT,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            job.stdin.close()
            for thread in threads:
                thread.join()
        self.assertEqual(codes, [0] * 8)


class Templates(unittest.TestCase):
    def test_many_threads_use_one(self):
        with brig.Template(timeout=PATIENCE) as template:
            found = []
            threads = [
                threading.Thread(target=lambda n=n: found.append(template.run(["echo", str(n)], text=True).stdout))
                for n in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(found), [f"{n}\n" for n in range(8)])
            job = template.start(["cat"], stdin=brig.PIPE, stdout=brig.PIPE)
        self.assertEqual(job.communicate(b"x"), (b"x", b""))  # it goes on
        with self.assertRaisesRegex(ValueError, "the template is closed"):
            template.run(["true"])

    def test_its_limits_and_grants_hold(self):
        with brig.Template(timeout=0.3) as template, self.assertRaises(brig.TimeoutError):
            template.run(["sleep", "600"])
        with tempfile.TemporaryDirectory() as scratch, brig.Template(fs_read_allow=[scratch]) as template:
            self.assertTrue(template.run(["ls", scratch]).ok)
            self.assertFalse(template.run(["touch", scratch + "/x"]).ok)

    def test_options_of_a_jail_are_not_those_of_a_command(self):
        with brig.Template() as template:
            with self.assertRaisesRegex(TypeError, "timeout"):
                template.run(["true"], timeout=3)


class Policies(unittest.TestCase):
    def test_private_directories_files_and_what_is_kept(self):
        policy = brig.Policy().private("/work").file("/work/in", "given\n", 0o600).keep("/work")
        script = "mkdir -p d; cat in > d/out; ln -s /etc/passwd link; mkfifo pipe"
        with brig.start(["sh", "-c", script], policy=policy, cwd="/work") as job:
            self.assertEqual(job.wait(), 0)
        self.assertEqual(job.kept_file("d/out"), b"given\n")
        with self.assertRaises(ValueError):
            job.kept_file("d/out", max_bytes=3)
        for wrong in ("pipe", "../etc", "", "d"):
            with self.assertRaises((ValueError, OSError)):
                job.kept_file(wrong)
        for missing in ("link", "link/x", "none"):
            with self.assertRaises(OSError):
                job.kept_file(missing)

    def test_read_only_private_directory(self):
        policy = brig.Policy().private("/ro", "read-only").file("/ro/x", b"y")
        self.assertEqual(brig.run(["cat", "/ro/x"], policy=policy).stdout, b"y")
        self.assertFalse(brig.run(["touch", "/ro/z"], policy=policy).ok)

    def test_ungrant_counts(self):
        policy = brig.Policy().grant("/srv", "read-only", optional=True)
        self.assertEqual((policy.ungrant("/srv"), policy.ungrant("/srv")), (1, 0))
        self.assertEqual(policy.to_dict()["grants"], [])

    def test_identity_hostname_and_terminal(self):
        policy = brig.Policy().identity(name="agent", inside_uid=1234, home="/home/agent").hostname("cell").terminal("none")
        done = brig.run(["sh", "-c", "id -u; uname -n; echo $HOME"], policy=policy, text=True)
        self.assertEqual(done.stdout, "1234\ncell\n/home/agent\n")
        with self.assertRaisesRegex(ValueError, "inside_uid=-3"):
            policy.identity(inside_uid=-3)

    def test_the_rest_of_the_policy_is_taken_by_the_library(self):
        policy = (
            brig.Policy("strict").network("allow").publish("18080:80").proxy_env().allow_nested().unix_sockets()
            .net_proxy("proxy.example:3128", "Basic x", [".local"]).origin("a test").seccomp("dev").trace()
            .inject("api.example.com", header="authorization", value="Bearer secret", variable="API_URL",
                    suffix="/v1", methods=["GET"], paths=["/v1/"], strip=["x-key"], site="api.localhost")
            .limit(net_connections=3, net_bytes=1000, net_idle_ms=5).disable("nested").view("empty")
            .broker("/usr/lib/brig-broker").setenv({"A-B": "x"}, C=None).unsetenv("D*")
        )
        found = policy.to_dict()
        self.assertEqual((found["network"], found["view"], found["seccomp"]), ("allow", "empty", "dev"))
        self.assertEqual(found["limits"]["net_idle_ms"], 5)
        self.assertEqual((len(found["inject"]), len(found["publish"])), (1, 1))
        self.assertNotIn("secret", policy.explain())
        self.assertEqual(policy.copy().to_dict(), found)

    def test_structures_have_the_members_of_the_headers(self):
        include = pathlib.Path(__file__).resolve().parents[3] / "include/brig"
        text = "".join((include / name).read_text() for name in ("brig.h", "call.h"))
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        for name, structure in (
            ("error", _library.BrigError), ("call_options", _library.CallOptions), ("call_failure", _library.CallFailure),
            ("stdio", _library.Stdio), ("pass_fd", _library.PassFd), ("command", _library.Command),
            ("identity", _library.Identity), ("inject", _library.Inject),
        ):
            body = re.search(r"struct brig_%s \{(.*?)\n\};" % name, text, re.DOTALL).group(1)
            # The last word of what stands before each comma or semicolon.
            wanted = re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", body)
            self.assertEqual([field[0] for field in structure._fields_], wanted, name)

    def test_wrong_values_are_named(self):
        policy = brig.Policy()
        for error, words, change in (
            (ValueError, "is not a valid site", lambda: policy.inject("a.b", header="h", value="v", site="a.b")),
            (TypeError, "methods is a list", lambda: policy.inject("a.b", header="h", value="v", methods="GET")),
            (ValueError, "layer='all'", lambda: policy.disable("all")),
            (ValueError, "terminal='x'", lambda: policy.terminal("x")),
            (ValueError, "NUL", lambda: policy.hostname("a\0b")),
            (ValueError, "processes=True", lambda: policy.limit(processes=True)),
        ):
            with self.assertRaisesRegex(error, words):
                change()

    def test_on_unsupported_of_the_policy_is_not_overruled(self):
        policy = brig.Policy().on_unsupported("ignore")
        job = brig.start(["true"], policy=policy)
        self.assertEqual(job.wait(), 0)
        self.assertEqual(policy.to_dict()["on_unsupported"], "ignore")


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_lines_are_read_while_it_runs(self):
        async with await brig.start_async(ECHO, text=True, **PIPES) as job:
            job.stdin.write("é\n")
            await job.stdin.drain()
            self.assertEqual(await job.stdout.readline(), "heard é\n")
            job.stdin.write("two\n")
            job.stdin.close()
            self.assertEqual([line async for line in job.stdout], ["heard two\n"])
            self.assertEqual(await job.stderr.read(), "end\n")
            self.assertEqual(await job.wait(), 0)

    async def test_communicate_and_its_limit(self):
        job = await brig.start_async(["cat"], stdin=brig.PIPE, stdout=brig.PIPE, max_output=1000)
        out, _ = await job.communicate(bytes(1 << 20))
        self.assertEqual((len(out), (await job.result()).truncated), (1000, True))

    async def test_a_terminal(self):
        async with await brig.start_async(["sh", "-c", "stty size; read x; stty size"], pty=True) as job:
            self.assertEqual(await job.stdout.readline(), b"24 80\r\n")
            job.resize(10, 20)
            job.stdin.write(b"\n")
            self.assertEqual([line async for line in job.stdout], [b"\r\n", b"10 20\r\n"])

    async def test_timeouts_follow_the_same_rule(self):
        job = await brig.start_async(["sleep", "600"], timeout=0.5)
        with self.assertRaises(brig.TimeoutExpired):
            await job.wait(0.01)
        with self.assertRaises(brig.TimeoutError) as caught:
            await job.wait()
        self.assertEqual(caught.exception.result.outcome, "timeout")
        self.assertEqual((await job.result()).outcome, "timeout")

    async def test_a_line_that_never_ends_comes_in_pieces(self):
        job = await brig.start_async(["head", "-c", "3000000", "/dev/zero"], stdout=brig.PIPE)
        sizes = [len(piece) async for piece in job.stdout]
        self.assertEqual(sum(sizes), 3000000)
        self.assertGreater(len(sizes), 1)

    async def test_closing_and_exceptions_end_it(self):
        with self.assertRaises(KeyError):
            async with await brig.start_async(["sleep", "600"], timeout=None) as job:
                pid = job.pid
                raise KeyError
        self.assertTrue(has_ended(pid))

    async def test_templates(self):
        with brig.Template(timeout=PATIENCE) as template:
            done = await asyncio.gather(*(template.run_async(["echo", str(n)]) for n in range(4)))
            self.assertEqual([each.stdout for each in done], [b"0\n", b"1\n", b"2\n", b"3\n"])
            job = await template.start_async(["echo", "x"], stdout=brig.PIPE)
            self.assertEqual(await job.communicate(), (b"x\n", b""))


if __name__ == "__main__":
    tap.main()
