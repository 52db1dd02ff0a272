"""A challenger scores in a process of its own: it starts when it is needed, and its deaths are no deaths of the champion's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from mode import Service
from pydantic import SecretStr
from tests.support.deadly import deadly_plan
from tests.support.paths import ROOT
from tests.support.scoring_processes import Started, Told
from tests.unit.streams.scoring.isolation.test_process import EXPECTED, session

from traceweir.scorers.evaluation.plan import Challenger, read_plan
from traceweir.streams.scoring.isolation import challenger_processes, supervisor
from traceweir.streams.scoring.isolation.challenger_processes import ChallengerProcesses
from traceweir.streams.scoring.isolation.process import ScoringProcess, ScoringProcessDiedError
from traceweir.streams.scoring.isolation.processes import ScoringProcesses
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.judges.budget import Paid, Share
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.sessions.errors import ChallengerUnavailable, SessionRejected

SETUP = Setup(read_plan({}), "hashing", 60, 4, access=Access(api_key=SecretStr("k")))


@pytest.fixture(autouse=True)
def _importable_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the scoring processes import the test modules, which pytest imports without `sys.path`."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def started() -> Started:
    return Started(Told)


@pytest.fixture
async def processes(tmp_path: Path, started: Started) -> AsyncIterator[ChallengerProcesses]:
    found = ChallengerProcesses(SETUP, tmp_path, dict, start=started)
    await found.start()
    yield found
    await found.stop()


def challenger(notes: Path, budget_usd: float | None = None) -> Challenger:
    return Challenger("v2", 1.0, budget_usd, deadly_plan(notes), {"notes": str(notes)})


def told(process: ScoringProcess) -> Told:
    assert isinstance(process, Told)
    return process


async def scored(processes: ChallengerProcesses, by: Challenger, name: str) -> str:
    try:
        found = await processes.score(by, session(name))
    except SessionRejected as why:
        return why.reason
    return str(orjson.loads(found.scores[0])["session_id"])


@pytest.mark.slow
async def test_a_process_starts_once_without_an_embedder_and_with_a_lower_priority(
    processes: ChallengerProcesses, started: Started, tmp_path: Path
) -> None:
    by = challenger(tmp_path / "notes")
    assert started == []
    assert await asyncio.gather(*(scored(processes, by, name) for name in ("a", "b"))) == ["a", "b"]
    (process,) = started
    assert process.embedder_id is None
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == os.getpriority(os.PRIO_PROCESS, 0) + 10
    assert list(processes.pids) == [process.pid]


@pytest.mark.slow
@pytest.mark.large
async def test_a_session_that_kills_the_process_is_rejected_and_the_others_are_scored(
    processes: ChallengerProcesses, tmp_path: Path
) -> None:
    by = challenger(tmp_path / "notes")
    assert await asyncio.gather(*(scored(processes, by, name) for name in ("a", "kill", "b"))) == ["a", "poison", "b"]
    assert not (tmp_path / "scoring-attempts.json").exists()


@pytest.mark.slow
async def test_what_is_no_longer_in_effect_ends_and_its_spending_is_remembered(
    processes: ChallengerProcesses, started: Started, tmp_path: Path
) -> None:
    by = challenger(tmp_path / "notes")
    processes.record_spend(by.id, Paid(1, 5, 0.5))
    await scored(processes, by, "a")
    processes.record_spend(by.id, Paid(1, 7, 0.25))
    await processes.keep([by.id])
    assert not started[0].ended
    await processes.keep([])
    assert started[0].ended
    other = challenger(tmp_path / "notes", budget_usd=1.0)
    await scored(processes, other, "b")  # with another budget it is the same challenger
    assert told(started[1]).spending == [Paid(1, 12, 0.75)]


@pytest.mark.slow
@pytest.mark.large
async def test_another_budget_starts_another_process(
    processes: ChallengerProcesses, started: Started, tmp_path: Path
) -> None:
    await scored(processes, challenger(tmp_path / "notes"), "a")
    raised = challenger(tmp_path / "notes", budget_usd=2.0)
    assert await asyncio.gather(*(scored(processes, raised, name) for name in ("b", "c"))) == ["b", "c"]
    assert [process.ended for process in started] == [True, False]


async def test_a_process_that_does_not_start_is_a_problem_until_it_does(tmp_path: Path) -> None:
    def start(setup: Setup) -> ScoringProcess:
        raise ScoringProcessDiedError("it died at its start")

    processes = ChallengerProcesses(SETUP, tmp_path, dict, start=start)
    by = challenger(tmp_path / "notes")
    with pytest.raises(ChallengerUnavailable):
        await processes.score(by, session("a"))
    (problem,) = processes.problems
    assert "challenger v2: its scoring process does not run" in problem
    await processes.keep([])
    assert processes.problems == []


async def test_whatever_fails_before_the_start_is_a_problem_too(processes: ChallengerProcesses, tmp_path: Path) -> None:
    by = challenger(tmp_path / "notes")
    (tmp_path / f"challenger-attempts-{by.id[:16]}.json").mkdir()
    assert processes.available(by)
    with pytest.raises(ChallengerUnavailable):
        await processes.score(by, session("a"))
    assert len(processes.problems) == 1
    assert not processes.available(by)
    assert processes.available(challenger(tmp_path / "notes", budget_usd=2.0))


@pytest.mark.slow
@pytest.mark.large
async def test_a_supervisor_that_crashes_ends_no_worker_and_is_replaced(
    tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Service()
    processes = ChallengerProcesses(SETUP, tmp_path, dict, start=started, beacon=worker.beacon)
    by = challenger(tmp_path / "notes")
    try:
        assert await scored(processes, by, "a") == "a"
        with monkeypatch.context() as broken:
            broken.setattr(supervisor, "LOOK_EVERY_S", 0)
            broken.setattr(Told, "kill_if_stuck", lambda self, limits: 1 / 0)
            while not processes.problems:
                await processes.keep([by.id])
                await asyncio.sleep(0)
        assert not worker.crashed
        monkeypatch.setattr(challenger_processes, "RETRY_S", 0.0)
        await processes.keep([by.id])
        assert await scored(processes, by, "b") == "b"
        assert not worker.crashed
    finally:
        await processes.on_stop()


@pytest.mark.slow
@pytest.mark.large
async def test_a_process_that_did_not_start_is_started_again_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Started
) -> None:
    errors = [ScoringProcessDiedError("it died at its start")]

    def start(setup: Setup) -> ScoringProcess:
        if errors:
            raise errors.pop()
        return started(setup)

    processes = ChallengerProcesses(SETUP, tmp_path, dict, start=start)
    by = challenger(tmp_path / "notes")
    try:
        for retry_s, problems in ((3600.0, 1), (0.0, 0)):
            with pytest.raises(ChallengerUnavailable):
                await processes.score(by, session("a"))
            monkeypatch.setattr(challenger_processes, "RETRY_S", retry_s)
            await processes.keep([by.id])
            assert len(processes.problems) == problems
        assert await scored(processes, by, "a") == "a"
        await processes.keep([by.id])  # a process that runs is not started again
        assert await scored(processes, by, "b") == "b"
    finally:
        await processes.on_stop()
    assert len(started) == 1


@pytest.mark.slow
@pytest.mark.large
async def test_spending_that_moves_away_is_subtracted(
    processes: ChallengerProcesses, started: Started, tmp_path: Path
) -> None:
    by = challenger(tmp_path / "notes")
    processes.record_spend(by.id, Paid(1, 10, 1.0))
    processes.record_spend(by.id, Paid(1, -10, -1.0))
    await scored(processes, by, "a")
    assert told(started[0]).spending == []


@pytest.mark.slow
@pytest.mark.large
async def test_references_and_the_share_of_the_budget_reach_a_challenger_before_and_after_its_start(
    tmp_path: Path, started: Started
) -> None:
    champions = ScoringProcesses(SETUP, tmp_path / "attempts.json")
    processes = champions.challengers = ChallengerProcesses(SETUP, tmp_path, champions.references, start=started)
    await processes.start()
    document = EXPECTED.model_dump_json(by_alias=True, exclude_unset=True).encode()
    try:
        champions.put("order", EXPECTED)
        champions.set_budget_share(Share(1, 4))
        await scored(processes, challenger(tmp_path / "notes"), "a")
        process = told(started[0])
        assert (process.references, process.share) == ({"order": document}, Share(1, 4))
        champions.put("order", None)
        champions.put("later", EXPECTED)
        champions.set_budget_share(Share(3, 4))
        assert (process.references, process.share) == ({"order": None, "later": document}, Share(3, 4))
    finally:
        await processes.stop()
        champions.supervisors[0].close()
