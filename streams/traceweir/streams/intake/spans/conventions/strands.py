"""Strands: the standard, with a setting of its own that hides content."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention, Switch

STRANDS = Convention(
    name="Strands",
    switches=(
        Switch(
            "gen_ai_unredacted_attributes=gen_ai.* in OTEL_SEMCONV_STABILITY_OPT_IN, or leave that word out of it",
            scopes=("strands.*",),
        ),
    ),
    frameworks=(("strands", "strands-agents"),),
    # One line break for each part.
    answer_padding="\n",
)
