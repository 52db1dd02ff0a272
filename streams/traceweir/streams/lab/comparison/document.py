"""Defines the document that a comparison gives: `traceweir diff --json` prints it, and the other forms show it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Pairing = Literal["paired", "unpaired"]
BoundKind = Literal["max_drop", "max_rise", "max_flips"]
BoundOn = Literal["mean", "interval"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class SideSummary(_Part):
    """One side as a whole."""

    name: str
    """What the user named: a file, or a topic with its selection."""
    results: int
    """Number of results that count."""
    replaced: int
    """Number of scores that a later revision, attempt or copy has replaced."""
    sessions: int
    """Number of sessions."""
    unusable: int
    """Number of lines or records that are not scores that can be compared."""


class SideFigures(_Part):
    """One metric on one side, over all results that count."""

    results: int
    """Number of results."""
    passed: int
    """Number of results that a threshold, or the gate, has PASSED."""
    failed: int
    """Number of FAILED results."""
    not_evaluated: dict[str, int]
    """Number of results without a value, by reason. They are in no mean."""
    cost_usd: float
    """Sum of the price of the judge, in USD."""
    input_tokens: int
    """Sum of the judge's input tokens."""
    output_tokens: int
    """Sum of the judge's output tokens."""
    cached: int
    """Number of results from a stored verdict, for which nothing was paid."""
    judges: dict[str, int]
    """Number of results with a value, by the model that judged; results that name none are in none of these."""


class Difference(_Part):
    """A difference of two means, challenger minus base."""

    base_values: int
    """Number of values of the base in the mean; if paired, the number of pairs."""
    challenger_values: int
    """Number of values of the challenger in the mean; if paired, the number of pairs."""
    sessions: int
    """Number of sessions of these values."""
    base_mean: float
    """Mean of the base over these values."""
    challenger_mean: float
    """Mean of the challenger over these values."""
    difference: float
    """Challenger minus base."""
    low: float | None
    """Lower end of the 95 % interval, clustered by session; null if a side has one session only."""
    high: float | None
    """Upper end of the 95 % interval."""
    p_value: float | None
    """P-value of no difference; null without an interval, and if all sessions differ by the same amount."""
    p_value_holm: float | None
    """The p-value, corrected for the number of metrics of the comparison (Holm)."""


class FlipSide(_Part):
    """One side of a flip."""

    value: float
    """The value of the metric."""
    threshold: float | None
    """The threshold; null if the metric has none."""
    status: Literal["PASSED", "FAILED"]
    """The verdict."""
    rationale: str
    """The reason of the value, up to 2,000 characters."""


class Flip(_Part):
    """A pair with two verdicts."""

    session_id: str
    """The session."""
    segment: int
    """Number of the session's segment, from 0."""
    revision: int
    """Number of the segment's revision, from 0."""
    subject_id: str
    """Id of the invocation or of the trace; empty for the session."""
    base: FlipSide
    """The verdict of the base."""
    challenger: FlipSide
    """The verdict of the challenger."""


class VerdictAgreement(_Part):
    """How the verdicts of pairs agree. Values that no threshold judges have no part in it."""

    both_passed: int
    """Number of pairs that PASSED on both sides."""
    both_failed: int
    """Number of pairs that FAILED on both sides."""
    to_failed: int
    """Number of pairs that flip from PASSED to FAILED."""
    to_passed: int
    """Number of pairs that flip from FAILED to PASSED."""
    p_value: float
    """P-value of the exact McNemar test: whether one direction of flips prevails."""
    p_value_holm: float
    """The p-value, corrected for the number of metrics of the comparison (Holm)."""
    kappa: float | None
    """Cohen's kappa of the verdicts; null if both sides have only one and the same verdict."""
    flips: list[Flip]
    """The flips, the worst first: those to FAILED by the loss of value, then those to PASSED by the smallest gain."""
    flips_left_out: int
    """Number of flips that are not in the list."""


class MetricComparison(_Part):
    """A metric at one level."""

    metric: str
    """Full name of the metric."""
    level: str
    """What is measured: `invocation`, `trace` or `session`."""
    pairing: Pairing
    """`paired`: results of the same subject are compared. `unpaired`: all results of both sides are compared."""
    base: SideFigures
    """The base."""
    challenger: SideFigures
    """The challenger."""
    pairs: int
    """Number of results that both sides have."""
    pairs_with_values: int
    """Number of pairs with a value on both sides."""
    other_revision: int
    """Number of results that both sides have in different revisions; they are not paired."""
    lost_values: int
    """Number of pairs with a value in the base, and NOT_EVALUATED in the challenger."""
    gained_values: int
    """Number of pairs that are NOT_EVALUATED in the base, and have a value in the challenger."""
    value: Difference | None
    """The difference of the values; null if a side has none."""
    pass_rate: Difference | None
    """The difference of the shares of PASSED among PASSED and FAILED, from 0 to 1; null if a side has no verdict."""
    cost_usd: Difference | None
    """The difference of the price of a result, in USD; null if nothing was paid on either side."""
    verdicts: VerdictAgreement | None
    """The verdicts of pairs; null if no pair has two verdicts."""

    @property
    def has_several_judges(self) -> bool:
        """Whether values of more than one judge are compared."""
        return len(self.base.judges.keys() | self.challenger.judges.keys()) > 1


class BoundCheck(_Part):
    """A bound on one metric at one level."""

    kind: BoundKind
    """What is bounded: a drop of the mean, a rise of the mean, or the number of flips to FAILED."""
    metric: str
    """Full name of the metric."""
    level: str
    """The level; a bound is checked at each level of its metric."""
    limit: float
    """The largest value that is allowed, at least 0."""
    on: BoundOn
    """`mean`: the difference itself is compared. `interval`: the worse end of its interval is compared."""
    measured: float | None
    """The drop, the rise or the number of flips; negative for a move in the other direction; null if unknown."""
    kept: bool
    """Whether the bound is kept. A bound that cannot be checked is not kept."""
    reason: str
    """Why the bound cannot be checked; else empty."""


class Diff(_Part):
    """What differs between two sets of scores."""

    base: SideSummary
    """The base."""
    challenger: SideSummary
    """The challenger."""
    confidence: float
    """Probability with which an interval covers: 0.95."""
    common_sessions: int
    """Number of sessions that are on both sides. Without any, the sides are compared as independent samples."""
    metrics: list[MetricComparison]
    """The metrics that both sides have, by name and level, without the gate."""
    gate: MetricComparison | None
    """The decisions of the gate: PASSED is accepted, FAILED is rejected. Null if a side has none."""
    only_in_base: list[str]
    """The metrics that only the base has, as `metric (level)`."""
    only_in_challenger: list[str]
    """The metrics that only the challenger has, as `metric (level)`."""
    bounds: list[BoundCheck]
    """The bounds that were given."""

    @property
    def keeps_bounds(self) -> bool:
        """Whether every bound is kept."""
        return all(bound.kept for bound in self.bounds)
