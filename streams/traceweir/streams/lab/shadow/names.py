"""Names what belongs to a shadow on a cluster and on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import CleanupPolicy, Topics, changelog, shadow_application_id, shadows_topic

_RESULTS_DAYS = 30
_CANDIDATES_DAYS = 7


@dataclass(frozen=True, slots=True)
class ShadowNames:
    """The names of a shadow: its application, its topics and its folder."""

    application: str
    """The application id, which is also the consumer group."""
    topics: Topics
    """The topics of its stages."""
    changelog: str
    shadows: str
    """The topic with the definitions of all shadows."""
    folder: Path
    """The local state of the processes that share this state directory."""

    @classmethod
    def of(cls, settings: Settings, name: str) -> ShadowNames:
        """Returns the names of the shadow `name`.

        Raises:
            ValueError: the name is not that of a shadow.
        """
        application = shadow_application_id(settings.topic_prefix, name)
        return cls(
            application,
            settings.topics.of_shadow(name),
            changelog(application),
            shadows_topic(settings.topic_prefix),
            settings.state_dir / application,
        )

    @property
    def written(self) -> frozenset[str]:
        """The topics that the stages write; all other outputs are dropped."""
        return frozenset((self.topics.results, self.topics.candidates))

    @property
    def own(self) -> Mapping[str, CleanupPolicy]:
        """The topics that exist for this shadow alone, with their cleanup policies."""
        return {self.topics.results: "delete", self.topics.candidates: "delete", self.changelog: "compact"}

    @property
    def retention_days(self) -> Mapping[str, int]:
        """The days for which a topic of the shadow keeps a record, by topic name."""
        return {self.topics.results: _RESULTS_DAYS, self.topics.candidates: _CANDIDATES_DAYS}
