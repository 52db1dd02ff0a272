"""Measures what `traceweir diff` takes for each result of two files: memory, disk, and time.

Run it with `python -m benchmarks diff-memory`. Each size runs in a process of its own.
"""

import multiprocessing
import resource
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from traceweir.schemas.score import Score, result_id
from traceweir.streams.lab.comparison.compare import compare
from traceweir.streams.lab.comparison.rows import ROW, Kinds, SideRows
from traceweir.streams.lab.comparison.texts import Texts
from traceweir.streams.lab.comparison_sides import ScoreSource, read_file

SIZES = (10_000, 110_000, 510_000)
"""Numbers of results of each side; the figures are differences between two sizes."""
_NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
_RATIONALE = "3 of 9 elements of the input are covered; 6 do not occur unchanged"


def run() -> None:
    """Prints the bytes and the time of each result, from the differences between sizes."""
    print(f"a row has {ROW.itemsize} bytes")
    context = multiprocessing.get_context("spawn")
    before: tuple[int, float, float] | None = None
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            files = [_write(Path(folder) / f"{side}.jsonl", size, side) for side in (0, 1)]
            with context.Pool(1) as pool:
                peak_bytes, read_s, compare_s = pool.apply(_measured, ([str(file) for file in files],))
            print(
                f"{size:>9,} results a side: peak {peak_bytes / 2**20:,.0f} MiB, read in {read_s:.1f} s, "
                f"compared in {compare_s:.1f} s"
            )
            if before is not None:
                more = 2 * (size - before[0])
                print(
                    f"          {(peak_bytes - before[1]) / more:,.0f} bytes and {(read_s - before[2]) / more * 1e6:.0f} µs a result"
                )
            before = size, peak_bytes, read_s


def _write(file: Path, size: int, side: int) -> Path:
    """Writes scores of sessions with five results of two metrics each."""
    with file.open("wb") as stream:
        for number in range(size):
            session, metric = f"session-{number // 10}", ("completeness", "response_match_score")[number % 2]
            value = (number * 7919 % 1_000) / 1_000
            if side and number % 10 == 0:
                value = 1 - value
            score = Score(
                result_id=result_id(session, 0, "invocation", str(number), metric, ""),
                revision=0,
                session_id=session,
                segment=0,
                invocation_id=f"invocation-{number // 2}",
                level="invocation",
                metric=metric,
                value=value,
                threshold=0.5,
                status="PASSED" if value >= 0.5 else "FAILED",
                rationale=_RATIONALE,
                scorer_version="1",
                config_digest="digest",
                occurred_at=_NOW,
                evaluated_at=_NOW,
            )
            stream.write(score.wire() + b"\n")
    return file


def _measured(files: list[str]) -> tuple[int, float, float]:
    kinds = Kinds()
    with Texts() as texts:
        start = time.perf_counter()
        sides = [SideRows(file, kinds, texts) for file in files]
        for file, side in zip(files, sides, strict=True):
            read_file(ScoreSource(file, path=file), side, print, lambda done, total: None)
        read = time.perf_counter()
        base, challenger = (side.counting() for side in sides)
        compare(base, challenger, kinds, texts, flips=10)
        end = time.perf_counter()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, read - start, end - read


if __name__ == "__main__":
    run()
