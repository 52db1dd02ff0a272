"""Scores the documents of a file or a pandas DataFrame without Kafka, with the same code that a worker runs.

This package uses formats, scoring and stages, but not Kafka. Begin with `score_documents`; in a notebook, with
`dataframe.score_frame`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceweir.streams.offline.dataframe import FrameScores, score_frame

__all__ = ["FrameScores", "score_frame"]

_MODULES = {"FrameScores": "dataframe", "score_frame": "dataframe"}


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use, because the other modules of this package do not need it."""
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
