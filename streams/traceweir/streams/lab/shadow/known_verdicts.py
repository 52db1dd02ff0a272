"""Reads the verdicts that live workers and other shadows have stored, so that no question is asked whose verdict is known.

The rows go into the changelog of the shadow before its first process starts. A session has the same home in all these
applications, so each partition finds the verdicts on its own sessions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from itertools import combinations

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, SHADOW_NAME, application_id, changelog, shadow_application_id
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.pipeline.score.judge_rows import VERDICT
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

ROWS_OF_SCORE = b"score/"
"""What the keys of the rows of the stage score begin with in a changelog."""

Rows = Mapping[int, Mapping[bytes, bytes]]
"""Rows by partition and key."""


async def known_verdicts(settings: Settings, topics: Collection[str]) -> Rows:
    """Returns the rows of verdicts of all applications that score: live workers and shadows.

    Args:
        settings: Where Kafka is.
        topics: The names of all topics.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: a changelog cannot be read.
    """
    known: dict[int, dict[bytes, bytes]] = {number: {} for number in range(settings.partitions)}
    for topic in sorted(filter(_is_changelog(settings), topics)):
        # Of each topic on its own, because what one application has deleted another one can still have.
        found: dict[int, dict[bytes, bytes]] = {number: {} for number in known}
        async with BoundedReader(settings, topic, ShadowError) as reader:
            async for record in reader.records():
                if record.key is None or not record.key.startswith(ROWS_OF_SCORE + VERDICT):
                    continue
                if record.value is None:
                    found[record.partition].pop(record.key, None)
                else:
                    found[record.partition][record.key] = record.value
        for number, rows in found.items():
            known[number].update(rows)
    return known


def _is_changelog(settings: Settings) -> Callable[[str], bool]:
    sets = (stages for size in range(1, len(ALL_STAGES) + 1) for stages in combinations(ALL_STAGES, size))
    live = {changelog(application_id(settings.topic_prefix, stages)) for stages in sets if "score" in stages}
    before, after = changelog(shadow_application_id(settings.topic_prefix, "/")).split("/")
    of_shadow = re.compile(re.escape(before) + SHADOW_NAME + re.escape(after))
    return lambda topic: topic in live or of_shadow.fullmatch(topic) is not None
