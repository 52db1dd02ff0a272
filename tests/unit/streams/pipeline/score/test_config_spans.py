"""Tests the row that says from which session on which configs count."""

from __future__ import annotations

import pytest

from traceweir.streams.pipeline.score.config_spans import ConfigSpans
from traceweir.streams.scoring.configs.selectors import Configs

ONE: Configs = (("*", "one"),)
TWO: Configs = (("*", "two"), ("travel", "three"))


def spans(*begun: tuple[int, Configs]) -> ConfigSpans:
    found = ConfigSpans()
    for position, (offset, configs) in enumerate(begun):
        found.begin(offset, configs, position)
    return found


def test_a_row_restores_the_spans_and_the_position() -> None:
    again = ConfigSpans()
    again.load(dict(spans((5, ONE), (9, TWO)).rows()))  # type: ignore[arg-type]  # no row is deleted
    assert [again.at(offset) for offset in (4, 5, 8, 9)] == [(), ONE, ONE, TWO]
    assert (again.position, again.latest) == (1, TWO)


def test_a_row_is_written_once_for_each_change() -> None:
    found = spans((5, ONE))
    assert len(found.rows()) == 1
    assert found.rows() == []
    found.begin(7, TWO, 4)
    assert len(found.rows()) == 1


def test_without_a_config_there_is_no_row() -> None:
    assert ConfigSpans().rows() == []
    assert not ConfigSpans()


def test_a_span_that_no_session_had_is_replaced() -> None:
    found = spans((5, ONE), (5, TWO))
    assert (found.at(4), found.at(5)) == ((), TWO)


def test_a_span_is_kept_as_long_as_a_session_of_it_can_be_scored() -> None:
    found = spans((5, ONE), (9, TWO))
    found.prune(8)
    assert found.at(8) == ONE
    found.prune(9)
    assert found.at(8) == ()


def test_a_row_of_a_newer_version_is_named() -> None:
    with pytest.raises(
        ValueError, match="a row of the configs in effect has the format 2; this version reads the format 1"
    ):
        ConfigSpans().load({b"c": b"\x02"})
