"""Measures the time of novelty: the maximum cosine alone, and whole candidates in batches.

Run it with `python -m benchmarks.cosine`, on a machine that does nothing else.
"""

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from traceweir.scorers.metrics.novelty import NoveltyCache

DIMENSIONS = 384


def run() -> list[dict[str, str | float]]:
    """Returns one row per figure: its name, the median, the unit, and the target if there is a target."""
    return [
        maximum_cosine(1_000, target_us=50.0),
        maximum_cosine(100_000, target_us=8_000.0),
        *(candidates_per_second(held, batch) for held in (1_000, 20_000, 100_000) for batch in (1, 16, 64, 256)),
    ]


def maximum_cosine(held: int, target_us: float) -> dict[str, str | float]:
    """Measures one vector against a matrix, which is the minimum work of every exact search."""
    vectors = unit_vectors(held)
    query = unit_vectors(1, seed=2)[0]
    seconds = _median_seconds(lambda: float((vectors @ query).max()))
    return {
        "figure": f"maximum cosine, {held:,} x {DIMENSIONS}",
        "value": seconds * 1e6,
        "unit": "us",
        "target": target_us,
    }


def candidates_per_second(held: int, batch: int) -> dict[str, str | float]:
    """Measures `measure_and_add` on a full cache: compare, correct in order, recompute in float64, replace oldest."""
    cache = NoveltyCache(held, DIMENSIONS)
    cache.measure_and_add(unit_vectors(held), [f"t{i}" for i in range(held)])
    fresh = iter(np.array_split(unit_vectors(batch * 400, seed=3), 400))  # distinct, because copies take another path
    names = [f"n{i}" for i in range(batch)]
    seconds = _median_seconds(lambda: cache.measure_and_add(next(fresh), names), at_most=399)
    return {"figure": f"novelty, {held:,} held, batches of {batch}", "value": batch / seconds, "unit": "candidates/s"}


def main() -> None:
    """Prints the rows."""
    for row in run():
        target = f"   (target: at most {row['target']:,.0f})" if "target" in row else ""
        print(f"{row['figure']:<42} {row['value']:>12,.1f} {row['unit']}{target}")


def _median_seconds(call: Callable[[], object], at_most: int = 2_000, budget_s: float = 1.0) -> float:
    call()
    taken: list[float] = []
    while len(taken) < at_most and sum(taken) < budget_s:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return median(taken)


def unit_vectors(rows: int, seed: int = 1) -> np.ndarray:
    """Returns random unit vectors, of shape (rows, 384)."""
    vectors = np.random.default_rng(seed).standard_normal((rows, DIMENSIONS), np.float32)
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


if __name__ == "__main__":
    main()
