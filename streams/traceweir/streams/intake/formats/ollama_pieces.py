"""Joins the pieces of a streamed answer of Ollama's API into a stored answer."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import CUT_OFF, MIXED
from traceweir.streams.intake.formats.answer_pieces import STORED, TextsInPieces, objects_in
from traceweir.streams.intake.formats.chat_times import time_of

_KEYS = {
    *("model", "created_at", "message", "response", "thinking", "done", "done_reason", "context", "logprobs"),
    *("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"),
    *("remote_model", "remote_host"),
}


_MAX_NS = 10**18
"""A longer duration, in nanoseconds, is none."""


def is_piece_of_ollama(found: JsonObject) -> bool:
    """Returns whether a document is a piece of `/api/chat` or `/api/generate`; a whole answer is a single piece."""
    has_text = isinstance(found.get("message"), dict) or isinstance(found.get("response"), str)
    return has_text and isinstance(found.get("done"), bool) and found.keys() <= _KEYS


def stored_beside_request(found: JsonObject) -> JsonObject | None:
    """Returns a stored answer for a whole answer of `/api/chat` that somebody has written beside the messages of its
    request; None for any other document, also if the messages end with an answer.
    """
    messages = found.get("messages")
    if found.get("done") is not True or "message" not in found or not isinstance(messages, list):
        return None
    last = messages[-1] if messages else None
    piece: JsonObject = {name: value for name, value in found.items() if name in _KEYS}
    if (isinstance(last, dict) and last.get("role") == "assistant") or not is_piece_of_ollama(piece):
        return None
    stream = PiecesOfOllama()
    stream.add(piece)
    kept: JsonObject = {name: value for name, value in found.items() if name not in _KEYS or name == "created_at"}
    return kept | stream.whole()


def _has_content(piece: JsonObject) -> bool:
    message = piece.get("message")
    holder = message if isinstance(message, dict) else piece
    return any(holder.get(name) for name in ("content", "response", "thinking", "tool_calls", "images"))


class PiecesOfOllama:
    """A stream of pieces up to the one that is `done`.

    Pieces have no id. Two streams of a model that run at the same time can therefore not be told apart, but pieces of
    another stream are found: a time that goes back, more texts than tokens, an end without a text, and an answer that
    its model began before the end of the stream before it. What mixed streams say is left out.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self._message: JsonObject = {"role": "assistant", "content": ""}
        self._calls: list[JsonValue] = []
        self._images: list[JsonValue] = []
        self._texts = TextsInPieces()
        self._about: JsonObject = {}
        self._reason: JsonValue = None
        self.is_mixed = False
        """Whether it has pieces of another stream, or another stream has pieces of it."""
        self.pieces = 0
        """The number of its pieces."""
        self._said = 0
        """The number of the pieces with a text or reasoning."""
        self._began_at: datetime | None = None
        self.latest: datetime | None = None
        """The time of its latest piece."""
        self._former: PiecesOfOllama | None = None

    def begins_with(self, piece: JsonObject) -> bool:
        return True

    def continues_with(self, piece: JsonObject) -> bool:
        return not self.has_ended

    def follow(self, former: PiecesOfOllama) -> None:
        """Notes the stream of the same model that has ended before this one."""
        # A whole answer is a single piece.
        if former.pieces > 1:
            self._former = former
            self.is_mixed = former.is_mixed

    def add(self, piece: JsonObject) -> None:
        at = time_of(piece.get("created_at"))
        if at is not None:
            self.is_mixed |= self.latest is not None and at < self.latest
            self._began_at = self._began_at or at
            self.latest = at
        message = piece.get("message")
        self.pieces += 1
        self._said += _has_content(piece)
        if isinstance(message, dict):
            self._texts.add(self._message, "content", message.get("content"))
            self._calls += objects_in(message.get("tool_calls"))
            images = message.get("images")
            self._images += images if isinstance(images, list) else []
        self._texts.add(self._message, "content", piece.get("response"))
        self._about |= {"model": piece["model"]} if piece.get("model") else {}
        if piece["done"]:
            self._end(piece)

    def whole(self) -> JsonObject:
        if self.is_mixed:
            silent: JsonObject = {"role": "assistant", "content": ""}
            return {
                **self._about,
                "object": STORED,
                "choices": [{"index": 0, "message": silent, "finish_reason": MIXED}],
            }
        self._texts.join()
        more = {"tool_calls": self._calls, "images": self._images}
        message = self._message | {name: found for name, found in more.items() if found}
        finish = (self._reason or "stop") if self.has_ended else CUT_OFF
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": finish}
        return {**self._about, "object": STORED, "choices": [choice]}

    def _end(self, piece: JsonObject) -> None:
        self.has_ended = True
        self._reason = piece.get("done_reason")
        names = {"prompt_tokens": "prompt_eval_count", "completion_tokens": "eval_count"}
        usage: JsonObject = {name: piece[other] for name, other in names.items() if other in piece}
        self._about |= {"usage": usage} if usage else {}
        tokens = piece.get("eval_count")
        # A piece has at least one token.
        self.is_mixed |= isinstance(tokens, int) and self._said > max(tokens, 1)
        if self._former is not None and self._has_lost_its_beginning(self._former, piece.get("eval_duration")):
            self.is_mixed = True
            self._former.is_mixed = True
        # Not the whole file is kept.
        self._former = None

    def _has_lost_its_beginning(self, former: PiecesOfOllama, duration: JsonValue) -> bool:
        """Returns whether the model began this answer before the end of the former one, and no piece tells of it."""
        if self.pieces == 1:
            return not self._said
        began_at = self._began_at
        latest = self.latest
        ended = former.latest
        if began_at is None or latest is None or ended is None or not isinstance(duration, int):
            return False
        return ended <= began_at and latest - ended < timedelta(microseconds=min(duration, _MAX_NS) / 1_000)
