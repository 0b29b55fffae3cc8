#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares `brig status --json`, on standard input, with what rsync, git and lstat say about the same trees:
status_views.py OUTSIDE INSIDE PREFIX. OUTSIDE is the user's directory, INSIDE a copy of it made in the jail, and
PREFIX the path of OUTSIDE relative to the root of the layer."""

import json
import os
import stat
import subprocess
import sys

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


def listing(top):
    """Everything in a directory: its path, type, mode and content."""
    found = {}
    for place, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(place, name)
            info = os.lstat(path)
            kind = stat.S_IFMT(info.st_mode)
            content = None
            if kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    content = file.read()
            elif kind == stat.S_IFLNK:
                content = os.readlink(path)
            found[os.path.relpath(path, top)] = (TYPES[kind], stat.S_IMODE(info.st_mode), content)
    return found


def topmost(paths):
    """Without the paths below others."""
    return {path for path in paths if not any(above in paths for above in parents(path))}


def parents(path):
    while path := os.path.dirname(path):
        yield path


def changes_between(before, after):
    """The kind of each change, as status should have it."""
    kinds = {}
    for path in before.keys() - after.keys():
        kinds[path] = "deleted"
    for path in after.keys() - before.keys():
        kinds[path] = "added"
    for path in before.keys() & after.keys():
        if before[path][0] != after[path][0]:
            kinds[path] = "type"
        elif before[path][2] != after[path][2]:
            kinds[path] = "modified"
        elif before[path][1] != after[path][1]:
            kinds[path] = "metadata"
    # What is in a deleted or replaced directory is not listed.
    gone = {path for path, kind in kinds.items() if kind == "deleted"}
    replaced = {path for path, kind in kinds.items() if kind == "type"}
    for path in gone - {path for path in topmost(gone) if not replaced.intersection(parents(path))}:
        del kinds[path]
    return kinds


def rsync_paths(outside, inside):
    """The paths that rsync would transfer, change or delete."""
    out = subprocess.run(["rsync", "-rlpDXcni", "--delete", inside + "/", outside + "/"], check=True,
                         capture_output=True, text=True).stdout
    found, deleted = set(), set()
    for line in out.splitlines():
        action, path = line.split(maxsplit=1)
        path = path.split(" -> ")[0].rstrip("/")
        if path == ".":
            continue
        (deleted if action == "*deleting" else found).add(path)
    replaced = {path for path in found if stat.S_IFMT(os.lstat(os.path.join(inside, path)).st_mode) != stat.S_IFDIR}
    return found | {path for path in topmost(deleted) if not replaced.intersection([path, *parents(path)])}


def git_paths(outside, inside):
    """Files and links that git sees as different; it knows no directories, and only one bit of modes."""
    out = subprocess.run(["git", "-c", "core.quotePath=false", "diff", "--no-index", "--no-renames", "--name-status",
                          "-z", outside, inside], capture_output=True, text=True, check=False).stdout.split("\0")
    found = set()
    for path in out[1::2]:
        for top in outside, inside:
            if path.startswith(top.lstrip("/") + "/") or path.startswith(top + "/"):
                found.add(os.path.relpath("/" + path.lstrip("/"), top))
    return found


def must_equal(what, got, wanted):
    if got != wanted:
        both = (set(got.items()) ^ set(wanted.items())) if isinstance(got, dict) else got ^ wanted
        sys.exit(f"{what}: these differ: {sorted(both)}")


def main():
    outside, inside, prefix = sys.argv[1:]
    report = json.load(sys.stdin)
    items = {}
    for layer in report["layers"]:
        for item in layer["changes"]:
            if item["path"].startswith(prefix + "/"):
                items[os.path.relpath(item["path"], prefix)] = item
    before, after = listing(outside), listing(inside)
    kinds = changes_between(before, after)
    must_equal("kinds", {path: item["kind"] for path, item in items.items()}, kinds)
    must_equal("rsync", rsync_paths(outside, inside), set(kinds))
    for path, item in items.items():
        old, new = before.get(path), after.get(path)
        must_equal("type of " + path, {item["type"]}, {(new or old)[0]})
        must_equal("was of " + path, {item.get("was")}, {old and old[0]})
        modes = [None if mode is None else int(mode, 8) & 0o7777 for mode in item["mode"]]
        must_equal("mode of " + path, set(enumerate(modes)), set(enumerate([one and one[1] for one in (old, new)])))
    files = {path for path, item in items.items() if item["kind"] in ("modified", "added", "type") and
             after[path][0] in ("file", "link")}
    seen = git_paths(outside, inside)
    if not files <= seen:
        sys.exit(f"git: does not see {sorted(files - seen)}")
    print(f"{len(kinds)} changes are the same")


main()
