# SPDX-License-Identifier: MIT
"""What the suites of brig mcp share: a home with a project for each test, a client of either form of the protocol, and
the loop that prints TAP."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import GROWING, PATIENCE, has_ended, wait_for  # noqa: E402,F401

BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or pathlib.Path(__file__).resolve().parents[2] / "build")
BRIG = str(BUILD / "src/cli/brig")
MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
META = "io.modelcontextprotocol/"
TOOLS = ["run_code", "run_command", "file_read", "file_write", "file_list", "diff", "apply", "reset"]
PARSE, REQUEST, METHOD, PARAMS, VERSION = -32700, -32600, -32601, -32602, -32022

tests = []


def test(function):
    tests.append(function)
    return function


# ---- The client --------------------------------------------------------------------------------


class Place:
    """An ordinary user's home with a project, and brig in it."""

    def __init__(self):
        user = pwd.getpwnam(os.environ["BRIG_TEST_USER"]) if os.environ.get("BRIG_TEST_USER") else None
        self.user = user if user and os.getuid() == 0 else None
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="brig-mcp.", dir=user.pw_dir if user else None))
        self.project = self.home / "project"
        self.project.mkdir()
        (self.project / "file.txt").write_text("first\n")
        if self.user:
            for path in (self.home, self.project, self.project / "file.txt"):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home),
                            "BRIG_CONFIG_DIR": str(self.home / "config"), "XDG_DATA_HOME": str(self.home / "data")}
        self.clients = []

    def command(self, *words):
        prefix = ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups",
                  "--inh-caps=-all", "--"] if self.user else []
        return [*prefix, BRIG, *words]

    def brig(self, *words):
        return subprocess.run(self.command(*words), cwd=self.project, env=self.environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)

    def jails(self):
        return [jail["name"] for jail in json.loads(self.brig("list", "--json").stdout)]

    def client(self, *options, **more):
        client = Client(self, *options, **more)
        self.clients.append(client)
        return client

    def end(self):
        for client in self.clients:
            client.kill()
        self.brig("-u")
        shutil.rmtree(self.home, ignore_errors=True)


class Client:
    def __init__(self, place, *options, modern=False, capabilities=None, cwd=None):
        self.modern, self.capabilities, self.count = modern, capabilities or {}, 0
        self.notifications, self.early = [], []
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(place.command("mcp", *options), cwd=cwd or place.project, env=place.environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\n")

    def read(self):
        """The next message; None at the end."""
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        return json.loads(line) if line else None

    def ask(self, method, params=None, **meta):
        """Sends a request and gives its id."""
        self.count += 1
        params = dict(params or {})
        if self.modern:
            meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": self.capabilities, **meta}
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        return self.count

    def answer(self, wanted):
        """The answer to a request, whatever comes before it."""
        for message in self.early:
            if message.get("id") == wanted:
                self.early.remove(message)
                return message
        while (message := self.read()) is not None:
            if message.get("id") == wanted and "method" not in message:
                return message
            (self.early if "id" in message else self.notifications).append(message)
        raise AssertionError(f"no answer to {wanted}: {self.said()}")

    def request(self, method, params=None, **meta):
        return self.answer(self.ask(method, params, **meta))

    def initialize(self, version=LEGACY[0]):
        return self.request("initialize", {"protocolVersion": version, "capabilities": self.capabilities,
                                           "clientInfo": {"name": "test", "version": "1"}})

    def call(self, name, **arguments):
        return self.request("tools/call", {"name": name, "arguments": arguments})["result"]

    def run(self, command, **more):
        return self.call("run_command", command=command, **more)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def close(self):
        """Ends as a client does, and gives the exit status."""
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def kill(self):
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(OSError):
                file.close()


def both(place, *options, **more):
    """A client of each form."""
    legacy = place.client(*options, **more)
    legacy.initialize()
    return legacy, place.client(*options, modern=True, **more)


def error_code(message):
    assert "error" in message, message
    return message["error"]["code"]


def text(result):
    return result["content"][0]["text"]


# ---- Running them ------------------------------------------------------------------------------


def main():
    count = failed = 0
    for function in tests:
        name = function.__name__.replace("_", " ")
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        count += 1
        place = Place()
        try:
            function(place)
            print(f"ok {count} - {name}", flush=True)
        except Exception:  # a test's failure, whatever it is
            failed += 1
            print(f"not ok {count} - {name}")
            print("".join(f"# {line[:1000]}\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
        finally:
            place.end()
    print(f"1..{count}")
    return 1 if failed else 0
