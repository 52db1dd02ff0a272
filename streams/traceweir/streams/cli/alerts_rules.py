"""Runs `traceweir alerts push`, `withdraw`, `list` and `accept`; escapes all text, which can be hostile."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
from rich.console import Console
from rich.text import Text

from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule
from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.alerts_output import effect_text, print_streams, read_rule, stream_document, stream_text
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.terminal import complain, mute_clients
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.scoring.configs.alert_records import accept_record, rule_record
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.state_rows import StateFormatError
from traceweir.streams.tools.alerts.state_topic import AlertsError, read_state
from traceweir.streams.worker.config_topic import KeyedRecord, TopicState, read_topic, write_records


def push_rules(files: Sequence[Path]) -> int:
    """Writes the rules of files to the topic `configs`; returns the exit code.

    Raises:
        InputError: a file cannot be read, or a rule cannot be used.
        ConfigTopicError: the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
    """
    rules = [read_rule(each) for each in files]
    unchanged: list[str] = []

    def changed(state: TopicState) -> list[KeyedRecord]:
        unchanged[:] = [each.id for each in rules if state.alert_rules.get(each.id) == each]
        return [rule_record(each.id, each) for each in rules if each.id not in unchanged]

    mute_clients()
    asyncio.run(write_records(kafka_settings(), changed))
    for each in rules:
        name = printable(each.id, 100)
        complain(f"rule {name} is watched already" if each.id in unchanged else f"rule {name} pushed")
    return 0


def withdraw_rule(rule_id: str) -> int:
    """Withdraws a rule; returns the exit code.

    Raises:
        ConfigTopicError: the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
    """
    known: list[str] = []

    def changed(state: TopicState) -> list[KeyedRecord]:
        known[:] = state.alert_rules
        return [rule_record(rule_id, None)] if rule_id in known else []

    mute_clients()
    asyncio.run(write_records(kafka_settings(), changed))
    if rule_id not in known:
        names = ", ".join(printable(each, 100) for each in sorted(known)) or "none"
        complain(f"no rule {printable(rule_id, 100)!r} was pushed; pushed are: {names}")
        return FAILED
    if len(known) == 1:
        complain(f"rule {printable(rule_id, 100)} withdrawn; without a pushed rule {DEFAULT_ALERT_RULE.id} is watched")
    else:
        complain(f"rule {printable(rule_id, 100)} withdrawn")
    return 0


def accept_alerts(alert_ids: Sequence[str], *, every: bool) -> int:
    """Takes the level of alerts as the new normal; returns the exit code.

    Raises:
        AlertsError: the state cannot be read.
        ConfigTopicError: the topic of configs cannot be written.
        KafkaUnreachableError: no broker answers.
    """
    settings = kafka_settings()
    mute_clients()
    raised = [each.alert_id for each in asyncio.run(_watch(settings)).raised]
    if unknown := [each for each in alert_ids if each not in raised]:
        names = ", ".join(printable(each, 80) for each in unknown)
        complain(f"no alert with the id {names} is raised: nothing was written. `traceweir alerts list` lists them")
        return FAILED
    chosen = raised if every else list(dict.fromkeys(alert_ids))
    by = _user()
    records = [accept_record(each, utc_now(), by) for each in chosen]
    if records:
        asyncio.run(write_records(settings, lambda state: records))
    complain(f"{counted(len(chosen), 'alert')} accepted; the level since then is learnt as the new normal")
    return 0


def list_rules(*, as_json: bool) -> int:
    """Prints the rules, the alerts that are raised, and the streams; returns the exit code.

    Raises:
        AlertsError: the state cannot be read.
        ConfigTopicError: the topic of configs cannot be read.
        KafkaUnreachableError: no broker answers.
    """
    settings = kafka_settings()
    mute_clients()
    pushed = asyncio.run(read_topic(settings)).alert_rules
    rules = dict(sorted(pushed.items())) or {DEFAULT_ALERT_RULE.id: DEFAULT_ALERT_RULE}
    watch = asyncio.run(_watch(settings))
    if as_json:
        document = {
            "rules": [each.model_dump(mode="json", exclude_none=True) for each in rules.values()],
            "raised": [each.model_dump(by_alias=True) for each in watch.raised],
            "streams": {
                name: [stream_document(each) for each in found]
                for name, found in watch.reports().items()
                if watch.rules[name] == rules.get(name)
            },
        }
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_UTC_Z).decode() + "\n")
        return 0
    console = Console(highlight=False)
    for alert in watch.raised:
        console.print(
            Text(f"raised {alert.since:%Y-%m-%d %H:%M} {printable(alert.rule, 100)}: "),
            stream_text(alert.stream),
            Text(f"{effect_text(alert)}, traceweir alerts accept {alert.alert_id}"),
            soft_wrap=True,
        )
    for name, rule in rules.items():
        console.print(Text(rule_in_words(rule), style="bold"), soft_wrap=True)
        streams = watch.reports()[name] if watch.rules.get(name) == rule else []
        if streams:
            print_streams(console, streams)
        else:
            console.print("  no score yet; `traceweir alerts run` watches")
    return 0


async def _watch(settings: Settings) -> AlertWatch:
    watch = AlertWatch()
    try:
        watch.load(await read_state(settings))
    except StateFormatError as error:
        raise AlertsError(str(error)) from error
    return watch


def rule_in_words(rule: AlertRule) -> str:
    """Returns what a rule watches, and what it promises."""
    limit = "what is usual" if rule.limit is None else f"{rule.limit:g}"
    what = {
        "pass_rate": "pass rate",
        "mean": "mean",
        "not_evaluated": "share without a value",
        "above_limit": f"share above {limit}",
        "below_limit": f"share below {limit}",
        "freshness": "share of intervals in which a session comes",
        "category": f"share of the category {printable(rule.category or '', 100)}",
    }[rule.what]
    of = f" of {printable(rule.metric, 100)}" if rule.metric else ""
    by = f" by {', '.join(printable(each, 100) for each in rule.by)}" if rule.by else ""
    return (
        f"{printable(rule.id, 100)}: {what}{of}{by}, a {rule.bad_direction} by {rule.tolerated_change:g}; one false alarm in "
        f"{rule.days_between_false_alarms:g} days"
    )


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container without an entry for its user.
        return None
