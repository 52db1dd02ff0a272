"""Text that is safe to show: in a log line, a message or a terminal."""

from __future__ import annotations


def printable(text: str, limit: int = 500) -> str:
    """Text that is safe in a log line: control and invisible characters escaped, cut at `limit` characters.

    >>> printable("one\\ntwo")
    'one\\\\ntwo'
    """
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
