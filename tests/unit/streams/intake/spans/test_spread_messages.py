"""Spread messages: what a span tells does not depend on its keys, and a set of large keys is not kept in memory."""

from __future__ import annotations

import sys

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.spread_messages import indexed, spread_attributes

KEY = "llm.input_messages.0.message.content"
BEGINNINGS = ("llm.input_messages.",)


@pytest.mark.parametrize("other", ["short", "x" * 2_000, "x" * 2_001])
def test_only_parts_of_messages_are_returned(other: str) -> None:
    assert spread_attributes(span(1, 0, "llm", {KEY: "hello", other: 1}), BEGINNINGS) == {KEY: "hello"}


def test_a_large_key_is_let_go_with_its_span() -> None:
    large, short = "x" * 2_001, "x" * 200
    kept = []
    for key in (large, short):
        before = sys.getrefcount(key)
        spread_attributes(span(1, 0, "llm", {key: 1}), BEGINNINGS)
        kept.append(sys.getrefcount(key) - before)
    assert kept == [0, 1]


def test_an_object_that_is_a_value_is_not_changed_by_keys_below_it() -> None:
    value: dict[str, object] = {"a": 1}
    for keys in ((KEY, f"{KEY}.0"), (f"{KEY}.0", KEY)):
        indexed(dict.fromkeys(keys, value), BEGINNINGS[0])
        assert value == {"a": 1}
