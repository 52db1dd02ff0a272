"""Tests scoring in several processes: the same results, and sessions that end their process."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue
from tests.support.deadly import deadly_plan
from tests.support.offline_inputs import CASES, CLOCK, RECORDED, generated_traces, of_documents, summary
from tests.support.scoring import trace_document

from traceweir.schemas.score import Score
from traceweir.scorers.base import Measurement, Scorer, Subject
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.cores import usable_cores
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.embedders.loading import load_embedder
from traceweir.streams.testing import plan_of
from traceweir.streams.tools.offline.problems import Problem
from traceweir.streams.tools.offline.scoring_run import MANY_DOCUMENTS, ScoringRun, why_one_job

pytestmark = pytest.mark.slow


clock = partial(datetime.fromtimestamp, CLOCK.timestamp(), UTC)
"""Returns the time of the recorded scores. A process that unpickles it imports no module of the tests, unlike a function."""


@pytest.mark.parametrize(
    "name",
    [
        "mixed, segments",
        *(
            pytest.param(each, marks=pytest.mark.large)
            for each in ("one scope at a time", "evaluation rows", "nothing")
        ),
    ],
)
async def test_two_processes_give_the_recorded_scores_in_the_recorded_order(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    plan, embedder = read_plan(case.config), load_embedder(case.embedder)
    with ScoringRun(plan, embedder, case.settings, clock=clock, jobs=2, kept_bytes=20_000) as run:
        run.read(case.documents(tmp_path))
        scores = [Score.model_validate_json(value) async for found in run.sessions() for value in found.scores]
        found = summary(scores, list(run.problems), run.documents, run.total, run.duplicates)

    assert found == json.loads(RECORDED.read_text())[name]


async def scored(names: Sequence[str], plan: Plan) -> tuple[list[tuple[str, int]], list[Problem]]:
    """Returns the sessions with the number of their scores, and the problems."""
    ended = {"type": "session.ended", "occurred_at": "2026-01-31T11:00:00Z"}
    with ScoringRun(plan, None, Settings(), clock=clock, jobs=2) as run:
        run.read(of_documents([orjson.dumps({**ended, "session_id": name}) for name in names]))
        found = [(session.id, len(session.scores)) async for session in run.sessions()]
        return found, list(run.problems)


async def test_a_session_that_kills_its_process_is_a_stated_failure_and_its_neighbours_are_scored(
    tmp_path: Path,
) -> None:
    names = [f"s{number}" for number in range(100)]
    names[40:40] = ["kill me", "once only"]

    found, problems = await scored(names, deadly_plan(tmp_path / "notes"))

    assert found == [(name, 0 if name == "kill me" else 1) for name in names]
    [problem] = problems
    assert (problem.document, problem.reason) == (41, "poison")
    assert problem.detail == (
        "the scoring process died or hung each time that this session was started, "
        "the last time alone in a process that had served no other session"
    )


@pytest.mark.large
async def test_a_session_is_not_blamed_for_what_an_earlier_session_did_to_its_process(tmp_path: Path) -> None:
    names = ["a", "trap", "b", "c"]

    found, problems = await scored(names, deadly_plan(tmp_path / "notes"))

    assert (found, problems) == ([(name, 1) for name in names], [])


async def test_the_processes_end_with_the_run(tmp_path: Path) -> None:
    run = ScoringRun(deadly_plan(tmp_path / "notes"), None, Settings(), clock=clock, jobs=3)
    with run:
        run.read([])
        pids = run.pids
        assert len(pids) == 3

    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(("documents", "jobs"), [(MANY_DOCUMENTS - 1, 0), (MANY_DOCUMENTS, usable_cores())])
@pytest.mark.large
def test_without_a_number_of_jobs_many_documents_are_scored_by_a_process_per_core(documents: int, jobs: int) -> None:
    with ScoringRun(read_plan({}), None, Settings(), clock=clock, jobs=None) as run:
        run.read(of_documents([b"{}"] * documents))

        assert len(run.pids) == (jobs if jobs > 1 else 0)


class Unsendable(Scorer):
    """A scorer that cannot be sent to a process."""

    level = "session"
    version = "unsendable@1"

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "client", lambda: None)

    def score(self, subject: Subject) -> Measurement:
        return Measurement(value=1.0)


def test_a_scorer_that_cannot_be_sent_is_an_error_that_names_the_way_out() -> None:
    run = ScoringRun(plan_of("m", Unsendable(), None), None, Settings(), clock=clock, jobs=2)
    with run, pytest.raises(ConfigError, match=r"cannot be sent to the scoring process .* Use --jobs 1 meanwhile"):
        run.read([])


def test_one_process_scores_where_a_judge_or_a_model_is_asked() -> None:
    class Model(HashingEmbedder):
        runs_inline = False

    judged = read_plan({"criteria": {"safety_v1": {"threshold": 1.0, "judge_model_options": {"judge_model": "m"}}}})
    assert "ask a judge" in (why_one_job(judged, None) or "")
    assert "model" in (why_one_job(read_plan({}), Model()) or "")
    assert why_one_job(read_plan({}), HashingEmbedder()) is None


REDACTS: dict[str, JsonValue] = {"gate": {"threshold": 0.0, "redact": {"word": "word7"}}}


@pytest.mark.parametrize("embedder", ["none", "hashing"])
@pytest.mark.large
async def test_traces_that_are_accepted_and_refused_are_the_same_with_two_processes(embedder: str) -> None:
    secret = trace_document(id="kp:trace:jane.doe@example.com", metadata={"session_id": "secret"})
    same = [trace_document(id="kp:trace:same", metadata={"session_id": name}) for name in ("one", "two")]
    large = trace_document(id="kp:trace:large", task={"objective": "x" * 940_000})
    hidden = trace_document(id="kp:trace:private", metadata={"visibility": "private"})
    documents = [*generated_traces(150), *(orjson.dumps(each) for each in (secret, *same, large, hidden))]

    decisions = []
    for jobs in (1, 2):
        with ScoringRun(read_plan(REDACTS), load_embedder(embedder), Settings(), clock=clock, jobs=jobs) as run:
            run.read(of_documents(documents))
            found = [value async for session in run.sessions() for value in session.scores]
            decisions.append((found, list(run.problems)))

    assert decisions[0] == decisions[1]
    reasons = {str(Score.model_validate_json(value).details.get("reasons")) for value in decisions[0][0]}
    assert {"[]", "['id_not_publishable']", "['visibility']"} <= reasons
    assert [problem.reason for problem in decisions[0][1]] == ["trace_id_conflict", "too_large"]
