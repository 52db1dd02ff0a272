"""Invents criteria that a judge answers with a number or a category, with the config that has their scales."""

from __future__ import annotations

from typing import Any

from tests.support.dashboard_site import session_of
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.schemas.score import Score
from traceweir.streams.worker.config_topic import TopicState

MOOD = {"lowest": 1, "lowest_means": "The user is angry.", "highest": 5, "highest_means": "The user is glad."}
SHARE = {"lowest": 0, "lowest_means": "nothing is right", "highest": 100, "highest_means": "all is right"}
TOPICS = {"refund": 1.0, "exchange": 0.5, "other": 0.0}
CONFIG: dict[str, Any] = {
    "criteria": {
        "mood": {"prompt": "{dialogue}", "level": "session", "scale": MOOD, "threshold": 3},
        "share": {"prompt": "{dialogue}", "level": "session", "scale": SHARE, "threshold": 50},
        "topic": {"prompt": "{dialogue}", "level": "session", "scale": {"categories": TOPICS}, "threshold": 1},
    }
}
DIGEST = "scaled"


def scaled_configs() -> TopicState:
    """Returns a topic with the config, as a worker has recorded it."""
    pushed = PushedConfig(
        envelope=ENVELOPE, selector="*", version=1, digest=DIGEST, config=CONFIG, pushed_at=NOW, pushed_by="kim"
    )
    state = TopicState()
    state.by_digest[DIGEST] = pushed
    return state


def scaled_scores(number: int) -> list[Score]:
    """Returns the scores of a session of `session_of`: a number, a share, and a category."""
    session_id = session_of(number, NOW, is_new=False)["session_id"]

    def of(metric: str, value: float, **changes: Any) -> Score:
        threshold = CONFIG["criteria"][metric]["threshold"]
        status = "PASSED" if value >= threshold else "FAILED"
        common = {"judge": "secret/judge", "source": "model", "config_digest": DIGEST}
        return make_score(session_id, metric, value, threshold=threshold, status=status, **common, **changes)

    topic = [*TOPICS][number % 3]
    return [
        of("mood", 1.7 + number % 3),
        of("share", 61.5),
        of("topic", TOPICS[topic], category=topic),
    ]
