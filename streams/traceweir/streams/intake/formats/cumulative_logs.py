"""Reads logs that have the whole history of a conversation in each line: the longest transcript replaces its beginnings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.base import AgentRecord
from traceweir.streams.intake.formats.chat_turns import ChatMessage
from traceweir.streams.intake.formats.session_records import MakeError, SessionRecords, encoded

_DIGEST_BYTES = 8
"""Length of the digest of a beginning; a transcript is compared with the few that have its session id."""
_KEPT = b'{"type":"model.called"'
"""Each line is a request of its own, so its tokens count although its messages are in the longer transcript too."""


class EarlierTranscript(NamedTuple):
    """What is remembered of the longest transcript of a session."""

    number: int
    """The number of its document."""
    start_time: datetime
    """The time of the session's first record. A longer transcript begins at this time too."""
    content: bytes
    """The digest of its records."""
    beginnings: bytes
    """The digests of the first message, of the first two messages, and so on."""
    event_ids: bytes
    """The ids of its events, 16 bytes each, without those that count beside a longer transcript."""


class CumulativeLogs:
    """Decides which records a transcript adds to those of earlier transcripts with its session id."""

    def __init__(self) -> None:
        self._longest: dict[str, EarlierTranscript] = {}

    def earlier(self, session_id: str) -> EarlierTranscript | None:
        """Returns the longest transcript of a session so far; None for a new session."""
        return self._longest.get(session_id)

    def records(
        self, session: SessionRecords, messages: Sequence[ChatMessage], number: int, error: MakeError
    ) -> list[AgentRecord]:
        """Returns the records that a transcript adds, with the end of its session.

        A transcript that continues the earlier one replaces the events that the longer transcript does not have. One
        that is its beginning adds the tokens of its model call alone. Two different transcripts in one session would be
        scored as one conversation, and the later trace would be read as a revision of the earlier trace.

        Args:
            session: The records of the transcript, without the end of the session.
            messages: Its messages.
            number: The number of its document.
            error: Makes the error of the document.

        Raises:
            InputError: neither of the two transcripts is the beginning of the other.
        """
        beginnings = _beginnings(messages, error)
        earlier = self._longest.get(session.session_id)
        is_longer = earlier is not None and _is_beginning(earlier.beginnings, beginnings)
        if earlier is not None and not is_longer and _is_beginning(beginnings, earlier.beginnings):
            return [record for record in session.records if record.value.startswith(_KEPT)]
        ended: JsonObject = {"type": "session.ended"}
        if earlier is not None and is_longer:
            own = _packed(session.event_ids)
            replaced: list[JsonValue] = [
                str(UUID(bytes=each)) for each in _pieces(earlier.event_ids) if each not in own
            ]
            ended["replaces"] = replaced
        session.event(ended)
        content = hashlib.sha256(b"\n".join(record.value for record in session.records)).digest()
        if earlier is not None and not is_longer:
            if earlier.content == content:
                return session.records
            raise error(
                f"has the session id {session.session_id[:80]!r} of document {earlier.number}, which is a different "
                "transcript; use a different session_id in each transcript, or remove the ids"
            )
        events = [record for record in session.records if record.kind == "event"]
        replaceable = [
            event_id
            for event_id, event in zip(session.event_ids, events, strict=True)
            if not event.value.startswith(_KEPT)
        ]
        self._longest[session.session_id] = EarlierTranscript(
            number, session.start_time, content, beginnings, b"".join(_packed(replaceable))
        )
        return session.records


def _beginnings(messages: Sequence[ChatMessage], error: MakeError) -> bytes:
    """Returns the digests of all beginnings of the messages, without their times."""
    running = hashlib.sha256()
    found = []
    for each in messages:
        calls: list[JsonValue] = [[call.id, call.name, call.arguments] for call in each.calls]
        unread: list[JsonValue] = [[kind, count] for kind, count in each.unread.items()]
        said: list[JsonValue] = [each.role, each.text, calls, each.call_id, each.tool, each.failed, unread]
        running.update(encoded(said, error, sorted_keys=True) + b"\n")
        found.append(running.digest()[:_DIGEST_BYTES])
    return b"".join(found)


def _is_beginning(shorter: bytes, longer: bytes) -> bool:
    return (
        len(shorter) < len(longer) and longer[len(shorter) - _DIGEST_BYTES : len(shorter)] == shorter[-_DIGEST_BYTES:]
    )


def _packed(event_ids: Sequence[str]) -> dict[bytes, None]:
    return dict.fromkeys(UUID(each).bytes for each in event_ids)


def _pieces(packed: bytes) -> list[bytes]:
    return [packed[place : place + 16] for place in range(0, len(packed), 16)]
