# SPDX-License-Identifier: MIT
"""A real brigd on a port of its own, with a home and a history of its own, for tests that print TAP.

    @test
    def it_says_hello(brigd_for):
        with brigd_for("security: {rate_limit_rps: 0}") as brigd:
            assert brigd.execute("python", "print(1)")["output"] == "1\\n"

A test is given a factory; each brigd it makes is ended with it, and must leave nothing behind. As root
each @test runs twice: as root, and as an ordinary user without any power. A test of behaviour that does not depend on the
user is a @root_test or a @user_test: it runs as one of them, and as both with BRIG_THOROUGH=1.
"""
import contextlib
import http.client
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import PATIENCE, SLOW, wait_for  # noqa: E402,F401

BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or pathlib.Path(__file__).resolve().parents[2] / "build")
BRIGD = BUILD / "src/server/brigd"
# The ordinary user: tests/run makes one for each suite.
ORDINARY = pwd.getpwnam(os.environ["BRIG_TEST_USER"]) if os.environ.get("BRIG_TEST_USER") else None
USER = ORDINARY.pw_uid if ORDINARY else 65534
THOROUGH = os.environ.get("BRIG_THOROUGH") == "1"  # as root: each test as root and as the user
# BRIG_TEST_POOLS=off: every execution begins cold.
POOLS = {"EXECUTOR_POOL_ENABLED": "false"} if os.environ.get("BRIG_TEST_POOLS") == "off" else {}

# Python that writes to one stream and then to the other, each time when all before it has been read: FIONREAD is
# what a pipe still holds.
ALTERNATELY = """\
import fcntl, os, struct, termios, time
for fd, text in (1, b"a\\n"), (2, b"b\\n"), (1, b"c\\n"):
    os.write(fd, text)
    while struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]:
        time.sleep(.001)
"""

tests = []


def test(function):
    tests.append(function)
    return function


def root_test(function):
    function.user = False
    return test(function)


def user_test(function):
    function.user = True
    return test(function)


def as_user(path):
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all", "--"] + path


def work_place():
    """Where directories for jails to work in can be: /var is never given away, and what root gives away must be on
    a filesystem that can be id-mapped, which /tmp may not be."""
    return ORDINARY.pw_dir if ORDINARY else "/tmp"


def processes():
    """pid -> (parent, name) of everything that runs."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            found[int(folder.name)] = (int(rest.split()[1]), head.partition("(")[2])
    return found


def below(pid):
    """Every process that descends from this one."""
    found, table = [pid], processes()
    for one in found:
        found += [child for child, (parent, _) in table.items() if parent == one]
    return found[1:]


def in_background(function, *arguments, **more):
    """Runs it in a thread. The result is what it returned or raised."""
    def run():
        try:
            thread.result = function(*arguments, **more)
        except Exception as error:  # looked at by the test
            thread.result = error
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def attempt(function, *arguments, **more):
    try:
        return function(*arguments, **more)
    except (OSError, http.client.HTTPException, AssertionError):
        return None


def sleeping(executor):
    """The processes named sleep in the jails."""
    table = processes()
    return [pid for pid in below(executor) if table.get(pid, (0, ""))[1] == "sleep"]


def wake(executor):
    """Ends the one sleep, so that its shell goes on."""
    (pid,) = wait_for(lambda: sleeping(executor), "the shell to sleep")
    os.kill(pid, signal.SIGTERM)


class Enough(Exception):
    """The rest of a test needs what an ordinary user may lack here; it runs as root."""


class Skip(Exception):
    """Raised by a test that cannot be run here; its text says why."""


def count_files(pid):
    """How many descriptors a process has open. One that confines itself shows them to root alone."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        raise Skip("only root can see the descriptors of the server's processes") from None


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:2000]!r}"


class Brigd:
    def __init__(self, folder, config, user, options=(), environment=None, listen="127.0.0.1:0",
                 before=None):
        self.folder, self.user = pathlib.Path(folder), user
        self.headers = {}  # of each request
        self.home = self.folder / "home"
        self.home.mkdir(exist_ok=True)
        self.config = self.folder / "brigd.yaml"
        self.config.write_text(config)
        if user:
            for path in (self.folder, self.home, self.config):
                os.chown(path, USER, USER)
        self.log = open(self.folder / "log", "ab")
        self.log_start = self.log.tell()
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home),
                       **self.places(), **POOLS, **(environment or {})}
        command = [str(BRIGD), "-c", str(self.config), "-l", listen, *options]
        self.process = subprocess.Popen(as_user(command) if user else command, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env=environment, cwd=self.home,
                                        start_new_session=True, preexec_fn=before)
        self.where = self.host = self.port = None

    def places(self):
        """Of its own, as root too, where another brigd may run."""
        places = {"STATE_DIRECTORY": self.folder / "state", "RUNTIME_DIRECTORY": self.folder / "run"}
        for path in places.values():
            path.mkdir(mode=0o700, exist_ok=True)
            if self.user:
                os.chown(path, USER, USER)
        return {name: str(path) for name, path in places.items()}

    def said(self):
        return (self.folder / "log").read_bytes()[self.log_start:].decode(errors="replace")

    def ready(self):
        def listening():
            assert self.process.poll() is None, f"brigd ended with {self.process.returncode}: {self.said()}"
            return re.findall(r'listening on (https?)://([^\s"]+)', self.said())
        self.scheme, self.where = wait_for(listening, "brigd to listen")[-1]
        if not self.where.startswith("unix:"):
            self.host, _, port = self.where.rpartition(":")
            self.port = int(port)
        return self

    def __enter__(self):
        return self.ready()

    def __exit__(self, *_):
        self.end()

    def connection(self, timeout=PATIENCE):
        return http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=timeout)

    def socket(self, timeout=PATIENCE):
        return socket.create_connection((self.host.strip("[]"), self.port), timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE):
        connection = self.connection(timeout)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, path, body=body,
                               headers={**({"Content-Type": "application/json"} if body is not None else {}),
                                        **self.headers, **(headers or {})})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def execute(self, language, code, **fields):
        answer = self.post("/execute", {"language": language, "code": code, **fields},
                           timeout=fields.pop("patience", 90 * SLOW))
        assert answer.status == 200, answer
        return answer.json

    def role(self, name):
        """The pid of the http process, the executor or the history process."""
        table = processes()
        found = [pid for pid, (parent, comm) in table.items()
                 if parent == self.process.pid and comm == f"brigd-{name}"]
        return found[0] if found else None

    def kill_role(self, name):
        """Kills it and waits until another one lives."""
        old = wait_for(lambda: self.role(name), f"a {name}")
        os.kill(old, signal.SIGKILL)
        return old, wait_for(lambda: self.role(name) not in (None, old) and self.role(name), f"a new {name}")

    def end(self, number=signal.SIGTERM, patience=60 * SLOW):
        if self.process.poll() is None:
            left = below(self.process.pid)
            self.process.send_signal(number)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"brigd did not end: {self.said()}") from None
            table = processes()
            wait_for(lambda: not [pid for pid in left if pid in processes()],
                     f"what is left of it to end: {[(pid, table.get(pid)) for pid in left]}")
        self.log.close()
        return self.process.returncode


@contextlib.contextmanager
def factory(user):
    folder = tempfile.mkdtemp(prefix="brigd-test.", dir="/var/tmp")
    made = []
    if user:
        os.chown(folder, USER, USER)

    def brigd_for(config="", same=False, **more):
        place = pathlib.Path(folder) / ("0" if same else str(len(made)))
        place.mkdir(exist_ok=True)
        brigd = Brigd(place, config, user, **more)
        made.append(brigd)
        return brigd

    brigd_for.user, brigd_for.folder = user, folder
    try:
        yield brigd_for
    except BaseException:
        for brigd in made:
            print("".join(f"# | {line}\n" for line in brigd.said().splitlines()[-25:]), end="")
        raise
    finally:
        for brigd in made:
            with contextlib.suppress(Exception):
                brigd.end(signal.SIGKILL if sys.exc_info()[0] else signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)


def main(as_root=True):
    """Runs the tests whose names contain one of the arguments, or all, and prints TAP. Without as_root, each @test is
    a @user_test."""
    count = failed = 0
    for user in [False, True] if os.getuid() == 0 else [False]:
        for function in tests:
            only = getattr(function, "user", None if as_root else True)
            if os.getuid() == 0 and only == (not user) and not THOROUGH:
                continue
            name = function.__name__.replace("_", " ") + (" (as an ordinary user)" if user else "")
            if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
                continue
            count += 1
            try:
                with factory(user) as brigd_for:
                    function(brigd_for)
                print(f"ok {count} - {name}", flush=True)
            except Enough as reason:
                failed += not user
                print(f"{'ok' if user else 'not ok'} {count} - {name}: {reason}", flush=True)
            except Skip as reason:
                print(f"ok {count} - {name} # SKIP {reason}", flush=True)
            except Exception:  # a test's failure, whatever it is
                failed += 1
                print(f"not ok {count} - {name}")
                print("".join(f"# {line[:1000]}\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
    print(f"1..{count}")
    return 1 if failed else 0
