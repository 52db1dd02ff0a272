"""Emit on the embedded broker: which records arrive, where, in which order, and which errors are reported."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.cli.main import main
from traceweir.streams.intake.formats.base import DocumentRecords, InputContext
from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.tools.emit import EmitError, EmitReport, emit
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS, EmbeddedBroker
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.topic_options import KAFKAS_BATCH_BYTES

TRACES, INVOCATIONS = "traceweir.traces", "traceweir.invocations"
Arrived = dict[str, list[tuple[int, bytes | None, bytes | None]]]
"""Partition, key and value of each record by topic, in the order of each partition."""


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    return Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)


def records(content: bytes, format_name: str = "traceweir") -> list[DocumentRecords]:
    return list(input_format(format_name).read(read_documents(io.BytesIO(content)), InputContext("chats.json")))


async def send(settings: Settings, content: bytes, format_name: str = "traceweir") -> EmitReport:
    return await emit(settings, records(content, format_name), progress=lambda _: None)


async def arrived(settings: Settings) -> Arrived:
    places = [TopicPartition(topic, partition) for topic in (TRACES, INVOCATIONS) for partition in range(PARTITIONS)]
    consumer = AIOKafkaConsumer(bootstrap_servers=settings.kafka_bootstrap_servers, fetch_max_wait_ms=10)
    await consumer.start()
    try:
        consumer.assign(places)
        await consumer.seek_to_beginning()
        awaited = sum((await consumer.end_offsets(places)).values())
        found: Arrived = defaultdict(list)
        while awaited:
            for place, batch in (await consumer.getmany(timeout_ms=1000)).items():
                found[place.topic] += [(place.partition, record.key, record.value) for record in batch]
                awaited -= len(batch)
    finally:
        await consumer.stop()
    return found


def event(session_id: str, number: int) -> bytes:
    fields = {"type": "tool.called", "session_id": session_id, "name": str(number)}
    return orjson.dumps(fields | {"occurred_at": "2026-03-01T12:00:00Z"})


def lines(*documents: bytes) -> bytes:
    return b"\n".join(documents)


async def test_traces_and_events_reach_their_topic_and_home_partition_byte_for_byte(settings: Settings) -> None:
    trace = b'{"@type": "ReasoningTrace",  "metadata": {"session_id": "s1"}, "n": 1.50}'
    alone = b'{"@type": "ReasoningTrace", "id": "kp:trace:1"}'

    report = await send(settings, lines(event("s1", 0), trace, event("s2", 0), alone))

    assert report == EmitReport(documents=4, sent={TRACES: 2, INVOCATIONS: 2}, problems=())
    found = await arrived(settings)
    assert sorted(found[INVOCATIONS]) == sorted(
        (partition_of(key, PARTITIONS), key, event(key.decode(), 0)) for key in (b"s1", b"s2")
    )
    assert sorted(found[TRACES]) == sorted(
        (partition_of(key, PARTITIONS), key, value) for key, value in ((b"s1", trace), (b"kp:trace:1", alone))
    )


async def test_a_document_of_no_known_type_is_sent_to_invocations_unchanged(settings: Settings) -> None:
    odd = [b"nonsense", b"{}", b'{"type": "tool.called"', b"\xff\xfe\xfd", b'{"@type": NaN}', b"7"]

    report = await send(settings, lines(*odd))

    assert (report.sent, report.problems) == ({TRACES: 0, INVOCATIONS: 6}, ())
    found = await arrived(settings)
    assert sorted((key, value) for _, key, value in found[INVOCATIONS]) == sorted((None, value) for value in odd)


async def test_the_events_of_a_session_stay_in_order(settings: Settings) -> None:
    sent = [event(f"s{number % 7}", number) for number in range(5_000)]

    report = await send(settings, lines(*sent))

    assert report.sent[INVOCATIONS] == 5_000
    by_session: dict[bytes | None, list[bytes | None]] = defaultdict(list)
    for _, key, value in (await arrived(settings))[INVOCATIONS]:
        by_session[key].append(value)
    assert by_session == {b"s%d" % n: sent[n::7] for n in range(7)}


async def test_a_record_over_the_size_limit_is_reported_and_the_others_arrive(settings: Settings) -> None:
    large = event("s1", 1)[:-1] + b', "x": "' + b"x" * 2_000_000 + b'"}'
    nearly = event("s1", 2)[:-1] + b', "x": "' + b"x" * (KAFKAS_BATCH_BYTES - 300) + b'"}'

    report = await send(settings, lines(event("s1", 0), large, nearly, event("s1", 3)))

    assert report.sent[INVOCATIONS] == 3
    (problem,) = report.problems
    assert problem.startswith("document 2: ")
    assert str(KAFKAS_BATCH_BYTES) in problem
    values = [value for _, _, value in (await arrived(settings))[INVOCATIONS]]
    assert values == [event("s1", 0), nearly, event("s1", 3)]


async def test_transcripts_arrive_whole_and_an_invalid_one_is_reported(settings: Settings) -> None:
    chat = {"id": "s1", "messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}
    content = lines(orjson.dumps(chat), b'{"messages": []}', orjson.dumps(chat | {"id": "s2"}))

    report = await send(settings, content, "openai-chat")

    assert (report.documents, report.sent) == (3, {TRACES: 2, INVOCATIONS: 6})
    (problem,) = report.problems
    assert problem.startswith("chats.json: document 2: messages is a list of 0")
    found = await arrived(settings)
    expected = [record for each in records(content, "openai-chat") for record in each.records]
    for topic, kind in ((TRACES, "trace"), (INVOCATIONS, "event")):
        for session_id in ("s1", "s2"):
            values = [record.value for record in expected if (record.kind, record.session_id) == (kind, session_id)]
            assert [value for _, key, value in found[topic] if key == session_id.encode()] == values


async def test_progress_counts_documents(settings: Settings) -> None:
    counted: list[int] = []
    await emit(settings, records(lines(event("s1", 0), b"nonsense", event("s2", 0))), progress=counted.append)
    assert counted == [1, 2, 3]


def test_an_input_without_documents_has_exit_code_1_and_is_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", settings.kafka_bootstrap_servers)
    file = tmp_path / "empty.jsonl"
    file.touch()
    with pytest.raises(SystemExit) as ended:
        main(("emit", str(file)))
    assert ended.value.code == 1
    assert capfd.readouterr() == (
        f"0 documents: 0 to {TRACES}, 0 to {INVOCATIONS}\n",
        f"{file}: contains no document; check that the file is the right one and is not empty\n",
    )


async def test_an_invalid_connection_setting_is_reported_before_any_input_is_read(tmp_path: Path) -> None:
    no_certificate = tmp_path / "ca.pem"
    no_certificate.touch()
    settings = Settings(kafka_security_protocol="SSL", kafka_ssl_cafile=no_certificate)

    def unread() -> Iterator[DocumentRecords]:
        pytest.fail("the input was read")
        yield

    with pytest.raises(KafkaUnreachableError):  # At once; an unreachable broker would be reported after 10 s.
        await emit(settings, unread(), progress=lambda _: None)


async def test_a_wrong_partition_count_is_refused_before_any_record_is_sent(settings: Settings) -> None:
    wrong = settings.model_copy(update={"partitions": 8})
    with pytest.raises(EmitError, match=r"has 4 partitions, expected 8.*TRACEWEIR_PARTITIONS=4"):
        await send(wrong, event("s1", 0))
    assert await arrived(settings) == {}
