"""Embeds texts in small groups of similar length, a group per core.

A model pads the texts of a group to the longest one, so that groups of mixed length compute padding. Small groups stay
in the caches of a core, and a core per group needs less CPU than all cores for each group, which wait for each other.
docs/embeddings.md has the measurements.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from traceweir.scorers.embedding import Vectors

GROUP_TOKENS = 1_024
"""Maximum number of tokens of a group with its padding, unless a single text has more."""


def groups_by_length(lengths: Sequence[int], most: int = GROUP_TOKENS) -> list[list[int]]:
    """Returns the indices of texts in groups of similar length, the longest texts first.

    Args:
        lengths: Tokens of each text, exact or estimated.
        most: Maximum of a group: its longest text times the number of its texts. A group has at least one text.

    >>> groups_by_length([10, 300, 20, 90], most=300)
    [[1], [3, 2, 0]]
    """
    groups: list[list[int]] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if groups and longest * (len(groups[-1]) + 1) <= most:
            groups[-1].append(index)
        else:
            groups.append([index])
            longest = max(1, lengths[index])
    return groups


class LengthGroups:
    """Runs a model on groups of texts, on several threads.

    Args:
        threads: Number of threads; with 1, groups run in the calling thread.
        prepare: Called once in each thread before its first group.
    """

    def __init__(self, threads: int, prepare: Callable[[], object] = lambda: None) -> None:
        self._pool = ThreadPoolExecutor(threads, "embedding", prepare) if threads > 1 else None

    def embed(self, lengths: Sequence[int], dimensions: int, embed: Callable[[list[int]], Vectors]) -> Vectors:
        """Returns a row per text, in the order of the texts.

        Args:
            lengths: Tokens of each text, exact or estimated.
            dimensions: Length of a row.
            embed: Returns the rows of the texts with the given indices; called in several threads at the same time.
        """
        vectors = np.zeros((len(lengths), dimensions), np.float32)
        groups = groups_by_length(lengths)
        found = map(embed, groups) if self._pool is None or len(groups) == 1 else self._pool.map(embed, groups)
        for group, rows in zip(groups, found, strict=True):
            vectors[group] = rows
        return vectors
