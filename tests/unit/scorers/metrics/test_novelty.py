"""Tests NoveltyCache on examples computed by hand; tests/property/test_novelty.py compares it with a plain loop."""

import tracemalloc

import numpy as np
import pytest

from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.scorers.metrics.novelty_value import Novelty

Vector = list[float]
EAST, NORTH, WEST, NORTH_EAST, ZERO = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 1.0], [0.0, 0.0]


def make_cache(*vectors: list[float], capacity: int = 1000) -> NoveltyCache:
    """Returns a cache with these vectors as traces a, b, c, ..."""
    cache = NoveltyCache(capacity, dimensions=2)
    if vectors:
        cache.measure_and_add(vectors, list("abcdefgh"[: len(vectors)]))
    return cache


def test_the_first_trace_of_a_scope_is_half_novel_and_has_nothing_near() -> None:
    assert make_cache().measure_and_add([EAST], ["a"]) == [Novelty(0.5, None, None, slot=0, sequence=0)]


@pytest.mark.parametrize(
    ("vector", "similarity"), [([3.0, 0.0], 1.0), (WEST, -1.0), (NORTH, 0.0), (ZERO, 0.0), (NORTH_EAST, 0.5**0.5)]
)
def test_novelty_is_one_minus_the_cosine_with_the_nearest(vector: list[float], similarity: float) -> None:
    (novelty,) = make_cache(EAST).measure_and_add([vector], ["x"])
    assert novelty.nearest == "a"
    assert novelty.similarity == pytest.approx(similarity, abs=1e-7)
    assert novelty.similarity is not None
    assert novelty.value == 1.0 - novelty.similarity


def test_a_copy_has_a_cosine_of_exactly_one() -> None:
    vector = np.random.default_rng(1).standard_normal((1, 384))
    cache = NoveltyCache()
    cache.measure_and_add(vector, ["a"])
    assert cache.measure_and_add(vector, ["b"])[0].value == 0.0


def test_a_trace_is_compared_with_earlier_traces_of_its_batch() -> None:
    first, second, third = make_cache().measure_and_add([EAST, NORTH, EAST], ["a", "b", "c"])
    assert [first.nearest, second.nearest, third.nearest] == [None, "a", "a"]
    assert [first.value, second.value, third.value] == [0.5, 1.0, 0.0]


def test_the_nearest_of_equally_similar_traces_is_the_oldest() -> None:
    cache = make_cache(WEST, EAST, EAST, EAST, capacity=4)
    assert cache.measure_and_add([EAST], ["e"])[0].nearest == "b"  # overwrites a: slots are no longer in order of age
    cache.measure_and_add([WEST], ["f"])  # takes the slot of b
    assert cache.measure_and_add([EAST], ["g"])[0].nearest == "c"


def test_the_oldest_vector_is_overwritten_even_if_it_was_the_nearest() -> None:
    cache = make_cache(EAST, NORTH, capacity=2)
    assert cache.measure_and_add([EAST], ["c"])[0].nearest == "a"
    novelty = cache.measure_and_add([WEST], ["d"])[0]
    assert (novelty.nearest, novelty.slot, novelty.sequence) == ("b", 1, 3)
    assert len(cache) == 2


def test_a_batch_larger_than_the_cache_overwrites_its_own_first_traces() -> None:
    measured = make_cache(capacity=2).measure_and_add([EAST, NORTH, WEST, EAST], ["a", "b", "c", "d"])
    assert [novelty.slot for novelty in measured] == [0, 1, 0, 1]
    assert (measured[3].nearest, measured[3].value) == ("b", 1.0)  # a, the only copy, has been overwritten by c


def test_a_revision_is_not_compared_with_its_old_vector_and_replaces_it() -> None:
    cache = make_cache(EAST, NORTH)
    (revised,) = cache.measure_and_add([EAST], ["a"], replace=True)
    assert revised == Novelty(1.0, "b", 0.0, slot=0, sequence=0)
    assert len(cache) == 2


def test_a_revision_keeps_the_age_of_the_vector_that_it_replaces() -> None:
    cache = make_cache(EAST, NORTH, capacity=2)
    cache.measure_and_add([WEST], ["a"], replace=True)
    assert cache.measure_and_add([NORTH], ["c"])[0].slot == 0  # the slot of a, still the oldest


def test_a_trace_and_its_revision_can_be_in_one_batch() -> None:
    first, other, revised = make_cache().measure_and_add([EAST, NORTH, EAST], ["a", "b", "a"], replace=True)
    assert revised == Novelty(1.0, "b", 0.0, slot=first.slot, sequence=first.sequence)
    assert other.sequence == 1


def test_a_revision_of_a_trace_that_has_left_the_cache_is_added_as_new() -> None:
    cache = make_cache(EAST, NORTH, capacity=1)
    assert cache.measure_and_add([NORTH], ["a"], replace=True) == [Novelty(0.0, "b", 1.0, slot=0, sequence=2)]


def test_without_replace_the_same_trace_counts_again_as_upstream() -> None:
    cache = make_cache(EAST)
    assert cache.measure_and_add([EAST], ["a"])[0].value == 0.0
    assert len(cache) == 2


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_a_cache_restored_from_its_rows_in_any_order_continues_like_the_original(order: list[int]) -> None:
    rng = np.random.default_rng(7)
    original, restored = NoveltyCache(3), NoveltyCache(3)
    vectors = rng.standard_normal((5, 384))
    rows = {}
    for novelty, trace in zip(original.measure_and_add(vectors, list("abcde")), "abcde", strict=True):
        rows[novelty.slot] = (novelty.slot, novelty.sequence, trace, original.vector(novelty.slot))
    for slot in order:
        restored.restore(*rows[slot])
    later, ids = rng.standard_normal((4, 384)), ["f", "c", "g", "h"]
    assert restored.measure_and_add(later, ids, replace=True) == original.measure_and_add(later, ids, replace=True)


def test_a_row_that_was_lost_is_not_compared() -> None:
    cache = NoveltyCache(4, dimensions=2)
    cache.restore(2, 2, "c", np.array(WEST, np.float32))
    assert len(cache) == 1
    assert cache.measure_and_add([EAST], ["d"]) == [Novelty(2.0, "c", -1.0, slot=3, sequence=3)]


def test_a_cache_whose_capacity_was_raised_drops_nothing_until_it_is_full() -> None:
    cache = NoveltyCache(4, dimensions=2)
    for slot, sequence in ((0, 2), (1, 1)):  # from a cache of two, after its third vector
        cache.restore(slot, sequence, f"t{sequence}", np.array(EAST, np.float32))
    slots = [novelty.slot for novelty in cache.measure_and_add([EAST] * 4, list("abcd"))]
    assert slots == [1, 2, 3, 0]  # t1 was the oldest; then the new room; then t2


@pytest.mark.parametrize(
    ("vectors", "ids", "message"),
    [
        ([[1.0, 0.0, 0.0]], ["x"], "expected 2 dimensions, got 3"),
        ([EAST, NORTH], ["x"], "one vector for each of 1 traces"),
        (EAST, ["x", "y"], "one vector for each of 2 traces"),
        ([EAST, [float("nan"), 0.0]], ["x", "y"], "'y' has a value that is not a finite number"),
        ([[float("inf"), 0.0]], ["x"], "'x' has a value that is not a finite number"),
    ],
)
def test_an_invalid_batch_is_rejected_and_leaves_the_cache_unchanged(
    vectors: list[Vector] | Vector, ids: list[str], message: str
) -> None:
    cache = make_cache(NORTH)
    with pytest.raises(ValueError, match=message):
        cache.measure_and_add(vectors, ids)
    assert len(cache) == 1


def test_a_row_that_does_not_fit_is_not_restored() -> None:
    cache = make_cache(capacity=2)
    with pytest.raises(ValueError, match="slot 2 of trace 'x' does not fit a novelty cache of 2 vectors"):
        cache.restore(2, 2, "x", np.array(EAST, np.float32))
    with pytest.raises(ValueError, match="expected 2 dimensions, got 3"):
        cache.restore(0, 0, "x", np.zeros(3, np.float32))
    assert len(cache) == 0


@pytest.mark.parametrize("capacity", [0, 1_000_001])
def test_a_capacity_out_of_range_is_rejected(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and 1000000, not {capacity}"):
        NoveltyCache(capacity)


def test_an_empty_batch_results_in_an_empty_list() -> None:
    assert make_cache(EAST).measure_and_add(np.empty((0, 2)), []) == []


@pytest.mark.slow
def test_a_thousand_small_scopes_stay_small() -> None:
    vector = np.ones((1, 384), np.float32)
    tracemalloc.start()
    caches = [NoveltyCache(1_000_000) for _ in range(1000)]
    for cache in caches:
        cache.measure_and_add(vector, ["a"])
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 1000 * 32_000  # a full cache takes 150 MB
