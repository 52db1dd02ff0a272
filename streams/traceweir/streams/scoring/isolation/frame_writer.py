"""Writes frames to a socket in few system calls: each one wakes the other process, which costs both CPU."""

from __future__ import annotations

import asyncio
from time import monotonic

from traceweir.streams.scoring.isolation.protocol import Frame, packed

TOGETHER_S = 0.003
"""Seconds after a write in which further frames wait for each other; a session with cheap metrics takes a tenth of it."""
MOST_TOGETHER = 16
"""Number of frames at which the writer waits no longer. Answers that wait are lost if their process dies, and nobody learns
that their sessions were scored."""


class FrameWriter:
    """Writes frames in their order.

    A frame is written at once if the last write was at least `TOGETHER_S` ago. Otherwise it waits for other frames: until
    all that the event loop has to do now is done, until `MOST_TOGETHER` frames wait, or until a frame that comes at least
    `TOGETHER_S` after the last write. Frames for a closed connection are discarded.

    Args:
        transport: The connection; it belongs to the running event loop.
    """

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._waiting: list[bytes] = []
        self._written_at = 0.0

    def write(self, frame: Frame) -> None:
        """Writes a frame, at once or with the frames after it."""
        self._waiting.append(packed(frame))
        if len(self._waiting) == MOST_TOGETHER or monotonic() - self._written_at >= TOGETHER_S:
            self._flush()
        elif len(self._waiting) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        # Otherwise a later frame was written at once, with the frames before it.
        if self._waiting:
            together = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
            self._waiting.clear()
            # The owner of a closed connection learns of its end, and tells those who wait for an answer.
            if not self._transport.is_closing():
                self._transport.write(together)
            self._written_at = monotonic()
