"""A session that kills or holds its scoring process costs itself, and no other session anything but time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.deadly import deadly_plan
from tests.support.paths import ROOT
from tests.support.scoring_processes import Paying, Started, until_ended
from tests.unit.streams.scoring.test_process import EXPECTED, session

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.judges.budget import Paid
from traceweir.streams.scoring.process import ScoringProcess, ScoringProcessDiedError
from traceweir.streams.scoring.protocol import Setup
from traceweir.streams.scoring.quarantine import DeathCounts
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.scoring.supervisor import ScoringSupervisor
from traceweir.streams.stages.errors import SessionRejected

pytestmark = pytest.mark.slow  # each test starts scoring processes


@pytest.fixture(autouse=True)
def _found_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scoring process finds what this one finds, by its path; pytest finds these modules without."""
    monkeypatch.syspath_prepend(str(ROOT))


@asynccontextmanager
async def scoring(folder: Path, *suspects: str, **options: Any) -> AsyncIterator[ScoringSupervisor]:
    """Scoring; at each of these sessions a process of the worker before died."""
    setup = Setup(deadly_plan(folder / "notes"), "none", 60, 4)
    attempts = DeathCounts(folder / "state" / "attempts.json")
    for name in suspects:
        attempts.add(session(name))
    attempts.save()
    apart = ScoringSupervisor(setup, folder / "state" / "attempts.json", **options)
    await apart.start()
    yield apart
    await apart.stop()


def starts(folder: Path) -> Counter[str]:
    return Counter((folder / "notes").read_text().split())


async def outcomes(apart: ScoringSupervisor, names: list[str]) -> dict[str, str]:
    """By session: `scored`, or why not."""

    async def one(name: str) -> str:
        try:
            scored: ScoringResult = await apart(session(name))
        except SessionRejected as why:
            return why.reason
        return str(orjson.loads(scored.scores[0])["session_id"] == name and "scored")

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


async def test_the_session_that_kills_is_poison_at_its_third_start_and_its_neighbours_are_scored(
    tmp_path: Path,
) -> None:
    names = [*(f"s{number}" for number in range(20)), "kill 1", *(f"t{number}" for number in range(20)), "kill 2"]
    async with scoring(tmp_path) as apart:
        found = await outcomes(apart, [name.replace(" ", "-") for name in names])
        assert await outcomes(apart, ["later"]) == {"later": "scored"}

    killers = {name for name in found if name.startswith("kill")}
    assert {name for name, outcome in found.items() if outcome == "poison"} == killers
    assert all(outcome == "scored" for name, outcome in found.items() if name not in killers)
    assert (
        max(starts(tmp_path)[name] for name in killers) <= 3
    )  # one at most where another was served, which does not count


async def test_a_poison_session_that_comes_again_has_all_its_starts_again(tmp_path: Path) -> None:
    async with scoring(tmp_path) as apart:
        assert await outcomes(apart, ["kill"]) == {"kill": "poison"}
        before = starts(tmp_path)["kill"]
        assert await outcomes(apart, ["kill"]) == {"kill": "poison"}
    assert (before, starts(tmp_path)["kill"]) == (2, 4)
    assert orjson.loads((tmp_path / "state" / "attempts.json").read_bytes()) == {}


async def test_a_session_that_was_only_near_is_scored(tmp_path: Path) -> None:
    async with scoring(tmp_path) as apart:
        assert await outcomes(apart, ["once"]) == {"once": "scored"}
    assert starts(tmp_path)["once"] == 2
    assert orjson.loads((tmp_path / "state" / "attempts.json").read_bytes()) == {}


async def test_a_suspect_does_not_answer_for_what_the_one_before_it_left_behind(tmp_path: Path) -> None:
    suspects = ["trap-1", "trap-2", "s", "kill"]
    async with scoring(tmp_path, *suspects) as apart:
        found = await outcomes(apart, suspects)
    assert found == {"trap-1": "scored", "trap-2": "scored", "s": "scored", "kill": "poison"}
    assert orjson.loads((tmp_path / "state" / "attempts.json").read_bytes()) == {}


async def test_a_process_that_ends_between_two_suspects_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, ended = ScoringProcess.ask, list[ScoringProcess]()

    def once(process: ScoringProcess, *asked: Any) -> asyncio.Future[ScoringResult]:
        answer = ask(process, *asked)
        if not ended:
            ended.append(process)
            answer.add_done_callback(lambda _: process.close())
        return answer

    async with scoring(tmp_path, "a", "b") as apart:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        apart.failed = failed.set_result
        monkeypatch.setattr(ScoringProcess, "ask", once)
        found = asyncio.create_task(outcomes(apart, ["a", "b"]))
        either: set[asyncio.Future[Any]] = {found, failed}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        assert not failed.done()
        assert await found == {"a": "scored", "b": "scored"}
    assert starts(tmp_path) == {"a": 1, "b": 1}


async def started(folder: Path, name: str) -> None:
    while not (folder / "notes").exists() or name not in starts(folder):  # noqa: ASYNC110  # by another process
        await asyncio.sleep(0.01)


def paying(processes: Started) -> list[Paying]:
    return [process for process in processes if isinstance(process, Paying)]


async def test_what_one_process_pays_every_other_is_told_those_to_come_included_and_it_is_not(tmp_path: Path) -> None:
    processes = Started(Paying)
    async with scoring(tmp_path, "wait", start=processes) as apart:
        suspect = asyncio.create_task(apart(session("wait")))
        await started(tmp_path, "wait")
        await apart(session("s"))
        main, quarantine = paying(processes)
        assert (main.told, quarantine.told) == ([], [Paid(1, main.pid, 0.0)])
        (tmp_path / "go").touch()
        await suspect
        assert (main.told, len(quarantine.told)) == ([Paid(1, quarantine.pid, 0.0)], 1)
        os.kill(main.pid, signal.SIGKILL)
        await until_ended(main)
        await apart(session("t"))
        assert sum(paid.tokens for paid in paying(processes)[-1].told) == main.pid + quarantine.pid


async def test_what_was_paid_counts_though_nobody_waits_for_the_session_any_more(tmp_path: Path) -> None:
    processes = Started(Paying)
    async with scoring(tmp_path, start=processes) as apart:
        left = asyncio.create_task(apart(session("wait")))
        await started(tmp_path, "wait")
        left.cancel()
        await asyncio.wait({left})
        (tmp_path / "go").touch()
        (main,) = paying(processes)
        while main.busy:  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.01)
        os.kill(main.pid, signal.SIGKILL)
        await until_ended(main)
        await apart(session("s"))
        _, successor = paying(processes)
        assert (main.told, successor.told) == ([], [Paid(1, main.pid, 0.0)])


async def test_copies_of_one_session_are_one_session(tmp_path: Path) -> None:
    async def each(apart: ScoringSupervisor, name: str) -> list[str]:
        found = await asyncio.gather(*(outcomes(apart, [name]) for _ in range(4)))
        return [outcome for one in found for outcome in one.values()]

    async with scoring(tmp_path) as apart:  # as when a partition changes hands and comes back
        assert await each(apart, "kill") == 4 * ["poison"]
        assert await each(apart, "once") == 4 * ["scored"]
    assert (starts(tmp_path)["kill"], starts(tmp_path)["once"]) == (2, 2)


async def test_two_attempts_at_a_session_are_told_apart_also_where_suspects_are_tried(tmp_path: Path) -> None:
    for suspects in ([], ["s"]):
        async with scoring(tmp_path, *suspects) as apart:
            found = await asyncio.gather(*(apart(session("s"), (), attempt) for attempt in (0, 1)))
            assert [each.attempt for each in found] == [0, 1]


async def test_a_scorer_that_gives_way_to_nobody_is_ended(tmp_path: Path) -> None:
    async with scoring(tmp_path, silent_s=3) as apart:
        found = await outcomes(apart, ["a", "hold", "b"])
    assert found == {"a": "scored", "hold": "poison", "b": "scored"}


async def test_a_process_that_the_scorer_left_behind_hides_no_death(tmp_path: Path) -> None:
    async with scoring(tmp_path, silent_s=3) as apart:
        found = await outcomes(apart, ["a", "fork", "b"])
    assert found == {"a": "scored", "fork": "poison", "b": "scored"}


async def test_a_reference_counts_in_every_process(tmp_path: Path) -> None:
    setup = Setup(read_plan({"criteria": {"response_match_score": 0.5}}), "none", 60, 4)
    processes, attempts = Started(), DeathCounts(tmp_path / "attempts.json")
    attempts.add(session("suspect"))
    attempts.save()
    apart = ScoringSupervisor(setup, tmp_path / "attempts.json", start=processes)
    apart.put("order", EXPECTED)
    await apart.start()
    os.kill(processes[0].pid, signal.SIGKILL)
    await until_ended(processes[0])
    for name in ("suspect", "other"):
        values = [orjson.loads(result)["value"] for result in (await apart(session(name))).scores]
        assert values == [1.0, 1.0]
    await apart.stop()


async def test_a_process_that_dies_before_it_is_connected_is_replaced(tmp_path: Path) -> None:
    setup = Setup(deadly_plan(tmp_path / "notes"), "none", 60, 4)
    processes = Started()
    apart = ScoringSupervisor(setup, tmp_path / "attempts.json", start=processes)
    os.kill(processes[0].pid, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, processes[0].pid, os.WEXITED | os.WNOWAIT)
    await apart.start()
    assert await outcomes(apart, ["s"]) == {"s": "scored"}
    await apart.stop()


async def test_a_process_that_freezes_while_it_starts_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    processes = Started()
    async with scoring(tmp_path, start=processes) as apart:
        monkeypatch.setattr("traceweir.streams.scoring.process.SILENT_START_S", 8)
        frozen: list[int] = []

        def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
            process: subprocess.Popen[bytes] = popen(*arguments, **options)
            if not frozen:
                frozen.append(process.pid)
                os.kill(process.pid, signal.SIGSTOP)
            return process

        popen = subprocess.Popen
        monkeypatch.setattr("traceweir.streams.scoring.process.subprocess.Popen", start)
        os.kill(processes[0].pid, signal.SIGKILL)
        await until_ended(processes[0])
        assert await outcomes(apart, ["s"]) == {"s": "scored"}
    assert "the scoring process said nothing for 8 s before it was ready; it is started again" in caplog.text
    with pytest.raises(ProcessLookupError):
        os.kill(frozen[0], 0)


async def test_the_attempts_of_the_worker_before_count(tmp_path: Path) -> None:
    async with scoring(tmp_path, "s", "s") as apart:
        assert await outcomes(apart, ["s", "t"]) == {"s": "poison", "t": "scored"}
    assert "s" not in starts(tmp_path)


async def test_attempts_that_cannot_be_read_are_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "attempts.json").write_text("[1]")
    async with scoring(tmp_path) as apart:
        assert await outcomes(apart, ["s"]) == {"s": "scored"}
    assert "attempts.json cannot be read, so the counts start again" in caplog.text


async def test_when_no_other_process_can_be_had_the_worker_is_told(tmp_path: Path) -> None:
    told: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    processes = Started()

    def one_only(setup: Setup) -> ScoringProcess:
        if processes:
            raise ScoringProcessDiedError("the scoring process ended before it was ready")
        return processes(setup)

    async with scoring(tmp_path, start=one_only) as apart:
        apart.failed = lambda error: None if told.done() else told.set_result(error)
        waiting = asyncio.create_task(apart(session("kill")))
        assert "before it was ready" in str(await told)
        waiting.cancel()
