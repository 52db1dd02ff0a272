"""The gauges read the stages of a worker, and those that a shadow has wrapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from traceweir.streams.base.stages.base import Read, Stage, StageSpec
from traceweir.streams.lab.shadow.stage import ShadowStage
from traceweir.streams.testing import Flow
from traceweir.streams.worker.telemetry import catalogue
from traceweir.streams.worker.telemetry.present_state import ObservedWorker, PresentState


class ShadowFlow(Flow):
    """A flow whose stages are those of a shadow."""

    def wrap(self, spec: StageSpec) -> StageSpec:
        def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
            stage: Any = spec.new(partition, read, changed)
            return ShadowStage(stage, frozenset(), self.topics.sessions, None)

        return replace(spec, new=new)


@pytest.mark.parametrize("kind", [Flow, ShadowFlow])
def test_the_gauges_of_stages_are_read_also_in_a_shadow(kind: type[Flow]) -> None:
    worker = SimpleNamespace(
        lanes=kind(stages=("score", "gate")).lanes,
        phase="ready",
        restoring=0,
        transaction_timeout_s=60.0,
        retention_s={},
        unread=SimpleNamespace(**dict.fromkeys(("lag", "age_s", "held_back_s"), dict)),
    )
    state = PresentState(cast("ObservedWorker", worker), None, tuple, lambda: 0.0, lambda: 0.0)

    found = {(point.instrument.name, point.attributes): point.value for point in state.points()}

    assert found[catalogue.JUDGE_WAITING.name, ("settling",)] == 0
    assert found[catalogue.JUDGE_WAITING.name, ("unavailable",)] == 0
    assert found[catalogue.CHALLENGER_WAITING.name, ()] == 0
    assert found[catalogue.SCOPES.name, ()] == 0
