"""Defines what the queries of a store return. The JSON API publishes these types."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, JsonValue

from traceweir.scorers.base import Direction
from traceweir.streams.board.store.value_counts import Bin, CategoryCount


class Figures(BaseModel):
    """What results add up to."""

    results: int
    """Number of results, with and without a value."""
    evaluated: int
    """Number of results with a value."""
    passed: int
    """Number of results that reached their threshold."""
    failed: int
    """Number of results that missed their threshold."""
    informational: int
    """Number of results whose value no threshold judges; they are in no pass rate."""
    not_evaluated: dict[str, int]
    """Number of results without a value, by reason."""
    mean: float | None
    """Mean of the values; null without a value."""
    variance: float | None
    """Sample variance of the values; null if it is unknown, as of one value."""
    pass_rate: float | None
    """Share of passed among passed and failed results, from 0 to 1; null without one of them."""
    pass_rate_low: float | None
    """Lower bound of the 95 % interval of the pass rate (Wilson's score interval)."""
    pass_rate_high: float | None
    """Upper bound of the 95 % interval of the pass rate (Wilson's score interval)."""
    input_tokens: int
    """Number of input tokens of the judge, with those of replaced results: they were paid."""
    output_tokens: int
    """Number of output tokens of the judge, with those of replaced results."""
    usd: float
    """Cost of the judge in USD, with that of replaced results."""


class JudgeFigures(Figures):
    """The figures of the results with a value that have one judge."""

    judge: str | None
    """The model that judged, or several joined with ` + `; null for the results that name none."""


class JudgedFigures(Figures):
    """What results add up to, all together and judge by judge, because two models judge differently."""

    by_judge: list[JudgeFigures]
    """The figures of each judge, the most results first; empty if no result names one."""

    @property
    def judges(self) -> list[str]:
        """The judges that are named."""
        return [each.judge for each in self.by_judge if each.judge is not None]


class MetricFigures(JudgedFigures):
    """The figures of a metric at one level, over a span of time."""

    metric: str
    """Name of the metric."""
    level: str
    """What was measured: an invocation, a trace or the session."""
    direction: Direction | None = None
    """Which values are better: `higher`, `lower`, or `neutral` if none is; null if no scorer of this name is installed."""
    unit: str | None = None
    """The unit of the values, such as `s`; null if they have none, or if no scorer of this name is installed."""
    median: float | None = None
    """The median of the values without a threshold, rounded to four digits; null without one, or if they were removed."""
    p95: float | None = None
    """95 of 100 values without a threshold are at most this one; rounded, and null, as the median."""


class SeriesPoint(BaseModel):
    """The figures of a metric at one level, in one step of time."""

    begins_at: datetime
    """When the step begins, in UTC."""
    metric: str
    """Name of the metric."""
    level: str
    """What was measured: an invocation, a trace or the session."""
    results: int
    """Number of results, with and without a value."""
    evaluated: int
    """Number of results with a value."""
    passed: int
    """Number of results that reached their threshold."""
    failed: int
    """Number of results that missed their threshold."""
    mean: float | None
    """Mean of the values; null without a value."""


class Change(BaseModel):
    """The first results of an agent version, a config, a model or a judge within a span of time."""

    kind: Literal["agent_version", "config_digest", "model", "judge"]
    """What changed."""
    value: str
    """The new version, the digest of the new config, or the name of the model."""
    agent_name: str | None
    """The agent of the version; null for the others."""
    first_seen_at: datetime
    """The minute of the first result, in UTC."""


class Regression(BaseModel):
    """A metric, of all results or of a slice, that is worse after a change than before it."""

    metric: str
    """Name of the metric."""
    level: str
    """What was measured: an invocation, a trace or the session."""
    dimension: str | None
    """Dimension of the slice; null for all results."""
    value: str | None
    """Value of the dimension."""
    at: datetime
    """When something changed, in UTC: the minute of the first result."""
    agent_name: str | None
    """The agent whose results are compared, because its version changed; null for those of all agents."""
    changes: list[Change]
    """What changed at this time."""
    of: Literal["pass rate", "mean"]
    """What is compared: the means only where no threshold judges a value."""
    unit: str | None
    """The unit of the values; null if they have none, or if no scorer of this name is installed."""
    before: float
    """The pass rate, or the mean, before the change."""
    before_results: int
    """Number of verdicts, or of values, before the change."""
    after: float
    """The pass rate, or the mean, after the change."""
    after_results: int
    """Number of verdicts, or of values, after the change."""
    difference: float
    """After minus before."""
    difference_low: float
    """Lower bound of the interval; the intervals of all that was tested have 95 % confidence together (Bonferroni)."""
    difference_high: float
    """Upper bound of the interval."""
    p_value: float | None
    """P-value (Fisher's exact test, or a t-test), corrected by Holm for all metrics, slices and times; 0.05 at most."""


class Regressions(BaseModel):
    """What is worse after a change in a span of time than before it, beyond chance."""

    since: datetime
    """When the results before a change begin, in UTC: a whole span before the span."""
    tested: int
    """Number of metrics, slices and times that have enough results and were tested."""
    found: list[Regression]
    """The regressions, the surest one first. A metric or slice is listed once, with the time of its surest difference."""
    found_left_out: int
    """Number of further regressions, which are less sure."""
    times: int
    """Number of times at which something changed that were compared: the latest ones."""
    times_left_out: int
    """Number of earlier times, which were not compared."""
    left_out: list[str]
    """Dimensions with so many values that they were not compared."""


class Freshness(BaseModel):
    """Seconds from the last event of a session to its first scores, without later revisions and attempts; to four digits."""

    p50_s: float | None
    """The median; null without a result."""
    p95_s: float | None
    """95 of 100 results took at most this time."""
    p99_s: float | None
    """99 of 100 results took at most this time."""


class DayCost(BaseModel):
    """What the judges of a metric were paid on a day, with replaced results."""

    begins_at: datetime
    """Begin of the day, in UTC."""
    metric: str
    """Name of the metric."""
    input_tokens: int
    """Number of input tokens."""
    output_tokens: int
    """Number of output tokens."""
    usd: float
    """Cost of these tokens in USD."""


class Coverage(BaseModel):
    """How many sessions and traces of a span of time reached which step."""

    sessions: int
    """Number of closed sessions (segments)."""
    records: int | None
    """Number of events and traces of these sessions; null if the store has no session of the span."""
    accepted: int
    """Number of traces that the gate accepted."""
    rejected: int
    """Number of traces that the gate rejected."""
    rejected_because: dict[str, int]
    """Number of rejected traces, by reason. A trace can have several reasons."""
    dead_letters: dict[str, int]
    """Number of dead letters, by reason."""


class Overview(BaseModel):
    """Where quality stands in a span of time."""

    since: datetime
    """Begin of the span, in UTC."""
    until: datetime
    """End of the span, in UTC; not part of the span."""
    step_s: int
    """Seconds of a step of the series."""
    metrics: list[MetricFigures]
    """The figures of each metric and level."""
    series: list[SeriesPoint]
    """The figures of each metric and level in each step, by time. A step without results is left out."""
    changes: list[Change]
    """Agent versions, configs, models and judges whose first results are in the span, by time."""
    regressions: Regressions
    """What is worse after one of these changes than before it."""
    coverage: Coverage
    """Where sessions and traces went."""
    freshness: Freshness
    """How long scores took."""
    costs: list[DayCost]
    """What the judges of each metric were paid on each day, by day and metric; a day without a cost is left out."""


class SessionSummary(BaseModel):
    """A closed session (a segment of it) with a summary of its scores."""

    session_id: str
    """The session."""
    segment: int
    """Number of the segment, from 0."""
    revision: int | None
    """Number of the last revision; null if the store has the scores and not the session."""
    closed_at: datetime | None
    """When the last record of the session was written, in UTC; null as above."""
    app_name: str | None
    """Name of the agent's app."""
    agent_name: str | None
    """Name of the agent."""
    agent_version: str | None
    """Version of the agent."""
    environment: str | None
    """Where the agent runs."""
    model: str | None
    """Name of the model."""
    passed: int
    """Number of results that reached their threshold, without trace values and the gate's decisions."""
    failed: int
    """Number of results that missed their threshold, without trace values and the gate's decisions."""
    informational: int
    """Number of results whose value no threshold judges."""
    not_evaluated: int
    """Number of results without a value, without trace values."""
    trace_value: float | None
    """The lowest trace value; null without one."""
    gate: Literal["accepted", "rejected"] | None
    """Whether the gate accepted all traces of the session; null without a decision."""
    failed_metrics: list[str] = []
    """Names of the criteria that failed, each once."""
    question: str | None = None
    """The beginning of the user's first question, as far as it is shown; null without one."""
    answer: str | None = None
    """The beginning of the agent's last answer, as far as it is shown; null without one."""
    tools: list[str] = []
    """Names of the tools that the agent called, each once; empty if the store has no record of the session."""
    failed_tools: list[str] = []
    """Names of those tools of which a call failed."""
    input_tokens: int | None = None
    """Input tokens of the agent's model calls; null if unknown."""
    output_tokens: int | None = None
    """Output tokens of the agent's model calls; null if unknown."""
    duration_s: float | None = None
    """Seconds from the first event to the last one; null if unknown."""
    judge_usd: float = 0.0
    """What the judges of the results that count cost, in USD."""
    metric_value: float | None = None
    """The value by which the list is ordered; null if it is ordered by time."""

    @property
    def status(self) -> str:
        """The worst status of a criterion: FAILED, then NOT_EVALUATED, PASSED, INFORMATIONAL; empty without a result."""
        numbers = (
            ("FAILED", self.failed),
            ("NOT_EVALUATED", self.not_evaluated),
            ("PASSED", self.passed),
            ("INFORMATIONAL", self.informational),
        )
        return next((status for status, number in numbers if number), "")


class SessionDetails(BaseModel):
    """A session with what the store knows of it; of a very long one, the last part."""

    session_id: str
    """The session."""
    segments: list[dict[str, JsonValue]]
    """The last revision of each segment. `document` is the Session record; null if content is hidden."""
    results: list[dict[str, JsonValue]]
    """The results that count, as the columns of an export."""
    replaced_results: list[dict[str, JsonValue]]
    """The results that a later revision or attempt has replaced, as the columns of an export."""
    segments_left_out: int
    """Number of earlier segments that are not in this answer."""
    results_left_out: int
    """Number of results that count and are not in this answer."""
    replaced_results_left_out: int
    """Number of replaced results that are not in this answer."""


class Slice(Figures):
    """The figures of the results that have one value of a dimension, against all other results of the metric."""

    dimension: str
    """Name of the dimension: one of a result, `user_id`, or `label` and the name of a label."""
    value: str
    """The value of the dimension."""
    of: Literal["pass rate", "mean"]
    """What is compared: the means only where no threshold judges a value."""
    others: int
    """Number of verdicts, or of values, of the other results."""
    difference: float
    """Pass rate (or mean) of the slice minus that of the other results."""
    difference_low: float
    """Lower bound of the 95 % interval of the difference (Newcombe for pass rates, the t-test for means)."""
    difference_high: float
    """Upper bound of the interval."""
    p_value: float | None
    """P-value (Fisher's exact test, or a t-test), corrected by Holm for all slices that were tested; null for invocations,
    which are not independent."""
    differs: bool
    """Whether the p-value is 0.05 at most."""


class Slices(BaseModel):
    """The values of dimensions whose pass rates, or means, differ most from all other results of the metric."""

    level: str | None
    """The level whose results are compared; null without a value."""
    tested: int
    """Number of values with enough results to be compared; all of them were."""
    differing: list[Slice]
    """Those that differ most: first those that differ beyond chance, by the bound of the interval that is nearest to zero."""
    left_out: list[str]
    """Dimensions with so many values that they were not compared."""


class MetricResult(BaseModel):
    """One result of a metric."""

    session_id: str
    """The session of the result."""
    level: str
    """What was measured: an invocation, a trace or the session."""
    value: float
    """The value."""
    threshold: float | None
    """The worst value that passes; null if the metric has no threshold."""
    status: str
    """PASSED or FAILED, or INFORMATIONAL without a threshold."""
    rationale: str
    """Why the result has its value."""
    occurred_at: datetime
    """When the session ended, in UTC."""


class MetricOverTime(BaseModel):
    """A metric over a span of time: its figures, their course, its values, and where they differ."""

    metric: str
    """Name of the metric."""
    since: datetime
    """Begin of the span, in UTC."""
    until: datetime
    """End of the span, in UTC; not part of the span."""
    step_s: int
    """Seconds of a step of the series."""
    figures: list[MetricFigures]
    """The figures at each level."""
    series: list[SeriesPoint]
    """The figures in each step, by time. A step without results is left out."""
    changes: list[Change]
    """Agent versions, configs, models and judges whose first results are in the span, by time."""
    distribution: list[Bin]
    """How many results have which value, in ranges of the same width, from the least value to the largest one."""
    categories: list[CategoryCount]
    """How many results have which answer, the most frequent first at each level; empty for a metric without categories."""
    slices: Slices
    """The values of dimensions whose pass rates differ most from the others."""
    direction: Direction | None
    """Which values are better: `higher`, `lower`, or `neutral` if none is; null if neither a scorer nor a verdict says so."""
    worst: list[MetricResult]
    """The results with the worst values by the direction, the worst first; empty if it is neutral or unknown."""
    nearest: list[MetricResult]
    """The results that are nearest to their threshold: first those that failed, then those that passed."""


class MetricDifference(BaseModel):
    """A metric on two sides of a comparison."""

    metric: str
    """Name of the metric."""
    level: str
    """What was measured: an invocation, a trace or the session."""
    first: JudgedFigures | None
    """The figures of the first side; null without a result."""
    second: JudgedFigures | None
    """The figures of the second side; null without a result."""
    compared: Literal["all", "pairs"] = "all"
    """What is compared: all results of both sides, or the pairs of results of the same session that are on both sides."""
    pairs: int = 0
    """Number of pairs with two values, if pairs are compared."""
    pass_rate_difference: float | None = None
    """Pass rate of the second side minus that of the first one; null if a side has no verdict."""
    pass_rate_difference_low: float | None = None
    """Lower bound of the 95 % interval (Newcombe; of pairs, clustered by session)."""
    pass_rate_difference_high: float | None = None
    """Upper bound of the 95 % interval."""
    p_value: float | None = None
    """P-value of the difference of the pass rates (Fisher's exact test; of pairs, McNemar's), or of the means where no
    threshold judges a value (t-test; of pairs, clustered by session), corrected by Holm for all metrics and levels. Null with
    fewer than ten results on a side, and for invocations that are not paired, which are not independent."""
    differs: bool = False
    """Whether chance does not explain this difference: the p-value is 0.05 at most."""
    mean_difference: float | None = None
    """Mean of the second side minus that of the first one; null if a side has no value."""
    mean_difference_low: float | None = None
    """Lower bound of the 95 % interval (t-test); null if the variance of a side is unknown."""
    mean_difference_high: float | None = None
    """Upper bound of the 95 % interval (t-test); null if the variance of a side is unknown."""

    @property
    def has_several_judges(self) -> bool:
        """Whether verdicts of more than one judge are compared."""
        return len({judge for side in (self.first, self.second) if side is not None for judge in side.judges}) > 1


class Comparison(BaseModel):
    """Two selections side by side."""

    metrics: list[MetricDifference]
    """Each metric and level that a side has results of, by name."""
    common_sessions: int
    """Number of sessions that are on both sides; 0 if both sides are the same selection."""
    no_pairs_because: str | None
    """Why the results of these sessions are not compared by pairs; null if they are, or if there are none."""


class DimensionValues(BaseModel):
    """What can be selected beside the other filters, in a span of time, the most frequent first."""

    dimensions: dict[str, list[str]]
    """The values of each dimension."""
    metrics: list[str]
    """Names of the metrics, in their order."""
