"""Tells whether a stored request or response has failed, and recognizes the error of one that is stored alone."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.formats.session_records import MakeError
from traceweir.streams.intake.formats.shown_text import shown_text

_MAX_CHARS = 2_000
_SHOWN_CHARS = 200
"""Most characters of an error in the message about its document."""
_FAILED = {"failed", "cancelled"}
_OF_ERROR = {
    *("error", "type", "request_id", "custom_id", "code", "status", "message", "event_id", "sequence_number", "param"),
    "object",
}
WITHOUT_QUESTION = "a stored error of a model's provider, without the question"
"""What a stored error alone is, for messages."""
ADD_QUESTION = (
    'write the messages of the request beside it, so that the turn counts as failed: {"messages": [...], "error": ...}'
)
"""The way out of it."""


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
        found = _text_of(_error_in(document))
    except ValueError as problem:
        raise make_error(f"error cannot be written as JSON ({problem}); write its message as a text") from None
    if found:
        return found if len(found) <= _MAX_CHARS else f"{found[: _MAX_CHARS - 1]}…"
    return f"the response is {document['status']}" if has_failed(document) else ""


def has_failed(document: JsonObject) -> bool:
    """Returns whether a stored response of OpenAI's Responses API says that it is not whole because it has failed."""
    return document.get("object") == "response" and document.get("status") in _FAILED


def error_alone(document: JsonObject) -> JsonValue:
    """Returns the error of a document that is nothing else; None for any other document.

    >>> error_alone({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    {'type': 'overloaded_error', 'message': 'Overloaded'}
    >>> error_alone({"type": "error", "code": "server_error", "message": "boom", "sequence_number": 3})
    {'code': 'server_error', 'message': 'boom'}
    """
    if len(document) == 1:
        ((kind, body),) = document.items()
        if kind.endswith("Exception") and isinstance(body, dict):
            # Of a stream of Bedrock.
            return {"code": kind, "message": body.get("message") or "the request has failed"}
    if not document.keys() <= _OF_ERROR:
        return None
    if document.get("error"):
        return document["error"]
    given: JsonObject = {name: document[name] for name in ("code", "message") if document.get(name)}
    return given or "error" if "error" in (document.get("type"), document.get("object")) else None


def shown_error(document: JsonObject) -> str:
    """Returns the error of a document for a message: shortened, without secrets and control characters; empty without one.

    >>> shown_error({"error": {"message": "no such model", "code": "model_not_found"}})
    "'model_not_found: no such model'"
    """
    try:
        found = _text_of(_error_in(document) or error_alone(document))
    except ValueError:
        # It is nested too deeply.
        return ""
    return shown_text(found, _SHOWN_CHARS) if found else ""


def _error_in(document: JsonObject) -> JsonValue:
    if document.get("error"):
        return document["error"]
    feedback = document.get("promptFeedback", document.get("prompt_feedback"))
    reason = feedback.get("blockReason", feedback.get("block_reason")) if isinstance(feedback, dict) else None
    return f"the prompt was blocked: {printable(reason, 80)}" if isinstance(reason, str) and reason else None


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
