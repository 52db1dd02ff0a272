"""A session has the config of the app and the environment that its scores name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from traceweir.schemas.dimensions import session_dimensions
from traceweir.schemas.session import Session
from traceweir.schemas.turns import turns_of
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.configs.selectors import selector
from traceweir.streams.scoring.sessions.config_scoring import ConfigScoring
from traceweir.streams.testing import event, instant, trace

NAMES = [(app, environment) for app in ("shop", "bank") for environment in (None, "test")]
DOCUMENTS = [json.dumps({"criteria": {}, "gate": {"threshold": (1 + n) / 8}}).encode() for n in range(len(NAMES))]


def started(number: int, **fields: Any) -> dict[str, Any]:
    return event("invocation.started", "s", number, invocation_id=f"i{number}", **fields)


RECORDED = event(
    "invocation.recorded", "s", 3, invocation_id="r", app_name="bank", row={"request": "Hello?", "response": "Hi."}
)
SESSIONS: dict[str, list[dict[str, Any]]] = {
    "one app": [started(1, app_name="shop"), started(2, app_name="shop")],
    "an app that one event names": [started(1, app_name="shop"), started(2, app_name="")],
    "an app and an environment": [started(1, app_name="bank"), started(2, app_name="", environment="test")],
    "another app later": [started(1, app_name="shop"), started(2, app_name="bank")],
    "two environments": [started(1, app_name="shop", environment="live"), started(2, app_name="", environment="test")],
    "an app that only the end names": [started(1, app_name=""), event("session.ended", "s", 2, app_name="shop")],
    "a row": [started(1, app_name="shop"), RECORDED],
    "traces only": [],
}


@pytest.mark.parametrize("events", SESSIONS.values(), ids=[*SESSIONS])
async def test_a_session_has_the_config_of_the_app_and_environment_of_its_scores(events: Sequence[Any]) -> None:
    def by(name: str) -> Any:
        async def measure(*asked: object) -> str:
            return name

        return measure

    def make(plan: Plan) -> Any:
        return by(plan.digest)

    scoring = ConfigScoring(by("file"), make)
    for number, document in enumerate(DOCUMENTS):
        scoring.add(str(number), document)
    configs = tuple(sorted((selector(*name), str(number)) for number, name in enumerate(NAMES)))
    closed = {
        "session_id": "s",
        "segment": 0,
        "revision": 0,
        "closed_because": "idle",
        "first_record_at": instant(0),
        "last_record_at": instant(9),
        "events": events,
        "traces": [trace("t", "s")],
    }
    session = Session.model_validate_json(json.dumps(closed))

    found: Any = await scoring.under(configs)(session, (), 0)

    of_scores = session_dimensions([turn.dimensions for turn in turns_of(session)])
    place = of_scores.app_name, of_scores.environment
    nearest = place if place in NAMES else (place[0], None)
    expected = read_plan(DOCUMENTS[NAMES.index(nearest)]).digest if nearest in NAMES else "file"
    assert found == expected
