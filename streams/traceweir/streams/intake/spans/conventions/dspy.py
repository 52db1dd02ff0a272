"""DSPy, as OpenInference writes it."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.span import Span


def _is_no_run(name: str, result: Any) -> bool:
    """Returns whether a tool is the one with which a ReAct module ends its rounds."""
    return (name, result) == ("finish", "Completed.")


def _is_submission(name: str, span: Span, args: Any, result: Any) -> bool:
    """Returns whether a call is the answer of ReActV2: its tool `submit` returns the arguments."""
    return name == "submit" and "dspy" in span.scope and isinstance(args, dict) and bool(args == result)


DSPY = Convention(name="DSPy", frameworks=(("dspy", "dspy"),), is_no_run=_is_no_run, is_submission=_is_submission)
