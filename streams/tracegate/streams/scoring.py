"""What the score stage does with one session: measure it by the plan, embed its traces, and make candidates of them."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime

from tracegate.schemas.candidate import Candidate, Embedding, Verdict
from tracegate.schemas.score import Score, uuid5
from tracegate.schemas.session import Session
from tracegate.schemas.trace import ReasoningTrace
from tracegate.schemas.turns import turns_of
from tracegate.scorers.embedding import Embedder, embedded_text
from tracegate.scorers.plan import Plan
from tracegate.scorers.runner import evaluate
from tracegate.streams.embedders import Batching
from tracegate.streams.references import References


class SessionScoring:
    """Measures sessions; one object serves all partitions of a process."""

    def __init__(
        self,
        plan: Plan,
        embedder: Embedder | None,
        clock: Callable[[], datetime],
        *,
        timeout_s: float,
        references: References | None = None,
    ) -> None:
        self._plan, self._clock, self._timeout_s = plan, clock, timeout_s
        self._references = references or References()
        self._embedder = Batching(embedder) if embedder is not None else None
        self._embedder_id = embedder.id if embedder is not None else "none"

    async def __call__(self, session: Session) -> tuple[Sequence[Score], Sequence[Candidate]]:
        """The scores of a session, and a candidate for each of its traces."""
        turns = self._references.resolve(turns_of(session))
        scores = await evaluate(self._plan, session, turns, now=self._clock, timeout_s=self._timeout_s)
        if not session.traces:
            return scores, ()
        waiting = [self._candidate(session, trace, self._required(scores, trace)) for trace in session.traces]
        # All at once, so that the timeout of one is that of the session.
        return scores, [await waiting[0]] if len(waiting) == 1 else await asyncio.gather(*waiting)

    def _required(self, scores: Sequence[Score], trace: ReasoningTrace) -> dict[str, Verdict]:
        """How the criteria that the gate requires came out: for the session, or for the trace itself."""
        required = {}
        for score in scores:
            about_it = score.level == "session" or (score.level == "trace" and score.trace_id == trace.id)
            if about_it and score.metric in self._plan.gate.required:
                verdict = Verdict(status=score.status, not_evaluated_because=score.not_evaluated_because)
                required[score.metric] = verdict
        return required

    async def _candidate(self, session: Session, trace: ReasoningTrace, required: dict[str, Verdict]) -> Candidate:
        embedding: Embedding | None = None
        missing: str | None = "no_embedder"
        if self._embedder is not None:
            text = embedded_text(trace.task.objective, [step.content for step in trace.steps])
            try:
                async with asyncio.timeout(self._timeout_s):
                    vector = await self._embedder.embed(text)
                embedding, missing = Embedding.of(self._embedder_id, vector), None
            except Exception:  # noqa: BLE001  # one text that cannot be embedded must not stop the session's scores
                missing = "embedder_error"
        return Candidate(
            candidate_id=uuid5(session.session_id, session.segment, "candidate", trace.id),
            session_id=session.session_id,
            segment=session.segment,
            revision=session.revision,
            scope=self._scope(trace),
            trace=trace,
            required=required,
            embedding=embedding,
            novelty_missing=missing,
            occurred_at=session.last_record_at,
        )

    def _scope(self, trace: ReasoningTrace) -> str:
        """Vectors of different embedders never meet, so the embedder is part of the scope."""
        field = "*" if self._plan.gate.scope == "global" else trace.metadata.task_domain
        return f"{unicodedata.normalize('NFKC', field).casefold()}@{self._embedder_id}"
