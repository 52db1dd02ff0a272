"""Measures how fast sessions are scored again after an outage of their judge, while new sessions arrive.

Needs Apache Kafka.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server_apart
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.testing import event
from traceweir.streams.worker.kafka.topic_admin import create_topics

RATE = 10
"""Sessions sent each second, during the outage and after it."""
OUTAGE_S = 30.0
LATENCY_S = 0.5
"""Time of the judge for an answer, in seconds."""
PATIENCE_S = 180.0
CONFIG = {
    "criteria": {
        "safety_v1": {"threshold": 1.0, "judge_model_options": {"judge_model": "openai/local", "num_samples": 1}}
    },
    "judge": {
        "structured_output": "never",
        "retries": {"attempts": 1},
        "breaker": {"failures": 1_000_000},
        "retry_later": {"after_s": 5},
    },
}
SAFE = '{"reasoning": "It harms nobody.", "is_the_agent_response_safe": "yes"}'


def run(servers: str) -> None:
    """Prints the rate of the sessions that are scored again, and how long new sessions wait for their scores."""
    prefix = f"outage{time.time_ns()}."
    create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix))
    with openai_server_apart(default=lambda body: busy(None, 500)) as judge, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        variables = {"TRACEWEIR_JUDGE_API_BASE": judge.url, "TRACEWEIR_JUDGE_API_KEY": "any"}
        with (
            Committed(servers, prefix, f"{prefix}assemble-score-gate") as committed,
            Fleet(servers, prefix, folder, folder / "config.json", variables=variables) as fleet,
        ):
            fleet.start("worker").until_ready()
            _measure(_Load(servers, prefix, committed), judge)


class _Load:
    """Sends sessions at a steady rate, and notes when their scores are read."""

    def __init__(self, servers: str, prefix: str, committed: Committed) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 2})
        self._topic, self._committed = f"{prefix}invocations", committed
        self.sent: dict[str, float] = {}
        self.failed: dict[str, float] = {}
        self.scored: dict[str, float] = {}
        self._next, self._seen = time.perf_counter(), 0

    def step(self) -> None:
        """Sends the sessions that are due, and reads."""
        now = time.perf_counter()
        while self._next <= now:
            name = f"session-{len(self.sent)}"
            answered = event("invocation.completed", name, final_response={"parts": [{"text": f"{name} ships."}]})
            for document in (answered, event("session.ended", name, 1)):
                self._producer.produce(self._topic, json.dumps(document), name)
            self.sent[name] = now
            self._next += 1 / RATE
        self._producer.poll(0)
        self._committed.read(0.02)
        now, rows = time.perf_counter(), self._committed.rows["results"]
        for row in rows[self._seen :]:
            score = row.document
            if score["metric"] == "safety_v1" and score["level"] == "session":
                found = self.failed if score["value"] is None else self.scored
                found.setdefault(score["session_id"], now)
        self._seen = len(rows)


def _measure(load: _Load, judge: OpenAiServer) -> None:
    until = time.perf_counter() + OUTAGE_S
    while time.perf_counter() < until:
        load.step()
    judge.default = lambda body: Say(text=SAFE, after_s=LATENCY_S)
    back = time.perf_counter()
    while not load.failed or load.failed.keys() - load.scored.keys():
        if time.perf_counter() - back > PATIENCE_S:
            break
        load.step()
    again = sorted(load.scored[name] for name in load.failed.keys() & load.scored.keys())
    waits = [load.scored[name] - sent for name, sent in load.sent.items() if name in load.scored and sent > back + 1]
    cuts = statistics.quantiles(waits, n=100)
    print(
        f"  {len(load.failed)} sessions failed in {OUTAGE_S:g} s; {len(again)} were scored again, "
        f"{(len(again) - 1) / (again[-1] - again[0]):.1f} a second at {RATE} new ones a second; "
        f"the last {again[-1] - back:.0f} s after the judge was back\n"
        f"  new sessions meanwhile: p50 {cuts[49] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms from end to score "
        f"({len(waits)} sessions; the judge takes {LATENCY_S * 1e3:.0f})"
    )
