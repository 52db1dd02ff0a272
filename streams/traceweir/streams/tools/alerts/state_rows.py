"""Defines the rows of the topic `alerts-state`: what a process must know that takes over the watch.

The keys are `head`; `stream/RULE/NUMBER` with the detector of each stream; `open/NUMBER` with scores whose minute is not
over, and which are not read again; and `seen/NUMBER` with the digests of sessions that have counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule

FORMAT = 7
"""The form of all rows. A process with another form does not use them."""
_HEAD = b"head"
_STREAM = b"stream/"
_OPEN = b"open/"
_SEEN = b"seen/"


class StateFormatError(ValueError):
    """Another version of Traceweir has written the state; the message states the way out."""


def unreadable_state(why: str) -> str:
    """Returns the message about a state that this version does not read."""
    return (
        f"the state of the alerts {why}: start the version that wrote it; or delete the topic alerts-state, run `traceweir "
        "topics create`, and all streams are learnt again from the topic of results; raised alerts are resolved as "
        "`state_lost`, and raised again if they are found again"
    )


class LogPlace(msgspec.Struct, frozen=True):
    """From where the topics of a state are read."""

    results: dict[int, int] = {}
    """The offset of the next record of `results`, by partition; in a row, that from which it must be read again."""
    results_id: str | None = None
    """The id of that topic; None from a broker without ids."""
    configs: int = 0
    """The offset of the next record of `configs`."""


class Head(msgspec.Struct, frozen=True):
    """What is not about a single stream."""

    place: LogPlace
    read: dict[int, int]
    """The offset of the next record of `results` that was not read, by partition."""
    pushed: dict[str, str]
    """The pushed rules as JSON, by id."""
    times: dict[int, int]
    """The latest minute that was read, by partition, as `OpenMinutes` writes it."""
    closed: int | None
    """The last minute that is over."""
    unused: list[int]
    """The minutes that are not over in which no rule uses a score."""
    far: list[int]
    """The minutes far ahead, of which the rows have all scores."""
    format: int = FORMAT

    def row(self) -> tuple[bytes, bytes]:
        """Returns the row."""
        return _HEAD, msgspec.msgpack.encode(self)


@dataclass(slots=True)
class StateRows:
    """The rows of a state, by kind."""

    head: Head | None = None
    streams: list[tuple[str, bytes]] = field(default_factory=list)
    """The id of the rule and the state of each stream, in the order of their numbers."""
    open: dict[int, bytes] = field(default_factory=dict)
    seen: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Mapping[bytes, bytes]) -> StateRows:
        """Returns the rows by kind.

        Raises:
            StateFormatError: another version of Traceweir has written them.
        """
        found = cls()
        if _HEAD not in rows:
            return found
        found.head = head_of(rows[_HEAD])
        streams: dict[tuple[str, int], bytes] = {}
        for key, row in rows.items():
            kind, _, rest = key.partition(b"/")
            if (rule := rule_of_stream(key)) is not None:
                streams[rule, int(rest.rpartition(b"/")[2])] = row
            elif kind == b"open":
                found.open[int(rest)] = row
            elif kind == b"seen":
                found.seen[int(rest)] = row
        found.streams = [(rule, row) for (rule, _), row in sorted(streams.items())]
        return found


class _Format(msgspec.Struct):
    format: int


_read_format = msgspec.msgpack.Decoder(_Format).decode
_read_head = msgspec.msgpack.Decoder(Head).decode


def head_of(row: bytes) -> Head:
    """Returns what the row of the head says.

    Raises:
        StateFormatError: another version of Traceweir has written the state.
        msgspec.MsgspecError: the row has another form.
    """
    written = _read_format(row).format
    if written != FORMAT:
        raise StateFormatError(
            unreadable_state(f"has the format {written}, and this version of Traceweir reads {FORMAT}")
        )
    return _read_head(row)


def watched_rules(pushed: Mapping[str, str]) -> dict[str, AlertRule]:
    """Returns the rules that are watched by id: the pushed ones, or else the default rule.

    Args:
        pushed: The pushed rules as JSON, by id.
    """
    rules = {name: AlertRule.model_validate_json(text) for name, text in sorted(pushed.items())}
    return rules or {DEFAULT_ALERT_RULE.id: DEFAULT_ALERT_RULE}


def is_head(key: bytes) -> bool:
    """Returns whether a key is that of the head."""
    return key == _HEAD


def rule_of_stream(key: bytes) -> str | None:
    """Returns the id of the rule of a stream's row; None for another row.

    >>> rule_of_stream(b"stream/r/1/2"), rule_of_stream(b"seen/2")
    ('r/1', None)
    """
    return key.removeprefix(_STREAM).rpartition(b"/")[0].decode() if key.startswith(_STREAM) else None


def stream_key(rule: str, number: int) -> bytes:
    """Returns the key of a stream's row.

    >>> stream_key("r/1", 2)
    b'stream/r/1/2'
    """
    return _STREAM + f"{rule}/{number}".encode()


def open_key(number: int) -> bytes:
    """Returns the key of a row of scores."""
    return _OPEN + str(number).encode()


def seen_key(number: int) -> bytes:
    """Returns the key of a row of digests."""
    return _SEEN + str(number).encode()
