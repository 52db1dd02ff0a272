"""Tests the ledger of expected counts, which follow from the emissions and hold for every order of candidates."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

import pytest

from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.scorers.metrics.trace_value import evaluate_value
from traceweir.streams.cli.demo.fleet import build_fleet
from traceweir.streams.cli.demo.ledger import CONFIG, expected_counts, sessions_of, spans_by_domain
from traceweir.streams.cli.demo.margins import OrderMattersError, ValueRange, below

pytestmark = pytest.mark.slow  # each test computes a demo

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAN = read_plan(CONFIG)


@pytest.mark.parametrize(("seed", "seconds"), [(1, 30.0), (2, 30.0), (3, 8.0), (4, 8.0), (5, 8.0)])
def test_no_value_is_near_the_threshold_in_any_order(seed: int, seconds: float) -> None:
    spans = [span for found in spans_by_domain(build_fleet(seed, seconds, START).emissions).values() for span in found]
    assert sum(span.twin is not None for span in spans) >= 4
    assert min(span.distance(PLAN.gate.threshold) for span in spans) > 0.02


def test_values_measured_in_random_orders_lie_within_their_spans() -> None:
    emissions = build_fleet(1, 8.0, START).emissions
    traces: dict[str, list[ReasoningTrace]] = {}
    for session in sessions_of(list(emissions)):
        for trace in session.traces:
            traces.setdefault(trace.metadata.task_domain, []).append(trace)
    spans = {span.trace_id: span for found in spans_by_domain(emissions).values() for span in found}
    for seed in range(5):
        for found in traces.values():
            unique = list({trace.id: trace for trace in found}.values())
            random.Random(seed).shuffle(unique)
            _assert_within(unique, spans)


def _assert_within(traces: list[ReasoningTrace], spans: dict[str, ValueRange]) -> None:
    embedder, cache, before = HashingEmbedder(), NoveltyCache(), set[str]()
    for trace in traces:
        value, span = evaluate_value(trace, embedder=embedder, cache=cache).value, spans[trace.id]
        lowest, highest = span.beside_twin if span.beside_twin and span.twin in before else (span.lowest, span.highest)
        assert lowest - 1e-6 <= value <= highest + 1e-6
        before.add(trace.id)


def test_a_value_span_across_the_threshold_is_rejected() -> None:
    with pytest.raises(OrderMattersError, match="kp:trace:x has a value from 0"):
        below([ValueRange("kp:trace:x", 0.7, 0.8)], 0.75)


def test_exactly_one_of_two_twins_is_below_the_threshold() -> None:
    spans = [
        ValueRange("a", 0.8, 0.9, "b", (0.6, 0.6)),
        ValueRange("b", 0.8, 0.9, "a", (0.6, 0.6)),
        ValueRange("c", 0.1, 0.2),
    ]
    assert below(spans, 0.75) == {"b", "c"}


def test_the_expected_counts_add_up_for_every_prefix_of_the_emissions() -> None:
    emissions = build_fleet(1, 8.0, START).emissions
    for length in (0, 100, 300, len(emissions)):
        counts = Counter(expected_counts(emissions[:length], PLAN))
        assert counts["records"] == length
        assert counts["sessions"] == counts["closed: idle"] + counts["closed: session.ended"]
        conflicts = counts["dead letters: trace_id_conflict"]
        assert counts["candidates"] == counts["decisions: accepted"] + counts["decisions: rejected"] + conflicts
        assert counts["network"] == counts["decisions: accepted"]


def test_every_outcome_occurs() -> None:
    counts = expected_counts(build_fleet(1, 30.0, START).emissions, PLAN)
    for metric in ("tool_trajectory_avg_score", "response_match_score"):
        for status in ("PASSED", "FAILED", "NOT_EVALUATED missing_input"):
            assert counts[f"scores: {metric} {status}"] >= 10
    for reason in ("below_threshold", "visibility", "privacy", "criterion_failed:tool_trajectory_avg_score"):
        assert counts[f"rejected: {reason}"] >= 2
    assert counts["decisions: accepted"] >= 20
