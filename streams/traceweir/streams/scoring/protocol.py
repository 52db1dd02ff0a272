"""What the worker and its scoring process say to each other, over a socket that only they share."""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from traceweir.schemas.dead_letter import Reason
from traceweir.scorers.evaluation.plan import ConfigError, Plan
from traceweir.streams.judges.budget import Paid, Share
from traceweir.streams.judges.client import Access
from traceweir.streams.judges.verdicts import JudgeUsage, JudgeVerdict
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.settings import Settings

_SIZE = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Setup:
    """What the scoring process has to know before it begins."""

    plan: Plan
    embedder: str
    timeout_s: float
    concurrency: int
    access: Access = field(default_factory=Access)
    judge_timeout_s: float | None = None

    @classmethod
    def of(cls, settings: Settings, plan: Plan) -> Setup:
        """As a worker's settings have it."""
        return cls(
            plan,
            settings.embedder,
            settings.score_timeout_s,
            settings.score_concurrency,
            Access(settings.judge_api_base, settings.judge_api_key),
            settings.judge_timeout_s,
        )


@dataclass(frozen=True, slots=True)
class Ready:
    """What it says when it can begin: the id of its embedder, None if it has none; or why it cannot."""

    embedder_id: str | None = None
    unavailable: str | None = None
    judge: bool = False
    """Whether it is the judge that is unavailable, not the embedder."""


@dataclass(frozen=True, slots=True)
class Loading:
    """What it says every second until then."""


def send_object(connection: socket.socket, thing: Setup | Loading | Ready) -> None:
    """Send one object; before the frames begin.

    Raises:
        ConfigError: a scorer of the plan cannot be sent.
    """
    if isinstance(thing, Setup):
        _refuse_unsendable(thing.plan)
    body = pickle.dumps(thing)
    connection.sendall(len(body).to_bytes(4) + body)


def receive_object(connection: socket.socket) -> Setup | Loading | Ready:
    """Receive one object.

    Raises:
        EOFError: the other end is gone.
    """

    def exactly(size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = connection.recv(size - len(found))
            if not more:
                raise EOFError("the other end of the socket is gone")
            found += more
        return found

    thing: Setup | Loading | Ready = pickle.loads(exactly(int.from_bytes(exactly(4))))  # noqa: S301  # of our own other half
    return thing


def _refuse_unsendable(plan: Plan) -> None:
    problems = []
    for metric in plan.metrics:
        try:
            pickle.dumps(metric.scorer)
        except Exception as error:  # noqa: BLE001  # a plugin's fields may be anything
            problems.append(
                f"criteria.{metric.name}: its scorer cannot be sent to the scoring process ({error}); "
                "it must make clients, locks and the like when it first needs them, not when it is made"
            )
    if problems:
        raise ConfigError(problems)


class Ask(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: score a session."""

    number: int
    """Comes back with the answer."""
    session: bytes
    """The session as it stands on its topic."""
    known: list[JudgeVerdict] = []
    """Verdicts that judges gave on it before."""
    attempt: int = 0
    """The attempt number that its scores and candidates get."""


class UpdateReference(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: a reference has changed; None: it is gone. It counts for what is asked after it."""

    reference_id: str
    reference: bytes | None


class RecordSpend(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: this was paid before it was there; less than 0: it is another worker's business now."""

    paid: Paid


class SetBudgetShare(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the scoring process: so much of what judging may cost is its worker's."""

    share: Share


class Answer(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the worker: what scoring a session gave back."""

    number: int
    """That of the `Ask`."""
    result: ScoringResult


class Refusal(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the worker: why a session cannot be scored. `SessionRejected`, which cannot cross a socket itself."""

    number: int
    """That of the `Ask`."""
    reason: Reason
    detail: str
    judged: JudgeUsage


class Heartbeat(msgspec.Struct, tag=True, array_like=True, gc=False):
    """To the worker, every second: nothing holds the event loop."""


Frame = Ask | UpdateReference | RecordSpend | SetBudgetShare | Answer | Refusal | Heartbeat
_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(Frame).decode


def packed(frame: Frame) -> bytes:
    """A frame as it goes over the socket."""
    body = _encode(frame)
    return _SIZE.pack(len(body)) + body


class Frames:
    """Makes frames of the bytes that arrive, in whatever pieces.

    >>> frames, sent = Frames(), packed(UpdateReference("a", None)) + packed(Ask(7, b"{}"))
    >>> [*frames.of(sent[:5]), *frames.of(sent[5:])]
    [UpdateReference(reference_id='a', reference=None), Ask(number=7, session=b'{}', known=[], attempt=0)]
    """

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> Iterator[Any]:
        """The frames that are complete with these bytes."""
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
