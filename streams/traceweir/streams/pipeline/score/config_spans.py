"""Remembers which configs are in effect from which session on, as a row of the score stage's checkpoint.

The row makes the config of a session a function of the log. It is committed with or before the first result of a new
config. So whoever scores a session again after a crash, a rebalance or an outage of its judge finds the same configs by
the offset of the session, even if the topic `configs` has newer ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from traceweir.streams.base.stages.base import Rows
from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs

_KEY = b"c"
_VERSION = 1


class _Row(msgspec.Struct, array_like=True, frozen=True):
    position: int
    reported: int
    spans: list[tuple[int, Configs]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Row).decode


class ConfigSpans:
    """The spans of offsets of the topic `sessions` in one partition, each with its configs.

    >>> spans = ConfigSpans()
    >>> spans.begin(7, (("*", "a"),), position=3)
    >>> spans.at(6), spans.at(7)
    ((), (('*', 'a'),))
    """

    def __init__(self) -> None:
        self._spans: list[tuple[int, Configs]] = []
        self._written = b""
        self.position = 0
        """The position in the topic `configs` that the latest span was begun at: a later owner reads that far first."""
        self.reported = 0
        """The offset in the partition's share of the topic `configs` below which bad records are dead letters."""

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the spans from the rows of the last finished checkpoint.

        Raises:
            ValueError: this version does not read the format of the row.
        """
        row = self._written = rows.get(_KEY, b"")
        if not row:
            return
        if row[0] != _VERSION:
            raise ValueError(
                f"a row of the configs in effect has the format {row[0]}; this version reads the format {_VERSION}"
            )
        found = _decode(row[1:])
        self.position = found.position
        self.reported = found.reported
        self._spans = found.spans

    def __bool__(self) -> bool:
        """Returns whether a config of the topic was ever in effect here."""
        return bool(self._spans)

    @property
    def are_several(self) -> bool:
        """Whether sessions of a former span can still be scored."""
        return len(self._spans) > 1

    @property
    def latest(self) -> Configs:
        """The configs of the next session."""
        return self._spans[-1][1] if self._spans else NO_CONFIGS

    def at(self, offset: int) -> Configs:
        """Returns the configs of the session at this offset."""
        found = NO_CONFIGS
        # One or two: a span ends when no session below it can be scored any more.
        for begin, configs in self._spans:
            if begin > offset:
                break
            found = configs
        return found

    def begin(self, offset: int, configs: Configs, position: int) -> None:
        """Begins a span with other configs.

        Args:
            offset: The first offset of the span; no session from it on was begun.
            configs: The configs of the span.
            position: The position in the topic `configs` at which these are the current ones.
        """
        # No session had these.
        while self._spans and self._spans[-1][0] >= offset:
            self._spans.pop()
        self._spans.append((offset, configs))
        self.position = position

    def prune(self, floor: int) -> None:
        """Drops the spans in which no session at this offset or above lies."""
        while len(self._spans) > 1 and self._spans[1][0] <= floor:
            del self._spans[0]

    def rows(self) -> Rows:
        """Returns the row, if it has changed since the last call."""
        if not (self._spans or self.reported):
            return []
        row = bytes([_VERSION]) + _encode(_Row(self.position, self.reported, self._spans))
        if row == self._written:
            return []
        self._written = row
        return [(_KEY, row)]
