"""Reads and decompresses the body of a request, within its limits."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Callable

from traceweir.streams.tools.endpoint.refusals import Reason, Refusal

_GZIP = 16 + zlib.MAX_WBITS
MAX_MEMBERS = 1_000
"""Maximum number of members of a body in gzip; an empty one has 20 bytes, and takes as long as 2 kB of content."""


async def read_body(chunks: AsyncIterable[bytes], *, gzip: bool, max_bytes: int, hold: Callable[[int], None]) -> bytes:
    """Returns the body, decompressed.

    Args:
        chunks: The body as it arrives.
        gzip: Whether the body is compressed with gzip.
        max_bytes: The largest body, as it arrives and decompressed. Decompression stops there.
        hold: Called with the number of bytes before they are kept; raises if there is no room.

    Raises:
        Refusal: the body is too large, or is not gzip, or there is no room for it.
    """
    inflate = _Inflate() if gzip else None
    parts: list[bytes] = []
    received = size = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > max_bytes:
            raise too_large(max_bytes)
        part = chunk if inflate is None else inflate.read(chunk, max_bytes - size + 1)
        size += len(part)
        if size > max_bytes:
            raise too_large(max_bytes, " after decompression" if gzip else "")
        hold(len(part))
        parts.append(part)
    if inflate is not None and not inflate.is_complete:
        raise Refusal(Reason.BAD_DATA, "the body is not complete gzip data; it was cut")
    return b"".join(parts)


def too_large(max_bytes: int, when: str = "") -> Refusal:
    """Returns the refusal of a body of more than `max_bytes`."""
    return Refusal(
        Reason.TOO_LARGE,
        f"the body has more than {max_bytes} bytes{when}; send smaller batches, or raise "
        "TRACEWEIR_OTLP_MAX_REQUEST_BYTES",
    )


class _Inflate:
    """Decompresses gzip data, which can consist of several members (RFC 1952, section 2.2)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._members = 1

    @property
    def is_complete(self) -> bool:
        """Whether the last member has ended."""
        return self._member.eof

    def read(self, chunk: bytes, limit: int) -> bytes:
        """Returns the next bytes, at most `limit`: then the body is too large, and the rest is dropped."""
        parts = []
        size = 0
        while chunk and size < limit:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
                self._members += 1
                if self._members > MAX_MEMBERS:
                    raise Refusal(
                        Reason.BAD_DATA,
                        f"the body has more than {MAX_MEMBERS} members of gzip; compress it as one, or send smaller batches",
                    )
            try:
                part = self._member.decompress(chunk, limit - size)
            except zlib.error as error:
                raise Refusal(Reason.BAD_DATA, f"the body is not gzip data ({error})") from None
            parts.append(part)
            size += len(part)
            chunk = self._member.unused_data
        return b"".join(parts)
