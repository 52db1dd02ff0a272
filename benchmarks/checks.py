"""Measures what five checks without a judge cost a worker beside two criteria that compare with a reference, in turns."""

from benchmarks import turns
from benchmarks.timed_worker import MORE_CRITERIA

FIVE = '{"no_tool_errors": {}, "repeated_calls": 3, "max_tool_calls": 20, "answered": {}, "handoffs": 3}'
CASES = {"no checks": {}, "five checks": {MORE_CRITERIA: FIVE}}


def run(servers: str, broker: int | None, sessions: int = 15_000, rounds: int = 5) -> None:
    """Prints the medians of all stages with and without the checks, and their ratios."""
    turns.compare(servers, CASES, sessions, rounds, broker)
