"""A difference is one only if chance does not explain it, and the last versions are those that appeared last."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch

from traceweir.streams.board.store.answers import MetricFigures
from traceweir.streams.board.store.comparison import compare, last_versions
from traceweir.streams.board.store.differences import LEVEL_OF_PROOF, differences_from_before
from traceweir.streams.board.store.figures import judged_figures_of
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

    found = differences_from_before(now, before)

    assert {metric: move.differs for (metric, _), move in found.items()} == {"falls": True, "wavers": False}
    assert round(found["falls", "session"].difference, 3) == -0.3


def test_the_more_metrics_there_are_the_more_a_move_has_to_be() -> None:
    before, now = figures("m", 90, 10), figures("m", 78, 22)
    others = [figures(f"o{number}", 50, 50) for number in range(20)]

    assert differences_from_before([now], [before])["m", "session"].differs
    assert not differences_from_before([now, *others], [before, *others])["m", "session"].differs


def test_turns_of_a_session_are_alike_and_have_no_colour() -> None:
    before = figures("m", 90, 10).model_copy(update={"level": "invocation"})
    now = figures("m", 50, 50).model_copy(update={"level": "invocation"})

    assert not differences_from_before([now], [before])["m", "invocation"].differs


def test_a_comparison_of_two_results_has_no_colour(store: Store) -> None:
    day = Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=12))
    for version, values in {"1": [0.9] * 2, "2": [0.1] * 2, "3": [0.9] * 20, "4": [0.1] * 20}.items():
        scores = (make_score(f"{version}-{n}", value=value, agent_version=version) for n, value in enumerate(values))
        store.write(scores_batch(*scores, offset=100 * int(version)))

    few, many = (
        compare(
            store,
            *(Selection(day.since, day.until, {"agent_version": version}) for version in versions),
        ).metrics[0]
        for versions in (("1", "2"), ("3", "4"))
    )

    assert (few.differs, few.pass_rate_difference, few.mean_difference_low) == (False, -1.0, None)
    assert many.differs


def informational(metric: str, values: list[float], level: str = "session") -> MetricFigures:
    row: dict[str, Any] = dict.fromkeys(FIGURES, 0) | {
        "n": len(values),
        "evaluated": len(values),
        "judge": None,
        "usd": 0.0,
    }
    row |= {"value_sum": sum(values), "value_square_sum": sum(value * value for value in values)}
    return MetricFigures(metric=metric, level=level, **judged_figures_of([row]).model_dump())


def test_means_are_compared_where_no_threshold_judges_a_value() -> None:
    values = [float(number % 7) for number in range(40)]

    found = differences_from_before(
        [informational("slower", [value + 3 for value in values]), informational("same", values)],
        [informational("slower", values), informational("same", values)],
    )

    assert {metric: (each.of, each.differs) for (metric, _), each in found.items()} == {
        "slower": ("mean", True),
        "same": ("mean", False),
    }
    assert found["slower", "session"].numbers == (40, 40)
    assert differences_from_before([informational("m", values[:9])], [informational("m", values)]) == {}
    turns = differences_from_before(
        [informational("m", [9.0 + each for each in values], "invocation")], [informational("m", values, "invocation")]
    )
    assert [(each.p_value, each.differs) for each in turns.values()] == [(None, False)]


@pytest.mark.large
def test_without_any_difference_one_of_twenty_tables_has_a_colour_at_most() -> None:
    draws = np.random.default_rng(11)
    coloured = 0
    for _ in range(300):
        spans = [
            [
                *(figures(f"rate{at}", good := int(draws.binomial(size, 0.8)), size - good)
                  for at, size in enumerate(draws.integers(10, 150, size=12).tolist())),
                *(informational(f"mean{at}", draws.exponential(900.0, size=size).tolist())
                  for at, size in enumerate(draws.integers(40, 150, size=12).tolist())),
            ]
            for _ in range(2)
        ]  # fmt: skip
        found = differences_from_before(*spans)
        assert len(found) == 24
        coloured += any(each.differs for each in found.values())
    assert coloured / 300 <= LEVEL_OF_PROOF


def test_the_interval_of_a_mean_keeps_its_digits_far_from_zero(store: Store) -> None:
    at = 1.7e9
    values = {"1": [at + number / 8 for number in range(16)], "2": [at + 1 + number / 8 for number in range(16)]}
    for version, found in values.items():
        store.write(
            scores_batch(
                *(
                    make_score(f"{version}-{n}", "ended_at", value, threshold=None, agent_version=version)
                    for n, value in enumerate(found)
                ),
                offset=100 * int(version),
            )
        )
    sides = [Selection(NOW - timedelta(hours=1), NOW + timedelta(hours=1), {"agent_version": each}) for each in values]

    (found_difference,) = compare(store, *sides).metrics

    # For the one test that needs it: scipy.stats takes half a second to import, which every process would spend.
    from scipy.stats import ttest_ind

    expected = ttest_ind(values["2"], values["1"])
    low, high = expected.confidence_interval(0.95)
    assert found_difference.mean_difference_low == pytest.approx(low)
    assert found_difference.mean_difference_high == pytest.approx(high)
    assert found_difference.p_value == pytest.approx(expected.pvalue)
    assert found_difference.differs is bool(expected.pvalue <= LEVEL_OF_PROOF)


def test_values_that_are_too_large_for_a_variance_cost_no_answer(store: Store) -> None:
    scores = (make_score(f"s{n}", "huge", 1.7e308 * (-1) ** n, threshold=None) for n in range(20))
    store.write(scores_batch(*scores))
    day = Selection(NOW - timedelta(hours=1), NOW + timedelta(hours=1))

    (found,) = compare(store, day, day).metrics

    assert (found.mean_difference_low, found.p_value, found.differs) == (None, None, False)


def add(store: Store, offset: int, agent: str, version: str, *ages_h: float) -> None:
    store.write(
        scores_batch(
            *(
                make_score(
                    f"{offset}-{age_h}",
                    agent_name=agent,
                    agent_version=version,
                    occurred_at=NOW - timedelta(hours=age_h),
                )
                for age_h in ages_h
            ),
            offset=offset,
        )
    )


def test_the_last_versions_are_the_newest_two_of_one_agent(store: Store) -> None:
    day = Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=12))
    assert last_versions(store, day) is None
    for offset, (agent, version) in enumerate([("b", "9"), ("a", "2"), ("c", "1"), ("a", "10"), ("a", "1")]):
        add(store, offset, agent, version, offset)
    assert last_versions(store, day) == ("a", "10", "2")


def test_a_version_is_as_new_as_its_first_result_which_can_be_older_than_the_span(store: Store) -> None:
    add(store, 0, "a", "1.0", 72, 1)
    add(store, 10, "a", "1.1", 48, 2)

    assert last_versions(store, Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=1))) == ("a", "1.0", "1.1")


def test_of_versions_that_came_at_once_the_larger_number_is_newer(store: Store) -> None:
    for offset, version in enumerate(["1.10", "1.9"]):
        add(store, offset, "a", version, 1)

    assert last_versions(store, Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=1))) == ("a", "1.9", "1.10")


def test_of_several_agents_the_one_whose_version_came_last_is_compared(store: Store) -> None:
    for offset, (agent, version, age_h) in enumerate([("a", "1", 9), ("a", "2", 1), ("b", "1", 3), ("b", "2", 2)]):
        add(store, offset, agent, version, age_h)

    assert last_versions(store, Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=1))) == ("a", "1", "2")
