"""Tests which records of the topic `configs` are read, and what is said of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.scoring import NOW

from traceweir.schemas.pushed_config import PushedConfig
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.configs.records import (
    ConfigRecord,
    UnreadableConfigError,
    config_id,
    digest_record,
    read_key,
    read_value,
    records_of,
)
from traceweir.streams.scoring.configs.selectors import parsed_selector, selector


def read(partition: int, key: bytes | None, value: bytes | None) -> ConfigRecord:
    return read_value(read_key(partition, key), value)


GOOD: dict[str, Any] = {
    "envelope": 1,
    "selector": "*",
    "version": 1,
    "digest": "d",
    "config": {},
    "pushed_at": "2026-01-31T12:00:00Z",
}


@pytest.mark.parametrize(
    ("partition", "key", "value", "said"),
    [
        (1, b"*", b"{}", "on partition 1, but configs have one order only on partition 0"),
        (0, None, b"{}", "'' is not a selector"),
        (0, b"\xff", b"{}", "the key of the record"),
        (0, b"a b", b"{}", "'a b' is not a selector"),
        (0, b"@", b"{}", "is not a selector"),
        (0, b"version:*:x", b"{}", "has no number of a version"),
        (0, b"version:*:07", GOOD | {"version": 7}, "has no number of a version"),
        (0, b"version:*:" + b"9" * 19, b"{}", "has no number of a version"),
        (0, b"version:a b:1", b"{}", "is not a selector"),
        (0, b"version:*:7", GOOD | {"version": 3}, "version: 3 is not the number in the record's key, 7"),
        (0, b"digest:abc", GOOD, "digest: 'd' is not the digest in the record's key, 'abc'"),
        (0, b"digest:d", GOOD | {"digest": None}, "digest: None is not the digest in the record's key, 'd'"),
        (0, b"digest:d", GOOD | {"config": None}, "config: null is not allowed here"),
        (0, b"*", b"{", "document: Invalid JSON"),
        (0, b"*", b"[]", "Input should be an object"),
        (0, b"*", b"{}", "envelope: Field required"),
        (0, b"*", GOOD | {"version": -1}, "version: Input should be greater than or equal to 0"),
        (0, b"*", GOOD | {"version": 0}, "version: 0 is not allowed here; versions count from 1"),
        (0, b"version:*:1", GOOD | {"version": 0}, "version: 0 is not the number in the record's key, 1"),
        (0, b"*", GOOD | {"version": 0, "config": None}, "version: 0 is not allowed here"),
        (0, b"*", GOOD | {"pushed_at": "now"}, "pushed_at"),
        (0, b"*", GOOD | {"config": []}, "config: Input should be an object"),
        (0, b"*", GOOD | {"config": None}, "a tombstone withdraws a config"),
        (0, b"travel", GOOD, "'*' is not the selector of the record's key, 'travel'"),
        (0, b"*", GOOD | {"comment": "c" * 1_001}, "comment"),
    ],
)
def test_a_record_that_is_no_config_is_refused_with_the_reason(
    partition: int, key: bytes | None, value: bytes | dict[str, Any], said: str
) -> None:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(UnreadableConfigError) as refused:
        read(partition, key, raw)
    assert said in str(refused.value)
    assert not refused.value.newer


@pytest.mark.parametrize("value", [GOOD | {"envelope": 2}, {"envelope": 2, "config": [1]}, {"envelope": 9**30}])
def test_a_newer_envelope_is_told_from_a_wrong_record(value: dict[str, Any]) -> None:
    with pytest.raises(UnreadableConfigError, match="is newer than 1") as refused:
        read(0, b"*", json.dumps(value).encode())
    assert refused.value.newer


def test_a_key_of_a_later_version_is_ignored() -> None:
    found = read(0, b"*", json.dumps(GOOD | {"more": 1}).encode())
    assert found.pushed is not None
    assert found.pushed.version == 1


def test_the_records_of_a_version_are_read_again_and_the_one_in_effect_comes_last() -> None:
    pushed = PushedConfig.model_validate_json(json.dumps(GOOD))
    kinds = [read(0, key, value) for key, value in records_of(pushed)]
    assert [each.key.kind for each in kinds] == ["digest", "version", "current"]
    assert all(each.pushed == pushed for each in kinds)


@pytest.mark.parametrize("document", [None, {}, {"criteria": {"response_match_score": 0.5}, "gate": {"cacheSize": 9}}])
def test_the_record_of_a_worker_s_config_is_read_again(document: dict[str, Any] | None) -> None:
    plan = read_plan(document)
    key, pushed = read(0, *digest_record(plan, NOW))
    assert (key.kind, key.digest) == ("digest", plan.digest)
    assert pushed is not None
    assert (pushed.version, pushed.config, pushed.pushed_at) == (0, document, NOW)
    assert read_plan(pushed.config) == plan


def test_a_config_that_cannot_be_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        digest_record(replace(read_plan({}), document={"gate": chr(0xD800)}), NOW)


def test_a_withdrawal_is_a_tombstone_and_a_version() -> None:
    pushed = PushedConfig.model_validate_json(json.dumps(GOOD | {"config": None, "digest": None}))
    assert records_of(pushed) == [(b"*", None), (b"version:*:1", pushed.wire())]


@pytest.mark.parametrize("app", ["travel", "a@b", "version:x:1", "*", "%", "Ünïcode", "a b"])
def test_each_name_has_a_selector_of_its_own(app: str) -> None:
    assert parsed_selector(selector(app, "production")) == (app, "production")
    assert selector(app) != selector()


def test_the_id_of_a_config_does_not_depend_on_the_order_of_its_keys() -> None:
    assert config_id({"a": 1, "b": 2}) == config_id({"b": 2, "a": 1}) != config_id({"a": 1, "b": 3})
