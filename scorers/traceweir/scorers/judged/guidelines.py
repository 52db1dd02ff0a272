"""Defines the guidelines of a criterion: rules in plain words, for an answer or for a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from traceweir.schemas.reference import Reference
from traceweir.scorers.base import MissingInput, NeededReference
from traceweir.scorers.judged.evidence import json_lines


def _as_list(guidelines: object) -> object:
    return [guidelines] if isinstance(guidelines, str) else guidelines


def _with_text(guidelines: list[str]) -> list[str]:
    if not all(guideline.strip() for guideline in guidelines):
        raise ValueError("a guideline must not be empty; remove it, or write what the response must or must not do")
    return guidelines


Guidelines = Annotated[
    list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), AfterValidator(_with_text)
]
"""The option with a criterion's guidelines; a text is a single guideline."""


def applied_guidelines(own: Sequence[str], reference: Reference | None) -> str:
    """Returns the guidelines of a criterion and of a reference, equal ones once, each as a line of JSON.

    Raises:
        MissingInput: there are none.
    """
    stated = [*own, *((reference and reference.guidelines) or ())]
    applied = [guideline for guideline in dict.fromkeys(stated) if guideline.strip()]
    if not applied:
        raise MissingInput("there are no guidelines: neither the criterion nor the reference has one")
    return json_lines(applied)


def needed_guidelines(own: Sequence[str]) -> NeededReference | None:
    """Returns what a reference must have if a criterion has these guidelines; None: nothing.

    >>> needed_guidelines(["The response is polite."])
    """
    return None if own else NeededReference(("guidelines",), option="guidelines")
