# SPDX-License-Identifier: MIT
"""What the test programs in Python share: waiting for an event, the suite's own ordinary user, packages from npm.

A program in a folder of tests/ finds it with
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""
import fcntl
import os
import pwd
import subprocess
import time

SLOW = int(os.environ.get("BRIG_SLOW", "1"))  # how many times slower than elsewhere the machine is
PATIENCE = 60 * SLOW
GROWING = (1, 4, 16, PATIENCE)  # time limits to try, for a command that must have said something before its limit ends it


def wait_for(condition, what="a condition", seconds=PATIENCE):
    """Waits until the condition holds, and gives what it gave. Tests never sleep and hope. The longer it
    waits, the less often it looks: a condition may cost a request."""
    begin = time.monotonic()
    while not (found := condition()):
        waited = time.monotonic() - begin
        assert waited < seconds, f"waited {seconds} s in vain for {what}"
        time.sleep(min(0.01 + waited / 20, 0.05))
    return found


def has_ended(pid):
    """Whether the process is gone, or a zombie that its parent has not waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def user_ids():
    """uid and gid of the ordinary user that belongs to this suite, else of nobody."""
    try:
        entry = pwd.getpwnam(os.environ["BRIG_TEST_USER"])
    except KeyError:
        return 65534, 65534
    return entry.pw_uid, entry.pw_gid


def npm_install(folder, packages):
    """Installs packages of npm into a folder, which suites may share; returns why that failed, or "" """
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "package.json").exists():
            (folder / "package.json").write_text('{"private": true}\n')
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages], cwd=folder,
                              capture_output=True, text=True, timeout=1800, stdin=subprocess.DEVNULL, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or "npm fails"
