"""A disk that cannot be written stops a store, costs no result and repeats none, and the store goes on afterwards."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.support.results import make_score
from tests.support.stores import figures, open_store, recomputed_figures, scores_batch

from traceweir.streams.board.store import duckdb_store
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.errors import StoreError, StoreUnavailableError
from traceweir.streams.board.store.rows import Batch, SourcePartition

pytestmark = pytest.mark.slow

IN_BATCH = 200
PLACE = SourcePartition("results", 0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DuckDBStore:
    """A store that writes its file often, so that a small limit meets the log and the file."""
    monkeypatch.setitem(duckdb_store.OPTIONS, "checkpoint_threshold", "300KB")
    return open_store(tmp_path / "store.duckdb")


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Lets the operating system refuse every write beyond this size of a file, as a full disk refuses it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def batch_at(offset: int) -> Batch:
    chance = random.Random(offset)
    scores = (make_score(f"s{offset + n}", rationale=chance.randbytes(200).hex()) for n in range(IN_BATCH))
    return scores_batch(*scores, offset=offset)


def next_offset(store: DuckDBStore) -> int:
    return store.offsets().get(PLACE, 0)


def fill_until_the_disk_fails(store: DuckDBStore, refusals: int = 1) -> str:
    """Writes from the stored offsets on, as a feed does, until the store has refused this often."""
    with no_file_above(1_000_000):
        while True:
            try:
                store.write(batch_at(next_offset(store)))
            except StoreUnavailableError as error:
                refusals -= 1
                if not refusals:
                    return str(error)


def test_a_full_disk_costs_no_result_and_repeats_none(store: DuckDBStore) -> None:
    message = fill_until_the_disk_fails(store, refusals=3)
    begin = next_offset(store)
    store.write(batch_at(begin))

    assert "cannot be written" in message
    assert "\n" not in message
    (found,) = store.query("SELECT count(*) AS rows, count(DISTINCT session_id) AS ids FROM results")
    assert found == {"rows": begin + IN_BATCH, "ids": begin + IN_BATCH}
    assert next_offset(store) == begin + IN_BATCH > IN_BATCH
    assert figures(store) == recomputed_figures(store)


def test_a_store_whose_file_cannot_be_opened_again_is_opened_by_a_later_attempt(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, refused = duckdb.connect, iter(range(2))

    def refusing_at_first(*arguments: Any, **options: Any) -> Any:
        if next(refused, None) is not None:
            raise duckdb.IOException("the disk is gone")
        return connect(*arguments, **options)

    monkeypatch.setattr(duckdb, "connect", refusing_at_first)
    messages = [fill_until_the_disk_fails(store)]
    while not messages[-1].startswith("stored"):
        try:
            store.write(batch_at(next_offset(store)))
        except StoreUnavailableError as error:
            messages.append(str(error))
        else:
            messages.append("stored")
        assert len(messages) < 6, messages

    assert next(refused, None) is None
    assert store.query("SELECT count(*) AS n FROM results") == [{"n": next_offset(store)}]


def test_a_store_that_cannot_be_written_at_its_start_is_refused_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "store.duckdb"
    open_store(file).close()

    with no_file_above(100), pytest.raises(StoreError, match=r"Make space if its disk is full"):
        open_store(file)


@pytest.mark.parametrize("damage", ["the middle", "the end"])
def test_a_damaged_file_is_refused_with_the_way_out(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "store.duckdb"
    store = open_store(file)
    store.write(batch_at(0))
    store.close()
    content = file.read_bytes()
    file.write_bytes(
        content[:20_000] + b"\xff" * (len(content) - 20_000) if damage == "the middle" else content[:20_000]
    )

    with pytest.raises(StoreError, match="name another file"):
        open_store(file)
