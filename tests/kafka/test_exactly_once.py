"""Exactly once on Apache Kafka: workers are killed, frozen and replaced under load, and a ledger is held against the committed output."""

from __future__ import annotations

import json
import os
import random
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from tests.support.dying_worker import MOMENTS, STEPS
from tests.support.ledger import Ledger
from tests.support.reader import Audit, Committed
from tests.support.workers import SESSION_TIMEOUT_S, Fleet, Worker

from tracegate.streams.admin import create_topics
from tracegate.streams.settings import Settings
from tracegate.streams.topics import STAGES, application_id

SEED = int(os.environ.get("TRACEGATE_TEST_SEED", "1"))
LOAD_S = 40.0
RATE = 300
STEP_S = 0.05

CONFIG = {
    "criteria": {"tool_trajectory_avg_score": 0.5},
    "gate": {"threshold": 0.65, "required": ["tool_trajectory_avg_score"], "cache_size": 40},
}


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_workers_killed_and_frozen_under_load_lose_double_and_change_nothing(kafka: str, tmp_path: Path) -> None:
    prefix = f"once-{uuid.uuid4().hex[:8]}."
    settings = Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix)
    assert create_topics(settings).wrong == ()
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    ledger = Ledger(SEED)
    application = application_id(prefix, STAGES)

    with Committed(kafka, prefix, application) as committed, Fleet(kafka, prefix, tmp_path, config) as fleet:
        faults = Faults(fleet, random.Random(SEED))
        load(ledger, Producer({"bootstrap.servers": kafka, "enable.idempotence": True, "linger.ms": 5}), prefix, faults)
        wait_for_rest(ledger, committed, faults)
        found = Audit(ledger, committed, CONFIG).faults()

    report = {
        "seed": SEED,
        "faults": faults.tally,
        "sent": ledger.sent,
        "garbage": len(ledger.refused),
        "committed": {topic: len(rows) for topic, rows in committed.rows.items()},
        "counts": committed.counts(),
        "found": {claim: [len(sentences), *sentences[:3]] for claim, sentences in found.items()},
    }
    sys.stdout.write(json.dumps(report, indent=1, ensure_ascii=False))
    assert found == {}
    assert faults.tally.keys() >= {"killed", "frozen", "thawed", "killed itself"}


class Faults:
    """Two workers, and what happens to them: a death inside a checkpoint, a kill, a freeze that outlasts the group's patience."""

    def __init__(self, fleet: Fleet, rnd: random.Random) -> None:
        self._fleet = fleet
        self.tally: Counter[str] = Counter()
        death = rnd.choice(STEPS), rnd.choice(MOMENTS), rnd.randint(40, 200)
        self.tally[f"{death[0]}, {death[1]}"] += 1
        self.workers = {"a": fleet.start("a", death), "b": fleet.start("b")}
        self._frozen: Worker | None = None
        frozen_at = rnd.uniform(12, 15)
        thawed_at = frozen_at + SESSION_TIMEOUT_S + rnd.uniform(3, 6)
        self._due = [
            (frozen_at, self._freeze),
            (thawed_at, self._thaw),
            (thawed_at + rnd.uniform(1, 6), self._kill),
        ]

    def go_on(self, passed_s: float) -> None:
        """Do what is due after so many seconds of load, and replace what is gone."""
        while self._due and self._due[0][0] <= passed_s:
            self._due.pop(0)[1]()
        for name, worker in self.workers.items():
            if worker.ended:
                self.tally["killed itself" if worker.process.returncode == -9 else "ended itself"] += 1
                self.workers[name] = self._fleet.start(name)

    def _freeze(self) -> None:
        self.tally["frozen"] += 1
        self._frozen = self.workers["b"]
        self._frozen.freeze()
        self.workers["b"] = self._fleet.start("c")

    def _thaw(self) -> None:
        assert self._frozen is not None
        self.tally["thawed"] += 1
        self._frozen.thaw()

    def _kill(self) -> None:
        self.tally["killed"] += 1
        self.workers["a"].kill()
        self.workers["a"] = self._fleet.start("a")


def load(ledger: Ledger, producer: Producer, prefix: str, faults: Faults) -> None:
    """Send the ledger's records at a steady rate while the faults happen, and then what is left of its sessions."""
    refused: list[str] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            refused.append(f"{message.topic()}: {error}")

    def send(count: int | None) -> None:
        now = time.time()
        for topic, partition, key, value, headers, ahead_s in (
            ledger.records(count, now) if count is not None else ledger.rest(now)
        ):
            stamp = int((now + ahead_s) * 1000) if ahead_s else 0
            producer.produce(
                prefix + topic, value, key, partition, on_delivery=delivered, timestamp=stamp, headers=headers
            )
        producer.poll(0)

    began = time.monotonic()
    while (passed_s := time.monotonic() - began) < LOAD_S:
        send(int(RATE * STEP_S))
        faults.go_on(passed_s)
        time.sleep(STEP_S)
    send(None)
    assert producer.flush(30) == 0
    assert refused == []


def wait_for_rest(ledger: Ledger, committed: Committed, faults: Faults, patience_s: float = 25.0) -> None:
    """Read until every record is in a closed session and every trace is decided, and a little longer; or until nothing comes any more."""
    wanted = ledger.sent["joined"], len(ledger.traces)
    silent_since, done_since = time.monotonic(), None
    while True:
        if committed.read(1.0):
            silent_since = time.monotonic()
        faults.go_on(LOAD_S)
        counts = committed.counts()
        done = (sum(len(s["events"]) + len(s["traces"]) for s in committed.sessions()), counts["gate"]["consumed"])
        now = time.monotonic()
        if done >= wanted and counts["assemble"]["opened"] == counts["assemble"]["closed"]:
            done_since = done_since or now
        if (done_since and now - done_since > 3) or now - silent_since > patience_s:
            return
