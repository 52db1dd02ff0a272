"""The section `challenger` of a config: it is checked with everything else, and changes no score of the champion."""

from __future__ import annotations

from typing import Any

import pytest

from traceweir.schemas.config import ChallengerConfig
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.gate_rules import gate_rules
from traceweir.scorers.evaluation.limited_plan import limited
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.topics import SHADOW_NAME

CHAMPION: dict[str, Any] = {"criteria": {"response_match_score": 0.5}}
CONFIG: dict[str, Any] = {"criteria": {"response_match_score": 0.8}}


def document(**section: Any) -> dict[str, Any]:
    return CHAMPION | {"challenger": {"name": "v2", "config": CONFIG, **section}}


def problems(config: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_plan(config)
    return caught.value.problems


def test_a_challenger_is_a_plan_of_its_own() -> None:
    found = read_plan(document(sample=0.1, budget=5)).challenger
    assert found is not None
    assert (found.name, found.sample, found.budget_usd) == ("v2", 0.1, 5.0)
    assert found.plan == read_plan(CONFIG)
    assert found.document == CONFIG


def test_without_the_section_or_with_null_there_is_none() -> None:
    assert read_plan(CHAMPION).challenger is None
    assert read_plan(CHAMPION | {"challenger": None}).challenger is None


def test_a_challenger_changes_neither_digests_nor_the_rules_of_the_gate() -> None:
    plain, challenged = read_plan(CHAMPION), read_plan(document())
    assert challenged.digest == plain.digest
    assert [metric.digest for metric in challenged.metrics] == [metric.digest for metric in plain.metrics]
    assert gate_rules(challenged) == gate_rules(plain)


def test_another_share_or_budget_is_the_same_challenger_another_name_or_config_is_not() -> None:
    def id_of(**section: Any) -> str:
        found = read_plan(document(**section)).challenger
        assert found is not None
        return found.id

    assert id_of() == id_of(sample=0.1, budget=5)
    assert len({id_of(), id_of(name="v3"), id_of(config=CHAMPION)}) == 3


def test_every_problem_is_listed_with_its_path() -> None:
    wrong = {"criteria": {"response_match_score": 7, "no_such": 1}, "challenger": {}}
    found = problems(
        {"criteria": {"latency": 1, "unknown": 2}} | {"challenger": {"name": "a.b", "sample": 0, "config": wrong}}
    )
    starts = (
        "criteria.latency",
        "criteria.unknown",
        "challenger.name: ",
        "challenger.sample: ",
        "challenger.config.challenger: a challenger has no challenger",
        "challenger.config.criteria.response_match_score: ",
        "challenger.config.criteria.no_such: ",
    )
    assert all(any(problem.startswith(start) for problem in found) for start in starts), found
    assert len(found) == len(starts)


@pytest.mark.parametrize(
    ("section", "start"),
    [
        ("v2", "challenger: must be an object"),
        ({"name": "v2"}, "challenger.config: "),
        ({"name": "v2", "config": []}, "challenger.config: "),
        ({"name": "v2", "config": {}, "budget": 0}, "challenger.budget: "),
        ({"name": "v2", "config": {}, "share": 1}, "challenger.share: there is no such option"),
        ({"name": "v" * 101, "config": {}}, "challenger.name: "),
        ({"name": "v2\n", "config": {}}, "challenger.name: "),
    ],
)
def test_a_wrong_section_is_one_problem(section: object, start: str) -> None:
    (problem,) = problems(CHAMPION | {"challenger": section})
    assert problem.startswith(start)


def test_the_names_of_challengers_are_those_of_shadows() -> None:
    schema = ChallengerConfig.model_json_schema()["properties"]["name"]
    assert schema["pattern"] == f"^{SHADOW_NAME}$"


def test_a_limited_plan_never_retries_costs_the_lower_of_both_budgets_and_has_no_challenger() -> None:
    config = document() | {"judge": {"retry_later": {}, "budget": {"usd": 9, "usd_per_day": 2}}}
    plan = read_plan(config)
    assert limited(plan, None).judge.budget.usd == 9
    found = limited(plan, 5.0)
    assert (found.judge.budget.usd, found.judge.budget.usd_per_day) == (5.0, 2.0)
    assert limited(plan, 20.0).judge.budget.usd == 9  # the lower one of both counts
    assert limited(read_plan(CONFIG), 20.0).judge.budget.usd == 20
    assert limited(read_plan(CONFIG), None).judge.budget.usd is None
    assert (found.judge.retry_later, found.challenger, found.digest) == (None, None, plan.digest)
