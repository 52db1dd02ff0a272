"""Bugs of the stage collect."""

from __future__ import annotations

from typing import Any

from tests.simulation.bugs.registry import bug, put
from tests.simulation.world import World

from traceweir.streams.pipeline.collect import stage
from traceweir.streams.pipeline.collect.stage import CollectStage


@bug
def spans_of_other_partitions_are_dropped(world: World) -> None:
    """Spans that arrive on another partition than that of their trace are lost."""
    put(CollectStage, "_forward", lambda self, *args: None)


@bug
def forwarded_log_records_are_read_as_spans(world: World) -> None:
    """The origin of a forwarded record is ignored."""
    put(CollectStage, "_is_log", lambda self, topic, record: topic == self._topics.otlp_logs)


@bug
def spans_are_forgotten_at_reload(world: World) -> None:
    """The identities of the spans of a trace are not restored, so that a repeated span counts as new."""
    load = CollectStage.load

    def forget(self: Any, rows: Any) -> None:
        load(self, rows)
        for trace in self._traces.values():
            trace.identities = type(trace.identities)()

    put(CollectStage, "load", forget)


@bug
def open_traces_are_not_restored(world: World) -> None:
    """After a restart the stage knows no trace."""
    load = CollectStage.load
    kept = (b"#", b"w")
    put(CollectStage, "load", lambda self, rows: load(self, {k: row for k, row in rows.items() if k[:1] in kept}))


@bug
def what_was_published_is_forgotten(world: World) -> None:
    """A later publication of a trace repeats the documents of the one before."""
    put(stage, "published_key", lambda trace_id: b"x" + trace_id)


@bug
def trace_is_published_without_its_rows(world: World) -> None:
    """The state of a trace that is published does not change with the publication."""
    publish = CollectStage._publish

    def careless(self: Any, trace: Any) -> Any:
        outputs = publish(self, trace)
        self._dirty.pop(trace.id, None)
        return outputs

    put(CollectStage, "_publish", careless)
