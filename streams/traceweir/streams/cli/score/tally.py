"""Counts scores one by one, for the summary of `traceweir score`; its memory does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from traceweir.schemas.figures import counted, figure
from traceweir.schemas.score import INFORMATIONAL, UNANSWERED, reported_status
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.description import description_of
from traceweir.streams.base.statistics.rounded_values import MEDIAN, P95, RoundedValues
from traceweir.streams.cli.score.cells import status_of

TRACE_VALUE = "trace_value"


class ScoreLine(msgspec.Struct, gc=False):
    """The fields of a Score that are counted or shown."""

    session_id: str
    segment: int
    level: str
    metric: str
    value: float | None
    threshold: float | None
    status: str
    invocation_id: str | None = None
    trace_id: str | None = None
    not_evaluated_because: str | None = None
    cause: str | None = None
    judge: str | None = None
    rationale: str = ""


read_line = msgspec.json.Decoder(ScoreLine).decode
"""Returns the fields in the JSON of a Score."""

_LEAST_EXPONENT = 1_074
"""The smallest float is 2 to the power of minus this number, so that every float is a whole multiple of it."""


@dataclass(slots=True)
class _Sum:
    """The scores of a metric over sessions or traces."""

    level: str
    scores: int = 0
    failed: int = 0
    values: int = 0
    total: int = 0
    """The sum of the values in units of the smallest float: exact, and without overflow."""

    informational: RoundedValues | None = None
    """The values without a threshold, if there is one."""

    def add(self, line: ScoreLine) -> None:
        self.scores += 1
        self.failed += line.status == "FAILED"
        if line.value is not None:
            if reported_status(line.metric, line.status, line.threshold) == INFORMATIONAL:
                self.informational = self.informational or RoundedValues()
                self.informational.add(line.value)
            numerator, denominator = line.value.as_integer_ratio()
            self.values += 1
            self.total += numerator << _LEAST_EXPONENT - denominator.bit_length() + 1

    @property
    def mean(self) -> float:
        return float(Fraction(self.total, self.values << _LEAST_EXPONENT))


def _row(name: str, found: _Sum) -> tuple[str, str, str]:
    of = f"mean of {found.values}" if found.values else "none"
    failed = f", {found.failed} failed" if found.failed else ""
    mean = figure(found.mean) if found.values else ""
    return name, mean, f"{of} of {counted(found.scores, found.level)}{failed}"


class ScoreTally:
    """Counts of all scores of a run.

    Args:
        judged: The metrics that ask a judge.
        has_config: Whether there is a config. Without one nobody has asked for a trace value, so that none is a failure.
    """

    def __init__(self, judged: Collection[str], *, has_config: bool = True) -> None:
        self._judged = judged
        self._has_config = has_config
        self._sums: dict[str, _Sum] = {}
        self._judges: dict[str, dict[str, _Sum]] = {}
        """By metric, the scores by the model that judged."""
        self._missed: Counter[str] = Counter()
        self._below_default: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._answered = False
        self._unanswered: Counter[str] = Counter()
        self._first_unanswered = ""
        self.scores = 0
        """Number of scores."""
        self.accepted = 0
        """Number of traces that the gate accepted."""

    def add(self, line: ScoreLine) -> None:
        """Counts a score."""
        self.scores += 1
        self._statuses[status_of(line).partition(" (")[0]] += 1
        if line.metric == "gate":
            # The gate's decision is not a measurement: its status is FAILED for every trace that must not be shared.
            self.accepted += line.status == "PASSED"
        else:
            # The session's score covers its invocations.
            if line.level != "invocation":
                self._sums.setdefault(line.metric, _Sum(line.level)).add(line)
                if line.judge is not None:
                    judges = self._judges.setdefault(line.metric, {})
                    judges.setdefault(line.judge, _Sum(line.level)).add(line)
            if line.status == "FAILED":
                missed = self._missed if self._has_config or line.metric != TRACE_VALUE else self._below_default
                missed[line.metric] += 1
        if line.metric in self._judged:
            if line.not_evaluated_because is None:
                self._answered = True
            elif line.not_evaluated_because in UNANSWERED:
                self._first_unanswered = self._first_unanswered or line.rationale
                self._unanswered[line.not_evaluated_because] += 1

    def failures(self) -> list[str]:
        """Returns a sentence for the user for each reason why the run has failed."""
        return [sentence for sentence in (self._no_judge_answered(), self._missed_thresholds()) if sentence]

    def notes(self) -> list[str]:
        """Returns a sentence for each row of the table that is FAILED and is no failure of the run."""
        count = self._below_default[TRACE_VALUE]
        if not count:
            return []
        verb = "is" if count == 1 else "are"
        below = f"{counted(count, 'trace')} {verb} below the gate's default threshold and would not be shared"
        return [f"{below}; without a config this is no failure"]

    def sums(self) -> list[tuple[str, str, str]]:
        """Returns for each metric its name, the mean over sessions or traces, and what the mean covers.

        The row of a metric with several judges is followed by one for each of them, because two models judge differently.
        """
        rows = []
        for metric, found in self._sums.items():
            rows.append(_row(metric, found))
            judges = self._judges.get(metric, {})
            if len(judges) > 1:
                rows += [_row(f"  judge {printable(judge)}", each) for judge, each in judges.items()]
        return rows

    def quantiles(self) -> list[tuple[str, str]]:
        """Returns for each metric with values without a threshold its name, and their median, p95, unit and direction."""
        rows = []
        for metric, found in self._sums.items():
            if found.informational is None:
                continue
            described = description_of(metric)
            unit = f" {described.unit}" if described is not None and described.unit is not None else ""
            direction = described.direction if described is not None else "neutral"
            better = f"; {direction} is better" if direction != "neutral" else ""
            median, p95 = (figure(found.informational.quantile(share)) for share in (MEDIAN, P95))
            rows.append((metric, f"median {median}{unit}, p95 {p95}{unit}{better}"))
        return rows

    def statuses(self) -> str:
        """Returns how many scores have which status, and how many traces the gate accepted."""
        count = self._statuses
        return (
            f"{counted(self.scores, 'score')}: {count['PASSED']} passed, {count['FAILED']} failed, "
            f"{count['NOT_EVALUATED']} not evaluated"
            + (f", {number} informational" if (number := count[INFORMATIONAL]) else "")
            + f"; {counted(self.accepted, 'trace')} accepted by the gate"
        )

    def _no_judge_answered(self) -> str | None:
        if self._answered or not self._unanswered:
            return None
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(self._unanswered.items()))
        return (
            f"no judge gave a verdict: all {self._unanswered.total()} judged scores are NOT_EVALUATED ({why}); "
            f"the first: {printable(self._first_unanswered, 300)}"
        )

    def _missed_thresholds(self) -> str | None:
        if not self._missed:
            return None
        metrics = ", ".join(f"{metric} ({count})" for metric, count in sorted(self._missed.items()))
        count = self._missed.total()
        return f"{counted(count, 'score')} missed the threshold: {metrics}"
