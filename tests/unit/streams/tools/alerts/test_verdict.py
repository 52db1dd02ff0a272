"""An alert is raised at once, and says whose change it is when the anchors show it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from tests.support.alert_story import RULE, START, story

from traceweir.schemas.alert import Alert
from traceweir.streams.base.statistics.change_point import Changed
from traceweir.streams.base.statistics.watched_judge import JudgeChange, WatchedJudge
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.judge_or_agent import AnchorEvidence
from traceweir.streams.tools.alerts.state_rows import LogPlace

pytestmark = pytest.mark.slow
DROP = int(START.timestamp()) // 60 + 1_500
"""The minute from which the story's app is bad."""


def stricter_since(minute: int) -> AnchorEvidence:
    found = JudgeChange(
        "stricter", minute + 300, Changed(minute, minute - 30, minute + 60, 30, 0.7, 0.6, 0.8, 0.98), (0.3, 0.2, 0.4)
    )
    return AnchorEvidence(WatchedJudge(1), [found])


@cache
def rows_of_raised(judge: str | None, config: str, version: str) -> Mapping[bytes, bytes]:
    """Returns the state in the middle of the bad day; the names are those of the bad scores."""
    watch = AlertWatch()
    watch.put_rule(RULE.id, RULE)
    for each in story():
        minute = int(each.occurred_at.timestamp()) // 60
        if minute >= DROP + 600:
            break
        is_bad = minute >= DROP
        named = {
            "judge": judge,
            "config_digest": config if is_bad else "d",
            "agent_version": version if is_bad else "1",
        }
        watch.add(0, each.model_copy(update=named))
    watch.tick(0.0, ())
    watch.tick(1_000.0, ())
    return {key: row for key, row in watch.cut(LogPlace()).rows if row is not None}


def raised(judge: str | None = "openai/judge", config: str = "d", version: str = "1") -> tuple[AlertWatch, Alert]:
    watch = AlertWatch()
    watch.load(rows_of_raised(judge, config, version))
    [alert] = watch.raised
    return watch, alert


def said(watch: AlertWatch) -> list[Alert]:
    return list(watch.cut(LogPlace()).alerts)


def test_an_alert_of_judged_scores_is_raised_before_anybody_knows_whose_change_it_is() -> None:
    _, alert = raised()
    assert alert.verdict == "unknown"


def test_a_change_of_the_judge_at_that_time_makes_the_alert_the_judges_once() -> None:
    watch, alert = raised()
    for _ in range(2):
        watch.attribute({"helpful": stricter_since(DROP)})
    [found] = said(watch)
    assert (found.alert_id, found.state, found.verdict) == (alert.alert_id, "raised", "judge")


def test_the_verdict_is_a_part_of_the_state() -> None:
    watch, _ = raised()
    watch.attribute({"helpful": stricter_since(DROP)})
    rows = dict(rows_of_raised("openai/judge", "d", "1")) | {key: row for key, row in watch.cut(LogPlace()).rows if row}
    again = AlertWatch()
    again.load(rows)
    assert [each.verdict for each in again.raised] == ["judge"]


def test_anchors_of_another_metric_say_nothing() -> None:
    watch, _ = raised()
    watch.attribute({"safety_v1": stricter_since(DROP)})
    assert said(watch) == []


def test_scores_that_no_judge_gives_are_the_agents() -> None:
    _, alert = raised(judge=None)
    assert alert.verdict == "agent"


@pytest.mark.parametrize(
    ("version", "verdict"), [("1", "config"), ("2", "unknown")], ids=["a config alone", "a version at the same time"]
)
def test_a_config_is_named_unless_a_version_of_the_agent_came_with_it(version: str, verdict: str) -> None:
    _, alert = raised(config="e", version=version)
    assert alert.verdict == verdict
