"""DSPy, as OpenInference writes it."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

DSPY = Convention(name="DSPy", frameworks=(("dspy", "dspy"),))
