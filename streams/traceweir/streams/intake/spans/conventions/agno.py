"""Agno, as OpenInference writes it."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

AGNO = Convention(name="Agno", frameworks=(("agno", "agno"),))
