"""Knows how large a record of each topic can be, so that what does not fit is found before it is sent.

The size of a batch on the wire is known only after its compression; what fits uncompressed fits in any case, because a
producer sends a batch that compression makes larger as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traceweir.schemas.dead_letter import PREFIX, Headers, about_whole
from traceweir.streams.base.stages.base import MAX_BATCH_BYTES, MAX_OUTPUT_BYTES, Output, envelope_size

SMALLEST_BATCH_BYTES = 65_536
"""The smallest limit of a topic that a worker accepts, in bytes: every kind of output usually fits, and dead letters do."""
_FRAME_BYTES = 100
"""What a batch of one record has beside key, value and headers, at most."""
_HEADER_FRAME_BYTES = 10
_KEPT_ROOM_BYTES = 16_384
"""A dead letter keeps its key and the headers of its record if these bytes of its value can be kept beside them."""


class RecordLimits:
    """The largest batches that topics accept; all partitions of a process share one value.

    Args:
        dead_letters: The topic whose records are truncated; None: no records are.
    """

    def __init__(self, dead_letters: str | None = None) -> None:
        self._dead_letters = dead_letters
        self._batches: Mapping[str, int] = {}

    def learn(self, batches: Mapping[str, int]) -> None:
        """Replaces the limits: by topic, the largest batch in bytes. Other topics accept every batch of a worker."""
        self._batches = dict(batches)

    def batch_bytes(self, topic: str) -> int:
        """Returns the largest batch for a topic, in bytes without compression."""
        return min(self._batches.get(topic, MAX_BATCH_BYTES), MAX_BATCH_BYTES)

    def room(self, topic: str, headers: Headers = ()) -> int:
        """Returns how many bytes key and value of an output with these headers can have together."""
        limit = self.batch_bytes(topic)
        if limit >= MAX_BATCH_BYTES:
            return MAX_OUTPUT_BYTES
        return min(MAX_OUTPUT_BYTES, limit - record_bytes(None, None, headers))

    def problem(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers = ()) -> str | None:
        """Returns a sentence if an output does not fit its topic; None if it fits."""
        size = len(key or b"") + len(value or b"")
        room = self.room(topic, headers)
        if size <= room:
            return None
        limit = self.batch_bytes(topic)
        cause = f", whose max.message.bytes or segment.bytes is {limit}" if limit < MAX_BATCH_BYTES else ""
        return f"an output of {size} bytes does not fit the topic {topic}{cause}; a record can have {room} with its key"

    def fitted(self, output: Output) -> Output:
        """Returns an output with what fits its topic: the value of a dead letter is truncated, other outputs are unchanged.

        The headers of a truncated dead letter have the size and the SHA-256 of the whole value, as those of every value
        of which a part is kept. Key and headers of the record are left out where they are too large themselves.
        """
        if (
            output.topic != self._dead_letters
            or self.problem(output.topic, output.key, output.value, output.headers) is None
        ):
            return output
        key = output.key
        value = output.value or b""
        headers = [*output.headers]
        whole = (
            [(PREFIX + name, text.encode()) for name, text in about_whole(value).items()]
            if PREFIX + "size" not in dict(headers)
            else []
        )
        kept = self.room(output.topic, [*headers, *whole]) - len(key or b"")
        if kept < min(_KEPT_ROOM_BYTES, len(value)):
            own = [each for each in headers if each[0].startswith(PREFIX)]
            left_out = envelope_size(key, headers) - envelope_size(None, own)
            key = None
            headers = [*own, (PREFIX + "left_out", str(left_out).encode())]
            kept = self.room(output.topic, [*headers, *whole])
        if kept < len(value):
            return output._replace(key=key, value=value[: max(0, kept)], headers=[*headers, *whole])
        return output._replace(key=key, headers=headers)


def record_bytes(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = ()) -> int:
    """Returns an upper bound of the size of a batch with this record alone, in bytes without compression."""
    size = _FRAME_BYTES + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += _HEADER_FRAME_BYTES + len(name.encode()) + len(content or b"")
    return size
