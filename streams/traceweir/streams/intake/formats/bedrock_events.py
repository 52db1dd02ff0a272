"""Joins the events of a stream of Bedrock's ConverseStream into a stored answer."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import CUT_OFF, MIXED
from traceweir.schemas.reasoning_text import REASONING_KINDS
from traceweir.streams.intake.formats.answer_pieces import STORED, TextsInPieces, index_in

_EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")


def event_of_bedrock(found: JsonObject) -> str:
    """Returns the kind of an event of ConverseStream, which is its only key; empty for another document."""
    kind = next(iter(found)) if len(found) == 1 else ""
    body = found.get(kind)
    if kind not in _EVENTS or not isinstance(body, dict):
        return ""
    usage = body.get("usage")
    has_usage = isinstance(usage, dict) and "outputTokens" in usage
    return kind if kind != "metadata" or has_usage else ""


class EventsOfBedrock:
    """A stream of events from `messageStart` to `messageStop`, and the tokens after it."""

    def __init__(self) -> None:
        self._begun = False
        self._is_mixed = False
        self._blocks: dict[int, JsonObject] = {}
        self._closed: set[int] = set()
        self._texts = TextsInPieces()
        self._reason: JsonValue = None
        self._usage: JsonValue = None
        self.has_ended = False

    def begins_with(self, piece: JsonObject) -> bool:
        return "metadata" not in piece

    def continues_with(self, piece: JsonObject) -> bool:
        if "metadata" in piece:
            return self._usage is None
        return not (self.has_ended or "messageStart" in piece)

    def add(self, piece: JsonObject) -> None:
        ((kind, body),) = piece.items()
        if not isinstance(body, dict):
            return
        index = index_in(body, name="contentBlockIndex")
        match kind:
            case "messageStart":
                self._begun = True
            case "contentBlockStart":
                # Events have no id, so those of another stream cannot be told from those of this one.
                self._is_mixed |= index in self._blocks
                start = body.get("start")
                self._blocks[index] = dict(start) if isinstance(start, dict) else {}
            case "contentBlockDelta":
                self._add(index, body.get("delta"))
            case "contentBlockStop":
                self._is_mixed |= index in self._closed
                self._closed.add(index)
            case "messageStop":
                self._reason = body.get("stopReason")
                self.has_ended = True
            case _:
                self._usage = body.get("usage")

    def whole(self) -> JsonObject:
        self._texts.join()
        blocks: list[JsonValue] = [block for _, block in sorted(self._blocks.items()) if block]
        is_whole = self._begun and self.has_ended and not self._is_mixed
        return {
            "object": STORED,
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": (self._reason or "end_turn") if is_whole else MIXED if self._is_mixed else CUT_OFF,
            **({"usage": self._usage} if self._usage else {}),
        }

    def _add(self, index: int, delta: JsonValue) -> None:
        for kind, value in delta.items() if isinstance(delta, dict) else ():
            if kind in REASONING_KINDS or kind == "citation":
                continue
            block = self._blocks.setdefault(index, {})
            match kind, value:
                case "text", str():
                    self._texts.add(block, "text", value)
                case "toolUse", dict():
                    call = block.setdefault("toolUse", {})
                    if isinstance(call, dict):
                        self._texts.add(call, "input", value.get("input"))
                case _:
                    # A part that is no text, which its reader names.
                    block[kind] = value
