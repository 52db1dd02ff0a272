"""A worker on the embedded broker scores and decides on all emitted sessions, and bad input does not stop it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed, Row
from tests.support.http_target import HttpTarget, http_target
from tests.support.metrics import samples
from tests.support.workers import Fleet, Worker

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.pushed_config import PushedConfig
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.testing import event as dated_event
from traceweir.streams.testing import trace as dated_trace
from traceweir.streams.worker.faust_worker import EXIT_HARD
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.telemetry.catalogue import CATALOGUE

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("worker")]  # The tests share one worker.

TRACES, INVOCATIONS = "traces", "invocations"
DEADLINE_S = 60
CONFIG: JsonObject = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.5}}


def event(kind: str = "model.called", session_id: str = "s", at: float = 0, **fields: Any) -> dict[str, Any]:
    return dated_event(kind, session_id, at, **fields)


def trace(number: int | str, session_id: str | None, **changes: Any) -> dict[str, Any]:
    return dated_trace(number, session_id, **changes)


@dataclass
class Running:
    """A worker, and its output so far."""

    servers: str
    worker: Worker
    committed: Committed
    rows: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.committed.rows

    def until(self, holds: Callable[[], bool]) -> None:
        """Reads until the condition holds; fails the test if the worker ends or the deadline passes."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            if self.worker.ended or time.monotonic() > deadline:
                counts = {topic: len(rows) for topic, rows in self.rows.items()}
                pytest.fail(f"the condition did not hold in time; there are {counts}; the worker's log:\n{self.log}")
            self.committed.read(0.1)

    @property
    def log(self) -> str:
        return self.worker.log.read_text()

    def sessions(self) -> dict[str, dict[str, Any]]:
        return {session["session_id"]: session for session in self.committed.sessions()}

    def letters(self) -> dict[tuple[str, int, int], DeadLetter]:
        """Returns the dead letters by topic, partition and offset of their records."""
        letters = [DeadLetter.read(row.key, row.value, row.headers) for row in self.rows["dead-letters"]]
        return {(letter.topic, letter.partition, letter.offset): letter for letter in letters}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("worker")
    config = folder / "config.json"
    config.write_text(json.dumps(CONFIG))
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        with Fleet(servers, "traceweir.", folder, config) as fleet:
            worker = fleet.start("worker")
            with Committed(servers, "traceweir.", "traceweir.assemble-score-gate") as committed:
                yield Running(servers, worker, committed)


def test_the_config_file_of_the_worker_is_on_the_topic_of_configs(running: Running) -> None:
    running.until(lambda: bool(running.rows["configs"]))
    (row,) = running.rows["configs"]
    found = PushedConfig.model_validate_json(row.value or b"")
    assert row.key == f"digest:{read_plan(CONFIG).digest}".encode()
    assert (found.version, found.config) == (0, CONFIG)


# --- an emitted file


def answered(session_id: str, at: float, text: str, expected: str) -> dict[str, Any]:
    return event(
        "invocation.completed",
        session_id,
        at,
        final_response={"parts": [{"text": text}]},
        reference={"final_response": {"parts": [{"text": expected}]}, "tool_uses": [{"name": "find", "args": {}}]},
    )


EMITTED = [
    event("tool.called", "good", 1, name="find", args={}),
    answered("good", 2, "It ships today.", "It ships today."),
    event("tool.called", "bad", 1, name="guess", args={}),
    answered("bad", 2, "No idea.", "It ships today."),
    trace(1, "good"),
    trace(2, "bad", domain="law", metadata={"visibility": "private"}),
    trace(3, "alone", domain="art"),  # In its own domain, so that no other trace is similar.
    *(event("session.ended", name, 3) for name in ("good", "bad", "alone")),
]


@pytest.fixture(scope="module")
def emitted(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Running:
    file = tmp_path_factory.mktemp("emit") / "events.jsonl"
    file.write_text("\n".join(json.dumps(document) for document in EMITTED))
    ended = subprocess.run(
        [sys.executable, "-m", "traceweir.streams.cli.main", "emit", str(file)],
        env=os.environ | {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": running.servers},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == ("10 documents: 3 to traceweir.traces, 7 to traceweir.invocations\n", "")
    running.until(lambda: len([row for row in running.rows["results"] if row.document["metric"] == "gate"]) >= 3)
    return running


def results(running: Running) -> dict[tuple[str, str, str], tuple[float | None, str]]:
    """Returns value and status by session, level and metric."""
    found = [row.document for row in running.rows["results"]]
    return {
        (each["session_id"], each["level"], each["metric"]): (each["value"], each["status"])
        for each in found
        if each["session_id"] in ("good", "bad", "alone")
    }


def test_each_session_is_closed_once_with_all_its_records(emitted: Running) -> None:
    found = [session for session in emitted.committed.sessions() if session["session_id"] in ("good", "bad", "alone")]
    assert sorted((each["session_id"], len(each["events"]), len(each["traces"])) for each in found) == [
        ("alone", 1, 1),
        ("bad", 3, 1),
        ("good", 3, 1),
    ]


def test_every_criterion_is_scored(emitted: Running) -> None:
    found = results(emitted)
    assert found["good", "session", "tool_trajectory_avg_score"] == (1.0, "PASSED")
    assert found["good", "session", "response_match_score"] == (1.0, "PASSED")
    assert found["bad", "session", "tool_trajectory_avg_score"] == (0.0, "FAILED")
    assert found["bad", "session", "response_match_score"] == (0.0, "FAILED")
    assert found["alone", "session", "response_match_score"] == (None, "NOT_EVALUATED")


def test_every_trace_is_decided_and_only_accepted_traces_are_published(emitted: Running) -> None:
    found = results(emitted)
    assert all(found[name, "trace", "trace_value"][1] == "PASSED" for name in ("good", "alone"))
    assert [found[name, "trace", "gate"][1] for name in ("good", "bad", "alone")] == ["PASSED", "FAILED", "PASSED"]
    candidates = [row.document["session_id"] for row in emitted.rows["candidates"]]
    assert sorted(name for name in candidates if name in ("good", "bad", "alone")) == ["alone", "bad", "good"]
    published = {row.key for row in emitted.rows["network"]}
    assert {b"kp:trace:1", b"kp:trace:3"} <= published
    assert b"kp:trace:2" not in published


# --- bad input, each followed by a good record of the same partition


def text(document: dict[str, Any], place: str, raw: bytes) -> bytes:
    return json.dumps(document).encode().replace(json.dumps(place).encode(), raw)


UNUSABLE: dict[str, tuple[str, bytes | dict[str, Any] | None, str, str]] = {
    "not JSON": (INVOCATIONS, b"{", "not_json", "not JSON"),
    "not an object": (INVOCATIONS, b"[1]", "not_an_object", "not an object"),
    "wrong types": (INVOCATIONS, event("tool.called", name=7), "invalid", "tool.called.name"),
    "empty value": (TRACES, b"", "empty", "empty"),
    "tombstone": (TRACES, None, "empty", "no value"),
    "a record of 2 MB": (INVOCATIONS, b'{"type": "' + b"x" * 2_000_000 + b'"}', "too_large", "2000012 bytes"),
    "nesting 1,000 deep": (INVOCATIONS, b'{"x":' * 1_000 + b"1" + b"}" * 1_000, "not_json", "recursion"),
    "invalid UTF-8": (INVOCATIONS, text(event(app_name="@"), "@", b'"\xff"'), "not_json", "not JSON"),
    "NaN": (INVOCATIONS, text(event(extra="@"), "@", b"NaN"), "not_json", "not JSON"),
    "lone surrogate": (INVOCATIONS, text(event(app_name="@"), "@", b'"\\ud83d"'), "not_json", "not JSON"),
    "confidence 1.5": (TRACES, trace(10, "s", outcome={"confidence": 1.5}), "invalid", "outcome.confidence"),
    "no steps": (TRACES, trace(11, "s", steps=[]), "invalid", "steps"),
    "naive timestamp": (
        TRACES,
        trace(12, "s", metadata={"created_at": "2026-01-01T00:00:00"}),
        "invalid",
        "metadata.created_at",
    ),
    "unknown step type": (TRACES, trace(13, "s", steps=[{"step_id": 0, "type": "guess"}]), "invalid", "steps.0.type"),
    "event a year ahead": (
        INVOCATIONS,
        event(occurred_at=f"{time.gmtime().tm_year + 2}-01-01T00:00:00Z"),
        "future_timestamp",
        "occurred_at",
    ),
    "trace a year ahead": (
        TRACES,
        trace(14, "s", metadata={"created_at": f"{time.gmtime().tm_year + 2}-01-01T00:00:00Z"}),
        "future_timestamp",
        "metadata.created_at",
    ),
}


class Sender:
    """Sends records, and returns the place of each."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": servers, "log_level": 0, "message.max.bytes": 4_000_000, "linger.ms": 0}
        )

    def send(
        self, topic: str, value: bytes | dict[str, Any] | None, key: str | None, partition: int
    ) -> tuple[str, int, int]:
        """Sends a record, waits until it is written, and returns its topic, partition and offset."""
        places: list[tuple[str, int, int]] = []
        self._producer.produce(
            f"traceweir.{topic}",
            json.dumps(value).encode() if isinstance(value, dict) else value,
            key,
            partition,
            on_delivery=lambda error, record: places.append((record.topic(), record.partition(), record.offset())),
        )
        self._producer.flush(10)
        return places[0]


@pytest.fixture(scope="module")
def sent(running: Running) -> dict[str, tuple[str, int, int]]:
    """Returns the place of each unusable record, after the valid record behind each one is in a closed session."""
    sender, places = Sender(running.servers), {}
    for number, (name, (topic, value, _, _)) in enumerate(UNUSABLE.items()):
        partition = number % 4
        places[name] = sender.send(topic, value, f"key of {name}", partition)
        neighbour = (
            event("session.ended", f"after {name}") if topic == INVOCATIONS else trace(f"x{number}", f"after {name}")
        )
        sender.send(topic, neighbour, None, partition)
    running.until(lambda: {f"after {name}" for name in UNUSABLE} <= running.sessions().keys())
    running.until(lambda: set(places.values()) <= running.letters().keys())
    return places


def test_the_metrics_at_rest_are_the_counts_of_the_committed_records(
    running: Running, emitted: Running, sent: dict[str, tuple[str, int, int]]
) -> None:
    def measured() -> dict[tuple[str, ...], float]:
        return samples(running.worker.get("/metrics")[1])

    def of(metric: str, field: str) -> set[str]:
        return {row.document[field] for row in running.rows["results"] if row.document["metric"] == metric}

    def is_at_rest() -> bool:
        sessions = running.sessions()
        traces = {trace["id"] for session in sessions.values() for trace in session["traces"]}
        return of("response_match_score", "session_id") == sessions.keys() and of("gate", "trace_id") == traces

    topics = {"results": "traceweir.results", "dead-letters": "traceweir.dead-letters", "network": "traceweir.network"}
    running.until(is_at_rest)
    running.until(
        lambda: all(
            measured().get(("records_produced_total", topic), 0) == len(running.rows[name])
            for name, topic in topics.items()
        )
    )
    found, results = measured(), [row.document for row in running.rows["results"]]

    assembled = ("joined", "duplicate", "forwarded")
    assert found["records_consumed_total", "assemble"] == sum(
        found.get(("stage_events_total", "assemble", event), 0) for event in assembled
    ) + sum(
        value for (name, *labels), value in found.items() if (name, labels[:1]) == ("dead_letters_total", ["assemble"])
    )
    inputs = {
        "assemble": ("traceweir.traces", "traceweir.invocations", "traceweir.strays"),
        "score": ("traceweir.sessions",),
        "gate": ("traceweir.candidates",),
    }
    for stage, read in inputs.items():
        assert found["records_consumed_total", stage] == sum(found["records_read_total", topic] for topic in read)
    expected = Counter(
        (each["metric"], each["status"], each.get("not_evaluated_because") or "", each.get("judge") or "")
        for each in results
    )
    assert {tuple(key[1:]): value for key, value in found.items() if key[0] == "scores_total"} == expected
    letters = sum(value for key, value in found.items() if key[0] == "dead_letters_total")
    assert letters == len(running.rows["dead-letters"])
    assert found["score_freshness_seconds_count",] == len(results)
    decisions = sum(value for key, value in found.items() if key[0] == "gate_decisions_total")
    assert decisions == len([each for each in results if each["metric"] == "gate"])
    assert [found[name,] for name in ("worker_ready", "worker_problems", "checkpoint_failures_total")] == [1, 0, 0]
    assert {value for key, value in found.items() if key[0] == "consumer_lag"} == {0}
    assert {value for key, value in found.items() if key[0] == "records_unread_age_seconds"} == {0}
    documented = {each.prometheus_name.removeprefix("traceweir_") for each in CATALOGUE}
    assert {re.sub("_(bucket|count|sum)$", "", key[0]) for key in found} <= documented


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_record_is_a_dead_letter_and_the_next_record_is_processed(
    name: str, running: Running, sent: dict[str, tuple[str, int, int]]
) -> None:
    _, value, reason, detail = UNUSABLE[name]
    letter = running.letters()[sent[name]]
    original = json.dumps(value).encode() if isinstance(value, dict) else value

    assert letter.reason == reason
    assert detail in letter.detail
    assert letter.key == f"key of {name}".encode()
    assert letter.value == (original and original[:65_536])
    assert f"after {name}" in running.sessions()


def test_no_usable_record_is_a_dead_letter(running: Running, sent: dict[str, tuple[str, int, int]]) -> None:
    assert running.letters().keys() == set(sent.values())
    assert len(running.rows["dead-letters"]) == len(sent)


# --- unusual but valid input


def test_unknown_keys_are_accepted_and_not_published(running: Running) -> None:
    odd = trace(20, "odd", domain="odd", extra={"a": 1}, metadata={"mood": "good"}, outcome={"smile": True})
    sender = Sender(running.servers)
    sender.send(TRACES, odd, "odd", 0)
    sender.send(INVOCATIONS, event("session.ended", "odd", new_field=1), "odd", 0)

    running.until(lambda: any(row.key == b"kp:trace:20" for row in running.rows["network"]))

    (published,) = [row.document for row in running.rows["network"] if row.key == b"kp:trace:20"]
    assert "extra" not in published
    assert "mood" not in published["metadata"]
    assert "smile" not in published["outcome"]
    assert published["metadata"]["quality_score"] >= 0.75


@pytest.mark.parametrize(
    "key", ["unseen", "another key", None], ids=["the session's key", "a key that is not the session", "no key"]
)
def test_events_are_joined_and_sorted_by_their_time(key: str | None, running: Running) -> None:
    name = f"unseen {key}"
    sender = Sender(running.servers)
    sender.send(INVOCATIONS, event("tool.returned", name, 2, call_id="c", response="found"), key, 1)
    sender.send(INVOCATIONS, event("tool.called", name, 1, call_id="c"), key, 2)
    sender.send(INVOCATIONS, event("session.ended", name, 3), key, 3)

    running.until(lambda: name in running.sessions())

    session = running.sessions()[name]
    assert [each["type"] for each in session["events"]] == ["tool.called", "tool.returned", "session.ended"]
    assert session["segment"] == 0


def test_a_reference_is_read_from_the_references_topic(running: Running) -> None:
    sender = Sender(running.servers)
    expected = {"final_response": {"parts": [{"text": "It ships today."}]}}
    sender.send("references", expected, "order", 3)

    def value(name: str) -> float | None:
        """Returns the score of a session with this reference; None if the session came before the reference."""
        answer = {"final_response": {"parts": [{"text": "It ships today."}]}, "reference_id": "order"}
        sender.send(INVOCATIONS, event("invocation.completed", name, 1, **answer), name, 1)
        sender.send(INVOCATIONS, event("session.ended", name, 2), name, 1)

        def found() -> list[float | None]:
            rows = [row.document for row in running.rows["results"]]
            metric = "response_match_score"
            return [r["value"] for r in rows if (r["session_id"], r["metric"], r["level"]) == (name, metric, "session")]

        running.until(lambda: bool(found()))
        return found()[0]

    names = (f"refers {number}" for number in range(20))
    # The topic is read concurrently with the inputs, so the reference can arrive later.
    assert 1.0 in map(value, names)


# --- the end of a worker


def test_a_worker_exits_with_0_after_sigterm_and_its_log_is_plain(emitted: Running) -> None:
    emitted.worker.terminate(30)

    lines = emitted.log.splitlines()
    assert "\x1b" not in emitted.log
    assert len(lines) == len(set(lines))
    warnings = [line for line in lines if " INFO traceweir." not in line]
    expected = (
        " WARNING traceweir.streams.worker.runtime.dead_letter_log: ",
        " WARNING traceweir.streams.worker: every criterion of the config needs a reference, ",
    )
    assert [line for line in warnings if not any(each in line for each in expected)] == []
    assert "received SIGTERM; the worker takes its last checkpoints and leaves its group" in emitted.log
    assert "the worker has ended in order; everything that it processed since its start is committed: " in lines[-1]
    assert " assemble.consumed=" in lines[-1]


def scored(running: Running, session_id: str) -> bool:
    return any(row.document["session_id"] == session_id for row in running.rows["results"])


def test_a_log_for_programs_has_one_object_a_line_from_each_process(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        worker = fleet.start("worker", variables={"TRACEWEIR_LOG_FORMAT": "json", "TRACEWEIR_LOG_LEVEL": "debug"})
        worker.until_ready()
        (scoring,) = worker.children()
        os.kill(scoring, signal.SIGKILL)
        worker.wait_for_log("another process replaces it")
        worker.terminate(30)

    lines = [json.loads(line) for line in worker.log.read_text().splitlines()]
    assert {line["logger"].partition(".")[0] for line in lines} >= {"traceweir"}
    assert all({"timestamp", "level", "logger", "message", "process"} <= set(line) for line in lines)


async def test_traces_leave_over_otlp_from_both_processes_and_metrics_from_one(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))

    def score_one(variables: dict[str, str]) -> None:
        with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
            worker = fleet.start("worker", variables=variables)
            with Committed(broker.bootstrap_servers, "traceweir.", "traceweir.assemble-score-gate") as committed:
                running, sender = Running(broker.bootstrap_servers, worker, committed), Sender(broker.bootstrap_servers)
                sender.send(INVOCATIONS, event("session.ended", "s"), "s", 0)
                sender.send(TRACES, trace("a", "s"), "s", 0)
                running.until(partial(scored, running, "s"))
                time_left.wait(DEADLINE_S)
            worker.terminate(30)

    time_left = threading.Event()
    async with http_target() as target:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": target.url, "OTEL_TRACES_SAMPLER": "always_on"}
        scoring = asyncio.create_task(asyncio.to_thread(score_one, variables))
        try:
            await target.until(lambda arrived: len(names_of_spans(arrived)) >= 5)
        finally:
            time_left.set()
            await scoring

    assert set(names_of_spans(target)) == {
        "assemble", "score", "gate", "evaluate tool_trajectory_avg_score", "evaluate response_match_score",
    }  # fmt: skip
    assert len({span.trace_id for span in spans_of(target)}) == 1
    metrics = [request for request in target.arrived if request.path == "/v1/metrics"]
    assert b"traceweir.records.consumed" in metrics[-1].body  # the last metrics leave at the end of the worker


def spans_of(target: HttpTarget) -> list[Any]:
    return [span for request in target.arrived if request.path == "/v1/traces" for span in request.spans]


def names_of_spans(target: HttpTarget) -> list[str]:
    return [span.name for span in spans_of(target)]


def test_an_endpoint_for_traces_that_does_not_answer_stops_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_SAMPLER": "always_on"}
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        worker = fleet.start("worker", variables=variables)
        with Committed(broker.bootstrap_servers, "traceweir.", "traceweir.assemble-score-gate") as committed:
            running, sender = Running(broker.bootstrap_servers, worker, committed), Sender(broker.bootstrap_servers)
            sender.send(INVOCATIONS, event("session.ended", "s"), "s", 0)
            sender.send(TRACES, trace("a", "s"), "s", 0)
            running.until(partial(scored, running, "s"))
        worker.terminate(30)
    assert "opentelemetry" not in worker.log.read_text()


def test_a_killed_scoring_process_is_replaced(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        worker = fleet.start("worker")
        with Committed(broker.bootstrap_servers, "traceweir.", "traceweir.assemble-score-gate") as committed:
            running, sender = Running(broker.bootstrap_servers, worker, committed), Sender(broker.bootstrap_servers)
            for name in ("before", "after"):
                sender.send(INVOCATIONS, event("session.ended", name), name, 0)
                sender.send(TRACES, trace(name, name), name, 0)
                running.until(partial(scored, running, name))
                if name == "before":
                    (scoring,) = worker.children()
                    os.kill(scoring, signal.SIGKILL)
        worker.terminate(30)
    assert "the scoring process ended unexpectedly (signal 9); another process replaces it" in worker.log.read_text()


def test_a_worker_exits_with_0_after_sigterm_during_its_start(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        worker = stack.enter_context(Fleet(address, "traceweir.", tmp_path, config)).start("worker")
        stack.enter_context(silent.accept()[0])  # the worker looks for its topics
        worker.terminate(30)
    assert worker.log.read_text() == "received SIGTERM during the start; the worker has read nothing, and ends\n"


def test_a_worker_without_its_broker_exits_with_0_after_sigterm(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with ExitStack() as broker:
        servers = broker.enter_context(EmbeddedBroker()).bootstrap_servers
        with Fleet(servers, "traceweir.", tmp_path, config) as fleet:
            worker = fleet.start("worker")
            worker.until_ready()
            broker.close()
            worker.wait_for_log("Failed fetch messages")
            worker.terminate(30)
    assert "Traceback" not in worker.log.read_text()


def test_a_worker_exits_at_once_when_an_orderly_stop_takes_too_long(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        worker = fleet.start("worker", hanging=True)
        deadline = time.monotonic() + DEADLINE_S
        while "took over partitions" not in worker.log.read_text():
            assert not worker.ended
            assert time.monotonic() < deadline
            time.sleep(0.05)

        worker.terminate(30, EXIT_HARD)
        assert "did not stop within 1 s and exits at once" in worker.log.read_text()
