"""Tests that the scoring process scores like this process, ends with its worker, and reports its own end."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue
from tests.support.deadly import deadly_plan
from tests.support.paths import ROOT

from traceweir.schemas.reference import Reference
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError, load_embedder
from traceweir.streams.scoring.isolation.child import loading
from traceweir.streams.scoring.isolation.frame_writer import MOST_TOGETHER
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.process import (
    LOOK_EVERY_S,
    NotStarted,
    ScoringProcess,
    ScoringProcessDiedError,
)
from traceweir.streams.scoring.isolation.protocol import (
    Answer,
    Loading,
    Ready,
    Setup,
    packed,
    receive_object,
    send_object,
)
from traceweir.streams.scoring.isolation.silence import SilenceLimits
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.options import ScoringOptions
from traceweir.streams.scoring.sessions.references import References
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring, score_bytes
from traceweir.streams.testing import event, trace

pytestmark = pytest.mark.slow  # most tests start a scoring process

CONFIG: dict[str, JsonValue] = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.5}}
CONCURRENCY = 4
EXPECTED = Reference.model_validate({"final_response": {"parts": [{"text": "It ships today."}]}})


def setup(embedder: str = "hashing", plan: Plan | None = None) -> Setup:
    return Setup(plan or read_plan(CONFIG), embedder, 60, CONCURRENCY)


def session(name: str = "s", answer: str = "It ships today.") -> bytes:
    said = event(
        "invocation.completed", name, final_response={"parts": [{"text": answer}]}, reference_id="order", event_id="1"
    )
    instant = "2026-01-31T12:00:00Z"
    return orjson.dumps(
        {
            "session_id": name,
            "segment": 0,
            "revision": 0,
            "closed_because": "idle",
            "first_record_at": instant,
            "last_record_at": instant,
            "events": [said],
            "traces": [trace(1, name)],
        }
    )


@pytest.fixture(autouse=True)
def _importable_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the scoring process import the test modules, which pytest imports without `sys.path`."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
async def process() -> AsyncIterator[ScoringProcess]:
    process = ScoringProcess(setup())
    await process.connect()
    yield process
    process.close()


def json_or_none(reference: Reference | None) -> bytes | None:
    return None if reference is None else reference.model_dump_json().encode()


def stable(scored: ScoringResult) -> tuple[object, ...]:
    """Returns the parts of a result that are equal in two runs, that is all except the time."""
    results = [orjson.loads(result) | {"evaluated_at": ""} for result in scored.scores]
    return results, list(scored.candidates), dict(scored.outcomes)


async def test_the_scoring_process_scores_like_this_process(process: ScoringProcess) -> None:
    references = References()
    here = score_bytes(
        SessionScoring(read_plan(CONFIG), load_embedder("hashing"), utc_now, ScoringOptions(60), references=references)
    )
    for said in (None, EXPECTED, None):  # unknown, known, deleted
        references.put("order", said)
        process.update_reference("order", json_or_none(said))
        assert stable(await process.ask(session())) == stable(await here(session()))
    process.update_reference("order", json_or_none(EXPECTED))
    (found,) = [
        s
        for s in map(orjson.loads, (await process.ask(session())).scores)
        if s["metric"] == "response_match_score" and s["level"] == "session"
    ]
    assert found["value"] == 1.0
    assert process.embedder_id == "hashing@1"


@pytest.mark.large
async def test_a_process_that_was_launched_before_scores_and_ends_with_its_owner() -> None:
    launched = LaunchedProcess()
    owner = ScoringProcess(setup(), launched)
    await owner.connect()
    assert (await owner.ask(session())).scores
    owner.close()
    launched.close()  # does nothing more
    assert launched.process.poll() == -signal.SIGKILL


@pytest.mark.large
def test_a_launched_process_that_no_worker_uses_ends_when_it_is_closed() -> None:
    launched = LaunchedProcess()
    launched.close()
    assert launched.process.poll() == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.killpg(launched.process.pid, 0)


def test_a_scoring_process_starts_without_what_reads_settings() -> None:
    """It receives all that it needs, and each process would import pydantic-settings."""
    code = "import sys, traceweir.streams.scoring.isolation.child; print([*sys.modules])"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'traceweir.streams.scoring.judges.client'" in imported
    assert "settings'" not in imported


@pytest.mark.large
async def test_scores_and_candidates_contain_the_requested_attempt(process: ScoringProcess) -> None:
    for attempt in (0, 3):
        result = await process.ask(session(), (), attempt)
        documents = [orjson.loads(each) for each in [*result.scores, *(each.value for each in result.candidates)]]
        assert len(documents) > 1
        assert {document["attempt"] for document in documents} == {result.attempt} == {attempt}


async def test_each_concurrent_request_gets_the_scores_of_its_own_session(process: ScoringProcess) -> None:
    names = [f"s{number}" for number in range(200)]
    asked = [process.ask(session(name, "word " * number)) for number, name in enumerate(names)]
    for name, answer in zip(names, asked, strict=True):
        assert {orjson.loads(result)["session_id"] for result in (await answer).scores} == {name}


@pytest.mark.large
async def test_a_second_answer_is_not_paid_and_ends_no_session_in_flight(process: ScoringProcess) -> None:
    paid: list[object] = []
    lost: list[str] = []
    process.paid, process.lost = paid.append, lost.append
    answered = await process.ask(session())
    in_flight = process.ask(session("other"))
    process.data_received(packed(Answer(1, answered)))
    assert (await in_flight).scores
    assert (len(paid), lost) == (2, [])


async def test_an_unreadable_session_is_rejected_and_other_sessions_are_scored(process: ScoringProcess) -> None:
    refused, scored = process.ask(b"{}"), process.ask(session())
    with pytest.raises(SessionRejected, match="session_id: Field required") as why:
        await refused
    assert why.value.reason == "unreadable_session"
    assert (await scored).scores


def test_an_unavailable_embedder_is_reported_before_the_process_starts() -> None:
    with pytest.raises(EmbedderUnavailableError, match="'no/such/folder'"):
        ScoringProcess(setup("no/such/folder"))


@pytest.mark.large
def test_a_process_sends_loading_messages_until_it_is_ready() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        with loading(its):
            assert receive_object(ours) == Loading()
            assert receive_object(ours) == Loading()
        send_object(its, Ready("one"))
        while isinstance(said := receive_object(ours), Loading):
            pass
        assert said == Ready("one")
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before the setup", "during the start"])
@pytest.mark.large
def test_a_scoring_process_whose_worker_has_ended_ends_without_a_traceback(moment: str) -> None:
    ours, its = socket.socketpair()
    lifeline, kept = os.pipe()  # open to the end of the test: its end would kill the process at once
    ends = its.fileno(), lifeline
    command = [sys.executable, "-m", "traceweir.streams.scoring.isolation.child", *map(str, ends)]
    with subprocess.Popen(command, pass_fds=ends, stderr=subprocess.PIPE, process_group=0) as child:
        its.close()
        if moment == "during the start":
            send_object(ours, setup())
        ours.close()
        _, log = child.communicate()
    os.close(kept)
    os.close(lifeline)
    assert child.returncode == 0
    assert b"Traceback" not in log
    said = b"the worker has ended, so its scoring process ends too" in log
    assert said == (moment == "during the start")  # before, the worker has said why it ends


@pytest.mark.large
async def test_every_waiting_request_fails_when_the_process_dies(process: ScoringProcess) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    waiting = [process.ask(session()) for _ in range(3)]
    os.kill(process.pid, signal.SIGKILL)
    for each in waiting:
        with pytest.raises(ScoringProcessDiedError, match=r"ended unexpectedly \(signal 9\)"):
            await each


async def test_the_scoring_process_ignores_sigint_and_sigterm(process: ScoringProcess) -> None:
    for sent in (signal.SIGINT, signal.SIGTERM):
        os.kill(process.pid, sent)
    assert (await process.ask(session())).scores


WORKER = """
import asyncio, sys
from pathlib import Path
from tests.support.deadly import deadly_plan
from tests.unit.streams.scoring.isolation.test_process import session, setup
from traceweir.streams.scoring.isolation.process import ScoringProcess
async def main(notes):
    process = ScoringProcess(setup("none", deadly_plan(notes)))
    await process.connect()
    process.ask(session("hold"))
    while not notes.exists():
        await asyncio.sleep(0.01)
    print(process.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.large
def test_the_process_ends_with_its_worker_even_while_a_scorer_blocks_the_interpreter(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(tmp_path / "notes")]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    pid = int(worker.stdout.readline())
    worker.kill()
    worker.communicate()
    deadline = time.monotonic() + 30
    while _lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.large
async def test_a_request_to_a_closed_process_is_not_started(process: ScoringProcess) -> None:
    process.close()
    with pytest.raises(NotStarted):
        await process.ask(session())


@pytest.mark.large
async def test_only_sessions_that_can_have_been_begun_count_as_started(tmp_path: Path) -> None:
    """Those that are scored at the same time, and those whose answers can have waited in the process."""
    begun = CONCURRENCY + MOST_TOGETHER
    process = ScoringProcess(setup("none", deadly_plan(tmp_path / "notes")))
    await process.connect()
    asked = [process.ask(session(f"wait-{number}")) for number in range(begun + 6)]
    notes = tmp_path / "notes"
    while not notes.exists() or len(notes.read_text().split()) < CONCURRENCY:  # noqa: ASYNC110  # of another process
        await asyncio.sleep(0.01)
    process.kill()
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in outcomes] == [ScoringProcessDiedError] * begun + [NotStarted] * 6


@pytest.mark.large
async def test_a_session_that_kills_its_process_counts_as_started_though_answers_before_it_are_lost(
    tmp_path: Path,
) -> None:
    """Otherwise it would be scored again and again."""
    one_at_a_time = dataclasses.replace(setup("none", deadly_plan(tmp_path / "notes")), concurrency=1)
    process = ScoringProcess(one_at_a_time)
    await process.connect()
    names = [*(f"s{number}" for number in range(20)), "kill", *(f"t{number}" for number in range(20))]
    outcomes = await asyncio.gather(*(process.ask(session(name)) for name in names), return_exceptions=True)
    assert (tmp_path / "notes").read_text().split() == names[:21]
    assert isinstance(outcomes[20], ScoringProcessDiedError)
    assert {type(each) for each in outcomes[21 + MOST_TOGETHER :]} == {NotStarted}


@pytest.mark.large
async def test_a_process_that_waits_without_using_the_cpu_is_killed_only_after_a_long_silence(tmp_path: Path) -> None:
    process = ScoringProcess(setup("none", deadly_plan(tmp_path / "notes")))
    await process.connect()
    answer = process.ask(session("wait"))
    while not (tmp_path / "notes").exists():  # noqa: ASYNC110  # of another process
        await asyncio.sleep(0.01)
    limits = SilenceLimits()
    for _ in range(round(limits.waiting_s / LOOK_EVERY_S)):  # without a pause, so that no heartbeat is read
        process.kill_if_stuck(limits)
    (tmp_path / "go").touch()
    assert (await answer).scores
    waiting = process.ask(session("wait-again"))
    for _ in range(round(limits.waiting_s / LOOK_EVERY_S) + 1):
        process.kill_if_stuck(limits)
    with pytest.raises(ScoringProcessDiedError):
        await waiting


def test_a_scorer_that_cannot_be_pickled_is_reported_by_name() -> None:
    plan = deadly_plan(Path("notes"))
    object.__setattr__(plan.metrics[0].scorer, "client", threading.Lock())
    with pytest.raises(ConfigError, match=r"criteria\.deadly: its scorer cannot be sent to the scoring process .*lock"):
        ScoringProcess(setup("none", plan))


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
