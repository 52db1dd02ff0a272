"""Reads an answer of a provider before litellm does: what is no answer of such an API, and a content in parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from traceweir.schemas.text import printable

if TYPE_CHECKING:
    import httpx

_PAGE = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_EVENTS = re.compile(rb"\s*(?:data|event|id|retry)?:")
_SEARCHED_BYTES = 1_000


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
    if kind in ("text/html", "application/xhtml+xml") or _PAGE.match(beginning):
        raise NotAnAnswerError(
            f"{host} sent an HTML page in place of an answer, so the address is that of a website: check the base URL "
            "(TRACEWEIR_JUDGE_API_BASE), which often ends in /v1"
        )
    if kind == "text/event-stream" or _EVENTS.match(beginning):
        raise NotAnAnswerError(
            f"{host} sent an event stream (text/event-stream), which Traceweir has not asked for and does not read: switch "
            "streaming off in the server or proxy, or check the base URL (TRACEWEIR_JUDGE_API_BASE)"
        )


def joined_content(body: bytes) -> bytes | None:
    """Returns a chat completion whose message has a list of parts as content, with the text of the parts in its place.

    Returns:
        None if nothing is to be changed.

    >>> joined_content(b'{"choices":[{"message":{"content":[{"type":"text","text":"ye"},{"type":"text","text":"s"}]}}]}')
    b'{"choices":[{"message":{"content":"yes"}}]}'
    """
    # A part that is no text, for example what the model thought, is no part of the answer.
    if b'"content"' not in body:
        return None
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    choices = document.get("choices") if isinstance(document, dict) else None
    messages = [each.get("message") for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []
    is_changed = False
    for message in messages:
        if isinstance(message, dict) and isinstance(message.get("content"), list):
            message["content"] = "".join(map(_text_of, message["content"]))
            is_changed = True
    return orjson.dumps(document) if is_changed else None


def _text_of(part: Any) -> str:
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "output_text"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""
