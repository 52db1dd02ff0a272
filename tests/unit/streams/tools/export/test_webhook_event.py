"""An event of a webhook has a stable id, a signature that receivers can check, and no text that must not leave."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError
from tests.support.results import make_score

from traceweir.schemas.score import Score
from traceweir.streams.base.clock import utc_now
from traceweir.streams.tools.export.webhook_event import event_type, signed_headers, webhook_event

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
