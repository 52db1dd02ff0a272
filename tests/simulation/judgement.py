"""The judgement of a simulation: the audit of what was committed."""

from __future__ import annotations

from tests.audit import certificates, claims, clocks, configs, judges, replays, spans
from tests.audit.committed import CONFIGS
from tests.audit.evidence import Evidence
from tests.simulation.bounds import broken_bounds
from tests.simulation.scenario import ADDED, JUDGED
from tests.simulation.world import World
from tests.support.ledger import Ledger
from tests.support.span_ledger import SpanLedger

BOUNDED = "unbounded"
"""The heading of the bounds on memory."""
REFUSED = "refused by time"
"""The heading of records that are dead letters by their time although all clocks are right."""
GIVEN_UP = "given up"
"""The heading of scoring processes that end without a fault."""


def judged(world: World, load: Ledger | SpanLedger) -> claims.Faults:
    """Returns a sentence for each fault, by heading and claim; empty if the workers are right."""
    bounds = _bounds(world) | _given_up(world)
    load.refused += world.refused
    if isinstance(load, SpanLedger):
        return bounds | spans.faults(load, world.committed, spans.late_traces(world.committed))
    load.sent["forwarded"] += world.forwarded
    wrong_clocks = world.scenario.wrong_clocks
    (clocks if wrong_clocks else replays).account(load, world.committed)
    evidence = Evidence(
        load,
        world.committed,
        world.scenario.config,
        optional=(ADDED,),
        judged=JUDGED,
        configs=world.pushes.topic(world.committed.rows[CONFIGS]),
        wrong_clocks=wrong_clocks,
    )
    evidence.settled, evidence.refused_configs = world.settled, world.pushes.letters
    if world.settled:
        configs.require_sessions_after_the_last_push(evidence)
    groups = [claims.EXACTLY_ONCE, configs.CLAIMS, certificates.CLAIMS, replays.CLAIMS]
    groups.append(clocks.CLAIMS if wrong_clocks else claims.WITHIN_THE_GRACE)
    if world.scenario.kind == "judged":
        evidence.verdicts = [(each.prompt, each.safe) for each in world.models.given]
        evidence.useless = world.models.useless
        groups.append(judges.CLAIMS)
    return bounds | _refused_by_time(world) | claims.faults(evidence, *groups)


def _given_up(world: World) -> claims.Faults:
    found = world.scorers.given_up
    return {GIVEN_UP: {"a_scoring_process_ends_by_a_fault_only": found}} if found else {}


def _refused_by_time(world: World) -> claims.Faults:
    before = world.letters_before_the_last_replay
    if before is None:  # nothing was replayed
        return {}
    found = list(clocks.no_right_clock_refuses_a_record(world.committed, before))
    return {REFUSED: {"no_right_clock_refuses_a_record": found}} if found else {}


def _bounds(world: World) -> claims.Faults:
    rows = [row for topic in world.committed.inputs for row in world.committed.rows[topic]]
    found = list(broken_bounds(world, len(rows), sum(len(row.value or b"") for row in rows)))
    return {BOUNDED: {"memory_is_bounded": found}} if found else {}
