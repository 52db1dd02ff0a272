"""The criteria without a config: metrics of any invocation that need no reference, no judge and no threshold."""

from __future__ import annotations

from traceweir.scorers.base import Scorer
from traceweir.scorers.evaluation.metric import Metric, digest_of
from traceweir.scorers.evaluation.registry import BUILT_IN

ALWAYS = ("tool_call_count_v1",)
"""Metrics that every invocation has. One of them keeps a session without a config from having no score at all."""

WITH_INPUT = ("inference_call_count_v1", "token_usage_v1")
"""Metrics that only measure the sessions with their input, so that `results` is not flooded with `missing_input`."""

# Left out, with the CPU time per recorded session of 7.6 invocations: each metric above takes 0.3 ms.
# - `invocation_duration_v1` and `latency` (0.3 ms): the events of a converted transcript have made-up times.
# - `content_similarity` (1.1 ms), `keyword_coverage` (1.8 ms), `completeness` (3.9 ms): PASSED without a threshold says
#   nothing, and a threshold that suits every agent does not exist.


def default_metrics() -> tuple[Metric, ...]:
    """Returns the metrics without a config."""
    return tuple(_metric(name, BUILT_IN[name]()) for name in (*ALWAYS, *WITH_INPUT))


def _metric(name: str, scorer: Scorer) -> Metric:
    return Metric(name, None, scorer, digest_of(name, scorer), needs_input=name in WITH_INPUT)
