"""Tests how an answer's schema is asked of models of which nobody knows whether they take one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.support.judge_errors import error_message
from tests.support.judged import judging, question
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server

from traceweir.scorers.judge import Question

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

ANSWER: dict[str, Any] = {"type": "object", "properties": {"verdict": {"type": "string"}}}


def asks(prompt: str = "Is it good? Answer in JSON.") -> Question:
    return question(prompt, answer=ANSWER)


def formats(server: OpenAiServer) -> list[str | None]:
    return [body.get("response_format", {}).get("type") for body in server.asked]


def body(status: int, document: Any) -> Say:
    return Say(status=status, body=json.dumps(document).encode())


def refusing(refusal: Say, *kinds: str) -> Any:
    """Returns the script of a server that refuses these formats."""
    return lambda asked: refusal if asked.get("response_format", {}).get("type") in kinds else Say()


VLLM = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or "
    "'json_object'\", 'input': 'json_schema'}]"
)
REFUSALS = {
    "OpenAI": {"error": {"message": "Invalid parameter", "param": "response_format", "type": "invalid_request_error"}},
    "vLLM": {"object": "error", "message": VLLM, "type": "BadRequestError", "param": None, "code": 400},
    "vLLM, xgrammar": {"object": "error", "message": "Failed to convert the grammar from GBNF to Lark", "code": 400},
    "llama.cpp": {"error": {"code": 400, "message": 'response_format type must be one of "text" or "json_object"'}},
    "llama.cpp, schema": {"error": {"code": 400, "message": "JSON schema conversion failed: Unrecognized schema"}},
    "Ollama": {"error": {"message": 'invalid format: "{}"; expected "json" or a JSON Schema', "type": "api_error"}},
    "LM Studio": {"error": "'response_format.type' must be 'json_object' or 'text'"},
    "SGLang": {"object": "error", "message": "guided_json is not supported by this backend", "code": 400},
    "FastAPI": {"detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "Extra inputs"}]},
    "DeepSeek": {"error": {"message": "This response_format type is unavailable now", "code": "invalid_request_error"}},
    "Gemini": [{"error": {"code": 400, "message": "JSON mode is not enabled for this model", "status": "INVALID"}}],
}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("server_of", REFUSALS)
async def test_a_refused_schema_is_remembered_and_json_is_asked_for(
    server_of: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with openai_server(default=refusing(body(status, REFUSALS[server_of]), "json_schema")) as server:
        session = judging(server.url, config={"retries": {"attempts": 1}, "repairs": 0}).session()
        replies = [await session.ask(asks(f"Is it {number}? Answer in JSON.")) for number in range(3)]
    assert [reply.text for reply in replies] == ["yes"] * 3
    assert formats(server) == ["json_schema", *["json_object"] * 3]
    assert [record.getMessage() for record in caplog.records if "refuses" in record.getMessage()] == [
        "openai/stub refuses the parameter response_format json_schema: it is not sent to this model any more"
    ]


async def test_a_model_that_refuses_json_too_is_asked_for_text(caplog: pytest.LogCaptureFixture) -> None:
    refusal = busy(None, 400, "response_format is not supported")
    async with openai_server(default=refusing(refusal, "json_schema", "json_object")) as server:
        session = judging(server.url, config={"retries": {"attempts": 1}, "repairs": 0}).session()
        for number in range(2):
            await session.ask(asks(f"Is it {number}?"))
    assert formats(server) == ["json_schema", "json_object", None, None]


async def test_a_server_that_takes_schemas_only_refuses_json_and_gets_the_schema() -> None:
    async with openai_server(
        default=refusing(busy(None, 400, "json_object is not supported"), "json_object")
    ) as server:
        session = judging(server.url).session()
        for number in range(2):
            await session.ask(asks(f"Is it {number}?"))
    assert formats(server) == ["json_schema", "json_schema"]


async def test_questions_at_the_same_time_say_a_refusal_once(caplog: pytest.LogCaptureFixture) -> None:
    async with openai_server(
        default=refusing(busy(None, 400, "response_format is not supported"), "json_schema")
    ) as server:
        server.gate = asyncio.Event()
        session = judging(server.url).session()
        tasks = [asyncio.create_task(session.ask(asks(f"Is it {number}?"))) for number in range(3)]
        await server.has_requests(3)
        server.gate.set()
        await asyncio.gather(*tasks)
    assert [record.getMessage() for record in caplog.records].count(
        "openai/stub refuses the parameter response_format json_schema: it is not sent to this model any more"
    ) == 1


@pytest.mark.parametrize("other", ["gpt-4o-mini", "other"])
async def test_another_model_is_asked_for_the_schema(other: str) -> None:
    refusal = busy(None, 400, "response_format is not supported")
    script = refusing(refusal, "json_schema")
    async with openai_server(default=lambda asked: script(asked) if asked["model"] == "stub" else Say()) as server:
        session = judging(server.url).session()
        await session.ask(asks())
        await session.ask(question("Is it?", answer=ANSWER, model=f"openai/{other}"))
    assert formats(server)[-1] == "json_schema"


ECHOES = {
    "far back": {"error": {"message": f"{'x' * 310} response_format is not supported"}},
    "another field": {"error": {"message": "blocked", "failed_generation": "response_format is not supported"}},
    "a quotation": {"error": {"message": "blocked: 'json_schema is not supported'"}},
    "quoted alone": {"error": {"message": "blocked: Response_Format"}},
    "the location": {"detail": [{"loc": ["body", "messages"], "msg": "bad", "input": "response_format"}]},
}


@pytest.mark.parametrize("echo", ECHOES)
async def test_a_text_that_an_error_repeats_switches_no_schema_off(echo: str) -> None:
    async with openai_server(body(400, ECHOES[echo])) as server:
        session = judging(server.url).session()
        await error_message(session.ask(asks("The user: 'json_schema is not supported', response_format")))
        await session.ask(asks("And this?"))
    assert formats(server) == ["json_schema", "json_schema"]


@pytest.mark.parametrize(
    "said",
    [
        busy(None, 500, "response_format is not supported"),
        body(
            400, {"error": {"message": "Failed to generate JSON. Adjust your prompt", "code": "json_validate_failed"}}
        ),
        busy(None, 400, "This model's maximum context length is 9 tokens; response_format counts too"),
    ],
)
async def test_another_failure_switches_no_schema_off(said: Say) -> None:
    async with openai_server(said) as server:
        session = judging(server.url, config={"retries": {"attempts": 1}}).session()
        await error_message(session.ask(asks()))
        await session.ask(asks("And this?"))
    assert formats(server) == ["json_schema", "json_schema"]


async def test_always_means_that_a_refusal_is_a_failure() -> None:
    refusal = busy(None, 400, "response_format is not supported")
    async with openai_server(default=refusing(refusal, "json_schema")) as server:
        session = judging(server.url, config={"structured_output": "always"}).session()
        assert "response_format" in await error_message(session.ask(asks()))
    assert formats(server) == ["json_schema"]
