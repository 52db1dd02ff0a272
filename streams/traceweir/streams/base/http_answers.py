"""Reads the answers of HTTP servers that Traceweir does not know: at most their beginning."""

from __future__ import annotations

import aiohttp

MAX_ANSWER_BYTES = 65_536
"""Number of bytes of an answer that are read."""


async def beginning(content: aiohttp.StreamReader) -> bytes:
    """Returns the body of an answer, or its first `MAX_ANSWER_BYTES`."""
    parts = []
    size = 0
    while size < MAX_ANSWER_BYTES and (part := await content.read(MAX_ANSWER_BYTES - size)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)
