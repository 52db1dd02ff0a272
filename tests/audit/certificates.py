"""Claims about certificates of judges: the gate rests on no verdict of a judge without one, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.audit import claims
from tests.audit.evidence import Claim, Evidence, accepted
from tests.audit.gate import is_certified

NOT_CERTIFIED = "criterion_not_certified:"
"""Begins the reason of the gate."""
NOT_JUDGED = ("withdrawn", "superseded")
"""Reasons of a decision that asks no criterion."""


def a_rejection_names_each_judge_without_a_certificate(e: Evidence) -> Iterator[str]:
    """The reasons of each decision name the criteria that PASSED without a certificate in the session's config, and no other."""
    for _, candidate in e.candidates:
        place = candidate["session_id"], candidate["segment"], candidate["revision"]
        attempt = *place, candidate["attempt"]
        decision = e.gate_scores.get((candidate["trace"]["id"], *attempt[1:], "gate"))
        if decision is None or decision["details"]["reasons"] in ([name] for name in NOT_JUDGED):
            continue
        gate = e.config_of(place)["gate"]
        verdicts = {name: e.verdict_scores.get((attempt, name)) for name in gate["required"]}
        expected = [
            f"{NOT_CERTIFIED}{name}"
            for name, score in verdicts.items()
            if score is not None and score["status"] == "PASSED" and not is_certified(gate, score)
        ]
        found = [each for each in decision["details"]["reasons"] if each.startswith(NOT_CERTIFIED)]
        if found != expected or (expected and accepted(decision)):
            yield f"{candidate['trace']['id']} of {attempt}: {decision['rationale']}; without a certificate: {expected}"


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    claims.DIFFERENT: (a_rejection_names_each_judge_without_a_certificate,),
}
"""Claims that hold if configs require certificates."""
