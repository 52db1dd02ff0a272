"""Tests that texts are grouped by length, and that their vectors keep the order of the texts."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.scoring.embedders.length_groups import LengthGroups, groups_by_length


@given(st.lists(st.integers(0, 400), max_size=80), st.integers(1, 1_024))
def test_each_text_is_in_one_group_and_no_group_is_larger_than_allowed(lengths: list[int], most: int) -> None:
    groups = groups_by_length(lengths, most)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    assert all(len(group) == 1 or len(group) * max(lengths[each] for each in group) <= most for group in groups)


def test_texts_of_similar_length_share_a_group() -> None:
    assert groups_by_length([5, 250, 6, 256, 7], most=512) == [[3, 1], [4, 2, 0]]


@pytest.mark.parametrize("threads", [1, 3])
def test_vectors_have_the_order_of_the_texts(threads: int) -> None:
    lengths = [700, 3, 900, 40, 41, 500, 2]

    def embed(group: Sequence[int]) -> np.ndarray:
        return np.array([[lengths[each], each] for each in group], np.float32)

    found = LengthGroups(threads).embed(lengths, 2, embed)
    assert found.tolist() == [[length, index] for index, length in enumerate(lengths)]
    assert found.dtype == np.float32


def test_no_texts_have_no_rows() -> None:
    assert LengthGroups(2).embed([], 3, lambda group: np.ones((1, 3), np.float32)).shape == (0, 3)


def test_groups_run_at_the_same_time_in_prepared_threads() -> None:
    prepared: list[str] = []
    meeting = threading.Barrier(2, timeout=30)

    def embed(group: Sequence[int]) -> np.ndarray:
        meeting.wait()  # both threads are here, or the barrier breaks
        return np.ones((len(group), 1), np.float32)

    groups = LengthGroups(2, lambda: prepared.append(threading.current_thread().name))
    assert groups.embed([1_000, 900], 1, embed).tolist() == [[1], [1]]
    assert len(set(prepared)) == 2
