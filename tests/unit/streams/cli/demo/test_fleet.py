"""Tests the fleet of the demo: equal for equal seeds, every kind of record, within the embedded broker's limits."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from tests.support.demo_sessions import sessions_of

from traceweir.schemas.turns import turns_of
from traceweir.streams.cli.demo.fleet import SECRETS, Fleet, build_fleet
from traceweir.streams.cli.demo.sessions import DUPLICATE, JOINED
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return build_fleet(1, 30.0, START)


def test_the_fleet_depends_on_the_seed(fleet: Fleet) -> None:
    assert build_fleet(1, 30.0, START) == fleet
    assert build_fleet(2, 30.0, START) != fleet


def test_emissions_are_in_time_order_and_within_the_duration(fleet: Fleet) -> None:
    due = [emission.due_s for emission in fleet.emissions]
    assert due == sorted(due)
    assert due[-1] < 32.0


def test_the_fleet_has_150_to_250_sessions_and_2000_to_4000_emissions(fleet: Fleet) -> None:
    sessions = {emission.session for emission in fleet.emissions} - {""}
    assert 150 <= len(sessions) <= 250
    assert 2_000 <= len(fleet.emissions) <= 4_000


def test_no_partition_exceeds_the_size_that_the_embedded_broker_keeps(fleet: Fleet) -> None:
    sizes: Counter[tuple[str, int]] = Counter()
    for emission in fleet.emissions:
        sizes[emission.topic, emission.partition] += len(emission.value or b"") + len(emission.key or b"") + 150
    assert len(sizes) == 2 * PARTITIONS
    assert max(sizes.values()) < 3_000_000


def test_the_fleet_has_misrouted_keyless_duplicate_and_unusable_records(fleet: Fleet) -> None:
    fates = Counter(emission.fate for emission in fleet.emissions)
    assert fates[DUPLICATE] >= 10
    assert sum(emission.misrouted for emission in fleet.emissions) >= 50
    assert sum(emission.key is None and bool(emission.session) for emission in fleet.emissions) >= 3
    wanted = {"empty", "not_json", "not_an_object", "invalid", "future_timestamp"}
    assert set(fates) == wanted | {JOINED, DUPLICATE}


def test_a_duplicate_follows_its_original(fleet: Fleet) -> None:
    seen: set[tuple[str, bytes | None]] = set()
    for emission in fleet.emissions:
        assert ((emission.session, emission.value) in seen) == (emission.fate == DUPLICATE) or not emission.session
        seen.add((emission.session, emission.value))


def test_a_single_session_contains_the_secrets(fleet: Fleet) -> None:
    carriers = {emission.session for emission in fleet.emissions if SECRETS[0].encode() in (emission.value or b"")}
    assert carriers == {fleet.session_with_secrets}
    (trace,) = [
        emission.value or b""
        for emission in fleet.emissions
        if emission.topic == "traces" and emission.session in carriers
    ]
    assert all(secret.encode() in trace for secret in SECRETS)


def test_rounds_of_the_demo_share_no_session_and_no_domain(fleet: Fleet) -> None:
    later = build_fleet(1, 30.0, START, number=1)
    assert not {emission.session for emission in later.emissions} & {
        emission.session for emission in fleet.emissions
    } - {""}
    assert not any(
        b'"task_domain":"travel"' in (emission.value or b"") for emission in later.emissions if emission.session
    )
    assert all(emission.due_s >= 0 for emission in later.emissions)


def test_the_texts_of_a_session_are_about_one_case(fleet: Fleet) -> None:
    for session in sessions_of(fleet.emissions):
        first = next((turn.invocation for turn in turns_of(session.document()) if session.events), None)
        if first is None or first.user_content is None or first.final_response is None:
            continue
        for trace in session.traces:
            assert trace.task.objective == first.user_content.text
            assert trace.outcome.result_summary == first.final_response.text
