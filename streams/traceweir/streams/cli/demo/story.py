"""The story of `traceweir up --demo`: one app, three versions of its agent, one of which is worse and comes at a known minute.

The last 50 minutes are written at once, with their own times; then the agents go on live.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.cli.demo.sessions import Emission, Sketch, emissions_of
from traceweir.streams.cli.demo.texts import domains

APP = "travel-desk"
JUDGE = "openai/demo-judge"
"""The model of the judged criterion: a script on this machine."""
OUTAGE_REF = "ZZZ"
"""How the booking numbers begin in the minutes in which the judge was down: by them the script knows these sessions."""
SECRETS = ("mina.okafor@example.com", "password=hunter2-of-mina", "sk-demo0123456789abcdefgh")
"""What the trace of one session contains, and no published trace may."""
_SECRET_REMARK = f" Wrote to {SECRETS[0]}; signed in with {SECRETS[1]} and token {SECRETS[2]}."

HISTORY_MINUTES = 50
WORSE_AT_MINUTE = -20
"""When version 2.0 comes, which is worse: its searches time out, and it evades the question."""
OUTAGE_MINUTES = (-36, -31)
"""From when to when the judge was down."""
UNREADABLE_AT_MINUTE = -10
"""When three records cannot be read."""
_SESSIONS_PER_MINUTE = 6
_SESSION_S = 4.0
"""Seconds of the longest session."""
WORSE_VERSION = "2.0"
_VERSIONS_BEFORE = {"1.8": 0.3, "1.9": 0.7}
_VERSIONS_SINCE = {"1.8": 0.1, "1.9": 0.3, WORSE_VERSION: 0.6}
"""Share of the sessions of each version, before version 2.0 came and since then."""
_USUAL = (0.03, 0.05)
_WORSE = (0.6, 0.6)
"""Shares of sessions with a failed tool, and with an answer that does not help."""

JUDGED: dict[str, JsonValue] = {
    "conversation_completeness": {"threshold": 1.0, "judge_model_options": {"judge_model": JUDGE}}
}
CHECKED: dict[str, JsonValue] = {
    "answered": {},
    "no_tool_errors": {},
    "max_tool_calls": 3,
    "response_length": {"max_chars": 200},
}
HISTORY_RESULTS = 2 * len(CHECKED) * HISTORY_MINUTES * _SESSIONS_PER_MINUTE
"""Least number of results of the history: each criterion has one for the turn and one for the session."""
GATE: JsonObject = {"threshold": 0.5, "required": ["no_tool_errors"]}
PUSHED_COMMENT = "the demo: two tool calls are enough"


def config(*, judged: bool, max_tool_calls: int = 3) -> JsonObject:
    """Returns the config of the story.

    Args:
        judged: Whether the scripted judge is asked too.
        max_tool_calls: The threshold that the pushed config changes.
    """
    criteria = CHECKED | {"max_tool_calls": max_tool_calls}
    if not judged:
        return {"criteria": criteria, "gate": GATE}
    judge: JsonObject = {
        "structured_output": "always",
        "prices": {JUDGE: {"input": 0.1, "output": 0.4}},
        "retries": {"attempts": 1},
        "breaker": {"failures": 1_000},
    }
    return {"criteria": criteria | JUDGED, "gate": GATE, "judge": judge}


def headlines(start: datetime, *, judged: bool) -> list[str]:
    """Returns what happens in the story, a line each, with times in UTC as the page shows them.

    Args:
        start: When the agents begin.
        judged: Whether the scripted judge is asked.
    """

    def at(minute: int) -> str:
        return f"{start + timedelta(minutes=minute):%H:%M}"

    first, last = OUTAGE_MINUTES
    down = [
        f"{at(first)} to {at(last)} UTC: the judge is down; conversation_completeness is NOT_EVALUATED for these sessions"
    ]
    return [
        *(down if judged else []),
        f"{at(WORSE_AT_MINUTE)} UTC: version {WORSE_VERSION} of the agent comes, and is worse; its tools time out, and it evades questions",
        f"{at(UNREADABLE_AT_MINUTE)} UTC: three records cannot be read; they are dead letters",
        f"now: a config with a stricter max_tool_calls is pushed for {APP}",
        "one trace has a password, a key and an address; it is shared without them",
        f"the records of {HISTORY_MINUTES} minutes were sent at once, so the freshness of these scores is their age",
    ]


def history(start: datetime, seed: int) -> list[Emission]:
    """Returns the records of the last 50 minutes in the order of their times; `due_s` is negative.

    Args:
        start: Now.
        seed: Determines the records.
    """
    rng = random.Random(f"{seed} history")  # noqa: S311  # a story, no secret
    found: list[Emission] = []
    for number in range(HISTORY_MINUTES * _SESSIONS_PER_MINUTE):
        at_s = 60.0 * (number / _SESSIONS_PER_MINUTE - HISTORY_MINUTES) + rng.uniform(0, 5)
        found += _session(rng, start, f"desk-{start:%H%M}-{number:04d}", at_s, has_secrets=number == 10)
    at_s = 60.0 * UNREADABLE_AT_MINUTE
    unreadable = {b'{"type": "tool.called", "session_id": "desk-': "not_json", b"ping": "not_json", b"": "empty"}
    found += [
        Emission(at_s, "invocations", number, None, value, fate=reason, ahead_s=at_s)
        for number, (value, reason) in enumerate(unreadable.items())
    ]
    return sorted(found, key=lambda each: each.due_s)


def live_session(now: datetime, seed: int, number: int) -> list[Emission]:
    """Returns the records of a session that ends now.

    Args:
        now: The present time.
        seed: Determines the records, with `number`.
        number: The number of the session.
    """
    rng = random.Random(f"{seed} live {number}")  # noqa: S311  # as above
    return _session(rng, now, f"desk-{now:%H%M%S}-live-{number}", -_SESSION_S, has_secrets=False)


def _session(rng: random.Random, start: datetime, name: str, at_s: float, *, has_secrets: bool) -> list[Emission]:
    shares = _VERSIONS_SINCE if at_s >= 60 * WORSE_AT_MINUTE else _VERSIONS_BEFORE
    version = rng.choices([*shares], [*shares.values()])[0]
    fails, evades = _WORSE if version == WORSE_VERSION else _USUAL
    first, last = OUTAGE_MINUTES
    sketch = Sketch(
        name,
        domains()[-1],
        rng.getrandbits(48),
        at_s,
        "told" if has_secrets or rng.random() < 0.4 else None,
        ("nothing",),
        remark=_SECRET_REMARK if has_secrets else "",
        fails=not has_secrets and rng.random() < fails,
        evades=not has_secrets and rng.random() < evades,
        ref_start=OUTAGE_REF if 60 * first <= at_s < 60 * last else "",
        dimensions={"agent_name": "concierge", "agent_version": version, "environment": "production"},
    )
    return [replace(one, ahead_s=one.due_s) for one in emissions_of(sketch, start)]
