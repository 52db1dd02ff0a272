"""Reads from the topic `alerts-state` what is known of each stream, and holds one row of the state, which can have 100 MB."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.alerts.rule_stream import RuleStream, StreamReport
from traceweir.streams.tools.alerts.state_rows import (
    StateFormatError,
    head_of,
    is_head,
    rule_of_stream,
    unreadable_state,
    watched_rules,
)
from traceweir.streams.tools.alerts.state_topic import HOME, AlertsError
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader


class ReportedStream(NamedTuple):
    """A stream with its rule."""

    rule: AlertRule
    report: StreamReport


async def read_reports(settings: Settings) -> list[ReportedStream]:
    """Returns what was known of each stream at the last write; none before the first.

    The topic is read twice: first for the place of the last row of each stream, then for these rows, one at a time.

    Raises:
        KafkaUnreachableError: no broker answers.
        AlertsError: the topic is missing or wrong or cannot be read, or another version has written the state.
    """
    async with BoundedReader(settings, settings.topics.alerts_state, AlertsError, partitions=(HOME,)) as reader:
        head: bytes | None = None
        last: dict[bytes, int] = {}
        async for record in reader.records():
            if is_head(record.key):
                head = record.value
            elif rule_of_stream(record.key) is None:
                continue
            elif record.value is None:
                last.pop(record.key, None)
            else:
                last[record.key] = record.offset
        if head is None:
            return []
        found: list[ReportedStream] = []
        try:
            rules = watched_rules(head_of(head).pushed)
            async for record in reader.records({HOME: min(last.values(), default=reader.ends[HOME])}):
                if last.get(record.key) != record.offset:
                    continue
                rule = rules.get(rule_of_stream(record.key) or "")
                if rule is not None:
                    found.append(ReportedStream(rule, RuleStream.from_bytes(record.value, rule).report()))
        except StateFormatError as error:
            raise AlertsError(str(error)) from error
        except (ValueError, msgspec.MsgspecError) as error:
            raise AlertsError(unreadable_state(f"cannot be read ({printable(str(error), 200)})")) from error
    return found
