"""Decides on the candidates of an input with the real stage, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.publication import publication
from traceweir.scorers.redaction.entities import EntityFinder
from traceweir.streams.pipeline.gate.novelty_scopes import EXACT_UP_TO
from traceweir.streams.pipeline.topology import Topology
from traceweir.streams.tools.offline.in_process_stages import TOPICS, StageRecord, new_stage
from traceweir.streams.tools.offline.session_chunks import PublicationCheck


class Decision(NamedTuple):
    """What the gate sends for a candidate."""

    scores: list[bytes]
    """The scores of the trace's value and of the decision, as on the topic `results`."""
    refused: DeadLetter | None = None
    """The dead letter that the worker would write in place of scores."""


class Gating:
    """The gate of an input.

    Args:
        topology: Builds the stage.
    """

    def __init__(self, topology: Topology) -> None:
        resources = replace(topology.resources, publish=self._publish)
        self._rows: dict[bytes, bytes] = {}
        # A smaller scope has its vectors in memory, and reads no row.
        self._keeps_rows = topology.plan.gate.cache_size > EXACT_UP_TO
        self._stage = new_stage(replace(topology, resources=resources), "gate", self._rows.get)
        self._offset = 0
        self._reasons: dict[str, list[str]] = {}

    def decide(self, candidates: Sequence[bytes], checks: Sequence[PublicationCheck] = ()) -> list[Decision]:
        """Returns the decision on each candidate. The order of all candidates decides about novelty.

        Args:
            candidates: The next candidates, as on the topic `candidates`.
            checks: Whether each candidate can be published, where this is known.
        """
        if not candidates:
            return []
        counts = Counter(check.trace_id for check in checks)
        # The gate names a trace by its id alone, which the traces of two sessions can have.
        self._reasons = {
            check.trace_id: check.reasons
            for check in checks
            if check.reasons is not None and counts[check.trace_id] == 1
        }
        first = self._offset
        self._offset += len(candidates)
        decisions = [Decision([]) for _ in candidates]
        self._stage.apply(
            TOPICS.candidates, [StageRecord(first + place, None, value) for place, value in enumerate(candidates)]
        )
        place = 0
        # The outputs are in the order of the candidates: two scores for each, or a dead letter.
        cut = self._stage.cut()
        if self._keeps_rows:
            for key, row in cut.rows:
                if row is None:
                    self._rows.pop(key, None)
                else:
                    self._rows[key] = row
        for output in cut.outputs:
            if output.topic == TOPICS.dead_letters:
                letter = DeadLetter.read(output.key, output.value, output.headers)
                decisions[letter.offset - first] = Decision([], letter)
                place = letter.offset - first + 1
            elif output.topic == TOPICS.results:
                decisions[place].scores.append(output.value or b"")
                place += len(decisions[place].scores) == 2
        return decisions

    def _publish(
        self, plan: Plan, trace: ReasoningTrace, value: float, max_bytes: int, entities: EntityFinder | None = None
    ) -> tuple[bytes, list[str]]:
        known = self._reasons.get(trace.id)
        # The record itself goes nowhere.
        return publication(plan, trace, value, max_bytes, entities) if known is None else (b"", known)
