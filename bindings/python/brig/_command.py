# SPDX-License-Identifier: MIT
"""Commands in a jail: run() waits for one, start() makes a job of it, a Template is a jail that was
prepared for many."""

from __future__ import annotations

import dataclasses
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, cast, overload

from ._job import Job, decoded
from ._library import BrigError, check as check_code, library
from ._options import CaptureOptions, JailOptions, Path, StreamOptions, refuse_unknown, signature, take
from ._process import Owned
from ._result import Completed
from ._running import Launcher, Running, Streams, captured, streams_of
from ._wait import STARTERS, in_thread, turn, wait, wait_async

if TYPE_CHECKING:
    from typing_extensions import Literal, Unpack

    from ._async import AsyncJob
    from ._options import CaptureKeywords, JailKeywords, RunKeywords, StartKeywords, StreamKeywords


# ---- How it is done ------------------------------------------------------------------------------


def _needs_text(options: Any) -> None:
    if options.encoding is not None and not options.text:
        raise ValueError(f"encoding={options.encoding!r} needs text=True")


def _capture(keywords: Mapping[str, Any]) -> CaptureOptions:
    options = take(CaptureOptions, keywords)
    _needs_text(options)
    return options


def _streams(options: CaptureOptions) -> Streams:
    encoding = options.encoding or "utf-8"
    return captured(options.input, options.capture, encoding, options.pass_fds)


def _finish(running: Running, options: CaptureOptions, check: Optional[bool]) -> Completed[Any]:
    """What became of it, with the rule for errors."""
    running.warn(stacklevel=4)
    found: Any = running.completed()
    how = options.text, options.encoding or "utf-8", options.errors
    completed = cast(
        "Completed[Any]",
        dataclasses.replace(
            found, stdout=decoded(found.stdout, *how), stderr=decoded(found.stderr, *how)
        ),
    )
    if check:
        return completed.check()
    error = completed.limit_error()
    if error is not None and check is None:
        raise error
    return completed


def _run(
    launcher: Launcher, cmd: Sequence[Path], options: CaptureOptions, check: Optional[bool]
) -> Completed[Any]:
    running = Running(cmd, launcher, _streams(options)).start()
    try:
        wait(running.fds, running.process)
        return _finish(running, options, check)
    finally:
        running.release()


async def _started(launcher: Launcher, cmd: Sequence[Path], streams: Streams) -> Running:
    """Beside the loop only the library works, as it needs no interpreter."""
    async with turn():
        running = Running(cmd, launcher, streams)
    try:
        await in_thread(STARTERS, running.launch, lambda _: running.release())
        async with turn():
            running.settle()
    except BaseException:
        running.discard()
        raise
    return running


async def _run_async(
    launcher: Launcher, cmd: Sequence[Path], options: CaptureOptions, check: Optional[bool]
) -> Completed[Any]:
    running = await _started(launcher, cmd, _streams(options))
    try:
        await wait_async(running.fds, running.process)
        return _finish(running, options, check)
    finally:
        running.release()


def _start(launcher: Launcher, cmd: Sequence[Path], options: StreamOptions) -> Job[Any]:
    _needs_text(options)
    return Job(Running(cmd, launcher, streams_of(options)).start(), options)


async def _start_async(
    launcher: Launcher, cmd: Sequence[Path], options: StreamOptions
) -> AsyncJob[Any]:
    from ._async import AsyncJob

    _needs_text(options)
    job: AsyncJob[Any] = AsyncJob(await _started(launcher, cmd, streams_of(options)), options)
    await job._open()
    return job


# ---- What users see ------------------------------------------------------------------------------


@overload
def run(
    cmd: Sequence[Path], *, text: Literal[True], check: Optional[bool] = None, **options: Unpack[RunKeywords]
) -> Completed[str]: ...


@overload
def run(
    cmd: Sequence[Path],
    *,
    text: Literal[False] = False,
    check: Optional[bool] = None,
    **options: Unpack[RunKeywords],
) -> Completed[bytes]: ...


@signature(JailOptions, CaptureOptions)
def run(cmd: Sequence[Path], *, check: Optional[bool] = None, **options: Any) -> Completed[Any]:
    """Runs a command in a jail and waits for it.

    cmd is a list of arguments. If a limit ends the command (timeout, cpu_timeout, memory), TimeoutError,
    CPUTimeoutError or MemoryError is raised; with check=True also CommandError for any other end but
    exit status 0; with check=False neither. All of them have the result as `result`.

    The jail:
      timeout, cpu_timeout  seconds (the policy's, else 30; the policy's); None is no limit
      memory_mb, memory     as 'address_space' of each process, or 'rss' of all (needs cgroups)
      processes             how many there may be, with threads
      grace                 seconds between TERM and KILL
      max_output            bytes of each stream that are kept
      fs_allow, fs_read_allow   paths to write and read, or to read
      network               'none', 'loopback', 'host', 'allow' or 'open'
      cwd                   the directory to start in
      env                   variables, passed on as they are; by default those of the program, of
                            which the mode keeps what is harmless
      on_unsupported        'raise', 'warn' or 'ignore', when this system cannot enforce something
      mode, policy          'sealed'; or a Policy, over which these options are laid
    The streams:
      input                 bytes or text for stdin; without it stdin is empty
      capture               True: stdout and stderr are collected; False: they are the caller's
      text, encoding, errors    text=True: output is text ('utf-8', 'replace')
      pass_fds              fds for the command: a list, or {fd: number inside}

    >>> brig.run(["python3", "-c", "print(6 * 7)"]).stdout
    b'42\\n'
    """
    refuse_unknown("run", options, JailOptions, CaptureOptions)
    return _run(Launcher(take(JailOptions, options)), cmd, _capture(options), check)


@overload
async def run_async(
    cmd: Sequence[Path], *, text: Literal[True], check: Optional[bool] = None, **options: Unpack[RunKeywords]
) -> Completed[str]: ...


@overload
async def run_async(
    cmd: Sequence[Path],
    *,
    text: Literal[False] = False,
    check: Optional[bool] = None,
    **options: Unpack[RunKeywords],
) -> Completed[bytes]: ...


@signature(JailOptions, CaptureOptions)
async def run_async(
    cmd: Sequence[Path], *, check: Optional[bool] = None, **options: Any
) -> Completed[Any]:
    """As run(), for asyncio. When the task is cancelled, the command is ended."""
    refuse_unknown("run_async", options, JailOptions, CaptureOptions)
    async with turn():
        launcher = Launcher(take(JailOptions, options))
    return await _run_async(launcher, cmd, _capture(options), check)


@overload
def start(
    cmd: Sequence[Path], *, text: Literal[True], **options: Unpack[StartKeywords]
) -> Job[str]: ...


@overload
def start(
    cmd: Sequence[Path], *, text: Literal[False] = False, **options: Unpack[StartKeywords]
) -> Job[bytes]: ...


@signature(JailOptions, StreamOptions)
def start(cmd: Sequence[Path], **options: Any) -> Job[Any]:
    """Starts a command in a jail and returns it as a Job, once it runs.

    The options of the jail are those of run(), its timeout of 30 s included. stdin, stdout and stderr
    are PIPE, DEVNULL, an fd, a file, or None for the caller's own; stderr can be STDOUT. pty=True
    makes a terminal of all three. With text=True pipes and terminal have text ('utf-8', 'replace').

    >>> with brig.start(["ls", "/"], stdout=brig.PIPE, text=True) as job:
    ...     names = [line.strip() for line in job.stdout]
    """
    refuse_unknown("start", options, JailOptions, StreamOptions)
    return _start(Launcher(take(JailOptions, options)), cmd, take(StreamOptions, options))


@overload
async def start_async(
    cmd: Sequence[Path], *, text: Literal[True], **options: Unpack[StartKeywords]
) -> AsyncJob[str]: ...


@overload
async def start_async(
    cmd: Sequence[Path], *, text: Literal[False] = False, **options: Unpack[StartKeywords]
) -> AsyncJob[bytes]: ...


@signature(JailOptions, StreamOptions)
async def start_async(cmd: Sequence[Path], **options: Any) -> AsyncJob[Any]:
    """As start(), for asyncio: an AsyncJob."""
    refuse_unknown("start_async", options, JailOptions, StreamOptions)
    async with turn():
        launcher = Launcher(take(JailOptions, options))
    return await _start_async(launcher, cmd, take(StreamOptions, options))


class _Prepared(Owned):
    _free = "brig_template_free"
    _kind = "template"


class Template:
    """A jail prepared once for many commands, which then start faster. Takes the options of the jail
    that run() takes. Commands share nothing writable but what is granted. Several threads may use
    one template at the same time.

    >>> with brig.Template(timeout=5, fs_read_allow=["/srv/data"]) as template:
    ...     template.run(["ls", "/srv/data"])
    """

    @signature(JailOptions)
    def __init__(self, **options: Unpack[JailKeywords]) -> None:
        refuse_unknown("Template", options, JailOptions)
        self._launcher = Launcher(JailOptions(**options))
        template, err = c_void_p(), BrigError()
        policy = self._launcher.policy._handle
        code = library().brig_template_new(policy, byref(template), byref(err))
        self._launcher.template = _Prepared(template.value)
        check_code(code, err)

    @overload
    def run(
        self,
        cmd: Sequence[Path],
        *,
        text: Literal[True],
        check: Optional[bool] = None,
        **options: Unpack[CaptureKeywords],
    ) -> Completed[str]: ...

    @overload
    def run(
        self,
        cmd: Sequence[Path],
        *,
        text: Literal[False] = False,
        check: Optional[bool] = None,
        **options: Unpack[CaptureKeywords],
    ) -> Completed[bytes]: ...

    @signature(CaptureOptions)
    def run(self, cmd: Sequence[Path], *, check: Optional[bool] = None, **options: Any) -> Completed[Any]:
        """Runs a command, as brig.run()."""
        refuse_unknown("run", options, CaptureOptions)
        return _run(self._launcher, cmd, _capture(options), check)

    @overload
    async def run_async(
        self,
        cmd: Sequence[Path],
        *,
        text: Literal[True],
        check: Optional[bool] = None,
        **options: Unpack[CaptureKeywords],
    ) -> Completed[str]: ...

    @overload
    async def run_async(
        self,
        cmd: Sequence[Path],
        *,
        text: Literal[False] = False,
        check: Optional[bool] = None,
        **options: Unpack[CaptureKeywords],
    ) -> Completed[bytes]: ...

    @signature(CaptureOptions)
    async def run_async(
        self, cmd: Sequence[Path], *, check: Optional[bool] = None, **options: Any
    ) -> Completed[Any]:
        """Runs a command, as brig.run_async()."""
        refuse_unknown("run_async", options, CaptureOptions)
        return await _run_async(self._launcher, cmd, _capture(options), check)

    @overload
    def start(
        self, cmd: Sequence[Path], *, text: Literal[True], **options: Unpack[StreamKeywords]
    ) -> Job[str]: ...

    @overload
    def start(
        self, cmd: Sequence[Path], *, text: Literal[False] = False, **options: Unpack[StreamKeywords]
    ) -> Job[bytes]: ...

    @signature(StreamOptions)
    def start(self, cmd: Sequence[Path], **options: Any) -> Job[Any]:
        """Starts a command, as brig.start()."""
        return _start(self._launcher, cmd, StreamOptions(**options))

    @overload
    async def start_async(
        self, cmd: Sequence[Path], *, text: Literal[True], **options: Unpack[StreamKeywords]
    ) -> AsyncJob[str]: ...

    @overload
    async def start_async(
        self, cmd: Sequence[Path], *, text: Literal[False] = False, **options: Unpack[StreamKeywords]
    ) -> AsyncJob[bytes]: ...

    @signature(StreamOptions)
    async def start_async(self, cmd: Sequence[Path], **options: Any) -> AsyncJob[Any]:
        """Starts a command, as brig.start_async()."""
        return await _start_async(self._launcher, cmd, StreamOptions(**options))

    def close(self) -> None:
        """Commands that were started go on; there can be no new ones. No other thread may be using it."""
        if self._launcher.template is not None:
            self._launcher.template._release()

    def __enter__(self) -> Template:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
