"""The judgement of a simulation: the audit of what was committed."""

from __future__ import annotations

from tests.audit import claims, configs, judges, replays, spans
from tests.audit.committed import CONFIGS
from tests.audit.evidence import Evidence
from tests.simulation.bounds import broken_bounds
from tests.simulation.scenario import ADDED, JUDGED
from tests.simulation.world import World
from tests.support.ledger import Ledger
from tests.support.span_ledger import SpanLedger

BOUNDED = "unbounded"
"""The heading of the bounds on memory."""
GIVEN_UP = "given up"
"""The heading of scoring processes that end without a fault."""


def judged(world: World, load: Ledger | SpanLedger) -> claims.Faults:
    """Returns a sentence for each fault, by heading and claim; empty if the workers are right."""
    bounds = _bounds(world) | _given_up(world)
    load.refused += world.refused
    if isinstance(load, SpanLedger):
        return bounds | spans.faults(load, world.committed, spans.late_traces(world.committed))
    replays.account(load, world.committed)
    evidence = Evidence(
        load,
        world.committed,
        world.scenario.config,
        optional=(ADDED,),
        judged=JUDGED,
        configs=world.pushes.topic(world.committed.rows[CONFIGS]),
    )
    evidence.settled, evidence.refused_configs = world.settled, world.pushes.letters
    if world.settled:
        configs.require_sessions_after_the_last_push(evidence)
    groups = [claims.EXACTLY_ONCE, claims.WITHIN_THE_GRACE, configs.CLAIMS, replays.CLAIMS]
    if world.scenario.kind == "judged":
        evidence.verdicts = [(each.prompt, each.safe) for each in world.models.given]
        evidence.useless = world.models.useless
        groups.append(judges.CLAIMS)
    return bounds | claims.faults(evidence, *groups)


def _given_up(world: World) -> claims.Faults:
    found = world.scorers.given_up
    return {GIVEN_UP: {"a_scoring_process_ends_by_a_fault_only": found}} if found else {}


def _bounds(world: World) -> claims.Faults:
    rows = [row for topic in world.committed.inputs for row in world.committed.rows[topic]]
    found = list(broken_bounds(world, len(rows), sum(len(row.value or b"") for row in rows)))
    return {BOUNDED: {"memory_is_bounded": found}} if found else {}
