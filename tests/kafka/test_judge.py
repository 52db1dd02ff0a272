"""A worker that asks a judge over HTTP: its spending, its deferred scores, and its state after a restart."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server_apart
from tests.support.workers import Fleet, Worker

from traceweir.streams.kafka.topic_admin import create_topics
from traceweir.streams.settings import Settings
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
def prefix() -> str:
    return f"judged-{uuid.uuid4().hex[:8]}."


@pytest.fixture(
    params=[pytest.param("embedded_broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def servers(request: pytest.FixtureRequest, prefix: str) -> str:
    """Bootstrap servers of a broker of each kind, with topics."""
    broker = request.getfixturevalue(request.param)
    found: str = broker if isinstance(broker, str) else broker.bootstrap_servers
    create_topics(Settings(kafka_bootstrap_servers=found, topic_prefix=prefix))
    return found


@pytest.fixture
def provider() -> Iterator[OpenAiServer]:
    with openai_server_apart(default=lambda body: SAFE) as server:
        yield server


class Told:
    """Sends sessions, and reads what became of them."""

    def __init__(self, servers: str, prefix: str, committed: Committed) -> None:
        self._producer, self._committed = Producer({"bootstrap.servers": servers}), committed
        self._topic = f"{prefix}invocations"

    def send(self, name: str) -> None:
        """A session of one answer, whole."""
        answered = event("invocation.completed", name, final_response={"parts": [{"text": f"{name} ships today."}]})
        for document in (answered, event("session.ended", name, 1)):
            self._producer.produce(self._topic, json.dumps(document), name)
        assert self._producer.flush(30) == 0

    def send_late(self, name: str) -> None:
        """One more event of it, which opens it again."""
        self._producer.produce(self._topic, json.dumps(event("model.called", name, 0.5)), name)
        assert self._producer.flush(30) == 0

    def scores(self, name: str) -> list[dict[str, Any]]:
        """Of the session as a whole, in the order of their revisions and attempts."""
        rows = (row.document for row in self._committed.rows["results"])
        found = [each for each in rows if each["session_id"] == name and each["level"] == "session"]
        return sorted(
            (each for each in found if each["metric"] == "safety_v1"),
            key=lambda each: (int(each["revision"]), int(each["attempt"])),
        )

    def until(self, holds: Callable[[], bool], *workers: Worker) -> None:
        """Read on until it holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if any(worker.ended for worker in workers) or time.monotonic() > deadline:
                said = "\n".join(worker.log.read_text() for worker in workers)
                pytest.fail(f"it did not come about, and the workers say\n{said}")
            self._committed.read(0.1)


def test_a_provider_that_is_down_puts_scores_off_and_a_restart_pays_for_nothing_again(
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
        told, worker = Told(servers, prefix, committed), fleet.start("worker")
        told.send("fine")
        told.until(lambda: bool(told.scores("fine")), worker)
        assert (told.scores("fine")[0]["status"], told.scores("fine")[0]["cost"]["cached"]) == ("PASSED", False)
        asked = len(provider.asked)
        assert asked == 2  # of three votes two decide

        provider.default = lambda body: busy(None, 500)
        told.send("unlucky")
        told.until(lambda: bool(told.scores("unlucky")), worker)
        assert told.scores("unlucky")[0]["not_evaluated_because"] == "error"
        while len(provider.asked) < asked + 3:  # it is tried again, in vain
            time.sleep(0.05)
        worker.kill()
        assert len(told.scores("unlucky")) == 1

        provider.default = lambda body: SAFE
        worker = fleet.start("worker")
        told.until(lambda: len(told.scores("unlucky")) == 2, worker)
        first, second = told.scores("unlucky")
        assert (second["revision"], second["attempt"], second["status"]) == (0, 1, "PASSED")
        assert second["result_id"] == first["result_id"]
        asked = len(provider.asked)
        told.send_late("fine")
        told.until(lambda: len(told.scores("fine")) == 2, worker)
        assert told.scores("fine")[1]["status"] == "PASSED"
        assert len(provider.asked) == asked
        assert worker.terminate(30) == 0
        said = worker.log.read_text()
    assert set(provider.keys) == {f"Bearer {KEY}"}
    assert KEY not in said + json.dumps([row.document for row in committed.rows["results"]])


def test_two_workers_spend_no_more_together_than_the_budget_and_each_its_share(
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
        told, workers = Told(servers, prefix, committed), []
        for name in "ab":
            workers.append(fleet.start(name))
            workers[-1].until_ready()
        told.until(lambda: sorted(len(worker.until_ready()["partitions"]) for worker in workers) == [2, 2], *workers)
        for name in names:
            told.send(name)
        told.until(lambda: all(told.scores(name) for name in names), *workers)
    scores = [row.document for row in committed.rows["results"] if row.document["metric"] == "safety_v1"]
    unpaid = [score for score in scores if score["level"] == "invocation" and score["value"] is None]
    assert {score["not_evaluated_because"] for score in unpaid} == {"budget"}
    assert all(
        "of the 10000 tokens per day (share of 2 of 4 partitions) are left" in score["rationale"] for score in unpaid
    )
    assert 16 <= len(provider.asked) <= 20
