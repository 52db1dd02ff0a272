"""Reads which session a refused record belongs to, as far as that can be read, for the note in that session.

The session's home is the partition that can note it. A record that another partition has refused goes there as its dead
letter, through the topic `strays`, with a header more: what was read of the record. A dead letter can have less of it.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, get_args

import orjson
from pydantic_core import from_json

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.schemas.dead_letter import KEPT_BYTES, PREFIX, DeadLetter, Headers, Reason, is_place
from traceweir.schemas.events import TYPES
from traceweir.schemas.text import printable
from traceweir.streams.base.stages.base import Record
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.decoding.envelopes import opened

REFUSED_SESSION = PREFIX + "session"
"""Last header of a dead letter on its way to the home of its session: the session, and the note in JSON."""
_NOT_OF_ONE_RECORD = frozenset(("late", "missed", "unreadable_batch"))
"""Reasons without a note: a late record can have joined its session before, and the others are of no single record."""
_SENT = frozenset(get_args(Reason)) - _NOT_OF_ONE_RECORD
"""Reasons of the dead letters that are sent to the home of their session."""
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
_MAX_TIMESTAMP = 2**63 - 1

MAX_NOTES = 100
"""Most refused records of which a segment knows.

A producer that sends broken records only must not fill the segment, nor make an invocation of each of them.
"""
MAX_NOTE_BYTES = 2_000
"""Size of a note above which it leaves out the ids of the event and of its invocation, in bytes."""
_MAX_HEADER_BYTES = MAX_NOTE_BYTES + 6 * MAX_IDENTIFIER_CHARS + 100
"""Largest content of the header `REFUSED_SESSION`: JSON writes a character of the session's id in up to six bytes."""
_NOTE = b"\0note\0"
"""How the identity of each note of a refused record begins; those of other entries are digests."""


class RefusalNote(NamedTuple):
    """What a session is told of a refused record."""

    session_id: bytes
    identity: bytes
    """The same for the record after a crash, and for its replays that are refused again."""
    note: bytes
    """A `RefusedRecord` in JSON."""

    def header(self) -> tuple[str, bytes]:
        """Returns the header with which the dead letter of the record goes to the home of its session."""
        return REFUSED_SESSION, orjson.dumps({"session_id": self.session_id.decode(), **orjson.loads(self.note)})


class RefusedContent(Protocol):
    """What is read of a refused record."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


def refusal_of(refused: RefusedContent, where: str, reason: str, *, is_trace: bool) -> RefusalNote | None:
    """Returns what the session of a refused record is told; None if the record names no session or is no event.

    The session is the one that the value names before the place where it is broken, else that of the key. Of a record on
    which the stage has raised, only the key is read: what has raised on the value can raise again. A refused trace needs
    no note: scores of a trace that did not come do not exist.

    Args:
        refused: The record.
        where: Where the record was when it was refused first, as `place_text` writes it.
        reason: The reason of the dead letter.
        is_trace: Whether the record was sent as a trace.
    """
    if reason in _NOT_OF_ONE_RECORD:
        return None
    found = {} if reason == "poison" else _readable_event(refused.value or b"", refused.headers)
    session_id = _identifier(found.get("session_id")) or _of_key(refused.key)
    if session_id is None or (is_trace and _known_type(found) is None):
        return None
    return _refusal(found, session_id, where, reason)


def letter_in_stray(
    stray: Record, inputs: Collection[str], partition: int, partitions: int
) -> tuple[DeadLetter, RefusalNote] | None:
    """Returns the dead letter that another partition has sent to the home of its session; None for any other stray.

    The worker appends its header as the last, so that a header of a producer is none. Other programs can write to the topic,
    so that only what a worker writes is a dead letter.

    Args:
        stray: The record.
        inputs: The topics whose records are strays.
        partition: The partition on which it is.
        partitions: Number of partitions of the topic.

    Returns:
        The dead letter, and what its session is told.
    """
    name, content = stray.headers[-1] if stray.headers else ("", b"")
    # The header of another program can have no content.
    if name != REFUSED_SESSION or len(content or b"") > _MAX_HEADER_BYTES:
        return None
    try:
        found = orjson.loads(content or b"")
        letter = DeadLetter.read(stray.key, stray.value, stray.headers)
    except ValueError:
        return None
    if not _is_of_a_worker(letter, inputs):
        return None
    session_id = _identifier(found.get("session_id")) if isinstance(found, dict) else None
    if session_id is None or partition_of(session_id.encode(), partitions) != partition:
        return None
    return letter, _refusal(found, session_id, letter.refused_at, letter.reason)


def readable_session(value: bytes) -> str | None:
    """Returns the session that a broken event names; None if it cannot be read.

    >>> readable_session(b'{"type": "tool.called", "session_id": "s-1", "args": {"q": "cut o')
    's-1'
    """
    return _identifier(_readable_event(value).get("session_id"))


def place_of_letter(where: str) -> str:
    """Returns the text by which a session names the dead letter of a record that was refused at a place."""
    return f"the dead letter of {where}"


def refused_identity(where: str) -> bytes:
    """Returns the identity of the note of a record that was refused at a place."""
    return _NOTE + blake2b(b"r" + where.encode(), digest_size=16 - len(_NOTE)).digest()


def has_all_notes(identities: bytes | bytearray) -> bool:
    """Returns whether a segment with these identities, 16 bytes each, takes no further note of a refused record."""
    return identities.count(_NOTE) >= MAX_NOTES


def replayed_identity(where: str) -> bytes:
    """Returns the identity of the note that the record of this place has come back."""
    return blake2b(b"R" + where.encode(), digest_size=16).digest()


def _refusal(found: dict[str, Any], session_id: str, where: str, reason: str) -> RefusalNote:
    """Returns what a session is told of a record, of which these keys were found."""
    known_type = _known_type(found)
    note = {
        "place": place_of_letter(where),
        "reason": reason,
        "type": known_type,
        "event_id": _identifier(found.get("event_id")),
        "invocation_id": _invocation_of(found) if known_type is None or TYPES[known_type].of_invocation else None,
    }
    known = {name: text for name, text in note.items() if text is not None}
    raw = orjson.dumps(known)
    if len(raw) > MAX_NOTE_BYTES:
        raw = orjson.dumps({name: text for name, text in known.items() if not name.endswith("_id")})
    return RefusalNote(session_id.encode(), refused_identity(where), raw)


def _is_of_a_worker(letter: DeadLetter, inputs: Collection[str]) -> bool:
    """Returns whether an assemble stage can have written a dead letter that came through `strays`."""
    return (
        letter.reason in _SENT
        and letter.stage == "assemble"
        and letter.detail == printable(letter.detail)
        and letter.topic in inputs
        and 0 <= letter.partition <= _MAX_PARTITION
        and 0 <= letter.offset <= _MAX_OFFSET
        # Kafka gives -1 to a record without a time.
        and -1 <= (letter.timestamp or 0) <= _MAX_TIMESTAMP
        and is_place(letter.refused_at)
        and letter.group is None
        and len(letter.value or b"") <= KEPT_BYTES
    )


def _known_type(found: dict[str, Any]) -> str | None:
    kind = found.get("type")
    return kind if isinstance(kind, str) and kind in TYPES else None


def _readable_event(value: bytes, headers: Headers = ()) -> dict[str, Any]:
    """Returns the keys of an event, which can be in an envelope, as far as it can be read."""
    inner = opened(value, headers)
    return _readable(value if inner is None else inner.value)


def _invocation_of(found: dict[str, Any]) -> str | None:
    invocation = found.get("invocation")
    inside = invocation if isinstance(invocation, dict) else {}
    return _identifier(found.get("invocation_id")) or _identifier(
        inside.get("invocation_id", inside.get("invocationId"))
    )


def _readable(value: bytes) -> dict[str, Any]:
    """Returns the keys of a document as far as it can be read."""
    text = value[:KEPT_BYTES].decode(errors="replace")
    try:
        orjson.loads(text)
        end = len(text)
    except orjson.JSONDecodeError as error:
        end = error.pos
    while end:
        try:
            found = from_json(text[:end], allow_partial=True)
        except ValueError:
            # Nested too deeply, for example: what comes before that is shorter.
            end //= 2
        else:
            return found if isinstance(found, dict) else {}
    return {}


def _identifier(found: object) -> str | None:
    return found if isinstance(found, str) and 0 < len(found) <= MAX_IDENTIFIER_CHARS else None


def _of_key(key: bytes | None) -> str | None:
    try:
        return _identifier((key or b"").decode())
    except UnicodeDecodeError:
        return None
