"""Refuses a consumer group that sends another topic.

Where an exporter stands, and what waits, is kept under the name of its group: of two topics with one name, each would
take what the other keeps for its own.
"""

from __future__ import annotations

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.worker.kafka.group_states import GroupReader


def check_group_use(settings: Settings, group: str, topic: str) -> None:
    """Checks that a group has offsets of no other topic that is exported; blocks.

    A group that was never used, and one whose offsets this user may not see, pass.

    Raises:
        ExportError: it has some.
        KafkaUnreachableError: no broker answered.
    """
    topics = settings.topics
    others = {topics.results, topics.alerts} - {topic}
    state = GroupReader(settings).look({group: others}).groups.get(group)
    if state is not None and state.committed:
        other = min(place.topic for place in state.committed)
        raise ExportError(
            f"the consumer group {group!r} sends the topic {other}, and two topics in one group lose records of each other: "
            f"name another --group for {topic}"
        )
