"""Finds the texts that a limit of the SDK has cut, and takes them out: the rest of a text is not what the agent said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.span import Attributes, Span, Value

_ONLY_JSON = keys_of(lambda each: each.only_json)
"""Attributes that instrumentations write as JSON: such a text that ends too early was cut, whoever cut it."""
_ANY_ONLY_JSON = frozenset(_ONLY_JSON)
_RAW = msgspec.json.Decoder(msgspec.Raw)
_TRUNCATED = "truncated"


def without_cut_texts(spans: Iterable[Span]) -> list[Span]:
    """Returns the spans with None in place of each text that was cut.

    A limit of the SDK shows where the longest texts of a service have one length, and one of them is JSON that ends too
    early; all of them were cut then, also those that are no JSON. A model can write JSON without an end as well: then
    other texts are longer, or it is the only one of its length, which is hardly a number that people choose as a limit.
    """
    known = list(spans)
    limits = _limits(known)
    # As of most traces.
    if not limits:
        return [_without(span, 0, 0) for span in known]
    return [
        _without(span, limits.get((_service(span), False), 0), limits.get((_service(span), True), 0)) for span in known
    ]


def _limits(spans: Iterable[Span]) -> dict[tuple[Value, bool], int]:
    """Returns the length at which each service cuts its texts; SDKs have one limit for spans and one for events."""
    longest: dict[tuple[Value, bool], list[str]] = {}
    for span in spans:
        service = _service(span)
        _add_longest(span.attributes, longest.setdefault((service, False), [""]))
        for event in span.events:
            _add_longest(event.attributes, longest.setdefault((service, True), [""]))
    return {place: len(texts[0]) for place, texts in longest.items() if _are_cut(texts)}


def _are_cut(longest: list[str]) -> bool:
    size = len(longest[0])
    is_chosen = size % 50 == 0 or size % 64 in (0, 63)
    different = set(longest)
    return (is_chosen or len(different) > 1) and any(map(_ends_too_early, different))


def _add_longest(attributes: Attributes, longest: list[str]) -> None:
    size = len(longest[0])
    for value in attributes.values():
        if isinstance(value, str) and len(value) >= size:
            if len(value) > size:
                longest.clear()
                size = len(value)
            longest.append(value)


def _service(span: Span) -> Value:
    name = span.resource.get("service.name")
    return name if isinstance(name, str) else ""


def _without(span: Span, limit: int, limit_of_events: int) -> Span:
    attributes, cut = _kept(span.attributes, limit)
    events = span.events
    cut_in_events = 0
    if limit_of_events:
        kept = [(event, *_kept(event.attributes, limit_of_events)) for event in events]
        events = [event._replace(attributes=shortened) for event, shortened, _ in kept]
        cut_in_events = sum(number for _, _, number in kept)
    if not cut and not cut_in_events:
        return span
    return replace(span, attributes=attributes, events=events, cut_texts=cut + cut_in_events)


def _kept(attributes: Attributes, limit: int) -> tuple[Attributes, int]:
    cut: list[str] = []
    if not _ANY_ONLY_JSON.isdisjoint(attributes):
        cut = [key for key in _ONLY_JSON if isinstance(value := attributes.get(key), str) and _has_no_end(value)]
    if limit:
        long_texts = (
            (key, value) for key, value in attributes.items() if isinstance(value, str) and len(value) == limit
        )
        cut += (key for key, value in long_texts if not _is_json(value))
    return ({**attributes, **dict.fromkeys(cut)}, len(set(cut))) if cut else (attributes, 0)


def _has_no_end(value: str) -> bool:
    return value[-1:] not in ("}", "]", '"') and _ends_too_early(value)


def _is_json(value: str) -> bool:
    if value[:1] not in ("{", "["):
        return False
    try:
        _RAW.decode(value)
    except (ValueError, RecursionError):
        return False
    return True


def _ends_too_early(value: str) -> bool:
    """Returns whether a text is the beginning of an object or a list of JSON.

    >>> _ends_too_early('{"a": "b'), _ends_too_early('{"a": 1,}'), _ends_too_early("[see below]")
    (True, False, False)
    """
    if value[:1] not in ("{", "["):
        return False
    try:
        _RAW.decode(value)
    except (ValueError, RecursionError) as error:
        return _TRUNCATED in str(error)
    return False
