"""Verdicts that were paid for, so that nothing is asked twice."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

import msgspec

from traceweir.scorers.judge import Question
from traceweir.streams.judges.budget import Paid

LONGEST = 32_768
"""Characters of a reply that is remembered; a longer one is no verdict, and would be asked for again."""


class JudgeVerdict(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a judge said, and when."""

    key: bytes
    """16 bytes that stand for the question."""
    at: int
    """Milliseconds since 1970."""
    text: str


class JudgeUsage(NamedTuple):
    """What judging one session gave and cost."""

    verdicts: Sequence[JudgeVerdict] = ()
    """The verdicts to remember."""
    paid: Sequence[Paid] = ()


NOTHING_JUDGED = JudgeUsage()


class Verdicts(Protocol):
    """Remembers verdicts."""

    def get(self, key: bytes, now: int) -> JudgeVerdict | None:
        """The verdict on a question, if it is remembered and not too old. `now` in milliseconds since 1970."""

    def put(self, verdict: JudgeVerdict) -> None:
        """Remember a verdict; the oldest goes when there are too many."""


def verdict_key(question: Question, model: str) -> bytes:
    """What tells a question from any other: criterion, version, model, prompt (with the answer that is wanted) and sample.

    Args:
        question: The question.
        model: litellm's name of the model that is asked in fact.
    """
    digest = blake2b(digest_size=16)
    schema = json.dumps(question.answer, sort_keys=True) if question.answer is not None else ""
    for part in (question.metric, question.version, model, question.prompt, schema, str(question.sample)):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8) + raw)
    return digest.digest()


class VerdictsInMemory:
    """The verdicts of this process.

    Args:
        max_age_s: Seconds after which one is forgotten.
        limit: The most that are remembered.
    """

    def __init__(self, max_age_s: float, limit: int) -> None:
        self._max_age_ms, self._limit = max_age_s * 1000, limit
        self._found: OrderedDict[bytes, JudgeVerdict] = OrderedDict()

    def get(self, key: bytes, now: int) -> JudgeVerdict | None:
        """The verdict on a question, if it is remembered and not too old."""
        found = self._found.get(key)
        if found is None or now - found.at > self._max_age_ms:
            return None
        self._found.move_to_end(key)
        return found

    def put(self, verdict: JudgeVerdict) -> None:
        """Remember a verdict; what was not asked for the longest time goes when there are too many."""
        if len(verdict.text) > LONGEST or not self._limit:
            return
        self._found[verdict.key] = verdict
        self._found.move_to_end(verdict.key)
        if len(self._found) > self._limit:
            self._found.popitem(last=False)
