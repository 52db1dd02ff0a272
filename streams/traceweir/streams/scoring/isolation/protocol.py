"""Defines the messages between the worker and its scoring process, over a socket that only these two share."""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from traceweir.schemas.dead_letter import Reason
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.process_log import LogOptions
from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.scoring.embedders.loading import load_embedder
from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.scoring.judges.budget import Paid, Share
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.verdicts import JudgeUsage, JudgeVerdict
from traceweir.streams.scoring.sessions.options import ScoringOptions
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.user_ids import HASHED, UserIds

# The scoring process reads no settings, and starts earlier without the import.
if TYPE_CHECKING:
    from traceweir.streams.base.settings import Settings

_SIZE = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Setup:
    """What the scoring process needs at its start."""

    plan: Plan
    embedder: str | Embedder | None
    """The setting that names the embedder, or an embedder that runs inline."""
    timeout_s: float
    concurrency: int
    access: Access = field(default_factory=Access)
    judge_timeout_s: float | None = None
    log: LogOptions = field(default_factory=LogOptions)
    user_ids: UserIds = HASHED
    background: bool = False
    """Whether other processes come first where they compete for a core. Such a process writes no spans."""
    clock: Callable[[], datetime] | None = None
    """Returns the time of scores and candidates; None: the clock of the process."""
    settles: bool = False
    """Whether sessions are scored again after `settle_s` of their criteria, as by a worker."""

    @classmethod
    def of(cls, settings: Settings, plan: Plan) -> Setup:
        """Returns the setup for a worker's settings and plan."""
        return cls(
            plan,
            settings.embedder,
            settings.score_timeout_s,
            settings.score_concurrency,
            Access.of(settings),
            settings.judge_timeout_s,
            settings.log_options,
            UserIds.of(settings),
        )

    def load_embedder(self) -> Embedder | None:
        """Returns the embedder; None: novelty is 0.5.

        Raises:
            EmbedderUnavailableError: the named embedder cannot be loaded.
        """
        return load_embedder(self.embedder) if isinstance(self.embedder, str) else self.embedder

    @property
    def options(self) -> ScoringOptions:
        """The settings that the scoring of a session follows."""
        return ScoringOptions(self.timeout_s, self.judge_timeout_s, self.user_ids, self.settles)


@dataclass(frozen=True, slots=True)
class Ready:
    """To the worker: the process is ready, with the id of its embedder, or it cannot start, with the reason."""

    embedder_id: str | None = None
    unavailable: str | None = None
    judge: bool = False
    """Whether the judge is unavailable; otherwise the embedder is."""


@dataclass(frozen=True, slots=True)
class Loading:
    """To the worker, every second until `Ready`: the process is still loading."""


def send_object(connection: socket.socket, thing: Setup | Loading | Ready) -> None:
    """Sends one object, before the first frame.

    Raises:
        ConfigError: a scorer of the plan cannot be sent.
    """
    if isinstance(thing, Setup):
        refuse_unsendable(thing.plan)
    body = pickle.dumps(thing)
    connection.sendall(len(body).to_bytes(4) + body)


def receive_object(connection: socket.socket) -> Setup | Loading | Ready:
    """Receives one object.

    Raises:
        EOFError: the other side closed the socket.
    """

    def exactly(size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = connection.recv(size - len(found))
            if not more:
                raise EOFError("the other side closed the socket")
            found += more
        return found

    thing: Setup | Loading | Ready = pickle.loads(exactly(int.from_bytes(exactly(4))))  # noqa: S301  # sent by our own other process
    return thing


def refuse_unsendable(plan: Plan) -> None:
    """Checks that the scorers of a plan can be sent to a scoring process.

    Raises:
        ConfigError: a scorer cannot be sent.
    """
    problems = []
    beside = plan.challenger.plan.metrics if plan.challenger is not None else ()
    for section, metric in [("", each) for each in plan.metrics] + [("challenger.config.", each) for each in beside]:
        try:
            pickle.dumps(metric.scorer)
        except Exception as error:  # noqa: BLE001  # a plugin can have fields of any type
            problems.append(
                f"{section}criteria.{metric.name}: its scorer cannot be sent to the scoring process ({error}); "
                "it must create clients, locks and the like at their first use, not in its constructor"
            )
    if problems:
        raise ConfigError(problems)


class Ask(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: score a session."""

    number: int
    """Number of the request; the answer has the same number."""
    session: bytes
    """The session, as on its topic."""
    known: list[JudgeVerdict] = []
    """Stored verdicts of judges on this session."""
    attempt: int = 0
    """The attempt number of its scores and candidates."""
    configs: Configs = NO_CONFIGS
    """The configs in effect, each sent before; none: the plan of the setup."""


class AddConfig(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: a config, which later requests can name by its id."""

    config_id: str
    document: bytes


class UpdateReference(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: a reference has changed, or was removed (None). Later requests use it."""

    reference_id: str
    reference: bytes | None


class RecordSpend(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: adds earlier spending; negative when a partition has moved away."""

    paid: Paid


class SetBudgetShare(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: sets its worker's share of the budget of judges."""

    share: Share


class Answer(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the worker: the result of scoring a session."""

    number: int
    """Number of the `Ask`."""
    result: ScoringResult


class ScoringRefusal(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the worker: why a session cannot be scored, as in `SessionRejected`."""

    number: int
    """Number of the `Ask`."""
    reason: Reason
    detail: str
    judged: JudgeUsage


class Heartbeat(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the worker, every second: the event loop is not blocked."""

    activity: ScoringActivity
    """What the process has done since the last heartbeat."""


Frame = Ask | AddConfig | UpdateReference | RecordSpend | SetBudgetShare | Answer | ScoringRefusal | Heartbeat
_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(Frame).decode


def packed(frame: Frame) -> bytes:
    """Returns the bytes of a frame on the socket."""
    body = _encode(frame)
    return _SIZE.pack(len(body)) + body


class Frames:
    """Decodes frames from a stream of bytes that arrives in pieces of any size.

    >>> frames, sent = Frames(), packed(UpdateReference("a", None)) + packed(Ask(7, b"{}"))
    >>> [*frames.of(sent[:5]), *frames.of(sent[5:])]
    [UpdateReference(reference_id='a', reference=None), Ask(number=7, session=b'{}', known=[], attempt=0, configs=())]
    """

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> Iterator[Any]:
        """Yields the frames that these bytes complete."""
        data = self._rest + data if self._rest else data
        at = 0
        while len(data) - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(data, at)
            end = at + _SIZE.size + size
            if len(data) < end:
                break
            yield _decode(data[at + _SIZE.size : end])
            at = end
        self._rest = data[at:]
