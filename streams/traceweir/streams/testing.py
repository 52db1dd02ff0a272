"""Runs the stages without Kafka, for tests of custom scorers, gates and stages.

A test sends records, lets time pass, simulates crashes and reads outputs. A `Flow` keeps topics, tables and a clock in
memory; Kafka Streams calls such a class a TopologyTestDriver. The package does not need pytest. Begin with `Flow`;
`event` and `trace` return valid records, and `plan_of` returns a plan for a scorer that is not installed.

This is an import path of users; the modules are in `tools.testing`.
"""

from traceweir.streams.tools.testing.builders import START_S, event, instant, plan_of, trace
from traceweir.streams.tools.testing.flow import Flow
from traceweir.streams.tools.testing.held_scoring import HeldScoring
from traceweir.streams.tools.testing.memory import MemoryTable, Message

__all__ = [
    "START_S",
    "Flow",
    "HeldScoring",
    "MemoryTable",
    "Message",
    "event",
    "instant",
    "plan_of",
    "trace",
]
