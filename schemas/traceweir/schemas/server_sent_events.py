"""Reads texts that are server-sent events, as the APIs of models send a streamed answer."""

from __future__ import annotations

_FIELDS = ("data:", "event:", "id:", "retry:", ":")
"""How the lines of such a text begin; a colon alone begins a comment."""


def data_of_events(text: str) -> list[str] | None:
    """Returns the data of server-sent events in order, without the end mark `[DONE]`; None for another text.

    >>> data_of_events('event: x\\ndata: {"a": 1}\\n\\ndata: [DONE]\\n'), data_of_events("data: one\\nand a second line")
    (['{"a": 1}'], None)
    """
    if not text.lstrip().startswith(_FIELDS):
        return None
    lines = [line for each in text.splitlines() if (line := each.strip())]
    if not all(line.startswith(_FIELDS) for line in lines):
        return None
    found = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    # Data that is no JSON can be what somebody has written.
    if not any(each.startswith("{") for each in found):
        return None
    return [each for each in found if each and each != "[DONE]"]
