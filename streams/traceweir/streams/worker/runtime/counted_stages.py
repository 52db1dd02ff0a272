"""Computes what the stages of a partition have read and counted since the last look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from traceweir.streams.base.stages.base import Stage


class CountedStages:
    """Computes how the counters of a partition's stages have changed. A stage without `counters` has none."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}
        self._before: Counter[str] = Counter()
        self._read: Counter[str] = Counter()

    def add(self, name: str, stage: Stage) -> None:
        """Adds a stage, or replaces the stage with this name; its present counts are no change."""
        self._stages[name] = stage
        now = self._now()
        kept = {key: n for key, n in self._before.items() if not key.startswith(f"{name}.")}
        self._before = Counter(kept | {key: n for key, n in now.items() if key.startswith(f"{name}.")})

    def note_read(self, topic: str, records: int) -> None:
        """Notes that a stage has taken records of an input topic."""
        self._read[f"read.{topic}"] += records

    def changes(self) -> Counter[str]:
        """Returns the changes since the last call, under the keys `stage.counter`, and `read.topic` for records read."""
        before = self._before
        self._before = self._now()
        read = self._read
        self._read = Counter()
        return Counter({key: n - before[key] for key, n in self._before.items() if n != before[key]} | read)

    def _now(self) -> Counter[str]:
        found: Mapping[str, Mapping[str, int]] = {
            name: getattr(stage, "counters", {}) for name, stage in self._stages.items()
        }
        return Counter({f"{name}.{key}": n for name, counters in found.items() for key, n in counters.items()})
