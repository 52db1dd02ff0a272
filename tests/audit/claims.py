"""Lists every claim, and the heading under which its faults are counted."""

from __future__ import annotations

from collections.abc import Mapping

from tests.audit import counts, gate, scores, sessions
from tests.audit.evidence import Claim, Evidence

LOST = "lost"
DOUBLED = "doubled"
WRONG = "sessions wrong"
DIFFERENT = "different"
UNCOUNTED = "miscounted"
HEADINGS = (LOST, DOUBLED, WRONG, DIFFERENT, UNCOUNTED)

EXACTLY_ONCE: Mapping[str, tuple[Claim, ...]] = {
    LOST: (
        sessions.no_record_is_lost,
        scores.every_result_is_there,
        counts.garbage_is_a_dead_letter,
        gate.network_holds_what_was_accepted,
    ),
    DOUBLED: (scores.no_result_is_doubled, gate.network_says_it_once, counts.nothing_else_is_a_dead_letter),
    WRONG: (
        sessions.no_record_is_doubled_or_made_up,
        sessions.the_last_content_of_a_trace_stands,
        sessions.segments_are_whole,
        sessions.sessions_name_their_dead_letters,
        sessions.revisions_follow_each_other,
    ),
    DIFFERENT: (
        gate.every_decision_follows_from_the_log,
        gate.every_change_of_a_trace_is_one_candidate,
        gate.candidates_are_in_their_scope,
        scores.an_id_stands_for_one_subject,
        scores.trajectories_are_right,
        scores.failures_cost_their_own_score,
    ),
    UNCOUNTED: (counts.strays_were_forwarded_once, counts.coverage_adds_up, counts.nothing_is_left_unread),
}
"""Claims that hold on Apache Kafka for every fault of workers, scorers, disks and nodes."""

WITHIN_THE_GRACE: Mapping[str, tuple[Claim, ...]] = {WRONG: (sessions.records_are_in_their_segment,)}
"""Claims that hold if no worker was absent for as long as the grace."""

AT_LEAST_ONCE: Mapping[str, tuple[Claim, ...]] = {
    LOST: (sessions.no_record_is_lost, scores.every_result_is_there, counts.garbage_is_a_dead_letter),
    DIFFERENT: (scores.an_id_stands_for_one_subject, scores.failures_cost_their_own_score),
}
"""Claims for the embedded broker.

It has no transactions, so after a crash some outputs come again with the same ids.
"""

Faults = dict[str, dict[str, list[str]]]
"""One sentence for each fault, by heading and claim."""


def faults(evidence: Evidence, *claims: Mapping[str, tuple[Claim, ...]]) -> Faults:
    """Returns the faults; contains only headings and claims that do not hold."""
    found: Faults = {}
    for each in claims:
        for heading, group in each.items():
            for claim in group:
                if sentences := list(claim(evidence)):
                    found.setdefault(heading, {})[claim.__name__] = sentences
    return found
