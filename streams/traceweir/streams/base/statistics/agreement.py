"""Measures how often a judge is right about what people passed, and about what they failed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceweir.streams.base.statistics.clustered_sample import Numbers
from traceweir.streams.base.statistics.drawn_kappa import drawn_kappa
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.label_agreement import LabelledVerdicts, kappa
from traceweir.streams.base.statistics.people_only import Estimated, people_rate
from traceweir.streams.base.statistics.prediction_powered import LabelledSample, numbered
from traceweir.streams.base.statistics.rate_intervals import Interval


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """A judge against labels. The table counts labels; the rates weigh each by 1 / its probability of being drawn."""

    table: LabelledVerdicts
    passing: Estimated | None
    """TPR: the share of what people passed that the judge passes; None without such a label."""
    failing: Estimated | None
    """TNR: the share of what people failed that the judge fails; None without such a label."""
    kappa_interval: Interval | None
    """The 95 % interval of kappa; None with too few labels or sessions, as `drawn_kappa` says."""

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None without labels of both kinds."""
        return kappa(self.table)


def agreement(labelled: LabelledSample) -> LabelAgreement:
    """Returns the agreement of labels and verdicts that are 1 for a pass and 0 for a failure."""
    good = labelled.truth == 1
    passed = labelled.verdicts == 1
    table = LabelledVerdicts(
        int(good.sum()), int((good & passed).sum()), int((~good).sum()), int((~good & passed).sum())
    )
    return LabelAgreement(
        table,
        _rate(labelled.verdicts[good], labelled.weights[good], labelled.sessions[good]),
        _rate(1 - labelled.verdicts[~good], labelled.weights[~good], labelled.sessions[~good]),
        drawn_kappa(
            good.astype(np.intp), passed.astype(np.intp), labelled.weights, numbered(labelled.sessions)
        ).interval,
    )


def _rate(right: Floats, weights: Floats, sessions: Numbers) -> Estimated | None:
    return people_rate(right, weights, numbered(sessions)) if len(right) else None
