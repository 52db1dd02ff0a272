"""`traceweir label` on the embedded broker: labels are written, listed, replaced, withdrawn, and lose their notes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.command_line import Ended, Run

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("label")]

LabelCommand = Callable[..., Ended]


@pytest.fixture
def label(embedded_broker: EmbeddedBroker, run: Run, monkeypatch: pytest.MonkeyPatch) -> LabelCommand:
    """Returns a function that runs `traceweir label`, on that broker."""
    servers = embedded_broker.bootstrap_servers
    create_topics(Settings(kafka_bootstrap_servers=servers))
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    return lambda *arguments: run("label", *arguments)


def written(label: LabelCommand, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in label("list", "--json", *arguments).out.splitlines()]


def test_a_label_is_added_replaced_by_its_annotator_and_withdrawn(label: LabelCommand) -> None:
    about = ("--session", "s-1", "--criterion", "helpful", "--annotator", "ana")
    first = label("add", *about, "--verdict", "fail", "--note", "wrong airport", "--segment", "0", "--revision", "2")
    assert (first.code, first.err) == (0, "")
    identity = first.out.strip()
    (found,) = written(label)
    assert found["label_id"] == identity
    assert found["subject"] == {"session_id": "s-1", "segment": 0, "revision": 2, "level": "session"}
    assert (found["verdict"], found["self_declared"], found["drawn"]) == ("fail", True, "none")

    assert label("add", *about, "--verdict", "pass", "--segment", "0", "--revision", "3").out.strip() == identity
    (found,) = written(label)
    assert (found["verdict"], found["subject"]["revision"]) == ("pass", 3)

    assert label("withdraw", identity).err == "1 label withdrawn\n"
    (found,) = written(label)
    assert found["withdrawn"] is True
    assert "pass (withdrawn)" in label("list").out


def test_a_note_is_erased_and_its_verdict_stays(label: LabelCommand) -> None:
    about = ("--session", "s-1", "--criterion", "helpful", "--annotator", "ana", "--verdict", "fail")
    identity = label("add", *about, "--note", "she lives in Rome").out.strip()
    assert label("erase-note", identity).err == "1 label without a note now\n"
    (found,) = written(label)
    assert (found["verdict"], "note" in found, found["withdrawn"]) == ("fail", False, False)


def test_a_file_is_pushed_and_counts_once_and_its_bad_rows_are_named(label: LabelCommand, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("session_id,criterion,verdict\ns-1,helpful,pass\ns-2,helpful,perhaps\ns-3,helpful,fail\n")
    for written_now in ("2 labels written to traceweir.labels", "0 labels written to traceweir.labels; 2 not later"):
        pushed = label("push", str(file), "--annotator", "ana")
        assert pushed.code == 1
        problem, summary = pushed.err.splitlines()
        assert problem == f"{file}: row 2: verdict: Input should be 'pass', 'fail' or 'unsure'"
        assert summary.startswith(f"{file}: {written_now}")
        assert summary.endswith("; 1 row not used")
    assert [each["subject"]["session_id"] for each in written(label)] == ["s-1", "s-3"]
    assert [each["verdict"] for each in written(label, "--session", "s-3")] == ["fail"]


def test_an_earlier_label_that_arrives_later_does_not_replace_a_later_one(label: LabelCommand, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    for at, verdict in (("2026-02-01", "fail"), ("2026-01-01", "pass")):
        file.write_text(f"session_id,criterion,verdict,annotator,occurred_at\ns,c,{verdict},ana,{at}T10:00:00Z\n")
        label("push", str(file))
    assert [each["verdict"] for each in written(label)] == ["fail"]


def test_a_record_that_does_not_count_is_named_with_its_place_and_the_reason(
    label: LabelCommand, embedded_broker: EmbeddedBroker
) -> None:
    label("add", "--session", "s", "--criterion", "c", "--annotator", "ana", "--verdict", "fail")
    (own,) = written(label)
    ahead = own | {"label_id": "ahead", "verdict": "pass", "occurred_at": "2999-01-01T00:00:00Z"}
    producer = Producer({"bootstrap.servers": embedded_broker.bootstrap_servers, "log_level": 0})
    for key, value in (("ahead", json.dumps(ahead)), ("other", json.dumps(own)), ("text", "\x1b[2J")):
        producer.produce("traceweir.labels", value, key, 0)
    assert producer.flush(30) == 0

    listed = label("list", "--json")

    assert [json.loads(line)["verdict"] for line in listed.out.splitlines()] == ["fail"]
    assert "3 records of traceweir.labels not a label: 0/" in listed.err
    assert "(occurred_at 2999-01-01T00:00:00+00:00 is more than 5 minutes ahead: the record was written" in listed.err
    assert "(the key is not the label_id" in listed.err
    assert "\x1b" not in listed.err


def test_hostile_text_does_not_reach_the_terminal_as_it_is(label: LabelCommand) -> None:
    label("add", "--session", "s\x1b[2J", "--criterion", "[red]c", "--annotator", "a\nb", "--verdict", "pass")
    shown = label("list").out
    assert "\x1b" not in shown
    assert "[red]c" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("withdraw", "nobody"), 1, "no label of traceweir.labels has the id nobody: nothing was written"),
        (("add", "--session", "s", "--criterion", "c"), 2, "a label needs exactly one of verdict, value, category"),
        (("add", "--session", "s", "--criterion", "c", "--verdict", "good"), 2, "verdict: Input should be 'pass'"),
        (("push", "nowhere.csv"), 2, "nowhere.csv: cannot be opened"),
        (("push", "x.csv", "--kind", "thumb"), 2, "'thumb' is no kind of label"),
    ],
    ids=["unknown-id", "no-answer", "bad-verdict", "no-file", "bad-kind"],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(
    label: LabelCommand, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended = label(*arguments)
    assert ended.code == code
    assert message in ended.err.replace("\n", " ")


def test_json_is_free_of_control_characters_and_can_be_pushed_again(label: LabelCommand, tmp_path: Path) -> None:
    about = ("--session", "s-1", "--criterion", "helpful", "--annotator", "ana", "--verdict", "pass")
    label("add", *about, "--note", "a\x7f\x9b2J\u202eb \ub9d0", "--drawn", "random", "--inclusion-probability", "0.25")
    out = label("list", "--json").out
    assert "\ub9d0" in out
    assert out.removesuffix("\n").isprintable()
    (found,) = written(label)
    assert (found["note"], found["drawn"]) == ("a\x7f\x9b2J\u202eb \ub9d0", "random")
    assert found["inclusion_probability"] == 0.25
    file = tmp_path / "labels.jsonl"
    file.write_text(out)
    assert "1 not later than what the topic has" in label("push", str(file)).err


def test_a_draw_without_its_probability_is_refused(label: LabelCommand) -> None:
    refused = label("add", "--session", "s-1", "--criterion", "c", "--verdict", "pass", "--drawn", "random")
    assert refused.code == 2
    assert "drawn random with inclusion_probability None" in refused.err


def test_labels_are_checked_against_a_config(label: LabelCommand, tmp_path: Path) -> None:
    config = tmp_path / "eval.json"
    config.write_text('{"criteria": {"safety_v1": 0.5}}')
    file = tmp_path / "labels.csv"
    file.write_text(
        "session_id,annotator,criterion,verdict,value\ns-1,ana,safety_v1,,7\ns-2,ana,safety_v1,pass,\n"
        "s-3,ana,safety_v2,pass,\n"
    )
    pushed = label("push", str(file), "--config", str(config))
    assert pushed.code == 1
    assert f"{file}: row 1: value: 7 is off the scale of safety_v1, a number from 0 to 1" in pushed.err
    assert "1 label of 'safety_v2', which the config does not measure; did you mean 'safety_v1'?" in pushed.err
    assert {each["subject"]["session_id"] for each in written(label)} == {"s-2", "s-3"}
