"""Finds the references of the compacted `references` topic by reference id, by eval case, or by question within an app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from traceweir.schemas.figures import counted
from traceweir.schemas.reference import CASE_LABEL, Reference, case_reference_id, normalised_question
from traceweir.schemas.text import listed, printable
from traceweir.schemas.turns import Turn

Question = tuple[str, str]


class References:
    """Holds the current references. The latest reference of an id counts; a tombstone removes the reference."""

    def __init__(self) -> None:
        self._by_id: dict[str, Reference] = {}
        self._by_question: dict[Question, list[str]] = {}

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Stores a reference; None removes the reference with this id."""
        former = self._by_id.pop(reference_id, None)
        if former is not None and former.question:
            self._by_question[_question(former)].remove(reference_id)
        if reference is not None:
            self._by_id[reference_id] = reference
            if reference.question:
                self._by_question.setdefault(_question(reference), []).append(reference_id)

    def resolve(self, turns: Sequence[Turn], session_id: str) -> list[Turn]:
        """Returns the invocations of a session with their references.

        A reference in the events precedes all others, then come the one with the reference id of the events, the one of
        the eval case that the session plays, and the one of the question. A session plays the case that its label
        `case_id` names, else the one whose eval id is the session id. Its invocations are compared with the turns of the
        case in pairs: if their numbers differ, neither the case nor a question gives it a reference, and the invocation
        says so. So it does if the labels name several cases, or if references with its question expect different things.
        """
        if not self._by_id:
            return list(turns)
        case = self._case_of(turns, session_id)
        paired = case is not None and self._has_turns(case, len(turns))
        found = [
            turn
            if turn.reference is not None
            else self._resolved(turn, case, case_reference_id(case, number) if case is not None and paired else None)
            for number, turn in enumerate(turns)
        ]
        why = None if paired else self._why_not(turns, case)
        if why is None:
            return found
        return [
            turn if turn.reference is not None or turn.without_reference else replace(turn, without_reference=why)
            for turn in found
        ]

    def _resolved(self, turn: Turn, case: str | None, of_case: str | None) -> Turn:
        found = self._by_id.get(turn.reference_id) if turn.reference_id else None
        if found is None and of_case is not None:
            found = self._by_id.get(of_case)
        if found is None and case is None and turn.invocation.user_content is not None:
            asked = normalised_question(turn.invocation.user_content.text)
            names = self._by_question.get((turn.app_name, asked)) or self._by_question.get(("", asked)) or []
            expected = [_expectation(self._by_id[name]) for name in names] if len(names) > 1 else []
            if any(each != expected[0] for each in expected):
                return replace(turn, without_reference=_ambiguous(names))
            found = self._by_id[names[-1]] if names else None
        return turn if found is None else replace(turn, reference=found)

    def _case_of(self, turns: Sequence[Turn], session_id: str) -> str | None:
        labels = _cases_named(turns)
        named = labels.pop() if len(labels) == 1 else session_id
        return named if case_reference_id(named, 0) in self._by_id else None

    def _has_turns(self, case: str, number_of_turns: int) -> bool:
        known = all(case_reference_id(case, number) in self._by_id for number in range(number_of_turns))
        return known and case_reference_id(case, number_of_turns) not in self._by_id

    def _why_not(self, turns: Sequence[Turn], case: str | None) -> str | None:
        """Returns why a session is not compared with the case that it names; None if it names no case."""
        if case is not None:
            expected = next(number for number in count(1) if case_reference_id(case, number) not in self._by_id)
            return (
                f"the case '{printable(case, 200)}' has {counted(expected, 'turn')}, and the session "
                f"{counted(len(turns), 'invocation')}, so they are not compared"
            )
        labels = _cases_named(turns)
        if len(labels) > 1:
            return f"the label `{CASE_LABEL}` names {counted(len(labels), 'case')} in one session, so none counts"
        for name in labels:
            return f"no reference has the case '{printable(name, 200)}' that the label `{CASE_LABEL}` names"
        return None


def _cases_named(turns: Sequence[Turn]) -> set[str]:
    return {name for turn in turns if (name := (turn.dimensions.labels or {}).get(CASE_LABEL))}


def _expectation(reference: Reference) -> Reference:
    """Returns what a reference expects, without what selects it."""
    return reference.model_copy(update={"reference_id": None, "app_name": None, "question": None})


def _ambiguous(names: Sequence[str]) -> str:
    return (
        f"references {listed(sorted(names), 100, separator=', ')} have this question and expect different things, so none "
        f"of them counts: remove all but one, or name the case by the label `{CASE_LABEL}`"
    )


def _question(reference: Reference) -> Question:
    return reference.app_name or "", normalised_question(reference.question or "")
