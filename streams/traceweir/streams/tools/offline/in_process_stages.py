"""Creates stages that run in this process, on one partition, and reads their outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from traceweir.schemas.dead_letter import DeadLetter, Headers
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output, Read, Stage
from traceweir.streams.base.topics import StageName, Topics
from traceweir.streams.pipeline.topology import Topology

_PREFIX = ""
TOPICS = Topics.of(_PREFIX)
"""The topics of the stages; nothing is written to them."""


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A record in the form that a stage expects."""

    offset: int
    key: bytes | None
    value: bytes
    timestamp: int = 0
    headers: Headers = ()


def one_partition(settings: Settings) -> Settings:
    """Returns the settings under which the stages run on one partition that has any number of open sessions."""
    return settings.model_copy(
        # The memory is bounded otherwise, and a session must not be divided because there are many others.
        update={"partitions": 1, "topic_prefix": _PREFIX, "partition_max_open_sessions": sys.maxsize}
    )


def new_stage(
    topology: Topology, name: StageName, read: Read = lambda key: None, changed: Callable[[], None] = lambda: None
) -> Stage:
    """Returns a stage without state. `read` returns the rows of its earlier cuts."""
    return topology.spec(name).new(0, read, changed)


def values(outputs: Iterable[Output], topic: str) -> Iterator[bytes]:
    """Yields the values of the outputs to a topic."""
    return (output.value or b"" for output in outputs if output.topic == topic)


def dead_letters_of(outputs: Iterable[Output]) -> Iterator[DeadLetter]:
    """Yields the dead letters among outputs."""
    found = (output for output in outputs if output.topic == TOPICS.dead_letters)
    return (DeadLetter.read(output.key, output.value, output.headers) for output in found)
