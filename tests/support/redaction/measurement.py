"""Measures redaction on the corpus: `python -m tests.support.redaction.measurement` prints the table."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from tests.support.redaction.innocent_texts import INNOCENT
from tests.support.redaction.secret_forms import Sample, samples

SEED = 13


class Measurement(NamedTuple):
    """What redaction found in the corpus."""

    found: dict[str, tuple[int, int]]
    """Number of texts whose secret was removed, and number of texts, by form."""
    missed: list[Sample]
    changed: list[str]
    """Innocent texts that redaction changed."""

    def recall(self, form: str) -> float:
        """Returns the share of the texts of a form whose secret was removed."""
        found, total = self.found[form]
        return found / total


def measure(redact_text: Callable[[str], str], seed: int = SEED, per_cell: int = 3) -> Measurement:
    """Redacts the corpus.

    A secret counts as removed if no piece of the secret remains.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    missed = []
    for sample in samples(seed, per_cell):
        redacted = redact_text(sample.text)
        removed = not any(piece in redacted for piece in sample.pieces)
        counts[sample.form][0] += removed
        counts[sample.form][1] += 1
        if not removed:
            missed.append(sample)
    changed = [text for text in INNOCENT if redact_text(text) != text]
    return Measurement({form: (found, total) for form, (found, total) in counts.items()}, missed, changed)


def table(measured: Measurement) -> str:
    """Returns the measurement as text."""
    lines = [
        f"{form:24} {found:4} of {total:4} {found / total:7.3f}" for form, (found, total) in measured.found.items()
    ]
    lines.append(f"{'innocent texts changed':24} {len(measured.changed):4} of {len(INNOCENT):4}")
    return "\n".join(lines)


if __name__ == "__main__":
    from traceweir.scorers.redaction.redaction import redact_text

    result = measure(redact_text)
    sys.stdout.write(table(result) + "\n")
    if "--missed" in sys.argv:
        for sample in result.missed:
            sys.stdout.write(f"{sample.kind} | {sample.form} | {sample.text!r} -> {redact_text(sample.text)!r}\n")
        for text in result.changed:
            sys.stdout.write(f"changed: {text!r} -> {redact_text(text)!r}\n")
