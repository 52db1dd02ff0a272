"""The options of a shadow are read strictly, and compared with those with which it was created."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from traceweir.streams.lab.shadow.definition import Definition, ShadowOptions, read_sample, read_usd
from traceweir.streams.lab.shadow.errors import ShadowOptionError
from traceweir.streams.lab.shadow.watch import done_of

FOUND = Definition(
    name="v2",
    config="{}",
    config_digest="a" * 64,
    since="-7d",
    until=None,
    app=None,
    sample=0.1,
    budget_usd=5.0,
    sessions_id="t",
    begins={0: 10, 1: 0},
    ends={0: 30, 1: 0},
    created_at=datetime(2026, 1, 31, tzinfo=UTC),
)


def test_options_that_are_not_given_are_those_of_the_existing_shadow() -> None:
    assert list(ShadowOptions("v2").differences(FOUND)) == []
    assert (
        list(ShadowOptions("v2", config_digest="a" * 64, since="-7d", sample=0.1, budget_usd=5).differences(FOUND))
        == []
    )


def test_an_existing_shadow_is_told_by_the_options_that_were_given() -> None:
    assert FOUND.in_words == "config aaaaaaaaaaaa, --from '-7d', --sample 0.1, --budget 5"
    hostile = FOUND.model_copy(update={"app": "shop\x1b", "since": None, "budget_usd": None})
    assert hostile.in_words == "config aaaaaaaaaaaa, --app " + repr(r"shop\x1b") + ", --sample 0.1"


def test_each_option_that_differs_is_named_with_both_values() -> None:
    wanted = ShadowOptions(
        "v2", config_digest="b" * 64, since="-8d", until="-1d", app="shop\x1b", sample=0.2, budget_usd=6
    )
    assert list(wanted.differences(FOUND)) == [
        "--config has the digest aaaaaaaaaaaa, not bbbbbbbbbbbb",
        "--from is '-7d', not '-8d'",
        "--to is not set, not '-1d'",
        "--app is not set, not " + repr(r"shop\x1b"),
        "--sample is 0.1, not 0.2",
        "--budget is 5, not 6",
    ]


@pytest.mark.parametrize(("text", "usd"), [("5usd", 5.0), ("5 USD", 5.0), ("0.25", 0.25), (" 3Usd ", 3.0)])
def test_a_budget_is_an_amount_of_usd(text: str, usd: float) -> None:
    assert read_usd(text) == usd


@pytest.mark.parametrize("text", ["", "0", "0.0usd", "-5", "5eur", "nan", "inf", "1e3", "five", "5usd5"])
def test_other_texts_are_refused_as_a_budget(text: str) -> None:
    with pytest.raises(ShadowOptionError, match="is not an amount: write USD above 0"):
        read_usd(text)


@pytest.mark.parametrize("share", [0, -0.1, 1.01, float("nan"), float("inf")])
def test_a_sample_is_above_0_and_at_most_1(share: float) -> None:
    with pytest.raises(ShadowOptionError, match="is not a share of sessions"):
        read_sample(share)
    assert read_sample(1) == 1


def test_the_range_is_done_when_each_partition_has_reached_its_end() -> None:
    assert FOUND.size == 20
    assert [done_of(FOUND, committed) for committed in ({}, {0: 4}, {0: 12}, {0: 30}, {0: 99, 1: 7})] == [
        0, 0, 2, 20, 20,
    ]  # fmt: skip
