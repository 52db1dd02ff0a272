"""What is worse after a known change is found, with the change, the slice and the results behind it; noise is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch

from traceweir.schemas.score import Score
from traceweir.streams.board.store import duckdb_store
from traceweir.streams.board.store.answers import Regressions
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.overview import changes_in
from traceweir.streams.board.store.regressions import regressions
from traceweir.streams.board.store.rows import Batch
from traceweir.streams.board.store.selection import Selection

pytestmark = pytest.mark.slow

DAY = Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=12))
MINUTES = 240
CHANGED = 120


def scores(of_session: Callable[[int, bool], dict[str, Any]], offset: int = 0) -> list[Score]:
    """Returns a score for each of some minutes; the second half is that of the version 2."""
    found = []
    for minute in range(MINUTES):
        fields = of_session(minute, minute >= CHANGED)
        version = "2" if minute >= CHANGED else "1"
        about: dict[str, Any] = {
            "agent_name": "bot",
            "agent_version": version,
            "occurred_at": NOW + timedelta(minutes=minute),
        }
        found.append(make_score(f"s{offset}-{minute}", **about | fields))
    return found


def answer(store: Store, selection: Selection = DAY) -> Regressions:
    return regressions(store, selection, changes_in(store, selection))


def test_a_metric_that_falls_with_a_version_is_found_with_the_results_behind_it(store: Store) -> None:
    store.write(
        scores_batch(
            *scores(lambda minute, is_new: {"value": float(minute % 10 < (5 if is_new else 9))}),
            *scores(lambda minute, is_new: {"metric": "steady", "value": float(minute % 10 < 8)}, 1),
            *scores(lambda minute, is_new: {"metric": "better", "value": float(minute % 10 < (9 if is_new else 5))}, 2),
        )
    )

    found = answer(store).found

    (first,) = [each for each in found if each.dimension is None]
    assert (first.metric, first.of, first.before, first.after) == ("response_match_score", "pass rate", 0.9, 0.5)
    assert (first.before_results, first.after_results) == (CHANGED, MINUTES - CHANGED)
    assert [(each.kind, each.value) for each in first.changes] == [("agent_version", "2")]
    assert first.at == NOW + timedelta(minutes=CHANGED)
    # Wider than the interval of one comparison, because many are made.
    assert first.difference_low < -0.51
    assert first.difference_high < -0.2
    assert {each.metric for each in found} == {"response_match_score"}


def test_a_change_within_an_hour_divides_its_minutes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # DuckDB's store has sums per hour only of changes that it has added up.
    monkeypatch.setattr(duckdb_store, "MERGED_AFTER_CHANGES", 1)
    changed = 97

    def session(minute: int, is_new: bool) -> dict[str, Any]:
        version = "2" if minute >= changed else "1"
        return {"value": float(minute < changed), "agent_version": version}

    store.write(scores_batch(*scores(session)))

    surest = answer(store).found[0]

    assert surest.at == NOW + timedelta(minutes=changed)
    assert (surest.before, surest.before_results) == (1.0, changed)
    assert (surest.after, surest.after_results) == (0.0, MINUTES - changed)


def test_a_slice_that_falls_alone_is_found(store: Store) -> None:
    def session(minute: int, is_new: bool) -> dict[str, Any]:
        is_staging = minute % 4 == 0
        fails = (is_staging and is_new) or minute % 10 == 0
        return {"value": float(not fails), "environment": "staging" if is_staging else "production"}

    store.write(scores_batch(*scores(session)))

    surest = answer(store).found[0]

    assert (surest.dimension, surest.value, surest.after, surest.after_results) == ("environment", "staging", 0.0, 30)


def test_a_value_that_all_results_have_repeats_no_row(store: Store) -> None:
    def session(minute: int, is_new: bool) -> dict[str, Any]:
        is_staging = minute % 4 == 0
        model = "small" if is_staging else "large"
        return {"value": float(minute % 10 < (3 if is_new else 9)), "app_name": "desk", "model": model}

    store.write(scores_batch(*scores(session)))

    found = answer(store).found

    assert {each.dimension for each in found} == {None, "model"}


def test_a_mean_is_worse_by_the_direction_of_its_metric(store: Store) -> None:
    def session(minute: int, is_new: bool) -> dict[str, Any]:
        return {"value": minute % 7 + 5.0 * is_new, "threshold": None}

    store.write(
        scores_batch(
            *(
                score
                for offset, metric in enumerate(("latency", "tool_call_count_v1", "our_value"))
                for score in scores(lambda minute, is_new: session(minute, is_new) | {"metric": metric}, offset)  # noqa: B023
            )
        )
    )

    found = answer(store).found

    assert {(each.metric, each.of, each.unit) for each in found} == {("latency", "mean", "s")}


def test_a_version_of_an_agent_is_compared_with_this_agent(store: Store) -> None:
    store.write(
        scores_batch(
            *scores(lambda minute, is_new: {"value": 1.0}),
            *scores(
                lambda minute, is_new: {"value": 0.0, "agent_name": "other", "agent_version": "7", "occurred_at": NOW},
                1,
            )[:60],
        )
    )

    assert [each for each in answer(store).found if each.agent_name == "bot"] == []


@pytest.mark.parametrize("kind", ["model", "judge", "config_digest"])
def test_what_got_worse_with_a_model_a_judge_or_a_config_is_found(kind: str, store: Store) -> None:
    def session(minute: int, is_new: bool) -> dict[str, Any]:
        return {"value": float(not is_new), "agent_version": "1", kind: "new" if is_new else "old"}

    store.write(scores_batch(*scores(session)))

    surest = answer(store).found[0]

    assert [(each.kind, each.value, each.agent_name) for each in surest.changes] == [(kind, "new", None)]


def test_without_a_known_change_nothing_is_compared(store: Store) -> None:
    store.write(scores_batch(*scores(lambda minute, is_new: {"value": float(not is_new)})))

    found = answer(store, Selection(NOW + timedelta(minutes=130), NOW + timedelta(minutes=200)))

    assert (found.found, found.tested) == ([], 0)


def test_without_any_difference_hardly_a_span_has_a_finding(store: Store) -> None:
    draws = np.random.default_rng(5)
    drawn = [
        score
        for at in range(8)
        for score in scores(
            lambda minute, is_new: {
                "metric": f"metric{at}",  # noqa: B023
                "value": float(draws.random() < 0.8),
                "environment": f"e{draws.integers(4)}",
                "model": f"m{minute // 60}",
                "app_name": f"app{draws.integers(6)}",
            },
            at,
        )
    ]
    store.write(scores_batch(*drawn))

    found = answer(store)

    assert found.tested > 100
    assert len(found.found) <= 1


def test_invocations_are_not_tested(store: Store) -> None:
    store.write(
        scores_batch(
            *scores(
                lambda minute, is_new: {
                    "value": float(not is_new), "level": "invocation", "invocation_id": f"i{minute}", "result_id": f"r{minute}"
                }
            )
        )
    )  # fmt: skip

    assert (answer(store).found, answer(store).tested) == ([], 0)


@dataclass
class WrittenBetween:
    """A store in which a batch is stored after the first query, as while a page is made."""

    store: Store
    batch: Batch
    is_first: bool = True

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        rows = self.store.query(sql, parameters)
        if self.is_first:
            self.is_first = False
            self.store.write(self.batch)
        return rows


def test_a_metric_that_is_stored_between_two_queries_does_not_end_the_answer(store: Store) -> None:
    falling = scores(lambda minute, is_new: {"value": float(minute % 10 < (5 if is_new else 9))})
    store.write(scores_batch(*falling))
    new = scores(lambda minute, is_new: {"metric": "new", "value": float(minute % 10 < 8)}, 1)
    changes = changes_in(store, DAY)

    found = regressions(WrittenBetween(store, scores_batch(*new, offset=len(falling))), DAY, changes).found

    assert {each.metric for each in found} == {"response_match_score"}


def test_a_line_is_found_only_if_its_interval_leaves_zero_out(store: Store) -> None:
    # From no failure of 120 to 8 to 19 of 120: Holm's correction accepts some of them whose wider interval has zero.
    store.write(
        scores_batch(
            *(
                score
                for failures in range(8, 20)
                for score in scores(
                    lambda minute, is_new, failures=failures: {  # type: ignore[misc]
                        "metric": f"failures {failures}",
                        "value": float(not is_new or minute - CHANGED >= failures),
                    },
                    failures,
                )
            )
        )
    )

    found = answer(store).found

    assert found
    assert [each.metric for each in found if each.difference_high >= 0] == []
