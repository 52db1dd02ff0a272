"""Offsets that expire before a shadow has scored them are noted once, however often a process starts."""

from __future__ import annotations

from tests.support.shadows import make_definition

from traceweir.streams.lab.shadow.expiry import losses_in_words, with_losses

SHADOW = make_definition(begins={0: 10, 1: 0}, ends={0: 30, 1: 5})


def test_what_has_expired_behind_the_work_that_is_done_is_lost() -> None:
    assert with_losses({}, SHADOW, {}, {0: 10, 1: 0}) == {}
    assert with_losses({}, SHADOW, {0: 20}, {0: 18, 1: 0}) == {}
    assert with_losses({}, SHADOW, {0: 15}, {0: 18, 1: 2}) == {0: {15: 18}, 1: {0: 2}}


def test_nothing_behind_the_end_of_the_range_is_lost() -> None:
    assert with_losses({}, SHADOW, {0: 30}, {0: 99, 1: 99}) == {1: {0: 5}}


def test_a_loss_that_grows_before_the_work_goes_on_counts_once() -> None:
    first = with_losses({}, SHADOW, {0: 15}, {0: 18})
    assert with_losses(first, SHADOW, {0: 15}, {0: 20}) == {0: {15: 20}}
    assert with_losses(first, SHADOW, {0: 25}, {0: 27}) == {0: {15: 18, 25: 27}}


def test_many_partitions_are_counted_and_not_all_named() -> None:
    words = losses_in_words(dict.fromkeys(range(12), 2))
    assert words.endswith("2 offsets of partition 9, and 2 more partitions")
