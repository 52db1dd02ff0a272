"""Measures traces and sessions, without Kafka, network or clock; every scorer is in a file of its own.

`evaluate_value` returns the value of a trace in one call. `read_plan` and `evaluate` measure a session according to a
config, as the workers do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from traceweir.scorers.base import Measurement, Measurements, MissingInput, Scorer, Subject
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.scorers.judge import AnswerUnusable, BudgetSpent, Judge, JudgeFailed, Question, Reply
from traceweir.scorers.metrics.trace_value import TraceValue, evaluate_value

if TYPE_CHECKING:
    from traceweir.scorers.hashing_embedder import HashingEmbedder
    from traceweir.scorers.metrics.novelty import NoveltyCache
    from traceweir.scorers.metrics.response_match import ResponseMatch
    from traceweir.scorers.metrics.tool_trajectory import ToolTrajectory

__all__ = [
    "AnswerUnusable",
    "BudgetSpent",
    "ConfigError",
    "Embedder",
    "HashingEmbedder",
    "Judge",
    "JudgeFailed",
    "Measurement",
    "Measurements",
    "Metric",
    "MissingInput",
    "NoveltyCache",
    "Plan",
    "Question",
    "Reply",
    "ResponseMatch",
    "Scorer",
    "Subject",
    "ToolTrajectory",
    "TraceValue",
    "evaluate",
    "evaluate_value",
    "read_plan",
]

_MODULES = {
    "HashingEmbedder": "hashing_embedder",
    "NoveltyCache": "metrics.novelty",
    "ResponseMatch": "metrics.response_match",
    "ToolTrajectory": "metrics.tool_trajectory",
}
"""The modules that scoring a small file does not need; numpy alone takes a tenth of the CPU of such a command."""


def __getattr__(name: str) -> Any:
    """Imports a public name of these modules at its first use."""
    if name in _MODULES:
        return getattr(import_module(f"traceweir.scorers.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
