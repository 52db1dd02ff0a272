"""Lets a stage of a worker raise once, in the middle of a batch of records.

When the file that the variable `TRACEWEIR_TESTS_STUMBLE` names exists, the next batch of the stage that the file contains
is applied to its middle, and then the stage raises. The worker must lose and double nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from traceweir.streams.base.stages.base import Record

VARIABLE = "TRACEWEIR_TESTS_STUMBLE"


class StumbleError(RuntimeError):
    """Raised by a stage because a test asked for it."""


def install(file: Path) -> None:
    """Wraps the stages that this process builds."""
    from traceweir.streams.pipeline.topology import Topology

    spec = Topology.spec

    def wrapped(self: Topology, stage: Any) -> Any:
        found = spec(self, stage)
        new = found.new

        def build(*args: Any) -> Any:
            built: Any = new(*args)
            built.apply = _stumbling(stage, built.apply, file)
            return built

        return type(found)(found.name, found.inputs, found.outputs, build)

    Topology.spec = wrapped  # type: ignore[method-assign]


def _stumbling(stage: str, apply: Any, file: Path) -> Any:
    def call(topic: str, records: Sequence[Record]) -> None:
        if not file.exists() or file.read_text() != stage:
            apply(topic, records)
            return
        file.unlink()
        apply(topic, records[: 1 + len(records) // 2])
        raise StumbleError(f"{stage} was asked to raise in a batch of {len(records)} records")

    return call
