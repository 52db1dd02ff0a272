"""An alert is read as it was written, has the published schema, and was raised when it says so."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError
from tests.support.paths import ROOT

from traceweir.schemas.alert import Alert, AlertStream, alert_id
from traceweir.schemas.export import exported

ALERT: dict[str, Any] = json.loads((ROOT / "tests" / "golden" / "1.0" / "Alert.json").read_text("utf-8"))


def read(**changes: object) -> Alert:
    return Alert.model_validate_json(json.dumps(ALERT | changes))


def test_an_alert_is_read_as_it_was_written() -> None:
    assert Alert.model_validate_json(read().wire()) == read()
    assert json.loads(read().wire())["onset"]["from"] == "2026-03-01T09:30:00Z"


@pytest.mark.slow
def test_what_is_written_has_the_published_schema() -> None:
    jsonschema.validate(json.loads(read().wire()), json.loads(dict(exported())["Alert.schema.json"]))


def test_a_raised_alert_occurred_when_it_was_raised() -> None:
    assert read(state="raised", occurred_at=ALERT["since"]).state == "raised"
    with pytest.raises(ValidationError, match="both must be when it was raised"):
        read(state="raised")


def test_an_id_depends_on_the_rule_the_stream_and_the_onset() -> None:
    slices: list[dict[str, str | None]] = [{}, {"app_name": "a"}, {"model": "a"}]
    streams = [AlertStream(metric="m", level="session", slice=each) for each in slices]
    ids = {alert_id(rule, stream, minute) for rule in "ab" for stream in streams for minute in (1, 2)}
    assert len(ids) == 12
