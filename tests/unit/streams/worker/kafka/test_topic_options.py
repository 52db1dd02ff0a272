"""Tests the options of new topics, and which existing topics are reported as weaker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple

import pytest
from tests.support.paths import ROOT

from traceweir.streams.base.topics import Topics
from traceweir.streams.worker.kafka.topic_options import (
    DAY_MS,
    FoundTopic,
    batch_problem,
    batch_weakness,
    options_at_creation,
    weaknesses,
)

COMPACTED = {
    "segment.bytes": "16777216",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.3",
    "max.compaction.lag.ms": "86400000",
    "delete.retention.ms": "86400000",
}


@pytest.mark.parametrize(("copies", "in_sync"), [(1, None), (2, None), (3, "2"), (5, "2")])
def test_two_copies_must_have_a_record_where_one_broker_can_be_away(copies: int, in_sync: str | None) -> None:
    assert options_at_creation("compact", None, copies).get("min.insync.replicas") == in_sync


def test_a_new_topic_keeps_its_records_for_the_documented_days_or_compacts_them() -> None:
    topics = Topics.of("")
    text = (ROOT / "docs" / "kafka.md").read_text("utf-8")
    for name, policy in topics.cleanup_policies().items():
        days = topics.retention_days().get(name)
        options = options_at_creation(policy, days, 1)
        assert options == {"cleanup.policy": policy} | ({"retention.ms": str(days * DAY_MS)} if days else COMPACTED)
        (row,) = [line for line in text.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1]]
        assert (f"{days} days" if days else "compacted") in row
    assert [name for name in astuple(topics) if name not in topics.retention_days()] == [
        "references",
        "configs",
        "labels",
        "network",
        "anchors",
        "alerts",
        "alerts-state",
        "export-waiting",
    ]


FULL = {"min.insync.replicas": "2", "retention.ms": str(7 * DAY_MS)}


@pytest.mark.parametrize(
    ("copies", "options", "found"),
    [
        (3, FULL, []),
        (3, FULL | {"retention.ms": "-1"}, []),
        (3, {}, []),
        (1, {"min.insync.replicas": "1", "retention.ms": "604800000"}, ["has 1 copy of a partition, and TRACEWEIR"]),
        (3, FULL | {"min.insync.replicas": "1"}, ["min.insync.replicas=1 with 3 copies, so the loss of one broker"]),
        (3, FULL | {"min.insync.replicas": "3"}, ["nothing can be written while one broker is away"]),
        (3, FULL | {"retention.ms": "3600000"}, ["keeps records for 0.0417 days, and at least 7 days are advised"]),
        (3, FULL | {"retention.ms": str(DAY_MS)}, ["keeps records for 1 day, and"]),
        (4, {"min.insync.replicas": "1", "retention.ms": "0"}, ["min.insync.replicas=1", "retention.ms=604800000`"]),
    ],
)
def test_a_topic_that_is_weaker_than_a_new_one_is_reported_with_the_command_that_corrects_it(
    copies: int, options: Mapping[str, str], found: list[str]
) -> None:
    told = list(weaknesses(FoundTopic("traceweir.traces", copies, options), 7, 3, "kafka:9092"))
    assert [part in sentence for part, sentence in zip(found, told, strict=True)] == [True] * len(found)
    assert all("topic 'traceweir.traces' " in each and ("--add-config " in each or "reassign" in each) for each in told)


def test_a_compacted_topic_and_a_trial_with_one_copy_have_no_advice() -> None:
    one_node = {"min.insync.replicas": "1", "retention.ms": "3600000"}
    assert list(weaknesses(FoundTopic("traceweir.network", 1, one_node), None, 1, "kafka:9092")) == []


def test_the_documented_options_of_compacted_topics_are_those_of_new_ones() -> None:
    text = (ROOT / "docs" / "kafka.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `([a-z.]+)` \| ([0-9.]+)(?:,| \|)", text, re.MULTILINE))
    assert documented == COMPACTED


KAFKAS_DEFAULTS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "min.cleanable.dirty.ratio": "0.5",
    "max.compaction.lag.ms": "9223372036854775807",
    "delete.retention.ms": "86400000",
}


def test_a_topic_that_is_compacted_late_is_reported_with_one_command_that_corrects_all_its_options() -> None:
    (told,) = weaknesses(FoundTopic("traceweir.network", 1, KAFKAS_DEFAULTS), None, 1, "kafka:9092")
    assert told.startswith(
        "topic 'traceweir.network' is compacted late (segment.bytes=1073741824, segment.ms=604800000, "
    )
    wanted = "segment.bytes=16777216,segment.ms=600000,min.cleanable.dirty.ratio=0.3,max.compaction.lag.ms=86400000"
    assert told.endswith(f"--alter --entity-type topics --entity-name traceweir.network --add-config {wanted}`")


def test_only_the_options_that_compact_late_are_corrected() -> None:
    options = COMPACTED | {"cleanup.policy": "compact", "segment.ms": "3600000", "segment.bytes": "1048576"}
    (told,) = weaknesses(FoundTopic("traceweir.network", 1, options), None, 1, "kafka:9092")
    assert "is compacted late (segment.ms=3600000), " in told
    assert told.endswith("--add-config segment.ms=600000`")


def test_a_compacted_topic_that_forgets_deletions_early_is_reported() -> None:
    options = COMPACTED | {"cleanup.policy": "compact", "delete.retention.ms": "3600000"}
    (told,) = weaknesses(FoundTopic("traceweir.network", 1, options), None, 1, "kafka:9092")
    assert "keeps deletions for 0.0417 days, so a worker that was away for longer" in told
    assert told.endswith("--add-config delete.retention.ms=86400000`")


def test_a_new_compacted_topic_and_one_that_is_not_compacted_are_not_compacted_late() -> None:
    for options in (options_at_creation("compact", None, 1), KAFKAS_DEFAULTS | {"cleanup.policy": "delete"}):
        assert list(weaknesses(FoundTopic("traceweir.network", 1, options), None, 1, "kafka:9092")) == []


def test_a_topic_that_refuses_the_largest_batch_is_a_problem_with_its_command() -> None:
    problem = batch_problem("traceweir.results", {"max.message.bytes": "999999"}, "kafka:9092")
    assert problem == (
        "topic 'traceweir.results' has max.message.bytes=999999, and a batch of a worker has up to 1000000 bytes: run "
        "`kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type topics --entity-name traceweir.results "
        "--add-config max.message.bytes=1048588`"
    )


def test_a_topic_that_refuses_large_outputs_is_a_weakness_with_its_command() -> None:
    options = {"max.message.bytes": "65536", "segment.bytes": "1048576"}
    assert batch_problem("traceweir.results", options, "kafka:9092", least=65_536) is None
    assert batch_weakness("traceweir.results", options, "kafka:9092") == (
        "topic 'traceweir.results' has max.message.bytes=65536, so larger records of workers become dead letters "
        "`too_large`: run `kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type topics --entity-name "
        "traceweir.results --add-config max.message.bytes=1048588`"
    )
    assert batch_weakness("traceweir.results", {"max.message.bytes": "1000000"}, "kafka:9092") is None


def test_a_segment_bounds_a_batch_too() -> None:
    options = {"max.message.bytes": "1048588", "segment.bytes": "60000"}
    problem = batch_problem("traceweir.results", options, "kafka:9092", least=65_536) or ""
    assert "has segment.bytes=60000, and a worker needs batches of at least 65536 bytes: run " in problem
    assert problem.endswith("--add-config segment.bytes=1048588`")


@pytest.mark.parametrize("options", [{}, {"max.message.bytes": "1000000"}, {"max.message.bytes": "1048588"}])
def test_a_topic_that_accepts_the_largest_batch_is_no_problem(options: Mapping[str, str]) -> None:
    assert batch_problem("traceweir.results", options, "kafka:9092") is None
