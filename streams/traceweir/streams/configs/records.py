"""Reads and makes the records of the topic `configs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.scorers.evaluation.metric import canonical, sha256
from traceweir.streams.configs.selectors import parsed_selector

HOME = 0
"""The partition of all records: one partition gives all configs one order."""
VERSION, DIGEST = "version:", "digest:"
Kind = Literal["current", "version", "digest"]


class UnreadableConfigError(ValueError):
    """A record of the topic is not a config that this version reads; the message says why."""

    def __init__(self, problem: str, *, newer: bool = False) -> None:
        super().__init__(problem)
        self.newer = newer
        """Whether a newer version of Traceweir wrote the record, so that the record itself can be right."""


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A record of the topic."""

    kind: Kind
    selector: str | None
    """The selector in the key; None for the kind `digest`."""
    pushed: PushedConfig | None
    """None: a tombstone."""


def config_id(document: JsonObject) -> str:
    """Returns the id of a config: equal for documents that differ in the order of keys and in spaces only."""
    return sha256(canonical(document))


def kind_of_key(key: str) -> tuple[Kind, str | None]:
    """Returns the kind of a record and the selector in its key.

    Raises:
        ValueError: the key has none of the forms.

    >>> kind_of_key("version:travel:7"), kind_of_key("*")
    (('version', 'travel'), ('current', '*'))
    """
    if key.startswith(DIGEST):
        return "digest", None
    if key.startswith(VERSION):
        name, _, number = key.removeprefix(VERSION).rpartition(":")
        if not (number.isascii() and number.isdecimal()):
            raise ValueError(f"{key!r:.200} has no number of a version at its end")
        parsed_selector(name)
        return "version", name
    parsed_selector(key)
    return "current", key


def read_record(partition: int, key: bytes | None, value: bytes | None) -> ConfigRecord:
    """Returns the content of a record, without a check of the config in it.

    Raises:
        UnreadableConfigError: the record is on a wrong partition, or its key or value cannot be read.
    """
    if partition != HOME:
        raise UnreadableConfigError(
            f"the record is on partition {partition}, but configs have one order only on partition {HOME}; write it with "
            "`traceweir config push`"
        )
    try:
        kind, selector = kind_of_key((key or b"").decode())
    except ValueError as error:
        raise UnreadableConfigError(f"the key of the record: {error}") from None
    if value is None:
        return ConfigRecord(kind, selector, None)
    try:
        pushed = PushedConfig.model_validate_json(value)
    except ValidationError as error:
        raise _unreadable(value, explain(error)) from None
    if pushed.envelope > ENVELOPE:
        raise _newer(pushed.envelope)
    if selector is not None and pushed.selector != selector:
        raise UnreadableConfigError(
            f"selector: {pushed.selector!r:.200} is not the selector of the record's key, {selector!r:.200}"
        )
    if kind == "current" and pushed.config is None:
        raise UnreadableConfigError("config: null is not allowed here; a tombstone withdraws a config")
    return ConfigRecord(kind, selector, pushed)


def records_of(pushed: PushedConfig) -> list[tuple[bytes, bytes | None]]:
    """Returns the records of a version as pairs of key and value, in the order in which they are written."""
    value = pushed.wire()
    version = f"{VERSION}{pushed.selector}:{pushed.version}".encode()
    if pushed.config is None:
        return [(pushed.selector.encode(), None), (version, value)]
    return [(f"{DIGEST}{pushed.digest}".encode(), value), (version, value), (pushed.selector.encode(), value)]


def _unreadable(value: bytes, problem: str) -> UnreadableConfigError:
    """Tells a newer envelope, whose other fields can have any form, from a record that is wrong."""
    from pydantic_core import from_json

    try:
        document = from_json(value)
    except ValueError:
        document = None
    version = document.get("envelope") if isinstance(document, dict) else None
    return _newer(version) if isinstance(version, int) and version > ENVELOPE else UnreadableConfigError(problem)


def _newer(version: int) -> UnreadableConfigError:
    return UnreadableConfigError(
        f"envelope: version {version} is newer than {ENVELOPE}, the newest that this Traceweir reads; update the workers "
        "before the command that pushes",
        newer=True,
    )
