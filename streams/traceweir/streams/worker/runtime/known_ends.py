"""Knows where the next record of an input will be appended, as long as nobody else writes to the input."""

from __future__ import annotations


class KnownEnds:
    """Holds, by topic, the offset before which each record was read or was appended by this worker.

    Another writer's record makes the next append of this worker begin at a higher offset, so that `is_next` tells
    whether a record is missing in between.

    >>> ends = KnownEnds()
    >>> ends.note_read("candidates", 7)
    >>> ends.is_next("candidates", 7), ends.is_next("candidates", 8)
    (True, False)
    >>> ends.note_appended("candidates", 7)
    >>> ends.note_committed()
    >>> ends.is_next("candidates", 9)
    True
    """

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}
        self._appended: dict[str, int] = {}

    def note_read(self, topic: str, position: int) -> None:
        """Notes that a consumer has read all records before `position`."""
        self._ends[topic] = max(self._ends.get(topic, 0), position)

    def note_appended(self, topic: str, last: int) -> None:
        """Notes that this worker has appended records up to the offset `last`, in a transaction that is open."""
        self._ends[topic] = last + 1
        self._appended[topic] = last

    def note_committed(self) -> None:
        """Notes that the transaction of the last appends was committed: its marker takes exactly one offset of each topic.

        The marker precedes each later append of this worker, because a producer begins no transaction before the
        markers of its last one are written. The consumer can have read the marker by now.
        """
        for topic, last in self._appended.items():
            if topic in self._ends:
                self._ends[topic] = max(self._ends[topic], last + 2)
        self._appended.clear()

    def is_next(self, topic: str, first: int) -> bool:
        """Returns whether a record that was appended at the offset `first` follows what is known."""
        return self._ends.get(topic) == first

    def forget(self, topic: str) -> None:
        """Notes that records of this topic must be read again."""
        self._ends.pop(topic, None)
