"""Counts that are as exact as the records: a row of the same transaction, one per stage and partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import orjson

COUNTERS_ROW = b"#"
"""Key of the row, a JSON object of counts."""


class Counters(Counter[str]):
    """What a stage did with the records of a partition since the beginning of its state."""

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[str, int] = {}

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Go on from the last finished checkpoint."""
        self.clear()
        if COUNTERS_ROW in rows:
            self.update(orjson.loads(rows[COUNTERS_ROW]))
        self._written = dict(self)

    def rows(self) -> list[tuple[bytes, bytes | None]]:
        """The row to write, if anything was counted since it was last asked for."""
        if dict(self) == self._written:
            return []
        self._written = dict(self)
        return [(COUNTERS_ROW, orjson.dumps(self._written, option=orjson.OPT_SORT_KEYS))]
