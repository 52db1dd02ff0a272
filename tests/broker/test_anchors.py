"""`traceweir anchors` on the embedded broker: labels become anchors, and their judge is asked about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.anchors import CONFIG, CRITERION, frozen_session, label, safe_but, subject
from tests.support.command_line import Ended, Run
from tests.support.openai_server import OpenAiServer, openai_server_apart

from traceweir.schemas.anchor import anchor_id
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.tools.labels.topic import labels_writer, write_labels
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [
    pytest.mark.broker,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("restored_fetcher"),
    pytest.mark.xdist_group("litellm"),
]

NAMES = ("n1", "n2", "n3")
AnchorsCommand = Callable[..., Ended]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    with openai_server_apart(default=lambda body: safe_but(["n3"], body)) as found:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", found.url)
        monkeypatch.setenv("TRACEWEIR_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
        yield found


@pytest.fixture
def anchors(embedded_broker: EmbeddedBroker, run: Run, monkeypatch: pytest.MonkeyPatch) -> AnchorsCommand:
    """Returns a function that runs `traceweir anchors`, on that broker, where three sessions are labelled."""
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)
    create_topics(settings)
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", settings.kafka_bootstrap_servers)
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers})
    for name in NAMES:
        key = name.encode()
        value = frozen_session(name).model_dump_json(exclude_none=True).encode()
        producer.produce(settings.topics.sessions, value, key, partition=partition_of(key, settings.partitions))
    producer.flush()
    labels = [label(subject(name), "fail" if name == "n3" else "pass") for name in NAMES]
    write_labels(labels_writer(settings, "again"), [*labels, label(subject("gone"))])
    return lambda *arguments: run("anchors", *arguments)


def withdraw(name: str) -> None:
    """Withdraws the label of a session."""
    write_labels(labels_writer(Settings(), "again"), [label(subject(name), withdrawn=True)])


def test_labels_become_anchors_that_are_judged_listed_and_removed(
    anchors: AnchorsCommand, judge: OpenAiServer, run: Run, tmp_path: Path
) -> None:
    config = tmp_path / "eval.json"
    config.write_text(json.dumps(CONFIG))
    empty = anchors("run", "--config", str(config))
    assert (empty.code, "`traceweir anchors add` makes them" in empty.err) == (1, True)

    added = anchors("add")
    assert added.code == 0
    assert f"{CRITERION}: 3 anchors (2 pass, 1 fail)\n" in added.err
    assert "not used: 1 label the topic sessions no longer has the session" in added.err

    judged = anchors("run", "--config", str(config), "--limit", "2", "--per-day", "86400")
    assert judged.code == 0, judged.err
    assert len(judge.asked) == 2
    [found] = [json.loads(line) for line in anchors("list", "--json", "--ids").out.splitlines()]
    assert (found["pass"], found["fail"], found["random"], found["verdicts"]) == (2, 1, 3, 2)
    assert found["agreement"]["agree"] == found["agreement"]["anchors"]
    assert (found["watched"], found["changes"]) == ([], [])
    # Not one of them is a score.
    assert run("results", "--json").out == ""

    withdraw(NAMES[0])
    stale = anchors("add").err
    assert "the labels of 1 anchor are withdrawn, or differ. The anchors stay" in stale
    assert f": traceweir anchors remove {anchor_id(subject(NAMES[0]), CRITERION)}\n" in stale

    assert anchors("remove", *(each["id"] for each in found["anchors"])).err == "3 anchors removed\n"
    assert anchors("list", "--ids").code == 0
