"""Says that a judge could not be asked, which tells nothing about its verdicts, and how to change that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.streams.cli.terminal import complain

MAX_PROBLEM_CHARACTERS = 1_000
"""Enough for a message of a provider and the variables in which its key was looked for."""


class Unasked(NamedTuple):
    """A criterion about which a judge could not be asked."""

    metric: str
    model: str
    problem: str
    """Why the first question has no answer."""
    right: int = 0
    """Number of cases about which the judge was asked, and is right."""
    cases: int = 0
    """Number of cases."""


def complain_of_unasked(found: Iterable[Unasked]) -> None:
    """Writes to stderr which criteria each model could not be asked about, why, and the way out; nothing if there is none."""
    by_model: dict[str, list[Unasked]] = {}
    for each in found:
        by_model.setdefault(each.model, []).append(each)
    for model, criteria in by_model.items():
        name = printable(model)
        if unknown := [each.metric for each in criteria if not each.right]:
            complain(
                f"The judge {name} could not be asked about {counted(len(unknown), 'criterion', 'criteria')}, so nothing is "
                f"known about its verdicts: {', '.join(unknown)}."
            )
        if partly := [f"{each.metric} (right about {each.right} of {each.cases})" for each in criteria if each.right]:
            complain(
                f"The judge {name} could not be asked about some cases of {counted(len(partly), 'criterion', 'criteria')}. It "
                f"is right about the others, and whether it is fit is not known: {', '.join(partly)}."
            )
        # The later questions have failed for the same reason, or were not sent because of it.
        problem = printable(criteria[0].problem, MAX_PROBLEM_CHARACTERS)
        complain(
            f"{problem}\n"
            "Check its key, its address, its provider, its budget and its window, and run the command again."
        )
