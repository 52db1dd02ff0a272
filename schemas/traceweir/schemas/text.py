"""Makes text safe for log lines, messages and terminals."""

from __future__ import annotations


def printable(text: str, limit: int = 500) -> str:
    """Returns text that is safe in a log line: control and invisible characters are escaped.

    The result has at most `limit` characters; truncated text ends in an ellipsis.

    >>> printable("one\\ntwo")
    'one\\\\ntwo'
    """
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
