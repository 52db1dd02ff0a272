"""Tests that no API key reaches a log, an error message or a verdict."""

from __future__ import annotations

import json
import logging

import pytest
from tests.support.judge_errors import error_message
from tests.support.judged import KEY, judging, question
from tests.support.openai_server import Say, openai_server

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_key_in_an_error_of_the_server_reaches_no_error_message_log_or_output(
    status: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "another-provider's-key"
    monkeypatch.setenv("MISTRAL_API_KEY", other)
    caplog.set_level(logging.DEBUG)
    async with openai_server(default=lambda body: Say(status=status, echo=True)) as server:
        judge = judging(server.url).session()
        why = await error_message(judge.ask(question(f"{other} Bearer abcdefgh12345")))
    assert "what you sent was" in why
    for text in (why, caplog.text, *capfd.readouterr()):
        assert KEY not in text
        assert other not in text
        assert "abcdefgh12345" not in text
    assert len(why) < 500


async def test_a_key_in_the_reply_of_the_model_is_redacted() -> None:
    async with openai_server(Say(text=f"Your key is {KEY}.")) as server:
        reply = await judging(server.url).session().ask(question())
    assert reply.text == "Your key is [secret]."


async def test_a_part_of_a_key_in_an_encoded_reply_is_redacted_once_it_is_decoded() -> None:
    """A reply is JSON: its escapes are decoded after the reply was searched."""
    part = "".join(f"\\u{ord(each):04x}" for each in KEY[2:14])
    async with openai_server(Say(text=f'{{"why": "a key with {part}"}}')) as server:
        reply = await judging(server.url).session().ask(question())
    assert json.loads(reply.text) == {"why": "a key with [secret]"}


async def test_a_local_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with openai_server() as server:
        await judging(server.url, key=None).session().ask(question())
    assert server.keys == ["Bearer no-key"]
