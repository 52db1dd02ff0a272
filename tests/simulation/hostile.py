"""Records that are made to break their reader, and what must become of each: a dead letter, unchanged."""

from __future__ import annotations

import random
from typing import NamedTuple

_EVENT = b'{"type": "session.ended", "session_id": "h%d", "occurred_at": "2026-01-31T12:00:00Z"'


class Hostile(NamedTuple):
    """A hostile record, and the reason of its dead letter."""

    topic: str
    value: bytes
    reason: str
    what: str


def draw(rnd: random.Random, number: int) -> Hostile:
    """Returns a hostile record whose value contains the number, so that no other record is equal."""
    event = _EVENT % number
    topic = rnd.choice(("traces", "invocations"))
    kinds = (
        (event + b', "x": ' + b"[" * 3000 + b"]" * 3000 + b"}", "not_json", "nested very deeply"),
        (b'{"a": ' * 5000 + b"%d" % number + b"}" * 5000, "not_json", "nested very deeply"),
        (b"\x00" * 100 + b"%d" % number, "not_json", "full of zero bytes"),
        (event + b', "x": NaN}', "not_json", "JSON with NaN"),
        (event + b', "x": 1e999}', "not_json", "JSON with an infinite number"),
        (event + b', "x": "\\ud800"}', "not_json", "JSON with half a character"),
        (b"\xef\xbb\xbf" + event + b"}", "not_json", "JSON behind a byte order mark"),
        (b'"\\u001b[2J%d"' % number, "not_an_object", "a string with control characters"),
        (b"%d" % number, "not_an_object", "a number"),
        (event.replace(b'"h', b'"' + b"h" * 5000) + b"}", "invalid", "an event with a long id"),
        (event.replace(b"2026", b"9999-99") + b"}", "invalid", "an event of no time"),
        (event.replace(b'"session.ended"', b'{"$ref": "#"}') + b"}", "invalid", "an event whose type is an object"),
    )
    value, reason, what = rnd.choice(kinds)
    return Hostile(topic, value, reason, what)


_SPAN = (
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "%s", "spanId": "00f067aa0ba902b7", "name": "%d"}]}]}]}'
)


def draw_otlp(rnd: random.Random, number: int) -> Hostile:
    """Returns a hostile OTLP record whose value contains the number. No span or log record of it can be used."""
    kinds = (
        (b"\xff" * 60 + b"%d" % number, "neither protobuf nor JSON"),
        (b"\x0a\x20\x12\x1e%d" % number, "protobuf that ends too early"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [%d' % number, "JSON that ends too early"),
        (b'{"resourceSpans": ' + b"[" * 5000 + b"%d" % number + b"]" * 5000 + b"}", "nested very deeply"),
        (b'{"resourceSpans": NaN, "x": %d}' % number, "JSON with NaN"),
        (b'{"resourceSpans": {"x": %d}}' % number, "an object in place of a list of spans"),
        (b'{"resourceLogs": {"x": %d}}' % number, "an object in place of a list of log records"),
        (_SPAN % (b"0" * 32, number), "a span whose trace id consists of zeros"),
        (_SPAN % (b"4bf9", number), "a span with a short trace id"),
    )
    value, what = rnd.choice(kinds)
    return Hostile(rnd.choice(("otlp_spans", "otlp_logs")), value, "invalid", what)


def poison(number: int) -> bytes:
    """Returns a valid event on which a stage is made to raise."""
    return _EVENT % number + b', "x": "poison"}'
