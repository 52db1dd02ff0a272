"""Tests that ADK's `custom_metrics` run a registered scorer, or nothing, and never the code that they name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.scoring import expecting, install, make_turn, scores_of

from traceweir.scorers import ConfigError, read_plan

TURN = make_turn(answer="yes", reference=expecting("yes"))


def config(metric: str, criterion: Any = 0.5, **entry: Any) -> dict[str, Any]:
    code = {"code_config": {"name": "stolen.run"}, **entry}
    return {"criteria": {metric: criterion}, "custom_metrics": {metric: code, "unused": code}}


async def test_a_metric_without_a_scorer_is_unsupported_whatever_its_threshold() -> None:
    for criterion in (-7, {"threshold": 30, "any_option": 1}):
        plan = read_plan(config("my_metric", criterion, metric_info={"metric_name": "my_metric"}, description="Mine."))
        (score,) = await scores_of(plan, [TURN])
        assert (score.level, score.status, score.not_evaluated_because) == ("session", "NOT_EVALUATED", "unsupported")
        assert "the config computes my_metric with stolen.run, which Traceweir does not run" in score.rationale


async def test_a_metric_of_adk_that_the_config_computes_itself_is_unsupported() -> None:
    (score,) = await scores_of(read_plan(config("response_evaluation_score", 0.5)), [TURN])
    assert (score.not_evaluated_because, score.threshold) == ("unsupported", 0.5)


async def test_a_registered_name_is_measured_by_its_scorer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "brevity_of_mine.py").write_text(
        "from traceweir.scorers import Measurement, Scorer\n"
        "class Brevity(Scorer):\n"
        "    def score(self, subject):\n"
        "        return Measurement(value=1.0)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "brevity-of-mine", {"my_metric": "brevity_of_mine:Brevity"})

    for metric in ("my_metric", "response_match_score"):
        scores = await scores_of(read_plan(config(metric)), [TURN])
        assert [(score.level, score.value) for score in scores] == [("invocation", 1.0), ("session", 1.0)]


def test_the_code_of_a_config_is_never_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stolen.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))

    read_plan(config("my_metric"))

    assert "stolen" not in sys.modules


@pytest.mark.parametrize("entry", ["stolen.run", {}, {"code_config": {}}, {"code_config": {"name": 1}}])
def test_an_entry_that_adk_cannot_read_is_the_only_problem(entry: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        read_plan({"criteria": {"my_metric": 0.5}, "customMetrics": {"my_metric": entry}})
    (problem,) = caught.value.problems
    assert problem.startswith("customMetrics.my_metric")


@pytest.mark.parametrize(("criterion", "end"), [({}, "; none is given"), ("inf", ', not "inf"'), ([], ", not []")])
def test_a_threshold_is_a_number_also_for_a_metric_without_a_scorer(criterion: Any, end: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_plan(config("my_metric", criterion))
    assert caught.value.problems == [f"criteria.my_metric: the threshold must be a number{end}"]


def test_a_metric_without_an_entry_is_still_a_problem() -> None:
    with pytest.raises(ConfigError, match="my_metric: there is no such metric"):
        read_plan({"criteria": {"my_metric": 0.5}, "custom_metrics": {"other": {"code_config": {"name": "a.b"}}}})
