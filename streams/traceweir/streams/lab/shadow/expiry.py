"""Notes the offsets of a shadow's range that expired before they were scored: the end of the shadow must not hide them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from time import monotonic, sleep

from traceweir.schemas.figures import counted
from traceweir.schemas.text import listed
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.definition import Definition, Offsets
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.log import Stretches, read_lost, write_lost
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.consumer_group import GroupOffsets
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

_NAMED = 10
_COMMITTED_WITHIN_S = 30.0
_ASK_EVERY_S = 0.5


def note_losses(settings: Settings, definition: Definition) -> Mapping[int, int]:
    """Finds the offsets that have expired before they were scored, and returns how many are known, as `known_losses` does.

    What is found is noted on the topic `shadows`, so that other processes also know it. What another process has read and
    not yet committed counts as lost if it has expired meanwhile.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: a topic cannot be read or written.
    """
    names = ShadowNames.of(settings, definition.name)
    known = asyncio.run(read_lost(settings, definition.name))
    begins = asyncio.run(_begins(settings, names.topics.sessions))
    lost = known
    if any(begin > definition.begins.get(number, 0) for number, begin in begins.items()):
        # A process that was killed can have left a transaction open: what it would commit is not done.
        offsets = GroupOffsets(settings, names.application, names.topics.sessions, awaits_transactions=False)
        with closing(offsets):
            lost = with_losses(known, definition, _committed(offsets), begins)
    if lost != known:
        write_lost(settings, definition.name, lost)
    return _counts(lost)


def known_losses(settings: Settings, definition: Definition) -> Mapping[int, int]:
    """Returns, by partition, how many offsets expired before they were scored; a partition without any is left out.

    Some of these offsets have no session, because they end transactions.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic `shadows` cannot be read.
    """
    return _counts(asyncio.run(read_lost(settings, definition.name)))


def _counts(lost: Stretches) -> Mapping[int, int]:
    return {number: sum(end - first for first, end in of.items()) for number, of in sorted(lost.items())}


def with_losses(known: Stretches, definition: Definition, committed: Offsets, begins: Offsets) -> Stretches:
    """Returns the known losses, and those between the work that is done and the oldest record of each partition.

    Args:
        known: The losses that are known.
        definition: The shadow.
        committed: Its committed offsets by partition; a partition without one has not begun.
        begins: The offset of the oldest record by partition.
    """
    lost = {number: dict(of) for number, of in known.items()}
    for number, end in definition.ends.items():
        done = max(definition.begins[number], committed.get(number, 0))
        gone = min(end, begins.get(number, 0))
        if gone > done:
            lost.setdefault(number, {})[done] = gone
    return lost


def losses_in_words(lost: Mapping[int, int]) -> str:
    """Returns the number of lost offsets of each partition for a person.

    >>> losses_in_words({0: 12, 3: 1})
    '12 offsets of partition 0, 1 offset of partition 3'
    """
    named = [f"{counted(count, 'offset')} of partition {number}" for number, count in lost.items()]
    return listed(named, most=_NAMED, separator=", ", what="partitions")


def _committed(offsets: GroupOffsets) -> Offsets:
    """Returns the committed offsets; asks again for some time, because the group's broker can have changed a moment ago."""
    deadline = monotonic() + _COMMITTED_WITHIN_S
    while True:
        try:
            return offsets.committed()
        except KafkaUnreachableError:
            if monotonic() > deadline:
                raise
        sleep(_ASK_EVERY_S)


async def _begins(settings: Settings, sessions: str) -> Offsets:
    async with BoundedReader(settings, sessions, ShadowError) as reader:
        return reader.begins
