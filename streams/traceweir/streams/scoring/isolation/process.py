"""Starts a scoring process, exchanges requests and answers with the process, and ends it; this is the worker's side."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable, Sequence
from time import monotonic
from typing import cast

from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError
from traceweir.streams.scoring.isolation import protocol
from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.scoring.isolation.frame_writer import MOST_TOGETHER, FrameWriter
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.open_requests import OpenRequests
from traceweir.streams.scoring.isolation.silence import Silence, SilenceLimits, use_of
from traceweir.streams.scoring.judges.budget import Paid, Share
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult

log = logging.getLogger(__name__)

START_S = 300.0
"""Time limit in seconds until a process is ready; it may read a large model from a slow disk."""
SILENT_START_S = 30.0
"""Silence limit in seconds during the start. After Python has started, the process reports every second."""
LOOK_EVERY_S = 0.5
"""Interval in seconds between two checks for silence."""


class ScoringProcessDiedError(RuntimeError):
    """A scoring process ended unexpectedly."""


class NotStarted(Exception):  # noqa: N818  # an outcome that the caller handles
    """A scoring process ended before it started to score the session."""


class ScoringProcess(asyncio.Protocol):
    """A process that scores sessions. It takes requests after `connect`.

    Args:
        setup: What the process needs.
        launched: The Python process, if it was launched before; this object then owns it.

    Raises:
        EmbedderUnavailableError: the embedder cannot be loaded.
        JudgeUnavailableError: the packages that ask judges are not installed.
        ScoringProcessDiedError: the process ended before it was ready.
    """

    def __init__(self, setup: protocol.Setup, launched: LaunchedProcess | None = None) -> None:
        self._launched = launched or LaunchedProcess()
        self._socket = self._launched.socket
        self._process = self._launched.process
        self._setup = setup
        self._frames = protocol.Frames()
        self._transport: asyncio.Transport | None = None
        self._writer: FrameWriter | None = None
        self._requests = OpenRequests()
        self._closed = False
        self._silence = Silence(use_of(self._process.pid))
        self.lost: Callable[[str], object] = lambda reason: None
        """Called after an unexpected end, with its cause, when all waiting requests have failed."""
        self.paid: Callable[[Sequence[Paid]], object] = lambda paid: None
        """Called with the cost of a session, even if no task waits for its answer."""
        self.active: Callable[[ScoringActivity], object] = lambda activity: None
        """Called each second with what the process has done."""
        try:
            self.embedder_id = self._start(setup)
        except BaseException:
            self.close()
            raise

    def _start(self, setup: protocol.Setup) -> str | None:
        try:
            self._socket.settimeout(SILENT_START_S)
            protocol.send_object(self._socket, setup)
            until = monotonic() + START_S
            while isinstance(received := protocol.receive_object(self._socket), protocol.Loading):
                if monotonic() > until:
                    raise ScoringProcessDiedError(f"the scoring process was not ready within {START_S:g} s")
            ready = cast("protocol.Ready", received)
            self._socket.settimeout(None)
        except TimeoutError:
            raise ScoringProcessDiedError(
                f"the scoring process sent nothing for {SILENT_START_S:g} s before it was ready"
            ) from None
        except (EOFError, OSError):
            reason = self._ended()
            raise ScoringProcessDiedError(
                f"the scoring process ended before it was ready ({reason}); its log lines are above"
            ) from None
        if ready.unavailable:
            raise (JudgeUnavailableError if ready.judge else EmbedderUnavailableError)(ready.unavailable)
        return ready.embedder_id

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process takes no requests any more."""
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._requests)

    @property
    def fresh(self) -> bool:
        """Whether the process has had no request yet."""
        return not self._requests.asked

    async def connect(self) -> None:
        """Connects the process to the running event loop."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=self._socket)

    def ask(
        self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, configs: Configs = NO_CONFIGS
    ) -> asyncio.Future[ScoringResult]:
        """Requests the score of a session under an attempt number; `known` are the stored verdicts on this session.

        `configs` are the configs in effect, each passed to `add_config` before; none: the plan of the setup.

        Raises:
            SessionRejected: through the future; the session cannot be scored.
            ScoringProcessDiedError: through the future; the process died with this session in flight, possibly with others.
            NotStarted: through the future; the process died before it started with this session.
        """
        if self._closed:
            gone: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
            gone.set_exception(NotStarted())
            return gone
        if not self._requests:
            self._silence.end()
        number, answer = self._requests.begin()
        self._send(protocol.Ask(number, raw, list(known), attempt, configs))
        return answer

    def update_reference(self, reference_id: str, reference: bytes | None) -> None:
        """Passes a reference to the process; None removes it."""
        self._send(protocol.UpdateReference(reference_id, reference))

    def add_config(self, config_id: str, document: bytes) -> None:
        """Passes a config to the process."""
        self._send(protocol.AddConfig(config_id, document))

    def record_spend(self, paid: Paid) -> None:
        """Adds spending of other processes on judges; negative when a partition has moved away."""
        self._send(protocol.RecordSpend(paid))

    def set_budget_share(self, share: Share) -> None:
        """Sets the worker's share of the budget of judges."""
        self._send(protocol.SetBudgetShare(share))

    def kill_if_stuck(self, limits: SilenceLimits) -> None:
        """Kills the process if it has work and is silent beyond the limits. Call this every `LOOK_EVERY_S`."""
        if self.busy and (stuck := self._silence.check(LOOK_EVERY_S, limits)) is not None:
            log.warning("the scoring process is killed: %s", stuck)
            self.kill()

    def kill(self) -> None:
        """Kills the process and its children; requests fail as if it had died."""
        self._launched.kill()
        if self._transport is not None:
            # A child of the process can keep the socket open.
            self._transport.abort()

    def close(self) -> None:
        """Kills the process, even if it is busy. Open requests are never answered."""
        self._closed = True
        self.kill()
        self._launched.close()

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Notes that requests can be sent."""
        self._transport = cast("asyncio.Transport", transport)
        self._writer = FrameWriter(self._transport)

    def data_received(self, data: bytes) -> None:
        """Takes answers and heartbeats."""
        self._silence.end()
        for frame in self._frames.of(data):
            if isinstance(frame, protocol.Heartbeat):
                self.active(frame.activity)
            elif (judged := self._requests.take(frame)) is not None:
                self.paid(judged.paid)

    def connection_lost(self, error: Exception | None) -> None:
        """Fails all open requests after an unexpected end."""
        if self._closed:
            return
        reason = self._ended()
        self.close()
        # The scoring process starts sessions in the order of the requests. Answers that wait in its `FrameWriter` are lost
        # with it. Answers that wait because the socket is full are lost too, and are not counted here: that needs a worker
        # which has not read for long.
        most_begun = self._setup.concurrency + MOST_TOGETHER
        for place, each in enumerate(self._requests.end()):
            if not each.done():
                begun = place < most_begun
                each.set_exception(
                    ScoringProcessDiedError(f"the scoring process ended unexpectedly ({reason})")
                    if begun
                    else NotStarted()
                )
        self.lost(reason)

    def _send(
        self,
        frame: protocol.Ask
        | protocol.AddConfig
        | protocol.UpdateReference
        | protocol.RecordSpend
        | protocol.SetBudgetShare,
    ) -> None:
        if self._writer is None:
            raise RuntimeError("the scoring process got a request before `connect`; await `connect` first")
        self._writer.write(frame)

    def _ended(self) -> str:
        try:
            status = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            # The process lives, and only the connection is gone.
            self.kill()
            status = self._process.wait()
        return f"signal {-status}" if status < 0 else f"exit status {status}"
