"""Reads the scores on the topic `results`: those that a filter selects, and of each result the score that counts."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from traceweir.schemas.score import GATE, Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.tools.results.selection import dimension_of
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

MAX_CORRECTED = 500_000
"""Maximum number of results of one partition with more than one score; they take about 150 bytes each."""
_METRICS_SEEN = 200
_METRIC_CHARACTERS = 200


class ResultsError(Exception):
    """The scores cannot be read; the message states the reason and the way out."""


class FoundScore(NamedTuple):
    """A score, with its place on the topic."""

    at_ms: int
    """When the score was written, in milliseconds since 1970."""
    partition: int
    offset: int
    score: Score
    value: bytes
    """The score as JSON, byte for byte as on the topic."""

    @property
    def key(self) -> str:
        """The key of the record."""
        return self.score.session_id

    @property
    def name(self) -> str:
        """The id of the result and its metric, for the log."""
        return f"{self.score.result_id} of metric {self.score.metric}"


@dataclass(frozen=True, slots=True)
class ScoreFilter:
    """A filter for scores. A field that is empty or None excludes none."""

    session_id: str | None = None
    metrics: frozenset[str] = frozenset()
    """Full names of metrics."""
    dimensions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By the name of a dimension or `labels.NAME`, the values of which a score must have one."""
    statuses: frozenset[str] = frozenset()
    """With FAILED, decisions of the gate are selected only if `metrics` names the gate: they measure nothing."""
    since_ms: int | None = None
    """Selects scores that were written at this time or later, in milliseconds since 1970."""
    until_ms: int | None = None
    """Selects scores that were written before this time, in milliseconds since 1970."""
    all_revisions: bool = False
    """Selects also scores that a later revision or attempt has replaced."""

    def matches(self, outline: Outline, at_ms: int) -> bool:
        """Returns whether the filter selects the score with this outline, which was written at `at_ms`."""
        return (
            (self.session_id is None or outline.session_id == self.session_id)
            and (not self.metrics or outline.metric in self.metrics)
            and all(dimension_of(outline, name) in values for name, values in self.dimensions.items())
            and (not self.statuses or outline.status in self.statuses)
            and (self.since_ms is None or at_ms >= self.since_ms)
            and (self.until_ms is None or at_ms < self.until_ms)
            and not (outline.metric == GATE and outline.status == "FAILED" and self.statuses and not self.metrics)
        )


class Outline(msgspec.Struct):
    """The fields by which scores are selected; reading them takes a tenth of the time of a Score."""

    result_id: str
    session_id: str
    metric: str
    status: str
    revision: int
    attempt: int = 0
    app_name: str | None = None
    agent_name: str | None = None
    agent_version: str | None = None
    environment: str | None = None
    model: str | None = None
    user_id: str | None = None
    judge: str | None = None
    labels: dict[str, str] | None = None


_read_outline = msgspec.json.Decoder(Outline).decode


class Results:
    """Reads the scores of a topic prefix, within an `async with` block.

    Args:
        settings: Where Kafka is, and the prefix of the topics.
        wanted: The filter.
        topic: The full name of another topic with scores; by default the topic `results`.

    Raises:
        KafkaUnreachableError: no broker answers.
        ResultsError: the topic is missing or wrong, or cannot be read.
    """

    def __init__(self, settings: Settings, wanted: ScoreFilter, topic: str | None = None) -> None:
        self.topic = settings.topics.results if topic is None else topic
        home = None
        if wanted.session_id is not None:
            home = {partition_of(_key(wanted.session_id), settings.partitions)}
        self._reader = BoundedReader(settings, self.topic, ResultsError, partitions=home)
        self._wanted = wanted
        self.foreign = 0
        """Number of records read that are not scores that this version can read."""
        self.metrics: set[str] = set()
        """Some metrics of the scores that were read, whatever the filter selects."""

    @property
    def is_empty(self) -> bool:
        """Whether the partitions that are read have no records at all."""
        return self._reader.begins == self._reader.ends

    async def __aenter__(self) -> Results:
        await self._reader.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.__aexit__(kind, error, trace)

    async def matching(self) -> AsyncIterator[FoundScore]:
        """Yields the selected scores up to the ends at the start: by partition, in the order of their offsets.

        Of the scores with the same result id in the range that is read, only those with the highest revision and
        attempt are selected. Each partition is therefore read twice, except with `all_revisions`.

        Raises:
            ResultsError: the topic cannot be read to its ends, or too many results have more than one score.
        """
        since = self._wanted.since_ms
        reader = self._reader
        begins = dict(reader.begins) if since is None else await reader.begins_since(since)
        for number, begin in begins.items():
            latest = {} if self._wanted.all_revisions else await self._latest_versions({number: begin})
            async for record in reader.records({number: begin}):
                found = self._found(record)
                if found is None:
                    continue
                if latest and _version(found.score) < latest.get(_identity(found.score), (0, 0)):
                    continue
                yield found

    async def times(self) -> tuple[int, int] | None:
        """Returns the times of the oldest and the newest record, whatever the filter selects; None without a record.

        See `BoundedReader.times`.

        Raises:
            ResultsError: the topic cannot be read.
        """
        return await self._reader.times()

    async def following(self, trouble: Callable[[str], None]) -> AsyncIterator[FoundScore]:
        """Yields the selected scores after those of `matching` as they are written, without end.

        A later revision or attempt of a result is yielded as well.

        Args:
            trouble: Receives a sentence when no broker answers, and another when a broker answers again.

        Raises:
            ResultsError: a broker refuses to return records.
        """
        async for record in self._reader.following(trouble):
            if (found := self._found(record)) is not None:
                yield found

    async def _latest_versions(self, begins: Mapping[int, int]) -> dict[bytes, tuple[int, int]]:
        """Returns the highest version of each result that has another version than the first."""
        latest: dict[bytes, tuple[int, int]] = {}
        async for record in self._reader.records(begins):
            outline = _outline(record)
            if outline is None or (version := _version(outline)) == (0, 0):
                continue
            if self._wanted.session_id not in (None, outline.session_id):
                continue
            try:
                Score.model_validate_json(record.value)
            except ValueError:
                # A forged record must not hide a score.
                continue
            name = _identity(outline)
            latest[name] = max(version, latest.get(name, version))
            if len(latest) > MAX_CORRECTED:
                raise ResultsError(
                    f"{self.topic}[{record.partition}] has more than {MAX_CORRECTED} results that were scored more than "
                    "once: read a shorter time (--since), one session (--session), or every revision (--all-revisions)"
                )
        return latest

    def _found(self, record: Any) -> FoundScore | None:
        outline = _outline(record)
        if outline is None:
            self.foreign += 1
            return None
        if len(self.metrics) < _METRICS_SEEN:
            self.metrics.add(outline.metric[:_METRIC_CHARACTERS])
        if not self._wanted.matches(outline, record.timestamp):
            return None
        try:
            score = Score.model_validate_json(record.value)
        except ValueError:
            self.foreign += 1
            return None
        return FoundScore(record.timestamp, record.partition, record.offset, score, record.value)


def _outline(record: Any) -> Outline | None:
    """Returns the outline of a score; None for a record that no worker writes."""
    try:
        return _read_outline(record.value or b"")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _version(score: Score | Outline) -> tuple[int, int]:
    return score.revision, score.attempt


def _identity(score: Score | Outline) -> bytes:
    """Returns 16 bytes for the result of a session; ids can have any length.

    The session is a part of it, so that a forged record of another session cannot hide a score.
    """
    name = f"{score.session_id}\x1f{score.result_id}"
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()


def _key(session_id: str) -> bytes:
    return session_id.encode(errors="surrogatepass")
