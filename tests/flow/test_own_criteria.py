"""Criteria of one's own with each scale: a worker asks a judge over HTTP, and its scores have values and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import JsonValue, SecretStr
from tests.support.flow import TOPICS
from tests.support.openai_server import Say, openai_server

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.testing import Flow, event

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

MODEL: dict[str, JsonValue] = {"judge_model_options": {"judge_model": "openai/stub"}}
MOOD: JsonValue = {
    "lowest": 1,
    "lowest_means": "The user is angry.",
    "highest": 5,
    "highest_means": "The user is glad.",
}
TOPIC: JsonValue = {"categories": {"refund": 1, "exchange": 0.5, "other": 0}}
CRITERIA: dict[str, JsonValue] = {
    "polite": {"threshold": 1, "prompt": "Does it greet?\n\n{answer}", **MODEL},
    "mood": {"threshold": 3, "level": "session", "prompt": "How is the user?\n\n{dialogue}", "scale": MOOD, **MODEL},
    "topic": {"threshold": 0, "prompt": "What is it about?\n\n{question}", "scale": TOPIC, **MODEL},
}
QUESTIONS = {"i1": "Give me my money back!", "i2": "And the shoes?"}


def _answer(asked: dict[str, Any]) -> Say:
    schema = asked["response_format"]["json_schema"]["schema"]["properties"]
    text = asked["messages"][-1]["content"]
    topic = "refund" if QUESTIONS["i1"] in text else "exchange"
    given = {"result": "yes", "score": 2.5, "category": topic}
    own = {name: given[name] for name in schema if name != "rationale"}
    return Say(text=json.dumps({"rationale": "It says so in the text.", **own}))


async def test_a_worker_publishes_the_answers_of_each_scale() -> None:
    plan = read_plan({"criteria": CRITERIA})
    async with openai_server(default=_answer) as server:
        access = Access(server.url, SecretStr("key"))
        flow = Flow(plan, stages=("assemble", "score"), judging=lambda clock: Judging(plan.judge, access, clock))
        for turn, said in QUESTIONS.items():
            parts: JsonValue = {"parts": [{"text": said}]}
            answer: JsonValue = {"parts": [{"text": "Hello."}]}
            for document in (
                event("invocation.started", "s", invocation_id=turn, user_content=parts, event_id=f"{turn}a"),
                event("invocation.completed", "s", invocation_id=turn, final_response=answer, event_id=f"{turn}b"),
            ):
                flow.send(TOPICS.invocations, document)
        await flow.settle()
        flow.pass_time(flow.settings.idle_gap_s + 1)
        await flow.settle()
        await flow.finish_scoring()
        flow.checkpoint()
        scores = [each for each in flow.results() if each["level"] != "trace"]

    found = {
        (each["metric"], each["invocation_id"]): (each["value"], each["status"], each.get("category"))
        for each in scores
    }
    assert found == {
        ("polite", "i1"): (1.0, "PASSED", None),
        ("polite", "i2"): (1.0, "PASSED", None),
        ("polite", None): (1.0, "PASSED", None),
        ("mood", None): (2.5, "FAILED", None),
        ("topic", "i1"): (1.0, "PASSED", "refund"),
        ("topic", "i2"): (0.5, "PASSED", "exchange"),
        ("topic", None): (0.75, "PASSED", None),
    }
    [of_session] = [each for each in scores if (each["metric"], each["level"]) == ("topic", "session")]
    assert of_session["details"]["categories"] == {"refund": 1, "exchange": 1}
