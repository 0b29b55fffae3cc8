# SPDX-License-Identifier: MIT
"""The host side of the attempts: a place with secrets and victims for one of the users, and running
the probe inside and outside a jail there."""

import ctypes
import fcntl
import glob
import os
import re
import secrets
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import termios
import time

SLOW = int(os.environ.get("BRIG_SLOW", "1"))  # how many times slower than elsewhere the machine is
PROBE_DEADLINE_S = 60 * SLOW
TIMEOUT_DEADLINE_S = 20 * SLOW  # for runs that brig itself must end, before the probe would end by itself
LEAKED_FILE, LEAKED_DIR = 200, 201
SETTLE_S = 0.3 * SLOW  # after which a twin is looked at, once it holds its lock
LOOK_S = 0.02  # between two looks at the lock
CLOSED_S = 5 * SLOW  # for what a jail leaves to be gone
KEEP_IN_WORK = ("setuid-copy", "filecaps-copy")
OTHER_UID = 1  # owns what neither root's nor the user's jail may read
SECRET_VARIABLES = ("ESCAPE_SECRET", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_LIBRARY_PATH",
                    "DBUS_SESSION_BUS_ADDRESS", "BASH_ENV", "XDG_RUNTIME_DIR_SECRET")
CAP_DAC_OVERRIDE = 1
PR_SET_CHILD_SUBREAPER = 36


class Run:
    """What became of one run of the probe."""

    def __init__(self):
        self.pid = 0
        self.status = None
        self.output = ""
        self.overdue = False
        self.ended_output = True
        self.typed = self.settings_changed = self.seen_root = False
        self.notes = []


def write(path, text, mode=0o666, owner=None):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    if owner:
        os.chown(path, *owner)


def namespace(name):
    return os.stat(f"/proc/self/ns/{name}").st_ino


def find_disk():
    """The block device the root is on, or any: (number, path or None)."""
    root, found = os.stat("/").st_dev, None
    for entry in os.scandir("/dev"):
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISBLK(info.st_mode) and (found is None or info.st_rdev == root):
            found = info.st_rdev, entry.path
    return found or (os.makedev(7, 0), None)


def first(paths, test=os.path.exists):
    return next((path for path in paths if test(path)), None)


def kernel_version():
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def slower(word, times=1):
    """A time limit among brig's options, as long as this machine needs."""
    return f"{int(word[:-2]) * SLOW * times}ms" if re.fullmatch(r"\d+ms", word) else word


def is_setuid(path):
    return os.path.exists(path) and os.stat(path).st_mode & stat.S_ISUID


class World:
    """`who` starts the jails ("root" or "user"); `uid` and `gid` are the jail's on the host. Made by
    root for both, or by an ordinary user for himself."""

    def __init__(self, base, who, uid, gid, owner, probe):
        self.who, self.uid, self.gid, self.owner = who, uid, gid, owner
        self.base = f"{base}/{who}"
        self.privileged = self.made_by_root = os.geteuid() == 0
        self.secret_groups = []
        self.file_token, self.env_token, self.victim_token, self.server_token, self.root_token = (
            f"TOKEN-{kind}-{secrets.token_hex(12)}" for kind in ("file", "env", "victim", "server", "root"))
        self.tokens = [self.file_token, self.env_token, self.victim_token, self.server_token, self.root_token]
        self.ipc_name = f"brig-escape-{secrets.token_hex(6)}"
        self.ipc_key = secrets.randbelow(1 << 30) + 1000
        self.abi = ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)
        self.pristine, self.victim, self.sockets, self.args = {}, None, {}, {}
        self.victim_nice = 0
        self.group_file = None
        self._make_places(probe)

    # ---- making, with the rights of whoever runs the suite ----

    def _make_places(self, probe):
        for name in ("work", "second", "ro", "bin", "outside", "tree", "elsewhere"):
            path = f"{self.base}/{name}"
            os.makedirs(path)
            setattr(self, name, path)
            os.chmod(path, 0o777 if name in ("work", "second", "ro", "elsewhere") else 0o755)
            if self.privileged:
                os.chown(path, *self.owner)
        self.probe = f"{self.bin}/attempt"
        shutil.copy(probe, self.probe)
        shutil.copy(probe, f"{self.outside}/tool")
        shutil.copy("/bin/echo", f"{self.outside}/echo")
        write(f"{self.outside}/secret", self.file_token + "\n", 0o644)
        for name in ("tmp", "run", "dev", "proc", "var/tmp", "etc", "sys",
                     *(f"{self.base}/{place}".lstrip("/") for place in ("work", "second", "ro", "bin"))):
            os.makedirs(f"{self.tree}/{name}", exist_ok=True)
        for place in ("/tmp", "/dev/shm", "/run" if self.privileged else "/tmp"):
            os.makedirs(f"{place}/{self.ipc_name}.d", exist_ok=True)
            if self.privileged:
                os.chown(f"{place}/{self.ipc_name}.d", self.uid, self.gid)
        self.twin_dir = f"/dev/shm/{self.ipc_name}.d"
        if not self.privileged:
            return
        for path in (self.outside, *glob.glob(f"{self.outside}/*")):
            os.chown(path, self.uid, self.gid)
        write(f"{self.ro}/root-only", self.root_token + "\n", 0o600, (OTHER_UID, OTHER_UID))
        shutil.copy(probe, f"{self.work}/setuid-copy")
        os.chmod(f"{self.work}/setuid-copy", 0o4755)
        shutil.copy(probe, f"{self.work}/filecaps-copy")
        os.chmod(f"{self.work}/filecaps-copy", 0o755)
        os.setxattr(f"{self.work}/filecaps-copy", "security.capability",
                    struct.pack("<5I", 0x02000001, 1 << CAP_DAC_OVERRIDE, 0, 0, 0))
        with open("/etc/shadow") as file:
            self.tokens.append(file.readline().strip())

    def add_group_file(self, gid):
        """A file only a supplementary group may read, where system files lie."""
        self.group_file = f"/var/lib/{self.ipc_name}.group"
        write(self.group_file, self.root_token + "\n", 0o640, (0, gid))

    def remove(self):
        for path in (self.base, *(f"{place}/{self.ipc_name}.d" for place in ("/tmp", "/dev/shm", "/run"))):
            shutil.rmtree(path, ignore_errors=True)
        if self.group_file:
            os.unlink(self.group_file)

    # ---- living, as `who` ----

    def open(self):
        """Starts servers and the victim, and collects the arguments every probe is given."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        run_dir = "/run" if self.made_by_root else "/tmp"
        self._listen("abstract", socket.AF_UNIX, "\0" + self.ipc_name)
        self._listen("tmp", socket.AF_UNIX, f"/tmp/{self.ipc_name}.d/agent.sock")
        self._listen("run", socket.AF_UNIX, f"{run_dir}/{self.ipc_name}.d/docker.sock")
        self._listen("outside", socket.AF_UNIX, f"{self.outside}/app.sock")
        self._listen("elsewhere", socket.AF_UNIX, f"{self.elsewhere}/app.sock")
        self._listen("tcp", socket.AF_INET, ("127.0.0.1", 0))
        self._listen("log", socket.AF_UNIX, f"{run_dir}/{self.ipc_name}.d/log", socket.SOCK_DGRAM)
        self._listen("udp", socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
        os.dup2(os.open(f"{self.outside}/secret", os.O_RDONLY), LEAKED_FILE, inheritable=False)
        os.dup2(os.open(self.outside, os.O_RDONLY), LEAKED_DIR, inheritable=False)
        disk, disk_path = find_disk()
        self.args = {
            "work": self.work, "second": self.second, "ro": self.ro, "outside": self.outside,
            "twin_dir": self.twin_dir, "root_only": f"{self.ro}/root-only",
            "group_file": self.group_file, "host_pidns": namespace("pid"),
            "host_userns": namespace("user"), "ipc_key": self.ipc_key, "ipc_name": self.ipc_name,
            "abstract": self.ipc_name, "sock_tmp": self.sockets["tmp"].getsockname(),
            "sock_run": self.sockets["run"].getsockname(), "sock_log": self.sockets["log"].getsockname(),
            "sock_outside": self.sockets["outside"].getsockname(),
            "sock_elsewhere": self.sockets["elsewhere"].getsockname(),
            "tcp_port": self.sockets["tcp"].getsockname()[1], "udp_port": self.sockets["udp"].getsockname()[1],
            "leaked_file": LEAKED_FILE, "leaked_dir": LEAKED_DIR, "disk": disk, "disk_path": disk_path,
            "setuid_program": first(("/usr/bin/su", "/bin/su", "/usr/bin/mount"), is_setuid),
            "loader": first(("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")),
            "release_agent": first(glob.glob("/sys/fs/cgroup/*/release_agent")),
            "cgroup_procs": first(["/sys/fs/cgroup/cgroup.procs", *glob.glob("/sys/fs/cgroup/*/cgroup.procs")]),
        }
        for name, place in (("tmp", f"/tmp/{self.ipc_name}.d"), ("run", f"{run_dir}/{self.ipc_name}.d"),
                            ("home", self.elsewhere)):
            self.args[f"secret_{name}"] = f"{place}/secret"
            write(f"{place}/secret", self.file_token + "\n", 0o644)
        handle = self.call("handle", {"path": f"{self.outside}/secret"})
        for word in handle.output.split():
            if word.startswith("handle="):
                self.args["handle"] = word.partition("=")[2]

    def close(self):
        if self.victim:
            self.victim.kill()
            self.victim.wait()
        self.call("clear", user=True)

    def lacks(self, needs):
        """Why a row cannot be tried here, or None."""
        with open("/proc/sys/kernel/core_pattern") as file:
            pattern = file.read()
        reasons = {
            "root": (self.made_by_root, "only root can set it up"),
            "handle": ("handle" in self.args, "the filesystem has no file handles"),
            "xattr": (self._has_xattrs(), "the filesystem has no user attributes"),
            "setuid_program": (self.args["setuid_program"], "no setuid program was found"),
            "loader": (self.args["loader"], "no dynamic loader was found"),
            "core": (pattern[0] not in "|/", "core_pattern is not relative"),
            "abi6": (self.abi >= 6, "Landlock is below ABI 6"),
            "fchmodat2": (kernel_version() >= (6, 6), "the kernel is older than 6.6"),
        }
        return next((reasons[need][1] for need in needs if not reasons[need][0]), None)

    def _has_xattrs(self):
        try:
            os.setxattr(f"{self.work}", "user.test", b"1")
            os.removexattr(f"{self.work}", "user.test")
            return True
        except OSError:
            return False

    def _listen(self, name, family, address, kind=socket.SOCK_STREAM):
        self.sockets[name] = sock = socket.socket(family, kind)
        sock.setblocking(False)
        sock.bind(address)
        if isinstance(address, str) and address[0] == "/":
            os.chmod(address, 0o777)
        if kind == socket.SOCK_STREAM:
            sock.listen(16)

    def drain(self, name):
        """Whether datagrams came; forgets them."""
        came = False
        while True:
            try:
                self.sockets[name].recv(100)
                came = True
            except BlockingIOError:
                return came

    def reset(self):
        """Everything an attempt may have changed, as it was."""
        for place in (self.work, self.second):
            for entry in os.scandir(place):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                elif entry.name not in KEEP_IN_WORK:
                    os.unlink(entry.path)
        for name in ("project", "project/.tool", "project/.tool/hooks", "project/private"):
            os.mkdir(f"{self.work}/{name}")
            os.chmod(f"{self.work}/{name}", 0o777)
        write(f"{self.work}/project/.env", self.file_token + "\n")
        write(f"{self.work}/project/private/key", self.file_token + "\n")
        write(f"{self.work}/project/.tool/hooks/pre-commit", "host\n", 0o777)
        for path, owner in ((f"{self.outside}/victim", (self.uid, self.gid)), (f"{self.ro}/file", self.owner)):
            if os.path.lexists(path):
                os.unlink(path)
            write(path, "host\n", 0o666, owner if self.privileged else None)
            info = os.stat(path)
            self.pristine[path] = "host\n", stat.S_IMODE(info.st_mode), False, []
        created = f"{self.outside}/created"
        if os.path.isdir(created):
            os.rmdir(created)
        elif os.path.exists(created):
            os.unlink(created)
        self.drain("log")
        self.drain("udp")
        if self.victim is None or self.victim.poll() is not None:
            self._start_victim()

    def _start_victim(self):
        arguments = [f"{key}={self.args[key]}" for key in ("outside", "ipc_key", "ipc_name")]
        self.victim = subprocess.Popen(
            [self.probe, "victim", f"token={self.victim_token}", *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={"VICTIM_SECRET": self.victim_token}, **self._as_jail_user())
        self.victim_nice = os.getpriority(os.PRIO_PROCESS, self.victim.pid)
        while True:
            line = self.victim.stdout.readline().decode()
            if not line or line.startswith("planted"):
                break
            if line.startswith("victim="):
                self.args.update(word.split("=") for word in line.split())

    def _as_jail_user(self):
        if not self.privileged:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": self.secret_groups}

    def strays(self):
        """Children of ours that we did not start: orphans of a run. One in the state X has ended and
        needs nobody to wait for it. The kernel may list it a moment longer: a jail's init whose parent,
        a zygote, ended at the same time."""
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            pids = [int(pid) for pid in file.read().split()]
        return [pid for pid in pids if (not self.victim or pid != self.victim.pid) and
                not self.describe(pid).endswith(" X")]

    @staticmethod
    def describe(pid):
        """A process by its name and state; X is what is dead, or gone."""
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().rpartition(")")
                return f"{name}) {rest.split()[0]}"
        except OSError:
            return f"{pid} X"

    def lock_is_held(self):
        try:
            with open(f"{self.work}/lock", "r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def sweep(self):
        if os.path.exists(f"{self.work}/lock"):
            os.unlink(f"{self.work}/lock")  # tells outlive-chase to end
        for _ in range(200):
            strays = self.strays()
            for pid in strays:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    pass
            if not strays:
                return

    # ---- running ----

    def call(self, name, arguments=None, user=False, wrapper=()):
        """The probe with no jail."""
        return self.run([self.probe, *wrapper, name, *self._arguments(arguments)], user=user)

    def _arguments(self, more=None):
        known = {**self.args, **(more or {})}
        return [f"{key}={value}" for key, value in known.items() if value is not None]

    def probe_command(self, name, more=(), wrapper=()):
        return [self.probe, *wrapper, name, *more, *self._arguments()]

    def environment(self):
        return {"PATH": os.environ["PATH"], "HOME": self.base, "LANG": "C.UTF-8",
                **{name: self.env_token for name in SECRET_VARIABLES}}

    def run(self, command, user=False, row=None, during=None, twin="", patient=True):
        """Runs and waits, answering connections meanwhile. `twin` "term" and "linger" do not wait for
        the end: the caller looks, then sweeps. Without `patient` what is left behind is expected."""
        run = Run()
        extra = self._as_jail_user() if user else {}
        master = slave = -1
        if row and row.terminal:
            master, slave = os.openpty()
            if self.privileged:
                os.fchown(slave, self.uid, self.gid)
            command = [*command, f"terminal={os.ttyname(slave)}"]
        # A session of its own: whatever reaches a process group stays away from the harness.
        extra["start_new_session"] = True
        if row and row.controlling:
            extra["preexec_fn"] = lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0)
        if row and row.leaks:
            extra["pass_fds"] = (LEAKED_FILE, LEAKED_DIR)
            os.lseek(LEAKED_FILE, 0, os.SEEK_SET)
        stdin = subprocess.PIPE if during else subprocess.DEVNULL
        if row and row.stdin:
            stdin = os.open(self.outside if row.stdin == "outside" else f"{self.outside}/victim", os.O_RDONLY)
        process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE,
            stderr=slave if slave >= 0 else subprocess.STDOUT, cwd=self.work,
            env=self.environment(), **extra)
        if row and row.stdin:
            os.close(stdin)
        run.pid = process.pid
        seconds = TIMEOUT_DEADLINE_S if row and row.statuses and 1 not in row.statuses else PROBE_DEADLINE_S
        self._attend(process, run, during, twin, time.monotonic() + seconds, patient)
        if master >= 0:
            self._look_at_terminal(master, slave, run)
        return run

    def _attend(self, process, run, during, twin, deadline, patient):
        pidfd = os.pidfd_open(process.pid)
        out = process.stdout.fileno()
        servers = {sock.fileno(): sock for name, sock in self.sockets.items() if name not in ("log", "udp")}
        poll = select.poll()
        for fd in (pidfd, out, *servers):
            poll.register(fd, select.POLLIN)
        chunks, open_out, ended = [], True, False
        while (open_out or not ended) and (left := deadline - time.monotonic()) > 0:
            events = poll.poll((min(left, LOOK_S) if twin == "linger" else left) * 1000)
            for fd, _ in events:
                if fd == pidfd:
                    ended = True
                    poll.unregister(pidfd)
                    # What still holds the output is on its way out, or was left behind.
                    deadline = min(deadline, time.monotonic() + (CLOSED_S if patient else SETTLE_S))
                elif fd == out:
                    data = os.read(out, 65536)
                    if not data:
                        open_out = False
                        poll.unregister(out)
                    chunks.append(data)
                else:
                    self._serve(servers[fd])
            if twin == "linger" and self.lock_is_held():
                deadline = min(deadline, time.monotonic() + SETTLE_S)
            if b"ready\n" in b"".join(chunks):
                if twin == "term":
                    process.terminate()
                    deadline, twin = time.monotonic() + SETTLE_S, "linger"
                if during:
                    during(self, run)
                    process.stdin.write(b"\n")
                    process.stdin.close()
                    during = None
        run.output = b"".join(chunks).decode(errors="replace")
        run.ended_output = not open_out
        run.overdue = not ended and not twin
        if not ended and not twin:
            process.kill()
        if ended or not twin:
            run.status = process.wait()
        os.close(pidfd)
        process.stdout.close()
        if process.stdin:
            process.stdin.close()

    def _serve(self, sock):
        try:
            connection, _ = sock.accept()
            connection.send(self.server_token.encode() + b"\n")
            connection.close()
        except OSError:
            pass

    def _look_at_terminal(self, master, slave, run):
        """Was anything typed into it, or a setting changed? Output is allowed: it is for that."""
        run.settings_changed = termios.tcgetattr(slave)[6][termios.VINTR] == b"\x01"
        os.set_blocking(slave, False)
        os.set_blocking(master, False)
        try:
            run.typed = b"escaped" in os.read(slave, 4096)
        except OSError:
            pass
        try:
            run.notes.append(f"terminal: {os.read(master, 4096)!r}")
        except OSError:
            pass
        os.close(master)
        os.close(slave)
