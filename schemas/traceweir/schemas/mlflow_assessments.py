"""Reads the assessments of an MLflow trace: the expectations that people or code attached to the trace."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import JsonObject
from traceweir.schemas.evaluation_row import EXPECTED, Expectations
from traceweir.schemas.mlflow_spans import decoded


def trace_expectations(info: JsonObject, unread: list[str]) -> Expectations:
    """Returns the expectations among the assessments in the `info` of a trace.

    Of several expectations with the same name, the last one counts, as in MLflow. An assessment that another one
    overrides (`valid` is false) does not count. Other names than those of Agent Evaluation are ignored.

    Args:
        info: The `info` of the trace.
        unread: Receives a sentence for each expectation that cannot be read.
    """
    found: JsonObject = {}
    for name, expectation in _expectations(info):
        try:
            value = _value(expectation)
            Expectations.model_validate({name: value})
        except ValidationError as error:
            rule = error.errors(include_url=False, include_context=False)[0]["msg"].removeprefix("Value error, ")
            unread.append(f"the expectation {name!r} of the trace: {rule}")
        except ValueError:
            unread.append(f"the expectation {name!r} of the trace is not JSON")
        else:
            found[name] = value
    return Expectations.model_validate(found)


def _expectations(info: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    assessments = info.get("assessments")
    for assessment in assessments if isinstance(assessments, list) else ():
        if not isinstance(assessment, dict) or assessment.get("valid") is False:
            continue
        name, expectation = assessment.get("assessment_name"), assessment.get("expectation")
        if isinstance(name, str) and name in EXPECTED and isinstance(expectation, dict):
            yield name, expectation


def _value(expectation: JsonObject) -> JsonValue:
    """Returns the value of an expectation; MLflow writes lists and objects as JSON text in `serialized_value`."""
    serialized = expectation.get("serialized_value")
    text = serialized.get("value") if isinstance(serialized, dict) else None
    return decoded(text) if isinstance(text, str) else expectation.get("value")
