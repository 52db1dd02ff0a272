"""Scores of three days in which the pass rate of one of two apps drops and recovers, and what a rule says about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

from traceweir.schemas.alert import Alert
from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.score import Score
from traceweir.streams.tools.alerts.replay import replay
from traceweir.streams.tools.alerts.watched_scores import ScoreSorter

START = datetime(2026, 11, 1, tzinfo=UTC)
RULE = AlertRule(id="r", by=("app_name",), baseline_days=1, days_between_false_alarms=1)


def score(number: int, minute: float, passed: bool | None, **changes: object) -> Score:
    moment = START + timedelta(minutes=minute)
    fields = {
        "result_id": f"result-{number}",
        "revision": 0,
        "session_id": f"s{number}",
        "segment": 0,
        "level": "session",
        "metric": "helpful",
        "value": None if passed is None else float(passed),
        "threshold": 0.5,
        "status": "NOT_EVALUATED" if passed is None else "PASSED" if passed else "FAILED",
        "not_evaluated_because": "error" if passed is None else None,
        "scorer_version": "1",
        "config_digest": "d",
        "occurred_at": moment,
        "evaluated_at": moment,
    }
    return Score.model_validate(fields | changes)


def story(seed: int = 3, *, begins: int = 1_500, lasts: int = 900) -> list[Score]:
    """Three days of two apps, one of which is bad for a time; some sessions come again, and some are revised.

    Args:
        seed: Draws which sessions pass.
        begins: When the app becomes bad, in minutes since the beginning.
        lasts: For how many minutes it is bad.
    """
    random = Random(seed)
    found = []
    for number in range(3 * 24 * 12):
        minute = number * 5
        bad = begins <= minute < begins + lasts
        for app in ("shop", "bank"):
            passed = random.random() < (0.2 if bad and app == "shop" else 0.95)
            version = "2" if bad else "1"
            identity = 2 * number + (app == "bank")
            found.append(score(identity, minute, passed, app_name=app, agent_version=version))
            if identity % 7 == 0:
                found.append(score(identity, minute + random.choice([1, 300, 1_440]), False, app_name=app, revision=1))
            if identity % 5 == 0:
                found.append(score(10**6 + identity, minute, passed, app_name=app, session_id=f"s{identity}"))
    return sorted(found, key=lambda each: each.occurred_at)


def replayed(scores: Sequence[Score], rule: AlertRule = RULE) -> dict[str, Alert]:
    """Returns what `traceweir alerts test` says about scores, by the ids of the alerts."""
    sorter = ScoreSorter(rule)
    for each in scores:
        sorter.add(each)
    return {each.alert_id: each for each in replay(sorter.sorted(), rule).alerts}
