"""Writes the spans of the stages assemble and gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from opentelemetry.trace import SpanKind

from traceweir.schemas.candidate import Candidate
from traceweir.schemas.dead_letter import Headers
from traceweir.streams.scoring.tracing.producers import links_of, note_context
from traceweir.streams.scoring.tracing.session_spans import SessionSpans, assembled, scored

_NS_PER_MS = 1_000_000
_UNTRACED: dict[bytes, None] = {}
"""The contexts of each session that is not traced; nothing is added to it."""


class JoinedSession(Protocol):
    """A session whose records the stage assemble joins."""

    contexts: dict[bytes, None] | None
    """Trace contexts of its records since this process reads it, as headers; None before the first."""

    @property
    def id(self) -> bytes: ...
    @property
    def segment(self) -> int: ...
    @property
    def revision(self) -> int: ...
    @property
    def count(self) -> int:
        """Number of joined records."""

    @property
    def first_record(self) -> int:
        """Timestamp of the first record in milliseconds since 1970."""

    @property
    def closed_because(self) -> str | None:
        """Why the session closed."""


class AssembleSpans:
    """Writes a span for each closed session, from its first record to its close, with links to the records' producers."""

    def __init__(self, spans: SessionSpans) -> None:
        self._spans = spans

    def note(self, session: JoinedSession, headers: Headers) -> None:
        """Notes the trace context of a record that joined a session."""
        if session.contexts is None:
            traced = self._spans.traces(session.id)
            session.contexts = {} if traced else _UNTRACED
        if session.contexts is not _UNTRACED:
            note_context(session.contexts, headers)

    def closed(self, sessions: Sequence[JoinedSession]) -> None:
        """Writes the spans of closed sessions."""
        for session in sessions:
            if self._spans.traces(session.id):
                session_id = session.id.decode()
                self._spans.write(
                    "assemble",
                    assembled(session_id, session.segment, session.revision),
                    None,
                    session.first_record * _NS_PER_MS,
                    attributes={
                        "messaging.system": "kafka",
                        "messaging.operation.type": "process",
                        "messaging.batch.message_count": session.count,
                        "traceweir.revision": session.revision,
                        "traceweir.session.closed_by": session.closed_because,
                    },
                    links=links_of(session.contexts or ()),
                    kind=SpanKind.CONSUMER,
                )


class GateSpans:
    """Writes a span for each decision of the gate."""

    def __init__(self, spans: SessionSpans) -> None:
        self._spans = spans

    def now_ns(self) -> int:
        """Returns the time in nanoseconds since 1970."""
        return self._spans.now_ns()

    def decided(self, candidate: Candidate, start_ns: int, value: float | None, reasons: Sequence[str]) -> None:
        """Writes the span of a decision; without reasons, the trace was accepted."""
        if not self._spans.traces(candidate.session_id.encode()):
            return
        version = candidate.revision, candidate.attempt
        parent = scored(candidate.session_id, candidate.segment, *version)
        self._spans.write(
            "gate",
            parent.other("gate", *version, candidate.trace.id),
            parent,
            start_ns,
            attributes={
                "traceweir.trace.id": candidate.trace.id,
                "traceweir.trace.value": value,
                "traceweir.gate.accepted": not reasons,
                "traceweir.gate.reasons": tuple(reasons) or None,
            },
        )
