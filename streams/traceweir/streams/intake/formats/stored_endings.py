"""Tells whether a stored request or response has failed."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.streams.base.json_values import write_json


def error_of(document: JsonObject) -> str:
    """Returns the error of a stored request or response that has failed; empty without one.

    >>> error_of({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})
    'rate_limit_exceeded: slow down'
    >>> error_of({"object": "response", "status": "cancelled", "error": None})
    'the response is cancelled'
    """
    if found := _text_of(document.get("error")):
        return found
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
    code = next((error[name] for name in ("code", "type", "status") if error.get(name) is not None), None)
    if not isinstance(message, str) or not message:
        return write_json(error).decode()
    return message if code is None else f"{printable(str(code), 80)}: {message}"
