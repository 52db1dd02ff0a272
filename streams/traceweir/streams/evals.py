"""Import path of users: scores recorded sessions against eval sets. Nothing in Traceweir imports it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceweir.streams.lab.evals.evaluate import evaluate_files
    from traceweir.streams.lab.evals.results import Report

__all__ = ["Report", "evaluate_files"]

_MODULES = {"Report": "results", "evaluate_files": "evaluate"}


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use, so that the import of this module costs nothing."""
    if name in _MODULES:
        return getattr(import_module(f"traceweir.streams.lab.evals.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
