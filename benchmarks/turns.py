"""Compares workers that differ in their environment: one run of each in a turn, so that a drift of the machine meets all."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from benchmarks import throughput
from benchmarks.throughput import Measured


def compare(
    servers: str, cases: Mapping[str, Mapping[str, str]], sessions: int, rounds: int, broker: int | None = None
) -> None:
    """Prints the medians of all stages in each case, and their ratios to the first case.

    A first round is not counted.

    Args:
        servers: The bootstrap servers of Kafka.
        cases: The variables of the environment of each case, by the name of the case.
        sessions: The sessions of a run.
        rounds: The counted rounds.
        broker: The process of the broker, whose CPU then counts too.
    """
    measured: dict[str, list[Measured]] = defaultdict(list)
    for turn in range(rounds + 1):
        for name, variables in cases.items():
            found = throughput.one(servers, "all stages", sessions, variables=variables, broker=broker)
            if turn:
                measured[name].append(found)
    _print("records/s", {name: [each["rate"] for each in found] for name, found in measured.items()})
    _print(
        "us CPU a record in the main process",
        {name: [each["cpu_us"] for each in found] for name, found in measured.items()},
    )
    _print(
        "us CPU a record with all its processes",
        {name: [_whole(each) for each in found] for name, found in measured.items()},
    )


def _whole(found: Measured) -> float:
    return found["cpu_us"] + found.get("children_us", 0.0) + found.get("broker_us", 0.0)


def _print(unit: str, values: Mapping[str, Sequence[float]]) -> None:
    first, *_ = values
    for name, found in values.items():
        ratios = [one / other for one, other in zip(found, values[first], strict=True)]
        print(
            f"MEDIAN {name}: {statistics.median(found):,.1f} {unit}, {statistics.median(ratios):.3f} of {first} "
            f"({min(ratios):.3f} to {max(ratios):.3f})"
        )
