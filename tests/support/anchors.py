"""Builds labels, sessions and anchors for the judge `safety_v1`, and a judge that answers from a list of unsafe sessions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from tests.support.openai_server import Say
from tests.support.scoring import NOW, make_session

from traceweir.schemas.anchor import Anchor, AnchorLabel, AnchorVerdict, anchor_id
from traceweir.schemas.labels import Label, LabelSubject, label_id
from traceweir.schemas.session import Session
from traceweir.streams.base.statistics.change_point import Changed
from traceweir.streams.base.statistics.watched_judge import JUDGE_PROMISE, JudgeChange
from traceweir.streams.base.statistics.watched_stream import Promise
from traceweir.streams.board.dashboard.anchor_look import AnchorStanding
from traceweir.streams.tools.anchors.listing import KnownAnchor, listed_criteria
from traceweir.streams.tools.anchors.watch import AnchorWatch, SeenVerdict

CRITERION = "safety_v1"
CONFIG: dict[str, Any] = {
    "criteria": {
        CRITERION: {"threshold": 0.5, "judge_model_options": {"judge_model": "openai/local", "num_samples": 1}}
    },
    "judge": {"retries": {"attempts": 1}},
}


def subject(session_id: str, **changes: Any) -> LabelSubject:
    about: dict[str, Any] = {
        "session_id": session_id,
        "segment": 0,
        "revision": 0,
        "level": "invocation",
        "invocation_id": "i-1",
    }
    return LabelSubject(**(about | changes))


def label(about: LabelSubject, verdict: str = "pass", annotator: str = "ana", **changes: Any) -> Label:
    identity = label_id(about, CRITERION, annotator, "review")
    given: dict[str, Any] = {
        "label_id": identity,
        "subject": about,
        "criterion": CRITERION,
        "verdict": verdict,
        "annotator": annotator,
        "kind": "review",
        "drawn": "random",
        "inclusion_probability": 0.1,
        "occurred_at": NOW,
    }
    return Label(**(given | changes))


def frozen_session(session_id: str, revision: int = 0, segment: int = 0) -> Session:
    """Returns a session of one question about itself."""
    about = {"session_id": session_id, "invocation_id": "i-1", "app_name": "shop", "occurred_at": NOW.isoformat()}
    question = {"role": "user", "parts": [{"text": f"What is {session_id}?"}]}
    answer = {"role": "model", "parts": [{"text": f"It is {session_id}."}]}
    events = [
        {**about, "type": "invocation.started", "event_id": "e-1", "user_content": question},
        {**about, "type": "invocation.completed", "event_id": "e-2", "final_response": answer},
    ]
    empty = make_session(session_id, revision=revision, segment=segment).model_dump(mode="json")
    return Session.model_validate_json(json.dumps(empty | {"events": events}))


def anchor(session_id: str, said: AnchorLabel = "pass", **changes: Any) -> Anchor:
    about = subject(session_id)
    given: dict[str, Any] = {
        "anchor_id": anchor_id(about, CRITERION),
        "criterion": CRITERION,
        "subject": about,
        "label": said,
        "label_ids": ("l-1",),
        "drawn": "random",
        "session": frozen_session(session_id),
        "added_at": NOW,
    }
    return Anchor(**(given | changes))


def verdict(name: str, **changes: Any) -> AnchorVerdict:
    given: dict[str, Any] = {
        "anchor_id": name,
        "criterion": CRITERION,
        "metric_digest": "d",
        "set_id": "set-1",
        "label": "pass",
        "passed": True,
        "value": 1.0,
        "judge": "openai/local",
        "due_at": NOW,
        "judged_at": NOW,
    }
    return AnchorVerdict(**(given | changes))


def watched(verdicts: Iterable[AnchorVerdict], promise: Promise = JUDGE_PROMISE) -> AnchorWatch:
    """Returns the watch after these verdicts, in the order in which they were due."""
    found = AnchorWatch(promise)
    for each in verdicts:
        found.add(SeenVerdict.of(each))
    return found


def standing_of(now: datetime, criterion: str = CRITERION, judge: str = "openai/local") -> AnchorStanding:
    """Returns what the dashboard knows of a criterion with two anchors, whose judge became stricter."""
    labels: tuple[AnchorLabel, ...] = ("pass", "fail")
    verdicts = [
        verdict(label, criterion=criterion, judge=judge, label=label, due_at=now - timedelta(minutes=ago))
        for label, ago in zip(labels, (60, 30), strict=True)
    ]
    missing = {"passed": None, "value": None, "not_evaluated_because": "error", "cause": "judge_refused"}
    watch = watched([*verdicts, verdict("pass", criterion=criterion, due_at=now, **missing)])
    minute = int(now.timestamp()) // 60
    change = JudgeChange(
        "stricter", minute, Changed(minute - 90, minute - 120, minute - 60, 80, 0.8, 0.7, 0.9, 1.0), (0.2, 0.1, 0.3)
    )
    watch.criteria[criterion].changes.append(change)
    anchors = [KnownAnchor(label, criterion, label, "random", "s") for label in labels]
    found = listed_criteria(anchors, watch, now)
    return AnchorStanding(read_at=now, criteria=[each.known for each in found])


def safe_but(unsafe: Collection[str], body: dict[str, Any]) -> Say:
    """Returns the verdict of a judge that finds these sessions unsafe."""
    text = " ".join(str(message["content"]) for message in body["messages"])
    is_unsafe = any(f"It is {name}." in text for name in unsafe)
    verdict = {"reasoning": "So it is.", "is_the_agent_response_safe": "no" if is_unsafe else "yes"}
    return Say(text=json.dumps(verdict), usage=(100, 10))
