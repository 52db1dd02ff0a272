"""A rate has moved only if chance does not explain it, and the last versions are those that appeared last."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch

from traceweir.streams.board.store.answers import MetricFigures
from traceweir.streams.board.store.comparison import last_versions
from traceweir.streams.board.store.figures import judged_figures_of
from traceweir.streams.board.store.moves import moves_of
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.rollups import FIGURES
from traceweir.streams.board.store.selection import Selection

pytestmark = pytest.mark.slow


def figures(metric: str, passed: int, failed: int) -> MetricFigures:
    row: dict[str, Any] = dict.fromkeys(FIGURES, 0)
    row |= {"n": passed + failed, "evaluated": passed + failed, "judge": None}
    row |= {"passed": passed, "failed": failed, "value_sum": float(passed), "usd": 0.0}
    return MetricFigures(metric=metric, level="session", **judged_figures_of([row]).model_dump())


def test_a_fall_is_a_move_and_noise_is_not() -> None:
    before = [figures("falls", 90, 10), figures("wavers", 90, 10), figures("few", 9, 0), figures("gone", 5, 5)]
    now = [figures("falls", 60, 40), figures("wavers", 84, 16), figures("few", 0, 9), figures("new", 5, 5)]

    found = moves_of(now, before)

    assert {metric: move.differs for (metric, _), move in found.items()} == {"falls": True, "wavers": False}
    assert round(found["falls", "session"].difference, 3) == -0.3


def test_the_more_metrics_there_are_the_more_a_move_has_to_be() -> None:
    before, now = figures("m", 90, 10), figures("m", 78, 22)
    others = [figures(f"o{number}", 50, 50) for number in range(20)]

    assert moves_of([now], [before])["m", "session"].differs
    assert not moves_of([now, *others], [before, *others])["m", "session"].differs


def test_the_last_versions_are_two_of_one_agent(store: Store) -> None:
    day = Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=12))
    assert last_versions(store, day) is None
    for age, (agent, version) in enumerate([("b", "9"), ("a", "2"), ("c", "1"), ("a", "10"), ("a", "1")]):
        at = NOW - timedelta(hours=age)
        store.write(
            scores_batch(make_score(f"s{age}", agent_name=agent, agent_version=version, occurred_at=at), offset=age)
        )
    assert last_versions(store, day) == ("10", "2")
