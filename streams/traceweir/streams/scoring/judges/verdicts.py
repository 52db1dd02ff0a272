"""Defines verdicts, their keys and their in-memory cache, so that no question is paid for twice."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

import msgspec
from pydantic import JsonValue

from traceweir.scorers.judge import Question
from traceweir.streams.scoring.judges.budget import Paid

MAX_VERDICT_CHARS = 32_768
"""Maximum number of characters of a stored reply. A longer reply is not a verdict, and its question is asked again."""


class JudgeVerdict(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The answer of a judge, with its time."""

    key: bytes
    """16 bytes that identify the question; see `verdict_key`."""
    at: int
    """Time of the answer, in milliseconds since 1970."""
    text: str


class UnusableReply(NamedTuple):
    """An answer without a verdict."""

    text: str


class JudgeUsage(NamedTuple):
    """The new verdicts and the payments of one session."""

    verdicts: Sequence[JudgeVerdict] = ()
    """The verdicts to store."""
    paid: Sequence[Paid] = ()
    known_cases: Sequence[JudgeVerdict] = ()
    """Verdicts on known cases, which belong to no session."""

    def contradicts(self, known: Sequence[JudgeVerdict]) -> bool:
        """Returns whether a new verdict answers a question in another way than a known one.

        >>> old, new = JudgeVerdict(b"question", 1, "safe"), JudgeVerdict(b"question", 2, "unsafe")
        >>> JudgeUsage([new]).contradicts([old]), JudgeUsage([new]).contradicts([]), JudgeUsage([old]).contradicts([old])
        (True, False, False)
        """
        texts = {verdict.key: verdict.text for verdict in known}
        return any(texts.get(each.key, each.text) != each.text for each in self.verdicts)


NOTHING_JUDGED = JudgeUsage()


class Verdicts(Protocol):
    """A store of verdicts."""

    def get(self, key: bytes, now: int) -> JudgeVerdict | None:
        """Returns the verdict on a question; None if it is unknown or too old. `now` is in milliseconds since 1970."""

    def put(self, verdict: JudgeVerdict) -> None:
        """Stores a verdict; evicts the oldest verdict above the limit."""


def verdict_key(question: Question, model: str, sampling: Mapping[str, JsonValue] | None = None) -> bytes:
    """Returns the digest of a question: criterion, version, model, prompt, schema of the answer, sample, and sampling.

    Args:
        question: The question.
        model: litellm's name of the model that is asked.
        sampling: The sampling parameters of the model in the judge section; those of the question take precedence.
    """
    digest = blake2b(digest_size=16)
    schema = json.dumps(question.answer, sort_keys=True) if question.answer is not None else ""
    parts = [question.metric, question.version, model, question.prompt, schema, str(question.sample)]
    if options := {**(sampling or {}), **question.sampling}:
        parts.append(json.dumps(options, sort_keys=True))
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8) + raw)
    return digest.digest()


class VerdictsInMemory:
    """The verdicts of this process: a least-recently-used (LRU) cache.

    Args:
        max_age_s: Seconds after which a verdict expires.
        limit: Maximum number of verdicts; 0 stores none.
    """

    def __init__(self, max_age_s: float, limit: int) -> None:
        self._max_age_ms = max_age_s * 1000
        self._limit = limit
        self._verdicts: OrderedDict[bytes, JudgeVerdict] = OrderedDict()

    def get(self, key: bytes, now: int) -> JudgeVerdict | None:
        """Returns the verdict on a question; None if it is unknown or too old. `now` is in milliseconds since 1970."""
        found = self._verdicts.get(key)
        if found is None or now - found.at > self._max_age_ms:
            return None
        self._verdicts.move_to_end(key)
        return found

    def put(self, verdict: JudgeVerdict) -> None:
        """Stores a verdict; evicts the least recently used verdict above the limit."""
        if len(verdict.text) > MAX_VERDICT_CHARS or not self._limit:
            return
        self._verdicts[verdict.key] = verdict
        self._verdicts.move_to_end(verdict.key)
        if len(self._verdicts) > self._limit:
            self._verdicts.popitem(last=False)
