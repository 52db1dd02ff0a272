"""Tests that one scoring process scores by several configs, and that the process after it knows them too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support import judge_retries
from tests.support.scoring_processes import Started, until_ended

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.configs.selectors import Configs
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.isolation.quarantine import DeathCounts
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.testing import event

pytestmark = pytest.mark.slow  # starts scoring processes

FILE: dict[str, Any] = {"criteria": {"latency": {}}}
ONE: dict[str, Any] = {"criteria": {"response_match_score": 0.5}, "gate": {"threshold": 0.9}}
TWO: dict[str, Any] = {"criteria": {"response_match_score": 0.6}}
JUDGED: dict[str, Any] = {
    "criteria": {"safety_v1": {"threshold": 0.5, "judge_model_options": {"judge_model": "openai/stub"}}}
}
DOCUMENTS = {"one": orjson.dumps(ONE), "two": orjson.dumps(TWO)}
CONFIGS: Configs = (("*", "one"), ("travel@production", "two"))


def session(name: str, **dimensions: Any) -> bytes:
    return orjson.dumps(judge_retries.session(name, events=[event("model.called", name, event_id="1", **dimensions)]))


def digests(result: ScoringResult) -> set[str]:
    return {orjson.loads(score)["config_digest"] for score in result.scores}


@pytest.mark.large
async def test_each_session_is_scored_by_the_config_that_is_chosen_for_it(tmp_path: Path) -> None:
    started = Started()
    supervisor = ScoringSupervisor(
        Setup(read_plan(FILE), "hashing", 60, 4), DeathCounts(tmp_path / "deaths.json"), start=started
    )
    await supervisor.start()
    try:
        scoring = supervisor.under(CONFIGS, DOCUMENTS)
        travel = session("t", app_name="travel", environment="production")
        assert digests(await supervisor(session("f"))) == {read_plan(FILE).digest}
        assert digests(await scoring(session("s"))) == {read_plan(ONE).digest}
        assert digests(await scoring(travel)) == {read_plan(TWO).digest}
        assert digests(await supervisor(session("s"))) == {read_plan(FILE).digest}

        started[0].kill()
        await until_ended(started[0])

        assert digests(await scoring(travel)) == {read_plan(TWO).digest}
        judged = supervisor.under((("*", "judged"),), {"judged": orjson.dumps(JUDGED)})
        assert digests(await judged(session("s"))) == {read_plan(JUDGED).digest}  # asks nothing: there is no response
        (candidate,) = (await scoring(session("s"))).candidates
        assert orjson.loads(candidate.value)["gate_rules"]["gate"]["threshold"] == 0.9
        (candidate,) = (await supervisor(session("f"))).candidates
        assert "gate_rules" not in orjson.loads(candidate.value)
    finally:
        await supervisor.stop()
