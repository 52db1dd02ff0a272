"""Defines Application: what distinguishes the workers of one application from others on the same cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Record, StageSpec
from traceweir.streams.base.topics import StageName, Topics, application_id


@dataclass(frozen=True, slots=True)
class Application:
    """The name and the topics of an application, and the part of the records that it works on."""

    id: str
    """The consumer group, and the stem of the changelog's name, of the transactional ids and of the state folder."""
    topics: Topics
    """The topics that its stages read and write."""
    first_offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition, the offset before which no record is read."""
    selects: Callable[[Record], bool] = lambda record: True
    """Returns whether a session is scored."""
    fitted: Callable[[StageSpec], StageSpec] = lambda spec: spec
    """Changes the stages."""
    follows_configs: bool = True
    """Whether configs of the topic `configs` take effect; otherwise the plan of the start scores every session."""

    @classmethod
    def live(cls, settings: Settings, stages: Collection[StageName]) -> Application:
        """Returns the application that runs these stages on a deployment's own topics.

        Raises:
            ValueError: `stages` is empty or names one that does not exist.
        """
        return cls(application_id(settings.topic_prefix, stages), settings.topics)
