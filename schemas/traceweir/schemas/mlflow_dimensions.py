"""Reads the dimensions of an invocation from its MLflow trace: user, model version, labels, and the OpenTelemetry id."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import MAX_LABELS, MAX_SHORT_CHARS, Dimensions, usable_dimensions
from traceweir.schemas.mlflow_spans import metadata_of

_USER = "mlflow.trace.user"
_MODEL_ID = "mlflow.modelId"
_RESERVED = "mlflow."
_OTEL_PREFIX = "tr-"


def mlflow_dimensions(info: JsonObject) -> Dimensions:
    """Returns the dimensions that the `info` of a trace tells.

    The version of the agent is the id of its logged model. Labels are the tags that users set, without those of MLflow
    itself; those with a name or value of more than 256 characters are left out, as are all after the first 8 by name.
    MLflow 3 names a trace after its id in OpenTelemetry.

    >>> mlflow_dimensions({"trace_id": "tr-" + "a" * 32, "tags": {"team": "search", "mlflow.traceName": "x"}}).labels
    {'team': 'search'}
    """
    metadata = metadata_of(info)
    tags = info.get("tags")
    trace_id = info.get("trace_id")
    own = sorted(tags.items()) if isinstance(tags, dict) else []
    labels = [(name, value) for name, value in own if not name.startswith(_RESERVED) and _is_short(name, value)]
    otel_id = trace_id.removeprefix(_OTEL_PREFIX) if isinstance(trace_id, str) else None
    return usable_dimensions(
        {
            "user_id": metadata.get(_USER),
            "agent_version": metadata.get(_MODEL_ID),
            "labels": dict(labels[:MAX_LABELS]),
            "trace_context": {"trace_id": otel_id},
        }
    )


def _is_short(*texts: JsonValue) -> bool:
    return all(isinstance(text, str) and 0 < len(text) <= MAX_SHORT_CHARS for text in texts)
