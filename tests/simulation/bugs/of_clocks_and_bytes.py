"""Bugs that show only with clocks that are wrong by hours, or on nodes that take few bytes a second."""

from __future__ import annotations

from tests.simulation.bugs.registry import bug_of_higher_seeds, put
from tests.simulation.world import World

from traceweir.streams.base.stages.base import Cut
from traceweir.streams.base.stages.watermark import MARKS_ROW
from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.worker.runtime import checkpoint_rounds, transaction_bound


@bug_of_higher_seeds
def watermark_is_written_with_records_only(world: World) -> None:
    """A checkpoint without records has no watermark, whatever the watermark has closed and forgotten."""
    before = AssembleStage.cut

    def cut(self: AssembleStage) -> Cut:
        found = before(self)
        if found.offsets:
            return found
        return found._replace(rows=[row for row in found.rows if row[0] != MARKS_ROW])

    put(AssembleStage, "cut", cut)


@bug_of_higher_seeds
def clock_that_goes_back_is_not_noticed(world: World) -> None:
    """A watermark that a fast clock has left stays ahead, as long as its worker lives."""
    put(checkpoint_rounds, "require_no_step_back", lambda watermarks, now: None)


@bug_of_higher_seeds
def transactions_without_bound(world: World) -> None:
    """A transaction has all the bytes that wait, however long the cluster takes for them."""
    put(transaction_bound, "_within_limits", lambda found: 1 << 60)
