"""Tests that a session that kills or blocks its scoring process is rejected and only delays other sessions."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.deadly import deadly_plan
from tests.support.paths import ROOT
from tests.support.scoring_processes import Paying, Started, until_ended
from tests.unit.streams.scoring.isolation.test_process import EXPECTED, session

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.configs.selectors import Configs
from traceweir.streams.scoring.isolation.process import ScoringProcess, ScoringProcessDiedError
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.isolation.quarantine import DeathCounts
from traceweir.streams.scoring.isolation.silence import SilenceLimits
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.judges.verdicts import JudgeUsage, JudgeVerdict
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult

pytestmark = pytest.mark.slow  # each test starts scoring processes


@pytest.fixture(autouse=True)
def _importable_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the scoring process import the test modules, which pytest imports without `sys.path`."""
    monkeypatch.syspath_prepend(str(ROOT))


@asynccontextmanager
async def scoring(
    folder: Path, *suspects: str, kind: type[ScoringSupervisor] = ScoringSupervisor, **options: Any
) -> AsyncIterator[ScoringSupervisor]:
    """Runs a supervisor; in the previous worker a process died during each of these suspect sessions."""
    setup = Setup(deadly_plan(folder / "notes"), "none", 60, 4)
    attempts = DeathCounts(folder / "state" / "attempts.json")
    for name in suspects:
        attempts.add(session(name))
    attempts.save()
    supervisor = kind(setup, attempts, **options)
    await supervisor.start()
    yield supervisor
    await supervisor.stop()


def starts(folder: Path) -> Counter[str]:
    return Counter((folder / "notes").read_text().split())


async def outcomes(supervisor: ScoringSupervisor, names: list[str]) -> dict[str, str]:
    """Returns per session: `scored`, or the reason of the rejection."""

    async def one(name: str) -> str:
        try:
            scored: ScoringResult = await supervisor(session(name))
        except SessionRejected as why:
            return why.reason
        return str(orjson.loads(scored.scores[0])["session_id"] == name and "scored")

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


async def test_a_killing_session_is_poison_after_at_most_three_starts_and_others_are_scored(
    tmp_path: Path,
) -> None:
    names = [*(f"s{number}" for number in range(20)), "kill 1", *(f"t{number}" for number in range(20)), "kill 2"]
    async with scoring(tmp_path) as supervisor:
        found = await outcomes(supervisor, [name.replace(" ", "-") for name in names])
        assert await outcomes(supervisor, ["later"]) == {"later": "scored"}

    killers = {name for name in found if name.startswith("kill")}
    assert {name for name, outcome in found.items() if outcome == "poison"} == killers
    assert all(outcome == "scored" for name, outcome in found.items() if name not in killers)
    assert (
        max(starts(tmp_path)[name] for name in killers) <= 3
    )  # at most one start is not counted, because another session was scored in that process


@pytest.mark.large
async def test_a_poison_session_that_is_submitted_again_gets_all_its_starts_again(tmp_path: Path) -> None:
    async with scoring(tmp_path) as supervisor:
        assert await outcomes(supervisor, ["kill"]) == {"kill": "poison"}
        before = starts(tmp_path)["kill"]
        assert await outcomes(supervisor, ["kill"]) == {"kill": "poison"}
    assert (before, starts(tmp_path)["kill"]) == (2, 4)
    assert orjson.loads((tmp_path / "state" / "attempts.json").read_bytes()) == {}


async def test_a_session_that_kills_its_process_only_once_is_scored(tmp_path: Path) -> None:
    async with scoring(tmp_path) as supervisor:
        assert await outcomes(supervisor, ["once"]) == {"once": "scored"}
    assert starts(tmp_path)["once"] == 2
    assert orjson.loads((tmp_path / "state" / "attempts.json").read_bytes()) == {}


@pytest.mark.large
async def test_a_suspect_is_not_rejected_for_a_crash_caused_by_the_previous_suspect(tmp_path: Path) -> None:
    suspects = ["trap-1", "trap-2", "s", "kill"]
    async with scoring(tmp_path, *suspects) as supervisor:
        found = await outcomes(supervisor, suspects)
    assert found == {"trap-1": "scored", "trap-2": "scored", "s": "scored", "kill": "poison"}
    assert orjson.loads((tmp_path / "state" / "attempts.json").read_bytes()) == {}


@pytest.mark.large
async def test_a_quarantine_process_that_ends_between_two_suspects_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, ended = ScoringProcess.ask, list[ScoringProcess]()

    def once(process: ScoringProcess, *asked: Any) -> asyncio.Future[ScoringResult]:
        answer = ask(process, *asked)
        if not ended:
            ended.append(process)
            answer.add_done_callback(lambda _: process.close())
        return answer

    async with scoring(tmp_path, "a", "b") as supervisor:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        supervisor.failed = failed.set_result
        monkeypatch.setattr(ScoringProcess, "ask", once)
        found = asyncio.create_task(outcomes(supervisor, ["a", "b"]))
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


@pytest.mark.large
async def test_spending_of_a_process_is_reported_to_all_other_and_later_processes(tmp_path: Path) -> None:
    processes = Started(Paying)
    async with scoring(tmp_path, "wait", start=processes) as supervisor:
        suspect = asyncio.create_task(supervisor(session("wait")))
        await started(tmp_path, "wait")
        await supervisor(session("s"))
        main, quarantine = paying(processes)
        assert (main.told, quarantine.told) == ([], [Paid(1, main.pid, 0.0)])
        (tmp_path / "go").touch()
        await suspect
        assert (main.told, len(quarantine.told)) == ([Paid(1, quarantine.pid, 0.0)], 1)
        os.kill(main.pid, signal.SIGKILL)
        await until_ended(main)
        await supervisor(session("t"))
        assert sum(paid.tokens for paid in paying(processes)[-1].told) == main.pid + quarantine.pid


@pytest.mark.large
async def test_spending_on_a_cancelled_session_is_counted(tmp_path: Path) -> None:
    processes = Started(Paying)
    async with scoring(tmp_path, start=processes) as supervisor:
        left = asyncio.create_task(supervisor(session("wait")))
        await started(tmp_path, "wait")
        left.cancel()
        await asyncio.wait({left})
        (tmp_path / "go").touch()
        (main,) = paying(processes)
        while main.busy:  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.01)
        os.kill(main.pid, signal.SIGKILL)
        await until_ended(main)
        await supervisor(session("s"))
        _, successor = paying(processes)
        assert (main.told, successor.told) == ([], [Paid(1, main.pid, 0.0)])


@pytest.mark.large
async def test_concurrent_copies_of_a_session_share_its_starts(tmp_path: Path) -> None:
    async def each(supervisor: ScoringSupervisor, name: str) -> list[str]:
        found = await asyncio.gather(*(outcomes(supervisor, [name]) for _ in range(4)))
        return [outcome for one in found for outcome in one.values()]

    async with scoring(tmp_path) as supervisor:  # such copies exist after a partition has moved away and back
        assert await each(supervisor, "kill") == 4 * ["poison"]
        assert await each(supervisor, "once") == 4 * ["scored"]
    assert (starts(tmp_path)["kill"], starts(tmp_path)["once"]) == (2, 2)


class Held(ScoringSupervisor):
    """Scores when it is told to; a session that knows no verdict asks a question."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.known: list[Sequence[JudgeVerdict]] = []
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def _scored(self, raw: bytes, known: Sequence[JudgeVerdict], attempt: int, configs: Configs) -> ScoringResult:
        self.known.append(known)
        self.begun.set()
        await self.released.wait()
        learned = [] if known else [JudgeVerdict(b"question", 2, "safe")]
        return ScoringResult(0, 0, attempt, 0, [], [], {}, JudgeUsage(learned))


@pytest.mark.large
async def test_a_scoring_of_a_former_owner_is_taken_only_if_the_session_knows_no_other_verdict(tmp_path: Path) -> None:
    other, same = [JudgeVerdict(b"question", 1, "unsafe")], [JudgeVerdict(b"question", 1, "safe")]
    async with scoring(tmp_path, kind=Held) as supervisor:
        assert isinstance(supervisor, Held)
        former = asyncio.create_task(supervisor(b"s"))
        await supervisor.begun.wait()
        later = [asyncio.create_task(supervisor(b"s", known)) for known in (same, other)]
        await asyncio.sleep(0)  # both wait for the former one now
        supervisor.released.set()
        found = await asyncio.gather(former, *later)
        assert supervisor.known == [(), other]
    assert found[1] is found[0]
    assert found[2] is not found[0]


@pytest.mark.large
async def test_concurrent_attempts_at_a_session_are_distinguished_also_in_quarantine(tmp_path: Path) -> None:
    for suspects in ([], ["s"]):
        async with scoring(tmp_path, *suspects) as supervisor:
            found = await asyncio.gather(*(supervisor(session("s"), (), attempt) for attempt in (0, 1)))
            assert [each.attempt for each in found] == [0, 1]


@pytest.mark.large
async def test_a_scorer_that_blocks_the_interpreter_is_killed_and_its_session_is_poison(tmp_path: Path) -> None:
    async with scoring(tmp_path, limits=SilenceLimits(computing_s=1.5)) as supervisor:
        found = await outcomes(supervisor, ["a", "hold", "b"])
    assert found == {"a": "scored", "hold": "poison", "b": "scored"}


@pytest.mark.large
async def test_a_child_process_that_outlives_the_scoring_process_does_not_hide_its_death(tmp_path: Path) -> None:
    async with scoring(tmp_path, limits=SilenceLimits(computing_s=1.5)) as supervisor:
        found = await outcomes(supervisor, ["a", "fork", "b"])
    assert found == {"a": "scored", "fork": "poison", "b": "scored"}


@pytest.mark.large
async def test_a_reference_applies_in_every_process(tmp_path: Path) -> None:
    setup = Setup(read_plan({"criteria": {"response_match_score": 0.5}}), "none", 60, 4)
    processes, attempts = Started(), DeathCounts(tmp_path / "attempts.json")
    attempts.add(session("suspect"))
    attempts.save()
    supervisor = ScoringSupervisor(setup, attempts, start=processes)
    supervisor.put("order", EXPECTED)
    await supervisor.start()
    os.kill(processes[0].pid, signal.SIGKILL)
    await until_ended(processes[0])
    for name in ("suspect", "other"):
        values = [orjson.loads(result)["value"] for result in (await supervisor(session(name))).scores]
        assert values == [1.0, 1.0]
    await supervisor.stop()


@pytest.mark.large
async def test_a_process_that_dies_before_it_is_connected_is_replaced(tmp_path: Path) -> None:
    setup = Setup(deadly_plan(tmp_path / "notes"), "none", 60, 4)
    processes = Started()
    supervisor = ScoringSupervisor(setup, DeathCounts(tmp_path / "attempts.json"), start=processes)
    os.kill(processes[0].pid, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, processes[0].pid, os.WEXITED | os.WNOWAIT)
    await supervisor.start()
    assert await outcomes(supervisor, ["s"]) == {"s": "scored"}
    await supervisor.stop()


@pytest.mark.large
async def test_a_process_that_freezes_during_its_start_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    processes = Started()
    async with scoring(tmp_path, start=processes) as supervisor:
        monkeypatch.setattr("traceweir.streams.scoring.isolation.process.SILENT_START_S", 8)
        frozen: list[int] = []

        def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
            process: subprocess.Popen[bytes] = popen(*arguments, **options)
            if not frozen:
                frozen.append(process.pid)
                os.kill(process.pid, signal.SIGSTOP)
            return process

        popen = subprocess.Popen
        monkeypatch.setattr("traceweir.streams.scoring.isolation.process.subprocess.Popen", start)
        os.kill(processes[0].pid, signal.SIGKILL)
        await until_ended(processes[0])
        assert await outcomes(supervisor, ["s"]) == {"s": "scored"}
    assert "the scoring process sent nothing for 8 s before it was ready; the start is repeated" in caplog.text
    with pytest.raises(ProcessLookupError):
        os.kill(frozen[0], 0)


@pytest.mark.large
async def test_the_attempts_of_the_previous_worker_count(tmp_path: Path) -> None:
    async with scoring(tmp_path, "s", "s") as supervisor:
        assert await outcomes(supervisor, ["s", "t"]) == {"s": "poison", "t": "scored"}
    assert "s" not in starts(tmp_path)


async def test_unreadable_attempts_are_counted_from_zero(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "attempts.json").write_text("[1]")
    async with scoring(tmp_path) as supervisor:
        assert await outcomes(supervisor, ["s"]) == {"s": "scored"}
    assert "attempts.json cannot be read, so the counts of deaths start at 0" in caplog.text


async def test_the_worker_fails_when_no_replacement_process_can_start(tmp_path: Path) -> None:
    failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    processes = Started()

    def one_only(setup: Setup) -> ScoringProcess:
        if processes:
            raise ScoringProcessDiedError("the scoring process ended before it was ready")
        return processes(setup)

    async with scoring(tmp_path, start=one_only) as supervisor:
        supervisor.failed = lambda error: None if failure.done() else failure.set_result(error)
        waiting = asyncio.create_task(supervisor(session("kill")))
        assert "before it was ready" in str(await failure)
        waiting.cancel()
