"""The worker's end of a scoring process: one process, what it was asked, and what became of it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import cast

from traceweir.streams.judges.budget import Paid, Share
from traceweir.streams.judges.errors import JudgeUnavailableError
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.embedders import EmbedderUnavailableError
from traceweir.streams.scoring.protocol import (
    Answer,
    Ask,
    Frames,
    Heartbeat,
    Loading,
    Ready,
    RecordSpend,
    Refusal,
    SetBudgetShare,
    Setup,
    UpdateReference,
    packed,
    receive_object,
    send_object,
)
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.stages.errors import SessionRejected

log = logging.getLogger(__name__)

START_S = 300.0
"""How long a process may take to be ready: a large model may have to be read from a slow disk."""
SILENT_START_S = 30.0
"""How long it may say nothing meanwhile. It speaks every second, once Python itself has started, unless it is frozen."""
LOOK_EVERY_S = 0.5
"""How often to look whether it is silent."""


class ScoringProcessDiedError(RuntimeError):
    """A scoring process ended on its own."""


class NotStarted(Exception):  # noqa: N818  # an outcome that the caller handles
    """A scoring process ended before it began with a session."""


class ScoringProcess(asyncio.Protocol):
    """A process that scores sessions, from its start to its end. It can be asked once it is connected.

    Args:
        setup: What it has to know.

    Raises:
        EmbedderUnavailableError: the embedder cannot be loaded.
        JudgeUnavailableError: what asks judges is not installed.
        ScoringProcessDiedError: it ended before it was ready.
    """

    def __init__(self, setup: Setup) -> None:
        self._socket, its_socket = socket.socketpair()
        its_lifeline, self._lifeline = os.pipe()
        ends = its_socket.fileno(), its_lifeline
        self._setup = setup
        # The modules that this process finds, and not those that lie where it happens to have been started.
        command = [sys.executable, "-P", "-m", "traceweir.streams.scoring.child", *map(str, ends)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        self._process = subprocess.Popen(  # noqa: S603  # of our own
            command, env=environment, pass_fds=ends, stdin=subprocess.DEVNULL, process_group=0
        )
        its_socket.close()
        os.close(its_lifeline)
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[ScoringResult]] = {}
        self._closed = False
        self.silence_s = 0.0
        """How long it has said nothing, as those who look add it up: the clock goes on while the worker itself is frozen."""
        self.lost: Callable[[str], object] = lambda how: None
        """Called with how it ended, once it ended on its own, after all who wait were told."""
        self.paid: Callable[[Sequence[Paid]], object] = lambda paid: None
        """Called with what a session cost, whether or not anybody waits for it still."""
        try:
            self.embedder_id = self._begun(setup)
        except BaseException:
            self.close()
            raise

    def _begun(self, setup: Setup) -> str | None:
        try:
            self._socket.settimeout(SILENT_START_S)
            send_object(self._socket, setup)
            until = monotonic() + START_S
            while isinstance(said := receive_object(self._socket), Loading):
                if monotonic() > until:
                    raise ScoringProcessDiedError(f"the scoring process was not ready within {START_S:g} s")
            ready = cast("Ready", said)
            self._socket.settimeout(None)
        except TimeoutError:
            raise ScoringProcessDiedError(
                f"the scoring process said nothing for {SILENT_START_S:g} s before it was ready"
            ) from None
        except (EOFError, OSError):
            how = self._ended()
            raise ScoringProcessDiedError(
                f"the scoring process ended before it was ready ({how}); what it said stands above"
            ) from None
        if ready.unavailable:
            raise (JudgeUnavailableError if ready.judge else EmbedderUnavailableError)(ready.unavailable)
        return ready.embedder_id

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it can be asked no more."""
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether it was asked for something and has not answered."""
        return bool(self._waiting)

    @property
    def fresh(self) -> bool:
        """Whether it was asked for nothing yet."""
        return not self._asked

    async def connect(self) -> None:
        """Connect it with the running event loop."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=self._socket)

    def ask(self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> asyncio.Future[ScoringResult]:
        """Have a session scored, of which these verdicts are known, under an attempt number.

        Raises:
            Unscorable: by the answer; nothing can come of the session.
            ScoringProcessDied: by the answer; it died while it was at this session, and perhaps at others.
            NotBegun: by the answer; it died before.
        """
        if self._closed:
            gone: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
            gone.set_exception(NotStarted())
            return gone
        if not self._waiting:
            self.silence_s = 0.0
        self._asked += 1
        answer = self._waiting[self._asked] = asyncio.get_running_loop().create_future()
        self._send(Ask(self._asked, raw, list(known), attempt))
        return answer

    def update_reference(self, reference_id: str, reference: bytes | None) -> None:
        """Tell it a reference, or with None that it is gone."""
        self._send(UpdateReference(reference_id, reference))

    def record_spend(self, paid: Paid) -> None:
        """Tell it what others paid for judges, or (less than 0) what is another worker's business now."""
        self._send(RecordSpend(paid))

    def set_budget_share(self, share: Share) -> None:
        """Tell it how much of what judging may cost is its worker's."""
        self._send(SetBudgetShare(share))

    def kill_if_silent(self, limit_s: float) -> None:
        """End it if it was asked for something and has said nothing for so long. To be called every `LOOK_EVERY_S`."""
        self.silence_s += LOOK_EVERY_S
        if self.busy and self.silence_s > limit_s:
            log.warning("the scoring process has said nothing for %g s: a scorer holds it; it is ended", limit_s)
            self.kill()

    def kill(self) -> None:
        """End it, and what it started, as if it had died."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._transport is not None:
            self._transport.abort()  # a process that it started may hold its end of the socket

    def close(self) -> None:
        """End it, whatever it is at. Who waits waits for ever."""
        self._closed = True
        self.kill()
        self._process.wait()
        self._socket.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be asked now."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answers have come."""
        self.silence_s = 0.0
        for frame in self._frames.of(data):
            if not isinstance(frame, Heartbeat):
                self._answered(frame)

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended."""
        if self._closed:
            return
        how = self._ended()
        self.close()
        waiting, self._waiting = self._waiting, {}
        # It begins in the order in which it is asked.
        for place, each in enumerate(waiting.values()):
            if not each.done():
                begun = place < self._setup.concurrency
                each.set_exception(ScoringProcessDiedError(f"it ended on its own ({how})") if begun else NotStarted())
        self.lost(how)

    def _answered(self, answer: Answer | Refusal) -> None:
        self.paid(answer.result.judged.paid if isinstance(answer, Answer) else answer.judged.paid)
        waiting = self._waiting.pop(answer.number)
        if waiting.done():  # nobody waits any more
            return
        if isinstance(answer, Answer):
            waiting.set_result(answer.result)
        else:
            waiting.set_exception(SessionRejected(answer.reason, answer.detail, answer.judged))

    def _send(self, frame: Ask | UpdateReference | RecordSpend | SetBudgetShare) -> None:
        if self._transport is None:
            raise RuntimeError("the scoring process is asked before it is connected")
        self._transport.write(packed(frame))

    def _ended(self) -> str:
        try:
            status = self._process.wait(0.5)
        except subprocess.TimeoutExpired:  # it lives, and only the connection is gone
            self.kill()
            status = self._process.wait()
        return f"signal {-status}" if status < 0 else f"exit status {status}"
