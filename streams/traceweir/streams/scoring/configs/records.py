"""Reads and makes the records of the topic `configs`."""

from __future__ import annotations

import re
from datetime import datetime
from importlib.metadata import version as installed_version
from typing import Literal, NamedTuple

from pydantic import ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.scorers.evaluation.metric import canonical, sha256
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.configs.selectors import ANY, parsed_selector

HOME = 0
"""The partition of all records: one partition gives all configs one order."""
VERSION = "version:"
DIGEST = "digest:"
ALERTS = "alerts:"
"""What the keys of records begin with that are about alerts (`alert_records`) and no configs."""
UNPUSHED = 0
"""The version in a record of the kind `digest` that a worker wrote."""
Kind = Literal["current", "version", "digest", "alerts"]
_MAX_DIGITS = 18
FOREIGN_FROM = 10 ** (_MAX_DIGITS - 1)
"""Versions are counted one by one. Such a number is of another program, and the numbers after it would be too long."""
_NUMBER = re.compile(rf"[1-9][0-9]{{0,{_MAX_DIGITS - 1}}}")
"""One form of each number, so that no two keys mean one version; and no number that Python refuses to read."""


class UnreadableConfigError(ValueError):
    """A record of the topic is not a config that this version reads; the message says why."""

    def __init__(self, problem: str, *, newer: bool = False) -> None:
        super().__init__(problem)
        self.newer = newer
        """Whether a newer version of Traceweir wrote the record, so that the record itself can be right."""


class ConfigKey(NamedTuple):
    """What the key of a record says."""

    kind: Kind
    selector: str | None = None
    """None for the kinds `digest` and `alerts`."""
    version: int | None = None
    """The number of the version; None for the other kinds."""
    digest: str | None = None
    """The digest; None for the other kinds."""


class ConfigRecord(NamedTuple):
    """A record of the topic."""

    key: ConfigKey
    pushed: PushedConfig | None
    """None: a tombstone."""


def config_id(document: JsonObject) -> str:
    """Returns the id of a config: equal for documents that differ in the order of keys and in spaces only."""
    return sha256(canonical(document))


def parsed_key(text: str) -> ConfigKey:
    """Returns what the key of a record says.

    Raises:
        ValueError: the key has none of the forms.

    >>> parsed_key("version:travel:7")
    ConfigKey(kind='version', selector='travel', version=7, digest=None)
    >>> parsed_key("*").kind, parsed_key("digest:3f2a91").digest
    ('current', '3f2a91')
    """
    if text.startswith(ALERTS):
        return ConfigKey("alerts")
    if text.startswith(DIGEST):
        return ConfigKey("digest", digest=text.removeprefix(DIGEST))
    if text.startswith(VERSION):
        name, _, number = text.removeprefix(VERSION).rpartition(":")
        if not _NUMBER.fullmatch(number):
            raise ValueError(
                f"{text!r:.200} has no number of a version at its end, which begins with 1 to 9 and has {_MAX_DIGITS} digits "
                "at most"
            )
        parsed_selector(name)
        return ConfigKey("version", name, int(number))
    parsed_selector(text)
    return ConfigKey("current", text)


def read_key(partition: int, key: bytes | None) -> ConfigKey:
    """Returns what the key of a record says.

    Raises:
        UnreadableConfigError: the record is on a wrong partition, or its key has none of the forms.
    """
    if partition != HOME:
        raise UnreadableConfigError(
            f"the record is on partition {partition}, but configs have one order only on partition {HOME}; write it with "
            "`traceweir config push`"
        )
    try:
        return parsed_key((key or b"").decode())
    except ValueError as error:
        raise UnreadableConfigError(f"the key of the record: {error}") from None


def read_value(key: ConfigKey, value: bytes | None) -> ConfigRecord:
    """Returns the content of a record, without a check of the config in it.

    Raises:
        UnreadableConfigError: the value cannot be read, or says something else than the key.
    """
    if value is None:
        return ConfigRecord(key, None)
    try:
        pushed = PushedConfig.model_validate_json(value)
    except ValidationError as error:
        raise _unreadable(value, explain(error)) from None
    if pushed.envelope > ENVELOPE:
        raise _newer(pushed.envelope)
    if key.selector is not None and pushed.selector != key.selector:
        raise UnreadableConfigError(
            f"selector: {pushed.selector!r:.200} is not the selector of the record's key, {key.selector!r:.200}"
        )
    # Otherwise a record of another program would replace another version or another digest than its key names.
    if key.version is not None and pushed.version != key.version:
        raise UnreadableConfigError(
            f"version: {pushed.version!s:.40} is not the number in the record's key, {key.version}"
        )
    if key.digest is not None and pushed.digest != key.digest:
        raise UnreadableConfigError(
            f"digest: {pushed.digest!r:.200} is not the digest in the record's key, {key.digest!r:.200}"
        )
    if key.kind == "current" and pushed.version == UNPUSHED:
        raise UnreadableConfigError(f"version: {UNPUSHED} is not allowed here; versions count from 1")
    if pushed.config is None and (key.kind == "current" or (key.kind == "digest" and pushed.version != UNPUSHED)):
        raise UnreadableConfigError("config: null is not allowed here; a tombstone withdraws a config")
    return ConfigRecord(key, pushed)


def records_of(pushed: PushedConfig) -> list[tuple[bytes, bytes | None]]:
    """Returns the records of a version as pairs of key and value, in the order in which they are written.

    The config of a challenger is written for its digest too, so that it can be read when it is no longer in effect.

    Raises:
        ConfigError: the config has a challenger, and cannot be used.
    """
    value = pushed.wire()
    version = f"{VERSION}{pushed.selector}:{pushed.version}".encode()
    if pushed.config is None:
        return [(pushed.selector.encode(), None), (version, value)]
    records: list[tuple[bytes, bytes | None]] = []
    if pushed.config.get("challenger") is not None and (found := read_plan(pushed.config).challenger) is not None:
        comment = f"challenger {found.name}"
        own = pushed.model_copy(update={"digest": found.plan.digest, "config": found.document, "comment": comment})
        records.append((f"{DIGEST}{found.plan.digest}".encode(), own.wire()))
    records.append((f"{DIGEST}{pushed.digest}".encode(), value))
    return [*records, (version, value), (pushed.selector.encode(), value)]


def digest_record(plan: Plan, written_at: datetime) -> tuple[bytes, bytes]:
    """Returns the record, as key and value, by which a worker keeps the config of a plan readable.

    Raises:
        ValueError: the config cannot be a record, or changes when it is written and read again.
        RecursionError: the config is nested too deeply.
    """
    written = PushedConfig(
        envelope=ENVELOPE,
        selector=ANY,
        version=UNPUSHED,
        digest=plan.digest,
        config=plan.document,
        pushed_at=written_at,
        traceweir=installed_version("traceweir"),
    )
    value = written.wire()
    if PushedConfig.model_validate_json(value).config != plan.document:
        raise ValueError("the document changes when it is written and read again")
    return f"{DIGEST}{plan.digest}".encode(), value


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
