"""Tells how a stored answer has ended: cut off, or failed."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.formats.answer_pieces import CUT_OFF

_LIMITS = {"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded"}
"""Why a model has stopped at a limit: of OpenAI, Anthropic and Bedrock, Gemini, and the Responses API."""


def lacks_of_ending(document: JsonObject) -> list[str]:
    """Returns a sentence if the answer of a stored completion or response was cut off.

    >>> lacks_of_ending({"choices": [{"finish_reason": "length"}]})
    ["not all of the answer is there: the model stopped at its limit 'length'"]
    """
    details = document.get("incomplete_details")
    reasons = [
        *(each.get("finish_reason") for each in _objects(document.get("choices"))[:1]),
        *(each.get("finishReason") for each in _objects(document.get("candidates"))[:1]),
        document.get("stopReason"),
        details.get("reason") if isinstance(details, dict) else None,
    ]
    for reason in reasons:
        if reason == CUT_OFF:
            return ["the answer is not whole: pieces of its stream are missing"]
        if isinstance(reason, str) and reason in _LIMITS:
            return [f"not all of the answer is there: the model stopped at its limit {reason!r}"]
    return []


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


def _objects(found: JsonValue) -> list[JsonObject]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
