"""Several scoring processes divide the sessions of a worker; one that dies delays only the sessions that it had."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue
from tests.support.deadly import deadly_plan
from tests.support.paths import ROOT
from tests.unit.streams.scoring.isolation.test_process import EXPECTED, session

from traceweir.scorers.evaluation.metric import canonical
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.processes import ScoringProcesses, number_of_processes
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.sessions.errors import SessionRejected

PLAIN: dict[str, JsonValue] = {"criteria": {"response_match_score": 0.5}}
JUDGED: dict[str, JsonValue] = {
    "criteria": {"safety_v1": {"threshold": 1.0, "judge_model_options": {"judge_model": "openai/local"}}}
}


@pytest.fixture(autouse=True)
def _importable_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the scoring processes import the test modules, which pytest imports without `sys.path`."""
    monkeypatch.syspath_prepend(str(ROOT))


def setup(plan: Plan, embedder: str = "none", concurrency: int = 4) -> Setup:
    return Setup(plan, embedder, 60, concurrency)


async def outcome(processes: ScoringProcesses, name: str) -> str:
    try:
        scored = await processes(session(name))
    except SessionRejected as why:
        return why.reason
    return str(orjson.loads(scored.scores[0])["session_id"] == name and "scored")


@pytest.mark.parametrize(
    ("wanted", "config", "embedder", "cores", "count"),
    [
        (None, PLAIN, "none", 1, 1),
        (None, PLAIN, "none", 2, 1),
        (None, PLAIN, "hashing", 4, 2),
        (None, PLAIN, "none", 64, 4),
        (7, PLAIN, "none", 2, 7),
        (7, JUDGED, "none", 64, 1),
        (None, JUDGED, "none", 64, 1),
        (7, PLAIN, "models/mine", 64, 1),
    ],
)
def test_the_number_follows_the_cores_unless_one_process_is_right(
    wanted: int | None, config: dict[str, JsonValue], embedder: str, cores: int, count: int
) -> None:
    assert number_of_processes(wanted, setup(read_plan(config), embedder), cores) == count


def test_a_wanted_number_that_does_not_apply_is_named_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        number_of_processes(3, setup(read_plan(JUDGED)), 8)
    assert "TRACEWEIR_SCORING_PROCESSES is 3, but one process scores: criteria ask a judge" in caplog.text


@pytest.mark.slow
async def test_all_processes_score_and_only_sessions_of_a_dying_one_are_tried_alone(tmp_path: Path) -> None:
    processes = ScoringProcesses(
        setup(deadly_plan(tmp_path / "notes")), tmp_path / "attempts.json", 2, launched=[LaunchedProcess()]
    )
    for each in processes.supervisors:
        await each.start()
    try:
        names = [*(f"s{number}" for number in range(20)), "kill", *(f"t{number}" for number in range(20))]
        found = dict(zip(names, await asyncio.gather(*(outcome(processes, name) for name in names)), strict=True))
        assert found == {name: "poison" if name == "kill" else "scored" for name in names}
        assert processes.restarts == 1
        assert len({*processes.pids}) == 2
        assert (processes.in_flight, processes.suspects) == (0, 0)
    finally:
        for each in processes.supervisors:
            await each.stop()
    assert orjson.loads((tmp_path / "attempts.json").read_bytes()) == {}


@pytest.mark.slow
async def test_sessions_are_divided_and_equal_ones_are_scored_once(tmp_path: Path) -> None:
    processes = ScoringProcesses(setup(read_plan(PLAIN)), tmp_path / "attempts.json", 2)
    processes.put("order", EXPECTED)
    for each in processes.supervisors:
        await each.start()
    try:
        asked = [asyncio.ensure_future(processes(session(name))) for name in ("a", "b", "c", "d", "a", "a")]
        await asyncio.sleep(0)
        assert [each.in_flight for each in processes.supervisors] == [2, 2]
        results = await asyncio.gather(*asked)
        assert results[0] is results[4] is results[5]
        assert {orjson.loads(result.scores[0])["value"] for result in results} == {
            1.0
        }  # each process has the reference
    finally:
        for each in processes.supervisors:
            await each.stop()


@pytest.mark.slow
async def test_the_first_process_scores_all_sessions_under_a_config_that_asks_judges(tmp_path: Path) -> None:
    processes = ScoringProcesses(setup(read_plan(PLAIN)), tmp_path / "attempts.json", 2)
    document = canonical({"criteria": {"response_match_score": 0.9}}).encode()
    configs, documents = (("*", "pushed"),), {"pushed": document}
    for each in processes.supervisors:
        await each.start()
    try:
        for judged, divided in ((False, [2, 2]), (True, [4, 0])):
            score = processes.under(configs, documents, judged=judged)
            asked = [asyncio.ensure_future(score(session(name))) for name in "abcd"]
            await asyncio.sleep(0)
            assert [each.in_flight for each in processes.supervisors] == divided
            thresholds = {orjson.loads(result.scores[0])["threshold"] for result in await asyncio.gather(*asked)}
            assert thresholds == {0.9}
    finally:
        for each in processes.supervisors:
            await each.stop()
