"""Defines Certificate: the proof that a judge errs seldom enough for the gate to rest on it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from traceweir.schemas.base import ConfigModel, Fraction, NonEmpty, Timestamp

LabelCount = Annotated[int, Field(ge=0)]
Bar = Annotated[float, Field(ge=0.5, lt=1)]


class Certificate(ConfigModel):
    """Says that people have labelled enough sessions to prove how seldom a judge errs on a criterion.

    It holds for one judge: for the same `criterion`, `metric_digest`, `judge` and `threshold`. `traceweir trust certify`
    writes it into the config, and with the config it is pushed, replaced and withdrawn.
    """

    criterion: NonEmpty
    """The criterion, as the scores name it in `metric`."""
    metric_digest: NonEmpty
    """The `metric_digest` of the scores: another prompt, option, scorer version or list of models is another judge."""
    judge: NonEmpty | None = None
    """The model that answered, as in the scores; null if they name none."""
    threshold: float
    """The threshold by which the scores passed or failed."""
    bar: Bar
    """What both bounds had to reach, from 0.5 to below 1."""
    tpr_bound: Fraction
    """The one-sided 95 % lower bound of the share of good sessions that the judge passes."""
    tnr_bound: Fraction
    """The one-sided 95 % lower bound of the share of bad sessions that the judge fails."""
    good: LabelCount
    """Number of sessions that people passed."""
    bad: LabelCount
    """Number of sessions that people failed."""
    unsure: LabelCount = 0
    """Number of sessions of which people do not agree, or are not sure; each counts as an error of the judge."""
    labels_digest: NonEmpty
    """SHA-256 of the ids of the labels that were looked at, sorted and joined with line feeds."""
    certified_at: Timestamp
    """When the certificate was made."""

    @property
    def key(self) -> tuple[str, str, str | None, float]:
        """The judge that the certificate is about."""
        return self.criterion, self.metric_digest, self.judge, self.threshold
