"""Chunk relevance precision: the share of the retrieved chunks that a judge finds relevant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Rating = Literal["yes", "no", "unknown"]


def precision(ratings: Sequence[Rating | None]) -> float | None:
    """Share of the ratings that are `yes`, from 0 to 1; None, if there is none.

    An `unknown` counts as a rating; None, which is a chunk without content or a question that failed, does not. This is the arithmetic of
    `chunk_relevance/precision` of Databricks Agent Evaluation (databricks-agents 1.13).

    >>> precision(["yes", "no", "no"]), precision(["yes", None]), precision(["yes", "unknown"]), precision([None])
    (0.3333333333333333, 1.0, 0.5, None)
    """
    rated = [rating for rating in ratings if rating is not None]
    return rated.count("yes") / len(rated) if rated else None
