"""Tests that a change of a judge is found on anchors, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.watched_judge import HOUR, JudgeChange, Side, WatchedJudge, least_moved

pytestmark = pytest.mark.slow
DAY_HOURS = 24
AN_HOUR = 10
ANCHORS = 100


def answers(usual: np.ndarray, random: np.random.Generator, noise: float = 0.02) -> list[tuple[str, bool]]:
    """Returns the verdicts of an hour of a judge with these usual verdicts."""
    chosen = random.integers(0, len(usual), AN_HOUR)
    return [(str(each), bool(usual[each] ^ (random.random() < noise))) for each in chosen]


def played(judge: WatchedJudge, usual: np.ndarray, hours: range, seed: int = 1) -> list[JudgeChange]:
    random = np.random.default_rng(seed)
    return [found for hour in hours if (found := judge.step(hour, answers(usual, random))) is not None]


USUAL = np.arange(ANCHORS) % 2 == 0
LEARNT = range(14 * DAY_HOURS)
AFTER = range(14 * DAY_HOURS, 28 * DAY_HOURS)


@pytest.mark.parametrize(("side", "moved"), [("stricter", USUAL), ("milder", ~USUAL)])
def test_a_judge_that_answers_in_another_way_is_found_with_its_side_time_and_size(
    side: Side, moved: np.ndarray
) -> None:
    judge = WatchedJudge(1)
    assert played(judge, USUAL, LEARNT) == []
    later = USUAL ^ (moved & (np.arange(ANCHORS) < 40))
    [found] = played(judge, later, AFTER, seed=2)
    assert found.side == side
    assert found.change.earliest <= AFTER.start * HOUR <= found.change.latest
    assert found.moved[1] <= 0.4 * 0.96 <= found.moved[2]
    # The next change is one from the new judge.
    assert not judge.is_watched("stricter") or judge.watched_since("stricter", 0) > 0


def test_a_judge_that_moves_as_many_to_each_side_is_found_too() -> None:
    judge = WatchedJudge(1)
    played(judge, USUAL, LEARNT)
    later = USUAL ^ (np.arange(ANCHORS) < 30)
    assert later.sum() == USUAL.sum()
    assert played(judge, later, AFTER, seed=2) != []


def test_a_judge_that_disagrees_with_people_but_does_not_change_is_not_found() -> None:
    judge = WatchedJudge(1)
    assert played(judge, USUAL, range(60 * DAY_HOURS)) == []


def test_only_verdicts_after_learning_and_since_a_time_are_counted() -> None:
    judge = WatchedJudge(1)
    played(judge, USUAL, range(DAY_HOURS))
    assert not judge.is_watched("stricter")
    assert judge.watched_since("stricter", 0) == 0
    assert judge.verdicts_needed("stricter", 0.1) is None
    played(judge, USUAL, range(DAY_HOURS, 14 * DAY_HOURS))
    both = sum(judge.watched_since(side, (14 * DAY_HOURS - 2) * HOUR) for side in ("stricter", "milder"))
    assert both == 2 * AN_HOUR
    assert judge.anchors("stricter") + judge.anchors("milder") == ANCHORS


@pytest.mark.parametrize(("share", "anchors"), [(0.1, 100), (0.1, 10), (0.22, 90), (0.9, 3), (0.0, 5), (1.0, 5)])
def test_the_least_share_of_anchors_is_the_quantile_of_the_binomial_distribution(share: float, anchors: int) -> None:
    from scipy.stats import binom

    assert least_moved(share, anchors) * anchors == pytest.approx(binom.ppf(0.05, anchors, share))
