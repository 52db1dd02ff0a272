"""Says whose change an alert shows, by its suspects and by the anchors of its metric."""

from __future__ import annotations

from datetime import datetime

from traceweir.schemas.alert import Alert, AlertVerdict
from traceweir.streams.tools.alerts.judge_or_agent import AnchorEvidence, Attribution, ScoresAlarm, judge_or_agent

OF_CONFIG = "config_digest"
OF_AGENT = ("agent_version", "model")


def attribution_of(alert: Alert, anchors: AnchorEvidence | None, now: int, *, is_judged: bool) -> Attribution:
    """Returns whose change an alert shows, as far as it is known.

    If a config and a version or model of an agent came in the same interval, nothing tells them apart.

    Args:
        alert: The alert.
        anchors: The evidence of the anchors of its metric; None: there are none.
        now: The minute since 1970.
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
    found = judge_or_agent(alarm, anchors, configs, now)
    of_agent = next((each for each in alert.suspects if each.field in OF_AGENT), None)
    if found.verdict == "config" and of_agent is not None:
        reason = f"{found.reason}; so did {of_agent.field}, and nothing tells them apart"
        return Attribution("unknown", reason, found.is_final)
    return found


def with_verdict(alert: Alert, verdict: AlertVerdict) -> Alert:
    """Returns the alert with another verdict."""
    return alert.model_copy(update={"verdict": verdict})


def _minute(moment: datetime) -> int:
    return int(moment.timestamp()) // 60
