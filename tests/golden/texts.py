# SPDX-License-Identifier: MIT
"""What programs print of themselves: their options, configuration and symbols."""

import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C", "LC_ALL": "C"}


def output(words, **more):
    return subprocess.run(words, env={**ENV, **more.pop("env", {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=True, text=True, **more).stdout


def option_table():
    """The rows of options.h without their texts for people: id, letter, name, value, kind and group."""
    with open(os.path.join(ROOT, "src/cli/settings/options.h"), encoding="utf-8") as file:
        text = re.sub(r"\s*\\\n\s*", " ", file.read())
    text = text[text.index("#define OPTION_TABLE(X)"):]
    rows = re.findall(r"""X\((\w+), ('.'|0), "([^"]+)", (NULL|"[^"]*"), (\w+), (\w+),""", text)
    return "".join(f"{name:<18} {letter:<4} {ident:<20} {kind:<12} {group:<12} {value}\n"
                   for ident, letter, name, value, kind, group in rows)


def symbols(build):
    """What libbrig exports, each with its version."""
    lines = output(["nm", "-D", "--defined-only", os.path.join(build, "src/libbrig.so")]).splitlines()
    return "".join(sorted(" ".join(line.split()[1:]) + "\n" for line in lines))


REFUSED = (["--plan"], ["--facts", "x"], ["--dry-run", "--facts", "x"], ["--dry-run", "--plan", "--json"],
           ["--dry-run", "--plan", "--facts", "/nonexistent"], ["--dry-run", "--plan", "--facts", "/dev/null"],
           ["--json"], ["-m", "open"], ["--net", "closed"], ["--memory", "0"], ["--no-such-option"])


def refusals(brig):
    """Facts must never be taken for those of a real run; and what else is refused before anything is done."""
    out = ""
    for words in REFUSED:
        done = subprocess.run([brig, "-D", "-m", "sealed"] + words + ["true"], env=ENV, cwd="/", timeout=60, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        out += f"brig {' '.join(words)}: {done.returncode}\n  {done.stdout.strip()}\n"
    return out


def changed_lines(words, env):
    """What variables change in the output: the lines that it does not have without them."""
    before = set(output(words, cwd=HERE).splitlines())
    return "".join(f"{line}\n" for line in output(words, cwd=HERE, env=env).splitlines() if line not in before)


def texts(build):
    """(file, program that must have been built, what it should hold)"""
    brig = os.path.join(build, "src/cli/brig")
    brigd = os.path.join(build, "src/server/brigd")
    brigctl = os.path.join(build, "src/client/brigctl")
    config = [brigd, "-c", "brigd.yaml", "--print-config"]
    variables = {"EXECUTOR_MEMORY_LIMIT_MB": "64", "EXECUTOR_POOL_ENABLED": "false", "SANDBOX_KILL_GRACE_MS": "1500"}
    yield "options.txt", brig, option_table
    yield "refusals.txt", brig, lambda: refusals(brig)
    yield "help-brig.txt", brig, lambda: output([brig, "--help"])
    yield "help-brigd.txt", brigd, lambda: output([brigd, "--help"])
    yield "help-brigctl.txt", brigctl, lambda: output([brigctl, "--help"])
    yield "defaults-brig.txt", brig, lambda: output([brig, "--print-defaults"])
    yield "config-brigd.txt", brigd, lambda: output(config, cwd=HERE)
    yield "config-brigd-variables.txt", brigd, lambda: changed_lines(config, variables)
    yield "libbrig.symbols", os.path.join(build, "src/libbrig.so"), lambda: symbols(build)


def check(report, build):
    for name, program, make in texts(build):
        if not os.path.exists(program):
            report.skip(f"text {name}", f"{os.path.basename(program)} was not built")
            continue
        try:
            text = make()
        except subprocess.CalledProcessError as error:
            report.line(False, f"text {name}")
            print(f"# {error}: {error.stdout.strip()}")
            continue
        report.check(f"text {name}", f"texts/{name}", [("", text)])
