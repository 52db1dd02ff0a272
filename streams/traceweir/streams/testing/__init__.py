"""Runs the stages without Kafka, for tests of scorers, gates and stages of your own: send records, let time pass, crash, read outputs.

A `Flow` holds topics, tables and a clock in memory; Kafka Streams calls such a tool a TopologyTestDriver. It needs no pytest. Begin with
`Flow`; `event` and `trace` make valid records, `plan_of` makes a plan for a scorer that is not installed.
"""

from traceweir.streams.testing.builders import START_S, event, instant, plan_of, trace
from traceweir.streams.testing.flow import Flow
from traceweir.streams.testing.held_scoring import HeldScoring
from traceweir.streams.testing.memory import MemoryTable, Message

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
