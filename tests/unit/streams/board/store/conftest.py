"""Opens each kind of store, so that one test holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from tests.support.scoring import NOW
from tests.support.stores import CLICKHOUSE, OpenStore, chdb_database

from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.opening import open_store as open_named

KINDS = ["duckdb", pytest.param("clickhouse", marks=CLICKHOUSE)]


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens one store, again and again; the earlier one need not be closed."""
    with ExitStack() as stack:
        name = str(tmp_path / "new" / "store.duckdb")
        if request.param == "clickhouse":
            name = stack.enter_context(chdb_database())

        def open_again(holder: str = "this test", opened_at: datetime = NOW) -> Store:
            store = open_named(name, holder, opened_at)
            stack.callback(store.close)
            return store

        yield open_again


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    """An empty store."""
    return open_store()
