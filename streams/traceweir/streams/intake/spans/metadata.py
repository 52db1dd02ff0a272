"""Reads ids and names from OpenInference's attribute `metadata`, the JSON of what a framework tells of a run."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import decoded, has_word
from traceweir.streams.intake.spans.message import is_hidden
from traceweir.streams.intake.spans.span import Attributes

MAX_ID_CHARS = 1_024


def in_metadata(attributes: Attributes, *keys: str) -> str:
    """Returns the text of the first of these keys in the attribute `metadata`; empty if it has none."""
    value = attributes.get("metadata")
    if value is None:
        return ""
    if has_word(value, *(f'"{key}"' for key in keys)):
        value = decoded(value)
        if isinstance(value, dict):
            found = next((value[key] for key in keys if isinstance(value.get(key), str | int)), "")
            return usable_id(str(found))
    return ""


def usable_id(text: str) -> str:
    """Returns a text if it can be an id; empty if it is too long, not printable or stands in place of hidden content."""
    usable = len(text) <= MAX_ID_CHARS and text.isprintable() and not is_hidden(text)
    return text if usable else ""
