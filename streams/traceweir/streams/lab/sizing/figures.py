"""The measured figures from which the needs of a deployment are computed, each with the benchmark that measures it.

`docs/benchmarks.md` says on which machine. A figure that is measured again is changed here, and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured figure, or a bound."""

    value: float
    unit: str
    what: str
    """What was measured."""
    benchmark: str | None
    """`python -m benchmarks NAME` measures it again; None: it is a bound that the code sets."""


RECORDS_OF_LOAD = 11
"""Records of a session in the load of the benchmarks."""
SCORES_OF_LOAD = 6
"""Scores and decisions of such a session, with two criteria and one turn."""

ASSEMBLE = Figure(12.0, "µs", "CPU of the worker for a record, until its session is closed", "throughput")
GATE = Figure(121.0, "µs", "CPU of the worker for the scores and the decision of a session", "throughput")
SCORING = Figure(187.0, "µs", "CPU of a scoring process for a session with two criteria in code", "throughput")
BROKER = Figure(6.2, "µs", "CPU of the broker for a record of an input, with all that follows from it", "throughput")
SCORE = Figure(94.0, "µs", "CPU of worker, scoring and broker for each further score of a session", "checks")
SCORE_OF_MAIN = Figure(25.0, "µs", "the part of it that the main thread of the worker takes", "checks")
QUESTION = Figure(4.7, "ms", "CPU of a scoring process for a question to a judge", "judge")
SPAN = Figure(65.1, "µs", "CPU of the worker for a span in the stage collect, as protobuf", "collect")
LIGHT_WORKER = Figure(0.085, "cores", "a worker at a light load, beside what its records take", "latency")
LIGHT_BROKER = Figure(
    0.13, "cores", "the broker of one worker at a light load, beside what its records take", "latency"
)

PROCESSES = Figure(176.0, "MB", "memory of a worker and its scoring process, without load", "open-sessions")
ROCKSDB = Figure(40.0, "MB", "memory of RocksDB for a partition at most: a cache of 16 MB, three buffers of 8 MB", None)
WORKER_STATE = Figure(2_500.0, "MB", "rows of a worker at most, so that its restore is short", None)
OPEN_MEMORY = Figure(2_334.0, "bytes", "Python's memory of an open session of ten events", "growth")
OPEN_ROWS = Figure(3_799.0, "bytes", "rows of an open session of ten events", "growth")
GRACE_MEMORY = Figure(446.0, "bytes", "memory of a closed session in the grace", "growth")
GRACE_ROWS = Figure(3_994.0, "bytes", "rows of a closed session of ten events in the grace", "growth")
GUARD_MEMORY = Figure(290.0, "bytes", "memory of a session under guard", "growth")
GUARD_ROWS = Figure(194.0, "bytes", "rows of a session under guard", "growth")
VECTOR_MEMORY = Figure(1_900.0, "bytes", "memory of a vector of 384 dimensions in a novelty scope", "hot-scope")
VECTOR_ROWS = Figure(1_500.0, "bytes", "rows of such a vector", "hot-scope")

RECORD_OVERHEAD = Figure(38.0, "bytes", "what a record takes in Kafka beside its value", "session-size")
SESSION_SHARE = Figure(1.11, "times", "the record of a closed session beside the values of its records", "session-size")
RESULT = Figure(944.0, "bytes", "a score in Kafka", "session-size")
CANDIDATE = Figure(880.0, "bytes", "a trace for the gate in Kafka, without its vector", "session-size")
CHANGELOG = Figure(
    17_100.0, "bytes", "rows written for a session of a minute, with a checkpoint each second", "compaction"
)
CHANGELOG_KEPT = Figure(2.7, "times", "the compacted changelog beside the state", "compaction")
RESTORE = Figure(
    68.0,
    "s/GB",
    "CPU to read the changelog and load it: the worse of two runs, on a loaded machine; the better had 21",
    "open-sessions",
)
STORED = Figure(
    367.0, "bytes", "a score in the DuckDB store of the dashboard, with its part of the session", "session-size"
)

VECTOR_BYTES = 4
"""Bytes of a dimension of a vector."""
CACHED_PROMPT_TOKENS = 1_024
"""Tokens from which on providers keep the beginning of a prompt in their cache. Stated by the providers, not measured."""


def all_figures() -> dict[str, Figure]:
    """Returns the figures by their names."""
    return {name: each for name, each in globals().items() if isinstance(each, Figure)}
