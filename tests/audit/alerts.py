"""Claims about alerts: each is raised once and resolved once, and they are those of a run that nothing disturbed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.audit import claims
from tests.audit.committed import Document, Row

STATES = ["raised", "resolved"]
"""What becomes of an alert, in this order."""


def each_alert_is_raised_and_resolved_once(alerts: Mapping[str, Sequence[Document]]) -> Iterator[str]:
    """No alert is raised or resolved twice, and none is resolved before it is raised."""
    for name, found in alerts.items():
        states = [each["state"] for each in found]
        if states != STATES[: len(states)]:
            yield f"alert {name}: {', '.join(states)}"


def no_alert_is_lost_or_made_up(
    alerts: Mapping[str, Sequence[Document]], expected: Mapping[str, Document]
) -> Iterator[str]:
    """The last record of each alert is that of a run without faults, in all its fields."""
    for name in sorted({*alerts, *expected}):
        records, wanted = alerts.get(name), expected.get(name)
        last = records[-1] if records else None
        if last is None or wanted is None:
            yield f"alert {name} is {'missing' if last is None else 'made up'}: {last or wanted}"
        elif last != wanted:
            fields = [field for field in {**last, **wanted} if last.get(field) != wanted.get(field)]
            yield f"alert {name}: {[(field, last.get(field), wanted.get(field)) for field in fields]}"


def faults(rows: Sequence[Row], expected: Sequence[Document]) -> claims.Faults:
    """Returns a sentence for each fault, by heading and claim.

    Args:
        rows: The committed records of the topic of alerts.
        expected: The last record of each alert, of a run without faults.
    """
    alerts: dict[str, list[Document]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row[:2]):
        alerts[(row.key or b"").decode()].append(json.loads(row.value or b""))
    found: claims.Faults = {}
    if doubled := list(each_alert_is_raised_and_resolved_once(alerts)):
        found[claims.DOUBLED] = {each_alert_is_raised_and_resolved_once.__name__: doubled}
    if lost := list(no_alert_is_lost_or_made_up(alerts, {each["alert_id"]: each for each in expected})):
        found[claims.LOST] = {no_alert_is_lost_or_made_up.__name__: lost}
    return found
