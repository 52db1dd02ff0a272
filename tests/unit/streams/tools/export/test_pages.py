"""The pages of an exporter: ready with its partitions, a broker that answers and a target that takes what it is sent."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from tests.support.metrics import samples
from tests.support.scoring import NOW

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import Topics
from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.answers import Later
from traceweir.streams.tools.export.pages import exporter_health
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.tools.export.run import ReportingTarget, run_export
from traceweir.streams.tools.export.source import scores_of
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.worker.kafka.silence import LastAnswer
from traceweir.streams.worker.runtime.health import PortTakenError, bind


@dataclass
class Exporter:
    """A relay and its target, as far as their pages tell of them."""

    readiness: Readiness
    url: str
    counts: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    waiting_in_memory: int = 0
    next_attempt: datetime | None = None
    acceptance: Acceptance = field(default_factory=Acceptance)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    s: list[float] = field(default_factory=lambda: [0.0])
    """The clock."""

    async def get(self, path: str) -> tuple[int, Any]:
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
            return answer.status, await (answer.json() if path != "/metrics" else answer.read())


@pytest.fixture
async def exporter() -> AsyncIterator[Exporter]:
    taken, s = bind("127.0.0.1", 0), [0.0]
    readiness = Readiness(LastAnswer(lambda: s[0]), lambda: s[0])
    found = Exporter(readiness, f"http://127.0.0.1:{taken.getsockname()[1]}", s=s)
    readiness.last_answer.note(answered=True)
    readiness.reach_ready({3, 1})
    async with exporter_health(taken, "hook", found, Counted(found), found.stop):
        yield found


@dataclass
class Counted:
    """The target of an exporter."""

    exporter: Exporter
    counts: Counter[str] = field(default_factory=lambda: Counter(sent=5))

    @property
    def acceptance(self) -> Acceptance:
        return self.exporter.acceptance


async def test_an_exporter_with_its_partitions_a_broker_and_a_target_is_ready(exporter: Exporter) -> None:
    exporter.waiting = 2
    assert await exporter.get("/readyz") == (
        200,
        {"ready": True, "phase": "ready", "partitions": [1, 3], "waiting": 2},
    )
    assert await exporter.get("/healthz") == (200, {"healthy": True, "problems": []})


async def test_it_is_not_ready_while_partitions_move_and_when_it_is_told_to_stop(exporter: Exporter) -> None:
    exporter.readiness.reach("joining")
    status, state = await exporter.get("/readyz")
    assert (status, state["phase"], state["partitions"]) == (503, "joining", [])
    exporter.readiness.reach_ready(())
    assert (await exporter.get("/readyz"))[0] == 200
    exporter.stop.set()
    status, state = await exporter.get("/readyz")
    assert (status, state["phase"]) == (503, "stopping")


async def test_a_broker_that_is_silent_makes_it_unhealthy_with_a_sentence(exporter: Exporter) -> None:
    exporter.s[0] = 20.0
    for page in ("/healthz", "/readyz"):
        status, state = await exporter.get(page)
        assert (status, state["problems"]) == (
            503,
            ["no Kafka broker has answered for more than 15 s: check that the brokers run"],
        )


async def test_a_target_that_takes_nothing_makes_it_not_ready_and_leaves_it_healthy(exporter: Exporter) -> None:
    problem = "the target refuses this exporter, which ends: the target answered 401"
    exporter.acceptance.end(problem)
    exporter.next_attempt = NOW
    exporter.readiness.trouble = "no score is read now: the topic cannot be read"
    status, state = await exporter.get("/readyz")
    assert (status, state["problems"]) == (503, [problem, exporter.readiness.trouble])
    assert (await exporter.get("/healthz"))[0] == 200
    assert samples((await exporter.get("/metrics"))[1])["export_ready", "hook"] == 0


async def test_a_commit_that_does_not_end_makes_it_not_ready_although_a_broker_answers(exporter: Exporter) -> None:
    with exporter.readiness.committing():
        exporter.s[0] = 14.0
        assert (await exporter.get("/readyz"))[0] == 200
        exporter.s[0] = 15.0
        exporter.readiness.last_answer.note(answered=True)
        status, state = await exporter.get("/readyz")
        assert (status, len(state["problems"])) == (503, 1)
        assert "a commit has not ended for more than 15 s" in state["problems"][0]
        assert (await exporter.get("/healthz"))[0] == 200
    assert (await exporter.get("/readyz"))[0] == 200


async def test_while_a_score_waits_for_a_target_that_takes_nothing_the_time_of_its_next_attempt_is_named(
    exporter: Exporter,
) -> None:
    exporter.acceptance.note(["a"], Later("the target answered 503"))
    exporter.next_attempt = datetime(2026, 1, 31, 12, 30, 5, tzinfo=UTC)
    problem = "the target takes nothing now: the target answered 503"
    when = "; the next score that waits is sent again at 2026-01-31 12:30:05 UTC"
    status, state = await exporter.get("/readyz")
    assert (status, state["problems"]) == (503, [problem + when])
    exporter.next_attempt = None
    assert (await exporter.get("/readyz"))[1]["problems"] == [problem]


async def test_the_metrics_count_from_zero_what_was_sent_waits_was_refused_and_given_up(exporter: Exporter) -> None:
    exporter.counts.update(read=9, waited=3, given_up=1)
    exporter.waiting = 3
    exporter.waiting_in_memory = 2
    assert samples((await exporter.get("/metrics"))[1]) == {
        ("export_scores_total", "read", "hook"): 9,
        ("export_scores_total", "sent", "hook"): 5,
        ("export_scores_total", "waited", "hook"): 3,
        ("export_scores_total", "left_out", "hook"): 0,
        ("export_scores_total", "rejected", "hook"): 0,
        ("export_scores_total", "unreadable", "hook"): 0,
        ("export_scores_total", "removed", "hook"): 0,
        ("export_waiting", "hook", "memory"): 2,
        ("export_waiting", "hook", "topic"): 1,
        ("export_ready", "hook"): 1,
        ("dead_letters_total", "export", "refused"): 0,
        ("dead_letters_total", "export", "given_up"): 1,
    }


def test_a_port_that_is_taken_is_told_before_anything_is_opened() -> None:
    def never(problems: ProblemLog) -> AbstractAsyncContextManager[ReportingTarget[FoundScore]]:
        pytest.fail("the target was opened")

    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(PortTakenError, match="set --port to another port"),
    ):
        run_export(Settings(), scores_of(Topics.of()), never, group="hook", only_new=False, port=other.getsockname()[1])
