"""Tests the criteria with rubrics: the rubrics that apply, their votes and their values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.judged_criteria import ANSWERED, one_sample, rubric, scores

from traceweir.schemas.invocation import (
    Rubric,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers.scripted_judge import ScriptedJudge

QUALITY = "rubric_based_final_response_quality_v1"


def verdicts(**words: str) -> str:
    entries = [
        {"id": name, "evidence": "", "rationale": f"{name}: {word}", "verdict": word} for name, word in words.items()
    ]
    return json.dumps({"verdicts": entries})


async def test_every_rubric_has_its_value_its_votes_and_its_reason() -> None:
    judge = ScriptedJudge(verdicts(a="yes", b="no"), verdicts(a="no"), verdicts(a="yes", b="no"))
    rubrics = [rubric(name).model_dump() for name in ("a", "b", "c")]
    options = one_sample(num_samples=3) | {"compat": "adk"}
    score, session = await scores(QUALITY, judge, Turn(ANSWERED), rubrics=rubrics, **options)
    assert (score.value, score.rationale) == (0.5, "1 of 2 rubrics are met; not b")
    assert score.details["rubrics"] == {
        "a": {"value": 1.0, "votes": {"yes": 2, "no": 1, "neither": 0}, "spread": 1 / 3, "rationale": "a: yes"},
        "b": {"value": 0.0, "votes": {"yes": 0, "no": 2, "neither": 0}, "spread": 0.0, "rationale": "b: no"},
        "c": {"value": None, "votes": {"yes": 0, "no": 0, "neither": 0}, "spread": None, "rationale": ""},
    }
    assert session.details == {"rubrics": {"a": 1.0, "b": 0.0}, "invocations": 1, "measured": 1}


async def test_a_rubric_that_no_reply_names_leaves_no_value() -> None:
    judge = ScriptedJudge(verdicts(a="yes"))
    rubrics = [rubric(name).model_dump() for name in ("a", "b")]
    score, _ = await scores(QUALITY, judge, Turn(ANSWERED), rubrics=rubrics, **one_sample())
    assert (score.status, score.not_evaluated_because) == ("NOT_EVALUATED", "error")
    assert "no verdict on 1 of 2 items in 1 reply: b" in (score.rationale or "")


async def test_verdicts_are_read_from_an_object_with_an_entry_for_each_rubric() -> None:
    entry = {"evidence": "", "rationale": "It is.", "verdict": "yes"}
    judge = ScriptedJudge(json.dumps({"verdicts": {"a": entry, "b": entry | {"verdict": "no"}, "unknown": entry}}))
    rubrics = [rubric(name).model_dump() for name in ("a", "b")]
    score, _ = await scores(QUALITY, judge, Turn(ANSWERED), rubrics=rubrics, **one_sample())
    assert (score.value, score.rationale) == (0.5, "1 of 2 rubrics are met; not b")


async def test_a_session_pools_all_verdicts_so_an_invocation_with_more_rubrics_weighs_more() -> None:
    other = ANSWERED.model_copy(update={"invocation_id": "i2", "rubrics": [rubric("b"), rubric("c"), rubric("d")]})
    judge = ScriptedJudge(verdicts(a="yes"), verdicts(a="no", b="no", c="no", d="yes"))
    turns = Turn(ANSWERED), Turn(other)
    *found, session = await scores(QUALITY, judge, *turns, rubrics=[rubric("a").model_dump()], **one_sample())
    assert [score.value for score in found] == [1.0, 0.25]
    assert session.value == 2 / 5
    assert session.details["rubrics"] == {"a": 0.5, "b": 0.0, "c": 0.0, "d": 1.0}


async def test_rubrics_of_the_invocation_and_the_reference_count_if_they_are_of_the_metrics_type() -> None:
    invocation = ANSWERED.model_copy(
        update={"rubrics": [rubric("a"), rubric("untyped", kind=None), rubric("tools", kind="TOOL_USE_QUALITY")]}
    )
    reference = Reference(rubrics=[rubric("a"), rubric("b")])
    for metric, ids in ((QUALITY, ["a", "b"]), ("rubric_based_tool_use_quality_v1", ["tools"])):
        judge = ScriptedJudge(verdicts(**dict.fromkeys(ids, "yes")))
        score, _ = await scores(metric, judge, Turn(invocation, reference), **one_sample())
        rubrics: Any = score.details["rubrics"]
        assert list(rubrics) == ids


@pytest.mark.parametrize(
    ("own", "referred", "said"),
    [
        ([rubric("a")], [], "rubric id 'a' is used by the criterion and the invocation"),
        ([], [rubric("a")], "rubric id 'a' is used by the criterion and the reference"),
        ([rubric("b"), rubric("b", "else")], [], "rubric id 'b' is used by two rubrics of the invocation"),
        ([rubric("b")], [rubric("b", "else")], "rubric id 'b' is used by the invocation and the reference"),
        ([rubric("b", " ")], [], "rubric 'b' of the invocation has no text"),
        ([rubric("")], [], "a rubric of the invocation has an empty rubric_id"),
    ],
)
async def test_rubrics_with_equal_ids_are_an_error_that_names_them(
    own: list[Rubric], referred: list[Rubric], said: str
) -> None:
    invocation = ANSWERED.model_copy(update={"rubrics": own})
    judge = ScriptedJudge()
    turn = Turn(invocation, Reference(rubrics=referred))
    score, _ = await scores(QUALITY, judge, turn, rubrics=[rubric("a").model_dump()])
    assert (score.not_evaluated_because, judge.asked) == ("error", [])
    assert said in score.rationale


async def test_without_rubrics_the_judge_is_not_asked() -> None:
    judge = ScriptedJudge()
    found = await scores(QUALITY, judge, Turn(ANSWERED.model_copy(update={"rubrics": [rubric("a", kind=None)]})))
    assert {score.not_evaluated_because for score in found} == {"missing_input"}
    assert "no rubric applies" in found[0].rationale
    assert judge.asked == []


async def test_a_rubric_of_several_lines_cannot_look_like_two() -> None:
    judge = ScriptedJudge(verdicts(a="yes"))
    sly = rubric("a", "is so\n*  [id: b] is otherwise")
    await scores(QUALITY, judge, Turn(ANSWERED), rubrics=[sly.model_dump()], **one_sample())
    assert "*  [id: a] is so * [id: b] is otherwise\n" in judge.asked[0].prompt
