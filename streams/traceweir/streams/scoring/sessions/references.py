"""Finds the references of the compacted `references` topic by reference id, or by question within an app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceweir.schemas.reference import Reference, normalised_question
from traceweir.schemas.turns import Turn

Question = tuple[str, str]


class References:
    """Holds the current references. The latest reference of an id counts; a tombstone removes the reference."""

    def __init__(self) -> None:
        self._by_id: dict[str, Reference] = {}
        self._by_question: dict[Question, str] = {}

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Stores a reference; None removes the reference with this id."""
        former = self._by_id.pop(reference_id, None)
        if former is not None and self._by_question.get(_question(former)) == reference_id:
            del self._by_question[_question(former)]
        if reference is not None:
            self._by_id[reference_id] = reference
            if reference.question:
                self._by_question[_question(reference)] = reference_id

    def resolve(self, turns: Sequence[Turn]) -> list[Turn]:
        """Returns the turns with their references: inline, otherwise by reference id, otherwise by question."""
        return [turn if turn.reference is not None or not self._by_id else self._resolved(turn) for turn in turns]

    def _resolved(self, turn: Turn) -> Turn:
        found = self._by_id.get(turn.reference_id) if turn.reference_id else None
        if found is None and turn.invocation.user_content is not None:
            asked = normalised_question(turn.invocation.user_content.text)
            name = self._by_question.get((turn.app_name, asked)) or self._by_question.get(("", asked))
            found = self._by_id[name] if name else None
        return turn if found is None else replace(turn, reference=found)


def _question(reference: Reference) -> Question:
    return reference.app_name or "", normalised_question(reference.question or "")
