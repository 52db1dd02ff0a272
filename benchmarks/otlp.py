"""Measures how many spans one core reads from files of OTLP requests: protobuf's decoding alone, split, and in full.

Run it with `python -m benchmarks.otlp FILE...`, on a machine that does nothing else. JSON requests have no row for
protobuf's decoding.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from benchmarks.machine import description
from traceweir.streams.intake.otlp.decoding import decode_spans
from traceweir.streams.intake.otlp.files import requests_of
from traceweir.streams.intake.otlp.slices import is_json, span_slices

ROUNDS = 5


def main(paths: list[str]) -> None:
    """Prints spans per second of CPU time for each encoding and step; the rounds of all steps alternate."""
    print(description())
    requests: list[bytes] = []
    for path in paths:
        with Path(path).open("rb") as stream:
            requests += requests_of(stream)
    for encoding in ("protobuf", "JSON"):
        chosen = [raw for raw in requests if is_json(raw) == (encoding == "JSON")]
        spans = sum(len(span_slices(raw).slices) for raw in chosen)
        if not spans:
            continue
        steps: dict[str, Callable[[bytes], object]] = {"split": span_slices, "full": decode_spans}
        if encoding == "protobuf":
            steps = {"decode alone": TracesData.FromString, **steps}
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(ROUNDS):
            for name, step in steps.items():
                start = time.process_time()
                for raw in chosen:
                    step(raw)
                seconds[name].append(time.process_time() - start)
        for name, found in seconds.items():
            print(f"{encoding}, {name}: {spans / median(found):,.0f} spans/s of CPU time ({spans} spans)")


if __name__ == "__main__":
    main(sys.argv[1:])
