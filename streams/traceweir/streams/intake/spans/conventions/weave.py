"""Weave of Weights & Biases: the id of a thread on the spans of other conventions."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

WEAVE = Convention(name="Weave", sessions=("wandb.thread_id",))
