"""Decides on the candidates of an input with the real stage, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.streams.pipeline.gate.novelty_scopes import EXACT_UP_TO
from traceweir.streams.pipeline.topology import Topology
from traceweir.streams.tools.offline.in_process_stages import TOPICS, StageRecord, new_stage


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
        self._rows: dict[bytes, bytes] = {}
        # A smaller scope has its vectors in memory, and reads no row.
        self._keeps_rows = topology.plan.gate.cache_size > EXACT_UP_TO
        self._stage = new_stage(topology, "gate", self._rows.get)
        self._offset = 0

    def decide(self, candidates: Sequence[bytes]) -> list[Decision]:
        """Returns the decision on each candidate. The order of all candidates decides about novelty.

        Args:
            candidates: The next candidates, as on the topic `candidates`.
        """
        if not candidates:
            return []
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
