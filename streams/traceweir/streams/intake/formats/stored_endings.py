"""Tells whether a stored request or response has failed."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.formats.session_records import MakeError

_MAX_CHARS = 2_000


def error_of(document: JsonObject, make_error: MakeError) -> str:
    """Returns the error of a stored request or response that has failed, of at most 2,000 characters; empty without one.

    Args:
        document: The stored request or response.
        make_error: Makes the error of the document.

    Raises:
        InputError: the error is nested too deeply to be written as JSON.

    >>> error_of({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, ValueError)
    'rate_limit_exceeded: slow down'
    >>> error_of({"object": "response", "status": "cancelled", "error": None}, ValueError)
    'the response is cancelled'
    """
    try:
        found = _text_of(document.get("error"))
    except ValueError as problem:
        raise make_error(f"error cannot be written as JSON ({problem}); write its message as a text") from None
    if found:
        return found if len(found) <= _MAX_CHARS else f"{found[: _MAX_CHARS - 1]}…"
    status = document.get("status")
    is_over = document.get("object") == "response" and status in {"failed", "cancelled"}
    return f"the response is {status}" if is_over else ""


def _text_of(error: JsonValue) -> str:
    if not error or error is True:
        return ""
    if isinstance(error, str):
        return error
    # Anthropic puts its error into another one, and a line of its batches that one into a third.
    while isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    if not isinstance(error, dict):
        return write_json(error).decode()
    message = error.get("message")
    code = next((error[name] for name in ("code", "type", "status") if isinstance(error.get(name), str | int)), None)
    if not isinstance(message, str) or not message:
        return write_json(error).decode()
    return message if code is None else f"{printable(str(code), 80)}: {message}"
