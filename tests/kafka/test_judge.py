"""A worker whose criterion asks a judge over HTTP: what it pays for, what it puts off, and what a restart remembers."""

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
from tests.support.flow import event
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server_apart
from tests.support.workers import Fleet, Worker

from tracegate.streams.admin import create_topics
from tracegate.streams.settings import Settings

pytestmark = pytest.mark.timeout(240)

PREFIX = f"judged-{uuid.uuid4().hex[:8]}."
PATIENCE_S = 90
KEY = "sk-hunter2-hunter2-hunter2"
CONFIG = {
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


@pytest.fixture(
    params=[pytest.param("embedded_broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def servers(request: pytest.FixtureRequest) -> str:
    """Bootstrap servers of a broker of each kind, with topics."""
    broker = request.getfixturevalue(request.param)
    found: str = broker if isinstance(broker, str) else broker.bootstrap_servers
    create_topics(Settings(kafka_bootstrap_servers=found, topic_prefix=PREFIX))
    return found


@pytest.fixture
def provider() -> Iterator[OpenAiServer]:
    with openai_server_apart(default=lambda body: SAFE) as server:
        yield server


class Told:
    """Sends sessions, and reads what became of them."""

    def __init__(self, servers: str, committed: Committed) -> None:
        self._producer, self._committed = Producer({"bootstrap.servers": servers}), committed

    def send(self, name: str) -> None:
        """A session of one answer, whole."""
        answered = event("invocation.completed", name, final_response={"parts": [{"text": f"{name} ships today."}]})
        for document in (answered, event("session.ended", name, 1)):
            self._producer.produce(f"{PREFIX}invocations", json.dumps(document), name)
        assert self._producer.flush(30) == 0

    def send_late(self, name: str) -> None:
        """One more event of it, which opens it again."""
        self._producer.produce(f"{PREFIX}invocations", json.dumps(event("model.called", name, 0.5)), name)
        assert self._producer.flush(30) == 0

    def scores(self, name: str) -> list[dict[str, Any]]:
        """Of the session as a whole, in the order of their revisions."""
        rows = (row.document for row in self._committed.rows["results"])
        found = [each for each in rows if each["session_id"] == name and each["level"] == "session"]
        return sorted((each for each in found if each["metric"] == "safety_v1"), key=lambda each: int(each["revision"]))

    def until(self, holds: Callable[[], bool], worker: Worker) -> None:
        """Read on until it holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if worker.ended or time.monotonic() > deadline:
                pytest.fail(f"it did not come about, and the worker says\n{worker.log.read_text()}")
            self._committed.read(0.1)


def test_a_provider_that_is_down_puts_scores_off_and_a_restart_pays_for_nothing_again(
    servers: str, provider: OpenAiServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    variables = {
        "TRACEGATE_JUDGE_API_BASE": provider.url,
        "TRACEGATE_JUDGE_API_KEY": KEY,
        "TRACEGATE_GRACE_S": "600",
    }
    with (
        Committed(servers, PREFIX, f"{PREFIX}assemble-score-gate") as committed,
        Fleet(servers, PREFIX, tmp_path, config, variables=variables) as fleet,
    ):
        told, worker = Told(servers, committed), fleet.start("worker")
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
        assert (second["revision"], second["status"], second["result_id"]) == (1, "PASSED", first["result_id"])
        asked = len(provider.asked)
        told.send_late("fine")
        told.until(lambda: len(told.scores("fine")) == 2, worker)
        assert told.scores("fine")[1]["status"] == "PASSED"
        assert len(provider.asked) == asked
        assert worker.terminate(30) == 0
        said = worker.log.read_text()
    assert set(provider.keys) == {f"Bearer {KEY}"}
    assert KEY not in said + json.dumps([row.document for row in committed.rows["results"]])
