"""Measures the cost of exactly once on one Apache Kafka: ratios of transactions to plain commits within a round."""

import statistics
from collections import defaultdict

from benchmarks import latency, throughput

SESSIONS = 8_000
SHARE = 4
"""Latency is measured at this fraction of the rate that transactions reach."""


def run(servers: str, rounds: int = 3) -> None:
    """Prints every round, and the median ratios of transactions to plain commits. The first round is not counted."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        rates = {on: throughput.one(servers, "all stages", SESSIONS, transactions=on)["rate"] for on in (True, False)}
        waits = {on: latency.one(servers, rates[True] / SHARE, seconds=15.0, transactions=on) for on in (True, False)}
        print(
            f"  {rates[True]:,.0f} records/s with transactions, {rates[False]:,.0f} with plain commits{'' if turn else ' (not counted)'}"
        )
        if turn:
            ratios["throughput"].append(rates[True] / rates[False])
            for metric, (p50, p99) in waits[True].items():
                ratios[f"p50, {metric}"].append(p50 / waits[False][metric][0])
                ratios[f"p99, {metric}"].append(p99 / waits[False][metric][1])
    for name, values in ratios.items():
        print(
            f"MEDIAN of transactions to plain commits, {name}: {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
        )
