"""An estimate extrapolates what a part of the sessions shows, and says how much it has seen."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import pytest
from tests.support.shadows import closed_session, make_definition

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.scorers.judge import Question
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab import foreseen_questions
from traceweir.streams.lab.shadow.estimate import JUDGED_SESSIONS, PLACES, READ_AT_A_PLACE, CostEstimate, estimated
from traceweir.streams.lab.shadow.known_verdicts import ROWS_OF_SCORE
from traceweir.streams.pipeline.score.judge_rows import verdict_prefix
from traceweir.streams.scoring.judges.verdicts import verdict_key
from traceweir.streams.tools.testing.memory import Message
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

# An estimate loads litellm, which has the prices; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

VOTES = 3
JUDGED = {"criteria": {"safety_v1": {"threshold": 1.0, "judge_model_options": {"num_samples": VOTES}}}}
PRICE = {"judge": {"prices": {"gemini/gemini-2.5-flash": {"input": 10, "output": 10}}}}


class Sessions:
    """The topic `sessions` with one partition, in place of the reader of Kafka."""

    def __init__(self, apps: list[str]) -> None:
        self._records = [
            Message("sessions", 0, at, 1_000, b"s%d" % at, json.dumps(closed_session(f"s{at}", app)).encode(), ())
            for at, app in enumerate(apps)
        ]
        self.read = 0

    async def __aenter__(self) -> Sessions:
        return self

    async def __aexit__(self, *error: object) -> None: ...

    async def records(self, begins: Mapping[int, int]) -> AsyncIterator[Message]:
        for record in self._records[begins[0] :]:
            self.read += 1
            yield record


async def estimate_of(
    apps: list[str],
    config: object = JUDGED | PRICE,
    verdicts: Mapping[bytes, bytes] = MappingProxyType({}),
    **changes: Any,
) -> CostEstimate:
    sessions = Sessions(apps)
    plan: Plan = read_plan(json.dumps(config))
    found = await estimated(
        Settings(),
        make_definition(ends={0: len(apps)}, **changes),
        plan,
        {0: dict(verdicts)},
        reader=lambda *_: cast("BoundedReader", sessions),
    )
    assert sessions.read <= PLACES * (READ_AT_A_PLACE + 1)
    return found


async def test_the_questions_of_some_sessions_are_extrapolated_to_all() -> None:
    found = await estimate_of(["shop"] * 1_000)
    assert (found.sessions, found.questions, found.known) == (1_000, 1_000 * VOTES, 0)
    assert (found.looked_at, found.chosen, found.is_whole) == (200, 200, False)
    assert found.usd > 0
    assert found.unpriced == ()


async def test_the_estimate_of_a_rare_app_is_no_bound_but_can_be_too_high_or_too_low() -> None:
    lucky = ["shop"] * 1_000
    lucky[10] = "rare"  # read, because the first 50 of each 250 sessions are read
    found = await estimate_of(lucky, app="rare")
    assert (found.sessions, found.questions, found.chosen, found.is_whole) == (5, 5 * VOTES, 1, False)

    hidden = ["shop"] * 60 + ["rare"] * 190 + ["shop"] * 750
    found = await estimate_of(hidden, app="rare")
    assert (found.sessions, found.questions, found.chosen, found.is_whole) == (0, 0, 0, False)


async def test_a_selection_that_no_session_read_is_in_is_told_from_an_empty_range() -> None:
    large = await estimate_of(["shop", "bank"] * 500, app="typo")
    assert (large.looked_at, large.chosen, large.is_whole, large.apps) == (200, 0, False, ("bank", "shop"))
    small = await estimate_of(["shop", "bank"] * 100, app="typo")
    assert (small.looked_at, small.chosen, small.is_whole, small.apps) == (200, 0, True, ("bank", "shop"))
    tiny = await estimate_of(["shop"] * 1_000, sample=0.0001)
    assert (tiny.questions, tiny.chosen, tiny.is_whole, tiny.apps) == (0, 0, False, ())


async def test_models_without_a_price_are_named_also_if_no_session_read_is_selected() -> None:
    options = {"judge_model": "openai/mine"}
    config = {"criteria": {"safety_v1": {"threshold": 1.0, "judge_model_options": options}}}
    found = await estimate_of(["shop"] * 1_000, config, app="typo")
    assert found.unpriced == ("openai/mine",)


async def test_criteria_are_run_on_a_limited_number_of_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[object] = []

    async def counted(plan: Plan, session: Any, *rest: Any, **options: Any) -> object:
        run.append(session)
        return await evaluate(plan, session, *rest, **options)

    monkeypatch.setattr(foreseen_questions, "evaluate", counted)
    found = await estimate_of(["shop"] * 200)
    assert (len(run), found.is_whole, found.questions) == (JUDGED_SESSIONS, True, 200 * VOTES)


@pytest.mark.parametrize(("fallback", "known"), [({}, 0), ({"gemini-2.5-flash": ["openai/second"]}, VOTES)])
async def test_a_verdict_of_a_fallback_is_known(
    fallback: dict[str, list[str]], known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Question] = []

    def noted(question: Question, *rest: Any) -> bytes:
        asked.append(question)
        return verdict_key(question, *rest)

    monkeypatch.setattr(foreseen_questions, "verdict_key", noted)
    config = JUDGED | {"judge": {"fallback": fallback}}
    await estimate_of(["shop"], config)
    of_second = verdict_key(replace(asked[0], model="openai/second"), "openai/second", {})
    row = ROWS_OF_SCORE + verdict_prefix(b"s0") + of_second
    found = await estimate_of(["shop"], config, {row: b""})
    assert (found.known, found.questions) == (known, VOTES - known)


async def test_a_question_that_two_criteria_share_counts_once_with_the_votes_of_the_larger_number() -> None:
    shared = {"response/llm_judged/safety/rating": {"threshold": 1.0, "judge_model_options": {"num_samples": 5}}}
    alone = await estimate_of(["shop"] * 10, {"criteria": shared} | PRICE)
    both = await estimate_of(["shop"] * 10, {"criteria": JUDGED["criteria"] | shared} | PRICE)
    assert (alone.questions, both.questions) == (50, 50)
    assert both.usd == pytest.approx(alone.usd)


async def test_a_criterion_behind_conditions_on_judged_criteria_counts_as_if_they_held() -> None:
    def own(metric: str, **condition: object) -> dict[str, object]:
        when = {"any": [{"metric": metric, **condition}]}
        return {"threshold": 1.0, "prompt": "Is it kind?\n\n{answer}", "when": when}

    criteria = {
        **JUDGED["criteria"],
        "second": own("safety_v1", status="FAILED"),
        "third": own("second", below=1),
        "never": own("answered", above=1),
        "answered": {"threshold": 1.0},
    }
    found = await estimate_of(["shop"] * 10, {"criteria": criteria} | PRICE)
    assert found.questions == 10 * (VOTES + 1 + 1)
