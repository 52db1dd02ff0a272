"""The fleet: the same for the same seed, of every kind that it promises, and small enough for the embedded broker."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from traceweir.streams.demo.agents import DUPLICATE, JOINED
from traceweir.streams.demo.fleet import SECRETS, Fleet, build_fleet
from traceweir.streams.kafka.embedded_broker import PARTITIONS

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return build_fleet(1, 30.0, START)


def test_a_seed_decides_every_byte(fleet: Fleet) -> None:
    assert build_fleet(1, 30.0, START) == fleet
    assert build_fleet(2, 30.0, START) != fleet


def test_it_emits_in_the_order_of_time_and_within_it(fleet: Fleet) -> None:
    due = [one.due_s for one in fleet.emissions]
    assert due == sorted(due)
    assert due[-1] < 32.0


def test_it_is_what_a_demo_needs(fleet: Fleet) -> None:
    sessions = {one.session for one in fleet.emissions} - {""}
    assert 150 <= len(sessions) <= 250
    assert 2_000 <= len(fleet.emissions) <= 4_000


def test_no_partition_takes_more_than_the_embedded_broker_keeps(fleet: Fleet) -> None:
    sizes: Counter[tuple[str, int]] = Counter()
    for one in fleet.emissions:
        sizes[one.topic, one.partition] += len(one.value or b"") + len(one.key or b"") + 150
    assert len(sizes) == 2 * PARTITIONS
    assert max(sizes.values()) < 3_000_000


def test_records_go_astray_lose_their_key_overtake_each_other_and_come_twice(fleet: Fleet) -> None:
    fates = Counter(one.fate for one in fleet.emissions)
    assert fates[DUPLICATE] >= 10
    assert sum(one.misrouted for one in fleet.emissions) >= 50
    assert sum(one.key is None and bool(one.session) for one in fleet.emissions) >= 3
    wanted = {"empty", "not_json", "not_an_object", "invalid", "future_timestamp", "late"}
    assert set(fates) == wanted | {JOINED, DUPLICATE}


def test_a_duplicate_comes_after_its_original(fleet: Fleet) -> None:
    seen: set[tuple[str, bytes | None]] = set()
    for one in fleet.emissions:
        assert ((one.session, one.value) in seen) == (one.fate == DUPLICATE) or not one.session
        seen.add((one.session, one.value))


def test_one_trace_carries_the_secrets(fleet: Fleet) -> None:
    carriers = {one.session for one in fleet.emissions if SECRETS[0].encode() in (one.value or b"")}
    assert carriers == {fleet.session_with_secrets}
    (trace,) = [one.value or b"" for one in fleet.emissions if one.topic == "traces" and one.session in carriers]
    assert all(secret.encode() in trace for secret in SECRETS)


def test_a_later_round_shares_no_session_and_no_domain_with_the_first(fleet: Fleet) -> None:
    later = build_fleet(1, 30.0, START, number=1)
    assert not {one.session for one in later.emissions} & {one.session for one in fleet.emissions} - {""}
    assert not any(b'"task_domain":"travel"' in (one.value or b"") for one in later.emissions if one.session)
    assert all(one.due_s >= 0 for one in later.emissions)
