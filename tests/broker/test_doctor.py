"""The doctor names what is wrong around a worker, per producer, with the way out; and it shows no secret."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.support.batches import send_claiming
from tests.support.command_line import Run

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import ALL_STAGES, STAGES
from traceweir.streams.intake.spans import reader
from traceweir.streams.intake.spans.reader import TraceRecords
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.testing import event, trace
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.broker

Doctor = Callable[..., tuple[object, list[dict[str, str]]]]


@pytest.fixture
def doctor(embedded_broker: EmbeddedBroker, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Returns a function that runs the command and returns its exit code and findings."""
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    monkeypatch.setenv("TRACEWEIR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TRACEWEIR_EMBEDDER", "none")
    for stages in (STAGES, ALL_STAGES):
        create_topics(Settings(), stages)

    def check(*arguments: str) -> tuple[object, list[dict[str, str]]]:
        ended = run("doctor", "--json", *arguments)
        return ended.code, json.loads(ended.out)

    return check


def put(topic: str, *records: tuple[str | None, bytes, int]) -> None:
    producer = Producer({"bootstrap.servers": Settings().kafka_bootstrap_servers, "log_level": 0})
    for key, value, partition in records:
        producer.produce(topic, value, key, partition)
    assert producer.flush(30) == 0


def of(findings: list[dict[str, str]], check: str) -> list[tuple[str, str]]:
    return [(found["state"], found["text"]) for found in findings if found["check"] == check]


def said(session: str, **changes: Any) -> bytes:
    return json.dumps(event("invocation.started", session, user_content="hi", app_name="shop") | changes).encode()


def test_a_sound_deployment_has_no_failure(doctor: Doctor) -> None:
    home = partition_of(b"s", 4)
    put("traceweir.invocations", ("s", said("s"), home))
    put("traceweir.traces", (None, json.dumps(trace("s")).encode(), home))
    code, findings = doctor()

    assert [found for found in findings if found["state"] in {"warning", "failure"}] == []
    assert code == 0
    assert of(findings, "inputs") == [
        ("ok", "traceweir.invocations, shop: 1 records of the last minutes can be read"),
        ("ok", "traceweir.traces, a producer without a name: 1 records of the last minutes can be read"),
    ]


def test_each_producer_learns_what_is_wrong_with_its_records(doctor: Doctor) -> None:
    home = partition_of(b"s", 4)
    put(
        "traceweir.invocations",
        ("s", said("s"), (home + 1) % 4),
        ("s", said("s"), home),
        (None, said("s", missing=["arguments: set CAPTURE=true"]), home),
        (None, b'{"app_name": "b\\u00fccher\\u001b[31m", "type": "invocation.started"}', 0),
        (None, b"no json", 1),
    )
    code, findings = doctor()

    inputs = of(findings, "inputs")
    assert code == 1
    texts = [text for _, text in inputs]
    assert any("shop: 1 of 2 records with the session id as key are not where" in text for text in texts)
    assert any("shop: 1 events say: arguments: set CAPTURE=true" in text for text in texts)
    (named,) = [text for text in texts if "bücher" in text]
    assert "1 of 1 records cannot be read" in named
    assert named.isprintable()
    assert any(
        "a producer without a name: 1 of 1 records cannot be read; the first: not_json" in text for text in texts
    )


@pytest.mark.usefixtures("restored_fetcher")
def test_a_batch_that_cannot_be_decompressed_is_named_and_hides_no_other_record(doctor: Doctor) -> None:
    home = partition_of(b"s", 4)
    for topic in ("traceweir.invocations", "otlp_spans"):
        asyncio.run(send_claiming(Settings().kafka_bootstrap_servers, topic, 6, partition=home))
    put("traceweir.invocations", ("s", said("s"), home))
    code, findings = doctor("--stages", ",".join(ALL_STAGES))

    assert code == 1
    named = "1 of 1 {} cannot be read; the first: unreadable_batch: partition {}, offsets 0 to 2, a batch of 3 records compressed"
    inputs = of(findings, "inputs")
    for topic, unit in (("traceweir.invocations", "records"), ("otlp_spans", "traces")):
        (text,) = [text for state, text in inputs if state == "failure" and text.startswith(topic)]
        assert named.format(unit, home) in text
    assert ("ok", "traceweir.invocations, shop: 1 records of the last minutes can be read") in inputs


def test_spans_in_an_envelope_that_workers_read_are_read(doctor: Doctor) -> None:
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1" * 32, "spanId": "2" * 16, "name": "x"}]}]}]}
    put("otlp_spans", (None, b"\0\0\0\0\7" + json.dumps(spans).encode(), 0))
    _, findings = doctor("--stages", ",".join(ALL_STAGES))

    assert [text for state, text in of(findings, "inputs") if state == "failure"] == []


def test_a_record_of_the_future_is_a_sign_of_a_wrong_clock(doctor: Doctor) -> None:
    producer = Producer({"bootstrap.servers": Settings().kafka_bootstrap_servers, "log_level": 0})
    producer.produce("traceweir.invocations", said("s"), timestamp=int(time.time() * 1000) + 3_600_000)
    assert producer.flush(30) == 0
    code, findings = doctor()

    ((state, text),) = of(findings, "clock")
    assert (code, state) == (0, "warning")
    assert text.startswith("the newest record of traceweir.invocations is dated 3")


def spans(service: str, trace_id: bytes, **attributes: str) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    now = time.time_ns()
    span = resource.scope_spans.add().spans.add(
        trace_id=trace_id, span_id=trace_id[:8], name="chat m", start_time_unix_nano=now, end_time_unix_nano=now + 1
    )
    for key, value in {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **attributes}.items():
        span.attributes.add(key=key).value.string_value = value
    return bytes(request.SerializeToString())


def test_a_service_learns_that_its_spans_name_no_session_and_leave_content_out(doctor: Doctor) -> None:
    named = {"gen_ai.conversation.id": "s", "gen_ai.input.messages": '[{"role": "user", "parts": []}]'}
    put(
        "otlp_spans",
        (None, spans("bare", b"a" * 16), 0),
        (None, spans("named", b"b" * 16, **named), 1),
        (None, b"?", 2),
    )
    code, findings = doctor("--stages", "collect,assemble,score,gate")

    assert code == 1
    texts = [text for _, text in of(findings, "inputs") if text.startswith("otlp_spans")]
    assert any("bare: 1 of 1 traces name no session" in text for text in texts)
    assert any("bare: " in text and "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in text for text in texts)
    assert not any("named: " in text and "no session" in text for text in texts)
    assert any("1 of 1 traces cannot be read" in text for text in texts)


def test_a_record_that_is_too_large_for_a_session_is_named(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWEIR_SEGMENT_MAX_BYTES", "2000")
    put("traceweir.invocations", (None, said("s", user_content="x" * 3_000), 0))
    code, findings = doctor()
    ((state, text),) = [found for found in of(findings, "inputs") if "shop" in found[1]]
    assert (code, state) == (1, "failure")
    assert "the first: too_large" in text


def test_a_trace_on_which_reading_raises_hides_no_other_service(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reader.read_trace

    def raising(found: list[Span]) -> TraceRecords:
        if found[0].resource.get("service.name") == "odd":
            raise KeyError("?")
        return read(found)

    monkeypatch.setattr(reader, "read_trace", raising)
    put("otlp_spans", (None, spans("odd", b"a" * 16), 0), (None, spans("sound", b"b" * 16), 1))
    code, findings = doctor("--stages", "collect,assemble,score,gate")
    texts = [text for _, text in of(findings, "inputs")]
    assert code == 1
    assert any("odd: 1 of 1 traces cannot be read; the first: reading trace 6161" in text for text in texts)
    assert any("sound: " in text for text in texts)


def test_topics_a_key_and_an_endpoint_that_are_missing_are_named_and_the_other_checks_go_on(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "eval.json"
    config.write_text('{"criteria": {"hallucinations_v1": 0.5}}')
    monkeypatch.setenv("TRACEWEIR_TOPIC_PREFIX", "none.")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    code, findings = doctor("--config", str(config))

    assert code == 1
    assert any("'none.sessions'" in text or "none.sessions" in text for _, text in of(findings, "topics"))
    assert [state for state, _ in of(findings, "telemetry")] == ["warning"]
    ((state, text),) = of(findings, "judges")
    assert (state, "GEMINI_API_KEY" in text) == ("failure", True)
    monkeypatch.setenv("GEMINI_API_KEY", "s3cr3t-s3cr3t")
    _, findings = doctor("--config", str(config))
    assert [state for state, _ in of(findings, "judges")] == ["ok"]
    assert "s3cr3t" not in json.dumps(findings)


def test_without_a_broker_the_other_checks_are_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    monkeypatch.setenv("TRACEWEIR_EMBEDDER", "none")
    ended = run("doctor", "--json")
    findings = json.loads(ended.out)
    assert ended.code == 1
    assert [state for state, _ in of(findings, "broker")] == ["failure"]
    assert [state for state, _ in of(findings, "disk")] == ["ok"]
    lines = run("doctor")
    assert "failure  broker  no Kafka broker answered" in lines.out
    assert "1 failure" in lines.err


def test_judges_are_asked_only_with_the_option(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    monkeypatch.setenv("TRACEWEIR_EMBEDDER", "none")
    monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("TRACEWEIR_JUDGE_API_KEY", "s3cr3t-s3cr3t")
    monkeypatch.setenv("TRACEWEIR_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    config = tmp_path / "eval.json"
    options = {"judge_model": "openai/stub"}
    config.write_text(json.dumps({"criteria": {"safety_v1": {"threshold": 0.5, "judge_model_options": options}}}))

    silent, asked = (
        json.loads(run("doctor", "--json", "--config", str(config), *more).out) for more in ((), ("--ask",))
    )

    assert of(silent, "judge asked") == []
    ((state, text),) = of(asked, "judge asked")
    assert (state, text.startswith("openai/stub gave no verdict for safety_v1 (judge_unavailable): ")) == (
        "failure",
        True,
    )
    assert "s3cr3t" not in json.dumps(asked)
