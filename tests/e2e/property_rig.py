# SPDX-License-Identifier: MIT
"""What suites with random scripts share: a project with storage of its own, scripts that change it, comparisons."""

import hashlib
import os
import pwd
import random
import re
import shlex
import shutil
import stat
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BRIG = os.path.join(os.environ.get("BUILD_DIR", os.path.join(ROOT, "build")), "src/cli/brig")
USER = pwd.getpwnam(os.environ["BRIG_TEST_USER"]) if os.geteuid() == 0 and os.environ.get("BRIG_TEST_USER") else None
THOROUGH = os.environ.get("BRIG_THOROUGH") == "1"
SECONDS = 120 * int(os.environ.get("BRIG_SLOW") or 1)
NAMES = ["a", "b", "c d", "e'f", "-g", "h\ni", "\u00fc", ".j", "k.txt", "l" * 200, "*", "\\m", "#n"]


class Failure(Exception):
    pass


class Place:
    """A directory with a project, and storage of its own."""

    def __init__(self, seed, above=None, far=None):
        self.random = random.Random(seed)
        self.user = USER if seed % 2 == 0 else None
        self.top = tempfile.mkdtemp(prefix="property-", dir=above)
        if self.user:
            os.chown(self.top, self.user.pw_uid, self.user.pw_gid)
        # Far from the storage, files are copied, not renamed.
        self.far = tempfile.mkdtemp(prefix="property-", dir=far) if far else self.top
        if self.user:
            os.chown(self.far, self.user.pw_uid, self.user.pw_gid)
        self.project = os.path.join(self.far, "p")
        self.plain = os.path.join(self.top, "plain")
        self.environment = {
            "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": self.top, "XDG_DATA_HOME": self.top + "/data",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a",
            "GIT_AUTHOR_DATE": "@1700000000 +0000", "GIT_COMMITTER_DATE": "@1700000000 +0000",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.log = []

    def run(self, *words, cwd=None, codes=(0,)):
        """Runs a command as the user of this place: its exit status and output."""
        drop = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        done = subprocess.run(words, cwd=cwd or self.project, env=self.environment, stdin=subprocess.DEVNULL, umask=0o022,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False, **drop)
        text = done.stdout.decode(errors="backslashreplace")
        self.log.append(f"$ {shlex.join(words)}  # {done.returncode}\n{text}")
        if codes and done.returncode not in codes:
            raise Failure(f"{shlex.join(words[1:4])} ended with {done.returncode}")
        return done.returncode, text

    def brig(self, *words, codes=(0,)):
        return self.run(BRIG, *words, codes=codes)

    def jail(self, script, *options):
        """The script in a jail, and in a plain copy of the project."""
        shutil.rmtree(self.plain, ignore_errors=True)
        self.run("cp", "-a", self.project, self.plain, cwd=self.top)
        self.run("sh", "-c", script, cwd=self.plain)
        self.brig("-m", "bare", "-j", "p", *options, "--", "sh", "-c", script)

    def undo(self, number=None):
        """Undoes an operation, or the newest: the number of the undo."""
        _, text = self.brig("undo", "-j", "p", *([number] if number else []))
        found = re.search(r"brig undo -j p (\d+) reverts", text)
        if not found:
            raise Failure("undo names no number")
        return found[1]

    def snapshot(self, top, times=False, skip=(".git",)):
        """Types, modes, contents and targets by path; with times also the mtimes, of all but links, and which
        names are one file."""
        found, same = {}, {}
        if times and "." not in skip:
            found["."] = str(os.lstat(top).st_mtime_ns)
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if folder != top or name not in skip]
            for name in folders + files:
                path = os.path.join(folder, name)
                info = os.lstat(path)
                what = ""
                if stat.S_ISLNK(info.st_mode):
                    what = os.readlink(path)
                elif stat.S_ISREG(info.st_mode):
                    with open(path, "rb") as file:
                        what = hashlib.sha256(file.read()).hexdigest()[:16]
                what += f" {info.st_mtime_ns}" if times and not stat.S_ISLNK(info.st_mode) else ""
                found[os.path.relpath(path, top)] = f"{stat.filemode(info.st_mode)} {what}"
                if times and stat.S_ISREG(info.st_mode):
                    same.setdefault(info.st_ino, []).append(os.path.relpath(path, top))
        for names in same.values():
            for name in names if len(names) > 1 else ():
                found[name] += f" as {min(names)!r}"
        return found

    def expect(self, wanted, what, times=False, skip=(".git",)):
        got = self.snapshot(self.project, times, skip)
        lines = [f"  {path!r}: {wanted.get(path)} wanted, is {got.get(path)}" for path in sorted(wanted.keys() | got.keys())
                 if wanted.get(path) != got.get(path)]
        if lines:
            raise Failure(what + "\n" + "\n".join(lines[:10]))

    # ---- generators ----

    def path(self):
        return "/".join(self.random.choice(NAMES) for _ in range(self.random.choice((1, 1, 2, 2, 3))))

    def operation(self):
        # Root runs these outside, too: no link may lead to a file of the system.
        r = self.random
        one, two = shlex.quote("./" + self.path()), shlex.quote("./" + self.path())
        return r.choice((
            lambda: f"printf %s {r.getrandbits(40)} >{one}",
            lambda: f"seq {r.randrange(1, 3000)} >{one}",
            lambda: f"echo {r.getrandbits(30)} >>{one}",
            lambda: f"[ ! -f {one} ] || sed -i 's/1/{r.randrange(100)}/' {one}",
            lambda: f"mkdir -p {one}",
            lambda: f"mkdir {one} && echo {r.getrandbits(30)} >{one}/a",
            lambda: f"rm -rf {one}",
            lambda: f"mv -T {one} {two}",
            lambda: f"cp -a -T {one} {two}",
            lambda: f"rm -rf {one}; echo {r.getrandbits(20)} >{one}",
            lambda: f"rm -rf {one}; mkdir {one} && echo x >{one}/k.txt",
            lambda: f"ln -sfT {r.choice(('a', '../b', 'none', '/none/x'))} {one}",
            lambda: f"[ -L {one} ] || [ ! -e {one} ] || chmod {r.choice(('700', '755', 'u=rwX,go='))} {one}",
            lambda: f"truncate -s {r.choice((0, 5, 70000))} {one}",
            lambda: f"touch {one}",
        ))()

    def link(self):
        number, two = self.random.randrange(1, 9), shlex.quote("./" + self.path())
        return (f"find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | sed -zn {number}p | "
                f"xargs -0 -r -I ONE ln ONE {two} 2>/dev/null || :\n")

    def operations(self, count):
        return "".join(f"{{ {self.operation()}; }} 2>/dev/null || :\n" for _ in range(count))

    def make(self, git=False):
        script = "mkdir p; cd p || exit 1\n" + self.operations(self.random.randrange(5, 25))
        if git:
            script += "git init -q -b main; git add -A; git commit -q --allow-empty -m first\n"
        self.run("sh", "-c", script, cwd=self.far)

    def git_operation(self):
        r = self.random
        branch, other = (r.choice(("main", "one", "two", "one/a")) for _ in range(2))
        name = r.choice(("x", "y", "z/x"))
        return r.choice((
            lambda: f"mkdir -p z; echo {r.getrandbits(20)} >{name}; git add {name}; git commit -q -m {r.getrandbits(20)}",
            lambda: f"mkdir -p z; echo {r.getrandbits(20)} >{name}; git add {name}",
            lambda: f"mkdir -p z; echo {r.getrandbits(20)} >{name}",
            lambda: f"git branch {branch}", lambda: f"git switch -q {branch}", lambda: f"git switch -q -c {branch}",
            lambda: f"git branch -D {branch}", lambda: f"git branch -m {branch} {other}", lambda: f"git tag t{r.randrange(4)}",
            lambda: "git stash push -q -u", lambda: "git stash pop -q", lambda: "git stash drop -q",
            lambda: f"git reset -q --{r.choice(('soft', 'hard', 'mixed'))} HEAD~", lambda: "git switch -q --detach",
            lambda: f"git merge -q -m merge {branch} || git merge --abort", lambda: f"git rm -q -f {name}",
            lambda: f"git commit -q --amend -m {r.getrandbits(20)}", lambda: "git notes add -m note",
            lambda: f"git rebase -q {branch} || git rebase --abort", lambda: f"git cherry-pick {branch} || git cherry-pick --abort",
        ))()

    # ---- git ----

    def state(self, top):
        """What git says, except for the refs of brig."""
        texts = []
        for words in (["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags", "refs/notes"],
                      ["rev-parse", "--symbolic-full-name", "HEAD"], ["rev-parse", "HEAD"], ["ls-files", "-s", "-v"],
                      ["status", "--porcelain"], ["stash", "list", "--format=%H %gs"], ["fsck", "--no-dangling", "--no-progress"]):
            texts.append(" ".join(words) + "\n" + self.run("git", *words, cwd=top, codes=())[1])
        return "\n".join(texts)

    def refs(self):
        """Names and objects of the project's refs, and the ref or object of its HEAD."""
        _, text = self.run("git", "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/notes")
        refs = {tuple(line.split(" ")) for line in text.splitlines()}
        with open(os.path.join(self.project, ".git/HEAD"), encoding="utf-8") as file:
            refs.add((file.read().strip().removeprefix("ref: "), "HEAD"))
        return refs

    def remove(self):
        self.brig("-u", codes=())
        self.brig("rm", "-f", "p", codes=())
        shutil.rmtree(self.top, ignore_errors=True)
        shutil.rmtree(self.far, ignore_errors=True)
