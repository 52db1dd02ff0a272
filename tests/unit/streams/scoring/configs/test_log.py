"""Tests what a worker makes of the records of the topic `configs`."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.scoring import NOW

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.configs import log as config_log
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import config_id, digest_record
from traceweir.streams.scoring.configs.topic_record import parsed
from traceweir.streams.scoring.configs.usable import usable_plan
from traceweir.streams.tools.testing.memory import Message

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
    for each in (record(0, GOOD, "version:*:1"), record(1, GOOD), record(2, config, version=2)):
        log.take(each)
    assert log.current == (("*", config_id(GOOD)),)
    assert said in caplog.text
    (problem,) = log.problems
    assert "0/2" in problem
    assert "latency" not in problem
    assert "plugin" not in problem
    assert [bad.record.offset for bad in log.bad_records_from(0, 0)] == [2]
    assert log.bad_records_from(0, 3) == []


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


def settled(log: ConfigLog) -> list[str]:
    """Lets what was read count; returns what had to be checked for that."""
    checked = []
    for name in log.unchecked():
        checked.append(name)
        log.check(name)
    log.settle()
    return checked


def read(log: ConfigLog, *records: Message) -> None:
    for each in records:
        log.read(parsed(each))


def bad(number: int) -> dict[str, Any]:
    return {"criteria": {f"metric_of_nobody_{number}": 1}}


def test_the_newest_config_counts_before_older_ones_are_checked() -> None:
    log = log_of()
    read(log, *(record(offset, bad(offset)) for offset in range(100)), record(100, GOOD))
    assert settled(log) == [config_id(GOOD)]
    assert log.current == (("*", config_id(GOOD)),)
    assert log.problems == []


def test_replaced_configs_are_dead_letters_once_all_before_them_are_checked() -> None:
    log = log_of()
    good = record(3, GOOD, "version:*:1"), record(4, GOOD)
    read(log, record(0, bad(0)), record(1, OTHER), record(2, bad(2)), *good, record(5, bad(4)))
    settled(log)
    assert log.current == (("*", config_id(GOOD)),)
    assert log.bad_records_from(0, 0) == []
    for name in log.unchecked_older():
        log.check(name)
    assert [each.record.offset for each in log.bad_records_from(0, 0)] == [0, 2, 5]
    assert not log.has_older


def test_a_bad_record_waits_for_those_before_it_that_are_not_settled() -> None:
    log = log_of()
    read(log, record(0, bad(0)), Message("configs", 0, 1, 0, b"version:*:1", b"{"))
    assert log.bad_records_from(0, 0) == []
    settled(log)
    assert [each.record.offset for each in log.bad_records_from(0, 0)] == [0, 1]


def test_a_withdrawal_counts_before_older_configs_are_checked() -> None:
    log = log_of()
    read(log, record(0, GOOD), record(1, bad(1)), record(2, None))
    assert settled(log) == []
    assert log.current == ()


def test_what_was_read_counts_from_its_settlement_on() -> None:
    log = log_of()
    read(log, record(0, GOOD))
    assert (log.current, log.position) == ((), 0)


def test_a_check_that_raises_costs_only_its_config() -> None:
    def check(document: bytes) -> Plan:
        if b"latency" in document:
            raise TypeError("a plugin's")
        return usable_plan(document, FILE)

    log = ConfigLog(check)
    for each in (record(0, OTHER, "version:*:1"), record(1, OTHER), record(2, GOOD, version=2)):
        log.take(each)
    assert log.current == (("*", config_id(OTHER)),)
    assert "TypeError" in log.bad_records[0].detail


def test_the_bytes_of_kept_bad_records_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_log, "MAX_BAD_BYTES", 1_000)
    log = log_of()
    for offset in range(10):
        log.take(record(offset, bad(offset)))
    assert 0 < sum(len(each.record.value or b"") for each in log.bad_records) <= 1_000


CONFIGS = st.sampled_from([GOOD, OTHER, bad(0), bad(1), {"criteria": [1]}, {"gate": {"threshold": 0.5}}, None])
KEYS = st.sampled_from(["*", "travel", "version:*:1", "version:*:2", "version:travel:1"])


def step(offset: int, key: str, config: dict[str, Any] | None, kind: str) -> Message:
    made = record(offset, config, key, version=int(key.split(":")[2]) if ":" in key else 1)
    raw = {"unreadable": b"{", "of another": record(0, config, "other").value, "deep": b"[" * 9_999}.get(
        kind, made.value
    )
    return Message("configs", 0, offset, 0, made.key, raw)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@example([("*", None, "", False), ("version:*:1", GOOD, "", False), ("*", GOOD, "unreadable", False)])
@given(
    st.lists(
        st.tuples(KEYS, CONFIGS, st.sampled_from(["", "", "", "unreadable", "of another", "deep"]), st.booleans()),
        max_size=12,
    )
)
def test_records_count_alike_one_by_one_and_together(
    drawn: list[tuple[str, dict[str, Any] | None, str, bool]],
) -> None:
    one_by_one, together = log_of(), log_of()
    for offset, (key, config, kind, is_last) in enumerate(drawn):
        made = step(offset, key, config, kind)
        one_by_one.take(made)
        together.read(parsed(made))
        if is_last:
            settled(together)
    settled(together)
    for name in together.unchecked_older():
        together.check(name)
    last = {key: (config, kind) for key, config, kind, _ in drawn}
    for key in ("*", "travel"):
        config, kind = last.get(key, (None, ""))
        for log in (one_by_one, together):
            if not kind and config in (GOOD, OTHER, None):
                assert dict(log.current).get(key) == (config and config_id(config))
    assert together.current == one_by_one.current
    assert together.bad_records == one_by_one.bad_records


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@example([("version:*:1", GOOD, ""), ("*", GOOD, ""), ("*", None, ""), ("*", bad(0), "")])
@example([("version:*:1", GOOD, ""), ("*", OTHER, ""), ("*", GOOD, "unreadable"), ("version:*:2", OTHER, "")])
@given(st.lists(st.tuples(KEYS, CONFIGS, st.sampled_from(["", "", "", "unreadable", "of another"])), max_size=12))
def test_a_worker_that_starts_after_compaction_has_the_configs_of_one_that_runs(
    drawn: list[tuple[str, dict[str, Any] | None, str]],
) -> None:
    made = [step(offset, key, config, kind) for offset, (key, config, kind) in enumerate(drawn)]
    newest = {each.key: each.offset for each in made}
    compacted = [each for each in made if newest[each.key] == each.offset]
    without_tombstones = [each for each in compacted if each.value is not None]
    found = []
    for records in (made, compacted, without_tombstones):
        log = log_of()
        for each in records:
            log.take(each)
        found.append((log.current, log.problems))
    assert found[0] == found[1] == found[2]


def test_a_bad_record_after_a_withdrawal_does_not_lead_back_to_an_earlier_version() -> None:
    log = log_of()
    pushed = record(0, GOOD, "version:*:1"), record(1, GOOD)
    withdrawn = record(2, None), record(3, None, "version:*:2", version=2)
    for each in (*pushed, *withdrawn, record(4, bad(4), version=3)):
        log.take(each)
    assert log.current == ()


def test_a_version_that_is_written_after_a_bad_record_does_not_count_in_its_place() -> None:
    """As in one batch, so one by one: the push of this version writes its own record in place of the bad one."""
    records = record(0, OTHER, "version:*:1"), record(1, bad(1)), record(2, GOOD, "version:*:2", version=2)
    one_by_one, together = log_of(), log_of()
    for each in records:
        one_by_one.take(each)
    read(together, *records)
    settled(together)
    assert one_by_one.current == together.current == (("*", config_id(OTHER)),)


def test_records_about_alerts_are_no_configs_and_no_bad_records() -> None:
    log = log_of()
    log.take(record(0, GOOD))
    for offset, (key, value) in enumerate([(b"alerts:rule:r", b"{"), (b"alerts:rule:r", None), (b"alerts:x", b"")], 1):
        log.take(Message("configs", 0, offset, 0, key, value))
    assert log.current == (("*", config_id(GOOD)),)
    assert (log.bad_records, log.problems, log.position) == ([], [], 4)
