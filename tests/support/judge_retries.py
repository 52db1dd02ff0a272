"""Builds flows in which a judge is unavailable at first and answers later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import SecretStr
from tests.support.flow import TOPICS, RereadFlow
from tests.support.judged import KEY, judged_plan
from tests.support.openai_server import OpenAiServer, Say, busy

from traceweir.schemas.config import GateConfig
from traceweir.scorers import Plan
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.testing import Flow, event, instant, trace

AFTER_S = 900
"""Seconds until a session whose judge was unavailable is scored again."""


class Provider:
    """A judge's server that replies with status 500 until `up` is set to True."""

    def __init__(self, server: OpenAiServer) -> None:
        self.server, self.up = server, False
        server.default = lambda body: Say(text="yes") if self.up else busy(None, 500)


def retry_plan(*, required: bool = False, **later: Any) -> Plan:
    plan = judged_plan(
        retries={"attempts": 1}, breaker={"failures": 1_000}, retry_later={"after_s": AFTER_S, "attempts": 3} | later
    )
    return replace(plan, gate=GateConfig(required=["asks"])) if required else plan


def retry_flow(provider: Provider, plan: Plan, **options: Any) -> RereadFlow:
    access = Access(provider.server.url, SecretStr(KEY))
    return RereadFlow(plan, stages=("score",), judging=lambda clock: Judging(plan.judge, access, clock), **options)


def session(name: str = "s", revision: int = 0, segment: int = 0, **changes: Any) -> dict[str, Any]:
    completed = event("invocation.completed", name, final_response={"parts": [{"text": "It ships."}]}, event_id="1")
    return {
        "session_id": name,
        "segment": segment,
        "revision": revision,
        "closed_because": "idle",
        "first_record_at": instant(0),
        "last_record_at": instant(1),
        "events": [completed],
        "traces": [trace(name, name)],
        **changes,
    }


def answer_event(number: int) -> dict[str, Any]:
    return event(
        "invocation.completed",
        f"s{number}",
        final_response={"parts": [{"text": f"Number {number}."}]},
        event_id="1",
    )


async def settle(flow: Flow) -> None:
    """Reads all records of the sessions topic, waits until no scoring runs, and commits a checkpoint."""
    lane = flow.lanes[0]
    while flow.logs[TOPICS.sessions, 0][lane.position[TOPICS.sessions] :]:
        await flow.take(TOPICS.sessions)
    await flow.finish_scoring()
    flow.checkpoint()


async def send(flow: Flow, *sessions: dict[str, Any]) -> None:
    for each in sessions:
        flow.send(TOPICS.sessions, each, each["session_id"].encode())
    await settle(flow)


async def advance(flow: Flow, seconds: float = AFTER_S) -> None:
    flow.pass_time(seconds)
    await settle(flow)


def published_attempts(flow: Flow, level: str = "session", metric: str = "asks") -> list[tuple[int, int, float | None]]:
    """Returns the revision, attempt and value of each published score, in order."""
    scores = [each for each in flow.results(metric) if each["level"] == level]
    return [(each["revision"], each["attempt"], each["value"]) for each in scores]
