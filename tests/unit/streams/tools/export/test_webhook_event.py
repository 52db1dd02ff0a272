"""An event of a webhook has a stable id, a signature that receivers can check, and no text that must not leave."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError
from tests.support.alerts import make_alert, resolved
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.schemas.alert import Alert
from traceweir.schemas.score import Score
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.topics import Topics
from traceweir.streams.cli.export.targets import read_event_types
from traceweir.streams.tools.export.source import FoundAlert, alerts_of, scores_of
from traceweir.streams.tools.export.webhook_event import (
    OF_ALERTS,
    alert_event,
    alert_events,
    event_type,
    signed_headers,
    webhook_event,
)

NEW, OLD, OTHER = ("bmV3" * 8, "b2xk" * 8, "b3Ro" * 8)


@pytest.mark.parametrize(
    ("score", "kind", "name"),
    [
        (make_score(metric="gate", value=1.0), "decision", "traceweir.gate.decision"),
        (make_score(metric="gate", value=0.0), "decision", "traceweir.gate.decision"),
        (make_score(value=0.1), "failed", "traceweir.score.failed"),
        (make_score(value=0.9), "passed", "traceweir.score.passed"),
        (make_score(value=0.9, threshold=None), "informational", "traceweir.score.informational"),
        (make_score(value=None), "not_evaluated", "traceweir.score.not_evaluated"),
        (make_score(value=None, threshold=None), "not_evaluated", "traceweir.score.not_evaluated"),
    ],
)
def test_an_event_has_the_type_and_the_fields_of_its_score(score: Score, kind: str, name: str) -> None:
    document = json.loads(webhook_event(score, "full").body)
    assert event_type(score) == kind
    assert (document["type"], document["timestamp"]) == (name, json.loads(score.wire())["evaluated_at"])
    assert Score.model_validate_json(json.dumps(document["data"])) == score


@pytest.mark.parametrize("changes", [{"revision": 1}, {"attempt": 1}, {"result_id": "other"}, {"session_id": "other"}])
def test_the_id_is_that_of_the_score_and_of_no_other(changes: dict[str, Any]) -> None:
    score = make_score()
    assert webhook_event(score, "full").id == webhook_event(score, "none").id
    assert webhook_event(score, "full").id != webhook_event(score.model_copy(update=changes), "full").id


@pytest.mark.parametrize(("content", "shown"), [("full", True), ("redacted", False), ("none", False)])
def test_secrets_of_agents_and_judges_leave_only_if_texts_are_sent_whole(content: Any, shown: bool) -> None:
    secret = "sk-proj-" + "a1B2" * 12
    score = make_score(rationale=f"key {secret}", details={"said": [secret]}, labels={"team": secret})
    assert (secret in webhook_event(score, content).body.decode()) is shown


def test_a_receiver_with_the_new_or_the_old_secret_accepts_an_event_and_another_does_not() -> None:
    event = webhook_event(make_score(session_id="größe\u2028"), "full")
    headers = dict(signed_headers(event, [NEW, OLD], utc_now()))
    for secret in (NEW, f"whsec_{OLD}"):
        assert Webhook(secret).verify(event.body, headers)["data"]["session_id"] == "größe\u2028"
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(event.body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(event.body.replace(b"FAILED", b"PASSED"), headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(event.body, dict(signed_headers(event, [NEW], utc_now() - timedelta(hours=1))))


def found(alert: Alert, offset: int = 0) -> FoundAlert:
    return FoundAlert(1_000, 0, offset, alert, alert.wire())


@pytest.mark.parametrize(
    ("alert", "name"),
    [(make_alert(), "traceweir.alert.raised"), (resolved(make_alert()), "traceweir.alert.resolved")],
)
def test_an_alert_has_the_type_of_its_state_and_all_its_fields(alert: Alert, name: str) -> None:
    document = json.loads(alert_event(found(alert), "redacted").body)
    assert document == {"type": name, "timestamp": json.loads(alert.wire())["occurred_at"], "data": document["data"]}
    assert Alert.model_validate_json(json.dumps(document["data"])) == alert


def test_an_alert_that_is_raised_again_with_another_verdict_is_another_event() -> None:
    """A receiver that leaves out ids that it knows must not leave out the verdict; one record has one id."""
    first = make_alert()
    again = make_alert(verdict="judge")
    ids = [alert_event(found(alert, offset), "full").id for offset, alert in ((0, first), (0, first), (1, again))]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("full", {"app_name": "shop", "labels.mail": "ann@example.org"}),
        ("redacted", {"app_name": "shop", "labels.mail": "[REDACTED:email]"}),
        ("none", {"app_name": "shop"}),
    ],
)
def test_labels_of_an_alert_leave_as_those_of_a_score_do(content: Any, left: dict[str, str]) -> None:
    values = {"app_name": "shop", "labels.mail": "ann@example.org"}
    suspects = tuple({"field": name, "value": value, "first_seen": NOW} for name, value in values.items())
    data = json.loads(alert_event(found(make_alert(by=values, suspects=suspects)), content).body)["data"]
    assert data["stream"]["slice"] == left
    assert {each["field"]: each["value"] for each in data["suspects"]} == left


def test_the_name_of_a_label_is_redacted_too() -> None:
    suspects = ({"field": "labels.ann@example.org", "value": "1", "first_seen": NOW},)
    data = json.loads(alert_event(found(make_alert(suspects=suspects)), "redacted").body)["data"]
    assert "ann@" not in json.dumps(data)


def test_only_selected_states_and_metrics_are_events() -> None:
    event = alert_events(["alert_resolved"], ["helpful"], "full")
    alert = make_alert("helpful")
    assert event(found(alert)) is None
    assert event(found(resolved(alert))) is not None
    assert event(found(resolved(make_alert("other")))) is None


def test_scores_and_alerts_are_never_taken_for_each_other() -> None:
    """A group that was used for both leaves the other's records alone."""
    score, alert = make_score(), make_alert()
    for source, other in ((scores_of(Topics.of()), alert.wire()), (alerts_of(Topics.of()), score.wire())):
        assert source.key_field not in json.loads(other)
        with pytest.raises(ValueError, match="validation error"):
            source.read(0, 0, 0, other)


def test_one_command_sends_scores_or_alerts() -> None:
    assert read_event_types(["alert_resolved", "alert_raised"]) == OF_ALERTS
    with pytest.raises(ValueError, match="run one command for each of them"):
        read_event_types(["failed", "alert_raised"])
