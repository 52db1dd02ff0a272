"""Compares the verdicts of pairs: how many flip, whether one direction prevails, and which flip."""

from __future__ import annotations

import numpy as np

from traceweir.streams.base.statistics.significance import cohens_kappa, exact_mcnemar
from traceweir.streams.lab.comparison.document import Flip, FlipSide, VerdictAgreement
from traceweir.streams.lab.comparison.pairing import Indexes
from traceweir.streams.lab.comparison.rows import PASSED, Rows
from traceweir.streams.lab.comparison.texts import Texts


def compare_verdicts(base: Rows, challenger: Rows, texts: Texts, limit: int) -> VerdictAgreement | None:
    """Returns how the verdicts of pairs agree; None if no pair has a verdict on both sides.

    Args:
        base: The rows of the base, in the order of their partners.
        challenger: The rows of the challenger.
        texts: The texts of both sides.
        limit: Maximum number of flips that are listed.
    """
    both = base["judged"] & challenger["judged"]
    if not both.any():
        return None
    base = base[both]
    challenger = challenger[both]
    before = base["status"] == PASSED
    after = challenger["status"] == PASSED
    counts = [
        int(np.count_nonzero(which)) for which in (before & after, ~before & ~after, before & ~after, ~before & after)
    ]
    both_passed, both_failed, to_failed, to_passed = counts
    p_value = exact_mcnemar(to_failed, to_passed)
    listed = _worst_first(base, challenger)[:limit]
    return VerdictAgreement(
        both_passed=both_passed,
        both_failed=both_failed,
        to_failed=to_failed,
        to_passed=to_passed,
        p_value=p_value,
        p_value_holm=p_value,
        kappa=cohens_kappa(both_passed, both_failed, to_failed, to_passed),
        flips=[_flip(base[place], challenger[place], texts) for place in listed],
        flips_left_out=to_failed + to_passed - len(listed),
    )


def _worst_first(base: Rows, challenger: Rows) -> Indexes:
    """Returns the places of the flips; equal ones are in the order of their identity, so that runs agree."""
    flips = np.flatnonzero(base["status"] != challenger["status"])
    change = challenger["value"][flips] - base["value"][flips]
    # Of a metric of which less is better, a flip to FAILED goes up. The largest changes to FAILED are the worst.
    is_passed = challenger["status"][flips] == PASSED
    order = np.lexsort((np.where(is_passed, np.abs(change), -np.abs(change)), is_passed))
    return flips[order]


def _flip(base: np.void, challenger: np.void, texts: Texts) -> Flip:
    before, after = (texts.read(int(row["text"])) for row in (base, challenger))
    return Flip(
        session_id=after.session_id,
        segment=after.segment,
        revision=int(challenger["revision"]),
        subject_id=after.subject_id,
        base=_side(base, before.threshold, before.rationale),
        challenger=_side(challenger, after.threshold, after.rationale),
    )


def _side(row: np.void, threshold: float | None, rationale: str) -> FlipSide:
    return FlipSide(
        value=float(row["value"]),
        threshold=threshold,
        status="PASSED" if row["status"] == PASSED else "FAILED",
        rationale=rationale,
    )
