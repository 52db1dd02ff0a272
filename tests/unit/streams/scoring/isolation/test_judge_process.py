"""Tests judges that the scoring process asks for a worker, and judges that `traceweir score` asks."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import SecretStr
from tests.support.judged import KEY, judged_plan
from tests.support.openai_server import Say, openai_server, openai_server_apart, refusing_address
from tests.support.paths import ROOT
from tests.support.scoring import install
from tests.support.scoring_processes import Started, until_ended
from tests.unit.streams.scoring.isolation.test_process import session

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.main import main
from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.isolation.quarantine import DeathCounts
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.scoring.judges.budget import Paid, Share
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.litellm_setup import INSTALL
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.worker.run import run_worker

# Most tests start a scoring process that loads litellm, and some commands load it here.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]


@pytest.fixture(autouse=True)
def _importable_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def setup(plan: Plan, url: str) -> Setup:
    return Setup(plan, "none", 60, 4, Access(url, SecretStr(KEY)), 60)


def verdict(scored: ScoringResult) -> tuple[Any, ...]:
    result = orjson.loads(scored.scores[0])
    return result["value"], result["not_evaluated_because"], result["cost"]["cached"]


@pytest.mark.large
@pytest.mark.timeout(400)  # the process imports litellm
async def test_the_worker_learns_what_judges_were_asked_and_what_is_left(tmp_path: Path) -> None:
    """One request is answered, and then a request is refused for good, which opens the breaker."""
    replies = iter([Say(), Say(status=401)])
    async with openai_server(default=lambda body: next(replies)) as server:
        plan = judged_plan(budget={"tokens_per_day": 10_000}, breaker={"failures": 1, "open_s": 600})
        supervisor = ScoringSupervisor(setup(plan, server.url), DeathCounts(tmp_path / "attempts.json"))
        said, heard = list[ScoringActivity](), asyncio.Event()

        def hear(activity: ScoringActivity) -> None:
            said.append(activity)
            heard.set()

        supervisor.active = hear
        await supervisor.start()
        await supervisor(session("a"))
        await supervisor(session("b", "Something else."))
        async with asyncio.timeout(60):
            while sum(len(activity.attempts) for activity in said) < 2:
                heard.clear()
                await heard.wait()
        await supervisor.stop()

    attempts = [attempt for activity in said for attempt in activity.attempts]
    assert [attempt.outcome for attempt in attempts] == ["answered", "refused"]
    assert all(attempt.seconds > 0 for attempt in attempts)
    assert supervisor.activity.breakers == {attempts[0].model: True}
    assert supervisor.activity.budget_left == {"tokens_per_day": pytest.approx(1 - 12 / 10_000)}


@pytest.mark.large
@pytest.mark.timeout(400)  # the process imports litellm
async def test_the_worker_logs_which_judge_does_not_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with refusing_address() as address:
        supervisor = ScoringSupervisor(
            setup(judged_plan(), f"{address}/v1/s3cret"), DeathCounts(tmp_path / "attempts.json")
        )
        await supervisor.start()
        scored = [await supervisor(session(name, name)) for name in "ab"]
        await supervisor.stop()

    assert [verdict(each)[1] for each in scored] == ["error", "error"]
    assert {orjson.loads(score)["cause"] for each in scored for score in each.scores} == {"judge_unavailable"}
    (line,) = [each for each in capfd.readouterr().err.splitlines() if "does not answer" in each]
    assert " WARNING " in f" {line} "
    assert f"the judge openai/stub at {address} does not answer" in line
    assert "s3cret" not in line
    assert KEY not in line


@pytest.mark.large
@pytest.mark.timeout(400)  # two processes import litellm
async def test_a_replacement_process_uses_the_stored_verdicts_and_the_recorded_spending(tmp_path: Path) -> None:
    async with openai_server() as server:
        plan = judged_plan(budget={"tokens_per_day": 1_000})
        processes = Started()
        supervisor = ScoringSupervisor(
            setup(plan, server.url), DeathCounts(tmp_path / "attempts.json"), start=processes
        )
        await supervisor.start()
        supervisor.set_budget_share(Share(1, 4))
        first = await supervisor(session("a"))
        os.kill(processes[0].pid, signal.SIGKILL)
        await until_ended(processes[0])
        again = await supervisor(session("a"), first.judged.verdicts)
        supervisor.record_spend(Paid(int(utc_now().timestamp() // 60), 130, 0.0))
        refused = await supervisor(session("b", "Something else."))
        await supervisor.stop()

    assert (verdict(first), verdict(again)) == ((1.0, None, False), (1.0, None, True))
    assert [paid.tokens for paid in first.judged.paid] == [12]
    assert verdict(refused) == (None, "budget", False)
    assert len(server.asked) == 1


@pytest.fixture
def judged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Returns a function that writes a config and returns the arguments to score one session by a judged criterion."""
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_")]:
        monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "traceweir-asks", {"asks": "tests.support.judged:Asks"})
    said = orjson.loads(session("s"))["events"][0]
    (tmp_path / "events.jsonl").write_bytes(orjson.dumps(said))

    def arguments(**judge: Any) -> list[str]:
        config = {"criteria": {"asks": 0.5}, "judge": judge}
        (tmp_path / "eval.json").write_bytes(orjson.dumps(config))
        return [
            "score",
            str(tmp_path / "events.jsonl"),
            "--config",
            str(tmp_path / "eval.json"),
            "--json",
            "--embedder",
            "none",
        ]

    return arguments


def run(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code, *capfd.readouterr()


def test_scoring_a_file_again_uses_the_cached_verdicts_and_stores_no_key(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    judged_file: Callable[..., list[str]],
) -> None:
    monkeypatch.setenv("TRACEWEIR_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    monkeypatch.setenv("TRACEWEIR_JUDGE_API_KEY", KEY)
    found = []
    with openai_server_apart(Say(text=f"no, {KEY}")) as server:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", server.url)
        for _ in range(2):
            code, out, err = run(judged_file(), capfd)
            score = orjson.loads(out.splitlines()[0])
            found.append((code, score["value"], score["rationale"], score["cost"]["cached"]))
            assert KEY not in out + err
    assert found == [(1, 0.0, "the judge said no, [secret]", cached) for cached in (False, True)]
    assert len(server.asked) == 1
    assert KEY.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("verdicts*"))


def test_an_invalid_cache_file_is_reported_with_the_remedy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    judged_file: Callable[..., list[str]],
) -> None:
    (tmp_path / "verdicts.sqlite3").write_text("something else" * 100)
    monkeypatch.setenv("TRACEWEIR_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    code, out, err = run(judged_file(), capfd)
    assert (code, out) == (1, "")
    assert "verdicts.sqlite3 cannot be used (file is not a database): set TRACEWEIR_JUDGE_CACHE" in err


def test_without_litellm_a_judged_criterion_ends_the_command_with_the_name_of_the_extra(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], judged_file: Callable[..., list[str]]
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    code, out, err = run(judged_file(), capfd)
    assert (code, out) == (1, "")
    assert INSTALL in err
    code, out, err = run(["worker", *judged_file()[2:4]], capfd)
    assert (code, out) == (1, "")
    assert INSTALL in err


def test_a_worker_without_the_score_stage_needs_no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(Exception, match="no Kafka broker"):
        run_worker(Settings(kafka_bootstrap_servers="127.0.0.1:1"), judged_plan(), ["assemble"])


def test_an_unknown_option_of_the_judge_is_rejected(
    capfd: pytest.CaptureFixture[str], judged_file: Callable[..., list[str]]
) -> None:
    code, _, err = run(judged_file(timeout=3, budget={"tokens_per_day": 100}), capfd)
    assert code == 2
    assert "judge.timeout: there is no such option; did you mean 'timeoutS'" in err or "timeout_s" in err
