# SPDX-License-Identifier: MIT
"""Jobs for asyncio: the same as Job, with coroutines, and without a thread."""

from __future__ import annotations

import asyncio
import codecs
import errno
from typing import Any, AnyStr, Generic, List, Optional, Tuple, Union, cast

from ._job import Base
from ._options import StreamOptions
from ._result import Completed
from ._running import Running
from ._wait import wait_async

# A line that is longer comes in pieces.
_LINE_MAX = 1 << 20
_CHUNK = 65536


class _Reader(asyncio.StreamReader):
    """A terminal whose programs have ended is at its end, not broken."""

    def set_exception(self, exc: Any) -> None:
        if isinstance(exc, OSError) and exc.errno == errno.EIO:
            self.feed_eof()
        else:
            super().set_exception(exc)


class AsyncReader(Generic[AnyStr]):
    """What the command prints: `async for line in job.stdout`."""

    def __init__(self, reader: asyncio.StreamReader, options: StreamOptions) -> None:
        self._reader = reader
        self._text = options.text
        make = codecs.getincrementaldecoder(options.encoding or "utf-8")
        self._decoder = make(options.errors)

    def _made(self, data: bytes) -> AnyStr:
        made: Any = self._decoder.decode(data, not data) if self._text else data
        return cast(AnyStr, made)

    async def _bytes(self, size: int) -> bytes:
        return await self._reader.read(size)

    async def read(self, size: int = -1) -> AnyStr:
        """What is there, at most `size` bytes, waiting for the first; with -1 all of it to the end."""
        return self._made(await self._bytes(size))

    async def readline(self) -> AnyStr:
        """A line with its end; empty when there is no more."""
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            line = error.partial
        except asyncio.LimitOverrunError as error:
            line = await self._reader.readexactly(error.consumed)
        return self._made(line)

    def __aiter__(self) -> AsyncReader[AnyStr]:
        return self

    async def __anext__(self) -> AnyStr:
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line


class AsyncWriter(Generic[AnyStr]):
    """What the command reads. write() takes all; drain() waits until the command has taken enough."""

    def __init__(self, writer: asyncio.StreamWriter, options: StreamOptions) -> None:
        self._writer = writer
        self._encoding = options.encoding or "utf-8"

    def write(self, data: AnyStr) -> None:
        given: Union[str, bytes] = data
        self._writer.write(given.encode(self._encoding) if isinstance(given, str) else given)

    async def drain(self) -> None:
        await self._writer.drain()

    def close(self) -> None:
        """The command reads the end of the file once all was written."""
        self._writer.close()


class AsyncJob(Base[AnyStr]):
    """A command that runs in a jail: start_async() makes it. As Job, for asyncio.

    >>> async with await brig.start_async(["ls"], stdout=brig.PIPE, text=True) as job:
    ...     async for line in job.stdout: ...
    """

    def __init__(self, running: Running, options: StreamOptions) -> None:
        super().__init__(running, options)
        self._task = asyncio.get_running_loop().create_task(
            wait_async(running.fds, running.process)
        )
        self._transports: List[asyncio.BaseTransport] = []
        self._writer: Optional[AsyncWriter[AnyStr]] = None
        self._readers: List[Optional[AsyncReader[AnyStr]]] = [None, None, None]

    async def _open(self) -> None:
        """Connects the pipes, or the terminal, to the event loop."""
        writing, *reading = self._running.ends
        if self._options.pty:
            reading[0], writing = self._running.terminal(), self._running.terminal()
        if writing >= 0:
            self._writer = await self._connect_writer(writing)
        for stream, fd in enumerate(reading, 1):
            if fd >= 0:
                self._readers[stream] = await self._connect_reader(fd)

    async def _connect_reader(self, fd: int) -> AsyncReader[AnyStr]:
        loop = asyncio.get_running_loop()
        reader = _Reader(limit=_LINE_MAX, loop=loop)
        file = open(fd, "rb", 0)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader, loop=loop), file
        )
        self._transports.append(transport)
        return AsyncReader(reader, self._options)

    async def _connect_writer(self, fd: int) -> AsyncWriter[AnyStr]:
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), loop=loop)
        transport, _ = await loop.connect_write_pipe(lambda: protocol, open(fd, "wb", 0))
        self._transports.append(transport)
        writer = asyncio.StreamWriter(cast(Any, transport), protocol, None, loop)
        return AsyncWriter(writer, self._options)

    @property
    def stdin(self) -> AsyncWriter[AnyStr]:
        """With stdin=PIPE, or the terminal with pty=True."""
        if self._writer is None:
            raise ValueError("stdin is not a pipe: start_async(…, stdin=brig.PIPE)")
        return self._writer

    @property
    def stdout(self) -> AsyncReader[AnyStr]:
        """With stdout=PIPE, or the terminal with pty=True."""
        return self._pipe(1, "stdout")

    @property
    def stderr(self) -> AsyncReader[AnyStr]:
        """With stderr=PIPE."""
        return self._pipe(2, "stderr")

    def _pipe(self, stream: int, name: str) -> AsyncReader[AnyStr]:
        reader = self._readers[stream]
        if reader is None:
            raise ValueError(f"{name} is not a pipe: start_async(…, {name}=brig.PIPE)")
        return reader

    async def _end(self, timeout: Optional[float]) -> None:
        done, _ = await asyncio.wait({self._task}, timeout=timeout)
        if not done:
            raise self._expired(timeout or 0)
        self._task.result()

    async def wait(self, timeout: Optional[float] = None) -> int:
        """As Job.wait()."""
        await self._end(timeout)
        return self._checked().returncode

    async def result(self, timeout: Optional[float] = None) -> Completed[AnyStr]:
        """As Job.result()."""
        await self._end(timeout)
        return self._whole()

    async def communicate(self, input: Optional[AnyStr] = None) -> Tuple[AnyStr, AnyStr]:
        """As Job.communicate(); for a time limit of your own, asyncio.wait_for()."""
        if input is not None:
            self.stdin.write(input)
        if self._writer is not None and not self._options.pty:
            self._writer.close()
        limit = self._running.output_limit()
        await asyncio.gather(self._collect(1, limit), self._collect(2, limit), self._end(None))
        self._checked()
        return self._outputs()

    async def _collect(self, stream: int, limit: int) -> None:
        reader = self._readers[stream]
        while reader is not None:
            data = await reader._bytes(_CHUNK)
            if not data:
                return
            self._keep(stream, data, limit)

    async def close(self) -> None:
        """Closes the streams, and ends the command if it still runs."""
        self._running.abandon()
        await asyncio.wait({self._task})
        self._close_transports()
        self._running.release()

    def _close_transports(self) -> None:
        for transport in self._transports:
            transport.close()

    async def __aenter__(self) -> AsyncJob[AnyStr]:
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            await self.close()
            return
        self._close_transports()
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:
            await self.close()
            raise

    def __del__(self) -> None:
        running = getattr(self, "_running", None)
        if running is not None and running.completed() is None:
            running.abandon()
