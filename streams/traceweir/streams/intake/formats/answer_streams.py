"""Joins the pieces of streamed answers into stored answers, and takes stored answers out of the lines of a batch.

A stream is read as a whole: its first piece is no answer. The formats see the stored answer in place of the pieces, which
are documents of their own, or a list in one document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.events import TYPES
from traceweir.streams.base.json_values import write_as_written, write_json
from traceweir.streams.intake.formats.answer_pieces import (
    AnswerStream,
    EventsOfAnthropic,
    EventsOfResponses,
    PiecesOfGemini,
)
from traceweir.streams.intake.formats.batch_lines import stored_in_batch
from traceweir.streams.intake.formats.chat_keys import MESSAGE_LISTS
from traceweir.streams.intake.formats.documents import Document, document_as_written, read_document
from traceweir.streams.intake.formats.openai_chunks import ChunksOfOpenAI
from traceweir.streams.intake.formats.stored_endings import error_alone

_CAN_BE_PIECE = re.compile(
    rb'"(?:chat\.completion\.chunk|text_completion|message_(?:start|delta|stop)|content_block_(?:start|delta|stop)|ping'
    rb"|error|response\.[a-z_.]+|candidates|usageMetadata|usage_metadata|promptFeedback|custom_id|processed_time|recordId"
    rb'|status)"'
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
_OF_COMPLETION = {
    *(
        "id",
        "object",
        "created",
        "model",
        "choices",
        "usage",
        "error",
        "system_fingerprint",
        "service_tier",
        "provider",
    ),
    *("prompt_logprobs", "kv_transfer_params", "prompt_filter_results"),
}
"""The keys of a completion in the API; an object with others, such as `prompt`, is a transcript."""
_MAX_OPEN = 1_000
"""Most streams that are joined at the same time; beyond it, the oldest counts as cut off."""


_OF_ROW = {"request", "inputs", "trace"}
"""What a row of an evaluation set has beside its response."""


class _NewStream(Protocol):
    def __call__(self) -> AnswerStream: ...


class _Answer(NamedTuple):
    """A stored answer, with the number of its document."""

    number: int
    value: JsonObject


def with_whole_answers(documents: Iterable[Document]) -> Iterator[Document]:
    """Yields the documents of a file, with a stored answer in place of the pieces of each stream and of each batch line.

    The pieces can also be a list that is a document, or that an object has beside what else it tells of the answer.

    Lines of server-sent events are read, too. A stream that ends early is a stored answer whose reason of finishing is
    `cut_off`. An answer has the number of its first piece, and comes when the next document is none of its pieces; what
    a server sends as a frame between them ends no stream.
    """
    streams = _OpenStreams()
    frames: list[Document] = []
    after_data = False
    as_written = False
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
                yield from _documents(streams.close(), as_written=as_written)
                continue
            if not raw:
                # It keeps a connection open.
                continue
        yield from frames
        frames.clear()
        found, has_notes = _parsed(raw)
        as_written |= has_notes
        if isinstance(found, dict) and streams.take(found, document.number):
            yield from _documents(streams.ended(), as_written=as_written)
            continue
        if not after_data:
            yield from _documents(streams.close(), as_written=as_written)
        stored = _stored_in(found, document.number)
        yield from _documents(stored, as_written=as_written) if stored else [Document(document.number, raw)]
    yield from frames
    yield from _documents(streams.close(), as_written=as_written)


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
        self._whole: list[_Answer] = []

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
        # One with an id is that of a line of a batch.
        if error is None or "custom_id" in found or len(unfinished) != 1:
            return False
        unfinished[0].error = error
        return True

    def ended(self) -> Iterator[_Answer]:
        """Yields the answers of streams that another stream with the same name has ended."""
        yield from self._whole
        self._whole.clear()

    def close(self) -> Iterator[_Answer]:
        """Yields the answers of all streams."""
        for key in list(self._open):
            self._end(key)
        yield from self.ended()

    def _end(self, key: tuple[_NewStream, str]) -> None:
        ended = self._open.pop(key)
        answer = ended.stream.whole()
        # The end of a failed response of OpenAI has the error again, with its code.
        failed: JsonObject = {} if ended.error is None or answer.get("error") else {"error": ended.error}
        self._whole.append(_Answer(ended.number, {**answer, **failed}))


def _kind_of(found: JsonObject) -> tuple[_NewStream, str] | None:
    """Returns the kind of stream of which a document is a piece, and the id of the stream; None if it is no piece."""
    kind = found.get("type")
    is_completion = found.get("object") == "text_completion" and found.keys() <= _OF_COMPLETION
    if is_completion or found.get("object") == "chat.completion.chunk":
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


def _stored_in(found: JsonValue, number: int) -> list[_Answer]:
    """Returns the stored answers in a document that is no piece; none if it is another document."""
    if isinstance(found, list):
        return _answers_in(found, number)
    if not isinstance(found, dict):
        return []
    if (stored := stored_in_batch(found)) is not None:
        return [_Answer(number, stored)]
    for name, value in found.items():
        answers = _answers_in(value, number) if isinstance(value, list) else []
        if len(answers) == 1:
            return [_Answer(number, _beside(found, name, answers[0].value))]
    return []


def _answers_in(pieces: list[JsonValue], number: int) -> list[_Answer]:
    """Returns the answers of a list of pieces; none if something else is in it."""
    streams = _OpenStreams()
    are_pieces = all(isinstance(piece, dict) and streams.take(piece, number) for piece in pieces)
    return list(streams.close()) if are_pieces else []


def _beside(found: JsonObject, name: str, answer: JsonObject) -> JsonObject:
    """Returns an object that has the answer in place of the pieces under a key."""
    others: JsonObject = {key: value for key, value in found.items() if key != name and value is not None}
    if name == "response" and (others.keys() & _OF_ROW or others.keys().isdisjoint(MESSAGE_LISTS)):
        return {**others, name: answer}
    request = others.get("request")
    if isinstance(request, dict) and others.keys().isdisjoint(MESSAGE_LISTS):
        others |= {key: request[key] for key in (*MESSAGE_LISTS, "input", "prompt") if key in request}
        del others["request"]
    return {**answer, **others, "object": answer["object"]}


def _parsed(raw: bytes) -> tuple[JsonValue, bool]:
    """Returns a document that can be a piece, else None, and whether it has what is no JSON, which it still has."""
    if _CAN_BE_PIECE.search(raw) is None:
        return None, False
    try:
        found = read_document(raw)
        return (document_as_written(raw), True) if found.notes else (found.value, False)
    except ValueError:
        return None, False


def _documents(answers: Iterable[_Answer], *, as_written: bool) -> Iterator[Document]:
    """Yields answers as documents.

    Args:
        answers: The answers.
        as_written: Whether one can have what is no JSON: it is left to the reader of the document, who says it.
    """
    for number, answer in answers:
        try:
            yield Document(number, write_as_written(answer) if as_written else write_json(answer))
        except ValueError as problem:
            # It is nested too deeply, for example: the formats refuse it with this error.
            yield Document(number, write_json({"error": f"the answer cannot be written as JSON ({problem})"}))


def _name(found: JsonObject, *keys: str) -> str:
    return next((str(name) for key in keys if isinstance(name := found.get(key), str | int)), "")
