"""Compares a NoveltyCache that selects vectors by bounds with one that compares all of them."""

from collections.abc import Iterator, Sequence
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics import nearest_search, panel_search
from traceweir.scorers.metrics.cosine_bounds import BOUND_ERROR, COMPONENTS, CosineBounds
from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.scorers.metrics.novelty_value import Novelty
from traceweir.scorers.metrics.vector_store import CodedVectors

DIMENSIONS, TOPICS, COUNT, BOUNDS_FROM = 64, 6, 250, 80
seeds = st.integers(0, 2**32 - 1)
Traces = list[tuple[str, Vectors]]
Limits = Sequence[tuple[ModuleType, str, int]]


def topics_of(rng: np.random.Generator) -> Vectors:
    topics: Vectors = np.linalg.qr(rng.standard_normal((DIMENSIONS, TOPICS)))[0].T.astype(np.float32)
    return topics


def texts(rng: np.random.Generator, topics: Vectors, count: int, noise: float = 0.06) -> Vectors:
    """Returns vectors with most of their length in a few directions, as embeddings of texts of one kind."""
    vectors = rng.standard_normal((count, TOPICS)) @ topics + noise * rng.standard_normal((count, DIMENSIONS))
    return vectors.astype(np.float32)


def all_kinds(rng: np.random.Generator) -> Traces:
    """Returns traces with copies, near copies, opposites, zero vectors and other texts among them, and known ids."""
    topics, traces = topics_of(rng), Traces()
    for number, vector in enumerate(texts(rng, topics, COUNT)):
        name, earlier = traces[rng.integers(len(traces))] if traces else ("", vector)
        other = texts(rng, topics, 1, noise=5.0)[0]
        near = earlier + np.float32(10.0 ** -rng.integers(2, 9)) * other
        kinds = [vector, vector, vector, vector, earlier, near, -earlier, 0 * vector, other, 7 * earlier]
        changed = vector if number < BOUNDS_FROM else kinds[rng.integers(len(kinds))]
        traces.append((name if number >= BOUNDS_FROM and rng.random() < 0.2 else f"t{number}", changed))
    return traces


def in_cuts(traces: Traces, rng: np.random.Generator) -> Iterator[Traces]:
    while traces:
        size = int(rng.choice([1, 1, 2, 3, 5, 17, 60]))
        yield traces[:size]
        traces = traces[size:]


def measure(cache: NoveltyCache, traces: Traces, replace: bool) -> list[Novelty]:
    return cache.measure_and_add(
        np.stack([vector for _, vector in traces]), [name for name, _ in traces], replace=replace
    )


class Rows:
    """A cache with bounds, and the rows of its vectors, which can be read some time after they were added."""

    def __init__(self, capacity: int, coded: bool) -> None:
        self._capacity, self._coded = capacity, coded
        self._table: dict[int, tuple[int, str, Vectors]] = {}
        self._added: dict[int, tuple[int, str, Vectors]] = {}
        self.cache = self._new_cache()

    def _new_cache(self) -> NoveltyCache:
        read = (lambda slot: self._table[slot][2]) if self._coded else None
        return NoveltyCache(self._capacity, DIMENSIONS, read=read, bounds_from=BOUNDS_FROM)

    def measure(self, traces: Traces, replace: bool) -> list[Novelty]:
        measured = measure(self.cache, traces, replace)
        for novelty, (name, _) in zip(measured, traces, strict=True):
            self._added[novelty.slot] = novelty.sequence, name, self.cache.vector(novelty.slot)
        return measured

    def write(self) -> None:
        self._table |= self._added
        self.cache.release(self._added)
        self._added = {}

    def restart(self) -> None:
        self.write()
        self.cache = self._new_cache()
        for slot, (sequence, name, vector) in self._table.items():
            self.cache.restore(slot, sequence, name, vector)


def check_against_a_scan(
    seed: int, capacity: int, *, replace: bool, restart: bool, coded: bool, limits: Limits = ()
) -> None:
    """Asserts that a cache with bounds and limits, measured in cuts, gives the same as a scan without these limits."""
    rng = np.random.default_rng(seed)
    traces = all_kinds(rng)
    plain = measure(NoveltyCache(capacity, DIMENSIONS, bounds_from=COUNT + 1), traces, replace)
    rows = Rows(capacity, coded)
    measured: list[Novelty] = []
    with pytest.MonkeyPatch.context() as patch:
        for module, name, limit in limits:
            patch.setattr(module, name, limit)
        for cut in in_cuts(traces, rng):
            measured += rows.measure(cut, replace)
            if rng.random() < 0.5:
                rows.write()
            if restart and rng.random() < 0.2:
                rows.restart()
    assert measured == plain


@settings(max_examples=examples(25))
@given(
    seed=seeds,
    capacity=st.integers(BOUNDS_FROM, COUNT),
    replace=st.booleans(),
    restart=st.booleans(),
    coded=st.booleans(),
)
def test_neither_bounds_nor_codes_change_a_bit_of_any_novelty(
    seed: int, capacity: int, replace: bool, restart: bool, coded: bool
) -> None:
    check_against_a_scan(seed, capacity, replace=replace, restart=restart, coded=coded)


@settings(max_examples=examples(25))
@given(
    seed=seeds,
    capacity=st.integers(BOUNDS_FROM, COUNT),
    replace=st.booleans(),
    coded=st.booleans(),
    cells=st.integers(30, 2_000),
    crowd=st.sampled_from([2, 20, COUNT]),
)
def test_neither_the_width_of_a_panel_nor_the_size_of_a_group_changes_a_bit_of_any_novelty(
    seed: int, capacity: int, replace: bool, coded: bool, cells: int, crowd: int
) -> None:
    limits = [
        *((nearest_search, name, cells) for name in ("CELLS", "BOUND_CELLS")),
        *((nearest_search, name, 2) for name in ("PANELS_FROM", "PIECE_ROWS", "FIRST_ROWS")),
        (panel_search, "PANEL_CELLS", cells),
        (panel_search, "LEAST_CROWD", crowd),
        (panel_search, "CROWD", COUNT),
    ]
    check_against_a_scan(seed, capacity, replace=replace, restart=False, coded=coded, limits=limits)


@settings(max_examples=examples(15))
@given(seed=seeds)
def test_bounds_change_no_bit_while_other_texts_come_between(seed: int) -> None:
    rng = np.random.default_rng(seed)
    topics = topics_of(rng)
    others = texts(rng, topics, 20, noise=20.0)
    vectors = [texts(rng, topics, 150), others, texts(rng, topics, 150)]
    traces = [(f"t{number}", vector) for number, vector in enumerate(np.concatenate(vectors))]
    traces[170:170] = [(f"t{150 + number}", 2 * other) for number, other in enumerate(others)]  # their revisions
    cache = NoveltyCache(200, DIMENSIONS, bounds_from=BOUNDS_FROM)
    measured = [novelty for trace in traces for novelty in measure(cache, [trace], replace=True)]
    plain = NoveltyCache(200, DIMENSIONS, bounds_from=len(traces) + 1)
    assert measured == measure(plain, traces, replace=True)


def test_a_vector_that_is_restored_into_a_cache_with_bounds_is_found() -> None:
    rng = np.random.default_rng(1)
    topics = topics_of(rng)
    cache = NoveltyCache(COUNT, DIMENSIONS, bounds_from=BOUNDS_FROM)
    for vector in texts(rng, topics, BOUNDS_FROM + 1, noise=0.03):
        cache.measure_and_add([vector], ["t"])
    assert cache.bounded
    other = texts(rng, topics, 1)
    cache.restore(0, 0, "other", unit(other)[0])
    assert cache.measure_and_add(other, ["copy"])[0].nearest == "other"


@given(seed=seeds, components=st.sampled_from([k for k in COMPONENTS if k < DIMENSIONS]), noise=st.floats(0.0, 10.0))
def test_no_cosine_is_above_its_bound(seed: int, components: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit(texts(rng, topics_of(rng), 50, noise))
    vectors[::7] = 0.0
    directions = np.linalg.qr(rng.standard_normal((DIMENSIONS, components)))[0]
    bounds = CosineBounds(directions, rows=50)
    bounds.put(slice(0, 50), bounds.components(vectors))
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    assert (bounds.of(bounds.components(vectors), 50) >= cosines - BOUND_ERROR).all()


@given(seed=seeds, dimensions=st.integers(1, 400), power=st.integers(0, 4))
def test_no_product_with_a_coded_vector_is_off_by_more_than_the_error(seed: int, dimensions: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit((rng.standard_normal((20, dimensions)) ** (2 * power + 1)).astype(np.float32))
    coded = CodedVectors(dimensions, lambda slot: vectors[slot])
    coded.reserve(20)
    coded.put_back(np.arange(20), vectors)
    differences = coded[np.arange(20)].astype(np.float64) - vectors
    worst = differences / np.maximum(np.linalg.norm(differences, axis=1, keepdims=True), 1e-300)
    assert (np.abs((differences * worst).sum(axis=1)) <= coded.error).all()
    assert coded.error < 3.1e-4


@pytest.mark.parametrize(("noise", "pays"), [(0.1, True), (30.0, False)])
def test_bounds_are_used_if_the_vectors_of_the_cache_have_much_in_common(noise: float, pays: bool) -> None:
    rng = np.random.default_rng(1)
    vectors = texts(rng, topics_of(rng), COUNT, noise)
    cache = NoveltyCache(COUNT, DIMENSIONS, bounds_from=BOUNDS_FROM)
    cache.measure_and_add(vectors[:-1], names(COUNT - 1))
    cache.measure_and_add(vectors[-1:], ["last"])
    assert cache.bounded is pays


def test_a_small_cache_has_no_bounds() -> None:
    rng = np.random.default_rng(1)
    cache = NoveltyCache(COUNT, DIMENSIONS)
    cache.measure_and_add(texts(rng, topics_of(rng), COUNT), names(COUNT))
    assert not cache.bounded


def names(count: int) -> Sequence[str]:
    return [f"t{number}" for number in range(count)]


def unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)  # the square of a float32 can be zero
    shortened: Vectors = (vectors / lengths).astype(np.float32)
    return shortened
