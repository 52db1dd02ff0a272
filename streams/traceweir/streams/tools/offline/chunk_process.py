"""A process that scores chunks of sessions: this side of its socket."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Sequence
from typing import cast

import msgspec

from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.tools.offline.session_chunks import ChunkSession, SessionOutputs

_SIZE_BYTES = 4
_encode = msgspec.msgpack.Encoder().encode
_outputs = msgspec.msgpack.Decoder(list[SessionOutputs]).decode
_sessions = msgspec.msgpack.Decoder(list[ChunkSession]).decode


class ChunkProcessDied(Exception):  # noqa: N818  # an outcome that the caller handles
    """The process ended with chunks in flight; the message says how it ended."""


class ChunkProcess(asyncio.Protocol):
    """A process that scores chunks in the order of the requests. It takes chunks after `connect`.

    Args:
        setup: The pickled `ProcessSetup`.
    """

    def __init__(self, setup: bytes) -> None:
        # What scorers print goes to stderr, because stdout has the scores.
        self._launched = LaunchedProcess("traceweir.streams.tools.offline.scoring_child", stdout=2)
        self._socket = self._launched.socket
        self._process = self._launched.process
        self._setup: bytes | None = setup
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: deque[asyncio.Future[list[SessionOutputs]]] = deque()
        self._ended: ChunkProcessDied | None = None
        self.ready = False
        """Whether the process has started to take chunks."""
        self.fresh = True
        """Whether the process has had no chunk yet."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def connect(self) -> None:
        """Connects the process to the running event loop."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=self._socket)

    def ask(self, sessions: Sequence[ChunkSession]) -> asyncio.Future[list[SessionOutputs]]:
        """Requests the outputs of sessions.

        Raises:
            ChunkProcessDied: through the future; the process ended.
        """
        answer: asyncio.Future[list[SessionOutputs]] = asyncio.get_running_loop().create_future()
        self.fresh = False
        if self._ended is not None or self._transport is None:
            answer.set_exception(self._ended or ChunkProcessDied("it was not connected"))
            return answer
        self._waiting.append(answer)
        self._transport.write(framed(_encode(sessions)))
        return answer

    def close(self) -> None:
        """Ends the process, even if it is busy. Open requests fail."""
        if self._transport is not None:
            self._transport.abort()
        self._launched.close()

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the setup."""
        self._transport = cast("asyncio.Transport", transport)
        if self._setup is not None:
            self._transport.write(framed(self._setup))
            self._setup = None

    def data_received(self, data: bytes) -> None:
        """Takes answers, in the order of the requests; the first message says that the process is ready."""
        received = self._received
        received += data
        while len(received) >= _SIZE_BYTES:
            end = _SIZE_BYTES + int.from_bytes(received[:_SIZE_BYTES])
            if len(received) < end:
                return
            message = bytes(received[_SIZE_BYTES:end])
            del received[:end]
            if not self.ready:
                self.ready = True
                continue
            answer = self._waiting.popleft()
            # Otherwise its caller was cancelled.
            if not answer.done():
                answer.set_result(_outputs(message))

    def connection_lost(self, error: Exception | None) -> None:
        """Fails the open requests: the process has ended."""
        self._ended = ChunkProcessDied(self._how_it_ended())
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(self._ended)
        self._waiting.clear()

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "it closed its socket"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def framed(message: bytes) -> bytes:
    """Returns a message with its size before it, as on the socket."""
    return len(message).to_bytes(_SIZE_BYTES) + message


def receive(connection: socket.socket) -> bytes:
    """Returns the next message.

    Raises:
        EOFError: the other side closed the socket.
    """
    size = int.from_bytes(_exactly(connection, _SIZE_BYTES))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        more = connection.recv(min(size - len(found), 1 << 20))
        if not more:
            raise EOFError("the other side closed the socket")
        found += more
    return bytes(found)


def sessions_of(message: bytes) -> list[ChunkSession]:
    """Returns the sessions of a request."""
    return _sessions(message)


def answer_of(outputs: Sequence[SessionOutputs]) -> bytes:
    """Returns the message of an answer, with its size before it."""
    return framed(_encode(outputs))
