"""Recorded sessions on the embedded broker are found by id, complete and in their latest revision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Producer
from tests.support.command_line import Run
from tests.support.eval_sets import case, content, eval_set, invocation, write
from tests.support.scoring import make_session

from traceweir.schemas.events import EVENT
from traceweir.schemas.session import Session
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.lab.evals.kafka_sessions import SessionsUnreadableError, read_sessions
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("eval")]

FIND = [{"name": "find", "args": {"n": 1}}]


def session(session_id: str, answer: str, **changes: Any) -> Session:
    turn = {"invocation_id": f"i{changes.get('segment', 0)}", **invocation("Hi", answer, FIND)}
    recorded = {
        "type": "invocation.recorded",
        "session_id": session_id,
        "invocation_id": turn["invocation_id"],
        "occurred_at": f"2026-01-31T12:00:0{changes.get('segment', 0)}Z",
        "invocation": turn,
    }
    return make_session(session_id, events=[EVENT.validate_json(json.dumps(recorded))], **changes)


def fill(servers: str, sessions: Sequence[Session]) -> None:
    create_topics(Settings(kafka_bootstrap_servers=servers))
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for each in sessions:
        key = each.session_id.encode()
        value = each.model_dump_json(by_alias=True)
        producer.produce("traceweir.sessions", value, key, partition=partition_of(key, 4))
    assert producer.flush(30) == 0


@pytest.fixture
def servers(embedded_broker: EmbeddedBroker) -> str:
    """Returns the address of a broker with session `chat` (segment 0 in two revisions, segment 1) and 40 others."""
    servers = embedded_broker.bootstrap_servers
    sessions = [
        session("chat", "Wrong.", revision=0),
        *(session(f"other-{number}", "Wrong.") for number in range(40)),
        session("chat", "And bye.", segment=1),
        session("chat", "Hello there.", revision=1),
    ]
    fill(servers, sessions)
    return servers


@pytest.fixture
def run_here(run: Run, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs a command in the folder of the test, with the broker in its environment."""
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    monkeypatch.chdir(tmp_path)
    return run


async def test_only_the_requested_sessions_are_returned(servers: str) -> None:
    found = await read_sessions(Settings(kafka_bootstrap_servers=servers), ["chat", "lost"])
    assert found.keys() == {"chat"}
    answers = [each.final_response.text for each in found["chat"].invocations if each.final_response]
    assert answers == ["Hello there.", "And bye."]
    assert await read_sessions(Settings(kafka_bootstrap_servers=servers), []) == {}


async def test_a_broker_that_stops_during_reading_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"s{number}" for number in range(20)]
    with EmbeddedBroker() as broker:
        fill(broker.bootstrap_servers, [session(name, "Hello.") for name in names])
        monkeypatch.setattr("traceweir.streams.worker.kafka.bounded_reader.STALLED_S", 1.0)
        getmany = AIOKafkaConsumer.getmany

        async def stop_broker_after_read(*asked: Any, **options: Any) -> Any:
            found = await getmany(*asked, **options)
            if found:
                broker.__exit__(None, None, None)
            return found

        monkeypatch.setattr(AIOKafkaConsumer, "getmany", stop_broker_after_read)
        with pytest.raises(SessionsUnreadableError, match="check that the brokers run"):
            await read_sessions(Settings(kafka_bootstrap_servers=broker.bootstrap_servers), names)


def test_references_are_compared_with_recorded_sessions(run_here: Run, tmp_path: Path) -> None:
    turns = [invocation("Hi", "Hello there.", FIND), invocation("Hi", "And bye.", FIND)]
    write(tmp_path / "a.json", eval_set(case("chat", *turns), case("renamed", *turns), case("lost", *turns)))

    ended = run_here("eval", "a.json", "--from-kafka", "--match", "renamed=chat", "--json")

    found = {each["eval_id"]: (each["status"], each["problem"]) for each in map(json.loads, ended.out.splitlines())}
    assert found == {
        "chat": ("PASSED", None),
        "renamed": ("PASSED", None),
        "lost": ("NOT_EVALUATED", "there is no recorded session under the id 'lost'"),
    }
    assert ended.code == 1


def test_a_captured_session_passes_its_own_case_and_is_captured_once(run_here: Run, tmp_path: Path) -> None:
    command = ("evalset", "add", "chat", "--to", "new.evalset.json")
    first, second = run_here(*command), run_here(*command)
    assert (first.code, second.code) == (0, 0)
    assert first.err == "new.evalset.json: case 'chat' is added (2 invocations)\n"
    assert second.err == "new.evalset.json: case 'chat' already exists, unchanged (2 invocations)\n"
    [captured] = json.loads((tmp_path / "new.evalset.json").read_bytes())["eval_cases"]
    assert captured["conversation"][0]["user_content"] == content("Hi")
    assert run_here("eval", "new.evalset.json", "--from-kafka").code == 0

    missing = run_here("evalset", "add", "lost", "--to", "new.evalset.json")
    assert (missing.code, missing.err) == (
        1,
        (
            "the sessions topic does not have the session 'lost'; it has a session when the session is closed, at the latest "
            "300 s after the last event (TRACEWEIR_IDLE_GAP_S), and until the topic's retention deletes it\n"
        ),
    )


def test_an_unreachable_broker_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    ended = run("evalset", "add", "chat", "--to", str(tmp_path / "new.json"))
    assert (ended.code, "127.0.0.1:1" in ended.err, "Traceback" in ended.err) == (1, True, False)


def test_a_session_of_the_topic_is_printed_by_segments_in_their_latest_revision(run_here: Run) -> None:
    ended = run_here("sessions", "--from-kafka", "--session", "chat")
    assert (ended.code, ended.err) == (0, "")
    assert [line for line in ended.out.splitlines() if line.startswith("session")] == [
        "session chat: 1 invocation, 0 reasoning traces, closed because idle",
        "session chat, segment 1: 1 invocation, 0 reasoning traces, closed because idle",
    ]
    assert [line.strip() for line in ended.out.splitlines() if "answer:" in line] == [
        "answer: Hello there.",
        "answer: And bye.",
    ]


def test_a_session_of_the_topic_as_json_is_what_the_topic_holds_and_other_commands_read_it(
    run_here: Run, tmp_path: Path
) -> None:
    ended = run_here("sessions", "--from-kafka", "--session", "chat", "--json")
    assert ended.code == 0
    found = [Session.model_validate_json(line) for line in ended.out.splitlines()]
    assert found == [session("chat", "Hello there.", revision=1), session("chat", "And bye.", segment=1)]

    turns = [invocation("Hi", "Hello there.", FIND), invocation("Hi", "And bye.", FIND)]
    write(tmp_path / "a.json", eval_set(case("chat", *turns)))
    (tmp_path / "printed.jsonl").write_text(ended.out, "utf-8")
    assert run_here("eval", "a.json", "--sessions", "printed.jsonl").code == 0


def test_a_session_that_the_topic_does_not_have_is_named(run_here: Run) -> None:
    ended = run_here("sessions", "--from-kafka", "--session", "lo\x1bst")
    assert (ended.code, ended.out) == (1, "")
    assert "does not have the session 'lo" in ended.err
    assert "\x1b" not in ended.err


def test_sessions_of_a_missing_topic_are_an_error(
    run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    ended = run("sessions", "--from-kafka", "--session", "chat")
    assert (ended.code, "'traceweir.sessions' does not exist" in ended.err) == (1, True)
