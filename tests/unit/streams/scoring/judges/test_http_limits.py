"""Tests that a provider can neither redirect a question to another address nor send an answer without bound."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from tests.support.judge_errors import error_message
from tests.support.judged import KEY, judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.streams.scoring.judges.http_limits import MAX_ANSWER_BYTES

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """Runs a server that answers every request with the handler, and yields the address of its API."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def redirecting_server(status: int, target: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Runs a server that redirects every request to the target; the list receives the paths of the requests."""
    paths: list[str] = []

    async def redirect(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=status, headers={"Location": f"{target}/chat/completions"})

    async with serving(redirect) as url:
        yield url, paths


@asynccontextmanager
async def endless_server(declared_bytes: int | None) -> AsyncIterator[tuple[str, list[int]]]:
    """Runs a server whose answers have 200 MB; the list receives the size of each part that was sent."""
    sent: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = declared_bytes
        await response.prepare(request)
        try:
            for _ in range(200):
                await response.write(b" " * 1_000_000)
                sent.append(1_000_000)
        except (ConnectionError, asyncio.CancelledError):
            pass
        return response

    async with serving(answer) as url:
        yield url, sent


@pytest.mark.parametrize(
    ("status", "model"), [(301, "openai/stub"), (302, "openai/stub"), (307, "anthropic/stub"), (308, "openai/stub")]
)
async def test_a_redirect_is_not_followed_and_the_key_stays_here(status: int, model: str) -> None:
    async with openai_server() as other, redirecting_server(status, other.url) as (url, requests):
        judge = judging(url, config={"retries": {"attempts": 3, "initial_s": 0.001, "jitter_s": 0}}).session()
        message = await error_message(judge.ask(question(model=model)))
    assert f"redirects to 127.0.0.1 (HTTP {status})" in message
    assert "TRACEWEIR_JUDGE_API_BASE" in message
    assert KEY not in message
    assert (other.asked, other.keys) == ([], [])
    assert len(requests) == 1  # every other attempt would be redirected too


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("model", ["openai/stub", "anthropic/stub"])
async def test_an_answer_above_the_limit_is_refused_while_it_arrives(declared: bool, model: str) -> None:
    size = 200_000_000
    async with endless_server(size if declared else None) as (url, sent):
        message = await error_message(judging(url).session().ask(question(model=model)))
    assert f"more than {MAX_ANSWER_BYTES:,} bytes" in message
    # The sockets on both sides buffer some megabytes.
    assert sum(sent) < size / 4


async def test_an_answer_up_to_the_limit_is_read() -> None:
    text = "y" * (MAX_ANSWER_BYTES - 1_000)
    async with openai_server(Say(text=text)) as server:
        reply = await judging(server.url).session().ask(question())
    assert reply.text == text


async def test_a_compressed_answer_is_refused_because_its_size_is_unknown() -> None:
    body = gzip.compress(json.dumps({"choices": [{"message": {"content": "yes" * 10_000_000}}]}).encode())
    async with openai_server(Say(body=body, headers={"Content-Encoding": "gzip"})) as server:
        message = await error_message(judging(server.url).session().ask(question()))
    assert "compressed answer (gzip)" in message
