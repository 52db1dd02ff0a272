"""Tests what a worker makes of the records of the topic `configs`."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from tests.support.scoring import NOW

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.configs import log as config_log
from traceweir.streams.configs.log import ConfigLog
from traceweir.streams.configs.records import config_id, digest_record
from traceweir.streams.configs.usable import usable_plan
from traceweir.streams.testing.memory import Message

FILE = read_plan({})
GOOD: dict[str, Any] = {"criteria": {"latency": {}}}
OTHER: dict[str, Any] = {"criteria": {"response_match_score": 0.3}}


def log_of() -> ConfigLog:
    return ConfigLog(partial(usable_plan, file=FILE))


def record(offset: int, config: dict[str, Any] | None, key: str = "*", version: int = 1) -> Message:
    selector = key.split(":")[1] if key.startswith("version:") else key
    value = {
        "envelope": 1,
        "selector": selector,
        "version": version,
        "digest": None,
        "config": config,
        "pushed_at": "2026-01-31T12:00:00Z",
    }
    raw = None if config is None and key == selector else json.dumps(value).encode()
    return Message("configs", 0, offset, 0, key.encode(), raw)


def test_the_latest_config_of_each_selector_is_current() -> None:
    log = log_of()
    log.take(record(0, GOOD))
    log.take(record(1, OTHER, "travel"))
    log.take(record(2, OTHER))
    assert log.current == (("*", config_id(OTHER)), ("travel", config_id(OTHER)))
    log.take(record(3, None))
    assert dict(log.current) == {"travel": config_id(OTHER)}
    assert log.position == 4


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"criteria": {"of_a_missing_plugin": 1}}, "there is no such metric"),
        ({"criteria": {"latency": "x"}}, "latency"),
        (
            {"gate": {"presidio": {"model": "en_core_web_sm"}}},
            "gate.presidio: differs from that of the worker's config file",
        ),
    ],
)
def test_a_config_that_this_worker_cannot_use_leaves_the_former_one(
    config: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_of()
    log.take(record(0, GOOD))
    log.take(record(1, config))
    assert log.current == (("*", config_id(GOOD)),)
    assert said in caplog.text
    (problem,) = log.problems
    assert "0/1" in problem
    assert "latency" not in problem
    assert "plugin" not in problem
    assert [bad.record.offset for bad in log.bad_records_from(0, 0)] == [1]
    assert log.bad_records_from(0, 2) == []


def test_a_plan_in_effect_is_without_a_record_until_its_digest_is_read() -> None:
    log = log_of()
    beside = {"challenger": {"name": "v2", "sample": 0.5, "config": OTHER}}
    log.take(record(0, GOOD | beside))
    plans = {plan.digest: plan for plan in map(read_plan, ({}, GOOD, OTHER))}
    assert log.without_record(FILE).keys() == plans.keys()

    for offset, digest in enumerate(plans, 1):
        log.take(Message("configs", 0, offset, 0, *digest_record(plans[digest], NOW)))
        assert digest not in log.without_record(FILE)
    assert log.without_record(FILE) == {}
    assert log.bad_records == []

    log.take(Message("configs", 0, 9, 0, f"digest:{FILE.digest}".encode(), None))
    assert log.without_record(FILE) == {FILE.digest: FILE}


def test_a_former_config_by_which_sessions_are_scored_needs_a_record_too() -> None:
    log = log_of()
    log.take(Message("configs", 0, 0, 0, *digest_record(FILE, NOW)))
    log.take(record(1, GOOD))
    former = log.current
    log.take(record(2, None))
    assert log.without_record(FILE) == {}
    log.documents(former)
    assert log.without_record(FILE).keys() == {read_plan(GOOD).digest}


def test_a_withdrawal_ends_a_problem() -> None:
    log = log_of()
    log.take(record(0, {"criteria": {"no": 1}}))
    log.take(record(1, None))
    assert (log.problems, log.current) == ([], ())


def test_a_withdrawn_version_is_not_found_again_behind_a_bad_record() -> None:
    log = log_of()
    log.take(record(0, GOOD, "version:*:1"))
    log.take(record(1, None, "version:*:2", version=2))
    log.take(record(2, {"criteria": {"no": 1}}, version=3))
    assert log.current == ()


def test_a_config_without_its_document_is_replaced_by_the_one_of_this_worker() -> None:
    log = log_of()
    log.take(record(0, GOOD))
    assert log.usable((("*", "gone"), ("travel", "gone"))) == (("*", config_id(GOOD)),)
    assert log.usable((("*", config_id(GOOD)),)) == (("*", config_id(GOOD)),)


async def test_a_position_is_waited_for_and_given_up_after_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of()
    waiting = asyncio.create_task(log.reach(2))
    await asyncio.sleep(0)
    log.take(record(0, GOOD))
    await asyncio.sleep(0)
    assert not waiting.done()
    log.note_position(2)
    assert await waiting
    monkeypatch.setattr(config_log, "BEHIND_S", 0.0)
    assert not await log.reach(3)
