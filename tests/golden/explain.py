# SPDX-License-Identifier: MIT
"""`brig explain --json` of a part of the cases, in the same world as the plans."""

import hashlib
import json

import cases
import plans
import world

CHOSEN = ("nothing, network default", "project, network default", "repository, network default",
          "repository, network allow", "grant: grants below each other", "grant: the project at another path, too",
          "mask: a file of the project", "mask: a part of a mask shown", "mask: a default mask taken back",
          "protection: of a worktree", "protection: in a project with a file of its own", "network: credentials",
          "network: published ports", "limits: of time", "limits: of memory, processors and processes",
          "walls: nested sandboxes", "environment: patterns", "environment: a jail with a name", "sudo: project")


def is_usual(item):
    """One of the hundreds of defaults, which texts/defaults-brig.txt has, and of no effect in this world."""
    return isinstance(item, dict) and item.get("origin") == "built-in defaults" and not item.get("found")


def flat(text):
    """A line for each value of the object, and for each item of a list: what is compared are lines."""
    at = text.index("{")
    lines = [f"  said: {line}" for line in text[:at].splitlines()]
    for key, value in json.loads(text[at:]).items():
        items = value if isinstance(value, list) else [value]
        usual = [item for item in items if is_usual(item)]
        if usual:
            digest = hashlib.sha256(json.dumps(usual, sort_keys=True).encode()).hexdigest()[:16]
            lines.append(f"  {key}[]: {len(usual)} built-in defaults, digest {digest}")
        lines += [f"  {key}{'[]' if isinstance(value, list) else ''}: "
                  f"{json.dumps(item, sort_keys=True, ensure_ascii=False)}" for item in items if not is_usual(item)]
    return "explain:\n" + "\n".join(lines) + "\n"


def check(report, build):
    rows = [row for row in cases.all_cases() if row[2][0] in CHOSEN or row[0] is None]
    try:
        results = plans.results_of(build, rows, ["explain", "--json"])
    except world.Unavailable as error:
        report.skip("explain", str(error))
        return
    for who, (found, _) in results.items():
        for mode in cases.MODES + (None,):
            name = f"{mode or 'configured'}-{who}"
            chosen = [(row, (status, flat(text) if status == 0 else text))
                      for row, (status, text) in found if row[0] == mode]
            report.check(f"explain {name}", f"explain/{name}.txt", plans.render(chosen))
