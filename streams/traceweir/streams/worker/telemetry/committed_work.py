"""Measures what checkpoints commit: counters of the stages, and the scores among their outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from traceweir.schemas.score import reported_status
from traceweir.streams.base.stages.base import Output
from traceweir.streams.worker.telemetry import catalogue
from traceweir.streams.worker.telemetry.catalogue import Instrument
from traceweir.streams.worker.telemetry.measured import Attributes, Distribution, Measured


class _Cost(msgspec.Struct, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    cached: bool = False


class _Score(msgspec.Struct, gc=False):
    """The fields of a Score that are measured. Decoding these alone takes half a microsecond."""

    metric: str
    status: str
    occurred_at: datetime
    value: float | None = None
    threshold: float | None = None
    not_evaluated_because: str | None = None
    judge: str | None = None
    cost: _Cost | None = None


_FROM_THE_START: tuple[tuple[Instrument, *tuple[str, ...]], ...] = (
    (catalogue.JUDGE_TOKENS, "input"),
    (catalogue.JUDGE_TOKENS, "output"),
    (catalogue.JUDGE_COST,),
    (catalogue.JUDGE_CACHED,),
)
"""Counters that begin with 0, so that a first cost is an increase for Prometheus."""


class CommittedWork:
    """Measures committed checkpoints; what is read again after a crash counts once.

    Args:
        measured: Takes the counts.
        results: The name of the topic `results`.
        now: Returns the time, for the freshness of scores.
    """

    def __init__(self, measured: Measured, results: str, now: Callable[[], datetime]) -> None:
        self._measured = measured
        self._results = results
        self._now = now
        self._decode = msgspec.json.Decoder(_Score).decode
        for instrument, *attributes in _FROM_THE_START:
            measured.add(instrument, 0, *attributes)

    def committed(self, counts: Mapping[str, int], outputs: Sequence[Output]) -> None:
        """Notes a committed checkpoint.

        Args:
            counts: What the stages have counted, by `stage.counter`, and the records read, by `read.topic`.
            outputs: The records that the checkpoint has written.
        """
        for key, number in counts.items():
            if (found := instrument_of(key)) is not None:
                self._measured.add(found[0], number, *found[1])
        for topic, number in Counter(output.topic for output in outputs).items():
            self._measured.add(catalogue.PRODUCED, number, topic)
        self._add_scores([output.value for output in outputs if output.topic == self._results and output.value])

    def _add_scores(self, values: Sequence[bytes]) -> None:
        """Notes scores. It takes about a microsecond for each, so it looks up each distribution once."""
        measured = self._measured
        now = self._now()
        freshness = measured.distribution(catalogue.FRESHNESS)
        tally = Counter[tuple[str, str, str, str]]()
        distributions = dict[str, Distribution]()
        for score in map(self._decode, values):
            metric = score.metric
            value = score.value
            status = reported_status(metric, score.status, score.threshold)
            tally[metric, status, score.not_evaluated_because or "", score.judge or ""] += 1
            freshness.add(max(0.0, (now - score.occurred_at).total_seconds()))
            if value is not None:
                if (distribution := distributions.get(metric)) is None:
                    distribution = distributions[metric] = measured.distribution(catalogue.SCORE_VALUE, metric)
                distribution.add(value)
            if score.cost is not None:
                self._add_cost(score.cost)
        for key, number in tally.items():
            measured.add(catalogue.SCORES, number, *key)

    def _add_cost(self, cost: _Cost) -> None:
        if cost.cached:
            self._measured.add(catalogue.JUDGE_CACHED, 1)
        if cost.input_tokens or cost.output_tokens:
            self._measured.add(catalogue.JUDGE_TOKENS, cost.input_tokens, "input")
            self._measured.add(catalogue.JUDGE_TOKENS, cost.output_tokens, "output")
            self._measured.add(catalogue.JUDGE_COST, cost.usd)


def instrument_of(key: str) -> tuple[Instrument, Attributes] | None:
    """Returns the instrument and the attributes of a stage's counter; None if the scores are counted one by one.

    >>> instrument, attributes = instrument_of("assemble.dead_lettered.late")
    >>> instrument.name, attributes
    ('traceweir.dead_letters', ('assemble', 'late'))
    """
    stage, _, counter = key.partition(".")
    first, _, rest = counter.partition(".")
    if stage == "read":
        return catalogue.READ, (counter,)
    match first:
        case "consumed":
            return catalogue.RECORDS, (stage,)
        case "dead_lettered":
            return catalogue.DEAD_LETTERS, (stage, rest)
        case "scores":
            return None
        case "accepted":
            return catalogue.DECISIONS, (first,)
        case "rejected":
            return (catalogue.REJECTIONS, (rest,)) if rest else (catalogue.DECISIONS, (first,))
    return catalogue.EVENTS, (stage, counter)
