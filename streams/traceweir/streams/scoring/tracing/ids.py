"""Derives ids of traces and spans from what they are about."""

from __future__ import annotations

from hashlib import blake2b

Part = str | int
_TRACE_BYTES = 16
_SPAN_BYTES = 8


def trace_id_of(session_id: str, segment: int) -> int:
    """Returns the id of the trace of a segment of a session, from 1 to 2**128 - 1.

    >>> f"{trace_id_of('session-1', 0):032x}"
    '0409d6d94b9cc514fd88ce3de982eb87'
    """
    content = f"{segment} {session_id}".encode("utf-8", "surrogatepass")
    # 0 is no valid id.
    return int.from_bytes(blake2b(content, digest_size=_TRACE_BYTES).digest()) or 1


def span_id_of(session_id: str, segment: int, *parts: Part) -> int:
    """Returns the id of a span, from 1 to 2**64 - 1; `parts` tell it from the other spans of the trace."""
    digest = blake2b(digest_size=_SPAN_BYTES)
    for part in (session_id, segment, *parts):
        # The length keeps ("a", "bc") apart from ("ab", "c").
        content = str(part).encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8) + content)
    return int.from_bytes(digest.digest()) or 1
