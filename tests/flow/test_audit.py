"""The audit reports no fault in the output of the stages, and reports every removed, doubled or changed record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.audit import claims
from tests.audit.committed import CHANGELOG, INPUTS, OUTPUTS, STAGES, Committed, Row
from tests.audit.evidence import Evidence
from tests.support.flow import TOPICS
from tests.support.ledger import PARTITIONS, Ledger

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.testing import START_S, Flow

CONFIG = {
    "criteria": {"tool_trajectory_avg_score": 0.5},
    "gate": {"threshold": 0.6, "required": ["tool_trajectory_avg_score"], "cache_size": 8},
}
EVERY = (claims.EXACTLY_ONCE, claims.WITHIN_THE_GRACE)
Rows = dict[str, list[Row]]


class Seen:
    """The records of the flow's topics, with the interface of `Committed`."""

    def __init__(self, rows: Rows, counts: dict[str, Counter[str]]) -> None:
        self.rows, self._counts = rows, counts
        self.left: list[str] = []

    def counts(self) -> dict[str, Counter[str]]:
        return self._counts

    def unread(self) -> list[str]:
        return self.left


async def audited_records() -> tuple[Ledger, Seen]:
    """Returns a ledger, and the records that the stages wrote for it."""
    ledger = Ledger(5, live=20, late=0.2, former=0.05, away_s=900)
    flow = Flow(
        read_plan(json.dumps(CONFIG)),
        embedder=HashingEmbedder(),
        partitions=PARTITIONS,
        idle_gap_s=4,
        close_linger_s=0.5,
        grace_s=60,
        guard_s=300,
    )
    flow.pass_time(60 * 86_400)  # The traces were created before this time.
    for step in range(60):
        ledger.warm = step > 10
        for sending in ledger.records(15, flow.now) if step < 59 else ledger.rest(flow.now):
            at = (sending.at or flow.now) - START_S
            topic = getattr(TOPICS, sending.topic)
            flow.send(topic, sending.value, sending.key, partition=sending.partition, headers=sending.headers, at=at)
        await flow.settle()
        flow.pass_time(0.25)
    for _ in range(4):
        flow.pass_time(20)
        await flow.settle()
    rows = {
        name: [
            Row(m.partition, m.offset, m.key, m.value, list(m.headers), m.timestamp)
            for m in flow.read(getattr(TOPICS, name.replace("-", "_")))
        ]
        for name in (*INPUTS, *OUTPUTS)
    }
    return ledger, Seen(rows | {CHANGELOG: []}, {stage: Counter(flow.counters(stage)) for stage in STAGES})


@pytest.fixture(scope="module")
def round_() -> tuple[Ledger, Seen]:
    import asyncio

    return asyncio.run(audited_records())


CLAIMS = {claim.__name__: claim for group in EVERY for named in group.values() for claim in named}


@pytest.mark.slow
def test_the_output_of_the_stages_satisfies_every_claim(round_: tuple[Ledger, Seen]) -> None:
    ledger, seen = round_
    evidence = Evidence(ledger, cast("Committed", seen), CONFIG)

    assert claims.faults(evidence, *EVERY) == {}
    revisions = Counter(len(published) for published in evidence.revisions.values())
    assert revisions[2] > 5  # Otherwise the claims about revisions would be tested on no record.
    assert any(row.value is None for row in seen.rows["network"])
    assert {letter.reason for letter in evidence.letters} >= {"future_timestamp", "not_json"}
    assert any(name.startswith("away") for name in ledger.events)
    assert ledger.before
    assert any("refused" in each.document for each in evidence.sessions)


def last_with(rows: Rows, topic: str, holds: Callable[[Any], bool]) -> int:
    return max(at for at, row in enumerate(rows[topic]) if row.value is not None and holds(row.document))


def drop(topic: str, holds: Callable[[Any], bool] = bool) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        del rows[topic][last_with(rows, topic, holds)]

    return change


def double(topic: str, holds: Callable[[Any], bool] = bool) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        row = rows[topic][last_with(rows, topic, holds)]
        rows[topic].append(row._replace(offset=1_000_000))

    return change


def edit(topic: str, what: Callable[[Any], object], holds: Callable[[Any], bool] = bool) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        at = last_with(rows, topic, holds)
        document = rows[topic][at].document
        what(document)
        rows[topic][at] = rows[topic][at]._replace(value=json.dumps(document).encode())

    return change


def is_(metric: str) -> Callable[[Any], bool]:
    return lambda found: bool(found["metric"] == metric and found["value"] is not None)


def revised(session: Any) -> bool:
    return bool(session["revision"] == 1 and session["traces"])


def letter(rows: Rows, change: Callable[[list[Row]], object]) -> None:
    change(rows["dead-letters"])


TRAJECTORY, EVENTS = "tool_trajectory_avg_score", "events"
MUTATIONS: dict[str, Callable[[Rows], None]] = {
    "no_record_is_lost": edit("sessions", lambda s: s[EVENTS].pop(), lambda s: len(s[EVENTS]) > 1),
    "every_result_is_there": drop("results", is_(TRAJECTORY)),
    "garbage_is_a_dead_letter": lambda rows: letter(rows, list.pop),
    "network_holds_what_was_accepted": drop("network"),
    "no_result_is_doubled": double("results"),
    "network_says_it_once": double("network"),
    "nothing_else_is_a_dead_letter": lambda rows: letter(rows, lambda letters: letters.append(letters[0])),
    "no_record_is_doubled_or_made_up": edit("sessions", lambda s: s[EVENTS].append(s[EVENTS][0]), lambda s: s[EVENTS]),
    "the_last_content_of_a_trace_stands": edit("sessions", lambda s: s["traces"][0].update(id="x"), revised),
    "segments_are_whole": edit("sessions", lambda s: s.update(closed_because="size_limit")),
    "sessions_name_their_dead_letters": edit(
        "sessions", lambda s: s["refused"].append(s["refused"][0]), lambda s: "refused" in s
    ),
    "revisions_follow_each_other": edit("sessions", lambda s: s.update(revision=2), lambda s: s["revision"] == 1),
    "records_are_in_their_segment": edit("sessions", lambda s: s.update(segment=s["segment"] + 1)),
    "every_decision_follows_from_the_log": edit(
        "results", lambda r: r["details"].update(novelty=r["details"]["novelty"] + 0.001), is_("trace_value")
    ),
    "every_change_of_a_trace_is_one_candidate": drop("candidates"),
    "candidates_are_in_their_scope": edit("candidates", lambda c: c["required"][TRAJECTORY].update(status="ODD")),
    "an_id_stands_for_one_subject": edit("results", lambda r: r.update(result_id="x"), lambda r: r["revision"] == 1),
    "trajectories_are_right": edit("results", lambda r: r.update(value=r["value"] + 0.5), is_(TRAJECTORY)),
    "strays_were_forwarded_once": drop("strays"),
    "coverage_adds_up": drop("results", is_(TRAJECTORY)),
}
NEED_MORE = {"failures_cost_their_own_score", "nothing_is_left_unread"}
"""Claims that need a failing scorer or consumer groups, which this flow does not have."""


def test_every_claim_has_a_mutation() -> None:
    assert CLAIMS.keys() - NEED_MORE == MUTATIONS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("claim", MUTATIONS)
def test_the_audit_reports_a_removed_doubled_or_changed_record(claim: str, round_: tuple[Ledger, Seen]) -> None:
    ledger, seen = round_
    rows = {topic: list(each) for topic, each in seen.rows.items()}

    MUTATIONS[claim](rows)

    assert list(CLAIMS[claim](Evidence(ledger, cast("Committed", Seen(rows, seen.counts())), CONFIG)))
