"""Names what an exporter reads: the scores of the topic `results`, or the alerts of the topic `alerts`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from traceweir.schemas.alert import Alert
from traceweir.schemas.score import Score
from traceweir.streams.base.topics import Topics
from traceweir.streams.tools.results.reader import FoundScore


class FoundRecord(Protocol):
    """A record that an exporter sends, with its place on its topic."""

    @property
    def at_ms(self) -> int:
        """When it was written, in milliseconds since 1970."""
        ...

    @property
    def partition(self) -> int:
        """Its partition."""
        ...

    @property
    def offset(self) -> int:
        """Its offset."""
        ...

    @property
    def value(self) -> bytes:
        """Its JSON, byte for byte as on the topic."""
        ...

    @property
    def key(self) -> str:
        """Its key: records with one key are sent in their order."""
        ...

    @property
    def name(self) -> str:
        """What tells it from others with its key, for the log."""
        ...


class FoundAlert(NamedTuple):
    """An alert, with its place on the topic."""

    at_ms: int
    partition: int
    offset: int
    alert: Alert
    value: bytes
    """The alert as JSON, byte for byte as on the topic."""

    @property
    def key(self) -> str:
        """The id of the alert: it is raised before it is resolved."""
        return self.alert.alert_id

    @property
    def name(self) -> str:
        """The id and the state of the alert."""
        return f"{self.alert.alert_id}, {self.alert.state},"


Found = TypeVar("Found", bound=FoundRecord)
Sent = TypeVar("Sent", bound=FoundRecord, contravariant=True)
"""What a target takes."""


class ExportSource(NamedTuple, Generic[Found]):
    """A topic whose records an exporter sends."""

    topic: str
    what: str
    """What a record is, for the log."""
    key_field: str
    """The field of the JSON that is the key."""
    read: Callable[[int, int, int, bytes], Found]
    """Makes the record of timestamp in milliseconds, partition, offset and value; raises ValueError if it is none."""


def scores_of(topics: Topics) -> ExportSource[FoundScore]:
    """Returns the scores and decisions of the gate."""
    return ExportSource(topics.results, "score", "session_id", _score)


def alerts_of(topics: Topics) -> ExportSource[FoundAlert]:
    """Returns the alerts."""
    return ExportSource(topics.alerts, "alert", "alert_id", _alert)


def _score(at_ms: int, partition: int, offset: int, value: bytes) -> FoundScore:
    return FoundScore(at_ms, partition, offset, Score.model_validate_json(value), value)


def _alert(at_ms: int, partition: int, offset: int, value: bytes) -> FoundAlert:
    return FoundAlert(at_ms, partition, offset, Alert.model_validate_json(value), value)
