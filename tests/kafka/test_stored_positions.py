"""Doctor and `topics check` say what a worker will do with inputs that do not fit the offsets that it has stored."""

from __future__ import annotations

import json

import pytest
from tests.support.command_line import Run
from tests.support.remade_topics import make_again, trim
from tests.support.short_sessions import closed, send
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings

pytestmark = pytest.mark.kafka

FIT = ("ok", "the stored offsets fit the logs of the inputs")


@pytest.fixture
def _stopped_worker(kafka: str, prefix: str, fleet: Fleet, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a worker read records of all partitions and stop; the commands then use its settings."""
    names = [f"before-{number}" for number in range(20)]
    send(kafka, prefix, names)
    worker = fleet.start("w")
    assert closed(kafka, prefix, names) == sorted(names)
    worker.terminate(30)
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("TRACEWEIR_TOPIC_PREFIX", prefix)
    monkeypatch.setenv("TRACEWEIR_EMBEDDER", "none")


def positions(run: Run) -> list[tuple[str, str]]:
    findings = json.loads(run("doctor", "--json").out)
    return [(each["state"], each["text"]) for each in findings if each["check"] == "positions"]


@pytest.mark.usefixtures("_stopped_worker")
@pytest.mark.parametrize("count", [0, 60], ids=["the new log is shorter", "the new log is longer"])
def test_an_input_that_was_made_again_is_named(
    count: int, kafka: str, prefix: str, settings: Settings, run: Run
) -> None:
    assert positions(run) == [FIT]
    ended = run("topics", "check")
    assert (ended.code, ended.err) == (0, "")

    make_again(settings, f"{prefix}invocations")
    send(kafka, prefix, [f"after-{number}" for number in range(count)])

    ((state, sentence),) = positions(run)
    assert state == "warning"
    assert sentence == (
        f"{prefix}invocations was deleted and created again since a worker last read it: a worker reads it from its "
        "beginning (partitions 0, 1, 2, 3)"
    )
    ended = run("topics", "check")
    assert (ended.code, ended.err) == (0, f"warning: {sentence}\n")
    assert ended.out.endswith("topics can be used\n")


@pytest.mark.usefixtures("_stopped_worker")
def test_records_that_were_removed_unread_are_named(kafka: str, prefix: str, settings: Settings, run: Run) -> None:
    send(kafka, prefix, [f"gone-{number}" for number in range(30)])
    assert positions(run) == [FIT]

    trim(settings, f"{prefix}invocations")

    ((state, sentence),) = positions(run)
    assert state == "failure"
    assert sentence.startswith(f"30 offsets of {prefix}invocations were removed before a worker read them (partitions ")
    ended = run("topics", "check")
    assert (ended.code, ended.err) == (0, f"warning: {sentence}\n")
