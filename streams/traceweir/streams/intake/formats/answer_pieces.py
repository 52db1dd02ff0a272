"""Joins the pieces of one streamed answer, as the APIs of OpenAI, Anthropic and Gemini send them, into a stored answer."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Protocol

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject

CUT_OFF = "cut_off"
"""Why a stored answer has finished of whose stream pieces are missing; no provider gives this reason."""
_STORED = "chat.completion"
_NO_CONTENT = {"role", "thought", "thoughtSignature", "thought_signature"}


class AnswerStream(Protocol):
    """The pieces of one answer."""

    def begins_with(self, piece: JsonObject) -> bool:
        """Returns whether a stream can begin with a piece."""

    def continues_with(self, piece: JsonObject) -> bool:
        """Returns whether a piece belongs to this stream, whose kind and id it has; False if it begins the next one."""

    def add(self, piece: JsonObject) -> None:
        """Adds the next piece."""

    def whole(self) -> JsonObject:
        """Returns the answer as its API stores it, with what came of it."""


class _Texts:
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
            into[name] = f"{into.get(name) or ''}{''.join(pieces)}"
        self._pieces.clear()


class ChunksOfOpenAI:
    """A stream of `chat.completion.chunk`."""

    def __init__(self) -> None:
        self._about: JsonObject = {}
        self._texts = _Texts()
        self._messages: dict[int, JsonObject] = {}
        self._calls: dict[int, _Calls] = {}
        self._finished: dict[int, JsonValue] = {}

    def begins_with(self, piece: JsonObject) -> bool:
        # Azure sends the verdict of its filter before, and others the tokens after, without a choice.
        return bool(_objects(piece.get("choices")))

    def continues_with(self, piece: JsonObject) -> bool:
        # Usage, and a reason that is repeated, come with a choice without content.
        return not any(
            _index(choice) in self._finished and _has_content(choice.get("delta"))
            for choice in _objects(piece.get("choices"))
        )

    def add(self, piece: JsonObject) -> None:
        self._about |= {name: piece[name] for name in ("id", "created", "model", "usage") if piece.get(name)}
        for choice in _objects(piece.get("choices")):
            index = _index(choice)
            delta = choice.get("delta")
            self._add(index, delta if isinstance(delta, dict) else {})
            if choice.get("finish_reason") is not None:
                self._finished[index] = choice["finish_reason"]

    def whole(self) -> JsonObject:
        self._texts.join()
        choices: list[JsonValue] = []
        for index in sorted(self._messages):
            calls = self._calls[index].in_order()
            message = self._messages[index] | ({"tool_calls": calls} if calls else {})
            choices.append({"index": index, "message": message, "finish_reason": self._finished.get(index, CUT_OFF)})
        return {**self._about, "object": _STORED, "choices": choices}

    def _add(self, index: int, delta: JsonObject) -> None:
        message = self._messages.setdefault(index, {"role": "assistant", "content": ""})
        for name in ("content", "refusal"):
            self._texts.add(message, name, delta.get(name))
        function = delta.get("function_call")
        if isinstance(function, dict):
            self._add_to_call(message.setdefault("function_call", {}), function)
        audio = delta.get("audio")
        if isinstance(audio, dict):
            into = message.setdefault("audio", {})
            assert isinstance(into, dict)  # noqa: S101  # set above
            self._texts.add(into, "transcript", audio.get("transcript"))
        calls = self._calls.setdefault(index, _Calls())
        for each in _objects(delta.get("tool_calls")):
            function = each.get("function")
            call = calls.of(each)
            if isinstance(function, dict):
                self._add_to_call(call["function"], function)

    def _add_to_call(self, into: JsonValue, function: JsonObject) -> None:
        if isinstance(into, dict):
            arguments = function.get("arguments")
            # Some servers send an object in place of its text.
            is_object = isinstance(arguments, dict) and bool(arguments)
            self._texts.add(into, "arguments", orjson.dumps(arguments).decode() if is_object else arguments)
            into |= {"name": function["name"]} if function.get("name") else {}


class _Calls:
    """The calls of one choice. Some servers number all calls 0, and others number none."""

    def __init__(self) -> None:
        self._numbered: list[tuple[int, JsonObject]] = []
        self._of_id: dict[str, JsonObject] = {}
        self._of_number: dict[int, JsonObject] = {}

    def of(self, piece: JsonObject) -> JsonObject:
        """Returns the call to which a piece belongs.

        It is the call with its id, else the latest one with its number, or the last one if it has no number. A piece with
        the name of a tool begins a call if that one has another id or name, or if the piece has neither number nor id.
        """
        name = piece.get("id")
        call_id = name if isinstance(name, str) else ""
        if call_id in self._of_id:
            return self._of_id[call_id]
        number = piece.get("index")
        function = piece.get("function")
        tool = function.get("name") if isinstance(function, dict) else None
        last = self._numbered[-1][1] if self._numbered else None
        found = self._of_number.get(number) if isinstance(number, int) else last
        if found is not None and tool:
            known = found["function"]
            is_other = isinstance(known, dict) and known.get("name", tool) != tool
            if is_other or (number is None and not call_id) or (call_id and "id" in found):
                found = None
        if found is None:
            place = number if isinstance(number, int) else len(self._numbered)
            found = {"type": "function", "function": {}}
            self._numbered.append((place, found))
            self._of_number[place] = found
        if call_id and "id" not in found:
            found["id"] = call_id
            self._of_id[call_id] = found
        return found

    def in_order(self) -> list[JsonValue]:
        """Returns the calls in the order of their numbers, and else of their first pieces."""
        return [call for _, call in sorted(self._numbered, key=itemgetter(0))]


class EventsOfAnthropic:
    """A stream of events from `message_start` to `message_stop`."""

    def __init__(self) -> None:
        self._message: JsonObject = {}
        self._blocks: dict[int, JsonObject] = {}
        self._texts = _Texts()
        self._inputs: dict[int, list[str]] = {}
        self._error: JsonValue = None
        self._has_ended = False
        self._is_mixed = False
        self._closed: set[int] = set()

    @staticmethod
    def stored(message: JsonObject) -> JsonObject:
        """Returns a message of the API as a stored answer."""
        about = {name: message[name] for name in ("id", "model", "usage") if message.get(name)}
        content = {"role": "assistant", "content": message.get("content")}
        choice: JsonObject = {"index": 0, "message": content, "finish_reason": message.get("stop_reason")}
        return {**about, "object": _STORED, "choices": [choice]}

    def begins_with(self, piece: JsonObject) -> bool:
        return piece.get("type") not in {"ping", "error"}

    def continues_with(self, piece: JsonObject) -> bool:
        return piece.get("type") == "ping" or not (self._has_ended or piece.get("type") == "message_start")

    def add(self, piece: JsonObject) -> None:
        index = _index(piece)
        match piece:
            case {"type": "message_start", "message": dict(message)}:
                self._message = dict(message)
            case {"type": "message_stop"}:
                self._has_ended = True
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
                self._inputs.setdefault(index, []).append(text)
            case {"type": "message_delta"}:
                self._end(piece)
            case {"type": "error", "error": error}:
                self._error = error
            case _:
                # Signatures, citations and reasoning are no part of the answer; other events have no content.
                pass

    def whole(self) -> JsonObject:
        self._texts.join()
        for index, texts in self._inputs.items():
            self._blocks.setdefault(index, {"type": "tool_use"})["input"] = "".join(texts)
        blocks: list[JsonValue] = [block for _, block in sorted(self._blocks.items())]
        is_whole = "role" in self._message and not self._is_mixed
        reason = self._message.get("stop_reason") if is_whole else None
        found = self.stored(self._message | {"content": blocks, "stop_reason": reason or CUT_OFF})
        return found if self._error is None else {**found, "error": self._error}

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
        self._response: JsonObject = {}
        self._ended = False
        self._items: dict[int, JsonObject] = {}
        self._texts: dict[int, list[str]] = {}

    def begins_with(self, piece: JsonObject) -> bool:
        return True

    def continues_with(self, piece: JsonObject) -> bool:
        return not self._ended and (piece.get("type") != "response.created" or not self._response)

    def add(self, piece: JsonObject) -> None:
        index = _index(piece, name="output_index")
        match piece:
            case {"type": str(kind), "response": dict(response)}:
                self._response = {**self._response, **response}
                self._ended = kind in {"response.completed", "response.failed", "response.incomplete"}
            case {"type": "response.output_item.added" | "response.output_item.done", "item": dict(item)}:
                self._items[index] = item
            case {
                "type": "response.output_text.delta" | "response.function_call_arguments.delta",
                "delta": str(text),
            }:
                self._texts.setdefault(index, []).append(text)
            case _:
                # What an event of the end repeats, and progress of tools that the provider runs.
                pass

    def whole(self) -> JsonObject:
        if self._ended:
            return {**self._response, "object": "response"}
        for index, texts in self._texts.items():
            text = "".join(texts)
            item = self._items.setdefault(index, {"type": "message"})
            if item.get("type") == "function_call":
                item["arguments"] = item.get("arguments") or text
            elif not item.get("content"):
                item |= {"role": "assistant", "content": [{"type": "output_text", "text": text}]}
        output: list[JsonValue] = [item for _, item in sorted(self._items.items())]
        cut: JsonObject = {"status": "incomplete", "incomplete_details": {"reason": CUT_OFF}, "output": output}
        return {**self._response, "object": "response", **cut}


class PiecesOfGemini:
    """A stream of responses of `generateContent`; a single response is a stream of one piece."""

    def __init__(self) -> None:
        self._about: JsonObject = {}
        self._texts = _Texts()
        self._parts: dict[int, list[JsonValue]] = {}
        self._finished: dict[int, JsonValue] = {}

    def begins_with(self, piece: JsonObject) -> bool:
        return "candidates" in piece

    def continues_with(self, piece: JsonObject) -> bool:
        return not any(
            _index(candidate) in self._finished and _has_content(candidate.get("content"))
            for candidate in _objects(piece.get("candidates"))
        )

    def add(self, piece: JsonObject) -> None:
        names = {"id": "response_id", "modelVersion": "model_version", "usageMetadata": "usage_metadata"}
        for name, other in names.items():
            value = piece.get("responseId" if name == "id" else name) or piece.get(other)
            self._about |= {name: value} if value else {}
        for candidate in _objects(piece.get("candidates")):
            index = _index(candidate)
            content = candidate.get("content")
            parts = self._parts.setdefault(index, [])
            for part in _objects(content.get("parts")) if isinstance(content, dict) else ():
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
        return {**self._about, "object": _STORED, "candidates": candidates}

    def _add(self, parts: list[JsonValue], part: JsonObject) -> None:
        """Adds a part, whose text continues that of a part of the same kind before it."""
        last = parts[-1] if parts else None
        text = part.get("text")
        is_text = isinstance(text, str) and isinstance(last, dict) and isinstance(last.get("text"), str)
        if is_text and isinstance(last, dict) and bool(last.get("thought")) == bool(part.get("thought")):
            self._texts.add(last, "text", text)
        elif text != "" or not parts:
            parts.append(dict(part))


def _has_content(found: JsonValue) -> bool:
    """Returns whether there is more in a delta, or in a content and its parts, than a role and empty values."""
    if isinstance(found, dict):
        return any(_has_content(value) for name, value in found.items() if name not in _NO_CONTENT)
    return any(map(_has_content, found)) if isinstance(found, list) else bool(found)


def _index(found: JsonObject, otherwise: int = 0, *, name: str = "index") -> int:
    index = found.get(name)
    return index if isinstance(index, int) else otherwise


def _objects(found: JsonValue) -> Iterable[JsonObject]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
