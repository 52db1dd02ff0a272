"""Compares the calls that spans tell to be parallel with the answers in which a scripted model really made them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from tests.support.otlp_recordings import load, names, traces_of
from tests.support.scoring import make_session

from traceweir.schemas.events import EVENT
from traceweir.schemas.turns import turns_of
from traceweir.streams.intake.spans.reader import read_trace


def parallel_in(turn: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns the names of the calls of each answer with several calls.

    Older recordings do not tell the answers; there, all calls of a turn with two model calls are of the first one.
    """
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for place, call in enumerate(turn["tool_calls"]):
        groups[call.get("group", None if len(turn["llm_calls"]) == 2 else f"alone {place}")].append(call["name"])
    return [tuple(group) for group in groups.values() if len(group) > 1]


@pytest.mark.slow
def test_spans_never_tell_calls_of_two_answers_to_be_parallel() -> None:
    found: Counter[str] = Counter()
    for name in names():
        recording = load(name)
        truth = Counter(
            group for session in recording.truth["sessions"] for turn in session["turns"] for group in parallel_in(turn)
        )
        said: Counter[tuple[str, ...]] = Counter()
        for spans in traces_of(recording.spans).values():
            events = [EVENT.validate_python(event, strict=False) for event in read_trace(spans).events]
            for turn in turns_of(make_session(events=events)) if events else []:
                answers = turn.invocation.calls_by_answer
                said.update(tuple(call.name for call in answer) for answer in answers if len(answer) > 1)
        assert said - truth == Counter(), name
        found.update(true=truth.total(), said=said.total())
    assert (found["said"], found["true"]) == (45, 54)
