"""Neither the address of a target nor a key is in what is shown of its answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from traceweir.streams.base.known_secrets import HIDDEN, KnownSecrets
from traceweir.streams.tools.export.answers import Later
from traceweir.streams.tools.export.http_post import HttpPost

PATH = "services/T0AB12/token-of-the-hook"
PARTS = ("token-of-the-hook", "T0AB12", "sig-of-the-hook", "hook-password")


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """Runs a server that answers each connection with these bytes, and yields the address of a hook on it."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://user:hook-password@127.0.0.1:{port}/{PATH}?sig=sig-of-the-hook"


@pytest.mark.parametrize(
    "answer",
    [
        b"this is no HTTP\r\n\r\n",
        b"HTTP/1.1 abc /" + PATH.encode() + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbroken /" + PATH.encode() + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: sig-of-the-hook\r\n\r\n",
        b"",
    ],
)
async def test_an_answer_that_is_no_http_shows_no_part_of_the_address(answer: bytes) -> None:
    async with answering(answer) as url, HttpPost(url, timeout_s=10.0) as post:
        found = await post.post(b"{}", {})
    assert isinstance(found, Later)
    assert found.reason.startswith("the target cannot be reached (")
    assert [part for part in PARTS if part in found.reason] == []


async def test_what_a_target_repeats_of_the_address_and_of_a_key_is_not_shown() -> None:
    url = f"https://user:hook-password@hooks.example/{PATH}?sig=sig-of-the-hook"
    post = HttpPost(url, timeout_s=10.0, secrets=["api-key-0123456789"])
    said = post.shown(f"  no route for /{PATH.replace('-', '%2d')}?sig=sig-of-the-hook\nkey ...ey-012345678, {url}")
    assert [part for part in (*PARTS, "012345678") if part in said] == []
    assert said.startswith("no route for [secret]")
    assert "\n" not in said


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/hook-with-a-token", "http://no host/hook-with-a-token"])
async def test_a_target_that_cannot_be_reached_is_named_without_its_path(url: str) -> None:
    async with HttpPost(url, timeout_s=10.0) as post:
        found = await post.post(b"{}", {})
    assert isinstance(found, Later)
    assert "hook-with-a-token" not in found.reason


def test_what_a_target_says_is_cut_before_it_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    hide = KnownSecrets.hide

    def spy(self: KnownSecrets, text: str) -> str:
        searched.append(len(text))
        return hide(self, text)

    monkeypatch.setattr(KnownSecrets, "hide", spy)
    said = HttpPost("https://hooks.example/token-of-the-hook", timeout_s=10.0).shown("\\u0061" * 10_000)
    assert said.startswith("\\u0061")
    assert max(searched) <= 20_000


@pytest.mark.parametrize("more", range(0, 60, 5))
def test_the_end_of_what_is_searched_shows_no_part_of_a_secret(more: int) -> None:
    """Many secrets become one mark, so that the end of the searched text would be shown."""
    secret = "the pass phrase of the hook"
    said = HttpPost("https://hooks.example/", timeout_s=10.0, secrets=[secret]).shown("x" * more + secret * 1_000)
    assert "phrase" not in said
    assert HIDDEN in said
