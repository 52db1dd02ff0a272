"""Finds values without a threshold among the rows of former versions of a store, which counted them as PASSED."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.score import GATE

WITHOUT_THRESHOLD = (
    "tool_call_count_v1",
    "inference_call_count_v1",
    "token_usage_v1",
    "invocation_duration_v1",
    "agent/total_token_count",
    "agent/input_token_count",
    "agent/output_token_count",
    "agent/latency_seconds",
)
"""The metrics that accepted no threshold in these versions."""
IN_RESULTS = f"status = 'PASSED' AND threshold IS NULL AND metric <> '{GATE}'"
"""The condition for such rows of results."""


def in_figures(results: Sequence[str]) -> str:
    """Returns the condition for such rows of figures, which have no threshold of their own.

    A criterion of one config always has a threshold, or never. Where no result of the config is left, the metrics that
    accepted no threshold are known by name.

    Args:
        results: The tables that have results with `metric`, `config_digest` and `threshold`.
    """
    found = " UNION ALL ".join(
        f"SELECT metric, config_digest FROM {name} WHERE threshold IS NULL AND metric <> '{GATE}'" for name in results
    )
    names = ", ".join(f"'{name}'" for name in WITHOUT_THRESHOLD)
    return f"(metric IN ({names}) OR (metric, config_digest) IN ({found}))"
