# SPDX-License-Identifier: MIT
"""Jobs: commands that run beside the program, as subprocess.Popen has them."""

from __future__ import annotations

import dataclasses
import errno
import io
import os
import selectors
import signal
import stat
import threading
import time
from typing import IO, Any, AnyStr, Dict, Generic, List, Optional, Tuple, Union, cast

from ._errors import TimeoutExpired
from ._options import Path, StreamOptions
from ._process import is_finalizing
from ._result import Completed
from ._running import Running
from ._wait import wait

_CHUNK = 65536


class Terminal(io.RawIOBase):
    """The caller's side of a job's terminal: reading waits for what the command prints, and is at its
    end when the command has ended."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = os.read(self._fd, len(view))
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return 0
        view[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        return os.write(self._fd, data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._fd)


class _Unheld(io.BufferedRWPair):
    """What is typed into a terminal is typed at once."""

    def write(self, data: Any) -> int:
        written = super().write(data)
        self.flush()
        return written


class Base(Generic[AnyStr]):
    """What jobs with and without an event loop share."""

    def __init__(self, running: Running, options: StreamOptions) -> None:
        self._running = running
        self._options = options
        self._encoding = options.encoding or "utf-8"
        self._kept: List[bytearray] = [bytearray(), bytearray(), bytearray()]
        self._cut = False

    @property
    def args(self) -> List[str]:
        """The command."""
        return self._running.args

    @property
    def pid(self) -> int:
        """The jail's first process, as the host sees it."""
        return self._running.pid()

    @property
    def returncode(self) -> Optional[int]:
        """The exit code, a signal as a negative number, or None while the command runs."""
        completed = self._running.completed()
        return None if completed is None else completed.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal to the command's process group; nothing happens if it has ended."""
        self._running.signal(number)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def cancel(self) -> None:
        """Ends the command and all it has started: TERM, the grace, KILL. The outcome is 'cancelled'."""
        self._running.cancel()

    def resize(self, rows: int, columns: int) -> None:
        """Sets the size of the terminal (24 by 80 at first); the command gets SIGWINCH."""
        self._running.resize(rows, columns)

    def net_events(self) -> List[Dict[str, Any]]:
        """What was tried through the network's rules since this was asked last, oldest first."""
        return self._running.net_events()

    def kept_file(self, path: Path, max_bytes: int = 64 << 20) -> bytes:
        """The bytes of a regular file in the directory of Policy.keep(). No link is followed; more than
        max_bytes is a ValueError."""
        return _read_below(self._running.kept_dir(), os.fspath(path), max_bytes)

    def _keep(self, stream: int, data: bytes, limit: int) -> None:
        """Of what a command prints no more than its limit is kept."""
        kept = self._kept[stream]
        room = max(0, limit - len(kept)) if limit else len(data)
        kept += data[:room]
        self._cut = self._cut or len(data) > room

    def _text(self, data: bytes) -> AnyStr:
        return cast(AnyStr, decoded(data, self._options.text, self._encoding, self._options.errors))

    def _bytes(self, data: Union[str, bytes, None]) -> bytes:
        return data.encode(self._encoding) if isinstance(data, str) else bytes(data or b"")

    def _outputs(self) -> Tuple[AnyStr, AnyStr]:
        return self._text(bytes(self._kept[1])), self._text(bytes(self._kept[2]))

    def _whole(self) -> Completed[AnyStr]:
        """What became of it, with what communicate() has read. The command has ended."""
        completed = self._running.completed()
        if completed is None:
            raise ValueError("the command has not ended")
        out, errors = self._outputs()
        changed: Any = dataclasses.replace(
            completed, stdout=out, stderr=errors, truncated=completed.truncated or self._cut
        )
        return cast("Completed[AnyStr]", changed)

    def _checked(self) -> Completed[AnyStr]:
        completed = self._whole()
        error = completed.limit_error()
        if error is not None:
            raise error
        return completed

    def _expired(self, seconds: float) -> TimeoutExpired:
        return TimeoutExpired(f"the command '{self.args[0]}' still runs after {seconds} s")


class Job(Base[AnyStr]):
    """A command that runs in a jail: start() makes it.

    >>> with brig.start(["cat"], stdin=brig.PIPE, stdout=brig.PIPE, text=True) as job:
    ...     job.stdin.write("hello\\n")
    ...     job.stdin.close()
    ...     for line in job.stdout: ...

    A thread watches over the command, so that its limits hold whatever the program does meanwhile.
    Leaving the `with` block closes the streams and waits for the command; if it is left by an
    exception, or if the job is forgotten, the command is ended.
    """

    def __init__(self, running: Running, options: StreamOptions) -> None:
        super().__init__(running, options)
        self._over = threading.Event()
        self._files: List[Optional[IO[AnyStr]]] = [self._file(stream) for stream in range(3)]
        self._terminal: Optional[IO[AnyStr]] = self._open_terminal() if options.pty else None
        self._unsent: Optional[memoryview] = None
        watch = threading.Thread(
            target=_watch, args=(running, self._over), name="brig job", daemon=True
        )
        watch.start()

    def _file(self, stream: int) -> Optional[IO[AnyStr]]:
        fd = self._running.ends[stream]
        if fd < 0:
            return None
        if self._options.text:
            made: Any = open(fd, "r" if stream else "w", 1, self._encoding, self._options.errors)
        else:
            made = open(fd, "rb" if stream else "wb")
        return cast("IO[AnyStr]", made)

    def _open_terminal(self) -> IO[AnyStr]:
        raw: Any = Terminal(self._running.terminal())
        if self._options.text:
            pair: Any = _Unheld(raw, raw)
            errors = self._options.errors
            raw = io.TextIOWrapper(pair, self._encoding, errors, write_through=True)
        return cast("IO[AnyStr]", raw)

    @property
    def stdin(self) -> IO[AnyStr]:
        """The file to write to, with stdin=PIPE. Text goes with each line; bytes want flush()."""
        return self._pipe(0)

    @property
    def stdout(self) -> IO[AnyStr]:
        """The file to read from, with stdout=PIPE."""
        return self._pipe(1)

    @property
    def stderr(self) -> IO[AnyStr]:
        """The file to read from, with stderr=PIPE."""
        return self._pipe(2)

    def _pipe(self, stream: int) -> IO[AnyStr]:
        file = self._files[stream]
        if file is None:
            name = ("stdin", "stdout", "stderr")[stream]
            raise ValueError(f"{name} is not a pipe: start(…, {name}=brig.PIPE)")
        return file

    @property
    def terminal(self) -> IO[AnyStr]:
        """The terminal's other side, with pty=True: what is written is typed, what is read was
        printed."""
        if self._terminal is None:
            raise ValueError("there is no terminal: start(…, pty=True)")
        return self._terminal

    def poll(self) -> Optional[int]:
        """The return code, or None while the command runs."""
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits for the end; returns the return code. Raises TimeoutError, CPUTimeoutError or
        MemoryError if a limit ended the command, and TimeoutExpired if it goes on after so many
        seconds. Pipes that nobody reads fill up, and the command waits: see communicate()."""
        if not self._ends(timeout):
            raise self._expired(timeout or 0)
        return self._checked().returncode

    def result(self, timeout: Optional[float] = None) -> Completed[AnyStr]:
        """Waits for the end, and returns what became of the command, limits included."""
        if not self._ends(timeout):
            raise self._expired(timeout or 0)
        return self._whole()

    def _ends(self, timeout: Optional[float]) -> bool:
        """Whether the command ends within the time. Nobody watches over it in a forked process."""
        if self._running.completed() is None:
            self._running.check_here()
        return self._over.wait(timeout)

    def communicate(
        self, input: Optional[AnyStr] = None, timeout: Optional[float] = None
    ) -> Tuple[AnyStr, AnyStr]:
        """Writes the input, reads stdout and stderr to their ends and waits. Returns both; what is not
        a pipe is empty. Of each no more than max_output bytes are kept. Errors are those of wait();
        after TimeoutExpired it can be called again, and nothing is lost."""
        end = None if timeout is None else time.monotonic() + timeout
        if self._running.completed() is None:
            self._running.check_here()
        if self._unsent is None:
            if input is not None:
                self._pipe(0)  # says what is wrong if there is none
            self._unsent = memoryview(self._bytes(input))
        if not self._exchange(end) or not self._over.wait(_left(end)):
            raise self._expired(timeout or 0)
        self._checked()
        return self._outputs()

    def _exchange(self, end: Optional[float]) -> bool:
        """Writes and reads until all is done; whether that was before the end."""
        limit = self._running.output_limit()
        with selectors.DefaultSelector() as selector:
            for stream, file in enumerate(self._files):
                if file is not None and not file.closed:
                    event = selectors.EVENT_READ if stream else selectors.EVENT_WRITE
                    selector.register(file, event, stream)
            while selector.get_map():
                ready = selector.select(_left(end))
                if not ready and end is not None and time.monotonic() >= end:
                    return False
                for key, _ in ready:
                    done = self._receive(key.data, limit) if key.data else self._send()
                    if done:
                        selector.unregister(key.fileobj)
                        self._pipe(key.data).close()
        return True

    def _send(self) -> bool:
        """Writes some of the input; whether that was all."""
        file, rest = self._pipe(0), self._unsent or memoryview(b"")
        try:
            os.set_blocking(file.fileno(), False)
            file.flush()
            written = os.write(file.fileno(), rest[:_CHUNK]) if rest else 0
        except BlockingIOError:
            return False
        except BrokenPipeError:
            written = len(rest)  # it wants no more
        self._unsent = rest[written:]
        return not self._unsent

    def _receive(self, stream: int, limit: int) -> bool:
        """Reads what is there; whether that was the end."""
        data = os.read(self._pipe(stream).fileno(), _CHUNK)
        self._keep(stream, data, limit)
        return not data

    def close(self) -> None:
        """Closes the streams, and ends the command if it still runs. In a process that is forked from the
        one that started it, only the streams are closed."""
        self._close_files()
        if self._running.is_here():
            self._running.abandon()
            self._over.wait()
            self._running.release()

    def _close_files(self) -> None:
        for file in (*self._files, self._terminal):
            try:
                if file is not None:
                    file.close()
            except BrokenPipeError:
                pass  # the command did not read all of it

    def __enter__(self) -> Job[AnyStr]:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            self.close()
            return
        self._close_files()
        if self._running.is_here():
            self._over.wait()

    def __del__(self) -> None:
        # The thread that watches keeps the job alive until it is over.
        running = getattr(self, "_running", None)
        if running is not None and running.completed() is None and not is_finalizing():
            running.abandon()


def _watch(running: Running, over: threading.Event) -> None:
    try:
        wait(running.fds, running.process)
    except ValueError:
        pass  # released by another thread
    finally:
        over.set()


def _left(end: Optional[float]) -> Optional[float]:
    return None if end is None else max(0.0, end - time.monotonic())


def decoded(data: bytes, text: bool, encoding: str, errors: str) -> Union[bytes, str]:
    """As subprocess does it: text has \\n at the end of its lines."""
    if not text:
        return data
    return data.decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")


def _read_below(dir_fd: int, path: str, max_bytes: int) -> bytes:
    """A regular file that untrusted code has made: no link on the way is followed."""
    if dir_fd < 0:
        raise ValueError("nothing was kept: see Policy.keep()")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise ValueError(f"the path {path!r} does not name a file below the kept directory")
    fd = os.open(".", os.O_PATH | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = below
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        found = os.open(parts[-1], flags, dir_fd=fd)
    finally:
        os.close(fd)
    with open(found, "rb") as file:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise ValueError(f"{path!r} is not a regular file")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"{path!r} has more than {max_bytes} bytes")
    return data
