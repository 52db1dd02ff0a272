"""Takes the stored answer, or the stored error, out of a line of a batch of OpenAI, Anthropic, Gemini or Bedrock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_pieces import STORED, AnswerStream, EventsOfAnthropic, PiecesOfGemini
from traceweir.streams.intake.formats.openai_chunks import ChunksOfOpenAI
from traceweir.streams.intake.formats.shown_text import described

_OF_OUTPUT = {"id", "custom_id", "response", "result", "error"}
_OF_GEMINI = {"key", "metadata", "request", "response", "error", "status", "processed_time"}
_OF_BEDROCK = {"recordId", "modelInput", "modelOutput", "error"}
FIRST_FAILED_STATUS = 400
"""The first status of HTTP that says that a request has failed."""


def stored_in_batch(found: JsonObject) -> JsonObject | None:
    """Returns the stored answer or error in a line of a batch, with the messages of its request if the line has them.

    The id of the line is the session. None: the document is no such line, or has neither an answer of a chat nor an error.
    """
    return next((stored for read in _READERS if (stored := read(found)) is not None), None)


def is_line_of_batch(found: JsonObject) -> bool:
    """Returns whether a document is a line of the output of a batch, whatever it has in place of an answer."""
    keys = found.keys()
    return (
        (isinstance(found.get("custom_id"), str) and keys <= _OF_OUTPUT and bool(keys & {"response", "result"}))
        or (isinstance(found.get("key"), str) and keys <= _OF_GEMINI and bool(keys & {"response", "error", "status"}))
        or (isinstance(found.get("recordId"), str) and keys <= _OF_BEDROCK and bool(keys & {"modelOutput", "error"}))
    )


def is_input_of_batch(found: JsonObject) -> bool:
    """Returns whether a document is a line of the input of a batch, which has a request alone."""
    keys = found.keys()
    request = found.get("request")
    return (
        ("custom_id" in keys and (isinstance(found.get("params"), dict) or {"method", "url", "body"} <= keys))
        or (isinstance(found.get("modelInput"), dict) and keys <= {"recordId", "modelInput"})
        or (isinstance(request, dict) and isinstance(request.get("contents"), list) and keys <= {"key", "request"})
    )


def shown_body(found: JsonObject) -> str:
    """Returns what a line of a batch has in place of an answer, for a message.

    >>> shown_body({"custom_id": "q-1", "response": {"status_code": 200, "body": "no"}})
    "its response.body is 'no'"
    """
    for name in ("response", "result", "modelOutput"):
        value = found.get(name)
        if isinstance(value, dict) and "body" in value:
            return f"its {name}.body is {described(value['body'])}"
        if name in found:
            return f"its {name} is {described(value)}"
    return ""


def _of_openai(found: JsonObject) -> JsonObject | None:
    response = found.get("response")
    if not (is_line_of_batch(found) and "custom_id" in found and "response" in found):
        return None
    named: JsonObject = {"custom_id": found["custom_id"]}
    if not isinstance(response, dict):
        return {**named, "error": found["error"]} if found.get("error") else None
    body = response.get("body")
    status = response.get("status_code")
    if isinstance(body, dict) and body.get("error") and body.get("object") != "response":
        return {**named, "error": body["error"]}
    if isinstance(status, int) and status >= FIRST_FAILED_STATUS:
        return {**named, "error": error_of_status(status, body)}
    if isinstance(body, dict) and body.get("object") == "text_completion":
        body = _whole(ChunksOfOpenAI(), body)
    is_answer = isinstance(body, dict) and (isinstance(body.get("choices"), list) or body.get("object") == "response")
    return (
        {"object": STORED, **body, "session_id": named["custom_id"]} if isinstance(body, dict) and is_answer else None
    )


def error_of_status(status: int, body: JsonValue) -> JsonObject:
    """Returns the error of a request that has failed, from the status and the body of its response."""
    given = (
        next((body[key] for key in ("message", "detail") if body.get(key)), body) if isinstance(body, dict) else body
    )
    return {"code": status, "message": given if isinstance(given, str) and given else "the request has failed"}


def _of_anthropic(found: JsonObject) -> JsonObject | None:
    result = found.get("result")
    if not (isinstance(result, dict) and is_line_of_batch(found)):
        return None
    name = found["custom_id"]
    message = result.get("message")
    kind = result.get("type")
    if isinstance(message, dict):
        return {**EventsOfAnthropic.stored(message), "session_id": name}
    if not isinstance(kind, str) or kind == "succeeded":
        return None
    return {"custom_id": name, "error": result.get("error") or f"the request is {kind}"}


def _of_gemini(found: JsonObject) -> JsonObject | None:
    request = found.get("request")
    contents = request.get("contents") if isinstance(request, dict) else None
    asked: JsonObject = {"contents": contents} if isinstance(contents, list) else {}
    response = found.get("response")
    inner = response.get("error") if isinstance(response, dict) and "candidates" not in response else None
    error = found.get("error") or inner or found.get("status")
    named: JsonObject = {"session_id": found["key"]} if isinstance(found.get("key"), str) else {}
    if not (named or asked) or not found.keys() <= _OF_GEMINI:
        return None
    if isinstance(response, dict) and isinstance(response.get("candidates"), list) and named:
        return {**asked, **_whole(PiecesOfGemini(), response), **named}
    if isinstance(response, dict) and isinstance(response.get("promptFeedback"), dict):
        return {**asked, "promptFeedback": response["promptFeedback"], **(named if asked else {})}
    if inner or (not response and error):
        return {**asked, "error": error, **(named if asked else {"custom_id": found.get("key")})}
    return None


def _of_bedrock(found: JsonObject) -> JsonObject | None:
    name = found.get("recordId")
    if not (isinstance(name, str) and found.keys() <= _OF_BEDROCK):
        return None
    request = found.get("modelInput")
    messages = request.get("messages") if isinstance(request, dict) else None
    asked: JsonObject = {"messages": messages, "session_id": name} if isinstance(messages, list) else {}
    output = found.get("modelOutput")
    error = found.get("error")
    if isinstance(output, dict) and output.get("role") == "assistant" and isinstance(output.get("content"), list):
        output = EventsOfAnthropic.stored(output)
    inner = output.get("output") if isinstance(output, dict) else None
    has_message = isinstance(inner, dict) and isinstance(inner.get("message"), dict)
    if isinstance(output, dict) and (has_message or isinstance(output.get("choices"), list)):
        return {"object": STORED, **output, **asked, "session_id": name}
    if isinstance(error, dict) and error.get("errorMessage"):
        error = {"code": error.get("errorCode"), "message": error["errorMessage"]}
    return {**(asked or {"custom_id": name}), "error": error} if error and not output else None


def _whole(stream: AnswerStream, piece: JsonObject) -> JsonObject:
    stream.add(piece)
    return stream.whole()


_READERS: Sequence[Callable[[JsonObject], JsonObject | None]] = (_of_openai, _of_anthropic, _of_gemini, _of_bedrock)
