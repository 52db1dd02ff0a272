"""Reads the labels of an invocation: attributes of Traceweir's own, and the tags of other conventions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceweir.schemas.dimensions import MAX_LABELS, MAX_SHORT_CHARS
from traceweir.streams.intake.spans.attributes import plain, structure
from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.span import Attributes, Span

_PREFIX = "traceweir.label."
_TAGS = keys_of(lambda each: each.tags)


def labels_of(spans: Sequence[Span]) -> dict[str, str]:
    """Returns at most 8 labels of the outermost span, the spans above it and their resources; empty if they tell none.

    The attribute `traceweir.label.team` is the label `team`; a span's attribute takes precedence over the resource's, and
    an inner span over those above it. A tag of another convention is a label with the value `true`. A label with a name or
    a value of more than 256 characters is left out, as are those after the first 8 in the order above and of their names.

    Args:
        spans: The outermost span of the invocation, then those above it, the inner ones first.
    """
    own: dict[str, str] = {}
    for span in reversed(spans):
        own |= {**dict(_own(span.resource)), **dict(_own(span.attributes))}
    tags = {tag: "true" for span in spans for tag in _tags(span.attributes) if tag not in own}
    found = [*sorted(own.items()), *sorted(tags.items())]
    usable = [(plain(name), plain(value)) for name, value in found if _is_short(name) and _is_short(value)]
    return dict(usable[:MAX_LABELS])


def _own(attributes: Attributes) -> Iterator[tuple[str, str]]:
    for key, value in attributes.items():
        if key.startswith(_PREFIX) and isinstance(value, str | int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield key.removeprefix(_PREFIX), text


def _tags(attributes: Attributes) -> Iterator[str]:
    for key in _TAGS:
        value = structure(attributes.get(key))
        if isinstance(value, str):
            # Some write all tags as one text.
            value = [each.strip() for each in value.split(",")]
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, str))


def _is_short(text: str) -> bool:
    return 0 < len(text) <= MAX_SHORT_CHARS
