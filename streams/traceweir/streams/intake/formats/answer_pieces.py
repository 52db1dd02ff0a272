"""Joins the pieces of one streamed answer, as the APIs of Anthropic, Gemini and OpenAI's Responses send them, into a stored one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import CUT_OFF, MIXED

STORED = "chat.completion"
"""The kind of a stored answer, in `object`."""
_NO_CONTENT = {"role", "thought", "thoughtSignature", "thought_signature"}
_ENDS_OF_RESPONSE = {f"response.{status}" for status in ("completed", "failed", "incomplete", "cancelled", "done")}
"""`done` is that of the Realtime API, whose response has its status."""
_TEXTS_OF_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Where the items that are calls have the text that comes in pieces."""


class AnswerStream(Protocol):
    """The pieces of one answer."""

    def begins_with(self, piece: JsonObject) -> bool:
        """Returns whether a stream can begin with a piece."""

    def continues_with(self, piece: JsonObject) -> bool:
        """Returns whether a piece belongs to this stream, whose kind and id it has; False if it begins the next one."""

    def add(self, piece: JsonObject) -> None:
        """Adds the next piece."""

    @property
    def has_ended(self) -> bool:
        """Whether the last piece of the answer has come; an error after it is none of this answer."""

    def whole(self) -> JsonObject:
        """Returns the answer as its API stores it, with what came of it."""


class TextsInPieces:
    """Texts that come in pieces, each a member of an object.

    They are joined at the end, because to lengthen a text by each piece takes quadratic time.
    """

    def __init__(self) -> None:
        # By the id of the object, which the entry keeps alive.
        self._pieces: dict[tuple[int, str], tuple[JsonObject, list[str]]] = {}

    def add(self, into: JsonObject, name: str, text: JsonValue) -> None:
        """Adds a piece to the text that is `into[name]`; what is no text is left out."""
        if isinstance(text, str) and text:
            self._pieces.setdefault((id(into), name), (into, []))[1].append(text)

    def join(self) -> None:
        """Writes the texts into their objects."""
        for (_, name), (into, pieces) in self._pieces.items():
            former = into.get(name)
            into[name] = "".join([former if isinstance(former, str) else "", *pieces])
        self._pieces.clear()


class EventsOfAnthropic:
    """A stream of events from `message_start` to `message_stop`."""

    def __init__(self) -> None:
        self._message: JsonObject = {}
        self._blocks: dict[int, JsonObject] = {}
        self._texts = TextsInPieces()
        self.has_ended = False
        self._is_mixed = False
        self._closed: set[int] = set()

    @staticmethod
    def stored(message: JsonObject) -> JsonObject:
        """Returns a message of the API as a stored answer."""
        about = {name: message[name] for name in ("id", "model", "usage") if message.get(name)}
        content = {"role": "assistant", "content": message.get("content")}
        choice: JsonObject = {"index": 0, "message": content, "finish_reason": message.get("stop_reason")}
        return {**about, "object": STORED, "choices": [choice]}

    def begins_with(self, piece: JsonObject) -> bool:
        return piece.get("type") != "ping"

    def continues_with(self, piece: JsonObject) -> bool:
        return piece.get("type") == "ping" or not (self.has_ended or piece.get("type") == "message_start")

    def add(self, piece: JsonObject) -> None:
        index = index_in(piece)
        match piece:
            case {"type": "message_start", "message": dict(message)}:
                self._message = dict(message)
            case {"type": "message_stop"}:
                self.has_ended = True
            case {"type": "content_block_start"} if index in self._blocks:
                # Events have no id, so the pieces of another stream cannot be told from those of this one.
                self._is_mixed = True
            case {"type": "content_block_stop"}:
                self._is_mixed |= index in self._closed
                self._closed.add(index)
            case {"type": "content_block_start", "content_block": dict(block)}:
                self._blocks[index] = dict(block)
            case {"delta": {"type": "text_delta", "text": str(text)}}:
                block = self._blocks.setdefault(index, {"type": "text"})
                self._texts.add(block, "text", text)
            case {"delta": {"type": "input_json_delta", "partial_json": str(text)}}:
                block = self._blocks.setdefault(index, {"type": "tool_use"})
                self._texts.add(block, "input", text)
            case {"delta": {"type": "citations_delta"}}:
                # Pieces of one text have citations, which are no part of the answer.
                self._blocks.setdefault(index, {"type": "text"})["citations"] = [True]
            case {"type": "message_delta"}:
                self._end(piece)
            case _:
                # Signatures and reasoning are no part of the answer; other events have no content.
                pass

    def whole(self) -> JsonObject:
        self._texts.join()
        blocks: list[JsonValue] = [block for _, block in sorted(self._blocks.items())]
        is_whole = "role" in self._message and not self._is_mixed
        reason = self._message.get("stop_reason") if is_whole else MIXED if self._is_mixed else None
        return self.stored(self._message | {"content": blocks, "stop_reason": reason or CUT_OFF})

    def _end(self, piece: JsonObject) -> None:
        delta = piece.get("delta")
        if isinstance(delta, dict) and delta.get("stop_reason"):
            self._message["stop_reason"] = delta["stop_reason"]
        usage = piece.get("usage")
        former = self._message.get("usage")
        if isinstance(usage, dict):
            self._message["usage"] = (former if isinstance(former, dict) else {}) | usage


class EventsOfResponses:
    """A stream of events `response.*` of the Responses API."""

    def __init__(self) -> None:
        self.has_ended = False
        self._response: JsonObject = {}
        self._items: dict[int, JsonObject] = {}
        self._said: dict[int, JsonObject] = {}
        self._texts = TextsInPieces()
        self._latest: int | None = None
        self._is_mixed = False

    def has_next(self, piece: JsonObject) -> bool:
        """Returns whether the number of a piece is the next one of this stream."""
        return self._latest is not None and piece.get("sequence_number") == self._latest + 1

    def begins_with(self, piece: JsonObject) -> bool:
        return True

    def continues_with(self, piece: JsonObject) -> bool:
        return not self.has_ended and (piece.get("type") != "response.created" or not self._response)

    def add(self, piece: JsonObject) -> None:
        index = index_in(piece, name="output_index")
        number = piece.get("sequence_number")
        self._latest = number if isinstance(number, int) else self._latest
        known = self._items.get(index, {}).get("id")
        name = item_id(piece)
        self._is_mixed |= bool(known and name and name != known)
        match piece:
            case {"type": str(kind), "response": dict(response)}:
                self.has_ended = kind in _ENDS_OF_RESPONSE
                ended: JsonObject = {"status": kind.removeprefix("response.")} if self.has_ended else {}
                self._response |= {**ended, **response}
            case {"type": "response.output_item.added" | "response.output_item.done", "item": dict(item)}:
                self._items[index] = item
            case {
                "type": "response.output_text.delta"
                | "response.refusal.delta"
                | "response.function_call_arguments.delta"
                | "response.custom_tool_call_input.delta",
                "delta": str(text),
            }:
                self._texts.add(self._said.setdefault(index, {}), "text", text)
            case _:
                # What an event of the end repeats, and progress of tools that the provider runs.
                pass

    def whole(self) -> JsonObject:
        stored: JsonObject = {**self._response, "object": "response"}
        if not (self.has_ended and stored.get("output")):
            # A response that has failed can come without what the stream had of it.
            stored["output"] = self._output()
        reason = MIXED if self._is_mixed else CUT_OFF
        cut: JsonObject = {"status": "incomplete", "incomplete_details": {"reason": reason}}
        is_whole = self.has_ended and (bool(self._response.get("output")) or not self._is_mixed)
        return stored if is_whole else {**stored, **cut}

    def _output(self) -> list[JsonValue]:
        """Returns the items as far as the pieces tell them."""
        self._texts.join()
        for index, said in self._said.items():
            item = self._items.setdefault(index, {"type": "message"})
            name = _TEXTS_OF_CALLS.get(str(item.get("type")))
            if name is not None:
                item[name] = item.get(name) or said["text"]
            elif not item.get("content"):
                item |= {"role": "assistant", "content": [{"type": "output_text", "text": said["text"]}]}
        return [item for _, item in sorted(self._items.items())]


def item_id(piece: JsonObject) -> str:
    """Returns the id of the item of which a piece of the Responses API is; empty without one."""
    item = piece.get("item")
    name = item.get("id") if isinstance(item, dict) else piece.get("item_id")
    return name if isinstance(name, str) else ""


class PiecesOfGemini:
    """A stream of responses of `generateContent`; a single response is a stream of one piece."""

    def __init__(self) -> None:
        self._about: JsonObject = {}
        self._texts = TextsInPieces()
        self._parts: dict[int, list[JsonValue]] = {}
        self._finished: dict[int, JsonValue] = {}

    @property
    def has_ended(self) -> bool:
        return self._parts.keys() <= self._finished.keys()

    def begins_with(self, piece: JsonObject) -> bool:
        return "candidates" in piece

    def continues_with(self, piece: JsonObject) -> bool:
        return not any(
            index_in(candidate) in self._finished and has_content(candidate.get("content"))
            for candidate in objects_in(piece.get("candidates"))
        )

    def add(self, piece: JsonObject) -> None:
        names = {"id": "response_id", "modelVersion": "model_version", "usageMetadata": "usage_metadata"}
        for name, other in names.items():
            value = piece.get("responseId" if name == "id" else name) or piece.get(other)
            self._about |= {name: value} if value else {}
        for candidate in objects_in(piece.get("candidates")):
            index = index_in(candidate)
            content = candidate.get("content")
            parts = self._parts.setdefault(index, [])
            for part in objects_in(content.get("parts")) if isinstance(content, dict) else ():
                self._add(parts, part)
            reason = candidate.get("finishReason") or candidate.get("finish_reason")
            if reason:
                self._finished[index] = reason

    def whole(self) -> JsonObject:
        self._texts.join()
        candidates: list[JsonValue] = [
            {"content": {"role": "model", "parts": parts}, "finishReason": self._finished.get(index, CUT_OFF)}
            for index, parts in sorted(self._parts.items())
        ]
        return {**self._about, "object": STORED, "candidates": candidates}

    def _add(self, parts: list[JsonValue], part: JsonObject) -> None:
        """Adds a part, whose text continues that of a part of the same kind before it."""
        last = parts[-1] if parts else None
        text = part.get("text")
        is_text = isinstance(text, str) and isinstance(last, dict) and isinstance(last.get("text"), str)
        if is_text and isinstance(last, dict) and bool(last.get("thought")) == bool(part.get("thought")):
            self._texts.add(last, "text", text)
        elif text != "" or not parts:
            parts.append(dict(part))


def has_content(found: JsonValue) -> bool:
    """Returns whether there is more in a delta, or in a content and its parts, than a role and empty values.

    Args:
        found: The delta, the content, or a value in it.
    """
    if isinstance(found, dict):
        return any(has_content(value) for name, value in found.items() if name not in _NO_CONTENT)
    return any(map(has_content, found)) if isinstance(found, list) else bool(found)


def index_in(found: JsonObject, *, name: str = "index") -> int:
    """Returns the number of a choice, a block or an item, from 0; 0 without one.

    Args:
        found: The piece, or the part of it, that has the number.
        name: The key of the number.
    """
    index = found.get(name)
    return index if isinstance(index, int) else 0


def objects_in(found: JsonValue) -> Iterable[JsonObject]:
    """Returns the objects of a list; none of another value."""
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
