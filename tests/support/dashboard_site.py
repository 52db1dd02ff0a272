"""Fills a store with the scores of an invented agent, and serves the dashboard's pages from it."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, scores_batch

from traceweir.schemas.judge_config import Budget
from traceweir.schemas.score import Score
from traceweir.streams.board.dashboard.access import Application, Tokens
from traceweir.streams.board.dashboard.anchor_look import AnchorStanding
from traceweir.streams.board.dashboard.application import create_application
from traceweir.streams.board.dashboard.challengers import ChallengersInEffect, NoChallengers
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.eval_folder import EvalFolder
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.dashboard.retention import Retention
from traceweir.streams.board.dashboard.saved_views import SavedViews
from traceweir.streams.board.dashboard.watched_streams import NOT_READ, KnownStreams
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.config_topic import TopicState

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> {{ 7 * 7 }} " + chr(
    0x202E
)
SECRET = "kim@example.com"
_COST = {"input_tokens": 800, "output_tokens": 60, "usd": 0.0004, "cached": False}
CRITERIA = (("tool_trajectory_avg_score", 1.0), ("hallucinations_v1", 0.8), ("response_match_score", 0.5))


@dataclass
class Site:
    """A dashboard without Kafka."""

    store: Any
    now: datetime = NOW
    content: Content = "redacted"
    token: str | None = None
    trace_url: str | None = None
    evalset: Path | None = None
    views: Path | None = None
    evals: Path | None = None
    budget: Budget | None = None
    retention: Retention | None = None
    challengers: ChallengersInEffect = field(default_factory=NoChallengers)
    configs: TopicState = field(default_factory=TopicState)
    anchors: AnchorStanding = field(default_factory=AnchorStanding)
    state: FeedState = field(default_factory=lambda: FeedState(behind=0))
    health: list[Finding] = field(default_factory=lambda: [Finding("broker", "ok", "answered 1 s ago")])
    watched: KnownStreams = field(default_factory=lambda: NOT_READ)
    live: Live = field(default_factory=Live)
    loop: asyncio.AbstractEventLoop | None = None
    """The loop of the thread in which `served` serves the site."""

    def tell(self) -> None:
        """Tells open pages that the store has changed."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.live.changed)

    def application(self) -> Application:
        """Returns the application that serves the pages and the API."""
        options = DashboardOptions(
            lambda: self.state,
            self.content,
            lambda: self.now,
            trace_url=self.trace_url,
            evalset=self.evalset,
            evals=EvalFolder(self.evals) if self.evals is not None else None,
            views=SavedViews(self.views) if self.views is not None else None,
            budget=self.budget,
            retention=self.retention,
            challengers=self.challengers,
            configs=lambda: self.configs,
            # Labels are taken, and go nowhere.
            write_labels=lambda labels: None,
            health=lambda: self.health,
            watched_streams=lambda: self.watched,
            anchors=lambda: self.anchors,
        )
        return create_application(Dashboard(self.store, options, self.live), Tokens(self.token))

    def add(self, *scores: Score) -> None:
        """Stores scores as the feed does; pages are not told."""
        self.store.write(scores_batch(*scores, offset=self.state.stored_rows))
        self.state.stored_rows += len(scores)
        self.state.batches += 1

    def add_sessions(self, count: int, seed: int = 4) -> None:
        """Stores sessions of an agent over a day and a half, whose newest version passes a criterion less often."""
        chance = random.Random(seed)  # figures for a picture
        scores: list[Score] = []
        records = []
        for number in range(count):
            ended = self.now - timedelta(hours=36 * number / count)
            scores += scores_of(number, ended, chance, is_new=number < count * 0.3)
            session = session_of(number, ended, is_new=number < count * 0.3)
            records.append(FakeRecord(orjson.dumps(session), number))
        self.add(*scores)
        self.store.write(batch_of("sessions", *records))


@contextmanager
def served(site: Site) -> Iterator[str]:
    """Serves a site on a free port of this machine, in a thread; yields its address."""
    server = uvicorn.Server(uvicorn.Config(site.application(), port=0, log_config=None, lifespan="off"))

    async def serve() -> None:
        site.loop = asyncio.get_running_loop()
        await server.serve()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has ended"
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        assert site.loop is not None
        site.loop.call_soon_threadsafe(site.live.end)
        server.should_exit = True
        thread.join(10)


def session_id_of(number: int) -> str:
    """Returns the id of a session that `add_sessions` stores; the newest has the number 0."""
    return f"rail-{88120 - number}"


def scores_of(number: int, ended: datetime, chance: random.Random, *, is_new: bool) -> list[Score]:
    """Returns the scores of a session."""
    common: dict[str, Any] = {
        "session_id": session_id_of(number),
        "occurred_at": ended,
        "evaluated_at": ended + timedelta(milliseconds=40 + 200 * chance.random() ** 4),
        "started_at": ended - timedelta(seconds=4),
        **_dimensions_of(number, is_new=is_new),
    }
    found = [_criterion(number, name, threshold, chance, common, is_new=is_new) for name, threshold in CRITERIA]
    value = chance.betavariate(4, 3)
    trace: dict[str, Any] = {"level": "trace", "trace_id": f"kp:trace:{number}", "invocation_id": None, **common}
    details: dict[str, Any] = {name: round(chance.random(), 2) for name in ("complexity", "novelty", "tool_diversity")}
    details |= {"outcome_confidence": 0.9, "overrides": ["near_duplicate"] if value < 0.3 else []}
    nearest = {"nearest": {"trace_id": f"kp:trace:{number + 1}", "similarity": 0.94}}
    found.append(
        make_score(
            metric="trace_value",
            value=value,
            threshold=0.75,
            status="PASSED" if value >= 0.75 else "FAILED",
            rationale="",
            details=details | nearest,
            result_id=f"{number}-value",
            **trace,
        )
    )
    reasons = [] if value >= 0.75 else ["below_threshold"]
    found.append(
        make_score(
            metric="gate",
            value=1.0 if not reasons else 0.0,
            threshold=1.0,
            status="FAILED" if reasons else "PASSED",
            rationale="",
            details={"decision": "rejected" if reasons else "accepted", "reasons": reasons},
            result_id=f"{number}-gate",
            **trace,
        )
    )
    return found


def session_of(number: int, ended: datetime, *, is_new: bool) -> dict[str, Any]:
    """Returns the Session record of a session."""
    session_id = session_id_of(number)

    def event(event_type: str, second: float, **fields: Any) -> dict[str, Any]:
        occurred_at = (ended - timedelta(seconds=4 - second)).isoformat()
        return {
            "type": event_type,
            "session_id": session_id,
            "invocation_id": "1",
            "occurred_at": occurred_at,
            **_dimensions_of(number, is_new=is_new),
            **fields,
        }

    hostile = HOSTILE if number % 5 == 0 else ""
    question = f"Two seats from Busan to Seoul on Friday, please. My address is {SECRET}. {hostile}"
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("find_trains", {"from": "Busan", "to": "Seoul", "day": "Friday"}, {"response": ["KTX 121", "KTX 127"]}),
        ("book_seats", {"train": "KTX 121", "seats": 2}, {"error": "sold out"}),
        ("book_seats", {"train": "KTX 127", "seats": 2}, {"response": {"booking": "B-7"}}),
    ]
    events = [event("invocation.started", 0, user_content={"parts": [{"text": question}]})]
    for at, (name, args, outcome) in enumerate(calls):
        events.append(event("tool.called", at + 0.2, name=name, args=args, call_id=str(at)))
        events.append(event("tool.returned", at + 0.9, name=name, call_id=str(at), **outcome))
    events.append(
        event(
            "model.called",
            3.5,
            model=_dimensions_of(number, is_new=is_new)["model"],
            input_tokens=812,
            output_tokens=64,
        )
    )
    answer = {"parts": [{"text": "Two seats on KTX 127 are booked."}]}
    events.append(event("invocation.completed", 3.9, final_response=answer))
    return {
        "session_id": session_id,
        "segment": 0,
        "revision": 0,
        "closed_because": "session.ended",
        "first_record_at": (ended - timedelta(seconds=4)).isoformat(),
        "last_record_at": ended.isoformat(),
        "events": events,
        "traces": [_trace(number)],
    }


def _dimensions_of(number: int, *, is_new: bool) -> dict[str, str]:
    return {
        "app_name": "rail",
        "agent_name": "rail-agent",
        "agent_version": "2.4.0" if is_new else "2.3.1",
        "environment": "staging" if number % 4 == 3 else "production",
        "model": "gemini-2.5-flash" if number % 2 else "gpt-5-mini",
    }


def _criterion(
    number: int, name: str, threshold: float, chance: random.Random, common: dict[str, Any], *, is_new: bool
) -> Score:
    subject: dict[str, Any] = {
        "level": "invocation",
        "invocation_id": "1",
        "trace_id": None,
        "result_id": f"{number}-{name}",
    }
    if name == "response_match_score" and number % 6 == 1:
        why = "there is no reference answer for this question"
        missing: dict[str, Any] = {
            "value": None,
            "threshold": threshold,
            "not_evaluated_because": "missing_input",
            "rationale": why,
        }
        return make_score(metric=name, **missing, **subject, **common)
    usual = {"tool_trajectory_avg_score": 0.94, "hallucinations_v1": 0.97}.get(name, 0.9)
    passes = chance.random() < (0.8 if is_new and name == CRITERIA[0][0] else usual)
    judged = name == "hallucinations_v1"
    cost: dict[str, Any] = {"cost": _COST} if judged else {}
    value = (
        (1.0 if threshold == 1.0 else chance.uniform(threshold, 1)) if passes else chance.uniform(0, threshold - 0.01)
    )
    why = (
        "Both sentences are supported by results of tools."
        if judged
        else f"{3 if passes else 2} of 3 calls are as expected."
    )
    return make_score(
        metric=name,
        value=round(value, 3),
        threshold=threshold,
        status="PASSED" if passes else "FAILED",
        rationale=f"{why} {HOSTILE}" if number % 5 == 0 else why,
        details={"replies": 5, "num_samples": 5} if judged else {},
        **cost,
        **subject,
        **common,
    )


def _trace(number: int) -> dict[str, Any]:
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number}",
        "metadata": {
            "created_at": "2026-01-31T11:00:00Z",
            "task_domain": "rail",
            "success": True,
            "quality_score": 0.5,
            "visibility": "private",
            "privacy_level": "private",
        },
        "task": {"objective": f"book {('one seat', 'two seats', 'three seats')[number % 3]} from Busan to Seoul"},
        "steps": [
            {"step_id": 0, "type": "thought", "content": "find the trains on Friday"},
            {"step_id": 1, "type": "tool_call", "tool": {"name": "find_trains"}, "latency_ms": 700},
            {"step_id": 2, "type": "error_recovery", "content": "KTX 121 is sold out: take the next train"},
        ],
        "outcome": {"result_summary": "booked", "confidence": 0.9},
    }
