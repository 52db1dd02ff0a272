"""Turns scores into events of a webhook: signed JSON, as the specification Standard Webhooks has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

import orjson
from standardwebhooks import Webhook

from traceweir.schemas.score import GATE, Score, reported_status, uuid5
from traceweir.streams.tools.export.content import Content, details, explanation, labels

EventType: TypeAlias = Literal["decision", "failed", "passed", "informational", "not_evaluated"]
EVENT_TYPES: dict[EventType, str] = {
    "decision": "traceweir.gate.decision",
    "failed": "traceweir.score.failed",
    "passed": "traceweir.score.passed",
    "informational": "traceweir.score.informational",
    "not_evaluated": "traceweir.score.not_evaluated",
}
"""The `type` of an event, by the name that the command takes."""
_OF_STATUS: dict[str, EventType] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "INFORMATIONAL": "informational",
    "NOT_EVALUATED": "not_evaluated",
}


class WebhookEvent(NamedTuple):
    """One event, as every attempt sends it."""

    id: str
    """Identity of the score: a receiver that keeps it can leave out repetitions."""
    body: bytes
    """The JSON object with `type`, `timestamp` and `data`, the score."""


def event_type(score: Score) -> EventType:
    """Returns what kind of event a score is."""
    if score.metric == GATE:
        return "decision"
    return _OF_STATUS[reported_status(score.metric, score.status, score.threshold)]


def webhook_event(score: Score, content: Content) -> WebhookEvent:
    """Returns the event of a score. It depends on the score alone, so that a score that is sent twice is the same twice.

    Args:
        score: The score.
        content: How much text of agents and judges is sent.
    """
    sent = score.model_copy(
        update={
            "rationale": explanation(score, content),
            "labels": labels(score, content) or None,
            "details": details(score, content),
        }
    )
    body = orjson.dumps(
        {
            "type": EVENT_TYPES[event_type(score)],
            "timestamp": score.evaluated_at,
            "data": orjson.Fragment(sent.wire()),
        },
        option=orjson.OPT_UTC_Z,
    )
    return WebhookEvent(uuid5(score.session_id, score.result_id, str(score.revision), str(score.attempt)), body)


def signed_headers(event: WebhookEvent, secrets: Sequence[str], at: datetime) -> Mapping[str, str]:
    """Returns the headers with which a receiver checks who has sent an event, and when.

    Args:
        event: The event.
        secrets: One secret, or during a change the new and the old one: a receiver accepts either signature.
        at: The time of the attempt, in UTC. Receivers refuse events that are minutes old.
    """
    text = event.body.decode()
    return {
        "webhook-id": event.id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(event.id, at, text) for secret in secrets),
    }
