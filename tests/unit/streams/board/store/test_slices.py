"""A slice is named as different only if chance does not explain it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch

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


def test_without_any_difference_a_slice_is_coloured_in_at_most_one_of_twenty_tables() -> None:
    draws = np.random.default_rng(7)
    coloured = 0
    for _ in range(400):
        sizes = draws.integers(10, 200, size=33)
        passed = draws.binomial(sizes, 0.8)
        total, judged = int(passed.sum()), int(sizes.sum())
        rows = []
        for number, (good, size) in enumerate(zip(passed.tolist(), sizes.tolist(), strict=True)):
            row: dict[str, Any] = dict.fromkeys(FIGURES, 0)
            others = judged - size
            distance = abs(good / size - (total - good) / others) / (1 / size + 1 / others) ** 0.5
            row |= {"n": size, "evaluated": size, "value_sum": float(good), "usd": 0.0}
            row |= {"passed": good, "failed": size - good, "slice_value": f"v{number}", "distance": distance}
            rows.append(("agent_version", row))
        coloured += any(each.differs for each in ranked(rows, len(rows), total, judged - total))
    assert coloured / 400 <= 0.05
