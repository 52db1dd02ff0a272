"""Import path of users: scores a pandas DataFrame without Kafka. Nothing in Traceweir imports it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceweir.streams.tools.offline.dataframe import FrameScores, score_frame

__all__ = ["FrameScores", "score_frame"]

_MODULES = {"FrameScores": "dataframe", "score_frame": "dataframe"}


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use, so that the import of this module costs nothing."""
    if name in _MODULES:
        return getattr(import_module(f"traceweir.streams.tools.offline.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
