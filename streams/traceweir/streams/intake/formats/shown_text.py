"""Shows a text or a value of an input in a message about it."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.text import printable
from traceweir.streams.base.json_values import write_json

_MAX_SEARCHED = 2_000
"""Most characters of a text that are searched for secrets."""
_SHOWN_CHARS = 40


def shown_text(text: str, limit: int) -> str:
    """Returns a text in quotes: its beginning, without secrets and control characters.

    Secrets are taken out before the text is cut, because a secret that is cut is not recognised.

    Args:
        text: The text.
        limit: Most characters that are shown, at least 1.

    >>> shown_text("one\\ntwo", 40), shown_text("abcdef", 4)
    ("'one\\\\\\\\ntwo'", "'abc…'")
    """
    # Its rules take a while to import, and most files have nothing to show.
    from traceweir.scorers.redaction.redaction import redact_text

    return repr(printable(redact_text(text[:_MAX_SEARCHED]), limit))


def described(value: JsonValue) -> str:
    """Returns a short description of a value for an error message.

    Strings and keys are cut to 40 characters, and lists and objects are described by their length or keys, because their
    content can be long. Secrets are taken out.
    """
    match value:
        case None:
            return "missing or null"
        case str():
            return shown_text(value, _SHOWN_CHARS)
        case bool() | int() | float():
            return write_json(value).decode()
        case list():
            return f"a list of {len(value)}"
        case _:
            keys = ", ".join(shown_text(key, _SHOWN_CHARS) for key in list(value)[:5])
            return f"an object with {keys or 'no keys'}"
