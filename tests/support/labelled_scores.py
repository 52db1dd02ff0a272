"""Invents the scores of a judge, with labels of people on some of them."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.dashboard_site import Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store

from traceweir.schemas.labels import Label, LabelSubject, label_id
from traceweir.schemas.score import Score
from traceweir.streams.board.dashboard.judge_trust import CorrectedRate, JudgeTrust


def label_of(score: Score, verdict: str | None, **changes: Any) -> Label:
    """Returns a label of the session of a score, drawn at random."""
    about = LabelSubject(session_id=score.session_id, segment=0, revision=score.revision, level="session")
    given: dict[str, Any] = {
        "label_id": label_id(about, score.metric, "ana", "review"),
        "subject": about,
        "criterion": score.metric,
        "verdict": verdict,
        "annotator": "ana",
        "kind": "review",
        "drawn": "random",
        "inclusion_probability": 0.2,
        "occurred_at": NOW,
    }
    return Label.model_validate(given | changes)


def story(count: int = 300, labelled: int = 60) -> tuple[list[Score], list[Label]]:
    """Returns scores of a judge that passes 0.4 of what is bad, of two versions of an agent, with labels of some."""
    chance = random.Random(3)
    scores, labels = [], []
    for number in range(count):
        good = chance.random() < 0.7
        passed = chance.random() < (0.95 if good else 0.4)
        scores.append(
            make_score(
                f"s-{number}", "helpful", 1.0 if passed else 0.0, judge="model-a", agent_version=str(number % 2),
                occurred_at=NOW - timedelta(minutes=number), scorer_version="1",
            )
        )  # fmt: skip
        if number < labelled:
            labels.append(label_of(scores[-1], "pass" if good else "fail"))
    return scores, labels


def site_of(folder: Path, scores: list[Score], labels: list[Label]) -> Site:
    """Returns a dashboard whose store has scores and labels."""
    site = Site(open_store(folder / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*scores)
    records = [FakeRecord(each.wire(), number, each.label_id.encode()) for number, each in enumerate(labels)]
    site.store.write(batch_of("labels", *records))
    return site


def rate_of(found: JudgeTrust) -> CorrectedRate:
    """Returns the rate of a judge that has one."""
    assert found.rate is not None
    return found.rate
