"""Joins the chunks of a streamed completion of OpenAI's API, and of the servers that speak it, into a stored answer."""

from __future__ import annotations

from operator import itemgetter

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import CUT_OFF
from traceweir.streams.intake.formats.answer_pieces import STORED, TextsInPieces, has_content, index_in, objects_in


class ChunksOfOpenAI:
    """A stream of `chat.completion.chunk`, or of `text_completion`, of which a whole one is a stream of one piece."""

    def __init__(self) -> None:
        self._about: JsonObject = {}
        self._texts = TextsInPieces()
        self._messages: dict[int, JsonObject] = {}
        self._calls: dict[int, _Calls] = {}
        self._finished: dict[int, JsonValue] = {}

    @property
    def has_ended(self) -> bool:
        return self._messages.keys() <= self._finished.keys()

    def begins_with(self, piece: JsonObject) -> bool:
        # Azure sends the verdict of its filter before, and others the tokens after, without a choice.
        return bool(objects_in(piece.get("choices")))

    def continues_with(self, piece: JsonObject) -> bool:
        # Usage, and a reason that is repeated, come with a choice without content.
        return not any(
            index_in(choice) in self._finished and has_content(_delta_of(choice))
            for choice in objects_in(piece.get("choices"))
        )

    def add(self, piece: JsonObject) -> None:
        self._about |= {name: piece[name] for name in ("id", "created", "model", "usage", "error") if piece.get(name)}
        for choice in objects_in(piece.get("choices")):
            index = index_in(choice)
            self._add(index, _delta_of(choice))
            if choice.get("finish_reason") is not None:
                self._finished[index] = choice["finish_reason"]

    def whole(self) -> JsonObject:
        self._texts.join()
        choices: list[JsonValue] = []
        for index in sorted(self._messages):
            calls = self._calls[index].in_order()
            message = self._messages[index] | ({"tool_calls": calls} if calls else {})
            choices.append({"index": index, "message": message, "finish_reason": self._finished.get(index, CUT_OFF)})
        return {**self._about, "object": STORED, "choices": choices}

    def _add(self, index: int, delta: JsonObject) -> None:
        message = self._messages.setdefault(index, {"role": "assistant", "content": ""})
        for name in ("content", "refusal"):
            self._texts.add(message, name, delta.get(name))
        function = delta.get("function_call")
        if isinstance(function, dict):
            self._add_to_call(message.setdefault("function_call", {}), function)
        images = objects_in(delta.get("images"))
        if images:
            # OpenRouter has the images of an answer beside its text.
            into = message.setdefault("images", [])
            assert isinstance(into, list)  # noqa: S101  # set above
            into += images
        audio = delta.get("audio")
        if isinstance(audio, dict):
            into = message.setdefault("audio", {})
            assert isinstance(into, dict)  # noqa: S101  # set above
            self._texts.add(into, "transcript", audio.get("transcript"))
        calls = self._calls.setdefault(index, _Calls())
        for each in objects_in(delta.get("tool_calls")):
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


def _delta_of(choice: JsonObject) -> JsonObject:
    delta = choice.get("delta", {"content": choice.get("text")})
    return delta if isinstance(delta, dict) else {}


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
