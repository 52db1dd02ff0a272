"""DSPy, as OpenInference writes it."""

from __future__ import annotations

import re
from typing import Any

from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.span import Span

_FIELDS = re.compile(r"\s*(?:\[\[ ## \w{1,64} ## \]\]\s|\{\s*\"next_thought\":)")
"""The beginning of what DSPy's adapters let a model write: a field between marks, or JSON with the thought first."""


def _is_protocol(text: str) -> bool:
    """Returns whether a text of a model has fields for an adapter.

    >>> _is_protocol("[[ ## next_tool_name ## ]]\\nweather"), _is_protocol("[[ see below ]]")
    (True, False)
    """
    return _FIELDS.match(text) is not None


def _is_no_run(name: str, result: Any) -> bool:
    """Returns whether a tool is the one with which a ReAct module ends its rounds."""
    return (name, result) == ("finish", "Completed.")


def _is_submission(name: str, span: Span, args: Any, result: Any) -> bool:
    """Returns whether a call is the answer of ReActV2: its tool `submit` returns the arguments."""
    return name == "submit" and "dspy" in span.scope and isinstance(args, dict) and bool(args == result)


DSPY = Convention(
    name="DSPy",
    frameworks=(("dspy", "dspy"),),
    is_protocol=_is_protocol,
    tool_name_suffixes=(".__call__",),
    is_no_run=_is_no_run,
    is_submission=_is_submission,
)
