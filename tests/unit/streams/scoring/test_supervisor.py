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
from msgspec.structs import replace
from tests.support.deadly import deadly_plan
from tests.support.paths import ROOT
from tests.unit.streams.scoring.test_process import EXPECTED, session

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.judges.budget import Paid
from traceweir.streams.judges.verdicts import JudgeUsage
from traceweir.streams.scoring.process import ScoringProcess, ScoringProcessDiedError
from traceweir.streams.scoring.protocol import Answer, Setup
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.scoring.supervisor import ScoringSupervisor
from traceweir.streams.stages.errors import SessionRejected

pytestmark = pytest.mark.slow  # each test starts scoring processes


@pytest.fixture(autouse=True)
def _found_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scoring process finds what this one finds, by its path; pytest finds these modules without."""
    monkeypatch.syspath_prepend(str(ROOT))


@asynccontextmanager
async def scoring(folder: Path, **options: float) -> AsyncIterator[ScoringSupervisor]:
    setup = Setup(deadly_plan(folder / "notes"), "none", 60, 4)
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
    async with scoring(tmp_path) as apart:
        suspects = ["trap-1", "trap-2", "s", "kill"]
        for name in suspects:
            apart._attempts.add(session(name))
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

    async with scoring(tmp_path) as apart:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        apart.failed = failed.set_result
        monkeypatch.setattr(ScoringProcess, "ask", once)
        for name in ("a", "b"):
            apart._attempts.add(session(name))
        found = asyncio.create_task(outcomes(apart, ["a", "b"]))
        either: set[asyncio.Future[Any]] = {found, failed}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        assert not failed.done()
        assert await found == {"a": "scored", "b": "scored"}
    assert starts(tmp_path) == {"a": 1, "b": 1}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Paid]]:
    """What processes are told that others paid, each by its id; whatever they answer, they say that they paid their id in tokens."""
    answered, record_spend, told = ScoringProcess._answered, ScoringProcess.record_spend, list[tuple[int, Paid]]()

    def paying(process: ScoringProcess, answer: Answer) -> None:
        usage = JudgeUsage(paid=[Paid(1, process.pid, 0.0)])
        answered(process, replace(answer, result=replace(answer.result, judged=usage)))

    def noted(process: ScoringProcess, paid: Paid) -> None:
        told.append((process.pid, paid))
        record_spend(process, paid)

    monkeypatch.setattr(ScoringProcess, "_answered", paying)
    monkeypatch.setattr(ScoringProcess, "record_spend", noted)
    return told


async def started(folder: Path, name: str) -> None:
    while not (folder / "notes").exists() or name not in starts(folder):  # noqa: ASYNC110  # by another process
        await asyncio.sleep(0.01)


async def test_what_one_process_pays_every_other_is_told_and_it_is_not(
    tmp_path: Path, told: list[tuple[int, Paid]]
) -> None:
    async with scoring(tmp_path) as apart:
        apart._attempts.add(session("wait"))
        suspect = asyncio.create_task(apart(session("wait")))
        await started(tmp_path, "wait")
        main = apart._process.pid
        assert [paid.tokens for paid in (await apart(session("s"))).judged.paid] == [main]
        ((quarantine_process, paid),) = told
        assert quarantine_process != main
        assert paid == Paid(1, main, 0.0)
        (tmp_path / "go").touch()
        await suspect
        assert told[1:] == [(main, Paid(1, quarantine_process, 0.0))]
        assert apart._spending.in_day.tokens == main + quarantine_process


async def test_what_was_paid_counts_though_nobody_waits_for_the_session_any_more(
    tmp_path: Path, told: list[tuple[int, Paid]]
) -> None:
    async with scoring(tmp_path) as apart:
        left = asyncio.create_task(apart(session("wait")))
        await started(tmp_path, "wait")
        left.cancel()
        await asyncio.wait({left})
        (tmp_path / "go").touch()
        while apart._process.busy:  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.01)
        assert apart._spending.in_day.tokens == apart._process.pid
        assert told == []


async def test_copies_of_one_session_are_one_session(tmp_path: Path) -> None:
    async def each(apart: ScoringSupervisor, name: str) -> list[str]:
        found = await asyncio.gather(*(outcomes(apart, [name]) for _ in range(4)))
        return [outcome for one in found for outcome in one.values()]

    async with scoring(tmp_path) as apart:  # as when a partition changes hands and comes back
        assert await each(apart, "kill") == 4 * ["poison"]
        assert await each(apart, "once") == 4 * ["scored"]
    assert (starts(tmp_path)["kill"], starts(tmp_path)["once"]) == (2, 2)


async def test_two_attempts_at_a_session_are_told_apart_also_where_suspects_are_tried(tmp_path: Path) -> None:
    async with scoring(tmp_path) as apart:
        for suspect in (False, True):
            if suspect:
                apart._attempts.add(session("s"))
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
    apart = ScoringSupervisor(setup, tmp_path / "attempts.json")
    apart.put("order", EXPECTED)
    await apart.start()
    os.kill(apart._process.pid, signal.SIGKILL)
    apart._attempts.add(session("suspect"))
    for name in ("suspect", "other"):
        values = [orjson.loads(result)["value"] for result in (await apart(session(name))).scores]
        assert values == [1.0, 1.0]
    await apart.stop()


async def test_a_process_that_dies_before_it_is_connected_is_replaced(tmp_path: Path) -> None:
    setup = Setup(deadly_plan(tmp_path / "notes"), "none", 60, 4)
    apart = ScoringSupervisor(setup, tmp_path / "attempts.json")
    os.kill(apart._process.pid, signal.SIGKILL)
    apart._process._process.wait()
    await apart.start()
    assert await outcomes(apart, ["s"]) == {"s": "scored"}
    await apart.stop()


async def test_a_process_that_freezes_while_it_starts_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with scoring(tmp_path) as apart:
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
        os.kill(apart._process.pid, signal.SIGKILL)
        while not (frozen and apart._ready.is_set()):  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.01)
        assert await outcomes(apart, ["s"]) == {"s": "scored"}
    assert "the scoring process said nothing for 8 s before it was ready; it is started again" in caplog.text
    with pytest.raises(ProcessLookupError):
        os.kill(frozen[0], 0)


async def test_attempts_outlive_the_worker(tmp_path: Path) -> None:
    async with scoring(tmp_path) as apart:
        apart._attempts.add(session("s"))
        apart._attempts.add(session("s"))
        apart._attempts.save()
    async with scoring(tmp_path) as apart:
        assert await outcomes(apart, ["s", "t"]) == {"s": "poison", "t": "scored"}
    assert "s" not in starts(tmp_path)


async def test_attempts_that_cannot_be_read_are_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "attempts.json").write_text("[1]")
    async with scoring(tmp_path) as apart:
        assert await outcomes(apart, ["s"]) == {"s": "scored"}
    assert "attempts.json cannot be read, so the counts start again" in caplog.text


async def test_when_no_other_process_can_be_had_the_worker_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    def none_more(setup: Setup) -> None:
        raise ScoringProcessDiedError("the scoring process ended before it was ready")

    async with scoring(tmp_path) as apart:
        apart.failed = lambda error: None if told.done() else told.set_result(error)
        monkeypatch.setattr("traceweir.streams.scoring.supervisor.ScoringProcess", none_more)
        waiting = asyncio.create_task(apart(session("kill")))
        assert "before it was ready" in str(await told)
        waiting.cancel()
