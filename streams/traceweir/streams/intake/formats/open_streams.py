"""Joins the pieces of streamed answers that come one after the other or mixed, each to those of its own stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.events import TYPES
from traceweir.schemas.server_sent_events import data_of_events
from traceweir.streams.base.json_values import read_json
from traceweir.streams.intake.formats.answer_pieces import (
    AnswerStream,
    EventsOfAnthropic,
    EventsOfResponses,
    PiecesOfGemini,
    item_id,
)
from traceweir.streams.intake.formats.bedrock_events import EventsOfBedrock, event_of_bedrock
from traceweir.streams.intake.formats.ollama_pieces import PiecesOfOllama, is_piece_of_ollama
from traceweir.streams.intake.formats.openai_chunks import ChunksOfOpenAI
from traceweir.streams.intake.formats.stored_endings import error_alone

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


class NewStream(Protocol):
    """Makes the object that joins the pieces of one stream."""

    def __call__(self) -> AnswerStream: ...


class StoredAnswer(NamedTuple):
    """A stored answer, with the number of its document."""

    number: int
    value: JsonObject


@dataclass(slots=True)
class _OpenStream:
    """A stream whose pieces are being joined."""

    number: int
    """The number of its first piece."""
    stream: AnswerStream
    former: _OpenStream | None = None
    """The stream before it with its name, if this one can show that the two are mixed; it is written after this one."""
    error: JsonValue = None
    """The error that its provider has sent in place of a further piece; None without one."""


class OpenStreams:
    """The streams whose pieces are being joined, in the order of their first pieces."""

    def __init__(self) -> None:
        self._open: dict[tuple[NewStream, str], _OpenStream] = {}
        self._whole: list[StoredAnswer] = []
        self._begun: set[NewStream] = set()
        """The kinds of the streams so far."""
        self._left: list[tuple[NewStream, StoredAnswer]] = []
        """The pieces that begin no stream and belong to none, such as the tokens of an answer."""
        self._of_items: dict[str, tuple[NewStream, str]] = {}
        """The streams of the Responses API by the ids of their items."""

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
        if new is EventsOfResponses:
            key = self._response_of(found, name)
            if isinstance(found.get("item"), dict) and (item := item_id(found)):
                self._of_items[item] = key
        opened = self._open.get(key)
        former: _OpenStream | None = None
        if opened is not None and not opened.stream.continues_with(found):
            if isinstance(opened.stream, PiecesOfOllama):
                former = self._wait(key)
            else:
                self._end(key)
            opened = None
        if opened is None and not new().begins_with(found):
            if new is PiecesOfGemini:
                # Its usage alone is a document of its own.
                return False
            self._leave(new, StoredAnswer(number, found))
            return True
        if opened is None:
            self._begun.add(new)
            if len(self._open) >= _MAX_OPEN:
                self._end(next(iter(self._open)))
            opened = self._open[key] = _OpenStream(number, new(), former)
            stream = opened.stream
            if former is not None and isinstance(stream, PiecesOfOllama) and isinstance(former.stream, PiecesOfOllama):
                stream.follow(former.stream)
        opened.stream.add(found)
        return True

    def _response_of(self, found: JsonObject, name: str) -> tuple[NewStream, str]:
        """Returns the stream of a piece of the Responses API, of which most do not name their response."""
        key = EventsOfResponses, name
        if key in self._open or found.get("type") == "response.created":
            return key
        of_item = self._open.get(self._of_items.get(item_id(found), key))
        if of_item is not None and not (name or of_item.stream.has_ended):
            return self._of_items[item_id(found)]
        others = [each for each in self._open if each[0] is EventsOfResponses]
        if name:
            # The stream has lost its beginning, which names the response.
            return next((each for each in others if not each[1]), key)
        return next((each for each in others if self._has_next(each, found)), next(reversed(others), key))

    def _has_next(self, key: tuple[NewStream, str], found: JsonObject) -> bool:
        stream = self._open[key].stream
        return isinstance(stream, EventsOfResponses) and stream.has_next(found)

    def _leave(self, new: NewStream, piece: StoredAnswer) -> None:
        self._left.append((new, piece))
        if len(self._left) > _MAX_OPEN:
            self._whole += self.left()

    def left(self) -> list[StoredAnswer]:
        """Returns the pieces that belong to no answer, if the file has no answer of their kind."""
        found = [piece for new, piece in self._left if new not in self._begun]
        self._left.clear()
        return found

    def _fail(self, found: JsonObject) -> bool:
        """Adds an error to the stream that it ends. Returns False if the document is none, or which stream is unknown."""
        error = error_alone(found)
        unfinished = [each for each in self._open.values() if not each.stream.has_ended]
        # One with an id is that of a line of a batch.
        if error is None or "custom_id" in found or len(unfinished) != 1:
            return False
        unfinished[0].error = error
        return True

    def ended(self) -> Iterator[StoredAnswer]:
        """Yields the answers of streams that another stream with the same name has ended."""
        yield from self._whole
        self._whole.clear()

    def close(self) -> Iterator[StoredAnswer]:
        """Yields the answers of all streams."""
        for key in list(self._open):
            self._end(key)
        self._of_items.clear()
        yield from self.ended()

    def _wait(self, key: tuple[NewStream, str]) -> _OpenStream:
        """Returns the stream, which the next one with its name can show to be mixed, and writes the one before it."""
        ended = self._open.pop(key)
        if ended.former is not None:
            self._write(ended.former)
            ended.former = None
        return ended

    def _end(self, key: tuple[NewStream, str]) -> None:
        ended = self._open.pop(key)
        if ended.former is not None:
            self._write(ended.former)
        self._write(ended)

    def _write(self, ended: _OpenStream) -> None:
        answer = ended.stream.whole()
        # The end of a failed response of OpenAI has the error again, with its code.
        failed: JsonObject = {} if ended.error is None or answer.get("error") else {"error": ended.error}
        self._whole.append(StoredAnswer(ended.number, {**answer, **failed}))


def _kind_of(found: JsonObject) -> tuple[NewStream, str] | None:
    """Returns the kind of stream of which a document is a piece, and the id of the stream; None if it is no piece."""
    kind = found.get("type")
    is_completion = found.get("object") == "text_completion" and found.keys() <= _OF_COMPLETION
    if is_completion or found.get("object") == "chat.completion.chunk":
        return ChunksOfOpenAI, _name(found, "id")
    if isinstance(kind, str) and kind.startswith("response.") and kind not in TYPES:
        response = found.get("response")
        return EventsOfResponses, _name(
            response if isinstance(response, dict) else {"id": found.get("response_id")}, "id"
        )
    if isinstance(kind, str) and kind in _OF_ANTHROPIC:
        return EventsOfAnthropic, ""
    if event_of_bedrock(found):
        return EventsOfBedrock, ""
    if is_piece_of_ollama(found):
        return PiecesOfOllama, _name(found, "model")
    if found.keys() <= _OF_GEMINI and (isinstance(found.get("candidates"), list) or _is_usage_of_gemini(found)):
        return PiecesOfGemini, _name(found, "responseId", "response_id")
    return None


def _is_usage_of_gemini(found: JsonObject) -> bool:
    usage = {"usageMetadata", "usage_metadata"} & found.keys()
    source = {"modelVersion", "model_version", "responseId", "response_id"} & found.keys()
    return bool(usage and source) and {"candidates", "promptFeedback", "prompt_feedback"}.isdisjoint(found)


def is_piece(found: JsonObject) -> bool:
    """Returns whether a document is a piece of a streamed answer."""
    return _kind_of(found) is not None


def _name(found: JsonObject, *keys: str) -> str:
    return next((str(name) for key in keys if isinstance(name := found.get(key), str | int)), "")


def answer_in(value: JsonValue) -> JsonObject | None:
    """Returns the stored answer of which a value has all pieces, as a list or as a text of server-sent events.

    None for another value, and for the pieces of several answers.
    """
    if isinstance(value, str) and (data := data_of_events(value)) is not None:
        try:
            value = [read_json(each).value for each in data]
        except ValueError:
            return None
    answers = answers_in(value, 0) if isinstance(value, list) else []
    return answers[0].value if len(answers) == 1 else None


def answers_in(pieces: list[JsonValue], number: int) -> list[StoredAnswer]:
    """Returns the answers of a list of pieces; none if something else is in it."""
    streams = OpenStreams()
    are_pieces = all(isinstance(piece, dict) and streams.take(piece, number) for piece in pieces)
    return list(streams.close()) if are_pieces else []
