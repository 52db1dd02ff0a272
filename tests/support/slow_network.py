"""Delays what goes through a TCP connection, as a network between two regions does, and limits its bytes a second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

CHUNK = 64 << 10


class SlowNetwork:
    """Passes connections on to a port of this machine, in a thread, within a `with` block.

    Args:
        target: The port to which connections are passed on.
        port: The port that listens; 0: any free one.
    """

    def __init__(self, target: int, port: int) -> None:
        self.delay_s = 0.0
        """How long each byte is under way in each direction, in seconds; connections that are open follow a change."""
        self.bytes_a_second = 0.0
        """Limit of what goes to the target, for each connection; 0: no limit."""
        self.bytes_a_second_back = 0.0
        """Limit of what comes from the target, for each connection; 0: no limit."""
        self.target = target
        """The port to which new connections are passed on."""
        self.port = port
        """The port that listens."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slow network", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()

    def __enter__(self) -> SlowNetwork:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _close(self) -> None:
        self._server.close()
        for connection in [*self._connections]:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._pass_on(reader, back, lambda: self.bytes_a_second))
                directions.create_task(self._pass_on(there, writer, lambda: self.bytes_a_second_back))
        except* (OSError, EOFError):
            pass
        except* asyncio.CancelledError:  # asyncio reports the error of a task that serves a connection
            pass
        finally:
            for each in (writer, back):
                each.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_a_second: Callable[[], float]
    ) -> None:
        """Writes each chunk after the delay; chunks follow each other without waiting for the delay of the former."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1024)

        async def write() -> None:
            while True:
                due, chunk = await under_way.get()
                if (wait := due - self._loop.time()) > 0:
                    await asyncio.sleep(wait)
                if not chunk:
                    raise EOFError
                writer.write(chunk)
                await writer.drain()
                if limit := bytes_a_second():
                    await asyncio.sleep(len(chunk) / limit)

        async def read() -> None:
            while True:
                chunk = b""
                with suppress(ConnectionError):
                    chunk = await reader.read(CHUNK)
                await under_way.put((self._loop.time() + self.delay_s, chunk))
                if not chunk:
                    return

        async with asyncio.TaskGroup() as both:
            both.create_task(write())
            both.create_task(read())
