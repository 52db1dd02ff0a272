"""Computes what the stages of a partition have counted since the last look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from traceweir.streams.stages.base import Stage


class CountedStages:
    """Computes how the counters of a partition's stages have changed. A stage without `counters` has none."""

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        """Starts with the present counts of the stages, by the name of each stage."""
        self._stages = stages
        self._before: Counter[str] = self._now()

    def changes(self) -> Counter[str]:
        """Returns the changes since the last call, under the keys `stage.counter`."""
        before, self._before = self._before, self._now()
        return Counter({key: n - before[key] for key, n in self._before.items() if n != before[key]})

    def _now(self) -> Counter[str]:
        found: Mapping[str, Mapping[str, int]] = {
            name: getattr(stage, "counters", {}) for name, stage in self._stages.items()
        }
        return Counter({f"{name}.{key}": n for name, counters in found.items() for key, n in counters.items()})
