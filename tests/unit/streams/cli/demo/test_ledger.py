"""Tests the ledger: what it expects of a session is what the stages, the scorers and the gate make of it, in any order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from tests.support.demo_sessions import sessions_of

from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.scorers.metrics.trace_value import evaluate_value
from traceweir.streams.cli.demo.fleet import Fleet, build_fleet
from traceweir.streams.cli.demo.ledger import CONFIG, expected_counts
from traceweir.streams.cli.demo.observed import Observed
from traceweir.streams.testing import START_S, Flow

pytestmark = pytest.mark.slow  # each test computes a demo

START = datetime.fromtimestamp(START_S, UTC)
PLAN = read_plan(CONFIG)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_stages_make_of_the_records_what_the_ledger_expects(seed: int) -> None:
    fleet = build_fleet(seed, 8.0, START)
    flow = Flow(PLAN, embedder=HashingEmbedder(), partitions=4, idle_gap_s=4, close_linger_s=2)
    for one in fleet.emissions:
        topic = flow.topics.traces if one.topic == "traces" else flow.topics.invocations
        at = max(one.due_s, 0.0) + one.ahead_s
        flow.send(topic, one.value, one.key, partition=one.partition, headers=one.headers, at=at)
    flow.pass_time(10)
    await flow.finish()

    seen = observed(flow)

    assert seen.counts == expected_counts(fleet.emissions, fleet.outcomes)
    assert [str(each) for each in seen.equations(len(fleet.emissions)) if not each.holds] == []
    assert not all(each.holds for each in seen.equations(len(fleet.emissions) + 1))


def observed(flow: Flow) -> Observed:
    """Returns what the demo's observer would have seen of the topics of a flow."""
    seen = Observed(len(PLAN.metrics))
    for message in flow.read(flow.topics.sessions):
        seen.closed(message.value or b"")
    for message in flow.read(flow.topics.results):
        seen.result(message.value or b"")
    for message in flow.read(flow.topics.dead_letters):
        seen.dead_letter(message.key, message.value, message.headers)
    for message in flow.read(flow.topics.network):
        seen.published((message.key or b"").decode(), message.value or b"")
    seen.outputs["forwarded"] = len(flow.read(flow.topics.strays))
    seen.outputs["candidates"] = len(flow.read(flow.topics.candidates))
    for partition in range(flow.partitions):
        for stage in ("assemble", "score", "gate"):
            for row in flow.rows(f"{stage}/#".encode(), partition).values():
                seen.counted(stage, partition, row)
    return seen


@pytest.mark.parametrize(("seed", "seconds"), [(1, 30.0), (2, 30.0), (3, 8.0), (4, 8.0), (5, 8.0)])
def test_the_values_of_traces_are_on_the_expected_side_of_the_threshold_in_every_order(
    seed: int, seconds: float
) -> None:
    fleet = build_fleet(seed, seconds, START)
    traces: dict[str, list[ReasoningTrace]] = {}
    for session in sessions_of(fleet.emissions):
        for trace in session.traces:
            traces.setdefault(trace.metadata.task_domain, []).append(trace)
    low = sum(counts.get("scores: trace_value FAILED", 0) for counts in fleet.outcomes.values())
    for shuffled in range(3):
        values = []
        for found in traces.values():
            unique = list({trace.id: trace for trace in found}.values())
            random.Random(shuffled).shuffle(unique)
            values += values_of(unique)
        assert sum(value < PLAN.gate.threshold for value in values) == low
        # A rounding of the embedder changes no decision.
        assert min(abs(value - PLAN.gate.threshold) for value in values) > 0.01


def values_of(traces: Sequence[ReasoningTrace]) -> list[float]:
    embedder, cache = HashingEmbedder(), NoveltyCache()
    return [evaluate_value(trace, embedder=embedder, cache=cache).value for trace in traces]


def test_the_counts_of_any_sessions_add_up() -> None:
    fleet = build_fleet(1, 8.0, START)
    ids = sorted(fleet.outcomes)
    for length in (0, 10, 30, len(ids)):
        kept = {*ids[:length]}
        sent = [one for one in fleet.emissions if one.session in kept]
        counts = Counter(expected_counts(sent, fleet.outcomes))
        assert (counts["records"], counts["sessions"]) == (len(sent), length)
        assert counts["sessions"] == counts["closed: idle"] + counts["closed: session.ended"]
        conflicts = counts["dead letters: trace_id_conflict"]
        assert counts["candidates"] == counts["decisions: accepted"] + counts["decisions: rejected"] + conflicts
        assert counts["network"] == counts["decisions: accepted"]


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return build_fleet(1, 30.0, START)


def test_every_outcome_occurs(fleet: Fleet) -> None:
    counts = expected_counts(fleet.emissions, fleet.outcomes)
    for metric in ("tool_trajectory_avg_score", "response_match_score"):
        for status in ("PASSED", "FAILED", "NOT_EVALUATED missing_input"):
            assert counts[f"scores: {metric} {status}"] >= 10
    for reason in ("below_threshold", "visibility", "privacy", "criterion_failed:tool_trajectory_avg_score"):
        assert counts[f"rejected: {reason}"] >= 2
    assert counts["decisions: accepted"] >= 20


def test_a_round_has_twins_of_which_the_second_is_below_the_threshold(fleet: Fleet) -> None:
    twins = [name for name in fleet.outcomes if name.endswith("-b") and "conflict" not in name]
    assert len(twins) >= 4
    for name in twins:
        assert fleet.outcomes[name]["rejected: below_threshold"] == 1
        assert fleet.outcomes[name.removesuffix("b") + "a"]["decisions: accepted"] == 1
