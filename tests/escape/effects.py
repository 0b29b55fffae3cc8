# SPDX-License-Identifier: MIT
"""How a breach shows on the host. Each function says whether the attempt got through."""

import glob
import os
import stat
import subprocess


def leak(world, run):
    return any(token in run.output for token in world.tokens)


def answer(_world, run):
    return run.status == 0


def _state(path):
    with open(path) as file:
        text = file.read()
    info = os.stat(path)
    return text, stat.S_IMODE(info.st_mode), int(info.st_mtime) == 1, os.listxattr(path)


def victim_file_changed(world, _run):
    path = f"{world.outside}/victim"
    return (not os.path.exists(path) or _state(path) != world.pristine[path]
            or os.path.lexists(f"{world.outside}/created"))


def read_only_changed(world, _run):
    path = f"{world.ro}/file"
    return not os.path.exists(path) or _state(path) != world.pristine[path]


def masked_changed(world, _run):
    try:
        with open(f"{world.work}/project/.env") as file:
            return file.read() != world.file_token + "\n"
    except FileNotFoundError:
        return True


def hook_planted(world, _run):
    try:
        with open(f"{world.work}/project/.tool/hooks/pre-commit") as file:
            return file.read() != "host\n"
    except OSError:
        return False  # moved away as a whole, which is no program that runs


def setuid_planted(world, _run):
    try:
        return bool(os.lstat(f"{world.work}/planted").st_mode & stat.S_ISUID)
    except OSError:
        return False


def device_planted(world, _run):
    try:
        return stat.S_ISBLK(os.lstat(f"{world.work}/planted").st_mode)
    except OSError:
        return False


def victim_dead(world, run):
    if run.status == 0:  # it says so: the end may take a moment
        try:
            world.victim.wait(60)
        except subprocess.TimeoutExpired:
            pass
    return world.victim.poll() is not None


def datagram_arrived(world, _run):
    return world.drain("log")


def packet_arrived(world, _run):
    return world.drain("udp")


def terminal_touched(world, run):
    return run.typed or run.settings_changed


def core_left(world, _run):
    return bool(glob.glob(f"{world.work}/core*"))


def still_alive(world, run):
    """Something holds the lock, or the output, or came back to us as an orphan: says which."""
    if not os.path.exists(f"{world.work}/lock"):
        return False
    if world.lock_is_held():
        return "the lock is held"
    if run.overdue or not run.ended_output:
        return "it did not end" if run.overdue else "the output is open"
    strays = world.strays()
    return f"left behind: {[world.describe(pid) for pid in strays]}" if strays else False


def root_on_host(_world, run):
    return run.seen_root


# ---- while the probe waits ----


def replace_masked(world, _run):
    path = f"{world.work}/project/.env"
    with open(path + ".new", "w") as file:
        file.write(world.file_token + "\n")
    os.replace(path + ".new", path)


def replace_masked_parent(world, _run):
    """As `git checkout` of another branch does with a directory."""
    path = f"{world.work}/project"
    os.rename(path, path + ".old")
    os.mkdir(path)
    with open(f"{path}/.env", "w") as file:
        file.write(world.server_token + "\n")


def reniced(world, _run):
    changed = os.getpriority(os.PRIO_PROCESS, world.victim.pid) != world.victim_nice
    if changed:  # the next attempt gets another
        world.victim.kill()
        world.victim.wait()
    return changed


def _status(pid):
    fields = {}
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            key, _, value = line.partition(":")
            fields[key] = value.split()
    return fields


def look_at_ids(_world, run):
    """Of the processes below the one started: is any of the jail's root on the host?"""
    family, seen = {run.pid}, []
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            status = _status(pid)
        except OSError:
            continue
        ours = int(status["PPid"][0]) in family or pid in family
        if ours:
            family.add(pid)
        if ours and status["Name"][0] in ("attempt", "brig-init"):
            seen.append(status["Uid"])
    run.notes.append(f"ids on the host: {seen}")
    run.seen_root = not seen or any("0" in ids for ids in seen)


def nothing(_world, _run):
    pass


def find(name):
    """The function for an effect or a step of the table."""
    if name.startswith("output:"):
        text = name.partition(":")[2]
        return lambda world, run: text.format(name=world.ipc_name) in run.output
    return globals()[name]
