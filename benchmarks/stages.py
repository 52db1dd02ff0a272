"""Builds single stages as a worker builds them."""

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.pipeline.topology import Resources, Topology


def topology_of_one_partition(plan: Plan | None = None) -> Topology:
    """Returns a topology on one partition for assemble and gate, which need no scoring."""
    return Topology.of(Settings(partitions=1), plan or read_plan({}), Resources(utc_now, scoring=None))
