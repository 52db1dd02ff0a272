"""Joins the pieces of streamed answers into stored answers, and takes stored answers out of the lines of a batch.

A stream is read as a whole: its first piece is no answer. The formats see the stored answer in place of the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.events import TYPES
from traceweir.streams.intake.formats.answer_pieces import (
    AnswerStream,
    EventsOfAnthropic,
    EventsOfResponses,
    PiecesOfGemini,
)
from traceweir.streams.intake.formats.documents import Document, read_document
from traceweir.streams.intake.formats.openai_chunks import ChunksOfOpenAI
from traceweir.streams.intake.formats.stored_endings import error_alone

_CAN_BE_PIECE = re.compile(
    rb'"(?:chat\.completion\.chunk|message_(?:start|delta|stop)|content_block_(?:start|delta|stop)|ping|error'
    rb'|response\.[a-z_.]+|candidates|custom_id|usageMetadata|usage_metadata)"'
)
"""What a document contains that can be a piece or a line of a batch. Quotation marks inside of texts are escaped."""
_OF_GEMINI = {
    *("candidates", "usageMetadata", "usage_metadata", "modelVersion", "model_version", "responseId", "response_id"),
    *("promptFeedback", "prompt_feedback", "createTime", "create_time", "sdkHttpResponse", "sdk_http_response"),
    *("automaticFunctionCallingHistory", "automatic_function_calling_history", "parsed"),
}
_OF_ANTHROPIC = {
    *("message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta"),
    *("content_block_stop", "ping"),
}
_OF_BATCH = {"id", "custom_id", "response", "result", "error"}
_MAX_OPEN = 1_000
"""Most streams that are joined at the same time; beyond it, the oldest counts as cut off."""


class _NewStream(Protocol):
    def __call__(self) -> AnswerStream: ...


def with_whole_answers(documents: Iterable[Document]) -> Iterator[Document]:
    """Yields the documents of a file, with a stored answer in place of the pieces of each stream and of each batch line.

    Lines of server-sent events are read, too. A stream that ends early is a stored answer whose reason of finishing is
    `cut_off`. An answer has the number of its first piece, and comes when the next document is none of its pieces.
    """
    streams = _OpenStreams()
    frames: list[Document] = []
    after_data = False
    for document in documents:
        raw = document.raw
        if after_data and raw.startswith(b":"):
            # A comment, which servers send to keep a connection open.
            continue
        if raw.startswith((b"event:", b"id:", b"retry:", b":")):
            # A frame of server-sent events, unless something else follows.
            frames.append(document)
            continue
        after_data = raw.startswith(b"data:")
        if after_data:
            frames.clear()
            raw = raw.removeprefix(b"data:").strip()
            if raw == b"[DONE]":
                yield from streams.close()
                continue
        yield from frames
        frames.clear()
        found = _parsed(raw)
        if found is not None and streams.take(found, document.number):
            yield from streams.ended()
            continue
        yield from streams.close()
        answer = None if found is None else _answer_of_batch(found)
        yield Document(document.number, raw) if answer is None else _document(document.number, answer)
    yield from frames
    yield from streams.close()


@dataclass(slots=True)
class _OpenStream:
    """A stream whose pieces are being joined."""

    number: int
    """The number of its first piece."""
    stream: AnswerStream
    error: JsonValue = None
    """The error that its provider has sent in place of a further piece; None without one."""


class _OpenStreams:
    """The streams whose pieces are being joined, in the order of their first pieces."""

    def __init__(self) -> None:
        self._open: dict[tuple[_NewStream, str], _OpenStream] = {}
        self._whole: list[Document] = []

    def take(self, found: JsonObject, number: int) -> bool:
        """Adds a piece to its stream. Returns False if the document is no piece."""
        kind = _kind_of(found)
        if kind is None:
            return self._fail(found)
        new, name = kind
        key = new, name
        if not (name or key in self._open or new().begins_with(found)):
            # What has no id and begins no stream belongs to the latest.
            key = next((each for each in reversed(self._open) if each[0] is new), key)
        opened = self._open.get(key)
        if opened is not None and not opened.stream.continues_with(found):
            self._end(key)
            opened = None
        if opened is None and not new().begins_with(found):
            # The usage of Gemini alone is a document of its own. Other pieces that begin no stream have no content.
            return new is not PiecesOfGemini
        if opened is None:
            if len(self._open) >= _MAX_OPEN:
                self._end(next(iter(self._open)))
            opened = self._open[key] = _OpenStream(number, new())
        opened.stream.add(found)
        return True

    def _fail(self, found: JsonObject) -> bool:
        """Adds an error to the stream that it ends. Returns False if the document is none, or which stream is unknown."""
        error = error_alone(found)
        unfinished = [each for each in self._open.values() if not each.stream.has_ended]
        if error is None or len(unfinished) != 1:
            return False
        unfinished[0].error = error
        return True

    def ended(self) -> Iterator[Document]:
        """Yields the answers of streams that another stream with the same name has ended."""
        yield from self._whole
        self._whole.clear()

    def close(self) -> Iterator[Document]:
        """Yields the answers of all streams."""
        for key in list(self._open):
            self._end(key)
        yield from self.ended()

    def _end(self, key: tuple[_NewStream, str]) -> None:
        ended = self._open.pop(key)
        answer = ended.stream.whole()
        # The end of a failed response of OpenAI has the error again, with its code.
        failed: JsonObject = {} if ended.error is None or answer.get("error") else {"error": ended.error}
        self._whole.append(_document(ended.number, {**answer, **failed}))


def _kind_of(found: JsonObject) -> tuple[_NewStream, str] | None:
    """Returns the kind of stream of which a document is a piece, and the id of the stream; None if it is no piece."""
    kind = found.get("type")
    if found.get("object") == "chat.completion.chunk":
        return ChunksOfOpenAI, _name(found, "id")
    if isinstance(kind, str) and kind.startswith("response.") and kind not in TYPES:
        return EventsOfResponses, ""
    if kind in _OF_ANTHROPIC:
        return EventsOfAnthropic, ""
    if found.keys() <= _OF_GEMINI and (isinstance(found.get("candidates"), list) or _is_usage_of_gemini(found)):
        return PiecesOfGemini, _name(found, "responseId", "response_id")
    return None


def _is_usage_of_gemini(found: JsonObject) -> bool:
    usage = {"usageMetadata", "usage_metadata"} & found.keys()
    source = {"modelVersion", "model_version", "responseId", "response_id"} & found.keys()
    return bool(usage and source) and {"candidates", "promptFeedback", "prompt_feedback"}.isdisjoint(found)


def _answer_of_batch(found: JsonObject) -> JsonObject | None:
    """Returns the stored answer, or the stored error, in a line of a batch of OpenAI or Anthropic; None for no such line."""
    name = found.get("custom_id")
    response = found.get("response")
    result = found.get("result")
    if not isinstance(name, str) or not found.keys() <= _OF_BATCH or {"response", "result"}.isdisjoint(found):
        return None
    match response, result:
        case {"body": {"error": error}}, _ if error:
            return {"custom_id": name, "error": error}
        case {"body": dict(body)}, _:
            return {**body, "session_id": name}
        case _, {"message": dict(message)}:
            return {**EventsOfAnthropic.stored(message), "session_id": name}
        case _:
            error = found.get("error") or (result if isinstance(result, dict) else None)
            return None if error is None else {"custom_id": name, "error": error}


def _parsed(raw: bytes) -> JsonObject | None:
    if _CAN_BE_PIECE.search(raw) is None:
        return None
    try:
        found = read_document(raw).value
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _document(number: int, answer: Mapping[str, JsonValue]) -> Document:
    return Document(number, orjson.dumps(answer))


def _name(found: JsonObject, *keys: str) -> str:
    return next((name for key in keys if isinstance(name := found.get(key), str)), "")
