"""Topics and tables in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from traceweir.schemas.dead_letter import DeadLetter, Headers


@dataclass(frozen=True, slots=True)
class Message:
    """A record that lies in a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def json(self) -> Any:
        """The value, parsed; None for a tombstone."""
        return orjson.loads(self.value or b"null")

    @property
    def dead_letter(self) -> DeadLetter:
        """Key, value and headers of a record of `dead-letters`, read as one object."""
        return DeadLetter.read(self.key, self.value, self.headers)


class MemoryTable:
    """An application's table: rows by partition, as of the last finished checkpoint."""

    changelog = "changelog"

    def __init__(self) -> None:
        self._rows: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        self.written: list[tuple[bytes, bytes | None]] = []
        """Every row that was ever written, in order."""

    def rows(self, partition: int) -> dict[bytes, bytes]:
        """All rows of a partition."""
        return dict(self._rows[partition])

    def read(self, partition: int, key: bytes) -> bytes | None:
        """One row; None if there is none."""
        return self._rows[partition].get(key)

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write rows; None deletes."""
        for key, value in rows:
            self.written.append((key, value))
            if value is None:
                self._rows[partition].pop(key, None)
            else:
                self._rows[partition][key] = value
