"""Records about alerts are read as they were written, and those that cannot be read are refused with the reason."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from traceweir.schemas.alert_rule import AlertRule
from traceweir.streams.scoring.configs.alert_records import (
    AcceptedAlert,
    RuleChange,
    accept_record,
    read_alert_change,
    rule_record,
)
from traceweir.streams.scoring.configs.records import UnreadableConfigError, parsed_key
from traceweir.streams.worker.config_topic import TopicState

RULE = AlertRule(id="shop: é", by=("app_name",))
AT = datetime(2026, 11, 1, tzinfo=UTC)


def test_a_rule_and_an_accepted_alert_are_read_as_they_were_written() -> None:
    assert read_alert_change(*rule_record(RULE.id, RULE)) == RuleChange(RULE.id, RULE)
    assert read_alert_change(*rule_record(RULE.id, None)) == RuleChange(RULE.id, None)
    accepted = read_alert_change(*accept_record("id", AT, "ana"))
    assert accepted == AcceptedAlert(envelope=1, alert_id="id", accepted_at=AT, accepted_by="ana")
    assert read_alert_change(accept_record("id", AT, None)[0], None) is None


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (b"alerts:rule:r", b"{", "Invalid JSON"),
        (b"alerts:rule:r", b'{"envelope": 1, "rule": {"id": "s"}}', "rule.id: 's' is not the name in the key, 'r'"),
        (b"alerts:rule:r", b'{"envelope": 1, "rule": {"id": "r", "window": 1}}', "Extra inputs are not permitted"),
        (b"alerts:rule:r", b'{"envelope": 2, "rule": {"id": "r"}}', "version 2 is newer than 1"),
        (b"alerts:other:r", b"{}", "is neither alerts:rule:NAME nor alerts:accept:ID"),
        (b"alerts:rule:\xff", b"{}", "is no UTF-8"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused_with_the_reason(key: bytes, value: bytes, problem: str) -> None:
    with pytest.raises(UnreadableConfigError, match=problem):
        read_alert_change(key, value)


def test_commands_know_the_rules_and_configs_beside_them() -> None:
    state = TopicState()
    records = [rule_record("a", AlertRule(id="a")), rule_record(RULE.id, RULE), rule_record("a", None)]
    for offset, (key, value) in enumerate([*records, accept_record("id", AT, None), (b"alerts:rule:b", b"{")]):
        state.take(0, offset, key, value)
    assert state.alert_rules == {RULE.id: RULE}
    assert state.current == {}
    (problem,) = state.problems
    assert problem.startswith("the record at 0/4 is never in effect: document: Invalid JSON")


def test_no_selector_is_taken_for_a_record_about_alerts() -> None:
    assert parsed_key("alerts").kind == "current"
    with pytest.raises(ValueError, match="is not a selector"):
        parsed_key("alert:rule:r")
