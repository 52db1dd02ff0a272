"""Compares scopes that read vectors from the rows of finished checkpoints with scopes that have them in memory."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.novelty_value import Novelty
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.pipeline.gate.novelty_scopes import NoveltyScopes

DIMENSIONS, CAPACITY, LIMIT = 8, 12, 3


class Partition:
    """Scopes of a partition and their table. The rows of a cut are in the table before the next cut, and no earlier."""

    def __init__(self, *, read: bool) -> None:
        self._read = read
        self.table: dict[bytes, bytes] = {}
        self._cut: Rows = []
        self.scopes = self._new()

    def _new(self) -> NoveltyScopes:
        return NoveltyScopes(CAPACITY, LIMIT, self.table.get if self._read else None, exact_up_to=0)

    def measure(self, scope: str, vectors: Vectors, trace_ids: list[str]) -> list[Novelty]:
        return self.scopes.get(scope).measure_and_add(vectors, trace_ids)

    def finish_checkpoint(self) -> None:
        for key, row in self._cut:
            if row is None:
                self.table.pop(key, None)
            else:
                self.table[key] = row
        self._cut = []

    def cut(self) -> None:
        self.finish_checkpoint()
        self._cut = self.scopes.rows()

    def restart(self) -> None:
        self.cut()
        self.finish_checkpoint()
        self.scopes = self._new()
        self.scopes.load(self.table)


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1), steps=st.lists(st.sampled_from("mmmmcccfr"), min_size=10, max_size=60))
def test_scopes_that_read_their_vectors_measure_the_same(seed: int, steps: list[str]) -> None:
    rng = np.random.default_rng(seed)
    reading, holding = Partition(read=True), Partition(read=False)
    for step in steps:
        count = int(rng.integers(1, 6))
        scope, vectors = f"s{rng.integers(4)}", rng.integers(-2, 3, (count, DIMENSIONS)).astype(np.float32)
        ids = [f"{scope}-{trace}" for trace in rng.choice(20, count, replace=False)]
        for partition in (reading, holding):
            if step == "c":
                partition.cut()
            elif step == "f":
                partition.finish_checkpoint()
            elif step == "r":
                partition.restart()
        if step == "m":
            assert reading.measure(scope, vectors, ids) == holding.measure(scope, vectors, ids)


def test_a_vector_without_its_row_is_an_error_that_names_it() -> None:
    nothing: Mapping[bytes, bytes] = {}
    scope = NoveltyScopes(CAPACITY, LIMIT, nothing.get, exact_up_to=0).get("travel")
    vector = np.ones((1, DIMENSIONS), np.float32)
    scope.measure_and_add(vector, ["a"])
    scope.rows(established=False)
    scope.rows(established=False)
    with pytest.raises(LookupError, match="the vector in slot 0 of the novelty scope 'travel' has no row"):
        scope.measure_and_add(vector, ["b"])


def test_scopes_up_to_a_capacity_read_nothing() -> None:
    def read(key: bytes) -> bytes | None:
        raise AssertionError(key)

    scope = NoveltyScopes(CAPACITY, LIMIT, read).get("travel")
    vector = np.ones((1, DIMENSIONS), np.float32)
    for trace in "abc":
        scope.measure_and_add(vector, [trace])
        scope.rows(established=False)
    assert scope.measure_and_add(vector, ["d"])[0].value == 0.0
