"""The page of an alert says which values of dimensions carry its change, and names none by chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.support.alerts import make_alert, resolved
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch

from traceweir.schemas.alert import Alert
from traceweir.streams.board.store.alert_slices import AlertSlices, alert_slices
from traceweir.streams.board.store.opening import Store

pytestmark = pytest.mark.slow
ALERT = make_alert()
ONSET = ALERT.onset


def answer(
    store: Store,
    fails: Callable[[int, bool, dict[str, Any]], bool],
    alert: Alert = ALERT,
    now: datetime = NOW,
    everywhere: Mapping[str, str] | None = None,
) -> AlertSlices | None:
    """Stores 200 sessions before the interval of the onset and as many after it, and asks.

    Args:
        store: Gets them.
        fails: Returns whether a session fails, of its number, whether it is after the interval, and its dimensions.
        alert: The alert that is asked about.
        now: The present time.
        everywhere: Dimensions of all scores.
    """
    scores = []
    for is_after in (False, True):
        for number in range(200):
            about: dict[str, Any] = {
                "app_name": ("shop", "rail")[number % 2],
                "model": ("big", "small")[number // 2 % 2],
            }
            at = (
                ONSET.latest + timedelta(seconds=30 * number)
                if is_after
                else ONSET.earliest - timedelta(minutes=number + 1)
            )
            value = float(not fails(number, is_after, about))
            scores.append(
                make_score(f"s{is_after}{number}", value=value, occurred_at=at, **about, **(everywhere or {}))
            )
    store.write(scores_batch(*scores))
    return alert_slices(store, alert, now)


def seldom(number: int) -> bool:
    return number % 10 < 1


def test_a_change_of_one_app_is_its_own(store: Store) -> None:
    found = answer(store, lambda number, after, about: seldom(number) or (after and about["app_name"] == "rail"))
    assert found is not None
    first = found.carrying[0]
    assert (first.dimension, first.value, first.after, first.share) == ("app_name", "rail", 0.0, 0.5)
    assert first.effect.low < first.after - first.before < first.effect.high < 0
    assert {(each.dimension, each.value) for each in found.carrying} == {
        ("app_name", "rail"), ("model", "big"), ("model", "small")
    }  # fmt: skip
    assert found.tested == 4


def test_a_fall_that_chance_explains_names_no_slice(store: Store) -> None:
    found = answer(store, lambda number, after, about: number % 7 == 0 or (after and number % 25 == 1))
    assert found is not None
    assert found.carrying == []


@pytest.mark.parametrize("has_other", [False, True])
def test_a_dimension_with_one_value_repeats_the_alert_and_is_left_out(has_other: bool, store: Store) -> None:
    everywhere = {"environment": "production", "judge": "openai/judge"}
    if has_other:
        # One score without a judge: the slice of the judge is not all of the alert any more.
        store.write(scores_batch(make_score("other", value=1.0, occurred_at=ONSET.latest, environment="production")))
    found = answer(store, lambda number, after, about: seldom(number) or after, everywhere=everywhere)
    assert found is not None
    assert found.of_one_value == ["environment", *(() if has_other else ("judge",))]
    carrying = {each.dimension for each in found.carrying}
    assert carrying == {"app_name", "model", *(("judge",) if has_other else ())}
    assert found.tested == (5 if has_other else 4)
    assert found.left_out == []


def test_a_slice_that_became_better_does_not_carry_a_fall(store: Store) -> None:
    found = answer(store, lambda number, after, about: not after and about["app_name"] == "rail")
    assert found is not None
    assert found.carrying == []


def test_what_came_in_the_interval_of_the_onset_is_on_no_side(store: Store) -> None:
    between = [make_score(f"b{number}", value=0.0, occurred_at=ONSET.at, app_name="tram") for number in range(100)]
    store.write(scores_batch(*between))
    found = answer(store, lambda number, after, about: seldom(number))
    assert found is not None
    assert found.carrying == []


@pytest.mark.parametrize(
    "alert",
    [
        make_alert(what="mean"),
        make_alert(level="invocation"),
        make_alert(by={"labels.team": "a"}),
        make_alert(by={"app_name": None}),
        resolved(ALERT).model_copy(update={"occurred_at": ONSET.latest}),
    ],
)
def test_what_the_figures_do_not_have_is_not_said(store: Store, alert: Alert) -> None:
    assert answer(store, lambda number, after, about: after, alert) is None
