"""Makes text safe for log lines, messages and terminals."""

from __future__ import annotations

from collections.abc import Sequence


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


def listed(texts: Sequence[str], limit: int = 300, *, most: int = 5, separator: str = "; ", what: str = "") -> str:
    """Returns the first texts and the number of the others; each is safe in a log line, as `printable` says.

    Args:
        texts: The texts.
        limit: The most characters of each.
        most: How many texts are shown.
        separator: What stands between two of them.
        what: What the texts are, for the number of the others.

    >>> listed(["a", "b\\n", "c", "d", "e", "f", "g"])
    'a; b\\\\n; c; d; e; and 2 more'
    """
    more = [f"and {len(texts) - most} more {what}".rstrip()] if len(texts) > most else []
    return separator.join([*(printable(text, limit) for text in texts[:most]), *more])
