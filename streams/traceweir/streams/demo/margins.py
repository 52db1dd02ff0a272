"""What the gate must decide on a set of traces, whatever order they come in.

Novelty depends on what came before, and two runs may interleave differently. So the demo's traces are such that no order changes a
verdict; of two near-duplicates, whichever comes second is below the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.embedding import HashingEmbedder, embedded_text
from traceweir.scorers.metrics.trace_value import TraceValue

TWIN_SIMILARITY = 0.9


class OrderMattersError(ValueError):
    """Some order of the traces would change a verdict."""


@dataclass(frozen=True, slots=True)
class Span:
    """The values that a trace can have, over all orders."""

    trace_id: str
    lowest: float
    highest: float
    twin: str | None = None
    """The near-duplicate of which exactly one comes first. The span is then that of the one that does."""
    beside_twin: tuple[float, float] | None = None
    """The values of the one that comes second."""

    def distance(self, threshold: float) -> float:
        """How far every possible value is from the threshold, at least; 0 if they lie on both sides."""
        spans = [(self.lowest, self.highest), *([self.beside_twin] if self.beside_twin else [])]
        return min(
            0.0 if low < threshold <= high else min(abs(low - threshold), abs(high - threshold)) for low, high in spans
        )


def spans_of(traces: Sequence[ReasoningTrace]) -> list[Span]:
    """The possible values of the traces of one domain, each compared with any of the others."""
    if not traces:
        return []
    texts = [embedded_text(trace.task.objective, [step.content for step in trace.steps]) for trace in traces]
    vectors = HashingEmbedder().embed(texts).astype(np.float64)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, np.nan)
    return [_span(traces, similarity[place], place) for place in range(len(traces))]


def below(spans: Sequence[Span], threshold: float) -> set[str]:
    """The traces below the threshold; of twins one, by convention the one with the greater id.

    Raises:
        OrderMattersError: a trace is above or below, depending on the order.
    """
    found = set()
    for span in spans:
        if span.distance(threshold) == 0.0:
            raise OrderMattersError(
                f"{span.trace_id} has a value from {span.lowest:.3f} to {span.highest:.3f}, on both sides of {threshold}"
            )
        second = span.twin is not None and span.trace_id > span.twin
        low = span.beside_twin[0] if second and span.beside_twin else span.lowest
        if low < threshold:
            found.add(span.trace_id)
    return found


def _span(
    traces: Sequence[ReasoningTrace], similarity: np.ndarray[tuple[int], np.dtype[np.float64]], place: int
) -> Span:
    trace = traces[place]
    others = similarity[~np.isnan(similarity)]
    twins = np.flatnonzero(np.nan_to_num(similarity, nan=-1.0) >= TWIN_SIMILARITY)
    if len(twins) > 1:
        raise OrderMattersError(f"{trace.id} has {len(twins)} near-duplicates; at most one is accounted for")
    apart = others[others < TWIN_SIMILARITY]
    # First of its domain: 0.5. Else 1 minus the similarity to the nearest of those that came before: any of the others may be that.
    novelties = [0.5, *(1.0 - apart)]
    lowest, highest = _value(trace, min(novelties)), _value(trace, max(novelties))
    if not len(twins):
        return Span(trace.id, lowest, highest)
    twin = int(twins[0])
    second = _value(trace, 1.0 - float(similarity[twin]))
    return Span(trace.id, lowest, highest, traces[twin].id, (second, second))


def _value(trace: ReasoningTrace, novelty: float) -> float:
    return TraceValue().measure(trace, float(novelty)).value
