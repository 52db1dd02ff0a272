"""A worker that asks a judge over HTTP: its spending, its deferred scores, and its state after a restart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server_apart
from tests.support.workers import Fleet, Worker

from traceweir.streams.testing import event

pytestmark = pytest.mark.timeout(240)

PATIENCE_S = 90
KEY = "sk-hunter2-hunter2-hunter2"
CONFIG: dict[str, Any] = {
    "criteria": {
        "safety_v1": {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "openai/local", "num_samples": 3},
        }
    },
    "judge": {
        "structured_output": "never",
        "retries": {"attempts": 1},
        "breaker": {"failures": 1_000},
        "retry_later": {"after_s": 1},
    },
}
SAFE = Say(text='{"reasoning": "It harms nobody.", "is_the_agent_response_safe": "yes"}')


@pytest.fixture
def provider() -> Iterator[OpenAiServer]:
    with openai_server_apart(default=lambda body: SAFE) as server:
        yield server


class SessionClient:
    """Sends sessions, and reads their scores."""

    def __init__(self, servers: str, prefix: str, committed: Committed) -> None:
        self._producer, self._committed = Producer({"bootstrap.servers": servers, "log_level": 0}), committed
        self._topic = f"{prefix}invocations"

    def send(self, name: str) -> None:
        """Sends a complete session with one answer."""
        answered = event("invocation.completed", name, final_response={"parts": [{"text": f"{name} ships today."}]})
        for document in (answered, event("session.ended", name, 1)):
            self._producer.produce(self._topic, json.dumps(document), name)
        assert self._producer.flush(30) == 0

    def send_late(self, name: str) -> None:
        """Sends one more event of a session, which reopens the session."""
        self._producer.produce(self._topic, json.dumps(event("model.called", name, 0.5)), name)
        assert self._producer.flush(30) == 0

    def scores(self, name: str) -> list[dict[str, Any]]:
        """Returns the session-level scores, in the order of their revisions and attempts."""
        rows = (row.document for row in self._committed.rows["results"])
        found = [each for each in rows if each["session_id"] == name and each["level"] == "session"]
        return sorted(
            (each for each in found if each["metric"] == "safety_v1"),
            key=lambda each: (int(each["revision"]), int(each["attempt"])),
        )

    def until(self, holds: Callable[[], bool], *workers: Worker) -> None:
        """Reads until the condition holds; fails the test if a worker ends or the deadline passes."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if any(worker.ended for worker in workers) or time.monotonic() > deadline:
                logs = "\n".join(worker.log.read_text() for worker in workers)
                pytest.fail(f"the condition did not hold in time; the workers' logs:\n{logs}")
            self._committed.read(0.1)


def test_scores_of_an_unavailable_provider_are_deferred_and_a_restart_repeats_no_paid_request(
    servers: str, prefix: str, provider: OpenAiServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    variables = {
        "TRACEWEIR_JUDGE_API_BASE": provider.url,
        "TRACEWEIR_JUDGE_API_KEY": KEY,
        "TRACEWEIR_GRACE_S": "600",
    }
    with (
        Committed(servers, prefix, f"{prefix}assemble-score-gate") as committed,
        Fleet(servers, prefix, tmp_path, config, variables=variables) as fleet,
    ):
        client, worker = SessionClient(servers, prefix, committed), fleet.start("worker")
        client.send("fine")
        client.until(lambda: bool(client.scores("fine")), worker)
        assert (client.scores("fine")[0]["status"], client.scores("fine")[0]["cost"]["cached"]) == ("PASSED", False)
        asked = len(provider.asked)
        assert asked == 2  # Two of three votes decide.

        provider.default = lambda body: busy(None, 500)
        client.send("unlucky")
        client.until(lambda: bool(client.scores("unlucky")), worker)
        assert client.scores("unlucky")[0]["not_evaluated_because"] == "error"
        while len(provider.asked) < asked + 3:  # The retries are unsuccessful.
            time.sleep(0.05)
        worker.kill()
        assert len(client.scores("unlucky")) == 1

        provider.default = lambda body: SAFE
        worker = fleet.start("worker")
        client.until(lambda: len(client.scores("unlucky")) == 2, worker)
        first, second = client.scores("unlucky")
        assert (second["revision"], second["attempt"], second["status"]) == (0, 1, "PASSED")
        assert second["result_id"] == first["result_id"]
        asked = len(provider.asked)
        client.send_late("fine")
        client.until(lambda: len(client.scores("fine")) == 2, worker)
        assert client.scores("fine")[1]["status"] == "PASSED"
        assert len(provider.asked) == asked
        worker.terminate(30)
        log = worker.log.read_text()
    assert set(provider.keys) == {f"Bearer {KEY}"}
    assert KEY not in log + json.dumps([row.document for row in committed.rows["results"]])


def test_two_workers_share_the_budget_by_their_partitions(
    servers: str, prefix: str, provider: OpenAiServer, tmp_path: Path
) -> None:
    provider.default = lambda body: Say(text=SAFE.text, usage=(1, 999))
    budget = {"tokens_per_day": 20_000}
    judge = CONFIG["judge"] | {"max_output_tokens": 1_000, "budget": budget, "retry_later": None}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG | {"judge": judge}))
    variables = {"TRACEWEIR_JUDGE_API_BASE": provider.url, "TRACEWEIR_JUDGE_API_KEY": KEY}
    names = [f"session-{number}" for number in range(40)]
    with (
        Committed(servers, prefix, f"{prefix}assemble-score-gate") as committed,
        Fleet(servers, prefix, tmp_path, config, variables=variables) as fleet,
    ):
        client, workers = SessionClient(servers, prefix, committed), []
        for name in "ab":
            workers.append(fleet.start(name))
            workers[-1].until_ready()
        client.until(lambda: sorted(len(worker.until_ready()["partitions"]) for worker in workers) == [2, 2], *workers)
        for name in names:
            client.send(name)
        client.until(lambda: all(client.scores(name) for name in names), *workers)
    scores = [row.document for row in committed.rows["results"] if row.document["metric"] == "safety_v1"]
    unpaid = [score for score in scores if score["level"] == "invocation" and score["value"] is None]
    assert {score["not_evaluated_because"] for score in unpaid} == {"budget"}
    assert all(
        "of the 10000 tokens per day (share of 2 of 4 partitions) are left" in score["rationale"] for score in unpaid
    )
    assert 16 <= len(provider.asked) <= 20
