"""Compares NoveltyCache with the plain definition: a float64 loop over the list of earlier vectors."""

import math
from collections.abc import Sequence
from itertools import cycle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.scorers.metrics.novelty_value import Novelty

DIMENSIONS = 3
# Small integers result in copies, opposites, zero vectors and ties; floats result in all other cases.
numbers = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e6, 1e6, width=32))
vectors = st.lists(st.lists(numbers, min_size=DIMENSIONS, max_size=DIMENSIONS), min_size=1, max_size=30)
cuts = st.lists(st.integers(1, 9), min_size=1, max_size=30)


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    lengths = math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(x * x for x in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths > 0 else 0.0


def plain_novelties(rows: list[list[float]], ids: list[str], capacity: int, replace: bool) -> list[float]:
    kept: list[tuple[str, list[float]]] = []
    novelties = []
    for trace, row in zip(ids, rows, strict=True):
        own = next((i for i, (other, _) in enumerate(kept) if replace and other == trace), None)
        seen = [cosine(row, other) for i, (_, other) in enumerate(kept) if i != own]
        novelties.append(1.0 - max(seen) if seen else 0.5)
        if own is None:
            kept = [*kept, (trace, row)][-capacity:]
        else:
            kept[own] = (trace, row)
    return novelties


def measured_in_cuts(
    rows: list[list[float]], ids: list[str], capacity: int, replace: bool, sizes: list[int]
) -> list[Novelty]:
    cache, start = NoveltyCache(capacity, DIMENSIONS), 0
    measured: list[Novelty] = []
    while start < len(rows):
        end = start + sizes[len(measured) % len(sizes)]
        measured += cache.measure_and_add(np.array(rows[start:end], np.float32), ids[start:end], replace=replace)
        start = end
    return measured


@given(rows=vectors, capacity=st.integers(1, 12), sizes=cuts, replace=st.booleans(), data=st.data())
def test_every_split_into_batches_equals_the_plain_definition(
    rows: list[list[float]], capacity: int, sizes: list[int], replace: bool, data: st.DataObject
) -> None:
    # With revisions, few ids are drawn, so that some ids repeat.
    ids = data.draw(st.lists(st.sampled_from("abcdef"), min_size=len(rows), max_size=len(rows)))
    if not replace:
        ids = [f"{trace}{i}" for i, trace in enumerate(ids)]
    measured = measured_in_cuts(rows, ids, capacity, replace, sizes)
    plain = plain_novelties(rows, ids, capacity, replace)
    assert all(abs(got.value - want) < 1e-6 for got, want in zip(measured, plain, strict=True))


@given(rows=vectors, capacity=st.integers(1, 12), sizes=cuts)
def test_the_result_is_equal_to_the_last_bit_for_every_split_into_batches(
    rows: list[list[float]], capacity: int, sizes: list[int]
) -> None:
    ids = [str(i) for i in range(len(rows))]
    one_by_one = measured_in_cuts(rows, ids, capacity, False, [1])
    assert measured_in_cuts(rows, ids, capacity, False, sizes) == one_by_one
    assert measured_in_cuts(rows, ids, capacity, False, [len(rows)]) == one_by_one


@given(
    seed=st.integers(0, 2**32 - 1), sizes=st.lists(st.sampled_from([1, 2, 3, 4, 5, 64, 300]), min_size=1, max_size=6)
)
def test_near_copies_in_384_dimensions_have_equal_bits_for_every_split_into_batches(
    seed: int, sizes: list[int]
) -> None:
    # Differences of about 1e-7: float32 alone would rank them by the order in which it happened to add.
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((1, 384)) + 1e-4 * rng.standard_normal((80, 384))).astype(np.float32)
    ids = [str(i) for i in range(len(rows))]
    whole = NoveltyCache(50).measure_and_add(rows, ids)
    cache, start, cut = NoveltyCache(50), 0, []
    for size in cycle(sizes):
        cut += cache.measure_and_add(rows[start : start + size], ids[start : start + size])
        start += size
        if start >= len(rows):
            break
    assert cut == whole


@given(rows=vectors, later=vectors, capacity=st.integers(1, 12), data=st.data())
def test_a_cache_restored_from_its_rows_continues_like_the_original(
    rows: list[list[float]], later: list[list[float]], capacity: int, data: st.DataObject
) -> None:
    original, restored = NoveltyCache(capacity, DIMENSIONS), NoveltyCache(capacity, DIMENSIONS)
    ids = [str(i) for i in range(len(rows))]
    table = {}
    for novelty, trace in zip(original.measure_and_add(rows, ids), ids, strict=True):
        table[novelty.slot] = (novelty.slot, novelty.sequence, trace, original.vector(novelty.slot))
    for row in data.draw(st.permutations(list(table.values()))):
        restored.restore(*row)
    later_ids = [f"later{i}" for i in range(len(later))]
    assert restored.measure_and_add(later, later_ids) == original.measure_and_add(later, later_ids)
