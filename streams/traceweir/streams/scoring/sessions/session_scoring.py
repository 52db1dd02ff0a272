"""Scores one session: runs the metrics of the plan, embeds the traces, and serialises scores and candidates."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.candidate import Candidate, CriterionMeasure, Embedding, Verdict
from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.normal_form import normal_form
from traceweir.schemas.score import UNANSWERED, Score, reported_status, uuid5
from traceweir.schemas.session import Session
from traceweir.schemas.times import known_time
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn, trace_dimensions, turns_of, withdrawn_turns
from traceweir.scorers.embedding import Embedder, embedded_text
from traceweir.scorers.evaluation.gate_rules import gate_rules
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.runner import cancelled_from_outside, evaluate, sampling_point
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES
from traceweir.streams.scoring.embedders.embedding_batches import Batching
from traceweir.streams.scoring.judges.verdicts import NOTHING_JUDGED, JudgeVerdict
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.options import WIRE, ScoringOptions, ScoringOutputs
from traceweir.streams.scoring.sessions.references import References
from traceweir.streams.scoring.sessions.result import OfferedCandidate, Scoring, ScoringResult
from traceweir.streams.scoring.sessions.user_ids import with_user_ids

# The judges' client is loaded only for a plan that asks judges, OpenTelemetry's SDK only where traces are on.
if TYPE_CHECKING:
    from traceweir.streams.scoring.judges.service import Judging
    from traceweir.streams.scoring.tracing.score_spans import ScoreSpans


Measure = Callable[[Session, Sequence[JudgeVerdict], int], Awaitable[ScoringResult]]
"""Scores a parsed session, with stored verdicts of judges and an attempt number."""


def score_bytes(measure: Measure) -> Scoring:
    """Returns a function that scores serialised sessions in this process.

    Every failure that a session causes is raised as `SessionRejected`.
    """

    async def score(raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
        try:
            session = Session.model_validate_json(raw)
        except ValidationError as error:
            raise SessionRejected("unreadable_session", explain(error)) from None
        try:
            result = await measure(session, known, attempt)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and cancelled_from_outside():
                raise
            raise SessionRejected("scoring_failed", f"{type(error).__name__}: {error}") from error
        scores = [len(session.session_id.encode()) + len(value) for value in result.scores]
        candidates = [len(each.scope.encode()) + len(each.value) for each in result.candidates]
        largest = max(scores + candidates, default=0)
        if largest > MAX_OUTPUT_BYTES:
            detail = f"a score or candidate of the session has {largest} bytes with its key; the maximum of a record is {MAX_OUTPUT_BYTES}"
            raise SessionRejected("too_large", detail, result.judged)
        return result

    return score


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _outcome(score: Score) -> str:
    because = score.not_evaluated_because
    status = reported_status(score.metric, score.status, score.threshold)
    return status if because is None else f"{status}.{because}"


def _is_unanswered(score: Score) -> bool:
    # An unfit judge stays unfit until the config names another one.
    return score.not_evaluated_because in UNANSWERED and score.cause != "judge_unfit"


class SessionScoring:
    """Scores sessions; one object serves all partitions of a process."""

    def __init__(
        self,
        plan: Plan,
        embedder: Embedder | Batching | None,
        clock: Callable[[], datetime],
        options: ScoringOptions,
        *,
        judging: Judging | None = None,
        references: References | None = None,
        in_place_of: Plan | None = None,
        outputs: ScoringOutputs = WIRE,
    ) -> None:
        """Starts with no session.

        Args:
            plan: The criteria, and what the gate requires.
            embedder: Computes the vectors for novelty; None: novelty is 0.5. Scorings of several configs share one
                `Batching`, because an embedder is never called twice at the same time.
            clock: Returns the time of the scores.
            options: The time limits, and the form of user ids.
            judging: Asks judges; None: judged criteria are NOT_EVALUATED `error`.
            references: The expected answers; None: there are none.
            in_place_of: The plan of the config file, where `plan` comes from the topic `configs`: the candidates then
                carry the gate's rules of `plan`. None: the gate decides by its own plan.
            outputs: What is done with scores and candidates.
        """
        self._plan = plan
        self._clock = clock
        self._options = options
        self._judging = judging
        self._references = references or References()
        self._outputs = outputs
        self._batching = Batching(embedder) if embedder is not None and not isinstance(embedder, Batching) else embedder
        self._embedder_id = self._batching.embedder.id if self._batching is not None else "none"
        rules = None if in_place_of is None else gate_rules(plan)
        self._rules: dict[str, Any] = {} if rules is None else {"gate_rules": rules}
        # Equal rules are carried nevertheless: the gate's worker can have another file, and must decide by these rules.
        self._has_own_rules = in_place_of is not None and gate_rules(in_place_of) != rules

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> ScoringResult:
        """Returns the scores of a session, and a candidate for each of its traces.

        Args:
            session: The session.
            known: Stored verdicts of judges on this session.
            attempt: The attempt number of its scores and candidates.
        """
        own = with_user_ids(turns_of(session), self._options.user_ids)
        turns = self._references.resolve(own, session.session_id)
        if self._outputs.spans is not None:
            from traceweir.streams.scoring.tracing.score_spans import ScoreSpans

            if (traced := ScoreSpans.of(self._outputs.spans, session, turns, attempt)) is not None:
                with traced.scoring():
                    return await self._score(session, turns, known, attempt, traced)
        return await self._score(session, turns, known, attempt, None)

    async def _score(
        self,
        session: Session,
        turns: Sequence[Turn],
        known: Sequence[JudgeVerdict],
        attempt: int,
        traced: ScoreSpans | None,
    ) -> ScoringResult:
        withdrawn = with_user_ids(withdrawn_turns(session), self._options.user_ids)
        measuring, asking = (traced.measuring, traced.asking) if traced is not None else (None, None)
        judge = self._judging.session(known, asking) if self._judging is not None else None
        scores = await evaluate(
            self._plan,
            session,
            turns,
            now=self._clock,
            timeout_s=self._options.timeout_s,
            judge=judge,
            judge_timeout_s=self._options.judge_timeout_s,
            attempt=attempt,
            watch=measuring,
            withdrawn=withdrawn,
            settling=self._options.settles and attempt == 0,
        )
        if judge is not None:
            await judge.settle(self._options.judge_timeout_s)
        judged = judge.judged if judge is not None else NOTHING_JUDGED
        unanswered = sum(each.metric in self._plan.judged and _is_unanswered(each) for each in scores)
        return ScoringResult(
            session.segment,
            session.revision,
            attempt,
            int(session.last_record_at.timestamp() * 1000),
            [self._outputs.encode_score(each) for each in scores],
            [self._offer(each) for each in await self._candidates(session, turns, withdrawn, scores, attempt)],
            dict(Counter(map(_outcome, scores))),
            judged,
            unanswered,
            judge is not None and not judge.failed,
            self._challenger_of(session),
            self._settle_s(scores),
        )

    def _settle_s(self, scores: Sequence[Score]) -> float:
        settling = {score.metric for score in scores if score.cause == "settling"}
        return max((each.settle_s for each in self._plan.metrics if each.name in settling), default=0.0)

    def _challenger_of(self, session: Session) -> str:
        found = self._plan.challenger
        return found.id if found is not None and sampling_point(session.session_id) < found.sample else ""

    def _offer(self, candidate: Candidate) -> OfferedCandidate:
        value = candidate.wire()
        self._outputs.offered(candidate, value)
        trace = _digest(candidate.trace.id.encode())
        return OfferedCandidate(candidate.scope, trace, candidate.digest(with_rules=self._has_own_rules), value)

    async def _candidates(
        self, session: Session, turns: Sequence[Turn], withdrawn: Sequence[Turn], scores: Sequence[Score], attempt: int
    ) -> Sequence[Candidate]:
        if not session.traces:
            return ()
        waiting = [
            self._candidate(
                session,
                trace,
                trace_dimensions(trace, withdrawn if trace.metadata.withdrawn else turns),
                self._required(scores, trace),
                attempt,
            )
            for trace in session.traces
        ]
        # A task for each would only cost time.
        if self._batching is None or len(waiting) == 1:
            return [await candidate for candidate in waiting]
        # Concurrently, so that the timeout of one embedding is also the timeout of the session.
        return await asyncio.gather(*waiting)

    def _required(self, scores: Sequence[Score], trace: ReasoningTrace) -> dict[str, Verdict]:
        """Returns the verdicts of the criteria that the gate requires: those of the session, or of the trace itself."""
        required = {}
        for score in scores:
            about_it = score.level == "session" or (score.level == "trace" and score.trace_id == trace.id)
            if about_it and score.metric in self._plan.gate.required:
                required[score.metric] = Verdict(
                    status=score.status,
                    not_evaluated_because=score.not_evaluated_because,
                    **({"measured": _measured(score)} if self._plan.gate.require_certified else {}),
                )
        return required

    async def _candidate(
        self,
        session: Session,
        trace: ReasoningTrace,
        dimensions: Dimensions,
        required: dict[str, Verdict],
        attempt: int,
    ) -> Candidate:
        embedding: Embedding | None = None
        missing: str | None = "no_embedder"
        # Of a withdrawn trace too: the ids of the gate's scores name the embedder.
        if self._batching is not None:
            text = embedded_text(trace.task.objective, [step.content for step in trace.steps])
            try:
                async with asyncio.timeout(self._options.timeout_s):
                    vector = await self._batching.embed(text)
                embedding = Embedding.of(self._embedder_id, vector)
                missing = None
            except Exception:  # noqa: BLE001  # a failed embedding must not prevent the session's scores
                missing = "embedder_error"
        return Candidate(
            candidate_id=uuid5(session.session_id, str(session.segment), "candidate", trace.id),
            session_id=session.session_id,
            segment=session.segment,
            revision=session.revision,
            attempt=attempt,
            scope=self._scope(trace),
            trace=trace,
            required=required,
            embedding=embedding,
            novelty_missing=missing,
            occurred_at=session.last_record_at,
            segment_opened_at=known_time(session.first_record_at),
            **{name: value for name, value in dimensions.__dict__.items() if value is not None},
            **self._rules,
        )

    def _scope(self, trace: ReasoningTrace) -> str:
        """Returns the novelty scope. The embedder is part of it, because vectors of different embedders cannot be compared."""
        field = "*" if self._plan.gate.scope == "global" else trace.metadata.task_domain
        return f"{normal_form('NFKC', field).casefold()}@{self._embedder_id}"


def _measured(score: Score) -> CriterionMeasure:
    return CriterionMeasure(
        source=score.source, metric_digest=score.metric_digest, judge=score.judge, threshold=score.threshold
    )
