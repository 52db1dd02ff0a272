"""A slice is named as different only if chance does not explain it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch

from traceweir.streams.board.store import slices as slices_module
from traceweir.streams.board.store.metric import metric
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.rollups import FIGURES
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.slices import SHOWN, ranked

pytestmark = pytest.mark.slow

MATCH = Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=12), metric="response_match_score")


def results_of(version: str, passed: int, failed: int, **changes: Any) -> list[Any]:
    values = [1.0] * passed + [0.0] * failed
    return [
        make_score(f"{version}-{number}", value=value, agent_version=version, **changes)
        for number, value in enumerate(values)
    ]


def test_a_version_that_fails_is_found_among_versions_that_differ_by_chance(store: Store) -> None:
    versions = {f"v{number}": 14 + number % 4 for number in range(110)}
    store.write(
        scores_batch(
            *(score for name, passed in versions.items() for score in results_of(name, passed, 20 - passed)),
            # The smallest slice of all, which a limit by size would leave out.
            *results_of("bad", 1, 11),
        )
    )

    found = metric(store, MATCH).slices

    assert (found.level, found.tested, len(found.differing)) == ("session", 111, SHOWN)
    assert [(each.dimension, each.value) for each in found.differing if each.differs] == [("agent_version", "bad")]
    assert found.differing[0].value == "bad"
    assert found.differing[0].difference_high < -0.3


def test_slices_with_few_verdicts_are_not_compared(store: Store) -> None:
    store.write(scores_batch(*results_of("1", 0, 9), *results_of("2", 30, 0)))
    assert (metric(store, MATCH).slices.tested, metric(store, MATCH).slices.differing) == (0, [])


def test_invocations_of_the_same_sessions_do_not_count_again(store: Store) -> None:
    sessions = [*results_of("1", 10, 10), *results_of("2", 10, 10)]
    of_turns = [
        make_score(
            f"{version}-{number}",
            value=float(version == "1"),
            agent_version=version,
            level="invocation",
            invocation_id=f"i{number}",
            result_id=f"{version}-{number}-turn",
        )
        for version in ("1", "2")
        for number in range(20)
    ]
    store.write(scores_batch(*sessions, *of_turns))

    found = metric(store, MATCH).slices

    assert found.level == "session"
    assert [each.difference for each in found.differing] == [0.0, 0.0]


def sums_of(passed: int, failed: int) -> dict[str, Any]:
    counts = {"n": passed + failed, "evaluated": passed + failed, "passed": passed, "failed": failed}
    return dict.fromkeys(FIGURES, 0) | counts | {"value_sum": float(passed), "usd": 0.0}


@pytest.mark.large
def test_without_any_difference_a_slice_is_coloured_in_at_most_one_of_twenty_tables() -> None:
    draws = np.random.default_rng(7)
    coloured = 0
    for _ in range(400):
        sizes = draws.integers(10, 200, size=33)
        passed = draws.binomial(sizes, 0.8)
        total = sums_of(int(passed.sum()), int(sizes.sum() - passed.sum()))
        rows = [
            (("agent_version", f"v{number}", sums_of(good, size - good)), total)
            for number, (good, size) in enumerate(zip(passed.tolist(), sizes.tolist(), strict=True))
        ]
        coloured += any(each.differs for each in ranked(rows, len(rows), "session"))
    assert coloured / 400 <= 0.05


def test_in_a_store_without_any_difference_hardly_a_page_of_a_metric_has_a_colour(store: Store) -> None:
    draws = np.random.default_rng(3)
    scores = []
    for session in range(400):
        about: dict[str, Any] = {
            "agent_version": f"v{draws.integers(20)}",
            "model": f"m{draws.integers(5)}",
            "environment": f"e{draws.integers(3)}",
            "user_id": f"u{draws.integers(25)}",
            "labels": {"tenant": f"t{draws.integers(12)}"},
        }
        scores += [make_score(f"s{session}", f"rate{at}", float(draws.random() < 0.8), **about) for at in range(6)]
        scores += [
            make_score(f"s{session}", f"mean{at}", draws.exponential(900.0), threshold=None, **about) for at in range(6)
        ]
    store.write(scores_batch(*scores))

    pages = [
        metric(store, Selection(MATCH.since, MATCH.until, metric=f"{kind}{at}")).slices
        for kind in ("rate", "mean")
        for at in range(6)
    ]

    assert all(each.tested > 50 for each in pages)
    assert {found.of for each in pages for found in each.differing} == {"pass rate", "mean"}
    assert sum(found.differs for each in pages for found in each.differing) <= 1


def test_users_and_labels_are_slices(store: Store) -> None:
    good = [make_score(f"g{n}", value=1.0, user_id=f"u{n % 3}", labels={"tenant": "a", "plan": "x"}) for n in range(60)]
    bad = [make_score(f"b{n}", value=0.0, user_id="bad", labels={"tenant": "b", "plan": "x"}) for n in range(20)]
    other = [make_score(f"o{n}", value=1.0, labels=None) for n in range(20)]
    store.write(scores_batch(*good, *bad, *other))

    found = metric(store, MATCH).slices

    assert [(each.dimension, each.value) for each in found.differing if each.differs and each.difference < 0] == [
        ("label tenant", "b"),
        ("user_id", "bad"),
        ("label plan", "x"),
    ]
    assert found.differing[0].others == 80
    assert found.left_out == []


def test_labels_with_as_many_values_as_results_are_named_and_not_compared(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices_module, "MAX_LABELLINGS", 19)
    store.write(scores_batch(*(make_score(f"s{n}", value=1.0, labels={"request": str(n)}) for n in range(20))))
    assert metric(store, MATCH).slices.left_out == ["labels"]


def test_values_without_a_threshold_are_compared_by_their_means(store: Store) -> None:
    scores = [
        make_score(f"{model}{n}", "latency", 1.0 + n % 5 + 4 * (model == "slow"), threshold=None, model=model)
        for model in ("slow", "fast", "other")
        for n in range(20)
    ]
    store.write(scores_batch(*scores))

    found = metric(store, Selection(MATCH.since, MATCH.until, metric="latency")).slices

    first = found.differing[0]
    assert (first.dimension, first.value, first.of, first.difference, first.others) == (
        "model",
        "slow",
        "mean",
        4.0,
        40,
    )
    assert [each.value for each in found.differing if each.differs] == ["slow", "fast", "other"]
    assert all(each.difference_low <= each.difference <= each.difference_high for each in found.differing)
