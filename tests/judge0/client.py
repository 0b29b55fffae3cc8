# SPDX-License-Identifier: MIT
"""Judge0's client library for Python with a brigd at $JUDGE0_URL, whose key is $JUDGE0_KEY. Prints TAP."""
import os
import sys
import traceback

import judge0
from judge0 import Filesystem, File, LanguageAlias, Status, Submission, TestCase

URL, KEY = os.environ["JUDGE0_URL"], os.environ["JUDGE0_KEY"]
tests = []


def test(function):
    tests.append(function)
    return function


@test
def the_client_takes_the_server(client):
    assert client.version == "1.13.1" and client.is_language_supported(LanguageAlias.PYTHON)
    assert client.get_language(71).name.startswith("Python ("), client.get_language(71)
    assert len(client.get_statuses()) == 14 and client.config.max_submission_batch_size == 20


@test
def a_program_is_run(client):
    result = judge0.run(client=client, source_code="print(f'hello, {input()}!')", stdin="you", language=judge0.PYTHON)
    assert result.stdout == "hello, you!\n" and result.status == Status.ACCEPTED and result.time >= 0, result


@test
def test_cases_are_judged(client):
    cases = [TestCase("1", "2"), TestCase("2", "3"), TestCase("3", "0")]
    results = judge0.run(client=client, source_code="print(int(input()) + 1)", test_cases=cases, language=judge0.PYTHON)
    assert [result.status for result in results] == [Status.ACCEPTED, Status.ACCEPTED, Status.WRONG_ANSWER], results


@test
def many_programs_are_run_in_batches(client):
    submissions = [Submission(source_code=f"echo {i}", language=judge0.BASH) for i in range(45)]
    results = judge0.run(client=client, submissions=submissions)
    assert [result.stdout for result in results] == [f"{i}\n" for i in range(45)], results


@test
def errors_of_programs_are_told(client):
    result = judge0.run(client=client, source_code="int main(void) { return x; }", language=judge0.C)
    assert result.status == Status.COMPILATION_ERROR and "undeclared" in result.compile_output, result
    result = judge0.run(client=client, source_code="kill -11 $$", language=judge0.BASH)
    assert result.status == Status.RUNTIME_ERROR_SIGSEGV and result.exit_signal == 11, result
    result = judge0.run(client=client, source_code="sleep 9", wall_time_limit=1, language=judge0.BASH)
    assert result.status == Status.TIME_LIMIT_EXCEEDED, result


@test
def files_are_given(client):
    files = Filesystem(content=[File(name="more/a.txt", content="text"), File(name="b.bin", content=b"\x00\xff")])
    code = "print(open('more/a.txt').read(), open('b.bin', 'rb').read())"
    result = judge0.run(client=client, source_code=code, additional_files=files, language=judge0.PYTHON)
    assert result.stdout == "text b'\\x00\\xff'\n", result


@test
def bytes_that_are_no_text_are_given(client):
    with open("/bin/echo", "rb") as program:
        result = judge0.run(client=client, source_code=program.read(), command_line_arguments="it runs", language=judge0.EXECUTABLE)
    assert result.stdout == "it runs\n", result


def main():
    client = judge0.Client(URL, {"X-Auth-Token": KEY})
    failed = 0
    for count, function in enumerate(tests, 1):
        try:
            function(client)
            print(f"ok {count} - {function.__name__.replace('_', ' ')}", flush=True)
        except Exception:  # a test's failure, whatever it is
            failed += 1
            print(f"not ok {count} - {function.__name__.replace('_', ' ')}")
            print("".join(f"# {line[:1000]}\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
    print(f"1..{len(tests)}")
    return failed > 0


sys.exit(main())
