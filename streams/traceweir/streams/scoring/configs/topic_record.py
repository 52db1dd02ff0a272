"""Parses a record of the topic `configs`, apart from what the topic says: a large record takes long, and can wait elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from traceweir.scorers.evaluation.metric import canonical, sha256
from traceweir.streams.base.stages.base import Record
from traceweir.streams.scoring.configs.records import (
    ConfigKey,
    ConfigRecord,
    UnreadableConfigError,
    read_key,
    read_value,
)


class TopicRecord(Record, Protocol):
    """A record of the topic, as aiokafka parses it."""

    @property
    def partition(self) -> int: ...


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that is not a config, or a config that is invalid."""

    record: TopicRecord
    detail: str
    """Why, in a sentence for a person."""


class ConfigDocument(NamedTuple):
    """A config in a record."""

    name: str
    """Its id."""
    json: bytes


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    """A record of the topic, parsed; whether the config in it can be used is not checked."""

    record: TopicRecord
    key: ConfigKey | None
    """What the key says; None if it says nothing."""
    found: ConfigRecord | None
    """The content; None if it cannot be read, or is about alerts."""
    document: ConfigDocument | None
    """The config; None if the record has none, or cannot be read."""
    problem: str | None
    """Why the record cannot be read."""
    is_newer: bool = False
    """Whether a newer version of Traceweir wrote the record, so that the record itself can be right."""

    @property
    def place(self) -> str:
        """The partition and the offset."""
        return f"{self.record.partition}/{self.record.offset}"


def parsed(record: TopicRecord) -> ParsedRecord:
    """Returns a parsed record; never raises, whatever is in it."""
    key = None
    try:
        key = read_key(record.partition, record.key)
        if key.kind == "alerts":
            return ParsedRecord(record, key, None, None, None)
        found = read_value(key, record.value)
        document = None
        if found.pushed is not None and found.pushed.config is not None:
            text = canonical(found.pushed.config)
            document = ConfigDocument(sha256(text), text.encode())
    except (ValueError, RecursionError) as error:
        newer = isinstance(error, UnreadableConfigError) and error.newer
        return ParsedRecord(record, key, None, None, str(error), newer)
    return ParsedRecord(record, key, found, document, None)
