"""Defines the gate stage, which decides on traces in the order of the partition and reports the reasons per trace."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.candidate import Candidate
from traceweir.schemas.dead_letter import KEPT_BYTES, is_replay
from traceweir.schemas.dimensions import TraceContext
from traceweir.schemas.score import Score
from traceweir.scorers.base import Measurement
from traceweir.scorers.evaluation.decision import decide
from traceweir.scorers.evaluation.gate_rules import plan_of_rules
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.publication import publication
from traceweir.scorers.evaluation.score_writer import GateScores
from traceweir.scorers.metrics.novelty_value import Novelty
from traceweir.scorers.redaction.entities import EntityFinder
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES, Cut, Output, Read, Record, dead_letter
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.topics import Topics
from traceweir.streams.intake.spans.reasoning_ids import former_place
from traceweir.streams.pipeline.decoding.fast_decode import NeedsFullValidation, fast_decoder, may_be_deep
from traceweir.streams.pipeline.gate.novelty_scope_rows import Version
from traceweir.streams.pipeline.gate.novelty_scopes import NoveltyScope, NoveltyScopes

# OpenTelemetry's SDK is loaded only where traces are on.
if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.stage_spans import GateSpans

MAX_PLANS = 1_000
"""Maximum number of rules of candidates that are kept as read."""


class _Item(NamedTuple):
    """A candidate, its record, and the plan that decides on it."""

    record: Record
    candidate: Candidate
    plan: Plan


Waiting = dict[str, _Item]
"""Candidates that are decided together, by trace id."""


class GateStage:
    """Decides on the candidates of one partition: all traces of the partition's novelty scopes."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        topics: Topics,
        plan: Plan,
        *,
        clock: Callable[[], datetime],
        encode_score: Callable[[Score], bytes],
        entities: EntityFinder | None = None,
        spans: GateSpans | None = None,
        read: Read | None = None,
        limits: RecordLimits | None = None,
    ) -> None:
        self._spans = spans
        self._limits = limits or RecordLimits()
        self._partition = partition
        self._partitions = partitions
        self._topics = topics
        self._plan = plan
        self._clock = clock
        self._encode_score = encode_score
        self._entities = entities
        self._scopes = NoveltyScopes(plan.gate.cache_size, plan.gate.max_scopes, read)
        self._plans: list[tuple[JsonObject, Plan]] = []
        self._outputs: list[Output] = []
        self._decided: dict[int, list[Output]] = {}
        self._next: dict[str, int] = {}
        self.counters = Counters()

    @property
    def scopes(self) -> int:
        """Number of novelty scopes in memory."""
        return len(self._scopes)

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the scopes from the last finished checkpoint."""
        self.counters.load(rows)
        self._scopes.load(rows)

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        """Decides on the candidates, computing novelty for many candidates of a scope at once.

        The result is the same as for one candidate after the other: waiting candidates are decided before a trace id
        is repeated, and before a scope is dropped. Outputs keep the order of the candidates. Therefore `network` has
        the last content of a trace that arrives in two scopes.
        """
        self._next[topic] = records[-1].offset + 1
        self.counters["consumed"] += len(records)
        if replayed := sum(is_replay(record.headers) for record in records):
            self.counters["replayed"] += replayed
        waiting: dict[NoveltyScope, Waiting] = defaultdict(dict)
        for record in records:
            try:
                candidate = _candidate(record.value or b"")
            except ValidationError as error:
                self._reject(record, RecordRejected("unreadable_candidate", explain(error)))
                continue
            try:
                item = _Item(record, candidate, self._plan_of(candidate))
            except RecordRejected as why:
                self._reject(record, why)
                continue
            if self._scopes.drops_one_for(candidate.scope):
                self._decide_all(waiting)
            scope = self._scopes.get(candidate.scope)
            if candidate.trace.id in waiting[scope] or candidate.trace.id in scope.decided:
                self._decide_scope(scope, waiting.pop(scope))
            try:
                _check(scope, waiting[scope], candidate)
            except RecordRejected as why:
                self._reject(record, why)
                continue
            if scope.supersedes(candidate.trace.id, _version(candidate)):
                try:
                    self._refuse_superseded(scope, item)
                except RecordRejected as why:
                    self._reject(record, why)
            else:
                waiting[scope][candidate.trace.id] = item
        self._decide_all(waiting)
        for offset in sorted(self._decided):
            self._outputs += self._decided.pop(offset)

    def reject(self, topic: str, record: Record, why: RecordRejected) -> None:
        """Turns the next record of an input topic into a dead letter, without any other effect."""
        self._next[topic] = record.offset + 1
        self.counters["consumed"] += 1
        if is_replay(record.headers):
            self.counters["replayed"] += 1
        self._reject(record, why)
        self._outputs += self._decided.pop(record.offset)

    def tick(self, now: float, behind: Mapping[str, float]) -> None:
        """Does nothing, because decisions do not depend on the time."""

    def full(self) -> bool:
        """Returns False, because deciding is faster than fetching."""
        return False

    def has_outputs(self) -> bool:
        """Returns whether there are new decisions or dead letters."""
        return bool(self._outputs)

    def cut(self) -> Cut:
        """Returns decisions, published traces and added vectors since the last cut."""
        cut = Cut([*self._scopes.rows(), *self.counters.rows()], self._outputs, self._next)
        self._outputs = []
        self._next = {}
        return cut

    def drop(self) -> None:
        """Does nothing, because this stage has no running work."""

    def _decide_all(self, waiting: dict[NoveltyScope, Waiting]) -> None:
        for scope, items in waiting.items():
            self._decide_scope(scope, items)
        waiting.clear()

    def _decide_scope(self, scope: NoveltyScope, items: Waiting) -> None:
        start_ns = self._spans.now_ns() if self._spans is not None else 0
        vectors = {
            name: item.candidate.embedding.vector
            for name, item in items.items()
            if item.candidate.embedding is not None and not item.candidate.trace.metadata.withdrawn
        }
        novelty: dict[str, Novelty] = {}
        if vectors:
            measured = scope.measure_and_add(list(vectors.values()), [_vector_id(scope, name) for name in vectors])
            novelty = dict(zip(vectors, measured, strict=True))
        for name, item in items.items():
            try:
                value, reasons = self._decide(scope, item, novelty.get(name))
            except RecordRejected as why:
                self._reject(item.record, why)
                continue
            if self._spans is not None:
                self._spans.decided(item.candidate, start_ns, value, reasons)

    def _decide(self, scope: NoveltyScope, item: _Item, novelty: Novelty | None) -> tuple[float | None, list[str]]:
        """Decides on a candidate; returns its value, and why it is rejected.

        Raises:
            RecordRejected: a score does not fit its topic; nothing is remembered but the vector, for novelty.
        """
        record, candidate, plan = item
        trace = candidate.trace
        measured = _measure(candidate, plan, novelty)
        reasons = decide(plan, candidate, measured.value) if isinstance(measured, Measurement) else ["withdrawn"]
        published = b""
        if not reasons and isinstance(measured, Measurement):
            room = self._limits.room(self._topics.network) - len(trace.id.encode())
            max_bytes = min(MAX_OUTPUT_BYTES - KEPT_BYTES, room)
            try:
                whole = _as_model(candidate, record.value or b"")
            except ValidationError:
                # A key of a long document came twice; the derived type checked only the last value.
                reasons = ["not_publishable"]
            else:
                published, reasons = publication(plan, whole.trace, measured.value, max_bytes, self._entities)
        accepted = not reasons
        before = scope.decided.get(trace.id)
        outputs = self._record_decision(scope, item, measured, reasons)
        if accepted:
            outputs.append(self._network_output(trace.id, published))
        # A trace that this scope does not know can have been accepted earlier, in this or in another scope.
        elif before.accepted if before is not None else any(_version(candidate)):
            outputs.append(self._network_output(trace.id, None))
        scope.remember(trace.id, candidate.session_id, _version(candidate), accepted)
        return measured.value if isinstance(measured, Measurement) else None, reasons

    def _refuse_superseded(self, scope: NoveltyScope, item: _Item) -> None:
        measured = item.plan.trace_value.measure(item.candidate.trace, novelty_missing="superseded")
        self._record_decision(scope, item, measured, ["superseded"])

    def _record_decision(self, scope: NoveltyScope, item: _Item, measured: Outcome, reasons: list[str]) -> list[Output]:
        """Counts a decision, and returns the list of its outputs, to which the caller can append.

        Raises:
            RecordRejected: a score does not fit its topic; nothing is counted.
        """
        record, candidate, plan = item
        accepted = not reasons
        place: JsonObject = {"scope": scope.name, "partition": self._partition, "offset": record.offset}
        value = measured.value if isinstance(measured, Measurement) else None
        details: JsonObject = {"value": value, **place}
        scores = GateScores(plan, candidate, self._clock())
        outputs = [
            self._result(candidate, scores.trace_value(measured)),
            self._result(candidate, scores.decision(accepted, reasons, details)),
        ]
        for output in outputs:
            if (problem := self._limits.problem(output.topic, output.key, output.value)) is not None:
                raise RecordRejected("too_large", problem)
        self.counters["accepted" if accepted else "rejected"] += 1
        for reason in reasons:
            self.counters[f"rejected.{reason}"] += 1
        self._decided[record.offset] = outputs
        return outputs

    def _plan_of(self, candidate: Candidate) -> Plan:
        """Returns the plan that decides on a candidate: that of the config which scored its session.

        Raises:
            RecordRejected: the candidate's rules cannot be read, or need another language model than this worker has.
        """
        if candidate.gate_rules is None:
            return self._plan
        for rules, known in self._plans:
            # Faster than a text as the key. Score workers write rules of a checked config, so that equal ones have equal types.
            if rules == candidate.gate_rules:
                return known
        try:
            found = plan_of_rules(candidate.gate_rules)
        except ValueError as error:
            raise RecordRejected("unreadable_candidate", str(error)) from None
        if found.gate.presidio != self._plan.gate.presidio:
            raise RecordRejected(
                "unreadable_candidate",
                "gate_rules: gate.presidio differs from that of the config file of the gate's worker; start all workers "
                "with the same section, then replay this dead letter",
            )
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans.append((candidate.gate_rules, found))
        return found

    def _reject(self, record: Record, why: RecordRejected) -> None:
        self.counters[f"dead_lettered.{why.reason}"] += 1
        topics = self._topics
        letter = dead_letter(
            topics.dead_letters, topics.candidates, self._partition, record, "gate", why.reason, why.detail
        )
        self._decided[record.offset] = [letter]

    def _result(self, candidate: Candidate, score: Score) -> Output:
        key = candidate.session_id.encode()
        return Output(self._topics.results, partition_of(key, self._partitions), key, self._encode_score(score))

    def _network_output(self, trace_id: str, value: bytes | None) -> Output:
        key = trace_id.encode()
        return Output(self._topics.network, partition_of(key, self._partitions), key, value)


def _measure(candidate: Candidate, plan: Plan, novelty: Novelty | None) -> Outcome:
    if candidate.trace.metadata.withdrawn:
        return Unmeasured("missing_input", "the trace was withdrawn from its session")
    scorer = plan.trace_value
    if novelty is None:
        return scorer.measure(candidate.trace, novelty_missing=candidate.novelty_missing or "no_embedding")
    if novelty.nearest is None or novelty.similarity is None:
        return scorer.measure(candidate.trace, novelty_missing="first_of_scope")
    return scorer.measure(candidate.trace, novelty.value, nearest=(novelty.nearest, novelty.similarity))


def _candidate(value: bytes) -> Candidate:
    """Reads a candidate. What is published needs the model's trace; all else needs only its attributes.

    Raises:
        ValidationError: the bytes are no candidate.
    """
    if not may_be_deep(value):
        try:
            found: Candidate = _fast(value)
        except NeedsFullValidation:
            pass
        else:
            return found
    return Candidate.model_validate_json(value)


def _as_model(found: Candidate, value: bytes) -> Candidate:
    """Returns a candidate that `_candidate` has read as an object of the model.

    Raises:
        ValidationError: the model refuses it.
    """
    return found if isinstance(found, Candidate) else Candidate.model_validate_json(value)


_fast = fast_decoder(Candidate, as_models=frozenset({TraceContext}))


def _vector_id(scope: NoveltyScope, trace_id: str) -> str:
    """Returns the id of the vector of a trace: that of collect's trace under its former id, if it has moved.

    The trace is then a revision of its former self, whichever of the two comes first, and no copy of it. Collect moves a
    trace from the session of its own id only, so that nobody else can take the vector of a trace in a named session.
    """
    found = former_place(trace_id)
    if found is None:
        return trace_id
    name, session_id = found
    former = scope.decided.get(name)
    return name if former is None or former.session_id == session_id else trace_id


def _version(candidate: Candidate) -> Version:
    return candidate.segment, candidate.revision, candidate.attempt


def _check(scope: NoveltyScope, waiting: Waiting, candidate: Candidate) -> None:
    """Checks that a candidate can be compared with its scope.

    Raises:
        RecordRejected: the trace belongs to another session, its vector has another length, or a value is not finite.
    """
    known = scope.decided.get(candidate.trace.id)
    if known is not None and known.session_id != candidate.session_id:
        raise RecordRejected(
            "trace_id_conflict",
            f"trace {candidate.trace.id} belongs to session {known.session_id} and cannot be in session "
            f"{candidate.session_id} too; send the trace with its first session id, or under another id",
        )
    if candidate.embedding is None:
        return
    vector = candidate.embedding.vector
    others = (item.candidate.embedding for item in waiting.values())
    before = (embedding.dimensions for embedding in others if embedding is not None)
    expected = scope.vectors.dimensions if scope.vectors else next(before, len(vector))
    if len(vector) != expected or not math.isfinite(abs(vector).max()):
        raise RecordRejected(
            "unreadable_candidate",
            f"embedding: must have {expected} finite values, like the other vectors of its scope; it has {len(vector)} "
            "values",
        )
