"""Scores recorded sessions against eval sets, for `traceweir eval` and the pytest plugin.

This package uses formats and scoring, and Kafka only to read recorded sessions. Begin with `evaluate`; `recordings`
reads sessions, `results` holds the outcome, `text` and `junit` format the outcome, `json_text` parses lenient JSON.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceweir.streams.evals.evaluate import evaluate_files
    from traceweir.streams.evals.results import Report

__all__ = ["Report", "evaluate_files"]

_MODULES = {"Report": "results", "evaluate_files": "evaluate"}


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use, because the other modules of this package do not need it."""
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
