"""Writes the spans of scoring a session: the session, each run of a scorer, and each question to a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags

from traceweir.schemas.score import Cost
from traceweir.schemas.session import Session
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Measurement
from traceweir.scorers.evaluation.outcome import Outcome
from traceweir.streams.base.process_log import CURRENT_SPAN
from traceweir.streams.scoring.tracing.producers import MAX_LINKS
from traceweir.streams.scoring.tracing.session_spans import SessionSpans, SpanOf, assembled, scored


@dataclass(slots=True)
class _Run:
    """A run of a scorer, to which questions to judges belong."""

    span: SpanOf
    questions: int = 0


_run: ContextVar[_Run | None] = ContextVar("run", default=None)


@dataclass(slots=True)
class ScoreSpans:
    """Writes the spans of one session."""

    spans: SessionSpans
    span: SpanOf
    version: tuple[int, int]
    """Revision and attempt."""
    start_ns: int
    links: Sequence[Link] = field(default=())

    @classmethod
    def of(cls, spans: SessionSpans, session: Session, turns: Sequence[Turn], attempt: int) -> ScoreSpans | None:
        """Returns the spans of a session, with links to its invocations in the agents' traces; None: it is not traced."""
        if not spans.traces(session.session_id.encode()):
            return None
        span = scored(session.session_id, session.segment, session.revision, attempt)
        links = tuple(_links(turns))[:MAX_LINKS]
        return cls(spans, span, (session.revision, attempt), spans.now_ns(), links)

    @contextmanager
    def scoring(self) -> Iterator[None]:
        """Writes the span of the session when the block ends."""
        with _named_in_logs(self.span):
            error_type = None
            try:
                yield
            except BaseException as error:
                error_type = type(error).__name__
                raise
            finally:
                revision, attempt = self.version
                self.spans.write(
                    "score",
                    self.span,
                    assembled(self.span.session_id, self.span.segment, revision),
                    self.start_ns,
                    attributes={"traceweir.revision": revision, "traceweir.attempt": attempt},
                    links=self.links,
                    error_type=error_type,
                )

    @contextmanager
    def measuring(self, metric: str, subject: str) -> Iterator[Callable[[Outcome], object]]:
        """Yields a function that receives the outcome of a run of a scorer; then the span is written when the block ends."""
        start_ns = self.spans.now_ns()
        outcomes = list[Outcome]()
        run = _Run(self.span.other("evaluate", *self.version, metric, subject))
        token = _run.set(run)
        try:
            with _named_in_logs(run.span):
                yield outcomes.append
        finally:
            _run.reset(token)
            for outcome in outcomes:
                value = outcome.value if isinstance(outcome, Measurement) else None
                self.spans.write(
                    f"evaluate {metric}",
                    run.span,
                    self.span,
                    start_ns,
                    attributes={
                        "gen_ai.evaluation.name": metric,
                        "gen_ai.evaluation.score.value": value,
                        "traceweir.subject.id": subject,
                    },
                    error_type=None if isinstance(outcome, Measurement) else outcome.because,
                )

    @contextmanager
    def asking(self, model: str) -> Iterator[Callable[[Cost], object]]:
        """Yields a function that receives the cost of a judge's answer, and writes the span of the question."""
        start_ns = self.spans.now_ns()
        costs = list[Cost]()
        error_type = None
        run = _run.get() or _Run(self.span)
        run.questions += 1
        span = run.span.other(*run.span.key, "chat", run.questions)
        try:
            with _named_in_logs(span):
                yield costs.append
        except BaseException as error:
            error_type = type(error).__name__
            raise
        finally:
            cost = costs[0] if costs else None
            self.spans.write(
                f"chat {model}",
                span,
                run.span,
                start_ns,
                attributes={
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": model,
                    "gen_ai.usage.input_tokens": cost.input_tokens if cost else None,
                    "gen_ai.usage.output_tokens": cost.output_tokens if cost else None,
                    "traceweir.judge.cached": cost.cached if cost else None,
                    "traceweir.judge.usd": cost.usd if cost else None,
                },
                error_type=error_type,
                kind=SpanKind.CLIENT,
            )


@contextmanager
def _named_in_logs(span: SpanOf) -> Iterator[None]:
    ids = span.context
    token = CURRENT_SPAN.set((f"{ids.trace_id:032x}", f"{ids.span_id:016x}"))
    try:
        yield
    finally:
        CURRENT_SPAN.reset(token)


def _links(turns: Sequence[Turn]) -> Iterator[Link]:
    for turn in turns:
        found = turn.dimensions.trace_context
        if found is not None and found.span_id:
            yield Link(SpanContext(int(found.trace_id, 16), int(found.span_id, 16), True, TraceFlags()))
