"""Builds MLflow traces in the JSON of MLflow 3, with defaults for all fields that a test does not set."""

from __future__ import annotations

import json
from typing import Any


def mlflow_span(name: str, kind: str, parent: str | None = None, outputs: Any = None, **changes: Any) -> dict[str, Any]:
    """Returns a span whose id is its name."""
    attributes = {"mlflow.spanType": json.dumps(kind)} | changes.pop("attributes", {})
    if outputs is not None:
        attributes["mlflow.spanOutputs"] = json.dumps(outputs)
    return {"span_id": name, "parent_span_id": parent, "name": name, "attributes": attributes, **changes}


def mlflow_trace(*spans: dict[str, Any], **info: Any) -> str:
    return json.dumps({"info": info, "data": {"spans": list(spans)}})


def mlflow_run(question: str = "What is RAG?", answer: str = "Retrieval with generation.", **info: Any) -> str:
    """Returns a trace of MLflow 3 whose only span has a question and an answer, as a traced function records them."""
    inputs = {"mlflow.spanInputs": json.dumps({"question": question})}
    return mlflow_trace(mlflow_span("root", "AGENT", None, answer, attributes=inputs), **info)


def expectation(name: str, value: Any, **changes: Any) -> dict[str, Any]:
    """Returns an assessment as MLflow 3 writes it: lists and objects are JSON text."""
    plain = isinstance(value, str | int | float | bool)
    serialized = {"serialized_value": {"serialization_format": "JSON_FORMAT", "value": json.dumps(value)}}
    source = {"source_type": "HUMAN", "source_id": "kim@example.com"}
    found = {"assessment_name": name, "source": source, "expectation": {"value": value} if plain else serialized}
    return found | changes


def usage(read: int | None = None, written: int | None = None, key: str = "usage") -> dict[str, Any]:
    return {key: {"prompt_tokens": read, "completion_tokens": written}}


def documents(*uris: str | None) -> list[dict[str, Any]]:
    """Returns the output of a retriever."""
    return [{"page_content": f"of {uri}", "metadata": {"doc_uri": uri}} for uri in uris]
