"""Reads and makes the records of the topic `configs` that are about alerts: rules, and alerts that somebody has accepted.

`alerts:rule:NAME` has a rule, and a tombstone withdraws it. `alerts:accept:ID` says that the level of this alert is the new
normal. The last record of each key counts, as with configs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

from pydantic import Field, ValidationError

from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.base import Identifier, NonEmpty, Timestamp, WireModel, explain
from traceweir.schemas.pushed_config import ENVELOPE
from traceweir.streams.scoring.configs.records import ALERTS, UnreadableConfigError

RULE = f"{ALERTS}rule:"
ACCEPT = f"{ALERTS}accept:"


class RuleChange(NamedTuple):
    """A pushed or withdrawn rule."""

    rule_id: str
    rule: AlertRule | None
    """None: it is withdrawn."""


class AcceptedAlert(WireModel):
    """Says that the changed level of an alert is the new normal."""

    envelope: Annotated[int, Field(ge=1)]
    """Version of this format."""
    alert_id: Identifier
    """The alert."""
    accepted_at: Timestamp
    """When somebody accepted it, by the clock of the machine that wrote the record."""
    accepted_by: NonEmpty | None = None
    """Who accepted it, as the command was given it; null if unknown."""


class _PushedRule(WireModel):
    """A rule with the version of its record."""

    envelope: Annotated[int, Field(ge=1)]
    rule: AlertRule


def rule_record(rule_id: str, rule: AlertRule | None) -> tuple[bytes, bytes | None]:
    """Returns the record, as key and value, that pushes a rule, or that withdraws it if there is none.

    >>> rule_record("r", None)
    (b'alerts:rule:r', None)
    """
    key = f"{RULE}{rule_id}".encode()
    return key, None if rule is None else _PushedRule(envelope=ENVELOPE, rule=rule).model_dump_json().encode()


def accept_record(alert_id: str, at: datetime, by: str | None) -> tuple[bytes, bytes]:
    """Returns the record, as key and value, that accepts the level of an alert."""
    accepted = AcceptedAlert(envelope=ENVELOPE, alert_id=alert_id, accepted_at=at, accepted_by=by)
    return f"{ACCEPT}{alert_id}".encode(), accepted.model_dump_json().encode()


def read_alert_change(key: bytes, value: bytes | None) -> RuleChange | AcceptedAlert | None:
    """Returns what a record about alerts says; None if it says nothing that changes something.

    Raises:
        UnreadableConfigError: the record cannot be read.
    """
    try:
        text = key.decode()
    except UnicodeDecodeError:
        raise UnreadableConfigError("the key of the record is no UTF-8") from None
    try:
        if text.startswith(RULE):
            name = text.removeprefix(RULE)
            if value is None:
                return RuleChange(name, None)
            pushed = _PushedRule.model_validate_json(value)
            _check_version(pushed.envelope)
            if pushed.rule.id != name:
                raise UnreadableConfigError(
                    f"rule.id: {pushed.rule.id!r:.200} is not the name in the key, {name!r:.200}"
                )
            return RuleChange(name, pushed.rule)
        if text.startswith(ACCEPT):
            if value is None:
                return None
            accepted = AcceptedAlert.model_validate_json(value)
            _check_version(accepted.envelope)
            return accepted
    except ValidationError as error:
        raise UnreadableConfigError(explain(error)) from None
    raise UnreadableConfigError(f"the key of the record: {text!r:.200} is neither {RULE}NAME nor {ACCEPT}ID")


def _check_version(envelope: int) -> None:
    if envelope > ENVELOPE:
        raise UnreadableConfigError(
            f"envelope: version {envelope} is newer than {ENVELOPE}, the newest that this Traceweir reads", newer=True
        )
