"""Computes the decisions that the gate must take on a set of traces, for every order of arrival.

The novelty of a trace depends on the traces before it, and two runs can interleave differently. The demo's traces are
chosen so that no order changes a decision. Of two near-duplicates, the trace that comes second is below the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceweir.schemas.figures import figure
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.embedding import embedded_text
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.scorers.metrics.trace_value import TraceValue

TWIN_SIMILARITY = 0.9


class OrderMattersError(ValueError):
    """Some order of the traces would change a decision."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values that a trace can have over all orders of arrival."""

    trace_id: str
    lowest: float
    highest: float
    twin: str | None = None
    """Id of the trace's near-duplicate.

    `lowest` and `highest` then hold for the trace if it comes first of the two.
    """
    beside_twin: tuple[float, float] | None = None
    """The lowest and the highest value of the trace if it comes second of the two."""

    def distance(self, threshold: float) -> float:
        """Returns the smallest distance of a possible value from the threshold; 0 if values lie on both sides."""
        spans = [(self.lowest, self.highest), *([self.beside_twin] if self.beside_twin else [])]
        return min(
            0.0 if low < threshold <= high else min(abs(low - threshold), abs(high - threshold)) for low, high in spans
        )


def spans_of(traces: Sequence[ReasoningTrace]) -> list[ValueRange]:
    """Returns the possible values of the traces of one domain, from the similarity of each trace to all others."""
    if not traces:
        return []
    texts = [embedded_text(trace.task.objective, [step.content for step in trace.steps]) for trace in traces]
    vectors = HashingEmbedder().embed(texts).astype(np.float64)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, np.nan)
    return [_span(traces, similarity[place], place) for place in range(len(traces))]


def below(spans: Sequence[ValueRange], threshold: float) -> set[str]:
    """Returns the ids of the traces below the threshold; of twins, by convention, the twin with the greater id.

    Raises:
        OrderMattersError: a trace is above or below the threshold, depending on the order.
    """
    found = set()
    for span in spans:
        if span.distance(threshold) == 0.0:
            raise OrderMattersError(
                f"{span.trace_id} has a value from {figure(span.lowest)} to {figure(span.highest)}, on both sides of {threshold}"
            )
        second = span.twin is not None and span.trace_id > span.twin
        low = span.beside_twin[0] if second and span.beside_twin else span.lowest
        if low < threshold:
            found.add(span.trace_id)
    return found


def _span(
    traces: Sequence[ReasoningTrace], similarity: np.ndarray[tuple[int], np.dtype[np.float64]], place: int
) -> ValueRange:
    trace = traces[place]
    others = similarity[~np.isnan(similarity)]
    twins = np.flatnonzero(np.nan_to_num(similarity, nan=-1.0) >= TWIN_SIMILARITY)
    if len(twins) > 1:
        raise OrderMattersError(f"{trace.id} has {len(twins)} near-duplicates; at most one is supported")
    apart = others[others < TWIN_SIMILARITY]
    # The first trace of a domain has the novelty 0.5. Any other trace has 1 minus the similarity to the nearest earlier
    # trace, which can be any of the other traces.
    novelties = [0.5, *(1.0 - apart)]
    lowest = _value(trace, min(novelties))
    highest = _value(trace, max(novelties))
    if not len(twins):
        return ValueRange(trace.id, lowest, highest)
    twin = int(twins[0])
    second = _value(trace, 1.0 - float(similarity[twin]))
    return ValueRange(trace.id, lowest, highest, traces[twin].id, (second, second))


def _value(trace: ReasoningTrace, novelty: float) -> float:
    return TraceValue().measure(trace, float(novelty)).value
