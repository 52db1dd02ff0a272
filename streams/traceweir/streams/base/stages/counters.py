"""Counts a stage's work exactly: each partition has one row of counts, written in the transaction of the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import orjson

COUNTERS_ROW = b"#"
"""Key of the row, a JSON object of counts."""


class Counters(Counter[str]):
    """The number of records of a partition per outcome, since the start of the stage's state."""

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[str, int] = {}

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the counts of the last finished checkpoint."""
        self.clear()
        if COUNTERS_ROW in rows:
            self.update(orjson.loads(rows[COUNTERS_ROW]))
        self._written = dict(self)

    def rows(self) -> list[tuple[bytes, bytes | None]]:
        """Returns the row to write; an empty list if no count has changed since the last call."""
        if dict(self) == self._written:
            return []
        self._written = dict(self)
        return [(COUNTERS_ROW, orjson.dumps(self._written, option=orjson.OPT_SORT_KEYS))]
