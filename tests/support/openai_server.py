"""Runs a real HTTP server with OpenAI's chat completions API and configurable faults."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True, kw_only=True)
class Say:
    """One reply of the server."""

    text: str | None = "yes"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """The body that the server sends in place of a completion."""
    usage: tuple[int, int] | None = (10, 2)
    """Number of tokens of the prompt and of the answer."""
    after_s: float = 0.0
    drip_s: float | None = None
    """Seconds between the pieces of the body."""
    hang_up: bool = False
    """Whether the server cuts the connection in the middle of the body."""
    echo: bool = False
    """Whether the server replies with an error whose body repeats the request's headers."""
    choices: int = 1


_JSON = {"Content-Type": "application/json"}


def busy(after: str | None = "0", status: int = 429, message: str = "slow down") -> Say:
    """Returns an error of the server, with a Retry-After header if `after` is given."""
    headers = {} if after is None else {"Retry-After": after}
    return Say(status=status, headers=headers, body=json.dumps({"error": {"message": message}}).encode())


Script = Callable[[dict[str, Any]], Say]


class OpenAiServer:
    """Records the requests, and replies with the script's replies in order, then with the result of `default`."""

    def __init__(self, script: Iterable[Say] = (), default: Script | None = None) -> None:
        self.script = deque(script)
        self.default = default or (lambda body: Say())
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.at_once = 0
        """The largest number of concurrent requests."""
        self._here = 0
        self.url = ""
        self.was_asked = asyncio.Event()
        self.gate: asyncio.Event | None = None
        """If given, the server answers no request until this event is set."""

    @property
    def prompts(self) -> list[str]:
        """The prompts of the requests, as text."""
        return [body["messages"][-1]["content"] for body in self.asked]

    async def has_requests(self, count: int) -> None:
        """Waits until the server has received at least this many requests in total."""
        while len(self.asked) < count:
            self.was_asked.clear()
            await self.was_asked.wait()

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.was_asked.set()
        self.headers.append(request.headers)
        self.keys.append(request.headers.get("Authorization", ""))
        say = self.script.popleft() if self.script else self.default(body)
        self._here += 1
        self.at_once = max(self.at_once, self._here)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if say.after_s:
                await asyncio.sleep(say.after_s)
            return await self._send(request, body, say)
        finally:
            self._here -= 1

    async def _send(self, request: web.Request, asked: dict[str, Any], say: Say) -> web.StreamResponse:
        if say.echo:
            heard = {"headers": dict(request.headers), "body": asked}
            text = json.dumps({"error": {"message": f"what you sent was {json.dumps(heard)}"}})
            return web.Response(status=say.status, text=text, content_type="application/json")
        raw = say.body if say.body is not None else json.dumps(_completion(asked, say)).encode()
        if say.drip_s is None and not say.hang_up:
            return web.Response(status=say.status, body=raw, headers={**_JSON, **say.headers})
        response = web.StreamResponse(status=say.status, headers={**_JSON, **say.headers})
        response.content_length = len(raw)
        await response.prepare(request)
        if say.hang_up:
            await response.write(raw[: len(raw) // 2])
            if request.transport is not None:
                request.transport.abort()
            return response
        for at in range(len(raw)):
            await response.write(raw[at : at + 1])
            await asyncio.sleep(say.drip_s or 0)
        return response


@asynccontextmanager
async def openai_server(*script: Say, default: Script | None = None) -> AsyncIterator[OpenAiServer]:
    """Runs a server on a free loopback port within a `with` block."""
    server = OpenAiServer(script, default)
    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", server.complete)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


@contextmanager
def openai_server_apart(*script: Say, default: Script | None = None) -> Iterator[OpenAiServer]:
    """Runs the server in its own thread, for tests without an event loop or with a blocked event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    context = openai_server(*script, default=default)
    try:
        server = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(20)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


@contextmanager
def refusing_address() -> Iterator[str]:
    """Yields the address of a port that refuses connections, because its socket does not listen."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def _completion(asked: dict[str, Any], say: Say) -> dict[str, Any]:
    message = {"role": "assistant", "content": say.text}
    choices = [{"index": number, "finish_reason": "stop", "message": message} for number in range(say.choices)]
    completion: dict[str, Any] = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": asked["model"],
        "choices": choices,
    }
    if say.usage is not None:
        prompt, answer = say.usage
        completion["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
        }
    return completion
