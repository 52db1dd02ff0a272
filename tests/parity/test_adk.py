"""Compares tool trajectory and response match with the results of google-adk 2.13.0 for the same inputs.

Two outcomes differ on purpose and are mapped. Where ADK raises because there is no expected invocation, the metric is
NOT_EVALUATED and the session continues. Lists of different lengths cannot occur, because a reference belongs to its
own invocation.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from tests.support.scoring import make_turn, scores_of

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.text.rouge import tokens

RECORDED: list[list[Any]] = json.loads((Path(__file__).parent / "data" / "adk_oracle.json").read_text("utf-8"))
TRAJECTORIES = [row for row in RECORDED if row[0] == "traj"]
TEXTS = [row for row in RECORDED if row[0] == "rouge"]

T1 = FunctionCall(name="t1", args={"a": 1})
T2 = FunctionCall(name="t2", args={"b": "x"})
T3 = FunctionCall(name="t3", args={})


def call(name: str = "t1", *, call_id: str | None = None, args: Any) -> FunctionCall:
    return FunctionCall(name=name, args=args, id=call_id)


KOREAN = "서울"
CASES: dict[str, tuple[list[FunctionCall], list[FunctionCall]]] = {
    "act=[] exp=[]": ([], []),
    "act=[t1] exp=[]": ([T1], []),
    "act=[] exp=[t1]": ([], [T1]),
    "identical 2": ([T1, T2], [T1, T2]),
    "swapped 2": ([T2, T1], [T1, T2]),
    "extra in the middle": ([T1, T3, T2], [T1, T2]),
    "exp dup t1,t1; act one t1": ([T1], [T1, T1]),
    "act dup t1,t1; exp one t1": ([T1, T1], [T1]),
    "arg key order differs": ([call(args={"a": 1, "b": 2})], [call(args={"b": 2, "a": 1})]),
    "arg list order differs": ([call(args={"a": [1, 2]})], [call(args={"a": [2, 1]})]),
    "arg 1 vs 1.0": ([call(args={"a": 1})], [call(args={"a": 1.0})]),
    "arg 1 vs True": ([call(args={"a": 1})], [call(args={"a": True})]),
    "arg '1' vs 1": ([call(args={"a": "1"})], [call(args={"a": 1})]),
    "args None vs {}": ([call(args=None)], [call(args={})]),
    "extra arg": ([call(args={"a": 1, "b": 2})], [call(args={"a": 1})]),
    "ids differ": ([call(args={"a": 1}, call_id="x")], [call(args={"a": 1}, call_id="y")]),
    "name case differs": ([call("T1", args={"a": 1})], [T1]),
    "args differ, ignore_args": ([call(args={"a": 2})], [T1]),
    "NFC vs NFD korean arg": (
        [call(args={"city": unicodedata.normalize("NFC", KOREAN)})],
        [call(args={"city": unicodedata.normalize("NFD", KOREAN)})],
    ),
}

HIT, MISS = (
    make_turn("hit", tools=[T1], reference=Reference(tool_uses=[T1])),
    make_turn("miss", tools=[], reference=Reference(tool_uses=[T1])),
)
IN_EVENTS = InvocationEvents(invocation_events=[InvocationStep(content=Content(parts=[Part(function_call=T1)]))])
TURNS: dict[str, list[Turn]] = {
    "2 inv: hit, miss thr .5": [HIT, MISS],
    "2 inv: hit, miss thr 1.0": [HIT, MISS],
    "3 inv 2/3 thr 0.66": [HIT, HIT, MISS],
    "no invocations": [],
    "intermediate_data None vs []": [Turn(Invocation(), Reference(tool_uses=[]))],
    "intermediate_data None vs [t1]": [Turn(Invocation(), Reference(tool_uses=[T1]))],
    "InvocationEvents vs IntermediateData": [Turn(Invocation(intermediate_data=IN_EVENTS), Reference(tool_uses=[T1]))],
}
RAISES = {"expected None", "len mismatch 1 vs 2"}
"""Cases in which ADK raises, and which have no counterpart here."""


def test_every_recorded_row_is_compared() -> None:
    assert len(RECORDED) == len(TRAJECTORIES) + len(TEXTS) == 112
    assert {row[1] for row in TRAJECTORIES} == CASES.keys() | TURNS.keys() | RAISES


@pytest.mark.parametrize(
    ("case", "options", "outcome"),
    [row[1:] for row in TRAJECTORIES if row[1] not in RAISES],
    ids=lambda part: part if isinstance(part, str) else json.dumps(part),
)
@pytest.mark.parametrize("compat", [None, "adk"])
async def test_trajectories_agree(case: str, options: dict[str, Any], outcome: list[Any], compat: str | None) -> None:
    criterion = {
        "compat": compat,
        "threshold": options.get("thr", 1.0),
        "matchType": options.get("mt", "EXACT"),
        "ignoreArgs": options.get("ignore", False),
    }
    if case in CASES:
        actual, expected = CASES[case]
        turns = [make_turn(tools=actual, reference=Reference(tool_uses=expected))]
    else:
        turns = TURNS[case]
    plan = read_plan({"criteria": {"tool_trajectory_avg_score": criterion}})
    *invocations, session = await scores_of(plan, turns)
    assert [session.value, session.status, [score.value for score in invocations]] == outcome


@pytest.mark.parametrize(
    ("case", "options", "outcome"),
    [row[1:] for row in TRAJECTORIES if row[1] in CASES],
    ids=lambda part: part if isinstance(part, str) else json.dumps(part),
)
async def test_the_match_metrics_among_the_trajectory_metrics_agree(
    case: str, options: dict[str, Any], outcome: list[Any]
) -> None:
    actual, expected = CASES[case]
    turns = [make_turn(tools=actual, reference=Reference(tool_uses=expected))]
    metric = f"trajectory_{options.get('mt', 'EXACT').lower()}_match"
    plan = read_plan({"criteria": {metric: {"threshold": 1.0, "ignore_args": options.get("ignore", False)}}})
    *invocations, session = await scores_of(plan, turns)
    assert [session.value, session.status, [score.value for score in invocations]] == outcome


@pytest.mark.parametrize(("match_type", "value"), [("EXACT", 0.0), ("IN_ORDER", 0.0), ("ANY_ORDER", 1.0)])
async def test_adk_compares_the_order_of_parallel_calls(match_type: str, value: float) -> None:
    parallel = InvocationStep(content=Content(parts=[Part(function_call=T1), Part(function_call=T2)]))
    invocation = Invocation(intermediate_data=InvocationEvents(invocation_events=[parallel]))
    turn = Turn(invocation, Reference(tool_uses=[T2, T1]))
    for compat, expected in (("adk", value), (None, 1.0)):
        criterion: JsonObject = {"threshold": 1.0, "match_type": match_type, "compat": compat}
        scores = await scores_of(read_plan({"criteria": {"tool_trajectory_avg_score": criterion}}), [turn])
        assert {score.value for score in scores} == {expected}


async def test_a_missing_expectation_where_adk_raises_is_not_evaluated() -> None:
    [row] = [row for row in TRAJECTORIES if row[1] == "expected None"]
    assert row[3] == ["ValueError", "expected_invocations is needed by this metric."]
    scores = await scores_of(read_plan({"criteria": {"tool_trajectory_avg_score": 1.0}}), [make_turn(tools=[T1])])
    assert [(score.status, score.not_evaluated_because) for score in scores] == [("NOT_EVALUATED", "missing_input")] * 2


def joined(text: str | list[str] | None) -> Content:
    """Returns the recorded text as a message: a list becomes several parts, null a message without parts."""
    return Content(parts=[Part(text=part) for part in ([text] if isinstance(text, str) else text or [])])


@pytest.mark.parametrize(("response", "expected", "value"), [row[1:4] for row in TEXTS])
async def test_response_matches_agree(response: Any, expected: Any, value: float) -> None:
    turn = Turn(Invocation(final_response=joined(response)), Reference(final_response=joined(expected)))
    plan = read_plan({"criteria": {"response_match_score": 0.8}})
    assert [score.value for score in await scores_of(plan, [turn])] == [value, value]
    assert {score.status for score in await scores_of(plan, [turn])} == {"PASSED" if value >= 0.8 else "FAILED"}


@pytest.mark.parametrize(("text", "recorded"), [pair for row in TEXTS for pair in ((row[1], row[4]), (row[2], row[5]))])
def test_tokens_agree(text: Any, recorded: list[str]) -> None:
    assert tokens(joined(text).text) == recorded


async def test_an_invocation_without_a_final_response_has_an_empty_response() -> None:
    turn = Turn(Invocation(), Reference(final_response=Content.of("hello")))
    *_, session = await scores_of(read_plan({"criteria": {"response_match_score": 0.8}}), [turn])
    assert (session.value, session.status) == (0.0, "FAILED")
