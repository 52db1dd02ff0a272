"""Joins the pieces of a streamed answer of Ollama's API into a stored answer."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import CUT_OFF
from traceweir.streams.intake.formats.answer_pieces import STORED, TextsInPieces, objects_in

_KEYS = {
    *("model", "created_at", "message", "response", "thinking", "done", "done_reason", "context", "logprobs"),
    *("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"),
    *("remote_model", "remote_host"),
}


def is_piece_of_ollama(found: JsonObject) -> bool:
    """Returns whether a document is a piece of `/api/chat` or `/api/generate`; a whole answer is a single piece."""
    has_text = isinstance(found.get("message"), dict) or isinstance(found.get("response"), str)
    return has_text and isinstance(found.get("done"), bool) and found.keys() <= _KEYS


class PiecesOfOllama:
    """A stream of pieces up to the one that is `done`."""

    def __init__(self) -> None:
        self.has_ended = False
        self._message: JsonObject = {"role": "assistant", "content": ""}
        self._calls: list[JsonValue] = []
        self._images: list[JsonValue] = []
        self._texts = TextsInPieces()
        self._about: JsonObject = {}
        self._reason: JsonValue = None

    def begins_with(self, piece: JsonObject) -> bool:
        return True

    def continues_with(self, piece: JsonObject) -> bool:
        return not self.has_ended

    def add(self, piece: JsonObject) -> None:
        message = piece.get("message")
        if isinstance(message, dict):
            self._texts.add(self._message, "content", message.get("content"))
            self._calls += objects_in(message.get("tool_calls"))
            images = message.get("images")
            self._images += images if isinstance(images, list) else []
        self._texts.add(self._message, "content", piece.get("response"))
        self._about |= {"model": piece["model"]} if piece.get("model") else {}
        if piece["done"]:
            self.has_ended = True
            self._reason = piece.get("done_reason")
            names = {"prompt_tokens": "prompt_eval_count", "completion_tokens": "eval_count"}
            usage: JsonObject = {name: piece[other] for name, other in names.items() if other in piece}
            self._about |= {"usage": usage} if usage else {}

    def whole(self) -> JsonObject:
        self._texts.join()
        more = {"tool_calls": self._calls, "images": self._images}
        message = self._message | {name: found for name, found in more.items() if found}
        finish = (self._reason or "stop") if self.has_ended else CUT_OFF
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": finish}
        return {**self._about, "object": STORED, "choices": [choice]}
