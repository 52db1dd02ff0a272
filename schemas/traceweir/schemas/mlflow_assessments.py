"""Reads the assessments of an MLflow trace: expectations, and feedback as labels."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import JsonObject
from traceweir.schemas.evaluation_row import EXPECTED, Expectations
from traceweir.schemas.invocation import RecordedLabel
from traceweir.schemas.mlflow_spans import decoded, number


def trace_expectations(info: JsonObject, unread: list[str]) -> Expectations:
    """Returns the expectations among the assessments in the `info` of a trace.

    Of several expectations with the same name, the last one counts, as in MLflow. An assessment that another one
    overrides (`valid` is false) does not count. Other names than those of Agent Evaluation are ignored.

    Args:
        info: The `info` of the trace.
        unread: Receives a sentence for each expectation that cannot be read.
    """
    found: JsonObject = {}
    for name, assessment in valid_assessments(info):
        expectation = assessment.get("expectation")
        if name not in EXPECTED or not isinstance(expectation, dict):
            continue
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


def trace_labels(info: JsonObject) -> list[RecordedLabel]:
    """Returns the feedback among the assessments in the `info` of a trace, in its order.

    Feedback whose value is an error, a list or an object cannot be compared with a score and is left out.
    """
    found = []
    for name, assessment in valid_assessments(info):
        feedback = assessment.get("feedback")
        source = assessment.get("source")
        given = feedback.get("value") if isinstance(feedback, dict) else None
        value = given if isinstance(given, bool | str) else number(given)
        if value is None:
            continue
        source_type = source.get("source_type") if isinstance(source, dict) else None
        rationale = assessment.get("rationale")
        label = RecordedLabel(
            name=name,
            value=value,
            source_type=source_type if isinstance(source_type, str) else None,
            rationale=rationale if isinstance(rationale, str) else None,
        )
        found.append(label)
    return found


def valid_assessments(info: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yields the name and the content of each assessment in the `info` of a trace that no other one overrides."""
    assessments = info.get("assessments")
    for assessment in assessments if isinstance(assessments, list) else ():
        if not isinstance(assessment, dict) or assessment.get("valid") is False:
            continue
        name = assessment.get("assessment_name")
        if isinstance(name, str):
            yield name, assessment


def _value(expectation: JsonObject) -> JsonValue:
    """Returns the value of an expectation; MLflow writes lists and objects as JSON text in `serialized_value`."""
    serialized = expectation.get("serialized_value")
    text = serialized.get("value") if isinstance(serialized, dict) else None
    return decoded(text) if isinstance(text, str) else expectation.get("value")
