"""Defines records of topics and tables in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from traceweir.schemas.dead_letter import DeadLetter, Headers


@dataclass(frozen=True, slots=True)
class Message:
    """A record of a topic."""

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
        """The dead letter in a record of the topic `dead-letters`, parsed from its key, value and headers."""
        return DeadLetter.read(self.key, self.value, self.headers)


class MemoryTable:
    """Holds the rows of an application's table by partition, as of the last finished checkpoint."""

    changelog = "changelog"

    def __init__(self) -> None:
        self._rows: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        self.written: list[tuple[bytes, bytes | None]] = []
        """All written rows, in order."""

    def rows(self, partition: int) -> dict[bytes, bytes]:
        """Returns all rows of a partition."""
        return dict(self._rows[partition])

    def read(self, partition: int, key: bytes) -> bytes | None:
        """Returns a row; None if the row does not exist."""
        return self._rows[partition].get(key)

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Writes rows; a value of None deletes a row."""
        for key, value in rows:
            self.written.append((key, value))
            if value is None:
                self._rows[partition].pop(key, None)
            else:
                self._rows[partition][key] = value
