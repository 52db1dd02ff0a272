"""Reads the verdicts that live workers have stored, so that a shadow asks no question whose verdict is known.

The rows go into the changelog of the shadow before its first process starts. A session has the same home in both
applications, so each partition finds the verdicts on its own sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from traceweir.streams.kafka.bounded_reader import BoundedReader
from traceweir.streams.kafka.topic_admin import existing_topics
from traceweir.streams.score.judge_rows import VERDICT
from traceweir.streams.settings import Settings
from traceweir.streams.shadow.errors import ShadowError
from traceweir.streams.topics import ALL_STAGES, application_id, changelog

ROWS_OF_SCORE = b"score/"
"""What the keys of the rows of the stage score begin with in a changelog."""

Rows = Mapping[int, Mapping[bytes, bytes]]
"""Rows by partition and key."""


async def live_verdicts(settings: Settings) -> Rows:
    """Returns the rows of verdicts of all live applications that score.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: a changelog cannot be read.
    """
    found: dict[int, dict[bytes, bytes]] = {number: {} for number in range(settings.partitions)}
    for topic in sorted(_changelogs(settings) & existing_topics(settings)):
        async with BoundedReader(settings, topic, ShadowError) as reader:
            async for record in reader.records():
                if record.key is None or not record.key.startswith(ROWS_OF_SCORE + VERDICT):
                    continue
                if record.value is None:
                    found[record.partition].pop(record.key, None)
                else:
                    found[record.partition][record.key] = record.value
    return found


def _changelogs(settings: Settings) -> set[str]:
    sets = (stages for size in range(1, len(ALL_STAGES) + 1) for stages in combinations(ALL_STAGES, size))
    return {changelog(application_id(settings.topic_prefix, stages)) for stages in sets if "score" in stages}
