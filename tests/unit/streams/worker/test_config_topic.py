"""Tests what a command makes of the records of the topic `configs`, and when it pushes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState

NEWER = b'{"envelope": 2, "future": true}'


def value(selector: str = "*", version: int = 1, config: dict[str, Any] | None = None) -> bytes:
    document = {
        "envelope": 1,
        "selector": selector,
        "version": version,
        "digest": "d",
        "config": {} if config is None else config,
        "pushed_at": "2026-01-31T12:00:00Z",
    }
    return json.dumps(document).encode()


def state_of(*records: tuple[str, bytes | None]) -> TopicState:
    state = TopicState()
    for offset, (key, each) in enumerate(records):
        state.take(0, offset, key.encode(), each)
    return state


@pytest.mark.parametrize(
    "records",
    [
        [("travel", NEWER)],
        [("version:travel:8", NEWER)],
        [("travel", value("travel")), ("version:travel:1", value("travel")), ("travel", NEWER)],
        [("version:travel:8", NEWER), ("version:travel:7", value("travel", 7))],
    ],
)
def test_the_latest_config_of_a_newer_traceweir_is_not_replaced(records: list[tuple[str, bytes | None]]) -> None:
    state = state_of(*records)
    with pytest.raises(ConfigTopicError, match=r"newer than 1.*`traceweir config withdraw`"):
        state.refuse_over_newer("travel")


@pytest.mark.parametrize(
    "records",
    [
        [("*", NEWER)],
        [("travel@production", NEWER), ("version:travel@production:1", NEWER)],
        [("digest:travel", NEWER)],
        [("travel", NEWER), ("travel", value("travel"))],
        [("travel", NEWER), ("travel", None)],
        [("travel", NEWER), ("travel", b"no config")],
        [("version:travel:8", NEWER), ("version:travel:9", value("travel", 9))],
    ],
)
def test_a_record_of_a_newer_traceweir_refuses_no_other_push(records: list[tuple[str, bytes | None]]) -> None:
    state_of(*records).refuse_over_newer("travel")


@pytest.mark.parametrize(
    ("records", "number"),
    [
        ([], 1),
        ([("version:travel:7", value("travel", 7))], 8),
        ([("version:travel:8", NEWER), ("version:travel:7", value("travel", 7))], 9),
        ([("version:travel:8", NEWER), ("version:travel:8", None)], 9),
        ([("version:travel:8", b"no config")], 9),
        ([("version:*:8", NEWER)], 1),
        ([("version:travel:999999999999999999", b"forged"), ("version:travel:7", value("travel", 7))], 8),
    ],
)
def test_the_number_of_a_version_is_never_used_twice(records: list[tuple[str, bytes | None]], number: int) -> None:
    assert state_of(*records).next_version("travel") == number


@pytest.mark.parametrize("last", [None, NEWER])
def test_the_last_record_of_a_digest_counts(last: bytes | None) -> None:
    assert state_of(("digest:d", value())).by_digest.keys() == {"d"}
    assert state_of(("digest:d", value()), ("digest:d", last)).by_digest == {}


def test_a_forged_version_or_digest_replaces_no_other() -> None:
    good = ("version:*:3", value(version=3, config={"criteria": {}}))
    state = state_of(good, ("version:*:7", value(version=3)), ("digest:abc", value()))
    assert state.version("*", 3).config == {"criteria": {}}
    assert state.by_digest == {}
    assert len(state.problems) == 2
