"""Counts the messages in an OTLP request without decoding it: spans, events, links, attributes, their values, and so on.

An empty event takes two bytes in protobuf and three in JSON, and an object of a hundred when it is decoded. So a request
is counted before it is decoded, and the count ends at a limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.intake.otlp.json_requests import Signal

FREE_MESSAGES = 500_000
"""Messages that each request may have. A span of 30 attributes has about 63: an attribute and its value are two."""
BYTES_PER_MESSAGE = 8
"""A larger request may have one message for so many of its bytes.

An attribute and its value take 16 bytes with a key of eight letters and a number; an empty event takes two.
"""
FREE_FIELDS = 4 * FREE_MESSAGES
"""Fields of these messages together; in JSON, members of objects and lists. A larger request may have two a message."""
COUNTED_FROM_BYTES = 2 * FREE_MESSAGES
"""A smaller request cannot have so many messages: each has at least two bytes."""
_MAX_DEPTH = 200
"""Messages within each other that are counted; decoders refuse a hundred."""

_Kind = Mapping[int, str]
_VALUES: _Kind = {5: "array", 6: "map"}
_KINDS: Mapping[str, _Kind] = {
    "request": {1: "resource entry"},
    "resource entry": {1: "resource", 2: "scope entry"},
    "resource": {1: "attribute", 3: "entity"},
    "entity": {},
    "scope": {3: "attribute"},
    "attribute": {2: "value"},
    "value": _VALUES,
    "array": {1: "value"},
    "map": {1: "attribute"},
    "event": {3: "attribute"},
    "link": {4: "attribute"},
    "status": {},
}
"""The messages in the fields of each message, by the numbers that OTLP gives to these fields."""
_OF_SIGNAL: Mapping[Signal, Mapping[str, _Kind]] = {
    "spans": {
        "scope entry": {1: "scope", 2: "item"},
        "item": {9: "attribute", 11: "event", 13: "link", 15: "status"},
    },
    "logs": {"scope entry": {1: "scope", 2: "item"}, "item": {5: "value", 6: "attribute"}},
}
SLICE_BYTES = 100_000
"""Bytes of JSON that are split at their quotes together: the parts of very short texts take ten times their bytes."""


def max_messages(size: int) -> int:
    """Returns how many messages a request of `size` bytes may have."""
    return max(FREE_MESSAGES, size // BYTES_PER_MESSAGE)


def max_fields(size: int) -> int:
    """Returns how many fields a request of `size` bytes may have."""
    return max(FREE_FIELDS, 2 * (size // BYTES_PER_MESSAGE))


def has_too_many_messages(request: bytes, signal: Signal, *, json: bool) -> bool:
    """Returns whether a request has more than `max_messages` or `max_fields` of its size, as far as it can be read."""
    if len(request) < COUNTED_FROM_BYTES:
        return False
    return _has_many_in_json(request) if json else _has_many(request, signal)


def _has_many_in_json(request: bytes) -> bool:
    most_objects = max_messages(len(request))
    most_members = max_fields(len(request))
    objects = request.count(b"{")
    members = objects + request.count(b"[") + request.count(b",")
    if objects <= most_objects and members <= most_members:
        return False
    # Some of them can be in texts. What is escaped in a text ends none; elsewhere nothing is escaped in JSON.
    request = request.replace(b"\\\\", b"").replace(b'\\"', b"")
    objects = members = 0
    is_in_text = False
    for start in range(0, len(request), SLICE_BYTES):
        parts = request[start : start + SLICE_BYTES].split(b'"')
        outside = b"".join(parts[is_in_text::2])
        is_in_text ^= len(parts) % 2 == 0
        braces = outside.count(b"{")
        objects += braces
        members += braces + outside.count(b"[") + outside.count(b",")
        if objects > most_objects or members > most_members:
            return True
    return False


def _has_many(request: bytes, signal: Signal) -> bool:
    """Reads each byte once: no part of a message ends behind it. What is cut does not end the count: others are decoded."""
    kinds = {**_KINDS, **_OF_SIGNAL[signal]}
    most_messages = max_messages(len(request))
    most_fields = max_fields(len(request))
    messages = fields = 0
    outer: list[tuple[int, _Kind]] = []
    at = 0
    end = len(request)
    kind = kinds["request"]
    while True:
        while at >= end:
            if not outer:
                return False
            # What is behind a message begins at its end, whatever the message is.
            at = end
            end, kind = outer.pop()
        fields += 1
        tag = request[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(request, at - 1, end)
        if at >= end:
            continue
        wire = tag & 7
        if wire == 2:
            size = request[at]
            at += 1
            if size >= 0x80:
                size, at = _varint(request, at - 1, end)
            inner = kind.get(tag >> 3)
            messages += inner is not None
            if inner is not None and at + size <= end and len(outer) < _MAX_DEPTH:
                outer.append((end, kind))
                end = at + size
                kind = kinds[inner]
            else:
                at += size
        elif wire == 0:
            if request[at] >= 0x80:
                _, at = _varint(request, at, end)
            else:
                at += 1
        elif wire in {1, 5}:
            at += 8 if wire == 1 else 4
        if messages > most_messages or fields > most_fields:
            return True


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Returns a number and the place behind it, which is `end` if the number is cut there."""
    number = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        if shift < 64:
            number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return number, at
