"""Reads an answer of a provider before litellm does: what is no answer of such an API, and what servers write otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from traceweir.schemas.text import printable
from traceweir.streams.scoring.judges.answer_fields import answer_of, choices_of

if TYPE_CHECKING:
    import httpx

_PAGE = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_EVENTS = re.compile(rb"\s*(?:data|event|id|retry)?:")
_SEARCHED_BYTES = 1_000
_NAMED_FIELDS = 8
MAX_QUOTED_BYTES = 8_000
"""The longest body that litellm quotes in the message of an error: its search for secrets takes quadratic time."""


class NotAnAnswerError(Exception):
    """The server answered with something else than the JSON of its API; the same request would get the same."""


def check_answer(response: httpx.Response) -> None:
    """Checks that a successful answer whose body was read is neither a page nor an event stream.

    Raises:
        NotAnAnswerError: it is.
    """
    if not response.is_success:
        return
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    beginning = response.content[:_SEARCHED_BYTES]
    host = printable(response.request.url.host, 100)
    is_page = kind in ("text/html", "application/xhtml+xml") and not beginning.lstrip().startswith(b"{")
    if is_page or _PAGE.match(beginning):
        raise NotAnAnswerError(
            f"{host} sent an HTML page in place of an answer, so the address is that of a website: check the base URL "
            "(TRACEWEIR_JUDGE_API_BASE), which often ends in /v1"
        )
    if kind == "text/event-stream" or _EVENTS.match(beginning):
        raise NotAnAnswerError(
            f"{host} sent an event stream (text/event-stream), which Traceweir has not asked for and does not read: switch "
            "streaming off in the server or proxy, or check the base URL (TRACEWEIR_JUDGE_API_BASE)"
        )


class ReadableAnswer(NamedTuple):
    """An answer as litellm reads it."""

    status: int
    body: bytes


def readable_answer(response: httpx.Response) -> ReadableAnswer | None:
    """Returns the answer to a question as litellm reads it; None if it is so already.

    An error in the body of a successful answer gets its status: what stands between a client and a provider can have
    sent the status before the provider failed. The body of an error, and one that is no JSON, is cut. Of an answer, the
    fields remain that are read, in the types that litellm requires.

    Raises:
        NotAnAnswerError: the answer is not that of the API of chat completions, though the question is.
    """
    if not response.is_success:
        return _cut(response.status_code, response.content)
    if not response.request.url.path.endswith("/chat/completions"):
        return None
    try:
        document = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        try:
            # It also reads a byte order mark, UTF-16 and NaN.
            document = json.loads(response.content)
        except (ValueError, RecursionError):
            return _cut(response.status_code, response.content)
    if not isinstance(document, dict):
        raise NotAnAnswerError(_other_api(response, f"sent JSON that is {_kind_of(document)}"))
    if (status := _status_of_error(document)) is not None:
        return _cut(status, response.content) or ReadableAnswer(status, response.content)
    if "choices" not in document:
        named = ", ".join(printable(name, 30) for name in [*document][:_NAMED_FIELDS]) or "none"
        raise NotAnAnswerError(_other_api(response, f"sent an answer without `choices` (its fields: {named})"))
    return ReadableAnswer(response.status_code, json.dumps(answer_of(document)).encode())


def _cut(status: int, body: bytes) -> ReadableAnswer | None:
    return ReadableAnswer(status, body[:MAX_QUOTED_BYTES]) if len(body) > MAX_QUOTED_BYTES else None


def _other_api(response: httpx.Response, what: str) -> str:
    host = printable(response.request.url.host, 100)
    return (
        f"{host} {what}, which is not the API of chat completions: check the base URL (TRACEWEIR_JUDGE_API_BASE) and the "
        "provider in the name of the model"
    )


def _kind_of(document: Any) -> str:
    return "null" if document is None else "a list" if isinstance(document, list) else "a single value"


def _status_of_error(document: Mapping[str, Any]) -> int | None:
    """Returns the status of an error in place of an answer, or of the first choice; None if there is none."""
    choices = choices_of(document)
    errors = [document.get("error"), *(each.get("error") for each in choices[:1])]
    error = next((each for each in errors if each), None)
    if error is None or any(_has_text(each) for each in choices):
        return None
    code = str(error.get("code", "") if isinstance(error, dict) else "")
    # Without a status it is a failure of the server, which can pass.
    return int(code) if re.fullmatch(r"[45][0-9][0-9]", code) else 500


def _has_text(choice: Mapping[str, Any]) -> bool:
    message = choice.get("message")
    return isinstance(message, dict) and bool(message.get("content"))
