"""`traceweir dlq` on the embedded broker lists, shows and sends dead letters; a replayed record is scored once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from tests.audit.committed import Committed
from tests.support.batches import claim_codec, rename_header, with_codec
from tests.support.dlq import Dlq, letter, put_letters
from tests.support.ledger import home
from tests.support.results import make_score
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.demo.observer import Observer
from traceweir.streams.testing import event, trace
from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter, DeadLetters, DeadLettersError
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("dlq")]

DEADLINE_S = 60
ZSTD, UNKNOWN = 4, 6


@pytest.fixture
def dlq(embedded_broker: EmbeddedBroker, capfdbinary: pytest.CaptureFixture[bytes]) -> Dlq:
    create_topics(Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers))
    return Dlq(embedded_broker.bootstrap_servers, "traceweir.", capfdbinary)


def rows(dlq: Dlq, topic: str) -> list[Message]:
    """Returns the records of one topic. A header name that is not UTF-8 would end this consumer."""
    options = {
        "bootstrap.servers": dlq.servers,
        "group.id": "reader-of-tests",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    consumer, found, ends = Consumer(options), list[Message](), 0
    consumer.assign([TopicPartition(dlq.prefix + topic, number, OFFSET_BEGINNING) for number in range(4)])
    while ends < 4:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"{topic} does not end"
        if message.error() is None:
            found.append(message)
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ends += 1
    consumer.close()
    return found


def test_spans_are_not_replayed_to_a_topic_that_is_missing_and_other_records_are(dlq: Dlq) -> None:
    put_letters(dlq.servers, [letter(0), letter(1, prefix="", topic="otlp_spans", stage="collect")])

    ended = dlq("replay", "--all", "--json")

    outcomes = {each["outcome"]: each for each in ended.lines if "id" in each}
    assert set(outcomes) == {"sent", "refused"}
    assert outcomes["refused"]["because"].startswith("topic 'otlp_spans' does not exist")


async def test_a_broker_that_stops_during_reading_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceweir.streams.worker.kafka.bounded_reader.STALLED_S", 1.0)
    with EmbeddedBroker() as broker:
        settings = Settings(kafka_bootstrap_servers=broker.bootstrap_servers)
        create_topics(settings)
        put_letters(broker.bootstrap_servers, [letter(0), letter(1)])

        async def read() -> None:
            async with DeadLetters(settings) as letters:
                async for _ in letters.matching(DeadLetterFilter()):
                    broker.__exit__(None, None, None)

        with pytest.raises(DeadLettersError, match="check that the brokers run"):
            await read()


def test_list_prints_the_latest_dead_letters_and_their_number(dlq: Dlq) -> None:
    dlq.put([letter(number, reason="empty" if number % 2 else "late") for number in range(8)])

    assert dlq("list", "--limit", "3").err == "the latest 3 of 8; --limit shows more\n"
    everything = dlq("list")
    assert (everything.code, len(everything.out.splitlines()), everything.err) == (0, 8, "")
    late = dlq("list", "--reason", "late", "--stage", "assemble", "--topic", "traces", "--since", "1h", "--json")
    assert [(line["id"], line["reason"], line["offset"]) for line in late.lines] == [
        ("0:0", "late", 0),
        ("0:1", "late", 4),
        ("2:0", "late", 2),
        ("2:1", "late", 6),
    ]
    assert dlq("list", "--until", "1h").out == b"no dead letters match\n"


def test_show_escapes_the_value_and_raw_writes_it_unchanged(dlq: Dlq) -> None:
    value = b'{"a": "\x1b[31m"}\n\xff'
    dlq.put([letter(0, value=value), letter(4, value=b"x" * 70_000)])

    shown = dlq("show", "0:0")
    assert (shown.code, shown.out.splitlines()[-1]) == (0, rb'{"a": "\x1b[31m"}\n\xff')
    assert dlq("show", "0:0", "--raw") == (0, value, "")
    cut = dlq("show", "0:1", "--raw")
    assert (cut.code, cut.out) == (1, b"x" * 65_536)
    assert "the first 65536 of 70000 bytes; traceweir.traces[0]@4 no longer has the whole record" in cut.err
    missing = dlq("show", "3:5")
    assert (missing.code, missing.out) == (1, b"")
    assert "has no dead letter 3:5" in missing.err


def test_a_dry_run_reports_the_records_and_sends_none(dlq: Dlq) -> None:
    dlq.put([letter(0), letter(1), letter(2, value=b"x" * 70_000)])

    ended = dlq("replay", "--all", "--dry-run")

    assert ended.out.decode().splitlines() == [
        "would send 0:0 (late) to traceweir.traces[0]",
        "would send 1:0 (late) to traceweir.traces[1]",
        "2 dead letters would be sent: 2 to traceweir.traces; 1 cannot be sent",
    ]
    assert ended.err.startswith("2:0 is not sent: only the first 65536 of 70000 bytes are kept")
    assert ended.code == 1
    assert (len(rows(dlq, "traces")), len(rows(dlq, "dead-letters"))) == (0, 3)


def test_a_dead_letter_is_sent_once_unless_again_is_given(dlq: Dlq) -> None:
    dlq.put([letter(number) for number in range(3)])

    first = dlq("replay", "0:0", "1:0", "--json")
    assert [(line["id"], line["outcome"], line["topic"]) for line in first.lines] == [
        ("0:0", "sent", "traceweir.traces"),
        ("1:0", "sent", "traceweir.traces"),
    ]
    assert dlq.states() == {"0:0": "replayed", "1:0": "replayed", "2:0": "open"}
    assert dlq("list", "--open", "--json").lines[0]["id"] == "2:0"
    second = dlq("replay", "--all")
    assert second.out.decode() == (
        "1 dead letter sent: 1 to traceweir.traces; 2 replayed before (--again sends them again)\n"
    )
    assert sorted(row.key() for row in rows(dlq, "traces")) == [b"key 0", b"key 1", b"key 2"]
    assert dlq("replay", "0:0", "--again").out == b"1 dead letter sent: 1 to traceweir.traces\n"
    assert len(rows(dlq, "traces")) == 4


def test_a_mended_dead_letter_is_sent_once_with_its_new_value(dlq: Dlq, tmp_path: Path) -> None:
    broken = [
        {"type": "session.ended", "session_id": number, "occurred_at": "2026-01-31T12:00:00Z"} for number in range(4)
    ]
    dlq.put(
        [
            letter(n, topic="invocations", reason="invalid", value=json.dumps(each).encode())
            for n, each in enumerate(broken)
        ]
    )
    assert dlq("replay", "3:0").code == 0

    exported = dlq("export", "--reason", "invalid")
    assert (exported.code, exported.err) == (0, "not exported, because replayed before: 1 dead letter\n")
    lines = exported.lines
    lines[0]["value"]["session_id"], lines[1]["value"]["session_id"] = "s0", True  # true is not 1
    file = tmp_path / "letters.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    planned, first, second = (dlq("replay", "--from", str(file), *more) for more in (["--dry-run"], [], []))

    assert planned.out.decode().splitlines()[0] == "would send 0:0 (invalid) to traceweir.invocations[0]"
    for ended in (first, second):
        assert (ended.code, ended.err) == (1, UNCHANGED)
    assert first.out.decode() == "2 dead letters sent: 2 to traceweir.invocations; 1 cannot be sent\n"
    assert second.out.decode().startswith("0 dead letters sent; 2 replayed before")
    sent = {row.key(): json.loads(row.value())["session_id"] for row in rows(dlq, "invocations")}
    assert sent == {b"key 0": "s0", b"key 1": True, b"key 3": 3}
    assert sent[b"key 1"] is True
    assert dlq.states() == {"0:0": "replayed", "1:0": "replayed", "2:0": "open", "3:0": "replayed"}


UNCHANGED = "2:0 is not sent: its value is unchanged; mend the value, or replay the dead letter without --from\n"


def test_a_file_without_a_usable_line_sends_nothing(dlq: Dlq, tmp_path: Path) -> None:
    dlq.put([letter(0)])
    file = tmp_path / "letters.jsonl"
    file.write_text('{"id": "0:0"}')
    ended = dlq("replay", "--from", str(file))
    assert (ended.code, ended.out) == (1, b"")
    assert "document 1: has no value; write" in ended.err
    assert "contains no dead letter, so nothing is sent" in ended.err
    assert dlq("export", "--reason", "poison") == (0, b"", "no dead letters match, so nothing is exported\n")
    missing, gone = dlq("export", "0:9"), dlq("replay", "--from", str(tmp_path / "nowhere"))
    assert (missing.code, "has no dead letter 0:9" in missing.err) == (1, True)
    assert (gone.code, "cannot be opened" in gone.err) == (2, True)


WHOLE = b"x" * 300_000


@pytest.mark.parametrize(
    ("partition", "offset", "there"),
    [(1, 1, True), (1, 0, False), (1, 2, False), (2, 0, False), (9, 0, False)],
    ids=["there", "another record", "not there yet", "an empty partition", "no partition"],
)
def test_a_truncated_value_is_sent_whole_if_its_topic_still_has_the_record(
    partition: int, offset: int, there: bool, dlq: Dlq
) -> None:
    producer = Producer({"bootstrap.servers": dlq.servers, "log_level": 0})
    for value in (b"another", WHOLE):
        producer.produce("traceweir.sessions", value, b"s", 1)
    producer.flush(10)
    cut = replace(letter(1, topic="sessions", value=WHOLE), offset=offset)
    dlq.put([cut])
    if partition != 1:
        forged = [*cut.wire_headers(), ("traceweir.partition", str(partition).encode())]
        producer.produce("traceweir.dead-letters", cut.wire_value(), b"s", 1, headers=forged)
        producer.flush(10)
    name = "1:0" if partition == 1 else "1:1"

    raw, replayed = dlq("show", name, "--raw"), dlq("replay", name)

    assert (raw.code, raw.out) == ((0, WHOLE) if there else (1, WHOLE[:65_536]))
    assert replayed.code == (0 if there else 1)
    sent = [row.value() for row in rows(dlq, "sessions") if row.headers()]
    assert sent == [WHOLE] * there


def test_a_score_that_was_not_exported_goes_whole_to_the_topic_on_which_its_exporter_looks(dlq: Dlq) -> None:
    """A dead letter that names no exporter is none of an exporter, and is not sent."""
    whole = make_score("s", rationale="x" * 300_000).model_dump_json().encode()
    producer = Producer({"bootstrap.servers": dlq.servers, "log_level": 0})
    producer.produce("traceweir.results", b"another", b"s", 1)
    producer.produce("traceweir.results", whole, b"s", 1)
    producer.flush(10)
    about: dict[str, Any] = {"topic": "results", "stage": "export", "reason": "given_up", "value": whole}
    dlq.put([letter(1, group="my@group", **about), letter(1, **about)])

    replayed = dlq("replay", "--stage", "export", "--json")

    assert [(line["id"], line["outcome"]) for line in replayed.lines if "id" in line] == [
        ("1:1", "refused"), ("1:0", "sent"),
    ]  # fmt: skip
    assert "is not an input of a stage" in replayed.lines[0]["because"]
    (row,) = rows(dlq, "export-waiting")
    place = ("traceweir.first_place", b"traceweir.results-1@1")
    own = [("traceweir.replay", b"1:0"), place, ("traceweir.timestamp", b"1000")]
    assert (row.partition(), row.key(), row.value(), row.headers()) == (1, b"my@group@1@1000", whole, own)


def batch_of(values: Sequence[bytes], codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for number, value in enumerate(values):
        builder.append(number, timestamp=1_000, key=b"k", value=value, headers=[("h", b"1")])
    return bytes(builder.build())


def test_the_records_of_a_batch_are_sent_once_when_it_can_be_decompressed(dlq: Dlq) -> None:
    raw = batch_of([b"one", b"two"], ZSTD)
    about = {"reason": "unreadable_batch"}
    dlq.put([letter(0, value=raw, **about), letter(4, value=with_codec(raw, UNKNOWN), **about)])

    replayed = dlq("replay", "--all", "--json")

    assert [(line["id"], line["outcome"]) for line in replayed.lines if "id" in line] == [
        ("0:1", "refused"), ("0:0", "sent"),
    ]  # fmt: skip
    assert replayed.lines[0]["because"].startswith("its batch still cannot be read (UnsupportedCodecError")
    found = [(row.partition(), row.key(), row.value(), dict(row.headers() or ())) for row in rows(dlq, "traces")]
    own = {"h": b"1", "traceweir.replay": b"0:0", "traceweir.timestamp": b"1000"}
    first, second = ({"traceweir.first_place": b"traceweir.traces-0@%d" % offset} for offset in range(2))
    assert found == [(0, b"k", b"one", own | first), (0, b"k", b"two", own | second)]
    assert dlq.states() == {"0:0": "replayed", "0:1": "open"}


async def send_large(servers: str, values: Sequence[bytes], codec: int) -> bytes:
    """Sends a batch to the topic `traces`, and returns it as the broker stores it."""
    async with AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=1 << 20) as producer:
        batch = producer.create_batch()
        for value in values:
            batch.append(key=b"k", value=value, timestamp=None)
        if codec:
            claim_codec(batch, codec)
        raw = bytes(batch._build())  # noqa: SLF001  # aiokafka does not return it
        await (await producer.send_batch(batch, "traceweir.traces", partition=0))
    return raw[:12] + bytes(4) + raw[16:]


async def test_the_records_of_a_large_batch_are_read_from_their_topic(dlq: Dlq) -> None:
    values = [b"1" * 40_000, b"2" * 40_000]
    raw = await send_large(dlq.servers, values, 0)
    dlq.put([replace(letter(0, value=with_codec(raw, UNKNOWN), reason="unreadable_batch"), offset=1)])

    await asyncio.to_thread(dlq, "replay", "--all")

    assert [row.value() for row in await asyncio.to_thread(rows, dlq, "traces")] == values * 2


async def test_a_large_batch_that_still_cannot_be_decompressed_is_refused(dlq: Dlq) -> None:
    raw = await send_large(dlq.servers, [b"1" * 40_000, b"2" * 40_000], UNKNOWN)
    dlq.put([replace(letter(0, value=raw, reason="unreadable_batch"), offset=1)])

    replayed = await asyncio.to_thread(dlq, "replay", "--all", "--json")

    (step,) = [line for line in replayed.lines if "id" in line]
    assert step["because"].startswith("its batch still cannot be read (UnsupportedCodecError")


def test_a_missing_dead_letter_is_reported_and_the_others_are_sent(dlq: Dlq) -> None:
    dlq.put([letter(0)])
    ended = dlq("replay", "0:0", "0:9", "7:0")
    assert (ended.code, ended.out) == (1, b"1 dead letter sent: 1 to traceweir.traces\n")
    assert [line.split(";")[0] for line in ended.err.splitlines()] == [
        "traceweir.dead-letters has no dead letter 0:9",
        "traceweir.dead-letters has no dead letter 7:0",
    ]


def test_a_missing_topic_is_reported_with_the_command_that_creates_it(dlq: Dlq) -> None:
    ended = replace(dlq, prefix="nobody.")("list")
    assert (ended.code, ended.out) == (1, b"")
    assert ended.err == "topic 'nobody.dead-letters' does not exist: run `traceweir topics create`\n"


async def put_foreign_records(servers: str) -> None:
    """Writes a stranger's record, and a dead letter, each with a header whose name is not UTF-8."""
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        batch = producer.create_batch()
        headers = [*letter(0).wire_headers(), ("NAME", b"x")]
        batch.append(key=None, value=b"stranger", timestamp=None, headers=[("NAME", b"x")])
        batch.append(key=None, value=b"ours", timestamp=None, headers=headers)
        rename_header(batch, b"NAME", b"\xff\xfeME")
        await (await producer.send_batch(batch, "traceweir.dead-letters", partition=0))


def test_foreign_records_with_any_header_names_are_skipped_and_counted(dlq: Dlq) -> None:
    asyncio.run(put_foreign_records(dlq.servers))

    ended = dlq("list", "--json")
    assert [line["id"] for line in ended.lines] == ["0:1"]
    assert ended.err == "traceweir.dead-letters: 1 record omitted, because not a dead letter of Traceweir\n"
    assert rb"header:      \xff\xfeME: x" in dlq("show", "0:1").out
    assert dlq("replay", "--all").code == 0
    (row,) = rows(dlq, "traces")
    assert row.headers()[0] == (r"\xff\xfeME", b"x")


# --- with a worker


@pytest.fixture
def working(dlq: Dlq, tmp_path: Path) -> Iterator[Committed]:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": 1.0}}))
    with (
        Fleet(dlq.servers, dlq.prefix, tmp_path, config) as fleet,
        Committed(dlq.servers, dlq.prefix, "traceweir.assemble-score-gate") as committed,
    ):
        fleet.start("worker")
        yield committed


def until(committed: Committed, topic: str, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while len(committed.rows[topic]) < count:
        if time.monotonic() > deadline:
            pytest.fail(f"{topic} has {len(committed.rows[topic])} records, not {count}")
        committed.read(0.1)


def test_a_record_of_a_fast_clock_is_scored_once_after_two_replays(dlq: Dlq, working: Committed) -> None:
    at_home, in_two_hours = home("s"), int((time.time() + 7_200) * 1000)
    producer = Producer({"bootstrap.servers": dlq.servers, "log_level": 0})
    records = [
        ("invocations", event("session.ended", "s", 3), at_home),
        ("traces", trace(1, "s"), (at_home + 1) % 4),  # on a wrong partition: the replayed record is forwarded
    ]
    for topic, document, partition in records:
        value = json.dumps(document).encode()
        producer.produce(f"traceweir.{topic}", value, b"other", partition, timestamp=in_two_hours)
    producer.flush(10)
    until(working, "dead-letters", 2)
    assert {line["reason"] for line in dlq("list", "--json").lines} == {"future_timestamp"}

    first, second = dlq("replay", "--reason", "future_timestamp"), dlq("replay", "--all")
    until(working, "network", 1)
    producer.produce(
        "traceweir.invocations", json.dumps(event("session.ended", "s", 9)).encode(), b"s", at_home
    )  # It follows any record that the second replay could have sent.
    producer.flush(10)
    until(working, "sessions", 2)

    assert first.out == b"2 dead letters sent: 1 to traceweir.invocations, 1 to traceweir.traces\n"
    assert second.out.startswith(b"0 dead letters sent; 2 replayed before")
    sessions = [(len(session["events"]), len(session["traces"])) for session in working.sessions()]
    assert sessions == [(1, 1), (1, 0)]
    trace_metrics = [row.document["metric"] for row in working.rows["results"] if row.document["level"] == "trace"]
    assert sorted(trace_metrics) == ["gate", "trace_value"]
    counts = working.counts()["assemble"]
    assert counts["consumed"] == counts["joined"] + counts["forwarded"] + counts["dead_lettered.future_timestamp"]


def test_a_mended_event_is_joined_once(dlq: Dlq, working: Committed, tmp_path: Path) -> None:
    broken = json.dumps(event("session.ended", "s") | {"user_id": 7}).encode()
    producer = Producer({"bootstrap.servers": dlq.servers, "log_level": 0})
    producer.produce("traceweir.invocations", broken, b"s", home("s"))
    producer.flush(10)
    until(working, "dead-letters", 1)

    (line,) = dlq("export", "--reason", "invalid").lines
    line["value"]["user_id"] = "7"
    (tmp_path / "letters.jsonl").write_text(json.dumps(line))
    assert [dlq("replay", "--from", str(tmp_path / "letters.jsonl")).code for _ in range(2)] == [0, 0]
    until(working, "sessions", 1)

    assert [[each["user_id"] for each in session["events"]] for session in working.sessions()] == [["7"]]
    counts = working.counts()["assemble"]
    assert (counts["consumed"], counts["joined"], counts["dead_lettered.invalid"]) == (2, 1, 1)


def test_the_observer_of_the_demo_does_not_count_replay_marks(dlq: Dlq) -> None:
    dlq.put([letter(0)])
    assert dlq("replay", "--all").code == 0
    dlq.put([letter(0, reason="empty")])
    with Observer(Settings(kafka_bootstrap_servers=dlq.servers)) as observer:
        deadline = time.monotonic() + DEADLINE_S
        while observer.seen.outputs["dead letters: empty"] < 1 and time.monotonic() < deadline:
            observer.poll(0.1)
    assert observer.seen.dead_letters == 2
