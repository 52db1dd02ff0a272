"""Defines Novelty: the novelty of one trace, as a cache has measured it."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_NOVELTY = 0.5
"""Novelty of a trace that cannot be compared: the first trace of its scope, or a trace without an embedding."""


@dataclass(frozen=True, slots=True)
class Novelty:
    """Holds the novelty of one trace at the time of its measurement, and the position of its vector in the cache."""

    value: float
    """1 - similarity, from 0 (seen before) to 2 (the opposite of everything seen); 0.5 if the cache was empty."""
    nearest: str | None
    """Trace id of the most similar vector, the oldest of equally similar vectors; None if the cache was empty."""
    similarity: float | None
    """Cosine with the nearest vector, from -1 to 1; 0 if either vector is a zero vector."""
    slot: int
    """Position in the ring buffer, from 0 to capacity - 1. A later vector of the same call can have overwritten it."""
    sequence: int
    """Number of vectors added before this vector, or before the vector that it replaces."""
