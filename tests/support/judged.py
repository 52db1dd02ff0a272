"""Defines a scorer that asks a judge, and judges that send their requests to a test server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import SecretStr
from tests.support.scoring import NOW

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.schemas.score import Cost
from traceweir.scorers import Measurement, Metric, Plan, Scorer, Subject, read_plan
from traceweir.scorers.judge import Question
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging

KEY = "hunter2-hunter2-hunter2"
QUICK = {"initial_s": 0.001, "max_s": 5, "jitter_s": 0}
"""Retry settings with pauses so short that tests need not wait."""


class Asks(Scorer):
    """Scores a response 1 if the judge replies yes, otherwise 0; the value is the mean over `samples` replies."""

    judged: ClassVar[bool] = True
    model: str = "openai/stub"
    samples: int = 1

    async def score(self, subject: Subject) -> Measurement:
        assert subject.judge is not None
        asked = [
            Question(metric="asks", version="1", model=self.model, prompt=f"Is it good? {subject.response}", sample=n)
            for n in range(self.samples)
        ]
        replies = [await subject.judge.ask(question) for question in asked]
        costs = [reply.cost for reply in replies]
        cost = Cost(
            input_tokens=sum(cost.input_tokens for cost in costs),
            output_tokens=sum(cost.output_tokens for cost in costs),
            usd=sum(cost.usd for cost in costs),
            cached=all(cost.cached for cost in costs),
        )
        value = sum(reply.text == "yes" for reply in replies) / len(replies)
        return Measurement(value=value, rationale=f"the judge said {replies[-1].text}", cost=cost)


def judged_plan(samples: int = 1, **judge: Any) -> Plan:
    """Returns a plan whose only criterion is `Asks`, which no config can name."""
    plan = read_plan({"judge": judge_section(**judge)})
    return replace(
        plan, metrics=(Metric("asks", 0.5, Asks(samples=samples), f"asks {samples}"),), sampling={"asks": 1.0}
    )


def judge_section(**changes: Any) -> dict[str, Any]:
    return {"retries": QUICK, "max_output_tokens": 100, **changes}


def question(prompt: str = "Is it good?", **changes: Any) -> Question:
    return Question(**{"metric": "m", "version": "1", "model": "openai/stub", "prompt": prompt, **changes})


class Clock:
    """A clock that a test moves forward with `go`."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def go(self, **by: float) -> None:
        self.now += timedelta(**by)


class Pauses:
    """A replacement for `asyncio.sleep` that takes no time and records the requested seconds."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def judging(
    url: str, *, key: str | None = KEY, clock: Clock | None = None, config: Any = None, **options: Any
) -> Judging:
    """Returns a judge service that sends its requests to the server at this URL."""
    access = Access(url, SecretStr(key) if key else None)
    return Judging(JudgeConfig.model_validate(judge_section(**(config or {}))), access, clock or Clock(), **options)
