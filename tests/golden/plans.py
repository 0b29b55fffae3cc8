# SPDX-License-Identifier: MIT
"""Plans of many policies, in a fixed world and from recorded facts: see world.py and cases.py."""

import hashlib
import os
import subprocess
from collections import Counter

import cases
import world

HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN_MAX = 24
BRIG = "/usr/bin/brig"
IDS = {"user": 1000, "root": 0}
HOMES = {"user": "/home/ann", "root": "/root"}


def is_static(program):
    """Whether an ELF program needs no dynamic linker, as there is none in the world: no PT_INTERP."""
    offset, size, count = (int.from_bytes(program[at:at + width], "little") for at, width in ((32, 8), (54, 2), (56, 2)))
    return all(int.from_bytes(program[offset + i * size:offset + i * size + 4], "little") != 3 for i in range(count))


# ---- in the world ----

def read_facts(who):
    with open(os.path.join(HERE, "facts", who), encoding="utf-8") as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    return {name: value.strip() for name, value in lines}


def run(words, directory, env):
    """The exit status and what it printed, both streams together."""
    done = subprocess.run(words, cwd=directory, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, pass_fds=(5,), timeout=60, check=False)
    return done.returncode, done.stdout.decode("utf-8", "backslashreplace")


def command_line(mode, who, case, action):
    """The words of a case, its working directory and its environment."""
    _, words, where, more = case
    home = more.get("home", HOMES[who])
    env = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin", "TERM": "xterm", "LANG": "C.UTF-8", "SHELL": "/bin/bash",
           "USER": os.path.basename(home), "NO_COLOR": "1", **more.get("env", {})}
    env = {name: value for name, value in env.items() if value is not None}
    words = [home + word[1:] if word.startswith("~/") or word == "~" else word for word in words]
    line = [BRIG] + action + (["-m", mode] if mode else []) + words
    return line + ["--"] + more.get("command", ["true"]), os.path.join(home, where), env


def work(rows, facts_of, action):
    """All cases, one after the other: [(status, text)], and what has changed in the world."""
    before = world.listing()
    results = []
    os.dup2(os.open("/dev/null", os.O_RDWR), 5)  # for --pass-fd
    for mode, who, case in rows:
        facts = {**facts_of[who], **case[3].get("facts", {})}
        line, directory, env = command_line(mode, who, case, action)
        if "--plan" in action:
            with open(world.FACTS, "w", encoding="utf-8") as file:
                file.writelines(f"{name} {value}\n" for name, value in facts.items())
        hidden = case[3].get("hide")
        if hidden:
            os.rename(hidden, hidden + ".hidden")
        results.append(run(line, directory, env))
        if hidden:
            os.rename(hidden + ".hidden", hidden)
    return results, [line for line in world.listing() if line not in before]


def results_of(build, rows, action):
    """What brig says of all cases, by who."""
    with open(os.path.join(build, "src/cli/brig"), "rb") as file:
        brig = file.read()
    if not is_static(brig):
        raise world.Unavailable("this brig needs a dynamic linker, and the world has none")
    facts_of = {who: read_facts(who) for who in cases.WHO}
    chosen = {who: [row for row in rows if row[1] == who] for who in cases.WHO}
    worlds = {who: world.World(IDS[who], {BRIG: brig}, lambda who=who: work(chosen[who], facts_of, action))
              for who in cases.WHO}
    all_results = {}
    for who, place in worlds.items():
        results, changed = place.result()
        all_results[who] = (list(zip(chosen[who], results)), changed)
    return all_results


# ---- as text ----

def sections_of(text):
    """[(heading, [lines])] of what --plan prints; what is before the first heading is a message."""
    found = [("message", [])]
    for line in text.splitlines():
        if line.startswith(" "):
            found[-1][1].append(line)
        elif line.endswith(":") and not line.startswith("brig:"):
            found.append((line[:-1], []))
        else:
            found[0][1].append("  " + line)
    return [(heading, lines) for heading, lines in found if lines or heading != "message"]


def difference(base, sections):
    """What is not as in the base case: lines that it has and this one has not, and the other way round."""
    out = []
    before, after = dict(base), dict(sections)
    for heading in list(after) + [heading for heading in before if heading not in after]:
        old, new = Counter(before.get(heading, [])), Counter(after.get(heading, []))
        gone, come = old - new, new - old
        if not gone and not come and heading in before and heading in after:
            continue
        out.append(f"{heading}:")
        for mark, lines, which in (("-", before.get(heading, []), gone), ("+", after.get(heading, []), come)):
            for line in lines:
                if which[line] > 0:
                    which[line] -= 1
                    out.append(mark + line[1:])
    return out


def shortened(lines):
    """Hundreds of default masks in a row say no more than their number and a digest of them."""
    out = []
    for line in lines:
        hidden = line.startswith("+") and line.endswith(" hidden")
        if hidden and out and isinstance(out[-1], list):
            out[-1].append(line)
        else:
            out.append([line] if hidden else line)
    for item in out:
        if isinstance(item, str):
            yield item
        elif len(item) <= HIDDEN_MAX:
            yield from item
        else:
            digest = hashlib.sha256("\n".join(item).encode()).hexdigest()[:16]
            yield from item[:2]
            yield f"+ … {len(item) - 2} more that are hidden, digest {digest}"


def shell_words(words):
    return " ".join(word if word and all(c.isalnum() or c in "-_./:=@,?!~" for c in word) else repr(word)
                    for word in words)


def title(mode, case):
    name, words, where, more = case
    line = [f"cd ~/{where};"] if where else []
    line += [f"{key}={value}" for key, value in more.get("env", {}).items()]
    line += ["brig"] + (["-m", mode] if mode else []) + [shell_words(words)] * bool(words)
    line += ["--", shell_words(more.get("command", ["true"]))]
    if "facts" in more:
        line.append("(facts: " + ", ".join(f"{key} {value}" for key, value in more["facts"].items()) + ")")
    if "hide" in more:
        line.append(f"(without {more['hide']})")
    return f"=== {name}\n    {' '.join(line)}\n"


def render(rows):
    """Base cases in full, the others as differences to that for the same working directory."""
    parts, bases = [], {}
    for (mode, _, case), (status, text) in rows:
        sections = sections_of(text)
        name, where = case[0], case[2]
        base, like = bases.get(where, bases.get("", (None, None)))
        body = title(mode, case)
        if status != 0:
            body += f"fails with {status}\n" + "".join(line[2:] + "\n" for _, lines in sections for line in lines)
        elif base is None:
            body += "".join(f"{heading}:\n" + "".join(line + "\n" for line in lines) for heading, lines in sections)
        else:
            lines = list(shortened(difference(base, sections)))
            body += "".join(line + "\n" for line in [f"differs from {like}"] + lines) if lines else f"as {like}\n"
        if status == 0 and where not in bases:
            bases[where] = (sections, name)
        parts.append((name, body + "\n"))
    return parts


def check(report, build):
    rows = list(cases.all_cases())
    try:
        results = results_of(build, rows, ["--dry-run", "--plan", "--facts", world.FACTS])
    except world.Unavailable as error:
        report.skip("plans", str(error))
        return
    for who, (found, changed) in results.items():
        for mode in cases.MODES + (None,):
            name = f"{mode or 'configured'}-{who}"
            report.check(f"plan {name}", f"plans/{name}.txt", render([row for row in found if row[0][0] == mode]))
        report.line(not changed, f"plans of {who} change nothing in the world")
        for line in changed:
            print(f"# {line}")
