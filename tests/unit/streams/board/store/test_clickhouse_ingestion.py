"""The SQL with which ClickHouse reads from Kafka has an expression for each column, or it is not written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traceweir.streams.board.store.clickhouse_ingestion import reader
from traceweir.streams.board.store.tables import RESULTS, SESSIONS, Table
from traceweir.streams.tools.results.table import Column


@pytest.mark.parametrize("table", [RESULTS, SESSIONS], ids=lambda table: table.name)
@pytest.mark.parametrize("name", ["answer_words", "cost_eur", "trace_context_flags", "events_read"])
def test_a_column_that_a_record_does_not_have_is_refused_by_its_name(table: Table, name: str) -> None:
    wider = replace(table, columns=(*table.columns, Column(name, "integer")))

    with pytest.raises(LookupError, match=f"the column '{name}' of the table {table.name} is no field .* to _CELLS"):
        reader(wider)
