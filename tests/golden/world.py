# SPDX-License-Identifier: MIT
"""A fixed world of files, in which `brig --dry-run --plan` says the same on every machine.

The world is a tmpfs that is the root of a mount namespace, in a user namespace with a single id:
uid 0 for the cases of root, uid 1000 for those of a user. Nothing of the machine's own files is in
it but /proc and /dev/null. It needs no privilege; where the tests are run by root, an id that owns
nothing is mapped, so that root and everybody else see the same owners."""

import ctypes
import json
import os
import socket
import stat
import traceback

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2
PR_SET_DUMPABLE = 4
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
NOBODY = 65534
FACTS = "/facts"  # rewritten for each case

libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """The world cannot be made here; says why."""


def call(what, result):
    if result < 0:
        error = ctypes.get_errno()
        raise Unavailable(f"{what}: {os.strerror(error)}")


def mount(source, target, kind, flags):
    call(f"mount {target}", libc.mount(source.encode(), target.encode(), kind.encode(), flags, None))


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- the files ----

PASSWD = """root:x:0:0:root:/root:/bin/bash
ann:x:1000:1000:Ann:/home/ann:/bin/bash
bob:x:1001:1001:Bob:/home/bob:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""

# A path that ends in '/' is a directory; "-> TARGET" is a link; "socket" is one; anything else is the
# content of a file.
SYSTEM = {
    "/bin": "-> usr/bin", "/lib": "-> usr/lib", "/lib64": "-> usr/lib64", "/sbin": "-> usr/sbin",
    "/usr/bin/": "", "/usr/bin/bash": "#", "/usr/bin/sh": "#", "/usr/bin/true": "#",
    "/usr/bin/git": "#", "/usr/bin/newgidmap": "#", "/usr/lib/": "", "/usr/lib64/": "",
    "/usr/sbin/": "", "/usr/local/bin/": "", "/usr/share/zoneinfo/Europe/Berlin": "zone",
    "/etc/passwd": PASSWD, "/etc/group": "root:x:0:\nsudo:x:27:ann\nusers:x:100:\nann:x:1000:\n",
    "/etc/shadow": "root:*:1::::::\n", "/etc/hostname": "host\n", "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/subuid": "ann:100000:65536\nbrig:1800000000:1000000\n", "/etc/subgid": "ann:100000:65536\n",
    "/etc/nsswitch.conf": "passwd: files systemd\nhosts: files mdns4_minimal [NOTFOUND=return] resolve\n",
    "/etc/resolv.conf": "nameserver 192.0.2.53\n", "/etc/localtime": "-> /usr/share/zoneinfo/Europe/Berlin",
    "/etc/ld.so.cache": "cache", "/etc/alternatives/": "", "/etc/ssl/certs/": "",
    "/etc/ssl/openssl.cnf": "openssl_conf = none\n", "/etc/ssl/private/": "",
    "/etc/java-17-openjdk/": "", "/etc/services": "https 443/tcp\n", "/etc/os-release": "-> ../usr/lib/os-release",
    "/usr/lib/os-release": "ID=none\n", "/etc/pip.conf": "secret", "/sys/devices/system/cpu/": "",
    "/dev/null": "", "/dev/zero": "", "/dev/full": "", "/dev/random": "", "/dev/urandom": "",
    "/dev/tty": "", "/dev/shm/": "", "/dev/pts/": "", "/dev/dri/card0": "", "/dev/kvm": "",
    "/proc/": "", "/sys/": "", "/tmp/": "", "/var/tmp/": "", "/var/log/": "", "/var/lib/": "",
    "/var/lib/server.sock": "socket", "/var/mail/ann": "mail", "/run/user/1000/": "",
    "/run/user/1000/bus": "socket", "/run/user/1000/wayland-0": "socket",
    "/run/user/1000/agent.sock": "socket", "/run/docker.sock": "socket",
    "/run/user/1000/pulse/native": "socket", "/tmp/.X11-unix/X0": "socket",
    "/media/": "", "/mnt/": "", "/data/notes": "", "/work/": "", "/again/": "",
    "/opt/tool/bin/tool": "#", "/srv/shared/data.txt": "data",
    "/srv/shared/sub/more.txt": "more", "/srv/link": "-> shared", "/srv/other-system/etc/": "",
    "/srv/other-system/usr/bin/sh": "#", "/srv/other-system/tmp/": "", "/srv/other-system/proc/": "",
    "/srv/other-system/dev/": "", "/srv/other-system/run/": "", "/srv/other-system/bin": "-> usr/bin",
    "/srv/other-system/etc/passwd": PASSWD, "/srv/other-system/etc/resolv.conf": "",
    "/srv/other-system/etc/hosts": "", "/srv/other-system/home/ann/project/": "",
    "/srv/other-system/root/project/": "", "/srv/other-system/var/tmp/": "",
}

# In the home directory of whoever runs brig, and in that of another user.
HOME = {
    ".bashrc": "#", ".profile": "#", ".netrc": "machine", ".npmrc": "token", ".ssh/id_ed25519": "key",
    ".ssh/config": "Host", ".ssh/known_hosts": "host", ".gnupg/secring": "key", ".aws/credentials": "key",
    ".config/gh/hosts.yml": "token", ".config/git/config": "[user]\n", ".config/app/settings": "x",
    ".config/brig/": "", ".cache/pip/": "", ".local/share/brig/": "", ".local/bin/tool": "#",
    ".docker": "-> dot/docker", "dot/docker/config.json": "auth", "dot/vimrc": "x",
    "Documents/letter.txt": "letter", "Documents/secret.txt": "secret", "notes.md": "notes",
    "src/shared/lib.c": "int x;", "with:colon/x": "x",
    "project/main.c": "int main;", "project/.env": "TOKEN=1", "project/secret.txt": "secret",
    "project/data/a.key": "a", "project/data/b.key": "b", "project/data/c.txt": "c",
    "project/sub/deep/token": "t", "project/sub/deep/file.txt": "f", "project/link.env": "-> .env",
    "project/out": "-> ../Documents", "link-to-project": "-> project",
    "repo/src/main.c": "int main;", "repo/.env": "TOKEN=1", "repo/.vscode/settings.json": "{}",
    "repo/.envrc": "#", "repo/.claude/settings.json": "{}", "repo/.git/HEAD": "ref: refs/heads/main\n",
    "repo/.git/config": "[core]\n\trepositoryformatversion = 0\n", "repo/.git/hooks/pre-commit": "#",
    "repo/.git/info/exclude": "", "repo/.git/objects/pack/": "", "repo/.git/refs/heads/main": "0\n",
    "repo/.git/worktrees/wt/HEAD": "ref: refs/heads/wt\n", "repo/.git/worktrees/wt/commondir": "../..\n",
    "repo/.git/worktrees/wt/gitdir": "@HOME@/wt/.git\n", "wt/.git": "gitdir: @HOME@/repo/.git/worktrees/wt\n",
    "wt/main.c": "int main;", "stranger/.git": "gitdir: /srv/shared\n", "stranger/x": "x",
    "hooked/.git/HEAD": "ref: refs/heads/main\n", "hooked/.git/config": "[core]\n\thooksPath = tools/hooks\n",
    "hooked/.git/objects/": "", "hooked/.git/refs/": "", "hooked/tools/hooks/pre-commit": "#",
    "configured/main.c": "int main;", "configured/.env": "TOKEN=1", "configured/ro/x": "x",
    "configured/.brig.conf": "mask .env\nrdir ro\nunsetenv PROJECT_*\nmemory 1G\nnet none\n",
    "bare.git/HEAD": "ref: refs/heads/main\n", "bare.git/config": "[core]\n\tbare = true\n",
    "bare.git/objects/": "", "bare.git/refs/": "",
}

# Configurations, chosen by the variable BRIG_CONFIG_DIR.
CONFIGS = {
    "/etc/conf-a/default.conf": "conf .defaults\nmask Documents\nunmask .npmrc\nrdir? src/shared\n"
                                "setenv EDITOR=vi\nunsetenv COMPANY_*\nmemory 2G\npids 500\n",
    "/etc/conf-a/.defaults": "mask? .netrc\nscript? .brigrc\n",
    "/etc/conf-a/.brigrc": "export FROM_SCRIPT=1\n",
    "/etc/conf-a/claude.conf": "conf default\nmode strict\nnet allow\nallow @anthropic\ndir! .claude-work\n",
    "/etc/conf-b/default.conf": "jail work\n", "/etc/conf-b/storage": "",
    "/etc/conf-c/default.conf": "mode bare\nnet none\ncommand exec \"$0\" \"$@\"\n",
}

MODES = {
    "/tmp": 0o1777, "/var/tmp": 0o1777, "/dev/shm": 0o1777, "/etc/shadow": 0o600, "/etc/ssl/private": 0o710,
    "/run/user/1000": 0o700,
}


def make(root, path, content):
    place = root + path.rstrip("/")
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if path.endswith("/"):
        os.makedirs(place, exist_ok=True)
    elif content.startswith("-> "):
        os.symlink(content[3:], place)
    elif content != "socket":
        write(place, content)
        if content == "#":
            os.chmod(place, 0o755)


def listen(path):
    """The kernel lists a socket by the path it was bound to, while it is open."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    return listener


def build(root):
    """Fills the tmpfs, but for sockets."""
    for path, content in {**SYSTEM, **CONFIGS}.items():
        make(root, path, content)
    for home in ("/root", "/home/ann", "/home/bob"):
        for path, content in HOME.items():
            make(root, f"{home}/{path}", content.replace("@HOME@", home))
    for path, mode in MODES.items():
        os.chmod(root + path, mode)


# ---- entering it ----

def map_ids(pid, inside):
    """Maps one id. Root maps an id that owns nothing; others can only map their own."""
    outside = (NOBODY, NOBODY) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    if os.geteuid() != 0:
        write(f"/proc/{pid}/setgroups", "deny")
    write(f"/proc/{pid}/uid_map", f"{inside} {outside[0]} 1\n")
    write(f"/proc/{pid}/gid_map", f"{inside} {outside[1]} 1\n")


def enter(programs):
    """In the child: makes the world, its root, and puts the programs {path: bytes} into it."""
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    root = "/tmp"
    mount("golden", root, "tmpfs", 0)
    os.umask(0o022)
    build(root)
    mount("/proc", root + "/proc", "", MS_BIND | MS_REC)
    mount("/dev/null", root + "/dev/null", "", MS_BIND)
    for path, content in programs.items():
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with open(root + path, "wb") as file:
            file.write(content)
        os.chmod(root + path, 0o755)
    os.chdir(root)
    call("pivot_root", libc.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."))
    call("umount", libc.umount2(b".", MNT_DETACH))
    os.chdir("/")
    return [listen(path) for path, content in SYSTEM.items() if content == "socket"]


def listing():
    """Every path of the world with its kind, mode and time, to see that nothing was changed."""
    lines = []
    for top, directories, files in os.walk("/"):
        if top == "/":
            directories.remove("proc")
        for name in directories + files:
            path = os.path.join(top, name)
            if path == FACTS:
                continue
            info = os.lstat(path)
            time = 0 if stat.S_ISDIR(info.st_mode) else info.st_mtime_ns  # a case may hide a file for itself
            lines.append(f"{path} {stat.filemode(info.st_mode)} {info.st_size} {time}")
    return sorted(lines)


class World:
    """A process in a new world, which runs work() as the uid `inside`; several can run side by side. `real`
    is for root alone: there is no user namespace around it."""

    def __init__(self, inside, programs, work, real=False):
        ready, go, answer = os.pipe(), os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.run(inside, programs, work, real, ready[1], go[0], answer[1])
        for fd in (ready[1], go[0], answer[1]):
            os.close(fd)
        self.answer = answer[0]
        self.problem = ""
        if os.read(ready[0], 1):
            try:
                if not real:
                    map_ids(self.pid, inside)
            except OSError as error:
                self.problem = f"cannot map ids: {error}; "
            os.write(go[1], b"1")
        os.close(ready[0])
        os.close(go[1])

    @staticmethod
    def run(inside, programs, work, real, ready, go, answer):
        try:
            call("unshare", libc.unshare((0 if real else CLONE_NEWUSER) | CLONE_NEWNS | CLONE_NEWNET))
            os.write(ready, b"1")
            os.read(go, 1)
            if os.getuid() != inside:
                os.setgroups([])
                os.setresgid(inside, inside, inside)
                os.setresuid(inside, inside, inside)
                libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # or our part of /proc is root's
            sockets = enter(programs)
            result = {"value": work()}
            del sockets
        except Unavailable as error:
            result = {"error": str(error)}
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
            result = {"broken": "see above"}
        with os.fdopen(answer, "w") as file:
            json.dump(result, file)
        os._exit(0)

    def result(self):
        """What work() returned, by way of JSON."""
        with os.fdopen(self.answer) as file:
            text = file.read()
        os.waitpid(self.pid, 0)
        result = json.loads(text) if text else {"broken": "it died"}
        if "error" in result:
            raise Unavailable(self.problem + result["error"])
        if "broken" in result:
            raise RuntimeError(f"the process in the world failed: {result['broken']}")
        return result["value"]
