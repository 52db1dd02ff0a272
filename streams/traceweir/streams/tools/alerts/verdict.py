"""Says whose change an alert shows, by its suspects and by the anchors of its metric."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from traceweir.schemas.alert import Alert, AlertVerdict
from traceweir.schemas.score import GATE
from traceweir.streams.tools.alerts.judge_or_agent import AnchorEvidence, Attribution, ScoresAlarm, judge_or_agent

OF_CONFIG = "config_digest"
METRIC = "metric_digest"
OF_MEASURING = frozenset({OF_CONFIG, METRIC, "judge", "scorer_version"})
"""Fields whose change is not the agent's."""
OF_PUSHED = frozenset({OF_CONFIG, METRIC, "cause"})
"""Fields that a pushed config changes itself: the digests, and why scores have no value."""


def attribution_of(
    alert: Alert, anchors: AnchorEvidence | None, came: Collection[str], *, is_judged: bool
) -> Attribution:
    """Returns whose change an alert shows, as far as it is known.

    Where something of the agent and something that measures it came in the same interval, nothing tells them apart. The
    verdicts of anchors are passes and failures, so they say nothing about a mean, or about scores without a value.

    Args:
        alert: The alert.
        anchors: The evidence of the anchors of its metric; None: there are none.
        came: The fields, such as `agent_version`, of which a value came in the interval of the onset, or of which nobody
            knows because there were too many.
        is_judged: Whether a judge gives the scores.
    """
    configs = {f"config {each.value}": _minute(each.first_seen) for each in alert.suspects if each.field == OF_CONFIG}
    alarm = ScoresAlarm(
        raised_at=_minute(alert.since),
        earliest=_minute(alert.onset.earliest),
        latest=_minute(alert.onset.latest),
        effect=alert.effect.estimate,
        usual=alert.baseline,
        is_judged=is_judged,
    )
    is_rate = alert.what == "pass_rate" and alert.stream.metric != GATE
    found = judge_or_agent(alarm, anchors if is_rate else None, configs)
    others = {*came} - OF_PUSHED if found.verdict == "config" else {*came} & OF_MEASURING
    if found.verdict in ("agent", "config") and others:
        reason = f"{found.reason}; but {', '.join(sorted(others))} came then too, and nothing tells them apart"
        return Attribution("unknown", reason)
    if alert.what == "freshness":
        return Attribution("unknown", "sessions that stop coming have no score that says why")
    if found.verdict == "agent" and (alert.what == "not_evaluated" or alert.stream.metric == GATE):
        return Attribution("unknown", "the reasons and causes of these scores say more")
    return found


def with_verdict(alert: Alert, verdict: AlertVerdict) -> Alert:
    """Returns the alert with another verdict."""
    return alert.model_copy(update={"verdict": verdict})


def _minute(moment: datetime) -> int:
    return int(moment.timestamp()) // 60
