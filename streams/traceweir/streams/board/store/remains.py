"""Defines what the store keeps of a removed result, so that a later revision replaces its figures and adds none.

Retention removes the text of a result and leaves its figures. A revision of it would be counted beside it if nothing
were known of it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.schemas.score import GATE
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS, RESULTS
from traceweir.streams.tools.results.table import ColumnType

TABLE = "removed_results"
"""Name of the table. Its column `key` is that of `results`, a number made of the session's id."""
_NAMES = (
    "result_id", "revision", "attempt", "metric", "level", "config_digest", "scorer_version", *RESULT_DIMENSIONS,
    "occurred_at", "evaluated_at", "value", "status", "not_evaluated_because", "cost_input_tokens", "cost_output_tokens", "cost_usd",
    "details",
)  # fmt: skip
COLUMNS: Mapping[str, ColumnType] = {name: RESULTS.column_types[name] for name in _NAMES}
"""The columns beside `key`: the id and the version of a result, and what `FigureChanges` reads."""
KEPT = ", ".join(
    f"CASE WHEN metric = '{GATE}' THEN details END AS details" if name == "details" else f'"{name}"' for name in COLUMNS
)
"""The columns as a query of results selects them. Of texts only the gate's reasons are kept, which are figures too."""
AS_RESULTS = ", ".join(
    f'old."{name}"' if name in COLUMNS else f'new_rows."{name}"' if name == "session_id" else f'NULL AS "{name}"'
    for name in RESULTS.column_names
)
"""The columns of `results` as a query of remains names them; `old` is the table, and `new_rows` has the ids of sessions."""
_FIRST = tuple(0 for _ in RESULTS.version)


def can_have_remains(row: tuple[Any, ...]) -> bool:
    """Returns whether a result can replace another one: a first version has nothing before it."""
    return RESULTS.version_of(row) > _FIRST
