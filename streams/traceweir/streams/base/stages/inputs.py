"""Names the inputs of a partition number: the partitions of topics that its stages read.

With P partitions of Traceweir's own topics, the stages of number n read partition n of each topic, and the partitions
n + P, n + 2 P ... of a topic of users that has more. Each of these is an input of its own: it has an offset, and an end to
which it is read. Names of topics contain no slash.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


def input_name(topic: str, partition: int, partitions: int) -> str:
    """Returns the name of an input: that of its topic, and for an added partition also its number.

    >>> input_name("traces", 1, 4), input_name("traces", 9, 4)
    ('traces', 'traces/9')

    Args:
        topic: The topic.
        partition: The partition that is read.
        partitions: Number of partitions of Traceweir's own topics.
    """
    return topic if partition < partitions else f"{topic}/{partition}"


def place_of(name: str, number: int) -> Place:
    """Returns the partition that an input of the partition number `number` is.

    >>> place_of("traces", 1), place_of("traces/9", 1)
    (Place(topic='traces', partition=1), Place(topic='traces', partition=9))
    """
    topic, _, added = name.partition("/")
    return Place(topic, int(added) if added else number)


def inputs_of(topics: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Returns the inputs of a stage in their order: each topic, followed by those of its added partitions that are known.

    >>> inputs_of(("traces", "strays"), ["traces/9", "strays", "traces/5", "spans/5"])
    ('traces', 'traces/5', 'traces/9', 'strays')
    """
    added = sorted((*place_of(name, 0), name) for name in known if "/" in name)
    return tuple(name for topic in topics for name in (topic, *(source for of, _, source in added if of == topic)))
