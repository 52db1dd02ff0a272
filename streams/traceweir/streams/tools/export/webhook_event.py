"""Turns scores and alerts into events of a webhook: signed JSON, as the specification Standard Webhooks has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

import orjson
from standardwebhooks import Webhook

from traceweir.schemas.alert import Alert, AlertState
from traceweir.schemas.score import GATE, Score, reported_status, uuid5
from traceweir.scorers.redaction.redaction import redact_text
from traceweir.streams.tools.export.content import Content, details, explanation, labels
from traceweir.streams.tools.export.source import FoundAlert
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.tools.results.selection import LABEL

EventType: TypeAlias = Literal[
    "decision", "failed", "passed", "informational", "not_evaluated", "alert_raised", "alert_resolved"
]
EVENT_TYPES: dict[EventType, str] = {
    "decision": "traceweir.gate.decision",
    "failed": "traceweir.score.failed",
    "passed": "traceweir.score.passed",
    "informational": "traceweir.score.informational",
    "not_evaluated": "traceweir.score.not_evaluated",
    "alert_raised": "traceweir.alert.raised",
    "alert_resolved": "traceweir.alert.resolved",
}
"""The `type` of an event, by the name that the command takes."""
_OF_STATE: dict[AlertState, EventType] = {"raised": "alert_raised", "resolved": "alert_resolved"}
OF_ALERTS = frozenset(_OF_STATE.values())
"""The kinds of events that are about alerts; all others are about scores, which are another topic."""
_OF_STATUS: dict[str, EventType] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "INFORMATIONAL": "informational",
    "NOT_EVALUATED": "not_evaluated",
}


class WebhookEvent(NamedTuple):
    """One event, as every attempt sends it."""

    id: str
    """Identity of the score, or of the record of the alert: a receiver that keeps it can leave out repetitions."""
    body: bytes
    """The JSON object with `type`, `timestamp` and `data`, the score or alert."""


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


def score_events(
    events: Collection[EventType], metrics: Collection[str], content: Content
) -> Callable[[FoundScore], WebhookEvent | None]:
    """Returns what makes the events of selected scores.

    Args:
        events: The kinds of events that are sent.
        metrics: The metrics that are sent; empty: all.
        content: How much text of agents and judges is sent.
    """

    def event(found: FoundScore) -> WebhookEvent | None:
        is_selected = event_type(found.score) in events and (not metrics or found.score.metric in metrics)
        return webhook_event(found.score, content) if is_selected else None

    return event


def alert_events(
    events: Collection[EventType], metrics: Collection[str], content: Content
) -> Callable[[FoundAlert], WebhookEvent | None]:
    """Returns what makes the events of selected alerts, likewise."""

    def event(found: FoundAlert) -> WebhookEvent | None:
        alert = found.alert
        is_selected = _OF_STATE[alert.state] in events and (not metrics or alert.stream.metric in metrics)
        return alert_event(found, content) if is_selected else None

    return event


def alert_event(found: FoundAlert, content: Content) -> WebhookEvent:
    """Returns the event of an alert. Its id is that of the record: an alert can be raised again with another verdict."""
    alert = found.alert
    body = orjson.dumps(
        {
            "type": EVENT_TYPES[_OF_STATE[alert.state]],
            "timestamp": alert.occurred_at,
            "data": orjson.Fragment(_without_labels(alert, content).wire()),
        },
        option=orjson.OPT_UTC_Z,
    )
    place = (str(found.partition), str(found.offset), str(found.at_ms))
    return WebhookEvent(uuid5("alert", alert.alert_id, alert.state, *place), body)


def _without_labels(alert: Alert, content: Content) -> Alert:
    """Returns the alert with what may leave of the labels' values; the other dimensions leave as those of a score do."""
    if content == "full":
        return alert
    cut = {
        name: redact_text(value) if value is not None and name.startswith(LABEL) else value
        for name, value in alert.stream.slice.items()
        if content == "redacted" or not name.startswith(LABEL)
    }
    suspects = tuple(
        each.model_copy(update={"field": redact_text(each.field), "value": redact_text(each.value)})
        if each.field.startswith(LABEL)
        else each
        for each in alert.suspects
        if content == "redacted" or not each.field.startswith(LABEL)
    )
    stream = alert.stream.model_copy(update={"slice": cut})
    return alert.model_copy(update={"stream": stream, "suspects": suspects})


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
