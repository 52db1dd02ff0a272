"""Keeps one compact row for each score of a side, so that millions of scores can be compared in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from traceweir.schemas.score import NotEvaluated, Score, Status, reported_status
from traceweir.streams.lab.comparison.texts import Texts

Rows = NDArray[np.void]
"""One row for each score, of type `ROW`."""

ROW = np.dtype(
    [
        # Identity of the result: 16 bytes of a hash.
        ("high", np.uint64),
        ("low", np.uint64),
        # 8 bytes of a hash: two sessions that collide are one cluster, which costs width only.
        ("session", np.uint64),
        # 0 without a value; `status` says so.
        ("value", np.float64),
        ("usd", np.float64),
        # Place of the texts; -1 without.
        ("text", np.int64),
        ("revision", np.int32),
        ("attempt", np.int32),
        ("input_tokens", np.uint32),
        ("output_tokens", np.uint32),
        # Number of the metric and its level.
        ("kind", np.uint16),
        # Number of the judge.
        ("judge", np.uint16),
        # Index in STATUSES.
        ("status", np.uint8),
        # Index in REASONS; 255 with a value.
        ("reason", np.uint8),
        # Whether a threshold or the gate decided the status.
        ("judged", np.bool_),
        ("cached", np.bool_),
        # False for a score that only hides former revisions.
        ("selected", np.bool_),
    ]
)
STATUSES: tuple[str, ...] = get_args(Status)
REASONS: tuple[str, ...] = get_args(NotEvaluated)
PASSED, FAILED, NOT_EVALUATED = (STATUSES.index(name) for name in ("PASSED", "FAILED", "NOT_EVALUATED"))
MAX_KINDS = 1_000
"""Maximum number of metrics and levels, and of judges, of one comparison: a forged score must not fill the memory."""
MAX_SIZE = 1e100
"""Largest size of a value or a price: sums of squares of millions of them stay finite."""
_NO_REASON = 255
_NO_TEXT = -1
_CHUNK_ROWS = 50_000
_MAX_VERSION = 2**31 - 1
_MAX_TOKENS = 2**32 - 1


class UncomparableScoreError(ValueError):
    """A score has a number that a row cannot represent; the message names the field, the value and the limit."""


class Kind(NamedTuple):
    """What is compared: a metric at one level."""

    metric: str
    level: str


class Kinds:
    """Numbers the metrics and levels of both sides of one comparison, and their judges."""

    def __init__(self) -> None:
        self._numbers: dict[Kind, int] = {}
        self._judges: dict[str, int] = {}

    def number(self, kind: Kind) -> int:
        """Returns the number of a metric at a level, from 0.

        Raises:
            UncomparableScoreError: the comparison has too many metrics.
        """
        found = self._numbers.get(kind)
        if found is None:
            if len(self._numbers) == MAX_KINDS:
                raise UncomparableScoreError(f"metric: the comparison has already {MAX_KINDS} metrics, the maximum")
            found = self._numbers[kind] = len(self._numbers)
        return found

    def judge_number(self, judge: str | None) -> int:
        """Returns the number of a judge, from 1; 0 if none is named.

        Raises:
            UncomparableScoreError: the comparison has too many judges.
        """
        if judge is None:
            return 0
        found = self._judges.get(judge)
        if found is None:
            if len(self._judges) == MAX_KINDS:
                raise UncomparableScoreError(f"judge: the comparison has already {MAX_KINDS} judges, the maximum")
            found = self._judges[judge] = len(self._judges) + 1
        return found

    def judges(self) -> list[str]:
        """Returns the names of the judges; the first one has the number 1."""
        return list(self._judges)

    def all(self) -> list[Kind]:
        """Returns the metrics and levels in the order of their numbers."""
        return list(self._numbers)


@dataclass(frozen=True, slots=True)
class Side:
    """The scores of one side that count: one for each result, sorted by (`high`, `low`)."""

    name: str
    """What the user compares, such as the name of a file."""
    rows: Rows
    replaced: int
    """Number of scores that a later revision, a later attempt or a later copy has replaced."""


class SideRows:
    """Collects the scores of one side.

    Args:
        name: What the user compares.
        kinds: The numbers of the metrics, shared by both sides.
        texts: Keeps ids and rationales, shared by both sides.
    """

    def __init__(self, name: str, kinds: Kinds, texts: Texts) -> None:
        self.name = name
        self._kinds = kinds
        self._texts = texts
        self._chunks: list[Rows] = []
        self._fresh: list[tuple[Any, ...]] = []

    def add(self, score: Score, *, selected: bool = True) -> None:
        """Adds a score, in the order in which the scores were written.

        Args:
            score: The score.
            selected: False for a score that is not compared. It still replaces former revisions of its result.

        Raises:
            UncomparableScoreError: a number of the score is too large; the side is unchanged.
            OSError: the texts cannot be written.
        """
        if not selected and not (score.revision or score.attempt):
            # It replaces nothing.
            return
        _check_size(score)
        kind = self._kinds.number(Kind(score.metric, score.level))
        judge = self._kinds.judge_number(score.judge)
        judged = reported_status(score.metric, score.status, score.threshold) in ("PASSED", "FAILED")
        high, low = _identity(score)
        self._fresh.append(
            (
                *(high, low, _hashed(score.session_id, 8)),
                0.0 if score.value is None else score.value,
                score.cost.usd,
                self._texts.keep(score) if judged and selected else _NO_TEXT,
                *(score.revision, score.attempt),
                *(score.cost.input_tokens, score.cost.output_tokens),
                *(kind, judge),
                STATUSES.index(score.status),
                _NO_REASON if score.not_evaluated_because is None else REASONS.index(score.not_evaluated_because),
                *(judged, score.cost.cached, selected),
            )
        )
        if len(self._fresh) == _CHUNK_ROWS:
            self._pack()

    def counting(self) -> Side:
        """Returns the scores that count.

        Of the scores with the same session, segment, level, subject and metric, the one with the highest revision and
        attempt counts. Of equal ones the last counts: a replay can write a score twice, and a change of the config can
        write two results for one subject.
        """
        self._pack()
        rows = np.concatenate(self._chunks) if self._chunks else np.empty(0, ROW)
        self._chunks.clear()
        # Stable.
        order = np.lexsort((rows["attempt"], rows["revision"], rows["low"], rows["high"]))
        high = rows["high"][order]
        low = rows["low"][order]
        is_last = np.ones(len(rows), np.bool_)
        is_last[:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        del high, low
        selected = int(np.count_nonzero(rows["selected"]))
        counting = rows[order[is_last & rows["selected"][order]]]
        return Side(self.name, counting, selected - len(counting))

    def _pack(self) -> None:
        if self._fresh:
            self._chunks.append(np.array(self._fresh, ROW))
            self._fresh.clear()


def _check_size(score: Score) -> None:
    sizes = (
        ("value", abs(score.value or 0.0), MAX_SIZE),
        ("cost.usd", score.cost.usd, MAX_SIZE),
        ("cost.input_tokens", score.cost.input_tokens, _MAX_TOKENS),
        ("cost.output_tokens", score.cost.output_tokens, _MAX_TOKENS),
        ("revision", score.revision, _MAX_VERSION),
        ("attempt", score.attempt, _MAX_VERSION),
    )
    for name, size, limit in sizes:
        if size > limit:
            raise UncomparableScoreError(f"{name}: {size:.6g} is more than {limit:.6g}, the largest that is compared")


def _identity(score: Score) -> tuple[int, int]:
    subject = score.invocation_id or score.trace_id or ""
    parts = score.session_id, str(score.segment), score.level, subject, score.metric
    # With their lengths, because an id can have any character: two results must never look like one.
    whole = _hashed("".join(f"{len(part)}:{part}" for part in parts), 16)
    return whole >> 64, whole & (2**64 - 1)


def _hashed(text: str, size: int) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest(), "big")
