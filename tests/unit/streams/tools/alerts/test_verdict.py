"""An alert is raised at once, and says whose change it is when the anchors show it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cache

import pytest
from tests.support.alert_story import RULE, START, score, story

from traceweir.schemas.alert import Alert
from traceweir.schemas.score import GATE
from traceweir.streams.base.statistics.change_point import Changed
from traceweir.streams.base.statistics.watched_judge import JudgeChange, WatchedJudge
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.judge_or_agent import GUARD_MINUTES, AnchorEvidence
from traceweir.streams.tools.alerts.state_rows import LogPlace
from traceweir.streams.tools.alerts.verdict import attribution_of

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
        watch.add(0, 0, each.model_copy(update=named))
    watch.tick(0.0, ())
    watch.tick(1_000.0, ())
    return {key: row for key, row in watch.cut(LogPlace()).rows if row is not None}


def raised(judge: str | None = "openai/judge", config: str = "d", version: str = "1") -> tuple[AlertWatch, Alert]:
    watch = AlertWatch()
    watch.load(rows_of_raised(judge, config, version))
    [alert] = watch.raised
    return watch, alert


def said(watch: AlertWatch) -> list[Alert]:
    cut = watch.cut(LogPlace())
    assert not cut.alerts
    return [alert for alert, _ in cut.attributed]


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


def test_after_the_guard_time_the_verdict_stays_and_nobody_reads_anchors() -> None:
    watch, alert = raised()
    assert watch.waits_for_anchors
    later = alert.since + timedelta(minutes=GUARD_MINUTES + 1)
    watch.add(0, 0, score(10**7, (later - START) / timedelta(minutes=1), passed=False, app_name="shop"))
    watch.tick(2_000.0, ())
    watch.tick(3_000.0, ())
    assert [each.alert_id for each in watch.raised] == [alert.alert_id]
    assert not watch.waits_for_anchors
    watch.attribute({"helpful": stricter_since(DROP)})
    assert said(watch) == []


def test_what_comes_after_the_alert_changes_no_verdict() -> None:
    watch, alert = raised(judge=None)
    minutes = (alert.since - START) / timedelta(minutes=1) + 700
    for number in range(60):
        late = {"app_name": "shop", "judge": "openai/judge", "config_digest": f"late-{number}"}
        watch.add(0, 0, score(10**7 + number, minutes, passed=False, **late))
    watch.tick(2_000.0, ())
    watch.tick(3_000.0, ())
    watch.attribute({})
    assert [each.verdict for each in watch.raised] == ["agent"]


def test_anchors_of_another_metric_say_nothing() -> None:
    watch, _ = raised()
    watch.attribute({"safety_v1": stricter_since(DROP)})
    assert said(watch) == []


def test_an_end_after_a_verdict_is_the_last_record_of_the_alert() -> None:
    watch, alert = raised()
    watch.attribute({"helpful": stricter_since(DROP)})
    assert watch.accept(alert.alert_id)
    cut = watch.cut(LogPlace())
    assert ([(each.state, each.verdict) for each in cut.alerts], cut.attributed) == ([("resolved", "judge")], [])


@pytest.mark.parametrize("field", ["judge", "scorer_version", "metric_digest"])
def test_an_agent_is_not_named_if_what_measures_it_came_at_the_same_time(field: str) -> None:
    _, alert = raised(judge=None)
    assert attribution_of(alert, None, {field, "agent_version"}, is_judged=False).verdict == "unknown"
    assert attribution_of(alert, None, {"agent_version"}, is_judged=False).verdict == "agent"


@pytest.mark.parametrize(
    ("field", "verdict"),
    [("metric_digest", "config"), ("cause", "config"), ("agent_version", "unknown"), ("labels.prompt", "unknown")],
)
def test_a_config_is_named_beside_what_it_changes_itself_and_beside_nothing_else(field: str, verdict: str) -> None:
    _, alert = raised(config="e")
    assert attribution_of(alert, None, {"config_digest", field}, is_judged=True).verdict == verdict


def test_the_gate_and_scores_without_a_value_are_not_called_the_agents() -> None:
    _, alert = raised(judge=None)
    gate = alert.model_copy(update={"stream": alert.stream.model_copy(update={"metric": GATE})})
    for each in (alert.model_copy(update={"what": "not_evaluated"}), gate):
        assert attribution_of(each, None, (), is_judged=False).verdict == "unknown"


@pytest.mark.parametrize("changes", [{"what": "not_evaluated"}, {"what": "mean"}])
def test_anchors_say_nothing_about_means_and_missing_values(changes: dict[str, str]) -> None:
    _, alert = raised()
    found = attribution_of(alert.model_copy(update=changes), stricter_since(DROP), (), is_judged=True)
    assert found.verdict == "unknown"


def test_scores_that_no_judge_gives_are_the_agents() -> None:
    _, alert = raised(judge=None)
    assert alert.verdict == "agent"


@pytest.mark.parametrize(
    ("version", "verdict"), [("1", "config"), ("2", "unknown")], ids=["a config alone", "a version at the same time"]
)
def test_a_config_is_named_unless_a_version_of_the_agent_came_with_it(version: str, verdict: str) -> None:
    _, alert = raised(config="e", version=version)
    assert alert.verdict == verdict
